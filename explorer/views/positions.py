"""Positions: in this sentence, in another order of its words, and the encoding itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from explorer.analysis import positions, recorded_findings
from explorer.layout import current_recording, output, selection_bar
from explorer.layout.controls import bind, pick, pick_stream
from explorer.panels import positions as positions_panels
from explorer.panels.positions import DEFAULT_PLACES, PositionRuns
from explorer.state import url_state
from models.run import Run

ORDERS = {"Shuffle": "Shuffled", "Retype": "Typed"}
SHUFFLES = 1000
SLIDER = 260  # pixels, at most the width of the screen


def number(label: str, choice: str, low: int, high: int, default: int, step: int = 1) -> int:
    """A slider of whole numbers that stands in the address as `choice`."""
    number = url_state.whole_number(choice, high + 1)
    value = default if number is None or number < low or (number - low) % step else number
    write = lambda value: "" if value == default else str(value)
    bound = bind(choice, f"{choice} slider", value, write)
    return int(st.slider(label, low, high, step=step, width=SLIDER, **bound))


def sizes(runs: PositionRuns) -> tuple[int, int]:
    """Number of positions and width of the table, chosen; at first as wide as the model. A learned
    table has its own size."""
    own, learned = runs.plain.model.d_model, runs.adds == "learned"
    last = len(runs.table()) if learned else positions.LONGEST
    n = number("Positions", "places", 2, last, min(DEFAULT_PLACES, last)) if last > 2 else last
    if learned:
        return n, own
    return n, number("Width of the table, d", "width", 2, positions.WIDEST, own, 2)


def pair_of(d: int) -> int:
    """The pair of dimensions, chosen; the paper's i."""
    if d == 2:
        return 0
    return number("Pair of dimensions, i", "pair", 0, d // 2 - 1, positions_panels.default_pair(d))


def head_of(runs: PositionRuns) -> tuple[int, int] | None:
    """The head of the address, (layer, head), or the one that positions move most; None where the
    panel says why there is none."""
    card = runs.plain.model
    layer = url_state.whole_number("layer", card.n_layer)
    head = url_state.whole_number("head", card.n_head)
    try:
        return runs.head(layer, head)
    except ValueError:
        return None


def size(runs: PositionRuns) -> tuple[int, int]:
    """Numbers of (layers, heads)."""
    return runs.plain.model.n_layer, runs.plain.model.n_head


def sentence(runs: PositionRuns) -> None:
    """Show the contribution of positions to this text's vectors, and to the scores of one head."""
    selection_bar.take()
    stream = runs.plain.stream(runs.stream)
    token = url_state.whole_number("token", len(stream.tokens))
    if token is None:
        token = recorded_findings.first_word(runs.plain, stream)
    at = head_of(runs)
    if at and runs.adds == "none":
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            selection_bar.head(size(runs), at)
    elif at:
        words = selection_bar.Words(stream.tokens, token, roles=stream.roles)
        selection_bar.show(words, size(runs), at)
    else:
        selection_bar.word(stream, token)
    layer, head = at or (None, None)
    make = partial(positions_panels.sentence, runs.run, token, layer, head, runs.stream)
    output.show_panel(make, "positions sentence")


def order(runs: PositionRuns) -> None:
    """The same words in two orders."""
    state = st.session_state
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.popover("View"):
            how = pick("Other order", ORDERS, "order")
        typed, seed = "", 1
        if how == "Shuffle":
            seed = number("Shuffle", "shuffle", 0, SHUFFLES - 1, 1)
        else:
            turned = positions.reverse_words(positions.read_part(runs.plain))
            st.text_input(
                "The same words in another order",
                key="retyped",
                live="300ms",
                persist_state="session",
                placeholder=f"Empty: from last to first: {turned[:80]}",
            )
            typed = state.retyped if state.retyped.strip() else turned
    selection_bar.take()
    at = head_of(runs)
    if at:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            selection_bar.head(size(runs), at)
    layer, head = at or (None, None)
    make = partial(positions_panels.order, runs.run, layer, head, seed, typed, runs.stream)
    with st.spinner("Reading the words in both orders …"):
        output.show_panel(make, "two orders")


def encoding(runs: PositionRuns) -> None:
    """The sinusoids, or the learned table."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n, d = sizes(runs)
        pair = None if runs.adds == "learned" else pair_of(d)
    make = partial(positions_panels.encoding, runs.run, n, d, pair, runs.stream)
    output.show_panel(make, "encoding")


def distance(runs: PositionRuns) -> None:
    """The products of position vectors."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        n, d = sizes(runs)
    output.show_panel(partial(positions_panels.distance, runs.run, n, d, runs.stream), "products")


def shift(runs: PositionRuns) -> None:
    """Moving along as a rotation."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.popover("View"):
            n, d = sizes(runs)
        pair = pair_of(d)
        place = number("Position", "place", 0, n - 1, min(3, n - 1))
        by = number("Shift, k", "shift", 0, n - 1, min(5, n - 1))
    make = partial(positions_panels.rotation, runs.run, n, d, pair, place, by, runs.stream)
    output.show_panel(make, "rotation")


def adding(runs: PositionRuns) -> None:
    """Adding and concatenating."""
    output.show_panel(partial(positions_panels.overlap, runs.run, runs.stream), "overlap")


VIEWS: dict[str, tuple[str, Callable[[PositionRuns], None]]] = {
    "Sentence": ("This sentence", sentence),
    "Order": ("Another order", order),
    "Waves": ("Encoding", encoding),
    "Distance": ("Products", distance),
    "Shift": ("Rotation", shift),
    "Adding": ("Add or concatenate", adding),
}


@current_recording.tab(edited=False, typed=False, order=tuple(ORDERS))
def word_order(source: Run) -> None:
    """The tab Positions."""
    state = st.session_state
    if state.ask not in VIEWS:
        state.ask = "Sentence"
    names = [each.name for each in source.recording().streams]
    bar = st.container(horizontal=True, vertical_alignment="center")
    labels = {name: label for name, (label, _) in VIEWS.items()}
    view = pick("View", labels, "ask", bare=True, container=bar)
    name = pick_stream(names, names[0], container=bar)
    VIEWS[view][1](PositionRuns(source, name))
