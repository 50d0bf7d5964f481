"""Train a model of our own: `python -m models.training.train encoder --data DIR`.

Everything random comes from one seed. A run keeps its folder (`--run`): tokenizer, the newest
checkpoint, early weights where the recipe wants them shown (`at-STEP.pt`), and `log.jsonl` with a
line of loss every 50 steps and of held-out scores every `--check` steps. Started again, it goes on
from the checkpoint. The learning rate warms up, stays, and falls to a fiftieth over the last fifth
of `--steps`, so that a
run can be lengthened or shortened before its fall begins: also while it runs, by another number in
the file `steps` of its folder.

Steps of the models of real text are computed in bfloat16 where the processor multiplies it much
faster, which is tried out at the start; weights, optimizer and scores stay in fp32.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from models.own.model_card import rate_share
from models.tokens.tokenizer import Tokenizer
from models.training import (
    algorithms,
    attention_transfer,
    masked,
    next_word,
    norm_placement_ablation,
    translation,
)
from models.training.training_config import SEED, Recipe, TrainingState, half_helps

ON_CORPORA: dict[str, type[Any]] = {  # made of the folder where the corpora lie
    "encoder": masked.Masked,
    "encoder-taught": attention_transfer.AttentionTransfer,
    "decoder": next_word.NextWord,
    "translator": translation.Translation,
    "translator-small": translation.SmallTranslator,
    **norm_placement_ablation.RECIPES,
}
RECIPES = (*ON_CORPORA, *algorithms.RECIPES)
SECONDS_UNSAVED = 180  # at most lost where a run is broken off


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=RECIPES)
    parser.add_argument(
        "--data", type=Path, help="folder of the corpora; the algorithm models need none"
    )
    parser.add_argument(
        "--run", type=Path, help="folder of checkpoints and log, runs/MODEL where not given"
    )
    parser.add_argument("--steps", type=int, help="the recipe's own number where not given")
    parser.add_argument("--check", type=int, help="steps between held-out scores and checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    recipe = recipe_of(options.model, options.data)
    TrainingRun(
        recipe,
        options.run or Path("runs") / options.model,
        options.steps or recipe.steps,
        options.check or recipe.check,
    ).train()


class TrainingRun:
    """One training run and its folder."""

    def __init__(self, recipe: Recipe[Any], folder: Path, steps: int, check: int) -> None:
        self.recipe, self.folder, self.steps, self.check = recipe, folder, steps, check
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "steps").write_text(f"{steps}\n")
        self.tokenizer = self._tokenizer()
        torch.manual_seed(SEED)
        self.model = recipe.model()
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=recipe.rate,
            betas=(0.9, 0.98),
            weight_decay=0.01,
            fused=True,
        )
        self.step = self.epoch = self.at = 0
        self.saved = time.monotonic()
        self.generator = torch.Generator().manual_seed(SEED)
        self.dropout = torch.get_rng_state()
        self.in_half = recipe.in_half and half_helps()
        self._resume()

    def train(self) -> None:
        """Go on to the last step."""
        recent: list[float] = []
        torch.set_rng_state(self.dropout)
        self._keep()
        with tqdm(total=self.steps, initial=self.step, unit="step", mininterval=5) as bar:
            for batch in self._batches():
                for group in self.optimizer.param_groups:
                    group["lr"] = self.recipe.rate * rate_share(
                        self.step, self.steps, self.recipe.warm_up
                    )
                recent.append(self._learn(batch))
                self.step += 1
                bar.update()
                if self.step % 50 == 0:
                    mean = sum(recent) / len(recent)
                    recent.clear()
                    bar.set_postfix(loss=f"{mean:.3f}")
                    self._log({"loss": round(mean, 4)})
                    self.steps = bar.total = int((self.folder / "steps").read_text())
                self._keep()
                if time.monotonic() - self.saved > SECONDS_UNSAVED:
                    self._save()
                if self.step % self.check == 0 or self.step == self.steps:
                    self._save()
                    self.model.eval()
                    self._log(self.recipe.progress(self.model, self.tokenizer))
                    self.model.train()
                if self.step >= self.steps:
                    return

    def _learn(self, batch: tuple[Tensor, ...]) -> float:
        """One step of gradient descent on one batch; returns the loss in nats."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.in_half):
            at = TrainingState(self.tokenizer, self.generator, self.epoch)
            loss = self.recipe.loss(self.model, batch, at)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def _batches(self) -> Iterator[tuple[Tensor, ...]]:
        while True:
            for at, batch in enumerate(self.recipe.batches(self.tokenizer, self.epoch)):
                if at >= self.at:
                    self.at = at + 1
                    yield batch
            self.epoch, self.at = self.epoch + 1, 0

    def _tokenizer(self) -> Tokenizer:
        file = self.folder / "tokenizer.json"
        if not file.exists():
            self.recipe.tokenizer().bpe.save(str(file))
        return Tokenizer.load(file)

    def _log(self, values: dict[str, float | str]) -> None:
        line = {
            "step": self.step,
            "epoch": self.epoch,
            "cpu_s": round(time.process_time()),
            "clock": time.strftime("%H:%M:%S"),
            **values,
        }
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _keep(self) -> None:
        """Early weights that are shipped too, to show heads forming."""
        if self.step in self.recipe.checkpoint_steps:
            torch.save(self.model.state_dict(), self.folder / f"at-{self.step}.pt")

    def _save(self) -> None:
        temporary_file = self.folder / "checkpoint.new"
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "config": vars(self.model.config),
                "generator": self.generator.get_state(),
                "dropout": torch.get_rng_state(),
                "place": (self.step, self.epoch, self.at),
            },
            temporary_file,
        )
        temporary_file.replace(self.folder / "checkpoint.pt")
        self.saved = time.monotonic()

    def _resume(self) -> None:
        file = self.folder / "checkpoint.pt"
        if not file.exists():
            return
        checkpoint = torch.load(file, weights_only=True)
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.generator.set_state(checkpoint["generator"])
        self.dropout = checkpoint["dropout"]
        self.step, self.epoch, self.at = checkpoint["place"]


def recipe_of(name: str, data: Path | None) -> Recipe[Any]:
    """The recipe of a model, its text read from the folder `data`. Raises ValueError where it needs
    one and there is none."""
    if name in algorithms.RECIPES:
        return algorithms.RECIPES[name]()
    if data is None:
        raise ValueError(f"{name} is trained on corpora: say with --data where they lie")
    return ON_CORPORA[name](data)


def recipe_class(name: str) -> type[Recipe[Any]]:
    """The recipe of a model, without its text."""
    return algorithms.RECIPES[name] if name in algorithms.RECIPES else ON_CORPORA[name]


if __name__ == "__main__":
    main()
