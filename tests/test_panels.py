"""Every panel: what it says of any text, that its Python line makes it again, its files, and its
laws."""

from __future__ import annotations

import atexit
import codecs
import csv
import inspect
import io
import re
import shutil
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import driver
import numpy as np
import pytest
import tiny
import torch
from app_harness import asked_of, clean, page_at, panels_on, told
from claim_fixtures import real
from conftest import AWKWARD, EVERY, HOSTILE, in_turn, needs_smollm2, read_once, texts_of
from lens_oracle import lens_of
from ordinary_sentences import SENTENCES
from prediction_oracle import full_pass, softmaxed
from test_voice import read_aloud
from tolerances import DOUBLE_LONG, PASSED, STORED, SUMMED, TINY, TOTAL

import headlight
from explorer.analysis import (
    corpus,
    head_naming,
    logit_lens,
    soft_lookup,
    summaries,
    verdicts,
)
from explorer.app.layout import selection_bar
from explorer.app.state import models as server_models
from explorer.components import codec
from explorer.figures import csv as csv_files
from explorer.figures.formatting import fixed, hundredths, percent, signed, tenths
from explorer.figures.kinds import Steps
from explorer.panels import address, attribution, choice, predictions, spec
from explorer.panels.attribution import NO_WORD
from explorer.panels.spec import Panel
from explorer.text import claims as claims_text
from explorer.wording import templates
from models import smollm2
from models.contract import edits
from models.contract.results import softmax
from models.example_texts import DEFAULT_TEXT
from models.runtime import registry
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "the cat sat on the mat"
OWN = ("encoder", "decoder", "translator")
MODELS = (*OWN, pytest.param("smollm2", marks=needs_smollm2))


@cache
def every() -> dict[str, Callable[..., Panel]]:
    """Every panel function by its name."""
    assert headlight.panels  # the door imports all of them
    return dict(spec.PANELS)


NAMES = sorted(each for each in every() if smollm2.file() or not each.startswith("modern."))
MANY_PASSES = ("interventions.patches", "claims.verdicts")  # of a model
MATRICES = ("attention.head", "summaries.aggregated")
MOST_COLUMNS = 20  # of a table: of one weight, with the numbers of each of its steps
LENS_COLUMNS = 27  # a row for each cell, with its ten words and their probabilities


# The models of panels that encoder has nothing for.
MODEL_OF = {
    "translation": "translator",
    "training": "induction",
    "generation": "decoder",
    "teacher_forcing": "decoder",
    "modern": "smollm2",
}


