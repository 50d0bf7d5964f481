"""Two runs side by side: two models, two sentences, or one run before and after an edit."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import comparison
from explorer.analysis.terminology import ABLATIONS
from explorer.app.layout import current_recording, output, selection_bar, tab
from explorer.app.layout.controls import bind
from explorer.app.state import url_state
from explorer.app.state.models import choices, is_allowed, needs_asking
from explorer.app.state.visit import visit
from explorer.panels import compare as compare_panels
from explorer.panels.choice import TRUE
from explorer.screens.screen import Screen
from explorer.screens.subjects import EDIT, KINDS, MODEL, SENTENCE, edits_beside
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import (
    NORMS,
    Edit,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    describe,
    to_line,
)
from models.contract.recording import Recording
from models.example_texts import EXAMPLES, MATES
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = sentences("compare", "tab")

# ---- examples ------------------------------------------------------------------------

FRESH = {"other_swap": "", "other_of": "", "other_to": "", "head_of_b": ""}
Suggestions = dict[str, dict[str, str]]  # by name, which choices each sets


def example_pills(model: str) -> None:
    """The examples that suit the model above; the one that is on screen is marked."""
    offered, state = _offered(model), st.session_state
    chosen = {key: state[key] for choices in offered.values() for key in choices}
    chosen["other_edits"] = chosen_edits() or NO_POSITIONS
    chosen["compare"] = chosen["compare"] or EDIT
    visit.comparison = next(
        (name for name, choices in offered.items() if choices.items() <= chosen.items()), None
    )
    st.pills(
        "Suggestions",
        list(offered),
        key="comparison",
        wrap=True,
        on_change=_take_example,
        args=(offered,),
    )


# The same words in another order, with another meaning: one for all, or all for one.
EVERY_AND_ONE = (EXAMPLES["Every student"], MATES[EXAMPLES["Every student"]])


def _offered(model: str) -> Suggestions:
    tired, wide = next(iter(MATES.items()))
    offered = {
        "tired / wide": _sentences(tired, wide),
        "Ram / Hari": _sentences("Ram pushed Hari", "Hari pushed Ram"),
        "every / one": _sentences(*EVERY_AND_ONE),
    }
    encodes, features = loaded(model).card.kind == "encoder", loaded(model).capabilities
    edits: dict[str, Edit] = {
        "No positions": WithoutPositions(),
        "No scale": WithoutScale(),
        "No residual connections": WithoutResidual(),
        f"No {NORMS['rms' if features.rms else 'layer']}": WithoutNorm(),
        "No FFN": WithoutFeedForward(),
        "Causal mask" if encodes else "No causal mask": WithMask() if encodes else WithoutMask(),
    }
    for title, edit in edits.items():
        if isinstance(edit, features.edits):
            offered[title] = {"compare": "Edit", "other_edits": to_line((edit,))}
    cards = model_names.cards()
    for title, other in (("decoder", "decoder"), ("MiniLM", "minilm")):
        if {"encoder", other} <= set(cards):
            offered[f"encoder / {title}"] = _models("encoder", other)
    base = model.partition("@")[0]
    trained = (name for name in (base, *cards) if model_names.checkpoints(name))
    started = next(filter(is_allowed, trained), None)
    if started:
        untrained = model_names.checkpoints(started)[0]
        offered[f"{started} / untrained"] = _models(started, untrained)
    return offered


def _sentences(text: str, other: str) -> dict[str, str]:
    return {"text": text, "compare": "Sentence", "other_text": other}


def _models(model: str, other: str) -> dict[str, str]:
    return {"model": model, "compare": "Model", "other_model": other}


def _take_example(offered: Suggestions) -> None:
    """The example just pressed; pressing it once more changes nothing."""
    state = st.session_state
    if (chosen := offered.get(visit.comparison or "")) is None:
        return
    if chosen.get("text", visit.text) != visit.text:
        current_recording.take_text(chosen["text"])
    if chosen.get("model", visit.model) != visit.model:
        visit.wanted_model = chosen["model"]
    for key, value in (FRESH | chosen).items():
        if key not in ("text", "model"):
            state[key] = value


# ---- the other run -------------------------------------------------------------------

NO_POSITIONS = to_line((WithoutPositions(),))
FIELD, MENU = 360, 240  # pixels


def other_run(run: Run, bar: DeltaGenerator, kind: str, other_swap: bool) -> None:
    """Draw the menu of B with all that B is chosen by."""
    if visit.wanted_model or (run.model, run.text) != (visit.model, visit.text):
        st.rerun()  # an example has put others into the fields above, which only a whole run draws
    with bar:
        st.selectbox(
            "Compare",
            tuple(KINDS),
            format_func=KINDS.__getitem__,
            label_visibility="collapsed",
            width=MENU,
            **bind("compare", "compare kind", kind or EDIT, after=partial(_take_kind, run)),
        )
        field = st.container(width=FIELD)
        menu = st.popover("Set up", icon=":material/tune:")
    with menu:
        example_pills(run.model)
        st.button(
            "Swap A and B",
            icon=":material/swap_horiz:",
            type="tertiary",
            on_click=_swap,
            help=WORDS("swap"),
        )
    with suppress(ValueError):  # the screen says why there is nothing to compare with
        if kind in ("", EDIT):
            _edits(run, field, menu)
        elif kind == SENTENCE:
            _second_text(run.text, field)
        else:
            _second_model(run.model, field)


def _take_kind(run: Run) -> None:
    """Two models are at first those that vote on a pronoun of the text."""
    forget_head_of_b()
    if st.session_state.compare == MODEL and not st.session_state.other_model:
        with suppress(ValueError):  # no other model here votes
            st.session_state.other_model = compare_panels.voting_run(run).model


def other_letter() -> str:
    """The letter of the side that the controls choose: B, and A once the sides are swapped."""
    return "A" if st.session_state.other_swap == TRUE else "B"


def forget_head_of_b() -> None:
    """Other sides have other heads."""
    st.session_state.head_of_b = ""


def _swap() -> None:
    state = st.session_state
    state.other_swap = "" if state.other_swap == TRUE else TRUE
    state.other_of, state.other_to = state.other_to, state.other_of
    forget_head_of_b()


def _second_text(text: str, field: DeltaGenerator) -> None:
    """The other sentence, one that differs in few words where none is typed."""
    field.text_input(
        f"Text of {other_letter()}",
        key="other_text",
        persist_state="session",
        on_change=forget_head_of_b,
        placeholder=compare_panels.other_text(text) or "Type a second sentence",
        label_visibility="collapsed",
    )


def _second_model(model: str, field: DeltaGenerator) -> None:
    """The other model: one of this Headlight, one of the visit, or one that a link names. A link
    alone fetches nothing."""
    linked = str(st.session_state.other_model)
    opened = (name for name in choices() if ":" in name and name != model)
    options = (
        *compare_panels.other_models(model),
        *opened,
        *((linked,) if ":" in linked and not needs_asking(linked) else ()),
    )
    other = url_state.one_of("other_model", ("", *options)) or options[0]
    field.selectbox(
        f"Model of {other_letter()}",
        tuple(dict.fromkeys(options)),
        format_func=model_names.title,
        label_visibility="collapsed",
        **bind("other_model", "other model", other, after=_forget_attentions),
    )
    with st.spinner("Loading the model …"):
        loaded(other)


def _forget_attentions() -> None:
    forget_head_of_b()
    st.session_state.other_of = st.session_state.other_to = ""


# ---- the edits of B ----


def chosen_edits() -> str:
    """The edits of B that the reader chose: those chosen here, or else those of Take out."""
    return st.session_state.other_edits.strip() or st.session_state.edits


def _edits(run: Run, field: DeltaGenerator, menu: DeltaGenerator) -> None:
    """The edits of B: one head of it ablated; how, and all others, in a menu."""
    plain, (edits, _) = run.recording(), edits_beside(run, url_state.words())
    _pick_head(plain, edits, field)
    letter = other_letter()
    with menu:
        if visit.ablated_head:
            st.segmented_control(
                "Ablation",
                tuple(ABLATIONS),
                key="ablation",
                wrap=True,
                required=True,
                on_change=_take_head_of_b,
                args=(plain.attention[0].name,),
                help=sentences("interventions", "tab")("ablation"),
            )
        st.text_input(
            f"Edits of {letter} as text",
            key="other_edits",
            persist_state="session",
            on_change=forget_head_of_b,
            placeholder=to_line(edits),
            help=WORDS("edits_as_text"),
        )


def _pick_head(plain: Recording, edits: tuple[Edit, ...], field: DeltaGenerator) -> None:
    """The menu of the one head of B that is ablated, () for other edits, and how it is ablated."""
    _state, letter = st.session_state, other_letter()
    several, first = len(plain.attention) > 1, plain.attention[0].name
    heads = [
        (layer, head, each.name)
        for each in plain.attention
        for layer in range(each.pattern.shape[0])
        for head in range(each.pattern.shape[1])
    ]
    now: tuple = ()
    visit.ablation = "zero"
    for how, kind in ABLATIONS.items():
        if len(edits) == 1 and isinstance(edit := edits[0], kind):
            now, visit.ablation = (edit.layer, edit.head, edit.attention), how
    visit.ablated_head = now
    suggested = ", until you choose an edit" * (not chosen_edits())

    def label(at: tuple) -> str:
        """The edits of B without a chosen head, or the head that is ablated."""
        name = "other edits" if now or not edits else describe(edits)
        if at:
            name = f"{comparison.name(at[:2])}{f', {at[2]}' if several else ''} taken out"
        return f"{letter}: {name}{suggested if at == now else ''}"

    field.selectbox(
        f"Head taken out of {letter}",
        [(), *heads],
        key="ablated_head",
        on_change=_take_head_of_b,
        args=(first,),
        format_func=label,
        label_visibility="collapsed",
    )


def _take_head_of_b(first: str) -> None:
    """The head chosen for B is the one edit of B, and its attention the one on show (`first`: the
    one that is without a choice); without a head B has its first edits again."""
    state = st.session_state
    chosen = visit.ablated_head
    kind = ABLATIONS[visit.ablation]
    state.other_edits = to_line((kind(*chosen),)) if chosen else ""
    state.other_of = state.other_to = chosen[2] if chosen and chosen[2] != first else ""
    forget_head_of_b()


# ---- the tab -------------------------------------------------------------------------


def select_heads(shown: Screen) -> None:
    """The menus of the word and the head of A on screen. There are none where no head can be
    compared, as the picture says, and where no head is."""
    if shown.chosen.get("head") is not None:
        menus = {"layer", "head", "token"}
        selection_bar.draw(shown.run, shown.chosen, menus, "every word")


def offer_others(shown: Screen) -> None:
    """Below the votes of two models what is known to change them."""
    alone = shown.tab.alone
    other = shown.known.get("other") or shown.chosen.get("other")
    if alone and shown.tab.panels == alone.panels and other is not None and not shown.run.edits:
        with st.container(key="offers-below"):
            output.offers("offers.between_models", shown.run, {"other_model": other.model})


tab.view("compare", tab.Hand(top=other_run, select=select_heads, offered=offer_others))
