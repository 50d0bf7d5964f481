"""Text to token ids and back, by the rules of a tokenizer.json.

Our own models have byte-level BPE (Hugging Face `tokenizers`): every text tokenises and nothing is
unknown, because the 256 bytes are in the vocabulary. `token_labels` says what tokens are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from models.tokens.encoding import decode, encode, encode_all, from_file
from models.tokens.token_labels import NO_SPAN, TokenLabels, VocabularySpelling
from models.tokens.typed_mask import TypedMask

PAD, CLS, SEP, MASK, BOS, EOS = "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]"
# The special tokens of a model that fills masked words, and of one that writes.
MASKED_LM_SPECIALS, CAUSAL_LM_SPECIALS = (PAD, CLS, SEP, MASK), (PAD, BOS, EOS)

# An apostrophe inside a word that is no English short form's (n't, 's, 're ...): "l'animal",
# "o'clock".
ELISION = r"(?<=\p{L})'(?!(?:s|t|re|ve|m|ll|d)(?!\p{L}))(?=\p{L})"


@dataclass(frozen=True)
class Tokens:
    """A tokenised text. All are aligned; `spans` are (start, end) in characters of the text,
    NO_SPAN for a special token. roles: of a chat, whose message each token is in, "" for the
    template's own; () for a text that is no chat."""

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    special: tuple[bool, ...]
    roles: tuple[str, ...] = ()

    def first(self, n: int) -> Tokens:
        """The first n of the tokens."""
        return Tokens(
            self.ids[:n], self.labels[:n], self.spans[:n], self.special[:n], self.roles[:n]
        )


