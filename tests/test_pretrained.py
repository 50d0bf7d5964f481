"""Pretrained weights in our own classes against the models' own code: tiny random ones of each
family, and MiniLM on real sentences."""

from __future__ import annotations

import copy
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from tolerances import DOUBLE_LONG, PARITY

from models import shipped_models
from models.network.own_model import OwnModel
from models.network.transformer import Decoder, Encoder
from models.pretrained import weight_conversion
from models.pretrained.weight_conversion import MODERN_CONVERSIONS
from models.readouts import logit_lens
from models.runtime import registry

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "Łódź, naïve café: 3.5 % of “it” — 日本語 😀!",
    "Hi",
    "a " * 400,
)


def random_model(kind: str, **more: object) -> torch.nn.Module:
    """A tiny random model of a class of transformers; `more` changes its configuration."""
    settings = next(of for _, name, of in tiny.MODELS.values() if name == kind)
    torch.manual_seed(3)
    model = tiny.random_model(kind, {**settings, **more})
    model.set_attn_implementation("eager")
    return model


# As Llama 3.1 stretches its angles, with numbers that a text of 40 tokens feels.
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 30,
}
FINER = {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.0}
BIASES = {"attention_bias": True, "mlp_bias": True}
WINDOW = {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 0}
SERIAL = {"use_parallel_residual": False, "attention_bias": False, "rotary_pct": 0.5}

# What test_modern_layers.py has not: the families of old, and variants of those of today.
RANDOM = [
    ("BertForMaskedLM", {}),
    ("BertForMaskedLM", {"hidden_act": "gelu_new"}),
    ("BertForMaskedLM", {"hidden_act": "relu", "type_vocab_size": 1}),
    ("RobertaForMaskedLM", {"type_vocab_size": 1}),
    ("XLMRobertaForMaskedLM", {}),
    ("ElectraForMaskedLM", {}),
    ("ElectraForMaskedLM", {"embedding_size": 16}),
    ("AlbertForMaskedLM", {}),
    ("AlbertForMaskedLM", {"embedding_size": 32, "hidden_act": "gelu_new", "num_hidden_layers": 4}),
    ("DistilBertForMaskedLM", {}),
    ("GPT2LMHeadModel", {"n_inner": 52, "activation_function": "gelu"}),
    ("LlamaForCausalLM", {"rope_parameters": STRETCHED, "tie_word_embeddings": True, **BIASES}),
    ("LlamaForCausalLM", {"rope_parameters": FINER}),
    ("MistralForCausalLM", {"sliding_window": 5, "head_dim": 10}),
    ("Qwen2ForCausalLM", {"tie_word_embeddings": True}),
    ("Qwen2ForCausalLM", WINDOW),
    ("GPTNeoXForCausalLM", SERIAL),
    ("Phi3ForCausalLM", {"sliding_window": 5, "tie_word_embeddings": True}),
    ("OPTForCausalLM", {"do_layer_norm_before": False}),
]


def compared(
    theirs: torch.nn.Module, ours: Encoder | Decoder, ids: torch.Tensor, logits: bool
) -> None:
    """Every hidden state, every attention and the logits, both models in 64 bits."""
    bound = PARITY if theirs.config.model_type in MODERN_CONVERSIONS else DOUBLE_LONG
    seen: dict[str, torch.Tensor] = {}
    theirs, ours = copy.deepcopy(theirs).double(), copy.deepcopy(ours).double()
    with torch.no_grad():
        out = theirs(input_ids=ids, output_attentions=True, output_hidden_states=True)
        last = ours(ids, tape=lambda name, x: seen.__setitem__(name, x))
        said = ours.logits(last) if logits else None
    layers, pre = range(ours.config.n_layer), ours.config.norm == "pre"
    names = [
        [site for site in ("embed", "embed+pos", "embed.normed") if site in seen][-1],
        *(f"{layer}.ffn.{'sum' if pre else 'normed'}" for layer in layers),
    ]
    if pre:
        names[-1] = "final.normed"  # their last hidden state is after the last LayerNorm
    pairs = {name: (seen[name], each) for name, each in zip(names, out.hidden_states, strict=True)}
    for layer, pattern in zip(layers, out.attentions, strict=True):
        pairs[f"pattern {layer}"] = seen[f"{layer}.attn.pattern"], pattern
    if said is not None:
        pairs["logits"] = said, out.logits
    for name, (one, other) in pairs.items():
        np.testing.assert_allclose(one, other, atol=bound, rtol=bound, err_msg=name)


@pytest.mark.parametrize(("kind", "more"), RANDOM, ids=str)
def test_every_hidden_state_attention_and_logit_is_theirs(kind: str, more: dict) -> None:
    theirs = random_model(kind, **more)
    ours = weight_conversion.build(theirs.config.to_dict(), theirs.state_dict())
    for length in (1, 7, 40):
        drawn = torch.Generator().manual_seed(length)
        ids = torch.randint(3, tiny.N_VOCAB, (2, length), generator=drawn)
        compared(theirs, ours, ids, logits=True)


