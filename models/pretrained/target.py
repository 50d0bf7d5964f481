"""What the decoder of a Hugging Face model reads: a text given, or the model's own answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch

from models.edits import Edit
from models.own import clean
from models.pretrained.from_files import quietly
from models.pretrained.handle import Handle
from models.pretrained.hooks import Pass, listening
from models.pretrained.hub_tokenizer import NOWHERE
from models.pretrained.reading import fresh, keeps
from models.tokenizer import Tokens

if TYPE_CHECKING:
    from transformers._typing import GenerativePreTrainedModel

# A model's own answer ends after so many tokens, if it does not end itself.
LONGEST_ANSWER = 128


def target_of(
    handle: Handle, source: Tokens, edits: tuple[Edit, ...], target: str | tuple[int, ...] | None
) -> tuple[Tokens, str, int]:
    """What the decoder reads, as tokens and as text, and how many of its tokens did not fit."""
    if isinstance(target, str):
        target = clean(target)
        tokens, dropped = _framed(handle, target)
        return tokens, target, dropped
    said = list(target) if target is not None else _answer(handle, source, edits)
    text = handle.tokenizer.text(said)
    tokens, dropped = _framed(handle, text)
    if tokens.ids[1:] == tuple(said):
        return tokens, text, dropped
    # another spelling of the same text; what was said counts
    return handle.tokenizer.said((_begin(handle), *said)), text, 0


def _begin(handle: Handle) -> int:
    """The token that the decoder begins with."""
    assert handle.start is not None  # there is a decoder
    return handle.start


def _framed(handle: Handle, text: str) -> tuple[Tokens, int]:
    """A target as the decoder reads it: the token it begins with, then the text as the model was
    trained to say it, without the token that ends it."""
    tokens, dropped = (
        handle.tokenizer.tokens(text, handle.card.n_positions)
        if text
        else (handle.tokenizer.said(()), 0)
    )
    ends = bool(tokens.ids) and tokens.special[-1] and tokens.ids[-1] == handle.tokenizer.eos
    ids, words, spans, special = (
        each[:-1] if ends else each
        for each in (tokens.ids, tokens.labels, tokens.spans, tokens.special)
    )
    excess = max(0, len(ids) + 1 - handle.card.n_positions)
    ids, words, spans, special = (
        each[: len(each) - excess] for each in (ids, words, spans, special)
    )
    begin = _begin(handle)
    return Tokens(
        (begin, *ids), (handle.tokenizer.label(begin), *words), (NOWHERE, *spans), (True, *special)
    ), dropped + excess


def _answer(handle: Handle, source: Tokens, edits: tuple[Edit, ...]) -> list[int]:
    """The model's own answer under the edits, the likeliest token each time, without the token it
    begins with and the one that ends it."""
    if not handle.model.can_generate():
        return []
    longest = min(LONGEST_ANSWER, handle.card.n_positions - 1, 2 * len(source.ids) + 10)
    ids = torch.tensor([source.ids])
    # With edits every step is computed anew: a head's mean over the tokens is over all of them.
    stored = not edits and keeps(handle)
    with (
        handle.lock,
        listening(Pass(handle.plan.attentions, handle.plan.n_layer, edits, keeps=False)),
        quietly(),
    ):
        said = (
            cast("GenerativePreTrainedModel", handle.model)
            .generate(
                ids,
                attention_mask=torch.ones_like(ids),
                decoder_start_token_id=handle.start,
                do_sample=False,
                num_beams=1,
                max_new_tokens=longest,
                use_cache=stored,
                **({"past_key_values": fresh()} if stored else {}),
            )[0, 1:]
            .tolist()
        )
    return said[:-1] if said and said[-1] == handle.tokenizer.eos else said
