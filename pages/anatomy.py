"""Anatomy: why is this weight what it is?"""

from __future__ import annotations

import streamlit as st

from explorer.analysis import anatomy as numbers
from explorer.analysis import attention as matrices
from explorer.analysis import heads as naming
from explorer.analysis.caption import model_line
from explorer.analysis.csv import stacked
from explorer.components import anatomy as pictures
from explorer.frame import onscreen
from explorer.frame.picker import attention_names, axes_of, chosen_head, pick_attention, pick_head
from explorer.frame.table import csv_button
from explorer.memory import address, passes, shelf
from explorer.sentences.escape import literal
from models.edits import Edit, from_line
from models.recording import Attention, Recording

ROW_RULE = "Rows are named after the token they produce; the last one after what the model would produce next."
ROW_RULE_GIVEN = "Rows are named after the next token of the target; the last one after what the model would say next."
NO_VECTORS = "This model gives its weights but not its queries, keys and values, so its cells cannot be opened here. The Attention page shows the weights."
NO_OUTPUT = "This model does not give its W_O here, so the steps end at z: what this head wrote into the stream cannot be separated from what the others wrote."
FROM_ANOTHER_TEXT = "An edit put a head’s z from another text in the place of its own. That z is not in this recording, so the steps end here."


@st.fragment
def explore(model: str, text: str, typed: str | None, edits: tuple[Edit, ...]) -> None:
    """The page below the sentence bar. Another head or cell runs this alone, on the recording that is there.

    It takes names and not the recording, which Streamlit would keep for every visitor.
    """
    recording = passes.record(model, text, edits, target=target_of(model, text, typed, edits))
    st.subheader(
        "Why is this weight what it is?",
        anchor=False,
        help="One cell of one head, from its query and key to what the head wrote. Every number follows from those before it, computed in 64 bits from the model’s recorded vectors.",
    )
    left, right = st.columns([1, 1.25], gap="large")
    with left:
        attention = pick_attention(recording)
        heads = shelf.derived(
            recording, (attention.name, "heads"), lambda: naming.describe(recording, attention)
        )
        head = chosen_head(heads, attention)
        with st.container(horizontal=True, gap="medium"):
            pick_head(attention.pattern.shape[:2], (head.layer, head.head))
        axes = axes_of(recording, attention)
        query, key = chosen_cell(attention, head, axes)
    if not numbers.has_vectors(attention):
        st.info(NO_VECTORS)
        return address.write()
    outputs = outputs_of(recording, attention)
    opened = numbers.cell(recording, attention, head.layer, head.head, query, key)
    done = outputs and numbers.written(recording, attention, head.layer, query, outputs)
    names = axes.rows, axes.keys
    about = caption_of(recording, attention, opened, axes, typed)
    with left:
        grid = choose(recording, attention, head, axes)
        if axes.said is not None:
            st.caption(row_rule(recording, typed))
    with right:
        in_short(opened, done, names, head)
    story(recording, opened, done, outputs, names, about, grid)
    files_and_tables(recording, opened, done, axes, about)
    if outputs:
        split(recording, attention, opened, done, names)
        three_forms(recording, attention, opened, outputs, names)
    address.write()


# ---- what is chosen -----------------------------------------------------------------------------------------------


def chosen_cell(attention: Attention, head: naming.Head, axes: matrices.Axes) -> tuple[int, int]:
    """The cell on screen: the one chosen; else the strongest of the row or the column held on the Attention page; else the head's strongest."""
    row = address.whole("token", len(axes.rows))
    query, _, key = st.session_state.anatomy_cell.partition(".")
    if (
        query.isdecimal()
        and key.isdecimal()
        and len(key) < 6
        and query == str(row)
        and int(key) < len(axes.keys)
    ):
        return row, int(key)
    st.session_state.anatomy_cell = ""
    column = address.whole("source", len(axes.keys) if axes.said is not None and row is None else 0)
    return matrices.strongest(
        attention.pattern[head.layer, head.head], attention.allowed, row, column
    )


def choose(
    recording: Recording, attention: Attention, head: naming.Head, axes: matrices.Axes
) -> str:
    """The head's matrix, a click on a cell opens it; the picture's name."""
    at = head.layer, head.head
    st.markdown(f"Layer {head.layer}, head {head.head}: **{head.name}**. Choose a cell.")
    what = (attention.name, "anatomy matrix", *at)
    token = shelf.name_of(recording, *what)
    about = f"Weights of layer {head.layer}, head {head.head}"
    data = shelf.derived(
        recording,
        what,
        lambda: pictures.matrix(
            attention.pattern[at],
            attention.allowed,
            axes.rows,
            axes.keys,
            about=about,
            sides=axes.sides,
            token=token,
        ),
        weigh=len,
    )
    pictures.show(data, "anatomy matrix", lambda: take_cell("anatomy matrix"))
    return token


