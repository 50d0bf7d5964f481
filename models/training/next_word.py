"""The next-word objective, and the recipe of the decoder.

The first epoch is made of repetitions: lists of random tokens said twice or more. What comes next is then only to be had by a head that
finds the last time and looks one further (induction), which in turn needs one that knows each token's predecessor. On plain text alone
both come late. From the second epoch on real text rules, in rows that grow longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.config import Config
from models.tokenizer import FOR_WRITING, Tokenizer
from models.training import grammar
from models.training.corpus import Corpus, read_divided
from models.training.recipes import SEED, padded
from models.transformer import Decoder

BATCH_TOKENS = 1536
# Tokens in the longest row of each epoch, the last one for all that follow.
CURRICULUM = (40, 48, 96)
# Rows of repetitions in each epoch, the last number for all that follow: nearly all of the first epoch's tokens, then 4 %, then 18 %.
REPEATED_ROWS = (34_000, 6_500, 20_000)
# Sentences said twice, in each epoch: without them induction stays a habit for random lists, and a pasted text said twice shows none. Another
# stands between the two, else the model learns to say everything twice.
SAID_TWICE = (0, 0, 0, 25_000)
N_GRAMMAR = 12_000
SHORTEST_PERIOD, LONGEST_PERIOD = 3, 16
HELD_OUT_SENTENCES, HELD_OUT_PARAGRAPHS = 600, 60


def repeated(words: list[int], rng: Random, longest: int) -> list[int]:
    """A list of tokens drawn from `words`, said over and over until a row of `longest` tokens is nearly full."""
    period = [
        rng.choice(words)
        for _ in range(rng.randint(SHORTEST_PERIOD, min(LONGEST_PERIOD, longest // 2)))
    ]
    return (period * (longest // len(period) + 1))[: rng.randint(2 * len(period), longest)]


def rows(corpus: Corpus, tokenizer: Tokenizer, rng: Random, epoch: int) -> Iterator[list[int]]:
    """One epoch of token rows, [BOS] in front."""
    longest = CURRICULUM[min(epoch, len(CURRICULUM) - 1)] - 1
    sentences = tokenizer.ids(
        [*corpus.sentences, *(grammar.sentence(rng) for _ in range(N_GRAMMAR))]
    )
    rng.shuffle(sentences)
    vocabulary = [token for token in range(len(tokenizer)) if token not in tokenizer.special]
    frequent = [token for sentence in sentences[:2000] for token in sentence]
    for at in range(REPEATED_ROWS[min(epoch, len(REPEATED_ROWS) - 1)]):
        yield [tokenizer.bos, *repeated((vocabulary, frequent)[at % 2], rng, longest)]
    if epoch == 0:
        yield from ([tokenizer.bos, *row] for row in _packed(sentences[:20_000], rng, longest))
        return
    yield from ([tokenizer.bos, *row] for row in _packed(sentences, rng, longest))
    n = SAID_TWICE[min(epoch, len(SAID_TWICE) - 1)]
    for sentence, between in zip(sentences[:n], sentences[n : 2 * n]):
        yield [tokenizer.bos, *(sentence + between + sentence)[:longest]]
    for paragraph in tokenizer.ids(list(corpus.paragraphs)):
        yield from (
            [tokenizer.bos, *paragraph[at : at + longest]]
            for at in range(0, len(paragraph), longest)
        )


def _packed(sentences: list[list[int]], rng: Random, longest: int) -> Iterator[list[int]]:
    """Rows of one or more whole sentences."""
    row: list[int] = []
    room = 0
    for sentence in sentences:
        if row and len(row) + len(sentence) > room:
            yield row
            row = []
        if not row:
            room = rng.choice((1, longest // 2, longest, longest))
        row = (row + sentence)[:longest]
    if row:
        yield row


def batches(
    corpus: Corpus, tokenizer: Tokenizer, rng: Random, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch of (ids, present), both (batch, token), rows of like length together."""
    yield from grouped(list(rows(corpus, tokenizer, rng, epoch)), tokenizer.pad, rng, BATCH_TOKENS)


