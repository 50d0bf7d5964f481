"""A reader's text in the making, as far as it has come."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

import numpy as np
import streamlit as st

from explorer.memory import shelf
from explorer.memory.models import handle
from explorer.memory.settings import beginning
from explorer.memory.turns import turn
from models import library
from models.prediction import Said, said

Draw = Callable[[np.ndarray, int], int]


class Draft:
    """A reader's text in the making: the prompt, what was said after it, and the scores for what
    comes next.

    `writing` is the model's side of it, with its stored keys and values; `n_prompt` how many tokens
    the prompt has.
    """

    def __init__(self, model: str, text: str) -> None:
        self.model, self.text = model, beginning(text)
        self._stepping = (
            threading.RLock()
        )  # a run that a newer one takes over from may still be at a step
        self.start_over()

    def start_over(self) -> None:
        """Go back to the prompt."""
        loaded = handle(self.model)
        with turn():
            self.writing = library.writing(loaded, self.text)
        self.n_prompt = len(self.writing.ids)
        self.said: list[Said] = []

    @property
    def ended(self) -> bool:
        """True where the last word said is the model's sign for the end."""
        return bool(self.said) and self.said[-1].id == handle(self.model).tokenizer.eos

    @property
    def full(self) -> bool:
        """True where the model takes no further token."""
        return self.writing.is_full

    def towards(self, ids: tuple[int, ...]) -> int:
        """Take one step to where `ids` is all that was said: one token more, or one fewer. How many
        steps are left, 0 where it is there.

        What stands in `ids` after the model's sign for the end, and what has no room, counts as not
        there.
        """
        with self._stepping:
            eos = handle(self.model).tokenizer.eos
            ids = ids[: ids.index(eos) + 1] if eos in ids else ids
            ids = ids[: self.writing.n_positions - self.n_prompt]
            now = tuple(word.id for word in self.said)
            common = next(
                (at for at, (a, b) in enumerate(zip(now, ids)) if a != b), min(len(now), len(ids))
            )
            if now and not common:
                self.start_over()
                return len(ids)
            if common < len(now):
                self.writing.back()
                self.said.pop()
                return len(now) - 1 - common + len(ids) - common
            if common < len(ids):
                self._add(ids[common])
                return len(ids) - common - 1
            return 0

    def _add(self, token: int) -> None:
        self.said.append(said(self.writing.logits, token))
        with turn():
            self.writing.add(token)


def ahead(model: str, text: str, most: int, how: Hashable, draw: Draw) -> tuple[int, ...]:
    """What would be written after a prompt: at most so many tokens, each drawn from the scores (id)
    by `draw(scores, place)`. Kept by `how` they are drawn."""

    def written() -> tuple[int, ...]:
        made = Draft(model, text)
        while len(made.said) < most and not (made.ended or made.full):
            made._add(draw(made.writing.logits, len(made.writing.ids)))
        return tuple(word.id for word in made.said)

    key = ("ahead", model, handle(model).card.fingerprint, text, most, how)
    return shelf.get(key, written)


def draft(model: str, text: str) -> Draft:
    """This reader's text in the making after a prompt, as far as it has come. Only the last one is
    kept.

    Raises ValueError, with words for the reader, where the prompt leaves no room.
    """
    cause = (model, handle(model).card.fingerprint, text)
    kept = st.session_state.get("draft")
    if kept is None or kept[0] != cause:
        kept = st.session_state.draft = (cause, Draft(model, text))
    return kept[1]
