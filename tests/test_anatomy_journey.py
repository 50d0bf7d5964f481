"""A cell is opened in a real browser: keys, steps, motion."""

from __future__ import annotations

import re

from conftest import read_once
from driver import MARKS, Visitor
from playwright.sync_api import expect

from explorer.figures.formatting import whole_percent

TEXT = "text=Ram+pushed+Hari"
pytestmark = MARKS


def arrive(visitor: Visitor, query: str = "") -> Visitor:
    visitor.page.goto(f"{visitor.server}/?tab=weight{query}")
    visitor.page.wait_for_selector(".panel[data-token] .cells")
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")
    return visitor


def weight_of(visitor: Visitor) -> str:
    """The weight in the sentence of the panel."""
    finding = visitor.page.locator(".panel .finding").first.inner_text()
    return re.findall(r"((?:[<>] )?[\d.]+%) of its attention", finding)[0]


def test_keys_open_a_cell_and_its_steps_are_walked(visitor: Visitor) -> None:
    arrive(visitor, f"&layer=1&head=2&token=2&weight_at=2.3&weight_step=Dot+product&{TEXT}")
    pattern = read_once("encoder").record("Ram pushed Hari").attention[0].pattern[1, 2]
    page = visitor.page
    page.locator(".panel .cells").first.focus()
    for key in ("ArrowUp", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**weight_at=1.2**")
    page.wait_for_selector(".panel .finding:has-text('“Ram” gives “pushed”')")
    assert weight_of(visitor) == whole_percent(float(pattern[1, 2]))
    titled = ".panel .figure:has-text('{} of layer 1, head 2')"
    expect(page.locator(titled.format("q · k"))).to_be_attached()
    # Steps are walked by buttons and keys, and a key in the row is chosen.
    page.get_by_role("button", name="Next").click()
    page.wait_for_selector(".panel svg:has-text('Step 2 of 7')")
    expect(page.locator(titled.format("Scores"))).to_be_attached()
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector(".panel svg:has-text('Step 3 of 7')")
    expect(page.locator(titled.format("Weights"))).to_be_attached()
    page.wait_for_url("**weight_step=Softmax**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.locator(".panel g.target:has-text('[CLS]')").first.click()
    page.wait_for_url("**weight_at=1.0**")
    page.wait_for_selector(".panel .finding:has-text('gives “[CLS]”')")
    assert page.locator(".panel svg:has-text('Step 3 of 7')").count()
    page.get_by_text("All heads of the layer").click()
    page.wait_for_selector("text=Three equivalent formulas")
    svg = visitor.export("How one attention weight is computed as SVG").read_text("utf-8")
    assert "model encoder" in svg and "Text: Ram pushed Hari" in svg
    page.keyboard.press("Escape")
    page.locator(".panel h2").first.click()
    page.keyboard.press("p")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**weight_step=Value**")


WATCH = """one => { for (const on of ["input", "click", "keydown"]) one.addEventListener(on, () => {
  const moving = one.getRootNode().getAnimations();
  window.moving = moving.map(({ effect }) => effect.getTiming().duration); }); }"""
PICTURE = "one => one.querySelector('.slider').parentElement.querySelector('svg').outerHTML"


def test_values_fade_and_slide_into_their_sum_where_motion_is_wanted(visitor: Visitor) -> None:
    at = f"&layer=1&head=2&token=2&weight_at=2.3&weight_step=Value&{TEXT}"
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    pictures = []
    for one in (visitor, lively):
        arrive(one, at)
        panel = one.page.locator(".panel").first
        panel.evaluate(WATCH)  # what moves right after a press
        panel.get_by_role("slider").press("ArrowRight")
        durations = one.page.evaluate("moving")
        assert bool(durations) == (one is lively) and all(each < 400 for each in durations)
        for name in ("Next", "Back", "Back"):  # a press ends it, and backwards nothing moves
            panel.get_by_role("button", name=name).press("Enter")
            assert one.page.evaluate("moving") == []
        panel.get_by_role("button", name="Next").press("Enter")
        assert bool(one.page.evaluate("moving")) == (one is lively)
        one.until("one => !one.getRootNode().getAnimations().length", panel.element_handle())
        assert panel.locator("svg:has-text('Step 5 of 7')").count()
        pictures.append(panel.evaluate(PICTURE))
    assert pictures[0] == pictures[1], "in the end it is the picture that stands still"
    lively.leave()


def test_play_walks_the_steps_by_itself_and_a_press_ends_it(visitor: Visitor) -> None:
    """Space plays, left and right step, a press ends it; without motion the steps only change."""
    at = f"&layer=1&head=2&token=2&anatomy_cell=2.3&{TEXT}"
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    for one in (visitor, lively):
        page = arrive(one, at).page
        panel = page.locator(".panel").first
        step = ".panel svg:has-text('Step {} of 7')"
        play = panel.get_by_role("button", name="Play")
        expect(play).to_have_attribute("aria-keyshortcuts", "Space")
        play.click()
        for number in (2, 3):
            page.wait_for_selector(step.format(number))
        pause = panel.get_by_role("button", name="Pause")
        expect(pause).to_be_visible()
        panel.locator("h2, .finding").first.click()
        expect(play).to_be_visible()
        page.evaluate("document.activeElement?.blur()")
        shown = panel.locator("output").inner_text()
        page.wait_for_url(f"**weight_step={shown}**")  # of where it was ended
        for key, number in (("ArrowRight", 4), ("ArrowLeft", 3)):
            page.keyboard.press(key)
            page.wait_for_selector(step.format(number))
        page.keyboard.press(" ")
        page.wait_for_selector(step.format(4))
        page.keyboard.press(" ")
        expect(play).to_be_visible()
        page.get_by_role("slider").first.press("End")
        page.wait_for_selector(step.format(7))
        play.press("Enter")  # from the end it begins anew
        page.wait_for_selector(step.format(1))
        pause.press("Enter")
    lively.leave()
