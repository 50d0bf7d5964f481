"""The tour's steps: what each shows of the sentence and model on screen, a function a step, by the
id that it has in tour.toml, and what each needs to have something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.analysis import positions, residual
from explorer.analysis.claims import NETWORKS, WIDTH, layers_of, recurrent
from explorer.analysis.evidence import (
    CLOSED,
    LACKS,
    ClaimContext,
    Untestable,
    another,
    enough,
    masked,
    opened,
    patched,
    softmax,
    state_before,
    text_places,
)
from explorer.analysis.findings import Finding
from explorer.analysis.formatting import fixed, percent, plural, power, power_of_e
from explorer.analysis.head_naming import FAINT
from explorer.analysis.positions import matched
from explorer.analysis.soft_lookup import at_random, constructions, entering, of_model
from explorer.analysis.tour_figures import (
    BarRow,
    Bars,
    Box,
    Curves,
    Dial,
    Dials,
    Grid,
    Ladder,
    Lines,
    Loops,
    Rung,
    Series,
    StepResult,
    Strip,
    Strips,
    left_out,
    matrix,
    numbers,
    share,
    window,
)
from explorer.analysis.word_classes import is_word
from models.edits import (
    Edit,
    HideToken,
    OtherNorm,
    OtherPositions,
    PatchSite,
    SharedKeys,
    ShuffleTokens,
    SideBySide,
    Window,
    WithoutPositions,
)
from models.recording import Attention, Recording, Stream
from models.results import Lens

# What a step of the tour looks at: the evidence of claims, the word and the head that are held,
# and what else its model shows.

NO_WORD = "This step needs a sentence: type one above."


@dataclass(frozen=True, eq=False)
class TourContext:
    """evidence: the recording and ways to ask its model for more, as for claims. first: the
    recording's strongest finding that is seen in a head, None where there is none. labels(ids):
    tokens of the vocabulary as a person reads them. inside(stream, layer, token): the FFN's hidden
    units. nearest(vectors, top): the words that vectors come nearest to, ids and cosines.
    lens(recording, stream): what every state of a recording would say. scale: by what embeddings
    are multiplied, None where that is not known. norm: what the model's norms are called. edits,
    logits, key_heads, gate, ffn_biases: as in `models.capabilities`. turns: positions turn q and
    k."""

    evidence: ClaimContext
    first: Finding | None
    labels: Callable[[Iterable[int]], list[str]]
    inside: Callable[[str, int, int], Any]
    nearest: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
    lens: Callable[[Recording, str], Lens]
    edits: tuple[type[Edit], ...] = ()
    logits: str = ""
    scale: float | None = None
    norm: str = "LayerNorm"
    key_heads: int | None = None
    gate: str = ""
    ffn_biases: bool = True
    turns: bool = False

    @property
    def recording(self) -> Recording:
        return self.evidence.recording

    def can(self, *kinds: type[Edit]) -> None:
        """Raises Untestable where the model does not honour an edit of each of these kinds."""
        if not all(issubclass(kind, self.edits) for kind in kinds):
            raise Untestable(f"{LACKS}.")

    def reads_words(self) -> None:
        """Raises Untestable where no words are read off the model's last stream."""
        if self.logits != self.recording.streams[-1].name:
            raise Untestable("This model has no readout, so it says no words.")


@dataclass(frozen=True, eq=False)
class FollowedPair:
    """The pair of words that the tour follows: an attention, a head of it, a query and the key that
    it looks at."""

    attention: Attention
    layer: int
    head: int
    query: int
    key: int
    rows: Stream
    keys: Stream

    @property
    def weight(self) -> float:
        """How much of the query's attention the key gets."""
        return float(self.attention.pattern[self.layer, self.head, self.query, self.key])

    @property
    def words(self) -> tuple[str, str]:
        """What the two are called."""
        return self.rows.tokens[self.query], self.keys.tokens[self.key]

    def address(self) -> tuple[tuple[str, str], ...]:
        """The choices that show it on the Attention page and on Anatomy."""
        named = "" if self.attention.name in ("self", "encoder self") else self.attention.name
        return (
            ("attention", named),
            ("layer", str(self.layer)),
            ("head", str(self.head)),
            ("token", str(self.query)),
            ("source", ""),
            ("anatomy_cell", f"{self.query}.{self.key}"),
        )


