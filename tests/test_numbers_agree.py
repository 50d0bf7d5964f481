"""Numbers on screen agree on any ordinary sentence: what is called the largest is the largest of
what is drawn, what is told to add or to multiply does so at the digits that are printed, and one
name has one number wherever it stands."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from operator import attrgetter

import numpy as np
import pytest
from conftest import EVERY
from test_sentences_true import CASES, OF_SMOLLM2, number, seen
from tolerances import PASSED, SUMMED

import headlight
from explorer.analysis.measure import MeasureContext
from explorer.figures.formatting import NUMBER, hundredths, matches_text, parse_number, percent
from explorer.figures.kinds import Bars, Facts, Figure, Matrix
from explorer.panels import lessons, spec
from explorer.panels.spec import Panel
from models.contract.edits import Edit, ZeroHead
from models.runtime import registry
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn]
ALL = CASES[:: 1 if EVERY else 2] + OF_SMOLLM2


@cache
def panels() -> dict[str, Callable[..., Panel]]:
    """Every panel function by its name."""
    assert headlight.panels  # the door imports all of them
    return dict(spec.PANELS)


def made(
    of: MeasureContext, name: str, edits: tuple[Edit, ...] = (), **choices: object
) -> Panel | None:
    """A panel of a recording or of its text under edits, None where it has nothing for this text or
    model."""
    run = Run(of.recording.model.name, of.recording.text, edits)
    try:
        return panels()[name](run, **choices)
    except ValueError:
        return None


def followed(of: MeasureContext) -> dict[str, object] | None:
    """The choices of the panels on the pair of words that lessons follow."""
    try:
        pair = lessons.hero(of.recording)
    except ValueError:
        return None
    place = {"layer": pair.layer, "head": pair.head, "token": pair.query}
    return place | {"attention": pair.attention.name}


def parts(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Figures, those behind a slider and in a stack among them."""
    for each in figures:
        yield each
        yield from parts(getattr(each, "figures", ()))
        for frame in getattr(each, "frames", ()):
            yield from parts(frame.figures)


# ---- the largest is the largest --------------------------------------------------------------

SUPERLATIVE = re.compile(r"\b(?:most|largest|longest|highest|strongest|more than any other)\b")
OTHERWISE = re.compile(r"at most|[Mm]ost (?:likely|probable)|of at most")


def row_of(panel: Panel, token: int) -> list[float]:
    """A token's numbers in a table of tokens by places, of the places that layers have."""
    places = of_token(panel, token).items()
    return [value for place, value in places if place.startswith("layer")]


def of_token(panel: Panel, token: int) -> dict[str, float]:
    """A token's numbers in a table of tokens by places, by the place."""
    return {
        place: float(value)
        for name, place, value in zip(*(panel.table[each] for each in ("token", "place", "value")))
        if name.split()[0] == str(token)
    }


def other_columns(matrix: Matrix) -> list[float]:
    """The values of the marked row of a matrix for the columns that are not its own token."""
    ((row, _, _),) = matrix.marks
    columns = [at for at in range(len(matrix.columns)) if matrix.columns[at] != matrix.rows[row]]
    return np.nan_to_num(matrix.values[row, columns]).tolist()


