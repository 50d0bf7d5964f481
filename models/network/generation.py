"""Writing a text a token at a time, with stored keys and values, so that each step reads only the
newest token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from models.contract.argument_validation import whole_number
from models.contract.cancellation import checkpoint
from models.contract.edits import Edit, ShiftPositions, last_edit
from models.contract.notices import tell
from models.contract.recording import Card, Recording, stored_array
from models.contract.results import Beam, Sampling, SeededSampling, probabilities
from models.network.attention import KVCache
from models.network.transformer import Decoder, EncoderDecoder, Transformer
from models.tokens.copying import Copier
from models.tokens.tokenizer import Tokenizer

LENGTH_PENALTY_ALPHA = 0.6  # of the length penalty, section 6.1
LENGTH_LIMIT = 1.5, 16  # a source of n tokens gets at most 1.5 n + 16


@dataclass(frozen=True, eq=False)
class _ReadAhead:
    """Continuations of a text that were read in one pass: the place of each in the batch, the
    scores (place, id) after it, its last token's weights (layer, place, head, key) by an
    attention's place in a layer, and its keys and values."""

    places: dict[tuple[int, ...], int]
    logits: np.ndarray
    rows: dict[str, np.ndarray]
    stored: KVCache


@dataclass(frozen=True, eq=False)
class _Read:
    """State after a text was read: the scores (id) after it, its last token's weights (layer, head,
    key) by an attention's place in a layer, and its keys and values."""

    logits: np.ndarray
    rows: dict[str, np.ndarray]
    stored: KVCache


def recorded(recording: Recording, n: int, logits: np.ndarray) -> _Read:
    """The state that a decoder's pass over the first n tokens of a recording without edits would
    give, taken from it: no token depends on those after it. logits (id): after the last of them."""
    (attention,) = recording.attention
    k, v = (torch.tensor(stored_array(each)[None, :, :, :n]) for each in (attention.k, attention.v))
    entries = {f"{layer}.attn": (k[:, layer], v[:, layer]) for layer in range(k.shape[1])}
    return _Read(logits, {"attn": attention.pattern[:, :, n - 1, :n]}, KVCache(entries))


