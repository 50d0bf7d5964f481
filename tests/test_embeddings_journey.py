"""A word is followed through two contexts in a real browser."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import driver
from conftest import read_once
from driver import Visitor
from embedding_fixtures import of, states
from playwright.sync_api import expect

from explorer.analysis import logit_lens

pytestmark = driver.MARKS
FRUIT, DEVICES = (
    "She ate the apple with some fruit juice.",
    "Tell me about the new apple devices.",
)
DONE = "[data-test-script-state=notRunning]"


def points(visitor: Visitor, pressed: str = "") -> list[str]:
    found = visitor.page.locator(f".panel .slider >> xpath=.. >> g.target{pressed}")
    return [each.get_attribute("aria-label") for each in found.all()]


def test_a_reader_follows_apple_through_two_contexts(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=embeddings")
    page.locator(".panel svg").first.wait_for()
    page.get_by_role("button", name="Example: “apple”").click()
    expect(page.locator("textarea").first).to_have_value(FRUIT)
    page.get_by_role("heading", name="“apple” beside anchor words").wait_for()
    page.wait_for_selector(DONE)
    assert points(visitor, "[aria-pressed=true]") == ["apple (text 1)", "apple (text 2)"]
    slider = page.get_by_role("slider", name="Words as points: near means similar")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    names = states(of(read_once("encoder"), FRUIT))
    stage = len(names) - 5
    page.wait_for_url(f"**stage={stage + 1}**")
    title = logit_lens.title(names[stage], names)
    assert page.locator(".slider output").inner_text() == title
    page.get_by_text(f"At {title} the nearest word to").wait_for()
    expect(slider).to_be_focused()
    page.get_by_role("button", name="juice (text 1)").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=“juice” is not in the second text")
    page.wait_for_selector(DONE)
    page.get_by_role("button", name="devices (text 2)").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**mate=**")
    page.get_by_text("“juice” and “devices”").wait_for()
    drawn = visitor.export(re.compile("“juice” in two contexts.* as SVG")).read_text("utf-8")
    assert "model encoder" in drawn and "juice" in drawn and DEVICES in drawn
    assert not visitor.wrong(), visitor.wrong()


def test_the_plane_plays_and_names_its_points_and_gives_way_to_any_text(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=embeddings&stage=8")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()
    assert page.locator(".slider output").inner_text() == "L3 FFN"
    page.wait_for_url(lambda url: "stage=8" not in url)
    visitor.at_rest()
    plane = page.locator(".panel .slider >> xpath=..")
    plane.scroll_into_view_if_needed()
    unnamed = set()
    points = plane.locator("g.target").all()
    assert len(points) > 5
    for point in points:
        box = point.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip = page.locator(".panel .tip:not(:empty)").first.inner_text()
        name = point.get_attribute("aria-label")
        unnamed |= set() if name in tip else {name}
    assert not unnamed
    long = "Ram pushed Hari and then the old dog " * 8
    last = len(of(read_once("encoder"), long).tokens) - 2
    asked = urlencode({"text": long, "contexts": "One", "token": last})
    page.goto(f"{visitor.server}/architecture?tab=embeddings&{asked}")
    page.locator(".panel .slider").wait_for()
    field = page.locator("textarea").first
    # Of no text the special tokens are drawn.
    for text, n in (("a", 1), ("", 2), ("the old dog", 3)):
        field.fill(text)
        field.press("Enter")
        target = page.locator(".panel .slider >> xpath=.. >> g.target")
        expect(target).to_have_count(n)
        page.wait_for_selector(DONE)
    assert not visitor.wrong(), visitor.wrong()
