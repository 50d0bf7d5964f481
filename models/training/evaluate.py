"""Measure the shipped models and write what is found into their cards: `python -m
models.training.evaluate --data DIR`.

All scores on all cards come from here. The models of real text are measured on text held out from
their training, read from DIR; the small ones on fresh random lists and on kept-out sentences of the
grammar. Names of models limit it to those. With `--beside` another run or another generation of
weights is measured on the very same text, and both scores are printed. Needs sacrebleu (it comes
with the tests' requirements).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from tqdm import tqdm

from models import shipped_models, smollm2
from models.contract.recording import Stream
from models.network import generation, own_model
from models.network.config import Config
from models.network.own_model import OwnModel, record
from models.network.transformer import Decoder, Encoder, EncoderDecoder
from models.runtime import registry
from models.tokens.tokenizer import Tokenizer
from models.training import (
    algorithms,
    grammar,
    heldout_sentences,
    masked,
    next_word,
    norm_placement_ablation,
    translation,
)
from models.training.corpus import Corpus, read, read_divided, read_library, read_pairs
from models.training.head_scores import best_head, best_heads, previous_far_out
from models.training.training_config import Kind

LONG = 8  # English words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="*",
        choices=[*shipped_models.names(), smollm2.NAME, []],
        help=f"all shipped ones where none is named; the scores of {smollm2.NAME} are printed only",
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the corpora, for the models of real text"
    )
    parser.add_argument(
        "--beside",
        type=Path,
        help="a run's folder, or one with other weights, tokenizer and card, to be measured on the "
        "same text beside each shipped model named; no card is written then",
    )
    options = parser.parse_args()
    for name in options.models or shipped_models.names():
        if options.beside is None:
            evaluate(name, options.data)
        else:
            compare(name, options.beside, options.data)


def evaluate(name: str, data: Path | None) -> None:
    """Measure one shipped model and write its card anew. Raises ValueError where it needs corpora
    and there are none."""
    model = registry.load(name) if name == smollm2.NAME else own_model.load(name)
    assert isinstance(model, OwnModel)
    scores, headline = measure(name, model, data)
    print(name, *(f"  {key}: {value}" for key, value in scores.items()), sep="\n")
    if name == smollm2.NAME:
        return
    card = shipped_models.card(name) | {
        "n_parameters": model.card.n_parameters,
        "headline": headline,
        "measured": HOW.get(name, HOW["small"]),
        "scores": scores,
    }
    shipped_models.write_card(name, card)


def compare(name: str, folder: Path, data: Path | None) -> None:
    """Measure the shipped model and another one, and print both scores line by line."""
    shipped, other = (
        measure(name, model, data)[0] for model in (own_model.load(name), model_from(name, folder))
    )
    print(f"{name}: shipped | {folder}")
    for key in dict.fromkeys((*shipped, *other)):
        print(f"  {key}: {shipped.get(key, '-')} | {other.get(key, '-')}")


def measure(name: str, model: OwnModel, data: Path | None) -> tuple[dict, str]:
    """(scores, headline) of a model. Raises ValueError where it needs corpora and there are
    none."""
    if name not in MEASURES:
        return small_model(name, model)
    if data is None:
        raise ValueError(
            f"{name} is measured on held-out text: say with --data where the corpora lie"
        )
    return MEASURES[name](name, model, data)


def model_from(name: str, folder: Path) -> OwnModel:
    """A model of the kind of `name` from a run's folder (its newest checkpoint) or from a folder of
    shipped weights with a card."""
    if (folder / "checkpoint.pt").exists():
        checkpoint = torch.load(folder / "checkpoint.pt", weights_only=True)
        config, state = checkpoint["config"], checkpoint["model"]
    else:
        folder = folder / name if (folder / name).is_dir() else folder
        config = json.loads((folder / "card.json").read_text("utf-8"))["config"]
        state = load_file(folder / "model.safetensors")
    model = own_model.KINDS[shipped_models.card(name)["kind"]](Config(**config))
    model.load_state_dict({key: tensor.half().float() for key, tensor in state.items()})
    return own_model.from_network(
        model.eval(), Tokenizer.load(folder / "tokenizer.json"), str(folder), fingerprint=""
    )


def encoder(name: str, model: OwnModel, data: Path) -> tuple[dict, str]:
    """Masked words, and heads on held-out and hand-made text."""
    _, held_out = read(data)
    scores, headline = masked_words(model, held_out)
    scores |= pronoun_heads(model) | dependency_heads(model) | example_pronoun_head(model)
    scores["heads with a sink in an ordinary sentence"] = round(
        sink_share(model, ordinary_texts(held_out.sentences)), 3
    )
    scores["previous, positions 400 to 510 of 512"] = round(
        previous_far_out(model, list(held_out.paragraphs)), 3
    )
    return scores, headline


def twin(name: str, model: OwnModel, data: Path) -> tuple[dict, str]:
    """Masked words, and heads on held-out text."""
    return masked_words(model, read_divided(data)[1])


def masked_words(model: OwnModel, held_out: Corpus) -> tuple[dict, str]:
    """(scores, headline) of an encoder on held-out text."""
    scores = masked.held_out_scores(of_kind(model, Encoder), model.tokenizer, held_out)
    share = scores["masked_accuracy"]
    return scores, f"It guesses {share:.0%} of masked words in text it never saw."


def decoder(name: str, model: OwnModel, data: Path) -> tuple[dict, str]:
    """Perplexity on held-out text, scores of heads on held-out sentences and on repeated text, and
    checks of its generated text."""
    training, (_, held_out) = read_library(data), read_divided(data)
    network, tokenizer = of_kind(model, Decoder), model.tokenizer
    _, sentences = next_word.perplexity(network, tokenizer, list(held_out.sentences))
    _, paragraphs = next_word.perplexity(network, tokenizer, list(held_out.paragraphs))
    texts = [text for text in held_out.sentences if len(text) > 40][:100]
    scores: dict[str, float | str] = {
        "perplexity a token, sentences": round(sentences, 2),
        "perplexity a token, paragraphs": round(paragraphs, 2),
    }
    for kind, documents in (("sentences", held_out.sentences), ("paragraphs", held_out.paragraphs)):
        characters = sum(map(len, documents))
        scores[f"bits a character, {kind}"] = round(
            total_nats(model, documents) / log(2) / characters, 4
        )
    scores |= {
        f"{name}, held-out sentences": score
        for name, score in best_heads(network, tokenizer, texts).items()
        if name in ("previous", "first", "self", "broad")
    }
    for relation, best in next_word.repetition_scores(network, tokenizer).items():
        scores[f"{relation}, 24 random tokens repeated"] = str(best)
    scores["induction, held-out sentences said twice"] = repetition_score(model, texts[:40])
    prompts = text_prompts(held_out.sentences[1::7])
    looping = [has_loop(ids) for ids in continuations(model, prompts, 60)]
    scores[f"greedy texts of 60 tokens without a repeated 8-gram, of {len(prompts)}"] = round(
        1 - sum(looping) / len(looping), 2
    )
    samples = [tokenizer.text(ids) for ids in continuations(model, prompts, 40, 0.8)]
    known_words = vocabulary(
        (*training.sentences, *training.paragraphs, *training.books, *grammar.MEN, *grammar.WOMEN)
    )
    scores["words it writes at temperature 0.8 that are none"] = round(
        unknown_share([text.rpartition(" ")[0] for text in samples], known_words), 4
    )
    return scores, f"Perplexity on sentences it never saw: {sentences:.0f} a token."


def translator(name: str, model: OwnModel, data: Path) -> tuple[dict, str]:
    """BLEU and chrF on held-out sentences, by greedy choice (the longer ones by a beam of 4 too),
    words that are none, and alignment on hand-made pairs."""
    training, held_out = read_pairs(data)
    references: dict[str, list[str]] = {}
    for english, french in zip(held_out.english, held_out.french):
        references.setdefault(english, []).append(french)
    sources = list(references)
    long_sources = [text for text in sources if len(text.split()) >= LONG]
    scores: dict[str, float | str] = {
        "held-out sentences": len(sources),
        f"of them with {LONG} words or more": len(long_sources),
    }
    by_greedy = dict(zip(sources, greedy(model, sources)))
    # The short ones gain little by it.
    by_beam = dict(zip(long_sources, beam(model, long_sources)))
    for label, texts, answer in (
        ("greedy, all", sources, by_greedy),
        (f"greedy, {LONG} words or more", long_sources, by_greedy),
        (f"beam of 4, {LONG} words or more", long_sources, by_beam),
    ):
        bleu, single, chrf = bleu_and_chrf(
            [answer[text] for text in texts], [references[text] for text in texts]
        )
        scores |= {
            f"BLEU, {label}": bleu,
            f"BLEU against one reference, {label}": single,
            f"chrF, {label}": chrf,
        }
    translations = greedy(model, list(heldout_sentences.TO_TRANSLATE))
    known_words = vocabulary((*training.french, *training.english))
    scores["words that are none, in translations of 60 hand-made sentences"] = round(
        unknown_share(translations, known_words), 4
    )
    scores |= accuracy(model)
    return (
        scores,
        (
            f"BLEU {scores['BLEU, greedy, all']:.0f} on {len(sources):,} sentences it never saw, "
            "none of them nearly the same as one it did."
        ),
    )


def greedy(model: OwnModel, sources: list[str]) -> list[str]:
    """The likeliest token each time, many sentences at once."""
    tokenizer = model.tokenizer
    order = sorted(range(len(sources)), key=lambda at: len(sources[at]))
    translations = [""] * len(sources)
    for at in range(0, len(order), 64):
        batch = order[at : at + 64]
        for place, ids in zip(
            batch,
            translation.greedy(
                of_kind(model, EncoderDecoder),
                tokenizer,
                tokenizer.ids([sources[place] for place in batch]),
            ),
        ):
            translations[place] = tokenizer.text(ids)
    return translations


def beam(model: OwnModel, sources: list[str], n_beams: int = 4) -> list[str]:
    """The best of a beam search, sentence by sentence."""
    tokenizer, translations = model.tokenizer, []
    bos, _ = tokenizer.ends
    for text in tqdm(sources, desc="beam search", mininterval=5):
        tokens, _ = own_model.frame(model, text)
        longest = generation.max_answer_length(len(tokens.ids), model.card.n_positions)
        *_, last = generation.beams(
            model.network,
            [bos],
            tokenizer.eos_ids,
            n_beams,
            longest,
            own_model.memory_of(model, tokens),
        )
        translations.append(tokenizer.text(last[0].ids))
    return translations


def bleu_and_chrf(hypotheses: list[str], targets: list[list[str]]) -> tuple[float, float, float]:
    """(BLEU against all references, BLEU against the first alone, chrF against all), sacrebleu's
    defaults."""
    import sacrebleu

    n_references = max(map(len, targets))
    # sacrebleu takes None for a sentence that has no such answer, though its types do not say so.
    references: Any = [
        [each[at] if at < len(each) else None for each in targets] for at in range(n_references)
    ]
    first = [[each[0] for each in targets]]
    bleu = sacrebleu.corpus_bleu(hypotheses, references).score
    return (
        round(bleu, 1),
        round(sacrebleu.corpus_bleu(hypotheses, first).score, 1),
        round(sacrebleu.corpus_chrf(hypotheses, references).score, 1),
    )


@torch.inference_mode()
def chat_model(name: str, model: OwnModel, data: Path) -> tuple[dict, str]:
    """Perplexity of 40 held-out paragraphs, each after <|endoftext|> (token 0), and the best
    induction and previous-token heads on 24 random tokens repeated once."""
    rng, paragraphs = np.random.default_rng(0), read(data)[1].paragraphs
    total, n_tokens = 0.0, 0
    for at in rng.choice(len(paragraphs), 40, replace=False):
        ids = [0, *model.tokenizer.ids([paragraphs[at]])[0]][: model.card.n_positions]
        likely = model.network.logits(model.network(torch.tensor([ids])))[0].log_softmax(-1)
        total -= float(likely[:-1].gather(1, torch.tensor(ids[1:])[:, None]).sum())
        n_tokens += len(ids) - 1
    perplexity = round(exp(total / n_tokens), 2)
    return {"perplexity a token, 40 held-out paragraphs": perplexity} | repeated_tokens(model), ""


@torch.inference_mode()
def repeated_tokens(model: OwnModel) -> dict[str, float | str]:
    """The best induction and previous-token heads on 24 random tokens repeated once."""
    scores: dict[str, float | str] = {}
    rng, n = np.random.default_rng(0), 24
    second, later = torch.arange(n, 2 * n), torch.arange(1, 2 * n)
    means = {"induction": torch.zeros(()), "previous": torch.zeros(())}
    for _ in range(8):
        once, patterns = rng.integers(1000, 40000, n), list[torch.Tensor]()
        model.network(
            torch.tensor([[*once, *once]]),
            tape=lambda name, x: patterns.append(x[0]) if name.endswith(".pattern") else None,
        )
        pattern = torch.stack(patterns)  # (layer, head, query, key)
        means["induction"] = means["induction"] + pattern[:, :, second, second - n + 1].mean(-1)
        means["previous"] = means["previous"] + pattern[:, :, later, later - 1].mean(-1)
    for relation, mean in means.items():
        scores[f"{relation}, random tokens repeated"] = str(best_head(mean / 8))
    return scores


def small_model(name: str, model: OwnModel) -> tuple[dict, str]:
    """The small models, by what their recipe measures on what they never saw."""
    scores = algorithms.RECIPES[name]().progress(model.network, model.tokenizer)
    first, value = next(iter(scores.items()))
    return scores, f"{first[0].upper()}{first[1:]}: {value:.0%}, on what it never saw."


MEASURES: dict[str, Callable[[str, OwnModel, Path], tuple[dict, str]]] = {
    "encoder": encoder,
    "decoder": decoder,
    "translator": translator,
    "translator-small": translator,
    smollm2.NAME: chat_model,
    **dict.fromkeys(norm_placement_ablation.RECIPES, twin),
}
OF_A_TRANSLATOR = (
    "on Tatoeba pairs whose English was kept out of training together with everything one "
    "word away from it, and their French answers; sacrebleu's BLEU and chrF; alignment: on "
    "word pairs of models/alignments.py, whether the row that says a French word has its "
    "largest weight on the English one"
)
HOW = {
    "encoder": (
        f"on {masked.HELD_OUT_SENTENCES} sentences and {masked.HELD_OUT_PARAGRAPHS} paragraphs "
        "kept out of training; a quarter of the words hidden as in training. Heads: mean "
        "attention along the pattern, over a quarter of these texts, best head; broad: mean row "
        "entropy as a share of an even row’s. A pronoun’s and a word’s heads: on hand-made "
        "sentences, models/training/heldout_sentences.py; a sink: a token that gets a fifth of a "
        "head’s weight and three times its even share, over 60 held-out sentences of 8 to 16 words"
    ),
    "decoder": (
        "on sentences kept out of training together with everything one word away from them, and "
        "on paragraphs of the books kept out of training; heads: mean attention along the "
        "pattern, best head; induction only over the second time the list is said"
    ),
    "translator": OF_A_TRANSLATOR,
    "translator-small": OF_A_TRANSLATOR,
    **dict.fromkeys(
        norm_placement_ablation.RECIPES,
        f"on {masked.HELD_OUT_SENTENCES} sentences and {masked.HELD_OUT_PARAGRAPHS} paragraphs "
        "kept out of training; a quarter of the words hidden. Heads: mean attention along the "
        "pattern, over a quarter of these texts, best head",
    ),
    "small": (
        "on fresh random lists of tokens, or, for the grammar, on sentences whose combination of "
        "deciding words was kept out of training"
    ),
}


PAIRS = (
    (
        "The black cat sleeps on the old chair.",
        "Le chat noir dort sur la vieille chaise.",
        "black=noir cat=chat sleeps=dort on=sur old=vieille chair=chaise",
    ),
    (
        "We bought a red car and a white house.",
        "Nous avons acheté une voiture rouge et une maison blanche.",
        "bought=acheté red=rouge car=voiture and=et white=blanche house=maison",
    ),
    (
        "My brother never eats green apples.",
        "Mon frère ne mange jamais de pommes vertes.",
        "My=Mon brother=frère never=jamais eats=mange green=vertes apples=pommes",
    ),
    (
        "She lost her key in the garden.",
        "Elle a perdu sa clé dans le jardin.",
        "She=Elle lost=perdu key=clé in=dans garden=jardin",
    ),
    (
        "The teacher gave us a difficult question.",
        "Le professeur nous a donné une question difficile.",
        "teacher=professeur gave=donné us=nous difficult=difficile question=question",
    ),
    (
        "I would like to drink some cold water.",
        "J'aimerais boire de l'eau froide.",
        "drink=boire cold=froide water=eau",
    ),
    (
        "His sister speaks French very well.",
        "Sa sœur parle très bien français.",
        "sister=sœur speaks=parle French=français very=très well=bien",
    ),
    (
        "Where did you find this interesting book?",
        "Où as-tu trouvé ce livre intéressant ?",
        "Where=Où find=trouvé this=ce interesting=intéressant book=livre",
    ),
    (
        "The children are playing in the street.",
        "Les enfants jouent dans la rue.",
        "children=enfants playing=jouent street=rue",
    ),
    (
        "It is raining, so we will stay at home.",
        "Il pleut, alors nous resterons à la maison.",
        "raining=pleut we=nous stay=resterons home=maison",
    ),
    (
        "He wants to buy a new bicycle tomorrow.",
        "Il veut acheter un nouveau vélo demain.",
        "wants=veut buy=acheter new=nouveau bicycle=vélo tomorrow=demain",
    ),
    (
        "Your father works in a big city.",
        "Votre père travaille dans une grande ville.",
        "father=père works=travaille big=grande city=ville",
    ),
)


@dataclass(frozen=True)
class WordAlignment:
    """The alignment of one pair of words: `right` (layer, head) bool, and `mean` (layer) for the
    mean of a layer's heads."""

    english: str
    french: str
    right: np.ndarray
    mean: np.ndarray


