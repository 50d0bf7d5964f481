"""The panels on one attention weight: from q and k to the head's output, the split into heads,
attention in three formulas, and the laws of a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from operator import truediv
from typing import Annotated, Any

import numpy as np

from explorer.analysis import anatomy, consistency, opening, weight_texts
from explorer.analysis.attention import groups as word_groups
from explorer.analysis.predictions import is_piece
from explorer.analysis.terminology import (
    mask_reason,
    sees_ahead,
    sees_all,
    taken_out,
    window_reach,
    windowed,
)
from explorer.figures.csv import stacked
from explorer.figures.formatting import (
    MINUS,
    NONE,
    Written,
    enough_digits,
    fixed,
    percent,
    plural,
    power,
    whole_percent,
    word_in_sentence,
)
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Facts,
    Frame,
    Matrix,
    Steps,
    Strip,
    Strips,
    TextTable,
)
from explorer.figures.kinds import matrix as matrix_values
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    Head,
    Key,
    Layer,
    OpenedAttention,
    Query,
    Selection,
    expect_vectors,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models import model_names
from models.contract.recording import Recording
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

CONCEPT = "anatomy"
WEIGHT_STEP = Choice(name="weight_step", help="the step of the calculation that is shown")
MOST_KEYS = 16  # listed one by one
MOST_CELLS = 4096  # of a matrix that follows the steps
ROW = "row"  # what the slider opens on: how a query shares its attention out, without formulas
# Each step's formulas, and the symbols in them that it is about.
STEPS = {
    "dot": (("attention", "dot"), ("Q", "K")),
    "score": (("attention", "score"), ("d_k",)),
    "mask": (("mask",), ("M", "M_ij")),
    "softmax": (("attention", "softmax"), ("softmax", "a_ij")),
    "value": (("weighted-sum", "attention"), ("V", "v_j")),
    "sum": (("attention", "weighted-sum"), ("∑", "z_i")),
    "output": (("concatenation",), ("W_O",)),
    "heads": (("sum-over-heads",), ("W_O^h",)),
}

ROTATED = {"dot": (("dot", "rotary"), ("R_i", "R_j"))}  # where positions rotate queries and keys


def number(value: float) -> str:
    """A number in four figures."""
    return power(float(value), 4)


def weight_text(selection: Selection, key: int) -> str:
    """The weight of a key, as every step and formula writes it; in three decimals where the model
    gives no more than its weights."""
    if not selection.attention.opens:
        return fixed(float(selection.weights[key]), weight_texts.LEAST_OF_WEIGHTS)
    return weight_texts.texts(
        anatomy.cell(selection.recording, selection.attention, *selection.at, key)
    ).weight


def divisor_text(opened: anatomy.WeightBreakdown) -> str:
    """The number that the dot product is divided by, as it stands in the formula."""
    if opened.divisor_edit is None and np.isclose(opened.divisor, sqrt(len(opened.q))):
        return f"√{len(opened.q)}"
    return f"{opened.divisor:g}"


# ---- one weight ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell of a head with all that comes of it. projection: W_O of the attention, cut by head,
    and its bias, None where the model does not give them; outputs: of the heads at the query, None
    without them too."""

    selection: Selection
    key: int
    opened: anatomy.WeightBreakdown
    projection: anatomy.Outputs | None
    outputs: anatomy.HeadOutputs | None

    @property
    def key_word(self) -> str:
        """The name of the key."""
        return self.selection.axes.keys[self.key]

    @property
    def named(self) -> dict[str, str]:
        """The slots of both words: of a piece with the word that it is of."""
        selection, of = self.selection, self.selection.attention
        groups = word_groups(selection.recording, of, selection.axes)
        names = {"query": selection.word, "key": self.key_word}
        for name, stream, at, group in zip(
            names, (of.query, of.key), (selection.query, self.key), groups
        ):
            tokens = selection.recording.stream(stream).tokens
            if is_piece(tokens, at) and names[name] == tokens[at]:
                slots = {"piece": tokens[at], "word": group.labels[group.of[at]]}
                names[name] = sentences(CONCEPT, "weight")("piece", **slots)
        return names

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps that there are here: without the mask where all is allowed, and to
        z where the output is not known."""
        masked = not self.selection.attention.allowed[self.selection.layer].all()
        known = list(STEPS) if self.outputs is not None else list(STEPS)[:-2]
        return tuple(each for each in known if each != "mask" or masked)

    @property
    def formulas(self) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
        """The formulas of each step, and the symbols in them that it is about."""
        is_rotary = loaded(self.selection.recording).capabilities.positions == "rotary"
        of_model = STEPS | (ROTATED if is_rotary else {})
        return {name: of_model[name] for name in self.steps}

    @property
    def slots(self) -> dict[str, object]:
        """The slots of the sentences."""
        opened, texts = self.opened, weight_texts.texts(self.opened)
        return {
            "layer": opened.layer,
            "head": opened.head,
            "query": self.selection.word,
            "token": opened.query,
            "key": self.key_word,
            "source": self.key,
            "d": len(opened.q),
            "keys": plural(int(opened.allowed.sum()), "key"),
            "weight": texts.weight,
            "softmax": texts.softmax,
            "edit": opened.uniform_edit,
        }


@spec.panel
def weight(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    source: Key = OPENS,
    step: Annotated[str, WEIGHT_STEP] = "",
    attention: OpenedAttention = OPENS,
) -> Panel:
    """One attention weight, from its query and key to the head's output, step by step, beside the
    head's matrix.

    source: the key, the one of the largest weight where None. step: the name of the step on show,
    such as "Softmax"; the first one where there is none of that name. Raises ValueError for what is
    not there, and for a model that does not give its queries, keys and values.
    """
    return weight_of(select(run, layer, head, token, attention), source, step)


def weight_of(selection: Selection, source: int | None, step: str) -> Panel:
    """The weight of a query, by the labels of the selection."""
    layer, head, token = selection.at
    words = sentences(CONCEPT, "weight")
    expect_vectors(selection)
    cell = _cell(selection, source)
    matrices = _matrices(cell)
    frames = tuple(
        replace(_frame(cell, name, at, len(cell.steps)), beside=matrices.get(name))
        for at, name in enumerate((ROW, *cell.steps))
    )
    steps = Steps.opened(frames, step, "weight_step")
    tables = anatomy.tables(cell.opened, cell.outputs, selection.axes.keys)
    share = Written.by(whole_percent, cell.opened.weights[cell.key])
    return Panel(
        title=words("title"),
        finding=words("finding", **cell.slots | cell.named, share=share)
        + _why_this_head(selection, cell.key),
        figures=(frames[steps.current].beside or head_matrix(selection, cell.key), steps),
        table=stacked(tables.items(), "step"),
        details=_steps_in_words(cell, selection.run),
        caption=(words("caption", **cell.slots),),
        file=f"L{layer}H{head}-q{token}k{cell.key}",
        formulas=tuple(dict.fromkeys(id for ids, _ in cell.formulas.values() for id in ids)),
        numbers={"weight": share},
    )


def _why_this_head(selection: Selection, key: int) -> str:
    """The reason why a head is the one that every tab opens on, of the weight that the vote of the
    tested heads opens; else ""."""
    recording, of = selection.recording, selection.attention
    vote = opening.voted(recording, of.name)
    if vote is None or (*vote.at, vote.query, *vote.keys) != (*selection.at, key):
        return ""
    own = next(each for each in vote.ballots if (each.layer, each.head) == vote.at)
    name = "says_the_noun" if vote.n_votes else "tested_best"
    slots = {"key": vote.words[1], "found": own.n_matches, "n": own.n}
    return " " + sentences(CONCEPT, "weight")(name, **slots)


def _cell(selection: Selection, source: int | None) -> Cell:
    """A cell of a row, that of the largest weight where None."""
    recording, attention = selection.recording, selection.attention
    key = selection.strongest if source is None else selection.place_of_key(source)
    projection = _projection(selection)
    outputs = projection and anatomy.head_outputs(
        recording, attention, selection.layer, selection.query, projection
    )
    opened = anatomy.cell(recording, attention, *selection.at, key)
    return Cell(selection, key, opened, projection, outputs)


def _projection(selection: Selection) -> anatomy.Outputs | None:
    """W_O of the attention, cut by head, and its bias; None for a model that does not give them."""
    try:
        return loaded(selection.recording).outputs().get(selection.attention.name)
    except (ValueError, AttributeError):
        return None


def head_matrix(selection: Selection, key: int) -> Matrix:
    """The weights of a head with one cell marked; a press on another one selects it."""
    allowed = selection.attention.allowed[selection.layer]
    weights = selection.attention.pattern[selection.layer, selection.head]
    return _marked(selection, key, "matrix", matrix_values(weights, allowed))


def _marked(selection: Selection, key: int, title: str, values: np.ndarray) -> Matrix:
    """A matrix (query, key) of a head with one cell marked."""
    return Matrix(
        title=sentences(CONCEPT, "weight")(title, layer=selection.layer, head=selection.head),
        select=("token", "key"),
        rows=selection.axes.rows,
        columns=selection.axes.keys,
        values=values,
        marks=((selection.query, key, ""),),
        sides=("query", "key"),
        missing=mask_reason(selection.attention.allowed[selection.layer]),
    )


ROW_STEPS = (ROW, "softmax", "sum", "output", "heads")  # which are about all keys of the query


def _matrices(cell: Cell) -> dict[str, Matrix]:
    """The matrix beside each step: q . k of every cell, the scores, and after the softmax the
    weights; the row is framed that the step is about. Nothing of a head with more than
    MOST_CELLS."""
    selection, weights = cell.selection, head_matrix(cell.selection, cell.key)
    if weights.values.size > MOST_CELLS:
        return {}
    of, at = selection.attention, (selection.layer, selection.head)
    weights = replace(weights, values=weights.values.astype(np.float32))
    row = replace(weights, selected=selection.query)
    matrices = {name: row if name in ROW_STEPS else weights for name in (ROW, *cell.steps)}
    products = of.q[at].astype(np.float64) @ of.k[at].astype(np.float64).T
    scores = of.scores[at].astype(np.float64)
    masked = np.where(of.allowed[selection.layer], scores, np.nan)
    for name, values in {"dot": products, "score": scores, "mask": masked}.items():
        if name in matrices:
            most = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
            matrix = _marked(selection, cell.key, f"{name}_matrix", values)
            matrices[name] = replace(matrix, low=-most, high=most, signed=True)
    return {name: replace(matrix, follows="weight_step") for name, matrix in matrices.items()}


def _frame(cell: Cell, name: str, step: int, steps: int) -> Frame:
    """The row that the slider opens on, or a step of the calculation."""
    words = sentences(CONCEPT, "weight")
    title = words(f"{name}_title", step=step, steps=steps, **cell.slots)
    sentence, facts, *figures = FRAMES[name](cell)
    drawn = (Facts(title, sentence, facts=tuple(facts)), *figures)
    formulas, focus = cell.formulas.get(name, (None, ()))
    return Frame(words(name), drawn, formulas=formulas, focus=focus)


def _strips(*rows: tuple[str, str, np.ndarray], text: bool = True) -> Strips:
    """Vectors on one scale: (sign, name, values), each with its norm at its end where `text`."""
    high = max(float(np.abs(values).max(initial=0)) for *_, values in rows) or 1.0
    return Strips(
        strips=tuple(
            Strip(name, values, fixed(float(np.linalg.norm(values))) if text else "", sign)
            for sign, name, values in rows
        ),
        high=high,
    )


def _row(cell: Cell) -> list:
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    bars = _bars(cell, opened.allowed, ("", opened.weights, whole_percent))
    axes = cell.selection.axes
    ends = dict.fromkeys(axes.keys[at] for at in (0, -1) if axes.special[at])
    marks = words("marks", marks=", ".join(ends)) if ends else ""
    return [words("row_says", **cell.slots) + marks, (), bars]


def _dot(cell: Cell) -> list:
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    dot = weight_texts.texts(opened).dot
    return [
        words("dot_says", **cell.slots),
        [(dot, words("dot_result"))],
        _strips(
            (
                "",
                words("q", query=word_in_sentence(cell.selection.word)),
                opened.q,
            ),
            (
                "×",
                words("k", key=word_in_sentence(cell.key_word)),
                opened.k,
            ),
            ("=", "q × k", opened.products),
            text=False,
        ),
    ]


def _score(cell: Cell) -> list:
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    bound = loaded(cell.selection.recording).capabilities.bound
    why = reasons(opened, cell.selection.attention.allowed[opened.layer], bound)
    texts = weight_texts.texts(opened)
    facts = [
        (texts.dot, words("dot_result")),
        (f"/ {texts.divisor}", divisor_text(opened)),
    ]
    says = why["scale"]
    if texts.added:
        facts.append((texts.added.strip(), words("added")))
        says += f" {why['added']}"
    facts.append((f"= {texts.score}", words("score_result")))
    every = np.ones(len(opened.scores), bool)
    return [
        says,
        facts,
        _bars(cell, every, (words("score_result"), opened.scores, _aligned(texts.score_decimals))),
    ]


def _mask(cell: Cell) -> list:
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    allowed = opened.allowed[cell.key]
    texts = weight_texts.texts(opened)
    fact = texts.score if allowed else f"{MINUS}∞"
    return [
        reasons(opened, cell.selection.attention.allowed[opened.layer])["mask"],
        [(fact, words("allowed" if allowed else "not_allowed"))],
        _bars(
            cell,
            opened.allowed,
            (words("score_result"), opened.scores, _aligned(texts.score_decimals)),
        ),
    ]


def _softmax(cell: Cell) -> list:
    words, opened, at = sentences(CONCEPT, "weight"), cell.opened, cell.key
    texts = weight_texts.texts(opened)
    note = "exp" if opened.plain else "exp_below"
    own = note if opened.allowed[at] else "exp_masked"
    by_edit = opened.uniform_edit is not None
    exponentials = np.exp(opened.scores) if opened.plain else opened.exponentials
    return [
        words("uniform_says" if by_edit else "softmax_says", **cell.slots),
        [
            (texts.part, words(own)),
            (f"/ {texts.total}", words("total", **cell.slots)),
            (f"= {texts.softmax}", words("softmax" if by_edit else "weight")),
            *([(texts.weight, words("by_edit"))] if by_edit else ()),
        ],
        _bars(
            cell,
            opened.allowed,
            (words(note), exponentials, _aligned(texts.power_decimals)),
            (words("weight"), opened.weights, _aligned(texts.weight_decimals)),
        ),
    ]


def _value(cell: Cell) -> list:
    words, opened, at = sentences(CONCEPT, "weight"), cell.opened, cell.key
    value = opened.v[at]
    weighted = opened.weights[at] * value
    texts = weight_texts.texts(opened)
    return [
        words("value_says", **cell.slots),
        [
            (texts.weight, words("weight")),
            (f"× {texts.norm}", words("norm_v")),
            (f"= {texts.weighted}", words("norm_weighted")),
        ],
        _strips(
            (
                "",
                words("v", key=word_in_sentence(cell.key_word)),
                value,
            ),
            ("", words("weighted"), weighted),
            text=False,
        ),
    ]


def _sum(cell: Cell) -> list:
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    listed = anatomy.largest_weight_keys(opened)
    shares = opened.weights[list(listed), None] * opened.v[list(listed)]
    keys = cell.selection.axes.keys
    decimals = weight_texts.texts(opened).weight_decimals
    rows = [
        (
            "+" if at else "",
            words(
                "share_of",
                weight=fixed(float(opened.weights[key]), decimals),
                key=word_in_sentence(keys[key]),
            ),
            share,
        )
        for at, (key, share) in enumerate(zip(listed, shares))
    ]
    if others := int(np.delete(opened.allowed, listed).sum()):
        rest = plural(others, "other key")
        rows.append(("+", rest, opened.z - shares.sum(axis=0)))
    rows.append(("=", "z", opened.z))
    if cell.outputs is not None and cell.outputs.z_edits[opened.head] is not None:
        rows.append(("", words("z_edit"), cell.outputs.z[opened.head]))
    norm = fixed(float(np.linalg.norm(opened.z)))
    drawn = _strips(*rows, text=False)
    terms = (
        replace(row, weight=float(opened.weights[key])) for row, key in zip(drawn.strips, listed)
    )
    figure = replace(drawn, strips=(*terms, *drawn.strips[len(listed) :]))
    return [words("sum_says", **cell.slots), [(norm, words("norm_z"))], figure]


def _output(cell: Cell) -> list:
    words, outputs = sentences(CONCEPT, "weight"), cell.outputs
    assert outputs is not None  # else there is no such step
    own, total = outputs.by_head[cell.opened.head], outputs.total
    return [
        words("output_says", **{**cell.slots, "d": len(cell.opened.z), "n": len(total)}),
        [
            (fixed(outputs.lengths[cell.opened.head]), words("norm_output")),
            (fixed(outputs.length), words("norm_all")),
        ],
        _strips(("", words("own_output"), own), ("", words("all_outputs"), total), text=False),
    ]


def _heads(cell: Cell) -> list:
    words, outputs = sentences(CONCEPT, "weight"), cell.outputs
    assert outputs is not None  # else there is no such step
    share = percent(float(outputs.shares[cell.opened.head]))
    none = bool(np.isnan(outputs.shares).any())
    names = [
        *(words("head", head=at) for at in range(len(outputs.by_head))),
        words("bias"),
    ]
    rows = tuple(
        BarRow(
            name,
            (0.0 if none else float(part), float(norm)),
            (NONE if none else percent(float(part)), fixed(float(norm))),
            selected=at == cell.opened.head,
        )
        for at, (name, part, norm) in enumerate(zip(names, outputs.shares, outputs.lengths))
    )
    return [
        words("no_share" if none else "heads_says", **cell.slots, share=share),
        [(NONE if none else share, words("share"))],
        Bars(columns=(words("share"), words("norm")), rows=rows),
        _strips(("=", words("all_outputs"), outputs.total), text=False),
    ]


FRAMES = {
    ROW: _row,
    "dot": _dot,
    "score": _score,
    "mask": _mask,
    "softmax": _softmax,
    "value": _value,
    "sum": _sum,
    "output": _output,
    "heads": _heads,
}


def _aligned(decimals: int) -> Callable[[float], str]:
    """The writer of a column's numbers in so many decimals."""
    return lambda value: weight_texts.aligned(value, decimals)


