"""The opening question in a real browser: its answer stands nowhere on the page, the field gives
the covered word back to who changes the text, and a wrong guess is met again in the end."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from driver import MARKS, Visitor

from models.contract.recording import COVER

pytestmark = MARKS
WAITER = "The waiter brought the soup but it was cold."
# Every text of the page and of what it is drawn with, all names that are read out, all values of
# fields and the title, but the words to choose from.
EVERYTHING = """() => {
  const told = [document.title];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return told.push(node.data);
    if (/^(style|script|noscript)$/i.test(node.nodeName)) return;
    if (/\\b(choices|offered)\\b/.test(node.className)) return; // words to choose from
    for (const { name, value } of node.attributes || [])
      if (/^(aria-|title$|alt$|placeholder$|data-text$|content$)/.test(name)) told.push(value);
    if ("value" in node && typeof node.value === "string") told.push(node.value);
    if (node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
  };
  walk(document.documentElement);
  return told.join("\\n"); }"""
STAGE = "[data-panel='architecture.flow'] .stage .light"
FIELD = ".sentence textarea"
IN_FIELD = f"""(() => {{ for (const each of document.querySelectorAll("*")) {{
  const field = each.shadowRoot?.querySelector("{FIELD}");
  if (field) return field.value; }} }})()"""


def opened(visitor: Visitor, **words: str) -> None:
    visitor.page.goto(f"{visitor.server}/architecture?{urlencode({'text': WAITER, **words})}")
    visitor.page.wait_for_selector(STAGE)
    visitor.page.locator(".st-key-selected_query, .st-key-selection-bar").first.wait_for()


ASKED = {
    "encoder": ({"model": "encoder", "token": "5"}, ["soup"]),
    "decoder": ({"model": "decoder"}, ["cold"]),
    "translator": ({"model": "translator"}, ["ené", "soupe", "froid"]),
}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("model", ASKED)
@pytest.mark.parametrize("lesson", ["", "three-minutes"])
def test_the_answer_of_an_opening_question_stands_nowhere(
    visitor: Visitor, model: str, lesson: str
) -> None:
    words, gone = ASKED[model]
    more = {"lesson": lesson, "lesson_word": words.get("token", "")} if lesson else {}
    opened(visitor, **words, **more)
    page = visitor.page

    def leaks() -> list[str]:
        said = page.evaluate(EVERYTHING)
        return [each for each in gone if re.search(rf"\b{each}\b", said)]

    assert not leaks()
    page.keyboard.press("p")
    page.wait_for_selector(".presenter svg, .presenter .asked")
    assert not leaks()
    page.keyboard.press("Escape")
    if lesson:
        page.locator(".lesson_bar .dot").last.click()
        page.locator(".lesson_bar .where").filter(has_text="8 / 8").wait_for()
    else:
        page.locator(STAGE).click()
        visitor.until("() => location.search.includes('flow_beam=end')")
    visitor.until(f"gone => gone.some((each) => ({EVERYTHING})().includes(each))", gone)
    visitor.until(f"() => !({EVERYTHING})().includes('{COVER}')")


def test_a_covered_field_gives_the_word_back_to_who_changes_the_text(visitor: Visitor) -> None:
    opened(visitor, model="encoder")
    page, field = visitor.page, visitor.page.locator(FIELD)
    assert field.input_value() == WAITER.replace(" it ", f" {COVER} ")
    field.click()
    page.keyboard.press("Enter")  # nothing was changed
    page.keyboard.press("Control+End")
    page.keyboard.press("Backspace")
    assert field.input_value() == WAITER.removesuffix(".")
    page.keyboard.type("!")
    page.keyboard.press("Enter")
    visitor.until("() => new URLSearchParams(location.search).get('text')?.endsWith('cold!')")
    assert parse_qs(urlsplit(page.url).query)["text"] == [f"{WAITER[:-1]}!"]
    page.wait_for_timeout(500)
    assert field.input_value() == f"{WAITER[:-1]}!", "who typed a text knows it"
    opened(visitor, model="encoder")
    field.fill("A dog barked because it was hungry.")
    page.keyboard.press("Enter")
    visitor.until("() => new URLSearchParams(location.search).get('text')?.startsWith('A dog')")
    assert COVER not in page.url and COVER not in field.input_value()


def test_a_word_in_the_middle_is_changed_where_the_caret_stands(visitor: Visitor) -> None:
    opened(visitor, model="encoder", token="2")  # the waiter
    page, field = visitor.page, visitor.page.locator(FIELD)
    shown = WAITER.replace("waiter", COVER)
    assert field.input_value() == shown
    at = shown.index("soup")
    field.evaluate("(field, at) => { field.focus(); field.setSelectionRange(at, at + 4); }", at)
    page.keyboard.type("tea")
    assert field.input_value() == WAITER.replace("soup", "tea")


def test_a_wrong_guess_is_met_again_at_the_end_of_a_lesson(visitor: Visitor) -> None:
    opened(visitor, model="encoder", lesson="three-minutes")
    page = visitor.page
    page.locator(".stage").get_by_role("button", name="he", exact=True).click()
    page.locator(STAGE).click()
    page.locator(".lesson_bar .where").filter(has_text="2 / 8").wait_for()
    page.reload()  # the window keeps it
    page.locator(".lesson_bar .dot").last.click()
    met = "Your guess “he” has 31.5%."
    page.locator(".lesson_bar .says").filter(has_text=met).wait_for()
    assert met in page.locator("[data-panel='architecture.flow'] .finding").inner_text()


def test_a_right_guess_is_told_where_the_light_has_come_to_the_end(visitor: Visitor) -> None:
    opened(visitor, model="encoder")
    page = visitor.page
    page.locator(".stage input.guess").fill("It")
    page.locator(STAGE).click()
    page.locator("[data-panel='architecture.flow'] .finding").filter(
        has_text="Your guess “it” is the model’s too."
    ).wait_for()
    visitor.until(f"() => {IN_FIELD} === '{WAITER}'")
