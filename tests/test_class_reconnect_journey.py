"""A student whose connection breaks while the teacher goes on: where the student's page is
afterwards, and what its line says meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driver import HELD, MARKS, Visitor
from tcp_proxy import Cable

pytestmark = MARKS
FOLLOWS = ".follow .line:has-text('you follow your teacher')"
LOST = ".follow .line:has-text('connection lost')"
BEFORE, AFTER = "The cat sat on the old mat by the door.", "Ram pushed Hari because he was angry."
# What Streamlit says over the page, and what the line says while another page is on screen.
WATCHES = """() => {
  globalThis.dialogs = 0;
  new MutationObserver(() => {
    if (document.querySelector("[role=dialog]")) globalThis.dialogs++;
  }).observe(document.body, { childList: true, subtree: true });
}"""


@pytest.fixture
def cable(server: str) -> Iterator[Cable]:
    made = Cable(server)
    yield made
    made.cut()


@pytest.fixture
def teacher(browser: object, server: str) -> Iterator[Visitor]:
    one = Visitor(browser, server)
    one.open(text=BEFORE)
    one.drawn()
    yield one
    one.leave()
    assert not one.wrong(), one.errors


@pytest.fixture
def student(browser: object, cable: Cable) -> Iterator[Visitor]:
    """One whose browser reaches the server through the cable, and reports what it could not."""
    one = Visitor(browser, cable.address)
    yield one
    one.context.close()


def press(one: Visitor, name: str) -> None:
    button = one.page.get_by_role("button", name=name).first
    button.focus()
    one.page.keyboard.press("Enter")


def begin(teacher: Visitor, student: Visitor) -> str:
    """A class that the student follows on the teacher's text; its code."""
    teacher.page.goto(f"{teacher.server}/classroom?text={BEFORE.replace(' ', '+')}")
    teacher.page.wait_for_selector(".questions li")
    press(teacher, "Start a class")
    code = teacher.page.locator(".how .code").inner_text()
    student.page.goto(f"{student.server}/join/{code}")
    student.page.wait_for_selector(FOLLOWS)
    student.drawn()
    student.page.evaluate(WATCHES)
    return code


def text(one: Visitor) -> str:
    return one.page.locator(".sentence textarea").first.input_value()


IS = """text => [...document.querySelectorAll("*")].some((each) =>
  each.shadowRoot?.querySelector(".sentence textarea")?.value === text)"""


def arrives(student: Visitor, text: str, head: str) -> None:
    """The student's own page, and no picture of the teacher's, shows this text and this head."""
    student.until(IS, text)
    student.page.wait_for_selector(f"[data-testid=stMain] .st-key-finding p:has-text('{head}')")
    student.page.wait_for_selector(".shown", state="detached")
    student.drawn()
    assert set(student.tokens()) >= set(text.rstrip(".").split()), student.tokens()


def moves(teacher: Visitor, query: str) -> None:
    """The teacher goes to another page and text, and the class is there."""
    teacher.page.goto(f"{teacher.server}{query}")
    teacher.page.wait_for_selector(".follow .line:has-text('you lead')")
    teacher.page.wait_for_selector("[data-test-script-state=notRunning]")


def test_a_student_whose_connection_broke_is_where_the_teacher_is(
    teacher: Visitor, student: Visitor, cable: Cable
) -> None:
    begin(teacher, student)
    cable.cut()
    student.page.wait_for_selector(LOST)
    moves(teacher, f"/?text={AFTER.replace(' ', '+')}&layer=1&head=2&token=3")
    student.page.wait_for_selector("[data-test-connection-state=PINGING_SERVER]")
    assert text(student) == BEFORE and student.page.locator(LOST).count() == 1
    cable.mend()
    student.page.wait_for_selector(FOLLOWS)
    arrives(student, AFTER, "Layer 1, head 2")
    assert "Hari" in student.page.locator(HELD).first.text_content()
    assert student.page.evaluate("dialogs") == 0, "nothing covers the page"
    # Another page and text.
    cable.cut()
    student.page.wait_for_selector(LOST)
    moves(teacher, f"/architecture?text={BEFORE.replace(' ', '+')}")
    cable.mend()
    student.page.wait_for_selector(FOLLOWS)
    assert "/architecture?" in student.page.url
    student.until(IS, BEFORE)
    student.page.locator(".panel svg").first.wait_for()


def test_a_line_that_falls_silent_is_opened_anew(
    teacher: Visitor, student: Visitor, cable: Cable
) -> None:
    student.page.clock.install()
    begin(teacher, student)
    cable.lossy = True
    moves(teacher, f"/?text={AFTER.replace(' ', '+')}&layer=1&head=2&token=3")
    student.page.wait_for_timeout(1000)
    assert student.page.locator(FOLLOWS).count() == 1 and text(student) == BEFORE
    cable.lossy = False
    student.page.clock.fast_forward(60_000)
    arrives(student, AFTER, "Layer 1, head 2")
    student.page.wait_for_selector(FOLLOWS)


def test_a_student_comes_back_from_alone_after_a_lost_connection(
    teacher: Visitor, student: Visitor, cable: Cable
) -> None:
    begin(teacher, student)
    press(student, "Look around")
    cable.cut()
    student.page.wait_for_selector(LOST)
    moves(teacher, f"/?text={AFTER.replace(' ', '+')}&layer=1&head=2")
    press(student, "Return to the class")
    assert text(student) == BEFORE and student.page.locator(LOST).count() == 1
    cable.mend()
    student.page.wait_for_selector(FOLLOWS)
    arrives(student, AFTER, "Layer 1, head 2")
