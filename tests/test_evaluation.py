"""The measures on the cards measure what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from tolerances import STORED

from models import shipped_models
from models.contract.recording import Recording
from models.network import own_model
from models.network.own_model import OwnModel
from models.training import algorithms, evaluate, next_word


def test_a_perfect_translation_has_full_marks_and_any_reference_counts() -> None:
    said = ["Le chat noir dort sur la chaise.", "Il pleut encore dans la rue ce soir."]
    answers = [["Le chat dort.", said[0]], [said[1]]]
    bleu, single, chrf = evaluate.bleu_and_chrf(said, answers)
    assert (bleu, chrf) == (100, 100) and single < 80
    worse = evaluate.bleu_and_chrf(["Le chien.", "Oui."], answers)
    assert worse[0] < 5 and worse[2] < 40


def test_the_hand_made_pairs_are_words_of_their_sentences() -> None:
    n = 0
    for english, french, words in evaluate.PAIRS:
        for pair in words.split():
            source, target = pair.split("=")
            assert source in english and target in french
            n += 1
    assert n >= 40


def test_alignment_looks_in_the_row_that_says_the_word(
    small_translator: OwnModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model whose cross-attention is planted: the row before each French word looks at its
    English one."""
    monkeypatch.setattr(
        evaluate, "PAIRS", (("the cat sat", "on the mat", "the=on cat=the sat=mat"),)
    )

    def planted(shift: int):
        def record(model: OwnModel, text: str, target: str) -> Recording:
            plain = own_model.record(model, text, target=target)
            *others, cross = plain.attention
            pattern = np.zeros_like(cross.pattern)
            for row in range(pattern.shape[2]):
                pattern[:, :, row, min(max(row + shift, 0), pattern.shape[3] - 1)] = 1
            return replace(plain, attention=(*others, replace(cross, pattern=pattern)))

        return record

    for shift, share in ((0, 1.0), (-1, 0.0)):
        monkeypatch.setattr(evaluate, "record", planted(shift))
        found = evaluate.word_alignments(small_translator)
        at_word = [one.mean.all() for one in found]
        assert np.mean(at_word[1:]) == share, "row k says word k + 1"


def test_repetition_scores_find_planted_heads() -> None:
    n = 6

    class Planted:
        def __call__(self, ids: torch.Tensor, tape) -> None:
            pattern = torch.zeros(len(ids), 2, 2 * n + 1, 2 * n + 1)
            for query in range(1, 2 * n + 1):
                pattern[:, 0, query, query - 1] = 1
                pattern[:, 1, query, max(0, query - n + 1)] = 1
            tape("0.attn.pattern", pattern)

    class Words:
        special = frozenset()

        def __len__(self) -> int:
            return 50

        bos = 0

    found = next_word.repetition_scores(Planted(), Words(), n, 3)
    assert found["previous"] == (1.0, 0, 0) and found["induction"] == (1.0, 0, 1)


def test_cross_alignment_of_the_small_models_is_taken_row_by_row(
    small_translator: OwnModel,
) -> None:
    model, tokenizer = small_translator.network, small_translator.tokenizer
    lists = [Random(seed).sample(range(5, 200), 5) for seed in range(4)]
    score, layer, head = algorithms.Reverse().alignment(model, tokenizer, lists)
    weights = []
    for each in lists:
        seen = {}
        memory = model.encode(torch.tensor([[*each, tokenizer.eos]]))
        target = torch.tensor([[tokenizer.bos, *each[::-1]]])
        model.decode(target, memory, tape=lambda name, x: seen.__setitem__(name, x))
        pattern = seen[f"{layer}.cross.pattern"][0, head]
        weights += [pattern[row, 4 - row].item() for row in range(5)]
    assert score == pytest.approx(np.mean(weights), abs=STORED)


def test_every_card_has_what_people_should_know() -> None:
    for name in shipped_models.names():
        card = shipped_models.card(name)
        assert card["name"] == name and card["kind"] in own_model.KINDS
        for key in "summary headline data recipe limits scores measured n_parameters".split():
            assert card[key], (name, key)
        assert json.dumps(card, allow_nan=False)


@pytest.mark.slow
def test_real_text_is_not_measured_without_corpora() -> None:
    with pytest.raises(ValueError, match="say with --data where the corpora lie"):
        evaluate.evaluate("translator", None)
