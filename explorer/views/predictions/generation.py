"""The tab Generate: a decoder continues the text, token by token."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import output
from explorer.panels import generation
from explorer.state import event_log, jobs, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.views.predictions import generation_controls
from explorer.views.predictions.page_state import show_prediction

PACE = 0.6  # seconds between two tokens while the model writes on


def show(model: str, text: str) -> None:
    """Show the generation of a text; while it plays, its fragment runs again and again."""
    playing = bool(st.session_state.pop("play", False))
    st.session_state.playing = playing
    event_log.fragment(generate, run_every=PACE if playing else None)(model, text, playing)


def generate(model: str, text: str, playing: bool) -> None:
    """The buttons, the text with its next token, and the attention of the newest one. It takes
    names and not the recording, which Streamlit would keep for as long as the visit lasts."""
    state, run = st.session_state, Run(model, text)
    if state.pop("run whole page", False):
        st.rerun()
    try:
        draft = jobs.draft(model, text)
    except ValueError as reason:
        no_room(run, str(reason))
        return
    generation_controls.catch_up(draft, run.recording().model.n_vocab)
    if playing and not generation_controls.step(model, text):
        st.rerun()  # the text is over
    generation_controls.catch_up(draft, run.recording().model.n_vocab)
    jobs.generated_text(model, text, tuple(each.id for each in draft.tokens), draft)
    generation_controls.buttons(model, text, draft)
    sampling, seed = generation_controls.settings()
    settings = sampling.temperature, sampling.top_k, sampling.top_p
    left, right = st.columns([11, 9], gap="large")
    with left:
        make = partial(generation.next_token, run, state.said, *settings, seed)
        output.show_panel(make, "next token", generation_controls.stop)
    with right:
        layer, head = selected_head(draft)
        make = partial(generation.attention, run, state.said, layer, head)
        output.show_panel(make, "newest", partial(deselect, layer, head))
    if draft.tokens:
        with st.expander("Probability of the generated tokens"):
            output.show_panel(partial(generation.tokens, run, state.said), "generated tokens")
    with st.expander("KV cache: keys and values that are stored"):
        output.show_panel(partial(generation.kv_cache, run, state.said), "kv cache")
    if not playing:  # an address for every token would fill the browser's history
        url_state.write()


def no_room(run: Run, reason: str) -> None:
    """Show the prediction after the last token that is read, where nothing can be generated."""
    recording = run.recording()
    n, most = len(recording.streams[0].tokens), recording.model.n_positions
    shorter = " Shorten the text to continue it." if n >= most else ""
    st.info(
        f"Nothing can be generated: {literal(reason)}.{shorter} The prediction after the last "
        "token that the model reads is below."
    )
    show_prediction(run, n - 1)


def selected_head(draft: jobs.Draft) -> tuple[int | None, int | None]:
    """The layer and the head of the address, both None where there is no such head."""
    n_layer, n_head, _ = draft.writing.rows["attn"].shape
    layer = url_state.whole_number("layer", n_layer)
    head = url_state.whole_number("head", n_head)
    return (None, None) if layer is None or head is None else (layer, head)


def deselect(layer: int | None, head: int | None) -> None:
    """Back to the mean where the selected head was pressed again."""
    state = st.session_state
    if layer is not None and (state.layer, state.head) == (str(layer), str(head)):
        state.layer = state.head = ""
