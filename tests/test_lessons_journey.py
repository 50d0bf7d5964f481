"""Lessons in a real browser: a stranger walks the first one, a teacher makes one and keeps it, a
phone, and a class that follows."""

from __future__ import annotations

import gzip
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from driver import MARKS, Visitor
from playwright.sync_api import expect
from test_class_journey import leading

from explorer.app.state import url_state
from explorer.panels import lessons, worksheet
from explorer.text import lesson as lesson_text
from explorer.text.lesson import Item, Lesson
from models.example_texts import DEFAULT_TEXT, OPENING_TEXT
from models.runtime.run import Run

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = MARKS
LAPTOP = {"width": 1280, "height": 720}
# True where the formulas and figures of a panel begin below the bar of the lesson, in sight.
IN_SIGHT = """panel => {
  const box = (what) => { for (const each of document.querySelectorAll("*")) {
    const found = each.shadowRoot?.querySelector(what);
    if (found) return found.getBoundingClientRect(); } };
  const [bar, one] = [box(".lesson_bar"), box(`[data-panel="${panel}"] :is(.formulas, .figures)`)];
  return Boolean(bar && one) && bar.top >= 0 && one.top >= bar.bottom - 1
    && one.top < 0.6 * innerHeight; }"""


def at_step(visitor: Visitor, at: int, n: int) -> None:
    visitor.page.locator(".lesson_bar .where").filter(has_text=f"{at} / {n}").wait_for()


def test_a_stranger_walks_the_first_lesson_by_the_arrow_key(visitor: Visitor) -> None:
    steps = lessons.on(Run("encoder", OPENING_TEXT), "three-minutes").items
    page = visitor.page
    page.set_viewport_size(LAPTOP)
    page.goto(visitor.server)
    page.get_by_role("button", name="New here? Tour, 3 min").click()
    for at, step in enumerate(steps, 1):
        at_step(visitor, at, len(steps))
        assert page.locator(".lesson_bar h2").inner_text() == step.heading
        assert step.number in page.locator(".lesson_bar .says").inner_text()
        visitor.until(IN_SIGHT, step.panel)
        page.keyboard.press("ArrowRight")
    at_step(visitor, len(steps), len(steps))
    assert len(steps) == 8
    assert page.get_by_role("button", name="Next step").is_disabled()
    page.locator(".lesson_bar .dot").first.click()
    at_step(visitor, 1, 8)
    page.keyboard.press("ArrowRight")  # from the dot that has the focus
    at_step(visitor, 2, 8)
    page.go_back()
    at_step(visitor, 1, 8)
    page.get_by_role("button", name="Close the lesson").click()
    page.locator(".lesson_bar").wait_for(state="detached")


def test_an_arrow_key_is_a_step_where_flow_was_there_first(visitor: Visitor) -> None:
    late: list = []
    visitor.hold("lesson_bar", late)
    page = visitor.page
    page.goto(
        f"{visitor.server}/architecture?lesson=three-minutes&lesson_step=1&layer=1&flow_beam=end"
    )
    page.wait_for_selector("[data-panel='architecture.flow'] .flow-bar")
    while not late:
        page.wait_for_timeout(50)
    for route in late:
        route.continue_()
    at_step(visitor, 1, 8)
    page.unroute_all()
    page.keyboard.press("ArrowRight")
    at_step(visitor, 2, 8)
    page.keyboard.press("ArrowRight")
    at_step(visitor, 3, 8)
    page.locator("[data-panel='architecture.flow'] .flow-bar .play").click()
    page.keyboard.press("ArrowRight")  # from a button of the picture, which has the focus
    at_step(visitor, 4, 8)


def add_to_lesson(visitor: Visitor, n: int) -> None:
    visitor.page.get_by_role("button", name="Share").click()
    visitor.page.locator(".st-key-add-to-lesson button").click()
    visitor.page.get_by_text(f"Step {n} of your lesson").wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.at_rest()


def lesson_of(link: Locator) -> Lesson:
    """The lesson that a link begins, whole in its address."""
    word = parse_qs(urlsplit(link.get_attribute("href") or "").query)["lesson"][0]
    return lesson_text.from_word(word)


