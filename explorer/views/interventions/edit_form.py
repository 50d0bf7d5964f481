"""The edits of the address: experiments in one press, a form that adds an edit, and chips that
remove one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from explorer.analysis import terminology
from explorer.analysis.terminology import FFN, PARALLEL_FFN, SCALE, LayerSwitch, edits_without
from explorer.layout.controls import pick
from explorer.panels import interventions
from explorer.panels.interventions import Edits, can_follow, refusal, scales_scores
from explorer.state import models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from models.edits import (
    NORMS,
    HeadEdit,
    HideToken,
    MeanHead,
    MoveNorm,
    OtherNorm,
    PatchHead,
    SharedKeys,
    ShuffleTokens,
    SideBySide,
    UniformHead,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    describe,
    from_line,
    groups_of,
    to_line,
)
from models.recording import Attention, Recording

MAX_EDITS = 300
MAX_CHIPS = 16
MAX_WARNINGS = 3
ABLATIONS: dict[str, type[HeadEdit]] = {"Zero": ZeroHead, "Mean": MeanHead, "Even": UniformHead}
ABLATION_NAMES = {"Zero": "zero", "Mean": "mean", "Even": "uniform"}
POSITIONS = {
    "none": "none",
    "shuffled": "shuffled",
    "shifted": "shifted",
    "sinusoids": "sinusoids (original paper)",
    "random": "random vectors",
    "rotary": "rotary (RoPE)",
    "distance": "distance penalty (ALiBi)",
}
SUBLAYERS = {"attn": "attention", "cross": "cross-attention", "ffn": "FFN"}


@dataclass(frozen=True, eq=False)
class Edited:
    """A run under edits, the run as trained, the attention, head and token on screen, and the head
    that an experiment ablates. It is made anew in every run and nowhere kept."""

    run: Run
    plain: Recording
    attention: Attention
    at: tuple[int, int]
    token: int
    first: tuple[int, int]

    @property
    def edits(self) -> Edits:
        """The edits of the run."""
        return self.run.edits

    @property
    def experiments(self) -> dict[str, Edits]:
        """The named experiments on the model, one of them on a head."""
        return interventions.named_experiments(self.plain, *self.first, self.attention.name)


def masked() -> bool:
    """True where the selected word is masked for the prediction."""
    return not st.session_state.seen


def put(edits: Edits) -> None:
    """Make these the edits of the address."""
    st.session_state.edits = to_line(terminology.sorted_edits(edits))


def from_address(plain: Recording) -> Edits:
    """The edits of the address that this model and text can follow; a warning names the others."""
    line = str(st.session_state.edits)
    words = line.split(",") if line else []
    good: list = []
    wrong = []
    if len(words) > MAX_EDITS:
        wrong.append(f"only the first {MAX_EDITS} of {len(words)} are read")
    for word in words[:MAX_EDITS]:
        try:
            read = from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is not a valid edit")
            continue
        if any(isinstance(edit, (HideToken, ShuffleTokens)) for edit in read):
            why = "changes the input, and here both runs read the same tokens"
            wrong.append(f"“{read[0]}” {why}")
        else:
            good.extend(edit for edit in read if edit not in good)
    if refusal(plain, tuple(good)):
        reasons = [(edit, refusal(plain, (edit,))) for edit in good]
        good = [edit for edit, why in reasons if not why]
        wrong += [why for _, why in reasons if why]
    if wrong:
        more = [f"and {len(wrong) - MAX_WARNINGS} more"] if len(wrong) > MAX_WARNINGS else []
        st.warning(
            "These edits do not apply to this model and are left out:\n"
            + "\n".join(f"- {literal(why)}" for why in (*wrong[:MAX_WARNINGS], *more))
        )
    return tuple(good)


def controls(on: Edited) -> None:
    """The form that adds an edit, the experiments, and the edits as chips, each removed by a
    press."""
    named, parts, state = on.experiments, offered(on.plain), st.session_state
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if parts:
            with st.popover("Add an edit", icon=":material/add:", width="content"):
                _form(on, parts)
        if named:
            state["experiment"] = next(
                (name for name, edits in named.items() if set(edits) == set(on.edits)), None
            )
            st.selectbox(
                "Experiments",
                list(named),
                key="experiment",
                index=None,
                placeholder="Choose an experiment",
                on_change=_take_experiment,
                args=(named,),
                label_visibility="collapsed",
                width=260,
            )
        if state.edits:
            _chips(on)
    if not url_state.fits_address(state.edits):
        st.caption(
            "A link cannot contain this many edits. They stay in this tab, and every caption and "
            "file names them."
        )


def _take_experiment(named: Mapping[str, Edits]) -> None:
    put(named.get(st.session_state["experiment"] or "", ()))


def _chips(on: Edited) -> None:
    """The edits, many of them in one line."""
    if len(on.edits) > MAX_CHIPS:
        st.markdown(f"**Edited:** {literal(describe(on.edits))}", width="content")
    elif on.edits:
        names = [f"{literal(str(edit))} ✕" for edit in on.edits]
        st.session_state["edit chips"] = list(range(len(names)))
        st.pills(
            "Edits; press one to remove it",
            range(len(names)),
            selection_mode="multi",
            key="edit chips",
            wrap=True,
            format_func=names.__getitem__,
            on_change=_take_chips,
            args=(on.edits,),
            label_visibility="collapsed",
        )
    st.button("Undo all edits", type="tertiary", on_click=put, args=((),))


def _take_chips(edits: Edits) -> None:
    put(tuple(edit for at, edit in enumerate(edits) if at in st.session_state["edit chips"]))


# ---- the form ------------------------------------------------------------------------------------


def _form(on: Edited, parts: Mapping[str, Callable[[Edited], Edits]]) -> None:
    """Show the form of an edit: the part of the model, the edit, and the button that adds it."""
    part = st.selectbox("Part of the model", list(parts), key="edit part")
    made = parts[part](on)
    st.button(
        "Add",
        key="add",
        type="primary",
        on_click=put,
        args=(made,),
        disabled=set(made) == set(on.edits),
        help="The weights stay the same; the model runs again with this step changed.",
    )


def offered(plain: Recording) -> dict[str, Callable[[Edited], Edits]]:
    """The parts that this model lets one edit, each with its fields, which return all edits."""
    shows, kind = models.capabilities(plain.model.name), plain.model.kind
    lacks = str(models.facts(plain.model.name).get("without", ""))
    heads = plain.model.n_head
    parts: dict[str, tuple[bool, tuple[type, ...], Callable[[Edited], Edits]]] = {
        "Attention head": (True, tuple(ABLATIONS.values()), _heads),
        "Positions": (True, terminology.POSITIONS, _positions),
        "Scale of the scores": (scales_scores(plain), (WithoutScale,), _scale),
        "Residual connection": (lacks != "residual", (WithoutResidual,), _residual),
        "Norm": (norm_place(plain) != "none", (WithoutNorm, MoveNorm, OtherNorm), _norm),
        "Feed-forward network": (True, (WithoutFeedForward, SideBySide), _ffn),
        "Causal mask": (True, (WithMask if kind == "encoder" else WithoutMask,), _mask),
        "Sliding window": (True, (Window,), _window),
        "Key/value heads": (1 < heads == (shows.key_heads or heads), (SharedKeys,), _keys),
    }
    return {
        name: fields
        for name, (has, kinds, fields) in parts.items()
        if has and can_follow(plain, *kinds)
    }


def norm_place(plain: Recording) -> str:
    """Place of the model's norms: "post", "pre" or "none"."""
    sites = plain.streams[0].sites
    if any(site.endswith(".read") for site in sites):
        return "pre"
    after = any(site[0].isdigit() and site.endswith(".normed") for site in sites)
    return "post" if after else "none"


