"""Notices of what a call did otherwise than its words promise, said to its caller in one sentence.

A page and the command line say it beside what they show, and switch these warnings off."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sized
from types import FrameType

OURS = {"models", "explorer", "headlight"}  # whose lines are none of a caller's


class Notice(UserWarning):
    """A call that did something else than was asked, such as reading a part of a text."""


def tell(sentence: str) -> None:
    """Warn the line that called Headlight; Python shows it once for each line."""
    frame: FrameType | None = sys._getframe()
    level = ours = 1
    while frame is not None:
        ours = level if _package(frame) in OURS else ours
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, Notice, stacklevel=ours + 1)


def tell_cut(name: str, limit: int, read: Sized, dropped: int, what: str = "text") -> None:
    """Say that a model read less of a text than there is: `read` tokens, and `dropped` are left."""
    if dropped:
        tell(
            f"{name} reads {limit:,} tokens at once; of the {len(read) + dropped:,} tokens of this "
            f"{what} the last {dropped:,} are left out"
        )


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
