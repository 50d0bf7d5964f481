"""A page on paper and under colours of the system, in a real browser."""

from __future__ import annotations

import re

import pytest
from driver import USUAL, Visitor, browser_test

from models.example_texts import DEFAULT_TEXT

TABS = ("heads", "weight", "lens", "flow")
# What would be printed: every text with its box, its ink and what it lies on, in the page and in
# views.
TEXTS = """() => {
  dispatchEvent(new Event("beforeprint"));
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 3 && node.data.trim() && node.parentElement?.checkVisibility()) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const { left, top, right, bottom } = range.getBoundingClientRect();
      const ink = getComputedStyle(node.parentElement);
      const drawing = node.parentElement.closest("svg");
      const colour = drawing ? ink.fill : ink.color;
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const below = [...(drawing?.querySelectorAll("rect") ?? [])].filter((each) => {
        const box = each.getBoundingClientRect();
        return box.left < x && x < box.right && box.top < y && y < box.bottom;
      });
      const ground = below.length ? getComputedStyle(below.at(-1)).fill : "";
      const isFixed = (one) => one && (getComputedStyle(one).position === "fixed" || isFixed(
        one.parentElement ?? one.getRootNode().host));
      const box = [left, top, right, bottom];
      const isBar = isFixed(node.parentElement);
      if (right > left) found.push([node.data.trim(), ...box, colour, isBar, ground]);
    }
    if (node.tagName === "STYLE" || node.tagName === "SCRIPT") return;
    for (const each of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(each);
  };
  walk(document.body);
  return found;
}"""
PAPER = {"portrait": 794, "landscape": 1123}  # pixels of A4


@browser_test
@pytest.mark.parametrize("tab", TABS)
def test_on_paper_nothing_is_cut_and_no_bar_lies_over_the_page(
    browser: object, server: str, tab: str
) -> None:
    visitor = Visitor(browser, server, **{**USUAL, "color_scheme": "dark"})
    lit = {"flow_beam": "end"} if tab == "flow" else {}  # before it is a question
    lit["text"] = DEFAULT_TEXT
    page = visitor.visit(tab, "[data-drawn]", model="encoder", **lit).page
    for width in PAPER.values():
        page.emulate_media(media="screen", color_scheme="dark")
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="print", color_scheme="dark")
        expect_readable(page.evaluate(TEXTS), width)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="dark")
    assert page.locator(".on-paper").count() == 0
    visitor.leave()


def expect_readable(texts: list[list], width: int) -> None:
    """What is printed on a sheet of this width stands on it, in ink, and no bar lies over it."""
    says = " ".join(each[0] for each in texts)
    assert "animal" in says and len(texts) > 40
    assert not [each for each in texts if each[6]], "no bar stands in the window"
    cut = [each for each in texts if each[1] < -1 or each[3] > width + 1]
    assert not cut
    for name, *_, colour, _, ground in texts:
        ink, below = ([int(each) for each in re.findall(r"\d+", of)[:3]] for of in (colour, ground))
        is_dark = below and max(below) < 128
        assert max(ink) < 200 or min(ink) == 255 or is_dark, (name, colour)  # as on a dark cell


@browser_test
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_under_colours_of_the_system_lines_and_the_open_tab_are_seen(
    browser: object, server: str, scheme: str
) -> None:
    options = {**USUAL, "color_scheme": scheme}
    visitor = Visitor(browser, server, **options)
    page = visitor.page
    page.emulate_media(forced_colors="active", color_scheme=scheme)
    visitor.visit("heads", "[data-panel='attention.head'][data-token]", layer=1, head=5)
    canvas = page.evaluate(
        "() => { const one = document.createElement('i'); one.style.color = 'Canvas';"
        "document.body.append(one); const { color } = getComputedStyle(one); one.remove();"
        "return color; }"
    )
    strokes = page.locator("[data-panel='attention.head'] svg path[stroke]").evaluate_all(
        "all => all.map(one => [getComputedStyle(one).stroke, one.getAttribute('stroke')])"
    )
    dark = sum(map(int, canvas[4:-1].split(","))) < 384
    assert dark == (scheme == "dark") and strokes
    for seen, asked in strokes:
        luminance = sum(int(asked[at : at + 2], 16) for at in (1, 3, 5)) / 3
        assert luminance > 128 if dark else luminance < 128, (seen, asked)
    tab = page.get_by_role("tab", name="Heads", exact=True)
    assert tab.evaluate("one => getComputedStyle(one).borderBottomWidth") == "3px"
    tab.focus()
    page.keyboard.press("ArrowRight")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.emulate_media(forced_colors="none")
    visitor.leave()
