"""A translation token by token, and what its decoder attends to in the source."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import translation
from explorer.layout import current_recording, output
from explorer.panels import translation as translation_panels
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from explorer.views.translation import search
from models.recording import Recording


def translate() -> None:
    """The tab Translate: a model that translates, and the search for its output."""
    current_recording.show_fallback()
    model, text = st.session_state.model, st.session_state.text
    search.seek(model, text)
    explore(model, text)


@event_log.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar. It takes names and not the recording, which Streamlit would
    keep for every visitor."""
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    typed = search.controls(bar, model, text)
    search_steps = search.searched(model, text)
    beams = search_steps.steps[-1]
    place = search.chosen_place(beams)
    beam = beams[place]
    target = typed if typed is not None else beam.ids[: len(beam.ids) - beam.done]
    run = current_recording.current_run(model, target=target)
    recording = run.recording()
    ended = beam.done if typed is None else not recording.target_dropped
    view, form = view_menu(bar, recording)
    n = len(recording.streams[1].tokens) - 1 + (ended and models.end_token(model) is not None)
    # Of one's own words the last that was typed.
    newest = max(1, n - ended) if typed is not None else None
    step = url_state.whole_number("step", n + 1) or newest
    make = partial(translation_panels.alignment, run, step, view, form, ended)
    output.show_panel(make, "alignment")
    if copied := translation_panels.copied(run):
        st.caption(copied)
    if typed is None and len(beams) > 1:
        most = None if search_steps.finished else len(search_steps.steps)
        source = Run(model, text)
        make = partial(
            translation_panels.hypotheses, source, int(st.session_state.beams), place + 1, most
        )
        output.show_panel(make, "hypotheses", search.forget_step)
    with st.expander("Probability of the translation", expanded=typed is not None):
        make = partial(translation_panels.probability, run, ended)
        output.show_panel(make, "probability")
    output.offer_recording(model, run.text, run.target)
    url_state.write()


def view_menu(bar: DeltaGenerator, recording: Recording) -> tuple[str, str]:
    """The menu of heads and pictures: the view of the attention, and what it is drawn as."""
    layers, heads = translation.cross_attention(recording).pattern.shape[:2]
    names = translation.view_names(layers, heads)
    view = url_state.one_of("cross", names)
    form = url_state.one_of("cross_as", translation_panels.FORMS)
    with bar.popover("View"):
        st.selectbox(
            "Cross-attention",
            (translation.MEAN_OF_ALL, *names[:-1]),
            key="cross",
            format_func=lambda name: translation.view_title(name, layers, heads),
            persist_state="session",
        )
        st.segmented_control(
            "Picture",
            translation_panels.FORMS,
            key="cross_as",
            required=True,
            persist_state="session",
        )
    return view, form
