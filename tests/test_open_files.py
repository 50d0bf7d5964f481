"""Many readers where few files may be open, and the figures that tell an operator of it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import driver
import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from waiting import until
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from explorer.app.server.open_files import FILES_EACH

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="a process has no such limit there"),
]
SOFT, HARD, READERS, SCARCE = 128, 1024, 100, 320


def limited(soft: int, hard: int, **settings: str) -> Iterator[str]:
    """The app where so many files may be open: at first, and as far as a process may raise it."""
    port = driver.free_port()
    app = f"{sys.executable} -m streamlit run app.py --server.address 127.0.0.1"
    shell = f"ulimit -Sn {soft}; ulimit -Hn {hard}; exec {app} --server.port {port}"
    yield from driver.running(["bash", "-c", shell], port, **settings)


def figures(address: str) -> dict[str, int]:
    """What /metrics says, by name."""
    said = httpx2.get(f"{address}/metrics", timeout=60)
    assert said.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = said.text.splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    named = {re.sub(r"\{.*", "", name) for name in values}
    part = r"_(bucket|sum|count)$"  # of a histogram
    assert {re.sub(part, "", each) for each in named} == kinds.keys()
    assert set(kinds.values()) <= {"gauge", "counter", "histogram"}
    return {name: int(value) for name, value in values.items() if "_sum" not in name}


def enter(address: str, visits: ExitStack, after_page: bool = False) -> connect:
    """A reader's line that asks for a page, with the word that its first page gave to the
    browser."""
    word = httpx2.get(address).headers["set-cookie"].partition(";")[0] if after_page else ""
    line = connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "xsrf"],
        additional_headers={"Cookie": word} if word else {},
        max_size=None,
        max_queue=None,  # one who goes without reading on goes at once
        open_timeout=60,
        ping_interval=None,
    )
    visits.enter_context(line).send(BackMsg(app_heartbeat=True).SerializeToString())
    return line


def test_a_second_wave_of_readers_finds_files_enough() -> None:
    serving = limited(SOFT, HARD)
    address = next(serving)
    before = figures(address)
    assert (
        before["process_max_fds"] == HARD and before["headlight_readers_max"] == HARD // FILES_EACH
    )
    for _ in range(2):
        with ExitStack() as visits:
            lines = [enter(address, visits) for _ in range(READERS)]
            assert all(line.recv(timeout=60) for line in lines)
            # A line is one file; that of the request for the figures is another.
            assert figures(address)["process_open_fds"] <= before["process_open_fds"] + READERS + 5
        # A visit that ended keeps none, though its session waits for its reader for minutes.
        until(lambda: figures(address)["headlight_readers"] == 0)
        assert figures(address)["process_open_fds"] <= before["process_open_fds"] + 5
    # Nor does one that has had a run.
    with ExitStack() as visits:
        for _ in range(5):
            enter(address, visits).send(BackMsg(rerun_script={}).SerializeToString())
        until(lambda: figures(address)["headlight_texts_total"] >= 1)
    until(lambda: figures(address)["process_open_fds"] <= before["process_open_fds"] + 5)
    next(serving, None)


def test_where_files_are_few_the_last_are_told_and_counted_and_nobody_breaks() -> None:
    serving = limited(SCARCE, SCARCE)
    address = next(serving)
    seats = SCARCE // FILES_EACH
    assert figures(address)["headlight_readers_max"] == seats
    with ExitStack() as visits:
        lines = []
        for _ in range(seats):
            lines.append(line := enter(address, visits, after_page=True))
            line.send(BackMsg(rerun_script={}).SerializeToString())
        until(lambda: figures(address)["headlight_readers"] == seats)
        with pytest.raises(InvalidStatus):
            enter(address, visits)
        assert httpx2.get(address).status_code == 503
        assert figures(address)['headlight_refusals_total{why="full"}'] == 2
        assert all(line.recv(timeout=60) for line in lines)
    next(serving, None)


@pytest.mark.parametrize(
    ("allowed", "local", "other"),
    [("", 200, 404), ("203.0.113.0/24", 404, 200), ("127.0.0.1, 203.0.113.7", 200, 200)],
)
def test_figures_are_for_those_that_the_operator_names(
    allowed: str, local: int, other: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from explorer.app.server.routes import ROUTES
    from explorer.app.state.settings import settings

    monkeypatch.setenv("HEADLIGHT_METRICS", allowed)
    settings.cache_clear()
    try:
        app = Starlette(routes=ROUTES)
        for host, status in (("127.0.0.1", local), ("203.0.113.7", other), ("nobody", 404)):
            assert TestClient(app, client=(host, 1)).get("/metrics").status_code == status, host
            health = TestClient(app, client=(host, 1)).get("/healthz").status_code
            assert (health == 404) == (status == 404), host
    finally:
        monkeypatch.undo()
        settings.cache_clear()


def test_the_seconds_of_answers_are_counted_by_bounds() -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    from explorer.app.server.routes import ROUTES

    client = TestClient(Starlette(routes=ROUTES), client=("127.0.0.1", 1))

    def counted() -> list[int]:
        lines = client.get("/metrics").text.splitlines()
        of = 'headlight_answer_seconds_bucket{kind="panel",'
        return [int(line.rpartition(" ")[2]) for line in lines if line.startswith(of)]

    before = counted() or [0]
    assert client.get("/panel/none.json").status_code == 404
    after = counted()
    assert after == sorted(after), "each bound counts what is below it"
    assert after[-1] == before[-1] + 1
