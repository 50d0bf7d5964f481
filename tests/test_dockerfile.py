"""The Dockerfile, followed line by line without Docker: what it copies is there, what it installs
is pinned, and with that alone the app answers.

Packages come from the tests' own environment, and only those that the Dockerfile asks for and what
these need."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import clone
import driver
import httpx2
import pytest
from driver import free_port
from packaging.requirements import Requirement

from explorer import cli
from models import smollm2

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow
Line = tuple[str, str]  # an instruction and what follows it


def lines() -> list[Line]:
    text = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    return [
        (line.split()[0], line.split(maxsplit=1)[1])
        for line in text.splitlines()
        if line.strip() and not line.startswith("#")
    ]


def only(instruction: str) -> str:
    """What the one line with an instruction says."""
    (said,) = (rest for name, rest in lines() if name == instruction)
    return said


def ignored(name: str) -> bool:
    """True for what .dockerignore keeps out: a file that a pattern fits, or one in a folder that
    one fits."""
    path = PurePosixPath(name)
    for pattern in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        if not pattern or pattern.startswith("#"):
            continue
        anywhere = pattern.removeprefix("**/")
        for each in (path, *path.parents):
            if fnmatch(each.name if anywhere != pattern else str(each), anywhere):
                return True
    return False


def copied(said: str) -> list[str]:
    """The files that a COPY takes. Each of its sources must be there."""
    *sources, goal = said.split()
    assert goal in (".", "./"), "each file goes where it lies in the project"
    names = [name for name in clone.names() if not ignored(name)]
    found = []
    for source in sources:
        root = PurePosixPath(source)
        here = [name for name in names if PurePosixPath(name).is_relative_to(root)]
        assert here, f"COPY {source}: nothing of that name is in the project"
        found += here
    return found


def installs(said: str) -> list[list[str]]:
    """What a RUN gives to `pip install`, call by call."""
    calls = [shlex.split(each) for each in said.split("&&")]
    return [call[2:] for call in calls if call[:2] == ["pip", "install"]]


def pip_calls() -> list[list[str]]:
    """What the whole Dockerfile gives to `pip install`."""
    return [call for name, said in lines() if name == "RUN" for call in installs(said)]


def required(call: list[str], folder: Path) -> list[tuple[str, bool]]:
    """The packages that a call of `pip install` asks for, of what has been copied into a folder so
    far, and whether each comes alone. All are held to the tested versions, or to their hashes."""
    named, options = [], iter(call)
    for each in options:
        if each == "-r":
            lines = (folder / next(options)).read_text("utf-8").splitlines()
            # Of a package with hashes the first line names it.
            named += [line.rstrip("\\ ") for line in lines if line[:1].isalnum()]
        elif each == "-c":
            assert (folder / next(options)).samefile(folder / "constraints.txt")
        elif not each.startswith("-") and each != ".":
            named.append(each)
    held = "-c" in call or "--require-hashes" in call
    assert not named or held, f"pip install {' '.join(call)}: any version may come"
    asked = [Requirement(each) for each in named]
    return [
        (each.name, "--no-deps" in call)
        for each in asked
        if each.marker is None or each.marker.evaluate({"extra": ""})
    ]


def test_the_image_takes_the_installed_project_and_not_its_source() -> None:
    parts = [said.split() for name, said in lines() if name == "FROM"]
    assert len({part[0] for part in parts}) == 1, "what one Python compiled another would not read"
    stage = parts[0][parts[0].index("AS") + 1]
    options = [each for call in pip_calls() for each in call]
    (prefix,) = (each.removeprefix("--prefix=") for each in options if "--prefix=" in each)
    copies = [said for name, said in lines() if name == "COPY"]
    assert copies.index(". .") < copies.index(f"--from={stage} {prefix} /usr/local")
    assert copies.count(". .") == 1
    last = max(at for at, (name, _) in enumerate(lines()) if name == "FROM")
    assert ("COPY", ". .") not in lines()[last:]


def test_nothing_left_from_building_or_checking_goes_into_the_image() -> None:
    left = ("build/lib/explorer/gone.py", "dist/a.whl", "headlight_attention.egg-info/SOURCES.txt")
    caches = (".mypy_cache/a.json", ".pytest_cache/v/a", "explorer/__pycache__/a.pyc")
    assert all(ignored(each) for each in (*left, *caches, ".venv/bin/python", ".git/config"))
    assert not any(
        ignored(each) for each in ("app.py", ".streamlit/config.toml", "models/model_names.py")
    )


def test_torch_may_come_without_the_libraries_of_graphics_cards() -> None:
    """From an index that is named where the image is built; without one from the usual index."""
    at = lines().index(("ARG", "PIP_EXTRA_INDEX_URL"))  # which pip reads where it is set
    last = max(at for at, (name, _) in enumerate(lines()) if name == "FROM")
    (installing,) = (
        number for number, (_, said) in enumerate(lines()) if "-r requirements.txt" in said
    )
    assert last < at < installing


def test_packages_are_checked_by_their_hashes_before_anything_else_is_installed() -> None:
    """What is left for the call without hashes is PyTorch."""
    calls = [call for call in pip_calls() if "." not in call]
    first, second = calls
    assert {"--require-hashes", "--no-deps"} <= set(first) and "requirements.lock" in first
    assert second[-4:] == ["-c", "constraints.txt", "-r", "requirements.txt"]


def environment(source: Path, fresh: Path, others: Path) -> Path:
    """A fresh environment with what setup.py installs of a source, and with the packages that lie
    in `others`: its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(fresh)], check=True)
    (site,) = fresh.glob("lib/python*/site-packages")
    build = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(site)]
    said = dict(each.split("=") for name, rest in lines() if name == "ENV" for each in rest.split())
    subprocess.run(build, cwd=source, check=True, env={**os.environ, **said})
    (site / "others.pth").write_text(str(others))
    return fresh / "bin" / "python"


