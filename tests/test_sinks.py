"""Sinks: a head that rests on a token is not one that looks far."""

from __future__ import annotations

import numpy as np
import pytest
from test_head_naming import WORDS, recording_of
from tolerances import STORED

from explorer.analysis import head_naming
from models.recording import Attention

N = len(WORDS)
BEFORE = np.eye(N, k=-1)
BEFORE[0, 0] = 1


def reach_of(*patterns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    recording = recording_of(np.stack(patterns))
    reach, share = head_naming.reach(recording, recording.attention[0])
    return reach[0], share[0]


def test_a_head_that_rests_on_the_first_token_does_not_look_furthest() -> None:
    resting = 0.8 * np.eye(N)[[0] * N] + 0.2 * BEFORE
    three_back = np.eye(N)[np.maximum(np.arange(N) - 3, 1)]
    (near, far), (some, most) = reach_of(resting, three_back)
    assert near == pytest.approx(1, abs=STORED), "what it does not rest, it gives to its neighbour"
    assert far > 2 and some < 0.25 < most


def test_a_head_that_gives_the_text_nothing_has_no_reach() -> None:
    reach, share = reach_of(np.eye(N)[[N - 1] * N])
    assert np.isnan(reach[0]) and share[0] == 0


def test_a_head_that_rests_on_one_word_is_not_measured_by_it() -> None:
    word = np.eye(N)[[2] * N]
    reach, share = reach_of(0.5 * word + 0.5 * BEFORE)
    assert head_naming.sinks(word, np.ones((N, N), bool)).tolist() == [at == 2 for at in range(N)]
    assert reach[0] == pytest.approx(1, abs=STORED)


def test_quiet_keys_are_special_first_and_each_heads_own_sinks() -> None:
    recording = recording_of(np.stack([np.eye(N)[[3] * N], BEFORE]))
    found = head_naming.resting_keys(recording, recording.attention[0])[0]
    assert np.flatnonzero(found[0]).tolist() == [0, 3, N - 1]
    assert np.flatnonzero(found[1]).tolist() == [0, N - 1]


def test_sinks_of_many_heads_at_once_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    pattern = rng.dirichlet(np.full(9, 0.2), size=(3, 4, 9))
    pattern[1, 2, :, 4] += 3
    pattern /= pattern.sum(axis=-1, keepdims=True)
    allowed = np.ones((9, 9), bool)
    at_once = head_naming.sinks(pattern, allowed)
    assert at_once.shape == (3, 4, 9) and at_once[1, 2, 4]
    for layer, head in np.ndindex(3, 4):
        assert np.array_equal(
            at_once[layer, head], head_naming.sinks(pattern[layer, head], allowed)
        )


def test_a_text_of_one_or_two_tokens_tells_nothing_of_sinks() -> None:
    for n in (1, 2):
        recording = recording_of(np.full((1, n, n), 1 / n), WORDS[1 : 1 + n])
        attention: Attention = recording.attention[0]
        assert not head_naming.sinks(attention.pattern, attention.allowed).any()
        assert np.isnan(head_naming.reach(recording, attention)[0]).all()
