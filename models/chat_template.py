"""Chats read in the template that a model was trained on.

The template (Jinja, in a sandbox) may add words of its own. Its tokens have no place in the text
and count as special; those that a text may have too, such as the names of the roles, have labels
in ‹ ›. After a message of the user or the system the assistant's answer begins; a
last message of the assistant is left open, so that the model goes on with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tokenizers
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from models import encoding
from models.chat import Message, messages, template_label
from models.recording import CONTINUES, NotEncoded
from models.tokenizer import Tokenizer, Tokens

NO_SPAN = (-1, -1)
# Characters of the private use area stand for the contents while the template is rendered.
OPEN, CLOSE = "\ue0f0", "\ue0f1"
PLACE = re.compile(f"{OPEN}(\\d+){CLOSE}")


def template_of(folder: Path) -> str:
    """The chat template among a model's files, "" where there is none."""
    try:
        if (file := folder / "chat_template.jinja").exists():
            return file.read_text("utf-8")
        config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    template = config.get("chat_template") if isinstance(config, dict) else None
    return template if isinstance(template, str) else ""


@dataclass(frozen=True)
class ChatTemplate:
    """The template of a model, and its tokenizer."""

    template: str
    tokenizer: Tokenizer

    @cached_property
    def _rules(self) -> tokenizers.Tokenizer:
        """The tokenizer's rules, reading special tokens where the template has them."""
        rules = encoding.from_text(self.tokenizer.bpe.to_str())
        rules.encode_special_tokens = False
        return rules

    def _label(self, token: int) -> str:
        """The label of a token of the template's own, which no token of a message has."""
        label = self.tokenizer.label(token).removeprefix(CONTINUES)
        return label if token in self.tokenizer.special else template_label(label)

    def render(self, text: str, chat: Sequence[Message]) -> list[str | Message]:
        """The template's own pieces and the messages between them, in order. Raises NotEncoded
        where the template refuses the order of the roles."""
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        ends = (self.tokenizer.bos, self.tokenizer.eos)
        bos, eos = ("" if each is None else self.tokenizer.label(each) for each in ends)
        open_answer = chat[-1].role == "assistant"
        try:
            rendered = environment.from_string(self.template).render(
                messages=[
                    {"role": each.role, "content": f"{OPEN}{at}{CLOSE}"}
                    for at, each in enumerate(chat)
                ],
                add_generation_prompt=not open_answer,
                bos_token=bos,
                eos_token=eos,
            )
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise NotEncoded(
                "The chat template of this model does not take these roles in this order; change "
                "the roles at the beginnings of the lines."
            ) from error
        parts = PLACE.split(rendered)
        pieces: list[str | Message] = []
        for at, part in enumerate(parts):
            pieces.append(chat[int(part)] if at % 2 else part)
        return pieces[:-1] if open_answer else pieces

    def tokens(self, text: str, limit: int) -> tuple[Tokens, int] | None:
        """A chat as the model reads it, at most `limit` tokens, and how many were dropped at its
        end; None for a text that is no chat. Raises NotEncoded as `render` does."""
        chat = messages(text)
        if not chat:
            return None
        ids: list[int] = []
        labels: list[str] = []
        spans: list[tuple[int, int]] = []
        special: list[bool] = []
        for piece in self.render(text, chat):
            if isinstance(piece, str):
                part = encoding.encode(self._rules, piece, special=False).ids
                ids += part
                labels += map(self._label, part)
                spans += [NO_SPAN] * len(part)
                special += [True] * len(part)
                continue
            content, _ = self.tokenizer.tokens(text[piece.start : piece.end], 10**9, (), ())
            ids += content.ids
            labels += content.labels
            spans += [(start + piece.start, end + piece.start) for start, end in content.spans]
            special += content.special
        first = slice(limit)
        tokens = Tokens(
            tuple(ids[first]), tuple(labels[first]), tuple(spans[first]), tuple(special[first])
        )
        return tokens, max(0, len(ids) - limit)


def _refuse(reason: str) -> None:
    raise ValueError(reason)