def test_a_teacher_makes_a_lesson_and_opens_it_again(visitor: Visitor, browser: object) -> None:
    page = visitor.open("?layer=1&head=5&token=9").page
    add_to_lesson(visitor, 1)
    visitor.go("Architecture", "Residual stream")
    page.wait_for_selector("[data-panel='residual.updates'][data-token]")
    add_to_lesson(visitor, 2)
    visitor.go("Learn")
    page.locator(".st-key-arrow_downward-0 button").click()
    first = page.locator("summary", has_text=re.compile(r"1\. .*layer 3, FFN"))
    first.wait_for()
    page.locator(".order .how").wait_for()
    for at in (0, 1):  # there and back
        visitor.at_rest()
        page.locator(f".st-key-item-{at} summary").hover()
        page.mouse.down()
        for _ in range(3):  # a browser may tell of a move over a place at the second one
            page.locator(f".st-key-item-{1 - at} summary").hover()
        page.mouse.up()
        (
            first if at else page.locator("summary", has_text=re.compile(r"2\. .*layer 3, FFN"))
        ).wait_for()
    first.click()
    page.get_by_label("Note for the speaker").first.fill("Slowly here.")
    page.get_by_label("Question").first.fill("Why?")
    page.get_by_label("Answer").first.fill("It is a sum.")
    page.get_by_label("Question").first.focus()
    start = page.get_by_role("link", name="Start", exact=True).last
    while lesson_of(start).items[0].answer != "It is a sum.":  # as the server has it
        page.wait_for_timeout(50)
    (seen, second) = lesson_of(page.get_by_role("link", name="As students see it")).items
    assert not seen.note and not seen.question and not seen.answer and second.heading
    assert seen.address == lesson_of(start).items[0].address, "the same step without what is told"
    with page.expect_download() as waiting:
        page.locator(".st-key-save-lesson button").click()
    file = waiting.value.path()
    kept = json.loads(file.read_text("utf-8"))
    assert [each["panel"] for each in kept["items"]] == ["residual.updates", "attention.head"]
    assert kept["items"][0]["note"] == "Slowly here."
    page.get_by_role("link", name="Start", exact=True).last.click()
    at_step(visitor, 1, 2)
    page.locator(".lesson_bar summary", has_text="Why?").click()
    page.locator(".lesson_bar details p", has_text="It is a sum.").wait_for()
    visitor.until(IN_SIGHT, "residual.updates")
    page.keyboard.press("ArrowRight")
    at_step(visitor, 2, 2)
    page.wait_for_url("**head=5**")
    link = page.url

    other = Visitor(browser, visitor.server)
    other.page.goto(link)  # the link holds the lesson whole
    at_step(other, 2, 2)
    other.page.goto(f"{visitor.server}/learn")
    other.page.get_by_role("link", name="My own lesson").click()
    other.page.get_by_role("heading", name="Your own lesson").wait_for()
    other.at_rest()
    sent = {"name": "lesson.json", "mimeType": "application/json", "buffer": file.read_bytes()}
    other.page.locator(".load input[type=file]").set_input_files(sent)
    other.page.get_by_text(
        "has 2 steps on Architecture: Residual stream, Attention: Heads"
    ).wait_for()
    assert other.page.locator("summary").count() == 0, "it is told before it is taken"
    other.page.get_by_role("button", name="Open it").click()
    other.page.locator("summary", has_text=re.compile(r"2\. ")).wait_for()
    other.page.get_by_role("link", name="Start", exact=True).last.click()
    at_step(other, 1, 2)
    other.page.locator(".lesson_bar summary", has_text="Note for the speaker").wait_for()
    other.leave()
    assert not other.wrong(), other.errors


