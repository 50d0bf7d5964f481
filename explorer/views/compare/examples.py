"""Comparisons in one click."""

from __future__ import annotations

import streamlit as st

from explorer.layout import current_recording
from explorer.state import models
from models.edits import (
    NORMS,
    Edit,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    from_line,
    to_line,
)
from models.example_texts import DEFAULT_TEXT

# A sentence that differs in few words, for texts the app offers; of any other text the reader types
# one.
MATES = {
    DEFAULT_TEXT: "The animal didn't cross the street because it was too wide.",
    "I love to eat pizza": "I love to drive cars",
    "She ate the apple with some fruit juice.": "She sold the apple with some other device.",
    "Ram pushed Hari": "Hari pushed Ram",
    "Herbivores eat plants": "Carnivores eat animals",
    "The red car is in front of the white house.": ("The old man is in front of the small church."),
}
FRESH = {"other_swap": "", "other_of": "", "other_to": "", "other_pair": "", "other_word": ""}
Made = dict[str, dict[str, str]]  # by name, which choices each sets


def show(model: str) -> None:
    """The examples that suit the model above; the one that is on screen is marked."""
    made, state = _offered(model), st.session_state
    state["comparison"] = next(
        (
            name
            for name, choices in made.items()
            if all(state[key] == value for key, value in choices.items())
        ),
        None,
    )
    with st.popover("Suggestions", icon=":material/lightbulb:"):
        st.pills(
            "Examples of comparisons",
            list(made),
            key="comparison",
            wrap=True,
            on_change=_take,
            args=(made,),
            label_visibility="collapsed",
        )


def follows(model: str, kind: type) -> bool:
    """True where a model can follow edits of this kind: one that runs in its own code follows
    few."""
    return issubclass(kind, models.capabilities(model).edits)


def checkpoints(model: str, cards: dict[str, dict]) -> tuple[str, ...]:
    """A model's earlier weights."""
    return tuple(f"{model}@{step}" for step in cards.get(model, {}).get("checkpoints", ()))


def _offered(model: str) -> Made:
    tired, wide = next(iter(MATES.items()))
    made = {
        "tired / wide": _sentences(tired, wide),
        "Ram / Hari": _sentences("Ram pushed Hari", "Hari pushed Ram"),
    }
    encodes = models.handle(model).card.kind == "encoder"
    edits: dict[str, Edit] = {
        "No positions": WithoutPositions(),
        "No scale": WithoutScale(),
        "No residual connections": WithoutResidual(),
        f"No {NORMS['rms' if models.capabilities(model).rms else 'layer']}": WithoutNorm(),
        "No FFN": WithoutFeedForward(),
        "Causal mask" if encodes else "No causal mask": WithMask() if encodes else WithoutMask(),
    }
    for name, edit in edits.items():
        line = to_line((edit,))
        if all(follows(model, type(one)) for one in from_line(line)):
            made[name] = {"other_what": "Edit", "other_edits": line}
    cards = models.cards()
    for title, other in (("decoder", "decoder"), ("MiniLM", "minilm")):
        if {"encoder", other} <= set(cards):
            made[f"encoder / {title}"] = _models("encoder", other)
    base = model.partition("@")[0]
    started = next((name for name in (base, *cards) if checkpoints(name, cards)), None)
    if started:
        made[f"{started} / untrained"] = _models(started, checkpoints(started, cards)[0])
    return made


def _sentences(text: str, other: str) -> dict[str, str]:
    return {"text": text, "other_what": "Sentence", "other_text": other}


def _models(model: str, other: str) -> dict[str, str]:
    return {"model": model, "other_what": "Model", "other_model": other}


def _take(made: Made) -> None:
    """The example just pressed; pressing it once more changes nothing."""
    state = st.session_state
    if (choices := made.get(state["comparison"] or "")) is None:
        return
    if choices.get("text", state.text) != state.text:
        current_recording.take_text(choices["text"])
    if choices.get("model", state.model) != state.model:
        state.wanted_model = choices["model"]
    for key, value in (FRESH | choices).items():
        if key not in ("text", "model"):
            state[key] = value
