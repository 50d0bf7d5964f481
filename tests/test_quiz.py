"""Questions: ten on any ordinary sentence, most of them of reasons, each with one right answer by
its margin, computed here once more by other means."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from app_harness import ROOT, clean, page_at
from conftest import AWKWARD, in_turn, on_page, read_once

from explorer.analysis import quiz_question as kinds
from explorer.analysis import quiz_reasons, word_classes, words
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.measure import MeasureContext
from explorer.analysis.quiz import N_QUESTIONS, guesses, questions
from explorer.analysis.quiz_question import MIN_MARGIN, Question
from explorer.analysis.word_classes import is_word
from explorer.app.classroom.routes import app_address, parse_question
from explorer.app.views import quiz as quiz_view
from explorer.components import codec
from explorer.panels import spec
from explorer.text.formulas import formula_lines
from explorer.text.quiz import ON_SHEET, ask, choice, says, sheet
from models.contract.edits import ScaledBy, from_line
from models.contract.recording import Attention, NotFinite, Recording
from models.runtime import registry
from models.runtime.run import Run

CLOSE = 2e-4  # of sums of shares in single precision, and of angles by their cosines
SHARP = 1e-3  # of softmaxes without the scale, which make an error of single precision large
MODELS = ("encoder", "decoder", "translator", registry.MINILM)
FEWEST_REASONS = 6  # of the ten
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


Said = list[tuple[str, float]]


@cache
def asked(model: str, text: str) -> tuple[MeasureContext, tuple[Question, ...], Said]:
    context = MeasureContext.of(Run(model, text))
    recording, loaded_model = context.recording, read_once(model)
    said: Said = []
    if recording.model.kind == "decoder":
        scores = loaded_model.logits(recording, "decoder", len(recording.streams[0].tokens) - 1)
        p = np.exp(scores.astype(np.float64) - scores.max())
        best = np.argsort(-p)[:6]
        said = list(zip(loaded_model.labels(best), (p[best] / p.sum()).tolist()))
    return context, questions(context, likeliest=said), said


def taken() -> list[tuple[str, str]]:
    """Every third sentence for the first model, every sixth for the second, every 24th for those
    that take longest."""
    assert len(lines()) >= 100
    every = dict(zip(MODELS, (3, 6, 24, 24)))
    return [(model, text) for model in MODELS for text in lines()[:: every[model]]]


@pytest.mark.in_turn
@pytest.mark.parametrize("model", MODELS)
def test_ten_on_any_sentence_most_of_reasons_each_with_one_right_answer(model: str) -> None:
    texts = [text for each, text in taken() if each == model]
    for text in in_turn(texts, 6, model):
        context, made, said = asked(model, text)
        assert len(made) == N_QUESTIONS, text
        assert sum(one.is_reason for one in made) >= FEWEST_REASONS, text
        assert len({one.kind for one in made}) >= 8, text
        assert len({ask(one) for one in made}) == N_QUESTIONS, text
        letters = Counter(one.right for one in made)
        assert all(2 <= letters[at] <= 3 for at in range(4)), (text, letters)
        assert (
            model != "decoder"
            or not said
            or not said[0][0].strip().isalpha()
            or made[0].kind == kinds.NEXT
            or kinds.NEXT not in {one.kind for one in made}
        ), text
        for one in made:
            check(one, context, said)


def check(one: Question, context: MeasureContext, said: Said) -> None:
    """The right answer, its value and the margin, from the model's arrays alone."""
    recording = context.recording
    names = [choice(one, each) for each in one.choices]
    assert 3 <= len(names) <= 4 and len({name.casefold() for name in names}) == len(names), one
    assert (
        ask(one).endswith("?") and says(one) and "{" not in "".join((ask(one), says(one), *names))
    )
    special = [
        token
        for stream in recording.streams
        for token, is_special in zip(stream.tokens, stream.special)
        if is_special
    ]
    for each in one.choices:
        assert each.word not in special and not re.fullmatch(r"\[[A-Z]+\]|<[^>]*>", each.word)
    if one.answer.key:
        assert REASONS[one.kind](one, context), (ask(one), one)
        return
    values = np.array([each.value for each in one.choices])
    if one.kind == kinds.HEADS:
        assert unmoved(one, context), one
        return
    true, rivals = OTHER_WAY[one.kind](one, context, said)
    assert values == pytest.approx(true, abs=CLOSE * max(1.0, np.abs(true).max())), one
    others = np.delete(values, one.right)
    second = others.max()
    if one.kind in (kinds.NEXT, kinds.MASKED):  # what the model says second, a word or not
        second = np.sort(rivals)[-2]
        assert f"{second:.1%}" in says(one) or "< 0.1%" in says(one), one
    assert one.margin == pytest.approx(values[one.right] - second, abs=CLOSE)
    assert one.margin >= MIN_MARGIN[one.kind] - 1e-9
    assert values[one.right] >= max(rivals, default=-np.inf) - CLOSE


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


def at(grouped: words.Groups, token: int) -> int:
    return max(where for where, start in enumerate(grouped.starts) if start <= token)


# ---- read off a picture, or a prediction ---------------------------------------------------------


def looks(one, context, said):
    """Special tokens are among the others."""
    recording = context.recording
    rows, keys = groups(recording, attention_of(one, recording))
    row = between(one, recording, one.layer, one.head)[at(rows, one.token)]
    best = row[at(keys, one.answer.token)]
    assert np.sort(row)[-2] <= best - MIN_MARGIN[kinds.LOOKS] + CLOSE
    return [row[at(keys, each.token)] for each in one.choices], list(row)


