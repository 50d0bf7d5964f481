"""A page that the chosen model does not fit runs another. While the reader is there, that one is
the model on screen, in the frame, in the map and in the address; the chosen one comes back on the
next page, with what was chosen of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from explorer.memory import choices, models, stages
from explorer.memory.models import PREFERRED, facts
from explorer.sentences.escape import literal
from models import library

ASIDE = "set aside"  # in a visit's state


@dataclass(frozen=True)
class Aside:
    """The model that was chosen, the one shown on `page` instead, and what was chosen of a text and
    of the chosen model, (name, value)."""

    model: str
    instead: str
    page: str
    text: str
    chosen: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Need:
    """What a page needs: whether a model has it, which models do, the first to be shown, and why
    another has not, in words that go on with "so this page shows"."""

    fits: Callable[[str], bool]
    fitting: Callable[[], tuple[str, ...]]
    first: Callable[[str], str]
    why: Callable[[str], str]


def _translates(model: str) -> bool:
    return facts(model)["kind"] == "encoder-decoder"


def _writes(model: str) -> bool:
    return _translates(model) and models.offers(model).writes


def _speaks(model: str) -> bool:
    return bool(facts(model).get("readout", True))


def _has_early(model: str) -> bool:
    live = st.session_state.train_view == "Live"
    return live or bool(stages.checkpoints(model)) or not stages.with_checkpoints()


def _shipped(fits: Callable[[str], bool]) -> tuple[str, ...]:
    names = dict.fromkeys((*PREFERRED, *library.names()))
    return tuple(name for name in names if name in library.names() and fits(name))


def _why_not_written(model: str) -> str:
    if _translates(model):
        speaks = bool(models.offers(model).logits)
        why = (
            "runs on the cluster, which" if speaks else f"{models.offers(model).no_readout}, so it"
        )
        return f"{why} writes no text here (its cross-attention is on Attention)"
    return "writes no translation"


NEEDS = {
    "translation": Need(
        _writes, lambda: _shipped(_translates), lambda _: "translator", _why_not_written
    ),
    "predictions": Need(
        _speaks,
        lambda: _shipped(_speaks),
        lambda _: "encoder",
        lambda model: f"{models.offers(model).no_readout} and predicts no words",
    ),
    # A model that reads the same text where the chosen one fills in words, else the one whose head
    # forms at a jump.
    "training": Need(
        _has_early,
        stages.with_checkpoints,
        lambda model: "twin-post" if facts(model)["kind"] == "encoder" else "induction",
        lambda _: "comes without earlier weights",
    ),
}


def settle() -> bool:
    """Put a model that fits the page on screen where the chosen one does not, and say whether it
    was; one that is not in memory yet is judged when it is."""
    state = st.session_state
    aside = state.get(ASIDE)
    if aside is not None and (state.model, state.page) != (aside.instead, aside.page):
        del state[ASIDE]  # the reader, or a link, asked for another
    need = NEEDS.get(state.page)
    known = models.is_light(state.model) or models.is_loaded(state.model)
    if need is None or not known or need.fits(state.model):
        return False
    chosen = tuple((name, str(state[name])) for name in choices.of("text", "model"))
    instead = need.first(state.model)
    state[ASIDE] = Aside(state.model, instead, state.page, state.text, chosen)
    state.model = instead
    return True


def bring_back() -> bool:
    """The reader goes to another page by its tab: the chosen model is on screen again, with what
    was chosen of it. True where there was one."""
    state = st.session_state
    aside = state.pop(ASIDE, None)
    if aside is None or state.model != aside.instead:
        return False
    state.model = aside.model
    kept = choices.of("model") if state.text != aside.text else choices.of("text", "model")
    for name, value in aside.chosen:
        state[name] = value if name in kept else ""
    return True


def keep() -> None:
    """What the reader pressed is of the model on screen: it stays."""
    st.session_state.pop(ASIDE, None)


def said() -> tuple[str, str]:
    """Which model the page shows instead of the chosen one and why, and which others fit; ("", "")
    where it shows the chosen one."""
    aside = st.session_state.get(ASIDE)
    if aside is None:
        return "", ""
    need, name = NEEDS[aside.page], literal(models.title(aside.model))
    why = f"{models.named(aside.model)} {need.why(aside.model)}"
    return (
        f"{why}, so this page shows **{aside.instead}**; the other pages keep {name}.",
        f"Models that fit this page: {', '.join(need.fitting())}.",
    )
