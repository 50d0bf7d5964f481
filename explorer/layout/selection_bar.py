"""The selection bar: the word, the other word, the layer and the head of a tab, in the same form on
every tab. The selection is in the address and is kept on other tabs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import recorded_findings, soft_lookup
from explorer.analysis.attention import numbered, strongest_cell
from explorer.analysis.findings import Finding
from explorer.analysis.formatting import isolated, shortened
from explorer.layout import controls
from explorer.panels.selection import Selection
from explorer.state import url_state
from explorer.state.visit import visit
from models.caching import memo
from models.recording import Recording, Stream

LONGEST = 16  # characters of a word on a menu that is closed
EVERY_WORD = -1  # as a query: no word is selected


@dataclass(frozen=True)
class Words:
    """The words to choose from: of rows (queries) and of columns (keys, none where a tab has no use
    for them), and the places of those that are selected. roles: of a chat, whose message each row
    is in, "" for the template (models/chat.py)."""

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


def take() -> set[str]:
    """Put the reader's selection in the bar into the choices of the address. To be called before a
    tab reads them. The keys of the menus that the reader changed."""
    state = st.session_state
    causes, drawn = visit.selection_drawn
    if causes != _causes():
        return set()
    now: dict[str, Any] = {name: state.get(name) for name in drawn}
    if not all(isinstance(value, int) for value in now.values()):
        return set()
    changed = {name for name in drawn if now[name] != drawn[name]}
    query = now.get("selected_query", EVERY_WORD)
    if changed & {"selected_layer", "selected_head"}:
        controls.take_head(now["selected_layer"], now.get("selected_head", state.head))
        if not (state.token or state.source) and query != EVERY_WORD:
            state.token = str(query)
    if "selected_query" in changed:
        state.token = "" if query == EVERY_WORD else str(query)
        state.selected = "none" if query == EVERY_WORD else ""
        state.source = state.weight_at = ""
    elif "selected_key" in changed:
        state.token, state.source = str(query), ""
        state.weight_at = f"{query}.{now['selected_key']}"
    return changed


def _causes() -> tuple[str, ...]:
    return tuple(str(st.session_state.get(name, "")) for name in CAUSES)


def _note(**drawn: int) -> None:
    """Note the selection in the bar, by the keys of its menus."""
    selection = {name: int(value) for name, value in drawn.items()}
    visit.selection_drawn = _causes(), selection


def show(
    words: Words,
    size: tuple[int, int],
    at: tuple[int, int],
    view: Callable[[], None] | None = None,
) -> None:
    """Draw the bar. size: (layers, heads); at: (layer, head) on screen; view: draws the View menu's
    content."""
    width: Literal["content", "stretch"] = "content" if view is None else "stretch"
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", width=width, key="selection-bar"
    ):
        keys = {"selected_key": words.key} if _word_menu(words) else {}
        _head(size, at)
        _note(
            selected_query=words.query, selected_layer=int(at[0]), selected_head=int(at[1]), **keys
        )
        if view is not None:
            with st.popover("View", key="view menu", on_change="rerun") as menu:
                if menu.open:
                    view()


def word(stream: Stream, default: int) -> int:
    """The bar of a tab that shows one word: the token of the address, `default` where it names
    none."""
    take()
    token = url_state.whole_number("token", len(stream.tokens))
    query = default if token is None else token
    show_word(stream, query)
    return query


def let_go() -> bool:
    """True where the reader let go of the word that a tab opens on."""
    return url_state.one_of("selected", ("", "none")) == "none"


def word_or_every(stream: Stream, default: int) -> int | None:
    """The same with a choice of every word: None for that, `default` where the address names no
    token and no word was let go of."""
    take()
    query = url_state.whole_number("token", len(stream.tokens))
    if query is None and not let_go():
        query = default
    show_word(stream, EVERY_WORD if query is None else query, every="every word")
    return query


def show_word(stream: Stream, query: int, every: str = "", places: Sequence[int] = ()) -> None:
    """Draw the bar of a tab that shows one word, the token `query`. every, places: as of
    `Words`."""
    with st.container(
        horizontal=True, vertical_alignment="center", width="content", key="selection-bar"
    ):
        _word_menu(Words(stream.tokens, query, every=every, roles=stream.roles, places=places))
        _note(selected_query=query)


def word_and_layer(
    stream: Stream, default: int, n_layers: int, layer_of: Callable[[int], int]
) -> tuple[int, int]:
    """The bar of a tab that shows one word in one layer: the token of the address, `default` where
    it names none, and its layer, `layer_of(token)` where it names none."""
    take()
    token = url_state.whole_number("token", len(stream.tokens))
    query = default if token is None else token
    layer = url_state.whole_number("layer", n_layers)
    layer = layer_of(query) if layer is None else layer
    with st.container(
        horizontal=True, vertical_alignment="center", width="content", key="selection-bar"
    ):
        _word_menu(Words(stream.tokens, query, roles=stream.roles))
        _menu("Layer", n_layers, layer)
        _note(selected_query=query, selected_layer=layer)
    return query, layer


def head(size: tuple[int, int], at: tuple[int, int]) -> None:
    """The bar of a tab that shows a head and no word. Arguments as of `show`."""
    with st.container(
        horizontal=True, vertical_alignment="center", width="content", key="selection-bar"
    ):
        _head(size, at)
        _note(selected_layer=int(at[0]), selected_head=int(at[1]))


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


def _head(size: tuple[int, int], at: tuple[int, int]) -> None:
    for name, n, selected in zip(("Layer", "Head"), size, at):
        _menu(name, n, selected)


def _menu(name: str, n: int, selected: int) -> None:
    """The menu of layers, or of heads."""
    key = f"selected_{name.lower()}"
    st.session_state[key] = int(selected)
    _labelled(name).selectbox(name, range(n), key=key, label_visibility="collapsed", width=84)


def _labelled(text: str) -> DeltaGenerator:
    """A place for a menu beside its label, which stay on one line."""
    row = st.container(horizontal=True, vertical_alignment="center", width="content", gap="small")
    row.markdown(text, width="content")
    return row


def choose(
    selection: Selection,
    view: Callable[[], None] | None = None,
    opening: Callable[[Recording, Stream], int] | None = None,
) -> Selection:
    """The head and the query of the address, with the bar. Where it names none: those of the
    strongest finding, else of the row whose second key matters most. view: as of `show`; opening:
    gives the query that is shown where the address names none."""
    take()
    *size, rows = selection.attention.pattern.shape[:3]
    layer, head = controls.head_on_screen(size) or (None, None)
    query = url_state.whole_number("token", rows)
    stream = selection.recording.stream(selection.attention.query)
    if query is None and opening is not None:
        query = opening(selection.recording, stream)
    if layer is None and query is None:
        first = recorded_findings.opening_finding(selection.recording, selection.attention)
        if first is not None and first.query >= 0:
            layer, head, query = *first.at, first.query
    if layer is None or head is None or query is None:
        axes, named = selection.axes, (layer, head, query)
        layer, head, query = memo(
            selection.recording,
            ("divided", selection.attention.name, *named),
            lambda: soft_lookup.most_divided_row(
                selection.attention, axes.rows, axes.keys, axes.special, *named
            ),
        )
    words = Words(
        selection.axes.rows,
        query,
        roles=stream.roles,
    )
    show(words, (size[0], size[1]), (layer, head), view)
    return replace(selection, layer=layer, head=head, query=query)


def cell(selection: Selection) -> tuple[Selection, int]:
    """The head, the query and the key of the address, with the bar: what is chosen, or else what
    the strongest finding is seen in."""
    take()
    attention, (layers, heads) = selection.attention, selection.attention.pattern.shape[:2]
    at, first = controls.head_on_screen((layers, heads)), None
    if at is None:
        first = recorded_findings.opening_finding(selection.recording, attention)
        at = recorded_findings.opening_head(selection.recording, attention)
    query, key = _cell(selection, at, first)
    roles = selection.recording.stream(attention.query).roles
    show(
        Words(selection.axes.rows, query, selection.axes.keys, key, roles=roles),
        (layers, heads),
        at,
    )
    return replace(selection, layer=at[0], head=at[1], query=query), key


def _cell(selection: Selection, at: tuple[int, int], first: Finding | None) -> tuple[int, int]:
    """The cell on screen: the one that is chosen, that of the strongest finding, or the largest of
    the row or, between two texts, of the column that is chosen."""
    row = url_state.whole_number("token", len(selection.axes.rows))
    has_column = selection.is_across and row is None
    column = url_state.whole_number("source", len(selection.axes.keys) if has_column else 0)
    if row is None and column is None and first is not None and first.query >= 0 and first.keys:
        return first.query, first.keys[0]
    key = key_of(row, len(selection.axes.keys))
    if row is not None and key is not None:
        return row, key
    return strongest_cell(
        selection.attention.pattern[at], selection.attention.allowed[at[0]], row, column
    )


def key_of(row: int | None, n: int) -> int | None:
    """The key, one of n, of the cell that is selected in a row; None, and the cell is forgotten,
    where it is of another row or no cell."""
    query, _, key = st.session_state.weight_at.partition(".")
    if query == str(row) and key.isdecimal() and len(key) < 6 and int(key) < n:
        return int(key)
    st.session_state.weight_at = ""
    return None


def take_cell(panel: str, query: int) -> None:
    """Select the cell that was pressed in a panel, or the key in the row of `query`."""
    state = st.session_state
    pressed = state[panel].get("select") or {}
    if "key" in pressed:
        state.token = str(pressed.get("token", query))
        state.weight_at = f"{state.token}.{pressed['key']}"
        state.source = ""
