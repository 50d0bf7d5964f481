"""Words, and a matrix without specials, on the Attention page."""

from __future__ import annotations

import re

import numpy as np
import pytest
from app_harness import asked_of, panels_on, told
from conftest import AWKWARD, texts_of
from driver import CELLS, HEAD, HELD, HELD_AT, Visitor, browser_test
from javascript import arrived, unfolded
from streamlit.testing.v1 import AppTest
from test_pages import clean, opened, sent
from tolerances import PASSED, STORED

from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import PAIRS
from models.runtime.caching import loaded

WORDS = "The kitchen-maid’s unbelievable idea wasn't naïve."


# ---- the page ----------------------------------------------------------------


def drawn(app: AppTest) -> tuple[dict, np.ndarray, np.ndarray | None]:
    """What the head was sent: its header, its weights, its hidden shares."""
    header, blocks = sent(app, "head")
    shape = len(header["rows"]), len(header["columns"])
    values, unknown = arrived(blocks, shape)
    allowed = unfolded(blocks, shape)
    assert not (values * (unknown == 0))[~allowed].any()
    return header, values, blocks.get("hidden")


@pytest.mark.slow
@pytest.mark.parametrize("text", [AWKWARD["empty"], AWKWARD["letters"]])
def test_any_text_is_drawn_between_words_and_without_specials(text: str) -> None:
    for asked in ({"model": "encoder"}, {"model": "translator", "attention": "cross"}):
        app = clean(opened(text=text, att_unit="Words", att_keep="No specials", **asked))
        header, values, hidden = drawn(app)
        if len(values) < 100:  # a large matrix travels with what is unknown of it
            sums = values.sum(axis=1) + (0 if hidden is None else hidden)
            np.testing.assert_allclose(sums, 1, atol=PASSED)
        assert "nan" not in told(app, "caption").split()
        assert (hidden is None) == ("so all" in told(app, "caption"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "asked"),
    [("Table", {"model": "decoder"}), ("Lines", {"model": "translator", "attention": "cross"})],
)
def test_the_other_views_show_the_same_matrix(view: str, asked: dict) -> None:
    shown = {"att_unit": "Words", "att_keep": "No specials", "att_sum": "Renormalised"}
    app = clean(opened(text=WORDS, view=view, layer="1", head="0", **shown, **asked))
    header, values, hidden = drawn(app)
    assert hidden is not None
    if view == "Table":
        table = app.dataframe[0].value
        np.testing.assert_allclose(table.iloc[:, 1].to_numpy(float), hidden, atol=STORED)
        np.testing.assert_allclose(table.iloc[:, 2:].to_numpy(float), values, atol=STORED)
    notes = told(app, "caption")
    for part in ("Rows renormalised over the shown tokens", "Words:", "measured on all tokens"):
        assert part in notes
    caption = next(each["caption"] for each in panels_on(app) if each["panel"] == "attention.head")
    assert any("Rows renormalised over the shown tokens" in line for line in caption)


@pytest.mark.slow
def test_the_choices_stand_in_the_address_and_nothing_else_is_taken() -> None:
    app = clean(opened(text=WORDS, layer="0", head="4"))
    app.session_state["view menu"] = True
    app = clean(app.run())
    tokens = drawn(app)[0]["columns"]
    app = clean(app.segmented_control(key="att_unit shown").set_value("Words").run())
    words = drawn(app)[0]["columns"]
    assert len(words) < len(tokens) and "unbelievable" in words
    app = clean(app.segmented_control(key="att_keep").set_value("No specials").run())
    app = clean(app.toggle(key="att_sum on").set_value(True).run())
    header, values, hidden = drawn(app)
    words = ["The", "kitchen", "-", "maid’s", "unbelievable", "idea", "wasn't", "naïve", "."]
    assert header["columns"] == header["rows"] == words
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=PASSED)
    asked = asked_of(app)
    chosen = {"att_unit": "Words", "att_keep": "No specials", "att_sum": "1"}
    assert chosen.items() <= asked.items()
    again = drawn(clean(opened(**asked)))
    np.testing.assert_array_equal(again[1], values)
    app = clean(app.segmented_control(key="att_keep").set_value("All").run())
    assert "att_sum" not in app.query_params and drawn(app)[2] is None
    refused = clean(opened(att_unit="<b>", att_keep="x", att_sum="y"))
    assert not {"att_unit", "att_keep"} & set(refused.query_params)
    quiet = clean(opened(att_keep="Quiet", layer="0", head="4"))
    assert "[CLS]" not in drawn(quiet)[0]["columns"] and drawn(quiet)[2] is not None
    assert "of the attention of all heads goes there" in " ".join(texts_of(panels_on(quiet)))


@pytest.mark.slow
def test_a_chosen_token_is_held_as_the_word_it_is_a_part_of() -> None:
    stream = loaded("encoder").record(WORDS).streams[0]
    inside = next(at for at, label in enumerate(stream.tokens) if label.startswith("‧"))
    header, *_ = drawn(clean(opened(text=WORDS, token=str(inside), att_unit="Words")))
    held = header["columns"][header["selected"][0]]
    assert held in "kitchen-maid’s unbelievable" and stream.tokens[inside].strip("‧") in held
    header, *_ = drawn(clean(opened(text=WORDS, token="0", att_keep="No specials")))
    assert header["selected"][0] == -1, "what is left out is not held"
    app = clean(opened(text=WORDS, token="2", weight_at="2.1", verify="1"))
    assert drawn(app)[0]["cell"] == [2, 1]
    (verified,) = (p for p in panels_on(app) if p["panel"] == "anatomy.verified")
    assert f"“{stream.tokens[2]}” attends to “{stream.tokens[1]}”" in verified["finding"]


