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
from models.attention import KVCache, is_self_attention
from models.generation import length_penalty
from models.tokenizer import Tokenizer
from models.training import corpus, dedup_split, gender_agreement_pairs, net2net
from models.training.training_config import half_helps, padded
from models.training.translation import Pair
from models.transformer import EncoderDecoder

BEAMS, AT_ONCE = 4, 32
MAX_SCORE_GAP = 1.0  # nats behind the best hypothesis: not followed any longer
FEWEST_WORDS = 6  # a shorter sentence has little to say in another way
AGREEMENTS = 3_000  # pairs an epoch
NEAREST_SHARE = 0.4  # of the pairs whose French is replaced by the nearest hypothesis
SUREST_SHARE = 0.8  # of the sentences without French that are read
Hypothesis = tuple[list[int], float]  # bare ids, and what they are ranked by
Hypotheses = dict[str, list[tuple[str, float]]]  # hypotheses with their scores in nats, best first


class DistilledTranslator(net2net.TranslatorContinuation):
    """The recipe of the shipped translator's last steps. What they end at is shipped and no mean:
    that says "il" of a street that is too wide."""

    steps, rate = 2_400, 7e-4
    shown: tuple[int, ...] = ()
    first_epoch = 12  # other draws than those that it has met

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.alone = untranslated_sentences(data, self.held_out.english)

    @cached_property
    def told(self) -> Hypotheses:
        return teacher_hypotheses([*dict.fromkeys(long_texts(self.train.english)), *self.alone])

    @cached_property
    def surest(self) -> list[Pair]:
        """Sentences without French and the best hypothesis of each, but for the least sure."""
        best = [(text, *hypotheses[0]) for text in self.alone if (hypotheses := self.told[text])]
        best.sort(key=lambda row: -row[2])
        return [(text, french) for text, french, _ in best[: int(SUREST_SHARE * len(best))]]

    @cached_property
    def nearest(self) -> dict[Pair, str]:
        """The hypothesis nearest to the French of each pair."""
        return {
            (english, french): max(self.told[english], key=lambda one: similarity(one[0], french))[
                0
            ]
            for english, french in zip(self.train.english, self.train.french)
            if self.told.get(english)
        }

    def pairs(self, epoch: int, rng: Random) -> list[Pair]:
        distilled = [
            (pair[0], self.nearest.get(pair, pair[1])) if rng.random() < NEAREST_SHARE else pair
            for pair in super().pairs(epoch, rng)
        ]
        near_duplicates = dedup_split.NearDuplicates(corpus.HELD_OUT_TEXTS)
        pairs = (gender_agreement_pairs.pair(rng) for _ in range(AGREEMENTS))
        return [
            *distilled,
            *self.surest,
            *(pair for pair in pairs if pair[0] not in near_duplicates),
        ]


def untranslated_sentences(data: Path, held_out: Sequence[str]) -> list[str]:
    """Tatoeba's English sentences that have German and no French, none of them nearly the same as a
    held-out one, with varied names."""
    near_duplicates, rng = dedup_split.NearDuplicates(held_out), Random(0)
    return [
        corpus.vary_names((text,), rng, *corpus.FOR_FRENCH)[0]
        for text in long_texts(corpus.english_without_french(data))
        if text not in near_duplicates
    ]


def long_texts(texts: Sequence[str]) -> list[str]:
    """The texts that have enough words."""
    return [text for text in texts if len(text.split()) >= FEWEST_WORDS]


def similarity(first: str, second: str) -> float:
    """How much of two texts is the same, from 0 to 1."""
    return SequenceMatcher(None, first.split(), second.split(), autojunk=False).ratio()


