"""Untrained models of transformers' own classes, small enough to make for a test."""

from __future__ import annotations

import torch


def bert(**more):
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
            vocab_size=90,
            hidden_size=24,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=36,
            max_position_embeddings=40,
            **more,
        )
    )


def uneven(model: torch.nn.Module) -> torch.nn.Module:
    """Fresh Hugging Face weights are so small that attention is even and a mistake would hide."""
    torch.manual_seed(3)
    gain = 0.0 if model.config.model_type == "gemma" else 1.0  # stored less 1
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(gain if "norm" in name.lower() or "ln_" in name else 0.0, 0.3)
    return model.eval()
