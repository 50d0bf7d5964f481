"""Pretrained weights of Hugging Face families, running in our own classes: BERT's and GPT-2 here,
those of today in models/pretrained/weight_conversion.py.

A family is a plain configuration of `models/network/transformer.py` and a table of where each of
our tensors is called what in its files; no forward pass knows of any of them. So every switch,
every cell's anatomy and every readout works on them as on our own models.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from models.contract.recording import NotEncoded
from models.network.config import Config
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Decoder, Encoder, Transformer
from models.pretrained import gguf, lora, model_files, weight_checks
from models.pretrained.config_mapping import (
    activation,
    attention_window,
    max_text_length,
    rotary_fields,
    rotary_share,
    saved_head,
)
from models.pretrained.mapped_weights import Unfilled, map_weights
from models.pretrained.model_files import NotLoaded, remedy
from models.tokens import chat_template, encoding
from models.tokens.tokenizer import Tokenizer

# The families of today, as plain configurations of our own classes: Llama, Mistral, Qwen2, Qwen3,
# Gemma, Phi-3, GPT-NeoX (Pythia) and OPT, each with the table of where our tensors lie in its
# files.

Tensors = dict[str, Tensor]


def weight_and_bias(
    ours: str, theirs: str, tensors: Tensors, bias: bool = True
) -> Iterator[tuple[str, Tensor]]:
    """A matrix, or a norm's gain, and its bias where it has one."""
    yield f"{ours}.weight", tensors[f"{theirs}.weight"]
    if bias:
        yield f"{ours}.bias", tensors[f"{theirs}.bias"]


def readout_kind(hf_config: dict, tensors: Tensors, tied: bool) -> str | None:
    """ "tied", "untied", or None where the files hold no readout. tied: what the family does where
    its config.json does not say it."""
    if hf_config.get("tie_word_embeddings", tied):
        return "tied"
    return "untied" if "lm_head.weight" in tensors or not tensors else None


def embedding_tensors(
    config: Config, tensors: Tensors, embedding: str
) -> Iterator[tuple[str, Tensor]]:
    """The embedding and the readout; no family here has a bias there."""
    yield "embedding.token.weight", tensors[embedding]
    if config.readout == "untied":
        yield "unembedding.weight", tensors["lm_head.weight"]
    if config.readout is not None:
        yield "readout_bias", torch.zeros(config.n_vocab)


# ---- Llama, Mistral, Qwen2, Qwen3, Gemma, Phi-3 ------------------------------------------------


@dataclass(frozen=True)
class LlamaVariant:
    """In what a family differs from Llama. head_width: d_head where config.json names none.
    shifted_gain: the gain is stored less 1. fused: q, k and v are stored in one matrix, and so are
    the gate and what it multiplies. The biases: None for what config.json says."""

    bias_qkv: bool | None = None
    bias_o: bool | None = None
    key_norm: bool = False
    scaled_embedding: bool = False
    shifted_gain: bool = False
    head_width: int | None = None
    tied: bool = False
    fused: bool = False


LLAMA = LlamaVariant()
MISTRAL = LlamaVariant(bias_qkv=False, bias_o=False)
QWEN2 = LlamaVariant(bias_qkv=True, bias_o=False)
QWEN3 = LlamaVariant(key_norm=True, head_width=128)
PHI3 = LlamaVariant(fused=True)
GEMMA = LlamaVariant(scaled_embedding=True, shifted_gain=True, head_width=256, tied=True)


def llama_config(hf_config: dict, tensors: Tensors, variant: LlamaVariant = LLAMA) -> Config:
    """Llama's: RMSNorm before the sub-layers, rotary positions, shared keys, a gated FFN."""
    n_head, n_layer = hf_config["num_attention_heads"], hf_config["num_hidden_layers"]
    biased = bool(hf_config.get("attention_bias", False))
    window_size, full_layers = attention_window(hf_config, n_layer)
    bounds = [hf_config.get("max_position_embeddings", 2048)]
    return Config(
        n_vocab=hf_config["vocab_size"],
        d_model=hf_config["hidden_size"],
        n_layer=n_layer,
        n_head=n_head,
        d_ff=hf_config["intermediate_size"],
        n_positions=max_text_length(bounds, n_head, n_layer),
        norm="pre",
        activation=activation(hf_config.get("hidden_act", "silu")),
        eps=hf_config.get("rms_norm_eps", 1e-6),
        scaled_embedding=variant.scaled_embedding,
        readout=readout_kind(hf_config, tensors, variant.tied),
        rms=True,
        n_key_head=hf_config.get("num_key_value_heads") or n_head,
        head_width=hf_config.get("head_dim") or variant.head_width,
        key_norm=variant.key_norm,
        gated=True,
        window=window_size,
        full_layers=full_layers,
        bias_qkv=biased if variant.bias_qkv is None else variant.bias_qkv,
        bias_o=biased if variant.bias_o is None else variant.bias_o,
        bias_ffn=bool(hf_config.get("mlp_bias", False)),
        **rotary_fields(hf_config, rotary_share(hf_config, 1.0) if variant.fused else 1.0),
    )


