"""Labels of tokens, and the characters of a text that each of them covers.

In a text a token is called by the characters that it covers. Where it shares a character with
another token it is called by its own entry of the vocabulary; the bytes of one character are called
"é 1/2" and "é 2/2". Spans are disjoint, but for the bytes of one character, which all cover it: of
two tokens of one character the first covers it and the second nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import tokenizers

from models.contract.recording import CONTINUES

Span = tuple[int, int]
NO_SPAN = (-1, -1)  # of a special token, and of one whose place is not known
# How byte-level BPE spells the space, and every other byte (Radford et al., 2019): printable ones
# as themselves, the rest from U+0100 on.
BYTE_SPACE = "\u0120"
METASPACE = "\u2581"  # how SentencePiece spells a space (Kudo, Richardson 2018)
BYTE_ENTRY = re.compile(r"<0x([0-9A-Fa-f]{2})>")  # a byte of a character that SentencePiece lacks
BASE = "\u25cc"  # a mark that stands alone is written on a dotted circle (Unicode, 2.11)
# What `bytes.decode` makes of a byte that is part of no whole character.
STRAY_BYTES = re.compile("([\udc80-\udcff]+)")


@dataclass(frozen=True)
class VocabularySpelling:
    """Spelling of text by the entries of a vocabulary. in_bytes: each letter is a byte. space: what
    stands for a space. inside: what stands before a piece inside a word. endings: what may stand
    after a piece. literal: ids of added tokens, which are spelled as they are. as_numbers: each
    entry is the character whose number is a byte (ByT5)."""

    in_bytes: bool = False
    space: str = ""
    inside: str = ""
    endings: tuple[str, ...] = ()
    literal: frozenset[int] = frozenset()
    as_numbers: bool = False

    @classmethod
    def of(cls, rules: tokenizers.Tokenizer) -> VocabularySpelling:
        """The spelling of a tokenizer's own entries, as its rules read and write them."""
        steps = (rules.normalizer, rules.pre_tokenizer, rules.decoder)
        written = "".join(step.__getstate__().decode() for step in steps if step is not None)
        in_bytes = '"ByteLevel"' in written
        model = rules.model
        ending = getattr(model, "end_of_word_suffix", None)
        return cls(
            in_bytes,
            METASPACE if METASPACE in written and not in_bytes else "",
            getattr(model, "continuing_subword_prefix", None) or "",
            (ending,) if ending else (),
            frozenset(rules.get_added_tokens_decoder()),
        )

    @classmethod
    def guessed(cls, vocabulary: Mapping[str, int], added: Iterable[int]) -> VocabularySpelling:
        """The spelling of a vocabulary without rules, by the entries that it has."""
        literal = frozenset(added)
        in_bytes = BYTE_SPACE in vocabulary
        space = METASPACE if METASPACE in vocabulary else ""
        letters = {entry for entry, token in vocabulary.items() if token not in literal}
        as_numbers = letters == set(map(chr, range(256)))
        inside = "" if in_bytes or space else "##"
        return cls(in_bytes, space, inside, ("</w>", "@@"), literal, as_numbers)

    def bytes_of(self, entry: str, token: int) -> bytes:
        """The bytes of the text that an entry spells, with the space before it."""
        if not self.in_bytes and (match := BYTE_ENTRY.fullmatch(entry)):
            return bytes([int(match[1], 16)])
        if token in self.literal:
            return entry.encode("utf-8", "surrogatepass")
        if self.as_numbers:
            return entry.encode("latin-1", "ignore")
        if self.in_bytes and all(letter in BYTE_OF_LETTER for letter in entry):
            return bytes(BYTE_OF_LETTER[letter] for letter in entry)
        if self.goes_on(entry):
            entry = entry.removeprefix(self.inside)
        for ending in self.endings:
            entry = entry.removesuffix(ending)
        return entry.replace(self.space or METASPACE, " ").encode("utf-8", "surrogatepass")

    def goes_on(self, entry: str) -> bool:
        """True for an entry that is marked as a piece inside a word."""
        return bool(self.inside) and entry.startswith(self.inside) and entry != self.inside


