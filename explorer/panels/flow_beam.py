"""The beam along the whole machine: the words that race, and what happens at each of its stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from explorer.analysis import flow as flow_analysis
from explorer.analysis import offers, word_classes
from explorer.analysis import words as words_analysis
from explorer.analysis.findings import word_groups
from explorer.figures.csv import Columns, stacked
from explorer.figures.formatting import Written, ordinal, percent, signed, tenths
from explorer.figures.kinds import BarRow, Bars, Flow, FlowLane
from explorer.panels import address, flow_way, interventions, spec
from explorer.panels.choice import OPENS
from explorer.panels.flow_levels import is_word
from explorer.panels.flow_way import Hidden, LensReading, Way, Ways, reading_of, ways_of
from explorer.panels.selection import WordOnItsWay, select_stream
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import HideToken, HideWord, ZeroHead, to_line
from models.contract.recording import Recording
from models.contract.results import largest
from models.runtime.caching import loaded, memo
from models.runtime.run import Run

WORDS = sentences("architecture", "beam")
END = "end"  # as a word of an address
HALF = 0.5  # share of what heads bring, from which on a word is fetched
N_NEAREST, N_UNITS = 3, 2
N_OUT = 16  # words that are taken out one by one
N_HUES = 3


@dataclass(frozen=True, eq=False)
class Race:
    """The words that race: the reading of the run on show, and that of the run without its edits,
    None where it has none. temperature: of the words in the end."""

    now: LensReading
    before: LensReading | None
    temperature: float

    @property
    def answer(self) -> int:
        """The word (id) that the run without edits ends with: the one that is followed."""
        return int(self.first.lens.final_id[0])

    @property
    def first(self) -> LensReading:
        """The reading without edits, by which layers are told from one another."""
        return self.before or self.now

    @cached_property
    def middles(self) -> dict[int, tuple[int, ...]]:
        """The places of each word after the attention of each layer that is told by itself."""
        return self.now.middles(self.first.slow)

    def lanes(self) -> tuple[FlowLane, ...]:
        """The words, the likeliest in the end first."""
        chance = self.now.drawn(self.temperature).drawn
        return tuple(self.lane(id) for id in sorted(self.now.ids, key=lambda id: -chance[id]))

    def lane(self, id: int) -> FlowLane:
        """One word, whose rest is not told."""
        now, before = self.now, self.before
        label = now.label(id)
        chance = float(now.drawn(self.temperature).drawn[id])
        lane = FlowLane(
            label,
            "",
            id,
            now.places(id),
            self.middles[id],
            chance,
            tenths(chance),
        )
        if before is None:
            return lane
        were = float(before.drawn(self.temperature).drawn[id])
        return replace(lane, were=were, was_text=tenths(were), was_places=before.places(id))

    @property
    def n_words(self) -> int:
        """The size of the vocabulary."""
        return self.now.way.recording.model.n_vocab


def race(shown: Ways, whole: Ways, temperature: float, also: tuple[int, ...] = ()) -> Race | None:
    """The race at the end of a way, None for a model that predicts no word. whole: the ways without
    the run's edits; also: further words (id)."""
    on, way = shown.drawn, shown.ways[-1]
    now = reading_of(on, way, also)
    if now is None or whole.drawn == on:
        return None if now is None else Race(now, None, temperature)
    before = reading_of(whole.drawn, whole.ways[-1], also)
    assert before is not None
    ids = tuple(dict.fromkeys((*before.ids, int(now.lens.final_id[0]))))
    return Race(now.of(ids), before.of(ids), temperature)


class BeamFacts(NamedTuple):
    """What a race says, without the readings that it was read off: the token and the answer (id),
    how many layers there are, what there is to guess, and the numbers of the prediction."""

    token: int
    answer: int
    n_layers: int
    asked: str
    numbers: Mapping[str, Written]

    def question(self, model: str) -> str:
        """The sentences over the question."""
        return WORDS(f"asks_{self.asked or 'next'}", model=model)


def told(race: Race) -> BeamFacts:
    """What is kept of a race with its picture."""
    now = race.now
    n_layers = len(now.way.layers)
    return BeamFacts(now.way.token, race.answer, n_layers, now.asked, now.prediction.numbers)


