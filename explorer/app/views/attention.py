"""The tab Heads: all heads of a text, one of them, and what is found in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import streamlit as st

from explorer.analysis.findings import Finding
from explorer.app import mounts
from explorer.app.layout import (
    controls,
    current_recording,
    export_menu,
    lesson_bar,
    navigation,
    output,
    selection_bar,
    tab,
)
from explorer.app.state import url_state
from explorer.app.state.visit import visit
from explorer.figures.formatting import hundredths
from explorer.panels import attention as attention_panels
from explorer.panels.choice import Choice, declared
from explorer.panels.spec import Panel
from explorer.screens.heads import OF_ONE_HEAD, HeadOnShow, is_one_word
from explorer.screens.screen import Screen, screen_of
from explorer.text import findings, glossary, places
from explorer.text import head_naming as head_naming_text
from explorer.text.attention import WHO_TERMS
from explorer.wording import templates
from models.contract.edits import ZeroHead
from models.example_texts import OPENING_TEXT
from models.runtime.run import Run

TAB = templates.sentences("heads", "tab")
GRID = templates.sentences("heads", "grid")
HEAD = templates.sentences("heads", "head")
ROWS = next(each for each in declared(attention_panels.heads) if each.argument == "rows")


def press(shown: Screen, panel: str, pressed: Mapping[str, Any]) -> None:
    """Show what a press in a panel leads to."""
    url_state.put(shown.words(), shown.after(panel, pressed))


# ---- all heads -----------------------------------------------------------------------


def head_grid(shown: Screen, panel: Panel) -> None:
    """The grid of all heads, below the switch between the selected word's rows and all of them."""
    tab.widget(ROWS, shown.run, {ROWS.argument: panel.arguments[ROWS.argument]})
    mounts.panel(panel.bare, "heads", partial(take_head, shown, panel.name))
    export_menu.offer_panel(panel)


def take_head(shown: Screen, panel: str) -> None:
    """Follow a press in the grid."""
    press(shown, panel, visit.heads.get("select") or {})


def below_grid(shown: Screen, one: HeadOnShow) -> None:
    """The choice of a pattern, and who attends to whom; the View menu where no bar has it."""
    on = one.selection
    named = attention_panels.patterns(shown.run, {"attention": on.name})
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="patterns"):
        st.selectbox(
            TAB("pattern"),
            list(named),
            format_func=lambda name: named.get(name, name),
            key="pattern",
            on_change=take_pattern,
            args=(shown,),
            persist_state="session",
            label_visibility="collapsed",
            width=220,
            help=TAB("pattern"),
        )
        if one.sentence:
            selection_bar.view_menu(partial(head_options, on.run, selected_of(shown.chosen)))
    if one.who_attends:
        output.caption(one.who_attends, *WHO_TERMS[on.attention.name])


def take_pattern(shown: Screen) -> None:
    """Put the strongest head of the chosen pattern on screen, unless a head of it is."""
    one = HeadOnShow.of(shown.run, shown.chosen, shown.words())
    press(shown, "attention.heads", one.strongest_of(st.session_state.pattern))


# ---- the headline --------------------------------------------------------------------

TERMS = ("head", "layer", "weight", "query", "key")  # explained beside the headline


def headline(one: HeadOnShow) -> None:
    """The headline, which says what is on screen, and below it the head and what uniform attention
    would give."""
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        horizontal_alignment="distribute",
        key="headline",
    ):
        with st.container(gap="xxsmall", width="stretch", key="finding"):
            title, why = one.headline, one.evidence
            words = glossary.explained(f"{title} {why}", *TERMS)
            st.title(title, anchor=False, help=f"{why}{words}", width="content")
            if one.is_alone:
                st.markdown(HEAD("alone_why"))
            elif not one.sentence:
                st.markdown(one.place + one.between_tokens)
        if one.selection.run.text == OPENING_TEXT and not visit.toured:
            offer_tour()


def offer_tour() -> None:
    """A button that begins the shortest lesson, for who is here for the first time."""
    if st.button(TAB("take_tour"), key="take tour", type="primary", on_click=lesson_bar.begin):
        st.rerun()


