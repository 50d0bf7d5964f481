"""A new text's pictures stand before its page has run, and are the page's own."""

from __future__ import annotations

import pytest
from driver import MARKS, Visitor
from playwright.sync_api import Browser, Route

from explorer.components import bundle

pytestmark = MARKS

FIRST, SECOND = "The red fox saw a small bird.", "My old teacher gave the quiet boy her book."
# Which word the grid and the head are of, and what the headline says.
SHOWN = """() => {
  const deep = (selector) => [...document.querySelectorAll('*')].map((e) => e.shadowRoot)
    .filter(Boolean).map((root) => root.querySelector(selector)).find(Boolean);
  return [deep("[data-panel='attention.heads']").dataset.token,
    deep("[data-panel='attention.head']").dataset.token,
    document.querySelector('.st-key-findings h1').innerText];
}"""

# How much of the headline is seen.
FADED = "getComputedStyle(document.querySelector('.st-key-findings')).opacity"


def send(visitor: Visitor, text: str) -> None:
    field = visitor.page.locator(".sentence textarea")
    field.fill(text)
    field.press("Enter")


# A connection that was bent once stays so: by their options such pages are kept apart from those of
# other tests.
APART = {"ignore_https_errors": True}


def bent(browser: Browser, server: str, at: str = "") -> tuple[Visitor, list]:
    """A visitor whose page hears nothing of its own run while the list holds something; of what
    its first entry, as bytes, stands in it hears that and what comes before."""
    visitor, held = Visitor(browser, server, **APART), list()
    visitor.page.route_web_socket("**/stream", lambda socket: pass_on(socket, held))
    return visitor.open(at), held


def stays(visitor: Visitor, held: list, before: list[str]) -> None:
    """What is drawn came before the page's run, which changes nothing of it."""
    sooner = visitor.page.evaluate(SHOWN)
    assert sooner[2] == before[2], "the page itself has not run"
    visitor.until(f"() => {FADED} < 0.5")  # the headline is of the text before, and seen to be
    release(held)
    visitor.page.wait_for_function(f"before => ({SHOWN})()[2] !== before", arg=before[2])
    assert visitor.drawn().page.evaluate(SHOWN)[:2] == sooner[:2]
    visitor.until(f"() => {FADED} == 1")
    visitor.leave()
    assert not visitor.wrong()


@pytest.mark.parametrize(
    "at",
    [
        "",
        "?model=translator&view=Matrix&attention=cross&layer=1&head=2",  # of three
    ],
)
def test_a_texts_pictures_come_first_and_the_page_changes_nothing_of_them(
    browser: Browser, server: str, at: str
) -> None:
    visitor, held = bent(browser, server, at)
    page = visitor.page
    before = page.evaluate(SHOWN)
    held.append("from now on")
    with page.expect_response("**/ahead") as answer:
        send(visitor, FIRST)
    assert answer.value.status == 200
    page.wait_for_function(f"before => ({SHOWN})()[0] !== before", arg=before[0])
    page.wait_for_function(f"before => ({SHOWN})()[1] !== before", arg=before[1])
    stays(visitor, held, before)


# The text that the page said last it is of.
MOUNT = f"/{bundle.ROUTE}/{bundle.folder()}/mount.js"
SAID = """async (mount) => {
  const { viewOf } = await import(mount);
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
  return viewOf(roots.map((root) => root.querySelector('.sentence')).find(Boolean)).header.text;
}"""


def test_they_are_drawn_where_the_page_has_only_said_which_text_it_is_of(
    browser: Browser, server: str
) -> None:
    visitor, held = bent(browser, server)
    page = visitor.page
    before = page.evaluate(SHOWN)

    def late(route: Route) -> None:
        answer = route.fetch()
        for _ in range(500):
            if page.evaluate(SAID, MOUNT) == FIRST:
                break
            page.wait_for_timeout(20)
        route.fulfill(response=answer)

    page.route("**/ahead", late)
    held.append(FIRST.encode())
    send(visitor, FIRST)
    page.wait_for_function(
        f"before => ({SHOWN})().slice(0, 2).every((each, at) => each !== before[at])", arg=before
    )
    stays(visitor, held, before)


def test_a_step_back_before_the_page_came_leaves_no_picture_of_the_other_text(
    browser: Browser, server: str
) -> None:
    visitor, held = bent(browser, server)
    page = visitor.page
    before, text = page.evaluate(SHOWN), page.locator(".sentence textarea").input_value()
    held.append("from now on")
    send(visitor, FIRST)
    page.wait_for_function(f"before => ({SHOWN})()[1] !== before", arg=before[1])
    page.wait_for_timeout(300)
    held.clear()  # what a run that another replaced has left to say is not said
    send(visitor, text)
    page.wait_for_function(f"before => ({SHOWN})()[0] === before", arg=before[0])
    assert visitor.drawn().page.evaluate(SHOWN) == before
    visitor.until(f"() => {FADED} == 1")
    visitor.leave()
    assert not visitor.wrong()


def pass_on(socket, held: list) -> None:
    """A connection whose messages to the page are kept back while `held` is not empty."""
    server = socket.connect_to_server()
    socket.on_message(server.send)

    def heard(message: bytes) -> None:
        until = held[0] if held and isinstance(held[0], bytes) else None
        if held and until is None:
            held.append((socket, message))
            return
        if until is not None and until in message:
            held[0] = "from now on"
        socket.send(message)

    server.on_message(heard)


def release(held: list) -> None:
    kept, held[:] = held[1:], []
    for socket, message in kept:
        socket.send(message)


def test_without_them_the_page_brings_the_pictures(visitor: Visitor) -> None:
    page = visitor.open().page
    page.route("**/ahead", lambda route: route.abort())
    before = page.evaluate(SHOWN)
    send(visitor, FIRST)
    page.wait_for_function(
        f"before => ({SHOWN})().every((each, at) => each !== before[at])", arg=before
    )
    page.unroute("**/ahead")
    tokens = visitor.drawn().tokens()
    assert "fox" in tokens and "bird" in tokens, "the picture is of the new text"
    assert sum(url.endswith("/ahead") for url in visitor.requests) == 1, "it had been asked for"
    assert all("ERR_FAILED" in each for each in visitor.wrong()), "and nothing else went wrong"
    visitor.errors.clear()


# The first answer is kept back until `letGo` is called.
LATE = """() => {
  const real = window.fetch;
  window.fetch = (url, ...rest) => {
    const answer = real(url, ...rest);
    if (window.letGo || !String(url).endsWith('/ahead')) return answer;
    return new Promise((done) => (window.letGo = () => done(answer)));
  };
}"""


def test_the_last_of_two_texts_stays(visitor: Visitor) -> None:
    page = visitor.open().page
    page.evaluate(LATE)
    send(visitor, FIRST)
    send(visitor, SECOND)
    visitor.until(
        "() => / (my|old|teacher|gave|quiet|boy|her|book) /i.test("
        "` ${document.querySelector('.st-key-findings h1').innerText} `)"
    )
    shown = visitor.drawn().page.evaluate(SHOWN)
    page.evaluate("window.letGo()")
    page.wait_for_timeout(300)
    assert page.evaluate(SHOWN) == shown
    assert not visitor.wrong()
