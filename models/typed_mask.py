"""A mask token that a person types into a text for a model that fills masked words.

Special tokens in a text are plain text everywhere else: nobody can type a [CLS] or an end of text.
"""

from __future__ import annotations

import json
from functools import cached_property

import tokenizers

from models import encoding
from models.results import spelling

Split = tuple[list[int], list[bool], list[tuple[int, int]]]


class TypedMask:
    """Texts with typed mask tokens, split by the rules of a tokenizer whose mask token is called
    `name`."""

    def __init__(self, rules: tokenizers.Tokenizer, name: str) -> None:
        self.name, self._given = name, rules
        self.pattern = spelling(name)

    def split(self, text: str, framed: bool) -> Split:
        """Ids, which of them are special, and spans in the text, (start, end); `framed`: with the
        special tokens that the tokenizer puts around a text."""
        rules, prefix = self._rules
        given, origin = [prefix], [0] * len(prefix)
        end = 0
        for found in self.pattern.finditer(text):
            given += [text[end : found.start()], self.name]
            origin += [*range(end, found.start()), *[found.start()] * len(self.name)]
            end = found.end()
        given.append(text[end:])
        origin += range(end, len(text) + 1)
        read = encoding.encode(rules, "".join(given), framed)
        spans = [(origin[start], origin[stop]) for start, stop in read.offsets]
        return read.ids, [bool(mark) for mark in read.special_tokens_mask], spans

    @cached_property
    def _rules(self) -> tuple[tokenizers.Tokenizer, str]:
        """The rules with the mask as a token that a text may hold, all other special tokens plain
        text; and what to put before a text in place of the rules, which would put a space before
        what follows a mask too."""
        told = json.loads(self._given.to_str())
        before, prefix = told.get("pre_tokenizer") or {}, ""
        bytes_in_letters = before.get("type") == "ByteLevel"
        if bytes_in_letters and before.get("add_prefix_space"):
            before["add_prefix_space"], prefix = False, " "
        for token in told["added_tokens"]:
            if token["content"] == self.name:
                token["special"] = False
                token["lstrip"] = token["lstrip"] or bytes_in_letters  # as in training: " word"
        rules = encoding.from_text(json.dumps(told))
        rules.encode_special_tokens = True
        return rules, prefix
