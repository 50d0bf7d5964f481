"""The tour's steps: what each shows of the sentence and model on screen, a function a step, by the
id that it has in tour.toml, and what each needs to have something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis import anatomy, positions, residual
from explorer.analysis.figures import (
    BarRow,
    Bars,
    Box,
    Chart,
    Dials,
    Figure,
    Ladder,
    Links,
    Loops,
    Matrix,
    Rotation,
    Rung,
    Series,
    Strip,
    Strips,
    matrix,
    numbers,
    share,
    truncation_note,
    window,
)
from explorer.analysis.formatting import (
    enough_digits,
    fixed,
    hundredths,
    percent,
    plural,
    power,
    power_of_e,
)
from explorer.analysis.gradients import N_NETWORKS, NETWORK_WIDTH, recurrent_gradient
from explorer.analysis.head_naming import reach
from explorer.analysis.measure import (
    LACKS,
    NO_QKV,
    Measure,
    MeasureContext,
    Untestable,
    attention_with_qkv,
    causal_attention,
    layers_of,
    require_count,
    require_shuffle,
    state_before,
    text_places,
    with_other_vector,
)
from explorer.analysis.positions import match_tokens
from explorer.analysis.predictions import first_piece
from explorer.analysis.soft_lookup import (
    attention_input,
    model_variance,
    random_variance,
    scoring_variants,
    tempered_softmax,
)
from explorer.analysis.word_classes import is_word
from explorer.text.templates import sentences
from models.edits import (
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
from models.results import Lens, WholeWord

WORDS = sentences("tour", "figures")

REASONS = sentences("tour", "untestable")

NO_WORD = REASONS("no_word")


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
        """The weight of the query on the key."""
        return float(self.attention.pattern[self.layer, self.head, self.query, self.key])

    @property
    def words(self) -> tuple[str, str]:
        """The labels of the two tokens."""
        return self.rows.tokens[self.query], self.keys.tokens[self.key]

    def measure(
        self,
        value: float,
        text: str,
        figures: tuple[Figure, ...],
        slots: Mapping[str, object] | None = None,
        variant: str = "",
    ) -> Measure:
        """A measure of the pair: its sentence names the pair and its head, and its address shows
        them on the Attention page and on Anatomy."""
        place = {
            "layer": str(self.layer),
            "head": str(self.head),
            "token": str(self.query),
            "source": "",
            "anatomy_cell": f"{self.query}.{self.key}",
        }
        first = self.attention.name in ("self", "encoder self")
        address = (("attention", "" if first else self.attention.name), *place.items())
        query, key = self.words
        named = {"query": query, "key": key, "layer": place["layer"], "head": place["head"]}
        return Measure(
            value, text, named | dict(slots or {}), variant, figures=figures, address=address
        )


def followed_pair(context: MeasureContext, attention_name: str = "") -> FollowedPair:
    """The strongest finding's pair where its key gets most of the query's attention, in the
    attention `attention_name` where that is named. Else of all words that attend to another word
    most the one that does so most; without any the largest weight between two different words.
    Raises Untestable for a text without two words."""
    recording, finding = context.recording, context.strongest_finding()
    if not recording.attention:
        raise Untestable(REASONS("no_attention"))
    if (
        finding is not None
        and finding.query >= 0
        and finding.keys
        and attention_name in ("", finding.attention)
    ):
        attention = next(each for each in recording.attention if each.name == finding.attention)
        key = int(finding.keys[0])
        if attention.pattern[finding.layer, finding.head, finding.query].argmax() == key:
            return _make_pair(recording, attention, finding.layer, finding.head, finding.query, key)
    attention = next(
        (one for one in recording.attention if one.name == attention_name), recording.attention[0]
    )
    rows, keys = (word_mask(recording.stream(each)) for each in (attention.query, attention.key))
    allowed_pairs = attention.allowed & rows[:, None] & keys[None, :]
    if attention.query == attention.key:
        allowed_pairs &= ~np.eye(len(rows), dtype=bool)
    if not allowed_pairs.any():
        raise Untestable(NO_WORD)
    weights = np.where(allowed_pairs[:, None], attention.pattern, -1.0)
    leading = weights == attention.pattern.max(axis=-1, keepdims=True)
    if leading.any():
        weights = np.where(leading, weights, -1.0)
    layer, head, query, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    return _make_pair(recording, attention, layer, head, query, key)


def _make_pair(
    recording: Recording, attention: Attention, layer: int, head: int, query: int, key: int
) -> FollowedPair:
    rows, keys = recording.stream(attention.query), recording.stream(attention.key)
    return FollowedPair(attention, layer, head, query, key, rows, keys)


def word_mask(stream: Stream) -> np.ndarray:
    """Mask of the tokens that are words of the text, (token) bool."""
    return np.array([is_word(token) for token in stream.tokens]) & ~stream.special


def followed_word(context: MeasureContext, stream: Stream) -> int:
    """The word that a step about one token follows: the finding's, else the last word. Raises
    Untestable for a text without one."""
    places = np.flatnonzero(word_mask(stream))
    if not len(places):
        raise Untestable(NO_WORD)
    finding = context.strongest_finding()
    if finding is not None and finding.query in places:
        attention = next(
            each for each in context.recording.attention if each.name == finding.attention
        )
        if attention.query == stream.name:
            return int(finding.query)
    return int(places[-1])


def text_tokens(stream: Stream) -> np.ndarray:
    """The places of the text's own tokens. Raises Untestable for a text without words."""
    if not word_mask(stream).any():
        raise Untestable(NO_WORD)
    return text_places(stream)


# Steps of the tour about what a model says: each block read in words, a text as a product, and
# the loops that write one.

MOST_RUNGS, MOST_ROWS = 9, 10