def prepare(python: Path, home: Path) -> None:
    """Run what the Dockerfile runs of the project itself, with a home whose conversion of smollm2
    is the one that this machine has: to make it anew takes a minute."""
    calls = [shlex.split(each) for name, each in lines() if name == "RUN"]
    ((_, *given),) = [call for call in calls if call[0] == "headlight"]
    assert cli.parser().parse_args(given).model == smollm2.NAME
    if smollm2.file() is not None:
        made = smollm2.folder()
        there = home / ".cache" / "headlight" / "gguf"
        there.mkdir(parents=True)
        (there / made.name).symlink_to(made)
        run = [str(python), "-m", "headlight.explorer.cli", *given]
        environ = {**os.environ, "PYTHONPATH": "", "HOME": str(home), "XDG_CACHE_HOME": ""}
        subprocess.run(run, cwd=home, check=True, env=environ)
        assert list(there.iterdir()) == [there / made.name], "where the app looks for it"


def test_what_it_copies_and_installs_is_all_that_the_app_needs(tmp_path: Path) -> None:
    image, home = tmp_path / "image", tmp_path / "home"
    others = tmp_path / "others" / "site-packages"  # elsewhere Streamlit thinks it is developed
    for each in (image, home, others):
        each.mkdir(parents=True)
    asked: list[tuple[str, bool]] = []
    python = None
    for name, said in lines():
        if name == "FROM":  # nothing of the stage before is here
            shutil.rmtree(image, ignore_errors=True)
            image.mkdir()
        elif name == "COPY" and not said.startswith("--from="):
            clone.copy(copied(said), image)
        elif name == "RUN":
            for call in installs(said):
                asked += required(call, image)
                if "." in call:
                    python = environment(image, tmp_path / "fresh", others)
    assert python, "the project itself is installed"
    clone.link(asked, others)
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    folders = ("explorer/", "models/", "pages/")
    own = [each for each in clone.names() if each.startswith(folders) and each[-3:] != ".md"]
    assert own and all((site / "headlight" / each).is_file() for each in own)
    shutil.rmtree(image)
    prepare(python, home)
    program, *given = [*json.loads(only("ENTRYPOINT")), *json.loads(only("CMD"))]
    assert program == "headlight"
    assert cli.parser().parse_args(given).port == int(only("EXPOSE"))
    port = free_port()
    started = [str(python), "-m", "headlight.explorer.cli", *given, "--port", str(port)]
    serving = driver.running(started, port, home, PYTHONPATH="", HOME=str(home))
    address = next(serving)
    for _ in range(300):
        ready = httpx2.get(f"{address}/readyz")
        if ready.status_code == 200:
            break
        time.sleep(0.1)
    assert ready.status_code == 200 and "Headlight" in httpx2.get(address).text
    look = only("HEALTHCHECK").partition("CMD ")[2].replace(only("EXPOSE"), str(port))
    assert shlex.split(look)[0] == "python"
    assert subprocess.run([str(python), *shlex.split(look)[1:]]).returncode == 0
    next(serving, None)
