"""Questions: ten on any ordinary sentence, each with one right answer by its margin, computed here
once more by other means."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from app_harness import ROOT, clean, page_at
from conftest import AWKWARD, on_page, read_once

from explorer.analysis import quiz, words
from explorer.analysis.measure import MeasureContext
from explorer.analysis.quiz import MIN_MARGIN, N_QUESTIONS, Question, questions
from explorer.classroom.routes import app_address, parse_question
from explorer.components import codec
from explorer.text.formulas import shown
from explorer.text.quiz import ON_SHEET, ask, choice, says, sheet
from models import registry
from models.edits import from_line
from models.recording import Attention, Recording
from models.run import Run

CLOSE = 2e-4  # of sums of shares in single precision, and of angles by their cosines
SHARP = 1e-3  # of softmaxes without the scale, which make an error of single precision large
MODELS = ("encoder", "decoder", "translator", registry.MINILM)
pytestmark = pytest.mark.slow


@cache
def lines() -> tuple[str, ...]:
    """Ordinary sentences of eight words and more."""
    every = [
        line.strip()
        for name in ("tests/sentences.txt", "benchmarks/sentences.txt")
        for line in (ROOT / name).read_text("utf-8").splitlines()
    ]
    return tuple(
        line for line in dict.fromkeys(every) if len(re.findall(r"[^\W_][\w'’-]*", line)) >= 8
    )


@cache
def asked(model: str, text: str) -> tuple[Recording, tuple[Question, ...], list[tuple[str, float]]]:
    handle = read_once(model)
    recording = handle.record(text)
    said: list[tuple[str, float]] = []
    if recording.model.kind == "decoder":
        scores = handle.logits(recording, "decoder", len(recording.streams[0].tokens) - 1)
        p = np.exp(scores.astype(np.float64) - scores.max())
        best = np.argsort(-p)[:6]
        said = list(zip(handle.labels(best), (p[best] / p.sum()).tolist()))
    return recording, questions(recording, predictions=said), said


def taken() -> list[tuple[str, str]]:
    """Every third sentence for the first model, every twelfth for the others."""
    assert len(lines()) >= 100
    every = {model: 3 if model == "encoder" else 12 for model in MODELS}
    return [(model, text) for model in MODELS for text in lines()[:: every[model]]]


@pytest.mark.parametrize("model", MODELS)
def test_ten_on_any_sentence_each_with_one_right_answer_by_its_margin(model: str) -> None:
    for each, text in taken():
        if each == model:
            recording, made, said = asked(model, text)
            assert len(made) == N_QUESTIONS, text
            assert len({one.kind for one in made}) >= 6, text
            assert len({ask(one) for one in made}) == N_QUESTIONS, text
            for one in made:
                check(one, recording, said)


def check(one: Question, recording: Recording, said: list[tuple[str, float]]) -> None:
    """Values, the right answer and the margin, from the recording's arrays alone."""
    values = np.array([each.value for each in one.choices])
    true, rivals = OTHER_WAY[one.kind](one, recording, said)
    assert values == pytest.approx(true, abs=CLOSE * max(1.0, np.abs(true).max())), one
    others = np.delete(values, one.right)
    names = [choice(each) for each in one.choices]
    assert 3 <= len(names) <= 4 and len({name.casefold() for name in names}) == len(names), one
    least = MIN_MARGIN[one.kind] - 1e-9
    if one.kind in (quiz.WEIGHT, quiz.SCALE):
        apart = np.abs(values[:, None] - values)[~np.eye(len(values), dtype=bool)]
        assert apart.min() >= least
        assert one.margin == pytest.approx(np.abs(others - values[one.right]).min())
    else:
        assert one.margin == pytest.approx(values[one.right] - others.max())
        assert one.margin >= least and values[one.right] >= max(rivals, default=-np.inf) - CLOSE
    special = [
        token
        for stream in recording.streams
        for token, is_special in zip(stream.tokens, stream.special)
        if is_special
    ]
    for each in one.choices:
        assert each.word not in special and not re.fullmatch(r"\[[A-Z]+\]|<[^>]*>", each.word)


def groups(recording: Recording, attention: Attention) -> tuple[words.Groups, words.Groups]:
    text = {each.name: recording.text for each in recording.streams}
    if len(recording.streams) > 1:
        text[recording.streams[-1].name] = recording.target
    rows, keys = (
        words.words(recording.stream(n), text[n]) for n in (attention.query, attention.key)
    )
    return (
        rows if attention.query == attention.key else words.produced_words(rows, "", True)
    ), keys


def attention_of(one: Question, recording: Recording) -> Attention:
    return next(each for each in recording.attention if each.name == one.attention)


def spans(grouped: words.Groups) -> list[range]:
    return [range(s, e) for s, e in zip(grouped.starts, (*grouped.starts[1:], grouped.n))]


def between(one: Question, recording: Recording, layer: int, head: int) -> np.ndarray:
    """Weights between words, (row, column), by plain sums."""
    attention = attention_of(one, recording)
    rows, keys = groups(recording, attention)
    pattern = attention.pattern[layer, head].astype(np.float64)
    return np.array(
        [[pattern[np.ix_(r, k)].sum() / len(r) for k in spans(keys)] for r in spans(rows)]
    )


def given(one: Question, recording: Recording) -> dict[tuple[int, int], float]:
    """What each head gives one word from another."""
    attention = attention_of(one, recording)
    rows, keys = groups(recording, attention)
    row, key = spans(rows)[at(rows, one.token)], spans(keys)[at(keys, one.key)]
    part = attention.pattern[:, :, row.start : row.stop, key.start : key.stop].astype(np.float64)
    return {each: part[each].sum() / len(row) for each in np.ndindex(part.shape[:2])}


def at(grouped: words.Groups, token: int) -> int:
    return max(where for where, start in enumerate(grouped.starts) if start <= token)


def looks(one, recording, said):
    """Special tokens are among the others."""
    rows, keys = groups(recording, attention_of(one, recording))
    row = between(one, recording, one.layer, one.head)[at(rows, one.token)]
    best = row[at(keys, one.answer.token)]
    assert np.sort(row)[-2] <= best - MIN_MARGIN[quiz.LOOKS] + CLOSE
    return [row[at(keys, each.token)] for each in one.choices], list(row)


def of_heads(one, recording, said):
    every = given(one, recording)
    return [every[each.layer, each.head] for each in one.choices], list(every.values())


def weight(one, recording, said):
    every = given(one, recording)
    assert one.answer.value == pytest.approx(every[one.layer, one.head], abs=CLOSE)
    return nearest_of(one, list(every.values())), []


def nearest_of(one: Question, every: list[float]) -> list[float]:
    """To each number of the answers the one of all that it must be."""
    return [min(every, key=lambda real: abs(real - each.value)) for each in one.choices]


def beside(one, recording, said):
    attention = attention_of(one, recording)
    step, text = -1 if one.kind == quiz.BACK else 1, ~recording.stream(attention.key).special
    free = np.diagonal(attention.allowed[0] & text & text[:, None], step)
    weights = np.diagonal(attention.pattern, step, axis1=-2, axis2=-1)[..., free]
    return [weights[c.layer, c.head].mean() for c in one.choices], []


def received(one, recording, said):
    """Over all rows of the pattern, a token each."""
    attention = attention_of(one, recording)
    _, keys = groups(recording, attention)
    mean = attention.pattern[one.layer, one.head].astype(np.float64).mean(axis=0)
    return [sum(mean[list(spans(keys)[at(keys, each.token)])]) for each in one.choices], []


def spread(one, recording, said):
    """Over tokens, special ones and pieces of words among them."""
    attention = attention_of(one, recording)
    rows, _ = groups(recording, attention)
    pattern = attention.pattern[one.layer, one.head].astype(np.float64)
    matrix = [pattern[list(row)].mean(axis=0) for row in spans(rows)]
    wide = [np.prod([p**-p for p in row if p > 0]) for row in matrix]
    return [wide[at(rows, each.token)] for each in one.choices], []


def unscaled(one, recording):
    attention = attention_of(one, recording)
    q, k = attention.q[:, :, one.token].astype(np.float64), attention.k.astype(np.float64)
    products = np.einsum("lhd,lhkd->lhk", q, k)
    products[..., ~attention.allowed[0][one.token]] = -np.inf
    shares = np.exp(products - products.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True), attention.pattern[:, :, one.token]


def scale(one, recording, said):
    bare, now = unscaled(one, recording)
    assert one.answer.value == pytest.approx(bare[one.layer, one.head].max(), abs=SHARP)
    assert one.value == pytest.approx(now[one.layer, one.head].max(), abs=CLOSE)
    return nearest_of(one, bare.max(axis=-1).ravel().tolist()), []


def sharpened(one, recording, said):
    bare, now = unscaled(one, recording)
    moved = np.abs(bare - now).sum(axis=-1)[one.layer] / 2
    assert {each.layer for each in one.choices} == {one.layer}
    return [moved[each.head] for each in one.choices], list(moved)


def site_of(one: Question, recording: Recording):
    stream = recording.stream(one.stream)
    before, wrote, total = next(each for each in stream.writes() if each[1] == f"{one.site}.wrote")
    normed = f"{one.site}.normed"
    after = normed if normed in stream.sites and one.site in normed else total
    text = recording.target if stream is not recording.streams[0] else recording.text
    return stream, stream.at(before), stream.at(wrote), after, spans(words.words(stream, text))


def largest(values: np.ndarray, parts: list[range], one: Question) -> list[float]:
    return [
        max(values[list(part)])
        for each in one.choices
        for part in parts
        if part.start == each.token
    ]


