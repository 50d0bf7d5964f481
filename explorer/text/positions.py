"""The table of positions in words: waves, distances, rotations, learned tables, and the room that
words and positions share."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, floor, isinf, sin

import numpy as np

from explorer.analysis import logit_lens, positions
from explorer.analysis.formatting import (
    MINUS,
    enough_digits_for_all,
    fixed,
    latex_number,
    plural,
    power,
)
from explorer.analysis.positions import (
    ByOffset,
    MatchedWeights,
    OrderComparison,
    Overlap,
    PositionSum,
)
from explorer.analysis.terminology import with_article
from explorer.text.capability_messages import WHICH_TENSORS, named
from explorer.text.markdown_escape import literal

# What positions do to a sentence, in words: what is added up, scores by distance, and another
# order of the words.

MOST_TOKENS = 40  # that are written out
SAME_DIGITS = 4  # vectors that agree to as many digits differ by no more than rounding
TURNED = (
    "Queries and keys are turned by their places, so a score depends on the words and on how far "
    "apart they stand; “without” they are not turned."
)


def after(reads: str, norm: str) -> str:
    """What reads the sum of word and position. reads: as `positions.sum_reader`; norm: what it is
    called."""
    if reads == "norm":
        return f" A {norm} then follows, which sets every sum’s length anew."
    return f" Layer 0 reads it through {with_article(norm)}." if reads else ""


def lengths(
    added: PositionSum,
    words: Sequence[str],
    names: tuple[str, str],
    scale: float | None,
    after: str,
) -> str:
    """What is added up, token by token. names: of the word's vector and of the position's; scale:
    by what the model multiplies its embeddings, None where that is not known; after: as
    `after`."""
    low, high = added.ends
    root = (
        ""
        if scale is None
        else ", with no factor √d before it"
        if scale == 1
        else f", here √{round(scale**2)} = {scale:.2f}"
    )
    run = (
        f"the tokens’ run from {added.word[low]:.2f} ({literal(words[low])}) to "
        f"{added.word[high]:.2f} ({literal(words[high])})."
    )
    if names[1] == "encoding":
        said = (
            f"The encoding’s length is √(d/2) = {added.encoding[0]:.3f} at every position, "
            f"since sin² + cos² = 1; {run}"
        )
    else:
        said = (
            f"The positions’ vectors, learned, have lengths from {added.encoding.min():.2f} to "
            f"{added.encoding.max():.2f}; {run}"
        )
    without = (
        ""
        if scale in (None, 1)
        else f" Without the factor √d they would run from {added.word[low] / scale:.2f} to "
        f"{added.word[high] / scale:.2f}, against "
        f"{added.encoding.mean():.2f} for the position."
    )
    return f"**What is added up** is {names[0]} + {names[1]}{root}. {said}{without}{after}"


def parted(layer: int, reads: str, norm: str) -> str:
    """Whether a part of a layer's scores is position alone; reads, norm: as for `after`."""
    if layer:
        return "Above layer 0 words and positions are mixed, so that no part is position alone."
    if reads:
        return (
            f"Between the sum and layer 0 stands {with_article(norm)}, which mixes words and "
            "positions, so that no part is position alone."
        )
    return (
        "In layer 0 the query is W_Q(word + position), so a score falls into four parts; the "
        "dotted line is the part that is position × position, exact from the two passes."
    )


def scores(found: ByOffset, parts: str, scaled: str) -> str:
    """Scores by distance. parts: as `parted`, or TURNED; scaled: what follows q · k, such as
    " / √32"."""
    spread, bare = found.spread
    best = f"{found.best:+d}".replace("-", MINUS) if found.best else "0"
    return (
        f"**Scores q · k{scaled} by distance**, key minus query, averaged over the pairs of words "
        "that far apart. With positions they vary "
        f"by {spread:.2f} (standard deviation over distances) and are highest at **{best}**; "
        f"without, by {bare:.2f}: what is left comes "
        f"from which words happen to stand there. {parts} Far distances have few pairs, so the "
        "ends wobble."
    )


def tokens(words: Sequence[str]) -> str:
    """Tokens in a row, the first ones of many."""
    more = f" … and {len(words) - MOST_TOKENS:,} more" if len(words) > MOST_TOKENS else ""
    return " · ".join(map(literal, words[:MOST_TOKENS])) + more


def sites(names: Sequence[str]) -> list[str]:
    """The states of a stream as an axis names them."""
    return [logit_lens.title(name, names) for name in names]


def digits(value: float) -> str:
    """To how many digits vectors agree."""
    if isinf(value):
        return "every digit"
    return "no digit" if value < 1 else plural(floor(value), "digit")


