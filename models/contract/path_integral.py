"""Integrated gradients (Sundararajan et al. 2017): the integral of a score's slopes along the way
from nothing, or from a baseline, to a text, over the parts into which the way is cut.

The slopes of a part must sum to the change of the score over it, which is known, and two rules must
find the same shares. So the part in which one of these fails by most is cut in two, again and
again: where the score bends the parts are short."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from models.contract.argument_validation import expect_ids, ids_of
from models.contract.recording import Recording
from models.contract.results import MASK_SPELLINGS

STEPS = 200  # parts of the way, at most
FIRST = 8  # parts before any is cut
MISSED = 0.01  # of the change of the score that the shares may miss
LEAST_MISSED = 0.001  # of the largest share, where the score hardly changes
CANCELLED = 10  # times as much all parts together may fail by: errors that cancel are some too

# Score at a place from 0 to 1, and its slope along the way by token, (token).
Slopes = Callable[[float], tuple[float, np.ndarray]]


def baseline_ids(
    model: Any, recording: Recording, stream: str, baseline: Any
) -> tuple[int, ...] | None:
    """The token ids from which the way to a stream begins: an id, or "[PAD]" or "[MASK]", in the
    place of every token that is text, or those of another text; None for embeddings of 0.

    Raises ValueError for a token that the model does not have, and for a text of another number of
    tokens; TypeError for what is no text."""
    if baseline is None:
        return None
    of, tokenizer = recording.stream(stream), model.tokenizer
    if baseline == "[PAD]" or isinstance(baseline, str) and baseline in MASK_SPELLINGS:
        name, baseline = baseline, tokenizer.pad if baseline == "[PAD]" else tokenizer.mask
        if baseline is None:
            raise ValueError(f"{model.card.name} has no {name}; give the id of a token")
    if isinstance(baseline, Integral):
        ids = tuple(int(baseline) if not own else int(id) for id, own in zip(of.ids, of.special))
    elif not isinstance(baseline, str):
        ids = ids_of(baseline)
    elif stream == recording.streams[0].name:
        ids = tuple(map(int, model.record(baseline).streams[0].ids))
    else:
        read = model.record(recording.text_or_ids, target=baseline)
        ids = tuple(map(int, read.stream(stream).ids))
    expect_ids(model.card, ids)
    if len(ids) != len(of.ids):
        raise ValueError(
            f"a baseline has as many tokens as the text, {len(of.ids)}, not {len(ids)}"
        )
    return ids


def shares_of(slopes: Slopes, steps: int = STEPS) -> tuple[np.ndarray, float]:
    """The integral of the slopes, (token), and the change of the score, which they sum to but for
    `allowed`, in as few parts as that takes, at most `steps`. Raises ValueError
    for less than one."""
    if steps < 1:
        raise ValueError("gradients are summed in 1 step or more")
    read: dict[float, tuple[float, np.ndarray]] = {}

    def at(place: float) -> tuple[float, np.ndarray]:
        if place not in read:
            score, slope = slopes(place)
            read[place] = score, np.where(np.isfinite(slope), slope, 0.0).astype(np.float64)
        return read[place]

    def part(start: float, end: float) -> tuple[float, float, float, np.ndarray]:
        """By what it fails, the largest first; where it lies; its shares by Simpson's rule."""
        (before, first), (_, middle), (after, last) = map(at, (start, (start + end) / 2, end))
        shares = (first + 4 * middle + last) * (end - start) / 6
        straight = (first + last) * (end - start) / 2
        missed = abs(float(shares.sum()) - (after - before))
        return -max(missed, float(np.abs(shares - straight).max())), start, end, shares

    ends = np.linspace(0.0, 1.0, min(steps, FIRST) + 1).tolist()
    parts = [part(*each) for each in zip(ends, ends[1:])]
    heapq.heapify(parts)
    whole = at(1.0)[0] - at(0.0)[0]
    while True:
        shares = sum((each[3] for each in parts), np.zeros_like(at(0.0)[1]))
        most, failed = allowed(shares, whole), -sum(each[0] for each in parts)
        is_done = abs(float(shares.sum()) - whole) <= most and failed <= CANCELLED * most
        if is_done or len(parts) >= steps:
            return shares, whole
        _, start, end, _ = heapq.heappop(parts)
        heapq.heappush(parts, part(start, (start + end) / 2))
        heapq.heappush(parts, part((start + end) / 2, end))


def allowed(shares: np.ndarray, whole: float) -> float:
    """By how much the sum of shares (token) may miss the change of the score, `whole`."""
    return max(MISSED * abs(whole), LEAST_MISSED * float(np.abs(shares).max(initial=0.0)))
