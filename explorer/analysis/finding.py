"""What a finding is: one statement about one recording, with its evidence, its chance and the
address that shows it."""

from __future__ import annotations

from dataclasses import dataclass

# The kinds. LINKS are those that tie words to words; they are told of trained weights alone, see
# `findings_links.fit`.
LINK, NEAR_LINK, INDUCTION, SAME_WORD = "link", "near link", "induction", "same word"
CROSSED, ALIGNED, SAID_BY_TWO, LEFT_OUT = "crossed", "aligned", "said by two", "left out"
CROWD, SETTLED, PUSHED, TURNED, MOVED = "crowd", "settled", "pushed", "turned", "moved"
REGULARITY, SHORT = "regularity", "short"
LINKS = (LINK, NEAR_LINK, INDUCTION, SAME_WORD, CROSSED, ALIGNED, SAID_BY_TWO, LEFT_OUT)


@dataclass(frozen=True)
class Finding:
    """One statement about one recording.

    kind: one of those above. value: the number that is stated, in the unit of its kind (a weight,
    degrees, a count of heads, a layer, a logit), and chance: what it is held against, which of
    links is the largest weight that another row of the head gives the same key. score: what
    findings are ranked by, no more than an order. attention, layer, head:
    where it is seen, "" and -1 where it is no head's; `of` how many heads there are. query: a token
    of the rows' stream and keys: tokens of the columns'; words: what these are called, the query's
    first, subwords merged into words. also: how many other heads show it too. site: a name of the
    residual stream, or the kind of a part that pushed. counts: parts of a sum, (name, number).
    shown: the head (layer, head) whose picture is the evidence, where that is another than the one
    a page would open on. retype: a word of the text, and another that would test the finding. page
    and address: where it is seen, by a page's file and the choices of the address bar as (name,
    value).
    """

    kind: str
    value: float
    chance: float
    score: float
    attention: str = ""
    layer: int = -1
    head: int = -1
    of: int = 0
    query: int = -1
    keys: tuple[int, ...] = ()
    words: tuple[str, ...] = ()
    also: int = 0
    site: str = ""
    counts: tuple[tuple[str, int], ...] = ()
    shown: tuple[int, ...] = ()
    retype: tuple[str, str] = ("", "")
    page: str = "attention"
    address: tuple[tuple[str, str], ...] = ()

    @property
    def at(self) -> tuple[int, int]:
        """(layer, head)."""
        return self.layer, self.head
