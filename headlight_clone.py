"""The modules of a clone below the name `headlight`, as an installed package has them.

A wheel is made so, and `pip install -e .` and a clone beside other modules of these names are
imported so: nothing else is on the import path then."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "headlight"
BELOW = ("app", "explorer", "models", "pages")
ROOT = Path(__file__).resolve().parent


def nested(source: bytes) -> bytes:
    """A module's source with its imports of our modules below PACKAGE, every line where it was.

    Raises ValueError for `import models.x`, which would bind another name there."""
    import ast  # an editable install imports this file whenever Python starts

    lines = source.split(b"\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names, at = [alias.name for alias in node.names], 0
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names, at = [node.module or ""], node.col_offset + len(b"from ")
        else:
            continue
        if not any(name.partition(".")[0] in BELOW for name in names):
            continue
        before, after = lines[node.lineno - 1][:at], lines[node.lineno - 1][at:]
        if not at or not after.startswith(names[0].encode()):
            raise ValueError(f"line {node.lineno}: write `from {names[0]} import ...`, one a line")
        lines[node.lineno - 1] = before + PACKAGE.encode() + b"." + after
    return b"\n".join(lines)


class NestedLoader(SourceFileLoader):
    """Loads a module from its nested source. No compiled file is kept: it would stand in for that
    of the clone."""

    def get_data(self, path: str) -> bytes:
        return nested(super().get_data(path))

    def path_stats(self, path: str) -> Any:
        raise OSError("not kept")


class CloneFinder(MetaPathFinder):
    """Finds PACKAGE and all below it in the clone, unless its modules are imported by their own
    names here."""

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
            return None
        if name == PACKAGE and (not is_taken() or PACKAGE in sys.modules):
            return None
        place = ROOT.joinpath(*name.split(".")[1:])
        init = ROOT / f"{PACKAGE}.py" if name == PACKAGE else place / "__init__.py"
        if init.is_file():
            return importlib.util.spec_from_file_location(
                name,
                init,
                loader=NestedLoader(name, str(init)),
                submodule_search_locations=[str(place)],
            )
        file = place.with_suffix(".py")
        if not file.is_file():
            return None
        return importlib.util.spec_from_file_location(
            name, file, loader=NestedLoader(name, str(file))
        )


def is_taken() -> bool:
    """True where a module of ours is not to be had by its own name: the clone is not on the import
    path, or another module of that name comes before it."""
    for name in BELOW:
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded else PathFinder.find_spec(name)
        places = [*(spec.submodule_search_locations or ()), spec.origin or ""] if spec else []
        if not any(Path(place).resolve().is_relative_to(ROOT) for place in places if place):
            return True
    return False


def install() -> None:
    """Let the clone be imported below PACKAGE from anywhere."""
    if not any(isinstance(each, CloneFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, CloneFinder())
