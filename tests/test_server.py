"""What the server answers over HTTP and on its readers' lines: closed doors, headers, room for so
many readers, and health."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from urllib.parse import urlencode

import driver
import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from waiting import until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from benchmarks.clients import open_page, reader_line, server
from explorer.app.server.limits import RETRY_SECONDS, UNASKED
from explorer.app.server.routes import CACHE_SECONDS
from explorer.text import places

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
SEATS = 2
READERS = 4  # beside the first


@pytest.fixture(scope="module")
def small_server() -> Iterator[str]:
    """The app with room for two readers."""
    yield from driver.serving(HEADLIGHT_MAX_SESSIONS=str(SEATS), HEADLIGHT_PUBLIC="1")


@pytest.fixture
def ask(small_server: str) -> Iterator[httpx2.Client]:
    """A client of that server, which follows no redirects."""
    with httpx2.Client(base_url=small_server, timeout=30) as client:
        client.event_hooks["response"] = [looked]
        yield client


_fresh = 0.0  # when /healthz looks again


def looked(said: httpx2.Response) -> None:
    """Whatever a test asked /healthz, it gives the same answer again for `KEPT` seconds."""
    global _fresh
    if said.request.url.path == "/healthz":
        _fresh = time.monotonic() + CACHE_SECONDS + 0.1


ABSENT = (
    *("/_stcore/upload_file/a/b", "/_stcore/metrics", "/_stcore/agent/mcp"),
    *("/_stcore/agent/openapi.json", "/_stcore/script-health-check"),
    *("/component/x/index.html", "/auth/login", "/oauth2callback"),
    *("/static/nothing.js", "/static/../config.toml", "/nothing", "/learn/more"),
    *("/pages/learn.py", "/.git/config", "/%00"),
)


METHODS = ("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "HEAD")


def test_what_the_app_does_not_need_is_not_there_and_nothing_is_written(ask: httpx2.Client) -> None:
    for method in METHODS:
        for path in ABSENT:
            said = ask.request(method, path, content=b"x" * 100)
            assert said.status_code == 404, (method, path)
    for method in METHODS[1:5]:
        for path in ("/", "/learn", "/healthz", "/_stcore/health"):
            assert ask.request(method, path, content=b"x").status_code == 405, (method, path)


def test_every_page_is_there_and_an_unknown_one_leads_to_those_that_are(ask: httpx2.Client) -> None:
    assert {*places.PLACES} == {file.stem for file in (ROOT / "pages").glob("*.py")}
    for name in places.PLACES:
        if name != places.FIRST:
            assert ask.head(f"/{name}").status_code == 200, name
    assert ask.get(f"/{places.FIRST}").status_code == 404, "it stands at / alone"
    shortened = ask.get("/class?text=it+slept", follow_redirects=False)
    assert shortened.status_code == 307
    assert shortened.headers["location"] == "/classroom?text=it+slept"
    said = ask.get("/attentoin<script>alert(1)</script>")
    assert said.status_code == 404 and 'href="/learn"' in said.text and "script" not in said.text


def asked(text: str) -> bytes:
    query = urlencode({"text": text})
    return BackMsg(rerun_script={"query_string": query}).SerializeToString()


def test_a_message_too_large_is_refused_and_others_are_served(small_server: str) -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["server"]
    from_browser, any = config["maxWidgetStateSize"], config["maxMessageSize"]
    assert from_browser <= 2 < any <= 8 and config["maxUploadSize"] <= 320
    with reader(small_server) as other:
        other.send(asked("Ram pushed Hari."))
        for size in (from_browser, any):
            with reader(small_server) as rude, pytest.raises(ConnectionClosed) as closed:
                rude.send(asked("x" * (size * 10**6 + 1)))
                while True:
                    rude.recv(timeout=60)
            # "Too big", unless the line was cut while the rest was still on its way.
            assert closed.value.rcvd is None or closed.value.rcvd.code == 1009, size
            time.sleep(0.5)  # until its place is free
        said = ""
        while said != "script_finished":
            message = ForwardMsg.FromString(other.recv(timeout=60))
            said = message.WhichOneof("type")
            assert message.delta.new_element.WhichOneof("type") != "exception"


def heartbeats(line: connect) -> list[str]:
    """What a reader is told until the server has answered one more sign of life."""
    line.send(BackMsg(app_heartbeat=True).SerializeToString())
    kinds = []
    while "heartbeat_ack" not in kinds:
        kinds.append(ForwardMsg.FromString(line.recv(timeout=60)).WhichOneof("type"))
    return kinds


def test_what_only_streamlits_own_tools_ask_is_not_answered(small_server: str) -> None:
    """The names of files here that are not in git, all that is kept for everyone, places for
    uploads."""
    operation = {"request_id": "x\n2026-01-01 headlight exception", "install_skills": {}}
    with reader(small_server) as rude:
        for said in (
            BackMsg(load_git_info=True),
            BackMsg(clear_cache=True),
            BackMsg(set_run_on_save=True),
            BackMsg(file_urls_request={"request_id": "x", "file_names": ["a"]}),
            BackMsg(backend_operation_request=operation),
            BackMsg(debug_shutdown_runtime=True),
        ):
            rude.send(said.SerializeToString())
            assert heartbeats(rude) == ["heartbeat_ack"], said


@pytest.mark.parametrize("said", [b"\xff\xff\xff\xff", bytes(range(200))])
def test_what_is_no_message_ends_its_line_and_no_other(small_server: str, said: bytes) -> None:
    with reader(small_server) as other:
        with reader(small_server) as rude, pytest.raises(ConnectionClosed) as closed:
            rude.send(said)
            rude.recv(timeout=60)
        assert closed.value.rcvd.code == 1002
        with reader(small_server) as rude:
            rude.send("words, and no bytes")
            assert heartbeats(rude) == ["heartbeat_ack"]
        assert heartbeats(other) == ["heartbeat_ack"]


def test_headers_keep_the_page_and_its_address_to_itself(ask: httpx2.Client) -> None:
    for path in ("/learn", "/nothing", "/healthz", "/_stcore/health", "/manifest.json"):
        said = ask.head(path).headers
        assert said["content-security-policy"].endswith("frame-ancestors 'self'"), path
        assert said["x-frame-options"] == "SAMEORIGIN", path
        assert said["x-content-type-options"] == "nosniff", path
        assert said["referrer-policy"] == "no-referrer", path
        assert "camera=()" in said["permissions-policy"], path
    said = ask.get("/_stcore/host-config")
    assert said.headers["cache-control"] == "no-cache" and "allowedOrigins" in said.json()
    assert said.json()["blockErrorDialogs"] is True, "Streamlit opens no dialog of its own"


def test_health_says_how_things_stand_after_a_real_pass(ask: httpx2.Client) -> None:
    until(lambda: ask.get("/readyz").status_code == 200)
    said = ask.get("/healthz")
    found = said.json()
    assert said.status_code == 200 and found["ok"] and 0 < found["seconds"] < 60
    assert 50e6 < found["rss_bytes"] < 50e9 and found["models"] == ["encoder"]
    assert (found["sessions"], found["most_sessions"], found["borrowed_models"]) == (0, SEATS, 0)
    assert found["queue"] == 0


def test_it_is_not_ready_before_its_first_model() -> None:
    code = (
        "import asyncio; from explorer.app.server import routes;"
        "from starlette.requests import Request;"
        "asked = Request({'type': 'http', 'client': ('127.0.0.1', 1), 'headers': []});"
        "print(asyncio.run(routes.readyz(asked)).status_code, "
        "asyncio.run(routes.healthz(asked)).status_code)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout.split() == ["503", "503"], run.stderr


# ---- room --------------------------------------------------------------------


def reader(server: str, session: str = "", host: str = "127.0.0.1") -> connect:
    """A reader's connection, as Streamlit's page opens it, at one of this machine's addresses."""
    return connect(
        f"{server.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "xsrf", *([session] if session else [])],
        source_address=(host, 0),
        max_size=None,
        max_queue=None,  # one who goes without reading on goes at once
    )


