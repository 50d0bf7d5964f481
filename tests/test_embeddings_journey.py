"""A word is followed through two contexts in a real browser."""

from __future__ import annotations

import csv
import io
from urllib.parse import urlencode

import driver
import pytest
from conftest import HOSTILE, read_once
from embedding_fixtures import of, states

from explorer.analysis import logit_lens

FRUIT, DEVICES = (
    "She ate the apple with some fruit juice.",
    "Explain me about the new apple devices.",
)


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_follows_apple_through_two_contexts(browser, server: str) -> None:
    from playwright.sync_api import expect

    visitor = driver.Visitor(browser, server)
    page, sizes = visitor.page, []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )

    def settled() -> None:
        page.wait_for_selector(".near table")
        page.wait_for_selector(".picture canvas")
        page.wait_for_selector("[data-test-script-state=notRunning]")

    page.goto(f"{server}/embeddings")
    settled()
    page.get_by_role("button", name="“apple” in two contexts").click()
    page.wait_for_selector(".curve svg")
    expect(page.locator("textarea").first).to_have_value(FRUIT)
    settled()
    assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["apple", "apple"]
    sizes.clear()
    slider = page.locator(".stepper input")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    names = states(of(read_once("encoder"), FRUIT))
    stage = len(names) - 5
    page.wait_for_url(f"**stage={stage + 1}**")
    settled()
    assert page.locator(".stepper .where").inner_text() == logit_lens.title(names[stage], names)
    assert {row.inner_text() for row in page.locator(".near tr.now th").all()} == {
        logit_lens.title(names[stage], names)
    }
    assert sum(sizes) < 40_000, "a step sends no paths"
    page.locator(".chip", has_text="juice").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=is not in the second text")
    settled()
    page.locator(".chip", has_text="devices").click()
    page.wait_for_url("**mate=**")
    settled()
    page.mouse.move(5, 5)
    other = driver.Visitor(browser, server)
    other.page.goto(page.url)
    other.page.wait_for_selector(".curve svg")
    other.page.wait_for_selector(".near tr.now")
    for where in (".chip[aria-pressed=true]", ".near tr.now", ".stepper .where", ".reading p"):
        expect(other.page.locator(where)).to_have_text(
            page.locator(where).all_inner_texts(), use_inner_text=True
        )
    file = visitor.export("Picture as SVG")
    import xml.etree.ElementTree as tree

    said = " ".join(
        element.text or "" for element in tree.parse(file).iter() if element.tag.endswith("text")
    )
    assert (
        "model encoder" in said
        and "Explained variance" in said
        and "juice" in said
        and DEVICES in said
    )
    tables = {}
    for what in ("Paths", "Curves", "Nearest words"):
        file = visitor.export(f"{what} as CSV")
        lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
        tables[what] = list(csv.DictReader(io.StringIO("\n".join(lines))))
    table = tables["Paths"]
    assert len(tables["Curves"]) == len(names) and len(tables["Nearest words"]) == 2 * len(names)
    assert (
        len(table) == len(names) * (len(page.locator(".line .chip").all()) + 6)
        and float(table[0]["norm"]) > 0
    )
    # Streamlit itself asks for two files beside the page's address before it finds them above it.
    for one in (visitor, other):
        assert not one.wrong(), one.wrong()
        one.leave()


@pytest.mark.slow
@pytest.mark.browser
def test_hostile_texts_on_a_phone_are_drawn_as_they_are(browser, server: str) -> None:
    phone = driver.Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    text = HOSTILE["bold"] + " " + HOSTILE["bidi override"]
    phone.page.goto(
        f"{server}/embeddings?"
        + urlencode(
            {
                "text": text,
                "second": HOSTILE["script"],
                "anchors": "<b>x</b> / <img src=x onerror=alert(1)>",
            }
        )
    )
    phone.page.wait_for_selector(".near table")
    phone.page.wait_for_selector(".picture canvas")
    assert phone.page.title() == "Architecture · Headlight"
    stream = of(read_once("encoder"), text)
    shown = phone.page.locator(".line").first.locator(".chip").all_inner_texts()
    assert shown == [token for token, special in zip(stream.tokens, stream.special) if not special]
    assert phone.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert not phone.wrong(), phone.wrong()
    phone.leave()


@pytest.mark.slow
@pytest.mark.browser
def test_a_long_text_gives_way_to_a_letter_and_to_nothing(browser, server: str) -> None:
    from playwright.sync_api import expect

    visitor = driver.Visitor(browser, server)
    page = visitor.page
    long = "Ram pushed Hari and then the old dog " * 8
    last = len(of(read_once("encoder"), long).tokens) - 2
    page.goto(f"{server}/embeddings?" + urlencode({"text": long, "contexts": "One", "token": last}))
    page.wait_for_selector(".near table")
    field = page.locator("textarea").first
    # Of no text the special tokens are drawn.
    for text, n in (("a", 1), ("", 2), ("the old dog", 3)):
        field.fill(text)
        field.press("Enter")
        expect(page.locator(".line").first.locator(".chip")).to_have_count(n)
        page.wait_for_selector("[data-test-script-state=notRunning]")
    assert not visitor.wrong(), visitor.wrong()
    visitor.leave()
