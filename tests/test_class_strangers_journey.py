"""A class led by a stranger: bytes that no teacher's window sends, through the real class, to a
student's window. Nothing runs there, nothing is asked for, and what comes after them is drawn."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import httpx2
import numpy as np
import pytest
from classes import crowd
from driver import MARKS, PHONE, Visitor
from playwright.sync_api import Error, Frame

from explorer.components import codec
from explorer.panels import architecture, attention
from models.runtime.run import Run

pytestmark = MARKS
RUN = (
    "window.owned = 1; try { top.owned = 1; top.document.title = 'owned'; } catch {}"
    "fetch('/owned'); new Image().src = '/owned'; top.postMessage('owned', '*'); alert('owned')"
)
TO = f"javascript:{RUN}"
MARKUP = f'"\'></text></svg></math><script>{RUN}</script><img src=x onerror="{RUN}">'
HANDLERS = ("onload", "ONLOAD", "OnFocus", "onanimationstart", "onpointerenter", "ontoggle")
CAPITALS = "ONCONTENTVISIBILITYAUTOSTATECHANGE"
ATTRIBUTES = {
    **dict.fromkeys((*HANDLERS, CAPITALS), RUN),
    **{"style": "content-visibility: auto", "srcset": "/owned 1x", "srcdoc": MARKUP},
    **{"href": TO, "HREF": TO, "xlink:href": TO, "src": "/owned", "data": "/owned"},
    **{"formaction": TO, "action": TO, "is": "x", "slot": "x", "__proto__": {"onload": RUN}},
    **{"autofocus": "", "popover": "auto", "contenteditable": "true", "background": "/owned"},
}
KEPT = ("kind", "block", "blocks", "views", "scale", "formulas")  # of a header, as words
ELEMENTS = (
    *("script", "SCRIPT", "iframe", "object", "embed", "template", "link", "meta", "base", "form"),
    *("annotation-xml", "maction", "semantics", "svg", "foreignObject", "img", "video", "style"),
)


DRAWN = {
    *("a place that is an object", "markup in the place of every text", "javascript: everywhere"),
    *("words that are markup", "terms that are markup"),
}


def panel(change: Callable[[dict[str, Any]], None] = lambda header: None, flow: bool = False):
    """A panel as a window sends it, with a change of its header."""
    run = Run("encoder", "Ram pushed Hari")
    data = (architecture.flow(run) if flow else attention.head(run, layer=1, head=5)).encode()
    header, blocks = codec.decode(data)
    header = json.loads(json.dumps(header))
    change(header)
    return np.frombuffer(codec.encode(header, blocks), np.uint8)


def picture(*parts: dict[str, Any], block: np.ndarray | None = None, **more: Any) -> bytes:
    """A picture of a window: parts, the first a line that says that it is drawn."""
    said = {"kind": "p", "side": 0, "text": "All of it is drawn."}
    view = [{"kind": "view", "side": 0, "at": "v"}] if block is not None else []
    blocks = {} if block is None else {"v": block}
    return codec.encode({"parts": [said, *parts, *view], **more}, blocks)


def formula(*line: Any) -> Callable[[dict[str, Any]], None]:
    """A change that gives a panel one formula, of a line."""
    one = {"id": "f", "title": "f", "lines": [line], "numbers": [], "symbols": [[line, "means"]]}
    return lambda header: header.update(formulas=[one], focus=["f"])


def everywhere(value: Any, text: Callable[[str], Any]) -> Any:
    """A header with another text, or what is no text, in the place of each that is shown."""
    if isinstance(value, dict):
        return {k: v if k in KEPT else everywhere(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [everywhere(each, text) for each in value]
    return text(value) if isinstance(value, str) else value


def changed(text: Callable[[str], Any]) -> Callable[[dict[str, Any]], None]:
    """A change of every text of a header."""
    return lambda header: header.update(everywhere(header, text))


def attacks() -> Iterator[tuple[str, bytes]]:
    """What a stranger sends, by its name."""
    place = {"class": "panel", CAPITALS: RUN, "style": {"contentVisibility": "auto"}}
    old = {"kind": "view", "side": 0, "view": "panel", "place": place, "at": "v"}
    yield "a place that is an object", picture(old, block=panel())
    for name, value in ATTRIBUTES.items():
        line = "math", {name: value, "data-symbol": "f"}, [["mi", {name: value}, "x"]]
        yield f"the attribute {name} of a formula", picture(block=panel(formula(*line)))
    for name in ELEMENTS:
        line = "math", {}, [[name, {"src": "/owned", "href": "/owned"}, RUN]]
        yield f"the element {name} in a formula", picture(block=panel(formula(*line)))
        yield f"a part that is a {name}", picture({"kind": name, "side": 0, "text": RUN})
    for flow in (False, True):
        markup = panel(changed(lambda text: MARKUP), flow)
        yield "markup in the place of every text", picture(block=markup)
        yield "javascript: everywhere", picture(block=panel(changed(lambda text: TO), flow))
        css = "red;background:url(/owned)} @import '/owned'; *{background:url(/owned)"
        yield "a style everywhere", picture(block=panel(changed(lambda text: css), flow))
        for thing in ({"class": "x", "onload": RUN}, [MARKUP], {"toString": RUN}, 7, None):
            block = panel(changed(lambda text, thing=thing: thing), flow)
            yield f"{thing} in the place of every text", picture(block=block)
    words: dict[str, Any] = {"kind": "p", "side": 0, "text": {"onclick": RUN, "toString": RUN}}
    yield "an object in the place of words", picture(words)
    yield "a list in the place of words", picture(words | {"text": [MARKUP, {"onclick": RUN}]})
    yield "words that are markup", picture(words | {"text": MARKUP})
    yield "a side that is none", picture(words | {"side": "__proto__", "text": "x"})
    for kind in ("constructor", "__proto__", "toString", {"x": 1}):
        one = lambda header, kind=kind: header["figures"][0].update(kind=kind)
        yield f"the figure {kind}", picture(block=panel(one))
    terms = lambda header: header.update(terms=[[MARKUP, MARKUP, ["head", MARKUP]]])
    yield "terms that are markup", picture(block=panel(terms))
    proto = {"__proto__": {"onload": RUN, "class": MARKUP}}
    own = panel(lambda header: header.update(proto, figures=[{**header["figures"][0], **proto}]))
    yield "a prototype of its own", picture(words | proto, block=own, **proto)
    yield "no parts", codec.encode({"parts": "x"}, {})
    yield "no such block", picture({"kind": "view", "side": 0, "at": "constructor"})
    yield "nothing that was packed", b"<script>" + RUN.encode()


@pytest.fixture
def followed(browser: object, server: str) -> Iterator[tuple[Visitor, Callable]]:
    """A student of a class that shows pictures, and a way to send what its leader shows: it answers
    once the student's window has drawn or refused it, with True where it was drawn."""
    made = httpx2.post(f"{server}/class/start", json={}).json()
    rule = {name: made[name] for name in ("code", "key")}
    student = Visitor(browser, server).hear_requests()
    # What the frame tells the window around it, to know when something was drawn or refused.
    student.page.add_init_script(
        "(() => { const own = Object.getOwnPropertyDescriptor(MessagePort.prototype, 'onmessage');"
        "window.told = []; Object.defineProperty(MessagePort.prototype, 'onmessage', { set(hear) {"
        "own.set.call(this, (event) => { if (event.data?.name) told.push(event.data);"
        "hear(event); }); } }); })()"
    )
    sent = 0

    def send(data: bytes, packed: bool = True) -> bool:
        nonlocal sent
        sent += 1
        at = f"/?text=The+leader+shows+{sent}"
        assert httpx2.post(f"{server}/class/move", json={**rule, "at": at}).is_success
        httpx2.post(
            f"{server}/class/show?{urlencode({'code': made['code'], 'at': at})}",
            content=gzip.compress(data) if packed else data,
            headers={"Content-Type": "application/octet-stream", "X-Headlight-Key": made["key"]},
        ).raise_for_status()
        student.until("at => headlight.lesson?.of === at", at)
        student.until(
            "() => told.some(({ name, failed, shown }) => name === headlight.lesson.picture &&"
            " (failed || shown))"
        )
        return student.page.evaluate(
            "told.some(({ name, shown }) => name === headlight.lesson.picture && shown)"
        )

    with crowd(server, made["code"]):
        student.join(made["code"])
        student.page.wait_for_selector(".follow .line:has-text('you follow your teacher')")
        yield student, send
    httpx2.post(f"{server}/class/end", json=rule)


