"""The beam in a real browser: the light goes on, it is dragged and pressed, what is said while it
plays, two fingers, and a phone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from conftest import needs_smollm2
from driver import MARKS, Visitor
from playwright.sync_api import expect

from explorer.figures.formatting import ordinal
from explorer.panels import architecture, flow_beam
from models.contract.edits import HideWord
from models.runtime.run import Run

pytestmark = MARKS
TEXT = "The waiter brought the soup but it was cold."
HERE = ".flow-bar [aria-current=step]"


def arrive(visitor: Visitor, query: str) -> Visitor:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?text={quote_plus(TEXT)}{query}")
    page.wait_for_selector(".panel[data-token]")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_load_state("networkidle")
    return visitor


def at(visitor: Visitor) -> str:
    """The layer under the beam, as the address says it."""
    return parse_qs(urlsplit(visitor.page.url).query).get("flow_beam", [""])[0]


# In each frame: the sentence, and the number of a word's lane.
SPOKEN = """(word) => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  const root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.film = [];
  const look = () => {
    const finding = root.querySelector('.finding');
    const lane = [...root.querySelectorAll('.flow-lane')].find(
      (one) => one.querySelector('text').textContent === word);
    if (lane && !root.querySelector('.stage'))
      film.push([
        finding.textContent,
        [...lane.querySelectorAll('text')].at(-1).textContent,
      ]);
    requestAnimationFrame(look);
  };
  look();
}"""


def test_the_light_goes_on_for_the_whole_page_and_what_is_said_is_what_the_lanes_show(
    visitor: Visitor,
) -> None:
    figure = architecture.flow(Run("encoder", TEXT), beam="end").figures[0]
    lane = figure.lanes[0]
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "").page
    field = page.get_by_label("Your text").first
    title = page.locator(".panel h2")
    assert TEXT not in field.input_value() and lane.label not in title.inner_text()
    page.evaluate(SPOKEN, lane.label)
    page.locator(".stage .light").click()
    page.wait_for_selector(".flow-bar")
    expect(field).to_have_value(TEXT)
    expect(title).to_contain_text("a hidden word")
    crumbs = page.locator(".flow-bar .crumb").last
    expect(crumbs).to_have_text(re.compile("^▢ → ."))  # as its row
    assert at(lively) == "0", "it is there before the beam has come to its end"
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    shown = {}
    for layer, (before, after) in enumerate(zip(lane.places, lane.places[1:])):
        both = f"{ordinal(before)} → {ordinal(after)}"
        shown[figure.stops[layer].finding] = ordinal(after) if before == after else both
    shown[figure.stops[-1].finding] = lane.text
    # What is measured while it plays stands behind what is told.
    proof = re.compile(r" (?:Head \d+ of|Without|What would|F finds) .*$")
    film = [(proof.sub("", said), number) for said, number in page.evaluate("film")]
    # The sentence stands while its layer plays, whose numbers are there before the next one.
    told = {sentence: number for sentence, number in film if sentence in shown}
    assert told == shown
    # What a layer makes of the answer is told when its place moves, and not before.
    for layer, (before, after) in enumerate(zip(lane.places, lane.places[1:])):
        assert f"Layer {layer} …" in dict(film)
        is_moved = before != lane.middles[layer] and before != after
        assert not is_moved or (figure.stops[layer].finding, ordinal(before)) not in film
    lively.leave()


def test_the_dark_opens_onto_a_picture_that_is_there(visitor: Visitor) -> None:
    """In each frame there is the question or the picture, and in front of that at first the dark,
    where the question stood, of which less and less is left."""
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "").page
    page.evaluate(OPENING)
    page.locator(".stage .light").click()
    page.wait_for_function("() => film.at(-1).rows && !film.at(-1).dark")
    film = page.evaluate("film")
    asked = [each for each in film if each["asked"]]
    dark = [each for each in film if each["dark"]]
    assert all(each["asked"] or each["rows"] for each in film)
    assert all(each["rows"] and each["dark"] == asked[-1]["box"] for each in dark)
    assert len({each["clip"] for each in dark}) > 3
    lively.leave()


# In each frame: whether the question stands, its box, how many rows the picture has, and the box of
# the dark in front of it and what is left of that.
OPENING = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  const root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.film = [];
  const boxOf = (one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [left, top, width, height].map(Math.round).join();
  };
  const look = () => {
    const dark = root.parentNode.querySelector('.shade');
    film.push({
      asked: Boolean(root.querySelector('.stage')),
      box: boxOf(root),
      rows: root.querySelectorAll('g.token').length,
      dark: dark && boxOf(dark),
      clip: dark && getComputedStyle(dark).clipPath,
    });
    requestAnimationFrame(look);
  };
  look();
}"""


