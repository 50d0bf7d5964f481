"""Headers on every answer: nothing comes from another host, no site but those that are named frames
the page, and no other host learns its address."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.app.server.static import STATIC
from explorer.app.state.settings import settings

FRAMES = ("'self'", *settings().frames)
INLINE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def hash_of(script: str) -> str:
    """The source of a policy that lets this inline script run, and no other."""
    digest = hashlib.sha256(script.replace("\r\n", "\n").encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


# The inline scripts of Streamlit's page as it is installed.
OF_STREAMLIT = [
    hash_of(each) for each in INLINE.findall((STATIC / "index.html").read_bytes().decode())
]


def policy(*scripts: str) -> str:
    """The policy of the app's pages: everything comes from this server, and of inline scripts those
    of Streamlit's page run and these, of which each is a source. Streamlit styles its page from
    script, and it makes modules of blobs as our startup bundle does."""
    own = " ".join((*OF_STREAMLIT, *scripts))
    return (
        f"default-src 'self'; script-src 'self' blob: {own}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        "connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; "
        f"base-uri 'self'; form-action 'self'; frame-ancestors {' '.join(FRAMES)}"
    )


HEADERS = {
    "Content-Security-Policy": policy(),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the reader's text stands in the address
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": (
        "camera=(), microphone=(), geolocation=(), payment=(), usb=(), serial=(), midi=(), "
        "accelerometer=(), gyroscope=(), magnetometer=(), display-capture=(), browsing-topics=()"
    ),
}


if len(FRAMES) == 1:  # the same for browsers that do not know it, and know no other site
    HEADERS["X-Frame-Options"] = "SAMEORIGIN"


# What an answer says itself where it is a page of its own, which runs apart from the app's.
ITS_OWN = ("Content-Security-Policy", "Cross-Origin-Opener-Policy")


class SafeHeaders:
    """Adds `HEADERS` to every answer, but for those of `ITS_OWN` that it has."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    if name not in ITS_OWN or name not in headers:
                        headers[name] = value
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)
