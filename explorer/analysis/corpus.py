"""Attention of heads over many sentences: its distribution by distance, the scores of patterns
("habits"), and the sentence with the largest weight from a word to a far one, or to one of the
other text.

Sentences have different words and lengths, so matrices are not laid on each other. What is averaged
has the same meaning in all of them: within one text the share of a word's attention that goes so
many tokens back or ahead; between two the share, while a word is written, that goes to words whose
place in the source, from 0 to 1, is so much less or more than its own in the target; and the score
of a habit. Each sentence counts once, however long it is.

Axis legend as in `models/contract/recording.py`; place: one of a `Kind`'s.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import head_naming
from explorer.figures.csv import Columns, without_comments
from models.contract.recording import Attention, Recording

# The sentences of a text that was pasted or loaded: its lines, or one column where it reads as a
# table.

MOST_LINES = 200
MOST_COLUMNS = 100  # of a table: nobody would choose among more
LONGEST_LINE = 1000  # characters of one that are read
# What stands between two cells, and whether quotation marks hold one together: not in all files
# with tabs.
DIALECTS = (("\t", True), ("\t", False), (";", True), (",", True))


@dataclass(frozen=True)
class Table:
    """A table: the names of its columns, and its rows with a cell for each."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def table_of(text: str) -> Table | None:
    """The table that a text reads as, with tabs, semicolons or commas between its cells: the first
    row names the columns, every other has as many cells, at least two. Of several the one with most
    columns; None where there is none."""
    tables = [each for spelling in DIALECTS if (each := _parse_table(text, *spelling))]
    return max(tables, key=lambda each: len(each.names), default=None)


