"""The notebook of docs, run with a real kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import driver
import nbformat
import pytest

import headlight
from explorer.figures import figure_engine
from explorer.panels import spec
from models.contract.edits import ZeroHead

ROOT = Path(__file__).resolve().parent.parent
# True where a canvas has pixels of different colours.
PAINTED = """e => new Set(new Uint32Array(
  e.getContext("2d").getImageData(0, 0, e.width, e.height).data.buffer)).size > 1"""


# What is on top where a sentence stands.
SEEN = """e => { const box = e.getBoundingClientRect();
  return document.elementFromPoint(box.x + 5, box.y + 5).tagName; }"""


# In a process of its own: a kernel's loop and a browser's do not share one.
RUN = """
import sys, nbclient, nbformat
book = nbformat.read(sys.argv[1], as_version=4)
nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """What the cells of the notebook of docs gave, run with a real kernel."""
    book, made = ROOT / "docs" / "notebook.ipynb", tmp_path_factory.mktemp("run") / "made.ipynb"
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-c", RUN, str(book), str(made)],
        check=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    cells = nbformat.read(made, as_version=4).cells
    return [each for cell in cells for each in cell.get("outputs", [])]


@pytest.fixture(scope="module")
def frames(outputs: list[dict]) -> list[str]:
    """The HTML among them, in order."""
    shown = [each["data"] for each in outputs if "data" in each]
    return [each["text/html"] for each in shown if "text/html" in each]


@pytest.mark.slow
def test_the_notebook_of_docs_runs_and_draws(outputs: list[dict], frames: list[str]) -> None:
    book = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "kept without what it once drew"
    assert "it attends to animal: 0.72" in "".join(each.get("text", "") for each in outputs)
    assert len(frames) == 5
    # Each view is held once: beside it stands its name.
    plain = [each["data"]["text/plain"] for each in outputs if "text/html" in each.get("data", {})]
    assert all(each.startswith("<Headlight ") and len(each) < 200 for each in plain)
    assert sum(len(str(each)) for each in outputs) < 1.01 * sum(map(len, frames)) + 5000
    for frame in frames:
        assert "<iframe srcdoc=" in frame and 'sandbox="allow-scripts' in frame
        assert "allow-same-origin" not in frame
        page = unescape(frame.partition('srcdoc="')[2].partition('"')[0])
        assert page.startswith("<!doctype html>") and "Content-Security-Policy" in page


@pytest.mark.browser
@pytest.mark.slow
def test_what_the_kernel_made_is_drawn_in_the_notebook(
    frames: list[str], alone: Callable[..., driver.Visitor]
) -> None:
    """Each output in a page of the notebook's kind, without a network."""
    cells = "".join(f'<div class="output">{frame}</div>' for frame in frames)
    page = alone(f"<!doctype html><main data-drawn>{cells}</main>").page
    words = (
        "Layer 2, head 1",
        "“it” gives “animal” 72%",
        "sister",
        "voiture",
        "heads of A and B",
    )
    covered = page.locator(".output p").first
    assert covered.evaluate(SEEN) == "IFRAME", "the frame lies over its sentence"
    for at, said in enumerate(words):
        shown = page.frame_locator(".output iframe").nth(at)
        shown.locator("main[data-drawn]").wait_for()
        canvases = shown.locator("canvas:visible")
        assert all(canvases.nth(at).evaluate(PAINTED) for at in range(canvases.count()))
        assert shown.get_by_text(said).count(), said


@pytest.mark.browser
@pytest.mark.slow
def test_where_frames_are_forbidden_a_sentence_says_the_way_out(
    frames: list[str], browser: object
) -> None:
    bare = re.sub(r"<iframe.*?</iframe>", "", frames[0], flags=re.S)  # as viewers of files do
    forbid = "<meta http-equiv=Content-Security-Policy content=\"child-src 'none'\">"
    page = browser.new_context().new_page()
    for shown in (bare, forbid + frames[0].replace("srcdoc=", "src='about:srcdoc' data-x=")):
        page.set_content(f"<!doctype html>{shown}")
        said = page.locator("p").first
        assert said.is_visible() and "this viewer shows no frames" in said.inner_text()
        assert "write(page)" in said.inner_text()
    page.context.close()


@pytest.mark.browser
@pytest.mark.slow
def test_where_frames_are_forbidden_a_panel_is_a_still_picture(browser: object) -> None:
    panel = headlight.panels.attention.head(headlight.Run("encoder", "<b>the</b> cat & dog"))
    page = browser.new_context().new_page()
    page.set_content(re.sub(r"<iframe.*?</iframe>", "", panel._repr_html_(), flags=re.S))
    image = page.get_by_role("img", name=panel.title)
    assert image.is_visible() and image.evaluate("each => each.naturalWidth") == 1000
    page.set_content(panel._repr_html_())
    assert page.locator("img").evaluate(SEEN) == "IFRAME", "the frame lies over it"
    assert panel._repr_svg_().startswith("<svg ") and len(panel._repr_svg_()) < 100_000
    page.context.close()


