"""The masked-word objective (Devlin et al., 2019): rows of text, places hidden in them, and the
loss of guessing what stood there.

Rows come from five diets. Plain sentences and paragraphs make the language; a few grammar sentences
bring the lecture notes' words, and others a pronoun and two nouns of which one fits; `echo` rows
hold the same words twice, the second time shuffled: whether a word is the right one shows in
whether it has a partner, which asks for a head that looks at the same word elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.network.config import Config
from models.network.embedding import sinusoids
from models.network.transformer import Encoder
from models.tokens.token_labels import BYTE_SPACE
from models.tokens.tokenizer import Tokenizer
from models.training import grammar
from models.training.corpus import Corpus, Library, read, read_library
from models.training.grammar import MEN, PLACES, WOMEN
from models.training.head_scores import best_heads
from models.training.training_config import (
    SEED,
    Scores,
    TrainingState,
    packed,
    padded,
    random_starts,
)

LONGEST_ROW = 128
# Tokens in the longest row of each epoch, the last one for all that follow. Long rows from the
# start hold a model on the unigram plateau: an untrained head gives a neighbour 1/128 of its
# attention, in a short row a tenth of it.
CURRICULUM = (24, 48, 96, 128)
BATCH_TOKENS = 2048
MASKED_SHARE = 0.25
# A chosen word becomes [MASK] below the first number, stays below the second, and becomes a random
# word above it. In an echo more words stay or turn random, because telling these two apart is what
# a look at the same word elsewhere can do.
MASK_SPLIT, ECHO_MASK_SPLIT = (0.8, 0.9), (0.4, 0.7)
# Pronouns are chosen twice as often, and where they turn, into another pronoun: to tell a "he" that
# is right from one that stood for "she", it must look for the one it stands for.
PRONOUN_SHARE, PRONOUN_MASK_SPLIT = 0.5, (0.4, 0.7)
PRONOUNS = (
    ("he", "she", "they", "it"),
    ("He", "She", "They", "It"),
    ("him", "her", "them"),
    ("his", "their", "its"),
    ("himself", "herself", "themselves", "itself"),
)
FIRST_EPOCH_ANYWHERE, ANYWHERE_SHARE = 1, 0.7
HELD_OUT_SENTENCES, HELD_OUT_PARAGRAPHS = 300, 100
# An epoch reads one part in so many of each: the sentences, the paragraphs of children's books, the
# other books.
PARTS = (3, 3, 24)
N_GRAMMAR, N_PRONOUNS = 5_000, 10_000  # made sentences of an epoch
# Shares of the sentences that stand twice in their row, shuffled and as they are.
ECHO_SHARE, REPEAT_SHARE = 0.06, 0.02
# Heads of layer 0 whose W_K begins as W_Q, so that a word begins by looking at itself and its like.
TIED_HEADS = (6, 7)
# From this head of each layer on, heads pay for every key that takes more than its share of the
# mean row.
FIRST_PAYING_HEAD, PRICE = 3, 0.2


class Masked:
    """The recipe of the encoder."""

    config = Config(n_vocab=8192, d_model=256, n_layer=6, n_head=8, d_ff=1024, n_positions=512)
    steps, check, rate, warm_up = 14_000, 500, 1e-3, 800
    checkpoint_steps: tuple[int, ...] = (0, 100, 200, 400, 800, 1500, 2500, 4000, 6500)
    in_half = True
    price = PRICE

    def __init__(self, data: Path) -> None:
        self.data = data

    @cached_property
    def corpus(self) -> Library:
        return read_library(self.data)

    @cached_property
    def held_out(self) -> Corpus:
        return read(self.data)[1]

    def tokenizer(self) -> Tokenizer:
        rng = Random(SEED)
        synthetic = [make(rng) for make in (grammar.sentence, sentence) for _ in range(N_GRAMMAR)]
        return Tokenizer.train(
            [*self.corpus.sentences, *self.corpus.paragraphs, *self.corpus.books[::10], *synthetic],
            self.config.n_vocab,
        )

    def model(self) -> Encoder:
        model = Encoder(self.config)
        tie_query_key(model, TIED_HEADS)
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        return batches(self.corpus, tokenizer, Random(SEED + epoch), epoch)

    @cached_property
    def paying(self) -> list[list[int]]:
        """The heads of each layer that pay for a sink."""
        return [list(range(FIRST_PAYING_HEAD, self.config.n_head))] * self.config.n_layer

    def loss(self, model: Encoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        ids, present, echo = batch
        masked_ids, chosen = self.masked(ids, present, echo, at)
        excess = SinkExcess(self.paying)
        x = model(
            masked_ids,
            allowed=present[:, None, None, :],
            tape=excess,
            start=self._start(ids, at.generator, at.epoch),
        )
        words = F.cross_entropy(model.logits(x[chosen]).float(), ids[chosen])
        return words + self.price * excess.mean()

    def masked(
        self, ids: Tensor, present: Tensor, echo: Tensor, at: TrainingState
    ) -> tuple[Tensor, Tensor]:
        """A batch with some words hidden, and which (batch, token)."""
        return mask_words(ids, present, WordBoundaries.of(at.tokenizer), at.generator, echo)

    def _start(self, ids: Tensor, generator: torch.Generator, epoch: int) -> Tensor | None:
        """The first position of each row (batch, 1): 0, but from the second epoch on mostly a
        random one, so that all positions are trained."""
        if epoch < FIRST_EPOCH_ANYWHERE:
            return None
        return random_starts(ids, self.config.n_positions, ANYWHERE_SHARE, generator)

    def progress(self, model: Encoder, tokenizer: Tokenizer) -> Scores:
        return held_out_scores(model, tokenizer, self.held_out)


def tie_query_key(model: Encoder, heads: tuple[int, ...]) -> None:
    """Let W_K of these heads of layer 0 begin as W_Q, both blind to positions: a word then gives
    most to itself and its like elsewhere."""
    attention, config = model.attentions()["self"][0], model.config
    _, lengths, directions = torch.linalg.svd(
        sinusoids(config.n_positions, config.d_model), full_matrices=False
    )
    of_positions = directions[lengths > 0.02 * lengths[0]]
    for head in heads:
        rows = slice(head * config.d_head, (head + 1) * config.d_head)
        with torch.no_grad():
            query = attention.w_q.weight[rows]
            position_free = query - query @ of_positions.T @ of_positions
            position_free *= query.norm() / position_free.norm()
            attention.w_q.weight[rows] = attention.w_k.weight[rows] = position_free


class SinkExcess:
    """A tape that sums the penalized heads' weight on a key above a share of the mean row.

    The share is 0.16, or 2.4 times a uniform row's in short rows. Such a key is a sink: one place
    in a sentence on which most rows rest, which helps no prediction."""

    def __init__(self, paying: Sequence[Sequence[int]]) -> None:
        self.unread, self.penalties = list(paying), list[Tensor]()

    def __call__(self, name: str, tensor: Tensor) -> None:
        if name.endswith(".pattern") and (heads := self.unread.pop(0)):
            share = tensor[:, heads].mean(dim=2)  # (batch, head, key)
            free_share = max(0.16, 2.4 / share.shape[-1])
            self.penalties.append(F.relu(share.float() - free_share).sum(-1).mean())

    def mean(self) -> Tensor:
        return torch.stack(self.penalties).mean()


@dataclass(frozen=True)
class WordBoundaries:
    """Tables of a vocabulary for masking. begins (id) bool: the token begins a word. others (id,
    3): possible replacements of a pronoun, -1 in the row of a token that is none."""

    tokenizer: Tokenizer
    begins: Tensor
    others: Tensor

    @staticmethod
    def of(tokenizer: Tokenizer) -> WordBoundaries:
        if tokenizer not in _WORDS:
            stored = [tokenizer.bpe.id_to_token(token) or "" for token in range(len(tokenizer))]
            begins = [piece.startswith(BYTE_SPACE) or not piece[:1].isalnum() for piece in stored]
            others = torch.full((len(tokenizer), 3), -1)
            for group in PRONOUNS:
                ids = [ids[0] for ids in tokenizer.ids(list(group)) if len(ids) == 1]
                for token in ids:
                    rest = [other for other in ids if other != token] or [token]
                    others[token] = torch.tensor((rest * 3)[:3])
            _WORDS[tokenizer] = WordBoundaries(tokenizer, torch.tensor(begins), others)
        return _WORDS[tokenizer]


_WORDS: dict[Tokenizer, WordBoundaries] = {}


def rows(
    corpus: Library, tokenizer: Tokenizer, rng: Random, longest: int, epoch: int
) -> Iterator[list[int]]:
    """One epoch of bare token rows, without [CLS] and [SEP], of at most `longest` - 2 tokens."""
    corpus_sentences, paragraphs, books = (
        list(texts[epoch % parts :: parts])
        for texts, parts in zip((corpus.sentences, corpus.paragraphs, corpus.books), PARTS)
    )
    synthetic = [
        *(grammar.sentence(rng) for _ in range(N_GRAMMAR)),
        *(sentence(rng) for _ in range(N_PRONOUNS)),
    ]
    sentences = tokenizer.ids([*corpus_sentences, *synthetic])
    rng.shuffle(sentences)
    yield from packed(sentences, rng, longest - 2, lambda each: _twice(each, rng, longest - 2))
    for paragraph in tokenizer.ids(paragraphs + books):
        for at in range(0, len(paragraph), longest - 2):
            yield paragraph[at : at + longest - 2]


def _twice(sentence: list[int], rng: Random, most: int) -> list[int] | None:
    """Row of a sentence that stands twice in it, echoed or as it is; None for most sentences."""
    kind = rng.random()
    if kind < ECHO_SHARE and len(sentence) > 3:
        return echo(sentence[: most // 2], rng)
    return (sentence + sentence)[:most] if kind < ECHO_SHARE + REPEAT_SHARE else None


def echo(words: list[int], rng: Random) -> list[int]:
    """The words, as they stand or shuffled, then once more shuffled anew."""
    first = rng.sample(words, len(words)) if rng.random() < 0.5 else words
    return first + rng.sample(words, len(words))


def batches(
    corpus: Library, tokenizer: Tokenizer, rng: Random, epoch: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """One epoch of (ids (batch, token), present (batch, token), is_echo (batch, 1)), padded to the
    longest row of the batch; rows of like length together."""
    longest = CURRICULUM[min(epoch, len(CURRICULUM) - 1)]
    cls, sep, _ = tokenizer.fills
    pool = [[cls, *row, sep] for row in rows(corpus, tokenizer, rng, longest, epoch)]
    pool.sort(key=lambda row: len(row) + rng.random() * 4)
    groups: list[list[list[int]]] = [[]]
    for row in pool:
        if (len(groups[-1]) + 1) * len(row) > BATCH_TOKENS:
            groups.append([])
        groups[-1].append(row)
    rng.shuffle(groups)
    for group in groups:
        yield (
            *padded(group, tokenizer.padding),
            torch.tensor([[is_echo(row[1:-1])] for row in group]),
        )


def is_echo(row: list[int]) -> bool:
    """True if the second half of the row holds the words of the first."""
    half = len(row) // 2
    return len(row) == 2 * half and sorted(row[:half]) == sorted(row[half:])


def mask_tokens(
    ids: Tensor,
    present: Tensor,
    tokenizer: Tokenizer,
    generator: torch.Generator,
    echo: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(ids with some words hidden, which): a quarter of the words, hidden as MASK_SPLIT says, or
    ECHO_MASK_SPLIT in rows where `echo` (batch, 1)."""
    cls, sep, mask = tokenizer.fills
    ordinary = present & (ids != cls) & (ids != sep)
    chosen = ordinary & (torch.rand(ids.shape, generator=generator) < MASKED_SHARE)
    fate = torch.rand(ids.shape, generator=generator)
    random_ids = torch.randint(4, len(tokenizer), ids.shape, generator=generator)
    is_echo_row = torch.zeros((), dtype=torch.bool) if echo is None else echo
    to_mask, to_stay = (
        torch.where(is_echo_row, in_echo, usual)
        for in_echo, usual in zip(ECHO_MASK_SPLIT, MASK_SPLIT)
    )
    masked_ids = torch.where(chosen & (fate < to_mask), mask, ids)
    return torch.where(chosen & (fate > to_stay), random_ids, masked_ids), chosen