# ---- journeys ----------------------------------------------------------------


@browser_test
def test_words_without_specials_are_renormalised_and_say_what_is_hidden(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=0&head=4", WORDS)
    page = visitor.page
    visitor.view("Words")
    page.wait_for_url("**att_unit=Words**")
    visitor.drawn()
    hidden = page.locator(f"{HEAD} text", has_text=re.compile(" hidden$"))
    assert "unbelievable" in visitor.tokens() and hidden.count() == 0
    visitor.view("Hide special tokens")
    hidden.first.wait_for()
    visitor.drawn()

    def stated() -> list[str]:
        """The hidden share beside each row's name."""
        return [name.split()[-2] for name in hidden.all_text_contents()]

    shares = stated()
    assert len(shares) == len(visitor.tokens()) and "[CLS]" not in visitor.tokens()
    before = visitor.drawing(HEAD)
    page.locator("[data-testid=stCheckbox]", has_text="Renormalise").locator("label").click()
    page.wait_for_url("**att_sum=1**")
    page.wait_for_selector("text=Rows renormalised over the shown tokens")
    page.wait_for_selector(f"{HEAD}[data-token]:not([data-token='{before}'])")
    visitor.drawn()
    assert stated() == shares, "the hidden share stays stated"
    page.keyboard.press("Escape")
    page.locator(f"{HEAD} .token", has_text="unbelievable").click()
    page.wait_for_url("**token=**")
    visitor.drawn()
    page.mouse.move(5, 5)
    says = visitor.said()
    held = visitor.tokens().index("unbelievable")
    assert says.startswith("unbelievable attends to")
    wide = re.sub(r"([<>])\.", r"\1 0.", shares[held])  # beside a row there is less room
    assert says.endswith(f", hidden {wide}")
    file = visitor.export(re.compile("^Layer 0, head 4.* as SVG$"))
    assert f"The  {shares[0]} hidden<" in file.read_text("utf-8")
    assert file.name.endswith("words-no-specials-renormalised.svg")


@browser_test
def test_a_cell_is_chosen_and_taken_apart_on_the_next_page(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=1&head=2", "Ram pushed Hari and Hari pushed Ram.")
    page = visitor.page
    n = len(visitor.tokens())
    page.locator(CELLS).scroll_into_view_if_needed()
    box = page.locator(CELLS).bounding_box()
    wide, tall = box["width"] / n, box["height"] / n
    page.mouse.click(box["x"] + 1.5 * wide, box["y"] + 3.5 * tall)
    page.wait_for_url("**weight_at=3.1**")
    visitor.drawn()
    box = page.locator(CELLS).bounding_box()
    frames = [each.bounding_box() for each in page.locator(f"{HEAD} rect[fill=none]").all()]
    opened_cell = [box["x"] + wide, box["y"] + 3 * tall, wide, tall]
    # A frame is wider than its cell by its stroke.
    assert any(list(frame.values()) == pytest.approx(opened_cell, abs=3) for frame in frames)
    held = page.locator(HELD)
    assert held.count() == 1 and held.evaluate(HELD_AT) == "3"
    page.get_by_role("button", name="How is").click()
    page.wait_for_url("**tab=weight**")
    page.wait_for_url("**weight_at=3.1**")
    assert "layer=1" in page.url and "head=2" in page.url and "token=3" in page.url


def test_what_a_headline_tells_of_is_the_cell_that_opens_and_the_word_of_the_grid() -> None:
    """Where the word of the link gets less of its row than another: a sink, or the word itself."""
    text = "If you want to learn a language, you have to speak it every day."
    recording = loaded("decoder").record(text)
    link = next(one for one in RecordingFacts(recording).leading_findings() if one.kind in PAIRS)
    pattern = recording.attention[0].pattern[link.layer, link.head, link.query]
    assert pattern.argmax() != link.keys[0], "a link that is not its row's largest weight"
    chosen = {"layer": str(link.layer), "head": str(link.head), "token": str(link.query)}
    app = clean(opened(model="decoder", text=text, **chosen))
    button = app.button(key="to weight")
    assert f"{pattern[link.keys[0]]:.2f}" in button.label
    app = button.click().run()
    assert app.session_state["weight_at"] == f"{link.query}.{link.keys[0]}"
    # The grid shows the selected token of a word, not the word's first.
    text = "The unbelievable photographer said she lost her microscope."
    tokens = loaded("encoder").record(text).streams[0].tokens
    token = tokens.index("phot") + 1
    shown = {"layer": "1", "head": "5", "token": str(token), "att_unit": "Words"}
    header, _, _ = drawn(clean(opened(model="encoder", text=text, **shown)))
    row = header["rows"].index("photographer")
    assert header["selected"][0] == row and header["firsts"][0][row] == token
    assert header["firsts"][0][row + 1] == tokens.index("said")