# By panel: the text of its sentence's largest number, and the numbers that it is the largest of.
LARGEST: dict[str, Callable[[Panel, int], tuple[str, list[float]]]] = {
    "residual.updates": lambda panel, token: (
        re.findall(r"by ([\d.]+)°", panel.finding)[0],
        row_of(panel, token),
    ),
    "residual.heads": lambda panel, token: (
        re.findall(r"of norm ([^ ]+?)\.(?: |$)", panel.finding)[0],
        row_of(panel, token),
    ),
    "residual.token_path": lambda panel, token: (
        re.findall(r"by ([\d.]+)°", panel.finding)[0],
        [float(row[-1]) for row in panel.figures[0].figures[1].rows],
    ),
    # Nothing is said where no other token brings anything.
    "architecture.flow": lambda panel, token: (
        "".join(re.findall(r"brings most, ([^ ]+) of what", panel.finding)) or "0",
        others_shares(panel).clip(0).tolist(),
    ),
    "attribution.logit": lambda panel, token: (
        str(panel.numbers["largest_part"]).lstrip("+−"),
        [
            abs(value)
            for value, kind in zip(panel.table["contribution"], panel.table["kind"])
            if kind and not (kind == "bias" and "part from the biases" in panel.finding)
        ],
    ),
    "soft_lookup.messages": lambda panel, token: (
        next(row.texts[1] for row in panel.figures[1].rows if row.selected),
        [row.values[1] for row in panel.figures[1].rows if row.key],  # the last row is the sum
    ),
    "summaries.output_norms": lambda panel, token: (
        re.findall(r"output norm, ([\d.,]+)\.", panel.finding)[0],
        panel.figures[0].values.ravel().tolist(),
    ),
    "summaries.aggregated": lambda panel, token: (
        re.findall(r"(?:: |value, |”, )((?:> )?\d[\d.]*\d)[.,]", panel.finding)[0],
        other_columns(panel.figures[0]),
    ),
    "logit_lens.development": lambda panel, token: (
        f"{np.diff(panel.table['probability of final answer']).max():.4f}",
        np.diff(panel.table["probability of final answer"]).tolist(),
    ),
    "generation.attention": lambda panel, token: (
        re.findall(r"weight ([\d.]+)\)", panel.finding)[0],
        [
            row.values[0]
            for row in panel.figures[1].rows
            if row.label.partition(" ")[2] not in panel.special
        ],
    ),
}


def others_shares(panel: Panel) -> np.ndarray:
    """What the attention in focus brings from each token but the chosen one."""
    flow, table = panel.figures[0], panel.table
    layer = next(each for each in flow.layers if (each.layer, each.band) == (flow.layer, flow.band))
    heads = len(next(each for each in layer.attentions if each.attention == flow.attention).shares)
    name = flow.attention or panel.run.recording().attention[0].name
    at = zip(table["attention"], table["layer"], table["share"])
    brought = [share for of, number, share in at if (of, number) == (name, flow.layer)]
    shares = np.array(brought).reshape(heads, -1).sum(0)
    band = flow.bands[flow.band]
    if flow.attention != "cross":
        shares[int(band.places[band.selected])] = -np.inf
    return shares


@pytest.mark.parametrize(("model", "text"), ALL)
def test_what_is_called_the_largest_is_the_largest_drawn(model: str, text: str) -> None:
    of = seen(model, text)
    marked_is_largest(of)
    place = followed(of)
    if place is None:
        return
    token = int(str(place["token"]))
    choices = {"soft_lookup.messages": place, "summaries.aggregated": {"kind": "Max"}}
    choices["residual.updates"] = {"measure": "Rotation angle", "token": token}
    for name, read in LARGEST.items():
        one = {} if name.startswith(("attribution", "logit", "generation")) else {"token": token}
        if len(of.recording.streams) > 1:
            one = {}
        panel = made(of, name, **choices.get(name, one))
        if panel is None or not SUPERLATIVE.search(OTHERWISE.sub("", panel.finding)):
            continue
        written, values = read(panel, int(panel.arguments.get("token") or 0))
        assert agrees(written, max(values)), (name, panel.finding, max(values))


def marked_is_largest(of: MeasureContext) -> None:
    """The word at which attention writes most differently is marked."""
    if (panel := made(of, "stages.exchanged")) is None:
        return
    (bars,) = panel.figures
    at, column = bars.mark
    (place,) = np.flatnonzero([row.values[1] > 0 for row in bars.rows])
    others = [row for each, row in enumerate(bars.rows) if each != place]
    assert bars.rows[at].values[column] == max(row.values[column] for row in others)


def without_head(place: dict[str, object]) -> tuple[Edit, ...]:
    """The edit that ablates a head of the first layer, which changes the layers after it: of the
    number and attention of the head that lessons follow."""
    return (ZeroHead(0, int(str(place["head"])), str(place["attention"])),)