def frame_of(student: Visitor) -> Frame:
    """The frame of the picture."""
    return student.page.locator(".shown iframe").element_handle().content_frame()


def nothing_ran(student: Visitor) -> str:
    """What a script of a stranger's did, "" for nothing."""
    frame, page = frame_of(student), student.page
    ran = [each for each in student.requests if "owned" in each]
    ran += [each for each in (page, frame) if each.evaluate("'owned' in window")]
    ran += [page.title()] if "owned" in page.title() else []
    made = "script[src], iframe, object, embed, template, link, [onload], [style*=url], form, a"
    ran += [frame.evaluate("s => document.querySelectorAll(s).length", made)]
    return "" if ran == [0] else f"{ran} {student.errors}"


def test_nothing_of_a_stranger_who_leads_a_class_runs(
    followed: tuple[Visitor, Callable],
) -> None:
    student, send = followed
    dialogs: list[str] = []
    student.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    assert send(picture(block=panel())), "what a teacher's window sends"
    frame = student.page.locator(".shown iframe").element_handle()
    drawn = set()
    for name, data in attacks():
        drawn |= {name} if send(data) else set()
        inside = student.page.frame_locator(".shown iframe")
        for one in inside.locator(".shown *:visible").all()[:3]:
            one.hover(force=True)  # and what waits for a pointer
        assert not nothing_ran(student), name
        assert not dialogs and not student.errors, (name, dialogs, student.errors)
    assert drawn > DRAWN, "texts are drawn as texts"
    assert send(picture(block=panel())), "and what comes after them is drawn"
    assert frame.evaluate("frame => frame.isConnected")
    board = student.page.frame_locator(".shown iframe")
    assert "All of it is drawn." in board.locator(".shown").inner_text()
    assert "Hari" in board.locator("[data-panel='attention.head']").inner_text()
    student.leave()


