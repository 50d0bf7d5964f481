"""A clone of the project as the tree stands, to be installed from, and what packages need."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

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


def plain(name: str) -> str:
    """A package's name as registries spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(name: str) -> set[str]:
    """A package and everything that it needs, on this machine."""
    found: set[str] = set()
    open_ones = [(plain(name), {""})]
    while open_ones:
        one, extras = open_ones.pop()
        if one not in found:
            found.add(one)
            for each in map(Requirement, metadata.distribution(one).requires or ()):
                if not each.marker or any(each.marker.evaluate({"extra": x}) for x in extras):
                    open_ones.append((plain(each.name), {"", *each.extras}))
    return found


def link(asked: Iterable[tuple[str, bool]], folder: Path) -> None:
    """Put links to packages of the tests' environment into a folder, each with all that it needs or
    alone."""
    every = {name for one, alone in asked for name in ({one} if alone else needed(one))}
    for name in every:
        found = metadata.distribution(name)
        for top in {each.parts[0] for each in found.files or ()} - {"..", "__pycache__"}:
            if not top.endswith(".pth") and not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))


def copy(chosen: Iterable[str], folder: Path) -> Path:
    """Copy files of the project into a folder, each under its own name there."""
    for name in chosen:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return folder
