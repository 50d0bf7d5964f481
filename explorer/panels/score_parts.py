"""The panels on where an attention score comes from: the score as a sum over what wrote the query
and what wrote the key, and the strongest path into it, each step of which is removed in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from explorer.analysis import logit_lens, score_parts
from explorer.analysis.score_parts import Largest, SourceRow
from explorer.figures import kinds
from explorer.figures.formatting import fixed, hundredths, percent, plural, power, signed
from explorer.figures.kinds import BarRow, Bars, Matrix, TokenRow
from explorer.panels import spec
from explorer.panels.anatomy import weight_text
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    Head,
    Key,
    Layer,
    OpenedAttention,
    Query,
    Selection,
    place_if_any,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.results import Part, PathStep, ScoreParts, ScorePath
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "score_parts"
FIELDS, NAMES = sentences(CONCEPT, "fields"), sentences(CONCEPT, "names")
N_BARS, N_PAIRS, N_TOKENS = 7, 5, 60
LEAST_CHANGE = 0.01  # of a weight, below which a cut is said to change nothing
LEAST_SCORE = 0.05  # below which shares of a score mean nothing


def _other_keys(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """The other keys that the score can be compared with."""
    selection = select(run, attention=chosen.get("attention", ""))
    listed = {
        at: f"{at} {name}"
        for at, name in enumerate(selection.axes.keys)
        if at != chosen.get("source")
    }
    none: dict[int | None, str] = {None: FIELDS("no_other")}
    return none | listed


Against = Annotated[
    int | None,
    Choice(_other_keys, FIELDS("against"), name="score_against", of="text", help=FIELDS("help")),
]
SameAgainst = Annotated[
    int | None, Choice(_other_keys, name="score_against", of="text", help=FIELDS("help"))
]


@dataclass(frozen=True, eq=False)
class ScoreCell:
    """A query and a key of a head, and the other key that the score is compared with, None for
    none."""

    selection: Selection
    key: int
    against: int | None

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As the methods of a model take them after the recording."""
        on = self.selection
        return (on.attention.name, on.layer, on.head, on.query, self.key, self.against)

    @property
    def slots(self) -> dict[str, object]:
        """The slots of the sentences."""
        on = self.selection
        keys = on.recording.stream(on.attention.key).tokens
        return {
            "layer": on.layer,
            "head": on.head,
            "query": on.recording.stream(on.attention.query).tokens[on.query],
            "token": on.query,
            "key": keys[self.key],
            "source": self.key,
            "other": "" if self.against is None else keys[self.against],
            "against": self.against,
        }

    @property
    def is_allowed(self) -> bool:
        """False where the mask excludes the key."""
        on = self.selection
        return bool(on.attention.allowed[on.layer, on.query, self.key])


def _cell(
    run: Run, at: tuple[int, int, int], source: int | None, against: int | None, attention: str
) -> ScoreCell:
    """A cell of a row, that of the largest weight where `source` is None. Raises ValueError for
    what is not there, and for a model that does not show how it comes about."""
    selection = select(run, *at, attention)
    key = selection.strongest if source is None else selection.place_of_key(source)
    against = place_if_any("against", against, len(selection.axes.keys))
    if not loaded(selection.recording).capabilities.weights or not selection.attention.opens:
        raise ValueError(sentences(CONCEPT, "sources")("not_given", model=selection.model))
    cell = ScoreCell(selection, key, against)
    if against == key:
        raise ValueError(sentences(CONCEPT, "sources")("same", key=cell.slots["key"]))
    return cell


# ---- the parts -----------------------------------------------------------------------------------


