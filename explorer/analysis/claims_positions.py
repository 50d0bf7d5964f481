"""Claims about word order: the sinusoids and their laws, what is added to a sentence, and who knows
in which order the words came."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis import order, positions
from explorer.analysis.evidence import TRIED, Evidence, Measured, Untestable, number
from explorer.analysis.grounds import (
    at_least,
    by_layer,
    embedding_factor,
    enough,
    factor,
    masked,
    text_places,
)
from explorer.analysis.numbers import percent
from explorer.analysis.residual import degrees
from models.recording import Stream

MOST_SHUFFLES = 16  # drawn, to find TRIED that move a token


def _encoding(e: Evidence) -> tuple[np.ndarray, Stream]:
    """What the model adds for the positions, (position, d_model), and the stream it is added to:
    the longest one."""
    stream = max(e.recording.streams, key=lambda each: len(each.tokens))
    if "pos.wrote" not in stream.sites:
        raise Untestable("Nothing is added to this model’s embeddings for the positions.")
    encoding = stream.at("pos.wrote").astype(np.float64)
    if encoding.shape[1] % 2:
        raise Untestable(f"Sines and cosines come in pairs, and d_model is {encoding.shape[1]}.")
    return encoding, stream


def _whose(stream: Stream) -> str:
    off = positions.off_formula(stream)
    return (
        "the paper’s sinusoids"
        if off <= positions.SAME
        else "a table other than the paper’s formula"
    )


def by_distance(e: Evidence) -> Measured:
    """The largest difference of two products at the same distance, of the largest product."""
    encoding, stream = _encoding(e)
    at_least(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    spread = max(float(np.ptp(np.diagonal(gram, distance))) for distance in range(n))
    value = spread / float(np.abs(gram).max())
    rows = tuple(
        (
            f"distance {distance}: smallest and largest p·p",
            f"{number(float(np.diagonal(gram, distance).min()))} … "
            f"{number(float(np.diagonal(gram, distance).max()))}",
        )
        for distance in range(min(n, 6))
    )
    return Measured(
        value,
        f"All {n * (n + 1) // 2:,} products of this text’s {n} positions; the model adds "
        f"{_whose(stream)}. Products at one distance differ by at most {number(spread)}.",
        rows,
    )


def both_ways(e: Evidence) -> Measured:
    """The largest |p_i . p_(i+k) - p_i . p_(i-k)|, of the largest product."""
    encoding, stream = _encoding(e)
    at_least(stream)
    gram = encoding @ encoding.T
    n = len(gram)
    worst = max(
        abs(float(gram[i, i + k] - gram[i, i - k]))
        for i in range(1, n - 1)
        for k in range(1, min(i, n - 1 - i) + 1)
    )
    return Measured(
        worst / float(np.abs(gram).max()),
        "From each position as far to the right as to the left: the two products differ by at "
        f"most {number(worst)}. "
        + (
            "So the bare product says how far, and not on which side; W_Q and W_K have to find "
            "that out."
            if worst < 1e-4 * np.abs(gram).max()
            else "So this table tells left from right."
        ),
    )


def low_is_fast(e: Evidence) -> Measured:
    """The share of neighbouring pairs of dimensions of which the lower one turns faster."""
    encoding, stream = _encoding(e)
    at_least(stream)
    pairs = encoding.reshape(len(encoding), -1, 2)
    if pairs.shape[1] < 2:
        raise Untestable("There is one pair of dimensions only.")
    turned = degrees(pairs[:-1], pairs[1:]).mean(axis=0)
    if not np.isfinite(turned).all():
        raise Untestable(
            "Some pairs of this table’s dimensions are 0 at a position, and have no angle there."
        )
    value = float((np.diff(turned) < 0).mean())
    at = [0, len(turned) // 4, len(turned) // 2, len(turned) - 1]
    return Measured(
        value,
        f"From one position to the next, dimensions 0 and 1 turn by {number(float(turned[0]))}°, "
        f"the last two by {number(float(turned[-1]))}°.",
        tuple(
            (f"dimensions {2 * i} and {2 * i + 1}: degrees a position", number(float(turned[i])))
            for i in at
        ),
    )


def even_is_sine(e: Evidence) -> Measured:
    """The largest difference of the model's encoding to the formula with the sine in the even
    dimensions."""
    encoding, _ = _encoding(e)
    n, d = encoding.shape
    table = positions.table(n, d)
    swapped = table.reshape(n, -1, 2)[..., ::-1].reshape(n, d)
    right, wrong = float(np.abs(encoding - table).max()), float(np.abs(encoding - swapped).max())
    said = (
        "Position 0 is (0, 1, 0, 1, …): sines of 0 in the even places."
        if right <= positions.SAME
        else f"What this model adds is not the formula’s table: it is off by up to {number(right)}."
    )
    return Measured(
        right,
        f"{said} With sine and cosine the other way round the table would be off by "
        f"{number(wrong)}.",
        (
            ("sine in even dimensions: off by", number(right)),
            ("cosine in even dimensions: off by", number(wrong)),
        ),
    )


def shift_turns(e: Evidence) -> Measured:
    """The largest difference of an encoding turned by one position and the next position's
    encoding."""
    encoding, stream = _encoding(e)
    at_least(stream)
    n = len(encoding)
    errors = {
        shift: float(
            np.abs(positions.shifted(encoding, shift)[: n - shift] - encoding[shift:]).max()
        )
        for shift in sorted({1, min(5, n - 1), n - 1})
    }
    worst = max(errors.values())
    said = (
        "One matrix of rotations for each shift, the same at every position, takes each of the "
        f"{n} encodings to the one further on"
        if worst < 1e-3
        else (
            f"The formula’s rotations do not take these {n} encodings to the ones further on; the "
            f"model adds {_whose(stream)}"
        )
    )
    return Measured(
        worst,
        f"{said}: off by at most {number(worst)}.",
        tuple((f"shift by {shift}: off by", number(error)) for shift, error in errors.items()),
    )


def start(e: Evidence) -> Measured:
    """The largest difference of the first state and sqrt(d) times the word's embedding plus the
    position's; or of that factor, if larger."""
    _encoding(e)
    times = embedding_factor(e)
    words, error, size = e.embeddings(), 0.0, 0.0
    for stream in e.recording.streams:
        if "embed+pos" in stream.sites:
            first = stream.at("embed+pos").astype(np.float64)
            error = max(
                error,
                float(
                    np.abs(
                        words[stream.ids].astype(np.float64) + stream.at("pos.wrote") - first
                    ).max()
                ),
            )
            size = max(size, float(np.abs(first).max()))
    d = e.recording.model.d_model
    off = abs(times / np.sqrt(d) - 1)
    return Measured(
        max(error / size, off),
        "The readout uses the same E, which shows by what it is multiplied on its way in: "
        f"{times:.4g}; √{d} is {np.sqrt(d):.4g}. That times each token’s row of E, plus its "
        f"position’s encoding, is what enters layer 0: off by at most {number(error)}, where "
        f"numbers reach {number(size)}.",
        (
            ("factor before E", f"{times:.4g}"),
            (f"√{d}", f"{np.sqrt(d):.4g}"),
            ("off, in the first state", number(error)),
        ),
    )


