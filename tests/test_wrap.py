"""Models of one's own in memory: what torch and transformers compute, as recordings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest
import torch
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL
from torch import nn

import headlight
from explorer.panels import attention as attention_panels
from explorer.panels import spec
from models.contract import edits
from models.contract.recording import Recording
from models.inputs import wrap
from models.network.own_model import OwnModel
from models.runtime import host, registry
from models.runtime.caching import loaded

WORDS = "the a cat dog sat ran on mat under house".split()
TEXT = "the cat sat on the mat"
D, HEADS = 16, 4


def layer(**settings) -> nn.TransformerEncoderLayer:
    return nn.TransformerEncoderLayer(D, HEADS, 24, batch_first=True, **settings)


def seeded() -> None:
    torch.manual_seed(5)


def hide_warnings(make: Callable) -> nn.Module:
    seeded()
    return make().eval()


ENCODERS: dict[str, Callable[[], nn.Module]] = {
    "as it comes": lambda: nn.TransformerEncoder(layer(), 3),
    "norm first": lambda: nn.TransformerEncoder(layer(norm_first=True), 2, nn.LayerNorm(D)),
    "norm first, no last": lambda: nn.TransformerEncoder(layer(norm_first=True), 2),
    "post and last": lambda: nn.TransformerEncoder(layer(), 2, nn.LayerNorm(D, eps=1e-3)),
    "gelu, no biases": lambda: nn.TransformerEncoder(layer(activation="gelu", bias=False), 2),
    "one layer": lambda: layer(activation=nn.SiLU(), layer_norm_eps=1e-3),
}


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("kind", ENCODERS)
@pytest.mark.parametrize("causal", [False, True])
def test_an_encoder_of_torch_computes_what_torch_computes(kind: str, causal: bool) -> None:
    module = hide_warnings(ENCODERS[kind])
    vectors = torch.randn(1, 6, D)
    model = headlight.wrap(module, WORDS, causal=causal)
    recording = model.record([0, 2, 4, 6, 0, 7], edits.SetSite(vectors[0], "embed"))
    mask = nn.Transformer.generate_square_subsequent_mask(6) if causal else None
    with torch.no_grad():
        expected = module(vectors, mask)[0]
    np.testing.assert_allclose(recording.streams[0].resid[-1], expected, atol=PASSED)
    assert recording.streams[0].tokens == tuple(TEXT.split())
    first = module.layers[0] if isinstance(module, nn.TransformerEncoder) else module
    read = first.norm1(vectors) if first.norm_first else vectors
    with torch.no_grad():
        _, pattern = first.self_attn(
            read, read, read, attn_mask=mask, need_weights=True, average_attn_weights=False
        )
    np.testing.assert_allclose(recording.attention[0].pattern[0], pattern[0], atol=STORED)
    assert model.shows_writes(recording) and model.capabilities.norm in ("pre", "post")
    assert attention_panels.heads(recording).figures


def test_a_whole_model_of_an_embedding_an_encoder_and_a_readout() -> None:
    seeded()
    embedding, positions = nn.Embedding(len(WORDS), D), nn.Embedding(12, D)
    encoder, head = nn.TransformerEncoder(layer(), 2).eval(), nn.Linear(D, len(WORDS))
    model = headlight.wrap(
        encoder, WORDS, embedding=embedding, positions=positions, readout=head, name="my words"
    )
    recording = headlight.record(model, TEXT)
    ids = torch.tensor([[WORDS.index(word) for word in TEXT.split()]])
    with torch.no_grad():
        logits = head(encoder(embedding(ids) + positions(torch.arange(6))))[0]
    np.testing.assert_allclose(model.logits(recording, "encoder", 3), logits[3], atol=PASSED)
    found = model.attribute(recording, "encoder", 3, 5)
    assert sum(part.value for part in found.parts) == pytest.approx(float(logits[3, 5]), abs=TOTAL)
    assert model.lens(recording, "encoder").top_ids[-1, 3, 0] == logits[3].argmax()
    assert model.name.startswith("mine:my words-") and registry.load(model.name) is model
    off = headlight.record(model, TEXT, edits.ZeroHead(0, 1))
    assert np.abs(off.streams[0].resid[-1] - recording.streams[0].resid[-1]).max() > 1e-3
    with pytest.raises(ValueError, match="'bird' is no word of this vocabulary of 10"):
        headlight.record(model, "the bird")
    for name in spec.panel_names():  # each shows it, or says in a sentence why not
        try:
            panel = spec.PANELS[name](recording)
        except ValueError as why:
            assert str(why)
        else:
            assert panel.title


def test_a_bare_attention() -> None:
    seeded()
    attention = nn.MultiheadAttention(D, HEADS, batch_first=True)
    vectors = torch.randn(1, 5, D)
    model = headlight.wrap(attention, WORDS)
    recording = model.record([0, 2, 4, 6, 7], edits.SetSite(vectors[0], "embed"))
    with torch.no_grad():
        wrote, pattern = attention(
            vectors, vectors, vectors, need_weights=True, average_attn_weights=False
        )
    np.testing.assert_allclose(recording.attention[0].pattern[0], pattern[0], atol=STORED)
    np.testing.assert_allclose(recording.streams[0].at("0.attn.wrote"), wrote[0], atol=SUMMED)
    assert not recording.streams[0].at("0.ffn.wrote").any()


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: nn.MultiheadAttention(D, HEADS, kdim=8, vdim=8), "of another width"),
        (lambda: nn.MultiheadAttention(D, HEADS, add_bias_kv=True), "an added key"),
        (lambda: layer(activation=torch.tanh), "none of relu, gelu and silu"),
    ],
)
def test_what_torch_has_and_we_do_not_is_said(make: Callable, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        headlight.wrap(make(), WORDS)
    with pytest.raises(ValueError, match="the words of the vocabulary, or an embedding"):
        headlight.wrap(layer())
    with pytest.raises(ValueError, match=r"has the shape \(3, 16\); here it must be \(10, 16\)"):
        headlight.wrap(layer(), WORDS, embedding=torch.zeros(3, D))
    with pytest.raises(TypeError, match="Linear is none of them"):
        headlight.wrap(nn.Linear(2, 2), WORDS)


def test_other_weights_have_another_name() -> None:
    seeded()
    module = layer()
    one = headlight.wrap(module, WORDS)
    again = headlight.wrap(module, WORDS)
    with torch.no_grad():
        module.linear1.weight[0, 0] += 1
    other = headlight.wrap(module, WORDS)
    assert one.name == again.name != other.name
    assert one.card.fingerprint == again.card.fingerprint != other.card.fingerprint


def test_equal_weights_in_another_model_or_with_other_words_have_another_name() -> None:
    """Each is found by its own name, and reads as it was wrapped."""
    seeded()
    embedding = nn.Embedding(len(WORDS), D)
    halves = nn.TransformerEncoderLayer(D, HEADS // 2, 24, batch_first=True)
    made = [layer(), halves, layer(activation="gelu"), layer(norm_first=True)]
    for module in made[1:]:
        module.load_state_dict(made[0].state_dict())
    other_words = [each.upper() for each in WORDS]
    models = [headlight.wrap(each, WORDS, embedding=embedding) for each in made]
    models.append(headlight.wrap(made[0], WORDS, embedding=embedding, causal=True))
    models.append(headlight.wrap(made[0], other_words, embedding=embedding))
    assert len({each.name for each in models}) == len(models)
    assert len({each.card.fingerprint for each in models}) == len(models)
    for model in models:
        text = " ".join((other_words if model is models[-1] else WORDS)[:3])
        found, own = loaded(model.name).record(text), model.record(text)
        assert found.streams[0].tokens == own.streams[0].tokens
        assert np.array_equal(found.streams[0].resid, own.streams[0].resid)


def test_a_model_takes_the_place_of_one_of_its_name() -> None:
    one, other = (headlight.wrap(layer(), WORDS) for _ in range(2))
    here = host.Host()
    here.adopt(one)
    here.adopt(again := dataclasses.replace(other, card=one.card))
    assert here.model(one.name) is again


# ---- transformers ------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "t5"])
def test_a_transformers_model_in_memory(kind: str, tiny_folder: Callable) -> None:
    import transformers

    folder = tiny_folder(kind)
    classes = {"bert": "AutoModelForMaskedLM", "t5": "AutoModelForSeq2SeqLM"}
    of = getattr(transformers, classes.get(kind, "AutoModelForCausalLM"))
    own = of.from_pretrained(folder)  # with the attention that transformers chooses
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    target = (7, 8) if kind == "t5" else None
    model = headlight.wrap(own, tokenizer)
    assert model.network is own, "its own object, no copy"
    recording = model.record("the cat sat", (), target)
    expected = registry.load(f"hub:{folder}").record("the cat sat", (), target)
    _alike(recording, expected)
    again = headlight.wrap(own, tokenizer)  # hooks stand there once
    _alike(again.record("the cat sat", (), target), expected)
    inputs = {"input_ids": torch.tensor(recording.streams[0].ids)[None]}
    if target is not None:
        inputs["decoder_input_ids"] = torch.tensor(recording.streams[1].ids)[None]
    with torch.inference_mode():
        logits = own(**inputs).logits[0]
    stream = recording.streams[-1].name
    np.testing.assert_allclose(model.logits(recording, stream, 0), logits[0], atol=TOTAL)
    by_ids = headlight.wrap(own)  # without a tokenizer
    ids = by_ids.record(recording.streams[0].ids, (), target)
    np.testing.assert_array_equal(ids.streams[0].resid, recording.streams[0].resid)
    assert ids.text == " ".join(map(str, recording.streams[0].ids)) and not ids.as_ids
    assert attention_panels.heads(ids).figures


def _alike(one: Recording, other: Recording) -> None:
    for a, b in zip(one.streams, other.streams, strict=True):
        assert (a.tokens, a.sites) == (b.tokens, b.sites)
        np.testing.assert_allclose(a.resid, b.resid, atol=SUMMED)
    for c, d in zip(one.attention, other.attention, strict=True):
        np.testing.assert_allclose(c.pattern, d.pattern, atol=STORED)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_16_bits_are_read_in_32_and_64_are_read_as_they_are(
    tiny_folder: Callable, family: str
) -> None:
    import transformers

    kind = "AutoModelForMaskedLM" if family == "bert" else "AutoModelForCausalLM"
    own = getattr(transformers, kind).from_pretrained(tiny_folder(family))
    plain = headlight.wrap(own).record([5, 6, 7])
    exact = headlight.wrap(own.double()).record([5, 6, 7])
    np.testing.assert_allclose(exact.streams[0].resid, plain.streams[0].resid, atol=SUMMED)
    half = own.bfloat16()
    with pytest.warns(
        headlight.Notice, match="bfloat16: what is read is a copy of them in torch.fl"
    ):
        read = headlight.wrap(half)
    assert next(half.parameters()).dtype == torch.bfloat16, "the caller's own is as it was"
    expected = headlight.wrap(deepcopy(half).float()).record([5, 6, 7])
    np.testing.assert_array_equal(
        read.record([5, 6, 7]).streams[0].resid, expected.streams[0].resid
    )


def test_the_module_is_what_its_name_says() -> None:
    assert headlight.wrap is wrap.wrap and isinstance(headlight.wrap(layer(), WORDS), OwnModel)


# ---- in 64 bits --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_a_model_in_64_bits(name: str) -> None:
    plain, exact = headlight.load(name), headlight.load(name, dtype="float64")
    target = "La voiture" if name == "translator" else None
    one, two = (each.record("The red car is new", (), target) for each in (plain, exact))
    for a, b in zip(one.streams, two.streams, strict=True):
        assert b.resid.dtype == np.float64 and a.tokens == b.tokens
        np.testing.assert_allclose(a.resid, b.resid, atol=TOTAL)
    assert two.attention[0].pattern.dtype == np.float64
    for before, wrote, total in two.streams[-1].writes():
        added = two.streams[-1].at(before) + two.streams[-1].at(wrote)
        np.testing.assert_allclose(added, two.streams[-1].at(total), atol=DOUBLE)
    stream = two.streams[-1].name
    logits = exact.logits(two, stream, 1)
    assert logits.dtype == np.float64
    found = exact.attribute(two, stream, 1, 7)
    assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=DOUBLE_LONG)
    assert exact.lens(two, stream).top_ids[-1, 1, 0] == logits.argmax()
    assert headlight.load(exact.name) is exact and attention_panels.heads(two).figures
    with pytest.raises(ValueError, match="float32 or float64 here, not in bfloat16"):
        headlight.load(name, dtype=torch.bfloat16)


@pytest.mark.slow
def test_a_model_in_its_own_code_in_64_bits(tiny_folder: Callable) -> None:
    name = f"hub:{tiny_folder('llama')}"
    plain, exact = headlight.load(name), headlight.load(name, dtype=torch.float64)
    _alike(exact.record("the cat sat"), plain.record("the cat sat"))
    assert {each.dtype for each in plain.network.parameters()} == {torch.float32}
