"""The heads of a model on a text: which attends where?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from explorer.analysis import attention, consistency, head_naming
from explorer.analysis.attention import (
    SCALE_LABELS,
    Axes,
    DisplayOptions,
    HeadSelection,
    HeadView,
    head_view,
    notes,
    row_rule,
)
from explorer.analysis.findings import (
    ALIGNED,
    CROWD,
    LINK,
    NEAR_LINK,
    Finding,
    Link,
    select_findings,
)
from explorer.analysis.terminology import windowed
from explorer.components import mounts
from explorer.layout import (
    controls,
    current_recording,
    export_menu,
    navigation,
    output,
    selection_bar,
)
from explorer.layout.controls import attention_names, pick
from explorer.layout.current_recording import take_text
from explorer.layout.output import offer_recording
from explorer.panels import attention as attention_panels
from explorer.panels.attention import ROWS
from explorer.panels.selection import axes_of
from explorer.panels.spec import Panel
from explorer.state import cache, event_log, models, url_state
from explorer.state.cache import Run
from explorer.state.scheduling import script_queue
from explorer.text import attention as attention_text
from explorer.text import findings, glossary, templates
from explorer.text import head_naming as head_naming_text
from explorer.text.attention import LABELS, WHO, WHO_TERMS, WINDOW, place, summary
from explorer.text.markdown_escape import literal
from models.edits import HeadEdit, ZeroHead, from_line, to_line
from models.example_texts import DEFAULT_TEXT
from models.recording import Attention, Recording

# ---- page state ----------------------------------------------------------------------

# Choices that mean nothing in another attention.
OF_A_HEAD = ("layer", "head", "token", "source", "anatomy_cell")


LABEL_BYTES = 60  # that a word in a table takes

WORDS = ("", "none")  # what a page without a chosen word holds: the telling one, or none


@dataclass(frozen=True, eq=False)
class AttentionState:
    """One attention of a recording with its heads and its axes. It is made anew in every run and
    nowhere kept."""

    source: Run
    recording: Recording
    attention: Attention
    axes: Axes
    heads: tuple[head_naming.Head, ...]

    @property
    def name(self) -> str:
        """The attention's name in the address, "" for the first."""
        first = self.attention is self.recording.attention[0]
        return "" if first else self.attention.name

    def head(self, at: tuple[int, int]) -> head_naming.Head:
        """A head by (layer, head)."""
        return self.heads[at[0] * self.attention.pattern.shape[1] + at[1]]

    def view(
        self, at: tuple[int, int], selection: HeadSelection, chosen: DisplayOptions
    ) -> HeadView:
        """The panel of a head under what the reader chose."""
        return head_view(
            self.recording,
            self.attention,
            self.head(at),
            self.axes,
            chosen,
            selection,
            self.source.target,
        )


def attention_state(source: Run, name: str) -> AttentionState:
    """The attention of that name, "" for the first, on the screen."""
    recording = source.recording()
    attention = recording.attention[attention_names(recording).index(name)]
    axes = axes_of(recording, attention)
    return AttentionState(
        source, recording, attention, axes, attention_panels.named_heads(recording, attention)
    )


def made_once(on: AttentionState, panel: Callable[..., Panel], **choices: Hashable) -> Panel:
    """A panel of the page, kept beside the recording: pictures made ahead, the page and its tables
    ask for the same one."""
    key = ("panel", panel.__name__, on.source.target, *sorted(choices.items()))
    return cache.cached_for(on.recording, key, partial(panel, on.source, **choices), size_of)


def size_of(panel: Panel) -> int:
    """Bytes of a panel: its arrays, as it is sent, and its table."""
    cells = (getattr(each, "nbytes", LABEL_BYTES * len(each)) for each in panel.table.values())
    return 2 * len(panel.bare) + sum(cells)


def display_options() -> DisplayOptions:
    """Read the reader's display options of a matrix."""
    state = st.session_state
    return DisplayOptions(state.att_unit, state.att_keep, state.att_sum, state.scale, state.tone)


def chosen_head(on: AttentionState, first: Finding | None) -> tuple[int, int]:
    """The head on screen: the one chosen, or else the one that the strongest finding is seen in, or
    else the one whose name stands out most."""
    layers, heads = on.attention.pattern.shape[:2]
    layer, head = url_state.whole_number("layer", layers), url_state.whole_number("head", heads)
    if layer is not None and head is not None:
        return layer, head
    return telling_head(on, first)