def parameters(name: str) -> set[str]:
    """The names of a panel's choices."""
    return {*inspect.signature(panels()[name]).parameters}


def matrices(panel: Panel) -> list[Matrix]:
    """Every matrix of a panel."""
    return [each for each in parts(panel.figures) if isinstance(each, Matrix)]


def of_head(panel: Panel) -> str:
    """The head that a sentence names, as tables have it."""
    layer, head = re.findall(r"[Ll]ayer (\d+), head (\d+)", panel.finding)[0]
    return f"L{layer} H{head}"


def changes(panel: Panel) -> dict[str, float]:
    """How much each experiment changes the probability of the model's own prediction; of those that
    put another word first alone, where there are some."""
    (own, word), *others = zip(panel.table["probability"], panel.table["top prediction"])
    named = dict(zip(panel.table["experiment"][1:], others))
    turned = {name: each for name, each in named.items() if each[1] != word}
    return {name: abs(p - own) for name, (p, _) in (turned or named).items()}


def changed_by(panel: Panel) -> float:
    """How much the experiment changes it that the sentence calls the strongest."""
    name = re.findall(r"“(.+?)” changes the prediction most", panel.finding)[0]
    return changes(panel)[name]


def marked_change(panel: Panel) -> tuple[str, list[float]]:
    """The change of the weight that is framed, between the two weights that the sentence has."""
    before, after, difference = matrices(panel)
    ((row, key, _),) = difference.marks
    texts = re.findall(r"weight ([\d.]+) before and ([\d.]+) after", panel.finding)[0]
    for text, one in zip(texts, (before, after)):
        assert matches_text(text, float(np.nan_to_num(one.values[row, key])))
    values = np.nan_to_num(np.abs(difference.values))
    return f"{values[row, key]:.6f}", values.ravel().tolist()


# The same of panels that compare two runs, each with what its sentence calls the largest.
LARGEST_OF_TWO: dict[str, tuple[str, Callable[[Panel], tuple[str, list[float]]]]] = {
    "interventions.experiments": (
        "changes the prediction most",
        lambda panel: (f"{changed_by(panel):.6f}", list(changes(panel).values())),
    ),
    "interventions.effect": (
        "changed most",
        lambda panel: (
            re.findall(r"changed most \(([^)]+)\)", panel.finding)[0],
            matrices(panel)[-1].values.ravel().tolist(),
        ),
    ),
    "interventions.head_attention": ("largest change of one weight", marked_change),
    "interventions.residual_stream": (
        "differ most",
        lambda panel: (
            re.findall(r"by ([^ ]+) times", panel.finding)[0],
            panel.table["distance / length before"].tolist(),
        ),
    ),
    "interventions.patches": (
        "largest effect",
        lambda panel: (
            re.findall(r"(?:answer|adds|by) −?([\d.]+%?)", panel.finding)[0],
            np.abs(matrices(panel)[0].values).ravel().tolist(),
        ),
    ),
    "compare.heads": (
        "differs most",
        lambda panel: (
            f"{dict(zip(panel.table['head'], panel.table['distance']))[of_head(panel)]:.6f}",
            list(panel.table["distance"]),
        ),
    ),
}


@pytest.mark.parametrize(("model", "text"), ALL)
def test_what_changes_most_between_two_runs_is_the_largest_drawn(model: str, text: str) -> None:
    of = seen(model, text)
    place = followed(of)
    if place is None:
        return
    read = set()
    for name, (says, values_of) in LARGEST_OF_TWO.items():
        if name == "interventions.patches" and model == registry.SMOLLM2:
            continue  # as many passes as it has heads
        is_of_plain = name in ("interventions.experiments", "interventions.patches")
        choices = {"attention": place["attention"], "other_attention": place["attention"]}
        choices = {each: choices[each] for each in choices.keys() & parameters(name)}
        panel = made(of, name, () if is_of_plain else without_head(place), **choices)
        if panel is None or says not in panel.finding:
            continue
        written, values = values_of(panel)
        assert agrees(written, max(values)), (name, panel.finding, max(values))
        read.add(name)
    assert len(read) >= 4, read


