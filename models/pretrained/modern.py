"""The families of today, as plain configurations of our own classes: Llama, Mistral, Qwen2, Qwen3,
Gemma, GPT-NeoX (Pythia) and OPT, each with the table of where our tensors lie in its files.

What they have that the paper has not stands in models/since.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from models.config import Config
from models.pretrained.described import activation, longest, rotary, window
from models.pretrained.files import NotLoaded

Tensors = dict[str, Tensor]


def pair(
    ours: str, theirs: str, tensors: Tensors, bias: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """A matrix, or a norm's gain, and its bias where it has one."""
    yield f"{ours}.weight", tensors[f"{theirs}.weight"]
    if bias:
        yield f"{ours}.bias", tensors[f"{theirs}.bias"]


def readout(described: dict, tensors: Tensors, tied: bool) -> str | None:
    """ "tied", "untied", or None where the files hold no readout. tied: what the family does where
    its config.json does not say it."""
    if described.get("tie_word_embeddings", tied):
        return "tied"
    return "untied" if "lm_head.weight" in tensors or not tensors else None


def words(config: Config, tensors: Tensors, embedding: str) -> Iterator[tuple[str, Tensor]]:
    """The embedding and the readout; no family here has a bias there."""
    yield "embedding.token.weight", tensors[embedding]
    if config.readout == "untied":
        yield "unembedding.weight", tensors["lm_head.weight"]
    if config.readout is not None:
        yield "readout_bias", torch.zeros(config.n_vocab)


# ---- Llama, Mistral, Qwen2, Qwen3, Gemma -------------------------------------------------------


@dataclass(frozen=True)
class LikeLlama:
    """In what a family differs from Llama. head_width: d_head where config.json names none.
    shifted_gain: the gain is stored less 1. The biases: None for what config.json says."""

    bias_qkv: bool | None = None
    bias_o: bool | None = None
    key_norm: bool = False
    scaled_embedding: bool = False
    shifted_gain: bool = False
    head_width: int | None = None
    tied: bool = False


LLAMA = LikeLlama()
MISTRAL = LikeLlama(bias_qkv=False, bias_o=False)
QWEN2 = LikeLlama(bias_qkv=True, bias_o=False)
QWEN3 = LikeLlama(key_norm=True, head_width=128)
GEMMA = LikeLlama(scaled_embedding=True, shifted_gain=True, head_width=256, tied=True)


def llama_config(described: dict, tensors: Tensors, like: LikeLlama = LLAMA) -> Config:
    """Llama's: RMSNorm before the sub-layers, rotary positions, shared keys, a gated FFN."""
    n_head, n_layer = described["num_attention_heads"], described["num_hidden_layers"]
    biased = bool(described.get("attention_bias", False))
    seen, bounds = window(described, n_layer)
    bounds.append(described.get("max_position_embeddings", 2048))
    return Config(
        n_vocab=described["vocab_size"],
        d_model=described["hidden_size"],
        n_layer=n_layer,
        n_head=n_head,
        d_ff=described["intermediate_size"],
        n_positions=longest(bounds, n_head, n_layer),
        norm="pre",
        activation=activation(described.get("hidden_act", "silu")),
        eps=described.get("rms_norm_eps", 1e-6),
        scaled_embedding=like.scaled_embedding,
        readout=readout(described, tensors, like.tied),
        rms=True,
        n_key_head=described.get("num_key_value_heads") or n_head,
        head_width=described.get("head_dim") or like.head_width,
        key_norm=like.key_norm,
        gated=True,
        window=seen,
        bias_qkv=biased if like.bias_qkv is None else like.bias_qkv,
        bias_o=biased if like.bias_o is None else like.bias_o,
        bias_ffn=bool(described.get("mlp_bias", False)),
        **rotary(described),
    )


def llama_tensors(
    config: Config, tensors: Tensors, like: LikeLlama = LLAMA
) -> Iterator[tuple[str, Tensor]]:
    """Our names with Llama's tensors. Gemma's gains are 1 + what is stored."""

    def gain(ours: str, theirs: str) -> tuple[str, Tensor]:
        stored = tensors[f"{theirs}.weight"]
        return f"{ours}.weight", 1.0 + stored.float() if like.shifted_gain else stored

    yield from words(config, tensors, "embed_tokens.weight")
    for layer in range(config.n_layer):
        ours, theirs = f"layers.{layer}", f"layers.{layer}"
        for name in "qkv":
            at = f"{ours}.attention.w_{name}", f"{theirs}.self_attn.{name}_proj"
            yield from pair(*at, tensors, config.bias_qkv)
        if config.key_norm:
            yield gain(f"{ours}.attention.q_norm", f"{theirs}.self_attn.q_norm")
            yield gain(f"{ours}.attention.k_norm", f"{theirs}.self_attn.k_norm")
        at = f"{ours}.attention.w_o", f"{theirs}.self_attn.o_proj"
        yield from pair(*at, tensors, config.bias_o)
        for name, called in (("w_gate", "gate"), ("w_1", "up"), ("w_2", "down")):
            at = f"{ours}.feed_forward.{name}", f"{theirs}.mlp.{called}_proj"
            yield from pair(*at, tensors, config.bias_ffn)
        yield gain(f"{ours}.attention_out.norm", f"{theirs}.input_layernorm")
        yield gain(f"{ours}.feed_forward_out.norm", f"{theirs}.post_attention_layernorm")
    yield gain("last_norm.norm", "norm")


