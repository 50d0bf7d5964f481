"""The log: one line for a slow run, a refusal or an exception, and never a reader's text, whoever
writes it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest
from app_harness import clean, page_at
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import local_script_runner

from explorer.app.state import event_log

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
SECRET = "my secret diary of 1999"


def heard(monkeypatch: pytest.MonkeyPatch, log: logging.Logger = event_log.log) -> list[str]:
    """What a log says from now on."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(handler.format(record))
    monkeypatch.setattr(log, "handlers", [handler])
    log.setLevel(logging.INFO)
    return lines


def test_a_slow_run_is_one_line_without_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = heard(monkeypatch)
    monkeypatch.setattr(event_log, "SLOW", 0.0)
    app = clean(page_at("heads", text=SECRET))
    (line,) = lines
    said = dict(part.split("=") for part in line.split()[1:])
    assert line.startswith("slow ") and (said["model"], said["page"]) == ("encoder", "heads")
    assert int(said["tokens"]) > 4 and float(said["seconds"]) > 0
    # A part of the page that runs by itself, as after a click in it.
    part = next(iter(app._fragment_storage._fragments))
    by_itself = partial(RerunData, fragment_id_queue=[part])
    monkeypatch.setattr(local_script_runner, "RerunData", by_itself)
    app.run()
    assert len(lines) == 2 and lines[1].startswith("slow ") and "part=heads_tab" in lines[1]
    assert said.keys() | {"part"} == {each.partition("=")[0] for each in lines[1].split()[1:]}
    assert not set(SECRET.split()) & set(" ".join(lines).split())


def test_every_part_of_a_page_that_runs_by_itself_is_timed() -> None:
    """Streamlit's own decorator stands in one place."""
    for folder in ("explorer", "pages"):
        for file in (ROOT / folder).rglob("*.py"):
            assert file.name == "event_log.py" or "st.fragment" not in file.read_text("utf-8"), file


def test_an_exception_is_its_kind_and_its_place_without_the_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from streamlit import error_util

    from models.contract.edits import from_line

    lines = heard(monkeypatch)
    event_log.begin()
    try:
        from_line(SECRET)
    except ValueError as error:
        event_log.log_exception(error)
        error_util._log_uncaught_app_exception(error)
    assert (
        len(lines) == 1
        and "kind=ValueError" in lines[0]
        and "models/contract/edits.py:" in lines[0]
    )
    assert SECRET not in "".join((*lines, *capsys.readouterr()))


def test_the_place_where_it_was_raised_stands_last_however_long_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = heard(monkeypatch)

    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        raise ValueError

    with pytest.raises(ValueError) as raised:
        deeper(9)
    event_log.log_exception(raised.value)
    last = deeper.__code__.co_firstlineno + 3
    assert lines[0].endswith(f">tests/test_logging.py:{last}")


def test_what_fails_again_and_again_is_one_line_that_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a stranger makes it fail who sends a widget's state that is none: Streamlit writes each
    down, and so did we."""
    from streamlit import error_util

    monkeypatch.setattr(event_log, "_repeated", {})
    lines = heard(monkeypatch)
    theirs = heard(monkeypatch, logging.getLogger("streamlit.error_util"))
    event_log.begin()

    def fail() -> None:
        try:
            float(SECRET)
        except ValueError as error:
            error_util.handle_user_script_exception(error, event_log.log_exception)

    for _ in range(50):
        fail()
    assert len(lines) == 1 and not [each for each in theirs if "ValueError" in each]
    aged = {key: (0.0, n) for key, (_, n) in event_log._repeated.items()}
    monkeypatch.setattr(event_log, "_repeated", aged)
    fail()
    assert len(lines) == 2 and lines[1].endswith(" left_out=49")
    # Another place is another line, and what is remembered has an end.
    for at in range(2 * event_log.MAX_KINDS):
        event_log.log_exception(type(f"Kind{at}", (Exception,), {})())
    assert len(lines) == 2 + 2 * event_log.MAX_KINDS
    assert len(event_log._repeated) <= event_log.MAX_KINDS


def test_what_others_write_is_a_line_each_without_the_text_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Streamlit and uvicorn write a stranger's words as they came, and tracebacks with the words of
    whatever was raised."""
    event_log.begin()
    for name in ("streamlit.runtime.app_session", "uvicorn.error", "asyncio"):
        log = logging.getLogger(name)
        lines = heard(monkeypatch, log)
        log.warning("no part of a page is called %s", "x\n2026 headlight exception" + "y" * 5000)
        with pytest.raises(ValueError) as error:
            float(SECRET)
        log.warning("of %r", error.value, exc_info=error.value)
        called, raised = lines
        assert "no part of a page is called x?2026" in called and len(called) < 300
        assert raised.startswith("exception ") and "kind=ValueError" in raised
        assert "tests/test_logging.py:" in raised
        assert not any("\n" in line or SECRET in line for line in lines)


def test_a_name_cannot_forge_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = heard(monkeypatch)
    event_log.log_refusal("model", name='x\nexception page="attention" seconds=1 ' + "y" * 500)
    assert len(lines) == 1 and "\n" not in lines[0] and " page=" not in lines[0]
    assert len(lines[0]) < 200
