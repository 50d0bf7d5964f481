"""All heads with one opened, and what is worth a look: the Attention page as a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis import head_naming
from explorer.analysis.attention import DisplayOptions, HeadSelection, HeadView, head_view
from explorer.analysis.caption import caption
from explorer.analysis.findings import Finding, Link, is_trained, select_findings, strongest_link
from explorer.components import codec, head
from explorer.components.figure_caption import Picture
from explorer.components.heads import HeadGrid, payload
from explorer.html_export.document_spec import (
    FIRST,
    SECOND_BYTES,
    ButtonRow,
    DocumentSpec,
    Line,
    Part,
    TextLines,
    View,
)
from explorer.html_export.findings import found_in
from explorer.html_export.request import ExportRequest
from explorer.text.attention import summary
from explorer.text.findings import evidence, headline, marked
from explorer.text.head_naming import figures
from explorer.text.markdown_escape import plain
from models.recording import Attention, Recording

AS = ("Lines", "Matrix", "Both")  # how a head is drawn
MOST_FINDINGS = 5


def heads(asked: ExportRequest) -> DocumentSpec:
    """Every head of an attention, small and opened. Choices: attention, layer, head, token, view
    (one of AS)."""
    found = [one for one in found_in(asked) if one.page == "attention"]
    return _sheet(asked, select_findings(found, MOST_FINDINGS), "All heads")


def findings(asked: ExportRequest) -> DocumentSpec:
    """Document of a recording's findings, each with its evidence, and the head that shows it.
    Choices as of `heads`."""
    found = found_in(asked)
    elsewhere = [one for one in found if one.page != "attention"]
    lines = [("h2", "Found elsewhere in the model")] if elsewhere else []
    for one in elsewhere:
        lines += [
            ("strong", headline(one, _quoted)),
            ("p", evidence(one, _quoted)),
        ]
    here = [one for one in found if one.page == "attention"]
    return _sheet(asked, here, "Findings", [TextLines({FIRST: lines})] if lines else [])


def _sheet(
    asked: ExportRequest, found: Sequence[Finding], title: str, more: Sequence[Part] = ()
) -> DocumentSpec:
    recording, attention = asked.recording, asked.attention()
    here = [one for one in found if one.attention == attention.name]
    axes = asked.axes(attention)
    every = head_naming.describe(recording, attention)
    views = [
        head_view(recording, attention, head, axes, DisplayOptions(), HeadSelection(), asked.target)
        for head in every
    ]
    first = here[0] if here else None
    at = _opened(asked, attention, every, first)
    row = asked.whole("token", len(axes.rows))
    if row is None and first is not None and at == first.at and first.query >= 0:
        row = first.query
    pin = -1 if row is None else row
    shown = asked.one_of("view", AS).lower()
    hints = _hints(axes.said is not None)
    linked = _links(recording, attention, every)
    parts: list[Part] = [
        *([ButtonRow("Worth a look", [_step(one) for one in here], listed=True)] if here else []),
        View("heads", {FIRST: _grid(asked, attention, every)}),
        *more,
        TextLines(
            {_key(view): _told(asked, attention, view, linked) for view in views}, ("head",), 1
        ),
        ButtonRow("View", [_as(name, hints) for name in AS], column=1),
        View(
            "head",
            {_key(view): _matrix(asked, view, len(views)) for view in views},
            ("head",),
            ("pin", "column", "cell", "view", "hint"),
            1,
        ),
    ]
    state = {"head": f"{at[0]}.{at[1]}", "pin": pin, "column": pin if axes.said is None else -1}
    return DocumentSpec(
        headline(first, _quoted) if first else f"{title} of {recording.model.name}",
        caption(recording, subject=f"{attention.name}-attention"),
        parts,
        state | {"cell": None, "view": shown, "hint": hints[shown]},
        f"headlight-{recording.model.name}-{title.lower().replace(' ', '-')}",
        "",
        asked.address(layer=at[0], head=at[1], token="" if pin < 0 else pin),
    )


def _links(
    recording: Recording, attention: Attention, every: Sequence[head_naming.Head]
) -> dict[tuple[int, int], Link]:
    """Each head's word that looks most plainly at another, where weights were learned."""
    if not is_trained(recording):
        return {}
    each = {(one.layer, one.head): strongest_link(recording, attention, one) for one in every}
    return {at: link for at, link in each.items() if link is not None}


