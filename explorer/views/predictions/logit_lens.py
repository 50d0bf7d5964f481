"""What every site would say at every token, the held cell's words, and its token's way through the
sites."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from explorer.analysis import logit_lens, residual
from explorer.analysis.caption import caption
from explorer.analysis.csv import Columns
from explorer.analysis.formatting import probability
from explorer.analysis.terminology import recording_norm_name
from explorer.components import bars
from explorer.components import logit_lens as logit_lens_components
from explorer.layout import export_menu
from explorer.layout.controls import pick
from explorer.layout.output import with_table
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.text import logit_lens as logit_lens_text
from explorer.text.markdown_escape import literal
from explorer.views.predictions.page_state import nothing
from models.edits import HideToken
from models.recording import Recording, Stream
from models.results import Lens


@dataclass(frozen=True, eq=False)
class LensSelection:
    """A recording, its lens, and the token looked at. It is made anew in every run and nowhere
    kept; `source` names the recording."""

    source: Run
    recording: Recording
    found: Lens
    token: int

    @property
    def model(self) -> str:
        """The model's name."""
        return self.recording.model.name

    @property
    def stream(self) -> Stream:
        """The stream that words are read from."""
        return logit_lens.read_stream(self.recording)


def inside(source: Run, place: int | None) -> LensSelection:
    """What is looked at: the token of the address, or `place` where it names none."""
    with st.spinner("Reading the words off every site …"):
        recording = source.recording()
        stream = logit_lens.read_stream(recording)
        found = cache.lens(recording, stream.name)
    token = url_state.whole_number("token", len(stream.tokens))
    if token is None:
        token = logit_lens.default_token(recording) if place is None else place
    return LensSelection(source, recording, found, token)


def show(on: LensSelection) -> None:
    """The table, the held cell, and how it is made."""
    recording, found, state = on.recording, on.found, st.session_state
    plain = cache.record(on.model, on.source.text, (), on.source.target)
    right = logit_lens.target_ids(recording, plain)
    if state.site not in found.sites:
        state.site = ""
    site = found.sites.index(state.site or found.sites[-1])
    st.subheader(
        "What would it say at each layer?",
        anchor=False,
        help="The logit lens (nostalgebraist, 2020): the model’s own readout, applied to every "
        "state on the way as if it were the last one.",
    )
    asks_next = logit_lens.predicts_next(recording)
    st.markdown(
        logit_lens_text.TABLE + (logit_lens_text.NEXT if asks_next else logit_lens_text.HERE)
    )
    hidden = tuple(edit.token for edit in on.source.edits if isinstance(edit, HideToken))
    take = partial(take_cell, found.sites, hidden)
    logit_lens_components.show_grid(
        table(on, right, measure()), "lens table", lambda: take("lens table")
    )
    way = logit_lens.column(found, on.token)
    ids = logit_lens.named_ids(way, right)
    labels = dict(zip(ids.tolist(), models.labels(on.model, ids)))
    words, states = st.columns([5, 7], gap="large")
    with words:
        top_words(on, way[site], labels, int(right[on.token]))
    with states:
        name = cache.picture_name(recording, "way", site, on.token)
        data = logit_lens_components.way(way, site, labels, axes(on), name)
        logit_lens_components.show_way(data, "lens way", lambda: take("lens way"))
    st.markdown(formula(on, way[site], labels))
    numbers_of(on)
    with_table(
        partial(columns, on.source),
        caption(recording, "logit lens"),
        f"headlight-{on.model}-lens",
        "Every number of the lens as a table",
        form="%.5f",
    )


def measure() -> str:
    """What the cells are coloured by, with the control that chooses it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        chosen = pick("Colour of the cells", tuple(logit_lens.MEASURES), "lens", bare=True)
        st.caption(f"Colour: {logit_lens.MEASURES[chosen]}", width="stretch")
    return chosen


def axes(on: LensSelection) -> logit_lens_components.LensAxes:
    """What the table's rows and columns are called."""
    words = cache.predicted_words(on.recording, logit_lens.predicted_tokens(on.found))
    return logit_lens_components.LensAxes(
        [logit_lens.site_name(site) for site in on.found.sites],
        [logit_lens.site_words(site) for site in on.found.sites],
        on.stream.tokens,
        {id: each.word for id, each in words.items()},
    )


