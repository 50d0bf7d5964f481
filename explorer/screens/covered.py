"""The word that a screen asks its reader for: it is told nowhere until it is answered."""

from __future__ import annotations

from collections.abc import Mapping

from explorer.panels import architecture, flow_way, link_words
from explorer.panels.choice import parameters, resolve
from explorer.text.places import Tab
from models.runtime.run import Run

FLOW = "flow"
TOLD = ("flow_beam", "flow_level")  # of the flow, where the question does not stand


def place_on(tab: Tab, run: Run, words: Mapping[str, str]) -> int | None:
    """The place that a screen covers, as `Recording.covering` has it: the one of its address, or
    that which the flow asks for before the light is on; None for none."""
    if (place := place_of(run, words)) is not None:
        return place
    return asked(run, words) if asks_on(tab, words) else None


def asks_on(tab: Tab, words: Mapping[str, str]) -> bool:
    """True for the flow before the light is on."""
    return tab.id == FLOW and not any(map(words.get, TOLD))


def place_of(run: Run, words: Mapping[str, str]) -> int | None:
    """The place that an address covers; None where it says none that is there."""
    word = words.get("covered", "")
    n = len(run.recording().streams[-1].tokens)
    return int(word) if word.isdecimal() and len(word) < 6 and 0 < int(word) <= n else None


def asked(run: Run, words: Mapping[str, str]) -> int | None:
    """The place that the flow asks for under the words of an address, None where it asks for
    nothing."""
    named = link_words.with_key(link_words.followed(run.recording(), words))
    of_flow = {each.name: each for each in parameters(architecture.flow)}
    chosen, _ = resolve((of_flow["token"], of_flow["flow_hide"]), run, named)
    return flow_way.asked_place(run, chosen["token"], chosen["hide"])
