"""The version of Headlight, for the package and for every file that leaves it.

pyproject.toml says it. In an installed package the build has written it here (setup.py)."""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
VERSION = str(tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["version"])