def word_alignments(model: OwnModel) -> list[WordAlignment]:
    """Every hand-made pair of words, looked up in the cross-attention of the forced translation."""
    alignments = []
    for english, french, words in PAIRS:
        recording = record(model, english, target=french)
        cross = recording.attention[-1].pattern
        for pair in words.split():
            source, target = pair.split("=")
            keys = token_positions(recording.stream("encoder"), source, english)
            # The row that says it.
            row = token_positions(recording.stream("decoder"), target, french)[0] - 1
            best = cross[:, :, row].argmax(axis=-1)
            alignments.append(
                WordAlignment(
                    source,
                    target,
                    np.isin(best, keys),
                    np.isin(cross[:, :, row].mean(axis=1).argmax(axis=-1), keys),
                )
            )
    return alignments


def accuracy(model: OwnModel) -> dict[str, str | float]:
    """The share of word pairs that are right: by the mean of a layer's heads, for the best layer,
    and by the best single head."""
    alignments = word_alignments(model)
    mean = np.mean([alignment.mean for alignment in alignments], axis=0)
    heads = np.mean([alignment.right for alignment in alignments], axis=0)
    return {
        "word pairs": len(alignments),
        "alignment, mean of a layer's heads": f"{mean.max():.3f} L{mean.argmax()}",
        "alignment, best head": str(best_head(heads)),
    }


