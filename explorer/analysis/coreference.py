"""Which heads attend from a pronoun to the noun it stands for, over a list of sentences.

One text says little: its pronoun may attend to its noun by luck, or because every word does. So a
model is measured over the sentences of `pronouns.txt`, in which [noun] and {pronoun} are marked. A
head finds the noun of a sentence where, of all words but itself, the pronoun gives that one most.
By chance it would do so as often as the sentence's other words do in the same head. It is named for
it where it finds the noun in more than half of the sentences, luck would find as many in fewer than
FLUKE of cases among all heads of the attention, and the noun's mean weight from the pronoun stands
LEAST_LIFT above that from the other words.

What was measured of the models that come with Headlight stands in `coreference.json`, by the
weights' fingerprint; `python -m benchmarks.names --pronouns` makes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from explorer.analysis import words
from explorer.analysis.poisson_binomial import at_least
from explorer.analysis.word_classes import is_word
from models.recording import Attention, Recording

SENTENCES = Path(__file__).with_name("pronouns.txt")
MEASURED = Path(__file__).with_name("coreference.json")
LEAST_LIFT = 0.25
FLUKE = 0.02
LEAST_CHANCE = 0.02  # of a sentence: no head is so sure to miss
MOST_REMEMBERED = 256  # models


class Marked(NamedTuple):
    """A sentence with a pronoun and the noun it stands for."""

    text: str
    noun: str
    pronoun: str


class CoreferenceHead(NamedTuple):
    """A head that finds a pronoun's noun: in n_shown of n sentences; score: the mean weight that
    the pronoun gives it, chance: the mean weight that the other words give it; fluke: how often
    luck would find as many."""

    score: float
    chance: float
    n: int
    n_shown: int
    fluke: float


class Read(NamedTuple):
    """One sentence: the weight from pronoun to noun, whether it is the row's largest, the mean
    weight from the other words and the share of these whose largest it is, each (layer, head)."""

    weight: np.ndarray
    found: np.ndarray
    other: np.ndarray
    chance: np.ndarray


Measured = Mapping[tuple[int, int], CoreferenceHead]


@cache
def sentences() -> Mapping[str, Marked]:
    """The sentences, by their text."""
    marked = {}
    for line in SENTENCES.read_text("utf-8").splitlines():
        noun, pronoun = (re.search(mark, line) for mark in (r"\[(.+?)\]", r"\{(.+?)\}"))
        if noun and pronoun:
            text = re.sub(r"[\[\]{}]", "", line)
            marked[text] = Marked(text, noun[1], pronoun[1])
    return marked


def read(recording: Recording) -> dict[str, Read]:
    """A sentence of the list as a model reads it: every attention within it, by name. Raises
    ValueError where its tokens do not show the two words."""
    marked = sentences()[recording.text]
    return {
        one.name: _read(recording, one, marked)
        for one in recording.attention
        if one.query == one.key == recording.streams[0].name
    }


def _read(recording: Recording, attention: Attention, marked: Marked) -> Read:
    stream = recording.stream(attention.key)
    grouped = words.words(stream, recording.text)
    labels = [label.casefold() for label in grouped.labels]
    noun, pronoun = (labels.index(one.casefold()) for one in (marked.noun, marked.pronoun))
    weights = words.between(attention.pattern, grouped, grouped)
    allowed = words.merged_allowed(attention.allowed, grouped, grouped)
    telling = ~np.array(grouped.special) & np.array([is_word(label) for label in labels])
    beside = np.where(telling & ~np.eye(len(labels), dtype=bool), weights, -1)
    found = beside.argmax(axis=-1) == noun
    others = telling & allowed[:, noun]
    others[[noun, pronoun]] = False
    rows = np.flatnonzero(others)
    return Read(
        weights[:, :, pronoun, noun].astype(np.float64),
        found[:, :, pronoun],
        weights[:, :, rows, noun].astype(np.float64).mean(axis=-1),
        found[:, :, rows].mean(axis=-1),
    )


def heads(reads: Iterable[dict[str, Read] | str]) -> dict[str, Measured]:
    """The heads that find a pronoun's noun, by attention, from what was `read` of each sentence; a
    sentence that could not be read is left out."""
    read_ones = [one for one in reads if not isinstance(one, str)]
    names = read_ones[0] if read_ones else ()
    return {name: _heads([one[name] for one in read_ones]) for name in names}


def _heads(reads: list[Read]) -> Measured:
    weight, found, other, chance = (np.array(each) for each in zip(*reads))
    n, (n_layer, n_head) = len(reads), weight.shape[1:]
    shown = found.sum(axis=0)
    score, beside = weight.mean(axis=0), other.mean(axis=0)
    lift = (score - beside) / np.maximum(1 - beside, 1e-9)
    made = {}
    for layer, head in zip(*np.nonzero((2 * shown > n) & (lift >= LEAST_LIFT))):
        luck = at_least(np.clip(chance[:, layer, head], LEAST_CHANCE, 1))
        fluke = float(luck[shown[layer, head]]) * n_layer * n_head
        if fluke < FLUKE:
            made[int(layer), int(head)] = CoreferenceHead(
                float(score[layer, head]),
                float(beside[layer, head]),
                n,
                int(shown[layer, head]),
                fluke,
            )
    return made


@cache
def _remembered() -> dict[str, dict[str, Measured]]:
    """What was measured, by fingerprint and attention: of the models that come with Headlight, and
    what this process has measured of others."""
    read_ones = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {}
    return {
        mark: {
            name: {(layer, head): _head(*rest) for layer, head, *rest in rows}
            for name, rows in of.items()
        }
        for mark, of in read_ones.items()
    }


def _head(score: float, chance: float, n: float, n_shown: float, fluke: float) -> CoreferenceHead:
    return CoreferenceHead(score, chance, int(n), int(n_shown), fluke)


def remember(fingerprint: str, measured: dict[str, Measured]) -> None:
    """Keep what was measured of a model for the names of its heads in this process."""
    known = _remembered()
    if len(known) < MOST_REMEMBERED:
        known[fingerprint] = measured


def is_measured(fingerprint: str) -> bool:
    """True for a model that was measured."""
    return fingerprint in _remembered()


def of(recording: Recording, attention: Attention) -> Measured:
    """The heads of an attention that find a pronoun's noun; none where it was not measured."""
    return _remembered().get(recording.model.fingerprint, {}).get(attention.name, {})


def written(measured: Mapping[str, Mapping[str, Measured]]) -> str:
    """What was measured of some models, by fingerprint and attention, as MEASURED holds it."""
    lines = []
    for mark, of_model in measured.items():
        rows = {
            name: [[*at, *(float(f"{number:.6g}") for number in one)] for at, one in found.items()]
            for name, found in of_model.items()
        }
        lines.append(f" {json.dumps(mark)}: {json.dumps(rows)}")
    return "{\n" + ",\n".join(lines) + "\n}"
