"""Claims about what passes from one token to another: the mask, messages, the feed-forward network,
cross-attention, reading step by step.

Where one token is exchanged for another, several are tried, each in a pass of its own.
"""

from __future__ import annotations

import numpy as np

from explorer.analysis.evidence import TRIED, Evidence, Measured, Untestable, number
from explorer.analysis.grounds import (
    another,
    at_least,
    beginning,
    enough,
    few,
    masked,
    opened,
    own,
    patched,
    state_before,
    text_places,
    tried,
    writer,
)
from explorer.analysis.numbers import percent, plural
from models.recording import Recording, Stream

LOST = 2.0**-24  # a weight below this adds less to a sum than a 32-bit number can show


# ---- the mask ----


def later_weight(e: Evidence) -> Measured:
    """The largest weight on a later token under a causal mask."""
    attention, stream = masked(e.recording)
    at_least(stream)
    n = len(stream.tokens)
    later = np.triu(np.ones((n, n), dtype=bool), 1)
    value = float(np.abs(attention.pattern[..., later]).max())
    return Measured(
        value,
        f"All {int(later.sum()) * attention.pattern.shape[0] * attention.pattern.shape[1]:,} "
        f"weights above the diagonal were looked at; the largest is {number(value)}. e to the −∞ "
        "is 0, not merely small.",
    )


def future_change(e: Evidence) -> Measured:
    """The largest change of any earlier token's vector, at any place, when a later token is another
    one."""
    _, stream = masked(e.recording)
    places = tried(np.arange(1, len(stream.tokens)))
    two = len(e.recording.streams) > 1
    here, before, rows = [], [], []
    for place in places:
        changed = (
            _with_other_word(e, stream, place) if two else _with_other_vector(e, stream, place)
        )
        moved = np.abs(stream.resid - changed.resid).max(axis=(0, 2))
        del changed  # each holds a whole pass: one at a time
        if moved[place] > 0:
            here.append(float(moved[place]))
            before.append(float(moved[:place].max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(before[-1])))
    if not here:
        raise Untestable("No token could be exchanged for another one.")
    return Measured(
        max(before),
        f"{len(here)} tokens were exchanged, one after another. Their own vectors changed by up "
        f"to {number(max(here))}, those of the tokens before them by {number(max(before))}.",
        tuple(rows),
    )


def _with_other_vector(e: Evidence, stream: Stream, place: int) -> Stream:
    edit = patched(another(stream, place), beginning(stream), place)
    return e.again(edit, "", None).stream(stream.name)


def _with_other_word(e: Evidence, stream: Stream, place: int) -> Stream:
    ids = list(map(int, stream.ids[1:]))
    ids[place - 1] = _other_id(e.recording, int(stream.ids[place]))
    return e.again("", "", tuple(ids)).stream(stream.name)


def _other_id(recording: Recording, id: int) -> int:
    ids = recording.streams[0].ids[text_places(recording.streams[0])]
    others = ids[ids != id]
    if not len(others):
        raise Untestable("There is no other token to exchange it for.")
    return int(others[0])


def both_sides(e: Evidence) -> Measured:
    """The share of an encoder's tokens before an exchanged one whose last vectors change: the
    mask's law the other way round."""
    attention = next((each for each in e.recording.attention if each.query == "encoder"), None)
    if attention is None or attention.key != "encoder":
        raise Untestable("This model has no encoder.")
    stream = e.recording.stream("encoder")
    heard, could, rows = 0, 0, []
    for place in tried(np.arange(1, len(stream.tokens))):
        moved = np.abs(stream.resid[-1] - _with_other_vector(e, stream, place).resid[-1]).max(
            axis=1
        )
        if moved[place] > 0:
            heard, could = heard + int((moved[:place] > 0).sum()), could + place
            rows.append(
                (
                    f"{stream.tokens[place]} (token {place}): earlier tokens that change",
                    f"{int((moved[:place] > 0).sum())} of {place}",
                )
            )
    if not could:
        raise Untestable("No token could be exchanged for another one.")
    later = np.triu(np.ones(attention.allowed.shape, dtype=np.float32), 1)
    share = float((attention.pattern * later).sum() / attention.pattern[..., 0].size)
    return Measured(
        heard / could,
        f"{len(rows)} tokens were exchanged, one after another: {heard} of the {could} vectors "
        f"before them change. On this text {percent(share)} of all weight rests on later tokens.",
        tuple(rows),
    )


