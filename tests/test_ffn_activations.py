"""The neurons of an FFN: what they add makes the FFN's part of the logit, and the page shows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import SMALL, sharpened
from tolerances import DOUBLE_LONG, PASSED, SUMMED

from models.contract import edits
from models.network import own_model
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Decoder, EncoderDecoder

TEXT = "the cat sat on the mat"
KINDS = ["small_model", "small_decoder", "small_translator", "small_gpt2"]


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> OwnModel:
    return request.getfixturevalue(request.param)


def test_each_neuron_adds_its_activation_times_the_gradient_with_every_sigma_held(
    model: OwnModel,
) -> None:
    """Automatic differentiation of the rest of the way, written out: the stream after the FFN,
    through each LayerNorm with a detached sigma, with what later parts wrote held. With the bias
    they are the FFN's part of the logit."""
    recording = own_model.record(model, TEXT)
    stream, token, word, layer = recording.streams[-1], 1, 11, 1
    network = model.network
    layers = network.decoder if isinstance(network, EncoderDecoder) else network.layers
    found = model.neurons(recording, stream.name, layer, token, word)
    parts = model.attribute(recording, stream.name, token, word).parts
    (part,) = (each.value for each in parts if (each.kind, each.layer) == ("ffn", layer))
    assert found.part == pytest.approx(part, abs=DOUBLE_LONG)
    assert found.adds.sum() + found.bias == pytest.approx(part, abs=PASSED)
    assert np.all(np.diff(np.abs(found.adds[found.strongest])) <= 0)
    np.testing.assert_array_equal(found.fires[:, token], found.activation[found.strongest])
    hidden = torch.tensor(found.activation, requires_grad=True)

    def normed(norm: torch.nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
        sigma = (x.var(unbiased=False) + norm.eps).sqrt().detach()
        return (x - x.mean()) / sigma * norm.weight.double() + norm.bias.double()

    def vector(site: str) -> torch.Tensor:
        return torch.tensor(stream.at(site)[token]).double()

    w_2 = layers[layer].feed_forward.w_2
    place = "cross" if isinstance(network, EncoderDecoder) else "attn"
    state = f"{layer}.{place}.{'sum' if network.config.norm == 'pre' else 'normed'}"
    x = vector(state) + hidden @ w_2.weight.T.double() + w_2.bias.double()
    for site in stream.sites[stream.sites.index(f"{layer}.ffn.sum") :]:
        at, _, what = site.partition(".")
        if what == "ffn.normed":
            x = normed(layers[int(at)].feed_forward_out.norm, x)
        elif site == "final.normed":
            x = normed(network.last_norm.norm, x)
        elif what.endswith(".normed"):
            out = "cross_out" if what.startswith("cross") else "attention_out"
            x = normed(getattr(layers[int(at)], out).norm, x)
        elif what.endswith(".wrote"):
            x = x + vector(site)
    logit = x @ network.embedding.token.weight.double()[word] + network.readout_bias.double()[word]
    (gradient,) = torch.autograd.grad(logit, hidden)
    assert logit.item() == pytest.approx(
        model.logits(recording, stream.name, token)[word], abs=PASSED
    )
    np.testing.assert_allclose(
        found.adds, (gradient * hidden).detach().numpy(), atol=SUMMED * len(found.adds) ** 0.5
    )


@pytest.mark.slow
def test_what_a_neuron_says_of_other_words_is_what_it_adds_to_each(
    small_decoder: OwnModel,
) -> None:
    torch.manual_seed(3)
    model = sharpened(Decoder(replace(SMALL, norm="pre", activation="silu")))
    loaded_model = from_network(model, small_decoder.tokenizer, "planted", "random", "fp32")
    recording = own_model.record(loaded_model, TEXT)
    found, *others = (
        loaded_model.neurons(recording, "decoder", 0, 3, word)
        for word in (5, *range(loaded_model.card.n_vocab))
    )
    for rank in (0, 3):
        mine = np.array([each.adds[found.strongest[rank]] for each in others])
        best = np.argsort(-mine)
        assert list(found.up_ids[rank]) == list(best[: len(found.up_ids[rank])])
        assert list(found.down_ids[rank]) == list(best[::-1][: len(found.down_ids[rank])])
        np.testing.assert_allclose(found.up[rank], mine[found.up_ids[rank]], atol=SUMMED)


def test_an_ffn_that_is_off_or_replaced_has_no_neurons(small_decoder: OwnModel) -> None:
    for edit, why in (
        (edits.WithoutFeedForward(1), "taken away"),
        (edits.PatchSite("a dog", "1.ffn.wrote"), "put in by an edit"),
        (edits.WithoutResidual(2), "replaces the stream"),
    ):
        recording = own_model.record(small_decoder, TEXT, (edit,))
        with pytest.raises(ValueError, match=why):
            small_decoder.neurons(recording, "decoder", 1, 0, 3)
