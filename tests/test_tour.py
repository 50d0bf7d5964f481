"""The tour: each step's number by another way, every step on every kind of model, and the presenter
in a real browser."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import driver
import numpy as np
import pytest
from conftest import HOSTILE, on_page, typed
from streamlit.testing.v1 import AppTest

from explorer.analysis import tour, tour_heads, tour_layers, tour_since, tour_words
from explorer.analysis.plates import Shown
from explorer.analysis.tour_seen import Seen, held, word_held
from explorer.components import wire
from explorer.memory import passes
from explorer.memory.passes import Shown as Asked
from explorer.sentences import tour as story
from explorer.views.tour.seen import seen_of
from models.edits import (
    OtherNorm,
    OtherPositions,
    ShuffleTokens,
    SideBySide,
    WithoutPositions,
)
from models.examples import DEFAULT_TEXT

MAIN = str(Path(__file__).resolve().parent.parent / "explorer/main.py")
MODELS = ("encoder", "decoder", "translator")
# What the notes tell of, by the names that tour.toml gives.
SYSTEMS = {
    "embedding and √d",
    "sinusoids, fast and slow",
    "order",
    "Q, K, V",
    "scale",
    "softmax",
    "naive, symmetric, asymmetric",
    "mask",
    "heads, concat, W_O",
    "local and far heads",
    "residual, Jacobian",
    "LayerNorm",
    "FFN",
    "encoder, decoder, encoder-decoder",
    "offset by one",
    "product of conditionals",
    "generation loops",
    "reading each block in word space",
    "two rotations",
    "soft lookup",
    "messages on a graph",
    "words moved by context",
    "long range",
    "recurrent networks and their gradient",
    "two stages",
    "post-LN and pre-LN",
}
ROUNDED = 0.005  # a number with two decimals


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    return {model: seen_of(Asked(model, DEFAULT_TEXT)) for model in MODELS}


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(MAIN, default_timeout=120)
    for name, value in query.items():
        app.query_params[name] = value
    return app.switch_page("../pages/tour.py").run()


def header(app: AppTest) -> dict:
    (drawn,) = [one for one in on_page(app) if one.proto.component_name == "headlight.tour"]
    return wire.decode(drawn.proto.bytes)[0]


def text_in(value: object) -> list[str]:
    """Every text of plain data."""
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value
    return (
        [each for one in inside for each in text_in(one)]
        if isinstance(inside, (list, tuple)) or isinstance(value, dict)
        else []
    )


# ---- the story ---------------------------------------------------------------


def test_every_system_of_the_notes_is_named_by_a_step_and_each_way_is_ten_minutes() -> None:
    assert {name for step in story.STEPS for name in step.systems} == SYSTEMS
    assert {step.id for step in story.STEPS} == set(tour.MEASURES)
    for kind in ("encoder", "decoder", "encoder-decoder"):
        way = story.way(kind)
        assert 12 <= len(way) <= 17, "eleven minutes at forty seconds a step"
        assert all(len(step.title) <= 60 for step in way)


@pytest.mark.parametrize("model", MODELS)
def test_every_step_shows_its_number_on_its_picture(model: str) -> None:
    app = opened(model=model)
    steps = story.way(passes.record(model, DEFAULT_TEXT).model.kind)
    for step in steps:
        app.session_state["tour"] = step.id
        shown = header(app.run())
        assert not app.exception and shown["title"] == step.title
        number = shown["says"][1]
        drawn = text_in(shown["panels"])
        assert number and any(number in text.split(" ") or number == text for text in drawn), (
            step.id
        )
        assert sum(map(len, shown["says"])) <= 230, f"{step.id}: read in a breath"


# One for each step in turn.
AWKWARD = ("empty", "one word", "emoji", "right to left", "script", "repeated", "10,000 characters")


@pytest.mark.parametrize("model", MODELS)
def test_every_step_opens_with_awkward_texts(model: str) -> None:
    app = opened(model=model)
    way = story.way(passes.record(model, "").model.kind)
    for step, name in zip(way, cycle(AWKWARD)):
        app.session_state["tour"] = step.id
        typed(app, HOSTILE[name])
        assert not app.exception, (step.id, name)
        says = header(app)["says"]
        assert "".join(says), "a step that cannot be shown says why"


def test_a_step_has_an_address_and_leads_to_its_page() -> None:
    lost = opened(tour="no such step", model="decoder")
    assert lost.session_state["tour"] == "before" and lost.toast
    app = opened(tour="match")
    assert header(app)["title"] == next(s.title for s in story.STEPS if s.id == "match")
    app.button(key="open on its page").click().run()
    assert app.session_state["look_at"] == "Three" and app.session_state["layer"] == "1"


# ---- the numbers, by another way ---------------------------------------------


def test_weights_and_distances_are_the_recordings_own(seen: dict[str, Seen]) -> None:
    for each in seen.values():
        one = held(each)
        scores = one.attention.scores[one.layer, one.head, one.query].astype(np.float64)
        e = np.exp(scores - scores.max()) * one.attention.allowed[one.query]
        for step in (tour_heads.query_key_value, tour_heads.lookup):
            assert abs(step(each).value - (e / e.sum())[one.key]) < 1e-5
    one = held(seen["encoder"])
    rows = [at for at, token in enumerate(one.rows.tokens) if token[0].isalpha() or token == "'t"]
    far = 0.0
    for pattern in one.attention.pattern[one.layer]:
        mass = [(pattern[i, j], abs(i - j)) for i in rows for j in rows]
        far = max(far, sum(w * d for w, d in mass) / sum(w for w, _ in mass))
    assert abs(tour_heads.heads(seen["encoder"]).value - far) < 1e-4


def test_a_masked_share_an_asymmetry_and_a_variance(seen: dict[str, Seen]) -> None:
    own = seen["decoder"].recording.attention[0]
    words = [
        at
        for at, token in enumerate(seen["decoder"].recording.streams[0].tokens)
        if token[0].isalpha() or token == "'t"
    ]
    z = np.exp(own.scores.astype(np.float64))
    free = z / z.sum(-1, keepdims=True)
    ahead = np.mean([free[..., i, i + 1 :].sum(-1).mean() for i in words])
    assert abs(tour_heads.kinds(seen["decoder"]).value - ahead) < 1e-6
    one = held(seen["encoder"])
    s = one.attention.scores[one.layer, one.head].astype(np.float64)
    skew, even = (s - s.T) / 2, (s + s.T) / 2
    size = np.sqrt((skew**2).sum() + (even**2).sum())
    assert abs(tour_heads.match(seen["encoder"]).value - np.sqrt((skew**2).sum()) / size) < 1e-9
    found = []
    for q, k in zip(own.q.astype(np.float64), own.k.astype(np.float64)):
        q, k = (each[0] / np.sqrt((each[0] ** 2).mean()) for each in (q, k))
        found.append(np.var([a @ b for a in q for b in k]))
    assert abs(tour_heads.scale(seen["decoder"]).value / np.mean(found) - 1) < 1e-6


def test_what_changed_since_moves_the_words_by_what_its_edits_do(seen: dict[str, Seen]) -> None:
    shown = tour_since.since(seen["decoder"])
    plain = seen["decoder"].recording.streams[0]
    edits = (OtherNorm("rms"), SideBySide(), OtherPositions("rotary"))
    moved = []
    for edit in edits:
        last = passes.record("decoder", DEFAULT_TEXT, (edit,)).streams[0].resid[-1]
        far = np.linalg.norm(last - plain.resid[-1], axis=1)[~plain.special]
        moved.append((far / np.linalg.norm(plain.resid[-1], axis=1)[~plain.special]).mean())
    assert shown.value == pytest.approx(max(moved), abs=1e-4)  # of numbers in 32 bits
    assert len(shown.panels[0].rows) == len(edits)


def test_words_waves_and_order(seen: dict[str, Seen]) -> None:
    each = seen["encoder"]
    stream = each.recording.streams[0]
    vector = stream.at("embed+pos")[9].astype(np.float64) - stream.at("pos.wrote")[9]
    assert abs(tour_words.embed(each).value - np.linalg.norm(vector)) < 1e-4
    turns = tour_words.waves(each).value
    assert abs(np.exp(2j * np.pi * turns) - np.exp(1j * (len(stream.tokens) - 1))) < 1e-9
    free = passes.record("encoder", DEFAULT_TEXT, (WithoutPositions(),))
    mixed = passes.record("encoder", DEFAULT_TEXT, (ShuffleTokens(1), WithoutPositions()))
    order = ShuffleTokens(1).order(stream.special)
    a, b = free.streams[0].resid[-1][order], mixed.streams[0].resid[-1]
    assert np.abs(a - b).max() < 1e-3, "the words' vectors move along with them"
    with_ = passes.record("encoder", DEFAULT_TEXT, (ShuffleTokens(1),)).streams[0].resid[-1]
    plain = stream.resid[-1][order]
    moved = np.linalg.norm(with_ - plain, axis=1) / np.linalg.norm(plain, axis=1)
    assert np.abs(moved - tour_words.order(each).value).min() < 1e-4


def test_what_a_recurrent_network_forgets_is_its_gradient(seen: dict[str, Seen]) -> None:
    """By finite differences of the last state's sum along the direction that the gradient has."""
    each = seen["encoder"]
    stream, draw, width = each.recording.streams[0], each.evidence.draw, tour_words.WIDTH
    x = stream.at(stream.sites[0])[1:13].astype(np.float64)
    x = x / x.std(axis=1, keepdims=True)
    w = draw(width, width) / np.sqrt(width)
    inward = x @ (draw(width, x.shape[1]) / np.sqrt(x.shape[1])).T

    def last(first: np.ndarray) -> float:
        h = first
        for one in inward[1:]:
            h = np.tanh(w @ h + one)
        return float(h.sum() / np.sqrt(width))

    h, step = np.tanh(inward[0]), 1e-6
    slopes = [(last(h + step * e) - last(h - step * e)) / (2 * step) for e in np.eye(width)]
    assert abs(tour_words.before(each).value / np.linalg.norm(slopes) - 1) < 1e-5