def asks(plain: Recording, race: Race) -> tuple[str, str, str]:
    """The text before and after the word that is asked for, and which one it is."""
    way, kind = race.now.way, race.now.asked
    typed = plain.stream(way.stream.name)
    text = plain.text if way.is_first else plain.target
    start, end = (max(0, int(each)) for each in typed.spans[way.token])
    return (text[:end], "", kind) if kind == "next" else (text[:start], text[end:], kind)


def outs_of(plain: Recording, way: Way, tokens: Sequence[int]) -> tuple[str, ...]:
    """The edits that take each of some tokens' words out of a stream, "" for a special token, and
    for the word itself and what its token cannot read."""
    typed = plain.stream(way.stream.name)
    groups = words_analysis.words(typed, plain.text if way.is_first else plain.target)
    own = groups.of[way.token] if way.token < groups.n else -1
    lines = []
    for at in tokens:
        is_out = typed.special[at] or groups.of[at] == own
        is_later = plain.model.kind == "decoder" and at > way.token
        stream = None if way.is_first else typed.name
        edits = () if is_out or is_later else words_analysis.hidden_word(plain, at, stream)
        lines.append(to_line(edits))
    return tuple(lines)


def address_of(run: Run, token: int, drawn: Run) -> str:
    """The address of the panel on what each word does, "" where no address holds the text."""
    hidden = {} if any(isinstance(each, HideToken) for each in drawn.edits) else {"flow_hide": "0"}
    target = {"target": run.target} if isinstance(run.target, str) else {}
    edits = {"edits": to_line(run.edits)} if run.edits else {}
    words = {"model": run.model, "text": run.text, "token": str(token), **target, **edits, **hidden}
    return address.of_words("flow_beam.each_word", words, "json")


# ---- stops ---------------------------------------------------------------------------------------


def findings(race: Race) -> tuple[str, ...]:
    """What happens in each layer of the way, in sentences: of those that are told one by one, and
    of those between two of these together."""
    now = race.now
    slow, layers = race.first.slow, list(now.way.layers)
    told = {at: _told(race, at) for at in slow}
    stops = []
    for at in range(len(layers)):
        first = max((each + 1 for each in slow if each < at), default=0)
        last = min((each - 1 for each in slow if each > at), default=len(layers) - 1)
        stops.append(told[at] if at in told else _between(race, at, first, last))
    return tuple(stops)


def _between(race: Race, at: int, first: int, last: int) -> str:
    """Of layers between two that are told one by one: what the guess has been."""
    now, layers = race.now, list(race.now.way.layers)
    guesses = dict.fromkeys(now.word(layers[each])[0] for each in range(first, at + 1))
    quoted = [f"“{each}”" for each in guesses if word_classes.is_word(each)]
    kind = "no_word" if not quoted else "stays" if len(guesses) == 1 else "wanders"
    name = "of_one" if first == last else "of_many"
    return " ".join(
        (
            WORDS(name, first=layers[first], last=layers[last]),
            WORDS(kind, words=_listed(quoted)),
            _stands(race, at),
        )
    )


def _stands(race: Race, at: int) -> str:
    place = ordinal(race.now.places(race.answer)[at + 1])
    answer = race.now.label(race.answer)
    return WORDS("stands", answer=answer, place=place, n=f"{race.n_words:,}")


def _listed(words: Sequence[str], most: int = 5) -> str:
    """Words in a list, the last ones of many."""
    words = words[-most:]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


class Brought(NamedTuple):
    """The token from which heads bring most, and the share of it. is_word: it is a whole word, and
    no mark or special token."""

    word: str
    share: float
    is_word: bool

    @property
    def is_fetched(self) -> bool:
        """True for a word from which over half comes."""
        return self.is_word and self.share > HALF


