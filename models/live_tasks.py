"""What can be trained live: a list said again, backwards or on, and a text of one's own, each by a
model that learns it in a minute.

The first three learn on random lists of tokens, never the same list twice: those of the reader's
sentence, letters and signs. A text is learned by its first nine tenths; the last tenth is kept out
and measured.
"""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from models.config import Config
from models.tokenizer import FOR_WRITING, Tokenizer
from models.training_plan import TrainingPlan
from models.transformer import Decoder, EncoderDecoder, Transformer

SEED = 1
LETTERS = " ".join("abcdefghijklmnopqrstuvwxyz")
N_POSITIONS = 128
LONGEST_LIST, LISTS = 12, 32
WINDOW, WINDOWS = 64, 12
MERGES = {"lists": 80, "characters": 0, "words": 500}
RATE, WARM_UP = 3e-3, 50
IGNORE_INDEX = -100  # what cross-entropy leaves out


def tokenizer_of(plan: TrainingPlan) -> Tokenizer:
    """A new vocabulary: 256 bytes, special tokens, and whole words of what is learned."""
    bare = 256 + len(FOR_WRITING)
    if plan.task == "text":
        return Tokenizer.train([plan.text], bare + MERGES[plan.unit], FOR_WRITING)
    return Tokenizer.train([LETTERS, *[plan.words] * 3], bare + MERGES["lists"], FOR_WRITING)


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
        plain = "".join(chr(code) for code in range(33, 127))
        sides = tokenizer.ids([plan.words, LETTERS, plain])
        self.words = sorted({token for side in sides for token in side})

    def batch(self, rng: Random, kept_out: bool = False) -> tuple[Tensor, ...]:
        """Ids, and what is to be said (-100 where nothing counts); of a list that is answered,
        source, target and what is to be said."""
        if self.text is not None:
            return self._windows(self.text, rng, kept_out)
        n = rng.randint(3, LONGEST_LIST)
        lists = [[rng.choice(self.words) for _ in range(n)] for _ in range(LISTS)]
        if self.plan.task == "induction":
            ids = torch.tensor([[self.bos, *each, *each] for each in lists])
            wanted = ids[:, 1:].clone()
            wanted[:, :n] = IGNORE_INDEX  # of a random list nobody knows the first time
            return ids[:, :-1], wanted
        turned = [each[::-1] if self.plan.task == "reverse" else each for each in lists]
        target = torch.tensor([[self.bos, *each, self.eos] for each in turned])
        source = torch.tensor([[*each, self.eos] for each in lists])
        return source, target[:, :-1], target[:, 1:]

    def _windows(self, text: Tensor, rng: Random, kept_out: bool) -> tuple[Tensor, ...]:
        cut = max(len(text) * 9 // 10, 8)
        part = text[cut:] if kept_out else text[:cut]
        n = min(WINDOW, len(part) - 1)
        starts = [rng.randrange(len(part) - n) for _ in range(WINDOWS)]
        rows = torch.stack([part[at : at + n] for at in starts])
        ids = torch.cat([torch.full((len(rows), 1), self.bos), rows], 1)
        return ids[:, :-1], ids[:, 1:]

    def scores(self, model: Transformer, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """(scores over the vocabulary (row, id), what is to be said (row)) of what counts in a
        batch."""
        *read, wanted = batch
        if isinstance(model, EncoderDecoder):
            source, target = read
            x = model.decode(target, model.encode(source))
        else:
            x = model(read[0])
        counts = wanted != IGNORE_INDEX
        return model.logits(x[counts]), wanted[counts]

    def loss(self, model: Transformer, batch: tuple[Tensor, ...]) -> Tensor:
        """Mean cross-entropy in nats of what is to be said."""
        return F.cross_entropy(*self.scores(model, batch))

    @torch.no_grad()
    def measured(self, model: Transformer) -> tuple[float, float]:
        """(loss in nats, share said right) on what it has not seen, always the same."""
        scores, wanted = self.scores(model, self.batch(Random("kept out"), kept_out=True))
        right = (scores.argmax(-1) == wanted).float().mean()
        return float(F.cross_entropy(scores, wanted)), float(right)
