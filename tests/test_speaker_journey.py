"""The speaker's window in real browsers: two windows of one machine, a phone beside it, each of
them closed and opened again, and a class of two processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import driver
import pytest
from classes import redis_address, redis_server
from driver import Visitor
from playwright.sync_api import Page, expect

from explorer.panels import lessons
from explorer.text.lesson import Item, Lesson

__all__ = ["redis_address", "redis_server"]  # pytest finds them here

SAID = re.compile("edits: none|Text: ")  # of a caption, which a lesson need not say on each step
HOSTILE = "<img src=x onerror=alert(1)> </script> “it”"
STEPS = (
    Item(
        "/?layer=1&head=5&token=9",
        "First",
        note=f"Slowly {HOSTILE}",
        question="Which word?",
        answer="The animal.",
        panel="attention.head",
    ),
    Item(
        "/architecture?tab=residual",
        f"Second {HOSTILE}",
        note="A sum.",
        question="What is added?",
        answer="What attention writes.",
        panel="residual.updates",
    ),
)
LESSON = Lesson("Two steps", STEPS, 20)
LIVE = "decoder-and-nepal"
PRESENTED = "html[data-headlight-presenter=on]"
WHOLE = """() => [...document.querySelectorAll(".column")].every((one) =>
  one.scrollHeight <= one.clientHeight + 1 && one.getBoundingClientRect().bottom <= innerHeight)"""
LONG_AGO = """() => sessionStorage.setItem("headlight speaker",
  JSON.stringify({ began: { title: "Two steps", at: Date.now() - 1e7 } }))"""
DRAWN = "one => one.complete && one.naturalWidth > 0"


@driver.browser_test
def test_the_speakers_window_is_in_step_and_the_wall_has_no_answer(visitor: Visitor) -> None:
    wall = presented(visitor)
    speaker = opened(wall)
    sees(speaker, 0)
    expect(speaker.locator(".where")).to_have_text("step 1 of 2")
    expect(speaker.locator(".clock .state")).to_contain_text("of 20:00")
    for width, height in ((1280, 720), (1000, 700)):
        speaker.set_viewport_size({"width": width, "height": height})
        parts = [
            each.bounding_box() for each in speaker.locator(".column").first.locator("> *").all()
        ]
        boxes = [(each["y"], each["y"] + each["height"]) for each in filter(None, parts)]
        assert len(boxes) > 1 and all(a[1] <= b[0] for a, b in zip(boxes, boxes[1:]))
        assert speaker.evaluate(WHOLE), "no line of an answer is cut"
    head = speaker.locator(".slide h2").inner_text()
    assert head == wall.locator(".board h1").inner_text(), "one and the same headline"
    picture = speaker.locator(".next img")
    picture.wait_for()
    assert picture.evaluate(DRAWN) and "panel/residual.updates.svg" in picture.get_attribute("src")
    speaker.keyboard.press("ArrowRight")
    sees(speaker, 1)
    expect(speaker.locator(".about", has_text="last step")).to_have_count(1)
    expect(wall.locator(".board h1")).to_contain_text("Second <img src=x onerror")
    speaker.keyboard.press("q")
    expect(wall.locator(".board .asked")).to_have_text("What is added?")
    expect(speaker.locator(".slide .bare")).to_have_text("What is added?")
    assert STEPS[1].answer not in wall.locator(".board").inner_text(), "the answer is the speaker's"
    speaker.get_by_role("button", name="Question").click()
    expect(wall.locator(".board .plate > svg")).to_have_count(1)
    wall.keyboard.press("b")
    expect(speaker.locator(".slide.dark")).to_have_count(1)
    wall.keyboard.press("b")
    wall.keyboard.press("ArrowLeft")
    sees(speaker, 0)
    speaker.set_viewport_size({"width": 1280, "height": 720})
    speaker.get_by_role("button", name="On a phone").click()
    speaker.locator(".qr").wait_for()
    assert speaker.evaluate(WHOLE), "the code of the phone is in sight"
    with speaker.expect_event("close"):
        later = opened(wall)
    sees(later, 0)


@driver.browser_test
def test_a_live_training_has_its_whole_list_on_the_wall_and_its_words_here(
    visitor: Visitor,
) -> None:
    at = next(n for n, each in enumerate(lessons.written()[LIVE]["item"]) if each["tab"] == "live")
    wall = visitor.page
    wall.goto(f"{visitor.server}/?lesson={LIVE}")
    wall.locator(".lesson_bar .dot").nth(at).click()
    expect(wall.locator(".lesson_bar .where")).to_have_text(f"{at + 1} / 18")
    present(wall)
    speaker = opened(wall)
    expect(speaker.locator("section p.says").first).to_contain_text("loss would be")
    expect(speaker.locator("p.note")).to_contain_text("You will see the loss fall")
    speaker.get_by_role("button", name="Start training").click()
    board, text = wall.locator(".board"), wall.locator(".board .plate > svg")
    expect(board.locator(".caption")).to_contain_text("from random weights")
    expect(text).to_contain_text("the list")
    n = int(re.findall(r"of the (\d+) tokens", board.locator("h1").inner_text())[0])
    drawn = text.text_content() or ""
    assert len(re.findall("[✓✗]", drawn)) == 2 * n, "every row, before and now"
    assert "rows …" not in drawn
    expect(speaker.locator(".slide img")).to_have_count(1)
    expect(speaker.locator(".slide h2")).to_contain_text(f"of the {n} tokens")
    speaker.get_by_role("button", name="Stop training").click()
    expect(speaker.get_by_role("button", name="Start training")).to_have_count(1)


@driver.browser_test
def test_the_clock_of_another_lesson_waits_until_it_is_presented(visitor: Visitor) -> None:
    wall = presented(visitor)
    speaker = opened(wall)
    sees(speaker, 0)
    wall.evaluate(LONG_AGO)
    wall.goto(f"{visitor.server}/?lesson=three-minutes")
    expect(speaker.locator("h1")).to_have_text("In three minutes")
    expect(speaker.locator(".clock .time")).to_have_text("0:00")
    expect(speaker.locator(".clock .state")).to_have_text("of 3:00, on time")
    present(wall)
    expect(speaker.locator(".clock .time")).not_to_have_text("0:00")


@driver.browser_test
def test_a_window_that_is_closed_and_opened_again_is_in_step(visitor: Visitor) -> None:
    wall = presented(visitor)
    speaker = opened(wall)
    sees(speaker, 0)
    speaker.close()
    wall.keyboard.press("ArrowRight")
    expect(wall.locator(".board h1")).to_contain_text("Second")
    speaker = opened(wall)
    sees(speaker, 1)
    wall.reload()  # the wall is gone for a while, and comes back with its page
    speaker.get_by_role("button", name="Present").click()
    wall.wait_for_selector(PRESENTED, state="attached")
    sees(speaker, 1)
    beside = visitor.context.new_page()  # another window on the wall, after this one is closed
    beside.goto(wall.url)
    beside.wait_for_selector(".lesson_bar .where")
    wall.goto(f"{visitor.server}/_stcore/health")
    expect(speaker.locator(".waits")).to_contain_text("is closed")
    with beside.expect_popup() as window:
        beside.get_by_role("button", name="Speaker’s window").click()
    speaker = window.value
    present(beside)
    sees(speaker, 1)
    speaker.keyboard.press("ArrowLeft")
    sees(speaker, 0)
    assert "lesson_step=1" in beside.url


@pytest.fixture
def two_processes(redis_address: str) -> Iterator[tuple[str, str]]:
    """The addresses of two processes of the app on one Redis."""
    first, second = (driver.serving(HEADLIGHT_REDIS=redis_address) for _ in range(2))
    yield next(first), next(second)
    for each in (first, second):
        next(each, None)


@driver.browser_test
def test_a_phone_beside_the_machine_is_in_step_over_two_processes(
    browser: object, two_processes: tuple[str, str]
) -> None:
    here, there = two_processes
    teacher = Visitor(browser, here)
    wall = presented(teacher)
    speaker = opened(wall)
    speaker.get_by_role("button", name="On a phone").click()
    code = speaker.locator(".qr").get_attribute("src") or ""
    link = parse_qs(urlsplit(code).query)["at"][0].replace(here, there)
    assert speaker.locator(".qr").evaluate("image => image.decode().then(() => true)")
    assert not wall.locator(".board .invite, .board img").count(), "no code on the wall"
    hand = Visitor(browser, there, **driver.PHONE)
    phone = hand.page
    phone.goto(link)
    sees(phone, 0)
    phone.get_by_role("button", name="Next").click()
    for each in (phone, speaker):
        sees(each, 1)
    student = Visitor(browser, there)
    student.join(link.partition("#")[2].partition(".")[0])
    student.page.wait_for_selector(".follow .line")
    phone.get_by_role("button", name="Vote").click()
    field = student.page.locator(".guess textarea")
    field.fill("its sum")
    field.press("Enter")
    for each in (phone, speaker):
        expect(each.locator(".choice .words")).to_have_text("its sum")
        expect(each.locator(".choice .count")).to_have_text("1")
    assert "its sum" not in wall.locator(".board").inner_text(), "not before the vote ends"
    assert STEPS[1].answer not in student.page.content() + wall.locator(".board").inner_text()
    phone.get_by_role("button", name="Show on the wall").click()
    expect(wall.locator(".board .choice .words")).to_have_text("its sum")
    phone.goto(f"{there}/_stcore/health")
    speaker.keyboard.press("r")
    expect(wall.locator(".board .asked p").first).to_have_text(STEPS[1].answer)
    speaker.keyboard.press("t")
    expect(speaker.locator(".voted")).to_have_count(0)
    speaker.keyboard.press("ArrowLeft")
    sees(speaker, 0)
    phone.goto(link)  # opened again: what was pressed before is not pressed once more
    sees(phone, 0)
    assert "lesson_step=1" in wall.url
    for one in (teacher, hand, student):
        one.leave()
        assert not one.wrong(), one.errors


def presented(visitor: Visitor) -> Page:
    """The window on the wall, which presents the first step."""
    page = visitor.page
    page.goto(f"{visitor.server}/?lesson={LESSON.word}&lesson_step=1&layer=1&head=5&token=9")
    page.wait_for_selector(f"{driver.HEAD}[data-token]")
    visitor.at_rest()
    return present(page)


def present(page: Page) -> Page:
    page.locator(".lesson_bar .where").click()
    page.keyboard.press("p")
    page.wait_for_selector(PRESENTED, state="attached")
    return page


def opened(wall: Page) -> Page:
    """The speaker's window, by one press."""
    with wall.expect_popup() as window:
        wall.keyboard.press("s")
    return window.value


