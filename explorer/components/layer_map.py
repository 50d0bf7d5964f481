"""The map under the frame: the sentence's way through the model, with the page's own part lit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.components import codec
from explorer.components.bundle import loader


@dataclass(frozen=True)
class Stop:
    """A stop of the map: what stands on it, what it says when pointed at, where it leads, what
    stands on it on a narrow screen, the height of its bar from 0 to 1 (below 0 for none), whether
    the page shows it, and whether a gap goes before it."""

    label: str
    says: str
    goal: str
    short: str
    bar: float = -1.0
    lit: bool = False
    gap: bool = False


@dataclass(frozen=True)
class CurrentPrediction:
    """What the model says now: the likeliest words with their probabilities, and the head that
    pushed the first of them most (on the map, when pointed at, where it leads), "" for none. note:
    what the words say besides when pointed at."""

    words: Sequence[tuple[str, float]] = ()
    head: str = ""
    says: str = ""
    goal: str = ""
    note: str = ""


_mount = st.components.v2.component(
    "headlight.way", html='<div class="way"></div>', js=loader("layer_map")
)


def show(
    stops: Sequence[Stop],
    said: CurrentPrediction,
    lit: bool,
    about: str,
    on_goal: Callable[[], None],
) -> None:
    """Draw the map. `lit` where the page shows what is said. about: what it is, for those who hear
    it. A chosen stop's goal stands in `st.session_state["way"]["goal"]` when `on_goal` is
    called."""
    header = {
        "stops": [vars(stop) for stop in stops],
        "words": [[word, float(p)] for word, p in said.words],
        "pushed": [said.head, said.says, said.goal] if said.head else [],
        "lit": lit,
        "note": said.note,
        "about": about,
    }
    _mount(data=codec.encode(header, {}), key="way", on_goal_change=on_goal)
