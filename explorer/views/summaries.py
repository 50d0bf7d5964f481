"""All heads in one matrix, how far it can be trusted, and what the heads write."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import current_recording, output, selection_bar
from explorer.layout.controls import attention_on_screen, bind, pick
from explorer.panels import attention as attention_panels
from explorer.panels import summaries
from explorer.panels.selection import Selection
from explorer.state import url_state
from explorer.state.cache import Run

KINDS = {
    "Mean": "Mean",
    "Max": "Max",
    "Rollout": "Rollout",
    "Flow": "Flow",
    "Values": "Weight × value",
    "Writes": "Head outputs",
}
TOKENS = {"All": "All tokens", "Quiet": "Without shared sinks", "No specials": "Without special"}
MEASURES = {"Length": "Norm", "Share": "Signed share"}


@current_recording.tab(sum_what=tuple(KINDS), att_keep=tuple(TOKENS), sum_measure=tuple(MEASURES))
def aggregated(source: Run) -> None:
    """The tab Aggregated."""
    on = attention_on_screen(source)
    bar = st.container(horizontal=True, vertical_alignment="center")
    kind = pick("Aggregate by", KINDS, "sum_what", bare=True, container=bar)
    name, state = on.attention.name, st.session_state
    stream = on.recording.stream(on.attention.query)
    with bar:
        opening = attention_panels.opening_word(on.recording, on.attention)
        query = selection_bar.word(stream, opening or 0)
    if kind == "Writes":
        with bar.popover("View"):
            measure = pick("Measure", MEASURES, "sum_measure")
        output.show_panel(
            partial(summaries.output_norms, source, query, measure, name), "output norms"
        )
    else:
        with bar.popover("View"):
            layer, head = _scope(on, kind)
            # here and on the tab Heads
            pick("Tokens", TOKENS, **bind("att_keep", "kept shown", state.att_keep))
        make = partial(summaries.aggregated, source, kind, query, layer, head, state.att_keep, name)
        output.show_panel(make, "aggregated")
    output.show_panel(partial(summaries.disagreements, source, name), "disagreements")


def _scope(on: Selection, kind: str) -> tuple[int | None, int | None]:
    """Layer and head to aggregate, as chosen: all of them, one layer, or (of weighted values) one
    head."""
    layers, heads = on.attention.pattern.shape[:2]
    label = "Up to layer" if kind in summaries.THROUGH_LAYERS else "Layer"
    layer = _pick_one("sum_layer", label, "Layer", layers)
    if kind != "Values" or layer is None:
        return layer, None
    return layer, _pick_one("sum_head", "Head", "Head", heads)


def _pick_one(choice: str, label: str, noun: str, n: int) -> int | None:
    """One of n layers or heads; None for all."""
    options = ("", *map(str, range(n)))
    url_state.one_of(choice, options)
    chosen = st.selectbox(
        label,
        options,
        key=choice,
        persist_state="session",
        format_func=lambda each: f"{noun} {each}" if each else f"All {noun.lower()}s",
    )
    return int(chosen) if chosen else None
