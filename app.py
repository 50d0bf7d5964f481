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

from explorer.classroom import routes
from explorer.server import startup_bundle, streamlit_patches
from explorer.server.routes import MIDDLEWARE, ROUTES
from explorer.state import event_log, garbage_collection, jobs, scheduling

SCRIPT = Path(__file__).resolve().parent / "explorer" / "main.py"


def warm_up() -> None:
    """In the order in which a first visit wants it: the page's code, then the model."""
    startup_bundle.startup_bundle()
    from explorer.state import cache

    cache.warm_up()


@contextlib.asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    event_log.begin()
    garbage_collection.start()
    scheduling.set_switch_interval()
    streamlit_patches.cache_theme()
    streamlit_patches.batch_messages()
    streamlit_patches.finish_callbacks()
    streamlit_patches.skip_forgotten_widgets()
    threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
    with streamlit_patches.on_shutdown(routes.leave):
        yield
    await routes.close()
    jobs.close()


app = st.App(
    SCRIPT,
    lifespan=lifespan,
    routes=ROUTES,
    middleware=MIDDLEWARE,
    on_script_error=event_log.log_exception,
)
