"""Runs every block of the cookbook from top to bottom, in the folder where it stands: as a script,
with nothing of the clone."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def blocks(text: str) -> list[str]:
    """Its blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(text: str) -> int:
    """Run all of them, one after the other; how many there are."""
    names: dict[str, object] = {}
    for block in blocks(text):
        exec(compile(block, block.splitlines()[0], "exec"), names)
    return len(blocks(text))


if __name__ == "__main__":
    print(f"{run(Path(sys.argv[1]).read_text('utf-8'))} blocks run")
