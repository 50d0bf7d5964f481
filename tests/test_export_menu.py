"""The Export menu: on every page, with files, a file that stands alone, and Python that runs."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import driver
import pytest
from app_harness import page_at, panels_on, told
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from explorer.app.layout import export_menu
from explorer.app.server import panel
from explorer.app.views.training import training_code
from explorer.components import codec
from explorer.panels import attention
from explorer.panels.spec import python
from models.live.training_plan import Progress, TrainingPlan
from models.runtime.run import Run

TEXT = 'The cat\'s "mat" </script> sat\\n on it.'
# Tabs without panels; those of panels have files of their own, see test_panels.py.
BARE = ("live", "lessons", "classroom")


def opened(page: str, **asked: str) -> AppTest:
    """A page with its Export menu open."""
    app = page_at(page, **{"text": TEXT, **asked})
    app.session_state["export menu"] = True
    return app.run()


@pytest.mark.slow
@pytest.mark.parametrize("page", BARE)
def test_a_page_without_panels_gives_all_heads(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened(page)
    assert not app.exception
    (code,) = (each.value for each in app.code if "import" in each.value)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, page, "exec"), names)
    assert names["run"].text == TEXT
    fingerprint = names["run"].recording().model.fingerprint
    made = [file.read_text("utf-8") for file in tmp_path.glob("*.html")]
    assert made and all(f"weights {fingerprint}" in each for each in made)
    assert "One HTML file" in [each.proto.label for each in app.get("download_button")]


@pytest.mark.slow
def test_a_layer_that_is_not_there_is_a_sentence_in_the_menu() -> None:
    app = opened("lessons", layer="99", head="0")
    assert not app.exception
    assert "There is no layer 99" in told(app, "info")


@pytest.mark.slow
def test_every_figure_of_a_page_has_its_address_in_the_menu() -> None:
    for page in ("heads", "compare", "residual"):
        app = opened(page, layer="1")
        assert not app.exception
        on_page = {each["token"] for each in panels_on(app)}
        (menu,) = (
            codec.decode(each.proto.bytes)[0]
            for each in app.get("bidi_component")
            if each.proto.component_name == "headlight.pictures"
        )
        assert on_page and on_page <= menu["addresses"].keys()
        with TestClient(Starlette(routes=panel.ROUTES)) as client:
            for token, address in menu["addresses"].items():
                made = client.get(f"/{address.replace('.html?', '.bin?')}").content
                assert codec.decode(made)[0]["token"] == token


def test_no_link_leads_to_a_model_that_not_every_visitor_has() -> None:
    made = attention.head(Run("encoder", TEXT))
    kept = replace(made, run=Run("hub:somebody/model", TEXT))
    assert export_menu._addresses([made, kept]).keys() == {made.token}


def test_whatever_was_typed_is_a_string_in_the_lines() -> None:
    hostile = "'''\"\"\"\\\n\u2028'); import os #"
    run = Run("encoder", hostile)
    for lines in (
        python(attention.opened(run, {})),
        training_code(TrainingPlan("copy"), Progress(), hostile),
    ):
        tree = ast.parse(lines)
        found = [each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)]
        assert found.count(hostile) == 1
        imports = [each for each in tree.body if isinstance(each, ast.ImportFrom)]
        assert [each.module for each in imports] == ["headlight"]
        assert "\u2028" not in lines


@driver.browser_test
def test_the_menu_in_the_browser(visitor: driver.Visitor, tmp_path: Path) -> None:
    page = visitor.open("?layer=1&head=5").page
    file = visitor.export("One HTML file")
    alone = visitor.context.new_page()
    alone.goto(file.as_uri())
    alone.wait_for_selector("main[data-drawn]")
    assert alone.locator("h2").last.inner_text().startswith("Layer 1, head 5")
    assert "layer=1&head=5" in alone.get_by_role("link").get_attribute("href")
    alone.close()
    picture = visitor.export(re.compile("^Layer 1, head 5.* as SVG$"))
    assert picture.name == "headlight-encoder-L1H5.svg"
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visitor.open_export()
    row = page.locator(".pictures .row", has_text="Layer 1, head 5")
    row.get_by_role("button", name="Copy link to this figure", exact=True).click()
    page.get_by_role("button", name="Copied").wait_for()
    alone = visitor.context.new_page()
    alone.goto(page.evaluate("navigator.clipboard.readText()"))
    alone.wait_for_selector("main[data-drawn]")
    assert alone.locator("h2").inner_text().startswith("Layer 1, head 5")
    alone.close()
    page.keyboard.press("Escape")

    chosen = "layer=1&head=3&other_swap=1&other_edits=WithoutPositions"
    page.goto(f"{visitor.server}/experiment?tab=compare&{chosen}")
    page.get_by_text("A, L1 H3: no positions").first.wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    made = visitor.export("One HTML file").read_text("utf-8")
    (model_a,), (model_b,) = (
        re.findall(f"<p dir=auto>({who} model .*?)</p>", made) for who in ("Headlight ·", "B:")
    )
    assert "edits: no positions" in model_a and model_b.endswith("edits: none")
