"""Ship a trained model: `python -m models.training.export encoder --run runs/encoder --data DIR`.

Turns a run's newest checkpoint into `models/weights/<name>`: fp16 safetensors, the tokenizer, the
earlier weights that the recipe wants shown, and the card, whose scores are then measured on the
shipped fp16 weights themselves (models/evaluate.py). A run of `encoder-taught` goes on with the
shipped encoder: its steps are counted from there, and weights of the encoder's earlier training may
lie in the run's folder as `before-STEP.pt`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file

from models import shipped_models
from models.contract.recording import Recording
from models.example_texts import EXAMPLES
from models.network import own_model, quantization
from models.network.config import Config
from models.network.transformer import Transformer
from models.own.model_card import Phase
from models.tokens.tokenizer import Tokenizer
from models.training import (
    algorithms,
    attention_transfer,
    evaluate,
    masked,
    next_word,
    norm_placement_ablation,
    train,
    translation,
)

# How far a weight of a coarse model's pattern may be off on the app's examples.
MAX_PATTERN_ERROR = 0.006


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=sorted(ABOUT))
    parser.add_argument("--run", type=Path, help="the run's folder, runs/MODEL where not given")
    parser.add_argument(
        "--data", type=Path, help="folder of the corpora, to measure the models of real text"
    )
    options = parser.parse_args()
    ship(options.model, options.run or Path("runs") / options.model)
    evaluate.evaluate(STUDENTS.get(options.model, options.model), options.data)


def ship(name: str, run: Path) -> None:
    """Write a run's weights, tokenizer, earlier weights and a card without scores into the model's
    folder."""
    checkpoint = torch.load(run / "checkpoint.pt", weights_only=True)
    student = STUDENTS.get(name, name)
    folder = shipped_models.WEIGHTS / student
    folder.mkdir(parents=True, exist_ok=True)
    recipe, state = train.recipe_class(name), checkpoint["model"]
    n_before = attention_transfer.BEFORE if name in STUDENTS else 0
    early = {int(file.stem.partition("-")[2]): file for file in run.glob("before-*.pt")} | {
        n_before + step: file
        for step in recipe.checkpoint_steps
        if (file := run / f"at-{step}.pt").exists()
    }
    halves = {key: tensor.half().contiguous() for key, tensor in state.items()}
    save_file(halves, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((run / "tokenizer.json").read_bytes())
    if early:
        model = own_model.KINDS[KIND[student]](Config(**checkpoint["config"])).eval()
        model.load_state_dict(state)
        tokenizer = Tokenizer.load(run / "tokenizer.json")
        states = {
            step: quantized(
                changed(torch.load(early[step], weights_only=True), state), model, tokenizer
            )
            for step in sorted(early)
        }
        save_file(
            {
                f"{step}/{key}": tensor
                for step, state in states.items()
                for key, tensor in state.items()
            },
            folder / "checkpoints.safetensors",
        )
    about = (
        {"recipe": small_recipe(name)} | ABOUT[name]
        if name not in train.ON_CORPORA
        else ABOUT[name]
    )
    card = {
        "name": student,
        "kind": KIND[student],
        "config": checkpoint["config"],
        "steps": n_before + checkpoint["place"][0],
        "checkpoints": sorted(early),
        "headline": "",
        **about,
        "curve": [[n_before + step, loss] for step, loss in curve(run)],
        "phases": [asdict(Phase(n_before, recipe.steps, recipe.rate, recipe.warm_up))],
    }
    if name in STUDENTS:
        card = gone_on(shipped_models.card(student), card)
    if "course" in card:
        card["course"] = str(card["course"]).format(second_epoch(run))
    shipped_models.write_card(student, card)


def gone_on(old: dict, new: dict) -> dict:
    """The card of a model whose training went on: what was told of it before, then of the rest."""
    recipe = [line for line in old["recipe"] if line not in (*new["recipe"], FILTERED)]
    shift = 0 if "taught" in old else attention_transfer.BEFORE - old["steps"]
    points = [[shift + step, loss] for step, loss in old["curve"]]
    return (
        old
        | new
        | {
            "recipe": [*recipe, *new["recipe"], FILTERED],
            "curve": [one for one in points if one[0] <= attention_transfer.BEFORE] + new["curve"],
            "phases": [
                *(one for one in old["phases"] if one["first"] < attention_transfer.BEFORE),
                *new["phases"],
            ],
        }
    )


def changed(state: quantization.State, last: quantization.State) -> quantization.State:
    """The tensors that differ from the last ones."""
    return {key: tensor for key, tensor in state.items() if not torch.equal(tensor, last[key])}


def quantized(
    state: quantization.State, model: Transformer, tokenizer: Tokenizer
) -> quantization.State:
    """Earlier weights of `model` as coarse as their patterns on the app's examples allow; it keeps
    those that are not among them."""

    def patterns(
        weights: quantization.State, target: tuple[int, ...] | None, text: str
    ) -> Recording:
        numbers = {name: tensor.float() for name, tensor in weights.items()}
        model.load_state_dict(numbers, strict=False)
        return own_model.record(
            own_model.from_network(model, tokenizer, "early", ""), text, target=target
        )

    recordings = [patterns(state, None, text) for text in EXAMPLES.values()]
    return quantization.coarsest(
        state,
        lambda coarse_state: all(
            max_difference(
                recording, patterns(coarse_state, decoder_ids(recording), recording.text)
            )
            <= MAX_PATTERN_ERROR
            for recording in recordings
        ),
    )


def decoder_ids(recording: Recording) -> tuple[int, ...] | None:
    """The ids that a translator's decoder read, None of a model with one stream."""
    *_, last = recording.streams
    return tuple(map(int, last.ids[1:])) if len(recording.streams) > 1 else None