def test_own_lessons_outlive_their_window(visitor: Visitor) -> None:
    page = visitor.open("?layer=1&head=5&token=9").page
    add_to_lesson(visitor, 1)
    visitor.until("() => Object.keys(localStorage).some((key) => /lesson /.test(key))")
    page.reload()  # another visit, which knows of no lesson until the browser tells
    visitor.drawn()
    add_to_lesson(visitor, 2)
    page.close()
    page = visitor.page = visitor.context.new_page()
    page.goto(f"{visitor.server}/learn")
    page.locator("summary", has_text=re.compile(r"2\. ")).wait_for()
    page.get_by_label("Title").fill("The first one")
    page.get_by_label("Title").press("Enter")
    visitor.until(HAS, ["The first one"])
    visitor.at_rest()
    page.get_by_role("button", name="New lesson").click()
    page.locator("summary").first.wait_for(state="detached")
    page.get_by_label("Add a page by its address").fill(f"{visitor.server}/predict?model=encoder")
    page.get_by_label("Add a page by its address").press("Enter")
    page.locator("summary", has_text=re.compile(r"1\. ")).wait_for()
    visitor.until(HAS, ["The first one", "/predict?model=encoder"])
    page.reload()
    page.locator("summary", has_text=re.compile(r"1\. ")).wait_for()
    chosen = page.get_by_role("combobox", name=re.compile("Lesson"))
    chosen.scroll_into_view_if_needed()  # which closes what is open
    visitor.at_rest()
    chosen.click()
    page.get_by_role("option", name="The first one").click()
    page.locator("summary", has_text=re.compile(r"2\. ")).wait_for()
    visitor.at_rest()
    page.get_by_role("button", name="Delete this lesson").click()
    visitor.until("() => !JSON.stringify(localStorage).includes('The first one')")


HAS = "all => all.every((one) => JSON.stringify(localStorage).includes(one))"


def test_a_lesson_on_a_phone(phone: Visitor) -> None:
    page = phone.page
    page.goto(
        f"{phone.server}/learn?lesson=three-minutes&text=Ram+pushed+Hari+because+he+was+angry."
    )
    at_step(phone, 1, 8)
    phone.until(IN_SIGHT, "architecture.flow")
    for at in (2, 3):
        page.get_by_role("button", name="Next step").tap()
        at_step(phone, at, 8)
    phone.until(IN_SIGHT, "architecture.flow")
    bar = page.locator(".lesson_bar").bounding_box()
    assert bar["height"] < 0.4 * page.viewport_size["height"], "the picture has its room"
    page.locator(".lesson_bar summary").first.tap()
    page.locator(".lesson_bar details p").first.wait_for()


def test_a_class_follows_a_lesson_without_its_notes(browser: object, server: str) -> None:
    teacher, student = leading(browser, server), Visitor(browser, server)
    code = json.loads(teacher.page.evaluate("sessionStorage['headlight class']"))["code"]
    shown: list[bytes] = []
    teacher.page.on(
        "request",
        lambda sent: (
            "/class/show" in sent.url and shown.append(gzip.decompress(sent.post_data_buffer))
        ),
    )
    got: list[bytes] = []
    student.page.on("websocket", lambda line: line.on("framereceived", lambda one: got.append(one)))
    student.page.on("response", lambda one: "/class/lesson" in one.url and got.append(one.body()))
    teacher.page.goto(f"{server}/learn?lesson=first-attention")
    at_step(teacher, 1, 10)
    student.join(code)
    student.page.wait_for_selector(".follow .line:has-text('you follow your teacher')")
    at_step(student, 1, 10)
    teacher.page.keyboard.press("ArrowRight")
    for one in (teacher, student):
        at_step(one, 2, 10)
    heading = student.page.locator(".lesson_bar h2").inner_text()
    assert heading == teacher.page.locator(".lesson_bar h2").inner_text()
    assert teacher.page.locator(".lesson_bar summary").count() == 2
    assert student.page.locator(".lesson_bar summary").count() == 0, "neither note nor answer"
    teacher.page.wait_for_timeout(1500)  # in which what is shown is sent
    own = lessons.on(Run("encoder", DEFAULT_TEXT), "first-attention").items[1]
    assert shown and not any(own.note.encode() in each for each in shown)
    all_got = b"".join(one if isinstance(one, bytes) else str(one).encode() for one in got)
    assert own.heading.encode() in all_got
    assert own.note.encode() not in all_got and own.answer.encode() not in all_got
    for one in (teacher, student):
        one.leave()
        assert not one.wrong(), one.errors


