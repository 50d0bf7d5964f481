"""Attention: which head looks where?"""

from __future__ import annotations

import streamlit as st

from explorer import session
from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.components import head as one_head
from explorer.components import heads as all_heads
from models.recording import Attention, Recording, Stream, to_npz

SCALE_LABELS = {"Head": "Per head", "Row": "Per row", "Global": "0 to 1"}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
VIEWS = ("Matrix", "Lines", "Table", "Plotly")


@st.fragment
def explore(model: str, text: str) -> None:
    """The page below the sentence bar. A choice of head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long as the visit lasts.
    """
    recording = session.record(model, text)
    attention = recording.attention[0]
    queries, keys = recording.stream(attention.query), recording.stream(attention.key)
    heads = session.derived(recording, (attention.name, "heads"), lambda: naming.describe(recording, attention))
    chosen = chosen_head(heads, attention)
    left, right = st.columns([1, 1.08], gap="large")
    with left:
        grid(recording, attention, heads, queries, keys)
        formula(recording, attention, chosen, queries, keys)
    with right:
        detail(recording, attention, chosen, queries, keys)
    session.address()


def chosen_head(heads: tuple[naming.Head, ...], attention: Attention) -> naming.Head:
    """The head on screen: the one chosen, or else the one whose name stands out most."""
    layers, per_layer = attention.pattern.shape[:2]
    layer, head = session.whole("layer", layers), session.whole("head", per_layer)
    if layer is None or head is None:
        return max(heads, key=naming.clarity)
    return heads[layer * per_layer + head]


def grid(recording: Recording, attention: Attention, heads: tuple[naming.Head, ...], queries: Stream, keys: Stream) -> None:
    st.subheader("Which head looks where?", anchor=False, help="Layers down, heads across. Each square is one head’s matrix on your text: rows are queries, columns keys.")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        scale = st.segmented_control(
            "Colour scale", numbers.SCALES, key="scale", format_func=SCALE_LABELS.get, required=True, persist_state="session", label_visibility="collapsed",
            help="What the top of the colour scale is: each head’s largest weight, each row’s, or 1 for all heads alike.",
        )  # fmt: skip
        tone = st.segmented_control(
            "Tone", numbers.TONES, key="tone", required=True, persist_state="session", label_visibility="collapsed",
            help="Log shows three powers of ten below the top of the scale, so that faint attention is seen.",
        )  # fmt: skip
    what = (attention.name, "grid", scale, tone)
    data = session.derived(
        recording, what,
        lambda: all_heads.payload(
            attention.pattern, heads, naming.MEANING, queries.tokens, keys.tokens, scale.lower(), tone == "Log", session.name_of(recording, *what)
        ),
        weigh=len,
    )  # fmt: skip
    all_heads.show(data, "heads", on_choice=take_head)


def formula(recording: Recording, attention: Attention, head: naming.Head, queries: Stream, keys: Stream) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    at = head.layer, head.head
    query, key = numbers.strongest(attention.pattern[at], session.whole("token", len(queries.tokens)))
    steps = numbers.softmax_of(attention.scores[at][query], attention.allowed[query], key)
    pair = f"**{session.literal(queries.tokens[query])}** (token {query}) → **{session.literal(keys.tokens[key])}** (token {key})"
    st.markdown(
        f"**How a weight is made.** A head turns each token into a query q, a key k and a value v. "
        f"The score of a pair is q · k / √{recording.model.d_head}; each row of scores goes through a softmax, and the weights say how much of each value is taken.  \n"
        f"Layer {head.layer}, head {head.head}, {pair}: score {steps.score:.2f}, e^{steps.score:.2f} = {power(steps.exponential)}, "
        f"the row’s sum is {power(steps.total)}, so the weight is {power(steps.exponential)} / {power(steps.total)} = **{steps.weight:.3f}**."
    )


def power(value: float) -> str:
    """A positive number in four figures, large and small ones as a power of ten."""
    if 0.01 <= value < 100_000:
        return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    digits, _, exponent = f"{value:.3e}".partition("e")
    return f"{digits} × 10" + str(int(exponent)).translate(SUPERSCRIPT)


def detail(recording: Recording, attention: Attention, head: naming.Head, queries: Stream, keys: Stream) -> None:
    at, model, text = (head.layer, head.head), recording.model.name, recording.text
    matrix = attention.pattern[at]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(f"Layer {head.layer}, head {head.head}", anchor=False)
        view = st.segmented_control("View", VIEWS, key="view", required=True, persist_state="session", label_visibility="collapsed")
    st.markdown(summary(head))
    st.caption(f"Entropy {head.entropy:.2f} of an even row’s · mean distance {head.distance:.1f} tokens · attention to the first token {head.sink:.2f}")
    scale, tone = st.session_state.scale, st.session_state.tone
    title = f"Layer {head.layer}, head {head.head}: {head.name}"
    caption = caption_of(recording, attention, scale, tone)
    file = f"headlight-{recording.model.name}-L{head.layer}H{head.head}"
    pin = session.whole("token", len(queries.tokens))
    one_head.show(
        one_head.payload(
            matrix, queries.tokens, keys.tokens, keys.special,
            layer=head.layer, head=head.head, pin=-1 if pin is None else pin, view=view.lower(),
            scale=scale.lower(), log=tone == "Log", title=title, caption=caption, file=file,
            evidence=[(one.query, one.key) for one in head.evidence],
            token=session.name_of(recording, attention.name, head.layer, head.head, scale, tone, view),
        ),
        "one head", on_choice=take_token,
    )  # fmt: skip
    if view == "Table":
        columns = numbers.columns(matrix, queries.tokens, keys.tokens)
        four = dict.fromkeys(list(columns)[1:], st.column_config.NumberColumn(format="%.4f", width=76))
        st.dataframe(columns, hide_index=True, height=480, column_config=four, alt=f"{title}, rows queries, columns keys")
    if view == "Plotly":
        in_plotly(matrix, queries, keys, (title, *caption), scale, tone, file)
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Download CSV", lambda: csv_of(model, text, attention.name, at, (title, *caption)), f"{file}.csv", "text/csv", on_click="ignore"
        )
        st.download_button(
            "Download the whole recording (NPZ)", lambda: to_npz(session.record(model, text)), f"headlight-{recording.model.name}.npz", "application/octet-stream",
            on_click="ignore", help="Every stream and attention as numpy arrays; models.recording.from_npz reads it back. Fields: docs in that file.",
        )  # fmt: skip
    with st.expander("Why this name?"):
        reasons(head)


