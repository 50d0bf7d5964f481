"""How far a head's name can be trusted: `python -m benchmarks.names`.

False names: models of the same sizes whose weights learned nothing are given ordinary sentences,
and texts of one word said over and over; every name but "diffuse" and none is false. Stability: on
fifty ordinary sentences, how often a head has the name it has most often. Lost: of the names that
version 0.3 gave where most sentences agreed on them, how many are gone ("first", "special" and
"separator" are a sink now).

`--pronouns` measures instead which heads attend from a pronoun to its noun, and writes what the
names of the models that come with Headlight read; with `--models` it prints and writes nothing.

`--recordings N` is the number of recordings of each kind of weights and model; `--models a,b` which
models.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from benchmarks import names_before
from explorer.analysis import coreference, head_naming
from models import own_model, registry
from models.recording import Attention, Recording
from models.transformer import Transformer

MODELS = ("encoder", "decoder", "minilm")
READ = (*MODELS, "translator")  # those that read sentences
RECORDINGS = 200
EACH = 10  # recordings of one draw of weights
SENTENCES = Path(__file__).parent / "sentences.txt"
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
NOW = {"first": head_naming.SINK, "special": head_naming.SINK, "separator": head_naming.SINK}


def sentences() -> tuple[str, ...]:
    """Fifty ordinary sentences of many lengths, none of which the models learned from."""
    return tuple(SENTENCES.read_text("utf-8").split("\n")[:-1])


# ---- weights that learned nothing --------------------------------------------


def fresh(handle: own_model.OwnModel) -> Transformer:
    """The model as it was before its training: its own initial weights."""
    return type(handle.model)(handle.model.config)


def normal(handle: own_model.OwnModel) -> Transformer:
    """Every matrix drawn from a normal distribution of standard deviation 0.02, as BERT and GPT-2
    begin."""
    model = fresh(handle)
    for matrix in _matrices(model):
        matrix.normal_(0, 0.02)
    return model


def permuted(handle: own_model.OwnModel) -> Transformer:
    """The trained numbers, permuted within each matrix."""
    model = fresh(handle)
    model.load_state_dict(handle.model.state_dict(), strict=False)
    for matrix in _matrices(model):
        matrix.copy_(matrix.flatten()[torch.randperm(matrix.numel())].reshape(matrix.shape))
    return model


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
    "own init, W_Q and W_K x 3": lambda handle: sharpened(fresh(handle)),
    "permuted, W_Q and W_K x 3": lambda handle: sharpened(permuted(handle)),
}


@lru_cache(maxsize=2)  # other texts may be read with the same draws
@torch.no_grad()
def untrained(handle: own_model.OwnModel, kind: str, seed: int) -> own_model.OwnModel:
    """A model of the same sizes and vocabulary whose weights, of one of WEIGHTS, learned
    nothing."""
    torch.manual_seed(seed)
    model = WEIGHTS[kind](handle).eval()
    return own_model.handle_of(model, handle.tokenizer, handle.card.name, kind, kind, handle.ends)


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
    handle: own_model.OwnModel, kind: str, texts: Sequence[str], n_recordings: int
) -> Counter[str]:
    """How often each name is given to heads of weights that learned nothing."""
    found: Counter[str] = Counter()
    for at in range(n_recordings):
        if at % EACH == 0:
            drawn = untrained(handle, kind, seed=at // EACH)
        found.update(named(drawn.record(texts[at % len(texts)])))
    return found


def share_of_false(found: Counter[str]) -> float:
    """The share of heads that have a name."""
    return sum(n for name, n in found.items() if name not in NO_NAME) / found.total()


@dataclass(frozen=True)
class Held:
    """How well names hold on ordinary sentences. stability: the mean over heads of how often each
    has its commonest name, and before: the same in version 0.3. right: names that most sentences
    agreed on in version 0.3; lost: how many of these are gone."""

    stability: float
    before: float
    right: int
    lost: int
    names: Counter[str]


def held(handle: own_model.OwnModel, texts: Sequence[str]) -> Held:
    """Names of a trained model's heads over the sentences."""
    recordings = [handle.record(text) for text in texts]
    now = np.array([named(one) for one in recordings])
    then = np.array(
        [
            [name for each in within(one) for name in names_before.names(one, each)]
            for one in recordings
        ]
    )
    commonest = np.array([Counter(column).most_common(1)[0][0] for column in then.T])
    right = (then == commonest) & ~np.isin(then, list(NO_NAME))
    as_now = np.vectorize(lambda name: NOW.get(name, name))(then)
    return Held(
        _agreement(now),
        _agreement(then),
        int(right.sum()),
        int((right & (as_now != now)).sum()),
        Counter(now.ravel().tolist()),
    )


def _agreement(names: np.ndarray) -> float:
    """The mean over heads of how often each has its commonest name. names (text, head)."""
    return float(np.mean([(Counter(of).most_common(1)[0][1]) / len(names) for of in names.T]))


def pronouns(names: Sequence[str], write: bool) -> None:
    """Which heads of some models attend from a pronoun to its noun; kept where `write`."""
    made = {}
    for name in names:
        handle = registry.load(name)
        texts = coreference.sentences()
        found = coreference.heads(
            coreference.measure_sentence(handle.record(text)) for text in texts
        )
        made[handle.card.fingerprint] = found
        for attention, heads in found.items():
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--recordings", type=int, default=RECORDINGS)
    parser.add_argument("--models", default="")
    parser.add_argument("--pronouns", action="store_true")
    asked = parser.parse_args(argv)
    some = tuple(one for one in asked.models.split(",") if one)
    if asked.pronouns:
        pronouns(some or READ, write=not some)
        return
    handles = [registry.load(name) for name in some or MODELS]
    texts = sentences()
    print(f"False names, {asked.recordings} recordings each (sentences; one word repeated)")
    for kind in WEIGHTS:
        for handle in handles:
            found = [
                false_names(handle, kind, said, asked.recordings) for said in (texts, REPEATED)
            ]
            shares = [share_of_false(each) for each in found]
            which = {name: n for name, n in found[0].most_common() if name not in NO_NAME}
            print(f"{kind:<26} {handle.card.name:<10} {shares[0]:>7.2%} {shares[1]:>7.2%}  {which}")
    print(f"\nNames held on {len(texts)} sentences")
    for handle in handles:
        one = held(handle, texts)
        lost = f"{one.lost} of {one.right} right names lost" + (
            f" ({one.lost / one.right:.2%})" if one.right else ""
        )
        print(
            f"{handle.card.name:<10} {one.stability:.1%} (0.3: {one.before:.1%}), {lost}  "
            f"{dict(one.names.most_common())}"
        )


if __name__ == "__main__":
    main()