def test_a_class_follows_a_lesson_that_no_address_holds(browser: object, server: str) -> None:
    teacher, student = leading(browser, server), Visitor(browser, server)
    code = json.loads(teacher.page.evaluate("sessionStorage['headlight class']"))["code"]
    words = [str(random.Random(at).getrandbits(8000)) for at in range(8)]
    items = tuple(
        Item(f"/?text=Hi+there&layer={at % 2}", heading=f"Step {at}", says=each, note="Mine.")
        for at, each in enumerate(words)
    )
    made = Lesson("Long", items)
    assert not url_state.fits_address(made.word)
    teacher.page.goto(f"{server}/learn")
    teacher.page.get_by_role("link", name="My own lesson").click()
    teacher.page.get_by_role("heading", name="Your own lesson").wait_for()
    teacher.at_rest()
    sent = {"name": "a.json", "mimeType": "application/json", "buffer": made.json.encode()}
    teacher.page.locator(".load input[type=file]").set_input_files(sent)
    teacher.page.get_by_role("button", name="Open it").click()
    teacher.page.locator("summary", has_text=re.compile(r"2\. ")).wait_for()
    teacher.page.get_by_role("link", name="Start", exact=True).last.click()
    at_step(teacher, 1, 8)
    student.join(code)
    at_step(student, 1, 8)
    teacher.page.keyboard.press("ArrowRight")
    for one in (teacher, student):
        at_step(one, 2, 8)
        assert one.page.locator(".lesson_bar .says").inner_text() == words[1]
    assert student.page.locator(".lesson_bar summary").count() == 0
    for one in (teacher, student):
        one.leave()
        assert not one.wrong(), one.errors


@pytest.mark.parametrize("name", ["three-minutes", "first-attention", "lecture"])
def test_a_worksheet_prints_whole_with_its_answers_on_a_page_of_their_own(
    name: str, browser: object, tmp_path: Path
) -> None:
    """No row is cut, nothing to press is printed, a step's words, picture and question are on one
    page, and a dark screen prints on white."""
    pdfium = pytest.importorskip("pypdfium2")
    made = lessons.on(Run("encoder", DEFAULT_TEXT), name)
    file = tmp_path / "sheet.html"
    file.write_bytes(worksheet.document(made).encode())
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    page.goto(file.as_uri())
    page.wait_for_selector("main[data-drawn]")
    fits = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    pdf = pdfium.PdfDocument(page.pdf(format="A4", print_background=True))
    context.close()
    pages = [each.get_textpage().get_text_range() for each in pdf]
    image = pdf[0].render(scale=0.5).to_numpy()
    pdf.close()
    assert fits and image[2:9, 2:9].min() > 240, "the paper is white"
    text = " ".join(" ".join(pages).split())
    assert "Name:" in pages[0] and not {"Dark", "Play", "Next"} & {*text.split()}
    answers = [at for at, each in enumerate(pages) if each.startswith("Answers")]
    assert len(answers) == 1
    before = " ".join(" ".join(pages[: answers[0]]).split())
    after = " ".join(" ".join(pages[answers[0] :]).split())
    for at, item in enumerate(made.items, 1):
        heading = f"{at}. {item.question if item.link else item.heading}"
        assert before.count(heading) == 1, heading
        assert not item.answer or (item.answer in after and item.answer not in before)
        (own,) = [" ".join(each.split()) for each in pages if heading in " ".join(each.split())]
        asked = [item.question] if not item.choices else [f"D: {item.choices[3]}"]
        assert all(each in own.partition(heading)[2] for each in asked if not item.link), heading
        assert not item.choices or f"{at}. {'ABCD'[int(item.right)]}: {item.answer}" in after
    assert not re.search(r"\d of \d+ (rows|columns|tokens|numbers)", before), "all is drawn"
    assert not re.search(r"\bmenu\b|\bpress\b|uncovers|▶", before), "a sheet has no widgets"
    assert len(pages) <= (len(made.items) + 1) // 2 + 4, "two steps share a page where they can"
    for each in pages:  # a heading is never the last thing on a page
        last = each.strip().splitlines()[-1]
        assert not any(last.endswith(item.heading) for item in made.items)


