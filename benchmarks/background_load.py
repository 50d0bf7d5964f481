"""One reader's long computation, again and again, while others are measured: what `class.py` puts
`--beside` them.

It is a reader as any other, over the server's websocket: opens a page with a text of 512 words of
its own, presses what starts the work, looks at it as often as the page asks for it, and when it is
done begins with another text.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.browser import server
from benchmarks.load_clients import EVERY, WORDS, Load, load
from explorer.state import places

LENGTH = 512  # words of the long reader's text
AGAIN = ForwardMsg.FINISHED_EARLY_FOR_RERUN


@dataclass(frozen=True)
class Work:
    """Where it is: the tab, what its address says, and the key of the button that starts it."""

    page: str
    asked: dict[str, str]
    press: str = ""


WORKS = {
    "jacobian": Work("residual", {"flow": "Gradient", "block": "0.attn"}),
    "lens": Work("lens", {"model": "decoder"}),
    "sweep": Work("patching", {"patch": "Sites", "donor": "{text} now"}, "start sweep"),
    "beam": Work("translate", {"model": "translator", "beams": "8"}),
    "claims": Work("claims", {}),
    "training": Work("live", {}, "live start"),
    "edits": Work("edit", {"model": "translator", "edits": "WithoutScale"}),
}


class Long:
    """A reader at long work. `done`: how often it was finished; `wrong`: what went wrong last."""

    def __init__(self, line: ClientConnection, work: Work) -> None:
        self.line, self.work = line, work
        self.done, self.wrong = 0, ""
        self._page, self._button, self._part, self._every = "", "", "", 0.0
        self._dice = random.Random(0)

    async def resume(self) -> None:
        """Work until cancelled."""
        while True:
            text = " ".join(self._dice.choices(WORDS, k=LENGTH))
            asked = {"text": text} | {
                name: value.format(text=text) for name, value in self.work.asked.items()
            }
            to = urlsplit(places.address(self.work.page, asked))
            query = to.query
            await self._ask(query, page_name=to.path.strip("/"))
            if self.work.press:
                await self._ask(query, press=self._button, page_script_hash=self._page)
            while self._part:  # the page looks at its work by itself
                await asyncio.sleep(self._every)
                await self._ask(query, fragment_id=self._part, page_script_hash=self._page)
            self.done += 1

    async def _ask(self, query: str, press: str = "", **wish: str) -> None:
        """Ask for a run, and hear it to its end."""
        message = BackMsg(rerun_script={"query_string": query, **wish})
        if press:
            pressed = message.rerun_script.widget_states.widgets.add()
            pressed.id, pressed.trigger_value = press, True
        if "fragment_id" not in wish:
            self._part = ""
        await self.line.send(message.SerializeToString())
        while True:
            said = ForwardMsg.FromString(await self.line.recv())
            kind = said.WhichOneof("type")
            if kind == "new_session":
                if not said.metadata.run.fragment_ids:
                    self._part = ""  # a whole run says anew what is looked at
            elif kind == "navigation":  # the page that is on screen, as a browser names it
                self._page = said.navigation.page_script_hash
            elif kind == "auto_rerun":
                self._part, self._every = said.auto_rerun.fragment_id, said.auto_rerun.interval
            elif kind == "delta":
                self._hear(said)
            elif kind == "script_finished" and said.script_finished != AGAIN:
                return

    def _hear(self, said: ForwardMsg) -> None:
        element = said.delta.new_element
        what = element.WhichOneof("type")
        if what == "exception":
            self.wrong = f"{element.exception.type} {element.exception.message}"
        elif what == "button" and self.work.press and element.button.id.endswith(self.work.press):
            self._button = element.button.id


@asynccontextmanager
async def at_work(address: str, name: str) -> AsyncIterator[Long | None]:
    """One long reader of that name beside whatever is done inside; none for ""."""
    if not name:
        yield None
        return
    async with connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "none"],
        max_size=None,
    ) as line:
        long = Long(line, WORKS[name])
        task = asyncio.create_task(long.resume())
        try:
            yield long
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def measure(names: Sequence[str], readers: int, seconds: float) -> Iterator[tuple[str, Load]]:
    """The others' load without a long reader ("alone"), then beside each of these works, on one
    server, warmed by one reader first."""
    with server("app.py") as (address, pid):
        asyncio.run(load(address, pid, 1, EVERY, ""))
        for name in ("", *names):
            yield name or "alone", asyncio.run(beside(address, pid, name, readers, seconds))


async def beside(address: str, pid: int, name: str, readers: int, seconds: float) -> Load:
    """The load of so many readers beside one long reader. Raises ValueError where the long one's
    page fails."""
    async with at_work(address, name) as long:
        await asyncio.sleep(min(seconds, 2.0))  # it is at it
        found = await load(address, pid, readers, seconds, "")
        if long is not None and long.wrong:
            raise ValueError(f"{name}: {long.wrong}")
        return found
