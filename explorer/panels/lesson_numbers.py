"""The numbers that steps of a lesson name: each is the one that the step's picture shows, of the
word and the head that the lesson follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import lgamma

import numpy as np

from explorer.analysis import logit_lens, positions, soft_lookup
from explorer.analysis.figures import Bars, Dials, Facts, Matrix, Relay, Stack, Steps
from explorer.analysis.formatting import fixed, power, power_of_e, signed, tenths
from explorer.analysis.measure import Untestable
from explorer.panels import (
    attribution,
    feed_forward,
    generation,
    loss,
    modern,
    recurrence,
    residual,
    softmax,
    teacher_forcing,
    tokens,
)
from explorer.panels.predictions import prediction_at
from models import model_card
from models.edits import HideToken, from_line
from models.recording import Attention, Recording
from models.results import softmax as shares
from models.run import Run

TINY = 1e-30  # of a probability: what single precision makes 0 is below a tenth of a per cent


@dataclass(frozen=True, eq=False)
class Hero:
    """The word that a lesson follows: its token in the first stream, and of the attention that
    tells most of it a head with its query and key."""

    token: int
    attention: Attention
    layer: int
    head: int
    query: int
    key: int

    @property
    def weight(self) -> float:
        """The weight of the query on the key."""
        return float(self.attention.pattern[self.layer, self.head, self.query, self.key])


@dataclass(frozen=True, eq=False)
class StepPlace:
    """The place of a step: the run, the word and the head that the lesson follows, the attention of
    the query's own text, the FFN's layer, whether the query's token is hidden from the model, and
    the edits of the step."""

    run: Run
    hero: Hero
    own: Attention
    ffn_layer: int
    hides: bool
    edits: str = ""

    @property
    def recording(self) -> Recording:
        """The recording of the run."""
        return self.run.recording()

    @property
    def stream(self) -> str:
        """The name of the query's stream."""
        return self.hero.attention.query

    @property
    def query(self) -> int:
        """The query's token."""
        return self.hero.query


def of(name: str, place: StepPlace) -> str:
    """The number of this name, "" where the model or the text shows too little for it."""
    try:
        return NUMBERS[name](place)
    except (ValueError, AttributeError, Untestable):
        return ""


def _n_tokens(place: StepPlace) -> int:
    return int((~place.recording.streams[0].special).sum())


def _gradient_left(place: StepPlace) -> str:
    relay, _ = recurrence.bottleneck(place.run).figures
    assert isinstance(relay, Relay)
    return relay.text


def _position_norm(place: StepPlace) -> str:
    stream = place.recording.streams[0]
    return power(float(positions.position_sum(stream).encoding[place.hero.token]))


def _gradient_gone(place: StepPlace) -> str:
    at = place.hero.layer, place.hero.head, place.query
    _, raw = softmax.saturation(place.run, *at, attention=place.hero.attention.name).figures
    assert isinstance(raw, Bars)
    return raw.rows[-1].texts[0]


def _asymmetry(place: StepPlace) -> str:
    x = soft_lookup.attention_input(place.recording, place.own, place.hero.layer)
    if x is None:
        raise ValueError("the model does not give its vectors")
    allowed = place.own.allowed[place.hero.layer]
    of_head = place.hero.layer, place.hero.head
    variants = soft_lookup.scoring_variants(x, place.own, *of_head, allowed)
    return fixed(variants[-1].asymmetry)


def _norm_step(place: StepPlace, fact: int) -> str:
    """A number of a token's vector before its first norm, one of those beside the histogram."""
    steps = residual.norm_steps(place.run, place.query, stream=place.stream).figures[0]
    assert isinstance(steps, Steps)
    _, facts = steps.frames[0].figures
    assert isinstance(facts, Facts)
    return facts.facts[fact][0]


def _half(place: StepPlace) -> str:
    panel = feed_forward.network(place.run, place.query, layer=place.ffn_layer, stream=place.stream)
    stacks = [each for each in panel.figures if isinstance(each, Stack)]
    inside = [one for each in stacks for one in each.figures if isinstance(one, Facts)]
    return inside[0].facts[0][0] if inside else ""


