"""Edits: each by the law that it must obey."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch
from edited import OTHER, TEXT, last, recorded
from test_transformer import copied, seeded
from tolerances import PASSED, STORED, SUMMED
from torch import nn

from models.contract.edits import (
    Edit,
    HideToken,
    MeanHead,
    MoveNorm,
    OtherPositions,
    PatchHead,
    PatchSite,
    ScaledBy,
    ShiftPositions,
    ShufflePositions,
    UniformHead,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutScale,
)
from models.network import own_model
from models.network.attention import KVCache
from models.network.config import Config
from models.network.embedding import sinusoids
from models.network.transformer import Decoder, Encoder


def own_label(model: own_model.OwnModel) -> str:
    return "decoder self" if model.card.kind == "encoder-decoder" else "self"


def test_the_scale_is_one_divisor_of_many(model: own_model.OwnModel) -> None:
    usual = ScaledBy(sqrt(model.card.d_head))
    np.testing.assert_array_equal(last(recorded(model, usual)), last(recorded(model)))
    none, one = (last(recorded(model, each)) for each in (WithoutScale(), ScaledBy(1.0)))
    np.testing.assert_array_equal(one, none)
    for scaled in recorded(model, ScaledBy(3.0, 0)).attention:
        products = np.einsum("hqd,hkd->hqk", scaled.q[0], scaled.k[0])
        np.testing.assert_allclose(scaled.scores[0] * 3, products, atol=SUMMED)


def test_a_head_made_even_a_head_made_its_mean(model: own_model.OwnModel) -> None:
    label = own_label(model)
    plain, even, mean = (
        recorded(model, *asked)
        for asked in ((), (UniformHead(1, 2, label),), (MeanHead(1, 2, label),))
    )
    one, before = (
        next(each for each in run.attention if each.name == label) for run in (even, plain)
    )
    uniform = one.allowed[0] / one.allowed[0].sum(-1, keepdims=True)
    np.testing.assert_allclose(one.pattern[1, 2], uniform, atol=STORED)
    np.testing.assert_array_equal(
        np.delete(one.pattern[1], 2, 0), np.delete(before.pattern[1], 2, 0)
    )
    # What the head writes is now the same at every token: W_O of the mean of z.
    w_o, _ = model.outputs()[label]
    z = before.pattern[1, 2] @ before.v[1, 2]
    changed = mean.streams[-1].at("1.attn.wrote") - plain.streams[-1].at("1.attn.wrote")
    np.testing.assert_allclose(changed, (z.mean(0) - z) @ w_o[1, 2], atol=SUMMED)


def test_a_mask_put_on_and_taken_off(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    one = recorded(small_model, WithMask())
    assert (
        not one.attention[0].pattern[..., ~np.tril(np.ones_like(one.attention[0].allowed[0]))].any()
    )
    n = len(small_model.tokenizer.ids([TEXT])[0])
    later = recorded(small_model, WithMask(), text=TEXT + " and the dog").streams[0]
    np.testing.assert_allclose(
        later.resid[:, : n + 1], one.streams[0].resid[:, : n + 1], atol=SUMMED
    )
    made, plain = recorded(small_decoder, WithoutMask()), recorded(small_decoder)
    free = made.attention[0]
    assert free.allowed[0].all()
    assert (free.pattern[..., np.triu(np.ones_like(free.allowed[0]), 1)] > 0).all()
    assert np.abs(last(made)[0] - last(plain)[0]).max() > 1e-3


@pytest.mark.parametrize("size", [1, 3])
def test_in_a_window_tokens_see_those_near_them(model: own_model.OwnModel, size: int) -> None:
    """And nothing that lies further off than as many windows as there are layers moves a token."""
    plain, made = recorded(model), recorded(model, Window(size))
    wide = recorded(model, Window(model.card.n_positions))
    for near, full, whole in zip(made.attention, plain.attention, wide.attention):
        rows, keys = np.indices(near.allowed[0].shape)
        # Another text is seen whole.
        within = abs(rows - keys) < (size if near.query == near.key else np.inf)
        assert (near.allowed[0] == full.allowed[0] & within).all()
        assert (near.pattern[..., near.allowed[0]] > 0).all()
        np.testing.assert_allclose(whole.pattern, full.pattern, atol=SUMMED)
    longer = recorded(model, Window(size), text=TEXT + " and the dog").streams[0].resid
    before = made.streams[0].resid
    # A special token may stand at the end.
    untouched = before.shape[1] - 1 - (size - 1) * model.card.n_layer
    np.testing.assert_allclose(longer[:, :untouched], before[:, :untouched], atol=SUMMED)
    with pytest.raises(ValueError, match="1 token or more"):
        recorded(model, Window(0))


def test_a_decoder_with_a_window_writes_as_it_reads(small_decoder: own_model.OwnModel) -> None:
    """Its own window may be made narrower or wider, and what was stored is seen through it."""
    model = Decoder(replace(small_decoder.network.config, window=2)).eval()
    model.load_state_dict(small_decoder.network.state_dict())
    other = own_model.from_network(model, small_decoder.tokenizer, "narrow", "")
    for asked, size in (((), 2), ((Window(5),), 5)):
        one, two = recorded(other, *asked), recorded(small_decoder, Window(size))
        np.testing.assert_allclose(one.streams[0].resid, two.streams[0].resid, atol=SUMMED)
    ids, stored = torch.tensor(recorded(other).streams[0].ids)[None], KVCache()
    steps = [model(ids[:, at : at + 1], stored=stored)[0, 0] for at in range(ids.shape[1])]
    np.testing.assert_allclose(torch.stack(steps).detach(), last(recorded(other)), atol=SUMMED)


def test_positions_shuffled_shifted_and_of_another_kind(small_model: own_model.OwnModel) -> None:
    table = sinusoids(64, small_model.card.d_model).numpy()

    def added(*asked: Edit) -> np.ndarray:
        return recorded(small_model, *asked).streams[0].at("pos.wrote")

    plain, shuffled, random = added(), added(ShufflePositions(3)), added(OtherPositions("random"))
    np.testing.assert_array_equal(added(ShiftPositions(5)), table[5 : len(plain) + 5])
    assert not np.array_equal(shuffled, plain)
    np.testing.assert_array_equal(shuffled[np.lexsort(shuffled.T)], plain[np.lexsort(plain.T)])
    # Random vectors of as many numbers: their mean length is drawn.
    lengths = [np.linalg.norm(each, axis=1).mean() for each in (random, table)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.2)
    for kind in ("rotary", "distance"):
        assert "pos.wrote" not in recorded(small_model, OtherPositions(kind)).streams[0].sites


@pytest.mark.parametrize("kind", ["rotary", "distance"])
def test_relative_positions_know_the_distance_alone(
    small_model: own_model.OwnModel, kind: str
) -> None:
    """The same word everywhere: a score may depend on key minus query and on nothing else."""
    recording = recorded(small_model, OtherPositions(kind), text="the the the the the the the the")
    scores = recording.attention[0].scores[0][:, 1:-1, 1:-1]
    for distance in range(-5, 6):
        each = np.stack([np.diagonal(head, distance) for head in scores])
        np.testing.assert_allclose(each, np.broadcast_to(each[:, :1], each.shape), atol=PASSED)
    assert np.ptp(scores, axis=(1, 2)).min() > 1e-3


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["rotary", "distance", "sinusoids", "random"])
def test_other_positions_with_stored_keys_equal_the_whole_pass(
    small_decoder: own_model.OwnModel, kind: str
) -> None:
    model, stored, how = small_decoder.network, KVCache(), {"edits": (OtherPositions(kind),)}
    ids = torch.tensor([[3, 9, 4, 4, 17, 30]])
    steps = [model(ids[:, at : at + 1], **how, stored=stored) for at in range(6)]
    torch.testing.assert_close(torch.cat(steps, dim=1), model(ids, **how), atol=SUMMED, rtol=0)


def test_without_an_ffn_it_writes_nothing(model: own_model.OwnModel) -> None:
    stream = recorded(model, WithoutFeedForward(0)).streams[-1]
    assert not stream.at("0.ffn.wrote").any() and stream.at("1.ffn.wrote").any()


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_pre_norm_equals_torch(activation: str) -> None:
    """Built as pre-LN, and post-LN moved by an edit: both are torch's norm_first stack."""
    config = Config(50, 24, 2, 4, 40, 32, norm="pre", activation=activation)
    pre = seeded(Encoder(config))
    post = Encoder(replace(config, norm="post")).eval()
    post.load_state_dict(pre.state_dict(), strict=False)
    how = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": True}
    layers = [copied(ours, nn.TransformerEncoderLayer(24, 4, 40, **how)) for ours in pre.layers]
    ids = torch.tensor([[3, 14, 15, 9, 2, 6]])
    with torch.no_grad():
        x = pre.embedding(ids, None, lambda *_: None, ())
        for layer in layers:
            x = layer(x)
        for made, expected in (
            (pre(ids), pre.last_norm.norm(x)),
            (post(ids, edits=(MoveNorm("pre"),)), torch.nn.functional.layer_norm(x, (24,))),
            # And back: post-LN by an edit is the model built so.
            (pre(ids, edits=(MoveNorm("post"),)), post(ids)),
        ):
            torch.testing.assert_close(made, expected, atol=SUMMED, rtol=0)


