"""Paths of tokens in a plane, with a slider over the sites; and what belongs to the one word that
is followed: its curves, and its nearest words.

The paths are sent once. Which word is followed and which site is on screen travel with the second,
small one, and stepping and playing stay in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader


@dataclass(frozen=True)
class PictureName:
    """A picture's name (who waits for it waits for this), its file's, and what it says when it
    stands alone."""

    token: str
    file: str
    caption: tuple[str, ...]

    def header(self, kind: str) -> dict:
        """What every picture's header begins with."""
        return {"kind": kind, "token": self.token, "file": self.file, "caption": list(self.caption)}


@dataclass(frozen=True)
class PathSelection:
    """What the reader looks at. chosen: the followed word's point in each text, counted over all
    points, None where there is none; stage: the site, from 0; trails: "Chosen" or "All"; frame:
    "All" points or "Close" to the word; lead: the site comes from here, because no plane is on
    screen."""

    chosen: tuple[int | None, int | None]
    stage: int
    trails: str
    frame: str
    lead: bool


def walk(
    groups: Sequence[dict],
    arrays: dict[str, np.ndarray],
    titles: Sequence[str],
    axes: Sequence[str],
    explained: Iterable[float],
    named: PictureName,
) -> bytes:
    """What the browser needs to draw paths and move along them.

    groups: of points, {"name", "kind", "labels", "places"}, kind 0 and 1 for the texts, 2 and 3 for
    anchors; the points of all arrays in that order. arrays: coordinates (point, site, 2), error,
    norm and moved (point, site). explained: the share along each of the two axes.
    """
    header = named.header("walk") | {
        "texts": list(groups),
        "titles": list(titles),
        "axes": list(axes)[:2],
        "explained": [float(share) for share in explained][:2],
    }
    return codec.encode(header, {name: array.astype(np.float32) for name, array in arrays.items()})


def around(
    place: PathSelection,
    lines: Sequence[tuple[str, int, int]],
    values: np.ndarray,
    measure: str,
    titles: Sequence[str],
    named: PictureName,
) -> bytes:
    """What belongs to the followed word. lines: name, kind and group (0 solid, 1 dashed) of each
    row of values (line, site)."""
    header = named.header("around") | asdict(place)
    header |= {
        "chosen": list(place.chosen),
        "lines": [dict(zip(("name", "kind", "group"), line)) for line in lines],
        "measure": measure,
        "titles": list(titles),
    }
    return codec.encode(header, {"values": values.astype(np.float32)})


def nearest(texts: Sequence[dict], titles: Sequence[str], token: str) -> bytes:
    """The words nearest to the followed one. texts: {"token", "name", "kind", "rows"}, rows (site,
    rank) of [word, cosine]."""
    return codec.encode(
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
    """Draw what `walk`, `around` or `nearest` made. When its callback runs, `st.session_state[key]`
    has "pick" ([text, place]), "stage" (from 0) or "switch" (["trails", "Chosen" or "All"] or
    ["frame", "All" or "Close"])."""
    _mount(
        data=data,
        key=key,
        on_pick_change=on_pick,
        on_stage_change=on_stage,
        on_switch_change=on_switch,
    )
