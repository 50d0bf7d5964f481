"""The next-word objective, and the recipe of the decoder.

The first epoch is made of repetitions: lists of random tokens said twice or more. What comes next
is then only to be had by a head that finds the last time and looks one further (induction), which
in turn needs one that knows each token's predecessor. On plain text alone both come late. From the
second epoch on real text rules, in rows that grow longer.

Texts said twice keep induction alive on text. What the model is not to learn from them is to begin
again by itself: the first tokens of the second time do not count, only how it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.network.config import Config
from models.network.transformer import Decoder
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer
from models.training import grammar
from models.training.corpus import Corpus, Library, read_divided, read_library
from models.training.head_scores import BestHead, best_head
from models.training.training_config import SEED, TrainingState, packed, padded, random_starts

BATCH_TOKENS = 2048
# Tokens in the longest row of each epoch, the last one for all that follow.
CURRICULUM = (40, 64, 128)
# Rows of repetitions in each epoch, the last number for all that follow: nearly all of the first
# epoch's tokens, then a few.
REPEATED_ROWS = (60_000, 8_000, 6_000)
# Sentences said twice in each epoch, another between the two, and paragraphs said twice.
SENTENCES_TWICE, PARAGRAPHS_TWICE = (0, 3_000, 4_000), (0, 500, 1_500)
# Tokens at the beginning of a second time that do not count: nothing tells that it begins.
UNCOUNTED_TOKENS = 2
# An epoch reads one part in so many of each: the sentences, the paragraphs of children's books, the
# other books.
PARTS = (3, 3, 20)
ANYWHERE_SHARE = 0.5  # of the rows, from the third epoch on, begin anywhere
N_GRAMMAR = 2_500
SHORTEST_PERIOD, LONGEST_PERIOD = 3, 20
HELD_OUT_SENTENCES, HELD_OUT_PARAGRAPHS, LONGEST_MEASURED = 600, 60, 96
# Names for the sentences of Tatoeba, where three names stand for everybody. Those of the grammar
# alone stay in the grammar's sentences, each of which is a row by itself: what it writes after a
# sentence of a book is no grammar.
MEN = tuple(
    """
    Tom Jack Peter Paul David Sam Ben George Henry Charles James Frank Harry Fred Robert Martin
    """.split()
)
WOMEN = tuple(
    """
    Mary Anna Emma Julia Lucy Helen Kate Alice Rose Margaret Ellen Jane Susan Grace Clara Betty
    """.split()
)
# A row of tokens, and which places of it do not count.
Row = tuple[list[int], frozenset[int]]
ALL_COUNT: frozenset[int] = frozenset()


def vocabulary_of(tokenizer: Tokenizer) -> list[int]:
    """Every token that is no special one."""
    return [token for token in range(len(tokenizer)) if token not in tokenizer.special]


def repeated(words: list[int], rng: Random, longest: int) -> list[int]:
    """A list of tokens drawn from `words`, said over and over until a row of `longest` tokens is
    nearly full."""
    period = [
        rng.choice(words)
        for _ in range(rng.randint(SHORTEST_PERIOD, min(LONGEST_PERIOD, longest // 2)))
    ]
    return (period * (longest // len(period) + 1))[: rng.randint(2 * len(period), longest)]


def repeated_text(text: list[int], between: list[int]) -> Row:
    """A text, another, and the first once more."""
    second_start = len(text) + len(between)
    return text + between + text, frozenset(range(second_start, second_start + UNCOUNTED_TOKENS))


def rows(corpus: Library, tokenizer: Tokenizer, rng: Random, epoch: int) -> Iterator[Row]:
    """One epoch of bare token rows, without [BOS]."""
    longest = CURRICULUM[min(epoch, len(CURRICULUM) - 1)] - 1
    n_repeated, n_twice, n_paragraphs = (
        each[min(epoch, len(each) - 1)]
        for each in (REPEATED_ROWS, SENTENCES_TWICE, PARAGRAPHS_TWICE)
    )
    sentences, paragraphs, books = (
        tokenizer.ids(list(texts[epoch % parts :: parts]))
        for texts, parts in zip((corpus.sentences, corpus.paragraphs, corpus.books), PARTS)
    )
    rng.shuffle(sentences)
    vocabulary = vocabulary_of(tokenizer)
    frequent = [token for sentence in sentences[:2000] for token in sentence]
    for at in range(n_repeated):
        yield repeated((vocabulary, frequent)[at % 2], rng, longest), ALL_COUNT
    if epoch == 0:
        yield from ((row, ALL_COUNT) for row in packed(sentences[:20_000], rng, longest))
        return
    yield from ((row, ALL_COUNT) for row in packed(sentences, rng, longest))
    for synthetic in tokenizer.ids([grammar.sentence(rng) for _ in range(N_GRAMMAR)]):
        yield synthetic[:longest], ALL_COUNT
    fitting = [text for text in sentences if 5 <= len(text) <= longest // 3]
    for text, between in zip(fitting[:n_twice], fitting[n_twice : 2 * n_twice]):
        yield repeated_text(text, between)
    for text in rng.sample(books, min(n_paragraphs, len(books))):
        yield repeated_text(text[: rng.randint(8, longest // 2)], [])
    for paragraph in (*paragraphs, *books):
        for at in range(0, len(paragraph), longest):
            yield paragraph[at : at + longest], ALL_COUNT


def batches(
    corpus: Library, tokenizer: Tokenizer, rng: Random, epoch: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One epoch of (ids, present, counts), all (batch, token), rows of like length together, [BOS]
    before each."""
    bos, _ = tokenizer.ends
    pool = [
        ([bos, *row], frozenset(at + 1 for at in free))
        for row, free in rows(corpus, tokenizer, rng, epoch)
    ]
    yield from grouped(pool, tokenizer.padding, rng, BATCH_TOKENS)


