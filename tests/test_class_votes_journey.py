"""Votes of a class on the steps of a lesson in real browsers: what is guessed before the light is
on, the question of a step in the students' own words, and what is left of both a step further."""

from __future__ import annotations

import csv
import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import driver
import pytest
from driver import Visitor
from playwright.sync_api import Page, expect
from waiting import until

from explorer.panels import lessons
from explorer.panels.predictions import prediction_at
from models.contract.edits import HideToken
from models.runtime.run import Run

TEXT = "The animal didn't cross the street because it was too tired."
LESSON = lessons.on(Run("encoder", TEXT), "lecture")
ASKED = TEXT.replace("it", "▢")
WORDS, COUNTS = (f".board .choice .{name}" for name in ("words", "count"))


@pytest.fixture
def two(browser: object, server: str) -> Iterator[tuple[Page, Page]]:
    """A teacher's window at the first step of the lecture, and a student's that follows it."""
    teacher, student = Visitor(browser, server), Visitor(browser, server)
    wall, desk = teacher.page, student.page
    wall.goto(f"{server}/classroom")
    wall.get_by_role("button", name="Start a class").click()
    code = wall.locator(".how .code").inner_text()
    student.join(code)
    expect(desk.locator(".follow .line")).to_contain_text("you follow your teacher")
    wall.goto(f"{server}/?lesson=lecture")
    for page in (wall, desk):
        page.locator(".stage .choices button").first.wait_for()
        expect(page.locator(".stage .light")).to_have_text("Go on" if page is wall else "Send")
    expect(desk.locator(".follow .line")).to_contain_text("answer in the picture")
    expect(desk.locator(".follow .panel")).to_have_count(0)
    yield wall, desk
    for one in (teacher, student):
        one.leave()
        assert not one.wrong(), one.errors


@driver.browser_test
def test_a_lesson_that_comes_late_is_drawn_by_the_bar_that_is_there(
    browser: object, server: str
) -> None:
    """A student's page goes on to another place while the lesson of the class is on its way."""
    teacher, student = Visitor(browser, server), Visitor(browser, server)
    wall, desk, late = teacher.page, student.page, []
    wall.goto(f"{server}/classroom")
    wall.get_by_role("button", name="Start a class").click()
    student.join(wall.locator(".how .code").inner_text())
    expect(desk.locator(".follow .line")).to_contain_text("you follow your teacher")
    desk.route("**/class/lesson?*", lambda route: late.append(route))
    wall.goto(f"{server}/?lesson=lecture")
    end = time.monotonic() + 60
    while not late and time.monotonic() < end:
        desk.wait_for_timeout(50)
    wall.locator(".lesson_bar .dot").nth(1).click()
    desk.wait_for_url("**/learn?*lesson_step=2*")
    student.at_rest()
    desk.locator("[data-panel='recurrence.bottleneck'][data-token]").wait_for()
    late[0].continue_()
    expect(desk.locator(".lesson_bar .where")).to_have_text("2 / 18")
    for one in (teacher, student):
        one.leave()
        assert not one.wrong(), one.errors


@driver.browser_test
def test_guesses_of_a_class_are_tallied_and_a_vote_ends_with_its_step(
    two: tuple[Page, Page], tmp_path: Path
) -> None:
    wall, desk = two
    desk.locator(".stage input.guess").fill("pizza")
    desk.locator(".stage .light").click()
    expect(desk.locator(".stage .hint")).to_have_text("Your guess is kept. Your teacher goes on.")
    assert "lesson_step=2" not in desk.url and desk.locator(".stage").count(), "it waits"
    expect(desk.locator(".follow .line")).to_contain_text("your answer is “pizza”")
    assert desk.locator("input.guess").count() == 1, "one field, and one way to send"
    expect(wall.locator(".follow .votes")).to_have_text("1 of 1 have answered")
    present(wall)
    board = wall.locator(".board")
    expect(board.locator(".asked p").first).to_have_text(ASKED)
    assert len(board.locator(".offered span").all()) > 1, "the words that one may choose"
    assert "pizza" not in board.inner_text(), "not before the vote ends"
    wall.keyboard.press("v")
    expect(wall.locator(WORDS)).to_have_text("pizza")
    expect(wall.locator(COUNTS)).to_have_text("1")
    wall.keyboard.press("r")  # there is nothing to reveal yet
    expect(desk.locator(".follow .foot .state")).to_have_text("The vote has ended.")
    expect(desk.locator(".follow .foot button")).to_have_count(0)
    wall.keyboard.press("ArrowRight")
    expect(desk.locator(".lesson_bar .where")).to_have_text("2 / 18")
    expect(desk.locator(".follow .panel")).to_have_count(0)
    own_words(wall, desk)
    wall.keyboard.press("Escape")
    wall.locator(".lesson_bar .dot").nth(15).click()  # the answer
    for page, words in ((wall, "The class guessed “pizza” 1."), (desk, "Your guess “pizza” ")):
        expect(page.locator(".lesson_bar .says").last).to_contain_text(words)
    wall.locator(".lesson_bar .dot").nth(17).click()  # the worksheet
    way = desk.get_by_role("link", name="Open the worksheet")
    expect(way).to_have_attribute("href", re.compile(r"/worksheet/lecture\?text="))
    guesses_on_record(taken_home(wall, tmp_path))


