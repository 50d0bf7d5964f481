"""What a link means: the tab that it leads to, the text and the model that it opens, and its
choices in today's words."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from explorer.panels import link_words
from explorer.panels.spec import DEFAULT_MODEL
from explorer.text import places
from explorer.wording.templates import sentences
from models.contract.spelling import there_are
from models.example_texts import ASKED_TEXT, DEFAULT_TEXT, OPENING_TEXT
from models.runtime import registry

SCREEN = sentences("selection", "screen")


def tab_and_words(address: str) -> tuple[str, dict[str, str]]:
    """The id of the tab and the other words of an address: "/predict?tab=lens&word=it", of the
    query alone "?tab=lens&word=it", or below any server. Raises ValueError for a tab that is not
    there."""
    parts = urlsplit(address)
    words = dict(reversed(parse_qsl(parts.query, keep_blank_values=True)))
    place = parts.path.rstrip("/").rpartition("/")[2]
    if place not in places.PLACES:
        return tab_of(words.pop("tab", "")), words
    return tab_of(words.pop("tab", "") or places.first_tab(place)), words


def no_place(address: str) -> str:
    """A sentence on the path of an address that leads to no place, "" for one that does, for one
    whose query names the tab, and for that of a server."""
    parts = urlsplit(address)
    place = parts.path.rpartition("/")[2]
    if not place or place in places.PLACES or "tab" in dict(parse_qsl(parts.query)):
        return ""
    there = there_are(place, places.PLACES)
    return SCREEN("no_place", place=place, there=there, shown=places.title(tab_of("")))


def tab_of(word: str) -> str:
    """The id of a tab, that of the first one where "". Raises ValueError for one that is not
    there."""
    tab = word or places.first_tab(places.FIRST)
    if tab not in places.ROWS:
        raise ValueError(SCREEN("no_tab", tab=tab, there=there_are(tab, places.ROWS)))
    return tab


def opening(tab: str) -> tuple[str, str]:
    """The text and the model that a bare address of a tab opens."""
    row = places.ROWS[tab]
    if row.needs == "generation" and registry.SMOLLM2 in registry.names():
        return ASKED_TEXT, registry.SMOLLM2
    return OPENING_TEXT if row.text == DEFAULT_TEXT else row.text, DEFAULT_MODEL


def text_and_model(
    words: Mapping[str, str], tab: str, bare: tuple[str, str] | None = None
) -> tuple[str, str]:
    """The text and the model that an address of a tab asks for. bare: those that one means which
    says nothing, or a newer view alone, as `opening` where None."""
    row = places.ROWS[tab]
    more = {name: word for name, word in words.items() if name != "tab"}
    is_newer = row.views is not None and more in [{row.views.choice: to} for to in row.views.newer]
    text, model = (row.text, DEFAULT_MODEL) if more and not is_newer else bare or opening(tab)
    return words.get("text", text), words.get("model", model)


def in_todays_words(words: Mapping[str, str], tab: str) -> dict[str, str]:
    """The words of a link to a tab, as the app has them."""
    views = places.ROWS[tab].views
    of_link = {name: word for name, word in words.items() if name != "tab"}
    if views and views.earlier and of_link:
        of_link = {views.choice: views.earlier} | of_link
    return link_words.in_todays_words(of_link)
