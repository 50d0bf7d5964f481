"""The files that this process may have open. Each connection is one."""

from __future__ import annotations

import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource

ENOUGH = 65_536
# Of one reader: the connections by which a browser fetches a page, its session's and its class's.
FILES_EACH = 8


def limit() -> int:
    """The number of files that this process may have open; 0 where the system does not say."""
    return 0 if sys.platform == "win32" else resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_limit() -> None:
    """Raise the limit as far as the system lets a process do so. The usual 1,024 are for programs
    that open few files."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # A system may have a bound of its own below the hard one.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def readers(wanted: int) -> int:
    """The number of readers, of those that are wanted, that have files enough; at least one."""
    files = limit()
    return min(wanted, max(1, files // FILES_EACH)) if files > 0 else wanted