def words(context: MeasureContext) -> Measure:
    """The logit lens of each layer's vector. Of a decoder after its last word, of a translator at
    its last output, of an encoder at the followed word, which is masked. The number is the last
    layer's probability of its likeliest word."""
    stream = context.recording.streams[-1]
    token, is_hidden = predicted_place(context), stream.name != "decoder"
    word = stream.tokens[token]
    recording = context.recording
    if is_hidden:
        recording = context.rerun(f"HideToken:{token}", "", None)
        stream = recording.stream(stream.name)
    lens = context.lens(recording, stream.name)
    sites = [at for at, site in enumerate(lens.sites) if _ends_a_layer(lens.sites, at)]
    sites = sites[:1] + sites[-(MOST_RUNGS - 1) :] if len(sites) > MOST_RUNGS else sites
    words = {} if is_hidden else context.model.words_after(context.recording, token)
    rungs = [_rung(context, lens, (at, token), words) for at in sites]
    final = int(lens.final_id[token])
    first_sites = [at for at in sites if lens.top_ids[at, token, 0] == final]
    settled = next(
        at for at in first_sites if all(later in first_sites for later in sites[sites.index(at) :])
    )
    mask = stream.tokens[token]
    title = f"at {mask}, in place of “{word}”" if is_hidden else f"after “{word}”"
    ladder = Ladder(title=title, rungs=(*rungs[:-1], replace(rungs[-1], selected=True)))
    answer, value, number = rungs[-1].words[0]
    slots = {
        "answer": words[final].word if final in words else answer,
        "piece": words[final].pieces[0] if final in words else "",
        "settled": _site_label(lens.sites[settled]),
        "word": word,
        "mask": mask,
    }
    variant = "masked" if is_hidden else "piece" if final in words else ""
    return Measure(
        value, number, slots, variant, figures=(ladder,), address=(("token", str(token)),)
    )


def _rung(
    context: MeasureContext, lens: Lens, cell: tuple[int, int], words: Mapping[int, WholeWord]
) -> Rung:
    """The likeliest words of a (site, token); of those in `words` the first piece and the word."""
    ids = list(map(int, lens.top_ids[cell][:3]))
    labels = [
        first_piece(words[id]) if id in words else label
        for id, label in zip(ids, context.model.labels(ids))
    ]
    p = map(float, np.exp(lens.top_logprobs[cell][:3]))
    return Rung(
        _site_label(lens.sites[cell[0]]),
        tuple((label, each, percent(each)) for label, each in zip(labels, p)),
    )


def predicted_place(context: MeasureContext) -> int:
    """The place that the step on the readout shows: of a decoder the last one of the text where it
    predicts a word, else before a word of the text, the last such place."""
    stream, place = context.recording.streams[-1], readout_place(context)
    if len(context.recording.streams) > 1 or stream.name != "decoder":
        return place
    before_words = np.flatnonzero(word_mask(stream))[::-1] - 1
    for at in (place, *map(int, before_words[before_words >= 0])):
        (answer,) = context.model.labels([int(context.logits(stream.name, at).argmax())])
        if is_word(answer):
            return at
    return place


def readout_place(context: MeasureContext) -> int:
    """The place that a step on the readout looks at. Raises Untestable where none can be read."""
    context.require_readout()
    stream = context.recording.streams[-1]
    if stream.name != "decoder":
        context.require_edits(HideToken)
        return followed_word(context, stream)
    if not word_mask(stream).any():
        raise Untestable(NO_WORD)
    two_streams = len(context.recording.streams) > 1  # it says the end after its last word
    return int(np.flatnonzero(word_mask(stream))[-1]) - 1 if two_streams else len(stream.tokens) - 1


def _ends_a_layer(sites: tuple[str, ...], at: int) -> bool:
    """True for the beginning, the end, and the last state of each layer."""
    layer = sites[at].partition(".")[0]
    next_layer = sites[at + 1].partition(".")[0] if at + 1 < len(sites) else ""
    return at == len(sites) - 1 or (
        next_layer != layer and (layer.isdecimal() or next_layer.isdecimal())
    )


def _site_label(site: str) -> str:
    layer = site.partition(".")[0]
    return (
        f"layer {layer}"
        if layer.isdecimal()
        else "the last layer"
        if site.startswith("final")
        else "the embedding"
    )


def chain(context: MeasureContext) -> Measure:
    """The probability of each next token given those before it, and their product, which is the
    number."""
    stream = context.recording.streams[-1]
    require_next_words(context)
    n = len(stream.tokens)
    logprobs = _token_logprobs(context, stream)
    total = float(logprobs.sum())
    number = power_of_e(total, 2)
    shown = tuple(float(p) for p in np.exp(logprobs[:MOST_ROWS]))
    texts = tuple(power(p, 2) for p in shown)
    if len(shown) == n - 1:  # all factors are there, and make the product that is written
        texts = enough_digits(number, lambda *all: float(np.prod(all)), *shown, write=power)
    rows = [
        BarRow(stream.tokens[at + 1], (p,), (text,))
        for at, (p, text) in enumerate(zip(shown, texts))
    ]
    rows.append(BarRow("product of all", (0.0,), (number,), selected=True))
    bars = Bars(
        title="p(next | previous tokens)",
        note=truncation_note(len(rows) - 1, n - 1, WORDS("product")),
        columns=("",),
        rows=tuple(rows),
        mark=(len(rows) - 1, 0),
    )
    slots = {
        "n": str(n - 1),
        "first": stream.tokens[0],
        "second": stream.tokens[1],
    }
    return Measure(total, number, slots, figures=(bars,))


def require_next_words(context: MeasureContext) -> None:
    """Raises Untestable for a model that does not say next words, TooShort for fewer than two."""
    stream = context.recording.streams[-1]
    if stream.name != "decoder" or not word_mask(stream).any():
        raise Untestable(REASONS("no_next_word"))
    context.require_readout()
    require_count(len(stream.tokens), "tokens", 3)


def _token_logprobs(context: MeasureContext, stream: Stream) -> np.ndarray:
    """ln p(token i + 1 | tokens to i), (token - 1), float64."""
    logprobs = []
    for at in range(len(stream.tokens) - 1):
        scores = context.logits(stream.name, at).astype(np.float64)
        top = scores.max()
        logprobs.append(scores[int(stream.ids[at + 1])] - top - np.log(np.exp(scores - top).sum()))
    return np.array(logprobs)


def loops(context: MeasureContext) -> Measure:
    """Generation as nested loops, with the KV cache. The number is that of stored values after this
    text."""
    model, stream = context.recording.model, context.recording.streams[-1]
    attention = causal_attention(context.recording)[0]
    n, layers, heads = len(stream.tokens), attention.pattern.shape[0], attention.pattern.shape[1]
    key_heads = context.capabilities.key_heads or heads
    stored = 2 * n * layers * key_heads * model.d_head
    number = f"{stored:,}"
    pairs, n_scores = int(attention.allowed[0].sum()), int(attention.allowed.sum()) * heads
    cross = any(one.query != one.key for one in context.recording.attention)
    steps = [
        Box(WORDS("step_query"), plural(heads, "query", "queries")),
        Box(WORDS("step_key"), WORDS("keys_and_values", n=key_heads, d=model.d_head)),
        Box(
            WORDS("step_store"),
            WORDS("stored", n=n, layers=layers, heads=key_heads, d=model.d_head, total=number),
            selected=True,
        ),
        Box(
            WORDS("step_compare"),
            WORDS("scores", pairs=pairs, layers=layers, heads=heads, n=n_scores),
        ),
        *(
            [
                Box(
                    WORDS("step_source"),
                    f"{len(context.recording.streams[0].tokens)} stored keys",
                )
            ]
            if cross
            else []
        ),
        Box(WORDS("step_add")),
    ]
    block = Box("for each layer", f"{layers} times", tuple(steps))
    token = Box(
        "for each token",
        f"{n} times",
        (Box("take its embedding"), block, Box("predict the next token")),
    )
    n_without_cache = n * (n + 1) // 2
    slots = {
        "n": str(n),
        "layers": str(layers),
        "without": f"{n_without_cache:,}",
        "whose": "the decoder’s own" if cross else "the",
    }
    return Measure(float(stored), number, slots, figures=(Loops(boxes=(token,)),))


