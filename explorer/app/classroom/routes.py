"""The addresses of a class: what teacher and students send, and the line on which they hear of it.

A line is a stream of server-sent events on this server's own event loop: one that waits costs a
few kilobytes and, every twenty seconds, a few bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from html import escape
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from explorer.app.classroom.codes import CODE_LENGTH, normalized_code
from explorer.app.classroom.service import LONGEST_REASON, ClassService
from explorer.app.classroom.store import MemoryStore, TooMany, Unknown
from explorer.app.server import request_body
from explorer.app.server.base_path import base_path
from explorer.app.server.client_address import network
from explorer.app.server.limits import browser_word
from explorer.app.state import event_log
from explorer.app.state.settings import settings
from explorer.components import bundle
from explorer.figures import qr_code
from explorer.text import lesson as lesson_text
from explorer.text import places
from explorer.wording.templates import named, sentences

REFUSALS = sentences("classroom", "refusals")

# The page on which a student joins a class, light enough for any phone, and the code that leads
# to it.

MAX_QR_ADDRESS = 300  # characters of an address in a code

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} · Headlight</title><link rel="icon" href="{base}app/static/headlight.svg">
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
button {{ margin-top: 1rem; border: 0; min-height: 4rem; font-size: 1.375rem; cursor: pointer;
  background: light-dark(#b45309, #f5a524);
  color: light-dark(#fff, #12151d); font-weight: 600; }}
:focus-visible {{ outline: 3px solid light-dark(#b45309, #f5a524); outline-offset: 2px; }}
p {{ opacity: 0.85; font-size: 1rem; }} [role=alert] {{ min-height: 1.5em; opacity: 1; }}
</style>
<main><h1>{title}</h1>
<form><label for="code">{code_label}</label>
<input id="code" name="code" value="{code}" maxlength="16" autocomplete="off"
  autocapitalize="characters" spellcheck="false" required>
<button>{join}</button><p role="alert"></p></form>
<p>{about}</p></main>
<script type="module" src="{base}{module}"></script></html>"""


def display_code(code: str) -> str:
    """A code as it is read out and typed."""
    return f"{code[:3]}-{code[3:]}" if len(code) == CODE_LENGTH else ""


async def join(request: Request) -> Response:
    """The page, with the code of the address in its field. It says nothing of whether there is such
    a class."""
    code = normalized_code(request.path_params.get("code", ""))
    base = "../" if "code" in request.path_params else ""
    module = f"{bundle.ROUTE}/{bundle.folder()}/join.js"
    words = named("classroom", "join")
    html = PAGE.format(base=base, code=escape(display_code(code)), module=module, **words)
    return HTMLResponse(html, headers={"Cache-Control": "no-store"})


async def qr_picture(request: Request) -> Response:
    """The QR code of a class's address, for an address on the host that was asked."""
    address = request.query_params.get("at", "")
    parts = urlsplit(address) if len(address) <= MAX_QR_ADDRESS else urlsplit("")
    if parts.scheme not in ("http", "https") or parts.netloc != request.headers.get("host"):
        return PlainTextResponse(REFUSALS("no_address"), 400)
    return Response(
        qr_code.svg(address), media_type="image/svg+xml", headers={"Cache-Control": "no-store"}
    )


async def to_page(request: Request) -> Response:
    """To the page of classes, whose address people shorten as its button is called."""
    query = request.url.query
    return RedirectResponse(f"{base_path()}/classroom{'?' if query else ''}{query}", 307)


JOIN_ROUTES = [
    Route("/class", to_page),
    Route("/join", join),
    Route("/join/{code}", join),
    Route("/class/code.svg", qr_picture),
]


