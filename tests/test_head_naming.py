"""Names of heads: what was planted is found, under a causal mask and between two texts too, and
nothing is claimed that the numbers do not carry."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from conftest import read_once
from planted import NOBODY, WORDS, described, named, recording_of, relations, special, toward
from tolerances import DOUBLE, STORED, SUMMED

from explorer.analysis import head_naming
from explorer.analysis.findings import Link
from explorer.analysis.poisson_binomial import tail_probabilities
from explorer.text import attention
from explorer.text.head_naming import summary, table
from models.contract import token_relations

# Every relation is shown by at least four different words here, without and with a causal mask.
TWICE = (*WORDS[:6], "today", *WORDS[1:6], "today", ".", "[SEP]")
BEGUN = tuple(
    "[BOS] The fox saw the bird . The fox ran . So did they . "
    "The fox saw the bird . The fox ran . So did they .".split()
)
SOURCE = tuple("The red fox , which saw a bird , ran far away . [EOS]".split())
TARGET = tuple("[BOS] Le renard rouge , qui voyait un oiseau , s enfuit loin de là .".split())
EVERYWHERE = np.ones((len(TARGET), len(SOURCE)), bool)
ALONE = [name for name in head_naming.NAMING if name != head_naming.SINK]


def triangle(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n), bool))


def across(patterns: np.ndarray, target=TARGET, source=SOURCE) -> tuple[head_naming.Head, ...]:
    """The heads of a cross-attention with these patterns (head, query, key)."""
    return described(recording_of(patterns, target, source=source))


@pytest.mark.parametrize(
    ("name", "causal"),
    [*((name, False) for name in ALONE), *((name, True) for name in ALONE if name != "next")],
)
def test_a_planted_habit_is_named_with_score_chance_and_evidence(name: str, causal: bool) -> None:
    """Against the chance that each row leaves."""
    words = BEGUN if causal else TWICE
    allowed = triangle(len(words)) if causal else np.ones((len(words),) * 2, bool)
    mask = relations(words)[name] & allowed
    pattern = toward(mask, 0.9, allowed)
    head = named(pattern, words, allowed=allowed)
    rows = mask.any(axis=1) & (allowed.sum(axis=1) > 1)
    chance = (mask[rows].sum(axis=1) / allowed[rows].sum(axis=1)).mean()
    assert (head.name, head.n_queries) == (name, rows.sum())
    assert head.chance == pytest.approx(chance, abs=STORED)
    assert head.score == pytest.approx(0.9 + 0.1 * chance, abs=SUMMED)
    assert head.evidence
    for cell in head.evidence:
        assert mask[cell.query, cell.key] and rows[cell.query], "a row with a choice"
        assert cell.weight == pytest.approx(pattern[cell.query, cell.key], abs=STORED)


@pytest.mark.parametrize("name", ["diagonal", "anti-diagonal"])
def test_a_planted_habit_between_two_texts_is_named_with_its_score_and_chance(name: str) -> None:
    mask = token_relations.cross_relations(len(TARGET), SOURCE, special(SOURCE))[name]
    recording = recording_of(toward(mask, 0.9, EVERYWHERE)[None], TARGET, source=SOURCE)
    (head,) = described(recording)
    rows = mask.any(axis=1)
    chance = mask[rows].sum(axis=1).mean() / len(SOURCE)
    assert (head.name, head.n_queries, head.n_matches) == (name, rows.sum(), rows.sum())
    assert head.chance == pytest.approx(chance, abs=STORED)
    assert head.score == pytest.approx(0.9 + 0.1 * chance, abs=SUMMED)
    assert head.evidence and all(mask[cell.query, cell.key] for cell in head.evidence)
    assert np.isnan(head.distance), "places in two texts have no distance"
    assert name in head_naming.meanings(recording, recording.attention[0])


@pytest.mark.parametrize("share", [0.001, 0.5])
def test_what_queries_give_to_masked_keys(share: float) -> None:
    """Few masked cells are picked, many are multiplied: both are the sum over a row's keys."""
    rng = np.random.default_rng(0)
    pattern = rng.random((2, 3, 50, 60), np.float32)
    mask = rng.random((50, 60)) < share
    mask[[0, 20, 49], [0, 3, 59]] = True  # a first and a last cell, and rows with none between
    mask[30] = False
    given = token_relations.mass(pattern, mask)
    rows = np.flatnonzero(mask.any(axis=1))
    assert given.shape == (2, 3, len(rows))
    for at, row in enumerate(rows):
        expected = pattern[:, :, row][..., mask[row]].sum(axis=-1)
        assert given[:, :, at] == pytest.approx(expected, rel=SUMMED)


