"""Names of heads: what was planted is found, and nothing is claimed that the numbers do not
carry."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tolerances import DOUBLE, STORED, SUMMED

from explorer.analysis import head_naming
from explorer.analysis.findings import Link
from explorer.analysis.poisson_binomial import tail_probabilities
from explorer.text import attention
from explorer.text.head_naming import summary, table
from models import token_relations
from models.recording import Attention, Card, Recording, Stream

WORDS = ("[CLS]", "The", "fox", "saw", "the", "bird", ".", "The", "fox", "ran", ".", "[SEP]")


def recording_of(pattern: np.ndarray, tokens: tuple[str, ...] = WORDS, layer: int = 0) -> Recording:
    """A recording whose last layer, `layer`, has the patterns (head, query, key); those of the
    layers before it are even, and everything else is zeros."""
    pattern = np.asarray(pattern, dtype=np.float32)[None]
    n, heads = len(tokens), pattern.shape[1]
    pattern = np.concatenate([*[np.full_like(pattern, 1 / n)] * layer, pattern])
    special = np.array([token.startswith("[") for token in tokens])
    nothing = np.zeros((1 + layer, heads, n, 2), np.float32)
    stream = Stream(
        "encoder",
        tokens,
        np.arange(n),
        special,
        np.full((n, 2), -1),
        ("embed",),
        np.zeros((1, n, 4), np.float32),
    )
    attention = Attention(
        "self",
        "encoder",
        "encoder",
        np.zeros_like(pattern),
        pattern,
        np.ones((n, n), bool),
        nothing,
        nothing,
        nothing,
    )
    return Recording(
        Card("planted", "encoder", 1 + layer, heads, 4, 2, 9, 99, 0, "none", "none"),
        " ".join(tokens),
        (),
        (stream,),
        (attention,),
    )


def toward(mask: np.ndarray, share: float = 0.9) -> np.ndarray:
    """Rows that give `share` to the masked keys, evenly, and the rest evenly to all; even rows
    where nothing is masked."""
    n = len(mask)
    held = mask.sum(axis=1, keepdims=True)
    return np.where(held > 0, share * mask / np.maximum(held, 1) + (1 - share) / n, 1 / n)


def named(pattern: np.ndarray, tokens: tuple[str, ...] = WORDS, layer: int = 1) -> head_naming.Head:
    recording = recording_of(pattern[None], tokens, layer)
    return head_naming.describe(recording, recording.attention[0])[layer]


ALONE = [name for name in head_naming.NAMING if name != head_naming.SINK]
# Every relation is shown by at least four different words here.
TWICE = (*WORDS[:6], "today", *WORDS[1:6], "today", ".", "[SEP]")


@pytest.mark.parametrize("name", ALONE)
def test_a_planted_habit_is_named_with_its_score_and_chance(name: str) -> None:
    mask = token_relations.text_relations(TWICE, [word.startswith("[") for word in TWICE])[name]
    head = named(toward(mask), TWICE)
    assert head.name == name
    rows = mask.any(axis=1)
    expected_chance = (mask[rows].sum(axis=1) / len(TWICE)).mean()
    assert head.chance == pytest.approx(expected_chance, abs=STORED)
    assert head.score == pytest.approx(0.9 + 0.1 * expected_chance, abs=SUMMED)
    assert head.n_queries == rows.sum()


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
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
    """Of a head that looks one back: a word's look at the one before it, and at another."""
    mask = token_relations.text_relations(TWICE, [word.startswith("[") for word in TWICE])[
        "previous"
    ]
    link = Link(0, 0, 5, key, (TWICE[5], TWICE[key]), (5, key), 0.9, 0.1, 0, 1.0)
    head = named(toward(mask), TWICE)
    for weight, differs in ((0.9, False), (0.4, True)):  # of the tokens, which the picture shows
        told = attention.summary(head, head_naming.MEANING, link, ("x", "y", weight))
        assert said in told and ("as whole words" in told) == differs


@pytest.mark.parametrize("name", ALONE)
def test_the_evidence_are_cells_of_the_habit(name: str) -> None:
    mask = token_relations.text_relations(TWICE, [word.startswith("[") for word in TWICE])[name]
    pattern = toward(mask)
    head = named(pattern, TWICE)
    assert head.evidence
    for cell in head.evidence:
        assert mask[cell.query, cell.key]
        assert cell.weight == pytest.approx(pattern[cell.query, cell.key], abs=STORED)


