"""Lookup: is attention a lookup, or messages on a graph?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention as matrices
from explorer.analysis import lookup as numbers
from explorer.analysis import residual, summaries
from explorer.analysis.caption import caption
from explorer.analysis.numbers import fixed, percent
from explorer.components import graph as graphs
from explorer.components import lookup as lookups
from explorer.components import matrix as pictures
from explorer.frame import onscreen
from explorer.frame.picker import axes_of, pick_attention, pick_head
from explorer.frame.table import csv_button, with_table
from explorer.memory import address, models, passes, shelf
from explorer.sentences.escape import literal
from explorer.views.lookup import scale
from models.recording import Attention, Recording

WAYS = ("Hard", "Graph", "Three", "Scale")
WAY_LABELS = {
    "Hard": "Soft or hard?",
    "Graph": "Messages",
    "Three": "Three constructions",
    "Scale": "Why the scale",
}
RULES = ("0.5", "1", "1.5", "2", "3", "5")
WHOSE = ("One", "Mean")
NO_MESSAGES = "A message is one head’s weight times **that head’s** value, so a mean of heads has weights but no messages. Choose “This head” to open them."
WHICH_FIRST = "Where none is chosen: the one whose second key draws the mixture farthest from the first key’s value."
CLOSED = "The model {} gives its attention weights but not the scores, queries, keys and values behind them, so this cannot be computed. “Messages” needs the weights alone."
# What the lecture notes say of each construction.
NOTES = {
    "x · x": "The vectors as they enter the layer. Who looks where is tied to what the tokens say, and a vector is most like itself.",
    "Ux · Ux": "U is this head’s W_Q, so that Ux = q. It leaves out what does not matter here. But the score from a to b is the score from b to a.",
    "q · k": "What a token asks and what it offers differ, so “caulking iron” can look at “tool” more than “tool” at “caulking iron”. This is the head’s own.",
}
TITLES = {"x · x": "Naive: x · x", "Ux · Ux": "Symmetric: Ux · Ux", "q · k": "Asymmetric: q · k"}


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar; it takes names and not recordings, which Streamlit would keep for every visitor."""
    recording = passes.record(model, text, target=target)
    st.subheader("Is attention a lookup, or messages on a graph?", anchor=False)
    attention = pick_attention(recording)
    axes = axes_of(recording, attention)
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        way = st.segmented_control(
            "Look at it as",
            WAYS,
            key="look_at",
            format_func=WAY_LABELS.get,
            required=True,
            persist_state="session",
        )
        layer, head, query = (
            (0, 0, 0) if way == "Scale" else chosen(recording, attention, axes, way)
        )
    if way == "Scale" and attention.opens:
        what = "q and k: each head’s brought to a mean square of 1 a component, heads side by side"
        scale.panel(recording, attention, caption_of(recording, attention, what))
    elif not attention.opens and way != "Graph":
        st.info(CLOSED.format(literal(model)))
    else:
        {"Hard": soft_or_hard, "Graph": messages, "Three": constructions}[way](
            recording, attention, axes, layer, head, query
        )
    address.write()


def chosen(
    recording: Recording, attention: Attention, axes: matrices.Axes, way: str
) -> tuple[int, int, int]:
    """The head and the query on screen, with their controls: those of the page Attention; what is not chosen there is where soft and hard part most."""
    layers, heads, rows = attention.pattern.shape[:3]
    layer, head, query = (
        address.whole("layer", layers),
        address.whole("head", heads),
        address.whole("token", rows),
    )
    if layer is None or head is None:
        layer = head = None
    if None in (layer, head, query):
        layer, head, query = shelf.derived(
            recording,
            (attention.name, "divided", layer, head, query),
            lambda: numbers.divided(
                attention, axes.rows, axes.keys, axes.special, layer, head, query
            ),
        )
    labels = matrices.numbered(axes.rows)
    pick_head((layers, heads), (layer, head))
    if way != "Three":
        st.session_state["lookup query"] = query
        st.selectbox(
            "Query",
            range(rows),
            format_func=labels.__getitem__,
            key="lookup query",
            on_change=take_query,
            width=220,
            help=WHICH_FIRST,
        )
    return layer, head, query


# ---- soft and hard --------------------------------------------------------------------------------------------------


