"""Heads that share keys and values: by an edit, and in a model that was built so."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import replace

import in_own_code
import numpy as np
import pytest
import torch
from conftest import SMALL, sharpened
from edited import OTHER, TEXT, last, recorded
from tolerances import PASSED, SUMMED

from explorer.analysis import anatomy
from models.contract import recording as recording_contract
from models.contract.edits import OtherPositions, PatchHead, SharedKeys, ZeroHead, groups_of
from models.contract.recording_file import from_npz, to_npz
from models.network import own_model
from models.network.attention import KVCache
from models.network.transformer import Decoder
from models.pretrained import hooks
from models.runtime.cache import weight_of

HEADS = SMALL.n_head


def built(model: own_model.OwnModel, groups: int) -> own_model.OwnModel:
    """A model with shared keys whose W_K and W_V are the means of another's, group by group."""
    config = model.network.config
    made = type(model.network)(replace(config, n_key_head=groups))
    tensors = dict(model.network.state_dict())
    for name, tensor in tensors.items():
        if ".w_k." in name or ".w_v." in name:
            heads = tensor.unflatten(0, (groups, HEADS // groups, config.d_head))
            tensors[name] = heads.mean(dim=1).flatten(0, 1)
    made.load_state_dict(tensors)
    return own_model.from_network(made.eval(), model.tokenizer, f"{groups} key heads", "", "fp32")


def test_as_many_groups_as_heads_change_nothing(model: own_model.OwnModel) -> None:
    plain, made = recorded(model), recorded(model, SharedKeys(HEADS))
    assert replace(made, edits=()) == plain


@pytest.mark.parametrize("groups", [1, 2])
def test_an_edit_gives_what_a_model_with_the_mean_weights_is(
    model: own_model.OwnModel, groups: int
) -> None:
    """Its recording, its answer, and a run with heads silenced and patched."""
    other = built(model, groups)
    label = recorded(model).attention[0].name
    for more in ((), (ZeroHead(1, 2, label), PatchHead(OTHER, 0, 1, label))):
        one, two = recorded(model, SharedKeys(groups), *more), recorded(other, *more)
        for a, b in zip(one.attention, two.attention):
            for name in ("q", "k", "v", "scores", "pattern"):
                np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=PASSED)
        for a, b in zip(one.streams, two.streams):
            assert a.sites == b.sites
            np.testing.assert_allclose(a.resid, b.resid, atol=PASSED)
    said, says = model.record(TEXT, (SharedKeys(groups),)), other.record(TEXT)
    np.testing.assert_array_equal(said.streams[-1].ids, says.streams[-1].ids)


@pytest.mark.parametrize(
    "change",
    [{"positions": "rotary"}, {"key_norm": True, "positions": "rotary"}, {"bias_qkv": False}],
    ids=["turned", "normed", "no biases"],
)
def test_the_mean_is_taken_before_keys_are_normed_and_turned(
    small_decoder: own_model.OwnModel, change: dict
) -> None:
    torch.manual_seed(3)
    model = sharpened(Decoder(replace(SMALL, norm="pre", **change)))
    loaded_model = own_model.from_network(model, small_decoder.tokenizer, "of today", "", "fp32")
    for more in ((), (OtherPositions("rotary"),)):
        one, two = (
            recorded(loaded_model, SharedKeys(2), *more),
            recorded(built(loaded_model, 2), *more),
        )
        np.testing.assert_allclose(one.streams[0].resid, two.streams[0].resid, atol=PASSED)


def test_while_writing_less_is_stored_and_read_all_the_same(
    small_decoder: own_model.OwnModel,
) -> None:
    model, whole = small_decoder.network, recorded(small_decoder, SharedKeys(2))
    ids, stored, full = torch.tensor([whole.streams[0].ids.tolist()]), KVCache(), KVCache()
    with torch.inference_mode():
        steps = [
            model(ids[:, at : at + 1], edits=(SharedKeys(2),), stored=stored)[0, 0]
            for at in range(ids.shape[1])
        ]
        model(ids, stored=full)
    np.testing.assert_allclose(torch.stack(steps), last(whole), atol=PASSED)
    assert (stored.n_head, full.n_head) == (2, HEADS)
    assert stored.nbytes * HEADS == full.nbytes * 2


def test_groups_are_of_one_size_and_what_cannot_be_shared_is_said(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    assert groups_of(12) == (1, 2, 3, 4, 6, 12) and groups_of(7) == (1, 7) and groups_of(1) == (1,)
    for groups in (0, -1, 3, HEADS + 1, 10**12):
        with pytest.raises(ValueError, match="4 heads of small can be put in 1, 2, 4 groups of on"):
            recorded(small_model, SharedKeys(groups))
    with pytest.raises(ValueError, match="groups must be a whole number"):
        recorded(small_model, SharedKeys(2.0))  # type: ignore[arg-type]
    for groups in (1, 2, 3):
        with pytest.raises(ValueError, match="4 heads of 2 key heads share 2 heads’ keys"):
            recorded(built(small_decoder, 2), SharedKeys(groups))


# ---- in memory and in a file -----------------------------------------------------------------


def test_shared_keys_are_held_once(small_decoder: own_model.OwnModel) -> None:
    """In the model's own memory, in what a cache counts, in the bytes that are told and in a file:
    k and v of 1 head of 4 take a quarter."""
    width, bytes_of, weights = SMALL.d_model // HEADS, 4, {}  # of 32 bits
    for groups in (1, 2, HEADS):
        for recording in (
            recorded(built(small_decoder, groups)),
            recorded(small_decoder, SharedKeys(groups)),
        ):
            (one,), n = recording.attention, len(recording.streams[0].tokens)
            shape = (SMALL.n_layer, groups, n, width)
            assert one.key_heads == groups and one.k.shape == one.v.shape == one.q.shape
            k, v = (recording_contract.stored_array(each) for each in (one.k, one.v))
            assert k.shape == v.shape == shape
            held = (
                recording.streams[0].resid,
                one.scores,
                one.pattern,
                one.q,
                k,
                v,
                one.allowed[0],
            )
            assert anatomy.memory(recording, n) == sum(each.nbytes for each in held)
            with np.load(io.BytesIO(to_npz(recording, compressed=False))) as file:
                assert file["attention.self.k"].shape == shape
            weights[groups] = weight_of(recording)
    n_bytes = 2 * SMALL.n_layer * n * width * bytes_of
    for groups in (1, 2):
        saved = weights[HEADS] - weights[groups]
        # A few small objects more stand around what is shared.
        assert abs(saved - (HEADS - groups) * n_bytes) < 1500


def test_a_file_comes_back_equal_and_so_does_one_that_holds_every_heads(
    model: own_model.OwnModel,
) -> None:
    recording = recorded(model, SharedKeys(2))
    assert from_npz(to_npz(recording)) == recording
    for each in recording.attention:
        again = pickle.loads(pickle.dumps(each.k))
        np.testing.assert_array_equal(again, each.k)
    # As files were written before: k and v of every head.
    with np.load(io.BytesIO(to_npz(recording))) as file:
        arrays = {name: file[name] for name in file.files}
    for name in arrays:
        if name.endswith((".k", ".v")):
            arrays[name] = np.repeat(arrays[name], HEADS // 2, axis=1)
    old = io.BytesIO()
    np.savez(old, **arrays)
    read = from_npz(old.getvalue())
    assert read == recording and recording == read
    assert all(each.key_heads == HEADS for each in read.attention)


def test_what_is_shared_reads_as_an_array() -> None:
    grouped = recording_contract.grouped
    held = np.arange(2 * 2 * 5 * 3, dtype=np.float32).reshape(2, 2, 5, 3)
    whole, one = np.repeat(held, 3, axis=1), grouped(held, 6)
    assert isinstance(one, recording_contract.GroupedArray) and grouped(one, 6) is one
    assert (one.shape, one.ndim, one.size, len(one)) == (whole.shape, 4, whole.size, 2)
    assert one.dtype == whole.dtype
    places = [0, -1, np.int64(1), slice(1), ..., (..., 1), (slice(None), slice(2), 1), ([1, 0],)]
    places += [(0, [1, 2], 3), (slice(1), 4), (1, -1), (0, 2, [4, 0]), (1, 5, 2, 1)]
    for at in places:
        np.testing.assert_array_equal(one[at], whole[at])
    assert np.shares_memory(one[1, 4], held) and not np.shares_memory(one[1, 4], held[1, 0])
    for act in (
        list,
        lambda x: x @ whole.swapaxes(-1, -2),
        lambda x: whole @ x.swapaxes(-1, -2),
        lambda x: 2 * x - x**2,
        lambda x: np.einsum("lhkd,d->lhk", x, np.ones(3)),
        lambda x: x.astype(np.float64).mean(axis=(0, 1)),
        lambda x: x.reshape(2, -1),
        lambda x: np.asarray(x, dtype=np.float16),
    ):
        np.testing.assert_array_equal(act(one), act(whole))
    for wrong in ((0, 6), (0, -7), 2):
        with pytest.raises(IndexError):
            one[wrong]
    for made in (one[0], one[:, 1:3]):
        with pytest.raises(ValueError, match="read-only"):
            made[...] = 0
    with pytest.raises(TypeError):
        one[0, 0] = 0  # type: ignore[index]
    # What cannot stand for all heads alike is refused where it is recorded.
    assert grouped(held, 5) is held and grouped(whole, 6) is whole


def test_layers_of_another_code_that_share_otherwise_are_held_by_head() -> None:
    made, allowed = hooks.Heads(2), np.ones((3, 3), dtype=bool)
    given = [torch.randn(1, heads, 3, 5) for heads in (2, 1)]
    q = torch.zeros(1, HEADS, 3, 5)
    for layer, k in enumerate(given):
        made.keep(layer, allowed, 1.0, q=q, k=k)
    for layer, k in enumerate(given):
        every = k[0].repeat_interleave(HEADS // k.shape[1], dim=0)
        np.testing.assert_array_equal(made.arrays["k"][layer], every.numpy())


def test_another_s_code_hands_out_shared_keys_once(tiny_loaded: Callable) -> None:
    model = tiny_loaded("llama")
    (attention,) = in_own_code.recorded(model).attention
    of = model.network.config
    assert attention.key_heads == of.num_key_value_heads < of.num_attention_heads
    q, k = (np.asarray(each).astype(np.float64) for each in (attention.q, attention.k))
    scores = q @ k.swapaxes(-1, -2) * attention.scale[:, None, None, None]
    np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
