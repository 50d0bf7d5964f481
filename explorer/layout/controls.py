"""One of some words, chosen in one way on every page; so are the attention, layer and head on
screen, which are kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import recorded_findings
from explorer.analysis.findings import Finding
from explorer.panels.selection import Selection, select
from explorer.state import url_state
from explorer.state.visit import visit
from explorer.text.attention import LABELS
from models.recording import Attention, Recording
from models.run import Run

# What a reader chooses of an attention: with one of these a page opens on that.
SELECTION_KEYS = ("attention", "layer", "head", "token", "source", "weight_at")


def bind(
    choice: str,
    key: str,
    value: Any,
    write: Callable[[Any], str] = str,
    after: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Bind a widget to a choice of the address, by arguments of the widget: it shows `value` under
    its `key`, and what a reader makes of it is put into the choice as `write` says. after: called
    then."""
    st.session_state[key] = value
    return {"key": key, "on_change": _take_choice, "args": (choice, key, write, after)}


def _take_choice(
    choice: str, key: str, write: Callable[[Any], str], after: Callable[[], None] | None
) -> None:
    st.session_state[choice] = write(st.session_state[key])
    if after is not None:
        after()


def folds(
    choice: str, none: str, parts: Mapping[tuple[str, ...], tuple[str, Callable[[], None]]]
) -> None:
    """Parts of a page that open, drawn when they are: one at a time, the one that a choice of the
    address names, or `none`; each by itself for the visit where choice is "". parts: by their
    names, of which the first is written where a reader opens it, each part's label and what draws
    it."""
    for (name, *others), (label, draw) in parts.items():
        bound: dict[str, Any] = {"key": f"fold {name}", "on_change": "rerun"}
        if choice:
            is_open = st.session_state[choice] in (name, *others)
            write = {True: name, False: none}.__getitem__
            bound = bind(choice, f"fold {name}", is_open, write)
        with st.expander(label, **bound) as box:
            if box.open:
                draw()


def choose_attention(run: Run) -> None:
    """Choose the attention of the strongest finding, where the reader has chosen none of several. A
    model with one attention needs no choice, and its findings are computed later."""
    recording = run.recording()
    url_state.one_of("attention", attention_names(recording))
    if not any(st.session_state[name] for name in SELECTION_KEYS):
        st.session_state.attention = recorded_findings.default_attention(recording)


def open_finding(finding: Finding) -> None:
    """Go to what shows a finding: put its address into the session. For a callback, or before a
    step to another page."""
    state = st.session_state
    visit.acted = True
    state.weight_at = ""
    state.selected = "none" if finding.query < 0 else ""
    for name, value in finding.address:
        state[name] = value
    if finding.page == "heads" and finding.query >= 0 and finding.keys:
        state.weight_at = f"{finding.query}.{finding.keys[0]}"


ATTENTION_KEYS = ("token", "layer", "head", "source", "weight_at", "sum_layer", "sum_head")


def pick(
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    help: str | None = None,
    bare: bool = False,
    container: DeltaGenerator | None = None,
    **changed: Any,
) -> str:
    """A row of buttons of which one is always selected, kept for the visit under `key`. options:
    the labels by value. bare: the label is for screen readers alone. container: the current one
    where None. changed: what is called after a change, as `bind` gives it."""
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
        **changed,
    )
    return str(value)


def attention_names(recording: Recording) -> tuple[str, ...]:
    """The names of the recording's attentions in the address; the first one's is ""."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def pick_attention(recording: Recording, after: Callable[[], None] | None = None) -> Attention:
    """The attention on screen, with the control that chooses it where there are several. after:
    called when another was chosen, once its layer, head and tokens are cleared."""
    names, first = attention_names(recording), recording.attention[0].name
    name = url_state.one_of("attention", names)
    if len(names) > 1:
        st.segmented_control(
            "Attention",
            names,
            wrap=True,
            format_func=lambda each: LABELS.get(each or first, each),
            required=True,
            label_visibility="collapsed",
            **bind("attention", "attention shown", name, after=partial(_forget_selection, after)),
        )
    return recording.attention[names.index(name)]


def _forget_selection(after: Callable[[], None] | None) -> None:
    for choice in ATTENTION_KEYS:
        st.session_state[choice] = ""
    if after is not None:
        after()


def open_attention(run: Run) -> None:
    """Open the attention that was chosen on its strongest finding, or else on the head whose name
    stands out most; it stays chosen from here on. For a callback."""
    on = select(run, attention=st.session_state.attention)
    if first := recorded_findings.opening_finding(on.recording, on.attention):
        open_finding(first)
    else:
        take_head(*recorded_findings.opening_head(on.recording, on.attention))


def pick_stream(
    names: Sequence[str],
    default: str,
    after: Callable[[], None] | None = None,
    container: DeltaGenerator | None = None,
) -> str:
    """The stream of the address, `default` where it names none of these, with the control for
    another where there are several. after: called when another was chosen, which has other
    tokens."""
    stream = st.session_state.stream if st.session_state.stream in names else default
    if len(names) > 1:
        (st if container is None else container).selectbox(
            "Stream",
            names,
            format_func="{} stream".format,
            label_visibility="collapsed",
            width=180,
            **bind("stream", "stream menu", stream, after=after),
        )
    return stream


def take_head(layer: int | str, head: int | str) -> None:
    """Put this head on screen. For callbacks."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)


def head_on_screen(size: Sequence[int]) -> tuple[int, int] | None:
    """(layer, head) of the address, None where it does not name both. size: (layers, heads)."""
    layer, head = (url_state.whole_number(name, n) for name, n in zip(("layer", "head"), size))
    return None if layer is None or head is None else (layer, head)


def attention_on_screen(run: Run, after: Callable[[], None] | None = None) -> Selection:
    """The attention that is chosen, with the control that chooses it where there are several.
    after: as of `pick_attention`."""
    return select(run, attention=pick_attention(run.recording(), after).name)
