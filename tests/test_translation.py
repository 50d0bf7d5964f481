"""Numbers of a translation: likelihoods and ranks, views, thumbnails, words."""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import STORED, SUMMED
from translation_harness import SENTENCE, translated

from explorer.analysis import opening, translation
from explorer.analysis.words import words
from models.runtime.caching import loaded
from models.runtime.run import Run

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


@pytest.mark.parametrize("name", ["translator", "translator-small"])
@pytest.mark.parametrize(
    "text",
    [
        "The teacher asked the pupils to open their books.",  # answered as "l'app·e"
        "Nepal is a small country.",
        "The pupils 😀 were at the o'clock, naïvely.",
    ],
)
def test_what_a_translator_said_is_whole_words_however_its_tokens_cut_them(
    name: str, text: str
) -> None:
    said = Run(name, text).recording()
    stream = said.streams[-1]
    places = stream.spans[~stream.special]
    assert (places >= 0).all(), "each token stands somewhere in the answer"
    groups = words(stream, said.target)
    labels = [label for label, special in zip(groups.labels, groups.special) if not special]
    assert "".join(labels) == "".join(said.target.split())


def test_the_word_that_opens_is_the_one_out_of_order_furthest_from_the_diagonal() -> None:
    source = Run("translator", "The red car is new.").recording().streams[0]
    places = np.flatnonzero(~source.special)[:4]
    written = ("La", "voiture", "rouge", "est")

    def reading(*keys: int, weight: float = 0.9) -> np.ndarray:
        weights = np.full((len(keys), len(source.tokens)), (1 - weight) / len(source.tokens))
        weights[np.arange(len(keys)), places[list(keys)]] = weight
        return weights

    assert opening.longest_jump(reading(0, 1, 2, 3), written, source) is None
    assert opening.longest_jump(reading(0, 0, 3, 3), written, source) is None  # a gap, in order
    assert opening.longest_jump(reading(3, 1, 2, 0), written, source) in (0, 3)
    assert opening.longest_jump(reading(0, 2, 1, 3), written, source) in (1, 2)
    assert opening.longest_jump(reading(0, 2, 1, 3, weight=0.1), written, source) is None
    no_words = ("La", ",", ".", "est")
    assert opening.longest_jump(reading(0, 2, 1, 3), no_words, source) is None
    assert opening.lasting_lead([False, True, False, True, True]) == 3
    assert opening.lasting_lead([True, True]) == 0
    assert opening.lasting_lead([True, False]) is None