def resting(*keys: int, share: float = 0.8) -> np.ndarray:
    """Heads (head, query, key), each of which rests on a key of WORDS."""
    return np.stack(
        [toward(np.eye(len(WORDS), dtype=bool)[[key] * len(WORDS)], share) for key in keys]
    )


def names_of(patterns: np.ndarray, tokens: tuple[str, ...] = WORDS) -> list[str]:
    recording = recording_of(patterns, tokens)
    return [head.name for head in head_naming.describe(recording, recording.attention[0])]


def test_first_and_last_special_token_are_one_sink_with_its_shares() -> None:
    """A head that rests now on [CLS], now on [SEP], has one name, and says how much each gets."""
    last = len(WORDS) - 1
    heads = head_naming.describe(
        recording := recording_of(resting(0, last, 0, last, 0)), recording.attention[0]
    )
    assert {head.name for head in heads} == {head_naming.SINK}
    for head, most in zip(heads, ("[CLS]", "[SEP]") * 2):
        shares = dict(head.shares)
        assert max(shares, key=shares.get) == most
        assert sum(shares.values()) == pytest.approx(head.score, abs=STORED)
    assert "[CLS\\] 0.75, " in summary(
        heads[0], head_naming.meanings(recording, recording.attention[0])
    )


def test_heads_that_rest_on_words_make_no_sink_of_the_one_on_the_first_token() -> None:
    """One head of five on [CLS] is what luck gives; five of five are not."""
    assert head_naming.SINK not in names_of(resting(0, 2, 3, 6, 9))
    assert names_of(resting(0, 0, 0, 0, 0)) == [head_naming.SINK] * 5


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


def test_one_word_said_over_and_over_names_no_head() -> None:
    rng = np.random.default_rng(3)
    tokens = ("[CLS]", *["the"] * 12, "[SEP]")
    n = len(tokens)
    patterns = rng.dirichlet(np.full(n, 0.05), size=(60, n))
    patterns[:30] = patterns[:30, 3:4]  # heads that rest on one token
    patterns[:10, :, 0] += 2
    assert {*names_of(patterns / patterns.sum(-1, keepdims=True), tokens)} <= {
        head_naming.NO_PATTERN,
        "diffuse",
    }


@pytest.mark.parametrize("name", ["same word", "induction"])
def test_two_or_three_words_make_no_name_of_repeated_words(name: str) -> None:
    """Of three different words that are repeated, all show it, and that is not enough."""
    mask = token_relations.text_relations(WORDS, [word.startswith("[") for word in WORDS])[name]
    assert 1 < len({WORDS[query].casefold() for query in np.flatnonzero(mask.any(axis=1))}) < 4
    head = named(toward(mask))
    found = next(one for one in head.relations if one.name == name)
    assert found.lift > 0.8 and found.n_matches == found.n_queries and head.name != name


def test_the_reasons_never_contradict_the_name() -> None:
    """Whatever stands above the name's own line says why it is not the name."""
    rng = np.random.default_rng(11)
    n = len(TWICE)
    masks = token_relations.text_relations(TWICE, [word.startswith("[") for word in TWICE])
    mixed = []
    for _ in range(60):
        weights = rng.dirichlet(np.full(len(head_naming.NAMING) + 1, 0.4))
        parts = [toward(masks[name], 1.0) for name in head_naming.NAMING] + [
            rng.dirichlet(np.full(n, 0.2), size=n)
        ]
        mixed.append(sum(weight * part for weight, part in zip(weights, parts)))
    recording = recording_of(np.stack(mixed), TWICE, 1)
    heads = head_naming.describe(recording, recording.attention[0])[len(mixed) :]
    assert len({head.name for head in heads}) > 4
    for head in heads:
        lines = table(head).splitlines()[2:]
        assert len(lines) == len(head.relations)
        yes = [line for line in lines if "**yes**" in line]
        assert [line.split("|")[1].strip() for line in yes] == [
            one.name for one in head.relations if one.name == head.name
        ]
        for one in head.relations:
            if one.name != head.name and one.lift >= head_naming.MIN_LIFT and not one.against:
                chosen = next(each for each in head.relations if each.name == head.name)
                assert chosen.lift >= one.lift


