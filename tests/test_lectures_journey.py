"""Both lectures walked from the first step to the last, as they are given: a wall, its speaker's
window, and a student's phone that follows and votes."""

from __future__ import annotations

import json
import re

import driver
import pytest
from driver import PHONE, Visitor
from playwright.sync_api import expect
from test_class_journey import leading

from explorer.panels import lessons
from models.example_texts import DEFAULT_TEXT
from models.runtime.run import Run

ASKED = "Which word is hidden|Which word comes next"  # of a class, until the light is on
PRESENTED = "html[data-headlight-presenter=on]"


def headline(heading: str) -> re.Pattern[str]:
    """That of a step on the wall, or of what the picture asks the class there."""
    return re.compile(f"{re.escape(heading)}|{ASKED}")


@pytest.mark.parametrize("name", ["lecture", "decoder-and-nepal"])
@driver.browser_test
def test_a_lecture_is_given_from_its_first_step_to_its_last(
    name: str, browser: object, server: str
) -> None:
    """On each step the wall has its headline and something below it, the speaker's window its words
    and its question, and the phone its words; of a vote each student's answer is counted, and a
    temperature that the wall goes to is the phone's."""
    made = lessons.on(Run("encoder", DEFAULT_TEXT), name)
    teacher, student = leading(browser, server), Visitor(browser, server, **PHONE)
    wall, phone, n = teacher.page, student.page, len(made.items)
    wall.goto(f"{server}/?lesson={name}")
    expect(wall.locator(".lesson_bar .where")).to_have_text(f"1 / {n}")
    student.join(json.loads(wall.evaluate("sessionStorage['headlight class']"))["code"])
    with wall.expect_popup() as opened:
        wall.get_by_role("button", name="Speaker’s window").click()
    speaker, board = opened.value, wall.locator(".board")
    wall.locator(".lesson_bar .where").click()
    wall.keyboard.press("p")
    wall.wait_for_selector(PRESENTED, state="attached")
    for at, item in enumerate(made.items, 1):
        expect(speaker.locator(".where")).to_have_text(f"step {at} of {n}")
        expect(board.locator("h1")).to_contain_text(headline(item.heading))
        board.locator(".plate > *").first.wait_for(state="attached")
        said = " ".join(f"{item.says}{item.number}{item.rest}".split())
        expect(speaker.locator("section p.says").first).to_have_text(said)
        expect(speaker.locator("p.question")).to_have_text(item.question)
        expect(phone.locator(".lesson_bar .where")).to_have_text(f"{at} / {n}")
        expect(phone.locator(".lesson_bar h2")).to_have_text(item.heading)
        if item.options:
            wall.keyboard.press("v")
            phone.locator(".follow .choice").nth(int(item.right)).press("Enter")
            expect(speaker.locator(".class .state, .class .about")).to_contain_text(["1 of 1"])
            wall.keyboard.press("r")
            right = item.options.split("\n")[int(item.right)]
            for one in (board, phone.locator(".follow"), speaker.locator(".class")):
                expect(one.locator(".choice.right .words")).to_have_text(right)
                expect(one.locator(".choice.right .count")).to_have_text("1")
        if item.panel == "soft_lookup.temperature":
            wall.keyboard.press("ArrowDown")
            shown = phone.locator(f"[data-panel='{item.panel}'] output")
            expect(shown.first).to_have_text("T = 1.1")
            expect(board).to_contain_text("At T = 1.1")
        wall.keyboard.press("t")
        wall.keyboard.press("ArrowRight")
    for one in (teacher, student):
        one.leave()
        assert not one.wrong(), one.errors
