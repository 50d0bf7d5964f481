"""Text to token ids and back, and what each token is called on screen.

Byte-level BPE (Hugging Face `tokenizers`): every text tokenises and nothing is unknown, because the
256 bytes are in the vocabulary. A token may then be a piece of a character; `pieces` says which, so
that a split emoji is shown as what it is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from models.encoding import decode, encode, encode_all, from_file
from models.recording import CONTINUES
from models.typed_mask import TypedMask

PAD, CLS, SEP, MASK, BOS, EOS = "[PAD]", "[CLS]", "[SEP]", "[MASK]", "[BOS]", "[EOS]"
# The special tokens of a model that fills masked words, and of one that writes.
MASKED_LM_SPECIALS, CAUSAL_LM_SPECIALS = (PAD, CLS, SEP, MASK), (PAD, BOS, EOS)

# An apostrophe inside a word that is no English short form's (n't, 's, 're ...): "l'animal",
# "o'clock".
ELISION = r"(?<=\p{L})'(?!(?:s|t|re|ve|m|ll|d)(?!\p{L}))(?=\p{L})"


NO_SPAN = (-1, -1)  # of a token that stands nowhere in the text


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


class Tokenizer:
    """A byte-level BPE. `pad`, `cls`, `sep`, `mask`, `bos`, `eos` are the ids of the special tokens
    it has, None for those it has not.

    `names`: what these six are called, in this order. `more`: other tokens that are no text.
    """

    def __init__(
        self,
        bpe: tokenizers.Tokenizer,
        names: tuple[str, ...] = (PAD, CLS, SEP, MASK, BOS, EOS),
        extra_specials: Iterable[str] = (),
    ) -> None:
        bpe.encode_special_tokens = True  # a special token that a user types is text, but for masks
        self.bpe = bpe
        self._decode_one = lru_cache(maxsize=None)(lambda token: decode(bpe, [token]))
        self.pad, self.cls, self.sep, self.mask, self.bos, self.eos = map(bpe.token_to_id, names)
        self._typed = (
            None if self.mask is None else TypedMask(bpe, bpe.id_to_token(self.mask) or "")
        )
        self.special = frozenset(
            token for token in map(bpe.token_to_id, (*names, *extra_specials)) if token is not None
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

    # How a piece that begins a word is spelled.
    starts = "\u0120"

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

    def written(
        self, text: str, ids: list[int], offsets: list[tuple[int, int]]
    ) -> tuple[list[str], list[tuple[int, int]]]:
        """What tokens that stand at these places of a text are called there, and where each shows
        something."""
        blank = [not self._decode_one(token).strip() for token in ids]
        spans = [_trim(text, *span, empty) for span, empty in zip(offsets, blank)]
        return self._labels(text, ids, spans), spans

    def _split(self, text: str, typed_masks: bool) -> tuple[list[int], list[tuple[int, int]]]:
        if typed_masks and self._typed is not None and self._typed.pattern.search(text):
            ids, _, spans = self._typed.split(text, framed=False)
            return ids, spans
        encoding = encode(self.bpe, text, special=False)
        return encoding.ids, encoding.offsets

    @property
    def mask_name(self) -> str:
        """The name of the mask token, "" where there is none."""
        return "" if self.mask is None else self.label(self.mask)

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

    def label(self, token: int) -> str:
        """One token as a person reads it away from any text: "‧ices" goes on inside a word, a part
        of a character is shown as its bytes."""
        # A model may have room for a few tokens that no text has.
        if token in self.special or token >= len(self):
            return self.bpe.id_to_token(token) or f"unused {token}"
        raw = self._decode_one(token)
        if "\ufffd" in raw:
            return " ".join(f"‹{byte:02X}›" for byte in self._bytes(token))
        entry = self.bpe.id_to_token(token) or ""
        piece = readable(raw.strip() or raw)
        starts_word = entry.startswith(self.starts) or not raw[:1].isalnum()
        return piece if starts_word else CONTINUES + piece

    def _bytes(self, token: int) -> list[int]:
        return [_BYTE_OF_LETTER[letter] for letter in self.bpe.id_to_token(token) or ""]

    def _labels(self, text: str, ids: list[int], spans: list[tuple[int, int]]) -> list[str]:
        is_complete = ["\ufffd" not in self._decode_one(token) for token in ids]
        labels = []
        for index, (start, end) in enumerate(spans):
            if ids[index] == self.mask:
                labels.append(self.label(ids[index]))
                continue
            piece = text[start:end]
            label = readable(
                piece if piece.isascii() and piece else unicodedata.normalize("NFC", piece) or " "
            )
            if is_complete[index] or "\ufffd" in text[start:end]:
                continues = (
                    start > 0
                    and text[start - 1 : start].isalnum()
                    and text[start : start + 1].isalnum()
                )
                labels.append(CONTINUES + label if continues else label)
            else:
                part, parts = _place_in_run(index, spans, is_complete)
                labels.append(f"{label} {part}/{parts}")
        return labels


class WordPiece(Tokenizer):
    """BERT's tokenizer (Devlin et al. 2019): pieces inside a word begin with ##, and a word that it
    cannot spell is one unknown token."""

    def __init__(self, pieces: tokenizers.Tokenizer, names: tuple[str, ...], unknown: str) -> None:
        super().__init__(pieces, names)
        self.unknown = pieces.token_to_id(unknown)

    def text(self, ids: Iterable[int]) -> str:
        return self._decoded(ids)

    def label(self, token: int) -> str:
        """One token as a person reads it away from any text."""
        entry = self.bpe.id_to_token(token) or f"unused {token}"
        return (
            CONTINUES + readable(entry[2:])
            if entry.startswith("##") and len(entry) > 2
            else entry
            if token in self.special
            else readable(entry)
        )

    def _labels(self, text: str, ids: list[int], spans: list[tuple[int, int]]) -> list[str]:
        labels = super()._labels(text, ids, spans)
        return [
            f"{label} = {self.bpe.id_to_token(token)}" if token == self.unknown else label
            for token, label in zip(ids, labels)
        ]


class SentencePiece(Tokenizer):
    """A BPE as Llama's and Gemma's first ones (Kudo, Richardson 2018): a space is spelled "▁", a
    character that the vocabulary lacks is its bytes, "<0xE2>" each."""

    starts = "\u2581"

    def __init__(
        self, bpe: tokenizers.Tokenizer, names: tuple[str, ...], extra_specials: Iterable[str] = ()
    ) -> None:
        super().__init__(bpe, names, extra_specials)
        self._decode_one = lru_cache(maxsize=None)(self._spelled)

    def _spelled(self, token: int) -> str:
        entry = self.bpe.id_to_token(token) or ""
        if entry.startswith("<0x") or token in self.special:
            return decode(self.bpe, [token])
        return entry.replace(self.starts, " ")

    def _bytes(self, token: int) -> list[int]:
        entry = self.bpe.id_to_token(token) or ""
        return [int(entry[3:-1], 16)]


# How byte-level BPE spells the space, and every other byte (Radford et al., 2019): printable ones
# as themselves, the rest from U+0100 on.
SPACE = Tokenizer.starts


def _bytes_by_letter() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + index): byte for index, byte in enumerate(unprintable)
    }


_BYTE_OF_LETTER = _bytes_by_letter()

# They choose how the character before them is drawn, and alone they are nothing to see.
_SELECTORS = "".join(map(chr, range(0xFE00, 0xFE10)))
_VISIBLE_FORMS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "U+00A0"}


def readable(text: str) -> str:
    """The text with every character that would be invisible or would disturb its neighbours spelled
    out."""
    if text.isascii() and text.isalnum():
        return text
    if text and not text.strip(_SELECTORS):
        return "".join(f"U+{ord(letter):04X}" for letter in text)
    characters = []
    for letter in text:
        invisible = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
        characters.append(
            _VISIBLE_FORMS.get(letter) or (f"U+{ord(letter):04X}" if invisible else letter)
        )
    return "".join(characters) or "∅"


def _trim(text: str, start: int, end: int, blank: bool) -> tuple[int, int]:
    """The span of what the token shows: without the spaces before its first visible character, with
    the accents after its last.

    A `blank` token (a space that BPE set apart, or put before the text) keeps only the white space
    it covers.
    """
    piece = text[start:end]
    if blank:
        return start, start + len(piece) - len(piece.lstrip())
    while end < len(text) and unicodedata.combining(text[end]):
        end += 1
    return (start + len(piece) - len(piece.lstrip()), end) if piece.strip() else (start, end)


def _place_in_run(
    index: int, spans: list[tuple[int, int]], is_complete: list[bool]
) -> tuple[int, int]:
    """A token's place, from 1, and the number of pieces of its split character. Several split
    characters that share pieces count as one."""
    first = last = index
    while first > 0 and not is_complete[first - 1] and spans[first - 1][1] > spans[first][0]:
        first -= 1
    while (
        last + 1 < len(spans) and not is_complete[last + 1] and spans[last + 1][0] < spans[last][1]
    ):
        last += 1
    return index - first + 1, last - first + 1
