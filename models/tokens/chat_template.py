"""Chats read in the template that a model was trained on.

The template is rendered by transformers' own rules in a process apart
(models/tokens/template_renderer.py) and encoded once, as `apply_chat_template` does it. What it
adds to the messages has no place in the text and counts as special; tokens of it that a text may
have too, such as the names of the roles, have labels in ‹ ›. After a message of the user or the
system the assistant's answer begins; a last message of the assistant is left open, so that the
model goes on with it. A special token that a person types into a message is text. A text that is a
whole rendered template is read as such.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

import tokenizers

from models.contract.recording import CONTINUES, NotEncoded
from models.tokens import encoding
from models.tokens.chat import Message, messages, template_label
from models.tokens.template_renderer import Overrun, Request, render
from models.tokens.tokenizer import NO_SPAN, Tokens

MOST_MESSAGES = 64  # of a pasted chat
MOST_KNOWN = 256  # rendered chats of a template that are kept
ANY_CHAT = ()  # the key of what holds for every chat: a template without bound is tried once
# A chat of each kind on which a template is tried, by the roles of its messages.
TRIED = (("user",), ("user", "assistant", "user"), ("system", "user", "assistant", "user"))
Span = tuple[int, int]


class ChatTokenizer(Protocol):
    """Interface of a model's tokenizer that a template needs."""

    special: frozenset[int]

    @property
    def rules(self) -> tokenizers.Tokenizer | None:
        """The rules in tokenizer.json, to which typed special tokens are text."""

    def label(self, token: int) -> str:
        """A token by itself, as a person reads it."""

    def written(
        self, text: str, ids: list[int], offsets: list[Span]
    ) -> tuple[list[str], list[Span]]:
        """Labels of tokens at these places of a text, and the place where each shows something."""


def of_folder(folder: Path, tokenizer: ChatTokenizer) -> ChatTemplate | None:
    """The chat template among a model's files, None where there is none, or a tokenizer without
    rules. As transformers has it: of several named templates the "default", and files before the
    tokenizer's configuration."""
    if tokenizer.rules is None:
        return None
    settings = _settings(folder / "tokenizer_config.json")
    listed = settings.get("chat_template")
    template = (
        next((each.get("template") for each in listed if each.get("name") == "default"), None)
        if isinstance(listed, list) and all(isinstance(each, dict) for each in listed)
        else listed
    )
    if (file := folder / "chat_template.jinja").is_file():
        template = file.read_text("utf-8", "replace")
    elif any(folder.glob("additional_chat_templates/*.jinja")):
        file = folder / "additional_chat_templates" / "default.jinja"
        template = file.read_text("utf-8", "replace") if file.is_file() else None
    if not isinstance(template, str) or not template:
        return None
    specials = {}
    for key, value in (_settings(folder / "special_tokens_map.json") | settings).items():
        name = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(name, str):
            specials[key] = name
    return ChatTemplate(template, tokenizer, specials)


def _settings(file: Path) -> dict:
    try:
        content = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True)
