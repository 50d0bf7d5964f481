"""The papers that docs/papers.md reproduces: each block runs, and what it finds has the direction
that the paper tells."""

from __future__ import annotations

from pathlib import Path

import cookbook
import pytest

BLOCKS = cookbook.blocks((Path(__file__).parent.parent / "docs/papers.md").read_text("utf-8"))


def found(at: int) -> dict:
    names: dict = {}
    exec(compile(BLOCKS[at], "docs/papers.md", "exec"), names)
    return names


def test_the_loss_rises_without_induction_heads() -> None:
    made = found(0)
    assert made["without_best"] > made["whole"] + 0.5, "nats"
    rise = made["without_best"] - made["whole"]
    assert abs(made["without_last"] - made["whole"]) < rise / 4


def test_little_is_written_from_special_tokens() -> None:
    made = found(1)
    assert made["by_weight"] > 1.5 * made["by_norm"] > 0


@pytest.mark.slow
def test_the_first_token_draws_weight_after_the_first_layers() -> None:
    made = found(2)
    assert made["late"] > 1.5 * made["early"] > 0 and made["late"] > 0.3
