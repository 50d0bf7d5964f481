"""Sentences of the quiz: questions, explanations with the answers, and the measured values of each
answer. Plain text, the reader's words in quotation marks; callers escape it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from explorer.analysis.measure import MeasureContext
from explorer.analysis.quiz_question import MASK, MASKED, NEXT, AnswerOption, Question
from explorer.figures.formatting import Written, hundredths, tenths
from explorer.text.findings import LONGEST, quoted
from explorer.text.formulas import html
from explorer.wording.markdown_escape import in_html, of_text

HERE = Path(__file__).parent
# Attentions that a text of its own does not name.
SIDES = {
    "cross": "in the cross-attention",
    "decoder self": "in the decoder",
    "encoder self": "in the encoder",
}
NAMES_MODEL = (NEXT, MASKED, MASK)  # kinds that say whose words they are about
# How the number of an answer is written.
NUMBERS: Mapping[str, Callable[[float], str]] = {
    "weight": hundredths,
    "probability": tenths,
}
UNKNOWN = re.compile(r" = \[UNK\](?=$| \(\d+\)$)")  # after a word that a vocabulary lacks
HIDDEN = re.compile(r"(?<=\S)U\+(200D|FE0F)")  # what joins the parts of one sign


@cache
def patterns() -> dict[str, dict[str, Any]]:
    """Each kind's (and form's) `ask` and `says`, the `number` of an answer, and `answers` that are
    sentences."""
    return tomllib.loads((HERE / "quiz.toml").read_text("utf-8"))


def pattern(one: Question) -> dict[str, Any]:
    """The templates of a question."""
    return patterns()[f"{one.kind}-{one.form}" if one.form else one.kind]


def ask(one: Question) -> str:
    """The question."""
    question = pattern(one)["ask"].format(**_parts(one))
    side = SIDES.get(one.attention, "")
    if not side or one.kind in NAMES_MODEL:
        return question
    return f"{side[0].upper()}{side[1:]}: {question[0].lower()}{question[1:]}"


def says(one: Question) -> str:
    """The reason that is given with the answer, with its numbers."""
    return pattern(one)["says"].format(**_parts(one))


def choice(one: Question, option: AnswerOption) -> str:
    """An answer as it is read."""
    if not option.key:
        return " ".join(_plain(option.name).split())[: LONGEST + 6] or "␣"
    parts = _parts(one)
    if option.word:
        parts |= {"word": _quoted(option.word), "other": _quoted(option.other)}
    return pattern(one)["answers"][option.key].format(**parts)


def _quoted(word: str) -> str:
    return quoted(_plain(word))


def _plain(word: str) -> str:
    """A word as the text has it, without what a model's vocabulary lacks of it."""
    return HIDDEN.sub(lambda match: chr(int(match[1], 16)), UNKNOWN.sub("", word))


def measured(one: Question, option: AnswerOption) -> str:
    """The measured value of an answer; "" where the reason says it."""
    return _number(one, option.value) if not option.key else ""


def _parts(one: Question) -> dict[str, str]:
    second = one.second
    words = [_quoted(word) for word in one.words]
    slots = {name: _written(value) for name, value in one.slots}
    return {
        "layer": str(one.layer),
        "head": str(one.head),
        "word": words[0] if words else "",
        "other": words[1] if len(words) > 1 else "",
        "answer": _quoted(one.answer.word),
        "value": _number(one, one.answer.value),
        "second": _quoted(second.word),
        "next": _number(one, second.value),
        "right_layer": str(one.answer.layer),
        "right_head": str(one.answer.head),
        "margin": hundredths(one.margin),
        "from": _quoted(one.answer.word),
        "to": _quoted(one.answer.other),
        **slots,
    }


def _written(value: str | float) -> str:
    """A slot as it is written: one that has a text of its own, else a weight."""
    if isinstance(value, Written):
        return value.text
    return _plain(value) if isinstance(value, str) else hundredths(value)


def _number(one: Question, value: float) -> str:
    return NUMBERS[pattern(one).get("number", "weight")](value)


