"""Every tab with a hostile text: by the rules of axe-core, in light and dark, on a phone and at
200 % zoom, with a picture above the fold, its terms explained where they first stand, fields that
no touch enlarges, a selection in one row of a phone, and words of the text that no browser
translates."""

from __future__ import annotations

from functools import cache

import javascript
import pytest
from app_harness import TABS
from driver import MARKS, Visitor

from explorer.panels.flow_levels import LEVELS
from explorer.text import glossary, places

pytestmark = MARKS
TEXT = (
    'The "logit" of <b>softmax</b> 猫 $x$ ate marmalade '
    "<img src=x onerror=\"document.title='owned'\"> because it was sluggish."
)
OWN = ("marmalade", "sluggish")  # words that no sentence of ours has
LAPTOP, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}
ZOOMED = {"width": 720, "height": 450}  # a window of 1440x900 at 200 %
# Tabs that begin with an empty form, or with a word on the model that they need.
FORMS = ("sentences", "generate", "live", "lessons")
# What is drawn, wherever it stands: the components' canvases and SVGs in their shadow roots,
# Plotly's, and lists with bars.
FIRST_PICTURE = """() => {
  const tops = [], look = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) look(one.shadowRoot);
      const drawn = one.matches('canvas, svg, table, .claim, .stBidiComponent');
      const box = drawn && one.getBoundingClientRect();
      if (box && box.width > 120 && box.height > 60) tops.push(box.top);
    }
  };
  look(document.querySelector('[data-testid=stMain]'));
  return Math.min(...tops);
}"""
# What can be pressed between the line of tabs and the first picture, parts of pictures as the
# tokens of a tinted sentence left out, and the words in sight outside pictures, tables and menus.
ABOVE = """() => {
  const pictures = [], pressed = [], words = [];
  const tabs = document.querySelector('[role=tablist]').getBoundingClientRect().bottom;
  const look = (root) => {
    for (const one of root.querySelectorAll('*')) {
      if (one.shadowRoot) look(one.shadowRoot);
      const box = one.getBoundingClientRect();
      if (box.width < 2 || box.height < 2 || box.top < tabs || box.top > innerHeight) continue;
      if (one.matches('canvas, svg') && box.width > 120 && box.height > 60) pictures.push(box.top);
      if (one.matches('button:not(.token), a[href], input, [role=button]') && !one.closest('svg'))
        pressed.push(box.top);
      if (one.matches('p, h1, h2, h3, summary') && !one.closest('table, [role=radiogroup]'))
        words.push(...one.innerText.split(/\\s+/).filter(Boolean));
    }
  };
  look(document.querySelector('[data-testid=stMain]'));
  const top = Math.min(...pictures);
  return [pressed.filter((each) => each < top).length, words.length];
}"""
# The tabs on which few things may stand above the first picture.
PICTURED = (
    *("heads", "weight", "aggregated", "circuits", "sentences", "flow", "positions"),
    *("residual", "embeddings", "word", "generate", "lens", "translate", "edit", "patching"),
    *("compare", "checkpoints", "concepts", "claims"),
)
# Tabs without a panel that has a title of its own.
BARE = ("heads", "live", "lessons", "classroom")
# Of each panel: the words of its title and of its sentence, and the terms explained in them.
SAID = """panels => panels.map((one) => ['h2', '.finding'].map((part) => [
  one.querySelector(part).textContent,
  [...one.querySelectorAll(`${part} .term`)].map((term) => term.textContent)]))"""
# Choices that scroll sideways hide what can be chosen.
HIDDEN_CHOICES = """() => [...document.querySelectorAll('[data-testid=stButtonGroup]')]
  .flatMap((one) => [one, ...one.querySelectorAll('*')])
  .filter((e) => e.clientWidth > 60 && e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)"""
