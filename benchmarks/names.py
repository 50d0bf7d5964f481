"""Reliability of head names and headlines: `python -m benchmarks.names`.

False names: models of the same sizes whose weights learned nothing are given ordinary sentences,
and texts of one word repeated; every name but "diffuse" and none is false. Stability: on fifty
ordinary sentences, how often a head has the name it has most often, over the sentences in which it
is not called "pronoun to noun": that name comes and goes with a text's pronouns.

`--headlines`: over the sentences of `headlines.txt` (English, French, German; 3 to 60 words), how
many headlines break their rule: a link in which another row of the head gives the same word half or
more, or as much as the link itself; one that stands above the mean of the other words only, where
another stands above all; a link with a function word at an end, other than from a pronoun to a
noun, where another link has none; a regularity where such a link was found; anything else where a
pronoun's link was found. The weights between words are merged here anew, apart from what makes the
findings.

`--pronoun-headlines`: over the sentences of `pronoun_headlines.txt`, in which {pronouns} are
marked, the [noun] that they stand for and (others) that they might: in how many of those in which
some head gives a marked noun at least 0.3 beyond chance the headline is about a pronoun. Chance is
the mean of what the other words of the text give that noun in the same head.

`--votes`: over the same sentences, and over the sixty of `pronoun_votes.txt`, of which nothing was
looked at when the rule of the vote was made: in how many the heads that find nouns name one by
their vote on a pronoun, in how many of these the right one, and that by how many heads said it;
what it counts over the first list it writes (with `--models` nothing).

`--pronouns`: which heads attend from a pronoun to its noun; it writes what the names of the models
that come with Headlight read; with `--models` it prints and writes nothing.

`--gates`: what the encoder's taught heads must show, before they were taught, after, and beside
their teacher: how often one head gives a pronoun's noun the most of all words, in the sentences of
`--pronouns` and in the hundred of `pronouns.txt`; its best previous, next and same-word heads; how
many heads rest on sinks; masked words; and pronouns' headlines as above. `--beside RUN` measures
the newest checkpoint of a run of `encoder-taught` instead of the shipped weights.

`--recordings N` is the number of recordings of each kind of weights and model; `--models a,b` which
models.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from explorer.analysis import coreference, findings, head_naming, word_classes, words
from explorer.analysis.findings import Finding
from explorer.analysis.word_classes import unread_language
from explorer.text import findings as findings_text
from models.contract.recording import Attention, Recording
from models.network import own_model
from models.network.transformer import Encoder, Transformer
from models.runtime import registry
from models.training import attention_transfer, evaluate, masked
from models.training.corpus import Corpus, read
from models.training.head_scores import mean_scores

MODELS = ("encoder", "decoder", "minilm")
READ = (  # those that read sentences
    *MODELS,
    "translator",
    *(name for name in (registry.SMOLLM2,) if name in registry.names()),
)
VOTED = ("encoder", "minilm", *READ[4:])  # those with heads that find nouns
RECORDINGS = 200
EACH = 10  # recordings of one draw of weights
SENTENCES = Path(__file__).with_name("sentences.txt")
HEADLINES = Path(__file__).with_name("headlines.txt")
REPEATED = tuple(
    " ".join([word] * n)
    for word, n in (
        ("the", 8),
        ("dog", 12),
        ("yes", 20),
        ("never", 16),
        ("house", 6),
        ("I", 30),
        ("green", 10),
        ("Nepal", 14),
        ("yesterday", 9),
        ("!", 12),
    )
)
NO_NAME = {"diffuse", head_naming.NO_PATTERN, head_naming.TOO_SHORT}
PRONOUNS = Path(__file__).with_name("pronouns.txt")
PRONOUN_HEADLINES = Path(__file__).with_name("pronoun_headlines.txt")
PRONOUN_VOTES = Path(__file__).with_name("pronoun_votes.txt")
PAIRS = (*findings.PAIRS, findings.ALIGNED, findings.CROSSED, findings.DOUBLE)
HALF = 0.5
BEYOND_CHANCE = 0.3  # a weight on a noun that is told of


def sentences() -> tuple[str, ...]:
    """Fifty ordinary sentences of many lengths, none of which the models learned from."""
    return tuple(SENTENCES.read_text("utf-8").split("\n")[:-1])


# ---- weights that learned nothing --------------------------------------------


def fresh(model: own_model.OwnModel) -> Transformer:
    """The model as it was before its training: its own initial weights."""
    return type(model.network)(model.network.config)


def normal(model: own_model.OwnModel) -> Transformer:
    """Every matrix drawn from a normal distribution of standard deviation 0.02, as BERT and GPT-2
    begin."""
    network = fresh(model)
    for matrix in _matrices(network):
        matrix.normal_(0, 0.02)
    return network


def permuted(model: own_model.OwnModel) -> Transformer:
    """The trained numbers, permuted within each matrix."""
    network = fresh(model)
    network.load_state_dict(model.network.state_dict(), strict=False)
    for matrix in _matrices(network):
        matrix.copy_(matrix.flatten()[torch.randperm(matrix.numel())].reshape(matrix.shape))
    return network


def sharpened(model: Transformer) -> Transformer:
    """The same with W_Q and W_K three times as large: attention as sharp as a trained model's."""
    for attention in (each for layers in model.attentions().values() for each in layers):
        attention.w_q.weight *= 3
        attention.w_k.weight *= 3
    return model


