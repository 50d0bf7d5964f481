"""The functions that draw the tabs. Whoever imports this knows every choice of every tab."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from explorer.app.layout.tab import VIEWS, view
from explorer.text import places

FOLDER = __package__ or ""
for each in iter_modules(import_module(FOLDER).__path__):  # what is drawn by hand is said there
    import_module(f"{FOLDER}.{each.name}")

for tab in places.ROWS.values():
    if tab.id not in VIEWS and (tab.panels or tab.views):
        view(tab.id)
