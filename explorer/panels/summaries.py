"""Panels on attention aggregated over heads: its mean, rollout and others, and what heads write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import attention, summaries
from explorer.analysis.attention import TOKEN_FILTERS, MatrixView
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.terminology import mask_reason
from explorer.figures.formatting import fixed, hundredths, percent, signed
from explorer.figures.kinds import BarRow, Bars, Figure, Matrix, TextTable
from explorer.panels import spec
from explorer.panels.attention import TOKENS
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import FirstAttention, Selection, Word, WordOrEvery, select
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Recording
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

CONCEPT = "summaries"
KINDS = {
    "Mean": "Mean",
    "Max": "Max",
    "Rollout": "Rollout",
    "Flow": "Flow",
    "Values": "Weight × value",
}
# Tokens that can be left out of the matrix of many heads.
SHARED = {name: TOKEN_FILTERS[name] for name in ("All", "Quiet", "No specials")}
AGGREGATE = "`Writes` (the output of each head), or how heads are aggregated"
THROUGH_LAYERS = ("Rollout", "Flow")
MEASURES = {"Length": "Norm", "Share": "Signed share"}
N_KEYS, N_ROWS = 8, 12


@dataclass(frozen=True, eq=False)
class Aggregation:
    """One matrix out of many: its kind, its values (query, key), and the matrix on show."""

    selection: Selection
    kind: str
    layer: int | None
    head: int | None
    values: np.ndarray
    view: MatrixView

    @property
    def scope(self) -> str:
        """Over which layers and heads, in words."""
        words = sentences(CONCEPT, "aggregated")
        if self.layer is None:
            return words("all_layers")
        if self.head is not None:
            return words("one_head", layer=self.layer, head=self.head)
        name = "up_to" if self.kind in THROUGH_LAYERS else "one_layer"
        return words(name, layer=self.layer)

    @property
    def title(self) -> str:
        """Title of the matrix."""
        return sentences(CONCEPT, "aggregated")(self.kind.lower())

    @property
    def query(self) -> int:
        """The selected query, the first one on show where it is left out."""
        token = self.selection.query
        return token if self.view.row_of(token) >= 0 else self.view.row_tokens[0][0]

    @property
    def shown(self) -> list[int]:
        """The keys on show that the query may attend to, but for itself where there are others."""
        allowed = self.selection.attention.reachable[self.query]
        every = [at for at in range(len(allowed)) if self.view.column_of(at) >= 0]
        own = -1 if self.selection.is_across else self.query
        others = [at for at in every if at != own and allowed[at]]
        return others or every

    @property
    def key(self) -> int:
        """The key that the headline names, of those on show the one with the largest value."""
        return max(self.shown, key=self.values[self.query].__getitem__)


def _layer_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """All layers, and each: by itself, or up to it in what goes through layers."""
    n = select(run, attention=chosen.get("attention", "")).attention.pattern.shape[0]
    name = "Up to layer" if chosen.get("kind") in THROUGH_LAYERS else "Layer"
    return {None: "All layers", **{layer: f"{name} {layer}" for layer in range(n)}}


def _head_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """All heads, and of the values of one layer each head."""
    n = select(run, attention=chosen.get("attention", "")).attention.pattern.shape[1]
    one = chosen.get("kind") == "Values" and chosen.get("layer") is not None
    return {None: "All heads", **{head: f"Head {head}" for head in range(n if one else 0)}}


@spec.panel
def aggregated(
    run: Run,
    kind: Annotated[str, Choice(KINDS, name="sum_what", help=AGGREGATE)] = "Mean",
    token: Word = OPENS,
    layer: Annotated[
        int | None, Choice(_layer_options, "Layer", name="sum_layer", menu=True)
    ] = None,
    head: Annotated[int | None, Choice(_head_options, "Head", name="sum_head", menu=True)] = None,
    tokens: Annotated[str, replace(TOKENS, options=SHARED, help="", name="sum_keep")] = "Quiet",
    attention: FirstAttention = OPENS,
) -> Panel:
    """All heads in one matrix, with one query by mean, rollout and share of the output.

    kind: one of KINDS. layer: one layer, or up to it; None for all. head: of kind "Values" alone.
    tokens: those that are shown, one of SHARED. Raises ValueError for what is not there, for
    rollout and flow between two texts, and for a flow that takes too long.
    """
    selection = select(run, layer or 0, head or 0, token, attention)
    layer = None if layer is None else selection.layer
    head = None if head is None else selection.head
    words = sentences(CONCEPT, "aggregated")
    title = words(kind.lower())
    if kind in THROUGH_LAYERS and selection.is_across:
        raise ValueError(words("across", title=title))
    if kind == "Values" and not loaded(selection.recording).shows_writes(selection.recording):
        raise ValueError(words("closed", model=selection.model))
    of = selection.attention
    if kind == "Flow" and summaries.flow_work(of, layer) > summaries.MAX_FLOW_WORK:
        raise ValueError(words("too_long", n=of.pattern.shape[2]))
    head = head if kind == "Values" and layer is not None else None
    aggregation = _aggregate(selection, kind, layer, head, tokens)
    figures: tuple[Figure, ...] = (_matrix(aggregation), _comparison(aggregation))
    return Panel(
        title=title,
        finding=_trust_sentence(aggregation),
        figures=figures,
        table=_columns(aggregation),
        details=_cautions(aggregation),
        caption=(
            words(
                "caption",
                title=title,
                scope=aggregation.scope,
                meaning=words(f"{kind.lower()}_meaning"),
            ),
            *_left_out(aggregation),
        ),
        file="-".join([kind.lower(), *aggregation.scope.replace(",", "").split()]),
    )


def _aggregate(
    selection: Selection, kind: str, layer: int | None, head: int | None, tokens: str
) -> Aggregation:
    of = selection.attention
    values = _values(selection.recording, of.name, kind, layer, head)
    sinks = selection.facts.shared_sinks(of.name)
    allowed = summaries.allowed_cells(of, kind in THROUGH_LAYERS, layer)
    view = attention.matrix_view(values, allowed, selection.axes, None, tokens, False, sinks)
    return Aggregation(selection, kind, layer, head, values, view)


@kept
def _values(
    recording: Recording, attention: str, kind: str, layer: int | None, head: int | None
) -> np.ndarray:
    of = RecordingFacts(recording).attention(attention)
    if kind == "Values":
        w_o, _ = loaded(recording).outputs()[of.name]
        return summaries.norms(of, w_o, layer, head)
    if kind == "Flow":
        return summaries.flow(of, range(of.pattern.shape[2]), layer)
    return {"Mean": summaries.mean, "Max": summaries.largest, "Rollout": summaries.rollout}[kind](
        of, layer
    )


def _matrix(aggregation: Aggregation) -> Matrix:
    view = aggregation.view
    key = aggregation.key
    mark = (view.row_of(aggregation.query), view.column_of(key), "")
    return Matrix(
        select=("token", "source"),
        rows=view.axes.rows,
        columns=view.axes.keys,
        values=np.where(view.allowed, view.matrix, np.nan),
        high=summaries.scale_maximum(view.matrix, aggregation.kind),
        marks=(mark,) if min(mark[:2]) >= 0 else (),
        sides=view.axes.sides,
        missing=mask_reason(view.allowed),
        digits=2,
    )


def _comparison(aggregation: Aggregation) -> Bars:
    """One query by mean, by rollout and by the share of the output, as far as they are defined."""
    words = sentences(CONCEPT, "aggregated")
    selection, query = aggregation.selection, aggregation.query
    columns = {words("mean_column"): summaries.mean(selection.attention)[query]}
    is_mean = aggregation.kind == "Mean" and aggregation.layer is None
    if is_mean:
        columns = {"": aggregation.values[query]}
    elif not selection.is_across:
        columns[words("rollout_column")] = summaries.rollout(selection.attention)[query]
    if not is_mean and loaded(selection.recording).shows_writes(selection.recording):
        columns[words("output_column")] = _output_shares(selection)[query]
    largest = np.max(list(columns.values()), axis=0)
    is_shown = [aggregation.view.column_of(at) >= 0 for at in range(len(largest))]
    seen = (selection.attention.reachable[query] | (largest > 0)) & is_shown
    order = np.argsort(-largest, kind="stable")
    keys = sorted(order[seen[order]][:N_KEYS].tolist())
    rows = tuple(
        BarRow(
            selection.axes.keys[key],
            tuple(float(each[key]) for each in columns.values()),
            tuple(hundredths(float(each[key])) for each in columns.values()),
            selected=key == aggregation.key,
        )
        for key in keys
    )
    return Bars(
        title=words("averaged" if is_mean else "compared", query=selection.axes.rows[query]),
        note=words("largest", n=len(keys), all=seen.sum()) if len(keys) < seen.sum() else "",
        columns=tuple(columns),
        rows=rows,
        shared=True,
    )


def _output_shares(selection: Selection) -> np.ndarray:
    """The share of each key in the lengths that all heads write, (query, key)."""
    values = _values(selection.recording, selection.attention.name, "Values", None, None)
    return summaries.row_shares(values)


def _trust_sentence(aggregation: Aggregation) -> str:
    words = sentences(CONCEPT, "aggregated")
    selection, query, key = aggregation.selection, aggregation.query, aggregation.key
    row = aggregation.values[query]
    slots = {
        "query": selection.axes.rows[query],
        "key": selection.axes.keys[key],
        "weight": hundredths(float(row[key])),
    }
    keys = (at for at in aggregation.shown if hundredths(float(row[at])) == slots["weight"])
    if len(alike := list(keys)) > 1:  # none stands out in the printed digits
        both = (selection.axes.keys[at] for at in alike[:2])
        return words(
            "tied",
            n=len(alike),
            **dict(zip(("key", "other"), both)),
            query=slots["query"],
            weight=slots["weight"],
        )
    if aggregation.kind != "Mean" or aggregation.layer is not None:
        value = slots["weight"]
        line = words(
            "finding_of", title=aggregation.title, scope=aggregation.scope, value=value, **slots
        )
        more = _influence(aggregation, key), _hidden(aggregation, key)
        return " ".join(filter(None, (line, *more)))
    heads = np.prod(selection.attention.pattern.shape[:2])
    line = words("finding", heads=heads, **slots)
    return " ".join(filter(None, (line, _hidden(aggregation, key))))


def _hidden(aggregation: Aggregation, key: int) -> str:
    """The number of the heads of a mean that give another key on show more than this one; "" for
    another measure, and for none."""
    if aggregation.kind != "Mean":
        return ""
    pattern = aggregation.selection.attention.pattern
    layers = slice(None) if aggregation.layer is None else [aggregation.layer]
    rows = pattern[layers, :, aggregation.query]
    others = [at for at in aggregation.shown if at != key]
    n = int((rows[..., others].max(axis=-1, initial=0) > rows[..., key]).sum())
    slots = {"n": n, "heads": rows.shape[0] * rows.shape[1]}
    slots["key"] = aggregation.selection.axes.keys[key]
    return sentences(CONCEPT, "aggregated")("hides", **slots) if n else ""


MISLEADING = (
    0.5  # of a value of rollout or flow: where no more of the output comes, weights mislead
)


def _influence(aggregation: Aggregation, key: int) -> str:
    """The share that comes from a key of rollout or flow by the lengths that the heads of all
    layers write, and whether weights mislead about it; "" for another measure, for some of the
    layers and where the model does not say what its heads write."""
    selection, at = aggregation.selection, (aggregation.query, key)
    all_layers = aggregation.kind in THROUGH_LAYERS and aggregation.layer is None
    if not all_layers or not loaded(selection.recording).shows_writes(selection.recording):
        return ""
    share = float(_output_shares(selection)[at])
    slots = {"query": selection.axes.rows[aggregation.query], "key": selection.axes.keys[key]}
    name = "misleads" if share <= MISLEADING * aggregation.values[at] else "holds"
    return sentences(CONCEPT, "aggregated")(name, share=hundredths(share), **slots)


def _cautions(aggregation: Aggregation) -> tuple[str, ...]:
    """Sentences on the limits of the matrix, with this text's numbers."""
    words = sentences(CONCEPT, "aggregated")
    selection = aggregation.selection
    layers, heads = selection.attention.pattern.shape[:2]
    written = summaries.output_share(selection.recording, selection.attention)
    caution = words(
        f"{aggregation.kind.lower()}_caution",
        heads=heads if aggregation.layer is not None else layers * heads,
        written="unknown" if written is None else fixed(written),
    )
    low, high = map(fixed, summaries.row_sums(aggregation.values))
    return (
        words(f"{aggregation.kind.lower()}_meaning"),
        *_written_from(aggregation),
        caution,
        words("sums" if low != high else "sums_alike", low=low, high=high),
    )


