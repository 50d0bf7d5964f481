"""What each sub-layer wrote, one token's whole way through them, and what each head wrote."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import consistency, residual
from explorer.layout.output import offer_csv
from explorer.state import cache, models
from explorer.text import residual as residual_text
from explorer.text.capability_messages import WHICH_TENSORS
from explorer.text.markdown_escape import literal
from explorer.views.residual import chart
from explorer.views.residual.page_state import ResidualState, not_shown, pick

TWO = st.column_config.NumberColumn(format="%.2f")


def show(on: ResidualState) -> None:
    """Every sub-layer's write, and the followed token's way."""
    measure, log = pick("write", residual.WRITES)
    grid = on.kept(("writes", measure), lambda: residual.write_grid(on.stream, measure))
    by = "site by site" if measure == "Norm" else "sub-layer by sub-layer"
    token, label = on.token, literal(on.stream.tokens[on.token])
    way = residual.token_path(on.stream, token)

    def note() -> str:
        adds = residual.has_residual(on.stream)
        told = residual_text.written(way, label, adds, residual.norm_place(on.stream), on.norm)
        if not adds:
            return f"{told}\n\n{residual_text.LOST}"
        found = on.kept(("conservation",), lambda: residual.residual_error(on.stream))
        return f"{told}\n\n{residual_text.conserved(*found)}"

    chart.show(on, grid, f"every token, {by}", log, note)
    st.subheader(f"The whole way of “{label}” (token {token})", anchor=False)
    st.dataframe(way, hide_index=True, column_config=dict.fromkeys(list(way)[1:], TWO))
    line = f"token {token}, {on.stream.tokens[token]}"
    picture = on.picture(line, file=f"token{token}", what=("way", token))
    offer_csv(way, picture.about, picture.file, "This way as CSV")
    on.more(
        ("residual",),
        f"grid = residual.write_grid(stream, {measure!r})",
        "table = residual.table(grid, stream.tokens)",
        f"way = residual.token_path(stream, {token})",
        f"turned = residual.rotations(stream, {token})",
    )
    turned = residual.rotations(on.stream, token)
    st.markdown(residual_text.ROTATIONS)
    st.dataframe(turned, hide_index=True, column_config=dict.fromkeys(list(turned)[1:], TWO))
    st.caption(residual_text.SUM_OF_TURNS)


def heads(on: ResidualState) -> None:
    """The length of every head's own write."""
    if not models.shows_writes(on.recording):
        not_shown(on, "W_O, through which a head writes", WHICH_TENSORS.format("that is"))
        return
    measure, log = pick("writer", consistency.HEADS)
    outputs, (recording, stream) = cache.outputs(on.recording), (on.recording, on.stream)
    grid = on.kept(
        ("head writes", measure),
        lambda: consistency.head_grid(recording, stream, measure, outputs),
    )

    def note() -> str:
        error = on.kept(
            ("heads error",), lambda: consistency.heads_error(recording, stream, outputs)
        )
        return residual_text.heads(error, recording.model.d_head, recording.model.d_model)

    chart.show(on, grid, "every token, head by head", log, note)
    on.numbers(
        "what each head wrote",
        (
            "consistency",
            "residual",
        ),
        "outputs = model.outputs()",
        f"grid = consistency.head_grid(recording, stream, {measure!r}, outputs)",
        "table = residual.table(grid, stream.tokens)",
    )
