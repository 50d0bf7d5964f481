"""Convert a `.gguf` file to Hugging Face files, in a process of its own:

    python -m models.pretrained.gguf_conversion FILE FOLDER NAME

Tensors are dequantised by the reference functions of the `gguf` package, some rows at a time. The
rows of Llama's q and k are put back into the order of Hugging Face's rotary positions, and 1 is
subtracted from Gemma's gains. Matrices stored in 16 bits stay so; all else becomes float32."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from math import inf, prod
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from models import child_process
from models.pretrained import gguf_header, gguf_tokenizer, model_files
from models.pretrained.gguf import MANIFEST
from models.pretrained.machine_limits import DISK_TO_SPARE, check_size
from models.pretrained.model_files import NotLoaded

SPARE = 2 << 30  # bytes beside the file: the vocabulary's many small pieces, and the libraries
SECONDS = 290
AT_ONCE = 1 << 22  # numbers that are dequantised at a time
ALIGNED = 64  # bytes
AS_STORED = {"F16": "F16", "BF16": "BF16"}

# By architecture: Hugging Face's model_type and class, and its activation.
FAMILIES = {
    "llama": ("llama", "LlamaForCausalLM", "silu"),
    "mistral": ("mistral", "MistralForCausalLM", "silu"),
    "qwen2": ("qwen2", "Qwen2ForCausalLM", "silu"),
    "qwen3": ("qwen3", "Qwen3ForCausalLM", "silu"),
    "gemma": ("gemma", "GemmaForCausalLM", "gelu_pytorch_tanh"),
}
OUTSIDE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
INSIDE = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
IN_A_LAYER = re.compile(r"blk\.(\d+)\.([a-z_]+)\.(weight|bias)")
STRETCH = "rope_freqs.weight"  # what each pair's angle is divided by, as Llama 3.1 has it
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}


class PlainReader(gguf.GGUFReader):
    """The package's reader, over a plain array: it makes three slices of each word, and one of a
    memory map costs several times as much."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, np.asarray(value) if name == "data" else value)


class GGUFHeader:
    """The metadata of a file, by key without the architecture before it."""

    def __init__(self, reader: gguf.GGUFReader) -> None:
        self.fields = reader.fields
        self.architecture = str(self.field("general.architecture", ""))

    def field(self, key: str, otherwise: Any = None) -> Any:
        """The value of a key as it is spelled in the file."""
        entry = self.fields.get(key)
        return otherwise if entry is None else entry.contents()

    def all(self, beginning: str) -> dict[str, Any]:
        """The values of all keys that begin so."""
        return {key: self.field(key) for key in self.fields if key.startswith(beginning)}

    def own(self, key: str, otherwise: Any = None) -> Any:
        """The value of a key that the architecture's name stands before."""
        return self.field(f"{self.architecture}.{key}", otherwise)

    def size(self, key: str, otherwise: int | None = None) -> int:
        """As `own`, a whole number above 0. Raises NotLoaded where it is none."""
        return int(self._above_0(key, int, "a whole number above 0", otherwise))

    def positive(self, key: str, otherwise: float | None = None) -> float:
        """As `own`, a number above 0. Raises NotLoaded where it is none."""
        return float(self._above_0(key, (int, float), "a number above 0", otherwise))

    def _above_0(self, key: str, kind: Any, what: str, otherwise: float | None) -> Any:
        value = self.own(key, otherwise)
        if value is None:
            raise NotLoaded(f"the file does not say {self.architecture}.{key}")
        if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value < inf:
            value_of_file = f"{self.architecture}.{key} is {str(value)[:20]}"
            raise NotLoaded(f"the file says {value_of_file}, and it is {what}")
        return value


