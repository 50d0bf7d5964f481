"""The masked-word objective (Devlin et al., 2019): rows of text, places hidden in them, and the loss of guessing what stood there.

Rows come from four diets. Plain sentences and paragraphs make the language; a few grammar sentences bring the lecture notes' words;
`echo` rows hold the same words twice, the second time shuffled: whether a word is the right one shows in whether it has a partner,
which asks for a head that looks at the same word elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.config import Config
from models.tokenizer import Tokenizer
from models.training import grammar
from models.training.corpus import Corpus, read
from models.training.probes import best_heads
from models.training.recipes import SEED, padded
from models.transformer import Encoder

LONGEST_ROW = 128
# Tokens in the longest row of each epoch, the last one for all that follow. Long rows from the start hold a model on the unigram
# plateau: an untrained head gives a neighbour 1/128 of its attention, in a short row a tenth of it.
CURRICULUM = (24, 48, 64, 128)
BATCH_TOKENS = 2048
MASKED_SHARE = 0.25
# A chosen word becomes [MASK] below the first number, stays below the second, and becomes a random word above it. In an echo more words
# stay or turn random, because telling these two apart is what a look at the same word elsewhere can do.
FATE, FATE_IN_ECHO = (0.8, 0.9), (0.4, 0.7)
FIRST_EPOCH_OF_FATE_IN_ECHO, EPOCHS_WITH_ECHOES = 1, 2
FIRST_EPOCH_ANYWHERE = 2
HELD_OUT_SENTENCES, HELD_OUT_PARAGRAPHS = 300, 100
N_GRAMMAR, ECHO_SHARE, REPEAT_SHARE = 12_000, 0.08, 0.02


class Masked:
    """The recipe of the encoder."""

    config = Config(n_vocab=8192, d_model=256, n_layer=4, n_head=8, d_ff=1024, n_positions=512)
    steps, check, rate, warm_up = 10_500, 500, 1e-3, 400
    shown = ()

    def __init__(self, data: Path) -> None:
        self.corpus, self.held_out = read(data)

    def tokenizer(self) -> Tokenizer:
        rng = Random(SEED)
        made = (grammar.sentence(rng) for _ in range(N_GRAMMAR))
        return Tokenizer.train(
            [*self.corpus.sentences, *self.corpus.paragraphs, *made], self.config.n_vocab
        )

    def model(self) -> Encoder:
        return Encoder(self.config)

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return batches(self.corpus, tokenizer, Random(SEED + epoch), epoch)

    def loss(
        self,
        model: Encoder,
        batch: tuple[Tensor, ...],
        tokenizer: Tokenizer,
        generator: torch.Generator,
        epoch: int,
    ) -> Tensor:
        ids, present, echo = batch
        hidden, chosen = hide(
            ids,
            present,
            tokenizer,
            generator,
            echo if epoch >= FIRST_EPOCH_OF_FATE_IN_ECHO else None,
        )
        return loss(model, hidden, ids, present, chosen, self._start(ids, generator, epoch))

    def _start(self, ids: Tensor, generator: torch.Generator, epoch: int) -> Tensor | None:
        """Where each row begins: at position 0, but from the third epoch on half of them anywhere, so that all positions are met."""
        if epoch < FIRST_EPOCH_ANYWHERE:
            return None
        batch, n = ids.shape
        anywhere = torch.randint(
            0, self.config.n_positions - n + 1, (batch, 1), generator=generator
        )
        return anywhere * (torch.rand(batch, 1, generator=generator) < 0.5)

    def progress(self, model: Encoder, tokenizer: Tokenizer) -> dict[str, float | str]:
        return held_out_scores(model, tokenizer, self.held_out)


def rows(
    corpus: Corpus, tokenizer: Tokenizer, rng: Random, longest: int, echoes: bool
) -> Iterator[list[int]]:
    """One epoch of bare token rows, without [CLS] and [SEP], of at most `longest` - 2 tokens, with `echoes` or without."""
    sentences = tokenizer.ids(
        [*corpus.sentences, *(grammar.sentence(rng) for _ in range(N_GRAMMAR))]
    )
    rng.shuffle(sentences)
    yield from _packed(sentences, rng, longest - 2, ECHO_SHARE if echoes else 0.0)
    for paragraph in tokenizer.ids(list(corpus.paragraphs)):
        for at in range(0, len(paragraph), longest - 2):
            yield paragraph[at : at + longest - 2]


def _packed(
    sentences: list[list[int]], rng: Random, most: int, echo_share: float
) -> Iterator[list[int]]:
    """Rows of whole sentences, of many lengths from one sentence to a full row; some of them echoed."""
    row: list[int] = []
    room = 0
    for sentence in sentences:
        if row and len(row) + len(sentence) > room:
            yield row
            row = []
        if not row:
            room = rng.choice((1, most // 2, most, most))
        kind = rng.random()
        if kind < echo_share and len(sentence) > 3:
            yield echo(sentence[: most // 2], rng)
        elif kind < echo_share + REPEAT_SHARE:
            yield (sentence + sentence)[:most]
        else:
            row = (row + sentence)[:most]
    if row:
        yield row


def echo(words: list[int], rng: Random) -> list[int]:
    """The words, as they stand or shuffled, then once more shuffled anew."""
    first = rng.sample(words, len(words)) if rng.random() < 0.5 else words
    return first + rng.sample(words, len(words))


def batches(
    corpus: Corpus, tokenizer: Tokenizer, rng: Random, epoch: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One epoch of (ids (batch, token), present (batch, token), is_echo (batch, 1)), padded to the longest row of the batch; rows of
    like length together."""
    longest = CURRICULUM[min(epoch, len(CURRICULUM) - 1)]
    pool = [
        [tokenizer.cls, *row, tokenizer.sep]
        for row in rows(corpus, tokenizer, rng, longest, epoch < EPOCHS_WITH_ECHOES)
    ]
    pool.sort(key=lambda row: len(row) + rng.random() * 4)
    groups: list[list[list[int]]] = [[]]
    for row in pool:
        if (len(groups[-1]) + 1) * len(row) > BATCH_TOKENS:
            groups.append([])
        groups[-1].append(row)
    rng.shuffle(groups)
    for group in groups:
        yield *padded(group, tokenizer.pad), torch.tensor([[is_echo(row[1:-1])] for row in group])


