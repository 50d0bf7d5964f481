"""Live training of models: begin one, use the model as it is now, keep it, load a kept one.

Kept models have names `live:NAME`, and `live:NAME@STEP` for earlier weights; they exist in this
process alone and never on disk. Importing this costs nothing: torch is imported when a model is
made."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from models import child_process
from models.contract.results import OneList
from models.live import training_plan
from models.live.training_plan import CHECKPOINT_STEPS, LIVE_PREFIX, Progress, TrainingPlan

if TYPE_CHECKING:
    from models.contract.recording import Recording
    from models.live.live_checkpoints import TrainingSnapshot
    from models.network import own_model


# A training in a process of its own, as the app sees it: begun, followed, stopped, gone on with,
# and gone when nobody wants it.

GONE = "This model was trained live and is gone with its visit."
SHUTDOWN_SECONDS = 5.0  # seconds that a process told to stop has for its last words


class TrainingProcess:
    """One training. `progress` and `weights` are those of its last report; `running`; `done`: it
    cannot be continued; `problem`: it broke off."""

    def __init__(self, plan: TrainingPlan) -> None:
        self.plan = plan
        self.progress = Progress()
        self.weights: dict[int, bytes] = {}  # safetensors by step: those of SHOWN, and the newest
        self.config: dict = {}
        self.tokenizer = ""  # as the tokenizers library writes it
        self.done, self.problem = False, ""
        self._stored, self._ended = b"", False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while its process trains, or sends its last state."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int | None:
        """The process that trains it; None where none does."""
        return self._process.pid if self._process is not None and self.running else None

    def resume(self) -> None:
        """Start, or go on where it was stopped; nothing where it runs or is done."""
        with self._lock:
            if self.running or self.done:
                return
            self.problem, self._ended = "", False
            self._process = child_process.start(
                f"{__package__}.live_worker",
                env={"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
                stdin=subprocess.PIPE,
            )
            self._thread = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Tell it to stop after the step it is at; what it has learned stays."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):  # it has just ended by itself
                process.stdin.write(b"stop\n")
                process.stdin.flush()

    def end(self) -> None:
        """End its process now, whatever it is at, and wait until it is gone."""
        self._ended = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join(SHUTDOWN_SECONDS)

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Give the process its plan and hear it to its end."""
        ended = False
        try:
            assert process.stdin is not None and process.stdout is not None
            training_plan.send(process.stdin, {"plan": asdict(self.plan)}, self._stored)
            while (frame := training_plan.receive(process.stdout)) is not None:
                ended = self.receive_frame(*frame) or ended
        except (BrokenPipeError, json.JSONDecodeError, KeyError):
            pass
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            try:
                process.wait(SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if not (ended or self._ended):
                self.problem = "The training broke off."

    def receive_frame(self, header: dict, content: bytes) -> bool:
        """Take in a frame; True for the last one."""
        if header["kind"] == "made":
            self.config, self.tokenizer = header["config"], content.decode()
            return False
        if header["kind"] == "end":
            self._stored, self.done = content, header["done"]
            return True
        step, previous = header["step"], self.progress
        if previous.step not in CHECKPOINT_STEPS:
            self.weights.pop(previous.step, None)
        self.weights[step] = content
        curve = (
            (*previous.curve, (float(step), header["loss"])) if "loss" in header else previous.curve
        )
        self.progress = replace(
            previous,
            step=step,
            seconds=header["seconds"],
            curve=curve,
            held_out=(*previous.held_out, (float(step), header["held_out"])),
            right=header["right"],
            steps=tuple(sorted(self.weights)),
        )
        return False


_snapshots: dict[str, TrainingSnapshot] = {}


def start_training(plan: TrainingPlan) -> TrainingProcess:
    """The training that a plan asks for, in a process of its own that its `go_on` starts."""

    return TrainingProcess(plan)


def repeat_training(plan: TrainingPlan, steps: Iterable[int]) -> TrainingProcess:
    """Repeat the training of a plan from its first step, in this process, with reports after the
    same `steps`. With one thread too, so that its numbers are the same on a machine of the same
    kind."""
    import torch

    from models.live.live_worker import TrainingLoop

    run, threads = TrainingProcess(plan), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            training = TrainingLoop(plan, b"")
        run.receive_frame(*training.model_frame())
        for step in steps:
            while training.step < step:
                training.learn()
            run.receive_frame(*training.progress_frame())
    finally:
        torch.set_num_threads(threads)
    return run


def record_text(run: TrainingProcess, text: str, step: int | None = None) -> Recording:
    """A text as a training's model reads it, as it is now or after so many steps; where it answers
    a list, with the right answer said.

    Raises ValueError before its first weights are there, and for a step that is not.
    """
    from models.network import own_model

    model = _model(run, step)
    if run.plan.kind == "decoder":
        return own_model.record(model, text)
    max_tokens = model.card.n_positions - 1
    ids = own_model.frame(model, own_model.clean(text))[0].ids
    source_ids = [token for token in ids if token != model.tokenizer.eos][:max_tokens]
    target_ids = tuple(source_ids[::-1] if run.plan.task == "reverse" else source_ids)
    return own_model.record(model, text, target=target_ids)


def read_list(run: TrainingProcess, text: str, step: int | None = None) -> OneList:
    """The answer of a training's model, as it is now or after so many steps, to the tokens of a
    text as a list; one that learns a text, to the first of those held out. Raises ValueError as
    `record_text`."""
    from random import Random

    from models.live.live_tasks import MAX_LIST_LENGTH, Task

    model = _model(run, step)
    task, tokenizer = Task(run.plan, model.tokenizer), model.tokenizer
    if run.plan.task == "text":
        held_out = task.batch(Random("kept out"), held_out=True)
        batch = tuple(each[:1, :MAX_LIST_LENGTH] for each in held_out)
        given = batch[0][0].tolist()
    else:
        given = (tokenizer.ids([text])[0] or task.words)[:MAX_LIST_LENGTH]
        batch = task.of_lists([given])
    listed = (given, *task.predictions(model.network, batch))
    return OneList(*(tuple(map(tokenizer.label, each[: len(given)])) for each in listed))


def _model(run: TrainingProcess, step: int | None) -> own_model.OwnModel:
    """The model of a training as it is now or after so many steps. Raises ValueError before its
    first weights are there, and for a step that is not."""
    snapshot = _snapshot(run)
    step = max(snapshot.weights) if step is None else step
    if step not in snapshot.weights:
        raise ValueError("There are no weights of this step.")
    return snapshot.model(f"{LIVE_PREFIX}{run.plan.task}", step)


def save_snapshot(run: TrainingProcess) -> str:
    """Hold a training's weights as they are now under a new name that nobody can guess. Raises
    ValueError before there are any."""
    snapshot = _snapshot(run)
    name = f"{LIVE_PREFIX}{run.plan.task}-{secrets.token_hex(6)}"
    _snapshots[name] = snapshot
    return name


def delete_snapshot(name: str) -> None:
    """Let a model go."""
    _snapshots.pop(name, None)


def is_live(name: str) -> bool:
    """True for the name of a model that is or was held here."""
    return name.startswith(LIVE_PREFIX)


def title(name: str) -> str:
    """A held model's name as a person reads it, such as "my copy (740 steps)"; its earlier weights
    as "my copy@300"."""
    base, separator, step = name.partition("@")
    if base not in _snapshots:
        return "a model trained live"
    label = f"my {_snapshots[base].plan.task}"
    return (
        f"{label}{separator}{step}"
        if step
        else f"{label} ({max(_snapshots[base].weights):,} steps)"
    )


def knows(name: str) -> bool:
    """True for a model that is held, and for one of its earlier weights."""
    base, _, step = name.partition("@")
    return base in _snapshots and (not step or step in map(str, _snapshots[base].weights))


def card(name: str) -> dict:
    """A held model's card. Raises ValueError for one that is gone."""
    return _snapshot_of(name).card(name.partition("@")[0])


def checkpoints(name: str) -> tuple[str, ...]:
    """The names of a held model's earlier weights, earliest first; none for one that is gone."""
    steps = sorted(_snapshots[name].weights)[:-1] if name in _snapshots else ()
    return tuple(f"{name}@{step}" for step in steps)


def load(name: str) -> own_model.OwnModel:
    """A held model. Raises ValueError for one that is gone, and for a step that was not kept."""
    snapshot, step = _snapshot_of(name), name.partition("@")[2]
    if not knows(name):
        raise ValueError(f"{name} has no such checkpoint.")
    return snapshot.model(name, int(step) if step else max(snapshot.weights))


def _snapshot_of(name: str) -> TrainingSnapshot:
    snapshot = _snapshots.get(name.partition("@")[0])
    if snapshot is None:
        raise ValueError(GONE)
    return snapshot


def _snapshot(run: TrainingProcess) -> TrainingSnapshot:
    from models.live.live_checkpoints import TrainingSnapshot

    progress, weights = run.progress, dict(run.weights)
    steps = {step: weights[step] for step in progress.steps if step in weights}
    if not steps or not run.config:
        raise ValueError("There are no weights yet.")
    return TrainingSnapshot(run.plan, run.config, run.tokenizer, steps, progress)
