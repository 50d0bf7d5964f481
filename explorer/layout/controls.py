"""One of some words, chosen in one way on every page; so are the attention, layer and head on
screen, which are kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.attention import Axes
from explorer.analysis.findings import Finding
from explorer.panels import attention as attention_panels
from explorer.panels.selection import axes_of
from explorer.state import url_state
from explorer.state.cache import Run
from explorer.text.attention import LABELS
from models.recording import Attention, Recording

# What a reader chooses of an attention: with one of these a page opens on that.
SELECTION_KEYS = ("attention", "layer", "head", "token", "source", "anatomy_cell")


def choose_attention(recording: Recording) -> None:
    """Choose the attention of the strongest finding, where the reader has chosen none of several. A
    model with one attention needs no choice, and its findings are computed later."""
    if not any(st.session_state[name] for name in SELECTION_KEYS):
        st.session_state.attention = attention_panels.default_attention(recording)


def open_finding(finding: Finding) -> None:
    """Go to what shows a finding: put its address into the session. For a callback, or before a
    step to another page."""
    state = st.session_state
    state.acted = True
    state.anatomy_cell = ""
    state.att_word = "none" if finding.query < 0 else ""
    for name, value in finding.address:
        state[name] = value
    if finding.page == "attention" and finding.query >= 0 and finding.keys:
        state.anatomy_cell = f"{finding.query}.{finding.keys[0]}"


ATTENTION_KEYS = ("token", "layer", "head", "source", "anatomy_cell", "sum_layer", "sum_head")


def pick(
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    help: str | None = None,
    bare: bool = False,
    on_change: Callable[[], None] | None = None,
    container: DeltaGenerator | None = None,
) -> str:
    """A row of buttons of which one is always selected, kept for the visit under `key`. options:
    the labels by value. bare: the label is for screen readers alone. at: its container, the current
    one where None."""
    labels = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    value = (st if container is None else container).segmented_control(
        label,
        tuple(labels),
        key=key,
        wrap=True,
        format_func=labels.__getitem__,
        required=True,
        persist_state="session",
        help=help,
        label_visibility="collapsed" if bare else "visible",
        on_change=on_change,
    )
    return str(value)


def attention_names(recording: Recording) -> tuple[str, ...]:
    """The names of the recording's attentions in the address; the first one's is ""."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def pick_attention(recording: Recording) -> Attention:
    """The attention on screen, with the control that chooses it where there are several."""
    names, first = attention_names(recording), recording.attention[0].name
    name = url_state.one_of("attention", names)
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


def pick_stream(
    names: Sequence[str],
    default: str,
    keeps_token: bool = False,
    container: DeltaGenerator | None = None,
) -> str:
    """The stream of the address, `default` where it names none of these, with the control for
    another where there are several. Another has other tokens, so the token that was chosen is
    forgotten, unless `keeps_token`."""
    stream = st.session_state.stream if st.session_state.stream in names else default
    if len(names) > 1:
        st.session_state["stream menu"] = stream
        (st if container is None else container).selectbox(
            "Stream",
            names,
            key="stream menu",
            format_func="{} stream".format,
            label_visibility="collapsed",
            width=180,
            on_change=_take_stream,
            args=(keeps_token,),
        )
    return stream


def _take_stream(keeps_token: bool) -> None:
    st.session_state.stream = st.session_state["stream menu"]
    if not keeps_token:
        st.session_state.token = ""


BLOCKS = ("", "Sub-layers", "Layers")
MANY_LAYERS = 12  # beyond which a model is shown by whole layers at first


def in_layers(recording: Recording, is_open: bool) -> bool:
    """True where a stream is shown by whole layers: by the reader's choice, else in a deep model.
    is_open: the address names a sub-layer."""
    if chosen := url_state.one_of("blocks", BLOCKS):
        return chosen == BLOCKS[-1]
    return recording.model.n_layer > MANY_LAYERS and not is_open


def pick_blocks(layers: bool) -> None:
    """The toggle between whole layers and their sub-layers; layers: True for the former."""
    st.session_state["whole layers"] = layers
    st.toggle("Whole layers", key="whole layers", on_change=_take_blocks)


def _take_blocks() -> None:
    st.session_state.blocks = BLOCKS[2 if st.session_state["whole layers"] else 1]


def take_head(layer: int | str, head: int | str) -> None:
    """Put this head on screen. For callbacks."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)


def forget_attention() -> None:
    """Another attention has other heads and other tokens."""
    for choice in ATTENTION_KEYS:
        st.session_state[choice] = ""


def _take_attention() -> None:
    st.session_state.attention = st.session_state["attention shown"]
    forget_attention()


# What a page about one attention is of: the recording, the attention, what its axes are called,
# and how its pictures and files are named.


@dataclass(frozen=True, eq=False)
class Subject:
    """One attention on screen. It is made anew in every run and nowhere kept."""

    recording: Recording
    attention: Attention
    axes: Axes

    @property
    def across(self) -> bool:
        """True where rows and columns are two texts."""
        return self.attention.query != self.attention.key


def subject(source: Run) -> Subject:
    """The attention that is chosen, with the control that chooses it where there are several."""
    recording = source.recording()
    attention = pick_attention(recording)
    return Subject(recording, attention, axes_of(recording, attention))
