"""The addresses of a class: what teacher and students send, and the line on which they hear of it.

A line is a stream of server-sent events on this server's own event loop: one that waits costs a
few kilobytes and, every twenty seconds, a few bytes.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from html import escape
from typing import Any
from urllib.parse import urlsplit

import segno
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from explorer.classroom.codes import CODE_SIGNS, spelled
from explorer.classroom.service import Lessons
from explorer.classroom.store import MemoryStore, TooMany, Unknown
from explorer.components import bundle
from explorer.server import request_body
from explorer.server.client_address import network
from explorer.server.middleware import FIRST_PAGE, pages
from explorer.state import event_log
from explorer.state.settings import settings

# The page on which a student joins a class, light enough for any phone, and the code that leads
# to it.

LONGEST = 300  # characters of an address in a code

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Join a class · Headlight</title><link rel="icon" href="{base}app/static/headlight.svg">
<style>
body {{ font: 1.125rem/1.5 system-ui, sans-serif; color: light-dark(#1f1b16, #f2ede4);
  background: light-dark(#fffdf9, #12151d); color-scheme: light dark; margin: 0; min-height: 100vh;
  display: grid; align-content: start; justify-items: center; }}
main {{ width: min(22rem, calc(100vw - 3rem)); padding-top: 12vh; }}
h1 {{ font-size: 1.75rem; margin: 0 0 1.5rem; }}
input, button {{ font: inherit; box-sizing: border-box; width: 100%; padding: 0.75rem;
  border-radius: 0.5rem; }}
input {{ font-size: 1.75rem; text-align: center; letter-spacing: 0.08em; text-transform: uppercase;
  background: transparent; color: inherit; border: 2px solid light-dark(#8a8177, #8d93a3); }}
button {{ margin-top: 1rem; border: 0; background: light-dark(#b45309, #f5a524);
  color: light-dark(#fff, #12151d); font-weight: 600; cursor: pointer; }}
:focus-visible {{ outline: 3px solid light-dark(#b45309, #f5a524); outline-offset: 2px; }}
p {{ opacity: 0.85; font-size: 1rem; }} [role=alert] {{ min-height: 1.5em; opacity: 1; }}
</style>
<main><h1>Join a class</h1>
<form><label for="code">The code that your teacher shows</label>
<input id="code" name="code" value="{code}" maxlength="16" autocomplete="off"
  autocapitalize="characters" spellcheck="false" required>
<button>Join</button><p role="alert"></p></form>
<p>No name and no account. Your screen then follows your teacher’s; you can look around by
yourself and come back at any time.</p></main>
<script type="module" src="{base}{module}"></script></html>"""


def shown(code: str) -> str:
    """A code as it is read out and typed."""
    return f"{code[:3]}-{code[3:]}" if len(code) == CODE_SIGNS else ""


async def join(request: Request) -> Response:
    """The page, with the code of the address in its field. It says nothing of whether there is such
    a class."""
    code = spelled(request.path_params.get("code", ""))
    base = "../" if "code" in request.path_params else ""
    module = f"{bundle.ROUTE}/{bundle.folder()}/join.js"
    said = PAGE.format(base=base, code=escape(shown(code)), module=module)
    return HTMLResponse(said, headers={"Cache-Control": "no-store"})


async def qr_picture(request: Request) -> Response:
    """The QR code of a class's address, for an address on the host that was asked."""
    at = request.query_params.get("at", "")
    parts = urlsplit(at) if len(at) <= LONGEST else urlsplit("")
    if parts.scheme not in ("http", "https") or parts.netloc != request.headers.get("host"):
        return PlainTextResponse("This is no address of this server.", 400)
    drawn = io.BytesIO()
    segno.make(at, error="m", micro=False).save(
        drawn, kind="svg", border=4, dark="#000", light="#fff", omitsize=True, xmldecl=False
    )
    return Response(
        drawn.getvalue(), media_type="image/svg+xml", headers={"Cache-Control": "no-store"}
    )


