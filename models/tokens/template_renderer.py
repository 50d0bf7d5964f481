"""Renders chat templates by transformers' own rules in a process of its own, under limits.

A template is a program that came with a model. Jinja's sandbox keeps it from files and from
Python's own objects, and not from endless loops or gigabytes, so each chat is rendered in

    python -m models.tokens.template_renderer

one a line, within seconds of the processor and megabytes. Whatever ends that process is told as one
sentence; the next chat starts another.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from models import child_process
from models.contract.recording import NotEncoded

SECONDS = 2  # of the processor, for one chat
WAIT = 60.0  # seconds for one chat on a busy machine
MEMORY = 256 << 20  # bytes beyond what the process holds at its start
MOST_AROUND = 50_000  # characters that a template may write around the messages
IDLE = 600.0  # seconds after which a process without work is ended
DETAIL = 120  # characters of a template's own words in a message


class Overrun(NotEncoded):
    """A template that does not keep to the limits, on any chat."""


@dataclass(frozen=True)
class Request:
    """A chat to render: (role, content) each, `specials` the names of special tokens that the
    template may write, by role. `is_open`: the last message is to be gone on with, else an answer
    begins. marks: two characters that neither template nor chat have."""

    template: str
    chat: tuple[tuple[str, str], ...]
    specials: tuple[tuple[str, str], ...]
    is_open: bool
    marks: tuple[str, str]


def render(request: Request) -> tuple[str, str]:
    """A chat in its template, and the same with each content between `marks`.

    Raises NotEncoded, one sentence, where the template refuses the roles or fails, and Overrun
    where it takes too long, too much memory, or writes too much."""
    try:
        answer = worker.ask(asdict(request), WAIT)
    except child_process.Unanswered as ended:
        answer = _overrun(
            f"does not end within {SECONDS} seconds"
            if ended.late
            else "takes far more memory than a chat needs, or crashes"
        )
    if problem := answer.get("problem"):
        if not answer.get("overrun"):
            raise NotEncoded(problem)
        worker.close()  # its memory is in pieces
        raise Overrun(problem)
    return answer["plain"], answer["marked"]


def _overrun(what: str) -> dict:
    return {
        "problem": f"The chat template of this model {what}; choose another model.",
        "overrun": True,
    }


# ---- in the other process ----------------------------------------------------


def rendered(request: Request) -> dict:
    """A chat in its template, plain and with marks; or the `problem`, a sentence."""
    from jinja2 import TemplateError

    begin, end = request.marks
    try:
        plain = _render(request, ("", ""))
        size = sum(len(content) for _, content in request.chat)
        if len(plain) > MOST_AROUND + size:
            return _overrun(f"writes {len(plain):,} characters for a chat of {size:,}")
        try:
            marked = _render(request, (begin, end))
        except Exception:  # a template that looks into the contents
            marked = plain
    except MemoryError:
        return _overrun("takes far more memory than a chat needs")
    except RecursionError:
        return _overrun("calls itself without end")
    except Exception as error:  # a program from anywhere fails in any way
        message = " ".join(str(error).split())
        message = message if len(message) <= DETAIL else f"{message[:DETAIL]}…"
        if type(error) is TemplateError:  # what `raise_exception` raises, and nothing else
            return {
                "problem": "The chat template of this model refuses these roles in this order "
                f"(“{message}”); change the roles at the beginnings of the lines."
            }
        return {
            "problem": f"The chat template of this model fails on this chat (“{message}”); write "
            "the text without roles, or choose another model."
        }
    return {"plain": plain, "marked": marked if len(marked) < 2 * len(plain) + 1000 else plain}


def _render(request: Request, around: tuple[str, str]) -> str:
    """The chat as transformers renders it, each content with two characters around it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    begin, end = around
    messages = [{"role": role, "content": begin + each + end} for role, each in request.chat]
    specials: dict[str, Any] = dict(request.specials)
    rendered = render_jinja_template(
        conversations=[messages],
        chat_template=request.template,
        continue_final_message=request.is_open,
        add_generation_prompt=not request.is_open,
        **specials,
    )
    return rendered[0][0]


def prepare() -> None:
    """Import what templates need, and bound this process from then on."""
    _render(Request("{{ messages[0].content }}", (("user", "a"),), (), False, ("", "")), ("", ""))
    child_process.limit_memory(MEMORY)


def answer(request: dict) -> dict:
    """The answer to one request, within its seconds."""
    child_process.limit_seconds_from_now(SECONDS)
    return rendered(Request(**request))


worker = child_process.Worker(__name__, IDLE)

if __name__ == "__main__":
    child_process.serve(prepare, answer)