class LabelledTokens:
    """Base of tokenizers whose tokens have labels. mask: the id of the mask token, None for none.
    special: the ids of tokens that are no text."""

    mask: int | None
    special: frozenset[int]
    _labels: TokenLabels

    @property
    def mask_name(self) -> str:
        """The name of the mask token, "" where there is none."""
        return "" if self.mask is None else self.label(self.mask)

    def written(
        self, text: str, ids: list[int], offsets: list[tuple[int, int]]
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """Labels of tokens that stand at these places of a text, and the place where each shows
        something."""
        return self._labels.in_text(text, ids, offsets)

    def tokens_of(self, ids: Sequence[int], text: str | None = None) -> Tokens:
        """Tokens that no text was split into, such as a model's own answer: each labelled by
        itself, none with a place in a text. text: what they spell, in which they have the places
        and the labels of their letters, where these are the text's."""
        special = tuple(token in self.special for token in ids)
        if text is None:
            labels, spans = [self.label(token) for token in ids], [NO_SPAN] * len(ids)
        else:
            places = self._labels.places(text, ids, special)
            labels, spans = self._labels.in_text(text, ids, places, special)
        return Tokens(tuple(ids), tuple(labels), tuple(spans), special)

    def label(self, token: int) -> str:
        """One token as a person reads it away from any text: "‧ices" goes on inside a word, a part
        of a character is shown as its bytes."""
        return self._labels.label(token)


class Tokenizer(LabelledTokens):
    """Rules of a tokenizer.json. `pad`, `cls`, `sep`, `mask`, `bos`, `eos` are the ids of the
    special tokens that it has, None for those it has not. `eos_ids`: each of them ends a text that
    the model writes. `special`: the ids of tokens that are no text.

    names: what the six are called, in this order. unknown: what the token of an unknown word is
    called, "" where there is none. eos_ids: ids beside `eos`.
    """

    def __init__(
        self,
        bpe: tokenizers.Tokenizer,
        names: tuple[str, ...] = (PAD, CLS, SEP, MASK, BOS, EOS),
        unknown: str = "",
        eos_ids: Iterable[int] = (),
    ) -> None:
        bpe.encode_special_tokens = True  # a special token that a user types is text, but for masks
        self.bpe = bpe
        self.pad, self.cls, self.sep, self.mask, self.bos, self.eos = map(bpe.token_to_id, names)
        self._typed = (
            None if self.mask is None else TypedMask(bpe, bpe.id_to_token(self.mask) or "")
        )
        self.eos_ids = frozenset(eos_ids) | id_set(self.eos)
        specials = (token for token, each in bpe.get_added_tokens_decoder().items() if each.special)
        self.special = id_set(*map(bpe.token_to_id, names), *specials) | self.eos_ids
        self._labels = TokenLabels(
            bpe.id_to_token, VocabularySpelling.of(bpe), self.special, bpe.token_to_id(unknown)
        )

    @classmethod
    def load(cls, file: Path) -> Tokenizer:
        return cls(from_file(file))

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        n_vocab: int,
        specials: tuple[str, ...] = MASKED_LM_SPECIALS,
        with_elisions: bool = False,
    ) -> Tokenizer:
        """A new tokenizer of `n_vocab` tokens from `texts`, the first of them the `specials`. A
        typographic apostrophe is read as a plain one.

        `elides`: for French among the texts. What follows an apostrophe is then spelled as after a
        space, so that "animal" is the same token in "l'animal" and in "un animal".
        """
        bpe = tokenizers.Tokenizer(models.BPE(unk_token=None))
        bpe.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace("’", "'")])
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        bpe.decoder = decoders.ByteLevel()
        if with_elisions:
            split_elisions = pre_tokenizers.Split(tokenizers.Regex(ELISION), "merged_with_previous")
            bpe.pre_tokenizer = pre_tokenizers.Sequence([split_elisions, bpe.pre_tokenizer])
            join_elisions = decoders.Replace(tokenizers.Regex(r"(?<=\p{L})' (?=\p{L})"), "'")
            bpe.decoder = decoders.Sequence([bpe.decoder, join_elisions])
        trainer = trainers.BpeTrainer(
            vocab_size=n_vocab,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            special_tokens=list(specials),
            show_progress=False,
        )
        bpe.train_from_iterator(texts, trainer)
        return cls(bpe)

    @property
    def rules(self) -> tokenizers.Tokenizer:
        """The rules, as of any tokenizer."""
        return self.bpe

    def __len__(self) -> int:
        return self.bpe.get_vocab_size()

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The bare token ids of many texts, without special tokens."""
        return encode_all(self.bpe, texts)

    def tokens(
        self,
        text: str,
        limit: int,
        before: tuple[str, ...] = (CLS,),
        after: tuple[str, ...] = (SEP,),
        typed_masks: bool = False,
    ) -> tuple[Tokens, int]:
        """The text between the special tokens `before` and `after`, at most `limit` tokens in all,
        and how many tokens were dropped at its end. `masks`: a typed mask token is one."""
        all_ids, offsets = self._split(text, typed_masks)
        max_ids = limit - len(before) - len(after)
        ids = all_ids[:max_ids]
        labels, spans = self.written(text, ids, offsets[:max_ids])
        tokens = Tokens(
            ids=(*map(self._id, before), *ids, *map(self._id, after)),
            labels=(*before, *labels, *after),
            spans=(*[NO_SPAN] * len(before), *spans, *[NO_SPAN] * len(after)),
            special=(*[True] * len(before), *[False] * len(ids), *[True] * len(after)),
        )
        return tokens, len(all_ids) - len(ids)

    def _split(self, text: str, typed_masks: bool) -> tuple[list[int], list[tuple[int, int]]]:
        if typed_masks and self._typed is not None and self._typed.pattern.search(text):
            ids, _, spans = self._typed.split(text, framed=False)
            return ids, spans
        encoding = encode(self.bpe, text, special=False)
        return encoding.ids, encoding.offsets

    @property
    def ends(self) -> tuple[int, int]:
        """The ids of [BOS] and [EOS], for a model that writes. Raises ValueError where one is
        missing."""
        if self.bos is None or self.eos is None:
            raise ValueError("this vocabulary has no token to begin or end a text with")
        return self.bos, self.eos

    @property
    def fills(self) -> tuple[int, int, int]:
        """The ids of [CLS], [SEP] and [MASK], for a model that fills words. Raises ValueError where
        one is missing."""
        if self.cls is None or self.sep is None or self.mask is None:
            raise ValueError("this vocabulary has no tokens to fill a masked word with")
        return self.cls, self.sep, self.mask

    @property
    def padding(self) -> int:
        """The id of [PAD]. Raises ValueError where there is none."""
        if self.pad is None:
            raise ValueError("this vocabulary has no token to fill short rows with")
        return self.pad

    def _id(self, name: str) -> int:
        token_id = self.bpe.token_to_id(name)
        if token_id is None:
            raise ValueError(f"the vocabulary has no token {name!r}")
        return token_id

    def text(self, ids: Iterable[int]) -> str:
        """The text that token ids spell, special tokens left out. A character of which bytes are
        missing becomes U+FFFD."""
        return self._decoded(ids).removeprefix(" ")

    def _decoded(self, ids: Iterable[int]) -> str:
        text_ids = [token for token in ids if token not in self.special]
        return decode(self.bpe, text_ids, special=False)


def id_set(*ids: int | None) -> frozenset[int]:
    """The ids among these, without those of tokens that are not there."""
    return frozenset(token for token in ids if token is not None)
