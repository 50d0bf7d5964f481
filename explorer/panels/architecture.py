"""The whole machine in one picture: what happens to a token from the text to the word that comes
out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np

from explorer.analysis import flow as flow_analysis
from explorer.analysis import (
    logit_lens,
    predictions,
    residual,
    terminology,
)
from explorer.analysis import words as words_analysis
from explorer.analysis.coreference import nouns_of
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import word_groups
from explorer.analysis.head_naming import NO_PATTERN
from explorer.figures.formatting import (
    Written,
    fixed,
    hundredths,
    percent,
    tenths,
    word_in_sentence,
)
from explorer.figures.kinds import (
    Flow,
    FlowAttention,
    FlowBand,
    FlowLane,
    FlowLayer,
    FlowLink,
    FlowStop,
    FlowWord,
)
from explorer.panels import anatomy, flow_beam, flow_levels, generation, interventions, spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.flow_levels import FFN, HEAD, LAYER, LEVELS, MODEL, WEIGHT, Opened
from explorer.panels.flow_way import (
    Additions,
    AnsweringHead,
    Hidden,
    LensReading,
    Way,
    Ways,
    ways_of,
)
from explorer.panels.selection import (
    FirstAttention,
    HeadOrEvery,
    KeyOfRow,
    LayerOrEvery,
    Selection,
    WordOnItsWay,
    model_name,
    place_if_any,
    place_of,
    select,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import Edit, HideWord, ZeroHead, to_line
from models.contract.recording import COVER, Attention, Recording, Stream
from models.contract.results import WholeWord
from models.runtime.caching import is_hurrying, loaded, memo
from models.runtime.run import Run
from models.tokens import chat

CONCEPT = "architecture"
WORDS = sentences(CONCEPT, "flow")
MOST_ROWS = 16  # tokens that have a row of their own; of a longer text these are the chosen one
N_KEPT = 11  # and those that matter most for it
N_WORDS = 5  # of the output
NO_LETTER = "\ufffd"  # stands in a text for bytes that are no letter
FAINTEST = 0.22  # share of what is brought to another row from which on its curve is drawn
# Formulas of the model's level, without a head and with one in focus.
OF_MODEL, OF_HEAD = ("readout", "whole-word"), ("attention", "rotary")
NUMBERS = {
    "Prediction": "Change of the prediction",
    "Rotation angle": "Rotation angle",
    "Update norm": "Update norm",
    "Share": "Share of the update",
}


def predicts(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True for a model that predicts words."""
    return not run.loaded.capabilities.no_readout


