"""One of some words, chosen in one way on every page; so are the attention, layer and head on
screen, which are kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.findings import Finding
from explorer.app.state.visit import visit
from explorer.panels.choice import EVERY
from explorer.text.attention import LABELS
from models.contract.recording import Recording


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


def open_finding(finding: Finding) -> None:
    """Go to what shows a finding: put its address into the session. For a callback, or before a
    step to another page."""
    state = st.session_state
    visit.acted = True
    state.weight_at = ""
    for name, value in finding.address:
        state[name] = value
    if finding.query < 0:
        state.token = EVERY
    if finding.page == "heads" and finding.query >= 0 and finding.keys:
        state.weight_at = f"{finding.query}.{finding.keys[0]}"


ATTENTION_KEYS = (
    *("token", "layer", "head", "source", "weight_at"),
    *("sum_layer", "sum_head", "patch_cell"),
)


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


def pick_attention(recording: Recording, name: str) -> None:
    """The control that chooses the attention, `name` as the address has it, where there are
    several; it stays on screen until another is chosen."""
    if len(recording.attention) < 2:
        return
    st.session_state.attention = st.session_state.attention or name
    first = recording.attention[0].name
    st.segmented_control(
        "Attention",
        [each.name for each in recording.attention],
        wrap=True,
        format_func=lambda each: LABELS.get(each, each),
        required=True,
        label_visibility="collapsed",
        **bind("attention", "attention shown", name or first, after=_forget_selection),
    )


def _forget_selection() -> None:
    for choice in ATTENTION_KEYS:
        st.session_state[choice] = ""


def pick_stream(
    names: Sequence[str],
    stream: str,
    after: Callable[[], None] | None = None,
    container: DeltaGenerator | None = None,
) -> None:
    """The control that chooses the stream, where there are several. after: called when another was
    chosen, which has other tokens."""
    if len(names) > 1:
        (st if container is None else container).selectbox(
            "Stream",
            names,
            format_func="{} stream".format,
            label_visibility="collapsed",
            width=180,
            **bind("stream", "stream menu", stream, after=after),
        )


def take_head(layer: int | str, head: int | str) -> None:
    """Put this head on screen. For callbacks."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)