def max_difference(first: Recording, second: Recording) -> float:
    """The largest difference between the weights of two recordings' patterns."""
    pairs = zip(first.attention, second.attention)
    return max(float(np.abs(a.pattern - b.pattern).max()) for a, b in pairs)


def curve(run: Path) -> list[list[float]]:
    """The loss over the run, as [step, nats] each 50 steps; of a step computed twice after a break,
    the later one."""
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    losses = {line["step"]: line["loss"] for line in lines if "loss" in line}
    return [[step, losses[step]] for step in sorted(losses)]


def second_epoch(run: Path) -> int:
    """The last step before it, to the nearest line of the log."""
    lines = map(json.loads, (run / "log.jsonl").read_text("utf-8").splitlines())
    return max(line["step"] for line in lines if line["epoch"] == 0)


def small_recipe(name: str) -> list[str]:
    """The training recipe of a small model in sentences."""
    recipe = train.recipe_of(name, None)
    return [
        f"{recipe.steps} steps, about a minute on one core",
        ADAM.format(f"{recipe.rate:g}", recipe.warm_up),
    ]


TATOEBA = "Tatoeba sentences, from www.manythings.org/anki and tatoeba.org (CC BY 2.0)"
ENGLISH = [
    TATOEBA.replace("Tatoeba", "Tatoeba English"),
    "Common Voice English sentences (CC0 1.0)",
    "22 books of Project Gutenberg (public domain in the USA)",
    "sentences of our own small grammar, models/training/grammar.py",
]
MORE_BOOKS = "445 more books of Project Gutenberg (public domain in the USA)"
PRONOUNS = "sentences made to hold a pronoun and two nouns, models/training/masked.py"
ADAM = (
    "AdamW, betas 0.9 and 0.98, weight decay 0.01, rate {}: warm-up {} steps, level, falling to a "
    "fiftieth over the last fifth; clip 1; seed 1"
)
FILTERED = (
    "Sentences with violent, sexual or degrading words were left out, and the few names that fill "
    "Tatoeba replaced by many."
)
LISTS = "none: random lists of tokens"
SMALL = "It has learned one thing and knows nothing else."
STUDENTS = {"encoder-taught": attention_transfer.STUDENT}  # a recipe that goes on with a model
KIND = {
    "encoder": "encoder",
    "decoder": "decoder",
    "translator": "encoder-decoder",
    "translator-small": "encoder-decoder",
    "induction": "decoder",
    "copy": "encoder-decoder",
    "reverse": "encoder-decoder",
    "grammar": "decoder",
    "grammar-masked": "encoder",
}
KIND |= dict.fromkeys(norm_placement_ablation.RECIPES, "encoder")
KIND |= {name: KIND[task] for name, (task, _) in algorithms.ABLATIONS.items()}
LACK = {
    "positions": "no positions are added to its embeddings",
    "scale": "its scores are not divided by √d_head",
    "residual": "each sub-layer’s output replaces the stream",
    "norm": "it has no LayerNorm",
}
ABOUT: dict[str, dict[str, Any]] = {
    "encoder": {
        "summary": (
            "Predicts masked words in English text: the encoder of the paper (post-LN, sinusoidal "
            "positions), with a tied readout."
        ),
        "data": [*ENGLISH[:3], MORE_BOOKS, ENGLISH[3], PRONOUNS],
        "recipe": [
            "a quarter of the words chosen, whole words: 80 % masked, 10 % replaced, 10 % "
            "left; loss at the chosen places only",
            "half of the pronouns chosen: 40 % masked, 30 % replaced by another pronoun, 30 % left",
            f"rows of at most {', '.join(map(str, masked.CURRICULUM))} tokens in the first, "
            "second, third and later epochs, of about 3 million tokens each",
            f"{masked.ECHO_SHARE:.0%} of the sentences stand twice in their row, the "
            "second time shuffled",
            f"from epoch {masked.FIRST_EPOCH_ANYWHERE} on (counted from 0) "
            f"{masked.ANYWHERE_SHARE:.0%} of the rows begin at a random position, so that all "
            f"{masked.Masked.config.n_positions} are met",
            f"heads {' and '.join(map(str, masked.TIED_HEADS))} of layer 0 began with W_K "
            "= W_Q, blind to positions",
            f"in every layer heads {masked.FIRST_PAYING_HEAD} to "
            f"{masked.Masked.config.n_head - 1} paid, at a price of {masked.PRICE}, for what "
            "a single token took of a head’s rows beyond a share: fewer sinks",
            ADAM.format(f"{masked.Masked.rate:g}", masked.Masked.warm_up),
            f"batches of at most {masked.BATCH_TOKENS} tokens; steps in bfloat16, weights in fp32",
            FILTERED,
        ],
        "limits": [
            "Knows short everyday sentences and old books, and nothing of the world.",
            "Its names, spelling and grammar are those of English; other scripts are read "
            "byte by byte.",
            "Trained on rows of up to 128 tokens; it takes 512, and its heads are less sharp "
            "at distant positions.",
        ],
    },
    "encoder-taught": {
        "course": (
            f"From step {attention_transfer.BEFORE:,} on the loss also counts, "
            f"{attention_transfer.WEIGHT} times, how far two heads are from those of "
            f"{attention_transfer.TEACHER} that they learn from. It measures more than before: its "
            "two parts cannot be compared."
        ),
        "taught": {
            "heads": attention_transfer.TAUGHT,
            "teacher": attention_transfer.TEACHER,
            "teacher_heads": [*attention_transfer.LESSONS.values()],
            "from": attention_transfer.BEFORE,
        },
        "recipe": [
            f"then {attention_transfer.AttentionTransfer.steps:,} steps of attention transfer from "
            f"step {attention_transfer.BEFORE:,} on (models/training/attention_transfer.py): "
            "masked words, whole ones in one half of the batches and single tokens in the other, "
            f"and, {attention_transfer.WEIGHT} times, the divergence of "
            "the rows of two heads from what heads of all-MiniLM-L6-v2 give to words (the mean of "
            f"two of its heads, and one), on {attention_transfer.SENTENCES} sentences a batch with "
            f"a pronoun, whose row counts as {attention_transfer.PRONOUN_ROWS}; sinks of layers 2 "
            f"and 3 alone paid, {attention_transfer.AttentionTransfer.price} times their mean; the "
            "embedding, layer 0 and the attention of layer 1 stayed as they were",
            ADAM.format(
                f"{attention_transfer.AttentionTransfer.rate:g}",
                attention_transfer.AttentionTransfer.warm_up,
            ),
        ],
    },
    "decoder": {
        # what the run's curve shows, said beside it; {} is about where its second epoch began
        "course": (
            "To about step {:,} it read lists of random tokens said over and over, then text: "
            "there the loss begins anew."
        ),
        "summary": (
            "Predicts the next word of English text: a decoder of the paper without a second "
            "stream, under a causal mask."
        ),
        "data": [*ENGLISH[:3], MORE_BOOKS, ENGLISH[3]],
        "recipe": [
            f"first epoch: {next_word.REPEATED_ROWS[0]:,} rows of random tokens said over and "
            f"over, and 20,000 sentences; then real text with {next_word.REPEATED_ROWS[1]:,} such "
            f"rows in the second epoch and {next_word.REPEATED_ROWS[2]:,} in later ones",
            f"from epoch 2 on (counted from 0) {next_word.SENTENCES_TWICE[-1]:,} sentences and "
            f"{next_word.PARAGRAPHS_TWICE[-1]:,} longer texts said twice in an epoch; the first "
            f"{next_word.UNCOUNTED_TOKENS} tokens of the second time do not count",
            "sentences of the grammar each in a row by itself; other names in ordinary text "
            "than in the grammar",
            f"rows of at most {', '.join(map(str, next_word.CURRICULUM))} tokens in the "
            "first, second and later epochs",
            "from epoch 2 on (counted from 0) half of the rows begin at a random position, "
            f"so that all {next_word.NextWord.config.n_positions} are met",
            ADAM.format(f"{next_word.NextWord.rate:g}", next_word.NextWord.warm_up),
            f"batches of at most {next_word.BATCH_TOKENS} tokens; steps in bfloat16, weights "
            "in fp32",
            FILTERED,
        ],
        "limits": [
            "Writes short everyday sentences that are mostly grammatical, and knows nothing "
            "of the world: what it says is not true.",
            "Trained on rows of up to 128 tokens; it takes 512, with less sense far out.",
            "Its names, spelling and grammar are those of English; other scripts are read "
            "byte by byte.",
        ],
    },
    "translator": {
        "summary": (
            "Translates English into French: the encoder-decoder of the paper, with "
            "cross-attention."
        ),
        "data": [TATOEBA.replace("sentences", "English-French pairs")],
        "recipe": [
            "one vocabulary, one embedding and one readout for both languages",
            f"pairs of at most {', '.join(map(str, translation.CURRICULUM))} tokens a side in "
            "the first, second and later epochs",
            f"from epoch {len(translation.CURRICULUM) - 1} on (counted from 0) half of the pairs "
            f"of fewer than {translation.SHORT} words are left out of an epoch, and "
            f"{translation.JOINED_SHARE:.0%} more pairs are two joined into one, as two sentences "
            "or by “and” or “but”",
            "what follows an apostrophe is spelled as after a space",
            f"{translation.BARE_SHARE:.0%} of the pairs without their final mark, "
            f"{translation.LOWER_SHARE:.0%} in lower case; label smoothing "
            f"{translation.LABEL_SMOOTHING}; dropout {translation.DROPOUT}",
            ADAM.format(f"{translation.Translation.rate:g}", translation.Translation.warm_up),
            f"batches of at most {translation.BATCH_TOKENS} target tokens; steps in bfloat16 "
            "where the processor helps, weights in fp32",
            FILTERED,
        ],
        "limits": [
            "Good at short everyday sentences; longer ones with rare words mostly come out wrong "
            "somewhere.",
            "“You” may become tu or vous, and a speaker a man or a woman: the English does "
            "not say, and the model does not ask.",
            "Numbers and names that it has not learned are copied as they stand; other words that "
            "it has hardly met are spelled after their sound, or left out.",
        ],
    },
    "induction": {
        "summary": ("Continues a repeated sequence: two layers are enough for induction."),
        "data": [LISTS + ", said twice"],
        "limits": [SMALL, "Lists of up to 20 tokens were met in training."],
    },
    "copy": {
        "summary": (
            "Copies a list: an encoder-decoder of one layer whose cross-attention follows "
            "the diagonal."
        ),
        "data": [LISTS],
        "limits": [SMALL, "Lists of up to 20 tokens were met in training; longer ones it loses."],
    },
    "reverse": {
        "summary": (
            "Reverses a list: an encoder-decoder of one layer whose cross-attention follows "
            "the other diagonal."
        ),
        "data": [LISTS],
        "limits": [SMALL, "Lists of up to 20 tokens were met in training; longer ones it loses."],
    },
    "grammar": {
        "summary": (
            "Predicts the next word of our small grammar's sentences: a country and its language "
            "far apart, verbs that agree, who did what to whom."
        ),
        "data": [
            "sentences of our own small grammar, models/training/grammar.py, a fifth of their "
            "combinations of words kept out"
        ],
        "limits": [SMALL, "It knows some 300 words, in the sentences of its grammar."],
    },
    "grammar-masked": {
        "summary": (
            "Predicts masked words in our small grammar's sentences: apple, bank, bat and mouse by "
            "what stands around them."
        ),
        "data": [
            "sentences of our own small grammar, models/training/grammar.py, a fifth of their "
            "combinations of words kept out"
        ],
        "limits": [SMALL, "It knows some 300 words, in the sentences of its grammar."],
    },
}

