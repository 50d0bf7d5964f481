"""The picture card as PNG, drawn without a browser: sites that show a shared link take no SVG.

It has the layout of `explorer/components/card_figure.js`, which draws the card for readers, in the
app's own font and in those of the system; a word that none of them has is left out."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw, ImageFont

from explorer.analysis.figures import PictureCard
from explorer.components.bundle import card_layout, colours

LAYOUT = card_layout()
WIDE, HIGH, MARGIN, FOOT = (LAYOUT[each] for each in ("wide", "high", "margin", "foot"))
FINE = 2  # times as large it is drawn, since lines have no soft edges
BASE = 0.35  # type sizes from the middle of a line to its base
LEFT_OUT = "…"
INTER = Path(__file__).parent / "static" / "inter.woff2"
# Regular and bold fonts: the app's own, and what systems have.
FONTS = (
    (str(INTER), str(INTER)),
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
    ("arial.ttf", "arialbd.ttf"),
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("NotoSans-Regular.ttf", "NotoSans-Bold.ttf"),
    ("NotoSansDevanagari-Regular.ttf", "NotoSansDevanagari-Bold.ttf"),
    ("NotoSansThai-Regular.ttf", "NotoSansThai-Bold.ttf"),
    ("NotoSansCJK-Regular.ttc", "NotoSansCJK-Bold.ttc"),
)
WEIGHTS = (450, 650)  # of the app's own
SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")  # without spaces


def png(card: PictureCard) -> bytes:
    """The card as a PNG of 1200 x 630."""
    pen = Pen(colours("light"))
    card = legible(card)
    _says(pen, card)
    _sentence(pen, card)
    foot = HIGH - MARGIN
    name = pen.width(card.name, FOOT, True)
    about = pen.cut(card.about, WIDE - 2 * MARGIN - name - 2 * FOOT, FOOT, False)
    pen.text(MARGIN, foot, about, FOOT, colour=pen.faded(0.85))
    pen.text(WIDE - MARGIN, foot, card.name, FOOT, True, "r", pen.primary)
    return pen.file()


def legible(card: PictureCard) -> PictureCard:
    """The card with an ellipsis for each word that no font here has; without its words where the
    pair is among them."""
    words = [word for text in card.texts for word in text]
    pair = [words[at] for edge in card.edges[: card.is_pair] for at in (edge.source, edge.target)]
    if not all(map(_is_drawn, (*pair, *card.says))):
        says = card.says if all(map(_is_drawn, card.says)) else ()
        return replace(card, says=says, texts=(), spaced=(), edges=())
    texts = tuple(
        tuple(word if _is_drawn(word) else LEFT_OUT for word in text) for text in card.texts
    )
    is_empty = all(word == LEFT_OUT for text in texts for word in text)
    return replace(card, texts=() if is_empty else texts, edges=() if is_empty else card.edges)


def _is_drawn(text: str) -> bool:
    return font_of(text, FOOT, False) is not None


@lru_cache(maxsize=1)
def _families() -> tuple[tuple[str, str], ...]:
    """The fonts that are here."""
    return tuple(each for each in FONTS if all(map(_opens, each)))


def _opens(name: str) -> bool:
    try:
        ImageFont.truetype(name, FOOT)
    except OSError:
        return False
    return True


@lru_cache(maxsize=256)
def _font(family: int, size: float, bold: bool) -> ImageFont.FreeTypeFont:
    name = _families()[family][bold]
    font = ImageFont.truetype(name, round(size * FINE))
    if name == str(INTER):
        font.set_variation_by_axes([WEIGHTS[bold]])
    return font


def font_of(text: str, size: float, bold: bool) -> ImageFont.FreeTypeFont | None:
    """The first font that has every letter of a text; None where there is none."""
    for family in range(len(_families())):
        if all(_has(family, letter) for letter in text):
            return _font(family, size, bold)
    return None


@lru_cache(maxsize=20_000)
def _has(family: int, letter: str) -> bool:
    """True where a font has a letter, and does not draw its sign for one that it has not."""
    if unicodedata.category(letter) in ("Mn", "Zs", "Cf"):
        return True
    font = ImageFont.truetype(_families()[family][0], FOOT, layout_engine=ImageFont.Layout.BASIC)
    glyph, none = font.getmask(letter), font.getmask("\U0010ffff")
    return (glyph.size, bytes(glyph)) != (none.size, bytes(none))


class Pen:
    """Pen that draws on the card, in its pixels; y is the middle of a line of type."""

    def __init__(self, look: dict[str, object]) -> None:
        names = ("ink", "paper", "primary")
        self.ink, self.paper, self.primary = (ImageColor.getrgb(str(look[each])) for each in names)
        self._image = Image.new("RGB", (WIDE * FINE, HIGH * FINE), self.paper)
        self._draw = ImageDraw.Draw(self._image)

    def file(self) -> bytes:
        """The drawing as PNG."""
        buffer = io.BytesIO()
        small = self._image.resize((WIDE, HIGH), Image.Resampling.LANCZOS)
        small.quantize(128).save(buffer, "PNG", optimize=True)
        return buffer.getvalue()

    def faded(self, alpha: float, colour: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A colour, that of the ink where None, on paper."""
        return tuple(
            round(alpha * a + (1 - alpha) * b) for a, b in zip(colour or self.ink, self.paper)
        )

    def width(self, text: str, size: float, bold: bool) -> float:
        """Pixels of a text."""
        font = font_of(text, size, bold) or _font(0, size, bold)
        return font.getlength(text) / FINE

    def cut(self, text: str, room: float, size: float, bold: bool) -> str:
        """A text cut to a width, with an ellipsis."""
        if self.width(text, size, bold) <= room:
            return text
        while text and self.width(text + LEFT_OUT, size, bold) > room:
            text = text[:-1]
        return text + LEFT_OUT

    def lines(self, text: str, room: float, size: float) -> list[str]:
        """A bold text in lines."""
        lines = [""]
        for word in text.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width(longer, size, True) > room:
                lines.append(word)
            else:
                lines[-1] = longer
        return [self.cut(line, room, size, True) for line in lines]

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        bold: bool = False,
        anchor: str = "l",
        colour: tuple[int, ...] | None = None,
    ) -> None:
        """Write a text. anchor: "l", "m" or "r"."""
        font = font_of(text, size, bold) or _font(0, size, bold)
        place = (x * FINE, (y + BASE * size) * FINE)
        self._draw.text(place, text, colour or self.ink, font, f"{anchor}s")

    def line(
        self, points: Sequence[tuple[float, float]], wide: float, colour: tuple[int, ...]
    ) -> None:
        """A line with round ends."""
        fine = [(x * FINE, y * FINE) for x, y in points]
        self._draw.line(fine, colour, round(wide * FINE), "curve")
        r = wide * FINE / 2
        for x, y in (fine[0], fine[-1]):
            self._draw.ellipse((x - r, y - r, x + r, y + r), colour)

    def shape(self, points: Sequence[tuple[float, float]], colour: tuple[int, ...]) -> None:
        """A filled shape."""
        self._draw.polygon([(x * FINE, y * FINE) for x, y in points], colour)

    def box(self, left: float, top: float, right: float, foot: float, filled: bool) -> None:
        """A box with round corners in the accent."""
        self._draw.rounded_rectangle(
            [each * FINE for each in (left, top, right, foot)],
            0.13 * (foot - top) * FINE,
            self.primary if filled else self.paper,
            self.primary,
            4 * FINE,
        )