def beside(one, context, said):
    """The mean weight one place before or after, of tokens of text; and the picture is the
    head's."""
    recording = context.recording
    attention = attention_of(one, recording)
    step, text = -1 if one.kind == kinds.BACK else 1, ~recording.stream(attention.key).special
    free = np.diagonal(attention.allowed[0] & text & text[:, None], step)
    weights = np.diagonal(attention.pattern, step, axis1=-2, axis2=-1)[..., free]
    for each in one.choices:
        drawn = np.array([[int(digit) for digit in row] for row in each.picture.split("/")])
        n = len(drawn)
        assert np.abs(drawn / 9 - attention.pattern[each.layer, each.head, :n, :n]).max() < 0.06
    return [weights[c.layer, c.head].mean() for c in one.choices], []


def following(one, context, said):
    return [dict((word.strip(), p) for word, p in reversed(said))[c.word] for c in one.choices], [
        p for _, p in said
    ]


def filled(one, context, said):
    """The probabilities at the mask, from the scores of the model itself."""
    model = read_once(context.run.model)
    masked = model.record(context.run.text, edits=from_line(one.edits))
    assert masked.streams[0].ids[one.token] != context.recording.streams[0].ids[one.token]
    scores = model.logits(masked, "encoder", one.token).astype(np.float64)
    p = np.exp(scores - scores.max())
    best = np.argsort(-p)[:20]
    by_word = dict(zip(reversed(model.labels(best)), reversed((p[best] / p.sum()).tolist())))
    return [by_word[each.word] for each in one.choices], list(by_word.values())


def is_hidden(one, context):
    """A causal mask hides the changed word from the word in question."""
    words = zip(context.run.text.split(), one.text.split())
    changed = next(at for at, (old, new) in enumerate(words) if old != new)
    before = len(" ".join(context.run.text.split()[: changed + 1]))
    causal = not np.triu(attention_of(one, context.recording).allowed, 1).any()
    return causal and context.recording.stream(one.stream).spans[one.token][1] < before


def moved_row(one, context, said):
    """The row of the changed text."""
    after = run_again(context, text=one.text)
    attention = attention_of(one, after)
    row = attention.pattern[one.layer, one.head, one.token]
    before = attention_of(one, context.recording).pattern[one.layer, one.head, one.token]
    was = dict(one.slots)["was"]
    at_was = context.recording.stream(one.stream).tokens.index(was)
    assert int(before.argmax()) == at_was and (one.form == "moves") == (one.answer.token != at_was)
    assert (one.form == "masked") == ("mask" in says(one)) == is_hidden(one, context)
    return [row[each.token] for each in one.choices], list(row)


def stays(one, context):
    """The weight leads after the change too, and its query and key are nearly what they were."""
    after = run_again(context, text=one.text)
    was = dict(one.slots)["was"]
    at_was = context.recording.stream(one.stream).tokens.index(was)
    before, then = (attention_of(one, each) for each in (context.recording, after))
    row = then.pattern[one.layer, one.head, one.token]
    assert row[at_was] == pytest.approx(dict(one.slots)["left"], abs=CLOSE)
    assert int(row.argmax()) == int(before.pattern[one.layer, one.head, one.token].argmax())
    for vectors, token in ((lambda each: each.q, one.token), (lambda each: each.k, at_was)):
        a, b = (vectors(each)[one.layer, one.head, token].astype(float) for each in (before, then))
        assert a @ b > 0.89 * np.linalg.norm(a) * np.linalg.norm(b)
    (meaning,) = (each.word for each in one.choices if each.key == "meaning")
    assert meaning not in (was, dict(one.slots)["new"])
    return one.answer.key == "stays" and int(row.argmax()) == at_was and not is_hidden(one, context)


OTHER_WAY = {
    kinds.LOOKS: looks,
    kinds.BACK: beside,
    kinds.AHEAD: beside,
    kinds.NEXT: following,
    kinds.MASKED: filled,
    kinds.CHANGED: moved_row,
}


# ---- reasons -------------------------------------------------------------------------------------


def run_again(context: MeasureContext, text: str = "", edits: str = "") -> Recording:
    """The recording of another text or under edits, by the model itself."""
    recording = context.recording
    target = tuple(map(int, recording.streams[-1].ids[1:])) if len(recording.streams) > 1 else None
    model = read_once(context.run.model)
    return model.record(text or context.run.text, edits=from_line(edits), target=target)


def rows_of(one: Question, recording: Recording) -> tuple[np.ndarray, list[int]]:
    """The head's rows of tokens of text that have a choice."""
    attention = attention_of(one, recording)
    special = recording.stream(attention.query).special
    free = [
        row
        for row in range(len(special))
        if not special[row] and all(mask[row].sum() > 1 for mask in attention.allowed)
    ]
    return attention.pattern[one.layer, one.head].astype(np.float64), free


def products(one: Question, recording: Recording, layer: int, head: int) -> np.ndarray:
    """q . k of a head, -inf where it is not allowed."""
    attention = attention_of(one, recording)
    q, k = (np.asarray(each[layer, head], np.float64) for each in (attention.q, attention.k))
    return np.where(attention.allowed[layer], q @ k.T, -np.inf)