@pytest.mark.parametrize(("model", "text"), ALL)
def test_matrices_side_by_side_have_one_scale(model: str, text: str) -> None:
    of = seen(model, text)
    for name in ("textbook.own_weight", "soft_lookup.scoring"):
        if (panel := made(of, name)) is not None:
            grids = matrices(panel)
            assert len({(each.low, each.high, each.signed) for each in grids}) == 1, name
            assert max(float(np.nanmax(np.abs(each.values))) for each in grids) <= grids[0].high


# ---- what is told to add or to multiply does ---------------------------------------------------

PLAIN = re.sub(r"\?P<\w+>", "?:", NUMBER.pattern)
TERM = rf"(?:exp\([^()]*\)|√?(?:{PLAIN})²?)"
SIDE = rf"\(?{TERM}(?: [+−×/] \(?{TERM}\)?)+"
EQUATION = re.compile(rf"(?P<side>{SIDE}) = (?P<result>{TERM})(?![\d,.]*[\d²√(])")


def value(side: str) -> float:
    """The value of an expression as it is written."""
    text = re.sub(r"√([\d.,]+)", r"math.sqrt(\1)", side)
    text = re.sub(
        NUMBER.pattern.replace("[+−-]?", "−?"),
        lambda match: repr(parse_number(match[0])),
        text,
    )
    text = text.replace("exp(", "math.exp(").replace("²", "**2")
    for sign, plain in (("×", "*"), ("÷", "/"), ("−", "-")):
        text = text.replace(sign, plain)
    return float(eval(text, {"math": math, "__builtins__": {}}))


QUOTED = re.compile("“[^”]*”")  # words of the text, and what a model writes


def equations(panel: Panel) -> Iterator[tuple[str, str]]:
    """The equations of a panel's sentences, but those that a model writes, and those that its large
    numbers make in a line."""
    facts = [each for each in parts(panel.figures) if isinstance(each, Facts)]
    lines = [" ".join(fact for fact, _ in each.facts) for each in facts]
    for line in (panel.finding, *panel.details, *lines):
        for match in EQUATION.finditer(QUOTED.sub("“”", line)):
            yield match["side"], match["result"]


EQUAL = (
    "anatomy.weight",
    "residual.updates",
    "attribution.logit",
    "attribution.neurons",
    "predictions.word",
    "generation.next_token",
    "generation.kv_cache",
    "embeddings.contexts",
    "soft_lookup.scale",
)


ALWAYS = ("anatomy.weight", "residual.updates", "predictions.word")  # those that have equations


@pytest.mark.parametrize(("model", "text"), ALL)
def test_what_is_told_to_add_or_multiply_does_at_its_printed_digits(model: str, text: str) -> None:
    of = seen(model, text)
    place = followed(of) or {}
    for name in EQUAL:
        panel = made(of, name, **(place if name == "anatomy.weight" else {}))
        found = list(equations(panel)) if panel else []
        assert panel is None or found or name not in ALWAYS, (name, panel.details)
        for side, result in found:
            assert matches_text(result, value(side)), (name, side, result, value(side))
    if panel := made(of, "generation.loops"):
        stored(panel)


def stored(panel: Panel) -> None:
    """The products in the boxes of the loops."""
    (token,) = panel.figures[0].boxes
    written = [box.count for box in token.inside[1].inside if " = " in box.count]
    assert len(written) == 2
    for line, name in zip(written, ("stored", "scores")):
        factors, _, result = line.partition(" = ")
        product = math.prod(number(each) for each in factors.split(" × "))
        assert product == number(result)
        assert product == dict(zip(panel.table["quantity"], panel.table["value"]))[name]


# ---- one name has one number -------------------------------------------------------------------

Key = tuple[object, ...]
Entry = tuple[Key, float | str, str]


def entries(of: MeasureContext) -> Iterator[Entry]:
    """What panels and lessons print of this recording: (name and place, number or its text, where
    it stands)."""
    place = followed(of)
    if place is None:
        return
    for source in SOURCES:
        yield from source(of, place)


