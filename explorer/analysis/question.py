"""What a question is: one measured fact about a recording, and other numbers of the same recording
beside it that are not it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

# The kinds, in the order in which one of each is asked.
LOOKS, BACK, HEAD, SCALE, TURNED, RECEIVED = "looks", "back", "head", "scale", "turned", "received"
WEIGHT, SPREAD, NEXT, AHEAD, SHARPENED = "weight", "spread", "next", "ahead", "sharpened"
WROTE, NEAREST = "wrote", "nearest"
KINDS = (
    LOOKS,
    BACK,
    SCALE,
    TURNED,
    HEAD,
    NEXT,
    RECEIVED,
    WEIGHT,
    NEAREST,
    SPREAD,
    SHARPENED,
    WROTE,
    AHEAD,
)
# By how much the right answer leads the next at least, in the unit of its kind: a weight or a share
# of attention, words, degrees, a cosine, a probability. Of numbers: how far any two are apart.
LEAST = {
    LOOKS: 0.1,
    HEAD: 0.1,
    WEIGHT: 0.08,
    BACK: 0.15,
    AHEAD: 0.15,
    RECEIVED: 0.03,
    SPREAD: 0.3,
    SCALE: 0.08,
    SHARPENED: 0.08,
    TURNED: 2.0,
    WROTE: 0.01,
    NEAREST: 0.03,
    NEXT: 0.05,
}
FEWEST, MOST = 3, 4  # answers


@dataclass(frozen=True)
class Choice:
    """One answer: a word with its token, a head, or a number; and what was measured of it."""

    value: float
    word: str = ""
    token: int = -1
    head: int = -1
    layer: int = -1

    @property
    def name(self) -> str:
        """As it stands among the answers."""
        if self.word:
            return self.word
        return f"Layer {self.layer}, head {self.head}" if self.head >= 0 else f"{self.value:.2f}"


@dataclass(frozen=True)
class Question:
    """One question about one recording.

    kind: one of KINDS. choices: in the order in which they are shown; right: which is right.
    margin: by how much it leads, see LEAST. attention, layer, head: where it is seen, "" and -1
    where it is no head's. words: what is asked about. token: that word's. site: a sub-layer's.
    value: a number that is said with the question. interest: what questions of a kind are ranked
    by. page and address: where the answer is seen.
    """

    kind: str
    choices: tuple[Choice, ...]
    right: int
    margin: float
    attention: str = ""
    layer: int = -1
    head: int = -1
    words: tuple[str, ...] = ()
    token: int = -1
    key: int = -1
    site: str = ""
    stream: str = ""
    value: float = 0.0
    interest: float = 0.0
    page: str = "attention"
    address: tuple[tuple[str, str], ...] = ()

    @property
    def answer(self) -> Choice:
        """The right one."""
        return self.choices[self.right]


class About(TypedDict, total=False):
    """What a `Question` says besides its answers: fields of it, by name."""

    attention: str
    layer: int
    head: int
    words: tuple[str, ...]
    token: int
    key: int
    site: str
    stream: str
    value: float
    interest: float
    page: str
    address: tuple[tuple[str, str], ...]


def of_most(ranked: list[Choice], kind: str, about: About) -> Question | None:
    """The question which of some has most, from all that could be shown, the most first; None where
    the first does not lead by enough, or there are too few."""
    if len(ranked) < FEWEST or ranked[0].value - ranked[1].value < LEAST[kind]:
        return None
    if len({one.name.casefold() for one in ranked[:MOST]}) < len(ranked[:MOST]):
        return None
    return Question(kind, tuple(ranked[:MOST]), 0, ranked[0].value - ranked[1].value, **about)


def of_numbers(
    right: float, others: list[float], turn: int, kind: str, about: About
) -> Question | None:
    """The question how much something is, among other numbers of the same kind. `turn` says how
    many of these are to be smaller, so that neither the largest nor the smallest is right more
    often; where there are not so many, the question interests less."""
    apart: list[float] = []
    for one in sorted(others, key=lambda each: abs(each - right)):
        if all(abs(one - each) >= LEAST[kind] for each in (right, *apart)):
            apart.append(one)
    low, high = [each for each in apart if each < right], [each for each in apart if each > right]
    wanted = turn % MOST
    below = min(len(low), max(wanted, MOST - 1 - len(high)))
    chosen = [*low[:below], *high[: MOST - 1 - below]]
    if len(chosen) < FEWEST - 1:
        return None
    margin = min(abs(one - right) for one in chosen)
    choices = (Choice(right), *map(Choice, chosen))
    made = Question(kind, choices, 0, margin, **about)
    fits = below == wanted and len(chosen) == MOST - 1
    return made if fits else replace(made, interest=made.interest - 1)
