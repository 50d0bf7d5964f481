"""What pyproject.toml cannot say: a wheel has one package, `headlight`. Its `__init__.py` is
headlight.py, and all else lies below it, with imports that say so. It has earlier weights only
where HEADLIGHT_EARLIER_WEIGHTS asks for them: they are more than half of all bytes, and an index
takes no file over 100 MB."""

from __future__ import annotations

import ast
import os
from pathlib import Path

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

PACKAGE = "headlight"
BELOW = ("app", "explorer", "models", "pages")
EARLIER = "checkpoints.safetensors"


def nested(source: bytes) -> bytes:
    """A module's source with its imports of our modules below PACKAGE, every line where it was.

    Raises ValueError for `import models.x`, which would bind another name there."""
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


class Packed(build_py):
    """Modules below PACKAGE, and their files."""

    def run(self) -> None:
        if self.editable_mode:
            raise ValueError("install it without -e, or name the clone's folder in PYTHONPATH")
        super().run()

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        names = {PACKAGE: "__init__"}
        return [(of, names.get(name, name), file) for of, name, file in found if name != "setup"]

    def build_module(self, module: str, module_file: str, package: list[str] | str) -> object:
        made = super().build_module(module, module_file, package)
        Path(made[0]).write_bytes(nested(Path(module_file).read_bytes()))
        return made

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        found = super().find_data_files(package, src_dir)
        if os.environ.get("HEADLIGHT_EARLIER_WEIGHTS"):
            return found
        return [file for file in found if Path(file).name != EARLIER]


if __name__ == "__main__":
    # Folders of weights and of pages have no __init__.py; they are packages all the same.
    found = find_namespace_packages(include=[f"{name}*" for name in BELOW])
    setup(
        packages=[PACKAGE, *(f"{PACKAGE}.{name}" for name in found)],
        cmdclass={"build_py": Packed},
    )
