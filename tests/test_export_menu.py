"""The Export menu: on every page, with files, a file that stands alone, and Python that runs."""

from __future__ import annotations

import ast
from pathlib import Path

import driver
import numpy as np
import pytest
from conftest import read_once
from streamlit.testing.v1 import AppTest
from visiting import page_at

from explorer.sentences.recipe import recipe
from models import library

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(file.stem for file in (ROOT / "pages").glob("*.py"))
TEXT = 'The cat\'s "mat" </script> sat\\n on it.'
# What of each page is told to be other than at first, and the view that its file then shows.
SET = {
    "attention": ({"layer": "1", "head": "5"}, "heads"),
    "anatomy": ({"layer": "1", "head": "5", "edits": "ZeroHead:0:1:self"}, "anatomy"),
    "positions": ({}, "positions"),
    "residual": ({"write": "Share"}, "residual"),
    "embeddings": ({"second": "The dog sat on it."}, "paths"),
    "summaries": ({"sum_what": "Rollout"}, "summary"),
    "lookup": ({"look_temperature": "0.5"}, "lookup"),
    "predictions": ({"hidden": "2"}, "lens"),
    "translation": ({"model": "translator"}, "alignment"),
    "switches": ({"edits": "WithoutPositions"}, "comparison"),
    "compare": ({"other_what": "Sentence", "other_text": "The dog sat on it."}, "comparison"),
}


def opened(page: str, **asked: str) -> AppTest:
    """A page with its Export menu open."""
    app = page_at(page, **{"text": TEXT, **asked})
    app.session_state["export menu"] = True
    return app.run()


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
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
    assert names["recording"].text == TEXT
    made = (tmp_path / f"{view}.html").read_text("utf-8")
    assert f"weights {names['recording'].model.fingerprint}" in made
    if "edits" in asked:
        assert (names.get("other") or names["recording"]).edits
    if page == "attention":
        same = library.record(read_once("encoder"), TEXT)
        np.testing.assert_array_equal(
            names["recording"].attention[0].pattern, same.attention[0].pattern
        )
    labels = [each.proto.label for each in app.get("download_button")]
    assert any(label.lower().startswith(("all heads", "the ", view)) for label in labels), labels


def test_whatever_was_typed_is_a_string_in_the_lines() -> None:
    hostile = "'''\"\"\"\\\n\u2028'); import os #"
    source = ("encoder", hostile, hostile, hostile)
    lines = recipe("heads", source, source, [("layer", hostile)], hostile)
    found = [each.value for each in ast.walk(ast.parse(lines)) if isinstance(each, ast.Constant)]
    assert found.count(hostile) == 9
    imports = [each for each in ast.parse(lines).body if isinstance(each, ast.Import)]
    assert not imports and "\u2028" not in lines


@pytest.mark.browser
@pytest.mark.slow
def test_the_menu_in_the_browser(visitor: driver.Visitor, tmp_path: Path) -> None:
    page = visitor.open("?layer=1&head=5").page
    page.get_by_role("button", name="download icon").click()
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