def csv_of(model: str, text: str, attention: str, at: tuple[int, int], about: tuple[str, ...]) -> str:
    recording = session.record(model, text)
    found = next(one for one in recording.attention if one.name == attention)
    return numbers.to_csv(found.pattern[at], recording.stream(found.query).tokens, recording.stream(found.key).tokens, about)


def in_plotly(matrix, queries: Stream, keys: Stream, about: tuple[str, ...], scale: str, tone: str, file: str) -> None:
    """The same matrix in Plotly, imported only when it is wanted."""
    from explorer.figures.attention import heatmap

    share = numbers.shares(matrix, scale)
    top = {"Head": "the head’s largest", "Row": "the row’s largest", "Global": "1"}[scale]
    if tone == "Log":
        figure = heatmap(numbers.decades(share), matrix, queries.tokens, keys.tokens, about, -numbers.LOG_DECADES, 0, f"log10 of the share of {top}")
    else:
        figure = heatmap(share, matrix, queries.tokens, keys.tokens, about, 0, 1, f"share of {top}" if scale != "Global" else "weight")
    options = {"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": file}}
    st.plotly_chart(figure, key="plotly", config=options, alt=f"{about[0]}, keys along x, queries down y")


def summary(head: naming.Head) -> str:
    """The head's name, what it means, and what speaks for it."""
    meaning = naming.MEANING[head.name].rstrip(".")
    if head.name == "broad":
        return f"**broad.** {meaning}: {head.entropy:.0%} of an even row’s entropy on average."
    if not head.n_queries:
        return f"**{head.name}.** {meaning}.{closest(head)}"
    return (
        f"**{head.name}.** {meaning}: {head.score:.0%} of the attention on average, where an even row would give {head.chance:.1%}; "
        f"shown by {head.n_shown} of {head.n_queries} tokens."
    )


def closest(head: naming.Head) -> str:
    """For a head without a name: the habit it comes nearest to, of those that this text can show well."""
    shown = [one for one in head.relations if one.n_queries >= naming.FEWEST_QUERIES_ELSE and one.lift > 0]
    if head.name != naming.NO_PATTERN or not shown:
        return ""
    near = max(shown, key=lambda one: one.lift)
    return f" The nearest is “{near.name}”: {near.score:.0%} of the attention, an even row {near.chance:.1%}."


def reasons(head: naming.Head) -> None:
    """Every pattern's score beside chance, and the rule that made the name."""
    st.markdown(naming.MEANING[head.name])
    rows = "\n".join(
        f"| {one.name} | {one.score:.2f} | {one.chance:.2f} | {one.lift:+.2f} | {one.n_shown} of {one.n_queries} |" for one in sorted(head.relations, key=lambda one: -one.lift)
    )
    st.markdown(f"| pattern | score | chance | lift | shown by |\n|---|--:|--:|--:|--:|\n{rows}")
    st.caption(
        f"Score: mean attention along the pattern, over the tokens that can show it. Chance: the same for an even row. "
        f"Lift = (score − chance) / (1 − chance). The name goes to the highest lift of at least {naming.NAMED} that more than half of the single tokens reach too, "
        f"and at least {naming.FEWEST_QUERIES_ELSE} of them (for repeated words {naming.FEWEST_QUERIES['same word']}); to “special” only where nothing else fits; else “broad” from an entropy of {naming.BROAD} of an even row’s."
    )


def caption_of(recording: Recording, attention: Attention, scale: str, tone: str) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    model = recording.model
    edits = ", ".join(map(str, recording.edits)) or "none"
    return (
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · {attention.name}-attention · edits: {edits}",
        f"Colour: {tone.lower()}, {SCALE_LABELS[scale].lower()}",
        "Text: " + " ".join(recording.text.split()),
    )


def take_head() -> None:
    chosen = st.session_state.heads.get("head") or ""
    st.session_state.layer, _, st.session_state.head = chosen.partition(".")


def take_token() -> None:
    token = st.session_state["one head"].get("token")
    st.session_state.token = "" if token in (None, -1) else str(int(token))


for name, options in (("view", VIEWS), ("scale", numbers.SCALES), ("tone", numbers.TONES)):
    session.one_of(name, options)
with st.spinner("Loading the model …"):
    shown = session.recording()
explore(shown.model.name, st.session_state.text)
