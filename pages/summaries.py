"""Summaries: what do all heads say together, and can you trust the sum?"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from explorer.analysis import attention as matrices
from explorer.analysis import summaries as numbers
from explorer.analysis.caption import model_line
from explorer.components import matrix as pictures
from explorer.frame import onscreen
from explorer.frame.picker import attention_names, axes_of, pick_attention
from explorer.frame.table import csv_button, with_table
from explorer.memory import address, models, passes, shelf
from explorer.sentences.escape import literal
from models.recording import Attention, Recording

SUMS = ("Mean", "Max", "Rollout", "Flow", "Values", "Writes")
SUM_LABELS = {
    "Mean": "Mean",
    "Max": "Max",
    "Rollout": "Rollout",
    "Flow": "Flow",
    "Values": "Weight × value",
    "Writes": "Head writes",
}
# One line that defines it, with its source; and one of caution.
MEANING = {
    "Mean": "The average of the heads’ matrices. Rows still sum to 1.",
    "Max": "In each cell, the largest weight that any head gives.",
    "Rollout": "Attention followed down to the input. In each layer Â = ½ (mean of the heads) + ½ (identity, for the residual connection); rollout is their product, last layer to first. Rows sum to 1. (Abnar & Zuidema 2020)",
    "Flow": "The layers as a network of pipes, each as wide as its weight in Â (as for rollout): the most that can flow from an input token, on all ways together, to a token after the last layer. (Abnar & Zuidema 2020)",
    "Values": "‖α f(x)‖: the length of the weight times what is really passed on, f(x) = value · W_O. A token with a large weight and a short value adds little. (Kobayashi et al. 2020)",
    "Writes": "What each head added to the residual stream: its z through its slice of W_O. (Elhage et al. 2021)",
}
CAUTION = {
    "Mean": "A mean hides heads: one that looks at a single token counts for 1/{heads} of the cell.",
    "Max": "Rows do not sum to 1; here the sums are {sums}. More heads can only make a maximum larger, and no head has this pattern.",
    "Rollout": "It assumes that half of every vector comes through the residual connection, and that all values are alike.{written}",
    "Flow": "Each pair is computed as if it were alone, so rows do not sum to 1; here the sums are {sums}. (The code published with the paper divides each row by its sum; here the flow itself is shown.) It rests on the same ½ as rollout.{written}",
    "Values": "A length has no direction: what is written for two tokens may cancel.{cancelled}",
    "Writes": "A large write need not matter for the answer: what later layers read decides.",
}
MEASURES = {"Length": "Length", "Share": "Signed share"}
NO_WAY_ACROSS = (
    "**{what} is not defined through cross-attention.** It needs rows and columns that are the same tokens, so that the residual connection can be added as an identity. "
    "Here rows are the decoder’s tokens and columns the encoder’s. It is shown for each stack by itself: choose encoder or decoder self-attention above."
)
CLOSED = "{} runs in its own code, where values or W_O are not at hand, so what is written cannot be computed. Mean, max, rollout and flow can."
MOST_LISTED = 4
MARKED = (
    "Mean",
    "Max",
    "Values",
)  # the pictures whose cells are weights and values of the heads themselves


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    recording = passes.record(model, text, target=target)
    st.subheader("What do all heads say together, and can you trust the sum?", anchor=False)
    attention = pick_attention(recording)
    axes = axes_of(recording, attention)
    top = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    what = top.segmented_control(
        "Summary",
        SUMS,
        key="sum_what",
        format_func=SUM_LABELS.get,
        required=True,
        persist_state="session",
    )
    if what in ("Rollout", "Flow") and attention.query != attention.key:
        st.info(NO_WAY_ACROSS.format(what=what))
    elif what in ("Values", "Writes") and not models.shows_writes(recording):
        st.info(CLOSED.format(literal(model)))
    elif what == "Writes":
        writes(recording, attention, axes, top)
    else:
        summary(recording, attention, axes, what, top)
    address.write()


# ---- one matrix out of many -----------------------------------------------------------------------------------------


def summary(
    recording: Recording, attention: Attention, axes: matrices.Axes, what: str, controls
) -> None:
    """The picture, what it means and how far it can be trusted, one of its rows, and the files."""
    layer, head = scope(attention, what, controls)
    if what == "Flow" and not (queries := rows_of_flow(recording, attention, axes, layer)):
        return
    parted = disagreements(recording, attention)
    asked = address.whole("token", len(axes.rows))
    if what != "Flow" or len(queries) > 1:
        values = shelf.derived(
            recording,
            ("summary", attention.name, what, layer, head),
            lambda: computed(recording, attention, what, layer, head),
            weigh=lambda made: made.nbytes,
        )
        row = opened(recording, attention, axes, parted, layer, head) if asked is None else asked
        line = values[row]
    else:
        (row,) = queries
        with st.spinner("Finding the flow of every token …"):
            values = shelf.derived(
                recording,
                ("summary", attention.name, what, layer, row),
                lambda: numbers.flow(attention, queries, layer),
            )
        line = values[0]
    title = title_of(what, layer, head)
    caption = caption_of(recording, attention, title, what)
    file = "-".join(
        [
            "headlight",
            recording.model.name,
            *attention.name.split()[: len(recording.attention) > 1],
            what.lower(),
            *(f"L{layer}" for _ in [0] if layer is not None),
            *(f"H{head}" for _ in [0] if head is not None),
        ]
    )
    picture = shelf.name_of(recording, attention.name, what, layer, head)
    high = numbers.top(values, what)
    missing = "" if attention.allowed.all() else "not allowed: a later token"
    left, right = st.columns([1, 1.05], gap="large")
    with left:
        if len(values) == len(axes.rows):
            pictures.show(
                drawn(
                    recording,
                    attention,
                    axes,
                    what,
                    values,
                    parted,
                    layer,
                    head,
                    title,
                    caption,
                    file,
                    picture,
                    high,
                    missing,
                ),
                "summary",
                take_row,
            )
        else:
            st.info(
                f"With {len(axes.rows)} tokens the flow of all pairs would take too long here, so one token’s row is computed at a time. Choose a token in the sentence."
            )
    with right:
        st.markdown(f"**{SUM_LABELS[what]}.** {MEANING[what]}")
        st.markdown(
            f":material/warning: {caution(recording, attention, what, values, layer, head, row)}"
        )
        one_row(recording, attention, axes, what, values, line, row, title, picture, high, missing)
        disagreement(recording, attention, axes, parted, what)
    files(axes, values, [row] if len(values) < len(axes.rows) else None, title, caption, file)


def scope(attention: Attention, what: str, controls) -> tuple[int | None, int | None]:
    """Which layers and heads: all of them, one layer, or (of weighted values) one head."""
    layers, heads = attention.pattern.shape[:2]
    address.one_of("sum_layer", ("", *map(str, range(layers))))
    address.one_of("sum_head", ("", *map(str, range(heads))))
    through = what in ("Rollout", "Flow")
    with controls:
        st.selectbox(
            "Up to layer" if through else "Layer",
            ("", *map(str, range(layers))),
            key="sum_layer",
            persist_state="session",
            width=180,
            format_func=lambda each: f"Layer {each}" if each else "All layers",
        )  # the same words for every summary: the browser goes on showing the one that was chosen
        if what == "Values" and st.session_state.sum_layer:
            st.selectbox(
                "Head",
                ("", *map(str, range(heads))),
                key="sum_head",
                persist_state="session",
                width=180,
                format_func=lambda each: f"Head {each}" if each else "All heads",
            )
    layer = int(st.session_state.sum_layer) if st.session_state.sum_layer else None
    head = (
        int(st.session_state.sum_head)
        if what == "Values" and layer is not None and st.session_state.sum_head
        else None
    )
    return layer, head


def computed(
    recording: Recording, attention: Attention, what: str, layer: int | None, head: int | None
):
    """The matrix of a summary."""
    if what == "Values":
        return numbers.norms(attention, passes.outputs(recording)[attention.name][0], layer, head)
    if what == "Flow":
        return numbers.flow(attention, range(attention.pattern.shape[2]), layer)
    return {"Mean": numbers.mean, "Max": numbers.largest, "Rollout": numbers.rollout}[what](
        attention, layer
    )


def rows_of_flow(
    recording: Recording, attention: Attention, axes: matrices.Axes, layer: int | None
) -> list[int]:
    """The rows of the flow that are computed: all, the chosen token's, or none, with the reason."""
    row, everything = numbers.flow_work(attention, layer)
    if everything <= numbers.MOST_OF_ALL:
        return list(range(len(axes.rows)))
    if row <= numbers.MOST_OF_A_ROW:
        asked = address.whole("token", len(axes.rows))
        return [opened(recording, attention, axes, None, None, None) if asked is None else asked]
    st.info(
        f"**Flow is not computed for {len(axes.rows)} tokens.** The work grows with the third power of their number and would keep everyone else on this machine waiting. "
        "Rollout rests on the same assumptions and is there for any length; a shorter text, or fewer layers, gives the flow."
    )
    return []


