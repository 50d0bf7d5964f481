"""The tokenizers library at work on a text: the only place that lets its rules encode, decode and
be read.

A rule of a tokenizer from anywhere may fail on some texts, and then the library raises Exception
itself, or PanicException, which is no Exception at all: a thread that does not catch it ends
without a word. Here both become one ValueError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from models.contract.recording import NotEncoded

PANIC = "PanicException"  # a class that the library keeps to itself


@contextmanager
def guarded(*passthrough: type[Exception]) -> Iterator[None]:
    """Whatever a tokenizer's rules raise within becomes NotEncoded, but for `passthrough`."""
    try:
        yield
    except passthrough:
        raise
    except BaseException as error:
        # A stop of the program is none of the rules' failures.
        if isinstance(error, Exception) or type(error).__name__ == PANIC:
            raise NotEncoded from error
        raise


def encode(rules: Tokenizer, text: str, special: bool = True) -> Encoding:
    """The tokens of a text; with the special ones that the rules put around it, unless `special` is
    False. Raises NotEncoded."""
    with guarded():
        return rules.encode(text, add_special_tokens=special)


def encode_all(rules: Tokenizer, texts: list[str]) -> list[list[int]]:
    """The token ids of many texts. Raises NotEncoded."""
    with guarded():
        return [each.ids for each in rules.encode_batch(texts)]


def decode(rules: Tokenizer, ids: Iterable[int], special: bool = True) -> str:
    """The text that token ids spell; without special tokens where `special` is False. Raises
    NotEncoded."""
    with guarded():
        return rules.decode(list(ids), skip_special_tokens=not special)


def from_file(file: Path) -> Tokenizer:
    """The rules in a tokenizer.json. Raises NotEncoded where they cannot be read."""
    with guarded():
        return without_dropout(Tokenizer.from_file(str(file)))


def from_text(text: str) -> Tokenizer:
    """The rules that a tokenizer.json holds. Raises NotEncoded where they cannot be read."""
    with guarded():
        return without_dropout(Tokenizer.from_str(text))


def without_dropout(rules: Tokenizer) -> Tokenizer:
    """The rules again, without BPE dropout: one text has one reading."""
    if getattr(rules.model, "dropout", None) is not None:
        rules.model.dropout = None
    return rules
