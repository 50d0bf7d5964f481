"""What is added by its recipe in CONTRIBUTING.md is everywhere, and no other file says anything of
it: an edit, a tab, a choice, a step of a lesson."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import clone
import numpy as np
import pytest
from app_harness import ROOT, asked_of, clean, page_at, panels_on
from conftest import read_once
from tolerances import STORED

from explorer.app.layout import tab as tab_layout
from explorer.app.state import url_state
from explorer.figures.kinds import Facts
from explorer.panels import address, lessons, spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import Layer
from explorer.panels.spec import Panel
from explorer.screens.screen import screen
from explorer.text import places
from explorer.text.places import Tab
from models.contract import edits
from models.runtime.run import Run

TEXT = "The river bank was steep, so we sat down on it."
WRITTEN = "docs/reference.md"  # by `python -m docs.reference`
MOST = {"A choice": 1, "A step of a lesson": 1, "A tab": 3, "An edit": 5}


@pytest.mark.parametrize("what", MOST)
def test_a_recipe_takes_few_files(what: str) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (recipe,) = re.findall(rf"^\*\*{what}\.\*\*.*?(?=\n\n)", text, re.DOTALL | re.MULTILINE)
    files = re.findall(r"`([\w./-]+)`", re.split(r"\bFiles?\b", recipe)[-1])
    assert files and {*files} <= {*clone.names()}
    assert len({*files} - {WRITTEN}) <= MOST[what], files


# ---- an edit -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SquaredHead(edits.Ablation):
    """The head's weights are squared, and each row sums to 1 again."""

    def __str__(self) -> str:
        return f"weights of head {self.head} of layer {self.layer} squared"

    @property
    def place(self) -> str:
        return edits.place_of(self.attention, self.layer, "pattern")

    def on(self, x: Any, allowed: Any = None) -> None:
        x *= x
        x /= x.sum(axis=-1, keepdims=True)


@pytest.fixture
def squared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(edits.KINDS, "SquaredHead", SquaredHead)


@pytest.mark.usefixtures("squared")
@pytest.mark.parametrize(
    ("model", "attention"), [("encoder", "self"), ("minilm", "self"), ("translator", "cross")]
)
def test_an_edit_is_carried_out_written_and_read(model: str, attention: str) -> None:
    edit = SquaredHead(1, 2, attention)
    assert edits.from_line(edits.to_line((edit,))) == (edit,)
    loaded = read_once(model)
    plain, changed = loaded.record(TEXT), loaded.record(TEXT, edit)
    at = [each.name for each in plain.attention].index(attention)
    squares = plain.attention[at].pattern[1, 2].astype(np.float64) ** 2
    np.testing.assert_allclose(
        changed.attention[at].pattern[1, 2],
        squares / squares.sum(axis=-1, keepdims=True),
        rtol=STORED,
        atol=STORED,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("squared")
def test_an_edit_is_on_its_page_and_in_its_captions() -> None:
    asked = {"text": TEXT, "edits": edits.to_line((SquaredHead(1, 2),)), "layer": "1", "head": "2"}
    for each in panels_on(clean(page_at("heads", **asked))):
        assert "edits: weights of head 2 of layer 1 squared" in each["caption"][0]
    shown = screen({"tab": "heads", **asked})
    assert shown.run.edits == (SquaredHead(1, 2),) and not shown.refused


# ---- a tab and a choice --------------------------------------------------------------------------

SHADES = {"Light": "In light", "Dark": "In dark"}
TAB, PANEL = "added", "added.layer"


def layer(
    run: Run, layer: Layer = OPENS, shade: Annotated[str, Choice(SHADES, "Shade")] = "Light"
) -> Panel:
    """A layer in a shade."""
    facts = Facts(facts=((SHADES[shade], run.model),))
    return Panel(title=f"Layer {layer}", finding=f"It is {shade}.", figures=(facts,))


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A panel with a choice of its own, and a row of the table of tabs that names it."""
    caches = (spec.choices_by_panel, url_state.declared, url_state._every)
    row, place = Tab(TAB, "Shades", (PANEL,)), places.PLACES["attention"]
    for table, key, value in (
        (spec.PANELS, PANEL, None),
        (places.PLACES, "attention", replace(place, tabs=(*place.tabs, row))),
        (places.TABS, TAB, row),
        (places.ROWS, TAB, row),
        (places._TAB_OF, TAB, row),
        (places._PLACE_OF, TAB, "attention"),
        (tab_layout.VIEWS, TAB, None),
    ):
        monkeypatch.setitem(table, key, value)
    monkeypatch.setattr(layer, "__module__", f"explorer.panels.{TAB}")
    spec.panel(layer)
    tab_layout.view(TAB)
    for each in caches:
        each.cache_clear()
    yield
    monkeypatch.undo()
    for each in caches:
        each.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_a_row_of_the_table_is_a_tab_with_its_address_and_panels() -> None:
    app = clean(page_at(TAB, text=TEXT, layer="2"))
    assert [each.label for each in app.tabs][-1] == "Shades"
    (shown,) = panels_on(app)
    made = screen({"tab": TAB, "text": TEXT, "layer": "2"})
    assert shown["title"] == "Layer 2" == next(made.panels()).title
    assert places.address(TAB, {"layer": "2"}) == "/?tab=added&layer=2"


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_an_argument_is_a_widget_a_word_of_the_address_and_of_the_call() -> None:
    app = clean(page_at(TAB, text=TEXT))
    (widget,) = (each for each in app.get("button_group") if each.label == "Shade")
    assert widget.options == list(SHADES.values())
    clean(widget.set_value("Dark").run())
    assert asked_of(app)["shade"] == "Dark" and panels_on(app)[0]["finding"] == "It is Dark."
    made = address.from_words(PANEL, Run("encoder", TEXT), {"shade": "Dark"})
    assert made.call.startswith("panels.added.layer(run, ") and "shade='Dark'" in made.call
    assert address.words_of(made)["shade"] == "Dark"
    with pytest.raises(ValueError, match="Blue"):
        address.from_words(PANEL, Run("encoder", TEXT), {"shade": "Blue"})
    shown = screen({"tab": TAB, "text": TEXT, "shade": "Blue"})
    assert "Blue" in shown.refused["shade"] and shown.chosen["shade"] == "Light"


# ---- a step of a lesson --------------------------------------------------------------------------


def test_a_table_of_its_file_is_a_step_of_a_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    lesson = lessons.written()["first-attention"]
    step: Mapping[str, Any] = {
        "tab": "weight",
        "panel": "anatomy.weight",
        "choices": {"layer": "1", "head": "2", "token": "3"},
        "heading": "One weight of “{word}”",
        "says": "It is {number}.",
        "number": "anatomy.weight:weight",
    }
    longer = lessons.written() | {"longer": lesson | {"item": [*lesson["item"], step]}}
    monkeypatch.setattr(lessons, "written", lambda: longer)
    run = Run("encoder", TEXT)
    *others, last = lessons.on(run, "longer").items
    assert (*others,) == lessons.on(run, "first-attention").items
    shown = screen(last.address)
    (panel,) = (each for each in shown.panels() if each.name == last.panel)
    assert (shown.chosen["layer"], shown.chosen["head"], shown.chosen["token"]) == (1, 2, 3)
    assert (last.says, last.number) == ("It is ", panel.numbers["weight"].text)