def difference(value: float, n: int, d: int) -> str:
    """The largest difference over n tokens."""
    return f"largest difference **{power(value)}** over {plural(n, 'token')} × {d} numbers"


def cut_short(model: str, size: int, dropped: int) -> str:
    """That the other order did not fit the model."""
    return (
        f"The other order is {dropped + size:,} tokens; {named(model)} reads {size}. Its last "
        f"{dropped:,} are left out."
    )


def meaning(found: OrderComparison, causal: bool, across: bool) -> str:
    """What the comparison without positions shows. causal: later tokens are masked; across: a
    decoder over a source in another order."""
    lost = [found.tokens[place] for place in found.pairs.unmatched_first]
    partners = f" No partner in the other order: {tokens(lost)}." if lost else ""
    if found.without.common_digits >= SAME_DIGITS:
        if across:
            return (
                "The source is in another order, the target is kept. **Without positions the "
                "decoder cannot tell**: cross-attention is a "
                f"sum over the source, whatever its order.{partners}"
            )
        return (
            "**Without positions every word has the same vector in both orders**: the layers are "
            "permutation-equivariant. Reorder the "
            "input and the output is reordered with it, nothing else; only the encoding tells "
            "which word stands where."
            f"{partners}"
        )
    if lost or found.pairs.unmatched_second:
        return (
            "**The two orders do not hold the same tokens**, so more than the order differs, and "
            "vectors may differ even without "
            f"positions.{partners} A capital letter makes another token."
        )
    if causal and not across:
        return (
            "**Even without positions the vectors differ.** The causal mask tells the order by "
            "itself: a token sees those before it and "
            "no others, so another order gives it other tokens to look at. For an equivariant "
            "model choose an encoder."
        )
    return "Even without positions the vectors differ by more than rounding."


def maps(found: MatchedWeights) -> str:
    """How far one head's weights differ in two orders, and any head's."""
    return (
        "Rows and columns of the second map are put in the first one’s order. The largest "
        "difference of a weight in this head: "
        f"**{power(found.gap)}**; in any of the {found.n_heads} heads: **{power(found.largest)}**."
    )


WITHIN = {
    "rotary": "it turns queries and keys by their positions (rotary)",
    "distance": "it takes from a score the more, the further apart two tokens are",
    "buckets": "it adds to each score a number learned for each head and each bucket of distances",
    "relative": "its scores depend on how far apart two tokens are",
}
ADDING = (
    "**Adding** costs no width: x = e + p, and the query is W e + W p. One matrix reads both, so "
    "a position can be mistaken for a bit "
    "of meaning wherever the two overlap.  \n"
    "**Concatenating** keeps them apart: x = [e ; p], and the query is W₁ e + W₂ p, each with a "
    "matrix of its own. The price is width.  \n"
    "**Where the two subspaces are orthogonal, adding is as good as concatenating**: W can act on "
    "each as it likes, since no direction "
    "belongs to both. In many dimensions any two directions taken at random are nearly orthogonal."
)
WHERE = {
    "learned": "This table was learned, so training could choose where it lies.",
    "sinusoids": (
        "A learned table, such as BERT’s or GPT-2’s, may choose where it lies; the sinusoids "
        "lie where the formula puts them."
    ),
}


def size(value: float) -> str:
    """A number in about four figures."""
    return power(value, 4)


def _nothing(model: str) -> str:
    return f"**{named(model)} adds nothing for positions** to its embeddings"


def adds_none(model: str, within: str) -> str:
    """That the formula on screen is not the model's. within: how it brings positions in otherwise,
    a key of WITHIN or ""."""
    how = f"; {WITHIN[within]}" if within in WITHIN else ""
    return f"{_nothing(model)}{how}. What follows is the paper’s formula itself, for comparison."


def within(model: str, how: str) -> str:
    """Why this model cannot be compared with itself without positions."""
    return (
        f"{_nothing(model)}; {WITHIN.get(how, how)}. That is done inside its code and cannot be "
        "taken away here, and this screen compares a model with and without its positions."
    )


def nothing_to_show(model: str) -> str:
    """That there is nothing to add up."""
    return (
        f"{named(model)} adds nothing for positions, so there is nothing to show here. “Order” "
        "shows what that means for a sentence."
    )


def turned_alone(model: str, how: str) -> str:
    """That there is nothing to add up, but scores to compare. how: a key of WITHIN."""
    return f"{_nothing(model)}; {WITHIN[how]}. So positions are seen in the scores alone."


def one_and_the_same(model: str) -> str:
    """That both runs of a model without positions are one."""
    return (
        f"{named(model)} adds nothing for positions, so its run with them and its run without "
        "are one and the same."
    )


