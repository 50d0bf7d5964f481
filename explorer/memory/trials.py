"""Which borrowed models went through a trial in this process, and with which files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from models import library

TRIALS = 2  # of one loading, where files change meanwhile
_tried: dict[str, object] = {}  # by name, the stamp of the files that were tried


def passed(name: str) -> bool:
    """True for a model that went through a trial, and whose files are as they were then."""
    return name in _tried and _tried[name] == library.stamp(name)


def note(name: str, stamp: object) -> bool:
    """A model went through a trial with the files of this stamp. True where other files of it did
    before."""
    before = _tried.get(name, stamp)
    _tried[name] = stamp
    return before != stamp


def load(
    name: str, base: str, progress: Callable[[int, int], None], cancelled: Callable[[], bool]
) -> Any:
    """A borrowed model, loaded from files that went through a trial; `base`: the model that it is
    made of. Raises ValueError as `library.tried`, and where the files change meanwhile."""
    for _ in range(TRIALS):
        if not passed(base):
            note(*library.tried(base, progress, cancelled))
        made = library.load(name, progress)
        if passed(base):
            return made
    raise ValueError(
        f"The files of {base.partition(':')[2]} changed while they were read; open it again."
    )
