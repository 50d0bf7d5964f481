"""Read the body of a request, up to a limit in bytes."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

from explorer.wording.markdown_escape import well_formed
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")


async def body(request: Request, content_type: str, limit: int) -> bytes:
    """The body of a request, at most `limit` bytes of `content_type`. Raises ValueError for another
    type or more bytes."""
    if request.headers.get("content-type", "").partition(";")[0] != content_type:
        raise ValueError(WORDS("content_type", content_type=content_type))
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > limit:
            raise ValueError(WORDS("too_long"))
    return bytes(data)


async def json_object(request: Request, limit: int) -> dict[str, Any]:
    """A JSON object from the body, which a page of another site cannot send here. Raises ValueError
    for a body that is no JSON object, or too long."""
    data = await body(request, "application/json", limit)
    try:
        value = json.loads(data)
    except (UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(WORDS("no_json")) from problem
    if not isinstance(value, dict):
        raise ValueError(WORDS("no_object"))
    # JSON can spell half a surrogate pair, which no message that is sent on can carry.
    return json.loads(well_formed(json.dumps(value, ensure_ascii=False)))