# ---- the line at the top -------------------------------------------------------------------------


def _says(pen: Pen, card: PictureCard) -> None:
    """The pair and its weight, or a sentence."""
    middle, room, number = LAYOUT["top"], WIDE - 2.0 * MARGIN, LAYOUT["number"]
    if card.number:
        pen.text(WIDE - MARGIN, middle, card.number, number, True, "r", pen.primary)
        room -= pen.width(card.number, number, True) + 0.8 * number
    if len(card.says) == 1:
        sizes = LAYOUT["plain"]
        fits = (each for each in sizes if len(pen.lines(*card.says, room, each)) < 3)
        size = next(fits, sizes[-1])
        for row, line in enumerate(pen.lines(*card.says, room, size)[:3]):
            pen.text(MARGIN, middle + (row - 0.3) * 1.25 * size, line, size, True)
    if len(card.says) == 2:
        _pair(pen, card.says, middle, room)


def _pair(pen: Pen, says: tuple[str, ...], middle: float, room: float) -> None:
    wide = lambda size: sum(pen.width(word, size, True) for word in says) + 1.9 * size
    sizes = LAYOUT["pair"]
    size = next((each for each in sizes if wide(each) <= room), sizes[-1])
    half = max(room - 1.9 * size, 0) / 2
    fits = wide(size) <= room
    query, key = (word if fits else pen.cut(word, half, size, True) for word in says)
    pen.text(MARGIN, middle, query, size, True)
    start = MARGIN + pen.width(query, size, True) + 0.4 * size
    end, tip = start + 1.1 * size, 0.26 * size
    pen.line([(start, middle), (end, middle)], 0.09 * size, pen.primary)
    head = [(end - tip, middle - tip), (end, middle), (end - tip, middle + tip)]
    pen.line(head, 0.09 * size, pen.primary)
    pen.text(end + 0.4 * size, middle, key, size, True)