def numbers_of(run: Run, chosen: Mapping[str, Any]) -> str:
    """The numbers below each layer until a reader chooses: of a model that predicts no word its
    rotations."""
    has_readout = not loaded(run.recording()).capabilities.no_readout
    return "Prediction" if has_readout else "Rotation angle"


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a stream: the tokens with one of their own, and whether a last one stands for the
    others."""

    stream: Stream
    tokens: list[int]
    first: int  # the number of its first row in the picture

    @cached_property
    def rest(self) -> list[int]:
        """The tokens without a row of their own."""
        return sorted({*range(len(self.stream.tokens))} - {*self.tokens})

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.tokens) + bool(self.rest)

    @cached_property
    def place(self) -> int:
        """The row of those, -1 for none: in their middle."""
        rest = self.rest
        return sum(at < rest[len(rest) // 2] for at in self.tokens) if rest else -1

    def row(self, token: int) -> int:
        """The row of a token with one of its own."""
        at = self.tokens.index(token)
        return at + (0 <= self.place <= at)

    def with_rest(self, of: Sequence[str], rest: str) -> tuple[str, ...]:
        """The values of the tokens with a row, and `rest` at the row of the others."""
        own = [of[at] for at in self.tokens]
        return tuple(own if self.place < 0 else [*own[: self.place], rest, *own[self.place :]])

    def fold(self, shares: np.ndarray) -> np.ndarray:
        """Shares of tokens (..., token) by row: those without one of their own are summed."""
        own = shares[..., self.tokens]
        return np.insert(own, self.place, shares[..., self.rest].sum(-1), -1) if self.rest else own


@spec.predicts
@spec.panel
def flow(
    run: Run,
    token: WordOnItsWay = OPENS,
    layer: LayerOrEvery = OPENS,
    head: HeadOrEvery = OPENS,
    source: KeyOfRow = OPENS,
    beam: Annotated[
        str,
        Choice(
            name="flow_beam",
            of="text",
            accepts=lambda word: word in ("", flow_beam.END) or word.isdecimal(),
            help=f"the layer under the beam, from 0, or {flow_beam.END}; the question before it",
        ),
    ] = "",
    level: Annotated[
        str,
        Choice((*LEVELS, FFN), name="flow_level", help="how far the picture is opened"),
    ] = MODEL,
    step: Annotated[str, anatomy.WEIGHT_STEP] = "",
    attention: FirstAttention = OPENS,
    hide: Hidden = None,
    temperature: flow_beam.Temperature = 1.0,
    number: Annotated[
        str,
        Choice(NUMBERS, "Below each layer", name="flow_number", menu=True, suits=numbers_of),
    ] = "Prediction",
    cover: Annotated[
        bool,
        Choice(label="Cover the prediction", name="flow_cover", menu=True, when=predicts),
    ] = False,
) -> Panel:
    """The whole machine on the text: what each head brings to a token from each other token, what
    each layer makes of the prediction there, and the words that come out.

    token: of the first stream; where None the one whose next word is predicted, or the word that
    the strongest finding is about. hide: the token is hidden from a model that fills in words; such
    a model's is where None. layer: the one in focus; where None that whose attention adds most to
    the final answer, where that is much, else the one that raises it most. head: its head in focus,
    None for all together. source: the key that its weight is opened at, the one of the largest
    weight where None. beam: the layer under it, of a translator counted through both streams, "end"
    for what comes out, "" for the question before; a model that is asked nothing is then at its
    end. level: how far the picture is opened, one of LEVELS or FFN, or as far as the model shows
    it; a head and a weight are those of the head that brings most where None is chosen. step: of a
    weight's calculation, the one on show. attention: the name of the one that is in focus, ""
    for that which adds most. temperature: of the words that come out of a model that continues
    texts. number: what stands below each layer, one of NUMBERS. cover: nothing tells what the model
    predicts. Raises ValueError for what is not there and for a model that shows neither its stream
    nor its attention.
    """
    choices = (token, layer, head, source, level, step, attention, hide, temperature, number)
    made = partial(_machine, run, *choices)

    just_made: list[flow_beam.Race | None] = []  # a race holds whole streams, and is not kept

    def make() -> tuple[Panel, flow_beam.BeamFacts | None]:
        panel, race = made()
        just_made.append(race)
        plain, drawn = run.recording(), panel.at["run"]
        is_across = race is not None and not race.now.way.is_first
        words = plain.streams[0].tokens
        source = words[place_of("token", token, len(words))] if is_across else ""
        return panel, flow_beam.beam_facts(race, plain, drawn, source) if race else None

    panel, told = memo(run.recording(), ("flow", run.target, *choices), make)
    machine = panel.figures[0]
    assert isinstance(machine, Flow)
    is_question = not machine.level and _column(machine, beam) < 0
    if cover or (run.covered is not None and not is_question):
        return _covered(panel)
    return _under_beam(panel, told, beam, lambda: just_made[0] if just_made else made()[1])


def _under_beam(
    panel: Panel,
    told: flow_beam.BeamFacts | None,
    beam: str,
    race: Callable[[], flow_beam.Race | None],
) -> Panel:
    """The panel with what takes longer to make, and the sentences of where the beam stands. race:
    makes what is told of again, for what takes longer."""
    machine, *below = panel.figures
    assert isinstance(machine, Flow)
    drawn, stops = panel.at["run"], machine.stops
    recording = drawn.recording()
    if told is not None:
        machine = _with_whole_words(drawn, machine, told)
    if not is_hurrying():  # what is missing is not seen at once, and the page's own panel has it
        machine = flow_beam.with_words(told, recording, machine, race) if told else machine
    is_hidden = told is not None and told.asked == "hidden" and not machine.level
    unknown = flow_beam.WORDS("unknown", model=model_name(recording))
    titles = (unknown, panel.title) if is_hidden else ()
    machine = replace(machine, current=_column(machine, beam), titles=titles)
    predicted = told.numbers if told else {}
    panel = replace(panel, figures=(machine, *below), numbers={**panel.numbers, **predicted})
    if machine.level:
        for stop, named in zip(stops, machine.stops):  # a layer says what its stop says
            if stop.finding and panel.finding.startswith(stop.finding):
                finding = named.finding + panel.finding.removeprefix(stop.finding)
                return replace(panel, finding=finding)
        return panel
    at = machine.current
    if at < 0 and told is not None:
        return _asking(panel, told)
    if is_hidden and at < len(machine.layers):
        panel = replace(panel, title=unknown)
    stop = machine.stops[at]
    return replace(panel, finding=" ".join(filter(None, (stop.finding, stop.part))))


def _asking(panel: Panel, told: flow_beam.BeamFacts) -> Panel:
    """The question before the light is on, in which no row has a name: the word that is asked for
    has none below the picture either."""
    machine = panel.figures[0]
    assert isinstance(machine, Flow)
    drawn = panel.at["run"]
    name, of = model_name(drawn.recording()), _last_token(machine)
    is_next = told.asked == "next"
    covered = drawn.covering(of + 1 if is_next else of)
    title = panel.title if is_next else flow_beam.WORDS("unknown", model=name)
    if not is_next:
        panel = replace(panel, caption=(WORDS("hidden_caption", word=COVER, token=of),))
    return replace(
        panel,
        title=title,
        finding=told.question(name),
        at={**panel.at, "run": covered},
    )


def _column(machine: Flow, beam: str) -> int:
    """The column under the beam, the number of columns for the end, -1 for the question."""
    end = len(machine.layers)
    if not beam:
        return -1 if machine.asks[2] else end
    return min(int(beam), end - 1) if beam.isdecimal() else end


def _last_token(machine: Flow) -> int:
    """The token of the picture whose word comes out."""
    band = machine.bands[-1]
    return int(band.places[band.selected])


def _covered(panel: Panel) -> Panel:
    """The picture without anything that tells what the model predicts: no words that come out,
    none below the chosen row, and no number of theirs."""
    machine, *below = panel.figures
    assert isinstance(machine, Flow)
    layers = tuple(replace(each, says=None, answer=None, numbers="") for each in machine.layers)
    is_attention = machine.level >= LEVELS.index(HEAD) and not panel.at["run"].edits
    stops = tuple(FlowStop(WORDS("covered"), each.levels, each.switch) for each in machine.stops)
    bare = replace(machine, layers=layers, words=(), says="", note="", leads=())
    bare = replace(bare, lanes=(), leaders=(), matters=(), slow=(), stops=stops)
    bare = replace(
        bare, asks=("", "", ""), cause=(), against=-1, titles=(), current=len(layers), out=""
    )
    bare = replace(bare, hint=WORDS("uncovering"))
    return replace(
        panel,
        finding=panel.finding if is_attention else WORDS("covered"),
        figures=(bare, *(below if machine.level >= LEVELS.index(HEAD) else ())),
        table={},
    )


def _with_whole_words(run: Run, machine: Flow, told: flow_beam.BeamFacts) -> Flow:
    """The picture, whose words that come out are named by the whole ones that they begin, each with
    the probability of what it names, and what is said of them in the end."""
    recording, token = run.recording(), _last_token(machine)
    if told.temperature == 1 and logit_lens.predicts_next(recording):
        lanes = [each.id for each in machine.lanes]
        whole = loaded(recording).words_after(recording, token, lanes)
        is_special = bool(logit_lens.read_stream(recording).special[token])
        written = partial(predictions.without_mark, after_special=is_special)
        words = tuple(
            replace(each, label=predictions.first_piece(whole[each.id], written))
            if each.id in whole
            else each
            for each in machine.words
        )
        race = _whole_lanes(run, token, machine.lanes, whole, written)
        is_kept = _leaders(race) == _leaders(machine.lanes)
        machine = replace(machine, words=words, lanes=race if is_kept else machine.lanes)
    name = model_name(recording)
    last = replace(machine.stops[-1], finding=flow_beam.finding_of_end(told, machine, name))
    begun = partial(_begun, machine.lanes)
    stops = (
        replace(each, finding=begun(each.finding), adds=begun(each.adds))
        for each in machine.stops[:-1]
    )
    is_begun = machine.note and any(each.rest for each in machine.lanes)
    note = f"{machine.note} {WORDS('begun')}" if is_begun else machine.note
    return replace(machine, stops=(*stops, last), note=note)


def _begun(lanes: Sequence[FlowLane], sentence: str) -> str:
    """A sentence that names a token which begins a word as the beginning that it is."""
    for lane in lanes:
        if lane.rest:
            sentence = sentence.replace(f"“{lane.label}”", f"“{lane.label}…”")
    return sentence


def _leaders(lanes: Sequence[FlowLane]) -> tuple[int, int]:
    """The words (id) with the largest probability in the end, and without the run's edits."""
    by_chance, by_were = (
        max(lanes, key=lambda each: getattr(each, name)).id for name in ("chance", "were")
    )
    return by_chance, by_were


