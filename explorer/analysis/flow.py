"""Contribution of each attention to a token, key by key: the curves of the whole machine's picture.

An attention writes w = sum over heads and keys of p v W_O, and b_O. The share of one head and key
is the projection of its own p v W_O on w, (p v W_O) . w / |w|^2: it is under 0 for what stands
against the sum, and all shares of a token with b_O's sum to 1 (as in Kobayashi et al., 2020, who
take lengths). A head's shares sum to what Residual stream shows as its share.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from explorer.analysis import consistency, logit_lens, residual
from models.contract.recording import Attention, Recording, Stream
from models.contract.results import Lens, largest


@dataclass(frozen=True, eq=False)
class KeyShares:
    """Shares (head, query, key) of some queries of one layer, and b_O's (query); NaN where nothing
    is written."""

    shares: np.ndarray
    bias: np.ndarray

    def only(self, at: Sequence[int]) -> KeyShares:
        """The shares of some of the queries, by their places."""
        return KeyShares(self.shares[:, list(at)], self.bias[list(at)])


def key_shares(
    recording: Recording,
    attention: Attention,
    outputs: tuple[np.ndarray, np.ndarray],
    at: int,
    queries: Sequence[int],
) -> KeyShares:
    """The shares of one layer's heads and keys in what they write at some queries. outputs: W_O cut
    by head, (layer, head, d_head, d_model), and b_O (layer, d_model). at: which of the attention's
    layers."""
    w_o, bias = outputs[0][at], outputs[1][at].astype(np.float64)
    n_head, d_head, d_model = w_o.shape
    rows, joined = list(queries), w_o.reshape(-1, d_model)  # W_O as one matrix, (head x d_head, ..)
    pattern = consistency.layer_weights(recording, attention, at)[:, rows]  # (head, query, key)
    values = np.asarray(attention.v[at], np.float64)  # (head, key, d_head)
    brought = (pattern @ values).swapaxes(0, 1).reshape(len(rows), -1)  # (query, head x d_head)
    # W_O is the large part of the work: its products are made in the bits in which the model made
    # them.
    written = brought.astype(w_o.dtype) @ joined + bias
    square = (written**2).sum(-1)
    square = np.where(square > 0, square, np.nan)
    onto = (written.astype(w_o.dtype) @ joined.T).astype(np.float64)
    onto = onto.reshape(len(rows), n_head, d_head).swapaxes(0, 1)
    shares = pattern * (onto @ values.swapaxes(1, 2))
    return KeyShares(shares / square[:, None], written @ bias / square)


def weight_shares(attention: Attention, at: int, queries: Sequence[int]) -> KeyShares:
    """The same of an attention that does not show its values: weights, each head's a like part."""
    pattern = attention.pattern[at][:, list(queries)].astype(np.float64)
    return KeyShares(pattern / len(pattern), np.zeros(len(queries)))


def layer_numbers(attention: Attention) -> list[int]:
    """The model's own numbers of an attention's layers."""
    return attention.layers.tolist() or list(range(len(attention.pattern)))


def shown_tokens(weights: np.ndarray, chosen: int, most: int) -> list[int]:
    """The places of at most so many tokens, ascending: all of a short text, else the chosen one and
    those with the largest `weights`."""
    order = [chosen, *(at for at in np.argsort(-weights, kind="stable").tolist() if at != chosen)]
    return sorted(order[:most])


def in_layers(stream: Stream) -> dict[int, tuple[residual.SubLayer, ...]]:
    """The sub-layers of a stream by their layer, without what is added before the first."""
    sublayers = [each for each in residual.sublayers(stream) if each.layer >= 0]
    layers = sorted({each.layer for each in sublayers})
    return {layer: tuple(each for each in sublayers if each.layer == layer) for layer in layers}


def layer_sites(stream: Stream) -> dict[int, str]:
    """The site after each layer of a stream but the last, whose state is the final site's, by
    layer; that before the first at -1, where there is one."""
    sites = logit_lens.states(stream, sums=False)
    ends = {layer: sites[at] for layer, at in logit_lens.layer_ends(sites).items()}
    first = next(at for at, site in enumerate(sites) if site.partition(".")[0].isdecimal())
    return ({-1: sites[first - 1]} if first else {}) | ends