# ---- the sentence --------------------------------------------------------------------------------


@dataclass
class PlacedWord:
    """A word of the sentence: its text, its role in the pair, whether a space stands before it, and
    where it stands."""

    text: str
    role: str
    is_spaced: bool
    wide: float = 0.0
    space: float = 0.0
    left: float = 0.0
    line: int = 0

    @property
    def middle(self) -> float:
        """Of the word, from left to right."""
        return self.left + self.wide / 2


def _sentence(pen: Pen, card: PictureCard) -> None:
    """The texts in lines, and the arcs between their words."""
    size, lines = _fitting(pen, _in_order(card))
    if not lines:
        return
    middles = LAYOUT["middles"][len(lines) - 1]
    is_right = _runs_to_the_left("".join(word.text for line in lines for word in line))
    for row, line in enumerate(lines):
        _place(line, row, is_right)
    drawn = [word for line in lines for word in line]
    for at, edge in enumerate(card.edges):
        if max(edge.source, edge.target) < len(drawn):
            is_main = card.is_pair and at == 0
            wide = 5 + 8 * edge.weight if is_main else 1.5 + 5 * edge.weight
            colour = pen.faded(1 if is_main else 0.2 + 0.6 * edge.weight, pen.primary)
            query, key = drawn[edge.source], drawn[edge.target]
            heights = middles[query.line], middles[key.line]
            _arc(pen, (query, key), heights, size, wide, colour)
    for word in drawn:
        middle = middles[word.line]
        if word.role:
            high = 0.62 * size
            right = word.left + word.wide
            pen.box(word.left, middle - high, right, middle + high, word.role == "key")
        colours = {"key": pen.paper, "query": pen.primary}
        colour = colours.get(word.role, pen.ink)
        pen.text(word.middle, middle, word.text, size, bool(word.role), "m", colour)


def _in_order(card: PictureCard) -> list[list[PlacedWord]]:
    """The words of each text, in the order in which edges count them."""
    first = card.edges[0] if card.is_pair and card.edges else None
    roles = {first.target: "key", first.source: "query"} if first else {}
    texts, n = [], 0
    for text, spaced in zip(card.texts, card.spaced):
        texts.append(
            [
                PlacedWord(each, roles.get(n + at, ""), at > 0 and space)
                for at, (each, space) in enumerate(zip(text, spaced))
            ]
        )
        n += len(text)
    return texts


def _fitting(pen: Pen, texts: list[list[PlacedWord]]) -> tuple[float, list[list[PlacedWord]]]:
    """The largest type in which the texts stand in two lines, and these."""
    most = 3 - len(texts)
    for size in LAYOUT["sizes"]:
        lines = [_wrapped(pen, words, size) for words in texts]
        if all(len(each) <= most for each in lines):
            break
    return size, [line for each in lines for line in each[:most] if line]


