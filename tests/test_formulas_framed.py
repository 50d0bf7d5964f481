"""One law of formulas beside pictures, over all shipped models: what a formula comes to is framed
in the picture, at that very number, and the printed digits make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import product
from typing import Any

import framed
import pytest
from conftest import in_turn, needs_smollm2
from ordinary_sentences import SENTENCES
from test_formulas import MOST_FIGURES, NOTES, as_read, below, compare, figures
from test_formulas_beside_pictures import LAWS, WITHOUT_A_PLACE, numbers_of
from tolerances import STORED

from explorer.analysis.formulas import RecordedPlace
from explorer.analysis.framing import TOLD
from explorer.analysis.measure import MeasureContext, Untestable
from explorer.figures.formatting import matches_text, parse_number
from explorer.panels import spec
from explorer.panels.spec import Panel
from explorer.text.formulas import FORMULAS
from models import model_names
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn]
TEXTS = in_turn(SENTENCES, 24, "framed")[:2]
SYMBOLS = {"width"}  # no picture has a number of it: its formula stands in the list alone
WITH_FORMULAS = {*LAWS, *WITHOUT_A_PLACE}
SLOW = {"jacobian-product": "gradients.deep_stack"}  # takes long, and depends little on the text


def panels(run: Run, names: Mapping[str, Callable[..., Panel]]) -> list[Panel]:
    """The panels of a run that have formulas, those of a translator's encoder too."""
    every = run.recording().attention
    ways = ({}, {"added": 3.0}, *({"attention": each.name} for each in every[1:]))
    made = []
    for function, way in product(names.values(), ways):
        if not set(way) <= set(signature(function).parameters):
            continue
        try:
            made.append(function(run, **way))
        except ValueError:
            continue
    return [each for each in made if each.formulas]


def is_told(datum: float | str, text: str) -> bool:
    """True where a number, or what a text tells, is what is written, at its digits."""
    if isinstance(datum, str):
        told = TOLD.fullmatch(datum)
        return told is not None and matches_text(text, parse_number(told["number"]))
    # The picture has 32 bits, and may fall on the other side of a last digit.
    return matches_text(text, datum) or datum == pytest.approx(parse_number(text), rel=STORED)


def unframed(header: Mapping[str, Any]) -> list[Any]:
    """The results of a panel's formulas that no frame of its payload is around."""
    missing = []
    for formula in header["formulas"]:
        places = [
            each
            for figure in framed.figures(header, formula["id"])
            for each in framed.framed(figure)
        ]
        assert len(formula["results"]) == len(formula["numbers"])
        missing += [
            (formula["id"], text)
            for _, text, component in formula["results"]
            if not any(
                is_told(datum, text)
                and printed == text
                and (component is None or not name.isdecimal() or name == str(component))
                for datum, name, printed in places
            )
        ]
    return missing


def lines_that_are_true(panel: Panel, header: Mapping[str, Any]) -> set[str]:
    """The formulas of a panel with numbers, whose printed digits make what they come to: read from
    the payload and computed in decimals."""
    at = RecordedPlace.of(MeasureContext.of(panel.at.get("run", panel.run)), panel.arguments)
    for formula in header["formulas"]:
        for line in formula["numbers"]:
            assert figures(line) <= MOST_FIGURES, (panel.call, formula["id"], line)
            read = as_read(line)
            if not {"≈", "≠"} & {item[2] for item in below(read) if item[0] == "mo"}:
                compare(read, dict(numbers_of(formula["id"], at) or {}))
    return {each["id"].partition("@")[0] for each in header["formulas"] if each["numbers"]}


def found(run: Run, slow: set[str]) -> tuple[set[str], set[str]]:
    """The formulas in all pictures of a run, and those with numbers, which keep the law."""
    spec.panel_names()
    names = {name: spec.PANELS[name] for name in WITH_FORMULAS - {SLOW[id] for id in slow}}
    asked, ids = set[str](), set[str]()
    for panel in panels(run, names):
        header = framed.payload(panel)
        assert not (missing := unframed(header)), (panel.call, missing)
        asked |= {each.partition("@")[0] for each in panel.formulas}
        ids |= lines_that_are_true(panel, header)
    return asked, ids


@pytest.mark.parametrize("model", model_names.names())
def test_a_formula_comes_to_a_number_that_is_framed_and_its_digits_make_it(model: str) -> None:
    for text in in_turn(TEXTS, len(TEXTS), model):
        run = Run(model, text)
        asked, ids = found(run, set() if model == "encoder" else set(SLOW))
        place = RecordedPlace(MeasureContext.of(run), 0, 0, 2)
        for id in (asked & set(NOTES.split())) - ids:
            with pytest.raises((Untestable, ValueError)):
                assert not FORMULAS[id].filled(FORMULAS[id].evidence(place).numbers), id
                raise Untestable("no numbers make it true")


@needs_smollm2
def test_the_formulas_of_the_notes_stand_with_numbers_in_pictures_of_the_shipped_models() -> None:
    models = ("encoder", "decoder", "translator", "smollm2", "minilm")
    ids = set().union(*(found(Run(each, TEXTS[0]), set(SLOW))[1] for each in models))
    assert ids >= set(NOTES.split()) - SYMBOLS - set(SLOW) and len(ids) >= 40


def test_the_component_of_an_output_is_its_largest_and_a_lost_frame_is_found() -> None:
    # Its z is 0.910: the weights, in three decimals, make it at the digits that are written.
    run = Run("encoder", "The animal didn't cross the street because it was too tired.")
    header = framed.payload(spec.PANELS["anatomy.weight"](run, step="Sum"))
    (of,) = (each for each in header["formulas"] if each["id"] == "weighted-sum")
    assert len(of["results"]) == len(FORMULAS["weighted-sum"].numbers)
    (frame,) = (each for each in header["figures"][1]["frames"] if each["label"] == "Sum")
    (strips,) = (each for each in frame["figures"] if each["kind"] == "strips")
    ((at, component, _),) = strips["framed"]
    values = strips["strips"][at]["values"]
    assert strips["strips"][at]["label"] == "z"
    assert abs(values[component]) == abs(values).max()
    assert not unframed(header)
    strips["framed"] = []
    assert [id for id, _ in unframed(header)] == ["weighted-sum"]
    strips["framed"] = [[at, (component + 1) % len(values), ""]]
    assert [id for id, _ in unframed(header)] == ["weighted-sum"]
