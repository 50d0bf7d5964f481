"""Attention: which head looks where?"""

from __future__ import annotations

from math import isnan

import streamlit as st

from explorer import session
from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.components import head as one_head
from explorer.components import heads as all_heads
from models.recording import Attention, Recording, to_npz

SCALE_LABELS = {"Head": "Per head", "Row": "Per row", "Global": "0 to 1"}
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
VIEWS = ("Matrix", "Lines", "Table", "Plotly")
LABELS = {"encoder self": "Encoder self-attention", "decoder self": "Decoder self-attention", "cross": "Cross-attention"}
# Who looks at whom, where that is not simply every token at every token of one text.
WHO = {
    "encoder self": "The source looks at itself: every token at every token.",
    "decoder self": "The target looks at itself: each token at itself and at those before it. Later ones are not allowed, because when it is written they are not there yet.",
    "cross": "The target looks at the source: each row is a token that the decoder is about to produce, each column a token of the source.",
    "self": "Each token looks at itself and at those before it. Later ones are not allowed, because the model learned to say what comes next.",
}
ROW_RULE = "Rows are named after the token they produce; the last one after what the model would produce next."
ROW_RULE_TYPED = "Rows are named after the next token of the typed target; the last one after what the model would say next."
NOT_ALLOWED = "Above the diagonal: later tokens, not allowed."


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long as the visit lasts.
    """
    recording = session.record(model, text, target=target)
    attention = which(recording)
    axes = axes_of(recording, attention)
    heads = session.derived(recording, (attention.name, "heads"), lambda: naming.describe(recording, attention))
    head = chosen_head(heads, attention)
    held = held_tokens(axes)
    left, right = st.columns([1, 1.08], gap="large")
    with left:
        grid(recording, attention, heads, axes)
        formula(recording, attention, head, axes, held, target)
    with right:
        detail(recording, attention, head, axes, held, target)
    session.address()


def names_of(recording: Recording) -> tuple[str, ...]:
    """What the address calls the recording's attentions; the first one needs no word."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def which(recording: Recording) -> Attention:
    """The attention on screen, with the control that chooses it where there are several, and a line on who looks at whom."""
    names = names_of(recording)
    with st.container(gap="xsmall"):
        if len(names) > 1:
            st.segmented_control(
                "Attention", names, key="attention", format_func=lambda name: LABELS[name or recording.attention[0].name], required=True,
                persist_state="session", label_visibility="collapsed", on_change=forget_choices,
            )  # fmt: skip
        attention = recording.attention[names.index(st.session_state.attention)]
        if len(names) > 1 or not attention.allowed.all():
            st.caption(WHO[attention.name])
    return attention


def axes_of(recording: Recording, attention: Attention) -> numbers.Axes:
    """What rows and columns are called; between two texts that takes the token the model would produce after the target."""
    if attention.query == attention.key:
        return numbers.axes(recording, attention)
    last = len(recording.stream(attention.query).tokens) - 1
    following = numbers.likeliest(session.logits(recording, attention.query, last))
    return numbers.axes(recording, attention, *session.labels(recording.model.name, [following]))


def held_tokens(axes: numbers.Axes) -> tuple[int | None, int | None]:
    """The row and the column that are held: of one text the chosen token's, between two texts the one or the other."""
    row = session.whole("token", len(axes.rows))
    if axes.said is None:
        session.whole("source", 0)
        return row, row
    column = session.whole("source", len(axes.keys) if row is None else 0)
    return row, column


def chosen_head(heads: tuple[naming.Head, ...], attention: Attention) -> naming.Head:
    """The head on screen: the one chosen, or else the one whose name stands out most."""
    layers, per_layer = attention.pattern.shape[:2]
    layer, head = session.whole("layer", layers), session.whole("head", per_layer)
    if layer is None or head is None:
        return max(heads, key=naming.clarity)
    return heads[layer * per_layer + head]


