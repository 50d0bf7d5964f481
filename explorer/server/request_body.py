"""What a browser sends to an address, read no further than it may be long."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from explorer.state.settings import well_formed


async def body(request: Request, kind: str, most: int) -> bytes:
    """What was sent, so many bytes at most of that kind. Raises ValueError for another or more."""
    if request.headers.get("content-type", "").partition(";")[0] != kind:
        raise ValueError(f"This is sent as {kind}.")
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > most:
            raise ValueError("This is too long.")
    return bytes(read)


async def json_object(request: Request, most: int) -> dict[str, Any]:
    """What was sent as JSON, which a page of another site cannot send here. Raises ValueError for
    what is no JSON object, or too long."""
    read = await body(request, "application/json", most)
    try:
        said = json.loads(read)
    except (UnicodeDecodeError, RecursionError) as problem:
        raise ValueError("This is no JSON.") from problem
    if not isinstance(said, dict):
        raise ValueError("This is no JSON object.")
    # JSON can spell half a surrogate pair, which no message that is sent on can carry.
    return json.loads(well_formed(json.dumps(said, ensure_ascii=False)))
