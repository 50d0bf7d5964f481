"""Summaries of all heads: rollout, flow, weighted values and heads' writes obey their laws."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import summaries, word_classes
from explorer.figures.formatting import matches_text
from explorer.panels import summaries as summary_panels
from models.contract.recording import Attention
from models.network.own_model import OwnModel, record
from models.readouts import weights
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "the cat sat on the mat"


def attention_of(pattern: np.ndarray, v: np.ndarray | None = None) -> Attention:
    """An attention with this pattern (layer, head, query, key) within one stream."""
    layers, heads, n, _ = pattern.shape
    q = np.random.default_rng(0).normal(size=(layers, heads, n, 4)).astype(np.float32)
    names, allowed = ("self", "encoder", "encoder"), np.ones((n, n), bool)
    return Attention(*names, np.zeros_like(pattern), pattern, allowed, q, q, q if v is None else v)


def test_mean_and_largest_bound_heads_and_rollout_sums_to_1(model: OwnModel) -> None:
    for attention in record(model, TEXT).attention:
        np.testing.assert_allclose(summaries.mean(attention).sum(-1), 1, atol=SUMMED)
        assert (summaries.largest(attention) >= attention.pattern.max(axis=(0, 1)) - 1e-9).all()
        one = attention.pattern[1].mean(0)
        np.testing.assert_allclose(summaries.mean(attention, 1), one, atol=STORED)
        if attention.query != attention.key:
            with pytest.raises(ValueError, match="identity"):
                summaries.rollout(attention)
            continue
        for upto in (0, 1, None):
            rolled = summaries.rollout(attention, upto)
            np.testing.assert_allclose(rolled.sum(-1), 1, atol=DOUBLE)
            assert (rolled >= 0).all() and not rolled[~attention.allowed[0]].any()


# ---- laws --------------------------------------------------------------------


def test_rollout_by_hand() -> None:
    pattern = np.array([[[[1, 0], [0.5, 0.5]]], [[[0, 1], [1, 0]]]], np.float32)
    # layer 0: [[1, 0], [.25, .75]]; layer 1: [[.5, .5], [.5, .5]]; their product:
    product = [[0.625, 0.375], [0.625, 0.375]]
    np.testing.assert_allclose(summaries.rollout(attention_of(pattern)), product, atol=STORED)


def cut(layers: np.ndarray, top: int, bottom: int) -> float:
    """The least capacity of any cut that parts node `top` above from node `bottom` below, by trying
    all of them."""
    depth, n = layers.shape[:2]
    between = [(level, node) for level in range(1, depth) for node in range(n)]
    least = np.inf
    for chosen in itertools.product((False, True), repeat=len(between)):
        above = {(depth, top)} | {node for node, is_above in zip(between, chosen) if is_above}
        capacity = sum(
            layers[level - 1, node, low]
            for level, node in above
            for low in range(n)
            if (level > 1 or low == bottom) and (level - 1, low) not in above
        )
        least = min(least, capacity)
    return least


def test_flow_is_the_least_cut() -> None:
    rng = np.random.default_rng(3)
    tops, bottoms = (each.ravel() for each in np.indices((3, 3)))
    for _ in range(10):
        layers = rng.random((3, 3, 3)) ** 3 * (rng.random((3, 3, 3)) > 0.25)
        found = summaries.maximum_flow(layers, tops, bottoms)
        least = [cut(layers, top, bottom) for top, bottom in zip(tops, bottoms)]
        np.testing.assert_allclose(found, least, atol=DOUBLE_LONG)
    # The first way that is found uses the one edge that the other half needs: it is taken back.
    layers = np.zeros((3, 4, 4))
    layers[2, 0, [0, 1]] = layers[1, 0, [0, 1]] = layers[1, 1, 0] = layers[0, [0, 1], 3] = 1
    assert summaries.maximum_flow(layers, np.array([0]), np.array([3]))[0] == 2


def test_flow_lies_between_one_way_and_all_that_leaves(model: OwnModel) -> None:
    attention = record(model, TEXT).attention[0]
    layers, n = summaries.attention_with_residual(attention), attention.pattern.shape[-1]
    flow = summaries.flow(attention, range(n))
    assert (flow <= 1 + 1e-9).all() and (flow <= layers[0].sum(axis=0) + 1e-9).all()
    straight = np.minimum.reduce([np.diagonal(layer) for layer in layers])
    assert (np.diagonal(flow) >= straight - 1e-9).all()
    np.testing.assert_allclose(summaries.flow(attention, range(n), 0), layers[0])
    np.testing.assert_allclose(summaries.flow(attention, [2]), flow[2:3], atol=DOUBLE_LONG)


def test_weighted_values_sum_to_what_attention_wrote(model: OwnModel) -> None:
    recording, outputs = record(model, TEXT), weights.outputs(model)
    for attention in recording.attention:
        w_o, b_o = outputs[attention.name]
        place = "attn" if attention.query == attention.key else "cross"
        by_layer = []
        for layer, pattern in enumerate(attention.pattern):
            written = attention.v[layer].astype(float) @ w_o[layer].astype(float)
            parts = pattern[..., None] * written[:, None]  # (head, query, key, d_model)
            wrote = recording.stream(attention.query).at(f"{layer}.{place}.wrote")
            np.testing.assert_allclose(parts.sum(axis=(0, 2)) + b_o[layer], wrote, atol=PASSED)
            one, every = np.linalg.norm(parts[1], axis=-1), np.linalg.norm(parts.sum(0), axis=-1)
            found = summaries.norms(attention, w_o, layer, 1)
            np.testing.assert_allclose(found, one, atol=STORED)
            by_layer.append(summaries.norms(attention, w_o, layer))
            np.testing.assert_allclose(by_layer[-1], every, atol=STORED)
        np.testing.assert_allclose(summaries.norms(attention, w_o), np.mean(by_layer, axis=0))


def test_shares_of_a_layers_heads_and_bias_sum_to_1(model: OwnModel) -> None:
    recording, outputs = record(model, TEXT), weights.outputs(model)
    for attention in recording.attention:
        output = outputs[attention.name]
        for query in (None, 0, 2):
            found = summaries.contributions(recording, attention, output, query)
            np.testing.assert_allclose(found.share.sum(axis=1) + found.bias, 1, atol=DOUBLE_LONG)
            assert (found.length >= 0).all()
        z = attention.pattern[1, 2, 2].astype(float) @ attention.v[1, 2] @ output[0][1, 2]
        assert found.length[1, 2] == pytest.approx(np.linalg.norm(z), rel=SUMMED)


def test_disagreements_are_the_rows_that_the_rule_says(small_decoder: OwnModel) -> None:
    pattern = np.full((1, 1, 4, 4), 0.1, np.float32)
    pattern[0, 0, :, 0] = 0.7
    output, v = np.eye(4, dtype=np.float32)[None, None], np.ones((1, 1, 4, 4), np.float32)
    fair = summaries.disagreements(attention_of(pattern, v), output)
    assert not fair.cells and fair.nearest.share == pytest.approx(fair.nearest.weight)
    little = v.copy()
    little[0, 0, 0] = 0.01  # the token that takes most of the weight has next to nothing to say
    found = summaries.disagreements(attention_of(pattern, little), output)
    assert (found.rows_in_all, len(found.cells)) == (4, 4)
    one = found.cells[0]
    assert one.key == 0 and one.weight == pytest.approx(0.7)
    assert one.share == pytest.approx(0.007 / 0.307, rel=TOTAL)
    # A row without a choice is no disagreement.
    attention = record(small_decoder, TEXT).attention[0]
    found = summaries.disagreements(attention, weights.outputs(small_decoder)["self"][0])
    assert found.rows_in_all == 3 * 4 * (attention.pattern.shape[2] - 1)
    assert all(one.query > 0 for one in found.cells)


@pytest.mark.parametrize("model", ["encoder", "decoder", "minilm"])
@pytest.mark.parametrize("kind", ["Rollout", "Flow"])
def test_rollout_and_flow_say_where_weights_mislead_about_influence(model: str, kind: str) -> None:
    """Beside the largest value stands what comes from that token of all that the heads write."""
    run = Run(model, "The cat sat on the mat because it was tired.")
    recording = run.recording()
    of = recording.attention[0]
    w_o, _ = loaded(recording).outputs()[of.name]
    written = np.zeros(of.pattern.shape[2:])
    for layer in range(len(of.pattern)):
        v = np.asarray(of.v[layer], np.float64)
        w = w_o[layer].reshape(v.shape[0], v.shape[-1], -1)
        vectors = np.einsum("hqk,hkd,hdm->qkm", of.pattern[layer].astype(np.float64), v, w)
        written += np.linalg.norm(vectors, axis=-1)
    misled = set()
    for token in range(1, len(written)):
        panel = summary_panels.aggregated(run, token=token, kind=kind, tokens="All")
        key = panel.figures[0].marks[0][1]
        share = written[token, key] / written[token].sum()
        value = float(panel.figures[0].values[token, key])
        sentence = re.search(r"(only )?(< )?([\d.]+) comes from", panel.finding)
        if "No token stands out" in panel.finding:
            continue
        assert sentence and matches_text(sentence[3], share)
        assert bool(sentence[1]) == ("weights mislead" in panel.finding) == (share <= value / 2)
        misled.add(bool(sentence[1]))
    if (model, kind) != ("minilm", "Rollout"):
        assert True in misled, "in some rows they do"
    for other in ({"kind": "Mean"}, {"kind": kind, "layer": 1}):
        assert "mislead" not in summary_panels.aggregated(run, token=8, **other).finding


@pytest.mark.parametrize("layer", (None, 1))
def test_a_mean_says_how_many_of_its_heads_give_another_word_more(layer: int | None) -> None:
    run = Run("encoder", "The waiter brought the soup but it was cold.")
    pattern = run.recording().attention[0].pattern
    heads = pattern if layer is None else pattern[[layer]]
    labels = run.recording().streams[0].tokens
    is_content = np.array(word_classes.classes(labels)) == word_classes.CONTENT
    key = np.where(is_content, heads.mean(axis=(0, 1))[7], 0).argmax()
    n = sum(row[7].argmax() != key for each in heads for row in each)
    finding = summary_panels.aggregated(run, token=7, layer=layer).finding
    assert f"hides its heads: {n} of these {heads.shape[0] * heads.shape[1]} give" in finding
