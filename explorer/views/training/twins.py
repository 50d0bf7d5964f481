"""Two models trained alike but for one thing: their losses in one picture, their heads side by
side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from explorer.analysis import training as numbers
from explorer.analysis.training import Course
from explorer.components import curves
from explorer.components.curves import Line, Panel
from explorer.frame import export
from explorer.frame.table import with_table
from explorer.memory import address, models, stages
from explorer.memory.stages import Checkpoint
from explorer.sentences import training as sentences
from explorer.views.training import course, formed
from explorer.views.training.course import Text

NONE = "No two models here were trained alike but for one thing, with their curves kept."


def show(model: str, text: str) -> None:
    """The whole view: which two, at first those that the model on screen is one of, what became of
    their losses, the curves and both grids."""
    cards = models.cards()
    pairs = numbers.pairs(cards)
    if not pairs:
        st.info(NONE)
        return
    names = {f"{one} / {other}": (one, other) for one, other in pairs}
    own = next((name for name, pair in names.items() if model in pair), "")
    if own and not st.session_state.train_pair:
        st.session_state.train_pair = own
    address.one_of("train_pair", tuple(names))
    st.pills("Pair", tuple(names), key="train_pair", required=True, label_visibility="collapsed")
    pair = names[st.session_state.train_pair]
    lost = (stages.curve(pair[0]), stages.curve(pair[1]))
    st.subheader(sentences.twins(pair, lost), anchor=False)
    if model not in pair:
        st.caption(f"{model}, the model named above, is not one of these two.")
    st.markdown(sentences.differ(pair, cards[pair[1]]["without"], cards[pair[1]].get("data", ())))
    steps = common(pair)
    at = chosen(steps)
    texts = [course.text_of(name, text) for name in pair]
    drawn(pair, texts, lost, steps, at)
    for column, name, of in zip(st.columns(2, gap="large"), pair, texts):
        with column:
            beside(name, of, at)


def common(pair: tuple[str, str]) -> tuple[int, ...]:
    """The steps at which both have weights; none where one of them has its last ones alone."""
    one, other = ([each.step for each in stages.checkpoints(name)] for name in pair)
    return tuple(step for step in one if step in other)


def chosen(steps: Sequence[int]) -> int | None:
    """The step on screen: the one chosen, or the last one that both have; None for the models as
    they are."""
    wanted = address.one_of("train_step", ("", *map(str, steps)))
    return int(wanted) if wanted else steps[-1] if steps else None


def at_step(name: str, step: int | None) -> Checkpoint:
    """A model after so many steps; None for the model itself."""
    found = {each.step: each for each in stages.checkpoints(name)}
    return Checkpoint(-1, name) if step is None else found[step]


def beside(name: str, of: Text, step: int | None) -> None:
    """One of the two: its heads on the reader's text."""
    st.markdown(f"**{name}**" + (f", step {step:,}" if step is not None else ""))
    at = at_step(name, step)
    attention = course.attention_names(of.shown(at).recording())[0]
    formed.grid(of, at, attention, f"twin {name}")


def drawn(
    pair: tuple[str, str],
    texts: Sequence[Text],
    lost: tuple[numbers.Curve, numbers.Curve],
    steps: Sequence[int],
    at: int | None,
) -> None:
    """Both losses, and where both have checkpoints the habit that tells most in the first, in
    both."""
    points = [numbers.smoothed(curve) for curve in lost]
    every = [value for curve in points for _, value in curve]
    lines = [
        Line(name, curve, colour, bold=True)
        for name, curve, colour in zip(pair, points, (0, 1), strict=True)
    ]
    panels = [Panel("Loss, nats", lines, min(every), max(every))]
    if len(steps) > 1:
        panels.append(Panel(formed.SCORES, [*habit_lines(pair, texts)], 0, 1))
    about = f"The loss of {pair[0]} and {pair[1]} over their steps."
    data = curves.payload(
        panels,
        about=about,
        token=f"{pair} {texts[0].text!r} {len(steps)}",
        title=about,
        caption=(f"Headlight · models {pair[0]} and {pair[1]}",),
        file=f"headlight-{pair[0]}-{pair[1]}",
        steps=steps,
        at=-1 if at is None else list(steps).index(at),
    )
    curves.show(data, "twin curves", partial(take_step, tuple(steps)))
    columns = {
        f"{what} of {name}": [point[at] for point in curve]
        for name, curve in zip(pair, lost)
        for at, what in enumerate(("step", "loss"))
    }
    export.numbers(
        "both losses",
        (),
        ("models import library",),
        (
            f'curves = {{name: library.card(name)["curve"] for name in {pair!r}}}',
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


def habit_lines(pair: tuple[str, str], texts: Sequence[Text]) -> list[Line]:
    """The way into the first one's most telling habit, of the head that has most of it, in both."""
    found = []
    for name, of in zip(pair, texts):
        whole = of.shown(stages.checkpoints(name)[-1]).recording()
        found.append(course.stages(of, course.attention_names(whole)[0]))
    first = numbers.most_telling(numbers.best_courses(found[0]))
    if first is None:
        return []
    ways: list[Course] = [
        numbers.course(each, first.habit, numbers.best_head(each[-1], first.habit))
        for each in found
    ]
    return [
        Line(f"{way.habit} {sentences.head_name(way.at)}", list(zip(way.steps, way.scores)), colour)
        for way, colour in zip(ways, (0, 1))
    ]


def take_step(steps: Sequence[int]) -> None:
    """The step that the reader went to."""
    place = st.session_state["twin curves"].get("step")
    if isinstance(place, int) and 0 <= place < len(steps):
        st.session_state.train_step = str(steps[place])