def telling_head(on: AttentionState, first: Finding | None) -> tuple[int, int]:
    """The head that the strongest finding is seen in, or else the one whose name stands out
    most."""
    if first is not None:
        return first.at
    best = max(on.heads, key=head_naming.clarity)
    return best.layer, best.head


def summary_row(on: AttentionState, at: tuple[int, int]) -> int | None:
    """The word that the strongest finding of a head is about."""
    for one in attention_panels.leading_findings(on.recording):
        if (one.attention, one.at) == (on.attention.name, at) and one.query >= 0:
            return one.query
    return None


def selected_tokens(on: AttentionState, first: Finding | None) -> tuple[int | None, int | None]:
    """The row and the column that are held: of one text the chosen token's, between two texts the
    one or the other. Until the reader chooses a token or lets go of one, the word is held that the
    head's strongest finding is about."""
    row = url_state.whole_number("token", len(on.axes.rows))
    column = url_state.whole_number(
        "source", len(on.axes.keys) if row is None and on.axes.produced else 0
    )
    if row is None and column is None and url_state.one_of("att_word", WORDS) != "none":
        row = summary_row(on, chosen_head(on, first))
    return (row, row) if on.axes.produced is None else (row, column)


def keep_head(at: tuple[int, int]) -> None:
    """From here on the head on screen is the reader's choice and no longer the app's."""
    st.session_state.layer, st.session_state.head = map(str, at)


def take_attention(source: Run) -> None:
    """Another attention has other heads and other tokens: it is opened on its own strongest
    finding, and stays chosen from here on."""
    state = st.session_state
    for choice in OF_A_HEAD:
        state[choice] = ""
    on = attention_state(source, state.attention)
    if (first := attention_panels.opening_finding(on.recording, on.attention)) is not None:
        controls.open_finding(first)
    else:
        keep_head(chosen_head(on, None))


# ---- grid ----------------------------------------------------------------------------

LAYOUTS = ("Grid", "List")


def head_grid(on: AttentionState) -> None:
    """The grid of all heads."""
    state = st.session_state
    named = patterns(on)
    url_state.one_of("pattern", tuple(named))
    made = grid_panel(
        on, display_options(), state.grid_rows, state.pattern, state.grid == LAYOUTS[1]
    )
    mounts.panel(made.bare, "heads", take_head)
    export_menu.offer_panel(made)
    sentences = templates.sentences("heads", "grid")
    sinks = state.att_keep != "All" or any(head.name == head_naming.SINK for head in on.heads)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sinks"):
        st.selectbox(
            sentences("find"),
            list(named),
            format_func=lambda name: named.get(name, name),
            key="pattern",
            persist_state="session",
            label_visibility="collapsed",
            width=220,
            help=sentences("find"),
        )
        if sinks:
            label, tokens = ("hide", "Quiet") if state.att_keep == "All" else ("unhide", "All")
            st.button(
                sentences(label),
                key="keep sinks",
                type="tertiary",
                on_click=keep_tokens,
                args=(tokens,),
            )
    attention = on.attention
    if len(on.recording.attention) > 1 or not attention.allowed.all():
        who = WHO[attention.name] + WINDOW * windowed(attention.allowed)
        output.caption(who, *WHO_TERMS[attention.name])


def grid_panel(
    on: AttentionState,
    display: DisplayOptions,
    rows: str = ROWS[0],
    pattern: str = "",
    listed: bool = False,
) -> Panel:
    """The panel of all heads. It has no selection, so choosing a head sends none of it again."""
    return made_once(
        on,
        attention_panels.heads,
        rows=rows,
        pattern=pattern,
        options=attention_panels.options_of(display),
        listed=listed,
        attention=on.name,
    )


def grid_numbers(on: AttentionState) -> None:
    """The measures of all heads as a table and as a file."""
    state = st.session_state
    made = grid_panel(
        on, display_options(), state.grid_rows, state.pattern, state.grid == LAYOUTS[1]
    )
    label = templates.sentences("heads", "grid")("table", heads=len(on.heads))
    output.with_table(made.table, (made.title, *made.caption), made.file, label)


