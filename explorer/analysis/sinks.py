"""Where a head rests when it looks at nothing in particular, and how far it looks when that is left
out.

A sink is a token on which a head rests much of its attention whatever the row (Xiao et al., 2023):
the first token, a special one, a punctuation mark. Such a token says nothing of distance: a head
that rests on token 0 would seem to reach furthest of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis.luck import of_lots
from models.recording import Attention, Recording

# So much of a head's attention on average, and so many times what an even row gives.
SINK, SINK_LIFT = 0.2, 3
# A head rests on the key of highest lift, where that lift is so much; to tell, a row needs as many
# keys and a key as many rows.
RESTS, FEWEST = 0.3, 4
# Heads that rest on the first and special tokens agree on them where luck would have it so in fewer
# cases than this.
FLUKE = 0.003
# Share of an attention's heads from which a sink is the crowd's.
CROWD = 0.25
# A head that gives the other tokens less than this in all has no distance to speak of.
FAINT = 0.05


def sinks(pattern: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which keys are sinks, (..., key) bool: their mean weight over the rows is at least SINK and
    SINK_LIFT times an even row's.

    pattern (..., query, key) of one head or of many; allowed (query, key). Rows that leave no
    choice count for nothing."""
    choice = (allowed.sum(axis=1) > 1).astype(pattern.dtype)
    return _sinks(choice @ pattern, allowed)


def _sinks(received: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """The same by what the keys are given, (..., key), by the rows that have a choice."""
    choice = allowed.sum(axis=1) > 1
    if not choice.any():
        return np.zeros(received.shape, bool)
    even = allowed[choice] / allowed[choice].sum(axis=1, keepdims=True)
    mean = received / choice.sum()
    return (mean >= SINK) & (mean >= SINK_LIFT * even.mean(axis=0))


def quiet(recording: Recording, attention: Attention) -> np.ndarray:
    """The keys that a head rests on rather than looks at, (layer, head, key) bool: special tokens,
    the text's first token, on which models without special ones rest, and the head's own sinks."""
    resting = np.array(recording.stream(attention.key).special, dtype=bool)
    resting[:1] = True
    return _sinks(attention.received, attention.allowed) | resting


def crowded(recording: Recording, attention: Attention) -> np.ndarray:
    """The keys on which the heads rest together, (key) bool: special tokens, and those that are a
    sink of at least a quarter of the heads."""
    special = np.array(recording.stream(attention.key).special, dtype=bool)
    of_head = _sinks(attention.received, attention.allowed)
    return special | (of_head.mean(axis=(0, 1)) >= CROWD)


def telling(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """The cells from which a head's reach can be read, as rows (query) bool and keys (layer, head,
    key) bool: rows of text that have at least two keys of text to choose from, and keys that are
    not `quiet`."""
    keys = ~quiet(recording, attention)
    text = ~np.array(recording.stream(attention.key).special, dtype=bool)
    text[:1] = False
    rows = (attention.allowed & text).sum(axis=1) > 1
    return rows & ~np.array(recording.stream(attention.query).special, dtype=bool), keys


def reach(recording: Recording, attention: Attention) -> tuple[np.ndarray, np.ndarray]:
    """How far each head looks where it does not rest on a sink: the mean |query - key| in tokens,
    and the share of its attention that this is measured on, each (layer, head).

    Both over the cells that are `telling`, weighted by attention. NaN where the share is under
    FAINT, where there is no such row, and between two texts, which have no distance."""
    rows, keys = telling(recording, attention)
    none = np.full(attention.pattern.shape[:2], np.nan)
    if attention.query != attention.key or not rows.any():
        return none, none.copy()
    places, pattern = np.arange(len(rows)), attention.pattern
    apart = (np.abs(places[:, None] - places) * rows[:, None]).astype(pattern.dtype)
    others = (attention.allowed.sum(axis=1) > 1) & ~rows
    given = attention.received
    if others.any():
        given = given - pattern[:, :, others].sum(axis=2)
    weight = (given * keys).sum(-1)
    far = (np.einsum("lhqk,qk->lhk", pattern, apart) * keys).sum(-1)
    share = weight / rows.sum()
    told = share >= FAINT
    return np.where(told, far / np.where(told, weight, 1), np.nan), share


@dataclass(frozen=True)
class Resting:
    """Heads of an attention that rest on one key, and for how many that key is the first token or a
    special one.

    chance: the share of these among the different tokens of the text, which is how often a head
    that rests on any key would do so on one of them."""

    n_heads: int
    n_on_sinks: int
    chance: float

    @property
    def fluke(self) -> float:
        """The probability that at least as many heads rest on them by luck."""
        return float(of_lots([np.full(self.n_heads, self.chance)])[0, self.n_on_sinks])


def resting(recording: Recording, attention: Attention) -> Resting:
    """Which heads rest on one key, and whether on the first or a special token.

    A head's lift on a key is the mean over rows of (weight - even) / (1 - even), where an even row
    gives `even`; the row of the key itself, and in one text a key with fewer rows than FEWEST, are
    left out, so are rows with fewer keys."""
    stream, allowed = recording.stream(attention.key), attention.allowed
    even = 1 / np.maximum(allowed.sum(axis=1, keepdims=True), 1)
    counts = allowed & (allowed.sum(axis=1) >= FEWEST)[:, None]
    if attention.query == attention.key:
        counts = counts & ~np.eye(len(allowed), dtype=bool)
    told = counts.sum(axis=0) >= FEWEST
    if not told.any():
        return Resting(0, 0, 1.0)
    of_row = (counts.any(axis=1) / np.maximum(1 - even[:, 0], 1e-9)).astype(attention.pattern.dtype)
    given = of_row @ attention.pattern
    if attention.query == attention.key:
        given -= of_row * np.diagonal(attention.pattern, axis1=2, axis2=3)
    n_rows = np.maximum(counts.sum(axis=0), 1)
    lift = given / n_rows - (counts * of_row[:, None] * even).sum(axis=0) / n_rows
    lift[..., ~told] = -1
    sinking = np.array(stream.special, dtype=bool)
    sinking[:1] = True
    rests = lift.max(axis=-1) >= RESTS
    kinds = [token.casefold() for token in stream.tokens]
    different = {kinds[key] for key in np.flatnonzero(told)}
    of_them = {kinds[key] for key in np.flatnonzero(told & sinking)}
    return Resting(
        int(rests.sum()),
        int((rests & sinking[lift.argmax(axis=-1)]).sum()),
        len(of_them) / len(different),
    )
