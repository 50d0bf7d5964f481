"""What an operator may set: read from the environment, within bounds, and never a limit lost to a
slip."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import uvicorn

from explorer.app.state.settings import BOUNDS, PREFIX, Settings, from_environment

ROOT = Path(__file__).resolve().parent.parent


def test_what_is_not_set_is_as_documented() -> None:
    assert from_environment({}) == from_environment({"HEADLIGHT_MAX_CHARS": " "}) == Settings()
    for name, (least, most) in BOUNDS.items():
        assert least <= getattr(Settings(), name) <= most


def test_the_readme_lists_every_setting_with_what_it_is_by_itself() -> None:
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| .+ \| (.+) \|$",
        (ROOT / "deploy" / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )
    told = {name: value.replace(",", "") for name, value in rows}
    nothing = {False: "off", (): "none"}
    for field in fields(Settings):
        itself = getattr(Settings(), field.name)
        said = told.pop(f"{PREFIX}{field.name.upper()}")
        if itself and type(itself) is tuple:
            assert said == " ".join(itself), field.name
        elif itself == "":
            assert said in ("none", "this process"), field.name
        else:
            assert said == (str(itself) if type(itself) is int else nothing[itself]), field.name
    believed = uvicorn.Config(None).forwarded_allow_ips
    assert told.pop("FORWARDED_ALLOW_IPS") == str(believed).replace(",", " ")
    assert told.pop("STREAMLIT_SERVER_COOKIE_SECRET") == "each its own"
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))["server"]
    assert told == {
        "STREAMLIT_SERVER_MAX_MESSAGE_SIZE": str(config["maxMessageSize"]),
        "STREAMLIT_SERVER_MAX_WIDGET_STATE_SIZE": str(config["maxWidgetStateSize"]),
    }


def test_every_setting_is_read_by_its_name() -> None:
    given = {
        "HEADLIGHT_MAX_CHARS": "5_000",
        "HEADLIGHT_MAX_SESSIONS": "40",
        "HEADLIGHT_MAX_SECONDS": "30",
        "HEADLIGHT_MAX_MODELS": "3",
        "HEADLIGHT_CACHE_BYTES": "1000000000",
        "HEADLIGHT_WORK_BYTES": "2000000000",
        "HEADLIGHT_PUBLIC": "yes",
        "HEADLIGHT_MODELS": "encoder, minilm,",
        "HEADLIGHT_LIVE": "0",
        "HEADLIGHT_FRAMES": "https://*.school.example, http://127.0.0.1:8080",
        "HEADLIGHT_METRICS": "10.0.0.0/8,fd00::1",
    }
    assert from_environment(given) == Settings(
        5000,
        40,
        30,
        3,
        10**9,
        2 * 10**9,
        True,
        ("encoder", "minilm"),
        0,
        ("https://*.school.example", "http://127.0.0.1:8080"),
        ("10.0.0.0/8", "fd00::1"),
    )


SLIPS = (
    *("MAX_CHARS=many", "MAX_CHARS=5", "MAX_SESSIONS=-1", "MAX_SECONDS=0", "MAX_MODELS=²"),
    *("CACHE_BYTES=1e9", "PUBLIC=perhaps", "CLUSTER=10.0.0.5:8000", "METRICS=10.0.0.5/8"),
    *("FRAMES=moodle.example", "FRAMES=https://a.example; script-src *", "FRAMES=*"),
)


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_told_by_its_name(slip: str) -> None:
    name, _, value = slip.partition("=")
    with pytest.raises(ValueError, match=f"HEADLIGHT_{name}"):
        from_environment({f"HEADLIGHT_{name}": value})


def test_streamlit_collects_nothing_after_a_run() -> None:
    """It would walk everything that is loaded after each click; `collector` does it when nobody
    waits."""
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text("utf-8"))
    assert config["runner"]["postScriptGC"] is False