def llama_tensors(
    config: Config, tensors: Tensors, variant: LlamaVariant = LLAMA
) -> Iterator[tuple[str, Tensor]]:
    """Our names with Llama's tensors. Gemma's gains are 1 + what is stored."""

    def gain(ours: str, theirs: str) -> tuple[str, Tensor]:
        stored = tensors[f"{theirs}.weight"]
        return f"{ours}.weight", 1.0 + stored.float() if variant.shifted_gain else stored

    yield from embedding_tensors(config, tensors, "embed_tokens.weight")
    tensors = tensors | unfused(config, tensors) if variant.fused else tensors
    for layer in range(config.n_layer):
        ours, theirs = f"layers.{layer}", f"layers.{layer}"
        for name in "qkv":
            names = f"{ours}.attention.w_{name}", f"{theirs}.self_attn.{name}_proj"
            yield from weight_and_bias(*names, tensors, config.bias_qkv)
        if config.key_norm:
            yield gain(f"{ours}.attention.q_norm", f"{theirs}.self_attn.q_norm")
            yield gain(f"{ours}.attention.k_norm", f"{theirs}.self_attn.k_norm")
        names = f"{ours}.attention.w_o", f"{theirs}.self_attn.o_proj"
        yield from weight_and_bias(*names, tensors, config.bias_o)
        for name, hf_part in (("w_gate", "gate"), ("w_1", "up"), ("w_2", "down")):
            names = f"{ours}.feed_forward.{name}", f"{theirs}.mlp.{hf_part}_proj"
            yield from weight_and_bias(*names, tensors, config.bias_ffn)
        yield gain(f"{ours}.attention_out.norm", f"{theirs}.input_layernorm")
        yield gain(f"{ours}.feed_forward_out.norm", f"{theirs}.post_attention_layernorm")
    yield gain("last_norm.norm", "norm")


def unfused(config: Config, tensors: Tensors) -> Tensors:
    """Phi-3's matrices by Llama's names: q, k and v are stored one below the other, and so are the
    gate and what it multiplies."""
    queries, keys = config.n_head * config.d_head, config.key_heads * config.d_head
    single: Tensors = {}
    for layer in range(config.n_layer):
        attention, mlp = f"layers.{layer}.self_attn", f"layers.{layer}.mlp"
        of_heads = tensors[f"{attention}.qkv_proj.weight"].split((queries, keys, keys))
        single |= {f"{attention}.{name}_proj.weight": each for name, each in zip("qkv", of_heads)}
        of_ffn = tensors[f"{mlp}.gate_up_proj.weight"].chunk(2)
        single |= {f"{mlp}.{name}_proj.weight": each for name, each in zip(("gate", "up"), of_ffn)}
    return single


# ---- GPT-NeoX, Pythia --------------------------------------------------------------------------


def neox_config(hf_config: dict, tensors: Tensors) -> Config:
    """GPT-NeoX's: rotary positions in a quarter of each head, attention and FFN side by side."""
    n_head, n_layer = hf_config["num_attention_heads"], hf_config["num_hidden_layers"]
    share = rotary_share(hf_config, hf_config.get("rotary_pct", 0.25))
    biased = hf_config.get("attention_bias", True)
    return Config(
        n_vocab=hf_config["vocab_size"],
        d_model=hf_config["hidden_size"],
        n_layer=n_layer,
        n_head=n_head,
        d_ff=hf_config["intermediate_size"],
        n_positions=max_text_length(
            [hf_config.get("max_position_embeddings", 2048)], n_head, n_layer
        ),
        norm="pre",
        activation=activation(hf_config.get("hidden_act", "gelu")),
        eps=hf_config.get("layer_norm_eps", 1e-5),
        scaled_embedding=False,
        readout=readout_kind(hf_config, tensors, False),
        parallel=hf_config.get("use_parallel_residual", True),
        bias_qkv=biased,
        bias_o=biased,
        **rotary_fields(hf_config, share),
    )