def keep_tokens(tokens: str) -> None:
    """Set which tokens are shown."""
    st.session_state.att_keep = tokens


def patterns(on: AttentionState) -> dict[str, str]:
    """The names that heads have on this text with their numbers, "" for all heads."""
    counts = Counter(head.name for head in on.heads)
    names = (name for name in head_naming.meanings(on.recording, on.attention) if counts[name])
    titles = {"previous": "previous token", "next": "next token"}
    return {"": "Find heads by pattern"} | {
        name: f"{titles.get(name, name)} ({counts[name]})" for name in names
    }


def take_head() -> None:
    """Store the head that was pressed. The word on screen stays selected: the grid showed each head
    at that word."""
    state = st.session_state
    pressed = state.heads.get("select") or {}
    state.layer, state.head = str(pressed.get("layer", "")), str(pressed.get("head", ""))
    if not state.token and not state.source:
        state.token = state.get("held word", "")


# ---- findings ------------------------------------------------------------------------

TERMS = ("head", "layer", "weight", "query", "key")  # explained beside the headline


def finding_headline(on: AttentionState, view: HeadView) -> None:
    """The headline, which says what is on screen, and below it the head and what uniform attention
    would give. Of a text without words it says nothing."""
    one = current_finding(on, view)
    if one is None and not select_findings(attention_panels.leading_findings(on.recording)):
        return
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key="headline",
    ):
        with st.container(gap="xxsmall", width="stretch", key="finding"):
            title = headline(one) if one else sentence_of_head(on, view)
            why = f"{findings.evidence(one)}\n\n" if one else ""
            words = glossary.explained(f"{title} {why}", *TERMS)
            st.title(title, anchor=False, help=f"{why}{words}", width="content")
            st.markdown(
                place(view, len(on.heads)) + finding_of_tokens(on, one) + before_change(on, view)
            )
        text = on.source.text
        if one and (test := findings.question(one)):
            offer_test(test, one, on)
        if text == DEFAULT_TEXT and not st.session_state.get("toured"):
            offer_tour()


def finding_of_tokens(on: AttentionState, one: Finding | None) -> str:
    """The weight between the tokens of a link, which the picture shows, where that of its whole
    words is another; "" where it is the same."""
    if one is None or one.kind not in (LINK, NEAR_LINK, ALIGNED):
        return ""
    query, key = one.query, one.keys[0]
    weight = f"{on.attention.pattern[one.layer, one.head, query, key]:.2f}"
    if weight == f"{one.value:.2f}":
        return ""
    row, column = literal(on.axes.rows[query]), literal(on.axes.keys[key])
    sentences = templates.sentences("heads", "head")
    return " " + sentences("tokens", row=row, column=column, weight=weight)


@dataclass(frozen=True)
class ChangedWord:
    """A text after a word of it was changed, and the link that was on screen: its finding, words
    (query, key) and weight."""

    text: str
    finding: Finding
    words: tuple[str, ...]
    weight: float


def before_change(on: AttentionState, view: HeadView) -> str:
    """The weight of a link before a word was changed, and now; "" for any other text and head, and
    where the words of the link stand elsewhere."""
    changed = st.session_state.get("changed word")
    if not isinstance(changed, ChangedWord) or changed.text != on.source.text:
        return ""
    one = changed.finding
    row, key = one.query, one.keys[0]
    at = (on.attention.name, view.head.layer, view.head.head)
    now = (*on.axes.rows[row : row + 1], *on.axes.keys[key : key + 1])
    if at != (one.attention, one.layer, one.head) or now != changed.words:
        return ""
    words, (old, new) = templates.sentences("heads", "head"), map(literal, one.retype)
    weights = {"before": f"{changed.weight:.2f}", "after": f"{_weight(on, one):.2f}"}
    row_name, key_name = map(literal, now)
    return " " + words("changed", old=old, new=new, row=row_name, key=key_name, **weights)


def _weight(on: AttentionState, one: Finding) -> float:
    return float(on.attention.pattern[one.layer, one.head, one.query, one.keys[0]])


