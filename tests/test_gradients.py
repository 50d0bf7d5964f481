"""Gradients of a word's logit at sites and of attention weights, and what patches are estimated to
do by them, against finite differences and torch's own gradients of transformers' code; integrated
gradients from a baseline of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cookbook
import numpy as np
import pytest
import torch
import transformers
from edited import OTHER, TEXT
from in_own_code import TEXT as IN_OWN_CODE
from in_own_code import oracle
from in_own_code import recorded as recorded_by_its_code
from tolerances import DOUBLE_LONG, PASSED, STORED, TOTAL

import headlight
from models.contract import edits
from models.contract.recording import Recording
from models.network import own_model
from models.own import precision

ID, AGAINST = 11, 7
STEP = 1e-5  # of finite differences in 64 bits: the error is about 1e-10
COOKBOOK = (Path(__file__).parent.parent / "docs/cookbook.md").read_text("utf-8")
FAMILIES = ["gpt2", "llama", "bert", "opt", "gpt_neox", "t5"]


def difference(model: own_model.OwnModel, recording: Recording) -> float:
    scores = model.logits(recording, recording.streams[-1].name, -1)
    return float(scores[ID] - scores[AGAINST])


def test_at_every_site_they_are_finite_differences(model: own_model.OwnModel) -> None:
    exact = precision.computing(model, "float64", "cpu")
    first = exact.record(TEXT, target=OTHER if model.card.kind == "encoder-decoder" else None)
    target = tuple(first.streams[-1].ids[1:]) if len(first.streams) > 1 else None
    recording = exact.record(TEXT, target=target)
    rng = np.random.default_rng(1)

    def slope(push: Callable[[float], edits.Edit]) -> float:
        ends = [difference(exact, exact.record(TEXT, push(by), target)) for by in (STEP, -STEP)]
        return (ends[0] - ends[1]) / (2 * STEP)

    for stream in recording.streams:
        found = exact.gradients(
            recording, stream.name, -1, ID, AGAINST, stream.sites, recording.attention[0].name
        )
        assert found.logit == pytest.approx(difference(exact, recording))
        for site in stream.sites:
            along = rng.normal(size=model.card.d_model)
            add = lambda by: edits.AddToSite(by * along, site, 1, stream.name)
            assert found.at(site)[1] @ along == pytest.approx(
                slope(add), abs=DOUBLE_LONG, rel=STORED
            )
        # z = pattern v, so what moves a weight moves z along the key's value
        of = recording.attention[0]
        for layer, head, query, key in ((0, 1, 2, 1), (2, 3, 2, 0)):
            rows = np.zeros((len(recording.stream(of.query).tokens), model.card.d_head))
            rows[query] = np.asarray(of.v)[layer, head, key]
            add = lambda by: edits.AddToHead(by * rows, layer, head, of.name)
            expected = pytest.approx(slope(add), abs=DOUBLE_LONG, rel=STORED)
            assert found.pattern is not None
            assert found.pattern[layer, head, query, key] == expected


@pytest.mark.parametrize("kind", FAMILIES)
def test_they_are_torchs_own_of_transformers_code(
    kind: str, tiny_folder: Callable[[str], Path], tiny_loaded: Callable
) -> None:
    model, network = tiny_loaded(kind), oracle(tiny_folder(kind), recorded_of(tiny_loaded(kind)))[0]
    recording = recorded_of(model)
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if model.start is not None:
        inputs["decoder_input_ids"] = torch.tensor(recording.streams[1].ids)[None]
    output = network(**inputs, output_attentions=True, output_hidden_states=True)
    part = "decoder_" if model.start is not None else ""
    states, weights = output[f"{part}hidden_states"], output[f"{part}attentions"]
    for each in (*states, *weights):
        each.retain_grad()
    (output.logits[0, -1, ID] - output.logits[0, -1, AGAINST]).backward()
    stream = recording.streams[-1]
    attention = next(each for each in recording.attention if each.query == stream.name)
    after = [
        max((site for site in stream.sites if site.startswith(f"{layer}.ffn.")), key=rank(stream))
        for layer in range(len(weights))
    ]
    found = model.gradients(recording, stream.name, -1, ID, AGAINST, after[:-1], attention.name)
    for site, state in zip(after[:-1], states[1:]):
        np.testing.assert_allclose(found.at(site), state.grad[0], atol=PASSED, rtol=TOTAL)
    expected = np.stack([each.grad[0] for each in weights])
    np.testing.assert_allclose(found.pattern, expected, atol=PASSED, rtol=TOTAL)
    assert np.abs(expected).max() > 1e-3 and found.logit == pytest.approx(
        (output.logits[0, -1, ID] - output.logits[0, -1, AGAINST]).item(), abs=PASSED
    )


@pytest.mark.parametrize("kind", [each for each in FAMILIES if each != "t5"])
def test_gradient_times_attention_is_as_chefer_computes_it(
    kind: str, tiny_folder: Callable[[str], Path], tiny_loaded: Callable
) -> None:
    """`generate_relevance` of Chefer et al. 2021 on transformers' own code, and the block of the
    cookbook on that model and on the same weights in our classes."""
    folder = tiny_folder(kind)
    block = next(each for each in cookbook.blocks(COOKBOOK) if "relevance = np.eye" in each)
    for model in (tiny_loaded(kind), headlight.load(f"ours:{folder}")):
        recording = recorded_of(model) if model.name == kind else model.record(IN_OWN_CODE)
        ids = recording.streams[0].ids.tolist()
        network = oracle(folder, recording)[0]
        output = network(torch.tensor(ids)[None], output_attentions=True)
        for weights in output.attentions:
            weights.retain_grad()
        (output.logits[0, -1, ID] - output.logits[0, -1, AGAINST]).backward()
        relevance = torch.eye(len(ids))
        for weights in output.attentions:
            cam = (weights[0] * weights.grad[0]).clamp(min=0).mean(dim=0)
            relevance += torch.matmul(cam, relevance)
        name = recording.streams[-1].name
        made = {"np": np, "decoder": model, "recording": recording, "ids": ids}
        made |= {"stream": name, "he": ID, "she": AGAINST}
        exec(block, made)
        expected = relevance.detach().numpy()
        np.testing.assert_allclose(made["relevance"], expected, atol=PASSED, rtol=TOTAL)
        assert np.abs(expected - np.eye(len(ids))).max() > 1e-3  # the words do move the logit


def recorded_of(model: object) -> Recording:
    return recorded_by_its_code(model)


def rank(stream: object) -> Callable[[str], int]:
    return lambda site: stream.sites.index(site)


def test_a_frozen_network_is_followed_too() -> None:
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=2, n_head=4, n_embd=32, vocab_size=60)
    own = transformers.GPT2LMHeadModel(config)
    both = []
    for frozen in (False, True):
        model = headlight.wrap(own.requires_grad_(not frozen))
        recording = model.record([3, 14, 15, 42])
        both.append(model.gradients(recording, "decoder", -1, 5, sites="1.ffn.sum").at("1.ffn.sum"))
    np.testing.assert_array_equal(*both)
    assert not own.transformer.wte._forward_hooks or len(own.transformer.wte._forward_hooks) == 1


def test_what_is_not_there_or_not_asked_for_is_said(small_decoder: own_model.OwnModel) -> None:
    recording = small_decoder.record(TEXT)
    with pytest.raises(ValueError, match="no site '9.ffn.sum'; the nearest is"):
        small_decoder.gradients(recording, "decoder", -1, sites=["9.ffn.sum"])
    with pytest.raises(ValueError, match="no attention 'cross'; there is self"):
        small_decoder.gradients(recording, "decoder", -1, attention="cross")
    with pytest.raises(ValueError, match="asked for at none, and not at 'embed'; pass sites"):
        small_decoder.gradients(recording, "decoder", -1).at("embed")


# ---- attribution patching ----------------------------------------------------


def sweeps(model: object, text: str, donor: str) -> list:
    recording = model.record(text)
    stream = recording.streams[-1].name
    attention = next(each.name for each in recording.attention if each.query == stream)
    return [
        model.patch_sites(text, donor, stream, -1, ID, AGAINST),
        model.patch_heads(text, donor, attention, -1, ID, AGAINST),
    ]


def expect_estimates(model: object, text: str, donor: str, linear: bool = True) -> None:
    """By the gradients and both recordings; without an error where all after a place is linear."""
    sites, heads = sweeps(model, text, donor)
    here, there = model.record(text), model.record(donor)
    stream, other = here.streams[-1], there.streams[-1]
    slopes = model.gradients(here, stream.name, -1, ID, AGAINST, sites.rows)
    for effect in sites.estimated.effects:
        site, token = effect.place
        moved = other.at(site)[token] - stream.at(site)[token]
        expected = sites.clean + slopes.at(site)[token] @ moved
        assert effect.value == pytest.approx(expected, abs=10 * PASSED, rel=TOTAL)
    last = sites.only(rows=sites.rows[-1:])
    for true, estimate in zip(last.effects, last.estimated.effects) if linear else ():
        assert true.place == estimate.place
        assert true.value == pytest.approx(estimate.value, abs=10 * PASSED)
    for sweep in sweeps(model, text, text):
        values = [each.value for each in sweep.estimated.effects]
        np.testing.assert_allclose(values, sweep.clean, atol=PASSED)
    true, estimate = ([each.value for each in each.effects] for each in (heads, heads.estimated))
    assert np.ptp(estimate) > 0 and np.corrcoef(true, estimate)[0, 1] > 0.5


def test_patches_are_estimated_by_gradients(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    for model in (small_model, small_decoder):
        expect_estimates(model, TEXT, "The dog sat on a mat")


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_patches_are_estimated_in_transformers_code(kind: str, tiny_loaded: Callable) -> None:
    expect_estimates(tiny_loaded(kind), "the cat sat", "the dog ran", linear=kind != "bert")


# ---- integrated gradients from a baseline ------------------------------------


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_shares_from_a_baseline_are_the_mean_slopes_along_the_way(
    kind: str, tiny_folder: Callable[[str], Path], tiny_loaded: Callable
) -> None:
    """Of transformers' code in 1000 equal steps, as captum takes them; our classes say the same."""
    model = tiny_loaded(kind)
    recording = model.record("the cat sat")
    begin = model.record("the dog ran")
    ids, first = (torch.tensor(each.streams[0].ids)[None] for each in (recording, begin))
    network = oracle(tiny_folder(kind), recording)[0]
    table = network.get_input_embeddings()
    start, way = table(first).detach(), (table(ids) - table(first)).detach()
    places = (torch.arange(1000) + 0.5) / 1000
    at = (start + places[:, None, None] * way).requires_grad_()
    scores = network(inputs_embeds=at).logits[:, -1]
    (slopes,) = torch.autograd.grad((scores[:, ID] - scores[:, AGAINST]).sum(), at)
    expected = (slopes.mean(0) * way[0]).sum(-1).numpy()
    asked = (recording.streams[0].name, -1, ID, 400, AGAINST, "the dog ran")
    shares = model.integrated_gradients(recording, *asked)
    change = sum(
        sign * np.subtract(*model.logits(each, asked[0], -1)[[ID, AGAINST]])
        for sign, each in ((1, recording), (-1, begin))
    )
    allowed = 0.01 * abs(float(change)) + TOTAL  # what the shares together may miss
    assert shares.sum() == pytest.approx(float(change), abs=allowed)
    np.testing.assert_allclose(shares, expected, atol=allowed)
    own = headlight.load(f"ours:{tiny_folder(kind)}")
    ours = own.integrated_gradients(own.record("the cat sat"), *asked)
    np.testing.assert_allclose(ours, shares, atol=allowed)