def _bars(
    cell: Cell, allowed: np.ndarray, *columns: tuple[str, np.ndarray, Callable[[float], str]]
) -> Bars:
    """The keys of the row with their numbers, as they are written: those of the largest scores, and
    the cell's own. A press selects the key."""
    words, opened = sentences(CONCEPT, "weight"), cell.opened
    order = np.argsort(-np.where(opened.allowed, opened.scores, -np.inf), kind="stable").tolist()
    listed = sorted({cell.key, *[key for key in order if key != cell.key][: MOST_KEYS - 1]})
    n = len(opened.scores)
    return Bars(
        select=("key",),
        columns=tuple(name for name, *_ in columns),
        rows=tuple(
            BarRow(
                cell.selection.axes.keys[key],
                tuple(float(values[key]) if allowed[key] else 0.0 for _, values, _ in columns),
                tuple(
                    write(float(values[key])) if allowed[key] else f"{MINUS}∞"
                    for _, values, write in columns
                ),
                selected=key == cell.key,
                key=str(key),
            )
            for key in listed
        ),
        note=words("rest", shown=len(listed), count=n) if n > len(listed) else "",
    )


# ---- exact numbers -------------------------------------------------------------------------------

LEAST_PERCENT = 0.0005  # a share below which a text in per cent has no digits


def _steps_in_words(cell: Cell, run: Run) -> tuple[str, ...]:
    """The head's share as an equation, and how far the model's own numbers are away."""
    words, opened, outputs = sentences(CONCEPT, "weight"), cell.opened, cell.outputs
    lines = []
    if outputs is not None and outputs.length > 0:
        along = float(outputs.by_head[opened.head] @ outputs.total)
        value = float(outputs.shares[opened.head])
        share = power(value, 2) if 0 < abs(value) < LEAST_PERCENT else percent(value)
        parts = enough_digits(share, truediv, along, outputs.length**2, least=4, write=power)
        lines.append(words("exact_share", parts=" / ".join(parts), share=share))
    lines.append(
        words(
            "check",
            score=power(opened.score_error, 2),
            weight=power(opened.weight_error, 2),
        )
    )
    if outputs is None:
        lines.append(words("no_output" if cell.projection is None else "other_text"))
    elif outputs.error is not None:
        lines.append(words("check_output", output=power(outputs.error, 2)))
    recording = cell.selection.recording
    longest = recording.model.n_positions
    n = max(len(stream.tokens) for stream in recording.streams)
    now, most = (power(anatomy.memory(recording, each) / 1e6, 2) for each in (n, longest))
    lines.append(words("memory", now=now, most=most, longest=longest))
    if cell.selection.is_across:
        lines.append(words("row_rule" if run.target is None else "row_rule_typed"))
    return tuple(lines)


