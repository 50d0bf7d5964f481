"""The tokenizer of a Hugging Face model, answering as `models/tokens/tokenizer.py` does: tokens as
a person reads them, and where they stand in the text.

A fast tokenizer (its rules are in `tokenizer.json`) says where in the text each token stands. A
slow one, in Python code, does not: its spans are -1 where its tokens' bytes are not the text's.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING

from models.contract.results import mask_pattern
from models.contract.tokenizer_output import segments
from models.tokens import encoding
from models.tokens.token_labels import NO_SPAN, TokenLabels, VocabularySpelling
from models.tokens.tokenizer import LabelledTokens, Tokens, id_set
from models.tokens.typed_mask import TypedMask

if TYPE_CHECKING:
    import tokenizers
    from transformers import PreTrainedTokenizerBase


class HubTokenizer(LabelledTokens):
    """`own` is the transformers tokenizer. `mask` and `eos` are the ids of those special tokens,
    None where the model has none; `pad` that of padding, None where it is another token too.
    `eos_ids`: each of them ends a text that the model writes. `separator`: the token after which
    the second of a pair of texts begins, in a segment of its own; None where it frames pairs
    otherwise, or tells no segments apart."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, eos_ids: Iterable[int] = ()) -> None:
        self.own = tokenizer
        self.mask: int | None = tokenizer.mask_token_id
        self.eos: int | None = tokenizer.eos_token_id
        others = {each for key, each in tokenizer.special_tokens_map.items() if key != "pad_token"}
        self.pad = None if tokenizer.pad_token in others else tokenizer.pad_token_id
        self.eos_ids = frozenset(eos_ids) | id_set(self.eos)
        self.separator = _separator(tokenizer)
        added = tokenizer.added_tokens_decoder.items()
        self.special = self.eos_ids.union(tokenizer.all_special_ids)
        self.special |= {token for token, each in added if each.special}
        # A copy of the rules that nothing else sets: transformers writes on its own at every call,
        # which two threads cannot do at once.
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self._rules = None if backend is None else encoding.from_text(backend.to_str())
        self._slow = Lock()
        if self._rules is not None:
            self._rules.no_truncation()
            self._rules.no_padding()
            # a special token that a user types is text, but for masks
            self._rules.encode_special_tokens = True
        self._typed = (
            None
            if self._rules is None or self.mask is None
            else TypedMask(self._rules, str(tokenizer.mask_token))
        )
        self._labels = TokenLabels(
            self._piece,
            VocabularySpelling.guessed(tokenizer.get_vocab(), tokenizer.added_tokens_decoder)
            if self._rules is None
            else VocabularySpelling.of(self._rules),
            self.special,
            tokenizer.unk_token_id,
        )

    @property
    def rules(self) -> tokenizers.Tokenizer | None:
        """The rules in tokenizer.json; None for a tokenizer in Python code."""
        return self._rules

    def __len__(self) -> int:
        return len(self.own)

    def tokens(self, text: str, limit: int, masks: bool = False) -> tuple[Tokens, int]:
        """The text as the model reads it, special tokens and all, at most `limit` tokens, and how
        many of the text's own were left out at its end. `masks`: a typed mask token is one.

        A text of no tokens becomes one special token, since a model reads at least one. Raises
        ValueError where the model has none for that.
        """
        ids, special, spans = self._split(text, masks)
        text_positions = [at for at, mark in enumerate(special) if not mark]
        dropped = max(0, len(ids) - limit)
        dropped_positions = (
            set(text_positions[len(text_positions) - dropped :]) if dropped else set()
        )
        positions = [at for at in range(len(ids)) if at not in dropped_positions]
        ids, special = [ids[at] for at in positions], [special[at] for at in positions]
        spans = [spans[at] for at in positions]
        if not ids:
            ids, special, spans = [self._some_special()], [True], [NO_SPAN]
        labels, spans = self._labels.in_text(text, ids, spans, special)
        return Tokens(tuple(ids), tuple(labels), tuple(spans), tuple(special)), dropped

    def text(self, ids: Iterable[int]) -> str:
        """The text that token ids spell, without special tokens and ids that no text has."""
        ids = [int(token) for token in ids if token not in self.special]
        if self._rules is not None:
            return encoding.decode(self._rules, ids).strip()
        ids = [token for token in ids if token < len(self)]
        with self._slow, encoding.guarded():
            return str(self.own.decode(ids, skip_special_tokens=False)).strip()

    def _split(self, text: str, masks: bool) -> tuple[list[int], list[bool], list[tuple[int, int]]]:
        if masks and self._typed is not None and self._typed.pattern.search(text):
            return self._typed.split(text, framed=True)
        if self._rules is not None:
            encoded = encoding.encode(self._rules, text)
            return (
                encoded.ids,
                [bool(mark) for mark in encoded.special_tokens_mask],
                encoded.offsets,
            )
        with self._slow, encoding.guarded():
            ids = self._slowly(text, masks)
            special = self.own.get_special_tokens_mask(ids, already_has_special_tokens=True)
        marks = [bool(mark) for mark in special]
        return ids, marks, self._labels.places(text, ids, marks)

    def _slowly(self, text: str, masks: bool) -> list[int]:
        """A slow tokenizer's ids, the text between typed masks read by itself."""
        if not masks or self.mask is None:
            return list(self.own(text, split_special_tokens=True).input_ids)
        parts = mask_pattern(str(self.own.mask_token)).split(text)
        ids: list[int] = []
        for at, part in enumerate(parts):
            ids += [self.mask] * (at > 0)
            ids += self.own(part, add_special_tokens=False, split_special_tokens=True).input_ids
        return list(self.own.build_inputs_with_special_tokens(ids))

    def _some_special(self) -> int:
        for token in (
            self.own.bos_token_id,
            self.own.eos_token_id,
            self.own.cls_token_id,
            self.own.pad_token_id,
            self.own.unk_token_id,
        ):
            if token is not None:
                return token
        raise ValueError("this model reads nothing from an empty text; write a word")

    def _piece(self, token: int) -> str | None:
        if self._rules is not None:
            return self._rules.id_to_token(token)
        return str(self.own.convert_ids_to_tokens(token)) if token < len(self) else None


def _separator(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """As `HubTokenizer.separator`, by a pair that it frames."""
    separator = tokenizer.sep_token_id
    if separator is None or "token_type_ids" not in tokenizer.model_input_names:
        return None
    pair = tokenizer("a", "b", return_token_type_ids=True)
    ids, types = pair["input_ids"], pair.get("token_type_ids")
    return separator if any(types or ()) and types == segments(ids, separator) else None