def held(seen: TourContext, within: str = "") -> FollowedPair:
    """The strongest finding's pair, in the attention `within` where that is named; without a
    finding the pair of words with the largest weight between two different words. Raises Untestable
    for a text without two words."""
    recording, first = seen.recording, seen.first
    if not recording.attention:
        raise Untestable("This model shows no attention.")
    if first is not None and first.query >= 0 and first.keys and within in ("", first.attention):
        own = next(each for each in recording.attention if each.name == first.attention)
        return _of(recording, own, first.layer, first.head, first.query, int(first.keys[0]))
    own = next((one for one in recording.attention if one.name == within), recording.attention[0])
    rows, keys = (words_of(recording.stream(each)) for each in (own.query, own.key))
    among = own.allowed & rows[:, None] & keys[None, :]
    if own.query == own.key:
        np.fill_diagonal(among, False)
    if not among.any():
        raise Untestable(NO_WORD)
    weights = np.where(among, own.pattern, -1.0)
    layer, head, query, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    return _of(recording, own, layer, head, query, key)


def _of(
    recording: Recording, own: Attention, layer: int, head: int, query: int, key: int
) -> FollowedPair:
    rows, keys = recording.stream(own.query), recording.stream(own.key)
    return FollowedPair(own, layer, head, query, key, rows, keys)


def words_of(stream: Stream) -> np.ndarray:
    """Which tokens are words of the text, (token) bool."""
    return np.array([is_word(token) for token in stream.tokens]) & ~stream.special


def word_held(seen: TourContext, stream: Stream) -> int:
    """The word that a step about one token follows: the finding's, else the last word. Raises
    Untestable for a text without one."""
    places = np.flatnonzero(words_of(stream))
    if not len(places):
        raise Untestable(NO_WORD)
    first = seen.first
    if first is not None and first.query in places:
        own = next(each for each in seen.recording.attention if each.name == first.attention)
        if own.query == stream.name:
            return int(first.query)
    return int(places[-1])


def text_of(stream: Stream) -> np.ndarray:
    """The places of the text's own tokens. Raises Untestable for a text without words."""
    if not words_of(stream).any():
        raise Untestable(NO_WORD)
    return text_places(stream)


# Steps of the tour about what a model says: each block read in words, a text as a product, and
# the loops that write one.

MOST_RUNGS, MOST_ROWS = 9, 10


def words(seen: TourContext) -> StepResult:
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
    return StepResult(number, value, (ladder,), said, address, "masked" if hides else "")


def place_read(seen: TourContext) -> int:
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


def chain(seen: TourContext) -> StepResult:
    """The probability of each next token given those before it, and their product, which is the
    number."""
    stream = seen.recording.streams[-1]
    says_next(seen)
    n = len(stream.tokens)
    found = _chances(seen, stream)
    total = float(found.sum())
    number = power_of_e(total, 2)
    rows = [
        BarRow(
            stream.tokens[at + 1],
            (float(np.exp(found[at])),),
            (percent(float(np.exp(found[at]))),),
            tone="",
        )
        for at in range(min(n - 1, MOST_ROWS))
    ]
    likeliest = int(found[: len(rows)].argmax())
    rows.append(BarRow("all, multiplied", (0.0,), (number,), on=True))
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
    return StepResult(number, total, (bars,), said)


def says_next(seen: TourContext) -> None:
    """Raises Untestable for a model that does not say next words, TooShort for fewer than two."""
    stream = seen.recording.streams[-1]
    if stream.name != "decoder" or not words_of(stream).any():
        raise Untestable("This step needs a model that writes, and a sentence.")
    seen.reads_words()
    enough(len(stream.tokens), "tokens", 3)


def _chances(seen: TourContext, stream: Stream) -> np.ndarray:
    """ln p(token i + 1 | tokens to i), (token - 1), float64."""
    made = []
    for at in range(len(stream.tokens) - 1):
        scores = seen.evidence.logits(stream.name, at).astype(np.float64)
        top = scores.max()
        made.append(scores[int(stream.ids[at + 1])] - top - np.log(np.exp(scores - top).sum()))
    return np.array(made)


def loops(seen: TourContext) -> StepResult:
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
    return StepResult(number, float(stored), (Loops(boxes=(token,)),), said)


# Steps of the tour about attention: how a weight is made, and who looks at whom.

