"""Panels as one HTML file, and as the lines of Python that make them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from explorer.html_export import html
from explorer.html_export.document_spec import DocumentSpec, Line, Part, TextLines, View
from explorer.panels.spec import Panel
from explorer.state.cache import Run


def document(panels: Sequence[Panel], link: str = "") -> str:
    """Panels one below the other as an HTML document that asks for nothing from elsewhere; `link`:
    the address that shows the same. Raises ValueError for no panel."""
    if not panels:
        raise ValueError("A document needs a panel.")
    captions: list[Line] = [("p", line) for panel in panels[1:] for line in panel.caption]
    parts: list[Part] = [View("panel", {"": panel.encode()}, column=2) for panel in panels]
    if captions:
        parts.append(TextLines({"": captions}, column=2))
    spec = DocumentSpec(panels[0].title, panels[0].caption, parts, {}, f"{panels[0].file}.html")
    return html.document(spec, link)


def python(panels: Sequence[Panel]) -> str:
    """The lines that make panels again and save them."""
    lines = ["from headlight import Run, edits, panels", ""]
    for at, panel in enumerate(panels):
        name = "panel" if at == 0 else f"panel_{at + 1}"
        if at == 0 or panel.run != panels[at - 1].run:
            lines.append(f"run = {_run(panel.run)}")
        lines += [f"{name} = {panel.call}", f'{name}.save("{panel.file}.html")']
    lines.append("panel.table  # named columns")
    return "\n".join(lines)


def _run(run: Run | None) -> str:
    """The call that makes a run."""
    if run is None:
        raise ValueError("This panel was not made of a run.")
    words = [repr(run.model), repr(run.text)]
    if run.edits:
        words.append("edits=(" + ", ".join(f"edits.{edit!r}" for edit in run.edits) + ",)")
    if run.target is not None:
        words.append(f"target={run.target!r}")
    return f"Run({', '.join(words)})"


def save(panel: Panel, path: str | Path) -> None:
    """Write a panel as HTML or CSV, by the ending of the path. Raises ValueError for another."""
    path = Path(path)
    if path.suffix == ".html":
        path.write_text(document([panel]), "utf-8")
    elif path.suffix == ".csv":
        path.write_text(panel.csv(), "utf-8")
    else:
        raise ValueError(f"A panel is saved as .html or .csv, not as {path.suffix or 'nothing'}.")
