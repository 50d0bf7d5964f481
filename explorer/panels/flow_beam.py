"""The beam along the whole machine: the words that race, and what happens at each of its stops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorer.analysis import flow as flow_analysis
from explorer.analysis import offers, predictions, word_classes
from explorer.analysis import words as words_analysis
from explorer.analysis.findings import word_groups
from explorer.analysis.interventions import PredictionChange
from explorer.figures.csv import Columns, stacked
from explorer.figures.formatting import Written, ordinal, tenths
from explorer.figures.kinds import BarRow, Bars, Flow, FlowLane, FlowStop
from explorer.panels import address, flow_way, generation, interventions, spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.flow_levels import is_word, nearest_words
from explorer.panels.flow_way import (
    Additions,
    AnsweringHead,
    Hidden,
    LensReading,
    Way,
    Ways,
    reading_of,
    ways_of,
)
from explorer.panels.selection import WordOnItsWay, select_stream
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import Edit, HideToken, HideWord, SetSite, ZeroHead, to_line
from models.contract.recording import CONTINUES, Recording, Stream
from models.contract.results import Sampling, largest
from models.runtime.caching import loaded, memo
from models.runtime.run import Run

WORDS = sentences("architecture", "beam")
END = "end"  # as a word of an address
HALF = 0.5  # share of what heads bring, from which on a word is fetched
N_UNITS = 2
HEADS, FFN = -1, -2  # writers beside the units of a stop
N_LETTERS = 40  # of a guess, as many as its field takes
N_OUT = 16  # words that are taken out one by one
LEAST_ADDED = 0.05  # to a difference of logits, by a head that is told
MUCH_FURTHER = 1.25  # times its place, that an answer has where an FFN does not see its word
LITTLE_LEFT = 0.9  # of its probability, from which on an answer keeps it


FEW_LAYERS = 6  # up to which all are told one by one


@dataclass(frozen=True, eq=False)
class Race:
    """The words that race: the reading of the run on show, and that of the run without its edits,
    None where it has none. core: the words (id) that always have a lane; the others have one where
    they lead. typed: the recording without edits in which no token is hidden; temperature: of the
    words in the end."""

    now: LensReading
    before: LensReading | None
    core: tuple[int, ...]
    typed: Recording
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
    def cause(self) -> AnsweringHead | None:
        """The head that the answer comes from, of the run without edits, as
        `flow_way.answering_head`; None where what it brings from its word adds too little."""
        of, words = self.first.way, (self.answer, self.rival)
        adds = self.adds if self.before is None else flow_way.additions(of, *words)
        found = flow_way.answering_head(self.typed, of.recording, of.token, *words, adds=adds)
        if found is None or adds is None:
            return found
        own = adds.of_word(found.attention, _layer_number(found), found.head, found.key)
        return found if own >= LEAST_ADDED else None

    @cached_property
    def acting(self) -> AnsweringHead | None:
        """The cause where it still brings its word in the run on show."""
        cause = self.cause
        if cause is None or self.before is None or self.adds is None:
            return cause
        own = self.adds.of_word(cause.attention, _layer_number(cause), cause.head, cause.key)
        return cause if own >= LEAST_ADDED else None

    @property
    def causing_layer(self) -> int | None:
        """The layer of the cause, by its order, None where there is none."""
        layers = list(self.first.way.layers)
        return None if self.cause is None else layers.index(_layer_number(self.cause))

    @cached_property
    def rival(self) -> int:
        """The word (id) that the answer is compared with: of the others that always have a lane
        the likeliest in the end of the run without edits."""
        own = self.first.prediction.of.own
        return max((id for id in self.core if id != self.answer), key=own.__getitem__)

    @cached_property
    def adds(self) -> Additions | None:
        """Additions of parts of the run on show to the answer against its rival."""
        return flow_way.additions(self.now.way, self.answer, self.rival)

    @cached_property
    def matters(self) -> tuple[int, ...]:
        """The layers that are told and wide in the end, by their order."""
        return flow_analysis.layers_that_matter(self.first.places(self.answer), self.causing_layer)

    @property
    def slow(self) -> tuple[int, ...]:
        """The layers, by their order, that are told one by one: all of a few."""
        n = len(self.first.way.layers)
        return tuple(range(n)) if n <= FEW_LAYERS else self.matters

    @cached_property
    def middles(self) -> flow_way.Middles:
        """The places and the guesses after the attention of each layer that is told by itself."""
        return self.now.middles(self.slow)

    def ffn_places(self, layer: int) -> tuple[int, int] | None:
        """The places of the answer before and after the FFN of a layer that is told by itself, None
        of another."""
        at = list(self.now.way.layers).index(layer)
        return _places_in(self, at)[1:] if at in self.slow else None

    def lanes(self) -> tuple[FlowLane, ...]:
        """The words that always have a lane, the likeliest in the end first."""
        chance = self.now.drawn(self.temperature).drawn
        return tuple(self.lane(id) for id in sorted(self.core, key=lambda id: -chance[id]))

    def leaders(self) -> tuple[FlowLane, ...]:
        """The other words that lead after a layer."""
        return tuple(self.lane(id) for id in self.now.ids if id not in self.core)

    def heroes(self, stream: Stream) -> tuple[int, ...]:
        """The tokens of a stream that the picture tells of, and which have a row of their own: what
        the cause reads, what most is brought from in the layers that are told, and what adds most
        to the answer."""
        found = [self.cause.key] if self.cause and self.cause.attention.key == stream.name else []
        layers = list(self.now.way.layers)
        for at in self.slow:
            source = brought(self.now.way, layers[at])
            if source is not None and source.stream == stream.name:
                found.append(source.token)
        return tuple(dict.fromkeys((*found, *(self.adds.words(stream) if self.adds else ()))))

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
            self.middles.places[id],
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
    if now is None:
        return None
    typed = whole.run.recording()
    if whole.drawn == on:
        ids = tuple(dict.fromkeys((*now.ids, *now.leaders)))
        return Race(now.of(ids), None, now.ids, typed, temperature)
    before = reading_of(whole.drawn, whole.ways[-1], also)
    assert before is not None
    core = tuple(dict.fromkeys((*now.ids, int(before.lens.final_id[0]))))
    ids = tuple(dict.fromkeys((*core, *now.leaders)))
    return Race(now.of(ids), before.of(ids), core, typed, temperature)


class Ending(NamedTuple):
    """Parts of the sentences on the end: the word that leads there and the one that the run without
    edits ends with (id), the word of the text where it is told (id), what is taken out, "" for
    nothing, and the sentence on what the answer's head reads in the place of a word that is out."""

    lead: int
    answer: int
    actual: int | None
    out: str
    instead: str = ""


