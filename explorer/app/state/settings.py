"""Settings of a server: limits on text, time, memory and readers, from variables `HEADLIGHT_...`.

A value that is no number, or is out of its bounds, stops the server at its start with a message, so
that a slip never leaves a limit out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from ipaddress import ip_network
from typing import Any

PREFIX = "HEADLIGHT_"
MAX_FIELD = 200_000  # characters that a text field takes; of them `max_chars` are read
ADDRESSES = {
    "redis": ("redis://", "rediss://", "unix://"),
    "cluster": ("http://", "https://"),
    "address": ("https://", "http://"),
}
YES, NO = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def _is_network(part: str) -> bool:
    try:
        return bool(ip_network(part))
    except ValueError:
        return False


# What each part of a setting with commas must be.
PARTS: dict[str, tuple[Callable[[str], object], str]] = {
    "frames": (
        re.compile(r"https?://(\*\.)?[\w-]+(\.[\w-]+)*(:\d+)?", re.ASCII).fullmatch,
        "a site is https:// and a host, without a path",
    ),
    "metrics": (_is_network, "an address or a network is written as 10.0.0.0/8"),
}


@dataclass(frozen=True)
class Settings:
    """Limits of this server. Each field is read from `HEADLIGHT_` and its name in capitals.

    `max_chars`: characters of a text that are read. `max_sessions`: readers at once. `max_seconds`:
    of one long computation.
    `max_models`: pretrained models in memory at once. `cache_bytes`: of what has been computed.
    `work_bytes`: that one view may take beside, while others wait.
    `live`: small models that readers train at once, 0 for none. `public`: strangers use this
    server, so they choose among `models` and open none of their own. `models`: names that are
    offered beside the shipped ones, with commas between them. `redis`: where classes are kept when
    several processes serve, as redis://host:port/number; "" for this process. `cluster`: where
    replicas answer for models too large for this machine, their HTTP address; "" for none.
    `frames`: sites that may show the app in a frame of theirs, beside its own. `metrics`: who may
    read `/metrics` and `/healthz`, as addresses and networks. `address`: where readers find the
    app, its scheme, host and path, so that a shared link carries a title and a picture; "" for no
    such.
    `recording`: the file of a recording that a visit opens on; "" for the shipped models alone.
    """

    max_chars: int = 20_000
    max_sessions: int = 200
    max_seconds: int = 120
    max_models: int = 4
    cache_bytes: int = 320 * 2**20  # room for one recording of smollm2 at 253 tokens, 262 MiB
    work_bytes: int = 2**30
    public: bool = False
    models: tuple[str, ...] = ()
    live: int = 1
    frames: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("127.0.0.1", "::1")
    redis: str = ""
    cluster: str = ""
    address: str = ""
    recording: str = ""


# The least and the most that each number may be.
BOUNDS = {
    "max_chars": (100, 10_000_000),
    "max_sessions": (1, 100_000),
    "max_seconds": (1, 86_400),
    "max_models": (1, 100),
    "cache_bytes": (2**20, 2**44),
    "work_bytes": (2**20, 2**44),
    "live": (0, 64),
}


def from_environment(environ: Mapping[str, str]) -> Settings:
    """Settings from environment variables. Raises ValueError, naming the variable, for a value that
    cannot be."""
    values: dict[str, Any] = {}
    for field in fields(Settings):
        value = environ.get(f"{PREFIX}{field.name.upper()}", "").strip()
        if value:
            values[field.name] = _parse(field.name, value, getattr(Settings, field.name))
    return Settings(**values)


def _parse(name: str, value: str, default: object) -> object:
    statement = f"{PREFIX}{name.upper()} is {value!r}"
    if isinstance(default, bool):
        if value.lower() not in (*YES, *NO):
            raise ValueError(f"{statement}; it is yes or no.")
        return value.lower() in YES
    if isinstance(default, str):
        if name in ADDRESSES and not value.startswith(ADDRESSES[name]):
            scheme = ADDRESSES[name][0]
            raise ValueError(f"{PREFIX}{name.upper()} is no address; one begins with {scheme}.")
        return value
    if isinstance(default, tuple):
        parts = tuple(part.strip() for part in value.split(",") if part.strip())
        check, form = PARTS.get(name, (lambda part: True, ""))
        if wrong := next((part for part in parts if not check(part)), ""):
            raise ValueError(f"{PREFIX}{name.upper()} has {wrong!r}; {form}.")
        return parts
    least, most = BOUNDS[name]
    digits = value.replace("_", "")
    if not digits.isascii() or not digits.isdecimal() or not least <= int(digits) <= most:
        raise ValueError(f"{statement}; it is a whole number from {least:,} to {most:,}.")
    return int(digits)


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this server, read once."""
    return from_environment(os.environ)


def truncate(text: str) -> str:
    """The text cut to this server's limit of characters, before it is split into tokens. Tokens of
    a million characters would take seconds."""
    return text[: settings().max_chars]