def reasons(
    opened: anatomy.WeightBreakdown, allowed: np.ndarray, bound: float = 0.0
) -> dict[str, str]:
    """Sentences for the steps: on the scale, on what was added, and on the mask, which permits
    `allowed` (query, key). bound: as of `Capabilities`."""
    words = sentences(CONCEPT, "reasons")
    width = len(opened.q)
    divisor = weight_texts.texts(opened).divisor
    is_root = np.isclose(opened.divisor, sqrt(width))
    root = f"√d_k = √{width} = {divisor if is_root else fixed(sqrt(width))}"
    if opened.divisor_edit is not None:
        scale = words("edited_scale", edit=opened.divisor_edit)
    elif opened.divisor == 1 and width != 1:
        scale = words("unscaled")
    elif not is_root:
        scale = words("own_scale", divisor=divisor, root=root)
    else:
        scale = words("scale", root=root, d=width)
    measured = words("bounded", bound=bound) if bound else words("measured")
    added = measured if opened.measured else words("penalty")
    near = f"at most {plural(window_reach(allowed), 'position')} away"
    slots = {"query": opened.query, "key": opened.key, "near": near, "n": opened.allowed.sum()}
    return {"scale": scale, "added": added, "mask": words(_rule(opened, allowed), **slots)}


def _rule(opened: anatomy.WeightBreakdown, allowed: np.ndarray) -> str:
    """The name of the sentence on whether this query can attend to this key, and why."""
    may, out = opened.allowed[opened.key], taken_out(allowed)
    if out[opened.key] and not may and (opened.key < opened.query or sees_ahead(allowed)):
        return "taken_out"
    if sees_all(allowed):
        return "all_but_out" if out.any() else "all_allowed"
    if sees_ahead(allowed):
        return "near" if may else "not_near"
    if may:
        return "in_window" if windowed(allowed) else "earlier"
    return "before_window" if opened.key < opened.query else "later"


