"""Scores of patterns over texts of any number: against attentions that transformers hands out, and
against numpy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from in_own_code import oracle
from tolerances import STORED

import headlight
from models.contract.recording import Attention, Recording
from models.network.own_model import OwnModel

TEXTS = ("the cat sat on the mat", "the dog ran to the old house", "a cat and a dog")


def by_hand(
    patterns: list[np.ndarray], cells: Callable[[int], np.ndarray], is_causal: bool
) -> tuple[np.ndarray, float]:
    """Mean over texts of the mean weight (layer, head) on cells, and of an even row's."""
    scores, chances = [], []
    for pattern in patterns:
        n = pattern.shape[-1]
        allowed = np.tril(np.ones((n, n), bool)) if is_causal else np.ones((n, n), bool)
        mask = cells(n) & allowed
        rows = mask.any(1) & (mask.sum(1) < allowed.sum(1))
        scores.append((pattern * mask).sum(-1)[..., rows].mean(-1))
        chances.append((mask.sum(1) / allowed.sum(1))[rows].mean())
    return np.mean(scores, axis=0), float(np.mean(chances))


def previous(n: int) -> np.ndarray:
    return np.eye(n, k=-1, dtype=bool)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "opt"])
def test_scores_are_those_of_the_attentions_that_transformers_hands_out(
    family: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    model = tiny_loaded(family)
    frame = headlight.head_scores(model, iter(TEXTS), ["previous"], progress=False)
    patterns = []
    for text in TEXTS:
        with torch.no_grad():
            _, output = oracle(tiny_folder(family), model.record(text))
        patterns.append(np.stack([each[0].numpy() for each in output.attentions]))
    score, chance = by_hand(patterns, previous, model.card.kind == "decoder")
    assert frame.score.to_numpy() == pytest.approx(score.ravel(), abs=STORED)
    assert frame.chance.to_numpy() == pytest.approx(chance)
    assert set(frame.texts) == {len(TEXTS)}
    assert frame.lift.to_numpy() == pytest.approx((frame.score - chance) / (1 - chance))


def test_a_pattern_of_ones_own_is_scored_as_an_array_and_as_a_function(
    small_model: OwnModel,
) -> None:
    """One that the app knows gets the scores that the app gives it, text by text."""
    named = headlight.head_scores(small_model, TEXTS, ["previous"], progress=False)
    made = lambda recording, attention: previous(attention.pattern.shape[-1])
    own = headlight.head_scores(small_model, TEXTS, {"mine": made}, progress=False)
    columns = ["layer", "head", "score", "chance", "lift", "sd", "texts"]
    assert own[columns].equals(named[columns]) and set(own.pattern) == {"mine"}
    ids = [[5, 6, 7, 8], [9, 5, 6, 7]]
    cells = np.tril(np.ones((4, 4), bool), -2)
    fixed = headlight.head_scores(small_model, ids, {"far": cells}, progress=False)
    patterns = [small_model.record(each).attention[0].pattern for each in ids]
    is_causal = small_model.card.kind == "decoder"
    score, chance = by_hand(patterns, lambda _: cells, is_causal)
    assert fixed.score.to_numpy() == pytest.approx(score.ravel(), abs=STORED)
    assert fixed.chance.to_numpy() == pytest.approx(chance)
    sd = np.std([by_hand([each], lambda _: cells, is_causal)[0] for each in patterns], 0, ddof=1)
    assert fixed.sd.to_numpy() == pytest.approx(sd.ravel(), abs=STORED)


def test_every_pattern_of_the_app_stands_in_a_table_without_a_choice(
    small_model: OwnModel,
) -> None:
    frame = headlight.head_scores(small_model, TEXTS, progress=False)
    layers, heads = small_model.card.n_layer, small_model.card.n_head
    assert len(frame) == frame.pattern.nunique() * layers * heads
    assert {"previous", "self", "same word"} <= {*frame.pattern}
    assert frame.score.between(0, 1).all() and frame.chance.between(0, 1).all()


def test_an_iterator_is_read_a_part_at_a_time_and_interrupted_gives_that_part(
    small_model: OwnModel,
) -> None:
    def endless() -> Iterator[str]:
        for at in itertools.count():
            if at == 200:
                raise KeyboardInterrupt
            yield TEXTS[at % 3]

    with pytest.warns(headlight.Notice, match="interrupted: these are the scores of the first 192"):
        frame = headlight.head_scores(small_model, endless(), ["self"], progress=False)
    assert set(frame.texts) == {192}


def test_what_is_no_corpus_is_said(small_model: OwnModel) -> None:
    def wrong(recording: Recording, attention: Attention) -> np.ndarray:
        return np.ones((2, 2), bool)

    with pytest.raises(TypeError, match="a list or an iterator of texts, not one text"):
        headlight.head_scores(small_model, "the cat")
    with pytest.raises(ValueError, match="there are no texts"):
        headlight.head_scores(small_model, [], progress=False)
    with pytest.raises(ValueError, match="no text shows a pattern 'nope'; there are .*previous"):
        headlight.head_scores(small_model, TEXTS, ["nope"], progress=False)
    with pytest.raises(ValueError, match=r"cells of 'x' are \(query, key\), \(\d+, \d+\) of this"):
        headlight.head_scores(small_model, TEXTS, {"x": wrong}, progress=False)
    with pytest.raises(TypeError):
        headlight.head_scores(3, TEXTS)  # type: ignore[arg-type]
