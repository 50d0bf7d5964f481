"""A class in real browsers: one teacher and three students, of whom one is on a phone, and a window
that moves faster than what it sends."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx2
import pytest
from classes import crowd
from driver import HEAD, MARKS, READS, Visitor
from playwright.sync_api import Request, Route

pytestmark = MARKS
BOARD, FRAME = ".shown", ".shown iframe"
PHONE = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}


@pytest.fixture
def visitors(browser: object, server: str) -> Iterator[list[Visitor]]:
    """A teacher and three students, in whose consoles nothing may go wrong."""
    every = [Visitor(browser, server, **(PHONE if at == 1 else {})) for at in range(4)]
    yield every
    for one in every:
        one.leave()
        assert not one.errors, one.errors


def line(one: Visitor) -> str:
    return one.page.locator(".follow .line").inner_text().replace("\n", " ")


def press(one: Visitor, name: str) -> None:
    """A button pressed with the keyboard."""
    one.page.get_by_role("button", name=name, exact=True).first.press("Enter")


def test_a_teacher_and_three_students(visitors: list[Visitor]) -> None:
    teacher, *students = visitors
    teacher.page.goto(f"{teacher.server}/classroom")
    teacher.page.wait_for_selector(".questions li")
    press(teacher, "Start a class")
    code = teacher.page.locator(".how .code").inner_text()
    assert teacher.page.locator(".open img").evaluate("image => image.decode().then(() => true)")
    join(students, code)
    teacher.page.wait_for_selector(".follow .line:has-text('3 here')")
    # A new text, another page: all of them are there, without a page loaded anew.
    for one in students:
        one.page.evaluate("window.mark = 1")
    teacher.page.goto(
        f"{teacher.server}/?text=The+cat+sat+on+the+old+mat+because+it+was+tired.&layer=2&head=3"
    )
    teacher.drawn()  # loaded anew, the teacher still leads
    for one in students:
        one.page.wait_for_url("**text=The+cat**")
        one.page.wait_for_selector(".st-key-finding p:has-text('Layer 2, head 3')")
        one.drawn()
        assert one.page.evaluate("window.mark") == 1 and "mat" in one.tokens()
        assert one.page.locator("textarea").first.input_value().startswith("The cat")
    shows_at_once(teacher, students[2])
    wanders(teacher, students[0])
    asks(teacher, students)
    press(teacher, "End the class")
    press(teacher, "End it for all")
    for one in students:
        one.page.wait_for_selector(".follow .line:has-text('has ended')")
    takes_home(teacher)
    students[0].page.locator(".follow").get_by_role("button", name="Close").press("Enter")
    students[0].page.wait_for_selector(".follow", state="hidden")
    assert (
        students[0].page.evaluate("[sessionStorage.length, localStorage['headlight class']]")[1]
        is None
    )


def join(students: list[Visitor], code: str) -> None:
    """By the link of the QR code, by typing it, and on the app's own page."""
    phone, typist, third = students
    phone.join(code)
    typist.page.goto(f"{typist.server}/join")
    typist.page.keyboard.type("2222222")
    typist.page.keyboard.press("Enter")
    typist.page.wait_for_selector("[role=alert]:has-text('no class with this code')")
    typist.errors.clear()  # the browser reports what was refused
    typist.page.keyboard.type(code.lower())
    typist.page.keyboard.press("Enter")
    third.page.goto(f"{third.server}/classroom")
    third.page.get_by_label("The code of a class").fill(code)
    third.page.keyboard.press("Enter")
    for one in students:
        one.page.wait_for_selector(".follow .line:has-text('you follow your teacher')")
        kept = json.loads(one.page.evaluate("sessionStorage['headlight class']"))
        assert set(kept) == {"code", "student"}, "nothing else of a student"