# What a script would try that ran in the frame in spite of all that: each answers what it reached.
TRIES = {
    "the page around it": "() => top.document.title",
    "what the browser keeps of a class": "() => parent.sessionStorage['headlight class']",
    "its own storage": "() => localStorage.length",
    "cookies": "() => document.cookie",
    "the server": "async () => (await fetch('/owned')).status",
    "a module": "async () => await import('/owned.js')",
    "a stream": "() => new Promise((done, fail) => { const line = new EventSource('/owned');"
    " line.onopen = done; line.onerror = fail; })",
    "a socket": "() => new Promise((done, fail) => { const line = new WebSocket('ws://' +"
    " location.host + '/owned'); line.onopen = done; line.onerror = fail; })",
    "a picture": "() => new Promise((done, fail) => { const image = new Image();"
    " image.onload = done; image.onerror = fail; image.src = '/favicon.png?owned'; })",
    "a window": "() => open('/?owned').document",
    "the page's address": "() => { top.location.href = '/?owned'; }",
    "code of a text": "() => new Promise((done, fail) => { setTimeout('window.owned = 1');"
    " setTimeout(() => (window.owned ? done() : fail()), 100); })",
    "a handler": "() => { document.body.setAttribute('onclick', 'window.owned = 1');"
    " document.body.click(); if (!window.owned) throw new Error(); }",
    "a script": "() => { const made = document.createElement('script');"
    " made.textContent = 'window.owned = 1'; document.body.append(made);"
    " if (!window.owned) throw new Error(); }",
    "a worker": "() => new Promise((done, fail) => { const one = new Worker("
    "URL.createObjectURL(new Blob(['postMessage(1)'])));"
    " one.onmessage = done; one.onerror = fail; })",
}


def test_a_script_in_the_frame_of_a_picture_would_reach_nothing(
    followed: tuple[Visitor, Callable],
) -> None:
    student, send = followed
    answered: list[str] = []  # the browser names what it refuses to ask among its requests
    student.page.on("response", lambda one: "owned" in one.url and answered.append(one.url))
    assert send(picture(block=panel()))
    frame = frame_of(student)
    assert frame.evaluate("origin") == "null"
    for name, script in TRIES.items():
        with pytest.raises(Error):
            frame.evaluate(f"async () => {{ await ({script})(); }}")
            pytest.fail(f"it reached {name}")
    assert not frame.evaluate("navigator.sendBeacon('/owned') && 0")
    assert not answered
    assert student.page.title() != "owned" and "owned" not in student.page.url
    # A frame that goes elsewhere is taken away, and the student has a page of their own.
    frame.evaluate("location.href = '/readyz'")
    student.page.wait_for_selector(".shown", state="detached")
    student.page.wait_for_url("**text=The+leader+shows+1")
    student.errors.clear()  # the browser reports what was refused
    student.leave()


@pytest.mark.parametrize("code", ["{code}", "2222222"])
def test_a_link_alone_joins_nobody(browser: object, server: str, code: str) -> None:
    made = httpx2.post(f"{server}/class/start", json={}).json()
    one = Visitor(browser, server, **PHONE).hear_requests()
    one.page.goto(f"{server}/join/{code.format(**made)}")
    button = one.page.get_by_role("button", name="Join")
    one.until("document.activeElement.localName === 'button'")  # one press, or Enter
    box, width = button.bounding_box(), one.page.viewport_size["width"]
    assert box["height"] >= 60 and box["width"] > 0.7 * width, "a thumb finds it"
    assert not [each for each in one.requests if "/class/" in each]
    assert one.page.evaluate("sessionStorage.length") == 0
    button.tap()
    if code == "{code}":
        one.page.wait_for_selector(".follow .line:has-text('you follow your teacher')")
    else:
        one.page.wait_for_selector("[role=alert]:has-text('no class with this code')")
        one.errors.clear()
    one.leave()
    assert not one.wrong(), one.errors