def soft_or_hard(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    layer: int,
    head: int,
    query: int,
) -> None:
    """One row as a soft lookup beside the hard one; then all heads and queries."""
    st.markdown(
        "A dictionary returns the value of the one key that equals the query. Attention returns a mixture: **every value, each with the weight of its key**. "
        "The test “equal?” has become softmax(q · k / √d), “return the value” has become Σ weight · value. Slide the temperature, weights = softmax(scores / T), and one turns into the other."
    )
    temperature = asked_temperature()
    one = numbers.lookup(attention, layer, head, query)
    title = f"Soft and hard lookup, layer {layer}, head {head}, query {axes.rows[query]} ({query})"
    caption = caption_of(
        recording,
        attention,
        "Weights: softmax(scores / T) of the recorded scores; soft: the values mixed by them; hard: the value of the key with the highest score",
    )
    file = f"headlight-{recording.model.name}-{attention.name.replace(' ', '-')}-L{layer}H{head}-lookup"
    lookups.show(
        lookups.payload(
            attention.scores[layer, head, query],
            attention.allowed[query],
            attention.v[layer, head],
            axes.keys,
            axes.special,
            label=axes.rows[query],
            temperature=temperature,
            title=title,
            caption=caption,
            file=file,
            token=shelf.name_of(recording, attention.name, "lookup", layer, head, query),
        ),
        "lookup",
        take_temperature,
    )
    st.markdown(
        f"At the model’s own T = 1, **{literal(axes.rows[query])}** ({query}) gives “{literal(axes.keys[one.key])}” ({one.key}) **{attention.pattern[layer, head, query, one.key]:.3f}** "
        f"of its weight. The mixture lies **{percent(one.relative)}** of that value’s length away from it, at a cosine of {number(one.cosine)}."
    )
    with_table(
        partial(
            row_columns,
            passes.shown_of(recording),
            attention.name,
            (layer, head, query),
            temperature,
            axes.keys,
        ),
        (title, *caption),
        file,
    )
    over_all(recording, attention, axes, layer, head, one)


def over_all(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    layer: int,
    head: int,
    one: numbers.Lookup,
) -> None:
    """The same distance for every head and query."""
    from explorer.figures.lookup import histogram

    st.subheader("Which heads look up, and which average?", anchor=False)
    found = shelf.derived(
        recording,
        ("everywhere", attention.name),
        lambda: numbers.everywhere(attention),
        weigh=lambda made: made.nbytes,
    )
    count, near, median = numbers.counted(found)
    ends = numbers.sharpest(found)
    if ends is None:
        st.info("No token here has a choice of where to look, so soft and hard are the same.")
        return
    (sharp_layer, sharp_head, least), (even_layer, even_head, most) = ends
    st.markdown(
        f"Of **{count:,} lookups** (heads × queries with a choice) **{near:,}** come within {numbers.NEAR:g} of the hard one; half of all are within **{median:.2f}**."
    )
    with st.container(horizontal=True, gap="small"):
        st.button(
            f"Nearest to a lookup: layer {sharp_layer}, head {sharp_head} (median {least:.2f})",
            on_click=take_one,
            args=(sharp_layer, sharp_head),
        )
        st.button(
            f"Farthest from one: layer {even_layer}, head {even_head} (median {most:.2f})",
            on_click=take_one,
            args=(even_layer, even_head),
        )
    title = "Distance of soft from hard, median over the queries, of the hard value’s length"
    caption = caption_of(recording, attention, "|z_soft − z_hard| / |z_hard|: 0 is a lookup")
    file = f"headlight-{recording.model.name}-{attention.name.replace(' ', '-')}-soft-hard"
    middle = numbers.medians(found)
    layers, heads = middle.shape
    left, right = st.columns([1, 1.1], gap="large")
    with left:
        st.markdown("**Each head’s median**: near 0 a lookup, large an average.")
        pictures.show(
            pictures.panels(
                [pictures.Panel("", middle, 0, numbers.largest(middle))],
                [f"layer {each}" for each in range(layers)],
                [f"head {each}" for each in range(heads)],
                [False] * heads,
                sides=("layer", "head"),
                digits=3,
                choose=False,
                title=title,
                caption=caption,
                file=file,
                token=shelf.name_of(recording, attention.name, "soft hard"),
            ),
            "soft hard",
            ignore,
        )
    with right:
        about = (f"All {count:,} lookups, dotted: {numbers.NEAR:g}", *caption)
        st.plotly_chart(
            histogram(found, one.relative, numbers.NEAR, about),
            key="spread of rows",
            config={
                "displaylogo": False,
                "toImageButtonOptions": {"format": "svg", "filename": f"{file}-all"},
            },
            alt=about[0],
        )
    with_table(lambda: numbers.heads_table(found), (title, *caption), file)