def test_the_inside_of_an_ffn_sums_to_what_it_wrote(seen: dict[str, Seen]) -> None:
    for each in seen.values():
        stream = each.recording.streams[-1]
        token = word_held(each, stream)
        for layer in range(each.recording.model.n_layer):
            found = each.inside(stream.name, layer, token)
            wrote = stream.at(f"{layer}.ffn.wrote")[token]
            assert np.abs(found.writes.sum(axis=0) + found.bias - wrote).max() < 1e-4
            assert ((found.after > 0) == (found.before > 0)).all()
        shown = tour_layers.ffn(each)
        layer = int(shown.words["layer"])
        assert shown.value == (each.inside(stream.name, layer, token).after > 0).sum()
    with pytest.raises(ValueError, match="no layer 99"):
        seen["encoder"].inside("encoder", 99, 0)


def test_two_stages_a_stack_and_turns(seen: dict[str, Seen]) -> None:
    for each in seen.values():
        shown = tour_layers.stages(each)
        (bars,) = shown.panels
        others = [row for row in bars.rows if row.label != shown.words["word"]]
        assert all(row.values[1] < 1e-5 for row in others), "the FFN knows one token"
        assert shown.value == max(row.values[0] for row in others) > 0.01
        turned = tour_layers.sphere(each)
        (dials,) = turned.panels
        stream = each.recording.streams[-1]
        token = word_held(each, stream)
        best = max(dials.dials, key=lambda one: one.after[1])
        a, b = (stream.resid[at, token].astype(np.float64) for at in _around(stream, best.label))
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert abs(np.cos(np.radians(turned.value)) - cosine) < 1e-6
    found = passes.depth(seen["encoder"].recording, "encoder")
    assert tour_layers.deep(seen["encoder"]).value == found.norm[1, 0] / found.norm[1, -1] < 0.1


