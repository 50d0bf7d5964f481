"""The sentences of Compare: which heads differ, how tokens were aligned, how similar spaces are,
and what each model predicts."""

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
from explorer.analysis.formatting import fixed, plural, sum_text, tenths
from explorer.text.markdown_escape import literal

RULES = {
    CHARACTERS: (
        "Both texts are equal, so tokens are aligned by their characters. A unit is the smallest "
        "group of tokens that begins and ends at the same characters in both."
    ),
    WORDS: (
        "The texts differ, so only words that occur in both in the same order are aligned, without "
        "regard to case. A unit is the smallest group of tokens of such words that covers the "
        "same characters in both."
    ),
}
DISTANCE = (
    "The distance of two rows is the Jensen–Shannon distance (base 2), the square root of "
    "H((p+q)/2) − (H(p)+H(q))/2 (Lin 1991; Endres & Schindelin 2003). It is 0 for equal rows and 1 "
    "for rows without a common key. The distance of two heads is its mean over the rows. All "
    "tokens that are not aligned count as one key."
)
CKA = (
    "Linear CKA (Kornblith et al. 2019) measures whether the same tokens are near each other in "
    "both spaces: ‖YᵀX‖² / (‖XᵀX‖ ‖YᵀY‖). X and Y are the tokens’ vectors minus their mean. It is "
    "1 for spaces that are equal up to rotation and scale, and 0 for unrelated ones. Widths may "
    "differ.\n\n**Caution:** with fewer tokens than dimensions, even unrelated spaces have "
    "high values. The baseline is the mean CKA with B’s tokens in "
    f"{comparison.SHUFFLES} random orders. Only values well above it are meaningful."
)
PLANES = {  # whether both sides are one model's
    True: (
        "Both sides are one model, so they share one plane: the two directions of largest variance "
        "of both."
    ),
    False: (
        "Two models have two spaces. Each side has its own plane, the two directions of its "
        "largest variance. Positions in one plane cannot be compared with the other."
    ),
}
SAME_ATTENTION = (
    "Ablating a head’s output does not change its own attention. The effect appears in later "
    "layers, if there are any in this attention, and in the prediction."
)


# ---- heads ----


def sentence(found: PatternPair, paired: np.ndarray | None, near: Sequence[Nearest]) -> str:
    """What differs most, as a headline. paired (layer, head): distances of heads in the same place,
    None where shapes differ; then `near` is read."""
    if paired is None:
        worst = max(near, key=lambda one: one.distance)
        return (
            f"A’s {name(worst.head)} has no similar head in B: the distance to the nearest, "
            f"{name(worst.nearest)}, is {worst.distance:.2f}"
        )
    most = most_changed(paired)[0]
    if paired[most] == 0:
        return "No head differs: all compared rows are equal"
    what = largest_row_change(found, most, most)
    less, more = _moved(what)
    return (
        f"{name(most)} differs most: “{what.row}” attends to {less} in A ({what.lost_from:.2f}, B: "
        f"{what.lost_to:.2f}) and to {more} in B ({what.gained_to:.2f}, A: {what.gained_from:.2f})"
    )


def beyond(paired: np.ndarray | None, near: Sequence[Nearest]) -> str:
    """What is measured beside the headline: how far that head is apart and how far others are; ""
    where nothing differs."""
    if paired is None:
        best = min(near, key=lambda one: one.distance)
        return (
            f"The best match is A’s {name(best.head)} and B’s {name(best.nearest)}, with distance "
            f"{best.distance:.2f}. Its median distance to B’s heads is {best.median:.2f}."
        )
    most = most_changed(paired)[0]
    if paired[most] == 0:
        return ""
    return (
        f"The mean distance of the rows of {name(most)} is {paired[most]:.2f} (0: equal, 1: no key "
        f"in common). The median of all heads is {np.median(paired):.2f}."
    )


def told(what: RowChange) -> str:
    """A change in words."""
    if what.distance == 0:
        return "All rows are equal."
    less, more = _moved(what)
    return (
        f"From A to B, “{what.row}” attends less to {less} ({what.lost_from:.2f} → "
        f"{what.lost_to:.2f}) and more to {more} ({what.gained_from:.2f} → {what.gained_to:.2f})."
    )


def _moved(what: RowChange) -> tuple[str, str]:
    """The labels of the keys whose weights fall and rise most."""
    lost, gained = (
        "unaligned tokens" if label == NOT_ALIGNED else f"“{label}”"
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
        f"The row that differs most is “{literal(what.row)}”. For the key “{literal(label)}”, "
        f"B − A is {parts} = **{total}**."
    )


def pair_title(a: tuple[int, int], b: tuple[int, int], distance: float) -> str:
    """The heads that are open and how far they are apart."""
    if a == b:
        return f"{name(a)} of both sides: distance {distance:.2f}"
    return f"A’s {name(a)} beside B’s {name(b)}: distance {distance:.2f}"


