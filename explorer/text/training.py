"""The sentences of Training: when heads learned their patterns, beside the loss."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from explorer.analysis import head_naming
from explorer.analysis.training import Curve, HabitCourse, Stage, first_below, loss_at

KINDS = {
    "previous": "a previous-token head",
    "next": "a next-token head",
    "self": "a head that attends to its own token",
    "same word": "a same-word head",
    "induction": "an induction head",
    "diagonal": "a head that follows the source in order",
    "anti-diagonal": "a head that follows the source backwards",
}
WHERE = {
    "previous": "to the previous token",
    "next": "to the next token",
    "self": "to the token itself",
    "same word": "to other occurrences of the same word",
    "induction": "to the token after the previous occurrence",
    "diagonal": "to the same relative position in the source",
    "anti-diagonal": "to the mirrored position in the source",
}
WHAT_COUNTS = (
    "A head has a pattern at a checkpoint under three conditions. Its lift over uniform attention "
    f"is at least {head_naming.MIN_LIFT}. More than half of the rows show it, with "
    f"{head_naming.FEWEST_ROWS} or more different tokens. Its p-value is under "
    f"{head_naming.MAX_P_VALUE:.0%}. A pattern is learned at the first checkpoint from which on "
    "all checkpoints have it."
)


def head_name(at: tuple[int, int]) -> str:
    """A head by its layer and number: "L1 H3"."""
    return f"L{at[0]} H{at[1]}"


def columns(
    stages: Sequence[Stage], courses: Sequence[HabitCourse], loss: Curve
) -> dict[str, list]:
    """Loss and scores at each checkpoint as named columns."""
    made: dict[str, list] = {"step": [stage.step for stage in stages]}
    if loss:
        made["loss (nats)"] = [loss_at(loss, stage.step) for stage in stages]
    for one in courses:
        name = f"{one.habit}, {head_name(one.at)}"
        made[name] = list(one.scores)
        made[f"{name}, uniform attention"] = list(one.chances)
        made[f"{name}, present"] = ["yes" if has else "" for has in one.has]
    return made


def headline(one: HabitCourse) -> str:
    """When this head learned its pattern, in one sentence."""
    name, kind = head_name(one.at), KINDS[one.habit]
    if isnan(one.scores[-1]):
        return f"This text cannot show whether {name} is {kind}."
    if (place := one.formed_at) is not None:
        if place == 0:
            return f"{name} was {kind} from step {one.steps[0]:,} on."
        return f"{name} became {kind} at step {one.steps[place]:,}."
    if (place := one.lost) is not None:
        return f"{name} was {kind} at step {one.steps[place]:,}, but is not at the last checkpoint."
    return f"On this text {name} is not {kind} at any checkpoint."


def evidence(one: HabitCourse) -> str:
    """The numbers behind the headline."""
    if isnan(one.scores[-1]):
        return ""
    where = WHERE[one.habit]
    place = one.formed_at if one.formed_at is not None else one.lost
    if place is None:
        best = max(range(len(one.steps)), key=lambda at: _low(one.scores[at]))
        return (
            f"At most {one.scores[best]:.2f} of its attention goes {where} (step "
            f"{one.steps[best]:,}). Uniform attention would give {one.chances[best]:.2f}."
        )
    said = (
        f"At step {one.steps[place]:,}, {one.scores[place]:.2f} of its attention goes {where}. "
        f"Uniform attention would give {one.chances[place]:.2f}."
    )
    if place and isfinite(one.scores[place - 1]):
        said += f" At step {one.steps[place - 1]:,} it was {one.scores[place - 1]:.2f}."
    if place < len(one.steps) - 1:
        said += f" At the last step, {one.steps[-1]:,}, it is {one.scores[-1]:.2f}."
    return said


def beside_loss(one: HabitCourse, curve: Curve) -> str:
    """The largest rise of a score and what the loss did in the same steps; "" where either is
    missing."""
    place = one.jump
    if place is None or len(curve) < 2:
        return ""
    before, after = one.steps[place - 1], one.steps[place]
    high, low = loss_at(curve, before), loss_at(curve, after)
    if high is None or low is None:
        return ""
    said = (
        f"Its score rose most between steps {before:,} and {after:,}, from "
        f"{one.scores[place - 1]:.2f} to {one.scores[place]:.2f}. The loss changed from {high:.2f} "
        f"to {low:.2f} nats"
    )
    whole = curve[0][1] - curve[-1][1]
    if high > low and whole > 0:
        said += f" in these steps, {(high - low) / whole:.0%} of the total decrease"
    return f"{said}."


def twins(names: tuple[str, str], curves: tuple[Curve, Curve]) -> str:
    """Two runs that differ in one thing, their losses compared at the end of the shorter one, in
    one sentence."""
    last = min(curve[-1][0] for curve in curves)
    ends = [float(loss_at(curve, last) or 0) for curve in curves]
    better, worse = (0, 1) if ends[0] <= ends[1] else (1, 0)
    said = (
        f"After {last:,.0f} steps the loss of {names[better]} is {ends[better]:.2f} nats, and of "
        f"{names[worse]} {ends[worse]:.2f}."
    )
    reached = first_below(curves[better], ends[worse])
    if reached is not None and reached < last:
        said += f" {names[better]} reached that loss at step {reached:,.0f}."
    return said


def differ(names: tuple[str, str], without: str) -> str:
    """In what two models differ, and what they share."""
    return (
        f"The two models differ in one part: {names[1]} was trained without {without}. Recipe, "
        "seed, steps and data are the same."
    )


def _low(value: float) -> float:
    return value if isfinite(value) else -1.0


TASK_LABELS = {
    "copy": "Copy a list",
    "reverse": "Reverse a list",
    "induction": "Induction",
    "text": "Your own text",
}
LEARNS = {
    "copy": "An encoder-decoder learns to copy a list of random tokens.",
    "reverse": "An encoder-decoder learns to reverse a list of random tokens.",
    "induction": "A decoder learns to continue a repeated sequence of random tokens.",
    "text": "A decoder learns to predict the next token of a text that you paste.",
}


# Over the view of a model in training, while the frame names the selected one.
WHOSE = "This page trains a new, small model from random weights. The other pages show **{}**."


def bounds(seconds: float) -> str:
    """What a live training may take."""
    return (
        f"Training takes at most {seconds:.0f} seconds of one core. The model reads the sentence "
        "above while it learns. Press Start."
    )


def live_status(
    step: int, seconds: float, loss: float | None, right: float, most: float, unseen: str
) -> str:
    """How far a training has come, in one line."""
    said = f"Step {step:,}, {seconds:.0f} of at most {most:.0f} seconds"
    if loss is not None:
        said += f": loss {loss:.2f} nats"
    if isfinite(right):
        said += f", accuracy {right:.0%} on {unseen}"
    return f"{said}."


def queued(ahead: int, seconds: float) -> str:
    """Why a training has not begun."""
    others = "Another reader’s model is" if ahead == 1 else f"{ahead} other readers’ models are"
    return (
        f"{others} before yours, because this server trains few models at a time. Yours starts "
        f"automatically. The current one has at most {seconds:.0f} seconds left."
    )
