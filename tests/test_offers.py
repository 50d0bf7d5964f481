"""Offers: each keeps what it promises, and none is made where nothing is known to change."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import read_once
from tolerances import SUMMED

from docs import openings
from explorer.analysis import changes, offers, opening, words
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.shared_votes import shared_votes
from explorer.panels import offers as panels
from explorer.panels import spec
from explorer.text import offers as offers_text
from models.contract import edits
from models.contract.edits import HideToken, HideWord, ZeroHead
from models.contract.recording import Recording
from models.contract.results import softmax
from models.example_texts import DEFAULT_TEXT, EXAMPLES
from models.runtime.run import Run

WAITER = "The waiter brought the soup but it was cold."
NURSE = "The nurse told the surgeon that she had forgotten the keys."
WOMAN = "The woman saw the man when he opened the door."


def by_kind(run: Run, *others: str) -> dict[str, offers.Offer]:
    made = offers.offers(run, others)
    assert len({each.kind for each in made}) == len(made)
    return {each.kind: each for each in made}


def chances(recording: Recording, token: int) -> tuple[dict[str, float], str]:
    """The probability of each word at a token, and the likeliest word."""
    model = read_once(recording.model.name)
    p = softmax(model.logits(recording, recording.streams[-1].name, token))
    named: dict[str, float] = {}
    ids = np.argsort(-p).tolist()
    for id, label in zip(ids, model.labels(ids)):
        named.setdefault(label, float(p[id]))
    return named, next(iter(named))


def expect_kept(run: Run, offer: offers.Offer) -> None:
    """What an offer says of a head or a word comes about in a pass of its own."""
    plain, model = run.recording(), read_once(run.model)
    address = dict(offer.address)
    token = int(address["token"])
    hidden = (HideToken(token),) if plain.model.kind == "encoder" else ()
    first, second, *_ = offer.guesses
    for asked, leader in (((), first), (edits.from_line(address["edits"]), second)):
        made = model.record(run.text, (*hidden, *asked))
        named, likeliest = chances(made, token)
        assert leader.word.startswith(likeliest)
        for guess in (first, second):
            name = guess.word.partition("…")[0]
            expected = guess.after if asked else guess.before
            assert named.get(name, 0.0) == pytest.approx(expected, abs=SUMMED)
    assert first.before - first.after >= opening.LEAST_LOSS and second.word != first.word


def test_the_opening_sentence_has_three_offers() -> None:
    run = Run("encoder", WAITER)
    made = by_kind(run)
    assert list(made) == [offers.CHANGE, offers.HEAD, offers.WORD]
    head, word, change = (made[each] for each in (offers.HEAD, offers.WORD, offers.CHANGE))
    assert dict(head.address)["edits"] == "ZeroHead:1:7:self" and head.reads == "cold"
    assert dict(word.address)["edits"] == edits.to_line((HideWord(9),))
    expect_kept(run, head)
    expect_kept(run, word)
    assert [each.word for each in head.guesses] == ["it", "he", "she"]
    said = tuple(each.noun for each in change.votes)
    assert said == ("soup", "waiter") and change.votes[1].nouns == ("waiter",) * 3
    now = Run("encoder", dict(change.address)["text"]).recording()
    vote = RecordingFacts(now).votes("self")[0]
    assert [each.word for each in vote.ballots] == ["waiter"] * 3
    assert now.text == WAITER.replace(change.old, change.new)


def test_offers_are_told_in_words() -> None:
    made = by_kind(Run("encoder", WAITER))
    told = {each.kind: (offers_text.what(each), offers_text.result(each)) for each in made.values()}
    assert told == {
        "change": ("Change *it was cold* to *he was late*", "All three heads move to *waiter*."),
        "head": (
            "Take out L1 H7, which reads *cold*",
            "The model’s guess for this place turns from *it* to *he*, "
            "which rises from 31% to 73%.",
        ),
        "word": (
            "Take out *cold*",
            "Without *cold* the model says *he*, and no longer *it*",
        ),
    }
    odd = offers.Offer("word", (), "it", old="a*b<i>", guesses=made["word"].guesses)
    assert "<i>" not in offers_text.what(odd) and "*a*b" not in offers_text.what(odd)
    two = offers.Said(("soup", "Peter", "Peter"), "Peter")
    some = offers.Offer("change", (), "it", old="a", new="b", votes=(two, two))
    assert offers_text.result(some) == "Two of three heads move to *Peter*."


@pytest.mark.parametrize(
    "text", [DEFAULT_TEXT, "The animal did not cross the street because it was too tired."]
)
def test_nothing_is_offered_where_nothing_is_known_to_change(text: str) -> None:
    """*tired* to *wide* moves no head here, and the hidden word keeps its place."""
    made = by_kind(Run("encoder", text))
    assert offers.HEAD not in made and offers.WORD not in made
    change = made.get(offers.CHANGE)
    assert change is None or change.old != "tired"


@pytest.mark.parametrize(
    "text", ["", "Hello", "Ram pushed Hari", "?", "The word.", "[MASK] was late."]
)
def test_short_and_odd_texts_have_offers_that_are_kept_or_none(text: str) -> None:
    run = Run("encoder", text)
    for offer in offers.offers(run):
        expect_kept(run, offer)


def test_of_words_that_turn_an_answer_one_of_content_is_offered() -> None:
    """*that* takes more away, and leaves no guess that says anything."""
    run = Run("encoder", NURSE)
    word = by_kind(run)[offers.WORD]
    assert word.old == "nurse" and [each.word for each in word.guesses[:2]] == ["she", "he"]
    expect_kept(run, word)


def test_models_that_name_other_nouns_are_compared() -> None:
    made = by_kind(Run("encoder", WOMAN), "encoder", "minilm")[offers.MODELS]
    assert made.address == (("model", "minilm"),)
    assert [each.noun for each in made.votes] == ["woman", "man"]
    assert all(each.n_votes >= offers.LEAST_VOTES for each in made.votes)
    assert (
        offers_text.result(made)
        == "They disagree: the heads of encoder take *he* for *woman*, those of minilm for *man*"
    )
    assert offers.MODELS not in by_kind(Run("encoder", WAITER), "minilm"), "they agree"
    assert offers.MODELS not in by_kind(Run("encoder", WOMAN), "decoder"), "it has no tested heads"


@pytest.mark.slow
def test_of_a_decoder_the_next_word_is_what_turns() -> None:
    shyam = Run("decoder", EXAMPLES["Shyam from Nepal"])
    made = by_kind(shyam)
    for offer in made.values():
        expect_kept(shyam, offer)
        assert offer.word == ""
    assert "next word turns" in offers_text.result(made[offers.HEAD])
    assert made[offers.WORD].old == "Nepal" == made[offers.HEAD].reads
    taken = edits.from_line(dict(made[offers.WORD].address)["edits"])
    recording = shyam.recording()
    grouped = words.words(recording.streams[0], recording.text)
    at = grouped.labels.index("Nepal")
    assert taken == words.hidden_word(recording, grouped.starts[at])
    assert all(each.token < len(recording.streams[0].tokens) - 1 for each in taken)


def test_beside_one_head_it_is_offered_only_where_the_answer_turns_without_it() -> None:
    run = Run("encoder", WAITER)
    turning, copied = offers.of_head(run.recording(), "self", 1, 7)  # two at most
    for offer, kind in ((turning, offers.HEAD), (copied, offers.PATCH)):
        assert (offer.kind, offer.layer, offer.head) == (kind, 1, 7)
        expect_kept(run, offer)
    assert "text with *he was late*" in offers_text.what(copied)
    for layer, head in ((0, 1), (2, 1)):
        made = offers.of_head(run.recording(), "self", layer, head)
        assert all(each.kind == offers.CHANGE for each in made)
    assert offers.of_head(run.under((ZeroHead(0, 0),)).recording(), "self", 1, 7) == ()


@pytest.mark.parametrize("text", [WAITER, WOMAN, NURSE])
def test_beside_two_models_other_words_make_them_say_what_is_told(text: str) -> None:
    a, other = Run("encoder", text), "minilm"
    on = opening.compared_vote(shared_votes(a.recording(), Run(other, text).recording()))
    assert on is not None
    for offer in offers.between(a, other, on, ("decoder",)):
        named = dict(offer.address)
        runs = [Run(name, named["text"]).recording() for name in ("encoder", named["model"])]
        again = [each for each in shared_votes(*runs) if each.a.row == on.a.row]
        labels = words.words(runs[0].streams[0], runs[0].text).labels
        assert [each.noun for each in offer.votes] == [labels[each.noun] for each in again[0]]
        assert all(each.n_votes >= offers.LEAST_VOTES for each in offer.votes)
        assert (again[0].a.noun, again[0].b.noun) != (on.a.noun, on.b.noun)


def test_the_models_of_an_offer_disagree_on_the_pronoun_of_the_headline() -> None:
    for text in EXAMPLES.values():
        recording = Run("encoder", text).recording()
        offer, vote = offers.compare(recording, "minilm"), offers.first_vote(recording)
        if offer is not None and vote is not None:
            assert offer.word == words.words(recording.streams[0], text).labels[vote.row]


def test_where_nothing_is_offered_it_is_said_and_there_is_no_picture() -> None:
    nothing = panels.what_changes(Run("encoder", "Hello."))
    assert nothing.finding.startswith("Nothing was found") and not nothing.figures
    assert json.loads(nothing.json())["table"]["kind"] == []
    with pytest.raises(ValueError, match="no picture here. Nothing was found"):
        spec.FILES["png"].make(nothing)


def test_none_under_edits_and_of_a_model_of_two_texts() -> None:
    assert offers.offers(Run("encoder", WAITER, (ZeroHead(0, 0),)), ("minilm",)) == ()
    assert offers.offers(Run("translator", WAITER)) == ()


def test_what_is_tried_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and by the work that it takes: beyond that there is no offer."""
    recording = Run("encoder", WAITER).recording()
    answer = offers.answer_of(recording)
    assert answer is not None
    heads, places = offers.contributions(answer)
    assert 0 < len(heads) <= offers.MAX_HEADS and 0 < len(places) <= offers.MAX_WORDS
    tried = changes.candidates(WAITER, WAITER.index("it was"), ["waiter"])
    assert 0 < len(tried) <= changes.MOST and tried[0].text == WAITER.replace("cold", "hot")
    none = offers.PassBudget(0)
    assert offers.head_out(answer, none) is offers.word_out(answer, none) is None
    assert offers.change(recording, none) is None
    few = offers.PassBudget(heads.index(("self", 1, 7)) + 1)
    assert offers.head_out(answer, few) is not None and few.passes == 0
    assert offers.head_out(answer, offers.PassBudget(heads.index(("self", 1, 7)))) != (
        offers.head_out(answer, offers.PassBudget(offers.MAX_HEADS))
    )