def guesses_on_record(rows: list[dict[str, str]]) -> None:
    """Of the hidden word each guess has the model's probability and whether it is the model's own,
    and the address leads to the step of the lesson."""
    guesses = {row["answer"]: row for row in rows if row["asked"].endswith(ASKED)}
    pizza = guesses["pizza"]
    shares = {word: float(row["probability"]) for word, row in guesses.items()}
    run = Run("encoder", TEXT)
    at = run.recording().streams[0].tokens.index("it")
    answer = prediction_at(run.under((HideToken(at),)), at).answer[0]
    assert (pizza["vote 1"], pizza["right"]) == ("1", "0") and shares["pizza"] < 0.01
    assert guesses[answer]["right"] == "1" and shares[answer] == max(shares.values())
    assert sum(int(row["right"]) for row in guesses.values()) == 1
    query = parse_qs(urlsplit(pizza["address"]).query)
    assert (query["lesson"], query["lesson_step"]) == (["lecture"], ["1"])


def taken_home(wall: Page, folder: Path) -> list[dict[str, str]]:
    """The rows of the table that a teacher takes along."""
    wall.locator(".follow").get_by_role("button", name="Code").click()
    with wall.expect_download() as download:
        wall.get_by_role("button", name="CSV").first.click()
    download.value.save_as(folder / "class.csv")
    with (folder / "class.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@driver.browser_test
def test_who_presses_on_reads_no_answer_before_the_class_is_there(
    two: tuple[Page, Page],
) -> None:
    """A student walks ahead while the class is asked for the hidden word: up to the last step that
    covers it, and to the others with the teacher."""
    wall, desk = two
    (answer,) = [at for at, each in enumerate(LESSON.items) if "flow_beam=end" in each.address]
    said = "".join(getattr(LESSON.items[answer], name) for name in ("says", "number"))
    dots = desk.locator(".lesson_bar .dot")
    expect(dots).to_have_count(len(LESSON.items))
    for at in range(len(LESSON.items)):
        expect(dots.nth(at)).to_be_enabled(enabled=at < answer)
    dots.nth(answer - 1).click()
    expect(desk.locator(".lesson_bar .where")).to_have_text(f"{answer} / {len(LESSON.items)}")
    expect(desk.get_by_label("Next step")).to_be_disabled()
    desk.keyboard.press("ArrowRight")
    desk.wait_for_timeout(500)
    expect(desk.locator(".lesson_bar .where")).to_have_text(f"{answer} / {len(LESSON.items)}")
    assert said.strip() and said not in desk.locator("body").inner_text()
    wall.locator(".lesson_bar .dot").nth(answer).click()
    expect(dots.last).to_be_enabled()
    dots.nth(answer).click()
    expect(desk.locator(".lesson_bar .says").first).to_contain_text(said)


@driver.browser_test
def test_a_question_is_of_its_lesson_and_its_step(two: tuple[Page, Page]) -> None:
    """Two lessons ask the same words of one sentence, and a third asks none of them: each begins
    with its own question, which a student answers in the picture."""
    wall, desk = two
    panel, offered = desk.locator(".follow .panel"), desk.locator(".stage .choices button")
    votes = wall.locator(".follow .votes")
    room = wall.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--class-bar')"
    )
    assert float(room.removesuffix("px")) >= wall.locator(".follow .line").bounding_box()["height"]
    offered.first.click()
    expect(votes).to_have_text("1 of 1 have answered")
    expect(desk.locator(".stage .gap")).to_have_text(offered.first.inner_text())
    for title in ("In three minutes", "Attention"):
        lesson(wall, title)
        expect(desk.locator(".lesson_bar .name")).to_have_text(title)
        expect(votes).to_have_text("0 of 1 have answered")
        expect(offered.first).to_have_attribute("aria-pressed", "false")
        offered.last.click()
        expect(votes).to_have_text("1 of 1 have answered")
        expect(offered.last).to_have_attribute("aria-pressed", "true")
    lesson(wall, "First attention")
    expect(desk.locator(".lesson_bar .name")).to_have_text("First attention")
    for each in (panel, wall.locator(".follow .panel"), votes):
        expect(each).to_have_count(0)


