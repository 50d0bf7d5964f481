"""A small model of the reader's own that learns while one looks on: begun, stopped, gone on with,
kept for the visit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import attention as attention_analysis
from explorer.analysis import head_naming, training
from explorer.analysis.training import Stage
from explorer.components import heads, line_chart
from explorer.components.line_chart import ChartLine
from explorer.layout import export_menu
from explorer.layout.controls import pick
from explorer.layout.output import with_table
from explorer.state import cache, event_log, jobs, url_state
from explorer.state.jobs import TrainingJob
from explorer.state.settings import truncate
from explorer.text.training import (
    LEARNS,
    TASK_LABELS,
    WHAT_COUNTS,
    bounds,
    headline,
    live_status,
    queued,
)
from explorer.views.training import checkpoint_scores, head_formation
from models.recording import Recording
from models.training_plan import (
    CHECKPOINT_STEPS,
    HEADS,
    LAYERS,
    MAX_LENGTH,
    MAX_SECONDS,
    MIN_LENGTH,
    TASKS,
    UNITS,
    WIDTHS,
    Progress,
    TrainingPlan,
)

A_LOOK = 1.0  # seconds between two looks at one that learns
STAGES = "live stages"  # in a visit's state: what was measured of the training, and on which text
KEEPS = {"heads": "Keep and explore its heads", "checkpoints": "Keep and see its checkpoints"}
OFF = "This server does not train models live. The tab Checkpoints shows trained ones."


def show() -> None:
    """The whole view: what to train on the left, how it learns on the right."""
    st.subheader("Train a small model here", anchor=False)
    if not jobs.training_allowed():
        st.info(OFF)
        return
    asked()
    one = jobs.current_training()
    busy = one is not None and (one.waiting or one.learning)
    event_log.fragment(learning, run_every=A_LOOK if busy else None)(busy)


def asked() -> None:
    """What to train, within bounds, and the button that starts it."""
    url_state.one_of("live_task", TASKS)
    url_state.one_of("live_unit", UNITS)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pick("Learn", {task: TASK_LABELS[task] for task in TASKS}, "live_task", bare=True)
        sizes = sized(st.session_state.live_task)
        start = st.button("Start", key="live start", icon=":material/play_arrow:")
    text = pasted() if st.session_state.live_task == "text" else ""
    if start:
        begin(
            TrainingPlan,
            task=st.session_state.live_task,
            words=st.session_state.text,
            text=text,
            **sizes,
        )


def sized(task: str) -> dict[str, int]:
    """The sizes of the model, each from a short list; a habit that needs two layers begins with
    two."""
    least = {"induction": 2, "text": 2}.get(task, 1)
    asked = (
        ("n_layer", "Layers", LAYERS, least - 1, lambda n: f"{n} layer{'s' * (n > 1)}"),
        ("n_head", "Heads", HEADS, 1, lambda n: f"{n} head{'s' * (n > 1)}"),
        ("d_model", "Width", WIDTHS, 1, lambda n: f"{n} wide"),
    )
    return {
        name: st.selectbox(
            label,
            options,
            at,
            key=f"live {label} {task}",
            format_func=said,
            label_visibility="collapsed",
            width=116,
        )
        for name, label, options, at, said in asked
    }


def pasted() -> str:
    """The text that the reader gives, and what its model reads as one token."""
    st.segmented_control(
        "Token unit", UNITS, key="live_unit", required=True, persist_state="session"
    )
    return st.text_area(
        "Training text",
        key="live text",
        height=120,
        max_chars=MAX_LENGTH,
        placeholder=f"{MIN_LENGTH:,} to {MAX_LENGTH:,} characters",
        help="The text is used only for this training and is not stored. Its last tenth is held "
        "out for evaluation.",
    )


def begin(plan: type[TrainingPlan], **given: Any) -> None:
    """Begin a training; what is out of bounds is said and begins nothing."""
    try:
        words = truncate(str(given.pop("words")))[:2_000]
        jobs.begin_training(plan(words=words, unit=st.session_state.live_unit, **given))
    except ValueError as said:
        st.warning(str(said))
        return
    st.session_state.pop(STAGES, None)
    st.rerun(scope="app")


def learning(was_busy: bool) -> None:
    """How the training is getting on; it runs by itself again and again until it has stopped."""
    one = jobs.current_training()
    if one is None:
        task = st.session_state.live_task
        st.markdown(f"{LEARNS[task]} {bounds(MAX_SECONDS)}")
        return
    busy = one.waiting or one.learning
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        buttons(one, busy)
        with st.container(width="stretch"):
            status(one)
    if one.progress.steps and one.run.config:
        drawn(one, st.session_state.text)
    url_state.write()
    if was_busy and not busy:
        st.rerun()  # from here on nothing needs to run by itself


def buttons(one: TrainingJob, busy: bool) -> None:
    """Stop, go on, and explore."""
    if busy:
        stop = jobs.trainings.stop
        st.button("Stop", key="live stop", icon=":material/stop:", on_click=stop, args=(one,))
    elif one.can_resume and st.button("Continue", key="live on", icon=":material/play_arrow:"):
        jobs.trainings.resume(one)
        st.rerun(scope="app")
    if not busy and one.progress.steps and one.run.config:
        for page, words in KEEPS.items():
            st.button(words, key=f"live keep {page}", on_click=explore, args=(one, page))
    if "wanted_model" in st.session_state:
        st.rerun(scope="app")


def explore(one: TrainingJob, page: str) -> None:
    """Keep the model for this visit, and go to a tab with it. For a callback."""
    state = st.session_state
    state.wanted_model, state.acted = jobs.keep_model(one), True
    state.wanted_page = page


def status(one: TrainingJob) -> None:
    """How far it is, in a sentence."""
    if one.waiting and (ahead := jobs.trainings.ahead(one)):
        st.info(queued(ahead, jobs.trainings.longest()))
        return
    if one.run.problem:
        st.warning(one.run.problem)
    progress = one.progress
    if not progress.steps:
        st.caption("Getting ready …")
        return
    unseen = "the held-out tenth" if one.run.plan.task == "text" else "held-out lists"
    loss = progress.curve[-1][1] if progress.curve else None
    st.markdown(
        live_status(progress.step, progress.seconds, loss, progress.right, MAX_SECONDS, unseen)
    )


def drawn(one: TrainingJob, text: str) -> None:
    """The grid as it is now, and loss and scores so far, on the reader's own text."""
    try:
        recording = cache.record_training(one.run, truncate(text))
    except ValueError as error:  # a text that this vocabulary cannot read
        st.info(str(error))
        return
    name = checkpoint_scores.attention_names(recording)[0]
    attention = checkpoint_scores.attention_of(recording, name)
    stages = measured(one, text, recording, name)
    courses = training.best_courses(stages)
    chosen = training.most_informative(courses)
    formed_yet = chosen is not None and chosen.formed_at is not None
    said = headline(chosen) if chosen and formed_yet else "No head has a pattern yet."
    st.subheader(said, anchor=False, help=WHAT_COUNTS)
    left, right = st.columns([0.62, 1], gap="large")  # few heads: a narrower grid
    token = f"{recording.model.fingerprint}{hash(text)}"
    with left:
        axes = attention_analysis.axes(recording, attention, *["[EOS]"] * (name == "cross"))
        grid = heads.HeadGrid(
            attention.pattern,
            attention.allowed,
            stages[-1].heads,
            axes.rows,
            axes.keys,
            "global",
            False,
            token,
            axes.said is not None,
        )
        heads.show(heads.payload(grid), "live grid", on_choice=lambda: None)
    with right:
        progress = one.progress
        shown = head_formation.panels(progress.curve, courses, chosen)
        if shown[0].name != head_formation.SCORES and one.run.plan.task == "text":
            lines = (
                *shown[0].lines,
                ChartLine("held out", training.smoothed(progress.kept_out), 1),
            )
            shown[0] = replace(shown[0], lines=lines)
        about = f"Loss and pattern scores during training: {TASK_LABELS[one.run.plan.task]}."
        data = line_chart.payload(
            shown,
            about=about,
            token=f"{token}{progress.step}",
            title=about,
            caption=(f"Step {progress.step:,}", f"{recording.model.n_parameters:,} parameters"),
            file=f"headlight-live-{one.run.plan.task}",
        )
        line_chart.show(data, "live curves")
    numbers_of(one.run.plan, progress, recording.text)
    table(one.run.plan, progress)


