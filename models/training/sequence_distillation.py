"""The translator's last recipe: it goes on from the shipped one, and learns from what that one
says by beam search too.

Of a sentence that has its French the hypothesis nearest to it is read in place of it now and then
(Kim & Rush, 2016, sequence-level interpolation): what is said first then comes nearer to what a
search finds. English sentences that have none, of Tatoeba's German pairs, are read with the best
hypothesis (He et al., 2020, self-training). Both are written once, by `told`, and kept in a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from tqdm import tqdm

from models import own_model, shipped_models
from models.attention import Stored, is_own
from models.generation import penalty
from models.tokenizer import Tokenizer
from models.training import corpus, dedup_split, gender_agreement_pairs, net2net
from models.training.training_config import half_helps, padded
from models.training.translation import Pair
from models.transformer import EncoderDecoder

BEAMS, AT_ONCE = 4, 32
FAR = 1.0  # nats behind the best hypothesis: not followed any longer
FEWEST_WORDS = 6  # a shorter sentence has little to say in another way
AGREEMENTS = 3_000  # pairs an epoch
NEAREST_SHARE = 0.4  # of the pairs whose French is replaced by the nearest hypothesis
SUREST_SHARE = 0.8  # of the sentences without French that are read
Hypothesis = tuple[list[int], float]  # bare ids, and what they are ranked by
Told = dict[str, list[tuple[str, float]]]  # hypotheses with their scores in nats, best first


class Retold(net2net.TranslatorContinuation):
    """The recipe of the shipped translator's last steps. What they end at is shipped and no mean:
    that says "il" of a street that is too wide."""

    steps, rate = 2_400, 7e-4
    shown: tuple[int, ...] = ()
    first_epoch = 12  # other draws than those that it has met

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.alone = alone(data, self.held_out.english)

    @cached_property
    def told(self) -> Told:
        return told([*dict.fromkeys(long_ones(self.train.english)), *self.alone])

    @cached_property
    def surest(self) -> list[Pair]:
        """Sentences without French and the best hypothesis of each, but for the least sure."""
        best = [(text, *said[0]) for text in self.alone if (said := self.told[text])]
        best.sort(key=lambda row: -row[2])
        return [(text, french) for text, french, _ in best[: int(SUREST_SHARE * len(best))]]

    @cached_property
    def nearest(self) -> dict[Pair, str]:
        """The hypothesis nearest to the French of each pair."""
        return {
            (english, french): max(self.told[english], key=lambda one: alike(one[0], french))[0]
            for english, french in zip(self.train.english, self.train.french)
            if self.told.get(english)
        }

    def pairs(self, epoch: int, rng: Random) -> list[Pair]:
        again = [
            (pair[0], self.nearest.get(pair, pair[1])) if rng.random() < NEAREST_SHARE else pair
            for pair in super().pairs(epoch, rng)
        ]
        near = dedup_split.Near(corpus.KEPT_OUT)
        pairs = (gender_agreement_pairs.pair(rng) for _ in range(AGREEMENTS))
        return [*again, *self.surest, *(pair for pair in pairs if pair[0] not in near)]


def alone(data: Path, held_out: Sequence[str]) -> list[str]:
    """Tatoeba's English sentences that have German and no French, none of them nearly the same as a
    held-out one, with varied names."""
    near, rng = dedup_split.Near(held_out), Random(0)
    return [
        corpus.vary_names((text,), rng, *corpus.FOR_FRENCH)[0]
        for text in long_ones(corpus.without_french(data))
        if text not in near
    ]


def long_ones(texts: Sequence[str]) -> list[str]:
    """The texts that have enough words."""
    return [text for text in texts if len(text.split()) >= FEWEST_WORDS]


def alike(one: str, other: str) -> float:
    """How much of two texts is the same, from 0 to 1."""
    return SequenceMatcher(None, one.split(), other.split(), autojunk=False).ratio()


def told(texts: Sequence[str]) -> Told:
    """The shipped translator's hypotheses of each text, read from a file below runs/ where the same
    weights have written them before."""
    weights = (shipped_models.WEIGHTS / "translator" / "model.safetensors").read_bytes()
    key = sha256(weights + "\n".join(texts).encode()).hexdigest()[:12]
    file = Path("runs") / f"told-{key}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        handle = own_model.load("translator")
        assert isinstance(handle.model, EncoderDecoder)
        made = dict(zip(texts, searched(handle.model, handle.tokenizer, texts)))
        file.write_text(json.dumps(made))
    return json.loads(file.read_text())


def searched(
    model: EncoderDecoder, tokenizer: Tokenizer, texts: Sequence[str]
) -> Iterator[list[tuple[str, float]]]:
    """The hypotheses of each text by beam search, many texts at a time, best first."""
    ids = tokenizer.ids(list(texts))
    order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
    found: dict[int, list[tuple[str, float]]] = {}
    for start in tqdm(range(0, len(order), AT_ONCE)):
        some = order[start : start + AT_ONCE]
        with torch.autocast("cpu", torch.bfloat16, enabled=half_helps()):
            hypotheses = search(model, tokenizer, [ids[at] for at in some])
        for at, beams in zip(some, hypotheses):
            found[at] = [(tokenizer.text(said), score) for said, score in beams]
    return (found[at] for at in range(len(ids)))


def is_over(ended: list[Hypothesis], live: float, n: int) -> bool:
    """True where enough hypotheses have ended, or what still grows lies far behind the best one."""
    return len(ended) >= n or any(score > live + FAR for _, score in ended)


@torch.inference_mode()
def search(
    model: EncoderDecoder, tokenizer: Tokenizer, sources: list[list[int]], n: int = BEAMS
) -> list[list[Hypothesis]]:
    """Beam search (section 6.1) of a batch of bare source ids at once: of each the hypotheses that
    have ended, best first, at most `n`."""
    bos, eos = tokenizer.ends
    ids, present = padded([[*source, eos] for source in sources], tokenizer.padding)
    allowed = present[:, None, None]
    memory = model.encode(ids, allowed).repeat_interleave(n, 0)
    rows, stored = len(sources), Stored()
    said = torch.full((rows, n, 1), bos)
    total = torch.full((rows, n), float("-inf"))
    total[:, 0] = 0.0  # all beams begin alike: one of them counts
    ended: list[list[Hypothesis]] = [[] for _ in sources]
    over = [False] * rows
    for length in range(1, 2 * ids.shape[1] + 10):
        new = said[:, :, -1:].flatten(0, 1)
        x = model.decode(new, memory, allowed.repeat_interleave(n, 0), stored=stored)
        logprobs = model.logits(x[:, -1]).float().log_softmax(-1).view(rows, n, -1)
        total, which = (total[..., None] + logprobs).flatten(1).topk(2 * n)
        beam, token = which // logprobs.shape[-1], which % logprobs.shape[-1]
        said = torch.cat((_taken(said, beam), token[..., None]), dim=-1)
        ends, divisor = token == eos, penalty(length)
        found = ends[:, :n] & total[:, :n].isfinite()
        for row, at in found.nonzero().tolist():
            if not over[row]:
                ended[row].append((said[row, at, 1:-1].tolist(), float(total[row, at]) / divisor))
        total, kept = torch.where(ends, float("-inf"), total).topk(n)
        said = _taken(said, kept)
        live = (total[:, 0] / divisor).tolist()
        over = [was or is_over(beams, best, n) for was, beams, best in zip(over, ended, live)]
        if all(over):
            break
        parents = (beam.gather(1, kept) + torch.arange(rows)[:, None] * n).flatten()
        stored = _reordered(stored, parents)
    return [sorted(beams, key=lambda one: -one[1])[:n] for beams in ended]


def _taken(said: Tensor, which: Tensor) -> Tensor:
    """Of each row's hypotheses (row, beam, token) those that `which` (row, new beam) names."""
    return said.gather(1, which[..., None].expand(-1, -1, said.shape[-1]))


def _reordered(stored: Stored, parents: Tensor) -> Stored:
    """The cache of the hypotheses that go on; the source that they read is the same."""
    return Stored(
        {
            name: (k[parents], v[parents]) if is_own(name) else (k, v)
            for name, (k, v) in stored.kept.items()
        }
    )