def neox_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with GPT-NeoX's tensors: q, k and v are stored in one matrix, head by head."""
    yield from embedding_tensors(config, tensors, "embed_in.weight")
    for layer in range(config.n_layer):
        ours, theirs = f"layers.{layer}", f"layers.{layer}"
        for part in ("weight", "bias") if config.bias_qkv else ("weight",):
            fused = tensors[f"{theirs}.attention.query_key_value.{part}"]
            fused = fused.unflatten(0, (config.n_head, 3, config.d_head))
            for index, name in enumerate("qkv"):
                yield f"{ours}.attention.w_{name}.{part}", fused[:, index].flatten(0, 1)
        yield from weight_and_bias(
            f"{ours}.attention.w_o", f"{theirs}.attention.dense", tensors, config.bias_o
        )
        for name, hf_part in (
            ("feed_forward.w_1", "mlp.dense_h_to_4h"),
            ("feed_forward.w_2", "mlp.dense_4h_to_h"),
            ("attention_out.norm", "input_layernorm"),
            ("feed_forward_out.norm", "post_attention_layernorm"),
        ):
            yield from weight_and_bias(f"{ours}.{name}", f"{theirs}.{hf_part}", tensors)
    yield from weight_and_bias("last_norm.norm", "final_layer_norm", tensors)


# ---- OPT ---------------------------------------------------------------------------------------

SKIPPED = 2  # rows of OPT's table of positions that no token ever has