def test_learned_positions_segments_and_embedding_norm_are_sites() -> None:
    more = {"positions": "learned", "embedding_norm": True, "segment": True}
    config = Config(50, 24, 1, 4, 40, 32, **more, scaled_embedding=False, readout="transform")
    model, seen = seeded(Encoder(config)), {}
    embedding = model.embedding
    with torch.no_grad():
        model(torch.tensor([[3, 3, 9]]), tape=lambda name, x: seen.setdefault(name, x))
        for site, expected in (
            ("embed", (embedding.token.weight[[3, 3, 9]] + embedding.segment)[None]),
            ("pos.wrote", embedding.position[:3]),
            ("embed.normed", embedding.norm(seen["embed"] + seen["pos.wrote"])),
        ):
            torch.testing.assert_close(seen[site], expected)
        assert model.logits(seen["0.ffn.normed"]).shape == (1, 3, 50)


# ---- patches -----------------------------------------------------------------


def test_a_whole_site_of_another_text_makes_its_run(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    for model in (small_model, small_decoder):
        donor = recorded(model, text=OTHER)
        assert len(donor.streams[0].tokens) == len(recorded(model).streams[0].tokens)
        for site in ("embed+pos", "1.attn.normed", "2.ffn.normed"):
            np.testing.assert_allclose(
                last(recorded(model, PatchSite(OTHER, site))), last(donor), atol=SUMMED
            )


def test_a_patch_of_one_token_and_of_one_head(model: own_model.OwnModel) -> None:
    plain, label = recorded(model), own_label(model)
    patched = recorded(model, PatchSite(OTHER, "0.ffn.normed", 2)).streams[0]
    before = plain.streams[0].at("0.ffn.normed")
    changed = np.abs(patched.at("0.ffn.normed") - before).max(-1)
    assert changed[2] > 0 and not np.delete(changed, 2).any()
    if model.card.kind != "encoder-decoder":  # whose donor is read with its own target
        own_text = recorded(model, PatchHead(TEXT, 1, 3, label))
        np.testing.assert_allclose(last(own_text), last(plain), atol=SUMMED)
    one = recorded(model, PatchHead(OTHER, 1, 3, label)).streams[-1]
    moved = one.at("1.attn.wrote") - plain.streams[-1].at("1.attn.wrote")
    assert np.abs(moved).max() > 1e-3
    # It writes where head 3 can write.
    w_o = model.outputs()[label][0][1, 3].T
    inside = np.linalg.lstsq(w_o, moved.T, rcond=None)[0]
    np.testing.assert_allclose(w_o @ inside, moved.T, atol=PASSED)


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["small_model", "small_translator", "small_gpt2"])
def test_a_sweep_is_one_record_after_the_other(kind: str, request: pytest.FixtureRequest) -> None:
    model: own_model.OwnModel = request.getfixturevalue(kind)
    label, plain = own_label(model), model.record(TEXT)
    stream, last_stream = plain.streams[0].name, plain.streams[-1]
    two = len(plain.streams) == 2
    target = tuple(int(each) for each in last_stream.ids[1:]) if two else None

    def difference(*asked: PatchHead | PatchSite) -> float:
        made = model.record(TEXT, asked, target)
        logits = model.logits(made, last_stream.name, 1)
        return float(logits[11] - logits[7])

    heads = model.patch_heads(TEXT, OTHER, label, 1, 11, 7)
    found = {effect.place: effect.value for effect in heads.effects}
    assert len(found) == heads.places == 12
    assert heads.clean == pytest.approx(difference(), abs=PASSED)
    for place in ((0, 1), (2, 3)):
        patched = difference(PatchHead(OTHER, *place, label))
        assert found[place] == pytest.approx(patched, abs=PASSED)
    sites = model.patch_sites(TEXT, OTHER, stream, 1, 11, 7)
    found = {effect.place: effect.value for effect in sites.effects}
    assert len(found) == sites.places
    site = "1.attn.normed" if "1.attn.normed" in plain.streams[0].sites else "1.attn.sum"
    patched = difference(PatchSite(OTHER, site, 2, stream))
    assert found[site, 2] == pytest.approx(patched, abs=PASSED)
    if not two:
        assert found[last_stream.sites[-1], 1] == pytest.approx(sites.donor, abs=PASSED)


def test_a_patch_from_a_shorter_sentence_hides_what_both_have(
    small_model: own_model.OwnModel,
) -> None:
    """The lending text has no such token, so it is read as it is; one that it has is hidden there
    too."""
    text, donor = "the cat sat on the mat and the dog ran", "the dog"
    n = len(recorded(small_model, text=text).streams[0].tokens)
    asked = (PatchHead(donor, 1, 2), HideToken(n - 2))
    made = recorded(small_model, *asked, text=text)
    assert made.edits == asked and made.streams[0].tokens[n - 2] == "[MASK]"

    def lent(*asked: PatchHead | HideToken) -> torch.Tensor:
        return own_model.activations(small_model, donor, asked)["encoder"]["1.attn.z"]

    assert torch.equal(lent(*asked), lent()) and not torch.equal(lent(HideToken(1)), lent())
    with pytest.raises(ValueError, match="names no token"):
        recorded(small_model, HideToken(n - 2), text=donor)