def soft(scores: np.ndarray) -> np.ndarray:
    z = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def scaled(one, context):
    recording = context.recording
    attention = attention_of(one, recording)
    scores = products(one, recording, one.layer, one.head)
    scale = float(attention.scale[one.layer])
    if one.form == "shift":
        row = soft(scores[one.token] * scale + 3)
        assert row.max() == pytest.approx(dict(one.slots)["now"], abs=SHARP)
        return one.answer.key == "same"
    _, rows = rows_of(one, recording)
    factor = 1.0 if one.form == "out" else scale / 4
    now, then = (soft(scores * each)[rows].max(axis=-1).mean() for each in (scale, factor))
    slots = dict(one.slots)
    assert (now, then) == pytest.approx((slots["before"], slots["after"]), abs=SHARP)
    assert one.answer.key == ("larger" if one.form == "out" else "smaller")
    return then - now >= 0.05 if one.form == "out" else now - then >= 0.05


def positions(one, context):
    edits = one.edits or dict(one.address)["edits"]
    assert edits == "WithoutPositions"
    bare = run_again(context, edits=edits)
    if one.form.startswith("previous"):
        weights = []
        for each in (context.recording, bare):
            pattern, special = rows_of(one, each)[0], each.stream(one.stream).special
            pairs = [r for r in range(1, len(special)) if not special[r] and not special[r - 1]]
            weights.append(np.mean([pattern[r, r - 1] for r in pairs]))
        assert weights == pytest.approx(
            [dict(one.slots)[n] for n in ("before", "after")], abs=CLOSE
        )
        return one.answer.key == "smaller" and weights[0] - weights[1] >= 0.15
    moved = run_again(context, text=one.text, edits=edits)
    first, second = (each.stream(one.stream) for each in (bare, moved))
    assert sorted(first.tokens) == sorted(second.tokens) and first.tokens != second.tokens
    a, b = (each.resid[-1, one.token].astype(np.float64) for each in (first, second))
    change = np.linalg.norm(a - b) / np.linalg.norm(a)
    right = ("mask", "causal") if change > 0.04 else ("same", "order")
    assert change > 0.04 or change < 2e-3
    return (one.answer.key, one.form) == right


def residual(one, context):
    means = []
    for edits in ("", "WithoutResidual::"):
        stream = run_again(context, edits=edits).stream(one.stream)
        vectors = stream.resid[-1][~stream.special].astype(np.float64)
        pairs = [
            a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            for i, a in enumerate(vectors)
            for b in vectors[:i]
        ]
        means.append(np.mean(pairs))
    assert means == pytest.approx([dict(one.slots)[n] for n in ("before", "after")], abs=SHARP)
    return one.answer.key == "more" and means[1] - means[0] >= 0.1


def layer_ends(stream):
    """The last states of the layers, before a norm that hides them."""
    of: dict[str, str] = {}
    for site in stream.sites:
        if site[0].isdigit() and site.endswith((".ffn.sum", ".attn.sum", ".normed")):
            of[site.partition(".")[0]] = site
    return of.values()


def norm(one, context):
    grown = []
    for edits in ("", "WithoutNorm:"):
        stream = run_again(context, edits=edits).stream(one.stream)
        first, last = (
            np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean()
            for site in (
                next(s for s in stream.sites if not s.endswith((".wrote", ".read", "embed"))),
                stream.sites[-1],
            )
        )
        grown.append(last / first)
    lengths = [
        np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean()
        for site in ("embed+pos" if "embed+pos" in stream.sites else "embed", *layer_ends(stream))
    ]
    steps = np.diff(lengths)
    assert steps.max() > 9 * abs(steps[0]), "not by the same step"
    assert f"layer {steps.argmax()} adds {steps.max():,.0f};" in says(one)
    return one.answer.key == "longer" and grown[1] > 90


def unmoved(one, context):
    """Of the four heads weights move in the one of a later layer alone."""
    edits = f"ZeroHead:{one.layer}:{one.head}:{one.attention}"
    now, then = (
        attention_of(one, each).pattern
        for each in (context.recording, run_again(context, edits=edits))
    )
    change = np.abs(now.astype(np.float64) - then).max(axis=(2, 3))
    for at_, each in enumerate(one.choices):
        moves = change[each.layer, each.head]
        assert moves == pytest.approx(each.value, abs=CLOSE)
        assert (moves >= 0.02) if at_ == one.right else moves == 0
        assert (each.layer, each.head) != (one.layer, one.head)
    return one.answer.layer > one.layer


def whose(one, context):
    """Weights of the heads before it and beside it are to the last bit what they were."""
    edits = f"ZeroHead:{one.layer}:{one.head}:{one.attention}"
    now, then = (
        attention_of(one, each).pattern
        for each in (context.recording, run_again(context, edits=edits))
    )
    change = np.abs(now.astype(np.float64) - then).max(axis=(2, 3))
    change[one.layer, one.head] = 0  # of the head itself nothing is asked
    assert change.max() == pytest.approx(dict(one.slots)["moved"], abs=CLOSE)
    return one.answer.key == "later" and not change[: one.layer + 1].any() and change.max() >= 0.02


