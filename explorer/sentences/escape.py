"""Text from users inside Markdown, as it was typed."""

from __future__ import annotations

from unicodedata import bidirectional


def literal(text: str) -> str:
    """User text inside Markdown, shown as it is; right-to-left text in an isolate, so that it does not turn the numbers beside it."""
    said = "".join(
        f"\\{letter}" if letter in r"\`*_{}[]()#+-.!|~$:<>&" else letter for letter in text
    )
    return (
        f"\u2068{said}\u2069"
        if any(bidirectional(letter) in ("R", "AL", "AN") for letter in text)
        else said
    )