# Steps of the tour about attention: how a weight is made, and who looks at whom.

MOST_KEYS = 9  # of a softmax that is written out
MOST_HEADS = 12  # of a layer that are written out
REACH_RATIO = 1.5  # times: heads that look as far as this of each other look about equally far


def qkv(context: MeasureContext) -> Measure:
    """One row of a softmax: q . k, scaled, and as weights; the number is the weight of the pair."""
    pair = followed_pair(context)
    if not pair.attention.opens:
        raise Untestable(NO_QKV)
    at = pair.layer, pair.head, pair.query
    allowed = pair.attention.allowed[pair.layer, pair.query]
    scores = pair.attention.scores[at].astype(np.float64)
    products = pair.attention.k[at[:2]].astype(np.float64) @ pair.attention.q[at]
    weights = pair.attention.pattern[at].astype(np.float64)
    best = np.argsort(-np.where(allowed, weights, -1.0), kind="stable")[: allowed.sum()]
    if pair.key not in best[:MOST_KEYS]:
        best = np.array([pair.key, *best[best != pair.key]])
    chosen = np.sort(best[:MOST_KEYS])
    rows = tuple(
        BarRow(
            pair.keys.tokens[key],
            (float(products[key]), float(scores[key]), float(weights[key])),
            (
                fixed(products[key], 1),
                fixed(scores[key], 1),
                fixed(weights[key]) if key == pair.key else hundredths(weights[key]),
            ),
            selected=key == pair.key,
        )
        for key in map(int, chosen)
    )
    mark = int(np.flatnonzero(chosen == pair.key)[0]), 2
    query, key = pair.words
    width = pair.attention.q.shape[-1]
    usual = np.isclose(pair.attention.scale[pair.layer], width**-0.5)
    divided = f"÷ √{width}" if usual else "scaled"
    bars = Bars(
        title=WORDS("query_and_keys", word=query),
        note=truncation_note(len(chosen), int(allowed.sum()), "keys, the strongest"),
        columns=("q · k", divided, "softmax"),
        rows=rows,
        mark=mark,
    )
    return pair.measure(pair.weight, fixed(pair.weight), (bars,))


def lookup(context: MeasureContext) -> Measure:
    """The attention pattern of the selected head. The number is the count of words between the
    pair."""
    pair = followed_pair(context)
    rows = window(len(pair.rows.tokens), (pair.query, pair.key))
    same = pair.attention.query == pair.attention.key
    keys = rows if same else window(len(pair.keys.tokens), (pair.key,))
    pattern = pair.attention.pattern[pair.layer, pair.head].astype(np.float64)
    weights = matrix(
        pattern[np.ix_(rows, keys)], pair.attention.allowed[pair.layer][np.ix_(rows, keys)]
    )
    number = fixed(pair.weight)
    lines = Links(
        title=f"Layer {pair.layer}, head {pair.head}",
        note=truncation_note(len(rows), len(pair.rows.tokens)),
        left=tuple(pair.rows.tokens[at] for at in rows),
        right=tuple(pair.keys.tokens[at] for at in keys),
        sides=("query", "key"),
        weights=weights,
        selected=int(np.flatnonzero(rows == pair.query)[0]),
        mark=(int(np.flatnonzero(keys == pair.key)[0]), number),
    )
    distance = (
        plural(abs(pair.query - pair.key), "token") + " away" if same else "in the other text"
    )
    return pair.measure(pair.weight, number, (lines,), {"apart": distance})


def scale(context: MeasureContext) -> Measure:
    """Var(q . k) with the scale and without, of random vectors by their width and of this model's
    heads at theirs. The number is the latter without the scale."""
    attention = attention_with_qkv(context.recording)[0]
    text_tokens(context.recording.streams[0])
    random, own = random_variance(context.draw), model_variance(attention)
    (width,), root = own.widths, float(1 / attention.scale[0])
    if not np.allclose(attention.scale, attention.scale[0]):
        raise Untestable(REASONS("many_scales"))
    after = fixed(own.divided[0])
    (number,) = enough_digits(after, lambda variance: variance / root**2, own.variance[0], least=1)
    wide, at_width = numbers(random.widths), numbers((width,))
    named = (
        ("random", wide, random.variance, fixed(random.variance[-1], 0)),
        (WORDS("random_scaled"), wide, random.divided, fixed(random.divided[-1])),
        (WORDS("own_heads"), at_width, own.variance, number),
        (WORDS("own_heads_scaled"), at_width, own.divided, after),
    )
    curves = Chart(
        title=WORDS("variance"),
        series=tuple(
            Series(
                name,
                widths,
                numbers(values),
                end,
                main=end == number,
                shape="line" if len(widths) > 1 else "points",
            )
            for name, widths, values, end in named
        ),
        x_title=WORDS("width"),
        y_title="Var(q · k)",
        log_x=True,
        log_y=True,
        ticks=tuple((float(each), str(each)) for each in random.widths[::2]),
    )
    usual = np.isclose(root, np.sqrt(width))
    slots = {
        "root": f"√{width}" if usual else f"{root:g}",
        "square": f"{root**2:g}",
        "after": after,
        "scaled": fixed(own.scaled[0]),
        "raw": fixed(own.raw[0]),
    }
    variant = "unscaled" if np.isclose(root, 1) else ""
    return Measure(float(own.variance[0]), number, slots, variant, figures=(curves,))


