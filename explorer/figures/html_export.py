"""One HTML document that needs nothing else: its style, its code, its data, and a policy that lets
it ask for nothing."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape, unescape
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np

from explorer.components import bundle, codec
from explorer.wording.markdown_escape import in_html
from models.version import VERSION

STYLE = Path(__file__).with_name("html_export.css")
STATIC = Path(__file__).parents[1] / "app" / "static"
OF_A_FORMULA = b'"data-symbol"'  # stands in what a view with formulas sends
# Nothing but what stands in the file: no request can leave it, whatever its text says.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; connect-src data:; base-uri 'none'; form-action 'none'"
)
FRAME_HEIGHT = 860  # pixels of the frame that a notebook draws a document in


class Document(str):
    """The text of one HTML document. A notebook draws it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Headlight document {self.heading!r}, {len(self):,} characters>"

    @property
    def heading(self) -> str:
        """The document's title, without the project's name."""
        match = re.search(r"<title[^>]*>(.*?)( · Headlight)?</title>", self)
        return unescape(match[1]) if match else ""

    def _repr_html_(self) -> str:
        """As `framed`."""
        return self.framed()

    def framed(self, still: str = "") -> str:
        """The document in a frame, over a sentence that is seen where frames are not shown, with a
        `still` picture of it as SVG. What is in the frame runs as a page of its own, and can reach
        neither the notebook nor the network."""
        whole = f"width:100%;height:{FRAME_HEIGHT}px;border:0"
        picture = ""
        if still:
            data = b64encode(still.encode()).decode()
            size = f"max-width:100%;max-height:{FRAME_HEIGHT - 100}px"
            picture = (
                f'<img src="data:image/svg+xml;base64,{data}" style="{size}" '
                f'alt="{escape(self.heading)}">'
            )
        return (
            f'<div style="position:relative;min-height:{FRAME_HEIGHT}px">'
            f"<p>{escape(self.heading)}: "
            "this viewer shows no frames. Write the view to a file and open it in a browser: "
            '<code>open("view.html", "w", encoding="utf-8").write(page)</code>, or '
            f'<code>panel.save("view.html")</code>.</p>{picture}'
            f'<iframe srcdoc="{escape(self)}" sandbox="allow-scripts allow-downloads" '
            f'style="position:absolute;inset:0;{whole}" title="Headlight"></iframe></div>'
        )


def document(sheets: DocumentSpec | Sequence[DocumentSpec], link: str = "") -> Document:
    """Write the file's text, of one sheet, or of several of which one is open at a time. `link`:
    where a Headlight is that shows the same, such as an address of http or https; "" for none.
    Raises ValueError for no sheet."""
    listed = [sheets] if isinstance(sheets, DocumentSpec) else list(sheets)
    if not listed:
        raise ValueError("a document needs a sheet")
    first, contents = listed[0], [packed(each) for each in listed]
    components = {
        part.component for each in listed for part in each.parts if isinstance(part, View)
    }
    components |= {"worksheet"} if first.paper else set()
    code = json.dumps(import_map(sorted(components)))
    title = escape(first.title if len(listed) == 1 else f"{len(listed)} texts")
    has_formulas = any(OF_A_FORMULA in each for each in contents)
    return Document(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f'<meta name="generator" content="Headlight {VERSION}">\n'
        f'<title translate="no">{title} · Headlight</title>\n'
        f"<style>\n{_style(has_formulas)}</style>\n"
        f'<script type="importmap">{code}</script>\n</head>\n'
        f"<body{' class=paper' * first.paper}>\n"
        f"{_choice(listed)}<header>{_each(listed, _heading)}"
        '<button id="colours" type="button">Dark</button></header>\n'
        "<main><div></div><div></div><div></div></main>\n"
        "<noscript><p>A script in the file draws it. Allow scripts to see it.</p></noscript>\n"
        f"<footer>{_each(listed, lambda sheet: _foot(sheet, link))}</footer>\n"
        f"{''.join(map(_data, contents))}"
        f'<script type="module">import {{ open }} from "headlight/{HOST}.js"; open();</script>\n'
        "</body>\n</html>\n"
    )


def _choice(sheets: Sequence[DocumentSpec]) -> str:
    """Write the list from which one of several sheets is opened."""
    if len(sheets) == 1:
        return ""
    options = "".join(f"<option>{escape(_holdable(each.name))}</option>" for each in sheets)
    return f'<select id="texts" aria-label="Text" dir="auto">{options}</select>\n'


def _each(sheets: Sequence[DocumentSpec], write: Callable[[DocumentSpec], str]) -> str:
    """Write what belongs to each sheet, all but the first hidden."""
    return "".join(
        f"<div data-sheet={at}{' hidden' * (at > 0)}>{write(each)}</div>"
        for at, each in enumerate(sheets)
    )


def _heading(sheet: DocumentSpec) -> str:
    return f'<h1 dir="auto">{in_html(sheet.title)}</h1>'


