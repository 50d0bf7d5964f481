"""The tabs of Attention on one text: all heads and one of them, one weight, heads aggregated, and a
head's circuits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import streamlit as st

from explorer.analysis import coreference, head_naming
from explorer.analysis.attention import (
    DisplayOptions,
    HeadSelection,
    HeadView,
    notes,
    row_rule,
)
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import (
    ALIGNED,
    CROWD,
    PAIRS,
    REGULARITY,
    Finding,
    Link,
    select_findings,
)
from explorer.analysis.formatting import hundredths
from explorer.analysis.terminology import sees_ahead, windowed
from explorer.components import mounts
from explorer.layout import (
    controls,
    current_recording,
    export_menu,
    lesson_bar,
    navigation,
    output,
    selection_bar,
    tab,
)
from explorer.layout.current_recording import take_text
from explorer.panels import anatomy
from explorer.panels import attention as attention_panels
from explorer.panels.choice import EVERY, Choice, as_taken
from explorer.panels.selection import Selection, select
from explorer.panels.spec import Panel
from explorer.state import url_state
from explorer.state.visit import visit
from explorer.text import attention as attention_text
from explorer.text import findings, glossary, model_descriptions, templates
from explorer.text import head_naming as head_naming_text
from explorer.text.attention import WHO_TERMS, place, summary
from explorer.text.markdown_escape import literal
from explorer.text.templates import sentences
from models import model_card
from models.caching import is_kept
from models.edits import HeadEdit, ZeroHead, from_line, to_line
from models.example_texts import DEFAULT_TEXT
from models.run import Run

TAB = sentences("heads", "tab")

# ---- grid ----------------------------------------------------------------------------


def head_grid(selection: Selection) -> Panel:
    """The grid of all heads."""
    state, attention = st.session_state, selection.attention
    grid = attention_panels.cached_heads(
        selection,
        url_state.values(attention_panels.heads, selection.run, {"attention": selection.name}),
    )
    mounts.panel(grid.bare, "heads", take_head)
    export_menu.offer_panel(grid)
    named = attention_panels.patterns(selection.run, {"attention": selection.name})
    sentences = templates.sentences("heads", "grid")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sinks"):
        st.selectbox(
            TAB("pattern"),
            list(named),
            format_func=lambda name: named.get(name, name),
            key="pattern",
            on_change=take_pattern,
            args=(selection.run, selection.name),
            persist_state="session",
            label_visibility="collapsed",
            width=220,
            help=TAB("pattern"),
        )
        if state.att_keep != "All" or head_naming.SINK in named:
            label, tokens = ("hide", "Quiet") if state.att_keep == "All" else ("unhide", "All")
            st.button(
                sentences(label),
                key="keep sinks",
                type="tertiary",
                on_click=keep_tokens,
                args=(tokens,),
            )
    if len(selection.recording.attention) > 1 or not attention.allowed.all():
        who = templates.sentences("heads", "who")
        local = [windowed(mask) for _, mask in attention.masks]
        window = ["window" if all(local) else "window_of_some"] if any(local) else []
        lines = [who(attention.name), *map(who, window)]
        output.caption(" ".join(lines), *WHO_TERMS[attention.name])
    return grid


def keep_tokens(tokens: str) -> None:
    """Set which tokens are shown."""
    st.session_state.att_keep = tokens


def take_pattern(run: Run, attention: str) -> None:
    """Put the strongest head of the chosen pattern on screen, unless a head of it is."""
    state, on = st.session_state, select(run, attention=attention)
    named = on.heads
    heads = {head[:2]: head.score for head in named if head.name == state.pattern}
    if heads and (visit.selected_layer, visit.selected_head) not in heads:
        open_head(*max(heads, key=heads.__getitem__))


def take_head() -> None:
    """Store the head that was pressed."""
    pressed = visit.heads.get("select") or {}
    open_head(pressed.get("layer", ""), pressed.get("head", ""))


def open_head(layer: int | str, head: int | str) -> None:
    """Put a head of the grid on screen. The word stays selected: the grid is drawn for it."""
    state = st.session_state
    controls.take_head(layer, head)
    if not state.token and not state.source:
        state.token = visit.held_word


# ---- findings ------------------------------------------------------------------------

TERMS = ("head", "layer", "weight", "query", "key")  # explained beside the headline


def finding_headline(selection: Selection, view: HeadView, one: Finding | None) -> None:
    """The headline, which says what is on screen, and below it the head and what uniform attention
    would give. one: the finding on screen."""
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key="headline",
    ):
        with st.container(gap="xxsmall", width="stretch", key="finding"):
            title = headline(one) if one else sentence_of_head(selection, view)
            tested = tested_on(selection, view, one)
            why = f"{findings.evidence(one)} {tested}\n\n" if one else ""
            words = glossary.explained(f"{title} {why}", *TERMS)
            st.title(title, anchor=False, help=f"{why}{words}", width="content")
            n_layers, n_heads = selection.attention.pattern.shape[:2]
            uniform = selection.facts.uniform_weight(one) if one else None
            with st.container(horizontal=True, gap="xxsmall"):
                st.markdown(
                    place(view, n_layers * n_heads, label(selection, view, one), uniform)
                    + finding_of_tokens(selection, one)
                    + before_change(selection, view),
                    width="content",
                )
                if tested:
                    with st.container(key="tested", width="content"):  # a phone has no room for it
                        st.markdown(tested, width="content")
        if one and (test := findings.question(one)):
            offer_test(test, one, selection)
        if selection.run.text == DEFAULT_TEXT and not visit.toured:
            offer_tour()


def label(selection: Selection, view: HeadView, one: Finding | None) -> str:
    """The name of the head beside a headline: where it explains why the words of the headline
    attend, and where the headline does not say it."""
    if one is None:
        return "" if view.tokens[0] is None else view.label
    if one.query < 0:
        return "" if one.kind == REGULARITY else view.label
    pair = one.query, next(iter(one.keys), view.opened.key)
    explained = head_naming.explains(selection.recording, selection.attention, view.head, *pair)
    return view.head.name if explained else ""


def tested_on(selection: Selection, view: HeadView, one: Finding | None) -> str:
    """Note on whether the head of a pronoun and a noun finds nouns in test sentences; "" for any
    other finding, and where the model's heads were not tested."""
    if one is None or not one.stands_for or not coreference.is_tested(selection.recording):
        return ""
    card = model_card.facts(selection.recording.model.name)
    taught = model_descriptions.taught_head(card, (selection.layer, selection.head))
    return " ".join(filter(None, (attention_text.tested(view.head), taught)))


