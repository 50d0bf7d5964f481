"""Whether a model that was just loaded works: its numbers are numbers, its vocabulary is its
tokenizer's, and a text goes through it.

What fails here would fail at a reader's first sentence. `prove` is quick and done at every load;
`stretch`, a text as long as the model takes and signs of all kinds, is for the trial
(models/pretrained/trial.py).
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
import torch

from models import own
from models.pretrained import handle as hf
from models.pretrained.files import NotLoaded, mend
from models.recording import NotFinite, Recording

Handle = own.Handle | hf.Handle
WORDS = "The cat sat on the mat, didn't it?"
# Printable signs, letters of several scripts, marks, spaces of all kinds: whatever a tokenizer's
# rules may stumble over.
SIGNS = "".join(
    map(chr, (*range(32, 127), *range(160, 384), 0x3B1, 0x439, 0x5D0, 0x627, 0x915))
) + ("日本語 한국어 ไทย e\u0301 \u200b \u202e \ufeff \ufb03 ½ 🙂 👩‍👩‍👧 \n\t\r \x00")
MOST_TOKENS_A_SIGN = 64


def prove(handle: Handle, name: str) -> Handle:
    """The handle again. Raises NotLoaded where the model has numbers that are none, words that its
    tokenizer does not know, or fails on a text."""
    _expect_numbers(handle, name)
    _expect_words(handle, name)
    _run(handle, WORDS, name)
    return handle


def stretch(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a model fails on as long a text as it says it takes, or its tokenizer
    on signs of all kinds."""
    for signs in (SIGNS, "a" * 2000, " " * 2000, "(" * 500 + "!" * 500):
        n = _count(handle, signs)
        if n > MOST_TOKENS_A_SIGN * len(signs):
            raise NotLoaded(
                f"The tokenizer of {name} makes {n:,} tokens of {len(signs):,} characters; "
                "choose another model."
            )
    made = _run(handle, "the cat sat on the mat and " * handle.card.n_positions, name)
    _run(handle, SIGNS, name)
    if len(made.streams[0].tokens) > handle.card.n_positions:
        raise NotLoaded(
            f"{name} reads {handle.card.n_positions} tokens and its tokenizer gives it "
            f"{len(made.streams[0].tokens)}; choose another model."
        )


def _count(handle: Handle, signs: str) -> int:
    try:
        tokens, dropped = (
            own.frame(handle, signs)
            if isinstance(handle, own.Handle)
            else handle.tokenizer.tokens(signs, handle.card.n_positions)
        )
    except ValueError:  # a model that puts nothing around a text reads nothing of spaces
        return 0
    return len(tokens.ids) + dropped


def _expect_numbers(handle: Handle, name: str) -> None:
    for key, parameter in handle.model.named_parameters():
        if not torch.isfinite(parameter).all():
            raise NotLoaded(
                f"The weights of {name} contain values that are not numbers (NaN or "
                f"infinite), the first of them in {key[:80]}; choose another model."
            )


def _expect_words(handle: Handle, name: str) -> None:
    vocabulary = (
        handle.tokenizer.bpe.get_vocab(with_added_tokens=True)
        if isinstance(handle, own.Handle)
        else handle.tokenizer.own.get_vocab()
    )
    if not vocabulary:
        raise NotLoaded(f"The tokenizer of {name} knows no words; {mend(name)}.")
    if (largest := max(vocabulary.values())) >= handle.card.n_vocab:
        raise NotLoaded(
            f"The tokenizer of {name} numbers its words up to {largest:,} and the model has "
            f"{handle.card.n_vocab:,} words; {mend(name)}."
        )


def _run(handle: Handle, text: str, name: str) -> Recording:
    """A pass over a text."""
    try:
        made = import_module(handle.source).record(handle, text)
    except NotFinite as error:
        raise NotLoaded(
            f"Numbers overflow when {name} reads a text, first at {error}; choose another model."
        ) from error
    except (ValueError, IndexError, RuntimeError, TypeError, AttributeError, LookupError) as error:
        raise NotLoaded(
            f"{name} does not run on a text of up to {handle.card.n_positions} tokens, which "
            "its configuration promises; choose another model."
        ) from error
    for attention in made.attention:
        if not np.isfinite(attention.pattern).all():
            raise NotLoaded(
                f"The attention of {name} contains values that are not numbers; choose "
                "another model."
            )
    return made
