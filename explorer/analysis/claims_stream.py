"""Claims about the residual stream: what is added, its norms, the sphere and its rotations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis import residual
from explorer.analysis.called import a, norm
from explorer.analysis.evidence import Evidence, Measured, Untestable, number
from explorer.analysis.grounds import text_places
from explorer.analysis.layer_norm import normalised
from explorer.analysis.numbers import fixed, percent
from models.recording import Stream

SMALL_GAIN = 1e-2
SETS = {
    "LayerNorm": "LayerNorm makes the variance 1",
    "RMSNorm": "RMSNorm makes the mean square 1",
}


def adds(e: Evidence) -> Measured:
    """The largest |before + wrote - after|, of the largest component."""
    for stream in e.recording.streams:
        layers_of(stream)
    found = [residual.conservation(stream) for stream in e.recording.streams]
    worst, size = max(error for error, _, _ in found), max(largest for _, _, largest in found)
    return Measured(
        worst / size,
        f"{sum(n for _, n, _ in found):,} additions of this recording were done again: the "
        f"largest error is {number(worst)}, where components reach {number(size)}.",
    )


def little_work(e: Evidence) -> Measured:
    """The mean angle between the vector before a sub-layer and after it, in degrees."""
    angles, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in layers_of(stream):
            turned = float(
                np.nanmean(
                    residual.degrees(
                        residual.at(stream, each.before)[text],
                        residual.at(stream, each.after)[text],
                    )
                )
            )
            angles.append(turned)
            rows.append((_named(e, stream, each.name), f"{fixed(turned, 1)}°"))
    value = float(np.mean(angles))
    return Measured(
        value,
        f"A sub-layer turns a word’s vector by {fixed(value, 1)}° in the mean, from "
        f"{fixed(min(angles), 1)}° to {fixed(max(angles), 1)}°. Turned at random, a vector of so "
        "many dimensions would stand at about 90° to the one before; cos 60° = 0.5, so at 60° "
        "its component along the old direction is half its length.",
        tuple(rows),
    )


def layers_of(stream: Stream) -> tuple[residual.SubLayer, ...]:
    """The sub-layers of a stream. Raises Untestable where the model does not show what they
    write."""
    found = tuple(each for each in residual.sublayers(stream) if each.layer >= 0)
    if not found:
        raise Untestable("This model does not show what its sub-layers write.")
    return found


def _named(e: Evidence, stream: Stream, name: str) -> str:
    return name if len(e.recording.streams) == 1 else f"{stream.name}, {name}"


# ---- norms ----


def _norms(
    e: Evidence,
) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, float, bool]]]:
    """Every norm of a sub-layer: what it is given and what it gives (token, d_model), and its gain,
    bias, eps and whether it subtracts the mean."""
    found = False
    for stream in e.recording.streams:
        norms = e.norms(stream.name)
        for each in layers_of(stream):
            if each.site not in norms:
                continue
            if f"{each.site}.read" in stream.sites:
                pair = each.before, f"{each.site}.read"
            elif each.after != each.total:
                pair = each.total, each.after
            else:
                continue
            found = True
            given, gives = (residual.at(stream, site) for site in pair)
            yield given, gives, norms[each.site]
    if not found:
        raise Untestable("This model has no norm that it shows both sides of.")


def mean_and_spread(e: Evidence) -> Measured:
    """The largest of: |mean|, |variance - 1| before gain and bias, and what then differs from what
    the model has after its LayerNorm."""
    mean, variance, error, n = 0.0, 0.0, 0.0, 0
    for given, gives, (gain, bias, eps, centred) in _norms(e):
        if not centred:
            raise Untestable("It is RMSNorm here, which subtracts no mean, and no LayerNorm.")
        normed = normalised(given, eps)
        mean, variance = (
            max(mean, float(np.abs(normed.mean(-1)).max())),
            max(variance, float(np.abs(normed.var(-1) - 1).max())),
        )
        error = max(error, float(np.abs(normed * gain + bias - gives).max()))
        n += len(given)
    return Measured(
        max(mean, variance, error),
        f"{n:,} vectors were normalised again, each by its own mean and variance, and agree with "
        f"the model’s to {number(error)}. Before gain and bias their means are 0 to "
        f"{number(mean)}, their variances 1 to {number(variance)}.",
        (
            ("mean, off 0 by", number(mean)),
            ("variance, off 1 by", number(variance)),
            ("after gain and bias, off the model’s by", number(error)),
        ),
    )


def unit_length(e: Evidence) -> Measured:
    """By what factor the length of a state after a norm is away from 1, either way, in the mean."""
    own = list(_norms(e))
    lengths = np.concatenate([np.linalg.norm(gives, axis=-1) for _, gives, _ in own])
    name = norm(how[3] for _, _, how in own)
    d = e.recording.model.d_model
    with np.errstate(divide="ignore"):
        value = float(np.maximum(lengths, 1 / lengths).mean())
    return Measured(
        value,
        f"The {len(lengths):,} vectors after {a(name)} are {number(float(lengths.mean()))} long "
        f"in the mean, from {number(float(lengths.min()))} to {number(float(lengths.max()))}. "
        f"{SETS.get(name, 'It sets the size')}, so the length is √d = √{d} = "
        f"{fixed(np.sqrt(d), 1)} before gain and bias.",
    )


def on_a_sphere(e: Evidence) -> Measured:
    """The largest | |u| / sqrt(d) - 1 |, u the state with gain and bias taken back."""
    worst, longest, shortest, flat = 0.0, 0.0, np.inf, True
    for given, gives, (gain, bias, eps, centred) in _norms(e):
        flat = flat and centred
        strong = np.abs(gain) > SMALL_GAIN  # a gain near 0 cannot be taken back
        u = np.where(
            strong, (gives - bias) / np.where(strong, gain, 1), normalised(given, eps, centred)
        )
        length = np.linalg.norm(u, axis=-1)
        longest, shortest = max(longest, float(length.max())), min(shortest, float(length.min()))
        worst = max(worst, float(np.abs(length / np.sqrt(u.shape[-1]) - 1).max()))
    d = e.recording.model.d_model
    return Measured(
        worst,
        f"With gain and bias taken back, every vector is between {fixed(shortest, 3)} and "
        f"{fixed(longest, 3)} long; √{d} is {fixed(np.sqrt(d), 3)}. "
        + (
            "All of them also have mean 0, so they lie on that sphere cut by a plane."
            if flat
            else "RMSNorm subtracts no mean, so they may lie anywhere on that sphere."
        ),
        (
            ("radius √d", fixed(np.sqrt(d), 3)),
            ("shortest", fixed(shortest, 3)),
            ("longest", fixed(longest, 3)),
        ),
    )


def only_turns(e: Evidence) -> Measured:
    """The mean | |after| / |before| - 1 | over the sub-layers: by how much they stretch or
    shrink."""
    off, rows = [], []
    for stream in e.recording.streams:
        text = text_places(stream)
        for each in layers_of(stream):
            before, after = (residual.at(stream, site)[text] for site in (each.before, each.after))
            ratio = np.linalg.norm(after, axis=-1) / np.linalg.norm(before, axis=-1)
            off.append(float(np.abs(ratio - 1).mean()))
            rows.append(
                (
                    _named(e, stream, each.name),
                    f"turned {fixed(np.nanmean(residual.degrees(before, after)), 1)}°, "
                    f"length × {fixed(ratio.mean(), 2)}",
                )
            )
    value = float(np.mean(off))
    return Measured(
        value,
        "A rotation keeps lengths. Each sub-layer does turn the vector, and changes its length "
        f"by {percent(value)} in the mean."
        + (
            " Before gain and bias, and from the first norm on, all lengths are √d, and the "
            "reading as rotations is exact."
            if each.after.endswith(".normed")
            else ""
        ),
        tuple(rows),
    )


def vocabulary_sphere(e: Evidence) -> Measured:
    """The spread of the lengths of all embeddings, of their mean, beside that of random vectors as
    wide, 1 / sqrt(2 d)."""
    words = e.embeddings()
    parts = np.array_split(words, max(len(words) // 1000, 1))  # all in 64 bits are 100 MB
    lengths = np.concatenate([np.linalg.norm(part.astype(np.float64), axis=-1) for part in parts])
    chance = 1 / np.sqrt(2 * words.shape[1])
    spread = float(lengths.std() / lengths.mean())
    return Measured(
        spread / chance,
        f"The {len(lengths):,} rows, as the stream begins with them, are "
        f"{number(float(lengths.min()))} to {number(float(lengths.max()))} long, "
        f"{number(float(lengths.mean()))} in the mean: a spread of {spread:.1%}. Random vectors "
        f"of {words.shape[1]} numbers have one of {chance:.1%}, near a sphere by their width "
        "alone. Nothing in training holds words to one length.",
        (
            ("spread of the lengths", f"{spread:.1%}"),
            ("of random vectors", f"{chance:.1%}"),
            ("shortest", number(float(lengths.min()))),
            ("mean", number(float(lengths.mean()))),
            ("longest", number(float(lengths.max()))),
        ),
    )
