"""Every block of the cookbook is as short as it says; `tests/test_packaging.py` runs them by the
wheel."""

from __future__ import annotations

import re
from pathlib import Path

import cookbook

import headlight

COOKBOOK = (Path(__file__).parent.parent / "docs/cookbook.md").read_text("utf-8")
BLOCKS = cookbook.blocks(COOKBOOK)
MOST_LINES = 5


def test_every_block_is_short() -> None:
    assert len(BLOCKS) > 20
    for block in BLOCKS[1:]:
        imports = "import ", "from transformers "
        lines = [line for line in block.splitlines() if line and not line.startswith(imports)]
        assert len(lines) <= MOST_LINES, block


def test_every_name_that_it_calls_the_door_is_there() -> None:
    door = {*headlight.__all__}
    called = {*re.findall(r"headlight\.(\w+)", "\n".join(BLOCKS))}
    assert called <= door and {"view", "wrap", "record", "load"} <= called
