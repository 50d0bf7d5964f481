"""What each sub-layer wrote, one token's whole way through them, and what each head wrote."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import head_writes
from explorer.analysis import residual as numbers
from explorer.frame.table import offer_csv
from explorer.memory import models, passes
from explorer.sentences import residual as words
from explorer.sentences.escape import literal
from explorer.sentences.own_code import WHICH_TENSORS
from explorer.views.residual import chart
from explorer.views.residual.screen import Screen, not_shown, pick

TWO = st.column_config.NumberColumn(format="%.2f")


def show(on: Screen) -> None:
    """Every sub-layer's write, and the followed token's way."""
    measure, log = pick("write", numbers.WRITES)
    grid = on.kept(("writes", measure), lambda: numbers.writes(on.stream, measure))
    by = "site by site" if measure == "Norm" else "sub-layer by sub-layer"
    token, label = on.token, literal(on.stream.tokens[on.token])
    way = numbers.followed(on.stream, token)

    def note() -> str:
        adds = numbers.adds(on.stream)
        told = words.written(way, label, adds, numbers.norm_place(on.stream), on.norm)
        if not adds:
            return f"{told}\n\n{words.LOST}"
        found = on.kept(("conservation",), lambda: numbers.conservation(on.stream))
        return f"{told}\n\n{words.conserved(*found)}"

    chart.show(on, grid, f"every token, {by}", log, note)
    st.subheader(f"The whole way of “{label}” (token {token})", anchor=False)
    st.dataframe(way, hide_index=True, column_config=dict.fromkeys(list(way)[1:], TWO))
    line = f"token {token}, {on.stream.tokens[token]}"
    picture = on.picture(line, file=f"token{token}", what=("way", token))
    offer_csv(way, picture.about, picture.file, "This way as CSV")
    on.more(
        ("explorer.analysis import residual",),
        f"grid = residual.writes(stream, {measure!r})",
        "table = residual.table(grid, stream.tokens)",
        f"way = residual.followed(stream, {token})",
        f"turned = residual.rotations(stream, {token})",
    )
    turned = numbers.rotations(on.stream, token)
    st.markdown(words.ROTATIONS)
    st.dataframe(turned, hide_index=True, column_config=dict.fromkeys(list(turned)[1:], TWO))
    st.caption(words.SUM_OF_TURNS)


def heads(on: Screen) -> None:
    """The length of every head's own write."""
    if not models.shows_writes(on.recording):
        not_shown(on, "W_O, through which a head writes", WHICH_TENSORS.format("that is"))
        return
    measure, log = pick("writer", head_writes.HEADS)
    outputs, (recording, stream) = passes.outputs(on.recording), (on.recording, on.stream)
    grid = on.kept(
        ("head writes", measure),
        lambda: head_writes.head_grid(recording, stream, measure, outputs),
    )

    def note() -> str:
        error = on.kept(
            ("heads error",), lambda: head_writes.heads_error(recording, stream, outputs)
        )
        return words.heads(error, recording.model.d_head, recording.model.d_model)

    chart.show(on, grid, "every token, head by head", log, note)
    on.numbers(
        "what each head wrote",
        ("explorer.analysis import head_writes, residual",),
        "outputs = library.outputs(model)",
        f"grid = head_writes.head_grid(recording, stream, {measure!r}, outputs)",
        "table = residual.table(grid, stream.tokens)",
    )