def _whole_lanes(
    run: Run,
    token: int,
    lanes: tuple[FlowLane, ...],
    whole: Mapping[int, WholeWord],
    written: Callable[[str], str],
) -> tuple[FlowLane, ...]:
    """Words that race after a token of a run as the whole ones that their tokens begin, each with
    the probability of all of it, under edits without them too, the likeliest first. written: what
    a label reads as."""
    words = [whole[each.id] for each in lanes if each.id in whole]
    is_changed = any(each.were >= 0 for each in lanes)
    before: list[float] | None = [-1.0] * len(words)
    if is_changed and words:
        typed = replace(run, edits=()).recording()
        before = loaded(typed).word_probabilities(typed, token, [each.ids for each in words])
    if before is None:  # the word's piece has a number of both runs, the word of one alone
        return lanes
    were = dict(zip((each.ids[0] for each in words), before))
    named = (
        replace(
            lane,
            rest=written(word.word).removeprefix(lane.label),
            chance=word.own,
            text=predictions.of_whole(word),
            were=were[lane.id],
            was_text=predictions.of_whole(replace(word, own=were[lane.id])) if is_changed else "",
        )
        if (word := whole.get(lane.id))
        else lane
        for lane in lanes
    )
    return tuple(sorted(named, key=lambda lane: -lane.chance))


def _machine(
    run: Run,
    token: int,
    layer: int | None,
    head: int | None,
    source: int | None,
    level: str,
    step: str,
    attention: str,
    hide: bool | None,
    temperature: float,
    number: str,
) -> tuple[Panel, flow_beam.Race | None]:
    """The picture, whose words that come out are tokens and whose hidden units are not named, and
    the race in it."""
    plain = run.recording()
    if not plain.attention or not flow_analysis.in_layers(plain.streams[0]):
        raise ValueError(WORDS("closed", model=model_name(plain)))
    first = plain.streams[0]
    token = place_of("token", token, len(first.tokens))
    shown = ways_of(run, token, hide)
    drawn, ways, hidden = shown.drawn, shown.ways, shown.is_hidden
    whole = ways_of(replace(run, edits=()), token, hide) if run.edits else shown
    race = flow_beam.race(shown, whole, temperature)
    reading = race.now if race else None
    focus = _focus(ways, race, attention, layer, head)
    view = _view(run, drawn, ways, reading, focus, source, level)
    if head is None and view.level in (LAYER, FFN) and (found := _told_head(view, race)):
        own = _of_answer(view, found)
        view = replace(view, on=own.on, key=own.key)
    answering = race.cause if race else None
    end = view if answering is None or view.is_kept else _of_answer(view, answering)
    opened = view.opened(step, race)
    if view.level == FFN and not opened.finding:
        view = replace(view, level=LAYER)
    about = replace(focus, head=None if view.level in (LAYER, FFN) else view.head)
    caption = "hidden_caption" if hidden else "caption"
    word, levels = first.tokens[token], () if view.level == MODEL else (view.level.lower(),)
    panel = Panel(
        WORDS("hidden_title" if hidden else "title", word=word, model=model_name(plain)),
        opened.finding
        or " ".join(filter(None, (_about_opened(plain, view, about, race), opened.also))),
        (
            _figure(view, end, whole, race, number),
            *opened.figures,
        ),
        table=opened.table or _table(plain, ways),
        details=opened.details or tuple(WORDS.lines("details"))[: None if race else -2],
        caption=(WORDS(caption, word=word_in_sentence(word), token=token),),
        file="-".join(("flow", *levels, f"token-{token}")),
        formulas=opened.formulas,
        numbers=view.numbers,
        at={"run": drawn, **about.place(view.way), "source": view.key},
    )
    return panel, race


