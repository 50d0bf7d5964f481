"""A panel in a notebook that is pressed: the choice comes back to Python, and the panel of it is
drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from explorer.figures.html_export import FRAME_HEIGHT


class PanelWidget(anywidget.AnyWidget):
    """A panel in a cell.

    panel: the one on show; set another to show it. chosen: what was pressed last, by the names that
    an address has for it, such as {"layer": "1", "head": "5"}; `observe(function, "chosen")` hears
    of each press. height: of the cell, in pixels."""

    _esm = Path(__file__).with_suffix(".js")
    panel: Any = traitlets.Any()
    chosen = traitlets.Dict().tag(sync=True)
    height = traitlets.Int(FRAME_HEIGHT).tag(sync=True)
    document = traitlets.Unicode().tag(sync=True)

    def __init__(self, panel: Any, **traits: Any) -> None:
        super().__init__(panel=panel, **traits)

    @traitlets.observe("panel")
    def _draw(self, change: Any) -> None:
        self.document = str(change.new.html())

    @traitlets.observe("chosen")
    def _follow(self, change: Any) -> None:
        self.panel = self.panel.with_choices(change.new)
