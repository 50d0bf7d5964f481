"""The one line at the top of every page, in a real browser: Enter draws, it draws while one types,
and nothing of it is cut."""

from __future__ import annotations

import driver
from driver import Visitor

pytestmark = driver.MARKS


def test_a_text_is_drawn_by_enter_while_one_types_and_a_long_one_on_demand(
    visitor: Visitor,
) -> None:
    page = visitor.open("?view=Matrix&att_unit=Tokens").page
    field = page.locator("textarea").first
    field.fill("Ram pushed Hari")
    field.press("Shift+Enter")
    field.type("and ran.")
    field.press("Enter")
    page.wait_for_selector(".token:has-text('ran')")
    assert field.input_value() == "Ram pushed Hari\nand ran.", "Shift and Enter break the line"
    assert visitor.tokens()[-6:] == ["Hari", "⏎", "and", "ran", ".", "[SEP]"]
    field.fill("")
    field.type("The birds sing because spring makes us glad", delay=60)
    page.wait_for_selector(".token:has-text('glad')")
    assert field.input_value() == "The birds sing because spring makes us glad", "no letter is lost"
    assert not page.locator(".sentence.stale textarea").count()
    field.fill("all work and no play " * 30)
    field.press("Enter")
    page.wait_for_selector(".token:has-text('play')")
    page.wait_for_selector(".sentence:not(.stale)")
    visitor.at_rest()
    field.fill("all work " * 60 + "done")
    page.wait_for_selector(".sentence.stale")
    page.get_by_role("button", name="Draw").click()
    page.wait_for_selector(".sentence:not(.stale)")
    page.wait_for_selector(".token:has-text('done')")


def test_the_bar_is_low_shows_its_focus_shares_the_link_and_presents(visitor: Visitor) -> None:
    page = visitor.open().page
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tabs = page.locator("[data-testid=stTopNavLink]")
    assert tabs.count() == 6 and page.title() == "Attention · Headlight"
    for width, height in ((1920, 1080), (1440, 900), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        nav = page.locator("[data-testid=stTopNav]").bounding_box()
        for tab in tabs.all():
            box = tab.bounding_box()
            assert box["x"] + box["width"] <= nav["x"] + nav["width"] + 16
        field = page.locator(".sentence textarea").bounding_box()
        assert field["y"] + field["height"] <= 110
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode]").first
    link.wait_for()
    assert link.inner_text().startswith(f"{visitor.server}/")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Present", exact=True).press("Enter")
    page.locator(".board svg").first.wait_for()
    page.keyboard.press("Escape")
    page.locator(".board").wait_for(state="detached")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Present", exact=True).click()
    page.locator(".board svg").first.wait_for()
