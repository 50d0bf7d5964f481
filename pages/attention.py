"""Attention: which head looks where?"""

from __future__ import annotations

from functools import partial

import streamlit as st

from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.analysis import right, sinks
from explorer.analysis.numbers import power, softmax_told, weight
from explorer.components import head as one_head
from explorer.components import heads as all_heads
from explorer.frame import onscreen
from explorer.frame.table import csv_button, recording_button
from explorer.memory import address, models, passes, shelf
from explorer.sentences import names as called
from explorer.sentences.escape import literal
from models.recording import Attention, Recording

SCALE_LABELS = {"Head": "Per head", "Row": "Per row", "Global": "0 to 1"}
VIEWS = ("Matrix", "Lines", "Table", "Plotly")
LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
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
WORD_RULE = "Words: a word has the sum of its tokens’ weights as a column, and their mean as a row."
WORD_RULE_ACROSS = "Words: a column has the sum of its tokens’ weights; a row is a word of the target, the mean over the tokens that are produced for it."
SINK_RULE = f"A sink is a token that takes at least {sinks.SINK:.0%} of the head’s attention on average over the rows, and {sinks.SINK_LIFT} times an even row’s share."


@st.fragment
def explore(model: str, text: str, target: str | None) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long as the visit lasts.
    """
    recording = passes.record(model, text, target=target)
    attention = which(recording)
    axes = axes_of(recording, attention)
    heads = shelf.derived(
        recording, (attention.name, "heads"), lambda: naming.describe(recording, attention)
    )
    head = chosen_head(heads, attention)
    held = held_tokens(axes)
    left, right = st.columns([1, 1.08], gap="large")
    with left:
        grid(recording, attention, heads, axes)
        formula(recording, attention, head, axes, held, target)
        is_it_right(recording)
    with right:
        detail(recording, attention, head, axes, held, target)
    address.write()


def names_of(recording: Recording) -> tuple[str, ...]:
    """What the address calls the recording's attentions; the first one needs no word."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def which(recording: Recording) -> Attention:
    """The attention on screen, with the control that chooses it where there are several, and a line on who looks at whom."""
    names = names_of(recording)
    with st.container(gap="xsmall"):
        if len(names) > 1:
            st.segmented_control(
                "Attention",
                names,
                key="attention",
                format_func=partial(labelled, recording.attention[0].name),
                required=True,
                persist_state="session",
                label_visibility="collapsed",
                on_change=forget_choices,
            )
        attention = recording.attention[names.index(st.session_state.attention)]
        if len(names) > 1 or not attention.allowed.all():
            st.caption(WHO[attention.name])
    return attention


def labelled(first: str, name: str) -> str:
    """What the control calls an attention; the `first` one needs no word in the address."""
    return LABELS[name or first]


def axes_of(recording: Recording, attention: Attention) -> numbers.Axes:
    """What rows and columns are called; between two texts that takes the token the model would produce after the target."""
    if attention.query == attention.key:
        return numbers.axes(recording, attention)
    last = len(recording.stream(attention.query).tokens) - 1
    following = numbers.likeliest(passes.logits(recording, attention.query, last))
    return numbers.axes(recording, attention, *models.labels(recording.model.name, [following]))


def held_tokens(axes: numbers.Axes) -> tuple[int | None, int | None]:
    """The row and the column that are held: of one text the chosen token's, between two texts the one or the other."""
    row = address.whole("token", len(axes.rows))
    if axes.said is None:
        address.whole("source", 0)
        return row, row
    column = address.whole("source", len(axes.keys) if row is None else 0)
    return row, column


def chosen_head(heads: tuple[naming.Head, ...], attention: Attention) -> naming.Head:
    """The head on screen: the one chosen, or else the one whose name stands out most."""
    layers, per_layer = attention.pattern.shape[:2]
    layer, head = address.whole("layer", layers), address.whole("head", per_layer)
    if layer is None or head is None:
        return max(heads, key=naming.clarity)
    return heads[layer * per_layer + head]


