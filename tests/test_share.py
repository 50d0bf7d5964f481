"""What Share gives: the picture card with the headline's own numbers, the loop, and what a link
says of itself before it is opened."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from xml.etree import ElementTree

import driver
import numpy as np
import pytest
import segno
from conftest import HOSTILE, needs_smollm2
from driver import Visitor
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import ALIGNED, PAIRS, select_findings
from explorer.analysis.terminology import sorted_edits
from explorer.app.server import shared_link
from explorer.app.server.routes import MIDDLEWARE, ROUTES
from explorer.figures.formatting import tenths
from explorer.figures.kinds import PictureCard
from explorer.panels import architecture, card, flow_beam, predictions
from explorer.panels.spec import FILES, Panel
from explorer.text import findings as findings_text
from explorer.wording.markdown_escape import plain
from models.contract.edits import Edit, HideToken, WithoutNorm, ZeroHead, describe
from models.example_texts import DEFAULT_TEXT, OPENING_TEXT
from models.network.own_model import OwnModel
from models.runtime.run import Run

SIZE = (1200, 630)
ANNA = "Anna called her sister because she had lost her keys."
WAITER = "The waiter brought the soup but it was cold."
LONG = (
    "The trophy did not fit in the suitcase because it was too big, and so the tall man who had "
    "carried it all the way from the old station to the hotel on the hill left it with the porter."
)
SENTENCE = "The grandmother greeted the neighbours, and they smiled."
TEXTS = [
    ("encoder", DEFAULT_TEXT),
    ("encoder", ANNA),
    ("encoder", LONG),
    ("encoder", "What is the capital of Nepal?"),
    ("translator", SENTENCE),
    ("translator", "The red car stopped in front of the white house."),
    ("decoder", "the cat sat on the mat"),
    pytest.param("smollm2", "The capital of Nepal is", marks=needs_smollm2),
]


def card_of(run: Run, **chosen: int | str) -> PictureCard:
    (figure,) = card.headline(run, **chosen).figures
    assert isinstance(figure, PictureCard)
    return figure


def png_of(panel: Panel) -> bytes:
    return FILES["png"].make(panel)


def words_of(figure: PictureCard) -> list[str]:
    return [word for text in figure.texts for word in text]


EDITS = [
    ("encoder", DEFAULT_TEXT, (ZeroHead(3, 7),), 9),
    ("encoder", ANNA, (WithoutNorm(),), 6),
    ("decoder", "the cat sat on the mat", (ZeroHead(1, 2), ZeroHead(1, 1)), None),
    ("translator", SENTENCE, (ZeroHead(1, 2, "cross"),), None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "text", "edits", "token"), EDITS)
def test_a_card_of_an_edited_model_tells_what_the_edits_change(
    model: str, text: str, edits: tuple[Edit, ...], token: int | None
) -> None:
    run = Run(model, text, edits)
    panel = card.headline(run, token=token)
    (figure,) = panel.figures
    at = panel.at["token"]
    hidden = (HideToken(token),) if token is not None else ()
    rows = [
        predictions.word(each, at).figures[1].rows[0]
        for each in (replace(run, edits=hidden), run.under((*edits, *hidden)))
    ]
    assert figure.says == tuple(
        f"{row.label.removesuffix(' (actual)')} {row.texts[0]}" for row in rows
    )
    assert describe(sorted_edits(edits)) in figure.about and not figure.edges
    assert ("____" in words_of(figure)) == bool(hidden)
    assert Image.open(io.BytesIO(png_of(panel))).size == SIZE


@pytest.mark.slow
def test_a_card_of_an_edited_model_without_a_readout_tells_a_pair_and_that_it_was_edited() -> None:
    figure = card_of(Run("minilm", ANNA, (ZeroHead(1, 2),)))
    assert figure.is_pair and figure.about.endswith("edited")


# ---- the card ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("model", "text"), TEXTS)
def test_a_card_tells_what_the_headline_tells(model: str, text: str) -> None:
    run = Run(model, text)
    one = select_findings(RecordingFacts(run.recording()).leading_findings())[0]
    told = card_of(run)
    if one.kind in (*PAIRS, ALIGNED):
        assert told.says == one.words[:2]
        assert f"({told.number})" in findings_text.headline(one)
        words, first = words_of(told), told.edges[0]
        assert (words[first.source], words[first.target]) == told.says
        assert f"layer {one.layer}, head {one.head}" in told.about
    elif one.n_votes:
        assert told.says == one.words[:2] and told.number == f"{one.n_votes} of 3"
        words = words_of(told)
        said = [(words[each.source], words[each.target]) for each in told.edges]
        assert said == [(one.words[0], noun) for noun in one.words[1:]]
        assert "3 tested heads" in told.about
    else:
        assert told.says == (plain(findings_text.statement(one)),) and not told.number
    assert told.about.startswith(model)


def test_a_chosen_word_is_told_with_its_largest_weight() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    pattern = run.recording().attention[0].pattern
    for layer, head, token in ((0, 1, 4), (2, 6, 7), (3, 0, 1)):
        told = card.headline(run, layer=layer, head=head, token=token)
        assert told.table["weight"][0] == pattern[layer, head, token].max()
        assert told.figures[0].number == f"{pattern[layer, head, token].max():.2f}"


def test_a_long_text_is_cut_around_the_pair_wherever_it_stands() -> None:
    run = Run("encoder", LONG)
    n = len(run.recording().streams[0].tokens)
    cut = 0
    for token in range(1, n - 1):
        figure = card_of(run, layer=1, head=5, token=token)
        words, (edge,) = words_of(figure), figure.edges
        assert {edge.source, edge.target} <= {*range(len(words))}
        assert sum(map(len, words)) <= card.COLUMNS[1] + 2 * card.LONGEST
        text = " ".join(words).replace(" …", "\n").replace("… ", "\n")
        assert "\n" in text
        cut += words[0] == "…" and words[-1] == "…"
        for before, word in pairwise(words):  # neighbours are neighbours in the text
            if not {"…", "[CLS]", "[SEP]"} & {before, word}:
                assert f"{before} {word}" in LONG or f"{before}{word}" in LONG
    assert cut > n // 4


def test_a_translation_stands_below_its_source_and_reads_from_it() -> None:
    figure = card_of(Run("translator", SENTENCE))
    source, target = figure.texts
    (edge,) = figure.edges
    assert edge.target < len(source) <= edge.source < len(source) + len(target)


def test_a_headline_without_a_pair_has_the_arcs_of_its_head() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    made = card.headline(run, layer=0, head=4)
    figure = made.figures[0]
    pattern = run.recording().attention[0].pattern[0, 4]
    if figure.is_pair:
        assert made.table["weight"][0] in pattern
    else:
        assert figure.edges and {round(each.weight, 6) for each in figure.edges} <= {
            round(float(row.max()), 6) for row in pattern
        }


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_text_stays_text(name: str) -> None:
    """On the card, in the PNG, and in the head of a page."""
    run = Run("encoder", HOSTILE[name][:4000])
    panel = card.headline(run)
    assert len(words_of(card_of(run))) <= 2 * card.COLUMNS[1]
    assert Image.open(io.BytesIO(png_of(panel))).size == SIZE


# ---- without a browser ---------------------------------------------------------------------------


def test_a_png_shows_the_pair_the_arc_and_the_words() -> None:
    """Each part of the card has ink, and another sentence is another picture."""
    made = [png_of(card.headline(Run("encoder", text))) for text in (DEFAULT_TEXT, ANNA)]
    assert made[0] != made[1] and max(map(len, made)) < 100_000
    image = np.asarray(Image.open(io.BytesIO(made[1])).convert("RGB")).astype(int)
    assert image.shape == (SIZE[1], SIZE[0], 3)
    dark = (np.abs(image - image[0, 0]).sum(-1) > 60).astype(int)
    pair, number, words, foot = dark[60:160, :700], dark[60:160, 900:], dark[230:510], dark[540:600]
    assert min(part.sum() for part in (pair, number, words, foot)) > 1500
    margins = dark[:, :40], dark[:, -40:], dark[:40], dark[-30:]
    assert not any(part.any() for part in margins)


def test_letters_that_join_from_right_to_left_stand_on_one_line() -> None:
    """The first letter of a word, at its right, ends where the next one ends below."""
    word = "\u0633" * 6
    image = Image.open(io.BytesIO(png_of(card.headline(Run("encoder", word)))))
    dark = np.asarray(image.convert("L"))[230:510] < 100
    (columns,) = np.nonzero(dark.any(0))
    sixth = (columns[-1] - columns[0]) // 6
    ends = [
        np.nonzero(dark[:, columns[-1] - sixth * at - sixth // 2 - 5 :][:, :10].any(1))[0][-1]
        for at in (0, 1)
    ]
    assert len(columns) > 100 and abs(ends[0] - ends[1]) < 4, ends


# ---- what a link says of itself ------------------------------------------------------------------


class Metas(HTMLParser):
    """The title, the metas and the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.title, self.metas, self.tags = "", {}, []
        self._in_title = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append(tag)
        self._in_title = tag == "title"
        if tag == "meta":
            self.metas[named.get("property") or named.get("name")] = named.get("content")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