def _written_from(aggregation: Aggregation) -> tuple[str, ...]:
    """The share of what all heads write at the query that comes from the key of the headline; none
    beside a mean of a layer or another measure, and where the model does not say it."""
    selection, at = aggregation.selection, (aggregation.query, aggregation.key)
    is_whole = aggregation.kind == "Mean" and aggregation.layer is None
    if not is_whole or not loaded(selection.recording).shows_writes(selection.recording):
        return ()
    slots = {"query": selection.axes.rows[at[0]], "key": selection.axes.keys[at[1]]}
    share = hundredths(float(_output_shares(selection)[at]))
    return (sentences(CONCEPT, "aggregated")("holds", share=share, **slots),)


def _left_out(aggregation: Aggregation) -> tuple[str, ...]:
    hidden = aggregation.view.hidden
    if hidden is None:
        return ()
    rows = [first for first, _ in aggregation.view.row_tokens]
    share = summaries.mean_share(hidden, aggregation.values[rows].sum(axis=1))
    names = ", ".join(aggregation.view.left_out[:N_KEYS])
    return (sentences(CONCEPT, "aggregated")("left_out", tokens=names, share=percent(share)),)


def _columns(aggregation: Aggregation) -> spec.Columns:
    return attention.columns(aggregation.view.matrix, aggregation.view.axes)