def row_columns(of: passes.Shown, name: str, at: tuple[int, int, int], temperature, keys) -> dict:
    """A row's numbers as columns, from the name of the recording: a button holds no arrays."""
    return numbers.row_table(of.attention(name), *at, temperature, keys)


def asked_temperature() -> float:
    """The temperature of the address, from 0 to infinity; 1 where it says none."""
    try:
        value = float(str(st.session_state.look_temperature))
    except ValueError:
        value = 1.0
    value = (
        value
        if value == 0 or lookups.COLDEST <= value <= lookups.HOTTEST or value == float("inf")
        else 1.0
    )
    st.session_state.look_temperature = f"{value:g}"
    return value


# ---- messages -------------------------------------------------------------------------------------------------------


def messages(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    layer: int,
    head: int,
    query: int,
) -> None:
    """The head as a graph, and the messages that one token receives."""
    st.markdown(
        "Tokens are nodes. Along each edge a token sends a **message = weight × value**; the one that listens adds its messages up: that sum is the head’s output z. "
        "Every token is a neighbour of every other; the edges drawn are those that matter. In a graph network’s words attention is the message step, the FFN the update step, and each layer one round."
    )
    address.one_of("look_layout", graphs.LAYOUTS)
    address.one_of("look_rule", RULES)
    address.one_of("look_heads", WHOSE)
    across = attention.query != attention.key
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        times = float(
            st.select_slider(
                "Draw edges from … × the even share",
                RULES,
                key="look_rule",
                persist_state="session",
                width=300,
                help="The even share is 1 / the number of tokens that a token may look at.",
            )
        )
        whose = st.segmented_control(
            "Weights of",
            WHOSE,
            key="look_heads",
            format_func={"One": "This head", "Mean": "Mean of the layer"}.get,
            required=True,
            persist_state="session",
        )
        if not across:
            st.segmented_control(
                "Layout", graphs.LAYOUTS, key="look_layout", required=True, persist_state="session"
            )
    layout = st.session_state.look_layout
    weights = (
        attention.pattern[layer, head]
        if whose == "One"
        else numbers.mean_of_heads(attention, layer)
    )
    edges = numbers.edges(weights, attention.allowed, times)
    where = f"layer {layer}, head {head}" if whose == "One" else f"layer {layer}, mean of its heads"
    title = f"Attention as a graph, {where}"
    rule = f"Edges: weights of at least {times:g} × the even share of their row"
    caption = caption_of(
        recording,
        attention,
        f"{rule}; from the token that is looked at to the one that looks. Width: the weight. Fuller nodes are given more weight in all",
    )
    file = f"headlight-{recording.model.name}-{attention.name.replace(' ', '-')}-L{layer}{f'H{head}' if whose == 'One' else ''}-graph"
    picture = shelf.name_of(recording, attention.name, "graph", layer, head, times, whose, layout)
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        graphs.show(
            graphs.payload(
                edges.queries,
                edges.keys,
                edges.weights,
                edges.weight_out,
                axes.rows,
                axes.special,
                sources=axes.keys if across else None,
                layout=layout,
                title=title,
                caption=caption,
                file=file,
                token=picture,
            ),
            "graph",
            take_node,
        )
        cut = (
            f" Drawn are the {numbers.MOST_EDGES:,} strongest."
            if edges.in_all > len(edges.weights)
            else ""
        )
        sides = (
            ""
            if across
            else " Arcs on the right come from the token itself and earlier ones, on the left from later ones."
            if layout == "Arcs"
            else ""
        )
        st.caption(
            f"{rule}: {edges.in_all:,} of {edges.allowed:,}.{cut}{sides} A fuller node is given more weight in all."
        )
    with right:
        if whose == "One" and attention.opens:
            inbox(recording, attention, axes, layer, head, query, title, caption, file, picture)
        else:
            row_of(attention, axes, weights, query, title, picture)
            st.markdown(
                NO_MESSAGES if attention.opens else CLOSED.format(literal(recording.model.name))
            )
        loud, most, mean = numbers.loudest(weights)
        st.markdown(
            f"**Who is heard.** Each token’s incoming weights sum to 1: that is the softmax. What it sends has no such limit: **{literal(axes.keys[loud])}** ({loud}) is given **{most:.2f}** in all, "
            f"where the mean is {mean:.2f}."
        )
    with_table(
        partial(numbers.nodes, weights, attention.allowed, times, axes.rows, axes.keys),
        (title, *caption),
        f"{file}-nodes",
        "Every token: edges and weights in and out",
    )


