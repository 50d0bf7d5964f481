"""Tensor operations of edits inside an attention, for our own classes and for models in their own
code.

Shapes: pattern (batch, head, query, key); z (batch, head, query, d_head)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from models.edits import (
    AddToHead,
    AddToSite,
    CutEdge,
    Edit,
    HeadEdit,
    HideToken,
    HideWord,
    MeanHead,
    PatchSite,
    ScaledBy,
    ScaleHead,
    ScaleSite,
    SetHead,
    SetNeuron,
    SetSite,
    ShuffleTokens,
    UniformHead,
    WithoutScale,
    ZeroHead,
    applies,
    last_edit,
    write_numbers,
)
from models.recording import Stream, from_end
from models.tokenizer import Tokens

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


def of_text(edits: tuple[Edit, ...], lengths: Mapping[str, int | None]) -> tuple[Edit, ...]:
    """Edits with each token counted from 0 that was counted from the end of its text.

    lengths: how many tokens the text of each stream has, the first one that of the text that is
    read; None for one that is written under the edits. Raises ValueError for a token that is
    counted from the end of that one."""

    def resolved(edit: Edit) -> Edit:
        counted = {}
        for name, stream in token_fields(edit).items():
            token = getattr(edit, name)
            n = lengths.get(stream or next(iter(lengths)), 0)
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


def token_fields(edit: Edit) -> dict[str, str | None]:
    """The fields of an edit that name a token, with the stream of that token, None for the
    first."""
    if isinstance(edit, CutEdge):
        query, key = {"cross": ("decoder", "encoder")}.get(
            edit.attention, (edit.attention.removesuffix("self").strip() or None,) * 2
        )
        return {"query": query, "key": key}
    if isinstance(edit, (PatchSite, SetSite, AddToSite, ScaleSite, SetNeuron, HideWord)):
        return {"token": edit.stream}
    return {"token": None} if isinstance(edit, HideToken) else {}


def expect_tokens(edits: tuple[Edit, ...], lengths: Mapping[str, int | None]) -> None:
    """Raises ValueError for the first edit with numbers of a stream or a token that is not there.

    lengths: how many tokens each stream has, the first one that of the text that is read; None for
    one that is not written yet."""
    for edit in edits:
        names_one = (PatchSite, SetSite, AddToSite, ScaleSite, SetNeuron, CutEdge, HideWord)
        if not isinstance(edit, names_one):
            continue
        for field, stream in token_fields(edit).items():
            name = stream or next(iter(lengths))
            if name not in lengths:
                raise ValueError(f"“{edit}”: no stream {stream!r}; there is {', '.join(lengths)}")
            token, n = getattr(edit, field), lengths[name]
            # Vectors of another text are put in at as many tokens as there are.
            is_past = n is not None and token is not None and token >= n
            if token is not None and (token < 0 or (is_past and not isinstance(edit, PatchSite))):
                counted = "from 0" if n is None else f"0 to {n - 1}"
                raise ValueError(f"“{edit}”: {name} has tokens {counted} there")


def expect_followed(edits: tuple[Edit, ...], streams: Iterable[Stream]) -> None:
    """Raises ValueError for the first edit with numbers of a site or a token that did not come by
    on the pass, which these streams are of."""
    passed = {each.name: each for each in streams}
    expect_tokens(edits, {name: len(each.tokens) for name, each in passed.items()})
    for edit in edits:
        if not isinstance(edit, (SetSite, AddToSite, ScaleSite)):
            continue
        of = passed[edit.stream or next(iter(passed))]
        if edit.site not in of.sites:
            raise ValueError(
                f"“{edit}”: no site {edit.site!r}; stream {of.name} has {', '.join(of.sites)}"
            )


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


@dataclass(frozen=True)
class AttentionAddress:
    """An attention as edits name it: by its label in a Recording and its layer."""

    attention: str
    layer: int

    def heads(self, edits: tuple[Edit, ...], kind: type[HeadEdit]) -> list[int]:
        """The heads of this attention that edits of one kind name, in order."""
        return sorted({edit.head for edit in edits if isinstance(edit, kind) and self.has(edit)})

    def has(self, edit: Any) -> bool:
        """True for an edit of one of these heads."""
        return (edit.attention, edit.layer) == (self.attention, self.layer)


def score_divisor(edits: tuple[Edit, ...], layer: int, default: float) -> float:
    """The divisor of a layer's scores: `default`, or the one that an edit sets."""
    if (scale_edit := last_edit(edits, ScaledBy, layer)) is not None:
        return scale_edit.divisor
    return 1.0 if applies(edits, WithoutScale, layer) else default