# ---- what passes ----


def messages(e: Evidence) -> Measured:
    """The share of tokens that hear of a change of one token in layer 0's attention just where an
    edge of the graph is, over several tokens exchanged. Edges whose weight is lost in rounding say
    nothing and do not count. Raises Untestable where most are."""
    attention = own(e.recording)[0]
    stream = e.recording.stream(attention.query)
    state_before(stream, 0, "attn")
    right, counted, lost, edges_in_all, faintest, rows = 0, 0, 0, 0, 0.0, []
    for place in tried(text_places(stream)):
        edit = patched(another(stream, place), beginning(stream), place)
        changed = e.again(edit, "", None)
        there = changed.stream(stream.name).at("0.attn.wrote")
        moved = np.abs(stream.at("0.attn.wrote") - there).max(axis=1) > 0
        edges = attention.allowed[:, place]
        weight = np.max(
            [own(each)[0].pattern[0, :, :, place].max(axis=0) for each in (e.recording, changed)],
            axis=0,
        )
        del changed, there  # each holds a whole pass: one at a time
        silent = edges & ~moved & (weight < LOST)
        faintest = max(faintest, float(weight[silent].max(initial=0)))
        lost, edges_in_all = lost + int(silent.sum()), edges_in_all + int(edges.sum())
        right += int((moved == edges)[~silent].sum())
        counted += int((~silent).sum())
        rows.append(
            (
                f"{stream.tokens[place]} (token {place}): edges; of these changed; changed without",
                f"{int(edges.sum())}; {int((moved & edges).sum())}; {int((moved & ~edges).sum())}",
            )
        )
    if 2 * lost > edges_in_all:
        raise Untestable(
            f"Layer 0’s attention is so sharp here that at {lost} of {edges_in_all} edges its "
            f"weight is lost in rounding (at most {number(faintest)}): an edge is a permission "
            "and no promise."
        )
    quiet = (
        f" At {lost} the weight is so small that 32-bit numbers carry nothing, which neither "
        "speaks for nor against an edge."
        if lost
        else ""
    )
    return Measured(
        right / counted,
        f"{len(rows)} tokens were exchanged before layer 0, one after another. In {right} of "
        f"{counted} cases what attention writes at a token changed just where it has an edge to "
        f"the exchanged one.{quiet}",
        tuple(rows),
    )


def alone(e: Evidence) -> Measured:
    """The largest change of what the FFN writes at any other token, when one token's vector before
    it is another; several are tried."""
    stream = e.recording.streams[0]
    site = state_before(stream, 0, "ffn")
    here, others, rows = [], [], []
    for place in tried(text_places(stream)):
        changed = e.again(patched(another(stream, place), site, place), "", None)
        moved = np.abs(stream.at("0.ffn.wrote") - changed.stream(stream.name).at("0.ffn.wrote"))
        del changed  # each holds a whole pass: one at a time
        moved = moved.max(axis=1)
        if moved[place] > 0:
            here.append(float(moved[place]))
            others.append(float(np.delete(moved, place).max()))
            rows.append((f"{stream.tokens[place]} (token {place})", number(others[-1])))
    if not here:
        raise Untestable("No token’s vector could be exchanged for another one.")
    return Measured(
        max(others),
        f"The vectors of {len(here)} tokens were exchanged just before the FFN of layer 0, one "
        f"after another. What the FFN writes changed there by up to {number(max(here))} and at "
        f"the other {len(stream.tokens) - 1} tokens by {number(max(others))}.",
        tuple(rows),
    )