def shows_at_once(teacher: Visitor, student: Visitor) -> None:
    """Another head and another word are on a student's picture while the server says nothing."""
    student.page.evaluate("() => { WebSocket.prototype.send = () => {}; }")
    teacher.page.locator(".cell").nth(5).click()
    student.page.wait_for_selector(f"{HEAD} .finding:has-text('Layer 0, head 5')")
    teacher.page.locator(f"{HEAD} .token").nth(3).click()
    student.page.wait_for_selector(f"{HEAD} .token[aria-pressed=true]:has-text('sat')")
    assert "Layer 0, head 5, from the small picture" in student.said()
    assert student.page.locator(".st-key-finding p:has-text('Layer 0, head 5')").count() == 0
    # Another page too: the teacher's own picture, drawn by the views themselves.
    teacher.page.get_by_role("tab", name="One head").click()
    board = student.page.frame_locator(FRAME)
    board.locator("[data-panel^='anatomy'] svg").first.wait_for()
    text = board.locator("[data-panel^='anatomy']").first.text_content()
    assert "is loading" in board.locator(".says").inner_text() and "sat" in text
    teacher.page.get_by_role("tab", name="Heads").click()
    board.locator(".cell").nth(31).wait_for()
    assert board.locator("[data-panel^='anatomy']").count() == 0
    student.page.reload()
    student.page.wait_for_selector(".st-key-finding p:has-text('Layer 0, head 5')")
    student.drawn()
    student.page.wait_for_selector(BOARD, state="hidden")
    assert "from the small picture" not in student.said()


def wanders(teacher: Visitor, student: Visitor) -> None:
    """A student who does something looks around alone, hears of no move, and comes back with one
    press."""
    student.page.locator(f"{HEAD} .token").nth(2).click()
    student.page.wait_for_selector(".follow .line:has-text('by yourself')")
    at = student.page.url
    teacher.page.locator(f"{HEAD} .token").nth(4).click()
    wanted = "4"
    teacher.page.wait_for_url(f"**token={wanted}**")
    student.until("at => headlight.lesson.at.includes(at)", f"token={wanted}")
    assert student.page.url == at
    press(student, "Return to the class")
    student.page.wait_for_url(f"**token={wanted}**")
    assert "you follow your teacher" in line(student)
    said = student.page.locator(".follow [role=status]")
    assert said.count() == 1 and "The class is at Attention" in said.inner_text()


# The question is one line at the foot of the window, two lines of text high, with all its words.
FOLDED = """text => {
  const bar = [...document.querySelectorAll("*")].map((one) =>
    one.shadowRoot?.querySelector(".follow")).find(Boolean);
  const panel = bar?.querySelector("section.panel.folded"), asked = panel?.querySelector(".asked");
  return Boolean(asked) && !bar.querySelector(".choice") && panel.innerText.includes(text) &&
    panel.getBoundingClientRect().height < 64 && asked.scrollWidth <= asked.clientWidth &&
    asked.scrollHeight <= asked.clientHeight + 1; }"""


def test_the_picture_of_a_head_that_is_asked_about_is_on_every_screen(
    visitors: list[Visitor],
) -> None:
    """At the desk, on a phone, and whole on the wall, beside the answer too."""
    teacher, phone = visitors[:2]
    page = teacher.page
    page.goto(f"{teacher.server}/classroom?{urlencode({'text': RULE, 'model': 'encoder'})}")
    press(teacher, "Start a class")
    phone.join(page.locator(".how .code").inner_text())
    one = page.locator("li", has=page.locator("h2", has_text="The picture is head"))
    one.locator(".picture").wait_for()
    cells = one.locator(".picture rect").count()
    one.get_by_role("button", name="Ask the class").press("Enter")
    phone.page.locator(".panel > .picture").wait_for()
    assert phone.page.locator(".panel > .picture rect").count() == cells > 9
    phone.page.locator(".panel .choice").first.press("Enter")
    page.wait_for_selector(".panel .foot:has-text('1 of 1 have answered')")
    press(teacher, "Reveal")
    page.locator("h1").first.click()
    page.keyboard.press("p")
    slide = page.locator(".board")
    slide.locator(".choice.right").wait_for()
    assert slide.locator(".asked > .picture rect").count() == cells
    assert slide.locator(".asked").evaluate(
        "one => one.scrollHeight <= one.clientHeight + 1 && [...one.children].every((each) =>"
        " each.getBoundingClientRect().top >= one.getBoundingClientRect().top - 1)"
    ), "no line is cut"


RULE = "Ram pushed Hari because he was angry."