def outputs_of(recording: Recording, attention: Attention):
    """W_O of the attention, cut by head, and its bias; None for a model that does not give them."""
    try:
        return passes.outputs(recording).get(attention.name)
    except (ValueError, AttributeError):
        return None


def take_cell(key: str) -> None:
    if cell := st.session_state[key].get("cell"):
        query, column = map(int, cell)
        st.session_state.token, st.session_state.anatomy_cell = str(query), f"{query}.{column}"
        st.session_state.source = ""


# ---- the story ----------------------------------------------------------------------------------------------------


def in_short(
    opened: numbers.Cell,
    done: numbers.Written | None,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    head: naming.Head,
) -> None:
    """The weight and the whole way to it in a few lines."""
    query, key = literal(names[0][opened.query]), literal(names[1][opened.key])
    st.markdown(f"Query **{query}** ({opened.query}) gives key **{key}** ({opened.key}) the weight")
    st.markdown(f"# {numbers.say_weight(opened.weights[opened.key])}")
    st.markdown("\n".join(f"1. {line}" for line in numbers.in_short(opened, done)))
    st.page_link(
        "../pages/attention.py",
        label=f"Layer {head.layer}, head {head.head} on the Attention page",
        icon=":material/grid_on:",
    )


def story(
    recording: Recording,
    opened: numbers.Cell,
    done: numbers.Written | None,
    outputs,
    names,
    about: tuple[str, ...],
    grid: str,
) -> None:
    """The cell step by step."""
    masks = not recording_attention(recording, opened.attention).allowed.all()
    missing = NO_OUTPUT if outputs is None else FROM_ANOTHER_TEXT
    facts = numbers.facts(
        opened, done, *names, why=numbers.reasons(opened, masks) | {"missing": missing}
    )
    slice_ = None if done is None else outputs[0][opened.layer, opened.head]
    token = shelf.name_of(
        recording, opened.attention, "story", opened.layer, opened.head, opened.query, opened.key
    )
    data = pictures.story(
        facts,
        numbers.vectors(opened, done),
        slice_,
        title=about[0],
        caption=about[1:],
        file=file_of(recording, opened),
        matrix=grid,
        token=token,
    )
    pictures.show(data, "anatomy story", lambda: take_cell("anatomy story"))


def recording_attention(recording: Recording, name: str) -> Attention:
    return next(attention for attention in recording.attention if attention.name == name)


def file_of(recording: Recording, opened: numbers.Cell) -> str:
    which_one = opened.attention.split() if len(recording.attention) > 1 else ()
    return "-".join(
        [
            "headlight",
            recording.model.name,
            *which_one,
            f"L{opened.layer}H{opened.head}",
            f"q{opened.query}k{opened.key}",
        ]
    )


def caption_of(
    recording: Recording,
    attention: Attention,
    opened: numbers.Cell,
    axes: matrices.Axes,
    typed: str | None,
) -> tuple[str, ...]:
    """What a figure must say when it stands alone, its title first."""
    lines = [
        f"Why the weight is {numbers.say_weight(opened.weights[opened.key])}: query {axes.rows[opened.query]} ({opened.query}), key {axes.keys[opened.key]} ({opened.key})",
        model_line(
            recording, f"{attention.name}-attention, layer {opened.layer}, head {opened.head}"
        ),
    ]
    if "decoder" in (attention.query, attention.key) and len(recording.streams) > 1:
        if axes.said is not None:
            lines.append(row_rule(recording, typed))
        whose = (
            "as typed"
            if typed is not None
            else "the model’s own, unedited"
            if recording.edits
            else "the model’s own"
        )
        lines.append(f"Target ({whose}): " + onscreen.read_text(recording, target=True))
    return (*lines, "Text: " + onscreen.read_text(recording))


def row_rule(recording: Recording, typed: str | None) -> str:
    """What a row between two texts is named after. A target that is given to the model is not what it produces."""
    return ROW_RULE if typed is None and not recording.edits else ROW_RULE_GIVEN


def files_and_tables(
    recording: Recording,
    opened: numbers.Cell,
    done: numbers.Written | None,
    axes: matrices.Axes,
    about: tuple[str, ...],
) -> None:
    """All numbers as a file and as tables."""
    tables = numbers.tables(opened, done, axes.keys)
    csv_button(
        lambda: stacked(tables.items(), "step"),
        about,
        file_of(recording, opened),
        "All steps as CSV",
    )
    with st.expander("The numbers behind each step"):
        for name, columns in tables.items():
            st.markdown(f"**{name}**")
            st.dataframe(
                columns,
                hide_index=True,
                height=min(360, 38 + 35 * len(next(iter(columns.values())))),
                alt=name,
            )
        st.caption(numbers.memory_said(recording))


