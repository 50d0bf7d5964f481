"""Names that are nearly spelled like one that is there."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

ALIKE = 0.7  # of 1, from which on two spellings are near


def nearest(word: str, names: Iterable[str]) -> str:
    """The name that is spelled most like a word, capitals aside, "" where none is near."""
    folded = {each.casefold(): each for each in reversed([*names])}
    found = get_close_matches(str(word).casefold(), folded, 1, ALIKE)
    return folded[found[0]] if found else ""


def there_are(word: str, names: Iterable[str]) -> str:
    """A sentence on a name that is not there: the nearest one, else all that are."""
    listed = [*map(str, names)]
    if near := nearest(word, listed):
        return f"the nearest is {near!r}"
    if not listed:
        return "there are none"
    return f"there {'is' if len(listed) == 1 else 'are'} {', '.join(listed)}"
