"""Writing a text a token at a time, with stored keys and values, so that each step reads only the
newest token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isinf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.attention import Stored
from models.cancellation import checkpoint
from models.edits import Edit, MeanHead, ShiftPositions, WithoutMask, last
from models.layers import Patch
from models.recording import Card
from models.results import Beam, Sampling, SeededSampling, probabilities
from models.tokenizer import Tokenizer
from models.transformer import Decoder, EncoderDecoder, Transformer

ALPHA = 0.6  # of the length penalty, section 6.1
LONGEST_ANSWER = 1.5, 16  # a source of n tokens gets at most 1.5 n + 16


class Generation:
    """One text in the making: the tokens so far, the stored keys and values, and the scores for the
    next token.

    `ids` (token) with its [BOS]; `logits` (id) of the next token, float32; `rows` maps an
    attention's place in a layer ("attn", "cross") to what the newest token looks at, (layer, head,
    key). It belongs to one reader; the model is shared and unchanged.
    """

    def __init__(self, model: Transformer, ids: list[int], memory: Tensor | None = None) -> None:
        if isinstance(model, EncoderDecoder) is (memory is None):
            raise ValueError("an encoder-decoder writes from a memory, and a decoder without one")
        self.model, self.memory = model, memory
        self.ids: list[int] = []
        self.stored = Stored()
        self.logits = np.zeros(0, dtype=np.float32)
        self.rows: dict[str, np.ndarray] = {}
        self._read(ids)

    @property
    def n_positions(self) -> int:
        """How many tokens there may be."""
        return self.model.config.n_positions

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""
        return len(self.ids) >= self.model.config.n_positions

    def add(self, token: int) -> None:
        """Take a token as the next one. Raises ValueError where the model is full."""
        if self.is_full:
            raise ValueError(f"the model reads {self.model.config.n_positions} tokens and no more")
        self._read([token])

    def back(self) -> None:
        """Take the newest token back. The first stays."""
        if len(self.ids) > 1:
            last = self.ids[-2]
            del self.ids[-2:]
            self.stored = self.stored.first(len(self.ids))
            self._read([last])

    @torch.inference_mode()
    def _read(self, ids: list[int]) -> None:
        rows: dict[str, list[np.ndarray]] = {}

        def tape(name: str, tensor: Tensor) -> None:
            if name.endswith(".pattern"):
                rows.setdefault(name.split(".")[1], []).append(tensor[0, :, -1].numpy())

        x = decode(self.model, torch.tensor([ids]), self.memory, tape=tape, stored=self.stored)
        self.logits = self.model.logits(x[0, -1]).numpy()
        self.rows = {name: np.stack(each) for name, each in rows.items()}
        self.ids += ids


def expect_room(card: Card, n: int, dropped: int) -> None:
    """Raises ValueError where a text of n tokens, and those that were dropped, leaves no room."""
    if dropped or n >= card.n_positions:
        raise ValueError(
            f"the text has {n + dropped} tokens, and {card.name} reads {card.n_positions}: there "
            "is no room for more"
        )


def decode(model: Transformer, ids: Tensor, memory: Tensor | None, **more: Any) -> Tensor:
    """The decoder's vectors (batch, token, d_model), whichever of the two kinds of decoder the
    model has."""
    if isinstance(model, Decoder):
        return model(ids, **more)
    two: Any = model  # whatever else writes reads a memory too
    return two.decode(ids, memory, **more)


def draw(logits: np.ndarray, sampling: Sampling, rng: np.random.Generator) -> int:
    """A token drawn from `probabilities(logits, sampling)`."""
    p = probabilities(logits, sampling)
    return int(rng.choice(len(p), p=p))


def longest_answer(n_source: int, n_positions: int) -> int:
    """How many tokens a translation of a source of `n_source` tokens may have."""
    share, more = LONGEST_ANSWER
    return min(int(share * n_source) + more, n_positions - 1)


@torch.inference_mode()
def greedy(
    model: EncoderDecoder, tokenizer: Tokenizer, memory: Tensor, edits: tuple[Edit, ...] = ()
) -> list[int]:
    """The likeliest token each time, up to [EOS] (not among them). memory (1, key, d_model)."""
    # What such an edit does to a token depends on those after it or on its place: nothing that was
    # stored would stay true.
    stored = (
        None
        if any(isinstance(edit, (MeanHead, WithoutMask, Patch)) for edit in edits)
        else Stored()
    )
    (begin, end), said = tokenizer.ends, list[int]()
    token = begin
    shifted = last(edits, ShiftPositions)
    for _ in range(
        longest_answer(
            memory.shape[1], model.config.n_positions - (0 if shifted is None else shifted.by)
        )
    ):
        checkpoint()
        ids = [token] if stored is not None else [begin, *said]
        token = int(
            model.logits(
                model.decode(torch.tensor([ids]), memory, edits=edits, stored=stored)[0, -1]
            ).argmax()
        )
        if token == end:
            break
        said.append(token)
    return said


def score(logprobs: tuple[float, ...]) -> float:
    """What a hypothesis is ranked by, see `Beam`."""
    return sum(logprobs) / penalty(len(logprobs))


def penalty(length: int) -> float:
    """What the log-probability of a hypothesis of so many tokens is divided by."""
    return ((5 + length) / 6) ** ALPHA


def beams(
    model: Transformer,
    ids: list[int],
    end: int,
    how: int | SeededSampling,
    longest: int,
    memory: Tensor | None = None,
) -> Iterator[tuple[Beam, ...]]:
    """Beam search from the tokens `ids`, as `search` yields it, with `how` many beams, or one
    hypothesis that is drawn. memory (1, key, d_model) for an encoder-decoder."""
    stored = Stored()

    def likely(new: Tensor, rows: Tensor | None) -> Tensor:
        nonlocal stored
        if rows is not None:
            stored = stored.rows(rows)
        seen = memory if memory is None else memory.expand(len(new), -1, -1)
        x = decode(model, new, seen, stored=stored)
        return model.logits(x[:, -1]).double().log_softmax(dim=-1)

    return search(likely, torch.tensor([ids]), end, how, longest)


@torch.inference_mode()
def search(
    likely: Callable[[Tensor, Tensor | None], Tensor],
    ids: Tensor,
    end: int,
    how: int | SeededSampling,
    longest: int,
) -> Iterator[tuple[Beam, ...]]:
    """Beam search from `ids` (1, token): after every step the `how` many best hypotheses, best
    first, ended ones among them; or the one that is drawn.

    `likely(new, rows)` reads new (row, token) after the rows of the step before that `rows` (row)
    names, and gives the log-probabilities (row, id) of the next token, -inf for one that may not
    be taken. Stops when all kept ones have ended, or after `longest` tokens.
    """
    if isinstance(how, SeededSampling):
        yield from _drawn(likely, ids, end, how, longest)
        return
    n_beams, logprobs = how, likely(ids, None)
    held: list[Beam] = [Beam((), (), False, -1, 0.0)]
    live = [0]  # places in `held` that are rows of the batch
    for _ in range(longest):
        top = logprobs.topk(min(n_beams, logprobs.shape[-1]), dim=-1)
        grown: list[tuple[Beam, int]] = [
            (Beam(beam.ids, beam.logprobs, True, at, beam.score), -1)
            for at, beam in enumerate(held)
            if beam.done
        ]
        for row, at in enumerate(live):
            beam = held[at]
            for logprob, token in zip(top.values[row].tolist(), top.indices[row].tolist()):
                if isinf(logprob):
                    continue
                each = (*beam.logprobs, logprob)
                grown.append((Beam((*beam.ids, token), each, token == end, at, score(each)), row))
        grown.sort(key=lambda pair: -pair[0].score)
        grown = grown[:n_beams]
        held = [beam for beam, _ in grown]
        yield tuple(held)
        live = [at for at, beam in enumerate(held) if not beam.done]
        if not live:
            return
        rows = torch.tensor([grown[at][1] for at in live])
        logprobs = likely(torch.tensor([[held[at].ids[-1]] for at in live]), rows)


def _drawn(
    likely: Callable[[Tensor, Tensor | None], Tensor],
    new: Tensor,
    end: int,
    how: SeededSampling,
    longest: int,
) -> Iterator[tuple[Beam, ...]]:
    """One hypothesis, a token drawn each time. Its log-probabilities are the model's own."""
    held = Beam((), (), False, -1, 0.0)
    for at in range(longest):
        logprobs = likely(new, None)[0].numpy()
        token = draw(logprobs, how.sampling, np.random.default_rng((how.seed, at)))
        each = (*held.logprobs, float(logprobs[token]))
        held = Beam((*held.ids, token), each, token == end, 0, score(each))
        yield (held,)
        if held.done:
            return
        new = torch.tensor([[token]])