def asks(teacher: Visitor, students: list[Visitor]) -> None:
    """A question from the teacher's desk, where no student follows; answers, tally, reveal,
    evidence."""
    page = teacher.page
    press(teacher, "Code")
    page.wait_for_selector(".questions li")
    assert "/classroom" in page.url
    about = line(teacher)
    page.locator("h1").first.click()
    page.keyboard.press("p")
    page.locator(".board .invite img").evaluate("image => image.decode().then(() => true)")
    assert page.locator(".board .invite p").inner_text() in about
    assert page.locator(".board .caption").inner_text() == "3 here"
    page.keyboard.press("Escape")
    about = page.locator("li", has=page.locator("h2", has_text="What follows for “it”?"))
    about.get_by_role("button", name="Ask the class").first.press("Enter")
    for one, choice in zip(students, (0, 1, 1)):
        one.page.wait_for_selector(".panel .choice")
        assert "/classroom" not in one.page.url and one.page.locator(".panel .count").count() == 0
        one.page.locator(".panel .choice").nth(choice).press("Enter")
        one.page.wait_for_selector(".panel .choice[aria-pressed=true]")
    page.wait_for_selector(".panel .foot:has-text('3 of 3 have answered')")
    assert page.locator(".panel .count").count() == 0, "the tally would lead the class"
    text = page.locator(".panel h2").inner_text()
    page.locator(".panel h2").click()
    page.keyboard.press("p")
    slide = page.locator(".board")
    slide.locator("h1", has_text=text).wait_for()
    assert "3 of 3 have answered" in slide.locator(".caption").inner_text()
    page.keyboard.press("ArrowRight")
    slide.locator(".caption", has_text="3 answers").wait_for()
    assert slide.locator(".note").count() == 0, "votes are no answer"
    for one in students:
        one.page.wait_for_selector(".panel .count")
        assert one.page.locator(".panel .choice.right").count() == 0
    page.keyboard.press("ArrowRight")
    slide.locator(".choice.right .note", has_text="✓").wait_for()
    answer = slide.locator("h1").inner_text()
    page.keyboard.press("ArrowRight")
    slide.locator(".invite").wait_for()
    assert students[0].page.locator(".panel .choice.right").count() == 1, "it stays with the class"
    page.keyboard.press("ArrowLeft")  # and comes back on the wall
    slide.locator(".choice.right").wait_for()
    assert slide.locator("h1").inner_text() == answer
    page.keyboard.press("ArrowLeft")
    slide.locator(".choice.right").wait_for(state="detached")
    page.keyboard.press("Escape")
    counts = page.locator(".panel .count").all_inner_texts()
    assert list(map(int, counts[:2])) == [1, 2]
    right = page.locator(".panel .choice.right .words").inner_text()
    for one in students:
        one.page.wait_for_selector(".panel .choice.right")
        assert one.page.locator(".panel .choice.right .words").inner_text() == right
        assert one.page.locator(".panel .count").all_inner_texts() == counts
        panel = one.page.locator("section.panel").bounding_box()
        assert panel["x"] >= 0 and panel["x"] + panel["width"] <= one.page.viewport_size["width"]
    press(teacher, "See it")
    page.wait_for_url(lambda url: "/classroom" not in url)
    teacher.drawn()  # and has written all that it shows into its address
    for one in students:
        one.until("at => location.href.includes(at)", page.url.rpartition("/")[2])
    for one in (
        teacher,
        *students,
    ):  # the teacher sees the page, and so does each, on the phone too
        one.until(FOLDED, text)
    press(students[0], "Question")
    press(students[0], "See it")
    students[0].until(FOLDED, text)
    assert students[1].page.locator(".panel .choice").count() == 0
    teacher.until("location.href.endsWith(headlight.lesson.at)")  # a move folds it anew
    press(teacher, "Question")
    page.wait_for_selector(".panel .choice.right")
    press(teacher, "Take it away")
    for one in students:
        one.page.wait_for_selector("section.panel", state="detached")