class TokenLabels:
    """The labels of a vocabulary's tokens. entry: what a token's entry is, None beyond the
    vocabulary. special: ids that are no text, of which those of added tokens keep their names.
    unknown: the id that stands for any word that the vocabulary lacks."""

    def __init__(
        self,
        entry: Callable[[int], str | None],
        spelling: VocabularySpelling,
        special: frozenset[int],
        unknown: int | None = None,
    ) -> None:
        self._entry, self._spelling = entry, spelling
        self._spelled = lru_cache(maxsize=None)(self._spell)
        self._marks, self._unknown = special & spelling.literal, unknown

    def label(self, token: int) -> str:
        """One token as a person reads it away from any text: "‧ing" goes on inside a word, a part
        of a character is its bytes."""
        entry = self._entry(token)
        if entry is None:  # a model may have room for a few tokens that no text has
            return f"unused {token}"
        if token in self._marks or token == self._unknown:
            return readable(entry)
        spelled = self._spelled(token)
        goes_on = self._spelling.goes_on(entry) or (
            (self._spelling.in_bytes or bool(self._spelling.space)) and is_in_word(spelled[:1])
        )
        return CONTINUES * goes_on + _as_label(spelled)

    def in_text(
        self,
        text: str,
        ids: Sequence[int],
        offsets: Sequence[Span],
        special: Sequence[bool] | None = None,
    ) -> tuple[list[str], list[Span]]:
        """Labels and spans of the tokens of a text, from the places that the tokenizer's rules give
        them in it."""
        labels, spans = [""] * len(ids), [NO_SPAN] * len(ids)
        words = [at for at in range(len(ids)) if not (special and special[at])]
        words = [at for at in words if offsets[at][0] >= 0]
        spelled = {at: self._spelled(ids[at]) for at in words}
        places = {at: self._place(text, ids[at], spelled[at], offsets[at]) for at in words}
        units = _units(words, spelled, places)
        reached = 0
        for (members, start, end), (_, next_start, _) in zip(units, [*units[1:], NO_UNIT]):
            if next_start < 0:
                next_start = len(text)
            shared = start < reached or next_start < end
            while not shared and end < next_start and unicodedata.combining(text[end]):
                end += 1
            span = max(start, reached), max(end, reached)
            continues = start < reached or self._continues(text, ids[members[0]], start)
            reached = span[1]
            for at in members:
                spans[at] = span
                labels[at] = self._label_at(
                    text[span[0] : span[1]] * (not shared), ids[at], spelled[at], continues
                )
            if len(members) > 1 and not shared:
                word = _seen(text[span[0] : span[1]])
                word = BASE * (unicodedata.category(word[0])[0] == "M") + word
                for part, at in enumerate(members, start=1):
                    labels[at] = f"{word} {part}/{len(members)}"
        return [label or self.label(token) for label, token in zip(labels, ids)], spans

    def places(self, text: str, ids: Sequence[int], special: Sequence[bool]) -> list[Span]:
        """The places of tokens in a text where no rules give them: by their letters where these
        are the text's but for spaces before a token, else none."""
        whole, ends = text.encode(), [0]
        for token, mark in zip(ids, special):
            piece = b"" if mark else self._spelled(token).encode("utf-8", "surrogateescape")
            if not whole.startswith(piece, ends[-1]):  # decoding has left out its space
                piece = piece.removeprefix(b" ")
            if not whole.startswith(piece, ends[-1]):
                return [NO_SPAN] * len(ids)
            ends.append(ends[-1] + len(piece))
        if ends[-1] != len(whole):
            return [NO_SPAN] * len(ids)
        at_byte = [at for at, letter in enumerate(text) for _ in letter.encode()]
        return [
            (at_byte[start], at_byte[end - 1] + 1) if start < end else NO_SPAN
            for start, end in pairwise(ends)
        ]

    def _label_at(self, covered: str, token: int, spelled: str, continues: bool) -> str:
        """The label of a token by the characters that it alone covers, by its entry where there are
        none. continues: it stands after a letter, or within one."""
        if token == self._unknown and covered:
            return f"{_seen(covered)} = {self.label(token)}"
        if token in self._marks or token == self._unknown:
            return self.label(token)
        by_entry = not covered or STRAY_BYTES.search(spelled)
        label, letter = (
            (_as_label(spelled), spelled[:1]) if by_entry else (_seen(covered), covered[0])
        )
        return CONTINUES * (continues and is_in_word(letter)) + label

    def _continues(self, text: str, token: int, start: int) -> bool:
        """True for a token that goes on inside a word: by its entry, where entries say it, else by
        the character before it."""
        if self._spelling.inside and token != self._unknown:
            return self._spelling.goes_on(self._entry(token) or "")
        return start > 0 and is_in_word(text[start - 1])

    def _spell(self, token: int) -> str:
        """The text that a token spells, stray bytes as `STRAY_BYTES` has them."""
        spelled = self._spelling.bytes_of(self._entry(token) or "", token)
        return spelled.decode("utf-8", "surrogateescape")

    def _place(self, text: str, token: int, spelled: str, offset: Span) -> Span:
        """The characters that a token shows: without the spaces before them. One that spells
        nothing but spaces covers nothing else: it may stand where the text has none."""
        start, end = offset
        piece = text[start:end]
        visible = start + len(piece) - len(piece.lstrip())
        if not spelled.strip() and token not in self._marks and token != self._unknown:
            return start, visible
        return (visible, end) if piece.strip() else offset


