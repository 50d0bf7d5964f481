"""The page on how far recordings lie from transformers' own code: two families are measured as its
command does, and what stands there is below what tests allow."""

from __future__ import annotations

import json

import pytest
from tolerances import PASSED, SUMMED

from docs import families
from models.pretrained.weight_conversion import CONVERSIONS, SUPPORTED_FAMILIES

BOUNDS = {"attention": SUMMED, "hidden states": PASSED, "logits": PASSED}
KEPT = json.loads(families.DATA.read_text("utf-8"))


def expect_below(measured: dict[str, dict[str, dict[str, float]]]) -> None:
    for family, ways in measured.items():
        assert set(ways) == {"own code", *["Headlight's classes"] * (family in CONVERSIONS)}
        for way, by_kind in ways.items():
            for kind, bound in BOUNDS.items():
                assert by_kind[kind] < bound, (family, way, kind)


@pytest.mark.slow
@pytest.mark.parity
def test_two_families_measured_now_are_below_the_bounds() -> None:
    expect_below(families.measured(["distilbert", "bart"]))


def test_the_page_has_every_family_below_the_bounds() -> None:
    assert list(KEPT["families"]) == [each.model_type for each in SUPPORTED_FAMILIES]
    expect_below(KEPT["families"])
    assert families.document(KEPT) == families.PAGE.read_text("utf-8")
    assert set(KEPT["versions"]) == set(families.versions())


def test_a_family_that_is_none_gets_a_sentence() -> None:
    with pytest.raises(SystemExit, match="nosuch is none of bert, "):
        families.main(["nosuch"])
