"""What draws each tab. Whoever imports this knows every choice of every tab."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from explorer.analysis import residual
from explorer.layout.tab import VIEWS, Hand, view
from explorer.panels import architecture
from explorer.text import places

FOLDER = __package__ or ""
for each in iter_modules(import_module(FOLDER).__path__):  # what is drawn by hand is said there
    import_module(f"{FOLDER}.{each.name}")

view("flow", Hand(token_of=architecture.first_token))
view("feedforward", Hand(layer_of=residual.largest_ffn))
for tab in places.TABS.values():
    if tab.id not in VIEWS and (tab.panels or tab.views):
        view(tab.id)