def test_a_discriminator_has_no_readout() -> None:
    """ELECTRA's second half: it says of each token whether it was replaced, and no words."""
    model = tiny.random_model("ElectraForPreTraining", tiny.MODELS["electra"][2])
    model.set_attn_implementation("eager")
    described = model.config.to_dict() | {"architectures": ["ElectraForPreTraining"]}
    ours = weight_conversion.build(described, model.state_dict())
    compared(model.electra, ours, torch.tensor([[3, 14, 15, 9]]), logits=False)
    assert ours.config.readout is None and ours.config.head == "discriminator head"


def test_shared_layers_are_one_set_of_weights() -> None:
    theirs = random_model("AlbertForMaskedLM", num_hidden_layers=5, type_vocab_size=1)
    ours = weight_conversion.build(theirs.config.to_dict(), theirs.state_dict())
    assert isinstance(ours, Encoder) and len(ours.layers) == 5
    count = {
        each: sum(parameter.numel() for parameter in each.parameters()) for each in (theirs, ours)
    }
    assert count[theirs] == count[ours]
    with pytest.raises(ValueError, match="more than one layer of weights"):
        weight_conversion.build(theirs.config.to_dict() | {"num_hidden_groups": 5}, {})


def test_without_a_readout_there_are_no_words() -> None:
    model = random_model("BertForMaskedLM").bert
    ours = weight_conversion.build(model.config.to_dict(), model.state_dict())
    compared(model, ours, torch.tensor([[3, 14, 15, 9]]), logits=False)
    with pytest.raises(ValueError, match="no readout"):
        ours.logits(torch.zeros(32))


OF_OLD = {"weight": "gamma", "bias": "beta"}


def test_early_files_that_say_gamma_and_beta_are_read() -> None:
    model = random_model("BertForMaskedLM")
    early = {
        re.sub(r"(LayerNorm\.)(weight|bias)", lambda found: found[1] + OF_OLD[found[2]], key): each
        for key, each in model.state_dict().items()
    }
    assert early.keys() != model.state_dict().keys()
    one, other = (
        weight_conversion.build(model.config.to_dict(), tensors)(torch.tensor([[3, 14, 15, 9]]))
        for tensors in (early, model.state_dict())
    )
    torch.testing.assert_close(one, other)


def test_weights_that_would_be_left_out_or_lack_a_part_are_refused() -> None:
    untied = random_model("GPT2LMHeadModel", tie_word_embeddings=False)
    bert, gpt2 = random_model("BertForMaskedLM"), random_model("GPT2LMHeadModel")
    key = "layer.1.attention.self.key.weight"
    lacking = {name: each for name, each in bert.state_dict().items() if key not in name}
    for model, changes, tensors, words in (
        (untied, {}, untied.state_dict(), "tied"),
        (bert, {"num_hidden_layers": 1}, bert.state_dict(), "2 layers"),
        (bert, {}, lacking, key),
        (bert, {"position_embedding_type": "relative_key"}, bert.state_dict(), "absolute"),
        (gpt2, {"scale_attn_weights": False}, gpt2.state_dict(), "scale"),
    ):
        with pytest.raises(ValueError, match=words):
            weight_conversion.build(model.config.to_dict() | changes, tensors)


# ---- MiniLM ------------------------------------------------------------------


@pytest.mark.parity
@pytest.mark.slow
def test_minilm_in_our_classes_is_minilm() -> None:
    from transformers import AutoModel, AutoTokenizer

    model: OwnModel = registry.load("minilm")
    folder = registry.packaged_folder()
    theirs, tokenizer = (
        AutoModel.from_pretrained(folder, attn_implementation="eager").eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    for text in SENTENCES:
        recording = model.record(text)
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)["input_ids"]
        assert recording.streams[0].ids.tolist() == ids[0].tolist()
        if len(text) > 60:
            compared(theirs, model.network, ids[:, :200], logits=False)
    stream = recording.streams[0]
    assert logit_lens.states(stream)[-1] == "5.ffn.normed" and model.embeddings().shape == (
        30522,
        384,
    )


@pytest.mark.slow
def test_minilm_of_other_files_than_the_tested_ones_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shipped_models.packaged()
    if folder is None:
        pytest.skip("its package is not installed")
    for name in shipped_models.SHA256:
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.setattr(shipped_models, "packaged", lambda: tmp_path)
    assert registry.load(registry.MINILM).card.name == registry.MINILM
    for name in shipped_models.SHA256:
        (tmp_path / name).unlink()
        shutil.copy(folder / name, tmp_path / name)
        with open(tmp_path / name, "ab") as file:
            file.write(b" ")
        with pytest.raises(ValueError, match=f"{name} of .* is not the one that was tested"):
            registry.load(registry.MINILM)
        shutil.copy(folder / name, tmp_path / name)
