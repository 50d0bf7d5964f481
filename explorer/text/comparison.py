"""Two runs side by side, in words: which heads differ, how tokens were aligned, how alike spaces
are, and what each model says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.analysis import comparison
from explorer.analysis.alignment import CHARACTERS, WORDS, Alignment
from explorer.analysis.comparison import (
    NOT_ALIGNED,
    Nearest,
    PatternPair,
    RowChange,
    largest_row_change,
    most_changed,
    name,
    unaligned_shares,
)
from explorer.analysis.formatting import fixed, plural, sum_text, weight
from explorer.text.markdown_escape import literal

RULES = {
    CHARACTERS: (
        "Both texts are the same, so tokens are laid side by side by their characters: a unit is "
        "the smallest group of tokens that begins and ends at the same characters in both."
    ),
    WORDS: (
        "The texts differ, so only words that both have in the same order (case aside) are laid "
        "side by side; a unit is the smallest group of tokens of such words that covers the same "
        "characters in both."
    ),
}
DISTANCE = (
    "The distance of two rows is the Jensen–Shannon distance to base 2, the square root of "
    "H((p+q)/2) − (H(p)+H(q))/2 (Lin 1991; a metric, "
    "Endres & Schindelin 2003): 0 the same, 1 nothing in common. Two heads’ distance is its mean "
    "over the rows. What goes to tokens that are "
    "not aligned counts as one more place to look."
)
CKA = (
    "Linear CKA (Kornblith et al. 2019) asks whether the same tokens lie near each other in both "
    "spaces: ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖), with X and "
    "Y the tokens’ vectors minus their mean, Frobenius norms. 1 is the same up to rotation and "
    "one factor, 0 nothing in common. It needs no "
    "common width.\n\n**Caution:** with fewer tokens than dimensions even unrelated spaces come "
    "out high. So the value by chance is measured "
    f"too: the same with B’s tokens in another order, the mean of {comparison.SHUFFLES} orders. "
    "Only what is well above it says anything."
)
PLANES = {  # whether both sides are one model's
    True: (
        "Both sides are one model, so they are drawn in one plane: the two directions along which "
        "the vectors of both spread most."
    ),
    False: (
        "Two models have two spaces. Each side is drawn in its own plane, the two directions along "
        "which its vectors spread most; places of the one say nothing about places of the other."
    ),
}
STILL_LOOKS = (
    "A head that writes something else still looks where it looked. It is felt in the layers "
    "above, if there are any in this attention, and in what the model says."
)


# ---- heads ----


def sentence(found: PatternPair, paired: np.ndarray | None, near: Sequence[Nearest]) -> str:
    """What differs most, as a headline. paired (layer, head): distances of heads in the same place,
    None where shapes differ; then `near` is read."""
    if paired is None:
        worst = max(near, key=lambda one: one.distance)
        return (
            f"A’s {name(worst.head)} is farthest from any head of B: the nearest, "
            f"{name(worst.nearest)}, is {worst.distance:.2f} away"
        )
    most = most_changed(paired)[0]
    if paired[most] == 0:
        return "No head differs: every row that is compared is the same on both sides"
    what = largest_row_change(found, most, most)
    less, more = _moved(what)
    return (
        f"{name(most)} differs most: “{what.row}” looks at {less} {what.lost_from:.2f} in A and "
        f"{what.lost_to:.2f} in B, at {more} {what.gained_from:.2f} and {what.gained_to:.2f}"
    )


def beyond(paired: np.ndarray | None, near: Sequence[Nearest]) -> str:
    """What is measured beside the headline: how far that head is apart and how far others are; ""
    where nothing differs."""
    if paired is None:
        best = min(near, key=lambda one: one.distance)
        return (
            f"The best match is A’s {name(best.head)} and B’s {name(best.nearest)}, "
            f"{best.distance:.2f} apart, where half of B’s heads are more than {best.median:.2f} "
            "away."
        )
    most = most_changed(paired)[0]
    if paired[most] == 0:
        return ""
    return (
        f"All rows of {name(most)} are {paired[most]:.2f} apart on average, where 0 is the same "
        f"and 1 has nothing in common; the median of all heads is {np.median(paired):.2f}."
    )


def told(what: RowChange) -> str:
    """A change in words."""
    if what.distance == 0:
        return "Every row is the same."
    less, more = _moved(what)
    return (
        f"From A to B, “{what.row}” looks less at {less} ({what.lost_from:.2f} → "
        f"{what.lost_to:.2f}) and more at {more} "
        f"({what.gained_from:.2f} → {what.gained_to:.2f})."
    )


def _moved(what: RowChange) -> tuple[str, str]:
    """What a row looks at less and what more, as it is called."""
    lost, gained = (
        "what is not aligned" if label == NOT_ALIGNED else f"“{label}”"
        for label in (what.lost, what.gained)
    )
    return lost, gained


def cell(what: RowChange) -> str:
    """The cell of two heads that differs most, with the numbers of both sides."""
    gains = abs(what.gained_to - what.gained_from) >= abs(what.lost_to - what.lost_from)
    label = what.gained if gains else what.lost
    a, b = (what.gained_from, what.gained_to) if gains else (what.lost_from, what.lost_to)
    parts, total = sum_text(b, -a)
    return (
        f"The row that differs most is “{literal(what.row)}”; there “{literal(label)}” has B − A: "
        f"{parts} = **{total}**."
    )


def pair_title(a: tuple[int, int], b: tuple[int, int], distance: float) -> str:
    """The heads that are open and how far they are apart."""
    if a == b:
        return f"{name(a)} of both sides: distance {distance:.2f}"
    return f"A’s {name(a)} beside B’s {name(b)}: distance {distance:.2f}"


def nearest(one: Nearest) -> str:
    """The nearest head of B to one of A, and what chance would give."""
    both = " Each is the other’s nearest." if one.mutual else ""
    return (
        f"Nearest to A’s {name(one.head)} is B’s {name(one.nearest)} ({one.distance:.2f}; the "
        f"next best {one.next_distance:.2f}; half of B’s "
        f"heads are farther than {one.median:.2f}).{both}"
    )


def other_shape(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """That no heads stand in the same place."""
    one, other = (f"{of[0]} layers of {of[1]} heads" for of in (a, b))
    return (
        f"A has {one} and B {other}, so there are no heads in the same place. A head of A opens "
        "with the nearest head of B; a head of B stays beside the open one of A."
    )


# ---- what lies beside what ----


def refusal(rows: Alignment, columns: Alignment) -> str:
    """Why two attentions cannot be compared, "" where they can."""
    for alignment, what in ((rows, "rows"), (columns, "columns")):
        texts = len(alignment.outside_a) + len(alignment.outside_b)
        if not alignment.units or (texts and not alignment.n_text and alignment.rule == WORDS):
            return (
                f"The {what} of the two have no word in common, so no row of one can be laid "
                "beside a row of the other."
            )
    return ""


def units(found: PatternPair) -> str:
    """How many units are compared, what was not aligned, and how much of the attention goes
    there."""
    rows, columns = found.rows, found.columns
    said = (
        f"{plural(len(rows.units), 'row')} and {plural(len(columns.units), 'column')} are compared."
    )
    if rows.outside_a or rows.outside_b:
        said += f" Rows left out: {len(rows.outside_a)} of A, {len(rows.outside_b)} of B."
    if found.leaves_out:
        a, b = unaligned_shares(found)
        return (
            f"{said} Columns not aligned: {len(columns.outside_a)} of A, {len(columns.outside_b)} "
            f"of B; {a:.1%} of A’s attention and {b:.1%} of B’s goes there."
        )
    return said if rows.outside_a or rows.outside_b else f"{said} Nothing is left out."


def rule(found: PatternPair) -> str:
    """By which rule tokens were aligned, and what becomes of a matrix."""
    rows, columns = found.rows.rule, found.columns.rule
    other = "" if rows == columns else f" Rows: {RULES[rows]}"
    return (
        f"{RULES[columns]}{other} Of a matrix, the columns of a unit are summed and its rows "
        "averaged, so each row still sums to 1. Special "
        "tokens before the text ([CLS], [BOS]) lie beside each other, and so do those after it "
        "([SEP], [EOS]); where one side has none, the "
        f"other’s is not aligned. {free_told(found)}"
    )


def free_told(found: PatternPair) -> str:
    """A sentence on rows that have no choice, "" where all have one."""
    forced = int((~found.free).sum())
    if not forced:
        return ""
    is_ = "is" if forced == 1 else "are"
    return (
        f"{plural(forced, 'row')} with a single key to look at on both sides {is_} drawn, but not "
        "counted in any distance."
    )


# ---- vectors ----


def lengths(found: comparison.AlignedStates) -> str:
    """How the vectors' lengths go."""
    (a, b), (c, d) = (comparison.norms(side)[0][[0, -1]] for side in (found.a, found.b))
    return f"A’s vectors go from {a:.1f} to {b:.1f} on average, B’s from {c:.1f} to {d:.1f}."