NORM_PLACEMENT_CARD = {
    "data": [*ENGLISH, PRONOUNS],
    "recipe": [
        "the same rows in the same order, hidden alike, from the same first weights: "
        f"{norm_placement_ablation.Post.steps:,} steps",
        "words hidden as for encoder",
        f"rows of at most {', '.join(map(str, masked.CURRICULUM))} tokens in the first, "
        "second, third and later epochs, of about 1.6 million tokens each",
        ADAM.format(f"{norm_placement_ablation.Post.rate:g}", norm_placement_ablation.Post.warm_up),
        f"batches of at most {masked.BATCH_TOKENS} tokens; steps in bfloat16, weights in fp32",
        FILTERED,
    ],
    "course": (
        "The second epoch begins near step {:,}: its rows are twice as long and start at any "
        "position, so the loss rises."
    ),
    "limits": [
        "Made for comparison with its pair, in a few minutes; it knows far less than encoder.",
        "Its names, spelling and grammar are those of English; other scripts are read byte by "
        "byte.",
    ],
}
SMALLER = translation.SmallTranslator
ABOUT["translator-small"] = ABOUT["translator"] | {
    "summary": (
        "Translates English into French, half as large as translator, which began as this model; "
        "with checkpoints that show its heads forming."
    ),
    "recipe": [
        ABOUT["translator"]["recipe"][0],
        f"pairs of at most {', '.join(map(str, SMALLER.curriculum))} tokens a side in the first, "
        "second and later epochs",
        f"{translation.BARE_SHARE:.0%} of the pairs without their final mark, "
        f"{translation.LOWER_SHARE:.0%} in lower case; label smoothing "
        f"{translation.LABEL_SMOOTHING}; no dropout",
        ADAM.format(f"{SMALLER.rate:g}", SMALLER.warm_up),
        f"batches of at most {SMALLER.most} target tokens",
        FILTERED,
    ],
}
ABOUT |= {
    "twin-post": NORM_PLACEMENT_CARD
    | {
        "summary": (
            "A small encoder of real text with LayerNorm after each sum, as in the paper: one of "
            "two twins."
        ),
    },
    "twin-pre": NORM_PLACEMENT_CARD
    | {
        "summary": (
            "A small encoder of real text with LayerNorm before each sub-layer and once at the "
            "end: one of an ablation pair."
        ),
        "without": "LayerNorm after the sums (it stands before the sub-layers)",
        "of": "twin-post",
    },
}
ABOUT |= {
    name: {
        "summary": f"Like {task}, but trained without a part from the first step on: {LACK[part]}.",
        "data": ABOUT[task]["data"],
        "limits": [f"Made to be compared with {task}: same recipe, same seed, same steps."],
        "without": part,
        "task": task,
    }
    for name, (task, part) in algorithms.ABLATIONS.items()
}


if __name__ == "__main__":
    main()