def _hidden_units(place: StepPlace) -> str:
    read = place.run.loaded.ffn_activations(
        place.recording, place.stream, place.ffn_layer, place.query
    )
    return f"{len(read.after):,}"


def _target(place: StepPlace) -> str:
    (table,) = teacher_forcing.offset(place.run).figures
    assert isinstance(table, Matrix)
    ((row, column, _),) = table.marks
    return table.words[row * len(table.columns) + column]


def _turned(place: StepPlace) -> str:
    (dials,) = modern.rotary(place.run, place.hero.layer, place.hero.head, place.query).figures
    assert isinstance(dials, Dials)
    return dials.dials[0].text


def _largest_turn(place: StepPlace) -> str:
    grid = residual.updates(place.run, "Rotation angle", place.query, stream=place.stream).figures[
        0
    ]
    assert isinstance(grid, Matrix)
    row, column, _ = grid.marks[0]
    return f"{float(grid.values[row, column]):.1f}°"


def _after(place: StepPlace) -> str:
    """The probability of the model's answer under the edits of a step."""
    hidden = (HideToken(place.query),) if place.hides else ()
    plain = place.run.under(hidden) if hidden else place.run
    answer = prediction_at(plain, place.query).words[0].id
    edited = place.run.under((*from_line(place.edits), *hidden))
    scores = edited.loaded.logits(edited.recording(), place.stream, place.query)
    return tenths(max(float(shares(scores)[answer]), TINY))


def _largest_part(place: StepPlace) -> str:
    """The largest part of the answer's logit, against the runner-up."""
    parts = attribution.logit_parts(place.run, place.query).attribution
    return signed(logit_lens.largest_parts(parts)[0].value, 2)


def _key_pieces(place: StepPlace) -> str:
    bars = tokens.merges(place.run, place.hero.key).figures[-1]
    assert isinstance(bars, Bars)
    return f"{bars.rows[0].values[0]:.0f}"


def _loss(place: StepPlace) -> str:
    nats = loss.loss(place.run, place.query).table["−ln p"]
    return fixed(float(np.mean(np.array(nats))))


def _moved(place: StepPlace) -> str:
    row = loss.step(place.run, place.query).figures[1]
    assert isinstance(row, Stack)
    facts = row.figures[-1]
    assert isinstance(facts, Facts)
    return facts.facts[0][0]


def _sum(place: StepPlace) -> str:
    weights = place.hero.attention.pattern[place.hero.layer, place.hero.head, place.query]
    return fixed(float(weights.sum(dtype=np.float64)))


NUMBERS: Mapping[str, Callable[[StepPlace], str]] = {
    "vocabulary": lambda at: f"{at.recording.model.n_vocab:,}",
    "squares": lambda at: str(
        at.hero.attention.pattern.shape[0] * at.hero.attention.pattern.shape[1]
    ),
    "largest_part": _largest_part,
    "key_pieces": _key_pieces,
    "loss": _loss,
    "moved": _moved,
    "checkpoints": lambda at: str(len(model_card.checkpoints(at.run.model)) or ""),
    "orders": lambda at: power_of_e(lgamma(_n_tokens(at) + 1), 2),
    "gradient_left": _gradient_left,
    "position_norm": _position_norm,
    "slowest": lambda at: power(float(positions.wavelengths(at.recording.model.d_model)[-1])),
    "scores": lambda at: f"{at.hero.attention.pattern[0, 0].size:,}",
    "gradient_gone": _gradient_gone,
    "asymmetry": _asymmetry,
    "masked": lambda at: f"{int((~at.own.allowed[at.hero.layer]).sum()):,}",
    "sum": _sum,
    "side_by_side": lambda at: str(at.hero.attention.pattern.shape[1] * at.recording.model.d_head),
    "spread": lambda at: _norm_step(at, 0),
    "length": lambda at: _norm_step(at, 2),
    "half": _half,
    "hidden_units": _hidden_units,
    "target": _target,
    "cache": lambda at: f"{generation.loops(at.run).table['value'][0]:,}",
    "turned": _turned,
    "largest_turn": _largest_turn,
    "after": _after,
}
