"""Texts that are chats: their messages by role, and the part of a chat that each token is.

A text whose first line begins with "system:", "user:" or "assistant:" is a chat, for a model that
has a template (models/chat_template.py); each line that begins so begins a message.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.recording import Recording

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
    contents = [
        (match[1].lower(), match.end(), max(match.end(), len(text[:end].rstrip())))
        for match, end in zip(starts, ends)
    ]
    return tuple(Message(*each) for each in contents)


def with_answer(text: str, answer: str) -> str:
    """A chat with what its model wrote: a new message of the assistant, or more of its last one."""
    if messages(text)[-1].role == "assistant":
        return text + answer
    return f"{text.rstrip()}\nassistant: {answer.strip()}"


def template_label(label: str) -> str:
    """The label of a template's own token that a text may have too, such as the name of a role."""
    return f"‹{label}›"


def _spelling(label: str) -> str:
    """The word of a template's label, in small letters, without its brackets."""
    return label.lower().strip("‹›")


def roles_of(labels: Sequence[str], special: Sequence[bool]) -> tuple[str, ...]:
    """The role whose message each token of a recording belongs to, "" for the template's own,
    (token). A message belongs to the role that the template names last before it."""
    roles: list[str] = []
    before, role = "", ""
    for label, mark in zip(labels, special):
        if mark:
            before += _spelling(label)
        elif before:
            role = max(ROLES, key=before.rfind) if any(each in before for each in ROLES) else ""
            before = ""
        roles.append("" if mark else role)
    return tuple(roles)


def parts_of(labels: Sequence[str], special: Sequence[bool]) -> tuple[str, ...]:
    """The part of a chat that each token of a recording is, (token): "the question" (the last
    message of the user), "the role names" and "the chat template"; "" for other messages, and for
    every token of a text that is no chat."""
    roles = roles_of(labels, special)
    if not any(roles):
        return ("",) * len(labels)
    last = max((at for at, role in enumerate(roles) if role == "user"), default=-1)
    first = last
    while first > 0 and roles[first - 1] == "user":
        first -= 1
    names = _role_names(labels, special)
    return tuple(
        "the role names"
        if at in names
        else "the chat template"
        if mark
        else "the question"
        if first <= at <= last and last >= 0
        else ""
        for at, mark in enumerate(special)
    )


def _role_names(labels: Sequence[str], special: Sequence[bool]) -> set[int]:
    """The tokens of the template that name the role of a message: the last such name before each
    message and at the end."""
    places: set[int] = set()
    start = 0
    for at in range(len(labels) + 1):
        if at < len(labels) and special[at]:
            continue
        before = [_spelling(label) for label in labels[start:at]]
        spelled = "".join(before)
        place, name = max((spelled.rfind(each), each) for each in ROLES)
        if place >= 0:
            ends = np.cumsum([len(each) for each in before])
            starts = ends - [len(each) for each in before]
            inside = (starts < place + len(name)) & (ends > place)
            places |= {start + int(each) for each in np.flatnonzero(inside)}
        start = at + 1
    return places


def message_starts(labels: Sequence[str], special: Sequence[bool]) -> tuple[int, ...]:
    """The tokens at which the messages of a chat begin, the first one aside, in order: the token of
    the template before the name of each role. () for a text that is no chat."""
    if not any(roles_of(labels, special)):
        return ()
    names = _role_names(labels, special)
    firsts = sorted(at for at in names if at - 1 not in names)
    return tuple(at - 1 if special[at - 1] else at for at in firsts if at > 1)


def n_messages(recording: Recording) -> int:
    """The number of chat messages in a recording, 0 where its text is no chat for its model."""
    stream = recording.streams[0]
    is_chat = any(roles_of(stream.tokens, stream.special.tolist()))
    return len(messages(recording.text)) if is_chat else 0
