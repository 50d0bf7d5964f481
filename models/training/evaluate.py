"""Measure the shipped models and write what is found into their cards: `python -m models.training.evaluate --data DIR`.

All scores on all cards come from here. The models of real text are measured on text held out from their training, read from DIR; the
small ones on fresh random lists and on kept-out sentences of the grammar. Names of models limit it to those. Needs sacrebleu (it
comes with the tests' requirements).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from tqdm import tqdm

from models import generation, own, shipped
from models.own import Handle
from models.training import algorithms, alignments, masked, next_word, train, translation
from models.training.corpus import read, read_divided, read_pairs
from models.training.probes import best_heads, previous_far_out

LONG = 8  # English words


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models",
        nargs="*",
        choices=[*train.RECIPES, []],
        help="all shipped ones where none is named",
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the corpora, for the models of real text"
    )
    options = parser.parse_args()
    for name in options.models or shipped.names():
        evaluate(name, options.data)


def evaluate(name: str, data: Path | None) -> None:
    """Measure one shipped model and write its card anew. Raises ValueError where it needs corpora and there are none."""
    if name in train.ON_CORPORA and data is None:
        raise ValueError(
            f"{name} is measured on held-out text: say with --data where the corpora lie"
        )
    handle = own.load(name)
    scores, headline = MEASURES.get(name, small)(handle, data)
    card = shipped.card(name) | {
        "n_parameters": handle.card.n_parameters,
        "headline": headline,
        "measured": HOW.get(name, HOW["small"]),
        "scores": scores,
    }
    shipped.write_card(name, card)
    print(name, *(f"  {key}: {value}" for key, value in scores.items()), sep="\n")


def encoder(handle: Handle, data: Path) -> tuple[dict, str]:
    """Masked words."""
    _, held_out = read(data)
    scores = masked.held_out_scores(handle.model, handle.tokenizer, held_out)
    scores["previous, positions 400 to 510 of 512"] = round(
        previous_far_out(handle, list(held_out.paragraphs)), 3
    )
    return (
        scores,
        f"It guesses {scores['masked_accuracy']:.0%} of masked words in text it never saw.",
    )


def decoder(handle: Handle, data: Path) -> tuple[dict, str]:
    """Perplexity on held-out text, and heads on held-out sentences and on random lists said twice."""
    _, held_out = read_divided(data)
    model, tokenizer = handle.model, handle.tokenizer
    _, sentences = next_word.perplexity(model, tokenizer, list(held_out.sentences))
    _, paragraphs = next_word.perplexity(model, tokenizer, list(held_out.paragraphs))
    texts = [text for text in held_out.sentences if len(text) > 40][:100]
    scores: dict[str, float | str] = {
        "perplexity a token, sentences": round(sentences, 2),
        "perplexity a token, paragraphs": round(paragraphs, 2),
    }
    scores |= {
        f"{name}, held-out sentences": score
        for name, score in best_heads(model, tokenizer, texts).items()
        if name in ("previous", "first", "self", "broad")
    }
    for name, (score, layer, head) in next_word.repetition_scores(model, tokenizer).items():
        scores[f"{name}, 24 random tokens said twice"] = f"{score:.3f} L{layer}H{head}"
    return scores, f"Perplexity on sentences it never saw: {sentences:.0f} a token."


def translator(handle: Handle, data: Path) -> tuple[dict, str]:
    """BLEU and chrF on held-out sentences, by greedy choice and by a beam of 4, and alignment on hand-made pairs."""
    _, held_out = read_pairs(data)
    answers: dict[str, list[str]] = {}
    for english, french in zip(held_out.english, held_out.french):
        answers.setdefault(english, []).append(french)
    sources = list(answers)
    long = [at for at, text in enumerate(sources) if len(text.split()) >= LONG]
    scores: dict[str, float | str] = {
        "held-out sentences": len(sources),
        f"of them with {LONG} words or more": len(long),
    }
    for way, translate in (("greedy", greedy), ("beam of 4", beam)):
        said = translate(handle, sources)
        for words, chosen in (("all", list(range(len(sources)))), (f"{LONG} words or more", long)):
            bleu, single, chrf = bleu_and_chrf(
                [said[at] for at in chosen], [answers[sources[at]] for at in chosen]
            )
            scores |= {
                f"BLEU, {way}, {words}": bleu,
                f"BLEU against one reference, {way}, {words}": single,
                f"chrF, {way}, {words}": chrf,
            }
    scores |= alignments.accuracy(handle)
    return (
        scores,
        f"BLEU {scores['BLEU, greedy, all']:.0f} on {len(sources):,} sentences it never saw, none of them nearly the same as one it did.",
    )


def greedy(handle: Handle, sources: list[str]) -> list[str]:
    """The likeliest token each time, many sentences at once."""
    tokenizer, order = (
        handle.tokenizer,
        sorted(range(len(sources)), key=lambda at: len(sources[at])),
    )
    said = [""] * len(sources)
    for at in range(0, len(order), 64):
        some = order[at : at + 64]
        for place, ids in zip(
            some,
            translation.greedy(
                handle.model, tokenizer, tokenizer.ids([sources[place] for place in some])
            ),
        ):
            said[place] = tokenizer.text(ids)
    return said


def beam(handle: Handle, sources: list[str], n_beams: int = 4) -> list[str]:
    """The best of a beam search, sentence by sentence."""
    tokenizer, said = handle.tokenizer, []
    for text in tqdm(sources, desc="beam search", mininterval=5):
        tokens, _ = own.frame(handle, text)
        longest = generation.longest_answer(len(tokens.ids), handle.card.n_positions)
        *_, last = generation.beams(
            handle.model,
            [tokenizer.bos],
            tokenizer.eos,
            n_beams,
            longest,
            own.memory_of(handle, tokens),
        )
        said.append(tokenizer.text(last[0].ids))
    return said


def bleu_and_chrf(said: list[str], answers: list[list[str]]) -> tuple[float, float, float]:
    """(BLEU against all references, BLEU against the first alone, chrF against all), sacrebleu's defaults."""
    import sacrebleu

    most = max(map(len, answers))
    references = [[each[at] if at < len(each) else None for each in answers] for at in range(most)]
    first = [[each[0] for each in answers]]
    bleu = sacrebleu.corpus_bleu(said, references).score
    return (
        round(bleu, 1),
        round(sacrebleu.corpus_bleu(said, first).score, 1),
        round(sacrebleu.corpus_chrf(said, references).score, 1),
    )


