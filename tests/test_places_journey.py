"""All places and tabs in a real browser, with one word and one head chosen."""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode, urlsplit

import driver
from driver import Visitor
from playwright.sync_api import expect

from explorer.screens import needs
from explorer.text import places

pytestmark = driver.MARKS
CHOSEN = {"layer": ["1"], "head": ["5"], "token": ["9"]}
REPLACED = ("checkpoints",)  # which the first model does not fit
KEPT = "() => ['layer=1', 'head=5', 'token=9'].every((one) => location.search.includes(one))"
# What stands in the selection bar of a tab that has one: word, key, layer, head.
SELECTED = {
    "weight": ("9 it", "2 animal", "1", "5"),
    "circuits": ("9 it", "1", "5"),
    "flow": ("9 ▢",),  # the word that is asked for
    "positions": ("9 it",),
    "residual": ("9 it",),
    "embeddings": ("9 it",),
    "feedforward": ("9 it", "1"),
    "edit": ("9 it", "1", "5"),
    "patching": ("9 it",),
    "concepts": (),  # its cards select nothing
}


def chosen(visitor: Visitor) -> dict[str, list[str]]:
    asked = parse_qs(urlsplit(visitor.page.url).query)
    return {name: asked.get(name, []) for name in CHOSEN}


NAME = """() => [...document.querySelectorAll("header *")]
  .some((each) => getComputedStyle(each, "::after").content === '"Headlight"')"""


def test_a_word_and_a_head_are_kept_through_all_places(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 1280, "height": 720})
    visitor.open("?layer=1&head=5&token=9")
    for name, place in places.PLACES.items():
        first = places.first_tab(name)
        rows = [row for row in (first, *SELECTED) if places.place_of(row) == name]
        for tab in dict.fromkeys(rows) if name != "classroom" else ():
            of = places.tab_of(tab)
            title = needs.title(of, "encoder")
            visitor.go(place.title, title, places.labels(of).get(tab, ""))
            page.wait_for_selector(f"[role=tab][aria-selected=true]:has-text('{title}')")
            if tab != first:
                page.wait_for_url(f"**tab={tab}**")
            visitor.at_rest()
            assert page.locator("[data-testid=stException]").count() == 0, tab
            assert page.evaluate(NAME), tab
            if tab not in REPLACED:
                visitor.until(KEPT)
                assert chosen(visitor) == CHOSEN, tab
            if tab in SELECTED:
                bar = page.locator(".st-key-selection-bar:visible input")
                expect(bar).to_have_count(len(SELECTED[tab]))
                assert tuple(one.input_value() for one in bar.all()) == SELECTED[tab], tab
            for one in page.locator("[role=tab]").all():
                box = one.bounding_box()
                assert box["x"] >= 0 and box["x"] + box["width"] <= 1280, title
    # Plotly says so of a chart that is left before it has a size.
    visitor.errors[:] = [each for each in visitor.wrong() if "negative value" not in each]


def corners(box: dict[str, float]) -> tuple[float, float, float, float]:
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


TAGLINE = """getComputedStyle(
  document.querySelector("[data-testid=stHeaderLogo]").parentElement, "::before").content"""
WIDTHS = [(390, 844), (720, 450), (780, 900), (1024, 700), (1280, 800)]


def test_at_every_width_the_places_have_names_and_nothing_overlaps(visitor: Visitor) -> None:
    page = visitor.open("?model=induction-no-positions").page
    links = page.locator("[data-testid=stTopNavLink]:visible, .st-key-places-bar a:visible")
    for width, height in WIDTHS:
        page.set_viewport_size({"width": width, "height": height})
        expect(links).to_have_count(6)
        frame = [*links.all(), *page.locator(".st-key-bar-right button:visible").all()]
        boxes = [corners(each.bounding_box()) for each in frame]
        assert all(links.all_inner_texts()) and len(boxes) == 10
        assert ("every head sees" in page.evaluate(TAGLINE)) == (width >= 1280)
        for at, (x, y, right, bottom) in enumerate(boxes):
            assert x >= 0 and y >= 0 and right <= width and bottom <= height, (width, at)
            for left, top, end, foot in boxes[:at]:
                apart = right <= left + 1 or end <= x + 1 or y >= foot or bottom <= top
                assert apart, (width, boxes[at], left, top)
        assert page.locator("[data-testid=stExpandSidebarButton]:visible").count() == 0
        # The purpose of the model is whole: a line that is cut would be higher than a letter.
        label = page.locator(".st-key-model_menu button p")
        assert label.inner_text().endswith("without positions")
        cut = label.evaluate(
            "p => [p.scrollHeight - p.clientHeight, p.scrollWidth - p.clientWidth]"
        )
        assert max(cut) < 14, width


