"""A model's checkpoints, from its first step to the model itself."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.memory.models import facts, is_light
from models import library


@dataclass(frozen=True)
class Checkpoint:
    """Weights of a model after so many steps, under the name that `handle` takes; the last ones are
    the model itself."""

    step: int
    model: str


def checkpoints(model: str) -> tuple[Checkpoint, ...]:
    """A model's checkpoints in the order of their steps; none for a model that has no earlier
    weights. `model` may be one of them."""
    base = model.partition("@")[0]
    early = library.checkpoints(base)
    if not early:
        return ()
    found = [Checkpoint(int(name.partition("@")[2]), name) for name in early]
    return (*found, Checkpoint(int(facts(base)["steps"]), base))


def curve(model: str) -> tuple[tuple[float, float], ...]:
    """A model's loss over its training, (step, nats); empty where its card keeps none."""
    base = model.partition("@")[0]
    found = facts(base).get("curve", ()) if is_light(base) else ()
    return tuple((float(step), float(loss)) for step, loss in found)


def course(model: str) -> str:
    """What is to be known of that curve, in a sentence; "" where there is nothing."""
    base = model.partition("@")[0]
    return str(facts(base).get("course", "")) if is_light(base) else ""


def missing(model: str = "") -> str:
    """Why there are no earlier weights to be seen, in a sentence; "" where a shipped model has
    some, or this one."""
    return "" if model and checkpoints(model) else library.without_earlier()


def with_checkpoints() -> tuple[str, ...]:
    """The models here that have earlier weights."""
    return tuple(name for name in library.names() if library.checkpoints(name))
