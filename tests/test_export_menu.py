"""The Export menu: on every page, with files, a file that stands alone, and Python that runs."""

from __future__ import annotations

import ast
import gzip
import re
from base64 import b64decode
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl

import driver
import numpy as np
import pytest
from app_harness import TABS, page_at
from conftest import read_once
from streamlit.testing.v1 import AppTest

from explorer import export
from explorer.analysis import corpus
from explorer.components import codec
from explorer.text.python_snippets import recipe
from models.edits import describe

ROOT = Path(__file__).resolve().parent.parent
TEXT = 'The cat\'s "mat" </script> sat\\n on it.'
# Tabs of panels have files of their own, see test_panels.py.
OF_PANELS = (
    "weight",
    "aggregated",
    "circuits",
    "concepts",
    "diagram",
    "word",
    "lens",
    "attribution",
    "positions",
    "residual",
    "embeddings",
    "translate",
)
# What of each page is told to be other than at first, and the view that its file then shows.
SET = {
    "heads": ({"layer": "1", "head": "5", "view": "Matrix"}, "heads"),
    "generate": ({"model": "decoder"}, "heads"),
    "edit": ({"edits": "WithoutPositions"}, "comparison"),
    "compare": ({"other_what": "Sentence", "other_text": "The dog sat on it."}, "comparison"),
}


def opened(page: str, **asked: str) -> AppTest:
    """A page with its Export menu open."""
    app = page_at(page, **{"text": TEXT, **asked})
    app.session_state["export menu"] = True
    return app.run()


@pytest.mark.slow
@pytest.mark.parametrize("page", [each for each in TABS if each not in OF_PANELS])
def test_what_the_menu_gives_makes_the_picture_again(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, view = SET.get(page, ({}, "heads"))
    app = opened(page, **asked)
    assert not app.exception
    (code,) = (each.value for each in app.code if "import" in each.value)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, page, "exec"), names)
    if page == "claims":
        assert len(names["table"]["verdict"]) > 20
        return
    if page == "twins":
        assert names["table"]
        return
    if page == "sentences":  # the text of the field above is none of those that were read
        texts, attention = app.session_state["sentences read"]
        own = [
            corpus.measure_recording(read_once("encoder").record(text))[attention] for text in texts
        ]
        assert len(texts) > 1 and TEXT not in texts
        for name, values in corpus.share_columns(own).items():
            assert list(names["shares"][name]) == list(values), name
        assert "habits" in names
        return
    assert names["recording"].text == TEXT
    made = (tmp_path / f"{view}.html").read_text("utf-8")
    assert f"weights {names['recording'].model.fingerprint}" in made
    if "edits" in asked:
        assert (names.get("other") or names["recording"]).edits
    if page == "attention":
        same = read_once("encoder").record(TEXT)
        np.testing.assert_array_equal(
            names["recording"].attention[0].pattern, same.attention[0].pattern
        )
    labels = [each.proto.label for each in app.get("download_button")]
    assert any(label.lower().startswith(("all heads", "the ", view)) for label in labels), labels


SIDES = {
    "Edit": (
        {"other_edits": "ZeroHead:0:1:self"},
        "encoder",
        TEXT,
        "head 1 of layer 0 zero-ablated",
    ),
    "Sentence": ({"other_text": "The dog sat on it."}, "encoder", "The dog sat on it.", "none"),
    "Model": ({"other_model": "decoder"}, "decoder", TEXT, "none"),
}


def opens(made: str) -> dict:
    """The pair of heads that a comparison's file opens: its place in A and in B."""
    packed = re.search(r'<script type="application/octet-stream" id="data">(.*?)</script>', made)[1]
    header = codec.decode(gzip.decompress(b64decode(packed)))[0]
    told = next(part for part in header["parts"] if "pair" in part["by"])
    return told["data"][header["state"]["pair"]][0]


