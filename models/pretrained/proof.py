"""Whether a model that was just loaded works: its vocabulary is its tokenizer's, and a text goes
through it.

What fails here would fail at a reader's first sentence. `prove` is quick and done at every load;
`stretch`, a text as long as the model takes and signs of all kinds, is for the trial
(models/pretrained/trial.py).
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from itertools import permutations

import numpy as np

from models import own
from models.pretrained import files
from models.pretrained import handle as hf
from models.pretrained.files import NotLoaded, mend
from models.recording import NotEncoded, NotFinite, Recording
from models.tokenizer import Tokenizer, Tokens

Handle = own.Handle | hf.Handle
WORDS = "The cat sat on the mat, didn't it?"
# Printable signs, letters of several scripts, marks, spaces of all kinds: whatever a tokenizer's
# rules may stumble over.
SIGNS = "".join(
    map(chr, (*range(32, 127), *range(160, 384), 0x3B1, 0x439, 0x5D0, 0x627, 0x915))
) + ("日本語 한국어 ไทย e\u0301 \u200b \u202e \ufeff \ufb03 ½ 🙂 👩‍👩‍👧 \n\t\r \x00")
MOST_TOKENS_A_SIGN = 64
# What a regular expression names by itself, without classes such as \p{L} or \s, and their counts.
ESCAPED = re.compile(r"\\[pP]\{\^?\w+\}|\\.|\{\d*,?\d*\}|\(\?[a-z]+:")
NAMED = re.compile(r"[^\W\d_]|\d")
REPEATED, MOST_LETTERS = 60, 12


def prove(handle: Handle, name: str) -> Handle:
    """The handle again. Raises NotLoaded where the tokenizer has words that the model does not
    know, or the model fails on a text."""
    _expect_words(handle, name)
    _run(handle, WORDS, name)
    return handle


def stretch(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a model fails on as long a text as it says it takes, or its tokenizer
    on signs of all kinds and on texts that its own patterns nearly match."""
    for signs in (SIGNS, "a" * 2000, " " * 2000, "(" * 500 + "!" * 500, *near_matches(handle)):
        n = _count(handle, signs)
        if n > MOST_TOKENS_A_SIGN * len(signs):
            raise NotLoaded(
                f"The tokenizer of {name} makes {n:,} tokens of {len(signs):,} characters; "
                "choose another model."
            )
    _expect_one_cut(handle, name)
    made = _run(handle, "the cat sat on the mat and " * handle.card.n_positions, name)
    _run(handle, SIGNS, name)
    if len(made.streams[0].tokens) > handle.card.n_positions:
        raise NotLoaded(
            f"{name} reads {handle.card.n_positions} tokens and its tokenizer gives it "
            f"{len(made.streams[0].tokens)}; choose another model."
        )


def _expect_one_cut(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a tokenizer draws how it cuts a text."""
    cuts = {_framed(handle, WORDS * 8)[0].ids for _ in range(4)}
    if len(cuts) > 1:
        raise NotLoaded(
            f"The tokenizer of {name} cuts one text in several ways, by chance; turn its sampling "
            "off or choose another model."
        )


def _framed(handle: Handle, text: str) -> tuple[Tokens, int]:
    if isinstance(handle, own.Handle):
        return own.frame(handle, text)
    return handle.tokenizer.tokens(text, handle.card.n_positions)


def near_matches(handle: Handle) -> list[str]:
    """Texts that make a regular expression of a tokenizer's rules try many ways in vain: the
    letters that it names, over and over, all of them, each two and each one."""
    tokenizer = handle.tokenizer
    rules = tokenizer.bpe if isinstance(tokenizer, Tokenizer) else tokenizer.rules
    if rules is None:
        return []
    written = json.loads(rules.to_str())
    steps = [written.get(step) for step in ("normalizer", "pre_tokenizer", "decoder")]
    found: dict[str, None] = {}
    for pattern in files.patterns(steps):
        letters = list(dict.fromkeys(NAMED.findall(ESCAPED.sub("", pattern))))
        pairs = map("".join, permutations(letters[:MOST_LETTERS], 2))
        found |= dict.fromkeys(("".join(letters), *letters, *pairs))
    return [each * REPEATED for each in found if each]


def _count(handle: Handle, signs: str) -> int:
    try:
        tokens, dropped = _framed(handle, signs)
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {handle.card.name} fails on some texts, such as {signs[:12]!r} and "
            "so on; choose another model."
        ) from error
    except ValueError:  # a model that puts nothing around a text reads nothing of spaces
        return 0
    return len(tokens.ids) + dropped


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
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {name} fails on some texts; choose another model."
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