# The headings of level 1 of a page.
TITLES = """() => {
  const titles = [], look = (root) => {
    titles.push(...root.querySelectorAll('h1:not([aria-level]), h2[aria-level="1"]'));
    for (const one of root.querySelectorAll('*')) if (one.shadowRoot) look(one.shadowRoot);
  };
  look(document.querySelector('[data-testid=stMain]'));
  return titles.map((one) => one.innerText);
}"""
# Every piece of text that a browser would translate, with what it stands in.
TRANSLATED = """() => {
  const found = [];
  const walk = (node, kept) => {
    if (node.nodeType === 3) {
      const text = node.data.trim();
      if (text && !kept) found.push(text);
      return;
    }
    if (node.nodeType === 1) {
      if (["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) return;
      const own = node.getAttribute("translate");
      kept = own === "no" || (kept && own !== "yes");
      if (node.matches("input, textarea") && !kept) found.push(node.value);
    }
    for (const each of node.shadowRoot?.childNodes ?? []) walk(each, kept);
    for (const each of node.childNodes ?? []) walk(each, kept);
  };
  walk(document.documentElement, false);
  return found;
}"""
# Fields to type in, with the size of their type in pixels, also in views.
FIELDS = """() => {
  const typed = "input:not([type=range], [type=checkbox], [type=radio], [type=file]), "
    + "textarea, select, [contenteditable=true]";
  const found = [];
  const walk = (node) => {
    if (node.nodeType === 1 && node.matches(typed))
      found.push([node.ariaLabel ?? "", parseFloat(getComputedStyle(node).fontSize)]);
    for (const each of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) walk(each);
  };
  walk(document.body);
  return found;
}"""
AXE = """async (chosen) => (await axe.run(document, {...chosen, resultTypes: ['violations'],
    rules: {'label-content-name-mismatch': {enabled: true}}})).violations.map(
  (one) => one.id + ': ' + one.nodes.slice(0, 3).map(
    (node) => node.target.flat(3).join(' ') + ' ' + node.failureSummary).join('; '))"""

# What colours decide: of the frame, which a phone has not, also in the dark.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


@cache
def axe() -> str:
    return (javascript.tools().parent / "axe-core" / "axe.min.js").read_text("utf-8")


# True for a page of this scheme whose colours have all arrived: none is on its way to another.
COLOURED = """(dark) => {
  const [red] = getComputedStyle(document.querySelector('[data-testid=stApp]'))
    .backgroundColor.match(/\\d+/g);
  return (red < 128) === dark
    && !document.getAnimations().some((one) => one instanceof CSSTransition);
}"""


def at_rest(visitor: Visitor, dark: bool) -> None:
    visitor.page.wait_for_selector("[data-testid=stMain] :is(h1, h2, h3)")
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")
    visitor.until(COLOURED, dark)


def check_terms(visitor: Visitor) -> None:
    """Each term of the field is explained where it first stands in a panel, and no other word."""
    panels = visitor.page.locator(".panel:has(h2)")
    panels.first.wait_for()
    for (title, in_title), (finding, in_finding) in panels.evaluate_all(SAID):
        explained = [glossary.term(word).name for word in (*in_title, *in_finding)]
        assert explained == list(glossary.used(f"{title} {finding}", most=99)), (title, finding)


SELECTED = ("weight", "circuits", "feedforward", "edit")  # tabs on which more than one is chosen


def check_phone(visitor: Visitor, at_least: int) -> None:
    """The selection is one row of at least so many fields, which are wide enough to read, and no
    arrow covers the open tab."""
    page = visitor.page
    fields = page.locator(".st-key-selection-bar .stSelectbox")
    boxes = [each.bounding_box() for each in fields.all()]
    assert len(boxes) >= at_least and len({round(box["y"]) for box in boxes}) == bool(boxes), boxes
    assert all(48 <= box["width"] <= PHONE["width"] - box["x"] for box in boxes), boxes
    assert all(box["height"] <= 64 for box in boxes), boxes
    if not page.locator("[role=tablist]").count():  # of a place with one tab
        return
    open_tab = page.locator("[role=tab][aria-selected=true]").bounding_box()
    row = page.locator("[role=tablist]").bounding_box()
    is_first = page.locator("[role=tab]").first.get_attribute("aria-selected") == "true"
    assert open_tab["x"] >= row["x"] + (0 if is_first else 32)
    assert open_tab["x"] + open_tab["width"] <= row["x"] + row["width"] + 1