def takes_home(teacher: Visitor) -> None:
    """What was asked leaves as a table and as a page, after the class, with counts and no names."""
    page = teacher.page
    page.wait_for_selector(".results:has-text('1 question')")
    with page.expect_download() as table:
        press(teacher, "CSV")
    data = table.value.path().read_bytes()
    assert data.startswith(codecs.BOM_UTF8), "for spreadsheets"
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert (
        sum(int(row["vote 1"]) for row in rows) == 3 and [row["letter"] for row in rows][0] == "A"
    )
    assert sum(int(row["right"]) for row in rows) == 1 and rows[0]["address"].startswith("http")
    with page.expect_download() as made:
        press(teacher, "Page (HTML)")
    html = made.value.path().read_text("utf-8")
    assert rows[0]["asked"].split("“")[0] in html and "no names" in html
    press(teacher, "Forget them")
    page.wait_for_selector(".results", state="detached")
    assert page.evaluate("localStorage['headlight class record']") is None


COVERED = """() => [...document.querySelectorAll("[data-testid=stBidiComponentIsolated]")]
  .flatMap((each) => [each, ...each.children]).filter((each) => each.shadowRoot)
  .map((each) => each.shadowRoot.querySelector("div[class]"))
  .filter((root) => root?.dataset.panel).map((root) => [root.dataset.panel,
    root.classList.contains("covered"), root.inert,
    [...root.querySelectorAll("*")].some(
      (each) => getComputedStyle(each).visibility !== "hidden")])"""


def test_a_prediction_is_covered_on_every_screen_until_the_answer(visitors: list[Visitor]) -> None:
    teacher, phone, desktop = visitors[:3]
    text = "The cat sat on the old mat by the"
    at = urlencode({"model": "decoder", "text": text})
    teacher.page.goto(f"{teacher.server}/predict?{at}")
    teacher.page.wait_for_selector("[data-panel='predictions.cloze'] svg")
    teacher.page.get_by_role("button", name="Class").click()
    teacher.page.wait_for_selector(".questions li")
    press(teacher, "Start a class")
    code = teacher.page.locator(".how .code").inner_text()
    for one in (phone, desktop):
        one.join(code)
        one.page.wait_for_selector("[data-panel='predictions.cloze'] svg")
    press(teacher, "Let the class type it")
    for one, word in ((phone, "door"), (desktop, "window")):
        one.page.wait_for_selector("[data-panel='predictions.cloze'].covered")
        assert one.page.evaluate(COVERED) == [["predictions.cloze", True, True, False]]
        field = one.page.locator(".guess input")
        field.fill(word)
        field.press("Enter")
        one.page.wait_for_selector(".panel .state:has-text('still change')")
    # A page that is opened now comes covered, and so does what the class is led to.
    desktop.page.reload()
    desktop.page.wait_for_selector("[data-panel='predictions.cloze'].covered")
    for place in ("architecture?", "predict?tab=lens&"):
        teacher.page.goto(f"{teacher.server}/{place}{at}")
        teacher.page.wait_for_selector(".panel.covered")
        phone.page.wait_for_selector("[data-testid=stMain] .panel.covered")
        assert all(
            covered and inert and not seen
            for _, covered, inert, seen in teacher.page.evaluate(COVERED)
        )
    press(teacher, "Vote again")
    for one in (phone, desktop):
        one.page.wait_for_selector(".guess input")
        one.page.locator(".guess input").fill("Door")
        one.page.locator(".guess input").press("Enter")
    teacher.page.wait_for_selector(".panel .foot:has-text('2 of 2 have answered')")
    press(teacher, "Reveal")
    for one in (teacher, phone, desktop):
        one.page.wait_for_selector(".panel .choice.right .share")
        shown = " ".join(one.page.locator(".panel .count").all_inner_texts())
        assert "1 → 2" in shown and "1 → 0" in shown, "both votes"
        one.page.wait_for_selector(".panel.covered", state="detached")


def test_a_score_stands_in_the_link(browser: object, server: str) -> None:
    one = Visitor(browser, server)
    one.page.goto(f"{server}/classroom")
    one.page.wait_for_selector(".questions li")
    one.page.get_by_text("Guess the word", exact=True).click()
    one.page.wait_for_url("**quiz=Words**")
    one.page.wait_for_selector(".questions li h2:has-text('▢')")
    one.page.locator(".questions li").nth(1).locator(".choices button").first.press("Enter")
    one.page.wait_for_url("**answered=*")
    score = one.page.locator(".score").inner_text()
    assert re.match("[01] of 1 right", score)
    friend = one.context.new_page()
    friend.goto(one.page.url)
    friend.wait_for_selector(f".score:has-text('{score}')")
    assert friend.locator(".choices button[aria-pressed=true]").count() == 1
    one.leave()
    assert not one.wrong(), one.errors