def _layer(on: Edited) -> int | None:
    """The layer that the reader chose, None for all."""
    layers = on.plain.model.n_layer
    only = url_state.whole_number("only", layers)
    st.session_state["edited layer"] = "all" if only is None else str(only)
    st.selectbox(
        "Layer", ["all", *map(str, range(layers))], key="edited layer", on_change=_take_layer
    )
    return only


def _take_layer() -> None:
    layer = st.session_state["edited layer"]
    st.session_state.only = "" if layer == "all" else layer


def _heads(on: Edited) -> Edits:
    """Heads zero-ablated, mean-ablated, or with uniform attention."""
    how = pick(
        "Ablation",
        ABLATION_NAMES,
        "brush",
        help="Zero: the head’s output is 0. Mean: its output is its mean over this text. Uniform: "
        "it gives every key the same weight.",
    )
    size, name = on.attention.pattern.shape, on.attention.name
    wanted = []
    for label, n, at in zip(("Layer", "Head"), size, on.at):
        options = ["all", *map(str, range(n))]
        chosen = st.selectbox(label, options, index=int(at) + 1, key=f"ablated {label} {name} {at}")
        wanted.append(range(n) if chosen == "all" else [int(chosen)])
    heads = [(layer, head) for layer in wanted[0] for head in wanted[1]]
    rest = tuple(
        edit
        for edit in on.edits
        if not isinstance(edit, (HeadEdit, PatchHead))
        or edit.attention != name
        or (edit.layer, edit.head) not in heads
    )
    return (*rest, *(ABLATIONS[how](*head, name) for head in heads))


