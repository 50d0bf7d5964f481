"""A panel as a picture for a paper: SVG, PDF or PNG, drawn without a browser.

`figure_engine` draws the SVG, in the layout of its width, with widths of letters read from the
font's own file. Typst sets it on a page as PDF or PNG, with the letters of the font that it uses.
Every file says what it shows, and of what: its title, and its cause as JSON."""

from __future__ import annotations

import json
import re
import struct
import threading
import unicodedata
import warnings
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape, unescape
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from explorer.components import bundle
from explorer.figures import figure_engine
from explorer.figures.figure_engine import WORDS
from models.contract.notices import tell
from models.version import VERSION

STATIC = Path(__file__).parents[1] / "app" / "static"
REGULAR, BOLD = STATIC / "inter-regular.ttf", STATIC / "inter-bold.ttf"
LETTER = 14.0  # pixels of the type that a sheet is laid out in
TYPE = 8.0  # points of that type where a figure has a width: a paper's captions have as much
POINTS = {"cm": 72 / 2.54, "mm": 72 / 25.4, "in": 72.0, "pt": 1.0, "px": 0.75}
YES = {"yes": True, "no": False}
PARTS = ("caption", "title", "formulas", "notes")  # of a picture, which a sheet may be without
WIDTHS = (POINTS["cm"] * 5, POINTS["cm"] * 100)
PAGE_POINTS = POINTS["cm"] * 24  # of height, of a page of A4 between its margins
DPI, LEAST_DPI = 300, 72
PDF_VERSION = "1.4"  # pdfTeX before 2024 warns of one above 1.5
MOST_PIXELS = 40_000_000  # of a PNG
# Bytes that the typesetter takes: at least, for each of an SVG and for each pixel.
SETTER_BYTES, SVG_BYTES, PIXEL_BYTES = 2**25, 64, 16
_one_png = threading.Lock()
MADE_WITH = f"Headlight {VERSION}"
SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]+)\s*")
WRITTEN = re.compile(">([^<]*[^<\x00-\x7f][^<]*)<")  # a text with letters beyond the first 128
RUN = re.compile("\0+")
# the circle below a mark that stands alone, which the font of the mark draws itself
CIRCLED = re.compile("\u25cc(?=[\u0483-\u1aff])")
# Emoji of several characters, which the typesetter draws as boxes over their neighbours: signs that
# only change one, and where one is joined to the next.
SELECTORS = re.compile("[\ufe0e\ufe0f\u20e3\U000e0020-\U000e007f]")
JOINTS = re.compile(
    "(?<=[\u2190-\u2bff\U0001f000-\U0001faff])(?:\u200d|(?=[\U0001f3fb-\U0001f3ff]))"
    "|(?<=[\U0001f1e6-\U0001f1ff])(?=[\U0001f1e6-\U0001f1ff])"
)
APART = "\u200c"
LEFT_OUT = "…"  # in the place of letters that no font has
UNSEEN = ("Cc", "Cf", "Zs", "Zl", "Zp")  # kinds of characters that no font draws
LOST = re.compile("[\ud800-\udfff\ufffe\uffff]")  # what no XML holds
# Typst's fonts are of a hundred's weight and upright; browsers slant letters themselves.
WEIGHT = 'font-weight="650"'
ITALIC = re.compile(r'<text x="([^"]*)" y="([^"]*)"([^>]*?) font-style="italic"')
SLANT = 0.2
# A text below its own height, of which Typst would lower the first letter alone in scripts that run
# from right to left.
LOWERED = re.compile(r' y="([^"]*)" dy="([\d.]+)em" font-size="([^"]*)"')
# Signs that the app's font lacks: their kinds, their width in type sizes, what draws them.
SIGNS, SIGN, SIGN_FONTS = ("Sm", "So", "Sc", "Sk", "Po", "No"), 0.84, "DejaVu Sans, sans-serif"
EXPONENT = 0.4  # the width of a raised figure
TEXT = re.compile(r'<text x="([^"]*)"([^>]*)>([^<]+)</text>')
ANCHORS = {' text-anchor="middle"': 0.5, ' text-anchor="end"': 1}
WHITE = {"paper": "#ffffff"}  # of the light theme, as for print
PAGE = """
#set page(width: auto, height: auto, margin: 0pt)
#set document(
  title: sys.inputs.title, description: sys.inputs.about, author: sys.inputs.made, date: none)
#image(bytes(sys.inputs.svg), format: "svg", width: float(sys.inputs.points) * 1pt,
  alt: sys.inputs.title)
"""
LETTERS = """
#set page(width: 60pt, height: 30pt, margin: 0pt)
#for letter in json(bytes(sys.inputs.letters)) {
  page(image(format: "svg", bytes("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 60 30'>"
    + "<text x='20' y='22' font-family='Inter' font-size='16'>" + letter + "</text></svg>")))
}
"""


