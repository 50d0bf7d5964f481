"""Text from users as it was typed: inside Markdown and HTML, and where a half of a letter may not
stand."""

from __future__ import annotations

import re
from html import escape
from unicodedata import bidirectional

# Where Markdown would make a link of a bare address, whatever is escaped in it: "http://", "www.",
# "name@host".
LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
WORD_JOINER = "\u2060"  # no width, and no line is broken at it


def literal(text: str) -> str:
    """User text inside Markdown, shown as it is and never a link; right-to-left text in an isolate,
    so that it does not turn the numbers beside it."""
    escaped = "".join(
        f"\\{letter}" if letter in r"\`*_{}[]()#+-.!|~$:<>&" else letter
        for letter in LINKS.sub(WORD_JOINER, text)
    )
    return (
        f"\u2068{escaped}\u2069"
        if any(bidirectional(letter) in ("R", "AL", "AN") for letter in text)
        else escaped
    )


# What a line of ours has of a text or a model: words in quotation marks, a text behind its name.
OF_TEXT = re.compile("(“[^”]*”|(?<=^Text: ).+|(?<=^Target: ).+)")


def in_html(line: str) -> str:
    """A line as HTML, in which no browser translates what is of a text or a model."""
    parts = map(escape, OF_TEXT.split(line))
    return "".join(of_text(part) if at % 2 else part for at, part in enumerate(parts))


def of_text(escaped: str) -> str:
    """Text of a reader or a model as HTML that no browser translates, in its own direction."""
    return f'<span translate="no" class="notranslate" dir="auto">{escaped}</span>'


def plain(markdown: str) -> str:
    """A sentence of Markdown as it reads: without its marks, and user text in it as it was
    typed."""
    text = re.sub(r"\\(.)|\*+|`", lambda match: match[1] or "", markdown, flags=re.DOTALL)
    return " ".join(text.replace(WORD_JOINER, "").split())


def well_formed(text: str) -> str:
    """The text with U+FFFD for each unpaired surrogate, which no file, address or message can
    contain."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