JOIN_ROUTES = [
    Route("/join", join),
    Route("/join/{code}", join),
    Route("/class/code.svg", qr_picture),
]


MOST_BYTES = 16_384  # of what is sent here
MOST_PICTURE = 524_288  # packed bytes of what a teacher's window shows
LONGEST_AT = 6000  # characters of an address that a class is led to
LONGEST_TEXT, LONGEST_CHOICE, MOST_CHOICES = 600, 160, 6
NO_STORE = {"Cache-Control": "no-store"}
# A proxy that collects an answer before it passes it on would hold every event back.
STREAM = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}

Answer = Callable[[Lessons, dict[str, Any], str], Awaitable[dict[str, Any]]]
_lessons: list[Lessons] = []


def lessons() -> Lessons:
    """The classes of this server: in Redis where `HEADLIGHT_REDIS` names one, else in this
    process."""
    if not _lessons:
        if settings().redis:
            from explorer.classroom.redis_store import InRedis

            _lessons.append(Lessons(InRedis(settings().redis)))
        else:
            _lessons.append(Lessons(MemoryStore()))
    return _lessons[0]


def goal(at: object) -> str:
    """An address of this app that a class may be led to. Raises ValueError for any other."""
    if not isinstance(at, str) or not at.startswith("/") or len(at) > LONGEST_AT:
        raise ValueError("This is no address of the app.")
    parts = urlsplit(at)
    named = parts.path.strip("/") or FIRST_PAGE
    if parts.scheme or parts.netloc or parts.fragment or named not in pages():
        raise ValueError("This is no page of the app.")
    if parts.path not in ("/", f"/{named}") or any(sign < " " for sign in at):
        raise ValueError("This is no page of the app.")
    return at


def question(said: object) -> dict[str, Any] | None:
    """A teacher's question as it is kept: text, choices, which is right, what is said then and
    where it is seen.

    Raises ValueError where a part is missing or too long.
    """
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("choices"), list):
        raise ValueError("This is no question.")
    choices = [_words(each, LONGEST_CHOICE) for each in said["choices"]]
    right = said.get("right")
    a_choice = isinstance(right, int) and right in range(len(choices))
    if not 2 <= len(choices) <= MOST_CHOICES or not a_choice:
        raise ValueError("A question has two to six answers, one of them right.")
    return {
        "text": _words(said.get("text"), LONGEST_TEXT),
        "choices": choices,
        "right": right,
        "says": _words(said.get("says", ""), LONGEST_TEXT),
        "to": goal(said["to"]) if said.get("to") else "",
    }


def _words(said: object, longest: int) -> str:
    if not isinstance(said, str) or len(said) > longest:
        raise ValueError(f"Words of at most {longest} characters belong here.")
    return said


