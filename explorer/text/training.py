"""When heads took up their habits, and what the loss did meanwhile, in words."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isnan

from explorer.analysis import head_naming
from explorer.analysis.training import Curve, HabitCourse, Stage, first_below, loss_at
from explorer.text.markdown_escape import literal

KINDS = {
    "previous": "a previous-token head",
    "next": "a next-token head",
    "self": "a head that looks at its own token",
    "same word": "a same-word head",
    "induction": "an induction head",
    "diagonal": "a head that walks along the source",
    "anti-diagonal": "a head that walks back along the source",
}
WHERE = {
    "previous": "on the token before",
    "next": "on the token after",
    "self": "on the token itself",
    "same word": "on the same word elsewhere",
    "induction": "on what followed the same word last time",
    "diagonal": "near the same place of the source",
    "anti-diagonal": "near the mirrored place of the source",
}
WHAT_COUNTS = (
    "A head has a habit at a checkpoint where its lift over an even row is at least "
    f"{head_naming.MIN_LIFT}, in more than half of the rows that can show it, of "
    f"{head_naming.FEWEST_ROWS} different tokens or more, and luck would do as much in under "
    f"{head_naming.MAX_P_VALUE:.0%} of heads. "
    "It became that head at the first checkpoint from which on this holds at every one."
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
        made[f"{name}, even row"] = list(one.chances)
        made[f"{name}, has it"] = ["yes" if has else "" for has in one.has]
    return made


def headline(one: HabitCourse) -> str:
    """When this head took up its habit, in one sentence."""
    name, kind = head_name(one.at), KINDS[one.habit]
    if isnan(one.scores[-1]):
        return f"This text cannot show whether {name} is {kind}."
    if (place := one.formed_at) is not None:
        if place == 0:
            return f"{name} was {kind} from step {one.steps[0]:,} on."
        return f"{name} became {kind} at step {one.steps[place]:,}."
    if (place := one.lost) is not None:
        return f"{name} was {kind} at step {one.steps[place]:,}, and is none in the end."
    return f"On this text {name} never became {kind}."


def evidence(one: HabitCourse) -> str:
    """The numbers behind the headline."""
    if isnan(one.scores[-1]):
        return ""
    where = WHERE[one.habit]
    place = one.formed_at if one.formed_at is not None else one.lost
    if place is None:
        best = max(range(len(one.steps)), key=lambda at: _low(one.scores[at]))
        return (
            f"At most {one.scores[best]:.2f} of its attention lies {where} (step "
            f"{one.steps[best]:,}), where an even row gives {one.chances[best]:.2f}."
        )
    said = (
        f"{one.scores[place]:.2f} of its attention lies {where} at step {one.steps[place]:,}, "
        f"where an even row gives {one.chances[place]:.2f}"
    )
    if place and isfinite(one.scores[place - 1]):
        said += f"; at step {one.steps[place - 1]:,} it was {one.scores[place - 1]:.2f}"
    if place < len(one.steps) - 1:
        said += f"; in the end, at step {one.steps[-1]:,}, it is {one.scores[-1]:.2f}"
    return f"{said}."


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
        f"{one.scores[place - 1]:.2f} to {one.scores[place]:.2f}. The loss went from {high:.2f} "
        f"to {low:.2f} nats"
    )
    whole = curve[0][1] - curve[-1][1]
    if high > low and whole > 0:
        said += (
            f" in these steps: {(high - low) / whole:.0%} of its whole fall in "
            f"{(after - before) / (curve[-1][0] - curve[0][0] or 1):.0%} of the steps"
        )
    return f"{said}."


def twins(names: tuple[str, str], curves: tuple[Curve, Curve]) -> str:
    """Two runs that differ in one thing, their losses compared at the end of the shorter one, in
    one sentence."""
    last = min(curve[-1][0] for curve in curves)
    ends = [float(loss_at(curve, last) or 0) for curve in curves]
    better, worse = (0, 1) if ends[0] <= ends[1] else (1, 0)
    said = (
        f"After {last:,.0f} steps the loss of {names[better]} is {ends[better]:.2f} nats, that of "
        f"{names[worse]} {ends[worse]:.2f}"
    )
    reached = first_below(curves[better], ends[worse])
    if reached is not None and reached < last:
        said += f", which {names[better]} had left behind by step {reached:,.0f}"
    return f"{said}."


def differ(names: tuple[str, str], without: str, data: Sequence[str]) -> str:
    """In what two models differ, and what they share."""
    return (
        f"They differ in one thing: {names[1]} was trained without {without}. Recipe, seed, steps "
        f"and data are the same ({literal('; '.join(data))})."
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
    "copy": "An encoder-decoder learns to say a list of random tokens again.",
    "reverse": "An encoder-decoder learns to say a list of random tokens backwards.",
    "induction": (
        "A decoder learns to go on with a list of random tokens that was said once before."
    ),
    "text": "A decoder learns to say what comes next in a text that you paste.",
}


# Over the view in which a model learns, while the frame names another: the chosen one.
WHOSE = (
    "Above: **{}**, the model of the other pages, and its map. Below: a new, small model that "
    "learns from nothing; the chosen one has no part in it."
)


def bounds(seconds: float) -> str:
    """What a live training may take."""
    return (
        f"It takes at most {seconds:.0f} seconds of one core, at the lowest priority, in a "
        "process of its own, and the sentence above is read as it learns. Press Start."
    )


def live_status(
    step: int, seconds: float, loss: float | None, right: float, most: float, unseen: str
) -> str:
    """How far a training has come, in one line."""
    said = f"Step {step:,}, {seconds:.0f} of at most {most:.0f} seconds"
    if loss is not None:
        said += f": loss {loss:.2f} nats"
    if isfinite(right):
        said += f", {right:.0%} of the tokens right on {unseen}"
    return f"{said}."


def queued(ahead: int, seconds: float) -> str:
    """Why a training has not begun."""
    others = "Another reader’s model is" if ahead == 1 else f"{ahead} other readers’ models are"
    return (
        f"{others} before yours: this server trains few at a time, so that no page grows slow. "
        f"Yours begins by itself; the one at work has at most {seconds:.0f} seconds of the "
        "processor left."
    )