def table(on: LensSelection, right: Any, by: str) -> bytes:
    """The picture of the table, made once in each colour."""
    what = "lens picture", by

    def made() -> bytes:
        ids = logit_lens.vocabulary(on.found, right, logit_lens_components.TOP_SHOWN)
        words = dict(zip(ids.tolist(), models.labels(on.model, ids)))
        asks_next = logit_lens.predicts_next(on.recording)
        asked = logit_lens_components.CellContent(asks_next, by, on.recording.model.n_vocab)
        name = cache.picture_name(on.recording, *what)
        return logit_lens_components.grid(on.found, right, words, axes(on), asked, name)

    return cache.cached_for(on.recording, what, made, weigh=len)


def top_words(
    on: LensSelection, cell: logit_lens.LensCell, labels: dict[int, str], right: int
) -> None:
    """The likeliest words of the held cell, and all others together."""
    where = literal(on.stream.tokens[cell.token])
    site = logit_lens.site_words(on.found.sites[cell.site])
    st.markdown(f"**{site}, at {where} (token {cell.token})**")
    marks = {cell.final_id: "the answer"}
    marks[right] = "✓ the answer" if right == cell.final_id else "✓ right"
    rows = [
        bars.Bar(labels[int(id)], p, (probability(p),), mark=marks.get(int(id), ""))
        for id, p in zip(cell.ids, cell.probabilities)
    ]
    rest = f"all {on.recording.model.n_vocab - len(cell.ids):,} other words"
    rows.append(bars.Bar(rest, cell.others, (probability(cell.others),), tone="rest"))
    data = bars.payload(
        rows,
        ("probability",),
        about="The likeliest words of this cell.",
        token=cache.picture_name(on.recording, "top words", cell.site, cell.token),
        full=1.0,
    )
    bars.show(data, "top words", on_choice=nothing)
    st.caption("A full bar is 1; together they make 1.")


def formula(on: LensSelection, cell: logit_lens.LensCell, labels: dict[int, str]) -> str:
    """How the held cell is made."""
    stream, readout = on.stream, readout_of(on.model)
    norm = recording_norm_name(on.recording, models.capabilities(on.model).rms)
    asked = not (stream.name == "encoder" and stream.special[cell.token])
    site = on.found.sites[cell.site]
    read = logit_lens_text.how_read(residual.norm_place(stream), readout[0], site, norm)
    n_words = on.recording.model.n_vocab
    said = logit_lens_text.formula(cell, labels[int(cell.ids[0])], read, readout, n_words)
    return said if asked else logit_lens_text.never_asked(stream.tokens[cell.token]) + said


def readout_of(model: str) -> tuple[str, bool]:
    """How a model says its words, and whether a bias is added to their scores."""
    return str(models.readout(model)), models.capabilities(model).readout_bias


def columns(source: Run) -> Columns:
    """Every number of the lens, made from the recording's name."""
    recording = source.recording()
    stream = logit_lens.read_stream(recording)
    found = cache.lens(recording, stream.name)
    ids = logit_lens.vocabulary(found, found.final_id, found.top_ids.shape[-1])
    labels = dict(zip(ids.tolist(), models.labels(source.model, ids)))
    return logit_lens.file_table(found, stream.tokens, labels)


def numbers_of(on: LensSelection) -> None:
    """The lines of Python that give every number of the lens."""
    export_menu.offer_more_code(
        ("logit_lens",),
        f"stream = recording.stream({on.stream.name!r})",
        "found = model.lens(recording, stream.name)",
        "ids = logit_lens.vocabulary(found, found.final_id, found.top_ids.shape[-1])",
        "labels = dict(zip(ids.tolist(), model.labels(ids)))",
        "every = logit_lens.file_table(found, stream.tokens, labels)",
    )


def take_cell(sites: tuple[str, ...], hidden: tuple[int, ...], key: str) -> None:
    """A choice in the table or in a token's way. What is hidden stays hidden: to look at a word is
    not to hide it."""
    state = st.session_state
    site, _, token = (state[key].get("cell") or "").partition(".")
    if not token:
        return
    state.site, state.token = sites[int(site)], token
    if not state.hidden and hidden:
        state.hidden = ".".join(map(str, hidden))
