"""Who asks: the same client, however its address is written, and behind whichever proxies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import uvicorn
from driver import free_port
from starlette.types import Receive, Scope, Send
from test_deploy import NGINX, PROXY, proxying
from waiting import until

from explorer.app.server.client_address import ClientAddress, lies_in, network, networks

LOCAL = ("127.0.0.1", "::1")
SCHOOL, MIDDLE = "203.0.113.7", "10.0.0.5"


async def says_who(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with its client's network, and whether it may see the figures."""
    said = f"{network(scope)} {lies_in(scope, LOCAL)}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": said})


@contextmanager
def serving(host: str) -> Iterator[int]:
    """The app at an address, in uvicorn as Streamlit starts it; its port."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(kind, socket.SOCK_STREAM) as bound:
        if kind == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, 0))
        app = ClientAddress(says_who)
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            until(lambda: server.started)
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def is_open(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def told(port: int, forwarded: str = "", host: str = "127.0.0.1") -> str:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    return httpx2.get(f"http://{host}:{port}", headers=headers, timeout=30).text


@pytest.mark.parametrize("host", ["::", "127.0.0.1"])
def test_a_proxy_on_this_machine_is_believed_on_either_socket(host: str) -> None:
    """`::` is where a server listens that was started without an address."""
    with serving(host) as port:
        assert told(port) == "127.0.0.1 True"
        for written in (
            *(SCHOOL, f"{SCHOOL}:50123", f"::ffff:{SCHOOL}", f"[::ffff:{SCHOOL}]:443"),
            *("::FFFF:cb00:7107", f"127.0.0.1, {SCHOOL}", f"::1,::ffff:127.0.0.1, {SCHOOL}"),
        ):
            assert told(port, written) == f"{SCHOOL} False", written
        assert told(port, "2001:db8:1:2:3:4:5:6") == "2001:db8:1:: False"
        assert told(port, "[2001:db8:1:9::6]:443") == "2001:db8:1:: False"
        assert told(port, "unknown") == "unknown False"
        # Whoever names this machine has come through a proxy of another all the same.
        assert told(port, f"127.0.0.1, {SCHOOL}") == f"{SCHOOL} False"


@pytest.mark.parametrize("host", ["::", "127.0.0.1"])
@pytest.mark.parametrize("trusted", [f"127.0.0.1,{MIDDLE}", "127.0.0.0/8, 10.0.0.0/8"])
def test_a_second_proxy_is_believed_where_it_is_named(
    host: str, trusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(host) as port:
        assert told(port, f"{SCHOOL}, {MIDDLE}") == f"{MIDDLE} False", "it is not named"
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    with serving(host) as port:
        assert told(port, f"{SCHOOL}, {MIDDLE}") == f"{SCHOOL} False"
        assert told(port, f"{SCHOOL}, ::ffff:{MIDDLE}") == f"{SCHOOL} False"
        assert told(port, f"1.2.3.4, {SCHOOL}, {MIDDLE}") == f"{SCHOOL} False", (
            "what it says itself"
        )


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed on this machine")
@pytest.mark.parametrize("named", [False, True])
def test_a_second_proxy_before_nginx_is_one_line(named: bool, tmp_path: Path) -> None:
    """The one that nginx.conf has as a comment."""
    second, front = "127.0.0.2", free_port()
    said, line = PROXY, "# set_real_ip_from 192.0.2.10;"
    assert line in said
    if named:
        said = said.replace(line, f"set_real_ip_from {second};")
    with serving("127.0.0.1") as port:
        said = said.replace("8601", str(port)).replace("8600", str(front))
        kept = "".join(
            f"{each}_temp_path {tmp_path}/{each};\n"
            for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        with proxying(tmp_path, f"access_log off;\n{kept}{said}"):
            until(lambda: is_open(front))
            transport = httpx2.HTTPTransport(local_address=second)
            with httpx2.Client(transport=transport, timeout=30) as client:
                headers = {"X-Forwarded-For": f"127.0.0.1, {SCHOOL}"}
                told = client.get(f"http://127.0.0.1:{front}", headers=headers).text
    assert told == f"{SCHOOL if named else second} False"


def test_nobody_is_believed_who_is_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", MIDDLE)
    for host in ("::", "127.0.0.1"):
        with serving(host) as port:
            assert told(port, SCHOOL) == "127.0.0.1 True"


def scope_of(host: str) -> Scope:
    return {"type": "http", "client": (host, 1)}


@pytest.mark.parametrize(
    "written",
    [
        *("192.0.2.1", "::ffff:192.0.2.1", "::ffff:c000:201", "0:0:0:0:0:FFFF:C000:0201"),
        *("192.0.2.1:50123", "[::ffff:192.0.2.1]:443", "[::ffff:c000:201]"),
    ],
)
def test_an_address_is_one_however_it_is_written(written: str) -> None:
    assert {*networks(scope_of(written))} == {"192.0.2.1"}
    for listed in ("192.0.2.1", "192.0.2.0/24", "::ffff:192.0.2.1", "::ffff:192.0.2.0/120"):
        assert lies_in(scope_of(written), (listed,)), listed
    for other in ("192.0.2.2", "::ffff:192.0.3.0/120", "::1", "fe80::/10"):
        assert not lies_in(scope_of(written), (other,)), other
    for other in (f"x{written}", f"{written}:x", "", "unknown", ":", "[]", "[", "1:2:3"):
        assert not lies_in(scope_of(other), ("0.0.0.0/0", "::/0")), other
    assert lies_in(scope_of("fe80::1%eth0"), ("fe80::/10",))