def balance(e: Evidence) -> Measured:
    """By what factor a component of sqrt(d) e is larger than one of p, or smaller, root mean square
    over the text."""
    encoding, stream = _encoding(e)
    if abs(embedding_factor(e) / np.sqrt(e.recording.model.d_model) - 1) > 0.01:
        raise Untestable("This model does not multiply its embeddings by √d.")
    text = text_places(stream)
    word, place = (
        float(np.sqrt((v[text] ** 2).mean()))
        for v in (stream.at("embed").astype(np.float64), encoding)
    )
    d = e.recording.model.d_model
    bare = word / np.sqrt(d)
    return Measured(
        factor(word / place),
        f"A component of √d·e is {number(word)} in size, one of the encoding {number(place)}. "
        f"Without the √{d} a word’s would be {number(bare)}, {number(place / bare)} times smaller "
        "than the position’s.",
        (
            ("√d · e, root mean square", number(word)),
            ("p", number(place)),
            ("e without √d", number(bare)),
        ),
    )


# ---- another order ----


@dataclass(frozen=True)
class _Moved:
    """What shuffles did to a stream: of each, how far the last vectors of the tokens that stand
    elsewhere are from those of the same tokens in order, as a share of their length, and how many
    such tokens there are."""

    gaps: tuple[float, ...]
    tokens: tuple[int, ...]

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (f"shuffle {at}: {n} tokens elsewhere, vectors apart by", number(gap))
            for at, (gap, n) in enumerate(zip(self.gaps, self.tokens), 1)
        )


def _shuffled(e: Evidence, stream: str, base: str = "") -> _Moved:
    """What several shuffles do where every pass runs under the edits `base`. Raises Untestable
    where there is no other order, TooShort where fewer shuffles than TRIED move a token."""
    first = e.recording.streams[0]
    if len(set(map(int, first.ids[~first.special]))) < 2:
        raise Untestable("All tokens of this text are the same, so there is no other order.")
    plain = _end(e.again(base, "", None).stream(stream) if base else e.recording.stream(stream))
    length = np.linalg.norm(plain.resid[-1].astype(np.float64), axis=1)
    found: dict[tuple[int, ...], tuple[float, int]] = {}
    for seed in range(1, MOST_SHUFFLES + 1):
        edits = ",".join(filter(None, (base, f"ShuffleTokens:{seed}")))
        shuffled = _end(e.again(edits, "", None).stream(stream))
        pairs = order.matched(plain, shuffled, same_text=True)
        moved = pairs.here != pairs.there
        if moved.any():
            apart = np.linalg.norm(
                plain.resid[-1][pairs.here].astype(np.float64) - shuffled.resid[-1][pairs.there],
                axis=1,
            )
            gap = float(apart[moved].mean() / length[pairs.here].mean())
            found[tuple(map(int, pairs.there))] = gap, int(moved.sum())
        if len(found) == TRIED:
            break
    enough(len(found), "shuffles that move tokens", TRIED)
    gaps, tokens = zip(*found.values())
    return _Moved(gaps, tokens)