def turned(one, recording, said):
    stream, before, _, after, parts = site_of(one, recording)
    a, b = before.astype(np.float64), stream.at(after).astype(np.float64)
    cosines = (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    return largest(np.degrees(np.arccos(np.clip(cosines, -1, 1))), parts, one), []


def wrote(one, recording, said):
    _, before, written, _, parts = site_of(one, recording)
    a, w = np.linalg.norm(before, axis=1), np.linalg.norm(written, axis=1)
    return largest(w / (a + w), parts, one), []


def nearest(one, recording, said):
    last = recording.stream(one.stream).resid[-1].astype(np.float64)
    mine = last[one.token]
    return [
        last[each.token] @ mine / np.linalg.norm(last[each.token]) / np.linalg.norm(mine)
        for each in one.choices
    ], []


def following(one, recording, said):
    return [dict((word.strip(), p) for word, p in reversed(said))[c.word] for c in one.choices], [
        p for _, p in said
    ]


OTHER_WAY = {
    quiz.LOOKS: looks,
    quiz.HEAD: of_heads,
    quiz.WEIGHT: weight,
    quiz.BACK: beside,
    quiz.AHEAD: beside,
    quiz.RECEIVED: received,
    quiz.SPREAD: spread,
    quiz.SCALE: scale,
    quiz.SHARPENED: sharpened,
    quiz.TURNED: turned,
    quiz.WROTE: wrote,
    quiz.NEAREST: nearest,
    quiz.NEXT: following,
}


def test_what_is_right_cannot_be_told_by_its_place_its_length_or_its_size() -> None:
    every = [one for model, text in taken() for one in asked(model, text)[1]]
    four = [one for one in every if len(one.choices) == 4]
    assert len(four) > 500
    places = Counter(one.right for one in four)
    assert all(0.2 < places[at] / len(four) < 0.3 for at in range(4)), places
    worded = [one for one in four if one.answer.word]
    for longest in (max, min):
        ends = [longest(one.choices, key=lambda each: len(each.name)) for one in worded]
        assert np.mean([end is one.answer for end, one in zip(ends, worded)]) < 0.4
    for kind in (quiz.WEIGHT, quiz.SCALE):
        numbers = [one for one in four if one.kind == kind]
        ranks = Counter(sum(c.value < one.answer.value for c in one.choices) for one in numbers)
        assert max(ranks.values()) / len(numbers) < 0.5, (kind, ranks)


def test_the_same_text_asks_the_same_and_another_order_comes_with_another_text() -> None:
    text = lines()[0]
    recording, made, said = asked("encoder", text)
    assert questions(recording, predictions=said) == made
    orders = {tuple(one.right for one in asked("encoder", each)[1]) for each in lines()[:8]}
    assert len(orders) == 8


@pytest.mark.parametrize("model", ["encoder", registry.MINILM])
def test_answers_are_words_that_a_student_can_read(model: str) -> None:
    awkward = (
        "Nobody told the <b>nurse</b> that she owed $5 \N{GRINNING FACE} to them",
        "那只动物没有穿过街道,因为它太累了。今天下雨了",
        "The dog saw the dog and the dog barked.",
        "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} came to us at 3.5 pm, naïve Zoë met them there!",
    )
    for text in awkward:
        made = questions(read_once(model).record(text))
        assert len(made) == N_QUESTIONS, text
        for each in made:
            for one in each.choices:
                said = re.sub(r" \(\d+\)$", "", choice(one))
                if one.word:
                    assert said in text and re.search(r"[\w\U0001f300-\U0001faff]", said), said
            assert "UNK" not in ask(each) + says(each)


def test_the_sheet_holds_all_it_needs_and_no_markup_of_the_text() -> None:
    text = "The <img src=x onerror=alert(1)> animal & the <b>street</b> were too tired to cross it."
    recording, made, _ = asked("encoder", text)
    formulas = shown(ON_SHEET, MeasureContext.of(Run("encoder", text)), {})
    said = sheet(made, recording.text, "encoder", recording.model.fingerprint, formulas)
    tags = re.findall(r"<([a-z]\w*)([^>]*)", said)
    names = [name for name, _ in tags]
    assert not {"script", "img", "link", "iframe", "b"} & set(names)
    assert not [more for _, more in tags if re.search(r"\b(src|href|on\w+)\s*=", more)]
    assert names.count("li") == len(made) * 2 + sum(len(one.choices) for one in made)
    assert said.count("<strong>") == len(made) >= N_QUESTIONS
    assert recording.model.fingerprint in said and len(formulas) >= 8
    assert names.count("math") > 2 * len(formulas) and names.count("figure") == 2 * len(formulas)


@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_any_text_gives_questions_or_none(model: str) -> None:
    for text in AWKWARD.values():
        recording = read_once(model).record(text[:300])
        for one in questions(recording):
            assert ask(one) and says(one) and "\n" not in ask(one)
            check(one, recording, [])
    repeated = "The red fox saw a bird near the river. The red fox saw a bird near the river."
    assert len(questions(read_once(model).record(repeated))) == N_QUESTIONS


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_question_on_the_scale_leads_to_the_model_without_it(model: str) -> None:
    """The numbers of the answers are those of the page that is led to."""
    text = lines()[1]
    recording, made, _ = asked(model, text)
    about = [one for one in made if one.kind in (quiz.SCALE, quiz.SHARPENED)]
    assert quiz.SCALE in {one.kind for one in about}
    for one in about:
        at = dict(one.address)
        assert (one.page, at["layer"], at["head"]) == ("edit", str(one.layer), str(one.head))
        assert at["token"] == str(one.token)
        edited = read_once(model).record(text, edits=from_line(at["edits"]))
        bare = edited.attention[0].pattern[one.layer, :, one.token].astype(np.float64)
        if one.kind == quiz.SCALE:
            assert one.answer.value == pytest.approx(bare[one.head].max(), abs=SHARP)
        else:
            trained = recording.attention[0].pattern[one.layer, :, one.token]
            moved = np.abs(bare - trained).sum(axis=1) / 2
            assert one.answer.value == pytest.approx(moved[one.answer.head], abs=SHARP)


def test_the_page_asks_what_was_computed() -> None:
    app = page_at("classroom", text=lines()[1])
    protos = [each.proto for each in on_page(clean(app))]
    (drawn,) = (each for each in protos if each.component_name == "headlight.questions")
    items = codec.decode(drawn.bytes)[0]["items"]
    assert len(items) == N_QUESTIONS
    for each in items:
        assert app_address(each["to"]) and "text=" in each["to"]
        sent = {name: each[name] for name in ("text", "choices", "right", "says", "to")}
        assert parse_question(sent)
