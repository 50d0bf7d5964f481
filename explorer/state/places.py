"""The places of the app and the tabs in each: their names, their addresses, and where a page of an
earlier version is now."""

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
            "diagram": "Diagram",
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
    "learn": Place("Learn", {"tour": "Tour", "concepts": "Concepts", "claims": "Claims"}),
    "classroom": Place("Class", {"classroom": "Class"}),
}
FIRST = "attention"  # it stands at "/"

# The pages of earlier versions by their addresses, and the tab that each is now.
PAGES_BEFORE = {
    "attention": "heads",
    "anatomy": "weight",
    "summaries": "aggregated",
    "sentences": "sentences",
    "positions": "positions",
    "residual": "residual",
    "embeddings": "embeddings",
    "predictions": "word",
    "translation": "translate",
    "switches": "edit",
    "compare": "compare",
    "training": "checkpoints",
    "tour": "tour",
    "lookup": "concepts",
    "claims": "claims",
}
# Of a page that is several tabs now: the choices that lead to another than the first, strongest
# first, as (page, choice, value) with "" for any value. A choice with its value is the tab itself.
CHOICES_BEFORE = (
    ("lookup", "look_at", "Words", "circuits"),
    ("switches", "effects", "Patching", "patching"),
    ("switches", "patch", "", "patching"),
    ("switches", "donor", "", "patching"),
    ("training", "train_view", "Live", "live"),
    ("training", "train_view", "Twins", "twins"),
    ("predictions", "part", "", "attribution"),
    ("predictions", "against", "", "attribution"),
    ("predictions", "ffn", "", "attribution"),
    ("predictions", "neuron", "", "attribution"),
    ("predictions", "word", "", "attribution"),
    ("predictions", "site", "", "lens"),
    ("predictions", "lens", "", "lens"),
    ("predictions", "said", "", "generate"),
    ("predictions", "temperature", "", "generate"),
    ("predictions", "top_k", "", "generate"),
    ("predictions", "top_p", "", "generate"),
    ("predictions", "seed", "", "generate"),
)
# Choices of earlier versions: a tab now, and an experiment that the page opened on.
GONE = {"train_view", "experiment"}


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


def tab_of(page: str, choices: Mapping[str, str]) -> str:
    """The tab of a page of an earlier version under these choices; the id of a tab is that tab.
    Raises KeyError for any other page."""
    for name, choice, value, tab in CHOICES_BEFORE:
        if name == page and choice in choices and value in ("", choices[choice]):
            return tab
    return page if page in _PLACE_OF and page not in PAGES_BEFORE else PAGES_BEFORE[page]


def address(page: str, choices: Mapping[str, str]) -> str:
    """The address, path and query, of a tab or of a page of an earlier version under these
    choices. Choices that no longer exist are left out."""
    tab = tab_of(page, choices)
    own = {(choice, value) for *_, choice, value, of in CHOICES_BEFORE if of == tab and value}
    parameters = {
        name: value
        for name, value in choices.items()
        if (name, value) not in own and name not in GONE
    }
    place = place_of(tab)
    if tab != first_tab(place):
        parameters = {"tab": tab, **parameters}
    query = urlencode(parameters)
    return f"/{'' if place == FIRST else place}{'?' + query if query else ''}"
