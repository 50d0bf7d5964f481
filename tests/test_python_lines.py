"""What the Export menu's Python gives on views that have no file: the numbers on screen, each table
of it the very one that the page itself offers."""

from __future__ import annotations

import ast
import csv
import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bounds import STORED
from conftest import on_page, read_once
from streamlit.testing.v1 import AppTest
from visiting import ROOT, page_at

from explorer.analysis.csv import to_csv
from explorer.components import wire
from explorer.frame import export
from models import library

TEXT = 'The cat\'s "mat" </script> sat\\n on it.'
EDITED = {"edits": "WithoutPositions,ZeroHead:0:1:self"}
TRANSLATED = {"model": "translator", "text": "The red car is new."}
# Every view that a page shows in the place of the one that its file has: the page, what is chosen,
# and how many tables the lines give that the page offers as CSV.
VIEWS = {
    "twins": ("training", {"train_view": "Twins"}, 1),
    "LayerNorm": ("residual", {"flow": "LayerNorm", "token": "3", "times": "5"}, 2),
    "LayerNorm of a decoder": ("residual", {"flow": "LayerNorm", "model": "decoder"}, 2),
    "LayerNorm of one of two streams": (
        "residual",
        {"flow": "LayerNorm", "stream": "decoder", "norm": "Mean after", **TRANSLATED},
        2,
    ),
    "what heads wrote": ("residual", {"flow": "Heads", "writer": "Length"}, 1),
    "gradient": ("residual", {"flow": "Gradient", "token": "2", "block": "1.ffn"}, 3),
    "gradient, typed target": (
        "residual",
        {"flow": "Gradient", "target": "La voiture est neuve.", **TRANSLATED},
        3,
    ),
    "distance of positions": ("positions", {"ask": "Distance", "places": "20", "width": "32"}, 2),
    "shift of positions": ("positions", {"ask": "Shift", "pair": "2", "shift": "4"}, 1),
    "positions in a sentence": ("positions", {"ask": "Sentence", "layer": "1", "head": "2"}, 2),
    "another order": ("positions", {"ask": "Order", "shuffle": "7"}, 3),
    "another order, typed": (
        "positions",
        {"ask": "Order", "order": "Retype", "positions": "With", "layer": "0", "head": "1"},
        3,
    ),
    "another order of a translation": ("positions", {"ask": "Order", **TRANSLATED}, 3),
    "adding positions": ("positions", {"ask": "Adding"}, 1),
    "a graph": ("lookup", {"look_at": "Graph", "layer": "1", "head": "3", "token": "4"}, 2),
    "a graph of a layer": ("lookup", {"look_at": "Graph", "look_heads": "Mean"}, 1),
    "a graph between two texts": (
        "lookup",
        {"look_at": "Graph", "attention": "cross", **TRANSLATED},
        2,
    ),
    "three constructions": ("lookup", {"look_at": "Three", "look_before": "Scores"}, 1),
    "words in, words out": ("lookup", {"look_at": "Words", "layer": "0", "head": "2"}, 1),
    "why the scale": ("lookup", {"look_at": "Scale"}, 1),
    "flow": ("summaries", {"sum_what": "Flow", "sum_layer": "1", "text": "The cat sat."}, 1),
    "weight x value": ("summaries", {"sum_what": "Values", "sum_layer": "0", "sum_head": "1"}, 1),
    "quiet mean": ("summaries", {"sum_what": "Mean", "att_keep": "No specials"}, 1),
    "values across": ("summaries", {"sum_what": "Values", "attention": "cross", **TRANSLATED}, 1),
    "summed writes": ("summaries", {"sum_what": "Writes", "sum_measure": "Share"}, 1),
    "switched vectors": ("switches", {"effects": "Vectors", "token": "2", **EDITED}, 1),
    "switched vectors of a translation": (
        "switches",
        {"effects": "Vectors", "edits": "WithoutScale:", **TRANSLATED},
        1,
    ),
    "trained without": ("switches", {"effects": "Trained without"}, 1),
    "nearest heads": ("compare", {"other_view": "Nearest", "other_edits": "WithoutScale:"}, 2),
    "nearest heads of two models": (
        "compare",
        {"other_view": "Nearest", "other_what": "Model", "other_model": "decoder"},
        2,
    ),
    "both sides' vectors": ("compare", {"other_view": "Vectors"}, 3),
    "vectors of two models": (
        "compare",
        {
            "other_view": "Vectors",
            "other_what": "Model",
            "other_model": "decoder",
            "other_swap": "1",
        },
        3,
    ),
    "vectors of two sentences": (
        "compare",
        {"other_view": "Vectors", "other_what": "Sentence", "other_text": "The dog sat on it."},
        3,
    ),
}


