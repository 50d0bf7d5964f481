"""Two small encoders of real text that differ in one thing: where LayerNorm stands. The same rows
in the same order, hidden alike, from the same first weights; one has it after each sum (the paper),
the other before each sub-layer and once at the end (Xiong et al., 2020).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from torch import Tensor

from models.network.config import Config
from models.network.transformer import Encoder
from models.training import masked
from models.training.corpus import Corpus, Library, read_divided
from models.training.training_config import TrainingState


class Post(masked.Masked):
    """The recipe of the twin with LayerNorm after each sum."""

    config = Config(n_vocab=4096, d_model=128, n_layer=4, n_head=4, d_ff=512, n_positions=512)
    steps, check, rate, warm_up = 2_000, 500, 1.5e-3, 200
    checkpoint_steps = (0, 200, 500, 1000)

    @cached_property
    def corpus(self) -> Library:
        training, _ = read_divided(self.data)
        return Library(training.sentences, training.paragraphs, ())

    @cached_property
    def held_out(self) -> Corpus:
        return read_divided(self.data)[1]

    def model(self) -> Encoder:
        return Encoder(self.config)

    def loss(self, model: Encoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        ids, present, echo = batch
        masked_ids, chosen = self.masked(ids, present, echo, at)
        start = self._start(ids, at.generator, at.epoch)
        return masked.loss(model, masked_ids, ids, present, chosen, start)


class Pre(Post):
    """The recipe of the twin with LayerNorm before each sub-layer."""

    config = replace(Post.config, norm="pre")


RECIPES = {"twin-post": Post, "twin-pre": Pre}
