"""The logit lens in a real browser."""

from __future__ import annotations

import csv
from urllib.parse import urlencode

import pytest
from driver import MARKS, Visitor
from lens_oracle import full_pass
from tolerances import PASSED

from explorer.analysis import logit_lens
from explorer.state import cache, models
from models import edits

KINDS = ["small_handle", "small_decoder", "small_translator"]


# ---- journeys ----------------------------------------------------------------


def journey(test):
    for mark in MARKS:
        test = mark(test)
    return test


SIXTY = (
    "When the old farmer came back from the market he saw that his dog had opened the gate and "
    "that all the sheep were gone, so he called his son and together they walked along the river "
    "until it was dark, and only then did they hear a bell far away behind the second hill."
)


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    visitor.page.goto(
        f"{visitor.server}/predict?{urlencode({'tab': 'lens', 'model': 'decoder', **asked})}"
    )
    visitor.page.wait_for_selector(".lens.way[data-token]")
    visitor.page.wait_for_selector(".lens .say[aria-selected=true]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def cell_at(visitor: Visitor, site: int, token: int):
    return visitor.page.locator(
        f".lens .row[aria-rowindex='{site + 2}'] .say[aria-colindex='{token + 2}']"
    )


def held(visitor: Visitor) -> str:
    return visitor.page.locator(".lens .say[aria-selected=true]").get_attribute("aria-label")


@journey
def test_a_cell_is_read_by_pointing_and_held_by_a_click_and_the_link_opens_it_again(
    visitor: Visitor, browser, server: str
) -> None:
    text = "The cat sat on the old mat"
    visited(visitor, text=text)
    recording = cache.record("decoder", text)
    found, tokens = cache.lens(recording, "decoder"), recording.streams[0].tokens
    shown = visitor.page.locator(".lens .row.last .say b").all_inner_texts()
    assert shown == models.labels(
        "decoder", full_pass(models.handle("decoder"), recording).argmax(-1).tolist()
    ), "the last row is what the model says"
    cell_at(visitor, 4, 3).hover()
    says = visitor.page.locator(".lens .says").inner_text()
    cell = logit_lens.cell(found, 4, 3)
    best = models.labels("decoder", cell.ids[:1])[0]
    assert says.startswith(f"After the attention of layer 1, at {tokens[3]} (token 3): {best}")
    assert (
        f"rank {cell.rank + 1:,}, " in says
        and f"{cell.probabilities[0]:.4f}" in says
        and f"{cell.kl:.2f} nats" in says
    )
    cell_at(visitor, 4, 3).click()
    visitor.page.wait_for_url("**site=1.attn.normed**")
    visitor.page.wait_for_url("**token=3**")
    at_rest(visitor)
    visitor.page.wait_for_selector(".lens.way tr.on button[data-at='4']")
    assert held(visitor).startswith(f"After the attention of layer 1, token 3, {tokens[3]}")
    other = visited(Visitor(browser, server), text=text, site="1.attn.normed", token="3")
    assert held(other) == held(visitor)
    assert (
        other.page.locator(".lens.way tr.on").inner_text()
        == visitor.page.locator(".lens.way tr.on").inner_text()
    )
    assert (
        other.page.locator(".lens .says")
        .inner_text()
        .startswith(f"After the attention of layer 1, at {tokens[3]} (token 3): {best}")
    )
    other.leave()


@journey
def test_arrow_keys_read_the_table_and_enter_holds_a_cell(visitor: Visitor) -> None:
    text = "The cat sat on the old mat"
    visited(visitor, text=text)
    last_site, last = (
        len(sent_sites(text)) - 1,
        len(cache.record("decoder", text).streams[0].tokens) - 1,
    )
    visitor.page.locator(".lens .say[tabindex='0']").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowLeft"):
        visitor.page.keyboard.press(key)
    assert f"(token {last - 1})" in visitor.page.locator(".lens .says").inner_text()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url(f"**token={last - 1}**")
    visitor.page.wait_for_selector(f".lens.way tr.on button[data-at='{last_site - 2}']")
    at_rest(visitor)
    focused = visitor.page.evaluate(
        "() => { let a = document.activeElement; while (a?.shadowRoot) a = "
        "a.shadowRoot.activeElement; return a?.getAttribute('aria-label') }"
    )
    assert focused == held(visitor), "the table keeps the focus"
    visitor.page.keyboard.press("Home")
    assert "(token 0)" in visitor.page.locator(".lens .says").inner_text()
    assert visitor.page.locator(".lens .say[tabindex='0']").count() == 1


def sent_sites(text: str) -> tuple[str, ...]:
    return cache.lens(cache.record("decoder", text), "decoder").sites


@journey
@pytest.mark.parametrize("width", [1440, 390])
def test_sixty_tokens_scroll_inside_and_the_page_does_not(browser, server: str, width: int) -> None:
    visitor = visited(
        Visitor(browser, server, viewport={"width": width, "height": 900}), text=SIXTY, token="40"
    )
    page = visitor.page
    assert len(cache.record("decoder", SIXTY).streams[0].tokens) >= 55
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    scroll = page.locator(".lens .scroll")
    assert scroll.evaluate("e => e.scrollWidth > 2 * e.clientWidth")
    assert (
        page.locator(".lens .say b").first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
        >= 14
    )

    def in_sight(selector: str) -> bool:
        return scroll.evaluate(
            """(e, selector) => {
            const [side, one] = [".name", selector].map(
              (each) => e.querySelector(each).getBoundingClientRect());
            const { right } = e.getBoundingClientRect();
            return one.left >= side.right - 1 && one.right <= right + 1; }""",
            selector,
        )

    assert in_sight(".say[aria-selected=true]") and in_sight(".head.on"), (
        "the column that is held is in sight"
    )
    page.locator(".lens .say[tabindex='0']").focus()
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    assert in_sight(".say:focus"), "the keys bring their column into sight"
    left = page.locator(".lens .row .name").first.bounding_box()["x"]
    assert abs(left - scroll.bounding_box()["x"]) < 3, "the heads of the rows stay"
    assert not visitor.errors
    visitor.leave()


@journey
def test_a_word_is_typed_and_a_head_is_named_and_opened_on_the_attention_page(
    visitor: Visitor,
) -> None:
    text, page = "The cat sat on the", visitor.page
    query = urlencode({"tab": "attribution", "model": "decoder", "text": text})
    page.goto(f"{visitor.server}/predict?{query}")
    field = page.get_by_role("combobox", name="The word")
    field.click()
    field.fill("mat and more")
    page.keyboard.press("Enter")
    word, n = models.first_token("decoder", "mat and more")
    page.wait_for_url(f"**word={word}**")
    page.wait_for_selector(
        f"text=is {n} tokens to this model; the first, {models.labels('decoder', [word])[0]}, "
        "is taken"
    )
    at_rest(visitor)
    bar = page.locator(".bars button.row[data-key^='self.']").first
    key = bar.get_attribute("data-key")
    bar.click()
    page.wait_for_url(f"**part={key}**")
    _, layer, head = key.split(".")
    page.wait_for_selector(f"text=Layer {layer}, head {head} is called")
    page.get_by_role("link", name="Open it on the Attention page").click()
    page.wait_for_selector(".head[data-token]")
    page.wait_for_selector(f"h2:has-text('Layer {layer}, head {head}')")
    assert page.locator("textarea").first.input_value() == text


@journey
def test_looking_at_a_word_does_not_hide_it_and_the_numbers_leave_as_files(
    visitor: Visitor,
) -> None:
    text = "The red fox saw a small bird"
    visited(visitor, model="encoder", text=text)
    page = visitor.page
    before = page.locator(".lens .row.last .say b").all_inner_texts()
    hidden = page.locator(".lens .head .reads").all_inner_texts().index("[MASK]")
    cell_at(visitor, 5, 2).click()
    page.wait_for_url("**token=2**")
    page.wait_for_selector(".lens.way h4:has-text('(token 2)')")
    at_rest(visitor)
    assert (
        page.locator(".lens .head .reads").all_inner_texts().index("[MASK]") == hidden
        and f"hidden={hidden}" in page.url
    )
    assert page.locator(".lens .row.last .say b").all_inner_texts() == before

    def download(what: str) -> list[list[str]]:
        lines = visitor.export(f"{what} as CSV").read_text("utf-8").splitlines()
        return [row for row in csv.reader(lines) if not row[0].startswith("#")]

    recording = cache.record("encoder", text, (edits.HideToken(hidden),))
    found = cache.lens(recording, "encoder")
    rows = download("Every number of the lens")
    assert len(rows) == 1 + found.rank.size and float(rows[1][6]) == found.kl[0, 0]
    page.get_by_role("tab", name="Attribution").click()
    page.wait_for_url("**tab=attribution**")
    at_rest(visitor)
    taken = models.handle("encoder").attribute(recording, "encoder", 2, int(found.final_id[2]))
    rows = download(f"All {len(taken.parts)} parts")
    assert (
        float(rows[-2][-2]) == pytest.approx(taken.logit, abs=PASSED)
        and len(rows) == len(taken.parts) + 3
    )


@journey
def test_a_shorter_text_is_drawn_without_the_cell_of_the_longer_one(visitor: Visitor) -> None:
    tokens = cache.record("decoder", SIXTY).streams[0].tokens
    visited(visitor, text=SIXTY, token=f"{len(tokens) - 1}")
    field = visitor.page.locator(".sentence textarea")
    for text in ("The old dog slept.", "Hi"):
        field.fill(text)
        field.press("Enter")
        n = len(cache.record("decoder", text).streams[0].tokens)
        grid = visitor.page.locator(f".lens .table[aria-colcount='{n + 1}']")
        grid.locator(".say[aria-selected=true]").wait_for()
        at_rest(visitor)
        assert visitor.page.locator(".lens .says").inner_text()
        assert not visitor.wrong()