def match(context: MeasureContext) -> Measure:
    """Three ways to score pairs: the vectors as they are, one matrix for both sides, two matrices;
    the number is the last one's asymmetry."""
    pair, x = pair_with_inputs(context)
    variants = scoring_variants(x, pair.attention, pair.layer, pair.head)
    visible = window(len(pair.rows.tokens), (pair.query, pair.key), 6)
    labels = tuple(pair.rows.tokens[each] for each in visible)
    row, column = (int(np.flatnonzero(visible == each)[0]) for each in (pair.query, pair.key))
    number = fixed(variants[-1].asymmetry)
    titles = (
        f"naive, x · x: {fixed(0.0, 0)}",
        "symmetric, Ux · Ux: 0",
        f"two matrices, q · k: {number}",
    )
    cut = np.ix_(visible, visible)
    high = max(float(np.abs(each.scores[cut]).max()) for each in variants) or 1.0
    grids: list[Matrix] = []
    for title, each in zip(titles, variants):
        scores = each.scores[cut]
        marks = ((row, column, ""), (column, row, "")) if row != column else ()
        grids.append(
            Matrix(
                title,
                "",
                labels,
                labels,
                matrix(scores),
                high=high,
                signed=True,
                marks=marks,
            )
        )
    forward_score, backward_score = (
        variants[-1].scores[pair.query, pair.key],
        variants[-1].scores[pair.key, pair.query],
    )
    slots = {"there": fixed(forward_score, 1), "back": fixed(backward_score, 1)}
    variant = "alike" if slots["there"] == slots["back"] else ""
    return pair.measure(variants[-1].asymmetry, number, tuple(grids), slots, variant)


def pair_with_inputs(context: MeasureContext) -> tuple[FollowedPair, np.ndarray]:
    """The pair within one text, and the vectors that its layer reads. Raises Untestable where these
    are not known."""
    pair = followed_pair(
        context, "" if len(context.recording.streams) == 1 else context.recording.attention[0].name
    )
    if not pair.attention.opens or pair.attention.query != pair.attention.key:
        raise Untestable(NO_QKV)
    x = attention_input(context.recording, pair.attention, pair.layer)
    if x is None:
        raise Untestable(REASONS("no_input"))
    return pair, x


def heads(context: MeasureContext) -> Measure:
    """Every head of the selected layer: its mean attention distance and its share of the layer's
    output at the word. The number is the largest distance. A head that hardly attends to words has
    no distance."""
    pair, distance = pair_with_distances(context)
    output_shares = _head_output_shares(context, pair)
    farthest, nearest = int(np.nanargmax(distance)), int(np.nanargmin(distance))
    bar_rows = tuple(
        BarRow(
            f"head {head}",
            (
                float(np.nan_to_num(distance[head])),
                *(() if output_shares is None else (float(output_shares[head]),)),
            ),
            (
                fixed(distance[head], 1),
                *(() if output_shares is None else (percent(output_shares[head]),)),
            ),
            selected=head == farthest,
        )
        for head in map(int, window(len(distance), (farthest, nearest), MOST_HEADS))
    )
    columns = ("mean distance, tokens", WORDS("share_of_output", word=pair.words[0]))
    bars = Bars(
        title=WORDS("heads_of_layer", n=len(distance), layer=pair.layer),
        note=truncation_note(len(bar_rows), len(distance), "heads"),
        columns=columns[: len(bar_rows[0].values)],
        rows=bar_rows,
        mark=([row.selected for row in bar_rows].index(True), 0),
    )
    far, near = float(distance[farthest]), float(distance[nearest])
    slots = {"best": str(farthest), "near": str(nearest), "shortest": fixed(near, 1)}
    variant = "alike" if far < REACH_RATIO * near else ""
    return pair.measure(far, fixed(far, 1), (bars,), slots, variant)


def pair_with_distances(context: MeasureContext) -> tuple[FollowedPair, np.ndarray]:
    """The pair within one text, and the mean attention distance of each head of its layer, as of
    `head_naming.reach`, (head). Where fewer than two heads of that layer have one, the pair is
    followed in the layer where most do. Raises Untestable where there is none."""
    recording = context.recording
    pair = followed_pair(
        context, "" if len(recording.streams) == 1 else recording.attention[0].name
    )
    distance = reach(recording, pair.attention)[0].astype(np.float64)
    n_known = np.isfinite(distance).sum(axis=1)
    layer = pair.layer if n_known[pair.layer] > 1 else int(n_known.argmax())
    if n_known[layer] < 2:
        raise Untestable(REASONS("no_distances"))
    return replace(pair, layer=layer), distance[layer]


def _head_output_shares(context: MeasureContext, pair: FollowedPair) -> np.ndarray | None:
    """The share of each head in what the layer's attention writes at the query, as of
    `anatomy.head_outputs`; None where W_O is not known."""
    if not pair.attention.opens:
        return None
    try:
        projection = context.outputs()[pair.attention.name]
    except (ValueError, AttributeError, LookupError):
        return None
    of = context.recording, pair.attention, pair.layer, pair.query
    outputs = anatomy.head_outputs(*of, projection)
    return None if outputs is None or np.isnan(outputs.shares).any() else outputs.shares[:-1]


def kinds(context: MeasureContext) -> Measure:
    """The three masks: with and without a causal mask, and between two texts. The number is the
    share of attention to later tokens without a mask."""
    recording = context.recording
    attention = attention_with_qkv(recording)[0]
    pair = followed_pair(context, attention.name)
    own = attention.allowed[pair.layer]
    allowed = np.ones_like(own)
    unmasked = tempered_softmax(attention.scores, allowed)
    rows = word_mask(pair.rows)
    later = np.triu(allowed, 1)
    ahead_share = float((unmasked * later).sum(axis=-1)[..., rows].mean())
    visible = window(len(pair.rows.tokens), (pair.query, pair.key), 8)
    labels = tuple(pair.rows.tokens[each] for each in visible)
    number = percent(ahead_share)
    causal = np.tril(allowed) if own.all() else own
    variant = "" if own.all() else "decoder"
    masked_pattern = tempered_softmax(attention.scores[pair.layer, pair.head], causal)
    if len(recording.attention) > 1:
        causal, variant = next(
            (each.allowed[0], "both") for each in recording.attention if each.key == "decoder"
        )
        panels = _three_attentions(recording, number)
    else:
        cut = np.ix_(visible, visible)
        panels = (
            Matrix(
                WORDS("no_mask", share=number),
                truncation_note(len(visible), len(pair.rows.tokens)),
                labels,
                labels,
                matrix(unmasked[pair.layer, pair.head][cut]),
            ),
            Matrix(
                WORDS("masked"),
                truncation_note(len(visible), len(pair.rows.tokens)),
                labels,
                labels,
                matrix(masked_pattern[cut], causal[cut].astype(bool)),
            ),
        )
    slots = {"n": str(len(causal)), "cells": str(int((~causal.astype(bool)).sum()))}
    return pair.measure(ahead_share, number, panels, slots, variant)


