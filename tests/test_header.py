"""The bar at the top of every page: any Hugging Face model, from a folder, by its dialog, by a
link; and what the pages offer of it."""

from __future__ import annotations

from urllib.parse import urlencode

import driver
import pytest
import tiny
from app_harness import asked_of, clean, go, open_menu, page_at, panels_on, told
from streamlit.testing.v1 import AppTest

from models.contract.edits import ZeroHead, from_line
from models.example_texts import DEFAULT_MODEL

TEXT = "the cat sat on the mat"
# Folders and names that are no model, and a word of what the reader is told.
NO_MODELS = {
    "": "Give the name",
    "   ": "Give the name",
    "asdf qwer !!": "not a name on the hub",
    "<script>alert(1)</script>": "not a name on the hub",
    "/no/such/folder": "no folder",
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny models by family, each a folder as the hub would give it; and a folder that is
    broken."""
    made = {kind: str(tiny.build(kind, tmp_path_factory.mktemp(kind))) for kind in ("bert", "bart")}
    broken = tmp_path_factory.mktemp("broken")
    (broken / "config.json").write_text('{"model_type": ')
    return made | {"broken": str(broken), "empty": str(tmp_path_factory.mktemp("empty"))}


def opened(page: str, **asked: str) -> AppTest:
    return page_at(page, **asked)


NOTES = ("warning", "info", "error", "caption")


def ask(app: AppTest, where: str) -> AppTest:
    """Open the dialog, give it a name, and press the button."""
    open_menu(app).button(key="add model").click().run()
    app.text_input(key="model_source").set_value(where)
    app.session_state["borrowing"] = True  # here all of the script runs, not the dialog alone
    return next(button for button in app.button if button.label == "Open it").click().run()


def test_a_model_of_english_texts_says_that_another_language_is_none_of_its_own() -> None:
    text = "Der alte Mann gab dem Kind einen Apfel, weil er hungrig war."
    note = "has read English only"
    assert f"encoder {note}" in told(opened("word", model="encoder", text=text), *NOTES)
    heads = opened("heads", model="encoder", text=text)  # whose picture says it
    assert note in panels_on(heads)[0]["finding"] and note not in told(heads, *NOTES)
    for other in ({"model": "encoder", "text": TEXT}, {"model": "copy", "text": text}):
        assert note not in told(opened("heads", **other), *NOTES)


@pytest.mark.slow
def test_the_menu_says_once_which_heads_a_teacher_taught() -> None:
    for model in ("encoder", "induction"):
        said = told(open_menu(opened("heads", model=model, text=TEXT)), "caption")
        note = "L2 H1 and L3 H2 learned from heads of minilm; the others formed by themselves."
        assert said.count(note) == said.count("minilm;") == 1


def test_what_is_no_model_is_said_in_the_dialog_and_the_page_stays(folders: dict[str, str]) -> None:
    app = opened("compare")
    own = {folders["broken"]: "cannot be read", folders["empty"]: "is empty"}
    for where, why in (NO_MODELS | own).items():
        ask(app, where)
        assert not app.exception and app.session_state["model"] == DEFAULT_MODEL
        assert why in told(app, *NOTES), where


@pytest.mark.slow
def test_a_folder_in_our_classes_follows_every_example(folders: dict[str, str]) -> None:
    app = ask(opened("compare", text=TEXT, compare="Edit"), folders["bert"])
    assert not app.exception and app.session_state["model"] == f"ours:{folders['bert']}"
    assert set(OF_OWN_CLASSES) - {"No LayerNorm", "No causal mask"} <= examples(app)
    assert "differs most" in panels_on(app)[0]["finding"]


OF_OWN_CLASSES = (
    *("No positions", "No residual connections", "No LayerNorm", "No FFN"),
    "No causal mask",
)


def examples(app: AppTest) -> set[str]:
    return set(app.pills(key="comparison").options)


@pytest.mark.slow
def test_a_folder_in_its_own_code_is_offered_only_what_it_can_follow(
    folders: dict[str, str],
) -> None:
    """Nothing on the pages may be pressed in vain: every example and switch that stands there makes
    another run."""
    app = clean(ask(opened("compare", text=TEXT, compare="Edit"), folders["bart"]))
    assert app.session_state["model"] == f"hub:{folders['bart']}"
    (line,) = (each.placeholder for each in app.text_input if each.key == "other_edits")
    assert from_line(line) == (ZeroHead(0, 0, "encoder self"),)
    app.pills(key="comparison").set_value("No scale").run()
    assert "differs most" in panels_on(clean(app))[0]["finding"]
    assert not examples(app) & set(OF_OWN_CLASSES)
    go(app, "edit")
    for name in app.selectbox(key="experiment").options:
        app.selectbox(key="experiment").set_value(name).run()
        assert clean(app).session_state["edits"], name
        assert "left out" not in told(app, *NOTES), name
    parts = {"Attention head", "Scale of the scores", "Sliding window", "Word"}
    assert set(app.selectbox(key="edit part").options) <= parts


@pytest.mark.slow
def test_a_link_to_a_folder_that_is_gone_names_it_and_shows_another_model() -> None:
    app = opened("claims", model="ours:/no/such/folder")
    assert not app.exception and app.session_state["model"] == DEFAULT_MODEL
    assert "/no/such/folder" in told(app, *NOTES)


# ---- a journey ---------------------------------------------------------------


ASKS = "has not opened yet"


@driver.browser_test
def test_a_folder_is_opened_with_the_keyboard_and_for_its_reader_alone(
    visitor: driver.Visitor, folders: dict[str, str]
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/experiment?tab=compare&compare=Edit&{urlencode({'text': TEXT})}")
    page.get_by_text("differs most").first.wait_for()
    page.locator(".st-key-model_menu button").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Add a model").focus()
    page.keyboard.press("Enter")
    field = page.get_by_role("dialog").get_by_label("Name or folder")
    field.focus()
    page.keyboard.type("/no/such/folder")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_text("There is no folder").wait_for()
    field.fill(folders["bert"])
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for(state="detached")
    page.wait_for_url("**model=ours**")
    page.get_by_text("differs most").first.wait_for()
    page.reload()
    page.get_by_text("differs most").first.wait_for()
    name, menu = folders["bert"].rpartition("/")[2], ".st-key-model_menu button"
    assert name in visitor.at_rest().page.locator(menu).inner_text()
    assert not page.get_by_text(ASKS).count()
    # Another browser is asked, as of any other model.
    other = driver.Visitor(visitor.context.browser, visitor.server)
    other.page.goto(page.url)
    other.page.get_by_text(ASKS).first.wait_for()
    assert name not in other.page.locator(menu).inner_text()
    other.leave()
    visitor.errors[:] = visitor.wrong()


def test_the_link_says_what_it_does_not_contain() -> None:
    def shared(app: AppTest) -> str:
        app.session_state["share"] = True
        return next(each.value for each in app.run().caption if "This link" in each.value)

    app = page_at("sentences")
    assert shared(app).endswith("elsewhere.")
    app.text_area(key="sentences").set_value("One dog.\nTwo cats.").run()
    assert shared(app).endswith("elsewhere.")
    app.text_area(key="sentences").set_value("One dog.\n" * 400).run()
    assert "your list on Many sentences, which is too long" in shared(app)
    assert "many_text" not in app.query_params
    app = page_at("sentences", many_text="One dog.\nTwo cats.")
    assert asked_of(app)["many_text"] == "One dog.\nTwo cats."
    assert "many_text" not in go(app, "heads").query_params, "the list belongs to its tab"


@pytest.mark.parametrize(
    "text, note",
    [
        ("The *trophy* fell.", "“t ‧rop ‧hy” as 3 tokens. “‧” marks"),
        ("A trophy and a 🦊.", "no token for “🦊”. It reads its bytes, as 4 tokens"),
        ("The cat slept 1/4.", ""),
    ],
)
def test_a_page_explains_tokens_that_are_no_words(text: str, note: str) -> None:
    captions = [each.value for each in clean(page_at("weight", text=text)).caption]
    notes = [each for each in captions if "tokens. “‧”" in each or "It reads its bytes" in each]
    assert len(notes) == bool(note) and all(note in each for each in notes)
