"""The door to models that are trained while one looks on: begin a training, see the model as it is
now, keep it, load what was kept.

Kept models have names `live:NAME`, and `live:NAME@STEP` for earlier weights; they live in this
process alone and never on disk. Importing
this costs nothing: torch is imported when a model is made.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

from models.learning import LIVE, Plan

if TYPE_CHECKING:
    from models import own
    from models.live.held import Learned
    from models.live.run import Run
    from models.recording import Recording

_held: dict[str, Learned] = {}


def begin(plan: Plan) -> Run:
    """The training that a plan asks for, in a process of its own that its `go_on` starts."""
    from models.live.run import Run

    return Run(plan)


def again(plan: Plan, steps: Iterable[int]) -> Run:
    """The training of a plan once more, from its first step on and in this process, which tells how
    far it is after the same `steps`: with one thread too, so that it comes to the same numbers on
    a machine of the same kind."""
    import torch

    from models.live.run import Run
    from models.live.worker import Training

    run, threads = Run(plan), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            training = Training(plan, b"")
        run.hear(*training.made())
        for step in steps:
            while training.step < step:
                training.learn()
            run.hear(*training.told())
    finally:
        torch.set_num_threads(threads)
    return run


def read(run: Run, text: str, step: int | None = None) -> Recording:
    """A text as a training's model reads it, as it is now or after so many steps; where it answers
    a list, with the right answer said.

    Raises ValueError before its first weights are there, and for a step that is not.
    """
    from models import own

    taken = _taken(run)
    step = max(taken.weights) if step is None else step
    if step not in taken.weights:
        raise ValueError("There are no weights of this step.")
    handle = taken.handle(f"{LIVE}{run.plan.task}", step)
    if run.plan.kind == "decoder":
        return own.record(handle, text)
    room = handle.card.n_positions - 1
    ids = own.frame(handle, own.clean(text))[0].ids
    said = [token for token in ids if token != handle.tokenizer.eos][:room]
    answer = tuple(said[::-1] if run.plan.task == "reverse" else said)
    return own.record(handle, text, target=answer)


def keep(run: Run) -> str:
    """Hold a training's weights as they are now under a new name that nobody can guess. Raises
    ValueError before there are any."""
    taken = _taken(run)
    name = f"{LIVE}{run.plan.task}-{secrets.token_hex(6)}"
    _held[name] = taken
    return name


def drop(name: str) -> None:
    """Let a model go."""
    _held.pop(name, None)


def is_live(name: str) -> bool:
    """True for the name of a model that is or was held here."""
    return name.startswith(LIVE)


def title(name: str) -> str:
    """A held model's name as a person reads it, such as "my copy (740 steps)"; its earlier weights
    as "my copy@300"."""
    base, at, step = name.partition("@")
    if base not in _held:
        return "a model trained live"
    mine = f"my {_held[base].plan.task}"
    return f"{mine}{at}{step}" if step else f"{mine} ({max(_held[base].weights):,} steps)"


def knows(name: str) -> bool:
    """True for a model that is held, and for one of its earlier weights."""
    base, _, step = name.partition("@")
    return base in _held and (not step or step in map(str, _held[base].weights))


def card(name: str) -> dict:
    """A held model's card. Raises ValueError for one that is gone."""
    return _of(name).card(name.partition("@")[0])


def checkpoints(name: str) -> tuple[str, ...]:
    """The names of a held model's earlier weights, earliest first; none for one that is gone."""
    steps = sorted(_held[name].weights)[:-1] if name in _held else ()
    return tuple(f"{name}@{step}" for step in steps)


def load(name: str) -> own.Handle:
    """A held model. Raises ValueError for one that is gone, and for a step that was not kept."""
    learned, step = _of(name), name.partition("@")[2]
    if not knows(name):
        raise ValueError(f"{name} has no such checkpoint.")
    return learned.handle(name, int(step) if step else max(learned.weights))


def _of(name: str) -> Learned:
    learned = _held.get(name.partition("@")[0])
    if learned is None:
        raise ValueError("This model was trained live and is gone with its visit.")
    return learned


def _taken(run: Run) -> Learned:
    from models.live.held import Learned

    progress, weights = run.progress, dict(run.weights)
    steps = {step: weights[step] for step in progress.steps if step in weights}
    if not steps or not run.config:
        raise ValueError("There are no weights yet.")
    return Learned(run.plan, run.config, run.tokenizer, steps, progress)
