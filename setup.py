"""What pyproject.toml cannot say: the app's settings travel too, beside app.py, where Streamlit
looks for them; earlier weights only where HEADLIGHT_EARLIER_WEIGHTS asks for them, since they are
more than half of all bytes and an index takes no file over 100 MB."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

SETTINGS = Path(".streamlit") / "config.toml"
EARLIER = "checkpoints.safetensors"


class Packed(build_py):
    """The modules and their files, and the settings."""

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        found = super().find_data_files(package, src_dir)
        if os.environ.get("HEADLIGHT_EARLIER_WEIGHTS"):
            return found
        return [file for file in found if Path(file).name != EARLIER]

    def run(self) -> None:
        super().run()
        goal = Path(self.build_lib) / SETTINGS
        goal.parent.mkdir(parents=True, exist_ok=True)
        copyfile(SETTINGS, goal)


setup(cmdclass={"build_py": Packed})
