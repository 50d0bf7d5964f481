"""What leaves the project as a package: what it is locked to, and that sdist and wheel install and
work."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import tomllib
import urllib.request
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import clone
import cookbook
import pytest
import yaml
from driver import free_port
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import headlight
from explorer.panels import attention
from explorer.panels.spec import panel_names, python
from models import shipped_models
from models.contract.recording_file import from_npz
from models.runtime.run import Run
from models.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
_made = importlib.util.spec_from_file_location("headlight_setup", ROOT / "setup.py")
setup = importlib.util.module_from_spec(_made)
_made.loader.exec_module(setup)
MEASURES, SENTENCES = (
    [path for path in (ROOT / "explorer" / folder).glob("*.py") if path.stem != "__init__"]
    for folder in ("analysis", "text")
)
MOST_BYTES = 60_000_000  # of a wheel
OF_GRAPHICS_CARDS = re.compile(r"nvidia-|cuda-|triton")


def required(file: str) -> dict[str, SpecifierSet]:
    """The versions that a file of requirements takes, by name."""
    lines = (ROOT / file).read_text("utf-8").splitlines()
    asked = [Requirement(line.rstrip("\\ ")) for line in lines if line[:1].isalnum()]
    return {clone.plain(each.name): each.specifier for each in asked}


def pinned(file: str) -> dict[str, str]:
    """The versions in a file that names one of each package."""
    return {name: str(each).removeprefix("==") for name, each in required(file).items()}


def test_all_that_the_app_needs_is_locked_at_the_tested_version() -> None:
    locked, asked = pinned("requirements.lock"), required("requirements.txt")
    tested = pinned("constraints.txt")
    asked |= required("requirements-figures.txt")
    every = set().union(*(clone.needed(name) for name in (*asked, "redis")))
    every = {name for name in every if not OF_GRAPHICS_CARDS.match(name)} - {"torch"}
    assert "torch" not in locked and every | {shipped_models.PACKAGE} <= locked.keys()
    assert all(tested[name] in versions for name, versions in asked.items())
    assert not any("==" in str(versions) for versions in asked.values()), "a library takes a range"
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
    names = {clone.plain(each.name) for each in asked if "extra" not in str(each.marker)}
    assert {name for name in names if not OF_GRAPHICS_CARDS.match(name)} == set(of_torch)


def test_what_an_extra_asks_for_is_asked_for_as_the_app_does() -> None:
    asked, tested = required("requirements.txt"), pinned("constraints.txt")
    for name, versions in required("requirements-models.txt").items():
        assert asked.get(name, versions) == versions and tested[name] in versions
    core = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    for each in map(Requirement, core):
        assert asked[clone.plain(each.name)] == each.specifier


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with sdist and wheel, the wheel made of the sdist, as `python -m build` does."""
    source = clone.copy(clone.names(), tmp_path_factory.mktemp("clone"))
    subprocess.run([sys.executable, "-m", "build", "--no-isolation"], cwd=source, check=True)
    return source / "dist"


