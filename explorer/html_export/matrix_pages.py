"""Pages whose picture is one matrix, or a few beside each other, as files: positions, residual
stream, summaries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.caption import caption
from explorer.analysis.residual import WRITES, write_grid
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.html_export.document_spec import FIRST, DocumentSpec, View
from explorer.html_export.request import ExportRequest

SUMS = ("Mean", "Max", "Rollout")


def positions(asked: ExportRequest) -> DocumentSpec:
    """What the model adds to each token for its position. Choice: stream. Raises ValueError where
    nothing is added."""
    stream = asked.recording.stream(asked.choices.get("stream") or asked.recording.streams[0].name)
    if "pos.wrote" not in stream.sites:
        raise ValueError(f"{asked.recording.model.name} adds nothing to the stream for positions")
    added = stream.at("pos.wrote")
    rows = [f"{at} {token}" for at, token in enumerate(stream.tokens)]
    dimensions = [str(at) for at in range(added.shape[1])]
    top = float(np.abs(added).max()) or 1.0
    panel = matrix.MatrixPanel("", added, -top, top)
    return _sheet(
        asked,
        "What is added for the positions",
        "positions",
        [panel],
        (rows, dimensions, ("token", "dimension")),
    )


def residual(asked: ExportRequest) -> DocumentSpec:
    """What each sub-layer wrote at each token. Choices: stream, write (a measure)."""
    stream = asked.recording.stream(asked.choices.get("stream") or asked.recording.streams[0].name)
    measures = tuple(each.name for each in WRITES)
    grid = write_grid(stream, asked.one_of("write", measures))
    if not grid.values.size:
        raise ValueError(f"{asked.recording.model.name} does not show what its sub-layers wrote")
    columns = [" ".join((each.group, each.label)).strip() for each in grid.columns]
    low, high = float(np.nanmin(grid.values)), float(np.nanmax(grid.values))
    panel = matrix.MatrixPanel("", grid.values, min(0.0, low), high)
    title = f"What each sub-layer wrote: {grid.measure.name.lower()}, token by token"
    return _sheet(asked, title, "residual", [panel], (stream.tokens, columns, ("token", "site")))


def _allowed(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    return np.where(allowed, values, np.nan)


def _sheet(
    asked: ExportRequest,
    title: str,
    path: str,
    panels: Sequence[matrix.MatrixPanel],
    axes: tuple[Sequence[str], Sequence[str], tuple[str, str]],
) -> DocumentSpec:
    rows, columns, sides = axes
    about = caption(asked.recording, title)
    file = f"headlight-{asked.recording.model.name}-{path}"
    sheet = matrix.MatrixSheet(
        rows, columns, [False] * len(columns), sides, missing="not allowed", choose=False
    )
    data = matrix.panels(panels, sheet, Picture(title, about, file, path))
    view = View("matrix", {FIRST: data}, column=2, place="matrices")
    return DocumentSpec(title, about, [view], {}, file, path, asked.address())