def finding_of_tokens(selection: Selection, one: Finding | None) -> str:
    """The weight between the tokens of a link, which can be computed, where that of its whole words
    is another; "" where it is the same."""
    if one is None or one.kind not in (*PAIRS, ALIGNED):
        return ""
    query, key = one.query, one.keys[0]
    weight = hundredths(_weight(selection, one))
    if weight == hundredths(one.value):
        return ""
    pair = selection.axes.rows[query], selection.axes.keys[key]
    row, column = (findings.marked(each) for each in pair)
    n_query, n_key = selection.facts.word_sizes(one)
    which, word, n = (
        ("tokens_of_key", one.words[1], n_key)
        if n_key > 1
        else ("tokens_of_query", one.words[0], n_query)
    )
    return " " + templates.sentences("heads", "head")(
        which,
        word=findings.marked(word),
        n=n,
        value=hundredths(one.value),
        row=row,
        column=column,
        weight=weight,
    )


@dataclass(frozen=True)
class ChangedWord:
    """A text after a word of it was changed, and the link that was on screen: its finding, words
    (query, key) and weight."""

    text: str
    finding: Finding
    words: tuple[str, ...]
    weight: float


def before_change(selection: Selection, view: HeadView) -> str:
    """The weight of a link before a word was changed, and now; "" for any other text and head, and
    where the words of the link stand elsewhere."""
    changed = visit.changed_word
    if not isinstance(changed, ChangedWord) or changed.text != selection.run.text:
        return ""
    one = changed.finding
    row, key = one.query, one.keys[0]
    at = (selection.attention.name, view.head.layer, view.head.head)
    now = (*selection.axes.rows[row : row + 1], *selection.axes.keys[key : key + 1])
    if at != (one.attention, one.layer, one.head) or now != changed.words:
        return ""
    words, (old, new) = templates.sentences("heads", "head"), map(findings.marked, one.retype)
    weights = (changed.weight, _weight(selection, one))
    before, after = map(hundredths, weights)
    row_name, key_name = map(findings.marked, now)
    slots = {"old": old, "new": new, "row": row_name, "key": key_name}
    said = words("changed", before=before, after=after, **slots)
    return f" {said} {words('masked', **slots)}" if is_hidden(selection, one) else f" {said}"