# ---- to print ------------------------------------------------------------------------------------

LETTERS = "ABCDEF"
MOST_LABELS = 26  # tokens of a text whose heads are drawn with a label for each
CELL, LABEL = 12, 11  # of a drawn head, in pixels: a cell, and its letters
STYLE = """
@page { margin: 18mm 16mm; }
body { font: 11.5pt/1.45 Georgia, "Times New Roman", serif; color: #000; background: #fff;
  max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
@media print { body { margin: 0; padding: 0; max-width: none; } }
h1 { font-size: 1.5rem; margin: 0 0 0.75rem; }
h2 { font-size: 1.25rem; break-before: page; margin: 0 0 0.75rem; }
h3 { break-after: avoid; }
.name { display: flex; align-items: end; gap: 0.5rem; margin: 0 0 1.25rem; }
.name span { flex: 1; border-bottom: 1px solid #000; height: 1.25rem; }
blockquote { margin: 0 0 1rem; padding-left: 0.75rem; border-left: 3px solid #999;
  overflow-wrap: anywhere; }
.about { color: #444; font-size: 0.9rem; }
li { margin-bottom: 0.9rem; break-inside: avoid; }
ol ol { list-style: upper-alpha; margin-top: 0.25rem; }
ol ol li { margin: 0.15rem 0; overflow-wrap: anywhere; }
ol.pictures { display: flex; flex-wrap: wrap; gap: 0.5rem 2.5rem; }
ol.pictures svg { display: block; width: 6.5rem; height: 6.5rem; }
.head { display: block; margin: 0.5rem 0 0; max-width: 100%; height: auto; }
svg { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
bdi { unicode-bidi: isolate; }
figure { margin: 0 0 0.9rem; break-inside: avoid; }
figcaption { font-size: 0.9rem; }
math { width: fit-content; margin: 0.25rem 0; font-size: 1.1em; }
dl { columns: 2; margin: 0; font-size: 0.85rem; }
dt, dd { display: inline; margin: 0; }
dt math { display: inline math; }
dd::after { content: ""; display: block; }
"""
# Those on the printed page, as far as they are about the model.
ON_SHEET = (
    *("attention", "score", "softmax", "weighted-sum", "concatenation", "added"),
    *("layer-norm", "rms-norm", "ffn", "smooth-ffn", "gated-ffn", "embedding", "chain"),
)


