"""Texts in the making: one that is generated token by token, and the search for a translation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from models.contract.results import Beam, SeededSampling, WholeWord, WrittenToken, score_token
from models.runtime import caching, host
from models.runtime.caching import loaded
from models.tokens import whole_words

Draw = Callable[[np.ndarray, int], int]


@dataclass(frozen=True, eq=False)
class GeneratedText:
    """A prompt and the tokens that were generated after it.

    ids (token) with those of the prompt, `n_prompt` of them; tokens: the generated ones; logits
    (id) of the next one; attention (layer, head, key) of the newest one; stored: the bytes of all
    keys and values, their heads and the width of one, (0, 0, 0) without a cache. ended: the last
    token ends the text; full: the model reads no further token. whole: the words that the likeliest
    next tokens begin, by the token.
    """

    ids: tuple[int, ...]
    n_prompt: int
    tokens: tuple[WrittenToken, ...]
    logits: np.ndarray
    attention: np.ndarray
    stored: tuple[int, int, int]
    ended: bool
    full: bool
    whole: Mapping[int, WholeWord]


class Draft:
    """A reader's text that is being generated: the prompt, the tokens after it, and the scores for
    the next one.

    `writing` is the model's state, with its stored keys and values; `n_prompt` the number of the
    prompt's tokens."""

    def __init__(self, model: str, text: str) -> None:
        self.model, self.text = model, host.current.truncate(text)
        # A run that a newer one takes over from may still be at a step.
        self._step_lock = threading.RLock()
        self.start_over()

    def start_over(self) -> None:
        """Go back to the prompt."""
        model = loaded(self.model)  # one that has to be loaded anew holds nobody up
        with host.current.slot():
            self.writing = model.generate(self.text)
        self.n_prompt = len(self.writing.ids)
        self.tokens: list[WrittenToken] = []

    @property
    def ended(self) -> bool:
        """True where the last token is one that ends the model's texts."""
        return bool(self.tokens) and self.tokens[-1].id in loaded(self.model).tokenizer.eos_ids

    @property
    def full(self) -> bool:
        """True where the model takes no further token."""
        return self.writing.is_full

    def step_towards(self, ids: tuple[int, ...]) -> int:
        """Take one step towards the tokens `ids`: one token more, or one fewer. Returns the number
        of remaining steps, 0 at the end.

        Tokens in `ids` after one that ends the model's texts, or beyond its longest text, are
        ignored."""
        with self._step_lock:
            eos_ids = loaded(self.model).tokenizer.eos_ids
            end = next((at for at, token in enumerate(ids, start=1) if token in eos_ids), len(ids))
            ids = ids[:end]
            ids = ids[: self.writing.n_positions - self.n_prompt]
            current = tuple(word.id for word in self.tokens)
            common = next(
                (at for at, (a, b) in enumerate(zip(current, ids)) if a != b),
                min(len(current), len(ids)),
            )
            if current and not common:
                self.start_over()
                return len(ids)
            if common < len(current):
                self.writing.back()
                self.tokens.pop()
                return len(current) - 1 - common + len(ids) - common
            if common < len(ids):
                self._add(ids[common])
                return len(ids) - common - 1
            return 0

    @property
    def generated_text(self) -> GeneratedText:
        """The text as it is now."""
        stored = self.writing.stored
        return GeneratedText(
            tuple(self.writing.ids),
            self.n_prompt,
            tuple(self.tokens),
            self.writing.logits,
            self.writing.rows["attn"],
            (stored.nbytes, stored.n_head, stored.d_head) if stored.nbytes else (0, 0, 0),
            self.ended,
            self.full,
            {} if self.ended or self.full else self._whole_words(),
        )

    def _whole_words(self) -> dict[int, WholeWord]:
        """The words that the likeliest next tokens begin, from the stored keys and values. One of
        these tokens that is taken next has been read then."""
        model = loaded(self.model)
        with self._step_lock:
            likely = whole_words.likely_tokens(self.writing.logits)
            followed = whole_words.followed_tokens(model, likely)
            with host.current.slot():
                return whole_words.whole_words(model, self.writing, followed)

    def _add(self, token: int) -> None:
        self.tokens.append(score_token(self.writing.logits, token))
        with host.current.slot():
            self.writing.add(token)


def generated_text(
    model: str, text: str, ids: tuple[int, ...] = (), draft: Draft | None = None
) -> GeneratedText:
    """A prompt continued by these token ids, from the cache; draft: this text where it was
    generated already. Raises ValueError where the prompt leaves no room."""

    def make() -> GeneratedText:
        written = draft or Draft(model, text)
        while written.step_towards(ids):
            pass
        return written.generated_text

    return caching.get(("generated", model, loaded(model).card.fingerprint, text, ids), make)


def continuation(
    model: str,
    text: str,
    limit: int,
    sampling: Hashable,
    draw: Draw,
    told: Callable[[Sequence[int]], None] | None = None,
) -> tuple[int, ...]:
    """The continuation of a prompt: at most `limit` token ids, each drawn from the scores (id) by
    `draw(scores, place)`. Cached by `sampling`. told: is given the ids so far after each token,
    while they are written."""

    def generate() -> tuple[int, ...]:
        text_draft = Draft(model, text)
        while len(text_draft.tokens) < limit and not (text_draft.ended or text_draft.full):
            text_draft._add(draw(text_draft.writing.logits, len(text_draft.writing.ids)))
            if told is not None:
                told([word.id for word in text_draft.tokens])
        return tuple(word.id for word in text_draft.tokens)

    key = ("ahead", model, loaded(model).card.fingerprint, text, limit, sampling)
    return caching.get(key, generate)


class Search:
    """A beam search at its current step, shared by all readers: each may take the next step, for
    all.

    `steps`: after each step the best hypotheses, best first. `finished`: there is no further
    step. key: under which it lies in the cache, at what it weighs after each step."""

    def __init__(self, remaining_steps: Iterator[tuple[Beam, ...]], key: Hashable) -> None:
        self.steps: list[tuple[Beam, ...]] = []
        self.finished = False
        self._remaining_steps, self._step_lock = remaining_steps, threading.Lock()
        self._key = key

    def resume(self) -> None:
        """Take one step, unless it has finished."""
        with self._step_lock:
            if not self.finished:
                try:
                    with host.current.slot():
                        self.steps.append(next(self._remaining_steps))
                    self.finished = all(beam.done for beam in self.steps[-1])
                except StopIteration:
                    self.finished = True
                if self.finished:
                    self._remaining_steps = iter(())  # lets the stored keys and values go
                caching.cache.weigh_again(self._key, self)


def search(model: str, text: str, decoding: int | SeededSampling) -> Search:
    """The search for a text's translation, with so many beams or drawn, begun once for everyone and
    kept as far as it has come."""
    translator, text = loaded(model), host.current.truncate(text)
    key = ("search", model, translator.card.fingerprint, text, decoding)
    return caching.get(key, lambda: Search(iter(translator.beams(text, decoding)), key))
