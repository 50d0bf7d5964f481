"""Writes docs/glossary.md from the terms that the app explains: `python -m docs.glossary`."""

from __future__ import annotations

from pathlib import Path

from explorer.text import glossary

FILE = Path(__file__).with_name("glossary.md")


def document() -> str:
    """Every term with its meaning, in the order of the alphabet."""
    lines = ["# Glossary", "", "The words that Headlight uses, as the app explains them.", ""]
    for term in sorted(glossary.terms().values(), key=lambda each: each.name.casefold()):
        also = f" ({', '.join(term.also)})" if term.also else ""
        lines.append(f"- **{term.name}**{also}: {' '.join(term.means.split())}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(document(), "utf-8")