def none_to_find(model: str) -> str:
    """That there are no positions among the embeddings' directions."""
    return (
        f"{named(model)} adds nothing for positions, so there are none among its embeddings’ "
        "directions. Choose a model with positions above."
    )


def no_weights(model: str) -> str:
    """That the embeddings are not to be had."""
    return (
        f"{named(model)} does not show the embeddings and the positions that this screen needs: "
        f"{WHICH_TENSORS.format('these are')}, and by what they are multiplied."
    )


def adds_this(model: str, off: float, other: bool) -> str:
    """That the model adds this table, measured; other: a model with a learned table is here."""
    more = " Choose minilm above to see such a table." if other else ""
    return (
        f"**{named(model)} adds exactly this**, computed and not learned: what it added to your "
        "text differs from the formula by at "
        f"most {power(off)} (single precision). BERT and GPT-2 learn their table instead, one "
        f"free vector for each position and none beyond the last.{more}"
    )


def waves(wave: positions.Wave, turns: np.ndarray, n: int, d: int, pair: int) -> str:
    """One pair of a table of n positions, and how fast the pairs turn. turns (pair):
    wavelengths."""
    sine, cosine = fixed(wave.sine[1], 4), fixed(wave.cosine[1], 4)
    (angle,) = enough_digits_for_all(
        [(sine, sin), (cosine, cos)], float(wave.angle[1]), least=4, write=power
    )
    rate = f"10000^({2 * pair}/{d})"
    return (
        "**Each position gets a row of sines and cosines.** PE(pos, 2i) = sin(pos / 10000^(2i/d)) "
        "and PE(pos, 2i + 1) = cos of the same angle.  \n"
        f"**Pair i = {pair}** of d = {d}: the angle grows by 1 / {rate} = {size(wave.angle[1])} a "
        "position, so a turn takes λ = 2π × "
        f"{rate} = **{size(turns[pair])}** positions. At position 1 it holds sin {angle} = {sine} "
        f"and cos {angle} = {cosine}.  \n"
        f"**Fast and slow.** The first pair turns in 2π = {size(turns[0])} positions and tells "
        "neighbours apart; the last takes "
        f"{size(turns[-1])}: over these {n} positions it turns by "
        f"{size(360 * (n - 1) / turns[-1])}° in all."
    )


def learned(model: str, lengths: np.ndarray, off: float, d: int) -> str:
    """A learned table: its size, its distance from the formula, its vectors' lengths (position)."""
    n, low, high = len(lengths), int(lengths.argmin()), int(lengths.argmax())
    return (
        f"**Learned, not computed.** {named(model)} has one free vector for each of {n:,} "
        "positions, and none beyond the last: so it "
        f"reads {n:,} tokens and no more.  \n"
        "**No formula.** Nothing makes these numbers sines and cosines: on your text what is "
        "added differs from the paper’s by up to "
        f"{size(off)}. So wavelengths do not apply.  \n"
        f"**Lengths** run from {size(lengths[low])} (position {low}) to {size(lengths[high])} "
        f"(position {high}); every one of the "
        f"paper’s is √(d/2) = {(d / 2) ** 0.5:.2f} long."
    )


def distance(found: positions.Products, n: int, d: int) -> str:
    """The law of p_i . p_j, and how far the measured products are from it."""
    ends = (
        f", at distance 1 it is {fixed(found.law[1], 3)} and at distance {n - 1} it is "
        f"{fixed(found.law[-1], 3)}"
        if n > 1
        else ""
    )
    return (
        "**Only the distance counts.** sin a sin b + cos a cos b = cos(a − b), so pᵢ · pⱼ is the "
        "sum of cos((i − j) / 10000^(2i/d)) over "
        f"the {d // 2} pairs: every diagonal has one colour.  \n"
        f"**Measured** over all {n * n:,} products: the largest deviation from that sum is "
        f"**{power(found.deviation)}** (double "
        f"precision). At distance 0 it is d/2 = {found.law[0]:,.0f}{ends}. It does not say which "
        "of the two comes first: |i − j|, not i − j."
    )


def learned_distance(found: positions.ByDistance, n: int, longer: float | None) -> str:
    """How much of a learned table's products, of n positions, distance tells. longer: by how much
    position 0, left out, is longer."""
    left_out = (
        ""
        if longer is None
        else f"  \n**Position 0 is left out.** Its vector is {longer:.1f} times as long as "
        "the middle one, and its products would hide all others."
    )
    return (
        "**A learned table obeys no law of distance**: the sum of cosines does not apply, and "
        "pairs equally far apart have unlike "
        f"products. At distance 1 they run from {fixed(found.low[1], 3)} to "
        f"{fixed(found.high[1], 3)}.  \n"
        f"**How much distance tells here**: **{found.told:.0%}** of how the {n**2:,} products "
        "vary; for the paper’s sinusoids it is "
        "100 %. Where the mean rises and falls evenly, training has found waves of its "
        f"own.{left_out}"
    )


