"""Named relations of keys to queries, the vocabulary for describing a head's pattern.

Pure functions of the tokens, (query, key) bool, True where the relation holds: `of` within one
text, `across` from a target to its source. A head's score for a relation is the mean, over the
queries that have such a key at all, of the attention they give to those keys."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from models.contract.cancellation import expect_wanted

CHUNK_SIZE = 1 << 16  # weights, so that what is made of them stays in the processor's cache
FEW = 32  # one cell in so many: sooner picked than all multiplied
# How the tokenizer shows a token of white space alone.
BLANK_TOKENS = frozenset("␣⏎␍⇥")
RELATIONS = (
    "previous",
    "next",
    "self",
    "sink",
    "first",
    "separator",
    "special",
    "same word",
    "induction",
)
# Of a text's length: how far two relative places may be apart and still count as the same.
DIAGONAL_TOLERANCE = 0.1


def text_relations(
    tokens: Sequence[str], special: Sequence[bool] | np.ndarray
) -> dict[str, np.ndarray]:
    """Every relation's mask for a text of n tokens, each (n, n) bool.

    `tokens` are compared without case ("The" is "the"), and `special` says which are no text.
    previous, next: one position before, after. sink: position 0 or a special token, the query
    itself excepted. first: position 0.
    separator: a punctuation mark or a special token, position 0
    and the query itself excepted. special: a special token, the query itself excepted. same word:
    another position with the same word. induction: the position after an earlier one with the same
    word, the query itself excepted (Olsson et al., 2022). Special tokens, punctuation and bare
    spaces are no words: they have no same word and induce nothing.
    """
    n = len(tokens)
    special = np.asarray(special, dtype=bool)
    off_diagonal = ~np.eye(n, dtype=bool)
    separators = special | _punctuation(tokens)
    first = np.arange(n) == 0
    return {
        **positional_relations(special),
        "first": first & ~first[:, None],
        "separator": separators & ~first & off_diagonal,
        "special": special & off_diagonal,
        **repetition_relations(tokens, special),
    }


def positional_relations(special: Sequence[bool] | np.ndarray) -> dict[str, np.ndarray]:
    """Those masks of `of` that say nothing of words: previous, next, self and sink."""
    n, sinks = len(special), np.array(special, dtype=bool)
    sinks[:1] = True
    return {
        "previous": np.eye(n, k=-1, dtype=bool),
        "next": np.eye(n, k=1, dtype=bool),
        "self": np.eye(n, dtype=bool),
        "sink": sinks & ~np.eye(n, dtype=bool),
    }


def repetition_relations(
    tokens: Sequence[str], special: Sequence[bool] | np.ndarray
) -> dict[str, np.ndarray]:
    """Those masks of `of` that a repeated word makes: same word and induction."""
    codes: dict[str, int] = {}
    code = np.array([codes.setdefault(token.casefold(), len(codes)) for token in tokens], dtype=int)
    is_word = ~(np.asarray(special, dtype=bool) | _punctuation(tokens))
    is_word &= np.array([token not in BLANK_TOKENS for token in tokens], dtype=bool)
    # What is no word has a number of its own.
    code = np.where(is_word, code, -1 - np.arange(len(code)))
    same = code[:, None] == code
    np.fill_diagonal(same, False)
    induction = np.zeros_like(same)
    induction[:, 1:] = np.tril(same[:, :-1], -2)
    return {"same word": same, "induction": induction}


def cross_relations(
    n_queries: int, tokens: Sequence[str], special: Sequence[bool] | np.ndarray
) -> dict[str, np.ndarray]:
    """Every relation's mask between a target and the source it is written from, each (n_queries, n)
    bool, for a source of n `tokens`.

    Query i is where a decoder produces token i + 1 of its target; the last query produces none of
    it, only what comes after.
    diagonal: a token of the text whose relative place (0 the first, 1 the last) is that of the
    produced token, give or take `NEAR` or half a token, whichever is more; the last query has none.
    anti-diagonal: the same counted from the source's end. first: position 0.
    end: a special token. separator: a punctuation mark or a special token.
    """
    special = np.asarray(special, dtype=bool)
    shape = (n_queries, len(tokens))
    is_first = np.arange(len(tokens)) == 0
    marks = _punctuation(tokens)
    n_target, n_source = n_queries - 1, int((~special).sum())
    target_place = np.arange(n_queries)[:, None] / max(1, n_target - 1)
    source_place = (np.cumsum(~special) - 1)[None, :] / max(1, n_source - 1)
    tolerance = max(DIAGONAL_TOLERANCE, 0.5 / max(1, n_source - 1)) + 1e-9
    valid = (np.arange(n_queries)[:, None] < n_target) & ~special[None, :]
    return {
        "diagonal": valid & (np.abs(target_place - source_place) <= tolerance),
        "anti-diagonal": valid & (np.abs(1 - target_place - source_place) <= tolerance),
        "sink": np.broadcast_to(is_first | special, shape),
        "first": np.broadcast_to(is_first & ~special, shape),
        "end": np.broadcast_to(special, shape),
        "separator": np.broadcast_to(special | marks, shape),
    }


@lru_cache(maxsize=50_000)  # every word of a text is asked for several times
def is_punctuation(token: str) -> bool:
    """True where every character is punctuation."""
    return all(unicodedata.category(letter).startswith("P") for letter in token)


def _punctuation(tokens: Sequence[str]) -> np.ndarray:
    """Mask (token), bool: True for punctuation."""
    return np.array([is_punctuation(token) for token in tokens], dtype=bool)


def score(pattern: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Mean attention (layer, head) given to the masked keys by the queries that have one; NaN where
    no query has.

    pattern (layer, head, query, key); mask (query, key) bool.
    """
    if not mask.any():
        return np.full(pattern.shape[:2], np.nan)
    return mass(pattern, mask).mean(axis=-1)