def opened(page: str, offered: dict[str, Any], **asked: str) -> tuple[AppTest, str, str]:
    """A page with its Export menu open; the heading of its lines, and the lines."""
    app = page_at(page, **{"text": TEXT, **asked})
    app.session_state["export menu"] = True
    offered.clear()
    app.run()
    assert not app.exception and not app.error
    (code,) = (each.value for each in app.code if "import" in each.value)
    (said,) = (each.value for each in app.markdown if each.value.startswith("**Python**"))
    return app, said, code


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What makes each CSV that the page offers, by the name of its file."""
    made: dict[str, Any] = {}
    offer = export.offer

    def heard(label: str, name: str, mime: str, make: Any) -> None:
        offer(label, name, mime, make)
        if mime == "text/csv":
            made[name] = make

    monkeypatch.setattr(export, "offer", heard)
    return made


def rows_of(text: str) -> list[list[str]]:
    """A table without what is said about it."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    return [row[:-1] for row in rows] if rows[0][-1] == "about" else rows


def tables_in(names: Mapping[str, Any]) -> dict[str, list[list[str]]]:
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


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_the_lines_give_the_tables_of_the_view_on_screen(
    view: str, offered: dict[str, Any]
) -> None:
    page, asked, n = VIEWS[view]
    _, said, code = opened(page, offered, **asked)
    assert said.startswith("**Python** that gives the numbers of"), said
    on_page = [rows_of(make()) for make in offered.values()]
    names: dict[str, Any] = {}
    exec(compile(code, view, "exec"), names)
    made = tables_in(names)
    same = [name for name, rows in made.items() if rows in on_page]
    assert len(same) == n, (set(made) - set(same), list(offered))


# What stands beside a page's file: how many of its tables the lines give after the file.
BESIDE = {
    "anchors": ("embeddings", {"contexts": "Two", "second": "The dog ate fruit."}, 3),
    "anchors in one text": ("embeddings", {"contexts": "One", "plane": "Words"}, 3),
    "sums of a decoder": (
        "embeddings",
        {"contexts": "One", "sums": "Sums", "specials": "Shown", "model": "decoder"},
        2,
    ),
    "checkpoints": ("training", {"model": "decoder", "text": "The cat sat on the mat."}, 1),
    "a head as a table": ("attention", {"view": "Table", "layer": "1", "head": "5"}, 1),
    "a head between words": (
        "attention",
        {"att_unit": "Words", "att_keep": "Quiet", "att_sum": "Renormalised"},
        1,
    ),
    "a head between two texts": (
        "attention",
        {"view": "Plotly", "attention": "cross", "att_keep": "No specials", **TRANSLATED},
        1,
    ),
    "a logit's parts and neurons": ("predictions", {"hidden": "2", "ffn": "1"}, 2),
    "a decoder's parts": ("predictions", {"model": "decoder", "token": "3", "against": "9"}, 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("view", BESIDE)
def test_the_lines_give_the_numbers_beside_a_file(
    view: str, offered: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, asked, n = BESIDE[view]
    _, said, code = opened(page, offered, **asked)
    assert said.endswith("again, and the numbers beside it")
    on_page = [rows_of(make()) for make in offered.values()]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, view, "exec"), names)
    assert names["page"] and list(tmp_path.glob("*.html"))
    assert sum(rows in on_page for rows in tables_in(names).values()) == n


@pytest.mark.slow
def test_of_a_training_the_heads_leave_at_the_step_on_screen(
    offered: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = library.checkpoints("decoder")[0]
    chosen = {"model": "decoder", "train_step": name.partition("@")[2], "layer": "0", "head": "1"}
    _, _, code = opened("training", offered, **chosen)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, "training", "exec"), names)
    assert names["recording"] == library.record(read_once(name), TEXT)
    assert "layer='0', head='1'" in code and (tmp_path / "heads.html").exists()


