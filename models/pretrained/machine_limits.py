"""Limits of what a model may take of this machine: parameters, memory, disk. Without PyTorch, which
the process that converts a GGUF file does without."""

from __future__ import annotations

import shutil
from pathlib import Path

from models.pretrained.model_files import NotLoaded

# The largest model that is accepted; at 4 bytes each its numbers fill 6 GiB, and a sentence takes
# seconds.
MOST_PARAMETERS = 1_600_000_000
# What running needs beside the weights: the libraries, and one recording in the making.
MEMORY_TO_SPARE = 1 << 30
DISK_TO_SPARE = 1 << 30


def check_size(count: int, download: int, name: str) -> None:
    """Raises NotLoaded where `count` parameters in float32, or a `download` of that many bytes, do
    not fit this machine."""
    if count > MOST_PARAMETERS:
        raise NotLoaded(
            f"{name} has {count_text(count)} parameters and Headlight takes up to "
            f"{count_text(MOST_PARAMETERS)}; choose a smaller model."
        )
    need, free = 4 * count + MEMORY_TO_SPARE, free_memory()
    if free is not None and need > free:
        raise NotLoaded(
            f"{name} needs {size_text(need)} of memory and {size_text(free)} are free; close "
            "something or choose a smaller model."
        )
    if download > 8 * MOST_PARAMETERS + MEMORY_TO_SPARE:
        raise NotLoaded(
            f"{name} is a download of {size_text(download)}, far more than a model of the size "
            "that Headlight takes; choose a smaller one."
        )
    if download and download + DISK_TO_SPARE > (room := free_disk()):
        raise NotLoaded(
            f"{name} is a download of {size_text(download)} and {size_text(room)} of disk are "
            "free; make room or choose a smaller model."
        )


def free_memory() -> int | None:
    """Bytes of memory that this process may still take, as the machine or its container says; None
    where neither does."""
    limits = []
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        limits += [
            int(line.split()[1]) * 1024
            for line in meminfo.read_text().splitlines()
            if line.startswith("MemAvailable:")
        ]
    limit_file, usage_file = (
        Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current")
    )
    if (
        limit_file.is_file()
        and usage_file.is_file()
        and (limit := limit_file.read_text().strip()).isdigit()
    ):
        limits.append(max(0, int(limit) - int(usage_file.read_text())))
    return min(limits, default=None)


def free_disk() -> int:
    """Bytes that are free where files of the hub are kept."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def size_text(n: int) -> str:
    """So many bytes as a message says them."""
    return f"{n / (1 << 30):.1f} GiB"


def count_text(n: int) -> str:
    """So many parameters as a message says them."""
    return f"{n / 1e9:.1f} billion" if n >= 1e9 else f"{n / 1e6:.0f} million"
