"""What stands between the browser and Streamlit, outermost first, and the addresses that are
answered without it."""

from __future__ import annotations

from starlette.middleware import Middleware
from starlette.routing import Route

from explorer.components import bundle
from explorer.server import ahead, join, lessons
from explorer.server.dialogs import NoErrorDialogs
from explorer.server.doors import Doors
from explorer.server.frames import Frames
from explorer.server.headers import SafeHeaders
from explorer.server.health import healthz, readyz
from explorer.server.room import Room
from explorer.server.static import CompressedStatic, component
from explorer.server.words import FirstWords

# Headers on whatever is answered; then what is closed; then whether there is room; then what may be
# said; then Streamlit's settings, words and files.
STACK = (SafeHeaders, Doors, Room, Frames, NoErrorDialogs, FirstWords, CompressedStatic)
MIDDLEWARE = [Middleware(each) for each in STACK]
ROUTES = [
    Route(f"/{bundle.ROUTE}/{{name:path}}", component),
    Route("/healthz", healthz),
    Route("/readyz", readyz),
    *ahead.ROUTES,
    *lessons.ROUTES,
    *join.ROUTES,
]
