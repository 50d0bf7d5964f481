"""Folders of Hugging Face models: what a card says, and what cannot be used is refused in a
sentence."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from in_own_code import oracle, recorded
from malformed_models import KINDS, Spoil, written
from malformed_models import config as settings
from safetensors.torch import load_file, save_file
from tolerances import PASSED, SUMMED

from models.pretrained import hf_source, hub, machine_limits, model_files
from models.pretrained.hf_model import load
from models.runtime import registry

pytestmark = [pytest.mark.slow, pytest.mark.parity]


# ---- loading -----------------------------------------------------------------


def test_a_card_says_which_weights_these_are(tiny_folder: Callable, tmp_path: Path) -> None:
    path = tiny_folder("llama")
    card, tensors = load(str(path)).card, load_file(path / "model.safetensors")
    assert card.fingerprint == model_files.digest([path / "model.safetensors"])[:12]
    assert card.n_parameters == sum(tensor.numel() for tensor in tensors.values())
    sizes = card.n_layer, card.n_head, card.d_model, card.d_head, card.n_vocab, card.n_positions
    assert sizes == (2, 4, 32, 8, tiny.N_VOCAB, 40) and card.weights == "float32"
    shutil.copytree(path, tmp_path, dirs_exist_ok=True)
    tensors = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    half = load(str(tmp_path))
    assert half.card.weights == "bfloat16, computed in float32"
    assert half.card.fingerprint != card.fingerprint
    assert next(half.network.parameters()).dtype == torch.float32


def test_weights_in_several_files_are_one_model(tiny_folder: Callable, tmp_path: Path) -> None:
    model = transformers.AutoModelForMaskedLM.from_pretrained(tiny_folder("bert"))
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    for file in tiny_folder("bert").glob("token*"):
        shutil.copy(file, tmp_path)
    parts = sorted(tmp_path.glob("*.safetensors"))
    whole, made = (recorded(load(str(each))) for each in (tiny_folder("bert"), tmp_path))
    assert len(parts) > 1 and np.array_equal(made.streams[0].resid, whole.streams[0].resid)
    parts[0].unlink()
    with pytest.raises(model_files.NotLoaded, match="is not whole: model-00001-of-.* is missing"):
        load(str(tmp_path))


MAMBA = transformers.MambaConfig().to_dict() | {"model_type": "mamba"}
NO_IMAGES = "reads images or sound"
# How a folder can be unusable, and words of the sentence. test_hostile_folders.py has many more.
SPOILT: dict[str, tuple[Spoil, str]] = {
    "weights cut": (KINDS["weights cut"], "is cut short or broken"),
    "noise": (written("model.safetensors", b"\xff" * 4096), "is no safetensors file"),
    "weights empty": (KINDS["weights empty"], "is no safetensors file"),
    "weights gone": (KINDS["weights gone"], "no weights"),
    "weights as code": (KINDS["weights as code"], "a format that can carry code"),
    "config gone": (KINDS["config gone"], "no config.json"),
    "config cut": (KINDS["config cut"], "config.json of .* cannot be read"),
    "config a list": (KINDS["config a list"], "is no configuration"),
    "type unknown": (KINDS["type unknown"], "'zebra', which transformers .* does not know"),
    "code of its own": (KINDS["code of its own"], "runs only with code of its own"),
    "quantised": (KINDS["quantised"], "quantised weights"),
    "pictures": (KINDS["pictures"], NO_IMAGES),
    "sound": (settings(model_type="whisper"), NO_IMAGES),
    "both": (settings(model_type="clip", vision_config={}), NO_IMAGES),
    "resnet": (written("config.json", '{"model_type": "resnet"}'), NO_IMAGES),
    "mamba": (written("config.json", json.dumps(MAMBA)), "has no attention"),
    "other size": (settings(intermediate_size=60), "do not fit its configuration"),
    "more layers": (settings(num_hidden_layers=3), "lacks 16 of its weights"),
    "tokenizer empty": (KINDS["tokenizer empty"], "tokenizer of .* cannot be read"),
    "no tokenizer": (KINDS["no tokenizer"], "no tokenizer in"),
}


@pytest.mark.parametrize("way", SPOILT)
def test_a_folder_that_cannot_be_used_is_refused_in_one_sentence(
    way: str, tiny_folder: Callable, tmp_path: Path
) -> None:
    shutil.copytree(tiny_folder("bert"), tmp_path, dirs_exist_ok=True)
    spoil, words = SPOILT[way]
    spoil(tmp_path)
    with pytest.raises(model_files.NotLoaded, match=words) as refused:
        load(str(tmp_path), name="bad")
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")
    assert issubclass(model_files.NotLoaded, ValueError)


ADAPTER = '{"peft_type": "LORA", "base_model_name_or_path": "gpt2"}'
# Files of a folder without a model, and what it is called and told.
OTHER_FOLDERS: dict[str, tuple[dict[str, str], str]] = {
    "empty": ({}, "it is empty; put a model’s config.json, safetensors and tokenizer there."),
    "LoRA alone": (
        {"adapter_config.json": ADAPTER, "adapter_model.safetensors": ""},
        "it is a LoRA adapter, and the model that it was trained on, gpt2, is not on this machine; "
        "fetch that model first, or put both into one folder.",
    ),
    "parts": (
        {"modules.json": "[]", "0_Transformer/config.json": "{}", "1_Pooling/x": ""},
        "it is a sentence-transformers model whose parts have a folder each; open "
        "it/0_Transformer.",
    ),
    "one level too high": (
        {"model/config.json": "{}", "notes.txt": ""},
        "There is no config.json in it, but in a folder of it; open it/model.",
    ),
    "something else": (
        {"notes.txt": ""},
        "There is no config.json in it, so it is not a model that transformers can read; fetch "
        "the model again.",
    ),
    "ONNX": (
        {"config.json": '{"model_type": "bert"}', "onnx/model.onnx": ""},
        "it has its weights only as ONNX, which shows no attention; choose a version with "
        "safetensors.",
    ),
    "pickle": (
        {"config.json": '{"model_type": "bert"}', "pytorch_model.bin": ""},
        "it has its weights only in a format that can carry code (pickle); choose a version with "
        "safetensors.",
    ),
}


@pytest.mark.parametrize("kind", OTHER_FOLDERS)
def test_a_folder_without_a_model_is_called_what_it_is(kind: str, tmp_path: Path) -> None:
    files, says = OTHER_FOLDERS[kind]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(model_files.NotLoaded) as refused:
        hub.check(tmp_path, "it")
    assert str(refused.value) == says
    if kind in ("ONNX", "pickle"):  # of one's own there is another way out
        with pytest.raises(model_files.NotLoaded, match="or save yours anew with save_pretrained"):
            hub.check(tmp_path, f"hub:{tmp_path}")


XLNET = {"vocab_size": tiny.N_VOCAB, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}


def test_xlnet_whose_tokens_come_first_is_followed_like_any_other(tmp_path: Path) -> None:
    model = load(str(tiny.save(tmp_path, "XLNetLMHeadModel", XLNET, tiny.framed_bytes)))
    recording = recorded(model)
    _, true = oracle(tmp_path, recording)
    (attention,) = recording.attention
    np.testing.assert_allclose(attention.pattern, torch.cat(true.attentions).numpy(), atol=SUMMED)
    stream = recording.streams[0]
    np.testing.assert_allclose(stream.resid[-1], true.hidden_states[-1][0].numpy(), atol=PASSED)
    assert recording.dropped == 0 and len(stream.writes()) == 4 and model.capabilities.law
    last = len(stream.tokens) - 1
    shares = model.integrated_gradients(recording, stream.name, last, 7)
    assert len(shares) == len(stream.tokens)
    ids = torch.tensor(stream.ids)[None]
    nothing = torch.zeros(1, len(stream.tokens), XLNET["d_model"])
    with torch.no_grad():
        brought, none = (
            model.network(**given).logits[0, last, 7]
            for given in ({"input_ids": ids}, {"inputs_embeds": nothing})
        )
    assert shares.sum() == pytest.approx(float(brought - none), rel=0.02, abs=0.002)  # of a curve


def test_a_tokenizer_in_transformers_own_code_needs_no_file(tmp_path: Path) -> None:
    """ByT5's, of bytes; one of another class, or of remote code, is refused."""
    tiny.random_model("T5ForConditionalGeneration", tiny.T5 | {"eos_token_id": 1}).save_pretrained(
        tmp_path
    )
    own = transformers.ByT5Tokenizer()
    own.save_pretrained(tmp_path)
    assert registry.trial_load(str(tmp_path))[0] == f"hub:{tmp_path}"
    model = load(str(tmp_path))
    assert model.record("café").streams[0].ids.tolist() == own("café").input_ids
    beyond = model.card.n_vocab - 1  # an id for which the tokenizer has no token
    assert beyond >= len(own) and model.tokenizer.text((*own("né").input_ids, beyond)) == "né"
    settings = tmp_path / "tokenizer_config.json"
    for kind in ("T5Tokenizer", "Trainer", "../x", "NoSuchTokenizer", 5):
        words = {"tokenizer_class": kind, "auto_map": {"AutoTokenizer": ["x.X", None]}}
        settings.write_text(json.dumps(words), "utf-8")
        with pytest.raises(model_files.NotLoaded, match="There is no tokenizer in"):
            load(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt2", "one of the Hugging Face hub opens as 'hub:gpt2' or 'ours:gpt2'"),
        ("zzz", "headlight.names() lists those here"),
        ("encodr", "the nearest one here is 'encoder'"),
        ("minilm@5000", "the nearest one here is 'minilm'"),
        ("/a/folder", "a folder or a GGUF file opens as 'ours:/a/folder', in Headlight’s own"),
        ("model.gguf", "or as 'hub:model.gguf', in its own code"),
    ],
)
def test_a_name_without_a_way_is_told_the_ways(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"no model is called '{name}'; ") as refused:
        registry.load(name)
    assert words in str(refused.value) and "translator-small" not in str(refused.value)


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
        match="is not installed here: run python -m pip install sentencepiece and start Headlight",
    ):
        load(str(tmp_path))