class Generation:
    """A text that is being generated: the tokens so far, the stored keys and values, and the scores
    for the next token.

    `ids` (token) with its [BOS]; `logits` (id) of the next token, float32; `rows` maps an
    attention's place in a layer ("attn", "cross") to the newest token's weights, (layer, head,
    key). It belongs to one reader; the model is shared and unchanged. read: what a pass over the
    first `ids` gave, None where they are to be read. edits: those under which every token is read;
    where one is not `stepwise`, each step reads the whole text."""

    def __init__(
        self,
        model: Transformer,
        ids: list[int],
        memory: Tensor | None = None,
        read: _Read | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> None:
        if isinstance(model, EncoderDecoder) is (memory is None):
            raise ValueError("an encoder-decoder writes from a memory, and a decoder without one")
        self.model, self.memory, self.edits = model, memory, edits
        self.stepwise = all(each.stepwise for each in edits)
        self.ids: list[int] = []
        self.stored = KVCache()
        self.logits = np.zeros(0, dtype=np.float32)
        self.rows: dict[str, np.ndarray] = {}
        self._ahead: list[_ReadAhead] = []  # continuations of one token, of two, and so on
        if read is None:
            self._read(ids)
        else:
            self.stored = read.stored
            self._take(ids, read.logits, read.rows)

    @property
    def n_positions(self) -> int:
        """The number of positions that the model has."""
        shift = last_edit(self.edits, ShiftPositions)
        return self.model.config.n_positions - (0 if shift is None else shift.by)

    @property
    def is_full(self) -> bool:
        """True where the model takes no further token."""
        return len(self.ids) >= self.n_positions

    def add(self, token: int) -> None:
        """Take a token as the next one. Raises ValueError where the model is full."""
        if self.is_full:
            raise ValueError(f"the model reads {self.n_positions} tokens and no more")
        token, n = whole_number("id", token), self.model.config.n_vocab
        if not 0 <= token < n:
            raise ValueError(f"the vocabulary has ids 0 to {n - 1}, not {token}")
        if not (self._ahead and (token,) in self._ahead[0].places):
            self._read([token])
            return
        ahead = self._ahead[0]
        at = ahead.places[token,]
        self._take([token], ahead.logits[at], {name: w[:, at] for name, w in ahead.rows.items()})
        self.stored = ahead.stored.rows([at])

    def back(self) -> None:
        """Take the newest token back. The first stays."""
        if len(self.ids) > 1:
            token = self.ids[-2]
            del self.ids[-2:]
            self.stored = self.stored.first(len(self.ids))
            self._read([token])

    def logits_after(self, continuations: Sequence[Sequence[int]]) -> np.ndarray:
        """Scores (row, id) of the token after each of several continuations of one length, which
        are read in one pass after what is stored. None is taken. What was read is kept until the
        next token is taken: of one that goes on where another ended, the last token is read."""
        if not continuations:
            raise ValueError("there are no continuations to read")
        if not self.stepwise:
            return self._pass(continuations, self.stored)[0]
        n = len(continuations[0])
        del self._ahead[n - 1 :]
        before = self._ahead[-1] if len(self._ahead) == n - 1 > 0 else None
        new: Sequence[Sequence[int]] = continuations
        if before is not None and all(tuple(ids[:-1]) in before.places for ids in continuations):
            places = [before.places[tuple(ids[:-1])] for ids in continuations]
            new, stored = [ids[-1:] for ids in continuations], before.stored.rows(places)
        else:
            stored = self.stored.shared(len(continuations))
        logits, rows = self._pass(new, stored)
        if len(self._ahead) == n - 1:
            places_of = {tuple(ids): place for place, ids in enumerate(continuations)}
            self._ahead.append(_ReadAhead(places_of, logits, rows, stored))
        return logits

    def _read(self, ids: list[int]) -> None:
        logits, rows = self._pass([ids], self.stored)
        self._take(ids, logits[0], {name: each[:, 0] for name, each in rows.items()})

    def _take(self, ids: list[int], logits: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        """Take tokens that were read."""
        self.logits, self.rows, self._ahead = logits, rows, []
        self.ids += ids

    @torch.inference_mode()
    def _pass(
        self, ids: Sequence[Sequence[int]], stored: KVCache | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The scores (row, id) after each row of ids, and its last token's weights, (layer, row,
        head, key), by an attention's place in a layer; `stored` has its keys and values then."""
        layers: dict[str, list[np.ndarray]] = {}
        if not self.stepwise:
            ids, stored = [[*self.ids, *each] for each in ids], None

        def tape(name: str, tensor: Tensor) -> None:
            if name.endswith(".pattern"):
                layers.setdefault(name.split(".")[1], []).append(tensor[:, :, -1].numpy())

        memory = self.memory if self.memory is None else self.memory.expand(len(ids), -1, -1)
        x = decode(
            self.model, torch.tensor(ids), memory, tape=tape, edits=self.edits, stored=stored
        )
        logits = self.model.logits(x[:, -1]).numpy()
        return logits, {name: np.stack(weights) for name, weights in layers.items()}


def expect_room(card: Card, n: int, dropped: int) -> None:
    """Raises ValueError where a text of n tokens, and those that were dropped, leaves no room."""
    if dropped or n >= card.n_positions:
        raise ValueError(
            f"the text has {n + dropped} tokens, and {card.name} reads {card.n_positions}: there "
            "is no room for more"
        )


def decode(model: Transformer, ids: Tensor, memory: Tensor | None, **options: Any) -> Tensor:
    """The decoder's vectors (batch, token, d_model), whichever of the two kinds of decoder the
    model has."""
    if isinstance(model, Decoder):
        return model(ids, **options)
    encoder_decoder: Any = model  # whatever else writes reads a memory too
    return encoder_decoder.decode(ids, memory, **options)


def sample(logits: np.ndarray, sampling: Sampling, rng: np.random.Generator) -> int:
    """A token drawn from `probabilities(logits, sampling)`."""
    p = probabilities(logits, sampling)
    return int(rng.choice(len(p), p=p))


def max_answer_length(n_source: int, n_positions: int) -> int:
    """The maximum length, in tokens, of a translation of `n_source` tokens."""
    share, offset = LENGTH_LIMIT
    return min(int(share * n_source) + offset, n_positions - 1)


@torch.inference_mode()
def greedy(
    model: EncoderDecoder,
    tokenizer: Tokenizer,
    memory: Tensor,
    edits: tuple[Edit, ...] = (),
    copier: Copier | None = None,
) -> list[int]:
    """The likeliest token each time, up to one that ends a text (not among them). memory (1, key,
    d_model). copier: what of the source is copied."""
    stored = KVCache() if all(each.stepwise for each in edits) else None
    (bos, _), output_ids = tokenizer.ends, list[int]()
    token = bos
    shift_edit = last_edit(edits, ShiftPositions)
    n_positions = model.config.n_positions - (0 if shift_edit is None else shift_edit.by)
    for _ in range(longest := max_answer_length(memory.shape[1], n_positions)):
        checkpoint()
        ids = [token] if stored is not None else [bos, *output_ids]
        reads = CrossAttention(model)
        x = model.decode(torch.tensor([ids]), memory, tape=reads, edits=edits, stored=stored)
        logits = model.logits(x[0, -1])
        if copier is not None:
            copier, logits = copier.constrain(logits, reads.weights[0])
        token = int(logits.argmax())
        if token in tokenizer.eos_ids:
            break
        output_ids.append(token)
        copier = copier and copier.after(token)
    tell_unended("the model", len(output_ids), longest)
    return output_ids


def tell_unended(name: str, n: int, longest: int) -> None:
    """Say that an output of n tokens was broken off at the longest that is written."""
    if n >= longest:
        tell(f"{name} did not end its own output, which is broken off after {n:,} tokens")


class CrossAttention:
    """A tape that keeps the cross-attention of the middle layer, the mean of its heads: `weights`
    (row, key) of the newest token."""

    def __init__(self, model: Transformer) -> None:
        self._site = f"{model.config.n_layer // 2}.cross.pattern"
        self.weights = torch.zeros(1, 0)

    def __call__(self, name: str, tensor: Tensor) -> None:
        if name == self._site:
            self.weights = tensor[:, :, -1].mean(dim=1)


def score(logprobs: tuple[float, ...]) -> float:
    """The score that ranks a hypothesis: its log-probability over the length penalty, see
    `Beam`."""
    return sum(logprobs) / length_penalty(len(logprobs))


def length_penalty(length: int) -> float:
    """The divisor of the log-probability of a hypothesis of `length` tokens."""
    return ((5 + length) / 6) ** LENGTH_PENALTY_ALPHA


def beams(
    model: Transformer,
    ids: list[int],
    eos_ids: frozenset[int],
    strategy: int | SeededSampling,
    max_length: int,
    memory: Tensor | None = None,
    copier: Copier | None = None,
    edits: tuple[Edit, ...] = (),
) -> Iterator[tuple[Beam, ...]]:
    """Beam search from the tokens `ids`, as `search` yields it, with `strategy` many beams, or one
    hypothesis that is drawn. memory (1, key, d_model) for an encoder-decoder; copier: what of its
    source is copied."""
    stored, copiers = KVCache(), [copier] if copier else []
    started, stepwise = False, all(each.stepwise for each in edits)
    read = torch.zeros(1, 0, dtype=torch.long)

    def next_logprobs(new_ids: Tensor, rows: Tensor | None) -> Tensor:
        nonlocal stored, copiers, started, read
        if rows is not None:
            stored, read = stored.rows(rows), read[rows]
            copiers = [copiers[row] for row in rows.tolist()] if copiers else []
        if started:
            copiers = [each.after(int(ids[-1])) for each, ids in zip(copiers, new_ids)]
        started = True
        expanded_memory = memory if memory is None else memory.expand(len(new_ids), -1, -1)
        reads = CrossAttention(model)
        read = torch.cat((read, new_ids), dim=1)
        way = {"stored": stored if stepwise else None, "edits": edits}
        x = decode(model, new_ids if stepwise else read, expanded_memory, tape=reads, **way)
        logprobs = model.logits(x[:, -1]).double().log_softmax(dim=-1)
        for row, each in enumerate(copiers):
            copiers[row], logprobs[row] = each.constrain(logprobs[row], reads.weights[row])
        return logprobs

    return search(next_logprobs, torch.tensor([ids]), eos_ids, strategy, max_length)


@torch.inference_mode()
def search(
    next_logprobs: Callable[[Tensor, Tensor | None], Tensor],
    ids: Tensor,
    eos_ids: frozenset[int],
    strategy: int | SeededSampling,
    max_length: int,
) -> Iterator[tuple[Beam, ...]]:
    """Beam search from `ids` (1, token): after every step the `how` many best hypotheses, best
    first, ended ones among them; or the one that is drawn. A token of `eos_ids` ends one.

    `likely(new, rows)` reads new (row, token) after the rows of the step before that `rows` (row)
    names, and gives the log-probabilities (row, id) of the next token, -inf for one that may not
    be taken. Stops when all kept ones have ended, or after `longest` tokens.
    """
    if isinstance(strategy, SeededSampling):
        yield from _sampled(next_logprobs, ids, eos_ids, strategy, max_length)
        return
    n_beams, logprobs = strategy, next_logprobs(ids, None)
    hypotheses: list[Beam] = [Beam((), (), False, -1, 0.0)]
    active = [0]  # places in `held` that are rows of the batch
    for _ in range(max_length):
        top = logprobs.topk(min(n_beams, logprobs.shape[-1]), dim=-1)
        candidates: list[tuple[Beam, int]] = [
            (Beam(beam.ids, beam.logprobs, True, index, beam.score), -1)
            for index, beam in enumerate(hypotheses)
            if beam.done
        ]
        for row, index in enumerate(active):
            beam = hypotheses[index]
            for logprob, token in zip(top.values[row].tolist(), top.indices[row].tolist()):
                if isinf(logprob):
                    continue
                beam_logprobs = (*beam.logprobs, logprob)
                candidates.append(
                    (
                        Beam(
                            (*beam.ids, token),
                            beam_logprobs,
                            token in eos_ids,
                            index,
                            score(beam_logprobs),
                        ),
                        row,
                    )
                )
        candidates.sort(key=lambda pair: -pair[0].score)
        candidates = candidates[:n_beams]
        hypotheses = [beam for beam, _ in candidates]
        yield tuple(hypotheses)
        active = [index for index, beam in enumerate(hypotheses) if not beam.done]
        if not active:
            return
        rows = torch.tensor([candidates[index][1] for index in active])
        logprobs = next_logprobs(
            torch.tensor([[hypotheses[index].ids[-1]] for index in active]), rows
        )


def _sampled(
    next_logprobs: Callable[[Tensor, Tensor | None], Tensor],
    new_ids: Tensor,
    eos_ids: frozenset[int],
    strategy: SeededSampling,
    max_length: int,
) -> Iterator[tuple[Beam, ...]]:
    """One hypothesis, a token drawn each time. Its log-probabilities are the model's own."""
    hypothesis = Beam((), (), False, -1, 0.0)
    for step in range(max_length):
        logprobs = next_logprobs(new_ids, None)[0].numpy()
        token = sample(logprobs, strategy.sampling, np.random.default_rng((strategy.seed, step)))
        token_logprobs = (*hypothesis.logprobs, float(logprobs[token]))
        hypothesis = Beam(
            (*hypothesis.ids, token), token_logprobs, token in eos_ids, 0, score(token_logprobs)
        )
        yield (hypothesis,)
        if hypothesis.done:
            return
        new_ids = torch.tensor([[token]])
