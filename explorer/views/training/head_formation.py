"""Heads forming: a model's checkpoints on the reader's own text, the grid at one of them beside
scores and loss over all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import training
from explorer.analysis.caption import caption
from explorer.analysis.training import HabitCourse, Stage
from explorer.components import heads, line_chart
from explorer.components.line_chart import ChartLine, ChartPanel
from explorer.layout import controls, export_menu
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.state.models import Checkpoint
from explorer.text import training as training_text
from explorer.text.markdown_escape import literal
from explorer.views.training import checkpoint_scores
from explorer.views.training.checkpoint_scores import Text
from models.recording import Recording

SCORES = "Pattern score"
NO_CURVE = "This model has no recorded loss curve."
COLOURS = {name: at % 6 for at, name in enumerate(training.HABITS)}


def show(of: Text) -> None:
    """The whole view of one model: when a head took up its habit, the grid, and the curves."""
    every = models.checkpoints(of.model)
    at = chosen_checkpoint(every)
    recording = of.shown(at).recording()
    st.session_state["checkpoint shown"] = of.shown(at)  # for the files of the page
    attention = chosen_attention(recording)
    top = st.container()
    behind = st.container(key="after-headline")  # on a phone behind the pictures
    left, right = st.columns([1, 1.08], gap="large")
    with left:
        grid(of, at, attention)
    found = checkpoint_scores.stages(of, attention)
    courses = training.best_courses(found)
    chosen = chosen_course(found, courses)
    with top:
        headline(chosen)
    if chosen is not None:
        with behind:
            numbers_told(of, chosen)
    with right:
        if chosen is not None:
            habit_control(courses, chosen)
        drawn(of, at, attention, courses, chosen)
    numbers_of(of, attention)
    below(of, at, recording, found, courses)


def numbers_of(of: Text, attention: str) -> None:
    """The lines of Python that read the text at every checkpoint. Those of the file before them
    make all heads at the one on screen."""
    every = [(each.step, each.model) for each in models.checkpoints(of.model)]
    export_menu.offer_more_code(
        ("head_naming", "training", "training_text"),
        "",
        "def stage(step, name):",
        f"    read = headlight.load(name).record({of.text!r}, (), {of.target!r})",
        f"    of = next(each for each in read.attention if each.name == {attention!r})",
        "    return training.Stage(step, head_naming.describe(read, of))",
        "",
        f"stages = [stage(*each) for each in {every!r}]",
        f'loss = headlight.registry.card({of.model!r}).get("curve", ())',
        "courses = training.best_courses(stages)",
        "table = training_text.columns(stages, courses, loss)",
    )


def chosen_checkpoint(every: Sequence[Checkpoint]) -> Checkpoint:
    """The checkpoint on screen: the one chosen, or the model itself."""
    steps = tuple(str(each.step) for each in every)
    wanted = url_state.one_of("train_step", ("", *steps))
    return every[steps.index(wanted)] if wanted else every[-1]


def chosen_attention(recording: Recording) -> str:
    """The attention on screen, with its control where there are several."""
    names = checkpoint_scores.attention_names(recording)
    if len(names) == 1:
        return names[0]
    if url_state.one_of("train_of", ("", *names)) == "":
        st.session_state.train_of = names[0]
    st.segmented_control(
        "Attention",
        names,
        key="train_of",
        wrap=True,
        format_func=lambda name: controls.LABELS.get(name, name),
        required=True,
        persist_state="session",
        label_visibility="collapsed",
        on_change=forget_head,
    )
    return st.session_state.train_of


def forget_head() -> None:
    """Another attention has other heads."""
    st.session_state.layer = st.session_state.head = st.session_state.train_habit = ""


def chosen_course(found: Sequence[Stage], courses: Sequence[HabitCourse]) -> HabitCourse | None:
    """The head and habit on screen: what the reader chose of each, and else what tells most. None
    where the text shows no habit."""
    names = tuple(one.habit for one in courses)
    if not names:
        return None
    last = found[-1].heads
    layer = url_state.whole_number("layer", last[-1].layer + 1)
    head = url_state.whole_number("head", last[-1].head + 1)
    habit = url_state.one_of("train_habit", ("", *names))
    if layer is not None and head is not None:
        own = [training.habit_course(found, name, (layer, head)) for name in names]
        wanted = next((one for one in own if one.habit == habit), None)
        return wanted or training.most_informative(own)
    return next((one for one in courses if one.habit == habit), None) or training.most_informative(
        courses
    )


def headline(chosen: HabitCourse | None) -> None:
    """When it became that head, in one sentence."""
    if chosen is None:
        st.subheader("This text is too short to show a pattern.", anchor=False)
        return
    st.subheader(training_text.headline(chosen), anchor=False, help=training_text.WHAT_COUNTS)


def numbers_told(of: Text, chosen: HabitCourse) -> None:
    """What the headline rests on, and what the loss did meanwhile."""
    loss = models.loss_curve(of.model)
    beside = training_text.beside_loss(chosen, loss) if loss else NO_CURVE
    st.markdown(f"{training_text.evidence(chosen)} {beside} {literal(models.loss_note(of.model))}")


def habit_control(courses: Sequence[HabitCourse], chosen: HabitCourse) -> None:
    """The control that chooses a habit; its key is its own, because what tells most is no choice
    yet."""
    st.session_state["pattern shown"] = chosen.habit
    st.segmented_control(
        "Pattern",
        [one.habit for one in courses],
        key="pattern shown",
        wrap=True,
        required=True,
        label_visibility="collapsed",
        on_change=take_habit,
    )


def take_habit() -> None:
    """The habit chosen; its best head is shown, whichever was before."""
    st.session_state.train_habit = st.session_state["pattern shown"]
    st.session_state.layer = st.session_state.head = ""


def grid(of: Text, at: Checkpoint, name: str, key: str = "training heads") -> None:
    """Every head at the checkpoint, all on one colour scale, so that a head is seen to grow
    sharp."""
    recording = of.shown(at).recording()
    attention = checkpoint_scores.attention_of(recording, name)
    token = cache.picture_name(recording, "training", name)

    def made() -> bytes:
        axes = controls.axes_of(recording, attention)
        return heads.payload(
            heads.HeadGrid(
                attention.pattern,
                attention.allowed,
                controls.named_heads(recording, attention),
                axes.rows,
                axes.keys,
                "global",
                False,
                token,
                axes.said is not None,
            )
        )

    data = cache.cached_for(recording, ("training", name), made)
    heads.show(data, key, on_choice=controls.take_named(key))


def drawn(
    of: Text,
    at: Checkpoint,
    attention: str,
    courses: Sequence[HabitCourse],
    chosen: HabitCourse | None,
) -> None:
    """Loss and scores over the steps, with the checkpoint marked."""
    every = models.checkpoints(of.model)
    recording = of.shown(every[-1]).recording()
    about = f"Loss and pattern scores over the training of {models.title(of.model)}."
    data = line_chart.payload(
        panels(models.loss_curve(of.model), courses, chosen),
        about=about,
        token=cache.picture_name(
            recording, "curves", attention, chosen and (chosen.habit, chosen.at)
        ),
        title=training_text.headline(chosen) if chosen else about,
        caption=caption(recording, about, subject=attention),
        file=f"headlight-{of.model.replace(':', '-')}-training",
        steps=[each.step for each in every],
        at=every.index(at),
    )
    line_chart.show(data, "training curves", partial(take_step, [each.step for each in every]))


def panels(
    loss: training.Curve, courses: Sequence[HabitCourse], chosen: HabitCourse | None
) -> list[ChartPanel]:
    """The loss, and each habit's best head, the chosen one thick with its chance."""
    points = training.smoothed(loss)
    shown = []
    if points:
        lows = [value for _, value in points]
        shown.append(
            ChartPanel(
                "Loss, nats", (ChartLine("loss", points, 5, bold=True),), min(lows), max(lows)
            )
        )
    lines = []
    for one in courses:
        bold = chosen is not None and one.habit == chosen.habit
        one = chosen if bold and chosen is not None else one
        name = f"{one.habit} {training_text.head_name(one.at)}"
        lines.append(ChartLine(name, list(zip(one.steps, one.scores)), COLOURS[one.habit], bold))
        if bold:
            even = list(zip(one.steps, one.chances))
            lines.append(ChartLine("uniform attention", even, dashed=True))
    shown.append(ChartPanel(SCORES, lines, 0, 1))
    return shown


