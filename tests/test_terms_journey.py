"""Terms of the field where they first stand in the sentences of each tab: what they mean is shown
under the pointer, with the focus of the keyboard and on a tap, and is read aloud."""

from __future__ import annotations

import pytest
from app_harness import TABS
from driver import MARKS, Visitor

from explorer.state import places
from explorer.text import glossary

pytestmark = MARKS
TEXT = 'The "logit" of <b>softmax</b> 猫 was tired because it slept.'
# Tabs without a panel that has a title of its own.
BARE = ("heads", "live", "tour", "classroom")
# Of each panel: the words of its title and of its sentence, and the terms explained in them.
SAID = """panels => panels.map((one) => ['h2', '.finding'].map((part) => [
  one.querySelector(part).textContent,
  [...one.querySelectorAll(`${part} .term`)].map((term) => term.textContent)]))"""


@pytest.mark.parametrize("tab", [each for each in TABS if each not in BARE])
def test_each_term_is_explained_where_it_first_stands(visitor: Visitor, tab: str) -> None:
    page = visitor.page
    model = {"model": "decoder"} if tab == "generate" else {}
    page.goto(visitor.server + places.address(tab, {"text": TEXT, **model}))
    panels = page.locator(".panel:has(h2)")
    panels.first.wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    for (title, in_title), (finding, in_finding) in panels.evaluate_all(SAID):
        explained = [glossary.term(word).name for word in (*in_title, *in_finding)]
        assert explained == list(glossary.used(f"{title} {finding}", most=99)), (title, finding)


def test_a_term_is_explained_to_pointer_keys_screen_reader_and_finger(
    browser: object, visitor: Visitor
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=residual")
    term = page.locator(".panel h2 .term", has_text="Residual stream")
    meaning = page.get_by_role("tooltip").filter(has_text="each token carries from layer to layer")
    term.hover()
    meaning.wait_for()
    meaning.hover()
    assert meaning.is_visible(), "the pointer may go to it"
    page.mouse.move(0, 0)
    meaning.wait_for(state="hidden")
    term.focus()
    meaning.wait_for()
    box = meaning.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= page.viewport_size["width"]
    page.keyboard.press("Escape")
    meaning.wait_for(state="hidden")
    described = page.locator(f".panel #{term.get_attribute('aria-describedby')}").first
    assert "residual stream" in described.text_content()
    phone = Visitor(
        browser,
        visitor.server,
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
    )
    phone.page.goto(f"{visitor.server}/architecture?tab=residual")
    phone.page.locator(".panel h2 .term").first.tap()
    box = phone.page.locator(".means.open").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    phone.leave()