@dataclass(frozen=True, eq=False)
class FlowView:
    """Subject of the picture: the run that was asked for and the one that is drawn, the ways of its
    token, what the last one says, and what is in focus. on: the head in focus, or the one that
    brings most, with the way's token as its query, None where the layer has no attention; key: of
    its weight. level: one of LEVELS."""

    run: Run
    drawn: Run
    ways: Sequence[Way]
    reading: LensReading | None
    focus: Focus
    on: Selection | None
    key: int | None
    level: str

    @property
    def numbers(self) -> dict[str, Written]:
        """The sizes of the model, and the weight in focus."""
        card = self.drawn.recording().model
        sizes = {"vocabulary": card.n_vocab, "width": card.d_model, "heads": card.n_head}
        numbers = {name: Written.count(n) for name, n in sizes.items()}
        if self.on is not None and self.key is not None:
            numbers["weight"] = self.on.weight(self.key)
        return numbers

    @property
    def way(self) -> Way:
        """The way of the band in focus."""
        return self.ways[self.focus.band]

    @property
    def head(self) -> int | None:
        """The head that is drawn alone, None for all together."""
        is_whole = self.level in (MODEL, LAYER, FFN)
        return self.focus.head if is_whole or self.on is None else self.on.head

    def opened(self, step: str, race: flow_beam.Race | None) -> Opened:
        """Figures below the picture. step: of a weight's calculation; race: of the words that an
        FFN adds to, without which its layer is opened."""
        focus, way = self.focus, self.way
        if self.level == FFN and race is not None and race.now.way is way:
            words, places = (race.answer, race.rival), race.ffn_places(focus.layer)
            inside = flow_levels.ffn(
                way.recording, way.stream, way.token, focus.layer, *words, places
            )
            if inside is not None:
                return inside
        if self.level in (LAYER, FFN):
            parts, stream = way.layers[focus.layer], way.stream
            by_site = {f"{focus.layer}.{_place(each)}": each for each in way.attentions}
            return flow_levels.layer(way.recording, stream, way.token, parts, by_site)
        if self.level == MODEL or self.on is None or self.key is None:
            return Opened((), {}, OF_MODEL if race or focus.head is None else OF_HEAD)
        is_first = focus.band == 0
        opened = (
            flow_levels.head(self.on, self.key, is_first)
            if self.level == HEAD
            else flow_levels.weight(self.on, self.key, step)
        )
        if is_first:
            return opened
        # Rows are of a stream whose token follows that of the first one.
        return replace(opened, figures=flow_levels.pressing(opened.figures, way.token))

    @property
    def levels(self) -> tuple[FlowLink, ...]:
        """Links to each level that there is, with the selection that stays."""
        focus, on, way = self.focus, self.on, self.way
        chosen = {"attention": focus.name, "layer": str(focus.layer)}
        head = {"head": "" if focus.head is None else str(focus.head)}
        all_heads = {"head": ""}
        links = [(WORDS("to_model"), all_heads), (WORDS("to_layer", layer=focus.layer), head)]
        if on is not None and self.key is not None:
            head = {"head": str(on.head)}
            typed = self.run.recording()
            query, keys = typed.stream(way.stream.name), typed.stream(on.attention.key)
            names = {"query": query.tokens[way.token], "key": keys.tokens[self.key]}
            links += [(WORDS("to_head", head=on.head), head)]
            if self.level == WEIGHT or not self.is_word_out(keys.name, self.key):
                links += [(WORDS("to_weight", **names), head)]
        there = links[: flow_levels.deepest(focus.attention) + 1]
        return tuple(
            FlowLink(label, {**chosen, **to, "flow_level": "" if level == MODEL else level})
            for (label, to), level in zip(there, LEVELS)
        )

    def is_word_out(self, stream: str, token: int) -> bool:
        """True where the run has a token's word taken out."""
        first = self.run.recording().streams[0].name
        out = [each for each in self.run.edits if isinstance(each, HideWord)]
        return any(each.token == token and (each.stream or first) == stream for each in out)

    @property
    def written(self) -> tuple[FlowLink, ...]:
        """Link that writes the likeliest next word behind the text, the first of those that come
        out; nothing where the model writes none here."""
        recording, reading, model = self.way.recording, self.reading, self.run.loaded
        stream = recording.streams[0]
        ids = stream.ids.tolist()
        is_last = reading is not None and reading.way.token == len(ids) - 1
        if reading is None or not is_last or not flow_beam.continues(self.run, {}):
            return ()
        id = reading.prediction.words[0].id
        is_over = model.is_end(id) or len(ids) >= recording.model.n_positions
        if is_over or not model.capabilities.writes or chat.n_messages(recording):
            return ()
        text = generation.with_tokens(self.run.model, self.run.text, [*ids, id], len(ids))
        if text.count(NO_LETTER) > self.run.text.count(NO_LETTER):
            return ()  # a part of a letter, which no text holds
        select = {"text": text, "token": str(len(ids)), "flow_beam": flow_beam.END}
        return (FlowLink(WORDS("write", word=reading.label(id)), select),)

    @property
    def leads(self) -> tuple[FlowLink, ...]:
        """Links to the tabs that show more of what is in focus, or of the head that brings most
        where none is."""
        focus, on, level = self.focus, self.on, self.level
        if level in (LAYER, FFN):
            parts = self.way.layers[focus.layer]
            at = {"tab": "feedforward", "layer": focus.layer, "token": self.way.token}
            at |= {"stream": self.way.stream.name} if focus.band else {}
            has_ffn = any(each.place == "ffn" for each in parts)
            return (FlowLink(WORDS("to_ffn"), {"address": urlencode(at)}),) if has_ffn else ()
        if on is None:
            return ()
        at = {"attention": on.name, "layer": on.layer, "head": on.head, "token": on.query}
        tabs = [(WORDS("to_heads"), {"tab": "heads", **at})]
        if on.attention.opens and level == WEIGHT:
            cell = {"weight_at": f"{on.query}.{self.key}"}
            tabs.append((WORDS("to_one_head"), {"tab": "weight", **at, **cell}))
            if self.run.loaded.capabilities.weights:
                fold = {"weight_fold": "Sources"}
                tabs.append((WORDS("to_sources"), {"tab": "weight", **at, **cell, **fold}))
        return tuple(FlowLink(label, {"address": urlencode(to)}) for label, to in tabs)

    @property
    def ablation(self) -> ZeroHead | None:
        """The edit that switches the head in focus off, or the one that brings most where none is;
        None where it cannot be."""
        if self.on is None or ZeroHead not in self.run.loaded.capabilities.edits:
            return None
        return ZeroHead(self.focus.layer, self.on.head, self.focus.name)

    @property
    def is_kept(self) -> bool:
        """True where a head in focus stays there at every stop: it is opened, or taken out. Else it
        is of another text, and each stop has the head that it tells of."""
        return self.level != MODEL or self.ablation in self.run.edits

    @property
    def switch(self) -> FlowLink | None:
        """Link that switches that head off, or on again, and brings it into focus."""
        edit, focus = self.ablation, self.focus
        if edit is None:
            return None
        is_off = edit in self.run.edits
        edits = [each for each in self.run.edits if each != edit] + ([] if is_off else [edit])
        at = {"attention": focus.name, "layer": str(focus.layer), "head": str(edit.head)}
        return FlowLink(
            WORDS("switch_on" if is_off else "switch_off", head=edit.head),
            {"edits": _each_in_line(terminology.sorted_edits(tuple(edits))), **at},
        )

    @property
    def restores(self) -> FlowLink | None:
        """Link that puts back what was taken out last, a head or a word; None where nothing is."""
        out = [each for each in self.run.edits if isinstance(each, (ZeroHead, HideWord))]
        if not out:
            return None
        last, plain = out[-1], self.run.recording()
        gone: tuple[Edit, ...] = (last,)
        if isinstance(last, ZeroHead):
            label = WORDS("switch_on", head=last.head)
        else:
            stream = plain.stream(last.stream or plain.streams[0].name)
            gone = words_analysis.hidden_word(plain, last.token, last.stream)
            label = WORDS("word_back", word=stream.tokens[last.token])
        return FlowLink(
            label, {"edits": _each_in_line(each for each in self.run.edits if each not in gone)}
        )


