"""A tiny random model of any type of model that the installed transformers knows, by the names that
its configurations give their sizes: for the page of all families and for its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny
import torch
import transformers
from transformers.models.auto import modeling_auto as tables
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

# By size, what families call it. A name that a family does not have is left out.
NAMES: dict[float, str] = {
    tiny.N_VOCAB: "vocab_size src_vocab_size tgt_vocab_size vocab_size_per_layer_input",
    32: "hidden_size d_model n_embd dim emb_dim embedding_size word_embed_proj_dim dim_model "
    "embedding_dim true_hidden_size intra_bottleneck_size",
    48: "intermediate_size n_inner d_ff d_inner ffn_dim ffn_hidden_size encoder_ffn_dim hidden_dim "
    "decoder_ffn_dim dim_ff moe_intermediate_size shared_expert_intermediate_size "
    "shared_intermediate_size expert_ffn_hidden_size",
    64: "max_position_embeddings n_positions n_ctx max_seq_len max_encoder_position_embeddings "
    "max_decoder_position_embeddings",
    16: "q_lora_rank kv_lora_rank mamba_d_head",
    8: "head_dim d_kv attention_head_size dim_head qk_nope_head_dim qk_rope_head_dim v_head_dim "
    "d_head swa_head_dim swa_v_head_dim global_head_dim hidden_size_per_layer_input mamba_d_state "
    "rotary_dim pronunciation_embed_dim shape_embed_dim",
    6: "coordinate_size",
    4: "num_attention_heads n_head n_heads num_heads encoder_attention_heads "
    "decoder_attention_heads num_decoder_attention_heads num_encoder_attention_heads num_experts "
    "num_local_experts n_routed_experts moe_num_experts mamba_n_heads swa_num_attention_heads "
    "shape_size",
    2: "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers "
    "num_decoder_layers num_encoder_layers num_key_value_heads num_kv_heads kv_n_heads moe_k "
    "swa_num_key_value_heads num_global_key_value_heads num_experts_per_tok moe_top_k moe_topk "
    "num_experts_per_token mamba_expand",
    1: "n_group topk_group n_shared_experts num_shared_experts moe_num_shared_experts "
    "num_sparse_encoder_layers num_sparse_decoder_layers first_k_dense_replace mamba_n_groups",
    0.15: "initializer_range init_std",
}
SIZES = {name: size for size, names in NAMES.items() for name in names.split()}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# Classes with a readout come after those without, and of two kinds of readout the later one counts.
CLASSES: dict[str, Any] = {
    **tables.MODEL_MAPPING_NAMES,
    **tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    **tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    **tables.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
}
THREE_ANGLES = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
EXPERTS = {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2}
# What single families ask for beside their sizes.
MORE: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "esmc": {"num_key_value_heads": 4},
    "falcon_h1": {"mamba_d_ssm": 64},
    "cohere_compass_text": {
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 10000.0}}
    },
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0}},
    "deepseek_v2": EXPERTS,
    "dots1": EXPERTS,
    "esm": {"vocab_size": tiny.N_VOCAB},
    "glm4v_moe_text": {"rope_parameters": {**THREE_ANGLES, "mrope_section": [1, 1, 0]}},
    "glm4v_text": {"rope_parameters": THREE_ANGLES},
    "glm_image_text": {"rope_parameters": THREE_ANGLES},
    "glm_ocr_text": {"rope_parameters": THREE_ANGLES},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8},
    "hunyuan_vl_text": {"head_dim": 8},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "led": {"attention_window": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "lilt": {"hidden_size": 48},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 8},
    "ministral": {"head_dim": 8},
    "mistral4": {"head_dim": 16},
    "nemotron": {"num_key_value_heads": 2},
    "qwen2_5_vl_text": {"rope_parameters": THREE_ANGLES},
    "qwen2_vl_text": {"rope_parameters": THREE_ANGLES},
    "recurrent_gemma": {"num_hidden_layers": 3, "lru_width": 32},
    "reformer": {"axial_pos_embds": False},
    "roc_bert": {"pronunciation_vocab_size": 20, "shape_vocab_size": 20},
}
MOST_PARAMETERS = 20_000_000


def sizes_of(config: transformers.PreTrainedConfig) -> dict[str, Any]:
    """Small sizes in the place of those that a configuration has by itself."""
    has, other = config.to_dict(), type(config).attribute_map
    small = {name: size for name, size in SIZES.items() if has.get(name) is not None}
    small |= {name: size for name, size in SIZES.items() if other.get(name) in small}
    small = {name: size for name, size in small.items() if other.get(name) not in small}
    if "kv_lora_rank" in small:  # each head has keys of its own
        small["num_key_value_heads"] = small["num_attention_heads"]
    if has.get("is_encoder_decoder"):
        small["decoder_start_token_id"] = 2
    if kinds := list(dict.fromkeys(has.get("layer_types") or ())):
        small["layer_types"] = (2 * kinds)[: max(2, len(kinds))]
        small["num_hidden_layers"] = len(small["layer_types"])
    for name in type(config).sub_configs:
        if isinstance(part := getattr(config, name, None), transformers.PreTrainedConfig):
            small[name] = part.to_dict() | sizes_of(part)
    return small | ENDS


def config_of(model_type: str) -> transformers.PreTrainedConfig:
    """The configuration of a tiny model of a type. Raises what the type's own code raises where it
    has none by itself, or takes none of such sizes."""
    family = CONFIG_MAPPING[model_type]
    return family(**sizes_of(family()) | MORE.get(model_type, {}))


def save(model_type: str, folder: Path) -> Path:
    """A tiny random model of a type in a folder. Raises what the type's own code raises where such
    sizes do not go together, and ValueError where it is not tiny by them."""
    kind, config = getattr(transformers, CLASSES[model_type]), config_of(model_type)
    with torch.device("meta"):
        n = sum(each.numel() for each in kind(config).parameters())
    if n > MOST_PARAMETERS:
        raise ValueError(f"it has {n:,} parameters in sizes that other families do not name")
    torch.manual_seed(1)
    tiny.stirred(kind(config)).save_pretrained(folder)
    tokenizer = tiny.wordpiece if kind.__name__.endswith("MaskedLM") else tiny.gpt2_bytes
    (tiny.sentencepiece if config.is_encoder_decoder else tokenizer)().save_pretrained(folder)
    return folder