def grouped(
    pool: list[list[int]], pad: int, rng: Random, most: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """The rows in batches of at most `most` tokens, in random order: (ids, present), both (batch, token)."""
    pool.sort(key=lambda row: len(row) + rng.random() * 4)
    groups: list[list[list[int]]] = [[]]
    for row in pool:
        if (len(groups[-1]) + 1) * max(len(row), *map(len, groups[-1][-1:]), 1) > most and groups[
            -1
        ]:
            groups.append([])
        groups[-1].append(row)
    rng.shuffle(groups)
    for group in filter(None, groups):
        yield padded(group, pad)


def loss(model: Decoder, ids: Tensor, present: Tensor, start: Tensor | None = None) -> Tensor:
    """Mean cross-entropy in nats of every token after the first, given those before it. ids, present (batch, token)."""
    x = model(ids[:, :-1], start=start)
    wanted = present[:, 1:]
    return F.cross_entropy(model.logits(x[wanted]), ids[:, 1:][wanted])


@torch.inference_mode()
def perplexity(model: Decoder, tokenizer: Tokenizer, texts: list[str]) -> tuple[float, float]:
    """(loss in nats a token, perplexity a token) over the texts, each by itself after [BOS], at most 96 tokens of each."""
    pool = [[tokenizer.bos, *ids[: CURRICULUM[-1]]] for ids in tokenizer.ids(texts)]
    total = count = 0.0
    for ids, present in grouped(pool, tokenizer.pad, Random(0), BATCH_TOKENS):
        n = int(present[:, 1:].sum())
        total += loss(model, ids, present).item() * n
        count += n
    return total / count, float(torch.tensor(total / count).exp())


@torch.inference_mode()
def repetition_scores(
    model: Decoder, tokenizer: Tokenizer, n: int = 24, lists: int = 40
) -> dict[str, tuple[float, int, int]]:
    """What heads do on lists of `n` different random tokens said twice: (mean attention, layer, head) of the best previous-token head and
    of the best induction head, the latter over the second time (Olsson et al., 2022)."""
    rng = Random(0)
    vocabulary = [token for token in range(len(tokenizer)) if token not in tokenizer.special]
    ids = torch.tensor(
        [
            [tokenizer.bos, *words, *words]
            for words in (rng.sample(vocabulary, n) for _ in range(lists))
        ]
    )
    patterns: list[Tensor] = []

    def tape(name: str, tensor: Tensor) -> None:
        if name.endswith(".attn.pattern"):
            patterns.append(tensor.mean(dim=0))

    model(ids, tape)
    pattern = torch.stack(patterns)  # (layer, head, query, key)
    again = torch.arange(n + 1, 2 * n + 1)
    found = {
        "previous": pattern.diagonal(-1, 2, 3).mean(-1),
        "induction": pattern[:, :, again, again - n + 1].mean(-1),
    }
    return {
        name: (float(scores.max()), *divmod(int(scores.argmax()), scores.shape[1]))
        for name, scores in found.items()
    }


class NextWord:
    """The recipe of the decoder."""

    config = Config(n_vocab=6144, d_model=192, n_layer=4, n_head=6, d_ff=768, n_positions=512)
    steps, check, rate, warm_up = 10_600, 250, 1.4e-3, 300
    shown = ()
    in_half = True

    def __init__(self, data: Path) -> None:
        self.corpus, self.held_out = read_divided(data)

    def tokenizer(self) -> Tokenizer:
        rng = Random(SEED)
        made = (grammar.sentence(rng) for _ in range(N_GRAMMAR))
        return Tokenizer.train(
            [*self.corpus.sentences, *self.corpus.paragraphs, *made],
            self.config.n_vocab,
            FOR_WRITING,
        )

    def model(self) -> Decoder:
        return Decoder(self.config)

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        return batches(self.corpus, tokenizer, Random(SEED + epoch), epoch)

    def loss(
        self,
        model: Decoder,
        batch: tuple[Tensor, ...],
        tokenizer: Tokenizer,
        generator: torch.Generator,
        epoch: int,
    ) -> Tensor:
        ids, present = batch
        start = None
        if epoch > 1:  # half of the rows begin anywhere, so that all positions are met
            anywhere = torch.randint(
                0, self.config.n_positions - ids.shape[1] + 1, (len(ids), 1), generator=generator
            )
            start = anywhere * (torch.rand(len(ids), 1, generator=generator) < 0.5)
        return loss(model, ids, present, start)

    def progress(self, model: Decoder, tokenizer: Tokenizer) -> dict[str, float | str]:
        sentences, _ = perplexity(
            model, tokenizer, list(self.held_out.sentences[:HELD_OUT_SENTENCES])
        )
        paragraphs, _ = perplexity(
            model, tokenizer, list(self.held_out.paragraphs[:HELD_OUT_PARAGRAPHS])
        )
        heads = {
            name: f"{score:.3f} L{layer}H{head}"
            for name, (score, layer, head) in repetition_scores(model, tokenizer).items()
        }
        return {
            "sentences_loss": round(sentences, 4),
            "paragraphs_loss": round(paragraphs, 4),
            **heads,
        }
