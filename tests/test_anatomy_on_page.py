"""The tab One head: the panels on one cell, and which cell a link opens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on
from conftest import HOSTILE, read_once
from streamlit.testing.v1 import AppTest
from tolerances import DOUBLE, SUMMED

from explorer.analysis import anatomy as analysis
from explorer.analysis import weight_texts
from explorer.analysis.facts import RecordingFacts
from explorer.figures.formatting import matches_text, parse_number, whole_percent
from explorer.panels import anatomy, multi_head, soft_lookup
from explorer.panels.spec import Panel
from models.contract.edits import WithoutScale, ZeroHead, to_line
from models.contract.model import Model
from models.runtime.run import Run

TEXT = "The red car is in front of the white house."
TEXTS = (
    "The animal didn't cross the street because it was too tired.",
    "Anna called her sister because she had lost her keys.",
    "My sister thanked the nurse because he was kind.",
    "What is the capital of Nepal?",
)


# ---- the panels ----------------------------------------------------------------------------------


def frames_of(panel: Panel) -> dict[str, tuple]:
    """The figures of each step, by its name."""
    return {frame.label: frame.figures for frame in panel.figures[1].frames}


def facts_of(panel: Panel, step: str) -> list[float]:
    """The numbers of a step in large type, without the signs of the calculation."""
    texts = (fact.removesuffix("%").lstrip("/=×+ ") for fact, _ in frames_of(panel)[step][0].facts)
    return [float("-inf") if text == "−∞" else parse_number(text) for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXT, HOSTILE["empty"]])
def test_each_step_shows_the_numbers_of_the_recording(text: str) -> None:
    run = Run("encoder", text)
    attention = run.recording().attention[0]
    query = min(2, len(attention.allowed[0]) - 1)
    panel = anatomy.weight(run, layer=1, head=5, token=query)
    opened = analysis.cell(
        run.recording(), attention, 1, 5, query, int(panel.figures[0].marks[0][1])
    )
    assert opened.key == attention.pattern[1, 5, query].argmax()
    frames = frames_of(panel)
    q, k, products = (strip.values for strip in frames["Dot product"][1].strips)
    np.testing.assert_allclose(q * k, products)
    texts = weight_texts.texts(opened)
    assert matches_text(texts.dot, products.sum())
    dot, divisor, score = facts_of(panel, "Score")
    assert matches_text(texts.score, dot / divisor)
    part, total, weight = facts_of(panel, "Softmax")
    assert matches_text(texts.weight, part / total) and matches_text(texts.part, np.exp(score))
    assert weight == parse_number(texts.weight)
    assert matches_text(texts.weight, float(attention.pattern[1, 5, query, opened.key]))
    parts = [strip.values for strip in frames["Sum"][1].strips]
    np.testing.assert_allclose(sum(parts[:-1]), parts[-1], atol=SUMMED)
    terms = [strip for strip in frames["Sum"][1].strips if strip.weight is not None]
    listed = analysis.largest_weight_keys(opened)
    assert [strip.weight for strip in terms] == opened.weights[list(listed)].tolist()
    for strip, key in zip(terms, listed):
        np.testing.assert_allclose(strip.values, strip.weight * opened.v[key], atol=SUMMED)
    shares = [row.values[0] for row in frames["Heads"][1].rows]
    assert sum(shares) == pytest.approx(1, abs=SUMMED)
    digits = [fact for figures in frames.values() for fact, _ in figures[0].facts]
    assert all(sum(map(str.isdecimal, fact.partition(" × 10")[0])) <= 7 for fact in digits)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_the_matrix_shows_what_the_step_is_about(model: str) -> None:
    """q . k, then the scores, then those that the mask allows, then the weights."""
    run = Run(model, TEXT)
    attention = run.recording().attention[0]
    q, k = attention.q[1, 5].astype(np.float64), np.asarray(attention.k[1, 5], np.float64)
    allowed = attention.allowed[1]
    scores = attention.scores[1, 5].astype(np.float64)
    for step in frames_of(anatomy.weight(run, 1, 5, 4)):
        panel = anatomy.weight(run, 1, 5, 4, step=step)
        matrix, steps = panel.figures
        expected = {
            "Dot product": q @ k.T,
            "Score": scores,
            "Mask": np.where(allowed, scores, np.nan),
        }.get(step, np.where(allowed, attention.pattern[1, 5], 0.0))
        drawn = matrix.values if step == "Mask" else np.nan_to_num(matrix.values)
        atol = SUMMED * max(1.0, float(np.nanmax(np.abs(expected))))
        np.testing.assert_allclose(drawn, expected, atol=atol)
        assert matrix.follows == steps.choice
        assert matrix.title == steps.frames[steps.current].beside.title
        row, column, _ = matrix.marks[0]
        assert (row, column) == (4, int(attention.pattern[1, 5, 4].argmax()))
        of_row = ("All weights of the word", "Softmax", "Sum", "Output", "Heads")
        assert matrix.selected == (4 if step in of_row else -1)


def numbers_in(node: Any) -> Iterator[tuple[str, str]]:
    """The numbers in a typeset formula, by their slots."""
    _, attributes, inside = node
    if "data-symbol" in attributes and isinstance(inside, str):
        yield attributes["data-symbol"], inside
    if not isinstance(inside, str):
        for each in inside:
            yield from numbers_in(each)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder"])
@pytest.mark.parametrize("text", [TEXT, *TEXTS])
def test_a_number_has_one_text_in_headline_steps_bars_and_formulas(model: str, text: str) -> None:
    run = Run(model, text)
    for layer, head, token in ((0, 0, 3), (1, 5, 4), (2, 3, 5), (3, 5, 2)):
        panel = anatomy.weight(run, layer, head, token)
        frames = frames_of(panel)
        facts = {step: [fact for fact, _ in figures[0].facts] for step, figures in frames.items()}
        (dot,), (part, _, weight) = facts["Dot product"], facts["Softmax"]
        dot_again, _, score = facts["Score"]
        weight = weight.removeprefix("= ")
        said = panel.numbers["weight"]
        assert f" {said} of its attention in layer " in panel.finding
        assert said.text == whole_percent(float(said)) and matches_text(weight, float(said))
        assert f"receives {weight}." in frames["Softmax"][0].note
        assert f"the weight {weight}." in frames["Value"][0].note
        assert (dot_again, facts["Value"][0]) == (dot, weight)
        selected = {
            step: next(row for row in frames[step][1].rows if row.selected)
            for step in ("Score", "Softmax", "Heads")
        }
        assert selected["Score"].texts == (score.removeprefix("= "),)
        assert selected["Softmax"].texts == (part, weight)
        assert selected["Heads"].texts == (facts["Heads"][0], facts["Output"][0])
        labels = [strip.label for strip in frames["Sum"][1].strips]
        assert any(label.startswith(f"{weight} × v of ") for label in labels)
        for step in ("Score", "Softmax"):
            for own, column in zip(
                selected[step].texts, zip(*(row.texts for row in frames[step][1].rows))
            ):
                n = len(own.partition(".")[2])
                texts = [each for each in column if re.fullmatch(r"−?[\d,]+\.\d+", each)]
                seen = [each for each in texts if abs(parse_number(each)) >= 0.5 * 10.0**-n]
                assert {len(each.partition(".")[2]) for each in seen} <= {n}, column
        written: dict[str, set[str]] = {}
        for formula in panel.typeset():
            if formula["id"] == "mask":  # which is about a cell that the mask forbids
                continue
            for line in formula["numbers"]:
                for slot, number in numbers_in(line):
                    written.setdefault(slot, set()).add(number)
        assert written["dot"] == {dot}, "a sum and a part of others"
        assert written["a_ij"] == {weight}
        assert written["s_ij"] == {score.removeprefix("= ")}
        assert part in written["powers"]
        assert written["sum"] & {row.texts[1] for row in frames["Softmax"][1].rows}


def test_almost_all_of_a_row_is_not_said_to_be_all_of_it() -> None:
    opened = analysis.cell(
        (recording := Run("encoder", TEXT).recording()), recording.attention[0], 0, 0, 1, 2
    )
    weights = {0.999982: "0.99998", 1 - 7.4e-8: "0.9999999", 1.0: "1.000", 0.0: "0.000"}
    for weight, text in weights.items():
        row = np.where(np.arange(len(opened.weights)) == 2, weight, 0.0)
        row[1] += 1 - weight
        changed = replace(opened, weights=row, softmax=row, z=row @ opened.v)
        assert weight_texts.texts(changed).weight == text


def test_a_forbidden_cell_has_the_weight_0_and_says_why() -> None:
    panel = anatomy.weight(Run("decoder", TEXT), 1, 2, 3, 6)
    frames = frames_of(panel)
    assert " gives " in panel.finding and " 0% of " in panel.finding and "Mask" in frames
    assert facts_of(panel, "Mask") == [float("-inf")] and "later token 6" in frames["Mask"][0].note
    assert facts_of(panel, "Softmax")[2] == 0
    matrix = anatomy.weight(Run("decoder", TEXT), 1, 2, 3, 6, step="Mask").figures[0]
    assert np.isnan(matrix.values[3, 6]) and matrix.missing
    assert "Mask" not in frames_of(anatomy.weight(Run("encoder", TEXT), 1, 2, 3, 6))


def test_a_model_that_gives_only_weights_says_so() -> None:
    for panel in (multi_head.shapes, multi_head.concatenation, anatomy.formulas, anatomy.weight):
        with pytest.raises(ValueError, match="There is no layer 9"):
            panel(Run("encoder", TEXT), layer=9)
    with pytest.raises(ValueError, match="There is no key 99"):
        anatomy.weight(Run("encoder", TEXT), source=99)


def test_the_three_formulas_agree() -> None:
    run = Run("encoder", TEXT)
    found = anatomy.formulas(run, layer=1, token=2).figures[0]
    one, *others = (strip.values for strip in found.strips)
    for other in others:
        np.testing.assert_allclose(one, other, atol=DOUBLE * max(1, np.abs(one).max()))


# ---- the page ------------------------------------------------------------------------------------


def opened_page(**asked: str) -> AppTest:
    return clean(page_at("weight", **asked))


def cell_of(app: AppTest) -> tuple[int, int, int, int]:
    """The cell on screen: layer, head, query, key."""
    header = panels_on(app)[0]
    at = re.search(r"of layer (\d+), head (\d+)$", header["figures"][0]["title"])
    assert at
    return int(at[1]), int(at[2]), *header["figures"][0]["marks"][0][:2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "attention"),
    [("decoder", ""), ("translator", "cross"), ("grammar-masked", ""), ("minilm", "")],
)
def test_it_opens_on_the_cell_of_the_strongest_finding(model: str, attention: str) -> None:
    app = opened_page(model=model, attention=attention, text=TEXT)
    recording = read_once(model).record(TEXT)
    seen = [one for one in RecordingFacts(recording).findings() if one.page == "heads"]
    if attention:
        seen = [one for one in seen if one.attention == attention]
    cell = cell_of(app)
    if seen:
        first = seen[0]
        shown = attention or app.session_state["attention"] or recording.attention[0].name
        assert shown == first.attention and cell[:2] == first.at
        if first.query >= 0 and first.keys:
            assert cell[2:] == (first.query, first.keys[0])
    assert "weight_at" not in app.query_params
    if attention == "cross":
        assert panels_on(app)[0]["figures"][0]["rows"][0].startswith("→ ")


def test_a_text_without_a_finding_opens_between_two_words() -> None:
    panel = anatomy.weight(Run("encoder", "Der Kellner brachte die Suppe, aber sie war kalt."))
    (row, column, _) = panel.figures[0].marks[0]
    opened = panel.figures[1].frames[0]
    assert opened.formulas is None, "the picture comes before the formulas"
    assert not {panel.figures[0].rows[row], panel.figures[0].columns[column]} & {"[CLS]", "[SEP]"}
    (bar,) = (each for each in opened.figures[1].rows if each.selected)
    assert f"{bar.texts[0]} of its attention" in panel.finding
    assert bar.values[0] == max(each.values[0] for each in opened.figures[1].rows)


@pytest.mark.slow
def test_another_cell_costs_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    app = opened_page(text=TEXT)
    passes = []
    monkeypatch.setattr(Model, "record", lambda *asked: passes.append(asked))
    app.session_state["token"], app.session_state["weight_at"] = "2", "2.5"
    assert cell_of(app.run())[2:] == (2, 5)
    app.selectbox(key="selected_head").set_value(3).run()
    assert cell_of(app)[1] == 3 and not passes


@pytest.mark.slow
def test_edits_change_the_steps_and_can_be_left() -> None:
    app = opened_page(text=TEXT, edits=to_line((WithoutScale(),)), layer="0", head="1")
    header = panels_on(app)[0]
    assert "without the scale" in " ".join(header["caption"])
    app.button(key="undo edits").click().run()
    assert "edits" not in app.query_params
    for line in ("Nonsense:1", to_line((ZeroHead(99, 0),))):
        refused = opened_page(text=TEXT, edits=line)
        assert any("do not apply" in each.value for each in refused.caption)
        assert any("edits: none" in line for line in panels_on(refused)[0]["caption"])


def test_the_softmax_leads_to_its_temperature_at_the_same_head_and_word() -> None:
    app = opened_page(text=TEXT, layer="1", head="5", token="3")
    link = next(each.proto for each in app.get("page_link") if "temperature" in each.proto.label)
    asked = {name: values[0] for name, values in parse_qs(link.query_string).items()}
    assert asked.pop("tab") == "concepts" and asked["text"] == TEXT
    (panel, *_) = panels_on(clean(page_at("concepts", **asked)))
    wanted = soft_lookup.temperature(Run("encoder", TEXT), 1, 5, 3)
    assert (panel["panel"], panel["finding"]) == (wanted.name, wanted.finding)
