"""Curves over the steps of a training, one panel below the other, with the step that is looked at,
and the controls that move it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader

# From here on the last step is so many times the first that steps stand on a log axis.
LOG_FROM = 50


@dataclass(frozen=True)
class ChartLine:
    """One line: points (step, value), its colour as a place in the theme's list, thick or not,
    dashed or not."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: int = 0
    bold: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class ChartPanel:
    """Lines over one axis of values. low and high: what the axis must reach; it reaches further
    where a line does."""

    name: str
    lines: Sequence[ChartLine]
    low: float
    high: float
    digits: int = 2


def payload(
    panels: Sequence[ChartPanel],
    *,
    about: str,
    token: str,
    title: str,
    caption: Sequence[str],
    file: str,
    steps: Sequence[int] = (),
    at: int = -1,
) -> bytes:
    """What the browser needs to draw them.

    about: what they are, for those who hear it. token: names the picture, the step apart. steps:
    the checkpoints that can be gone to; `at`: the place of the one looked at, -1 for none.
    """
    every = [step for panel in panels for line in panel.lines for step, _ in line.points]
    first = min((step for step in every if step > 0), default=1)
    last = max(every, default=1)
    header = {
        "token": token,
        "about": about,
        "title": title,
        "caption": list(caption),
        "file": file,
        "steps": list(steps),
        "at": at,
        "log": last >= LOG_FROM * first,
        "low": first,
        "high": last,
        "zero": bool(every) and min(every) <= 0,
        "panels": [
            {
                "name": panel.name,
                "low": panel.low,
                "high": panel.high,
                "digits": panel.digits,
                "lines": [_plain(line) for line in panel.lines],
            }
            for panel in panels
        ],
    }
    return codec.encode(header, {})


def _plain(line: ChartLine) -> dict:
    return {
        "name": line.name,
        "colour": line.colour,
        "bold": line.bold,
        "dashed": line.dashed,
        "points": [[step, round(y, 5)] for step, y in line.points if isfinite(y)],
    }


_mount = st.components.v2.component(
    "headlight.curves",
    html='<div class="curves"></div>',
    js=loader("line_chart"),
)


def show(data: bytes, key: str, on_step: Callable[[], None] = lambda: None) -> None:
    """Draw the curves. The place of the checkpoint that a reader goes to stands in
    `st.session_state[key]["step"]` when `on_step` is called."""
    _mount(data=data, key=key, on_step_change=on_step)
