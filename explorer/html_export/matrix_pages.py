"""The position vectors of a text as a file, one matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis.caption import caption
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.html_export.document_spec import FIRST, DocumentSpec, View
from explorer.html_export.request import ExportRequest


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
