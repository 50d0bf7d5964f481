"""The picture of the whole machine in a real browser, with the keyboard alone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, quote_plus, urlsplit

import driver
import pytest
from driver import MARKS, Visitor
from playwright.sync_api import Locator, Page, expect

from explorer.figures.formatting import ordinal
from explorer.panels import architecture
from models.contract.edits import HideWord, from_line
from models.runtime.run import Run

pytestmark = MARKS
TEXT = "Ram pushed Hari"
HERE = ".flow-bar [aria-current=step]"


def arrive(visitor: Visitor, query: str = "") -> Visitor:
    at = "" if "flow_beam" in query or "flow_level" in query else "&flow_beam=end"
    visitor.page.goto(f"{visitor.server}/architecture?text=Ram+pushed+Hari{query}{at}")
    visitor.page.wait_for_selector(".panel[data-token] .flow-bar")
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")
    visitor.page.wait_for_load_state("networkidle")  # what each word does has come
    return visitor


def press(visitor: Visitor, key: str, level: str) -> None:
    """Press a key, and wait until a level of this name is open."""
    page = visitor.page
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press(key)
    expect(page.locator(HERE)).to_have_text(level)
    page.wait_for_selector("[data-test-script-state=notRunning]")


def asked(visitor: Visitor) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visitor.page.url).query)


def test_keys_go_in_and_out_and_ablate_and_restore_a_head(visitor: Visitor) -> None:
    figure = architecture.flow(Run("encoder", TEXT), 3).figures[0]
    model, layer, head, weight = (each.label for each in figure.stops[-1].levels)
    page = arrive(visitor, "&token=3").page
    expect(page.locator(HERE)).to_have_text(model)
    words = page.locator(".flow-output").text_content()
    assert figure.lanes[0].label in words and figure.lanes[0].text in words
    press(visitor, "Enter", layer)
    page.wait_for_selector(".panel svg:has-text('Attention, add, norm')")  # below the picture
    press(visitor, "Enter", head)
    expect(page.locator(".panel [data-cells]")).to_have_count(1)
    press(visitor, "Enter", weight)
    page.wait_for_selector(".panel svg:has-text('Where “')")
    assert asked(visitor)["flow_level"] == ["Weight"]
    for level in (head, layer, model):
        press(visitor, "Escape", level)
    assert "flow_level" not in asked(visitor)
    page.keyboard.press("End")
    page.wait_for_url("**flow_beam=end**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("x")
    switch = figure.stops[-1].switch  # of the head that the way names
    off, on = switch.label, f"Put head {switch.select['head']} back"
    page.get_by_role("button", name=on).wait_for()
    page.wait_for_selector(".panel .finding:has-text('Without head')")
    expect(page.locator(".flow-head[aria-pressed=true]")).to_have_count(1)
    edit = from_line(switch.select["edits"])[0]
    assert asked(visitor)["off"] == [f"{edit.layer}.{edit.head}"]
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.keyboard.press("x")
    page.get_by_role("button", name=off).wait_for()
    expect(page.locator(".panel .finding")).not_to_contain_text("Without head")
    assert asked(visitor).keys().isdisjoint({"off", "edits"})
    expect(page.locator(".flow-output")).to_have_text(words)


def test_arrows_go_to_another_layer_and_in_the_picture_to_another_word(visitor: Visitor) -> None:
    page = arrive(visitor, "&token=2&flow_beam=1").page
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**flow_beam=2**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.locator(".flow-bar .play").focus()
    page.keyboard.press("ArrowUp")
    page.wait_for_url("**token=1**")
    expect(page.locator(".flow-bar .play")).to_be_focused()


def test_a_field_keeps_its_keys(visitor: Visitor) -> None:
    page = arrive(visitor, "&token=2").page
    field = page.get_by_role("combobox", name="Word that attends (query)")
    field.focus()
    field.press("x")
    field.press("Escape")
    assert "edits" not in asked(visitor)
    assert page.locator(HERE).inner_text() == "Model"


def test_a_head_is_opened_by_a_press_in_its_layer(visitor: Visitor) -> None:
    page = arrive(visitor, "&token=3&layer=1&flow_level=Layer").page
    page.get_by_role("button", name="Layer 1, head 5:").first.click()
    expect(page.locator(HERE)).to_have_text("Head 5")
    page.get_by_role("button", name="Open in Heads").click()
    page.wait_for_selector(".st-key-finding p:has-text('Layer 1, head 5')")


OUT = re.compile(r"/panel/flow_beam\.")  # what each word does, which comes after the picture
CALM = 5  # looks at a picture that stays as it is, 100 ms apart


def picture(page: Page) -> str:
    return page.locator(".panel .figure").first.evaluate(
        "one => one.querySelector('svg').outerHTML"
    )


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("beam", "keys"), [("1", ("Home", "ArrowRight")), ("end", (" ",))])
@pytest.mark.parametrize("query", ["&token=3", "&model=decoder", "&token=3&off=1.5"])
def test_one_state_has_one_picture_however_it_was_reached(
    visitor: Visitor, query: str, beam: str, keys: tuple[str, ...]
) -> None:
    """By its address, by keys, by Play to its end."""
    with visitor.page.expect_response(OUT):
        page = arrive(visitor, f"{query}&flow_beam={beam}").page
    wanted, n_looks = picture(page), 0
    while n_looks < CALM:  # until what each word does is drawn
        page.wait_for_timeout(100)
        before, wanted = wanted, picture(page)
        n_looks = n_looks + 1 if wanted == before else 0
    arrive(visitor, f"{query}&flow_beam=0")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_url(f"**flow_beam={beam}**", timeout=60_000)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    for _ in range(100):
        if picture(page) == wanted:
            break
        page.wait_for_timeout(100)
    assert picture(page) == wanted


def test_the_answer_is_nowhere_until_the_light_is_on(visitor: Visitor) -> None:
    figure = architecture.flow(Run("decoder", TEXT)).figures[0]
    answer = figure.lanes[0]
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?text=Ram+pushed+Hari&model=decoder")
    page.wait_for_selector(".stage .light")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_load_state("networkidle")
    said = page.locator(".panel").first.inner_text()
    assert answer.text not in said and "flow_beam" not in asked(visitor)
    page.locator(".stage .guess").fill(answer.label)
    page.keyboard.press("Enter")
    page.wait_for_url("**flow_beam=end**", timeout=60_000)
    expect(page.locator(".panel .finding")).to_contain_text(answer.label)
    expect(page.locator(".flow-output")).to_contain_text("yours")


def test_the_pointer_over_a_head_or_an_ffn_says_what_it_does(visitor: Visitor) -> None:
    figure = architecture.flow(Run("encoder", TEXT), 3).figures[0]
    layer = figure.layers[1]
    page = arrive(visitor, "&token=3&flow_beam=1").page
    page.get_by_role("button", name="Layer 1, head 5:").hover()
    tip = page.locator(".panel .tip")
    expect(tip).to_have_text(re.compile(r"^Layer 1, head 5: -?[\d.]+% of what attention writes"))
    name = layer.attentions[0].names[5]
    assert not name or name[0] in tip.inner_text()
    # Its curves alone are drawn: one from each other row of a weight that can be seen.
    weights = layer.attentions[0].weights[5]
    drawn = page.locator(".flow-layer >> nth=1 >> .flow-curve")
    seen = [row for row, weight in enumerate(weights) if row != 3 and weight >= 0.02]
    expect(drawn).to_have_count(len(seen))
    page.locator(".flow-ffn >> nth=1").hover()
    expect(tip).to_have_text(re.compile("^FFN of layer 1"))
    for name, _ in figure.stops[1].units:
        assert f"U{name[1:]}" in tip.inner_text()
    box = tip.bounding_box()
    assert box["width"] <= 321 and box["x"] >= 0 and box["x"] + box["width"] <= 1280


NARROW = {"width": driver.PHONE["viewport"]["width"], "height": 900}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("window", ["wide", "narrow", "phone"])
@pytest.mark.parametrize("asked_of", ["&token=3", "&model=decoder", "&token=2"])
def test_ablating_a_head_moves_nothing(
    visitor: Visitor, phone: Visitor, asked_of: str, window: str
) -> None:
    """On a phone, too, where the note on the edit has a hidden copy in its tooltip, whether or not
    a head is in focus."""
    if window == "narrow":
        visitor.page.set_viewport_size(NARROW)
    page = arrive(phone if window == "phone" else visitor, asked_of).page

    def tops() -> dict[str, float]:
        places = ".panel h2", ".panel .finding", ".flow-bar", ".flow-layer", ".flow-output"
        return {place: top(page.locator(place).first) for place in places}

    def top(seen: Locator) -> float:
        """Its top; it may be drawn anew before it is measured, once each word was taken out."""
        expect(seen).to_be_visible()
        while (box := seen.bounding_box()) is None:
            expect(seen).to_be_visible()
        return box["y"]

    finding, is_out = page.locator(".panel .finding"), re.compile("^Without head")
    before = tops()
    page.keyboard.press("x")
    expect(finding).to_have_text(is_out)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    note = page.locator(".st-key-edited .stMarkdownBadge:visible")
    expect(note).to_be_visible()
    assert tops() == before
    page.get_by_role("button", name="Undo", exact=True).click()
    expect(note).not_to_be_visible()
    expect(finding).not_to_have_text(is_out)
    assert tops() == before


def test_a_written_word_flies_from_what_comes_out_to_its_row(visitor: Visitor) -> None:
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    for each, flights in ((visitor, 0), (lively, 1)):
        page = each.page
        page.goto(f"{each.server}/_stcore/health")
        page.goto(
            f"{each.server}/architecture?text=My+sister+thanked+the&model=decoder&flow_beam=end"
        )
        page.wait_for_selector(".panel[data-token] .flow-bar")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        page.evaluate(
            """() => {
              const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
              const panels = roots.map((one) => one?.querySelector('.panel'));
              const root = panels.find(Boolean);
              const svg = root.querySelector('.flow-output').getBoundingClientRect();
              window.seen = [];
              new MutationObserver((all) => {
                for (const { addedNodes } of all)
                  for (const node of addedNodes)
                    if (node.classList?.contains('flying')) {
                      const [flight] = node.getAnimations();
                      flight.pause();
                      flight.currentTime = 0;
                      const { left } = node.getBoundingClientRect();
                      const near = Math.abs(left - svg.left) < 8;
                      seen.push([node.textContent, near, flight.effect.getTiming().duration]);
                      flight.play();
                    }
              }).observe(root, { childList: true });
            }"""
        )
        word = page.locator(".flow-bar .lead").last.inner_text()[len("Write “") : -1]
        page.locator(".flow-bar .lead").last.click()
        expect(page.locator(".panel g.token[aria-pressed=true]")).to_have_attribute(
            "aria-label", word
        )
        page.wait_for_selector("[data-test-script-state=notRunning]")
        assert page.evaluate("seen") == [[word, True, 250]] * flights
        expect(page.locator(".panel .flying")).to_have_count(0)
    lively.leave()


def test_a_word_that_comes_out_becomes_a_row(visitor: Visitor) -> None:
    text = "My sister thanked the"
    link = architecture.flow(Run("decoder", text)).figures[0].leads[-1]
    longer = link.select["text"]
    page = visitor.page
    page.goto(
        f"{visitor.server}/architecture?text=My+sister+thanked+the&model=decoder&flow_beam=end"
    )
    rows = page.locator(".panel g.token")
    n = len(Run("decoder", text).recording().streams[0].tokens)
    expect(rows).to_have_count(n)
    page.get_by_role("button", name=link.label).click()
    expect(rows).to_have_count(n + 1)
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert asked(visitor)["text"] == [longer] and asked(visitor)["flow_beam"] == ["end"]
    chosen = page.locator(".panel g.token[aria-pressed=true]")
    assert chosen.get_attribute("aria-label") == longer.split()[-1]


def test_an_opened_weight_has_one_player(visitor: Visitor) -> None:
    """At the level of a weight Play, and Space, walk the steps of its calculation."""
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?flow_level=Weight&layer=1&head=5")
    page.wait_for_selector(".panel svg:has-text('Where “')")
    play = page.get_by_role("button", name="Play")
    expect(play).to_have_count(1)
    play.click()
    page.wait_for_selector(".panel svg:has-text('Step 3 of 7')")
    page.get_by_role("button", name="Pause").click()
    expect(play).to_be_visible()
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press(" ")
    page.wait_for_selector(".panel svg:has-text('Step 4 of 7')")


def test_what_is_taken_out_slides_its_bars_then_sorts_them(visitor: Visitor) -> None:
    """Bars come to their lengths in the old order, beside ghosts of what stood; then the rows
    change places. The line is dark from the press on, and nothing of the picture is made anew."""
    run, token = Run("encoder", "The waiter brought the soup but it was cold."), 7
    before = [each.label for each in architecture.flow(run, token, beam="end").figures[0].lanes]
    edited = run.under((HideWord(5),))
    after = [each.label for each in architecture.flow(edited, token, beam="end").figures[0].lanes]
    assert before != after
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = lively.page
    page.goto(f"{lively.server}/architecture?text={quote_plus(run.text)}&token=7&flow_beam=end")
    page.wait_for_selector(".panel[data-token] .flow-bar")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_load_state("networkidle")
    page.evaluate(CLOCK)
    page.evaluate(FILM)
    page.get_by_role("button", name="soup, press to take it out").click()
    page.wait_for_selector(".panel .finding:has-text('Without')")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_function("words => film.at(-1).words.join() === words.join()", arg=after)
    film = page.evaluate("film")
    assert film[0]["words"] == before and page.evaluate("root.isConnected")
    moved = [at for at, each in enumerate(film) if each["words"] != before]
    assert all(each["ghosts"] for each in film[moved[0] :])
    slides = {each["bars"] for each in film[: moved[0]]}
    assert len(slides) > 2 and len({each["bars"] for each in film[moved[0] :]}) == 1
    darks = [each["dark"] for each in film]
    assert darks == sorted(darks) and darks[0] == 0 < darks[-1]
    assert {each["dark"] for each in film[moved[0] :]} == {darks[-1]}, "before any bar moves"
    lively.leave()


# Each frame is 16 ms later than the one before, however long the machine takes for it.
CLOCK = """() => {
  const frame = requestAnimationFrame.bind(window);
  let [time, last] = [performance.now(), 0];
  performance.now = () => time;
  window.requestAnimationFrame = (act) =>
    frame((now) => {
      if (now !== last) time += 16;
      last = now;
      act(time);
    });
}"""

# What the lanes of a flow show in each frame: their words from top to foot, the lengths of their
# bars, how many ghosts there are, and how dark the line of a word is.
FILM = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  window.root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.film = [];
  const look = () => {
    const rows = [...root.querySelectorAll('.flow-lane')].map((lane) => ({
      word: lane.querySelector('text').textContent,
      top: lane.getBBox().y,
      bar: lane.querySelector('.flow-length').getAttribute('width'),
      ghost: lane.querySelectorAll('[stroke-dasharray]').length,
    }));
    const dark = root.querySelector('.flow-dark')?.getAttribute('stroke-opacity') ?? 0;
    const bars = [...rows].sort((a, b) => (a.word < b.word ? -1 : 1)).map((each) => each.bar);
    rows.sort((a, b) => a.top - b.top);
    film.push({
      words: rows.map((each) => each.word),
      bars: bars.join(),
      ghosts: rows.reduce((sum, each) => sum + each.ghost, 0),
      dark: Number(dark),
    });
    requestAnimationFrame(look);
  };
  look();
}"""


