"""Steps of the tour about the beginning: what came before attention, what a word's vector is made
of, and what order is."""

from __future__ import annotations

import numpy as np

from explorer.analysis import positions, residual
from explorer.analysis.claims_gradients import NETWORKS, WIDTH, recurrent
from explorer.analysis.evidence import Untestable
from explorer.analysis.grounds import enough
from explorer.analysis.numbers import fixed, power
from explorer.analysis.order import matched
from explorer.analysis.plates import (
    Bars,
    Curves,
    Row,
    Series,
    Shown,
    Strip,
    Strips,
    left_out,
    numbers,
    share,
    window,
)
from explorer.analysis.tour_seen import Seen, text_of, word_held, words_of
from models.edits import ShuffleTokens, WithoutPositions
from models.recording import Recording, Stream

DRAWN = 64  # components of a vector that a strip shows
MOST_SHUFFLES = 16  # drawn, to find one that moves two words
STILL = 1e-3  # of a vector's length: what moves by less has not moved


def before(seen: Seen) -> Shown:
    """How much of a gradient comes back over the sentence through an untrained recurrent network,
    and how many steps it takes there and along attention; the number is what the recurrent network
    has left at the first word."""
    stream = seen.recording.streams[0]
    places = between_words(stream)
    left = recurrent(seen.evidence.draw, residual.at(stream, stream.sites[0])[places])
    back = tuple(float(at) for at in range(len(places)))
    number = power(float(left[-1]), 2)
    last, first = stream.tokens[places[-1]], stream.tokens[places[0]]
    every = max(1, -(-len(places) // 8))
    ticks = tuple(
        (float(at), stream.tokens[places[-1 - at]]) for at in range(0, len(places), every)
    )
    curves = Curves(
        title=f"From “{last}” back to “{first}”",
        note=f"The median of {NETWORKS} untrained networks, gain 1, on this text’s embeddings.",
        series=(Series("a recurrent network", back, numbers(left), number, on=True),),
        x_title="words back",
        y_title="what is left of the gradient",
        log_y=True,
        ticks=ticks,
    )
    steps = len(places) - 1
    bars = Bars(
        title=f"Steps between “{last}” and “{first}”",
        columns=("",),
        rows=(
            Row("a recurrent network", (float(steps),), (str(steps),)),
            Row("attention", (1.0,), ("1",)),
        ),
    )
    words = {"first": first, "last": last, "n": str(len(places)), "width": str(WIDTH)}
    return Shown(number, float(left[-1]), (curves, bars), words)


def between_words(stream: Stream) -> np.ndarray:
    """The places from the first word of a text to its last one. Raises TooShort for one place."""
    places, words = text_of(stream), np.flatnonzero(words_of(stream))
    places = places[(places >= words[0]) & (places <= words[-1])]
    enough(len(places), "tokens", 2)
    return places


def embed(seen: Seen) -> Shown:
    """A word's vector times the root of d_model, and its position; the number is the length of the
    first."""
    stream = seen.recording.streams[-1] if seen.scale is None else seen.recording.streams[0]
    token = word_held(seen, stream)
    word = residual.at(stream, stream.sites[0])[token]
    scale = seen.scale or 1.0
    strips = []
    if scale != 1.0:
        strips.append(("its embedding", word / scale, ""))
    strips.append((f"times {fixed(scale, 0)}" if scale != 1.0 else "its embedding", word, "="))
    if "pos.wrote" in stream.sites:
        strips.append((f"position {token}", residual.at(stream, "pos.wrote")[token], "+"))
        strips.append(("together", residual.at(stream, "embed+pos")[token], "="))
    high = float(max(np.abs(vector[:DRAWN]).max() for _, vector, _ in strips[-3:])) or 1.0
    length = float(np.linalg.norm(word))
    number = fixed(length, 1)
    at = 1 if scale != 1.0 else 0
    drawn = Strips(
        title=f"“{stream.tokens[token]}”",
        note=f"The first {min(DRAWN, len(word))} of {len(word)} numbers; at the right the length "
        "of all.",
        strips=tuple(
            Strip(
                label,
                tuple(map(float, vector[:DRAWN])),
                number if each == at else fixed(float(np.linalg.norm(vector)), 1),
                "" if each == 0 else sign,
                on=each == at,
            )
            for each, (label, vector, sign) in enumerate(strips)
        ),
        high=high,
    )
    added = len(strips) > at + 1
    where = float(np.linalg.norm(strips[at + 1][1])) if added else 0.0
    variant = (
        ("" if added else "scaled_alone") if scale != 1.0 else "unscaled" if added else "alone"
    )
    words = {
        "word": stream.tokens[token],
        "d": str(len(word)),
        "alone": fixed(length / scale, 1),
        "position": fixed(where, 1),
    }
    return Shown(number, length, (drawn,), words, (("token", str(token)),), variant)


def waves(seen: Seen) -> Shown:
    """The fastest, a slow and the slowest pair of the sinusoids over this sentence; the number is
    how often the fastest turns."""
    stream = seen.recording.streams[0]
    sinusoids(seen)
    n, d = len(stream.tokens), stream.resid.shape[-1]
    pairs, made = (0, d // 8, d // 2 - 1), []
    for pair in pairs:
        wave = positions.wave(n, d, pair)
        turns = float(wave.angle[-1]) / (2 * np.pi)
        said = f"{power(turns, 2)} turns"
        name = f"pair {pair}"
        made.append(Series(name, numbers(wave.place), numbers(wave.fine_sine), said, on=pair == 0))
    turns = (n - 1) / (2 * np.pi)
    every = max(1, -(-n // 9))
    curves = Curves(
        title="sine of each position",
        series=tuple(made),
        y_title="",
        x_title="position in the sentence",
        ticks=tuple((float(at), stream.tokens[at]) for at in range(0, n, every)),
    )
    words = {"n": str(n), "pairs": str(d // 2), "slowest": made[-1].end}
    return Shown(made[0].end, turns, (curves,), words)


def sinusoids(seen: Seen) -> None:
    """Raises Untestable for a text without words and a model that does not add sinusoids."""
    stream = seen.recording.streams[0]
    text_of(stream)
    if "pos.wrote" not in stream.sites or positions.off_formula(stream) > positions.SAME:
        raise Untestable("This model does not add sinusoids, so there are no waves to show.")


def order(seen: Seen) -> Shown:
    """How far each word's last vector moves when the words are read in another order, with
    positions and without; the number is the largest with positions."""
    recording, again = seen.recording, seen.evidence.again
    stream = recording.streams[0]
    another_order(seen)
    free = "WithoutPositions" + (",WithoutMask" if stream.name == "decoder" else "")
    for seed in range(1, MOST_SHUFFLES + 1):
        shuffle = f"ShuffleTokens:{seed}"
        with_ = _moved(recording, again(shuffle, "", None), stream)
        if len(with_) >= 2:
            break
    enough(len(with_), "words that a shuffle moves", 2)
    without = _moved(again(free, "", None), again(f"{free},{shuffle}", "", None), stream)
    if not max(without.values()) < STILL < max(with_.values()):
        raise Untestable("This model knows the order of words elsewhere than in its positions.")
    spoken = words_of(stream)
    best = max(with_, key=lambda place: (bool(spoken[place]), with_[place]))
    shown = window(len(with_), [list(with_).index(best)], 11)
    places = [list(with_)[at] for at in shown]
    rows = tuple(
        Row(
            stream.tokens[place],
            (with_[place], without.get(place, 0.0)),
            (share(with_[place]), share(without.get(place, 0.0))),
            on=place == best,
        )
        for place in places
    )
    bare = "no positions" + (" or mask" if stream.name == "decoder" else "")
    bars = Bars(
        title="How far each word’s vector moves when the words are shuffled",
        note=left_out(len(rows), len(with_), "words that moved"),
        columns=("as it is", bare),
        rows=rows,
        mark=(places.index(best), 0),
        shared=True,
    )
    words = {
        "word": stream.tokens[best],
        "most": share(max(without.values())),
        "mask": " and mask" if stream.name == "decoder" else "",
    }
    return Shown(share(with_[best]), with_[best], (bars,), words)


def another_order(seen: Seen) -> None:
    """Raises Untestable where there is no other order of the words, or none can be tried."""
    stream = seen.recording.streams[0]
    text_of(stream)
    if len({int(each) for each in stream.ids[~stream.special]}) < 2:
        raise Untestable("All words of this text are the same, so there is no other order.")
    seen.can(ShuffleTokens, WithoutPositions)


def _moved(one: Recording, other: Recording, stream: Stream) -> dict[int, float]:
    """By place in the text: how far the last vector of a word that the shuffle moved is from its
    own, of its length."""
    here, there = one.stream(stream.name), other.stream(stream.name)
    pairs = matched(here, there, same_text=True)
    a, b = residual.at(here, here.sites[-1]), residual.at(there, there.sites[-1])
    return {
        int(i): float(np.linalg.norm(a[i] - b[j]) / np.linalg.norm(a[i]))
        for i, j in zip(pairs.here, pairs.there)
        if i != j and not stream.special[i]
    }
