"""What a mask hides from a word stands in no list of what that word reads: in no sentence, no row
of bars and of a table, of a decoder, of an encoder under a mask and under a window."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from conftest import in_turn, needs_smollm2
from ordinary_sentences import SENTENCES
from test_numbers_agree import parts

from explorer.figures.kinds import Bars, Strips
from explorer.panels import spec
from explorer.panels.spec import Panel
from models.contract.edits import Window, WithMask
from models.runtime.run import Run

pytestmark = [pytest.mark.slow, pytest.mark.in_turn]
NOTHING = {"0.00", "+0.00", "−0.00", "0%", "0.0%", "0"}
GIVEN = {"weight", "share", "contribution"}  # what a row of a table says of a key
NAMES = ("key", "token", "word", "source")
# Scores before the mask, all pairs of words, what is exchanged word by word, and a norm over all.
OF_ALL_WORDS = {"circuits.circuits", "soft_lookup.scoring", "stages.exchanged"}
OF_ALL_WORDS |= {"residual.batch_norm"}
TEXTS = in_turn(SENTENCES[:40], 20, "hidden words")
RUNS = [
    *((Run("decoder", text), at) for text, at in product(TEXTS, (1, 3))),
    *((Run("encoder", text, (WithMask(),)), 2) for text in TEXTS[:2]),
    *((Run("encoder", text, (Window(2),)), 4) for text in TEXTS[:2]),
    *((Run("translator", text), 2) for text in TEXTS[:1]),
]


def hidden_words(run: Run, token: int) -> set[str]:
    """The words that the mask hides from a token of the last text, wherever they stand in it; a
    word of the source, which all of a target reads, is none."""
    attention = next(
        each for each in run.recording().attention if each.query == each.key == names(run)
    )
    seen = attention.reachable[min(token, len(attention.reachable) - 1)]
    *sources, stream = run.recording().streams
    tokens = np.array(stream.tokens)
    read = {*tokens[seen], *(token for source in sources for token in source.tokens)}
    return {each for each in set(tokens[~seen]) - read if any(map(str.isalpha, each))}


def names(run: Run) -> str:
    return run.recording().streams[-1].name


def listed(panel: Panel) -> Iterator[tuple[str, list[str]]]:
    """The names in a panel's lists, each with the numbers beside it."""
    for each in parts(panel.figures):
        if isinstance(each, Bars):
            for row in each.rows:
                yield re.sub(r"^\d+ ", "", row.label), list(row.texts)
        if isinstance(each, Strips):
            for strip in each.strips:
                weight, _, key = strip.label.partition(" × v of ")
                yield key.strip("“”"), [weight]
    columns = [name for name in NAMES if name in panel.table]
    given = [name for name in panel.table if name in GIVEN or name.startswith("weight at")]
    if "allowed" in panel.table or not given:  # the table says what the mask hides
        return
    for at in range(len(panel.table[given[0]])):
        for name in columns:
            numbers = [panel.table[each][at] for each in given]
            told = ["0" if each is not None and not each else "1" for each in numbers]
            yield re.sub(r"^\d+ ", "", str(panel.table[name][at])), told


def named_and_hidden(panel: Panel, hidden: set[str]) -> list[str]:
    """The hidden words that lists of a panel name with nothing beside them."""
    found = [name for name, beside in listed(panel) if name in hidden and set(beside) <= NOTHING]
    said = re.findall(r"([^\s,]+) [+−]?0\.00(?!\d)", panel.finding)
    return found + [each for each in said if each in hidden]


@pytest.mark.parametrize(("run", "token"), RUNS, ids=lambda each: getattr(each, "text", each))
def test_no_list_names_what_the_mask_hides(run: Run, token: int) -> None:
    lists_name_what_is_seen(run, token)


@needs_smollm2
def test_no_list_of_a_deep_decoder_names_what_the_mask_hides() -> None:
    of = ("attention.head", "attribution.carriers", "summaries.aggregated")
    run = Run("smollm2", "The old man sat by the river.")
    lists_name_what_is_seen(run, 2, (*of, "soft_lookup.temperature", "generation.attention"))


def lists_name_what_is_seen(run: Run, token: int, only: tuple[str, ...] = ()) -> None:
    hidden, read = hidden_words(run, token), 0
    name = next(each.name for each in run.recording().attention if each.query == names(run))
    first = "" if name == run.recording().attention[0].name else name
    for panel in only or spec.panel_names():
        function = spec.PANELS[panel]
        choices = {"layer": 1, "head": 2, "token": token, "attention": first}
        known = inspect.signature(function).parameters
        if "token" not in known or panel in OF_ALL_WORDS:
            continue
        try:
            made = function(run, **{key: each for key, each in choices.items() if key in known})
        except ValueError:
            continue
        assert not (found := named_and_hidden(made, hidden)), (made.call, found, made.finding)
        read += 1
    assert read >= (len(only) - 1 or 15)
