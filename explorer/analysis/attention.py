"""One head's matrix: what its rows and columns are called, as a table, as a file, and the values a
colour scale shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import words
from explorer.analysis.csv import Columns
from explorer.analysis.sinks import sinks
from models.recording import Attention, Recording

UNITS = ("Tokens", "Words")
KEPT = ("All", "Quiet", "No specials", "No sinks")
SUMS = ("As they are", "Renormalised")
# a row that gives the shown tokens less is not blown up to sum to 1: that would show rounding
LEAST_LEFT = 1e-6
SCALES = ("Head", "Row", "Global")
TONES = ("Linear", "Log")
LOG_DECADES = 3
# the column with what of each row goes to tokens left out; keys have a number in front, so no key
# is called so
HIDDEN = "hidden"


@dataclass(frozen=True)
class Axes:
    """What the rows and columns of an attention are called.

    rows (query) and keys (key): labels, in pictures and files alike. special (key). said: None
    where rows and columns are one text; between two texts the token that each row produces and
    whether it is a special one, (query). row_places and key_places: their numbers, where some are
    left out."""

    rows: tuple[str, ...]
    keys: tuple[str, ...]
    special: tuple[bool, ...]
    said: tuple[tuple[str, bool], ...] | None = None
    row_places: tuple[int, ...] | None = None
    key_places: tuple[int, ...] | None = None

    @property
    def sides(self) -> tuple[str, str]:
        """What rows and columns are."""
        return ("query", "key") if self.said is None else ("target", "source")


def axes(recording: Recording, attention: Attention, after: str = "") -> Axes:
    """What rows and columns are called. Between two texts a row has the name of the token it
    produces, which is the one after the token it reads; `after` is the token that the last row
    produces, which the target does not hold."""
    queries, keys = recording.stream(attention.query), recording.stream(attention.key)
    special = tuple(map(bool, keys.special))
    if attention.query == attention.key:
        return Axes(queries.tokens, keys.tokens, special)
    ends = {token for token, is_special in zip(keys.tokens, special) if is_special}
    said = (*zip(queries.tokens[1:], map(bool, queries.special[1:])), (after, after in ends))
    return Axes(tuple(f"→ {token}" for token, _ in said), keys.tokens, special, said)


def groups(
    recording: Recording, attention: Attention, axes: Axes
) -> tuple[words.Groups, words.Groups]:
    """The words that rows and columns make. Between two texts a row is a part of the word that it
    helps to produce."""
    streams = recording.stream(attention.query), recording.stream(attention.key)
    query, key = (
        words.words(
            stream,
            recording.target
            if stream.name == "decoder" and len(recording.streams) > 1
            else recording.text,
        )
        for stream in streams
    )
    return (query if axes.said is None else words.produced(query, *axes.said[-1])), key


@dataclass(frozen=True, eq=False)
class Shown:
    """A head's matrix as it is looked at: between tokens or words, all of them or some left out.

    matrix and allowed (row, column); `axes` names them. hidden (row): the share of each row's
    attention that goes to what is left out, None where nothing is. row_tokens and key_tokens: the
    tokens (first, past the last) that a row and a column stand for. left_out: the names of the
    columns left out. `nothing_left`: what was asked for would have left nothing, and all is shown.
    `renormalised`: rows sum to 1 again."""

    matrix: np.ndarray
    allowed: np.ndarray
    axes: Axes
    hidden: np.ndarray | None
    row_tokens: tuple[tuple[int, int], ...]
    key_tokens: tuple[tuple[int, int], ...]
    left_out: tuple[str, ...] = ()
    nothing_left: bool = False
    renormalised: bool = False

    def row_of(self, token: int | None) -> int:
        """The row that a query token is a part of, -1 where there is none."""
        return _holding(self.row_tokens, token)

    def column_of(self, token: int | None) -> int:
        """The column that a key token is a part of, -1 where there is none."""
        return _holding(self.key_tokens, token)

    def cells(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The cells that pairs of tokens (query, key) are a part of, each once, without those left
        out."""
        found = ((self.row_of(query), self.column_of(key)) for query, key in pairs)
        return list(dict.fromkeys(cell for cell in found if min(cell) >= 0))

    def strongest_pair(self, matrix: np.ndarray, row: int, column: int) -> tuple[int, int]:
        """The tokens (query, key) of the largest weight within a cell. matrix (query, key) between
        tokens."""
        (top, bottom), (left, right) = self.row_tokens[row], self.key_tokens[column]
        query, key = np.unravel_index(
            matrix[top:bottom, left:right].argmax(), (bottom - top, right - left)
        )
        return top + int(query), left + int(key)