def grid(recording: Recording, attention: Attention, heads: tuple[naming.Head, ...], axes: numbers.Axes) -> None:
    across = axes.said is not None
    sides = "rows are the target’s tokens as they are produced, columns the source’s" if across else "rows are queries, columns keys"
    st.subheader("Which head looks where?", anchor=False, help=f"Layers down, heads across. Each square is one head’s matrix on your text: {sides}.")
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
            attention.pattern, attention.allowed, heads, naming.meanings(recording, attention), axes.rows, axes.keys, across,
            scale.lower(), tone == "Log", session.name_of(recording, *what),
        ),
        weigh=len,
    )  # fmt: skip
    all_heads.show(data, "heads", on_choice=take_head)


def formula(recording: Recording, attention: Attention, head: naming.Head, axes: numbers.Axes, held: tuple[int | None, int | None], target: str | None) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    at = head.layer, head.head
    row, column = held
    query, key = numbers.strongest(attention.pattern[at], attention.allowed, row, column if row is None else None)
    steps = numbers.softmax_of(attention.scores[at][query], attention.allowed[query], key)
    who = "A head turns each token into a query q, a key k and a value v. "
    pair = f"**{session.literal(axes.rows[query])}** (token {query}) → **{session.literal(axes.keys[key])}** (token {key})"
    if axes.said is not None:
        reads, says = (session.literal(token) for token in (recording.stream(attention.query).tokens[query], axes.said[query][0]))
        who = "A head turns what the decoder reads into a query q, and each source token, as the encoder leaves it, into a key k and a value v. "
        pair = f"row {query} (reads **{reads}**, {'produces' if target is None else 'before'} **{says}**) looks at **{session.literal(axes.keys[key])}** (token {key})"
    alone = "" if attention.allowed[query].sum() > 1 else " There is nothing else this token may look at."
    st.markdown(
        f"**How a weight is made.** {who}"
        f"The score of a pair is q · k / √{recording.model.d_head}; each row of scores goes through a softmax, and the weights say how much of each value is taken.  \n"
        f"Layer {head.layer}, head {head.head}, {pair}: score {steps.score:.2f}, e^{steps.score:.2f} = {power(steps.exponential)}, "
        f"the row’s sum is {power(steps.total)}, so the weight is {power(steps.exponential)} / {power(steps.total)} = **{steps.weight:.3f}**.{alone}"
    )


def power(value: float) -> str:
    """A positive number in four figures, large and small ones as a power of ten."""
    if 0.01 <= value < 100_000:
        return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"
    digits, _, exponent = f"{value:.3e}".partition("e")
    return f"{digits} × 10" + str(int(exponent)).translate(SUPERSCRIPT)


def detail(recording: Recording, attention: Attention, head: naming.Head, axes: numbers.Axes, held: tuple[int | None, int | None], target: str | None) -> None:
    at, model, text = (head.layer, head.head), recording.model.name, recording.text
    matrix = attention.pattern[at]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.subheader(f"Layer {head.layer}, head {head.head}", anchor=False)
        view = st.segmented_control("View", VIEWS, key="view", required=True, persist_state="session", label_visibility="collapsed")
    st.markdown(summary(head, naming.meanings(recording, attention)))
    st.caption(figures(head, axes))
    scale, tone = st.session_state.scale, st.session_state.tone
    title = f"Layer {head.layer}, head {head.head}: {head.name}"
    caption = caption_of(recording, attention, axes, scale, tone, target)
    file = "-".join(["headlight", model, *(attention.name.split() if len(recording.attention) > 1 else ()), f"L{head.layer}H{head.head}"])
    row, column = (-1 if place is None else place for place in held)
    one_head.show(
        one_head.payload(
            matrix, axes.rows, axes.keys, axes.special, allowed=attention.allowed, said=axes.said,
            layer=head.layer, head=head.head, pin=row, column=column, view=view.lower(),
            scale=scale.lower(), log=tone == "Log", title=title, caption=caption, file=file,
            evidence=[(one.query, one.key) for one in head.evidence],
            token=session.name_of(recording, attention.name, head.layer, head.head, scale, tone, view),
        ),
        "one head", on_choice=take_token,
    )  # fmt: skip
    if view == "Table":
        columns = numbers.columns(matrix, axes)
        four = dict.fromkeys(list(columns)[1:], st.column_config.NumberColumn(format="%.4f", width=76))
        st.dataframe(columns, hide_index=True, height=480, column_config=four, alt=f"{title}, rows {axes.sides[0]} tokens, columns {axes.sides[1]} tokens")
    if view == "Plotly":
        in_plotly(matrix, attention, axes, (title, *caption), scale, tone, file)
    if axes.said is not None:
        st.caption(row_rule(target))
    elif view == "Table" and not attention.allowed.all():
        st.caption(f"{NOT_ALLOWED} Their weight is 0.")
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            "Download CSV", lambda: csv_of(model, text, target, attention.name, at, (title, *caption)), f"{file}.csv", "text/csv", on_click="ignore"
        )
        st.download_button(
            "Download the whole recording (NPZ)", lambda: to_npz(session.record(model, text, target=target)), f"headlight-{model}.npz", "application/octet-stream",
            on_click="ignore", help="Every stream and attention as numpy arrays; models.recording.from_npz reads it back. Fields: docs in that file.",
        )  # fmt: skip
    with st.expander("Why this name?"):
        reasons(head, naming.meanings(recording, attention), axes)


