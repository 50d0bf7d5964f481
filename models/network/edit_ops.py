"""Tensor operations of edits inside an attention, for our own classes and for models in their own
code.

Shapes: pattern (batch, head, query, key); z (batch, head, query, d_head)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from models.contract.edits import (
    SPAN,
    Edit,
    HideToken,
    HideWord,
    InputEdit,
    PatchSite,
    ScaledBy,
    ShuffleTokens,
    SiteEdit,
    Span,
    WithNumbers,
    WithoutScale,
    applies,
    edited,
    edits_at,
    last_edit,
    last_of,
    span_of,
)
from models.contract.recording import Stream, from_end
from models.contract.spelling import there_are
from models.tokens.tokenizer import Tokens

Text = tuple[Tokens, str]
# The edits that change the text a model reads, and not the model: they work on tokens, whichever
# code reads them.


def shuffle_tokens(tokens: Tokens, edits: tuple[Edit, ...]) -> Tokens:
    """The tokens in the order that the edits ask for; everything that belongs to a token goes with
    it, its place in the text too."""
    for edit in edits:
        if isinstance(edit, ShuffleTokens):
            order = edit.order(tokens.special)
            tokens = Tokens(
                tuple(tokens.ids[index] for index in order),
                tuple(tokens.labels[index] for index in order),
                tuple(tokens.spans[index] for index in order),
                tuple(tokens.special[index] for index in order),
                tokens.roles,  # a message has its place in the template, whatever is read there
            )
    return tokens


def of_text(
    edits: tuple[Edit, ...], lengths: Mapping[str, int | None], texts: Mapping[str, Text]
) -> tuple[Edit, ...]:
    """Edits with each token counted from 0 that was counted from the end of its text, or that is
    named by a word.

    lengths: how many tokens the text of each stream has, the first one that of the text that is
    read; None for one that is written under the edits. texts: the streams whose words can be named,
    each with its tokens and its text. Raises ValueError for a token that is counted from the end of
    one that is written, and for a word that is not there."""

    def resolved(edit: Edit) -> Edit:
        counted = {}
        for name, stream in edit.tokens().items():
            token = getattr(edit, name)
            of = stream or next(iter(lengths))
            n = lengths.get(of, 0)
            if isinstance(token, str):
                if not SPAN.fullmatch(token):
                    counted[name] = _tokens_of_word(edit, token, texts.get(of))
                continue
            if token is None or token >= 0:
                continue
            if n is None:
                raise ValueError(
                    f"{edit}: the text of the {stream} is written under this edit, so its end is "
                    "not known before; count the token from 0, or give the target"
                )
            counted[name] = from_end(token, n)
        return replace(edit, **counted) if counted else edit

    return tuple(map(resolved, edits))


def _tokens_of_word(edit: Edit, word: str, text: Text | None) -> Span:
    """The tokens of a text that lie in a word, wherever it stands."""
    tokens, written = (None, "") if text is None else text
    found = re.finditer(rf"(?<!\w){re.escape(word.strip())}(?!\w)", written)
    in_word = [each.span() for each in found] if word.strip() else []
    spans = () if tokens is None else tokens.spans
    places = [
        at
        for at, (start, end) in enumerate(spans)
        if end > start and any(start < last and end > first for first, last in in_word)
    ]
    if not places:
        there = there_are(word, dict.fromkeys(re.findall(r"\w+", written)))
        raise ValueError(f"“{edit}”: no token of the text is of the word {word!r}; {there}")
    return span_of(places)


def expect_tokens(edits: tuple[Edit, ...], lengths: Mapping[str, int | None]) -> None:
    """Raises ValueError for the first edit with numbers of a stream or a token that is not there.

    lengths: how many tokens each stream has, the first one that of the text that is read; None for
    one that is not written yet."""
    for edit in edits:
        if isinstance(edit, InputEdit):
            continue
        for field, stream in edit.tokens().items():
            name = stream or next(iter(lengths))
            if name not in lengths:
                there = there_are(str(stream), lengths)
                raise ValueError(f"“{edit}”: no stream {stream!r}; {there}")
            token, n = getattr(edit, field), lengths[name]
            token = last_of(token) if isinstance(token, str) else token
            # Vectors of another text are put in at as many tokens as there are.
            is_past = n is not None and token is not None and token >= n
            if token is not None and (token < 0 or (is_past and not isinstance(edit, PatchSite))):
                counted = "from 0" if n is None else f"0 to {n - 1}"
                raise ValueError(f"“{edit}”: {name} has tokens {counted} there")
        _expect_rows(edit, lengths)


def _expect_rows(edit: Edit, lengths: Mapping[str, int | None]) -> None:
    """Raises ValueError for an edit with a vector for each token of another number of them."""
    if not isinstance(edit, WithNumbers) or (rows := edit.rows) is None:
        return
    of = getattr(edit, "stream", None) or _query_of(getattr(edit, "attention", ""))
    n = lengths.get(of or next(iter(lengths)))
    if n is not None and rows != n:
        raise ValueError(
            f"“{edit}” has {rows} rows, and {of or next(iter(lengths))} has {n} tokens there; give "
            "one vector, or one for each token"
        )


def _query_of(attention: str) -> str | None:
    """The stream whose tokens are the queries of an attention, None for the first."""
    return "decoder" if attention == "cross" else attention.removesuffix("self").strip() or None


def expect_followed(edits: tuple[Edit, ...], streams: Iterable[Stream]) -> None:
    """Raises ValueError for the first edit with numbers of a site or a token that did not come by
    on the pass, which these streams are of."""
    passed = {each.name: each for each in streams}
    expect_tokens(edits, {name: len(each.tokens) for name, each in passed.items()})
    for edit in edits:
        if not isinstance(edit, SiteEdit) or isinstance(edit, PatchSite):
            continue
        of = passed[edit.stream or next(iter(passed))]
        if edit.site not in of.sites:
            there = there_are(edit.site, of.sites)
            raise ValueError(f"“{edit}”: no site {edit.site!r} of stream {of.name}; {there}")


def fitting_edits(tokens: Tokens, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """The edits without those that hide a token which these tokens have not: a text that lends its
    vectors may be the shorter one."""
    return tuple(
        edit
        for edit in edits
        if not isinstance(edit, HideToken)
        or (0 <= edit.token < len(tokens.ids) and not tokens.special[edit.token])
    )


def mask_tokens(tokens: Tokens, edits: tuple[Edit, ...], mask: int | None, label: str) -> Tokens:
    """The tokens, those that an edit hides replaced by the token `mask`, called `label`.

    Raises ValueError for a token that is not there or is none of the text's.
    """
    ids, labels = list(tokens.ids), list(tokens.labels)
    for edit in edits:
        if isinstance(edit, HideToken):
            if mask is None or not 0 <= edit.token < len(ids) or tokens.special[edit.token]:
                raise ValueError(f"“{edit}” names no token of the text")
            ids[edit.token], labels[edit.token] = mask, label
    return replace(tokens, ids=tuple(ids), labels=tuple(labels))


def score_divisor(edits: tuple[Edit, ...], layer: int, default: float) -> float:
    """The divisor of a layer's scores: `default`, or the one that an edit sets."""
    if (scale_edit := last_edit(edits, ScaledBy, layer)) is not None:
        return scale_edit.divisor
    return 1.0 if applies(edits, WithoutScale, layer) else default


