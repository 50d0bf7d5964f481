"""What an operator may set: read from the environment, within bounds, and never a limit lost to a
slip."""

from __future__ import annotations

import pytest

from explorer.memory.settings import BOUNDS, Settings, read


def test_what_is_not_set_is_as_documented() -> None:
    assert read({}) == read({"HEADLIGHT_MAX_CHARS": " "}) == Settings()
    for name, (least, most) in BOUNDS.items():
        assert least <= getattr(Settings(), name) <= most


def test_every_setting_is_read_by_its_name() -> None:
    given = {
        "HEADLIGHT_MAX_CHARS": "5_000",
        "HEADLIGHT_MAX_SESSIONS": "40",
        "HEADLIGHT_MAX_SECONDS": "30",
        "HEADLIGHT_MAX_MODELS": "3",
        "HEADLIGHT_SHELF_BYTES": "1000000000",
        "HEADLIGHT_PUBLIC": "yes",
        "HEADLIGHT_MODELS": "encoder, minilm,",
        "HEADLIGHT_LIVE": "0",
    }
    assert read(given) == Settings(5000, 40, 30, 3, 10**9, True, ("encoder", "minilm"), 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_CHARS", "many"),
        ("MAX_CHARS", "5"),
        ("MAX_SESSIONS", "-1"),
        ("MAX_SECONDS", "0"),
        ("SHELF_BYTES", "1e9"),
        ("PUBLIC", "perhaps"),
        ("MAX_MODELS", "²"),
        ("CLUSTER", "10.0.0.5:8000"),
    ],
)
def test_a_slip_is_told_by_its_name(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"HEADLIGHT_{name}"):
        read({f"HEADLIGHT_{name}": value})
