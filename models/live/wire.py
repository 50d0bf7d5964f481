"""Frames between the app and a process that trains: a line of JSON, then so many bytes as its
`size` says."""

from __future__ import annotations

import json
from typing import IO


def send(to: IO[bytes], header: dict, content: bytes = b"") -> None:
    """Write one frame. Raises BrokenPipeError where nobody reads any more."""
    to.write(json.dumps({**header, "size": len(content)}).encode() + b"\n" + content)
    to.flush()


def receive(source: IO[bytes]) -> tuple[dict, bytes] | None:
    """The next frame; None at the end."""
    line = source.readline()
    if not line:
        return None
    header = json.loads(line)
    content = source.read(header.pop("size"))
    return header, content
