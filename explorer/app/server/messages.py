"""Messages that a browser may send on the line of its session: those of the app's page, and nothing
else."""

from __future__ import annotations

import re

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from explorer.app.server.limits import STREAM
from explorer.app.state.event_log import log_refusal
from explorer.app.state.settings import settings

MESSAGE_TYPES = {"rerun_script", "stop_script", "app_heartbeat"}
REQUEST_TYPES = {"deferred_file", "dataframe_chunk"}  # a download, and the rows of a long table
LONGEST_ID = 64
LONE_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
PROTOCOL_ERROR = 1002  # the protocol's own word for what cannot be read


def is_allowed_message(message: BackMsg) -> bool:
    """True for a message that the app's own page sends."""
    if message.WhichOneof("type") == "file_urls_request":  # a place for one file
        return not settings().public and len(message.file_urls_request.file_names) <= 1
    if message.WhichOneof("type") != "backend_operation_request":
        return message.WhichOneof("type") in MESSAGE_TYPES
    request = message.backend_operation_request
    plain = request.request_id.isprintable() and len(request.request_id) <= LONGEST_ID
    return plain and request.WhichOneof("payload") in REQUEST_TYPES


def well_formed(data: bytes) -> bytes:
    """A message of the app's page with U+FFFD for each half of a surrogate pair in its texts. A
    browser packs one into three bytes that are no UTF-8, and so the message could not be read."""
    try:
        BackMsg.FromString(data)
    except DecodeError:
        return LONE_SURROGATE.sub("\ufffd".encode(), data)
    return data


class WebSocketFilter:
    """Pass on the wanted messages, drop the others, and close a connection that receives anything
    but messages."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or scope["path"] != STREAM:
            await self.app(scope, receive, send)
            return
        ended = False

        async def wanted() -> Message:
            nonlocal ended
            while True:
                message = await receive()
                if message["type"] != "websocket.receive":
                    return message
                try:
                    frame = well_formed(message.get("bytes") or b"")
                    if is_allowed_message(BackMsg.FromString(frame)):
                        return {**message, "bytes": frame}
                except DecodeError:
                    log_refusal("message")
                    ended = True
                    await send({"type": "websocket.close", "code": PROTOCOL_ERROR})
                    return {"type": "websocket.disconnect", "code": PROTOCOL_ERROR}

        async def unless_ended(message: Message) -> None:
            if not ended:
                await send(message)

        await self.app(scope, wanted, unless_ended)
