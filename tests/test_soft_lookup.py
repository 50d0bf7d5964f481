"""Attention as a lookup, as messages and as one of three constructions: the laws."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import read_once
from tolerances import DOUBLE, PASSED, STORED, SUMMED

from explorer.analysis import soft_lookup
from models.contract.edits import MoveNorm
from models.network.own_model import OwnModel, record
from models.readouts import weights

TEXT = "the cat sat on the mat"


# ---- laws --------------------------------------------------------------------


def test_temperature_1_gives_the_models_pattern_and_the_ends_one_key_or_all(
    model: OwnModel,
) -> None:
    for attention in record(model, TEXT).attention:
        scores, allowed = attention.scores, attention.allowed[0]
        cold, own, hot = (soft_lookup.tempered_softmax(scores, allowed, t) for t in (0, 1, np.inf))
        np.testing.assert_allclose(own, attention.pattern, atol=STORED)
        best = np.where(allowed, scores, -np.inf).argmax(-1)
        np.testing.assert_array_equal(cold.argmax(-1), best)
        np.testing.assert_allclose(cold.max(-1), 1)
        even = allowed / allowed.sum(-1, keepdims=True)
        np.testing.assert_allclose(hot, np.broadcast_to(even, hot.shape))
    equal = soft_lookup.tempered_softmax(np.array([2.0, 2.0, 1.0]), np.ones(3, bool), 0)
    np.testing.assert_allclose(equal, [0.5, 0.5, 0])


def test_cooling_leads_to_the_hard_lookup_and_heating_to_the_mean(model: OwnModel) -> None:
    attention = record(model, TEXT).attention[-1]
    query = attention.pattern.shape[2] - 1
    way = [soft_lookup.lookup(attention, 1, 2, query, each).relative for each in (1e-4, 1e-2, 1.0)]
    found = soft_lookup.lookup(attention, 1, 2, query, 0)
    assert found.relative == 0 and way[0] < STORED and way[0] <= way[-1]
    np.testing.assert_array_equal(found.z_hard, attention.v[1, 2, found.key])
    mean = attention.v[1, 2][attention.allowed[0][query]].mean(axis=0)
    heated = soft_lookup.lookup(attention, 1, 2, query, np.inf)
    np.testing.assert_allclose(heated.z_soft, mean, atol=STORED)


def test_everywhere_says_what_each_lookup_says(model: OwnModel) -> None:
    for attention in record(model, TEXT).attention:
        found = soft_lookup.relative_distances(attention)
        for at in ((0, 0, 3), (2, 3, 4)):
            one = soft_lookup.lookup(attention, *at).relative
            assert found[at] == pytest.approx(one, abs=STORED)
        assert np.isnan(found[:, :, attention.allowed[0].sum(-1) == 1]).all()
        count, near, median = soft_lookup.lookup_counts(found)
        assert count == np.isfinite(found).sum() and median == pytest.approx(np.nanmedian(found))
        assert near == (found <= soft_lookup.LOOKUP_TOLERANCE).sum()


def test_what_is_opened_first_is_most_divided(model: OwnModel, small_decoder: OwnModel) -> None:
    for attention in record(model, TEXT).attention:
        *shape, keys = attention.pattern.shape
        rows = [f"q{at}" for at in range(shape[-1])]
        columns = [*("." * (keys > 4)), *(f"k{at}" for at in range(keys - 1))]
        given = (rows, columns, [False] * (keys - 1) + [True])

        def draw(at: tuple[int, int, int]) -> float:
            weights = np.where(attention.allowed[0][at[2]], attention.pattern[at], -1)
            one, two = np.argsort(-weights)[:2]
            if not {one, two}.isdisjoint({0, keys - 1}) or weights[two] < 0:
                return -1.0
            first, second = attention.v[at[0], at[1], [one, two]].astype(np.float64)
            lengths = np.linalg.norm(first) + np.linalg.norm(second)
            return weights[two] * np.linalg.norm(first - second) / lengths

        draws = {at: draw(at) for at in np.ndindex(*shape)}
        best = soft_lookup.most_divided_row(attention, *given)
        assert draws[best] == pytest.approx(max(draws.values()))
        assert soft_lookup.most_divided_row(attention, *given, 1, 2)[:2] == (1, 2)
        last = soft_lookup.most_divided_row(attention, *given, query=shape[-1] - 1)
        wanted = max(value for at, value in draws.items() if at[2] == shape[-1] - 1)
        assert last[2] == shape[-1] - 1 and draws[last] == pytest.approx(wanted)
    alone = record(small_decoder, "").attention[0]
    assert alone.pattern.shape[2:] == (1, 1)
    assert soft_lookup.most_divided_row(alone, ["[BOS]"], ["[BOS]"], [True]) == (0, 0, 0)


def test_messages_sum_to_what_heads_and_attention_wrote(model: OwnModel) -> None:
    recording, outputs = record(model, TEXT), weights.outputs(model)
    for attention in recording.attention:
        tokens, output = recording.stream(attention.key).tokens, outputs[attention.name]
        for at in ((0, 0, 0), (1, 3, 2), (2, 1, 4)):
            z = soft_lookup.messages(attention, *at).sum(axis=0)
            expected = attention.pattern[at] @ attention.v[at[:2]]
            np.testing.assert_allclose(z, expected, atol=SUMMED)
            length, error = soft_lookup.message_sum_error(attention, *at)
            assert length == pytest.approx(np.linalg.norm(z)) and error < DOUBLE
            table = soft_lookup.message_table(attention, *at, tokens)
            assert sum(table["share of z"]) == pytest.approx(1)
            assert sum(table["weight"]) == pytest.approx(1, abs=SUMMED)
            assert len(table["from"]) == attention.allowed[0][at[2]].sum()
            error = soft_lookup.output_error(recording, attention, *output, at[0], at[2])
            assert error < PASSED


def test_edges_are_the_weights_that_the_rule_says(model: OwnModel) -> None:
    for attention in record(model, TEXT).attention:
        weights, allowed = attention.pattern[1, 2], attention.allowed[0]
        n, keys = weights.shape
        found = soft_lookup.edges(weights, allowed, 1.5)
        through = (weights >= 1.5 / allowed.sum(-1)[:, None]) & allowed
        assert set(zip(found.queries, found.keys)) == set(zip(*np.nonzero(through)))
        assert (np.diff(found.weights) <= 0).all()
        nodes = soft_lookup.nodes(weights, allowed, 1.5, ["a"] * n, ["b"] * keys)
        assert sum(nodes["edges in"]) == sum(nodes["edges out"]) == through.sum()
        for way in ("in", "out"):
            assert sum(nodes[f"weight {way}"]) == pytest.approx(n, abs=PASSED)


def test_naive_scores_are_symmetric_and_the_heads_own_are_its_own(model: OwnModel) -> None:
    recording = record(model, TEXT)
    for attention in recording.attention:
        if attention.query != attention.key:
            with pytest.raises(ValueError, match="not the same tokens"):
                soft_lookup.scoring_variants(np.ones((3, 3)), attention, 0, 0)
            continue
        x = soft_lookup.attention_input(recording, attention, 1)
        naive, symmetric, own = soft_lookup.scoring_variants(x, attention, 1, 2)
        for one in (naive, symmetric):
            bound = DOUBLE * np.abs(one.scores).max()
            np.testing.assert_allclose(one.scores, one.scores.T, rtol=0, atol=bound)
            assert one.asymmetry < DOUBLE
        np.testing.assert_allclose(own.scores, attention.scores[1, 2], atol=PASSED)
        np.testing.assert_allclose(own.weights, attention.pattern[1, 2], atol=SUMMED)
        assert 0.01 < own.asymmetry <= 1


def test_what_attention_reads_is_what_the_heads_own_w_q_takes(small_model: OwnModel) -> None:
    recording = record(small_model, TEXT)
    attention, d_head = recording.attention[0], recording.model.d_head
    w_q = small_model.network.attentions()["self"][1].w_q
    x = soft_lookup.attention_input(recording, attention, 1)
    ux = x @ w_q.weight.detach().numpy().T + w_q.bias.detach().numpy()
    q = ux[:, 2 * d_head : 3 * d_head]
    np.testing.assert_allclose(q, attention.q[1, 2], atol=SUMMED)
    # Where LayerNorm stands before attention, its reading enters.
    moved = record(small_model, TEXT, (MoveNorm("pre"),))
    x = soft_lookup.attention_input(moved, moved.attention[0], 2)
    np.testing.assert_array_equal(x, moved.streams[0].at("2.attn.read"))


def test_asymmetry_by_hand() -> None:
    assert soft_lookup.asymmetry(np.array([[1.0, 2], [2, 5]])) == 0
    assert soft_lookup.asymmetry(np.array([[0.0, 2], [-2, 0]])) == pytest.approx(1)
    assert soft_lookup.asymmetry(np.array([[0.0, 2], [0, 0]])) == pytest.approx(np.sqrt(0.5))
    assert soft_lookup.asymmetry(np.zeros((2, 2))) == 0


def test_a_vector_longer_than_all_others_looks_most_at_itself() -> None:
    attention = record(read_once("encoder"), TEXT).attention[0]
    x = np.random.default_rng(0).normal(size=(attention.pattern.shape[-1], 16))
    x /= np.linalg.norm(x, axis=1, keepdims=True)  # of one length: Cauchy and Schwarz
    assert soft_lookup.scoring_variants(x, attention, 0, 0)[0].own == len(x)
