"""The tour's steps: what each shows of the sentence and model on screen, a function a step, by the
id that it has in tour.toml."""

from __future__ import annotations

from collections.abc import Callable

from explorer.analysis import tour_answers, tour_heads, tour_layers, tour_since, tour_words
from explorer.analysis.plates import Shown
from explorer.analysis.tour_seen import Seen

MEASURES: dict[str, Callable[[Seen], Shown]] = {
    "before": tour_words.before,
    "embed": tour_words.embed,
    "waves": tour_words.waves,
    "order": tour_words.order,
    "qkv": tour_heads.query_key_value,
    "scale": tour_heads.scale,
    "match": tour_heads.match,
    "lookup": tour_heads.lookup,
    "kinds": tour_heads.kinds,
    "heads": tour_heads.heads,
    "stages": tour_layers.stages,
    "ffn": tour_layers.ffn,
    "deep": tour_layers.deep,
    "sphere": tour_layers.sphere,
    "words": tour_answers.words,
    "chain": tour_answers.chain,
    "loops": tour_answers.loops,
    "since": tour_since.since,
    "pizza": tour_heads.pizza,
}
