"""What all heads say together, in words: what each summary is, how far it can be trusted, and where
weights mislead. Markdown, with words of the text already literal."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.formatting import fixed, percent, plural, signed
from explorer.analysis.summaries import (
    MAX_SHARE,
    MIN_WEIGHT,
    Contributions,
    Disagreement,
    extreme_heads,
    largest_bias,
)
from explorer.text.capability_messages import WHICH_TENSORS

LABELS = {
    "Mean": "Mean",
    "Max": "Max",
    "Rollout": "Rollout",
    "Flow": "Flow",
    "Values": "Weight × value",
    "Writes": "Head writes",
}
# One line that defines it, with its source; and one of caution.
MEANING = {
    "Mean": "The average of the heads’ matrices. Rows still sum to 1.",
    "Max": "In each cell, the largest weight that any head gives.",
    "Rollout": (
        "Attention followed down to the input. In each layer Â = ½ (mean of the heads) + ½ "
        "(identity, for the residual connection); rollout is their product, last layer to "
        "first. Rows sum to 1. (Abnar & Zuidema 2020)"
    ),
    "Flow": (
        "The layers as a network of pipes, each as wide as its weight in Â (as for rollout): "
        "the most that can flow from an input token, on all ways together, to a token after "
        "the last layer. (Abnar & Zuidema 2020)"
    ),
    "Values": (
        "‖α f(x)‖: the length of the weight times what is really passed on, f(x) = value · "
        "W_O. A token with a large weight and a short value adds little. (Kobayashi et al. 2020)"
    ),
    "Writes": (
        "What each head added to the residual stream: its z through its slice of W_O. "
        "(Elhage et al. 2021)"
    ),
}
SAYS = {  # what a row's number is
    "Mean": "looks at",
    "Max": "looks, in some head, at",
    "Rollout": "is made of",
    "Flow": "can receive from",
    "Values": "gets from",
}
TOGETHER = (
    "Of a layer: its heads’ vectors are added before the length is taken. Of all layers: the "
    "mean of theirs."
)
THROUGH = ("Rollout", "Flow")  # those that follow attention through the layers
MARKED = ("Mean", "Max", "Values")  # those of whose heads single cells can be marked
RULE = (
    f"at least {MIN_WEIGHT:g} of a row’s weight but at most {MAX_SHARE:g} of what the head writes "
    "there, by length"
)
NO_WAY_ACROSS = (
    "**{} is not defined through cross-attention.** It needs rows and columns that are the "
    "same tokens, so that the residual connection can be added as an identity. Here rows are "
    "the decoder’s tokens and columns the encoder’s. It is shown for each stack by itself: "
    "choose encoder or decoder self-attention above."
)
CLOSED = (
    "{} does not show W_O, through which a head writes its values: "
    f"{WHICH_TENSORS.format('that is')}. So what is written cannot be computed. Mean, max, rollout "
    "and flow can."
)
TOO_LONG = (
    "**Flow is not computed for {} tokens.** The work grows with the third power of their "
    "number and would keep everyone else on this machine waiting. Rollout rests on the same "
    "assumptions and is there for any length; a shorter text, or fewer layers, gives the flow."
)
ONE_ROW = (
    "With {} tokens the flow of all pairs would take too long here, so one token’s row is "
    "computed at a time. Choose a token in the sentence."
)


def title(what: str, layer: int | None, head: int | None) -> str:
    """What a summary is called: of one layer, of one head, or of all."""
    if layer is None:
        where = "up to the last layer" if what in THROUGH else "all heads of all layers"
    elif what in THROUGH:
        where = f"up to layer {layer}"
    else:
        where = f"layer {layer}, " + ("all heads" if head is None else f"head {head}")
    return f"{LABELS[what]}, {where}"


def caution(what: str, heads: int, sums: tuple[float, float], written: float | None) -> str:
    """What the picture does not say, with this text's numbers: of how many heads, what its rows sum
    to, and attention's own part of what stands after it."""
    low, high = map(fixed, sums)
    rows = f"Rows do not sum to 1; here the sums are {low if low == high else f'{low} to {high}'}."
    own = ""
    if written is not None:
        own = f" Measured here, attention’s own part of the length is {fixed(written)}, not 0.50."
    return {
        "Mean": (
            f"A mean hides heads: one that looks at a single token counts for 1/{heads} of "
            "the cell."
        ),
        "Max": f"{rows} More heads can only make a maximum larger, and no head has this pattern.",
        "Rollout": (
            "It assumes that half of every vector comes through the residual connection, and "
            f"that all values are alike.{own}"
        ),
        "Flow": (
            f"Each pair is computed as if it were alone. {rows} (The code published with the "
            "paper divides each row by its sum; here the flow itself is shown.) It rests on "
            f"the same ½ as rollout.{own}"
        ),
        "Values": "A length has no direction: what is written for two tokens may cancel.",
        "Writes": "A large write need not matter for the answer: what later layers read decides.",
    }[what]