def _end(stream: Stream) -> Stream:
    """A stream with its last vectors alone: they do not keep the pass they came from in memory."""
    return replace(stream, sites=stream.sites[-1:], resid=stream.resid[-1:].copy())


def without_positions(e: Evidence) -> Measured:
    """How far a token's last vector moves when the tokens are shuffled, without positions and
    without a mask: the most of several shuffles."""
    stream = e.recording.streams[0].name
    found = _shuffled(e, stream, "WithoutPositions" + ",WithoutMask" * (stream == "decoder"))
    unmasked = ", and without the mask," if stream == "decoder" else ""
    return Measured(
        max(found.gaps),
        f"The text’s tokens were read in {len(found.gaps)} other orders without "
        f"positions{unmasked} and {min(found.tokens)} to {max(found.tokens)} of them stood "
        f"elsewhere. Each took its vector along: they differ by at most {number(max(found.gaps))} "
        "of their length. So the set of vectors stays, and their order is the tokens’.",
        found.rows,
    )


def _knows_none(e: Evidence) -> bool:
    """True where taking the positions away changes nothing. A model that adds none may know them
    elsewhere, as in its attention, and refuse this."""
    if any("pos.wrote" in stream.sites for stream in e.recording.streams):
        return False
    try:
        without = e.again("WithoutPositions", "", None)
    except Untestable:
        return False
    return all(
        np.array_equal(here.resid, there.resid)
        for here, there in zip(e.recording.streams, without.streams)
    )


def with_positions(e: Evidence) -> Measured:
    """How far a token's last vector moves when the tokens are shuffled, the model as it is: the
    least of several shuffles."""
    if _knows_none(e):
        raise Untestable("This model has no positions.")
    found = _shuffled(e, e.recording.streams[0].name)
    return Measured(
        min(found.gaps),
        f"{len(found.gaps)} shuffles with positions: the last vectors of the tokens that stand "
        f"elsewhere differ by {percent(min(found.gaps))} of their length at least, by "
        f"{percent(max(found.gaps))} at most.",
        found.rows,
    )


def mask_tells(e: Evidence) -> Measured:
    """How far a decoder's last vectors move when the tokens are shuffled, without positions but
    with its mask: the least of several shuffles."""
    if len(e.recording.streams) > 1:
        raise Untestable(
            "A translator’s target is written word by word, so its order is not shuffled here."
        )
    found = _shuffled(e, masked(e.recording)[1].name, "WithoutPositions")
    return Measured(
        min(found.gaps),
        f"{len(found.gaps)} shuffles without positions, but under the causal mask: the last "
        f"vectors of the moved tokens differ by {percent(min(found.gaps))} of their length at "
        "least. Which tokens one may see already depends on the order; only attention without a "
        "mask is blind to it.",
        found.rows,
    )


def no_blow_up(e: Evidence) -> Measured:
    """How many times as long the last vectors are without norms as with them."""
    stream = e.recording.streams[0]
    if not any(site.endswith((".normed", ".read")) for site in stream.sites):
        raise Untestable("This model has no norm.")
    bare = e.again("WithoutNorm", "", None).stream(stream.name)
    here, there = (_length(each, each.sites[-1]) for each in (stream, bare))
    rows = by_layer(
        "without norms, after ",
        [_length(bare, total) for _, wrote, total in bare.writes() if wrote.endswith("ffn.wrote")],
    )
    said = "None was trained without it here to compare with."
    if trained := e.bare():
        other = trained.stream(stream.name)
        start, end = _length(other, other.sites[0]), _length(other, other.sites[-1])
        said = (
            f"{trained.model.name}, which learned without norms, keeps them at "
            f"{number(end)}, {number(end / start)} times the length they begin with: training "
            "finds weights to suit."
        )
        rows = (*rows, (f"{trained.model.name}, the last vectors", number(end)))
    return Measured(
        there / here,
        "The norms are taken from a model that was trained with them: its weights were learned to "
        f"be held by them. The mean length of the last vectors is {number(here)}; with every "
        f"norm left out, and all weights the same, it is {number(there)}. {said}",
        rows,
    )


def _length(stream: Stream, site: str) -> float:
    return float(np.linalg.norm(stream.at(site).astype(np.float64), axis=1).mean())
