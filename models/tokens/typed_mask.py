"""A mask token that a person types into a text for a model that fills masked words.

Special tokens in a text are plain text everywhere else: nobody can type a [CLS] or an end of text.
"""

from __future__ import annotations

import json
from functools import cached_property

import tokenizers

from models.contract.results import mask_pattern
from models.tokens import encoding

Split = tuple[list[int], list[bool], list[tuple[int, int]]]


class TypedMask:
    """Texts with typed mask tokens, split by the rules of a tokenizer whose mask token is called
    `name`."""

    def __init__(self, rules: tokenizers.Tokenizer, name: str) -> None:
        self.name, self._tokenizer = name, rules
        self.pattern = mask_pattern(name)

    def split(self, text: str, framed: bool) -> Split:
        """Ids, which of them are special, and spans in the text, (start, end); `framed`: with the
        special tokens that the tokenizer puts around a text."""
        rules, prefix = self._rules
        pieces, origin = [prefix], [0] * len(prefix)
        end = 0
        for match in self.pattern.finditer(text):
            pieces += [text[end : match.start()], self.name]
            origin += [*range(end, match.start()), *[match.start()] * len(self.name)]
            end = match.end()
        pieces.append(text[end:])
        origin += range(end, len(text) + 1)
        encoded = encoding.encode(rules, "".join(pieces), framed)
        spans = [(origin[start], origin[stop]) for start, stop in encoded.offsets]
        return encoded.ids, [bool(mark) for mark in encoded.special_tokens_mask], spans

    @cached_property
    def _rules(self) -> tuple[tokenizers.Tokenizer, str]:
        """The rules with the mask as a token that a text may hold, all other special tokens plain
        text; and what to put before a text in place of the rules, which would put a space before
        what follows a mask too."""
        config = json.loads(self._tokenizer.to_str())
        pre_tokenizer, prefix = config.get("pre_tokenizer") or {}, ""
        is_byte_level = pre_tokenizer.get("type") == "ByteLevel"
        if is_byte_level and pre_tokenizer.get("add_prefix_space"):
            pre_tokenizer["add_prefix_space"], prefix = False, " "
        for token in config["added_tokens"]:
            if token["content"] == self.name:
                token["special"] = False
                token["lstrip"] = token["lstrip"] or is_byte_level  # as in training: " word"
        rules = encoding.from_text(json.dumps(config))
        rules.encode_special_tokens = True
        return rules, prefix
