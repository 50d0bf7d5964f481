"""The golden files: bytes that Python's wire.py writes, and in JSON what they say. `python -m
tests.golden` writes them anew."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from explorer.components import codec

GOLDEN_FILES = Path(__file__).parent / "js" / "golden"


def cases() -> dict[str, tuple[bytes, dict]]:
    """Name -> (bytes, what the browser must make of them)."""
    header = {"tokens": ["<b>", "\u202e", "😀", '"', "שלום"], "scale": None, "n": 3}
    blocks = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.linspace(0, 1, 3, dtype=np.float32),
        "c": np.array([7, 4_000_000_000], dtype=np.uint32),
    }
    plain = {"header": header, "blocks": {name: each.tolist() for name, each in blocks.items()}}
    small = np.array([[0.25, 0.75], [1.0, 0.0]])
    n = 60
    large = 1 / (1 + np.add.outer(np.arange(n), 3 * np.arange(n)) % 31) ** 2
    allowed = np.tri(6, dtype=bool)
    wide = np.kron(large[:25, :25], np.ones((4, 4)))
    thumbs, peak, fold = codec.thumbnails(wide[None, None].astype(np.float32))
    return {
        "plain": (codec.encode(header, blocks), plain),
        "exact": (codec.encode({}, codec.fine(small)), {"weight": small.ravel().tolist()}),
        "fine": (
            codec.encode({}, codec.fine(large, spare=600)),
            {"weight": large.ravel().round(6).tolist()},
        ),
        "runs": (
            codec.encode({"size": 36}, codec.runs(allowed)),
            {"cells": allowed.ravel().tolist()},
        ),
        "thumbnails": (
            codec.encode(
                {"rows": thumbs.shape[2], "columns": thumbs.shape[3], "fold": fold},
                {"cells": thumbs, "peak": peak},
            ),
            {
                "largest": [
                    [
                        round(float(wide[r : r + fold, c : c + fold].max()), 6)
                        for c in range(0, 100, fold)
                    ]
                    for r in range(0, 100, fold)
                ]
            },
        ),
    }


def write() -> None:
    """Put them down anew, after a change of the codec that is meant."""
    GOLDEN_FILES.mkdir(exist_ok=True)
    for name, (data, says) in cases().items():
        (GOLDEN_FILES / f"{name}.bin").write_bytes(data)
        (GOLDEN_FILES / f"{name}.json").write_text(
            json.dumps(says, ensure_ascii=False) + "\n", "utf-8"
        )


if __name__ == "__main__":
    write()
