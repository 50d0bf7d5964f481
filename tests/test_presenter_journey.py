"""The presenter in a real browser: a lesson is walked there, pictures are presented whole, and what
comes late is presented too."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import driver
import numpy as np
import pytest
from PIL import Image

import headlight
from explorer.panels import lessons, worksheet
from models.example_texts import DEFAULT_TEXT, OPENING_TEXT
from models.runtime.run import Run

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What is wrong with what the presenter shows; "" where nothing is.
FITS = """() => {
  const inside = (what) => { for (const each of document.querySelectorAll("*")) {
    const found = each.shadowRoot?.querySelector(what); if (found) return found; } };
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth || page.scrollHeight > innerHeight + 1) return "it scrolls";
  const board = inside(".presenter .board");
  if (!board) return "nothing is presented";
  const plate = board.querySelector(".plate");
  if (plate.scrollHeight > plate.clientHeight + 1 || plate.scrollWidth > plate.clientWidth + 1)
    return "the picture is cut";
  const own = plate.querySelector(":scope > svg");
  if (own && own.clientWidth !== plate.clientWidth) return "drawn for another window";
  const drawn = plate.querySelector("svg")?.getBBox() || plate.getBoundingClientRect();
  const share = (drawn.width * drawn.height) / innerWidth / innerHeight;
  if (!(share >= 0.4) || plate.clientHeight < 0.43 * innerHeight)
    return `a picture of ${share} of the screen`;
  const words = document.createTreeWalker(board, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const text = words.currentNode.textContent.trim();
    const of = words.currentNode.parentElement;
    const { left, top, right, bottom, width } = of.getBoundingClientRect();
    if (!text || width < 3 || of.className === "announced") continue;
    const line = of.closest("math, text") || of; // indices are smaller
    const size = parseFloat(getComputedStyle(line).fontSize);
    if (size < 20) return `${text} in type of ${size} px`; // 28, or less where all figures then fit
    if (left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1)
      return `${text} is out of sight`;
  }
  return "";
}"""


# The first number that is cut, or text that covers another, in a figure of the page or of a slide.
CLEAR = """() => {
  const figures = [], look = (root) => { for (const one of root.querySelectorAll("*")) {
    if (one.matches(".figure > svg, .plate > svg")) figures.push(one);
    if (one.shadowRoot) look(one.shadowRoot); } };
  look(document);
  const isPresented = document.documentElement.hasAttribute("data-headlight-presenter");
  for (const svg of figures.filter((one) => !isPresented || one.closest(".plate"))) {
    const texts = [...svg.querySelectorAll("text")].map((one) => {
      const { left, top, right, bottom, width, height } = one.getBoundingClientRect();
      const turned = one.hasAttribute("transform");
      const [x, y] = turned ? [0.2 * width, 0] : [0, 0.2 * height]; // more than letters take
      const said = one.firstChild?.data?.trim() || "";
      return { said, box: [left + x, top + y, right - x, bottom - y] };
    }).filter(({ said, box }) => said && box[2] > box[0]);
    const cut = texts.find(({ said }) => /^[^\\p{L}]{0,3}\\d[\\d., ×⁰¹²³⁴-⁹⁻]*…$/u.test(said));
    if (cut) return `${cut.said} is cut`;
    for (const [at, one] of texts.entries()) for (const other of texts.slice(at + 1)) {
      const [[a, b, c, d], [e, f, g, h]] = [one.box, other.box];
      if (Math.min(c, g) - Math.max(a, e) > 2 && Math.min(d, h) - Math.max(b, f) > 2)
        return `${one.said} over ${other.said}`;
    }
  }
  return "";
}"""


# True where the presenter hears keys.
KEYS = """() => [...document.querySelectorAll("*")].some((each) =>
  each.shadowRoot?.querySelector(".presenter .announced"))"""


# True where the slide has a figure with that title, in however many lines.
SHOWS = """title => { for (const e of document.querySelectorAll("*")) {
  const plate = e.shadowRoot?.querySelector(".board .plate");
  const bare = (text) => text.replace(/\\s/g, "");
  if (plate) return bare(plate.textContent).includes(bare(title)); } }"""


SMALL, LARGE = {"width": 1280, "height": 720}, {"width": 1920, "height": 1080}
NARROW = {"width": 390, "height": 844}


NEW = """said => [...document.querySelectorAll("*")].some((each) => {
  const head = each.shadowRoot?.querySelector(".board h1");
  return head && !said.includes(head.innerText); })"""
GO = """to => { history.pushState(history.state, "", to);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state })); }"""


# A tab for each kind of picture, and what its slide names: edit, sides, head or claim.
EDIT = "edits=WithoutPositions"
PAGES = {
    f"/?tab=weight&layer=1&head=5&{EDIT}": ["edits: no positions", "Layer 1, head 5"],
    "/?tab=aggregated": ["averaged"],
    "/?tab=circuits": ["Keys that match"],
    "/?tab=sentences": ["10 sentences"],
    f"/architecture?{EDIT}": ["edits: no positions"],
    "/architecture?tab=positions&ask=Sentence": ["position vector"],
    f"/architecture?tab=residual&{EDIT}": ["edits: no positions"],
    "/architecture?tab=embeddings": ["Text 2:"],
    "/architecture?tab=feedforward&token=9&layer=1": ["layer 1"],
    f"/predict?model=encoder&{EDIT}": ["edits: no positions"],
    "/predict?tab=generate&model=decoder&seed=1": ["Most likely next tokens"],
    f"/predict?tab=lens&model=encoder&{EDIT}": ["edits: no positions"],
    "/predict?tab=translate&model=translator": ["model translator"],
    "/predict?tab=attribution&model=encoder": [
        "What speaks for",
        "step by step",
    ],
    f"/experiment?{EDIT}": ["edits: no positions", "before", "after"],
    "/experiment?tab=compare&model=translator": ["no edits", "no positions", "B: model translator"],
    f"/experiment?tab=patching&text={quote_plus(OPENING_TEXT)}": ["Effect of patching"],
    "/learn?tab=twins": ["LayerNorm after"],
    "/training?model=induction": ["model induction"],
    "/learn?tab=concepts&look_at=Hard&layer=1&head=5": ["Layer 1, head 5"],
    "/learn?tab=concepts&look_at=Three": ["x · x", "q · q", "q · k"],
    "/learn?tab=claims&claim=convex": ["A head’s output is the mean of the values"],
}
# How many letters the board shows, without lines on what it leaves out.
LETTERS = """board => [board, ...board.querySelectorAll("svg text")].map((one) =>
  one.innerText ?? one.firstChild?.data ?? "").join("").replace(/\\d+ of \\d+ [a-z]+( · |, )?/g, "")
  .length"""


AT = """where => { for (const e of document.querySelectorAll("*")) {
  const at = e.shadowRoot?.querySelector(".lesson_bar .where");
  if (at) return at.textContent === where; } }"""


# True where the wall shows another picture than this one.
ANEW = """before => { for (const e of document.querySelectorAll("*")) {
  const drawn = e.shadowRoot?.querySelector(".board .plate > svg");
  if (drawn) return drawn.innerHTML !== before; } }"""


def slide_of(visitor: driver.Visitor, size: dict, named: list[str]) -> int:
    """How many letters the slide shows in a window of this size, once nothing of it is cut and it
    names these."""
    visitor.page.set_viewport_size(size)
    board = visitor.page.locator(".board")
    for name in named:
        board.filter(has_text=name).wait_for()
    visitor.until(f"() => ({FITS})() === ''")  # a page that draws anew is drawn anew
    assert visitor.page.evaluate(CLEAR) == ""
    return board.evaluate(LETTERS)


@driver.browser_test
def test_a_lesson_is_walked_presented_blanked_and_left(visitor: driver.Visitor) -> None:
    assert headlight.panels  # the door imports all of them
    steps = lessons.on(Run("encoder", DEFAULT_TEXT), "lecture").items
    page, n = visitor.page, len(steps)
    page.set_viewport_size(SMALL)
    page.goto(f"{visitor.server}/learn?tour=order")  # a link of the tour that was here before
    visitor.until(AT, f"1 / {n}")
    page.keyboard.press("ArrowRight")
    visitor.until(AT, f"2 / {n}")
    page.wait_for_url("**/learn?*lesson_step=2*")
    visitor.until(KEYS)
    page.keyboard.press("p")
    page.wait_for_selector("html[data-headlight-presenter=on]", state="attached")
    for at in range(2, 5):  # on two places
        step = steps[at - 1]
        page.locator(".board h1").filter(has_text=step.heading.rstrip(".?!")).wait_for()
        visitor.until(SHOWS, worksheet.pictured(step).figures[-1].title)
        visitor.until(f"() => ({FITS})() === ''")
        assert page.evaluate(CLEAR) == "", step.heading
        if at < 4:
            page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    visitor.until(AT, f"3 / {n}")
    page.keyboard.press("b")
    page.wait_for_selector("html[data-headlight-presenter=blank]", state="attached")
    dark = "board => getComputedStyle(board).backgroundColor"
    assert page.locator(".board").evaluate(dark) == "rgb(0, 0, 0)"
    page.keyboard.press("b")
    page.keyboard.press("Escape")
    page.wait_for_selector("html:not([data-headlight-presenter])", state="attached")
    visitor.until(AT, f"3 / {n}")
    area = page.locator("textarea").first
    area.click()
    page.keyboard.press("p")
    assert page.locator("html[data-headlight-presenter]").count() == 0, "who types presents nothing"
    page.keyboard.press("Backspace")
    page.get_by_role("button", name="Close the lesson").click()
    page.locator(".lesson_bar").wait_for(state="detached")
    page.wait_for_url(lambda url: "lesson" not in url)


@driver.browser_test
def test_findings_and_heads_are_walked_by_arrows(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.set_viewport_size(SMALL)
    page.goto(f"{visitor.server}/?layer=1&head=5&token=9")
    visitor.until(KEYS)
    page.wait_for_selector(f"{driver.HEAD}[data-token]")
    page.locator("h1").first.click()
    page.keyboard.press("p")
    page.wait_for_selector(".board .plate svg text:not(:empty)")
    assert "it attends to animal 0.72" in page.locator(".board h1").inner_text()
    assert page.evaluate(FITS) == ""
    first = page.locator(".board h1").inner_text()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda url: "head=5" not in url)  # the next finding
    visitor.until(NEW, [first])
    page.keyboard.press("ArrowLeft")
    page.locator(".board h1", has_text="it attends to animal 0.72").wait_for()
    page.keyboard.press("b")
    assert not np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("L")).any(), "black"
    page.keyboard.press("b")
    page.keyboard.press("ArrowDown")  # the next head, with its own words and its own cell
    page.locator(".board svg", has_text="Layer 1, head 6").wait_for()
    page.wait_for_url("**head=6**")
    bold = page.locator(".board svg text[font-weight='650']").all_text_contents()
    assert bold[-2].strip() in page.locator(".board h1").inner_text(), "the key of the cell"


@driver.browser_test
def test_pictures_are_presented_whole_and_fit_a_phone(visitor: driver.Visitor) -> None:
    """No text covers another, no number is cut, and the larger screen shows no less."""
    page, said = visitor.page, set()
    page.goto(f"{visitor.server}/learn?tab=concepts")
    visitor.until(KEYS)
    for to, named in PAGES.items():
        page.set_viewport_size(SMALL)
        page.evaluate(GO, to)
        page.wait_for_url(f"**{to}*")
        page.wait_for_selector(".panel[data-token]", state="attached")
        page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
        visitor.until(KEYS)
        page.keyboard.press("p")
        page.wait_for_selector(".board .plate svg text:not(:empty), .board .asked p")
        visitor.until(NEW, sorted(said))  # the page before may be there for a moment
        small, large = (slide_of(visitor, size, named) for size in (SMALL, LARGE))
        # Numbers of a scale may be a few letters shorter there.
        assert small <= 1.03 * large, f"the larger screen shows less of {to}"
        said.add(page.locator(".board h1").inner_text())
        assert page.locator(".board h1").inner_text() not in ("", "Headlight"), to
        page.keyboard.press("Escape")
        page.set_viewport_size(NARROW)
        visitor.until(f"() => ({CLEAR})() === ''")
        assert visitor.fits(), to
    assert len(said) == len(PAGES), "each page says what it finds"


@driver.browser_test
def test_the_steps_inside_a_picture_are_walked_on_the_wall(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/?lesson=lecture")
    page.locator(".lesson_bar .dot").nth(6).click()
    page.wait_for_selector("[data-panel='anatomy.weight'][data-token]")
    page.locator(".lesson_bar .where").click()
    page.keyboard.press("p")
    drawn = page.locator(".board .plate > svg")
    drawn.wait_for()
    seen = [drawn.inner_html()]
    for walk in (lambda: page.keyboard.press("ArrowDown"), lambda: click_at(page, 0.9)):
        walk()
        visitor.until(ANEW, seen[-1])
        seen.append(drawn.inner_html())
    for walk in (lambda: page.keyboard.press("ArrowUp"), lambda: click_at(page, 0.1)):
        walk()
        visitor.until(ANEW, seen[-1])
    assert len({*seen}) == 3
    assert page.locator(".lesson_bar .where").text_content() == "7 / 18", "it is one step"
    page.keyboard.press("ArrowRight")
    visitor.until(AT, "8 / 18")


@driver.browser_test
def test_a_page_without_a_picture_says_how_it_stands(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/training?tab=live&live_task=text")
    page.get_by_text("Press Start:").wait_for()
    page.get_by_role("button", name="Present").click()
    page.locator(".board .asked", has_text="Press Start:").wait_for()
    page.locator(".board .caption", has_text="G starts a training here").wait_for()
    page.keyboard.press("Escape")
    page.goto(f"{visitor.server}/classroom")
    page.get_by_role("button", name="Start a class").click()
    code = page.locator(".how .code").inner_text()
    beside = visitor.context.new_page()  # another window of the same browser
    beside.goto(f"{visitor.server}/classroom")
    beside.get_by_role("button", name="Present").click()
    beside.locator(".board .invite p", has_text=code).wait_for()


def click_at(page: Page, share: float) -> None:
    """Press the picture on the wall, so far from its left edge."""
    box = page.locator(".board .plate").bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


@pytest.mark.parametrize("by", ["key", "button"])
@driver.browser_test
def test_a_p_before_there_is_a_picture_waits_for_it(visitor: driver.Visitor, by: str) -> None:
    page, late = visitor.page, []
    visitor.hold("presenter|panel", late)
    page.goto(f"{visitor.server}/architecture?tab=positions&text=A+late+one")
    while len(late) < 2:
        page.wait_for_timeout(50)
    if by == "key":
        page.keyboard.press("p")
    else:
        page.get_by_role("button", name="Present").click()
    assert page.locator("html[data-headlight-presenter]").count() == 0
    for route in late:
        route.continue_()
    page.locator(".board .plate svg text:not(:empty)").first.wait_for()


@driver.browser_test
def test_a_picture_that_comes_late_is_presented(visitor: driver.Visitor) -> None:
    page, late = visitor.page, []
    visitor.hold("panel", late)
    page.goto(f"{visitor.server}/architecture?tab=positions&text=A+late+one")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    visitor.until(KEYS)
    page.keyboard.press("p")
    page.locator(".board .caption", has_text="no picture yet").wait_for()
    page.wait_for_timeout(1000)  # the page is at rest
    late[0].continue_()
    page.wait_for_selector(".board .plate svg text:not(:empty)")
    assert "no picture yet" not in page.locator(".board .caption").inner_text()
    page.unroute_all()
