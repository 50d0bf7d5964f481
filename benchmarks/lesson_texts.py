"""How fast a class sees its teacher's new text: `python -m benchmarks.lesson_texts --followers 60`.

One process of the app, a teacher in a real browser and a class, of whom one is a real browser too.
The others hold a line of server-sent events and a session of the app each, fetch the teacher's
picture when they hear of it, and run their own page in their turn, as a student's browser does.

From the moment the teacher's window goes to a new text: "picture" until a follower has the
teacher's picture, "page" until its own page has run, "seen" until the real student's window shows
the picture or its own page, drawn. Every text is new to the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import time
from typing import Any

from playwright.async_api import async_playwright

from benchmarks.browser import server
from benchmarks.class_latency import Follower, asked, session, share

TEXT = "Number {} of the cats that grandma fed slept on a warm stone."
GO = """at => { history.pushState({}, "", at);
  dispatchEvent(new PopStateEvent("popstate", { state: {} })); }"""
# The teacher's picture of that text stands over the page, or the page itself is there.
SEEN = """number => {
  const { lesson } = globalThis.headlight || {};
  const trees = [...document.querySelectorAll("*")].flatMap((each) => each.shadowRoot || []);
  const board = trees.find((each) => each.querySelector(".shown .part"));
  if (board && lesson.of.includes(number)) return true;
  return !board && trees.some((each) => each.querySelector("textarea")?.value.includes(number))
    && document.querySelector("[data-test-script-state=notRunning]") !== null; }"""


async def pictured(follower: Follower, number: str) -> float:
    """When a follower has the teacher's picture of a text."""
    while number not in follower.seen.get("of", ""):
        follower.news.clear()
        await follower.news.wait()
    name = follower.seen["picture"]
    query = f"code={follower.code}&as={follower.word}&name={name}"
    reader, writer = await asyncio.open_connection("127.0.0.1", follower.port)
    writer.write(
        f"GET /class/picture?{query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    )
    answer = await reader.read()
    writer.close()
    if answer.startswith(b"HTTP/1.1 200"):
        return time.monotonic()
    while follower.seen["picture"] == name:  # another one has taken its place
        follower.news.clear()
        await follower.news.wait()
    return await pictured(follower, number)


async def paged(follower: Follower, socket: Any, number: str) -> float:
    """When a follower's own page has run on a text."""
    while number not in follower.seen.get("at", ""):
        follower.news.clear()
        await follower.news.wait()
    return await follower.shows(socket, follower.seen["at"])


async def seen(page: Any, number: str) -> float:
    """When a real student's window shows a text."""
    await page.wait_for_function(SEEN, arg=number, polling=20, timeout=120_000)
    return time.monotonic()


async def window(browser: Any, address: str, part: dict[str, Any]) -> Any:
    """A window that takes its part in the class."""
    page = await browser.new_page(viewport={"width": 1280, "height": 720})
    kept = json.dumps(part)
    await page.add_init_script(f"sessionStorage['headlight class'] = {json.dumps(kept)}")
    await page.goto(address)
    await page.wait_for_selector(".head .token", timeout=120_000)
    return page


async def lesson(browser: Any, address: str, number: int, moves: int) -> str:
    """One class of so many followers: a line of the table."""
    port = int(address.rpartition(":")[2])
    made = await asked(port, "start", {})
    words = [(await asked(port, "join", made))["student"] for _ in range(number)]
    followers = [Follower(port, made["code"], word) for word in words[1:]]
    await asyncio.gather(*(each.come() for each in followers))
    sockets = [await session(port) for _ in followers]
    student = await window(browser, address, {"code": made["code"], "student": words[0]})
    teacher = await window(browser, address, made)
    took: list[list[float]] = [[], [], []]
    for move in range(moves + 1):
        name = f"{time.time_ns() % 10**9}"
        ways = [
            asyncio.gather(*(pictured(each, name) for each in followers)),
            asyncio.gather(*(paged(each, one, name) for each, one in zip(followers, sockets))),
            asyncio.gather(seen(student, name)),
        ]
        await asyncio.sleep(1)
        start = time.monotonic()
        await teacher.evaluate(GO, "/?text=" + TEXT.format(name).replace(" ", "+"))
        for kept, way in zip(took, ways):
            times = [when - start for when in await asyncio.wait_for(way, 300)]
            kept += times if move else []  # the first fetches the code
    await asyncio.gather(*(each.leave() for each in followers), *(one.close() for one in sockets))
    await asyncio.gather(teacher.close(), student.close(), asked(port, "end", made))
    cells = (f"{share(each, part):>9.0f}" for each in took for part in (0.5, 0.95))
    return f"{number:>9} {' '.join(cells)}"


async def measured(address: str, followers: list[int], moves: int) -> None:
    """Print a line for each size of class."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for number in followers:
            print(await lesson(browser, address, number, moves), flush=True)
        await browser.close()


def main(given: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--followers", type=int, nargs="+", default=[60])
    parser.add_argument("--moves", type=int, default=5)
    asked_for = parser.parse_args(given)
    print(
        f"{'followers':>9} {'picture50':>9} {'picture95':>9} {'page50':>9} {'page95':>9} "
        f"{'seen50':>9} {'seen95':>9}"
    )
    with server("app.py") as (address, _):
        asyncio.run(measured(address, asked_for.followers, asked_for.moves))


if __name__ == "__main__":
    main()
