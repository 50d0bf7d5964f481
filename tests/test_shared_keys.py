"""Heads that share keys and values: by an edit, and in a model that was built so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from bounds import PASSED, SUMMED, TOTAL
from conftest import SMALL, sharpened
from edited import OTHER, TEXT, last, recorded

from explorer.analysis import right
from models import library, own
from models.attention import Stored
from models.edits import OtherPositions, PatchHead, SharedKeys, ZeroHead, groups_of
from models.transformer import Decoder

HEADS = SMALL.n_head


def built(handle: own.Handle, groups: int) -> own.Handle:
    """A model with shared keys whose W_K and W_V are the means of another's, group by group."""
    config = handle.model.config
    made = type(handle.model)(replace(config, n_key_head=groups))
    tensors = dict(handle.model.state_dict())
    for name, tensor in tensors.items():
        if ".w_k." in name or ".w_v." in name:
            heads = tensor.unflatten(0, (groups, HEADS // groups, config.d_head))
            tensors[name] = heads.mean(dim=1).flatten(0, 1)
    made.load_state_dict(tensors)
    return own.handle_of(made.eval(), handle.tokenizer, f"{groups} key heads", "", "fp32")


def test_groups_are_of_one_size() -> None:
    assert groups_of(12) == (1, 2, 3, 4, 6, 12) and groups_of(7) == (1, 7) and groups_of(1) == (1,)


def test_as_many_groups_as_heads_change_nothing(handle: own.Handle) -> None:
    plain, made = recorded(handle), recorded(handle, SharedKeys(HEADS))
    assert replace(made, edits=()) == plain


@pytest.mark.parametrize("groups", [1, 2])
def test_the_heads_of_a_group_read_the_mean_of_their_keys(handle: own.Handle, groups: int) -> None:
    """In the first layer of a stream, which reads what it reads in the model as it is; and all
    heads keep their queries."""
    plain, made = recorded(handle), recorded(handle, SharedKeys(groups))
    each = HEADS // groups
    for one, other in zip(plain.attention, made.attention):
        for shared in (np.asarray(other.k), np.asarray(other.v)):
            for head in range(HEADS):
                np.testing.assert_array_equal(shared[:, head], shared[:, head // each * each])
        assert len({weights.tobytes() for weights in other.pattern[0]}) == HEADS
        if one.name == "cross":  # reads what earlier layers have changed
            continue
        np.testing.assert_array_equal(one.q[0], other.q[0])
        for name in "kv":
            heads = getattr(one, name)[0]
            mean = heads.reshape(groups, each, *heads.shape[1:]).mean(axis=1)
            np.testing.assert_allclose(getattr(other, name)[0][::each], mean, atol=SUMMED)
    assert np.abs(last(made) - last(plain)).max() > TOTAL


@pytest.mark.parametrize("groups", [1, 2])
def test_an_edit_gives_what_a_model_with_the_mean_weights_is(
    handle: own.Handle, groups: int
) -> None:
    """Its recording, its answer, and a run with heads silenced and patched."""
    other = built(handle, groups)
    label = recorded(handle).attention[0].name
    for more in ((), (ZeroHead(1, 2, label), PatchHead(OTHER, 0, 1, label))):
        one, two = recorded(handle, SharedKeys(groups), *more), recorded(other, *more)
        for a, b in zip(one.attention, two.attention):
            for name in ("q", "k", "v", "scores", "pattern"):
                np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=PASSED)
        for a, b in zip(one.streams, two.streams):
            assert a.sites == b.sites
            np.testing.assert_allclose(a.resid, b.resid, atol=PASSED)
    said, says = library.record(handle, TEXT, (SharedKeys(groups),)), library.record(other, TEXT)
    np.testing.assert_array_equal(said.streams[-1].ids, says.streams[-1].ids)


@pytest.mark.parametrize(
    "change",
    [{"positions": "rotary"}, {"key_norm": True, "positions": "rotary"}, {"bias_qkv": False}],
    ids=["turned", "normed", "no biases"],
)
def test_the_mean_is_taken_before_keys_are_normed_and_turned(
    small_decoder: own.Handle, change: dict
) -> None:
    torch.manual_seed(3)
    model = sharpened(Decoder(replace(SMALL, norm="pre", **change)))
    handle = own.handle_of(model, small_decoder.tokenizer, "of today", "", "fp32")
    for more in ((), (OtherPositions("rotary"),)):
        one, two = recorded(handle, SharedKeys(2), *more), recorded(built(handle, 2), *more)
        np.testing.assert_allclose(one.streams[0].resid, two.streams[0].resid, atol=PASSED)


def test_the_laws_of_a_recording_hold(handle: own.Handle) -> None:
    """q . k makes the scores, weights x V is what is written, and a logit is the sum of parts."""
    made = recorded(handle, SharedKeys(2))
    norms = {stream.name: library.norms(handle, stream.name, made.edits) for stream in made.streams}
    checks = right.checks(made, library.outputs(handle), norms)
    assert len(checks) > 3 and all(check.holds for check in checks)
    stream = made.streams[-1].name
    parts = library.attribute(handle, made, stream, 2, 7)
    total = sum(part.value for part in parts.parts)
    assert total == pytest.approx(library.logits(handle, made, stream, 2)[7], abs=TOTAL)


def test_while_writing_less_is_stored_and_read_all_the_same(small_decoder: own.Handle) -> None:
    model, whole = small_decoder.model, recorded(small_decoder, SharedKeys(2))
    ids, stored, full = torch.tensor([whole.streams[0].ids.tolist()]), Stored(), Stored()
    with torch.inference_mode():
        steps = [
            model(ids[:, at : at + 1], edits=(SharedKeys(2),), stored=stored)[0, 0]
            for at in range(ids.shape[1])
        ]
        model(ids, stored=full)
    np.testing.assert_allclose(torch.stack(steps), last(whole), atol=PASSED)
    assert (stored.n_head, full.n_head) == (2, HEADS)
    assert stored.nbytes * HEADS == full.nbytes * 2


def test_what_cannot_be_shared_is_said(small_handle: own.Handle, small_decoder: own.Handle) -> None:
    for groups in (0, -1, 3, HEADS + 1, 10**12):
        with pytest.raises(ValueError, match="4 heads of small can be put in 1, 2, 4 groups of on"):
            recorded(small_handle, SharedKeys(groups))
    with pytest.raises(ValueError, match="groups must be a whole number"):
        recorded(small_handle, SharedKeys(2.0))  # type: ignore[arg-type]
    for groups in (1, 2, 3):
        with pytest.raises(ValueError, match="4 heads of 2 key heads share 2 heads’ keys"):
            recorded(built(small_decoder, 2), SharedKeys(groups))