MOST_BYTES = 16_384  # of what is sent here
MOST_PICTURE = 524_288  # packed bytes of what a teacher's window shows
MOST_LESSON = 400_000  # bytes of a lesson, with what is for its speaker alone
MAX_ADDRESS = 6000  # characters of an address that a class is led to
LONGEST_TEXT, LONGEST_CHOICE, MOST_CHOICES = 600, 160, 6
LONGEST_PICTURE = 400
NO_STORE = {"Cache-Control": "no-store"}
# A proxy that collects an answer before it passes it on would hold every event back.
STREAM = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}

Handler = Callable[[ClassService, dict[str, Any], str], Awaitable[dict[str, Any]]]
_services: list[ClassService] = []


def class_service() -> ClassService:
    """The classes of this server: in Redis where `HEADLIGHT_REDIS` names one, else in this
    process."""
    if not _services:
        if settings().redis:
            from explorer.app.classroom.redis_store import RedisStore

            _services.append(ClassService(RedisStore(settings().redis)))
        else:
            _services.append(ClassService(MemoryStore()))
    return _services[0]


def app_address(address: object) -> str:
    """An address of this app that a class may be led to. Raises ValueError for any other."""
    if not isinstance(address, str) or not address.startswith("/") or len(address) > MAX_ADDRESS:
        raise ValueError(REFUSALS("no_app_address"))
    parts = urlsplit(address)
    page = parts.path.strip("/") or places.FIRST
    if parts.scheme or parts.netloc or parts.fragment or page not in places.PLACES:
        raise ValueError(REFUSALS("no_page"))
    own = "/" if page == places.FIRST else f"/{page}"
    if parts.path != own or any(sign < " " for sign in address):
        raise ValueError(REFUSALS("no_page"))
    return address


def parse_question(payload: object) -> dict[str, Any] | None:
    """A teacher's question as it is stored: text, choices, the right one, the reason and the page.
    Optional parts: pictures of the choices; `head`, that of the head that is asked about; `covers`,
    the answer is the model's prediction; `model`, words with their probabilities; `free`, students
    type a word, for which choices are examples, or where it is `long` a sentence; `of`, the step of
    a lesson that it was asked on.

    Raises ValueError where a part is missing or too long."""
    if payload is None:
        return None
    if not isinstance(payload, dict) or not isinstance(payload.get("choices"), list):
        raise ValueError(REFUSALS("no_question"))
    choices = [_plain_text(choice, LONGEST_CHOICE) for choice in payload["choices"]]
    right, is_free = payload.get("right"), payload.get("free") is True
    a_choice = type(right) is int and right in range(len(choices))
    least = 0 if is_free else 2
    if not least <= len(choices) <= MOST_CHOICES or not (is_free or a_choice):
        raise ValueError(REFUSALS("answers"))
    question: dict[str, Any] = {
        "text": _plain_text(payload.get("text"), LONGEST_TEXT),
        "choices": choices,
        "right": -1 if is_free else right,
        "says": _plain_text(payload.get("says", ""), LONGEST_TEXT),
        "to": app_address(payload["to"]) if payload.get("to") else "",
    }
    more = {
        "of": _plain_text(payload.get("of", ""), LONGEST_CHOICE),
        "free": is_free,
        "long": is_free and payload.get("long") is True,
        "covers": payload.get("covers") is True,
        "pictures": _pictures(payload.get("pictures"), len(choices)),
        "head": "".join(_pictures([payload["head"]] if payload.get("head") else [], 1)),
        "model": _probabilities(payload.get("model")),
    }
    return question | {name: value for name, value in more.items() if value}


def _pictures(value: object, n: int) -> list[str]:
    """Pictures of so many choices, [] for none. Raises ValueError for anything else."""
    if not value:
        return []
    if not isinstance(value, list) or len(value) != n:
        raise ValueError(REFUSALS("no_question"))
    pictures = [_plain_text(each, LONGEST_PICTURE) for each in value]
    if not all(re.fullmatch("[0-9]+(/[0-9]+)*", each) for each in pictures):
        raise ValueError(REFUSALS("no_question"))
    return pictures


