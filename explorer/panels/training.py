"""The panels on training: heads forming over a model's checkpoints, two trainings that differ in
one part, and a training that goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isnan
from typing import Annotated, Any

import numpy as np

from explorer.analysis import coreference, head_naming, logit_lens, opening, training
from explorer.analysis.attention import argmax_id
from explorer.analysis.predictions import without_mark
from explorer.analysis.training import Curve, HabitCourse, Stage, first_below, loss_at
from explorer.components import codec
from explorer.figures.csv import Cells, Columns
from explorer.figures.formatting import Written, fixed, percent, tenths
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Chart,
    Figure,
    Frame,
    HeadMatrices,
    Series,
    Stack,
    Steps,
    TextTable,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.masks import can_hide
from explorer.panels.selection import HeadIfAny, LayerIfAny
from explorer.panels.spec import Panel
from explorer.text.attention import LABELS
from explorer.wording import model_descriptions
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import HideToken
from models.contract.recording import Attention, Recording, from_end
from models.contract.results import OneList, softmax
from models.own import model_card
from models.own.model_card import Checkpoint, Phase
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "training"
# Of a model that has several attentions, the one in which a training is seen best first.
FIRST = ("cross", "decoder self", "encoder self")
LOG_FROM = 50  # times the first step, from which on the last one has steps on a logarithmic axis
MOST_CELLS = 24  # rows and columns of a head in the grid; of more the largest of neighbours
STEP = sentences(CONCEPT, "tab")("step")
Taught = frozenset[tuple[int, int]]  # heads that a teacher taught, (layer, head)
LAST_PART = 0.25  # of a training, over which two losses are compared


@dataclass(frozen=True, eq=False)
class Measured:
    """All heads of one attention at one checkpoint: their names, and their weights (layer, head,
    query, key), NaN where not allowed, for the grid."""

    stage: Stage
    weights: np.ndarray


def head_name(at: tuple[int, int]) -> str:
    """A head by its layer and number: "L1 H3"."""
    return sentences(CONCEPT, "shared")("head", layer=at[0], head=at[1])


def attention_names(recording: Recording) -> tuple[str, ...]:
    """A recording's attentions, the one in which a training is seen best first."""
    names = [each.name for each in recording.attention]
    return tuple(sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else 0))


def at_checkpoint(run: Run, at: Checkpoint) -> Run:
    """The same text at a checkpoint; of a translator the same target, that of the whole model."""
    recording = run.recording()
    target = run.target
    if target is None and len(recording.streams) > 1:
        target = tuple(map(int, recording.streams[-1].ids[1:]))
    return Run(at.model, run.text, run.edits, target)


def measured(run: Run, attention: str) -> tuple[Measured, ...]:
    """All heads of an attention at each checkpoint, kept for the model."""

    def at_each_checkpoint() -> tuple[Measured, ...]:
        measures, points = [], model_card.checkpoints(run.model)
        finds_nouns = any(_finds_nouns(run, last, attention) for last in points[-1:])
        for at in points:
            recording = at_checkpoint(run, at).recording()
            measures.append(measure(recording, attention, at.step, finds_nouns))
            del recording  # before the next one is made
        return tuple(measures)

    key = ("stages", run.text, run.edits, run.target, attention)
    return run.loaded.memo(key, at_each_checkpoint)


@dataclass(frozen=True)
class CheckpointGuesses:
    """A model's likeliest word at a place, which is hidden from one that fills in words, and that
    word's probability, at each checkpoint. is_first: it is the first of a stream that is written
    anew. first: the checkpoint from which on the last guess leads."""

    word: str
    is_hidden: bool
    is_first: bool
    likeliest: tuple[tuple[str, float], ...]
    first: int


def guesses_of(run: Run) -> CheckpointGuesses | None:
    """The guesses over a training, kept for the model; None for a model that predicts no word, and
    that tells classes."""

    def at_each_checkpoint() -> CheckpointGuesses | None:
        plain, points = run.recording(), model_card.checkpoints(run.model)
        if run.loaded.capabilities.no_readout or run.loaded.capabilities.classes or not points:
            return None
        token = opening.answered(plain)
        is_hidden = can_hide(plain) and not plain.streams[0].special[token]
        hidden = (HideToken(token),) if is_hidden else ()
        stream, found = logit_lens.read_stream(plain), list[tuple[str, float]]()
        for each in points:
            there = at_checkpoint(run, each).under((*run.edits, *hidden)).recording()
            p = softmax(loaded(there).logits(there, stream.name, token))
            (label,) = run.loaded.labels([at := argmax_id(p)])
            found.append((without_mark(label, after_special=True), float(p[at])))
        first = opening.lasting_lead([word == found[-1][0] for word, _ in found])
        is_first = stream is not plain.streams[0] and not token
        return CheckpointGuesses(
            stream.tokens[token], is_hidden, is_first, tuple(found), first or 0
        )

    key = ("guesses of a training", run.text, run.edits, run.target)
    return run.loaded.memo(key, at_each_checkpoint)