def _holding(tokens: tuple[tuple[int, int], ...], token: int | None) -> int:
    return next(
        (
            at
            for at, (first, end) in enumerate(tokens)
            if token is not None and first <= token < end
        ),
        -1,
    )


def shown(
    matrix: np.ndarray,
    allowed: np.ndarray,
    axes: Axes,
    grouped: tuple[words.Groups, words.Groups] | None,
    kept: str = KEPT[0],
    renormalise: bool = False,
    quiet: np.ndarray | None = None,
) -> Shown:
    """A head's matrix between tokens, or between the words that `grouped` makes, without what
    `kept` leaves out.

    matrix and allowed (query, key); kept one of KEPT: without what is `quiet` (key) bool, without
    special tokens, without the head's own sinks. Special tokens are left out as rows and as
    columns; sinks likewise, but between two texts as columns alone: there a sink is a token of the
    source. A word is a sink where one of its tokens is. Raises ValueError for another `kept`."""
    if kept not in KEPT:
        raise ValueError(f"nothing is called {kept!r}; there are {', '.join(KEPT)}")
    across = axes.said is not None
    keys = words.alone(axes.keys, axes.special) if grouped is None else grouped[1]
    rows = (words.alone(*zip(*axes.said)) if axes.said else keys) if grouped is None else grouped[0]
    gone = np.zeros(len(keys.labels), bool)
    if kept == "No sinks":
        # Of tokens: merged into words, fewer columns would raise what is even.
        gone = np.logical_or.reduceat(sinks(matrix, allowed), keys.starts)
    elif kept == "No specials":
        gone = np.array(keys.special)
    elif kept == "Quiet" and quiet is not None:
        gone = np.logical_or.reduceat(quiet, keys.starts)
    if grouped is not None:
        matrix, allowed = (
            words.merged(matrix, rows, keys),
            words.merged_allowed(allowed, rows, keys),
        )
    without = kept in ("No specials", "Quiet")
    gone_rows = gone if not across else np.array(rows.special) & without
    nothing_left = bool(gone.all() or gone_rows.all())
    if nothing_left:
        gone, gone_rows = gone & False, gone_rows & False
    at_rows, at_keys = np.flatnonzero(~gone_rows), np.flatnonzero(~gone)
    hidden, part, left_out = None, matrix, tuple[str, ...]()
    if gone.any() or gone_rows.any():
        hidden = matrix[np.ix_(at_rows, np.flatnonzero(gone))].astype(np.float64).sum(axis=1)
        part = matrix[np.ix_(at_rows, at_keys)]
        allowed = allowed[np.ix_(at_rows, at_keys)]
        left_out = tuple(f"{keys.labels[at]} ({at})" for at in np.flatnonzero(gone))
        if renormalise:
            total = part.astype(np.float64).sum(axis=1, keepdims=True)
            part = (part / np.where(total > LEAST_LEFT, total, np.inf)).astype(matrix.dtype)
    return Shown(
        part,
        allowed,
        _axes_of(rows, keys, at_rows.tolist(), at_keys.tolist(), across),
        hidden,
        _tokens(rows, at_rows.tolist()),
        _tokens(keys, at_keys.tolist()),
        left_out,
        nothing_left,
        renormalise and hidden is not None,
    )


