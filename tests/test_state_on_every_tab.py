"""The selected word and head, and the edits of Take out, on all tabs."""

from __future__ import annotations

import pytest
from app_harness import TABS, asked_of, clean, go, page_at, panels_on, told
from streamlit.testing.v1 import AppTest

from explorer.text import places
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.contract.edits import Edit, UniformHead, WithoutScale, ZeroHead, describe, to_line
from models.runtime import registry

pytestmark = pytest.mark.slow
TEXT = "My sister thanked the nurse because she was kind."
EDITS = (WithoutScale(), ZeroHead(1, 5))
# Their pictures begin with the model as trained, or with A.
OWN_WAY = {"edit", "patching", "compare"}
# Tabs that show what is written, other texts, trainings or all of a text at once.
WITHOUT_SELECTION = {"generate", "translate", "checkpoints", "live", "twins", "lessons"}
WITHOUT_SELECTION |= {"claims", "classroom"}
# Tabs whose sentence is on a head, on the word that is predicted, on other texts or on trainings.
WORDLESS = OWN_WAY | WITHOUT_SELECTION | {"positions", "sentences"}


def check_edits(app: AppTest, tab: str, edits: tuple[Edit, ...]) -> None:
    """Each picture is of the edited model, or the tab names the trained one."""
    assert any(literal(describe(edits)) in each.value for each in app.markdown), "badge"
    captions = [line for one in panels_on(app) for line in one["caption"] if "edits: " in line]
    as_trained = any("as it was trained" in each.value for each in app.caption)
    assert as_trained == places.ROWS[tab].as_trained
    expected = "none" if as_trained else describe(edits)
    assert all(f"edits: {expected}" in line for line in captions), captions
    assert as_trained or captions, "a picture that names its model"


def check_selection(app: AppTest) -> None:
    """The selection bar shows what the address names, and what is chosen there goes along."""
    for _ in range(100):  # Many sentences has it when some are read
        bar = {each.key: each for each in app.selectbox if str(each.key).startswith("selected_")}
        if bar:
            break
        app.run()
    assert bar
    for name, value in (("query", 2), ("layer", 1), ("head", 2)):
        assert f"selected_{name}" not in bar or bar[f"selected_{name}"].value == value, name
    for name, choice in (("query", "token"), ("head", "head")):
        if f"selected_{name}" in bar:
            app.selectbox(key=f"selected_{name}").set_value(4).run()
            assert clean(app).session_state[choice] == "4"
            assert app.selectbox(key=f"selected_{name}").value == 4


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_is_of_the_edited_model_and_of_what_is_selected(tab: str) -> None:
    app = clean(page_at(tab, text=TEXT, edits=to_line(EDITS), layer="1", head="2", token="2"))
    if tab not in OWN_WAY:
        check_edits(app, tab, EDITS)
    if tab not in WORDLESS:
        said = [line for each in panels_on(app) for line in (each["finding"], *each["caption"])]
        found = [*(each.value for each in app.title), *said]
        assert any(word in str(each) for each in found for word in ("sister", "[MASK]", "token 2"))
    if tab in WITHOUT_SELECTION:
        why = sentences("frame", "unselected")(tab)
        assert why in [each.value for each in app.caption]
        app.button(key="to nearest").click().run()
        shown = clean(app).session_state
        assert (shown.page, shown.model) == (places.ROWS[tab].nearest, "encoder")
    else:
        check_selection(app)


@pytest.mark.parametrize("tab", ["edit", "word", "compare", "heads"])
def test_an_edit_at_a_word_stays_with_its_text_and_the_page_says_so(tab: str) -> None:
    words = sentences("frame", "edits")
    left, still = words("left_text"), words("still")
    app = clean(page_at(tab, text=TEXT, edits="HideWord:2:,ZeroHead:1:5:self"))
    assert left not in told(app)
    app.session_state["wanted_text"] = "The dog ran home because it was tired."
    clean(app.run())
    assert app.session_state["edits"] == "ZeroHead:1:5:self" and f"{left} {still}" in told(app)
    assert "HideWord" not in asked_of(app).get("edits", "")
    assert left not in told(clean(go(app, "live")))


def test_edits_of_a_model_stay_with_it_and_the_page_says_so() -> None:
    app = clean(page_at("heads", text=TEXT, edits="ZeroHead:1:5:self"))
    app.session_state["wanted_model"] = "minilm"
    clean(app.run())
    assert not app.session_state["edits"]
    assert sentences("frame", "edits")("left_model") in told(app)


@pytest.mark.parametrize(
    ("model", "edits", "tabs"),
    [
        ("decoder", (UniformHead(0, 0),), ("heads", "generate", "lens")),
        ("translator", (WithoutScale(),), ("weight", "generate", "translate")),
        ("smollm2", (UniformHead(3, 6),), ("heads", "word", "attribution")),
    ],
)
def test_other_models_are_edited_too(model: str, edits: tuple[Edit, ...], tabs: tuple) -> None:
    if model not in registry.names():
        pytest.skip(f"{model} is not installed")
    for tab in tabs:
        app = clean(page_at(tab, text=TEXT, model=model, edits=to_line(edits)))
        check_edits(app, tab, edits)


@pytest.mark.parametrize(
    "tab", ["aggregated", "flow", "positions", "residual", "feedforward", "word", "edit"]
)
def test_tabs_of_one_word_open_on_the_same_one(tab: str) -> None:
    """On that of the headline, here the pronoun."""
    app = clean(page_at(tab, text="The trophy did not fit because it was too big."))
    (bar,) = (each for each in app.selectbox if each.key == "selected_query")
    assert bar.options[bar.index].split()[-1] == ("▢" if tab == "flow" else "it")  # asked for