def _led(guesses: CheckpointGuesses, steps: Sequence[int]) -> str:
    """Sentences on the step from which on the last guess leads, and on the guess before."""
    words, first = sentences(CONCEPT, "checkpoints"), guesses.first
    names, step = [name for name, _ in guesses.likeliest], f"{steps[first]:,}"
    slots = {"about": words(_guess_place(guesses), word=guesses.word), "answer": names[-1]}
    if not first:
        return words("led_always", step=step, **slots)
    slots |= {"other": names[first - 1], "step": step}
    name = "led_back" if names[-1] in names[: first - 1] else "led"
    return f"{words(name, **slots)} {words('led_before', before=f'{steps[first - 1]:,}', **slots)}"


def _guess_place(guesses: CheckpointGuesses) -> str:
    """The name of the sentences on the place that is guessed."""
    if guesses.is_hidden:
        return "of_hidden"
    return "of_first" if guesses.is_first else "of_next"


def _guess_bars(guesses: CheckpointGuesses, steps: Sequence[int]) -> Bars:
    """The guess at each checkpoint; the rows from which on the last one leads stand out."""
    words = sentences(CONCEPT, "guesses")
    rows = (
        BarRow(f"{step:,}  {guess}", (p,), (tenths(p),), at >= guesses.first, key=str(step))
        for at, (step, (guess, p)) in enumerate(zip(steps, guesses.likeliest))
    )
    return Bars(
        title=words(_guess_place(guesses), word=guesses.word),
        note=words("note", answer=guesses.likeliest[-1][0]),
        hint=words("hint"),
        header=words("step"),
        columns=(words("probability"),),
        rows=tuple(rows),
        select=("train_step",),
    )


def _finds_nouns(run: Run, at: Checkpoint, attention: str) -> bool:
    """True where heads of an attention find nouns in test sentences at a checkpoint."""
    recording = at_checkpoint(run, at).recording()
    return bool(coreference.measured_heads(recording, _of_name(recording, attention)))


def measure(recording: Recording, name: str, step: int, with_pronouns: bool = False) -> Measured:
    """All heads of an attention of a recording, made after so many steps. with_pronouns: as of
    `head_naming.describe`."""
    attention = _of_name(recording, name)
    heads = tuple(head_naming.describe(recording, attention, with_pronouns))
    return Measured(Stage(step, heads), _thumbnails(attention))


def _of_name(recording: Recording, name: str) -> Attention:
    return next(each for each in recording.attention if each.name == name)


