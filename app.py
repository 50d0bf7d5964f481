"""The launcher: `streamlit run app.py`. It answers once the first model is in memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from explorer.app.state import host

# Short passes want one thread, and waiting threads that do not spin. Both must be said before torch
# is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import streamlit as st

from explorer.app.classroom import routes
from explorer.app.server import startup_bundle, streamlit_patches
from explorer.app.server.routes import MIDDLEWARE, ROUTES
from explorer.app.state import event_log, garbage_collection, jobs, scheduling

SCRIPT = Path(__file__).resolve().parent / "explorer" / "app" / "main.py"


def warm_up() -> None:
    """Load what a first visit needs: the page's code and the first model. A model that cannot be
    loaded is logged; its page says why."""
    startup_bundle.startup_bundle()

    try:
        host.warm_up()
    except Exception as error:
        event_log.log_exception(error)


@contextlib.asynccontextmanager
async def lifespan(app: st.App) -> AsyncIterator[None]:
    event_log.begin()
    garbage_collection.start()
    scheduling.set_switch_interval()
    streamlit_patches.cache_theme()
    streamlit_patches.batch_messages()
    streamlit_patches.close_loops()
    streamlit_patches.finish_callbacks()
    streamlit_patches.skip_forgotten_widgets()
    streamlit_patches.look_up_values()
    warm_up()
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