def _each_in_line(edits: Iterable[Edit]) -> str:
    """Edits in one line, each a word by itself, so that a press takes one of them back."""
    return ",".join(to_line((each,)) for each in edits)


def _view(
    run: Run,
    drawn: Run,
    ways: Sequence[Way],
    reading: LensReading | None,
    focus: Focus,
    source: int | None,
    level: str,
) -> FlowView:
    """Subject of the picture, opened no further than the model shows it."""
    if level != FFN:
        level = LEVELS[min(LEVELS.index(level), flow_levels.deepest(focus.attention))]
    if focus.attention is None:
        return FlowView(run, drawn, ways, reading, focus, None, None, level)
    way = ways[focus.band]
    shares = way.to_token[focus.name, focus.layer].shares[:, 0].sum(-1)
    head = int(np.nan_to_num(shares).argmax()) if focus.head is None else focus.head
    at = flow_analysis.layer_numbers(focus.attention).index(focus.layer)
    on = _as_typed(run.recording(), select(drawn, at, head, way.token, focus.name))
    key = on.strongest if source is None else on.place_of_key(source)
    return FlowView(run, drawn, ways, reading, focus, on, key, level)


def _as_typed(plain: Recording, on: Selection) -> Selection:
    """A selection whose tokens have the labels of the text as it was typed: the hidden one is
    called by its word on every level."""
    if on.is_across:
        return on
    rows, keys = (plain.stream(each).tokens for each in (on.attention.query, on.attention.key))
    return replace(on, axes=replace(on.axes, rows=rows, keys=keys))


def _place(attention: Attention) -> str:
    """The place in a layer at which an attention writes."""
    return "cross" if attention.query != attention.key else "attn"


def _of_answer(view: FlowView, found: AnsweringHead) -> FlowView:
    """The view of the head that makes the answer, of the model's own level."""
    way = view.ways[-1]
    attention = next(each for each in way.attentions if each.name == found.attention.name)
    layer = flow_analysis.layer_numbers(attention)[found.layer]
    focus = Focus(len(view.ways) - 1, layer, attention, found.head)
    return _view(view.run, view.drawn, view.ways, view.reading, focus, found.key, MODEL)


def _figure(
    view: FlowView, end: FlowView, whole: Ways, race: flow_beam.Race | None, number: str
) -> Flow:
    """The picture. end: what the end leads on to; whole: the ways without the run's edits; number:
    what stands below each layer."""
    plain, ways, focus, reading = view.run.recording(), view.ways, view.focus, view.reading
    typed = whole.run.recording()
    rows = _rows(ways, race, typed)
    of_token, first = _rows_of_tokens(rows), typed.streams[0]
    number = number if number != "Prediction" or reading else "Rotation angle"
    names = _names(plain)
    layers = tuple(
        _layer(
            plain,
            way,
            whole.ways[at],
            at,
            each,
            rows,
            reading,
            number,
            names,
            race.adds if race else None,
        )
        for at, way in enumerate(ways)
        for each in way.layers
    )
    recording = view.way.recording
    offset = len(layers) - len(ways[-1].layers)
    through = tuple(at + offset for at in race.matters) if race else ()
    return Flow(
        note=_note(recording, reading, number, race) if view.level == MODEL else "",
        bands=tuple(
            _band(plain, each, of, len(ways) > 1, view.drawn) for each, of in zip(ways, rows)
        ),
        layers=layers,
        words=_output(race),
        layer=focus.layer,
        band=focus.band,
        attention="" if focus.attention is recording.attention[0] else focus.name,
        head=-1 if view.head is None or view.level == MODEL else view.head,
        says=WORDS("says") if reading else "",
        between=WORDS("memory") if len(ways) > 1 else "",
        level=LEVELS.index(LAYER if view.level == FFN else view.level),
        ffn=view.level == FFN,
        leads=(*end.leads, *view.written) if view.level == MODEL else view.leads,
        stops=_stops(view, end, race),
        votes=tuple(
            (of_token[first.name][token], noun) for token, noun in _voted(typed, first).items()
        ),
        lanes=race.lanes() if race else (),
        leaders=race.leaders() if race else (),
        cause=flow_beam.cause_in(race, ways, of_token) if race else (),
        against=race.rival if race else -1,
        matters=through,
        slow=tuple(at + offset for at in race.slow) if race else (),
        n_words=race.n_words if race else 0,
        asks=flow_beam.asks(plain, race) if race and race.now.asked else ("", "", ""),
        edits=_each_in_line(view.run.edits),
        out=flow_beam.address_of(race, view.run, view.drawn, ways[0].token) if race else "",
    )