MOST_KEYS = 9  # of a softmax that is written out
MOST_HEADS = 12  # of a layer that are written out
APART = 1.5  # times: heads that look as far as this of each other look about equally far


def query_key_value(seen: TourContext) -> StepResult:
    """One row of a softmax: q . k, scaled, and as weights; the number is the weight of the pair."""
    one = held(seen)
    if not one.attention.opens:
        raise Untestable(CLOSED)
    at = one.layer, one.head, one.query
    allowed = one.attention.allowed[one.query]
    scores = one.attention.scores[at].astype(np.float64)
    products = one.attention.k[at[:2]].astype(np.float64) @ one.attention.q[at]
    weights = one.attention.pattern[at].astype(np.float64)
    best = np.argsort(-np.where(allowed, weights, -1.0), kind="stable")[: allowed.sum()]
    if one.key not in best[:MOST_KEYS]:
        best = np.array([one.key, *best[best != one.key]])
    chosen = np.sort(best[:MOST_KEYS])
    rows = tuple(
        BarRow(
            one.keys.tokens[key],
            (float(products[key]), float(scores[key]), float(weights[key])),
            (fixed(products[key], 1), fixed(scores[key], 1), fixed(weights[key])),
            on=key == one.key,
        )
        for key in map(int, chosen)
    )
    mark = int(np.flatnonzero(chosen == one.key)[0]), 2
    query, key = one.words
    width = one.attention.q.shape[-1]
    usual = np.isclose(one.attention.scale[one.layer], width**-0.5)
    divided = f"÷ √{width}" if usual else "scaled"
    bars = Bars(
        title=f"The query of “{query}” and each key",
        note=left_out(len(chosen), int(allowed.sum()), "keys, the strongest"),
        columns=("q · k", divided, "softmax"),
        rows=rows,
        mark=mark,
    )
    return StepResult(fixed(one.weight), one.weight, (bars,), _named(one), one.address())


def lookup(seen: TourContext) -> StepResult:
    """Who looks at whom in the held head; the number is how many words lie between the pair."""
    one = held(seen)
    rows = window(len(one.rows.tokens), (one.query, one.key))
    same = one.attention.query == one.attention.key
    keys = rows if same else window(len(one.keys.tokens), (one.key,))
    pattern = one.attention.pattern[one.layer, one.head].astype(np.float64)
    weights = matrix(pattern[np.ix_(rows, keys)], one.attention.allowed[np.ix_(rows, keys)])
    number = fixed(one.weight)
    lines = Lines(
        title=f"Layer {one.layer}, head {one.head}",
        note=left_out(len(rows), len(one.rows.tokens)),
        left=tuple(one.rows.tokens[at] for at in rows),
        right=tuple(one.keys.tokens[at] for at in keys),
        sides=("looks", "is looked at"),
        weights=weights,
        held=int(np.flatnonzero(rows == one.query)[0]),
        mark=(int(np.flatnonzero(keys == one.key)[0]), number),
    )
    apart = plural(abs(one.query - one.key), "token") + " away" if same else "in the other text"
    return StepResult(number, one.weight, (lines,), _named(one) | {"apart": apart}, one.address())


def _named(one: FollowedPair) -> dict[str, str]:
    query, key = one.words
    return {"query": query, "key": key, "layer": str(one.layer), "head": str(one.head)}


def scale(seen: TourContext) -> StepResult:
    """Var(q . k) against the width, with the scale and without; the number is this model's own at
    the width of its heads."""
    opened(seen.recording)
    text_of(seen.recording.streams[0])
    random, own = at_random(seen.evidence.draw), of_model(seen.recording.attention[0])
    d_head = seen.recording.model.d_head
    end = max(at for at, width in enumerate(own.widths) if width <= d_head or at == 0)
    wide = numbers(random.widths)
    variance = float(own.variance[end])
    said = (fixed(variance, 1), fixed(variance / own.widths[end], 2))
    widths = numbers(own.widths[: end + 1])
    mine = own.variance[: end + 1]
    series = (
        Series("random", wide, numbers(random.variance), fixed(random.variance[-1], 0)),
        Series(
            "random, ÷ √dₖ",
            wide,
            numbers(random.variance / np.array(wide)),
            fixed(random.variance[-1] / wide[-1], 2),
        ),
        Series("this sentence", widths, numbers(mine), said[0], on=True),
        Series("this sentence, ÷ √dₖ", widths, numbers(mine / np.array(widths)), said[1]),
    )
    curves = Curves(
        title="Variance of q · k, each of mean square 1",
        series=series,
        x_title="width of queries and keys, dₖ",
        y_title="Var(q · k)",
        log_x=True,
        log_y=True,
        ticks=tuple((float(each), str(each)) for each in random.widths[::2]),
    )
    words = {
        "d": str(own.widths[end]),
        "after": said[1],
        "scaled": fixed(own.scaled[end]),
        "raw": fixed(own.raw[end]),
    }
    return StepResult(said[0], variance, (curves,), words)