def row_of(
    attention: Attention, axes: matrices.Axes, weights, query: int, title: str, picture: str
) -> None:
    """One token's weights as the tinted sentence."""
    shown = summaries.masked(weights[query], attention.allowed[query])
    pictures.show(
        pictures.row(
            shown,
            axes.keys,
            axes.special,
            chosen=query,
            label=axes.rows[query],
            says="hears",
            low=0,
            high=numbers.largest(shown),
            missing="not allowed: a later token",
            choose=attention.query == attention.key,
            title=f"{title}, messages to {axes.rows[query]}",
            token=f"{picture} {query}",
            picture=picture,
        ),
        "heard",
        take_heard,
    )


def inbox(
    recording: Recording,
    attention: Attention,
    axes: matrices.Axes,
    layer: int,
    head: int,
    query: int,
    title: str,
    caption: tuple[str, ...],
    file: str,
    picture: str,
) -> None:
    """The messages to one token, their sum, and what it is checked against."""
    st.markdown(f"**What {literal(axes.rows[query])} ({query}) receives**")
    row_of(attention, axes, attention.pattern[layer, head], query, title, picture)
    columns = numbers.received(attention, layer, head, query, axes.keys)
    three = dict.fromkeys(list(columns)[1:], st.column_config.NumberColumn(format="%.3f", width=80))
    st.dataframe(
        columns,
        hide_index=True,
        height=min(318, 38 + 35 * len(columns["from"])),
        column_config=three,
        alt=f"Messages to {axes.rows[query]}",
    )
    csv_button(
        columns,
        (f"{title}, messages to token {query}", *caption),
        f"{file}-messages",
        "Messages as CSV",
    )
    length, error = numbers.lengths(attention, layer, head, query)
    wrote = (
        numbers.wrote_error(
            recording, attention, *passes.outputs(recording)[attention.name], layer, query
        )
        if models.shows_writes(recording)
        else None
    )
    checked = (
        ""
        if wrote is None
        else f" All heads’ sums through W_O, and its bias, are what attention wrote here: the largest difference is **{residual.power(wrote, 2)}**."
    )
    st.markdown(
        f"**Σ messages = z**, of length **{length:.2f}**: added one by one or as weights · V, the largest difference is **{residual.power(error, 2)}**.{checked}"
    )


# ---- three constructions --------------------------------------------------------------------------------------------