def rule(one, context):
    """Of the head's rows the mean weight one place before and after, on itself, and on the token
    that gets most."""
    recording = context.recording
    attention = attention_of(one, recording)
    pattern = attention.pattern[one.layer, one.head].astype(np.float64)
    text = ~recording.stream(attention.key).special
    allowed = attention.allowed[0] & text & text[:, None]
    shares = {
        name: np.diagonal(pattern, step)[np.diagonal(allowed, step)]
        for name, step in (("before", -1), ("after", 1), ("itself", 0))
    }
    means = {name: each.mean() if len(each) else 0.0 for name, each in shares.items()}
    means["one"] = pattern[text].mean(axis=0).max()
    most = means["before" if one.kind == kinds.BACK else "after"]
    assert most == pytest.approx(dict(one.slots)["given"], abs=CLOSE)
    return one.answer.key == "place" and most - sorted(means.values())[-2] >= 0.3 - CLOSE


def swapped(one, context):
    after = run_again(context, text=one.text)
    before_tokens, tokens = (each.stream(one.stream).tokens for each in (context.recording, after))
    assert sorted(before_tokens) == sorted(tokens)
    (free,) = [k for k in range(len(tokens)) if tokens[k] != before_tokens[k] and k != one.key]
    assert tokens[free] == before_tokens[one.key] and tokens[one.key] == before_tokens[free]
    row = attention_of(one, after).pattern[one.layer, one.head, one.token]
    stays, goes = float(row[one.key]), float(row[free])
    assert max(stays, goes) >= 0.5 and abs(stays - goes) >= 0.3
    assert (stays, goes) == pytest.approx(
        (dict(one.slots)["stays"], dict(one.slots)["goes"]), abs=CLOSE
    )
    return one.answer.key == ("place" if stays > goes else "word") == one.form


def added(one, context):
    """On a text with another word behind it too; or on one that lacks its last word."""
    if one.form.startswith("less"):
        return shortened(one, context)
    changes = []
    for text in (one.text, f"{context.run.text} and"):
        after = run_again(context, text=text)
        n = int((~context.recording.stream(one.stream).special).nonzero()[0][-1]) + 1
        rows = [
            attention_of(one, each).pattern[:, :, one.token, :n].astype(np.float64)
            for each in (context.recording, after)
        ]
        changes.append(np.abs(rows[0] - rows[1]).max())
    hidden = max(changes) < 2e-3
    assert hidden or min(changes) > 0.005
    return one.answer.key == ("nothing" if hidden else "all")


def shortened(one, context):
    after = run_again(context, text=one.text)
    tokens, fewer = (each.stream(one.stream).tokens for each in (context.recording, after))
    last = next(at for at in range(len(tokens)) if fewer[at : at + 1] != tokens[at : at + 1])
    assert [*tokens[:last], *tokens[last + 1 :]] == [*fewer] and one.token < last
    assert tokens[last].strip() == dict(one.slots)["last"].strip()
    rows = [
        attention_of(one, each).pattern[:, :, one.token, :last].astype(np.float64)
        for each in (context.recording, after)
    ]
    change = np.abs(rows[0] - rows[1]).max()
    causal = not np.triu(attention_of(one, context.recording).reachable, 1).any()
    assert change < 2e-3 if causal else change > 0.04
    return one.answer.key == ("nothing" if causal else "all")


def sums(one, context):
    attention = attention_of(one, context.recording)
    pattern = attention.pattern.astype(np.float64)
    row = pattern[one.layer, one.head, one.token]
    assert row.sum() == pytest.approx(1, abs=CLOSE)
    if one.form == "rest":
        rest = np.delete(row, one.key).sum()
        assert rest == pytest.approx(dict(one.slots)["rest"], abs=CLOSE)
        assert row[one.key] > 0.1, "no answer of 0 or 1 is nearly right"
        return one.answer.key == "rest" and f"{rest:.2f}" in choice(one, one.answer)
    if one.form == "which":
        column = pattern[one.layer, one.head, :, one.key].sum()
        heads = pattern[one.layer, :, one.token, one.key].sum()
        assert min(abs(column - 1), abs(heads - 1)) >= 0.1 - CLOSE
        return one.answer.key == "row"
    return one.form == "untrained" and one.answer.key == "softmax"


def convex(one, context):
    """For any weights that sum to 1, drawn at random, not for these alone."""
    attention = attention_of(one, context.recording)
    value = np.asarray(attention.v[one.layer, one.head], np.float64)
    value = value[attention.allowed[one.layer, one.token]]
    weights = np.random.default_rng(7).dirichlet(np.ones(len(value)), 100)
    longest = np.linalg.norm(value, axis=1).max()
    assert np.linalg.norm(weights @ value, axis=1).max() <= longest
    assert dict(one.slots)["length"] <= longest + CLOSE
    return one.answer.key == {"never": "longer", "hard": "value"}[one.form]


def masked(one, context):
    attention = attention_of(one, context.recording)
    allowed = attention.allowed.all(axis=0)
    causal = not allowed[0, -1]
    tokens = {label: k for k, label in enumerate(context.recording.stream(one.stream).tokens)}
    if one.form in ("forbid", "would"):
        assert causal == (one.form == "forbid")
        edits = "" if causal else "WithMask"
        peak = attention_of(one, run_again(context, edits=edits)).pattern.max(axis=(0, 1))
        pairs = [(tokens[each.word], tokens[each.other]) for each in one.choices]
        zeros = [peak[pair] == 0 for pair in pairs]
        return zeros == [k == one.right for k in range(len(pairs))]
    row = allowed[one.token]
    if causal:
        return (
            one.answer.key == "before"
            and not row[one.token + 1 :].any()
            and row[: one.token + 1].all()
        )
    return one.answer.key == "all" and row.all()


