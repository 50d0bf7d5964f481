"""How far names can be trusted: the measurement of `benchmarks.names` at a small size, over weights
that learned nothing and trained ones."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import read_once

from benchmarks import names

pytestmark = pytest.mark.slow
RECORDINGS = 10  # of 200: enough for 1,200 heads a kind


@pytest.fixture(scope="module")
def models() -> list:
    return [read_once(name) for name in names.MODELS]


@pytest.mark.parametrize("kind", names.WEIGHTS)
def test_weights_that_learned_nothing_get_hardly_any_name(models: list, kind: str) -> None:
    """Nor do they, of two kinds, where one word is said over and over."""
    found: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    for model in models:
        found += names.false_names(model, kind, names.sentences(), RECORDINGS)
        if kind in ("permuted", "own init, W_Q and W_K x 3"):
            repeated += names.false_names(model, kind, names.REPEATED, RECORDINGS)
    assert found.total() > 1000
    assert names.share_of_false(found) < 0.005, found
    assert not repeated or names.share_of_false(repeated) < 0.02, repeated


# The fewer heads of a model rest on a sink, whose name holds in every sentence, the lower.
STABLE = {"minilm": 0.93, "encoder": 0.8}


def test_names_are_stable_from_sentence_to_sentence(models: list) -> None:
    for model in models:
        share, _ = names.stability(model, names.sentences()[::2])
        assert share >= STABLE.get(model.card.name, 0.87), model.card.name


def test_the_command_prints_a_line_for_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    names.main(["--recordings", "1", "--models", "encoder"])
    said = capsys.readouterr().out
    assert all(kind in said for kind in names.WEIGHTS)
    assert "encoder" in said and "Stability" in said