GEMMA2 = {**tiny.LLAMA, "head_dim": 8, "query_pre_attn_scalar": 4}
CTRL = {"vocab_size": tiny.N_VOCAB, "n_embd": 32, "dff": 48, "n_layer": 2, "n_head": 4}
PEGASUS = {**tiny.TWO, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}


@pytest.mark.parametrize(
    ("kind", "settings", "positions", "entrance"),
    [
        ("Gemma2ForCausalLM", GEMMA2, "rotary", "embed"),
        ("Olmo2ForCausalLM", tiny.LLAMA, "rotary", "embed"),
        ("CTRLLMHeadModel", {**CTRL, "n_positions": 40}, "unknown", "embed+pos"),
        ("PegasusForConditionalGeneration", PEGASUS, "sinusoids", "embed"),
    ],
)
def test_families_that_nobody_named_are_followed_as_far_as_they_go(
    kind: str, settings: dict, positions: str, entrance: str, tmp_path: Path
) -> None:
    model = load(str(tiny.save(tmp_path, kind, settings)))
    recording = recorded(model)
    _, true = oracle(tmp_path, recording)
    patterns = true["attentions" if model.start is None else "encoder_attentions"]
    np.testing.assert_allclose(
        recording.attention[0].pattern, torch.cat(patterns).numpy(), atol=SUMMED
    )
    assert hf_source.capabilities(model).positions == positions
    assert recording.streams[0].sites[0] == entrance
    stream = recording.streams[-1]
    for before, wrote, after in stream.writes():
        expected = stream.at(before) + stream.at(wrote)
        np.testing.assert_allclose(expected, stream.at(after), atol=PASSED)


def test_names_and_paths_that_lead_nowhere(tmp_path: Path) -> None:
    for where, words in (
        ("", "Give the name of a model"),
        ("/no/such/folder", "no folder /no/such/folder"),
        (str(tmp_path), "is empty"),
        ("not a name!", "not a name on the hub"),
    ):
        with pytest.raises(model_files.NotLoaded, match=words):
            load(where)


def test_a_model_too_large_is_refused_before_it_is_read(
    tiny_folder: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_limits, "free_memory", lambda: 1 << 20)
    with pytest.raises(model_files.NotLoaded, match="needs 1.0 GiB of memory and 0.0 GiB are free"):
        load(str(tiny_folder("bert")))
    monkeypatch.setattr(machine_limits, "MOST_PARAMETERS", 1000)
    with pytest.raises(model_files.NotLoaded, match="takes up to 0 million"):
        load(str(tiny_folder("bert")))
    assert machine_limits.free_memory() is None or machine_limits.free_memory() > 0