def sheet(
    selected: Sequence[Question],
    context: MeasureContext,
    model: str,
    formulas: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The printed page: a line for a name, the sentence, the questions and the formulas (those of
    `formula_lines`); on pages of their own the answers with their reasons, the measured values and
    the heads that are asked about, and the formulas with numbers."""
    words, recording = patterns()["sheet"], context.recording
    pictures = [_head(one, context) if one.shows_head else "" for one in selected]
    questions = "".join(
        f"<li>{_text(ask(one))}{head}{_choices(one)}</li>" for one, head in zip(selected, pictures)
    )
    answers = "".join(f"<li>{_answer(one)}{_head(one, context)}</li>" for one in selected)
    about = words["about"].format(model=model, weights=recording.model.fingerprint)
    blank, filled = (
        f"<h3>{words[name]}</h3>{''.join(_formula(each, part) for each in formulas)}"
        if formulas
        else ""
        for name, part in (("formulas", "lines"), ("numbers", "numbers"))
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Questions · Headlight</title>'
        f"<style>{STYLE}</style></head><body>"
        f'<p class="name">{words["name"]}<span></span>{words["date"]}<span></span></p>'
        f"<h1>{words['title']}</h1>"
        f"<blockquote>{of_text(escape(recording.text))}</blockquote>"
        f'<p class="about">{_text(about)}</p>'
        f"<ol>{questions}</ol>{blank}<h2>{words['answers']}</h2><ol>{answers}</ol>{filled}"
        "</body></html>"
    )


def _choices(one: Question) -> str:
    """The answers to choose from, those of pictures side by side."""
    if not one.answer.picture:
        items = "".join(f"<li>{_text(choice(one, each))}</li>" for each in one.choices)
        return f"<ol>{items}</ol>"
    items = "".join(f"<li>{_picture(each.picture)}</li>" for each in one.choices)
    return f'<ol class="pictures">{items}</ol>'


def _picture(cells: str) -> str:
    """A small pattern, a square for each weight."""
    rows = cells.split("/")
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1" fill-opacity="{int(digit) / 9:.2f}"/>'
        for y, row in enumerate(rows)
        for x, digit in enumerate(row)
        if digit != "0"
    )
    n = len(rows)
    frame = f'<rect width="{n}" height="{n}" fill="none" stroke="#777" stroke-width="0.08"/>'
    return f'<svg viewBox="-0.1 -0.1 {n + 0.2} {n + 0.2}">{squares}{frame}</svg>'


def _head(one: Question, context: MeasureContext) -> str:
    """The matrix of the head that is asked about, with its tokens; "" where there is none, or the
    text is too long for it."""
    recording = context.recording
    attention = next((each for each in recording.attention if each.name == one.attention), None)
    if attention is None or one.layer < 0 or one.head < 0:
        return ""
    rows, keys = (recording.stream(name).tokens for name in (attention.query, attention.key))
    if max(len(rows), len(keys)) > MOST_LABELS:
        return ""
    left = 8 + round(0.6 * LABEL * max(map(len, rows)))
    above = 8 + round(0.6 * LABEL * max(map(len, keys)))
    pattern = attention.pattern[one.layer, one.head].astype(float)
    cells = "".join(
        f'<rect x="{left + x * CELL}" y="{above + y * CELL}" width="{CELL}" height="{CELL}" '
        f'fill-opacity="{weight:.2f}"/>'
        for y, row in enumerate(pattern.tolist())
        for x, weight in enumerate(row)
        if weight >= 0.005
    )
    names = "".join(
        f'<text x="{left - 4}" y="{above + (y + 0.8) * CELL:g}" text-anchor="end">'
        f"{escape(name)}</text>"
        for y, name in enumerate(rows)
    ) + "".join(
        f'<text transform="translate({left + (x + 0.8) * CELL:g} {above - 4}) rotate(-90)">'
        f"{escape(name)}</text>"
        for x, name in enumerate(keys)
    )
    high, wide = len(rows) * CELL, len(keys) * CELL
    frame = (
        f'<rect x="{left}" y="{above}" width="{wide}" height="{high}" fill="none" stroke="#777"/>'
    )
    about = patterns()["sheet"]["picture"].format(layer=one.layer, head=one.head)
    return (
        f'<svg class="head" width="{left + wide + 2}" height="{above + high + 2}" '
        f'viewBox="0 0 {left + wide + 2} {above + high + 2}" font-size="{LABEL}" '
        f'font-family="sans-serif">{cells}{frame}{names}</svg>'
        f'<span class="about">{escape(about)}</span>'
    )


def _formula(formula: Mapping[str, Any], part: str) -> str:
    """A formula: its lines with the meaning of its symbols, or its numbers."""
    drawn = "".join(map(html, formula[part]))
    means = "".join(
        f"<dt>{html(symbol)}</dt> <dd>{escape(text)}</dd>" for symbol, text in formula["symbols"]
    )
    legend = f"<dl>{means}</dl>" if part == "lines" else ""
    title = f"<figcaption>{escape(formula['title'])}</figcaption>"
    return f"<figure>{title}{drawn}{legend}</figure>" if drawn else ""


def _answer(one: Question) -> str:
    others = ", ".join(
        f"{_text(choice(one, each))} {_text(measured(one, each))}"
        for each in one.choices
        if measured(one, each)
    )
    numbers = f' <span class="about">({others})</span>' if others else ""
    own = f"{_text(choice(one, one.answer))} " if one.answer.key else ""
    return f"<strong>{LETTERS[one.right]}</strong>. {own}{_text(says(one))}{numbers}"


def _text(text: str) -> str:
    return f"<bdi>{in_html(text)}</bdi>" if " " in text else of_text(escape(text))