def brought(way: Way, layer: int) -> Brought | None:
    """What the heads of a layer together bring most from, but the token itself; None where they
    bring nothing."""
    best: Brought | None = None
    for attention in way.attentions:
        if layer not in flow_analysis.layer_numbers(attention):
            continue
        keys = way.recording.stream(attention.key)
        shares = np.nan_to_num(way.to_token[attention.name, layer].shares[:, 0].sum(0))
        if attention.key == attention.query:
            shares[way.token] = 0
        key = int(shares.argmax())
        if shares[key] > 0 and (best is None or shares[key] > best.share):
            name = keys.tokens[key]
            best = Brought(name, float(shares[key]), not keys.special[key] and is_word(name))
    return best


def _told(race: Race, at: int) -> str:
    """Of one layer: what it fetches, or what it makes of the answer's place."""
    now, id = race.now, race.answer
    layer = list(now.way.layers)[at]
    places = now.places(id)
    before, after = places[at], places[at + 1]
    answer = now.label(id)
    slots = {"layer": layer, "answer": answer, "before": ordinal(before), "after": ordinal(after)}
    source = brought(now.way, layer)
    is_last = at == len(places) - 2
    rest = ""
    if source is not None and source.is_word:
        rest = WORDS("from_there", share=percent(source.share), word=source.word)
    parts = _by_parts(race, at)
    if now.settled and now.settled[0] == layer:
        name = "decides_last" if is_last else "decides"
        other = now.label(now.settled[1])
        return " ".join((WORDS(name, other=other, **slots), parts or rest)).strip()
    if source is not None and source.is_fetched:
        share = WORDS("of_fetched", share=percent(source.share))
        first = WORDS("fetches", word=source.word, **slots)
        return " ".join((first, share, _by_parts(race, at))).strip()
    name = "lifts" if after < before else "drops" if after > before else "leaves"
    is_lost = before == after and parts  # between its heads and its FFN
    return " ".join((WORDS(name, **slots), parts if is_lost else rest)).strip()


def _by_parts(race: Race, at: int) -> str:
    """What the heads and the FFN of a told layer make of the place of the answer."""
    now, id = race.now, race.answer
    places, middle = now.places(id), race.middles[id][race.first.slow.index(at)]
    if middle == places[at + 1]:
        return ""
    return WORDS(
        "parts" if middle != places[at] else "parts_stay",
        answer=now.label(id),
        before=ordinal(places[at]),
        middle=ordinal(middle),
        after=ordinal(places[at + 1]),
    )


def finding_of_end(race: Race, plain: Recording, drawn: Run, model: str) -> str:
    """What the model says in the end; under edits how that changed."""
    lead = race.lane(int(race.now.lens.final_id[0]))
    kind = race.now.asked or "next"
    if race.before is None:
        actual = race.now.prediction.actual
        slots = {"model": model, "word": lead.label, "p": lead.text}
        is_told = race.now.way.recording.covered is None and actual in race.now.ids
        if actual is not None and is_told and actual != lead.id:
            there = race.lane(actual)
            slots |= {"actual": there.label, "chance": there.text}
            kind += "_other"
        first = WORDS(f"ends_{kind}", **slots)
        return f"{first} {WORDS('take_out')}"
    fell = race.lane(race.answer)
    edits = tuple(each for each in drawn.edits if not isinstance(each, HideToken))
    out = interventions.taken_out(plain, edits) or WORDS("edits")
    if len(edits) == 1 and isinstance(edits[0], ZeroHead):
        out = WORDS("head", layer=edits[0].layer, head=edits[0].head)
    turned = lead.id != fell.id
    first = WORDS("turned" if turned else "still", out=out, model=model, word=lead.label)
    moved = "falls" if fell.chance < fell.were else "rises"
    name = "same" if fell.text == fell.was_text else moved
    parts = [WORDS(name, word=fell.label, before=fell.was_text, after=fell.text)]
    change = race.now.prediction.of.own - race.before.prediction.of.own
    rival = lead.id if turned else int(largest(change, 1)[0])
    if rival != fell.id and change[rival] >= flow_analysis.LEAST_RISE:
        before, after = (
            tenths(float(each.prediction.of.own[rival])) for each in (race.before, race.now)
        )
        word = race.now.label(rival)
        parts.append(WORDS("rises", word=word, before=before, after=after))
    return " ".join((first, *parts))