def _probabilities(value: object) -> list[tuple[str, float]]:
    """Words with their probabilities, [] for none. Raises ValueError for anything else."""
    if not value:
        return []
    if not isinstance(value, list) or len(value) > MOST_CHOICES:
        raise ValueError(REFUSALS("no_question"))
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError(REFUSALS("no_question"))
        # Compared before it is a float: a whole number may be too large for one.
        if type(pair[1]) not in (int, float) or not 0 <= pair[1] <= 1:
            raise ValueError(REFUSALS("no_question"))
    return [(_plain_text(word, LONGEST_CHOICE), float(p)) for word, p in value]


def _plain_text(value: object, limit: int) -> str:
    if not isinstance(value, str) or len(value) > limit:
        raise ValueError(REFUSALS("too_long", n=limit))
    return value


async def _start(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    created = await classes.start(address)
    return {"code": created.code, "key": created.key, "watch": created.watch, "ends": created.ends}


async def _join(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    student, location = await classes.join(normalized_code(body.get("code")), address)
    return {"code": normalized_code(body.get("code")), "student": student, "at": location}


async def _move(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    await classes.move(
        normalized_code(body.get("code")), _key(body), app_address(body.get("at")), address
    )
    return {}


async def _ask(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    new_question = parse_question(body.get("question"))
    return {
        "number": await classes.ask(normalized_code(body.get("code")), _key(body), new_question)
    }


async def _reveal(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    await classes.reveal(normalized_code(body.get("code")), _key(body))
    return {}


async def _close(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    await classes.close_vote(normalized_code(body.get("code")), _key(body))
    return {}


async def _again(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    return {"number": await classes.ask_again(normalized_code(body.get("code")), _key(body))}


async def _strike(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    watch, word = str(body.get("watch", ""))[:64], _plain_text(body.get("word"), LONGEST_REASON)
    await classes.strike(normalized_code(body.get("code")), watch, word, body.get("struck") is True)
    return {}


async def _end(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    await classes.end(normalized_code(body.get("code")), _key(body))
    return {}


async def _answer(classes: ClassService, body: dict[str, Any], address: str) -> dict[str, Any]:
    number, choice = body.get("number"), body.get("choice")
    if isinstance(choice, str):
        choice = " ".join(_plain_text(choice, LONGEST_REASON).split())
    if type(number) is not int or type(choice) not in (int, str) or choice == "":
        raise ValueError(REFUSALS("answer_form"))
    student = str(body.get("student", ""))[:64]
    answer = choice if isinstance(choice, str) else int(choice or 0)
    await classes.answer(normalized_code(body.get("code")), student, number, answer)
    return {}


def _key(body: dict[str, Any]) -> str:
    return str(body.get("key", ""))[:64]


HANDLERS: dict[str, Handler] = {
    "start": _start,
    "join": _join,
    "move": _move,
    "ask": _ask,
    "close": _close,
    "again": _again,
    "reveal": _reveal,
    "strike": _strike,
    "answer": _answer,
    "end": _end,
}


async def act(request: Request) -> Response:
    """Handle an action of a teacher or a student: JSON, which a page of another site cannot send
    here."""

    handler = HANDLERS.get(request.path_params["what"])
    if handler is None:
        return _problem(404, REFUSALS("no_action"))

    async def made() -> Response:
        body = await request_body.json_object(request, MOST_BYTES)
        answer = await handler(class_service(), body, network(request.scope))
        return JSONResponse(answer, headers=NO_STORE)

    return await respond(made)


async def show(request: Request) -> Response:
    """Receive a picture of the teacher's window, packed: bytes under a key that no page of another
    site knows."""

    async def made() -> Response:
        query = request.query_params
        picture = await request_body.body(request, "application/octet-stream", MOST_PICTURE)
        key = request.headers.get("x-headlight-key", "")[:64]
        code = normalized_code(query.get("code"))
        at, stays = app_address(query.get("at")), query.get("stays") == "1"
        await class_service().show(code, key, at, picture, stays)
        return JSONResponse({}, headers=NO_STORE)

    return await respond(made)


async def hold(request: Request) -> Response:
    """Receive the lesson that a teacher's window follows, as a file has it."""

    async def made() -> Response:
        body = await request_body.json_object(request, MOST_LESSON)
        lesson = lesson_text.from_json(json.dumps(body.get("lesson")))
        await class_service().hold(normalized_code(body.get("code")), _key(body), lesson)
        return JSONResponse({}, headers=NO_STORE)

    return await respond(made)


async def held_lesson(request: Request) -> Response:
    """The same for a student, without what is for who speaks."""

    async def made() -> Response:
        query = request.query_params
        student = query.get("as", "")[:64]
        text = await class_service().lesson(normalized_code(query.get("code")), student)
        if not text:
            return Response(status_code=204, headers=NO_STORE)
        return Response(text, media_type="application/json", headers=NO_STORE)

    return await respond(made)


async def picture(request: Request) -> Response:
    """The same for a student whose own page is on its way."""

    async def made() -> Response:
        query = request.query_params
        student, name = query.get("as", "")[:64], query.get("name", "")[:64]
        image = await class_service().picture(normalized_code(query.get("code")), student, name)
        if image is None:  # the class has gone on, and the student's line says to what
            return Response(status_code=204, headers=NO_STORE)
        return Response(image, media_type="application/octet-stream", headers=NO_STORE)

    return await respond(made)


async def respond(handler: Callable[[], Awaitable[Response]]) -> Response:
    """The handler's response, or an error response with the reason."""
    try:
        return await handler()
    except ValueError as problem:
        return _problem(400, str(problem))
    except Unknown as problem:
        return _problem(404, str(problem))
    except TooMany as problem:
        event_log.log_refusal("class")
        return _problem(429, str(problem))
    except ConnectionError:
        return _problem(503, REFUSALS("unreachable"))
    except ClientDisconnect:
        return Response(status_code=400)


def _problem(status: int, why: str) -> Response:
    return JSONResponse({"problem": why}, status, NO_STORE)


async def news(request: Request) -> Response:
    """The event stream of a student or the teacher. To anyone else it reports the end of the class:
    a browser would retry again and again after an error."""
    code, word = (
        normalized_code(request.query_params.get("code")),
        request.query_params.get("as", "")[:64],
    )
    scope = request.scope
    events = class_service().listen(code, word, network(scope), browser_word(scope))
    try:
        first = await anext(events)
    except (Unknown, StopAsyncIteration):
        first = '{"over": true}'
    except TooMany as problem:  # the browser asks again
        return _problem(429, str(problem))
    except ConnectionError:
        return _problem(503, REFUSALS("gone"))
    return StreamingResponse(_events(first, events), headers=STREAM, media_type="text/event-stream")


async def _events(first: str, events: AsyncIterator[str]) -> AsyncIterator[str]:
    yield f"retry: 1000\ndata: {first}\n\n"
    try:
        async for event in events:
            yield f"data: {event}\n\n" if event else "event: beat\ndata:\n\n"
    except ConnectionError:
        return  # the browser asks again by itself
    finally:
        await events.aclose()  # type: ignore[attr-defined]


def leave() -> None:
    """End all lines: the server is about to end."""
    for each in _services:
        each.leave()


async def close() -> None:
    """Let go of all classes, at the server's end."""
    for each in _services:
        await each.close()
    _services.clear()


ROUTES = [
    Route("/class/news", news),
    Route("/class/show", show, methods=["POST"]),
    Route("/class/picture", picture),
    Route("/class/hold", hold, methods=["POST"]),
    Route("/class/lesson", held_lesson),
    Route("/class/{what}", act, methods=["POST"]),
]