def _matrices(model: Transformer) -> Iterator[torch.Tensor]:
    return (each for each in model.parameters() if each.dim() > 1)


WEIGHTS: dict[str, Callable[[own_model.OwnModel], Transformer]] = {
    "own init": fresh,
    "normal 0.02": normal,
    "permuted": permuted,
    "own init, W_Q and W_K x 3": lambda model: sharpened(fresh(model)),
    "permuted, W_Q and W_K x 3": lambda model: sharpened(permuted(model)),
}


@lru_cache(maxsize=2)  # other texts may be read with the same draws
@torch.no_grad()
def untrained(model: own_model.OwnModel, kind: str, seed: int) -> own_model.OwnModel:
    """A model of the same sizes and vocabulary whose weights, of one of WEIGHTS, learned
    nothing."""
    torch.manual_seed(seed)
    network = WEIGHTS[kind](model).eval()
    return own_model.from_network(network, model.tokenizer, model.card.name, kind, kind, model.ends)


# ---- measures ----------------------------------------------------------------


def within(recording: Recording) -> Iterator[Attention]:
    """The attentions within one text."""
    return (each for each in recording.attention if each.query == each.key)


def named(recording: Recording) -> list[str]:
    """Every head's name."""
    return [
        head.name for each in within(recording) for head in head_naming.describe(recording, each)
    ]