@dataclass(frozen=True)
class Sheet:
    """Paper of a picture. width: such as "8.5cm", in cm, mm, in, pt or px, and that of the app's
    own pictures where None; caption: whether the lines stand below it that say model, text and
    edits; dark: in the colours of the dark theme; title: whether its title stands above it;
    formulas: whether its formulas stand below it; notes: whether what explains a figure does,
    beside the line of what is left out."""

    width: str | None = None
    caption: bool = True
    dark: bool = False
    title: bool = True
    formulas: bool = True
    notes: bool = True

    @classmethod
    def of_words(cls, words: dict[str, str]) -> Sheet:
        """The sheet that words of an address ask for, which are taken out of `words`: a `width`
        with its unit, and `no` for a part such as `caption`. Raises ValueError for another
        word of these."""
        sheet: dict[str, Any] = {}
        if SIZE.fullmatch(words.get("width", "")):  # a panel may have a number of this name
            sheet["width"] = words.pop("width")
        for name in {*PARTS} & words.keys():
            if (word := words.pop(name)) not in YES:
                raise ValueError(WORDS("yes_or_no", name=name, word=word))
            sheet[name] = YES[word]
        return cls(**sheet)

    def __post_init__(self) -> None:
        """Raises ValueError for a width that is none."""
        if not WIDTHS[0] <= (self.points or WIDTHS[0]) <= WIDTHS[1]:
            raise ValueError(WORDS("width", width=self.width))

    @property
    def points(self) -> float | None:
        """Its width in points."""
        if self.width is None:
            return None
        match = SIZE.fullmatch(self.width) if isinstance(self.width, str) else None
        return float(match[1]) * POINTS.get(match[2], -1) if match else -1


def svg(panel: bytes, title: str, cause: Mapping[str, Any], sheet: Sheet) -> bytes:
    """An encoded panel as an SVG that stands by itself, with its font. Raises ValueError where
    nothing is here that draws it."""
    drawn, size = _drawn(panel, sheet)
    font = b64encode((STATIC / "inter.woff2").read_bytes()).decode()
    face = f"font-family:Inter;font-weight:100 900;src:url(data:font/woff2;base64,{font})"
    about = f"<metadata>{escape(_as_json(cause), quote=False)}</metadata>"
    head, end, rest = drawn.partition("</title>")
    head = _sized(head, size)
    return f"{head}{end}{about}<style>@font-face{{{face}}}</style>{rest}".encode()


def still(panel: bytes) -> str:
    """An encoded panel as an SVG in the fonts of whoever shows it, a few kilobytes. Raises
    ValueError where nothing is here that draws it."""
    return _drawn(panel, Sheet())[0]


def pdf(panel: bytes, title: str, cause: Mapping[str, Any], sheet: Sheet) -> bytes:
    """An encoded panel as a PDF of one page, as large as the picture. Raises ValueError where
    nothing is here that draws it."""
    return _set("pdf", _drawn(panel, sheet), title, cause)