def mask_words(
    ids: Tensor, present: Tensor, words: WordBoundaries, generator: torch.Generator, echo: Tensor
) -> tuple[Tensor, Tensor]:
    """As `hide`, but whole words: all tokens of a word share its fate, and pronouns have their
    own."""
    tokenizer = words.tokenizer
    cls, sep, mask = tokenizer.fills
    ordinary = present & (ids != cls) & (ids != sep)
    word = words.begins[ids].long().cumsum(1).clamp(max=ids.shape[1] - 1)  # (batch, token)
    chance, fate = (torch.rand(ids.shape, generator=generator).gather(1, word) for _ in range(2))
    others = words.others[ids]  # (batch, token, 3)
    pronoun = others[..., 0] >= 0
    chosen = ordinary & (chance < torch.where(pronoun, PRONOUN_SHARE, MASKED_SHARE))
    to_mask, to_stay = (
        torch.where(pronoun, of_pronoun, torch.where(echo, in_echo, usual))
        for of_pronoun, in_echo, usual in zip(PRONOUN_MASK_SPLIT, ECHO_MASK_SPLIT, MASK_SPLIT)
    )
    choice = torch.randint(0, 3, (*ids.shape, 1), generator=generator)
    random_ids = torch.where(
        pronoun,
        others.gather(2, choice)[..., 0],
        torch.randint(4, len(tokenizer), ids.shape, generator=generator),
    )
    masked_ids = torch.where(chosen & (fate < to_mask), mask, ids)
    return torch.where(chosen & (fate > to_stay), random_ids, masked_ids), chosen