def false_names(
    model: own_model.OwnModel, kind: str, texts: Sequence[str], n_recordings: int
) -> Counter[str]:
    """Count the names given to the heads of untrained weights, over `n_recordings` recordings."""
    names: Counter[str] = Counter()
    for at in range(n_recordings):
        if at % EACH == 0:
            drawn = untrained(model, kind, seed=at // EACH)
        names.update(named(drawn.record(texts[at % len(texts)])))
    return names


def share_of_false(names: Counter[str]) -> float:
    """The share of heads that have a name."""
    return sum(n for name, n in names.items() if name not in NO_NAME) / names.total()


def stability(model: own_model.OwnModel, texts: Sequence[str]) -> tuple[float, Counter[str]]:
    """The mean over a trained model's heads of how often each has its commonest name, and how often
    each name was given. The first is over the texts in which a head is not called "pronoun to
    noun", which comes and goes with a text's pronouns; a head that always is counts as stable."""
    names = np.array([named(model.record(text)) for text in texts])  # (text, head)
    shares = []
    for column in names.T:
        others = Counter(column[column != head_naming.PRONOUN].tolist())
        shares.append(others.most_common(1)[0][1] / others.total() if others else 1.0)
    return float(np.mean(shares)), Counter(names.ravel().tolist())


def ranked_findings(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording as a page makes them."""
    language = unread_language(recording.model.name, recording.text)
    return findings.findings(recording, language=language)


def headline(ranked: Sequence[Finding]) -> Finding | None:
    """The finding that a page opens on, None where there is none."""
    return next(iter(findings.select_findings(ranked)), None)


def broken(recording: Recording, ranked: Sequence[Finding]) -> str:
    """Describe the rule that the headline breaks, "" where it breaks none."""
    one = headline(ranked)
    if one is not None and one.ballots:
        return broken_vote(recording, one)
    if one is None or one.stands_for:
        return broken_mean(recording, one) if one else ""
    if any(each.stands_for for each in ranked):
        return "a pronoun's link, but no headline of it"
    plain = [each for each in ranked if each.kind in PAIRS and not fills(recording, each)]
    if one.kind not in PAIRS:
        is_repetition = one.kind == findings.INDUCTION
        return "a link, but no headline of it" if plain and not is_repetition else ""
    if one.above_mean:
        alone = [each for each in plain if not each.above_mean]
        return broken_mean(recording, one) or ("others show it too" if alone else "")
    for query, key, other in cells(recording, one):
        if other >= HALF:
            return f"another row gives {key} {other:.2f}"
        if other >= one.value:
            return f"another row gives {key} as much as {query}: {other:.2f}"
    if fills(recording, one) and plain:
        return f"a function word, though there is {' > '.join(plain[0].words)}"
    return ""


def broken_vote(recording: Recording, one: Finding) -> str:
    """Describe how a vote is not what its heads say, "" where it is: each says the noun that the
    pronoun gives most of its row, and the one that is named has the largest sum of the first two
    heads and most votes."""
    attention = next(each for each in recording.attention if each.name == one.attention)
    grouped = findings.attention_between_words(recording, attention, "", one.at).keys
    row = int(grouped.of[one.query])
    nouns = coreference.candidates(grouped.labels, grouped.labels)[row]
    rows = [
        np.where(nouns, words.merge_weights(attention.pattern[at], grouped, grouped)[row], -1)
        for at in one.shown_in
    ]
    said = [int(each.argmax()) for each in rows]
    if said != [each.key for each in one.ballots]:
        return f"the heads say {[grouped.labels[at] for at in said]}"
    names = [label.casefold() for label in grouped.labels]  # a noun is one wherever it stands
    sums: Counter[str] = Counter()
    for at in np.flatnonzero(nouns):
        sums[names[at]] += rows[0][at] + rows[1][at]
    ((noun, _),) = sums.most_common(1)
    n_votes = [names[at] for at in said].count(noun)
    is_clear = n_votes > len(said) / 2
    is_named = is_clear and one.words[1].casefold() == noun and one.kind not in findings.NO_NOUN
    return "" if is_clear == is_named else f"{noun} has {n_votes} votes"


def broken_mean(recording: Recording, one: Finding) -> str:
    """Describe how a link fails to stand above the mean of the other words, "" where it does."""
    _, rows, _, matrix = between(recording, one)
    row, key = int(rows.of[one.query]), int(rows.of[one.keys[0]])
    allowed = words.merge_allowed(recording.attention[0].reachable, rows, rows)
    mean = mean_of_others(matrix, allowed, rows, row, key)
    lifted = matrix[row, key] - mean >= findings.LEAST_LIFT * (1 - mean) - 1e-6
    return "" if lifted else f"the other words give {one.words[1]} {mean:.2f}"


def mean_of_others(
    matrix: np.ndarray, allowed: np.ndarray, grouped: words.Groups, row: int, key: int
) -> float:
    """The mean weight on a word from the others of a text but itself and the one of `row`; 1 where
    there is none. matrix and allowed (row, key), between words."""
    rows = [
        at
        for at in np.flatnonzero(findings.text_mask(grouped))
        if at not in (row, key) and allowed[at, key]
    ]
    return float(matrix[rows, key].mean()) if rows else 1.0


def cells(recording: Recording, one: Finding) -> Iterator[tuple[str, str, float]]:
    """The pairs of words of a link, each with the largest weight that the head's other rows (than
    those of the link) give its key."""
    attention, rows, keys, matrix = between(recording, one)
    places = [int(keys.of[key]) for key in one.keys]
    first = int(rows.of[one.query])
    n_rows = 2 if one.kind in (findings.CROSSED, findings.DOUBLE) else 1
    for at, key in enumerate(places):
        own = [first + at] if one.kind == findings.CROSSED else [first + of for of in range(n_rows)]
        others = np.delete(matrix[:, key], own)
        yield rows.labels[own[0]], keys.labels[key], float(others.max(initial=0))


def between(
    recording: Recording, one: Finding
) -> tuple[Attention, words.Groups, words.Groups, np.ndarray]:
    """The attention that a finding is seen in, its words, and the head's weights between them."""
    attention = next(each for each in recording.attention if each.name == one.attention)
    seen = findings.attention_between_words(recording, attention, "", one.at)
    matrix = words.merge_weights(attention.pattern[one.at], seen.rows, seen.keys)
    return attention, seen.rows, seen.keys, matrix


def fills(recording: Recording, one: Finding) -> bool:
    """True for a link with a function word at an end, other than from a pronoun to a noun."""
    _, rows, keys, _ = between(recording, one)
    of_rows, of_keys = (word_classes.classes(each.labels) for each in (rows, keys))
    if one.kind in (findings.CROSSED, findings.DOUBLE):
        ends = [of_rows[rows.of[one.query] + at] for at in (0, 1)]
        ends += [of_keys[keys.of[key]] for key in one.keys]
        return any(end != word_classes.CONTENT for end in ends)
    row, key = int(rows.of[one.query]), int(keys.of[one.keys[0]])
    # A noun that follows close upon a pronoun (his hands) is not what that stands for.
    noun = word_classes.nouns(keys.labels)[key] and not 0 < key - row < findings.FAR
    if of_rows[row] == word_classes.PRONOUN and noun and one.attention != "cross":
        return False
    return of_rows[row] != word_classes.CONTENT or of_keys[key] != word_classes.CONTENT


def headlines(names: Sequence[str], texts: Sequence[str], show: bool) -> None:
    """Count the headlines of each model that break the rule; all of them are printed where
    `show`."""
    for name in names:
        model = registry.load(name)
        kinds: Counter[str] = Counter()
        n_broken = 0
        for text in texts:
            recording = model.record(text)
            ranked = ranked_findings(recording)
            one = headline(ranked)
            kinds[one.kind if one else "none"] += 1
            reason = broken(recording, ranked)
            n_broken += bool(reason)
            if reason or show:
                sentence = findings_text.headline(one, str) if one else "nothing"
                print(f"{name}: {text}\n    {sentence} {reason}")
        print(f"{name}: {n_broken} of {len(texts)} headlines break the rule; {dict(kinds)}")


class PronounSentence(NamedTuple):
    """A sentence, its pronouns, the noun that they stand for, and that with others that they
    might."""

    text: str
    pronouns: frozenset[str]
    noun: frozenset[str]
    nouns: frozenset[str]


def pronoun_sentences(file: Path = PRONOUN_HEADLINES) -> list[PronounSentence]:
    """The sentences of a file."""
    sentences = []
    for line in file.read_text("utf-8").splitlines():
        pronouns, noun, others = (
            frozenset(re.findall(mark, line)) for mark in (r"\{(.+?)\}", r"\[(.+?)\]", r"\((.+?)\)")
        )
        text = re.sub(r"[\[\](){}]", "", line)
        sentences.append(PronounSentence(text, pronouns, noun, noun | others))
    return sentences


def most_beyond_chance(recording: Recording, sentence: PronounSentence) -> float:
    """The most that a head gives a marked noun from a pronoun behind it, beyond the mean of the
    other words."""
    attention = recording.attention[0]
    grouped = words.words(recording.stream(attention.key), recording.text)
    allowed = words.merge_allowed(attention.reachable, grouped, grouped)
    pairs = [
        (row, key)
        for row, pronoun in enumerate(grouped.labels)
        for key, noun in enumerate(grouped.labels[:row])
        if pronoun in sentence.pronouns and noun in sentence.nouns
    ]
    return max(
        float(matrix[row, key]) - mean_of_others(matrix, allowed, grouped, row, key)
        for pattern in attention.pattern.reshape(-1, *attention.pattern.shape[2:])
        for matrix in [words.merge_weights(pattern, grouped, grouped)]
        for row, key in pairs
    )


class PronounHeadlines(NamedTuple):
    """Of `n` sentences in which a head gives a noun enough, how many headlines are about a pronoun,
    and how many of these name the noun that it stands for; missed: the others' texts."""

    n: int
    n_pronoun: int
    n_noun: int
    missed: tuple[str, ...]


def pronoun_headlines(
    model: own_model.OwnModel, sentences: Sequence[PronounSentence]
) -> PronounHeadlines:
    """Count the headlines about pronouns of sentences in which a head shows one."""
    n = n_pronoun = n_noun = 0
    missed = []
    for sentence in sentences:
        recording = model.record(sentence.text)
        if most_beyond_chance(recording, sentence) < BEYOND_CHANCE:
            continue
        n += 1
        one = headline(ranked_findings(recording))
        if one is not None and one.stands_for and one.words[0] in sentence.pronouns:
            n_pronoun += 1
            n_noun += one.kind not in findings.NO_NOUN and one.words[1] in sentence.noun
        else:
            missed.append(sentence.text)
    return PronounHeadlines(n, n_pronoun, n_noun, tuple(missed))


def print_pronoun_headlines(names: Sequence[str], sentences: Sequence[PronounSentence]) -> None:
    """Print how many headlines of each model are about a pronoun, and the sentences of the
    others."""
    for name in names:
        counts = pronoun_headlines(registry.load(name), sentences)
        print(
            f"{name:<10} {counts.n_pronoun} of {counts.n} headlines are about a pronoun, "
            f"{counts.n_noun} of them name its noun; {len(sentences)} sentences"
        )
        for text in counts.missed:
            print(f"    {text}")


class VoteCounts(NamedTuple):
    """Headlines of `n` sentences with a pronoun: by the number of heads that said the same, how
    many name the right noun, of how many."""

    n: int
    by_votes: Mapping[int, coreference.Test]

    @property
    def named(self) -> int:
        """Sentences in which a noun is named."""
        return sum(each.n for each in self.by_votes.values())

    @property
    def right(self) -> int:
        """Those in which it is the right one."""
        return sum(each.right for each in self.by_votes.values())


def count_votes(model: own_model.OwnModel, sentences: Sequence[PronounSentence]) -> VoteCounts:
    """Count the headlines in which the tested heads of a model name a noun."""
    counts: dict[int, list[bool]] = {}
    for sentence in sentences:
        one = headline(ranked_findings(model.record(sentence.text)))
        if one is not None and one.n_votes:
            is_right = one.words[0] in sentence.pronouns and one.words[1] in sentence.noun
            counts.setdefault(one.n_votes, []).append(is_right)
    by_votes = {n: coreference.Test(sum(right), len(right)) for n, right in sorted(counts.items())}
    return VoteCounts(len(sentences), by_votes)


def print_votes(names: Sequence[str], write: bool) -> None:
    """Print what the tested heads name, over both lists; what is counted of the first is kept where
    `write`."""
    made = {}
    for name in names:
        model = registry.load(name)
        for file in (PRONOUN_HEADLINES, PRONOUN_VOTES):
            of = count_votes(model, pronoun_sentences(file))
            each = ", ".join(
                f"{test.right} of {test.n} by {n} votes" for n, test in of.by_votes.items()
            )
            print(
                f"{name:<10} {file.stem:<18} in {of.named} of {of.n} sentences a noun is named, "
                f"in {of.right} ({of.right / max(1, of.named):.0%}) the right one ({each})",
                flush=True,
            )
            if file == PRONOUN_HEADLINES and of.by_votes:
                made[model.card.fingerprint] = of.by_votes
    if write:
        lines = (f' "{fingerprint}": {json.dumps(each)}' for fingerprint, each in made.items())
        coreference.TESTS_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def pronouns(names: Sequence[str], write: bool) -> None:
    """Find the heads of some models that attend from a pronoun to its noun; kept where `write`, and
    then of the checkpoints of those that have some too."""
    made = {}
    queue = [*names]
    for name in queue:
        model = registry.load(name)
        texts = coreference.sentences()
        pronoun_heads = coreference.coreference_heads(
            coreference.measure_sentence(model.record(text)) for text in texts
        )
        made[model.card.fingerprint] = pronoun_heads
        if write and any(pronoun_heads.values()):
            queue += registry.checkpoints(name)
        for attention, heads in pronoun_heads.items():
            for (layer, head), one in sorted(heads.items()):
                print(
                    f"{name:<10} {attention}, layer {layer}, head {head}: the noun first in "
                    f"{one.n_matches} of {one.n} sentences, weight {one.score:.2f}, from other "
                    f"words {one.chance:.2f}, by luck in {one.p_value:.1e} of cases"
                )
            if not heads:
                print(f"{name:<10} {attention}: none")
    if write:
        coreference.MEASUREMENTS_FILE.write_text(f"{coreference.to_json(made)}\n", "utf-8")


# ---- gates of the encoder's taught heads -------------------------------------

OF_MADE, OF_ORDINARY = "noun first, made sentences", "noun first, ordinary sentences"
SINKS, HEADLINE_NOUN = "heads on a sink", "headlines of a pronoun that name its noun"
MASKED = ("masked_accuracy", "accuracy at whole words masked")
POSITIONAL = ("previous", "next", "same word")
LEAST_OF_MADE, MOST_BEHIND, MOST_SINKS, LEAST_NOUNS = 44, 5, 0.4, 2 / 3
SLACK = 0.005  # of a score that is to stay as it was
Values = Mapping[str, float]
# Whether a model holds, by its own values, those before and the teacher's.
GATES: dict[str, Callable[[Values, Values, Values], bool]] = {
    OF_MADE: lambda new, old, teacher: new[OF_MADE] >= LEAST_OF_MADE,
    OF_ORDINARY: lambda new, old, teacher: new[OF_ORDINARY] >= teacher[OF_ORDINARY] - MOST_BEHIND,
    **{
        name: lambda new, old, teacher, name=name: new[name] >= old[name] - SLACK
        for name in POSITIONAL
    },
    SINKS: lambda new, old, teacher: new[SINKS] <= MOST_SINKS,
    MASKED[0]: lambda new, old, teacher: new[MASKED[0]] >= old[MASKED[0]],
    HEADLINE_NOUN: lambda new, old, teacher: new[HEADLINE_NOUN] >= LEAST_NOUNS,
}


def noun_first(model: own_model.OwnModel, file: Path) -> np.ndarray:
    """In how many sentences of a file each head gives a pronoun's noun the most of all words,
    (layer, head)."""
    return np.sum(
        [
            coreference.measure_sentence(model.record(text), file)["self"].is_largest
            for text in coreference.sentences(file)
        ],
        axis=0,
    )


def gate_values(model: own_model.OwnModel, held_out: Corpus) -> dict[str, float]:
    """The values of a model that the gates bound; no masked words of one without a readout."""
    if not coreference.is_measured(model.card.fingerprint):
        made = [coreference.measure_sentence(model.record(t)) for t in coreference.sentences()]
        coreference.remember(model.card.fingerprint, coreference.coreference_heads(made))
    values: dict[str, float] = {}
    for name, file in ((OF_MADE, coreference.SENTENCES), (OF_ORDINARY, PRONOUNS)):
        firsts = noun_first(model, file)
        values[name] = int(firsts.max())
        if model.card.name != attention_transfer.TEACHER:
            values |= {
                f"    by L{layer}H{head}, {name.split()[-2]}": int(firsts[layer, head])
                for layer, head in attention_transfer.TAUGHT
            }
    scores = mean_scores(model, list(sentences()))
    values |= {name: float(np.nanmax(scores[name])) for name in POSITIONAL}
    values[SINKS] = evaluate.sink_share(model, evaluate.ordinary_texts(held_out.sentences))
    if isinstance(model.network, Encoder) and model.has_readout_bias:
        words = masked.held_out_scores(model.network, model.tokenizer, held_out)
        values |= {name: float(words[name]) for name in MASKED}
    found_headlines = pronoun_headlines(model, pronoun_sentences())
    values["headlines of a pronoun"] = found_headlines.n_pronoun
    values[HEADLINE_NOUN] = found_headlines.n_noun / max(1, found_headlines.n_pronoun)
    return values


def gates(data: Path, beside: Path | None) -> None:
    """Print what the encoder shows before and after, and its teacher, and which gates hold."""
    after = registry.load("encoder") if beside is None else evaluate.model_from("encoder", beside)
    if beside is not None:
        after = replace(after, card=replace(after.card, fingerprint=str(beside)))
    loaded_models = (
        attention_transfer.untaught(),
        after,
        registry.load(attention_transfer.TEACHER),
    )
    _, held_out = read(data)
    old, new, teacher = (gate_values(model, held_out) for model in loaded_models)
    print(f"{'':<44} {'before':>8} {'after':>8} {attention_transfer.TEACHER:>8}")
    for name in new:
        cells = [f"{one[name]:8.4g}" if name in one else f"{'-':>8}" for one in (old, new, teacher)]
        verdict = ""
        if name in GATES:
            verdict = "holds" if GATES[name](new, old, teacher) else "FAILS"
        print(f"{name:<44} {' '.join(cells)} {verdict}")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--recordings", type=int, default=RECORDINGS)
    parser.add_argument("--models", default="")
    parser.add_argument("--pronouns", action="store_true")
    parser.add_argument("--headlines", type=int, nargs="?", const=-1, help="of so many sentences")
    parser.add_argument(
        "--pronoun-headlines", type=int, nargs="?", const=1, help="of every Nth sentence"
    )
    parser.add_argument("--votes", action="store_true", help="of the tested heads on a pronoun")
    parser.add_argument("--gates", action="store_true", help="of the encoder's taught heads")
    parser.add_argument("--data", type=Path, help="folder of the corpora, for --gates")
    parser.add_argument("--beside", type=Path, help="a run's folder, for --gates")
    parser.add_argument("--show", action="store_true", help="every headline")
    options = parser.parse_args(argv)
    if options.gates:
        if options.data is None:
            parser.error("--gates needs --data, the folder of the corpora")
        return gates(options.data, options.beside)
    some = tuple(one for one in options.models.split(",") if one)
    if options.pronouns:
        return pronouns(some or READ, write=not some)
    if options.votes:
        return print_votes(some or VOTED, write=not some)
    if options.headlines:
        texts = HEADLINES.read_text("utf-8").splitlines()
        n = len(texts) if options.headlines < 0 else options.headlines
        return headlines(some or READ, texts[:n], options.show)
    if options.pronoun_headlines:
        chosen = pronoun_sentences()[:: options.pronoun_headlines]
        return print_pronoun_headlines(some or READ, chosen)
    loaded_models = [registry.load(name) for name in some or MODELS]
    print(f"False names, {options.recordings} recordings each (sentences; one word repeated)")
    for kind in WEIGHTS:
        for model in loaded_models:
            counts = [
                false_names(model, kind, texts, options.recordings)
                for texts in (sentences(), REPEATED)
            ]
            shares = [share_of_false(each) for each in counts]
            which = {name: n for name, n in counts[0].most_common() if name not in NO_NAME}
            print(f"{kind:<26} {model.card.name:<10} {shares[0]:>7.2%} {shares[1]:>7.2%}  {which}")
    print(f"\nStability of names on {len(sentences())} sentences")
    for model in loaded_models:
        share, names = stability(model, sentences())
        print(f"{model.card.name:<10} {share:.1%}  {dict(names.most_common())}")


if __name__ == "__main__":
    main()
