"""What two groups of anchor words say of a word in two texts, in words."""

from __future__ import annotations


def splits(as_far: int, n_splits: int, n_words: int) -> str:
    """How many ways to deal the anchor words into two groups set the texts as far apart; the groups
    as given are one of the ways."""
    dealt = f"ways to deal these {n_words} words into two such groups"
    if n_splits < 2:
        return f"There are no other {dealt}, so chance cannot be told."
    others = "none sets" if as_far < 2 else "1 sets" if as_far == 2 else f"{as_far - 1} set"
    return (
        f"Of the {n_splits - 1} other {dealt} {others} the texts this far apart; with so few "
        f"words chance is at least 1 in {n_splits}."
    )