def opt_config(hf_config: dict, tensors: Tensors) -> Config:
    """OPT's: GPT-2's arrangement with ReLU; the smallest but one has its norms after the sums."""
    d_model, n_layer = hf_config["hidden_size"], hf_config["num_hidden_layers"]
    n_head, before = hf_config["num_attention_heads"], hf_config.get("do_layer_norm_before", True)
    if (hf_config.get("word_embed_proj_dim") or d_model) != d_model:
        raise NotLoaded("an OPT whose embeddings are narrower than its stream does not run there")
    if before and hf_config.get("_remove_final_layer_norm"):
        raise NotLoaded("an OPT without a last LayerNorm does not run there")
    biased = hf_config.get("enable_bias", True)
    return Config(
        n_vocab=hf_config["vocab_size"],
        d_model=d_model,
        n_layer=n_layer,
        n_head=n_head,
        d_ff=hf_config["ffn_dim"],
        n_positions=max_text_length([hf_config["max_position_embeddings"]], n_head, n_layer),
        norm="pre" if before else "post",
        positions="learned",
        activation=activation(hf_config.get("activation_function", "relu")),
        scaled_embedding=False,
        readout=readout_kind(hf_config, tensors, True),
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
    yield from embedding_tensors(config, tensors, "decoder.embed_tokens.weight")
    rows = tensors["decoder.embed_positions.weight"]
    yield "embedding.position", rows[SKIPPED : SKIPPED + config.n_positions]
    for layer in range(config.n_layer):
        for ours, theirs in OPT_LAYER.items():
            bias = config.bias_qkv or ours.endswith("norm")
            names = f"layers.{layer}.{ours}", f"decoder.layers.{layer}.{theirs}"
            yield from weight_and_bias(*names, tensors, bias)
    if config.norm == "pre":
        yield from weight_and_bias("last_norm.norm", "decoder.final_layer_norm", tensors)


Entry = tuple[
    str,
    Callable[[dict, Tensors], Config],
    Callable[[Config, Tensors], Iterator[tuple[str, Tensor]]],
]
MODERN_CONVERSIONS: dict[str, Entry] = {
    "gpt_neox": ("gpt_neox.", neox_config, neox_tensors),
    "opt": ("model.", opt_config, opt_tensors),
    **{
        name: ("model.", partial(llama_config, variant=like), partial(llama_tensors, variant=like))
        for name, like in (
            ("llama", LLAMA),
            ("mistral", MISTRAL),
            ("qwen2", QWEN2),
            ("qwen3", QWEN3),
            ("gemma", GEMMA),
            ("phi3", PHI3),
        )
    },
}


# A Hugging Face folder's tokenizer.json as a tokenizer of our own.


def tokenizer_of(folder: Path) -> tuple[Tokenizer, tuple[tuple[str, ...], tuple[str, ...]]]:
    """The tokenizer in a folder, and the special tokens that stand around a text."""
    file = folder / "tokenizer.json"
    if not file.exists():
        raise NotLoaded("the folder has no tokenizer.json, which Headlight’s own classes need")
    try:
        backend = encoding.from_file(file)
    except NotEncoded as error:
        raise NotLoaded("its tokenizer.json cannot be read") from error
    backend.no_truncation()
    backend.no_padding()
    settings_file = folder / "tokenizer_config.json"
    settings = json.loads(settings_file.read_text("utf-8")) if settings_file.exists() else {}

    def name(role: str, usual: tuple[str, ...]) -> str:
        token = settings.get(f"{role}_token")
        token = token.get("content") if isinstance(token, dict) else token
        return next(
            (each for each in (token, *usual) if each and backend.token_to_id(each) is not None), ""
        )

    pad, cls, sep, mask, bos, eos = (
        name("pad", ("[PAD]", "<pad>")),
        name("cls", ("[CLS]", "<s>")),
        name("sep", ("[SEP]", "</s>")),
        name("mask", ("[MASK]", "<mask>")),
        name("bos", ("<|endoftext|>", "<s>")),
        name("eos", ("<|endoftext|>", "</s>")),
    )
    # As the tokenizer itself frames a text: a decoder may have a [CLS] that it does not use.
    encoded = encoding.encode(backend, "a")
    text_positions = [at for at, mark in enumerate(encoded.special_tokens_mask) if not mark]
    ends = (
        (
            tuple(encoded.tokens[: text_positions[0]]),
            tuple(encoded.tokens[text_positions[-1] + 1 :]),
        )
        if text_positions
        else ((), ())
    )
    names = (pad, cls, sep, mask, bos, eos)
    eos_ids = model_files.eos_ids(folder, folder.name)
    return Tokenizer(backend, names, name("unk", ("[UNK]", "<unk>")), eos_ids), ends


# Families of Hugging Face models that are tried in the suite, with what each shows of itself.


@dataclass(frozen=True)
class SupportedFamily:
    """Capabilities of one family: `model_type` as in config.json, and an example on the hub.

    opens: q, k, v and scores as well as patterns. law: each sub-layer's output, so that the
    residual stream adds up. positions: as in `models.contract.capabilities`."""

    name: str
    model_type: str
    example: str
    kind: str
    norm: str
    positions: str
    opens: bool = True
    law: bool = True


SUPPORTED_FAMILIES = (
    SupportedFamily("BERT", "bert", "google-bert/bert-base-uncased", "encoder", "post", "learned"),
    SupportedFamily(
        "DistilBERT",
        "distilbert",
        "distilbert/distilbert-base-uncased",
        "encoder",
        "post",
        "learned",
    ),
    SupportedFamily("RoBERTa", "roberta", "FacebookAI/roberta-base", "encoder", "post", "learned"),
    SupportedFamily(
        "XLM-RoBERTa", "xlm-roberta", "FacebookAI/xlm-roberta-base", "encoder", "post", "learned"
    ),
    SupportedFamily(
        "ELECTRA", "electra", "google/electra-small-generator", "encoder", "post", "learned"
    ),
    SupportedFamily("ALBERT", "albert", "albert/albert-base-v2", "encoder", "post", "learned"),
    SupportedFamily(
        "MPNet", "mpnet", "microsoft/mpnet-base", "encoder", "post", "learned", opens=False
    ),
    SupportedFamily(
        "DeBERTa",
        "deberta-v2",
        "microsoft/deberta-v3-small",
        "encoder",
        "post",
        "relative",
        opens=False,
    ),
    SupportedFamily("GPT-2", "gpt2", "openai-community/gpt2", "decoder", "pre", "learned"),
    SupportedFamily("OPT", "opt", "facebook/opt-125m", "decoder", "pre", "learned"),
    SupportedFamily(
        "GPT-NeoX, Pythia",
        "gpt_neox",
        "EleutherAI/pythia-70m",
        "decoder",
        "pre",
        "rotary",
        law=False,
    ),
    SupportedFamily(
        "BLOOM", "bloom", "bigscience/bloom-560m", "decoder", "pre", "distance", opens=False
    ),
    SupportedFamily("Llama", "llama", "HuggingFaceTB/SmolLM2-135M", "decoder", "pre", "rotary"),
    SupportedFamily("Qwen2", "qwen2", "Qwen/Qwen2.5-0.5B", "decoder", "pre", "rotary"),
    SupportedFamily("Mistral", "mistral", "mistralai/Mistral-7B-v0.1", "decoder", "pre", "rotary"),
    SupportedFamily("Qwen3", "qwen3", "Qwen/Qwen3-0.6B", "decoder", "pre", "rotary"),
    SupportedFamily("Gemma", "gemma", "google/gemma-2b", "decoder", "pre", "rotary"),
    SupportedFamily(
        "Phi-3", "phi3", "microsoft/Phi-3-mini-4k-instruct", "decoder", "pre", "rotary"
    ),
    SupportedFamily("Gemma 2", "gemma2", "google/gemma-2-2b", "decoder", "both", "rotary"),
    SupportedFamily("Gemma 3", "gemma3_text", "google/gemma-3-270m", "decoder", "both", "rotary"),
    SupportedFamily("OLMo 2", "olmo2", "allenai/OLMo-2-0425-1B", "decoder", "branch", "rotary"),
    SupportedFamily("T5", "t5", "google-t5/t5-small", "encoder-decoder", "pre", "buckets"),
    SupportedFamily("BART", "bart", "facebook/bart-base", "encoder-decoder", "post", "learned"),
    SupportedFamily(
        "Marian", "marian", "Helsinki-NLP/opus-mt-en-fr", "encoder-decoder", "post", "sinusoids"
    ),
)


@dataclass(frozen=True)
class WeightMapping:
    """Conversion of a family's files into one of our models.

    prefix: the prefix of the names where the file has a readout too. config: from its config.json
    and its tensors (prefix removed). tensors: (our name, tensor) for everything that the model has.
    tied: its readout is always its embedding."""

    model: type[Transformer]
    prefix: str
    config: Callable[[dict, Tensors], Config]
    tensors: Callable[[Config, Tensors], Iterator[tuple[str, Tensor]]]
    tied: bool = True


def load(folder: Path, name: str, document_mark: str = "") -> OwnModel:
    """The model in a folder of Hugging Face files, in fp32, in our own classes. document_mark: the
    special token that it reads before a text where its tokenizer puts none there.

    Raises ValueError, saying what is missing, for a family or a variant that our classes do not
    cover, and for a broken folder.
    """
    hf_config = model_files.read_config(folder, name)
    family = hf_config.get("model_type")
    if family not in CONVERSIONS:
        raise NotLoaded(
            f"{name} is of the family {family!r}; in Headlight’s own classes run "
            f"{', '.join(CONVERSIONS)}"
        )
    try:
        digest = model_files.digest([*model_files.weights_of(folder, name), *lora.files(folder)])
        gguf.check_digest(folder, digest, name)
        tensors, release_pages = map_weights(folder, name)
        model = build(hf_config, tensors, release_pages)
        tokenizer, (before, after) = tokenizer_of(folder)
        before = before or ((document_mark,) if document_mark else ())
    except gguf.Damaged:
        raise
    except NotLoaded as error:
        raise NotLoaded(
            f"{name} does not run in Headlight’s own classes: {str(error).rstrip('.')}."
        ) from error
    except Exception as error:  # files from anywhere fail in any way
        raise NotLoaded(
            f"The files of {name} do not fit together; {remedy(name)} or choose another."
        ) from error
    weight_checks.check(model, folder, name)
    dtypes = sorted(
        {
            str(tensor.dtype).removeprefix("torch.")
            for tensor in tensors.values()
            if tensor.is_floating_point()
        }
    )
    weights = gguf.manifest(folder).get("weights") or ", ".join(dtypes)
    del tensors  # the files in memory: the model has numbers of its own
    return from_network(
        model.requires_grad_(False),
        tokenizer,
        name,
        digest[:12],
        f"{weights}, computed in fp32, in Headlight’s own classes"
        + lora.note(folder)
        + model_files.without_dropout(folder, name),
        (before, after),
        chat_template.of_folder(folder, tokenizer),
    )


def covers(folder: Path) -> bool:
    """True for a folder whose model is of a family and of a variant that our classes cover."""
    hf_config = model_files.read_config(folder, str(folder))
    family = CONVERSIONS.get(hf_config.get("model_type", ""))
    if family is None or (family.tied and not hf_config.get("tie_word_embeddings", True)):
        return False
    try:
        tokenizer_of(folder)
        family.config(hf_config, {})
    except Exception:  # files from anywhere fail in any way; its own code may read them
        return False
    return True


def build(
    hf_config: dict, tensors: Tensors, release_pages: Callable[[], None] = lambda: None
) -> Transformer:
    """Our model of a family's config.json (`described`) with its tensors. `let_go` is called after
    each tensor that was copied. Raises ValueError where a tensor is missing or left over."""
    family = CONVERSIONS[hf_config["model_type"]]
    bare = {
        _current_key(key.removeprefix(family.prefix)): tensor for key, tensor in tensors.items()
    }
    config = family.config(hf_config, bare)
    if head := saved_head(hf_config.get("architectures")):
        config = replace(config, readout=None, head=head)
    _expect_all_used(family, hf_config["model_type"], config, bare)
    with torch.device("meta"), Unfilled():  # no memory for numbers that are replaced at once
        model = family.model(config).eval()
    try:
        state, copies = {}, dict.fromkeys(map(id, bare.values()))
        for key, tensor in family.tensors(config, bare):
            if (copy := copies.get(id(tensor))) is None:
                copy = tensor.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
            if id(tensor) in copies:  # one in the file: shared layers have it several times
                copies[id(tensor)] = copy
            state[key] = copy
            release_pages()
    except KeyError as error:
        raise NotLoaded(f"the weights lack {error.args[0]}") from error
    for key, expected in model.state_dict().items():
        if key in state and state[key].shape != expected.shape:
            shapes = (str(tuple(each.shape)) for each in (state[key], expected))
            raise NotLoaded(
                "{} is {} in the files and {} by the configuration".format(key, *shapes)
            )
    model.load_state_dict(state, assign=True)
    return model


# Where a readout's own matrix may lie, and the embedding that it must equal.
READOUT_MATRICES = (
    "lm_head.weight",
    "lm_head.decoder.weight",
    "cls.predictions.decoder.weight",
    "vocab_projector.weight",
    "generator_lm_head.weight",
    "predictions.decoder.weight",
)
LAYER = re.compile(r"^(?:encoder\.layer|transformer\.layer|h|(?:decoder\.)?layers)\.(\d+)\.")


def _current_key(key: str) -> str:
    """A tensor's name as it is today: early BERT files say gamma and beta, Pythia's embed_out."""
    for early, late in (
        ("LayerNorm.gamma", "LayerNorm.weight"),
        ("LayerNorm.beta", "LayerNorm.bias"),
        ("embed_out.", "lm_head."),
    ):
        key = key.replace(early, late)
    return key


def _expect_all_used(family: WeightMapping, name: str, config: Config, tensors: Tensors) -> None:
    """Raises ValueError for weights that our model would leave out: a readout of its own, or layers
    that the configuration does not name."""
    embedding = tensors.get("wte.weight" if name == "gpt2" else "embeddings.word_embeddings.weight")
    for key in READOUT_MATRICES:
        if (
            family.tied
            and key in tensors
            and embedding is not None
            and not torch.equal(tensors[key], embedding)
        ):
            raise NotLoaded(
                "its readout is not tied to its embedding, which Headlight’s own classes "
                "need; open it in its own code"
            )
    layers = {int(match.group(1)) for match in map(LAYER.match, tensors) if match}
    if layers and max(layers) >= config.n_layer:
        raise NotLoaded(
            f"its files have {max(layers) + 1} layers and its configuration names "
            f"{config.n_layer}; take a whole copy of the model"
        )


# ---- BERT, RoBERTa, DistilBERT -----------------------------------------------


def bert_config(hf_config: dict, tensors: Tensors) -> Config:
    """BERT's, RoBERTa's too; its positions begin after the padding's number there, and it says its
    words through a transform."""
    if hf_config.get("position_embedding_type", "absolute") != "absolute" or hf_config.get(
        "is_decoder"
    ):
        raise NotLoaded("only encoders with absolute positions run in Headlight’s own classes")
    return Config(
        n_vocab=hf_config["vocab_size"],
        d_model=hf_config["hidden_size"],
        n_layer=hf_config["num_hidden_layers"],
        n_head=hf_config["num_attention_heads"],
        d_ff=hf_config["intermediate_size"],
        n_positions=hf_config["max_position_embeddings"] - skipped(hf_config),
        positions="learned",
        activation=activation(hf_config.get("hidden_act", "gelu")),
        eps=hf_config.get("layer_norm_eps", 1e-12),
        scaled_embedding=False,
        embedding_norm=True,
        segment=hf_config.get("type_vocab_size", 0) > 0,
        readout="transform" if any(key in tensors for key in READOUTS) else None,
    )


def skipped(hf_config: dict) -> int:
    """The number of unused first rows of the position table: RoBERTa and XLM-RoBERTa count
    positions from the number of their padding token on."""
    like_roberta = hf_config["model_type"] in ("roberta", "xlm-roberta")
    return hf_config["pad_token_id"] + 1 if like_roberta else 0


# Where the families keep the readout's transform, its LayerNorm and its bias.
READOUTS = {
    "cls.predictions.transform.dense.weight": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    "lm_head.dense.weight": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "vocab_transform.weight": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    "generator_predictions.dense.weight": (
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
    ),
    "predictions.dense.weight": (
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.bias",
    ),
}
BERT_LAYER = {
    "attention.w_q": "attention.self.query",
    "attention.w_k": "attention.self.key",
    "attention.w_v": "attention.self.value",
    "attention.w_o": "attention.output.dense",
    "attention_out.norm": "attention.output.LayerNorm",
    "feed_forward.w_1": "intermediate.dense",
    "feed_forward.w_2": "output.dense",
    "feed_forward_out.norm": "output.LayerNorm",
}
DISTILBERT_LAYER = {
    "attention.w_q": "attention.q_lin",
    "attention.w_k": "attention.k_lin",
    "attention.w_v": "attention.v_lin",
    "attention.w_o": "attention.out_lin",
    "attention_out.norm": "sa_layer_norm",
    "feed_forward.w_1": "ffn.lin1",
    "feed_forward.w_2": "ffn.lin2",
    "feed_forward_out.norm": "output_layer_norm",
}


def bert_tensors(
    config: Config,
    tensors: Tensors,
    layer_name: Callable[[int], str] = "encoder.layer.{}".format,
    layer_names: dict[str, str] = BERT_LAYER,
) -> Iterator[tuple[str, Tensor]]:
    """Our names with BERT's tensors; RoBERTa's are called the same, DistilBERT's differ inside a
    layer."""
    yield "embedding.token.weight", tensors["embeddings.word_embeddings.weight"]
    yield (
        "embedding.position",
        tensors["embeddings.position_embeddings.weight"][-config.n_positions :],
    )
    if config.segment:
        yield "embedding.segment", tensors["embeddings.token_type_embeddings.weight"][0]
    yield from weight_and_bias("embedding.norm", "embeddings.LayerNorm", tensors)
    for layer in range(config.n_layer):
        for ours, theirs in layer_names.items():
            yield from weight_and_bias(
                f"layers.{layer}.{ours}", f"{layer_name(layer)}.{theirs}", tensors
            )
    for marker, (dense, norm, bias) in READOUTS.items():
        if config.readout and marker in tensors:
            yield from weight_and_bias("transform", dense, tensors)
            yield from weight_and_bias("transform_norm", norm, tensors)
            yield "readout_bias", tensors[bias]


def electra_config(hf_config: dict, tensors: Tensors) -> Config:
    """ELECTRA's: BERT with narrow embeddings. A generator says words, a discriminator does not."""
    config = bert_config(hf_config, tensors)
    width = hf_config.get("embedding_size", 128)
    if config.readout is not None and config.activation != "gelu":
        raise NotLoaded("an ELECTRA generator’s readout has GELU whatever its layers have")
    return config if width == config.d_model else replace(config, embedding_width=width)


def electra_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with ELECTRA's tensors."""
    if config.embedding_width is not None:
        yield from weight_and_bias("embedding.widen", "embeddings_project", tensors)
    yield from bert_tensors(config, tensors)


ALBERT_LAYER = {
    "attention.w_q": "attention.query",
    "attention.w_k": "attention.key",
    "attention.w_v": "attention.value",
    "attention.w_o": "attention.dense",
    "attention_out.norm": "attention.LayerNorm",
    "feed_forward.w_1": "ffn",
    "feed_forward.w_2": "ffn_output",
    "feed_forward_out.norm": "full_layer_layer_norm",
}


def albert_config(hf_config: dict, tensors: Tensors) -> Config:
    """ALBERT's: BERT with narrow embeddings and one layer's weights in all layers."""
    if hf_config.get("num_hidden_groups", 1) != 1 or hf_config.get("inner_group_num", 1) != 1:
        raise NotLoaded("an ALBERT with more than one layer of weights does not run there")
    config = bert_config({"hidden_act": "gelu_new"} | hf_config, tensors)
    return replace(config, embedding_width=hf_config.get("embedding_size", 128), shared_layers=True)


def albert_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with ALBERT's tensors, those of its one layer under each layer's name."""
    yield from weight_and_bias("embedding.widen", "encoder.embedding_hidden_mapping_in", tensors)
    layer = "encoder.albert_layer_groups.0.albert_layers.0"
    yield from bert_tensors(config, tensors, lambda _: layer, ALBERT_LAYER)


def distilbert_config(hf_config: dict, tensors: Tensors) -> Config:
    """DistilBERT is BERT under other names, without segments."""
    if hf_config.get("sinusoidal_pos_embds"):
        raise NotLoaded(
            "DistilBERT with sinusoidal positions does not run in Headlight’s own classes"
        )
    as_bert = {
        "model_type": "distilbert",
        "vocab_size": hf_config["vocab_size"],
        "hidden_size": hf_config["dim"],
        "num_hidden_layers": hf_config["n_layers"],
        "num_attention_heads": hf_config["n_heads"],
        "intermediate_size": hf_config["hidden_dim"],
        "max_position_embeddings": hf_config["max_position_embeddings"],
        "hidden_act": hf_config.get("activation", "gelu"),
    }
    return bert_config(as_bert, tensors)


def distilbert_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with DistilBERT's tensors."""
    return bert_tensors(config, tensors, "transformer.layer.{}".format, DISTILBERT_LAYER)


# ---- GPT-2 -------------------------------------------------------------------


def gpt2_config(hf_config: dict, tensors: Tensors) -> Config:
    """GPT-2's: LayerNorm before the sub-layers, learned positions, a readout tied to the
    embedding."""
    if (
        not hf_config.get("scale_attn_weights", True)
        or hf_config.get("scale_attn_by_inverse_layer_idx")
        or hf_config.get("add_cross_attention")
    ):
        raise NotLoaded(
            "a GPT-2 with another scale of its scores, or with cross-attention, does not run "
            "in Headlight’s own classes"
        )
    d_model = hf_config["n_embd"]
    return Config(
        n_vocab=hf_config["vocab_size"],
        d_model=d_model,
        n_layer=hf_config["n_layer"],
        n_head=hf_config["n_head"],
        d_ff=hf_config.get("n_inner") or 4 * d_model,
        n_positions=hf_config["n_positions"],
        norm="pre",
        positions="learned",
        activation=activation(hf_config.get("activation_function", "gelu_new")),
        eps=hf_config.get("layer_norm_epsilon", 1e-5),
        scaled_embedding=False,
    )


def gpt2_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with GPT-2's tensors: its matrices are stored (in, out), and those of q, k and v in
    one."""
    embedding = tensors["wte.weight"]
    yield "embedding.token.weight", embedding
    yield "embedding.position", tensors["wpe.weight"]
    for layer in range(config.n_layer):
        prefix = f"h.{layer}"
        for part in ("weight", "bias"):
            fused = tensors[f"{prefix}.attn.c_attn.{part}"].chunk(3, dim=-1)
            for ours, tensor in zip(("w_q", "w_k", "w_v"), fused):
                yield (
                    f"layers.{layer}.attention.{ours}.{part}",
                    tensor.T if part == "weight" else tensor,
                )
            for ours, theirs in (
                ("attention.w_o", "attn.c_proj"),
                ("feed_forward.w_1", "mlp.c_fc"),
                ("feed_forward.w_2", "mlp.c_proj"),
            ):
                tensor = tensors[f"{prefix}.{theirs}.{part}"]
                yield f"layers.{layer}.{ours}.{part}", tensor.T if part == "weight" else tensor
            for ours, theirs in (("attention_out.norm", "ln_1"), ("feed_forward_out.norm", "ln_2")):
                yield f"layers.{layer}.{ours}.{part}", tensors[f"{prefix}.{theirs}.{part}"]
    yield from weight_and_bias("last_norm.norm", "ln_f", tensors)
    if config.readout:
        yield "readout_bias", torch.zeros(len(embedding))


CONVERSIONS = {
    "bert": WeightMapping(Encoder, "bert.", bert_config, bert_tensors),
    "roberta": WeightMapping(Encoder, "roberta.", bert_config, bert_tensors),
    "xlm-roberta": WeightMapping(Encoder, "roberta.", bert_config, bert_tensors),
    "electra": WeightMapping(Encoder, "electra.", electra_config, electra_tensors),
    "albert": WeightMapping(Encoder, "albert.", albert_config, albert_tensors),
    "distilbert": WeightMapping(Encoder, "distilbert.", distilbert_config, distilbert_tensors),
    "gpt2": WeightMapping(Decoder, "transformer.", gpt2_config, gpt2_tensors),
    **{
        name: WeightMapping(Decoder, prefix, config, tensors, tied=False)
        for name, (prefix, config, tensors) in MODERN_CONVERSIONS.items()
    },
}