# ---- one head ------------------------------------------------------------------------


def vote(shown: Screen, panel: Panel, taught: str) -> None:
    """Draw the vote of the tested heads on a pronoun, and which were taught it; a press opens one
    of them, or another word."""
    mounts.panel(panel.bare, "vote", partial(take_vote, shown, panel.name))
    if taught:
        st.caption(taught)
    export_menu.offer_panel(panel)


def take_vote(shown: Screen, panel: str) -> None:
    """Follow a press in the vote."""
    if shown.run.text == visit.text:  # else it was chosen in a picture of the text before
        press(shown, panel, visit.vote.get("select") or {})


def selected_head(shown: Screen, panel: Panel, one: HeadOnShow) -> None:
    """The picture of one head, and below it what it leaves out and what its rows are named
    after."""
    mounts.panel(panel.bare, "one_head", partial(take_token, shown, panel.name))
    export_menu.offer_panel(panel)
    reason = (HEAD("reason"),) * (ZeroHead in one.selection.run.loaded.capabilities.edits)
    for line in (*one.notes, *reason):
        st.caption(line)


def take_token(shown: Screen, panel: str) -> None:
    """Follow a press in the picture of a head."""
    if shown.run.text == visit.text:  # else it was chosen in a picture of the text before
        press(shown, panel, visit.one_head.get("select") or {})


def head_actions(one: HeadOnShow) -> None:
    """The ways on from this head: how its weight is made, and the next finding."""
    on, cell = one.selection, one.view.opened
    if one.row is not None and not on.is_across:
        label = HEAD("vote" if one.is_beside_vote else "sentence")
        st.button(label, key="to vote", type="tertiary", on_click=show_vote)
    text = ~on.recording.stream(on.attention.query).special
    title = HEAD("computed", weight=hundredths(cell.weight))
    if text.any() and st.button(title, key="to weight", type="tertiary"):
        if one.row is not None:
            st.session_state.weight_at = f"{cell.query}.{cell.key}"
        navigation.go("weight")
    at = {"attention": on.name, "layer": on.layer, "head": on.head}
    navigation.link("classroom", HEAD("guess"), {"quiz": "Heads", **at}, "game")
    if (following := one.following) is not None:
        offer_finding(following, HEAD("next"), "next finding")


def show_vote() -> None:
    """Show the sentence with the lines of the word again. For a callback."""
    for name in OF_ONE_HEAD:
        st.session_state[name] = url_state.default(name)


def list_other_findings(one: HeadOnShow) -> None:
    """List the other findings of the text; a press opens one."""
    others = [each for each in one.listed if each != one.one]
    if not others:
        return
    with st.expander(HEAD("also"), key="also"), st.container(gap="xxsmall"):
        for at, finding in enumerate(others):
            offer_finding(finding, findings.statement(finding), f"also {at}")


def offer_finding(finding: Finding, label: str, key: str) -> None:
    """A step to one of the findings that are listed."""
    elsewhere = finding.page != "heads"
    pressed = st.button(
        label,
        key=key,
        help=findings.headline(finding) + ". " + findings.evidence(finding),
        on_click=controls.open_finding,
        args=(finding,),
        type="tertiary",
        icon=":material/arrow_outward:" if elsewhere else ":material/chevron_right:",
        icon_position="right",
    )
    if pressed and elsewhere:
        navigation.go(finding.page)


def head_details(one: HeadOnShow) -> None:
    """Show the measures of the head, and how it was classified."""
    output.markdown(one.summary)
    output.caption(head_naming_text.figures(one.view.head))
    cells, table_of = one.details
    if cells:
        st.caption(cells)
    if table_of:
        st.markdown(table_of)
    st.caption(head_naming_text.rule(across=one.selection.is_across))


def verification(one: HeadOnShow, is_open: bool) -> None:
    """Show how the weight is computed, and check the laws of the recording when the reader asks."""
    bound = controls.bind("verify", "att right", is_open, {True: "1", False: ""}.__getitem__)
    with st.expander("Verify the calculation", **bound) as box:
        if box.open:
            panel = one.verified()
            mounts.panel(panel.encode(), "verified", lambda: None)
            export_menu.offer_panel(panel)


