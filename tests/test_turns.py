"""The parts of a law's cases that `make test` takes each day."""

from __future__ import annotations

import conftest
import pytest


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
def test_every_case_has_its_turn_once(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [f"case {at}" for at in range(17)]
    monkeypatch.setattr(conftest, "EVERY", False)
    days = []
    for day in range(parts):
        monkeypatch.setattr(conftest, "DAY", 739_000 + day)
        days += [conftest.in_turn(cases, parts, "a law")]
    assert sorted(case for day in days for case in day) == sorted(cases)
    assert max(map(len, days)) - min(map(len, days)) <= 1
    assert all(list(day) == [case for case in cases if case in day] for day in days), "in order"
    monkeypatch.setattr(conftest, "EVERY", True)
    assert conftest.in_turn(cases, parts, "a law") == cases