def middle_sites(stream: Stream) -> dict[int, str]:
    """The site of each layer of a stream between its attention and its FFN, by layer; none of a
    layer without both."""
    return {layer: parts[-2].after for layer, parts in in_layers(stream).items() if len(parts) > 1}


# The race of words through the vocabulary, by their places in it from layer to layer.

TELLING = 3  # layers that are told one by one and are wide in the end


def layers_that_matter(places: Sequence[int], cause: int | None = None) -> tuple[int, ...]:
    """The layers of the answer's way through the vocabulary that are told, ascending: that of its
    cause, the one from which on it stays first, and of those that bring it forward the ones with
    the largest factor between the places before and after. places: before the first layer and after
    each, from 1; cause: the layer of the head that the answer is said to come from."""
    at = np.asarray(places, float)
    factors = at[:-1] / at[1:]
    best = [each for each in np.argsort(-factors, kind="stable").tolist() if factors[each] > 1]
    behind = np.flatnonzero(at > 1)
    last = [int(behind[-1])] if len(behind) and behind[-1] < len(factors) else []
    causes = [] if cause is None else [cause]
    return tuple(sorted([*dict.fromkeys((*causes, *last, *best))][:TELLING]))


def race(probabilities: np.ndarray, spelled: Callable[[int], str], n: int) -> tuple[int, ...]:
    """The n likeliest words (id), of which a second spelling of one is left out. spelled: the
    spelling of an id."""
    found: dict[str, int] = {}
    for id in map(int, largest(probabilities, 4 * n)):
        found.setdefault(spelled(id).strip().casefold(), id)
    return tuple(found.values())[:n]


N_DIRECTIONS, CHANCE = 100, 0.99  # random directions, and the share of them that is surpassed


def random_cosines(width: int, nearest: Callable[[np.ndarray, int], tuple]) -> float:
    """The cosine with the nearest word that CHANCE of random directions stay below. nearest: as
    `Model.nearest`."""
    vectors = np.random.default_rng(0).normal(size=(N_DIRECTIONS, width)).astype(np.float32)
    return float(np.quantile(nearest(vectors, 1)[1][:, 0], CHANCE))


class WithNearestWords(Protocol):
    """A model that names the words nearest to vectors, and keeps what is made of it."""

    def nearest(self, vectors: np.ndarray, n: int, /) -> tuple[np.ndarray, np.ndarray]: ...

    def memo(self, key: Hashable, make: Callable[[], float], /) -> float: ...


def least_cosine(model: WithNearestWords, width: int) -> float:
    """From which cosine on with what a unit or a head of a model writes a word is told: the
    `random_cosines` of its vectors of that width. Raises ValueError and AttributeError for a model
    without such words."""
    make = lambda: random_cosines(width, model.nearest)
    return model.memo(("random cosines", width), make)


# What an FFN changes of a token's prediction: the words of the readout that rise after it.

LEAST_RISE = 0.01  # of a probability, for a word to be named


@dataclass(frozen=True)
class Rise:
    """A word whose probability a sub-layer raises most, before and after it. is_first: among all
    words, and not whole ones alone."""

    id: int
    before: float
    after: float
    is_first: bool


def largest_rise(lens: Lens, is_word: Callable[[int], bool], least: float) -> Rise | None:
    """The whole word that rises most between the first two sites of a lens on one token, whose
    words are all of the vocabulary; None where none rises by `least`. is_word: of an id."""
    before, after = (_by_id(lens, site) for site in (0, 1))
    rise = after - before
    order = np.argsort(-rise, kind="stable")
    order = order[: np.count_nonzero(rise >= least)].tolist()
    id = next((id for id in order if is_word(id)), None)
    if id is None:
        return None
    return Rise(id, float(before[id]), float(after[id]), id == order[0])


def _by_id(lens: Lens, site: int) -> np.ndarray:
    """The probabilities (id) at a site."""
    p = np.zeros(lens.top_ids.shape[-1])
    p[lens.top_ids[site, 0]] = np.exp(lens.top_logprobs[site, 0])
    return p
