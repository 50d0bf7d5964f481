"""Every view of the app with its Export menu open: the tables that it offers as CSV, and those that
its lines of Python give."""

from __future__ import annotations

import ast
import csv
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from app_harness import ROOT
from conftest import read_once
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened as opened_by_a_reader
from test_hf_models_on_pages import there

import headlight
from explorer.analysis.csv import to_csv
from explorer.layout import export_menu
from models import registry
from models.own_model import OwnModel

TEXT = 'The cat\'s "mat" </script> sat\\n on it.'
Rows = list[list[str]]
# What offers a table as CSV, where a view calls it.
OFFERS = {"with_table", "table.with_table", "offer_csv", "tables"}
VIEWS = [ROOT / "explorer" / "views"]


@dataclass
class Offered:
    """What a run of a page offers as CSV, each by the name of its file, and where in the code: the
    line on which each call of the stack stands."""

    made: dict[str, Callable[[], str]] = field(default_factory=dict)
    lines: set[tuple[str, int]] = field(default_factory=set)


@contextmanager
def heard() -> Iterator[Offered]:
    """Collect what pages offer from here on."""
    offered, offer = Offered(), export_menu.offer

    def hears(label: str, name: str, mime: str, make: Any) -> None:
        offer(label, name, mime, make)
        if mime != "text/csv":
            return
        offered.made[name] = make
        frame = sys._getframe(1)
        while frame.f_back is not None:
            offered.lines.add((os.path.realpath(frame.f_code.co_filename), frame.f_lineno))
            frame = frame.f_back

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_menu, "offer", hears)
        yield offered


def opened(offered: Offered, page: str, **asked: str) -> AppTest:
    """A page with its Export menu open, of a model that is borrowed too."""
    if ":" in asked.get("model", ""):
        there(asked["model"])
    app = opened_by_a_reader(page, **{"text": TEXT, **asked})
    app.session_state["export menu"] = True
    again(app, offered)
    return app


def again(app: AppTest, offered: Offered) -> None:
    """The page run once more; what it offers now."""
    offered.made.clear()
    app.run()
    assert not app.exception and not app.error


def said(app: AppTest) -> str:
    """The menu's lines of Python."""
    (code,) = (each.value for each in app.code if "import" in each.value)
    return code


def rows_of(text: str) -> Rows:
    """A table without what is said about it."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return [row[:-1] for row in rows] if rows[0][-1] == "about" else rows


def tables_in(names: Mapping[str, Any]) -> dict[str, Rows]:
    """The tables that lines left behind."""
    return {
        name: rows_of(to_csv(each))
        for name, each in names.items()
        if isinstance(each, dict)
        and not name.startswith("_")
        and each
        and all(isinstance(key, str) and hasattr(cells, "__len__") for key, cells in each.items())
        and not all(isinstance(cells, (tuple, dict)) for cells in each.values())
    }


@dataclass(frozen=True)
class Lined:
    """A view: its lines of Python; the tables that it offers, by the names of
    their files, and where in the code it does; the tables that the lines give, by their names, and
    the files that they write."""

    code: str
    offers: dict[str, Rows]
    lines: frozenset[tuple[str, int]]
    gives: dict[str, Rows]
    files: tuple[str, ...]

    @property
    def without(self) -> list[str]:
        """The files of tables that no line gives."""
        return [name for name, rows in self.offers.items() if rows not in self.gives.values()]


def once(name: str) -> OwnModel:
    """A model as lines ask for it, a shipped one read from its files once for all lines."""
    return registry.load(name) if ":" in name else read_once(name)


def ran(app: AppTest, offered: Offered) -> tuple[Lined, dict[str, Any]]:
    """A page's lines run in an empty folder; with the names that they left behind."""
    code = said(app)
    offers = {name: rows_of(make()) for name, make in offered.made.items()}
    names: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(headlight, "load", once)
        exec(code, names)
        files = tuple(os.listdir())
    return Lined(code, offers, frozenset(offered.lines), tables_in(names), files), names


def places() -> set[tuple[str, int, int]]:
    """Calls in the code of views that offer a table as CSV: file, first line and last."""
    found = set()
    for path in (path for folder in VIEWS for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and offers(node):
                found.add((os.path.realpath(path), node.lineno, node.end_lineno or node.lineno))
    return found


def offers(call: ast.Call) -> bool:
    """True for a call that offers a table which is no panel's."""
    name, given = ast.unparse(call.func), [ast.unparse(each) for each in call.args]
    if "made.table" in given:
        return False
    return name.removeprefix("output.") in OFFERS or (
        name == "export.offer" and "'text/csv'" in given
    )