class Rendered:
    """A chat in its template: the text, and where each message's content stands in it, in
    characters; NO_SPAN for one that the template leaves out or writes in another way."""

    text: str
    contents: tuple[Span, ...]


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    """The template of a model in Jinja, its tokenizer, and the names of the special tokens that the
    template may write, such as "bos_token"."""

    template: str
    tokenizer: ChatTokenizer
    specials: Mapping[str, str] = field(default_factory=dict)
    _known: dict[tuple, Rendered | NotEncoded] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def _rules(self) -> tokenizers.Tokenizer:
        """The tokenizer's rules, reading special tokens where the template has them."""
        rules = encoding.from_text(self._plain_rules.to_str())
        rules.encode_special_tokens = False
        return rules

    @property
    def _plain_rules(self) -> tokenizers.Tokenizer:
        assert self.tokenizer.rules is not None  # `of_folder` has looked
        return self.tokenizer.rules

    @cached_property
    def _spelled(self) -> re.Pattern[str]:
        """Special tokens as a text spells them, the longest first."""
        names = [
            token.content
            for token in self._rules.get_added_tokens_decoder().values()
            if token.special and token.content
        ]
        return re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)")

    def expect_sound(self) -> None:
        """Raises Overrun where the template does not keep to the limits on a short chat."""
        for roles in TRIED:
            try:
                self.render(tuple((role, "a word") for role in roles))
            except Overrun:
                raise
            except NotEncoded:  # a chat of another order may be read
                continue

    def render(self, chat: tuple[tuple[str, str], ...], is_open: bool = False) -> Rendered:
        """A chat of (role, content) in the template. `is_open`: its last message is gone on with.
        Raises NotEncoded, one sentence, where the template refuses or fails."""
        rendered = self._known.get(ANY_CHAT) or self._known.get((chat, is_open))
        if rendered is None:
            rendered = self._rendered(chat, is_open)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[ANY_CHAT if isinstance(rendered, Overrun) else (chat, is_open)] = rendered
        if isinstance(rendered, NotEncoded):
            raise rendered
        return rendered

    def _rendered(self, chat: tuple[tuple[str, str], ...], is_open: bool) -> Rendered | NotEncoded:
        letters = {*self.template, *(letter for _, content in chat for letter in content)}
        free = (letter for letter in map(chr, range(0xE000, 0xF8FF)) if letter not in letters)
        marks = next(free), next(free)
        specials = tuple(self.specials.items())
        try:
            plain, marked = render(Request(self.template, chat, specials, is_open, marks))
        except NotEncoded as error:
            return error
        return Rendered(plain, _places(plain, marked, marks, [content for _, content in chat]))

    def tokens(self, text: str, limit: int) -> tuple[Tokens, int] | None:
        """A chat as the model reads it, at most `limit` tokens, and how many were dropped at its
        end; None for a text that is no chat. Raises NotEncoded as `render` does."""
        if chat := messages(text):
            rendered = self.render(
                tuple((each.role, text[each.start : each.end]) for each in chat),
                is_open=chat[-1].role == "assistant",
            )
            ids, offsets = self._encode(rendered)
        elif pasted := self._pasted(text):
            rendered, chat = pasted
            encoded = encoding.encode(self._rules, rendered.text, special=False)
            ids, offsets = encoded.ids, encoded.offsets
        else:
            return None
        if not ids:
            raise NotEncoded(
                "The chat template of this model makes no token of this chat; write the text "
                "without roles, or choose another model."
            )
        tokens = self._placed(text, chat, rendered, ids[:limit], offsets[:limit])
        return tokens, max(0, len(ids) - limit)

    def _encode(self, rendered: Rendered) -> tuple[list[int], list[Span]]:
        """The tokens of a rendered chat and their places in it. Special tokens that are typed into
        its messages are text: they are encoded apart."""
        typed = [
            (start + match.start(), start + match.end())
            for start, end in rendered.contents
            if start >= 0
            for match in self._spelled.finditer(rendered.text[start:end])
        ]
        edges = [0, *(edge for span in typed for edge in span), len(rendered.text)]
        ids: list[int] = []
        offsets: list[Span] = []
        for at, (start, end) in enumerate(zip(edges, edges[1:])):
            rules = self._plain_rules if at % 2 else self._rules
            part_ids, part_offsets = _inner(rules, rendered.text[start:end], start > 0)
            ids += part_ids
            offsets += [(start + first, start + last) for first, last in part_offsets]
        return ids, offsets

    def _placed(
        self,
        text: str,
        chat: Sequence[Message],
        rendered: Rendered,
        ids: list[int],
        offsets: list[Span],
    ) -> Tokens:
        """The tokens of a rendered chat with their labels, roles, and places in the text that was
        typed."""
        labels = [self._label(token) for token in ids]
        spans, roles = [NO_SPAN] * len(ids), [""] * len(ids)
        for message, (start, end) in zip(chat, rendered.contents):
            if start < 0:
                continue
            shift = message.end - end  # a template may leave out how a content begins
            inside = [
                at
                for at, (first, last) in enumerate(offsets)
                if rendered.text[max(first, start) : min(last, end)].strip()
                or start <= first < last <= end
            ]
            places = [
                (max(offsets[at][0], start) + shift, min(offsets[at][1], end) + shift)
                for at in inside
            ]
            written = self.tokenizer.written(text, [ids[at] for at in inside], places)
            for at, label, span in zip(inside, *written):
                labels[at], spans[at], roles[at] = label, span, message.role
        special = [not role for role in roles]
        return Tokens(tuple(ids), tuple(labels), tuple(spans), tuple(special), tuple(roles))

    def _label(self, token: int) -> str:
        """The label of a token of the template's own, which no token of a message has."""
        label = self.tokenizer.label(token).removeprefix(CONTINUES)
        return label if token in self.tokenizer.special else template_label(label)

    def _pasted(self, text: str) -> tuple[Rendered, tuple[Message, ...]] | None:
        """A text that is a rendered template of this model, from a special token on, and its
        messages; None for any other text."""
        n_special = len(self._spelled.findall(text))
        if not n_special:
            return None
        for first in ((), ("system",)):
            turns = ("user", "assistant") * (min(n_special, MOST_MESSAGES) // 2 + 1)
            roles = (*first, *turns)
            try:
                rendered = self.render(tuple((role, "a word") for role in roles))
            except NotEncoded:
                continue
            if spans := self._contents(text, rendered):
                chat = tuple(Message(role, *span) for role, span in zip(roles, spans))
                begin = self.specials.get("bos_token", "")
                if begin and rendered.text.startswith(begin) and not text.startswith(begin):
                    whole = tuple((a + len(begin), b + len(begin)) for a, b in spans)
                    return Rendered(begin + text, whole), chat
                return Rendered(text, tuple(spans)), chat
        return None

    def _contents(self, text: str, rendered: Rendered) -> list[Span]:
        """Spans of the contents of a text's messages, by the pieces that a longer chat has between
        them; [] for a text that is none."""
        edges = [0, *(edge for span in rendered.contents for edge in span), len(rendered.text)]
        before, *between = (rendered.text[a:b] for a, b in zip(edges[::2], edges[1::2]))
        begins = [before, *(before[m.start() :] for m in self._spelled.finditer(before))]
        at = next((len(each) for each in begins if each and text.startswith(each)), 0)
        spans: list[Span] = []
        for piece in between if at else ():
            begin = text.find(piece, at) if piece else -1
            if begin >= 0:
                spans.append((at, begin))
                at = begin + len(piece)
                continue
            # The last content, with as much of the piece after it as there is.
            ends = [piece.rstrip(), *(piece[: m.end()] for m in self._spelled.finditer(piece)), ""]
            tail = next(each for each in ends if text.rstrip().endswith(each))
            last = len(text.rstrip()) - len(tail)
            if at < last:
                spans.append((at, last))
            break
        typed = any(self._spelled.search(text[start:end]) for start, end in spans)
        return [] if typed else spans


def _places(
    plain: str, marked: str, marks: tuple[str, str], contents: Sequence[str]
) -> tuple[Span, ...]:
    """Spans of the contents in a rendered chat, found by the marks around them in `marked`, NO_SPAN
    for one that stands nowhere as it was written."""
    begin, end = marks
    places = [at for at, letter in enumerate(marked) if letter in marks]
    ends = [at - n for n, at in enumerate(places) if marked[at] == end]
    if marked.replace(begin, "").replace(end, "") != plain or len(ends) != len(contents):
        return _spans_of(plain, contents)
    spans = []
    for content, stop in zip(contents, ends):
        n = 0  # characters before the end: all of it, or what a template left of it
        while n < min(len(content), stop) and plain[stop - 1 - n] == content[-1 - n]:
            n += 1
        written = plain[stop - n : stop]
        spans.append((stop - len(written.lstrip()), stop))
    return tuple(spans)


def _spans_of(plain: str, contents: Sequence[str]) -> tuple[Span, ...]:
    """Spans of contents in a text, one after the other."""
    spans, at = [], 0
    for content in contents:
        start = plain.find(content, at) if content else -1
        spans.append(NO_SPAN if start < 0 else (start, start + len(content)))
        at = max(at, spans[-1][1])
    return tuple(spans)


def _inner(rules: tokenizers.Tokenizer, text: str, follows: bool) -> tuple[list[int], list[Span]]:
    """The tokens of a text and their places; `follows`: of one in the middle of another, which gets
    no space before it as SentencePiece puts it at the beginning."""
    if follows and text:
        line = encoding.encode(rules, "\n", special=False).ids
        encoded = encoding.encode(rules, "\n" + text, special=False)
        if encoded.ids[: len(line)] == line:
            rest = slice(len(line), None)
            spans = [(max(0, a - 1), b - 1) for a, b in encoded.offsets[rest]]
            return encoded.ids[rest], spans
    encoded = encoding.encode(rules, text, special=False)
    return encoded.ids, encoded.offsets