def current_finding(on: AttentionState, view: HeadView) -> Finding | None:
    """The finding on screen: the strongest one, until the reader chooses a head or a word."""
    every = attention_panels.leading_findings(on.recording)
    if any(st.session_state[name] for name in ("layer", "token", "source")):
        return finding_on_screen(every, view)
    return next(iter(select_findings(every)), None)


def headline(one: Finding) -> str:
    """A finding as a headline: of the crowd the most alone."""
    return findings.crowd(one).partition("; ")[0] if one.kind == CROWD else findings.statement(one)


def finding_on_screen(every: Sequence[Finding], view: HeadView) -> Finding | None:
    """The finding that is on screen: of the head shown and of the word held."""
    head, (row, _) = view.head, view.tokens
    return next(
        (
            one
            for one in every
            if (one.page, one.attention, one.example_head or one.at)
            == ("attention", view.attention, (head.layer, head.head))
            and one.query == (-1 if row is None else row)
        ),
        None,
    )


def sentence_of_head(on: AttentionState, view: HeadView) -> str:
    """A headline for a head of which there is no finding: the key that gets most from the selected
    word, or the head's name."""
    head, row = view.head, view.tokens[0]
    if row is None:
        return findings.named(head)
    weights = on.attention.pattern[head.layer, head.head, row]
    best = int(weights.argmax())
    return findings.row(on.axes.rows[row], on.axes.keys[best], float(weights[best]))


def offer_test(test: str, one: Finding, on: AttentionState) -> None:
    """A word to change, which would show whether a finding moves."""
    old, new = map(findings.marked, one.retype)
    words = on.axes.rows[one.query], on.axes.keys[one.keys[0]]
    pressed = st.button(
        f"Change {old} to {new}",
        key="retype",
        icon=":material/edit:",
        help=test,
        on_click=retype,
        args=(on.source.text, one, words, _weight(on, one)),
    )
    if pressed:
        st.rerun()  # the whole page: the text stands above it


def offer_tour() -> None:
    """The Tour: until it was taken in this visit, or the reader has a text of their own."""
    if st.button("New here? Tour, 3 min", key="take tour", type="primary"):
        navigation.go("tour", {})


def offer_next(on: AttentionState, view: HeadView) -> None:
    """The step to the finding after the one on screen."""
    chosen = select_findings(attention_panels.leading_findings(on.recording))
    one = current_finding(on, view)
    places = [at for at, each in enumerate(chosen) if each == one]
    following = chosen[(places[0] + 1) % len(chosen)] if places else next(iter(chosen), None)
    if following is None or following == one:
        return
    elsewhere = following.page != "attention"
    pressed = st.button(
        templates.sentences("heads", "head")("next"),
        key="next finding",
        help=findings.headline(following) + ". " + findings.evidence(following),
        on_click=controls.open_finding,
        args=(following,),
        type="tertiary",
        icon=":material/arrow_outward:" if elsewhere else ":material/chevron_right:",
        icon_position="right",
    )
    if pressed and elsewhere:
        navigation.go(following.page, dict(following.address))


def retype(text: str, one: Finding, words: tuple[str, str], weight: float) -> None:
    """Change the one word, and stay at the finding's head and word; note its weight before."""
    controls.open_finding(one)
    changed = text.replace(*one.retype, 1)
    take_text(changed)
    st.session_state["changed word"] = ChangedWord(changed, one, words, weight)
    for name, value in one.address:
        st.session_state[name] = value


# ---- recording checks ----------------------------------------------------------------


def score_formula(on: AttentionState, view: HeadView) -> None:
    """The formula of a weight, with this sentence's numbers in it."""
    if not on.attention.opens:  # without scores there is nothing to say how they are made
        st.markdown(attention_text.CLOSED.format(models.markdown_name(on.source.model)))
        return
    made = scoring(on.recording, on.attention, view.head.layer)
    sentence = attention_text.formula(view, made, typed=on.source.target is not None)
    output.markdown(sentence, "query", "key", "value", "score", "softmax")


def scoring(recording: Recording, attention: Attention, layer: int) -> str:
    """Formula of this model's score of q and k."""
    biased = models.capabilities(recording.model.name).biased
    return f"q · k{consistency.scale_text(attention, layer)}{' plus a bias' if biased else ''}"


