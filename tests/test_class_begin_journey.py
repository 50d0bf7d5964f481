"""Where a class begins, who may go on with it, and a word that its teacher lets go."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from driver import HELD, MARKS, Visitor

pytestmark = MARKS
TEXT, OTHER = "Ram pushed Hari because he was angry.", "The cat sat on the old mat."
LEADS = ".follow .line:has-text('you lead')"
FOLLOWS = ".follow .line:has-text('you follow your teacher')"


@pytest.fixture
def teacher(browser: object, server: str) -> Iterator[Visitor]:
    one = Visitor(browser, server)
    yield one
    one.leave()
    assert not one.wrong(), one.errors


student = teacher  # another visit of the same kind


def at(page: object) -> tuple[str, dict[str, str]]:
    """The page and the choices of an address."""
    parts = urlsplit(page.url)
    return parts.path, {name: each[-1] for name, each in parse_qs(parts.query).items()}


def start(teacher: Visitor) -> str:
    """A class that is started on the teacher's desk, on which the teacher got by the button there;
    its code."""
    teacher.page.get_by_role("button", name="Class").click()
    teacher.page.wait_for_selector(".questions li")
    teacher.page.get_by_role("button", name="Start a class").press("Enter")
    return teacher.page.locator(".how .code").inner_text()


def join(student: Visitor, code: str) -> None:
    student.page.goto(f"{student.server}/join/{code}")
    student.page.wait_for_selector(FOLLOWS)


def test_a_class_begins_on_its_teachers_page_text_and_model(
    teacher: Visitor, student: Visitor
) -> None:
    teacher.open("?model=decoder&layer=1&head=2&token=3", TEXT)
    teacher.drawn()
    join(student, start(teacher))
    page, chosen = at(student.page)
    assert page == "/" and chosen["text"] == TEXT and chosen["model"] == "decoder"
    assert (chosen["layer"], chosen["head"], chosen["token"]) == ("1", "2", "3")
    student.page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 2')")
    student.drawn()
    assert "pushed" in student.tokens()
    # A text that is typed at the desk is the class's text, on the page where the class is.
    field = teacher.page.locator(".sentence textarea")
    field.fill(OTHER)
    field.press("Enter")
    student.page.wait_for_url("**text=The+cat**")
    page, chosen = at(student.page)
    assert page == "/" and chosen["text"] == OTHER and chosen["model"] == "decoder"
    assert at(teacher.page)[0] == "/classroom"


def test_another_tab_of_the_teacher_goes_on_with_the_class_where_it_is(
    teacher: Visitor, student: Visitor
) -> None:
    teacher.open("?layer=1&head=2", TEXT)
    teacher.drawn()
    code = start(teacher)
    join(student, code)
    tab = teacher.context.new_page()
    tab.set_default_timeout(60_000)
    tab.goto(f"{teacher.server}/architecture?text=A+text+of+my+own")
    offer = tab.locator(".follow .line")
    offer.wait_for()
    assert code in offer.inner_text() and "you started this class" in offer.inner_text()
    offer.get_by_role("button", name="Not here").press("Enter")
    tab.wait_for_selector(".follow", state="hidden")
    # At the desk too, and the button that stands out goes on.
    tab.goto(f"{teacher.server}/classroom")
    main = tab.locator(".classroom button.main")
    main.wait_for()
    assert main.all_inner_texts() == [f"Go on with class {code}"]
    assert "another" in tab.get_by_role("button", name="Start another class").inner_text()
    main.press("Enter")
    tab.wait_for_selector(LEADS)
    tab.wait_for_url("**head=2**")
    assert at(tab)[0] == "/" and at(tab)[1]["text"] == TEXT, "the class stays where it is"
    tab.wait_for_selector("[data-test-script-state=notRunning]")
    assert at(student.page)[1]["text"] == TEXT
    tab.locator(".cell").nth(5).click()
    student.page.wait_for_url("**head=5**")


def test_a_word_that_the_teacher_lets_go_is_let_go_on_students_screens(
    teacher: Visitor, student: Visitor
) -> None:
    teacher.open()
    teacher.drawn()
    join(student, start(teacher))
    teacher.page.get_by_role("link", name="Attention").first.click()
    # The page opens on the word that its strongest finding is about.
    pressed = HELD
    student.page.wait_for_selector(pressed)
    teacher.page.wait_for_selector(pressed)
    teacher.page.wait_for_selector("[data-test-script-state=notRunning]")
    teacher.page.locator(pressed).first.click()
    teacher.page.wait_for_url("**head=**")
    student.page.wait_for_url("**head=**")
    student.page.wait_for_selector(pressed, state="detached")
    # Nor does it come back with the page's own run, or with the page loaded anew.
    student.page.wait_for_selector("[data-test-script-state=notRunning]")
    student.page.reload()
    student.page.wait_for_selector(FOLLOWS)
    student.drawn()
    assert student.page.locator(pressed).count() == 0
