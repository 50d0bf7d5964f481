"""The presenter on every page: P fills the screen with the current picture."""

from __future__ import annotations

from explorer.components import presenter


def listen() -> None:
    """Put its keys on the page."""
    presenter.show()