def answering_head(race: Race, plain: Recording) -> flow_way.AnsweringHead | None:
    """The head that makes the answer, as `flow_way.answering_head`."""
    way = race.now.way
    return flow_way.answering_head(plain, way.recording, way.token, race.answer)


def reason(found: flow_way.AnsweringHead | None, plain: Recording) -> str:
    """What of the text makes the answer, in a part of a sentence: the word that the head reads
    which adds most to it, "" where no head is told."""
    if found is None:
        return ""
    layer = flow_analysis.layer_numbers(found.attention)[found.layer]
    groups = word_groups(plain, found.attention.key)
    key = groups.labels[groups.of[found.key]]
    return WORDS("reason", layer=layer, head=found.head, key=key)


# ---- what takes longer ---------------------------------------------------------------------------


def with_words(
    of: BeamFacts, recording: Recording, machine: Flow, race: Callable[[], Race | None]
) -> Flow:
    """The picture, whose stops name the words nearest to what is brought and to what the strongest
    hidden units write. race: what `of` is told of, made where they are not known yet."""

    def make() -> dict[int, dict]:
        again = race()
        return _words_of_stops(again, recording) if again else {}

    key = ("words of beam", of.token, of.answer, machine.edits)
    said = memo(recording, key, make)
    offset = len(machine.layers) - of.n_layers
    stops = tuple(
        replace(each, **said.get(at - offset, {})) for at, each in enumerate(machine.stops)
    )
    return replace(machine, stops=stops)


def _words_of_stops(race: Race, recording: Recording) -> dict[int, dict]:
    """`says`, `units` and `box` of the stops that are told one by one, by their order."""
    now, model = race.now, loaded(recording)
    way, layers = now.way, list(now.way.layers)
    answer = now.label(race.answer)
    vectors, uses = [], []  # all at once: each time the vocabulary is read
    told: dict[int, dict] = {at: {} for at in race.first.slow}
    for at in race.first.slow:
        source = brought(way, layers[at])
        attn = next((each for each in way.layers[layers[at]] if each.place != "ffn"), None)
        if source and source.is_fetched and attn:
            vectors.append(way.stream.at(attn.wrote)[way.token])
            uses.append((at, -1))
        with suppress(ValueError, AttributeError):  # the model does not give these weights
            name = way.stream.name
            units = model.neurons(recording, name, layers[at], way.token, race.answer, n=0)
            best = largest(units.adds, N_UNITS)
            told[at]["units"] = tuple(
                (WORDS("unit", unit=int(each), word=answer, adds=signed(units.adds[each], 1)), "")
                for each in best
            )
            places = now.places(race.answer)
            told[at]["box"] = _of_box(race, at, units.part, float(units.adds[best].sum()), places)
            hidden = model.ffn_activations(recording, name, layers[at], way.token)
            for place, each in enumerate(hidden.writes_of(np.asarray(best))):
                vectors.append(each)
                uses.append((at, place))
    if not vectors:
        return told
    try:
        ids, cosines = model.nearest(np.stack(vectors).astype(np.float32), N_NEAREST)
        least = flow_analysis.least_cosine(model, len(vectors[0]))
    except (ValueError, AttributeError):
        return told
    for (at, place), words, near in zip(uses, ids.tolist(), cosines):
        labels = dict.fromkeys(each.lstrip("‧") for each in model.labels(words))
        line = ", ".join(labels)
        if near[0] < least or not is_word(next(iter(labels))):
            continue
        if place < 0:
            told[at]["says"] = line
        else:
            tags = list(told[at]["units"])
            tags[place] = (tags[place][0], WORDS("near", words=line))
            told[at]["units"] = tuple(tags)
    return told


def _of_box(race: Race, at: int, part: float, two: float, places: Sequence[int]) -> str:
    """Sentence on what the FFN of a layer adds to the answer."""
    now = race.now
    middle = race.middles[race.answer][race.first.slow.index(at)]
    layer = list(now.way.layers)[at]
    name = "same_way" if (places[at + 1] < middle) else "other_way"
    if places[at + 1] == middle:
        name = "no_way"
    return WORDS(
        name,
        layer=layer,
        answer=now.label(race.answer),
        two=signed(two, 1),
        part=signed(part, 1),
        before=ordinal(middle),
        after=ordinal(places[at + 1]),
    )