@spec.panel
def sources(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    source: Key = OPENS,
    against: Against = None,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """An attention score as the sum of what embedding, positions, earlier heads and FFNs wrote into
    its query and into its key.

    source: the key, the one of the largest weight where None. against: another key, whose score is
    subtracted. Raises ValueError for what is not there, and for a model that does not run in
    Headlight's own classes.
    """
    cell = _cell(run, (layer, head, token), source, against, attention)
    words, slots, on = sentences(CONCEPT, "sources"), cell.slots, cell.selection
    parts = loaded(on.recording).score_parts(on.recording, *cell.arguments)
    score = fixed(parts.total)
    of_query = score_parts.main_source(parts.query_parts, parts.total)
    of_key = score_parts.main_source(parts.key_parts, parts.total)
    kind = "finding" if cell.against is None else "finding_of_two"
    names = (
        [_label(part, "query") for part in parts.query_parts],
        [_label(part, "key") for part in parts.key_parts],
    )
    return Panel(
        title=words("title"),
        finding=words(
            kind,
            **slots,
            score=score,
            of_query=_share(of_query.value, parts.total),
            query_source=_name(of_query, "query"),
            of_key=_share(of_key.value, parts.total),
            key_source=_name(of_key, "key"),
        ),
        figures=(
            _sums(cell, parts),
            _pairs(parts, score),
        ),
        table=score_parts.table(parts, names),
        details=_method(cell, parts),
        caption=_caption(cell),
        file=f"L{on.layer}H{on.head}-q{on.query}k{cell.key}-sources",
    )


def _caption(cell: ScoreCell) -> tuple[str, ...]:
    words, slots = sentences(CONCEPT, "sources"), cell.slots
    lines = [words("caption", **slots)]
    return (*lines, *([] if cell.against is None else [words("caption_of_two", **slots)]))


def _name(part: Part, side: str) -> str:
    """A part in a sentence."""
    kind = "cross" if part.kind == "head" and part.attention == "cross" else part.kind
    kind = f"projection_{side}" if kind == "projection" else kind
    return NAMES(kind, layer=part.layer, head=part.head)


def _label(part: Part, side: str) -> str:
    """A part as the label of its bar."""
    if part.kind == "projection":
        return sentences(CONCEPT, "sources")(f"projection_{side}")
    return logit_lens.part_name(part)


def _share(value: float, total: float) -> str:
    """A part of a score as a share, or as a number where a share would say nothing."""
    if abs(total) < LEAST_SCORE or not 0 < value / total <= 1:
        return signed(value)
    return percent(value / total)


def _sums(cell: ScoreCell, parts: ScoreParts) -> Bars:
    """The parts of the query and of the key by their source, the largest first, the smaller ones as
    one."""
    words, on = sentences(CONCEPT, "sources"), cell.selection
    every = score_parts.by_source(parts, on.is_across)
    largest = every[: N_BARS if len(every) > N_BARS + 1 else len(every)]
    rows = [_sum(_row_label(on, row), row.query, row.key) for row in largest]
    if rest := every[len(largest) :]:
        sums = sum(row.query for row in rest), sum(row.key for row in rest)
        rows.append(_sum(plural(len(rest), "smaller part"), *sums))
    if parts.added:
        rows.append(_sum(words("added"), parts.added, parts.added))
    key = words("of_key" if parts.against is None else "of_keys", **cell.slots)
    return Bars(
        title=words("sums", score=fixed(parts.total)),
        columns=(words("of_query", **cell.slots), key),
        header=words("source"),
        rows=tuple(rows),
        shared=True,
    )


def _sum(label: str, query: float, key: float) -> BarRow:
    texts = (signed(query) if query else "", signed(key) if key else "")
    return BarRow(label, (query, key), texts)


def _row_label(on: Selection, row: SourceRow) -> str:
    """A source as the label of its row, of two texts with the stream that it wrote into."""
    if not row.side:
        name = sentences(CONCEPT, "sources")("projection")
        return name if row.source.kind == "projection" else _label(row.source, "query")
    stream = on.attention.query if row.side == "query" else on.attention.key
    return f"{stream} {_label(row.source, row.side)}"


def _pairs(parts: ScoreParts, score: str) -> Matrix:
    """The products of the parts of the query, as rows, and of the key, as columns."""
    words = sentences(CONCEPT, "sources")
    query, key, values = score_parts.pairs(parts, N_PAIRS)
    high = float(np.abs(values).max(initial=0)) or 1.0
    return Matrix(
        title=words("pairs", score=score if not parts.added else fixed(float(values.sum()))),
        rows=_side_names(query, parts.query_parts, "query"),
        columns=_side_names(key, parts.key_parts, "key"),
        values=values,
        high=high,
        signed=True,
        sides=("query", "key"),
        wide=True,
    )


def _side_names(largest: Largest, parts: Sequence[Part], side: str) -> tuple[str, ...]:
    rest = (plural(largest.rest, "smaller part"),) if largest.rest else ()
    return (*(_label(parts[at], side) for at in largest.places), *rest)


def _method(cell: ScoreCell, parts: ScoreParts) -> tuple[str, ...]:
    """Sentences on the method: that the parts add up, and what they do not tell."""
    words, on = sentences(CONCEPT, "sources"), cell.selection
    lines = [
        words(
            "adds_up",
            n=f"{parts.both.size:,}",
            total=fixed(parts.total, 4),
            recorded=fixed(parts.recorded, 4),
            error=power(abs(parts.total - parts.recorded), 2),
        )
    ]
    if cell.is_allowed:
        lines.append(words("weight", weight=weight_text(on, cell.key)))
    else:
        lines.append(words("not_allowed"))
    capabilities = loaded(on.recording).capabilities
    if capabilities.norm is not None:
        lines.append(words("norm"))
    if capabilities.positions == "rotary":
        lines.append(words("rotary"))
    if parts.added:
        lines.append(words("distance"))
    if on.is_across:
        lines.append(words("across"))
    return (*lines, words("both"), words("shared"))


# ---- the path ------------------------------------------------------------------------------------


@spec.panel
def path(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    source: Key = OPENS,
    against: SameAgainst = None,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """The strongest path into an attention score, back through earlier heads to an embedding, and
    the weight without each of its steps.

    source: the key, the one of the largest weight where None. against: another key, whose score the
    path raises this one above. Raises ValueError as `sources`, and where an edit sets the weight.
    """
    cell = _cell(run, (layer, head, token), source, against, attention)
    words, slots, on = sentences(CONCEPT, "path"), cell.slots, cell.selection
    way = loaded(on.recording).score_path(on.recording, *cell.arguments)
    first = way.steps[0]
    before = hundredths(way.weight)
    return Panel(
        title=words("title"),
        finding=words(
            _effect(way) if cell.is_allowed else "masked",
            **slots,
            writer=_mover(cell, first, way.side),
            before=before,
            after=hundredths(first.cut),
        ),
        figures=(_tokens(cell, way), _steps(cell, way)),
        table=_table(cell, way),
        details=_path_details(cell, way),
        caption=_caption(cell),
        file=f"L{on.layer}H{on.head}-q{on.query}k{cell.key}-path",
    )


def _effect(way: ScorePath) -> str:
    """Effect on the weight without the first step."""
    change = way.steps[0].cut - way.weight
    if abs(change) < LEAST_CHANGE:
        return "nothing"
    return "falls" if change < 0 else "rises"


def _token(cell: ScoreCell, stream: str, token: int) -> str:
    return cell.selection.recording.stream(stream).tokens[token]


def _step_name(cell: ScoreCell, step: PathStep, side: str) -> str:
    """A step of the path as a sentence has it."""
    words = sentences(CONCEPT, "path")
    name, at = _name(step.source, side), _token(cell, step.stream, step.token)
    if step.taken_from < 0:
        return words("from_other", writer=name, at=at)
    origin = _token(cell, step.taken_stream, step.taken_from)
    return words("from_head", writer=name, at=at, taken=origin)


def _mover(cell: ScoreCell, step: PathStep, side: str) -> str:
    """The first step in the sentence of the panel."""
    if step.taken_from < 0 or (step.taken_stream, step.taken_from) == (step.stream, step.token):
        name, at = _name(step.source, side), _token(cell, step.stream, step.token)
        return sentences(CONCEPT, "path")("from_other", writer=name, at=at)
    words, name = sentences(CONCEPT, "path"), _name(step.source, side)
    origin = _token(cell, step.taken_stream, step.taken_from)
    return words("moving", writer=name, taken=origin, at=_token(cell, step.stream, step.token))


def _step_label(cell: ScoreCell, step: PathStep, side: str) -> str:
    """The same as the label of its bar."""
    words, name = sentences(CONCEPT, "path"), _label(step.source, side)
    at = _token(cell, step.stream, step.token)
    if step.taken_from < 0:
        return words("bar_of_other", writer=name, at=at)
    origin = _token(cell, step.taken_stream, step.taken_from)
    return words("bar_of_head", writer=name, at=at, taken=origin)


def _tokens(cell: ScoreCell, way: ScorePath) -> TokenRow:
    """The tokens of the keys' text, those on the path in a frame."""
    words, on = sentences(CONCEPT, "path"), cell.selection
    stream = on.recording.stream(on.attention.key)
    query = -1 if on.is_across else on.query
    named = {query: words("at_query"), cell.key: words("at_key")}
    if query == cell.key:
        named[query] = words("at_both")
    if cell.against is not None:
        named.setdefault(cell.against, words("at_other"))
    for step in way.steps:
        if step.stream == stream.name:
            named.setdefault(step.token, words("at_step"))
    named.pop(-1, None)
    visible = kinds.window(len(stream.tokens), sorted(named), N_TOKENS).tolist()
    return TokenRow(
        title=words("tokens"),
        note=kinds.truncation_note(len(visible), len(stream.tokens)),
        tokens=tuple(stream.tokens[at] for at in visible),
        selected=visible.index(query) if query in visible else -1,
        texts=tuple(named.get(at, "") for at in visible),
        marked=tuple(place for place, at in enumerate(visible) if at in named),
        keys=("",) * len(visible),
    )


def _steps(cell: ScoreCell, way: ScorePath) -> Bars:
    """The weight without each step of the path, beside the weight as it is."""
    words = sentences(CONCEPT, "path")
    rows = [
        BarRow(
            words("as_it_is"),
            (way.weight, way.score),
            (hundredths(way.weight), fixed(way.score)),
            selected=True,
        )
    ]
    for step in way.steps:
        rows.append(
            BarRow(
                _step_label(cell, step, way.side),
                (step.cut, step.source.value),
                (hundredths(step.cut), signed(step.source.value)),
                outline=way.weight,
            )
        )
    return Bars(
        title=words("chart", **cell.slots),
        note=words("note", before=hundredths(way.weight)),
        columns=(words("cut"), words("part")),
        header=words("step"),
        rows=tuple(rows),
        mark=(1, 0),
    )


def _table(cell: ScoreCell, way: ScorePath) -> dict[str, list]:
    """The steps of the path, one a row."""
    words, steps = sentences(CONCEPT, "path"), way.steps
    return {
        "step": [_step_name(cell, each, way.side) for each in steps],
        "layer": [each.source.layer for each in steps],
        "head": [each.source.head for each in steps],
        "token": [each.token for each in steps],
        "taken from": [each.taken_from for each in steps],
        "weight of that": [each.taken_weight for each in steps],
        words("part"): [each.source.value for each in steps],
        "weight": [way.weight for _ in steps],
        words("cut"): [each.cut for each in steps],
        words("rerun"): [np.nan if each.rerun is None else each.rerun for each in steps],
    }


def _path_details(cell: ScoreCell, way: ScorePath) -> tuple[str, ...]:
    """The path in words, what each head took from where, and how it was tested."""
    words = sentences(CONCEPT, "path")
    names = [_step_name(cell, each, way.side) for each in reversed(way.steps)]
    side = words(f"at_{way.side}")
    lines = [words("way", steps=", then ".join(names), side=side)]
    for step in way.steps:
        if step.taken_from >= 0:
            origin = _token(cell, step.taken_stream, step.taken_from)
            name = _name(step.source, way.side)
            sentence = words("taken", writer=name, weight=fixed(step.taken_weight), taken=origin)
            lines.append(sentence[:1].upper() + sentence[1:])
    first = way.steps[0]
    if first.source.kind != "head":
        lines.append(words("no_head"))
    lines.append(words("cut_is"))
    if first.rerun is not None:
        at = _token(cell, first.stream, first.token)
        lines.append(words("rerun_is", at=at, rerun=hundredths(first.rerun)))
    return (*lines, words("follows"))
