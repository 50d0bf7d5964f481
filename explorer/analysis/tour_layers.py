"""Steps of the tour about what surrounds attention: the two stages, the FFN, residual connections,
and LayerNorm."""

from __future__ import annotations

import numpy as np

from explorer.analysis import residual
from explorer.analysis.claims_stream import layers_of
from explorer.analysis.evidence import LACKS, Untestable
from explorer.analysis.grounds import another, enough, patched, state_before
from explorer.analysis.numbers import fixed, power
from explorer.analysis.plates import (
    Bars,
    Curves,
    Dial,
    Dials,
    Row,
    Series,
    Shown,
    left_out,
    numbers,
    share,
    window,
)
from explorer.analysis.tour_seen import Seen, text_of, word_held
from models.edits import PatchSite
from models.recording import Stream

MOST_UNITS = 8  # of an FFN that are written out
MOST_DIALS = 9
MOST_LAYERS = 4  # in which a word is exchanged
STILL = 5e-4  # of a length: a smaller change is written as 0%


def stages(seen: Seen) -> Shown:
    """One word's vector exchanged before attention, and before the FFN: how much each token's part
    then writes differently. The number is the largest change at another word."""
    stream = seen.recording.streams[0]
    places = exchangeable(seen)
    place = int(places[0]) if stream.name == "decoder" else word_held(seen, stream)
    others = np.delete(np.arange(len(stream.tokens)), place)
    others = others[~stream.special[others]]
    # Some layers rest on a special token altogether: the one of the first few where most is seen.
    tried = [
        _changed(seen, stream, layer, place, "attn")
        for layer in range(min(seen.recording.model.n_layer, MOST_LAYERS))
    ]
    layer = int(np.argmax([each[others].max() for each in tried]))
    attention, alone = tried[layer], _changed(seen, stream, layer, place, "ffn")
    best = int(others[attention[others].argmax()])
    if attention[best] < STILL:
        raise Untestable("Attention writes nothing of this word at the others here.")
    shown = window(len(stream.tokens), (place, best), 11)
    rows = tuple(
        Row(
            stream.tokens[at],
            (float(attention[at]), float(alone[at])),
            (share(attention[at]), share(alone[at])),
            on=at in (best, place),
        )
        for at in map(int, shown)
    )
    bars = Bars(
        title=f"“{stream.tokens[place]}” exchanged for another word: what changes in layer {layer}",
        note=left_out(len(rows), len(stream.tokens)),
        columns=("stage 1: attention writes", "stage 2: the FFN writes"),
        rows=rows,
        mark=(int(np.flatnonzero(shown == best)[0]), 0),
    )
    words = {"word": stream.tokens[place], "other": stream.tokens[best]}
    words["else"] = share(float(alone[others].max()))
    return Shown(share(attention[best]), float(attention[best]), (bars,), words)


def exchangeable(seen: Seen) -> np.ndarray:
    """The places of the text's tokens, whose vectors can be exchanged. Raises Untestable where they
    cannot, TooShort for fewer than two."""
    stream = seen.recording.streams[0]
    places = text_of(stream)
    enough(len(places), "tokens", 2)
    seen.can(PatchSite)
    for part in ("attn", "ffn"):
        state_before(stream, 0, part)
    return places


def _changed(seen: Seen, stream: Stream, layer: int, place: int, part: str) -> np.ndarray:
    """By how much of its length what a part of a layer writes at each token changes, when one
    token's vector before it is another, (token)."""
    site, wrote = state_before(stream, layer, part), f"{layer}.{part}.wrote"
    changed = seen.evidence.again(patched(another(stream, place), site, place), "", None)
    here, there = (residual.at(each, wrote) for each in (stream, changed.stream(stream.name)))
    size = np.maximum(np.linalg.norm(here, axis=1), 1e-12)
    return np.linalg.norm(there - here, axis=1) / size


def ffn(seen: Seen) -> Shown:
    """The inside of an FFN at the held word, in the layer that writes most there: its hidden units
    above zero, and what the strongest write. The number is how many are above zero."""
    stream = seen.recording.streams[-1]
    token = word_held(seen, stream)
    own = [each for each in residual.sublayers(stream) if each.place == "ffn"]
    shares = [
        residual.share(
            residual.at(stream, each.before)[token], residual.at(stream, each.wrote)[token]
        )
        for each in own
    ]
    layer = own[int(np.argmax(shares))].layer
    found = seen.inside(stream.name, layer, token)
    silent = not np.any(found.after[found.before <= 0])
    added = "vectors and a bias are" if seen.ffn_biases else "sum is"
    above, units = int((found.before > 0).sum()), len(found.before)
    lengths = np.linalg.norm(found.writes, axis=1)
    best = np.argsort(-lengths, kind="stable")[:MOST_UNITS]
    towards = _towards(seen, found.writes[best])
    number = str(above)
    counted = Bars(
        title=f"{units} hidden units, layer {layer}",
        columns=("units",),
        rows=(
            Row("above zero", (float(above),), (number,), on=True),
            Row("zero or below", (float(units - above),), (str(units - above),)),
        ),
        mark=(0, 0),
    )
    rows = tuple(
        Row(f"unit {unit}", (float(lengths[unit]),), (towards[at],)) for at, unit in enumerate(best)
    )
    strongest = Bars(
        title="Those that write most, and the words they write towards",
        columns=("length",),
        rows=rows,
        wide=True,
    )
    words = {
        "word": stream.tokens[token],
        "units": str(units),
        "layer": str(layer),
        "sum": f"their {added} what the FFN writes",
    }
    address = (("token", str(token)),)
    variant = "" if silent else "smooth"
    return Shown(number, float(above), (counted, strongest), words, address, variant)