# ---- all heads -----------------------------------------------------------------------------------


@spec.panel
def formulas(
    run: Run, layer: Layer = OPENS, token: Query = OPENS, attention: OpenedAttention = OPENS
) -> Panel:
    """Attention's output at one query by three formulas, and how far they are apart.

    Raises ValueError for what is not there, and for a model that does not give its values and W_O.
    """
    selection = select(run, layer, 0, token, attention)
    layer, _, token = selection.at
    words, of = sentences(CONCEPT, "formulas"), selection.attention
    expect_vectors(selection)
    projection = _projection(selection)
    if projection is None:
        raise ValueError(sentences(CONCEPT, "weight")("no_output"))
    forms = anatomy.output_forms(selection.recording, of, layer, token, projection)
    largest = anatomy.largest_component(forms)
    (n, m), heads, d_v = of.pattern.shape[2:], of.v.shape[1], of.v.shape[-1]
    slots = {"layer": layer, "token": token, "query": selection.word}
    shape = {"n": n, "m": m, "d_v": d_v, "wide": heads * d_v, "vectors": heads * m}
    vectors = {
        words("per_position"): forms.per_position,
        words("concatenated"): forms.concatenated,
        words("by_head"): forms.by_head,
    }
    strips = tuple(Strip(name, vector) for name, vector in vectors.items())
    details = words.lines("details", **shape, d_model=len(forms.by_head))
    error = forms.error
    return Panel(
        title=words("title"),
        finding=words(
            "finding", **slots, difference=power(forms.max_difference, 2), largest=power(largest)
        ),
        figures=(Strips(title=words("strips", **slots), strips=strips, high=largest or 1.0),),
        table={"dimension": np.arange(len(forms.by_head)), **vectors},
        details=details if error is None else (*details, words("own", own=power(error, 2))),
        caption=(words("caption", **slots),),
        file=f"L{layer}-formulas",
        formulas=("weighted-sum", "concatenation", "sum-over-heads"),
    )


