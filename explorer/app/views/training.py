"""Checkpoints of a training, and two models that differ in one part."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Annotated, Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import training
from explorer.app import mounts
from explorer.app.layout import current_recording, export_menu
from explorer.app.layout.controls import pick
from explorer.app.layout.output import links, with_table
from explorer.app.layout.tab import Hand, by_hand, choose, view
from explorer.app.state import event_log, host, jobs, url_state
from explorer.app.state.jobs import TrainingJob
from explorer.app.state.models import is_allowed
from explorer.app.state.settings import truncate
from explorer.app.state.visit import visit
from explorer.figures.formatting import plural
from explorer.panels import training as training_panels
from explorer.panels.choice import Choice, declared
from explorer.panels.training import Measured
from explorer.screens.screen import Screen
from explorer.text import places
from explorer.wording import model_descriptions
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models import model_names
from models.contract.recording import Recording
from models.live.training_plan import (
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
from models.own import model_card
from models.runtime.run import Run

TAB = sentences("training", "tab")

# ---- live ----------------------------------------------------------------------------

WORDS = sentences("training", "live")
TASK_LABELS = sentences("training", "tasks")
LEARNS = sentences("training", "learns")
A_LOOK = 1.0  # seconds between two looks at one that learns


def live_training(
    task: Annotated[str, Choice(TASKS, "Learn", name="live_task")] = "induction",
    unit: Annotated[str, Choice(UNITS, "Token unit", name="live_unit")] = "characters",
) -> None:
    """The whole view: what to train, and how it learns. task: what is learned. unit: what a model
    of a reader's own text reads as one token."""
    st.title("Train a small model here", anchor=False)
    if not jobs.training_allowed():
        st.info(WORDS("off"))
        return
    choose_training(task, unit)
    one = jobs.current_training()
    busy = one is not None and (one.waiting or one.learning)
    event_log.fragment(learning, run_every=A_LOOK if busy else None)(busy)


url_state.declare("live_training", *declared(live_training))


def choose_training(task: str, unit: str) -> None:
    """Show the choices of what to train, within bounds, and the button that starts it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pick("Learn", {each: TASK_LABELS(each) for each in TASKS}, "live_task", bare=True)
        sizes = sized(task)
        start = st.button("Start", key="live start", icon=":material/play_arrow:", type="primary")
    text = pasted() if task == "text" else ""
    if start:
        words = visit.text
        start_training(TrainingPlan, task=task, unit=unit, words=words, text=text, **sizes)


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
        help=TAB("own_text"),
    )


def start_training(plan: type[TrainingPlan], **fields: Any) -> None:
    """Begin a training; what is out of bounds is said and begins nothing."""
    try:
        words = truncate(str(fields.pop("words")))[:2_000]
        jobs.begin_training(plan(words=words, **fields))
    except ValueError as error:
        st.warning(str(error))
        return
    visit.live_stages = None, {}
    st.rerun(scope="app")


def learning(was_busy: bool) -> None:
    """Show the progress of the training; it runs by itself again and again until it has stopped."""
    one = jobs.current_training()
    if one is None:
        task = st.session_state.live_task
        read = WORDS("list_text" if task == "text" else "list_copy")
        st.markdown(f"{LEARNS(task)} {WORDS('bounds', seconds=f'{MAX_SECONDS:.0f}', list=read)}")
        show_result(task)
        return
    busy = one.waiting or one.learning
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        training_buttons(one, busy)
        with st.container(width="stretch"):
            training_status(one)
    if one.progress.steps and one.run.config:
        show_progress(one, visit.text)
    elif busy:
        show_result(one.run.plan.task)
    url_state.write()
    if was_busy and not busy:
        st.rerun()  # from here on nothing needs to run by itself


def show_result(task: str) -> None:
    """Until a training has a picture: what one of this task has come to, by the model of the task's
    name that comes with the app; nothing of a task without one."""
    if task not in model_card.with_checkpoints():
        return
    text = max(model_descriptions.examples(task).values(), key=len)
    with st.spinner(places.ROWS["checkpoints"].wait):
        run = Run(task, text)
        panel, size = training_panels.example(run), run.recording().model
    slots = {"model": literal(model_names.title(task)), "text": literal(text)}
    with st.container(border=True):
        st.header(WORDS("example"), anchor=False)
        of = {"layers": plural(size.n_layer, "layer"), "heads": size.n_head}
        st.caption(WORDS("result", **of, **slots))
        mounts.panel(panel.encode(), "live result", lambda: None)


def training_buttons(one: TrainingJob, busy: bool) -> None:
    """Stop, go on, and explore."""
    if busy:
        stop = jobs.trainings.stop
        st.button("Stop", key="live stop", icon=":material/stop:", on_click=stop, args=(one,))
    elif one.can_resume and st.button("Continue", key="live on", icon=":material/play_arrow:"):
        jobs.trainings.resume(one)
        st.rerun(scope="app")
    if not busy and one.progress.steps and one.run.config:
        for page, lead in places.ROWS["live"].leads.items():
            key = f"live keep {page}"
            st.button(lead.label, key=key, on_click=explore_model, args=(one, page))
    if visit.wanted_model:
        st.rerun(scope="app")


def explore_model(one: TrainingJob, page: str) -> None:
    """Keep the model for this visit, and go to a tab with it. For a callback."""
    visit.wanted_model, visit.acted = jobs.keep_model(one), True
    visit.wanted_page = page


def training_status(one: TrainingJob) -> None:
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


def show_progress(one: TrainingJob, text: str) -> None:
    """The loss and scores so far and all heads now, on the reader's own text."""
    try:
        recording = host.record_training(one.run, truncate(text))
        lists = {0: host.read_list(one.run, truncate(text), 0)}
        lists[one.progress.step] = host.read_list(one.run, truncate(text))
    except ValueError as error:  # a text that this vocabulary cannot read
        st.info(str(error))
        return
    plan, progress = one.run.plan, one.progress
    curves = [progress.curve, *([progress.held_out] if plan.task == "text" else [])]
    size = plan.n_layer, plan.n_head, plan.d_model
    panel = training_panels.live(
        TASK_LABELS(plan.task), recording, lists, measured(one, text, recording), curves, size
    )
    mounts.panel(panel.encode(), "live panel", lambda: None)
    export_menu.offer_code(training_code(plan, progress, recording.text))
    with links("of training"):
        token_table(plan, progress)


