"""The edits that change the text a model reads, and not the model: they work on tokens, whichever
code reads them."""

from __future__ import annotations

from models.edits import Edit, HideToken, ShuffleTokens
from models.tokenizer import Tokens


def shuffled(tokens: Tokens, edits: tuple[Edit, ...]) -> Tokens:
    """The tokens in the order that the edits ask for; everything that belongs to a token goes with
    it, its place in the text too."""
    for edit in edits:
        if isinstance(edit, ShuffleTokens):
            order = edit.order(tokens.special)
            tokens = Tokens(
                tuple(tokens.ids[at] for at in order),
                tuple(tokens.labels[at] for at in order),
                tuple(tokens.spans[at] for at in order),
                tuple(tokens.special[at] for at in order),
            )
    return tokens


def that_fit(tokens: Tokens, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits without those that hide a token which these tokens have not: a text that lends its
    vectors may be the shorter one."""
    return tuple(
        edit
        for edit in edits
        if not isinstance(edit, HideToken)
        or (0 <= edit.token < len(tokens.ids) and not tokens.special[edit.token])
    )


def hidden(tokens: Tokens, edits: tuple[Edit, ...], mask: int | None, label: str) -> Tokens:
    """The tokens, those that an edit hides replaced by the token `mask`, called `label`.

    Raises ValueError for a token that is not there or is none of the text's.
    """
    ids, labels = list(tokens.ids), list(tokens.labels)
    for edit in edits:
        if isinstance(edit, HideToken):
            if mask is None or not 0 <= edit.token < len(ids) or tokens.special[edit.token]:
                raise ValueError(f"“{edit}” names no token of the text")
            ids[edit.token], labels[edit.token] = mask, label
    return Tokens(tuple(ids), tuple(labels), tokens.spans, tokens.special)
