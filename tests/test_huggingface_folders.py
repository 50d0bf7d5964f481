"""Folders of Hugging Face models: what a card says, and what cannot be used is refused in a
sentence."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from in_own_code import oracle, recorded
from safetensors.torch import load_file, save_file
from tolerances import PASSED, SUMMED

from models.pretrained import hf_source, hub, model_files
from models.pretrained.hf_model import load

pytestmark = [pytest.mark.slow, pytest.mark.parity]


# ---- loading -----------------------------------------------------------------


def test_a_card_says_which_weights_these_are(tiny_folder: Callable, tmp_path: Path) -> None:
    path = tiny_folder("llama")
    handle = load(str(path))
    parameters = sum(tensor.numel() for tensor in load_file(path / "model.safetensors").values())
    assert handle.card.fingerprint == model_files.digest([path / "model.safetensors"])[:12]
    assert (handle.card.weights, handle.card.n_parameters, handle.card.n_positions) == (
        "float32",
        parameters,
        40,
    )
    assert (
        handle.card.n_layer,
        handle.card.n_head,
        handle.card.d_model,
        handle.card.d_head,
        handle.card.n_vocab,
    ) == (2, 4, 32, 8, tiny.N_VOCAB)
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    save_file(
        {name: tensor.bfloat16() for name, tensor in load_file(path / "model.safetensors").items()},
        tmp_path / "model.safetensors",
        {"format": "pt"},
    )
    half = load(str(tmp_path))
    assert (
        half.card.weights == "bfloat16, computed in float32"
        and half.card.fingerprint != handle.card.fingerprint
    )
    assert next(half.model.parameters()).dtype == torch.float32


def test_weights_in_several_files_are_one_model(tiny_folder: Callable, tmp_path: Path) -> None:
    model = transformers.AutoModelForMaskedLM.from_pretrained(tiny_folder("bert"))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    for file in tiny_folder("bert").glob("token*"):
        shutil.copy(file, tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    assert np.array_equal(
        recorded(load(str(tmp_path))).streams[0].resid,
        recorded(load(str(tiny_folder("bert")))).streams[0].resid,
    )
    sorted(tmp_path.glob("*.safetensors"))[0].unlink()
    with pytest.raises(model_files.NotLoaded, match="is not whole: model-00001-of-.* is missing"):
        load(str(tmp_path))


def spoilt(folder: Path) -> Iterator[tuple[str, Callable[[], object], str]]:
    """Ways in which a folder can be unusable: a name, what spoils it, words of the sentence."""
    weights, config = folder / "model.safetensors", folder / "config.json"
    yield "cut", lambda: weights.write_bytes(weights.read_bytes()[:-100]), "is cut short or broken"
    yield "noise", lambda: weights.write_bytes(b"\xff" * 4096), "is no safetensors file"
    yield "empty", lambda: weights.write_bytes(b""), "is no safetensors file"
    yield "gone", weights.unlink, "no weights"
    yield (
        "pickle",
        lambda: (weights.unlink(), (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")),
        "a format that can carry code",
    )
    yield "no config", config.unlink, "no config.json"
    yield "config cut", lambda: config.write_text("{"), "config.json of .* cannot be read"
    yield "config a list", lambda: config.write_text("[]"), "is no configuration"
    yield (
        "unknown",
        lambda: tiny.change(folder, model_type="zebra"),
        "type 'zebra', which transformers .* does not know",
    )
    yield (
        "own code",
        lambda: tiny.change(folder, model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"}),
        "runs only with code of its own",
    )
    yield (
        "quantised",
        lambda: tiny.change(folder, quantization_config={"quant_method": "gptq"}),
        "quantised weights",
    )
    yield "pictures", lambda: tiny.change(folder, model_type="vit"), "reads images or sound"
    yield "sound", lambda: tiny.change(folder, model_type="whisper"), "reads images or sound"
    yield (
        "both",
        lambda: tiny.change(folder, model_type="clip", vision_config={}),
        "reads images or sound",
    )
    yield (
        "mamba",
        lambda: config.write_text(
            json.dumps(transformers.MambaConfig().to_dict() | {"model_type": "mamba"})
        ),
        "has no attention",
    )
    yield (
        "resnet",
        lambda: config.write_text(json.dumps({"model_type": "resnet"})),
        "reads images or sound",
    )
    yield (
        "other size",
        lambda: tiny.change(folder, intermediate_size=60),
        "do not fit its configuration",
    )
    yield "more layers", lambda: tiny.change(folder, num_hidden_layers=3), "lacks 16 of its weights"
    yield (
        "tokenizer",
        lambda: (folder / "tokenizer.json").write_text("{}"),
        "tokenizer of .* cannot be read",
    )
    yield (
        "no tokenizer",
        lambda: [path.unlink() for path in folder.glob("token*")],
        "no tokenizer in",
    )


@pytest.mark.parametrize("way", [name for name, _, _ in spoilt(Path())])
def test_a_folder_that_cannot_be_used_is_refused_in_one_sentence(
    way: str, tiny_folder: Callable, tmp_path: Path
) -> None:
    shutil.copytree(tiny_folder("bert"), tmp_path, dirs_exist_ok=True)
    spoil, words = next((spoil, words) for name, spoil, words in spoilt(tmp_path) if name == way)
    spoil()
    with pytest.raises(model_files.NotLoaded, match=words) as refused:
        load(str(tmp_path), name="bad")
    assert (
        "\n" not in str(refused.value)
        and str(refused.value).endswith(".")
        and issubclass(model_files.NotLoaded, ValueError)
    )


def test_a_model_with_attention_in_some_layers_only_is_refused(tmp_path: Path) -> None:
    config = transformers.JambaConfig(
        vocab_size=tiny.N_VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        attn_layer_period=2,
        attn_layer_offset=1,
        num_experts=1,
        num_experts_per_tok=1,
        mamba_d_state=4,
        mamba_d_conv=2,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    transformers.JambaForCausalLM(config).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    with pytest.raises(
        model_files.NotLoaded,
        match="2 of its 4 layers have attention; choose a model of another family",
    ):
        load(str(tmp_path))


def test_a_model_whose_rows_do_not_sum_to_one_is_refused(tmp_path: Path) -> None:
    config = transformers.GptOssConfig(
        **tiny.LLAMA,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    transformers.GptOssForCausalLM(config).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    with pytest.raises(model_files.NotLoaded, match="rows do not sum to 1"):
        load(str(tmp_path))


def test_a_tokenizer_that_needs_another_package_says_which(
    tiny_folder: Callable, tmp_path: Path
) -> None:
    if importlib.util.find_spec("sentencepiece"):
        pytest.skip("sentencepiece is installed")
    shutil.copytree(tiny_folder("marian"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer"})
    )
    for name in ("source.spm", "target.spm", "vocab.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(
        model_files.NotLoaded,
        match="needs a Python package that is not installed here .*sentencepiece|SentencePiece",
    ):
        load(str(tmp_path))


@pytest.mark.parametrize(
    ("kind", "config", "positions", "entrance"),
    [
        (
            "Gemma2ForCausalLM",
            lambda: transformers.Gemma2Config(**tiny.LLAMA, head_dim=8, query_pre_attn_scalar=4),
            "rotary",
            "embed",
        ),
        ("Olmo2ForCausalLM", lambda: transformers.Olmo2Config(**tiny.LLAMA), "rotary", "embed"),
        (
            "GraniteForCausalLM",
            lambda: transformers.GraniteConfig(
                **tiny.LLAMA,
                residual_multiplier=0.5,
                embedding_multiplier=3.0,
                attention_multiplier=0.3,
            ),
            "rotary",
            "embed",
        ),
        (
            "CTRLLMHeadModel",
            lambda: transformers.CTRLConfig(
                vocab_size=tiny.N_VOCAB, n_embd=32, dff=48, n_layer=2, n_head=4, n_positions=40
            ),
            "unknown",
            "embed+pos",
        ),
        (
            "PegasusForConditionalGeneration",
            lambda: transformers.PegasusConfig(
                **tiny.TWO, pad_token_id=0, eos_token_id=2, decoder_start_token_id=0
            ),
            "sinusoids",
            "embed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_families_that_nobody_named_are_followed_as_far_as_they_go(
    kind: str, config: Callable, positions: str, entrance: str, tmp_path: Path
) -> None:
    tiny.stirred(getattr(transformers, kind)(config())).save_pretrained(tmp_path)
    tiny.gpt2_bytes().save_pretrained(tmp_path)
    handle = load(str(tmp_path))
    recording = recorded(handle)
    _, true = oracle(tmp_path, recording)
    np.testing.assert_allclose(
        recording.attention[0].pattern,
        torch.cat(true["attentions" if handle.start is None else "encoder_attentions"]).numpy(),
        atol=SUMMED,
    )
    assert (
        hf_source.capabilities(handle).positions == positions
        and recording.streams[0].sites[0] == entrance
    )
    for before, wrote, after in recording.streams[-1].writes():
        np.testing.assert_allclose(
            recording.streams[-1].at(before) + recording.streams[-1].at(wrote),
            recording.streams[-1].at(after),
            atol=PASSED,
        )


def test_names_and_paths_that_lead_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for where, words in (
        ("", "Give the name of a model"),
        ("/no/such/folder", "no folder /no/such/folder"),
        (str(tmp_path), "no config.json"),
        ("not a name!", "not a name on the hub"),
    ):
        with pytest.raises(model_files.NotLoaded, match=words):
            load(where)


def test_a_model_too_large_is_refused_before_it_is_read(
    tiny_folder: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "free_memory", lambda: 1 << 20)
    with pytest.raises(model_files.NotLoaded, match="needs 1.0 GiB of memory and 0.0 GiB are free"):
        load(str(tiny_folder("bert")))
    monkeypatch.setattr(hub, "MOST_PARAMETERS", 1000)
    with pytest.raises(model_files.NotLoaded, match="takes up to 0 million"):
        load(str(tiny_folder("bert")))
    assert hub.free_memory() is None or hub.free_memory() > 0
