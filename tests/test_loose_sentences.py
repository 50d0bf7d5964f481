"""Sentences that said more than the numbers: each is read off the page as a reader sees it."""

from __future__ import annotations

from math import pi

from explorer.analysis.formatting import with_unit
from explorer.panels import positions
from explorer.state.cache import Run
from models.example_texts import EXAMPLES

TEXT = "The animal didn't cross the street because it was too tired."


def test_the_slowest_pair_turns_as_far_as_is_said() -> None:
    details = positions.encoding(Run("encoder", TEXT), 512, 256).details
    turn = 360 * 511 / (2 * pi * 10000 ** (254 / 256))
    assert any(f"{turn:.4g}°" in line for line in details)


def test_one_nat_is_one_nat() -> None:
    assert with_unit(1.0, " nats") == "1 nat" and with_unit(2.0, " nats") == "2 nats"


def test_a_sentence_that_is_offered_ends() -> None:
    assert EXAMPLES["Pizza"] == "I love to eat pizza.", (
        "without a full stop the answer is a full stop"
    )