def _around(stream, label: str) -> tuple[int, int]:
    """The sites before and after the sub-layer of a dial."""
    layer, _, place = label.partition(" · ")
    name = f"{layer}.{ {'attention': 'attn', 'cross': 'cross', 'FFN': 'ffn'}[place] }"
    before = next(state for state, wrote, _ in stream.writes() if wrote == f"{name}.wrote")
    return stream.sites.index(before), stream.sites.index(f"{name}.normed")


def test_a_text_is_a_product_and_its_store_is_counted(seen: dict[str, Seen]) -> None:
    for model in ("decoder", "translator"):
        each = seen[model]
        stream = each.recording.streams[-1]
        lens = passes.lens(each.recording, stream.name)
        assert lens.final_id.shape == (len(stream.tokens),)
        total = 0.0
        for at, id in enumerate(stream.ids[1:]):
            p = np.exp(passes.logits(each.recording, stream.name, at).astype(np.float64))
            total += np.log(p[id] / p.sum())
        assert abs(tour.MEASURES["chain"](each).value - total) < 1e-6
        written = each.evidence.stepwise(1)
        assert len(written) == 1
        own = next(one for one in each.recording.attention if one.query == one.key == "decoder")
        assert tour.MEASURES["loops"](each).value == own.k.size + own.v.size
        said = tour.MEASURES["words"](each)
        assert abs(said.value - np.exp(lens.top_logprobs[-1, _place(said, stream), 0])) < 1e-6


