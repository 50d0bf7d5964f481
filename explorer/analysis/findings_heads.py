"""What the heads of an attention do taken together: the crowd, and the head that finds what was
said before."""

from __future__ import annotations

import numpy as np

from explorer.analysis.finding import CROWD, INDUCTION, SAME_WORD, Finding
from explorer.analysis.findings_links import FILLERS, Between
from explorer.analysis.heads import NAMED
from models import relations
from models.recording import Attention, Recording

MANY = 5  # repeated words that make a repetition sure
MOST_OF_IT = 0.5  # of a row's attention, on average over the rows: a head that gives it rests there
# In the order in which a head is put into one: what is said of each stands in
# explorer/sentences/findings.py.
RESTS = ("special", "first", "punctuation", "back", "ahead", "self")


def rests(recording: Recording, attention: Attention) -> np.ndarray:
    """Where each head rests, (layer, head): a number of RESTS where it gives more than half of its
    attention there on average over the rows that have a choice, -1 where it does so nowhere.

    special: the special tokens. first: the text's first token, in a text that begins with no
    special one. punctuation: with the special tokens. back, ahead: the token one before, one after.
    self: the token itself. The last three within one text alone.
    """
    keys = recording.stream(attention.key)
    special = np.asarray(keys.special, bool)
    marks = special | np.array([relations.is_punctuation(token) for token in keys.tokens])
    choice = attention.allowed.sum(axis=1) > 1
    rows = np.flatnonzero(choice)
    if not len(rows) or special.all():
        return np.full(attention.pattern.shape[:2], -1)
    first = (np.arange(len(special)) == 0) & ~special
    by_key = attention.received / len(rows)
    shares = by_key @ np.array((special, first, marks), by_key.dtype).T
    if attention.query == attention.key:
        n = len(keys.tokens)
        # Rows of special tokens say nothing of an order of words.
        plain = rows[~special[rows]] if (~special[rows]).any() else rows
        at = plain + np.array((-1, 1, 0))[:, None]
        there = (at >= 0) & (at < n)
        at[~there] = 0
        there &= attention.allowed[plain, at]
        beside = (attention.pattern[:, :, plain, at] * there).sum(axis=-1)
        shares = np.concatenate((shares, beside / np.maximum(there.sum(axis=-1), 1)), axis=-1)
    most = shares > MOST_OF_IT
    return np.where(most.any(axis=-1), most.argmax(axis=-1), -1)


def crowd(recording: Recording, attention: Attention, resting: np.ndarray) -> Finding | None:
    """How many heads rest where. The head a page opens on is one that rests nowhere, else one that
    looks a place back or ahead; the one that shows the crowd is of those that are most. None where
    all rest nowhere."""
    numbers = np.bincount(resting.ravel() + 1, minlength=len(RESTS) + 1)[1:].tolist()
    counts = tuple((name, number) for name, number in zip(RESTS, numbers) if number)
    if not counts:
        return None
    total = resting.size
    first = -1
    if total == sum(numbers):
        order = [
            RESTS.index(name)
            for name in ("back", "ahead", "punctuation", "special", "first", "self")
        ]
        first = next(at for at in order if numbers[at])
    layer, head = divmod(int((resting == first).argmax()), resting.shape[1])
    most = max(number for _, number in counts)
    common = RESTS.index(max(counts, key=lambda each: each[1])[0])
    shown = divmod(int((resting == common).argmax()), resting.shape[1])
    keys = recording.stream(attention.key)
    special = tuple(dict.fromkeys(keys.tokens[at] for at in np.flatnonzero(keys.special)))
    return Finding(
        CROWD,
        float(sum(number for _, number in counts)),
        # An even row gives no place more than half of its attention.
        0.0,
        0.3 + 0.1 * most / total,
        attention.name,
        layer,
        head,
        total,
        words=special,
        counts=counts,
        shown=shown,
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
            np.where(mask, seen.weights[layer, head], -1).argmax(), mask.shape
        )
        query, token = seen.tokens(layer, head, int(row), int(key))
        # Few repeats are soon told: words that fill every text are repeated in any.
        much = min(1.0, sum(labels[one].casefold() not in FILLERS for one in rows) / MANY)
        found.append(
            Finding(
                kind,
                value,
                chance,
                lift * (0.4 + much) * (1 if kind == INDUCTION else 0.9),
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