@pytest.mark.parametrize(("key", "said"), [(4, "Example: "), (2, "Exception: ")])
def test_a_link_of_the_habit_itself_is_no_second_thing_beside_it(key: int, said: str) -> None:
    """Of a head that attends one back: a word's weight on the one before it, and on another."""
    link = Link(0, 0, 5, key, (TWICE[5], TWICE[key]), (5, key), 0.9, 0.1, 0, 1.0)
    recording = recording_of(toward(relations(TWICE)["previous"])[None], TWICE)
    (head,) = described(recording)
    explained = head_naming.explains(recording, recording.attention[0], head, 5, key)
    for weight, differs in ((0.9, False), (0.4, True)):  # of the tokens, which the picture shows
        told = attention.summary(head, head_naming.MEANING, link, ("x", "y", weight), explained)
        assert said in told and ("as whole words" in told) == differs


# ---- no name that the numbers do not carry -------------------------------------


def test_weights_that_are_even_or_lie_elsewhere_earn_no_name_of_a_place() -> None:
    n = len(WORDS)
    for head in (named(np.full((n, n), 1 / n)), *across(EVERYWHERE[None] / len(SOURCE))):
        assert head.name == "diffuse" and head.score == pytest.approx(1, abs=SUMMED)
        assert all(relation.lift == pytest.approx(0, abs=SUMMED) for relation in head.relations)
    elsewhere = ~np.any(list(relations(WORDS).values()), axis=0)
    elsewhere[~elsewhere.any(axis=1)] = True
    sharp = named(np.eye(n)[elsewhere.argmax(axis=1)])
    assert sharp.name == head_naming.NO_PATTERN and np.isnan(sharp.score)


def test_heads_that_attend_anywhere_between_two_texts_get_no_name() -> None:
    rng = np.random.default_rng(5)
    for concentration in (0.02, 1.0):
        drawn = rng.dirichlet(np.full(len(SOURCE), concentration), size=(300, len(TARGET)))
        names = [head.name for head in across(drawn)]
        assert sum(name not in (head_naming.NO_PATTERN, "diffuse") for name in names) <= 3
    marks = ("Oh", ",", "no", "!", "[EOS]")
    drawn = rng.dirichlet(np.full(5, 0.02), size=(1000, 6))
    names = [head.name for head in across(drawn, TARGET[:6], marks)]
    assert sum(name != head_naming.NO_PATTERN for name in names) <= 30


def test_one_word_said_over_and_over_names_no_head() -> None:
    rng = np.random.default_rng(3)
    tokens = ("[CLS]", *["the"] * 12, "[SEP]")
    n = len(tokens)
    patterns = rng.dirichlet(np.full(n, 0.05), size=(60, n))
    patterns[:30] = patterns[:30, 3:4]  # heads that rest on one token
    patterns[:10, :, 0] += 2
    heads = described(recording_of(patterns / patterns.sum(-1, keepdims=True), tokens))
    assert {head.name for head in heads} <= NOBODY


@pytest.mark.parametrize("name", ["same word", "induction"])
def test_two_or_three_words_make_no_name_of_repeated_words(name: str) -> None:
    """Of three different words that are repeated, all show it, and that is not enough."""
    mask = relations(WORDS)[name]
    assert 1 < len({WORDS[query].casefold() for query in np.flatnonzero(mask.any(axis=1))}) < 4
    head = named(toward(mask))
    found = next(one for one in head.relations if one.name == name)
    assert found.lift > 0.8 and found.n_matches == found.n_queries and head.name != name


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_a_text_of_a_few_tokens_gets_no_confident_names(n: int) -> None:
    tokens = ("[CLS]", "Hi", "you", "[SEP]")[:n]
    for pattern in (np.eye(n), np.roll(np.eye(n), 1, axis=0), np.full((n, n), 1 / n)):
        assert named(pattern, tokens).name == head_naming.TOO_SHORT
    alone = described(recording_of(np.eye(n)[None], tokens, allowed=triangle(n)))[0]
    assert alone.name == head_naming.TOO_SHORT
    assert np.isnan(alone.entropy) == np.isnan(alone.sink) == (n == 1)