def alone(one, context):
    """With every head out, another word changes nothing at a token, in any own model: a word that
    heads could read."""
    if one.form == "alone":
        assert attention_of(one, context.recording).allowed[0, one.token, one.key]
    if one.form == "alone" and dict(one.address).get("edits"):
        edits = dict(one.address)["edits"]
        text = context.run.text
        start, end = context.recording.stream(one.stream).spans[one.key]
        word = text[start:end].strip()
        other = next(w for w in ("dog", "red", "two") if w != word)
        first, second = (
            run_again(context, text=each, edits=edits).stream(one.stream)
            for each in (text, text[:start] + text[start:end].replace(word, other) + text[end:])
        )
        if len(first.tokens) == len(second.tokens):
            assert np.abs(first.resid[-1, one.token] - second.resid[-1, one.token]).max() < 1e-3
    return one.answer.key == {"cannot": "bring", "same": "nothing", "alone": "nothing"}[one.form]


def received(one, context):
    """On the average of all other words that can attend to each, signs not among them, a token of
    theirs after the other."""
    recording = context.recording
    attention = attention_of(one, recording)
    rows, keys = groups(recording, attention)
    matrix = between(one, recording, one.layer, one.head)
    sizes = [len(row) for row in spans(rows)]
    is_self = attention.query == attention.key

    def of(token: int) -> tuple[float, float]:
        column = at(keys, token)
        given = [
            (sizes[row], matrix[row, column])
            for row, tokens in enumerate(spans(rows))
            if not rows.special[row]
            and is_word(rows.labels[row])
            and not (is_self and row == column)
            and attention.allowed[0][np.ix_(tokens, spans(keys)[column])].any()
        ]
        total = sum(size * weight for size, weight in given)
        return total / sum(size for size, _ in given), total

    text = ~np.asarray(keys.special, bool) & np.array([is_word(each) for each in keys.labels])
    can = attention.allowed[0][np.ix_(rows.starts, keys.starts)]
    starts = [int(keys.starts[each]) for each in np.flatnonzero(text) if can[:, each].sum() > 3]
    both = {token: of(token) for token in {*starts, one.key}}
    assert both[one.key][1] == max(total for _, total in both.values()), one
    second, most = sorted(mean for mean, _ in both.values())[-2:]
    assert most == pytest.approx(both[one.key][0]) and most >= 1.5 * second - CLOSE, one
    slots = dict(one.slots)
    assert slots["given"] == pytest.approx(most, abs=CLOSE)
    assert slots["less"] <= second + CLOSE, "no other word gets more"
    return one.answer.key == "key"


def follows(one, context):
    """The pronoun attends to the noun most of all words, and to the other one less."""
    rows, keys = groups(context.recording, attention_of(one, context.recording))
    row = between(one, context.recording, one.layer, one.head)[at(rows, one.token)]
    best, slots = row[at(keys, one.key)], dict(one.slots)
    assert best == pytest.approx(row.max()) and best == pytest.approx(slots["given"], abs=CLOSE)
    assert slots["less"] <= np.sort(row)[-2] + CLOSE
    assert best - slots["less"] >= 0.2 - CLOSE and one.words[1] == keys.labels[at(keys, one.key)]
    return one.answer.key == "nothing"


REASONS = {
    kinds.LOOKS: follows,
    kinds.RECEIVED: received,
    kinds.BACK: rule,
    kinds.AHEAD: rule,
    kinds.HEADS: whose,
    kinds.SCALE: scaled,
    kinds.POSITIONS: positions,
    kinds.RESIDUAL: residual,
    kinds.NORM: norm,
    kinds.SWAPPED: swapped,
    kinds.CHANGED: stays,
    kinds.ADDED: added,
    kinds.SUM: sums,
    kinds.CONVEX: convex,
    kinds.MASK: masked,
    kinds.FFN: alone,
}


YEARS = "Shyam stayed in Nepal until he was twenty years old, and then he moved to India."


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("text", [YEARS, *lines()[::8]])
def test_what_is_told_to_come_second_is_what_the_model_says_second(text: str) -> None:
    """In the place of every word that is hidden, whether a word comes second or a full stop."""
    context = MeasureContext.of(Run("encoder", text))
    model, stream = read_once("encoder"), context.recording.streams[0]
    on = quiz_reasons.AskedSentence.of(context)
    made = list(quiz_reasons.predicted_words(context))
    assert made
    for one in made:
        scores = model.logits(
            model.record(text, edits=from_line(one.edits)), stream.name, one.token
        ).astype(np.float64)
        p = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        first, second = np.argsort(-p)[:2]
        words = model.labels([first, second])
        assert (one.answer.word, one.second.word) == tuple(each.strip() for each in words)
        assert one.margin == pytest.approx(p[first] - p[second], abs=CLOSE)
        assert f"“{words[1].strip()}” is second" in says(one), on.words[one.token]


def test_a_word_that_the_mask_hides_is_the_reason_why_no_weight_changes() -> None:
    """“tired” comes after “it”: in the decoder no weight of “it” can depend on it."""
    forms = {"encoder": Counter[str](), "decoder": Counter[str]()}
    for text in ("The animal didn't cross the street because it was too tired.", *CHANGED):
        for model, seen in forms.items():
            context = MeasureContext.of(Run(model, text))
            for one in quiz_reasons.changed_word(quiz_reasons.AskedSentence.of(context)):
                check(one, context, [])
                seen[one.form] += 1
    assert forms["decoder"]["masked"] and not forms["decoder"]["stays"]
    assert forms["encoder"] and not forms["encoder"]["masked"]