# ---- a window that moves while its last move, or the code of its page, is on its way -------


def leading(browser: object, server: str) -> Visitor:
    """A teacher's window on the first page, in which a new class is led."""
    made = httpx2.post(f"{server}/class/start", json={}).json()
    part = json.dumps({name: made[name] for name in ("code", "key", "watch", "ends")})
    one = Visitor(browser, server)
    one.page.goto(server)
    one.page.evaluate("part => sessionStorage.setItem('headlight class', part)", part)
    return one


def test_one_move_is_sent_at_a_time_and_tried_again(browser: object, server: str) -> None:
    moves: list[Route] = []
    one = leading(browser, server)
    visitor = one.page
    visitor.route("**/class/move", lambda route: moves.append(route))
    visitor.goto(f"{server}/?layer=1&head=1")

    def sent(number: int) -> str:
        for _ in range(200):
            if len(moves) >= number:
                return moves[number - 1].request.post_data_json["at"]
            visitor.wait_for_timeout(50)
        raise AssertionError(f"{number - 1} moves were sent")

    assert "head=1" in sent(1)
    for head in (2, 3):
        visitor.evaluate(f"history.pushState({{}}, '', '/?layer=1&head={head}')")
        visitor.wait_for_timeout(400)
    assert len(moves) == 1, "the first is still on its way"
    moves[0].fulfill(status=200, json={})
    assert "head=3" in sent(2), "of what came meanwhile the last is sent"
    moves[1].fulfill(status=503, json={"problem": "The class cannot be reached just now."})
    assert "head=3" in sent(3), "and once more when the store was away"
    moves[2].fulfill(status=200, json={})
    one.leave()
    assert all("503" in error for error in one.errors), one.errors


def test_a_picture_waits_for_a_view_whose_code_comes_late(browser: object, server: str) -> None:
    one = leading(browser, server)
    page = one.page
    late: list[Route] = []
    one.hold("panel", late)

    def shows_a_panel(request: Request) -> bool:
        sends = "/class/show" in request.url
        return sends and b'"panel"' in gzip.decompress(request.post_data_buffer)

    with page.expect_request(shows_a_panel):
        page.goto(f"{server}/?layer=1&head=1")
        page.wait_for_selector("[data-test-script-state=notRunning]", state="attached")
        page.wait_for_timeout(1500)  # in which a page without its views would be sent
        for route in late:
            route.continue_()
    assert late, "the code was held up"
    one.leave()
    assert not one.wrong(), one.errors


@pytest.fixture
def large_class(browser: object, server: str) -> Iterator[tuple[Visitor, Visitor]]:
    """A teacher and a student of a class in which pictures stand in for pages."""
    teacher, student = leading(browser, server), Visitor(browser, server)
    code = json.loads(teacher.page.evaluate("sessionStorage['headlight class']"))["code"]
    with crowd(server, code):
        student.join(code)
        student.page.wait_for_selector(".follow .line:has-text('you follow your teacher')")
        yield teacher, student


# In the frame, how often nothing is drawn; and around it, how often it is not there or not seen.
COUNT_EMPTY = """() => { window.gaps = 0;
  setInterval(() => window.gaps += !document.querySelector('.shown .part'), 20); }"""
COUNT_GAPS = """frame => { window.gaps = 0; window.frame = frame;
  const seen = () => frame.isConnected && getComputedStyle(frame).visibility === 'visible' &&
    frame.parentElement.style.opacity === '';
  setInterval(() => window.gaps += !seen(), 20); }"""
COLOURS = "one => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
COUNT_NEWS = "() => { window.news = 0; addEventListener('headlight', () => window.news++); }"
IS_UNDER = "each => Boolean(each.getRootNode().host.closest('[inert]'))"
COUNT_SENT = """() => { window.sent = 0; const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...all) { window.sent++; send.apply(this, all); }; }"""