def check_recording(on: AttentionState, view: HeadView) -> None:
    """Show how the weight is computed, and check the laws of the recording when the reader asks."""
    state, recording = st.session_state, on.recording
    with st.expander(
        "Verify the calculation",
        key="att right",
        expanded=state.att_right == "Open",
        on_change="rerun",
    ) as panel:
        state.att_right = "Open" if panel.open else ""
        if panel.open:
            score_formula(on, view)
            checks = cache.cached_for(
                recording,
                "right",
                lambda: consistency.checks(recording, *recording_size(recording)),
            )
            st.markdown(attention_text.verdicts(checks))


def recording_size(recording: Recording) -> tuple:
    """Parameters that the laws are checked with: W_O, the norms by stream, and the model's
    configuration; None for what a model does not show."""
    built = models.cards().get(recording.model.name, {}).get("config") or {}
    built = built | {"biased": models.capabilities(recording.model.name).biased}
    try:
        norms = {stream.name: cache.norms(recording, stream.name) for stream in recording.streams}
        return cache.outputs(recording), norms, built
    except (ValueError, AttributeError):
        return None, None, built


# ---- head ----------------------------------------------------------------------------

TABLE = "Table"
VIEWS = (*attention_panels.VIEWS, TABLE)
TOKEN_LABELS = {
    "All": "All",
    "Quiet": "Hide common sinks",
    "No specials": "Hide special tokens",
    "No sinks": "Hide the head’s sinks",
}


def selected_head(on: AttentionState, view: HeadView) -> None:
    """The picture of one head, and what it leaves out."""
    at, name = (view.head.layer, view.head.head), st.session_state.attention
    made = head_panel(on, view, st.session_state.view, st.session_state.incoming == "1")
    mounts.panel(made.bare, "one head", partial(take_token, on.source, name, at))
    export_menu.offer_panel(made)
    naming_rules(on, view)


def head_panel(on: AttentionState, view: HeadView, kind: str, incoming: bool = False) -> Panel:
    """The panel of the head on screen; kind: one of VIEWS."""
    token, key = view.tokens
    if view.cell is not None:
        key = view.opened.key
    elif token is not None:
        key = None
    return made_once(
        on,
        attention_panels.head,
        layer=view.head.layer,
        head=view.head.head,
        token=token,
        key=key,
        view=next(iter(attention_panels.VIEWS)) if kind == TABLE else kind,
        options=attention_panels.options_of(view.choices, incoming),
        attention=on.name,
    )


def head_numbers(on: AttentionState, view: HeadView) -> None:
    """The matrix as a table and as a file, and the recording."""
    kind = st.session_state.view
    made = head_panel(on, view, kind, st.session_state.incoming == "1")
    about = (made.title, *made.caption)
    output.with_table(made.table, about, made.file, opened=kind == TABLE)
    offer_recording(on.source)


def naming_rules(on: AttentionState, view: HeadView) -> None:
    """Show what the picture leaves out, and what its rows are named after."""
    if lines := notes(view.matrix_view, view.choices):
        measured = " The head’s name is measured on all tokens."
        st.caption(" ".join(map(literal, lines)) + measured)
    if on.axes.produced is not None:
        st.caption(row_rule(on.source.target))


def head_actions(on: AttentionState, view: HeadView) -> None:
    """The ways on from this head: how its weight is made, the model without it, another
    sentence, the next finding."""
    with st.container(horizontal=True, gap="medium", key="head-actions"):
        lookup_steps(on, view)


def lookup_steps(on: AttentionState, view: HeadView) -> None:
    """The buttons of `actions`."""
    sentences = templates.sentences("heads", "head")
    weight = f"{view.opened.weight:.2f}"
    if st.button(sentences("computed", weight=weight), key="to weight", type="tertiary"):
        navigation.go("weight", {})
    fits = ZeroHead in models.capabilities(on.source.model).edits
    if fits and st.button(sentences("ablate"), key="ablate", type="tertiary"):
        ablate(ZeroHead(view.head.layer, view.head.head, on.attention.name))
        navigation.go("edit", {})
    if st.button(sentences("compare"), key="to compare", type="tertiary"):
        st.session_state.other_what = "Sentence"
        navigation.go("compare", {})
    offer_next(on, view)


