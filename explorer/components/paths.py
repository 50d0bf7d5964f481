"""Paths of tokens in a plane, with a slider over the sites; and what belongs to the one word that is followed: its curves, and its nearest words.

The paths are sent once. Which word is followed and which site is on screen travel with the second, small one, and stepping and playing
stay in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from explorer.components import wire
from explorer.components.bundle import loader


def walk(
    texts: Sequence[dict],
    coordinates: np.ndarray,
    error: np.ndarray,
    norm: np.ndarray,
    moved: np.ndarray,
    *,
    titles: Sequence[str],
    axes: Sequence[str],
    explained: Sequence[float],
    caption: Sequence[str],
    file: str,
    token: str,
) -> bytes:
    """What the browser needs to draw paths and move along them.

    texts: for each group of points {"name", "kind", "labels", "places"}, kind 0 and 1 for the texts, 2 and 3 for anchors; the points of all
    arrays in that order. coordinates (point, site, 2); error, norm and moved (point, site). explained: the share along each of the two axes.
    """
    header = {
        "kind": "walk",
        "token": token,
        "texts": list(texts),
        "titles": list(titles),
        "axes": list(axes)[:2],
        "explained": [float(share) for share in explained][:2],
        "caption": list(caption),
        "file": file,
    }
    arrays = {"coordinates": coordinates, "error": error, "norm": norm, "moved": moved}
    return wire.encode(header, {name: array.astype(np.float32) for name, array in arrays.items()})


def around(
    *,
    chosen: Sequence[int | None],
    stage: int,
    trails: str,
    frame: str,
    lead: bool,
    lines: Sequence[dict],
    values: np.ndarray,
    measure: str,
    titles: Sequence[str],
    caption: Sequence[str],
    file: str,
    token: str,
) -> bytes:
    """What belongs to the followed word.

    chosen: its point in each text, counted over all points, None where there is none; stage from 0; trails
    "Chosen" or "All"; frame "All" points or "Close" to the followed word; lead: the site comes from here, because no plane is on
    screen. lines: {"name", "kind", "group"} for each row of values (line, site).
    """
    header = {
        "kind": "around",
        "token": token,
        "chosen": list(chosen),
        "stage": stage,
        "trails": trails,
        "frame": frame,
        "lead": lead,
        "lines": list(lines),
        "measure": measure,
        "titles": list(titles),
        "caption": list(caption),
        "file": file,
    }
    return wire.encode(header, {"values": values.astype(np.float32)})


def nearest(texts: Sequence[dict], titles: Sequence[str], token: str) -> bytes:
    """The words nearest to the followed one. texts: {"token", "name", "kind", "rows"}, rows (site, rank) of [word, cosine]."""
    return wire.encode(
        {"kind": "near", "token": token, "near": list(texts), "titles": list(titles)}, {}
    )


_mount = st.components.v2.component(
    "headlight.paths",
    html='<div class="paths"></div>',
    js=loader("paths"),
)


def show(
    data: bytes,
    key: str,
    on_pick: Callable[[], None],
    on_stage: Callable[[], None],
    on_switch: Callable[[], None],
) -> None:
    """Draw what `walk`, `around` or `nearest` made. When its callback runs, `st.session_state[key]` has "pick" ([text, place]), "stage"
    (from 0) or "switch" (["trails", "Chosen" or "All"] or ["frame", "All" or "Close"])."""
    _mount(
        data=data,
        key=key,
        on_pick_change=on_pick,
        on_stage_change=on_stage,
        on_switch_change=on_switch,
    )