def test_own_words_and_formula_of_a_step_are_on_the_wall(visitor: Visitor) -> None:
    page = visitor.open("?layer=1&head=5&token=9").page
    add_to_lesson(visitor, 1)
    visitor.go("Learn")
    name = page.get_by_label("Title", exact=True)
    name.fill("Heads & tails")
    name.press("Enter")
    page.locator(".st-key-item-0 summary").click()
    fields = {"Heading": "Who is meant?", "What everybody reads": "It is the animal, says head 5."}
    for label, words in {**fields, "Formula": "max(0,xW₁)"}.items():
        field = page.get_by_label(label, exact=label != "Formula").first
        field.fill(words)
        field.press("Control+Enter" if label == "What everybody reads" else "Enter")
        visitor.at_rest()
        assert page.get_by_label("Question", exact=True).is_visible(), "the form stays open"
    page.locator(".st-key-item-0 summary", has_text="1. Who is meant?").wait_for()
    with page.expect_download() as file:
        page.get_by_role("button", name="Save as a file").click()
    assert file.value.suggested_filename == "heads-tails.headlight.json"
    page.get_by_role("link", name="Start", exact=True).click()
    page.wait_for_selector("[data-panel='attention.head'][data-token]")
    visitor.at_rest()
    page.locator(".lesson_bar .where").click()
    page.keyboard.press("p")
    board = page.locator(".board")
    board.locator(".plate > svg").wait_for()
    assert board.locator("h1").inner_text() == "Who is meant?"
    assert board.locator(".caption").inner_text() == fields["What everybody reads"]
    assert board.locator(".formulas msub mi").first.text_content() == "W"
    page.keyboard.press("Escape")
    visitor.go("Learn")
    page.locator(".st-key-item-0 summary").click()
    visitor.choose("Picture", "Heads", exact=False)
    visitor.at_rest()
    page.get_by_role("link", name="Start", exact=True).click()
    page.wait_for_selector("[data-panel='attention.heads'][data-token]")
    page.locator(".lesson_bar .where").click()
    page.keyboard.press("p")
    board.locator(".plate > svg").wait_for()
    visitor.until("() => globalThis.headlight.steps.panel === 'attention.heads'")