def is_hidden(selection: Selection, one: Finding) -> bool:
    """True where a causal mask hides the word that was changed from the row of a link."""
    stream = selection.recording.stream(selection.attention.query)
    places = [at for at, token in enumerate(stream.tokens) if token == one.retype[1]]
    allowed = selection.attention.reachable
    is_causal = not selection.is_across and not sees_ahead(allowed)
    return is_causal and bool(places) and not allowed[one.query, places].any()


def _weight(selection: Selection, one: Finding) -> float:
    return float(selection.attention.pattern[one.layer, one.head, one.query, one.keys[0]])


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
            == ("heads", view.attention, (head.layer, head.head))
            and one.query == (-1 if row is None else row)
        ),
        None,
    )


def sentence_of_head(selection: Selection, view: HeadView) -> str:
    """A headline for a head of which there is no finding: the key that gets most from the selected
    word, or the head's name."""
    head, row = view.head, view.tokens[0]
    if row is None:
        return findings.named(head)
    weights = selection.attention.pattern[head.layer, head.head, row]
    best = int(weights.argmax())
    query = (
        findings.marked(selection.axes.rows[row]) if selection.is_across else _token(selection, row)
    )
    return findings.row(query, _token(selection, best), float(weights[best]))


def _token(selection: Selection, key: int) -> str:
    """Name in a sentence of a token of the columns."""
    end = (key == 0) - (key == len(selection.axes.keys) - 1)
    return findings.token(selection.axes.keys[key], selection.axes.special[key], end)


def offer_test(test: str, one: Finding, selection: Selection) -> None:
    """A word to change, which would show whether a finding moves."""
    old, new = map(findings.marked, one.retype)
    words = selection.axes.rows[one.query], selection.axes.keys[one.keys[0]]
    pressed = st.button(
        f"Change {old} to {new}",
        key="retype",
        icon=":material/edit:",
        help=test,
        on_click=retype,
        args=(selection.run.text, one, words, _weight(selection, one)),
    )
    if pressed:
        st.rerun()  # the whole page: the text stands above it


def offer_tour() -> None:
    """A button that begins the shortest lesson, for who is here for the first time."""
    if st.button(TAB("take_tour"), key="take tour", type="primary", on_click=lesson_bar.begin):
        st.rerun()


def offer_next(one: Finding | None, listed: Sequence[Finding]) -> None:
    """The step to the finding after the one on screen, of those that are listed."""
    places = [at for at, each in enumerate(listed) if each == one]
    following = listed[(places[0] + 1) % len(listed)] if places else next(iter(listed), None)
    if following is None or following == one:
        return
    elsewhere = following.page != "heads"
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
        navigation.go(following.page)


def retype(text: str, one: Finding, words: tuple[str, str], weight: float) -> None:
    """Change the one word, and stay at the finding's head and word; note its weight before."""
    controls.open_finding(one)
    changed = text.replace(*one.retype, 1)
    take_text(changed)
    visit.changed_word = ChangedWord(changed, one, words, weight)
    for name, value in one.address:
        st.session_state[name] = value


# ---- recording checks ----------------------------------------------------------------


def check_recording(selection: Selection, view: HeadView, is_open: bool) -> None:
    """Show how the weight is computed, and check the laws of the recording when the reader asks."""
    cell = view.opened
    bound = controls.bind("verify", "att right", is_open, {True: "1", False: ""}.__getitem__)
    with st.expander("Verify the calculation", **bound) as panel:
        if panel.open:
            check = anatomy.verified(
                selection.run,
                selection.layer,
                selection.head,
                cell.query,
                cell.key,
                attention=selection.name,
            )
            mounts.panel(check.encode(), "verified", lambda: None)
            export_menu.offer_panel(check)