def test_in_a_large_class_a_press_requests_a_students_page(
    large_class: tuple[Visitor, Visitor],
) -> None:
    teacher, student = large_class
    teacher.open(text="The cat sat on the old mat because winter was cold.")
    board = student.page.frame_locator(FRAME)
    gone = lambda: student.page.wait_for_selector(BOARD, state="hidden")
    button = board.get_by_role("button", name="Work on it yourself")
    button.wait_for()
    assert "mat" in board.locator(READS).text_content()
    for scheme in ("dark", "light"):
        student.page.emulate_media(color_scheme=scheme)
        board.locator(f"html[style*='color-scheme: {scheme}']").wait_for()
        body = student.page.locator("body").evaluate(COLOURS)
        assert board.locator(".shown").evaluate(COLOURS) == body, "it has the page's colours"
    # Nothing is asked of the server but pictures, wherever the teacher goes.
    student.page.evaluate(COUNT_SENT)
    teacher.page.locator(".cell").nth(5).click()
    board.locator("p", has_text="Layer 0, head 5 (").wait_for()  # below the headline of the page
    teacher.page.get_by_role("tab", name="One head").click()
    board.locator("[data-panel^='anatomy'] svg").first.wait_for()
    assert student.page.evaluate("window.sent") == 0 and "mat" not in student.page.url
    student.page.evaluate(COUNT_NEWS)
    student.page.wait_for_timeout(1000)
    assert student.page.evaluate("window.news") < 10, "a picture that stands keeps nobody busy"
    # What lies under the picture cannot be reached; the picture can, by keyboard too.
    assert student.page.locator("textarea").first.evaluate(IS_UNDER)
    student.page.keyboard.press("Shift")  # is no press of it
    assert button.count() == 1
    button.press("Enter")
    student.page.wait_for_url("**mat**tab=weight**")
    gone()
    student.page.locator("[data-panel^='anatomy'] svg").first.wait_for()
    assert not student.page.locator("textarea").first.evaluate(IS_UNDER)
    # And again by a touch; who looks around does so from where the class is.
    teacher.page.get_by_role("tab", name="Heads").click()
    board.locator(".cell").nth(31).wait_for()
    board.locator("[data-panel='attention.heads']").first.click()
    student.drawn()
    gone()
    teacher.page.get_by_role("link", name="Architecture", exact=True).click()
    board.locator("[data-panel='architecture.flow']").wait_for()
    press(student, "Look around")
    student.page.wait_for_url("**/architecture?**")
    student.page.wait_for_selector(".follow .line:has-text('by yourself')")
    gone()
    # Back with the class, its picture stays while the next one is on its way; then the class ends.
    press(student, "Return to the class")
    teacher.page.get_by_role("tab", name="Positions").click()
    button.wait_for()
    frame = student.page.locator(FRAME)
    frame.evaluate(COUNT_GAPS)
    board.locator("body").evaluate(COUNT_EMPTY)
    teacher.page.get_by_role("link", name="Attention", exact=True).click()
    board.locator(".cell").nth(31).wait_for()
    assert student.page.evaluate("window.gaps") == 0, "it does not blink"
    assert board.locator("body").evaluate("() => window.gaps") == 0
    assert frame.evaluate("frame => frame === window.frame"), "one frame for all pictures"
    press(teacher, "End the class")
    press(teacher, "End it for all")
    student.page.wait_for_selector(".follow .line:has-text('has ended')")
    press(student, "Close")
    student.drawn()
    assert "mat" in student.page.url
    for one in (teacher, student):
        one.leave()
        assert not one.errors, one.errors


def test_in_a_large_class_a_page_follows_where_no_picture_comes(
    large_class: tuple[Visitor, Visitor],
) -> None:
    teacher, student = large_class
    teacher.page.get_by_role("link", name="Learn", exact=True).click()  # a page of words alone
    student.page.wait_for_selector(".card:has-text('In three minutes')")
    teacher.page.route("**/class/show?**", lambda route: route.abort())
    teacher.open(text="The dog ran home.")
    student.page.wait_for_url("**text=The+dog**")
    student.page.wait_for_selector(f"{READS} [role=button]:has-text('dog')")
    for one in (teacher, student):
        one.leave()
    assert not student.errors, student.errors
