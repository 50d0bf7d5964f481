"""Ship a trained model: `python -m models.training.export encoder --run runs/encoder --data DIR`.

Turns a run's newest checkpoint into `models/weights/<name>`: fp16 safetensors, the tokenizer, the
earlier weights that the recipe wants shown, and the card, whose scores are then measured on the
shipped fp16 weights themselves (models/evaluate.py).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from models import own_model, quantization, shipped_models
from models.config import Config
from models.example_texts import EXAMPLES
from models.recording import Recording
from models.tokenizer import Tokenizer
from models.training import evaluate, train
from models.training.cards import ABOUT, ADAM, KIND
from models.transformer import Transformer

MAX_PATTERN_ERROR = (
    0.006  # how far a weight of a coarse model's pattern may be off on the app's examples
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=sorted(ABOUT))
    parser.add_argument("--run", type=Path, help="the run's folder, runs/MODEL where not given")
    parser.add_argument(
        "--data", type=Path, help="folder of the corpora, to measure the models of real text"
    )
    options = parser.parse_args()
    ship(options.model, options.run or Path("runs") / options.model)
    evaluate.evaluate(options.model, options.data)


def ship(name: str, run: Path) -> None:
    """Write a run's weights, tokenizer, earlier weights and a card without scores into the model's
    folder."""
    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True)
    folder = shipped_models.WEIGHTS / name
    folder.mkdir(parents=True, exist_ok=True)
    recipe, state = train.recipe_class(name), checkpoint["model"]
    early = {
        step: file for step in recipe.checkpoint_steps if (file := run / f"at-{step}.pt").exists()
    }
    save_file(half_precision(state), folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((run / "tokenizer.json").read_bytes())
    if early:
        model = own_model.KINDS[KIND[name]](Config(**checkpoint["config"])).eval()
        tokenizer = Tokenizer.load(run / "tokenizer.json")
        states = {
            step: quantized(torch.load(early[step], weights_only=True), model, tokenizer)
            for step in sorted(early)
        }
        save_file(
            {
                f"{step}/{key}": tensor
                for step, state in states.items()
                for key, tensor in state.items()
            },
            folder / "checkpoints.safetensors",
        )
    about = (
        {"recipe": small_recipe(name)} | ABOUT[name]
        if name not in train.ON_CORPORA
        else ABOUT[name]
    )
    card = {
        "name": name,
        "kind": KIND[name],
        "config": checkpoint["config"],
        "steps": checkpoint["place"][0],
        "checkpoints": sorted(early),
        "headline": "",
        **about,
        "curve": curve(run),
    }
    if "course" in card:
        card["course"] = str(card["course"]).format(second_epoch(run))
    shipped_models.write_card(name, card)


def quantized(
    state: quantization.State, model: Transformer, tokenizer: Tokenizer
) -> quantization.State:
    """Earlier weights of `model` as coarse as their patterns on the app's examples allow."""

    def patterns(
        weights: quantization.State, target: tuple[int, ...] | None, text: str
    ) -> Recording:
        model.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
        return own_model.record(
            own_model.handle_of(model, tokenizer, "early", ""), text, target=target
        )

    recordings = [patterns(state, None, text) for text in EXAMPLES.values()]
    return quantization.coarsest(
        state,
        lambda coarse_state: all(
            max_difference(
                recording, patterns(coarse_state, decoder_ids(recording), recording.text)
            )
            <= MAX_PATTERN_ERROR
            for recording in recordings
        ),
    )


def decoder_ids(recording: Recording) -> tuple[int, ...] | None:
    """The ids that a translator's decoder read, None of a model with one stream."""
    *_, last = recording.streams
    return tuple(map(int, last.ids[1:])) if len(recording.streams) > 1 else None


def max_difference(first: Recording, second: Recording) -> float:
    """The largest difference between the weights of two recordings' patterns."""
    pairs = zip(first.attention, second.attention)
    return max(float(np.abs(a.pattern - b.pattern).max()) for a, b in pairs)


def half_precision(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors in fp16."""
    return {key: tensor.half().contiguous() for key, tensor in state.items()}


def curve(run: Path) -> list[list[float]]:
    """The loss over the run, as [step, nats] each 50 steps; of a step computed twice after a break,
    the later one."""
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    losses = {line["step"]: line["loss"] for line in lines if "loss" in line}
    return [[step, losses[step]] for step in sorted(losses)]


def second_epoch(run: Path) -> int:
    """The last step before it, to the nearest line of the log."""
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    return max(line["step"] for line in lines if line["epoch"] == 0)


def small_recipe(name: str) -> list[str]:
    """The training recipe of a small model in sentences."""
    recipe = train.recipe_of(name, None)
    return [
        f"{recipe.steps} steps, about a minute on one core",
        ADAM.format(f"{recipe.rate:g}", recipe.warm_up),
    ]


if __name__ == "__main__":
    main()
