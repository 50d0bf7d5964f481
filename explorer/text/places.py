"""The places of the app and the tabs in each: their names and their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode


@dataclass(frozen=True)
class Place:
    """A place's title, and the titles of its tabs by their ids; the first tab needs no word in the
    address."""

    title: str
    tabs: Mapping[str, str]


# By the names of their files in pages/. A tab has its id in one place alone.
PLACES = {
    "attention": Place(
        "Attention",
        {
            "heads": "Heads",
            "weight": "One weight",
            "aggregated": "Aggregated",
            "circuits": "QK & OV",
            "sentences": "Many sentences",
        },
    ),
    "architecture": Place(
        "Architecture",
        {
            "flow": "Flow",
            "positions": "Positions",
            "residual": "Residual stream",
            "embeddings": "Embeddings",
            "feedforward": "Feed-forward",
        },
    ),
    "predict": Place(
        "Predict",
        {
            "word": "Next or masked word",
            "generate": "Generate",
            "lens": "Logit lens",
            "attribution": "Attribution",
            "translate": "Translate",
        },
    ),
    "experiment": Place(
        "Experiment",
        {"edit": "Edit the model", "patching": "Patching", "compare": "Compare"},
    ),
    "training": Place(
        "Training",
        {"checkpoints": "Checkpoints", "live": "Train live", "twins": "Pre-LN vs post-LN"},
    ),
    "learn": Place("Learn", {"lessons": "Lessons", "concepts": "Concepts", "claims": "Claims"}),
    "classroom": Place("Class", {"classroom": "Class"}),
}
FIRST = "attention"  # it stands at "/"


def place_of(tab: str) -> str:
    """The place of a tab. Raises KeyError for any other id."""
    return _PLACE_OF[tab]


_PLACE_OF = {tab: name for name, place in PLACES.items() for tab in place.tabs}


def first_tab(place: str) -> str:
    """The tab that a place opens on."""
    return next(iter(PLACES[place].tabs))


def title(tab: str) -> str:
    """The title of a tab, with its place."""
    place = PLACES[place_of(tab)]
    own = place.tabs[tab]
    return own if own == place.title else f"{place.title}: {own}"


def address(tab: str, choices: Mapping[str, str]) -> str:
    """The address, path and query, of a tab under these choices."""
    place = place_of(tab)
    parameters = dict(choices) if tab == first_tab(place) else {"tab": tab, **choices}
    query = urlencode(parameters)
    return f"/{'' if place == FIRST else place}{'?' + query if query else ''}"
