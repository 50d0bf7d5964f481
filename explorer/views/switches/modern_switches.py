"""The switches of what changed since the paper: a window, shared keys, the other norm, attention
and FFN side by side; and what every switch of a layer shares."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from explorer.analysis.terminology import PARALLEL_FFN, LayerSwitch, edits_without, norm_kind_switch
from explorer.state import models
from explorer.views.switches.edit_actions import put, shown
from explorer.views.switches.run_pair import Runs
from models.edits import NORMS, Edit, SharedKeys, Window, groups_of, last_edit


@dataclass(frozen=True)
class Scope:
    """Which layers the switches of a layer are set in: `only` one of them, None for all."""

    edits: tuple[Edit, ...]
    layers: int
    only: int | None

    @property
    def here(self) -> int:
        """The layer whose setting is shown."""
        return self.only or 0


def show(on: Runs, scope: Scope, has_norm: bool) -> dict[str, list]:
    """The switches, and what each is set to, layer by layer."""
    shows = models.capabilities(on.plain.model.name)
    kind = norm_kind_switch("rms" if shows.rms else "layer")
    values = {}
    if has_norm:
        values["kind of norm"] = kind.values(scope.edits, scope.layers)
        shown("norm kind", values["kind of norm"][scope.here])
        st.segmented_control(
            "Kind of norm",
            tuple(NORMS),
            key="norm kind",
            format_func=NORMS.__getitem__,
            required=True,
            help="RMSNorm divides by the root of the mean square and subtracts no mean. Gain and "
            "bias stay the same.",
            on_change=lambda: take_layered(kind, scope, st.session_state["norm kind"]),
        )
    if shows.parallel:
        st.caption("This model has parallel attention and FFN: both read the same state.")
        return values
    values["side by side"] = PARALLEL_FFN.values(scope.edits, scope.layers)
    shown("side by side", values["side by side"][scope.here])
    st.toggle(
        "Parallel attention and FFN",
        key="side by side",
        help="The FFN reads the input of attention, as in GPT-J and Pythia, and not its output.",
        on_change=lambda: take_layered(PARALLEL_FFN, scope, bool(st.session_state["side by side"])),
    )
    return values


def window(on: Runs) -> None:
    """How many tokens each sees, 0 for as many as in training."""
    edit, most = last_edit(on.edits, Window), on.plain.model.n_positions
    shown("window", min(edit.size, most) if edit else 0)
    st.number_input(
        "Sliding window (0 = as trained)",
        0,
        most,
        step=1,
        key="window",
        help="A token attends only to nearer tokens than this. In a decoder these are itself and "
        "earlier ones, as in Mistral. In an encoder they are on both sides.",
        on_change=take_window,
        args=(on.edits,),
    )


def take_window(edits: tuple[Edit, ...]) -> None:
    """The window chosen."""
    size = int(st.session_state["window"] or 0)
    put((*edits_without(edits, Window), *((Window(size),) if size else ())))


def shared_keys(on: Runs) -> None:
    """In how many groups heads share keys and values, as many as there are heads for none."""
    heads, own = on.plain.model.n_head, models.capabilities(on.model).key_heads
    if own is not None and own < heads:
        st.caption(
            f"This model uses grouped-query attention: {heads} heads share {own} keys and values."
        )
        return
    if heads == 1:
        return
    edit = last_edit(on.edits, SharedKeys)
    shown("shared keys", heads if edit is None else edit.groups)
    st.select_slider(
        "Number of key/value heads (grouped-query attention)",
        groups_of(heads),
        key="shared keys",
        help="With fewer, neighbouring heads share keys and values: here the mean of their own. "
        "Llama 3 and Mistral use this to reduce the KV cache. With 1 it is multi-query attention. "
        "Each head keeps its queries, so weights still differ.",
        on_change=take_shared_keys,
        args=(on.edits, heads),
    )


def take_shared_keys(edits: tuple[Edit, ...], heads: int) -> None:
    """The number of groups chosen."""
    groups = int(st.session_state["shared keys"])
    put((*edits_without(edits, SharedKeys), *((SharedKeys(groups),) if groups < heads else ())))


def take_layered(switch: LayerSwitch, scope: Scope, value: object) -> None:
    """A switch of a layer, set in the layers of the scope."""
    put(switch.put(scope.edits, scope.layers, scope.only, value))
