"""Heads forming: the scores of habits over a model's checkpoints, when a head took one up for good,
and the loss beside it.

A habit, its score, its chance and what speaks against it are those of
`explorer.analysis.head_naming`, measured on the same text at each checkpoint. A head *has* a habit
at a checkpoint where nothing speaks against it there: it lies beyond chance and beyond luck.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from explorer.analysis import head_naming
from explorer.figures.csv import Columns

# What a head can take up. A sink is about many heads at once, "diffuse" about none.
HABITS = (
    *(name for name in head_naming.NAMING if name != head_naming.SINK),
    head_naming.PRONOUN,
    *head_naming.NAMING_ACROSS[:2],
)
JUMP = 10  # times the median change of a loss, from which on a rise is no noise
Curve = tuple[tuple[float, float], ...]  # (step, loss in nats), steps rising


@dataclass(frozen=True)
class Stage:
    """All heads of one attention at one checkpoint, measured on the reader's text."""

    step: int
    heads: tuple[head_naming.Head, ...]


@dataclass(frozen=True)
class HabitCourse:
    """One head and one habit over the checkpoints. All four tuples are aligned with `steps`.

    scores, chances: NaN where the text, or a head of this layer, cannot show the habit. has: True
    where nothing speaks against it.
    """

    habit: str
    at: tuple[int, int]
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    chances: tuple[float, ...]
    has: tuple[bool, ...]

    @property
    def formed_at(self) -> int | None:
        """The place of the first checkpoint from which on the head has the habit at every one; None
        where it lacks it at the last."""
        lacking = [place for place, has in enumerate(self.has) if not has]
        first = lacking[-1] + 1 if lacking else 0
        return first if first < len(self.steps) else None

    @property
    def lost(self) -> int | None:
        """The place of the last checkpoint with the habit, where the last of all lacks it; None
        where it never had it, or has it."""
        having = [place for place, has in enumerate(self.has) if has]
        return having[-1] if having and not self.has[-1] else None

    @property
    def jump(self) -> int | None:
        """The place of the checkpoint with the largest rise in score since the one before; None
        where it never rises."""
        rises = [
            (self.scores[place] - self.scores[place - 1], place)
            for place in range(1, len(self.steps))
        ]
        positive_rises = [(rise, place) for rise, place in rises if isfinite(rise) and rise > 0]
        return max(positive_rises)[1] if positive_rises else None


def habit_course(stages: Sequence[Stage], habit: str, at: tuple[int, int]) -> HabitCourse:
    """A head's way into a habit, over stages in the order of their steps."""
    relations = [_relation(stage, habit, at) for stage in stages]
    nan = float("nan")
    return HabitCourse(
        habit,
        at,
        tuple(stage.step for stage in stages),
        tuple(nan if relation is None else relation.score for relation in relations),
        tuple(nan if relation is None else relation.chance for relation in relations),
        tuple(
            relation is not None
            and not relation.against
            and _head(stage, at).name != head_naming.TOO_SHORT
            for stage, relation in zip(stages, relations)
        ),
    )


def habits(stages: Sequence[Stage]) -> tuple[str, ...]:
    """The habits that this text can show, in the order of HABITS."""
    visible_names = {
        relation.name
        for head in stages[-1].heads
        for relation in head.relations
        if relation.against != head_naming.FIRST_LAYER
    }
    return tuple(name for name in HABITS if name in visible_names)


def best_head(
    stage: Stage, habit: str, among: Container[tuple[int, int]] | None = None
) -> tuple[int, int]:
    """The head with the highest score for a habit; of those that have it, where any does. among:
    the heads that count, all where None."""

    def rank(head: head_naming.Head) -> tuple[bool, float]:
        relation = _relation(stage, habit, (head.layer, head.head))
        return (False, -1.0) if relation is None else (not relation.against, relation.score)

    heads = [one for one in stage.heads if among is None or (one.layer, one.head) in among]
    best = max(heads, key=rank)
    return best.layer, best.head


