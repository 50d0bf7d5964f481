"""Training, in a real browser: through the checkpoints by slider and Play, and a model that learns
live, kept and explored."""

from __future__ import annotations

import re

from driver import GRID, MARKS, Visitor
from playwright.sync_api import expect
from test_class_journey import leading

pytestmark = MARKS
TWICE = "The red fox saw a small bird. The red fox saw a small bird."


def test_heads_form_step_by_step_and_a_model_learns_while_one_looks_on(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/training?model=induction&text={TWICE.replace(' ', '%20')}")
    page.get_by_text(re.compile("of its training on, the model")).first.wait_for()
    slider = page.get_by_role("slider", name="Step")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_url("**train_step=0**")
    page.wait_for_selector(".slider output:has-text('Step 0')")
    assert page.locator("g.target[aria-label$=induction]").count() == 0
    page.get_by_role("button", name="Play").click()
    page.wait_for_selector(".slider output:has-text('Step 100')")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_url(lambda url: "train_step=0" not in url)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.get_by_role("button", name="Layer 0, head 1").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**layer=0**head=1**")

    page.get_by_role("tab", name="Train live").click()
    page.get_by_role("button", name="Start").click()
    page.wait_for_selector("text=/Step [1-9][0-9,]*, .*loss/", timeout=120_000)
    below = page.get_by_test_id("stMainBlockContainer")  # Streamlit’s own line has a Stop too
    below.get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Keep and explore its heads").click(timeout=60_000)
    page.wait_for_url("**model=live**")
    visitor.drawn()
    assert page.locator(f"{GRID} g.button").count() == 4
    assert "my induction" in page.locator(".st-key-model_menu button").inner_text()
    assert not visitor.errors


def test_a_training_is_on_the_wall_and_in_the_windows_of_the_class(
    visitor: Visitor, browser: object
) -> None:
    teacher = leading(browser, visitor.server)
    wall, student = teacher.page, visitor.page
    wall.goto(f"{visitor.server}/training?tab=live")
    code = wall.evaluate("JSON.parse(sessionStorage.getItem('headlight class')).code")
    visitor.join(code)
    student.get_by_text("Press Start:").wait_for()
    wall.get_by_role("button", name="Present").click()
    board = wall.locator(".board")
    board.locator(".plate svg").wait_for()
    wall.keyboard.press("g")  # without leaving for the page
    begun = board.locator(".caption", has_text="of a training from random weights")
    begun.wait_for(timeout=120_000)
    expect(board.locator(".plate svg text", has_text="Loss (nats)")).to_have_count(1)
    shown = student.frame_locator(".shown iframe")
    expect(shown.get_by_text("Training: Continue a list").first).to_be_visible()
    step = shown.get_by_text("of at most 60 seconds").first
    before = step.inner_text()
    expect(step).not_to_have_text(before)  # it goes on
    student.get_by_role("button", name="Look around").click()
    expect(student.locator(".shown iframe")).to_be_hidden()
    wall.keyboard.press("g")
    wall.keyboard.press("Escape")
    below = wall.get_by_test_id("stMainBlockContainer")
    expect(below.get_by_role("button", name="Stop")).to_have_count(0)
    teacher.leave()
    assert not teacher.wrong() and not visitor.errors