def png(panel: bytes, title: str, cause: Mapping[str, Any], sheet: Sheet) -> bytes:
    """An encoded panel as a PNG of 300 dots per inch, of fewer where it would have more than
    `MOST_PIXELS`. Raises ValueError where nothing is here that draws it, and for one that is too
    long for 72."""
    drawn = _drawn(panel, sheet)
    return _image(drawn, title, cause, _dpi(drawn[1]))


def card(panel: bytes, title: str, cause: Mapping[str, Any], _: Sheet) -> bytes:
    """The encoded picture card as a PNG of the pixels that its layout says. Raises ValueError where
    nothing is here that draws it."""
    sheet = Sheet(width=f"{bundle.card_layout()['wide']}px", caption=False)
    return _image(_drawn(panel, sheet), title, cause, round(72 / POINTS["px"]))


def _image(
    drawn: tuple[str, tuple[float, float]], title: str, cause: Mapping[str, Any], dpi: float
) -> bytes:
    """A picture, as `_drawn` gives it, as a PNG of so many dots per inch."""
    # One at a time: each takes hundreds of megabytes as long as it is made.
    pixels = int(drawn[1][0] * drawn[1][1] * (dpi / 72) ** 2)
    with figure_engine.room(SETTER_BYTES + PIXEL_BYTES * pixels), _one_png:
        image = _set("png", drawn, title, cause, dpi)
    per_metre = round(dpi / 0.0254)
    chunks = [_chunk(b"pHYs", struct.pack(">IIB", per_metre, per_metre, 1))]
    texts = {"Title": title, "Description": _as_json(cause), "Software": MADE_WITH}
    chunks += [
        _chunk(b"iTXt", name.encode() + bytes(5) + LOST.sub("\ufffd", text).encode())
        for name, text in texts.items()
    ]
    first = 8 + 25  # the signature and the header
    return image[:first] + b"".join(chunks) + _without(image[first:], b"pHYs")


def _dpi(size: tuple[float, float]) -> float:
    """The dots per inch of a PNG of a width and height in points. Raises ValueError for one that is
    too long."""
    inches = size[0] / 72 * size[1] / 72
    dpi = min(DPI, int((MOST_PIXELS / inches) ** 0.5))
    if dpi < LEAST_DPI:
        raise ValueError(WORDS("too_long"))
    if dpi < DPI:
        tell(
            f"this PNG has {dpi} dots an inch, and not {DPI}, with which it would have more than "
            f"{MOST_PIXELS:,} pixels"
        )
    return dpi


def how(sheet: Sheet) -> dict[str, object]:
    """The options with which `figure_file.js` draws on a sheet."""
    drawn: dict[str, object] = {
        "colours": bundle.colours("dark") if sheet.dark else bundle.colours("light") | WHITE,
        "font": widths(),
        **{name: getattr(sheet, name) for name in PARTS},
    }
    if sheet.points is not None:
        drawn["width"] = sheet.points / TYPE * LETTER
    return drawn


def _drawn(panel: bytes, sheet: Sheet) -> tuple[str, tuple[float, float]]:
    """The picture as SVG, and its width and height in points."""
    points = sheet.points
    drawn, width, height = figure_engine.drawn(panel, how(sheet))
    if points is not None and height / width * points > PAGE_POINTS:
        cm = height / width * points / POINTS["cm"]
        tell(
            f"this picture is {cm:.0f} cm high, more than a page has; where it has several "
            "figures, figures[0].save writes the first of them alone"
        )
    points = points or width * POINTS["px"]
    return _in_own_font(drawn), (points, height / width * points)