# ---- each word taken out -------------------------------------------------------------------------


@spec.predicts
@spec.panel
def each_word(run: Run, token: WordOnItsWay = OPENS, hide: Hidden = None) -> Panel:
    """What each word does to what the model says at a token of its flow: the prediction without it,
    read by no other token; of a long text the words that bring most. And the way through the
    vocabulary of the word that is said without the one that matters most.

    token: of the first stream. hide: as of the flow. Raises ValueError for a model that cannot
    follow such an edit or predicts no words, and where there is no word to take out.
    """
    plain = replace(run, edits=())
    base = plain.recording()
    if not base.attention or not flow_analysis.in_layers(base.streams[0]):
        raise ValueError(WORDS("no_words"))
    whole, shown = ways_of(plain, token, hide), ways_of(run, token, hide)
    way = whole.ways[-1]
    reading = reading_of(whole.drawn, way)
    n_tokens = sum(len(each.tokens) for each in base.streams)
    most = min(N_OUT, int(offers.MAX_WORK / max(1, base.model.n_parameters * n_tokens)))
    if reading is None or not interventions.can_follow(base, HideWord) or not most:
        raise ValueError(WORDS("no_words"))
    at = select_stream(plain, way.token, way.stream.name)
    hidden = tuple(each for each in whole.drawn.edits if each not in plain.edits)
    on = interventions.Pair(base, at, hidden)
    asked = interventions.edits_of_words(on)
    weight = np.sum([each.brought(base.streams[0]) for each in whole.ways], axis=0)
    asked = {at: asked[at] for at in sorted(sorted(asked, key=lambda at: -weight[at])[:most])}
    if not asked:
        raise ValueError(WORDS("no_words"))
    changes = interventions.each_word_out(on, asked)
    id, labels = int(reading.lens.final_id[0]), interventions.words_to_take_out(base)
    before = float(reading.prediction.of.own[id])
    left = {at: float(change.after[id]) for at, change in changes.items()}
    said = {at: change.top_after for at, change in changes.items()}
    turning = [at for at in left if said[at] != id]
    best = min(turning or left, key=left.__getitem__)
    word = reading.label
    name = "without_says" if turning else "without_has"
    p = float(changes[best].after[said[best]])
    slots = {"out": labels[best], "word": word(said[best]), "p": tenths(p)}
    rival = said[best] if turning and said[best] not in reading.ids else None
    parts = [] if rival is None else _rival(shown, whole, rival)
    kinds = word_classes.classes(base.streams[0].tokens)
    is_content = {at: kinds[at] == word_classes.CONTENT for at in left}
    return Panel(
        title=WORDS("each_title", word=word(id)),
        finding=WORDS(name, **slots),
        figures=(
            Bars(
                columns=(WORDS("left", word=word(id)),),
                rows=tuple(
                    BarRow(labels[at], (p,), (tenths(p),), outline=before) for at, p in left.items()
                ),
                high=1.0,
            ),
        ),
        table=stacked(
            (
                (
                    "word",
                    {
                        "word": [labels[at] for at in left],
                        "edits": [to_line(asked[at]) for at in left],
                        "content": [is_content[at] for at in left],
                        "probability": list(left.values()),
                        "says": [word(said[at]) for at in left],
                    },
                ),
                *parts,
            ),
            "row",
        ),
        file="each-word",
        at={"run": whole.drawn},
    )


def _rival(shown: Ways, whole: Ways, id: int) -> list[tuple[str, Columns]]:
    """The way of a further word (id) through the vocabulary, as parts of a table."""
    of = race(shown, whole, 1.0, (id,))
    assert of is not None
    lane = of.lane(id)
    chances = [lane.chance, *([lane.were] if of.before else [])]
    return [
        (
            "rival",
            {
                "word": [lane.label] * len(chances),
                "probability": chances,
                "text": [tenths(each) for each in chances],
            },
        ),
        ("place", {"place": lane.places}),
        ("middle", {"place": lane.middles}),
        ("place before", {"place": lane.was_places}),
    ]