def test_a_pronoun_stands_for_what_was_said_before_it() -> None:
    """*She ate the apple*: heads that name it disagree about nothing."""
    run = Run("encoder", EXAMPLES["Apple and juice"])
    assert not {offers.MODELS, offers.CHANGE} & by_kind(run, "minilm").keys()


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("waiter", [("he", "person")]),
        ("queen", [("she", "person")]),
        ("surgeon", [("he", "person"), ("she", "person")]),
        ("Peter", [("he", "person"), ("she", "person")]),
        ("wolf", [("it", "animal")]),
        ("cows", [("they", "animal")]),
        ("children", [("they", "person")]),
        ("glass", [("it", "thing")]),
    ],
)
def test_nouns_have_pronouns(noun: str, expected: list[tuple[str, str]]) -> None:
    assert list(changes.pronouns_of(noun)) == expected


def test_only_the_clause_of_a_subject_is_changed() -> None:
    at = lambda text, word: changes.candidates(text, text.index(word), ["waiter"])
    assert not at("The waiter washed his hands.", "his")
    assert not at("The waiter asked where it lived.", "it")
    for each in at("The waiter brought it because it is so cold, and left.", "it is"):
        assert each.text.endswith(", and left.") and " is " in each.text
    kept = at("The cook ate it because it was so warm.", "it was")
    assert kept and all(each.new.startswith("he was so ") for each in kept)


@pytest.mark.slow
def test_the_page_of_openings_is_what_is_measured() -> None:
    """Its first table, and every part of it at its smallest size."""
    text = openings.FILE.read_text("utf-8")
    assert openings.document(text, ("opening encoder",)) == text
    small = openings.document(text, models=("encoder",), most=1)
    assert small.count("|") > 20 and "Take out L1 H7" in small


def test_the_heads_that_are_said_to_move_are_counted_also_for_a_possessive() -> None:
    text = "The nurse's dog bit <b>Ram</b> because it was $ 5 hungry, naïve & 💛."
    offered = panels.what_changes(Run("encoder", text)).table
    results = dict(zip(offered["kind"], offered["result"]))
    assert results["change"].startswith(("All three heads move", "Two of three heads move"))