def _in_own_font(drawn: str) -> str:
    """A picture whose signs that the app's font lacks, such as arrows, stand in another one without
    the letters beside them: who sets a text takes a font for all of it."""
    font = widths()
    own = {name: dict(zip(font["letters"], font[name])) for name in ("regular", "bold")}

    def apart(match: re.Match[str]) -> str:
        x, how, inside = match[1], match[2], unescape(match[3])
        lacks = [each for each in inside if each not in own["regular"] and each != "\0"]
        if any(unicodedata.category(each) not in SIGNS for each in lacks) or not lacks:
            return match[0]
        wide = own["bold" if WEIGHT in how else "regular"]
        size = float(re.search(r'font-size="([^"]*)"', how)[1])  # type: ignore[index]
        parts = [
            (is_own, "".join(letters))
            for is_own, letters in groupby(inside, lambda each: each in wide)
        ]
        widths_of = [size * sum(wide.get(each, _sign(each)) for each in text) for _, text in parts]
        before = next((part for name, part in ANCHORS.items() if name in how), 0)
        at, spans = float(x) - before * sum(widths_of), ""
        for (is_own, text), step in zip(parts, widths_of):
            family = "" if is_own else f' font-family="{SIGN_FONTS}"'
            spans += f'<tspan x="{at:.2f}"{family}>{escape(text, quote=False)}</tspan>'
            at += step
        for name in ANCHORS:
            how = how.replace(name, "")
        return f'<text x="{x}"{how}>{spans}</text>'

    return TEXT.sub(apart, drawn)


def _sign(letter: str) -> float:
    """The width of a sign that the app's font lacks, in type sizes."""
    return EXPONENT if unicodedata.category(letter) == "No" else SIGN


def _sized(head: str, size: tuple[float, float]) -> str:
    """The beginning of an SVG with its size on paper, in millimetres."""
    for name, points in zip(("width", "height"), size):
        head = re.sub(
            rf' {name}="[^"]*"', f' {name}="{points / POINTS["mm"]:.2f}mm"', head, count=1
        )
    return head


def _as_json(cause: Mapping[str, Any]) -> str:
    """A cause as JSON."""
    return LOST.sub("\ufffd", json.dumps(dict(cause), ensure_ascii=False, default=repr))


def _set(
    kind: Literal["pdf", "png"],
    picture: tuple[str, tuple[float, float]],
    title: str,
    cause: Mapping[str, Any],
    dpi: float = DPI,
) -> bytes:
    """The picture, as `_drawn` gives it, as a page of Typst's."""
    if find_spec("typst") is None:
        raise ValueError(WORDS("no_typesetter"))
    import typst

    drawn, (points, _) = picture
    drawn = LOWERED.sub(_on_its_line, drawn.replace(WEIGHT, 'font-weight="bold"'))
    slanted = lambda match: (
        f'<text x="{match[1]}" y="{match[2]}"{match[3]} '
        f'transform="matrix(1 0 {-SLANT} 1 {SLANT * float(match[2]):.2f} 0)"'
    )
    inputs = {
        "svg": ITALIC.sub(slanted, _legible(drawn)),
        "title": LOST.sub("\ufffd", title),
        "about": _as_json(cause),
        "made": MADE_WITH,
        "points": f"{points:.3f}",
    }
    how: dict[str, Any] = {"ppi": dpi} if kind == "png" else {"pdf_standards": PDF_VERSION}
    with figure_engine.room(SETTER_BYTES + SVG_BYTES * len(drawn)):
        return bytes(
            typst.compile(PAGE.encode(), format=kind, font_paths=_fonts(), sys_inputs=inputs, **how)
        )


def _on_its_line(text: re.Match[str]) -> str:
    """The beginning of a text at the height of its line of type."""
    return f' y="{float(text[1]) + float(text[2]) * float(text[3]):.2f}" font-size="{text[3]}"'


def _legible(drawn: str) -> str:
    """A picture in letters that the fonts of this machine have, with an ellipsis in the place of
    others, of which a warning is given by their scripts; emoji that are joined stand side by
    side."""
    drawn = JOINTS.sub(APART, SELECTORS.sub("", CIRCLED.sub("", drawn)))
    texts = "".join(WRITTEN.findall(drawn))
    visible = {
        each for each in texts if not (each.isascii() or unicodedata.category(each) in UNSEEN)
    }
    missing = _without_glyph(visible)

    def legible(match: re.Match[str]) -> str:
        text = "".join("\0" if each in missing else each for each in match[1])
        return f">{RUN.sub(LEFT_OUT, text)}<"

    if missing:
        scripts = {unicodedata.name(each, "unnamed").split()[0].capitalize() for each in missing}
        warnings.warn(WORDS("no_letters", scripts=", ".join(sorted(scripts))), stacklevel=2)
    return WRITTEN.sub(legible, drawn)


