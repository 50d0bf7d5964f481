"""Pretrained weights of Hugging Face families, running in our own classes: BERT's and GPT-2 here,
those of today in models/pretrained/modern.py.

A family is a plain configuration of `models/transformer.py` and a table of where each of our
tensors is called what in its files; no forward pass knows of any of them. So every switch, every
cell's anatomy and every readout works on them as on our own models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from models.config import Config
from models.own import Handle, handle_of
from models.pretrained import files, gguf, modern, numbers
from models.pretrained.described import activation, head_of
from models.pretrained.files import NotLoaded, mend
from models.pretrained.mapped import Unfilled, mapped
from models.pretrained.modern import Tensors, pair
from models.pretrained.own_tokenizer import tokenizer_of
from models.transformer import Decoder, Encoder, Model


@dataclass(frozen=True)
class Family:
    """How a family's files become one of our models.

    prefix: what stands before the names where the file holds a readout too. config: from its
    config.json and its tensors (prefix gone).
    tensors: (our name, tensor) for everything that the model has. tied: its readout is always its
    embedding.
    """

    model: type[Model]
    prefix: str
    config: Callable[[dict, Tensors], Config]
    tensors: Callable[[Config, Tensors], Iterator[tuple[str, Tensor]]]
    tied: bool = True


def load(folder: Path, name: str) -> Handle:
    """The model in a folder of Hugging Face files, in fp32, in our own classes.

    Raises ValueError, saying what is missing, for a family or a variant that our classes do not
    cover, and for a broken folder.
    """
    described = files.read_config(folder, name)
    family = described.get("model_type")
    if family not in FAMILIES:
        raise NotLoaded(
            f"{name} is of the family {family!r}; in Headlight’s own classes run "
            f"{', '.join(FAMILIES)}"
        )
    try:
        tensors, let_go = mapped(folder, name)
        model = build(described, tensors, let_go)
        stored = files.digest(files.weights_of(folder, name))
        gguf.check_digest(folder, stored, name)
        tokenizer, ends = tokenizer_of(folder)
    except NotLoaded as error:
        raise NotLoaded(
            f"{name} does not run in Headlight’s own classes: {str(error).rstrip('.')}."
        ) from error
    except Exception as error:  # files from anywhere fail in any way
        raise NotLoaded(
            f"The files of {name} do not fit together; {mend(name)} or choose another."
        ) from error
    numbers.check(model, name, halves="F16" in files.types(folder, name))
    kinds = sorted(
        {
            str(tensor.dtype).removeprefix("torch.")
            for tensor in tensors.values()
            if tensor.is_floating_point()
        }
    )
    weights = gguf.manifest(folder).get("weights") or ", ".join(kinds)
    del tensors  # the files in memory: the model has numbers of its own
    return handle_of(
        model,
        tokenizer,
        name,
        stored[:12],
        f"{weights}, computed in fp32, in Headlight’s own classes"
        + files.without_dropout(folder, name),
        ends,
    )


def covers(folder: Path) -> bool:
    """True for a folder whose model is of a family and of a variant that our classes cover."""
    described = files.read_config(folder, str(folder))
    family = FAMILIES.get(described.get("model_type", ""))
    if family is None or (family.tied and not described.get("tie_word_embeddings", True)):
        return False
    try:
        tokenizer_of(folder)
        family.config(described, {})
    except Exception:  # files from anywhere fail in any way; its own code may read them
        return False
    return True


def build(described: dict, tensors: Tensors, let_go: Callable[[], None] = lambda: None) -> Model:
    """Our model of a family's config.json (`described`) with its tensors. `let_go` is called after
    each tensor that was copied. Raises ValueError where a tensor is missing or left over."""
    family = FAMILIES[described["model_type"]]
    bare = {_today(key.removeprefix(family.prefix)): tensor for key, tensor in tensors.items()}
    config = family.config(described, bare)
    if head := head_of(described.get("architectures")):
        config = replace(config, readout=None, head=head)
    _expect_all_used(family, described["model_type"], config, bare)
    with torch.device("meta"), Unfilled():  # no memory for numbers that are replaced at once
        model = family.model(config).eval()
    try:
        found = {}
        for key, tensor in family.tensors(config, bare):
            found[key] = tensor.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
            let_go()
    except KeyError as missing:
        raise NotLoaded(f"the weights lack {missing.args[0]}") from missing
    for key, wanted in model.state_dict().items():
        if key in found and found[key].shape != wanted.shape:
            shapes = (str(tuple(each.shape)) for each in (found[key], wanted))
            raise NotLoaded(
                "{} is {} in the files and {} by the configuration".format(key, *shapes)
            )
    model.load_state_dict(found, assign=True)
    return model


# Where a readout's own matrix may lie, and the embedding that it must equal.
READOUT_MATRICES = (
    "lm_head.weight",
    "lm_head.decoder.weight",
    "cls.predictions.decoder.weight",
    "vocab_projector.weight",
)
LAYER = re.compile(r"^(?:encoder\.layer|transformer\.layer|h|(?:decoder\.)?layers)\.(\d+)\.")


def _today(key: str) -> str:
    """A tensor's name as it is today: early BERT files say gamma and beta, Pythia's embed_out."""
    for early, late in (
        ("LayerNorm.gamma", "LayerNorm.weight"),
        ("LayerNorm.beta", "LayerNorm.bias"),
        ("embed_out.", "lm_head."),
    ):
        key = key.replace(early, late)
    return key


def _expect_all_used(family: Family, name: str, config: Config, tensors: Tensors) -> None:
    """Raises ValueError for weights that our model would leave out: a readout of its own, or layers
    that the configuration does not name."""
    words = tensors.get("wte.weight" if name == "gpt2" else "embeddings.word_embeddings.weight")
    for key in READOUT_MATRICES:
        if (
            family.tied
            and key in tensors
            and words is not None
            and not torch.equal(tensors[key], words)
        ):
            raise NotLoaded(
                "its readout is not tied to its embedding, which Headlight’s own classes "
                "need; open it in its own code"
            )
    layers = {int(found.group(1)) for found in map(LAYER.match, tensors) if found}
    if layers and max(layers) >= config.n_layer:
        raise NotLoaded(
            f"its files have {max(layers) + 1} layers and its configuration names "
            f"{config.n_layer}; take a whole copy of the model"
        )


# ---- BERT, RoBERTa, DistilBERT -----------------------------------------------


def bert_config(described: dict, tensors: Tensors) -> Config:
    """BERT's, RoBERTa's too; its positions begin after the padding's number there, and it says its
    words through a transform."""
    if described.get("position_embedding_type", "absolute") != "absolute" or described.get(
        "is_decoder"
    ):
        raise NotLoaded("only encoders with absolute positions run in Headlight’s own classes")
    return Config(
        n_vocab=described["vocab_size"],
        d_model=described["hidden_size"],
        n_layer=described["num_hidden_layers"],
        n_head=described["num_attention_heads"],
        d_ff=described["intermediate_size"],
        n_positions=described["max_position_embeddings"] - skipped(described),
        positions="learned",
        activation=activation(described.get("hidden_act", "gelu")),
        eps=described.get("layer_norm_eps", 1e-12),
        scaled_embedding=False,
        embedding_norm=True,
        segment=described.get("type_vocab_size", 0) > 0,
        readout="transform" if any(key in tensors for key in READOUTS) else None,
    )


def skipped(described: dict) -> int:
    """How many rows of its position table a model never uses: RoBERTa counts positions from the
    number of its padding token on."""
    return described["pad_token_id"] + 1 if described["model_type"] == "roberta" else 0


# Where the three families keep the readout's transform, its LayerNorm and its bias.
READOUTS = {
    "cls.predictions.transform.dense.weight": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    "lm_head.dense.weight": ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    "vocab_transform.weight": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
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
    stack: str = "encoder.layer",
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
    yield from pair("embedding.norm", "embeddings.LayerNorm", tensors)
    for layer in range(config.n_layer):
        for ours, theirs in layer_names.items():
            yield from pair(f"layers.{layer}.{ours}", f"{stack}.{layer}.{theirs}", tensors)
    for marker, (dense, norm, bias) in READOUTS.items():
        if config.readout and marker in tensors:
            yield from pair("transform", dense, tensors)
            yield from pair("transform_norm", norm, tensors)
            yield "readout_bias", tensors[bias]


def distilbert_config(described: dict, tensors: Tensors) -> Config:
    """DistilBERT is BERT under other names, without segments."""
    if described.get("sinusoidal_pos_embds"):
        raise NotLoaded(
            "DistilBERT with sinusoidal positions does not run in Headlight’s own classes"
        )
    as_bert = {
        "model_type": "distilbert",
        "vocab_size": described["vocab_size"],
        "hidden_size": described["dim"],
        "num_hidden_layers": described["n_layers"],
        "num_attention_heads": described["n_heads"],
        "intermediate_size": described["hidden_dim"],
        "max_position_embeddings": described["max_position_embeddings"],
        "hidden_act": described.get("activation", "gelu"),
    }
    return bert_config(as_bert, tensors)


def distilbert_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with DistilBERT's tensors."""
    return bert_tensors(config, tensors, "transformer.layer", DISTILBERT_LAYER)