def _place(shown: Shown, stream) -> int:
    return int(dict(shown.address)["token"])


def test_the_notes_own_sentence_is_measured(seen: dict[str, Seen]) -> None:
    shown = tour.MEASURES["pizza"](seen["encoder"])
    recording = passes.record("encoder", "I love to eat pizza.")
    tokens = list(recording.streams[0].tokens)
    at = [tokens.index(word) for word in ("I", "love", "to", "eat", "pizza")]
    assert abs(shown.value - np.mean(recording.attention[0].pattern[..., at, at])) < 1e-6
    measured, note = shown.panels
    assert (
        measured.rows == note.rows and sum(v is not None for row in note.values for v in row) == 6
    )


# ---- in a real browser -------------------------------------------------------


# What is wrong with what the presenter shows; "" where nothing is.
FITS = """() => {
  const inside = (what) => { for (const each of document.querySelectorAll("*")) {
    const found = each.shadowRoot?.querySelector(what); if (found) return found; } };
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth || page.scrollHeight > innerHeight + 1) return "it scrolls";
  const board = inside(".tour.presented") || inside(".presenter .board");
  if (!board) return "nothing is presented";
  const plate = board.querySelector(".plate");
  if (plate.scrollHeight > plate.clientHeight + 1 || plate.scrollWidth > plate.clientWidth + 1)
    return "the picture is cut";
  const boxes = [...board.querySelectorAll(".panel")];
  const panels = boxes.map((each) => each.getBoundingClientRect());
  const end = (side, best) => best(...panels.map((each) => each[side]));
  const high = end("bottom", Math.max) - end("top", Math.min);
  const share = (end("right", Math.max) - end("left", Math.min)) * high / innerWidth / innerHeight;
  if (!(share >= 0.4) || plate.clientHeight < innerHeight / 2)
    return `a picture of ${share} of the screen`;
  const words = document.createTreeWalker(board, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const text = words.currentNode.textContent.trim();
    const of = words.currentNode.parentElement;
    const { left, top, right, bottom, width } = of.getBoundingClientRect();
    if (!text || width < 3 || of.className === "told") continue;
    const size = parseFloat(getComputedStyle(of).fontSize);
    if (size < 28) return `${text} in type of ${size} px`;
    if (left < -1 || top < -1 || right > innerWidth + 1 || bottom > innerHeight + 1)
      return `${text} is out of sight`;
  }
  return "";
}"""
SMALL = {"width": 1280, "height": 720}
GO = """to => { history.pushState(history.state, "", to);
  dispatchEvent(new PopStateEvent("popstate", { state: history.state })); }"""