def _stops(view: FlowView, end: FlowView, race: flow_beam.Race | None) -> tuple[FlowStop, ...]:
    """The stops of the light: of each column its sentence, and of the end, whose own comes later
    where words race. end: what that leads on to."""
    plain, ways = view.run.recording(), view.ways
    told = flow_beam.findings(race) if race else ()
    stops = []
    for band, way in enumerate(ways):
        for at, layer in enumerate(way.layers):
            attention = _attention_of(way, "", layer, view.reading)
            focus = Focus(band, layer, attention, None)
            is_kept = _is_opened(view, focus) and view.is_kept
            own = (
                view
                if is_kept
                else _view(view.run, view.drawn, ways, view.reading, focus, None, MODEL)
            )
            if race is None or race.now.way is not way:
                finding = _about_focus(plain, way, focus)
                stops.append(FlowStop(finding, own.levels, own.switch))
                continue
            found = _told_head(own, race)
            if found is not None and not is_kept:
                own = replace(_of_answer(own, found), focus=focus)
            stop = FlowStop(told[at], own.levels, own.switch)
            stops.append(flow_beam.tagged(stop, race, at) if at in race.slow else stop)
    last = "" if race else _about_focus(plain, view.way, view.focus)
    part = flow_beam.part(race) if race else ""
    return (*stops, FlowStop(last, end.levels, end.restores or end.switch, part=part))


def _told_head(view: FlowView, race: flow_beam.Race | None) -> AnsweringHead | None:
    """The head that the stop of the layer in focus tells of; None where it tells of none."""
    if race is None or race.now.way is not view.way:
        return None
    at = list(view.way.layers).index(view.focus.layer)
    return flow_beam.answering_head(race, at) if at in race.slow else None


def _is_opened(view: FlowView, focus: Focus) -> bool:
    return (view.focus.band, view.focus.layer) == (focus.band, focus.layer)


def _voted(typed: Recording, stream: Stream) -> dict[int, int]:
    """The tokens of a stream that the tested heads vote on, each with the place of its noun among
    the colours that the vote has."""
    for attention in typed.attention:
        if (attention.query, attention.key) == (stream.name, stream.name):
            for vote in RecordingFacts(typed).votes(attention.name)[:1]:
                starts = word_groups(typed, stream.name).starts
                return {int(starts[key]): noun for key, noun in nouns_of([vote]).items()}
    return {}


def _rows_of_tokens(rows: Sequence[Rows]) -> dict[str, list[int]]:
    """The row of each token by its stream, -1 for one without its own."""
    return {
        of.stream.name: [
            of.first + of.row(at) if at in of.tokens else -1 for at in range(len(of.stream.tokens))
        ]
        for of in rows
    }


def _rows(ways: Sequence[Way], race: flow_beam.Race | None, typed: Recording) -> list[Rows]:
    """The rows of each stream. Of a long one the words that the picture tells of come first, then
    those that bring most."""
    result: list[Rows] = []
    for way in ways:
        n = len(way.stream.tokens)
        most = MOST_ROWS // len(ways)
        rows = list(range(n))
        if n > most:
            matters = np.sum([each.brought(way.stream) for each in ways], axis=0)
            told = (*_voted(typed, way.stream), *(race.heroes(way.stream) if race else ()))
            matters[[*told]] += matters.sum()
            rows = flow_analysis.shown_tokens(matters, way.token, min(N_KEPT, most))
        result.append(Rows(way.stream, rows, sum(each.n for each in result)))
    return result


@dataclass(frozen=True)
class Focus:
    """Part in focus: a layer of a band, of its attentions one, None where it has none, and of that
    one's heads one, None for all together."""

    band: int
    layer: int
    attention: Attention | None
    head: int | None

    @property
    def name(self) -> str:
        """Of the attention, "" for none."""
        return "" if self.attention is None else self.attention.name

    def place(self, way: Way) -> dict[str, Any]:
        """As the arguments of a panel name it."""
        at = {"layer": self.layer, "head": self.head or 0, "attention": self.name}
        return at | {"token": way.token, "stream": way.stream.name}


def _focus(
    ways: Sequence[Way],
    race: flow_beam.Race | None,
    attention: str,
    layer: int | None,
    head: int | None,
) -> Focus:
    """The focus that is asked for, else the layer of the head that the answer comes from, the one
    that the answer is read off, or the one whose attention rotates the token most."""
    names = [each.name for each in ways[0].recording.attention]
    if attention and attention not in names:
        raise ValueError(WORDS("no_attention", name=attention, names=", ".join(names)))
    of_bands = [{each.name for each in way.attentions} for way in ways]
    band = next((at for at, each in enumerate(of_bands) if attention in each), 0)
    if layer is not None:
        layers = list(ways[band].layers)
        layer = layers[place_of("layer", layer, len(layers))]
    elif attention:
        layer = next(iter(ways[band].layers))
    elif race is not None:
        band, at = len(ways) - 1, race.causing_layer
        layer = race.now.telling_layer if at is None else list(ways[-1].layers)[at]
    else:
        layer = max(ways[0].layers, key=lambda each: _angles(ways[0], each)[0])
    on = _attention_of(ways[band], attention, layer, race.now if race else None)
    return Focus(
        band, layer, on, head if on is None else place_if_any("head", head, on.pattern.shape[1])
    )