def head_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """Norm and share of each head's output, and its mean distance."""
    layer, token, attention = (place[name] for name in ("layer", "token", "attention"))
    heads = range(of.recording.model.n_head)
    if panel := made(of, "anatomy.weight", **place):
        tables = [each for each in parts(panel.figures) if isinstance(each, Bars)]
        shares = next((each for each in tables if each.columns == ("share", "norm")), Bars())
        for head, row in zip(heads, shares.rows):
            key = (attention, layer, head, token)
            yield ("Share of a head", *key), row.texts[0], "anatomy.weight"
            yield ("Length of a head", *key), row.values[1], "anatomy.weight"
    stream = next(each.query for each in of.recording.attention if each.name == attention)
    kind = {"cross": " cross", "self": ""}.get(str(attention), " self")
    for measure, other in (("Length", "Length"), ("Share", "Share of heads")):
        at_token = {"token": token, "measure": measure, "attention": attention}
        by_layer = made(of, "summaries.output_norms", **at_token)
        at_token = {"token": token, "measure": other, "stream": stream}
        by_token = made(of, "residual.heads", **at_token)
        for head in heads if by_layer and by_token else ():
            key = (f"{measure} of a head", attention, layer, head, token)
            yield key, by_layer.table[f"head {head}"][layer], "summaries.output_norms"
            here = of_token(by_token, token)[f"layer {layer}{kind}, head {head}"]
            yield key, here, "residual.heads"


def weight_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """Scores and weights of one row."""
    row = tuple(place.values())
    if panel := made(of, "anatomy.weight", **place):
        table = panel.table
        for step, key, score, weight in zip(
            *(table[name] for name in ("step", "key", "score", "weight"))
        ):
            if step == "The row":
                yield ("score", *row, key), score, "anatomy.weight"
                yield ("weight", *row, key), weight, "anatomy.weight"
    if panel := made(of, "soft_lookup.temperature", **place):
        for key, (score, weight) in enumerate(zip(panel.table["score"], panel.table["weight"])):
            if np.isfinite(score):
                yield ("score", *row, key), score, "soft_lookup.temperature"
            yield ("weight", *row, key), weight, "soft_lookup.temperature"
    if panel := made(of, "soft_lookup.messages", **place):
        for bar in filter(attrgetter("key"), panel.figures[1].rows):
            yield ("weight", *row, int(bar.key)), bar.values[0], "soft_lookup.messages"


def scale_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """The largest weights of rows, with the scale."""
    attention, name = of.recording.attention[0], "largest weight with the scale"
    if panel := made(of, "soft_lookup.scale", attention=attention.name):
        yield (name,), panel.table[name][-1], "soft_lookup.scale"
        rows = attention.pattern[:, :, attention.allowed[0].sum(axis=1) > 1]
        yield (name,), float(rows.max(-1).mean(dtype=float)), "the weights"


def stream_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """Rotations of one word's vector."""
    stream, token = of.recording.streams[-1], int(str(place["token"]))
    choices = {"token": token, "stream": stream.name}
    if panel := made(of, "residual.updates", measure="Rotation angle", **choices):
        for name, turn in of_token(panel, token).items():
            if name.startswith("layer"):
                yield ("rotation", name), turn, "residual.updates"
    if panel := made(of, "residual.token_path", **choices):
        for name, turn in zip(panel.table["sub-layer"], panel.table["turned by adding °"]):
            yield ("rotation", name), turn, "residual.token_path"
    choices = {"token": token, "hide": False, "number": "Rotation angle"}
    if len(of.recording.streams) == 1 and (panel := made(of, "architecture.flow", **choices)):
        for layer in panel.figures[0].layers:
            names = (f"layer {layer.layer}, {place}" for place in ("attention", "FFN"))
            for name, turn in zip(names, layer.numbers.split()):
                yield ("rotation", name), turn, "architecture.flow"


