"""A head taken apart, cell by cell: the Anatomy page as a file."""

from __future__ import annotations

import numpy as np

from explorer.analysis import head_naming
from explorer.analysis.anatomy import (
    HeadOutputs,
    Outputs,
    WeightBreakdown,
    cell,
    facts,
    head_outputs,
    largest_products,
    vectors,
)
from explorer.analysis.attention import Axes, strongest_cell
from explorer.analysis.caption import caption
from explorer.components import anatomy as anatomy_components
from explorer.components.figure_caption import Picture
from explorer.html_export.document_spec import FIRST, DocumentSpec, Line, TextLines, View
from explorer.html_export.request import ExportRequest
from explorer.text import anatomy as anatomy_text
from explorer.text.capability_messages import WEIGHTS_ALONE, WHICH_TENSORS
from explorer.text.markdown_escape import plain
from models.recording import Attention

MOST_CELLS = 1000  # of a head that are taken apart in one file; of more, the strongest of each row
NOT_HERE = "This cell is not in the file: of a long text it holds the strongest cells of each row."
NO_OUTPUT = (
    f"This model does not give its W_O here: {WHICH_TENSORS.format('that is')}. "
    "So the steps end at z."
)


def anatomy(asked: ExportRequest) -> DocumentSpec:
    """One head's weights, each cell to be opened. Choices: attention, layer, head, token,
    anatomy_cell ("query.key").

    Raises ValueError for a model that does not give its queries, keys and values.
    """
    recording, attention = asked.recording, asked.attention()
    if not attention.opens:
        raise ValueError(
            f"{recording.model.name} gives its weights but not its queries, keys and values: "
            f"{WEIGHTS_ALONE}"
        )
    at = _head(asked, attention)
    axes = asked.axes(attention)
    query, key = _first(asked, attention, at, axes)
    cells = _cells(attention, at, (query, key))
    outputs = _outputs(asked, attention)
    told: dict[str, list[Line]] = {"": [("p", NOT_HERE)]}
    stories = {}
    about = caption(recording, subject=f"{attention.name}-attention, layer {at[0]}, head {at[1]}")
    for row in sorted({q for q, _ in cells}):
        done = outputs and head_outputs(recording, attention, at[0], row, outputs)
        for column in [k for q, k in cells if q == row]:
            opened = cell(recording, attention, *at, row, column)
            title = _title(opened, axes)
            name = f"{row} {column}"
            told[name] = [
                ("h2", title),
                *(("p", plain(line)) for line in anatomy_text.in_short(opened, done)),
            ]
            stories[name] = _story(asked, attention, opened, done, outputs, axes, (title, *about))
    matrix = anatomy_components.matrix(
        attention.pattern[at],
        attention.allowed,
        axes.rows,
        axes.keys,
        about=f"Weights of layer {at[0]}, head {at[1]}",
        sides=axes.sides,
        token="anatomy matrix",
    )
    return DocumentSpec(
        f"Why is this weight what it is? Layer {at[0]}, head {at[1]}",
        about,
        [
            View("anatomy", {FIRST: matrix}),
            TextLines(told, ("query", "key"), 1),
            View("anatomy", stories, ("query", "key"), column=2),
        ],
        {"query": query, "key": key},
        f"headlight-{recording.model.name}-anatomy-L{at[0]}H{at[1]}",
        "anatomy",
        asked.address(layer=at[0], head=at[1], token=query, anatomy_cell=f"{query}.{key}"),
    )


def _head(asked: ExportRequest, attention: Attention) -> tuple[int, int]:
    layer, head = (asked.whole(name, n) for name, n in zip(("layer", "head"), attention.q.shape))
    if layer is not None and head is not None:
        return layer, head
    best = max(head_naming.describe(asked.recording, attention), key=head_naming.clarity)
    return best.layer, best.head


def _first(
    asked: ExportRequest, attention: Attention, at: tuple[int, int], axes: Axes
) -> tuple[int, int]:
    """The cell that is open at first. Raises ValueError for one that is not there."""
    row = asked.whole("token", len(axes.rows))
    query, _, key = asked.choices.get("anatomy_cell", "").partition(".")
    if query.isdecimal() and key.isdecimal():
        cell = int(query), int(key)
        if cell[0] < len(axes.rows) and cell[1] < len(axes.keys):
            return cell
        raise ValueError(f"there is no cell {query}.{key}")
    return strongest_cell(attention.pattern[at], attention.allowed, row, None)


def _cells(
    attention: Attention, at: tuple[int, int], first: tuple[int, int]
) -> set[tuple[int, int]]:
    """The cells that the file opens: all that are allowed, or of each row the strongest."""
    allowed = attention.allowed
    each = max(1, MOST_CELLS // len(allowed))
    if allowed.sum() <= MOST_CELLS:
        each = allowed.shape[1]
    order = np.argsort(-attention.pattern[at], axis=1, kind="stable")[:, :each]
    found = {(q, int(k)) for q, row in enumerate(order) for k in row if allowed[q, k]}
    return found | {first}


def _outputs(asked: ExportRequest, attention: Attention) -> Outputs | None:
    try:
        return asked.model.outputs().get(attention.name)
    except (ValueError, AttributeError):
        return None


def _title(opened: WeightBreakdown, axes: Axes) -> str:
    weight = anatomy_text.say_weight(opened.weights[opened.key])
    query, key = axes.rows[opened.query], axes.keys[opened.key]
    return f"Query {query} ({opened.query}) gives key {key} ({opened.key}) the weight {weight}"


def _story(
    asked: ExportRequest,
    attention: Attention,
    opened: WeightBreakdown,
    done: HeadOutputs | None,
    outputs: Outputs | None,
    axes: Axes,
    about: tuple[str, ...],
) -> bytes:
    masks = not attention.allowed.all()
    reasons = anatomy_text.reasons(opened, attention.allowed)
    told = {
        **facts(opened, done, axes.rows, axes.keys),
        **{f"{name}Why": line for name, line in reasons.items()},
        "masks": masks,
        "missing": NO_OUTPUT,
        "dividing": anatomy_text.dividing(opened),
        "best": list(largest_products(opened)),
        "formulas": anatomy_text.formulas(opened, done),
        "alone": True,
    }
    own = None if done is None or outputs is None else outputs[0][opened.layer, opened.head]
    place = f"L{opened.layer}H{opened.head}-q{opened.query}k{opened.key}"
    file = f"headlight-{asked.recording.model.name}-{place}"
    picture = Picture(about[0], about[1:], file, f"story {opened.query} {opened.key}")
    return anatomy_components.story(told, vectors(opened, done), own, picture, "anatomy matrix")