def loss(
    model: Encoder,
    masked_ids: Tensor,
    ids: Tensor,
    present: Tensor,
    chosen: Tensor,
    start: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy in nats of the chosen places. `hidden`, `ids`, `present`, `chosen`:
    (batch, token)."""
    x = model(masked_ids, allowed=present[:, None, None, :], start=start)
    return F.cross_entropy(model.logits(x[chosen]).float(), ids[chosen])


@torch.inference_mode()
def held_out_scores(model: Encoder, tokenizer: Tokenizer, held_out: Corpus) -> Scores:
    """Masked loss and accuracy, of tokens hidden by themselves and of whole words, and each
    relation's best head, on text that training never saw."""
    texts = [*held_out.sentences[:HELD_OUT_SENTENCES], *held_out.paragraphs[:HELD_OUT_PARAGRAPHS]]
    cls, sep, _ = tokenizer.fills
    rows = sorted(([cls, *ids[: LONGEST_ROW - 2], sep] for ids in tokenizer.ids(texts)), key=len)
    batches = [padded(rows[at : at + 16], tokenizer.padding) for at in range(0, len(rows), 16)]
    generator = torch.Generator().manual_seed(0)
    loss, accuracy = _masked_word_scores(
        model,
        (
            (ids, *mask_tokens(ids, present, tokenizer, generator), present)
            for ids, present in batches
        ),
    )
    words = WordBoundaries.of(tokenizer)
    word_loss, word_accuracy = _masked_word_scores(
        model,
        ((ids, *_only_masks(ids, present, words, generator), present) for ids, present in batches),
    )
    return {
        "held_out_loss": loss,
        "masked_accuracy": accuracy,
        "loss at whole words masked": word_loss,
        "accuracy at whole words masked": word_accuracy,
        **best_heads(model, tokenizer, texts[::4]),
    }


def _only_masks(
    ids: Tensor, present: Tensor, words: WordBoundaries, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """As `hide_words`, and only the words that became [MASK], as where a reader hides one."""
    plain = torch.zeros(len(ids), 1, dtype=torch.bool)
    masked_ids, chosen = mask_words(ids, present, words, generator, plain)
    _, _, mask = words.tokenizer.fills
    is_mask = masked_ids == mask
    return torch.where(is_mask, masked_ids, ids), chosen & is_mask


def _masked_word_scores(
    model: Encoder, batches: Iterable[tuple[Tensor, ...]]
) -> tuple[float, float]:
    """(mean loss in nats, share of guesses that are right) at the chosen places of batches of (ids,
    hidden, chosen, present)."""
    total = correct = n_targets = 0.0
    for ids, masked_ids, chosen, present in batches:
        logits = model.logits(model(masked_ids, allowed=present[:, None, None, :])[chosen])
        total += F.cross_entropy(logits, ids[chosen], reduction="sum").item()
        correct += (logits.argmax(-1) == ids[chosen]).sum().item()
        n_targets += chosen.sum().item()
    return round(total / n_targets, 4), round(correct / n_targets, 4)


HE = tuple(
    """
    man boy father brother uncle king prince son grandfather husband nephew gentleman waiter
    monk
    """.split()
)
SHE = tuple(
    """
    woman girl mother sister aunt queen princess daughter grandmother wife niece lady nurse nun
    """.split()
)
THEY = tuple(
    """
    children boys girls students dogs men women soldiers neighbors friends horses parents twins
    guests
    """.split()
)
VERBS = tuple(
    """
    thanked helped followed called met visited watched greeted asked invited taught left found
    heard saw forgave praised warned surprised remembered
    """.split()
)
ADJECTIVES = tuple(
    """
    tired happy late ill kind angry hungry afraid lonely busy proud early sad careful lost
    """.split()
)
EVENTS = (
    "went home",
    "began to laugh",
    "sat down",
    "said nothing",
    "came back",
    "ran away",
    "fell asleep",
    "started to sing",
    "opened the door",
    "looked out of the window",
    "made some tea",
    "told a story",
    "lost a shoe",
    "read a book",
)
GIFTS = (
    "a book",
    "a letter",
    "some bread",
    "a ring",
    "an apple",
    "a coat",
    "a map",
    "some money",
    "a flower",
    "a cup of tea",
)
LINK = ("because", "when", "although", "and", "but", "after", "while", "so")
ANIMALS = tuple(
    "dog cat horse cow bird fox rabbit mouse bear sheep donkey animal goat duck".split()
)
STATES = ("tired", "hungry", "weak", "young", "afraid", "old", "lazy", "ill", "sleepy", "thirsty")
# What a beast does not do, to what, and what that thing is too much of.
ACTIONS = (
    (
        ("cross", "jump over", "swim across"),
        ("river", "road", "field", "stream", "bridge", "lake"),
        ("wide", "long", "deep", "dangerous", "wet"),
    ),
    (
        ("eat", "touch", "finish"),
        ("bread", "soup", "meat", "cake", "grass", "apple"),
        ("hot", "cold", "hard", "dry", "sweet", "bitter"),
    ),
    (
        ("pull", "carry", "move"),
        ("cart", "box", "stone", "bag", "basket", "log"),
        ("heavy", "big", "hot", "wet", "large"),
    ),
    (
        ("enter", "leave", "see"),
        ("house", "garden", "cave", "room", "barn", "tunnel"),
        ("dark", "small", "warm", "cold", "narrow"),
    ),
)


def sentence(rng: Random) -> str:
    """One sentence, drawn from `rng`."""
    return (_person if rng.random() < 0.7 else _thing)(rng)


def _person(rng: Random) -> str:
    """Two people (or a person and several) of whom one is "he", "she" or "they"."""
    kinds = rng.sample(("he", "she", "they"), 2)
    pronoun = rng.choice(kinds)
    (noun, rival), be = (
        [_someone(kind, rng) for kind in kinds],
        "were" if pronoun == "they" else "was",
    )
    first = noun[0].upper() + noun[1:]
    verb, mood, event, place = (rng.choice(words) for words in (VERBS, ADJECTIVES, EVENTS, PLACES))
    return rng.choice(
        (
            f"{first} {verb} {rival} {rng.choice(LINK)} {pronoun} {be} {mood}.",
            f"{first} {verb} {rival} {rng.choice(LINK)} {pronoun} {event}.",
            f"{first} {verb} {rival} at {place}, and then {pronoun} {event}.",
            f"When {noun} {verb} {rival}, {pronoun} {be} {mood}.",
            f"After {noun} {verb} {rival}, {pronoun} {event}.",
            (
                f"{first} gave {rival} {rng.choice(GIFTS)} "
                f"{rng.choice(('because', 'when', 'before', 'and'))} {pronoun} {event}."
            ),
            f"{first} and {rival} were at {place} when {pronoun} {event}.",
            f"{first} {verb} {rival} yesterday. Today {pronoun} {be} {mood}.",
            (
                f"{first} {event}. {rival[0].upper() + rival[1:]} {rng.choice(VERBS)} "
                f"{_them(kinds[0])} because {pronoun} {be} {mood}."
            ),
        )
    )


def _thing(rng: Random) -> str:
    """A beast and a thing, one of which "it" is by sense."""
    verbs, things, traits = rng.choice(ACTIONS)
    beast, verb, thing = rng.choice(ANIMALS), rng.choice(verbs), rng.choice(things)
    trait = rng.choice(STATES if rng.random() < 0.5 else traits)
    modal = rng.choice(("didn't", "could not", "did not", "would not", "couldn't"))
    return rng.choice(
        (
            f"The {beast} {modal} {verb} the {thing} because it was too {trait}.",
            (
                f"The {beast} {modal} {verb} the {thing} because it was "
                f"{rng.choice(('very', 'so'))} {trait}."
            ),
            f"The {thing} was there, but the {beast} {modal} {verb} it because it was too {trait}.",
        )
    )


def _someone(kind: str, rng: Random) -> str:
    if kind == "they":
        return f"the {rng.choice(THEY)}"
    nouns, names = (HE, MEN) if kind == "he" else (SHE, WOMEN)
    return (
        rng.choice(names)
        if rng.random() < 0.35
        else f"{rng.choice(('the', 'the', 'the old', 'the young'))} {rng.choice(nouns)}"
    )


def _them(kind: str) -> str:
    return {"he": "him", "she": "her", "they": "them"}[kind]