def word_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """Probabilities of next words."""
    stream = of.recording.streams[-1]
    if of.recording.model.kind != "decoder":
        return
    last = len(stream.tokens) - 1
    for name, figure in (
        ("predictions.word", 1),
        ("logit_lens.lens", 1),
        ("generation.next_token", 1),
    ):
        choices = {} if name.startswith("generation") else {"token": last}
        if panel := made(of, name, **choices):
            for row in panel.figures[figure].rows:
                word = re.sub(r" \((?:actual|next)\)$", "", row.label)
                yield ("probability", last, word), row.values[0], name
    if panel := made(of, "architecture.flow", token=last):
        for each in panel.figures[0].words:
            yield ("probability", last, each.label), each.probability, "architecture.flow"


def distance_of_two_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """How far each head of a run without a head is from the same head as trained."""
    edits, name = without_head(place), str(place["attention"])
    attentions = {"attention": name, "other_attention": name}
    if both := made(of, "compare.heads", edits, **attentions):
        for head, distance in zip(both.table["head"], both.table["distance"]):
            yield ("distance of runs", head), distance, "compare.heads"
    if near := made(of, "compare.nearest", edits, **attentions):
        columns = (near.table[column] for column in ("head of A", "head of B", "distance"))
        for a, b, distance in zip(*columns):
            if a == b:
                yield ("distance of runs", a), distance, "compare.nearest"
    if len(of.recording.streams) > 1:  # there each run reads a translation of its own
        return
    if effect := made(of, "interventions.effect", edits, attention=name, masked=False):
        for (layer, head), distance in np.ndenumerate(matrices(effect)[-1].values):
            yield ("distance of runs", f"L{layer} H{head}"), distance, "interventions.effect"


# Those that take a pass for each head, step or sentence.
MANY_PASSES = ("corpus", "training", "generation", "interventions.patches", "positions.answer")


def number_entries(of: MeasureContext, place: dict[str, object]) -> Iterator[Entry]:
    """The numbers that panels hand out, of the recording that each draws: as trained, and beside
    it without a head. Those of SmolLM2 take longest, and are read where every sentence is."""
    if of.recording.model.name == registry.SMOLLM2 and not EVERY:
        return
    for name in panels():
        is_of_source = name == "architecture.flow" and len(of.recording.streams) > 1
        if name.startswith(MANY_PASSES) or is_of_source:
            continue
        choices = {key: place[key] for key in place.keys() & parameters(name)}
        for edits in ((), without_head(place)) if "interventions" in name else ((),):
            if (panel := made(of, name, edits, **choices)) is None:
                continue
            drawn = "" if edits else panel.at.get("run", panel.run)
            for key, told in panel.numbers.items():
                text = told.text.rstrip("°")
                assert not NUMBER.fullmatch(text) or matches_text(text, told), (name, key)
                yield (drawn, key), float(told), name


SOURCES = (
    head_entries,
    weight_entries,
    scale_entries,
    stream_entries,
    word_entries,
    distance_of_two_entries,
    number_entries,
)


def agrees(a: float | str, b: float | str) -> bool:
    """True where two numbers, or what is written of them, are the same."""
    if isinstance(a, str) and isinstance(b, str):
        bounds = [each for each in (a, b) if each[:1] in "<>"]
        return a == b or (not bounds and number(a) == number(b))
    if isinstance(b, str):
        a, b = b, a
    if isinstance(a, str):
        a = a.rstrip("°")
        if a in (hundredths(0.001), hundredths(0.999)):
            return a == hundredths(float(b))
        return a == percent(float(b)) if not NUMBER.fullmatch(a) else matches_text(a, float(b))
    return bool(np.isclose(float(a), float(b), rtol=PASSED, atol=SUMMED, equal_nan=True))


@pytest.mark.parametrize(("model", "text"), ALL)
def test_one_name_has_one_number_wherever_it_stands(model: str, text: str) -> None:
    index: dict[Key, list[tuple[float | str, str]]] = {}
    for key, written, where in entries(seen(model, text)):
        for other, place in index.setdefault(key, []):
            assert agrees(written, other), (key, (written, where), (other, place))
        index[key].append((written, where))
    met = {where for each in index.values() if len(each) > 1 for _, where in each}
    assert len(met) > 3 or not index, met