# ---- head ----------------------------------------------------------------------------


def selected_head(selection: Selection, view: HeadView, chosen: Mapping[str, Any]) -> Panel:
    """The picture of one head, and below it what it leaves out and what its rows are named
    after."""
    panel = attention_panels.cached_head(selection, chosen)
    take = partial(
        take_token, selection.run, selection.name, (selection.layer, selection.head), view.choices
    )
    mounts.panel(panel.bare, "one_head", take)
    export_menu.offer_panel(panel)
    if lines := notes(view.matrix_view, view.choices):
        st.caption(" ".join((*map(literal, lines), TAB("measured_on_all"))))
    if selection.is_across:
        st.caption(row_rule(selection.run.target))
    return panel


def head_actions(selection: Selection, view: HeadView) -> None:
    """The ways on from this head: how its weight is made, the model without it, another
    sentence."""
    sentences = templates.sentences("heads", "head")
    weight = hundredths(view.opened.weight)
    text = ~selection.recording.stream(selection.attention.query).special
    if text.any() and st.button(
        sentences("computed", weight=weight), key="to weight", type="tertiary"
    ):
        if view.tokens[0] is not None:
            st.session_state.weight_at = f"{view.opened.query}.{view.opened.key}"
        navigation.go("weight")
    fits = ZeroHead in selection.run.loaded.capabilities.edits
    if fits and st.button(sentences("ablate"), key="ablate", type="tertiary"):
        ablate(ZeroHead(selection.layer, selection.head, selection.attention.name))
        keep_selection(selection, view)
        navigation.go("edit")
    if st.button(sentences("compare"), key="to compare", type="tertiary"):
        st.session_state.compare = "Sentence"
        keep_selection(selection, view)
        navigation.go("compare")
    at = {"attention": selection.name, "layer": selection.layer, "head": selection.head}
    navigation.link("classroom", sentences("guess"), {"quiz": "Heads", **at}, "game")


def keep_selection(selection: Selection, view: HeadView) -> None:
    """Put the head and the word that are on screen into the address, also those that nobody
    chose."""
    controls.take_head(selection.layer, selection.head)
    if view.tokens[0] is not None:
        st.session_state.token = str(view.tokens[0])


def ablate(edit: HeadEdit) -> None:
    """Put an edit of a head among the edits."""
    try:
        edits = from_line(str(st.session_state.edits))
    except ValueError:  # Experiment says which of them cannot be read
        edits = ()
    if edit not in edits:
        st.session_state.edits = to_line((*edits, edit))


def head_details(selection: Selection, view: HeadView, one: Finding | None) -> None:
    """Show the measures of the head, and how it was classified. one: the finding on screen."""
    meanings = head_naming.meanings(selection.recording, selection.attention)
    link, cell = tied(selection, view.head, one)
    explained = False
    if link is not None:
        key = link.keys[0] if isinstance(link, Finding) else link.key
        of = selection.recording, selection.attention, view.head
        explained = head_naming.explains(*of, link.query, key)
    output.markdown(summary(view.head, meanings, link, cell, explained))
    output.caption(head_naming_text.figures(view.head))
    if cells := attention_panels.evidence(view):
        st.caption(cells)
    if table_of := head_naming_text.table(view.head):
        st.markdown(table_of)
    st.caption(head_naming_text.rule(across=selection.is_across))


def tied(
    selection: Selection, head: head_naming.Head, one: Finding | None
) -> tuple[Link | Finding | None, tuple[str, str, float] | None]:
    """The words of this head that are told of, and the tokens of them that the picture shows, with
    their weight: those of the finding on screen, where it is a link."""
    link: Link | Finding | None = one
    if one is not None and one.kind in (*PAIRS, ALIGNED):
        query, key = one.query, one.keys[0]
    elif link := selection.facts.link(selection.attention.name, head.layer, head.head):
        query, key = link.query, link.key
    else:
        return None, None
    weight = float(selection.attention.pattern[head.layer, head.head, query, key])
    return link, (selection.axes.rows[query], selection.axes.keys[key], weight)


