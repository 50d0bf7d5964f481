"""Tasks for live training: copy or reverse a list, continue one (induction), or learn a text.

A small model learns each in about a minute. The first three train on random lists of tokens, never
the same list twice: those of the reader's sentence, letters and signs. A text is learned by its
first nine tenths; the last tenth is held out and measured.
"""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.live.training_plan import TrainingPlan
from models.network.config import Config
from models.network.transformer import Decoder, EncoderDecoder, Transformer
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

SEED = 1
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz")
N_POSITIONS = 128
MAX_LIST_LENGTH, LISTS_PER_BATCH = 12, 32
WINDOW, WINDOWS_PER_BATCH = 64, 12
MERGES = {"lists": 80, "characters": 0, "words": 500}
LEARNING_RATE, WARM_UP_STEPS = 3e-3, 50
IGNORE_INDEX = -100  # what cross-entropy leaves out


def tokenizer_of(plan: TrainingPlan) -> Tokenizer:
    """A new vocabulary: 256 bytes, special tokens, and whole words of what is learned."""
    n_reserved = 256 + len(CAUSAL_LM_SPECIALS)
    if plan.task == "text":
        return Tokenizer.train([plan.text], n_reserved + MERGES[plan.unit], CAUSAL_LM_SPECIALS)
    return Tokenizer.train(
        [LETTERS, *[plan.words] * 3], n_reserved + MERGES["lists"], CAUSAL_LM_SPECIALS
    )


def config_of(plan: TrainingPlan, tokenizer: Tokenizer) -> Config:
    """The sizes of the model that a plan asks for."""
    return Config(
        len(tokenizer), plan.d_model, plan.n_layer, plan.n_head, 4 * plan.d_model, N_POSITIONS
    )


def model_of(config: Config, kind: str) -> Transformer:
    """A fresh model, drawn from torch's global generator."""
    return Decoder(config) if kind == "decoder" else EncoderDecoder(config)


class Task:
    """The batches of a plan and their loss."""

    def __init__(self, plan: TrainingPlan, tokenizer: Tokenizer) -> None:
        self.plan, self.tokenizer = plan, tokenizer
        self.bos, self.eos = tokenizer.ends
        self.text = torch.tensor(tokenizer.ids([plan.text])[0]) if plan.task == "text" else None
        printable = "".join(chr(code) for code in range(33, 127))
        id_lists = tokenizer.ids([plan.words, LETTERS, printable])
        self.words = sorted({token for id_list in id_lists for token in id_list})

    def batch(self, rng: Random, held_out: bool = False) -> tuple[Tensor, ...]:
        """Ids and target ids (-100 where nothing counts); for a list with an answer, source, target
        and target ids."""
        if self.text is not None:
            return self._windows(self.text, rng, held_out)
        n = rng.randint(3, MAX_LIST_LENGTH)
        return self.of_lists(
            [[rng.choice(self.words) for _ in range(n)] for _ in range(LISTS_PER_BATCH)]
        )

    def of_lists(self, lists: list[list[int]]) -> tuple[Tensor, ...]:
        """The same of lists of ids, all as long."""
        n = len(lists[0])
        if self.plan.task == "induction":
            ids = torch.tensor([[self.bos, *items, *items] for items in lists])
            labels = ids[:, 1:].clone()
            labels[:, :n] = IGNORE_INDEX  # of a random list nobody knows the first time
            return ids[:, :-1], labels
        answers = [items[::-1] if self.plan.task == "reverse" else items for items in lists]
        target = torch.tensor([[self.bos, *items, self.eos] for items in answers])
        source = torch.tensor([[*items, self.eos] for items in lists])
        return source, target[:, :-1], target[:, 1:]

    def _windows(self, text: Tensor, rng: Random, held_out: bool) -> tuple[Tensor, ...]:
        boundary = max(len(text) * 9 // 10, 8)
        ids_part = text[boundary:] if held_out else text[:boundary]
        n = min(WINDOW, len(ids_part) - 1)
        starts = [rng.randrange(len(ids_part) - n) for _ in range(WINDOWS_PER_BATCH)]
        rows = torch.stack([ids_part[start : start + n] for start in starts])
        ids = torch.cat([torch.full((len(rows), 1), self.bos), rows], 1)
        return ids[:, :-1], ids[:, 1:]

    def scores(self, model: Transformer, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """(scores over the vocabulary (row, id), what is to be said (row)) of what counts in a
        batch."""
        *inputs, labels = batch
        if isinstance(model, EncoderDecoder):
            source, target = inputs
            x = model.decode(target, model.encode(source))
        else:
            x = model(inputs[0])
        scored = labels != IGNORE_INDEX
        return model.logits(x[scored]), labels[scored]

    def loss(self, model: Transformer, batch: tuple[Tensor, ...]) -> Tensor:
        """Mean cross-entropy in nats of what is to be said."""
        return F.cross_entropy(*self.scores(model, batch))

    @torch.no_grad()
    def predictions(
        self, model: Transformer, batch: tuple[Tensor, ...]
    ) -> tuple[list[int], list[int]]:
        """(what is to be said, what the model says) of what counts in a batch, as ids."""
        scores, labels = self.scores(model, batch)
        return labels.tolist(), scores.argmax(-1).tolist()

    @torch.no_grad()
    def measured(self, model: Transformer) -> tuple[float, float]:
        """(loss in nats, share said right) on what it has not seen, always the same."""
        scores, labels = self.scores(model, self.batch(Random("kept out"), held_out=True))
        accuracy = (scores.argmax(-1) == labels).float().mean()
        return float(F.cross_entropy(scores, labels)), float(accuracy)
