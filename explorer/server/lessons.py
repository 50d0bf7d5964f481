"""The addresses of a class: what teacher and students send, and the line on which they hear of it.

A line is a stream of server-sent events on this server's own event loop: one that waits costs a
few kilobytes and, every twenty seconds, a few bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from explorer.memory import told
from explorer.memory.lessons import Lessons
from explorer.memory.lessons_codes import spelled
from explorer.memory.lessons_here import Here
from explorer.memory.lessons_store import TooMany, Unknown
from explorer.memory.settings import settings
from explorer.server import sent
from explorer.server.clients import network
from explorer.server.doors import FIRST_PAGE, pages

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
            from explorer.memory.lessons_redis import InRedis

            _lessons.append(Lessons(InRedis(settings().redis)))
        else:
            _lessons.append(Lessons(Here()))
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
        said = await sent.json_object(request, MOST_BYTES)
        answer = await ACTS[request.path_params["what"]](lessons(), said, network(request.scope))
        return JSONResponse(answer, headers=NO_STORE)

    return await _answered(made)


async def show(request: Request) -> Response:
    """What a teacher's window shows, packed: bytes under a key that no page of another site
    knows."""

    async def made() -> Response:
        asked = request.query_params
        picture = await sent.body(request, "application/octet-stream", MOST_PICTURE)
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
        told.refused("class")
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
