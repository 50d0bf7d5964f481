"""Two recordings beside each other, head by head, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis import alignment
from explorer.analysis import comparison as comparison_analysis
from explorer.analysis.caption import caption, model_line, read_text
from explorer.analysis.comparison import (
    Nearest,
    distance_matrix,
    farthest_head,
    nearest,
    nearest_to,
)
from explorer.components import comparison as comparison_components
from explorer.components import matrix
from explorer.components.figure_caption import Picture
from explorer.html_export.document_spec import FIRST, DocumentSpec, View
from explorer.html_export.request import ExportRequest, attention_of
from explorer.text.comparison import beyond, pair_title, refusal, sentence, told
from explorer.text.markdown_escape import plain
from models.edits import to_line
from models.recording import Attention, Recording

Head = tuple[int, int]
GRIDS = "grids"
SECOND_BYTES = 260_000  # of both sides; 30 tokens and 48 heads are exact


@dataclass(frozen=True, eq=False)
class Beside:
    """Both sides on common units, each head of A with its counterpart in B: the one in its place,
    or the nearest; and of one pair the one that was chosen for it."""

    found: comparison_analysis.PatternPair
    paired: np.ndarray | None
    near: tuple[Nearest, ...]
    chosen: Mapping[Head, Head]

    def other(self, head: Head) -> Head:
        """The head of B beside one of A."""
        if head in self.chosen:
            return self.chosen[head]
        return head if self.paired is not None else nearest_to(self.near, head)

    def heads(self) -> list[Head]:
        """Every head of A."""
        return [(layer, head) for layer, head in np.ndindex(self.found.a.shape[:2])]


def comparison(asked: ExportRequest, other: Recording | None = None) -> DocumentSpec:
    """The recording, A, beside another, B. Choices: other_of (an attention, of A; `attention` is
    taken for it), other_to (of B), other_pair ("layer.head" of A, with two numbers more of B),
    other_tone.

    Raises ValueError without another recording, and where the two have no words in common.
    """
    if other is None:
        raise ValueError(
            "a comparison needs another recording: page(recording, 'comparison', other=...)"
        )
    a, b = asked.recording, other
    of_a, of_b = _attentions(asked, b)
    rows, columns = (
        alignment.align(*pair)
        for pair in zip(alignment.axes(a, of_a), alignment.axes(b, of_b), strict=True)
    )
    if refused := refusal(rows, columns):
        raise ValueError(refused)
    found = comparison_analysis.align_patterns((a, of_a), (b, of_b), rows, columns)
    paired = comparison_analysis.same_place_distances(found) if found.same_shape else None
    near = () if paired is not None else nearest(distance_matrix(found))
    pair = _chosen(asked, found)
    beside = Beside(found, paired, near, dict([pair]) if len(pair) == 2 else {})
    beside_b = model_line(b).replace("Headlight", "B", 1), f"B’s text: {read_text(b)}"
    about = (*caption(a), *beside_b)
    first = pair[0] if pair else _first(beside)
    titles = f"A · {a.model.name}", f"B · {b.model.name}"
    of = comparison_components.Grids(
        *found.weights(), found.rows.labels, found.column_labels, titles, paired
    )
    log = asked.one_of("other_tone", ("Linear", "Log")) == "Log"
    grids = comparison_components.grids(of, log, GRIDS)
    heads = beside.heads()
    return DocumentSpec(
        plain(sentence(found, paired, near)),
        tuple(filter(None, (beyond(paired, near), *about))),
        [
            View("comparison", {FIRST: grids}, column=2, place="compare"),
            View(
                "comparison",
                {numbers_of(h): _pair(beside, h) for h in heads},
                ("pair",),
                column=2,
                place="compare",
            ),
            View(
                "matrix",
                {numbers_of(h): _panels(asked, beside, h, about) for h in heads},
                ("pair",),
                (),
                2,
                "matrices",
            ),
        ],
        {"pair": numbers_of(first)},
        f"headlight-{a.model.name}-compared",
        "compare",
        _address(asked, b),
    )


def _attentions(asked: ExportRequest, b: Recording) -> tuple[Attention, Attention]:
    """What is compared of either side: as much of B as of A, where B has it and nothing else is
    chosen."""
    name = asked.choices.get("other_of") or asked.choices.get("attention", "")
    of_a = attention_of(asked.recording, name)
    same = of_a.name if of_a.name in [each.name for each in b.attention] else ""
    return of_a, attention_of(b, asked.choices.get("other_to") or same)


def _address(asked: ExportRequest, b: Recording) -> dict[str, str]:
    """Where Compare lays the same beside each other."""
    a, of = asked.recording, asked.choices.get("other_of") or asked.choices.get("attention", "")
    if b.model.name != a.model.name:
        return asked.address(other_of=of, other_what="Model", other_model=b.model.name)
    if b.text != a.text:
        return asked.address(other_of=of, other_what="Sentence", other_text=b.text)
    if a.edits and not b.edits:  # the page edits its second side, and swaps the two
        swapped = asked.address(other_of=of, other_edits=to_line(a.edits), other_swap=1)
        return {name: value for name, value in swapped.items() if name != "edits"}
    return asked.address(other_of=of, other_edits=to_line(b.edits))


def numbers_of(head: Head) -> str:
    """A head in the state of the file: "1.5"."""
    return f"{head[0]}.{head[1]}"


def _chosen(asked: ExportRequest, found: comparison_analysis.PatternPair) -> tuple[Head, ...]:
    """The head of A that was chosen, and that of B if one was; () for none. Raises ValueError for
    one that is not there."""
    pair = asked.choices.get("other_pair", "")
    parts = pair.split(".") if pair else []
    if len(parts) not in (0, 2, 4) or not all(each.isdecimal() for each in parts):
        raise ValueError(f"other_pair is {pair!r}; it can be like '1.3' or '1.3.2.0'")
    places = [int(each) for each in parts]
    heads = tuple(zip(places[::2], places[1::2]))
    for (layer, head), side in zip(heads, (found.a, found.b)):
        if layer >= side.shape[0] or head >= side.shape[1]:
            raise ValueError(f"there is no head {layer}.{head}")
    return heads


def _first(beside: Beside) -> Head:
    """The head of A that is opened where none was chosen."""
    if beside.paired is not None:
        return comparison_analysis.most_changed(beside.paired)[0]
    return farthest_head(beside.near)[0]


def _pair(beside: Beside, head: Head) -> bytes:
    other = beside.other(head)
    distance = comparison_analysis.pair_distance(beside.found, head, other)
    return comparison_components.pair(
        head,
        other,
        title=pair_title(head, other, distance),
        words=told(comparison_analysis.largest_row_change(beside.found, head, other)),
        token=f"pair {numbers_of(head)}",
        picture=GRIDS,
    )


def _panels(asked: ExportRequest, beside: Beside, head: Head, about: tuple[str, ...]) -> bytes:
    other = beside.other(head)
    one, two = comparison_analysis.name(head), comparison_analysis.name(other)
    a, b, change, top, far = comparison_analysis.pair_matrices(beside.found, head, other)
    found = beside.found
    spare = SECOND_BYTES // (2 * len(beside.heads()))
    return matrix.panels(
        [
            matrix.MatrixPanel(f"A · {one}", a, 0.0, top, spare=spare),
            matrix.MatrixPanel(f"B · {two}", b, 0.0, top, spare=spare),
            matrix.MatrixPanel("B − A", change, -far, far, less=(0, 1)),
        ],
        matrix.MatrixSheet(
            found.rows.labels,
            found.column_labels,
            [False] * len(found.column_labels),
            ("row", "column"),
            digits=3,
            choose=False,
        ),
        Picture(
            f"A’s {one}, B’s {two}, and B − A",
            about,
            f"headlight-{asked.recording.model.name}-compared-{numbers_of(head)}",
            f"panels {numbers_of(head)}",
        ),
    )
