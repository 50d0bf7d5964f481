"""Half a surrogate pair, which is no character: every field and address takes a text that holds
one, with U+FFFD in its place."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import driver
import httpx2
import pytest
from app_harness import page_at
from driver import Visitor
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.testing.v1 import AppTest

import headlight
from explorer.app.server import messages
from explorer.wording.markdown_escape import well_formed

HALF, WHOLE = "The cat \ud83d sat.", "The cat \ufffd sat."


def test_a_whole_text_stays_as_it_is() -> None:
    for text in ("", "Ram 💛", "日本語", "\u202e", "\ufffd", "a\0b"):
        assert well_formed(text) == text
    assert well_formed("\ud83d\udc9b") == "💛", "two halves that belong together"
    assert well_formed("\udc9b\ud83d") == "\ufffd\ufffd"
    for text in (HALF, "\udfff", "\ud800"):
        well_formed(text).encode()


@pytest.mark.slow
def test_a_text_with_half_a_character_is_on_screen_and_in_the_address() -> None:
    def run(text: str) -> None:
        from explorer.app.layout import current_recording

        current_recording.take_text(text)

    app = AppTest.from_function(run, kwargs={"text": HALF}).run()
    assert not app.exception and app.session_state["text"] == WHOLE
    page = page_at("heads")
    page.session_state["text"] = HALF  # however it came there
    assert not page.run().exception
    assert page.query_params["text"] in (WHOLE, [WHOLE])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["html", "svg", "csv"])
def test_a_file_of_a_text_with_half_a_character_is_written(ending: str, tmp_path: Path) -> None:
    panel = headlight.panels.attention.head(headlight.Run("encoder", HALF))
    panel.save(tmp_path / f"it.{ending}")
    assert (tmp_path / f"it.{ending}").read_text("utf-8")


def test_a_message_with_half_a_character_is_read() -> None:
    said = BackMsg()
    said.rerun_script.widget_states.widgets.add(id="second", string_value=WHOLE)
    whole = said.SerializeToString()
    # As a browser packs it: the half itself in three bytes.
    packed = whole.replace(b"\xef\xbf\xbd", b"\xed\xa0\xbd")
    assert messages.well_formed(packed) == whole and messages.well_formed(whole) == whole
    assert messages.well_formed(b"\xff\xff") == b"\xff\xff", "no message stays none"


@pytest.mark.slow
def test_a_class_is_led_and_asked_with_half_a_character(server: str) -> None:
    with httpx2.Client(base_url=server, timeout=30) as ask:

        def sent(what: str, **said: object) -> httpx2.Response:
            kind = {"content-type": "application/json"}
            return ask.post(f"/class/{what}", content=json.dumps(said), headers=kind)

        made = sent("start").json()
        rule = {"code": made["code"], "key": made["key"]}
        assert sent("move", **rule, at=f"/?text={HALF}").is_success
        question = {"text": HALF, "choices": ["a", HALF], "right": 0}
        assert sent("ask", **rule, question=question).is_success
        student = sent("join", code=made["code"]).json()
        assert student["at"] == f"/?text={WHOLE}"
        part = {"code": made["code"], "as": student["student"]}
        with ask.stream("GET", "/class/news", params=part) as line:
            said = next(each for each in line.iter_lines() if each.startswith("data: "))
        seen = json.loads(said[6:])
        assert seen["at"] == f"/?text={WHOLE}" and seen["question"]["choices"] == ["a", WHOLE]
        sent("end", **rule)


TYPES = """(field, text) => {
  Object.getOwnPropertyDescriptor(field.constructor.prototype, "value").set.call(field, text);
  field.dispatchEvent(new InputEvent("input", { bubbles: true }));
}"""


FIELDS = {
    "/": ("Your text", "text"),
    "/architecture?tab=embeddings&contexts=Two": ("The same word in another context", "second"),
    "/predict?tab=translate": ("Your own French", "target"),
}


@driver.browser_test
def test_fields_and_an_address_take_half_a_character(visitor: Visitor) -> None:
    page, half = visitor.page, json.loads(json.dumps(HALF))

    def settled() -> None:
        page.wait_for_selector("[data-test-script-state=notRunning]")
        assert page.locator("[data-testid=stException]").count() == 0

    for path, (label, name) in FIELDS.items():
        page.goto(f"{visitor.server}{path}")
        settled()
        field = page.get_by_label(label, exact=True)
        field.wait_for()
        field.evaluate(TYPES, half)
        is_area = field.evaluate("field => field.tagName") == "TEXTAREA" and name != "text"
        field.press("Control+Enter" if is_area else "Enter")
        page.wait_for_url(f"**{name}=The+cat+{quote(WHOLE[8])}+sat.**")
        settled()
    packed = "%ED%A0%BD"  # a half as an address would spell it
    page.goto(f"{visitor.server}/?text=The+cat+{packed}+sat.&view={packed}&layer={packed}")
    visitor.drawn()
    settled()
    assert "sat" in visitor.tokens() and not visitor.wrong()
