"""A `.gguf` file as a folder of Hugging Face files: converted once into the user's cache.

The conversion (models/pretrained/gguf_conversion.py) runs in a process of its own, under limits on
memory, time and what it writes. What it makes is a folder like any other, `config.json`,
`tokenizer.json` and `model.safetensors`, so every check of such a folder holds for it too. The
folder is named by the SHA-256 of the file, and its manifest holds the digests of what lies in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from models import child_process
from models.pretrained import model_files
from models.pretrained.model_files import NotLoaded

try:
    import fcntl
except ImportError:  # Windows, where nothing says which folders are still in use
    fcntl = None  # type: ignore[assignment]

VERSION = 2  # of what a conversion writes; another one is made anew
MANIFEST = "converted.json"
SECONDS = 300.0  # for one conversion
POLL_INTERVAL = 0.2  # seconds between two looks at how far it has come
PREFIX = "making-"  # of the folder of a conversion that goes on
Progress = Callable[[int, int], None]
Loaded = TypeVar("Loaded")
INSTALL = "python -m pip install --no-deps gguf==0.19.0"


class Damaged(NotLoaded):
    """The files of a conversion are no longer those that were written."""


def gguf_file(path: Path) -> Path | None:
    """The GGUF file that a path means: itself, or the only one in a folder without a config.json.

    Raises NotLoaded where a folder holds several."""
    if model_files.is_gguf(path):
        return path
    if not path.is_dir() or (path / "config.json").exists():
        return None
    files = sorted(path.glob("*.gguf"))
    if len(files) > 1:
        raise NotLoaded(
            f"There are {len(files)} GGUF files in {path}; give the path of one, such as "
            f"{files[0].name}."
        )
    return files[0] if files else None


def cache() -> Path:
    """The folder of the user's cache in which conversions lie."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return _conversions_in(base)


@lru_cache
def _conversions_in(base: str) -> Path:
    """The folder of conversions in a user's cache, the same object each time: every page asks for
    it many times, and a path that was hashed keeps its hash."""
    return Path(base) / "headlight" / "gguf"


def can_have(digest: str) -> bool:
    """True where a file of this SHA-256 has been converted, or can be: the reader of such files is
    installed, and this user may write into the cache."""
    return _can_have(cache(), digest)


@lru_cache
def _can_have(folder: Path, digest: str) -> bool:
    goal = folder / _name(digest)
    if manifest(goal):
        return True
    there = next(each for each in goal.parents if os.path.exists(each))
    return find_spec("gguf") is not None and os.access(there, os.W_OK | os.X_OK)


def _goal(digest: str) -> Path:
    return cache() / _name(digest)


def _name(digest: str) -> str:
    return f"{digest}-{VERSION}"


