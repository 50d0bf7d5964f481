"""The residual stream: what each sub-layer adds, and below it norms, heads, gradients, an RNN."""

from __future__ import annotations

import streamlit as st

from explorer.analysis.terminology import recording_norm_name
from explorer.app.layout.tab import Hand, choose, show, view
from explorer.app.state import event_log, jobs, url_state
from explorer.figures.formatting import plural
from explorer.panels import gradients
from explorer.panels.choice import declared
from explorer.screens.screen import Screen
from explorer.wording.templates import sentences
from models.runtime.run import Run

# ---- recurrence ----------------------------------------------------------------------

LOOK = 0.7  # seconds between two looks at an experiment that runs


url_state.declare("recurrence", *declared(gradients.recurrence))


def recurrence_panels(shown: Screen) -> None:
    """The task, and the training as far as it has come, on the tokens of the tab's stream."""
    run, name = shown.run, shown.chosen["stream"]
    words, stream = sentences(gradients.CONCEPT, "recurrence_task"), {"stream": name}
    if not gradients.lags(run, stream):
        st.info(words("short", tokens=plural(len(run.recording().stream(name).tokens), "token")))
        return
    st.markdown(words("task"))
    chosen = choose(gradients.recurrence, run, stream)
    lag = chosen["lag"] or gradients.suggested_lag(run, stream)
    running = jobs.decay_job(run.recording(), name, lag).running
    event_log.fragment(recurrence_fragment, run_every=LOOK if running else None)(
        run, name, lag, running
    )


def recurrence_fragment(run: Run, name: str, lag: int, was_running: bool) -> None:
    """The training as far as it has come; it runs again and again while it goes on."""
    words = sentences(gradients.CONCEPT, "recurrence_task")
    experiment = jobs.decay_job(run.recording(), name, lag)
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
    show(gradients.recurrence, run, {"lag": lag, "stream": name, "decay": decay})


def _norm(run: Run) -> str:
    """Name of the norms of a run's model."""
    return recording_norm_name(run.recording(), run.loaded.capabilities.rms)


view("residual", Hand(folds={"RNN": recurrence_panels}, labels={"LayerNorm": _norm}))