def match(seen: TourContext) -> StepResult:
    """Three ways to score pairs: the vectors as they are, one matrix for both sides, two matrices;
    the number is the last one's asymmetry."""
    one, x = entered(seen)
    made = constructions(x, one.attention, one.layer, one.head)
    at = window(len(one.rows.tokens), (one.query, one.key), 6)
    labels = tuple(one.rows.tokens[each] for each in at)
    row, column = (int(np.flatnonzero(at == each)[0]) for each in (one.query, one.key))
    number = fixed(made[-1].asymmetry)
    titles = (
        f"naive, x · x: {fixed(0.0, 0)}",
        "symmetric, Ux · Ux: 0",
        f"two matrices, q · k: {number}",
    )
    grids: list[Grid] = []
    for title, each in zip(titles, made):
        scores = each.scores[np.ix_(at, at)]
        framed = ((row, column, ""), (column, row, "")) if row != column else ()
        grids.append(
            Grid(
                title,
                "",
                labels,
                labels,
                matrix(scores),
                float(np.abs(scores).max()) or 1.0,
                True,
                framed,
                bare=bool(grids),
            )
        )
    there, back = made[-1].scores[one.query, one.key], made[-1].scores[one.key, one.query]
    words = _named(one) | {"there": fixed(there, 1), "back": fixed(back, 1)}
    variant = "alike" if words["there"] == words["back"] else ""
    return StepResult(number, made[-1].asymmetry, tuple(grids), words, one.address(), variant)


def entered(seen: TourContext) -> tuple[FollowedPair, np.ndarray]:
    """The pair within one text, and the vectors that its layer reads. Raises Untestable where these
    are not known."""
    one = held(seen, "" if len(seen.recording.streams) == 1 else seen.recording.attention[0].name)
    if not one.attention.opens or one.attention.query != one.attention.key:
        raise Untestable(CLOSED)
    x = entering(seen.recording, one.attention, one.layer)
    if x is None:
        raise Untestable("This model does not show what its heads read.")
    return one, x


def heads(seen: TourContext) -> StepResult:
    """Every head of the held layer: how far it looks, and how much of what the layer writes at the
    word is its; the number is the farthest. A head that hardly looks at words has no distance."""
    recording = seen.recording
    one = held(seen, "" if len(recording.streams) == 1 else recording.attention[0].name)
    pattern = one.attention.pattern[one.layer].astype(np.float64)
    rows, keys = words_of(one.rows), words_of(one.keys)
    apart = np.abs(np.arange(len(rows))[:, None] - np.arange(len(keys)))
    among = pattern * (rows[:, None] & keys[None, :])
    given = among.sum(axis=(1, 2))
    tells = given >= FAINT * max(rows.sum(), 1)
    if tells.sum() < 2:
        tells[:] = True
    far = (among * apart).sum(axis=(1, 2)) / np.maximum(given, 1e-12)
    wrote = _written(seen, one)
    best = int(np.where(tells, far, -1).argmax())
    near = int(np.where(tells, far, np.inf).argmin())
    made = tuple(
        BarRow(
            f"head {head}",
            (float(far[head] * tells[head]), *(() if wrote is None else (float(wrote[head]),))),
            (
                f"{far[head]:.1f}" if tells[head] else "–",
                *(() if wrote is None else (percent(wrote[head]),)),
            ),
            on=head == best,
        )
        for head in map(int, window(len(pattern), (best, near), MOST_HEADS))
    )
    query = one.words[0]
    columns = ("tokens away, on average", f"share of what is written at “{query}”")
    bars = Bars(
        title=f"The {len(pattern)} heads of layer {one.layer}",
        note=left_out(len(made), len(pattern), "heads"),
        columns=columns[: len(made[0].values)],
        rows=made,
        mark=([row.on for row in made].index(True), 0),
    )
    words = {
        "best": str(best),
        "near": str(near),
        "shortest": f"{far[near]:.1f}",
        "nearest": "at the token itself" if far[near] < 0.05 else f"{far[near]:.1f} tokens away",
    }
    number = f"{far[best]:.1f}"
    variant = "alike" if far[best] < APART * far[near] else ""
    said = words | _named(one)
    return StepResult(number, float(far[best]), (bars,), said, one.address(), variant)