def _parse_table(text: str, delimiter: str, quoted: bool) -> Table | None:
    file = io.StringIO(without_comments(text), newline=None)
    try:
        if quoted:
            cells = list(csv.reader(file, delimiter=delimiter, strict=True))
        else:
            cells = list(csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    except csv.Error:
        return None
    rows = [tuple(row) for row in cells if any(cell.strip() for cell in row)]
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        return None
    names = rows[0]
    if len(names) > MOST_COLUMNS:
        return None
    has_names = all(name.strip() for name in names) and len(set(names)) == len(names) > 1
    return Table(names, tuple(rows[1:])) if has_names else None


def columns_of(text: str) -> tuple[str, ...]:
    """The names of the columns where a text reads as a table; () where it does not."""
    table = table_of(text)
    return table.names if table else ()


def lines_of(text: str, column: str = "", longest: int | None = LONGEST_LINE) -> tuple[str, ...]:
    """The sentences of a text, a line each, or the cells of a column of it: without empty ones,
    each at most `longest` characters; None for all of them."""
    table = table_of(text) if column else None
    if table:
        at = table.names.index(column)
        lines = [row[at] for row in table.rows]
    else:
        lines = text.lstrip("\ufeff").splitlines()
    sentences = (" ".join(line.split())[:longest] for line in lines)
    return tuple(line for line in sentences if line)


def widest_column(text: str) -> str:
    """The column that holds most text, most likely the sentences; "" where there is no table."""
    table = table_of(text)
    if table is None:
        return ""
    sizes = [sum(map(len, column)) for column in zip(*table.rows)]
    return table.names[sizes.index(max(sizes))]


def complete_rows(text: str) -> str:
    """Complete part of a text that was cut at its end: the rows of a table, else the lines; all of
    it where it is one line."""
    complete, end, _ = text.rpartition("\n")
    if not end or table_of(complete):
        return complete if end else text
    # The cut may lie in a cell of several lines: back to where no quotation is open.
    lines, is_open, last_closed = complete.split("\n"), False, 0
    for at, line in enumerate(lines, 1):
        is_open ^= line.count('"') % 2 == 1
        last_closed = last_closed if is_open else at
    rows = "\n".join(lines[:last_closed])
    return rows if table_of(rows) else complete


REACH = 6  # tokens either way that have a place of their own
REACH_ACROSS = 5  # tenths of a text
FAR = 3  # tokens apart, from which on a look is a far one
SPECIAL = "special"


def _places(names: Sequence[str], behind: str, beyond: str) -> tuple[str, ...]:
    """Names of the bins of attention, by the position of the key minus that of the query."""
    return (SPECIAL, behind, *(name.replace("-", "−") for name in names), beyond)


@dataclass(frozen=True)
class Kind:
    """Measures of an attention, within one text or across two. look: the name of the largest weight
    between words."""

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
    (*head_naming.NAMING, head_naming.PRONOUN),
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


def measure_recording(recording: Recording) -> dict[str, Sentence | str]:
    """Measure the heads of every attention on a text, by its name; one that has no words gets the
    sentence that says so."""
    sentences: dict[str, Sentence | str] = {}
    for attention in recording.attention:
        try:
            sentences[attention.name] = measure_attention(recording, attention)
        except ValueError as error:
            sentences[attention.name] = str(error)
    return sentences


def measure_attention(recording: Recording, attention: Attention) -> Sentence:
    """Measure the heads of an attention on a text. Raises ValueError where it has no words."""
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
    for head in head_naming.describe(recording, attention, with_pronouns=True):
        for relation in head.relations:
            if relation.name in scores and relation.n_queries:
                scores[relation.name][head.layer, head.head] = relation.score
    place = (
        _source_places(len(rows), words, len(keys.tokens))
        if across
        else _offset_places(words, attention)
    )
    near = np.zeros((len(rows), len(words)), bool)
    if not across:
        near = np.abs(rows[:, None] - words[None]) < FAR
    query_tokens = [queries.tokens[row + across] for row in rows]
    key_tokens = [keys.tokens[word] for word in words]
    # A layer at a time: a copy of all patterns is as large as the recording.
    by_layer = [
        _largest(np.where(near, 0, layer[:, rows[:, None], words]), query_tokens, key_tokens)
        for layer in attention.pattern
    ]
    largest, looks = np.stack([each for each, _ in by_layer]), tuple(each for _, each in by_layer)
    shares = np.stack(
        [_shares(layer[:, rows], place, len(kind.places)) for layer in attention.pattern]
    )
    return Sentence(kind, recording.text, len(keys.tokens), shares, scores, largest, looks)


def _offset_places(words: np.ndarray, attention: Attention) -> np.ndarray:
    """The place of each key from each word of one text, (word, key), by its number."""
    n = attention.pattern.shape[-1]
    special = np.ones(n, bool)
    special[words] = False
    offset = np.arange(n)[None] - words[:, None]
    return _clip_places(offset, REACH, special)


def _source_places(n_target: int, words: np.ndarray, n: int) -> np.ndarray:
    """The place of each key of a source of n tokens, whose `words` are text, from each word that is
    written, (word written, key), by its number."""
    special = np.ones(n, bool)
    special[words] = False
    source_place = (np.cumsum(~special) - 1) / max(1, len(words) - 1)
    target_place = np.arange(n_target) / max(1, n_target - 1)
    # A half is a half, for all rounding.
    tenths = np.round(10 * (source_place[None] - target_place[:, None]), 9)
    rounded = np.sign(tenths) * np.floor(np.abs(tenths) + 0.5)
    return _clip_places(rounded.astype(int), REACH_ACROSS, special)


def _clip_places(offset: np.ndarray, reach: int, special: np.ndarray) -> np.ndarray:
    place = np.clip(offset, -reach - 1, reach + 1) + reach + 2
    place[:, special] = 0
    return place


def _shares(rows: np.ndarray, place: np.ndarray, n_places: int) -> np.ndarray:
    """Share of attention at each place, (head, place), mean of rows (head, row, key)."""
    rows = rows.astype(np.float64)
    totals = [np.where(place == at, rows, 0).sum(axis=(1, 2)) for at in range(n_places)]
    return np.stack(totals, axis=-1) / rows.shape[1]


def _largest(
    between: np.ndarray, queries: Sequence[str], keys: Sequence[str]
) -> tuple[np.ndarray, tuple[AttentionExample, ...]]:
    """The largest weight between words of each head, (head), and the words; 0 where none is left.
    between (head, query, key)."""
    flat = between.reshape(len(between), -1)
    largest = flat.max(axis=-1).astype(np.float64)
    looks = []
    for at, weight in zip(flat.argmax(axis=-1).tolist(), largest.tolist()):
        query, key = divmod(at, len(keys))
        found = AttentionExample(weight, queries[query], keys[key])
        looks.append(found if weight else AttentionExample(0.0))
    return largest, tuple(looks)


@dataclass(frozen=True, eq=False)
class Spread:
    """A number over sentences: mean, standard deviation (of the sentences, n - 1; NaN of one) and
    n, how many had it. All of one shape."""

    mean: np.ndarray
    sd: np.ndarray
    n: np.ndarray


def spread(values: np.ndarray) -> Spread:
    """The spread over the first axis; NaN does not count."""
    finite = np.isfinite(values)
    n = finite.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(finite, values, 0).sum(axis=0) / n
        sd = np.sqrt((np.where(finite, values - mean, 0) ** 2).sum(axis=0) / (n - 1))
    return Spread(mean, np.where(n > 1, sd, np.nan), n)


def share_spread(sentences: Sequence[Sentence]) -> Spread:
    """Spread over the sentences of each head's attention by place, (layer, head, place)."""
    return spread(np.stack([one.shares for one in sentences]))


def habit_spread(sentences: Sequence[Sentence], name: str) -> Spread:
    """A habit's score, or the look's weight, over all sentences, (layer, head)."""
    return spread(np.stack([head_scores(one, name) for one in sentences]))


def head_scores(sentence: Sentence, name: str) -> np.ndarray:
    """Score of each head in a sentence, (layer, head), for one of its kind's measures."""
    return sentence.largest if name == sentence.kind.look else sentence.scores[name]


def strongest_sentences(
    sentences: Sequence[Sentence], name: str, layer_head: tuple[int, int]
) -> list[tuple[Sentence, float]]:
    """The sentences where a head does it most, first the one where it does it most."""
    scored = [(one, float(head_scores(one, name)[layer_head])) for one in sentences]
    scored = [each for each in scored if np.isfinite(each[1])]
    return sorted(scored, key=lambda each: -each[1])


def strongest_head(sentences: Sequence[Sentence], name: str) -> tuple[int, int]:
    """The head that does it most on average."""
    mean = np.nan_to_num(habit_spread(sentences, name).mean, nan=-1.0)
    layer, head = np.unravel_index(int(mean.argmax()), mean.shape)
    return int(layer), int(head)


def strongest_pattern(sentences: Sequence[Sentence], at: tuple[int, int] | None = None) -> str:
    """The pattern with the highest mean score, of the head (layer, head) where one is given.
    Attention sinks are left out: most heads rest on one."""

    def score(name: str) -> float:
        mean = np.nan_to_num(habit_spread(sentences, name).mean, nan=-1.0)
        return float(mean.max() if at is None else mean[at])

    names = sentences[0].kind.measures
    return max((name for name in names if name != head_naming.SINK), key=score)


def share_columns(sentences: Sequence[Sentence]) -> Columns:
    """Attention by place as a table: a row for each head and place."""
    statistics = share_spread(sentences)
    layer, head, place = (each.ravel() for each in np.indices(statistics.mean.shape))
    return {
        "layer": layer,
        "head": head,
        "place": [sentences[0].kind.places[at] for at in place],
        "mean share": statistics.mean.ravel(),
        "sd": statistics.sd.ravel(),
        "sentences": statistics.n.ravel(),
    }


def habit_columns(sentences: Sequence[Sentence]) -> Columns:
    """Every habit of every head as a table, with its spread."""
    rows: dict[str, list] = {
        name: [] for name in ("layer", "head", "pattern", "mean score", "sd", "sentences")
    }
    for name in sentences[0].kind.measures:
        statistics = habit_spread(sentences, name)
        for at in np.ndindex(statistics.mean.shape):
            values = (*at, name, statistics.mean[at], statistics.sd[at], statistics.n[at])
            for column, value in zip(rows.values(), values):
                column.append(value)
    return rows


def sentence_columns(
    sentences: Sequence[Sentence], name: str, layer_head: tuple[int, int]
) -> Columns:
    """The sentences where a head does it most as a table."""
    scored = strongest_sentences(sentences, name, layer_head)
    looks = [one.looks[layer_head[0]][layer_head[1]] for one, _ in scored]
    look = f"{sentences[0].kind.look.split()[0]} look"
    return {
        "sentence": [one.text for one, _ in scored],
        "tokens": [one.n_tokens for one, _ in scored],
        name: [value for _, value in scored],
        look: [f"{each.query} → {each.key}" if each.weight else "" for each in looks],
        "its weight": [each.weight for each in looks],
    }
