"""A teacher's window that moves while its last move, or the code of its page, is on its way."""

from __future__ import annotations

import gzip
import json
import urllib.request

from driver import MARKS, Visitor
from playwright.sync_api import Request, Route

pytestmark = MARKS


def leading(browser: object, server: str) -> Visitor:
    """A teacher's window on the first page, in which a new class is led."""
    request = urllib.request.Request(
        f"{server}/class/start", b"{}", {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        made = json.load(answer)
    part = json.dumps({name: made[name] for name in ("code", "key", "watch", "ends")})
    one = Visitor(browser, server)
    one.page.goto(server)
    one.page.evaluate("part => sessionStorage.setItem('headlight class', part)", part)
    return one


def test_one_move_is_sent_at_a_time_and_tried_again(browser: object, server: str) -> None:
    moves: list[Route] = []
    one = leading(browser, server)
    visitor = one.page
    visitor.route("**/class/move", lambda route: moves.append(route))
    visitor.goto(f"{server}/?layer=1&head=1")

    def sent(number: int) -> str:
        for _ in range(200):
            if len(moves) >= number:
                return moves[number - 1].request.post_data_json["at"]
            visitor.wait_for_timeout(50)
        raise AssertionError(f"{number - 1} moves were sent")

    assert "head=1" in sent(1)
    for head in (2, 3):
        visitor.evaluate(f"history.pushState({{}}, '', '/?layer=1&head={head}')")
        visitor.wait_for_timeout(400)
    assert len(moves) == 1, "the first is still on its way"
    moves[0].fulfill(status=200, json={})
    assert "head=3" in sent(2), "of what came meanwhile the last is sent"
    moves[1].fulfill(status=503, json={"problem": "The class cannot be reached just now."})
    assert "head=3" in sent(3), "and once more when the store was away"
    moves[2].fulfill(status=200, json={})
    one.leave()
    assert all("503" in error for error in one.errors), one.errors


def test_a_picture_waits_for_a_view_whose_code_comes_late(browser: object, server: str) -> None:
    one = leading(browser, server)
    page = one.page
    late: list[Route] = []
    one.hold("tour", late)
    one.open("?layer=1&head=1")

    def shows_tour(request: Request) -> bool:
        sends = "/class/show" in request.url
        return sends and b'"tour"' in gzip.decompress(request.post_data_buffer)

    with page.expect_request(shows_tour):
        one.go("Learn")
        page.wait_for_url("**/learn**")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        page.wait_for_timeout(1500)  # in which a page without its views would be sent
        for route in late:
            route.continue_()
    assert late, "the code was held up"
    one.leave()
    assert not one.wrong(), one.errors
