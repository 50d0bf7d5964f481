"""The vote of the heads that find nouns in test sentences."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import read_once
from tolerances import STORED

from benchmarks import names
from explorer.analysis import coreference, votes
from explorer.analysis.coreference import CoreferenceHead
from explorer.analysis.facts import RecordingFacts
from explorer.screens.heads import HeadOnShow
from explorer.screens.screen import screen
from models import registry
from models.edits import ZeroHead

WAITER = "The waiter brought the soup but it was cold."
NURSE = "The nurse told the surgeon that she had forgotten the keys."
DOG = "Anna gave the dog some water because it was thirsty."
WORDS = ("Anna", "gave", "dog", "water", "it")
NOUNS = (0, 2, 3)
TESTED = {(0, at): CoreferenceHead(0.5, 0.1, 48, n, 1e-9) for at, n in enumerate((36, 46, 45))}
ORDER = [1, 2, 0]  # of the heads, the best-tested first


def vote(weights: np.ndarray, tested: dict = TESTED) -> list[votes.Vote]:
    """Of a layer of heads whose pronoun gives the words these weights (head, word)."""
    nouns = np.zeros((len(WORDS), len(WORDS)), bool)
    nouns[WORDS.index("it"), list(NOUNS)] = True
    matrices = {}
    for head, given in enumerate(weights):
        matrices[0, head] = np.zeros(nouns.shape)
        matrices[0, head][WORDS.index("it")] = given
    return votes.votes(matrices, nouns, WORDS, tested)


@pytest.mark.parametrize("seed", range(200))
def test_the_noun_that_is_named_has_the_largest_sum_and_most_votes(seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(5, 0.3), size=3)
    (made,) = vote(weights)
    of_nouns = weights[:, list(NOUNS)]
    for ballot, head in zip(made.ballots, ORDER):
        assert (ballot.layer, ballot.head) == (0, head)
        assert ballot.weight == of_nouns[head].max() == weights[head, ballot.key]
    said = [each.key for each in made.ballots]
    best_two = weights[ORDER[0]] + weights[ORDER[1]]
    largest = max(NOUNS, key=lambda at: best_two[at])
    assert made.noun == (largest if said.count(largest) >= 2 else None)
    assert made.n_votes == (0 if made.noun is None else said.count(largest))


def test_a_word_that_is_no_noun_gets_no_vote_whatever_it_is_given() -> None:
    (made,) = vote(np.tile([0.0, 0.9, 0.05, 0.04, 0.0], (3, 1)))
    assert made.noun == WORDS.index("dog") and made.n_votes == 3


@pytest.mark.parametrize("tested", [{}, dict([*TESTED.items()][:1])])
def test_one_head_is_no_vote(tested: dict) -> None:
    assert vote(np.ones((3, 5)), tested) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (WAITER, "*it* is *soup*, say 2 of 3 tested heads; one says *waiter*"),
        (NURSE, "*she* is *nurse*, say all three tested heads"),
        (DOG, "The tested heads are divided over *it*"),
    ],
)
def test_the_headline_is_the_vote_of_the_tested_heads(text: str, says: str) -> None:
    recording = read_once("encoder").record(text)
    facts, attention = RecordingFacts(recording), recording.attention[0]
    one = facts.findings()[0]
    for words in ({}, *({"layer": str(at[0]), "head": str(at[1])} for at in one.shown_in)):
        shown = screen({"tab": "heads", "text": text, "token": str(one.query), **words})
        on_show = HeadOnShow.of(shown.run, shown.chosen, shown.words())
        assert on_show.headline == says and not on_show.tested
        assert all(
            f"finds the noun in {each.n_matches} of 48" in on_show.evidence for each in one.ballots
        )
    tokens, tested = recording.streams[0].tokens, coreference.measured_heads(recording, attention)
    vote = facts.vote_on(attention.name, one.query)
    assert vote is not None
    for ballot in vote.ballots:
        at = ballot.layer, ballot.head
        weight = attention.pattern[at][one.query, tokens.index(ballot.word)]
        assert ballot.weight == pytest.approx(weight, abs=STORED)
        assert (ballot.n_matches, ballot.n) == (tested[at].n_matches, tested[at].n)


def test_a_model_under_edits_has_no_vote() -> None:
    recording = read_once("encoder").record(WAITER, (ZeroHead(0, 0),))
    assert not RecordingFacts(recording).votes("self")


# Of the sentences in which a noun is named in how many it is right, and in how many one is named.
LEAST = {"encoder": (0.78, 0.9), "minilm": (0.9, 0.85), "smollm2": (0.81, 0.95)}


@pytest.mark.parametrize("name", [each for each in LEAST if each in registry.names()])
def test_what_is_kept_of_the_votes_names_the_right_noun_often_enough(name: str) -> None:
    """As `python -m benchmarks.names --votes` has measured it over 120 sentences."""
    fingerprint = registry.load(name).card.fingerprint
    kept = [votes.tested(fingerprint, n) for n in (2, 3)]
    right, n = (sum(each[at] for each in kept if each) for at in (0, 1))
    least_right, least_named = LEAST[name]
    assert right >= least_right * n and n >= least_named * len(names.pronoun_sentences())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_what_is_kept_of_the_votes_is_what_is_measured(name: str) -> None:
    model = read_once(name)
    found = names.count_votes(model, names.pronoun_sentences())
    kept = {n: votes.tested(model.card.fingerprint, n) for n in found.by_votes}
    assert found.by_votes == kept


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_sentences_that_nothing_was_chosen_by_are_named_about_as_often(name: str) -> None:
    sentences = names.pronoun_sentences(names.PRONOUN_VOTES)
    found, (right, named) = names.count_votes(read_once(name), sentences), LEAST[name]
    assert found.n == 60 and found.named >= (named - 0.1) * found.n
    assert found.right >= (right - 0.1) * found.named