def table(plan: TrainingPlan, progress: Progress) -> None:
    """The loss at every look."""
    sizes = f"{plan.n_layer} layers of {plan.n_head} heads, {plan.d_model} wide"
    with_table(
        partial(training.training_columns, progress.curve, progress.kept_out),
        (
            f"Loss in nats during training: {TASK_LABELS[plan.task]}",
            f"Step {progress.step:,} of a training from random weights: {sizes}",
        ),
        f"headlight-live-{plan.task}-numbers",
    )


def numbers_of(plan: TrainingPlan, progress: Progress, text: str) -> None:
    """The lines of Python that make the same training again, and read the text by it."""
    steps = [int(step) for step, _ in progress.kept_out]
    export_menu.offer_numbers_code(
        "this training",
        (),
        (
            "training",
            "live_training",
        ),
        (
            f"run = live_training.repeat_training(live_training.{plan}, {steps})  # trains it",
            "table = training.training_columns(run.progress.curve, run.progress.kept_out)",
            f"recording = live_training.record_text(run, {text!r})",
        ),
    )


def measured(one: TrainingJob, text: str, now: Recording, name: str) -> tuple[Stage, ...]:
    """All heads at each step that was looked at so far on this text; what was measured of another
    text is measured anew."""
    key, held = st.session_state.get(STAGES, (None, {}))
    if key != (id(one), text):
        held = {}
    for step in (*one.progress.steps, one.progress.step):
        if step not in held and (step in CHECKPOINT_STEPS or step == one.progress.step):
            seen = (
                cache.record_training(one.run, truncate(text), step)
                if step in CHECKPOINT_STEPS
                else now
            )
            attention = checkpoint_scores.attention_of(seen, name)
            held[step] = Stage(step, head_naming.describe(seen, attention))
    st.session_state[STAGES] = ((id(one), text), held)
    return tuple(held[step] for step in sorted(held))
