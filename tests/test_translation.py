"""Numbers of a translation: likelihoods and ranks, views, thumbnails, words."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import STORED, SUMMED
from translation_harness import SENTENCE, translated

from explorer.analysis import translation
from models.caching import loaded

FRENCH = "L'animal n'a pas traversé la rue."


# ---- the arithmetic ----------------------------------------------------------


def test_a_token_is_as_likely_as_the_softmax_says_and_ranks_count_the_likelier_ones() -> None:
    p = np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]], np.float32)
    told = translation.decoded_steps(np.log(p) + 40, np.array([0, 0]), top=2)
    np.testing.assert_allclose(np.exp(told.logprob), [0.1, 0.5], atol=STORED)
    assert told.rank.tolist() == [2, 0] and told.top_ids[0].tolist() == [2, 1]
    perplexity = translation.perplexity(told.logprob)
    assert perplexity == pytest.approx((0.1 * 0.5) ** -0.5, rel=SUMMED)


def test_views_are_heads_means_of_a_layer_and_the_mean_of_all() -> None:
    pattern = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 4)).astype(np.float32)
    assert translation.view_names(2, 3) == ("0.0", "0.1", "0.2", "0", "1.0", "1.1", "1.2", "1", "")
    for view, expected in (
        ("1.2", pattern[1, 2]),
        ("1", (pattern[1, 0] + pattern[1, 1] + pattern[1, 2]) / 3),
        ("", np.mean([pattern[layer, head] for layer in (0, 1) for head in (0, 1, 2)], axis=0)),
    ):
        made = translation.attention_view(pattern, view)
        np.testing.assert_allclose(made, expected, atol=STORED)


def test_a_word_is_what_stands_between_spaces_and_as_likely_as_its_pieces_together() -> None:
    recording = translated(SENTENCE, FRENCH)
    app_words = translation.produced_words(recording, True)
    logits = list(loaded(recording).each_logits(recording, "decoder"))
    ids, labels = translation.produced_tokens(recording, loaded("translator").end_token(logits[-1]))
    told = translation.decoded_steps(logits, ids)
    table = translation.word_table(told, labels, app_words)
    assert table["word"] == [*FRENCH.split(), "[EOS]"]
    assert sum(table["log p"]) == pytest.approx(told.logprob.sum())
    first = app_words.count(0)
    assert table["p"][0] == pytest.approx(np.prod(np.exp(told.logprob[:first])))
