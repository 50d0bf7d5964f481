"""The notebook door: the notebook of docs, run with a real kernel."""

from __future__ import annotations

import os
from html import unescape
from pathlib import Path

import nbclient
import nbformat
import pytest

from explorer import notebook
from models.edits import ZeroHead

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_the_notebook_of_docs_runs_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    book = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells), "kept without what it once drew"
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    drawn, printed = [], ""
    for output in (each for cell in book.cells for each in cell.get("outputs", [])):
        drawn += [output["data"]["text/html"]] if "text/html" in output.get("data", {}) else []
        printed += output.get("text", "")
    assert "it looks at animal: 0.81" in printed
    assert len(drawn) == 5
    for frame in drawn:
        assert frame.startswith("<iframe srcdoc=") and 'sandbox="allow-scripts' in frame
        assert "allow-same-origin" not in frame
        page = unescape(frame.partition('srcdoc="')[2].partition('"')[0])
        assert page.startswith("<!doctype html>") and "Content-Security-Policy" in page


def test_the_door_shows_texts_and_recordings_alike(tmp_path: Path) -> None:
    recording = notebook.record("the cat sat on the mat", edits=(ZeroHead(0, 1),))
    shown = notebook.heads(recording, layer=0, head=1)
    assert str(ZeroHead(0, 1)) in shown.page
    shown.save(str(tmp_path / "heads.html"))
    assert (tmp_path / "heads.html").read_text("utf-8") == shown.page
    assert notebook.heads("the cat sat").page != shown.page
    # A page's address calls "view" how a head is drawn.
    assert "view=Matrix" in notebook.heads(recording, view="Matrix").page
    residual = notebook.show(recording, "residual").page
    assert notebook.show(recording, view="residual").page == residual
    with pytest.raises(ValueError, match="no view is called"):
        notebook.show("the cat", "nothing")
