"""Processes beside the app whose end harms nobody but the reader who asked for what they do."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def prefer_oom_kill() -> None:
    """Let the kernel end this process, and those that it starts, before any other where memory is
    short. Elsewhere than on Linux nothing is changed."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
