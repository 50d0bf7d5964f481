"""What heads do over many sentences: where their attention goes by distance, how often they show a
habit, and in which sentence a word looks most plainly at a far one, or at one of the other text.

Sentences have different words and lengths, so matrices are not laid on each other. What is averaged
has the same meaning in all of them: within one text the share of a word's attention that goes so
many tokens back or ahead; between two the share, while a word is written, that goes to words whose
place in the source, from 0 to 1, is so much less or more than its own in the target; and the score
of a habit. Each sentence counts once, however long it is.

Axis legend as in `models/recording.py`; place: one of a `Kind`'s.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import head_naming
from explorer.analysis.csv import Columns
from models.recording import Attention, Recording

# The sentences of a text that was pasted or loaded: its lines, or one column where it reads as a
# table.

MOST_LINES = 200
MOST_COLUMNS = 100  # of a table: nobody would choose among more
LONGEST_LINE = 1000  # characters of one that are read
# What stands between two cells, and whether quotation marks hold one together: not in all files
# with tabs.
SPELLINGS = (("\t", True), ("\t", False), (";", True), (",", True))


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, and its rows with a cell for each."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table_of(text: str) -> Table | None:
    """The table that a text reads as, with tabs, semicolons or commas between its cells: the first
    row names the columns, every other has as many cells, at least two. Of several the one with most
    columns; None where there is none."""
    found = [each for spelling in SPELLINGS if (each := _spelled(text, *spelling))]
    return max(found, key=lambda each: len(each.names), default=None)


def _spelled(text: str, between: str, quoted: bool) -> Table | None:
    file = io.StringIO(text.lstrip("\ufeff"), newline=None)
    try:
        if quoted:
            read = list(csv.reader(file, delimiter=between, strict=True))
        else:
            read = list(csv.reader(file, delimiter=between, quoting=csv.QUOTE_NONE))
    except csv.Error:
        return None
    rows = [tuple(row) for row in read if any(cell.strip() for cell in row)]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return None
    names = rows[0]
    if len(names) > MOST_COLUMNS:
        return None
    named = all(name.strip() for name in names) and len(set(names)) == len(names) > 1
    return Table(names, tuple(rows[1:])) if named else None


def columns_of(text: str) -> tuple[str, ...]:
    """The names of the columns where a text reads as a table; () where it does not."""
    table = table_of(text)
    return table.names if table else ()


def lines_of(text: str, column: str = "") -> tuple[str, ...]:
    """The sentences of a text, a line each, or the cells of a column of it: without empty ones,
    each at most `LONGEST_LINE` characters."""
    table = table_of(text) if column else None
    if table:
        at = table.names.index(column)
        lines = [row[at] for row in table.rows]
    else:
        lines = text.lstrip("\ufeff").splitlines()
    said = (" ".join(line.split())[:LONGEST_LINE] for line in lines)
    return tuple(line for line in said if line)


def widest(text: str) -> str:
    """The column that holds most text, most likely the sentences; "" where there is no table."""
    table = table_of(text)
    if table is None:
        return ""
    sizes = [sum(map(len, column)) for column in zip(*table.rows)]
    return table.names[sizes.index(max(sizes))]


def whole(text: str) -> str:
    """What is whole of a text that was cut at its end: the rows of a table, else the lines; all of
    it where it is one line."""
    kept, end, _ = text.rpartition("\n")
    if not end or table_of(kept):
        return kept if end else text
    # The cut may lie in a cell of several lines: back to where no quotation is open.
    lines, is_open, closed = kept.split("\n"), False, 0
    for at, line in enumerate(lines, 1):
        is_open ^= line.count('"') % 2 == 1
        closed = closed if is_open else at
    rows = "\n".join(lines[:closed])
    return rows if table_of(rows) else kept


REACH = 6  # tokens either way that have a place of their own
REACH_ACROSS = 5  # tenths of a text
FAR = 3  # tokens apart, from which on a look is a far one
SPECIAL = "special"


def _places(names: Sequence[str], behind: str, beyond: str) -> tuple[str, ...]:
    """Where attention goes, by the place of the key less that of the query."""
    return (SPECIAL, behind, *(name.replace("-", "−") for name in names), beyond)


@dataclass(frozen=True)
class Kind:
    """What is measured of an attention. look: what its largest weight between words is called."""

    places: tuple[str, ...]
    habits: tuple[str, ...]
    look: str

    @property
    def measures(self) -> tuple[str, ...]:
        """Everything that a head has a score for, the look first."""
        return self.look, *self.habits


WITHIN = Kind(
    _places(
        [f"{at:+d}" if at else "0" for at in range(-REACH, REACH + 1)], f"< −{REACH}", f"> +{REACH}"
    ),
    head_naming.NAMING,
    "far word",
)
ACROSS = Kind(
    _places(
        [f"{10 * at:+d} %" if at else "0" for at in range(-REACH_ACROSS, REACH_ACROSS + 1)],
        f"≤ −{10 * REACH_ACROSS + 5} %",
        f"≥ +{10 * REACH_ACROSS + 5} %",
    ),
    head_naming.NAMING_ACROSS,
    "source word",
)


@dataclass(frozen=True)
class AttentionExample:
    """A cell: a word that looks at another, and how much."""

    weight: float
    query: str = ""
    key: str = ""


@dataclass(frozen=True, eq=False)
class Sentence:
    """One sentence. shares (layer, head, place): of the words' attention on average over them, they
    sum to 1. scores: by habit (layer, head), NaN where no token could show it. largest (layer,
    head): the largest weight that a word gives a word at least `FAR` tokens away, or one of the
    source while it is written, and who looks at whom."""

    kind: Kind
    text: str
    n_tokens: int
    shares: np.ndarray
    scores: Mapping[str, np.ndarray]
    largest: np.ndarray
    looks: tuple[tuple[AttentionExample, ...], ...]


def read(recording: Recording) -> dict[str, Sentence | str]:
    """What the heads of every attention do on a text, by its name; of one that has no words the
    sentence that says so."""
    found: dict[str, Sentence | str] = {}
    for attention in recording.attention:
        try:
            found[attention.name] = measured(recording, attention)
        except ValueError as error:
            found[attention.name] = str(error)
    return found


def measured(recording: Recording, attention: Attention) -> Sentence:
    """What the heads of an attention do on a text. Raises ValueError where it has no words."""
    across = attention.query != attention.key
    kind = ACROSS if across else WITHIN
    queries, keys = recording.stream(attention.query), recording.stream(attention.key)
    words = np.flatnonzero(~np.array(keys.special))
    # Between two texts each row but the last is that of the word which it writes.
    rows = np.arange(len(queries.tokens) - 1) if across else words
    if not len(words) or not len(rows):
        raise ValueError("there are no words in it")
    shape = attention.pattern.shape[:2]
    scores = {habit: np.full(shape, np.nan) for habit in kind.habits}
    for head in head_naming.describe(recording, attention):
        for one in head.relations:
            if one.name in scores and one.n_queries:
                scores[one.name][head.layer, head.head] = one.score
    place = _across(len(rows), words, len(keys.tokens)) if across else _within(words, attention)
    near = np.zeros((len(rows), len(words)), bool)
    if not across:
        near = np.abs(rows[:, None] - words[None]) < FAR
    between = np.where(near, 0, attention.pattern[:, :, rows[:, None], words[None]])
    said = [queries.tokens[row + across] for row in rows]
    largest, looks = _largest(between, said, [keys.tokens[word] for word in words])
    shares = _shares(attention.pattern[:, :, rows], place, len(kind.places))
    return Sentence(kind, recording.text, len(keys.tokens), shares, scores, largest, looks)


def _within(words: np.ndarray, attention: Attention) -> np.ndarray:
    """The place of each key from each word of one text, (word, key), by its number."""
    n = attention.pattern.shape[-1]
    special = np.ones(n, bool)
    special[words] = False
    offset = np.arange(n)[None] - words[:, None]
    return _numbered(offset, REACH, special)


def _across(n_said: int, words: np.ndarray, n: int) -> np.ndarray:
    """The place of each key of a source of n tokens, whose `words` are text, from each word that is
    written, (word written, key), by its number."""
    special = np.ones(n, bool)
    special[words] = False
    text = (np.cumsum(~special) - 1) / max(1, len(words) - 1)
    said = np.arange(n_said) / max(1, n_said - 1)
    tenths = np.round(10 * (text[None] - said[:, None]), 9)  # a half is a half, for all rounding
    whole = np.sign(tenths) * np.floor(np.abs(tenths) + 0.5)
    return _numbered(whole.astype(int), REACH_ACROSS, special)


def _numbered(offset: np.ndarray, reach: int, special: np.ndarray) -> np.ndarray:
    place = np.clip(offset, -reach - 1, reach + 1) + reach + 2
    place[:, special] = 0
    return place


def _shares(rows: np.ndarray, place: np.ndarray, n_places: int) -> np.ndarray:
    """Where the attention of some rows (layer, head, row, key) goes, (layer, head, place)."""
    rows = rows.astype(np.float64)
    made = [np.where(place == at, rows, 0).sum(axis=(2, 3)) for at in range(n_places)]
    return np.stack(made, axis=-1) / rows.shape[2]


def _largest(
    between: np.ndarray, queries: Sequence[str], keys: Sequence[str]
) -> tuple[np.ndarray, tuple[tuple[AttentionExample, ...], ...]]:
    """The largest weight between words, (layer, head), and the words; 0 where none is left."""
    layers, heads = between.shape[:2]
    best = between.reshape(layers, heads, -1).argmax(axis=-1)
    largest = between.reshape(layers, heads, -1).max(axis=-1)

    def look(layer: int, head: int) -> AttentionExample:
        query, key = divmod(int(best[layer, head]), len(keys))
        weight = float(largest[layer, head])
        return (
            AttentionExample(weight, queries[query], keys[key]) if weight else AttentionExample(0.0)
        )

    looks = tuple(tuple(look(layer, head) for head in range(heads)) for layer in range(layers))
    return largest.astype(np.float64), looks


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
    """A habit's score, or the look's weight, over all sentences, (layer, head)."""
    return spread(np.stack([fires(one, name) for one in found]))


def fires(one: Sentence, name: str) -> np.ndarray:
    """How much each head does something in a sentence, (layer, head), by its kind's measures."""
    return one.largest if name == one.kind.look else one.scores[name]


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
        "place": [found[0].kind.places[at] for at in place],
        "mean share": made.mean.ravel(),
        "sd": made.sd.ravel(),
        "sentences": made.n.ravel(),
    }


def habit_columns(found: Sequence[Sentence]) -> Columns:
    """Every habit of every head as a table, with its spread."""
    rows: dict[str, list] = {
        name: [] for name in ("layer", "head", "habit", "mean score", "sd", "sentences")
    }
    for name in found[0].kind.measures:
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
    look = f"{found[0].kind.look.split()[0]} look"
    return {
        "sentence": [one.text for one, _ in told],
        "tokens": [one.n_tokens for one, _ in told],
        name: [value for _, value in told],
        look: [f"{each.query} → {each.key}" if each.weight else "" for each in looks],
        "its weight": [each.weight for each in looks],
    }