def mass(pattern: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Attention weight on masked keys, summed over keys, (layer, head, query with a masked key)."""
    cells = np.flatnonzero(mask)
    rows = cells // mask.shape[1]
    row_starts = np.ones(len(rows), dtype=bool)
    row_starts[1:] = rows[1:] != rows[:-1]
    few = 0 < len(cells) * FEW <= mask.size  # as in a long text: a diagonal, a column, a few words
    if few or row_starts.all():
        cell_values = pattern.reshape(*pattern.shape[:2], -1)[:, :, cells]
        return (
            np.add.reduceat(cell_values, np.flatnonzero(row_starts), axis=-1)
            if few
            else cell_values
        )
    row_sums = np.einsum("lhqk,qk->lhq", pattern, mask.astype(pattern.dtype))
    return row_sums[:, :, rows[row_starts]]


def entropy(pattern: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """Mean over queries of the row's entropy as a share of the uniform row's (0 one key, 1 even),
    (layer, head).

    Rows with a single permitted key have no choice and are left out; NaN where every row is so.
    """
    n_allowed = (
        np.full(pattern.shape[2], pattern.shape[3]) if allowed is None else allowed.sum(axis=1)
    )
    rows = n_allowed > 1
    if not rows.any():
        return np.full(pattern.shape[:2], np.nan)
    flat = pattern.reshape(-1, pattern.shape[3])
    nats = np.empty(len(flat), pattern.dtype)
    step = max(1, CHUNK_SIZE // flat.shape[1])
    buffer = np.empty((step, flat.shape[1]), pattern.dtype)
    for start in range(0, len(flat), step):
        expect_wanted()
        block = flat[start : start + step]
        logs = np.maximum(block, np.finfo(pattern.dtype).tiny, out=buffer[: len(block)])
        np.einsum("qk,qk->q", block, np.log(logs, out=logs), out=nats[start : start + step])
    nats = -nats.reshape(pattern.shape[:3])
    return (nats[:, :, rows] / np.log(n_allowed[rows])).mean(axis=-1)
