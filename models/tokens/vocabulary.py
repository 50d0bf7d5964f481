"""A vocabulary that is a list of words: what a model of one's own without a tokenizer reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from models.tokens.token_labels import NO_SPAN, readable
from models.tokens.tokenizer import Tokens

WORD = re.compile(r"\S+")


class Vocabulary:
    """Words by their ids, answering as `models.tokens.tokenizer.Tokenizer` does. A text is split at
    white space and each word is a token; no special token stands around it. words: those of the ids
    from 0 on, or their number, where a token is called by its id."""

    mask = eos = bos = pad = None
    mask_name = ""
    eos_ids: frozenset[int] = frozenset()
    special: frozenset[int] = frozenset()
    rules = own = None

    def __init__(self, words: Sequence[str] | int) -> None:
        names = map(str, range(words)) if isinstance(words, int) else words
        self.words = tuple(names)
        self._ids = {word: at for at, word in reversed(list(enumerate(self.words)))}

    def __len__(self) -> int:
        return len(self.words)

    def tokens(self, text: str, limit: int, *ends: object, **masks: object) -> tuple[Tokens, int]:
        """The text's tokens, at most `limit`, and how many were dropped. Raises ValueError for a
        word that is not in the list, and for no word."""
        words = list(WORD.finditer(text))
        if not words:
            raise ValueError("this model reads nothing where there is no word")
        if unknown := [each[0] for each in words if each[0] not in self._ids]:
            some = ", ".join(map(repr, self.words[:5]))
            raise ValueError(
                f"{unknown[0]!r} is no word of this vocabulary of {len(self)}: {some} …"
            )
        read = words[:limit]
        return Tokens(
            tuple(self._ids[each[0]] for each in read),
            tuple(readable(each[0]) for each in read),
            tuple(each.span() for each in read),
            (False,) * len(read),
        ), len(words) - len(read)

    def tokens_of(self, ids: Sequence[int], text: str | None = None) -> Tokens:
        """Tokens that no text was split into."""
        n = len(ids)
        return Tokens(tuple(ids), tuple(map(self.label, ids)), (NO_SPAN,) * n, (False,) * n)

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The token ids of many texts."""
        return [list(self.tokens(text, len(text) + 1)[0].ids) for text in texts]

    def text(self, ids: Iterable[int]) -> str:
        """The words of ids with spaces between them."""
        return " ".join(self.words[int(token)] for token in ids)

    def label(self, token: int) -> str:
        """A word as a person reads it."""
        return readable(self.words[token]) if token < len(self) else f"unused {token}"