def test_a_level_opens_and_closes_by_one_motion(visitor: Visitor) -> None:
    """The column grows from the moment of the press, while the page makes what stands below; that
    grows out of it, and back into it. A press ends it, and what it ends in is what keys, the
    address and two fingers bring, too."""
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "&token=3&flow_beam=1").page
    page.evaluate(CLOCK)
    page.evaluate(GROWTH)
    press(lively, "Enter", "Layer 1")
    page.wait_for_function("below.length")
    film = page.evaluate("film")
    widths = [wide for wide, _ in film]
    assert widths == sorted(widths) and len(widths) > 3
    assert film[1][1] == film[0][1], "it opens before its page is there"
    assert page.evaluate("below") == [[400, "ease-in-out"]] * 2
    press(lively, "Escape", "Model")
    page.wait_for_function("below.length === 4")
    page.wait_for_function("wide => film.at(-1)[0] === wide", arg=widths[0])
    expect(page.locator(".panel .figure")).to_have_count(1)  # what went back in is gone
    settled = picture(page)
    page.locator(".flow-layer").nth(1).hover(force=True)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    expect(page.locator(HERE)).to_have_text("Layer 1")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.wait_for_timeout(500)
    page.mouse.wheel(0, 60)
    expect(page.locator(HERE)).to_have_text("Model")
    page.keyboard.up("Control")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    page.mouse.move(0, 0)
    page.wait_for_function(
        "one => root.querySelector('.figure svg').outerHTML === one", arg=settled
    )
    lively.leave()


