"""A formula beside a picture has the numbers of that picture: its layer, head and token, its pair
of words, of dimensions or of positions, its component."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from claim_fixtures import material
from conftest import in_turn, needs_smollm2, read_once
from ordinary_sentences import SENTENCES
from tolerances import DOUBLE, FOUR_DECIMALS, PASSED, STORED, SUMMED

from explorer.analysis import residual
from explorer.analysis.formulas import RecordedPlace, position_products
from explorer.analysis.measure import MeasureContext, Untestable
from explorer.figures.formatting import matches_text, parse_number, tenths
from explorer.figures.kinds import Bars
from explorer.panels import spec
from explorer.panels.spec import Panel
from explorer.text.formulas import FORMULAS, filled, html
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn]
NUMBER = r"(−?[\d.,]+(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?)(?=[ .,]|$)"
Numbers = Mapping[str, Any]
Law = Callable[[Panel, RecordedPlace, dict[str, Numbers]], bool]


def caption(panel: Panel) -> str:
    return " ".join(panel.caption)


def names_head(panel: Panel, at: RecordedPlace, _: dict[str, Numbers]) -> bool:
    """The head and the query that stand below the picture."""
    told = f"{caption(panel)} {panel.finding}"
    return re.search(rf"[Ll]ayer {at.layer}, head {at.head}\b", told) is not None


def names_query(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    return names_head(panel, at, numbers) and f"(token {at.token})" in caption(panel)


def scores(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    found = re.search(rf"” {NUMBER}, and “.*” {NUMBER}\. With", panel.finding)
    if found is None:  # no pair differs
        return True
    pair = (numbers["scorings"][name] for name in ("there", "back"))
    return all(matches_text(text, each) for text, each in zip(found.groups(), pair))


def encoding(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    framed = panel.figures[0].selected
    row = max(framed, 0) or (0 if framed == 0 else 1)
    matrix = panel.figures[0]
    of = numbers["sinusoids"]
    cells = [matrix.values[row, matrix.columns.index(str(2 * at.pair + more))] for more in (0, 1)]
    assert (of["i"], of["d"], of["m"]) == (row, at.width, 2 * at.pair)
    assert f"width {at.width}." in caption(panel)
    assert [of["sin"], of["cos"]] == pytest.approx(cells, abs=DOUBLE)
    return f"pair {at.pair} of" in panel.finding


def rotation(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    of, (sine, _) = numbers["shift"], panel.figures[1].rows
    assert matches_text(sine[-1], of["further"]) and matches_text(sine[3], of["sin"])
    assert f"by {of['k']} positions rotates pair {at.pair} " in panel.finding
    says = f"Pair {at.pair} of width {at.width}, from position {at.position}"
    return f"{says} to {at.position + of['k']}." in caption(panel)


def distance(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    of = numbers["position-products"]
    at_one = re.search(rf"at distance {of['k']} it is {NUMBER},", " ".join(panel.details))
    return at_one is not None and matches_text(at_one[1], of["product"])


def updates(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    """x, f and their sum are one dimension of the three vectors of the marked cell, or of the
    selected row."""
    grid, row = panel.figures[0], at.token
    if isinstance(grid, Bars):
        shown = next(each.key for each in grid.rows if each.selected)
    else:
        row, column, _ = grid.marks[0]
        shown = grid.column_keys[column]
    stream = residual.whole_layers(at.stream) if at.site.endswith(".layer") else at.stream
    of = next(each for each in residual.sublayers(stream) if each.site == at.site)
    vectors = [stream.at(site)[row].astype(np.float64) for site in (of.before, of.wrote, of.total)]
    three = np.array([numbers["added"][name] for name in ("x", "f", "y")])
    assert np.abs(np.array(vectors) - three[:, None]).max(axis=0).min() < STORED
    return shown == at.site and row == at.token


def norm_steps(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    norm = next(each for each in residual.stream_norms(at.stream) if each.site == at.site)
    read = at.stream.at(norm.before)[at.token]
    own = [each["h"] for name, each in numbers.items() if each]
    assert all(np.abs(read - h).min() < SUMMED for h in own) and own
    return f": {norm.name}. " in caption(panel)


def shapes(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    """The component is the largest of the vector that is drawn for the head that is named."""
    result = panel.figures[0].frames[0].figures[0].factors[-1]
    of = {
        name: each
        for made_by in ("projections", "values", "cross")
        for name, each in numbers.get(made_by, {}).items()
    }
    if not of:
        return True
    drawn = np.ravel(result.values).astype(np.float64)
    assert names_query(panel, at, numbers)
    return abs(of[result.name] - drawn[np.abs(drawn).argmax()]) < PASSED


def probability(panel: Panel, at: RecordedPlace, numbers: dict[str, Numbers]) -> bool:
    """In brackets behind the word, or with what it leads in the end."""
    if not numbers["readout"]:
        return True
    p = re.escape(tenths(numbers["readout"]["p"]))
    return re.search(rf"(?:\({p}\)|with {p}\.|, {p} in the end\.)", panel.finding) is not None


def exchanged(panel: Panel, at: RecordedPlace, _: dict[str, Numbers]) -> bool:
    other = re.search(r" at “(.*)”\. The FFN", panel.finding)
    assert other is None or at.stream.tokens[at.token] == other[1]
    return f"in layer {at.layer}." in caption(panel)


# By panel: whether the place and the numbers of its formulas are those that the picture names.
LAWS: dict[str, Law] = {
    "positions.encoding": encoding,
    "positions.rotation": rotation,
    "positions.distance": distance,
    "positions.answer": names_head,  # as the next, of a model that predicts no word
    "positions.order": names_head,
    "modern.rotary": lambda panel, at, numbers: (
        names_query(panel, at, numbers)
        and [each.label for each in panel.figures[0].dials if each.selected] == [f"pair {at.pair}"]
    ),
    "modern.rms_norm": lambda panel, at, _: at.site == f"{at.layer}.attn",
    "soft_lookup.scoring": scores,
    "soft_lookup.messages": names_head,
    "soft_lookup.temperature": names_query,
    "softmax.combination": names_query,
    "softmax.mask": names_query,
    "softmax.saturation": names_query,
    "softmax.row": names_query,
    "anatomy.weight": names_query,
    "anatomy.verified": names_head,
    "anatomy.formulas": lambda panel, at, _: (
        f"Layer {at.layer}, query “" in caption(panel) and f"(token {at.token})" in caption(panel)
    ),
    "multi_head.shapes": shapes,
    "multi_head.concatenation": lambda panel, at, _: (
        f"Layer {at.layer}, query" in caption(panel) and f"(token {at.token})" in caption(panel)
    ),
    "multi_head.head_gradients": names_query,
    "residual.updates": updates,
    "residual.norm_steps": norm_steps,
    "residual.batch_norm": norm_steps,
    "residual.heads": lambda panel, at, _: (
        panel.finding.startswith(f"Layer {at.layer}")
        and f"head {at.head} adds the longest" in panel.finding
        and panel.figures[0].marks[0][0] == at.token
    ),
    "gradients.jacobian": lambda panel, at, _: (
        caption(panel).count(
            next(each.name for each in residual.sublayers(at.stream) if each.site == at.site)
        )
        == 1
    ),
    "feed_forward.units": lambda panel, at, _: f"layer {at.layer} at “" in caption(panel),
    "feed_forward.network": lambda panel, at, _: f"Layer {at.layer}, “" in caption(panel),
    "modern.gate": lambda panel, at, _: f"ayer {at.layer}" in caption(panel),
    "loss.loss": lambda panel, at, numbers: (
        not numbers["loss"]
        or all(
            matches_text(fact[0], numbers["loss"][name])
            for fact, name in zip(panel.figures[1].figures[0].facts, ("nats", "loss"), strict=True)
        )
    ),
    "logit_lens.lens": probability,
    "predictions.word": probability,
    "teacher_forcing.offset": lambda panel, at, numbers: (
        not numbers["readout"] or tenths(numbers["readout"]["p"]) == str(panel.numbers["target"])
    ),
    "stages.exchanged": exchanged,
    "neighbours.between": lambda panel, at, _: f"(token {at.token})" in caption(panel),
    "norm_place.diagrams": lambda panel, at, _: (
        at.layer == 0
        and (f"“{at.stream.tokens[at.token]}”" in panel.details[-1] or len(panel.details) == 4)
    ),
    "paper_figure.stacks": lambda panel, at, _: (
        f"at “{panel.run.recording().stream(at.stream.name).tokens[at.token]}”" in caption(panel)
    ),
    "attribution.carriers": lambda panel, at, _: (
        f"layer {at.layer}, head {at.head} brings" in panel.finding
        and f"(token {at.token})" in panel.finding
    ),
    "distances.near_and_far": lambda panel, at, _: (
        f"Layer {at.layer}, head {at.head} attends" in panel.finding
    ),
    "architecture.flow": lambda panel, at, _: (
        f"(token {at.token}" in caption(panel)
        or (at.stream.name == "decoder" and len(panel.run.recording().streams) > 1)
    ),
    "translation.alignment": lambda panel, at, _: (
        f"in layer {at.layer}, head {at.head}." in " ".join(panel.details)
    ),
}
# Of the model or of the whole text: their pictures name no place.
WITHOUT_A_PLACE = {
    *("claims.claim", "gradients.deep_stack", "soft_lookup.scale", "recurrence.bottleneck"),
    *("generation.kv_cache", "generation.loops", "generation.tokens", "modern.shared_keys"),
    *("teacher_forcing.product", "positions.sentence", "training.losses", "loss.step"),
    "generation.next_token",
}
TEXTS = in_turn(SENTENCES, 64, "beside")
CASES = [
    *product(("encoder", "decoder", "translator", "minilm"), TEXTS),
    *(pytest.param("smollm2", text, marks=needs_smollm2) for text in TEXTS[:1]),
]
# Of SmolLM2 what other models do not have; all of it takes minutes.
OF_SMOLLM2 = {"modern.rotary", "modern.rms_norm", "modern.gate", "multi_head.shapes"}
OF_SMOLLM2 |= {"residual.updates", "soft_lookup.scoring", "anatomy.weight"}
WAYS = ({}, {"layer": 1, "head": 2, "token": 2}, {"pair": 5, "width": 64, "token": 1, "n": 30})


@pytest.mark.parametrize(("model", "text"), CASES)
def test_a_formula_has_the_place_that_its_picture_names(model: str, text: str) -> None:
    run, tested = Run(model, text), set()
    for (name, function), way in product(spec_panels().items(), WAYS):
        chosen = {each: way[each] for each in inspect.signature(function).parameters if each in way}
        is_left_out = model == "smollm2" and name not in OF_SMOLLM2
        if name in WITHOUT_A_PLACE or is_left_out or (way and not (chosen and name in LAWS)):
            continue  # one without a law has no formulas, which one way tells
        try:
            panel = function(run, **chosen)
        except ValueError:
            continue
        if not panel.formulas:
            continue
        assert name in LAWS, f"{name}: what its picture names is not known here"
        context = MeasureContext.of(panel.at.get("run", panel.run))
        at = RecordedPlace.of(context, panel.arguments)
        numbers = {id: numbers_of(id, at) for id in panel.formulas}
        if any(numbers.values()):
            given = {id: each for id, each in numbers.items() if each is not None}
            assert LAWS[name](panel, at, given | dict.fromkeys(set(numbers) - set(given), {})), (
                panel.call,
                panel.finding,
                panel.caption,
                at,
            )
            tested.add(name)
    assert len(tested) >= (len(OF_SMOLLM2) if model == "smollm2" else 12)


def spec_panels() -> dict[str, Callable[..., Panel]]:
    spec.panel_names()
    return spec.PANELS


def numbers_of(id: str, at: RecordedPlace) -> Numbers | None:
    """The numbers of a formula at a place, None where it is not about the model."""
    id, _, t = id.partition("@")
    try:
        place = replace(at, temperature=float(t)) if t else at
        return FORMULAS[id].evidence(place).numbers
    except (Untestable, ValueError):
        return None


def test_what_is_told_to_differ_differs_at_the_digits_that_are_written() -> None:
    near = filled("$there ≠ $back", {"there": -0.018912, "back": -0.018947})
    assert near is not None
    one, other = re.findall(r"−([\d.]+)", html(near))
    assert one != other and parse_number(one) == pytest.approx(0.018912, abs=FOUR_DECIMALS)
    assert filled("$there ≠ $back", {"there": -0.0189, "back": -0.0189}) is None
    context = material(read_once("decoder"), "The cat sat on the mat.")
    for layer, head, token in np.ndindex(4, 6, 7):
        at = RecordedPlace(context, layer, head, token)
        numbers = FORMULAS["scorings"].evidence(at).numbers
        line = filled(FORMULAS["scorings"].numbers[2][1], numbers)
        written = re.findall(r"<mn[^>]*>([^<]+)</mn>", html(line)) if line else ["equal", ""]
        assert written[0] != written[1]


def test_a_distance_that_no_text_has_is_drawn_and_has_its_numbers() -> None:
    context = MeasureContext.of(Run("encoder", "Dogs bark loudly."))
    numbers = position_products(RecordedPlace(context, width=32, shift=40)).numbers
    rates = 10000.0 ** -(np.arange(16) / 16)
    assert numbers["product"] == pytest.approx(float(np.cos(40 * rates).sum()), abs=DOUBLE)