def ablate(edit: HeadEdit) -> None:
    """Put an edit of a head among the edits."""
    try:
        edits = from_line(str(st.session_state.edits))
    except ValueError:  # Experiment says which of them cannot be read
        edits = ()
    if edit not in edits:
        st.session_state.edits = to_line((*edits, edit))


def head_details(on: AttentionState, view: HeadView) -> None:
    """Show the measures of the head, and how it was classified."""
    meanings = head_naming.meanings(on.recording, on.attention)
    output.markdown(summary(view.head, meanings, *tied(on, view)))
    output.caption(head_naming_text.figures(view.head))
    if cells := attention_panels.evidence(view):
        st.caption(cells)
    if table_of := head_naming_text.table(view.head):
        st.markdown(table_of)
    st.caption(head_naming_text.rule(across=on.axes.produced is not None))


def view_options() -> None:
    """Show the options of the View menu: the picture, the heads, the tokens and the colours."""
    state = st.session_state
    pick("Picture of the head", VIEWS, key="view")
    state["incoming shown"] = state.incoming == "1"
    st.toggle("Also show what attends to the word", key="incoming shown", on_change=take_incoming)
    pick("Heads as", LAYOUTS, key="grid")
    pick("In each head", {"Word": "Selected word", "All": "All rows"}, key="grid_rows")
    pick(
        "Which tokens",
        TOKEN_LABELS,
        key="att_keep",
        help="What grid, matrix, lines and sentence leave out; how much of the attention goes "
        "there is stated. **Common sinks**: attention sinks of a quarter of the heads, and all "
        "special tokens. **Special tokens**: those that the model adds and nobody typed. **The "
        "head’s sinks**: attention sinks of the selected head, in its picture alone.",
    )
    if state.att_keep != "All":
        state["att renormalise"] = state.att_sum == "Renormalised"
        st.toggle(
            "Renormalise",
            key="att renormalise",
            help="Rows are divided by what they give the shown tokens and sum to 1 again.",
            on_change=take_sum,
        )
    pick("Rows and columns", attention.UNITS, key="att_unit")
    pick(
        "Colour scale",
        SCALE_LABELS,
        key="scale",
        help="What the top of the colour scale is: 1 for all heads alike, each head’s largest "
        "weight, or each row’s.",
    )
    pick(
        "Tone",
        attention.TONES,
        key="tone",
        help="Log shows three powers of ten below the top of the scale, so that faint attention is "
        "seen.",
    )


def take_incoming() -> None:
    """Store the toggle that shows lines to the selected word."""
    st.session_state.incoming = "1" if st.session_state["incoming shown"] else ""


def tied(
    on: AttentionState, view: HeadView
) -> tuple[Link | Finding | None, tuple[str, str, float] | None]:
    """The words of this head that are told of, and the tokens of them that the picture shows, with
    their weight: the headline's, where it is one of this head and of the word held."""
    head = view.head
    one = finding_on_screen(attention_panels.leading_findings(on.recording), view)
    if one is not None and one.kind in (LINK, NEAR_LINK, ALIGNED):
        query, key = one.query, one.keys[0]
        link: Link | Finding = one
    elif best := attention_panels.head_link(on.recording, on.attention, head):
        query, key, link = best.query, best.key, best
    else:
        return None, None
    weight = float(on.attention.pattern[head.layer, head.head, query, key])
    return link, (on.axes.rows[query], on.axes.keys[key], weight)


def take_sum() -> None:
    """Store the toggle that makes the rows sum to 1 again."""
    st.session_state.att_sum = attention.ROW_SUMS[st.session_state["att renormalise"]]


def take_token(source: Run, name: str, at: tuple[int, int]) -> None:
    """Store a choice in the picture, a row, a column, or a row and a cell's column, as tokens; of a
    cell between words its strongest pair of tokens."""
    state = st.session_state
    if source.text != state.text:  # chosen in a picture of the text before
        return
    pressed = state["one head"].get("select") or {}
    row, column, opened = (int(pressed.get(each, -1)) for each in ("row", "column", "cell"))
    on = attention_state(source, name)
    matrix = attention.head_matrix(on.recording, on.attention, at, on.axes, display_options())
    keep_head(at)
    state.token = state.source = state.anatomy_cell = ""
    state.att_word = "none" if row < 0 and column < 0 else ""
    if 0 <= row < len(matrix.row_tokens):
        state.token = str(matrix.row_tokens[row][0])
        if 0 <= opened < len(matrix.key_tokens):
            query, key = matrix.strongest_pair(on.attention.pattern[at], row, opened)
            state.token, state.anatomy_cell = str(query), f"{query}.{key}"
    elif 0 <= column < len(matrix.key_tokens):
        state.source = str(matrix.key_tokens[column][0])


