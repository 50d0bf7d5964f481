"""The numbers behind a picture: as a table on the page, and as files in the Export menu."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.app import mounts
from explorer.app.layout import current_recording, export_menu, navigation
from explorer.app.state import models, url_state
from explorer.app.state.visit import visit
from explorer.figures.csv import Cells, Columns, count_cells, file_of, to_csv
from explorer.panels import address
from explorer.panels.spec import Panel
from explorer.text import glossary, places
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences
from models.contract.recording_file import to_npz
from models.example_texts import OPENING_TEXT
from models.runtime.run import Run

WORDS = sentences("frame", "table")

# The words of the field, explained where they stand: on hover, or in one press on a phone.


def caption(text: str, *more: str, width: Literal["stretch", "content"] = "stretch") -> None:
    """A caption whose own terms, and `more`, are explained beside it."""
    st.caption(text, help=glossary.explained(text, *more), width=width)


def markdown(text: str, *more: str) -> None:
    """Markdown whose own terms, and `more`, are explained beside it."""
    st.markdown(text, help=glossary.explained(text, *more))


MOST_CELLS = 60_000  # of a table on screen: with more a browser is slow
ROW, HEAD, TALLEST = 35, 40, 440  # pixels
ALL_NUMBERS = "All numbers of this figure as a table"
MAX_LABEL = 60  # letters of a file's name in the menu


def offer_csv(
    columns: Columns | Callable[[], Columns],
    about: Sequence[str],
    file: str,
    label: str = "",
) -> None:
    """Put named columns into the Export menu as a CSV file, by `label` or by the first words
    `about` them. A function of columns is called on download; it runs outside the visit."""
    make = lambda: file_of(to_csv(_evaluated(columns), about))
    export_menu.offer(label or f"{_short(about[0])} as CSV", f"{file}.csv", "text/csv", make)


def _short(words: str) -> str:
    return words if len(words) <= MAX_LABEL else f"{words[: MAX_LABEL - 2].rstrip()} …"


def offer_recording(run: Run) -> None:
    """Put everything that was recorded in a run into the Export menu. It keeps names and no
    arrays."""
    make = lambda: to_npz(run.recording())
    edited = "-edited" if run.edits else ""
    name, mime = f"headlight-{run.model}{edited}.npz", "application/octet-stream"
    label = "All activations with edits" if run.edits else "All activations"
    export_menu.offer(f"{label} (NPZ)", name, mime, make)


def data_table(columns: Columns, alt: str) -> None:
    """Named columns as a table."""
    if count_cells(columns) > MOST_CELLS:
        st.info(WORDS("too_many_cells", n=count_cells(columns)))
        return
    n = max(map(len, columns.values()), default=0)
    st.dataframe(
        columns,
        hide_index=True,
        height=min(TALLEST, HEAD + ROW * n),
        column_config={
            name: st.column_config.NumberColumn(format="%.4g")
            for name, values in columns.items()
            if _has_fractions(values)
        },
        alt=alt,
    )


def links(key: str) -> DeltaGenerator:
    """A row of text links below a figure, to be filled: each opens its part below the row."""
    return st.container(horizontal=True, vertical_alignment="center", key=f"links {key}")


def with_table(
    columns: Columns | Callable[[], Columns],
    about: Sequence[str],
    file: str,
    label: str = ALL_NUMBERS,
    opened: bool = False,
    below: Callable[[], None] | None = None,
) -> None:
    """A table that can be opened, built when it is; its file is in the Export menu. `about` begins
    with the content of the table. opened: it is open at first. below: draws what stands below it
    then."""
    with st.expander(label, key=f"table {file}", expanded=opened, on_change="rerun") as box:
        if box.open:
            data_table(_evaluated(columns), about[0] if about else label)
            if below is not None:
                below()
    title = "" if label == ALL_NUMBERS else re.sub(r",? ?[Aa]s a table$", "", label)
    csv_label = f"{title} as CSV" if title else ""
    offer_csv(columns, about, file, csv_label)


def _evaluated(columns: Columns | Callable[[], Columns]) -> Columns:
    return columns() if callable(columns) else columns


def _has_fractions(values: Cells) -> bool:
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    return kind == "f" or (not kind and any(isinstance(value, float) for value in values))


# A panel on a page.


def put_pressed(pressed: Mapping[str, object]) -> None:
    """Put what was pressed in a panel into the choices of the address."""
    for name, value in pressed.items():
        if name in url_state.names():
            st.session_state[name] = str(value)


def show_panel(
    make: Callable[[], Panel] | Panel,
    key: str,
    take: Callable[[Mapping[str, object]], None] = put_pressed,
) -> Panel | None:
    """Draw a panel, or that which a function makes, with its table below it, and offer its files.
    Where the function raises a ValueError, its message is shown instead, and None is returned.
    take: puts what was pressed into the choices of the address."""
    assert key not in url_state.names(), "what a panel sends would be dropped with its page"
    follow_press()
    try:
        panel = make if isinstance(make, Panel) else make()
    except ValueError as reason:
        st.info(literal(str(reason)))
        return None
    mounts.panel(panel.encode(), key, partial(_take_selection, key, take))
    export_menu.offer_panel(panel)
    with links(key):
        panel_table(panel)
    return panel


def offers(panel: str, run: Run, choices: Mapping[str, object] | None = None) -> None:
    """Draw the offers of a panel, by its name, on a run under these choices; the browser asks for
    it once the page stands. Where nothing changes what is said of a text it offers a sentence where
    something does. Nothing of a run that covers a word: an offer tells what it is."""
    if run.covered is not None:
        return
    more = {name: str(value) for name, value in (choices or {}).items()}
    words = {"model": run.model, "text": run.text, **more}
    if url_state.fits_address(run.text) and models.has_every_visitor(run.model):
        works = "" if more or run.text == OPENING_TEXT else urlencode({"text": OPENING_TEXT})
        mounts.offers(address.of_words(panel, words, "json"), works, "offers", _take_offer)


def _take_offer() -> None:
    """Follow a press on an offer, to where it is seen. For a callback."""
    pressed = str((visit.offers.get("select") or {}).get("address", ""))
    put_address(dict(parse_qsl(pressed)))


def follow_press() -> None:
    """Go to where the last press leads, as far as that is another tab or another run."""
    navigation.follow_press()
    if visit.new_run:
        visit.new_run = False
        st.rerun()  # the whole page: it is of another run now


def in_plotly(panel: Panel) -> None:
    """A switch for a panel's figures as Plotly draws them, to zoom and to measure, made on a
    press."""
    key = f"plotly {panel.file}"
    if st.toggle(WORDS("in_plotly"), key=key):
        drawn = panel.plotly(dark=st.context.theme.type == "dark")
        image = {"format": "svg", "filename": panel.file}
        config = {"displaylogo": False, "toImageButtonOptions": image}
        st.plotly_chart(drawn, key=f"{key} chart", theme=None, config=config, alt=panel.title)


def panel_table(panel: Panel, label: str = ALL_NUMBERS, opened: bool = False) -> None:
    """The table of a panel below it, as `with_table`; below that of one that one studies the switch
    to Plotly."""
    is_studied = panel.name.partition(".")[0] == places.ROWS[visit.page].studied
    below = partial(in_plotly, panel) if is_studied else None
    with_table(panel.table, (panel.title, *panel.caption), panel.file, label, opened, below)


def _take_selection(key: str, take: Callable[[Mapping[str, object]], None]) -> None:
    """Follow a press in a panel: to another tab, another text, and other choices."""
    # A press in a panel may arrive when the page is on its way to another place.
    chosen = dict((st.session_state.get(key) or {}).get("select") or {})
    if address := chosen.pop("address", ""):  # several choices at once, and the tab that shows them
        chosen |= dict(parse_qsl(address, keep_blank_values=True))
    put_address(chosen, take)


def put_address(
    chosen: dict[str, object], take: Callable[[Mapping[str, object]], None] = put_pressed
) -> None:
    """Take the words of an address that a press leads to. take: puts those of the choices. For a
    callback; `follow_press` goes there."""
    visit.tab_of_press = str(chosen.pop("tab", ""))
    visit.new_run = not {"edits", "text"}.isdisjoint(chosen)
    if "text" in chosen:
        current_recording.take_text(str(chosen.pop("text")))
        # What was chosen before too went with the last text.
        for name in chosen.keys() & {*url_state.depending_on("text")}:
            st.session_state[name] = str(chosen[name])
    take(chosen)