# ---- weights beside outputs ----------------------------------------------------------------------


@kept
def _disagreements(recording: Recording, attention: str) -> summaries.Disagreements:
    of = RecordingFacts(recording).attention(attention)
    return summaries.disagreements(of, loaded(recording).outputs()[attention][0])


@spec.panel
def disagreements(run: Run, attention: FirstAttention = OPENS) -> Panel:
    """The rows in which a token takes most of the weight and little of what the head writes.

    Raises ValueError for a model that does not give its values and W_O.
    """
    selection = select(run, attention=attention)
    _expect_outputs(selection)
    words = sentences(CONCEPT, "disagreements")
    pairs = _disagreements(selection.recording, selection.attention.name)
    slots = {
        "count": f"{len(pairs.cells):,}",
        "rows": f"{pairs.rows_in_all:,}",
        "min_weight": percent(summaries.MIN_WEIGHT),
        "max_share": percent(summaries.MAX_SHARE),
    }
    axes = selection.axes
    listed = pairs.cells[:N_ROWS] or ((pairs.nearest,) if pairs.nearest else ())
    table = TextTable(
        select=("layer", "head", "token"),
        columns=words.lines("columns"),
        rows=tuple(
            (
                str(each.layer),
                str(each.head),
                axes.rows[each.query],
                axes.keys[each.key],
                fixed(each.weight),
                fixed(each.share),
            )
            for each in listed
        ),
        keys=tuple((str(each.layer), str(each.head), str(each.query)) for each in listed),
    )
    return Panel(
        title=words("title"),
        finding=words("finding" if pairs.cells else "none", **slots),
        figures=(table,),
        table={
            "layer": [cell.layer for cell in pairs.cells],
            "head": [cell.head for cell in pairs.cells],
            "query": [f"{cell.query} {axes.rows[cell.query]}" for cell in pairs.cells],
            "key": [f"{cell.key} {axes.keys[cell.key]}" for cell in pairs.cells],
            "weight": [cell.weight for cell in pairs.cells],
            "share of what is written": [cell.share for cell in pairs.cells],
        },
        details=words.lines("details"),
        caption=(words("caption"),),
        file="disagreements",
    )


