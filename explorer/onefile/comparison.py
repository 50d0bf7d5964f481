"""Two recordings beside each other, head by head, as a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis import alignment
from explorer.analysis import compare as numbers
from explorer.analysis import nearest as pairs
from explorer.analysis.caption import caption, model_line, read_text
from explorer.components import compare as pictures
from explorer.components import matrix as maps
from explorer.components.picture import Picture
from explorer.onefile.asked import Asked, attention_of
from explorer.onefile.sheet import FIRST, Sheet, View
from explorer.sentences import compare as sentences
from explorer.sentences.escape import plain
from models.recording import Recording
from models.written_edits import to_line

Head = tuple[int, int]
GRIDS = "grids"
SECOND_BYTES = 260_000  # of both sides; 30 tokens and 48 heads are exact


@dataclass(frozen=True, eq=False)
class Beside:
    """Both sides on common units, each head of A with its counterpart in B: the one in its place,
    or the nearest."""

    found: numbers.Sides
    paired: np.ndarray | None
    near: tuple[pairs.Nearest, ...]

    def other(self, head: Head) -> Head:
        """The head of B beside one of A."""
        return head if self.paired is not None else pairs.nearest_to(self.near, head)

    def heads(self) -> list[Head]:
        """Every head of A."""
        return [(layer, head) for layer, head in np.ndindex(self.found.a.shape[:2])]


def comparison(asked: Asked, other: Recording | None = None) -> Sheet:
    """The recording, A, beside another, B. Choices: attention, other_pair ("layer.head", of A),
    other_tone.

    Raises ValueError without another recording, and where the two have no words in common.
    """
    if other is None:
        raise ValueError(
            "a comparison needs another recording: page(recording, 'comparison', other=...)"
        )
    a, b = asked.recording, other
    of_a, of_b = asked.attention(), attention_of(b, asked.choices.get("other_of", ""))
    rows, columns = (
        alignment.align(*pair)
        for pair in zip(alignment.axes(a, of_a), alignment.axes(b, of_b), strict=True)
    )
    if refused := sentences.refusal(rows, columns):
        raise ValueError(refused)
    found = numbers.sides((a, of_a), (b, of_b), rows, columns)
    paired = numbers.paired(found) if found.same_shape else None
    near = () if paired is not None else pairs.nearest(pairs.distances(found))
    beside = Beside(found, paired, near)
    beside_b = model_line(b).replace("Headlight", "B", 1), f"B’s text: {read_text(b)}"
    about = (*caption(a), *beside_b)
    first = _first(asked, beside)
    titles = f"A · {a.model.name}", f"B · {b.model.name}"
    of = pictures.Grids(*found.weights(), found.rows.labels, found.column_labels, titles, paired)
    log = asked.one_of("other_tone", ("Linear", "Log")) == "Log"
    grids = pictures.grids(of, log, GRIDS)
    heads = beside.heads()
    return Sheet(
        plain(sentences.sentence(found, paired, near)),
        tuple(filter(None, (sentences.beyond(paired, near), *about))),
        [
            View("compare", {FIRST: grids}, column=2),
            View("compare", {numbers_of(h): _pair(beside, h) for h in heads}, ("pair",), column=2),
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


def _address(asked: Asked, b: Recording) -> dict[str, str]:
    """Where Compare lays the same beside each other."""
    if b.model.name != asked.recording.model.name:
        return asked.address(other_what="Model", other_model=b.model.name)
    if b.text != asked.recording.text:
        return asked.address(other_what="Sentence", other_text=b.text)
    return asked.address(other_what="", other_edits=to_line(b.edits))


def numbers_of(head: Head) -> str:
    """A head in the state of the file: "1.5"."""
    return f"{head[0]}.{head[1]}"


def _first(asked: Asked, beside: Beside) -> Head:
    layer, _, head = asked.choices.get("other_pair", "").partition(".")
    if layer.isdecimal() and head.isdecimal():
        chosen = int(layer), int(head)
        if chosen in beside.heads():
            return chosen
        raise ValueError(f"there is no head {layer}.{head}")
    if beside.paired is not None:
        return numbers.most_changed(beside.paired)[0]
    return pairs.farthest_head(beside.near)[0]


def _pair(beside: Beside, head: Head) -> bytes:
    other = beside.other(head)
    distance = numbers.pair_distance(beside.found, head, other)
    return pictures.pair(
        head,
        other,
        title=sentences.pair_title(head, other, distance),
        words=sentences.told(numbers.change(beside.found, head, other)),
        token=f"pair {numbers_of(head)}",
        picture=GRIDS,
    )


def _panels(asked: Asked, beside: Beside, head: Head, about: tuple[str, ...]) -> bytes:
    other = beside.other(head)
    one, two = numbers.name(head), numbers.name(other)
    a, b, change, top, far = numbers.pair_matrices(beside.found, head, other)
    found = beside.found
    spare = SECOND_BYTES // (2 * len(beside.heads()))
    return maps.panels(
        [
            maps.Panel(f"A · {one}", a, 0.0, top, spare=spare),
            maps.Panel(f"B · {two}", b, 0.0, top, spare=spare),
            maps.Panel("B − A", change, -far, far, less=(0, 1)),
        ],
        maps.Sheet(
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
