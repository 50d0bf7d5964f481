"""A small model of the reader's own that learns while one looks on: begun, stopped, gone on with,
kept for the visit."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import Any

import streamlit as st

from explorer.analysis import training
from explorer.components import panel
from explorer.layout import export_menu
from explorer.layout.controls import pick
from explorer.layout.output import with_table
from explorer.panels import training as training_panels
from explorer.panels.training import Measured
from explorer.state import cache, event_log, jobs, models, url_state
from explorer.state.jobs import TrainingJob
from explorer.state.settings import truncate
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
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

WORDS = sentences("training", "live")
TASK_LABELS = sentences("training", "tasks")
LEARNS = sentences("training", "learns")
A_LOOK = 1.0  # seconds between two looks at one that learns
STAGES = "live stages"  # in a visit's state: what was measured of the training, and on which text
KEEPS = {"heads": "Keep and explore its heads", "checkpoints": "Keep and see its checkpoints"}


def show() -> None:
    """The whole view: what to train on the left, how it learns on the right."""
    st.title("Train a small model here", anchor=False)
    if not jobs.training_allowed():
        st.info(WORDS("off"))
        return
    choose_training()
    one = jobs.current_training()
    busy = one is not None and (one.waiting or one.learning)
    event_log.fragment(learning, run_every=A_LOOK if busy else None)(busy)


def choose_training() -> None:
    """Show the choices of what to train, within bounds, and the button that starts it."""
    url_state.one_of("live_task", TASKS)
    url_state.one_of("live_unit", UNITS)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pick("Learn", {task: TASK_LABELS(task) for task in TASKS}, "live_task", bare=True)
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
    menus = (
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
            format_func=option_label,
            label_visibility="collapsed",
            width=116,
        )
        for name, label, options, at, option_label in menus
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


def begin(plan: type[TrainingPlan], **fields: Any) -> None:
    """Begin a training; what is out of bounds is said and begins nothing."""
    try:
        words = truncate(str(fields.pop("words")))[:2_000]
        jobs.begin_training(plan(words=words, unit=st.session_state.live_unit, **fields))
    except ValueError as error:
        st.warning(str(error))
        return
    st.session_state.pop(STAGES, None)
    st.rerun(scope="app")


def learning(was_busy: bool) -> None:
    """Show the progress of the training; it runs by itself again and again until it has stopped."""
    one = jobs.current_training()
    if one is None:
        task = st.session_state.live_task
        st.markdown(f"{LEARNS(task)} {WORDS('bounds', seconds=f'{MAX_SECONDS:.0f}')}")
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
    """Show the step, loss and accuracy of the training, in a sentence."""
    if one.waiting and (ahead := jobs.trainings.ahead(one)):
        why = WORDS("queued_one" if ahead == 1 else "queued_several", n=ahead)
        st.info(f"{why} {WORDS('queued_then', seconds=f'{jobs.trainings.longest():.0f}')}")
        return
    if one.run.problem:
        st.warning(one.run.problem)
    progress = one.progress
    if not progress.steps:
        st.caption("Getting ready …")
        return
    unseen = WORDS("unseen_text" if one.run.plan.task == "text" else "unseen_lists")
    loss = WORDS("loss_now", loss=f"{progress.curve[-1][1]:.2f}") if progress.curve else ""
    is_known = isfinite(progress.right)
    right = WORDS("right_now", right=f"{progress.right:.0%}", unseen=unseen) if is_known else ""
    slots = {"seconds": f"{progress.seconds:.0f}", "most": f"{MAX_SECONDS:.0f}"}
    st.markdown(WORDS("status", step=f"{progress.step:,}", loss=loss, right=right, **slots))


def drawn(one: TrainingJob, text: str) -> None:
    """The loss and scores so far and all heads now, on the reader's own text."""
    try:
        recording = cache.record_training(one.run, truncate(text))
    except ValueError as error:  # a text that this vocabulary cannot read
        st.info(str(error))
        return
    plan, progress = one.run.plan, one.progress
    curves = [progress.curve, *([progress.held_out] if plan.task == "text" else [])]
    size = plan.n_layer, plan.n_head, plan.d_model
    made = training_panels.live(
        TASK_LABELS(plan.task), recording, measured(one, text, recording), curves, size
    )
    panel.show(made.encode(), "live panel", lambda: None)
    numbers_of(plan, progress, recording.text)
    table(plan, progress)


def table(plan: TrainingPlan, progress: Progress) -> None:
    """The loss at every look."""
    sizes = f"{plan.n_layer} layers of {plan.n_head} heads, {plan.d_model} wide"
    with_table(
        partial(training.training_columns, progress.curve, progress.held_out),
        (
            f"Loss in nats during training: {TASK_LABELS(plan.task)}",
            f"Step {progress.step:,} of a training from random weights: {sizes}",
        ),
        f"headlight-live-{plan.task}-numbers",
    )


def numbers_of(plan: TrainingPlan, progress: Progress, text: str) -> None:
    """The lines of Python that make the same training again, and read the text by it."""
    steps = [int(step) for step, _ in progress.held_out]
    export_menu.offer_numbers_code(
        "this training",
        (),
        (
            "training",
            "live_training",
        ),
        (
            f"run = live_training.repeat_training(live_training.{plan}, {steps})  # trains it",
            "table = training.training_columns(run.progress.curve, run.progress.held_out)",
            f"recording = live_training.record_text(run, {text!r})",
        ),
    )


def measured(one: TrainingJob, text: str, now: Recording) -> tuple[Measured, ...]:
    """All heads at each step that was looked at so far on this text; what was measured of another
    text is measured anew."""
    key, stages = st.session_state.get(STAGES, (None, {}))
    if key != (id(one), text):
        stages = {}
    name = training_panels.attention_names(now)[0]
    last = one.progress.step
    for step in (*one.progress.steps, last):
        if step not in stages and (step in CHECKPOINT_STEPS or step == last):
            is_checkpoint = step in CHECKPOINT_STEPS
            seen = cache.record_training(one.run, truncate(text), step) if is_checkpoint else now
            stages[step] = training_panels.measure(seen, name, step)
    st.session_state[STAGES] = ((id(one), text), stages)
    return tuple(stages[step] for step in sorted(stages))


@event_log.fragment
def train_live() -> None:
    """The tab Train live: a model of the reader's own."""
    st.caption(WORDS("whose", model=literal(models.title(st.session_state.model))))
    show()
    url_state.write()