def no_rotation(model: str, found: positions.RotationErrors | None, by: int) -> str:
    """That the law of rotation is not a learned table's, and how far it misses there."""
    missed = (
        ""
        if found is None
        else f" Tried on it all the same, the rotation by k = {by} misses the row {by} further on "
        f"by {found.rotated_error:.0%} of a row’s length "
        f"on average; the row left as it is misses by {found.unrotated_error:.0%}."
    )
    return (
        f"**The rotation law does not apply to {literal(model)}**, whose table was "
        f"learned.{missed} What follows is the paper’s formula itself."
    )


def turn(d: int, pair: int, by: int) -> str:
    """By how much `by` positions turn a pair."""
    radians, degrees = positions.rotation_angle(d, pair, by)
    return (
        f"**The same matrix moves every position by k = {by}.** It turns pair i = {pair} by k / "
        f"10000^(2i/d) = {by} / 10000^({2 * pair}/{d}) "
        f"= **{fixed(radians, 4)}** radians ({degrees:,.1f}°), wherever one starts:"
    )


def turn_formula(
    matrix: np.ndarray,
    before: Sequence[float],
    after: Sequence[float],
    place: int,
    there: int,
) -> str:
    """The rotation with this pair's numbers, in LaTeX, with the digits that make it true."""
    ends = [fixed(float(each), 4) for each in after]
    parts = enough_digits_for_all(
        [
            (ends[0], lambda a, b, c, d, x, y: a * x + b * y),
            (ends[1], lambda a, b, c, d, x, y: c * x + d * y),
        ],
        *map(float, (*matrix.ravel(), *before)),
        least=4,
    )
    a, b, c, e, x, y, u, v = map(latex_number, (*parts, *ends))
    return (
        rf"\underbrace{{\begin{{pmatrix}} {a} & {b} \\ {c} & {e} \end{{pmatrix}}}}"
        rf"_{{R_{{{there - place}}}}}"
        rf"\underbrace{{\begin{{pmatrix}} {x} \\ {y} \end{{pmatrix}}}}_{{PE({place})}}"
        rf"= \underbrace{{\begin{{pmatrix}} {u} \\ {v} \end{{pmatrix}}}}_{{PE({there})}}"
    )


def turn_everywhere(n: int, d: int, by: int) -> str:
    """That one matrix turns all positions alike, measured."""
    return (
        f"Over all {d // 2} pairs and all {n} positions the turned encoding and the encoding {by} "
        "further on differ by at most "
        f"**{power(positions.shift_error(n, d, by))}** (double precision). Because R depends on k "
        "and not on pos, a head can look a fixed "
        "number of tokens back with one linear map. The fastest pair turns most, the slowest "
        "hardly at all: try the ends of the slider."
    )


def overlap(model: str, found: Overlap, r: int, held: float) -> str:
    """How much of the encoding lies in the r directions that hold the share `held` of the
    embeddings' variance."""
    share, chance, d = found.places[r], found.chance[r], len(found.words) - 1
    if share < 0.95 * chance:
        verdict = (
            "less than chance: words and positions keep partly out of each other’s way, and a "
            "linear map can read one without much of the other"
        )
    elif share > 1.05 * chance:
        verdict = (
            "more than chance: positions lie where the words are, and a linear map must tell "
            "them apart there"
        )
    else:
        verdict = (
            "about what chance gives: words and positions share the space without regard to "
            "each other"
        )
    return (
        f"**Measured in {literal(model)}.** {r} of {d} directions hold {held:.0%} of the "
        f"embeddings’ variance. They hold **{share:.0%}** "
        f"of what tells positions apart in the encoding; {r} directions at random would hold "
        f"{chance:.0%}. That is {verdict}."
    )


def price(room: int, held: float, d: int, n: int) -> str:
    """What concatenating would cost: `room` dimensions hold the share `held` of how n positions
    vary."""
    return (
        f"**The price here.** {room} dimensions hold {held:.0%} of the variation over {n} "
        "positions. Concatenating as many would make the "
        f"stream {d} + {room} = {d + room} wide, and every matrix that reads it {room / d:.0%} "
        f"larger; concatenating a whole table of {d}, twice as large."
    )
