"""Bytes for the browser: one JSON header and raw blocks, so that a matrix travels as itself and
nothing is guessed from types.

Layout: a little-endian u32 with the header's length, the header in UTF-8 padded with spaces to a
multiple of 8, then the blocks, each padded to 8. `header["blocks"]` lists (name, dtype, offset,
count) with offsets from the end of the header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isqrt

import numpy as np

LARGEST_SIDE = 88  # 88 x 88 = 7,744 bytes: under 8 kB a head
LARGEST_GRID = 1_060_000  # bytes of thumbnails in all
SPARE = 14_000  # bytes of a head beyond one a cell


def encode(header: dict, blocks: dict[str, np.ndarray]) -> bytes:
    """The header (plain JSON values, no NaN) and the blocks as bytes."""
    raw, listed, offset = [], [], 0
    for name, array in blocks.items():
        data = np.ascontiguousarray(array).tobytes()
        listed.append((name, array.dtype.str[1:], offset, array.size))
        data += b"\0" * (-len(data) % 8)
        raw.append(data)
        offset += len(data)
    whole = {**header, "blocks": listed}
    text = json.dumps(whole, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + b"".join(raw)


def decode(data: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    """Decode the bytes of `encode`: the header without its block list, and the blocks, flat."""
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    start = 4 + size
    blocks = {
        name: np.frombuffer(
            data,
            dtype=f"<{dtype}" if dtype[-1] != "1" else dtype,
            count=count,
            offset=start + offset,
        )
        for name, dtype, offset, count in header.pop("blocks")
    }
    return header, blocks


def thumbnails(pattern: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Every head small enough to send, LARGEST_GRID bytes in all: (bytes (layer, head, rows,
    columns), peak (layer, head), fold).

    A block of fold x fold cells becomes its maximum (an average would wash a diagonal out). A byte
    b stands for peak x (b / 255)^2: the square root gives small weights more of the 256 levels; the
    error is at most peak x 0.004.
    """
    layers, heads, queries, keys = pattern.shape
    side = min(LARGEST_SIDE, isqrt(LARGEST_GRID // (layers * heads)))
    fold = -(-max(queries, keys) // side)
    small = pattern if fold == 1 else _fold_columns(_fold_rows(pattern, fold), fold)
    peak = small.max(axis=(2, 3))
    share = small / np.where(peak > 0, peak, 1)[..., None, None]
    return np.rint(np.sqrt(share) * 255).astype(np.uint8), peak.astype(np.float32), fold


def _fold_rows(array: np.ndarray, fold: int) -> np.ndarray:
    """(..., rows, columns) -> maxima of runs of `fold` rows, the last run as long as what is
    left."""
    whole = array.shape[-2] // fold * fold
    runs = array[..., :whole, :].reshape(*array.shape[:-2], -1, fold, array.shape[-1]).max(axis=-2)
    rest = array[..., whole:, :]
    return (
        np.concatenate((runs, rest.max(axis=-2, keepdims=True)), axis=-2)
        if rest.shape[-2]
        else runs
    )


def _fold_columns(array: np.ndarray, fold: int) -> np.ndarray:
    """The same along columns; strided maxima, several times faster than a reduction over a short
    last axis."""
    whole = array.shape[-1] // fold * fold
    runs = np.maximum.reduce([array[..., at:whole:fold] for at in range(fold)])
    rest = array[..., whole:]
    return (
        np.concatenate((runs, rest.max(axis=-1, keepdims=True)), axis=-1)
        if rest.shape[-1]
        else runs
    )


def fine(matrix: np.ndarray, spare: int = SPARE) -> dict[str, np.ndarray]:
    """One head's weights in about one byte a cell and `spare` more, exact where that is possible.

    A small matrix goes as float32 under `exact`. A larger one goes as two planes of a 16-bit code,
    weight = (code / 65535)^2: `high`, a byte for every cell, and `low`, the second byte of those
    cells whose high byte is at least `floor` (a block of one number), as many as fit, in reading
    order. A cell without its low byte is known to within sqrt(weight) / 256.
    """
    if 3 * matrix.size <= spare:
        return {"exact": matrix.astype(np.float32)}
    code = np.rint(np.sqrt(np.clip(matrix, 0, 1)) * 65535).astype(np.uint16)
    high = (code >> 8).astype(np.uint8)
    # How many cells have at least this high byte.
    at_least = np.bincount(high.ravel(), minlength=256)[::-1].cumsum()[::-1]
    floor = int(np.argmax(at_least <= spare)) if (at_least <= spare).any() else 256
    return {
        "high": high,
        "low": (code & 255).astype(np.uint8).ravel()[high.ravel() >= floor],
        "floor": np.array([floor], dtype=np.uint32),
    }


def unfold(blocks: Mapping[str, np.ndarray]) -> np.ndarray:
    """The weights of the blocks of `fine`, flat: each as near as it was sent."""
    if "exact" in blocks:
        return np.asarray(blocks["exact"], np.float64).ravel()
    high = np.asarray(blocks["high"], np.float64).ravel()
    low = np.full(high.shape, 127.5)
    low[high >= blocks["floor"][0]] = blocks["low"]
    return ((high * 256 + low) / 65535) ** 2


def runs(allowed: np.ndarray) -> dict[str, np.ndarray]:
    """Run-length encode the allowed cells, (query, key) or (layer, query, key) bool, as a block:
    under `runs` the lengths of the stretches of equal cells in reading order, the first of them
    allowed (0 where the first cell is not). No block where every cell is allowed."""
    if allowed.all():
        return {}
    cells = np.concatenate(([True], allowed.ravel(), [not allowed.flat[-1]]))
    turns = np.flatnonzero(cells[1:] != cells[:-1])
    return {"runs": np.diff(turns, prepend=0).astype(np.uint32)}