def disagreements(recording: Recording, attention: Attention) -> numbers.Disagreements | None:
    """Where weights and what is written disagree; None where the model does not offer its values."""
    if not models.shows_writes(recording):
        return None
    return shelf.derived(
        recording,
        ("disagreements", attention.name),
        lambda: numbers.disagreements(attention, passes.outputs(recording)[attention.name][0]),
    )


def opened(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    parted,
    layer: int | None,
    head: int | None,
) -> int:
    """The row to open with where none is chosen: of one head a row that is marked, or else one that tells, the same for every summary."""
    marked = numbers.cells(parted, layer, head)
    if marked and head is not None:
        return marked[0][0]
    mean = shelf.derived(
        recording,
        ("summary", attention.name, "Mean", None, None),
        lambda: numbers.mean(attention),
        weigh=lambda made: made.nbytes,
    )
    return numbers.telling(mean, axes.special, attention.query == attention.key)


def drawn(
    recording,
    attention,
    axes,
    what,
    values,
    parted,
    layer,
    head,
    title,
    caption,
    file,
    picture,
    high,
    missing,
) -> bytes:
    """The matrix for the browser, beside it the numbers that are read out with it."""
    shown = numbers.masked(values, attention.allowed)
    panels = [pictures.Panel("length" if what == "Values" else "", shown, 0, high)]
    if head is not None:
        weight = attention.pattern[layer, head]
        panels += [
            pictures.Panel(name, numbers.masked(beside, attention.allowed), 0, 1, drawn=False)
            for name, beside in (
                ("weight", weight),
                ("share of lengths", numbers.row_shares(values)),
            )
        ]
    return shelf.derived(
        recording,
        ("summary drawn", picture),
        lambda: pictures.panels(
            panels,
            axes.rows,
            axes.keys,
            axes.special,
            sides=axes.sides,
            marks=numbers.cells(parted, layer, head) if what in MARKED else (),
            missing=missing,
            title=title,
            caption=caption[1:],
            file=file,
            token=picture,
        ),
        weigh=len,
    )