# ---- the heads together -------------------------------------------------------------------------------------------


def split(
    recording: Recording,
    attention: Attention,
    opened: numbers.Cell,
    done: numbers.Written | None,
    names,
) -> None:
    """The split into heads and back, with this sentence's sizes and this token's numbers."""
    st.subheader(
        "Cut into heads, and put together again",
        anchor=False,
        help="Heads are no separate networks: one wide vector is cut into equal pieces, each piece attends by itself, and the pieces are laid side by side again.",
    )
    card, n_head = recording.model, attention.q.shape[1]
    label = names[0][opened.query]
    token = shelf.name_of(
        recording, attention.name, "split", opened.layer, opened.head, opened.query
    )
    n, m = attention.allowed.shape
    pictures.show(
        pictures.shapes(
            n=n,
            m=m,
            n_head=n_head,
            head=opened.head,
            d_head=attention.q.shape[-1],
            d_v=attention.v.shape[-1],
            d_model=card.d_model,
            query=opened.query,
            label=label,
            token=token,
        ),
        "anatomy shapes",
        ignore,
    )
    if done is None:
        return
    pieces = (
        ("q, all heads", done.q, "every head’s q"),
        ("z, concatenated", done.z, "every head’s z, side by side"),
    )
    for name, rows, what in pieces:
        pictures.show(
            pictures.strip(
                rows.ravel(),
                name=name,
                unit="dimension",
                about=f"{what}, of {label}",
                heads=n_head,
                head=opened.head,
                token=f"{token} {name}",
            ),
            f"anatomy {name}",
            ignore,
        )


def three_forms(
    recording: Recording, attention: Attention, opened: numbers.Cell, outputs, names
) -> None:
    """The lecture notes' three ways to write attention, on this token: the same numbers."""
    st.subheader(
        "Three ways to write it, one result",
        anchor=False,
        help="The output of the layer’s attention at the chosen token, computed by three routes.",
    )
    what = (attention.name, "forms", opened.layer, opened.query)
    found = shelf.derived(
        recording,
        what,
        lambda: numbers.forms(recording, attention, opened.layer, opened.query, outputs),
    )
    token = shelf.name_of(recording, *what)
    top = numbers.top_of(found)
    routes = (
        ("Per position", r"o_i = \sum_h \sum_j a^h_{ij} \, (v^h_j W_O^h) + b", found.per_position),
        (
            "Matrices, then concat",
            r"O \vphantom{\sum_h} = [A_1 V_1 \mid \dots \mid A_H V_H] \, W_O + b",
            found.concatenated,
        ),
        ("A sum over heads", r"O = \sum_h A_h V_h W_O^h + b", found.by_head),
    )
    shapes = numbers.shapes_of(attention, recording.model.d_model)
    for place, shape, (name, formula, vector) in zip(st.columns(3, gap="medium"), shapes, routes):
        with place:
            st.markdown(f"**{name}**")
            st.latex(formula)
            pictures.show(
                pictures.strip(
                    vector,
                    name="",
                    unit="dimension",
                    about=f"{name}: the output at {names[0][opened.query]}",
                    scale=top,
                    token=f"{token} {name}",
                ),
                f"anatomy {name}",
                ignore,
            )
            st.caption(shape)
    st.markdown(numbers.verdict(found, literal(names[0][opened.query])))


def ignore() -> None:
    pass


def target_of(
    model: str, text: str, typed: str | None, edits: tuple[Edit, ...]
) -> str | tuple[int, ...] | None:
    """What a translator's decoder reads: what was typed; under edits what the model says as it is, so that the rows stay the same."""
    plain = passes.record(model, text, target=typed)
    if typed is not None or not edits or len(plain.streams) == 1:
        return typed
    return tuple(int(each) for each in plain.streams[-1].ids[1:])


def switched(model: str, text: str, typed: str | None) -> tuple[Edit, ...]:
    """The edits set on the page Switches, with a word on them and the way back; none where this text or model cannot follow them."""
    if not st.session_state.edits:
        return ()
    try:
        edits = from_line(st.session_state.edits)
        passes.record(model, text, edits, target=target_of(model, text, typed, edits))
    except ValueError:
        st.caption(
            "What is set on the page Switches cannot be followed on this text, so the model is shown as it is."
        )
        return ()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("As set on the page Switches: " + literal(", ".join(map(str, edits))) + ".")
        st.button("The model as it is", on_click=drop_edits)
    return edits


def drop_edits() -> None:
    st.session_state.edits = ""


with st.spinner("Loading the model …"):
    typed = onscreen.typed_target(st.session_state.model)
    shown = onscreen.shown(target=typed)
    edits = switched(shown.model, st.session_state.text, typed)
onscreen.tell_target(typed)
address.one_of("attention", attention_names(shown.recording()))
explore(shown.model, st.session_state.text, typed, edits)