def opens_its_ffn(seen: Seen) -> None:
    """Raises Untestable where the inside of an FFN cannot be seen."""
    stream = seen.recording.streams[-1]
    token = word_held(seen, stream)
    if not any(each.place == "ffn" for each in residual.sublayers(stream)):
        raise Untestable("This model does not show what its FFN reads and writes.")
    try:
        seen.inside(stream.name, 0, token)
    except (ValueError, AttributeError) as error:
        raise Untestable(f"{LACKS}.") from error


def _towards(seen: Seen, writes: np.ndarray) -> list[str]:
    """The two words of the vocabulary that each written vector points to most."""
    try:
        ids, _ = seen.nearest(writes, 2)
    except (ValueError, AttributeError):
        return [""] * len(writes)
    return [", ".join(seen.labels(map(int, row))) for row in ids]


def deep(seen: Seen) -> Shown:
    """The gradient through a deep random stack on this sentence, with residual connections and
    without; the number is what is left of it without them at the input."""
    stream = seen.recording.streams[0]
    text_of(stream)
    found = seen.evidence.depth(stream.name)
    left = {way: norm / norm[-1] for way, norm in zip(found.ways, found.norm)}
    on, off = left["residual on"], left["residual off"]
    number = power(float(off[0]), 2)
    kept = power(float(on[0]), 2)
    layers = numbers(np.arange(found.layers, -1, -1))
    curves = Curves(
        title=f"{found.layers} layers, random weights, this sentence’s embeddings",
        note=f"At every layer the median of {found.draws} draws.",
        series=(
            Series("with residuals", layers, numbers(on[::-1]), kept),
            Series("without", layers, numbers(np.maximum(off[::-1], 1e-300)), number, on=True),
        ),
        x_title="layer, from the last one back to the input",
        y_title="what is left of the gradient",
        log_y=True,
        backwards=True,
    )
    words = {"layers": str(found.layers), "kept": kept}
    return Shown(number, float(off[0]), (curves,), words)


def sphere(seen: Seen) -> Shown:
    """The held word's vector turned by each sub-layer, and where the norm leaves it; the number is
    the largest turn."""
    stream = seen.recording.streams[-1]
    token = word_held(seen, stream)
    own = layers_of(stream)
    width = float(np.sqrt(stream.resid.shape[-1]))
    dials, turned = [], []
    for each in own:
        before, total, after = (
            residual.at(stream, site)[token] for site in (each.before, each.total, each.after)
        )
        angle = float(residual.degrees(before, after))
        turned.append(angle)
        lengths = [float(np.linalg.norm(vector)) for vector in (before, total, after)]
        half = float(residual.degrees(before, total))
        dials.append((f"{each.layer} · {NAMES.get(each.place, each.place)}", lengths, half, angle))
    best = int(np.nanargmax(turned))
    number = f"{turned[best]:.0f}°"
    ends = [lengths[2] for _, lengths, _, _ in dials]
    chosen = window(len(dials), (best,), MOST_DIALS)
    post = any(each.after.endswith(".normed") for each in own)
    full = width if post else max(lengths[2] for _, lengths, _, _ in dials)
    made = tuple(
        Dial(
            label, lengths[0], (lengths[1], half), (lengths[2], angle), f"{angle:.0f}°", at == best
        )
        for at in map(int, chosen)
        for label, lengths, half, angle in [dials[at]]
    )
    cut = left_out(len(made), len(dials), "turns")
    panel = Dials(
        title=f"“{stream.tokens[token]}”: grey before, dotted after adding, bold at the end",
        note=(
            (
                f"The circle has radius √d = {fixed(width, 0)}: {seen.norm}, before its gain, puts "
                "every vector there."
            )
            if post
            else (
                f"{seen.norm} stands before each sub-layer here (pre-LN): nothing brings the sum "
                "back to a circle. Circle: the longest."
            )
        )
        + (f" {cut}." if cut else ""),
        dials=made,
        full=full,
    )
    words = {
        "word": stream.tokens[token],
        "where": f"the {residual.PLACES[own[best].place]} of layer {own[best].layer}",
        "norm": seen.norm,
        "short": fixed(min(ends), 1),
        "long": fixed(max(ends), 1),
        "radius": fixed(width, 1),
        "first": fixed(dials[0][1][0], 1),
        "last": fixed(ends[-1], 1),
    }
    address = (("token", str(token)),)
    return Shown(number, turned[best], (panel,), words, address, "" if post else "pre")


NAMES = {"attn": "attention", "cross": "cross", "ffn": "FFN"}