def _axes_of(
    rows: words.Groups, keys: words.Groups, at_rows: list[int], at_keys: list[int], across: bool
) -> Axes:
    said = tuple((rows.labels[at], rows.special[at]) for at in at_rows)
    names = tuple(f"→ {label}" if across else label for label, _ in said)
    all_there = len(at_rows) == len(rows.labels) and len(at_keys) == len(keys.labels)
    places = (None, None) if all_there else (tuple(at_rows), tuple(at_keys))
    return Axes(
        names,
        tuple(keys.labels[at] for at in at_keys),
        tuple(keys.special[at] for at in at_keys),
        said if across else None,
        *places,
    )


def _tokens(grouped: words.Groups, at: list[int]) -> tuple[tuple[int, int], ...]:
    ends = (*grouped.starts[1:], grouped.n)
    return tuple((grouped.starts[one], ends[one]) for one in at)


def likeliest(logits: np.ndarray) -> int:
    """The id of the highest of a vocabulary's scores (id)."""
    return int(logits.argmax())


def blanked(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The values (query, key) with NaN where attending is not allowed, so that a figure leaves
    these cells out."""
    return values if allowed.all() else np.where(allowed, values, np.nan)


def shares(matrix: np.ndarray, scale: str) -> np.ndarray:
    """Weights as shares of what tops the scale, 0 to 1: each row's largest, the head's largest, or
    1 for all heads alike.

    matrix (query, key) of weights. Raises ValueError for a scale that does not exist.
    """
    if scale == "Global":
        return matrix
    if scale == "Head":
        top = np.full((len(matrix), 1), matrix.max())
    elif scale == "Row":
        top = matrix.max(axis=1, keepdims=True)
    else:
        raise ValueError(f"no scale is called {scale!r}; there are {', '.join(SCALES)}")
    return matrix / np.where(top > 0, top, 1)


def decades(share: np.ndarray) -> np.ndarray:
    """log10 of shares, with everything under a thousandth, zeros too, at -3."""
    return np.log10(np.maximum(share, 10.0**-LOG_DECADES))


@dataclass(frozen=True)
class Softmax:
    """How one weight comes from its score: weight = exponential / total, where exponential =
    e^score and total is the row's sum of them."""

    score: float
    exponential: float
    total: float
    weight: float
    log_total: float


def softmax_of(scores: np.ndarray, allowed: np.ndarray, key: int) -> Softmax:
    """The steps of the softmax for one key of one row, eq. 1 of the paper. scores (key) before the
    mask, allowed (key) bool."""
    masked = np.where(allowed, scores.astype(np.float64), -np.inf)
    shifted = np.exp(masked - masked.max())  # the weight does not overflow where e^score would
    with np.errstate(over="ignore"):
        powers = np.exp(masked)
    return Softmax(
        float(scores[key]),
        float(powers[key]),
        float(powers.sum()),
        float(shifted[key] / shifted.sum()),
        float(masked.max() + np.log(shifted.sum())),
    )


def strongest(
    matrix: np.ndarray, allowed: np.ndarray, query: int | None = None, key: int | None = None
) -> tuple[int, int]:
    """(query, key) of the largest weight, in the whole matrix, in one row or in one column.

    matrix (query, key) of weights, allowed (query, key). A row that leaves no choice is taken where
    it is asked for or there is no other."""
    if key is not None:
        return int(matrix[:, key].argmax()), key
    if query is None:
        top = np.where(allowed.sum(axis=1) > 1, matrix.max(axis=1), -1)
        query = int(top.argmax())
    return query, int(matrix[query].argmax())


def numbered(tokens: Sequence[str], places: Sequence[int] | None = None) -> list[str]:
    """Tokens with their places in front, so that two equal words stay two: "3 the"."""
    return [
        f"{place} {token}"
        for place, token in zip(range(len(tokens)) if places is None else places, tokens)
    ]


def columns(matrix: np.ndarray, axes: Axes, hidden: np.ndarray | None = None) -> Columns:
    """The matrix as named columns: the rows' names, what of each row is `hidden` (row) where
    something is, then a column for each key."""
    beside = {} if hidden is None else {HIDDEN: hidden}
    return {
        _corner(axes): numbered(axes.rows, axes.row_places),
        **beside,
        **dict(zip(numbered(axes.keys, axes.key_places), matrix.T)),
    }


def _corner(axes: Axes) -> str:
    return " \\ ".join(axes.sides)