def csv_of(model: str, text: str, target: str | None, attention: str, at: tuple[int, int], about: tuple[str, ...]) -> str:
    recording = session.record(model, text, target=target)
    found = next(one for one in recording.attention if one.name == attention)
    axes = axes_of(recording, found)
    return numbers.to_csv(found.pattern[at], axes, about)


def in_plotly(matrix, attention: Attention, axes: numbers.Axes, about: tuple[str, ...], scale: str, tone: str, file: str) -> None:
    """The same matrix in Plotly, imported only when it is wanted."""
    from explorer.figures.attention import heatmap

    share = numbers.blanked(numbers.shares(matrix, scale), attention.allowed)
    top = {"Head": "the head’s largest", "Row": "the row’s largest", "Global": "1"}[scale]
    if tone == "Log":
        figure = heatmap(numbers.decades(share), matrix, axes.rows, axes.keys, about, -numbers.LOG_DECADES, 0, f"log10 of the share of {top}", axes.sides)
    else:
        figure = heatmap(share, matrix, axes.rows, axes.keys, about, 0, 1, f"share of {top}" if scale != "Global" else "weight", axes.sides)
    options = {"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": file}}
    st.plotly_chart(figure, key="plotly", config=options, alt=f"{about[0]}, {axes.sides[1]} tokens along x, {axes.sides[0]} tokens down y")


def summary(head: naming.Head, meanings: dict[str, str]) -> str:
    """The head's name, what it means, and what speaks for it."""
    meaning = meanings[head.name].rstrip(".")
    if head.name == "broad":
        return f"**broad.** {meaning}: {head.entropy:.0%} of an even row’s entropy on average."
    if not head.n_queries:
        return f"**{head.name}.** {meaning}.{closest(head)}"
    return (
        f"**{head.name}.** {meaning}: {head.score:.0%} of the attention on average, where an even row would give {head.chance:.1%}; "
        f"shown by {head.n_shown} of {head.n_queries} tokens."
    )


def figures(head: naming.Head, axes: numbers.Axes) -> str:
    """What is measured of every head, in a line."""
    if isnan(head.entropy):
        return "No token here has a choice of where to look."
    first = "attention to the first token" if axes.said is None else "attention to the source’s first token"
    distance = f" · mean distance {head.distance:.1f} tokens" if axes.said is None else ""
    return f"Entropy {head.entropy:.2f} of an even row’s{distance} · {first} {head.sink:.2f}"


def closest(head: naming.Head) -> str:
    """For a head without a name: the habit it comes nearest to, of those that this text can show well."""
    shown = [one for one in head.relations if one.n_queries >= naming.FEWEST_QUERIES_ELSE and one.lift > 0]
    if head.name != naming.NO_PATTERN or not shown:
        return ""
    near = max(shown, key=lambda one: one.lift)
    return f" The nearest is “{near.name}”: {near.score:.0%} of the attention, an even row {near.chance:.1%}."


