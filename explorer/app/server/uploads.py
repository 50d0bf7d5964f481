"""Files on their way to a visit: few at a time, so that they do not fill the memory."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from explorer.app.server.addresses import UPLOAD
from explorer.wording.templates import sentences

WORDS = sentences("server", "pages")
MOST_UNDER_WAY = 2  # files that arrive at once
MOST_WAITING = 2**29  # bytes of files that have arrived and are not read yet, of all visits


class UploadLimit:
    """Refuses a file while as many are under way or wait to be read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_file = scope["type"] == "http" and scope["method"] == "PUT"
        if not is_file or not UPLOAD.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
        elif self._under_way >= MOST_UNDER_WAY or waiting_bytes() >= MOST_WAITING:
            refusal = PlainTextResponse(WORDS("uploads"), 503, {"Retry-After": "5"})
            await refusal(scope, receive, send)
        else:
            self._under_way += 1
            try:
                await self.app(scope, receive, send)
            finally:
                self._under_way -= 1


def waiting_bytes() -> int:
    """Bytes of the files that Streamlit holds for all visits."""
    manager = Runtime.instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)
    of_visits = [list(each.values()) for each in list(manager.file_storage.values())]
    return sum(len(file.data) for files in of_visits for file in files)
