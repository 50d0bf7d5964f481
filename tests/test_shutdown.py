"""A server that is told to stop while readers are there: it ends by itself, with nothing said to a
class that is not over."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import driver
import httpx2
import pytest
from driver import ROOT, free_port
from test_class_routes import sent
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[tuple[subprocess.Popen, str]]:
    """The app's process, up, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "explorer.cli", "app", "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--address", "127.0.0.1"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    assert driver.answers(address)
    yield process, address
    process.kill()
    process.wait(10)


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_while_a_student_listens_and_a_reader_is_there(
    server: tuple[subprocess.Popen, str], told: signal.Signals
) -> None:
    process, address = server
    heard: list[str] = []
    listening = threading.Event()
    with httpx2.Client(base_url=address, timeout=30) as ask:
        made = sent(ask, "start").json()
        word = sent(ask, "join", code=made["code"]).json()["student"]

        def listen() -> None:
            asked = {"code": made["code"], "as": word}
            with ask.stream("GET", "/class/news", params=asked, timeout=None) as line:
                for said in line.iter_lines():
                    heard.append(said)
                    listening.set()
            heard.append("its end, as of a whole answer")

        student = threading.Thread(target=listen, daemon=True)
        student.start()
        assert listening.wait(30)
        stream = f"{address.replace('http', 'ws')}/_stcore/stream"
        with connect(stream, subprotocols=["streamlit", "xsrf"], max_size=None) as reader:
            process.send_signal(told)
            process.wait(60)
            with pytest.raises(ConnectionClosed):
                while True:
                    reader.recv(30)
        student.join(30)
    assert any(said.startswith("data: ") for said in heard)
    assert heard[-1].startswith("its end") and not any('"over"' in said for said in heard)