def teacher_hypotheses(texts: Sequence[str]) -> Hypotheses:
    """The shipped translator's hypotheses of each text, read from a file below runs/ where the same
    weights have written them before."""
    weights = (shipped_models.WEIGHTS / "translator" / "model.safetensors").read_bytes()
    key = sha256(weights + "\n".join(texts).encode()).hexdigest()[:12]
    file = Path("runs") / f"told-{key}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        handle = own_model.load("translator")
        assert isinstance(handle.model, EncoderDecoder)
        hypotheses = dict(zip(texts, beam_hypotheses(handle.model, handle.tokenizer, texts)))
        file.write_text(json.dumps(hypotheses))
    return json.loads(file.read_text())


def beam_hypotheses(
    model: EncoderDecoder, tokenizer: Tokenizer, texts: Sequence[str]
) -> Iterator[list[tuple[str, float]]]:
    """The hypotheses of each text by beam search, many texts at a time, best first."""
    ids = tokenizer.ids(list(texts))
    order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
    by_index: dict[int, list[tuple[str, float]]] = {}
    for start in tqdm(range(0, len(order), AT_ONCE)):
        batch = order[start : start + AT_ONCE]
        with torch.autocast("cpu", torch.bfloat16, enabled=half_helps()):
            hypotheses = search(model, tokenizer, [ids[at] for at in batch])
        for at, beams in zip(batch, hypotheses):
            by_index[at] = [(tokenizer.text(ids_out), score) for ids_out, score in beams]
    return (by_index[at] for at in range(len(ids)))


def is_complete(completed: list[Hypothesis], best_live: float, n: int) -> bool:
    """True where enough hypotheses have ended, or what still grows lies far behind the best one."""
    return len(completed) >= n or any(score > best_live + MAX_SCORE_GAP for _, score in completed)


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
    rows, stored = len(sources), KVCache()
    sequences = torch.full((rows, n, 1), bos)
    total = torch.full((rows, n), float("-inf"))
    total[:, 0] = 0.0  # all beams begin alike: one of them counts
    completed: list[list[Hypothesis]] = [[] for _ in sources]
    done = [False] * rows
    for length in range(1, 2 * ids.shape[1] + 10):
        new = sequences[:, :, -1:].flatten(0, 1)
        x = model.decode(new, memory, allowed.repeat_interleave(n, 0), stored=stored)
        logprobs = model.logits(x[:, -1]).float().log_softmax(-1).view(rows, n, -1)
        total, choices = (total[..., None] + logprobs).flatten(1).topk(2 * n)
        beam, token = choices // logprobs.shape[-1], choices % logprobs.shape[-1]
        sequences = torch.cat((_select_beams(sequences, beam), token[..., None]), dim=-1)
        ends, divisor = token == eos, length_penalty(length)
        newly_completed = ends[:, :n] & total[:, :n].isfinite()
        for row, at in newly_completed.nonzero().tolist():
            if not done[row]:
                completed[row].append(
                    (sequences[row, at, 1:-1].tolist(), float(total[row, at]) / divisor)
                )
        total, survivors = torch.where(ends, float("-inf"), total).topk(n)
        sequences = _select_beams(sequences, survivors)
        live = (total[:, 0] / divisor).tolist()
        done = [
            was_done or is_complete(beams, best, n)
            for was_done, beams, best in zip(done, completed, live)
        ]
        if all(done):
            break
        parents = (beam.gather(1, survivors) + torch.arange(rows)[:, None] * n).flatten()
        stored = _reordered(stored, parents)
    return [sorted(beams, key=lambda one: -one[1])[:n] for beams in completed]


def _select_beams(sequences: Tensor, parents: Tensor) -> Tensor:
    """Of each row's hypotheses (row, beam, token) those that `which` (row, new beam) names."""
    return sequences.gather(1, parents[..., None].expand(-1, -1, sequences.shape[-1]))


def _reordered(stored: KVCache, parents: Tensor) -> KVCache:
    """The cache of the hypotheses that go on; the source that they read is the same."""
    return KVCache(
        {
            name: (k[parents], v[parents]) if is_self_attention(name) else (k, v)
            for name, (k, v) in stored.kept.items()
        }
    )
