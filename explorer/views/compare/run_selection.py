"""The two runs that are compared: A, as the bar above has it, and B, with the controls that choose
it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import comparison
from explorer.layout import current_recording
from explorer.panels.compare import counterpart, same_target
from explorer.state import models, url_state
from explorer.state.cache import Run
from explorer.state.models import choices, needs_asking
from explorer.text.markdown_escape import literal
from explorer.views.compare import examples
from explorer.views.compare.examples import MATES, checkpoints, follows
from models.edits import (
    Edit,
    MeanHead,
    UniformHead,
    WithoutPositions,
    ZeroHead,
    describe,
    from_line,
    to_line,
)
from models.recording import NotFinite, Recording

WHATS = {"Edit": "Before and after an edit", "Sentence": "Two sentences", "Model": "Two models"}
ABLATIONS = {"zero": ZeroHead, "mean": MeanHead, "uniform": UniformHead}
ABLATED = ZeroHead, MeanHead, UniformHead
COUNTERPARTS = {"encoder": "decoder", "decoder": "encoder"}
FIELD, MENU = 360, 240  # pixels


def choose(model: str, text: str) -> tuple[Run, Run, DeltaGenerator]:
    """A and B, the other way round where swapped, and the View menu for what else is chosen. Raises
    ValueError where there is nothing to compare with."""
    what = url_state.one_of("other_what", tuple(WHATS))
    row = st.container(horizontal=True, vertical_alignment="center", key="sides")
    row.selectbox(
        "Compare",
        tuple(WHATS),
        key="other_what",
        format_func=WHATS.__getitem__,
        persist_state="session",
        on_change=forget_pair,
        label_visibility="collapsed",
        width=MENU,
    )
    field = row.container(width=FIELD)
    with row:
        examples.show(model)
    row.button(
        "Swap A and B",
        icon=":material/swap_horiz:",
        on_click=_swap,
        help="A becomes B, and differences change their signs.",
    )
    view = row.popover("View")
    one = Run(model, text, (), current_recording.typed_target(model))
    if what == "Edit":
        one, other = _edited(one, field, view)
    elif what == "Sentence":
        other = Run(model, _second_text(text, field))
    else:
        other = _second_model(one, field)
    return (other, one, view) if st.session_state.other_swap else (one, other, view)


def other_letter() -> str:
    """The letter of the side that the controls choose: B, and A once the sides are swapped."""
    return "A" if st.session_state.other_swap else "B"


# ---- before and after an edit ----


def _edited(run: Run, field: DeltaGenerator, view: DeltaGenerator) -> tuple[Run, Run]:
    """The run as it is, and under edits. Both runs' decoders read the same. An edit that cannot be
    followed is named."""
    first = counterpart(run)
    run = replace(run, target=same_target(run))
    state, default = st.session_state, url_state.default("other_edits")
    state.other_edits = state.other_edits.strip() or default
    if state.other_edits == default and not follows(run.model, WithoutPositions):
        state.other_edits = to_line(first.edits)
    edits, wrong = _written(state.other_edits)
    _pick_head(run.recording(), edits, field, view)
    edits, unfit = _followed(replace(run, edits=edits))
    if wrong and not edits:
        raise ValueError("; ".join(wrong))
    if wrong or unfit:
        st.warning(f"Left out of B: {literal('; '.join((*wrong, *unfit)))}.")
    return run, replace(run, edits=edits)


def _written(line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line, and what is wrong with its other words."""
    edits: list[Edit] = []
    wrong: list[str] = []
    for word in filter(None, (each.strip() for each in line.split(","))):
        try:
            edits += from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is not a valid edit")
    return tuple(dict.fromkeys(edits)), wrong


