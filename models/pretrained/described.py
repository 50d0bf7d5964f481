"""What a config.json says of an architecture, in the terms of our own `Config`: what our classes do
not compute is refused with its name."""

from __future__ import annotations

from math import isqrt

from models.pretrained.files import NotLoaded

# The longest text, in tokens, whatever a model could take; and the memory that scores and patterns
# of one recording may fill.
LONGEST = 512
MOST_BYTES_OF_PATTERNS = 320 << 20
ACTIVATION = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}


def activation(name: str) -> str:
    """An activation by our name for it. Raises NotLoaded for one that is none of ours."""
    if name not in ACTIVATION:
        raise NotLoaded(f"the activation {name!r} is not among {', '.join(ACTIVATION)}")
    return ACTIVATION[name]


def longest(bounds: list[int], n_head: int, n_layer: int) -> int:
    """The longest text that a model is given: within its own bounds, and what memory holds of its
    patterns. n_layer: of all its attentions together."""
    cells = 8 * n_head * n_layer
    return int(max(2, min(LONGEST, *bounds, isqrt(MOST_BYTES_OF_PATTERNS // cells))))


def rotary(described: dict, share: float = 1.0) -> dict:
    """The fields of Config that rotary positions need. Raises NotLoaded for a way of stretching
    them that our classes do not have.

    Older files say `rope_theta` and `rope_scaling`, newer ones `rope_parameters`. "dynamic" changes
    nothing within the length that a model was made for, and no longer text is read.
    """
    told = described.get("rope_parameters") or described.get("rope_scaling") or {}
    kind = told.get("rope_type") or told.get("type") or "default"
    base = told.get("rope_theta") or described.get("rope_theta")
    if kind not in ("default", "dynamic", "linear", "llama3"):
        raise NotLoaded(f"rotary positions stretched by {kind!r} do not run there")
    scaling: tuple[float, ...] | None = None
    if kind == "linear":
        scaling = (float(told["factor"]),)
    elif kind == "llama3":
        names = ("factor", "low_freq_factor", "high_freq_factor")
        trained = told["original_max_position_embeddings"]
        scaling = (*(float(told[name]) for name in names), float(trained))
    return {
        "positions": "rotary",
        "rotary_base": float(base or described.get("rotary_emb_base") or 10000.0),
        "rotary_share": share,
        "rotary_scaling": scaling,
    }


def window(described: dict, n_layer: int) -> tuple[int | None, list[int]]:
    """How many tokens every layer sees, None for all, and the bounds of a text's length: where some
    layers have a window and others not, a text that fits it is the same to both."""
    size = described.get("sliding_window")
    if not size or not described.get("use_sliding_window", described["model_type"] == "mistral"):
        return None, []
    kinds = described.get("layer_types") or []
    sliding = sum(kind == "sliding_attention" for kind in kinds)
    if not kinds:
        first = 0 if described["model_type"] == "mistral" else described.get("max_window_layers", 0)
        sliding = max(0, n_layer - first)
    if not sliding:
        return None, []
    return (size, []) if sliding == n_layer else (None, [size])
