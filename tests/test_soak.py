"""The benchmarks that visit one server for long, at their smallest size: every page over the
server's own websocket by two at once, sessions that stay open, one beside another's long work."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks import background_load, load_clients, sessions, soak


@pytest.mark.slow
def test_every_page_answers_readers_at_once_who_stay_and_who_work_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_clients, "EVERY", 0.5)
    n = len(soak.PAGES)
    with soak.server(48) as (port, process):
        result = asyncio.run(soak.soak(port, process, n, readers=2, tokens=30))
        assert result.wrong == [] and len(result.seconds) == n
        assert len(result.memory) == soak.PARTS
        held = asyncio.run(
            sessions.hold(port, process, sessions=2, words=20, pages=1, seconds=0, first=())
        )
        assert held.wrong == [] and held.most >= held.there > 0
        address = f"http://127.0.0.1:{port}"
        load = asyncio.run(
            background_load.beside(address, process, "training", readers=1, seconds=6.0)
        )
        assert load.took and load.at(0.95) > 0
