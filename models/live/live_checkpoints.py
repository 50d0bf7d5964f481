"""A model that was trained live, as it is held: its weights at each step that was kept, the model
of any of them, and its card."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import isnan

from safetensors.torch import load as load_safetensors

from models.live.live_tasks import model_of
from models.live.training_plan import TASKS, Progress, TrainingPlan
from models.network import own_model
from models.network.config import Config
from models.tokens.encoding import from_text
from models.tokens.tokenizer import Tokenizer

SUMMARIES = dict(
    zip(
        TASKS,
        (
            "Repeats a list",
            "Repeats a list backwards",
            "Continues a list that occurred before",
            "Predicts the next token of a text of your own",
        ),
    )
)


@dataclass(frozen=True)
class TrainingSnapshot:
    """A training as it stood when it was kept: weights by step, and all that goes with them."""

    plan: TrainingPlan
    config: dict
    tokenizer: str
    weights: dict[int, bytes]
    progress: Progress

    def model(self, name: str, step: int) -> own_model.OwnModel:
        """The model after so many steps, under a name."""
        weight_bytes = self.weights[step]
        model = model_of(Config(**self.config), self.plan.kind)
        model.load_state_dict(load_safetensors(weight_bytes))
        return own_model.from_network(
            model.eval(),
            Tokenizer(from_text(self.tokenizer)),
            name,
            hashlib.sha256(weight_bytes).hexdigest()[:12],
            "fp32",
        )

    def card(self, name: str) -> dict:
        """The model card, with the fields of the shipped models' cards."""
        steps, progress = sorted(self.weights), self.progress
        accuracy_text = f"{progress.right:.0%} of the tokens said right on what it had not seen."
        last_weights = load_safetensors(self.weights[steps[-1]])
        return {
            "name": name,
            "kind": self.plan.kind,
            "config": self.config,
            "steps": steps[-1],
            "checkpoints": steps[:-1],
            "summary": (
                f"{SUMMARIES[self.plan.task]}: trained in this visit, {steps[-1]:,} steps in "
                f"{progress.seconds:.0f} seconds."
            ),
            "headline": "" if isnan(progress.right) else accuracy_text,
            "curve": [list(point) for point in progress.curve],
            "held_out": [list(point) for point in progress.held_out],
            "n_parameters": sum(each.numel() for each in last_weights.values()),
            "data": [
                "a text of your own" if self.plan.task == "text" else "random lists of tokens"
            ],
            "recipe": ["trained live, see the Training page"],
            "limits": ["It has learned one thing in a minute, and is gone with this visit."],
        }