def best_courses(stages: Sequence[Stage]) -> tuple[HabitCourse, ...]:
    """For each habit the head that has most of it in the end, and its way there."""
    return tuple(
        habit_course(stages, habit, best_head(stages[-1], habit)) for habit in habits(stages)
    )


def most_informative(courses: Sequence[HabitCourse]) -> HabitCourse | None:
    """The course a reader should see first: of the habits a head has in the end, induction, else
    the one that rose most."""
    formed = [
        course for course in courses if course.formed_at is not None and course.jump is not None
    ]
    if not formed:
        return max(courses, key=lambda course: _finite_or_lowest(course.scores[-1]), default=None)
    return max(
        formed,
        key=lambda course: (
            course.habit == head_naming.INDUCTION,
            course.scores[-1] - next(filter(isfinite, course.scores)),
        ),
    )


def loss_at(curve: Curve, step: float) -> float | None:
    """The loss at the point of a curve that is nearest to a step; None for an empty curve, and for
    a step from which it begins farther than its points are apart."""
    if not curve or (len(curve) > 1 and 2 * curve[0][0] - curve[1][0] > step):
        return None
    return min(curve, key=lambda point: abs(point[0] - step))[1]


def first_below(curve: Curve, loss: float) -> float | None:
    """The first step from which on a curve stays at or below a loss; None where it ends above."""
    above = [place for place, (_, value) in enumerate(curve) if value > loss]
    place = above[-1] + 1 if above else 0
    return curve[place][0] if place < len(curve) else None


def differences(lower: Curve, upper: Curve, first: float) -> list[float]:
    """The loss of one curve less that of another at the steps that both have, from `first` on."""
    other = dict(lower)
    return [loss - other[at] for at, loss in upper if at in other and at >= first]


def largest_rise(curve: Curve) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """The neighbouring points between which a loss rises most, where that is more than JUMP times
    the median change of two neighbours; else None."""
    pairs = list(zip(curve, curve[1:]))
    if not pairs:
        return None
    rises = [after[1] - before[1] for before, after in pairs]
    most = max(range(len(rises)), key=rises.__getitem__)
    return pairs[most] if rises[most] > JUMP * median(map(abs, rises)) else None


def smoothed(curve: Curve, most: int = 400) -> Curve:
    """At most so many points, each the mean of its neighbours, so that a long curve is drawn
    quickly."""
    by = -(-len(curve) // most)
    parts = [curve[at : at + by] for at in range(0, len(curve), max(1, by))]
    return tuple((part[-1][0], sum(loss for _, loss in part) / len(part)) for part in parts if part)


def training_columns(curve: Curve, held_out: Curve) -> Columns:
    """A training's losses in nats as named columns: the mean since the step before, None where no
    step lies between, and that on held-out text."""
    loss = dict(curve)
    return {
        "step": [int(step) for step, _ in held_out],
        "loss": [loss.get(step) for step, _ in held_out],
        "loss kept out": [value for _, value in held_out],
    }


def ablation_pairs(cards: Mapping[str, Mapping]) -> tuple[tuple[str, str], ...]:
    """Models trained alike but for one thing, (whole, other), where both cards keep their curves:
    real text first."""
    result = []
    for name, card in cards.items():
        full = card.get("of") or (name.partition("-no-")[0] if card.get("without") else "")
        if full in cards and card.get("curve") and cards[full].get("curve"):
            result.append((full, name))
    return tuple(sorted(result, key=lambda pair: "-no-" in pair[1]))


def _finite_or_lowest(value: float) -> float:
    return value if isfinite(value) else -1.0


def _head(stage: Stage, at: tuple[int, int]) -> head_naming.Head:
    return next(head for head in stage.heads if (head.layer, head.head) == at)


def _relation(stage: Stage, habit: str, at: tuple[int, int]) -> head_naming.Relation | None:
    """A head's score for a habit that the text, and a head of this layer, can show."""
    return next(
        (
            relation
            for relation in _head(stage, at).relations
            if relation.name == habit and relation.against != head_naming.FIRST_LAYER
        ),
        None,
    )
