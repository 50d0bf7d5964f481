"""Findings of the residual stream and of what is read off it: the word that turned most, the one
that attention moved most, where an answer was settled and what pushed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import residual
from explorer.analysis.finding import MOVED, PUSHED, SETTLED, TURNED, Finding
from explorer.analysis.findings_links import is_word
from explorer.analysis.words import Groups
from models.prediction import Attribution, Lens
from models.recording import Stream
from models.relations import AT_ONCE

# Share of attention beyond the other words' from which it is plain to see.
PLAIN = 0.05


@dataclass(frozen=True, eq=False)
class Answer:
    """What a model answers at a token of a stream, where there is a readout: the lens, the token,
    what it says there in words, and, where it was taken apart, that word's logit."""

    lens: Lens
    token: int
    said: str
    taken_apart: Attribution | None = None


def turned(stream: Stream, grouped: Groups) -> list[Finding]:
    """The word that one sub-layer turned most beyond the other words there, and the word into which
    attention wrote most, layer by layer.

    turned: value in degrees, the largest over the word's tokens; chance: the mean of the other
    words. moved: value the share of attention in what stood there after it, |wrote| / (|wrote| +
    |before|), on average over the layers; chance: the other words', beyond which it lies by
    PLAIN. Both say something from three words on.
    """
    telling = np.flatnonzero(
        [not apart and is_word(label) for label, apart in zip(grouped.labels, grouped.special)]
    )
    if len(telling) < 3 or len(stream.sites) < 3:
        return []
    places = [one for one in residual.sublayers(stream) if one.layer >= 0]
    found = []
    turns = _of_all(residual.degrees, stream, [(one.before, one.after) for one in places])
    angles = _by_word(turns, grouped).take(telling, axis=1)
    moves = [(one.before, one.wrote) for one in places if one.place == "attn"]
    shares = _by_word(_of_all(residual.share, stream, moves), grouped).take(telling, axis=1)
    if len(angles) and np.isfinite(angles).all():
        found.append(_turned(angles, turns, places, stream, grouped, telling))
    if len(shares) and np.isfinite(shares).all():
        mean = np.mean(shares, axis=0)
        at = int(mean.argmax())
        others = float(np.delete(mean, at).mean())
        if mean[at] - others < PLAIN:
            return found
        word = int(telling[at])
        token = grouped.starts[word]
        found.append(
            Finding(
                MOVED,
                float(mean[at]),
                others,
                0.2 + min(0.2, float(mean[at]) - others),
                query=token,
                words=(grouped.labels[word],),
                page="residual",
                address=(
                    ("flow", "Writes"),
                    ("write", "Share"),
                    ("stream", stream.name),
                    ("token", str(token)),
                ),
            )
        )
    return found


def _of_all(
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray],
    stream: Stream,
    pairs: Sequence[tuple[str, str]],
) -> np.ndarray:
    """A measure of the vectors at two sites, for each pair of these and each token, (pair, token);
    of a short text for several pairs at once."""
    sites = {site: at for at, site in enumerate(stream.sites)}
    made = np.empty((len(pairs), len(stream.tokens)), stream.resid.dtype)
    step = max(1, AT_ONCE // max(1, stream.resid[0].size))
    for at in range(0, len(pairs), step):
        one, other = ([sites[each] for each in both] for both in zip(*pairs[at : at + step]))
        made[at : at + step] = measure(stream.resid[one], stream.resid[other])
    return made


def _turned(
    angles: np.ndarray,
    turns: np.ndarray,
    places: list[residual.SubLayer],
    stream: Stream,
    grouped: Groups,
    telling: np.ndarray,
) -> Finding:
    """The largest of angles (sub-layer, word) beyond the mean of the other words there. turns: the
    same of all tokens, (sub-layer, token)."""
    n = angles.shape[1]
    others = (angles.sum(axis=1, keepdims=True) - angles) / (n - 1)
    at, word = np.unravel_index((angles - others).argmax(), angles.shape)
    of = grouped.of == telling[word]
    token = int(np.where(of, turns[at], -1.0).argmax())
    return Finding(
        TURNED,
        float(angles[at, word]),
        float(others[at, word]),
        0.22 + min(0.2, float((angles - others)[at, word]) / 200),
        query=token,
        words=(grouped.labels[telling[word]],),
        site=places[at].site,
        page="residual",
        address=(
            ("flow", "Writes"),
            ("write", "Turned"),
            ("stream", stream.name),
            ("token", str(token)),
        ),
    )


def _by_word(values: np.ndarray, grouped: Groups) -> np.ndarray:
    """The largest of a word's tokens, (..., word)."""
    return np.maximum.reduceat(values, grouped.starts, axis=-1)


def answered(stream: Stream, answer: Answer) -> list[Finding]:
    """From which site on the model's own answer stays first, and what pushed it most.

    settled: value the number of the site, chance that of the text's other tokens on average.
    pushed: value what the head or the feed-forward network added to the logit (against another
    word's, where it was so taken apart), chance the mean size of all heads' and networks' parts.
    """
    lens, token = answer.lens, answer.token
    first = _settled(lens.rank)
    others = np.delete(first, token)
    found = []
    at = int(first[token])
    if at < len(lens.sites):
        found.append(
            Finding(
                SETTLED,
                float(at),
                float(others.mean()) if len(others) else float(len(lens.sites) - 1),
                0.35,
                query=token,
                words=(answer.said,),
                site=lens.sites[at],
                counts=(("sites", len(lens.sites)),),
                page="predictions",
                address=(("token", str(token)),),
            )
        )
    if answer.taken_apart is not None:
        found += _pushed(answer, answer.taken_apart)
    return found


def _settled(rank: np.ndarray) -> np.ndarray:
    """The first site from which on the final answer stays first, (token); rank (site, token)."""
    wrong = rank[::-1] > 0
    return len(rank) - np.where(wrong.any(axis=0), wrong.argmax(axis=0), len(rank))


def _pushed(answer: Answer, apart: Attribution) -> list[Finding]:
    parts = [part for part in apart.parts if part.kind in ("head", "ffn")]
    if len(parts) < 2:
        return []
    best = max(parts, key=lambda part: part.value)
    typical = float(np.mean([abs(part.value) for part in parts]))
    if best.value <= 2 * typical:
        return []
    is_head = best.kind == "head"
    return [
        Finding(
            PUSHED,
            best.value,
            typical,
            0.42,
            best.attention if is_head else "",
            best.layer,
            best.head if is_head else -1,
            query=answer.token,
            words=(answer.said,),
            site=best.kind,
            page="predictions",
            address=(("token", str(answer.token)),),
        )
    ]
