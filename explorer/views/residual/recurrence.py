"""How far back a gradient reaches in an RNN, an LSTM and a Transformer that learn the same task."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import gradients
from explorer.analysis.gradients import NETWORKS
from explorer.layout import output
from explorer.layout.output import with_table
from explorer.state import event_log, jobs, url_state
from explorer.state.cache import Run
from explorer.text import residual
from explorer.text.gradients import decay, lesson
from explorer.views.residual.page_state import ResidualState

LOOK = 0.7  # seconds between two looks at an experiment that runs


def show(on: ResidualState) -> None:
    """The task, and the experiment as far as it has come."""
    st.subheader("How far back does a gradient reach in an RNN?", anchor=False)
    n = len(on.stream.tokens)
    longest = jobs.longest_lag(n)
    if longest < 1:
        st.info(
            f"This text has {n} tokens; distance needs at least 3. Type a longer sentence above."
        )
        return
    st.session_state.lag = str(url_state.whole_number("lag", longest + 1) or min(8, longest))
    st.markdown(residual.TASK)
    if longest > 1:
        st.select_slider(
            "Learn to say the token so many back",
            [str(each) for each in range(1, longest + 1)],
            key="lag",
            persist_state="session",
            width=420,
            help="A network that is to say the token k back needs gradient over k tokens.",
        )
    lag = int(st.session_state.lag)
    running = jobs.decay_job(on.recording, on.stream.name, lag).running
    event_log.fragment(watch, run_every=LOOK if running else None)(
        on.source, on.stream.name, lag, running
    )
    on.numbers(
        "the three networks, trained to the end",
        ("gradients",),
        f"*_, found = headlight.registry.decay(map(int, stream.ids), {lag})  # trains them",
        "table = gradients.distance_columns(found)",
    )
    with st.expander("The set-up, in full"):
        st.markdown(residual.SET_UP)


def watch(source: Run, name: str, lag: int, was_running: bool) -> None:
    """The experiment as far as it has come; it runs again and again while it goes on."""
    recording = source.recording()
    experiment = jobs.decay_job(recording, name, lag)
    running, found = experiment.running, experiment.latest
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        if running:
            st.button("Stop", key="stop experiment", on_click=experiment.stop)
        elif not experiment.finished:
            label = "Start training" if found is None else "Go on"
            st.button(label, key="start experiment", on_click=experiment.resume)
        else:
            st.markdown(":material/check: Trained to the end.")
    if running != was_running:
        st.rerun(scope="app")
    if found is None:
        wait = "About ten seconds for a sentence on two cores."
        st.caption("Making the three networks …" if running else wait)
        return
    stopped = "" if running or experiment.finished else ", stopped"
    st.progress(found.step / found.steps, text=f"Step {found.step} of {found.steps}{stopped}")
    result(ResidualState(source, recording, recording.stream(name)), found, lag)


def result(on: ResidualState, found, lag: int) -> None:
    """The gradient by distance before and after so many steps, what it says, and the loss."""
    picture = on.picture(
        "Gradient by distance",
        f"task: say the token {lag} back; {found.length} tokens; width 32; seed 7",
        "length of d(largest logit)/d(embedding), mean over outputs",
        file=f"gradient-by-distance-lag{lag}",
        what=("decay", lag),
    )
    by_distance(picture.about, found)
    st.markdown(lesson(NETWORKS, found.gradient, found.accuracy, lag))
    shown = found.first, found.gradient, found.accuracy, found.loss[:, -1]
    st.markdown(decay(NETWORKS, found.parameters, *shown, lag))
    st.caption(residual.at_the_lag(lag))
    with st.expander("Loss as it fell"):
        from explorer.figures.residual import lines

        loss = list(zip(NETWORKS, found.loss))
        about = ("Loss on fresh lists", picture.caption[1])
        output.plotly_chart(
            lines(loss, about, found.looks, "step", "nats", log=False), "loss", "Loss by step"
        )
    with_table(gradients.distance_columns(found), picture.about, picture.file)


def by_distance(about: tuple[str, ...], found) -> None:
    """The two pictures on one scale."""
    from explorer.figures.residual import lines

    now, x = list(zip(NETWORKS, found.gradient)), range(found.length)
    axes = "distance in tokens", "length of the gradient"
    over, steps = (found.first, found.gradient), f"After {found.step} steps"
    left, right = st.columns(2, gap="large")
    with left:
        before = ("Before any training", *about[1:])
        figure = lines(list(zip(NETWORKS, found.first)), before, x, *axes, log=True, over=over)
        output.plotly_chart(
            figure, "decay before", "Gradient by distance before training", "decay-before"
        )
    with right:
        figure = lines(now, (steps, *about[1:]), x, *axes, log=True, over=over)
        output.plotly_chart(figure, "decay now", f"Gradient by distance {steps.lower()}", "decay")