def one_row(
    recording, attention, axes, what, values, line, row, title, picture, high, missing
) -> None:
    """One token's row as the tinted sentence."""
    shown = numbers.masked(line, attention.allowed[row])
    says = {
        "Mean": "looks at",
        "Max": "looks, in some head, at",
        "Rollout": "is made of",
        "Flow": "can receive from",
        "Values": "gets from",
    }[what]
    pictures.show(
        pictures.row(
            shown,
            axes.keys,
            axes.special,
            chosen=row,
            label=axes.rows[row],
            says=says,
            low=0,
            high=high,
            missing=missing,
            choose=attention.query == attention.key,
            title=f"{title}, row of {axes.rows[row]}",
            token=f"{picture} {row}",
            picture=picture,
        ),
        "summary row",
        take_token,
    )


def caution(
    recording: Recording,
    attention: Attention,
    what: str,
    values,
    layer: int | None,
    head: int | None,
    row: int,
) -> str:
    """What the picture does not say, with this text's numbers."""
    low, high = numbers.row_sums(values)
    layers, heads = attention.pattern.shape[:2]
    share = shelf.derived(
        recording, ("written", attention.name), lambda: numbers.written(recording, attention)
    )
    written = (
        ""
        if share is None
        else f" Measured here, attention’s own part of the length is {share:.2f}, not 0.50."
    )
    cancelled = ""
    if what == "Values" and head is not None:
        together, sum_of = numbers.cancelled(
            attention, passes.outputs(recording)[attention.name][0], layer, head, row
        )
        cancelled = f" At token {row} the lengths sum to {together:.2f}, what is written is {sum_of:.2f} long."
    return CAUTION[what].format(
        heads=heads if layer is not None else layers * heads,
        sums=f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}",
        written=written,
        cancelled=cancelled,
    )


