"""The launcher: `streamlit run app.py`. It answers at once; the model is loaded by a thread while
the first page is on its way."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

# Short passes want one thread, and waiting threads that do not spin. Both must be said before torch
# is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import streamlit as st

from explorer.memory import background, collector, runs, told
from explorer.server import ending, lessons, messages, theme
from explorer.server.stack import MIDDLEWARE, ROUTES

SCRIPT = Path(__file__).resolve().parent / "explorer" / "main.py"


def warm_up() -> None:
    from explorer.memory import passes

    passes.warm_up()


@contextlib.asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    told.begin()
    collector.begin()
    runs.begin()
    theme.read_once()
    messages.gather()
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
    with ending.announced(lessons.leave):
        yield
    await lessons.close()
    background.close()


app = st.App(
    SCRIPT, lifespan=lifespan, routes=ROUTES, middleware=MIDDLEWARE, on_script_error=told.raised
)
