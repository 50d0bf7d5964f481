"""What heads do over many sentences: where their attention goes by distance, how often they show a
habit, and in which sentence a word looks most plainly at a far one.

Sentences have different words and lengths, so matrices are not laid on each other. What is averaged
has the same meaning in all of them: the share of a word's attention that goes so many tokens back
or ahead, and the score of a habit. Each sentence counts once, however long it is.

Axis legend as in `models/recording.py`; place: one of `PLACES`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import heads as naming
from explorer.analysis.csv import Columns
from models.recording import Attention, Recording

MOST_LINES = 200
LONGEST_LINE = 1000  # characters of one that are read
REACH = 6  # tokens either way that have a place of their own
FAR = 3  # tokens apart, from which on a look is a far one
SPECIAL, BEHIND, BEYOND = "special", f"< −{REACH}", f"> +{REACH}"
# Where a word's attention goes, by the place of the key less that of the query.
PLACES = (
    SPECIAL,
    BEHIND,
    *(f"{at:+d}".replace("-", "−") for at in range(-REACH, REACH + 1)),
    BEYOND,
)
HABITS = ("previous", "next", "self", "same word", "induction", naming.SINK)
FAR_WORD = "far word"


@dataclass(frozen=True)
class Look:
    """A cell: a word that looks at another, and how much."""

    weight: float
    query: str = ""
    key: str = ""


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence. shares (layer, head, place): of the words' attention on average over them, they
    sum to 1. scores: by habit (layer, head), NaN where no token could show it. far (layer, head):
    the largest weight that a word gives a word at least `FAR` tokens away, and who looks at
    whom."""

    text: str
    n_tokens: int
    shares: np.ndarray
    scores: Mapping[str, np.ndarray]
    far: np.ndarray
    looks: tuple[tuple[Look, ...], ...]


def lines_of(text: str, column: str = "") -> tuple[str, ...]:
    """The sentences of what was pasted, a line each, or a column of it as CSV: without empty ones,
    each at most `LONGEST_LINE` characters, at most `MOST_LINES`."""
    if column:
        rows = csv.DictReader(io.StringIO(text.lstrip("\ufeff")))
        lines = [row.get(column) or "" for row in rows]
    else:
        lines = text.lstrip("\ufeff").splitlines()
    said = (" ".join(line.split())[:LONGEST_LINE] for line in lines)
    return tuple(line for line in said if line)[:MOST_LINES]


def columns_of(text: str) -> tuple[str, ...]:
    """The names of the columns where what was pasted reads as CSV with a header: every row has as
    many cells, at least two; () where it does not."""
    try:
        rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff")), strict=True))
    except csv.Error:
        return ()
    rows = [row for row in rows if row]
    named = rows and len(rows) > 1 and len(set(rows[0])) == len(rows[0]) > 1
    names = tuple(rows[0]) if named else ()
    even = all(len(row) == len(names) for row in rows)
    return names if even and all(name.strip() for name in names) else ()


def measured(recording: Recording, attention: Attention) -> Sentence:
    """What the heads of an attention within one text do on it. Raises ValueError where it has no
    words, and for an attention between two texts."""
    if attention.query != attention.key:
        raise ValueError("between two texts there is no distance to average over")
    stream = recording.stream(attention.key)
    words = np.flatnonzero(~stream.special)
    if not len(words):
        raise ValueError("there are no words in it")
    heads = naming.describe(recording, attention)
    shape = attention.pattern.shape[:2]
    scores = {habit: np.full(shape, np.nan) for habit in HABITS}
    for head in heads:
        for one in head.relations:
            if one.name in scores and one.n_queries:
                scores[one.name][head.layer, head.head] = one.score
    far, looks = _far(attention.pattern, words, stream.tokens)
    return Sentence(
        recording.text,
        len(stream.tokens),
        _shares(attention.pattern, words),
        scores,
        far,
        looks,
    )


