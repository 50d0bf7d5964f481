"""Memory that is used again: never by two at once, and never more of it than is said."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from models.network import buffer_pool, own_model
from models.runtime.cache import weight_of

BIG = 3 * 2**20  # numbers


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is kept, and there is room: the app's own cache may be full of other tests' texts."""
    monkeypatch.setattr(buffer_pool, "before_lending", [])
    buffer_pool.clear()
    yield
    buffer_pool.clear()


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_memory_is_lent_again_when_its_last_array_is_gone() -> None:
    lent = buffer_pool.acquire(BIG)
    view, at = lent[5:9].reshape(2, 2), address(lent)
    del lent
    assert buffer_pool.pooled_bytes() == 0, "a view still lies in it"
    other = buffer_pool.acquire(BIG)
    assert not np.may_share_memory(other, view)
    del view
    assert buffer_pool.pooled_bytes() > 0
    assert address(buffer_pool.acquire(BIG - 1000)) == at, "what is nearly as long fits"


def test_after_a_long_text_a_piece_is_ready_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer_pool, "READY_AFTER", 0.0)
    lent = buffer_pool.acquire(buffer_pool.READY_BYTES)
    until = time.monotonic() + 20
    while not buffer_pool.pooled_bytes() and time.monotonic() < until:
        time.sleep(0.01)
    assert buffer_pool.pooled_bytes() >= 4 * buffer_pool.READY_BYTES
    ready = buffer_pool.pooled_bytes()
    buffer_pool.preallocate(ready // 4)
    assert buffer_pool.pooled_bytes() == ready >= lent.nbytes, "one is enough"
    assert not np.may_share_memory(lent, buffer_pool.acquire(buffer_pool.READY_BYTES))


def test_room_for_all_and_not_much_more() -> None:
    """A cache counts what is used, and little more is kept."""
    for n in (1, 7, 1000, 2**18 - 1, 2**18, BIG, BIG + 1):
        lent = buffer_pool.acquire(n)
        most = 4 * n * (1 + 2 / buffer_pool.SIZE_STEPS)
        assert len(lent) == n and 4 * n <= weight_of(lent[:1]) < most + 2000  # with the objects
        lent[:] = 1
        del lent
        assert buffer_pool.pooled_bytes() <= most + 4
        buffer_pool.clear()


def test_little_is_kept_in_all_and_can_be_let_go() -> None:
    lent = [buffer_pool.acquire(BIG) for _ in range(2 * buffer_pool.MAX_POOL_BYTES // (4 * BIG))]
    lent.append(buffer_pool.acquire(buffer_pool.MAX_POOL_BYTES))  # by itself more than is ever kept
    lent.append(buffer_pool.acquire(10))
    lent.clear()
    assert 0 < buffer_pool.pooled_bytes() <= buffer_pool.MAX_POOL_BYTES
    buffer_pool.clear()
    assert buffer_pool.pooled_bytes() == 0


def test_a_large_piece_is_kept_while_large_ones_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffer_pool, "_large_until", 0.0)
    n = buffer_pool.MAX_POOL_BYTES // 4 + 1
    lent = buffer_pool.acquire(n)
    at = address(lent)
    del lent
    assert address(buffer_pool.acquire(n)) == at
    assert buffer_pool.MAX_POOL_BYTES < buffer_pool.pooled_bytes() < buffer_pool.LARGE_POOL_BYTES
    monkeypatch.setattr(buffer_pool, "_large_until", 0.0)
    buffer_pool.acquire(1)
    assert buffer_pool.pooled_bytes() <= buffer_pool.MAX_POOL_BYTES, "a minute later"


def test_a_recording_is_not_written_over() -> None:
    """Others come and go while one is looked at."""
    encoder = own_model.load("encoder")
    text = "The old man gave the hungry dog a piece of bread. " * 12
    first = own_model.record(encoder, text)
    before = first.attention[0].pattern.copy(), first.streams[0].resid.copy()
    for _ in range(3):
        again = own_model.record(encoder, text + "It ran. ")
    alike = own_model.record(encoder, text)
    assert np.array_equal(first.attention[0].pattern, before[0])
    assert np.array_equal(first.streams[0].resid, before[1])
    assert np.array_equal(alike.attention[0].scores, first.attention[0].scores)
    assert not np.may_share_memory(again.attention[0].pattern, alike.attention[0].pattern)
