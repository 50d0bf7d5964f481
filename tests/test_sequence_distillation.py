"""What the translator's last recipe reads beside people's translations: its own hypotheses, and
pairs in which "it" becomes il or elle."""

from __future__ import annotations

from random import Random

import pytest
import torch
from tolerances import SUMMED

from models import example_texts, own_model
from models.generation import LENGTH_PENALTY_ALPHA
from models.own_model import OwnModel
from models.training import dedup_split, gender_agreement_pairs, sequence_distillation
from models.training.translation import greedy

TEXTS = ["The horse is old.", "My brother gave me a red book yesterday.", "Go home.", "I am cold."]


@pytest.fixture(scope="module")
def translator() -> OwnModel:
    return own_model.load("translator-small")


def test_one_beam_is_the_likeliest_token_each_time(translator: OwnModel) -> None:
    model, tokenizer = translator.model, translator.tokenizer
    sources = tokenizer.ids(TEXTS)
    said = greedy(model, tokenizer, sources)
    for beams, wanted in zip(sequence_distillation.search(model, tokenizer, sources, 1), said):
        assert beams[0][0] == wanted


@torch.inference_mode()
def test_each_hypothesis_has_the_score_that_the_model_gives_it(translator: OwnModel) -> None:
    model, tokenizer = translator.model, translator.tokenizer
    sources = tokenizer.ids(TEXTS)
    bos, eos = tokenizer.ends
    found = sequence_distillation.search(model, tokenizer, sources, 4)
    assert sum(map(len, found)) > 4
    for source, beams in zip(sources, found):
        assert [score for _, score in beams] == sorted((s for _, s in beams), reverse=True)
        assert len({tuple(said) for said, _ in beams}) == len(beams) <= 4
        memory = model.encode(torch.tensor([[*source, eos]]))
        for said, score in beams:
            x = model.decode(torch.tensor([[bos, *said]]), memory)
            logprobs = model.logits(x)[0].log_softmax(-1)
            total = logprobs.gather(-1, torch.tensor([*said, eos])[:, None]).sum().item()
            wanted = total / ((6 + len(said)) / 6) ** LENGTH_PENALTY_ALPHA
            assert score == pytest.approx(wanted, rel=SUMMED)


def test_the_same_hypotheses_whether_alone_or_among_others(translator: OwnModel) -> None:
    model, tokenizer = translator.model, translator.tokenizer
    sources = tokenizer.ids(TEXTS)
    together = sequence_distillation.search(model, tokenizer, sources, 3)
    alone = [sequence_distillation.search(model, tokenizer, [source], 3)[0] for source in sources]
    assert [[said for said, _ in one] for one in together] == [
        [said for said, _ in one] for one in alone
    ]


def test_it_becomes_il_or_elle_by_the_noun_that_is_meant() -> None:
    rng = Random(0)
    feminine = {
        noun: is_she
        for noun, _, is_she in (*gender_agreement_pairs.ACTORS, *gender_agreement_pairs.PLACES)
    }
    of_who = {adjective for adjective, *_ in gender_agreement_pairs.ACTOR_ADJECTIVES}
    seen = set()
    for _ in range(500):
        english, french = gender_agreement_pairs.pair(rng)
        words = english.rstrip(".").split()
        who, what = words[1], words[words.index("because") - 1]
        is_she = feminine[who if words[-1] in of_who else what]
        assert ("qu'elle " in french) is is_she and ("qu'il " in french) is not is_she
        seen.add((is_she, words[-1] in of_who))
    assert len(seen) == 4


def test_near_duplicates_of_what_the_app_offers_are_known() -> None:
    near = dedup_split.NearDuplicates(example_texts.EXAMPLES.values())
    assert "The dog didn't cross the street because it was too tired." in near
    assert "the animal did not cross the street because it was too tired" in near
    assert "The dog didn't cross the road because it was too tired." not in near