CHANGED = (
    "The dog barked at the cat because it was angry.",
    "The child ate the apple because it was hungry.",
    "My brother asked the teacher because he was happy to see him again.",
)


def test_what_is_right_cannot_be_told_by_its_letter_or_its_length() -> None:
    every = [one for model, text in taken() for one in asked(model, text)[1]]
    four = [one for one in every if len(one.choices) == 4]
    assert len(four) > 500
    places = Counter(one.right for one in four)
    assert all(0.22 < places[at] / len(four) < 0.28 for at in range(4)), places
    names = {one: [len(choice(one, each)) for each in one.choices] for one in four}
    for ends in (max, min):
        told = [
            lengths[one.right] == ends(lengths) and lengths.count(lengths[one.right]) == 1
            for one, lengths in names.items()
        ]
        assert np.mean(told) < 0.4, ends


@pytest.mark.parametrize(
    "text",
    ["The cat saw the dog, and the dog saw the cat.", "The capital of France is Paris. Is it?"],
)
def test_a_text_that_repeats_its_words_is_asked_for_reasons(text: str) -> None:
    _, made, _ = asked("decoder", text)
    assert sum(one.is_reason for one in made) >= 8


def test_the_word_behind_a_text_is_of_its_language() -> None:
    assert set(quiz_reasons.ADDED_WORDS) == {"", *word_classes.languages()}
    for text, language in (
        ("Die Kinder hatten den Schlüssel in der Küche vergessen.", "de"),
        ("The children had left the key in the kitchen.", "en"),
    ):
        context = MeasureContext.of(Run("minilm", text))
        made = list(quiz_reasons.added_word(quiz_reasons.AskedSentence.of(context)))
        (added,) = [one.text.removeprefix(f"{text} ") for one in made]
        assert added in quiz_reasons.ADDED_WORDS[language]


def test_a_law_is_asked_in_another_way_of_another_sentence() -> None:
    for kind in (kinds.SUM, kinds.FFN, kinds.SCALE, kinds.MASK, kinds.CONVEX):
        forms = Counter(
            one.form
            for model, text in taken()
            if model == "decoder"
            for one in asked(model, text)[1]
            if one.kind == kind
        )
        assert kind == kinds.CONVEX or len(forms) >= 2, (kind, forms)


def test_the_same_text_asks_the_same_and_another_order_comes_with_another_text() -> None:
    text = lines()[0]
    context, made, said = asked("encoder", text)
    assert questions(context, likeliest=said) == made
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
        made = questions(MeasureContext.of(Run(model, text)))
        assert len(made) >= 8, text
        for each in made:
            for one in each.choices:
                said = re.sub(r" \(\d+\)$", "", choice(each, one))
                if one.word and not one.key and each.kind != kinds.MASKED:
                    assert said in text and re.search(r"[\w\U0001f300-\U0001faff]", said), said
            assert "UNK" not in ask(each) + says(each)


def test_the_sheet_holds_all_it_needs_and_no_markup_of_the_text() -> None:
    text = "The <img src=x onerror=alert(1)> animal & the <b>street</b> were too tired to cross it."
    context, made, _ = asked("encoder", text)
    recording = context.recording
    formulas = formula_lines(ON_SHEET, context, {})
    said = sheet(made, context, "encoder", formulas)
    tags = re.findall(r"<([a-z]\w*)([^>]*)", said)
    names = [name for name, _ in tags]
    assert not {"script", "img", "link", "iframe", "b"} & set(names)
    assert not [more for _, more in tags if re.search(r"\b(src|href|on\w+)\s*=", more)]
    assert names.count("li") == len(made) * 2 + sum(len(one.choices) for one in made)
    assert said.count("<strong>") == len(made) >= N_QUESTIONS
    assert recording.model.fingerprint in said and len(formulas) >= 8
    assert names.count("math") > 2 * len(formulas) and names.count("figure") == 2 * len(formulas)


def test_the_sheet_has_room_for_a_name_and_answers_on_pages_of_their_own() -> None:
    context, made, _ = asked("encoder", "Ram pushed Hari because he was angry.")
    said = sheet(made, context, "encoder")
    before, _, after = said.partition("<h2>")
    assert 'class="name"' in before and "h2 { font-size: 1.25rem; break-before: page;" in before
    reasons = [says(one) for one in made]
    assert not any(reason in before for reason in reasons)
    drawn = [one for one in made if one.head >= 0]
    assert len(drawn) >= 4 and after.count('<svg class="head"') == len(drawn)
    pictures = sum(bool(each.picture) for one in made for each in one.choices)
    pictures += sum(one.shows_head for one in made)  # beside the pattern of its head
    assert before.count("<svg ") == pictures > 0
    for token in ("Ram", "pushed", "angry", "[CLS]"):
        assert after.count(f">{token}</text>") == 2 * len(drawn), (
            "rows and columns have their words"
        )


