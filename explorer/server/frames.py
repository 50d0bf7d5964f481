"""What a browser may say on the line of its session: what the app's page says, and nothing else.

Streamlit takes more: to name the files of the folder that are not in git, to empty what it keeps
for all readers, to make places for uploads. What it refuses itself it writes down with the
stranger's own words.
"""

from __future__ import annotations

import re

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg

from explorer.memory.told import refused
from explorer.server.room import STREAM

SAID = {"rerun_script", "stop_script", "app_heartbeat"}
ASKED = {"deferred_file", "dataframe_chunk"}  # a download, and the rows of a long table
LONGEST_ID = 64
HALF_A_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
NO_FRAME = 1002  # the protocol's own word for what cannot be read


def is_wanted(said: BackMsg) -> bool:
    """True for a message that the app's own page sends."""
    if said.WhichOneof("type") != "backend_operation_request":
        return said.WhichOneof("type") in SAID
    asked = said.backend_operation_request
    plain = asked.request_id.isprintable() and len(asked.request_id) <= LONGEST_ID
    return plain and asked.WhichOneof("payload") in ASKED


def well_formed(data: bytes) -> bytes:
    """A message of the app's page with U+FFFD for each half of a surrogate pair in its texts. A
    browser packs one into three bytes that are no UTF-8, and so the message could not be read."""
    try:
        BackMsg.FromString(data)
    except DecodeError:
        return HALF_A_PAIR.sub("\ufffd".encode(), data)
    return data


class Frames:
    """Passes on what is wanted, leaves out what is not, and ends a line on which something else
    than messages comes."""

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
                    whole = well_formed(message.get("bytes") or b"")
                    if is_wanted(BackMsg.FromString(whole)):
                        return {**message, "bytes": whole}
                except DecodeError:
                    refused("message")
                    ended = True
                    await send({"type": "websocket.close", "code": NO_FRAME})
                    return {"type": "websocket.disconnect", "code": NO_FRAME}

        async def unless_ended(message: Message) -> None:
            if not ended:
                await send(message)

        await self.app(scope, wanted, unless_ended)
