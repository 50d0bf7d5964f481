"""A clone of the project as the tree stands, to be installed from."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def names() -> list[str]:
    """The names of all files that a clone has, as the tree stands."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def copy(chosen: Iterable[str], folder: Path) -> Path:
    """Copy files of the project into a folder, each under its own name there."""
    for name in chosen:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder
