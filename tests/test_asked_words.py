"""The word that a screen asks for: neither a lesson that begins with the question nor the flow
before the light is on tells it anywhere."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from app_harness import clean, page_at, told
from conftest import needs_smollm2, texts_of

from explorer.analysis import residual
from explorer.figures.kinds import as_plain
from explorer.panels import architecture, flow_way, lessons, worksheet
from explorer.panels.spec import Panel
from explorer.screens.screen import Screen, screen
from models.contract.recording import COVER
from models.runtime.run import Run

WAITER = "The waiter brought the soup but it was cold."
NEPAL = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)
ASKING = [name for name, each in lessons.written().items() if each.get("asks")]
SOUP = 5  # a token of the encoder, whose word is in no sentence of the app


def opened(address: str) -> Screen:
    """The screen of an address of a lesson."""
    parts = urlsplit(address)
    return screen(f"{parts.path.rpartition('/')[2]}?{parts.query}")


def said(panel: Panel) -> str:
    """Every text of a panel that is seen, one a line."""
    figures = [{**as_plain(each, {}), "out": ""} for each in panel.figures]  # an address
    return "\n".join([panel.title, panel.finding, *panel.caption, *texts_of(figures)])


@pytest.mark.parametrize(
    ("model", "text", "shown"),
    [
        ("encoder", WAITER, f"The waiter brought the soup but {COVER} was cold."),
        ("decoder", WAITER, f"The waiter brought the soup but it was {COVER}"),
        ("decoder", "Paris is the capital of", "Paris is the capital of"),
        ("translator", WAITER, WAITER),
    ],
)
def test_before_the_light_is_on_the_asked_word_is_covered(
    model: str, text: str, shown: str
) -> None:
    asked = screen({"tab": "flow", "model": model, "text": text})
    run = Run(model, text)
    assert asked.covered is not None
    assert run.recording().texts_with_cover(asked.covered)[0] == shown
    for words in ({"flow_beam": "end"}, {"flow_level": "Layer"}):
        lit = screen({"tab": "flow", "model": model, "text": text, **words})
        assert lit.covered is None


@pytest.mark.slow
def test_the_heads_tell_nothing_of_a_covered_word() -> None:
    """Of which no head votes, and to which no offer leads."""
    for model, text, place in (("encoder", WAITER, 7), ("decoder", NEPAL, 22)):
        words = {"model": model, "text": text, "covered": str(place), "token": "7"}
        app = clean(page_at("heads", **words))
        said = " ".join((app.title[0].value, told(app, "caption", "markdown")))
        assert "tested heads" not in said
        assert not [each for each in app.get("bidi_component") if "offers" in str(each.proto)]


def test_a_run_that_is_covered_is_the_same_pass_by_other_names() -> None:
    for model in ("encoder", "decoder", "translator"):
        plain = Run(model, WAITER).recording()
        n = len(plain.streams[-1].tokens)
        place = n // 2
        covered = Run(model, WAITER).covering(place).recording()
        last = covered.streams[-1]
        is_alone = model == "encoder"
        gone = {at for at, token in enumerate(last.tokens) if token == COVER}
        assert gone == ({place} if is_alone else {*range(place, n)})
        assert covered.text == plain.text and covered.target == plain.target
        assert all((a.ids == b.ids).all() for a, b in zip(covered.streams, plain.streams))
        assert Run(model, WAITER).recording().streams[-1].tokens == plain.streams[-1].tokens
        with pytest.raises(ValueError, match="covered once"):
            covered.covering(1)


@pytest.mark.parametrize("name", ASKING)
def test_a_lesson_covers_its_word_up_to_the_step_that_answers(name: str) -> None:
    run = Run("encoder", WAITER)
    made = lessons.on(run, name, SOUP) if "text" not in lessons.written()[name] else None
    if made is None:
        return
    covered = [each for each in made.items if "covered=" in each.address]
    assert made.items[: len(covered)] == tuple(covered) and 0 < len(covered) < len(made.items)
    (after, *_) = made.items[len(covered) :]
    predicted = re.search("“[^”]+”", after.says + after.rest)
    for item in covered:
        assert "soup" not in item.heading + item.says + item.number + item.rest, item.heading
        shown = opened(item.address)
        assert shown.covered == SOUP
        for panel in shown.panels():
            assert "soup" not in said(panel), (item.heading, panel.name)
            assert predicted and predicted[0] not in panel.title + panel.finding, panel.name
    assert any("soup" in said(panel) for panel in opened(after.address).panels())
    assert all("soup" not in each.heading for each in made.items)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "telling"), [(SOUP, "soup"), (7, "tested heads")])
def test_the_page_of_a_covered_step_runs_and_tells_the_word_nowhere(
    place: int, telling: str
) -> None:
    """telling: the word, or who says what a pronoun stands for."""
    tabs = set()
    for item in lessons.on(Run("encoder", WAITER), "lecture", place).items:
        words = opened(item.address).words()
        if "covered=" not in item.address or words["tab"] in tabs:
            continue
        tabs.add(tab := words.pop("tab"))
        app = clean(page_at(tab, **dict(parse_qsl(urlsplit(item.address).query)) | words))
        assert telling not in told(app, "title", "caption", "markdown", "text_area"), item.heading
    assert "heads" in tabs


@pytest.mark.parametrize("model", ["decoder", "translator"])
@pytest.mark.parametrize("name", ["three-minutes", "lecture"])
def test_a_lesson_covers_what_a_model_writes_from_the_asked_word_on(name: str, model: str) -> None:
    run = Run(model, WAITER)
    last = run.recording().streams[-1]
    for item in lessons.on(run, name).items:
        if "covered=" not in item.address:
            continue
        shown = opened(item.address)
        assert shown.covered is not None
        gone = [
            word
            for word in (*last.tokens[shown.covered :],)
            if len(word) > 3 and word.isalpha() and word not in last.tokens[: shown.covered]
        ]
        assert gone
        for panel in shown.panels():
            if panel.name == "architecture.flow" and not panel.figures[0].level:
                continue  # it holds what it plays, and draws no word
            leaked = [each for each in gone if re.search(rf"\b{each}\b", said(panel))]
            assert not leaked, (item.heading, panel.name)


MODELS = ("encoder", "decoder", "translator", "minilm")


@pytest.mark.parametrize(
    ("model", "text"),
    [
        *((model, WAITER) for model in MODELS),
        pytest.param("smollm2", NEPAL, marks=needs_smollm2),
    ],
)
def test_no_step_shows_the_picture_of_the_step_before_it(model: str, text: str) -> None:
    run = Run(model, text)
    for name in lessons.names(run.recording().model.kind):
        before = ""
        for item in lessons.on(run, name).items:
            picture = worksheet.picture_address(item)
            assert not picture or picture != before, (name, item.heading)
            before = picture


@needs_smollm2
def test_a_lesson_follows_the_head_that_brings_the_answer() -> None:
    hero = lessons.hero(Run("smollm2", NEPAL).recording(), answers=True)
    assert (hero.layer, hero.head) == (23, 4)
    steps = lessons.on(Run("smollm2", NEPAL), "three-minutes").items
    heads = [dict(parse_qsl(urlsplit(each.address).query)) for each in steps]
    assert {each["layer"] for each in heads if "flow_level" in each} == {"23"}
    assert {each["head"] for each in heads if "head" in each} == {"4"}
    assert "Head 4 of layer 23, which attends to “Nepal”" in steps[-1].rest


def test_the_update_of_a_lesson_is_the_one_in_the_middle() -> None:
    run = Run("encoder", WAITER)
    (step,) = [e for e in lessons.on(run, "three-minutes").items if e.panel == "residual.updates"]
    stream = run.recording().streams[0]
    token = lessons.hero(run.recording(), answers=True).token

    def angle(before: str, after: str) -> float:
        a, b = (stream.at(site)[token].astype(float) for site in (before, after))
        return float((a @ b) / ((a @ a) * (b @ b)) ** 0.5)

    layered = [each for each in residual.sublayers(stream) if each.layer >= 0]
    turns = sorted(layered, key=lambda each: -angle(each.before, each.after))
    words = dict(parse_qsl(urlsplit(step.address).query))
    assert words["block"] == turns[(len(turns) - 1) // 2].site


def test_the_reason_of_an_answer_is_a_word_that_a_head_reads() -> None:
    figure = architecture.flow(Run("encoder", WAITER), beam="end").figures[0]
    assert "Head 7 of layer 1 reads “cold”" in figure.stops[-1].part
    column, _, head, row = figure.cause
    assert (figure.layers[column].layer, head, figure.bands[0].rows[row]) == (1, 7, "cold")


def test_nothing_is_asked_of_a_model_that_predicts_no_word() -> None:
    run = Run("minilm", WAITER)
    assert flow_way.asked_place(run, 4) is None
    assert screen({"tab": "flow", "model": "minilm", "text": WAITER}).covered is None


def test_a_word_that_is_asked_for_may_be_spaces_alone() -> None:
    """At the end of a text, where no letter comes after them."""
    text = "Teacher it quickly carried window street under and boy old so book."
    panel = architecture.flow(Run("reverse", text))
    assert COVER in " ".join(panel.caption) and panel.figures[0].current < 0
