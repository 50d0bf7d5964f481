"""Attention that was computed elsewhere, shown."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from tolerances import STORED

import headlight
from explorer.panels import attention as attention_panels
from explorer.panels import soft_lookup, spec, summaries
from models.contract.recording_file import from_npz, to_npz

TOKENS = "the cat sat on the mat and the dog ran to the old house by the wide river".split()
N = len(TOKENS)


def drawn(layers: int = 2, heads: int = 3) -> np.ndarray:
    weights = np.tril(np.random.default_rng(1).random((layers, heads, N, N)) + 0.01)
    weights[1, 2] = 0.001 * np.tril(np.ones((N, N)))  # a head that attends to the token before
    weights[1, 2, np.arange(1, N), np.arange(N - 1)] = 1
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


class Foreign:
    """An array of another framework, that knows only `__array__`."""

    def __init__(self, array: np.ndarray) -> None:
        self.held = array
        self.shape = array.shape

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.held


class Capsule:
    """One that knows only DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.held = array

    def __dlpack__(self, **options: object) -> object:
        return self.held.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.held.__dlpack_device__()


def test_every_panel_that_needs_attention_alone_shows_it() -> None:
    weights = drawn()
    recording = headlight.view(weights, TOKENS)
    np.testing.assert_array_equal(recording.attention[0].pattern, weights)
    np.testing.assert_array_equal(recording.attention[0].allowed[0], np.tril(np.ones((N, N), bool)))
    assert recording.text == " ".join(TOKENS) and recording.streams[0].tokens == tuple(TOKENS)
    table = attention_panels.heads(recording).table
    at = next(row for row in range(6) if (table["layer"][row], table["head"][row]) == (1, 2))
    assert table["pattern"][at] == "previous"
    assert 0 < float(table["chance"][at]) < 0.3 and float(table["p_value"][at]) < 1e-6
    shown = 0
    for name in spec.panel_names():
        try:
            panel = spec.PANELS[name](recording)
        except ValueError as why:
            assert str(why)
        else:
            shown += panel.run is not None and panel.run.model == recording.model.name
            assert panel.encode() and panel.json()
    assert shown >= 10
    rollout = summaries.aggregated(recording, "Rollout")
    by_hand = np.eye(N)
    for layer in weights.astype(np.float64).mean(axis=1):
        by_hand = (layer + np.eye(N)) / 2 @ by_hand
    columns = [f"{at} {token}" for at, token in enumerate(TOKENS)]
    shares = np.stack([rollout.table[each] for each in columns], axis=1)
    np.testing.assert_allclose(shares, by_hand, atol=STORED)
    matrix = attention_panels.head(recording, 1, 2, view="Matrix")
    assert soft_lookup.messages(recording).title and matrix.figures


@pytest.mark.parametrize(
    "given",
    [
        lambda a: torch.tensor(a),
        lambda a: torch.tensor(a, requires_grad=True),
        lambda a: a.tolist(),
        lambda a: a.astype(np.float64),
        lambda a: Foreign(a),
        lambda a: Capsule(a),
        lambda a: [torch.tensor(each)[None] for each in a],
        lambda a: tuple(a),
        lambda a: a[None],
        lambda a: a[:, None],
    ],
)
def test_arrays_of_any_framework(given) -> None:
    weights = drawn()
    recording = headlight.view(given(weights), TOKENS)
    np.testing.assert_allclose(recording.attention[0].pattern, weights, atol=STORED)


def test_fewer_axes_and_fewer_bits() -> None:
    weights = drawn()
    one = headlight.view(weights[0], TOKENS)
    assert one.attention[0].pattern.shape == (1, 3, N, N)
    assert headlight.view(weights[0, 0], TOKENS).model.n_head == 1
    half = headlight.view(torch.tensor(weights).bfloat16(), TOKENS).attention[0].pattern
    np.testing.assert_allclose(half.sum(-1), 1, atol=STORED)
    np.testing.assert_allclose(half, weights, atol=2**-8)  # of 8 bits of a weight
    both_ways = headlight.view(np.full((1, 1, 4, 4), 0.25), TOKENS[:4])
    assert both_ways.model.kind == "encoder" and both_ways.attention[0].allowed.all()


@pytest.mark.parametrize(
    "attention, tokens, why",
    [
        (drawn()[..., :-1], TOKENS, "has 18 queries and 17 keys; there are 18 tokens"),
        (drawn(), TOKENS[:3], "has 18 queries and 18 keys; there are 3 tokens"),
        (2 * drawn(), TOKENS, r"rows of attention sum to 1; that of query .* sums to 2"),
        (-drawn(), TOKENS, "0 or more, and finite"),
        (drawn() * np.nan, TOKENS, "0 or more, and finite"),
        (np.stack([drawn()] * 4), TOKENS, r"has the axes \(layer, head, query, key\)"),
        (np.zeros(3), TOKENS, "the shape .3,. is another"),
        ([np.eye(2), np.eye(3)], TOKENS, "the layers have other shapes"),
    ],
)
def test_what_is_no_attention_is_refused_in_one_sentence(attention, tokens, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        headlight.view(attention, tokens)


def test_it_is_a_recording_like_any_other() -> None:
    """In a file, which opens where the arrays are gone; there is no model to ask."""
    weights = drawn()
    recording = headlight.view(weights, TOKENS, name="my paper")
    assert recording.model.name.startswith("mine:my paper-")
    assert headlight.view(weights, TOKENS, name="my paper") == recording
    data, title = to_npz(recording), attention_panels.heads(recording).finding
    del recording
    gc.collect()
    opened = from_npz(data)
    assert attention_panels.heads(opened).finding == title
    model = headlight.load(opened.model.name)
    for asked in (lambda: model.record("a"), lambda: model.logits(opened, "decoder", 0)):
        with pytest.raises(ValueError, match="arrays and no model"):
            asked()
    assert str(headlight.page(opened, "heads")).startswith("<!doctype html>")