# Every page, and what stands on it when its picture is there.
PAGES = {
    "/anatomy": ".anatomy[data-token], .anatomy canvas",
    "/positions": ".js-plotly-plot",
    "/residual": ".residual[data-token]",
    "/embeddings": ".paths[data-token]",
    "/summaries": ".matrices[data-token]",
    "/lookup": ".lookup[data-token]",
    "/predictions": ".bars[data-token]",
    "/switches": ".bars[data-token]",
    "/training?model=induction": ".heads[data-token]",
    "/translation?model=translator": ".translation[data-token]",
    "/compare?model=translator": ".compare[data-token]",
    "/claims": ".claims[data-token]",
}
AT = """id => { for (const e of document.querySelectorAll("*")) {
  const at = e.shadowRoot?.querySelector(".tour .where");
  if (at) return at.textContent === id && !e.shadowRoot.querySelector(".waits"); } }"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(driver.CHROMIUM is None, reason="no chromium on this machine")
def test_the_tour_is_walked_presented_blanked_and_left(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.set_viewport_size(SMALL)
    page.goto(f"{visitor.server}/tour?tour=order")
    page.wait_for_selector(".tour[data-token]")
    visitor.until(AT, "4 / 16")
    page.keyboard.press("ArrowRight")
    visitor.until(AT, "5 / 16")
    page.wait_for_url("**/tour?tour=qkv")
    page.keyboard.press("p")
    page.wait_for_selector("html[data-headlight-presenter=on]", state="attached")
    for at in ("6 / 16", "7 / 16", "8 / 16"):
        page.keyboard.press("ArrowRight")
        visitor.until(AT, at)
        assert page.evaluate(FITS) == "", at
    page.keyboard.press("b")
    page.wait_for_selector("html[data-headlight-presenter=blank]", state="attached")
    assert not page.locator(".tour h2").is_visible()
    page.keyboard.press("b")
    page.keyboard.press("Escape")
    page.wait_for_selector("html:not([data-headlight-presenter])", state="attached")
    area = page.locator("textarea").first
    area.click()
    page.keyboard.press("p")
    assert page.locator("html[data-headlight-presenter]").count() == 0, (
        "who types is not presenting"
    )
    page.keyboard.press("Backspace")
    page.locator(".tour .dot").nth(7).click()
    page.get_by_role("button", name="Open this on Attention").click()
    page.wait_for_url("**/?*head=5*")
    page.wait_for_selector("canvas[data-painted]")
    page.locator("h1").first.click()
    page.keyboard.press("p")
    page.wait_for_selector(".board .number")
    assert "“it” looks at “animal” (0.81)" in page.locator(".board h1").inner_text()
    assert page.evaluate(FITS) == ""
    said = set()
    for at, (to, what) in enumerate(PAGES.items()):
        page.keyboard.press("Escape")
        page.set_viewport_size({"width": 1920, "height": 1080} if at % 2 else SMALL)
        page.evaluate(GO, to)
        page.wait_for_url(f"**{to}*")
        page.wait_for_selector(what, state="attached")
        page.wait_for_selector("[data-testid=stStatusWidget]", state="detached")
        page.keyboard.press("p")
        page.wait_for_selector(".board .large .panel")
        page.wait_for_function(f"() => ({FITS})() === ''")  # a page that draws anew is drawn anew
        said.add(page.locator(".board h1").inner_text())
        assert page.locator(".board h1").inner_text() not in ("", "Headlight"), to
    assert len(said) == len(PAGES), "each page says what it finds"
