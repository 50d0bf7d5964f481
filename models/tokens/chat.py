"""Texts that are chats: their messages by role, and the part of a chat that each token is.

A text whose first line begins with "system:", "user:" or "assistant:" is a chat, for a model that
has a template (models/tokens/chat_template.py); each line that begins so begins a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from models.contract.recording import Recording

ROLES = ("system", "user", "assistant")
START = re.compile(rf"^[ \t]*({'|'.join(ROLES)})[ \t]*:[ \t]*", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Message:
    """One message of a chat: its role, and where its content stands in the text, in characters."""

    role: str
    start: int
    end: int


def messages(text: str) -> tuple[Message, ...]:
    """The messages of a chat, () for a text that is none."""
    starts = list(START.finditer(text))
    if not starts or text[: starts[0].start()].strip():
        return ()
    ends = [each.start() for each in starts[1:]] + [len(text)]
    parts = []
    for match, end in zip(starts, ends):
        content = text[match.end() : end]
        begin = match.end() + len(content) - len(content.lstrip())
        parts.append(Message(match[1].lower(), begin, begin + len(content.strip())))
    return tuple(parts)


def with_answer(text: str, answer: str) -> str:
    """A chat with what its model wrote: a new message of the assistant, or more of its last one,
    as of a pasted template."""
    chat = messages(text)
    if not chat or chat[-1].role == "assistant":
        return text + answer
    return f"{text.rstrip()}\nassistant: {answer.strip()}"


BRACKETS = "‹›"


def template_label(label: str) -> str:
    """The label of a template's own token that a text may have too, such as the name of a role."""
    return f"‹{label}›"


def parts_of(labels: Sequence[str], roles: Sequence[str]) -> tuple[str, ...]:
    """The part of a chat that each token of a recording is, (token): "the question" (the last
    message of the user), "the role names" and "the chat template"; "" for other messages, and for
    every token of a text that is no chat (no `roles`)."""
    if not any(roles):
        return ("",) * len(labels)
    last = max((at for at, role in enumerate(roles) if role == "user"), default=-1)
    first = last
    while first > 0 and roles[first - 1] == "user":
        first -= 1
    names = _role_names(labels, roles)
    return tuple(
        "the role names"
        if at in names
        else "the chat template"
        if not role
        else "the question"
        if first <= at <= last
        else ""
        for at, role in enumerate(roles)
    )


def _between(roles: Sequence[str]) -> Iterator[range]:
    """The runs of a template's own tokens: before the first message, between two, and at the
    end."""
    for is_template, places in groupby(range(len(roles)), lambda at: not roles[at]):
        if is_template:
            run = list(places)
            yield range(run[0], run[-1] + 1)


def _role_names(labels: Sequence[str], roles: Sequence[str]) -> set[int]:
    """The tokens of the template that name the role of a message: the last such name before each
    message and at the end."""
    places: set[int] = set()
    for run in _between(roles):
        before = [labels[at].lower().strip(BRACKETS) for at in run]
        spelled = "".join(before)
        place, name = max((spelled.rfind(each), each) for each in ROLES)
        if place >= 0:
            ends = np.cumsum([len(each) for each in before])
            starts = ends - [len(each) for each in before]
            inside = (starts < place + len(name)) & (ends > place)
            places |= {run[0] + int(each) for each in np.flatnonzero(inside)}
    return places


def message_starts(labels: Sequence[str], roles: Sequence[str]) -> tuple[int, ...]:
    """The tokens at which the messages of a chat begin, the first one aside, in order: the special
    token after the one that ends a message, the template's first token where no special token ends
    one. () for a text that is no chat."""
    runs = list(_between(roles)) if any(roles) else []
    closing = {labels[run[0]] for run in runs if run[0] and labels[run[0]][:1] not in BRACKETS}
    starts = []
    for run in runs:
        special = [at for at in run if labels[at][:1] not in BRACKETS]
        ended = [at for at in special if labels[at] in closing]
        after = [at for at in special if ended and at > ended[-1]]
        if after:
            starts.append(after[0])
        elif run[0]:
            starts.append(run[0])
    return tuple(starts)


def n_messages(recording: Recording) -> int:
    """The number of chat messages in a recording, 0 where its text is no chat for its model."""
    roles = recording.streams[0].roles
    typed = len(messages(recording.text))
    return (typed or sum(bool(role) for role, _ in groupby(roles))) if roles else 0
