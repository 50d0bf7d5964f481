"""Measures of the finds in the gallery (`explorer/text/gallery.toml`): each reads a text in a model
and gives one value, by which the find passes or not, with the numbers of its sentence. A measure is
called as the `measure` of its find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis import head_naming, logit_lens, positions, predictions, translation, words
from explorer.analysis.facts import RecordingFacts
from models.contract.edits import Edit, HideToken, ShuffleTokens, from_line
from models.contract.recording import Recording
from models.contract.results import softmax
from models.runtime.caching import loaded
from models.runtime.run import Run

SINK = 0.9  # of a head's attention, from which on it rests on one token


@dataclass(frozen=True)
class FindMeasure:
    """The value of a find, and the numbers and words of its sentence and its picture by their
    names. A pattern is its rows with "/" between them, a digit from 0 to 9 for each weight."""

    value: float
    numbers: Mapping[str, Any]


def token_of(recording: Recording, word: str) -> int:
    """The first token of the first stream that is a word. Raises ValueError where none is."""
    return recording.streams[0].tokens.index(word)


def _probabilities(recording: Recording, token: int) -> np.ndarray:
    """The probabilities of all words (id) at a token of the stream that is read."""
    stream = logit_lens.read_stream(recording)
    return softmax(loaded(recording).logits(recording, stream.name, token))


def _place(run: Run, word: str) -> tuple[int, tuple[Edit, ...]]:
    """The token where a word is predicted and the edits under which it is: the word, hidden from a
    model that fills in words; the last token where it is ""."""
    recording = run.recording()
    if not word:
        return len(logit_lens.read_stream(recording).tokens) - 1, ()
    at = token_of(recording, word)
    return at, (HideToken(at),) if recording.model.kind == "encoder" else ()


def lost_answer(run: Run, edits: str = "", word: str = "") -> FindMeasure:
    """The probability that the likeliest word loses under edits; two words with theirs before and
    after: the one that led, and of the others the likeliest one under the edits. word: the one that
    is hidden, "" for the next word after the text."""
    at, hidden = _place(run, word)
    plain = _probabilities(run.under(hidden).recording(), at)
    edited = _probabilities(run.under((*hidden, *from_line(edits))).recording(), at)
    first = int(plain.argmax())
    second = max(np.argsort(-edited)[:2].tolist(), key=lambda id: (id != first, edited[id]))
    names = [
        predictions.without_mark(each, after_special=True)
        for each in run.loaded.labels([first, second])
    ]
    numbers: dict[str, Any] = {}
    for name, label, id in zip(("first", "second"), names, (first, second)):
        numbers |= {name: label, f"{name}_before": float(plain[id])}
        numbers[f"{name}_after"] = float(edited[id])
    return FindMeasure(float(plain[first] - edited[first]), numbers)


def turned_answer(run: Run, edits: str = "", word: str = "") -> FindMeasure:
    """The same, 0 where the word that led leads under the edits too."""
    found = lost_answer(run, edits, word)
    leads = found.numbers["first_after"] >= found.numbers["second_after"]
    return FindMeasure(0.0 if leads else found.value, found.numbers)


def orders(run: Run, word: str) -> FindMeasure:
    """The probability that a hidden word loses where the words come in another order: the median of
    `positions.other_orders`."""
    recording = run.recording()
    first, at = recording.streams[0], token_of(recording, word)
    id = int(first.ids[at])

    def probability(*moved: ShuffleTokens) -> float:
        place = positions.place_in(moved[0], first, at) if moved else at
        read = run.under((*moved, HideToken(place))).recording()
        return float(_probabilities(read, place)[id])

    before = probability()
    moves = positions.other_orders(first, words.words(first, recording.text), at)
    others = [probability(each) for each in moves]
    after = others[positions.median(others)]
    numbers = {"word": word, "before": before, "after": after, "n": len(others)}
    return FindMeasure(before - after, numbers)


def cells(weights: np.ndarray) -> str:
    """Weights (row, column) as a pattern."""
    return "/".join("".join(map(str, row)) for row in np.rint(9 * weights).astype(int).tolist())


def repeats(run: Run, layer: int, head: int) -> FindMeasure:
    """The mean weight that a head gives, from each token of a repeated sentence, to the token after
    its earlier occurrence: its score as an induction head."""
    recording = run.recording()
    score = _induction(recording, layer, head)
    pattern = recording.attention[0].pattern[layer, head]
    return FindMeasure(score, {"weight": score, "cells": cells(pattern)})


def _induction(recording: Recording, layer: int, head: int) -> float:
    every = RecordingFacts(recording).named_heads(recording.attention[0].name)
    of = next(each for each in every if (each.layer, each.head) == (layer, head))
    return next(each.score for each in of.relations if each.name == head_naming.INDUCTION)


def learned(run: Run, layer: int, head: int, step: int) -> FindMeasure:
    """The growth of that weight from a step of the training to its end."""
    early = Run(f"{run.model}@{step}", run.text).recording()
    before, after = (_induction(each, layer, head) for each in (early, run.recording()))
    return FindMeasure(after - before, {"step": step, "before": before, "after": after})


def mirrored(run: Run, layer: int, head: int) -> FindMeasure:
    """The share of written tokens that attend most, between the two texts, to the token that they
    mirror."""
    recording = run.recording()
    cross, source = translation.cross_attention(recording), recording.streams[0]
    pattern = cross.pattern[layer, head]
    n = int((~source.special).sum())
    right = [int(pattern[at].argmax()) == n - 1 - at for at in range(n)]
    numbers = {"n_right": sum(right), "n": n, "cells": cells(pattern[:n, :n])}
    return FindMeasure(sum(right) / n, numbers)


def crossing(run: Run, pairs: Sequence[Sequence[str]]) -> FindMeasure:
    """The least weight of pairs (word that is written, word that is read), in the mean of all heads
    between the texts, where each of these is the largest of its row and the two lines cross, else
    0."""
    recording = run.recording()
    source, target = (each.tokens for each in recording.streams)
    mean = translation.cross_attention(recording).pattern.mean(axis=(0, 1))
    found = [(target.index(written) - 1, source.index(read)) for written, read in pairs]
    rows = [mean[row] for row, _ in found]
    is_found = all(int(row.argmax()) == key for row, (_, key) in zip(rows, found))
    (row, key), (other_row, other_key) = found
    crosses = (row - other_row) * (key - other_key) < 0
    least = min(float(row[key]) for row, (_, key) in zip(rows, found))
    links = [[int(each.argmax()), at] for at, each in enumerate(mean[: len(target) - 1])]
    numbers = {"above": list(source[:-1]), "below": list(target[1:]), "links": links}
    return FindMeasure(least if is_found and crosses else 0.0, numbers)


def resting(run: Run) -> FindMeasure:
    """The share of all attention that goes to the first token, in the mean of all heads and of the
    tokens from the third on; how many heads give it more than SINK, and the pattern of the one that
    gives it most."""
    pattern = run.recording().attention[0].pattern
    shares = pattern[:, :, 2:, 0].mean(axis=-1)
    at = np.unravel_index(shares.argmax(), shares.shape)
    numbers = {
        "share": float(shares.mean()),
        "n_rest": int((shares > SINK).sum()),
        "n_heads": shares.size,
        "cells": cells(pattern[at]),
    }
    return FindMeasure(float(shares.mean()), numbers)


def disagreement(run: Run, other: str) -> FindMeasure:
    """The number of tested heads that name the noun of a pronoun, the lesser of two models; 0 where
    they name the same, or one of them none."""
    labels, said = _voted_noun(run)
    _, said_there = _voted_noun(Run(other, run.text))
    if said is None or said_there is None or said[1] == said_there[1]:
        return FindMeasure(0.0, {})
    (pronoun, noun, n_votes), (_, noun_there, n_votes_there) = said, said_there
    rows = sorted({pronoun, noun, noun_there})
    lines = [[rows.index(at) for at in (pronoun, to)] for to in (noun, noun_there)]
    numbers = {
        "pronoun": labels[pronoun],
        "noun": labels[noun],
        "other_noun": labels[noun_there],
        "other": other,
        "words": [labels[at] for at in rows],
        "arcs": [[*line, at] for at, line in enumerate(lines)],
    }
    return FindMeasure(float(min(n_votes, n_votes_there)), numbers)


def votes(run: Run) -> FindMeasure:
    """The number of tested heads that vote on the clearest pronoun of a text; the pronoun and the
    nouns that they name in their order, and a line to each, those of most votes first."""
    recording = run.recording()
    vote = next(iter(RecordingFacts(recording).votes(recording.attention[0].name)), None)
    if vote is None:
        return FindMeasure(0.0, {})
    labels = words.words(recording.streams[0], recording.text).labels
    nouns = Counter(each.noun for each in vote.ballots)
    voted = sorted({vote.row, *nouns})
    lines = [
        [voted.index(vote.row), voted.index(noun), min(at, 1)]
        for at, (noun, _) in enumerate(nouns.most_common())
    ]
    numbers = {"words": [labels[at] for at in voted], "arcs": lines}
    return FindMeasure(float(len(vote.ballots)), numbers)


def reads(run: Run, layer: int, head: int, word: str) -> FindMeasure:
    """The weight that a head gives from the last token to a word of the text, its pieces together,
    where it gives no word more, else 0; and a line from the last word to it."""
    recording = run.recording()
    grouped = words.words(recording.streams[0], recording.text)
    row = np.add.reduceat(recording.attention[0].pattern[layer, head, -1], grouped.starts)
    at = grouped.labels.index(word)
    weight = float(row[at]) if int(row.argmax()) == at else 0.0
    return FindMeasure(weight, {"words": [word, grouped.labels[-1]], "arcs": [[1, 0, 0]]})


def _voted_noun(run: Run) -> tuple[list[str], tuple[int, int, int] | None]:
    """The words of a text, and of the clearest vote its pronoun and its noun by their places among
    these, with the number of votes; None where no noun is named."""
    recording = run.recording()
    grouped = words.words(recording.streams[0], recording.text)
    ordinary = [at for at, special in enumerate(grouped.special) if not special]
    vote = next(iter(RecordingFacts(recording).votes(recording.attention[0].name)), None)
    labels = [grouped.labels[at] for at in ordinary]
    if vote is None or vote.noun is None:
        return labels, None
    return labels, (ordinary.index(vote.row), ordinary.index(vote.noun), vote.n_votes)


MEASURES: Mapping[str, Callable[..., FindMeasure]] = {
    each.__name__: each
    for each in (
        *(lost_answer, turned_answer, orders, repeats, learned),
        *(mirrored, crossing, resting, disagreement, votes, reads),
    )
}


def measured(measure: str, model: str, text: str, told: Mapping[str, Any]) -> FindMeasure:
    """The result of a measure on a text in a model. told: its other arguments. Raises KeyError for
    a measure that is not there."""
    return MEASURES[measure](Run(model, text), **told)