# ---- GPT-2 -------------------------------------------------------------------


def gpt2_config(described: dict, tensors: Tensors) -> Config:
    """GPT-2's: LayerNorm before the sub-layers, learned positions, a readout tied to the
    embedding."""
    if (
        not described.get("scale_attn_weights", True)
        or described.get("scale_attn_by_inverse_layer_idx")
        or described.get("add_cross_attention")
    ):
        raise NotLoaded(
            "a GPT-2 with another scale of its scores, or with cross-attention, does not run "
            "in Headlight’s own classes"
        )
    d_model = described["n_embd"]
    return Config(
        n_vocab=described["vocab_size"],
        d_model=d_model,
        n_layer=described["n_layer"],
        n_head=described["n_head"],
        d_ff=described.get("n_inner") or 4 * d_model,
        n_positions=described["n_positions"],
        norm="pre",
        positions="learned",
        activation=activation(described.get("activation_function", "gelu_new")),
        eps=described.get("layer_norm_epsilon", 1e-5),
        scaled_embedding=False,
    )


def gpt2_tensors(config: Config, tensors: Tensors) -> Iterator[tuple[str, Tensor]]:
    """Our names with GPT-2's tensors: its matrices are stored (in, out), and those of q, k and v in
    one."""
    embedding = tensors["wte.weight"]
    yield "embedding.token.weight", embedding
    yield "embedding.position", tensors["wpe.weight"]
    for layer in range(config.n_layer):
        at = f"h.{layer}"
        for part in ("weight", "bias"):
            fused = tensors[f"{at}.attn.c_attn.{part}"].chunk(3, dim=-1)
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
                tensor = tensors[f"{at}.{theirs}.{part}"]
                yield f"layers.{layer}.{ours}.{part}", tensor.T if part == "weight" else tensor
            for ours, theirs in (("attention_out.norm", "ln_1"), ("feed_forward_out.norm", "ln_2")):
                yield f"layers.{layer}.{ours}.{part}", tensors[f"{at}.{theirs}.{part}"]
    yield from pair("last_norm.norm", "ln_f", tensors)
    if config.readout:
        yield "readout_bias", torch.zeros(len(embedding))


FAMILIES = {
    "bert": Family(Encoder, "bert.", bert_config, bert_tensors),
    "roberta": Family(Encoder, "roberta.", bert_config, bert_tensors),
    "distilbert": Family(Encoder, "distilbert.", distilbert_config, distilbert_tensors),
    "gpt2": Family(Decoder, "transformer.", gpt2_config, gpt2_tensors),
    **{
        name: Family(Decoder, prefix, config, tensors, tied=False)
        for name, (prefix, config, tensors) in modern.FAMILIES.items()
    },
}