def _expect_outputs(selection: Selection) -> None:
    """Raises ValueError for a model that does not give its values and W_O."""
    if not loaded(selection.recording).shows_writes(selection.recording):
        raise ValueError(sentences(CONCEPT, "aggregated")("closed", model=selection.model))


@kept
def _contributions(
    recording: Recording, attention: str, token: int | None
) -> summaries.Contributions:
    of, outputs = RecordingFacts(recording).attention(attention), loaded(recording).outputs()
    return summaries.contributions(recording, of, outputs[attention], token)


@spec.panel
def output_norms(
    run: Run,
    token: WordOrEvery = OPENS,
    measure: Annotated[str, Choice(MEASURES, "Measure", name="sum_measure", menu=True)] = "Length",
    attention: FirstAttention = OPENS,
) -> Panel:
    """Output of each head at one token, or on average: its norm, or its share of the output.

    token: None for the mean of all tokens. measure: one of MEASURES. Raises ValueError for a model
    that does not give its values and W_O.
    """
    selection = select(run, token=token or 0, attention=attention)
    token = None if token is None else selection.query
    _expect_outputs(selection)
    words = sentences(CONCEPT, "output_norms")
    recording, of = selection.recording, selection.attention
    writes = _contributions(recording, of.name, token)
    values, rows, columns = summaries.layer_table(writes, measure)
    (layer, head, norm), against, (low_layer, low_head, low) = summaries.extreme_heads(writes)
    bias_layer = int(writes.bias.argmax())
    title = words("title" if measure == "Length" else "share_title")
    word = selection.axes.rows[token or 0]
    where = words("mean_of_tokens") if token is None else words("token", token=token, word=word)
    matrix = Matrix(
        select=("layer", "head"),
        rows=tuple(rows),
        columns=tuple(columns),
        values=values,
        high=summaries.scale_maximum(values, "Writes"),
        signed=measure == "Share",
        marks=((layer, head, ""),),
        sides=("layer", "head"),
    )
    return Panel(
        title=title,
        finding=words(
            "finding",
            layer=layer,
            head=head,
            norm=fixed(norm),
            against=against,
            count=writes.share.size,
        ),
        figures=(matrix,),
        table={"layer": rows, **dict(zip(columns, values.T))},
        details=words.lines(
            "details",
            share=signed(low),
            low_layer=low_layer,
            low_head=low_head,
            bias=signed(float(writes.bias[bias_layer])),
            bias_layer=bias_layer,
        ),
        caption=(words("caption", title=title, where=where),),
        file=f"output-{measure.lower()}",
    )