def disagreement(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    parted: numbers.Disagreements | None,
    what: str,
) -> None:
    """Where weights mislead: rows in which most of the weight is little of what is written."""
    if parted is None:
        st.caption(CLOSED.format(literal(recording.model.name)))
        return
    st.markdown("**Where the weights mislead**")
    rule = f"at least {numbers.MOST:g} of a row’s weight but at most {numbers.LEAST:g} of what the head writes there (by length)"
    if not parted.rows:
        st.markdown(
            f"Nowhere on this text: in none of {parted.rows_in_all:,} rows does a token take at least {numbers.MOST:g} of the weight."
        )
        return
    if not parted.found:
        near = parted.nearest
        st.markdown(
            f"Nowhere on this text does a token take {rule}. The widest gap: {gap(near, axes)}."
        )
        return
    st.markdown(
        f"In **{len(parted.found):,} of {parted.rows_in_all:,} rows**, over all heads, a token takes {rule}.{' These cells are marked with a square.' if what in MARKED else ''} The widest gaps:"
    )
    with st.container(gap=None):
        for at, one in enumerate(parted.found[:MOST_LISTED]):
            st.button(
                gap(one, axes),
                key=f"gap {at}",
                type="tertiary",
                on_click=take_gap,
                args=(one.layer, one.head, one.query),
                help="Open this head at this row.",
            )
    caption = caption_of(
        recording, attention, "Where weights and what is written disagree", "Values"
    )
    with st.expander(
        f"All {len(parted.found):,} as a table", key="gaps table", on_change="rerun"
    ) as box:
        if not box.open:
            return
        columns = numbers.listed(parted, axes.rows, axes.keys)
        st.dataframe(
            columns,
            hide_index=True,
            height=280,
            column_config=dict.fromkeys(
                ("weight", "share of what is written"), st.column_config.NumberColumn(format="%.3f")
            ),
            alt="Where weights and what is written disagree",
        )
        csv_button(
            columns,
            (f"A token takes {rule}", *caption),
            f"headlight-{recording.model.name}-disagreements",
            "Table as CSV",
        )


def gap(one: numbers.Disagreement, axes: matrices.Axes) -> str:
    """A disagreement in words, as Markdown."""
    return (
        f"L{one.layer}H{one.head}, row {literal(axes.rows[one.query])} ({one.query}): “{literal(axes.keys[one.key])}” takes **{one.weight:.2f}** of the weight "
        f"but **{one.share:.2f}** of what is written"
    )


# ---- what each head wrote -------------------------------------------------------------------------------------------


def writes(recording: Recording, attention: Attention, axes: matrices.Axes, controls) -> None:
    """Layers down, heads across: the length of what each head wrote, or its signed share of attention's write."""
    row = address.whole("token", len(axes.rows))
    st.session_state["written at"] = -1 if row is None else row
    address.one_of("sum_measure", tuple(MEASURES))
    labels = ["All tokens (mean)", *matrices.numbered(axes.rows)]
    with controls:
        st.selectbox(
            "Token",
            range(-1, len(axes.rows)),
            format_func=lambda at: labels[at + 1],
            key="written at",
            on_change=take_written,
            width=240,
        )
        measure = st.segmented_control(
            "Measure",
            tuple(MEASURES),
            key="sum_measure",
            format_func=MEASURES.get,
            required=True,
            persist_state="session",
        )
    w_o, b_o = passes.outputs(recording)[attention.name]
    found = shelf.derived(
        recording,
        ("contributions", attention.name, row),
        lambda: numbers.contributions(attention, w_o, b_o, row),
    )
    values, rows, columns = numbers.by_layer(found, measure)
    where = "mean of all tokens" if row is None else f"token {row}, {axes.rows[row]}"
    title = f"What each head wrote ({MEASURES[measure].lower()}), {where}"
    caption = caption_of(recording, attention, title, "Writes")
    file = f"headlight-{recording.model.name}-{attention.name.replace(' ', '-')}-writes-{measure.lower()}"
    high = numbers.top(values, "Writes")
    left, right = st.columns([1, 1.05], gap="large")
    with left:
        data = pictures.panels(
            [pictures.Panel("", values, 0 if measure == "Length" else -high, high)],
            rows,
            columns,
            [False] * len(columns),
            sides=("layer", "head"),
            digits=3,
            choose=False,
            title=title,
            caption=caption[1:],
            file=file,
            token=shelf.name_of(recording, attention.name, "writes", measure, row),
        )
        pictures.show(data, "head writes", ignore)
    with right:
        st.markdown(f"**Head writes.** {MEANING['Writes']}")
        if measure == "Length":
            st.markdown(
                "Drawn is the length of that vector, ‖w_h‖."
                + (" The mean over all tokens." if row is None else "")
            )
        else:
            st.markdown(
                "Drawn is each head’s share of attention’s write w = Σ w_h + b_O: **w_h · w / |w|²**. Shares of a layer sum to 1 with b_O’s; under 0 (blue) a head writes against the others."
                + (" The mean over all tokens." if row is None else "")
            )
        (layer, head, most), against, (least_layer, least_head, least) = numbers.ends(found)
        st.markdown(f"The longest write: **layer {layer}, head {head}**, {most:.2f}.")
        st.markdown(
            f"**{against} of {found.share.size} heads** write against their layer’s sum; the furthest is layer {least_layer}, head {least_head}, at a share of **{signed(least)}**."
            if against
            else "No head writes against its layer’s sum."
        )
        if measure == "Share":
            at, bias = numbers.most_bias(found)
            st.markdown(
                f"The bias b_O, the same whatever the tokens are, has up to **{signed(bias)}** (layer {at})."
            )
        st.markdown(f":material/warning: {CAUTION['Writes']}")
    files_of(
        lambda: {"layer": rows, **dict(zip(columns, values.T))},
        values,
        rows,
        columns,
        title,
        caption,
        file,
    )


def signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


# ---- files ----------------------------------------------------------------------------------------------------------


def files(
    axes: matrices.Axes,
    values,
    only: list[int] | None,
    title: str,
    caption: tuple[str, ...],
    file: str,
) -> None:
    rows = [axes.rows[at] for at in only] if only else axes.rows
    named = matrices.Axes(tuple(rows), axes.keys, axes.special, axes.said)
    files_of(lambda: matrices.columns(values, named), values, rows, axes.keys, title, caption, file)


def files_of(
    columns: Callable[[], dict], values, rows, keys, title: str, caption: tuple[str, ...], file: str
) -> None:
    """The table behind the picture, made when it is opened, and its files."""
    with_table(columns, caption, file, form="%.4f")
    st.download_button(
        "Download NPZ",
        lambda: numbers.to_npz(values, rows, keys, caption),
        f"{file}.npz",
        "application/octet-stream",
        on_click="ignore",
        help="numpy arrays: values, rows, keys, about.",
    )


def title_of(what: str, layer: int | None, head: int | None) -> str:
    where = {"Rollout": "up to the last layer", "Flow": "up to the last layer"}.get(
        what, "all heads of all layers"
    )
    if layer is not None:
        where = (
            f"up to layer {layer}"
            if what in ("Rollout", "Flow")
            else f"layer {layer}, all heads"
            if head is None
            else f"layer {layer}, head {head}"
        )
    return f"{SUM_LABELS[what]}, {where}"


def caption_of(
    recording: Recording, attention: Attention, title: str, what: str
) -> tuple[str, ...]:
    """What a figure must say when it stands alone, its title first."""
    lines = [
        title,
        model_line(recording, f"{attention.name}-attention"),
        MEANING[what],
    ]
    if what == "Values":
        lines.append(
            "Of a layer: its heads’ vectors are added before the length is taken. Of all layers: the mean of theirs."
        )
    if what in MARKED:
        lines.append(
            f"Marked: cells with at least {numbers.MOST:g} of a head’s row but at most {numbers.LEAST:g} of what it writes there, by length."
        )
    if recording.target:
        lines.append("Target: " + onscreen.read_text(recording, target=True))
    return (*lines, "Text: " + onscreen.read_text(recording))


# ---- what the reader chose --------------------------------------------------------------------------------------------


def take_row() -> None:
    st.session_state.token = str(int(st.session_state["summary"].get("row") or 0))


def take_token() -> None:
    st.session_state.token = str(int(st.session_state["summary row"].get("row") or 0))


def take_written() -> None:
    at = st.session_state["written at"]
    st.session_state.token = "" if at < 0 else str(at)


def take_gap(layer: int, head: int, query: int) -> None:
    """Open the head of a disagreement at its row."""
    (
        st.session_state.sum_what,
        st.session_state.sum_layer,
        st.session_state.sum_head,
        st.session_state.token,
    ) = "Values", str(layer), str(head), str(query)


def ignore() -> None:
    """A picture in which nothing is chosen."""


address.one_of("sum_what", SUMS)
with st.spinner("Loading the model …"):
    typed = onscreen.typed_target(st.session_state.model)
    shown = onscreen.shown(target=typed)
onscreen.tell_target(typed)
address.one_of("attention", attention_names(shown.recording()))
explore(shown.model, st.session_state.text, typed)