# ---- the tab -------------------------------------------------------------------------


@tab.by_hand("heads")
@current_recording.tab(partial(current_recording.read_current, headline=True))
def heads_tab(
    run: Run,
    verify: Annotated[bool, Choice(help="the calculation is verified")] = False,
) -> None:
    """The tab Heads. verify: the calculation of the weight is shown and checked."""
    output.follow_press()
    recording = run.recording()  # held as long as it is drawn
    selection_bar.take()
    top = st.container(key="findings", gap="xsmall")
    shown = screen_of(places.ROWS["heads"], run.with_at_hand(recording), url_state.words())
    run = shown.run  # which tells nowhere what a step covers
    if is_one_word(run, shown.words()):
        url_state.follow(shown.asked, shown.refused)
        with top:
            headline(HeadOnShow.of(run, shown.chosen, shown.words()))
            take = current_recording.take_text
            label = HEAD("works")
            st.button(label, key="works", type="primary", on_click=take, args=(OPENING_TEXT,))
        output.offer_recording(run)
        return
    room = st.empty()
    is_wide = st.session_state.view == "Both"
    left, right = st.columns([1, 1.9 if is_wide else 1.18], gap="large")
    grid = shown.panel("attention.heads")
    with left:  # on its way to the browser before it is known which head is told of
        if len(recording.attention) > 1:
            controls.pick_attention(recording, shown.chosen["attention"])
        head_grid(shown, grid)
    url_state.follow(shown.asked, shown.refused)
    one = HeadOnShow.of(run, shown.chosen, shown.words())
    if one.listed or one.one or one.sentence:  # of a text without words there is nothing to say
        with top:
            headline(one)
    picture = shown.panel(one.sentence or "attention.head")
    if one.sentence:
        with room.container():
            vote(shown, picture, one.taught)
    with left:
        if not one.sentence:
            head_selection(one, shown.chosen)
        below_grid(shown, one)
    with right:
        if one.sentence:
            output.offers("offers.what_changes", run)
        else:
            selected_head(shown, picture, one)
    if not one.sentence:
        with st.container(
            horizontal=True, vertical_alignment="center", gap="medium", key="head-actions"
        ):
            head_actions(one)
        on = one.selection
        with st.container(key="offers-below"):
            at = {"layer": on.layer, "head": on.head, "attention": on.attention.name}
            output.offers("offers.what_changes", run, at)
    with output.links("of tab"):
        if one.sentence:
            list_other_findings(one)
        label = "How this head was classified"
        with st.expander(label, key="why this name", on_change="rerun") as why:
            if why.open:
                head_details(one)
        verification(one, verify)
        is_table = not one.sentence and shown.chosen["view"] == attention_panels.TABLE
        output.panel_table(picture, opened=is_table)
        output.panel_table(grid, GRID("table", heads=len(one.selection.heads)))
    output.offer_recording(run)


def head_options(run: Run, selected: Mapping[str, Any]) -> None:
    """Show the options of the View menu: those of the picture of a head, and of all heads."""
    chosen = tab.choose(attention_panels.head, run, selected)
    tab.choose(attention_panels.heads, run, {ROWS.argument: ROWS.default, **chosen})


def selected_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The selection among the choices of the tab."""
    return {name: chosen[name] for name in ("layer", "head", "token", "attention")}


def head_selection(one: HeadOnShow, chosen: Mapping[str, Any]) -> None:
    """The selection bar: the word, the word it attends to, the head, and the View menu."""
    on = one.selection
    words = selection_bar.Words(
        on.axes.rows,
        selection_bar.EVERY_WORD if one.row is None else one.row,
        on.axes.keys,
        one.view.opened.key,
        every="every word",
        roles=on.recording.stream(on.attention.query).roles,
    )
    layers, n_heads = on.attention.pattern.shape[:2]
    menu = partial(head_options, on.run, selected_of(chosen))
    selection_bar.show(words, (layers, n_heads), (on.layer, on.head), menu)