def constructions(
    recording: Recording, attention: Attention, axes: matrices.Axes, layer: int, head: int, _: int
) -> None:
    """Naive, symmetric and asymmetric scores of this text's pairs side by side."""
    if attention.query != attention.key:
        st.info(
            "**Symmetry has no meaning here.** In cross-attention rows are the decoder’s tokens and columns the encoder’s: the score from a to b and the one from b to a are of different things, "
            "and there is no diagonal. Choose encoder or decoder self-attention above to see the three constructions."
        )
        return
    x = numbers.entering(recording, attention, layer)
    if x is None:
        st.info(
            f"The model {literal(recording.model.name)} does not offer the vectors that enter a layer, so x · x cannot be computed."
        )
        return
    st.markdown(
        f"Three ways to score a pair, from the vectors x that enter layer {layer}; the first two are divided by the root of their vectors’ width, the third is head {head}’s own score, as the model makes it."
    )
    before = st.segmented_control(
        "Show",
        ("Weights", "Scores"),
        key="look_before",
        format_func={"Weights": "After the softmax", "Scores": "Before it"}.get,
        required=True,
        persist_state="session",
        label_visibility="collapsed",
    )
    made = shelf.derived(
        recording,
        ("constructions", attention.name, layer, head),
        lambda: numbers.constructions(x, attention, layer, head),
        weigh=lambda all: sum(one.scores.nbytes * 2 for one in all),
    )
    panels = []
    for one in made:
        shown = one.scores if before == "Scores" else one.weights
        shown = summaries.masked(shown, attention.allowed) if before == "Weights" else shown
        top = numbers.largest(shown)
        mine = (
            f"In {one.own} of {one.rows} rows a token looks most at itself; own weight {number(one.own_weight)} on average."
            if one.rows
            else "No row has a choice."
        )
        panels.append(
            pictures.Panel(
                TITLES[one.name],
                shown,
                -top if before == "Scores" else 0,
                top,
                under=f"Asymmetry of the scores: {one.asymmetry:.2f}\n{mine}\n{NOTES[one.name]}",
            )
        )
    title = f"Three constructions, layer {layer}, head {head}, {'scores' if before == 'Scores' else 'weights'}"
    caption = caption_of(
        recording,
        attention,
        "Scores: x · x / √d_model, q · q / √d_head, and the model’s own of q and k. Asymmetry: |S − Sᵀ| / (2 |S|), 0 for a symmetric S",
    )
    file = f"headlight-{recording.model.name}-{attention.name.replace(' ', '-')}-L{layer}H{head}-constructions-{before.lower()}"
    picture = shelf.name_of(recording, attention.name, "three", layer, head, before)
    data = shelf.derived(
        recording,
        ("three drawn", picture),
        lambda: pictures.panels(
            panels,
            axes.rows,
            axes.keys,
            axes.special,
            sides=axes.sides,
            missing=""
            if attention.allowed.all() or before == "Scores"
            else "not allowed: a later token",
            digits=3,
            choose=False,
            title=title,
            caption=caption,
            file=file,
            token=picture,
        ),
        weigh=len,
    )
    pictures.show(data, "three", ignore)
    st.markdown(
        "**Asymmetry** = |S − Sᵀ| / (2 |S|), over all entries of the scores S: 0 when the score from a to b is always that from b to a, about 0.7 when the two have nothing to do with each other, 1 when they are opposite."
        + after_softmax(before)
    )
    pair = numbers.one_way(made[2], axes.special)
    if pair:
        a, b = pair
        names = [f"**{literal(axes.rows[at])}** ({at})" for at in pair]
        st.markdown(
            f"**On this text** q · k is least alike both ways between {names[0]} and {names[1]}: {names[0]} scores {names[1]} **{fixed(made[2].scores[a, b])}**, and {names[1]} scores {names[0]} **{fixed(made[2].scores[b, a])}**. "
            f"With U both are {fixed(made[1].scores[a, b])}, with x · x both {fixed(made[0].scores[a, b])}."
        )
    with_table(
        lambda: numbers.constructions_table(made, axes.keys, before), (title, *caption), file
    )


def after_softmax(before: str) -> str:
    return (
        " Softmax divides each row by its own sum, so even weights from symmetric scores are not symmetric."
        if before == "Weights"
        else " The scores are shown for all pairs; a mask comes after them."
    )


# ---- words and files ------------------------------------------------------------------------------------------------


def caption_of(recording: Recording, attention: Attention, what: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    return caption(recording, what, of=f"{attention.name}-attention")


def number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if value == value else "–"


# ---- what the reader chose --------------------------------------------------------------------------------------------


def take_one(layer: int, head: int) -> None:
    """Open the head that is told of."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)


def take_query() -> None:
    st.session_state.token = str(st.session_state["lookup query"])


def take_node() -> None:
    st.session_state.token = str(int(st.session_state["graph"].get("row") or 0))


def take_heard() -> None:
    st.session_state.token = str(int(st.session_state["heard"].get("row") or 0))


def take_temperature() -> None:
    st.session_state.look_temperature = str(st.session_state["lookup"].get("temperature"))


def ignore() -> None:
    """A picture in which nothing is chosen."""


for name, options in (("look_at", WAYS), ("look_before", ("Weights", "Scores"))):
    address.one_of(name, options)
with st.spinner("Loading the model …"):
    typed = onscreen.typed_target(st.session_state.model)
    shown = onscreen.shown(target=typed)
onscreen.tell_target(typed)
explore(shown.model, st.session_state.text, typed)
