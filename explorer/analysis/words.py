"""Words from tokens, by a recording's spans and text alone, and a head's matrix between words.

A word is one of these:

    a run of letters, digits and their marks, with an apostrophe between two letters (don't, l'eau)
    and a point or comma between two digits (3.14);
    one Han character; a run of hiragana; a run of katakana: Chinese and Japanese put no spaces
    between words;
    one letter with its marks in Thai, Lao, Khmer and Burmese, which put none either;
    one emoji with its modifiers (skin, variation, joiner), one flag, any other sign by itself.

The tokens that contain parts of one word are that word, and a token with parts of several words
makes them one. A space that is a token of its own belongs to the next word, as the spaces within
tokens do. Special tokens, other white space, and tokens without a known place in the text are words
by themselves."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from weakref import WeakKeyDictionary

import numpy as np

from models.contract.cancellation import expect_wanted
from models.contract.edits import Edit, HideWord, describe
from models.contract.recording import CONTINUES, COVER, Recording, Stream
from models.contract.token_relations import CHUNK_SIZE
from models.network import buffer_pool

APOSTROPHES = "'\u2019"
SPACE = "␣"  # the label of a token that shows a space
JOINER = "\u200d"
# Scripts without spaces by the first word of their letters' names; of the first kind each character
# is a word, of the last each with its marks.
RUNS = ("HIRAGANA", "KATAKANA")
SINGLE = ("CJK", "THAI", "LAO", "KHMER", "MYANMAR")
Span = tuple[int, int]  # a token's start and end in the text
# The words of the streams that are in memory, and the text that they are of.
_grouped: WeakKeyDictionary[Stream, tuple[str, Groups]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Groups:
    """Neighbouring tokens taken together: `starts` has each group's first token, `labels` what the
    groups are called, `special` (group)."""

    n: int
    starts: tuple[int, ...]
    labels: tuple[str, ...]
    special: tuple[bool, ...]

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of tokens in each group, (group)."""
        return np.diff(self.starts, append=self.n)

    @property
    def of(self) -> np.ndarray:
        """The group of each token, (token)."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    def span(self, group: int) -> tuple[int, int]:
        """The first token of a group, and the number of its tokens."""
        return self.starts[group], int(self.sizes[group])


def token_groups(labels: tuple[str, ...], special: tuple[bool, ...]) -> Groups:
    """Every token a group by itself."""
    return Groups(len(labels), tuple(range(len(labels))), tuple(labels), tuple(map(bool, special)))


def words(stream: Stream, text: str) -> Groups:
    """The tokens of a stream over `text` as words, in the order in which the model reads them."""
    cached_text, grouped = _grouped.get(stream, (None, None))  # one recording asks several times
    if grouped is None or cached_text != text:
        special = tuple(stream.special.tolist())
        grouped = _words(stream.tokens, special, tuple(map(tuple, stream.spans.tolist())), text)
        _grouped[stream] = text, grouped
    return grouped


def _words(
    tokens: tuple[str, ...], special: tuple[bool, ...], spans: tuple[Span, ...], text: str
) -> Groups:
    n = len(tokens)
    word = word_numbers(text[: max((end for _, end in spans), default=0)])
    sequences = text, word, tokens, special, spans
    starts = [at for at in range(n) if at == 0 or not _continues_previous(*sequences, at)]
    ends = [*starts[1:], n]
    labels = tuple(
        _label(text, tokens[first:end], spans[first:end]) for first, end in zip(starts, ends)
    )
    return Groups(n, tuple(starts), labels, tuple(special[first] for first in starts))


def spaced(stream: Stream, text: str, of: Groups, ahead: int = 0) -> tuple[bool, ...]:
    """Mask of the words before which a space stands, of a stream over `text`, (group). ahead: how
    many tokens before its own first one a word of `of` begins."""
    ends = [-1, *np.maximum.accumulate(stream.spans[:, 1]).tolist()]
    begins = [*stream.spans[:, 0].tolist(), -1]
    starts = [start + ahead for start in of.starts]
    return tuple(begins[at] != ends[at] or text[begins[at] :][:1].isspace() for at in starts)


def hidden_word(
    recording: Recording, token: int, stream: str | None = None
) -> tuple[HideWord, ...]:
    """The edits that take the word out which a token of a stream, the first where None, is a part
    of: one for each of its tokens. Raises ValueError for a stream or token that is not there."""
    of, first = recording.stream(stream or recording.streams[0].name), recording.streams[0]
    if not -len(of.tokens) <= token < len(of.tokens):
        raise ValueError(f"stream {of.name} has tokens 0 to {len(of.tokens) - 1}, not {token}")
    grouped = words(of, recording.text if of is first else recording.target)
    places = np.flatnonzero(grouped.of == grouped.of[token]).tolist()
    return tuple(HideWord(at, None if of is first else of.name) for at in places)


def named_edits(recording: Recording, edits: Sequence[Edit]) -> list[tuple[str, tuple[Edit, ...]]]:
    """Edits with what they are called, first the words of the text that are taken out as a whole:
    ‘“cold” taken out’. recording: of the text, with or without the edits."""
    grouped, rest = words(recording.streams[0], recording.text), [*edits]
    named = list[tuple[str, tuple[Edit, ...]]]()
    for label, start, size in zip(grouped.labels, grouped.starts, grouped.sizes):
        out = tuple(map(HideWord, range(start, start + int(size))))
        if all(each in rest for each in out):
            rest = [each for each in rest if each not in out]
            named.append((f"“{label}” taken out", out))
    return named + [(str(each), (each,)) for each in rest]


def described(recording: Recording, edits: Sequence[Edit]) -> str:
    """Edits as a caption says them: the `named_edits`, heads side by side together; "" for none."""
    named = named_edits(recording, edits)
    out = [name for name, each in named if isinstance(each[0], HideWord)]
    rest = tuple(each[0] for _, each in named if not isinstance(each[0], HideWord))
    return ", ".join([*out, *filter(None, [describe(rest)])])


def produced_words(groups: Groups, after: str, after_special: bool) -> Groups:
    """The rows of an attention between two texts, each of which produces the next token, as the
    words they produce.

    Row i produces token i + 1 of `groups`; the last row produces `after`, which the text does not
    hold, and stays by itself."""
    following = [at for at, start in enumerate(groups.starts) if start > 0]
    starts = (*(groups.starts[at] - 1 for at in following), groups.n - 1)
    labels = (*(groups.labels[at] for at in following), after)
    return Groups(
        groups.n, starts, labels, (*(groups.special[at] for at in following), after_special)
    )


def merge_weights(matrix: np.ndarray, rows: Groups, keys: Groups) -> np.ndarray:
    """Weights between groups, (row group, key group): summed over a group's keys, averaged over its
    queries. Rows that summed to 1 still do.

    matrix (query, key).
    """
    summed = np.add.reduceat(matrix.astype(np.float64), keys.starts, axis=1)
    return (np.add.reduceat(summed, rows.starts, axis=0) / rows.sizes[:, None]).astype(matrix.dtype)


def uniform_weights(allowed: np.ndarray, rows: Groups, keys: Groups) -> np.ndarray:
    """The weights (row group, key group) of attention that gives all it may look at the same.
    allowed (query, key)."""
    return merge_weights(allowed / np.maximum(1, allowed.sum(axis=1, keepdims=True)), rows, keys)


def uniform_weight(allowed: np.ndarray, rows: Groups, keys: Groups, row: int, key: int) -> float:
    """One of `uniform_weights`: that of a row group and a key group."""
    (top, height), (left, width) = rows.span(row), keys.span(key)
    seen = allowed[top : top + height]
    given = seen[:, left : left + width].sum(axis=1) / np.maximum(1, seen.sum(axis=1))
    return float(given.mean())


def strongest_tokens(
    pattern: np.ndarray, rows: Groups, keys: Groups, row: int, key: int
) -> tuple[int, int]:
    """The tokens (query, key) of the largest weight between a row group and a key group. pattern
    (query, key) is a head's."""
    (top, height), (left, width) = rows.span(row), keys.span(key)
    part = pattern[top : top + height, left : left + width]
    query, column = np.unravel_index(part.argmax(), part.shape)
    return top + int(query), left + int(column)