@driver.browser_test
def test_the_field_of_a_question_has_no_answer_to_the_one_before(two: tuple[Page, Page]) -> None:
    wall, desk = two
    field = desk.locator(".follow .guess textarea")
    desk.locator(".stage input.guess").fill("street")
    wall.locator(".lesson_bar .dot").nth(1).click()
    expect(desk.locator(".lesson_bar .where")).to_have_text("2 / 18")
    expect(field).to_have_count(0)
    present(wall)
    wall.keyboard.press("v")
    expect(field).to_have_value("")
    field.fill("A product of many factors below one.")
    wall.keyboard.press("t")
    expect(field).to_have_count(0)
    wall.keyboard.press("ArrowRight")
    expect(desk.locator(".lesson_bar .where")).to_have_text("3 / 18")
    wall.keyboard.press("v")
    expect(field).to_have_value("")


# Of each figure and each line of the bar its width, and how much of that is under the question.
UNDER = """() => {
  const all = [...document.querySelectorAll("*")].filter((one) => one.shadowRoot);
  const found = (what) => all.flatMap((one) => [...one.shadowRoot.querySelectorAll(what)]);
  const [panel, line] = [".follow .panel", ".follow .line"].map(
    (one) => found(one)[0].getBoundingClientRect());
  return found(".panel[data-panel] svg, .panel[data-panel] h2, .lesson_bar p, .lesson_bar h2")
    .map((one) => one.getBoundingClientRect()).filter(({ width }) => width)
    .map(({ right, left, width }) => [width, Math.max(0,
      Math.min(right, panel.right) - Math.max(left, panel.left),
      Math.min(right, line.right) - Math.max(left, line.left))]); }"""


@driver.browser_test
def test_a_question_has_room_of_its_own_beside_the_picture(two: tuple[Page, Page]) -> None:
    wall, desk = two
    at = next(n for n, each in enumerate(LESSON.items) if each.panel == "softmax.combination")
    wall.locator(".lesson_bar .dot").nth(at).click()
    expect(desk.locator(".lesson_bar .where")).to_have_text(f"{at + 1} / 18")
    desk.locator("[data-panel='softmax.combination'] svg").first.wait_for()
    present(wall)
    wall.keyboard.press("v")
    panel = desk.locator(".follow .panel")
    expect(panel.locator("h2")).to_have_text(LESSON.items[at].question)
    for width, height in ((1440, 900), (1280, 720)):
        desk.set_viewport_size({"width": width, "height": height})
        until(lambda: (seen := desk.evaluate(UNDER)) and not any(under for _, under in seen))
        assert max(wide for wide, _ in desk.evaluate(UNDER)) > width / 2, "large, and not squeezed"
        box = panel.bounding_box()
        assert box and box["y"] + box["height"] < height and box["x"] + box["width"] <= width
    desk.set_viewport_size({"width": 390, "height": 844})
    main = desk.locator("[data-testid=stMain]")
    until(lambda: main.evaluate("one => one.clientWidth") == 390)
    box = panel.bounding_box()
    assert box and box["width"] == 390 and box["y"] > 422, "at the foot of a phone"
    desk.set_viewport_size({"width": 1440, "height": 900})
    wall.keyboard.press("t")
    expect(panel).to_have_count(0)
    until(lambda: main.evaluate("one => one.clientWidth") > 1400)


# What the wall has shown, [headline, picture], from now on; and three presses of an arrow, after
# each of which a run of the page before writes its own address, as on a busy server.
SHOWN = """() => { globalThis.shown = []; const note = () => {
  const { head, svg } = globalThis.headlight.slide || {};
  if (svg) globalThis.shown.push([head, svg]); };
  note(); addEventListener("headlight", note); }"""
FAST = """() => { for (let n = 0; n < 3; n++) {
  const before = location.href;
  dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, composed: true }));
  history.replaceState(history.state, "", before); }
  dispatchEvent(new KeyboardEvent("keydown", { key: "v", bubbles: true, composed: true })); }"""


@driver.browser_test
def test_the_last_of_fast_steps_wins_and_a_vote_on_it_is_kept(two: tuple[Page, Page]) -> None:
    wall, desk = two
    wall.locator(".lesson_bar .dot").nth(1).click()
    expect(desk.locator(".lesson_bar .where")).to_have_text("2 / 18")
    present(wall)
    expect(wall.locator(".board h1")).to_contain_text(LESSON.items[1].heading)
    wall.evaluate(SHOWN)
    wall.evaluate(FAST)
    expect(desk.locator(".lesson_bar .where")).to_have_text("5 / 18")
    expect(desk.locator(".follow .panel h2")).to_have_text(LESSON.items[4].question)
    expect(wall.locator(".board .asked")).to_have_text(LESSON.items[4].question)
    assert "lesson_step=5" in wall.url
    wall.keyboard.press("t")
    expect(wall.locator(".board h1")).to_contain_text(LESSON.items[4].heading)
    expect(wall.locator(".board .plate > svg")).to_have_count(1)
    shown = wall.evaluate("globalThis.shown")
    of_last = {svg for head, svg in shown if LESSON.items[4].heading in head}
    before = {svg for head, svg in shown if LESSON.items[1].heading in head}
    assert of_last and before and not of_last & before, "no title beside the picture of another"


