"""Streamlit's page as this app sends it, and pages of a few words."""

from __future__ import annotations

import gzip
import json
import secrets
from html import escape

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app.server import shared_link, startup_bundle
from explorer.app.server.headers import policy
from explorer.app.state.settings import settings
from explorer.components import bundle
from explorer.text import places
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")


def is_page(path: str) -> bool:
    """True for the address of a place; Streamlit itself takes a slash at its end away."""
    return path == "/" or path.strip("/") in places.PLACES.keys() - {places.FIRST}


# Pages of a few words: what stands there until Streamlit's scripts have run, and what is said
# where there is no page or no room.

STYLE = (
    "font: 1.125rem/1.6 system-ui, sans-serif; color: light-dark(#1f1b16, #f2ede4); "
    "background: light-dark(#fffdf9, #12151d); color-scheme: light dark; min-height: 100vh; "
    "padding: 20vh 10vw; box-sizing: border-box"
)
ROOT_EMPTY = b'<div id="root"></div>'
# What is on its way before the page needs it: the font, with which it measures its tabs, and what
# its scripts ask for before they open a session.
EARLY = (
    '<link rel="preload" href="./app/static/inter.woff2" as="font" type="font/woff2" crossorigin>'
    '<link rel="preload" href="./_stcore/health" as="fetch" crossorigin>'
    '<link rel="preload" href="./_stcore/host-config" as="fetch" crossorigin>'
)


def block(lines: tuple[str, ...]) -> str:
    """A few lines of HTML under the project's name."""
    return (
        f'<div style="{STYLE}"><strong style="font-size: 1.75rem">Headlight</strong>'
        + "".join(f"<br>{line}" for line in lines)
        + "</div>"
    )


# What stands on the page until Streamlit's scripts have run. They take the place over as a whole.
# The style of the frame comes with it, so that nothing moves when the views arrive.
ROOT_WITH_WORDS = (
    f'{EARLY}<style>{bundle.PAGE.read_text("utf-8")}</style><div id="root">'
    f"{block((WORDS('tagline'), WORDS('on_its_way')))}</div>"
).encode()


def page(
    status: int, lines: tuple[str, ...], retry_after: int = 0, headers: dict[str, str] | None = None
) -> HTMLResponse:
    """A page of a few lines, which may hold HTML. `retry_after`: seconds after which a browser
    asks for the same address once more."""
    refresh = f'<meta http-equiv="refresh" content="{retry_after}">' if retry_after else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8">{refresh}'
        '<meta name="viewport" content="width=device-width"><title>Headlight</title>'
        f'<body style="margin: 0">{block(lines)}',
        status,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def link(href: str, name: str) -> str:
    """A link to one of the app's own pages."""
    return f'<a style="color: inherit" href="{escape(href)}">{escape(name)}</a>'


# One press of Back a page: what the browser remembers of the way through the app.

# Streamlit makes a stop in the browser's history of every change of the address. A stop is another
# place or tab, another text (a second one too) or model, another word, layer, head or step of a
# lesson; all else, and what a page writes into its own address when it opens, takes the place of
# what was there. On the way to another place Streamlit writes the words of its address behind the
# path of the one that is left: that stop is put back as it was. What a page on its way would still
# write after the reader went back from it is left out.
SCRIPT = b"""<script nonce="NONCE">
(() => {
  const push = history.pushState.bind(history);
  const STOPS = ["text", "target", "second", "donor", "other_text", "model", "layer", "head",
    "token", "lesson_step"];
  let opening = true, back = -Infinity, wrote = {};
  const acted = ({ type, key }) => {
    [opening, back, wrote] = [false, -Infinity, {}];
    const isPress = type === "pointerdown";
    if (isPress || key === "Tab") document.documentElement.toggleAttribute("data-pressed", isPress);
  };
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, acted, true);
  addEventListener("popstate", () => { opening = true; back = performance.now(); }, true);
  history.pushState = (state, unused, url) => {
    const from = new URL(location.href), to = new URL(url ?? from, from);
    const another = from.pathname !== to.pathname;
    if (another && performance.now() - back < 2000) return;
    const differs = (name) => from.searchParams.get(name) !== to.searchParams.get(name);
    const tab = differs("tab");
    const isStop = tab || STOPS.some(differs);
    const isLeft = another && wrote.after === from.href && from.search === to.search;
    if (isLeft && !wrote.pushed) history.replaceState(history.state, unused, wrote.before);
    const pushed = another ? !(isLeft && wrote.pushed) : isStop && !opening;
    if (pushed) push(state, unused, url);
    else history.replaceState(state, unused, url);
    wrote = { before: from.href, after: to.href, pushed };
    opening = another || tab;
  };
})();
WAITING
TYPED
PRESSED
</script>"""

