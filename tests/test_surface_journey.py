"""What stands on a small screen, in a real browser: a picture in the first screen at a zoom of
200 %, and names that no line crosses."""

from __future__ import annotations

import pytest
from driver import MARKS, Visitor
from test_accessible import check_phone

pytestmark = MARKS

ZOOMED = {"width": 720, "height": 450}  # 1440x900 at 200 %
PICTURES = {"heads": "attention.votes", "flow": "architecture.flow", "weight": "anatomy.weight"}
LEAST = 64  # pixels of a picture in the first screen

# How much of a panel's first picture stands above the places at the foot of the window.
IN_SIGHT = """(panel) => {
  const drawn = [...panel.querySelectorAll(".figures svg")];
  const top = Math.min(...drawn.map((one) => one.getBoundingClientRect().top));
  return document.querySelector(".st-key-places-bar").getBoundingClientRect().top - top; }"""
# Names of layers and their numbers that a bright line crosses, but for those before a plate of
# their own.
CROSSED = """(panel) => {
  const names = [...panel.querySelectorAll("svg text")].filter((text) =>
    /^Layer \\d|°|points/.test(text.textContent) &&
    !text.previousElementSibling?.classList.contains("plate"));
  const lines = [...panel.querySelectorAll("svg path.flow-curve, svg path[stroke-opacity='1']")]
    .filter((line) => line.getAttribute("stroke-opacity") >= 0.5);
  const crosses = (line, box) => {
    const half = line.getAttribute("stroke-width") / 2;
    for (let at = 0, long = line.getTotalLength(); at <= long; at += 2) {
      const { x, y } = line.getPointAtLength(at);
      if (x > box.x - half && x < box.x + box.width + half &&
          y > box.y - half && y < box.y + box.height + half) return true;
    }
    return false;
  };
  return [lines.length, names.filter((text) => lines.some((line) => crosses(line, text.getBBox())))
    .map((text) => text.textContent)]; }"""


@pytest.mark.parametrize("tab", PICTURES)
def test_at_a_zoom_of_200_percent_the_first_screen_has_a_part_of_the_picture(
    browser, server: str, tab: str
) -> None:
    visitor = Visitor(browser, server, viewport=ZOOMED)
    panel = f".panel[data-panel='{PICTURES[tab]}'][data-token]"
    lit = {"flow_beam": "end"} if tab == "flow" else {}  # before it is a question
    page = visitor.visit(tab, panel, **lit).page
    assert page.locator(panel).evaluate(IN_SIGHT) >= LEAST
    for seen in (".st-key-typed_text", ".st-key-model_menu"):
        box = page.locator(seen).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] < ZOOMED["height"] / 2 + 30, seen
    assert visitor.fits() and not visitor.wrong()
    visitor.leave()


def test_on_a_phone_the_selection_of_a_head_is_one_row(phone: Visitor) -> None:
    for tab, asked in (("heads", {"head": 5}), ("compare", {"other_view": "Heads"})):
        page = phone.visit(tab, ".panel[data-token]", **asked).page
        page.wait_for_selector(".st-key-selection-bar input")
        check_phone(phone, 2)
        assert phone.fits()


@pytest.mark.parametrize("chosen", [{}, {"token": "0"}])
def test_no_line_of_the_flow_crosses_the_name_of_a_layer_or_its_numbers(
    visitor: Visitor, phone: Visitor, chosen: dict[str, str]
) -> None:
    panel = ".panel[data-panel='architecture.flow'][data-token]"
    for each in (visitor, phone):
        each.visit("flow", panel, model="translator", flow_beam="end", **chosen)
        lines, crossed = each.page.locator(panel).evaluate(CROSSED)
        assert lines > 3 and not crossed