def grid(
    recording: Recording, attention: Attention, heads: tuple[naming.Head, ...], axes: numbers.Axes
) -> None:
    across = axes.said is not None
    sides = (
        "rows are the target’s tokens as they are produced, columns the source’s"
        if across
        else "rows are queries, columns keys"
    )
    st.subheader(
        "Which head looks where?",
        anchor=False,
        help=f"Layers down, heads across. Each square is one head’s matrix on your text: {sides}.",
    )
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        scale = st.segmented_control(
            "Colour scale",
            numbers.SCALES,
            key="scale",
            format_func=SCALE_LABELS.get,
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            help="What the top of the colour scale is: each head’s largest weight, each row’s, or 1 for all heads alike.",
        )
        tone = st.segmented_control(
            "Tone",
            numbers.TONES,
            key="tone",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            help="Log shows three powers of ten below the top of the scale, so that faint attention is seen.",
        )
    what = (attention.name, "grid", scale, tone)
    data = shelf.derived(
        recording,
        what,
        lambda: all_heads.payload(
            all_heads.Grid(
                attention.pattern,
                attention.allowed,
                heads,
                naming.meanings(recording, attention),
                axes.rows,
                axes.keys,
                scale.lower(),
                tone == "Log",
                shelf.name_of(recording, *what),
                across,
            )
        ),
        weigh=len,
    )
    all_heads.show(data, "heads", on_choice=take_head)


def choices() -> tuple[str, str, str]:
    """What rows and columns are, which are kept, and whether the rest is renormalised."""
    return st.session_state.att_unit, st.session_state.att_keep, st.session_state.att_sum


def looked_at(
    recording: Recording,
    attention: Attention,
    at: tuple[int, int],
    axes: numbers.Axes,
    chosen: tuple[str, str, str],
) -> numbers.Shown:
    """A head's matrix under `choices`: between tokens or words, all of them or some left out."""
    unit, kept, total = chosen
    grouped = None
    if unit == "Words":
        grouped = shelf.derived(
            recording, (attention.name, "words"), lambda: numbers.groups(recording, attention, axes)
        )
    return numbers.shown(
        attention.pattern[at], attention.allowed, axes, grouped, kept, total == "Renormalised"
    )


