"""The parts of a law's cases, of which `make test` takes one."""

from __future__ import annotations

import conftest
import pytest


@pytest.mark.parametrize("parts", [1, 2, 3, 20])
def test_every_case_is_in_one_part(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [f"case {at}" for at in range(17)]
    monkeypatch.setattr(conftest, "EVERY", False)
    taken = []
    for part in range(parts):
        monkeypatch.setattr(conftest, "PART", part)
        taken += [conftest.in_turn(cases, parts, "a law")]
    assert sorted(case for part in taken for case in part) == sorted(cases)
    assert max(map(len, taken)) - min(map(len, taken)) <= 1
    assert all(list(part) == [case for case in cases if case in part] for part in taken), "in order"
    monkeypatch.setattr(conftest, "EVERY", True)
    assert conftest.in_turn(cases, parts, "a law") == cases
