"""What reaches the browser is the matrix, within the error that is stated and the bytes that are
promised."""

from __future__ import annotations

import numpy as np
import pytest
from javascript import arrived
from tolerances import PASSED

from explorer.components import codec

RNG = np.random.default_rng(0)


def patterns(layers: int, heads: int, n: int, sharpness: float = 0.1) -> np.ndarray:
    drawn = RNG.dirichlet(np.full(n, sharpness), size=(layers, heads, n))
    return drawn.astype(np.float32)


def test_blocks_and_header_come_back() -> None:
    header = {"tokens": ["<b>", "\u202e", "😀", '"'], "scale": None}
    blocks = {
        "a": np.arange(5, dtype=np.uint8),
        "b": np.linspace(0, 1, 3, dtype=np.float32),
        "c": np.array([7], dtype=np.uint32),
    }
    back, arrays = codec.decode(codec.encode(header, blocks))
    assert back == header
    for name, array in blocks.items():
        np.testing.assert_array_equal(arrays[name], array)


def test_a_number_that_is_none_is_refused_before_it_breaks_the_browser() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        codec.encode({"score": float("nan")}, {})


@pytest.mark.parametrize("n", [1, 16, 88, 89, 200])
def test_a_thumbnail_is_the_matrix(n: int) -> None:
    pattern = patterns(2, 3, n)
    cells, peak, fold = codec.thumbnails(pattern)
    shown = peak[..., None, None] * (cells / 255.0) ** 2
    n_cells = cells.shape[2]
    padded = np.zeros((2, 3, n_cells * fold, n_cells * fold), dtype=np.float32)
    padded[..., :n, :n] = pattern
    largest = padded.reshape(2, 3, n_cells, fold, n_cells, fold).max(axis=(3, 5))
    assert (np.abs(shown - largest) <= 0.004 * peak[..., None, None]).all()


def test_a_thin_diagonal_survives_folding() -> None:
    pattern = np.eye(500, dtype=np.float32)[None, None]
    cells, _, fold = codec.thumbnails(pattern)
    assert fold > 1 and (np.diagonal(cells[0, 0]) == 255).all()


@pytest.mark.slow
@pytest.mark.parametrize(("layers", "heads", "n"), [(6, 8, 64), (12, 12, 88), (12, 12, 512)])
def test_bytes_of_all_heads_stay_within_the_promise(layers: int, heads: int, n: int) -> None:
    cells, _, _ = codec.thumbnails(np.ones((layers, heads, n, n), dtype=np.float32) / n)
    assert cells[0, 0].nbytes <= 8_000 and cells.nbytes <= 1_100_000 - 30_000


@pytest.mark.parametrize("sharpness", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("n", [5, 68, 69, 118, 119, 512])
def test_one_head_travels_as_exactly_as_it_says(n: int, sharpness: float) -> None:
    matrix = patterns(1, 1, n, sharpness)[0, 0]
    blocks = codec.fine(matrix)
    assert sum(block.nbytes for block in blocks.values()) <= n * n + 14_100
    values, unknown = arrived(blocks, matrix.shape)
    assert (np.abs(values - matrix) <= unknown + 2e-5).all()
    if n <= 68:
        np.testing.assert_array_equal(values, matrix)
    elif n <= 118:
        assert np.abs(values - matrix).max() < PASSED, "four decimals are right"
    else:
        assert (unknown[matrix >= 0.1] < PASSED).all(), "large weights are exact at any length"