def take_token(run: Run, name: str, at: tuple[int, int], display: DisplayOptions) -> None:
    """Store a choice in the picture, a row, a column, or a row and a cell's column, as tokens; of a
    cell between words its strongest pair of tokens. at: the head on screen, and its display."""
    state = st.session_state
    if run.text != visit.text:  # chosen in a picture of the text before
        return
    on = replace(select(run, attention=name), layer=at[0], head=at[1])
    pressed = visit.one_head.get("select") or {}
    for choice, word in attention_panels.after_press(on, display, pressed).items():
        state[choice] = word


@tab.by_hand("heads")
@current_recording.tab(partial(current_recording.read_current, headline=True))
def heads_tab(
    run: Run,
    verify: Annotated[bool, Choice(help="the calculation is verified")] = False,
) -> None:
    """The tab Heads. verify: the calculation of the weight is shown and checked."""
    state = st.session_state
    selection_bar.take()
    top = st.container(key="findings", gap="xsmall")
    is_one = len(run.recording().attention) == 1
    name = "" if is_one else url_state.values(attention_panels.head, run)["attention"]
    on = select(run, attention=name)
    controls.pick_attention(on.recording, on.name)
    bar = st.container(key="after-selection")
    left, right = st.columns([1, 1.9 if state.view == "Both" else 1.18], gap="large")
    # On its way to the browser before the findings are made, but behind those that are there.
    grid = None
    if not is_kept(RecordingFacts.other_findings, on.recording):
        with left:
            grid = head_grid(on)
    chosen = url_state.values(attention_panels.head, run, {"attention": name})
    row = None if chosen["token"] == EVERY else chosen["token"]
    column = chosen["key"] if row is None and on.is_across else None
    on = replace(on, layer=chosen["layer"], head=chosen["head"])
    visit.held_word = "" if row is None else str(row)
    view = attention_panels.view_of(
        on,
        HeadSelection(
            (row, column if on.is_across else row),
            "" if row is None or chosen["key"] is None else f"{row}.{chosen['key']}",
        ),
        attention_panels.display_of(run, as_taken(chosen)),
        attention_panels.link_on_screen(on, row),
    )
    every = on.facts.leading_findings()
    listed, of_head = select_findings(every), finding_on_screen(every, view)
    is_chosen = any(state[each] not in ("", EVERY) for each in ("layer", "token", "source"))
    one = of_head if is_chosen else next(iter(listed), None)
    if listed or one:  # of a text without words there is nothing to say
        with top:
            finding_headline(on, view, one)
    with bar:
        head_selection(on, view, chosen)
    if grid is None:
        with left:
            grid = head_grid(on)
    with right:
        picture = selected_head(on, view, chosen)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="medium", key="head-actions"
    ):
        head_actions(on, view)
        offer_next(one, listed)
    with output.links("of tab"):
        label = "How this head was classified"
        with st.expander(label, key="why this name", on_change="rerun") as why:
            if why.open:
                head_details(on, view, of_head)
        check_recording(on, view, verify)
        output.panel_table(picture, opened=chosen["view"] == attention_panels.TABLE)
        n = on.attention.pattern[..., 0, 0].size
        output.panel_table(grid, templates.sentences("heads", "grid")("table", heads=n))
    output.offer_recording(run)


def head_options(run: Run, selected: Mapping[str, Any]) -> None:
    """Show the options of the View menu: those of the picture of a head, and of all heads."""
    chosen = tab.choose(attention_panels.head, run, selected)
    tab.choose(attention_panels.heads, run, chosen)


def head_selection(selection: Selection, view: HeadView, chosen: Mapping[str, Any]) -> None:
    """The selection bar: the word, the word it attends to, the head, and the View menu."""
    selected = {name: chosen[name] for name in ("layer", "head", "token", "attention")}
    row = view.tokens[0]
    words = selection_bar.Words(
        selection.axes.rows,
        selection_bar.EVERY_WORD if row is None else row,
        selection.axes.keys,
        view.opened.key,
        every="every word",
        roles=selection.recording.stream(selection.attention.query).roles,
    )
    layers, heads = selection.attention.pattern.shape[:2]
    menu = partial(head_options, selection.run, selected)
    selection_bar.show(words, (layers, heads), (selection.layer, selection.head), menu)
