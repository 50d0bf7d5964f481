"""GGUF files written with the `gguf` package from the tiny folders of tests/tiny.py, as llama.cpp
writes them: its names, its order of the rows of Llama's q and k, its gains of Gemma."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from models.pretrained import gguf_header

LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
# Bytes of 256 numbers, and where their scales lie, of types for which the package has no quantiser.
BLOCK = {"Q2_K": 84, "Q3_K": 110, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210}
SCALES = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def called(name: str) -> str:
    """llama.cpp's name of a Hugging Face tensor."""
    place, part = name.rsplit(".", 1)
    if place in TOP:
        return f"{TOP[place]}.{part}"
    _, _, layer, *inside = place.split(".")
    return f"blk.{layer}.{LAYER['.'.join(inside)]}.{part}"


def turned(rows: np.ndarray, n_head: int) -> np.ndarray:
    """The rows of q or k as llama.cpp's rotary positions want them: pairs beside each other."""
    halves = rows.reshape(n_head, 2, rows.shape[0] // n_head // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


def blocks(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """Random bytes that are a matrix of this type with small finite scales."""
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (shape[0], shape[1] // 256, BLOCK[kind]), dtype=np.uint8)
    for at in SCALES[kind]:
        scale = rng.uniform(1e-4, 1e-3, made.shape[:2]).astype(np.float16)
        made[:, :, at : at + 2] = scale[..., None].view(np.uint8)
    return made.reshape(shape[0], -1)


def write(
    folder: Path,
    file: Path,
    kind: str = "F32",
    pre: str = "",
    spare: Mapping[str, np.ndarray] | None = None,
    **more: object,
) -> dict:
    """Write the model in a Hugging Face folder as a GGUF file whose matrices are of a type, and
    its gains and biases where they may be; the numbers that it then holds, by Hugging Face's names.
    spare: tensors to add. more: metadata to add or to change; None takes one away."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    family = config["model_type"]
    architecture = "llama" if family == "mistral" else family
    writer = gguf.GGUFWriter(file, architecture)
    heads, keys = config["num_attention_heads"], config["num_key_value_heads"]
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(keys)
    writer.add_key_length(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(10000.0)
    if family == "mistral":
        writer.add_sliding_window(config["sliding_window"])
    add_words(writer, folder, pre or ("qwen2" if family.startswith("qwen") else "gpt-2"))
    for key, value in more.items():
        key = key.replace("__", ".")
        writer.kv_data[0].pop(key, None)
        add = {bool: writer.add_bool, int: writer.add_uint32, list: writer.add_array}
        if value is not None:
            add.get(type(value), writer.add_string)(key, value)
    wanted, held = gguf.GGMLQuantizationType[kind], {}
    for at, (name, tensor) in enumerate(load_file(folder / "model.safetensors").items()):
        stored = tensor.float().numpy()
        is_float = kind in gguf_header.GAIN_TYPES
        each = wanted if stored.ndim > 1 or is_float else gguf.GGMLQuantizationType.F32
        gain = family == "gemma" and name.endswith("norm.weight")
        raw = (
            blocks(stored.shape, kind, at)
            if each.name in BLOCK
            else gguf.quantize(stored + np.float32(gain), each)
        )
        held[name] = gguf.dequantize(raw, each) - np.float32(gain)
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            rows = raw.reshape(len(stored), -1)  # numbers of 16 bits come as bytes
            raw = turned(rows, heads if ".q_proj." in name else keys).reshape(raw.shape)
        writer.add_tensor(called(name), raw, raw_dtype=each)
    for name, numbers in (spare or {}).items():
        writer.add_tensor(name, numbers)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {name: torch.from_numpy(numbers) for name, numbers in held.items()}


def add_words(writer: gguf.GGUFWriter, folder: Path, pre: str) -> None:
    """The vocabulary of a folder's tokenizer.json. Gemma's has no merges, and runs of spaces are
    written with spaces."""
    rules = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    named = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    vocab = Tokenizer.from_file(str(folder / "tokenizer.json")).get_vocab()
    pieces = sorted(vocab, key=vocab.get)
    special = {each["content"] for each in rules["added_tokens"] if each["special"]}
    added = {each["content"] for each in rules["added_tokens"]}
    types, merges = gguf.TokenType, rules["model"]["merges"]
    sentencepiece = rules["model"].get("byte_fallback")
    is_gemma = json.loads((folder / "config.json").read_text("utf-8"))["model_type"] == "gemma"
    spelled = [
        piece.replace("▁", " ") if is_gemma and piece.strip("▁") == "" != piece[1:] else piece
        for piece in pieces
    ]
    writer.add_tokenizer_model("llama" if sentencepiece else "gpt2")
    writer.add_tokenizer_pre("default" if sentencepiece else pre)
    writer.add_token_list(spelled)
    writer.add_token_types(
        [
            types.CONTROL
            if piece in special
            else types.BYTE
            if sentencepiece and piece.startswith("<0x")
            else types.USER_DEFINED
            if " " in piece or piece in added
            else types.NORMAL
            for piece in spelled
        ]
    )
    if sentencepiece:
        writer.add_token_scores([-float(at) for at in range(len(pieces))])
    if not is_gemma:
        writer.add_token_merges([one if isinstance(one, str) else " ".join(one) for one in merges])
    for role, add in (
        ("bos", writer.add_bos_token_id),
        ("eos", writer.add_eos_token_id),
        ("unk", writer.add_unk_token_id),
        ("pad", writer.add_pad_token_id),
    ):
        if (token := named.get(f"{role}_token")) in vocab:
            add(pieces.index(token))
    framed = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("a")
    writer.add_add_bos_token(bool(framed.special_tokens_mask[0]))
    if sentencepiece:
        writer.add_add_space_prefix(not is_gemma)