def weights_between(pattern: np.ndarray, rows: Groups, keys: Groups) -> np.ndarray:
    """The weights (layer, head, row group, key group) between groups: summed over a group's keys,
    averaged over its queries. pattern (layer, head, query, key)."""
    if len(rows.starts) == rows.n and len(keys.starts) == keys.n:
        return pattern
    heads = pattern.reshape(-1, *pattern.shape[2:])
    result = buffer_pool.array((len(heads), len(rows.starts), len(keys.starts)), pattern.dtype)
    longer = np.flatnonzero(rows.sizes > 1)
    step = max(1, CHUNK_SIZE // heads[0].size)
    for at in range(0, len(heads), step):
        expect_wanted()
        by_row = sum_groups(heads[at : at + step], rows, 1)
        by_row[:, longer] /= rows.sizes[longer].astype(result.dtype)[:, None]
        sum_groups(by_row, keys, 2, result[at : at + step])
    return result.reshape(*pattern.shape[:2], *result.shape[1:])


def sum_groups(
    array: np.ndarray, groups: Groups, axis: int, out: np.ndarray | None = None
) -> np.ndarray:
    """An array with its tokens along `axis` summed by groups, in `out` if it is given. Most groups
    are one token, so that taking these and adding what is left is several times faster than
    `np.add.reduceat`."""
    starts, sizes = np.array(groups.starts), groups.sizes
    result = array.take(starts, axis, out, mode="clip")
    view = np.moveaxis(result, axis, 0)
    for offset in range(1, int(sizes.max())):
        longer = np.flatnonzero(sizes > offset)
        view[longer] += np.moveaxis(array.take(starts[longer] + offset, axis), axis, 0)
    return result


def merge_allowed(allowed: np.ndarray, rows: Groups, keys: Groups) -> np.ndarray:
    """Mask between groups, (row group, key group): allowed where any of their parts are. allowed
    (query, key)."""
    if allowed.all():
        return np.ones((len(rows.starts), len(keys.starts)), bool)
    return np.logical_or.reduceat(
        np.logical_or.reduceat(allowed, keys.starts, axis=1), rows.starts, axis=0
    )


def word_numbers(text: str) -> list[int]:
    """The number of the word that each character of a text belongs to, -1 for white space."""
    numbers: list[int] = []
    word, kind, flags = -1, "space", 0
    for at, letter in enumerate(text):
        now = _kind(letter)
        if now == "space":
            numbers.append(-1)
            kind = now
            continue
        goes_on, flags = _continues_word(text, at, kind, now, flags)
        word += not goes_on
        numbers.append(word)
        if not goes_on or now in ("flag", "letter", "digit"):
            kind = now
    return numbers


def _continues_word(text: str, at: int, kind: str, now: str, flags: int) -> tuple[bool, int]:
    """True where a character other than space belongs to the word before it, of that `kind`,
    and the number of parts of a flag so far."""
    if kind == "space":
        return False, int(now == "flag")
    letter, before, after = text[at], text[at - 1], text[at + 1 : at + 2]
    if now == "mark":
        return True, flags
    if now == "flag":
        return (True, 2) if kind == "flag" and flags == 1 else (False, 1)
    if before == JOINER and now == "sign" and kind == "sign":
        return True, 0
    if now in ("letter", "digit"):
        return kind in ("letter", "digit"), 0
    if letter == "\u30fc" and kind in RUNS:  # it makes the vowel before it long, in either kana
        return True, 0
    if letter in APOSTROPHES and after:
        return kind == "letter" and _kind(before) in ("letter", "mark") and _kind(
            after
        ) == "letter", 0
    if letter in ".," and after:
        return kind == "digit" and _kind(before) == _kind(after) == "digit", 0
    return now == kind and now in RUNS, 0


@lru_cache(maxsize=50_000)
def _kind(letter: str) -> str:
    category, code = unicodedata.category(letter), ord(letter)
    if letter.isspace() or letter == "\u200b":
        return "space"
    if category[0] == "M" or category == "Cf" or 0x1F3FB <= code <= 0x1F3FF:
        return "mark"
    if 0x1F1E6 <= code <= 0x1F1FF:
        return "flag"
    if category[0] == "N" and category != "Nl":
        return "digit"
    if category[0] != "L" and category != "Nl":
        return "sign"
    script = (
        unicodedata.name(letter, "").removeprefix("HALFWIDTH ").replace("-", " ").partition(" ")[0]
    )
    if script in RUNS:
        return script
    return "single" if script in SINGLE or letter in "\u3005\u3007" else "letter"


def _continues_previous(
    text: str,
    word: list[int],
    tokens: tuple[str, ...],
    special: tuple[bool, ...],
    spans: tuple[Span, ...],
    at: int,
) -> bool:
    """True where a token goes on with the word of the token before it."""
    if special[at - 1] or special[at]:
        return False
    (start0, end0), (start, end) = spans[at - 1], spans[at]
    while 0 <= end0 < start and _kind(text[end0]) == "mark":  # that no token shows
        end0 += 1
    if min(start0, start) < 0 or not start0 <= start <= end0:
        return False
    if end <= start:  # a part of the character before it, as one of the letters of a syllable
        return start == end0 > 0 and SPACE not in tokens[at - 1 : at + 1]
    if text[start0:end0] in ("", " ") and start == end0:
        return not text[start].isspace()
    return start < end0 or word[start] == word[end0 - 1] >= 0


def _label(text: str, tokens: tuple[str, ...], spans: tuple[Span, ...]) -> str:
    if len(tokens) == 1 or COVER in tokens:
        return tokens[0].removeprefix(CONTINUES) or tokens[0]
    return readable(text[spans[0][0] : max(end for _, end in spans)].strip(" "))


def readable(piece: str) -> str:
    """A piece of a text as a label."""
    return unicodedata.normalize("NFC", "".join(map(_readable, piece)))


def _readable(letter: str) -> str:
    """A letter; spelled out where it would be invisible or disturb its neighbours. Joiners and the
    tags of flags stay: they shape what is seen."""
    shapes = letter in " \u200c\u200d" or 0xE0020 <= ord(letter) <= 0xE007F
    invisible = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
    return f"U+{ord(letter):04X}" if invisible and not shapes else letter
