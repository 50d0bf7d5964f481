"""The panel on what is known to change an answer, for a reader to try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from explorer.analysis import offers, opening
from explorer.analysis.offers import BOTH, CHANGE, HEAD, MODELS, PATCH, THIRD, WORD, Offer
from explorer.analysis.shared_votes import shared_votes
from explorer.figures.kinds import TextTable
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.compare import voting_run
from explorer.panels.selection import FirstAttention, HeadIfAny, LayerIfAny, select
from explorer.panels.spec import Panel
from explorer.text import offers as offers_text
from explorer.text.findings import quoted
from explorer.wording.markdown_escape import plain
from explorer.wording.templates import Sentences, sentences
from models.runtime.run import Run

# Where each kind is seen, beside the words of its address.
PLACES = {
    CHANGE: {},
    HEAD: {"tab": "edit"},
    WORD: {"tab": "edit"},
    PATCH: {"tab": "edit"},
    MODELS: {"tab": "compare", "compare": "Model"},
    BOTH: {"tab": "compare", "compare": "Model"},
    THIRD: {"tab": "compare", "compare": "Model"},
}


@spec.predicts
@spec.panel
def what_changes(
    run: Run,
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """Changes that are known to alter what a model says of a text: words to change, a head or a
    word to take out, another model that disagrees. Each was measured before it is told. A press
    shows it.

    layer, head: the head that is on show, which alone is offered to be taken out; any head where
    None. Without a row where nothing changes it enough.
    """
    words = sentences("offers", "what_changes")
    if layer is None or head is None:
        every = offers.offers(run, () if run.edits else opening.voting_beside(run))
    else:
        on = select(run, layer, head, attention=attention)
        every = offers.of_head(on.recording, on.attention.name, on.layer, on.head)
    return _panel_of_offers(words, every, words.lines("details"), "offers")


@spec.predicts
@spec.panel
def between_models(
    run: Run, other: Annotated[Run | None, Choice(made_by=voting_run)] = None
) -> Panel:
    """Changes that are known to alter what two models say of a pronoun: other words of the text,
    and what a third model says. Each was measured before it is told. A press shows it.

    other: the same text in another model, the `voting_run` where None. Without a row where they
    vote on no pronoun together, and where nothing was found.
    """
    other = voting_run(run) if other is None else other
    words = sentences("offers", "between_models")
    on = opening.compared_vote(shared_votes(run.recording(), other.recording()))
    third = opening.voting_beside(run)
    every = () if on is None else offers.between(run, other.model, on, third)
    return _panel_of_offers(words, every, (), "offers-models")


def _panel_of_offers(
    words: Sentences, every: Sequence[Offer], details: tuple[str, ...], file: str
) -> Panel:
    """Offers as a table, without rows and figures where there are none."""
    columns = sentences("offers", "what_changes")
    tries = [plain(offers_text.what(each, quoted)) for each in every]
    results = [plain(offers_text.result(each, quoted)).rstrip(".") + "." for each in every]
    addresses = [address(each) for each in every]
    return Panel(
        title=words("title"),
        finding=f"{tries[0]}: {results[0]}" if every else words("none"),
        figures=(
            TextTable(
                select=("address",),
                columns=(columns("try"), columns("result")),
                rows=tuple(zip(tries, results)),
                keys=tuple((each,) for each in addresses),
            ),
        )
        if every
        else (),
        table={
            "kind": [each.kind for each in every],
            "try": tries,
            "result": results,
            "address": addresses,
        },
        details=details,
        file=file,
    )


def address(offer: Offer) -> str:
    """The words of an address that shows an offer, as a query."""
    named = dict(offer.address)
    if "model" in named:
        named["other_model"] = named.pop("model")
    return urlencode(PLACES[offer.kind] | named)
