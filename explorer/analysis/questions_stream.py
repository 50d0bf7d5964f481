"""Questions about the residual stream and what is read off it: which word a sub-layer turns, into
which attention writes most, which ends nearest to another, and what the model says next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from explorer.analysis import question as kinds
from explorer.analysis import residual
from explorer.analysis.findings_links import is_word
from explorer.analysis.question import Choice, Question, of_most
from explorer.analysis.questions_heads import ROOM, named, some
from explorer.analysis.words import Groups
from models.recording import Stream


def about_stream(stream: Stream, grouped: Groups, all_words: bool) -> Iterator[Question]:
    """Questions about the words of a stream; a word of several tokens is what is largest of them.
    `all_words` as in `about_heads`."""
    names, single = named(grouped.labels, all_words)
    plain = np.flatnonzero(
        [not apart and is_word(label) for label, apart in zip(grouped.labels, grouped.special)]
    )
    places = np.array([at for at in plain if single[at]], int)
    grouped = replace(grouped, labels=names)
    if len(places) < ROOM or len(stream.sites) < 3:
        return
    for one in residual.sublayers(stream):
        if one.layer < 0:
            continue
        before, wrote = stream.at(one.before), stream.at(one.wrote)
        measured = [(kinds.TURNED, "Turned", residual.degrees(before, stream.at(one.after)))]
        if one.place == "attn":
            measured.append((kinds.WROTE, "Share", residual.share(before, wrote)))
        for kind, shown, values in measured:
            by_word = np.maximum.reduceat(values, grouped.starts)
            if not np.isfinite(by_word).all() or by_word[plain].max() > by_word[places].max():
                continue
            address = (("flow", "Writes"), ("write", shown), ("stream", stream.name))
            yield from some(
                _words(kind, by_word, places, grouped, one.site, stream.name, "residual", address)
            )
    yield from _nearest(stream, grouped, plain, places)


def _words(
    kind: str,
    values: np.ndarray,
    places: np.ndarray,
    grouped: Groups,
    site: str,
    stream: str,
    page: str,
    address: tuple[tuple[str, str], ...],
) -> Question | None:
    ranked = sorted(places, key=lambda each: -values[each])
    choices = [
        Choice(float(values[at]), grouped.labels[at], int(grouped.starts[at])) for at in ranked
    ]
    lead = (choices[0].value - choices[1].value) / max(abs(choices[0].value), 1e-9)
    token = str(choices[0].token)
    return of_most(
        choices,
        kind,
        {
            "site": site,
            "stream": stream,
            "interest": lead,
            "page": page,
            "address": (*address, ("token", token)),
        },
    )


def _nearest(
    stream: Stream, grouped: Groups, plain: np.ndarray, places: np.ndarray
) -> Iterator[Question]:
    """Whose last vector points most the way of another's? Words of one token."""
    single = np.array([at for at in places if grouped.sizes[at] == 1], int)
    every = np.array([at for at in plain if grouped.sizes[at] == 1], int)
    if len(single) < ROOM + 1:
        return
    last = stream.resid[-1].astype(np.float64)
    unit = last / np.maximum(np.linalg.norm(last, axis=1, keepdims=True), 1e-12)
    starts = np.array(grouped.starts)
    cosines = unit[starts] @ unit[starts].T
    for row in single:
        others = single[single != row]
        best = others[cosines[row, others].argmax()]
        if cosines[row, every[every != row]].max() > cosines[row, best]:
            continue
        made = _words(
            kinds.NEAREST,
            cosines[row],
            others,
            grouped,
            stream.sites[-1],
            stream.name,
            "embeddings",
            (("stream", stream.name),),
        )
        if made is not None:
            token = int(starts[row])
            address = (("stream", stream.name), ("token", str(token)))
            words = (grouped.labels[row],)
            yield replace(made, words=words, token=token, address=address, interest=made.margin)


def about_next(said: Sequence[tuple[str, float]], stream: Stream) -> Iterator[Question]:
    """What is likeliest next? `said`: the likeliest tokens after the last one, with their
    probabilities, the likeliest first."""
    choices = [Choice(float(p), word.strip()) for word, p in said if is_word(word)]
    # Where something else than a word is likeliest, no word is the answer.
    if not said or not choices or choices[0].word != said[0][0].strip():
        return
    token = len(stream.tokens) - 1
    yield from some(
        of_most(
            choices,
            kinds.NEXT,
            {
                "token": token,
                "stream": stream.name,
                "interest": 1.0,
                "page": "predictions",
                "address": (("token", str(token)),),
            },
        )
    )