@pytest.mark.parametrize(("rows", "source"), [(1, "[EOS]"), (1, "a [EOS]"), (9, "a [EOS]")])
def test_two_texts_of_a_token_or_two_have_masks_and_no_names(rows: int, source: str) -> None:
    keys = tuple(source.split())
    masks = token_relations.cross_relations(rows, keys, special(keys))
    assert all(mask.shape == (rows, len(keys)) for mask in masks.values())
    even = np.full((1, rows, len(keys)), 1 / len(keys))
    (head,) = across(even, ("[BOS]", *"abcdefgh")[:rows], keys)
    assert head.name == head_naming.TOO_SHORT


def test_in_layer_0_no_head_is_an_induction_head() -> None:
    """A key there holds its own token alone, so that nothing says which token stood before it."""
    pattern = toward(relations(TWICE)["induction"])
    first, second = (named(pattern, TWICE, layer) for layer in (0, 1))
    assert second.name == "induction" and first.name == head_naming.NO_PATTERN
    relation = next(one for one in first.relations if one.name == "induction")
    assert relation.lift > 0.8 and relation.against == head_naming.FIRST_LAYER
    assert "a coincidence in layer 0" in summary(first, head_naming.MEANING)


def test_the_reasons_never_contradict_the_name() -> None:
    """Whatever stands above the name's own line says why it is not the name."""
    rng = np.random.default_rng(11)
    n, masks = len(TWICE), relations(TWICE)
    mixed = []
    for _ in range(60):
        weights = rng.dirichlet(np.full(len(head_naming.NAMING) + 1, 0.4))
        parts = [toward(masks[name], 1.0) for name in head_naming.NAMING]
        parts.append(rng.dirichlet(np.full(n, 0.2), size=n))
        mixed.append(sum(weight * part for weight, part in zip(weights, parts)))
    heads = described(recording_of(np.stack(mixed), TWICE, 1))[len(mixed) :]
    assert len({head.name for head in heads}) > 4
    for head in heads:
        lines = table(head).splitlines()[2:]
        assert len(lines) == len(head.relations)
        yes = [line.split("|")[1].strip() for line in lines if "**yes**" in line]
        assert yes == [one.name for one in head.relations if one.name == head.name]
        for one in head.relations:
            if one.name != head.name and one.lift >= head_naming.MIN_LIFT and not one.against:
                chosen = next(each for each in head.relations if each.name == head.name)
                assert chosen.lift >= one.lift


@pytest.mark.parametrize("n", [0, 1, 5])
def test_luck_is_what_counting_all_outcomes_gives(n: int) -> None:
    """Of several lots of events at once, the shorter one filled up with what never happens."""
    chances = np.random.default_rng(n).random((2, n))
    chances[1, n // 2 :] = 0
    for chance, said in zip(chances, tail_probabilities(chances)):
        exactly = np.zeros(n + 1)
        for happens in product((False, True), repeat=n):
            exactly[sum(happens)] += np.where(happens, chance, 1 - chance).prod()
        tails = [exactly[k:].sum() for k in range(n + 1)]
        np.testing.assert_allclose(said, tails, atol=DOUBLE)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), [("copy", "diagonal"), ("reverse", "anti-diagonal")])
def test_the_models_that_copy_and_reverse_are_named_for_it(model: str, name: str) -> None:
    recording = read_once(model).record("the red cat saw an old dog near a house")
    assert {head.name for head in head_naming.describe(recording, recording.attention[2])} == {name}


# ---- relations, and what else is said of a head ----------------------------------