def small(handle: Handle, data: Path | None) -> tuple[dict, str]:
    """The small models, by what their recipe measures on what they never saw."""
    scores = algorithms.RECIPES[handle.card.name]().progress(handle.model, handle.tokenizer)
    name, value = next(iter(scores.items()))
    return scores, f"{name[0].upper()}{name[1:]}: {value:.0%}, on what it never saw."


MEASURES: dict[str, Callable[[Handle, Path], tuple[dict, str]]] = {
    "encoder": encoder,
    "decoder": decoder,
    "translator": translator,
}
HOW = {
    "encoder": f"on {masked.HELD_OUT_SENTENCES} sentences and {masked.HELD_OUT_PARAGRAPHS} paragraphs kept out of training; a quarter of the words hidden as in training. "
    "Heads: mean attention along the pattern, over a quarter of these texts, best head; broad: mean row entropy as a share of an even row’s",
    "decoder": "on sentences kept out of training together with everything one word away from them, and on paragraphs of the books kept out of training; heads: mean "
    "attention along the pattern, best head; induction only over the second time the list is said",
    "translator": "on Tatoeba pairs whose English was kept out of training together with everything one word away from it, and their French answers; sacrebleu's BLEU and "
    "chrF; alignment: on word pairs of models/alignments.py, whether the row that says a French word has its largest weight on the English one",
    "small": "on fresh random lists of tokens, or, for the grammar, on sentences whose combination of deciding words was kept out of training",
}


if __name__ == "__main__":
    main()