@pytest.mark.slow
@pytest.mark.parametrize("swapped", ["", "1"])
@pytest.mark.parametrize("what", SIDES)
def test_a_comparison_leaves_with_its_sides_and_its_pair(
    what: str, swapped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more, model, text, edits = SIDES[what]
    app = opened("compare", other_what=what, other_pair="1.3", other_swap=swapped, **more)
    assert not app.exception
    (code,) = (each.value for each in app.code if "import" in each.value)
    assert "other_pair='1.3'" in code
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "compare", "exec"), names)
    sides = [names["recording"], names["other"]]
    plain, chosen = reversed(sides) if swapped else sides
    assert (plain.model.name, plain.text, plain.edits) == ("encoder", TEXT, ())
    assert (chosen.model.name, chosen.text) == (model, text)
    assert (describe(chosen.edits) or "none") == edits
    made = (tmp_path / "comparison.html").read_text("utf-8")
    pair = opens(made)
    assert pair["a"] == [1, 3]
    # Where shapes differ that of B is the nearest, as on the page.
    assert ".".join(map(str, (*pair["a"], *pair["b"]))) == app.session_state["pair shown"]
    # The way back lays the same beside each other.
    query = unescape(re.search(r"In Headlight: <code>/compare\?(.*?)</code>", made)[1])
    back = page_at("compare", **dict(parse_qsl(query)))
    back.session_state["export menu"] = True
    again = next(each.value for each in back.run().code if "import" in each.value)
    assert again == code


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"other_what": "Sentence"},
        {"other_what": "Model"},
        {"other_edits": "WithoutScale:,HideToken:99"},
        {"model": "translator", "other_edits": "WithoutScale:"},
    ],
)
def test_a_comparison_leaves_as_it_stands_though_little_was_chosen(
    asked: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page chose by itself, what it left out, and what both decoders read."""
    app = opened("compare", **asked)
    assert not app.exception
    (code,) = (each.value for each in app.code if "import" in each.value)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "compare", "exec"), names)
    for side, made in zip(app.session_state["sides shown"], ("recording", "other")):
        shown = side.record()
        assert (shown.text, shown.edits) == (names[made].text, names[made].edits)
        for one, two in zip(shown.attention, names[made].attention):
            np.testing.assert_array_equal(one.pattern, two.pattern)
    assert (tmp_path / "comparison.html").exists()


@pytest.mark.slow
def test_where_nothing_can_be_compared_all_heads_leave_the_page() -> None:
    app = opened("compare", other_what="Sentence", other_text="Ωμέγα 日本")
    assert not app.exception and app.info, "no word in common"
    (code,) = (each.value for each in app.code if "import" in each.value)
    assert "'heads'" in code


@pytest.mark.slow
def test_a_head_of_b_that_was_chosen_is_the_one_in_the_file() -> None:
    a, b = (read_once(name).record(TEXT) for name in ("encoder", "decoder"))
    made = export.page(a, "comparison", model=read_once("encoder"), other=b, other_pair="1.3.0.2")
    assert (opens(made)["a"], opens(made)["b"]) == ([1, 3], [0, 2])
    for wrong in ("1", "1.3.0", "99.0", "1.3.99.0", "1.x"):
        with pytest.raises(ValueError, match="head|other_pair"):
            export.page(a, "comparison", model=read_once("encoder"), other=b, other_pair=wrong)


@pytest.mark.slow
@pytest.mark.parametrize("drawn", ["Matrix", "Both", "Table"])
def test_a_head_leaves_as_it_is_drawn_where_a_file_can(
    drawn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("attention", layer="1", head="5", view=drawn)
    (code,) = (each.value for each in app.code if "import" in each.value)
    assert ("view=" in code) is (drawn in ("Matrix", "Both"))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "attention", "exec"), {})
    assert "layer=1&amp;head=5" in (tmp_path / "heads.html").read_text("utf-8")


def test_whatever_was_typed_is_a_string_in_the_lines() -> None:
    hostile = "'''\"\"\"\\\n\u2028'); import os #"
    source = ("encoder", hostile, hostile, hostile)
    lines = recipe("heads", source, source, [("layer", hostile)], hostile)
    found = [each.value for each in ast.walk(ast.parse(lines)) if isinstance(each, ast.Constant)]
    assert found.count(hostile) == 9
    imports = [each for each in ast.parse(lines).body if isinstance(each, ast.Import)]
    assert [alias.name for each in imports for alias in each.names] == ["headlight"]
    assert "\u2028" not in lines


@pytest.mark.browser
@pytest.mark.slow
def test_the_menu_in_the_browser(visitor: driver.Visitor, tmp_path: Path) -> None:
    page = visitor.open("?layer=1&head=5").page
    page.get_by_role("button", name="Export").click()
    heads = page.get_by_role("button", name="All heads", exact=True)
    heads.wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    with page.expect_download() as waited:
        heads.click()
    file = tmp_path / "file.html"
    waited.value.save_as(file)
    alone = visitor.context.new_page()
    alone.goto(file.as_uri())
    alone.wait_for_selector("main[data-drawn]")
    assert alone.locator("h2").inner_text() == "Layer 1, head 5"
    assert alone.get_by_role("link").get_attribute("href").startswith(f"{visitor.server}/?layer=1")
    alone.close()
    assert visitor.export("Matrix as SVG").name == "headlight-encoder-L1H5.svg"

    page.goto(f"{visitor.server}/compare?other_pair=1.3&other_swap=1")
    page.get_by_role("heading", name="L1 H3 of both sides").wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    made = visitor.export("Comparison").read_text("utf-8")
    (model_a,), (model_b,) = (
        re.findall(f"<p dir=auto>({who} · model .*?)</p>", made) for who in ("Headlight", "B")
    )
    assert opens(made)["a"] == [1, 3]
    assert "edits: no positions" in model_a and model_b.endswith("edits: none")
