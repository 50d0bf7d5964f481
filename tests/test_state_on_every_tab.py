"""The selected word, and the edits of Edit the model, on all other tabs."""

from __future__ import annotations

import pytest
from app_harness import TABS, clean, page_at, panels_on

from explorer.layout.header import AS_TRAINED
from explorer.text.markdown_escape import literal
from models import registry
from models.edits import Edit, UniformHead, WithoutScale, ZeroHead, describe, to_line

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat"
# Their pictures begin with the model as trained, or with A.
OWN_WAY = {"edit", "patching", "compare"}
EDITS: dict[str, tuple[Edit, ...]] = {
    "encoder": (WithoutScale(), ZeroHead(1, 5)),
    "decoder": (UniformHead(0, 0),),
    "translator": (WithoutScale(),),
}
if "smollm2" in registry.names():
    EDITS["smollm2"] = (UniformHead(3, 6),)


# Tabs whose sentence is on a head, on the word that is predicted, on other texts or on trainings.
WORDLESS = {"positions", "edit", "patching", "compare", "sentences", "generate", "translate"}
WORDLESS |= {"checkpoints", "live", "twins", "tour", "claims", "classroom"}


def captions(app) -> list[str]:
    return [line for panel in panels_on(app) for line in panel["caption"] if "edits: " in line]


@pytest.mark.parametrize("model", EDITS)
@pytest.mark.parametrize("tab", [each for each in TABS if each not in OWN_WAY])
def test_each_picture_is_of_the_edited_model_or_the_tab_names_the_trained_one(
    tab: str, model: str
) -> None:
    edits = EDITS[model]
    app = clean(page_at(tab, text=TEXT, model=model, edits=to_line(edits)))
    assert any(literal(describe(edits)) in each.value for each in app.markdown), "badge"
    as_trained = any("as it was trained" in each.value for each in app.caption)
    assert as_trained == (tab in AS_TRAINED)
    expected = "none" if as_trained else describe(edits)
    assert all(f"edits: {expected}" in line for line in captions(app)), captions(app)
    assert as_trained or captions(app), "a picture that names its model"


@pytest.mark.parametrize("tab", [each for each in TABS if each not in WORDLESS])
def test_each_tab_speaks_of_the_selected_word(tab: str) -> None:
    text = "My sister thanked the nurse because she was kind."
    app = clean(page_at(tab, text=text, token="2"))
    findings = [*(each.value for each in app.title), *(each["finding"] for each in panels_on(app))]
    assert any(word in str(each) for each in findings for word in ("sister", "[MASK]", "token 2"))


# Tabs that show what is written, other texts, trainings or all of a text at once.
WITHOUT_SELECTION = {"generate", "translate", "checkpoints", "live", "twins", "tour"}
WITHOUT_SELECTION |= {"claims", "classroom"}


@pytest.mark.parametrize("tab", [each for each in TABS if each not in WITHOUT_SELECTION])
def test_each_tab_has_the_selection_bar_and_what_is_chosen_there_goes_along(tab: str) -> None:
    app = clean(page_at(tab, text=TEXT, layer="1", head="2", token="3"))
    for _ in range(100):  # Many sentences has it when some are read
        bar = {each.key: each for each in app.selectbox if str(each.key).startswith("selected ")}
        if bar:
            break
        app.run()
    for name, value in (("query", 3), ("layer", 1), ("head", 2)):
        if f"selected {name}" in bar:
            assert bar[f"selected {name}"].value == value, name
    assert bar
    for name, choice in (("query", "token"), ("head", "head")):
        if f"selected {name}" in bar:
            app.selectbox(key=f"selected {name}").set_value(4).run()
            assert clean(app).session_state[choice] == "4"
            assert app.selectbox(key=f"selected {name}").value == 4


@pytest.mark.parametrize(
    "tab", ["aggregated", "diagram", "positions", "residual", "feedforward", "word", "edit"]
)
def test_tabs_of_one_word_open_on_the_same_one(tab: str) -> None:
    """Also where the strongest finding is about no word: then on the last whole one."""
    app = clean(page_at(tab, text="The trophy did not fit because it was too big."))
    (bar,) = (each for each in app.selectbox if each.key == "selected query")
    assert bar.options[bar.index].split()[-1] == "big"
