"""Pages of the app as a reader opens them, without a browser."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent
MAIN = str(ROOT / "explorer" / "main.py")


def page_at(page: str, **asked: str) -> AppTest:
    """A page by the name of its file, opened at an address with these choices."""
    app = AppTest.from_file(MAIN, default_timeout=120)
    for name, value in asked.items():
        app.query_params[name] = value
    if page != "attention":  # which the app opens on
        app.switch_page(str(ROOT / "pages" / f"{page}.py"))
    return app.run()