def _positions(on: Edited) -> Edits:
    """Other positions than the model's own."""
    own = models.capabilities(on.run.model).positions
    lacks = models.facts(on.run.model).get("without") == "positions"
    options = [
        each
        for each in POSITIONS
        if (each, own) != ("rotary", "rotary") and (each, lacks) != ("none", True)
    ]
    to = st.selectbox("Positions", options, key="positions of", format_func=POSITIONS.__getitem__)
    by = 0
    if to in ("shuffled", "shifted"):
        longest = max(len(stream.tokens) for stream in on.plain.streams)
        most = 9999 if to == "shuffled" else max(1, on.plain.model.n_positions - longest)
        label = "Shuffle seed" if to == "shuffled" else "Shift, positions"
        by = int(st.number_input(label, 0 if to == "shuffled" else 1, most, step=1))
    return terminology.set_positions(on.edits, to, by)


def _put_layered(on: Edited, switch: LayerSwitch, only: int | None, value: object) -> Edits:
    return switch.put(on.edits, on.plain.model.n_layer, only, value)


def _scale(on: Edited) -> Edits:
    """Scores divided by another number than √d_head."""
    own = on.plain.model.d_head
    divisor = st.number_input(
        "Scores are divided by",
        0.001,
        1000.0,
        1.0,
        step=0.5,
        format="%.3g",
        key="divisor",
        help=f"1: no scale. As trained: √d_head = √{own} = {own**0.5:.2f} (equation 1).",
    )
    return _put_layered(on, SCALE, _layer(on), float(divisor))


def _residual(on: Edited) -> Edits:
    """Sub-layers whose output replaces the stream."""
    sites = on.plain.streams[-1].sites
    places = [each for each in SUBLAYERS if f"0.{each}.wrote" in sites]
    options = ["all", *places] if len(places) > 1 else ["all"]
    around = st.selectbox(
        "Remove it around",
        options,
        key="residual around",
        format_func=lambda at: SUBLAYERS.get(at, at),
    )
    only, switch = _layer(on), terminology.residual_switch(places)
    now = switch.values(on.edits, on.plain.model.n_layer)[only or 0]
    layers = [each for each in now if around not in ("all", each)]
    return _put_layered(on, switch, only, layers)


def _norm(on: Edited) -> Edits:
    """Norms removed, placed elsewhere, or of the other kind."""
    place = norm_place(on.plain)
    kind = "rms" if models.capabilities(on.run.model).rms else "layer"
    other = "layer" if kind == "rms" else "rms"
    changes = {
        "none": "removed",
        "pre": "before each sub-layer (pre-LN)",
        "post": "after each sum (post-LN)",
        "kind": f"{NORMS[other]} instead of {NORMS[kind]}",
    }
    changes.pop(place)
    to = st.selectbox(NORMS[kind], list(changes), key="norm to", format_func=changes.__getitem__)
    if to == "kind":
        return _put_layered(on, terminology.norm_kind_switch(kind), _layer(on), other)
    return _put_layered(on, terminology.norm_place_switch(place), _layer(on), to)


def _ffn(on: Edited) -> Edits:
    """Feed-forward networks removed, or beside attention."""
    changes = {"none": "removed", "parallel": "parallel to attention"}
    if models.capabilities(on.run.model).parallel:
        del changes["parallel"]
    to = st.selectbox(
        "Feed-forward network",
        list(changes),
        key="ffn to",
        format_func=changes.__getitem__,
        help="Parallel: it reads the input of attention, as in GPT-J and Pythia.",
    )
    if to == "none":
        return _put_layered(on, FFN, _layer(on), False)
    return _put_layered(on, PARALLEL_FFN, _layer(on), True)


def _mask(on: Edited) -> Edits:
    """The causal mask of a decoder removed, or one added to an encoder."""
    kinds: dict[str, type] = {"removed": WithoutMask, "added to the encoder": WithMask}
    if on.plain.model.kind == "encoder":
        del kinds["removed"]
    elif on.plain.model.kind == "decoder":
        del kinds["added to the encoder"]
    to = st.selectbox("Causal mask", list(kinds), key="mask to")
    return (*edits_without(on.edits, kinds[to]), kinds[to]())


def _window(on: Edited) -> Edits:
    """A window of so many tokens."""
    size = st.number_input(
        "Tokens in the window",
        1,
        on.plain.model.n_positions,
        min(4, on.plain.model.n_positions),
        step=1,
        key="window",
        help="A token attends only to nearer tokens than this, as in Mistral.",
    )
    return (*edits_without(on.edits, Window), Window(int(size)))


def _keys(on: Edited) -> Edits:
    """Heads that share keys and values."""
    options = groups_of(on.plain.model.n_head)[:-1]
    groups = st.select_slider(
        "Number of key/value heads",
        options,
        key="shared keys",
        help="Neighbouring heads share the mean of their keys and values (grouped-query "
        "attention). With 1 it is multi-query attention.",
    )
    return (*edits_without(on.edits, SharedKeys), SharedKeys(int(groups)))
