"""Another order of the words: whether vectors know in which order the words came.

Axis legend: token, query, key, site as in `models/recording.py`; match: a token of one order and
the same token of the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.csv import Columns
from explorer.analysis.sites import states
from models.recording import Attention, Recording, Stream


def read_part(recording: Recording) -> str:
    """The part of a recording's text that the model read: all of it, unless tokens were dropped at
    its end."""
    end = int(recording.streams[0].spans[:, 1].max(initial=0)) if recording.dropped else 0
    return recording.text[:end] if end > 0 else recording.text


def turned_round(text: str) -> str:
    """The words of a text from last to first."""
    return " ".join(reversed(text.split()))


@dataclass(frozen=True)
class Matched:
    """Which token of one stream is which of another: `here` and `there` (match) are places, in the
    order of `here`. `alone_here` and `alone_there` are the places that have no partner."""

    here: np.ndarray
    there: np.ndarray
    alone_here: tuple[int, ...]
    alone_there: tuple[int, ...]


def matched(one: Stream, other: Stream, same_text: bool) -> Matched:
    """Tokens matched by word. Of one text read in two orders, a token by its id and its place in
    the text; of two texts by its id alone. Equal ones are matched in order: the first "the" with
    the first."""
    waiting: dict[tuple[int, ...], list[int]] = {}
    for place, name in enumerate(_names(other, same_text)):
        waiting.setdefault(name, []).append(place)
    pairs, alone = [], []
    for place, name in enumerate(_names(one, same_text)):
        pairs.append((place, waiting[name].pop(0))) if waiting.get(name) else alone.append(place)
    here, there = np.array(pairs, dtype=int).reshape(-1, 2).T
    return Matched(
        here,
        there,
        tuple(alone),
        tuple(sorted(place for left in waiting.values() for place in left)),
    )


def _names(stream: Stream, with_place: bool) -> list[tuple[int, ...]]:
    places = stream.spans.tolist() if with_place else [()] * len(stream.ids)
    return [(id, *place) for id, place in zip(stream.ids.tolist(), places)]


@dataclass(frozen=True)
class Agreement:
    """How far the vectors of the same words agree in two orders.

    site: names; by_site (site) the largest difference of any number of any matched token there, and
    size_by_site (site) the largest number. Of the last site: by_token (match) the largest
    difference, digits (match) and cosine (match)."""

    site: tuple[str, ...]
    by_site: np.ndarray
    size_by_site: np.ndarray
    by_token: np.ndarray
    digits: np.ndarray
    cosine: np.ndarray

    def along(self, sites: Sequence[str]) -> np.ndarray:
        """`by_site` in the order of other sites, NaN for one that is not there."""
        return np.array(
            [self.by_site[self.site.index(site)] if site in self.site else np.nan for site in sites]
        )

    def to_draw(self, sites: Sequence[str]) -> np.ndarray:
        """The same, but NaN for a difference of 0 too, which no log scale has."""
        found = self.along(sites)
        return np.where(found > 0, found, np.nan)

    @property
    def difference(self) -> float:
        """The largest difference at the last site; 0 where nothing is matched."""
        return float(self.by_token.max(initial=0))

    @property
    def common_digits(self) -> float:
        """To how many digits the vectors agree that agree least."""
        return float(self.digits.min(initial=np.inf))


def agreement(one: Stream, other: Stream, pairs: Matched) -> Agreement:
    """The vectors of matched tokens compared at every state. Both streams have the same sites, but
    for those of the positions."""
    sites = tuple(site for site in states(one) if site in other.sites)
    gaps, sizes, a, b = [], [], np.zeros((0, 1)), np.zeros((0, 1))
    for site in sites:
        a, b = (
            one.at(site)[pairs.here].astype(np.float64),
            other.at(site)[pairs.there].astype(np.float64),
        )
        gaps.append(np.abs(a - b).max(initial=0))
        sizes.append(np.abs(a).max(initial=0))
    by_token = np.abs(a - b).max(axis=1, initial=0)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return Agreement(
        sites,
        np.array(gaps),
        np.array(sizes),
        by_token,
        digits(by_token, np.abs(a).max(axis=1, initial=0)),
        (a * b).sum(axis=1) / np.maximum(lengths, 1e-30),
    )


def digits(difference: np.ndarray, size: np.ndarray) -> np.ndarray:
    """To how many decimal digits numbers agree: -log10(largest difference / largest number), no
    less than 0; infinite where nothing differs."""
    difference, size = np.asarray(difference, dtype=np.float64), np.asarray(size, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, -np.log10(difference / np.where(size > 0, size, 1)))


def maps(
    one: np.ndarray, other: np.ndarray, pairs: Matched
) -> tuple[np.ndarray, np.ndarray, float]:
    """A head's weights (query, key) in two orders, rows and columns of the second put in the order
    of the first, and the largest difference. Only matched tokens."""
    here, there = one[np.ix_(pairs.here, pairs.here)], other[np.ix_(pairs.there, pairs.there)]
    return here, there, float(np.abs(here.astype(np.float64) - there).max(initial=0))


def largest_gap(one: Attention, other: Attention, pairs: Matched) -> float:
    """The largest difference of any weight of any head in two orders, over matched tokens."""
    gaps = (
        maps(a, b, pairs)[2]
        for a, b in zip(
            one.pattern.reshape(-1, *one.allowed.shape),
            other.pattern.reshape(-1, *other.allowed.shape),
        )
    )
    return max(gaps, default=0.0)


@dataclass(frozen=True)
class Orders:
    """A text in two orders: the tokens of a stream as it is, `tokens`, and those `read` of the
    other text, how many of which were dropped; which token is which; and how far their vectors
    agree with positions and without."""

    tokens: tuple[str, ...]
    read: tuple[str, ...]
    dropped: int
    pairs: Matched
    with_: Agreement
    without: Agreement


def orders(
    recorded: Callable[[bool], tuple[Recording, Recording]], stream: str, same_text: bool
) -> Orders:
    """Two orders compared. `recorded` gives both recordings, without positions where it is asked
    for True; one pair at a time is held."""
    one, other = recorded(False)
    tokens, read, dropped, pairs = (
        one.stream(stream).tokens,
        other.streams[0].tokens,
        other.dropped,
        matched(one.stream(stream), other.stream(stream), same_text),
    )
    with_ = agreement(one.stream(stream), other.stream(stream), pairs)
    one, other = recorded(True)
    return Orders(
        tokens,
        read,
        dropped,
        pairs,
        with_,
        agreement(one.stream(stream), other.stream(stream), pairs),
    )


@dataclass(frozen=True)
class Maps:
    """A head's weights in two orders, (match, match), as `maps` has them; their largest difference
    `gap`, that in any of `n_heads` heads, and the largest weight."""

    here: np.ndarray
    there: np.ndarray
    gap: float
    largest: float
    n_heads: int
    top: float


def both_maps(one: Attention, other: Attention, layer: int, head: int, pairs: Matched) -> Maps:
    """One head in two orders."""
    here, there, gap = maps(one.pattern[layer, head], other.pattern[layer, head], pairs)
    return Maps(
        here,
        there,
        gap,
        largest_gap(one, other, pairs),
        one.pattern.shape[0] * one.pattern.shape[1],
        float(max(here.max(), there.max())),
    )


def order_columns(found: Orders) -> Columns:
    """The matched tokens and how far their last vectors agree, as named columns."""
    with_, without = found.with_, found.without
    return {
        "token": [found.tokens[place] for place in found.pairs.here],
        "place": found.pairs.here,
        "place in the other order": found.pairs.there,
        "with: largest difference": with_.by_token,
        "with: digits": with_.digits,
        "with: cosine": with_.cosine,
        "without: largest difference": without.by_token,
        "without: digits": without.digits,
        "without: cosine": without.cosine,
    }


def word_columns(found: Orders) -> Columns:
    """The matched tokens in short: where they moved, and to how many digits their last vectors
    agree, as named columns."""
    with_, without = found.with_, found.without
    return {
        "token": [found.tokens[place] for place in found.pairs.here],
        "place": [f"{here} → {there}" for here, there in zip(found.pairs.here, found.pairs.there)],
        "digits, without": [_short(each) for each in without.digits],
        "digits, with": [_short(each) for each in with_.digits],
        "cosine, with": with_.cosine,
    }


def _short(digits: float) -> str:
    return "every one" if np.isinf(digits) else f"{digits:.1f}"


def site_columns(with_: Agreement, without: Agreement) -> Columns:
    """The largest difference at every site as named columns."""
    return {
        "site": list(with_.site),
        "with: largest difference": with_.by_site,
        "with: largest number": with_.size_by_site,
        "without: largest difference": without.along(with_.site),
    }


def map_columns(here: np.ndarray, there: np.ndarray, tokens: Sequence[str]) -> Columns:
    """Both orders' weights, a row for each pair of tokens, as named columns."""
    n = len(tokens)
    query, key = np.divmod(np.arange(n * n), max(n, 1))
    return {
        "query": [f"{at} {tokens[at]}" for at in query],
        "key": [f"{at} {tokens[at]}" for at in key],
        "this order": here.ravel(),
        "the other order": there.ravel(),
    }