def _written(seen: TourContext, one: FollowedPair) -> np.ndarray | None:
    """The length of each head's part of what the layer's attention writes at the query, of all
    lengths together; None where W_O is not known."""
    if not one.attention.opens:
        return None
    try:
        w_o = seen.evidence.outputs()[one.attention.name][0][one.layer].astype(np.float64)
    except (ValueError, AttributeError, LookupError):
        return None
    weights = one.attention.pattern[one.layer, :, one.query].astype(np.float64)
    z = np.einsum("hk,hkd->hd", weights, one.attention.v[one.layer].astype(np.float64))
    lengths = np.linalg.norm(np.einsum("hd,hdm->hm", z, w_o), axis=-1)
    return lengths / max(float(lengths.sum()), 1e-12)


def kinds(seen: TourContext) -> StepResult:
    """Who may look at whom: with and without a causal mask, and between two texts; the number is
    the share of attention to later tokens where nothing is masked."""
    recording = seen.recording
    own = opened(recording)[0]
    one = held(seen, own.name)
    allowed = np.ones_like(own.allowed)
    free = softmax(own.scores, allowed)
    rows = words_of(one.rows)
    later = np.triu(allowed, 1)
    ahead = float((free * later).sum(axis=-1)[..., rows].mean())
    at = window(len(one.rows.tokens), (one.query, one.key), 8)
    labels = tuple(one.rows.tokens[each] for each in at)
    number = percent(ahead)
    causal = np.tril(allowed) if own.allowed.all() else own.allowed
    variant = "" if own.allowed.all() else "decoder"
    masked = softmax(own.scores[one.layer, one.head], causal)
    if len(recording.attention) > 1:
        causal, variant = next(
            (each.allowed, "both") for each in recording.attention if each.key == "decoder"
        )
        panels = _three(recording, number)
    else:
        cut = np.ix_(at, at)
        panels = (
            Grid(
                f"no mask: {number} looks ahead",
                left_out(len(at), len(one.rows.tokens)),
                labels,
                labels,
                matrix(free[one.layer, one.head][cut]),
            ),
            Grid(
                "masked: 0% looks ahead",
                left_out(len(at), len(one.rows.tokens)),
                labels,
                labels,
                matrix(masked[cut], causal[cut].astype(bool)),
                bare=True,
            ),
        )
    words = {"n": str(len(causal)), "cells": str(int((~causal.astype(bool)).sum()))}
    return StepResult(number, ahead, panels, words, one.address(), variant)


def _three(recording: Recording, number: str) -> tuple[Grid, ...]:
    """The three attentions of an encoder-decoder, each the mean of its heads."""
    titles = {
        "encoder self": f"encoder: {number} looks ahead",
        "decoder self": "decoder: masked, 0% ahead",
        "cross": "cross: the source",
    }
    made = []
    for each in recording.attention:
        rows, keys = (recording.stream(name).tokens for name in (each.query, each.key))
        i, j = window(len(rows), (0,), 6), window(len(keys), (0,), 6)
        mean = each.pattern.mean(axis=(0, 1), dtype=np.float64)[np.ix_(i, j)]
        made.append(
            Grid(
                titles.get(each.name, each.name),
                left_out(len(i), len(rows)),
                tuple(rows[at] for at in i),
                tuple(keys[at] for at in j),
                matrix(mean, each.allowed[np.ix_(i, j)]),
                float(mean.max()),
            )
        )
    return tuple(made)


PIZZA = "I love to eat pizza."