def _three_attentions(recording: Recording, number: str) -> tuple[Matrix, ...]:
    """The three attentions of an encoder-decoder, each the mean of its heads."""
    titles = {
        "encoder self": WORDS("encoder_later", share=number),
        "decoder self": WORDS("decoder_later"),
        "cross": "cross-attention",
    }
    grids = []
    for attention in recording.attention:
        rows, keys = (recording.stream(name).tokens for name in (attention.query, attention.key))
        i, j = window(len(rows), (0,), 6), window(len(keys), (0,), 6)
        mean = attention.pattern.mean(axis=(0, 1), dtype=np.float64)[np.ix_(i, j)]
        grids.append(
            Matrix(
                titles.get(attention.name, attention.name),
                truncation_note(len(i), len(rows)),
                tuple(rows[at] for at in i),
                tuple(keys[at] for at in j),
                matrix(mean, attention.reachable[np.ix_(i, j)]),
            )
        )
    high = max(float(np.nanmax(grid.values)) for grid in grids)
    return tuple(replace(grid, high=high) for grid in grids)


PIZZA = "I love to eat pizza."


def pizza(context: MeasureContext) -> Measure:
    """The note's own sentence in this model, beside the note's claim on it. The number is the
    weight of its words on themselves."""
    recording, places = read_pizza(context)
    attention, stream = recording.attention[0], recording.streams[0]
    mean = attention.pattern.mean(axis=(0, 1), dtype=np.float64)
    labels = tuple(stream.tokens[each] for each in places)
    cut = mean[np.ix_(places, places)]
    value = float(np.diagonal(cut).mean())
    number = fixed(value)
    most = int(np.diagonal(cut).argmax())
    measured_grid = Matrix(
        WORDS("pizza_measured", weight=number),
        WORDS("pizza_note", n=attention.pattern.shape[0] * attention.pattern.shape[1]),
        labels,
        labels,
        matrix(cut),
        marks=tuple((each, each, fixed(cut[each, each])) for each in range(5)),
    )
    note_matrix = np.full((5, 5), np.nan)
    np.fill_diagonal(note_matrix, 0.35)
    note_matrix[4, 4], note_matrix[4, 3] = 0.7, 0.5
    note_grid = Matrix(
        WORDS("pizza_of_notes"),
        WORDS("drawn_note"),
        labels,
        labels,
        matrix(note_matrix),
        marks=tuple((each, each, "most") for each in range(4)) + ((4, 4, "top"), (4, 3, "strong")),
        missing="not described",
    )
    special = float(mean[np.ix_(places, np.flatnonzero(stream.special))].sum(axis=1).mean())
    return Measure(
        value,
        number,
        {"most": labels[most], "special": percent(special)},
        figures=(measured_grid, note_grid),
        address=(("text", PIZZA), ("token", ""), ("source", "")),
    )


def read_pizza(context: MeasureContext) -> tuple[Recording, np.ndarray]:
    """The note's sentence as this model reads it, and the places of its five words. Raises
    Untestable where these are not tokens."""
    recording = context.rerun("", PIZZA, None)
    tokens = recording.streams[0].tokens
    places = np.flatnonzero(word_mask(recording.streams[0]))
    if [tokens[each].strip().lower() for each in places] != PIZZA.lower().strip(".").split():
        raise Untestable(REASONS("other_tokens"))
    return recording, places


# Steps of the tour about what surrounds attention: the two stages, the FFN, residual connections,
# and LayerNorm.

MOST_UNITS = 8  # of an FFN that are written out
MOST_DIALS = 9
MOST_LAYERS = 4  # in which a word is exchanged
SMALLEST_CHANGE = 5e-4  # of a length: a smaller change is written as 0%


def stages(context: MeasureContext) -> Measure:
    """One word's vector exchanged before attention, and before the FFN: how much each token's part
    then writes differently. The number is the largest change at another word."""
    stream = context.recording.streams[0]
    places = exchangeable_places(context)
    place = int(places[0]) if stream.name == "decoder" else followed_word(context, stream)
    others = np.delete(np.arange(len(stream.tokens)), place)
    others = others[~stream.special[others]]
    # Some layers rest on a special token altogether: the one of the first few where most is seen.
    changes_by_layer = [
        _output_change(context, stream, layer, place, "attn")
        for layer in range(min(context.recording.model.n_layer, MOST_LAYERS))
    ]
    layer = int(np.argmax([each[others].max() for each in changes_by_layer]))
    attention_change, ffn_change = (
        changes_by_layer[layer],
        _output_change(context, stream, layer, place, "ffn"),
    )
    best = int(others[attention_change[others].argmax()])
    if attention_change[best] < SMALLEST_CHANGE:
        raise Untestable(REASONS("no_change"))
    visible = window(len(stream.tokens), (place, best), 11)
    rows = tuple(
        BarRow(
            stream.tokens[at],
            (float(attention_change[at]), float(ffn_change[at])),
            (share(attention_change[at]), share(ffn_change[at])),
            selected=at in (best, place),
        )
        for at in map(int, visible)
    )
    bars = Bars(
        title=WORDS("replacing", word=stream.tokens[place], layer=layer),
        note=truncation_note(len(rows), len(stream.tokens)),
        columns=("stage 1: attention output", "stage 2: FFN output"),
        rows=rows,
        mark=(int(np.flatnonzero(visible == best)[0]), 0),
    )
    value = float(attention_change[best])
    slots = {
        "word": stream.tokens[place],
        "other": stream.tokens[best],
        "else": share(float(ffn_change[others].max())),
    }
    return Measure(value, share(value), slots, figures=(bars,))


def exchangeable_places(context: MeasureContext) -> np.ndarray:
    """The places of the text's tokens, whose vectors can be exchanged. Raises Untestable where they
    cannot, TooShort for fewer than two."""
    stream = context.recording.streams[0]
    places = text_tokens(stream)
    require_count(len(places), "tokens", 2)
    context.require_edits(PatchSite)
    for part in ("attn", "ffn"):
        state_before(stream, 0, part)
    return places


def _output_change(
    context: MeasureContext, stream: Stream, layer: int, place: int, part: str
) -> np.ndarray:
    """By how much of its length what a part of a layer writes at each token changes, when one
    token's vector before it is another, (token)."""
    site, wrote = state_before(stream, layer, part), f"{layer}.{part}.wrote"
    changed = with_other_vector(context, stream, place, site).stream(stream.name)
    output, changed_output = (residual.site_vectors(each, wrote) for each in (stream, changed))
    size = np.maximum(np.linalg.norm(output, axis=1), 1e-12)
    return np.linalg.norm(changed_output - output, axis=1) / size


