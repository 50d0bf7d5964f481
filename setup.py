"""What pyproject.toml cannot say: a wheel has one package, `headlight`. Its `__init__.py` is
headlight.py, and all else lies below it, with imports that say so. It has earlier weights only
where HEADLIGHT_EARLIER_WEIGHTS asks for them: they are more than half of all bytes, and an index
takes no file over 100 MB.

An editable install is one line that lets the clone be imported in the same way. As the project's
build backend this file is setuptools's own, with that added."""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from setuptools import build_meta, find_namespace_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))  # where a build does not look by itself

from headlight_clone import BELOW, PACKAGE, nested  # noqa: E402

EARLIER = "checkpoints.safetensors"
NOT_PACKED = ("setup", "headlight_clone")  # modules that make packages

build_sdist, build_wheel = build_meta.build_sdist, build_meta.build_wheel
get_requires_for_build_sdist = build_meta.get_requires_for_build_sdist
get_requires_for_build_wheel = build_meta.get_requires_for_build_wheel
get_requires_for_build_editable = build_meta.get_requires_for_build_wheel
prepare_metadata_for_build_wheel = build_meta.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = build_meta.prepare_metadata_for_build_wheel


def build_editable(
    wheel_directory: str,
    config_settings: dict | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Write a wheel (PEP 660) that holds the metadata and the line that finds the clone; returns
    its name."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / prepare_metadata_for_build_editable(folder, config_settings)
        files = {
            each.relative_to(folder).as_posix(): each.read_bytes()
            for each in info.rglob("*")
            if each.is_file()
        }
    tag = "py3-none-any"
    files[f"{info.name}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: {PACKAGE}\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()
    )
    files[f"{PACKAGE}_clone.pth"] = (
        f"import sys; sys.path.append({str(ROOT)!r}); import headlight_clone; sys.path.pop(); "
        "headlight_clone.install()\n"
    ).encode()
    rows = [
        f"{name},sha256={urlsafe_b64encode(sha256(data).digest()).decode().rstrip('=')},{len(data)}"
        for name, data in files.items()
    ]
    files[f"{info.name}/RECORD"] = "\n".join([*rows, f"{info.name}/RECORD,,", ""]).encode()
    name = f"{info.name.removesuffix('.dist-info')}-{tag}.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, data in files.items():
            wheel.writestr(each, data)
    return name


class Packed(build_py):
    """Modules below PACKAGE, and their files."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        names = {PACKAGE: "__init__"}
        return [
            (of, names.get(name, name), file) for of, name, file in found if name not in NOT_PACKED
        ]

    def build_module(self, module: str, module_file: str, package: list[str] | str) -> object:
        made = super().build_module(module, module_file, package)
        source = nested(Path(module_file).read_bytes())
        if Path(module_file) == Path("models", "version.py"):
            version = self.distribution.get_version()
            source = f'"""The version of Headlight."""\n\nVERSION = {version!r}\n'.encode()
        Path(made[0]).write_bytes(source)
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