# A sink, as the app's grid calls one: a token on which a head's rows rest this much on average, and
# so many times more than evenly.
SINK, SINK_LIFT = 0.2, 3
# Words of an ordinary sentence, and how many of them are looked at.
ORDINARY, N_ORDINARY = range(8, 17), 60
EXAMPLE_PRONOUN = (
    "The animal didn't cross the street because it was too tired.",
    "it",
    "animal",
    "street",
)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def of_kind(model: OwnModel, kind: type[Kind]) -> Kind:
    """The network of a model. Raises TypeError where it is of another kind."""
    if not isinstance(model.network, kind):
        raise TypeError(f"{model.card.name} is no {kind.__name__}")
    return model.network


def token_positions(stream: Stream, word: str, text: str) -> list[int]:
    """The places of the tokens that make up a word's first occurrence as a whole word."""
    if not (match := re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)):
        raise ValueError(f"{word!r} is no word of {text!r}")
    start, end = match.span()
    return [at for at, (a, b) in enumerate(stream.spans) if a < end and b > start and a >= 0]


def pair_attention(model: OwnModel, text: str, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Every head's weight from the first word of each pair to the second, (pair, layer, head)."""
    recording = record(model, text)
    pattern, stream = recording.attention[0].pattern, recording.streams[0]
    return np.stack(
        [
            pattern[:, :, token_positions(stream, query, text)[-1]][
                ..., token_positions(stream, key, text)
            ].sum(-1)
            for query, key in pairs
        ]
    )


def pronoun_heads(model: OwnModel) -> dict[str, str]:
    """The head with the highest accuracy in resolving a pronoun between two nouns: its weight on
    the right one, on the other, and how often the right one gets more. `on the other half`: the
    same for the head that is best on every second sentence, on those between."""
    attention = np.stack(
        [
            pair_attention(model, text, ((pronoun, right), (pronoun, other)))
            for text, pronoun, right, other in heldout_sentences.PRONOUNS
        ]
    )  # (sentence, 2, layer, head)

    def best(rows: np.ndarray) -> tuple[int, int]:
        return np.unravel_index((rows[:, 0] - rows[:, 1]).mean(0).argmax(), rows.shape[2:])

    def summary(rows: np.ndarray, head: tuple[int, int]) -> str:
        right, other = rows[:, 0, *head], rows[:, 1, *head]
        share = (right > other).mean()
        return (
            f"{right.mean():.2f} and {other.mean():.2f}, more in {share:.0%}, L{head[0]}H{head[1]}"
        )

    even, odd = attention[::2], attention[1::2]
    return {
        "pronoun to the noun that fits and to the other": summary(attention, best(attention)),
        "the same, head chosen on half of the sentences, measured on the rest": summary(
            odd, best(even)
        ),
    }


def dependency_heads(model: OwnModel) -> dict[str, str]:
    """The best heads from determiners to their nouns and from verbs to their subjects."""
    best = {}
    for name, at in (("determiner to its noun", 0), ("verb to its subject", 1)):
        scores = np.concatenate(
            [
                pair_attention(model, text, (determiners, verbs)[at])
                for text, determiners, verbs in heldout_sentences.PAIRS
            ]
        ).mean(0)
        best[name] = str(best_head(scores))
    return best


def example_pronoun_head(model: OwnModel) -> dict[str, str]:
    """The head that most ties "it" to "animal" in the app's first sentence, and what it gives to
    "street"."""
    text, it, animal, street = EXAMPLE_PRONOUN
    to_animal, to_street = pair_attention(model, text, ((it, animal), (it, street)))
    layer, head = np.unravel_index((to_animal - to_street).argmax(), to_animal.shape)
    summary = f"{to_animal[layer, head]:.2f} and {to_street[layer, head]:.2f}, L{layer}H{head}"
    return {"“it” to “animal” and to “street” in the app’s first sentence": summary}


def sink_share(model: OwnModel, texts: Sequence[str]) -> float:
    """The share of heads that have a sink, mean over the texts."""
    shares = []
    for text in texts:
        pattern = record(model, text).attention[0].pattern
        mean = pattern.mean(axis=2)  # (layer, head, key)
        is_sink = (mean >= SINK) & (mean >= SINK_LIFT / pattern.shape[-1])
        shares.append(is_sink.any(-1).mean())
    return float(np.mean(shares))


def ordinary_texts(texts: Sequence[str]) -> list[str]:
    """Some texts of ordinary length."""
    return [text for text in texts if len(text.split()) in ORDINARY][:N_ORDINARY]


@torch.inference_mode()
def total_nats(model: OwnModel, texts: Sequence[str]) -> float:
    """Negative log-likelihood in nats of all texts together, each alone and cut to the model's
    length."""
    total, network = 0.0, of_kind(model, Decoder)
    for text in texts:
        ids = torch.tensor([[model.tokenizer.ends[0], *model.tokenizer.ids([text])[0]]])
        ids = ids[:, : model.card.n_positions]
        total += next_word.loss(network, ids, torch.ones_like(ids, dtype=torch.bool)).item() * (
            ids.shape[1] - 1
        )
    return total


def repetition_score(model: OwnModel, texts: Sequence[str]) -> str:
    """The best induction head over the second time that texts are said, mean attention."""
    diagonals = []
    for text in texts:
        recording = record(model, f"{text} {text}")
        pattern = recording.attention[0].pattern
        n = (pattern.shape[-1] - 1) // 2
        second_positions = np.arange(n + 1, 2 * n + 1)
        diagonals.append(pattern[:, :, second_positions, second_positions - n + 1].mean(-1))
    return str(best_head(np.mean(diagonals, axis=0)))


@torch.inference_mode()
def continuations(
    model: OwnModel, prompts: Sequence[str], n: int, temperature: float = 0.0
) -> list[list[int]]:
    """A decoder's continuation of each prompt: `n` token ids, the likeliest each time or drawn at a
    temperature; the end is no token."""
    generator, continuations = torch.Generator().manual_seed(0), []
    for prompt in prompts:
        ids = [model.tokenizer.ends[0], *model.tokenizer.ids([prompt])[0]]
        start = len(ids)
        while len(ids) < start + n:
            logits = model.network.logits(model.network(torch.tensor([ids])))[0, -1]
            logits[list(model.tokenizer.special)] = float("-inf")
            if temperature:
                p = (logits / temperature).softmax(-1)
                ids.append(int(torch.multinomial(p, 1, generator=generator)))
            else:
                ids.append(int(logits.argmax()))
        continuations.append(ids[start:])
    return continuations


def has_loop(ids: Sequence[int]) -> bool:
    """True where a run of 8 tokens comes a second time."""
    runs = [tuple(ids[at : at + 8]) for at in range(len(ids) - 7)]
    return len(set(runs)) < len(runs)


def text_prompts(texts: Sequence[str]) -> list[str]:
    """The first four words of 50 texts of more than six, as prompts."""
    long = [text for text in texts if len(text.split()) > 6]
    return [" ".join(text.split()[:4]) for text in long[:50]]


def unknown_share(texts: Sequence[str], known_words: set[str]) -> float:
    """The share of the words of texts that are not among the `known` ones, in lower case."""
    words = [word.lower().replace("’", "'") for text in texts for word in WORD.findall(text)]
    return sum(word not in known_words for word in words) / max(1, len(words))


def vocabulary(texts: Sequence[str]) -> set[str]:
    """Every word of texts, in lower case."""
    return {word.lower().replace("’", "'") for text in texts for word in WORD.findall(text)}


if __name__ == "__main__":
    main()
