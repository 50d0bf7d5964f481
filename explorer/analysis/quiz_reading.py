"""Questions on what a head's picture shows: the word that a word attends to most, and what follows
of that for a pronoun, or for a word that receives most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from explorer.analysis.findings import WordLevelAttention
from explorer.analysis.quiz_question import (
    LOOKS,
    MIN_MARGIN,
    RECEIVED,
    AnswerOption,
    Question,
    answer_names,
    most_question,
    options,
)

FEWEST_KEYS = 4  # words that a row may look at, for a question about it
FEWEST_ROWS = 3  # words that can attend to one, for a question what it receives
CLEAR_LEAD = 1.5  # times what the next word receives, which is seen in a picture


def head_questions(word_attention: WordLevelAttention, all_words: bool) -> Iterator[Question]:
    """Questions about an attention between words, none about special tokens. `all_words`: a
    repeated word has its number, else there are no questions about it."""
    attention_questions = AttentionQuestions(word_attention, all_words)
    yield from attention_questions.looks()
    yield from attention_questions.received()


class AttentionQuestions:
    """An attention between words, and which of them can be asked about: those of letters, figures
    or signs that the text holds once, so that an answer names one place."""

    def __init__(self, word_attention: WordLevelAttention, all_words: bool) -> None:
        self.seen, self.w = word_attention, word_attention.weights.astype(np.float64)
        self.layers, self.heads = self.w.shape[:2]
        self.row_names, rows = answer_names(word_attention.rows.labels, all_words)
        self.key_names, keys = answer_names(word_attention.keys.labels, all_words)
        self.rows = np.flatnonzero(rows & word_attention.text_masks[0])
        self.keys = np.flatnonzero(keys & word_attention.text_masks[1])

    def about(self, kind: str, layer: int, head: int, row: int = -1, **more: Any) -> Question:
        """A question about a head, and the word of a row where it is named, still without
        answers."""
        name = self.seen.attention.name
        token = -1 if row < 0 else int(self.seen.rows.starts[row])
        words = () if row < 0 else (self.row_names[row],)
        address = {
            "attention": name,
            "layer": str(layer),
            "head": str(head),
            "token": "" if row < 0 else str(token),
            "source": "",
        }
        return Question(
            kind,
            attention=name,
            layer=layer,
            head=head,
            words=words,
            token=token,
            address=tuple(address.items()),
            **more,
        )

    def word(self, column: int, value: float) -> AnswerOption:
        """A word as an answer."""
        return AnswerOption(
            float(value), self.key_names[column], int(self.seen.keys.starts[column])
        )

    def columns(self, row: int) -> np.ndarray:
        """The words that a row may look at, without itself."""
        is_self = self.seen.attention.query == self.seen.attention.key
        return self.keys[self.seen.allowed[row, self.keys] & ~(is_self & (self.keys == row))]

    def looks(self) -> Iterator[Question]:
        """Questions on the word that a word attends to most, in a head."""
        for row in self.rows.tolist():
            columns = self.columns(row)
            if len(columns) < FEWEST_KEYS:
                continue
            for layer, head in np.ndindex(self.layers, self.heads):
                weights = self.w[layer, head, row]
                best = int(weights.argmax())
                # Of all that it may look at, special tokens and repeated words among them.
                lead = weights[best] - np.delete(weights, best).max()
                if best not in columns or lead < MIN_MARGIN[LOOKS]:
                    continue
                ranked = sorted(columns, key=lambda each: -weights[each])
                far = min(abs(best - row), 6) / 6
                about = self.about(LOOKS, layer, head, row, interest=float(lead) * (0.3 + far))
                yield from most_question([self.word(each, weights[each]) for each in ranked], about)

    def received(self) -> Iterator[Question]:
        """Questions on the word that receives most attention in a head, of all other words that can
        attend to it: both on their average, by which it leads clearly, and in total."""
        sizes = self.seen.rows.sizes.astype(np.float64)[:, None]
        can_attend = self.seen.allowed & self.seen.text_masks[0][:, None]
        form, giving = "source", ""
        if self.seen.attention.query == self.seen.attention.key:
            np.fill_diagonal(can_attend, False)
            form = ""
            giving = "the other words" if np.triu(can_attend, 1).any() else "the words after it"
        keys = [each for each in self.keys.tolist() if can_attend[:, each].sum() >= FEWEST_ROWS]
        if len(keys) < FEWEST_KEYS:
            return
        text_columns = np.flatnonzero(self.seen.text_masks[1] & can_attend.any(axis=0))
        n_rows = (can_attend * sizes).sum(axis=0)
        for layer, head in np.ndindex(self.layers, self.heads):
            total = (self.w[layer, head] * can_attend * sizes).sum(axis=0)
            mean = total / np.maximum(n_rows, 1)
            ranked = sorted(keys, key=lambda each: -mean[each])
            # A repeated word that gets more would be the true answer.
            most = ranked[0]
            if mean[text_columns].max() > mean[most] or total[text_columns].max() > total[most]:
                continue
            if mean[most] < CLEAR_LEAD * mean[ranked[1]]:
                continue
            given, less = float(mean[most]), float(mean[ranked[1]])
            if given - less < MIN_MARGIN[RECEIVED]:
                continue
            about = self.about(RECEIVED, layer, head, form=form, interest=given)
            yield replace(
                about,
                words=(self.key_names[most],),
                key=int(self.seen.keys.starts[most]),
                slots=(("given", given), ("less", less), ("from_words", giving)),
                choices=options("key", "important", "column", "query", value=given),
                margin=given - less,
            )


def what_follows(one: Question) -> Question:
    """The question what follows for a pronoun, of what a head has it attend to most: one head alone
    tells nothing certain."""
    return replace(
        one,
        form="pronoun",
        words=(*one.words, one.answer.word),
        key=one.answer.token,
        slots=(("given", one.answer.value), ("rival", one.second.word), ("less", one.second.value)),
        choices=options("nothing", "referent", "both", "unknown"),
    )
