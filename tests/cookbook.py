"""Runs every block of the cookbook by itself after the first, its preamble, in the folder where it
stands: as a script, with nothing of the clone."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def blocks(text: str) -> list[str]:
    """Its blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(text: str) -> int:
    """Run all of them, each in the names of the preamble alone; how many there are."""
    preamble, *others = blocks(text)
    names: dict[str, object] = {}
    exec(compile(preamble, "preamble", "exec"), names)
    for block in others:
        exec(compile(block, block.splitlines()[0], "exec"), dict(names))
    return len(others) + 1


if __name__ == "__main__":
    print(f"{run(Path(sys.argv[1]).read_text('utf-8'))} blocks run")
