"""Offers in words: what there is to do, and what is known to happen then. In Markdown, words of the
text escaped."""

from __future__ import annotations

from collections.abc import Callable

from explorer.analysis import offers
from explorer.analysis.offers import Offer
from explorer.text.findings import FEW, Mark, marked
from explorer.wording.markdown_escape import literal
from explorer.wording.templates import sentences

CONCEPT = "offers"


def what(offer: Offer, mark: Mark = marked) -> str:
    """The offer in words: "Take out L1 H7, which reads *cold*"."""
    words = sentences(CONCEPT, offer.kind)
    if offer.kind == offers.HEAD:
        slots = {"layer": offer.layer, "head": offer.head}
        if not offer.reads:
            return words("title", **slots)
        return words("title_reads", reads=mark(offer.reads), **slots)
    if offer.kind == offers.WORD:
        return words("title", word=mark(offer.old))
    if offer.kind == offers.PATCH:
        return words("title", layer=offer.layer, head=offer.head, new=mark(offer.new))
    if offer.kind in (offers.CHANGE, offers.BOTH):
        return words("title", old=mark(offer.old), new=mark(offer.new))
    return words("title", second=literal(offer.new))


def result(offer: Offer, mark: Mark = marked) -> str:
    """The measured result in words: "All three heads move to *waiter*."."""
    words = sentences(CONCEPT, offer.kind)
    return RESULTS[offer.kind](offer, mark, words)


def _turned(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    first, second, *_ = offer.guesses
    slots = {"first": mark(first.word), "second": mark(second.word)}
    before, after = (f"{100 * each:.0f}" for each in (second.before, second.after))
    name = "result" if offer.word else "result_next"
    return words(name, before=before, after=after, **slots)


def _without(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    first, second, *_ = (mark(each.word) for each in offer.guesses)
    return words("result", word=mark(offer.old), first=first, second=second)


def _moved(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    now = offer.votes[1]
    heads, noun = FEW[len(now.nouns)], mark(now.noun)
    if now.n_votes == len(now.nouns):
        return words("all", heads=heads, noun=noun)
    return words("some", votes=FEW[now.n_votes].capitalize(), heads=heads, noun=noun)


def _disagree(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    noun, other = (mark(each.noun) for each in offer.votes)
    models = {"first": literal(offer.old), "second": literal(offer.new)}
    return words("result", word=mark(offer.word), noun=noun, other=other, **models)


def _of_both(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    noun, other = (mark(each.noun) for each in offer.votes)
    return words("agree" if noun == other else "disagree", noun=noun, other=other)


def _of_third(offer: Offer, mark: Mark, words: Callable[..., str]) -> str:
    return words("result", noun=mark(offer.votes[0].noun), word=mark(offer.word))


RESULTS = {
    offers.HEAD: _turned,
    offers.WORD: _without,
    offers.PATCH: _turned,
    offers.CHANGE: _moved,
    offers.MODELS: _disagree,
    offers.BOTH: _of_both,
    offers.THIRD: _of_third,
}