# ---- GPT-NeoX, Pythia --------------------------------------------------------------------------


def neox_config(described: dict, tensors: Tensors) -> Config:
    """GPT-NeoX's: rotary positions in a quarter of each head, attention and FFN side by side."""
    n_head, n_layer = described["num_attention_heads"], described["num_hidden_layers"]
    told = described.get("rope_parameters") or described.get("rope_scaling") or {}
    share = told.get("partial_rotary_factor") or described.get("rotary_pct", 0.25)
    biased = described.get("attention_bias", True)
    return Config(
        n_vocab=described["vocab_size"],
        d_model=described["hidden_size"],
        n_layer=n_layer,
        n_head=n_head,
        d_ff=described["intermediate_size"],
        n_positions=longest([described.get("max_position_embeddings", 2048)], n_head, n_layer),
        norm="pre",
        activation=activation(described.get("hidden_act", "gelu")),
        eps=described.get("layer_norm_eps", 1e-5),
        scaled_embedding=False,
        readout=readout(described, tensors, False),
        parallel=described.get("use_parallel_residual", True),
        bias_qkv=biased,
        bias_o=biased,
        **rotary(described, share),
    )


def neox_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with GPT-NeoX's tensors: q, k and v are stored in one matrix, head by head."""
    yield from words(config, tensors, "embed_in.weight")
    for layer in range(config.n_layer):
        ours, theirs = f"layers.{layer}", f"layers.{layer}"
        for part in ("weight", "bias") if config.bias_qkv else ("weight",):
            whole = tensors[f"{theirs}.attention.query_key_value.{part}"]
            whole = whole.unflatten(0, (config.n_head, 3, config.d_head))
            for at, name in enumerate("qkv"):
                yield f"{ours}.attention.w_{name}.{part}", whole[:, at].flatten(0, 1)
        yield from pair(
            f"{ours}.attention.w_o", f"{theirs}.attention.dense", tensors, config.bias_o
        )
        for name, called in (
            ("feed_forward.w_1", "mlp.dense_h_to_4h"),
            ("feed_forward.w_2", "mlp.dense_4h_to_h"),
            ("attention_out.norm", "input_layernorm"),
            ("feed_forward_out.norm", "post_attention_layernorm"),
        ):
            yield from pair(f"{ours}.{name}", f"{theirs}.{called}", tensors)
    yield from pair("last_norm.norm", "final_layer_norm", tensors)


# ---- OPT ---------------------------------------------------------------------------------------

SKIPPED = 2  # rows of OPT's table of positions that no token ever has


def opt_config(described: dict, tensors: Tensors) -> Config:
    """OPT's: GPT-2's arrangement with ReLU; the smallest but one has its norms after the sums."""
    d_model, n_layer = described["hidden_size"], described["num_hidden_layers"]
    n_head, before = described["num_attention_heads"], described.get("do_layer_norm_before", True)
    if (described.get("word_embed_proj_dim") or d_model) != d_model:
        raise NotLoaded("an OPT whose embeddings are narrower than its stream does not run there")
    if before and described.get("_remove_final_layer_norm"):
        raise NotLoaded("an OPT without a last LayerNorm does not run there")
    biased = described.get("enable_bias", True)
    return Config(
        n_vocab=described["vocab_size"],
        d_model=d_model,
        n_layer=n_layer,
        n_head=n_head,
        d_ff=described["ffn_dim"],
        n_positions=longest([described["max_position_embeddings"]], n_head, n_layer),
        norm="pre" if before else "post",
        positions="learned",
        activation=activation(described.get("activation_function", "relu")),
        scaled_embedding=False,
        readout=readout(described, tensors, True),
        bias_qkv=biased,
        bias_o=biased,
        bias_ffn=biased,
    )


OPT_LAYER = {
    "attention.w_q": "self_attn.q_proj",
    "attention.w_k": "self_attn.k_proj",
    "attention.w_v": "self_attn.v_proj",
    "attention.w_o": "self_attn.out_proj",
    "feed_forward.w_1": "fc1",
    "feed_forward.w_2": "fc2",
    "attention_out.norm": "self_attn_layer_norm",
    "feed_forward_out.norm": "final_layer_norm",
}


def opt_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with OPT's tensors."""
    yield from words(config, tensors, "decoder.embed_tokens.weight")
    rows = tensors["decoder.embed_positions.weight"]
    yield "embedding.position", rows[SKIPPED : SKIPPED + config.n_positions]
    for layer in range(config.n_layer):
        for ours, theirs in OPT_LAYER.items():
            bias = config.bias_qkv or ours.endswith("norm")
            at = f"layers.{layer}.{ours}", f"decoder.layers.{layer}.{theirs}"
            yield from pair(*at, tensors, bias)
    if config.norm == "pre":
        yield from pair("last_norm.norm", "decoder.final_layer_norm", tensors)


Entry = tuple[
    str,
    Callable[[dict, Tensors], Config],
    Callable[[Config, Tensors], Iterator[tuple[str, Tensor]]],
]
FAMILIES: dict[str, Entry] = {
    "gpt_neox": ("gpt_neox.", neox_config, neox_tensors),
    "opt": ("model.", opt_config, opt_tensors),
    **{
        name: ("model.", partial(llama_config, like=like), partial(llama_tensors, like=like))
        for name, like in (
            ("llama", LLAMA),
            ("mistral", MISTRAL),
            ("qwen2", QWEN2),
            ("qwen3", QWEN3),
            ("gemma", GEMMA),
        )
    },
}