def _followed(run: Run) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a run that its model can follow, and what is wrong with the others. Numbers that
    overflow are found later, and are no refusal."""

    def refused(edits: tuple[Edit, ...]) -> str:
        try:
            replace(run, edits=edits).recording()
        except NotFinite:
            pass
        except ValueError as error:
            return str(error)
        return ""

    if not refused(run.edits):
        return run.edits, []
    reasons = {edit: refused((edit,)) for edit in run.edits}
    good = tuple(edit for edit, why in reasons.items() if not why)
    if not good or refused(good):
        raise ValueError("; ".join(why for why in reasons.values() if why) or refused(run.edits))
    return good, [why for why in reasons.values() if why]


def _pick_head(
    plain: Recording, edits: tuple[Edit, ...], field: DeltaGenerator, view: DeltaGenerator
) -> None:
    """One head of B to ablate; how, and all other edits, in the View menu. The controls show what
    the edits say."""
    state, several, first = st.session_state, len(plain.attention) > 1, plain.attention[0].name
    heads = [
        (layer, head, each.name)
        for each in plain.attention
        for layer in range(each.pattern.shape[0])
        for head in range(each.pattern.shape[1])
    ]
    alone = edits[0] if len(edits) == 1 and isinstance(edits[0], ABLATED) else None
    now: tuple = (alone.layer, alone.head, alone.attention) if alone is not None else ()
    state["head of B"] = now = now if now in heads else ()
    kinds = [how for how, kind in ABLATIONS.items() if now and isinstance(alone, kind)]
    state["done to it"] = next(iter(kinds), "zero")
    letter = other_letter()
    default = from_line(url_state.default("other_edits")) if now else edits

    def label(at: tuple) -> str:
        """The edits of B without a chosen head, or the head that is ablated."""
        if not at:
            return f"{letter}: {describe(default)}"
        return f"{letter}: {comparison.name(at[:2])}{f', {at[2]}' if several else ''} ablated"

    field.selectbox(
        f"Ablated head of {letter}",
        [(), *heads],
        key="head of B",
        on_change=_take_head_of_b,
        args=(first,),
        format_func=label,
        label_visibility="collapsed",
    )
    if now:
        view.segmented_control(
            "Ablation",
            tuple(ABLATIONS),
            key="done to it",
            wrap=True,
            required=True,
            on_change=_take_head_of_b,
            args=(first,),
            help="Zero: the head’s output is 0. Mean: its output is its mean over this text. "
            "Uniform: it gives every key the same weight.",
        )
    view.text_input(
        f"Edits of {letter} as text",
        key="other_edits",
        persist_state="session",
        on_change=forget_pair,
        help="Separate several edits by commas. The address of Edit the model has the same "
        "notation.",
    )


def _take_head_of_b(first: str) -> None:
    """The head chosen for B is the one edit of B, and its attention the one on show (`first`: the
    one that is without a choice); without a head B has the first edit again."""
    state = st.session_state
    chosen = state["head of B"]
    state.other_edits = url_state.default("other_edits")
    if chosen:
        state.other_edits = to_line((ABLATIONS[state.get("done to it", "zero")](*chosen),))
    state.other_of = state.other_to = chosen[2] if chosen and chosen[2] != first else ""
    forget_pair()


# ---- two sentences, two models ----


def _second_text(text: str, field: DeltaGenerator) -> str:
    """The other sentence, one that differs in few words where none is typed."""
    mate = MATES.get(text) or text.strip().rpartition(" ")[0] or text
    field.text_input(
        f"Text of {other_letter()}",
        key="other_text",
        persist_state="session",
        on_change=forget_pair,
        placeholder=mate or "Type a second sentence",
        label_visibility="collapsed",
    )
    typed = str(st.session_state.other_text)
    return typed if typed.strip() else mate


def _second_model(one: Run, field: DeltaGenerator) -> Run:
    """Another model on the same text. Where both write, both decoders read what the first one
    writes."""
    options = _others(one.model)
    first = COUNTERPARTS.get(one.model, "")
    other = url_state.one_of("other_model", ("", *options)) or (
        first if first in options else options[0]
    )
    st.session_state["other model"] = other
    field.selectbox(
        f"Model of {other_letter()}",
        options,
        key="other model",
        format_func=models.title,
        on_change=_take_model,
        label_visibility="collapsed",
    )
    with st.spinner("Loading the model …"):
        kinds = {models.handle(each).card.kind for each in (one.model, other)}
    target = one.recording().target or None if kinds == {"encoder-decoder"} else None
    return Run(other, one.text, (), target)


def _others(model: str) -> tuple[str, ...]:
    """The models that side B can be: all but the one above, and that one's other weights; and one
    that a link names."""
    cards, base = models.cards(), model.partition("@")[0]
    linked = str(st.session_state.other_model)
    names = (
        *([base] if base in cards else []),
        *checkpoints(base, cards),
        *cards,
        *(name for name in choices() if ":" in name),
        # A link alone fetches nothing.
        *((linked,) if ":" in linked and not needs_asking(linked) else ()),
    )
    return tuple(name for name in dict.fromkeys(names) if name != model)


def _take_model() -> None:
    st.session_state.other_model = st.session_state["other model"]
    forget_pair()
    st.session_state.other_of = st.session_state.other_to = ""


def _swap() -> None:
    state = st.session_state
    state.other_swap = "" if state.other_swap else "1"
    state.other_of, state.other_to = state.other_to, state.other_of
    forget_pair()


def forget_pair() -> None:
    """Other sides have other heads and words."""
    st.session_state.other_pair = st.session_state.other_word = ""