def test_the_name_and_the_column_of_a_layer_and_the_handle_open_it(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=end").page
    name = page.get_by_role("button", name="Open layer 1")
    for act in (name.click, lambda: name.press("Enter")):
        act()
        expect(page.locator(HERE)).to_have_text("Layer 1")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        page.keyboard.press("Escape")
        expect(page.locator(HERE)).to_have_text("Model")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        assert at(visitor) == "end", "what was opened at the end leads back there"
    column = page.locator(".flow-ground").nth(2).bounding_box()
    page.mouse.click(column["x"] + column["width"] - 8, column["y"] + column["height"] - 4)
    expect(page.locator(HERE)).to_have_text("Layer 2")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("Escape")
    expect(page.locator(HERE)).to_have_text("Model")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**flow_beam=3**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.locator(".beam-pill").click()
    expect(page.locator(HERE)).to_have_text("Layer 3")
    page.keyboard.press("Escape")
    expect(page.locator(HERE)).to_have_text("Model")
    assert at(visitor) == "3"


def test_the_handle_is_dragged_and_a_drag_opens_nothing(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=0").page
    pill, last = (
        page.locator(each).bounding_box() for each in (".beam-pill rect", ".flow-ground >> nth=3")
    )
    x, y = pill["x"] + 20, pill["y"] + pill["height"] / 2
    page.locator(".flow-head").first.focus()
    page.keyboard.press("Tab")
    boxed = page.locator(".panel :focus-visible")
    expect(boxed).to_have_count(1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(last["x"] + 40, y, steps=8)
    expect(boxed).to_have_count(0)  # no box stays where the light was
    page.mouse.up()
    page.wait_for_url("**flow_beam=3**")
    expect(page.locator(HERE)).to_have_text("Model")


def test_what_the_beam_has_not_reached_lies_in_the_dark(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=0").page
    dark = page.locator(".flow-night")
    before = dark.bounding_box()["width"]
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**flow_beam=1**")
    assert dark.bounding_box()["width"] < before
    page.keyboard.press("End")
    expect(page.locator(".flow-night")).to_have_count(0)


def test_the_end_leads_on_to_the_head_that_it_names(visitor: Visitor) -> None:
    """The head that the answer comes from is told by what is measured: there the levels lead."""
    panel = architecture.flow(Run("encoder", TEXT), beam="end")
    reason = panel.figures[0].stops[-1].part
    page = arrive(visitor, "").page
    page.locator(".stage .guess").fill("they")
    page.keyboard.press("Enter")
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    expect(page.locator(".panel .finding")).to_contain_text(reason)
    _, layer, head, *_ = page.locator(".flow-bar .crumb").all_inner_texts()
    assert reason.startswith(f"{head} of {layer.lower()}")


def test_a_press_while_it_plays_ends_that_and_does_what_it_is_for(visitor: Visitor) -> None:
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "").page
    page.locator(".stage .light").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.locator(".flow-bar .crumb", has_text="Layer").click()
    page.wait_for_url("**flow_level=Layer**")
    expect(page.locator(HERE)).to_contain_text("Layer ")
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    lively.leave()


def test_the_end_asks_what_comes_without_a_word_and_a_press_shows_it(visitor: Visitor) -> None:
    finding = flow_beam.each_word(Run("encoder", TEXT)).finding
    out, says, chance = re.search(
        r"Without the word “(.+?)” the model says “(.+?)”, (.+?%)", finding
    ).groups()
    page = arrive(visitor, "&flow_beam=end").page
    button = page.get_by_role("button", name=f"Take out “{out}”")
    expect(page.locator(".panel .finding")).to_contain_text(f"say without “{out}”?")
    expect(page.locator(".panel .finding")).not_to_contain_text(chance)
    expect(button).to_have_class(re.compile("proof"))
    expect(page.locator(".flow-bar .proof")).to_have_count(1)
    button.click()
    page.wait_for_selector(f".panel .finding:has-text('says “{says}”')")
    expect(page.locator(".flow-output")).to_contain_text(chance)
    page.get_by_role("button", name=f"Put “{out}” back").wait_for()


@needs_smollm2
@pytest.mark.parametrize("layer", ["24", "end"])
def test_a_tag_of_a_head_stands_above_the_line_of_the_word_that_it_reads(
    visitor: Visitor, layer: str
) -> None:
    text = quote_plus("The capital of France is Paris. The capital of Italy is")
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?model=smollm2&text={text}&flow_beam={layer}")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    tag = page.locator(".panel svg text", has_text=re.compile(r"^head \d+: Italy$"))
    words = page.locator(".panel svg text", has_text=re.compile(r"^Italy\s*$"))
    expect(words.first).to_be_visible()
    boxes = [each.bounding_box() for each in words.all()]
    here, row = tag.bounding_box(), min(boxes, key=lambda box: box["x"])  # a lane is at the right
    assert 0 < row["y"] - here["y"] < 2.5 * row["height"]


def test_what_a_layer_makes_of_the_place_without_a_word_lies_on_no_line(visitor: Visitor) -> None:
    """Also where rows stand below the one that is followed."""
    out = Run("encoder", TEXT, (HideWord(5),))
    figure = architecture.flow(out, beam="end").figures[0]
    lane = max(figure.lanes, key=lambda each: each.were)
    page = arrive(visitor, "&edits=HideWord:5:&flow_beam=end").page
    expect(page.locator(".panel .finding")).to_contain_text("Without")
    lines = [each.bounding_box() for each in page.locator(".panel g.rail").all()]
    foot = max(each["y"] + each["height"] / 2 for each in lines)
    for layer in figure.matters:
        places = dict.fromkeys((lane.was_places[layer + 1], lane.places[layer + 1]))
        told = re.compile(f"^{' → '.join(map(ordinal, places))}$")
        label = page.locator(".panel .flow-layer text", has_text=told)
        assert label.bounding_box()["y"] > foot


@needs_smollm2
def test_a_head_that_is_pressed_is_what_the_bar_speaks_of_here_and_after_a_reload(
    visitor: Visitor,
) -> None:
    """Also one that is not told of: its dot is struck, and words stand by their chances."""
    text = quote_plus("The capital of France is Paris. The capital of Italy is")
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?model=smollm2&text={text}&flow_beam=end")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.get_by_role("button", name="Layer 24, head 6:").click()
    bar, lanes = page.locator(".flow-bar"), page.locator(".panel .flow-lane")
    seen = []
    for _ in range(2):
        expect(bar).to_contain_text("Put head 6 back")
        expect(bar).not_to_contain_text("Take out")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        expect(lanes).to_have_count(5)  # with the word that comes later
        page.mouse.move(0, 0)
        chances = [re.findall(r"([\d.]+)%", each)[-1] for each in lanes.all_text_contents()]
        assert [float(each) for each in chances] == sorted(map(float, chances), reverse=True)
        pressed = page.locator(".flow-head[aria-pressed=true]")
        assert "out, press to put it back" in pressed.get_attribute("aria-label")
        svg = page.locator(".panel .figure svg").first
        seen.append(svg.evaluate("one => one.outerHTML"))
        page.reload()
    assert seen[0] == seen[1]


def test_enter_on_a_chosen_guess_puts_the_light_on(visitor: Visitor) -> None:
    page = arrive(visitor, "").page
    page.locator(".stage .choices button").first.click()
    expect(page.locator(".stage .choices button").first).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Enter")
    page.wait_for_url("**flow_beam=**")
    expect(page.locator(".stage")).to_have_count(0)


def fingers(visitor: Visitor, x: float, y: float, apart: list[int]) -> None:
    """Two fingers around a place, so many pixels apart one after the other, then up."""
    session = visitor.context.new_cdp_session(visitor.page)
    touch = lambda kind, points: session.send(
        "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
    )
    for kind, wide in zip(("touchStart", *["touchMove"] * len(apart)), apart):
        touch(
            kind, [{"x": x + side * wide / 2, "y": y, "id": at} for at, side in ((0, -1), (1, 1))]
        )
    touch("touchEnd", [])


@pytest.mark.parametrize("layer", [0, 1])
def test_two_fingers_open_the_layer_under_them_and_close_it(phone: Visitor, layer: int) -> None:
    page = arrive(phone, "&flow_beam=0").page
    column = page.locator(".flow-ground").nth(layer)
    column.evaluate("one => one.scrollIntoView({ block: 'center' })")  # clear of the bar below
    box = column.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers(phone, x, y, [60, 70, 90, 130])
    expect(page.locator(HERE)).to_have_text(f"Layer {layer}")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert page.evaluate("visualViewport.scale") == 1, "the page itself stays as large as it was"
    box = page.locator(".panel .figure").first.bounding_box()
    fingers(phone, box["x"] + box["width"] / 2, box["y"] + 60, [130, 100, 70, 50])
    expect(page.locator(HERE)).to_have_text("Model")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert at(phone) == f"{layer}"


def test_what_is_taken_out_comes_to_the_words_before_their_bars_move(visitor: Visitor) -> None:
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "&flow_beam=end").page
    bars = page.locator(".panel .flow-length")
    lengths = lambda: bars.evaluate_all("(all) => all.map((each) => each.getAttribute('width'))")
    before = lengths()
    page.keyboard.press("x")
    page.wait_for_selector("canvas.parcels", state="attached")
    page.wait_for_selector(".holds", state="attached")
    assert lengths() == before, "till then bars stand as they stood"
    expect(page.locator(":is(.holds, canvas.parcels)")).to_have_count(0)
    expect(page.locator(".panel .finding .first")).to_contain_text("Without")
    expect(bars.first).not_to_have_attribute("width", before[0])
    lively.leave()


@pytest.mark.parametrize(("width", "height"), [(390, 844), (360, 740)])
def test_on_a_phone_all_there_is_to_press_at_a_question_is_in_sight(
    phone: Visitor, width: int, height: int
) -> None:
    phone.page.set_viewport_size({"width": width, "height": height})
    page = arrive(phone, "").page
    expect(page.locator(".stage .choices button").first).to_be_visible()
    parts = page.locator(".stage :is(button, .guess)")
    assert parts.count() >= 4
    for part in parts.all():
        hit = "(one) => { const { left, top, width, height } = one.getBoundingClientRect();"
        hit += " return one.getRootNode().elementFromPoint(left + width / 2, top + height - 2); }"
        there = part.evaluate_handle(hit)
        assert part.evaluate("(one, there) => one === there", there), part.inner_text()


def test_on_a_phone_every_layer_has_its_name_its_ring_and_its_box(phone: Visitor) -> None:
    page = arrive(phone, "&flow_beam=end").page
    expect(page.locator(".panel .finding")).to_contain_text("without “")  # drawn for good
    for layer in range(4):
        drawn = page.locator(".flow-layer").nth(layer)
        assert drawn.locator(".flow-sum").count() == drawn.locator(".flow-ffn").count() == 1
        ring, box = (drawn.locator(each).bounding_box() for each in (".flow-sum", ".flow-ffn rect"))
        assert ring["y"] + ring["height"] <= box["y"] + 2, "one stands on the other"
        expect(page.locator(".panel .figure").first).to_contain_text(f"Layer {layer}")
    rows = page.locator(".panel g.token").count()
    figure = page.locator(".panel .figure").first.bounding_box()
    ground = page.locator(".flow-ground").first.bounding_box()
    assert rows and ground["width"] > 0.85 * figure["width"]


def test_a_question_and_a_stop_are_read_on_the_wall(visitor: Visitor) -> None:
    """The question has its line with a gap; a stop's line has 44 pixels and its lanes 28, and the
    followed word and the one that it takes most from have rows."""
    figure = architecture.flow(Run("encoder", TEXT), beam="1").figures[0]
    layer, band = figure.layers[1], figure.bands[0]
    brought = layer.attentions[0].shares.sum(0)
    brought[band.selected] = 0
    page = visitor.page
    page.set_viewport_size({"width": 1920, "height": 1080})
    arrive(visitor, "")
    page.keyboard.press("p")
    before, after, _ = figure.asks
    asked = page.locator(".board .asked p").first  # as soon as the words to choose from are known
    expect(asked).to_contain_text(before.strip())
    expect(asked).to_contain_text(after.strip())
    assert figure.lanes[0].label not in asked.inner_text().split()
    assert asked.evaluate("each => parseFloat(getComputedStyle(each).fontSize)") >= 44
    expect(page.locator(".board .offered span").nth(1)).to_be_visible()
    page.keyboard.press("Escape")
    board = page.locator(".board svg").first
    arrive(visitor, "&flow_beam=1")
    page.keyboard.press("p")
    expect(board).to_contain_text(band.rows[band.selected])
    texts = [each.strip() for each in board.locator("text").all_text_contents()]
    assert {band.rows[band.selected], band.rows[int(brought.argmax())]} <= {*texts}
    sizes = board.locator(".flow-lane text").evaluate_all(
        "all => all.map((each) => parseFloat(getComputedStyle(each).fontSize))"
    )
    assert sizes and min(sizes) >= 28
    line = page.locator(".board h1, .board h2").first
    assert line.evaluate("each => parseFloat(getComputedStyle(each).fontSize)") >= 44


def test_a_press_on_a_box_opens_it_in_place_and_back_and_escape_come_out(visitor: Visitor) -> None:
    """Also from a tab that a press led to: Back shows the page whose address it shows."""
    page = arrive(visitor, "&flow_beam=2").page
    page.locator(".flow-ffn").nth(2).click()
    expect(page.locator(HERE)).to_have_text("FFN")
    page.wait_for_url("**flow_level=FFN**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    expect(page.locator(".panel .finding")).to_contain_text("The FFN of layer 2 adds")
    assert page.locator(".panel svg:has-text('all 1,018 others')").count()
    page.keyboard.press("Escape")
    expect(page.locator(HERE)).to_have_text("Model")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.locator(".flow-ffn").nth(2).click()
    lead = page.get_by_role("button", name="Open in Feed-forward")
    lead.click()
    page.wait_for_url("**tab=feedforward**")
    page.wait_for_selector("[data-panel='feed_forward.network']")
    page.go_back()
    page.wait_for_selector("[data-panel='architecture.flow'] .flow-bar")
    assert "tab=" not in page.url and "flow_beam=2" in page.url
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.goto(f"{visitor.server}/architecture?text={quote_plus(TEXT)}&flow_beam=end")
    page.wait_for_selector("[data-panel='architecture.flow'] .flow-bar")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.get_by_role("button", name="Open in Heads").click()
    page.wait_for_selector("[data-panel='attention.heads']")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.go_back()
    page.wait_for_selector("[data-panel='architecture.flow'] .flow-bar")
    assert at(visitor) == "end"


@pytest.mark.parametrize(("guess", "says"), [("he", "“he” has 31.5%"), ("banana", "“banana”")])
def test_a_guess_has_its_row_and_its_chance_in_the_end_and_an_answer_without_one_has_none(
    visitor: Visitor, guess: str, says: str
) -> None:
    page = arrive(visitor, "").page
    page.locator(".stage .guess").fill(guess)
    page.keyboard.press("Enter")
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    expect(page.locator(".panel .finding")).to_contain_text(says)
    row = page.locator(".flow-lane", has_text="yours")
    expect(row).to_have_count(1)
    expect(row).to_contain_text(guess)
    expect(row).to_contain_text("%")
    assert page.evaluate(FOCUSED) == "play", "what had the focus is gone"
    if guess != "he":
        return
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.goto(f"{visitor.server}/architecture?text={quote_plus(TEXT)}")
    page.wait_for_selector(".stage .light")
    expect(page.locator(".stage .gap")).to_have_text("?")
    page.locator(".stage .light").click()
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    page.wait_for_selector(".flow-lane")
    expect(page.locator(".flow-lane", has_text="yours")).to_have_count(0)
    expect(page.locator(".panel .finding")).not_to_contain_text("Your guess")


def test_a_guess_that_begins_as_the_models_own_word_is_another(visitor: Visitor) -> None:
    """Of "Nepali" and "Nepalese" one token is the same, and neither its chance."""
    page, text = visitor.page, quote_plus("Shyam grew up in Nepal, therefore he speaks fluent")
    page.goto(f"{visitor.server}/architecture?model=decoder&text={text}")
    page.locator(".stage .guess").fill("Nepalese")
    page.keyboard.press("Enter")
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    said = page.locator(".panel .finding")
    expect(said).to_contain_text(re.compile("Your guess “Nepalese” has (<|[0-9])"))
    expect(said).not_to_contain_text("is the model’s too")
    expect(page.locator(".flow-lane", has_text="yours")).to_contain_text("Nepalese")
    names = [each.locator("text").first.text_content() for each in page.locator(".flow-lane").all()]
    assert len(names) == len(set(names))


FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one?.className;
}"""

LONG = (
    "Why did the designer cross the road? Because Comic Sans was on this side, "
    "and she really could not stand it any longer."
)


def test_the_line_of_a_question_is_read_whole(visitor: Visitor, phone: Visitor) -> None:
    """No part of it is cut away, however many lines it has, in a wide window, in a narrower one and
    on a phone."""
    cuts = "(each) => [getComputedStyle(each).clipPath, getComputedStyle(each).overflow]"
    lines = "(each) => each.clientHeight / parseFloat(getComputedStyle(each).fontSize)"
    for one, sizes in ((visitor, (None, {"width": 1280, "height": 720})), (phone, (None,))):
        one.page.goto(f"{one.server}/architecture?text={quote_plus(LONG)}")
        line = one.page.locator(".stage .line")
        line.wait_for()
        for size in sizes:
            if size:
                one.page.set_viewport_size(size)
            assert line.evaluate(cuts) == ["none", "visible"]
            assert line.evaluate("(each) => each.scrollWidth <= each.clientWidth")
            assert line.evaluate(lines) > 3, "it has some"


def test_the_picture_follows_the_theme(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=1").page
    ink = lambda: page.locator("g.token text").first.get_attribute("fill")
    light = ink()
    for scheme, is_light in (("dark", False), ("light", True)):
        page.emulate_media(color_scheme=scheme)
        for _ in range(100):
            if (ink() == light) == is_light:
                break
            page.wait_for_timeout(100)
        assert (ink() == light) == is_light, scheme


def test_enter_goes_in_after_a_press_on_a_step_and_does_not_press_it_again(
    visitor: Visitor,
) -> None:
    page = arrive(visitor, "&flow_beam=0").page
    page.get_by_role("button", name="Next layer").click()
    page.wait_for_url("**flow_beam=1**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("Enter")
    expect(page.locator(HERE)).to_have_text("Layer 1")


PART = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one?.getAttribute("data-at") || one?.localName;
}"""


def test_the_focus_stays_on_the_head_that_was_pressed_and_x_puts_it_back(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=1").page
    page.locator(".flow-head[data-at^='head 1.'][data-at$='.7']").click()
    page.wait_for_url("**off=1.7*")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert page.evaluate(PART).endswith(".7")
    page.keyboard.press("x")
    page.wait_for_url(lambda url: "off=" not in url)


def test_enter_goes_on_in_from_a_layer_that_was_opened_by_a_press(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=1").page
    column = page.locator(".flow-ground").nth(1).bounding_box()
    page.mouse.click(column["x"] + column["width"] - 8, column["y"] + column["height"] - 4)
    expect(page.locator(HERE)).to_have_text("Layer 1")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("Enter")
    expect(page.locator(HERE)).to_have_text(re.compile("^Head "))


def test_enter_goes_in_after_the_light_was_pressed(visitor: Visitor) -> None:
    page = arrive(visitor, "").page
    page.locator(".stage .light").click()
    page.wait_for_url("**flow_beam=0**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("Enter")
    expect(page.locator(HERE)).to_have_text(re.compile("^Layer "))


def test_the_words_to_choose_from_move_nothing_when_they_come(visitor: Visitor) -> None:
    page, held = visitor.page, []
    page.route("**/flow_beam.each_word*", lambda route: held.append(route))
    page.goto(f"{visitor.server}/architecture?text={quote_plus('Two dogs ran past the old barn.')}")
    field = page.locator(".stage .guess")
    field.wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_timeout(1000)
    assert held and page.locator(".stage .choices button").count() == 0
    before = field.bounding_box()
    field.fill("barn")
    held.pop().continue_()
    page.locator(".stage .choices button").first.wait_for()
    assert field.bounding_box() == before and field.input_value() == "barn"


def test_the_way_out_leads_to_the_likeliest_word_and_the_light_lies_on_what_is_named(
    visitor: Visitor,
) -> None:
    page = arrive(visitor, "&flow_beam=end").page
    box = lambda at: page.locator(at).first.bounding_box()
    way, bar = box("path.flow-exit"), box(".flow-lane .flow-length")
    assert bar["y"] - 2 <= way["y"] <= bar["y"] + bar["height"]
    # It ends at the layer's first line on one side, at the row of the word in the tag on the other.
    figure = architecture.flow(Run("encoder", TEXT), beam="end").figures[0]
    word = figure.stops[figure.cause[0]].brings.partition(": ")[2]
    lit = page.locator("path.flow-lit")
    expect(lit).to_have_count(1)
    named = page.locator(".panel g.token", has_text=word).bounding_box()
    middle, ends = named["y"] + named["height"] / 2, lit.bounding_box()
    sides = (ends["y"], ends["y"] + ends["height"])
    assert min(abs(side - middle) for side in sides) < named["height"]


def test_a_colour_of_the_picture_is_that_of_a_word_of_the_text(visitor: Visitor) -> None:
    """In the headline and in the lanes too: the answer has one only where it is such a word."""
    page = arrive(visitor, "&flow_beam=end").page
    fill = lambda at: at.evaluate("(each) => getComputedStyle(each).fill")
    name = lambda at: at.text_content().strip()
    rows = {name(each): fill(each) for each in page.locator(".panel g.token text").all()}
    lanes = page.locator(".flow-lane")
    for each in [lane.locator("text").first for lane in lanes.all()]:
        assert rows.get(name(each), rows["it"]) == fill(each)
    assert lanes.count() > 1
    for each in page.locator(".finding .first .notranslate").all():
        colour = each.evaluate("(each) => getComputedStyle(each).color")
        assert rows.get(name(each)[1:-1], rows["it"]) == colour


def test_a_press_beside_the_marks_leaves_no_frame_round_the_page(visitor: Visitor) -> None:
    page = arrive(visitor, "&flow_beam=1").page
    box = page.locator(".flow-ground").first.bounding_box()
    page.mouse.click(box["x"] + 8, box["y"] - 60)
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**flow_beam=2**")
    ring = "(each) => getComputedStyle(each).outlineStyle"
    assert page.locator("[data-testid=stMain]").evaluate(ring) == "none"


def test_a_picture_stays_as_clear_while_the_page_makes_the_next_one(visitor: Visitor) -> None:
    """Streamlit makes what is waited for pale: so marked, the whole machine is not."""
    page = arrive(visitor, "&flow_beam=end").page
    clear = """(panel) => {
      const held = panel.getRootNode().host?.closest(".stElementContainer");
      held.style.opacity = "0.33";
      const opacity = () => getComputedStyle(held).opacity;
      const before = opacity();
      held.setAttribute("data-stale", "true");
      return [before, opacity()];
    }"""
    assert page.locator(".panel[data-token]").evaluate(clear) == ["0.33", "1"]


def test_of_two_heads_side_by_side_that_are_out_each_is_put_back_by_its_dot(
    visitor: Visitor,
) -> None:
    page = arrive(visitor, "&edits=ZeroHead:1:4-5:self&flow_beam=end").page
    dot = page.locator(".flow-head[data-at^='head 1.'][data-at$='.4']")
    expect(dot).to_have_attribute("aria-label", re.compile("out, press to put it back"))
    dot.click()
    expect(dot).to_have_attribute("aria-label", re.compile("press to take it out"))
    other = page.locator(".flow-head[data-at^='head 1.'][data-at$='.5']")
    expect(other).to_have_attribute("aria-label", re.compile("out, press to put it back"))