def test_an_even_head_is_broad_and_chance_level_earns_no_other_name() -> None:
    n = len(WORDS)
    head = named(np.full((n, n), 1 / n))
    assert head.name == "diffuse" and head.score == pytest.approx(1, abs=SUMMED)
    assert all(relation.lift == pytest.approx(0, abs=SUMMED) for relation in head.relations)


def test_a_head_that_looks_nowhere_in_particular_but_sharply_has_no_clear_pattern() -> None:
    masks = token_relations.text_relations(WORDS, [word.startswith("[") for word in WORDS])
    elsewhere = ~np.any(list(masks.values()), axis=0)
    elsewhere[~elsewhere.any(axis=1)] = True
    head = named(np.eye(len(WORDS))[elsewhere.argmax(axis=1)])
    assert head.name == head_naming.NO_PATTERN and np.isnan(head.score)


def test_induction_and_same_word_need_a_repetition() -> None:
    tokens = ("[CLS]", "All", "these", "words", "differ", "here", ".", "[SEP]")
    masks = token_relations.text_relations(tokens, [token.startswith("[") for token in tokens])
    assert not masks["induction"].any() and not masks["same word"].any()
    rng = np.random.default_rng(1)
    patterns = rng.dirichlet(np.full(8, 0.05), size=(200, 8))
    recording = recording_of(patterns / patterns.sum(-1, keepdims=True), tokens)
    names = {head.name for head in head_naming.describe(recording, recording.attention[0])}
    assert not names & {"induction", "same word"}


@pytest.mark.parametrize(
    "tokens", [("[CLS]", "[SEP]"), ("[CLS]", "Hi", "[SEP]"), ("[CLS]", "Hi", "you", "[SEP]")]
)
def test_a_text_of_a_few_tokens_gets_no_confident_names(tokens: tuple[str, ...]) -> None:
    for pattern in (
        np.eye(len(tokens)),
        np.roll(np.eye(len(tokens)), 1, axis=0),
        np.full((len(tokens),) * 2, 1 / len(tokens)),
    ):
        assert named(pattern, tokens).name == head_naming.TOO_SHORT


def test_words_are_the_same_without_case_and_special_tokens_are_no_words() -> None:
    same = token_relations.text_relations(
        ("[SEP]", "The", "the", "[SEP]"), [True, False, False, True]
    )["same word"]
    assert same.tolist() == [
        [False] * 4,
        [False, False, True, False],
        [False, True, False, False],
        [False] * 4,
    ]


def test_punctuation_and_spaces_are_no_repeated_words() -> None:
    tokens = ("I", "ate", ".", "␣", "You", "ran", ".", "␣")
    masks = token_relations.text_relations(tokens, [False] * 8)
    assert not masks["same word"].any() and not masks["induction"].any()


def test_a_head_that_looks_at_itself_is_no_induction_head() -> None:
    masks = token_relations.text_relations(("the",) * 6, [False] * 6)
    assert not (masks["induction"] & masks["self"]).any()


def test_in_layer_0_no_head_is_an_induction_head() -> None:
    """A key there holds its own token alone, so that nothing says which token stood before it."""
    special = [word.startswith("[") for word in TWICE]
    pattern = toward(token_relations.text_relations(TWICE, special)["induction"])
    first, second = (named(pattern, TWICE, layer) for layer in (0, 1))
    assert second.name == "induction" and first.name == head_naming.NO_PATTERN
    relation = next(one for one in first.relations if one.name == "induction")
    assert relation.lift > 0.8 and relation.against == head_naming.FIRST_LAYER
    assert "a coincidence in layer 0" in summary(first, head_naming.MEANING)


def test_induction_points_at_what_followed_last_time() -> None:
    masks = token_relations.text_relations(("a", "b", "c", "a", "b"), [False] * 5)
    assert np.argwhere(masks["induction"]).tolist() == [[3, 1], [4, 2]]


def test_entropy_and_distance_of_known_rows() -> None:
    n = len(WORDS)
    sharp, even = named(np.eye(n)), named(np.full((n, n), 1 / n))
    assert sharp.entropy == pytest.approx(0, abs=STORED) and even.entropy == pytest.approx(
        1, abs=STORED
    )
    assert sharp.distance == 0
    text = np.arange(1, n - 1)  # without the special tokens at both ends
    assert even.distance == pytest.approx(np.abs(np.subtract.outer(text, text)).mean(), abs=SUMMED)
    # Two special tokens; their own rows see the other one alone.
    assert even.sink == pytest.approx(((n - 2) * 2 + 2) / n / n, abs=STORED)
