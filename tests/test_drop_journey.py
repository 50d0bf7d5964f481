"""Files that are dropped on the page, in a real browser: no drop leads away from it."""

from __future__ import annotations

import base64

import pytest
from driver import Visitor, browser_test
from playwright.sync_api import expect
from tcp_proxy import Cable
from test_silence_journey import cable, distant

from explorer.text.lesson import Item, Lesson
from explorer.wording.templates import sentences
from models.contract.recording_file import to_npz
from models.runtime.run import Run

__all__ = ["cable", "distant"]  # pytest finds them here
SAY = sentences("browser", "dropped")
# A drop as a browser makes it: True where the page keeps the browser from opening the file.
DROP = """([name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const list = new DataTransfer();
  list.items.add(new File([bytes], name, { type }));
  const made = (kind) => new DragEvent(kind,
    { dataTransfer: list, bubbles: true, cancelable: true, composed: true });
  const place = document.querySelector("[data-testid=stMain]");
  return ["dragover", "drop"].map((kind) => !place.dispatchEvent(made(kind)));
}"""
SIGN = "#headlight-says"


def drop(visitor: Visitor, name: str, content: bytes, kind: str = "") -> None:
    """Drop a file on the page, and see that the browser does not open it."""
    data = base64.b64encode(content).decode()
    assert visitor.page.evaluate(DROP, [name, kind, data]) == [True, True]


@browser_test
def test_a_dropped_text_and_a_recording_are_drawn_and_what_is_neither_is_said(
    visitor: Visitor,
) -> None:
    page = visitor.open().page
    address = page.url
    for name in ("picture.png", "report.pdf", "notes", "broken.txt"):
        drop(visitor, name, b"\x89PNG\xff\xfe\x00")
        expect(page.locator(SIGN)).to_have_text(SAY("other", name=name))
        assert page.url == address
    drop(visitor, "a text.txt", "Kathmandu lies in Nepal.\n".encode("utf-8-sig"), "text/plain")
    visitor.until("location.search.includes('Kathmandu')")
    visitor.drawn()
    assert "Nepal" in visitor.tokens()
    drop(visitor, "mine.npz", to_npz(Run("encoder", "Dogs bark loudly.").recording()))
    expect(page.locator(".st-key-model_menu button").first).to_contain_text("(recording)")
    visitor.drawn()
    assert "bark" in visitor.tokens()


@browser_test
def test_a_dropped_lesson_is_opened_with_the_text_on_screen(visitor: Visitor) -> None:
    visitor.open("?token=2", text="Dogs bark loudly.")
    lesson = Lesson("Barking", (Item("/predict?text=Dogs+bark", "Look"),))
    drop(visitor, "lesson.json", lesson.json.encode(), "application/json")
    visitor.page.get_by_text("“Barking” has 1 steps on").or_(
        visitor.page.get_by_text("“Barking” has 1 step on")
    ).wait_for()
    visitor.page.get_by_role("button", name="Open it").click()
    title = visitor.page.get_by_label("Title").last
    expect(title).to_have_value("Barking")
    assert "Dogs" in visitor.page.url


@browser_test
@pytest.mark.parametrize("name", ["mine.npz", "lesson.json"])
def test_a_file_that_a_silent_server_does_not_open_is_said_not_to_be(
    cable: Cable, distant: Visitor, name: str
) -> None:
    page = distant.open().page
    page.clock.install()
    cable.flows.clear()
    drop(distant, name, b"{}")
    page.clock.run_for(62_000)  # it waits for a minute, and the sentence stands for some seconds
    expect(page.locator(SIGN)).to_have_text(SAY("late", name=name))
    cable.flows.set()