NO_UNIT: tuple[list[int], int, int] = ([], -1, -1)


def _units(
    words: Sequence[int], spelled: dict[int, str], places: dict[int, Span]
) -> list[tuple[list[int], int, int]]:
    """The tokens of a text one by one, those that are the bytes of one character together, each
    with what it covers."""
    units: list[tuple[list[int], int, int]] = []
    at = 0
    while at < len(words):
        last = at
        while (
            last + 1 < len(words)
            and STRAY_BYTES.search(spelled[words[last]])
            and STRAY_BYTES.search(spelled[words[last + 1]])
            and places[words[last + 1]][0] < places[words[last]][1]
        ):
            last += 1
        run = list(words[at : last + 1])
        joined = "".join(spelled[each] for each in run).encode("utf-8", "surrogateescape")
        if len(run) > 1 and len(joined.decode("utf-8", "surrogateescape").strip(" ")) != 1:
            run = run[:1]
        start, end = places[run[0]]
        units.append((run, start, max(end, places[run[-1]][1])))
        at += len(run)
    return units


def is_in_word(letter: str) -> bool:
    """True for a letter, a digit, or a mark on one; False for "", spaces and signs."""
    return bool(letter) and (letter.isalnum() or unicodedata.category(letter)[0] == "M")


def _seen(piece: str) -> str:
    """A piece of a text as a label."""
    return readable(piece if piece.isascii() else unicodedata.normalize("NFC", piece))


def _as_label(spelled: str) -> str:
    """Spelling of an entry as a label, stray bytes as "‹C3›"."""
    parts = STRAY_BYTES.split(spelled.strip() or spelled)
    return "".join(
        " ".join(f"‹{ord(byte) - 0xDC00:02X}›" for byte in part)
        if at % 2
        else readable(part) * bool(part)
        for at, part in enumerate(parts)
    ) or readable("")


def _bytes_by_letter() -> dict[str, int]:
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {
        chr(256 + index): byte for index, byte in enumerate(unprintable)
    }


BYTE_OF_LETTER = _bytes_by_letter()

# They choose how the character before them is drawn, and alone they are nothing to see.
_SELECTORS = "".join(map(chr, range(0xFE00, 0xFE10)))
JOINER = "\u200d"
_VISIBLE_FORMS = {" ": "␣", "\n": "⏎", "\r": "␍", "\t": "⇥", "\u00a0": "U+00A0"}


def readable(text: str) -> str:
    """The text with every character that would be invisible or would disturb its neighbours spelled
    out."""
    if text.isascii() and text.isalnum():
        return text
    if text and not text.strip(_SELECTORS):
        return "".join(f"U+{ord(letter):04X}" for letter in text)
    characters: list[str] = []
    for letter, after in zip(text, f"{text[1:]} "):
        if letter == JOINER and characters and unicodedata.category(after) == "So":
            characters.append(letter)  # two emoji that are seen as one
            continue
        invisible = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
        characters.append(
            _VISIBLE_FORMS.get(letter) or (f"U+{ord(letter):04X}" if invisible else letter)
        )
    return "".join(characters) or "∅"
