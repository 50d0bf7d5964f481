"""English to French, and the recipe of the translator: rows of pairs, the loss of saying the French
one token at a time, alignment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.network.attention import KVCache
from models.network.config import Config
from models.network.transformer import EncoderDecoder
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer
from models.training.corpus import Pairs, read_pairs
from models.training.training_config import SEED, TrainingState, padded, with_dropout

BATCH_TOKENS = 2000  # of the target, padding counted in
# Longest target of each epoch, in tokens; the last one for all that follow. Alignments form in
# short sentences first.
CURRICULUM = (14, 24, 80)
LABEL_SMOOTHING, DROPOUT = 0.1, 0.1
# People write without full stops and capitals too.
BARE_SHARE, LOWER_SHARE = 0.05, 0.03
# Tatoeba's sentences are short. From the third epoch on a share of the pairs is drawn again and
# joined with another one, side by side or by "and" and "but", so that long sentences are met; and
# of the shortest pairs, which the first epochs have taught, only a share is read again.
JOINED_SHARE, LINKED = 0.12, 0.6
SHORT, SHORT_SHARE = 6, 0.5
LINKS = (("and", "et"), ("and", "et"), ("but", "mais"))
# Words that begin an English or French sentence and are lower case inside one.
STARTS = re.compile(
    r"(he|she|it|we|they|you|this|that|these|those|the|a|an|my|your|his|her|its|our|their|there|"
    r"what|nobody|everybody|everyone|someone|no|"
    r"il|elle|on|nous|ils|elles|je|tu|vous|ce|cet|cette|ces|le|la|les|un|une|des|mon|ma|mes|ton|ta|"
    r"tes|son|sa|ses|notre|nos|votre|vos|leur|"
    r"leurs|c'|j'|l'|d'|ça|cela|personne|quelqu'un)(?=\b|\W)",
    re.IGNORECASE,
)
# Before "?" and "!" French writes a space that does not break, or a thin one, or a plain one, and
# so does Tatoeba: one will do.
SPACES = str.maketrans("\u00a0\u202f\u2009", "   ")
Pair = tuple[str, str]


def noisy_pair(english: str, french: str, rng: Random) -> tuple[str, str]:
    """A pair as it is, or now and then without its final mark on both sides, or with its English in
    lower case."""
    draw = rng.random()
    if draw < BARE_SHARE and english[-1:] in ".!?" and french[-1:] in ".!?":
        return english[:-1], french[:-1].rstrip()
    if draw > 1 - LOWER_SHARE:
        return english.lower(), french
    return english, french


def joined_pair(first: Pair, second: Pair, rng: Random) -> Pair:
    """Two pairs as one: a sentence after the other, or the two linked by "and" or "but" where both
    state something and the second begins with a word that can stand inside a sentence."""
    states = all(text[-1:] == "." and text[:-1].count(".") == 0 for text in (*first, *second))
    starts = all(STARTS.match(text) or text.startswith("I ") for text in second)
    if not (states and starts and rng.random() < LINKED):
        return f"{first[0]} {second[0]}", f"{first[1]} {second[1]}"
    english, french = (
        f"{one[:-1].rstrip()}, {link} "
        f"{other if other.startswith(('I ', 'Tom ')) else other[0].lower() + other[1:]}"
        for one, link, other in zip(first, rng.choice(LINKS), second)
    )
    return english, french


def later_epoch_pairs(pairs: list[Pair], rng: Random) -> list[Pair]:
    """The pairs of a later epoch: fewer of the shortest, and joined ones added."""
    remaining = [
        pair for pair in pairs if len(pair[0].split()) >= SHORT or rng.random() < SHORT_SHARE
    ]
    joined_pairs = (
        joined_pair(rng.choice(pairs), rng.choice(pairs), rng)
        for _ in range(int(JOINED_SHARE * len(pairs)))
    )
    return [*remaining, *joined_pairs]


def batches(
    english: list[list[int]],
    french: list[list[int]],
    tokenizer: Tokenizer,
    rng: Random,
    longest: int,
    most: int = BATCH_TOKENS,
) -> Iterator[tuple[Tensor, ...]]:
    """One epoch of (source, source present, target, target present), each (batch, token), at most
    `most` of the target in a batch. A source ends with [EOS]; a target begins with [BOS] and ends
    with [EOS]. Pairs of which a side is longer than `longest` tokens are left out."""
    (bos, eos), pad = tokenizer.ends, tokenizer.padding
    pool = [
        ([*source, eos], [bos, *target, eos])
        for source, target in zip(english, french)
        if max(len(source), len(target)) <= longest
    ]
    pool.sort(key=lambda pair: len(pair[1]) + len(pair[0]) / 4 + rng.random() * 2)
    groups: list[list[tuple[list[int], list[int]]]] = [[]]
    width = 0
    for pair in pool:
        width = max(width, len(pair[0]), len(pair[1]))
        if groups[-1] and (len(groups[-1]) + 1) * width > most:
            groups.append([])
            width = max(map(len, pair))
        groups[-1].append(pair)
    rng.shuffle(groups)
    for group in groups:
        sources, targets = zip(*group)
        yield *padded(list(sources), pad), *padded(list(targets), pad)


def loss(
    model: EncoderDecoder, batch: tuple[Tensor, ...], smoothing: float = LABEL_SMOOTHING
) -> Tensor:
    """Mean cross-entropy in nats of every target token after [BOS], given the source and the tokens
    before it (section 5.4: smoothed). batch: as `batches` yields it."""
    source, source_present, target, target_present = batch
    memory_allowed = source_present[:, None, None]
    memory = model.encode(source, memory_allowed)
    x = model.decode(target[:, :-1], memory, memory_allowed)
    is_target = target_present[:, 1:]
    return F.cross_entropy(
        model.logits(x[is_target]).float(), target[:, 1:][is_target], label_smoothing=smoothing
    )


@torch.inference_mode()
def greedy(
    model: EncoderDecoder, tokenizer: Tokenizer, sources: list[list[int]], longest: int = 60
) -> list[list[int]]:
    """The likeliest next token, again and again, for a batch of bare source ids at once: bare
    target ids."""
    bos, eos = tokenizer.ends
    ids, present = padded([[*source, eos] for source in sources], tokenizer.padding)
    allowed = present[:, None, None]
    memory = model.encode(ids, allowed)
    stored = KVCache()
    token = torch.full((len(sources), 1), bos)
    outputs: list[list[int]] = [[] for _ in sources]
    done = torch.zeros(len(sources), dtype=torch.bool)
    for _ in range(longest):
        token = model.logits(model.decode(token, memory, allowed, stored=stored)[:, -1:]).argmax(-1)
        done |= token[:, 0] == eos
        if done.all():
            break
        for row in (~done).nonzero().flatten().tolist():
            outputs[row].append(int(token[row, 0]))
    return outputs


class SmallTranslator:
    """The recipe of translator-small."""

    config = Config(n_vocab=8192, d_model=192, n_layer=2, n_head=6, d_ff=768, n_positions=256)
    steps, check, rate, warm_up = 14_000, 500, 1.6e-3, 400
    checkpoint_steps: tuple[int, ...] = (250, 1000)
    in_half = True
    curriculum, most, dropout, elides = (14, 20, 48), 1100, 0.0, False

    def __init__(self, data: Path) -> None:
        train, self.held_out = read_pairs(data)
        self.train = Pairs(train.english, tuple(text.translate(SPACES) for text in train.french))

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.train(
            [*dict.fromkeys(self.train.english), *self.train.french],
            self.config.n_vocab,
            CAUSAL_LM_SPECIALS,
            with_elisions=self.elides,
        )

    def model(self) -> EncoderDecoder:
        model = EncoderDecoder(self.config)
        with_dropout(model, self.dropout)
        return model

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        rng = Random(SEED + epoch)
        pairs = self.pairs(epoch, rng)
        english, french = zip(*(noisy_pair(*pair, rng) for pair in pairs))
        yield from batches(
            tokenizer.ids(list(english)),
            tokenizer.ids(list(french)),
            tokenizer,
            rng,
            self.curriculum[min(epoch, len(self.curriculum) - 1)],
            self.most,
        )

    def pairs(self, epoch: int, rng: Random) -> list[Pair]:
        """The sentence pairs of one epoch."""
        return list(zip(self.train.english, self.train.french))

    def loss(self, model: EncoderDecoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        return loss(model, batch)

    @torch.inference_mode()
    def progress(self, model: EncoderDecoder, tokenizer: Tokenizer) -> dict[str, float | str]:
        english, french = (
            tokenizer.ids(list(side[::5])) for side in (self.held_out.english, self.held_out.french)
        )
        total = count = 0.0
        for batch in batches(english, french, tokenizer, Random(0), 100):
            n = int(batch[3][:, 1:].sum())
            total += loss(model, batch, smoothing=0.0).item() * n
            count += n
        samples = [side[::300] for side in (self.held_out.english, self.held_out.french)]
        translations = greedy(model, tokenizer, tokenizer.ids(list(samples[0])))
        return {
            "held_out_loss": round(total / count, 4),
            **{source: tokenizer.text(ids) for source, ids in zip(samples[0], translations)},
        }


class Translation(SmallTranslator):
    """The recipe of the translator."""

    config = Config(n_vocab=8192, d_model=256, n_layer=3, n_head=8, d_ff=1024, n_positions=256)
    steps, check, rate, warm_up = 12_000, 500, 1.2e-3, 600
    checkpoint_steps: tuple[int, ...] = (0, 400, 1000)
    curriculum, most, dropout, elides = CURRICULUM, BATCH_TOKENS, DROPOUT, True

    def pairs(self, epoch: int, rng: Random) -> list[Pair]:
        pairs = super().pairs(epoch, rng)
        return later_epoch_pairs(pairs, rng) if epoch >= len(self.curriculum) - 1 else pairs
