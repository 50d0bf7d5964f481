"""The benchmark of many readers at its smallest size: a visit to every page over the server's own
websocket, two at once."""

from __future__ import annotations

import pytest

from benchmarks import soak


@pytest.mark.slow
def test_every_page_answers_two_readers_at_once() -> None:
    n = len(soak.PAGES)
    result = soak.run(n, readers=2, shelf=48, tokens=30)
    assert result.wrong == [] and len(result.seconds) == n
    assert len(result.memory) == soak.PARTS
