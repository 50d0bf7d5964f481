"""Whether headlines keep their rule on ordinary sentences: `python -m benchmarks.headlines`.

Over the sentences of `headlines.txt` (English, French, German; 3 to 60 words) it counts headlines
that break the rule: a link in which another row of the head gives the same word half or more, or as
much as the link itself; a link with a function word at an end, other than from a pronoun to a noun,
where another link has none; a regularity where such a link was found. The weights between words are
merged here anew, apart from what makes the findings.

`--models a,b` says which models, `--show` prints every headline.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from explorer.analysis import findings, word_classes, words
from explorer.analysis.findings import Finding
from explorer.text import findings as findings_text
from models import registry
from models.recording import Attention, Recording

MODELS = ("encoder", "decoder", "minilm", "translator")
TEXTS = Path(__file__).with_name("headlines.txt")
PAIRS = (
    findings.LINK,
    findings.NEAR_LINK,
    findings.ALIGNED,
    findings.CROSSED,
    findings.SAID_BY_TWO,
)
HALF = 0.5


def texts() -> tuple[str, ...]:
    """The sentences."""
    return tuple(TEXTS.read_text("utf-8").splitlines())


def headline(found: Sequence[Finding]) -> Finding | None:
    """What a page opens on."""
    return next(iter(findings.select_findings(found)), None)


def broken(recording: Recording, found: Sequence[Finding]) -> str:
    """How the headline breaks the rule, "" where it keeps it."""
    one = headline(found)
    if one is None:
        return ""
    plain = [each for each in found if each.kind in PAIRS and not fills(recording, each)]
    if one.kind not in PAIRS:
        told = one.kind in (findings.INDUCTION, findings.SAME_WORD)
        return "a link, but no headline of it" if plain and not told else ""
    for query, key, other in cells(recording, one):
        if other >= HALF:
            return f"another row gives {key} {other:.2f}"
        if other >= one.value:
            return f"another row gives {key} as much as {query}: {other:.2f}"
    if fills(recording, one) and plain:
        return f"a function word, though there is {' > '.join(plain[0].words)}"
    return ""


def cells(recording: Recording, one: Finding) -> Iterator[tuple[str, str, float]]:
    """The pairs of words of a link, each with the largest weight that the head's other rows (than
    those of the link) give its key."""
    attention, rows, keys, matrix = between(recording, one)
    places = [int(keys.of[key]) for key in one.keys]
    first = int(rows.of[one.query])
    n_rows = 2 if one.kind in (findings.CROSSED, findings.SAID_BY_TWO) else 1
    for at, key in enumerate(places):
        own = [first + at] if one.kind == findings.CROSSED else [first + of for of in range(n_rows)]
        others = np.delete(matrix[:, key], own)
        yield rows.labels[own[0]], keys.labels[key], float(others.max(initial=0))


def between(
    recording: Recording, one: Finding
) -> tuple[Attention, words.Groups, words.Groups, np.ndarray]:
    """The attention that a finding is seen in, its words, and the head's weights between them."""
    attention = next(each for each in recording.attention if each.name == one.attention)
    seen = findings.attention_between_words(recording, attention, "", one.at)
    matrix = words.merge_weights(attention.pattern[one.at], seen.rows, seen.keys)
    return attention, seen.rows, seen.keys, matrix


def fills(recording: Recording, one: Finding) -> bool:
    """True for a link with a function word at an end, other than from a pronoun to a noun."""
    _, rows, keys, _ = between(recording, one)
    of_rows, of_keys = (word_classes.classes(each.labels) for each in (rows, keys))
    if one.kind in (findings.CROSSED, findings.SAID_BY_TWO):
        ends = [of_rows[rows.of[one.query] + at] for at in (0, 1)]
        ends += [of_keys[keys.of[key]] for key in one.keys]
        return any(end != word_classes.CONTENT for end in ends)
    row, key = int(rows.of[one.query]), int(keys.of[one.keys[0]])
    # A noun that follows close upon a pronoun (his hands) is not what that stands for.
    noun = word_classes.nouns(keys.labels)[key] and not 0 < key - row < findings.FAR
    if of_rows[row] == word_classes.PRONOUN and noun and one.attention != "cross":
        return False
    return of_rows[row] != word_classes.CONTENT or of_keys[key] != word_classes.CONTENT


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--smallest", action="store_true", help="few short sentences")
    asked = parser.parse_args(argv)
    some = texts()[:3] if asked.smallest else texts()
    for name in asked.models.split(","):
        handle = registry.load(name)
        told: Counter[str] = Counter()
        wrong = 0
        for text in some:
            recording = handle.record(text)
            found = findings.findings(recording)
            one = headline(found)
            told[one.kind if one else "none"] += 1
            if one and one.kind in PAIRS:
                told["of them with a function word"] += fills(recording, one)
            if why := broken(recording, found):
                wrong += 1
                print(f"{name}: {text}\n    {findings_text.headline(one, str)}: {why}")
            elif asked.show:
                print(
                    f"{name}: {text}\n    {findings_text.headline(one, str) if one else 'nothing'}"
                )
        print(f"{name}: {wrong} of {len(some)} headlines break the rule; {dict(told)}")


if __name__ == "__main__":
    main()