def _wrapped(pen: Pen, words: Sequence[PlacedWord], size: float) -> list[list[PlacedWord]]:
    """Words in lines as wide as the card; what follows a word without a space stays with it."""
    parts: list[list[PlacedWord]] = []
    for word in words:
        pad = 2 * LAYOUT["pad"] * size if word.role else 0.0
        word.wide = pen.width(word.text, size, bool(word.role)) + pad
        word.space = LAYOUT["space"] * size if word.is_spaced else 0.0
        if not parts or word.is_spaced or _breaks(word.text):
            parts.append([word])
        else:
            parts[-1].append(word)
    length = lambda line: sum(each.wide + each.space for each in line) - line[0].space
    lines: list[list[PlacedWord]] = [[]]
    for part in parts:
        if lines[-1] and length([*lines[-1], *part]) > WIDE - 2 * MARGIN:
            lines.append([])
        lines[-1] += part
    for line in lines:
        for word in line[:1]:
            word.space = 0
    return lines


def _breaks(text: str) -> bool:
    """True for a word of a script without spaces, before which a line may end."""
    return unicodedata.name(text[:1], "").startswith(SCRIPTS)


def _is_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)


def _is_left_to_right(text: str) -> bool:
    return any(unicodedata.bidirectional(letter) == "L" for letter in text)


def _runs_to_the_left(text: str) -> bool:
    """True for a text whose first letter with a direction runs to the left."""
    directions = (unicodedata.bidirectional(letter) for letter in text)
    return next((each for each in directions if each in ("L", "R", "AL")), "L") != "L"


def _place(words: list[PlacedWord], line: int, is_right: bool) -> None:
    """Put words of a line where they stand: in a text that runs to the left, backwards but for what
    runs to the right."""
    whole = sum(word.wide + word.space for word in words)
    left = WIDE - MARGIN - whole if is_right else float(MARGIN)
    order = _visual(words, is_right)
    for at, word in enumerate(order):
        # The space before a word of the text is that beside it on the line.
        left += (order[at - 1] if is_right else word).space if at else 0
        word.left, word.line = left, line
        left += word.wide


def _visual(words: Sequence[PlacedWord], is_right: bool) -> list[PlacedWord]:
    """Words from left to right."""
    against: Callable[[PlacedWord], bool] = lambda word: (
        _is_left_to_right(word.text) and not _is_right_to_left(word.text)
        if is_right
        else _is_right_to_left(word.text)
    )
    runs: list[list[PlacedWord]] = []
    for at, word in enumerate(words):
        if at and against(word) and against(words[at - 1]):
            runs[-1].append(word)
        else:
            runs.append([word])
    if is_right:
        return [word for run in reversed(runs) for word in run]
    return [word for run in runs for word in (reversed(run) if against(run[0]) else run)]


def _arc(
    pen: Pen,
    ends: tuple[PlacedWord, PlacedWord],
    heights: tuple[float, float],
    size: float,
    wide: float,
    colour: tuple[int, ...],
) -> None:
    """An arc from a query to its key, with its head at the key. heights: the middles of their
    lines."""
    (one, other), (high, low) = ends, heights
    part = (0.3, 0.7) if one is other else (0.5, 0.5)
    a, b = one.left + part[0] * one.wide, other.left + part[1] * other.wide
    gap, tip = 0.72 * size, max(0.2 * size, 1.3 * wide)
    is_level, is_below = one.line == other.line, one.line < other.line
    start = high + (-gap if is_level or not is_below else gap)
    to = low + (-gap if is_level or is_below else gap)
    end = to + (-tip if is_level or is_below else tip)
    rise = min(LAYOUT["above"][one.line], 0.5 * size + 0.22 * abs(b - a))
    bends = (start - 1.33 * rise, end - 1.33 * rise) if is_level else ((start + end) / 2,) * 2
    points = [(a, start), (a, bends[0]), (b, bends[1]), (b, end)]
    pen.line([_bezier(points, at / 60) for at in range(61)], wide, colour)
    pen.shape([(b - tip, end), (b, to), (b + tip, end)], colour)


def _bezier(points: Sequence[tuple[float, float]], t: float) -> tuple[float, float]:
    """The point of a cubic Bézier curve at t, from 0 to 1."""
    shares = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x, y = (sum(part * each[axis] for part, each in zip(shares, points)) for axis in (0, 1))
    return x, y
