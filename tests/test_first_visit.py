"""The first minute on the Attention page, in a real browser: it opens on what is found, each step
leads to its head and word, and any text gives a headline or none."""

from __future__ import annotations

import re
from urllib.parse import quote

import httpx2
import pytest
from conftest import read_once
from driver import CELLS, GRID, HEAD, HELD, HELD_AT, MARKS, VOTE, Visitor

from explorer.analysis import findings
from explorer.figures.formatting import hundredths
from explorer.text.findings import ballot, quoted, statement
from models.example_texts import OPENING_TEXT

pytestmark = MARKS
NONCE = r"nonce=\"[^\"]+\""  # another in each answer


def found(text: str, model: str = "encoder"):
    return findings.select_findings(findings.findings(read_once(model).record(text)))


def test_it_opens_on_what_the_tested_heads_say_and_a_press_shows_each(visitor: Visitor) -> None:
    visitor.open()
    page, best = visitor.page, found(OPENING_TEXT)[0]
    assert page.locator("h1").inner_text() == statement(best, str)
    said = page.locator(f"{VOTE} [role=listitem] g[data-select]")
    labels = said.evaluate_all("all => all.map(one => one.ariaLabel)")
    assert [each.partition(": ")[2] for each in labels] == [
        ballot(each, quoted) for each in best.ballots
    ]  # behind what is seen
    # Each thumbnail is called by the head's own largest weight of that row, and its key.
    pattern = read_once("encoder").record(OPENING_TEXT).attention[0].pattern[:, :, best.query]
    cells = page.locator(".cell").evaluate_all("all => all.map(one => one.ariaLabel)")
    largest = [f"Largest weight {hundredths(each)}: it → " for each in pattern.max(-1).ravel()]
    assert all(map(str.__contains__, cells, largest))
    for at, each in enumerate(best.ballots):
        said.nth(at).click()
        page.wait_for_selector(f"{HEAD}[data-token]")
        page.wait_for_url(f"**layer={each.layer}&head={each.head}**")
        visitor.drawn()
        assert page.locator(HELD).evaluate(HELD_AT) == str(best.query)
        row = f"it gives {each.word} {each.weight:.0%} of its attention in this head"
        assert page.locator("h1").inner_text() == row
        page.get_by_role("button", name="What the other tested heads say").click()
        page.wait_for_selector(f"{VOTE}[data-token]")
        visitor.drawn()
    # Another finding opens its own head, and a word that is let go stays let go.
    second = found(OPENING_TEXT)[1]
    page.get_by_text("Also found in this text").click()
    page.get_by_role("button", name=statement(second, str)).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(
        f".st-key-finding p:has-text('Layer {second.layer}, head {second.head}')"
    )
    page.wait_for_url(f"**token={second.query}**")
    visitor.drawn()
    held = page.locator(HELD)
    assert held.evaluate(HELD_AT) == str(second.query)
    held.click()
    page.wait_for_url("**token=every**")
    visitor.drawn()
    assert held.count() == 0


def test_what_is_offered_on_the_first_page_happens(visitor: Visitor) -> None:
    page = visitor.open().page
    tour = page.get_by_role("button", name="New here? Tour, 3 min")
    assert tour.is_visible()
    change = page.locator(".offer", has_text="Change “it was cold” to “he was late”")
    assert "All three heads move to “waiter”." in change.inner_text()
    turns = page.locator(".offer", has_text="Take out L1 H7, which reads “cold”")
    assert "turns from “it” to “he”, which rises from 31% to 73%" in turns.inner_text()
    change.click()
    page.wait_for_selector("h1:has-text('All three tested heads take he for waiter')")
    tour.wait_for(state="detached")  # the reader has a text of their own
    page.go_back()
    page.wait_for_selector("h1:has-text('2 of 3 tested heads take it for soup')")
    turns.click()
    page.wait_for_url("**off=1.7**")
    page.get_by_text(
        "Without head 7 of layer 1 the model says “he”, and no longer “it”"
    ).first.wait_for()


def test_where_nothing_changes_an_answer_a_sentence_where_something_does_is_offered(
    visitor: Visitor,
) -> None:
    quiet = "My claim was rejected because the adjuster said the roof was too old."
    page = visitor.open(f"?text={quote(quiet)}").page
    page.get_by_text("Nothing was found here that changes what the model says").wait_for()
    page.get_by_role("button", name="Show a sentence where something does").click()
    page.wait_for_selector("h1:has-text('2 of 3 tested heads take it for soup')")
    page.locator(".offer", has_text="Change “it was cold” to “he was late”").wait_for()


def test_what_is_pointed_at_in_the_lines_is_marked_in_the_matrix(visitor: Visitor) -> None:
    page = visitor.open("?view=Both").page
    page.wait_for_selector(CELLS)
    before = page.locator(f"{HEAD} svg rect").count()
    page.locator(f"{HEAD} .target:not(.button)").nth(2).hover()
    assert page.locator(f"{HEAD} svg rect").count() == before + 1
    assert visitor.said().startswith("animal attends to")


def test_every_page_comes_with_words_its_style_and_the_rule_for_its_history(server: str) -> None:
    for path in ("/", "/predict"):
        for coding in ("gzip", "identity"):
            answer = httpx2.get(f"{server}{path}", headers={"Accept-Encoding": coding})
            assert answer.headers.get("content-encoding", "identity") == coding
            for part in ("The page is loading", ".st-key-headline", "history.pushState"):
                assert part in answer.text, (path, coding, part)
            # A browser may have kept an earlier style: the page is sent whole each time.
            held = {"If-None-Match": answer.headers.get("etag", "*")}
            again = httpx2.get(f"{server}{path}", headers=held).text
            assert re.sub(NONCE, "", again) == re.sub(NONCE, "", answer.text)


