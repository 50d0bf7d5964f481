"""Hugging Face models in their own code: the Recording says what the model computes, and its laws
hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tiny
import torch
from conftest import AWKWARD
from in_own_code import PROJECTIONS, oracle, recorded
from tolerances import PASSED, SUMMED

from models.contract import edits
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz
from models.pretrained import hf_source, weight_conversion
from models.pretrained.hf_model import HFModel

pytestmark = [pytest.mark.slow, pytest.mark.parity]


OPEN = [family.model_type for family in weight_conversion.SUPPORTED_FAMILIES if family.opens]


FAMILY = {family.model_type: family for family in weight_conversion.SUPPORTED_FAMILIES}


@pytest.fixture(params=tiny.MODELS)
def model(request: pytest.FixtureRequest, tiny_loaded: Callable[[str], HFModel]) -> HFModel:
    return tiny_loaded(request.param)


# ---- what is recorded is what the model computes -----------------------------


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_patterns_states_and_logits_are_those_of_the_models_own_eager_code(
    kind: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    model, recording = tiny_loaded(kind), recorded(tiny_loaded(kind))
    _, true = oracle(tiny_folder(kind), recording)
    for attention in recording.attention:
        place, _, own = attention.name.partition(" ")
        name = "cross_attentions" if place == "cross" else f"{place}_attentions"
        patterns = true[name if own or place == "cross" else "attentions"]
        np.testing.assert_allclose(attention.pattern, torch.cat(patterns).numpy(), atol=SUMMED)
    for stream in recording.streams:
        one = len(recording.streams) == 1
        states = true["hidden_states" if one else f"{stream.name}_hidden_states"]
        sites = [
            [each for each in ("embed", "embed+pos", "embed.normed") if each in stream.sites][-1]
        ]
        for layer in range(len(states) - 1):
            normed = f"{layer}.ffn.normed"
            sites.append(normed if normed in stream.sites else f"{layer}.ffn.sum")
        if "final.normed" in stream.sites:
            sites[-1] = "final.normed"
        for site, state in zip(sites, states, strict=True):
            np.testing.assert_allclose(stream.at(site), state[0].numpy(), atol=PASSED, err_msg=site)
    read = recording.streams[-1]
    for token in (0, 3, len(read.tokens) - 1):
        logits = hf_source.logits(model, recording, read.name, token)
        np.testing.assert_allclose(logits, true.logits[0, token].numpy(), atol=PASSED)


def test_before_plus_wrote_is_what_stands_next(model: HFModel) -> None:
    recording, offered = recorded(model), hf_source.capabilities(model)
    for stream in recording.streams:
        assert stream.sites == offered.sites[stream.name]
        written = set()
        for before, wrote, after in stream.writes():
            expected = stream.at(before) + stream.at(wrote)
            np.testing.assert_allclose(expected, stream.at(after), atol=SUMMED)
            if wrote == "pos.wrote":
                assert after == "embed+pos"
            else:
                assert after == wrote.removesuffix("wrote") + "sum"
                written.add(wrote)
        last = stream is recording.streams[-1]
        layers = range(len(recording.attention[-1 if last else 0].pattern))
        places = ["attn", "ffn", *(["cross"] if last and len(recording.streams) == 2 else [])]
        every = {f"{layer}.{place}.wrote" for layer in layers for place in places}
        # Parts that a family computes side by side are left out.
        assert written == (every if offered.law else set())


@pytest.mark.parametrize("kind", OPEN)
def test_any_cell_recomputes_from_the_recording_and_what_is_offered_of_the_scale(
    kind: str, tiny_loaded: Callable
) -> None:
    recording, offered = recorded(tiny_loaded(kind)), hf_source.capabilities(tiny_loaded(kind))
    for attention in recording.attention:
        assert attention.opens
        scores = np.einsum("lhqd,lhkd->lhqk", attention.q, attention.k) * offered.scale
        if softcap := getattr(tiny_loaded(kind).network.config, "attn_logit_softcapping", None):
            scores = softcap * np.tanh(scores / softcap)
            np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
        elif attention.name == "cross" or not offered.biased:
            np.testing.assert_allclose(attention.scores, scores, atol=SUMMED)
        else:  # T5's bias is the same for equal distances
            bias = attention.scores - scores
            np.testing.assert_allclose(bias[:, :, 2, 1], bias[:, :, 3, 2], atol=SUMMED)
            assert np.abs(bias).max() > 0.01
        masked = np.where(attention.allowed[:, None], attention.scores, -np.inf)
        weights = np.exp(masked - masked.max(axis=-1, keepdims=True))
        np.testing.assert_allclose(
            attention.pattern, weights / weights.sum(axis=-1, keepdims=True), atol=SUMMED
        )


@pytest.mark.parametrize("kind", PROJECTIONS)
def test_what_the_heads_wrote_is_their_values_through_w_o(
    kind: str, tiny_folder: Callable, tiny_loaded: Callable
) -> None:
    path, name, site = PROJECTIONS[kind]
    recording = recorded(tiny_loaded(kind))
    model, _ = oracle(tiny_folder(kind), recording)
    attention = next(each for each in recording.attention if each.name == name)
    z = np.einsum("hqk,hkd->qhd", attention.pattern[0], attention.v[0])
    with torch.no_grad():
        wrote = model.get_submodule(path)(torch.tensor(z).flatten(1)).numpy()
    np.testing.assert_allclose(wrote, recording.stream(attention.query).at(site), atol=SUMMED)


def windows(model: HFModel) -> list[int | None]:
    """The window of each layer, None for all tokens before."""
    config = model.network.config
    kinds = getattr(config, "layer_types", None) or [""] * model.card.n_layer
    return [config.sliding_window if each == "sliding_attention" else None for each in kinds]


def test_a_recording_keeps_the_contract_and_survives_its_file(model: HFModel) -> None:
    recording, family = recorded(model), FAMILY[model.card.name]
    assert from_npz(to_npz(recording)) == recording
    two = family.kind == "encoder-decoder"
    names = ["encoder self", "decoder self", "cross"] if two else ["self"]
    assert [attention.name for attention in recording.attention] == names
    for attention in recording.attention:
        np.testing.assert_allclose(attention.pattern.sum(axis=-1), 1, atol=SUMMED)
        n_query, n_key = attention.pattern.shape[2:]
        allowed = np.ones((n_query, n_key), dtype=bool)
        triangle = attention.name == "decoder self" or family.kind == "decoder"
        allowed = np.tril(allowed) if triangle else allowed
        for window, mask in zip(windows(model), attention.allowed):
            near = allowed if window is None else np.triu(allowed, 1 - window)
            assert np.array_equal(mask, near)
        assert attention.opens == family.opens
        layers, d_head = (len(attention.pattern), model.card.d_head) if family.opens else (0, 0)
        assert attention.q.shape == (layers, 4, n_query, d_head)
        assert attention.scores.shape == (layers, 4, n_query, n_key)
        if family.opens:
            assert attention.k.shape == attention.v.shape == (layers, 4, n_key, d_head)


def test_the_table_of_families_tells_the_truth(model: HFModel) -> None:
    family, offered = FAMILY[model.card.name], hf_source.capabilities(model)
    for name in ("kind", "norm", "positions", "opens", "law"):
        assert getattr(offered, name) == getattr(family, name), name
    assert offered.logits == ("encoder" if family.kind == "encoder" else "decoder")
    assert model.card.kind == family.kind
    assert (edits.ZeroHead in offered.edits) == family.opens
    assert (edits.HideToken in offered.edits) == (family.kind == "encoder")


def test_every_family_in_the_table_is_tried() -> None:
    assert list(FAMILY) == list(tiny.MODELS)


# ---- tokens ------------------------------------------------------------------


def read(model: HFModel, text: str) -> Recording:
    """A recording of a text, with an empty target where the model reads one."""
    return hf_source.record(model, text, target="" if model.start is not None else None)


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
@pytest.mark.parametrize("kind", ["bert", "gpt2", "t5"])
def test_any_text_is_recorded(kind: str, text: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    recording = hf_source.record(model, text, target="the dog" if kind == "t5" else None)
    assert 1 <= len(recording.streams[0].tokens) <= model.card.n_positions
    assert from_npz(to_npz(recording)) == recording
    joined = "\u200d"  # between emoji
    assert all(each.replace(joined, "").isprintable() for each in recording.streams[0].tokens)
    assert all(recording.streams[0].tokens)


def test_a_long_text_is_cut_and_says_by_how_much(model: HFModel) -> None:
    recording, short = read(model, "the cat " * 400), read(model, "the cat").streams[0]
    stream = recording.streams[0]
    assert len(stream.tokens) == model.card.n_positions <= 512
    assert recording.dropped > 0
    assert int((~stream.special).sum()) + recording.dropped >= 800
    assert stream.special[-1] == short.special[-1] and stream.special[0] == short.special[0]


@pytest.mark.parametrize(
    ("kind", "pieces", "labels"),
    [
        ("bert", ["[CLS]", "cat", "##s"], ["[CLS]", "cat", "‧s"]),
        ("gpt2", ["Ġcat", "a", "Ġ", "ð"], ["cat", "‧a", "␣", "‹F0›"]),
        ("t5", ["▁cat", "a", "<0xF0>"], ["cat", "‧a", "‹F0›"]),
    ],
)
def test_words_of_the_vocabulary_are_readable(
    kind: str, pieces: list[str], labels: list[str], tiny_loaded: Callable
) -> None:
    model = tiny_loaded(kind)
    assert model.labels(map(model.tokenizer.own.convert_tokens_to_ids, pieces)) == labels
    assert all(label and label.isprintable() for label in model.labels(range(model.card.n_vocab)))
