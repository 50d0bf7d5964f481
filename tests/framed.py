"""The numbers that a panel's payload frames, read as the browser has them: with nothing of the code
that put the frames there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from explorer.components import codec
from explorer.panels.spec import Panel

VECTORS = {"strips": "strips", "product": "factors", "network": "layers"}
TEXTS = {"facts": "facts", "texttable": "rows"}


def payload(panel: Panel) -> dict[str, Any]:
    """The header of a panel's payload, its blocks of numbers in their places."""
    header, blocks = codec.decode(panel.encode())
    return _filled(header, blocks)


def _filled(value: Any, blocks: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_filled(each, blocks) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"block"}:
        return blocks[value["block"]]
    if set(value) == {"block", "low", "high"}:  # levels, which are colours and no numbers
        return np.full(blocks[value["block"]].shape, np.nan)
    return {name: _filled(each, blocks) for name, each in value.items()}


def figures(header: dict[str, Any], formula: str) -> Iterator[dict[str, Any]]:
    """The figures beside which a formula has its numbers: of a slider those of its own frames."""
    for figure in header["figures"]:
        frames = figure.get("frames", [])
        has_own = any(each["formulas"] for each in frames)
        for frame in frames:
            if not has_own or (frame["formulas"] or [])[-1:] == [formula]:
                yield from [*frame["figures"], *filter(None, [frame["beside"]])]
        yield figure


def framed(figure: dict[str, Any]) -> Iterator[tuple[float | str, str, str]]:
    """What stands at each frame of a figure: the number or text, what a vector calls it, and the
    number that is printed there."""
    for part in figure.get("figures", []):
        yield from framed(part)
    for row, column, printed in figure["framed"]:
        yield from ((*each, printed) for each in _at(figure, row, column))


def _at(figure: dict[str, Any], row: int, column: int) -> Iterator[tuple[float | str, str]]:
    kind = figure["kind"]
    if kind in VECTORS:
        vector = figure[VECTORS[kind]][row]
        across = vector["shape"][1] if kind == "product" else len(vector["values"])
        yield float(vector["values"][column]), str(column % across)
    elif kind == "matrix":
        cell = row * len(figure["columns"]) + column
        yield float(figure["values"][cell]), figure["columns"][column]
        yield from [(figure["words"][cell], "")] if figure["words"] else []
    elif kind == "bars":
        yield float(figure["rows"][row]["values"][column]), ""
        yield figure["rows"][row]["texts"][column], ""
    elif kind == "chart" and row < 0:
        yield float(figure["guides"][column][0]), ""
    elif kind == "chart":
        yield float(figure["series"][row]["y"][column]), ""
    elif kind == "flow":
        yield float(figure["lanes"][row]["chance"]), ""
    elif kind == "relay":
        yield float(figure["values"][column]), ""
    elif kind == "dials":
        yield figure["dials"][row]["text"], ""
    elif kind == "loops":
        yield list(_counts(figure["boxes"]))[row], ""
    else:
        yield figure[TEXTS[kind]][row][column], ""


def _counts(boxes: list[dict[str, Any]]) -> Iterator[str]:
    for box in boxes:
        yield box["count"]
        yield from _counts(box["inside"])
