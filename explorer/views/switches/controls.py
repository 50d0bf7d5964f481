"""Every switch of the Switches page. Each writes its own edits anew and leaves the others."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import terminology
from explorer.analysis.terminology import FFN, SCALE, other_norm, recording_norm_name
from explorer.state import models, url_state
from explorer.text.capability_messages import NOT_SILENCED, NOT_SWITCHED
from explorer.text.interventions import QUESTION
from explorer.views.switches import head_board, modern_switches
from explorer.views.switches.edit_actions import put, shown, take_preset
from explorer.views.switches.modern_switches import Scope, take_layered
from explorer.views.switches.run_pair import MOST_EDITS, Runs, follows
from models.edits import (
    Edit,
    MoveNorm,
    OtherNorm,
    ScaledBy,
    SharedKeys,
    SideBySide,
    UniformHead,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    applies,
    last_edit,
)
from models.recording import Recording

POSITIONS = {
    "own": "as trained",
    "none": "none",
    "shuffled": "shuffled",
    "shifted": "shifted",
    "sinusoids": "sinusoids (original paper)",
    "random": "random vectors",
    "rotary": "rotary (RoPE)",
    "distance": "distance penalty (ALiBi)",
}
NORM_PLACES = ("post", "pre", "none")
SUBLAYERS = {"attn": "attention", "cross": "cross-attention", "ffn": "FFN"}
# Of a layer, in the code of the model itself.
INSIDE = (WithoutResidual, WithoutNorm, MoveNorm, WithoutFeedForward)
MOST_BUTTONS = 6


def presets(on: Runs) -> None:
    """Switches in one click."""
    made = offered(on.plain)
    shown(
        "switch preset",
        next((name for name, wanted in made.items() if set(wanted) == set(on.edits)), None),
    )
    st.selectbox(
        "Experiments",
        list(made),
        key="switch preset",
        index=None,
        placeholder="Choose an experiment",
        on_change=take_preset,
        args=(made,),
        label_visibility="collapsed",
    )


def offered(plain: Recording) -> dict[str, tuple[Edit, ...]]:
    """Presets that this kind of model can follow."""
    heads = tuple(
        UniformHead(layer, head, one.name)
        for one in plain.attention
        for layer in range(one.pattern.shape[0])
        for head in range(one.pattern.shape[1])
    )
    own, encoder = own_norm(plain), plain.model.kind == "encoder"
    shows, all_of = models.capabilities(plain.model.name), plain.model.n_head
    separate = 1 < all_of == (shows.key_heads or all_of)
    norm, other = recording_norm_name(plain, shows.rms), "layer" if shows.rms else "rms"
    made: dict[str, tuple[Edit, ...]] = {
        "No scaling": (WithoutScale(),),
        "No positions": (WithoutPositions(),),
        "No residual connections": (WithoutResidual(),),
        f"No {norm}": (WithoutNorm(),) if own != "none" else (),
        "Pre-LN instead of post-LN": (MoveNorm("pre"),) if own == "post" else (),
        f"{other_norm(norm)} instead of {norm}": (OtherNorm(other),) if own != "none" else (),
        "Parallel attention and FFN": () if shows.parallel else (SideBySide(),),
        "No FFN": (WithoutFeedForward(),),
        "No causal mask": () if encoder else (WithoutMask(),),
        "Causal mask": (WithMask(),) if encoder else (),
        "Sliding window of four tokens": (Window(4),),
        "Multi-query attention": (SharedKeys(1),) if separate else (),
        "Uniform attention in all heads": heads if len(heads) <= MOST_EDITS else (),
    }
    taken = terminology.ABLATION_EDITS.get(
        lacks(plain)
    )  # what the model never had is not taken away
    return {
        name: edits
        for name, edits in made.items()
        if edits and edits != taken and follows(plain, *map(type, edits))
    }


def lacks(plain: Recording) -> str:
    """The part that the model was trained without, as its card names it; "" for none."""
    return str(models.facts(plain.model.name).get("without") or "")


def own_norm(plain: Recording) -> str:
    """Where the model has its norms: "post", "pre" or "none"."""
    sites = plain.streams[-1].sites
    if any(site.endswith(".read") for site in sites):
        return "pre"
    after = any(site.endswith(".normed") and site[0].isdigit() for site in sites)
    return "post" if after else "none"


def show(on: Runs) -> None:
    """All switches."""
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.subheader("Edits", anchor=False, width="content", help=QUESTION)
        if not on.proposed:
            st.button(
                "Undo all edits",
                icon=":material/undo:",
                on_click=put,
                args=((),),
                disabled=not on.edits,
            )
    presets(on)
    masks(on)
    if follows(on.plain, *terminology.POSITIONS):
        positions(on)
    if follows(on.plain, WithoutScale, ScaledBy):
        by_layer(on)
    if not follows(on.plain, *INSIDE):
        st.caption(NOT_SWITCHED.format(models.markdown_name(on.model)))
    if follows(on.plain, *head_board.BRUSHES.values()):
        head_board.show(on)
    else:
        st.caption(NOT_SILENCED.format(models.markdown_name(on.model)))


def masks(on: Runs) -> None:
    """The causal mask of a decoder, and one that an encoder never had."""
    kind = on.plain.model.kind
    if kind != "encoder" and follows(on.plain, WithoutMask):
        shown("mask off", not applies(on.edits, WithoutMask))
        other = last_edit(on.edits, Window)
        window = other.size if other else models.capabilities(on.model).window
        seen = f"itself and {window - 1} earlier tokens" if window else "itself and earlier tokens"
        st.toggle(
            "Causal mask",
            key="mask off",
            on_change=take_toggle,
            args=(on.edits, "mask off", WithoutMask(), False),
            help=f"Each token attends to {seen}. Without the mask it also attends to the tokens "
            "that it has to predict.",
        )
    if kind != "decoder" and follows(on.plain, WithMask):
        shown("mask on", applies(on.edits, WithMask))
        st.toggle(
            "Causal mask in the encoder" if kind == "encoder-decoder" else "Causal mask",
            key="mask on",
            on_change=take_toggle,
            args=(on.edits, "mask on", WithMask(), True),
            help="This encoder was trained without a mask: every token attends to every token.",
        )
    if follows(on.plain, Window):
        modern_switches.window(on)
    if follows(on.plain, SharedKeys):
        modern_switches.shared_keys(on)


def take_toggle(edits: tuple[Edit, ...], key: str, edit: Edit, when: bool) -> None:
    """The edit stands where the toggle is at `when`."""
    rest = terminology.edits_without(edits, type(edit))
    put((*rest, edit) if st.session_state[key] is when else rest)


def positions(on: Runs) -> None:
    """What is added to tell where a token stands, and by how much it is shuffled or shifted."""
    now, by = terminology.position_setting(on.edits)
    shown("positions of", now)
    names = POSITIONS | ({"own": "as trained: none"} if lacks(on.plain) == "positions" else {})
    if models.capabilities(on.model).positions == "rotary":
        names = {**names, "own": "as trained: rotary (RoPE)"}
        del names["rotary"]
    take = partial(take_positions, on.edits)
    st.selectbox(
        "Positions",
        list(names),
        key="positions of",
        format_func=names.__getitem__,
        on_change=take,
    )
    if now in ("shuffled", "shifted"):
        longest = max(len(stream.tokens) for stream in on.plain.streams)
        most = 9999 if now == "shuffled" else on.plain.model.n_positions - longest
        label = "Shuffle seed" if now == "shuffled" else "Shift, positions"
        shown("positions by", min(by, most))
        st.number_input(label, 0, most, step=1, key="positions by", on_change=take)


def take_positions(edits: tuple[Edit, ...]) -> None:
    """The positions chosen."""
    by = int(st.session_state.get("positions by") or 0)
    put(terminology.set_positions(edits, st.session_state["positions of"], by))


def by_layer(on: Runs) -> None:
    """The switches that a layer has for itself."""
    layers = on.plain.model.n_layer
    scope = Scope(on.edits, layers, url_state.whole_number("only", layers))
    if layers > 1:
        shown("where", "all" if scope.only is None else str(scope.only))
        options = ["all", *map(str, range(layers))]
        told = "The edits below apply to this layer, or to all layers."
        if layers <= MOST_BUTTONS:
            st.segmented_control(
                "Layer", options, key="where", required=True, on_change=take_scope, help=told
            )
        else:
            st.selectbox("Layer", options, key="where", on_change=take_scope, help=told)
    values = {"scale": scale(on, scope)}
    if follows(on.plain, *INSIDE):
        values |= inside(on, scope)
        values |= modern_switches.show(on, scope, own_norm(on.plain) != "none")
    mixed = [name for name, each in values.items() if any(value != each[0] for value in each)]
    if scope.only is None and mixed:
        st.caption(
            f"These differ between layers: {', '.join(mixed)}. Layer 0 is shown. An edit here "
            "applies to all layers."
        )


def take_scope() -> None:
    """Switches of all layers, or of one alone."""
    where = st.session_state["where"]
    st.session_state.only = "" if where == "all" else where


def scale(on: Runs, scope: Scope) -> list:
    """By what scores are divided. Returns what it is set to, (layer)."""
    own = on.plain.model.d_head
    values = SCALE.values(scope.edits, scope.layers)
    divisor = values[scope.here]
    unscaled = models.capabilities(on.model).scale == 1.0
    names = {"own": "1, as trained" if unscaled else f"√{own}", "off": "1 (no scale)"}
    names["other"] = "other"
    shown("scale off", "own" if divisor is None else "off" if divisor == 1 else "other")
    st.segmented_control(
        "Scores are divided by",
        tuple(names),
        key="scale off",
        wrap=True,
        format_func=names.__getitem__,
        required=True,
        on_change=take_scale,
        args=(scope,),
        help=f"√d_head, equation 1 of the paper: √{own} = {own**0.5:.2f}.",
    )
    if divisor not in (None, 1):
        shown("divisor", float(divisor))
        st.number_input(
            "Divisor",
            0.001,
            1000.0,
            step=0.5,
            format="%.3g",
            key="divisor",
            on_change=take_scale,
            args=(scope,),
        )
    return values


def take_scale(scope: Scope) -> None:
    """The divisor chosen; 2 until another one is typed."""
    other = float(st.session_state.get("divisor") or 2.0)
    choices = {"own": None, "off": 1.0, "other": other if other != 1 else 2.0}
    take_layered(SCALE, scope, choices[st.session_state["scale off"]])


def inside(on: Runs, scope: Scope) -> dict[str, list]:
    """The switches of what a layer is made of, and what each is set to, layer by layer."""
    own, places = own_norm(on.plain), [each for each in SUBLAYERS if has(on.plain, each)]
    residual, norm = terminology.residual_switch(places), terminology.norm_place_switch(own)
    values = {
        name: switch.values(scope.edits, scope.layers)
        for name, switch in (("residual", residual), ("norm", norm), ("FFN", FFN))
    }
    if lacks(on.plain) == "residual":
        st.caption("This model was trained without residual connections.")
    elif places:
        shown("residuals", values["residual"][scope.here])
        st.pills(
            "Residual connections",
            places,
            selection_mode="multi",
            key="residuals",
            wrap=True,
            format_func=SUBLAYERS.__getitem__,
            on_change=take_residual,
            args=(scope, tuple(places)),
        )
    if own == "none":
        st.caption("This model was trained without norms.")
    else:
        shown("norm at", values["norm"][scope.here])
        st.segmented_control(
            f"{recording_norm_name(on.plain, models.capabilities(on.model).rms)} placement",
            NORM_PLACES,
            key="norm at",
            wrap=True,
            required=True,
            help="Post: after each sum. Pre: before each sub-layer.",
            on_change=lambda: take_layered(norm, scope, st.session_state["norm at"]),
        )
    shown("ffn on", values["FFN"][scope.here])
    st.toggle(
        "Feed-forward network (FFN)",
        key="ffn on",
        on_change=lambda: take_layered(FFN, scope, bool(st.session_state["ffn on"])),
    )
    return values


def has(plain: Recording, place: str) -> bool:
    """True for a model whose layers have this sub-layer."""
    return f"0.{place}.wrote" in plain.streams[-1].sites


def take_residual(scope: Scope, places: tuple[str, ...]) -> None:
    """The sub-layers whose residual connection is kept."""
    wanted = [place for place in places if place in st.session_state["residuals"]]
    take_layered(terminology.residual_switch(places), scope, wanted)
