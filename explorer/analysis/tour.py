"""The tour's steps: what each shows of the sentence and model on screen, a function a step, by the id that it has in tour.toml."""

from __future__ import annotations

from collections.abc import Callable

from explorer.analysis import tour_heads
from explorer.analysis.plates import Shown
from explorer.analysis.tour_seen import Seen

MEASURES: dict[str, Callable[[Seen], Shown]] = {
    "lookup": tour_heads.lookup,
    "qkv": tour_heads.query_key_value,
}