@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_any_text_gives_questions_or_none(model: str) -> None:
    texts = tuple(AWKWARD.values())
    for text in texts if model == "encoder" else in_turn(texts, 2, model):
        context = MeasureContext.of(Run(model, text[:300]))
        for one in questions(context):
            assert ask(one) and says(one) and "\n" not in ask(one)
            check(one, context, [])
    repeated = "The red fox saw a bird near the river. The red fox saw a bird near the river."
    assert len(questions(MeasureContext.of(Run(model, repeated)))) == N_QUESTIONS


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_part_that_is_taken_out_is_out_where_the_question_leads(model: str) -> None:
    """The numbers of the reason are those of the page that is led to."""
    for text in lines()[:9]:
        context, made, _ = asked(model, text)
        for one in made:
            chosen = dict(one.address)
            if one.kind != kinds.SCALE or one.form == "shift":
                continue
            assert (one.page, chosen["layer"], chosen["head"]) == (
                "edit",
                f"{one.layer}",
                f"{one.head}",
            )
            edited = read_once(model).record(text, edits=from_line(chosen["edits"]))
            pattern, rows = rows_of(one, edited)
            after = pattern[rows].max(axis=-1).mean()
            assert dict(one.slots)["after"] == pytest.approx(after, abs=SHARP)
            (edit,) = from_line(chosen["edits"])
            scale = attention_of(one, context.recording).scale[one.layer]
            assert (
                one.form == "out"
                or isinstance(edit, ScaledBy)
                and edit.divisor == pytest.approx(4 / scale)
            )


def test_the_page_asks_what_was_computed() -> None:
    app = page_at("classroom", text=lines()[1])
    protos = [each.proto for each in on_page(clean(app))]
    (drawn,) = (each for each in protos if each.component_name == "headlight.questions")
    items = codec.decode(drawn.bytes)[0]["items"]
    assert len(items) == N_QUESTIONS
    for each in items:
        assert app_address(each["to"]) and "text=" in each["to"]
        sent = {name: value for name, value in each.items() if name != "measured"}
        question = parse_question(sent)
        assert question is not None and question["right"] == each["right"]
        assert bool(question.get("model")) == bool(question.get("covers"))
        typed = parse_question(sent | {"free": True})
        assert typed is not None and typed["free"] and typed["right"] == -1


# ---- a game against the model --------------------------------------------------------------------


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_a_guess_is_of_what_the_model_predicts_at_that_word(model: str) -> None:
    text = lines()[1]
    context = MeasureContext.of(Run(model, text))
    loaded_model, stream = read_once(model), context.recording.streams[0]
    made = guesses(context, of_heads=False)
    assert len(made) >= 3 and [one.token for one in made] == sorted(one.token for one in made)
    for one in made:
        assert one.covers and one.page == "word"
        if model == "encoder":
            values, rivals = filled(one, context, [])
            assert [each.value for each in one.choices] == pytest.approx(values, abs=CLOSE)
        else:
            scores = loaded_model.logits(context.recording, "decoder", one.token).astype(np.float64)
            best = stream.tokens[one.token], loaded_model.labels([int(scores.argmax())])[0]
            assert one.answer.word.startswith(best[1].strip()), best
            assert text[: int(stream.spans[one.token][1])].endswith(dict(one.slots)["before"][-5:])
    of_heads = guesses(context, of_heads=True)
    assert {one.kind for one in of_heads} == {kinds.LOOKS} and len(of_heads) >= 4
    for one in of_heads:
        check(one, context, [])


def test_the_answers_and_so_the_score_stand_in_the_link() -> None:
    app = page_at("classroom", text=lines()[1], quiz="Words")

    def header() -> dict:
        protos = [each.proto for each in on_page(clean(app))]
        (drawn,) = (each for each in protos if each.component_name == "headlight.questions")
        return codec.decode(drawn.bytes)[0]

    token = header()["token"]
    assert header()["answered"] == "" and all(item["covers"] for item in header()["items"])
    app = page_at("classroom", text=lines()[1], quiz="Words", answered=f"{token[:6]}.B-A")
    assert header()["answered"] == "B-A"
    app = page_at("classroom", text=lines()[2], quiz="Words", answered=f"{token[:6]}.B-A")
    assert header()["answered"] == "", "of another text"


# ---- what a class does not see before the answer -------------------------------------------------


@pytest.mark.parametrize(
    ("model", "text", "word"),
    [
        ("decoder", "Shyam grew up in Nepal so he now speaks fluent", "Nepali"),
        ("encoder", "The animal didn't [MASK] the street because it was too tired.", "cross"),
    ],
)
def test_no_panel_tells_a_prediction_that_is_not_covered(model: str, text: str, word: str) -> None:
    run, told = Run(model, text), set()
    for name in spec.panel_names():
        if name.startswith(("corpus.", "embeddings.")):  # other words, this one by chance
            continue
        try:
            panel = spec.PANELS[name](run)
        except ValueError:
            continue
        header = codec.decode(panel.encode())[0]
        words = json.dumps(header, ensure_ascii=False) + panel.csv()
        if re.search(rf"\b{word}\b", words):
            told.add(name)
            assert header.get("predicts"), name
    assert "predictions.word" in told


def test_a_question_whose_numbers_overflow_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    context = MeasureContext.of(Run("encoder", "The animal did not cross the street."))
    kinds_of = lambda: {each.kind for each in quiz_reasons.reasons(context, ())}
    assert kinds.NORM in kinds_of()
    rerun = MeasureContext.rerun

    def overflows(self: MeasureContext, edits: str, *given: object) -> Recording:
        if "WithoutNorm" in edits:
            raise NotFinite("3.ffn.wrote")
        return rerun(self, edits, *given)

    monkeypatch.setattr(MeasureContext, "rerun", overflows)
    assert kinds.NORM not in (left := kinds_of()) and len(left) > 3, "the others are"


def test_a_game_from_a_head_begins_with_that_head() -> None:
    context = asked("encoder", "The animal didn't cross the street because it was too tired.")[0]
    attention = context.recording.attention[0].name
    made = guesses(context, True, (attention, 1, 5))
    own = [(one.layer, one.head) == (1, 5) for one in made]
    assert own[0] and own == sorted(own, reverse=True) and len(made) >= 4
    of_head = [one.token for one, is_own in zip(made, own) if is_own]
    assert of_head == sorted(set(of_head))
    assert guesses(context, True, (attention, 9, 9)) == guesses(context, True)


def test_the_games_are_one_press_from_heads_and_from_predictions() -> None:
    links = [one.proto for one in clean(page_at("heads", layer="1", head="5")).get("page_link")]
    (game,) = [one for one in links if one.label == "Guess what this head chooses"]
    assert {"quiz=Heads", "layer=1", "head=5"} <= {*game.query_string.split("&")}
    links = [one.proto for one in clean(page_at("word", model="encoder")).get("page_link")]
    (game,) = [one for one in links if one.label == "Guess the word"]
    assert "quiz=Words" in game.query_string.split("&")
    app = clean(page_at("classroom", quiz="Heads", layer="1", head="5"))
    shown = next(
        codec.decode(one.proto.bytes)[0]
        for one in on_page(app)
        if one.proto.component_name == "headlight.questions"
    )
    assert shown["items"][0]["text"].startswith("In layer 1, head 5:")


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ("The cats slept all day because they were tired.", {"cats", "day"}),
        ("Tom bought a bike last week, but he has not ridden it yet.", {"Tom", "bike", "week"}),
        ("The little girl lost her doll and cried because she loved it.", {"girl", "doll"}),
        ("Mary gave John a book and he read it on the same evening.", {"Mary", "John", "book"}),
    ],
)
@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_what_a_pronoun_attends_to_is_asked_where_it_is_clearly_a_noun(
    model: str, text: str, nouns: set[str]
) -> None:
    _, made, _ = asked(model, text)
    assert len(made) == N_QUESTIONS
    pronouns = {"they", "he", "it", "her", "she"}
    for one in made:
        if one.kind == kinds.LOOKS and one.words[0] in pronouns:
            assert one.words[1] in nouns and one.margin >= 0.2, one.words


def test_a_pronoun_is_asked_about_where_all_tested_heads_say_its_noun() -> None:
    said = 0
    for text in lines()[::12]:
        _, made, _ = asked("encoder", text)
        recording = Run("encoder", text).recording()
        for one in made:
            if (one.kind, one.form) != (kinds.LOOKS, "pronoun"):
                continue
            vote = RecordingFacts(recording).vote_on(one.attention, one.token)
            named = {each.noun for each in vote.ballots}
            grouped, _ = groups(recording, recording.attention[0])
            assert named == {int(grouped.of[one.key])}, text
            said += 1
    assert said


def test_a_masked_word_is_asked_for_and_not_told() -> None:
    seen = 0
    for text in lines()[::8]:
        _, made, _ = asked("encoder", text)
        for one in made:
            if one.kind == kinds.MASKED:
                stream = Run("encoder", text).recording().streams[0]
                start, end = map(int, stream.spans[one.token])
                assert f"“{text[:start]}▢{text[end:]}”" in ask(one)
                seen += 1
    assert seen


def test_no_two_lessons_ask_the_same_in_the_same_words() -> None:
    """Of the law that holds for every text alike few sheets ask, no question is on every sheet word
    for word, and of exchanged words a sheet asks once."""
    texts = lines()[::6]
    sheets = [asked("encoder", text)[1] for text in texts]
    for kind in (kinds.RESIDUAL, kinds.NORM):
        assert 0 < sum(kind in {one.kind for one in each} for each in sheets) < 0.7 * len(texts)
    same = Counter(ask(one) for each in sheets for one in each)
    assert max(same.values()) <= 0.6 * len(texts), same.most_common(3)
    written = [text.count("Write “today” after") for text in same.elements()]
    assert sum(written) < 0.4 * len(texts)
    for each in sheets:
        assert sum("xchange" in ask(one) for one in each) <= 1
        of_rule = {(one.layer, one.head) for one in each if one.form == "rule"}
        assert not of_rule & {
            (one.layer, one.head) for one in each if one.form.startswith("previous")
        }
    forms = Counter((one.kind, one.form) for each in sheets for one in each)
    for kind, least in ((kinds.BACK, 2), (kinds.HEADS, 2), (kinds.ADDED, 2)):
        assert len({form for of, form in forms if of == kind}) >= least, forms


def test_where_a_weight_goes_is_asked_beside_the_pattern_of_its_head() -> None:
    for text in lines()[::10]:
        context, made, _ = asked("encoder", text)
        for one in made:
            if one.form == "rule":
                assert quiz_view.item(one, context.recording).head
            if one.kind == kinds.SWAPPED:
                pattern = context.recording.attention[0].pattern[one.layer, one.head]
                shown = quiz_view.head_pattern(one, context.recording)
                assert shown == quiz_reasons.picture(pattern)
                questions_only = sheet((one,), context, "encoder", []).partition("<h2")[0]
                assert "svg" in questions_only
                return
    pytest.fail("no such question")