CHOICES = (
    ("view", VIEWS),
    ("scale", attention.SCALES),
    ("tone", attention.TONES),
    ("att_unit", attention.UNITS),
    ("att_keep", attention.TOKEN_FILTERS),
    ("att_sum", attention.ROW_SUMS),
    ("att_right", ("", "Open")),
    ("grid", LAYOUTS),
    ("grid_rows", attention_panels.ROWS),
    ("incoming", ("", "1")),
)


def heads_tab() -> None:
    """The tab Heads: choices that do not exist are forgotten, the text is recorded, and the rest is
    drawn from its names."""
    if st.session_state.view == "Plotly":  # a view of earlier versions
        st.session_state.view = "Matrix"
    for name, options in CHOICES:
        url_state.one_of(name, options)
    run = current_recording.read_current()
    script_queue.wait_for((run.model, run.text))
    url_state.one_of("attention", attention_names(run.recording()))
    controls.choose_attention(run.recording())
    heads_fragment(run)


@event_log.fragment
def heads_fragment(source: Run) -> None:
    """The page below the sentence bar. A choice of attention, head, token or view runs this alone.

    It takes names and not the recording, which Streamlit would keep for every visitor for as long
    as the visit lasts.
    """
    selection_bar.take()
    if st.session_state.att_keep == "All":
        st.session_state.att_sum = attention.ROW_SUMS[0]
    top = st.container(key="findings", gap="xsmall")
    attention_control(source)
    bar = st.container(key="after-selection")
    on = attention_state(source, st.session_state.attention)
    left, right = st.columns([1, 1.9 if st.session_state.view == "Both" else 1.18], gap="large")
    # On its way to the browser before the findings are made, but behind those that are there.
    begun = not attention_panels.has_findings(on.recording)
    if begun:
        with left:
            head_grid(on)
    first = attention_panels.opening_finding(on.recording, on.attention)
    tokens = selected_tokens(on, first)
    st.session_state["held word"] = "" if tokens[0] is None else str(tokens[0])
    chosen = HeadSelection(tokens, st.session_state.anatomy_cell)
    view = on.view(chosen_head(on, first), chosen, display_options())
    with top:
        finding_headline(on, view)
    with bar:
        head_selection(on, view)
    if not begun:
        with left:
            head_grid(on)
    with right:
        selected_head(on, view)
    head_actions(on, view)
    with st.expander("How this head was classified", key="why this name", on_change="rerun") as why:
        if why.open:
            head_details(on, view)
    check_recording(on, view)
    head_numbers(on, view)
    grid_numbers(on)
    url_state.write()


def head_selection(on: AttentionState, view: HeadView) -> None:
    """The selection bar: the word, the word it attends to, the head, and the View menu."""
    row = view.tokens[0]
    words = selection_bar.Words(
        on.axes.rows,
        selection_bar.EVERY_WORD if row is None else row,
        on.axes.keys,
        view.opened.key,
        every="every word",
        roles=selection_bar.roles(on.recording.stream(on.attention.query)),
    )
    layers, heads = on.attention.pattern.shape[:2]
    at = view.head.layer, view.head.head
    selection_bar.show(words, (layers, heads), at, view_options)


def attention_control(source: Run) -> None:
    """The control that chooses an attention where there are several."""
    recording = source.recording()
    names = attention_names(recording)
    if len(names) > 1:
        st.segmented_control(
            "Attention",
            names,
            key="attention",
            wrap=True,
            format_func=partial(attention_label, recording.attention[0].name),
            required=True,
            persist_state="session",
            label_visibility="collapsed",
            on_change=partial(take_attention, source),
        )


def attention_label(first: str, name: str) -> str:
    """Label of an attention in the control; the `first` one needs no word in the address."""
    return LABELS[name or first]