def cross_keys(e: Evidence) -> Measured:
    """The largest change of any cross-attention key or value when the decoder reads something else:
    several other texts, one after another."""
    cross = next((each for each in e.recording.attention if each.query != each.key), None)
    if cross is None:
        raise Untestable("This model has one stream, so it has no cross-attention.")
    opened(e.recording)
    moved, asked, rows = [], [], []
    for ids in _other_targets(e.recording.stream(cross.key), e.recording.stream(cross.query)):
        other = next(each for each in e.again("", "", ids).attention if each.name == cross.name)
        both = (cross.k, other.k), (cross.v, other.v)
        moved.append(max(float(np.abs(a - b).max()) for a, b in both))
        n = min(cross.q.shape[2], other.q.shape[2])
        asked.append(float(np.abs(cross.q[:, :, :n] - other.q[:, :, :n]).max()))
        del other, both  # each holds a whole pass: one at a time
        rows.append(
            (
                f"another text of {plural(len(ids), 'token')}: keys and values; queries",
                f"{number(moved[-1])}; {number(asked[-1])}",
            )
        )
    n_source = cross.k.shape[2]
    return Measured(
        max(moved),
        f"The decoder was given {len(rows)} other texts to go on from, one after another. The "
        f"{n_source} keys and values changed by {number(max(moved))} at most; the queries, which "
        f"come from the decoder, by up to {number(max(asked))}.",
        (*rows, ("queries × keys", f"{cross.q.shape[2]} × {n_source}")),
    )


def _other_targets(source: Stream, target: Stream) -> list[tuple[int, ...]]:
    """TRIED texts for a decoder to read, made of a source's tokens, none of them what it reads
    now."""
    ids = tuple(int(id) for id in few(source.ids[text_places(source)], 8))
    made = dict.fromkeys((ids[::-1], ids, ids[1:], ids[::2], ids[:1], ids * 2))
    others = [each for each in made if each != tuple(map(int, target.ids[1:]))]
    enough(len(others), "other texts to try", TRIED)
    return others[:TRIED]


def offset(e: Evidence) -> Measured:
    """How much likelier (nats) a decoder's row holds the token after the one it reads than that one
    itself, in the mean."""
    _, stream = masked(e.recording)
    ids = stream.ids
    places = few(np.flatnonzero(ids[:-1] != ids[1:]), 32)
    enough(len(places), "rows whose next token is another than the one they read")
    gained = []
    for place in places:
        scores = e.logits(stream.name, int(place)).astype(np.float64)
        gained.append(scores[ids[place + 1]] - scores[ids[place]])
    value = float(np.mean(gained))
    higher = int((np.array(gained) > 0).sum())
    return Measured(
        value,
        "Row by row, the score of the token that comes next was compared with that of the token "
        f"just read: it is {'higher' if value > 0 else 'lower'} by {number(abs(value))} nats in "
        f"the mean, and higher in {higher} of the {len(places)} rows. The text begins with "
        f"{stream.tokens[0]}, so that the first word has a row too.",
    )


def steps_agree(e: Evidence) -> Measured:
    """The largest difference of any score between one pass over the text and one pass a token, of
    the largest score."""
    _, stream = masked(e.recording)
    at_least(stream)
    n = min(len(stream.tokens), 32)
    apart = np.stack(e.stepwise(n))
    together = np.stack([e.logits(writer(e.recording).name, place) for place in range(n)])
    error, size = float(np.abs(apart - together).max()), float(np.abs(together).max())
    return Measured(
        error / size,
        f"The first {n} tokens read at once, and one after another with stored keys and values: "
        f"the {together.size:,} scores differ by at most {number(error)}, where they reach "
        f"{number(size)}.",
    )