def pizza(seen: TourContext) -> StepResult:
    """The note's own sentence in this model, beside what the note says of it; the number is what
    its words give themselves."""
    recording, at = splits_into_words(seen)
    own, stream = recording.attention[0], recording.streams[0]
    mean = own.pattern.mean(axis=(0, 1), dtype=np.float64)
    labels = tuple(stream.tokens[each] for each in at)
    cut = mean[np.ix_(at, at)]
    value = float(np.diagonal(cut).mean())
    number = fixed(value)
    most = int(np.diagonal(cut).argmax())
    here = Grid(
        f"measured: on average {number} on itself",
        f"Mean of {own.pattern.shape[0] * own.pattern.shape[1]} heads; the rest of each row "
        "goes to special tokens and the full stop.",
        labels,
        labels,
        matrix(cut),
        1.0,
        marks=tuple((each, each, fixed(cut[each, each])) for each in range(5)),
    )
    said = np.full((5, 5), np.nan)
    np.fill_diagonal(said, 0.35)
    said[4, 4], said[4, 3] = 0.7, 0.5
    there = Grid(
        "the note: most on itself",
        "Drawn from the note’s words, which give no numbers: “approximation only”. Hatched: "
        "it says nothing.",
        labels,
        labels,
        matrix(said),
        1.0,
        marks=tuple((each, each, "most") for each in range(4)) + ((4, 4, "top"), (4, 3, "strong")),
        bare=True,
    )
    special = float(mean[np.ix_(at, np.flatnonzero(stream.special))].sum(axis=1).mean())
    words = {"most": labels[most], "special": percent(special)}
    return StepResult(
        number, value, (here, there), words, (("text", PIZZA), ("token", ""), ("source", ""))
    )


def splits_into_words(seen: TourContext) -> tuple[Recording, np.ndarray]:
    """The note's sentence as this model reads it, and the places of its five words. Raises
    Untestable where these are not tokens."""
    recording = seen.evidence.again("", PIZZA, None)
    tokens = recording.streams[0].tokens
    at = np.flatnonzero(words_of(recording.streams[0]))
    if [tokens[each].strip().lower() for each in at] != PIZZA.lower().strip(".").split():
        raise Untestable("This model splits the note’s five words into other tokens.")
    return recording, at


# Steps of the tour about what surrounds attention: the two stages, the FFN, residual connections,
# and LayerNorm.

MOST_UNITS = 8  # of an FFN that are written out
MOST_DIALS = 9
MOST_LAYERS = 4  # in which a word is exchanged
STILL = 5e-4  # of a length: a smaller change is written as 0%


