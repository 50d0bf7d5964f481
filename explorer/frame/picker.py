"""One of some words, chosen in one way on every page; so are the attention, layer and head on
screen, which are kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import attention as matrices
from explorer.memory import address, models, passes
from explorer.sentences import glossary
from models.recording import Attention, Recording

LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
OF_AN_ATTENTION = ("token", "layer", "head", "source", "anatomy_cell", "sum_layer", "sum_head")


def pick(
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    help: str | None = None,
    bare: bool = False,
    on_change: Callable[[], None] | None = None,
    at: DeltaGenerator | None = None,
) -> str:
    """One of some words side by side, always one, kept for the visit under `key`. options: where
    they map, what each reads as. bare: the label is for screen readers alone. at: where it stands,
    here where None."""
    reads = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    chosen = (st if at is None else at).segmented_control(
        label,
        tuple(reads),
        key=key,
        wrap=True,
        format_func=reads.__getitem__,
        required=True,
        persist_state="session",
        help=help,
        label_visibility="collapsed" if bare else "visible",
        on_change=on_change,
    )
    return str(chosen)


def attention_names(recording: Recording) -> tuple[str, ...]:
    """What the address calls the recording's attentions; the first one needs no word."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def pick_attention(recording: Recording) -> Attention:
    """The attention on screen, with the control that chooses it where there are several."""
    names, first = attention_names(recording), recording.attention[0].name
    name = address.one_of("attention", names)
    if len(names) > 1:
        # A key of its own: a widget of another page under the choice's name would be gone with that
        # page.
        st.session_state["attention shown"] = name
        st.segmented_control(
            "Attention",
            names,
            key="attention shown",
            wrap=True,
            format_func=lambda each: LABELS.get(each or first, each),
            required=True,
            label_visibility="collapsed",
            on_change=_take_attention,
        )
    return recording.attention[names.index(name)]


def pick_head(size: Sequence[int], at: tuple[int, int]) -> None:
    """The controls that choose a layer and a head of `size` (layers, heads); `at` is the one on
    screen. They stand side by side where their container is horizontal."""
    st.session_state["layer shown"], st.session_state["head shown"] = map(int, at)
    for label, n in zip(("Layer", "Head"), size):
        st.selectbox(
            label,
            range(n),
            key=f"{label.lower()} shown",
            on_change=_take_shown,
            width=110,
            help=glossary.meaning(label),
        )


def take_head(layer: int | str, head: int | str) -> None:
    """Put this head on screen. For callbacks."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)


def take_named(component: str, field: str = "head") -> Callable[[], None]:
    """A callback that takes the head a component tells as "layer.head"."""

    def take() -> None:
        layer, _, head = str(st.session_state[component].get(field) or "").partition(".")
        take_head(layer, head)

    return take


def axes_of(recording: Recording, attention: Attention) -> matrices.Axes:
    """What rows and columns are called; between two texts that takes the token the model would
    produce after the target."""
    if attention.query == attention.key:
        return matrices.axes(recording, attention)
    last = len(recording.stream(attention.query).tokens) - 1
    following = matrices.likeliest(passes.logits(recording, attention.query, last))
    return matrices.axes(recording, attention, *models.labels(recording.model.name, [following]))


def forget_attention() -> None:
    """Another attention has other heads and other tokens."""
    for choice in OF_AN_ATTENTION:
        st.session_state[choice] = ""


def _take_attention() -> None:
    st.session_state.attention = st.session_state["attention shown"]
    forget_attention()


def _take_shown() -> None:
    take_head(st.session_state["layer shown"], st.session_state["head shown"])
