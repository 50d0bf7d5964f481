"""A head's circuits in words: those that whole matrices give, and the page shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tolerances import PASSED

from models.network import own_model
from models.network.own_model import OwnModel
from models.pretrained import weight_conversion
from models.pretrained.weight_conversion import MODERN_CONVERSIONS
from models.readouts import circuits

OURS = ["small_model", "small_gpt2", "small_translator"]


def whole(model: OwnModel, label: str, layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """QK and OV of every word with every word, (word, word) each, off the weights in 64 bits: the
    bare matrices, without biases, and without the norm that some models pass q and k through."""
    network, config = model.network, model.network.config
    of = network.attentions()[label][layer]
    parts = (of.w_q, of.w_k, of.w_v, of.w_o, network.embedding.token)
    q, k, v, o, e = (each.weight.detach().double().numpy() for each in parts)
    x = e * (model.card.d_model**0.5 if config.scaled_embedding else 1.0)
    d, shared = config.d_head, head // (config.n_head // (config.n_key_head or config.n_head))
    here, there = slice(head * d, (head + 1) * d), slice(shared * d, (shared + 1) * d)
    u = e if network.unembedding is None else network.unembedding.weight.detach().double().numpy()
    return (
        x @ q[here].T @ k[there] @ x.T / d**0.5,
        x @ v[there].T @ o[:, here].T @ u.T,
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*OURS, *MODERN_CONVERSIONS])
def test_circuits_are_those_of_the_whole_matrices(
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tiny_folder: Callable[[str], Path],
) -> None:
    monkeypatch.setattr(circuits, "KEYS", 7)  # several slices of a small vocabulary
    monkeypatch.setattr(circuits, "ROWS", 2)
    model: OwnModel = (
        request.getfixturevalue(kind)
        if kind in OURS
        else weight_conversion.load(tiny_folder(kind), kind)
    )
    label = "cross" if kind == "small_translator" else "self"
    layer, head, ids = 1, 2, (3, 9, 30, 9)
    qk, ov = whole(model, label, layer, head)
    found = model.circuits(label, layer, head, ids)
    rows = np.array(ids)
    for all_of, best, values, sign in (
        (ov, found.up_ids, found.up, -1),
        (ov, found.down_ids, found.down, 1),
        (qk, found.key_ids, found.keys, -1),
    ):
        expected = np.sort(sign * all_of[rows], axis=1)[:, : values.shape[1]] * sign
        for made in (values, np.take_along_axis(all_of[rows], best, axis=1)):
            np.testing.assert_allclose(made, expected, atol=PASSED)
    np.testing.assert_allclose(found.among, qk[np.ix_(rows, rows)], atol=PASSED)
    np.testing.assert_allclose(found.own, ov[rows, rows], atol=PASSED)
    assert list(found.own_rank) == list((ov[rows] > ov[rows, rows][:, None]).sum(1))


def test_with_its_own_values_it_is_what_the_head_would_write_at_weight_one(
    small_decoder: OwnModel,
) -> None:
    recording = own_model.record(small_decoder, "the cat sat on the mat")
    attention, places = recording.attention[0], (1, 3)
    ids = tuple(int(recording.streams[0].ids[place]) for place in places)
    values = attention.v[2, 1][list(places)]
    found = small_decoder.circuits("self", 2, 1, ids, values)
    w_o, _ = small_decoder.outputs()["self"]
    e = small_decoder.network.embedding.token.weight.detach().numpy()
    logits = values @ w_o[2, 1] @ e.T
    np.testing.assert_allclose(found.up[:, 0], logits.max(axis=1), atol=PASSED)
    np.testing.assert_allclose(found.own, logits[[0, 1], list(ids)], atol=PASSED)
    for asked in (("self", 9, 0, ids), ("self", 0, 9, ids), ("cross", 0, 0, ids)):
        with pytest.raises(ValueError, match="no (layer|head) 9|no attention 'cross'"):
            small_decoder.circuits(*asked)