def config_of(meta: GGUFHeader, tensors: dict[str, Any]) -> dict[str, Any]:
    """The config.json of a file. Raises NotLoaded for what our classes do not run."""
    if meta.architecture not in FAMILIES:
        raise NotLoaded(
            f"it is of the architecture {meta.architecture[:40]!r}; {', '.join(FAMILIES)} run here"
        )
    if meta.own("expert_count", 0):
        raise NotLoaded("it has several experts in each layer, which does not run here")
    if meta.field("split.count", 1) > 1:
        raise NotLoaded("it is one of several files of a model; join them to one file first")
    if "token_embd.weight" not in tensors:
        raise NotLoaded("it holds no embedding")
    window = meta.own("attention.sliding_window", 0)
    family = "mistral" if meta.architecture == "llama" and window else meta.architecture
    model_type, kind, activation = FAMILIES[family]
    d_model, n_head = meta.size("embedding_length"), meta.size("attention.head_count")
    width = meta.size("attention.key_length", d_model // n_head)
    if meta.size("attention.value_length", width) != width:
        raise NotLoaded("its values are not as wide as its keys, which does not run here")
    if meta.size("rope.dimension_count", width) != width:
        raise NotLoaded("it turns a part of each head alone, which does not run here")
    config = {
        "architectures": [kind],
        "model_type": model_type,
        "vocab_size": tensors["token_embd.weight"].shape.tolist()[-1],
        "hidden_size": d_model,
        "intermediate_size": meta.size("feed_forward_length"),
        "num_hidden_layers": meta.size("block_count"),
        "num_attention_heads": n_head,
        "num_key_value_heads": meta.size("attention.head_count_kv", n_head),
        "head_dim": width,
        "hidden_act": activation,
        "max_position_embeddings": meta.size("context_length"),
        "rms_norm_eps": meta.positive("attention.layer_norm_rms_epsilon"),
        "rope_theta": meta.positive("rope.freq_base", 10000.0),
        "attention_bias": "blk.0.attn_output.bias" in tensors,
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": meta.field("tokenizer.ggml.bos_token_id"),
        "eos_token_id": meta.field("tokenizer.ggml.eos_token_id"),
        "pad_token_id": meta.field("tokenizer.ggml.padding_token_id"),
    }
    if window:
        config |= {"sliding_window": window, "use_sliding_window": True}
    if (scaling := _scaling(meta, tensors, width)) is not None:
        config["rope_scaling"] = scaling
    return config


def _scaling(meta: GGUFHeader, tensors: dict[str, Any], width: int) -> dict[str, Any] | None:
    """The scaling of rotary positions, as in config.json. Raises NotLoaded for a kind that our
    classes do not have."""
    if STRETCH in tensors:
        factors = _numbers(tensors[STRETCH]).ravel()
        scaling = {"rope_type": "llama3", "factor": float(factors.max()), **LLAMA3}
        base = meta.positive("rope.freq_base", 10000.0)
        if not np.allclose(_llama3(scaling, base, width), factors, rtol=1e-3):
            raise NotLoaded("its rotary positions are stretched in a way that does not run here")
        return scaling
    kind = meta.own("rope.scaling.type", "none")
    factor = meta.own("rope.scaling.factor") or meta.own("rope.scale_linear") or 1.0
    if kind in ("none", "linear") and factor == 1.0:
        return None
    if kind not in ("linear", "none"):
        raise NotLoaded(f"its rotary positions are stretched by {kind[:20]!r}")
    return {"rope_type": "linear", "factor": float(factor)}


def _llama3(scaling: dict[str, Any], base: float, width: int) -> np.ndarray:
    """The divisor of each pair's angle in Llama 3."""
    rate = 1.0 / base ** (np.arange(0, width, 2) / width)
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    trained = scaling["original_max_position_embeddings"]
    part = np.clip((trained * rate / (2 * np.pi) - low) / (high - low), 0, 1)
    return 1 / ((1 - part) / scaling["factor"] + part)


# ---- weights ---------------------------------------------------------------------------------


def hf_name(name: str) -> str | None:
    """Hugging Face's name of a tensor; None for one that config.json stands for. Raises NotLoaded
    for a name that no family here has."""
    if name == STRETCH or name.endswith(".attn_rot_embd"):
        return None
    if name in OUTSIDE:
        return OUTSIDE[name]
    match = IN_A_LAYER.fullmatch(name)
    if match is None or match[2] not in INSIDE:
        raise NotLoaded(f"it holds a tensor {name[:60]!r}, which no model that runs here has")
    return f"model.layers.{match[1]}.{INSIDE[match[2]]}.{match[3]}"


def _numbers(tensor: Any) -> np.ndarray:
    """A small tensor's numbers, float32."""
    return gguf.dequantize(tensor.data, tensor.tensor_type)


def row_order(name: str, n_rows: int, config: dict[str, Any]) -> np.ndarray:
    """The row of a stored tensor for each row of Hugging Face's. In Llama's q and k the two halves
    of a head's dimensions alternate in the file; Hugging Face has one after the other."""
    rows = np.arange(n_rows)
    match = re.search(r"\.attn_([qk])\.", name)
    if match is None or config["model_type"] not in ("llama", "mistral"):
        return rows
    n_head = config["num_attention_heads" if match[1] == "q" else "num_key_value_heads"]
    return rows.reshape(n_head, -1, 2).swapaxes(1, 2).ravel()


def tensor_bytes(tensor: Any, config: dict[str, Any]) -> Iterator[bytes]:
    """A tensor's numbers as they lie in safetensors, some rows at a time."""
    shape = tensor.shape.tolist()[::-1]
    dtype = tensor.tensor_type
    shifted = config["model_type"] == "gemma" and tensor.name.endswith("_norm.weight")
    rows = row_order(tensor.name, shape[0], config)
    if len(shape) == 1:
        numbers = _numbers(tensor).astype(np.float32, copy=False)[rows]
        yield (numbers - np.float32(1) if shifted else numbers).tobytes()
        return
    stored = tensor.data.reshape(len(rows), -1)
    step = max(1, AT_ONCE // shape[-1])
    for at in range(0, len(rows), step):
        chunk = np.ascontiguousarray(stored[rows[at : at + step]])
        yield (
            chunk.tobytes()
            if dtype.name in AS_STORED
            else gguf.dequantize(chunk, dtype).astype(np.float32, copy=False).tobytes()
        )


def write_weights(tensors: dict[str, Any], config: dict[str, Any], goal: Path) -> None:
    """Write model.safetensors, a tensor at a time."""
    hf_tensors = {
        hf_key: each for name, each in tensors.items() if (hf_key := hf_name(name)) is not None
    }
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in hf_tensors.items():
        shape = tensor.shape.tolist()[::-1]
        dtype = "F32" if len(shape) == 1 else AS_STORED.get(tensor.tensor_type.name, "F32")
        begin, end = end, end + prod(shape) * model_files.BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    header_bytes = json.dumps(header).encode()
    header_bytes += b" " * (-(8 + len(header_bytes)) % ALIGNED)
    with goal.open("wb") as stream:
        stream.write(len(header_bytes).to_bytes(8, "little") + header_bytes)
        for tensor in hf_tensors.values():
            for piece in tensor_bytes(tensor, config):
                stream.write(piece)


def stored_as(tensors: dict[str, Any]) -> str:
    """The types of a file's matrices, the most used first: "Q4_1 and Q8_0"."""
    counts: dict[str, int] = {}
    for tensor in tensors.values():
        if len(tensor.shape) > 1:
            kind = tensor.tensor_type.name
            counts[kind] = counts.get(kind, 0) + int(tensor.n_elements)
    return " and ".join(sorted(counts, key=lambda kind: -counts[kind]))


# ---- the process -----------------------------------------------------------------------------


def convert(source: Path, goal: Path, name: str) -> None:
    """Write a GGUF file into a folder as Hugging Face files. Raises NotLoaded."""
    gguf_header.check(source, name)
    try:
        reader = PlainReader(source)
    except MemoryError:
        raise
    except Exception as error:  # files from anywhere fail in any way
        raise NotLoaded(
            f"{name} is no GGUF file, or it is cut short or broken; check the file."
        ) from error
    tensors = {each.name: each for each in reader.tensors}
    meta = GGUFHeader(reader)
    try:
        config = config_of(meta, tensors)
        for tensor in tensors.values():
            if hf_name(tensor.name) is None and not np.isfinite(_numbers(tensor)).all():
                raise NotLoaded(model_files.not_finite(name, tensor.name))
        count = sum(int(each.n_elements) for each in tensors.values())
        check_size(count, 0, name)
        model_files.check_numbers(config, name)
        _limit_files(4 * count, goal)
        template = meta.field("tokenizer.chat_template", "")
        metadata = meta.all("tokenizer.")
        eos_ids = gguf_tokenizer.write(metadata, meta.architecture, goal, template)
        write_weights(tensors, config, goal / "model.safetensors")
    except NotLoaded as error:
        problem = str(error)
        raise NotLoaded(
            problem if name in problem else f"{name} cannot be opened: {problem}."
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        raise NotLoaded(
            f"The parts of {name} do not fit together; choose another model."
        ) from error
    settings = {"eos_token_id": eos_ids}
    for file, content in (("config.json", config), ("generation_config.json", settings)):
        (goal / file).write_text(json.dumps(content, indent=2), "utf-8")
    files = sorted(path for path in goal.iterdir() if path.is_file())
    manifest = {
        "weights": f"{stored_as(tensors)} (GGUF), dequantised",
        "chat_template": template,
        "digests": {path.name: [model_files.digest([path]), path.stat().st_size] for path in files},
    }
    (goal / MANIFEST).write_text(json.dumps(manifest, indent=2), "utf-8")


def _limit_files(size: int, goal: Path) -> None:
    """Bound what this process writes to what the weights explain. Raises NotLoaded where the disk
    has no room for it."""
    if size + DISK_TO_SPARE > (room := shutil.disk_usage(goal).free):
        raise NotLoaded(
            f"it takes {size / 1e9:.1f} GB of disk once converted and {room / 1e9:.1f} GB are free"
        )
    most = size + model_files.MOST_VOCABULARY
    child_process.limit_files(most)


def main(source: str, goal: str, name: str) -> None:
    """Convert and answer in one line: {"problem": ""}, or a sentence there."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    child_process.end_with_parent()
    child_process.prefer_oom_kill()
    child_process.limit(Path(source).stat().st_size + SPARE, SECONDS)
    try:
        convert(Path(source), Path(goal), name)
        problem = ""
    except NotLoaded as error:
        problem = " ".join(str(error).split())
    except MemoryError:
        problem = f"Converting {name} took more memory than its weights explain; choose another."
    print(json.dumps({"problem": problem}), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