def seated(server: str, stay: ExitStack, host: str = "127.0.0.1") -> connect:
    """A reader's connection that has asked for a page, for as long as the test stays."""
    made = stay.enter_context(reader(server, host=host))
    made.send(BackMsg(rerun_script={"query_string": ""}).SerializeToString())
    return made


def taken(ask: httpx2.Client) -> int:
    time.sleep(max(0.0, _fresh - time.monotonic()))
    return ask.get("/healthz").json()["sessions"]


def test_a_newcomer_waits_for_a_free_place(ask: httpx2.Client, small_server: str) -> None:
    with ExitStack() as stay:
        _, second = (seated(small_server, stay) for _ in range(SEATS))
        assert taken(ask) == SEATS
        said = ask.get("/learn?text=kept")
        assert said.status_code == 503 and f"All {SEATS} places are taken" in said.text
        assert said.headers["retry-after"] == str(RETRY_SECONDS)
        assert f'http-equiv="refresh" content="{RETRY_SECONDS}"' in said.text
        with pytest.raises(InvalidStatus), reader(small_server):
            pass
        second.close()
        until(lambda: ask.get("/learn?text=kept").status_code == 200)
        # That page is on its way, and the place is its reader's until they are here.
        assert ask.get("/").status_code == 503
        seated(small_server, stay)
        assert taken(ask) == SEATS
    until(lambda: taken(ask) == 0)


