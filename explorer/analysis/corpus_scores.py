"""Scores of head patterns over texts of any number, each beside that of a uniform row.

What is kept of all texts are sums. A score is that of `head_naming`: the mean weight that queries
give to the keys of a relation, over the queries that could give them more or less; its mean and
standard deviation are over the texts that have such queries, each of which counts once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorer.analysis import head_naming
from explorer.analysis.head_naming import Cells
from explorer.figures.csv import Columns
from models.contract.recording import Recording
from models.contract.spelling import there_are


class _Sums:
    """Mean and spread of scores (layer, head) of one pattern, text by text (Welford 1962)."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.n, self.chance = np.zeros((2, *shape))
        self.mean, self.squares = np.zeros((2, *shape))

    def add(self, score: np.ndarray, chance: np.ndarray) -> None:
        """One text; NaN where it cannot show the pattern."""
        there = np.isfinite(score)
        self.n += there
        step = np.where(there, score - self.mean, 0.0)
        self.mean += step / np.maximum(self.n, 1)
        self.squares += step * np.where(there, score - self.mean, 0.0)
        self.chance += np.where(there, chance, 0.0)


class PatternScores:
    """Scores of every head of one attention, text by text. own: patterns of a caller, in the place
    of those that the app knows."""

    def __init__(self, attention: str, own: Mapping[str, Cells]) -> None:
        self.attention, self.own, self.n_texts = attention, own, 0
        self.sums: dict[str, _Sums] = {}

    def add(self, recording: Recording) -> None:
        """One text more. Raises ValueError for cells of another shape than its pattern."""
        (of,) = (each for each in recording.attention if each.name == self.attention)
        for pattern, score, chance in head_naming.pattern_scores(recording, of, self.own):
            self.sums.setdefault(pattern, _Sums(score.shape)).add(score, chance)
        self.n_texts += 1

    def columns(self, patterns: tuple[str, ...] | None = None) -> Columns:
        """A row for each pattern and head, of all patterns where None. Raises ValueError for one
        that no text shows, and without a text."""
        if not self.sums:
            raise ValueError("no text shows a pattern" if self.n_texts else "there are no texts")
        names = tuple(self.sums) if patterns is None else patterns
        if unknown := [each for each in names if each not in self.sums]:
            there = there_are(unknown[0], sorted(self.sums))
            raise ValueError(f"no text shows a pattern {unknown[0]!r}; {there}")
        tables = [_table(each, self.sums[each]) for each in names]
        return {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}


def _table(pattern: str, sums: _Sums) -> dict[str, np.ndarray]:
    """The rows of one pattern, a head each."""
    layer, head = map(np.asarray, np.indices(sums.n.shape))
    with np.errstate(invalid="ignore", divide="ignore"):
        score = np.where(sums.n > 0, sums.mean, np.nan)
        chance = sums.chance / sums.n
        sd = np.sqrt(sums.squares / (sums.n - 1))
        lift = (score - chance) / (1 - chance)
    columns = {
        "pattern": np.full(sums.n.shape, pattern, object),
        "layer": layer,
        "head": head,
        "score": score,
        "chance": chance,
        "lift": lift,
        "sd": np.where(sums.n > 1, sd, np.nan),
        "texts": sums.n.astype(int),
    }
    return {name: each.ravel() for name, each in columns.items()}