def likeness(like: comparison.CkaMatrix) -> str:
    """What CKA comes to at both ends, beside chance."""
    few = (
        f" Only {like.n} tokens: chance is high, so read the values beside it."
        if like.n < 20
        else ""
    )
    part = (
        f" {like.n} of {like.n_all} tokens, evenly spaced, are used." if like.n < like.n_all else ""
    )
    (first, last), (low, high) = ((each[0, 0], each[-1, -1]) for each in (like.values, like.chance))
    return (
        f"The first states: CKA {first:.2f}, by chance {low:.2f}. The last states: {last:.2f}, by "
        f"chance {high:.2f}.{few}{part}"
    )


def apart(found: comparison.AlignedStates, unit: int) -> str:
    """How far one piece of text ends from itself on the two sides, which are one model's."""
    far, cosine = comparison.final_distance(found, unit)
    return (
        f"“{found.labels[unit]}” ends {far:.2f} apart on the two sides, in all "
        f"{found.a.shape[-1]} dimensions; the cosine of the two is {fixed(cosine, 3)}."
    )


# ---- what each model says ----

Words = Sequence[tuple[str, float]]  # the likeliest first, each with its probability


def asked(kind: str, word: str) -> str:
    """What a model is asked: to fill in a hidden word, to go on, or to begin a translation. kind:
    "fills", "goes on" or "translates"."""
    return {
        "fills": f"fills in the hidden “{literal(word)}”",
        "goes on": f"goes on after “{literal(word)}”" if word else "begins",
        "translates": "begins its translation",
    }[kind]


def says(words: Words) -> str:
    """The likeliest words with their probabilities, on a line."""
    (first, p), *rest = words
    more = "".join(f" · “{literal(word)}” {weight(each)}" for word, each in rest)
    return f"**“{literal(first)}”** {weight(p)}{more}"


def answers(a: Words, b: Words) -> str:
    """Whether two models say the same, in a sentence; where they do not, how likely each holds the
    other's word, if it is listed."""
    (one, p), (other, q) = a[0], b[0]
    if one == other:
        return f"Both say “{literal(one)}”: A with {weight(p)}, B with {weight(q)}."
    back, forth = dict(a).get(other), dict(b).get(one)
    beside = [
        f"{who} gives “{literal(word)}” {weight(each)}"
        for who, word, each in (("B", one, forth), ("A", other, back))
        if each is not None
    ]
    more = f" {'; '.join(beside)}." if beside else ""
    return f"A says “{literal(one)}” ({weight(p)}), B says “{literal(other)}” ({weight(q)}).{more}"