# What runs on the page for a while: its start button, and what is chosen.
RUNNING = {
    "beside an RNN": ("start experiment", "residual", {"flow": "RNN", "lag": "1"}),
    "patched heads": (
        "start sweep",
        "switches",
        {"effects": "Patching", "donor": "The dog sat.", "edits": "WithoutScale:", "token": "3"},
    ),
    "patched states": (
        "start sweep",
        "switches",
        {"effects": "Patching", "patch": "Sites", "donor": "The dog sat.", "model": "decoder"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("view", RUNNING)
def test_the_lines_give_what_a_computation_on_the_page_comes_to(
    view: str, offered: dict[str, Any]
) -> None:
    button, page, asked = RUNNING[view]
    app, said, code = opened(page, offered, text="The cat sat.", **asked)
    assert "gives the numbers" in said, "before it was begun"
    app.button(key=button).click().run()
    until = time.monotonic() + 240
    while not any(each.value.startswith(":material/check:") for each in app.markdown):
        assert time.monotonic() < until
        time.sleep(0.5)
        app.run()
    names: dict[str, Any] = {}
    exec(compile(code, view, "exec"), names)
    on_page = [rows_of(make()) for make in offered.values()]
    assert rows_of(to_csv(names["table"])) in on_page


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"other_edits": "WithoutScale:"},
        {"other_what": "Model", "other_model": "decoder"},
        {"other_what": "Model", "other_model": "minilm"},
    ],
)
def test_the_lines_give_what_both_sides_say(asked: dict, offered: dict[str, Any]) -> None:
    app, said, code = opened("compare", offered, other_view="Answers", **asked)
    assert "what both sides say" in said
    names: dict[str, Any] = {}
    exec(compile(code, "answers", "exec"), names)
    drawn = [
        wire.decode(each.proto.bytes)
        for each in on_page(app)
        if each.proto.component_name == "headlight.bars"
    ]
    made = [names[name] for name in ("first", "second") if name in names]
    assert len(made) == len(drawn) == (1 if asked.get("other_model") == "minilm" else 2)
    for table, (header, _) in zip(made, drawn):
        assert [row["label"] for row in header["rows"]] == table["word"]
        values = [row["value"] for row in header["rows"]]
        assert values == pytest.approx(table["probability"], abs=STORED)


# Where a page keeps its views: their names, the choice, and those that need no lines of their own:
# the one that the file shows, and a training of the reader's, which nothing can make again.
KEPT = {
    "positions": ("SCREENS", "ask", {"Waves"}),
    "residual": ("FLOWS", "flow", {"Writes"}),
    "lookup": ("WAYS", "look_at", {"Hard"}),
    "switches": ("EFFECTS", "effects", {"Attention"}),
    "compare": ("VIEWS", "other_view", {"Heads", "Answers"}),  # Answers has its own test
    "training": ("VIEWS", "train_view", {"Checkpoints", "Live"}),
}


@pytest.mark.parametrize("page", KEPT)
def test_no_view_of_a_page_is_left_out(page: str) -> None:
    name, choice, others = KEPT[page]
    tree = ast.parse((ROOT / "pages" / f"{page}.py").read_text("utf-8"))
    (kept,) = (
        each.value
        for each in tree.body
        if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") == name
    )
    assert isinstance(kept, ast.Dict)
    views = {ast.literal_eval(key) for key in kept.keys if key is not None}
    every = [*VIEWS.values(), *((of, asked, 0) for _, of, asked in RUNNING.values())]
    tried = {asked[choice] for of, asked, _ in every if of == page and choice in asked}
    assert views - others == tried