@javascript.needs_node
@pytest.mark.parametrize("name", TABS)
def test_a_page_is_accessible_shows_a_picture_at_once_and_explains_its_terms(
    visitor: Visitor, name: str
) -> None:
    page = visitor.page
    page.set_viewport_size(LAPTOP)
    model = {"model": "decoder"} if name == "generate" else {}
    page.goto(f"{visitor.server}{places.address(name, {'text': TEXT, **model})}")
    page.wait_for_selector("[data-testid=stMain]")
    if name not in FORMS:
        visitor.until(f"() => ({FIRST_PICTURE})() < {LAPTOP['height'] - 60}")
    at_rest(visitor, dark=False)
    visitor.until(f"() => ({TITLES})().length === 1")
    if name in PICTURED:
        pressed, words = page.evaluate(ABOVE)
        assert pressed <= 12 and 5 < words <= 90, (pressed, words)
    if name == "generate":  # no word of this text is one that a head read
        page.locator("summary", has_text="Every word’s rivals").press("Enter")
    if name not in BARE:
        check_terms(visitor)
    translated = page.evaluate(TRANSLATED)
    wrong = [each for each in translated if any(word in each for word in OWN)]
    assert not wrong and len(translated) > 20, wrong
    page.evaluate(axe())
    found = {"light": page.evaluate(AXE, {})}
    page.emulate_media(color_scheme="dark")
    for size in (ZOOMED, PHONE):
        page.set_viewport_size(size)
        at_rest(visitor, dark=True)
        assert visitor.fits() and not page.evaluate(HIDDEN_CHOICES), size
        found[f"dark, {size['width']} wide"] = page.evaluate(AXE, {})
    check_phone(visitor, 2 * (name in SELECTED))
    assert not any(found.values()), found
    fields = page.evaluate(FIELDS)
    assert fields and all(size >= 16 for _, size in fields), fields
    assert page.title().endswith("Headlight"), "nothing of a text runs"


@javascript.needs_node
@pytest.mark.parametrize("level", LEVELS[1:])
def test_an_opened_level_of_the_flow_is_accessible(visitor: Visitor, level: str) -> None:
    page = visitor.page
    page.set_viewport_size(LAPTOP)
    page.goto(f"{visitor.server}{places.address('flow', {'text': TEXT, 'flow_level': level})}")
    page.wait_for_selector(".panel[data-token] .flow-bar")
    at_rest(visitor, dark=False)
    check_terms(visitor)
    page.evaluate(axe())
    found = {"light": page.evaluate(AXE, {})}
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    at_rest(visitor, dark=True)
    assert visitor.fits() and not page.evaluate(HIDDEN_CHOICES)
    found["dark, on a phone"] = page.evaluate(AXE, {})
    assert not any(found.values()), found


@javascript.needs_node
def test_the_bar_of_a_lesson_is_accessible(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size(LAPTOP)
    page.goto(f"{visitor.server}/learn?lesson=first-attention")
    page.locator(".lesson_bar summary").first.wait_for()
    page.locator(".lesson_bar summary").first.click()
    at_rest(visitor, dark=False)
    page.evaluate(axe())
    found = {"light": page.evaluate(AXE, {})}
    page.emulate_media(color_scheme="dark")
    for size in (ZOOMED, PHONE):
        page.set_viewport_size(size)
        at_rest(visitor, dark=True)
        assert visitor.fits(), size
        found[f"dark, {size['width']} wide"] = page.evaluate(AXE, {})
    assert not any(found.values()), found


@javascript.needs_node
def test_the_button_of_a_first_visit_is_read_in_light_and_dark(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size(LAPTOP)
    page.goto(visitor.server)
    page.wait_for_selector("button:has-text('New here?')")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        at_rest(visitor, dark=scheme == "dark")
        page.evaluate(axe())
        assert page.evaluate(AXE, COLOURS) == [], scheme


def test_a_term_is_explained_to_pointer_keys_screen_reader_and_finger(
    visitor: Visitor, phone: Visitor
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=residual")
    term = page.locator(".panel h2 .term", has_text="Residual stream")
    meaning = page.get_by_role("tooltip").filter(has_text="each token carries from layer to layer")
    term.hover()
    meaning.wait_for()
    meaning.hover()
    assert meaning.is_visible(), "the pointer may go to it"
    page.mouse.move(0, 0)
    meaning.wait_for(state="hidden")
    term.focus()
    meaning.wait_for()
    box = meaning.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= page.viewport_size["width"]
    page.keyboard.press("Escape")
    meaning.wait_for(state="hidden")
    described = page.locator(f".panel #{term.get_attribute('aria-describedby')}").first
    assert "residual stream" in described.text_content()
    phone.page.goto(f"{visitor.server}/architecture?tab=residual")
    phone.page.locator(".panel h2 .term").first.tap()
    box = phone.page.locator(".means.open").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