def cancelled(token: int, together: float, length: float) -> str:
    """How much of what one head writes at a token cancels."""
    return (
        f" At token {token} the lengths sum to {fixed(together)}, what is written is "
        f"{fixed(length)} long."
    )


def left_out(labels: Sequence[str], share: float) -> str:
    """Which tokens a picture leaves out, and how much of its rows goes there."""
    more = len(labels) - 8
    named = ", ".join(labels[:8]) + (f" and {more} more" if more > 0 else "")
    return f"Left out: {named}. On average {percent(share)} of a row goes there."


def gap(one: Disagreement, row: str, key: str) -> str:
    """A disagreement in words."""
    return (
        f"L{one.layer}H{one.head}, row {row} ({one.query}): “{key}” takes "
        f"**{fixed(one.weight)}** of the weight but **{fixed(one.share)}** of what is written"
    )


def nowhere(rows: int, nearest: str) -> str:
    """That weights mislead nowhere; nearest: the widest gap in words, "" where there is no
    candidate."""
    if nearest:
        return f"Nowhere on this text does a token take {RULE}. The widest gap: {nearest}."
    return (
        f"Nowhere on this text: in none of {plural(rows, 'row')} does a token take at least "
        f"{MIN_WEIGHT:g} of the weight."
    )


def misleading(found: int, rows: int, marked: bool) -> str:
    """In how many rows weights mislead."""
    cells = " These cells are marked with a square." if marked else ""
    return (
        f"In **{found:,} of {plural(rows, 'row')}**, over all heads, a token takes "
        f"{RULE}.{cells} The widest gaps:"
    )


def writes(found: Contributions, measure: str, mean: bool) -> list[str]:
    """What each head wrote, in lines. measure: "Length" or "Share"; mean: over all tokens."""
    over = " The mean over all tokens." if mean else ""
    drawn = (
        "Drawn is the length of that vector, ‖w_h‖."
        if measure == "Length"
        else (
            "Drawn is each head’s share of attention’s write w = Σ w_h + b_O: **w_h · w / "
            "|w|²**. Shares of a layer sum to 1 with b_O’s; under 0 (blue) a head writes "
            "against the others."
        )
    )
    (layer, head, most), against, (least_layer, least_head, least) = extreme_heads(found)
    lines = [
        f"**Head writes.** {MEANING['Writes']}",
        drawn + over,
        f"The longest write: **layer {layer}, head {head}**, {fixed(most)}.",
        (
            f"**{against} of {plural(found.share.size, 'head')}** write against their layer’s "
            f"sum; the furthest is layer {least_layer}, head {least_head}, at a share of "
            f"**{signed(least)}**."
        )
        if against
        else "No head writes against its layer’s sum.",
    ]
    if measure == "Share":
        at, bias = largest_bias(found)
        lines.append(
            f"The bias b_O, the same whatever the tokens are, has up to **{signed(bias)}** "
            f"(layer {at})."
        )
    return lines