class BeamFacts(NamedTuple):
    """Facts of a race, without the readings that it was read off: the token and the answer (id),
    how many layers there are, what there is to guess, the word of another text that it is asked
    for, "" for none, the numbers of the prediction, the temperature of the words in the end, and
    what is said there."""

    token: int
    answer: int
    n_layers: int
    asked: str
    source: str
    numbers: Mapping[str, Written]
    temperature: float
    ending: Ending

    def question(self, model: str) -> str:
        """The sentences over the question."""
        name = "asks_across" if self.source else f"asks_{self.asked or 'next'}"
        return WORDS(name, model=model, source=self.source)


def beam_facts(race: Race, plain: Recording, drawn: Run, source: str) -> BeamFacts:
    """Facts of a race that are kept with its picture. plain: the recording without edits; drawn:
    the run that is; source: the word of another text that the answer is asked for, "" for none."""
    now = race.now
    return BeamFacts(
        now.way.token,
        race.answer,
        len(now.way.layers),
        now.asked,
        source,
        replace(now.prediction, also=race.core).numbers,
        race.temperature,
        _ending(race, plain, drawn),
    )


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


def address_of(race: Race, run: Run, drawn: Run, token: int) -> str:
    """The address of the panel on what each word does, "" where no address holds the text. token:
    the one of the first stream that the flow is of."""
    t = race.temperature
    hidden = {} if any(isinstance(each, HideToken) for each in drawn.edits) else {"flow_hide": "0"}
    target = {"target": run.target} if isinstance(run.target, str) else {}
    edits = {"edits": to_line(run.edits)} if run.edits else {}
    drawn_at = {} if t == 1 else {"flow_temperature": f"{t:g}"}
    words = {"model": run.model, "text": run.text, "token": str(token)}
    words |= {**target, **edits, **hidden, **drawn_at}
    return address.of_words("flow_beam.each_word", words, "json")


# ---- stops ---------------------------------------------------------------------------------------


def findings(race: Race) -> tuple[str, ...]:
    """Sentences on what happens in each layer of the way: of those that are told one by one, and
    of those between two of these together, up to where the beam stands."""
    now = race.now
    slow, layers = race.slow, list(now.way.layers)
    told = {at: _stop_sentence(race, at) for at in slow}
    stops = []
    for at in range(len(layers)):
        first = max((each + 1 for each in slow if each < at), default=0)
        stops.append(told[at] if at in told else _between(race, at, first))
    return tuple(stops)