def ffn(context: MeasureContext) -> Measure:
    """The hidden units of an FFN at the selected word, in the layer with the largest output there:
    those above zero, and the outputs of the strongest. The number is that of units above zero."""
    stream = context.recording.streams[-1]
    token = followed_word(context, stream)
    layer = residual.largest_ffn(stream, token)
    activations = context.ffn(stream.name, layer, token)
    silent = not np.any(activations.after[activations.before <= 0])
    summands = WORDS("plus_bias") if context.capabilities.ffn_biases else "these vectors"
    n_above, n_units = int((activations.before > 0).sum()), len(activations.before)
    lengths = np.linalg.norm(activations.writes, axis=1)
    best = np.argsort(-lengths, kind="stable")[:MOST_UNITS]
    nearest_words = _nearest_words(context, activations.writes[best])
    number = str(n_above)
    counts = Bars(
        title=WORDS("units", n=n_units, layer=layer),
        columns=("units",),
        rows=(
            BarRow("above zero", (float(n_above),), (number,), selected=True),
            BarRow("zero or below", (float(n_units - n_above),), (str(n_units - n_above),)),
        ),
        mark=(0, 0),
    )
    rows = tuple(
        BarRow(f"unit {unit}", (float(lengths[unit]),), (nearest_words[at],))
        for at, unit in enumerate(best)
    )
    strongest = Bars(
        title=WORDS("largest"),
        columns=("length",),
        rows=rows,
    )
    slots = {
        "word": stream.tokens[token],
        "units": str(n_units),
        "layer": str(layer),
        "sum": WORDS("sum_of_units", n=summands),
    }
    return Measure(
        float(n_above),
        number,
        slots,
        "" if silent else "smooth",
        figures=(counts, strongest),
        address=(("token", str(token)),),
    )


def require_ffn(context: MeasureContext) -> None:
    """Raises Untestable where the inside of an FFN cannot be seen."""
    stream = context.recording.streams[-1]
    token = followed_word(context, stream)
    if not any(each.place == "ffn" for each in residual.sublayers(stream)):
        raise Untestable(REASONS("no_ffn"))
    try:
        context.ffn(stream.name, 0, token)
    except (ValueError, AttributeError) as error:
        raise Untestable(LACKS) from error


def _nearest_words(context: MeasureContext, writes: np.ndarray) -> list[str]:
    """The two words of the vocabulary that each written vector points to most."""
    try:
        ids, _ = context.model.nearest(writes, 2)
    except (ValueError, AttributeError):
        return [""] * len(writes)
    return [", ".join(context.model.labels(map(int, row))) for row in ids]


def deep(context: MeasureContext) -> Measure:
    """The gradient through a deep random stack on this sentence, with residual connections and
    without; the number is what is left of it without them at the input."""
    stream = context.recording.streams[0]
    text_tokens(stream)
    stack = context.depth(stream.name)
    remaining = {way: norm / norm[-1] for way, norm in zip(stack.ways, stack.norm)}
    with_residuals, without_residuals = remaining["residual on"], remaining["residual off"]
    number = power(float(without_residuals[0]), 2)
    residual_label = power(float(with_residuals[0]), 2)
    layers = numbers(np.arange(stack.layers, -1, -1))
    curves = Chart(
        title=WORDS("depth", layers=stack.layers),
        note=WORDS("depth_note", n=stack.draws),
        series=(
            Series("with residuals", layers, numbers(with_residuals[::-1]), residual_label),
            Series(
                "without",
                layers,
                numbers(np.maximum(without_residuals[::-1], 1e-300)),
                number,
                main=True,
            ),
        ),
        x_title=WORDS("layers_back"),
        y_title="relative gradient norm",
        log_y=True,
        backwards=True,
    )
    slots = {"layers": str(stack.layers), "kept": residual_label}
    return Measure(float(without_residuals[0]), number, slots, figures=(curves,))


def sphere(context: MeasureContext) -> Measure:
    """The held word's vector turned by each sub-layer, and where the norm leaves it; the number is
    the largest turn."""
    stream = context.recording.streams[-1]
    token = followed_word(context, stream)
    sublayers = layers_of(stream)
    width = float(np.sqrt(stream.resid.shape[-1]))
    post = any(sublayer.after.endswith(".normed") for sublayer in sublayers)
    dials, lengths_after = [], []
    for sublayer in sublayers:
        before, total, after = (
            residual.site_vectors(stream, site)[token]
            for site in (sublayer.before, sublayer.total, sublayer.after)
        )
        lengths = [float(np.linalg.norm(vector)) for vector in (before, total, after)]
        lengths_after.append(lengths[2])
        full = width if post else max(lengths)
        half_angle, angle = (float(residual.degrees(before, each)) for each in (total, after))
        dials.append(
            Rotation(
                f"{sublayer.layer} · {NAMES.get(sublayer.place, sublayer.place)}",
                lengths[0] / full,
                (lengths[1] / full, half_angle),
                (lengths[2] / full, angle),
                f"{angle:.0f}°",
            )
        )
    best = int(np.nanargmax([each.after[1] for each in dials]))
    dials[best] = replace(dials[best], selected=True)
    chosen = tuple(dials[at] for at in window(len(dials), (best,), MOST_DIALS))
    note = truncation_note(len(chosen), len(dials), "rotations")
    name, radius = "circle_post" if post else "circle_pre", fixed(width, 0)
    around = WORDS(name, radius=radius, norm=context.norm)
    panel = Dials(
        title=WORDS("circle", word=stream.tokens[token]),
        note=f"{around} {note}." if note else around,
        dials=chosen,
    )
    slots = {
        "word": stream.tokens[token],
        "where": f"the {residual.PLACES[sublayers[best].place]} of layer {sublayers[best].layer}",
        "norm": context.norm,
        "short": fixed(min(lengths_after), 1),
        "long": fixed(max(lengths_after), 1),
        "radius": fixed(width, 1),
        "first": fixed(float(np.linalg.norm(stream.at(sublayers[0].before)[token])), 1),
        "last": fixed(lengths_after[-1], 1),
    }
    return Measure(
        dials[best].after[1],
        dials[best].text,
        slots,
        "" if post else "pre",
        figures=(panel,),
        address=(("token", str(token)),),
    )


NAMES = {"attn": "attention", "cross": "cross", "ffn": "FFN"}


# The tour's step on what changed since the paper: today's parts put into this model one at a
# time, and how far its words' vectors move.

# What models of today have, as an edit of an address.
CHANGES = {
    "RMSNorm for LayerNorm": "OtherNorm:rms:",
    "FFN beside attention": "SideBySide:",
    "rotary positions": "OtherPositions:rotary",
    WORDS("window"): "Window:4",
    WORDS("shared_keys"): "SharedKeys:1",
}
KINDS = (OtherNorm, SideBySide, OtherPositions, Window, SharedKeys)