async def _start(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    made = await classes.start(who)
    return {"code": made.code, "key": made.key, "watch": made.watch, "ends": made.ends}


async def _join(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    student, at = await classes.join(spelled(said.get("code")), who)
    return {"code": spelled(said.get("code")), "student": student, "at": at}


async def _move(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    await classes.move(spelled(said.get("code")), _key(said), goal(said.get("at")), who)
    return {}


async def _ask(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    asked = question(said.get("question"))
    return {"number": await classes.ask(spelled(said.get("code")), _key(said), asked)}


async def _reveal(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    await classes.reveal(spelled(said.get("code")), _key(said))
    return {}


async def _end(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    await classes.end(spelled(said.get("code")), _key(said))
    return {}


async def _answer(classes: Lessons, said: dict[str, Any], who: str) -> dict[str, Any]:
    number, choice = said.get("number"), said.get("choice")
    if type(number) is not int or type(choice) is not int:
        raise ValueError("An answer is the number of a question and that of a choice.")
    student = str(said.get("student", ""))[:64]
    await classes.answer(spelled(said.get("code")), student, number, choice)
    return {}


def _key(said: dict[str, Any]) -> str:
    return str(said.get("key", ""))[:64]


ACTS: dict[str, Answer] = {
    "start": _start,
    "join": _join,
    "move": _move,
    "ask": _ask,
    "reveal": _reveal,
    "answer": _answer,
    "end": _end,
}


async def act(request: Request) -> Response:
    """What teacher and students send: JSON, which a page of another site cannot send here."""

    async def made() -> Response:
        said = await request_body.json_object(request, MOST_BYTES)
        answer = await ACTS[request.path_params["what"]](lessons(), said, network(request.scope))
        return JSONResponse(answer, headers=NO_STORE)

    return await _answered(made)


async def show(request: Request) -> Response:
    """What a teacher's window shows, packed: bytes under a key that no page of another site
    knows."""

    async def made() -> Response:
        asked = request.query_params
        picture = await request_body.body(request, "application/octet-stream", MOST_PICTURE)
        key = request.headers.get("x-headlight-key", "")[:64]
        code = spelled(asked.get("code"))
        await lessons().show(code, key, goal(asked.get("at")), picture)
        return JSONResponse({}, headers=NO_STORE)

    return await _answered(made)


async def picture(request: Request) -> Response:
    """The same for a student whose own page is on its way."""

    async def made() -> Response:
        asked = request.query_params
        who, name = asked.get("as", "")[:64], asked.get("name", "")[:64]
        shown = await lessons().picture(spelled(asked.get("code")), who, name)
        if shown is None:  # the class has gone on, and the student's line says to what
            return Response(status_code=204, headers=NO_STORE)
        return Response(shown, media_type="application/octet-stream", headers=NO_STORE)

    return await _answered(made)


async def _answered(made: Callable[[], Awaitable[Response]]) -> Response:
    """What is answered, or why it is not."""
    try:
        return await made()
    except ValueError as problem:
        return _refused(400, str(problem))
    except Unknown as problem:
        return _refused(404, str(problem))
    except TooMany as problem:
        event_log.refused("class")
        return _refused(429, str(problem))
    except ConnectionError:
        return _refused(503, "The class cannot be reached just now; try again in a moment.")
    except ClientDisconnect:
        return Response(status_code=400)


def _refused(status: int, why: str) -> Response:
    return JSONResponse({"problem": why}, status, NO_STORE)


async def news(request: Request) -> Response:
    """The line of a student or of the teacher. To one who has no part in a class it says that the
    class is over: a browser would ask again and again after an error."""
    code, word = spelled(request.query_params.get("code")), request.query_params.get("as", "")[:64]
    heard = lessons().listen(code, word, network(request.scope))
    try:
        first = await anext(heard)
    except (Unknown, StopAsyncIteration):
        first = '{"over": true}'
    except TooMany as problem:  # the browser asks again
        return _refused(429, str(problem))
    except ConnectionError:
        return _refused(503, "The class cannot be reached just now.")
    return StreamingResponse(_events(first, heard), headers=STREAM, media_type="text/event-stream")


async def _events(first: str, heard: AsyncIterator[str]) -> AsyncIterator[str]:
    yield f"retry: 1000\ndata: {first}\n\n"
    try:
        async for said in heard:
            yield f"data: {said}\n\n" if said else ": still here\n\n"
    except ConnectionError:
        return  # the browser asks again by itself
    finally:
        await heard.aclose()  # type: ignore[attr-defined]


def leave() -> None:
    """End all lines: the server is about to end."""
    for each in _lessons:
        each.leave()


async def close() -> None:
    """Let go of all classes, at the server's end."""
    for each in _lessons:
        await each.close()
    _lessons.clear()


ROUTES = [
    Route("/class/news", news),
    Route("/class/show", show, methods=["POST"]),
    Route("/class/picture", picture),
    Route("/class/{what}", act, methods=["POST"]),
]