def test_what_is_opened_is_told_at_once_and_nothing_passes_over_the_picture(
    visitor: Visitor,
) -> None:
    """The sentence of a layer is there before what stands below, which comes out of the foot of the
    picture and goes back there."""
    stop = architecture.flow(Run("encoder", TEXT), 3).figures[0].stops[1]
    lively = Visitor(visitor.context.browser, visitor.server, reduced_motion="no-preference")
    page = arrive(lively, "&token=3&flow_beam=end").page
    page.evaluate(OVER)
    page.get_by_role("button", name="Open layer 1").click()
    expect(page.locator(HERE)).to_have_text("Layer 1")
    page.wait_for_function("() => moved > 5")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    told = [n for said, n, _ in page.evaluate("film") if said.startswith(stop.finding)]
    assert told[0] == 1 and told[-1] > 1
    press(lively, "Escape", "Model")
    expect(page.locator(".panel .figure")).to_have_count(1)
    gaps = [gap for *_, gap in page.evaluate("film") if gap is not None]
    assert len(gaps) > 5 and min(gaps) >= 0
    lively.leave()


# In each frame the sentence, how many figures there are, and how far below the first the others
# stand.
OVER = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  const root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.film = [];
  window.moved = 0;
  const look = () => {
    const [first, ...others] = [...root.querySelectorAll('.figure')].map((one) =>
      one.getBoundingClientRect());
    const gaps = others.map((one) => one.top - first.bottom);
    if (gaps.length) moved += 1;
    const gap = gaps.length ? Math.round(Math.min(...gaps)) : null;
    film.push([root.querySelector('.finding').textContent, others.length + 1, gap]);
    requestAnimationFrame(look);
  };
  look();
}"""


# In each frame how wide the column of layer 1 is, and how many figures there are; and how long what
# stands below the whole machine moves, and how.
GROWTH = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  window.root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.film = [];
  window.below = [];
  const animate = Element.prototype.animate;
  Element.prototype.animate = function (frames, timing) {
    if (this.matches('.figure')) below.push([timing.duration, timing.easing]);
    return animate.call(this, frames, timing);
  };
  const look = () => {
    const box = root.querySelectorAll('.flow-layer')[1]?.dataset.box;
    const wide = Number(box?.split(' ')[2]);
    const n = root.querySelectorAll('.figure').length;
    if (wide && film.at(-1)?.[0] !== wide) film.push([wide, n]);
    requestAnimationFrame(look);
  };
  look();
}"""


