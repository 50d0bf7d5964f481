"""Train a model of our own: `python -m models.train encoder --data DIR`.

Everything random comes from one seed. A run keeps its folder (`--run`): tokenizer, the newest checkpoint, and `log.jsonl` with a line of
loss every 50 steps and of held-out scores every `--check` steps. Started again, it goes on from the checkpoint. The learning rate warms
up, stays, and falls to a fiftieth over the last fifth of `--steps`, so that a run can be lengthened before its fall begins.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from tqdm import tqdm

from models import masked
from models.corpus import Corpus, read
from models.own import handle_of
from models.probes import best_heads
from models.tokenizer import Tokenizer
from models.transformer import Config, Encoder

N_VOCAB, N_POSITIONS, SEED = 8192, 512, 1
FIRST_EPOCH_ANYWHERE = 2
HELD_OUT_SENTENCES, HELD_OUT_PARAGRAPHS = 300, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["encoder"])
    parser.add_argument("--data", type=Path, required=True, help="folder of the corpora")
    parser.add_argument("--run", type=Path, default=Path("runs/encoder"), help="folder of checkpoints and log")
    parser.add_argument("--steps", type=int, default=10500)
    parser.add_argument("--check", type=int, default=500, help="steps between held-out scores and checkpoints")
    parser.add_argument("--d-model", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate at its height")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    config = Config(N_VOCAB, options.d_model, options.layers, options.heads, 4 * options.d_model, N_POSITIONS)
    Run(options, config).train()


class Run:
    """One training run and its folder."""

    def __init__(self, options: argparse.Namespace, config: Config) -> None:
        self.options = options
        self.folder: Path = options.run
        self.folder.mkdir(parents=True, exist_ok=True)
        self.corpus, self.held_out = read(options.data)
        self.tokenizer = self._tokenizer()
        torch.manual_seed(SEED)
        self.model = Encoder(config)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01, fused=True
        )
        self.step = self.epoch = self.at = 0
        self.generator = torch.Generator().manual_seed(SEED)
        self._resume()

    def train(self) -> None:
        recent: list[float] = []
        with tqdm(total=self.options.steps, initial=self.step, unit="step", mininterval=5) as bar:
            for batch in self._batches():
                for group in self.optimizer.param_groups:
                    group["lr"] = self.options.rate * rate(self.step, self.options.steps)
                recent.append(self._learn(*batch))
                self.step += 1
                bar.update()
                if self.step % 50 == 0:
                    mean = sum(recent) / len(recent)
                    recent.clear()
                    bar.set_postfix(loss=f"{mean:.3f}")
                    self._log({"loss": round(mean, 4)})
                if self.step % self.options.check == 0 or self.step == self.options.steps:
                    self._log(held_out_scores(self.model, self.tokenizer, self.held_out))
                    self._save()
                if self.step >= self.options.steps:
                    return

    def _learn(self, ids: Tensor, present: Tensor, echo: Tensor) -> float:
        """One step of gradient descent on one batch; returns the loss in nats."""
        told = echo if self.epoch >= masked.FIRST_EPOCH_OF_FATE_IN_ECHO else None
        hidden, chosen = masked.hide(ids, present, self.tokenizer, self.generator, told)
        loss = masked.loss(self.model, hidden, ids, present, chosen, self._start(ids))
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def _start(self, ids: Tensor) -> Tensor | None:
        """Where each row begins: at position 0, but from the third epoch on half of them anywhere, so that all positions are met."""
        if self.epoch < FIRST_EPOCH_ANYWHERE:
            return None
        batch, n = ids.shape
        anywhere = torch.randint(0, N_POSITIONS - n + 1, (batch, 1), generator=self.generator)
        return anywhere * (torch.rand(batch, 1, generator=self.generator) < 0.5)

    def _batches(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        while True:
            for at, batch in enumerate(masked.batches(self.corpus, self.tokenizer, Random(SEED + self.epoch), self.epoch)):
                if at >= self.at:
                    self.at = at + 1
                    yield batch
            self.epoch, self.at = self.epoch + 1, 0

    def _tokenizer(self) -> Tokenizer:
        file = self.folder / "tokenizer.json"
        if not file.exists():
            rng = Random(SEED)
            grammar = (masked.grammar.sentence(rng) for _ in range(masked.N_GRAMMAR))
            trained = Tokenizer.train([*self.corpus.sentences, *self.corpus.paragraphs, *grammar], N_VOCAB)
            trained.bpe.save(str(file))
        return Tokenizer.load(file)

    def _log(self, values: dict[str, float | str]) -> None:
        line = {"step": self.step, "epoch": self.epoch, "cpu_s": round(time.process_time()), **values}
        with (self.folder / "log.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _save(self) -> None:
        new = self.folder / "checkpoint.new"
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "config": vars(self.model.config),
                "generator": self.generator.get_state(),
                "place": (self.step, self.epoch, self.at),
            },
            new,
        )
        new.replace(self.folder / "checkpoint.pt")

    def _resume(self) -> None:
        file = self.folder / "checkpoint.pt"
        if not file.exists():
            return
        saved = torch.load(file, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.generator.set_state(saved["generator"])
        self.step, self.epoch, self.at = saved["place"]


def rate(step: int, steps: int, warm_up: int = 400) -> float:
    """The share of the full learning rate at `step` of `steps`: a rise, a plateau, and a fall over the last fifth."""
    fall = max(1, steps // 5)
    return min(1.0, (step + 1) / warm_up, max(0.02, (steps - step) / fall))


@torch.inference_mode()
def held_out_scores(model: Encoder, tokenizer: Tokenizer, held_out: Corpus) -> dict[str, float]:
    """Masked loss and accuracy, and each relation's best head, on text that training never saw."""
    generator = torch.Generator().manual_seed(0)
    texts = [*held_out.sentences[:HELD_OUT_SENTENCES], *held_out.paragraphs[:HELD_OUT_PARAGRAPHS]]
    rows = [[tokenizer.cls, *ids[: masked.LONGEST_ROW - 2], tokenizer.sep] for ids in tokenizer.ids(texts)]
    total = right = places = 0.0
    for at in range(0, len(rows), 16):
        ids, present = masked.padded(sorted(rows, key=len)[at : at + 16], tokenizer.pad)
        hidden, chosen = masked.hide(ids, present, tokenizer, generator)
        logits = model.logits(model(hidden, allowed=present[:, None, None, :])[chosen])
        total += torch.nn.functional.cross_entropy(logits, ids[chosen], reduction="sum").item()
        right += (logits.argmax(-1) == ids[chosen]).sum().item()
        places += chosen.sum().item()
    handle = handle_of(model, tokenizer, "encoder", fingerprint="")
    return {"held_out_loss": round(total / places, 4), "masked_accuracy": round(right / places, 4), **best_heads(handle, texts[::4])}


if __name__ == "__main__":
    main()
