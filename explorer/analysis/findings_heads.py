"""What the heads of an attention do taken together: the crowd, and the head that finds what was
said before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from explorer.analysis import heads as naming
from explorer.analysis import vocabulary
from explorer.analysis.finding import CROWD, INDUCTION, REGULARITY, SAME_WORD, SHORT, Finding
from explorer.analysis.findings_links import (
    APART,
    AWAKE,
    BETWEEN_CONTENT,
    FILLER,
    WORTH,
    Between,
)
from explorer.analysis.heads import NAMED
from models import relations
from models.recording import Attention, Recording

MANY = 5  # repeated words that make a repetition sure
REGULAR = 10.0  # a habit of place stands behind links of nouns and other words of content
BY_PLACE = ("previous", "next", "self", "diagonal", "anti-diagonal")
SETTLED_BY_PLACE = (naming.SINK, *BY_PLACE)


def crowd(
    named: Sequence[naming.Head], recording: Recording, attention: Attention
) -> Finding | None:
    """How many heads have which name. The head a page opens on is one without a habit, else one of
    the rarest; the one that shows the crowd is of those that are most. None where no head has a
    name."""
    counts = Counter(one.name for one in named if one.name in SETTLED_BY_PLACE)
    if not counts:
        return None
    common = counts.most_common(1)[0][0]
    free = [one for one in named if one.name not in counts]
    rarest = min(counts, key=lambda name: (name == naming.SINK, counts[name]))
    first = next(iter(free), None) or next(one for one in named if one.name == rarest)
    shown = next(one for one in named if one.name == common)
    keys = recording.stream(attention.key)
    special = tuple(dict.fromkeys(keys.tokens[at] for at in np.flatnonzero(keys.special)))
    first_token = () if keys.special[:1].any() else ("the first token",)
    return Finding(
        CROWD,
        float(sum(counts.values())),
        0.0,
        0.3 + 0.1 * counts[common] / len(named),
        attention.name,
        first.layer,
        first.head,
        len(named),
        words=first_token + special,
        counts=tuple(counts.most_common()),
        shown=(shown.layer, shown.head),
    )


def too_short(named: Sequence[naming.Head], recording: Recording) -> Finding | None:
    """That a text has too few tokens for names, value how many it has; None for one that has enough
    and for one without words."""
    stream = recording.streams[0]
    if named[0].name != naming.TOO_SHORT or stream.special.all():
        return None
    attention = recording.attention[0].name
    n, least = len(stream.tokens), naming.FEWEST_TOKENS
    return Finding(SHORT, float(n), float(least), 0.1, attention, 0, 0, len(named))


def regularity(named: Sequence[naming.Head], attention: Attention) -> Finding | None:
    """The head that follows its name furthest beyond an even row: a habit of place, not a sink and
    no repetition, which is told of itself. That a token attends to itself is told where there is
    nothing else. value and chance: the score and chance of its name."""
    by_place = [one for one in named if one.name in BY_PLACE]

    def rank(one: naming.Head) -> tuple[bool, float]:
        return one.name != "self", naming.lift(one.score, one.chance)

    best = max(by_place, key=rank, default=None)
    if best is None:
        return None
    return Finding(
        REGULARITY,
        best.score,
        best.chance,
        REGULAR + naming.lift(best.score, best.chance),
        attention.name,
        best.layer,
        best.head,
        len(named),
        words=(best.name,),
        also=sum(one.name == best.name for one in by_place) - 1,
        counts=(("shown", best.n_shown), ("rows", best.n_queries)),
    )


def repeated(seen: Between) -> list[Finding]:
    """The heads that find what was said before: one where a word looks at what followed it the
    first time, one where it looks at itself elsewhere.

    Between words, so that pieces of different words are no repetition. value and chance as
    `heads.Relation` has score and chance, over the words that can show it, whose number is counts.
    """
    attention, labels = seen.attention, seen.keys.labels
    masks = relations.repeats(labels, seen.keys.special)
    found = []
    of_rows, of_keys = (
        (one == vocabulary.CONTENT) | (one == vocabulary.UNSURE) for one in seen.classes
    )
    for kind in (INDUCTION, SAME_WORD):
        mask = masks[kind] & seen.allowed
        rows = np.flatnonzero(mask.any(axis=1))
        if len(rows) < 2:
            continue
        chance = float((mask[rows].sum(axis=1) / seen.allowed[rows].sum(axis=1)).mean())
        mass = relations.mass(seen.weights, mask)
        score = mass.mean(axis=-1)
        layer, head = (int(one) for one in np.unravel_index(score.argmax(), score.shape))
        value = float(score[layer, head])
        lift = (value - chance) / max(1 - chance, 1e-9)
        # One lucky row would not do: more than half of them show it.
        if lift < NAMED or 2 * int((mass[layer, head] > NAMED).sum()) <= len(rows):
            continue
        row, key = np.unravel_index(
            (np.where(mask, seen.weights[layer, head], -1) + (of_rows[:, None] & of_keys)).argmax(),
            mask.shape,
        )
        query, token = seen.tokens(layer, head, int(row), int(key))
        # Few repeats are soon told: words that fill every text are repeated in any.
        plain = int(of_rows[rows].sum())
        much = min(1.0, plain / MANY)
        found.append(
            Finding(
                kind,
                value,
                chance,
                WORTH[BETWEEN_CONTENT if much else FILLER]
                + AWAKE
                + APART
                + lift * (0.4 + much) * (1 if kind == INDUCTION else 0.9),
                attention.name,
                layer,
                head,
                attention.pattern.shape[0] * attention.pattern.shape[1],
                query,
                (token,),
                (labels[row], labels[key]),
                int((score > NAMED).sum()) - 1,
                counts=(("rows", len(rows)),),
            )
        )
    return found