def reasons(head: naming.Head, meanings: dict[str, str], axes: numbers.Axes) -> None:
    """Every pattern's score beside chance, and the rule that made the name."""
    st.markdown(meanings[head.name])
    rows = "\n".join(
        f"| {one.name} | {one.score:.2f} | {one.chance:.2f} | {one.lift:+.2f} | {one.n_shown} of {one.n_queries} |" for one in sorted(head.relations, key=lambda one: -one.lift)
    )
    if rows:
        st.markdown(f"| pattern | score | chance | lift | shown by |\n|---|--:|--:|--:|--:|\n{rows}")
    near = ""
    if axes.said is None:
        enough = f"at least {naming.FEWEST_QUERIES_ELSE} of them (for repeated words {naming.FEWEST_QUERIES['same word']}); to “special” only where nothing else fits"
    else:
        enough = (
            f"at least {naming.FEWEST_QUERIES_ELSE} of them, more than heads that look at one random token would show by luck in {naming.FLUKE:.0%} of cases; "
            f"the lift of “separator”, which takes in “end”, counts {naming.EDGE} less"
        )
        near = (
            f" Near its place, along the diagonals, is within {naming.NEAR:.0%} of the source’s length, or half a token; "
            "the last row, which produces what follows the target, is left out there."
        )
    st.caption(
        f"Score: mean attention along the pattern, over the tokens that can show it. Chance: the same for an even row. "
        f"Lift = (score − chance) / (1 − chance). The name goes to the highest lift of at least {naming.NAMED} that more than half of the single tokens reach too, "
        f"and {enough}; else “broad” from an entropy of {naming.BROAD} of an even row’s.{near}"
    )


def caption_of(recording: Recording, attention: Attention, axes: numbers.Axes, scale: str, tone: str, target: str | None) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    model = recording.model
    edits = ", ".join(map(str, recording.edits)) or "none"
    lines = [
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · {attention.name}-attention · edits: {edits}",
        f"Colour: {tone.lower()}, {SCALE_LABELS[scale].lower()}",
    ]
    if axes.said is not None:
        lines.append(row_rule(target))
    if not attention.allowed.all():
        lines.append(NOT_ALLOWED)
    if "decoder" in (attention.query, attention.key) and len(recording.streams) > 1:
        lines.append(f"Target ({'the model’s own' if target is None else 'as typed'}): " + " ".join(recording.target.split()))
    return (*lines, "Text: " + " ".join(recording.text.split()))


def row_rule(target: str | None) -> str:
    """What a row between two texts is named after. A typed target is not what the model produces."""
    return ROW_RULE if target is None else ROW_RULE_TYPED


def take_head() -> None:
    chosen = st.session_state.heads.get("head") or ""
    st.session_state.layer, _, st.session_state.head = chosen.partition(".")


def take_token() -> None:
    row, column = st.session_state["one head"].get("token") or (-1, -1)
    st.session_state.token = "" if row < 0 else str(int(row))
    st.session_state.source = "" if column < 0 else str(int(column))


def forget_choices() -> None:
    """Another attention has other heads and other tokens."""
    for choice in ("layer", "head", "token", "source"):
        st.session_state[choice] = ""


def typed_target() -> str | None:
    """What the reader typed for the decoder to read, on the page of translations; None where the model writes its own."""
    writes = session.handle(st.session_state.model).card.kind == "encoder-decoder"
    return st.session_state.target if writes and st.session_state.target.strip() else None


def tell_target(recording: Recording) -> None:
    """A word on a target that is not the model's own, and the way back."""
    dropped = f" Its last {recording.target_dropped:,} tokens do not fit and are left out." if recording.target_dropped else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"The decoder reads the target that you typed on the page Translation, not what it would write itself.{dropped}")
        st.button("Back to the model’s own", on_click=drop_target)


def drop_target() -> None:
    st.session_state.target = st.session_state.token = st.session_state.source = ""


for name, options in (("view", VIEWS), ("scale", numbers.SCALES), ("tone", numbers.TONES)):
    session.one_of(name, options)
with st.spinner("Loading the model …"):
    typed = typed_target()
    shown = session.recording(target=typed)
if typed is not None:
    tell_target(shown)
session.one_of("attention", names_of(shown))
explore(shown.model.name, st.session_state.text, typed)