# A server that is silent, or is not reached, leaves the picture that it brought last. What the page
# sends to it and hears from it is listened to: after QUIET ms without a word, while the page waits
# for one, the document says so, page.css makes the old pictures pale, and a line says why.
WAITING = """(() => {
  const SAYS = WORDS, QUIET = 1500;
  let heard = 0, asked = false, lost = false;
  const now = () => performance.now();
  const line = document.createElement("div");
  line.id = "headlight-waits";
  line.setAttribute("role", "status");
  window.WebSocket = class extends WebSocket {
    constructor(...where) {
      super(...where);
      this.isOurs = new URL(this.url).pathname.endsWith("/_stcore/stream");
      if (!this.isOurs) return;
      this.addEventListener("open", () => setTimeout(tell, 0, false));
      this.addEventListener("message", () => { [heard, asked] = [now(), false]; look(); });
      this.addEventListener("close", () => { heard = now(); tell(true); });
    }
    send(data) {
      if (this.isOurs && !asked) [heard, asked] = [now(), true];
      super.send(data);
    }
  };
  // As explorer/components/bus.js tells views: what they send meanwhile is not sent by Streamlit.
  const tell = (isLost) => {
    window.headlight = { ...window.headlight, lost: (lost = isLost) };
    dispatchEvent(new Event("headlight"));
    look();
  };
  const isRunning = () => document.querySelector("[data-test-script-state=running]");
  const look = () => {
    const isQuiet = now() - heard > QUIET && document.querySelector("[data-drawn]");
    const why = !isQuiet ? "" : lost ? SAYS.lost : asked || isRunning() ? SAYS.waits : "";
    if (line.textContent === why) return;
    line.textContent = why;
    document.documentElement.toggleAttribute("data-headlight-waits", Boolean(why));
    if (!line.isConnected) document.body.append(line);
  };
  setInterval(look, 250);
})();"""
# What Streamlit draws of a text or of a model is marked, so that no browser translates it: words
# that are slanted or in quotation marks, fields, numbered words of menus, tables, charts and title.
TYPED = r"""(() => {
  const WORDS = "em, code, input, textarea, [data-testid=stDataFrame], .stPlotlyChart";
  const LINES = "p, li, [role=option], [data-testid=stTooltipContent]";
  const marked = (one) => {
    one.setAttribute("translate", "no");
    one.classList.add("notranslate");
  };
  const look = (root) => {
    if (root.nodeType !== 1) return look(root.parentElement ?? document.head);
    for (const one of [root, ...root.querySelectorAll(`${WORDS}, ${LINES}`)]) {
      const pattern = one.matches("[role=option]") ? /^\d+ / : /\u201c/;
      if (one.matches(WORDS) || (one.matches(LINES) && pattern.test(one.textContent))) marked(one);
    }
  };
  marked(document.querySelector("title") ?? document.head);
  new MutationObserver((all) => {
    for (const { type, target, addedNodes } of all)
      if (type === "characterData") look(target);
      else addedNodes.forEach(look);
  }).observe(document.documentElement, { childList: true, characterData: true, subtree: true });
})();"""
# A P or a press of Present before the presenter hears it (components/presenter.js) waits for it.
PRESSED = """const presentLater = () => window.headlight?.presents ||
  (window.headlight = { ...window.headlight, waiting: true });
addEventListener("keydown", (event) => {
  const plain = !(event.altKey || event.ctrlKey || event.metaKey);
  const field = event.composedPath()[0].closest?.("input, textarea, select, [role=dialog]");
  if (plain && !field && event.key.toLowerCase() === "p") presentLater();
}, true);
addEventListener("click", (event) => {
  if (event.target.closest?.(".st-key-present button")) presentLater();
}, true);"""
SAYS = {name: WORDS(f"server_{name}") for name in ("waits", "lost")}
SCRIPT = SCRIPT.replace(b"WAITING", WAITING.replace("WORDS", json.dumps(SAYS)).encode())
SCRIPT = SCRIPT.replace(b"TYPED", TYPED.encode()).replace(b"PRESSED", PRESSED.encode())


# Of a request for a page: what would have Streamlit answer with something else than the page.
CONDITIONS = (b"accept-encoding", b"if-none-match", b"if-modified-since", b"range")


class Placeholder:
    """Puts something to read into Streamlit's empty page, so that a slow line or machine shows
    words and not white, with the style of the frame and the rule for its history."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not is_page(scope["path"]):
            await self.app(scope, receive, send)
            return
        zipped = "gzip" in Headers(scope=scope).get("accept-encoding", "")
        query = scope["query_string"].decode("latin-1")
        unconditional = [each for each in scope["headers"] if each[0] not in CONDITIONS]
        start: Message = {}
        parts: list[bytes] = []

        async def with_words(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            whole, address = b"".join(parts).decode(), settings().address
            titled = run_in_threadpool(shared_link.titled, whole, scope["path"], query, address)
            whole = await titled
            nonce = secrets.token_urlsafe(16)
            body = startup_bundle.with_loader(whole, nonce).encode()
            script = SCRIPT.replace(b"NONCE", nonce.encode())
            body = body.replace(ROOT_EMPTY, ROOT_WITH_WORDS + script)
            headers = MutableHeaders(scope=start)
            headers["content-security-policy"] = policy(f"'nonce-{nonce}'")
            for name in ("etag", "last-modified", "accept-ranges"):  # of Streamlit's own page
                del headers[name]
            if zipped:
                body = await run_in_threadpool(gzip.compress, body, 6)
                headers["content-encoding"] = "gzip"
            headers["vary"] = "Accept-Encoding"
            headers["content-length"] = str(len(body))
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app({**scope, "headers": unconditional}, receive, with_words)


# Streamlit's settings for its page: it opens no dialog of its own over ours.

PATH = "/_stcore/host-config"


class NoErrorDialogs:
    """Sets `blockErrorDialogs` in the settings that Streamlit's page asks for."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        start: Message = {}
        body = b""

        async def changed(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start":
                start = message
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            if start["status"] == 200:
                body = json.dumps(json.loads(body) | {"blockErrorDialogs": True}).encode()
                MutableHeaders(scope=start)["content-length"] = str(len(body))
            await send(start)
            await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, changed)