@cache
def tiny_classifier() -> str:
    """The name of a tiny random classifier of texts, which has gone through its trial."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    torch.manual_seed(3)
    settings = {**tiny.BERT, "id2label": {0: "calm", 1: "glad", 2: "sad"}}
    tiny.save(folder, "BertForSequenceClassification", settings, tiny.wordpiece)
    name = f"hub:{folder}"
    server_models.record_trial(name, registry.stamp(name))
    return name


def model_of(name: str) -> str:
    """A model that a panel can be made of."""
    if name == "attribution.class_logit":
        return tiny_classifier()
    return MODEL_OF.get(name.partition(".")[0], "encoder")


VOTED = "The waiter brought the soup but it was cold."


def text_of(name: str, text: str = TEXT) -> str:
    """A text that a panel can be made of: before `text` a sentence with a pronoun where heads vote
    on one, and one in which something changes the answer."""
    if name.startswith("offers."):
        return VOTED
    return f"{VOTED} {text}" if name.endswith(".votes") else text


def made(name: str, run: Run, **choices: Any) -> Panel | str:
    """A panel, or the sentence that says why there is none."""
    try:
        return every()[name](run, **choices)
    except ValueError as reason:
        return str(reason)


# ---- any panel -----------------------------------------------------------------------------------


# Each panel reads its turn of the texts: encoder, which opens every page, three, others one.
@pytest.mark.slow
@pytest.mark.in_turn(6)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", OWN)
def test_a_panel_says_what_it_shows_of_any_text(name: str, model: str) -> None:
    texts = TEXT, *(HOSTILE if model == "encoder" else AWKWARD).values()
    check(name, model, *in_turn([text_of(name, each) for each in texts], 6, name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_frame_that_is_walked_to_is_the_one_that_its_address_opens(name: str) -> None:
    """What a slider says of a frame is a value of its choice: an address, and so a class, can hold
    where it stands."""
    run = Run(model_of(name), text_of(name))
    panel = made(name, run)
    figures = () if isinstance(panel, str) else panel.figures
    known = {each.name for each in spec.choices_by_panel()[name]}
    for place, steps in enumerate(figures):
        if not isinstance(steps, Steps) or steps.choice not in known or len(steps.frames) == 1:
            continue
        for frame in steps.frames[:: max(1, len(steps.frames) // 3)]:
            words = {steps.choice: frame.key or frame.label}
            opened = address.from_words(name, run, words).figures[place]
            assert isinstance(opened, Steps)
            assert opened.frames[opened.current].label == frame.label, words


@needs_smollm2
@pytest.mark.slow
@pytest.mark.in_turn(18)
@pytest.mark.parametrize("name", [each for each in NAMES if EVERY or each not in MANY_PASSES])
def test_a_panel_of_smollm2_says_what_it_shows(name: str) -> None:
    """A second each."""
    check(name, smollm2.NAME, TEXT, *(AWKWARD.values() if EVERY else ()))


def check(name: str, model: str, *texts: str) -> None:
    """A panel of each text has a title, a sentence, figures and a table, and nothing left open."""
    for text in texts:
        panel = made(name, Run(model, text))
        if isinstance(panel, str):
            assert panel.endswith(".") and len(panel.split()) <= 30
            continue
        header, _ = codec.decode(panel.encode())
        assert header["title"] and header["finding"].strip()
        assert header["figures"] or not any(map(len, panel.table.values()))  # nothing was found
        slots = [each for each in texts_of(header) if re.search(r"\{\w+\}", each)]
        assert not slots or "{" in text
        of = panel.run.recording()  # of twins one of them, whatever the model
        assert any(f"model {of.model.name}" in line for line in panel.caption)
        assert len(set(map(len, panel.table.values()))) == bool(panel.table)
        for sentence in (panel.finding, *panel.details):
            assert "nan" not in sentence.lower().split()


PLACES = {*"layer head token source key unit place mate neuron pair row column".split()}
AT_MOST = {"place"}  # beyond the last position it is the last one
BEYOND = 10**6


@pytest.mark.in_turn(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_negative_place_counts_from_the_end(name: str) -> None:
    """The panel of the place -1 is that of the last one, which a refusal names. The translator,
    whose streams are of two lengths, takes turns."""
    (model,) = in_turn(("encoder", "translator"), 2, name)
    run = Run(model if model_of(name) == "encoder" else model_of(name), TEXT)
    parameters = inspect.signature(every()[name]).parameters
    numbers = {each.argument for each in choice.parameters(every()[name]) if each.kind is int}
    needs = {"key": {"token": 1}, "mate": {"second": "the mat the cat saw"}, "row": {"column": 0}}
    for place in sorted(PLACES & numbers):
        others = dict(needs.get(place, {}))
        if {"layer", "head"} <= parameters.keys():
            others |= {"layer": 0, "head": 0}
        refusal = made(name, run, **others | {place: BEYOND})
        is_taken = not isinstance(refusal, str)
        assert is_taken == (place in AT_MOST), f"{place} {BEYOND} is no place"
        last = isinstance(refusal, str) and re.search(r"the last is (\d+)|0 to (\d+) and", refusal)
        if not last:
            continue
        ends = (made(name, run, **others | {place: at}) for at in (-1, int(last[1] or last[2])))
        one, other = (
            end if isinstance(end, str) else replace(end, call="", choices={}, token="").encode()
            for end in ends
        )
        assert one == other, place


AWFUL = HOSTILE["script"] + ' =1+1 "a,b" @SUM(A1) +2 -3 NA'


@cache
def of_an_edit(name: str) -> Panel:
    """A panel of an awful text under an edit, or of the model as it is where it has no others."""
    text = text_of(name, AWFUL)
    edited = made(name, Run(model_of(name), text, (edits.ZeroHead(0, 1),)))
    return every()[name](Run(model_of(name), text)) if isinstance(edited, str) else edited


@pytest.mark.slow
@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_its_python_line_and_the_words_of_an_address_make_a_panel_again(name: str) -> None:
    panel = of_an_edit(name)
    assert (run := panel.run) is not None
    names: dict[str, Any] = {}
    lines = [line for line in spec.python([panel]).splitlines() if ".save(" not in line]
    exec("\n".join(lines), names)
    assert names["run"] == run and names["panel"].encode() == panel.encode()
    shown = tuple(each for each in run.edits if not isinstance(each, edits.HideToken))
    asked = replace(run, edits=shown)  # what the panel masks by itself is in its own run
    assert address.from_words(name, asked, {}).encode() == panel.encode()
    with pytest.raises(ValueError, match="has no choice 'nothing'"):
        address.from_words(name, run, {"nothing": "1"})


def test_what_is_not_there_is_refused_in_a_sentence() -> None:
    run = Run("encoder", TEXT)
    for words, problem in (
        ({"layer": "99"}, "There is no layer 99"),
        ({"head": "-9"}, "There is no head -9"),
        ({"token": "400"}, "There is no token 400"),
        ({"attention": "cross"}, "There is no attention 'cross'"),
        ({"t": "nan"}, "The temperature is"),
        ({"layer": "x"}, "layer is 'x'"),
    ):
        with pytest.raises(ValueError, match=problem):
            address.from_words("soft_lookup.temperature", run, words)
    with pytest.raises(ValueError, match="no panel is called 'nothing.here'"):
        address.from_words("nothing.here", run, {})


@pytest.mark.slow
@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_panel_leaves_as_csv_and_as_one_file(name: str, tmp_path: Any) -> None:
    panel = of_an_edit(name)
    panel.save(tmp_path / "panel.csv")
    assert (tmp_path / "panel.csv").read_bytes().startswith(codecs.BOM_UTF8), "for spreadsheets"
    written = (tmp_path / "panel.csv").read_text("utf-8-sig")
    comments = [line for line in written.splitlines() if line.startswith("#")]
    assert comments[0][2:] == " ".join(panel.title.split()) and comments[-1][2:11] == "Headlight"
    names, *rows = csv.reader(io.StringIO(csv_files.without_comments(written)))
    assert [name.lstrip("'") for name in names] == list(panel.table)
    assert len(rows) == len(next(iter(panel.table.values()), ()))
    # Long and not wide: what a text or a model has many of stands below each other. A matrix of
    # words by words keeps its form.
    most = LENS_COLUMNS if name == "logit_lens.lens" else MOST_COLUMNS
    assert name in MATRICES or len(names) <= most, names
    live = re.compile(r"[,;\t][\s\"']*[=+\-@＝]")
    assert not [line for line in comments if live.search(line.replace("'", "\0"))]
    assert all(len(row) == len(names) for row in rows)
    words = [cell for row in rows for cell in row if not csv_files._is_number(cell)]
    assert not [cell for cell in words if re.match(r"\s*[=+\-@\t\r＝]", cell)], "a live formula"
    panel.save(tmp_path / "panel.html")
    page = (tmp_path / "panel.html").read_text("utf-8")
    assert "<script>document.title" not in page and "connect-src data:" in page
    with pytest.raises(ValueError, match=r"\.html or \.csv"):
        panel.save(tmp_path / "panel.doc")


def test_the_export_of_a_recording_takes_a_panel_by_its_name() -> None:
    recording = read_once("encoder").record(TEXT)
    page = headlight.page(recording, "soft_lookup.temperature", layer=1, head=2, token=3, t=0.5)
    assert "Layer 1, head 2" in page and "T = 0.5" not in page.partition("<main")[0]


# ---- sentences -----------------------------------------------------------------------------------


PRIVATE = {"looks", "said", "told", "hears", "heard", "chance", "hands", "habit", "pushed"}


def test_a_template_is_in_the_fields_words() -> None:
    for file in templates.FOLDER.glob("*.toml"):
        for place, sentence in read_aloud(tomllib.loads(file.read_text("utf-8")), file.stem):
            assert not PRIVATE & set(sentence.lower().replace(",", "").split()), place


# "1 of 8 heads" counts the eight, and "step 1 makes" and "layer 1 raises" are places.
NOUNS = "characters heads keys layers neurons others parts positions queries rows scores sentences "
NOUNS += "steps targets times tokens units values vectors words"
ONE_OF_SEVERAL = re.compile(
    rf"(?<![\d.,/×^−-])\b1 ((next|other|smaller|stored) )?({'|'.join(NOUNS.split())})\b"
)


@pytest.mark.slow
@pytest.mark.in_turn
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_what_is_one_has_its_noun_in_the_singular(model: str) -> None:
    """A text of one or two tokens in turn, where most of what is counted is one."""
    for name in in_turn(NAMES, 2, model):
        if model_of(name) not in ("encoder", model):
            continue
        for text in in_turn(("a", "Go."), 2, f"{name} {model}"):
            panel = made(name, Run(model, text))
            shown = panel if isinstance(panel, str) else codec.decode(panel.encode())[0]
            texts = [each for _, each in read_aloud(shown, name)]
            assert not [each for each in texts if ONE_OF_SEVERAL.search(each)], name


# ---- soft lookup ---------------------------------------------------------------------------------


def test_a_temperature_goes_from_the_best_key_to_the_uniform_average() -> None:
    run = Run("encoder", TEXT)
    panel = every()["soft_lookup.temperature"](run, layer=1, head=2, token=3, t=0.5)
    attention = run.recording().attention[0]
    steps, curve = panel.figures
    rows = {frame.label: frame.figures[0].rows for frame in steps.frames}
    weights = {label: [row.values[0] for row in each] for label, each in rows.items()}
    assert steps.frames[steps.current].label == "T = 0.5" and steps.frames[-1].label == "T = ∞"
    np.testing.assert_allclose([sum(each) for each in weights.values()], 1, atol=SUMMED)
    np.testing.assert_allclose(weights["T = 1"], attention.pattern[1, 2, 3], atol=STORED)
    assert max(weights["T = 0"]) == 1
    soft = soft_lookup.lookup(attention, 1, 2, 3, 0.5)
    at = int(np.flatnonzero(np.isclose(curve.series[0].x, 0.5))[0])
    assert curve.series[0].y[at] == pytest.approx(soft.relative)
    assert percent(soft.relative) in panel.finding


def test_messages_add_up_and_edges_are_the_heads_weights() -> None:
    run = Run("encoder", TEXT)
    panel = every()["soft_lookup.messages"](run, layer=1, head=2, token=3, times=1.0)
    attention = run.recording().attention[0]
    graph, received = panel.figures
    for edge in graph.edges:
        assert edge.weight == pytest.approx(attention.pattern[1, 2, edge.target, edge.source])
        assert edge.weight >= 1 / attention.allowed[0][edge.target].sum()
    *sent, whole_sum = [row.values for row in received.rows]
    assert sum(values[2] for values in sent) == pytest.approx(1, abs=SUMMED)
    for at in (0, 2, 3):  # weight, share and component; lengths do not add up
        assert sum(values[at] for values in sent) == pytest.approx(whole_sum[at], abs=SUMMED)
    whole = every()["soft_lookup.messages"](run, layer=1, token=3, mean=True)
    assert whole.figures[1].columns == ("weight",)
    across = every()["soft_lookup.messages"](Run("translator", TEXT), attention="cross")
    assert across.figures[0].split == len(across.run.recording().streams[0].tokens)


@pytest.mark.parametrize("quantity", ["Scores", "Weights"])
def test_scores_are_of_this_texts_vectors(quantity: str) -> None:
    run = Run("decoder", TEXT)
    panel = every()["soft_lookup.scoring"](run, layer=1, head=2, quantity=quantity)
    recording = run.recording()
    of = recording.attention[0]
    x = soft_lookup.attention_input(recording, of, 1)
    for figure, variant in zip(panel.figures, soft_lookup.scoring_variants(x, of, 1, 2)):
        weights = np.where(of.allowed[0], variant.weights, np.nan)
        expected = variant.scores if quantity == "Scores" else weights
        np.testing.assert_allclose(figure.values, expected, rtol=SUMMED, atol=STORED)
        assert f"asymmetry {variant.asymmetry:.2f}" in figure.title
    with pytest.raises(ValueError, match="two texts"):
        every()["soft_lookup.scoring"](Run("translator", TEXT), attention="cross")


def test_the_pair_of_a_word_is_that_word_and_the_one_it_attends_to_most() -> None:
    run = Run("encoder", "The animal didn't cross the street because it was too tired.")
    panel = every()["soft_lookup.scoring"](run, layer=1, head=5, token=9)
    assert "“it” to “animal” 5.39, and “animal” to “it” −0.46" in panel.finding
    marks = {mark[:2] for figure in panel.figures for mark in figure.marks}
    assert marks == {(9, 2), (2, 9)}


def test_circuits_are_those_of_the_words_that_are_named() -> None:
    run = Run("decoder", TEXT)
    stream = run.recording().streams[0]
    query, key = int(stream.ids[3]), int(stream.ids[2])
    show = every()["circuits.circuits"]
    found = read_once("decoder").circuits("self", 1, 3, (query, key))
    (matches,) = show(run, layer=1, head=3, token=3, source=2, keys="All").figures
    n = len(matches.rows)
    assert [row.values[0] for row in matches.rows] == pytest.approx(found.keys[0][:n], abs=PASSED)
    # What a head writes is drawn where the key is among its words.
    slow = Run("minilm", "The wolf followed the sheep because they were slow.")
    _, bars = show(slow, layer=1, head=7, token=7).figures
    values = [row.values[0] for row in bars.rows]
    assert values == sorted(values, reverse=True) and "slow" in [row.label for row in bars.rows]


@pytest.mark.parametrize("model", ["decoder", "encoder"])
def test_circuits_say_where_they_do_not_explain_what_the_head_does(model: str) -> None:
    run, told = Run(model, TEXT), set()
    stream, pattern = run.recording().streams[0], run.recording().attention[0].pattern
    for layer, head in np.ndindex(pattern.shape[:2]):
        panel = every()["circuits.circuits"](run, layer=layer, head=head, token=3)
        matches, *drawn = panel.figures
        assert bool(drawn) == ("cannot be read as that word" not in panel.finding)
        most = stream.tokens[int(pattern[layer, head, 3].argmax())]
        allowed = stream.tokens if model == "encoder" else stream.tokens[:4]
        match = matches.rows[0].label
        best = next(row.label for row in matches.rows if row.label in allowed)
        is_told = match not in allowed or any(map(str.isalpha, match)) and match[0] != "["
        assert f"would choose {f'“{match}”' if is_told else 'no word'}" in panel.finding
        hidden = f"which the mask hides from it, and of the others “{best}”"
        assert (hidden in panel.finding) == (match not in allowed)
        agrees = best == most
        assert ("So it does in this text" in panel.finding) == agrees
        assert (f"Here it attends to “{most}”" in panel.finding) == (not agrees)
        is_named = bool(drawn) and most in [row.label for row in drawn[0].rows]
        assert panel.finding.startswith("What this head brings from") == (not is_named)
        told.add(agrees)
    assert told == {True, False}


# ---- aggregated attention ------------------------------------------------------------------------


def test_an_aggregation_is_the_models() -> None:
    run = Run("encoder", TEXT)
    of = run.recording().attention[0]
    w_o = read_once("encoder").outputs()["self"][0]
    expected = {
        "Mean": of.pattern.mean((0, 1)),
        "Max": of.pattern.max((0, 1)),
        "Rollout": summaries.rollout(of),
        "Flow": summaries.flow(of, range(len(of.allowed[0]))),
        "Values": summaries.norms(of, w_o),
    }
    for kind, values in expected.items():
        panel = every()["summaries.aggregated"](run, kind=kind, token=3, tokens="All")
        matrix, row = panel.figures
        np.testing.assert_allclose(matrix.values, values, atol=SUMMED)
        key = matrix.marks[0][1]
        assert matrix.marks == ((3, key, ""),) and key != 3
        (bar,) = (each for each in row.rows if each.selected)
        assert bar.values[0] == pytest.approx(expected["Mean"][3, key], abs=SUMMED)
        assert f"“{matrix.columns[key]}”" in panel.finding
    shares = summaries.row_shares(expected["Values"])[3]
    panel = every()["summaries.aggregated"](run, token=3)
    matrix = panel.figures[0]
    told = run.recording().streams[0].tokens.index(matrix.columns[matrix.marks[0][1]])
    assert any(hundredths(float(shares[told])) in line for line in panel.details)


@pytest.mark.parametrize("text", [TEXT, DEFAULT_TEXT, *SENTENCES[:12]])
@pytest.mark.parametrize("kind", ["Mean", "Max", "Rollout"])
def test_no_special_token_is_in_the_headline_of_all_heads_together(kind: str, text: str) -> None:
    """It names the largest of the other tokens on show, or says that several have as much."""
    run = Run("encoder", text)
    panel = every()["summaries.aggregated"](run, kind=kind)
    matrix, bars = panel.figures
    ((row, column, _),) = matrix.marks
    others = [at for at in range(len(matrix.columns)) if at != row]
    largest = hundredths(float(max(matrix.values[row, others])))
    alike = [at for at in others if hundredths(float(matrix.values[row, at])) == largest]
    assert largest in panel.finding and column in alike
    assert not {"[CLS]", "[SEP]"} & {*matrix.columns, *(each.label for each in bars.rows)}
    if len(alike) > 1:
        assert f"{len(alike)} share the largest value" in panel.finding
    else:
        assert f"“{matrix.columns[column]}”" in panel.finding


def test_tokens_left_out_of_an_aggregation_are_named_with_their_share() -> None:
    run = Run("encoder", TEXT)
    of = run.recording().attention[0]
    gone = head_naming.shared_sinks(run.recording(), of)
    assert gone.any() and not gone.all()
    panel = every()["summaries.aggregated"](run, tokens="Quiet")
    whole, left = summaries.mean(of), np.flatnonzero(~gone)
    np.testing.assert_allclose(panel.figures[0].values, whole[np.ix_(left, left)], atol=SUMMED)
    share = (whole[left][:, gone].sum(axis=1) / whole[left].sum(axis=1)).mean()
    assert any(percent(float(share)) in line for line in panel.caption)


def test_what_is_not_defined_between_two_texts_is_refused() -> None:
    run = Run("translator", TEXT)
    for kind in ("Rollout", "Flow"):
        with pytest.raises(ValueError, match="the same tokens"):
            every()["summaries.aggregated"](run, kind=kind, attention="cross")
        assert every()["summaries.aggregated"](run, kind=kind, attention="decoder self")


def test_a_disagreement_leads_to_its_head_and_row() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    of = run.recording().attention[0]
    worst = summaries.disagreements(of, read_once("encoder").outputs()["self"][0]).cells[0]
    (table,) = every()["summaries.disagreements"](run).figures
    assert table.keys[0] == (str(worst.layer), str(worst.head), str(worst.query))
    assert table.rows[0][4:] == (fixed(worst.weight), fixed(worst.share))


def test_outputs_of_heads_are_the_models() -> None:
    run = Run("encoder", TEXT)
    outputs = read_once("encoder").outputs()["self"]
    found = summaries.contributions(run.recording(), run.recording().attention[0], outputs, 2)
    (norms,) = every()["summaries.output_norms"](run, token=2).figures
    np.testing.assert_allclose(norms.values, found.length, rtol=SUMMED)
    (shares,) = every()["summaries.output_norms"](run, token=2, measure="Share").figures
    np.testing.assert_allclose(shares.values.sum(axis=1), 1, atol=SUMMED)


# ---- many sentences ------------------------------------------------------------------------------

LINES = ("the dog ran to the cat and the dog", "", "the mat")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "attention"),
    [("encoder", ""), ("translator", "decoder self"), ("translator", "cross")],
)
def test_scores_over_many_sentences_are_means_of_each(model: str, attention: str) -> None:
    run, others = Run(model, TEXT), "\n".join(LINES)
    recordings = [read_once(model).record(text) for text in (TEXT, LINES[0], LINES[2])]
    at = [each.name for each in recordings[0].attention].index(attention) if attention else 0
    truth = [corpus.measure_attention(each, each.attention[at]) for each in recordings]
    pattern = truth[0].kind.measures[1]
    chosen = {"others": others, "layer": 1, "head": 2, "attention": attention}
    panel = every()["corpus.patterns"](run, pattern=pattern, **chosen)
    grid, bars = panel.figures
    scores = np.array([each.scores[pattern] for each in truth])
    np.testing.assert_allclose(grid.values, np.nanmean(scores, axis=0), rtol=SUMMED)
    assert grid.marks == ((1, 2, ""),)
    assert [row.key for row in bars.rows if row.selected] == [pattern]
    assert f"{np.nanmean(scores[:, 1, 2]):.2f} ± " in panel.finding
    ranked = every()["corpus.highest"](run, pattern=truth[0].kind.look, **chosen)
    largest = sorted((float(each.largest[1, 2]) for each in truth), reverse=True)
    assert [row.values[0] for row in ranked.figures[0].rows] == pytest.approx(largest)
    places, own = every()["corpus.distances"](run, **chosen).figures
    shares = np.mean([each.shares for each in truth], axis=0)
    np.testing.assert_allclose(places.values, shares.reshape(-1, len(truth[0].kind.places)))
    assert [row.values[0] for row in own.rows] == pytest.approx(shares[1, 2].tolist())
    assert places.keys[places.selected] == "layer=1&head=2"


def test_sentences_without_words_are_counted_and_a_pattern_must_exist() -> None:
    panel = every()["corpus.patterns"](Run("encoder", ""), others=f"{TEXT}\n{LINES[2]}")
    assert "over 2 sentences" in panel.finding
    assert any("1 more cannot be read: there are no words in it." in line for line in panel.caption)
    with pytest.raises(ValueError, match="no words"):
        every()["corpus.patterns"](Run("encoder", ""), others="")
    with pytest.raises(ValueError, match="no pattern “x”"):
        every()["corpus.patterns"](Run("encoder", TEXT), pattern="x")


# ---- claims --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "id"),
    [
        ("encoder", "rows"),
        ("decoder", "heads-differ"),
        *((model, "cross") for model in ("encoder", "translator")),
        *((model, "chain") for model in ("encoder", "decoder")),
    ],
)
def test_a_claim_has_its_number_its_control_and_its_bound(model: str, id: str) -> None:
    run, claim = Run(model, DEFAULT_TEXT), claims_text.BY_ID[id]
    panel = every()["claims.claim"](run, claim=id)
    verdict = verdicts.evaluate_claim(claim, real(model))
    assert panel.title == claim.statement and verdict.verdict in panel.table["value"]
    (figure,) = panel.figures
    if verdict.value is None:
        assert verdict.why in panel.finding and verdict.verdict in panel.finding
        return
    assert verdict.value_text in panel.finding and claims_text.rule(claim) in panel.finding
    values = {row.label: row.values[0] for row in figure.figures[1].rows}
    assert values["this model"] == verdict.value and values["bound"] == verdict.bound
    assert values.get("permuted weights") == verdict.chance


def test_verdicts_are_listed_with_those_that_do_not_hold_first() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    panel = every()["claims.verdicts"](run, claims="rows,unit-length,weighted-sum")
    assert panel.table["claim"][0] == "unit-length" and "1 of 3 claims" in panel.finding
    assert panel.figures[0].keys[0] == ("unit-length",)
    for name, wrong in (("claims.claim", {"claim": "x"}), ("claims.verdicts", {"claims": "x"})):
        with pytest.raises(ValueError, match="no claim 'x'"):
            every()[name](run, **wrong)
        with pytest.raises(ValueError, match="without edits"):
            every()[name](replace(run, edits=(edits.ZeroHead(0, 0),)))


# ---- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "hidden"), [("encoder", (2, 4)), ("encoder", ()), ("decoder", ())]
)
def test_a_prediction_is_the_softmax_of_a_full_pass(model: str, hidden: tuple[int, ...]) -> None:
    loaded_model, token = read_once(model), 2
    ids = loaded_model.record(TEXT).streams[0].ids.tolist()
    read = [loaded_model.tokenizer.mask if at in hidden else id for at, id in enumerate(ids)]
    p = softmaxed(full_pass(model, read)[token])
    actual = ids[token + 1] if model == "decoder" else ids[token]
    panel = every()["predictions.word"](
        Run(model, TEXT, tuple(map(edits.HideToken, hidden))), token=token, word=int(p.argmax())
    )
    sentence, bars, facts = panel.figures
    assert sentence.selected == token and sentence.marked == hidden
    shown = "[MASK]" if token in hidden else loaded_model.labels([ids[token]])[0]
    assert sentence.tokens[token] == shown
    special = loaded_model.record(TEXT).streams[0].special
    assert [key == "" for key in sentence.keys] == [model == "encoder" and one for one in special]
    keys = [int(row.key) for row in bars.rows]
    assert keys[:10] == np.argsort(-p, kind="stable")[:10].tolist() and actual in keys
    np.testing.assert_allclose([row.values[0] for row in bars.rows], p[keys], atol=SUMMED)
    others = tenths(1 - sum(row.values[0] for row in bars.rows))
    assert bars.note == f"{len(p) - len(keys):,} other words: {others} together."
    assert [row.selected for row in bars.rows] == [at == 0 for at in range(len(bars.rows))]
    (rank,) = [number for number, about in facts.facts if f"{len(p):,}" in about]
    assert rank == f"{int((p > p[actual]).sum()) + 1:,}"
    perplexity = np.exp(-(p * np.log(p)).sum())
    numbers = [number.replace(",", "") for number, _ in facts.facts if "%" not in number]
    near = pytest.approx(perplexity, rel=0.005)  # as three digits tell it
    assert near in [float(each) for each in numbers]
    answer, name = loaded_model.labels([int(p.argmax()), actual])
    assert f"“{answer}”" in panel.finding and tenths(float(p.max())) in panel.finding
    assert answer == name or f"“{name}”" in panel.finding
    assert panel.table["id"][0] == p.argmax() and len(panel.table["id"]) == len(p)
    assert panel.table["probability"].sum() == pytest.approx(1, abs=DOUBLE_LONG)


def test_the_signs_of_blanks_are_explained_where_they_are_listed() -> None:
    assert predictions.with_blanks("", ["cat", "⏎⏎"]) == "“⏎” is a line break."
    assert predictions.with_blanks("Rest.", ["␣"]) == "Rest. “␣” is a space."
    assert predictions.with_blanks("9 other words.", ["cat"]) == "9 other words."


# ---- the logit lens ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_lens_is_the_models_readout_at_every_site(model: str) -> None:
    run = Run(model, TEXT, (edits.HideToken(2),) if model == "encoder" else ())
    recording, loaded_model = run.recording(), read_once(model)
    found = lens_of(loaded_model, recording)
    n, last = len(recording.streams[-1].tokens), len(found.sites) - 1
    actual = logit_lens.target_ids(recording, loaded_model.record(TEXT))
    site, shape = found.sites[2], (last + 1, n)
    for measure, values in (
        ("Top word", 100 * np.exp(found.top_logprobs[..., 0])),
        ("Answer", 100 * np.exp(found.logprob)),
        ("Rank", found.rank + 1),
        ("KL", found.kl),
    ):
        made = every()["logit_lens.lens"](run, 2, site, measure, layers=False, early=True)
        matrix, bars = made.figures
        np.testing.assert_allclose(matrix.values[: last + 1], values, rtol=STORED, atol=TINY)
        words = loaded(model).labels(found.top_ids[..., 0].ravel())
        assert list(matrix.words[: len(words)]) == words and matrix.marks == ((2, 2, ""),)
        assert (matrix.bold[: last + 1] == (found.top_ids[..., 0] == found.final_id)).all()
        is_kept = (found.top_ids[..., :1] == found.top_ids[-1]).any(-1)
        assert (matrix.pale[: last + 1] == (~is_kept & (measure == "Top word"))).all()
        named = [at for at, word in enumerate(matrix.words[len(words) :]) if word]
        assert named == np.flatnonzero(actual >= 0).tolist()
        assert matrix.keys[2] == site and np.isnan(matrix.values[last + 1 :]).all()
        assert matrix.values[: last + 1].shape == shape
        assert [row.label for row in bars.rows] == loaded_model.labels(found.top_ids[2, 2])
        others = tenths(1 - sum(row.values[0] for row in bars.rows))
        assert bars.note.endswith(f" other words: {others} together.")
    chart, table = every()["logit_lens.development"](run, token=2, site=site).figures
    np.testing.assert_allclose(chart.series[0].y, 100 * np.exp(found.logprob[:, 2]), rtol=STORED)
    ends = [found.sites.index(each) for (each,) in table.keys]
    assert table.keys[table.selected] == (site,) and ends[-1] == last
    for before, end, row in zip([-1, *ends], ends, table.rows):
        ranks, ps = found.rank[before + 1 : end + 1, 2] + 1, np.exp(found.logprob[:, 2])
        assert row[3].split(" to ")[0] == f"{ranks.min():,}"
        assert row[3].split(" to ")[-1] == f"{ranks.max():,}"
        assert row[2] == tenths(float(ps[before + 1 : end + 1].max()))
        assert end == before + 1 or row[2] == "< 0.1%"  # what is folded has nothing to say


def test_the_lens_says_what_is_predicted_and_how_likely_the_actual_word_is() -> None:
    panel = every()["logit_lens.lens"](Run("decoder", TEXT), token=2)
    recording, model = panel.run.recording(), read_once("decoder")
    p = softmax(model.logits(recording, "decoder", 2))
    following = int(recording.streams[0].ids[3])
    answer, actual = model.labels([int(p.argmax()), following])
    for part in (answer, tenths(float(p.max())), actual, tenths(float(p[following]))):
        assert part in panel.finding
    assert f"rank {int((p > p[following]).sum()) + 1:,}." in panel.finding
    wrong = {"site": "9.ffn.normed"}, {"token": 99}, {"measure": "?"}
    for choices, problem in zip(wrong, ("no site", "no token 99", "it can be")):
        with pytest.raises(ValueError, match=problem):
            every()["logit_lens.lens"](Run("decoder", TEXT), **choices)
    special = every()["logit_lens.lens"](Run("encoder", TEXT), token=0)
    assert any("“[CLS]” is a special token" in line for line in special.details)
    with pytest.raises(ValueError, match="makes no predictions"):
        every()["logit_lens.lens"](Run("minilm", TEXT))


@pytest.mark.slow
def test_a_long_lens_stays_light() -> None:
    text = ("the cat saw a dog near the old house and " * 60).strip()
    panel = every()["logit_lens.lens"](Run("decoder", text))
    assert len(panel.figures[0].columns) == 512 and len(panel.encode()) < 400_000


# ---- attribution ---------------------------------------------------------------------------------


HEAD = dict.fromkeys(("encoder", "decoder", "smollm2"), "self.1.2")
HEAD["translator"] = "decoder-self.1.2"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "against"),
    [("encoder", NO_WORD), ("decoder", 11), pytest.param("smollm2", 11, marks=needs_smollm2)]
    + [("translator", against) for against in (NO_WORD, 11)],
)
def test_the_parts_of_a_logit_add_up_to_it(model: str, against: int) -> None:
    run, loaded_model = Run(model, TEXT), read_once(model)
    recording = run.recording()
    stream = recording.streams[-1].name
    logits = loaded_model.logits(recording, stream, 3).astype(np.float64)
    other = None if against == NO_WORD else against
    expected = logits[7] - (0 if other is None else logits[other])
    chosen = {"token": 3, "word": 7, "against": against}
    key = HEAD[model]
    panel = every()["attribution.logit"](run, **chosen, part=key)
    largest, added = panel.figures
    *groups, total = added.rows
    assert total.values[0] == pytest.approx(expected, abs=TOTAL)
    ends = np.cumsum([row.values[0] for row in groups])
    np.testing.assert_allclose([row.start for row in groups[1:]], ends[:-1], atol=SUMMED)
    assert ends[-1] == pytest.approx(total.values[0])
    assert sum(row.values[0] for row in largest.rows) == pytest.approx(total.values[0])
    (head,) = [row for row in largest.rows if row.selected]
    taken = loaded_model.attribute(recording, stream, 3, 7, other)
    part = next(each for each in taken.parts if logit_lens.part_key(each) == key)
    assert head.values[0] == pytest.approx(part.value) and head.key == key
    for word in loaded_model.labels([7] if other is None else [7, other]):
        assert f"“{word}”" in panel.finding
    of_text = [each for each in taken.parts if each.kind != "bias"]
    pushes = lambda each: each.value * np.sign(taken.logit)
    of_layers = [each for each in of_text if each.layer >= 0]
    most = max(of_text, key=lambda each: abs(each.value))
    most = most if other is None else max(of_layers, key=pushes)
    names = {"ffn": f"FFN of layer {most.layer}", "head": f"head {most.head} of layer {most.layer}"}
    assert "Many small parts" in panel.finding or names.get(most.kind, "pushes") in panel.finding
    if other is not None and "pushes most: toward" in panel.finding:
        (favoured,) = loaded_model.labels([7 if most.value > 0 else other])
        assert f"pushes most: toward “{favoured}”" in panel.finding
    with pytest.raises(ValueError, match="compared with itself"):
        every()["attribution.logit"](run, token=3, word=7, against=7)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_neurons_add_up_to_their_ffns_part(model: str) -> None:
    run, loaded_model = Run(model, TEXT), read_once(model)
    recording = run.recording()
    stream = recording.streams[-1]
    found = loaded_model.neurons(recording, stream.name, 1, 3, 7)
    unit = int(found.strongest[2])
    panel = every()["attribution.neurons"](
        run, token=3, word=7, against=NO_WORD, layer=1, neuron=unit
    )
    neurons, words, tokens = panel.figures
    assert sum(row.values[0] for row in neurons.rows) == pytest.approx(found.part, abs=PASSED)
    assert [row.key for row in neurons.rows if row.selected] == [str(unit)]
    assert words.rows[0].values[0] == pytest.approx(float(found.up[2, 0]), abs=STORED)
    assert words.rows[-1].values[0] == pytest.approx(float(found.down[2, 0]), abs=STORED)
    sizes = np.abs(found.fires[2])
    np.testing.assert_allclose(tokens.weights, sizes / (sizes.max() or 1), atol=STORED)
    assert tokens.tokens == stream.tokens and tokens.selected == 3
    whole = {
        part.layer: part.value
        for part in loaded_model.attribute(recording, stream.name, 3, 7).parts
        if part.kind == "ffn"
    }
    assert whole[1] == pytest.approx(found.part)
    with pytest.raises(ValueError, match="no FFN"):
        every()["attribution.neurons"](run, layer=99)


@pytest.mark.parametrize("model", ["decoder", "encoder"])
def test_a_neurons_words_are_shown_where_they_are_about_the_answer(model: str) -> None:
    run = Run(model, TEXT)
    for layer in range(2):
        panel = every()["attribution.neurons"](run, token=3, layer=layer)
        chosen = next(row for row in panel.figures[0].rows if row.selected)
        listed = panel.figures[1].rows if len(panel.figures) == 3 else ()
        assert bool(listed) == any(row.selected for row in listed)
        assert bool(listed) != ("not shown" in panel.finding)
        asked = every()["attribution.neurons"](run, token=3, layer=layer, neuron=int(chosen.key))
        assert len(asked.figures) == 3  # whoever presses a neuron sees its words


# ---- the page ------------------------------------------------------------------------------------

OWN = ("encoder", "translator")
SCRIPT = HOSTILE["script"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tab", "lost"),
    [
        ("concepts", {"look_at": "Hard", "layer": "99", "head": "x", "look_temperature": "nan"}),
        ("concepts", {"look_at": "Graph", "layer": "99", "head": "x"}),
        ("aggregated", {"sum_what": "?", "sum_layer": "99", "token": "x"}),
        ("word", {"model": "decoder", "text": "a b", "token": "999", "hidden": "x"}),
        ("word", {"model": "encoder", "text": "a b", "token": "999", "hidden": "x"}),
        ("lens", {"model": "translator", "token": "999", "site": "<b>", "lens": "?"}),
        ("attribution", {"token": "999", "part": "self.9.9", "word": "99999", "ffn": "x"}),
        ("attribution", {"model": "decoder", "word": "-1", "against": "-1"}),
    ],
)
def test_a_link_with_nonsense_still_opens_a_tab(tab: str, lost: dict[str, str]) -> None:
    assert panels_on(page_at(tab, **lost))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_the_first_tab_of_predict_shows_the_selected_token_of_a_hostile_text(model: str) -> None:
    app = page_at("word", model=model, text=SCRIPT, token="2", word="7")
    (prediction,) = panels_on(app)
    assert "oken 2" in " ".join(prediction["caption"])
    links = [each.proto.query_string for each in app.get("page_link")]
    assert any("tab=attribution" in each and "token=2" in each for each in links)


@pytest.mark.slow
@pytest.mark.parametrize("model", OWN)
def test_the_lens_tab_shows_the_selected_cell_of_a_hostile_text(model: str) -> None:
    site = "0.ffn.normed"
    choices = {"model": model, "lens": "Rank", "site": site, "token": "1", "hidden": "none"}
    first, second = panels_on(page_at("lens", text=SCRIPT, **choices))
    (mark,) = first["figures"][0]["marks"]
    assert mark[1] == 1 and first["figures"][0]["keys"][mark[0]] == site
    table = second["figures"][1]
    assert table["keys"][table["selected"]] == [site]


@pytest.mark.slow
@pytest.mark.parametrize("model", OWN)
def test_the_attribution_tab_shows_the_selected_parts_of_a_hostile_text(model: str) -> None:
    key = HEAD[model]
    choices = {"model": model, "token": "1", "part": key, "ffn": "1", "hidden": "none"}
    app = page_at("attribution", text=SCRIPT, **choices)
    parts, neurons, _ = panels_on(app)
    assert [row["key"] for row in parts["figures"][0]["rows"] if row["selected"]] == [key]
    assert "layer 1" in neurons["title"]
    (link,) = (each for each in app.get("page_link") if each.proto.query_string)
    assert "layer=1&head=2" in link.proto.query_string
    words = [app.selectbox(key=f"{name} field").options for name in ("word", "against")]
    assert len(words[0]) == 11 and len(words[1]) == 12, "or compared with none"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_the_attribution_tab_compares_with_the_runner_up_at_first(model: str) -> None:
    app = page_at("attribution", text="My sister thanked", model=model, token="1", hidden="none")
    loaded_model = read_once(model)
    recording = loaded_model.record("My sister thanked")
    logits = loaded_model.logits(recording, recording.streams[-1].name, 1)
    best, second = np.argsort(-logits)[:2]

    def compared(word: int, against: int | None) -> None:
        finding = panels_on(clean(app))[0]["finding"]
        rows = panels_on(app)[0]["figures"][1]["rows"]
        expected = logits[word] - (0 if against is None else logits[against])
        if against is None:
            assert f"is {signed(float(expected), 2)}." in finding
        else:
            said = r"make “(.+)” (over )?([\d,.]+) times as likely as “(.+)”"
            note = panels_on(app)[0]["figures"][1]["note"]
            assert (parts := re.search(said, note)), note
            lead, over, odds, behind = parts.groups()
            # The odds are written with three digits.
            most, ratio = float(odds.replace(",", "")), np.exp(abs(expected))
            assert ratio > most if over else ratio == pytest.approx(most, rel=0.01)
            assert {lead, behind} == {*loaded_model.labels([word, against])}
        assert sum(row["values"][0] for row in rows[:-1]) == pytest.approx(expected, abs=TOTAL)
        assert rows[-1]["label"] == ("logit" if against is None else "difference of logits")

    compared(best, second)
    app.selectbox(key="word field").set_value(f"#{second}").run()
    compared(second, best)
    app.selectbox(key="against field").set_value(f"#{NO_WORD}").run()
    compared(second, None)
    assert asked_of(app)["against"] == str(NO_WORD)
    field = app.selectbox(key="against field")
    field.options.append("none")  # typed
    field.set_value("none").run()
    assert (typed := loaded(model).first_token("none")) is not None
    compared(second, typed[0])


@pytest.mark.slow
def test_head_outputs_of_every_word_are_their_mean() -> None:
    app = page_at("aggregated", text=TEXT, model="encoder", sum_what="Writes")
    assert "mean of all tokens" not in " ".join(panels_on(clean(app))[0]["caption"])
    app.selectbox(key="selected_query").set_value(selection_bar.EVERY_WORD).run()
    assert "mean of all tokens" in " ".join(panels_on(clean(app))[0]["caption"])
    assert app.selectbox(key="selected_query").value == selection_bar.EVERY_WORD


@pytest.mark.slow
def test_one_head_is_aggregated_where_one_layer_is() -> None:
    app = page_at("aggregated", text=TEXT, model="encoder", sum_what="Values", sum_head="3")
    menus = [each.key for each in clean(app).selectbox]
    assert "sum_layer menu" in menus and "sum_head menu" not in menus
    assert "sum_head" not in asked_of(app)
    app.selectbox(key="sum_layer menu").set_value("1").run()
    app.selectbox(key="sum_head menu").set_value("3").run()
    assert {"sum_layer": "1", "sum_head": "3"}.items() <= asked_of(clean(app)).items()
    wanted = every()["summaries.aggregated"](Run("encoder", TEXT), "Values", layer=1, head=3)
    assert panels_on(app)[0]["caption"] == list(wanted.caption)


@pytest.mark.slow
def test_a_typed_word_takes_the_place_of_query_and_key() -> None:
    app = page_at("circuits", text=TEXT, model="encoder", look_word="99999999")
    assert "look_word" in told(clean(app), "toast") and "look_word" not in asked_of(app)
    app.text_input(key="look_word field").set_value(" street ").run()
    word, _ = loaded("encoder").first_token("street")
    assert asked_of(clean(app))["look_word"] == str(word)
    assert panels_on(app)[0]["finding"].count("“street”") >= 2
    app.text_input(key="look_word field").set_value("").run()
    assert "look_word" not in asked_of(clean(app))


@driver.browser_test
def test_a_matrix_is_read_and_pressed_and_leaves_as_vectors(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/?tab=aggregated&token=3&sum_keep=All")
    cells = page.locator(".panel .cells").first
    cells.wait_for()
    text = page.locator("textarea").first.input_value()
    recording = read_once("encoder").record(text)
    mean = recording.attention[0].pattern.mean((0, 1))
    cells.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    labels = recording.streams[0].tokens
    column = max(set(range(len(labels))) - {3}, key=mean[3].__getitem__) + 1
    said = page.locator(".panel .tip").first.inner_text()
    assert recording.streams[0].tokens[4] in said and said.endswith(f"{mean[4, column]:.3f}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**token=4**source={column}**")
    drawn = visitor.export(re.compile("Mean attention.* as SVG")).read_text("utf-8")
    assert "Mean attention of all heads" in drawn and "<image" not in drawn
    assert "model encoder" in drawn


def test_the_layers_of_a_deep_model_are_added_up_without_a_loss() -> None:
    values = np.random.default_rng(0).normal(size=30)
    values[[3, 17, 29]] *= 20
    layers = {"embedding": 0.5} | {f"layer {at}": float(v) for at, v in enumerate(values)}
    folded = attribution._folded(layers | {"biases": 0.1})
    assert sum(folded.values()) == pytest.approx(0.6 + values.sum(), abs=SUMMED)
    assert list(folded)[0] == "embedding" and list(folded)[-1] == "biases"
    for name in ("layer 3", "layer 17", "layer 29"):
        assert folded[name] == layers[name]
    kept = [name for name in folded if name in layers and name.startswith("layer ")]
    assert len(kept) >= attribution.N_LAYERS and len(folded) < len(layers)
    # In the order of the network, with every layer in one row.
    spans = [[int(n) for n in re.findall(r"\d+", name)] for name in folded if "layer" in name]
    covered = [at for span in spans for at in range(span[0], span[-1] + 1)]
    assert covered == list(range(30))
