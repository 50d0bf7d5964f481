"""The page of the frame in which a class's picture is drawn, and the policy of the app's own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient

from explorer.app.server import class_frame, startup_bundle
from explorer.app.server.headers import SafeHeaders, policy
from explorer.app.server.page import Placeholder
from explorer.app.server.static import STATIC
from explorer.components import bundle

AT = f"/{bundle.ROUTE}/{bundle.folder()}/class_frame.html"
SCRIPTS = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


def source_of(script: str) -> str:
    """What a policy calls an inline script (CSP 3, section 8.3)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def directives(policy: str) -> dict[str, str]:
    return dict(each.strip().split(" ", 1) for each in policy.split(";"))


async def streamlit(scope: dict, receive: object, send: object) -> None:
    """Streamlit's page, as it is installed."""
    body = (STATIC / "index.html").read_bytes()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def ask() -> Iterator[TestClient]:
    app = Starlette(routes=class_frame.ROUTES, middleware=[Middleware(SafeHeaders)])
    app.mount("/", Placeholder(streamlit))
    with TestClient(app) as client:
        yield client


def test_the_frame_runs_its_one_script_and_asks_for_nothing(ask: TestClient) -> None:
    said = ask.get(AT)
    rules = directives(said.headers["content-security-policy"])
    ((_, script),) = SCRIPTS.findall(said.text)
    assert rules["script-src"] == source_of(script)
    assert rules["default-src"] == rules["connect-src"] == "'none'"
    assert rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == rules["font-src"] == "data:"
    assert rules["sandbox"] == "allow-scripts", (
        "it has no origin, also where it is opened by itself"
    )
    assert 'src="' not in said.text.split("<script>")[0] and len(ask.get(AT).content) < 800_000


def test_the_frame_is_sent_once(ask: TestClient) -> None:
    tag = ask.get(AT).headers["etag"]
    assert ask.get(AT, headers={"If-None-Match": tag}).status_code == 304
    assert ask.get(AT, headers={"If-None-Match": '"another"'}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/learn"])
def test_every_inline_script_of_the_page_is_named_and_no_other(ask: TestClient, path: str) -> None:
    said, other = ask.get(path), ask.get(path)
    allowed = directives(said.headers["content-security-policy"])["script-src"].split()
    assert "'unsafe-inline'" not in allowed and "'unsafe-eval'" not in allowed
    scripts = SCRIPTS.findall(said.text)
    assert len(scripts) == 3, "Streamlit's, the rule for the history, the loader"
    nonces = set()
    for about, script in scripts:
        nonce = re.fullmatch(r' nonce="([\w-]{20,})"', about)
        nonces |= {nonce[1]} if nonce else set()
        assert (f"'nonce-{nonce[1]}'" if nonce else source_of(script)) in allowed
    assert len(nonces) == 1 and not nonces & set(re.findall(r"nonce-([\w-]+)", str(other.headers)))
    assert "NONCE" not in said.text


def test_an_answer_that_is_no_page_names_no_word_of_one() -> None:
    assert "nonce" not in policy() and "unsafe-inline" not in directives(policy())["script-src"]
    of_streamlit = [
        script
        for about, script in SCRIPTS.findall((STATIC / "index.html").read_text("utf-8"))
        if not about
    ]
    assert of_streamlit and all(source_of(each) in policy() for each in of_streamlit)


def test_the_script_of_a_page_gives_its_word_to_what_it_makes() -> None:
    page = startup_bundle.with_loader((STATIC / "index.html").read_text("utf-8"), "a-word")
    assert '<script nonce="a-word">' in page and "document.currentScript" in page
