"""Checks a package by a Python that has nothing else of what it needs: as a script of the standard
library alone, with the package's folder.

Printed is, a line each, what the package uses of the standard library and this Python lacks or
warns of, and each module whose import fails by anything but a package that is not here."""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType


def main(package: Path, known: set[str]) -> Iterator[str]:
    """Problems of a package's modules. known: names of modules of the standard library, of this
    Python or another."""
    sys.path.insert(0, str(package.parent))
    warnings.simplefilter("error")
    for file in sorted(package.rglob("*.py")):
        for used in sorted(set(uses(ast.parse(file.read_text("utf-8"))))):
            if used[0].partition(".")[0] in known and not is_there(*used):
                yield f"{file.relative_to(package)}: {'.'.join(used)}"
        module = ".".join(file.relative_to(package.parent).with_suffix("").parts)
        if problem := import_problem(module.removesuffix(".__init__"), known | {package.name}):
            yield f"{module}: {problem}"


def uses(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Modules that are imported, (module,), and what is used of them, (module, name)."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield (each.name,)
                bound[each.asname or each.name.partition(".")[0]] = (
                    each.name if each.asname else each.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                yield node.module, each.name
                bound[each.asname or each.name] = f"{node.module}.{each.name}"
    for node in ast.walk(tree):
        is_of_name = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if is_of_name and (module := bound.get(node.value.id)):
            yield module, node.attr


def is_there(module: str, name: str = "") -> bool:
    """True where this Python has a module, and a name in it, without a warning. What is an
    attribute of something else than a module is not looked at."""
    try:
        found = importlib.import_module(module)
    except ImportError:
        parent, _, last = module.rpartition(".")
        return bool(parent) and is_there(parent, last)
    except Warning:
        return False
    if not name or not isinstance(found, ModuleType):
        return True
    try:
        getattr(found, name)
    except Warning:
        return False
    except AttributeError:
        return importlib.util.find_spec(module) is not None and is_submodule(module, name)
    return True


def is_submodule(module: str, name: str) -> bool:
    """True for a module inside another."""
    try:
        return importlib.util.find_spec(f"{module}.{name}") is not None
    except ImportError:
        return False


def import_problem(module: str, known: set[str]) -> str:
    """Reason why a module cannot be imported, "" where it can, or where a package that is not
    `known` is missing."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        return "" if str(error.name).partition(".")[0] not in known else str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    names = {*json.loads(sys.argv[2]), *sys.stdlib_module_names}
    print(*main(Path(sys.argv[1]).resolve(), names), sep="\n")