def test_a_reader_without_the_picture_has_its_words(visitor: Visitor) -> None:
    """Lanes are a table of words before and after; the handle is a slider that says what happens;
    the sentence of a stop is said once, where something is told; one line names the keys."""
    text = "The waiter brought the soup but it was cold."
    figure = architecture.flow(Run("encoder", text), 7, beam="1").figures[0]
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?text={quote_plus(text)}&token=7&flow_beam=1")
    page.wait_for_selector(".panel[data-token] .flow-bar")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    table = page.locator(".panel table")
    rows = lambda: [row.split("\t") for row in table.locator("tbody tr").all_inner_texts()]
    places = [(each.places[1], each.places[2]) for each in figure.lanes]
    wanted = [
        [each.label, ordinal(before), ordinal(after)]
        for each, (before, after) in zip(figure.lanes, places)
    ]
    assert rows() == wanted
    slider = page.get_by_role("slider", name="Layer under the light")
    first = figure.lanes[0]
    before, after = (ordinal(each) for each in places[0])
    said = slider.get_attribute("aria-valuetext")
    assert said.startswith("Layer 1 of 4: ")
    assert said.endswith(f"{first.label} from {before} to {after}")
    page.evaluate(SAID)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("said.length === 1")
    page.keyboard.press("End")
    page.wait_for_url("**flow_beam=end**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    said = page.evaluate("said")
    assert said[0] == figure.stops[2].finding and len(said) == 2
    assert said[1].startswith(figure.stops[4].finding), "and what is measured behind it"
    assert rows()[0] == [first.label, "–", first.text]
    expect(page.locator(".panel .keys")).to_contain_text("Space plays")


# The sentences that a screen reader is given.
SAID = """() => {
  const roots = [...document.querySelectorAll('*')].map((e) => e.shadowRoot);
  const root = roots.map((one) => one?.querySelector('.panel')).find((one) => one?.dataset.token);
  window.said = [];
  new MutationObserver((all) => {
    const line = root.querySelector('.finding');
    const isNew = all.some(({ target }) => line.contains(target));
    if (isNew && line.ariaLive !== 'off') said.push(line.textContent);
  }).observe(root, { childList: true, subtree: true, characterData: true });
}"""
