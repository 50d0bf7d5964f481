"""The speaker's window: a light page beside the wall, in a window of the same browser or on a
phone, and what goes between the phone and the wall.

What is shown there is told by the teacher's window (components/speaker_wall.js): to a window of its
own browser without this server, to a phone through the class that it leads. A phone has the
teacher's word, which watches the class, and not the key that rules it; its keys are pressed in the
teacher's window."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from explorer.app.classroom.codes import normalized_code
from explorer.app.classroom.routes import MOST_BYTES, MOST_PICTURE, NO_STORE, class_service, respond
from explorer.app.server import request_body
from explorer.components import bundle
from explorer.wording.templates import named

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title} · Headlight</title><link rel="icon" href="app/static/headlight.svg">
<style>@font-face{{font-family:Inter;font-weight:100 900;src:url(app/static/inter.woff2)}}
{theme}</style>
<main class="speaker"><p>{waits}</p></main>
<script type="module" src="{module}"></script></html>"""


async def page(request: Request) -> Response:
    """The page, which knows nothing of any class: its address holds what it needs where no server
    is told it."""
    module = f"{bundle.ROUTE}/{bundle.folder()}/speaker.js"
    words = named("classroom", "speaker")
    html = PAGE.format(module=module, theme=bundle.theme(), **words)
    return HTMLResponse(html, headers=NO_STORE)


async def speak(request: Request) -> Response:
    """Receive what the speaker's window shows, packed: bytes under the key of the class."""

    async def made() -> Response:
        slide = await request_body.body(request, "application/octet-stream", MOST_PICTURE)
        key = request.headers.get("x-headlight-key", "")[:64]
        await class_service().speak(normalized_code(request.query_params.get("code")), key, slide)
        return JSONResponse({}, headers=NO_STORE)

    return await respond(made)


async def slide(request: Request) -> Response:
    """The same for a window that has the teacher's word."""

    async def made() -> Response:
        query = request.query_params
        word, name = query.get("as", "")[:64], query.get("name", "")[:64]
        packed = await class_service().slide(normalized_code(query.get("code")), word, name)
        if packed is None:  # the teacher has gone on, and the window's line says so
            return Response(status_code=204, headers=NO_STORE)
        return Response(packed, media_type="application/octet-stream", headers=NO_STORE)

    return await respond(made)


async def press(request: Request) -> Response:
    """Press a key in the teacher's window."""

    async def made() -> Response:
        body: dict[str, Any] = await request_body.json_object(request, MOST_BYTES)
        code, word = normalized_code(body.get("code")), str(body.get("watch", ""))[:64]
        await class_service().press(code, word, str(body.get("press", ""))[:8])
        return JSONResponse({}, headers=NO_STORE)

    return await respond(made)


ROUTES = [
    Route("/speaker", page),
    Route("/class/speak", speak, methods=["POST"]),
    Route("/class/slide", slide),
    Route("/class/press", press, methods=["POST"]),
]