def _shares(pattern: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Where the words' attention goes, (layer, head, place)."""
    n = pattern.shape[-1]
    special = np.ones(n, bool)
    special[words] = False
    offset = np.arange(n)[None] - words[:, None]
    place = np.clip(offset, -REACH - 1, REACH + 1) + REACH + 2
    place[:, special] = 0
    rows = pattern[:, :, words].astype(np.float64)
    made = [np.where(place == at, rows, 0).sum(axis=(2, 3)) for at in range(len(PLACES))]
    return np.stack(made, axis=-1) / len(words)


def _far(
    pattern: np.ndarray, words: np.ndarray, tokens: Sequence[str]
) -> tuple[np.ndarray, tuple[tuple[Look, ...], ...]]:
    """The largest weight between words far apart, (layer, head), and the words; 0 where none
    are."""
    near = np.abs(words[:, None] - words[None]) < FAR
    between = np.where(near, 0, pattern[:, :, words[:, None], words[None]])
    layers, heads, n, _ = between.shape
    best = between.reshape(layers, heads, -1).argmax(axis=-1)
    far = between.reshape(layers, heads, -1).max(axis=-1)

    def look(layer: int, head: int) -> Look:
        query, key = divmod(int(best[layer, head]), n)
        weight = float(far[layer, head])
        if not weight:
            return Look(0.0)
        return Look(weight, tokens[words[query]], tokens[words[key]])

    looks = tuple(tuple(look(layer, head) for head in range(heads)) for layer in range(layers))
    return far.astype(np.float64), looks


@dataclass(frozen=True, eq=False)
class Spread:
    """A number over sentences: mean, standard deviation (of the sentences, n - 1; NaN of one) and
    n, how many had it. All of one shape."""

    mean: np.ndarray
    sd: np.ndarray
    n: np.ndarray


def spread(values: np.ndarray) -> Spread:
    """The spread over the first axis; NaN does not count."""
    has = np.isfinite(values)
    n = has.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(has, values, 0).sum(axis=0) / n
        sd = np.sqrt((np.where(has, values - mean, 0) ** 2).sum(axis=0) / (n - 1))
    return Spread(mean, np.where(n > 1, sd, np.nan), n)


def shares(found: Sequence[Sentence]) -> Spread:
    """Where the attention of each head goes over all sentences, (layer, head, place)."""
    return spread(np.stack([one.shares for one in found]))


def habit(found: Sequence[Sentence], name: str) -> Spread:
    """A habit's score, or `FAR_WORD`, over all sentences, (layer, head)."""
    return spread(np.stack([fires(one, name) for one in found]))


def fires(one: Sentence, name: str) -> np.ndarray:
    """How much each head does something in a sentence, (layer, head): one of HABITS, or
    FAR_WORD."""
    return one.far if name == FAR_WORD else one.scores[name]


def strongest(
    found: Sequence[Sentence], name: str, at: tuple[int, int], most: int | None = None
) -> list[tuple[Sentence, float]]:
    """The sentences where a head does it most, first the one where it does it most."""
    told = [(one, float(fires(one, name)[at])) for one in found]
    told = [each for each in told if np.isfinite(each[1])]
    return sorted(told, key=lambda each: -each[1])[:most]


def most_even(found: Sequence[Sentence], name: str) -> tuple[int, int]:
    """The head that does it most on average."""
    mean = np.nan_to_num(habit(found, name).mean, nan=-1.0)
    layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
    return int(layer), int(head)


def share_columns(found: Sequence[Sentence]) -> Columns:
    """Where attention goes as a table: a row for each head and place."""
    made = shares(found)
    layer, head, place = (each.ravel() for each in np.indices(made.mean.shape))
    return {
        "layer": layer,
        "head": head,
        "place": [PLACES[at] for at in place],
        "mean share": made.mean.ravel(),
        "sd": made.sd.ravel(),
        "sentences": made.n.ravel(),
    }


def habit_columns(found: Sequence[Sentence]) -> Columns:
    """Every habit of every head as a table, with its spread."""
    rows: dict[str, list] = {
        name: [] for name in ("layer", "head", "habit", "mean score", "sd", "sentences")
    }
    for name in (*HABITS, FAR_WORD):
        made = habit(found, name)
        for at in np.ndindex(made.mean.shape):
            values = (*at, name, made.mean[at], made.sd[at], made.n[at])
            for column, value in zip(rows.values(), values):
                column.append(value)
    return rows


def sentence_columns(
    found: Sequence[Sentence], name: str, at: tuple[int, int], most: int | None = None
) -> Columns:
    """The sentences where a head does it most as a table."""
    told = strongest(found, name, at, most)
    looks = [one.looks[at[0]][at[1]] for one, _ in told]
    return {
        "sentence": [one.text for one, _ in told],
        "tokens": [one.n_tokens for one, _ in told],
        name: [value for _, value in told],
        "far look": [f"{look.query} → {look.key}" if look.weight else "" for look in looks],
        "its weight": [look.weight for look in looks],
    }
