"""Pages of a few words: what stands there until Streamlit's scripts have run, and what is said
where there is no page or no room."""

from __future__ import annotations

from html import escape

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.server.back import SCRIPT

LOOK = (
    "font: 1.125rem/1.6 system-ui, sans-serif; color: light-dark(#1f1b16, #f2ede4); "
    "background: light-dark(#fffdf9, #12151d); color-scheme: light dark; min-height: 100vh; "
    "padding: 20vh 10vw; box-sizing: border-box"
)
ROOT_EMPTY = b'<div id="root"></div>'
# The font is on its way before the page measures its tabs with it.
FONT = (
    '<link rel="preload" href="./app/static/inter.woff2" as="font" type="font/woff2" crossorigin>'
)


def block(lines: tuple[str, ...]) -> str:
    """A few lines of HTML under the project's name."""
    return (
        f'<div style="{LOOK}"><strong style="font-size: 1.75rem">Headlight</strong>'
        + "".join(f"<br>{line}" for line in lines)
        + "</div>"
    )


# What stands on the page until Streamlit's scripts have run. They take the place over as a whole.
ROOT_WITH_WORDS = (
    f'{FONT}<div id="root">{block(("See what every head sees.", "The page is on its way…"))}</div>'
).encode()


def page(
    status: int, lines: tuple[str, ...], again: int = 0, headers: dict[str, str] | None = None
) -> HTMLResponse:
    """A page of a few lines, which may hold HTML. `again`: seconds after which a browser asks for
    the same address once more."""
    refresh = f'<meta http-equiv="refresh" content="{again}">' if again else ""
    return HTMLResponse(
        f'<!doctype html><html lang="en"><meta charset="utf-8">{refresh}'
        '<meta name="viewport" content="width=device-width"><title>Headlight</title>'
        f'<body style="margin: 0">{block(lines)}',
        status,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


def link(to: str, name: str) -> str:
    """A link to one of the app's own pages."""
    return f'<a style="color: inherit" href="{escape(to)}">{escape(name)}</a>'


class FirstWords:
    """Puts something to read into Streamlit's empty page, so that a slow line or machine shows
    words and not white."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held: list[Message] = []

        async def with_words(message: Message) -> None:
            if message["type"] == "http.response.start" and Headers(scope=message).get(
                "content-type", ""
            ).startswith("text/html"):
                held.append(message)
            elif held and message["type"] == "http.response.body":
                held.append(message)
                if not message.get("more_body"):
                    start, *parts = held
                    body = b"".join(part.get("body", b"") for part in parts).replace(
                        ROOT_EMPTY, ROOT_WITH_WORDS + SCRIPT
                    )
                    if "content-length" in (headers := MutableHeaders(scope=start)):
                        headers["content-length"] = str(len(body))
                    await send(start)
                    await send({"type": "http.response.body", "body": body})
            else:
                await send(message)

        plain = scope["type"] != "http" or scope["method"] != "GET"
        await self.app(scope, receive, send if plain else with_words)
