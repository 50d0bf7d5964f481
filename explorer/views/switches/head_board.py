"""The board of heads for zero ablation, mean ablation and uniform attention."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.components import interventions
from explorer.layout.controls import pick
from explorer.state import cache, url_state
from explorer.views.switches.edit_actions import put
from explorer.views.switches.run_pair import Runs
from models.edits import Edit, HeadEdit, MeanHead, PatchHead, UniformHead, ZeroHead

BRUSHES: dict[str, type[HeadEdit]] = {"Zero": ZeroHead, "Mean": MeanHead, "Even": UniformHead}
SHOWN = ZeroHead, MeanHead, UniformHead, PatchHead
STATES = {ZeroHead: "zero", MeanHead: "mean", UniformHead: "even", PatchHead: "patch"}
LABELS = {"Zero": "×  zero", "Mean": "μ  mean", "Even": "≡  uniform"}


def show(on: Runs) -> None:
    """The board and what a press on it does."""
    brush = url_state.one_of("brush", tuple(BRUSHES))
    pick(
        "Head ablation",
        LABELS,
        "brush",
        help="Zero: the head’s output is 0. Mean: its output is its mean over this text. Uniform: "
        "it gives every key the same weight. Press a head, or L for its layer. Press again to "
        "undo.",
    )
    of = on.which()
    off = {
        (edit.layer, edit.head): STATES[type(edit)]
        for edit in on.edits
        if isinstance(edit, SHOWN) and edit.attention == of.name
    }
    name = cache.picture_name(on.plain, "board", of.name, repr(sorted(off.items())), brush)
    size = of.pattern.shape[:2]
    interventions.show(
        interventions.board(size, off, brush=LABELS[brush].split()[1], token=name),
        "board",
        partial(take, on.edits, of.name, size),
    )


def take(edits: tuple[Edit, ...], attention: str, size: tuple[int, int]) -> None:
    """A press on the board: the head, or all of a layer, becomes what the brush says; where all are
    that already, as they were."""
    layer, _, head = str(st.session_state["board"].get("head") or "").partition(".")
    if not layer.isdecimal():
        return
    pressed = [int(head)] if head.isdecimal() else list(range(size[1]))
    kind = BRUSHES[st.session_state.brush]
    wanted = [kind(int(layer), each, attention) for each in pressed]
    rest = tuple(
        edit
        for edit in edits
        if not isinstance(edit, SHOWN)
        or (edit.attention, edit.layer) != (attention, int(layer))
        or edit.head not in pressed
    )
    put(rest if all(edit in edits for edit in wanted) else (*rest, *wanted))
