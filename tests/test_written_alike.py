"""One way to write each thing in a sentence: a weight that is neither nothing nor all is never said
to be, in a headline, on a card and in a panel alike; a mark is no word; one is no many."""

from __future__ import annotations

import re
import unicodedata
from itertools import product

import numpy as np
import pytest
from conftest import in_turn, read_once
from ordinary_sentences import SENTENCES

from explorer.analysis import findings
from explorer.analysis.facts import RecordingFacts
from explorer.figures.formatting import hundredths, word_in_sentence
from explorer.panels import attention, attribution, card, feed_forward, soft_lookup, summaries
from explorer.panels.spec import Panel
from explorer.text.findings import evidence, headline, marked
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn]
MODELS = ("encoder", "decoder", "translator", "minilm")
TEXTS = in_turn(SENTENCES, 16, "alike")
CASES = [*product(MODELS, TEXTS)]
WEIGHT = r"((?:[<>] )?\d\.\d\d)"


def test_a_mark_of_punctuation_is_quoted_as_a_word_and_no_other_token_is() -> None:
    for mark in (".", ",", "?!", "…", "“", "—", "。", "؟", "„"):
        assert (
            word_in_sentence(mark) == f"“{mark}”" and word_in_sentence(f"→ {mark}") == f"→ “{mark}”"
        )
    for word in ("it", "[CLS]", "<s>", "‧umber", "'t", "3.14", "␣", "→ la", "€", "", "a.m."):
        assert word_in_sentence(word) == word
    assert marked(".") == "“\\.”" and marked("it") == "*it*"


@pytest.mark.parametrize(("model", "text"), CASES)
def test_a_weight_is_written_alike_in_headline_evidence_and_card(model: str, text: str) -> None:
    recording = Run(model, text).recording()
    for one in RecordingFacts(recording).other_findings():
        if one.kind in (*findings.PAIRS, findings.ALIGNED, findings.CROSSED, findings.DOUBLE):
            written = hundredths(one.value)
            assert f"({written})" in headline(one) and written in evidence(one)
            assert f"more than {hundredths(one.chance)}." in evidence(one) or one.above_mean
            assert (written in ("0.00", "1.00")) == (one.value in (0, 1))
    made = card.headline(Run(model, text))
    (first, *_) = findings.select_findings(RecordingFacts(recording).leading_findings()) or [None]
    if first is not None and first.kind in (*findings.PAIRS, findings.ALIGNED):
        assert made.figures[0].number == hundredths(first.value)
        assert made.finding.endswith(f"{hundredths(first.value)}.")


@pytest.mark.parametrize(("model", "text"), CASES)
def test_a_row_is_told_with_its_weights_and_its_marks_in_quotes(model: str, text: str) -> None:
    run = Run(model, text)
    of = run.recording().attention[0]
    for layer, head, token in product((0, 1), (0, 2), range(of.pattern.shape[2])):
        said = attention.head(run, layer, head, token, attention=of.name, unit="Tokens").finding
        _, _, others = said.partition(" attends to ")
        told = re.findall(rf"(\S+) {WEIGHT}(?=, |$)", others)
        row = np.sort(of.pattern[layer, head, token].astype(float))[::-1]
        assert [text for _, text in told] == [hundredths(float(w)) for w in row[: len(told)]], said
        for word in (said.partition(" attends to ")[0], *(word for word, _ in told)):
            is_mark = all(unicodedata.category(letter)[0] == "P" for letter in word)
            assert not is_mark or (word[0], word[-1]) == ("“", "”"), said


def told(panel: Panel) -> str:
    return " ".join((panel.finding, *panel.details))


@pytest.mark.parametrize("model", MODELS[:2])
def test_one_is_no_many(model: str) -> None:
    """Of a sentence with a count of one at some word, and one with a range that is none."""
    run, seen = Run(model, "Water boils at 100 degrees."), set()
    n = len(run.recording().streams[-1].tokens)
    for token, layer in product(range(n), range(4)):
        for panel in (attribution.neurons, feed_forward.units, soft_lookup.scoring):
            said = told(panel(run, token=token, layer=layer))
            assert not re.search(
                r"\b1 of (?:the )?[\d,]+ (?:hidden )?(?:units|neurons) are\b", said
            )
            assert "top 1 of" not in said and "rows rows" not in said
            seen |= set(
                re.findall(r"One of [\d,]+ neurons accounts|1 of the \d+ hidden units is", said)
            )
    said = told(summaries.aggregated(run))
    assert "Each row sums to 1.00." in said and "up to 1.00" not in said
    assert seen or model == "encoder"
    assert read_once(model)
