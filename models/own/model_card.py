"""Facts of a model's card: its sizes, its limits, the course of its training, its earlier
weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from models import model_names, shipped_models
from models.contract.capabilities import Capabilities
from models.contract.edits import NORMS
from models.runtime.caching import loaded

RECORDED = "A recording from a file that Headlight {version} wrote; the model itself is not here."


def facts(model: str) -> dict:
    """A model's card; for a borrowed one its capabilities, under the same names."""
    if model_names.is_local(model):
        return model_names.card(model.partition("@")[0])
    borrowed = loaded(model)
    card, features = borrowed.card, borrowed.capabilities
    origins = {
        model_names.HUB_PREFIX: "in its own code",
        model_names.CLUSTER_PREFIX: "on the cluster",
    }
    own_classes = "its weights in Headlight’s own classes"
    if borrowed.recorded is not None:
        summary = RECORDED.format(version=borrowed.recorded.version or "an earlier version")
    else:
        summary = f"A pretrained model, {origins.get(model[: model.find(':') + 1], own_classes)}."
    return {
        "kind": card.kind,
        "readout": bool(features.logits),
        "classes": features.classes,
        "n_parameters": card.n_parameters,
        "headline": "",
        "summary": summary,
        "config": {"n_layer": card.n_layer, "n_head": card.n_head},
        "limits": [
            f"weights: {card.weights}",
            f"attention: {', '.join(features.attention)}",
            f"positions: {features.positions}",
            *_parts(features, card.n_head),
        ],
    }


def _parts(features: Capabilities, n_head: int) -> Iterator[str]:
    """Differences of a model from the paper's architecture, a line each."""
    places = {
        "post": "after each sum",
        "pre": "before each sub-layer",
        "branch": "after each sub-layer, before its output is added",
        "both": "before each sub-layer, and after it before its output is added",
    }
    if features.norm in places:
        yield f"norm: {NORMS['rms' if features.rms else 'layer']}, {places[features.norm]}"
    if features.gate:
        yield f"feed-forward network: gated ({features.gate})"
    if features.key_heads and features.key_heads < n_head:
        yield f"keys and values: {features.key_heads}, shared by {n_head} heads"
    if features.window:
        full = f", in layers {', '.join(map(str, features.full_layers))} all"
        some = full if features.full_layers else ""
        yield f"window: each token sees the last {features.window} tokens{some}"
    if features.parallel:
        yield "attention and feed-forward network: side by side"


@dataclass(frozen=True)
class Checkpoint:
    """Weights of a model after so many steps, under the name that `registry.load` takes; the last
    ones are the model itself."""

    step: int
    model: str


def checkpoints(model: str) -> tuple[Checkpoint, ...]:
    """A model's checkpoints in the order of their steps; none for a model that has no earlier
    weights. `model` may be one of them."""
    base = model.partition("@")[0]
    early = model_names.checkpoints(base)
    if not early:
        return ()
    points = [Checkpoint(int(name.rpartition("@")[2]), name) for name in early]
    last = int(facts(base)["steps"]) if model_names.is_local(base) else _last_step(base)
    return (*(each for each in points if each.step < last), Checkpoint(last, base))


def _last_step(model: str) -> int:
    from models.pretrained import model_files

    return model_files.last_step(Path(model.partition(":")[2]).expanduser())


def with_checkpoints() -> tuple[str, ...]:
    """The models here that have earlier weights."""
    return tuple(name for name in model_names.names() if model_names.checkpoints(name))


def missing_checkpoints(model: str = "") -> str:
    """Reason, in a sentence, why there are no earlier weights; "" where a shipped model, or this
    one, has some."""
    return "" if model and checkpoints(model) else shipped_models.without_earlier()


def loss_curve(model: str) -> tuple[tuple[float, float], ...]:
    """A model's loss over its training, (step, nats); empty where its card keeps none."""
    base = model.partition("@")[0]
    if model_names.checkpoints(base) and not model_names.is_local(base):
        from models.pretrained import model_files

        return model_files.losses(Path(base.partition(":")[2]).expanduser())
    points = facts(base).get("curve", ()) if model_names.is_local(base) else ()
    return tuple((float(step), float(loss)) for step, loss in points)


@dataclass(frozen=True)
class Phase:
    """A part of a training: its first step, how many it has, the full learning rate, and over how
    many steps that is reached."""

    first: int
    steps: int
    rate: float
    warm_up: int

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """The learning rate over its steps, where it bends: (step, rate)."""
        fall = max(1, self.steps // 5)
        floor = sorted({fall, -(-fall // 50), max(1, fall // 50), 1}, reverse=True)
        bends = (0, self.warm_up - 1, *(self.steps - left for left in floor))
        return tuple(
            (float(self.first + at), self.rate * rate_share(at, self.steps, self.warm_up))
            for at in bends
        )


def rate_share(step: int, steps: int, warm_up: int) -> float:
    """The share of the full learning rate at `step` of `steps`: a rise, a plateau, and a fall over
    the last fifth."""
    fall = max(1, steps // 5)
    return min(1.0, (step + 1) / warm_up, max(0.02, (steps - step) / fall))


def phases(model: str) -> tuple[Phase, ...]:
    """The parts of a model's training, each with a learning rate of its own; empty where its card
    keeps none."""
    base = model.partition("@")[0]
    listed = facts(base).get("phases", ()) if model_names.is_local(base) else ()
    return tuple(Phase(**each) for each in listed)


def loss_note(model: str) -> str:
    """Note on the loss curve, in a sentence; "" where there is none."""
    base = model.partition("@")[0]
    return str(facts(base).get("course", "")) if model_names.is_local(base) else ""


def taught_heads(model: str, step: int | None = None) -> frozenset[tuple[int, int]]:
    """The heads of a model, (layer, head), that a teacher taught, at a checkpoint or at the end;
    none of most models."""
    base = model.partition("@")[0]
    taught = facts(base).get("taught", {}) if model_names.is_local(base) else {}
    if step is not None and step <= taught.get("from", -1):
        return frozenset()
    return frozenset((layer, head) for layer, head in taught.get("heads", ()))