def _foot(sheet: DocumentSpec, link: str) -> str:
    caption = "".join(f"<p dir=auto>{in_html(_holdable(line))}</p>" for line in sheet.caption)
    return f"{caption}<p>Made with Headlight {VERSION}</p>{_back(sheet, link)}"


def _data(content: bytes) -> str:
    data = b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode()
    return f'<script type="application/octet-stream" class="data">{data}</script>\n'


def _holdable(text: str) -> str:
    """Remove from a text what HTML cannot hold."""
    return "".join(
        "\ufffd" if "\ud800" <= each <= "\udfff" or each == "\0" else each for each in text
    )


def _back(sheet: DocumentSpec, link: str) -> str:
    """Write the way back to Headlight: a link where its address is known, else what is to be put
    behind that address."""
    query = {name: _holdable(str(value)) for name, value in sheet.query.items()}
    where = "/" + ("?" + urlencode(query) if query else "")
    if urlsplit(link).scheme in ("http", "https"):
        address = escape(link.rstrip("/") + where if sheet.query else link)
        return f'<p><a href="{address}" rel="noopener noreferrer">Open it in Headlight</a></p>'
    return f"<p>In Headlight: <code>{escape(where)}</code></p>"


def _font(family: str, file: str, more: str = "") -> str:
    """Write a font's file into a style."""
    data = b64encode((STATIC / file).read_bytes()).decode()
    return f"@font-face{{font-family:{family};{more}src:url(data:font/woff2;base64,{data})}}\n"


@cache
def fonts(formulas: bool) -> str:
    """Write the screen's font into a style, and where there are formulas theirs."""
    written = _font("Inter", "inter.woff2", "font-weight:100 900;")
    return written + (_font("Formulas", "formulas.woff2") if formulas else "")


@cache
def _style(formulas: bool) -> str:
    """Write the document's own style with the app's colours and its font; with that of its
    formulas where it has some."""
    return fonts(formulas) + bundle.theme() + STYLE.read_text("utf-8")


Line = tuple[str, str]  # the name of an element and its text


@dataclass(frozen=True, eq=False)
class View:
    """A component, and what its payload function made. column: 0 left, 1 right, 2 below both."""

    component: str
    data: bytes
    column: int = 0


@dataclass(frozen=True)
class TextLines:
    """Lines of text, each with the name of its element, such as ("h2", "Layer 1, head 5"). look:
    the class that the document's style sets them by."""

    lines: Sequence[Line]
    column: int = 0
    look: str = ""


Part = View | TextLines


@dataclass(frozen=True, eq=False)
class DocumentSpec:
    """A whole file: its title, its caption in lines, and its parts in the order they stand in.
    query: the address of the same in Headlight. name: what it is called among others. paper: it is
    to be printed, and as wide as a page."""

    title: str
    caption: Sequence[str]
    parts: Sequence[Part]
    query: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    paper: bool = False


def packed(sheet: DocumentSpec) -> bytes:
    """Pack all parts into one message of `codec`: equal blocks of numbers, of whatever view, are in
    it once."""
    pool: dict[bytes, str] = {}
    blocks: dict[str, np.ndarray] = {}

    def placed(array: np.ndarray) -> str:
        key = hashlib.sha256(array.dtype.str.encode() + array.tobytes()).digest()
        if key not in pool:
            pool[key] = str(len(pool))
            blocks[pool[key]] = array
        return pool[key]

    parts = []
    for part in sheet.parts:
        plain: dict[str, object] = {"component": "", "column": part.column}
        if isinstance(part, View):
            header, arrays = codec.decode(part.data)
            places = {name: placed(array) for name, array in arrays.items()}
            plain |= {"kind": "view", "component": part.component, "data": [header, places]}
        else:
            plain |= {"kind": "words", "lines": part.lines, "look": part.look}
        parts.append(plain)
    return codec.encode({"parts": parts}, blocks)


HOST = "standalone_host"
# Modules import each other by names relative to their folder, which a data address has not.
IMPORT = re.compile(r'^((?:import|export)\b[^"\';]*?|\} from\s*)"\./([\w.]+)"', re.MULTILINE)


def import_map(components: Iterable[str]) -> dict[str, dict[str, str]]:
    """Make an import map with the host, the components and whatever they import. Raises ValueError
    for a component that does not exist."""
    modules: dict[str, str] = {}
    left = [f"{name}.js" for name in (HOST, *components)]
    while left:
        name = left.pop()
        if name in modules:
            continue
        if name not in bundle.modules():
            raise ValueError(f"there is no component {name.removesuffix('.js')!r}")
        code = bundle.modules()[name].decode("utf-8")
        left += [match[2] for match in IMPORT.finditer(code)]
        code = IMPORT.sub(r'\1"headlight/\2"', code)
        modules[name] = (
            "data:text/javascript;charset=utf-8;base64," + b64encode(code.encode()).decode()
        )
    return {"imports": {f"headlight/{name}": modules[name] for name in sorted(modules)}}
