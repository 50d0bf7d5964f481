"""The logit lens in a real browser."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import numpy as np
from driver import HEAD, MARKS, Visitor

from explorer.analysis import logit_lens
from explorer.figures.formatting import tenths
from models.runtime.caching import loaded

pytestmark = MARKS
SIXTY = (
    "When the old farmer came back from the market he saw that his dog had opened the gate and "
    "that all the sheep were gone, so he called his son and together they walked along the river "
    "until it was dark, and only then did they hear a bell far away behind the second hill."
)


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    asked = {"model": "decoder", **asked}
    return visitor.visit("lens", ".panel .pane .cells", **asked)


def tip(visitor: Visitor) -> str:
    return visitor.page.locator(".panel .tip").first.inner_text()


def press(visitor: Visitor, site: int, token: int) -> None:
    """Press a cell of the lens that is in sight."""
    cells = visitor.page.locator(".panel .cells").first
    box, (rows, n) = cells.bounding_box(), json.loads(cells.get_attribute("data-cells"))[:2]
    at = {"x": (token + 0.5) * box["width"] / n, "y": (site + 0.5) * box["height"] / rows}
    cells.click(position=at)


def test_a_cell_is_pressed_and_read_with_arrow_keys(visitor: Visitor) -> None:
    text = "The cat sat on the old mat"
    visited(visitor, text=text, lens_early="1")
    recording = loaded("decoder").record(text)
    found, tokens = loaded(recording).lens(recording, "decoder"), recording.streams[0].tokens
    page = visitor.page
    press(visitor, 4, 3)
    page.wait_for_url("**site=1.attn.normed**")
    page.wait_for_url("**token=3**")
    title = f"After the attention of layer 1, at “{tokens[3]}” (token 3)"
    page.wait_for_selector(f".panel text:has-text('{title}')")
    visitor.at_rest()
    page.locator(".panel .cells").first.focus()
    page.keyboard.press("ArrowUp")
    word = loaded("decoder").labels(found.top_ids[3, 3, :1])[0]
    p = tenths(float(np.exp(found.top_logprobs[3, 3, 0])))
    assert tip(visitor) == f"{logit_lens.site_name(found.sites[3])}, “{tokens[3]}”: “{word}” {p}"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**site={found.sites[3]}**")
    visitor.at_rest()
    page.wait_for_selector(".panel .cells:focus")  # for the next key


# That as many tokens are drawn as the argument says.
DRAWN = """n => [...document.querySelectorAll("*")].some((each) => {
  const cells = each.shadowRoot?.querySelector(".panel .cells");
  return cells && JSON.parse(cells.dataset.cells)[1] === n; })"""


def test_sixty_tokens_scroll_inside_and_give_way_to_a_shorter_text(
    browser: object, server: str
) -> None:
    narrow = {"viewport": {"width": 412, "height": 900}}
    visitor = visited(Visitor(browser, server, **narrow), text=SIXTY, token="40")
    page = visitor.page
    assert len(loaded("decoder").record(SIXTY).streams[0].tokens) >= 55
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    pane = page.locator(".panel .pane")
    assert pane.evaluate("e => e.scrollWidth > 2 * e.clientWidth")
    words = pane.locator(".body text")
    assert words.first.evaluate("e => parseFloat(getComputedStyle(e).fontSize)") >= 12

    def column_in_sight(token: int) -> bool:
        return pane.evaluate(
            """(e, token) => {
            const cells = e.querySelector(".cells").getBoundingClientRect();
            const names = e.querySelector(".names").getBoundingClientRect();
            const n = JSON.parse(e.querySelector(".cells").dataset.cells)[1];
            const left = cells.left + (token * cells.width) / n;
            const { right } = e.getBoundingClientRect();
            return left >= names.right - 1 && left + cells.width / n <= right + 1; }""",
            token,
        )

    def whole_columns_beside_the_names() -> bool:
        """Whether a column begins where the names of the rows end, to a pixel."""
        return pane.evaluate(
            """e => {
            const cells = e.querySelector(".cells").getBoundingClientRect();
            const { right } = e.querySelector(".names").getBoundingClientRect();
            const n = JSON.parse(e.querySelector(".cells").dataset.cells)[1];
            const behind = ((right - cells.left) * n) / cells.width;
            return Math.abs(behind - Math.round(behind)) * cells.width <= n; }"""
        )

    assert column_in_sight(40), "the selected column is in sight"
    assert whole_columns_beside_the_names()
    page.locator(".panel .cells").first.focus()
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    assert column_in_sight(54), "the keys bring their column into sight"
    for _ in range(9):
        page.keyboard.press("ArrowRight")  # to the last one
    assert whole_columns_beside_the_names()
    left = pane.locator(".names").bounding_box()["x"]
    assert abs(left - pane.bounding_box()["x"]) < 3, "the names of the rows stay"
    field = page.locator(".sentence textarea")
    for text in ("The old dog slept.", "Hi"):
        field.fill(text)
        field.press("Enter")
        visitor.until(DRAWN, len(loaded("decoder").record(text).streams[0].tokens))
        visitor.at_rest()
        page.locator(".panel .cells").first.focus()
        page.keyboard.press("ArrowUp")
        assert tip(visitor) and "undefined" not in tip(visitor)
    assert not visitor.wrong()
    visitor.leave()


def test_a_word_is_typed_and_a_head_is_named_and_opened_on_the_attention_page(
    visitor: Visitor,
) -> None:
    text, page = "The cat sat on the", visitor.page
    query = urlencode({"tab": "attribution", "model": "decoder", "text": text})
    page.goto(f"{visitor.server}/predict?{query}")
    field = page.get_by_role("combobox", name="Logit of")
    field.click()
    field.fill("mat and more")
    page.keyboard.press("Enter")
    word, n = loaded("decoder").first_token("mat and more")
    page.wait_for_url(f"**word={word}**")
    page.wait_for_selector(
        f"text=is {n} tokens to this model; the first, {loaded('decoder').labels([word])[0]}, "
        "is taken"
    )
    visitor.at_rest()
    bar = page.locator(".panel g.target[data-select*='self.']").first
    key = json.loads(bar.get_attribute("data-select"))[0]
    bar.click()
    page.wait_for_url(f"**part={key}**")
    _, layer, head = key.split(".")
    page.wait_for_selector(f"text=Layer {layer}, head {head} is called")
    page.get_by_role("link", name="Open in Attention").click()
    page.wait_for_selector(f"{HEAD}[data-token]")
    page.wait_for_selector(f".st-key-finding p:has-text('Layer {layer}, head {head}')")
    assert page.locator("textarea").first.input_value() == text


def test_looking_at_a_word_does_not_hide_it(visitor: Visitor) -> None:
    page = visited(visitor, model="encoder", text="The red fox saw a small bird").page
    at = lambda: json.loads(page.locator(".panel .cells").first.get_attribute("data-cells"))[3]
    hidden = at()
    press(visitor, 2, 2)  # of the rows from which its answer leads
    page.wait_for_url("**token=2**")
    page.wait_for_selector(".panel text:has-text('(token 2)')")
    visitor.at_rest()
    assert f"hidden={hidden}" in page.url and at() == 2
    lines = (
        visitor.export("What the model would say after each step: logit lens as CSV")
        .read_text("utf-8-sig")
        .splitlines()
    )
    rows = [line for line in lines if not line.startswith("#")]
    assert len(rows) > 50 and rows[0].startswith("site,token,")


def test_a_frame_that_shows_every_cell_ends_with_the_last_one(visitor: Visitor) -> None:
    for n in (2, 3):
        visited(visitor, text=" ".join("the old dog".split()[:n]))
        frame = visitor.page.locator(".panel .pane").first.bounding_box()
        cells = visitor.page.locator(".panel .pane .body").first.bounding_box()
        assert abs(frame["x"] + frame["width"] - cells["x"] - cells["width"]) < 2, n