_drawable = {"\U0010fffd": False}  # whether a font here has a letter; the first has none


def _without_glyph(letters: Iterable[str]) -> set[str]:
    """Those of some letters that no font here has: they look like one that none can have."""
    import typst

    none, *_ = _drawable
    new = sorted({*letters} - _drawable.keys())
    if new:
        inputs = {"letters": json.dumps([none, *new])}
        pages = typst.compile(
            LETTERS.encode(), format="png", ppi=72, font_paths=_fonts(), sys_inputs=inputs
        )
        missing, *drawn = map(bytes, pages)
        _drawable.update(zip(new, (each != missing for each in drawn)))
    return {each for each in letters if not _drawable[each]}


@cache
def _fonts() -> Any:
    """Typst's fonts: the app's own, and for letters that it has not those of the system, which are
    read once."""
    import typst

    return typst.Fonts(font_paths=[str(STATIC)])


def _chunk(name: bytes, data: bytes) -> bytes:
    """A part of a PNG."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _without(parts: bytes, name: bytes) -> bytes:
    """Parts of a PNG without those of a name."""
    pieces, at = [], 0
    while at < len(parts):
        end = at + 12 + struct.unpack_from(">I", parts, at)[0]
        if parts[at + 4 : at + 8] != name:
            pieces.append(parts[at:end])
        at = end
    return b"".join(pieces)


@cache
def widths() -> dict[str, Any]:
    """The widths of the letters of the app's font, in type sizes: `letters` as one text, and a
    list for regular and for bold type."""
    regular, bold = (_advances(file.read_bytes()) for file in (REGULAR, BOLD))
    letters = [each for each in regular if each in bold]
    return {
        "letters": "".join(map(chr, letters)),
        "regular": [regular[each] for each in letters],
        "bold": [bold[each] for each in letters],
    }


def _advances(font: bytes) -> dict[int, float]:
    """The width of each letter of a TrueType font, by its code, in type sizes."""
    tables = {
        font[at : at + 4]: struct.unpack_from(">I", font, at + 8)[0]
        for at in range(12, 12 + 16 * struct.unpack_from(">H", font, 4)[0], 16)
    }
    whole = struct.unpack_from(">H", font, tables[b"head"] + 18)[0]
    n = struct.unpack_from(">H", font, tables[b"hhea"] + 34)[0]
    advance = lambda glyph: struct.unpack_from(">H", font, tables[b"hmtx"] + 4 * min(glyph, n - 1))
    return {
        letter: round(advance(glyph)[0] / whole, 4)
        for letter, glyph in _glyphs(font, tables[b"cmap"]).items()
    }


def _glyphs(font: bytes, cmap: int) -> dict[int, int]:
    """The number of the glyph of each letter, from the font's table of format 4."""
    n = struct.unpack_from(">H", font, cmap + 2)[0]
    places = [cmap + struct.unpack_from(">I", font, cmap + 8 + 8 * at)[0] for at in range(n)]
    at = next(each for each in places if struct.unpack_from(">H", font, each)[0] == 4)
    count = struct.unpack_from(">H", font, at + 6)[0] // 2
    row = lambda offset, kind="H": struct.unpack_from(f">{count}{kind}", font, at + offset)
    ends, starts = row(14), row(16 + 2 * count)
    deltas, offsets = row(16 + 4 * count), row(16 + 6 * count)
    glyphs = {}
    for segment, (start, end) in enumerate(zip(starts, ends)):
        for letter in range(start, min(end, 0xFFFE) + 1):
            glyph = letter
            if offsets[segment]:
                place = at + 16 + 6 * count + 2 * segment + offsets[segment] + 2 * (letter - start)
                glyph = struct.unpack_from(">H", font, place)[0]
            glyphs[letter] = (glyph + deltas[segment]) % 65536
    return glyphs
