"""Checkpoints of a training, and two models that differ in one part."""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.layout import controls, current_recording
from explorer.layout.output import show_panel
from explorer.panels import training
from explorer.panels.spec import Panel
from explorer.state import event_log, models, url_state
from explorer.state.cache import Run
from models.recording import Recording


@event_log.fragment
def explore(source: Run) -> None:
    """The tab Checkpoints below the sentence bar. It takes names and not recordings."""
    recording = source.recording()
    every = models.checkpoints(source.model)
    step = chosen_step(tuple(each.step for each in every))
    at = next((each for each in every if each.step == step), every[-1])
    bar = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    attention = pick_attention(recording)
    size = recording.attention[0].pattern.shape[:2]
    with st.spinner("Reading the text at every checkpoint …"):
        stages = training.measured(source, attention)
    patterns = training.patterns(stages)
    pattern = url_state.one_of("train_habit", ("", *patterns))
    layer, head = (
        url_state.whole_number(name, n) for name, n in zip(("layer", "head"), size, strict=True)
    )
    if layer is None or head is None:
        layer = head = None
    with bar:
        if patterns:
            pick_pattern(patterns, training.chosen_pattern(stages, layer, head, pattern))
        ways(source, at.model, at.step)
    make = partial(
        training.checkpoints,
        source,
        step=step,
        layer=layer,
        head=head,
        pattern=pattern,
        attention=attention,
    )
    show_panel(make, "training")
    url_state.write()


def chosen_step(steps: tuple[int, ...]) -> int | None:
    """The step of the address, None for the last one."""
    wanted = url_state.one_of("train_step", ("", *map(str, steps)))
    return int(wanted) if wanted else None


def pick_attention(recording: Recording) -> str:
    """The attention on screen, with its control where there are several."""
    names = training.attention_names(recording)
    if len(names) == 1:
        return names[0]
    if url_state.one_of("train_of", ("", *names)) == "":
        st.session_state.train_of = names[0]
    labels = {name: controls.LABELS.get(name, name) for name in names}
    return controls.pick("Attention", labels, "train_of", bare=True, on_change=_forget_head)


def pick_pattern(patterns: tuple[str, ...], current: str) -> None:
    """The control that chooses a pattern; its best head is shown, whichever was before."""
    st.session_state["pattern shown"] = current
    st.segmented_control(
        "Pattern",
        patterns,
        key="pattern shown",
        wrap=True,
        required=True,
        help="\n".join(f"- {line}" for line in training.meanings(patterns)),
        on_change=_take_pattern,
    )


def ways(source: Run, model: str, step: int) -> None:
    """On to the heads of this checkpoint; and, where a decoder could show induction, to the text
    repeated."""
    state, recording = st.session_state, source.recording()
    label = f"Explore the heads of step {step:,}"
    if st.button(label, key="explore checkpoint", icon=":material/arrow_forward:", type="tertiary"):
        state.wanted_model, state.acted, state.wanted_page = model, True, "heads"
        st.rerun()
    text = " ".join(source.text.split())
    half = text[: len(text) // 2].strip()
    has_room = 2 * len(recording.streams[0].tokens) <= recording.model.n_positions
    if not text or text == f"{half} {half}" or not has_room or recording.model.kind != "decoder":
        return
    if st.button("Repeat the text to show induction", key="say twice", type="tertiary"):
        state.wanted_text, state.acted = f"{text} {text}", True
        st.rerun()


def _forget_head() -> None:
    """Another attention has other heads."""
    st.session_state.layer = st.session_state.head = st.session_state.train_habit = ""


def _take_pattern() -> None:
    st.session_state.train_habit = st.session_state["pattern shown"]
    st.session_state.layer = st.session_state.head = ""


@event_log.fragment
def compare(model: str, text: str) -> None:
    """The tab Pre-LN vs post-LN: which two, at first those that the model on screen is one of."""
    names = {f"{one} / {other}": (one, other) for one, other in training.pairs()}
    if not names:
        show_panel(partial(training.pair, Run(model, text)), "pair")
        return
    own = next((name for name, pair in names.items() if model in pair), "")
    if own and not st.session_state.train_pair:
        st.session_state.train_pair = own
    url_state.one_of("train_pair", tuple(names))
    st.selectbox("Pair", tuple(names), key="train_pair", width=360)
    pair = names[st.session_state.train_pair]
    if model not in pair:
        st.caption(f"The selected model, {model}, is not one of these two.")
    step = chosen_step(training.common_steps(pair))

    def make() -> Panel:
        with st.spinner("Reading the text at every checkpoint …"):
            return training.pair(Run(pair[0], text), pair[1], step)

    show_panel(make, "pair")
    url_state.write()


def checkpoints() -> None:
    """The tab Checkpoints: the text is recorded, and the rest is drawn from its names."""
    current_recording.show_fallback()
    if missing := models.missing_checkpoints(st.session_state.model):
        st.info(missing)
        return
    base, _, step = st.session_state.model.partition("@")
    if step and not st.session_state.train_step:
        st.session_state.train_step = step  # the first checkpoint to be seen
    with st.spinner("Loading the model …"):
        source = current_recording.current_run(base)
    explore(source)


def paired_runs() -> None:
    """The tab Pre-LN vs post-LN: two trainings that differ in one part."""
    current_recording.show_fallback()
    if missing := models.missing_checkpoints(""):
        st.info(missing)
        return
    compare(st.session_state.model.partition("@")[0], st.session_state.text)