def sees(speaker: Page, at: int) -> None:
    """The window shows note, question and answer of the step, as words, and the wall's picture."""
    item = STEPS[at]
    expect(speaker.locator(".note")).to_have_text(item.note)
    expect(speaker.locator(".question")).to_have_text(item.question)
    expect(speaker.locator(".answer")).to_have_text(item.answer)
    expect(speaker.locator(".slide h2")).to_contain_text(item.heading)
    expect(speaker.locator(".slide img")).to_have_count(1)
    assert speaker.locator(".slide img").evaluate("one => one.decode().then(() => true)")
    assert speaker.locator("img[onerror], script:not([src])").count() == 0


@driver.browser_test
def test_the_small_wall_has_the_answers_and_the_proof_of_a_step(visitor: Visitor) -> None:
    wall = visitor.page
    wall.goto(f"{visitor.server}/?lesson=lecture")
    wall.locator(".lesson_bar .dot").nth(14).click()
    expect(wall.locator(".lesson_bar .where")).to_have_text("15 / 18")
    present(wall)
    expect(wall.locator(".board .caption")).not_to_contain_text(SAID)
    heading = wall.locator(".lesson_bar h2").text_content() or ""
    expect(wall.locator(".board h1")).to_contain_text(heading)
    speaker = opened(wall)
    said = wall.locator(".lesson_bar p.says").first.text_content()
    expect(speaker.locator(".column section .says").first).to_have_text(said or "")
    for window, place in ((wall, ".board .aside"), (speaker, ".slide .aside")):
        expect(window.locator(f"{place} .choice")).to_have_count(4)
        expect(window.locator(f"{place} .choice.right")).to_have_count(0)
    wall.keyboard.press("r")
    # The proof has a headline and a caption of its own: they say what is taken out in it.
    out = re.search(r"Head \d+ of layer \d+", said or "")
    assert out, said
    for window, place in ((wall, ".board"), (speaker, ".slide")):
        expect(window.locator(f"{place} .caption")).to_contain_text(
            f"edits: {out[0].lower()} taken"
        )
        expect(window.locator(f"{place} :is(h1, h2)")).to_contain_text("changed most")
        expect(window.locator(f"{place} :is(h1, h2)")).not_to_contain_text(heading)
        row = window.locator(f"{place} .aside .choice.right")
        letter, words = (row.locator(f".{one}").bounding_box() for one in ("letter", "words"))
        assert letter and words and letter["x"] + letter["width"] <= words["x"], "one line"
    sizes = wall.locator(".board .plate text").evaluate_all(
        "all => all.map((one) => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert sizes and min(sizes) >= 20, "read from the last row"
    wall.keyboard.press("r")  # the question, and its own picture
    expect(wall.locator(".board .caption")).not_to_contain_text(SAID)
    expect(wall.locator(".board h1")).to_contain_text(heading)