@driver.browser_test
def test_a_struck_word_is_on_no_wall_and_no_students_screen(
    two: tuple[Page, Page], tmp_path: Path
) -> None:
    wall, desk = two
    desk.locator(".stage input.guess").fill("Rudeword")
    desk.locator(".stage .light").click()
    expect(wall.locator(".follow .votes")).to_have_text("1 of 1 have answered")
    with wall.expect_popup() as window:
        wall.get_by_role("button", name="Speaker’s window").click()
    speaker, strike = window.value, "Strike “Rudeword”: wall and students no longer show it"
    presses = speaker.locator(".class .presses").bounding_box()
    answers = speaker.locator(".class .choices").bounding_box()
    assert presses and answers and presses["y"] + presses["height"] <= answers["y"], "stay in sight"
    speaker.get_by_role("button", name=strike).click()
    expect(speaker.locator(".class .choice.struck .words")).to_have_text("Rudeword")
    present(wall)
    wall.keyboard.press("v")
    expect(wall.locator(".board .caption")).to_have_text("1 answer")
    expect(desk.locator(".follow .foot .state")).to_have_text("The vote has ended.")
    seen = wall.locator(".board").inner_text() + desk.locator(".follow").inner_text()
    assert "Rudeword" not in seen
    speaker.get_by_role("button", name="Show “Rudeword” again").click()
    expect(wall.locator(WORDS)).to_have_text("Rudeword")
    expect(desk.locator(".follow .choice .words")).to_have_text("Rudeword")
    expect(speaker.locator(".slide .choice .words")).to_have_text("Rudeword")
    wall.locator(".board .choice").hover()
    wall.get_by_role("button", name=strike).click()  # on the wall itself
    for page in (
        wall.locator(WORDS),
        desk.locator(".follow .choice"),
        speaker.locator(".slide .choice"),
    ):
        expect(page).to_have_count(0)
    wall.keyboard.press("Escape")
    rows = taken_home(wall, tmp_path)
    assert [(row["answer"], row["struck"]) for row in rows] == [("Rudeword", "1")]


def lesson(page: Page, title: str) -> None:
    """Begin a lesson by its card."""
    page.get_by_role("link", name="Learn", exact=True).first.click()
    page.locator(".cards").get_by_text(title, exact=True).first.click()
    expect(page.locator(".lesson_bar .name")).to_have_text(title)


def own_words(wall: Page, desk: Page) -> None:
    """The question of the second step is answered in a sentence and is gone with the step."""
    question, answer = LESSON.items[1].question, LESSON.items[1].answer
    reason = "Every factor is below one, and the product of many of them is nearly nothing."
    wall.keyboard.press("v")
    expect(wall.locator(".board .asked")).to_have_text(question)
    field = desk.locator(".guess textarea")
    field.fill(reason)
    field.press("Enter")
    expect(desk.locator(".foot .state")).to_have_text("You may still change it.")
    wall.keyboard.press("v")
    expect(wall.locator(WORDS)).to_have_text(reason)
    assert answer not in wall.locator(".board").inner_text() + desk.locator(".follow").inner_text()
    wall.keyboard.press("r")
    shown = wall.locator(".board .asked p").first
    expect(shown).to_have_text(answer)
    assert shown.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), "the whole of it"
    wall.keyboard.press("v")  # asked once more, and left open
    expect(desk.locator(".guess textarea")).to_have_count(1)
    wall.keyboard.press("t")
    expect(desk.locator(".guess textarea")).to_have_count(0)
    expect(wall.locator(".board .asked")).to_have_count(0)
    wall.keyboard.press("v")
    expect(desk.locator(".guess textarea")).to_have_count(1)
    wall.keyboard.press("Escape")
    wall.locator(".lesson_bar .dot").nth(2).click()
    expect(desk.locator(".lesson_bar .where")).to_have_text("3 / 18")
    expect(desk.locator(".follow .panel")).to_have_count(0)
    assert not desk.get_by_text("Done when").count(), "what is for who speaks"


def present(page: Page) -> None:
    page.locator(".lesson_bar .where").click()
    page.keyboard.press("p")
    page.wait_for_selector("html[data-headlight-presenter=on]", state="attached")
