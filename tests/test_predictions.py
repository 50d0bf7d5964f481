"""Probabilities of words: their sums, how they are reshaped and drawn from, and how they are
written."""

from __future__ import annotations

from math import exp, isclose, log

import numpy as np
import pytest
from prediction_oracle import WAYS
from tolerances import DOUBLE, PASSED, THREE_DECIMALS

from explorer.analysis import predictions
from explorer.figures.formatting import power_of_e, with_unit
from models.contract.results import Sampling, probabilities
from models.runtime.caching import loaded

# ---- the arithmetic ----------------------------------------------------------


def random_scores(n: int = 500) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 3, n).astype(np.float32)


@pytest.mark.parametrize("way", WAYS)
def test_words_and_all_others_add_up_to_one(way: str) -> None:
    of = predictions.distribution(random_scores(), WAYS[way])
    words = predictions.top_words(of, [int(of.order[200])])
    others = predictions.remaining_words(of, words)
    assert len(words) == predictions.MOST_ROWS + 1
    assert words[-1].rank == 200 and others.n == 500 - len(words)
    assert sum(word.own for word in words) + others.own == pytest.approx(1, abs=DOUBLE)
    assert sum(word.drawn for word in words) + others.drawn == pytest.approx(1, abs=DOUBLE)
    np.testing.assert_allclose(of.drawn, probabilities(of.logits, WAYS[way]), atol=DOUBLE)
    # A vocabulary shorter than the list is shown whole.
    few = predictions.distribution(random_scores(4), WAYS[way])
    assert [word.rank for word in predictions.top_words(few)] == [0, 1, 2, 3]
    assert predictions.remaining_words(few, predictions.top_words(few)).n == 0


@pytest.mark.parametrize("way", [way for way in WAYS if way != "greedy"])
def test_the_formula_by_hand_gives_what_is_drawn_from(way: str) -> None:
    of = predictions.distribution(random_scores(), WAYS[way])
    z = np.exp(of.logits.astype(float) / WAYS[way].temperature)
    for word in predictions.top_words(of):
        steps = predictions.probability_steps(of, word.id)
        assert steps.tempered == pytest.approx(z[word.id] / z.sum())
        assert exp(steps.divided - steps.log_total) == pytest.approx(steps.tempered)
        if word.is_candidate:
            assert steps.drawn == word.drawn
            share = steps.tempered / steps.candidate_sum
            assert share == pytest.approx(steps.drawn, rel=PASSED)
    with pytest.raises(ValueError, match="temperature 0"):
        predictions.probability_steps(predictions.distribution(random_scores(), Sampling(0)), 0)


def test_entropy_counts_equally_likely_words() -> None:
    assert predictions.entropy(np.full(8, 1 / 8)) == pytest.approx(log(8))
    assert predictions.bits(log(8)) == pytest.approx(3)
    assert predictions.perplexity(log(8)) == pytest.approx(8)
    assert predictions.entropy(np.array([1.0, 0, 0])) == 0
    assert with_unit(1.0, " nats") == "1 nat" and with_unit(2.0, " nats") == "2 nats"


@pytest.mark.parametrize("exponent", [-20.0, -0.5, 0.0, 2.3, log(1000), 12.7, 900.0])
def test_powers_of_e_also_where_a_float_ends(exponent: float) -> None:
    digits, _, n = power_of_e(exponent).partition(" × 10")
    tens = int(n.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))) if n else 0
    # Four figures: half a unit of the last is at most 5e-4 of the number.
    assert log(float(digits.replace(",", ""))) + tens * log(10) == pytest.approx(
        exponent, abs=THREE_DECIMALS
    )


@pytest.mark.parametrize("way", WAYS)
def test_draws_are_fair_and_come_again_with_the_seed(way: str) -> None:
    of = predictions.distribution(random_scores(40), WAYS[way])
    drawn = [predictions.draw(of, 7, place) for place in range(3000)]
    share = np.bincount([one.id for one in drawn], minlength=40) / 3000
    assert (np.abs(share - of.drawn) <= 4 * np.sqrt(of.drawn * (1 - of.drawn) / 3000) + 1e-9).all()
    assert drawn[:50] == [predictions.draw(of, 7, place) for place in range(50)]
    for one in drawn[:200]:
        assert of.is_candidate[one.id]
        if one.number is not None:
            assert one.start <= one.number < one.end
            assert isclose(one.end - one.start, of.drawn[one.id], abs_tol=1e-12)
    if way != "greedy":
        other = [predictions.draw(of, 8, place).id for place in range(50)]
        assert [one.id for one in drawn[:50]] != other


def test_the_word_to_begin_with_is_a_whole_word() -> None:
    model = loaded("encoder")

    def first(text: str) -> str | None:
        stream = model.record(text).streams[0]
        place = predictions.default_masked_word(stream)
        return None if place is None else stream.tokens[place]

    assert first("I love to eat pizza") == "pizza" and first("It was too tired!!!") == "tired"
    assert first("") is None and set(first("...")) == {"."}, (
        "of a text without a word, its last token"
    )