def _between(race: Race, at: int, first: int) -> str:
    """Of layers since one that is told by itself: what the guess has been."""
    now, layers = race.now, list(race.now.way.layers)
    guesses = dict.fromkeys(now.word(layers[each])[0] for each in range(first, at + 1))
    quoted = [f"“{each}”" for each in guesses if is_word(each)]
    kind = "no_word" if not quoted else "stays" if len(guesses) == 1 else "wanders"
    name = "of_one" if first == at else "of_many"
    return " ".join(
        (
            WORDS(name, first=layers[first], last=layers[at]),
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
    """The token of a stream from which heads bring most, and the share of it. is_word: it is a
    whole word, and no mark or special token."""

    word: str
    share: float
    is_word: bool
    stream: str
    token: int

    @property
    def is_fetched(self) -> bool:
        """True for a word from which over half comes."""
        return self.is_word and self.share > HALF


def brought(way: Way, layer: int) -> Brought | None:
    """Token from which the heads of a layer together bring most, but the chosen one; None where
    they bring nothing."""
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
            is_whole = not keys.special[key] and is_word(name)
            best = Brought(name, float(shares[key]), is_whole, keys.name, key)
    return best


def _layer_number(found: AnsweringHead) -> int:
    """The model's own number of a head's layer."""
    return flow_analysis.layer_numbers(found.attention)[found.layer]


def cause_in(race: Race, ways: Sequence[Way], rows: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """The column, which of its attentions, the head and the row that the answer comes from; () for
    none. rows: the row of each token by its stream, -1 for none."""
    cause, way = race.cause, race.now.way
    if cause is None or race.causing_layer is None:
        return ()
    number = _layer_number(cause)
    there = [x.name for x in way.attentions if number in flow_analysis.layer_numbers(x)]
    column = sum(len(each.layers) for each in ways[:-1]) + race.causing_layer
    row = rows[cause.attention.key][cause.key]
    return (column, there.index(cause.attention.name), cause.head, row)


def tagged(stop: FlowStop, race: Race, at: int) -> FlowStop:
    """The stop of a layer that is told, by its order, with what happens there in short: the head
    that adds most to the answer and the word that it reads, what the FFN makes of the guess, else
    of the answer's place, and the guess between the two."""
    found, brings = answering_head(race, at), ""
    before, middle, after = _places_in(race, at)
    # A layer whose heads push the answer back is not told of one that lifts it, and none of a word
    # without content, which tells nobody anything.
    is_cause = race.causing_layer == at
    if found is not None and (is_cause or (middle <= before and _is_content(race, found))):
        brings = WORDS("tag_head", head=found.head, word=_word_of(race, found))
    turned = _turned(race, at)
    slots = {"answer": race.now.label(race.answer), "middle": ordinal(middle)}
    of_place = "" if middle == after else WORDS("tag", after=ordinal(after), **slots)
    adds = WORDS("tag_words", before=turned[0], after=turned[1]) if turned else of_place
    return replace(stop, brings=brings, adds=adds, middle=race.middles.guesses[at])


def _turned(race: Race, at: int) -> tuple[str, str] | None:
    """The guesses before and after the FFN of a layer that is told, by its order, None where they
    are one, or none of them a whole word."""
    before, after = race.middles.guesses[at], race.now.label(race.now.leaders[at + 1])
    return (before, after) if before != after and is_word(before) and is_word(after) else None


def _places_in(race: Race, at: int) -> tuple[int, int, int]:
    """The places of the answer before a layer that is told, after its heads, and after its FFN."""
    before, after = race.now.places(race.answer)[at : at + 2]
    return before, race.middles.places[race.answer][race.slow.index(at)], after


def _stop_sentence(race: Race, at: int) -> str:
    """Of one layer: the word that makes the answer, what it fetches, or what it makes of the
    answer's place."""
    now, id = race.now, race.answer
    layer = list(now.way.layers)[at]
    before, after = now.places(id)[at : at + 2]
    slots = {"layer": layer, "answer": now.label(id)}
    slots |= {"before": ordinal(before), "after": ordinal(after)}
    source, parts = brought(now.way, layer), _by_parts(race, at)
    if race.causing_layer == at and race.acting is not None:
        word = _word_of(race, race.acting)
        is_fetched = source is not None and source.is_fetched and source.word == word
        first = WORDS("fetches" if is_fetched else "reads", word=word, **slots)
        by = WORDS("brings", head=race.acting.head)
        return _joined(first, by, parts or WORDS(_moves(before, after), **slots))
    if source is not None and source.is_fetched:
        first = WORDS("fetches", word=source.word, **slots)
        return _joined(first, WORDS("of_fetched"), parts or WORDS(_moves(before, after), **slots))
    if _leads(race, at):
        last = "_last" if at == len(now.places(id)) - 2 else ""
        other = now.label(now.leaders[at])
        name = f"leads{last}" if is_word(other) else f"leads_alone{last}"
        return _joined(WORDS(name, other=other, **slots), parts or _by_heads(race, at))
    kept = "returns" if parts else "leaves"
    name = "lifts" if after < before else "drops" if after > before else kept
    alone = _by_heads(race, at) if after != before else _of_rival(race, at)
    return _joined(WORDS(name, **slots), parts or alone)


def _of_rival(race: Race, at: int) -> str:
    """Sentence on the rival's place after a layer, "" where it keeps it."""
    before, after = race.now.places(race.rival)[at : at + 2]
    slots = {"before": ordinal(before), "after": ordinal(after)}
    rival = race.now.label(race.rival)
    return "" if before == after else WORDS(_moves(before, after), answer=rival, **slots)


def _moves(before: int, after: int) -> str:
    """The name of the sentence on a word whose place changes."""
    return "rises_to" if after < before else "falls_to" if after > before else "stays_at"


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _leads(race: Race, at: int) -> bool:
    """Whether the answer leads from a layer on, also after the attention of each later one that is
    told, and not before it."""
    places, middles = race.now.places(race.answer), race.middles.places[race.answer]
    later = [middle for each, middle in zip(race.slow, middles) if each > at]
    return places[at] > 1 and {*places[at + 1 :], *later} == {1}


def _word_of(race: Race, found: AnsweringHead) -> str:
    """The word that a head reads most."""
    groups = word_groups(race.typed, found.attention.key)
    return groups.labels[groups.of[found.key]]


def answering_head(race: Race, at: int) -> AnsweringHead | None:
    """The head that a layer, by its order, is told of: the one that makes the answer, else the one
    that adds most to it from another word; None for none by itself."""
    if race.causing_layer == at and race.acting is not None:
        return race.acting
    layer, adds = list(race.now.way.layers)[at], race.adds
    found = adds.strongest(layer) if adds else None
    if adds is None or found is None:
        return None
    value = adds.of_word(found.attention, layer, found.head, found.key)
    return found if value >= LEAST_ADDED else None


def _is_content(race: Race, found: AnsweringHead) -> bool:
    """Whether a head reads a word of content."""
    kinds = word_classes.classes(race.typed.stream(found.attention.key).tokens)
    return kinds[found.key] == word_classes.CONTENT


def _by_parts(race: Race, at: int) -> str:
    """Sentence on the answer's place after the heads of a told layer and after its FFN, "" where
    the FFN leaves it."""
    before, middle, after = _places_in(race, at)
    if middle == after:
        return ""
    heads = "leave" if middle == before else "lift" if middle < before else "push"
    answer, turned = race.now.label(race.answer), _turned(race, at)
    moved = (each for each in race.slow if len({*_places_in(race, each)[1:]}) > 1)
    ffn = WORDS("ffn_first" if at == next(moved) else "ffn")  # what it is, once
    slots = {"middle": ordinal(middle), "after": ordinal(after), "ffn": ffn}
    if turned and turned[1] == answer:
        then = WORDS("ffn_turns", other=turned[0], answer=answer, ffn=ffn)
    else:
        then = WORDS("ffn_lifts" if after < middle else "ffn_pushes", **slots)
    return f"{WORDS(f'heads_{heads}', answer=answer, **slots)} {then}"


def _by_heads(race: Race, at: int) -> str:
    """Sentence on a told layer whose heads alone move the answer, "" where nothing tells that."""
    way = race.now.way
    is_told = list(way.layers)[at] in flow_analysis.middle_sites(way.stream)
    return WORDS("heads_alone") if is_told else ""


def _ending(race: Race, plain: Recording, drawn: Run) -> Ending:
    """Parts of the sentences on the end of a race."""
    lead, actual = int(race.now.lens.final_id[0]), race.now.prediction.actual
    if race.before is None:
        is_told = race.now.way.recording.covered is None and actual in race.now.ids
        shown = actual if is_told and actual != lead else None
        return Ending(lead, race.answer, shown, "")
    edits = tuple(each for each in drawn.edits if not isinstance(each, HideToken))
    out = interventions.taken_out(plain, edits) or WORDS("edits")
    if len(edits) == 1 and isinstance(edits[0], ZeroHead):
        out = WORDS("head", layer=edits[0].layer, head=edits[0].head)
    return Ending(lead, race.answer, None, out, _instead(race, edits))


def _instead(race: Race, edits: Sequence[Edit]) -> str:
    """Sentence on the word that the head of the answer reads most where its own is out, "" where
    that is in, or no word of the text brings over half of what the head brings."""
    cause = race.cause
    if cause is None or not any(isinstance(each, HideWord) for each in edits):
        return ""
    way, layer = race.now.way, _layer_number(cause)
    keys = way.recording.stream(cause.attention.key)
    shares = np.nan_to_num(way.to_token[cause.attention.name, layer].shares[cause.head, 0])
    key = int(shares.argmax())
    is_most = shares[key] > HALF * np.maximum(shares, 0).sum()
    if key == cause.key or not is_most or keys.special[key] or not is_word(keys.tokens[key]):
        return ""
    return WORDS("instead", word=keys.tokens[key], head=cause.head, layer=layer)


def _rises(of: LensReading, answer: int, lead: int, before: np.ndarray, after: np.ndarray) -> str:
    """The word, not the answer (id), that leads after a change, or that rises most where the answer
    still does; "" for none that rises by much."""
    rival = lead if lead != answer else int(largest(after - before, 1)[0])
    if rival == answer or after[rival] - before[rival] < flow_analysis.LEAST_RISE:
        return ""
    were, are = (tenths(float(each[rival])) for each in (before, after))
    return WORDS("rises", word=of.label(rival), before=were, after=are)


def finding_of_end(of: BeamFacts, machine: Flow, model: str) -> str:
    """Sentence on what the model says in the end, by the words as they are drawn there; under edits
    how that changed."""
    ending, by_id = of.ending, {each.id: each for each in (*machine.lanes, *machine.leaders)}
    lead, fell = by_id[ending.lead], by_id[ending.answer]
    word, answer = lead.label + lead.rest, fell.label + fell.rest
    if not ending.out:
        kind, slots = of.asked or "next", {"model": model, "word": word, "p": lead.text}
        if ending.actual is not None:
            there = by_id[ending.actual]
            slots |= {"actual": there.label + there.rest, "chance": there.text}
            kind += "_other"
        return WORDS(f"ends_{kind}", **slots)
    turned = "turned" if lead is not fell else "still"
    moved = "falls" if fell.chance < fell.were else "rises"
    name = "same" if fell.text == fell.was_text else moved
    return _joined(
        WORDS(turned, out=ending.out, model=model, word=word),
        WORDS(name, word=answer, before=fell.was_text, after=fell.text),
        _rising_lane([each for each in machine.lanes if each is not fell], lead),
        ending.instead,
    )


def _rising_lane(others: Sequence[FlowLane], lead: FlowLane) -> str:
    """The word that leads after a change, or of the others the one that rises most where the answer
    still leads; "" for none that rises by much."""
    rose = lambda lane: lane.chance - lane.were
    lane = lead if lead in others else max(others, key=rose, default=None)
    if lane is None or rose(lane) < flow_analysis.LEAST_RISE:
        return ""
    return WORDS("rises", word=lane.label + lane.rest, before=lane.was_text, after=lane.text)


def part(race: Race) -> str:
    """The head that reads what the answer comes from, "" where that is not known and under edits:
    what is said of it until it is measured."""
    if race.cause is None or race.before is not None:
        return ""
    return WORDS("cause_reads", **_head_and_word(race, race.cause))


def _head_and_word(race: Race, found: AnsweringHead) -> dict[str, Any]:
    """A head and its word, as slots of sentences."""
    layer = flow_analysis.layer_numbers(found.attention)[found.layer]
    return {"head": found.head, "layer": layer, "word": _word_of(race, found)}


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
    """`says`, `writes` and `units` of the stops that are told one by one, by their order."""
    now, model = race.now, loaded(recording)
    way, layers = now.way, list(now.way.layers)
    vectors, uses = [], []
    told: dict[int, dict] = {at: {} for at in race.slow}
    for at in race.slow:
        source = brought(way, layers[at])
        attn = next((each for each in way.layers[layers[at]] if each.place != "ffn"), None)
        if source and source.is_fetched and attn:
            vectors.append(way.stream.at(attn.wrote)[way.token])
            uses.append((at, HEADS))
        ffn = way.ffn(layers[at])
        if ffn is not None:
            vectors.append(way.stream.at(ffn.wrote)[way.token])
            uses.append((at, FFN))
        with suppress(ValueError, AttributeError):  # the model does not give these weights
            name = way.stream.name
            units = model.neurons(
                recording, name, layers[at], way.token, race.answer, race.rival, n=0
            )
            best = largest(units.adds, N_UNITS)
            best = best[units.adds[best] >= LEAST_ADDED]
            told[at]["units"] = tuple((WORDS("unit", unit=int(each)), "") for each in best)
            hidden = model.ffn_activations(recording, name, layers[at], way.token)
            for place, each in enumerate(hidden.writes_of(np.asarray(best))):
                vectors.append(each)
                uses.append((at, place))
    # What the FFN writes is a word of the prediction where that rises by it.
    is_told = lambda use, id: uses[use][1] != FFN or now.is_raised(layers[uses[use][0]], id)
    for (at, place), line in zip(uses, nearest_words(model, vectors, is_told)):
        if place < 0:
            told[at]["says" if place == HEADS else "writes"] = line
        else:
            tags = list(told[at]["units"])
            tags[place] = (tags[place][0], line and WORDS("near", words=line))
            told[at]["units"] = tuple(tags)
    for each in told.values():  # a number alone says nothing
        each["units"] = tuple(unit for unit in each.get("units", ()) if unit[1])
    return told


# ---- each word taken out -------------------------------------------------------------------------


def continues(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True for a model that continues texts, whose next word is drawn."""
    recording = run.recording()
    capabilities = loaded(recording).capabilities
    return recording.model.kind == "decoder" and not capabilities.no_readout


Temperature = Annotated[
    float,
    Choice(
        generation.TEMPERATURES,
        "Temperature",
        name="flow_temperature",
        menu=True,
        when=continues,
    ),
]


@spec.predicts
@spec.panel
def each_word(
    run: Run,
    token: WordOnItsWay = OPENS,
    hide: Hidden = None,
    guess: Annotated[
        str, Choice(name="flow_guess", of="text", help="a word whose way alone is told")
    ] = "",
    temperature: Temperature = 1.0,
) -> Panel:
    """Effect of each word on what the model says at a token of its flow: the prediction without it,
    read by no other token; of a long text the words that bring most. What is said without the head
    that the answer is told to come from, and the way through the vocabulary of the word that is
    said without the word that matters most. And where the FFN brings the answer when it does not
    see the word that this comes from.

    token: of the first stream. hide: as of the flow. guess: a word, whose way through the
    vocabulary is told in place of all this, by its first token, with the probability of all of
    it after a text that goes on. temperature: that a model which continues texts draws its words
    at. Raises ValueError for a model that cannot follow such an edit or predicts no words, where
    there is no word to take out, and for a guess that no token begins.
    """
    plain = replace(run, edits=())
    base = plain.recording()
    if not base.attention or not flow_analysis.in_layers(base.streams[0]):
        raise ValueError(WORDS("no_words"))
    whole, shown = ways_of(plain, token, hide), ways_of(run, token, hide)
    way = whole.ways[-1]
    reading = reading_of(whole.drawn, way)
    if guess and reading is not None:
        ids = _ids_of(guess[:N_LETTERS], reading)
        of = race(shown, whole, temperature, ids[:1])
        return _guessed(of, ids, guess[:N_LETTERS], whole.drawn)
    if reading is None or not interventions.can_follow(base, HideWord):
        raise ValueError(WORDS("no_words"))
    on = interventions.Pair(
        base,
        select_stream(plain, way.token, way.stream.name),
        whole.drawn.edits,  # those that hide the token
    )
    asked = _words_out(base, on, whole)
    if not asked:
        raise ValueError(WORDS("no_words"))
    of = race(whole, whole, temperature)
    assert of is not None
    head = _head_out(of)
    changes = _changes(on, asked | head, temperature)
    of_head = [_without_head(of, changes.pop(place)) for place in head]
    id, labels, word = of.answer, interventions.words_to_take_out(base), reading.label
    before = float(reading.drawn(temperature).drawn[id])
    left = {at: float(change.after[id]) for at, change in changes.items()}
    said = {at: change.top_after for at, change in changes.items()}
    kinds = word_classes.classes(base.streams[0].tokens)
    is_content = {at: kinds[at] == word_classes.CONTENT for at in left}
    best, turns = _word_that_tells(of, left, said, is_content, labels)
    told = said[best] if turns else id
    columns: Columns = {
        "word": [labels[at] for at in left],
        "edits": [to_line(asked[at]) for at in left],
        "content": [is_content[at] for at in left],
        "turns_most": [turns and at == best for at in left],
        "probability": list(left.values()),
        "says": [word(said[at]) for at in left],
    }
    slots = {"out": labels[best], "word": word(told), "p": tenths(float(changes[best].after[told]))}
    of_word = WORDS("without_says" if turns else "without_has", **slots)
    finding = _joined(of_word, *of_head) if turns else _joined(*of_head, of_word)
    bars = tuple(BarRow(labels[at], (p,), (tenths(p),), outline=before) for at, p in left.items())
    parts = [("word", columns), *_rival(shown, whole, of, told)]
    parts += _blind_ffn(of, base, whole.drawn)
    return Panel(
        title=WORDS("each_title", word=word(id)),
        finding=finding,
        figures=(Bars(columns=(WORDS("left", word=word(id)),), rows=bars, high=1.0),),
        table=stacked(parts, "row"),
        file="each-word",
        at={"run": whole.drawn},
    )


def _rival(shown: Ways, whole: Ways, of: Race, id: int) -> list[tuple[str, Columns]]:
    """The way of a word (id) that is none of a race, as parts of a table."""
    if id in of.core:
        return []
    with_rival = race(shown, whole, of.temperature, (id,))
    assert with_rival is not None
    return _lane_rows(with_rival, with_rival.lane(id), "rival")


def _changes(
    on: interventions.Pair, asked: Mapping[int, tuple[Edit, ...]], temperature: float
) -> dict[int, PredictionChange]:
    """The predictions without some parts, by their names, drawn at a temperature."""
    return {
        name: replace(change, after=_drawn(change.after, temperature))
        for name, change in interventions.each_word_out(on, asked).items()
    }


def _head_out(of: Race) -> dict[int, tuple[Edit, ...]]:
    """The edit that takes out the head that the answer comes from, at -1, the place of no word;
    none where there is no such head, or its model cannot follow that."""
    found = of.cause
    if found is None or not interventions.can_follow(of.typed, ZeroHead):
        return {}
    return {-1: (ZeroHead(_layer_number(found), found.head, found.attention.name),)}


def _without_head(of: Race, change: PredictionChange) -> str:
    """Sentence on what the answer loses without the head that it comes from, and on the word that
    leads then."""
    assert of.cause is not None
    own, after, id = of.now.drawn(of.temperature).drawn, change.after, of.answer
    slots = {**_head_and_word(of, of.cause), "answer": of.now.label(id)}
    slots |= {"before": tenths(float(own[id])), "after": tenths(float(after[id]))}
    if change.top_after == id and after[id] > LITTLE_LEFT * own[id]:
        return WORDS("head_little" if after[id] <= own[id] else "head_against", **slots)
    lead = change.top_after
    rises = "" if lead == id else _rises(of.now, id, lead, own, after)
    return _joined(WORDS("head_falls", **slots), rises)


def _blind_ffn(of: Race, plain: Recording, drawn: Run) -> list[tuple[str, Columns]]:
    """Place of the answer after the layer of the head that it comes from, if that layer's FFN wrote
    what it writes in the text without the head's word, and all else were as it is: a part of a
    table; none where the FFN brings the answer no further than so. plain: the recording without
    edits; drawn: the run that is."""
    found, at = of.cause, of.causing_layer
    if found is None or at is None or not interventions.can_follow(of.typed, HideWord, SetSite):
        return []
    _, middle, after = _places_in(of, at)
    layer, way = _layer_number(found), of.now.way
    ffn = way.ffn(layer)
    if ffn is None or after >= middle:
        return []
    name = found.attention.key
    hidden = words_analysis.hidden_word(
        plain, found.key, None if name == plain.streams[0].name else name
    )
    without = replace(drawn, edits=(*hidden, *drawn.edits)).recording()
    wrote = without.stream(way.stream.name).at(ffn.wrote)[way.token]
    blind = SetSite(wrote, site=ffn.wrote, token=way.token, stream=way.stream.name)
    recording = replace(drawn, edits=(*drawn.edits, blind)).recording()
    site = of.now.lens.sites[of.now.ends[layer]]
    lens = loaded(recording).lens(recording, way.stream.name, 1, way.token, (site,), (of.answer,))
    place = int(lens.ranks[lens.sites.index(site), 0]) + 1
    if place < MUCH_FURTHER * after:
        return []
    slots = {"word": _word_of(of, found), "answer": of.now.label(of.answer)}
    said = [WORDS(name, **slots) for name in ("blind", "tag_blind")]
    return [("ffn", {"place": [place], "says": said[:1], "word": said[1:]})]


def _word_that_tells(
    of: Race,
    left: Mapping[int, float],
    said: Mapping[int, int],
    is_content: Mapping[int, bool],
    labels: Mapping[int, str],
) -> tuple[int, bool]:
    """The word, by its token, without which what is told is said, and whether another word leads
    then: of those the one that the answer comes from, else one of content. left: of the answer's
    probability; said: the word (id) that leads; labels: of the words."""
    say = of.now.label
    turning = [at for at in left if said[at] != of.answer and say(said[at]) != labels[at]]
    cause = of.cause.key if of.cause and of.cause.attention.key == of.typed.streams[0].name else -1
    if not turning:
        return min(left, key=left.__getitem__), False
    return min(turning, key=lambda at: (at != cause, not is_content[at], left[at])), True


def _words_out(base: Recording, on: interventions.Pair, whole: Ways) -> dict[int, tuple[Edit, ...]]:
    """The edits that take the words of a text out, by their tokens: of those that bring most as
    many as there is time for."""
    n_tokens = sum(len(each.tokens) for each in base.streams)
    most = min(N_OUT, int(offers.MAX_WORK / max(1, base.model.n_parameters * n_tokens)))
    asked = interventions.edits_of_words(on)
    weight = np.sum([each.brought(base.streams[0]) for each in whole.ways], axis=0)
    return {at: asked[at] for at in sorted(sorted(asked, key=lambda at: -weight[at])[:most])}


def _drawn(p: np.ndarray, temperature: float) -> np.ndarray:
    """The distribution that words of a probability (id) are drawn from at a temperature."""
    if temperature == 1:
        return p
    logits = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
    return predictions.distribution(logits, Sampling(temperature)).drawn


def _ids_of(guess: str, reading: LensReading) -> tuple[int, ...]:
    """The tokens (id) of a guessed word, behind a space where the first one begins it. Raises
    ValueError where there are none."""
    model = loaded(reading.way.recording)
    texts = [each.encode("utf-8", "replace").decode("utf-8") for each in (f" {guess}", guess)]
    found = [tuple(ids) for ids in model.tokenizer.ids(texts) if ids]
    label = lambda ids: reading.label(ids[0]).removeprefix(CONTINUES)
    begins = [ids for ids in found if label(ids) and guess.startswith(label(ids))]
    if not found:
        raise ValueError(WORDS("no_guess", word=guess))
    return next(iter(begins), found[0])


def _guessed(of: Race | None, ids: tuple[int, ...], guess: str, drawn: Run) -> Panel:
    """The way of the word that a reader guesses, by its first token, with its probability: of all
    of its tokens (id) where the model can be asked for that. drawn: the run that is, without
    edits."""
    assert of is not None
    lane, chances = of.lane(ids[0]), [_chance_of(of.now, ids, of.temperature)]
    if of.before is not None:
        chances.append(_chance_of(of.before, ids, of.temperature))
    whole = [each for each in chances if each is not None]
    if is_whole := len(whole) == len(chances):
        lane = replace(lane, chance=whole[0], were=whole[-1] if of.before else lane.were)
    first, *rest = _lane_rows(of, lane, "guess")
    kind, columns = first
    columns = {**columns, "is_whole": [is_whole] * len(chances)}
    return Panel(
        title=WORDS("guess_title", word=guess),
        finding="",
        figures=(),
        table=stacked([(kind, columns), *rest], "row"),
        file="guess",
        at={"run": drawn},
    )


def _chance_of(reading: LensReading, ids: tuple[int, ...], temperature: float) -> float | None:
    """The probability of a word (its tokens' ids) at the end of a way; None where that of its first
    token alone is known."""
    if len(ids) == 1:
        return float(reading.drawn(temperature).drawn[ids[0]])
    if temperature != 1 or reading.asked != "next":
        return None
    recording, token = reading.way.recording, reading.way.token
    found = loaded(recording).word_probabilities(recording, token, [ids])
    return found[0] if found else None


def _lane_rows(of: Race, lane: FlowLane, name: str) -> list[tuple[str, Columns]]:
    """The way of a further word of a race through the vocabulary, as parts of a table."""
    chances = [lane.chance, *([lane.were] if of.before else [])]
    return [
        (
            name,
            {
                "word": [lane.label] * len(chances),
                "id": [lane.id] * len(chances),
                "probability": chances,
                "text": [tenths(each) for each in chances],
            },
        ),
        ("place", {"place": lane.places}),
        ("middle", {"place": lane.middles}),
        ("place before", {"place": lane.was_places}),
    ]