def since(context: MeasureContext) -> Measure:
    """The effect of each change since the paper on the last vectors: the mean difference, as a
    share of their length. The number is the largest. Changes that the model has already are left
    out."""
    stream = context.recording.streams[-1]
    text = changeable_places(context)
    shifts = {}
    for name, edit in CHANGES.items():
        try:
            other = context.rerun(edit, "", None).stream(stream.name)
        except ValueError:  # it has this already, or runs in its own code
            continue
        shift = _mean_shift(stream, other, text)
        if shift:
            shifts[name] = shift
    if not shifts:
        raise Untestable(REASONS("no_parts"))
    most = max(shifts, key=lambda name: shifts[name])
    rows = tuple(
        BarRow(name, (shift,), (share(shift),), selected=name == most)
        for name, shift in shifts.items()
    )
    bars = Bars(
        title=WORDS("exchanged"),
        columns=("moved",),
        rows=rows,
        mark=(list(shifts).index(most), 0),
        shared=True,
    )
    return Measure(
        shifts[most],
        share(shifts[most]),
        {"most": most, "least": min(shifts, key=lambda name: shifts[name])},
        "single" if len(shifts) == 1 else "",
        figures=(bars,),
        address=(("edits", CHANGES[most]),),
    )


def changeable_places(context: MeasureContext) -> np.ndarray:
    """The places of the text. Raises Untestable without words, and where no part can be
    exchanged."""
    if not any(issubclass(kind, context.capabilities.edits) for kind in KINDS):
        raise Untestable(REASONS("own_code"))
    return text_tokens(context.recording.streams[-1])


def _mean_shift(stream: Stream, other: Stream, text: np.ndarray) -> float:
    """The mean distance of last vectors, of their length."""
    a, b = (residual.site_vectors(each, each.sites[-1])[text] for each in (stream, other))
    return float((np.linalg.norm(a - b, axis=-1) / np.linalg.norm(a, axis=-1)).mean())


# Steps of the tour about the beginning: what came before attention, what a word's vector is made
# of, and what order is.

N_COMPONENTS = 64  # components of a vector that a strip shows
MOST_SHUFFLES = 16  # drawn, to find one that moves two words
SMALLEST_SHIFT = 1e-3  # of a vector's length: what moves by less has not moved