def test_a_copy_of_a_lesson_gets_a_step_and_a_picture_of_another_tab(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/learn")
    page.get_by_role("link", name="My own lesson").click()
    visitor.choose("Begin with a copy", "Attention")
    page.locator(".st-key-item-17 summary").wait_for()
    item = lessons.on(Run("encoder", OPENING_TEXT), "lecture").items[3]
    of_app = lesson_text.parts(item.address)
    page.locator(".st-key-insert-2 button").click()
    page.locator(".st-key-item-3 summary", has_text="4. In your own words").click()
    page.locator(".st-key-item-3").get_by_label("What everybody reads").fill("We stop here.")
    page.locator(".st-key-item-3").get_by_label("Question", exact=True).focus()
    page.locator(".st-key-item-4 summary", has_text="5. Positions as waves").click()
    of_step = page.locator(".st-key-item-4")
    for menu, option, picture in (
        ("Page", "Architecture: Feed-forward", "Units"),
        ("Picture", "Network", "Network"),
    ):
        visitor.choose(menu, option, of_step)
        expect(of_step.get_by_role("combobox", name="Picture")).to_have_value(picture)
        visitor.at_rest()
    for _ in range(20):  # the file has what the last run of the page knew
        visitor.at_rest()
        with page.expect_download() as waiting:
            page.locator(".st-key-save-lesson button").click()
        made = lesson_text.from_json(waiting.value.path().read_text("utf-8"))
        if made.items[4].panel == "feed_forward.network":
            break
    assert len(made.items) == 19 and made.items[3].says == "We stop here."
    tab, query = lesson_text.parts(made.items[4].address)
    assert (tab, made.items[4].panel) == ("feedforward", "feed_forward.network")
    assert query["text"] == of_app[1]["text"] and query["model"] == "encoder"
    page.get_by_role("link", name="Start", exact=True).last.click()
    at_step(visitor, 1, 19)
    page.locator(".lesson_bar .dot").nth(4).click()
    page.wait_for_selector("[data-panel='feed_forward.network'][data-token]")
    at_step(visitor, 5, 19)


HOSTILE = "<img src=x onerror=alert(1)> **bold**"
CHOICES = (HOSTILE, "to the waiter", "to the soup")


def test_a_class_votes_on_the_answers_of_an_own_step_from_another_machine(
    visitor: Visitor, browser: object, tmp_path: Path
) -> None:
    """They are written and one is said to be right; a reload, a file and another browser have them;
    a class chooses, and what is right stands on wall and phone."""
    page = visitor.open("?layer=1&head=5&token=9").page
    add_to_lesson(visitor, 1)
    visitor.go("Learn")
    page.locator(".st-key-item-0 summary").click()
    page.get_by_label("Question", exact=True).fill("What does “it” attend to?")
    page.get_by_label("Answer", exact=True).fill("Read the thick line.")
    options = page.get_by_label("Choices for a vote")
    options.fill("only one")
    options.press("Control+Enter")
    page.get_by_text("A class chooses from 2 to 4 answers").wait_for()
    options.fill("\n".join(CHOICES))
    options.press("Control+Enter")
    visitor.choose("The right one", "C. to the soup", exact=False)
    visitor.until(HAS, ['right\\\\\\": \\\\\\"2'])
    page.reload()
    page.locator(".st-key-item-0 summary").click()
    page.get_by_role("combobox", name=re.compile("The right one")).wait_for()
    assert page.get_by_label("Choices for a vote").input_value() == "\n".join(CHOICES)
    visitor.at_rest()
    with page.expect_download() as waiting:
        page.locator(".st-key-save-lesson button").click()
    file = waiting.value.path()
    assert lesson_text.from_json(file.read_text("utf-8")).items[0].choices == CHOICES

    teacher, student = leading(browser, visitor.server), Visitor(browser, visitor.server)
    wall, desk = teacher.page, student.page
    code = json.loads(wall.evaluate("sessionStorage['headlight class']"))["code"]
    wall.goto(f"{visitor.server}/learn")
    wall.get_by_role("link", name="My own lesson").click()
    wall.get_by_role("heading", name="Your own lesson").wait_for()
    teacher.at_rest()
    sent = {"name": "a.json", "mimeType": "application/json", "buffer": file.read_bytes()}
    wall.locator(".load input[type=file]").set_input_files(sent)
    wall.get_by_role("button", name="Open it").click()
    wall.locator("summary", has_text=re.compile(r"1\. ")).wait_for()
    teacher.at_rest()
    wall.get_by_role("link", name="Start", exact=True).last.click()
    at_step(teacher, 1, 1)
    student.join(code)
    at_step(student, 1, 1)
    wall.locator(".lesson_bar .where").click()
    wall.keyboard.press("p")
    wall.locator(".board .aside .choice").nth(2).wait_for()
    wall.keyboard.press("v")
    desk.locator(".follow .panel .choice").nth(2).wait_for()
    assert tuple(desk.locator(".follow .choice .words").all_inner_texts()) == CHOICES
    assert desk.locator(".follow .choice.right").count() == 0
    desk.locator(".follow .choice").nth(2).press("Enter")
    desk.locator(".follow .choice[aria-pressed=true]").wait_for()
    wall.keyboard.press("r")
    for one in (wall.locator(".board .aside"), desk.locator(".follow")):
        one.locator(".choice.right .words", has_text="to the soup").wait_for()
        assert one.locator(".choice .words").first.inner_text() == HOSTILE
        assert one.locator(".choice.right .count").inner_text() == "1"
    for one in (teacher, student):
        assert one.page.locator("img[src=x]").count() == 0
        one.leave()
        assert not one.wrong(), one.errors