PAGE = "<html><head><title>Streamlit</title></head></html>"


HOME = "https://heads.example/tools"  # of a server that knows its address


def test_a_server_that_does_not_know_its_address_says_nothing() -> None:
    assert shared_link.titled(PAGE, "/", "text=a", "") == PAGE
    assert shared_link.titled(PAGE, "/", "text=a", HOME) != PAGE


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_title_is_text(name: str) -> None:
    text = HOSTILE[name].encode("utf-8", "replace").decode()[:1500]
    query = urlencode({"text": text, "model": '"><script>', "head": "<b>"})
    seen = Metas(shared_link.titled(PAGE, "/", query, HOME))
    assert seen.tags.count("title") == 1 and not {*seen.tags} - {"html", "head", "title", "meta"}
    shown = " ".join(text.split())
    if shown.isprintable() and 0 < len(shown) <= shared_link.LONGEST_TITLE:
        assert seen.title == f"“{shown}” · Headlight"
    assert seen.title == seen.metas["og:title"] == seen.metas["og:image:alt"]
    image = parse_qs(urlsplit(seen.metas["og:image"]).query, keep_blank_values=True)
    assert image["model"] == ["encoder"] and image["head"] == ["<b>"]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "text"), TEXTS[:6])
def test_a_links_title_is_the_headline_with_its_number_once_it_was_read(
    model: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{text} Today."  # that no other test has read
    query = urlencode({"text": text, "model": model})
    title = lambda: Metas(shared_link.titled(PAGE, "/", query, HOME)).title
    with monkeypatch.context() as still:
        for name in ("record", "logits", "lens"):
            still.setattr(OwnModel, name, None)
        before = title()
    assert before.removesuffix(" · Headlight").strip("“”…") in text
    told = card.headline(Run(model, text))
    with monkeypatch.context() as still:
        for name in ("record", "logits", "lens"):
            still.setattr(OwnModel, name, None)
        assert title() == f"{told.finding.removesuffix('.')} · Headlight"
        edited = urlencode({"text": text, "model": model, "edits": "ZeroHead:0.0"})
        assert Metas(shared_link.titled(PAGE, "/", edited, HOME)).title == before


@pytest.mark.slow
def test_a_link_that_names_a_word_is_titled_by_it() -> None:
    run = Run("encoder", "Anna called her sister then.")
    place = run.recording().streams[0].tokens.index("sister")
    told = card.headline(run, token=place)
    assert told.finding != card.headline(run).finding
    query = urlencode({"text": run.text, "word": "sister"})
    title = Metas(shared_link.titled(PAGE, "/", query, HOME)).title
    assert title == f"{told.finding.removesuffix('.')} · Headlight"


@pytest.mark.slow
def test_a_link_leads_to_the_card_of_its_own_text() -> None:
    with TestClient(Starlette(routes=ROUTES, middleware=MIDDLEWARE)) as ask:
        for path, query, model, text in (
            ("/", "", "encoder", OPENING_TEXT),
            ("/", "view=Both", "encoder", DEFAULT_TEXT),
            ("/", "text=Anna+called+her+sister.&layer=1&head=5&token=3", "encoder", ""),
            ("/", "text=Anna+called+her+sister.&token=her", "encoder", ""),
            ("/architecture", "tab=residual&model=decoder", "decoder", DEFAULT_TEXT),
        ):
            seen = Metas(shared_link.titled(PAGE, path, query, HOME)).metas
            assert seen["twitter:card"] == "summary_large_image"
            assert seen["og:url"] == f"{HOME}{path}{'?' if query else ''}" + urlencode(
                dict(reversed(parse_qsl(query)))
            )
            image = urlsplit(seen["og:image"])
            asked = dict(parse_qsl(image.query))
            assert asked["model"] == model and asked["text"] == (text or "Anna called her sister.")
            got = ask.get(f"{image.path.removeprefix('/tools')}?{image.query}")
            assert got.headers["content-type"] == "image/png" == seen["og:image:type"]
            picture = Image.open(io.BytesIO(got.content))
            assert picture.size == SIZE
            assert picture.size == (int(seen["og:image:width"]), int(seen["og:image:height"]))
            again = ask.get(
                f"{image.path.removeprefix('/tools')}?{image.query}",
                headers={"If-None-Match": got.headers["etag"]},
            )
            assert again.status_code == 304 and not again.content
        wrong = ask.get("/panel/card.headline.png?layer=99")
        assert wrong.status_code == 400 and wrong.text == "There is no layer 99; the last is 3."


# ---- on the page ---------------------------------------------------------------------------------


def pixels(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


@driver.browser_test
def test_share_hands_out_a_card_and_a_loop_that_moves(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.open(text=ANNA).page
    headline = page.locator("h1").first.inner_text()
    page.get_by_role("button", name="Share").click()
    shown = page.locator(".share svg.card")
    shown.wait_for()
    number = f"{'3' if 'all three' in headline.lower() else '2'} of 3"
    assert number in shown.text_content()
    with page.expect_download() as fetched:
        page.get_by_role("button", name="Picture card as PNG").click()
    assert fetched.value.suggested_filename.endswith("card.png")
    fetched.value.save_as(tmp_path / "card.png")
    image = pixels(tmp_path / "card.png")
    assert image.shape == (SIZE[1], SIZE[0], 3)
    ink = np.abs(image - image[0, 0]).sum(-1) > 60
    assert 0.02 < ink.mean() < 0.5 and ink[60:160].any() and ink[230:510].any()
    page.get_by_role("button", name="Make a loop of the flow, 6 seconds").click()
    inside = page.locator(".share img")
    inside.wait_for()
    assert inside.evaluate("each => each.decode().then(() => each.naturalWidth)") > 900
    with page.expect_download() as fetched:
        page.get_by_role("button", name="Loop as SVG").click()
    fetched.value.save_as(tmp_path / "loop.svg")
    assert_moves(page, tmp_path)
    link = page.locator(".stCode").inner_text().replace("\n", "")
    with page.expect_download(timeout=driver.PATIENCE) as fetched:
        page.get_by_role("button", name="Loop as WebP").click()
    fetched.value.save_as(tmp_path / "loop.webp")
    assert_carries_its_address(tmp_path, link)


def assert_carries_its_address(folder: Path, link: str) -> None:
    """The card shows the address as a code, module by module, and each file names it; the loop as
    an animated WebP is of six seconds and 1.5 MB at most."""
    with Image.open(folder / "card.png") as card:
        assert card.info["Source"] == link
        image = np.asarray(card.convert("L"))
    code = np.array([[*row] for row in segno.make(link, error="l", micro=False).matrix]) > 0
    dark = np.argwhere(image[450:, 1000:] < 100)  # what is black, in the corner of the code
    (top, left), (foot, right) = dark.min(0), dark.max(0)
    side = (foot - top + 1) / len(code)
    middles = ((np.arange(len(code)) + 0.5) * side).astype(int)
    seen = image[450:, 1000:][np.ix_(top + middles, left + middles)] < 128
    assert right - left == foot - top and (seen == code).all()
    names = ElementTree.fromstring((folder / "loop.svg").read_text("utf-8"))
    assert [each.text for each in names.iter() if each.tag.endswith("desc")] == [link]
    assert (folder / "loop.webp").stat().st_size <= 1_500_000
    lasts = 0
    with Image.open(folder / "loop.webp") as loop:
        assert loop.getexif()[0x010E] == link and loop.n_frames > 10
        for frame in range(loop.n_frames):
            loop.seek(frame)
            loop.load()
            lasts += loop.info["duration"]
    assert lasts == 6000


@pytest.mark.slow
@pytest.mark.parametrize(("model", "text"), [("encoder", WAITER), ("decoder", "Ram pushed Hari")])
def test_an_answers_card_names_the_word_without_which_least_of_it_is_left(
    model: str, text: str
) -> None:
    run = Run(model, text)
    panel = card.answer(run)
    flow = architecture.flow(run, beam="end").figures[0]
    table = flow_beam.each_word(run).table
    words = [at for at, row in enumerate(table["row"]) if row == "word"]
    left = {table["word"][at]: table["probability"][at] for at in words}
    least = min(left, key=left.__getitem__)
    (figure,) = panel.figures
    lane = flow.lanes[0]
    assert f"“{lane.label}”" in panel.finding and figure.says == (panel.finding,)
    assert ("because of" in panel.finding) == (left[least] <= lane.chance / 2)
    assert lane.text in figure.about and f"“{least}” {tenths(left[least])}" in figure.about
    drawn = words_of(figure)
    (edge,) = figure.edges
    assert (drawn[edge.source], drawn[edge.target]) == (least, lane.label)


@driver.browser_test
def test_a_card_tells_no_answer_before_the_light_is_on(visitor: Visitor) -> None:
    """Then it is of what is on screen: the answer, and what an ablation makes of it."""
    page = visitor.page
    lane = architecture.flow(Run("encoder", WAITER), beam="end").figures[0].lanes[0]
    for query, is_told in (("", False), ("&flow_beam=end", True), ("&flow_beam=end&off=1.7", True)):
        page.goto(f"{visitor.server}/architecture?text={WAITER.replace(' ', '+')}{query}")
        page.wait_for_selector(".panel[data-token]")
        page.wait_for_selector("[data-test-script-state=notRunning]")
        page.get_by_role("button", name="Share", exact=True).click()
        shown = page.locator(".share svg.card")
        shown.wait_for()
        assert (lane.text in shown.text_content()) == is_told


def assert_moves(page: object, folder: Path) -> None:
    """The loop holds no script and nothing from elsewhere, and two moments of it are two pictures;
    for a reader who wants no movement it rests at its end."""
    text = (folder / "loop.svg").read_text("utf-8")
    assert len(text) < 300_000
    tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(text).iter()}
    assert "style" in tags and not tags & {"script", "foreignObject", "image", "use", "a"}
    assert not re.findall(r"(?:href|src)=|@import|on\w+=|url\((?!#)", text)
    moving = page.context.new_page()
    moving.emulate_media(reduced_motion="no-preference")
    moving.goto((folder / "loop.svg").as_uri())
    seen = {}
    for at in (300, 2500, 5400):
        moving.evaluate(
            "at => document.getAnimations().forEach((each) => {"
            " each.pause(); each.currentTime = at; })",
            at,
        )
        moving.screenshot(path=folder / f"{at}.png")
        seen[at] = pixels(folder / f"{at}.png")
    assert (seen[300] != seen[2500]).any() and (seen[2500] != seen[5400]).any()
    moving.emulate_media(reduced_motion="reduce")
    assert moving.evaluate("document.getAnimations().length") == 0
    moving.screenshot(path=folder / "rest.png")
    assert np.abs(pixels(folder / "rest.png") - seen[5400]).mean() < 1
    moving.close()