def before(context: MeasureContext) -> Measure:
    """Gradients through an untrained recurrent network over the sentence, and path lengths there
    and along attention. The number is the gradient left at the first word."""
    stream = context.recording.streams[0]
    places = word_span(stream)
    remaining = recurrent_gradient(
        context.draw, residual.site_vectors(stream, stream.sites[0])[places]
    )
    steps_back = tuple(float(at) for at in range(len(places)))
    number = power(float(remaining[-1]), 2)
    last, first = stream.tokens[places[-1]], stream.tokens[places[0]]
    tick_step = max(1, -(-len(places) // 8))
    ticks = tuple(
        (float(at), stream.tokens[places[-1 - at]]) for at in range(0, len(places), tick_step)
    )
    curves = Chart(
        title=WORDS("back_to", last=last, first=first),
        note=WORDS("networks_note", n=N_NETWORKS),
        series=(
            Series(
                "a recurrent network", numbers(steps_back), numbers(remaining), number, main=True
            ),
        ),
        x_title="words back",
        y_title="relative gradient norm",
        log_y=True,
        ticks=ticks,
    )
    steps = len(places) - 1
    bars = Bars(
        title=WORDS("steps_between", last=last, first=first),
        columns=("",),
        rows=(
            BarRow("a recurrent network", (float(steps),), (str(steps),)),
            BarRow("attention", (1.0,), ("1",)),
        ),
    )
    slots = {"first": first, "last": last, "n": str(len(places)), "width": str(NETWORK_WIDTH)}
    return Measure(float(remaining[-1]), number, slots, figures=(curves, bars))


def word_span(stream: Stream) -> np.ndarray:
    """The places from the first word of a text to its last one. Raises TooShort for one place."""
    places, word_places = text_tokens(stream), np.flatnonzero(word_mask(stream))
    places = places[(places >= word_places[0]) & (places <= word_places[-1])]
    require_count(len(places), "tokens", 2)
    return places


def embed(context: MeasureContext) -> Measure:
    """A word's vector times the root of d_model, and its position; the number is the length of the
    first."""
    scale = context.model.embedding_scale()
    stream = context.recording.streams[-1 if scale is None else 0]
    token = followed_word(context, stream)
    word = residual.site_vectors(stream, stream.sites[0])[token]
    scale = scale or 1.0
    strips = []
    if scale != 1.0:
        strips.append((WORDS("embedding"), word / scale, ""))
    usual = np.isclose(scale, np.sqrt(len(word)))
    root = f"√{len(word)}" if usual else f"{scale:g}"
    scaled = WORDS("scaled_embedding", root=root) if scale != 1.0 else WORDS("embedding")
    strips.append((scaled, word, ""))
    if "pos.wrote" in stream.sites:
        strips.append((f"position {token}", residual.site_vectors(stream, "pos.wrote")[token], "+"))
        strips.append(("together", residual.site_vectors(stream, "embed+pos")[token], "="))
    high = float(max(np.abs(vector[:N_COMPONENTS]).max() for _, vector, _ in strips[-3:])) or 1.0
    length = float(np.linalg.norm(word))
    number = fixed(length, 1)
    (alone,) = enough_digits(number, lambda alone: alone * scale, length / scale, least=1)
    embedding_index = 1 if scale != 1.0 else 0
    figure = Strips(
        title=f"“{stream.tokens[token]}”",
        note=WORDS("vector_note", n=min(N_COMPONENTS, len(word)), of=len(word)),
        strips=tuple(
            Strip(
                label,
                vector[:N_COMPONENTS],
                number
                if index == embedding_index
                else alone
                if index == 0
                else fixed(float(np.linalg.norm(vector)), 1),
                sign,
                selected=index == embedding_index,
            )
            for index, (label, vector, sign) in enumerate(strips)
        ),
        high=high,
    )
    has_position = len(strips) > embedding_index + 1
    position_length = float(np.linalg.norm(strips[embedding_index + 1][1])) if has_position else 0.0
    variant = (
        ("" if has_position else "scaled_alone")
        if scale != 1.0
        else "unscaled"
        if has_position
        else "alone"
    )
    slots = {
        "word": stream.tokens[token],
        "root": root,
        "alone": alone,
        "position": fixed(position_length, 1),
    }
    return Measure(
        length, number, slots, variant, figures=(figure,), address=(("token", str(token)),)
    )


def waves(context: MeasureContext) -> Measure:
    """The fastest, a slow and the slowest pair of the sinusoids over this sentence; the number is
    how often the fastest turns."""
    stream = context.recording.streams[0]
    require_sinusoids(context)
    n, d = len(stream.tokens), stream.resid.shape[-1]
    pairs, series = (0, d // 8, d // 2 - 1), []
    for pair in pairs:
        wave = positions.wave(n, d, pair)
        turns = float(wave.angle[-1]) / (2 * np.pi)
        turns_label = f"{power(turns, 2) if turns >= 0.01 else hundredths(turns)} periods"
        name = f"pair {pair}"
        series.append(
            Series(name, numbers(wave.place), numbers(wave.fine_sine), turns_label, main=pair == 0)
        )
    turns = (n - 1) / (2 * np.pi)
    tick_step = max(1, -(-n // 9))
    curves = Chart(
        title="sine of each position",
        series=tuple(series),
        y_title="",
        x_title="position in the sentence",
        ticks=tuple((float(at), stream.tokens[at]) for at in range(0, n, tick_step)),
    )
    slots = {
        "n": str(n),
        "pairs": str(d // 2),
        "slowest": series[-1].end.replace("< ", "less than "),
    }
    return Measure(turns, series[0].end, slots, figures=(curves,))


def require_sinusoids(context: MeasureContext) -> None:
    """Raises Untestable for a text without words and a model that does not add sinusoids."""
    stream = context.recording.streams[0]
    text_tokens(stream)
    if (
        "pos.wrote" not in stream.sites
        or positions.formula_error(stream) > positions.FORMULA_TOLERANCE
    ):
        raise Untestable(REASONS("no_waves"))


def order(context: MeasureContext) -> Measure:
    """The movement of each word's last vector under another word order, with positions and without.
    The number is the largest with positions."""
    recording, rerun = context.recording, context.rerun
    stream = recording.streams[0]
    require_order(context)
    edits = "WithoutPositions" + (",WithoutMask" if stream.name == "decoder" else "")
    for seed in range(1, MOST_SHUFFLES + 1):
        shuffle = f"ShuffleTokens:{seed}"
        shifts = _word_shifts(recording, rerun(shuffle, "", None), stream)
        if len(shifts) >= 2:
            break
    require_count(len(shifts), "words that a shuffle moves", 2)
    shifts_without = _word_shifts(
        rerun(edits, "", None), rerun(f"{edits},{shuffle}", "", None), stream
    )
    if not max(shifts_without.values()) < SMALLEST_SHIFT < max(shifts.values()):
        raise Untestable(REASONS("order_elsewhere"))
    word_tokens = word_mask(stream)
    best = max(shifts, key=lambda place: (bool(word_tokens[place]), shifts[place]))
    visible = window(len(shifts), [list(shifts).index(best)], 11)
    places = [list(shifts)[at] for at in visible]
    rows = tuple(
        BarRow(
            stream.tokens[place],
            (shifts[place], shifts_without.get(place, 0.0)),
            (share(shifts[place]), share(shifts_without.get(place, 0.0))),
            selected=place == best,
        )
        for place in places
    )
    column = "no positions" + (" or mask" if stream.name == "decoder" else "")
    bars = Bars(
        title=WORDS("shuffled"),
        note=truncation_note(len(rows), len(shifts), "words that moved"),
        columns=("as it is", column),
        rows=rows,
        mark=(places.index(best), 0),
        shared=True,
    )
    slots = {
        "word": stream.tokens[best],
        "most": share(max(shifts_without.values())),
        "mask": " and mask" if stream.name == "decoder" else "",
    }
    return Measure(shifts[best], share(shifts[best]), slots, figures=(bars,))


def require_order(context: MeasureContext) -> None:
    """Raises Untestable where there is no other order of the words, or none can be tried."""
    text_tokens(context.recording.streams[0])
    require_shuffle(context.recording.streams[0])
    context.require_edits(ShuffleTokens, WithoutPositions)


def _word_shifts(original: Recording, shuffled: Recording, stream: Stream) -> dict[int, float]:
    """By place in the text: how far the last vector of a word that the shuffle moved is from its
    own, of its length."""
    here, there = original.stream(stream.name), shuffled.stream(stream.name)
    pairs = match_tokens(here, there, same_text=True)
    a, b = (
        residual.site_vectors(here, here.sites[-1]),
        residual.site_vectors(there, there.sites[-1]),
    )
    return {
        int(i): float(np.linalg.norm(a[i] - b[j]) / np.linalg.norm(a[i]))
        for i, j in zip(pairs.here, pairs.there)
        if i != j and not stream.special[i]
    }


def _pair(context: MeasureContext) -> object:
    return followed_pair(context)


def _sentence(context: MeasureContext) -> object:
    return text_tokens(context.recording.streams[0])


def _word(context: MeasureContext) -> object:
    return followed_word(context, context.recording.streams[-1])


# Cheap checks that raise Untestable where a step has nothing to show.
NEEDS: dict[str, tuple[Callable[[MeasureContext], object], ...]] = {
    "before": (lambda seen: word_span(seen.recording.streams[0]),),
    "embed": (_sentence, _word),
    "waves": (require_sinusoids,),
    "order": (require_order,),
    "qkv": (_pair, lambda seen: attention_with_qkv(seen.recording)),
    "scale": (_sentence, lambda seen: attention_with_qkv(seen.recording)),
    "match": (pair_with_inputs,),
    "lookup": (_pair,),
    "kinds": (_pair, lambda seen: attention_with_qkv(seen.recording)),
    "heads": (pair_with_distances,),
    "stages": (exchangeable_places,),
    "ffn": (require_ffn,),
    "deep": (_sentence,),
    "sphere": (_word, lambda seen: layers_of(seen.recording.streams[-1])),
    "words": (readout_place,),
    "chain": (require_next_words,),
    "loops": (_sentence, lambda seen: causal_attention(seen.recording)),
    "since": (changeable_places,),
    "pizza": (read_pizza,),
}


def available_steps(context: MeasureContext, ids: Iterable[str]) -> tuple[str, ...]:
    """Those of the steps that have something to show of this text and model."""
    return tuple(each for each in ids if not missing_reason(context, each))


def missing_reason(context: MeasureContext, id: str) -> str:
    """The reason why a step has nothing to show, "" where it has."""
    try:
        for need in NEEDS[id]:
            need(context)
    except Untestable as reason:
        return str(reason)
    return ""