def without_hidden_words(
    allowed: Tensor | None, shape: Sequence[int], edits: tuple[Edit, ...], attention: str
) -> Tensor | None:
    """`allowed`, broadcastable to a shape (..., query, key), None for all, without the keys that a
    HideWord takes out, but to themselves.

    Queries are the last of the keys where there are fewer of one text; a key that is not there is
    passed by. Raises ValueError where cross-attention is left without a key."""
    crosses, (n_query, n_key) = attention == "cross", shape[-2:]
    of = "encoder" if crosses else attention.removesuffix("self").strip()
    hidden = [
        edit
        for edit in edits
        if isinstance(edit, HideWord)
        and edit.token < n_key
        and (not of or edit.stream == of or (edit.stream is None and of == "encoder"))
    ]
    if not hidden:
        return allowed
    keys = torch.arange(n_key)
    out = torch.isin(keys, torch.tensor([edit.token for edit in hidden])).expand(n_query, n_key)
    if crosses and bool(out.all()):
        raise ValueError(f"“{hidden[-1]}”: no token of the source would be left to read")
    if not crosses:
        out = out & (keys != torch.arange(n_key - n_query, n_key)[:, None])
    return (~out)[None, None] if allowed is None else allowed & ~out.to(allowed.device)


def cut_edges(
    allowed: Tensor | None, scores: Tensor, edits: tuple[Edit, ...], place: str
) -> Tensor | None:
    """`allowed`, broadcastable to the scores (batch, head, query, key), None for all, under the
    edits of a mask, then (1, head, query, key). Queries are the last of the keys where there are
    fewer of one text. Raises ValueError where a query is left without a key."""
    if not edits_at(edits, place):
        return allowed
    _, *shape = scores.shape
    uncut = torch.ones(shape, dtype=torch.bool, device=scores.device)[None]
    return edited(uncut if allowed is None else uncut & allowed, edits, place)
