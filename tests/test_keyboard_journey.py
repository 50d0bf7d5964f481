"""The keyboard alone in a real browser: Tab comes through a page, a menu and back, and a key acts
on what has the focus."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from driver import MARKS, Visitor
from playwright.sync_api import expect

pytestmark = MARKS

FOCUSED = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  window.seen = (window.seen || []).concat(at === document.body ? [] : [at]);
  return [at === document.body, at.matches(".term") ? "term" : at.matches(".guess") ? "guess" : "",
    new Set(window.seen).size === window.seen.length]; }"""
MOST = 80  # stops of the keys on a page


def passed(visitor: Visitor) -> list[str]:
    """What Tab stops at from the page's beginning to its end, each of which it leaves at once."""
    stops = []
    for _ in range(MOST):
        visitor.page.keyboard.press("Tab")
        is_end, name, is_new = visitor.page.evaluate(FOCUSED)
        if is_end:
            return stops
        assert is_new, f"the keys stay at a stop: {stops[-3:]}"
        stops.append(name)
    raise AssertionError(f"no end after {MOST} stops")


def test_tab_goes_through_one_head_to_the_end_of_the_page_and_into_menus_and_out(
    visitor: Visitor,
) -> None:
    page = visitor.visit("weight", ".panel[data-token] .term").page
    assert "term" in passed(visitor), "words that are explained are stops too"
    opener = page.locator(".st-key-examples button").first
    opener.press("Enter")
    menu = page.locator("[data-testid=stPopoverBody]")
    expect(menu.locator("button").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(menu.locator(":focus")).to_have_count(1)
    page.keyboard.press("Shift+Tab")
    expect(opener).to_be_focused()
    expect(menu).to_have_count(0)


def test_in_flow_tab_leaves_the_field_and_x_and_delete_take_out_what_has_the_focus(
    visitor: Visitor,
) -> None:
    page = visitor.visit("flow", ".panel[data-token] .light").page
    assert {"term", "guess"} <= set(passed(visitor))
    page.locator(".light").press("Enter")
    # The button has gone with the question, and the focus is in the panel that came.
    expect(page.locator(".panel :focus")).to_have_count(1)
    visitor.at_rest()
    page.locator(".flow-head").first.focus()
    page.keyboard.press("x")
    page.wait_for_url("**off=*")
    expect(page.locator(".flow-head[aria-pressed=true]")).to_have_count(1)
    assert parse_qs(urlsplit(page.url).query)["off"] == ["0.0"]
    visitor.at_rest()
    page.locator(".flow-head").first.focus()
    page.keyboard.press("Delete")
    expect(page.locator(".flow-head[aria-pressed=true]")).to_have_count(0)
    visitor.at_rest()
    page.locator("g.token", has_text="waiter").focus()
    page.keyboard.press("Delete")
    expect(page.locator("g.token[aria-pressed=true]", has_text="waiter")).to_have_count(1)
