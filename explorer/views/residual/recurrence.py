"""An RNN, an LSTM and a Transformer that learn the same task: a training that the reader starts."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import output
from explorer.panels import gradients
from explorer.state import event_log, jobs, url_state
from explorer.state.cache import Run
from explorer.text.templates import sentences
from models.recording import Stream

LOOK = 0.7  # seconds between two looks at an experiment that runs


def show(source: Run, stream: Stream) -> None:
    """The task, and the training as far as it has come."""
    words = sentences(gradients.CONCEPT, "recurrence_task")
    n = len(stream.tokens)
    longest = jobs.longest_lag(n)
    if longest < 1:
        st.info(words("short", n=n))
        return
    st.session_state.lag = str(url_state.whole_number("lag", longest + 1) or min(8, longest))
    st.markdown(words("task"))
    if longest > 1:
        st.select_slider(
            "Predict the token so many back",
            [str(each) for each in range(1, longest + 1)],
            key="lag",
            persist_state="session",
            width=420,
            help=words("help"),
        )
    lag = int(st.session_state.lag)
    running = jobs.decay_job(source.recording(), stream.name, lag).running
    event_log.fragment(watch, run_every=LOOK if running else None)(
        source, stream.name, lag, running
    )


def watch(source: Run, name: str, lag: int, was_running: bool) -> None:
    """The training as far as it has come; it runs again and again while it goes on."""
    words = sentences(gradients.CONCEPT, "recurrence_task")
    experiment = jobs.decay_job(source.recording(), name, lag)
    running, decay = experiment.running, experiment.latest
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop experiment", on_click=experiment.stop)
        elif not experiment.finished:
            label = "Start training" if decay is None else "Go on"
            st.button(label, key="start experiment", on_click=experiment.resume)
        else:
            st.markdown(words("finished"))
    if running != was_running:
        st.rerun(scope="app")
    if decay is None:
        st.caption(words("making" if running else "wait"))
        return
    stopped = "" if running or experiment.finished else ", stopped"
    st.progress(decay.step / decay.steps, text=f"Step {decay.step} of {decay.steps}{stopped}")
    output.show_panel(partial(gradients.recurrence, source, lag, name, decay), "recurrence")
