"""Claims about words: where the last vector lies among the vocabulary's, what the layers before it
say, and what context changes."""

from __future__ import annotations

import numpy as np

from explorer.analysis import residual
from explorer.analysis.evidence import Evidence, Measured, Untestable, number
from explorer.analysis.grounds import embedding_factor, enough, few, text_places, text_rows, writer
from explorer.analysis.numbers import fixed, percent
from models.recording import Stream

FEWEST_WORDS = 500  # of a vocabulary, of which a hundredth is then more than a few
MOST_TOKENS, MOST_WORDS, TOP = 8, 6, 5
GOES_ON = "‧"  # what a token's label begins with where it goes on inside a word


def _last(e: Evidence) -> tuple[Stream, np.ndarray]:
    stream = writer(e.recording)
    return stream, few(text_rows(stream), MOST_TOKENS)


def near_words(e: Evidence) -> Measured:
    """The share of the vocabulary that is further (by angle) from the last vector than its five
    likeliest words, in the mean."""
    stream, places = _last(e)
    words = _unit(e.embeddings())
    shares, cosines = [], []
    for place in places:
        likely = np.argsort(-e.logits(stream.name, int(place)), kind="stable")[:TOP]
        cosine = words @ _unit(stream.resid[-1, place])
        shares += [float((cosine < cosine[id]).mean()) for id in likely]
        cosines += [float(cosine[likely[0]])]
    value = float(np.mean(shares))
    return Measured(
        value,
        f"At {len(places)} tokens: the five words the model holds likeliest lie nearer to its "
        f"last vector than {percent(value)} of the {len(words):,} words. Near is not on top of "
        f"it: the likeliest one is at a cosine of {fixed(float(np.mean(cosines)), 2)} in the mean.",
        (
            ("cosine to the likeliest word, mean", fixed(float(np.mean(cosines)), 2)),
            ("largest", fixed(max(cosines), 2)),
        ),
    )


def distance_tells(e: Evidence) -> Measured:
    """The rank correlation over the vocabulary of a word's nearness to the last vector and its
    probability, in the mean."""
    stream, places = _last(e)
    words = e.embeddings() / embedding_factor(e)  # as the readout has them
    squares = (words**2).sum(axis=1)
    found, straight = [], []
    for place in places:
        scores, h = e.logits(stream.name, int(place)), stream.resid[-1, place]
        product = words @ h
        found.append(_rank_correlation(2 * product - squares, scores))
        straight.append(_rank_correlation(product, scores))
    value = float(np.mean(found))
    return Measured(
        value,
        "Sorted by distance to the last vector, the rows of the readout are in the order of "
        f"their words’ probability with a rank correlation of {fixed(value, 2)} (1: the same "
        "order). "
        "The readout takes the product h·e and adds a bias, and a product is not a distance "
        "where words are of unlike lengths: sorted by h·e alone it is "
        f"{fixed(float(np.mean(straight)), 2)}.",
        (
            ("by distance |h − e|", fixed(value, 2)),
            ("by product h·e", fixed(float(np.mean(straight)), 2)),
        ),
    )


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-30)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = (np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (a, b))
    return float(np.corrcoef(a, b)[0, 1])


def readable(e: Evidence) -> Measured:
    """The worst block's median rank of the model's final answer when read off its output, as a
    share of the vocabulary."""
    stream = writer(e.recording)
    lens, text = e.lens(stream.name), text_rows(stream)
    n_vocab = e.recording.model.n_vocab
    if n_vocab < FEWEST_WORDS:
        raise Untestable(
            f"A rank among this model’s {n_vocab} words is too coarse: this needs at least "
            f"{FEWEST_WORDS}."
        )
    blocks = {
        site.partition(".")[0]: at
        for at, site in enumerate(lens.sites)
        if site.partition(".")[0].isdecimal()
    }  # the last site of each
    if not blocks:
        raise Untestable("This model does not show what comes out of its blocks.")
    ranks = {layer: lens.rank[at, text] for layer, at in blocks.items()}
    value = max(float(np.median(rank)) for rank in ranks.values()) / n_vocab
    shares = {layer: float((rank == 0).mean()) for layer, rank in ranks.items()}
    first = next(iter(ranks))
    return Measured(
        value,
        f"Read through the same readout, the output of block {first} puts the model’s final "
        f"answer at rank {np.median(ranks[first]) + 1:.0f} of {n_vocab:,} in the median (by "
        f"chance: {n_vocab // 2:,}) and first at {percent(shares[first])} of the tokens."
        + (
            " Nothing is masked here, so the answer is mostly the word that stands there."
            if stream.name == "encoder"
            else ""
        ),
        tuple(
            (
                f"block {layer}: final answer first; median rank; KL to the end",
                f"{percent(shares[layer])}; {np.median(rank) + 1:.0f}; "
                f"{number(float(lens.kl[blocks[layer], text].mean()))} nats",
            )
            for layer, rank in ranks.items()
        ),
    )


def context_moves(e: Evidence) -> Measured:
    """The mean cosine between a word's last vector in this text and when it stands alone."""
    stream = writer(e.recording) if len(e.recording.streams) == 1 else e.recording.streams[0]
    text = text_places(stream)
    if stream.name == "decoder":
        text = text[
            1:
        ]  # the first word of a decoder stands alone here too: it sees nothing before it
    goes_on = [token.startswith(GOES_ON) for token in (*stream.tokens[1:], "")]
    words = [
        place
        for place in text
        if len(stream.tokens[place]) > 2 and stream.tokens[place].isalpha() and not goes_on[place]
    ]
    rows, cosines = [], []
    for place in few(np.array(words, dtype=int), MOST_WORDS):
        apart = e.again("", stream.tokens[place], ()).stream(stream.name)
        same = np.flatnonzero(apart.ids == stream.ids[place])
        if len(same):
            cosines.append(
                float(
                    residual.cosine(
                        residual.at(stream, stream.sites[-1])[place],
                        residual.at(apart, apart.sites[-1])[same[0]],
                    )
                )
            )
            rows.append((f"{stream.tokens[place]} (token {place})", fixed(cosines[-1], 2)))
    enough(len(cosines), "words of one token, of letters, with words around them")
    value = float(np.mean(cosines))
    return Measured(
        value,
        f"Each of {len(cosines)} words was also read alone. It begins with the same embedding, "
        f"and ends at a cosine of {fixed(value, 2)} to what it is in this sentence.",
        tuple(rows),
    )
