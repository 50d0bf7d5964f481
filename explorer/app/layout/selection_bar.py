"""The selection bar: the word, the other word, the layer and the head of a tab, in the same form on
every tab. The selection is in the address and is kept on other tabs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis.attention import numbered
from explorer.app.state.visit import visit
from explorer.figures.formatting import isolated, shortened
from explorer.panels.choice import EVERY
from explorer.panels.selection import select, stream_of
from models.contract.recording import Stream
from models.runtime.run import Run

LONGEST = 16  # characters of a word on a menu that is closed
EVERY_WORD = -1  # as a query: no word is selected


@dataclass(frozen=True)
class Words:
    """The words to choose from: of rows (queries) and of columns (keys, none where a tab has no use
    for them), and the places of those that are selected. roles: of a chat, whose message each row
    is in, "" for the template (models/tokens/chat.py)."""

    rows: Sequence[str]
    query: int
    keys: Sequence[str] = ()
    key: int = 0
    every: str = ""  # what no selected word is called, "" where one must be
    roles: Sequence[str] = ()
    places: Sequence[int] = ()  # the rows that can be selected, () for all of them


# What the choices are that the bar shows. A browser sends what its menus show with whatever it asks
# for: where one of these has changed since the bar was drawn, that is the state of before.
CAUSES = ("text", "model", "attention", "layer", "head", "token", "source", "weight_at")


def take() -> None:
    """Put the reader's selection in the bar into the choices of the address. To be called before a
    tab reads them."""
    for name, word in pressed().items():
        st.session_state[name] = word


def pressed() -> dict[str, str]:
    """The words of the address that the reader changed in the bar, by their names."""
    state = st.session_state
    causes, drawn = visit.selection_drawn
    if causes != _causes():
        return {}
    now: dict[str, Any] = {name: state.get(name) for name in drawn}
    if not all(isinstance(value, int) for value in now.values()):
        return {}
    changed = {name for name in drawn if now[name] != drawn[name]}
    query, words = now.get("selected_query", EVERY_WORD), dict[str, str]()
    if changed & {"selected_layer", "selected_head"}:
        words["layer"] = str(now["selected_layer"])
        words["head"] = str(now.get("selected_head", state.head))
        if not (state.token or state.source) and query != EVERY_WORD:
            words["token"] = str(query)
    if "selected_query" in changed:
        token = EVERY if query == EVERY_WORD else str(query)
        words |= {"token": token, "source": "", "weight_at": ""}
    elif "selected_key" in changed:
        cell = f"{query}.{now['selected_key']}"
        words |= {"token": str(query), "source": "", "weight_at": cell}
    return words


def _causes() -> tuple[str, ...]:
    return tuple(str(st.session_state.get(name, "")) for name in CAUSES)


def _note(**drawn: int) -> None:
    """Note the selection in the bar, by the keys of its menus."""
    selection = {name: int(value) for name, value in drawn.items()}
    visit.selection_drawn = _causes(), selection


def show(
    words: Words | None,
    size: Sequence[int],
    at: Sequence[int],
    view: Callable[[], None] | None = None,
) -> None:
    """Draw the bar. words: None where a tab shows none; size: the numbers of layers and of heads,
    or that of layers alone; at: those on screen; view: draws the View menu's content."""
    width: Literal["content", "stretch"] = "content" if view is None else "stretch"
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", width=width, key="selection-bar"
    ):
        drawn: dict[str, int] = {}
        if words is not None:
            drawn["selected_query"] = words.query
            if _word_menu(words):
                drawn["selected_key"] = words.key
        for name, n, selected in zip(("Layer", "Head"), size, at):
            _menu(name, n, selected)
            drawn[f"selected_{name.lower()}"] = selected
        _note(**drawn)
        if view is not None:
            view_menu(view)


def view_menu(view: Callable[[], None]) -> None:
    """Draw the View menu. view: draws its content."""
    with st.popover("View", key="view menu", on_change="rerun") as menu:
        if menu.open:
            view()


def draw(run: Run, chosen: Mapping[str, Any], names: Collection[str], every: str = "") -> None:
    """Draw the bar of what is selected in an attention, or in a stream. names: of the layer, the
    head, the token and the key those that it has; every: as of `Words`."""
    recording = run.recording()
    if chosen.get("attention") is not None:
        on = select(run, attention=chosen["attention"])
        stream, size = recording.stream(on.attention.query), on.attention.pattern.shape[:2]
        rows, keys = on.axes.rows, on.axes.keys
    else:
        stream = stream_of(run, chosen)
        size = recording.model.n_layer, recording.model.n_head
        rows, keys = stream.tokens, ()
    words = None
    if "token" in names:
        query = EVERY_WORD if chosen["token"] in (None, EVERY) else chosen["token"]
        key = chosen["source"] if "source" in names else 0
        of_keys = keys if "source" in names else ()
        words = Words(rows, query, of_keys, key, every=every, roles=stream.roles)
    at = [chosen[each] for each in ("layer", "head") if each in names and chosen[each] is not None]
    if words is not None or at:
        show(words, size[: len(at)], at)


def show_word(stream: Stream, query: int, places: Sequence[int] = ()) -> None:
    """Draw the bar of a tab that shows one word, the token `query`. places: as of `Words`."""
    show(Words(stream.tokens, query, roles=stream.roles, places=places), (), ())


def _word_menu(words: Words) -> bool:
    """The menus of the words; True where there is one of keys."""
    visit.selected_query = int(words.query)
    rows = _with_roles(words.rows, words.roles)
    places = words.places or range(len(rows))
    _labelled("Word").selectbox(
        "Word that attends (query)",
        [EVERY_WORD, *places] if words.every else list(places),
        format_func=lambda at: words.every if at == EVERY_WORD else rows[at],
        key="selected_query",
        label_visibility="collapsed",
        width=160,
    )
    if not words.keys or words.query == EVERY_WORD:
        return False
    visit.selected_key = int(words.key)
    _labelled("→").selectbox(
        "Word attended to (key)",
        range(len(words.keys)),
        format_func=_with_roles(words.keys, words.roles).__getitem__,
        key="selected_key",
        label_visibility="collapsed",
        width=160,
    )
    return True


def _with_roles(tokens: Sequence[str], roles: Sequence[str]) -> list[str]:
    """Tokens with their places, and with their roles where they have some: "14 Nepal (user)"."""
    names = [shortened(token, LONGEST) for token in tokens]
    if len(roles) == len(tokens):
        names = [f"{name} ({role})" if role else name for name, role in zip(names, roles)]
    return list(map(isolated, numbered(names)))


def _menu(name: str, n: int, selected: int) -> None:
    """The menu of layers, or of heads."""
    key = f"selected_{name.lower()}"
    if name == "Layer":
        visit.selected_layer = int(selected)
    else:
        visit.selected_head = int(selected)
    _labelled(name).selectbox(name, range(n), key=key, label_visibility="collapsed", width=84)


def _labelled(text: str) -> DeltaGenerator:
    """A place for a menu beside its label, which stay on one line."""
    row = st.container(horizontal=True, vertical_alignment="center", width="content", gap="small")
    row.markdown(text, width="content")
    return row
