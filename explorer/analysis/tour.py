"""The tour's steps: what each shows of the sentence and model on screen, a function a step, by the
id that it has in tour.toml, and what each needs to have something to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from explorer.analysis import tour_answers, tour_heads, tour_layers, tour_since, tour_words
from explorer.analysis.evidence import Untestable
from explorer.analysis.grounds import masked, opened
from explorer.analysis.plates import Shown
from explorer.analysis.tour_seen import Seen, held, text_of, word_held

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


def _pair(seen: Seen) -> object:
    return held(seen)


def _sentence(seen: Seen) -> object:
    return text_of(seen.recording.streams[0])


def _word(seen: Seen) -> object:
    return word_held(seen, seen.recording.streams[-1])


# Cheap checks that raise Untestable where a step has nothing to show.
NEEDS: dict[str, tuple[Callable[[Seen], object], ...]] = {
    "before": (lambda seen: tour_words.between_words(seen.recording.streams[0]),),
    "embed": (_sentence, _word),
    "waves": (tour_words.sinusoids,),
    "order": (tour_words.another_order,),
    "qkv": (_pair, lambda seen: opened(seen.recording)),
    "scale": (_sentence, lambda seen: opened(seen.recording)),
    "match": (tour_heads.entered,),
    "lookup": (_pair,),
    "kinds": (_pair, lambda seen: opened(seen.recording)),
    "heads": (_pair,),
    "stages": (tour_layers.exchangeable,),
    "ffn": (tour_layers.opens_its_ffn,),
    "deep": (_sentence,),
    "sphere": (_word, lambda seen: tour_layers.layers_of(seen.recording.streams[-1])),
    "words": (tour_answers.place_read,),
    "chain": (tour_answers.says_next,),
    "loops": (_sentence, lambda seen: masked(seen.recording)),
    "since": (tour_since.changeable,),
    "pizza": (tour_heads.splits_into_words,),
}


def possible(seen: Seen, ids: Iterable[str]) -> tuple[str, ...]:
    """Those of the steps that have something to show of this text and model."""
    return tuple(each for each in ids if not lacking(seen, each))


def lacking(seen: Seen, id: str) -> str:
    """Why a step has nothing to show, "" where it has."""
    try:
        for need in NEEDS[id]:
            need(seen)
    except Untestable as reason:
        return str(reason)
    return ""
