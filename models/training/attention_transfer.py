"""Attention transfer (Wang et al., 2020, MiniLM; Jiao et al., 2020, TinyBERT): some heads of the
encoder learn to attend as heads of a teacher do, while the model goes on with masked words.

The teacher is all-MiniLM-L6-v2, and what it teaches is to find the noun of a pronoun. It has
other tokens than the encoder, so the two are compared word by word: the pieces of a word are summed
over keys and averaged over queries, and all special tokens are one more key. The loss of a taught
head is the divergence of its rows from what the teacher's give to words: a row counts by how much
that is, and a pronoun's as several. The embedding, the first layer and the attention of the second
stay as they are: there are the heads of neighbours, and one that found such a noun by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import cycle
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from models import shipped_models
from models.network import own_model
from models.network.config import Config
from models.network.own_model import OwnModel
from models.network.transformer import Encoder
from models.runtime import registry
from models.tokens.tokenizer import Tokenizer, Tokens
from models.training import masked
from models.training.corpus import Library, word_runs
from models.training.training_config import SEED, TrainingState, padded

STUDENT, TEACHER = "encoder", "minilm"
BEFORE = 21_700  # steps that the encoder had learned before
Head = tuple[int, int]  # layer, head
# The heads that are taught, and those of the teacher whose mean each of them learns.
LESSONS: dict[Head, tuple[Head, ...]] = {(2, 1): ((1, 3), (3, 1)), (3, 2): ((3, 1),)}
TAUGHT = tuple(LESSONS)
TEACHER_HEADS = tuple(sorted({head for heads in LESSONS.values() for head in heads}))
# Heads of each layer that pay for a sink, as in the encoder's earlier training: all but the three
# that rested most on special tokens, and but the taught ones; none of a layer that stays.
PAYING = [[], [], [2, 3, 4, 5, 6], [0, 1, 4, 5, 6]]
WEIGHT, PRONOUN_ROWS = 2, 12  # of the divergence; as how many rows a pronoun's counts in it
SENTENCES = 64  # of a batch, for the taught heads
SHORTEST, LONGEST = 7, 24  # words of such a sentence
PRONOUN = re.compile(r"\b(he|she|it|they|him|her|them|his|its|their)\b", re.IGNORECASE)
WORD = re.compile(r"\w+|[^\w\s]")
# What models are tested, measured and shown on stands in these folders of the project.
ROOT = Path(__file__).parents[2]
KEPT_OUT = ("tests", "benchmarks", "explorer", "pages", "docs", "models")


class AttentionTransfer(masked.Masked):
    """The recipe of the encoder's taught heads, from its weights before they were taught."""

    config = Config(n_vocab=8192, d_model=256, n_layer=4, n_head=8, d_ff=1024, n_positions=512)
    paying, price = PAYING, 0.4
    steps, check, rate, warm_up = 1200, 300, 4e-4, 30
    checkpoint_steps = (0, 100, 200)

    @cached_property
    def corpus(self) -> Library:
        """The encoder's text, without what shares seven words in a row with a text of the
        project."""
        library, kept_out = super().corpus, kept_out_runs()
        sentences, paragraphs, books = (
            tuple(text for text in texts if kept_out.isdisjoint(word_runs(text, SHORTEST)))
            for texts in (library.sentences, library.paragraphs, library.books)
        )
        return Library(sentences, paragraphs, books)

    @cached_property
    def with_pronoun(self) -> list[str]:
        """Sentences of the text in which a pronoun may have a noun before it, in groups of like
        length, each of as many as a batch takes."""
        sentences = [
            sentence
            for text in (*self.corpus.sentences, *self.corpus.paragraphs, *self.corpus.books)
            for sentence in re.split(r"(?<=[.!?])\s+", text)
            if has_pronoun(sentence)
        ]
        rng = Random(SEED)
        sentences.sort(key=lambda sentence: (len(sentence) + 8 * rng.random(), sentence))
        groups = list(range(0, len(sentences) - SENTENCES + 1, SENTENCES))
        rng.shuffle(groups)
        return [sentence for at in groups for sentence in sentences[at : at + SENTENCES]]

    @cached_property
    def teacher(self) -> OwnModel:
        teacher = registry.load(TEACHER)
        assert isinstance(teacher, OwnModel) and isinstance(teacher.network, Encoder)
        model = deepcopy(teacher.network)  # others may use that one
        model.layers = model.layers[: 1 + max(layer for layer, _ in TEACHER_HEADS)]
        return replace(teacher, network=model)

    def tokenizer(self) -> Tokenizer:
        return own_model.load(STUDENT).tokenizer

    def model(self) -> Encoder:
        model = Encoder(self.config)  # a loaded one lies in memory as no optimizer expects
        model.load_state_dict(untaught().network.state_dict())
        for part in (model.embedding, model.layers[0], model.layers[1].attention):
            part.requires_grad_(False)
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        """Batches of masked words as the encoder's, each with the places in `with_pronoun` of the
        sentences for the taught heads."""
        groups = torch.arange(len(self.with_pronoun)).reshape(-1, SENTENCES)
        generator = torch.Generator().manual_seed(SEED + epoch)
        places = groups[torch.randperm(len(groups), generator=generator)]
        rows = super().batches(tokenizer, epoch + len(masked.CURRICULUM))
        yield from ((*batch, which) for batch, which in zip(rows, cycle(places)))

    def masked(
        self, ids: Tensor, present: Tensor, echo: Tensor, at: TrainingState
    ) -> tuple[Tensor, Tensor]:
        """Whole words hidden in one half of the batches, tokens by themselves in the other."""
        if torch.rand((), generator=at.generator) < 0.5:
            return masked.mask_tokens(ids, present, at.tokenizer, at.generator, echo)
        return super().masked(ids, present, echo, at)

    def loss(self, model: Encoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        *row, which = batch
        later = replace(at, epoch=at.epoch + len(masked.CURRICULUM))
        masked_words = super().loss(model, tuple(row), later)
        texts = [self.with_pronoun[place] for place in which.tolist()]
        rows = rows_of(model, at.tokenizer, own_model.ENDS["encoder"], texts, TAUGHT)
        apart = divergence(rows, self.taught_rows(texts), row_weights(texts))
        return masked_words + WEIGHT * apart

    @torch.no_grad()
    def taught_rows(self, texts: Sequence[str]) -> Tensor:
        """The rows that the taught heads learn, (text, head, word, 1 + word), without what the
        teacher gives to special tokens."""
        teacher = self.teacher
        rows = rows_of(teacher.network, teacher.tokenizer, teacher.ends, texts, TEACHER_HEADS)
        rows[..., 0] = 0
        by_head = dict(zip(TEACHER_HEADS, rows.unbind(1)))
        lessons = [torch.stack([by_head[head] for head in each]) for each in LESSONS.values()]
        return torch.stack([rows.mean(0) for rows in lessons], 1)


def untaught() -> OwnModel:
    """The encoder before any of its heads was taught."""
    earlier = f"{STUDENT}@{BEFORE}"
    is_shipped = earlier in shipped_models.checkpoints(STUDENT)
    return own_model.load(earlier if is_shipped else STUDENT)


def has_pronoun(sentence: str) -> bool:
    """True for a plain sentence of middling length with a pronoun behind its third word."""
    words = sentence.split()
    return (
        SHORTEST <= len(words) <= LONGEST
        and sentence.isascii()
        and PRONOUN.search(" ".join(words[3:])) is not None
    )


def kept_out_runs() -> set[tuple[str, ...]]:
    """Every run of as many words as the shortest sentence has, of the texts, code and cards of the
    project."""
    files = [file for folder in KEPT_OUT for file in sorted((ROOT / folder).rglob("*"))]
    return {
        run
        for file in (ROOT / "README.md", *files)
        if file.suffix in (".py", ".txt", ".md") or file.name == "card.json"
        for line in file.read_text("utf-8").splitlines()
        for run in word_runs(re.sub(r"[\[\](){}]", "", line), SHORTEST)
    }


def rows_of(
    model: torch.nn.Module,
    tokenizer: Tokenizer,
    ends: tuple[tuple[str, ...], tuple[str, ...]],
    texts: Sequence[str],
    heads: Sequence[Head],
) -> Tensor:
    """The rows of some heads between words, (text, head, word, 1 + word): the first key stands for
    all special tokens. A text's missing words have rows of zeros."""
    tokens = [tokenizer.tokens(text, 512, *ends)[0] for text in texts]
    ids, present = padded([list(each.ids) for each in tokens], tokenizer.padding)
    patterns = list[Tensor]()

    def tape(name: str, tensor: Tensor) -> None:
        if name.endswith(".pattern"):
            patterns.append(tensor)

    model(ids, allowed=present[:, None, None, :], tape=tape)
    pattern = torch.stack([patterns[layer][:, head] for layer, head in heads], 1).float()
    member = torch.zeros(*ids.shape, 1 + max(len(WORD.findall(text)) for text in texts))
    for each, text, framed in zip(member, texts, tokens):
        each[torch.arange(len(framed.ids)), word_of(framed, text)] = 1
    queries = member[:, :, 1:] / member[:, :, 1:].sum(1, keepdim=True).clamp(min=1)
    with torch.autocast("cpu", enabled=False):
        return torch.einsum("bqw,bhqk,bkv->bhwv", queries, pattern, member)


def word_of(tokens: Tokens, text: str) -> list[int]:
    """The word of each token, from 1 on; 0 for a special token."""
    ends = [match.end() for match in WORD.finditer(text)]
    return [
        0 if special or end <= 0 else 1 + next(at for at, last in enumerate(ends) if end <= last)
        for (_, end), special in zip(tokens.spans, tokens.special)
    ]


def row_weights(texts: Sequence[str]) -> Tensor:
    """As how many rows the row of each word counts, (text, 1, word); 0 for words that a text has
    not."""
    weights = [
        torch.tensor(
            [PRONOUN_ROWS if PRONOUN.fullmatch(word) else 1 for word in WORD.findall(text)]
        )
        for text in texts
    ]
    return torch.nn.utils.rnn.pad_sequence(weights, batch_first=True)[:, None].float()


def divergence(rows: Tensor, taught: Tensor, weights: Tensor) -> Tensor:
    """The mean divergence in nats of rows (text, head, word, key) from those taught, each made to
    sum to 1; a row counts by its weight (text, 1, word) and by what is taught of it."""
    share = taught.sum(-1)  # (text, head, word)
    taught = taught / share[..., None].clamp(min=1e-6)
    log_ratio = taught.clamp(min=1e-6).log() - rows.clamp(min=1e-6).log()
    weights = weights * share
    return ((taught * log_ratio).sum(-1) * weights).sum() / weights.sum()
