"""Where a class begins, who may go on with it, a word that its teacher lets go, and a student whose
connection breaks while the teacher goes on."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from driver import HELD, MARKS, Visitor
from tcp_proxy import Cable

pytestmark = MARKS
TEXT, OTHER = "Ram pushed Hari because he was angry.", "The cat sat on the old mat by the door."
LEADS = ".follow .line:has-text('you lead')"
FOLLOWS = ".follow .line:has-text('you follow your teacher')"
LOST = ".follow .line:has-text('connection lost')"
REST = "[data-test-script-state=notRunning]"
# What Streamlit says over the page, and what the line says while another page is on screen.
WATCHES = """() => {
  globalThis.dialogs = 0;
  new MutationObserver(() => {
    if (document.querySelector("[role=dialog]")) globalThis.dialogs++;
  }).observe(document.body, { childList: true, subtree: true });
}"""
IS = """text => [...document.querySelectorAll("*")].some((each) =>
  each.shadowRoot?.querySelector(".sentence textarea")?.value === text)"""


@pytest.fixture
def teacher(browser: object, server: str) -> Iterator[Visitor]:
    one = Visitor(browser, server)
    yield one
    one.leave()
    assert not one.wrong(), one.errors


student = teacher  # another visit of the same kind


@pytest.fixture
def cable(server: str) -> Iterator[Cable]:
    made = Cable(server)
    yield made
    made.cut()


@pytest.fixture
def distant(browser: object, cable: Cable) -> Iterator[Visitor]:
    """A student whose browser reaches the server through the cable, and reports what it could
    not."""
    one = Visitor(browser, cable.address)
    yield one
    one.context.close()


def at(page: object) -> tuple[str, dict[str, str]]:
    """The page and the choices of an address."""
    parts = urlsplit(page.url)
    return parts.path, {name: each[-1] for name, each in parse_qs(parts.query).items()}


def press(one: Visitor, name: str) -> None:
    """A button pressed with the keyboard."""
    one.page.get_by_role("button", name=name).first.press("Enter")


def begin(teacher: Visitor, student: Visitor, query: str = "", text: str = TEXT) -> str:
    """A class that the teacher starts at the desk, on the page and text before it, and a student
    joins; its code."""
    teacher.open(query, text)
    teacher.page.get_by_role("button", name="Class").click()
    teacher.page.wait_for_selector(".questions li")
    press(teacher, "Start a class")
    code = teacher.page.locator(".how .code").inner_text()
    student.join(code)
    student.page.wait_for_selector(FOLLOWS)
    student.drawn()
    return code


def test_a_class_begins_where_its_teacher_is(teacher: Visitor, student: Visitor) -> None:
    begin(teacher, student, "?model=decoder&layer=1&head=2&token=3")
    page, chosen = at(student.page)
    asked = {"text": TEXT, "model": "decoder", "layer": "1", "head": "2", "token": "3"}
    assert page == "/" and asked.items() <= chosen.items()
    student.page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 2')")
    assert "pushed" in student.tokens()
    # A word that the teacher lets go is let go on students' screens, and does not come back with
    # the page's own run, or with the page loaded anew.
    teacher.page.get_by_role("link", name="Attention").first.click()
    student.page.wait_for_selector(HELD)
    teacher.page.wait_for_selector(HELD)
    teacher.page.wait_for_selector(REST)
    teacher.page.locator(HELD).first.click()
    student.page.wait_for_selector(HELD, state="detached")
    student.page.wait_for_selector(REST)
    student.page.reload()
    student.page.wait_for_selector(FOLLOWS)
    student.drawn()
    assert student.page.locator(HELD).count() == 0
    # A text that is typed at the desk is the class's text, on the page where the class is.
    teacher.page.get_by_role("button", name="Code", exact=True).first.press("Enter")
    teacher.page.wait_for_selector(".questions li")
    field = teacher.page.locator(".sentence textarea")
    field.fill(OTHER)
    field.press("Enter")
    student.page.wait_for_url("**text=The+cat**")
    page, chosen = at(student.page)
    assert page == "/" and chosen["text"] == OTHER and chosen["model"] == "decoder"
    assert at(teacher.page)[0] == "/classroom"


def test_another_tab_of_the_teacher_goes_on(teacher: Visitor, student: Visitor) -> None:
    code = begin(teacher, student, "?layer=1&head=2")
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
    tab.wait_for_selector(REST)
    assert at(student.page)[1]["text"] == TEXT
    tab.locator(".cell").nth(5).click()
    student.page.wait_for_url("**head=5**")


# ---- a connection that breaks --------------------------------------------------


def text(one: Visitor) -> str:
    return one.page.locator(".sentence textarea").first.input_value()


def arrives(student: Visitor, text: str, head: str) -> None:
    """The student's own page, and no picture of the teacher's, shows this text and this head."""
    student.page.wait_for_selector(FOLLOWS)
    student.until(IS, text)
    student.page.wait_for_selector(f"[data-testid=stMain] .st-key-finding p:has-text('{head}')")
    student.page.wait_for_selector(".shown", state="hidden")
    student.drawn()
    assert set(student.tokens()) >= set(text.rstrip(".").split()), student.tokens()


def moves(teacher: Visitor, page: str, **choices: object) -> None:
    """The teacher goes to another page and text, and the class is there."""
    teacher.page.goto(f"{teacher.server}/{page}?{urlencode(choices)}")
    teacher.page.wait_for_selector(LEADS)
    teacher.page.wait_for_selector(REST)


def test_a_connection_that_broke(teacher: Visitor, distant: Visitor, cable: Cable) -> None:
    begin(teacher, distant)
    distant.page.evaluate(WATCHES)
    cable.cut()
    distant.page.wait_for_selector(LOST)
    moves(teacher, "", text=OTHER, layer=1, head=2, token=3)
    distant.page.wait_for_selector("[data-test-connection-state=PINGING_SERVER]")
    assert text(distant) == TEXT and distant.page.locator(LOST).count() == 1
    cable.mend()
    arrives(distant, OTHER, "Layer 1, head 2")
    assert "sat" in distant.page.locator(HELD).first.text_content()
    assert distant.page.evaluate("dialogs") == 0, "nothing covers the page"
    # One who looks around alone comes back, to another page and text.
    press(distant, "Look around")
    cable.cut()
    distant.page.wait_for_selector(LOST)
    moves(teacher, "architecture", text=TEXT, tab="positions")
    press(distant, "Return to the class")
    assert text(distant) == OTHER and distant.page.locator(LOST).count() == 1
    cable.mend()
    distant.page.wait_for_selector(FOLLOWS)
    distant.until(IS, TEXT)
    assert "/architecture?" in distant.page.url
    distant.page.locator(".panel svg").first.wait_for()


def test_a_silent_line_is_opened_anew(teacher: Visitor, distant: Visitor, cable: Cable) -> None:
    distant.page.clock.install()
    begin(teacher, distant)
    cable.lossy = True
    moves(teacher, "", text=OTHER, layer=1, head=2, token=3)
    distant.page.wait_for_timeout(1000)
    assert distant.page.locator(FOLLOWS).count() == 1 and text(distant) == TEXT
    cable.lossy = False
    distant.page.clock.fast_forward(60_000)
    arrives(distant, OTHER, "Layer 1, head 2")
