"""Steps of the tour about what a model says: each block read in words, a text as a product, and the
loops that write one."""

from __future__ import annotations

import numpy as np

from explorer.analysis.evidence import Untestable
from explorer.analysis.grounds import enough, masked
from explorer.analysis.numbers import percent, power_of_e
from explorer.analysis.plates import (
    Bars,
    Box,
    Ladder,
    Loops,
    Row,
    Rung,
    Shown,
    left_out,
)
from explorer.analysis.tour_seen import NO_WORD, Seen, word_held, words_of
from models.edits import HideToken
from models.recording import Stream

MOST_RUNGS, MOST_ROWS = 9, 10


def words(seen: Seen) -> Shown:
    """What each layer's vector would say if it were the last one: of a decoder after its last word,
    of a translator where it said its last one, of an encoder at the followed word, which is hidden.
    The number is the last layer's probability of its likeliest word."""
    stream = seen.recording.streams[-1]
    token, hides = place_read(seen), stream.name != "decoder"
    word = stream.tokens[token]
    recording = seen.recording
    if hides:
        recording = seen.evidence.again(f"HideToken:{token}", "", None)
        stream = recording.stream(stream.name)
    lens = seen.lens(recording, stream.name)
    sites = [at for at, site in enumerate(lens.sites) if _ends_a_layer(lens.sites, at)]
    sites = sites[:1] + sites[-(MOST_RUNGS - 1) :] if len(sites) > MOST_RUNGS else sites
    rungs, number = [], ""
    for at in sites:
        p = np.exp(lens.top_logprobs[at, token, :3])
        labels = seen.labels(map(int, lens.top_ids[at, token, :3]))
        last = at == sites[-1]
        number = percent(float(p[0])) if last else number
        rungs.append(
            Rung(
                _called(lens.sites[at]),
                tuple((label, float(each), percent(float(each))) for label, each in zip(labels, p)),
                last,
            )
        )
    final = int(lens.final_id[token])
    first = [at for at in sites if lens.top_ids[at, token, 0] == final]
    settled = next(at for at in first if all(later in first for later in sites[sites.index(at) :]))
    mask = stream.tokens[token]
    title = f"at {mask}, in place of “{word}”" if hides else f"after “{word}”"
    ladder = Ladder(title=title, rungs=tuple(rungs))
    value = float(np.exp(lens.top_logprobs[sites[-1], token, 0]))
    said = {
        "answer": rungs[-1].words[0][0],
        "settled": _called(lens.sites[settled]),
        "word": word,
        "mask": mask,
    }
    address = (("token", str(token)),)
    return Shown(number, value, (ladder,), said, address, "masked" if hides else "")


def place_read(seen: Seen) -> int:
    """The place that a step on the readout looks at. Raises Untestable where none can be read."""
    seen.reads_words()
    stream = seen.recording.streams[-1]
    if stream.name != "decoder":
        seen.can(HideToken)
        return word_held(seen, stream)
    if not words_of(stream).any():
        raise Untestable(NO_WORD)
    two = len(seen.recording.streams) > 1  # it says the end after its last word
    return int(np.flatnonzero(words_of(stream))[-1]) - 1 if two else len(stream.tokens) - 1


def _ends_a_layer(sites: tuple[str, ...], at: int) -> bool:
    """True for the beginning, the end, and the last state of each layer."""
    layer = sites[at].partition(".")[0]
    nxt = sites[at + 1].partition(".")[0] if at + 1 < len(sites) else ""
    return at == len(sites) - 1 or (nxt != layer and (layer.isdecimal() or nxt.isdecimal()))


def _called(site: str) -> str:
    layer = site.partition(".")[0]
    return (
        f"layer {layer}"
        if layer.isdecimal()
        else "the end"
        if site.startswith("final")
        else "the word"
    )


def chain(seen: Seen) -> Shown:
    """The probability of each next token given those before it, and their product, which is the
    number."""
    stream = seen.recording.streams[-1]
    says_next(seen)
    n = len(stream.tokens)
    found = _chances(seen, stream)
    total = float(found.sum())
    number = power_of_e(total, 2)
    rows = [
        Row(
            stream.tokens[at + 1],
            (float(np.exp(found[at])),),
            (percent(float(np.exp(found[at]))),),
            tone="",
        )
        for at in range(min(n - 1, MOST_ROWS))
    ]
    likeliest = int(found[: len(rows)].argmax())
    rows.append(Row("all, multiplied", (0.0,), (number,), on=True))
    bars = Bars(
        title="p(next | those before)",
        note=left_out(len(rows) - 1, n - 1, "tokens; the product is of all"),
        columns=("",),
        rows=tuple(rows),
        mark=(len(rows) - 1, 0),
    )
    said = {
        "n": str(n - 1),
        "first": stream.tokens[0],
        "second": stream.tokens[1],
        "likeliest": stream.tokens[likeliest + 1],
    }
    return Shown(number, total, (bars,), said)


def says_next(seen: Seen) -> None:
    """Raises Untestable for a model that does not say next words, TooShort for fewer than two."""
    stream = seen.recording.streams[-1]
    if stream.name != "decoder" or not words_of(stream).any():
        raise Untestable("This step needs a model that writes, and a sentence.")
    seen.reads_words()
    enough(len(stream.tokens), "tokens", 3)


def _chances(seen: Seen, stream: Stream) -> np.ndarray:
    """ln p(token i + 1 | tokens to i), (token - 1), float64."""
    made = []
    for at in range(len(stream.tokens) - 1):
        scores = seen.evidence.logits(stream.name, at).astype(np.float64)
        top = scores.max()
        made.append(scores[int(stream.ids[at + 1])] - top - np.log(np.exp(scores - top).sum()))
    return np.array(made)


def loops(seen: Seen) -> Shown:
    """Generation as nested loops, with what is stored: the number is how many numbers lie there
    after this text."""
    model, stream = seen.recording.model, seen.recording.streams[-1]
    own = masked(seen.recording)[0]
    n, layers, heads = len(stream.tokens), own.pattern.shape[0], own.pattern.shape[1]
    stored = 2 * n * layers * (seen.key_heads or heads) * model.d_head
    number = f"{stored:,}"
    cross = any(one.query != one.key for one in seen.recording.attention)
    steps = [
        Box("make a query, a key and a value", f"{heads} heads"),
        Box("store the key and the value", f"{number} numbers by now", on=True),
        Box(
            "look the query up in all stored keys",
            f"{n * (n + 1) // 2 * layers * heads:,} scores in all",
        ),
        *(
            [Box("look up the source too", f"{len(seen.recording.streams[0].tokens)} stored keys")]
            if cross
            else []
        ),
        Box("rotate by what was found, then by the FFN"),
    ]
    block = Box("for each block", f"{layers} times", tuple(steps))
    token = Box(
        "for each token",
        f"{n} times",
        (Box("take its embedding"), block, Box("say the next token")),
    )
    without = n * (n + 1) // 2
    said = {
        "n": str(n),
        "layers": str(layers),
        "without": f"{without:,}",
        "whose": "the decoder’s own" if cross else "the",
    }
    return Shown(number, float(stored), (Loops(boxes=(token,)),), said)