def _thumbnails(attention: Attention) -> np.ndarray:
    """An attention's weights with at most MOST_CELLS rows and columns a head."""
    weights = np.where(attention.allowed[:, None], attention.pattern.astype(np.float32), np.nan)
    for axis in (2, 3):
        size = weights.shape[axis]
        fold = -(-size // MOST_CELLS)
        if fold > 1:
            starts = np.arange(0, size, fold)
            weights = np.fmax.reduceat(weights, starts, axis=axis)
    return weights


def _grid(reading: Measured, title: str, chosen: tuple[int, int] | None) -> HeadMatrices:
    """Every head, all on one colour scale, so that a head is seen to grow sharp."""
    cells, peak, _ = codec.thumbnails(np.nan_to_num(reading.weights))
    weights = {"cells": cells, "peak": peak} | codec.runs(np.isfinite(reading.weights[0, 0]))
    return HeadMatrices(
        title=title,
        select=("layer", "head"),
        weights=weights,
        shape=reading.weights.shape,
        names=tuple(head.name for head in reading.stage.heads),
        selected=chosen or (-1, -1),
    )


def _grid_title(model: str, stage: Stage) -> str:
    """Title with the number of heads, and those that learned from another model's by then."""
    shared, n = sentences(CONCEPT, "shared"), len(stage.heads)
    heads = model_card.taught_heads(model, stage.step)
    names = ", ".join(map(head_name, sorted(heads)))
    if not heads:
        return shared("grid", n=n)
    return shared("grid_taught", n=n, heads=names, teacher=_teacher(model))


def _teacher(model: str) -> str:
    """The model whose heads taught some of a model's, "" for none."""
    return str(model_card.facts(model).get("taught", {}).get("teacher", ""))


def _log(steps: Sequence[float]) -> bool:
    """True where steps stand on a logarithmic axis."""
    positive = [each for each in steps if each > 0]
    return bool(positive) and max(positive) >= LOG_FROM * min(positive)


def _series(name: str, points: Sequence[tuple[float, float]], main: bool = False) -> Series:
    finite = [(step, value) for step, value in points if isfinite(value)] or [(0.0, float("nan"))]
    steps, values = (np.array(each, dtype=float) for each in zip(*finite))
    return Series(name, steps, values, main=main)


N_RATES = 200  # points of a learning rate on a logarithmic axis


def _charts(
    losses: Sequence[tuple[str, Curve]],
    scores: Sequence[tuple[str, Sequence[tuple[float, float]]]],
    where: str,
    guide: float | None,
    note: str = "",
) -> Stack:
    """Pattern scores, the first curve the one that is spoken of, above the loss with a note.
    where: the attention goes that is scored. guide: the step on show; None of a training that goes
    on, whose axis is logarithmic from the first."""
    words = sentences(CONCEPT, "shared")
    curves = [training.smoothed(curve) for _, curve in losses]
    every = [step for curve in curves for step, _ in curve] + [
        step for _, points in scores for step, _ in points
    ]
    goes_on = guide is None and any(step > 0 for step in every)
    chart = _over_steps(every, () if guide is None else ((guide, ""),), goes_on)
    charts = []
    if scores:
        lines = tuple(_series(*each, at == 0) for at, each in enumerate(scores))
        title = words("scores", where=where)
        charts.append(chart(title=title, series=lines, y_range=(0.0, 1.0), follows="train_step"))
        chart = partial(chart, half=any(curves))
    if any(curves):
        lines = tuple(
            _series(name, curve, at == 0)
            for at, ((name, _), curve) in enumerate(zip(losses, curves))
        )
        title = words("loss")
        charts.append(chart(title=title, series=lines, note=note, follows="train_step"))
    return Stack(figures=tuple(charts))


def _over_steps(
    every: Sequence[float], guides: tuple[tuple[float, str], ...] = (), log: bool = False
) -> Callable[..., Chart]:
    """A maker of charts over one axis of steps, which says where it is logarithmic: where many
    steps ask for it, or in any case."""
    words, log_x = sentences(CONCEPT, "shared"), log or _log(every)
    ends = [step for step in every if step > 0 or not log_x]
    return partial(
        Chart,
        x_title=words("log_steps" if log_x else "steps"),
        log_x=log_x,
        x_range=(min(ends), max(ends)) if ends else None,
        guides=guides,
    )


@spec.panel
def losses(run: Run) -> Panel:
    """Loss and learning rate over a model's training, and what makes the loss leap.

    Raises ValueError for a model without a recorded loss.
    """
    words, shared = sentences(CONCEPT, "rates"), sentences(CONCEPT, "shared")
    curve, phases = model_card.loss_curve(run.model), model_card.phases(run.model)
    if not curve:
        raise ValueError(words("no_curve"))
    jump = training.largest_rise(curve)
    (first, high), (last, low) = curve[0], curve[-1]
    says = words("falls", high=fixed(high), low=fixed(low), step=f"{last:,.0f}")
    if jump is not None:
        (before, low), (after, high) = jump
        at = {"before": f"{before:,.0f}", "after": f"{after:,.0f}"}
        says = words("jump", low=fixed(low), high=fixed(high), **at)
    is_late = len(curve) > 1 and first > 2 * (curve[1][0] - first)
    late = words("late", step=f"{first:,.0f}") if is_late else ""
    every = [step for step, _ in curve] + [float(each.first) for each in phases]
    line = (_series(shared("loss_curve"), training.smoothed(curve), True),)
    leap = () if jump is None else ((jump[0][0], words("leap", step=f"{jump[0][0]:,.0f}")),)
    note = " ".join(filter(None, (model_card.loss_note(run.model), late)))
    chart = _over_steps(every)(title=shared("loss"), series=line, guides=leap, note=note)
    return Panel(
        title=words("title"),
        finding=says,
        figures=(chart, *((_rates(phases, _over_steps(every)),) if phases else ())),
        table={"step": [step for step, _ in curve], "loss": [loss for _, loss in curve]},
        file="loss",
        formulas=("warm-up",),
        numbers={"phases": Written.count(len(phases))} if phases else {},
    )


def _rates(phases: Sequence[Phase], chart: Callable[..., Chart]) -> Chart:
    """The learning rate of phases from the first step on, the end of the warm-up marked. chart:
    makes one of the same axis as the loss."""
    words = sentences(CONCEPT, "rates")
    bends = np.array([point for each in phases for point in each.curve])
    drawn = chart()
    half = max(1, phases[0].warm_up // 2)  # the step of the formula
    rise = phases[0].first + half - 1.0, phases[0].rate * half / phases[0].warm_up
    points, other = np.unique(np.vstack([bends, rise]), axis=0), dict[str, Any]()
    if drawn.log_x:  # a straight rise is a curve there
        few = np.geomspace(1.0, bends[-1, 0], N_RATES)
        steps = np.unique([*few, *points[points[:, 0] >= 1, 0]])
        points = np.stack([steps, np.interp(steps, *bends.T)], axis=1)
        other = {"x_range": (1.0, float(steps[-1]))}
    return replace(
        drawn,
        title=sentences(CONCEPT, "shared")("rate"),
        series=(Series(words("line"), points[:, 0], points[:, 1], main=True),),
        guides=((float(phases[0].warm_up), words("end")),),
        note=_rates_note(phases),
        **other,
    )


def _rates_note(phases: Sequence[Phase]) -> str:
    """The reason why a learning rate rises first, and how often a training was taken up again."""
    words = sentences(CONCEPT, "rates")
    note = words("warm_up", n=f"{phases[0].warm_up:,}", rate=f"{phases[0].rate:g}")
    *others, last = (f"{each.first:,}" for each in phases)
    if len(phases) == 1:
        return note
    steps = " and ".join(filter(None, (", ".join(others[1:]), last)))
    return f"{note} {words('again', steps=steps)}"


# ---- one model's checkpoints ---------------------------------------------------------------------


def checkpoint_steps(run: Run, chosen: Mapping[str, Any]) -> tuple[int, ...]:
    """The steps of a model's checkpoints."""
    return tuple(each.step for each in model_card.checkpoints(run.model))


def attention_labels(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The labels of a run's attentions by name, the one in which a training is seen best first."""
    return {name: LABELS.get(name, name) for name in attention_names(run.recording())}


def shown_patterns(run: Run, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """The patterns that a text can show."""
    return training.habits(_stages(run, chosen.get("attention", "")))


def clearest_pattern(run: Run, chosen: Mapping[str, Any]) -> str:
    """The pattern that `checkpoints` speaks of until a reader chooses."""
    stages = _stages(run, chosen.get("attention", ""))
    at = chosen.get("layer"), chosen.get("head")
    course = _chosen(stages, training.best_courses(stages), *at, "")
    return course.habit if course else ""


def _stages(run: Run, attention: str) -> tuple[Stage, ...]:
    """All heads of an attention at each checkpoint, without their weights."""
    return tuple(each.stage for each in measured(run, _attention(run, attention)))


OfTraining = Annotated[
    str,
    Choice(
        attention_labels,
        "Attention",
        name="train_of",
        of="model",
        clears=("layer", "head", "train_habit"),
    ),
]
Pattern = Annotated[
    str,
    Choice(
        shown_patterns,
        "Pattern",
        name="train_habit",
        of="model",
        suits=clearest_pattern,
        clears=("layer", "head"),
    ),
]


@spec.predicts
@spec.panel
def checkpoints(
    run: Run,
    step: Annotated[
        int | None, Choice(checkpoint_steps, name="train_step", of="model", help=STEP)
    ] = None,
    attention: OfTraining = "",
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    pattern: Pattern = "",
) -> Panel:
    """Formation of a head's pattern on this text: its score over a model's checkpoints, and all
    heads at one of them.

    step: of the checkpoint; where None, and no head or pattern is chosen, the first one from which
    on the model's answer leads for good, else the last one. attention: its name, the one in which
    training is seen best where "". layer, head and pattern: the head that formed most clearly, and
    its pattern, where left out. Raises ValueError for what is not there, and for a model without
    checkpoints.
    """
    words = sentences(CONCEPT, "checkpoints")
    shared = sentences(CONCEPT, "shared")
    if not model_card.checkpoints(run.model):
        why = shared("none", model=model_names.title(run.model))
        raise ValueError(model_card.missing_checkpoints(run.model) or why)
    name = _attention(run, attention)
    measures = measured(run, name)
    steps = [each.stage.step for each in measures]
    if step is not None and step not in steps:
        raise ValueError(shared("no_step", step=step, steps=", ".join(map(str, steps))))
    is_chosen = bool(pattern) or layer is not None
    is_asked = run.covered is not None  # for its guess, which no picture tells
    guesses = None if is_chosen or is_asked else guesses_of(run)
    at = guesses.first if guesses else len(steps) - 1
    at = at if step is None else steps.index(step)
    stages = [each.stage for each in measures]
    courses = training.best_courses(stages)
    chosen = _chosen(stages, courses, layer, head, pattern)
    taught = model_card.taught_heads(run.model)
    other = _taught_or_not(stages, chosen, taught) if chosen and taught else None
    says, *more = _findings(
        courses, chosen, is_chosen=is_chosen, model=run.model, other=other, brief=bool(guesses)
    )
    main: Figure = (
        _guess_bars(guesses, steps)
        if guesses
        else _charts([], _score_lines(chosen, other, run.model), _where(chosen), float(steps[at]))
    )
    return Panel(
        title=words("title"),
        finding=_led(guesses, steps) if guesses else says,
        figures=(main, _grids(run.model, measures, at, chosen)),
        table=_columns(stages, courses, model_card.loss_curve(run.model)),
        details=(
            *((says,) if guesses else ()),
            *more,
            *(evidence(chosen)[1:] if chosen else ()),
            *what_counts(),
            *meanings(each.habit for each in courses),
            words("press"),
        ),
        caption=(
            words("caption", attention=name, n=len(steps), step=f"{steps[at]:,}"),
            *filter(None, (model_descriptions.taught(model_card.facts(run.model), steps[at]),)),
        ),
        file="training",
        numbers={"checkpoints": Written.count(len(steps))},
    )


def _grids(
    model: str, measures: Sequence[Measured], current: int, chosen: HabitCourse | None
) -> Steps:
    """All heads at each checkpoint."""
    shared, at = sentences(CONCEPT, "shared"), chosen.at if chosen else None
    frames = tuple(
        Frame(
            shared("frame", step=f"{each.stage.step:,}"),
            (_grid(each, _grid_title(model, each.stage), at),),
            key=str(each.stage.step),
            x=float(each.stage.step),
        )
        for each in measures
    )
    return Steps(frames=frames, current=current, choice="train_step", plays=True)


def meanings(names: Iterable[str]) -> tuple[str, ...]:
    """For each of these patterns a sentence on where the attention goes."""
    words, where = sentences(CONCEPT, "checkpoints"), sentences(CONCEPT, "where")
    return tuple(words("meaning", pattern=name, where=where(name)) for name in names)


def _attention(run: Run, attention: str) -> str:
    """The name of the attention. Raises ValueError for one that is not there."""
    names = attention_names(run.recording())
    if attention and attention not in names:
        words = sentences(CONCEPT, "shared")
        raise ValueError(words("no_attention", attention=repr(attention), names=", ".join(names)))
    return attention or names[0]


def _chosen(
    stages: Sequence[Stage],
    courses: Sequence[HabitCourse],
    layer: int | None,
    head: int | None,
    pattern: str,
) -> HabitCourse | None:
    """The head and pattern that are spoken of; None where the text shows no pattern."""
    words = sentences(CONCEPT, "shared")
    names = tuple(each.habit for each in courses)
    if pattern and pattern not in names:
        raise ValueError(
            words("no_pattern", pattern=repr(pattern), patterns=", ".join(names) or "none")
        )
    if layer is not None and head is not None:
        places = [(each.layer, each.head) for each in stages[-1].heads]
        n_layers, n_heads = (1 + max(of) for of in zip(*places))
        at = from_end(layer, n_layers), from_end(head, n_heads)
        if at not in places:
            raise ValueError(words("no_head", layer=layer, head=head))
        if not names:
            return None
        own = [training.habit_course(stages, name, at) for name in names]
        wanted = next((each for each in own if each.habit == pattern), None)
        return wanted or training.most_informative(own)
    wanted = next((each for each in courses if each.habit == pattern), None)
    return wanted or training.most_informative(courses)


def _taught_or_not(
    stages: Sequence[Stage], chosen: HabitCourse, taught: Taught
) -> HabitCourse | None:
    """The head to compare with the chosen one: of a taught head the one with most of its pattern
    among those without a teacher, and of such a one among the taught; None where no taught head has
    the pattern in the end."""
    alone = {(head.layer, head.head) for head in stages[-1].heads} - taught
    best = {
        heads: training.habit_course(
            stages, chosen.habit, training.best_head(stages[-1], chosen.habit, heads)
        )
        for heads in (taught, frozenset(alone))
    }
    one = next(course for heads, course in best.items() if chosen.at not in heads)
    return one if best[taught].has[-1] else None


def _score_lines(
    chosen: HabitCourse | None,
    other: HabitCourse | None = None,
    model: str = "",
) -> list[tuple[str, list[tuple[float, float]]]]:
    """The scores of the chosen head, of uniform attention, and of the head that it is compared
    with; a head of the model that another model's taught is said to be one."""
    if chosen is None:
        return []
    words, taught = sentences(CONCEPT, "shared"), model_card.taught_heads(model) if model else ()
    curves = []
    for each in (chosen, *filter(None, (other,))):
        name = words("head", layer=each.at[0], head=each.at[1])
        if each.at in taught:
            name = words("of_taught", head=name, teacher=_teacher(model))
        curves.append((name, list(zip(map(float, each.steps), each.scores))))
    curves.insert(1, (words("uniform"), list(zip(map(float, chosen.steps), chosen.chances))))
    return curves


def _where(chosen: HabitCourse | None) -> str:
    """The place to which the attention goes that is scored; "" where none is."""
    return sentences(CONCEPT, "where")(chosen.habit) if chosen else ""


def _columns(stages: Sequence[Stage], courses: Sequence[HabitCourse], loss: Curve) -> Columns:
    """Loss and scores at each checkpoint as named columns: a row for each pattern's head there, and
    one where the text shows no pattern."""
    words = sentences(CONCEPT, "checkpoints")
    step, nats, *names = words.lines("columns")
    each = max(1, len(courses))
    columns: dict[str, Cells] = {step: [stage.step for stage in stages for _ in range(each)]}
    if loss:
        columns[nats] = [loss_at(loss, at) for at in columns[step]]
    rows = [
        (
            *(one.habit, head_name(one.at)),
            *(one.scores[at], one.chances[at], words("present") * one.has[at]),
        )
        for at in range(len(stages))
        for one in courses
    ]
    return columns | dict(zip(names, map(list, zip(*rows))))


def _findings(
    courses: Sequence[HabitCourse],
    chosen: HabitCourse | None,
    is_chosen: bool,
    model: str,
    other: HabitCourse | None,
    brief: bool,
) -> tuple[str, ...]:
    """The headline of the head and pattern on screen with its evidence, and of a model of which
    another one taught some heads, whether this is one, and when the head that it is compared with
    learned the pattern; where the reader chose neither and no head has a pattern in the end, a
    sentence on that. brief: the headline alone comes first, and the others after it by
    themselves."""
    words = sentences(CONCEPT, "checkpoints")
    if chosen is None:
        return (words("too_short"),)
    if is_chosen or any(each.has[-1] for each in courses):
        more = *evidence(chosen)[:1], *_learned(model, chosen), *_compared(model, other)
        return (headline(chosen), *more) if brief else (" ".join((headline(chosen), *more)),)
    nearest = words(
        "nearest",
        score=percent(chosen.scores[-1]),
        head=head_name(chosen.at),
        where=sentences(CONCEPT, "where")(chosen.habit),
        chance=percent(chosen.chances[-1]),
    )
    return words("none_formed"), nearest


def _learned(model: str, chosen: HabitCourse) -> Iterator[str]:
    """Sentence on whom a head learned from, of a model of which another one taught some."""
    if taught := model_card.facts(model).get("taught"):
        is_taught = chosen.at in model_card.taught_heads(model)
        slots = {"step": f"{taught['from']:,}", "teacher": taught["teacher"]} if is_taught else {}
        yield sentences(CONCEPT, "checkpoints")("taught" if is_taught else "alone", **slots)


def _compared(model: str, other: HabitCourse | None) -> Iterator[str]:
    """Sentence on the checkpoints between which another head learned the pattern; none where it did
    not, or is seen to have it at the first or at the last checkpoint alone."""
    if other is not None and (place := other.formed_at) and place < len(other.steps) - 1:
        before, step = (f"{each:,}" for each in other.steps[place - 1 : place + 1])
        is_taught = other.at in model_card.taught_heads(model)
        slots = {"teacher": _teacher(model)} if is_taught else {}
        words, name = sentences(CONCEPT, "checkpoints"), "too_taught" if is_taught else "too_alone"
        yield words(name, head=head_name(other.at), before=before, step=step, **slots)


def headline(one: HabitCourse) -> str:
    """Sentence on the checkpoints between which this head learned its pattern."""
    words = sentences(CONCEPT, "checkpoints")
    slots = {"head": head_name(one.at), "kind": sentences(CONCEPT, "kinds")(one.habit)}
    if isnan(one.scores[-1]):
        first = one.habit == head_naming.INDUCTION and one.at[0] == 0
        return words("first_layer" if first else "cannot", **slots)
    if (place := one.formed_at) is not None:
        step = f"{one.steps[place]:,}"
        if place == 0:
            return words("from_start", step=step, **slots)
        if place == len(one.steps) - 1:
            rising = one.scores[-1] > one.scores[-2]
            return words("at_last", step=step, **slots) + f" {words('rising')}" * rising
        return words("became", before=f"{one.steps[place - 1]:,}", step=step, **slots)
    if (place := one.lost) is not None:
        return words("lost", step=f"{one.steps[place]:,}", **slots)
    return words("never", **slots)


def evidence(one: HabitCourse) -> tuple[str, ...]:
    """The numbers behind the headline."""
    if isnan(one.scores[-1]):
        return ()
    words, where = sentences(CONCEPT, "checkpoints"), sentences(CONCEPT, "where")(one.habit)
    place = one.formed_at if one.formed_at is not None else one.lost
    name = "at_step"
    if place is None:
        name = "at_most"
        finite = [score if isfinite(score) else -1.0 for score in one.scores]
        place = max(range(len(one.steps)), key=finite.__getitem__)
    step, score = f"{one.steps[place]:,}", percent(one.scores[place])
    chance = percent(one.chances[place])
    lines = [words(name, step=step, score=score, where=where, chance=chance)]
    if name == "at_most":
        return tuple(lines)
    if place and isfinite(one.scores[place - 1]):
        before = percent(one.scores[place - 1])
        lines.append(words("before", step=f"{one.steps[place - 1]:,}", score=before))
    if place < len(one.steps) - 1:
        last = percent(one.scores[-1])
        lines.append(words("last", step=f"{one.steps[-1]:,}", score=last))
    return tuple(lines)


def what_counts() -> tuple[str, ...]:
    """Sentences on the conditions for a head to have a pattern, and to have learned one."""
    words = sentences(CONCEPT, "shared")
    conditions = words.lines(
        "conditions",
        lift=head_naming.MIN_LIFT,
        rows=head_naming.FEWEST_ROWS,
        p=f"{head_naming.MAX_P_VALUE:.0%}",
    )
    return words("what_counts"), *conditions, words("learned")


# ---- two models ----------------------------------------------------------------------------------


def pairs() -> tuple[tuple[str, str], ...]:
    """The models that differ in one part, two and two."""
    return training.ablation_pairs(model_names.cards())


def pair_labels(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The pairs by the name of the model that lacks a part, one with the run's model first."""
    own_first = sorted(pairs(), key=lambda pair: run.model not in pair)
    return {
        second: f"{model_names.title(first)} / {model_names.title(second)}"
        for first, second in own_first
    }


def steps_of_both(run: Run, chosen: Mapping[str, Any]) -> tuple[int, ...]:
    """The steps at which both models of a pair have weights."""
    return common_steps(models_of_pair(run.model, chosen.get("second", "")))


def first_of_pair(run: Run, chosen: Mapping[str, Any]) -> tuple[Run, dict[str, Any]]:
    """The text in the first of two models, and the second."""
    first, second = models_of_pair(run.model.partition("@")[0], chosen.get("second", ""))
    return Run(first, run.text), {"second": second}


@spec.panel
def pair(
    run: Run,
    second: Annotated[
        str, Choice(pair_labels, "Pair", name="train_pair", reads=first_of_pair)
    ] = "",
    step: Annotated[
        int | None, Choice(steps_of_both, name="train_step", of="model", help=STEP)
    ] = None,
) -> Panel:
    """Two trainings that differ in one part: both losses, the pattern that tells most in both, and
    all heads of either.

    second: the model that lacks the part; where "" that of the first pair with the run's model,
    else of the first of all. step: of checkpoints that both have, the last where None. Raises
    ValueError for what is no pair, and for a step that is not there.
    """
    words, shared = sentences(CONCEPT, "pair"), sentences(CONCEPT, "shared")
    models_of = models_of_pair(run.model, second)
    runs = [Run(name, run.text, run.edits) for name in models_of]
    curves = (model_card.loss_curve(models_of[0]), model_card.loss_curve(models_of[1]))
    steps = common_steps(models_of)
    if step is not None and step not in steps:
        raise ValueError(
            shared("no_step", step=step, steps=", ".join(map(str, steps)) or words("end"))
        )
    at = len(steps) - 1 if step is None else steps.index(step)
    frames = _pair_frames(runs, steps)
    without = model_names.cards()[models_of[1]]["without"]
    first, other = titles = tuple(map(model_names.title, models_of))
    columns = {
        name: [point[place] for point in curve]
        for model, curve in zip(titles, curves)
        for place, name in enumerate(words.lines("columns", model=model))
    }
    notes = {model_card.loss_note(name) for name in models_of}
    is_even = len({len(values) for values in columns.values()}) == 1
    return Panel(
        title=words("title"),
        finding=pair_finding((first, other), curves),
        figures=(
            _charts(
                list(zip(titles, curves)),
                *(_pair_scores(runs) if len(steps) > 1 else ([], "")),
                float(steps[at]) if steps else None,
                notes.pop() if len(notes) == 1 else "",
            ),
            Steps(frames=frames, current=max(at, 0), choice="train_step", plays=len(frames) > 1),
        ),
        table=columns if is_even else {},
        details=(
            words("differ", second=other, without=without),
            words("same"),
            *what_counts(),
        ),
        caption=(words("caption", first=first, second=other),),
        file=f"{models_of[0]}-{models_of[1]}",
    )


def models_of_pair(model: str, second: str = "") -> tuple[str, str]:
    """The pair of a second model; where "" the first with `model`, else the first of all. Raises
    ValueError for what is no pair, and where there is none."""
    words, every = sentences(CONCEPT, "pair"), pairs()
    if not every:
        raise ValueError(words("none"))
    if not second:
        return next((each for each in every if model in each), every[0])
    pair_of_second = next((each for each in every if each[1] == second), None)
    if pair_of_second is None:
        listed = ", ".join(" / ".join(each) for each in every)
        raise ValueError(words("no_pair", second=second, pairs=listed))
    return pair_of_second


def common_steps(models_of: tuple[str, str]) -> tuple[int, ...]:
    """The steps at which both have weights; none where one of them has its last ones alone."""
    one, other = ([each.step for each in model_card.checkpoints(name)] for name in models_of)
    return tuple(step for step in one if step in other)


def _pair_frames(runs: Sequence[Run], steps: Sequence[int]) -> tuple[Frame, ...]:
    """The heads of both models at each step that they have in common, or at the end."""
    words, shared = sentences(CONCEPT, "pair"), sentences(CONCEPT, "shared")
    if not steps:
        last = [measure(run.recording(), _attention(run, ""), 0) for run in runs]
        grids = [_grid(each, model_names.title(run.model), None) for each, run in zip(last, runs)]
        return (Frame(words("end"), tuple(grids)),)
    measures = [
        {each.stage.step: each for each in measured(run, _attention(run, ""))} for run in runs
    ]
    return tuple(
        Frame(
            shared("frame", step=f"{step:,}"),
            tuple(
                _grid(each[step], model_names.title(run.model), None)
                for each, run in zip(measures, runs)
            ),
            key=str(step),
            x=float(step),
        )
        for step in steps
    )


def _pair_scores(runs: Sequence[Run]) -> tuple[list[tuple[str, list[tuple[float, float]]]], str]:
    """The scores of the first model's clearest pattern, of the head that has most of it, in both
    models; and where its attention goes."""
    words = sentences(CONCEPT, "pair")
    measures = [[each.stage for each in measured(run, _attention(run, ""))] for run in runs]
    first = training.most_informative(training.best_courses(measures[0]))
    if first is None:
        return [], ""
    lines = []
    for run, stages in zip(runs, measures):
        best = training.best_head(stages[-1], first.habit)
        course = training.habit_course(stages, first.habit, best)
        name = words("curve", head=head_name(best), model=model_names.title(run.model))
        lines.append((name, list(zip(map(float, course.steps), course.scores))))
    return lines, _where(first)


def pair_finding(names: tuple[str, str], curves: tuple[Curve, Curve]) -> str:
    """Two losses compared at the end of the shorter run, in one sentence, and when the better one
    reached the other's."""
    words = sentences(CONCEPT, "pair")
    last = min(curve[-1][0] for curve in curves)
    ends = [float(loss_at(curve, last) or 0) for curve in curves]
    better, worse = (0, 1) if ends[0] <= ends[1] else (1, 0)
    slots = {"better": names[better], "worse": names[worse]}
    finding = words(
        "finding", step=f"{last:,.0f}", low=fixed(ends[better]), high=fixed(ends[worse]), **slots
    )
    reached = first_below(curves[better], ends[worse])
    if reached is not None and reached < (1 - LAST_PART) * last:
        return f"{finding} {words('reached', step=f'{reached:,.0f}', **slots)}"
    lower = np.array(training.differences(curves[better], curves[worse], (1 - LAST_PART) * last))
    if len(lower) < 2:
        return finding
    slots |= {"steps": f"{LAST_PART * last:,.0f}", "mean": fixed(float(lower.mean()))}
    return f"{finding} {words('lower', sd=fixed(float(lower.std(ddof=1))), **slots)}"


# ---- a training that goes on ---------------------------------------------------------------------


def live(
    task: str,
    recording: Recording,
    lists: Mapping[int, OneList],
    measures: Sequence[Measured],
    curves: Sequence[Curve],
    size: tuple[int, int, int],
) -> Panel:
    """A training so far: what it says to one list, loss and pattern scores over its steps, and all
    heads now.

    task: what it learns. lists: the list and what is said to it, by the step. measures: all heads
    at each step that was looked at. curves: the loss, and the loss on what is held out where there
    is one. size: layers, heads and width.
    """
    words, shared = sentences(CONCEPT, "live"), sentences(CONCEPT, "shared")
    stages = [each.stage for each in measures]
    courses = training.best_courses(stages)
    chosen = training.most_informative(courses)
    names = (shared("loss_curve"), words("held_out"))
    layers, heads, width = size
    last = measures[-1]
    grid = _grid(last, words("grid"), chosen.at if chosen else None)
    says = words("none_yet")
    if chosen is not None and isfinite(chosen.scores[-1]):
        kind = sentences(CONCEPT, "kinds")(chosen.habit)
        says = words(
            "now" if chosen.formed_at is not None else "so_far",
            head=head_name(chosen.at),
            kind=kind,
            where=_where(chosen),
            score=percent(chosen.scores[-1]),
            chance=percent(chosen.chances[-1]),
        )
    charts = _charts(list(zip(names, curves)), _score_lines(chosen), _where(chosen), None)
    one = lists[max(lists)]
    return Panel(
        title=words("title", task=task),
        finding=f"{words('said', right=one.n_right, n=len(one.right))} {says}",
        figures=(
            _lists(lists),
            charts,
            replace(grid, select=()),
        ),
        details=what_counts(),
        caption=(
            words(
                "caption",
                step=f"{last.stage.step:,}",
                layers=layers,
                heads=heads,
                width=width,
                parameters=f"{recording.model.n_parameters:,}",
            ),
        ),
        file="headlight-live",
        token=f"{recording.model.fingerprint}{last.stage.step}{hash(recording.text)}",
    )


def example(run: Run) -> Panel:
    """A training that is over: what it said to a text at its first checkpoint, at one in the middle
    and at the last, and all heads at each."""
    words, points = sentences(CONCEPT, "live"), model_card.checkpoints(run.model)
    steps = (points[0], points[len(points) // 2], points[-1])
    lists = {each.step: _predicted_words(run, each) for each in steps}
    first, last = lists[steps[0].step], lists[steps[-1].step]
    measures = measured(run, _attention(run, ""))
    chosen = training.most_informative(training.best_courses([each.stage for each in measures]))
    step, n = f"{steps[-1].step:,}", len(last.right)
    return Panel(
        title="",
        finding=words("learned", first=first.n_right, last=last.n_right, n=n, step=step),
        figures=(_lists(lists), _grids(run.model, measures, len(points) - 1, chosen)),
        file="headlight-example",
        token=f"{run.model}{hash(run.text)}",
    )


def _predicted_words(run: Run, at: Checkpoint) -> OneList:
    """A model's words at a checkpoint, after the right tokens before it: of a text to the tokens
    that come again, of a translation to the source."""
    recording = at_checkpoint(run, at).recording()
    stream, source = logit_lens.read_stream(recording), recording.streams[0]
    read = stream.tokens[:-1]
    again = [place for place, token in enumerate(read) if token in read[:place]]
    places = again if stream is source else range(int((~source.special).sum()))
    ids = [argmax_id(loaded(recording).logits(recording, stream.name, each)) for each in places]
    of = (
        source.tokens
        if stream is source
        else [token for token, special in zip(source.tokens, source.special) if not special]
    )
    given = tuple(of[each] for each in places)
    return OneList(
        given, tuple(stream.tokens[each + 1] for each in places), tuple(run.loaded.labels(ids))
    )


def _lists(lists: Mapping[int, OneList]) -> TextTable:
    """One list, what is right for each of its places, which is the list itself where it is to be
    said again, and what the model says there at some steps."""
    words, steps = sentences(CONCEPT, "live"), sorted(lists)
    one = lists[steps[-1]]
    is_same = one.given == one.right
    about = (words("same_list"),) if is_same else words.lines("of_list")
    guesses = [
        [words("hit" if a == b else "miss", token=a) for a, b in zip(lists[at].said, one.right)]
        for at in steps
    ]
    return TextTable(
        title=words("list_again" if is_same else "list"),
        note=words("list_note"),
        columns=(*about, *(words("at_step", step=f"{at:,}") for at in steps)),
        rows=tuple(zip(*([] if is_same else [one.given]), one.right, *guesses)),
    )