def nearest(one: Nearest) -> str:
    """The nearest head of B to one of A, with the baseline."""
    both = " They are mutual nearest neighbours." if one.mutual else ""
    return (
        f"B’s {name(one.nearest)} is nearest to A’s {name(one.head)}, with distance "
        f"{one.distance:.2f}. The next has {one.next_distance:.2f}, and the median is "
        f"{one.median:.2f}.{both}"
    )


def other_shape(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    """That no heads stand in the same place."""
    one, other = (f"{of[0]} layers of {of[1]} heads" for of in (a, b))
    return (
        f"A has {one} and B {other}, so heads have no direct counterpart. A selected head of A is "
        "shown with the nearest head of B."
    )


# ---- alignment ----


def refusal(rows: Alignment, columns: Alignment) -> str:
    """Why two attentions cannot be compared, "" where they can."""
    for alignment, what in ((rows, "rows"), (columns, "columns")):
        texts = len(alignment.outside_a) + len(alignment.outside_b)
        if not alignment.units or (texts and not alignment.n_text and alignment.rule == WORDS):
            return (
                f"The {what} of the two texts have no word in common, so no rows can be compared."
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
    return said if rows.outside_a or rows.outside_b else f"{said} All are aligned."


def rule(found: PatternPair) -> str:
    """By which rule tokens were aligned, and what becomes of a matrix."""
    rows, columns = found.rows.rule, found.columns.rule
    other = "" if rows == columns else f" Rows: {RULES[rows]}"
    return (
        f"{RULES[columns]}{other} The columns of a unit are summed and its rows averaged, so each "
        "row still sums to 1. Special tokens before the text ([CLS], [BOS]) are aligned with each "
        f"other, and so are those after it ([SEP], [EOS]). {free_told(found)}"
    )


def free_told(found: PatternPair) -> str:
    """A sentence on rows that have no choice, "" where all have one."""
    forced = int((~found.free).sum())
    if not forced:
        return ""
    return f"Distances leave out {plural(forced, 'row')} with a single key on both sides."


# ---- vectors ----


def lengths(found: comparison.AlignedStates) -> str:
    """How the vectors' lengths go."""
    (a, b), (c, d) = (comparison.norms(side)[0][[0, -1]] for side in (found.a, found.b))
    return f"Mean norms change from {a:.1f} to {b:.1f} in A, and from {c:.1f} to {d:.1f} in B."


def likeness(like: comparison.CkaMatrix) -> str:
    """What CKA comes to at both ends, beside chance."""
    few = f" With only {like.n} tokens the baseline is high." if like.n < 20 else ""
    part = (
        f" {like.n} of {like.n_all} tokens, evenly spaced, are used." if like.n < like.n_all else ""
    )
    (first, last), (low, high) = ((each[0, 0], each[-1, -1]) for each in (like.values, like.chance))
    return (
        f"CKA of the first states: {first:.2f} (baseline {low:.2f}). CKA of the last states: "
        f"{last:.2f} (baseline {high:.2f}).{few}{part}"
    )


def apart(found: comparison.AlignedStates, unit: int) -> str:
    """How far one piece of text ends from itself on the two sides, which are one model's."""
    far, cosine = comparison.final_distance(found, unit)
    return (
        f"The last vectors of “{found.labels[unit]}” on the two sides have distance {far:.2f} in "
        f"all {found.a.shape[-1]} dimensions, and cosine {fixed(cosine, 3)}."
    )


# ---- the predictions ----

Words = Sequence[tuple[str, float]]  # the likeliest first, each with its probability


def asked(kind: str, word: str) -> str:
    """The prediction of a model: a masked word, the next word, or the first of a translation. kind:
    "fills", "goes on" or "translates"."""
    return {
        "fills": f"prediction for the masked “{literal(word)}”",
        "goes on": f"next word after “{literal(word)}”" if word else "first word",
        "translates": "first word of the translation",
    }[kind]


def says(words: Words) -> str:
    """The likeliest words with their probabilities, on a line."""
    (first, p), *rest = words
    more = "".join(f" · “{literal(word)}” {tenths(each)}" for word, each in rest)
    return f"**“{literal(first)}”** {tenths(p)}{more}"


def answers(a: Words, b: Words) -> str:
    """Whether two models predict the same word; where they do not, the probability each gives to
    the other's word, if it is listed."""
    (one, p), (other, q) = a[0], b[0]
    if one == other:
        return f"Both predict “{literal(one)}”: A with {tenths(p)}, B with {tenths(q)}."
    back, forth = dict(a).get(other), dict(b).get(one)
    beside = [
        f"{who} gives “{literal(word)}” {tenths(each)}"
        for who, word, each in (("B", one, forth), ("A", other, back))
        if each is not None
    ]
    more = f" {'; '.join(beside)}." if beside else ""
    return (
        f"A predicts “{literal(one)}” ({tenths(p)}), B predicts “{literal(other)}” "
        f"({tenths(q)}).{more}"
    )
