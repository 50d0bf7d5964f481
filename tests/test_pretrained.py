"""Pretrained weights in our own classes against the models' own code: tiny random ones of each
family, and MiniLM on real sentences."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
import torch
from tiny_hf_models import bert, uneven
from tolerances import DOUBLE_LONG, PARITY

from models import registry, shipped_models
from models.own_model import OwnModel
from models.pretrained import weight_conversion
from models.pretrained.weight_conversion import MODERN_CONVERSIONS
from models.readouts import logit_lens
from models.transformer import Decoder, Encoder

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "Łódź, naïve café: 3.5 % of “it” — 日本語 and 😀!",
    "Hi",
    "a " * 400,
)


def roberta():
    from transformers import RobertaConfig, RobertaForMaskedLM

    return RobertaForMaskedLM(
        RobertaConfig(
            vocab_size=90,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=36,
            max_position_embeddings=42,
            type_vocab_size=1,
        )
    )


def distilbert():
    from transformers import DistilBertConfig, DistilBertForMaskedLM

    return DistilBertForMaskedLM(
        DistilBertConfig(
            vocab_size=90, dim=24, n_layers=2, n_heads=4, hidden_dim=36, max_position_embeddings=40
        )
    )


def gpt2(**more):
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=90,
            n_embd=24,
            n_layer=3,
            n_head=4,
            n_positions=40,
            bos_token_id=0,
            eos_token_id=0,
            **more,
        )
    )


def modern(family: str, **more):
    """A tiny model of a family of today; `more` changes its configuration."""
    import tiny
    import transformers

    shape = tiny.OPT if family == "OPT" else tiny.BERT if family == "GPTNeoX" else tiny.LLAMA
    config = getattr(transformers, f"{family}Config")(
        **shape | {"vocab_size": 90, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2} | more
    )
    return getattr(transformers, f"{family}ForCausalLM")(config)


# As Llama 3.1 stretches its angles, with numbers that a text of 40 tokens feels.
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 30,
}


RANDOM = {
    "bert": bert,
    "bert, gelu_new": lambda: bert(hidden_act="gelu_new"),
    "bert, relu, no segments": lambda: bert(hidden_act="relu", type_vocab_size=1),
    "roberta": roberta,
    "distilbert": distilbert,
    "gpt2": gpt2,
    "gpt2, n_inner and gelu": lambda: gpt2(n_inner=52, activation_function="gelu"),
    "llama": lambda: modern("Llama"),
    "llama, stretched, biases, tied": lambda: modern(
        "Llama",
        rope_parameters=STRETCHED,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "llama, positions counted finer": lambda: modern(
        "Llama", rope_parameters={"rope_type": "linear", "rope_theta": 100.0, "factor": 2.0}
    ),
    "mistral, a window of 5": lambda: modern("Mistral", sliding_window=5, head_dim=10),
    "qwen2": lambda: modern("Qwen2", tie_word_embeddings=True),
    "qwen2, a window of 6": lambda: modern(
        "Qwen2", use_sliding_window=True, sliding_window=6, max_window_layers=0
    ),
    "qwen3": lambda: modern("Qwen3", head_dim=12),
    "gemma": lambda: modern("Gemma", num_key_value_heads=1, head_dim=10),
    "gpt_neox": lambda: modern("GPTNeoX"),
    "gpt_neox, one after the other, no biases": lambda: modern(
        "GPTNeoX", use_parallel_residual=False, attention_bias=False, rotary_pct=0.5
    ),
    "opt": lambda: modern("OPT"),
    "opt, norms after the sums": lambda: modern("OPT", do_layer_norm_before=False),
}


@pytest.fixture(params=RANDOM, scope="module")
def theirs(request: pytest.FixtureRequest) -> torch.nn.Module:
    model = uneven(RANDOM[request.param]())
    model.set_attn_implementation("eager")
    return model


def in_64_bits(model: Encoder | Decoder) -> Encoder | Decoder:
    """A copy of the model that computes in 64 bits."""
    model = copy.deepcopy(model).double()
    for attention in (each for layers in model.attentions().values() for each in layers):
        if attention.w_qkv.weight is not None:
            attention.w_qkv.lay_out()
    return model


def compared(
    theirs: torch.nn.Module, ours: Encoder | Decoder, ids: torch.Tensor, logits: bool
) -> None:
    """Every hidden state, every attention and the logits, both models in 64 bits."""
    bound = PARITY if theirs.config.model_type in MODERN_CONVERSIONS else DOUBLE_LONG
    seen: dict[str, torch.Tensor] = {}
    theirs, ours = copy.deepcopy(theirs).double(), in_64_bits(ours)
    with torch.no_grad():
        out = theirs(input_ids=ids, output_attentions=True, output_hidden_states=True)
        last = ours(ids, tape=lambda name, x: seen.__setitem__(name, x))
        pre = ours.config.norm == "pre"
        names = [
            [site for site in ("embed", "embed+pos", "embed.normed") if site in seen][-1],
            *(f"{layer}.ffn.{'sum' if pre else 'normed'}" for layer in range(ours.config.n_layer)),
        ]
        if pre:
            names[-1] = "final.normed"  # their last hidden state is after the last LayerNorm
        assert len(names) == len(out.hidden_states) and len(out.attentions) == ours.config.n_layer
        for name, hidden in zip(names, out.hidden_states):
            torch.testing.assert_close(
                seen[name],
                hidden,
                atol=bound,
                rtol=bound,
                msg=lambda text, name=name: f"{name}: {text}",
            )
        for layer, pattern in enumerate(out.attentions):
            torch.testing.assert_close(seen[f"{layer}.attn.pattern"], pattern, atol=bound, rtol=0)
        if logits:
            torch.testing.assert_close(ours.logits(last), out.logits, atol=bound, rtol=bound)


def test_every_hidden_state_attention_and_logit_is_theirs(theirs: torch.nn.Module) -> None:
    ours = weight_conversion.build(theirs.config.to_dict(), theirs.state_dict())
    for length in (1, 7, 40):
        ids = torch.randint(3, 90, (2, length), generator=torch.Generator().manual_seed(length))
        compared(theirs, ours, ids, logits=True)


def test_without_a_readout_there_are_no_words() -> None:
    model = uneven(bert()).bert
    model.set_attn_implementation("eager")
    ours = weight_conversion.build(model.config.to_dict(), model.state_dict())
    compared(model, ours, torch.tensor([[3, 14, 15, 9]]), logits=False)
    with pytest.raises(ValueError, match="no readout"):
        ours.logits(torch.zeros(24))


def test_early_files_that_say_gamma_and_beta_are_read() -> None:
    model = uneven(bert())
    early = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for key, tensor in model.state_dict().items()
    }
    ids = torch.tensor([[3, 14, 15, 9]])
    with torch.no_grad():
        torch.testing.assert_close(
            weight_conversion.build(model.config.to_dict(), early)(ids),
            weight_conversion.build(model.config.to_dict(), model.state_dict())(ids),
        )


def test_weights_that_would_be_left_out_are_refused() -> None:
    model = uneven(gpt2(tie_word_embeddings=False))
    assert not torch.equal(model.lm_head.weight, model.transformer.wte.weight)
    with pytest.raises(ValueError, match="tied"):
        weight_conversion.build(model.config.to_dict(), model.state_dict())
    with pytest.raises(ValueError, match="3 layers"):
        weight_conversion.build(
            bert().config.to_dict() | {"num_hidden_layers": 2}, bert().state_dict()
        )


def test_weights_that_lack_a_part_are_refused() -> None:
    model = bert()
    lacking = {
        key: tensor
        for key, tensor in model.state_dict().items()
        if "layer.1.attention.self.key.weight" not in key
    }
    with pytest.raises(ValueError, match="layer.1.attention.self.key.weight"):
        weight_conversion.build(model.config.to_dict(), lacking)
    with pytest.raises(ValueError, match="absolute"):
        weight_conversion.build(
            model.config.to_dict() | {"position_embedding_type": "relative_key"}, model.state_dict()
        )
    with pytest.raises(ValueError, match="scale"):
        weight_conversion.build(
            gpt2(scale_attn_weights=False).config.to_dict(), gpt2().state_dict()
        )


# ---- MiniLM ------------------------------------------------------------------


@pytest.mark.parity
@pytest.mark.slow
def test_minilm_in_our_classes_is_minilm() -> None:
    from transformers import AutoModel, AutoTokenizer

    handle: OwnModel = registry.load("minilm")
    folder = registry.packaged_folder()
    theirs, tokenizer = (
        AutoModel.from_pretrained(folder, attn_implementation="eager").eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    for text in SENTENCES:
        recording = handle.record(text)
        ids = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)["input_ids"]
        assert recording.streams[0].ids.tolist() == ids[0].tolist()
        compared(theirs, handle.model, ids, logits=False)
    stream = recording.streams[0]
    assert logit_lens.states(stream)[-1] == "5.ffn.normed" and handle.embeddings().shape == (
        30522,
        384,
    )


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
