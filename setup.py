"""What pyproject.toml cannot say: the app's settings travel too, beside app.py, where Streamlit
looks for them."""

from __future__ import annotations

from pathlib import Path
from shutil import copyfile

from setuptools import setup
from setuptools.command.build_py import build_py

SETTINGS = Path(".streamlit") / "config.toml"


class WithSettings(build_py):
    """The modules and their files, and the settings."""

    def run(self) -> None:
        super().run()
        goal = Path(self.build_lib) / SETTINGS
        goal.parent.mkdir(parents=True, exist_ok=True)
        copyfile(SETTINGS, goal)


setup(cmdclass={"build_py": WithSettings})
