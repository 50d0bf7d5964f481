"""What a reader sees at once: how many numbers and controls the first view of each tab has, and how
many keys lead to its picture."""

from __future__ import annotations

import pytest
from driver import MARKS, Visitor

from explorer.text import places

pytestmark = MARKS
MOST = 25  # on the mean over the tabs
TABS = [
    tab.id for name, place in places.PLACES.items() if name != "classroom" for tab in place.tabs
]
# Every number that is in sight, and what the Tab key stops at: links, buttons, fields. A picture is
# one stop, whatever is pressed in it, and so are a row of tabs, a choice among few words, and a
# menu with the button that opens it.
SEEN = r"""() => {
  const CONTROL = "a[href], button, input, select, textarea, summary, " +
    "[role=button], [role=radio], [role=tab], [role=slider], [role=switch], [role=application]";
  const up = (one) => one.assignedSlot || one.parentElement || one.getRootNode().host;
  const isSeen = (one, box) => {
    const [right, bottom] = [box.left + box.width, box.top + box.height];
    if (box.width < 2 || box.height < 2 || bottom <= 0 || right <= 0) return false;
    if (box.top >= innerHeight || box.left >= innerWidth) return false;
    if (!one.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    for (let each = one; each && each !== document.documentElement; each = up(each)) {
      const style = getComputedStyle(each), frame = each.getBoundingClientRect();
      if (each.closest("svg") || style.display === "contents") continue;
      if (style.clipPath === "inset(50%)") return false;
      if (style.overflow === "visible" && style.clip === "auto" && style.clipPath === "none")
        continue;
      if (frame.width < 3 || frame.height < 3 || box.top >= frame.bottom || bottom <= frame.top ||
          box.left >= frame.right || right <= frame.left) return false;
    }
    return true;
  };
  const numbers = [], controls = new Set(), marks = [];
  const controlOf = (one) =>
    one.closest(".figure, [role=tablist], [role=radiogroup]") ||
    one.closest(".stSelectbox, .stTextInput, .stNumberInput") ||
    one.closest("label") || one;
  const look = (root) => {
    for (const one of root.querySelectorAll("*")) {
      if (one.shadowRoot) look(one.shadowRoot);
      if (one.matches("style, script, template, select *")) continue;
      const drawn = one.matches("label input") ? one.closest("label") : one; // a switch
      if (one.matches(CONTROL) && isSeen(drawn, drawn.getBoundingClientRect())) {
        controls.add(controlOf(one));
        marks.push(one);
      }
      for (const text of one.childNodes)
        for (const found of text.nodeType === 3 ? text.data.matchAll(/\d[\d.,]*/g) : []) {
          const range = document.createRange();
          range.setStart(text, found.index);
          range.setEnd(text, found.index + found[0].length);
          if (isSeen(one, range.getBoundingClientRect())) numbers.push(found[0]);
        }
    }
  };
  look(document);
  const named = (one) => (one.getAttribute("aria-label") || one.innerText || one.className || "")
    .toString().trim().slice(0, 40);
  return [numbers, [...controls].map(named), marks.length]; }"""


# What is on its way has come: panels are painted, and offers are made or will not be.
DRAWN = """() => {
  const waits = document.querySelector("[data-testid=stSpinner], [data-testid=stSkeleton]");
  const text = document.querySelector(".st-key-typed_text [data-drawn]");
  return !waits && text && document.querySelector("[data-test-script-state=notRunning]"); }"""


STOPS = 12  # of the Tab key until the picture
# Where the keyboard is, in whatever root: in a picture, on the way that skips to it, or elsewhere;
# and whether it can be seen there.
AT = """() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  const main = document.querySelector("[data-testid=stMain]");
  const isIn = (one) => one && (main.contains(one) || isIn(one.getRootNode().host));
  const up = (one) => one.parentElement || one.getRootNode().host;
  let seen = false;
  for (let each = at; each && each !== document.body && !seen; each = up(each)) {
    const style = getComputedStyle(each);
    const [line, width] = [style.outlineStyle, parseFloat(style.outlineWidth)];
    seen = (line !== "none" && width > 0) || style.boxShadow !== "none";
    if (each.matches(".sentence, [data-testid=stElementContainer]")) break; // it is of more then
  }
  const picture = at.closest(".figure, .card") && isIn(at);
  const name = (at.getAttribute("aria-label") || at.textContent || at.tagName).slice(0, 40);
  return [picture ? "picture" : at.matches(".skip") ? "skip" : "", seen, name]; }"""


def stops_to_the_picture(visitor: Visitor) -> list[str]:
    """What the Tab key stops at before the picture; each can be seen there."""
    stops = []
    for _ in range(STOPS):
        visitor.page.keyboard.press("Tab")
        where, is_seen, name = visitor.page.evaluate(AT)
        stops.append(name)
        assert is_seen, f"no focus on {name}"
        if where == "skip":
            visitor.page.keyboard.press("Enter")
            where, *_ = visitor.page.evaluate(AT)
        if where == "picture":
            return stops
    pytest.fail(f"no picture after {stops}")


def test_first_views_are_few_things_and_the_keys_reach_the_picture(visitor: Visitor) -> None:
    """On each tab few numbers and controls, with what is offered there."""
    numbers, controls = dict[str, int](), dict[str, int]()
    for tab in TABS:
        visitor.visit(tab, "[data-testid=stMain] :is(h1, h2)")
        visitor.until(DRAWN)
        numbers[tab], controls[tab] = map(len, visitor.page.evaluate(SEEN)[:2])
        assert stops_to_the_picture(visitor), tab
    assert sum(numbers.values()) / len(TABS) <= MOST, numbers
    assert sum(controls.values()) / len(TABS) <= MOST, controls