def token_table(plan: TrainingPlan, progress: Progress) -> None:
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


def training_code(plan: TrainingPlan, progress: Progress, text: str) -> str:
    """The lines of Python that make the same training again, and read the text by it."""
    steps = [int(step) for step, _ in progress.held_out]
    return f"""from headlight import live_training, training

run = live_training.repeat_training(live_training.{plan}, {steps})  # trains it
table = training.training_columns(run.progress.curve, run.progress.held_out)
recording = live_training.record_text(run, {text!r})"""


def measured(one: TrainingJob, text: str, now: Recording) -> tuple[Measured, ...]:
    """All heads at each step that was looked at so far on this text; what was measured of another
    text is measured anew."""
    key, stages = visit.live_stages
    if key != (id(one), text):
        stages = {}
    name = training_panels.attention_names(now)[0]
    last = one.progress.step
    for step in (*one.progress.steps, last):
        if step not in stages and (step in CHECKPOINT_STEPS or step == last):
            is_checkpoint = step in CHECKPOINT_STEPS
            seen = host.record_training(one.run, truncate(text), step) if is_checkpoint else now
            stages[step] = training_panels.measure(seen, name, step)
    visit.live_stages = ((id(one), text), stages)
    return tuple(stages[step] for step in sorted(stages))


@by_hand("live")
@event_log.fragment
def train_live() -> None:
    """The tab Train live: a model of the reader's own."""
    st.caption(WORDS("whose", model=literal(model_names.title(visit.model))))
    run = Run(visit.model, visit.text)
    live_training(**url_state.values(live_training, run))
    url_state.write()


def read_last() -> Run | None:
    """The text on screen, read by the last weights of the model; None where it has no
    checkpoints."""
    if missing := model_card.missing_checkpoints(visit.model):
        st.info(missing)
        return None
    base = visit.model.partition("@")[0]
    if not is_allowed(base):
        st.info(sentences("server", "models")("one_checkpoint"))
        return None
    with st.spinner("Loading the model …"):
        return replace(current_recording.current_run(base), model=visit.model)


def ways_on(shown: Screen) -> None:
    """On to the heads of this checkpoint; and, where a decoder could show induction, to the text
    repeated."""
    run, recording = shown.run, shown.run.recording()
    every = model_card.checkpoints(run.model)
    at = next((each for each in every if each.step == shown.chosen["step"]), every[-1])
    label = f"Explore the heads of step {at.step:,}"
    if st.button(label, key="explore checkpoint", icon=":material/arrow_forward:", type="tertiary"):
        visit.wanted_model, visit.acted, visit.wanted_page = at.model, True, "heads"
        st.rerun()
    text = " ".join(run.text.split())
    half = text[: len(text) // 2].strip()
    has_room = 2 * len(recording.streams[0].tokens) <= recording.model.n_positions
    if not text or text == f"{half} {half}" or not has_room or recording.model.kind != "decoder":
        return
    if st.button("Repeat the text to show induction", key="say twice", type="tertiary"):
        visit.wanted_text, visit.acted = f"{text} {text}", True
        st.rerun()


view("checkpoints", Hand(read=read_last, beside=ways_on))


def read_pair() -> Run | None:
    """The text on screen, without another reading of it; None where no model has checkpoints."""
    if missing := model_card.missing_checkpoints(""):
        st.info(missing)
        return None
    return Run(visit.model.partition("@")[0], visit.text)


def pair_menu(run: Run, bar: DeltaGenerator) -> None:
    """The menu of the pairs: at first one that the model on screen is one of."""
    with bar:
        second = choose(training_panels.pair, run, {})["second"]
    if training_panels.pairs() and run.model not in training_panels.models_of_pair(
        run.model, second
    ):
        st.caption(TAB("not_of_pair", model=literal(model_names.title(run.model))))


view("twins", Hand(read=read_pair, top=pair_menu))
