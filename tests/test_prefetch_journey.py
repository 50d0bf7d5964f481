"""A new text's pictures stand before its page has run, and are the page's own."""

from __future__ import annotations

import pytest
from driver import MARKS, Visitor
from playwright.sync_api import Browser, Route

from explorer.components import bundle

pytestmark = MARKS

FIRST, SECOND = "The red fox saw a small bird.", "My old teacher gave the quiet boy a book."
# Which word the grid and the head are of, and what the headline says.
SHOWN = """(() => {
  const deep = (selector) => [...document.querySelectorAll('*')].map((e) => e.shadowRoot)
    .filter(Boolean).map((root) => root.querySelector(selector)).find(Boolean);
  return [deep("[data-panel='attention.heads']").dataset.token,
    deep(":is([data-panel='attention.head'], [data-panel='attention.reads'])").dataset.token,
    document.querySelector('.st-key-findings h1').innerText];
})()"""
PICTURES = slice(0, 2)
# How much of the headline is seen.
FADED = "getComputedStyle(document.querySelector('.st-key-findings')).opacity"
# The text that the page said last it is of.
MOUNT = f"/{bundle.ROUTE}/{bundle.folder()}/mount.js"
SAID = """async (mount) => {
  const { viewOf } = await import(mount);
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot).filter(Boolean);
  return viewOf(roots.map((root) => root.querySelector('.sentence')).find(Boolean)).header.text;
}"""
# The first answer is kept back until `letGo` is called.
LATE = """() => {
  const real = window.fetch;
  window.fetch = (url, ...rest) => {
    const answer = real(url, ...rest);
    if (window.letGo || !String(url).endsWith('/ahead')) return answer;
    return new Promise((done) => (window.letGo = () => done(answer)));
  };
}"""


def send(visitor: Visitor, text: str) -> None:
    field = visitor.page.locator(".sentence textarea")
    field.fill(text)
    field.press("Enter")


def shown(visitor: Visitor) -> list[str]:
    return visitor.page.evaluate(SHOWN)


def changes(visitor: Visitor, before: list[str], parts: slice = slice(0, 3)) -> None:
    """Wait until these parts of what is shown are others than before."""
    cut = f"slice({parts.start}, {parts.stop})"
    visitor.until(f"old => {SHOWN}.{cut}.every((each, at) => each !== old[at])", before[parts])


class Bent(Visitor):
    """A visitor whose page hears nothing of its own run while `kept` holds something; of what its
    first entry, as bytes, stands in it hears that and what comes before."""

    def __init__(self, browser: Browser, server: str) -> None:
        # A connection that was bent once stays so: by their options such pages are kept apart.
        super().__init__(browser, server, ignore_https_errors=True)
        self.kept: list = []
        self.page.route_web_socket("**/stream", self.pass_on)

    def pass_on(self, socket) -> None:
        server = socket.connect_to_server()
        socket.on_message(server.send)

        def heard(message: bytes) -> None:
            until = self.kept[0] if self.kept and isinstance(self.kept[0], bytes) else None
            if self.kept and until is None:
                self.kept.append((socket, message))
                return
            if until is not None and until in message:
                self.kept[0] = "from now on"
            socket.send(message)

        server.on_message(heard)

    def release(self) -> None:
        kept, self.kept[:] = self.kept[1:], []
        for socket, message in kept:
            socket.send(message)

    def end(self) -> None:
        self.until(f"() => {FADED} == 1")
        self.leave()
        assert not self.wrong()

    def stays(self, before: list[str]) -> None:
        """What is drawn came before the page's run, which changes nothing of it."""
        sooner = shown(self)
        assert sooner[2] == before[2], "the page itself has not run"
        self.until(f"() => {FADED} < 0.5")  # the headline is of the text before, and seen to be
        self.release()
        changes(self, before, slice(2, 3))
        assert shown(self.drawn())[PICTURES] == sooner[PICTURES]
        self.end()


@pytest.mark.parametrize(
    "at", ["?text=Dogs+bark.", "?model=translator&view=Matrix&attention=cross&layer=1&head=2"]
)
def test_a_texts_pictures_come_first(browser: Browser, server: str, at: str) -> None:
    visitor = Bent(browser, server).open(at)
    before = shown(visitor)
    visitor.kept.append("from now on")
    with visitor.page.expect_response("**/ahead") as answer:
        send(visitor, FIRST)
    assert answer.value.status == 200
    changes(visitor, before, PICTURES)
    visitor.stays(before)


def test_they_are_drawn_once_the_page_has_said_its_text(browser: Browser, server: str) -> None:
    visitor = Bent(browser, server).open("?text=Dogs+bark.")
    page, before = visitor.page, shown(visitor)

    def late(route: Route) -> None:
        answer = route.fetch()
        for _ in range(500):
            if page.evaluate(SAID, MOUNT) == FIRST:
                break
            page.wait_for_timeout(20)
        route.fulfill(response=answer)

    page.route("**/ahead", late)
    visitor.kept.append(FIRST.encode())
    send(visitor, FIRST)
    changes(visitor, before, PICTURES)
    visitor.stays(before)


def test_a_step_back_leaves_no_picture_of_the_other(browser: Browser, server: str) -> None:
    visitor = Bent(browser, server).open("?text=Dogs+bark.")
    before, text = shown(visitor), visitor.page.locator(".sentence textarea").input_value()
    visitor.kept.append("from now on")
    send(visitor, FIRST)
    changes(visitor, before, slice(1, 2))
    visitor.page.wait_for_timeout(300)
    visitor.kept.clear()  # what a run that another replaced has left to say is not said
    send(visitor, text)
    visitor.until(f"before => {SHOWN}[0] === before", before[0])
    assert shown(visitor.drawn()) == before
    visitor.end()


def test_the_page_alone_and_two_texts_at_once(visitor: Visitor) -> None:
    page = visitor.hear_requests().open("?text=Dogs+bark.").page
    page.route("**/ahead", lambda route: route.abort())
    before = shown(visitor)
    send(visitor, FIRST)
    changes(visitor, before)
    page.unroute("**/ahead")
    tokens = visitor.drawn().tokens()
    assert "fox" in tokens and "bird" in tokens, "the picture is of the new text"
    assert sum(url.endswith("/ahead") for url in visitor.requests) == 1, "it had been asked for"
    assert all("ERR_FAILED" in each for each in visitor.wrong()), "and nothing else went wrong"
    visitor.errors.clear()
    page.evaluate(LATE)
    send(visitor, "The cat sat on the mat.")
    send(visitor, SECOND)
    visitor.until(
        "() => / (my|old|teacher|gave|quiet|boy|her|book) /i.test("
        "` ${document.querySelector('.st-key-findings h1').innerText} `)"
    )
    last = shown(visitor.drawn())
    page.evaluate("window.letGo()")
    page.wait_for_timeout(300)
    assert shown(visitor) == last and not visitor.wrong()
