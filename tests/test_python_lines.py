"""What the Export menu's Python gives where no panel does: the table that the page offers, cell for
cell. The line of a panel is in `tests/test_panels.py`."""

from __future__ import annotations

import ast
import csv
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from app_harness import ROOT, clean
from test_training_page import opened

from explorer.app.layout import export_menu
from explorer.app.state import host, jobs
from explorer.figures.csv import to_csv, without_comments

TEXT = 'The cat\'s "mat" </script> sat\\n on it.'


@pytest.mark.slow
def test_the_lines_train_the_readers_own_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a training that was stopped and went on, by its attention on the text and by its whole
    curve; they give the table that the page offers as CSV."""
    tables: list[Callable[[], str]] = []

    def offer(label: str, name: str, mime: str, make: Callable[[], Any]) -> None:
        if mime == "text/csv":
            tables[:] = [make]

    monkeypatch.setattr(export_menu, "offer", offer)
    app = opened("live", live_task="copy", text=TEXT)
    app.session_state["export menu"] = True
    one = None
    try:
        for button in ("live start", "live on"):
            app.button(key=button).click().run()
            one = app.session_state["training"]
            begun, until = one.progress.step, time.monotonic() + 120
            while one.learning and one.progress.step < begun + 3:
                assert time.monotonic() < until
                time.sleep(0.1)
            jobs.trainings.stop(one)
            while one.learning:
                time.sleep(0.1)
            clean(app.run())
    finally:
        if one is not None:
            jobs.trainings.stop(one)
    (code,) = (each.value for each in app.code if "import" in each.value)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["recording"] == host.record_training(one.run, TEXT)
    assert names["run"].progress.curve == one.progress.curve
    offered = [
        *csv.reader(io.StringIO(without_comments(tables[0]().decode("utf-8-sig")), newline=""))
    ]
    made = [*csv.reader(io.StringIO(to_csv(names["table"]), newline=""))]
    assert offered == made and len(made) > 1


def tables_without_a_panel(path: Path) -> Iterator[str]:
    """The functions of a file that offer a table as CSV which is no panel's."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            if isinstance(call, ast.Call):
                name = ast.unparse(call.func).rpartition(".")[2]
                given = [ast.unparse(each) for each in call.args]
                if name in {"with_table", "offer_csv"} and "made.table" not in given:
                    yield function.name


def test_no_table_of_the_app_is_left_out() -> None:
    found = {
        name
        for path in (ROOT / "explorer" / "app" / "views").rglob("*.py")
        for name in tables_without_a_panel(path)
    }
    assert found == {"token_table"}, "its lines are run above"
