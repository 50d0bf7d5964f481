"""Conversion of a config.json into our `Config`; an unsupported architecture is refused by name."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isqrt
from typing import cast

from models.pretrained.model_files import NotLoaded, remedy

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


WINDOWED = ("mistral", "phi3")  # families with a window in every layer where they have one
CLASSIFIES = "classification head"  # of whole texts
# What a model was trained with in the place of a readout, by the end of its class's name.
HEADS = {
    "ForSequenceClassification": CLASSIFIES,
    "ForTokenClassification": "token-classification head",
    "ForQuestionAnswering": "question-answering head",
    "ForQuestionAnsweringSimple": "question-answering head",
    "ForMultipleChoice": "multiple-choice head",
    "ForNextSentencePrediction": "next-sentence head",
    "ElectraForPreTraining": "discriminator head",
}


def saved_head(architectures: object) -> str:
    """The head that a model was saved with in the place of a readout over the vocabulary, by what
    its config.json says; "" for none that is known."""
    names = architectures if isinstance(architectures, list) else []
    return next(
        (head for name in map(str, names) for end, head in HEADS.items() if name.endswith(end)), ""
    )


def activation(name: str) -> str:
    """An activation by our name for it. Raises NotLoaded for one that is none of ours."""
    if name not in ACTIVATION:
        raise NotLoaded(f"the activation {name!r} is not among {', '.join(ACTIVATION)}")
    return ACTIVATION[name]


def max_text_length(bounds: list[int], n_head: int, n_layer: int) -> int:
    """The longest text that a model is given: within its own bounds, and what memory holds of its
    patterns. n_layer: of all its attentions together."""
    cells = 8 * n_head * n_layer
    return int(max(2, min(LONGEST, *bounds, isqrt(MOST_BYTES_OF_PATTERNS // cells))))


def rotary_fields(hf_config: dict, share: float = 1.0) -> dict:
    """The fields of Config that rotary positions need. Raises NotLoaded for a way of stretching
    them that our classes do not have.

    Older files say `rope_theta` and `rope_scaling`, newer ones `rope_parameters`. "dynamic" changes
    nothing within the length that a model was made for, and no longer text is read.
    """
    rope = hf_config.get("rope_parameters") or hf_config.get("rope_scaling") or {}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    bases = (rope.get("rope_theta"), hf_config.get("rope_theta"), hf_config.get("rotary_emb_base"))
    base = next((each for each in bases if each is not None), 10000.0)
    if kind not in ("default", "dynamic", "linear", "llama3"):
        raise NotLoaded(f"rotary positions stretched by {kind!r} do not run there")
    scaling: tuple[float, ...] | None = None
    if kind == "linear":
        scaling = (float(rope["factor"]),)
    elif kind == "llama3":
        names = ("factor", "low_freq_factor", "high_freq_factor")
        trained = rope["original_max_position_embeddings"]
        scaling = (*(float(rope[name]) for name in names), float(trained))
    return {
        "positions": "rotary",
        "rotary_base": float(base),
        "rotary_share": share,
        "rotary_scaling": scaling,
    }


def rotary_share(hf_config: dict, usual: float) -> float:
    """The share of a head's dimensions that rotary positions turn, by what its config.json says."""
    rope = hf_config.get("rope_parameters") or hf_config.get("rope_scaling") or {}
    shares = rope.get("partial_rotary_factor"), hf_config.get("partial_rotary_factor"), usual
    return next(float(each) for each in shares if each)


def check_rotary(hf_config: dict, name: str) -> None:
    """Raises NotLoaded where a number that rotary positions are made of is none, or not above 0."""
    for key, value in _rotary_numbers(hf_config):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not (number and 0 < cast(float, value) < inf):
            raise NotLoaded(
                f"The config.json of {name} says {key} is {str(value)[:40]}, and rotary positions "
                f"need a number above 0; {remedy(name)}."
            )


def _rotary_numbers(hf_config: dict) -> Iterator[tuple[str, object]]:
    """Base and stretch of rotary positions in a config.json; some give them by kind of layer."""
    for key in ("rope_theta", "rotary_emb_base", "rope_local_base_freq", "factor"):
        if hf_config.get(key) is not None:
            yield key, hf_config[key]
    for key in ("rope_parameters", "rope_scaling"):
        rope = hf_config.get(key)
        if isinstance(rope, dict):
            yield from _rotary_numbers(rope)
            for layer_rope in rope.values():
                if isinstance(layer_rope, dict):
                    yield from _rotary_numbers(layer_rope)


def attention_window(hf_config: dict, n_layer: int) -> tuple[int | None, tuple[int, ...]]:
    """The attention window in tokens, None for all, and the layers that have none."""
    size, every_layer = hf_config.get("sliding_window"), hf_config["model_type"] in WINDOWED
    if not size or not hf_config.get("use_sliding_window", every_layer):
        return None, ()
    first = 0 if every_layer else hf_config.get("max_window_layers", 0)
    kinds = hf_config.get("layer_types") or []
    full = tuple(
        layer
        for layer in range(n_layer)
        if (kinds[layer] != "sliding_attention" if kinds else layer < first)
    )
    return (None, ()) if len(full) == n_layer else (size, full)