def is_echo(row: list[int]) -> bool:
    """True if the second half of the row holds the words of the first."""
    half = len(row) // 2
    return len(row) == 2 * half and sorted(row[:half]) == sorted(row[half:])


def hide(
    ids: Tensor,
    present: Tensor,
    tokenizer: Tokenizer,
    generator: torch.Generator,
    echo: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(ids with some words hidden, which): a quarter of the words, hidden as FATE says, or FATE_IN_ECHO in rows where `echo` (batch, 1)."""
    words = present & (ids != tokenizer.cls) & (ids != tokenizer.sep)
    chosen = words & (torch.rand(ids.shape, generator=generator) < MASKED_SHARE)
    fate = torch.rand(ids.shape, generator=generator)
    random = torch.randint(4, len(tokenizer), ids.shape, generator=generator)
    to_mask, to_stay = FATE
    if echo is not None:
        to_mask, to_stay = (
            torch.where(echo, in_echo, usual) for in_echo, usual in zip(FATE_IN_ECHO, FATE)
        )
    hidden = torch.where(chosen & (fate < to_mask), tokenizer.mask, ids)
    return torch.where(chosen & (fate > to_stay), random, hidden), chosen


def loss(
    model: Encoder,
    hidden: Tensor,
    ids: Tensor,
    present: Tensor,
    chosen: Tensor,
    start: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy in nats of the chosen places. `hidden`, `ids`, `present`, `chosen`: (batch, token)."""
    x = model(hidden, allowed=present[:, None, None, :], start=start)
    return F.cross_entropy(model.logits(x[chosen]), ids[chosen])


@torch.inference_mode()
def held_out_scores(model: Encoder, tokenizer: Tokenizer, held_out: Corpus) -> dict[str, float]:
    """Masked loss and accuracy, and each relation's best head, on text that training never saw."""
    generator = torch.Generator().manual_seed(0)
    texts = [*held_out.sentences[:HELD_OUT_SENTENCES], *held_out.paragraphs[:HELD_OUT_PARAGRAPHS]]
    rows = [[tokenizer.cls, *ids[: LONGEST_ROW - 2], tokenizer.sep] for ids in tokenizer.ids(texts)]
    total = right = places = 0.0
    for at in range(0, len(rows), 16):
        ids, present = padded(sorted(rows, key=len)[at : at + 16], tokenizer.pad)
        hidden, chosen = hide(ids, present, tokenizer, generator)
        logits = model.logits(model(hidden, allowed=present[:, None, None, :])[chosen])
        total += F.cross_entropy(logits, ids[chosen], reduction="sum").item()
        right += (logits.argmax(-1) == ids[chosen]).sum().item()
        places += chosen.sum().item()
    return {
        "held_out_loss": round(total / places, 4),
        "masked_accuracy": round(right / places, 4),
        **best_heads(model, tokenizer, texts[::4]),
    }