FIRST_ROW = """box => {
  const { top } = box.getBoundingClientRect();
  const rows = [...box.querySelectorAll(".row")].map((row) => row.getBoundingClientRect());
  const first = rows.filter((row) => row.bottom > top + 1).map((row) => row.top - top);
  return [box.scrollTop, Math.min(...first)];
}"""


def test_on_a_phone_the_open_tab_is_in_sight_and_a_long_text_is_whole(phone: Visitor) -> None:
    page = phone.page
    page.goto(f"{phone.server}/predict?tab=attribution")
    tab = page.locator("[role=tab][aria-selected=true]:has-text('Why this word')")
    tab.wait_for()
    phone.at_rest()
    left, _, right, _ = corners(tab.bounding_box())
    assert left >= 0 and right <= 390
    text = " ".join(["The cat slept because it was tired, and the dog did not."] * 6)
    page.goto(f"{phone.server}/predict?{urlencode({'text': text, 'token': '60'})}")
    page.get_by_text("Formula, ranks and entropy").click()  # which has the whole text
    page.wait_for_selector(".panel .rolled .selected")
    scrolled, top = page.locator(".panel .rolled").evaluate(FIRST_ROW)
    assert scrolled > 0 and 0 <= top < 8, "no row is cut"
    page.goto(f"{phone.server}/?{urlencode({'tab': 'weight', 'text': text * 4})}")
    page.wait_for_selector(".panel[data-token] .cells")
    phone.at_rest()


def test_a_head_of_the_flow_opens_on_its_tab_and_back_leads_to_the_flow(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?token=9&layer=1&flow_level=Layer")
    page.get_by_role("button", name="Layer 1, head 5:").first.click()
    page.wait_for_selector(".finding:has-text('Head 5 of layer 1')")
    page.wait_for_url("**layer=1**head=5**")
    page.get_by_role("button", name="Open in Heads").click()
    page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 5')")
    page.go_back()
    page.wait_for_url("**/architecture**")
    page.wait_for_selector(".finding:has-text('Head 5 of layer 1')")
    assert parse_qs(urlsplit(page.url).query)["token"] == ["9"]


def test_the_selection_bar_chooses_word_key_layer_and_head(visitor: Visitor) -> None:
    page = visitor.open("?layer=1&head=5&token=9").page

    def choose(menu: str, choice: str, address: str) -> None:
        visitor.choose(menu, choice)
        page.wait_for_url(f"**{address}**")
        visitor.drawn()

    choose("Head", "2", "head=2")
    choose("Layer", "3", "layer=3")
    choose("Word that attends (query)", "5 cross", "token=5")
    # The word that gets most stands there already, whichever that is.
    key = page.get_by_role("combobox", name="Word attended to (key)").input_value()
    other, place = ("2 animal", 2) if key == "7 street" else ("7 street", 7)
    choose("Word attended to (key)", other, f"weight_at=5.{place}")
    assert "layer=3" in page.url and "head=2" in page.url and "token=5" in page.url
    assert visitor.title().startswith("Layer 3, head 2")


COLOURS = "all => [...new Set(all.map(one => getComputedStyle(one).color))]"


def test_menus_have_the_colours_of_the_page_whatever_its_scheme(visitor: Visitor) -> None:
    page, seen = visitor.open("?layer=1&head=5").page, []
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        visitor.until("scheme => document.documentElement.style.colorScheme === scheme", scheme)
        page.locator(".st-key-model_menu button").first.click()
        fold = page.locator(".st-key-models summary")
        fold.first.wait_for()
        links = page.locator(".st-key-next-finding button")
        assert fold.evaluate_all(COLOURS) == links.evaluate_all(COLOURS)
        seen += links.evaluate_all(COLOURS)
        page.keyboard.press("Escape")
    assert len(set(seen)) == 2


def test_the_links_below_a_figure_are_one_row_and_open_below_it(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=residual")
    labels = ["Formula", "All numbers of this figure"]
    links = [page.locator("summary", has_text=each).first for each in labels]
    for link in links:
        link.wait_for()
    middles = [box["y"] + box["height"] / 2 for box in (each.bounding_box() for each in links)]
    assert max(middles) - min(middles) < 3, "one row"
    links[1].click()
    table = page.locator("[data-testid=stDataFrame]").first
    table.wait_for()
    row, box = links[0].bounding_box(), table.bounding_box()
    assert box["y"] > row["y"] + row["height"] and box["width"] > 900, (
        "below it, as wide as the page"
    )
    links[0].click()
    page.get_by_text("so the share of the update is").wait_for()
    assert links[1].bounding_box()["y"] > links[0].bounding_box()["y"] + 40, "and covers nothing"
