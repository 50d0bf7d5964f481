"""Small models that learn one thing each, in about a minute: induction, copy, reverse, and a small
grammar from both sides.

The first three learn on lists of random tokens of the whole vocabulary, never on text, so what they
do on any text is no memory. The grammar models learn on sentences of `models/training/grammar.py`,
a fifth of whose combinations of words are kept out.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import torch
from torch import Tensor

from models.network.config import Config
from models.network.transformer import Decoder, Encoder, EncoderDecoder
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, MASKED_LM_SPECIALS, Tokenizer
from models.training import grammar, masked, next_word, translation
from models.training.head_scores import BestHead, best_head
from models.training.training_config import SEED, Kind, Recipe, Scores, TrainingState, padded

N_VOCAB, N_POSITIONS = 948, 128
BATCH, EPOCH = 64, 200
LONGEST_LIST = 20
N_SENTENCES = 20_000  # of the grammar, that the tokenizer is learned from


class Algorithm(Recipe[Kind]):
    """Base of the small recipes: `steps` of one batch each; an epoch is 200 of them."""

    config = Config(N_VOCAB, 64, 2, 4, 256, N_POSITIONS)
    steps, check, rate, warm_up = 2000, 250, 2e-3, 100
    checkpoint_steps: tuple[int, ...] = (0, 50, 100, 200, 300, 450, 650, 900, 1200, 1500)
    specials: tuple[str, ...] = CAUSAL_LM_SPECIALS
    in_half = False

    def tokenizer(self) -> Tokenizer:
        rng = Random(SEED)
        return Tokenizer.train(
            [grammar.training_sentence(rng) for _ in range(N_SENTENCES)],
            self.config.n_vocab,
            self.specials,
        )

    def batches(self, tokenizer: Tokenizer, epoch: int) -> Iterator[tuple[Tensor, ...]]:
        rng = Random(SEED + epoch)
        for _ in range(EPOCH):
            yield self.batch(tokenizer, rng)

    @abstractmethod
    def batch(self, tokenizer: Tokenizer, rng: Random) -> tuple[Tensor, ...]:
        """One batch, drawn from `rng`."""


class Induction(Algorithm[Decoder]):
    """A decoder that learns to go on with a list said once before."""

    def model(self) -> Decoder:
        return Decoder(self.config)

    def batch(self, tokenizer: Tokenizer, rng: Random) -> tuple[Tensor, ...]:
        words, (bos, _) = next_word.vocabulary_of(tokenizer), tokenizer.ends
        n = rng.randint(4, LONGEST_LIST)
        return padded(
            [
                [bos, *2 * [rng.choice(words) for _ in range(n)]]
                for _ in range(max(8, BATCH * 10 // n // 2))
            ],
            tokenizer.padding,
        )

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        return next_word.loss(model, *batch)

    @torch.inference_mode()
    def progress(self, model: Decoder, tokenizer: Tokenizer) -> Scores:
        rng, n = Random(0), 16
        words, (bos, _) = next_word.vocabulary_of(tokenizer), tokenizer.ends
        ids = torch.tensor([[bos, *2 * rng.sample(words, n)] for _ in range(100)])
        predictions = model.logits(model(ids[:, :-1])).argmax(-1)
        accuracy = (predictions[:, n + 1 :] == ids[:, n + 2 :]).float().mean().item()
        heads = next_word.repetition_scores(model, tokenizer, n)
        return {"accuracy, second time": round(accuracy, 4)} | {
            name: str(best) for name, best in heads.items()
        }


class Copy(Algorithm[EncoderDecoder]):
    """An encoder-decoder that learns to say a list again."""

    config = Config(N_VOCAB, 64, 1, 4, 256, N_POSITIONS)

    def model(self) -> EncoderDecoder:
        return EncoderDecoder(self.config)

    def answer(self, words: list[int]) -> list[int]:
        """The target list: the source list."""
        return words

    def batch(self, tokenizer: Tokenizer, rng: Random) -> tuple[Tensor, ...]:
        words = next_word.vocabulary_of(tokenizer)
        lists = [
            [rng.choice(words) for _ in range(rng.randint(1, LONGEST_LIST))] for _ in range(BATCH)
        ]
        (bos, eos), pad = tokenizer.ends, tokenizer.padding
        sources = [[*each, eos] for each in lists]
        targets = [[bos, *self.answer(each), eos] for each in lists]
        return *padded(sources, pad), *padded(targets, pad)

    def loss(self, model: EncoderDecoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        return translation.loss(model, batch, smoothing=0.0)

    @torch.inference_mode()
    def progress(self, model: EncoderDecoder, tokenizer: Tokenizer) -> Scores:
        rng, words, n = Random(0), next_word.vocabulary_of(tokenizer), 12
        lists = [rng.sample(words, n) for _ in range(100)]
        answers = translation.greedy(model, tokenizer, lists, 2 * LONGEST_LIST)
        accuracy = sum(answer == self.answer(each) for each, answer in zip(lists, answers)) / len(
            lists
        )
        tokens = sum(
            a == b
            for each, answer in zip(lists, answers)
            for a, b in zip(self.answer(each), answer)
        ) / (n * len(lists))
        return {
            "lists right": round(accuracy, 4),
            "tokens right": round(tokens, 4),
            "attention to the right place": str(self.alignment(model, tokenizer, lists)),
        }

    @torch.inference_mode()
    def alignment(
        self, model: EncoderDecoder, tokenizer: Tokenizer, lists: list[list[int]]
    ) -> BestHead:
        """The cross-attention head that most looks at the source token it is about to say, by mean
        attention. Lists of one length, each of different tokens."""
        (bos, eos), pad = tokenizer.ends, tokenizer.padding
        source, _ = padded([[*each, eos] for each in lists], pad)
        target, _ = padded([[bos, *self.answer(each)] for each in lists], pad)
        patterns: list[Tensor] = []

        def tape(name: str, tensor: Tensor) -> None:
            if name.endswith(".cross.pattern"):
                patterns.append(tensor)

        model.decode(target, model.encode(source), tape=tape)
        pattern = torch.stack(patterns)[..., :-1, :-1]  # the row of a token says the one after
        n = pattern.shape[-1]
        places = torch.tensor(self.answer(list(range(n))))
        return best_head(pattern[..., torch.arange(n), places].mean(dim=(1, -1)))


class Reverse(Copy):
    """An encoder-decoder that learns to say a list backwards."""

    def answer(self, words: list[int]) -> list[int]:
        return words[::-1]


class OfGrammar(Algorithm[Kind]):
    """Base of the recipes of the small grammar: a sentence in each row."""

    config = Config(N_VOCAB, 96, 3, 4, 384, N_POSITIONS)

    def batch(self, tokenizer: Tokenizer, rng: Random) -> tuple[Tensor, ...]:
        first, last = tokenizer.ends if tokenizer.mask is None else tokenizer.fills[:2]
        sentences = tokenizer.ids([grammar.training_sentence(rng) for _ in range(BATCH)])
        return padded([[first, *ids, last] for ids in sentences], tokenizer.padding)


class Grammar(OfGrammar[Decoder]):
    """A decoder of the small grammar."""

    steps = 800
    checkpoint_steps = (0, 25, 50, 100, 200, 300, 400, 550)

    def model(self) -> Decoder:
        return Decoder(self.config)

    def loss(self, model: Decoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        return next_word.loss(model, *batch)

    @torch.inference_mode()
    def progress(self, model: Decoder, tokenizer: Tokenizer) -> Scores:
        def last(before: str, after: str) -> Tensor:
            return model.logits(
                model(torch.tensor([[tokenizer.bos, *tokenizer.ids([before])[0]]]))
            )[0, -1]

        return grammar_scores(last, tokenizer)


class GrammarMasked(OfGrammar[Encoder]):
    """An encoder of the small grammar."""

    steps = 1500
    checkpoint_steps = (0, 50, 100, 200, 300, 450, 900, 1200)
    specials = MASKED_LM_SPECIALS

    def model(self) -> Encoder:
        return Encoder(self.config)

    def loss(self, model: Encoder, batch: tuple[Tensor, ...], at: TrainingState) -> Tensor:
        ids, present = batch
        masked_ids, chosen = masked.mask_tokens(ids, present, at.tokenizer, at.generator)
        return masked.loss(model, masked_ids, ids, present, chosen)

    @torch.inference_mode()
    def progress(self, model: Encoder, tokenizer: Tokenizer) -> Scores:
        cls, sep, mask = tokenizer.fills

        def at_mask(before: str, after: str) -> Tensor:
            left, right = tokenizer.ids([before, after])
            ids = torch.tensor(
                [
                    [
                        cls,
                        *left,
                        mask,
                        *right[after[0] == "." and len(right) > 1 :],
                        sep,
                    ]
                ]
            )
            return model.logits(model(ids))[0, len(left) + 1]

        return grammar_scores(at_mask, tokenizer)


def grammar_scores(logits_at: Callable[[str, str], Tensor], tokenizer: Tokenizer) -> Scores:
    """On sentences whose combination of words was kept out of training: how often the language, the
    verb's number and the kind of thing are right. `logits_at(before, after)` -> scores (n_vocab) of
    the word between two parts of a sentence."""
    first_ids = {
        word: ids[0]
        for word in (*grammar.LANGUAGE.values(), "is", "was", "are", "were", *grammar.DEVICES)
        if (ids := tokenizer.ids([word])[0])
    }
    languages = list(dict.fromkeys(grammar.LANGUAGE.values()))
    rng = Random(7)
    outcomes: dict[str, list[bool]] = {
        "language": [],
        "agreement": [],
        "agreement across a distractor": [],
    }
    while min(map(len, outcomes.values())) < 100:
        text = grammar.sentence(rng)
        if not grammar.is_held_out(text):
            continue
        words = text.rstrip(".").split()
        if words[-1] in first_ids and words[-1] in languages:
            scores = logits_at(" ".join(words[:-1]), ".")
            outcomes["language"].append(
                max(languages, key=lambda word: scores[first_ids[word]]) == words[-1]
            )
        elif (
            words[-2] in ("is", "was", "are", "were")
            and words[0] == "The"
            and words[-1] in grammar.ADJECTIVES
            and len(words) > 5
            and words[1] != "ripe"
        ):
            scores = logits_at(" ".join(words[:-2]), words[-1] + ".")
            is_plural = max(scores[first_ids["are"]], scores[first_ids["were"]]) > max(
                scores[first_ids["is"]], scores[first_ids["was"]]
            )
            expected = words[-2] in ("are", "were")
            outcomes["agreement"].append(bool(is_plural) == expected)
            if words[1].endswith("s") != words[-3].endswith("s"):
                outcomes["agreement across a distractor"].append(bool(is_plural) == expected)
    return {name: round(sum(each) / len(each), 4) for name, each in outcomes.items()}


# What a small model can be trained without, and what that is in its Config.
PARTS: dict[str, dict[str, Any]] = {
    "positions": {"positions": None},
    "scale": {"scaled_scores": False},
    "residual": {"residual": False},
    "norm": {"norm": None},
}


def ablated(recipe: type[Algorithm], part: str) -> type[Algorithm]:
    """The same recipe for a model that never has one of the PARTS."""
    return type(
        f"{recipe.__name__}Without{part.capitalize()}",
        (recipe,),
        {
            "config": replace(recipe.config, **PARTS[part]),
            "checkpoint_steps": (),
            "__doc__": f"{recipe.__doc__} Without {part}.",
        },
    )


TASKS: dict[str, type[Algorithm[Any]]] = {
    "induction": Induction,
    "copy": Copy,
    "reverse": Reverse,
    "grammar": Grammar,
    "grammar-masked": GrammarMasked,
}
# A model trained without a part, by name: the task and the part.
ABLATIONS = {
    f"{task}-no-{part}": (task, part) for task in ("induction", "reverse") for part in PARTS
}
RECIPES = TASKS | {name: ablated(TASKS[task], part) for name, (task, part) in ABLATIONS.items()}
