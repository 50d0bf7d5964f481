"""What leaves the project as a package: what it is locked to, and that sdist and wheel install and
work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

import clone
import pytest
from packaging.requirements import Requirement

from models import shipped_models
from models.recording import VERSION, from_npz

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 60_000_000  # of a wheel
OF_GRAPHICS_CARDS = re.compile(r"nvidia-|cuda-|triton")


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(file: str) -> dict[str, str]:
    """The versions in a file of requirements, by name."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    asked = [Requirement(line.rstrip("\\ ")) for line in lines if line[:1].isalnum()]
    return {plain(each.name): str(each.specifier).removeprefix("==") for each in asked}


def needed(name: str, extras: frozenset[str] = frozenset()) -> set[str]:
    """A package and everything that it needs, on this machine."""
    found, open_ones = set(), [(plain(name), extras)]
    while open_ones:
        one, wanted = open_ones.pop()
        if one in found:
            continue
        found.add(one)
        for line in metadata.distribution(one).requires or ():
            each = Requirement(line)
            if each.marker is None or any(
                each.marker.evaluate({"extra": extra}) for extra in {"", *wanted}
            ):
                open_ones.append((plain(each.name), frozenset(each.extras)))
    return found


def test_all_that_the_app_needs_is_locked_at_the_tested_version() -> None:
    locked, asked = pinned("requirements.lock"), pinned("requirements.txt")
    tested = pinned("constraints.txt")
    every = set().union(*(needed(name) for name in (*asked, "redis")))
    every = {name for name in every if not OF_GRAPHICS_CARDS.match(name)} - {"torch"}
    assert "torch" not in locked and every | {shipped_models.PACKAGE} <= locked.keys()
    assert all(locked[name] == asked[name] for name in asked.keys() - {"torch"})
    # What only other systems need is locked too, and not in the tested environment.
    assert all(locked[name] == tested[name] for name in every | {shipped_models.PACKAGE})


def test_every_locked_package_has_its_hashes_and_no_place_to_come_from() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    parts = re.split(r"\n(?=[a-z])", text.partition("\n")[2].strip())
    assert len(parts) == len(pinned("requirements.lock")) > 50
    for part in parts:
        name, *hashes = [line.rstrip("\\ ").strip() for line in part.splitlines()]
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in hashes)
    assert "://" not in text and "index" not in text


def test_make_installs_by_hash_first_and_locks_what_torch_needs() -> None:
    said = (ROOT / "Makefile").read_text("utf-8")
    steps = said.partition("\n.venv/app:")[2].partition("\n\n")[0]
    locked, rest = (steps.index(each) for each in ("-r requirements.lock", "-r requirements.txt"))
    assert "--require-hashes --no-deps -r requirements.lock" in steps and locked < rest
    of_torch = re.search(r"^OF_TORCH = (.*)$", said, re.MULTILINE)[1].split()
    asked = map(Requirement, metadata.distribution("torch").requires or ())
    names = {
        plain(each.name) for each in asked if not each.marker or "extra" not in str(each.marker)
    }
    assert {name for name in names if not OF_GRAPHICS_CARDS.match(name)} == set(of_torch)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with sdist and wheel, the wheel made of the sdist, as `python -m build` does."""
    source = clone.copy(clone.names(), tmp_path_factory.mktemp("clone"))
    subprocess.run([sys.executable, "-m", "build", "--no-isolation"], cwd=source, check=True)
    return source / "dist"


@pytest.mark.slow
def test_the_wheel_is_small_and_whole(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"headlight_attention-{VERSION}-")
    assert wheel.stat().st_size < MOST_BYTES and sdist.stat().st_size < MOST_BYTES
    inside = set(zipfile.ZipFile(wheel).namelist())
    ours = ("explorer/", "models/", "pages/", "app.py", ".streamlit/")
    left = {name for name in clone.names() if name.startswith(ours)} - inside
    assert {Path(name).name for name in left} == {shipped_models.EARLIER}


@pytest.mark.slow
def test_the_wheel_installs_and_records(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    (wheel,) = built.glob("*.whl")
    target = ["--no-index", "--no-deps", "--target", str(site)]
    subprocess.run([*pip, *target, str(wheel)], check=True)
    # In it and in what it needs, and not in the clone.
    paths = os.pathsep.join([str(site), sysconfig.get_paths()["purelib"]])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}

    def run(*asked: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *asked]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    headlight = ("-m", "explorer.cli")
    assert run(*headlight, "--version").stdout == f"headlight {VERSION}\n"
    done = run(*headlight, "record", "The cat sat.", "-o", "it.npz")
    assert done.returncode == 0, done.stderr
    made = from_npz((tmp_path / "it.npz").read_bytes())
    assert made.text == "The cat sat." and made.version == VERSION
    where = run("-c", "import models, app; print(models.__file__); print(app.__file__)").stdout
    assert all(Path(line).is_relative_to(site) for line in where.split())
    early = run(*headlight, "record", "The cat sat.", "-m", "induction@400", "-o", "early.npz")
    assert early.returncode == 1 and early.stderr.splitlines()[-1] == (
        f"headlight: {shipped_models.NO_EARLIER}"
    )
    read = "from models import registry as of; import json; "
    asked = "print(json.dumps([of.checkpoints('induction'), of.without_earlier()]))"
    assert json.loads(run("-c", read + asked).stdout) == [[], shipped_models.NO_EARLIER]
