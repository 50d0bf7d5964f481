"""What positions do to a sentence, in words: what is added up, scores by distance, and another
order of the words."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isinf

from explorer.analysis import sites as states
from explorer.analysis.added import Added, ByOffset
from explorer.analysis.called import a
from explorer.analysis.numbers import MINUS, plural, power
from explorer.analysis.order import Maps, Orders
from explorer.sentences.escape import literal
from explorer.sentences.own_code import named

MOST_TOKENS = 40  # that are written out
SAME_DIGITS = 4  # vectors that agree to as many digits differ by no more than rounding
TURNED = (
    "Queries and keys are turned by their places, so a score depends on the words and on how far "
    "apart they stand; “without” they are not turned."
)


def after(reads: str, norm: str) -> str:
    """What reads the sum of word and position. reads: as `added.follows`; norm: what it is
    called."""
    if reads == "norm":
        return f" A {norm} then follows, which sets every sum’s length anew."
    return f" Layer 0 reads it through {a(norm)}." if reads else ""


def lengths(
    added: Added, words: Sequence[str], names: tuple[str, str], scale: float | None, after: str
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
            f"Between the sum and layer 0 stands {a(norm)}, which mixes words and positions, so "
            "that no part is position alone."
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
    return [states.title(name, names) for name in names]


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


def meaning(found: Orders, causal: bool, across: bool) -> str:
    """What the comparison without positions shows. causal: later tokens are masked; across: a
    decoder over a source in another order."""
    lost = [found.tokens[place] for place in found.pairs.alone_here]
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
    if lost or found.pairs.alone_there:
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


def maps(found: Maps) -> str:
    """How far one head's weights differ in two orders, and any head's."""
    return (
        "Rows and columns of the second map are put in the first one’s order. The largest "
        "difference of a weight in this head: "
        f"**{power(found.gap)}**; in any of the {found.n_heads} heads: **{power(found.largest)}**."
    )