def test_which_tokens_are_the_same_word_or_followed_it_last_time() -> None:
    same = relations(("[SEP]", "The", "the", "[SEP]"))["same word"]
    assert np.argwhere(same).tolist() == [[1, 2], [2, 1]], "without case, and no special tokens"
    again = relations(("a", "b", "c", "a", "b"))["induction"]
    assert np.argwhere(again).tolist() == [[3, 1], [4, 2]]
    stuttered = relations(("the",) * 6)
    assert not (stuttered["induction"] & stuttered["self"]).any()
    # Nothing is repeated here but punctuation and spaces.
    for tokens in ("[CLS] All these words differ here . [SEP]", "I ate . ␣ You ran . ␣"):
        masks = relations(tuple(tokens.split()))
        assert not masks["induction"].any() and not masks["same word"].any()


def test_diagonals_go_by_relative_place_and_leave_the_last_row_out() -> None:
    source = ("a", "b", "c", "d", "[EOS]")
    masks = token_relations.cross_relations(5, source, special(source))
    np.testing.assert_array_equal(masks["diagonal"], np.diag([1, 1, 1, 1, 0]).astype(bool))
    np.testing.assert_array_equal(masks["anti-diagonal"][:4, :4], np.eye(4, dtype=bool)[::-1])
    assert not masks["anti-diagonal"][4].any() and not masks["anti-diagonal"][:, 4].any()
    long = (*"abcdefghijklmnopqrstu", "[EOS]")  # 21 of the text, and a target of half as many
    wide = token_relations.cross_relations(12, long, special(long))["diagonal"]
    for row in range(11):
        assert abs(np.flatnonzero(wide[row]) - 2 * row).max() <= 2 and wide[row, 2 * row]


def test_entropy_distance_and_sink_of_known_rows() -> None:
    n = len(WORDS)
    sharp, even = named(np.eye(n)), named(np.full((n, n), 1 / n))
    assert sharp.entropy == pytest.approx(0, abs=STORED) and sharp.distance == 0
    assert even.entropy == pytest.approx(1, abs=STORED)
    text = np.arange(1, n - 1)  # without the special tokens at both ends
    apart = np.abs(np.subtract.outer(text, text)).mean()
    assert even.distance == pytest.approx(apart, abs=SUMMED)
    # Two special tokens; their own rows see the other one alone.
    assert even.sink == pytest.approx(((n - 2) * 2 + 2) / n / n, abs=STORED)


def test_the_row_without_a_choice_counts_for_nothing() -> None:
    words = BEGUN[:15]
    n, allowed = len(words), triangle(len(words))
    patterns = np.stack([allowed / allowed.sum(axis=1, keepdims=True), np.eye(n)])
    recording = recording_of(patterns, words, allowed=allowed)
    broad, itself = described(recording)
    assert broad.name == "diffuse" and broad.entropy == pytest.approx(1, abs=SUMMED)
    # The first row sees itself alone, and of the others each gives the first token as much.
    assert broad.sink == pytest.approx(np.mean([1 / (i + 1) for i in range(1, n)]), abs=SUMMED)
    rows = [[i - j for j in range(1, i + 1)] for i in range(2, n)]
    weights = [1 / (i + 1) for i, row in zip(range(2, n), rows) for _ in row]
    distance = np.average(np.concatenate(rows), weights=weights)
    assert broad.distance == pytest.approx(distance, abs=SUMMED), "between words"
    assert all(relation.lift == pytest.approx(0, abs=SUMMED) for relation in broad.relations)
    assert itself.sink == 0 and itself.name == "self"
    names = [relation.name for relation in broad.relations]
    assert "special" not in names and "next" not in names and len(names) == len(set(names))
    said = head_naming.meanings(recording, recording.attention[0])
    told = [meaning for name, meaning in said.items() if name in names]
    assert not any("both ends" in each or "special tokens." in each for each in told)


# ---- sinks -------------------------------------------------------------------


def resting(*keys: int) -> np.ndarray:
    """Heads (head, query, key), each of which rests on a key of WORDS."""
    n = len(WORDS)
    return np.stack([toward(np.eye(n, dtype=bool)[[key] * n], 0.8) for key in keys])