def test_whoever_was_here_comes_back_to_their_session(
    ask: httpx2.Client, small_server: str
) -> None:
    with reader(small_server) as mine:
        mine.send(BackMsg(rerun_script={"query_string": ""}).SerializeToString())
        session = ForwardMsg.FromString(mine.recv()).new_session.initialize.session_id
    assert session
    with ExitStack() as stay:
        for _ in range(SEATS):
            seated(small_server, stay)
        with pytest.raises(InvalidStatus), reader(small_server, "made-up"):
            pass
        with reader(small_server, session):
            pass
    until(lambda: taken(ask) == 0)


def page(server: str, host: str = "127.0.0.1") -> int:
    with httpx2.Client(transport=httpx2.HTTPTransport(local_address=host), timeout=30) as client:
        return client.get(server).status_code


def test_connections_that_ask_for_no_page_are_closed(ask: httpx2.Client, small_server: str) -> None:
    with ExitStack() as stay:
        idle = [stay.enter_context(reader(small_server)) for _ in range(SEATS)]
        idle[0].send(BackMsg(app_heartbeat=True).SerializeToString())
        assert page(small_server) == 503
        for each in idle:
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    each.recv(timeout=60)
            assert closed.value.rcvd.code == UNASKED
        assert page(small_server) == 200
    until(lambda: taken(ask) == 0)


def test_a_client_with_every_place_keeps_no_other_out(
    ask: httpx2.Client, small_server: str
) -> None:
    until(lambda: page(small_server) == 200)
    with ExitStack() as stay:
        for _ in range(SEATS):
            seated(small_server, stay, "127.0.0.2").recv(timeout=60)
        with pytest.raises(InvalidStatus), reader(small_server, host="127.0.0.2"):
            pass
        assert page(small_server, "127.0.0.2") == 503 and page(small_server, "127.0.0.3") == 200
        seated(small_server, stay, "127.0.0.3").recv(timeout=60)
    until(lambda: taken(ask) == 0)


@driver.browser_test
def test_the_waiting_page_lets_its_reader_in(browser: object, small_server: str) -> None:
    with ExitStack() as stay:
        _, other = (seated(small_server, stay) for _ in range(SEATS))
        page = browser.new_context().new_page()
        page.goto(f"{small_server}/?text=Ram+pushed+Hari.")
        page.get_by_text("places are taken").wait_for()
        other.close()
        page.wait_for_selector("textarea", timeout=60_000)
        assert page.locator("textarea").first.input_value() == "Ram pushed Hari."
        page.context.close()


def test_a_theme_read_once_is_the_theme_that_streamlit_reads(monkeypatch) -> None:
    from streamlit.proto.NewSession_pb2 import CustomThemeConfig
    from streamlit.runtime import app_session

    from explorer.app.server import streamlit_patches

    read = app_session._populate_theme_msg
    monkeypatch.setattr(app_session, "_populate_theme_msg", read)  # put back afterwards
    streamlit_patches.cache_theme()

    def whole(fill: Callable) -> CustomThemeConfig:
        made = CustomThemeConfig()
        fill(made)
        for part, name in ((made.light, "theme.light"), (made.dark, "theme.dark")):
            fill(part, name)
            fill(part.sidebar, f"{name}.sidebar")
        fill(made.sidebar, "theme.sidebar")
        return made

    true = whole(read)
    for _ in range(2):
        assert whole(app_session._populate_theme_msg) == true
    assert true.ByteSize() > 100


def test_readers_at_rest_hold_no_event_loop_each() -> None:
    """Of the files that a server has open, none is a reader's own loop once their page stands."""

    async def visits(address: str, pid: int) -> None:
        async with AsyncExitStack() as lines:
            before = 0
            for _ in range(1 + READERS):
                line = await lines.enter_async_context(reader_line(address))
                assert not await open_page(line, "heads", {"text": "The cat sat."})
                before = before or loops(pid)
            await asyncio.to_thread(until, lambda: loops(pid) <= before)

    with server() as (address, pid):
        asyncio.run(visits(address, pid))


def loops(pid: int) -> int:
    """The event loops of a process."""
    files = Path(f"/proc/{pid}/fd").iterdir()
    return sum(os.readlink(each) == "anon_inode:[eventpoll]" for each in files if each.is_symlink())
