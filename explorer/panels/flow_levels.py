"""The levels of the whole machine's picture: what stands below it where a layer, a head or a weight
is opened. Each shows the figures of the tab that it leads to, or the vectors that this is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.analysis import anatomy as anatomy_analysis
from explorer.analysis import flow, residual
from explorer.analysis.residual import SubLayer
from explorer.figures.csv import Columns, stacked
from explorer.figures.formatting import fixed, ordinal, signed, tenths
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Figure,
    Links,
    Matrix,
    Strip,
    Strips,
    truncation_note,
)
from explorer.panels import anatomy
from explorer.panels.selection import Selection
from explorer.wording.templates import sentences
from models.contract.recording import CONTINUES, Attention, Recording, Stream
from models.contract.results import largest
from models.runtime.caching import CachedModel, loaded

WORDS = sentences("architecture", "levels")
MODEL, LAYER, HEAD, WEIGHT = LEVELS = ("Model", "Layer", "Head", "Weight")
FFN = "FFN"  # of a layer, as deep as that
N_NEAREST, N_UNITS = 3, 6
N_LINKED = 16  # tokens on either side of a head's curves; of a longer text those that matter most


@dataclass(frozen=True, eq=False)
class Opened:
    """Content of an opened level below the picture: figures side by side, the numbers behind them,
    a sentence in the place of the picture's own, "" for none, one behind it, further ones, and
    formulas."""

    figures: tuple[Figure, ...]
    table: Columns
    formulas: tuple[str, ...]
    finding: str = ""
    also: str = ""
    details: tuple[str, ...] = ()


def words_like(labels: Sequence[str]) -> str:
    """The whole words among some labels, "" where the first is none."""
    words = [each.lstrip(CONTINUES) for each in labels]
    is_told = bool(words) and is_word(words[0])
    return ", ".join(each for each in dict.fromkeys(words) if is_word(each)) if is_told else ""


def nearest_words(
    model: CachedModel,
    vectors: Sequence[np.ndarray],
    is_told: Callable[[int, int], bool] = lambda place, id: True,
) -> list[str]:
    """The words that each of some vectors is nearest to, "" where they stand out no more than by
    chance, and of a model without such words. is_told: of a vector's place and the nearest word's
    id."""
    if not vectors:
        return []
    try:  # all at once: each time the vocabulary is read
        ids, cosines = model.nearest(np.stack(vectors).astype(np.float32), N_NEAREST)
        least = flow.least_cosine(model, len(vectors[0]))
    except (ValueError, AttributeError):
        return [""] * len(vectors)
    return [
        words_like(model.labels(words)) if near[0] >= least and is_told(at, words[0]) else ""
        for at, (words, near) in enumerate(zip(ids.tolist(), cosines))
    ]


def deepest(attention: Attention | None) -> int:
    """Depth to which a layer can be opened, as a place in LEVELS: without attention no further than
    itself, without q, k and v to its heads."""
    if attention is None:
        return LEVELS.index(LAYER)
    return LEVELS.index(WEIGHT if attention.opens else HEAD)


# ---- a layer -------------------------------------------------------------------------------------


def layer(
    recording: Recording,
    stream: Stream,
    token: int,
    parts: Sequence[SubLayer],
    attentions: Mapping[str, Attention],
) -> Opened:
    """The vectors of a token through the sub-layers of a layer, in the model's own order.
    attentions: by the site of the sub-layer that each writes at."""
    figures, table, says = [], [], ""
    for part in parts:
        inside = _inside(recording, stream, token, part, attentions.get(part.site))
        strips = _strips(stream, token, part, inside)
        names = [WORDS(each) for each in _order(stream, part)]
        title = ", ".join(names)
        title, note = title[:1].upper() + title[1:], ""
        if part.place == "ffn":
            says, note = _ffn_in_words(recording, stream, token, part)
        figures.append(Strips(title=title, note=note, strips=strips, high=1.0))
        table += [(f"{part.name}: {each.label}", _numbered(each.values)) for each in strips]
    formulas = ("concatenation", "add-norm", "pre-norm", "ffn", "smooth-ffn", "gated-ffn")
    return Opened(tuple(figures), stacked(table, "vector"), formulas, also=says)


def _ffn_in_words(
    recording: Recording, stream: Stream, token: int, part: SubLayer
) -> tuple[str, str]:
    """A sentence on the word whose probability an FFN raises most at a token, "" where it raises
    none by 1% or the model reads no word here, and one on the unit that adds most to it."""
    model = loaded(recording)
    if model.capabilities.logits != stream.name:
        return "", ""
    n, last = recording.model.n_vocab, stream.sites[-2:]
    end = last[1] if last == (part.after, "final.normed") else part.after
    try:
        lens = model.lens(recording, stream.name, n, token, (part.before, end))
    except ValueError:  # a state that the readout does not fit
        return "", ""
    rise = flow.largest_rise(lens, lambda id: is_word(model.labels([id])[0]), flow.LEAST_RISE)
    if rise is None:
        return "", ""
    (label,) = model.labels([rise.id])
    slots = {"word": label, "before": tenths(rise.before), "after": tenths(rise.after)}
    says = WORDS("ffn_raises" if rise.is_first else "ffn_raises_whole", **slots)
    try:
        units = model.neurons(recording, stream.name, part.layer, token, rise.id, n=0)
    except (ValueError, AttributeError):  # the model does not give these weights
        return says, ""
    unit = int(units.adds.argmax())
    adds, n_units = fixed(float(units.adds[unit]), 1), f"{len(units.adds):,}"
    return says, WORDS("ffn_unit", n=n_units, unit=unit, word=label, adds=adds)


def is_word(label: str) -> bool:
    """True for the label of a token that is a whole word, and no piece, mark or initial."""
    is_initial = len(label) <= 2 and label[:1].isupper()
    return label.isalpha() and not label.startswith(CONTINUES) and not is_initial


def _order(stream: Stream, part: SubLayer) -> list[str]:
    """Steps of a sub-layer, in order, by the names of words."""
    before = ["norm"] if f"{part.site}.read" in stream.sites else []
    after = ["norm"] if part.after != part.total else []
    adds = [] if _is_replaced(stream, part) else ["add"]
    return [*before, part.place, *adds, *after]


def _is_replaced(stream: Stream, part: SubLayer) -> bool:
    """True where what is written takes the place of the vector: without a residual connection."""
    return bool(np.array_equal(stream.at(part.total), stream.at(part.wrote)))


def _inside(
    recording: Recording, stream: Stream, token: int, part: SubLayer, attention: Attention | None
) -> tuple[Strip, ...]:
    """Intermediate results of a sub-layer before it writes: the results of its heads side by side,
    or the activations of its hidden units; nothing where the model does not show them."""
    model = loaded(recording)
    try:
        if attention is not None and attention.opens:
            at = flow.layer_numbers(attention).index(part.layer)
            outputs = anatomy_analysis.head_outputs(
                recording, attention, at, token, model.outputs()[attention.name]
            )
            if outputs is None:
                return ()
            label = WORDS("heads", n=len(outputs.z))
            return (Strip(label, outputs.z.ravel(), blocks=len(outputs.z)),)
        if part.place == "ffn" and model.capabilities.weights:
            hidden = model.ffn_activations(recording, stream.name, part.layer, token)
            return (Strip(WORDS("units", n=f"{len(hidden.after):,}"), hidden.after),)
    except (ValueError, AttributeError):  # the model does not give these weights
        pass
    return ()


def _strips(
    stream: Stream, token: int, part: SubLayer, inside: Sequence[Strip]
) -> tuple[Strip, ...]:
    """The vectors of a sub-layer: what it reads, what it makes, what it writes, the sum, and the
    norm of the sum. Each has a scale of its own but those that are added."""
    at = lambda site: residual.site_vectors(stream, site)[token]
    read = f"{part.site}.read"
    rows = [Strip(WORDS("read"), at(read))] if read in stream.sites else []
    rows += inside
    written = Strip(WORDS("written"), at(part.wrote), sign="+")
    if _is_replaced(stream, part):
        rows.append(replace(written, sign=""))
    else:
        sum_of = (
            Strip(WORDS("before"), at(part.before)),
            written,
            Strip(WORDS("sum"), at(part.total), sign="="),
        )
        high = max(_largest(each) for each in sum_of)
        rows += [replace(each, high=high) for each in sum_of]
    if part.after != part.total:
        rows.append(Strip(WORDS("normed"), at(part.after)))
    length = lambda strip: WORDS("length", n=fixed(float(np.linalg.norm(strip.values))))
    return tuple(
        replace(each, text=length(each), high=each.high or _largest(each)) for each in rows
    )


def _largest(strip: Strip) -> float:
    return float(np.abs(strip.values).max(initial=0)) or 1.0


def _numbered(values: np.ndarray) -> dict[str, Any]:
    """A vector as named columns."""
    return {"dimension": np.arange(len(values)), "number": values}


# ---- an FFN --------------------------------------------------------------------------------------


def ffn(
    recording: Recording,
    stream: Stream,
    token: int,
    layer: int,
    answer: int,
    rival: int,
    places: tuple[int, int] | None,
) -> Opened | None:
    """The FFN of a layer at a token: the hidden units that add most to a word (id) against another,
    the words that each writes, and what all others add. places: of the word before and after the
    FFN, where they are told. None where the model does not show its units."""
    model = loaded(recording)
    try:
        units = model.neurons(recording, stream.name, layer, token, answer, rival, n=0)
        hidden = model.ffn_activations(recording, stream.name, layer, token)
    except (ValueError, AttributeError):
        return None
    best = largest(np.abs(units.adds), N_UNITS)
    words = nearest_words(model, list(hidden.writes_of(best)))
    near = [WORDS("near", words=each) if each else "" for each in words]
    slots = dict(zip(("answer", "rival"), model.labels([answer, rival])))
    slots = {name: label.lstrip(CONTINUES) for name, label in slots.items()}
    n, top = len(units.adds), int(units.adds[best].argmax())
    others = units.part - float(units.adds[best].sum())
    values = [
        *((WORDS("unit", unit=int(unit)) + its, units.adds[unit]) for unit, its in zip(best, near)),
        (WORDS("others", n=f"{n - len(best):,}"), others),
    ]
    rows = tuple(BarRow(label, (float(x),), (signed(float(x)),), key=None) for label, x in values)
    most = WORDS("most", unit=int(best[top]), added=signed(float(units.adds[best[top]])))
    adds = WORDS("ffn_adds", layer=layer, added=signed(units.part), **slots)
    if places is not None and (places[0] - places[1]) * units.part < 0:
        before, after = map(ordinal, places)
        name = "ffn_rises" if units.part < 0 else "ffn_falls"
        adds = f"{adds} {WORDS(name, before=before, after=after, **slots)}"
    return Opened(
        (Bars(title=WORDS("points", **slots), columns=("",), rows=rows),),
        {"unit": np.arange(n), "adds": units.adds, "activation": units.activation},
        ("ffn", "smooth-ffn", "gated-ffn"),
        finding=f"{adds} {most}{near[top]}. {WORDS('ffn_is', n=f'{n:,}')}",
    )


# ---- a head and a weight -------------------------------------------------------------------------


def head(selection: Selection, key: int, pressed: bool) -> Opened:
    """A head: its matrix, and the curves from each query to its keys. pressed: a press on a row
    selects its token."""
    weights = np.where(
        selection.attention.allowed[selection.layer],
        selection.attention.pattern[selection.layer, selection.head],
        np.nan,
    )
    columns = _drawn_keys(np.nan_to_num(selection.weights), key)
    rows = list(range(len(selection.axes.rows)))
    if len(rows) > N_LINKED:
        rows = (
            columns if not selection.is_across and selection.query in columns else [selection.query]
        )
    picked = pressed and len(rows) == len(selection.axes.rows)
    links = Links(
        title=WORDS("curves", query=selection.word),
        note=truncation_note(len(columns), len(selection.axes.keys)),
        select=("token",) if picked else (),
        left=tuple(selection.axes.rows[each] for each in rows),
        right=tuple(selection.axes.keys[each] for each in columns),
        weights=weights[np.ix_(rows, columns)],
        selected=rows.index(selection.query),
        mark=(columns.index(key), anatomy.weight_text(selection, key)),
    )
    n = len(selection.axes.rows), len(selection.axes.keys)
    query, to = np.indices(n)
    table: dict[str, Any] = {
        "query": [selection.axes.rows[each] for each in query.ravel()],
        "key": [selection.axes.keys[each] for each in to.ravel()],
        "weight": weights.ravel(),
    }
    return Opened((anatomy.head_matrix(selection, key), links), table, ("attention", "rotary"))


def _drawn_keys(weights: np.ndarray, key: int) -> list[int]:
    """The keys that are drawn: all of a short text, else those of the largest weights."""
    n = len(weights)
    return list(range(n)) if n <= N_LINKED else flow.shown_tokens(weights, key, N_LINKED)


def weight(selection: Selection, key: int, step: str) -> Opened:
    """One weight step by step, as the tab One head shows it."""
    panel = anatomy.weight_of(selection, key, step)
    return Opened(
        panel.figures, panel.table, panel.formulas, finding=panel.finding, details=panel.details
    )


def pressing(figures: Sequence[Figure], token: int) -> tuple[Figure, ...]:
    """Figures in whose matrices a press on any row selects a key for this token."""
    return tuple(
        replace(each, keys=(str(token),) * len(each.rows)) if isinstance(each, Matrix) else each
        for each in figures
    )
