"""Journeys in a real browser against a real server: paste, click, keyboard, link, hostile text,
downloads."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
from conftest import AWKWARD, HOSTILE, read_once
from driver import CELLS, GRID, HEAD, HELD, HELD_AT, IMAGE, MARKS, Visitor
from playwright.sync_api import expect

from explorer.figures.csv import without_comments
from models.contract.recording import Recording
from models.contract.recording_file import from_npz

pytestmark = MARKS


TEXT = "Ram pushed Hari and Hari pushed Ram."


def recorded(text: str) -> Recording:
    return read_once("encoder").record(text)


def test_a_sentence_is_drawn_goes_along_to_other_pages_and_asks_no_other_host(
    visitor: Visitor,
) -> None:
    visitor.hear_requests().open("?view=Matrix")
    assert "animal" in visitor.tokens()
    visitor.paste(TEXT)
    recording = recorded(TEXT)
    assert visitor.page.locator(".cell").count() == recording.model.n_layer * recording.model.n_head
    assert tuple(visitor.tokens()) == recording.streams[0].tokens
    visitor.go("Predict")
    visitor.page.wait_for_url(lambda url: "/predict?" in url and "text=Ram" in url)
    assert visitor.page.locator("textarea").first.input_value() == TEXT
    visitor.go("Attention")
    visitor.page.wait_for_url(lambda url: "predict" not in url and "text=Ram" in url)
    assert "Hari" in visitor.drawn().tokens()
    visitor.page.go_back()
    visitor.page.wait_for_url(lambda url: "/predict?" in url and "text=Ram" in url)
    assert visitor.page.locator("textarea").first.input_value() == TEXT
    own = (visitor.server, "data:", "blob:")
    assert all(url.startswith(own) for url in visitor.requests), visitor.requests


def test_a_head_and_a_token_are_opened_sent_alone_and_opened_again_by_the_link(
    visitor: Visitor, browser, server: str
) -> None:
    sizes: list[int] = []
    hear = lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame)))
    visitor.page.on("websocket", hear)
    visitor.open("?view=Matrix", " ".join(["the cat saw a dog near the old house and"] * 6))
    n = len(visitor.tokens())
    sizes.clear()
    visitor.page.locator(".cell").nth(11).click()
    visitor.page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 3')")
    visitor.drawn()
    assert 0 < sum(sizes) <= 30_000 + n * n, f"nothing of the grid: {sizes}"
    visitor.page.locator(".token").nth(3).click()
    visitor.page.wait_for_url(re.compile(r"[?&]token=3(&|$)"))  # not 33
    visitor.drawn()
    assert visitor.page.locator(".cell[aria-pressed=true]").count() == 1
    says = visitor.said()
    other = Visitor(browser, server).open(visitor.page.url.removeprefix(server + "/"))
    assert "Layer 1, head 3" in other.title()
    assert other.tokens() == visitor.tokens() and other.picture() == visitor.picture()
    other.page.mouse.move(5, 5)
    assert other.page.locator(HELD).evaluate(HELD_AT) == "3"
    pressed = other.page.locator(".cell[aria-pressed=true]")
    assert pressed.get_attribute("aria-label").startswith("Layer 1, head 3")
    assert other.said() == says
    other.leave()


# An attribute of what has the focus, in whatever shadow root.
FOCUS = """name => { let one = document.activeElement;
  while (one?.shadowRoot) one = one.shadowRoot.activeElement; return one?.getAttribute(name); }"""


def test_keyboard_alone_reaches_and_opens_heads_and_tokens(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&layer=0&head=0")
    page = visitor.page
    # From the start of the page, past the places, and past the frame by a link that Tab shows.
    for _ in range(14):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUS, "class") == "skip":
            page.keyboard.press("Enter")
            break
    assert page.evaluate(FOCUS, "class") == "target button cell", "the first head within 15 presses"
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 2')")
    visitor.drawn()
    focused = page.evaluate(FOCUS, "aria-label")
    assert focused.startswith("Layer 1, head 2"), "the grid keeps its place"
    page.locator(".token").first.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**token=2**")
    assert page.locator(HELD).evaluate(HELD_AT) == "2"
    page.locator(".skip:text('menus')").focus()
    page.keyboard.press("Enter")
    assert "Word that attends" in page.evaluate(FOCUS, "aria-label")


def test_heads_of_one_pattern_as_a_grid_and_as_a_list_that_sorts(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&pattern=sink")
    page, card = visitor.page, read_once("encoder").card
    count = page.locator(".cell").count()
    assert page.locator(f"{GRID} svg").first.text_content().count(f"{count} of 32 heads: sink")
    visitor.view("List")
    page.wait_for_url("**grid=1**")
    rows = page.locator(f"{GRID} g.target")
    page.locator(f"{GRID} text:text-is('pattern')").wait_for()
    assert rows.count() == count
    page.goto(f"{visitor.server}/?grid=List")
    rows.nth(card.n_layer * card.n_head - 1).wait_for()
    rows.nth(2).click()
    page.wait_for_url("**layer=**")


def test_hostile_and_long_texts_are_drawn_as_they_are_and_nothing_runs(visitor: Visitor) -> None:
    page = visitor.open("?view=Matrix&att_unit=Tokens").page
    for name, text in AWKWARD.items():
        visitor.paste(text)
        assert page.title().endswith("Headlight"), name
        sent = page.locator("textarea").first.input_value()
        assert tuple(visitor.tokens()) == recorded(sent).streams[0].tokens, name
        assert page.locator(".cell").count() > 0, name
        assert not visitor.errors, name
    names = page.locator(f"{HEAD} :is(.names, .column) text[text-anchor=end]")
    for n, least in ((10, 8), (60, 45), (200, 150)):
        visitor.paste(" ".join(["the cat saw a dog near the old house and"] * (n // 10)))
        expect(names.first).to_be_visible()
        assert names.count() >= least
        assert float(names.nth(1).get_attribute("font-size")) >= 10
        assert names.nth(1).evaluate("e => e.getBoundingClientRect().height") >= 10.5
    visitor.paste(HOSTILE["10,000 characters"])
    expect(page.locator(f"{HEAD} .token")).to_have_count(512)
    assert "reads 512" in page.locator("[data-testid=stAlert]").first.inner_text()
    assert page.locator("textarea").first.input_value() == HOSTILE["10,000 characters"]


def test_downloads_of_the_head_and_of_the_recording(visitor: Visitor) -> None:
    text = "The <b>cat</b> & the 'dog' \x1b[31m \u202eback"
    visitor.open("?view=Matrix&layer=2&head=1&tone=Log", text)
    recording = recorded(text)

    def download(name: str | re.Pattern[str]) -> bytes:
        return visitor.export(name).read_bytes()

    svg = download(re.compile("^Layer 2, head 1.* as SVG$")).decode()
    words = [each.text for each in ElementTree.fromstring(svg).iter() if each.tag.endswith("text")]
    assert "<b>" not in svg.replace("&lt;b>", "")
    assert any("model encoder" in word for word in words) and any("'dog'" in one for one in words)
    png = download(re.compile("^Layer 2, head 1.* as PNG$"))
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20], "big") >= 1000
    table = download(re.compile("^Layer 2, head 1.* as CSV$")).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(without_comments(table))))
    first = np.array(rows[1][1:], dtype=np.float32)
    np.testing.assert_array_equal(first, recording.attention[0].pattern[2, 1, 0])
    assert from_npz(download("All activations (NPZ)")) == recording


def test_views_scale_and_theme_repaint_the_same_selection(
    visitor: Visitor, browser, server: str
) -> None:
    visitor.open("?view=Matrix&layer=1&head=1&token=4")

    before = visitor.pixels(IMAGE)
    visitor.view("Per row")
    visitor.page.wait_for_url("**scale=Row**")
    visitor.drawn()
    assert visitor.pixels(IMAGE) != before, "another scale, other colours"
    visitor.view("0 to 1")
    visitor.page.wait_for_url(lambda url: "scale" not in url)
    visitor.drawn()
    for view, what in (
        ("Lines", f"{HEAD} .target:not(.button)"),
        ("Table", "[data-testid=stDataFrame]"),
        ("Matrix", CELLS),
    ):
        visitor.view(view)
        visitor.page.wait_for_selector(what)
        assert visitor.page.locator(HELD).evaluate(HELD_AT) == "4"
    dark = Visitor(browser, server, color_scheme="dark").open("?view=Matrix&layer=1&head=1&token=4")
    # No attention is dark on a dark page and light on a light one.
    assert sum(dark.pixels(IMAGE)) < sum(visitor.pixels(IMAGE))
    assert not dark.errors
    dark.leave()


def test_a_held_word_shows_its_row_and_a_picture_is_white_when_asked(
    visitor: Visitor,
) -> None:
    page = visitor.open("?layer=1&head=5").page
    names, n = page.locator(".cell text"), len(visitor.tokens())
    by_word = page.locator(".cell[aria-label*='Largest weight']")  # of a word's row
    image = ".cell >> nth=3 >> image"
    page.locator(HELD).click()  # the app holds it: it is let go
    by_word.first.wait_for(state="detached")
    before = names.all_text_contents()
    assert len(visitor.pixels(image)) == 4 * n * n
    page.locator(f"{HEAD} .token").nth(9).click()
    page.wait_for_url("**token=9**")
    by_word.first.wait_for()
    page.locator("g.more").click()  # also those that read no word
    names.nth(len(before) - 1).wait_for()
    words = [name.strip() for name in names.all_text_contents()]
    assert len(words) == by_word.count() and set(words) <= set(visitor.tokens())
    assert len(visitor.pixels(image)) == 4 * n
    at = page.locator(".cell[aria-pressed=true] text").text_content().strip()
    assert f"attends to {at} " in visitor.said()
    page.get_by_role("radio", name="All words", exact=True).click()
    by_word.first.wait_for(state="detached")
    assert names.all_text_contents() == before
    assert len(visitor.pixels(image)) == 4 * n * n
    for white, paper in ((False, "#fffdf9"), (True, "#ffffff")):
        visitor.open_export()
        page.get_by_role("checkbox", name="white background").set_checked(white)
        text = visitor.export(re.compile("^Layer .* as SVG$")).read_text("utf-8")
        assert re.search(rf'<rect width="100%" height="100%" fill="{paper}"', text)
        assert re.search(r'font-family="Inter, [^"]*sans-serif"', text)
    assert not page.get_by_role("button", name=" as SVG").count(), "the menu alone has it"
