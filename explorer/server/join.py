"""The page on which a student joins a class, light enough for any phone, and the code that leads to
it."""

from __future__ import annotations

import io
from html import escape
from urllib.parse import urlsplit

import segno
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from explorer.components import bundle
from explorer.memory.lessons_codes import CODE_SIGNS, spelled

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


async def picture(request: Request) -> Response:
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


ROUTES = [
    Route("/join", join),
    Route("/join/{code}", join),
    Route("/class/code.svg", picture),
]
