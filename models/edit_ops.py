"""Tensor operations of edits inside an attention, for our own classes and for models in their own
code.

Shapes: pattern (batch, head, query, key); z (batch, head, query, d_head)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from models.edits import (
    Edit,
    HeadEdit,
    HideToken,
    MeanHead,
    PatchSite,
    ScaledBy,
    ShuffleTokens,
    UniformHead,
    WithoutScale,
    ZeroHead,
    applies,
    last_edit,
)
from models.recording import from_end
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
        if not isinstance(edit, (HideToken, PatchSite)) or edit.token is None or edit.token >= 0:
            return edit
        stream = edit.stream if isinstance(edit, PatchSite) else None
        n = lengths.get(stream or next(iter(lengths)), 0)
        if n is None:
            raise ValueError(
                f"{edit}: the text of the {stream} is written under this edit, so its end is not "
                "known before; count the token from 0, or give the target"
            )
        return replace(edit, token=from_end(edit.token, n))

    return tuple(map(resolved, edits))


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
        head_numbers = {
            edit.head
            for edit in edits
            if isinstance(edit, kind)
            and (edit.attention, edit.layer) == (self.attention, self.layer)
        }
        return sorted(head_numbers)


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


def ablate_heads(z: Tensor, edits: tuple[Edit, ...], address: AttentionAddress) -> Tensor:
    """z with its mean over the queries, or 0, in the heads that a MeanHead or ZeroHead names."""
    if heads := address.heads(edits, MeanHead):
        mean = z[:, heads].mean(dim=2, keepdim=True)
        z = z.index_copy(1, torch.tensor(heads), mean.expand(-1, -1, z.shape[2], -1))
    if heads := address.heads(edits, ZeroHead):
        z = z.index_fill(1, torch.tensor(heads), 0.0)
    return z
