"""How much a page sends to the browser for the longest text."""

from __future__ import annotations

import pytest
from app_harness import TABS, page_at
from compare_fixtures import recorded
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element

from models.runtime import registry

MOST = 1_500_000  # bytes
LONG = "The cat sat on the mat while the old dog slept by the door. " * 60
OTHER = LONG.replace("cat", "bird")
VIEWS = [
    *(("concepts", {"look_at": way}) for way in ("Hard", "Three", "Scale")),
    *(("positions", {"ask": ask}) for ask in ("Sentence", "Order")),
    ("edit", {"effects": "Attention"}),
    ("patching", {"donor": OTHER}),
    *(("compare", {"other_view": view}) for view in ("Heads", "Nearest")),
    ("compare", {"compare": "Sentence", "other_text": OTHER}),
    *(("aggregated", {"sum_what": what}) for what in ("Mean", "Flow", "Writes")),
    *(("residual", {"flow": flow}) for flow in ("Writes", "Heads")),
    ("embeddings", {"contexts": "One"}),
]
OF_NO_TEXT = {"live", "twins", "sentences"}
VIEWS += [(page, {}) for page in TABS if page not in OF_NO_TEXT | {each for each, _ in VIEWS}]
# Of a model with more heads, those that send most.
LARGE = [
    (page, choices)
    for page, choices in VIEWS
    if page in ("heads", "weight")
    or choices in ({"effects": "Attention"}, {"other_view": "Heads"}, {"other_view": "Nearest"})
    or choices in ({"look_at": "Three"}, {"ask": "Order"}, {"sum_what": "Mean"})
]


def sent(app: AppTest) -> dict[str, int]:
    """Bytes of all that the app's body holds, whatever it is, by kind."""
    found: dict[str, int] = {}
    for each in app.main:
        if isinstance(each, Element):
            found[each.type] = found.get(each.type, 0) + each.proto.ByteSize()
    return found


def check(model: str, page: str, choices: dict[str, str]) -> None:
    assert len(recorded(model, LONG).streams[0].tokens) == 512
    app = page_at(page, model=model, text=LONG, **choices)
    assert not app.exception and not app.error
    found = sent(app)
    assert 5_000 < sum(found.values()) < MOST, found


@pytest.mark.slow
@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("page", "choices"),
    [view for view in VIEWS if view not in LARGE or registry.MINILM not in registry.names()],
)
def test_no_view_of_a_long_text_sends_too_much(page: str, choices: dict[str, str]) -> None:
    check("encoder", page, choices)


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.skipif(
    registry.MINILM not in registry.names(), reason="the package with MiniLM is not installed"
)
@pytest.mark.parametrize(("page", "choices"), LARGE)
def test_no_view_of_minilm_sends_more_either(page: str, choices: dict[str, str]) -> None:
    check(registry.MINILM, page, choices)


def test_tables_are_counted() -> None:
    app = AppTest.from_string("import streamlit as st; st.dataframe({'a': list(range(10_000))})")
    assert sent(app.run())["dataframe"] > 10_000
