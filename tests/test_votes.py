"""The vote of the heads that find nouns in test sentences."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from urllib.parse import parse_qsl
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import HOSTILE, needs_smollm2, read_once
from ordinary_sentences import SENTENCES
from tolerances import STORED

from explorer.analysis import coreference, opening
from explorer.analysis.coreference import CoreferenceHead
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import vote_finding, word_groups
from explorer.analysis.shared_votes import SharedVote, shared_votes
from explorer.panels import architecture, attention, compare, residual
from explorer.screens.heads import HeadOnShow
from explorer.screens.screen import screen
from explorer.text import findings as findings_text
from models.contract.edits import Edit, HideWord, ZeroHead
from models.runtime import caching, registry
from models.runtime.run import Run

WAITER = "The waiter brought the soup but it was cold."
NURSE = "The nurse told the surgeon that she had forgotten the keys."
OWNERS = ("Maria’s brother was late because he missed the bus.", "The boy's dog bit him.")
DOG = "Anna gave the dog some water because it was thirsty."
WORDS = ("Anna", "gave", "dog", "water", "it")
NOUNS = (0, 2, 3)
TESTED = {(0, at): CoreferenceHead(0.5, 0.1, 48, n, 1e-9) for at, n in enumerate((36, 46, 45))}
ORDER = [1, 2, 0]  # of the heads, the best-tested first


def vote(weights: np.ndarray, tested: dict = TESTED) -> list[coreference.Vote]:
    """Of a layer of heads whose pronoun gives the words these weights (head, word)."""
    nouns = np.zeros((len(WORDS), len(WORDS)), bool)
    nouns[WORDS.index("it"), list(NOUNS)] = True
    matrices = {}
    for head, given in enumerate(weights):
        matrices[0, head] = np.zeros(nouns.shape)
        matrices[0, head][WORDS.index("it")] = given
    return coreference.votes(matrices, nouns, WORDS, tested)


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


@pytest.mark.parametrize("seed", range(200))
def test_a_noun_that_stands_twice_is_one_noun(seed: int) -> None:
    labels = ("Dog", "cat", "dog", "water", "it")
    nouns = np.zeros((5, 5), bool)
    nouns[4, :4] = True
    given = np.random.default_rng(seed).dirichlet(np.full(5, 0.3), size=3)
    matrices = {(0, head): np.vstack([np.zeros((4, 5)), row]) for head, row in enumerate(given)}
    (made,) = coreference.votes(matrices, nouns, labels, TESTED)
    said = [labels[int(given[head, :4].argmax())].casefold() for head in ORDER]
    sums = {noun: 0.0 for noun in said} | {"dog": given[ORDER[:2]][:, [0, 2]].sum()}
    sums |= {labels[at]: given[ORDER[:2]][:, at].sum() for at in (1, 3)}
    largest = max(sums, key=lambda noun: sums[noun])
    named = None if made.noun is None else labels[made.noun].casefold()
    assert named == (largest if said.count(largest) >= 2 else None)
    assert made.n_votes == (0 if named is None else said.count(largest))
    assert [labels[each.key].casefold() for each in made.ballots] == said
    assert [each.word for each in made.ballots] == [labels[each.key] for each in made.ballots]


REPEATED = [
    "The girl met the nurse. The girl smiled because she was happy.",
    "A dog saw a cat. The dog barked at the cat because it was angry, and the dog ran.",
    "The waiter brought the soup. The soup was cold, but the waiter said it was the best soup.",
]


@pytest.mark.parametrize("text", [*REPEATED, " ".join(REPEATED), " ".join(REPEATED[::-1])])
@pytest.mark.parametrize("model", ["encoder", "minilm"])
def test_a_headline_names_no_noun_twice(text: str, model: str) -> None:
    run = Run(model, text)
    says = attention.strongest_findings(run)
    assert says.finding
    for one in RecordingFacts(run.recording()).findings():
        if one.ballots:
            _, *nouns = [word.casefold() for word in one.words]
            assert len(nouns) == len({*nouns}) == len({each.noun for each in one.ballots})
            assert one.n_votes < len(one.ballots) or len(nouns) == 1


@pytest.mark.parametrize("model", ["encoder", "minilm"])
def test_one_rule_names_the_noun_and_who_is_divided_says_why(model: str) -> None:
    """Of two heads against the weights of the two best the headline says both nouns; no noun owns
    anything there."""
    outvoted = 0
    for text in (*SENTENCES, "The doctor’s son met the nurse before she left.", *OWNERS):
        recording = read_once(model).record(text)
        facts = RecordingFacts(recording)
        for each in facts.votes("self"):
            one = vote_finding(recording, facts.attention("self"), each)
            says = findings_text.headline(one, findings_text.quoted)
            said = [ballot.word for ballot in each.ballots]
            assert not any(word.endswith(("’s", "'s")) for word in one.words[1:])
            most = max(said, key=said.count)
            assert ("divided" in says) == (each.noun is None)
            if each.noun is not None:
                assert f"tested heads take “{one.words[0]}” for “{one.words[1]}”" in says
                right = findings_text.right(recording.model.fingerprint, each.n_votes, 3)
                assert "other sentences" in right
                assert ("two of three" in right) == (each.n_votes == 2)
                assert "all three" in right, "more heads, more often right"
            elif said.count(most) > 1:
                outvoted += 1
                assert (
                    f"2 of 3 take it for “{most}”" in says
                    and f"weigh “{each.heaviest}” more" in says
                )
                assert most.casefold() != each.heaviest.casefold()
            else:
                assert says.endswith(f"over “{one.words[0]}”")
    assert outvoted


@pytest.mark.parametrize("tested", [{}, dict([*TESTED.items()][:1])])
def test_one_head_is_no_vote(tested: dict) -> None:
    assert vote(np.ones((3, 5)), tested) == []


def test_what_a_text_opens_on_is_known_by_its_vote_before_all_other_findings() -> None:
    recording = Run("encoder", f"{DOG} Nobody had seen it.").recording()
    at = opening.head(recording, of := recording.attention[0])
    row = opening.row(recording, of, at)
    assert not caching.is_kept(RecordingFacts.other_findings, recording)
    first = next(each for each in RecordingFacts(recording).findings() if each.page == "heads")
    assert (first.at, first.query) == (at, row)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            WAITER,
            "2 of 3 tested heads take *it* for :primary[*soup*], one for :blue[*waiter*]",
        ),
        (NURSE, "All three tested heads take *she* for :primary[*nurse*]"),
        (DOG, "The tested heads are divided over *it*"),
    ],
)
def test_the_headline_is_the_vote_of_the_tested_heads(text: str, says: str) -> None:
    recording = read_once("encoder").record(text)
    facts, attention = RecordingFacts(recording), recording.attention[0]
    one = facts.findings()[0]
    shown = screen({"tab": "heads", "text": text, "token": str(one.query)})
    on_show = HeadOnShow.of(shown.run, shown.chosen, shown.words())
    taught = "L2 H1 and L3 H2 learned from heads of minilm"
    assert on_show.headline == says and on_show.taught.startswith(taught)
    assert all(
        f"finds the noun in {each.n_matches} of 48" in on_show.evidence for each in one.ballots
    )
    for each in one.ballots:  # of one of them alone what it says, and no other
        asked = {"layer": str(each.layer), "head": str(each.head)}
        shown = screen({"tab": "heads", "text": text, "token": str(one.query), **asked})
        alone = HeadOnShow.of(shown.run, shown.chosen, shown.words())
        row = attention.pattern[each.layer, each.head, one.query]
        word = recording.streams[0].tokens[int(row.argmax())]
        assert alone.headline == findings_text.row(
            findings_text.marked(one.words[0]), findings_text.marked(word), float(row.max())
        )
        assert alone.evidence.count("finds the noun in") == 1
        assert f"Layer {each.layer}, head {each.head} says" in alone.evidence
    tokens, tested = recording.streams[0].tokens, coreference.measured_heads(recording, attention)
    vote = facts.vote_on(attention.name, one.query)
    assert vote is not None
    for ballot in vote.ballots:
        at = ballot.layer, ballot.head
        weight = attention.pattern[at][one.query, tokens.index(ballot.word)]
        assert ballot.weight == pytest.approx(weight, abs=STORED)
        assert (ballot.n_matches, ballot.n) == (tested[at].n_matches, tested[at].n)


@pytest.mark.parametrize("name", ["encoder", "minilm"])
def test_a_pronoun_before_all_nouns_gets_no_vote(name: str) -> None:
    recording = read_once(name).record("She ate the apple with some fruit juice.")
    assert not RecordingFacts(recording).votes("self")


def test_a_model_under_edits_has_no_vote() -> None:
    recording = read_once("encoder").record(WAITER, (ZeroHead(0, 0),))
    assert not RecordingFacts(recording).votes("self")
    with pytest.raises(ValueError, match="No tested head votes here"):
        attention.votes(Run("encoder", WAITER, (ZeroHead(0, 0),)))


# ---- in a picture --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title", "said"),
    [
        (
            WAITER,
            "2 of 3 tested heads take “it” for “soup”, one for “waiter”",
            ["soup", "soup", "waiter"],
        ),
        (NURSE, "All three tested heads take “she” for “nurse”", ["nurse"] * 3),
        (DOG, "The tested heads are divided over “it”", ["dog", "water", "Anna"]),
    ],
)
def test_the_picture_of_a_vote_has_a_line_for_each_head(
    text: str, title: str, said: list[str]
) -> None:
    panel = attention.votes(Run("encoder", text))
    (picture,) = panel.figures
    assert panel.finding.startswith(f"{title}. ")
    assert [picture.labels[each.word] for each in picture.votes] == said == panel.table["word"]
    assert [each.noun for each in picture.votes] == [[*dict.fromkeys(said)].index(s) for s in said]
    assert picture.labels[picture.pronoun] in title and " ".join(picture.labels[:3]) in text
    recording = Run("encoder", text).recording()
    for line, weight in zip(picture.votes, panel.table["weight"]):
        at = {name: int(word) for name, word in parse_qsl(line.key)}
        row = recording.attention[0].pattern[at["layer"], at["head"], at["token"]]
        key = recording.streams[0].tokens.index(picture.labels[line.word])
        assert row[key] == pytest.approx(weight, abs=STORED)
        assert row[key] == max(row[recording.streams[0].tokens.index(each)] for each in said)


def test_a_press_on_a_word_asks_about_it_and_one_without_a_vote_is_refused_in_a_sentence() -> None:
    run = Run("encoder", f"{WAITER} {NURSE}")
    first = attention.votes(run)
    (picture,) = first.figures
    words = dict(zip(picture.labels, picture.keys))
    assert not words["."] and words["she"] != words["it"]
    other = first.with_choices({"address": words["it" if "she" in first.finding else "she"]})
    titles = sorted((first.finding, other.finding))
    assert "take “it” for “soup”" in titles[0] and "take “she” for “nurse”" in titles[1]
    with pytest.raises(ValueError, match="No tested head votes on “soup”"):
        attention.votes(run, token=int(words["soup"].removeprefix("token=")))


def test_of_a_long_text_the_sentences_of_the_vote_are_shown() -> None:
    filler = "And so, and then, and so on. "
    text = f"{filler * 30}{WAITER} {filler * 30}"
    (picture,) = attention.votes(Run("encoder", text)).figures
    labels = list(picture.labels)
    assert " ".join(labels).count("…") == 2 and len(labels) < 30
    assert [labels[each.word] for each in picture.votes]
    assert {"waiter", "soup", "it"} <= {*labels}, "its own sentence is whole"


def test_words_of_several_pieces_stand_whole() -> None:
    text = "The zookeeper brought the xylophone but it was broken."
    recording = Run("encoder", text).recording()
    assert "xylophone" not in recording.streams[0].tokens
    (picture,) = attention.votes(Run("encoder", text)).figures
    assert {"zookeeper", "xylophone"} <= {*picture.labels}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_vote_in_any_text_is_drawn_or_refused(text: str, tmp_path: Path) -> None:
    """What stands before and after the sentence is text, whatever it is."""
    panel = attention.votes(Run("encoder", f"{WAITER} {text}"))
    panel.save(tmp_path / "vote.svg")
    names = {
        each.tag.rpartition("}")[2] for each in ElementTree.parse(tmp_path / "vote.svg").iter()
    }
    assert names <= {*"svg title metadata style rect path circle g text tspan line image".split()}


@pytest.mark.parametrize("seed", range(60))
def test_an_excerpt_keeps_its_words_in_order_and_is_no_longer_than_it_may_be(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels = random.choice([*"abcdef", ".", "?"], random.integers(1, 120)).tolist()
    keep = random.integers(0, len(labels), random.integers(1, 5)).tolist()
    shown = coreference.excerpt(labels, keep)
    assert {*keep} <= {*shown} and shown == sorted({*shown})
    assert len(shown) <= coreference.MOST_WORDS
    if len(labels) <= coreference.MOST_WORDS:
        assert shown == [*range(len(labels))]


# ---- of two models -------------------------------------------------------------------------------

DOOR = "The woman saw the man when he opened the door."


def shared(a: coreference.Vote, b: coreference.Vote) -> str:
    return SharedVote(a, b).outcome


def test_two_models_disagree_only_where_both_name_a_noun_and_not_the_same() -> None:
    one, other = (
        vote(np.tile([0.5, 0, 0.1, 0.1, 0], (3, 1))),
        vote(np.tile([0, 0, 0.9, 0, 0], (3, 1))),
    )
    split = np.zeros((3, 5))
    split[[0, 1, 2], NOUNS] = 0.5
    (anna,), (dog,), (none,) = one, other, vote(split)
    assert (anna.noun, dog.noun, none.noun) == (0, 2, None)
    assert shared(anna, dog) == "disagree" and shared(dog, dog) == "agree"
    assert shared(anna, none) == "divided_b" and shared(none, anna) == "divided_a"
    assert shared(none, none) == "divided"


@pytest.mark.parametrize(
    "text", [DOOR, WAITER, f"{WAITER} {NURSE}", "He saw 🙂 the waiter’s soup."]
)
def test_votes_of_two_models_are_those_of_each_by_the_words_of_the_first(text: str) -> None:
    recordings = [read_once(name).record(text) for name in ("encoder", "minilm")]
    for a, b in permutations(recordings):
        own, other = (RecordingFacts(each).votes("self") for each in (a, b))
        found = shared_votes(a, b)
        labels = [word_groups(each, each.streams[0].name).labels for each in (a, b)]
        assert {each.a for each in found} <= {*own}
        for each in found:
            (beside,) = (
                one
                for one in other
                if [ballot[:2] for ballot in one.ballots] == [at[:2] for at in each.b.ballots]
                and labels[1][one.row].casefold() == labels[0][each.a.row].casefold()
            )
            for ballot, before in zip(each.b.ballots, beside.ballots):
                assert ballot.weight == before.weight
                assert labels[0][ballot.key].casefold() == before.word.casefold()
        assert [each.outcome == "disagree" for each in found] == sorted(
            (each.outcome == "disagree" for each in found), reverse=True
        )
    assert not shared_votes(recordings[0], read_once("minilm").record(f"{text} Yes."))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            DOOR,
            "They disagree: the heads of encoder take “he” for “woman”, those of minilm for “man”",
        ),
        (NURSE, "The heads of both models take “she” for “nurse”"),
    ],
)
def test_two_models_beside_each_other_say_whether_they_agree(text: str, title: str) -> None:
    panel = compare.votes(Run("encoder", text), other=Run("minilm", text))
    (picture,) = panel.figures
    assert panel.finding.startswith(f"{title}. ")
    (on,) = shared_votes(*(read_once(each).record(text) for each in ("encoder", "minilm")))
    n = sum(each.noun == vote.noun for vote in on for each in vote.ballots)
    assert f" {n} of 6 heads vote so; " in panel.finding and panel.finding.count("right in") == 1
    assert [each.side for each in picture.votes] == [0, 0, 0, 1, 1, 1]
    assert [name for name, _ in picture.sides] == ["encoder", "minilm"]
    for name, model in enumerate(("encoder", "minilm")):
        own = attention.votes(Run(model, text)).table
        at = [place for place, each in enumerate(panel.table["model"]) if each == model]
        for column in ("head", "weight"):
            assert [panel.table[column][place] for place in at] == own[column]
        heads = [each.head for each in picture.votes if each.side == name]
        assert heads == own["head"]
    swapped = compare.votes(Run("minilm", text), other=Run("encoder", text))
    assert ("disagree" in swapped.finding) == ("disagree" in title)


@needs_smollm2
def test_a_model_that_is_divided_is_said_to_be() -> None:
    panel = compare.votes(Run("encoder", NURSE), other=Run("smollm2", NURSE))
    says = "The heads of encoder take “she” for “nurse”; those of smollm2 are divided."
    assert panel.finding.startswith(says)
    assert "says “surgeon”, the others “nurse”" in panel.finding
    swapped = compare.votes(Run("smollm2", NURSE), other=Run("encoder", NURSE))
    assert swapped.finding.startswith(says)


def test_votes_of_two_texts_and_of_a_model_without_tested_heads_are_refused() -> None:
    for other in (Run("encoder", NURSE), Run("minilm", "the cat sat")):
        with pytest.raises(ValueError, match="do not both vote"):
            compare.votes(Run("encoder", DOOR), other=other)
    with pytest.raises(ValueError, match="No other model here has tested heads"):
        compare.votes(Run("decoder", "the cat sat"))


def test_models_that_a_text_is_compared_in_are_those_whose_heads_vote() -> None:
    """Of the shipped models for ordinary texts, from the smallest to the largest."""
    measured = json.loads(coreference.MEASUREMENTS_FILE.read_text("utf-8"))
    there = [
        name for name in registry.names() if name in (*opening.VOTING, "decoder", "translator")
    ]
    voting = [
        name
        for name in there
        for of in measured.get(registry.load(name).card.fingerprint, {}).values()
        if len(of) >= coreference.SUMMED
    ]
    assert voting == [name for name in opening.VOTING if name in there]
    sizes = [registry.load(name).card.n_parameters for name in voting]
    assert sizes == sorted(sizes) and sizes[1] <= opening.CHEAP


@pytest.mark.parametrize("text", ["Marmalade", "Hi", "rain.", "  Unbelievably!  "])
def test_one_word_has_nobody_to_look_at_until_a_head_is_asked_for(text: str) -> None:
    for asked, is_alone in (({}, True), ({"layer": "1", "head": "2"}, False)):
        shown = screen({"text": text, "model": "encoder", **asked})
        on_show = HeadOnShow.of(shown.run, shown.chosen, shown.words())
        assert on_show.is_alone == is_alone
        assert (on_show.headline == "One word has no other to attend to") == is_alone
    two = screen({"text": f"{text} falls", "model": "encoder"})
    assert not HeadOnShow.of(two.run, two.chosen, two.words()).is_alone


@pytest.mark.parametrize("edit", [ZeroHead(1, 7), ZeroHead(2, 1), HideWord(3)])
def test_what_is_taken_out_leaves_the_word_where_it_was(edit: Edit) -> None:
    """The heads of an edited run are not tested, so nothing is chosen by them anew."""
    for text in ("Why did the chicken cross the road? It was bored.", WAITER, NURSE):
        flow = architecture.flow(Run("encoder", text), beam="end")
        after = architecture.flow(Run("encoder", text, (edit,)), beam="end")
        assert after.at["token"] == flow.at["token"]
        own = residual.updates(Run("encoder", text))
        assert residual.updates(Run("encoder", text, (edit,))).at["token"] == own.at["token"]