@pytest.fixture(scope="module")
def site(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder that the wheel is installed in, without a network."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    target = ["--no-index", "--no-deps", "--target", str(folder)]
    subprocess.run([*pip, *target, *map(str, built.glob("*.whl"))], check=True)
    return folder


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of somebody's own modules, named as ours are in the clone."""
    for name in setup.BELOW:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py of another')\n")
    return tmp_path


@dataclass(frozen=True)
class Installed:
    """The wheel as a user has it: in `site`, and used in a folder of theirs."""

    site: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """In it and in what it needs, and not in the clone."""
        paths = os.pathsep.join([str(self.site), sysconfig.get_paths()["purelib"]])
        return {**os.environ, "PYTHONPATH": paths}

    def run(self, *asked: str, by: str = sys.executable) -> str:
        """What a command of a Python, this one unless another is named, or of the wheel by its
        path, prints."""
        command = asked if asked[0].startswith("/") else (by, *asked)
        env = self.environment
        if by != sys.executable:  # it has packages of its own
            env = {**env, "PYTHONPATH": str(self.site)}
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def script(self, text: str) -> str:
        """What a script in the folder prints."""
        (self.folder / "script.py").write_text(text, "utf-8")
        return self.run("script.py")


@pytest.fixture
def installed(site: Path, hostile: Path) -> Installed:
    return Installed(site, hostile)


def test_imports_of_ours_lie_below_the_package_and_nothing_else_changes() -> None:
    text = """\"\"\"from models import edits\"\"\"
import os, json
from modelsx import a
from .models import b
from models.contract.edits import (  # é
    ZeroHead,
)
def lazy():
    from explorer import export as models; return "from models import x"
"""
    made = setup.nested(text.encode()).decode()
    assert made == text.replace("from models.", "from headlight.models.").replace(
        "    from explorer", "    from headlight.explorer"
    )
    # An import that would bind another name is refused.
    semicolon = "from os import path; from  models import x"
    for line in ("import models", "import os, models.contract.edits", semicolon):
        with pytest.raises(ValueError, match="line 1: write `from"):
            setup.nested(line.encode())


@pytest.mark.slow
def test_the_wheel_is_small_and_whole(built: Path, site: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith(f"headlight_attention-{VERSION}-")
    assert wheel.stat().st_size < MOST_BYTES and sdist.stat().st_size < MOST_BYTES
    assert {each.name.partition("-")[0] for each in site.iterdir()} == {
        "bin",
        "headlight",
        "headlight_attention",
    }
    inside = {
        each.relative_to(site / "headlight").as_posix()
        for each in (site / "headlight").rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }
    ours = tuple(f"{name}/" for name in setup.BELOW)
    expected = {name for name in clone.names() if name.startswith(ours)}
    left = expected - inside
    assert {Path(name).name for name in left} == {shipped_models.EARLIER}
    assert inside - expected == {
        *("__init__.py", "__main__.py", "app.py", ".streamlit/config.toml", "py.typed")
    }
    said = (site / "headlight" / "models" / "version.py").read_text("utf-8")
    assert said == f'"""The version of Headlight."""\n\nVERSION = {VERSION!r}\n'
    (info,) = site.glob("*.dist-info")
    told = (info / "METADATA").read_text("utf-8")
    assert f"\nVersion: {VERSION}\n" in told and "\nKeywords: attention" in told


@pytest.mark.slow
def test_no_string_of_the_wheel_names_a_module_by_its_name_in_the_clone(site: Path) -> None:
    name = re.compile(rf"({'|'.join(setup.BELOW)})(\.[a-z_]\w*)+")
    for path in (site / "headlight").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                module = ROOT.joinpath(*node.value.split("."))
                there = name.fullmatch(node.value) and module.with_suffix(".py").exists()
                assert not there, f"{path}: {node.value}"


@pytest.mark.slow
def test_installed_it_works_as_the_clone_does(installed: Installed) -> None:
    """It records to the last bit what the clone does, says where the earlier weights are, which it
    has not, trains in a process beside other modules of its modules' names, and runs the lines of
    the Export menu."""
    texts = {
        "encoder": "The animal didn't cross the street because it was too tired.",
        "decoder": "Ram pushed Hari because he was angry.",
        "translator": "The red car is new.",
    }
    run = Run("induction", "the cat the cat", headlight.edits.from_line("ZeroHead:0:1:self"))
    lines = python(attention.opened(run, {}))
    measures = ", ".join(path.stem for path in MEASURES)
    sentences = "\n".join(f"headlight.{path.stem}_text" for path in SENTENCES)
    where, earlier, trained = installed.script(f"""
import json, time
import headlight
from headlight import live_training, registry
from headlight.models.contract.recording_file import to_npz

for model, text in {texts!r}.items():
    edits = headlight.edits.from_line("ZeroHead:0:1:self") if model == "encoder" else ()
    with open(f"{{model}}.npz", "wb") as file:
        file.write(to_npz(headlight.record(model, text, edits)))
print(headlight.__file__)
print(json.dumps([registry.checkpoints("induction"), registry.without_earlier()]))
training = live_training.TrainingProcess(live_training.TrainingPlan("copy"))
training.resume()
while training.running and not training.weights:
    time.sleep(0.1)
training.end()
print(training.problem or len(training.weights))
from headlight import {measures}
{sentences}
{lines}
""").splitlines()
    assert trained == "1"
    (file, *_) = re.findall(r'save\("(.+?)"\)', lines)
    assert (installed.folder / file).stat().st_size > 10**5
    assert json.loads(earlier) == [[], shipped_models.NO_EARLIER]
    assert Path(where) == installed.site / "headlight" / "__init__.py"
    for model, text in texts.items():
        edits = headlight.edits.from_line("ZeroHead:0:1:self") if model == "encoder" else ()
        made = from_npz((installed.folder / f"{model}.npz").read_bytes())
        assert made == headlight.record(model, text, edits) and made.version == VERSION


# What a script of a user does beside modules of theirs that are named as ours are.
BESIDE_OTHERS = """
import json
import headlight
from headlight import Run, edits, panels, residual

recording = headlight.record("encoder", "Ram pushed Hari", edits.ZeroHead(0, 1))
panel = panels.attention.heads(Run("encoder", "Ram pushed Hari"))
page = headlight.page(recording, layer=1, head=2)
open("it.npz", "wb").write(headlight.to_npz(recording))
others = []
for name in ("models", "explorer", "pages", "app"):
    try:
        __import__(name)
    except SystemExit as said:
        others.append(str(said))
print(json.dumps([headlight.__version__, len(page) > 10**5, others, type(recording).__module__]))
"""


def told_beside_others(python: str, folder: Path, environment: dict[str, str]) -> None:
    (folder / "script.py").write_text(BESIDE_OTHERS, "utf-8")
    done = subprocess.run(
        [python, "script.py"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    others = [f"{name}.py of another" for name in ("models", "explorer", "pages", "app")]
    assert json.loads(done.stdout) == [VERSION, True, others, "headlight.models.contract.recording"]
    made, zeroed = from_npz((folder / "it.npz").read_bytes()), headlight.edits.ZeroHead(0, 1)
    assert made == headlight.record("encoder", "Ram pushed Hari", zeroed)


@pytest.mark.slow
def test_a_clone_is_imported_beside_other_modules_of_its_names(hostile: Path) -> None:
    paths = os.pathsep.join([str(ROOT), sysconfig.get_paths()["purelib"]])
    told_beside_others(sys.executable, hostile, {**os.environ, "PYTHONPATH": paths})


@pytest.mark.slow
def test_an_editable_install_is_the_clone_below_its_name(hostile: Path, tmp_path: Path) -> None:
    source = clone.copy(clone.names(), tmp_path / "clone")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    python = str(tmp_path / "venv" / "bin" / "python")
    environment = {name: each for name, each in os.environ.items() if name != "PYTHONPATH"}
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-index", "--no-deps", "--no-build-isolation", "-e", str(source)]
    subprocess.run([*pip, *options], check=True, cwd=hostile, env=environment)
    told_beside_others(python, hostile, environment)
    command = [str(tmp_path / "venv" / "bin" / "headlight"), "--version"]
    said = subprocess.check_output(command, text=True, cwd=hostile, env=environment)
    assert said == f"headlight {VERSION}\n"
    # A change of the clone is there at the next start, and in the clone names are as they were.
    (source / "pyproject.toml").write_text(
        (source / "pyproject.toml").read_text("utf-8").replace(VERSION, "9.9")
    )
    for folder, module in (
        (hostile, "headlight.models.contract.edits"),
        (source, "models.contract.edits"),
    ):
        asked = "import headlight; print(headlight.__version__, headlight.edits.__name__)"
        said = subprocess.run(
            [python, "-c", asked], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert said.stdout == f"9.9 {module}\n", said.stderr


def test_the_citation_is_of_this_version_and_names_no_address() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert cited["cff-version"] == "1.2.0" and {"message", "title", "authors"} <= cited.keys()
    assert (cited["version"], cited["license"]) == (project["version"], project["license"])
    assert cited["version"] == VERSION == headlight.__version__
    assert not {"urls", "url"} & project.keys() and "url" not in cited


def test_what_the_library_has_is_listed_by_its_name() -> None:
    listed = dir(headlight)
    assert {*headlight.__all__} <= {*listed} and {"Run", "page", "panels", "edits"} <= {*listed}
    assert {path.stem for path in MEASURES} | {f"{path.stem}_text" for path in SENTENCES} <= {
        *listed
    }
    assert all(getattr(headlight, name) is not None for name in listed)
    edits = {name: getattr(headlight.edits, name) for name in dir(headlight.edits)}
    assert {*headlight.edits.KINDS, "describe", "from_line", "POSITIONS"} <= edits.keys()
    assert not {"np", "re", "dataclass", "edited"} & edits.keys(), "nothing of the module's own"
    with pytest.raises(AttributeError, match="headlight has no 'nothing'"):
        headlight.nothing  # noqa: B018


WITHOUT_THE_APP = """
import io, sys
from importlib.util import find_spec
for name in ("streamlit", "plotly", "segno", "uvloop", "starlette", "transformers"):
    assert find_spec(name) is None, name
import headlight
from headlight.explorer import cli
from headlight.explorer.panels import address, spec
from headlight.explorer.text import claims

model = {"translation": "translator", "training": "induction", "generation": "decoder"}
model["teacher_forcing"] = "decoder"
text = "The waiter brought the soup but it was cold."
made = 0
for name in spec.panel_names():
    run = headlight.Run(model.get(name.partition(".")[0], "encoder"), text)
    choices = {"claims": "rows,heads-differ"} if name == "claims.verdicts" else {}
    try:
        panel = address.from_words(name, run, choices)
        assert panel.finding and panel.encode() and panel.csv()
    except ValueError as why:  # the package leaves them out
        left_out = {"training": "leaves out earlier weights", "modern": "smollm2"}
        left_out["attribution"] = "tells no classes of texts apart"
        left_out["compare"] = left_out["offers"] = "No other model here has tested heads"
        assert left_out[name.partition(".")[0]] in str(why)
    made += 1
recording = headlight.record("encoder", text)
assert "<html" in headlight.page(recording, layer=1, head=5)
again = headlight.from_npz(headlight.to_npz(recording))
of_recording = headlight.panels.attention.heads(again)
of_run = headlight.panels.attention.heads(headlight.Run("encoder", text))
assert of_recording.finding == of_run.finding and of_recording.csv() == of_run.csv()
assert headlight.panels.attention.heads(headlight.load("encoder")).finding
for words in (
    ("record", "The cat sat.", "-o", "it.npz"),
    ("page", "The cat sat.", "-o", "it.html"),
    ("page", "The cat sat.", "--view", "residual.updates", "-o", "updates.html"),
):
    assert cli.main(words) == 0
print(made)
"""


@pytest.mark.slow
def test_the_library_runs_where_the_app_is_not_installed(site: Path, tmp_path: Path) -> None:
    packages, work = tmp_path / "packages", tmp_path / "work"
    packages.mkdir()
    work.mkdir()
    (wheel,) = metadata.distributions(path=[str(site)])
    asked = map(Requirement, wheel.requires or ())
    clone.link(((each.name, False) for each in asked if "extra" not in str(each.marker)), packages)
    paths = os.pathsep.join(map(str, (site, packages)))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}

    def run(*asked: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-S", *asked]  # without the packages of this environment
        return subprocess.run(
            command, cwd=work, env=environment, check=False, capture_output=True, text=True
        )

    done = run("-c", WITHOUT_THE_APP)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(panel_names())
    assert {path.name for path in work.iterdir()} == {"it.npz", "it.html", "updates.html"}
    command = "-m", "headlight.explorer.cli"
    for words in (("models",), ("page", "--help")):
        assert (done := run(*command, *words)).returncode == 0, done.stderr
    done = run(*command, "app")
    assert done.returncode == 1 and "pip install 'headlight-attention[app]'" in done.stderr


def pythons() -> list[str]:
    """This Python, and the newest other that is here, by a name or in pyenv's folder."""
    names = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    kept = sorted(Path("~/.pyenv/versions").expanduser().glob("3.1[1-9].*/bin/python"))
    found: dict[tuple[int, int], str] = {}
    for each in filter(None, [*names, *map(str, kept)]):
        asked = [each, "-c", "import sys; print(*sys.version_info[:2])"]
        said = subprocess.run(asked, capture_output=True, text=True)
        if not said.returncode:  # a shim of a Python that is not chosen
            major, minor = map(int, said.stdout.split())
            found.setdefault((major, minor), each)
    found.pop(sys.version_info[:2], None)
    return [sys.executable, *(found[version] for version in sorted(found)[-1:])]


def has(python: str, *modules: str) -> bool:
    """True where a Python finds all of some modules."""
    asked = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    return not subprocess.run([python, "-I", "-c", asked], capture_output=True).returncode


@pytest.mark.slow
@pytest.mark.parametrize("python", pythons())
def test_the_cookbook_runs_by_the_wheel_alone(
    installed: Installed, python: str, built: Path
) -> None:
    """As `make wheels` by each Python in fresh environments."""
    if python != sys.executable and not has(python, "torch", "transformers", "typst", "pandas"):
        runs_without_packages(installed.folder, python, built)
        return
    for file in ("tests/cookbook.py", "docs/cookbook.md"):
        shutil.copy(ROOT / file, installed.folder)
    n = len(cookbook.blocks((ROOT / "docs/cookbook.md").read_text("utf-8")))
    assert installed.run("cookbook.py", "cookbook.md", by=python).endswith(f"{n} blocks run\n")


def runs_without_packages(folder: Path, python: str, built: Path) -> None:
    """Install the wheel by a Python without the packages that it needs: all of it compiles with
    nothing to warn of, every module begins, and all that it uses of the standard library is there.
    """

    def run(*asked: str) -> str:
        paths = {"PYTHONPATH": str(site), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
        command = [python, "-W", "error", *asked]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, **paths}, capture_output=True, text=True
        )
        assert not done.returncode, done.stdout + done.stderr
        return done.stdout

    site = folder / "of_python"
    pip = ["-W", "ignore", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    target = ["--no-index", "--no-deps", "--target", str(site), "--root-user-action", "ignore"]
    run(*pip, "--no-compile", *target, *map(str, built.glob("*.whl")))
    run("-m", "compileall", "-q", str(site))
    assert list((folder / "compiled").rglob("*.pyc"))
    assert run(str(site / "bin" / "headlight"), "--version") == f"headlight {VERSION}\n"
    listed = run("-c", "import headlight; print(*dir(headlight))").split()
    assert listed == dir(headlight)
    checks = [str(ROOT / "tests" / "standard_library.py"), str(site / "headlight")]
    names = json.dumps(sorted(sys.stdlib_module_names))
    found = set(run(*checks, names).splitlines())
    # What another system alone has is missing here too, by the Python that runs the tests.
    ours = subprocess.run([sys.executable, "-S", *checks, names], capture_output=True, text=True)
    assert not ours.returncode, ours.stderr
    assert not found - set(ours.stdout.splitlines())


def test_what_a_python_lacks_of_its_library_is_found(tmp_path: Path) -> None:
    modules = {
        "__init__": "import json, os.path\nos.path.join, lambda: json.gone",
        "of_others": "import not_here\nfrom collections import abc, nothing\nabc.Sequence",
        "of_ours": "import pack.no",
    }
    (tmp_path / "pack").mkdir()
    for name, text in modules.items():
        (tmp_path / "pack" / f"{name}.py").write_text(text)
    script = [sys.executable, "-S", str(ROOT / "tests" / "standard_library.py")]
    asked = [*script, str(tmp_path / "pack"), '["removed"]']
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert found == [
        "__init__.py: json.gone",
        "of_others.py: collections.nothing",
        "pack.of_ours: No module named 'pack.no'",
    ]


@pytest.mark.slow
def test_the_installed_command_starts_the_app(installed: Installed) -> None:
    command = str(installed.site / "bin" / "headlight")
    assert installed.run(command, "--version") == f"headlight {VERSION}\n"
    assert "encoder" in installed.run(command, "models")
    port = str(free_port())
    app = subprocess.Popen(
        [command, "app", "--port", port, "--address", "127.0.0.1"],
        cwd=installed.folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=installed.environment,
    )
    pages = {"/readyz": b"true", "/healthz": b'"ok":true', "/learn": b"<html"}
    try:
        for path, wanted in (pages | {"/app/static/inter.woff2": b"wOF2"}).items():
            assert wanted in fetched(f"http://127.0.0.1:{port}{path}")
    finally:
        app.terminate()
        app.wait(20)


def fetched(address: str) -> bytes:
    for _ in range(120):
        try:
            with urllib.request.urlopen(address, timeout=2) as answer:
                return answer.read()
        except OSError:
            time.sleep(0.25)
    raise AssertionError(f"{address} did not answer")
