"""Ship a trained model: `python -m models.training.export encoder --run runs/encoder --data DIR`.

Turns a run's newest checkpoint into `models/weights/<name>`: fp16 safetensors, the tokenizer, the
earlier weights that the recipe wants shown, and the card, whose scores are then measured on the
shipped fp16 weights themselves (models/evaluate.py).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from models import coarse, shipped
from models.training import evaluate, train
from models.training.cards import ABOUT, ADAM, KIND
from models.training.grown import mean


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
    evaluate.evaluate(shipped_as(options.model), options.data)


def shipped_as(name: str) -> str:
    """The model that a recipe makes: what goes on from a model's weights takes its place."""
    for how in ("-onward", "-grown", "-unlooped"):
        name = name.removesuffix(how)
    return name


def ship(name: str, run: Path) -> None:
    """Write a run's weights, tokenizer, earlier weights and a card without scores into the model's
    folder."""
    saved = torch.load(run / "checkpoint.pt", weights_only=True)
    ships = shipped_as(name)
    folder = shipped.WEIGHTS / ships
    folder.mkdir(parents=True, exist_ok=True)
    recipe, state = train.recipe_class(name), saved["model"]
    early = {step: file for step in recipe.shown if (file := run / f"at-{step}.pt").exists()}
    if ships != name and 0 in early:  # what it began with was shipped, and was kept to be averaged
        state = mean(state, early.pop(0))
    save_file(halves(state), folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((run / "tokenizer.json").read_bytes())
    if early:
        states = {
            step: coarse.coarsened(torch.load(early[step], weights_only=True))
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
    ) | {"curve": curve(run)}
    shipped.write_card(
        ships,
        {
            "name": ships,
            "kind": KIND[ships],
            "config": saved["config"],
            "steps": saved["place"][0],
            "checkpoints": sorted(early),
            "headline": "",
            **about,
        },
    )


def halves(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors in fp16."""
    return {key: tensor.half().contiguous() for key, tensor in state.items()}


def curve(run: Path) -> list[list[float]]:
    """The loss over the run, as [step, nats] each 50 steps; of a step computed twice after a break,
    the later one."""
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    found = {line["step"]: line["loss"] for line in lines if "loss" in line}
    return [[step, found[step]] for step in sorted(found)]


def small_recipe(name: str) -> list[str]:
    """How a small model was trained, in words."""
    recipe = train.recipe_of(name, None)
    return [
        f"{recipe.steps} steps, about a minute on one core",
        ADAM.format(f"{recipe.rate:g}", recipe.warm_up),
    ]


if __name__ == "__main__":
    main()
