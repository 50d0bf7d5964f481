"""The residual stream of both runs: how long a token's vectors are, and how far they moved."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import interventions
from explorer.layout import export_menu, output
from explorer.layout.output import with_table
from explorer.state import cache
from explorer.state.cache import run_of
from explorer.text import head_naming
from explorer.text.markdown_escape import literal
from explorer.views.switches.edit_actions import shown
from explorer.views.switches.run_pair import Runs
from models.recording import Recording

LONGEST = 12  # characters of a token in a legend


def show(on: Runs) -> None:
    """Both paths of the token looked at, with the mean of all tokens beside it."""
    name = pick_stream(on.plain)
    stream = on.plain.stream(name)
    token = min(on.token, len(stream.tokens) - 1)
    of = cache.cached_for(
        on.other,
        ("paths", name),
        lambda: interventions.stream_paths(stream, on.other.stream(name)),
        weigh=lambda made: 4 * made.before.nbytes,
    )
    several = f", {name} stream" if len(on.plain.streams) > 1 else ""
    about = on.caption(f"states after each sub-layer and its norm{several}")
    label = stream.tokens[token]
    where = literal(f"“{label}” (token {token})")
    st.subheader(f"Vector norms and distances of {where}", anchor=False)
    columns = dict(interventions.path_columns(of, token))
    columns["state"] = [head_naming.short_site(each) for each in of.places]
    left, right = st.columns(2, gap="medium")
    with left:
        lengths(columns, label[:LONGEST], about)
    with right:
        distances(columns, label[:LONGEST], about, interventions.needs_log_scale(of))
    st.caption("“input” enters layer 0. A distance of 1 equals the norm of the vector before.")
    export_menu.offer_numbers_code(
        f"both paths of token {token}",
        (run_of(on.plain), run_of(on.other)),
        ("interventions", "head_naming_text"),
        (
            f"of = interventions.stream_paths(recording.stream({name!r}), other.stream({name!r}))",
            f"table = dict(interventions.path_columns(of, {token}))",
            'table["state"] = [head_naming_text.short_site(each) for each in of.places]',
        ),
    )
    with_table(
        columns,
        (f"token {token}, {label}", *about),
        f"headlight-{on.model}-switches-{name}-token{token}",
        "Both paths as a table",
    )


def lengths(columns: dict, label: str, about: tuple[str, ...]) -> None:
    """The length of a token's vectors in both runs."""
    from explorer.figures.interventions import lines

    series = [
        (f"{when}, {who}", columns[f"{mean}length {when}"])
        for who, mean in ((label, ""), ("mean of all tokens", "mean "))
        for when in ("before", "after")
    ]
    about = "Norm of the vectors", *about
    figure = lines(series, about, columns["state"], "state", "length", log=True, named=True)
    output.plotly_chart(figure, "lengths", "Norm of the vectors before and after, by state")


def distances(columns: dict, label: str, about: tuple[str, ...], log: bool) -> None:
    """How far apart the two runs' vectors lie."""
    from explorer.figures.interventions import lines

    what = "distance / length before"
    series = [(label, columns[what]), ("mean of all tokens", columns[f"mean {what}"])]
    about = "Distance between the two runs’ vectors", *about
    unit = "|after − before| / |before|"
    figure = lines(series, about, columns["state"], "state", unit, log=log, named=True)
    output.plotly_chart(figure, "distances", "Distance between the two runs' vectors by state")


def pick_stream(recording: Recording) -> str:
    """The stream on screen, with the control that chooses it where there are several."""
    streams = tuple(stream.name for stream in recording.streams)
    name = st.session_state.stream if st.session_state.stream in streams else streams[-1]
    if len(streams) > 1:
        shown("stream of", name)
        st.segmented_control(
            "Stream", streams, key="stream of", required=True, on_change=take_stream
        )
    return name


def take_stream() -> None:
    """The stream chosen."""
    st.session_state.stream = st.session_state["stream of"]