def stages(seen: TourContext) -> StepResult:
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
        BarRow(
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
    return StepResult(share(attention[best]), float(attention[best]), (bars,), words)


def exchangeable(seen: TourContext) -> np.ndarray:
    """The places of the text's tokens, whose vectors can be exchanged. Raises Untestable where they
    cannot, TooShort for fewer than two."""
    stream = seen.recording.streams[0]
    places = text_of(stream)
    enough(len(places), "tokens", 2)
    seen.can(PatchSite)
    for part in ("attn", "ffn"):
        state_before(stream, 0, part)
    return places


def _changed(seen: TourContext, stream: Stream, layer: int, place: int, part: str) -> np.ndarray:
    """By how much of its length what a part of a layer writes at each token changes, when one
    token's vector before it is another, (token)."""
    site, wrote = state_before(stream, layer, part), f"{layer}.{part}.wrote"
    changed = seen.evidence.again(patched(another(stream, place), site, place), "", None)
    here, there = (residual.at(each, wrote) for each in (stream, changed.stream(stream.name)))
    size = np.maximum(np.linalg.norm(here, axis=1), 1e-12)
    return np.linalg.norm(there - here, axis=1) / size


def ffn(seen: TourContext) -> StepResult:
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
            BarRow("above zero", (float(above),), (number,), on=True),
            BarRow("zero or below", (float(units - above),), (str(units - above),)),
        ),
        mark=(0, 0),
    )
    rows = tuple(
        BarRow(f"unit {unit}", (float(lengths[unit]),), (towards[at],))
        for at, unit in enumerate(best)
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
    return StepResult(number, float(above), (counted, strongest), words, address, variant)


def opens_its_ffn(seen: TourContext) -> None:
    """Raises Untestable where the inside of an FFN cannot be seen."""
    stream = seen.recording.streams[-1]
    token = word_held(seen, stream)
    if not any(each.place == "ffn" for each in residual.sublayers(stream)):
        raise Untestable("This model does not show what its FFN reads and writes.")
    try:
        seen.inside(stream.name, 0, token)
    except (ValueError, AttributeError) as error:
        raise Untestable(f"{LACKS}.") from error


def _towards(seen: TourContext, writes: np.ndarray) -> list[str]:
    """The two words of the vocabulary that each written vector points to most."""
    try:
        ids, _ = seen.nearest(writes, 2)
    except (ValueError, AttributeError):
        return [""] * len(writes)
    return [", ".join(seen.labels(map(int, row))) for row in ids]


def deep(seen: TourContext) -> StepResult:
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
    return StepResult(number, float(off[0]), (curves,), words)


def sphere(seen: TourContext) -> StepResult:
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
    return StepResult(number, turned[best], (panel,), words, address, "" if post else "pre")


NAMES = {"attn": "attention", "cross": "cross", "ffn": "FFN"}


# The tour's step on what changed since the paper: today's parts put into this model one at a
# time, and how far its words' vectors move.

# What models of today have, as an edit of an address.
CHANGES = {
    "RMSNorm for LayerNorm": "OtherNorm:rms:",
    "FFN beside attention": "SideBySide:",
    "rotary positions": "OtherPositions:rotary",
    "a window of near tokens": "Window:4",
    "one key and value for all heads": "SharedKeys:1",
}
KINDS = (OtherNorm, SideBySide, OtherPositions, Window, SharedKeys)


def since(seen: TourContext) -> StepResult:
    """How far the last vectors of the text's words move with each change, in the mean, of their
    length; the number is the largest. What the model has already is left out."""
    stream = seen.recording.streams[-1]
    text = changeable(seen)
    moved = {}
    for name, edit in CHANGES.items():
        try:
            other = seen.evidence.again(edit, "", None).stream(stream.name)
        except ValueError:  # it has this already, or runs in its own code
            continue
        far = _moved(stream, other, text)
        if far:
            moved[name] = far
    if not moved:
        raise Untestable("This model has these parts already, or runs in its own code.")
    most = max(moved, key=lambda name: moved[name])
    rows = tuple(
        BarRow(name, (far,), (share(far),), on=name == most) for name, far in moved.items()
    )
    bars = Bars(
        title="How far the last vectors move when a part is exchanged after training",
        columns=("moved",),
        rows=rows,
        mark=(list(moved).index(most), 0),
        shared=True,
        wide=True,
    )
    words = {"most": most, "least": min(moved, key=lambda name: moved[name])}
    address = (("edits", CHANGES[most]),)
    variant = "single" if len(moved) == 1 else ""
    return StepResult(share(moved[most]), moved[most], (bars,), words, address, variant)


def changeable(seen: TourContext) -> np.ndarray:
    """The places of the text. Raises Untestable without words, and where no part can be
    exchanged."""
    if not any(issubclass(kind, seen.edits) for kind in KINDS):
        raise Untestable("This model runs in its own code, so its parts cannot be exchanged.")
    return text_of(seen.recording.streams[-1])


def _moved(one: Stream, other: Stream, text: np.ndarray) -> float:
    """The mean distance of last vectors, of their length."""
    a, b = (residual.at(each, each.sites[-1])[text] for each in (one, other))
    return float((np.linalg.norm(a - b, axis=-1) / np.linalg.norm(a, axis=-1)).mean())


# Steps of the tour about the beginning: what came before attention, what a word's vector is made
# of, and what order is.

DRAWN = 64  # components of a vector that a strip shows
MOST_SHUFFLES = 16  # drawn, to find one that moves two words
WORD_STILL = 1e-3  # of a vector's length: what moves by less has not moved


def before(seen: TourContext) -> StepResult:
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
            BarRow("a recurrent network", (float(steps),), (str(steps),)),
            BarRow("attention", (1.0,), ("1",)),
        ),
    )
    words = {"first": first, "last": last, "n": str(len(places)), "width": str(WIDTH)}
    return StepResult(number, float(left[-1]), (curves, bars), words)


def between_words(stream: Stream) -> np.ndarray:
    """The places from the first word of a text to its last one. Raises TooShort for one place."""
    places, words = text_of(stream), np.flatnonzero(words_of(stream))
    places = places[(places >= words[0]) & (places <= words[-1])]
    enough(len(places), "tokens", 2)
    return places


def embed(seen: TourContext) -> StepResult:
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
    return StepResult(number, length, (drawn,), words, (("token", str(token)),), variant)


def waves(seen: TourContext) -> StepResult:
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
    return StepResult(made[0].end, turns, (curves,), words)