# ---- verified ------------------------------------------------------------------------------------

VERIFIED = ("attention", "rows", "concatenation", "added", "layer-norm", "rms-norm")


@spec.panel
def verified(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: Query = OPENS,
    source: Key = OPENS,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """The laws of a recording, each checked number by number, with the formulas of one weight.

    source: the key, the one of the largest weight where None. Raises ValueError for what is not
    there.
    """
    selection = select(run, layer, head, token, attention)
    words, recording = sentences(CONCEPT, "verified"), selection.recording
    key = selection.strongest if source is None else selection.place_of_key(source)
    checks = _laws(recording)
    done = [check for check in checks if check.checked]
    table = {
        name: [row[at] for row in map(_law, done)] for at, name in enumerate(words.lines("columns"))
    }
    says = "hold" if all(check.holds for check in done) else "fail"
    passed, total = sum(check.holds for check in done), sum(check.numbers for check in done)
    slots = {"layer": selection.layer, "head": selection.head, "query": selection.word}
    slots |= {"key": selection.axes.keys[key], "model": selection.model}
    weight = weight_text(selection, key)
    pair = words("pair" if selection.attention.opens else "closed", **slots, weight=weight)
    unchecked = [check for check in checks if check.not_checked]
    return Panel(
        title=words("title"),
        finding=f"{words(says, passed=passed, n=len(done), total=total)} {pair}",
        figures=(TextTable(columns=tuple(table), rows=tuple(zip(*table.values()))),),
        table=table,
        details=tuple(
            words("not_checked", law=check.law, why="; ".join(check.not_checked))
            for check in unchecked
        ),
        file="verified",
        formulas=VERIFIED,
        at={"source": key},
    )


def _law(check: consistency.Check) -> tuple[str, ...]:
    """A law as a row: whether it holds, how many numbers, their largest error, where it is, and
    what rounding explains."""
    error = power(check.error, 2) if np.isfinite(check.error) else NONE
    where = check.where if check.error else NONE
    mark = "✓" if check.holds else "✗"
    return f"{mark} {check.law}", f"{check.numbers:,}", error, where, power(check.tolerance, 2)


@kept
def _laws(recording: Recording) -> tuple[consistency.Check, ...]:
    return consistency.checks(recording, *_parameters(recording))


def _parameters(recording: Recording) -> tuple[Any, ...]:
    """Parameters that the laws are checked with: W_O, the norms by stream, and how the model was
    built; None for what it does not show."""
    model = loaded(recording)
    built = model_names.cards().get(recording.model.name, {}).get("config") or {}
    built = built | {"biased": model.capabilities.biased, "bound": model.capabilities.bound}
    try:
        norms = {each.name: model.norms(each.name, recording.edits) for each in recording.streams}
        return model.outputs(), norms, built
    except (ValueError, AttributeError):
        return None, None, built
