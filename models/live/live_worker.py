"""The process that trains one small model: `python -m models.live.live_worker`, with frames as
input and output (models/live/training_plan.py).

The first frame is the plan, with the state of a stopped training to continue. From then on it
trains, with one thread and the lowest priority, and twice a second reports its progress and
weights; a frame or the end of its input stops it, so it never outlives the app. The last frame
holds the state needed to continue."""

from __future__ import annotations

import io
import os
import sys
import threading
import time
from dataclasses import asdict
from random import Random

import torch
from safetensors.torch import save

from models.child_process import prefer_oom_kill
from models.live import training_plan
from models.live.live_tasks import (
    LEARNING_RATE,
    SEED,
    WARM_UP_STEPS,
    Task,
    config_of,
    model_of,
    tokenizer_of,
)
from models.live.training_plan import CHECKPOINT_STEPS, MAX_SECONDS, MAX_STEPS, TrainingPlan
from models.tokens.encoding import from_text
from models.tokens.tokenizer import Tokenizer

REPORT_SECONDS = 0.5  # seconds between two reports
POINT_STEPS = 5  # steps that a point of the curve is the mean of


class TrainingLoop:
    """A model, its optimizer, and where it is."""

    def __init__(self, plan: TrainingPlan, saved_bytes: bytes) -> None:
        state = torch.load(io.BytesIO(saved_bytes), weights_only=True) if saved_bytes else None
        if state:
            self.tokenizer = Tokenizer(from_text(state["tokenizer"]))
        else:
            self.tokenizer = tokenizer_of(plan)
        self.task = Task(plan, self.tokenizer)
        torch.manual_seed(SEED)
        self.config = config_of(plan, self.tokenizer)
        self.model = model_of(self.config, plan.kind)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=LEARNING_RATE,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=True,
        )
        self.step, self.before = 0, 0.0
        self.points: list[float] = list(state["points"]) if state else []
        self.began = time.process_time()  # what it takes to begin is not learning
        if state:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.before = state["place"]

    @property
    def seconds(self) -> float:
        """Of the processor, in this process and those before it."""
        return self.before + time.process_time() - self.began

    def learn(self) -> None:
        """One step of gradient descent."""
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (self.step + 1) / WARM_UP_STEPS)
        loss = self.task.loss(self.model, self.task.batch(Random(f"{SEED}.{self.step}")))
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        self.points.append(loss.item())

    def model_frame(self) -> tuple[dict, bytes]:
        """The frame that describes the model: its sizes and its vocabulary."""
        header = {"kind": "made", "config": asdict(self.config)}
        return header, self.tokenizer.bpe.to_str().encode()

    def progress_frame(self) -> tuple[dict, bytes]:
        """The frame of the training's progress: new points of the curve, the held-out loss, the
        weights."""
        held_out_loss, accuracy = self.task.measured(self.model)
        header = {
            "kind": "at",
            "step": self.step,
            "seconds": self.seconds,
            "held_out": held_out_loss,
            "right": accuracy,
            "shown": self.step in CHECKPOINT_STEPS,
        }
        if len(self.points) >= POINT_STEPS:
            header["loss"] = sum(self.points) / len(self.points)
            self.points.clear()
        weights = {name: each.detach() for name, each in self.model.state_dict().items()}
        return header, save(weights)

    def stored(self) -> bytes:
        """All that it takes to go on."""
        buffer = io.BytesIO()
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "place": (self.step, self.seconds),
                "points": self.points,
                "tokenizer": self.tokenizer.bpe.to_str(),
            },
            buffer,
        )
        return buffer.getvalue()


def main() -> None:
    """Read the plan, train until stopped or done, and send the state needed to continue."""
    if hasattr(os, "nice"):
        os.nice(19)
    prefer_oom_kill()
    torch.set_num_threads(1)
    source, output = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else may write between frames
    first_frame = training_plan.receive(source)
    if first_frame is None:
        return
    training = TrainingLoop(TrainingPlan(**first_frame[0]["plan"]), first_frame[1])
    stop = threading.Event()
    threading.Thread(target=_watch_input, args=(source, stop), daemon=True).start()
    training_plan.send(output, *training.model_frame())
    work(training, stop, lambda frame: training_plan.send(output, *frame))
    done = training.step >= MAX_STEPS or training.seconds >= MAX_SECONDS
    training_plan.send(output, {"kind": "end", "done": done}, training.stored())


def work(training: TrainingLoop, stop: threading.Event, send_frame) -> None:
    """Learn and tell, until stopped or out of steps or seconds."""
    if training.step == 0:
        send_frame(training.progress_frame())
    last_report = time.monotonic()
    while not stop.is_set() and training.step < MAX_STEPS and training.seconds < MAX_SECONDS:
        training.learn()
        now = time.monotonic()
        if training.step in CHECKPOINT_STEPS or now - last_report > REPORT_SECONDS:
            send_frame(training.progress_frame())
            last_report = now
    send_frame(training.progress_frame())


def _watch_input(source, stop: threading.Event) -> None:
    """Any frame means stop, and so does the end of the app."""
    source.read(1)
    stop.set()


if __name__ == "__main__":
    main()