MOST_REQUESTS = 13  # the last of them for what is offered
MOST_BYTES = 1_450_000


def test_a_first_visit_makes_few_requests_and_transfers_little(browser, server: str) -> None:
    page = browser.new_context().new_page()  # whose cache is empty
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    urls, sizes = {}, []  # by request: what is fetched early is one, and announced twice

    def name(event: dict) -> None:
        urls[event["requestId"]] = event.get("url") or event["request"]["url"]

    for event, hear in (
        ("requestWillBeSent", name),
        ("webSocketCreated", name),
        ("loadingFinished", lambda event: sizes.append(event["encodedDataLength"])),
        (
            "webSocketFrameReceived",
            lambda event: sizes.append(len(event["response"]["payloadData"])),
        ),
    ):
        tools.on(f"Network.{event}", hear)
    page.goto(server)
    for panel in (GRID, VOTE):
        page.wait_for_selector(f"{panel}[data-token]")
    page.wait_for_load_state("networkidle")
    fetched = [url for url in urls.values() if not url.startswith(("blob:", "data:"))]
    assert len(fetched) <= MOST_REQUESTS, fetched
    assert 0 < sum(sizes) <= MOST_BYTES
    page.context.close()


def test_without_the_startup_bundle_the_page_fetches_each_module(browser, server: str) -> None:
    """It is missing, it is cut off, and the browser knows no import maps."""
    page = browser.new_context().new_page()
    errors, urls = [], []
    page.on("pageerror", lambda error: errors.append(error))
    page.on("request", lambda request: urls.append(request.url))
    for answer in ({"status": 404}, {"body": '{"modules": [["a'}, None):
        urls.clear()
        page.unroute_all()
        if answer is None:
            page.add_init_script("HTMLScriptElement.supports = () => false")
        else:
            page.route("**/startup", lambda route, _, of=answer: route.fulfill(**of))
        page.goto(server)
        for panel in (GRID, VOTE):
            page.wait_for_selector(f"{panel}[data-token]")
        assert any(url.endswith("/panel.js") for url in urls) and not errors, answer
    page.context.close()


SHIFTS = """window.shifted = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => { shifted += one.value; }))
    .observe({ type: "layout-shift" });"""
STILL = 0.05  # half of what browsers call a page that does not jump


@pytest.mark.parametrize("size", [(1440, 900), (390, 844), (720, 450)])
def test_nothing_jumps_when_the_views_of_the_first_page_come(browser, server: str, size) -> None:
    visitor = Visitor(browser, server, viewport={"width": size[0], "height": size[1]})
    page, late = visitor.page, []
    visitor.hold("panel|sentence", late)
    page.goto(server)
    page.wait_for_selector(".st-key-finding h1")
    visitor.at_rest()
    page.wait_for_timeout(1000)  # all but the views is there
    page.evaluate(SHIFTS)
    for route in late:
        route.continue_()
    visitor.drawn()
    assert page.evaluate("shifted") < STILL
    visitor.leave()


def swipe(phone: Visitor, what: str, right: int) -> None:
    """A finger that goes so many pixels to the right from the middle of an element."""
    box = phone.page.locator(what).first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tools = phone.context.new_cdp_session(phone.page)
    for kind, points in (
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x + right, "y": y + 5}]),
        ("touchEnd", []),
    ):
        tools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    tools.detach()


def test_on_a_phone_a_tapped_head_changes_what_stands_above_it(phone: Visitor) -> None:
    phone.open("?layer=1&head=5")
    last, foot = (
        phone.page.locator(what).bounding_box()
        for what in (".cell >> nth=31", ".st-key-places-bar")
    )
    assert last["y"] + last["height"] < foot["y"], "every head is in sight"
    phone.page.locator(".cell").nth(4).tap()
    phone.page.wait_for_selector(".st-key-finding p:has-text('Layer 0, head 4')")
    phone.drawn()
    places = [
        phone.page.locator(what).first.bounding_box()["y"]
        for what in (".st-key-finding h1", f"{HEAD} .token", ".cell")
    ]
    assert places == sorted(places) and places[-1] - places[0] < 600, "all on one screen"
    last, foot = (
        phone.page.locator(what).bounding_box()
        for what in (".cell >> nth=31", ".st-key-places-bar")
    )
    assert last["y"] + last["height"] / 2 < foot["y"], "three and a half layers are in sight"
    before = phone.page.locator(HEAD).first.bounding_box()["height"]
    phone.page.get_by_role("button", name="Show lines").tap()
    phone.drawn()
    assert phone.page.locator(HEAD).first.bounding_box()["height"] > before + 200
    phone.page.get_by_role("button", name="Hide lines").tap()
    swipe(phone, ".st-key-finding h1", -120)
    phone.page.wait_for_selector(".st-key-finding p:has-text('Layer 0, head 5')")
    phone.drawn()
    swipe(phone, ".st-key-finding h1", 120)
    phone.page.wait_for_selector(".st-key-finding p:has-text('Layer 0, head 4')")
    # The places stand at the foot of the window.
    bar = phone.page.locator(".st-key-places-bar").bounding_box()
    assert bar["y"] + bar["height"] <= 845 and phone.page.get_by_role("link").count() >= 6
    phone.page.locator(".cell").last.scroll_into_view_if_needed()
    boxes = [phone.page.locator(".cell").nth(at).bounding_box() for at in (0, 7, 31)]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    phone.page.get_by_role("tab", name="Many sentences").click()  # the last of them
    phone.page.wait_for_url("**tab=sentences**")