def take_step(steps: Sequence[int]) -> None:
    """The checkpoint that the reader went to."""
    place = st.session_state["training curves"].get("step")
    if isinstance(place, int) and 0 <= place < len(steps):
        st.session_state.train_step = str(steps[place])


def below(
    of: Text,
    at: Checkpoint,
    recording: Recording,
    found: Sequence[Stage],
    courses: Sequence[HabitCourse],
) -> None:
    """The way to other pages, and every number as a table."""
    with st.container(horizontal=True):
        ways(of, at, recording)
    columns = training_text.columns(found, courses, models.loss_curve(of.model))
    about = (f"Pattern scores at each checkpoint of {literal(of.model)}", *caption(recording))
    with_table(columns, about, f"headlight-{of.model.replace(':', '-')}-training")


def ways(of: Text, at: Checkpoint, recording: Recording) -> None:
    """On to another page with this checkpoint; and, where a decoder could show induction, to the
    text said twice."""
    state = st.session_state
    words = f"Explore the heads of step {at.step:,}"
    if st.button(words, key="explore checkpoint", icon=":material/arrow_forward:"):
        state.wanted_model, state.acted, state.wanted_page = at.model, True, "heads"
        st.rerun()
    text = " ".join(of.text.split())
    half = text[: len(text) // 2].strip()
    room = 2 * len(recording.streams[0].tokens) <= recording.model.n_positions
    said_once = text and text != f"{half} {half}" and room and recording.model.kind == "decoder"
    if said_once and st.button("Repeat the text to show induction", key="say twice"):
        state.wanted_text, state.acted = f"{text} {text}", True
        st.rerun()