def uniform_patterns(
    pattern: Tensor, allowed: Tensor | None, edits: tuple[Edit, ...], address: AttentionAddress
) -> Tensor:
    """The pattern with even rows over `allowed` keys in the heads that a UniformHead names."""
    heads = address.heads(edits, UniformHead)
    if not heads:
        return pattern
    ones = torch.ones_like(pattern)
    uniform = ones if allowed is None else ones.masked_fill(~allowed, 0.0)
    uniform = uniform / uniform.sum(dim=-1, keepdim=True)
    return pattern.index_copy(1, torch.tensor(heads), uniform[:, heads])


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
    allowed: Tensor | None, scores: Tensor, edits: tuple[Edit, ...], address: AttentionAddress
) -> Tensor | None:
    """`allowed`, broadcastable to the scores (batch, head, query, key), without the edges that are
    cut, then (1, head, query, key). Queries are the last of the keys where there are fewer of one
    text. Raises ValueError where a query is left without a key."""
    cuts = [edit for edit in edits if isinstance(edit, CutEdge) and address.has(edit)]
    if not cuts:
        return allowed
    _, *shape = scores.shape
    uncut = torch.ones(shape, dtype=torch.bool, device=scores.device)[None]
    if allowed is not None:
        uncut = uncut & allowed
    for edit in cuts:
        if edit.query < shape[1] and edit.key < shape[2]:
            uncut[:, edit.head, edit.query, edit.key] = False
            if not uncut[:, edit.head, edit.query].any():
                raise ValueError(
                    f"“{edit}”: token {edit.query} attends to no other token there, so that no "
                    "weight would be left"
                )
    return uncut


def put_numbers(x: Tensor, edit: Edit) -> Tensor:
    """x (..., token, width) under an edit with numbers; places that it does not have stay."""
    values = getattr(edit, "values", None)
    numbers = None if values is None else torch.tensor(values.array).to(x)
    return write_numbers(x.clone(), edit, numbers)


def set_neurons(hidden: Tensor, edits: tuple[Edit, ...], layer: int) -> Tensor:
    """The hidden units of a layer's feed-forward network (batch, token, d_ff), those at their
    values that edits set."""
    for edit in edits:
        if isinstance(edit, SetNeuron) and edit.layer == layer:
            at = slice(None) if edit.token is None else slice(edit.token, edit.token + 1)
            hidden = hidden.clone()
            hidden[..., at, edit.neuron] = edit.value
    return hidden


def change_heads(z: Tensor, edits: tuple[Edit, ...], address: AttentionAddress) -> Tensor:
    """z with its mean over the queries, or 0, in the heads that a MeanHead or ZeroHead names; then
    under the edits with numbers, in their order."""
    z = ablate_heads(z, edits, address)
    for edit in edits:
        if isinstance(edit, (SetHead, AddToHead, ScaleHead)) and address.has(edit):
            changed = put_numbers(z[:, edit.head], edit)
            z = z.index_copy(1, torch.tensor([edit.head], device=z.device), changed[:, None])
    return z


def ablate_heads(z: Tensor, edits: tuple[Edit, ...], address: AttentionAddress) -> Tensor:
    """z with its mean over the queries, or 0, in the heads that a MeanHead or ZeroHead names."""
    if heads := address.heads(edits, MeanHead):
        mean = z[:, heads].mean(dim=2, keepdim=True)
        z = z.index_copy(1, torch.tensor(heads), mean.expand(-1, -1, z.shape[2], -1))
    if heads := address.heads(edits, ZeroHead):
        z = z.index_fill(1, torch.tensor(heads), 0.0)
    return z