def _key(view: HeadView) -> str:
    return f"{view.head.layer}.{view.head.head}"


def _opened(
    asked: ExportRequest,
    attention: Attention,
    every: Sequence[head_naming.Head],
    first: Finding | None,
) -> tuple[int, int]:
    """The head that is opened first, as on the page: the one chosen, that of the strongest finding,
    or the clearest."""
    n_layer, n_head = attention.pattern.shape[:2]
    layer, head = asked.whole("layer", n_layer), asked.whole("head", n_head)
    if layer is not None and head is not None:
        return layer, head
    if first is not None:
        return first.at
    best = max(every, key=head_naming.clarity)
    return best.layer, best.head


def _grid(asked: ExportRequest, attention: Attention, every: Sequence[head_naming.Head]) -> bytes:
    axes = asked.axes(attention)
    return payload(
        HeadGrid(
            attention.pattern,
            attention.allowed,
            every,
            axes.rows,
            axes.keys,
            "head",
            False,
            f"grid {attention.name}",
            axes.said is not None,
        )
    )


def _matrix(asked: ExportRequest, view: HeadView, n_views: int) -> bytes:
    """One head's matrix with nothing held, in about a byte a cell where there are many heads."""
    shown = view.matrix_view
    axes = shown.axes
    matrix = head.HeadMatrix(
        shown.matrix, shown.allowed, axes.rows, axes.keys, axes.special, axes.said
    )
    name = f"{view.attention} {_key(view)}"
    data = head.payload(
        matrix,
        (view.head.layer, view.head.head),
        head.PinnedCell(evidence=view.evidence),
        head.HeadAppearance("lines"),
        Picture(view.title, view.caption, view.file, name),
    )
    header, blocks = codec.decode(data)
    others = {name: each for name, each in blocks.items() if name in ("runs", "hidden")}
    return codec.encode(
        header, codec.fine(np.array(shown.matrix), SECOND_BYTES // n_views) | others
    )


def _told(
    asked: ExportRequest, attention: Attention, view: HeadView, links: dict[tuple[int, int], Link]
) -> list[Line]:
    """The lines above a head: its name, what speaks for it, and what is measured of it."""
    head, meanings = view.head, head_naming.meanings(asked.recording, attention)
    link = links.get((head.layer, head.head))
    return [
        ("h2", f"Layer {head.layer}, head {head.head}"),
        ("p", plain(summary(head, meanings, link))),
        ("p", plain(figures(head))),
    ]


def _step(one: Finding) -> tuple[str, str, dict]:
    """A finding as a button that opens its head and holds its word."""
    across = one.attention == "cross"
    cell = [one.query, one.keys[0]] if one.query >= 0 and one.keys else None
    held = {"pin": one.query, "column": -1 if across else one.query, "cell": cell}
    chosen = {"head": f"{one.layer}.{one.head}", **held}
    return headline(one, _quoted), evidence(one, _quoted), chosen


def _hints(across: bool) -> dict[str, str]:
    told, other = (
        (head.HINT_ACROSS, head.HINT_ACROSS_ELSE) if across else (head.HINT, head.HINT_ELSE)
    )
    pointed = {"lines": "lines", "matrix": "matrix", "both": "matrix"}
    return {name: told.get(kind, other) for name, kind in pointed.items()}


def _as(name: str, hints: dict[str, str]) -> tuple[str, str, dict]:
    return name, "", {"view": name.lower(), "hint": hints[name.lower()]}


def _quoted(word: str) -> str:
    """A word of the text, in quotation marks; one that is written from right to left turns nothing
    beside it."""
    return f"“{plain(marked(word))}”"
