"""The residual stream: what was written, how far it turned, and what the output hangs on."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import read_once
from stream_fixtures import streams
from tolerances import DEGREES, DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import consistency, residual
from headlight import Run, panels
from models.contract.edits import WithoutNorm, WithoutResidual, ZeroHead
from models.network.own_model import OwnModel, record
from models.readouts import gradients, weights

LONGER = (
    "The cat sat on the mat"
    + ", and then it looked at the dog that had slept beside the old door" * 3
)


# ---- numbers -----------------------------------------------------------------


def test_before_and_what_was_written_is_after(model: OwnModel, small_gpt2: OwnModel) -> None:
    for _, stream in (*streams(model), *streams(small_gpt2)):
        error, n, largest = residual.residual_error(stream)
        assert error < SUMMED and n == len(stream.writes()) * len(stream.tokens)
        assert largest == np.abs(stream.resid).max()
    for _, stream in streams(model, WithoutResidual()):
        assert residual.residual_error(stream)[0] > 0.1


def test_share_cosine_and_angle_agree_with_the_law_of_cosines(model: OwnModel) -> None:
    for _, stream in streams(model):
        way = residual.token_path(stream, 2)
        x, w, total, cosine, share = (
            np.array(way[name]) for name in ("|before|", "|wrote|", "|sum|", "cosine", "share")
        )
        adding, norm, both = (
            np.array(way[f"turned {how} °"]) for how in ("by adding", "by norm", "in all")
        )
        np.testing.assert_allclose(total**2, x**2 + w**2 + 2 * x * w * cosine, rtol=SUMMED)
        np.testing.assert_allclose(
            np.cos(np.radians(adding)), (x + w * cosine) / total, atol=SUMMED
        )
        np.testing.assert_allclose(share, w / (w + x))
        # Angles obey the triangle inequality.
        assert (abs(adding - norm) - 1e-6 <= both).all() and (both <= adding + norm + 1e-6).all()


COLUMNS = {
    "Rotation angle": "turned by adding °",
    "Share": "share",
    "Cosine": "cosine",
    "Update norm": "|wrote|",
}


def test_the_grids_hold_what_one_token_s_way_says(model: OwnModel) -> None:
    for _, stream in streams(model):
        for measure, name in COLUMNS.items():
            grid = residual.write_grid(stream, measure)
            ways = [residual.token_path(stream, at)[name] for at in range(len(stream.tokens))]
            np.testing.assert_allclose(grid.values, ways)
        norm = residual.write_grid(stream, "State norm")
        assert len(norm.columns) == len(stream.sites) == len({each.name for each in norm.columns})
        turned, grid = residual.rotations(stream, 1), residual.write_grid(stream, "Rotation angle")
        attention = [v for v, c in zip(grid.values[1], grid.columns) if c.label == "attn"]
        assert turned["attention °"] == pytest.approx(attention)
        assert ("cross-attention °" in turned) == any(".cross." in site for site in stream.sites)


def test_a_head_of_a_layer_is_named_by_its_letter() -> None:
    """A layer and a number alone are read as one number."""
    (figure, _) = panels.residual.heads(Run("encoder", "the cat sat")).figures
    assert figure.columns[8:10] == ("L1 H0", "L1 H1")


def test_known_angles() -> None:
    x, y = np.array([3.0, 0.0]), np.array([0.0, 0.5])
    assert residual.degrees(x, y) == pytest.approx(90) and residual.degrees(x, x) == 0
    assert residual.degrees(x, -x) == pytest.approx(180)
    near = residual.degrees(np.array([1.0, 0.0]), np.array([1.0, 1e-9]))
    assert near == pytest.approx(np.degrees(1e-9), rel=STORED), "small angles are not lost"
    assert np.isnan(residual.cosine(x, np.zeros(2))) and np.isnan(residual.degrees(x, np.zeros(2)))


def test_what_stands_after_a_layernorm_recomputes_from_its_sum(model: OwnModel) -> None:
    for _, stream in streams(model):
        norms = weights.norms(model, stream.name)
        assert set(norms) == {each.site for each in residual.sublayers(stream) if each.layer >= 0}
        assert residual.norm_error(stream, norms) < SUMMED
        swapped = {site: (bias, gain, *how) for site, (gain, bias, *how) in norms.items()}
        assert residual.norm_error(stream, swapped) > 0.1, "gain and bias are told apart"
        steps = residual.norm_stages(residual.norm_vectors(stream, norms, "0.attn", 1))
        mean, spread = steps["mean μ"], steps["spread σ"]
        assert mean[1] == pytest.approx(0, abs=STORED) and spread[2] == pytest.approx(1, abs=TOTAL)
        assert mean[-1] == pytest.approx(stream.at("0.attn.normed")[1].mean(), abs=SUMMED)
        after = residual.norm_grid(stream, "Sigma after").values[1, 0]
        assert spread[-1] == pytest.approx(after, abs=SUMMED)
    for _, stream in streams(model, WithoutNorm()):
        assert residual.stream_norms(stream) == () and residual.norm_place(stream) is None


def test_heads_and_bias_sum_to_what_attention_wrote(model: OwnModel) -> None:
    outputs = weights.outputs(model)
    changed = {name: (w, b + 1) for name, (w, b) in outputs.items()}
    name = "decoder self" if model.card.kind == "encoder-decoder" else "self"
    for edits in ((), (ZeroHead(1, 2, name),)):
        for recording, stream in streams(model, *edits):
            assert consistency.heads_error(recording, stream, outputs) < SUMMED
            assert consistency.heads_error(recording, stream, changed) > 0.9
            grid = consistency.head_grid(recording, stream, "Length", outputs)
            own = [each.name for each in recording.attention if each.query == stream.name]
            assert sum(not column.any() for column in grid.values.T) == bool(edits and name in own)


def test_one_head_s_length_by_hand(small_model: OwnModel) -> None:
    recording, stream = streams(small_model)[0]
    outputs, attention = weights.outputs(small_model), recording.attention[0]
    grid = consistency.head_grid(recording, stream, "Length", outputs)
    z, d = attention.pattern[1, 3, 2] @ attention.v[1, 3], recording.model.d_head
    w_o = small_model.network.layers[1].attention.w_o.weight[:, 3 * d : 4 * d].detach().numpy()
    at = [column.name for column in grid.columns].index("layer 1, head 3")
    assert grid.values[2, at] == pytest.approx(np.linalg.norm(w_o @ z), rel=SUMMED)
    shares = consistency.head_grid(recording, stream, "Share of heads", outputs).values
    total = stream.at("1.attn.wrote")[2].astype(float)
    assert shares[2, at] == pytest.approx(w_o @ z @ total / (total @ total), rel=SUMMED)


def test_layernorm_keeps_the_others_and_batchnorm_does_not(small_model: OwnModel) -> None:
    _, stream = streams(small_model)[0]
    changed = residual.norm_change(stream, "1.ffn", 2, 3.0, 1e-5)
    others = np.arange(len(stream.tokens)) != 2
    assert (changed.layer[others] == 0).all() and (changed.batch[others] > 1e-3).all()
    assert changed.layer[2] < TOTAL, "LayerNorm forgets the length"
    same = residual.norm_change(stream, "1.ffn", 2, 1.0, 1e-5)
    assert not same.layer.any() and not same.batch.any()
    x = torch.tensor(stream.at("1.ffn.sum")).double()
    batch = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-5).numpy()
    np.testing.assert_allclose(residual.normalised(x.numpy().T, 1e-5).T, batch, atol=DOUBLE_LONG)
    assert residual.largest_other(np.array([1.0]), 0) is None
    assert residual.largest_other(np.array([1.0, 5.0, 2.0]), 1) == (2, 2.0)


# ---- gradients ---------------------------------------------------------------


def test_the_gradient_is_the_slope_of_the_output(model: OwnModel) -> None:
    recording, stream = streams(model)[-1]
    token = 1
    found = model.gradients(recording, stream.name, token)
    on = found.norm
    # The last state is read by the tied embedding.
    readout = model.network.embedding.token.weight[found.id].detach()
    assert on[-1, token] == pytest.approx(readout.norm().item(), rel=SUMMED)
    assert not np.delete(on[-1], token).any()
    logit = model.logits(recording, stream.name, token)[found.id]
    assert found.logit == pytest.approx(logit, abs=PASSED)
    # The last LayerNorm and FFN by hand: their vector-Jacobian products at the recorded states.
    site = found.sites[-1]
    total = torch.tensor(stream.at(f"{site}.sum")[token]).double().requires_grad_()
    gain, bias, eps, _ = weights.norms(model, stream.name)[site]
    gain, bias = (torch.tensor(each).double() for each in (gain, bias))
    normed = torch.nn.functional.layer_norm(total, total.shape, gain, bias, eps)
    (normed @ readout.double()).backward()
    state = torch.tensor(stream.at(residual.sublayers(stream)[-1].before)[token]).requires_grad_()
    two = model.card.kind == "encoder-decoder"
    layer = (model.network.decoder if two else model.network.layers)[-1]
    (state + layer.feed_forward(state)).backward(total.grad.float())
    assert on[-2, token] == pytest.approx(state.grad.norm().item(), rel=TOTAL)
    for parameter in model.network.parameters():
        parameter.grad = None


def test_no_gradients_are_left_nor_come_from_later_tokens(model: OwnModel) -> None:
    for recording, stream in streams(model):
        norm = model.gradients(recording, stream.name, 2).norm
        if stream.name == "decoder":
            assert not norm[:, 3:].any() and norm[0, :3].all()
        for each in residual.sublayers(stream):
            if each.layer != 1:
                continue
            # The Jacobian of the sum is the identity plus that of the write.
            found = gradients.jacobian(model, recording, stream.name, 1, each.site)
            assert found.error < SUMMED and (np.diff(found.total) <= 0).all()
            assert not np.isclose(found.wrote, found.wrote[0]).all()
    assert all(parameter.grad is None for parameter in model.network.parameters())
    with pytest.raises(ValueError, match="no sub-layer"):
        gradients.jacobian(model, recording, stream.name, 1, "9.attn")


def test_only_the_token_itself_is_differentiated(small_model: OwnModel) -> None:
    recording = record(small_model, LONGER)
    attention = small_model.network.layers[1].attention
    tokens = []

    def seen(_: object, given: tuple[torch.Tensor]) -> None:
        if torch.is_grad_enabled():
            tokens.append(given[0].shape[-2])

    hooks = [each.register_forward_pre_hook(seen) for each in (attention.w_k, attention.w_v)]
    found = gradients.jacobian(small_model, recording, "encoder", 3, "1.attn")
    for hook in hooks:
        hook.remove()
    assert set(tokens) == {1}, "keys and values of the other tokens are held"
    x = torch.tensor(recording.streams[0].at("0.ffn.normed"))

    def plainly(v: torch.Tensor) -> torch.Tensor:
        whole = torch.cat((x[:3], v[None], x[4:]))[None]
        return attention(whole, whole)[0, 3]

    expected = torch.linalg.svdvals(torch.func.jacrev(plainly)(x[3]).detach().double())
    np.testing.assert_allclose(found.wrote, expected, atol=SUMMED)


@pytest.mark.parametrize(
    ("name", "place"), [("induction-no-residual", "post"), ("induction-no-norm", None)]
)
def test_a_model_without_a_part(name: str, place: str | None) -> None:
    model = read_once(name)
    recording = model.record("b a c d b")
    stream, has = recording.streams[0], name == "induction-no-norm"
    assert residual.has_residual(stream) == has and residual.norm_place(stream) == place
    assert bool(residual.stream_norms(stream)) == (place is not None)
    assert ("turned by norm °" in residual.token_path(stream, 1)) == (place is not None)
    found = gradients.jacobian(model, recording, "decoder", 2, "0.ffn")
    assert found.adds == has and np.array_equal(found.wrote, found.total) != has


def test_layernorms_in_front_of_the_sublayers_recompute_too(small_gpt2: OwnModel) -> None:
    ((_, stream),) = streams(small_gpt2)
    norms, sites = weights.norms(small_gpt2, "decoder"), residual.stream_norms(stream)
    assert residual.norm_place(stream) == "pre" and residual.norm_error(stream, norms) < SUMMED
    assert [each.site for each in sites][-2:] == ["2.ffn", "final"]
    assert {each.site for each in sites} == set(norms)


@pytest.mark.parity
@pytest.mark.slow
def test_decay_is_the_same_each_time_starts_alike_and_is_causal() -> None:
    ids = [5, 9, 5, 7, 11, 3, 2, 8]
    first, *_, last = gradients.decay(ids, 2, steps=20)
    again = list(gradients.decay(ids, 2, steps=20))[-1]
    np.testing.assert_array_equal(last.gradient, again.gradient)
    assert first.step == 0 and last.step == 20 and list(last.looks) == [0, 10, 20]
    np.testing.assert_array_equal(first.gradient, last.first)
    assert last.gradient.shape == (3, 8) and last.loss.shape == (3, 3)
    assert (last.loss[:, -1] < last.loss[:, 0]).all()
    # Untrained on 16 symbols: near chance, with what random scores of spread one add.
    assert first.loss[:, 0] == pytest.approx(np.log(16), abs=1.2)
    rnn = last.first[0]
    assert rnn[1] < rnn[0] and residual.step_factor(rnn) < 1, "it falls with distance"
    with pytest.raises(ValueError, match="3 tokens"):
        next(gradients.decay([1, 2, 3], 2))
    assert gradients.longest_lag(2) == 0 and gradients.longest_lag(3) == 1
    assert gradients.symbols([70, 8, 70, 9]).tolist() == [0, 1, 0, 2], "equal tokens are equal"
    assert gradients.symbols(range(40))[16:].max() <= 15


def test_distance_is_counted_from_the_output_back() -> None:
    net = gradients.SmallNetwork("RNN", torch.Generator().manual_seed(1))
    text = gradients.symbols([4, 6, 4, 9, 1])
    found = gradients._by_distance(net, text)
    by_hand = [[] for _ in text]
    for output in range(len(text)):
        x = net.embedding(text).detach().requires_grad_()
        net(x[None])[0, output].max().backward()
        for token in range(output + 1):
            by_hand[output - token].append(x.grad[token].norm().item())
        assert not x.grad[output + 1 :].any()
    np.testing.assert_allclose(found, [np.mean(each) for each in by_hand], rtol=PASSED)


def test_two_vectors_and_their_sum_keep_lengths_and_angles_in_a_plane(model: OwnModel) -> None:
    for _, stream in streams(model):
        for place in residual.sublayers(stream):
            x, f, total = (
                residual.site_vectors(stream, site)[1]
                for site in (place.before, place.wrote, place.total)
            )
            first, last = residual.in_plane(x, total)
            drawn = first, last - first, last  # what is added is drawn from the tip of the state
            for own, arrow in zip((x, f, total), drawn):
                assert np.linalg.norm(arrow) == pytest.approx(np.linalg.norm(own), rel=SUMMED)
            for one, other in ((0, 1), (0, 2), (1, 2)):
                true = residual.degrees((x, f, total)[one], (x, f, total)[other])
                assert residual.degrees(drawn[one], drawn[other]) == pytest.approx(
                    true, abs=DEGREES
                )
    assert residual.in_plane(x, -x)[1] == pytest.approx((-np.linalg.norm(x), 0))
    assert residual.in_plane(0 * x, x)[1] == pytest.approx((0, np.linalg.norm(x)))