def _attention_of(way: Way, name: str, layer: int, reading: LensReading | None) -> Attention | None:
    """The attention of a layer: that of the name, else the one that adds most to the answer, or the
    first."""
    there = [each for each in way.attentions if layer in flow_analysis.layer_numbers(each)]
    named = [each for each in there if each.name == name]
    if named or not there:
        return named[0] if named else None
    if reading is None or reading.way is not way or len(there) == 1:
        return there[0]
    return max(there, key=lambda each: reading.added(layer, each.name))


def _angles(way: Way, layer: int) -> list[float]:
    """The angle in degrees by which what each sub-layer of a layer adds rotates the token, 0 for
    none."""
    stream, token = way.stream, way.token
    return [
        float(
            np.nan_to_num(
                residual.degrees(
                    residual.site_vectors(stream, each.before)[token],
                    residual.site_vectors(stream, each.total)[token],
                )
            )
        )
        for each in way.layers[layer]
    ]


def _band(plain: Recording, way: Way, rows: Rows, is_named: bool, drawn: Run) -> FlowBand:
    """The rows of one stream, by the labels of the text as it was typed. drawn: the run, whose
    model may follow that a word is taken out."""
    typed = plain.stream(way.stream.name)
    can = interventions.can_follow(plain, HideWord)
    tokens = range(len(typed.tokens))
    return FlowBand(
        title=way.stream.name.capitalize() if is_named else "",
        rows=rows.with_rest(typed.tokens, WORDS("rest", n=len(rows.rest))),
        places=rows.with_rest([str(each) for each in tokens], ""),
        selected=rows.row(way.token),
        rest=rows.place,
        choice="token" if rows.first == 0 else "",
        outs=rows.with_rest(flow_beam.outs_of(plain, way, tokens), "") if can else (),
    )


def _layer(
    plain: Recording,
    way: Way,
    whole: Way,
    band: int,
    layer: int,
    rows: Sequence[Rows],
    reading: LensReading | None,
    number: str,
    names: PatternNames,
    adds: Additions | None,
) -> FlowLayer:
    """One column of the picture. whole: the way without the run's edits; adds: what heads add to
    the answer, None where that is not known."""
    of_way = reading is not None and reading.way is way
    says = None
    if reading is not None and of_way:
        word, p = reading.word(layer)
        says = (word, p, tenths(p))
    ffn = way.ffn(layer)
    size = None
    if ffn is not None:
        before, wrote = (
            residual.site_vectors(way.stream, site)[[way.token]] for site in (ffn.before, ffn.wrote)
        )
        size = float(residual.write_share(before, wrote)[0])
    return FlowLayer(
        layer=layer,
        band=band,
        attentions=tuple(
            replace(
                _of_attention(
                    plain, way, whole, band, each, layer, rows, names.get((each.name, layer), ())
                ),
                adds=adds.at(each, layer) if adds and adds.way is way else np.zeros(0),
            )
            for each in way.attentions
            if layer in flow_analysis.layer_numbers(each)
        ),
        ffn=size,
        says=says,
        answer=reading.probability(layer) if reading and of_way else None,
        numbers=_numbers(way, layer, number),
    )


def _numbers(way: Way, layer: int, number: str) -> str:
    """The number below a layer, "" where its prediction stands there."""
    if number == "Prediction":
        return ""
    if number == "Rotation angle":
        return " ".join(f"{fixed(each, 0)}°" for each in _angles(way, layer))
    texts = []
    for each in way.layers[layer]:
        before, wrote = (
            residual.site_vectors(way.stream, site)[[way.token]]
            for site in (each.before, each.wrote)
        )
        if number == "Update norm":
            texts.append(fixed(float(np.linalg.norm(wrote)), 1))
        else:
            texts.append(fixed(float(residual.write_share(before, wrote)[0])))
    return " ".join(texts)


def _of_attention(
    plain: Recording,
    way: Way,
    whole: Way,
    band: int,
    attention: Attention,
    layer: int,
    rows: Sequence[Rows],
    names: tuple[PatternName | None, ...],
) -> FlowAttention:
    """Contribution of one attention of a layer to the token, and to the other rows. whole: the way
    without the run's edits."""
    at = flow_analysis.layer_numbers(attention).index(layer)
    keys = next(each for each in rows if each.stream.name == attention.key)
    own = rows[band]
    n_rows = sum(each.n for each in rows)
    spread = np.zeros((2, attention.pattern.shape[1], n_rows))
    brought = way.to_token[attention.name, layer]
    part = slice(keys.first, keys.first + keys.n)
    spread[0][:, part] = keys.fold(brought.shares[:, 0])
    spread[1][:, part] = keys.fold(attention.pattern[at][:, way.token].astype(np.float64))
    others = [each for each in own.tokens if each != way.token]
    to_others = way.to_others(attention, layer, others)
    curves = [
        (own.first + own.row(query), keys.first + keys.row(key), float(shares[key]))
        for query, shares in zip(others, to_others)
        for key in keys.tokens
        if shares[key] >= FAINTEST and not (key == query and attention.key == attention.query)
    ]
    is_first = attention.name == plain.attention[0].name
    removed = {
        edit.head
        for edit in way.recording.edits
        if isinstance(edit, ZeroHead) and (edit.layer, edit.attention) == (layer, attention.name)
    }
    return FlowAttention(
        shares=spread[0],
        weights=spread[1],
        bias=float(brought.bias[0]),
        names=names,
        others=np.array(curves).reshape(-1, 3),
        attention="" if is_first else attention.name,
        name=attention.name,
        removed=tuple(sorted(removed)),
        **_sizes(way, whole, attention, layer, part, keys, n_rows),
    )


