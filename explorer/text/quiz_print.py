"""Questions and answers as one HTML page to print: it holds all that it needs, and loads
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from explorer.analysis.quiz import Question
from explorer.text import quiz

LETTERS = "ABCDEF"
STYLE = """
body { font: 12pt/1.45 Georgia, "Times New Roman", serif; color: #000; background: #fff;
  max-width: 42rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; break-before: page; }
blockquote { margin: 0 0 1rem; padding-left: 0.75rem; border-left: 3px solid #999;
  overflow-wrap: anywhere; }
.about { color: #444; font-size: 0.9rem; }
li { margin-bottom: 0.9rem; break-inside: avoid; }
ol ol { list-style: upper-alpha; columns: 2; }
ol ol li { margin: 0.15rem 0; overflow-wrap: anywhere; }
bdi { unicode-bidi: isolate; }
"""


def sheet(selected: Sequence[Question], text: str, model: str, fingerprint: str) -> str:
    """The printed page: the sentence and the questions, and on a second page the answers with the
    measured values."""
    questions = "".join(
        f"<li>{_text(quiz.ask(one))}<ol>"
        + "".join(f"<li>{_text(quiz.choice(each))}</li>" for each in one.choices)
        + "</ol></li>"
        for one in selected
    )
    answers = "".join(f"<li>{_answer(one)}</li>" for one in selected)
    about = (
        f"Model {model}, weights {fingerprint}. Headlight computed every number on this sentence."
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Questions · Headlight</title>'
        f"<style>{STYLE}</style></head><body><h1>Questions on one sentence</h1>"
        f'<blockquote dir="auto">{_text(text)}</blockquote><p class="about">{_text(about)}</p>'
        f"<ol>{questions}</ol><h2>Answers</h2><ol>{answers}</ol></body></html>"
    )


def _answer(one: Question) -> str:
    others = ", ".join(
        f"{_text(quiz.choice(each))} {_text(quiz.measured(one, each))}"
        for each in one.choices
        if quiz.measured(one, each)
    )
    numbers = f' <span class="about">({others})</span>' if others else ""
    return f"<strong>{LETTERS[one.right]}</strong>. {_text(quiz.says(one))}{numbers}"


def _text(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"
