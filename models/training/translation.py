"""English to French, and the recipe of the translator: rows of pairs, the loss of saying the French one token at a time, alignment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.config import Config
from models.tokenizer import FOR_WRITING, Tokenizer
from models.training.corpus import read_pairs
from models.training.recipes import SEED, padded
from models.transformer import EncoderDecoder

BATCH_TOKENS = 1100  # of the target, padding counted in
# Longest target of each epoch, in tokens; the last one for all that follow. Alignments form in short sentences first.
CURRICULUM = (14, 20, 48)
LABEL_SMOOTHING = 0.1
# People write without full stops and capitals too.
BARE_SHARE, LOWER_SHARE = 0.06, 0.04


def roughened(english: str, french: str, rng: Random) -> tuple[str, str]:
    """A pair as it is, or now and then without its final mark on both sides, or with its English in lower case."""
    fate = rng.random()
    if fate < BARE_SHARE and english[-1:] in ".!?" and french[-1:] in ".!?":
        return english[:-1], french[:-1].rstrip()
    if fate > 1 - LOWER_SHARE:
        return english.lower(), french
    return english, french


def batches(
    english: list[list[int]],
    french: list[list[int]],
    tokenizer: Tokenizer,
    rng: Random,
    longest: int,
) -> Iterator[tuple[Tensor, ...]]:
    """One epoch of (source, source present, target, target present), each (batch, token). A source ends with [EOS]; a target begins with
    [BOS] and ends with [EOS]. Pairs of which a side is longer than `longest` tokens are left out."""
    pool = [
        ([*source, tokenizer.eos], [tokenizer.bos, *target, tokenizer.eos])
        for source, target in zip(english, french)
        if max(len(source), len(target)) <= longest
    ]
    pool.sort(key=lambda pair: len(pair[1]) + len(pair[0]) / 4 + rng.random() * 2)
    groups: list[list[tuple[list[int], list[int]]]] = [[]]
    width = 0
    for pair in pool:
        width = max(width, len(pair[0]), len(pair[1]))
        if groups[-1] and (len(groups[-1]) + 1) * width > BATCH_TOKENS:
            groups.append([])
            width = max(map(len, pair))
        groups[-1].append(pair)
    rng.shuffle(groups)
    for group in groups:
        sources, targets = zip(*group)
        yield *padded(list(sources), tokenizer.pad), *padded(list(targets), tokenizer.pad)


def loss(
    model: EncoderDecoder,
    source: Tensor,
    source_present: Tensor,
    target: Tensor,
    target_present: Tensor,
    smoothing: float = LABEL_SMOOTHING,
) -> Tensor:
    """Mean cross-entropy in nats of every target token after [BOS], given the source and the tokens before it (section 5.4: smoothed)."""
    memory_allowed = source_present[:, None, None]
    memory = model.encode(source, memory_allowed)
    x = model.decode(target[:, :-1], memory, memory_allowed)
    wanted = target_present[:, 1:]
    return F.cross_entropy(
        model.logits(x[wanted]), target[:, 1:][wanted], label_smoothing=smoothing
    )


@torch.inference_mode()
def greedy(
    model: EncoderDecoder, tokenizer: Tokenizer, sources: list[list[int]], longest: int = 60
) -> list[list[int]]:
    """The likeliest next token, again and again, for a batch of bare source ids at once: bare target ids."""
    ids, present = padded([[*source, tokenizer.eos] for source in sources], tokenizer.pad)
    allowed = present[:, None, None]
    memory = model.encode(ids, allowed)
    from models.transformer import Stored

    stored = Stored()
    token = torch.full((len(sources), 1), tokenizer.bos)
    said: list[list[int]] = [[] for _ in sources]
    done = torch.zeros(len(sources), dtype=torch.bool)
    for _ in range(longest):
        token = model.logits(model.decode(token, memory, allowed, stored=stored)[:, -1:]).argmax(-1)
        done |= token[:, 0] == tokenizer.eos
        if done.all():
            break
        for row in (~done).nonzero().flatten().tolist():
            said[row].append(int(token[row, 0]))
    return said


class Translation:
    """The recipe of the translator."""

    config = Config(n_vocab=8192, d_model=192, n_layer=2, n_head=6, d_ff=768, n_positions=256)
    steps, check, rate, warm_up = 14_000, 500, 1.6e-3, 400
    shown = (0, 250, 1000, 3000)

    def __init__(self, data: Path) -> None:
        self.train, self.held_out = read_pairs(data)

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.train(
            [*dict.fromkeys(self.train.english), *self.train.french],
            self.config.n_vocab,
            FOR_WRITING,
        )

    def model(self) -> EncoderDecoder:
        return EncoderDecoder(self.config)

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        rng = Random(SEED + epoch)
        english, french = zip(
            *(roughened(*pair, rng) for pair in zip(self.train.english, self.train.french))
        )
        yield from batches(
            tokenizer.ids(list(english)),
            tokenizer.ids(list(french)),
            tokenizer,
            rng,
            CURRICULUM[min(epoch, len(CURRICULUM) - 1)],
        )

    def loss(
        self,
        model: EncoderDecoder,
        batch: tuple[Tensor, ...],
        tokenizer: Tokenizer,
        generator: torch.Generator,
        epoch: int,
    ) -> Tensor:
        return loss(model, *batch)

    @torch.inference_mode()
    def progress(self, model: EncoderDecoder, tokenizer: Tokenizer) -> dict[str, float | str]:
        english, french = (
            tokenizer.ids(list(side[::5])) for side in (self.held_out.english, self.held_out.french)
        )
        total = count = 0.0
        for batch in batches(english, french, tokenizer, Random(0), 100):
            n = int(batch[3][:, 1:].sum())
            total += loss(model, *batch, smoothing=0.0).item() * n
            count += n
        shown = [side[::300] for side in (self.held_out.english, self.held_out.french)]
        said = greedy(model, tokenizer, tokenizer.ids(list(shown[0])))
        return {
            "held_out_loss": round(total / count, 4),
            **{source: tokenizer.text(ids) for source, ids in zip(shown[0], said)},
        }