def sinusoids(seen: TourContext) -> None:
    """Raises Untestable for a text without words and a model that does not add sinusoids."""
    stream = seen.recording.streams[0]
    text_of(stream)
    if "pos.wrote" not in stream.sites or positions.off_formula(stream) > positions.SAME:
        raise Untestable("This model does not add sinusoids, so there are no waves to show.")


def order(seen: TourContext) -> StepResult:
    """How far each word's last vector moves when the words are read in another order, with
    positions and without; the number is the largest with positions."""
    recording, again = seen.recording, seen.evidence.again
    stream = recording.streams[0]
    another_order(seen)
    free = "WithoutPositions" + (",WithoutMask" if stream.name == "decoder" else "")
    for seed in range(1, MOST_SHUFFLES + 1):
        shuffle = f"ShuffleTokens:{seed}"
        with_ = _moved_word(recording, again(shuffle, "", None), stream)
        if len(with_) >= 2:
            break
    enough(len(with_), "words that a shuffle moves", 2)
    without = _moved_word(again(free, "", None), again(f"{free},{shuffle}", "", None), stream)
    if not max(without.values()) < WORD_STILL < max(with_.values()):
        raise Untestable("This model knows the order of words elsewhere than in its positions.")
    spoken = words_of(stream)
    best = max(with_, key=lambda place: (bool(spoken[place]), with_[place]))
    shown = window(len(with_), [list(with_).index(best)], 11)
    places = [list(with_)[at] for at in shown]
    rows = tuple(
        BarRow(
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
    return StepResult(share(with_[best]), with_[best], (bars,), words)


def another_order(seen: TourContext) -> None:
    """Raises Untestable where there is no other order of the words, or none can be tried."""
    stream = seen.recording.streams[0]
    text_of(stream)
    if len({int(each) for each in stream.ids[~stream.special]}) < 2:
        raise Untestable("All words of this text are the same, so there is no other order.")
    seen.can(ShuffleTokens, WithoutPositions)


def _moved_word(one: Recording, other: Recording, stream: Stream) -> dict[int, float]:
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


MEASURES: dict[str, Callable[[TourContext], StepResult]] = {
    "before": before,
    "embed": embed,
    "waves": waves,
    "order": order,
    "qkv": query_key_value,
    "scale": scale,
    "match": match,
    "lookup": lookup,
    "kinds": kinds,
    "heads": heads,
    "stages": stages,
    "ffn": ffn,
    "deep": deep,
    "sphere": sphere,
    "words": words,
    "chain": chain,
    "loops": loops,
    "since": since,
    "pizza": pizza,
}


def _pair(seen: TourContext) -> object:
    return held(seen)


def _sentence(seen: TourContext) -> object:
    return text_of(seen.recording.streams[0])


def _word(seen: TourContext) -> object:
    return word_held(seen, seen.recording.streams[-1])


# Cheap checks that raise Untestable where a step has nothing to show.
NEEDS: dict[str, tuple[Callable[[TourContext], object], ...]] = {
    "before": (lambda seen: between_words(seen.recording.streams[0]),),
    "embed": (_sentence, _word),
    "waves": (sinusoids,),
    "order": (another_order,),
    "qkv": (_pair, lambda seen: opened(seen.recording)),
    "scale": (_sentence, lambda seen: opened(seen.recording)),
    "match": (entered,),
    "lookup": (_pair,),
    "kinds": (_pair, lambda seen: opened(seen.recording)),
    "heads": (_pair,),
    "stages": (exchangeable,),
    "ffn": (opens_its_ffn,),
    "deep": (_sentence,),
    "sphere": (_word, lambda seen: layers_of(seen.recording.streams[-1])),
    "words": (place_read,),
    "chain": (says_next,),
    "loops": (_sentence, lambda seen: masked(seen.recording)),
    "since": (changeable,),
    "pizza": (splits_into_words,),
}


def possible(seen: TourContext, ids: Iterable[str]) -> tuple[str, ...]:
    """Those of the steps that have something to show of this text and model."""
    return tuple(each for each in ids if not lacking(seen, each))


def lacking(seen: TourContext, id: str) -> str:
    """Why a step has nothing to show, "" where it has."""
    try:
        for need in NEEDS[id]:
            need(seen)
    except Untestable as reason:
        return str(reason)
    return ""