def converted(
    source: Path,
    name: str,
    expected: str = "",
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Path:
    """The folder that a GGUF file was converted into, made where it is missing or damaged.

    expected: the SHA-256 that the file must have, "" for any. `progress(done_bytes, total_bytes)`
    is called while it is made. Raises NotLoaded, which calls the model `name`, where the file
    cannot be read or converted, and where `cancelled()` became true.
    """
    try:
        remove_unfinished()
        digest = model_files.digest([source], lambda: _expect_wanted(cancelled))
        if expected and digest != expected:
            raise NotLoaded(
                f"The file of {name} is not the one that was tested (sha256 {digest[:12]}…, not "
                f"{expected[:12]}…); install its package again."
            )
        goal = _goal(digest)
        if not is_complete(goal):
            _convert(source, goal, name, progress, cancelled)
    except OSError as error:
        raise NotLoaded(
            f"{name} could not be converted ({error.strerror or 'an error of the disk'}); check "
            f"the file and the folder {cache()}."
        ) from error
    return goal


def manifest(folder: Path) -> dict:
    """The manifest of a conversion: `weights`, how they were stored, `chat_template`, `digests` by
    file. {} for a folder that is no conversion, such as any outside of the cache."""
    if folder.parent != cache():
        return {}
    try:
        content = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def is_complete(folder: Path) -> bool:
    """True for a conversion whose files have the digests of its manifest. Of the weights only the
    size is looked at here: their digest is compared when they are read, `check_digest`."""
    manifest_data = manifest(folder)
    try:
        return bool(manifest_data) and all(
            (folder / file).stat().st_size == size
            if file == "model.safetensors"
            else model_files.digest([folder / file]) == digest
            for file, (digest, size) in manifest_data["digests"].items()
        )
    except (OSError, KeyError, TypeError, ValueError, AttributeError):
        return False


def check_digest(folder: Path, digest: str, name: str) -> None:
    """Raises Damaged where the weights of a conversion have another digest than those that were
    written; the conversion is removed, where it can be, so that the next load makes it anew."""
    manifest_data = manifest(folder)
    if not manifest_data:
        return
    try:
        is_same = manifest_data["digests"]["model.safetensors"][0] == digest
    except (KeyError, TypeError, IndexError):
        is_same = False
    if not is_same:
        shutil.rmtree(folder, ignore_errors=True)
        raise Damaged(
            f"The converted weights of {name} are damaged on this disk; remove the folder "
            f"{folder.name} from Headlight’s cache of GGUF files and open the model again."
        )


def anew(load: Callable[[], Loaded]) -> Loaded:
    """The result of `load`, which converts and reads a file, tried once more where it found a
    damaged conversion and could remove it."""
    try:
        return load()
    except Damaged:
        return load()


def remove_unfinished() -> None:
    """Remove what a conversion has left that was killed, its own process being gone."""
    if fcntl is None or not cache().is_dir():
        return
    with _locked(cache()):
        for folder in cache().glob(f"{PREFIX}*"):
            with suppress(OSError), _locked(folder, fcntl.LOCK_NB):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[None]:
    """The folder is this process's until the end. `how`: LOCK_NB raises OSError where it is
    another's."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _workspace(parent: Path) -> Iterator[Path]:
    """A new folder in `parent` that is this process's own, and is removed at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as locks:
        with _locked(parent):
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            locks.enter_context(_locked(folder))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _expect_wanted(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise NotLoaded("Stopped.")


def _convert(
    source: Path,
    goal: Path,
    name: str,
    progress: Progress | None,
    cancelled: Callable[[], bool],
) -> None:
    """Convert in another process into a folder beside the goal, and move it there at once: another
    process that does the same finds a whole folder or none."""
    if find_spec("gguf") is None:
        raise NotLoaded(f"{name} is a GGUF file, which needs the package gguf: run {INSTALL}.")
    with _workspace(goal.parent) as workspace:
        _run_converter(source.resolve(), workspace, name, progress, cancelled)
        if goal.exists() and not is_complete(goal):
            shutil.rmtree(goal, ignore_errors=True)
        try:
            os.rename(workspace, goal)
        except OSError:
            if not is_complete(goal):  # else another process was first
                raise


def _run_converter(
    source: Path,
    workspace: Path,
    name: str,
    progress: Progress | None,
    cancelled: Callable[[], bool],
) -> None:
    """Raises NotLoaded with what the converting process answers where it fails. That process ends
    with this one."""
    ours, theirs = os.pipe()
    process = child_process.start(
        f"{__package__}.gguf_conversion",
        str(source),
        str(workspace),
        name,
        env={"HF_HUB_OFFLINE": "1"},
        stdin=ours,
        text=True,
    )
    os.close(ours)
    end, answer = time.monotonic() + SECONDS, None
    try:
        while answer is None:
            _expect_wanted(cancelled)
            if time.monotonic() > end:
                raise NotLoaded(
                    f"Converting {name} did not end within {SECONDS:.0f} seconds; choose another "
                    "model."
                )
            with suppress(subprocess.TimeoutExpired):
                answer = process.communicate(timeout=POLL_INTERVAL)[0]
            if progress is not None:
                progress(*_written(workspace / "model.safetensors"))
    finally:
        if process.poll() is None:
            child_process.kill(process)
        os.close(theirs)
    if process.returncode or not answer.strip():
        raise NotLoaded(
            f"Converting {name} took more memory than its weights explain, or crashed; choose "
            "another model."
        )
    if problem := json.loads(answer)["problem"]:
        raise NotLoaded(problem)


def _written(file: Path) -> tuple[int, int]:
    """Written bytes and full size of a safetensors file; (0, 0) before its header is written."""
    try:
        with file.open("rb") as stream:
            begin = 8 + int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(begin - 8))
        size = file.stat().st_size
    except (OSError, ValueError):
        return 0, 0
    ends = (entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__")
    return size, begin + max(ends, default=0)