def test_a_baseline_is_a_token_a_text_or_ids(model: own_model.OwnModel) -> None:
    """The shares sum to what the words are worth more than the baseline, which is recorded."""
    recording = model.record(TEXT, target=OTHER if model.card.kind == "encoder-decoder" else None)
    stream, target = recording.streams[0], None
    if len(recording.streams) > 1:
        target = tuple(recording.streams[1].ids[1:])
    filled = np.where(stream.special, stream.ids, 9).tolist()
    output = recording.streams[-1].name
    there = model.record(filled, target=target)
    change = sum(
        sign * model.logits(each, output, -1)[ID] for sign, each in ((1, recording), (-1, there))
    )
    for baseline in (9, filled):
        shares = model.integrated_gradients(recording, stream.name, -1, ID, baseline=baseline)
        assert shares.sum() == pytest.approx(change, rel=0.011, abs=TOTAL)  # 1 %, and rounding
        assert not shares[stream.special].any()
    same = model.integrated_gradients(recording, stream.name, -1, ID, baseline=stream.ids.tolist())
    assert not same.any()
    with pytest.raises(ValueError, match="as many tokens as the text"):
        model.integrated_gradients(recording, stream.name, -1, ID, baseline="the")
    if model.tokenizer.mask is None:
        with pytest.raises(ValueError, match=r"has no \[MASK\]; give the id"):
            model.integrated_gradients(recording, stream.name, -1, ID, baseline="[MASK]")
    else:
        masked, ids = (
            model.integrated_gradients(recording, stream.name, -1, ID, baseline=each)
            for each in ("[MASK]", model.tokenizer.mask)
        )
        np.testing.assert_array_equal(masked, ids)