# ---- a panel that is pressed ---------------------------------------------------------------------

# A notebook as anywidget makes one of a page: what both sides share, and who hears of a change.
HOST = """async ([code, values]) => {
  const heard = {};
  const model = {
    get: (name) => values[name],
    set: (name, value) => (values[name] = value),
    save_changes: async () => {
      Object.assign(values, await window.python(values.chosen));
      heard["change:document"]?.();
    },
    on: (event, hear) => (heard[event] = hear),
    off: (event) => delete heard[event],
  };
  const { default: widget } = await import(URL.createObjectURL(
    new Blob([code], { type: "text/javascript" })));
  window.end = widget.render({ model, el: document.querySelector("#cell") });
}"""


@pytest.mark.browser
@pytest.mark.slow
def test_a_press_in_a_panel_comes_back_to_python_and_draws_the_panel_of_it(browser: object) -> None:
    run = headlight.Run("encoder", "The animal was too tired.")
    widget = headlight.panels.attention.heads(run, layer=0, head=1).widget()
    pressed: list[dict] = []
    widget.observe(lambda change: pressed.append(change.new), "chosen")

    def python(chosen: dict) -> dict[str, str]:
        widget.set_state({"chosen": chosen})
        return {"document": widget.document}

    page = browser.new_context().new_page()
    page.expose_function("python", python)
    page.set_content("<!doctype html><div id=cell></div>")
    values = {"document": widget.document, "height": widget.height}
    page.evaluate(HOST, [str(widget._esm), values])
    inside = page.frame_locator("iframe")
    inside.locator("main[data-drawn]").wait_for()
    page.evaluate("document.querySelector('iframe').dataset.before = 1")
    inside.get_by_role("button", name="Layer 2, head 5:").click()
    page.wait_for_function("[...document.querySelectorAll('iframe')].every(e => !e.dataset.before)")
    inside.locator("main[data-drawn]").wait_for()
    assert pressed == [{"layer": "2", "head": "5"}]
    assert (widget.panel.arguments["layer"], widget.panel.arguments["head"]) == (2, 5)
    inside.locator('[aria-pressed="true"][aria-label^="Layer 2, head 5"]').wait_for()
    page.evaluate("end()")
    page.context.close()


def test_what_is_pressed_is_followed_as_far_as_the_panel_takes_it() -> None:
    run = headlight.Run("encoder", "The animal was too tired.")
    panel = headlight.panels.attention.head(run, layer=0, head=1)
    widget = panel.widget()
    widget.chosen = {"layer": "1", "head": 5, "tab": "word", "edits": "ZeroHead:0:0"}
    assert widget.panel.title == headlight.panels.attention.head(run, layer=1, head=5).title
    assert widget.document == str(widget.panel.html())
    for odd in ({"layer": 99}, {"layer": "x"}, {"address": "head=7&layer=<b>"}, {"nothing": 1}, {}):
        before = widget.panel
        widget.chosen = odd
        assert widget.panel is before, odd
    widget.chosen = {"address": "layer=2&head=0&tab=word"}
    assert widget.panel.arguments["layer"] == 2


def test_without_anywidget_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = headlight.panels.attention.heads(headlight.Run("encoder", "the cat"))
    monkeypatch.setattr(spec, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"\[notebook\]"):
        panel.widget()


def test_without_an_engine_a_notebook_has_no_still_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_engine, "find_spec", lambda name: None)
    monkeypatch.setattr(figure_engine.shutil, "which", lambda name: None)
    panel = headlight.panels.attention.head(headlight.Run("encoder", "the cat"))
    assert panel._repr_svg_() is None and "<img" not in panel._repr_html_()


def test_a_page_and_a_panel_are_printed_in_a_line() -> None:
    recording = headlight.record("encoder", "the cat sat")
    made = headlight.page(recording)
    assert re.fullmatch(r"<Headlight document '.+', [\d,]+ characters>", repr(made))
    assert str(made).startswith("<!doctype html>") and f"{made}" == made
    panel = headlight.panels.attention.heads(headlight.Run("encoder", "the cat sat"))
    assert repr(panel) == f"<Headlight panel attention.heads {panel.title!r}>"


@pytest.mark.slow
def test_a_view_of_a_recording_says_its_edits_and_its_choices() -> None:
    recording = headlight.record("encoder", "the cat sat on the mat", ZeroHead(0, 1))
    shown = headlight.page(recording, layer=0, head=1)
    assert str(ZeroHead(0, 1)) in shown and headlight.page(recording) != shown
    # A page's address calls "view" how a head is drawn.
    assert "view=Matrix" in headlight.page(recording, view="Matrix")
    findings = headlight.page(recording, "findings")
    assert headlight.page(recording, view="findings") == findings
    with pytest.raises(ValueError, match="no view is called"):
        headlight.page(recording, "nothing")
