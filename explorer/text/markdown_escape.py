"""Text from users inside Markdown, as it was typed."""

from __future__ import annotations

import re
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


def plain(markdown: str) -> str:
    """A sentence of Markdown as it reads: without its marks, and user text in it as it was
    typed."""
    text = re.sub(r"\\(.)|\*+|`", lambda match: match[1] or "", markdown, flags=re.DOTALL)
    return " ".join(text.replace(WORD_JOINER, "").split())