def grouped(
    pool: list[Row], pad: int, rng: Random, most: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The rows in batches of at most `most` tokens, in random order: (ids, present, counts), all
    (batch, token)."""
    pool.sort(key=lambda row: len(row[0]) + rng.random() * 4)
    groups: list[list[Row]] = [[]]
    width = 0
    for row in pool:
        width = max(width, len(row[0]))
        if groups[-1] and (len(groups[-1]) + 1) * width > most:
            groups.append([])
            width = len(row[0])
        groups[-1].append(row)
    rng.shuffle(groups)
    for group in groups:
        ids, present = padded([row for row, _ in group], pad)
        counts = present.clone()
        for at, (_, free) in enumerate(group):
            counts[at, sorted(free)] = False
        yield ids, present, counts


def loss(model: Decoder, ids: Tensor, counts: Tensor, start: Tensor | None = None) -> Tensor:
    """Mean cross-entropy in nats of every token that counts after the first, given those before it.
    ids, counts (batch, token)."""
    x = model(ids[:, :-1], start=start)
    is_target = counts[:, 1:]
    return F.cross_entropy(model.logits(x[is_target]).float(), ids[:, 1:][is_target])


@torch.inference_mode()
def perplexity(model: Decoder, tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[float, float]:
    """(loss in nats a token, perplexity a token) over the texts, each by itself after [BOS], at
    most LONGEST_MEASURED tokens of each."""
    bos, _ = tokenizer.ends
    pool = [([bos, *ids[:LONGEST_MEASURED]], ALL_COUNT) for ids in tokenizer.ids(list(texts))]
    total = count = 0.0
    for ids, present, _ in grouped(pool, tokenizer.padding, Random(0), BATCH_TOKENS):
        n = int(present[:, 1:].sum())
        total += loss(model, ids, present).item() * n
        count += n
    return total / count, float(torch.tensor(total / count).exp())


@torch.inference_mode()
def repetition_scores(
    model: Decoder, tokenizer: Tokenizer, n: int = 24, lists: int = 40
) -> dict[str, BestHead]:
    """The best previous-token and induction heads on repeated random lists of `n` tokens, by mean
    attention, the latter's over the second time (Olsson et al., 2022)."""
    rng = Random(0)
    vocabulary = vocabulary_of(tokenizer)
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
    second_positions = torch.arange(n + 1, 2 * n + 1)
    return {
        "previous": best_head(pattern.diagonal(-1, 2, 3).mean(-1)),
        "induction": best_head(pattern[:, :, second_positions, second_positions - n + 1].mean(-1)),
    }


class NextWord:
    """The recipe of the decoder."""

    config = Config(n_vocab=6144, d_model=192, n_layer=4, n_head=6, d_ff=768, n_positions=512)
    steps, check, rate, warm_up = 15_000, 1000, 1.4e-3, 300
    checkpoint_steps: tuple[int, ...] = (0, 200, 500, 600, 800, 2000, 5000)
    in_half = True

    def __init__(self, data: Path) -> None:
        self.data = data

    @cached_property
    def corpus(self) -> Library:
        return read_library(self.data, MEN, WOMEN)

    @cached_property
    def held_out(self) -> Corpus:
        return read_divided(self.data)[1]

    def tokenizer(self) -> Tokenizer:
        rng, corpus = Random(SEED), self.corpus
        synthetic = (grammar.sentence(rng) for _ in range(N_GRAMMAR))
        return Tokenizer.train(
            chain(corpus.sentences, corpus.paragraphs, corpus.books[::10], synthetic),
            self.config.n_vocab,
            CAUSAL_LM_SPECIALS,
        )

    def model(self) -> Decoder:
        return Decoder(self.config)

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return batches(self.corpus, tokenizer, Random(SEED + epoch), epoch)

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        ids, _, counts = batch
        start = None
        if at.epoch > 1:
            start = random_starts(ids, self.config.n_positions, ANYWHERE_SHARE, at.generator)
        return loss(model, ids, counts, start)

    def progress(self, model: Decoder, tokenizer: Tokenizer) -> dict[str, float | str]:
        sentences, _ = perplexity(
            model, tokenizer, list(self.held_out.sentences[:HELD_OUT_SENTENCES])
        )
        paragraphs, _ = perplexity(
            model, tokenizer, list(self.held_out.paragraphs[:HELD_OUT_PARAGRAPHS])
        )
        return {
            "sentences_loss": round(sentences, 4),
            "paragraphs_loss": round(paragraphs, 4),
            **{name: str(best) for name, best in repetition_scores(model, tokenizer).items()},
        }
