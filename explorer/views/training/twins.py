"""Two models trained alike but for one thing: their losses in one picture, their heads side by
side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import training
from explorer.analysis.training import HabitCourse
from explorer.components import line_chart
from explorer.components.line_chart import ChartLine, ChartPanel
from explorer.layout import export_menu
from explorer.layout.output import with_table
from explorer.state import models, url_state
from explorer.state.models import Checkpoint
from explorer.text.training import differ, head_name, twins
from explorer.views.training import checkpoint_scores, head_formation
from explorer.views.training.checkpoint_scores import Text

NONE = "There are no ablation pairs here: models that differ in one part."


def show(model: str, text: str) -> None:
    """The whole view: which two, at first those that the model on screen is one of, what became of
    their losses, the curves and both grids."""
    cards = models.cards()
    pairs = training.ablation_pairs(cards)
    if not pairs:
        st.info(NONE)
        return
    names = {f"{one} / {other}": (one, other) for one, other in pairs}
    own = next((name for name, pair in names.items() if model in pair), "")
    if own and not st.session_state.train_pair:
        st.session_state.train_pair = own
    url_state.one_of("train_pair", tuple(names))
    st.pills("Pair", tuple(names), key="train_pair", required=True, label_visibility="collapsed")
    pair = names[st.session_state.train_pair]
    lost = (models.loss_curve(pair[0]), models.loss_curve(pair[1]))
    st.subheader(twins(pair, lost), anchor=False)
    if model not in pair:
        st.caption(f"The selected model, {model}, is not one of these two.")
    st.markdown(differ(pair, cards[pair[1]]["without"]))
    steps = common(pair)
    at = chosen(steps)
    texts = [checkpoint_scores.text_of(name, text) for name in pair]
    drawn(pair, texts, lost, steps, at)
    for column, name, of in zip(st.columns(2, gap="large"), pair, texts):
        with column:
            beside(name, of, at)


def common(pair: tuple[str, str]) -> tuple[int, ...]:
    """The steps at which both have weights; none where one of them has its last ones alone."""
    one, other = ([each.step for each in models.checkpoints(name)] for name in pair)
    return tuple(step for step in one if step in other)


def chosen(steps: Sequence[int]) -> int | None:
    """The step on screen: the one chosen, or the last one that both have; None for the models as
    they are."""
    wanted = url_state.one_of("train_step", ("", *map(str, steps)))
    return int(wanted) if wanted else steps[-1] if steps else None


def at_step(name: str, step: int | None) -> Checkpoint:
    """A model after so many steps; None for the model itself."""
    found = {each.step: each for each in models.checkpoints(name)}
    return Checkpoint(-1, name) if step is None else found[step]


def beside(name: str, of: Text, step: int | None) -> None:
    """One of the two: its heads on the reader's text."""
    st.markdown(f"**{name}**" + (f", step {step:,}" if step is not None else ""))
    at = at_step(name, step)
    attention = checkpoint_scores.attention_names(of.shown(at).recording())[0]
    head_formation.grid(of, at, attention, f"pair {name}")


def drawn(
    pair: tuple[str, str],
    texts: Sequence[Text],
    lost: tuple[training.Curve, training.Curve],
    steps: Sequence[int],
    at: int | None,
) -> None:
    """Both losses, and where both have checkpoints the habit that tells most in the first, in
    both."""
    points = [training.smoothed(curve) for curve in lost]
    every = [value for curve in points for _, value in curve]
    lines = [
        ChartLine(name, curve, colour, bold=True)
        for name, curve, colour in zip(pair, points, (0, 1), strict=True)
    ]
    panels = [ChartPanel("Loss, nats", lines, min(every), max(every))]
    if len(steps) > 1:
        panels.append(ChartPanel(head_formation.SCORES, [*habit_lines(pair, texts)], 0, 1))
    about = f"The loss of {pair[0]} and {pair[1]} over their steps."
    data = line_chart.payload(
        panels,
        about=about,
        token=f"{pair} {texts[0].text!r} {len(steps)}",
        title=about,
        caption=(f"Headlight · models {pair[0]} and {pair[1]}",),
        file=f"headlight-{pair[0]}-{pair[1]}",
        steps=steps,
        at=-1 if at is None else list(steps).index(at),
    )
    line_chart.show(data, "loss curves", partial(take_step, tuple(steps)))
    columns = {
        f"{what} of {name}": [point[at] for point in curve]
        for name, curve in zip(pair, lost)
        for at, what in enumerate(("step", "loss"))
    }
    export_menu.offer_numbers_code(
        "both losses",
        (),
        (),
        (
            f'curves = {{name: headlight.registry.card(name)["curve"] for name in {pair!r}}}',
            'parts = ("step", "loss")',
            "table = {",
            '    f"{what} of {name}": [float(point[at]) for point in curve]',
            "    for name, curve in curves.items()",
            "    for at, what in enumerate(parts)",
            "}",
        ),
    )
    if len({len(values) for values in columns.values()}) == 1:
        with_table(columns, (about,), f"headlight-{pair[0]}-{pair[1]}")


def habit_lines(pair: tuple[str, str], texts: Sequence[Text]) -> list[ChartLine]:
    """The way into the first one's most telling habit, of the head that has most of it, in both."""
    found = []
    for name, of in zip(pair, texts):
        whole = of.shown(models.checkpoints(name)[-1]).recording()
        found.append(checkpoint_scores.stages(of, checkpoint_scores.attention_names(whole)[0]))
    first = training.most_informative(training.best_courses(found[0]))
    if first is None:
        return []
    ways: list[HabitCourse] = [
        training.habit_course(each, first.habit, training.best_head(each[-1], first.habit))
        for each in found
    ]
    return [
        ChartLine(f"{way.habit} {head_name(way.at)}", list(zip(way.steps, way.scores)), colour)
        for way, colour in zip(ways, (0, 1))
    ]


def take_step(steps: Sequence[int]) -> None:
    """The step that the reader went to."""
    place = st.session_state["loss curves"].get("step")
    if isinstance(place, int) and 0 <= place < len(steps):
        st.session_state.train_step = str(steps[place])