def _sizes(
    way: Way,
    whole: Way,
    attention: Attention,
    layer: int,
    part: slice,
    keys: Rows,
    n_rows: int,
) -> dict[str, Any]:
    """Size of an attention's update of the token, and under edits the one without them."""
    site = next((x for x in way.layers[layer] if x.place == _place(attention)), None)
    if site is None:
        return {}
    at = lambda of, name: residual.site_vectors(of.stream, name)[[way.token]]
    wrote = at(way, site.wrote)
    update = float(np.nan_to_num(residual.write_share(at(way, site.before), wrote)[0]))
    if whole is way:
        return {"update": update}
    was = np.zeros(n_rows)
    was[part] = keys.fold(np.nan_to_num(whole.to_token[attention.name, layer].shares[:, 0]).sum(0))
    before = float(np.linalg.norm(at(whole, site.wrote)))
    scale = float(np.linalg.norm(wrote)) / before if before else 1.0
    return {"update": update, "scale": scale, "was": was}


PatternName = tuple[str, float, float]  # of a head, with its score and chance
PatternNames = dict[tuple[str, int], tuple[PatternName | None, ...]]


def _names(recording: Recording) -> PatternNames:
    """Pattern of each head on this text, its score and chance, None for no pattern, by attention
    and layer."""
    names: dict[tuple[str, int], list[PatternName | None]] = {}
    for attention in recording.attention:
        with suppress(ValueError):
            for each in RecordingFacts(recording).named_heads(attention.name):
                is_named = each.name != NO_PATTERN and each.n_queries
                name = (each.name, round(each.score, 2), round(each.chance, 2))
                of_layer = names.setdefault((attention.name, each.layer), [])
                of_layer.append(name if is_named else None)
    return {place: tuple(each) for place, each in names.items()}


def _output(race: flow_beam.Race | None) -> tuple[FlowWord, ...]:
    """The likeliest tokens at the end, with what they are drawn by at a temperature."""
    if race is None:
        return ()
    on, drawn = race.now.prediction, race.now.drawn(race.temperature).drawn
    return tuple(
        FlowWord(
            on.unmarked(on.labels[each.id]),
            float(drawn[each.id]),
            tenths(float(drawn[each.id])),
            each.id,
        )
        for each in on.words[:N_WORDS]
    )


def _note(
    recording: Recording,
    reading: LensReading | None,
    number: str,
    race: flow_beam.Race | None,
) -> str:
    """Note on how to read the picture, in a line."""
    is_written = loaded(recording).shows_writes(recording)
    dots = WORDS("dots_add" if race and race.adds else "dots_share")
    note = f"{WORDS('writes')} {dots}" if is_written else WORDS("weights")
    if race:
        note = f"{note} {WORDS('coloured')}"
    if number == "Prediction":
        return note
    slots = {"answer": reading.answer} if reading else {}
    below = WORDS(f"below_{number.partition(' ')[0].lower()}", **slots)
    return f"{note} {below}"


def _about_opened(
    plain: Recording, view: FlowView, about: Focus, race: flow_beam.Race | None
) -> str:
    """Sentences on what is opened: of a layer those of its stop, and of one that is not told by
    itself where its attention takes most from."""
    is_whole = about.head is None and view.level != MODEL
    if race is None or race.now.way is not view.way or not is_whole:
        return _about_focus(plain, view.way, about)
    at = list(view.way.layers).index(about.layer)
    told = flow_beam.findings(race)[at]
    return told if at in race.slow else f"{told} {_about_focus(plain, view.way, about)}"


def _about_focus(plain: Recording, way: Way, focus: Focus) -> str:
    """One sentence on what is in focus: where its attention takes most from."""
    layer, head, attention = focus.layer, focus.head, focus.attention
    typed = plain.stream(way.stream.name)
    word = typed.tokens[way.token]
    if attention is None:
        return WORDS("alone", layer=layer, word=word)
    shares = way.to_token[attention.name, layer].shares[:, 0]
    keys = plain.stream(attention.key).tokens
    if head is None:
        of = shares.sum(0)
        if attention.key == attention.query:
            of[way.token] = -np.inf
        key = int(np.nan_to_num(of, nan=-np.inf).argmax())
        if not of[key] > 0:
            return WORDS("alone", layer=layer, word=word)
        which = "across" if attention.key != attention.query else "within"
        share = percent(float(of[key]))
        return WORDS(which, layer=layer, word=word, key=keys[key], share=share)
    at = flow_analysis.layer_numbers(attention).index(layer)
    weights = attention.pattern[at, head, way.token]
    key = int(weights.argmax())
    return WORDS(
        "head",
        layer=layer,
        head=head,
        word=word,
        key=keys[key],
        weight=hundredths(float(weights[key])),
        share=percent(float(shares[head].sum())),
    )


def _table(plain: Recording, ways: Sequence[Way]) -> dict[str, Any]:
    """Every share of every head and key, in long form."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("attention", "layer", "head", "token", "key", "share")
    }
    for way in ways:
        for (name, layer), brought in way.to_token.items():
            attention = next(each for each in way.attentions if each.name == name)
            keys, tokens = (plain.stream(each).tokens for each in (attention.key, way.stream.name))
            seen = np.flatnonzero(attention.reachable[way.token])
            shares = brought.shares[:, 0, seen]
            n_head, n = shares.shape
            columns["attention"] += [name] * shares.size
            columns["layer"] += [layer] * shares.size
            columns["head"] += np.repeat(np.arange(n_head), n).tolist()
            columns["token"] += [tokens[way.token]] * shares.size
            columns["key"] += [keys[at] for at in seen] * n_head
            columns["share"] += shares.ravel().tolist()
    return columns