def units() -> None:
    """What rows and columns are: tokens or words, and which of them."""
    state = st.session_state
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.segmented_control(
            "Rows and columns",
            numbers.UNITS,
            key="att_unit",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        st.segmented_control(
            "Which tokens",
            numbers.KEPT,
            key="att_keep",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
        if state.att_keep == "All":
            state.att_sum = numbers.SUMS[0]
        else:
            state["att renormalise"] = state.att_sum == "Renormalised"
            st.toggle(
                "Renormalise",
                key="att renormalise",
                help="Rows are divided by what they give the shown tokens, so that they sum to 1 again.",
                on_change=take_sum,
            )


def notes(shown: numbers.Shown) -> list[str]:
    """What the picture shows in the place of all tokens, and by which rules."""
    state, lines = st.session_state, []
    across = shown.axes.said is not None
    if state.att_unit == "Words":
        lines.append(WORD_RULE_ACROSS if across else WORD_RULE)
    what = "sinks" if state.att_keep == "No sinks" else "special tokens"
    if shown.nothing_left:
        lines.append(f"There is nothing else than {what} here, so all are shown.")
    elif state.att_keep != "All" and shown.hidden is None:
        lines.append(f"There are no {what} here, so all is shown.")
    elif shown.hidden is not None:
        gone = ", ".join(shown.left_out[:8]) + (
            f" and {len(shown.left_out) - 8} more" if len(shown.left_out) > 8 else ""
        )
        where = "columns" if across and state.att_keep == "No sinks" else "rows and columns"
        lines.append(
            f"Left out, {where}: {gone or 'rows that end the target'}. “hidden”: what of each row goes there."
        )
        lines.append(
            "Rows renormalised over the shown tokens: they sum to 1 without the hidden share; rows that give the shown tokens nothing stay empty."
            if shown.renormalised
            else "Weights as they are: a row and its hidden share sum to 1."
        )
    if state.att_keep == "No sinks":
        lines.append(SINK_RULE)
    return lines


def chosen_cell(matrix, allowed, held: tuple[int | None, int | None]) -> tuple[int, int]:
    """The cell (query, key) that is opened: the one chosen, else the strongest of the row or column that is held, else of all."""
    row, column = held
    query, _, key = st.session_state.anatomy_cell.partition(".")
    if (
        query.isdecimal()
        and key.isdecimal()
        and len(key) < 6
        and query == str(row)
        and int(key) < len(matrix[row])
    ):
        return row, int(key)
    st.session_state.anatomy_cell = ""
    return numbers.strongest(matrix, allowed, row, column if row is None else None)


def formula(
    recording: Recording,
    attention: Attention,
    head: naming.Head,
    axes: numbers.Axes,
    held: tuple[int | None, int | None],
    target: str | None,
) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    at = head.layer, head.head
    query, key = chosen_cell(attention.pattern[at], attention.allowed, held)
    if not attention.opens:
        st.markdown(
            "**How a weight is made** cannot be shown here: this model gives its weights, but not the scores, queries and keys that they are made of."
        )
        return
    if not attention.allowed[query, key]:
        st.markdown(
            f"**How a weight is made.** **{literal(axes.rows[query])}** (token {query}) may not look at **{literal(axes.keys[key])}** (token {key}): the weight is 0."
        )
        return
    steps = numbers.softmax_of(attention.scores[at][query], attention.allowed[query], key)
    who = "A head turns each token into a query q, a key k and a value v. "
    pair = f"**{literal(axes.rows[query])}** (token {query}) → **{literal(axes.keys[key])}** (token {key})"
    if axes.said is not None:
        reads, says = (
            literal(token)
            for token in (recording.stream(attention.query).tokens[query], axes.said[query][0])
        )
        who = "A head turns what the decoder reads into a query q, and each source token, as the encoder leaves it, into a key k and a value v. "
        pair = f"row {query} (reads **{reads}**, {'produces' if target is None else 'before'} **{says}**) looks at **{literal(axes.keys[key])}** (token {key})"
    alone = (
        ""
        if attention.allowed[query].sum() > 1
        else " There is nothing else this token may look at."
    )
    small = weight(steps.weight)
    score, exponential, total = softmax_told(steps.score, steps.log_total, small)
    st.markdown(
        f"**How a weight is made.** {who}"
        f"The score of a pair is {scoring(recording, attention, head.layer)}; each row of scores goes through a softmax, and the weights say how much of each value is taken.  \n"
        f"Layer {head.layer}, head {head.head}, {pair}: score {score}, e^{score} = {exponential}, "
        f"the row’s sum is {total}, so the weight is {exponential} / {total} = **{small}**.{alone}"
    )


def scoring(recording: Recording, attention: Attention, layer: int) -> str:
    """How this model makes a score of q and k."""
    biased = models.offers(recording.model.name).biased
    return f"q · k{right.scaling(attention, layer)}{' plus a bias' if biased else ''}"


def detail(
    recording: Recording,
    attention: Attention,
    head: naming.Head,
    axes: numbers.Axes,
    held: tuple[int | None, int | None],
    target: str | None,
) -> None:
    at, model, text = (head.layer, head.head), recording.model.name, recording.text
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.subheader(f"Layer {head.layer}, head {head.head}", anchor=False)
        view = st.segmented_control(
            "View",
            VIEWS,
            key="view",
            required=True,
            persist_state="session",
            label_visibility="collapsed",
        )
    st.markdown(called.summary(head, naming.meanings(recording, attention)))
    st.caption(called.figures(head))
    shown = looked_at(recording, attention, at, axes, choices())
    state = st.session_state
    scale, tone = state.scale, state.tone
    title = f"Layer {head.layer}, head {head.head}: {head.name}"
    caption = caption_of(recording, attention, axes, shown, scale, tone, target)
    file = "-".join(
        [
            "headlight",
            model,
            *(attention.name.split() if len(recording.attention) > 1 else ()),
            f"L{head.layer}H{head.head}",
            *suffix(shown),
        ]
    )
    cell = (
        chosen_cell(attention.pattern[at], attention.allowed, held) if state.anatomy_cell else None
    )
    one_head.show(
        one_head.payload(
            shown.matrix,
            shown.axes.rows,
            shown.axes.keys,
            shown.axes.special,
            allowed=shown.allowed,
            said=shown.axes.said,
            hidden=shown.hidden,
            places=(shown.axes.row_places, shown.axes.key_places),
            layer=head.layer,
            head=head.head,
            pin=shown.row_of(held[0]),
            column=shown.column_of(held[1]),
            cell=next(iter(shown.cells([cell] if cell else [])), None),
            view=view.lower(),
            scale=scale.lower(),
            log=tone == "Log",
            title=title,
            caption=caption,
            file=file,
            evidence=shown.cells([(one.query, one.key) for one in head.evidence]),
            token=shelf.name_of(
                recording,
                attention.name,
                head.layer,
                head.head,
                scale,
                tone,
                view,
                state.att_unit,
                state.att_keep,
                state.att_sum,
            ),
        ),
        "one head",
        on_choice=partial(take_token, model, text, target, attention.name, at),
    )
    if view == "Table":
        columns = numbers.columns(shown.matrix, shown.axes, shown.hidden)
        four = dict.fromkeys(
            list(columns)[1:], st.column_config.NumberColumn(format="%.4f", width=76)
        )
        st.dataframe(
            columns,
            hide_index=True,
            height=480,
            column_config=four,
            alt=f"{title}, rows {axes.sides[0]} tokens, columns {axes.sides[1]} tokens",
        )
    if view == "Plotly":
        in_plotly(shown, (title, *caption), scale, tone, file)
    units()
    if lines := notes(shown):
        st.caption(
            " ".join(map(literal, lines))
            + " The name and the figures above are measured on all tokens."
        )
    if axes.said is not None:
        st.caption(row_rule(target))
    elif view == "Table" and not attention.allowed.all():
        st.caption(f"{NOT_ALLOWED} Their weight is 0.")
    query, key = chosen_cell(attention.pattern[at], attention.allowed, held)
    pair = f"{literal(axes.rows[query])} {'looks at' if axes.said is not None else '→'} {literal(axes.keys[key])}"
    st.page_link(
        "../pages/anatomy.py",
        label=f"Take this weight apart: **{pair}**, {weight(attention.pattern[at][query, key])}",
        icon=":material/zoom_in:",
    )
    with st.container(horizontal=True, gap="small"):
        name, asked = attention.name, choices()
        csv_button(
            lambda: columns_of(model, text, target, name, at, asked), (title, *caption), file
        )
        recording_button(model, text, target)
    with st.expander("Why this name?"):
        reasons(head, naming.meanings(recording, attention), axes.said is not None)


def is_it_right(recording: Recording) -> None:
    """The laws of the recording, checked when the reader asks."""
    state = st.session_state
    with st.expander(
        "Is it right?",
        icon=":material/fact_check:",
        key="att right",
        expanded=state.att_right == "Open",
        on_change="rerun",
    ) as panel:
        state.att_right = "Open" if panel.open else ""
        if panel.open:
            st.markdown(
                verdicts(
                    shelf.derived(
                        recording, "right", lambda: right.checks(recording, *parameters(recording))
                    )
                )
            )


def parameters(recording: Recording) -> tuple:
    """What the laws are checked with: W_O, the LayerNorms by stream, and how the model was built; None for what a model does not show."""
    try:
        outputs, norms = (
            passes.outputs(recording),
            {stream.name: passes.norms(recording, stream.name) for stream in recording.streams},
        )
    except (ValueError, AttributeError):
        outputs = norms = None
    offered, built = (
        models.offers(recording.model.name),
        models.cards().get(recording.model.name, {}).get("config") or {},
    )
    return (
        outputs,
        norms,
        built | {"biased": offered.biased},
    )


def verdicts(checks: tuple[right.Check, ...]) -> str:
    """The laws as a table, and what they come to."""
    done = [check for check in checks if check.checked]
    held = [check for check in done if check.holds]
    total = sum(check.numbers for check in done)
    head = f"**{'✓ All' if len(held) == len(done) else f'✗ Only {len(held)} of'} {len(done)} checks hold**, in all layers and heads: {total:,} numbers of this recording computed again in 64 bits."
    lines = [
        f"{'✓' if check.holds else '✗'} **{literal(check.law)}**  \nlargest error **{error(check.error)}** among {check.numbers:,} numbers"
        + (
            f", at {literal(check.where)}; rounding explains up to {error(check.tolerance)}."
            if check.error
            else "."
        )
        for check in done
    ]
    left = [
        f"Not checked: {literal(check.law)}: {literal('; '.join(check.not_checked))}."
        for check in checks
        if check.not_checked
    ]
    return "\n\n".join((head, *lines, *left))


def error(value: float) -> str:
    """An error in two figures."""
    return power(value, 2) if 0 <= value < float("inf") else "no number"


def columns_of(
    model: str,
    text: str,
    target: str | None,
    attention: str,
    at: tuple[int, int],
    chosen: tuple[str, str, str],
) -> dict:
    recording = passes.record(model, text, target=target)
    found = next(one for one in recording.attention if one.name == attention)
    shown = looked_at(recording, found, at, axes_of(recording, found), chosen)
    return numbers.columns(shown.matrix, shown.axes, shown.hidden)


def suffix(shown: numbers.Shown) -> list[str]:
    """What a file's name says of the choices."""
    words = ["words"] if st.session_state.att_unit == "Words" else []
    left = [] if shown.hidden is None else [st.session_state.att_keep.lower().replace(" ", "-")]
    return words + left + (["renormalised"] if shown.renormalised else [])


def in_plotly(
    shown: numbers.Shown, about: tuple[str, ...], scale: str, tone: str, file: str
) -> None:
    """The same matrix in Plotly, imported only when it is wanted."""
    from explorer.figures.attention import heatmap

    axes, matrix = shown.axes, shown.matrix
    rows, sides = axes.rows, axes.sides
    if shown.hidden is not None:
        rows, sides = (
            tuple(f"{share:.2f}  {label}" for label, share in zip(axes.rows, shown.hidden)),
            (f"hidden, {sides[0]}", sides[1]),
        )
    share = numbers.blanked(numbers.shares(matrix, scale), shown.allowed)
    top = {"Head": "the head’s largest", "Row": "the row’s largest", "Global": "1"}[scale]
    if tone == "Log":
        figure = heatmap(
            numbers.decades(share),
            matrix,
            rows,
            axes.keys,
            about,
            -numbers.LOG_DECADES,
            0,
            f"log10 of the share of {top}",
            sides,
        )
    else:
        figure = heatmap(
            share,
            matrix,
            rows,
            axes.keys,
            about,
            0,
            1,
            f"share of {top}" if scale != "Global" else "weight",
            sides,
        )
    options = {"displaylogo": False, "toImageButtonOptions": {"format": "svg", "filename": file}}
    st.plotly_chart(
        figure,
        key="plotly",
        config=options,
        alt=f"{about[0]}, {axes.sides[1]} tokens along x, {axes.sides[0]} tokens down y",
    )


def reasons(head: naming.Head, meanings: dict[str, str], across: bool) -> None:
    """Every pattern's score beside chance, whether it names the head, and the rule that made the name."""
    st.markdown(meanings[head.name])
    if rows := called.table(head):
        st.markdown(rows)
    st.caption(called.rule(across))


def caption_of(
    recording: Recording,
    attention: Attention,
    axes: numbers.Axes,
    shown: numbers.Shown,
    scale: str,
    tone: str,
    target: str | None,
) -> tuple[str, ...]:
    """What a figure must say when it stands alone."""
    model = recording.model
    edits = ", ".join(map(str, recording.edits)) or "none"
    lines = [
        f"Headlight · model {model.name} ({model.n_parameters:,} parameters, weights {model.fingerprint}) · {attention.name}-attention · edits: {edits}",
        f"Colour: {tone.lower()}, {SCALE_LABELS[scale].lower()}",
        *notes(shown),
    ]
    if axes.said is not None:
        lines.append(row_rule(target))
    if not attention.allowed.all():
        lines.append(NOT_ALLOWED)
    if "decoder" in (attention.query, attention.key) and len(recording.streams) > 1:
        lines.append(
            f"Target ({'the model’s own' if target is None else 'as typed'}): "
            + onscreen.read_text(recording, target=True)
        )
    return (*lines, "Text: " + onscreen.read_text(recording))


def row_rule(target: str | None) -> str:
    """What a row between two texts is named after. A typed target is not what the model produces."""
    return ROW_RULE if target is None else ROW_RULE_TYPED


def take_head() -> None:
    chosen = st.session_state.heads.get("head") or ""
    st.session_state.layer, _, st.session_state.head = chosen.partition(".")


def take_token(model: str, text: str, target: str | None, name: str, at: tuple[int, int]) -> None:
    """What was just chosen in the picture, [row, column, cell's column], as tokens; of a cell between words its strongest pair of tokens."""
    row, column, opened = (*(st.session_state["one head"].get("token") or (-1, -1)), -1)[:3]
    recording = passes.record(model, text, target=target)
    attention = next(one for one in recording.attention if one.name == name)
    shown = looked_at(recording, attention, at, axes_of(recording, attention), choices())
    state = st.session_state
    state.token = state.source = state.anatomy_cell = ""
    if 0 <= row < len(shown.row_tokens):
        state.token = str(shown.row_tokens[row][0])
        if 0 <= opened < len(shown.key_tokens):
            query, key = shown.strongest_pair(attention.pattern[at], row, opened)
            state.token, state.anatomy_cell = str(query), f"{query}.{key}"
    elif 0 <= column < len(shown.key_tokens):
        state.source = str(shown.key_tokens[column][0])


def take_sum() -> None:
    st.session_state.att_sum = numbers.SUMS[st.session_state["att renormalise"]]


def forget_choices() -> None:
    """Another attention has other heads and other tokens."""
    for choice in ("layer", "head", "token", "source", "anatomy_cell"):
        st.session_state[choice] = ""


def typed_target() -> str | None:
    """What the reader typed for the decoder to read, on the page of translations; None where the model writes its own."""
    writes = models.handle(st.session_state.model).card.kind == "encoder-decoder"
    return st.session_state.target if writes and st.session_state.target.strip() else None


def tell_target(recording: Recording) -> None:
    """A word on a target that is not the model's own, and the way back."""
    dropped = (
        f" Its last {recording.target_dropped:,} tokens do not fit and are left out."
        if recording.target_dropped
        else ""
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"The decoder reads the target that you typed on the page Translation, not what it would write itself.{dropped}"
        )
        st.button("Back to the model’s own", on_click=drop_target)


def drop_target() -> None:
    st.session_state.target = st.session_state.token = st.session_state.source = ""


for name, options in (
    ("view", VIEWS),
    ("scale", numbers.SCALES),
    ("tone", numbers.TONES),
    ("att_unit", numbers.UNITS),
    ("att_keep", numbers.KEPT),
    ("att_sum", numbers.SUMS),
    ("att_right", ("", "Open")),
):
    address.one_of(name, options)
with st.spinner("Loading the model …"):
    typed = typed_target()
    shown = onscreen.shown(target=typed)
if typed is not None:
    tell_target(shown.recording())
address.one_of("attention", names_of(shown.recording()))
explore(shown.model, st.session_state.text, typed)