def test_first_and_last_special_token_are_one_sink_with_its_shares() -> None:
    """A head that rests now on [CLS], now on [SEP], has one name, and says how much each gets."""
    last = len(WORDS) - 1
    recording = recording_of(resting(0, last, 0, last, 0))
    heads = described(recording)
    assert {head.name for head in heads} == {head_naming.SINK}
    for head, most in zip(heads, ("[CLS]", "[SEP]") * 2):
        shares = dict(head.shares)
        assert max(shares, key=shares.get) == most
        assert sum(shares.values()) == pytest.approx(head.score, abs=STORED)
    meanings = head_naming.meanings(recording, recording.attention[0])
    assert "[CLS\\] 0.75, " in summary(heads[0], meanings)
    assert "gives the special tokens more" in meanings["sink"]
    begun = recording_of(np.full((1, 14, 14), 1 / 14), SOURCE)
    told = head_naming.meanings(begun, begun.attention[0])["sink"]
    assert "gives the first token and the special ones more" in told


def test_heads_that_rest_on_words_make_no_sink_of_the_one_on_the_first_token() -> None:
    """One head of five on [CLS] is what luck gives; five of five are not."""
    some = described(recording_of(resting(0, 2, 3, 6, 9)))
    assert head_naming.SINK not in {head.name for head in some}
    every = described(recording_of(resting(0, 0, 0, 0, 0)))
    assert [head.name for head in every] == [head_naming.SINK] * 5


N = len(WORDS)
BEFORE = np.eye(N, k=-1)
BEFORE[0, 0] = 1


def reach_of(*patterns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    recording = recording_of(np.stack(patterns))
    reach, share = head_naming.reach(recording, recording.attention[0])
    return reach[0], share[0]


def test_what_rests_on_a_token_does_not_reach_far() -> None:
    three_back = np.eye(N)[np.maximum(np.arange(N) - 3, 1)]
    first, last, word = (np.eye(N)[[at] * N] for at in (0, N - 1, 2))
    reach, share = reach_of(0.8 * first + 0.2 * BEFORE, three_back, last, 0.5 * word + 0.5 * BEFORE)
    assert reach[0] == pytest.approx(1, abs=STORED), "what it does not rest goes to its neighbour"
    assert reach[1] > 2 and share[0] < 0.25 < share[1]
    assert np.isnan(reach[2]) and share[2] == 0, "it gives the text nothing"
    assert reach[3] == pytest.approx(1, abs=STORED), "nor is one measured by a word it rests on"
    for n in (1, 2):
        recording = recording_of(np.full((1, n, n), 1 / n), WORDS[1 : 1 + n])
        assert np.isnan(head_naming.reach(recording, recording.attention[0])[0]).all()


def test_quiet_keys_are_special_first_and_each_heads_own_sinks() -> None:
    recording = recording_of(np.stack([np.eye(N)[[3] * N], BEFORE]))
    found = head_naming.resting_keys(recording, recording.attention[0])[0]
    assert np.flatnonzero(found[0]).tolist() == [0, 3, N - 1]
    assert np.flatnonzero(found[1]).tolist() == [0, N - 1]


def test_a_sink_is_found_by_its_rule_and_an_even_head_has_none() -> None:
    n, everywhere = 10, np.ones((10, 10), bool)
    planted = np.full((n, n), 0.5 / (n - 1))
    planted[:, 4] = 0.5
    first = np.zeros((n, n))
    first[:, 0] = 1
    for pattern, allowed, found in (
        (planted, everywhere, {4}),
        (np.full((n, n), 1 / n), everywhere, set()),
        (np.eye(n), everywhere, set()),
        (np.eye(n), triangle(n), set()),  # a row's own token is no sink
        (first, triangle(n), {0}),
        # Below the bound over the rows that have a choice, as the first one has not.
        (0.42 * np.eye(n) + 0.58 * first, triangle(n), set()),
        (np.ones((1, 1)), np.ones((1, 1), bool), set()),
    ):
        assert set(np.flatnonzero(head_naming.sinks(pattern, allowed))) == found
    # Of many heads at once, those of each.
    pattern = np.random.default_rng(0).dirichlet(np.full(10, 0.2), size=(3, 4, 10))
    pattern[1, 2] = planted
    at_once = head_naming.sinks(pattern, everywhere)
    assert at_once.shape == (3, 4, 10) and at_once[1, 2, 4]
    for at in np.ndindex(3, 4):
        assert np.array_equal(at_once[at], head_naming.sinks(pattern[at], everywhere))
