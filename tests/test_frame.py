"""The one line at the top of every page, in a real browser: Enter draws, it draws while one types,
and nothing of it is cut."""

from __future__ import annotations

import driver
from driver import Visitor

from explorer.text import model_descriptions
from models import registry

pytestmark = driver.MARKS


def test_enter_draws_and_shift_enter_breaks_the_line(visitor: Visitor) -> None:
    visitor.open()
    field = visitor.page.locator("textarea").first
    field.fill("Ram pushed Hari")
    field.press("Shift+Enter")
    field.type("and ran.")
    field.press("Enter")
    visitor.page.wait_for_selector(".token:has-text('ran')")
    assert field.input_value() == "Ram pushed Hari\nand ran."
    assert visitor.tokens()[-6:] == ["Hari", "⏎", "and", "ran", ".", "[SEP]"]


def test_it_draws_while_one_types_and_keeps_every_letter(visitor: Visitor) -> None:
    visitor.open()
    field = visitor.page.locator("textarea").first
    field.fill("")
    field.type("The birds sing because they are glad", delay=60)
    visitor.page.wait_for_selector(".token:has-text('glad')")
    assert field.input_value() == "The birds sing because they are glad"
    assert not visitor.page.locator(".sentence.stale textarea").count()


def test_a_long_text_waits_for_enter_and_says_so(visitor: Visitor) -> None:
    visitor.open("?text=" + "all+work+and+no+play+" * 30)
    field = visitor.page.locator("textarea").first
    field.fill("all work " * 60 + "done")
    visitor.page.wait_for_selector(".sentence.stale")
    assert visitor.page.get_by_role("button", name="Draw").is_visible()
    visitor.page.get_by_role("button", name="Draw").click()
    visitor.page.wait_for_selector(".sentence:not(.stale)")
    visitor.page.wait_for_selector(".token:has-text('done')")


def test_the_frame_is_low_and_every_tab_is_seen(visitor: Visitor) -> None:
    page = visitor.open().page
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


def test_every_model_that_is_here_says_what_it_is_for() -> None:
    for name in registry.names():
        assert model_descriptions.purpose(name), name


def test_the_focus_is_seen_in_the_bar_and_the_link_of_the_first_page_is_whole(
    visitor: Visitor,
) -> None:
    page = visitor.open().page
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode]").first
    link.wait_for()
    assert link.inner_text().startswith(f"{visitor.server}/")


def test_the_presenter_opens_by_a_button_of_the_bar(visitor: Visitor) -> None:
    visitor.open()
    page = visitor.page
    page.get_by_role("button", name="Present", exact=True).press("Enter")
    page.locator(".board svg").first.wait_for()
    page.keyboard.press("Escape")
    page.locator(".board").wait_for(state="detached")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Present", exact=True).click()
    page.locator(".board svg").first.wait_for()
