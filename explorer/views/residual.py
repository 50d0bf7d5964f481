"""The residual stream: what each sub-layer adds, and below it norms, heads, gradients, an RNN."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis.terminology import recording_norm_name
from explorer.layout import output
from explorer.layout.tab import Fold, Tab, view
from explorer.panels import gradients, residual
from explorer.state import event_log, jobs, url_state
from explorer.text.templates import sentences
from models.run import Run

# ---- recurrence ----------------------------------------------------------------------

LOOK = 0.7  # seconds between two looks at an experiment that runs


def recurrence_panels(source: Run, chosen: Mapping[str, Any]) -> None:
    """The task, and the training as far as it has come, on the tokens of the chosen stream."""
    name = chosen["stream"]
    words = sentences(gradients.CONCEPT, "recurrence_task")
    n = len(source.recording().stream(name).tokens)
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
    running = jobs.decay_job(source.recording(), name, lag).running
    event_log.fragment(recurrence_fragment, run_every=LOOK if running else None)(
        source, name, lag, running
    )


def recurrence_fragment(source: Run, name: str, lag: int, was_running: bool) -> None:
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


def _norm(source: Run) -> str:
    """What the norms of a run's model are called."""
    return recording_norm_name(source.recording(), source.loaded.capabilities.rms)


residual_stream = view(
    Tab(
        (residual.updates,),
        {
            "Token": Fold("Selected token in numbers", (residual.token_path,)),
            "LayerNorm": Fold(_norm, (residual.norms, residual.norm_steps)),
            "Heads": Fold("Contribution of each head", (residual.heads,)),
            "Gradient": Fold(
                "Gradient",
                (gradients.deep_stack, gradients.jacobian),
                wait="Going back through the layers …",
            ),
            "RNN": Fold("Compared with an RNN", draw=recurrence_panels),
        },
        open_fold="flow",
        closed="Writes",
    )
)
