"""The lessons that come with the app, made on a text and a model: a lesson's steps name the word
that it follows, the head that brings most of another word to it, and the model's answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from explorer.analysis import changes, flow, opening, residual, word_classes
from explorer.analysis.attention import axes
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import word_groups
from explorer.analysis.terminology import recording_norm_name
from explorer.figures.formatting import hundredths, shortened, signed, tenths
from explorer.panels import address, architecture, flow_way, link_words, spec, worksheet
from explorer.panels import residual as residual_panels
from explorer.panels.attention import n_words, word_weights
from explorer.panels.choice import FALSE
from explorer.panels.predictions import Prediction, prediction_at
from explorer.text import lesson, places
from explorer.text.lesson import Item, Lesson
from explorer.wording import model_descriptions
from explorer.wording.templates import sentences
from models.contract.edits import HideToken, ZeroHead, from_line
from models.contract.recording import Attention, Recording, Stream
from models.runtime.run import Run, run_of

WORDS = sentences("lesson", "slots")
FOLDER = Path(lesson.__file__).with_name("lessons")
LONG = 60  # characters of a text up to which a sentence quotes it whole
FEWEST = 3  # words that a text must have
SENTENCE_ENDS = re.compile(r"(?<=[.?!]) ")
HALF = 0.5  # of a probability, from which on it is lost in a vote
MIDDLING = 0.8  # of a weight: above it hardly anything changes when the scores grow
CLEAR = 0.3  # weight from which on a content word is the one that a head attends to
MOST_WORK = 2e10  # parameters times tokens, of the passes that take each head out by itself
MOST_NAMED = 4  # heads in a sentence


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


@cache
def written() -> Mapping[str, Mapping[str, Any]]:
    """Every lesson that comes with the app by its name, as its file has it, in their order."""
    lessons = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in FOLDER.glob("*.toml")}
    return dict(sorted(lessons.items(), key=lambda each: each[1]["order"]))


def names(kind: str) -> tuple[str, ...]:
    """The names of the lessons for models of a kind; a lesson with a text and a model of its own is
    for all."""
    return tuple(
        name
        for name, lesson in written().items()
        if kind in lesson.get("kinds", (kind,)) or "model" in lesson
    )


def on(run: Run, name: str, token: int | None = None) -> Lesson:
    """A lesson on a run, kept beside its recording. token: the word that it follows, that of
    `hero` where None and where the lesson has a text of its own. Raises KeyError for a name that
    no lesson has, ValueError where the text or the model shows too little."""
    lesson = written()[name]
    run, token = _subject(run, lesson, token)
    make = lambda: Lesson(
        lesson["title"], tuple(_items(run, token, lesson, _steps(run, lesson))), lesson["minutes"]
    )
    return run.memo(("lesson", name, token), make)


def beginning(run: Run, name: str) -> tuple[Item, int]:
    """The first step of a lesson and how many it has; raises as `on`, and is there sooner."""
    lesson = written()[name]
    run, token = _subject(run, lesson, None)
    steps = _steps(run, lesson)
    make = lambda: next(_items(run, token, lesson, steps))
    return run.memo(("lesson begins", name), make), len(steps)


def _subject(run: Run, lesson: Mapping[str, Any], token: int | None) -> tuple[Run, int | None]:
    """The run of a lesson and the word that it follows: its own text where it has one."""
    return (Run(lesson["model"], lesson["text"]), None) if "text" in lesson else (run, token)


def _steps(run: Run, lesson: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps of a lesson that a run's model has, as its file has them."""
    recording = run.recording()
    has = _parts(run, recording)
    return [
        each
        for each in lesson["item"]
        if recording.model.kind in each.get("kinds", KINDS)
        and {*each.get("needs", ())} <= has
        and not {*each.get("lacks", ())} & has
    ]


def _items(
    run: Run, token: int | None, lesson: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> Iterator[Item]:
    """The steps. A lesson that begins with a question on a word covers it up to the step that
    answers. The first says which model it runs, where that is not the one on screen."""
    recording, asks = run.recording(), lesson.get("asks", False)
    of = hero(recording, token, asks)
    predicted = _predicted(run, of)
    slots = _slots(run, of) | predicted
    at = {"text": run.text, "model": run.model}
    place = flow_way.asked_place(run, of.token) if asks else None
    covered = slots if place is None else _slots(run.covering(place), of) | predicted
    for each in steps:
        if "changed" in each.get("needs", ()) and not slots["changed_text"]:
            continue
        if place is not None and ANSWERS.search(f"{each}"):
            place = None
        if place is None:
            if "{each_out}" in f"{each}":
                slots["each_out"] = _each_out(run, of)
            item = _item(each, slots, at, run)
        else:
            item = _item(each, covered, {**at, "covered": str(place)}, run)
        if each is steps[0] and "model" in lesson:
            item = replace(item, rest=f"{item.rest} {WORDS('own_model', model=run.model)}")
        yield item


def _parts(run: Run, recording: Recording) -> set[str]:
    """The parts of a model that a step may need, and its tasks."""
    offers, last = run.loaded.capabilities, recording.streams[-1]
    there = {
        "readout": not offers.no_readout,
        "ffn": bool(offers.weights),
        "residual": residual.has_residual(last),
        "divides": offers.scale is not None
        and offers.scale < 1
        and not np.isclose(offers.scale, 1),
        "norm": offers.norm is not None,
        "pre": offers.norm in ("pre", "both"),
        "rms": offers.rms,
        "gate": bool(offers.gate),
        "swiglu": offers.gate == "SwiGLU",
        "french": run.model in model_descriptions.LANGUAGE,
        "rotary": offers.positions == "rotary",
        "sinusoids": offers.positions == "sinusoids",
        "adds_positions": offers.positions in ("sinusoids", "learned"),
        "later": recording.attention[-1].pattern.shape[0] > 1 < recording.model.n_head,
        "changed": _changed(run) is not None,
    }
    return {name for name, is_there in there.items() if is_there}


KINDS = ("encoder", "decoder", "encoder-decoder")
PLAIN = ("panel", "heading", "note", "question", "answer", "right", "done")


def _item(
    written: Mapping[str, Any], slots: Mapping[str, str], at: Mapping[str, str], run: Run
) -> Item:
    """An item with the words and numbers of the text. A sentence whose number this model does not
    show is left out."""
    token = slots["token" if places.ROWS[written["tab"]].of_first_stream else "query_at"]
    choices = {"token": token} | written.get("choices", {})
    filled = {name: value.format_map(slots) for name, value in choices.items()}
    number = _panel_number(run, written["number"], filled) if "number" in written else ""
    says = written["says"]
    if not number:
        says = " ".join(each for each in SENTENCE_ENDS.split(says) if "{number}" not in each)
    before, _, after = says.partition("{number}")
    return Item(
        places.address(written["tab"], {**at, **{k: v for k, v in filled.items() if v}}),
        says=before.format_map(slots),
        number=number,
        rest=after.format_map(slots),
        formula=written.get("formula", ""),
        options="\n".join(written.get("options", ())).format_map(slots),
        link=_link(written.get("link", ""), slots, run),
        proof=_proof(written.get("proof", {}), slots, {**at, "token": token}),
        **{name: written[name].format_map(slots) for name in PLAIN if name in written},
    )


def _link(page: str, slots: Mapping[str, str], run: Run) -> str:
    """The address of a page on the lesson's text and word, "" for none."""
    words = {"text": run.text, "model": run.model, "lesson_word": slots["token"]}
    return page and f"{page}?{urlencode(words)}"


def _proof(written: Mapping[str, Any], slots: Mapping[str, str], at: Mapping[str, str]) -> str:
    """The address of the picture that shows the answer of a step, "" for none."""
    if not written:
        return ""
    choices = {**at, **{k: v.format_map(slots) for k, v in written["choices"].items()}}
    choices = {name: word for name, word in choices.items() if word}
    return worksheet.picture_address(Item(f"/?{urlencode(choices)}", panel=written["panel"]))


def _panel_number(run: Run, name: str, words: Mapping[str, str]) -> str:
    """A number of a panel, "residual.updates:turn", of the lesson's text under the words of a step,
    "" where the model or the text shows too little for it. Raises KeyError for a panel that is not
    there."""
    panel, _, slot = name.partition(":")
    said = link_words.with_key({key: word for key, word in words.items() if word})
    if panel == "anatomy.weight" and "weight_at" in said:
        said["token"], _, said["source"] = said["weight_at"].partition(".")
    known = {each.name for each in spec.choices_by_panel()[panel]}
    try:
        edited = run.under(from_line(said["edits"])) if "edits" in said else run
        made = address.from_words(panel, edited, {k: v for k, v in said.items() if k in known})
    except ValueError:
        return ""
    return made.numbers[slot].text if slot in made.numbers else ""


def _idle(run: Run) -> str:
    """A sentence on what a sub-layer does to a vector to which it adds 0, and to its gradient."""
    features = run.loaded.capabilities
    if features.norm != "post":
        return WORDS("idle")
    return WORDS("idle_post", norm=recording_norm_name(run.recording(), features.rms))


def _middle_update(run: Run, stream: Stream, token: int) -> dict[str, str]:
    """The update in the middle of all by the angle by which it rotates a token: its site, and its
    name in a sentence; "" for both where the stream shows none."""
    at = {"stream": stream.name}
    try:
        if residual_panels.in_layers(run, at):
            stream = residual.whole_layers(stream)
        places = residual.sublayers(stream)
        angles = residual.write_grid(stream, "Rotation angle").values[token]
    except ValueError:
        return {"middle": "", "middle_name": ""}
    layered = [at for at, each in enumerate(places) if each.layer >= 0]
    order = sorted(layered, key=lambda each: float(np.nan_to_num(angles[each])))
    if not order:
        return {"middle": "", "middle_name": ""}
    middle = places[order[(len(order) - 1) // 2]]
    return {"middle": middle.site, "middle_name": middle.name}


def hero(recording: Recording, token: int | None = None, answers: bool = False) -> Hero:
    """The word that a lesson follows and what is brought to it. token: of the first stream; where
    None, and where it is special or not there, that whose next word is predicted, or the word of
    the strongest finding. answers: the pair is that of the head that adds most to the model's
    answer, of those that give a word of content the most, where there is one. Else it is that of
    the strongest finding where it is about this token, else the largest weight of the token on a
    content word, on any other word where that is small; in either case in a head that gives no
    other key more. Raises ValueError for a text or a model
    that has none."""
    first = recording.streams[0]
    own = [each for each in recording.attention if each.query == recording.streams[-1].name]
    if not own:
        raise ValueError(architecture.WORDS("closed", model=recording.model.name))
    if n_words(recording) < FEWEST:
        raise ValueError(lesson.REFUSALS("no_word"))
    if token is None or not 0 <= token < len(first.tokens) or first.special[token]:
        token = opening.flow_word(recording, first)
    is_single = len(recording.streams) == 1
    if answers and (found := _answering(recording, token)) is not None:
        return found
    finding = RecordingFacts(recording).strongest_in_head()
    if is_single and finding is not None and finding.query == token and finding.keys:
        self_attention = next(each for each in own if each.name == finding.attention)
        at = finding.layer, finding.head, token
        if self_attention.pattern[at].argmax() == finding.keys[0]:
            return Hero(token, self_attention, *at, int(finding.keys[0]))
    query = token if is_single else flow_way.aligned(recording, recording.streams[-1], token)
    attention = own[-1]  # of a translator the one between its texts
    every = np.ones(attention.pattern.shape[-1], bool)
    if not is_single:
        aligned = np.arange(len(every)) == token
        return _strongest(attention, token, query, ((aligned, 0.0), (every, 0.0)))
    labels = _labels(recording, first)
    is_word = np.array([word_classes.is_word(each) for each in labels]) & ~first.special
    is_word[token] = False
    content = np.array(word_classes.classes(labels)) == word_classes.CONTENT
    if not is_word.any():
        raise ValueError(lesson.REFUSALS("no_word"))
    ways = (is_word & content, CLEAR), (is_word, 0.0), (every, 0.0)
    return _strongest(attention, token, query, ways)


def _answering(recording: Recording, token: int) -> Hero | None:
    """The head that adds most to the logit of what the model answers at a token, of those whose
    largest weight is on a word of content, also where the token is hidden; None for none, and for a
    model whose logits cannot be taken apart."""
    run, last = run_of(recording), recording.streams[-1]
    if run.loaded.capabilities.no_readout:
        return None
    query = token if len(recording.streams) == 1 else flow_way.aligned(recording, last, token)
    hides = flow_way.can_hide(run, {"token": token})
    drawn = run.under((*run.edits, HideToken(token))) if hides else run
    word = prediction_at(drawn, query).words[0].id
    found = flow_way.answering_head(recording, drawn.recording(), query, word)
    return found and Hero(token, found.attention, found.layer, found.head, query, found.key)


def _strongest(
    attention: Attention, token: int, query: int, ways: Sequence[tuple[np.ndarray, float]]
) -> Hero:
    """The head with the largest weight of a query on any of some keys, (key) bool, of the heads
    that give no other key more. ways: keys, and the least weight on them, the first that has
    one."""
    rows = attention.pattern[:, :, query]  # (layer, head, key)
    largest = np.where(rows == rows.max(axis=-1, keepdims=True), rows, -1.0)
    by_way = (np.where(keys, largest, -1.0) for keys, _ in ways)
    weights = next(each for each, (_, least) in zip(by_way, ways) if each.max() >= least)
    layer, head, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
    return Hero(token, attention, layer, head, query, key)


def _labels(recording: Recording, stream: Stream) -> tuple[str, ...]:
    """The word that each token is of, (token)."""
    groups = word_groups(recording, stream.name)
    return tuple(groups.labels[at] for at in groups.of)


def _slots(run: Run, of: Hero) -> dict[str, str]:
    """Slots of a lesson's sentences and addresses. row: the query as the panels of an attention
    name it, of a translator the token that is written there; of_row: a sentence on that; another:
    a token that the lesson does not follow."""
    recording = run.recording()
    first, last = recording.streams[0], recording.streams[-1]
    card, attention = recording.model, of.attention
    queries, keys = (recording.stream(name) for name in (attention.query, attention.key))
    row = axes(recording, attention).rows[of.query]
    is_across = attention.query != attention.key
    query = _labels(recording, queries)[of.query]
    return {
        "token": str(of.token),
        "source": str(of.key),
        "another": str(_another(first, of.token)),
        "layer": str(of.layer),
        "head": str(of.head),
        "attention": "" if attention.name == recording.attention[0].name else attention.name,
        "query_at": str(of.query),
        "stream": "" if first is last else last.name,
        "own_attention": "" if _own(recording) == recording.attention[0].name else _own(recording),
        "word": _labels(recording, first)[of.token],
        "query": query,
        "row": row if is_across else query,
        "of_row": WORDS("row", row=row, read=query) if is_across else "",
        "key": _labels(recording, keys)[of.key],
        "weight": hundredths(of.weight),
        "n": str(len(first.tokens)),
        "read": str(of.token + 1),
        "width": str(card.d_model),
        "layers": str(attention.pattern.shape[0]),
        "heads": str(attention.pattern.shape[1]),
        "source_text": shortened(recording.texts_with_cover(run.covered)[0], LONG),
        "written": last.tokens[of.query],
        "ffn_layer": str(_ffn_layer(last, of.query, of.layer)),
        **_middle_update(run, last, of.query),
        "idle": _idle(run),
        **_middling(recording, of),
        **_head_to_take_out(of),
        **_changed_slots(run, of),
    }


def _middling(recording: Recording, of: Hero) -> dict[str, str]:
    """A head in which scores that grow or shrink are seen to change the weights of the lesson's
    query: the one that the lesson follows, else that whose largest weight, on a word where one has
    it there, is nearest to a half. middling_key: the key of that weight."""
    attention = next(each for each in recording.attention if each.name == of.attention.name)
    keys = recording.stream(attention.key)
    labels = _labels(recording, keys)
    rows = attention.pattern[:, :, of.query]  # (layer, head, key)
    strongest, largest = rows.argmax(axis=-1), rows.max(axis=-1)
    at = of.layer, of.head
    if largest[at] > MIDDLING:
        is_word = np.array([word_classes.is_word(each) for each in labels]) & ~keys.special
        apart = np.abs(largest - 0.5) + np.where(is_word[strongest], 0.0, 1.0)
        layer, head = np.unravel_index(apart.argmin(), apart.shape)
        at = int(layer), int(head)
    return {
        "middling_layer": str(at[0]),
        "middling_head": str(at[1]),
        "middling_key": labels[strongest[at]],
    }


def _head_to_take_out(of: Hero) -> dict[str, str]:
    """A head that has a layer behind it, the one that a lesson follows where that has, another head
    of its layer, and the layer behind it."""
    layers, heads = of.attention.pattern.shape[:2]
    layer = max(0, min(of.layer, layers - 2))
    return {
        "out_layer": str(layer),
        "out_head": str(of.head),
        "other_head": str((of.head + 1) % heads),
        "later": str(layer + 1),
    }


class Changed(NamedTuple):
    """A text with one word changed: the word, the one in its place, and the whole text with
    this."""

    old: str
    new: str
    text: str


def _changed(run: Run, first: int = 0, hidden: int = -1) -> Changed | None:
    """The text with a word of it in its opposite, that at a token where it has one and never the
    hidden one; None for none, and where the other word is not one token as well."""
    run = run.covering(None)
    stream = run.recording().streams[0]
    for at in (first, *range(len(stream.tokens))):
        new = changes.opposites().get(stream.tokens[at])
        if new is None or at == hidden:
            continue
        start, end = map(int, stream.spans[at])
        text = f"{run.text[:start]}{new}{run.text[end:]}"
        tokens = list(stream.tokens)
        tokens[at] = new
        if list(replace(run, text=text).recording().streams[0].tokens) == tokens:
            return Changed(stream.tokens[at], new, text)
    return None


def _changed_slots(run: Run, of: Hero) -> dict[str, str]:
    """A text with one word changed, "" where none can be."""
    is_within = of.attention.key == of.attention.query
    changed = _changed(run, of.key, of.token) if is_within else None
    return {
        "changed_old": changed.old if changed else "",
        "changed_new": changed.new if changed else "",
        "changed_text": changed.text if changed else "",
    }


def _another(stream: Stream, token: int) -> int:
    """The first token of a text's words that is not a given one."""
    return next(at for at in np.flatnonzero(~stream.special).tolist() if at != token)


def _own(recording: Recording) -> str:
    """The name of the attention of the last text to itself."""
    last = recording.streams[-1].name
    return next(each.name for each in recording.attention if each.query == each.key == last)


def _ffn_layer(stream: Stream, token: int, layer: int) -> int:
    """The layer with the largest FFN, a given one where the stream shows none."""
    try:
        return residual.largest_ffn(stream, token)
    except ValueError:
        return layer


# A step with one of these says what the model predicts.
OF_ANSWER = (
    *("answer", "probability", "piece", "brought", "begun", "rival"),
    *("ablated", "each_out"),
)
ANSWERS = re.compile(rf"\{{({'|'.join(OF_ANSWER)})\}}")
OF_VOTES = (
    *("turns", "turned"),
    *("second_layer", "second_head", "second_weight", "second_turns", "second_turned"),
)
OF_PREDICTION = (*OF_ANSWER, *OF_VOTES, "shown", "hides")


def _predicted(run: Run, of: Hero) -> dict[str, str]:
    """Prediction of the model for the word, which is hidden where the model fills in words, and the
    heads that add most to it. shown: the word of the address for not hiding it; hides: its token
    where it is hidden; piece: the probability of the answer's first piece."""
    if run.loaded.capabilities.no_readout:
        return dict.fromkeys(OF_PREDICTION, "")
    drawn = _drawn(run, of)
    hides = drawn is not run
    prediction = prediction_at(drawn, of.query)
    answer, probability = prediction.answer
    return {
        "answer": answer,
        "probability": probability,
        "piece": tenths(prediction.words[0].own),
        "shown": FALSE if hides else "",
        "hides": str(of.token) if hides else "",
        "brought": _brought(drawn, of, prediction.words[0].id),
        "begun": _begun(prediction),
        "rival": prediction.unmarked(prediction.labels[prediction.words[1].id]),
        "ablated": _ablated(drawn, of, prediction),
        **_votes(run, drawn, of, prediction),
    }


def _drawn(run: Run, of: Hero) -> Run:
    """The run whose prediction a lesson tells: with its word hidden where the model fills it in,
    else the run itself."""
    hides = flow_way.can_hide(run, {"token": of.token})
    return run.under((HideToken(of.token),)) if hides else run


def _without(drawn: Run, of: Hero, layer: int, head: int) -> Prediction | None:
    """The model's prediction for the word without a head of the attention that a lesson follows;
    None where it cannot be taken out."""
    edit = ZeroHead(flow.layer_numbers(of.attention)[layer], head, of.attention.name)
    try:
        return prediction_at(drawn.under((*drawn.edits, edit)), of.query)
    except ValueError:
        return None


def _ablated(drawn: Run, of: Hero, before: Prediction) -> str:
    """The model's prediction without the head that a lesson follows, in a sentence; "" where the
    head cannot be taken out."""
    after = _without(drawn, of, of.layer, of.head)
    if after is None:
        return ""
    answer, probability = after.answer
    name = "stays" if before.words[0].id == after.words[0].id else "turns"
    slots = {"answer": before.answer[0], "other": answer, "before": before.answer[1]}
    return WORDS(f"ablated_{name}", after=probability, **slots)


def _each_out(run: Run, of: Hero) -> str:
    """Which heads change the model's answer when they are taken out one at a time, in a sentence,
    or that this was not measured: it takes a pass for each."""
    drawn = _drawn(run, of)
    layers, heads = of.attention.pattern.shape[:2]
    card, recording = run.loaded.card, run.recording()
    if card.n_parameters * layers * heads * len(recording.streams[0].tokens) > MOST_WORK:
        return WORDS("not_each_out")
    id = prediction_at(drawn, of.query).words[0].id
    after = {place: _without(drawn, of, *place) for place in np.ndindex(layers, heads)}
    if None in after.values():
        return ""
    turning = [place for place, one in after.items() if one and one.words[0].id != id]
    numbers = flow.layer_numbers(of.attention)
    named = [WORDS("a_head", head=h, layer=numbers[at]) for at, h in turning]
    own = turning == [(of.layer, of.head)]
    name = "own" if own else ("none", "one", "some")[min(len(turning), 2)]
    if len(named) > MOST_NAMED:
        named, name = named[:MOST_NAMED], "many"
    slots = {"n": layers * heads, "turning": len(turning), "heads": ", ".join(named)}
    return WORDS(f"each_out_{name}", **slots)


def _votes(run: Run, drawn: Run, of: Hero, before: Prediction) -> dict[str, str]:
    """A question: what becomes of the prediction without the head that a lesson follows, and
    without the one of all others that gives the word of its key most, which no sentence names the
    answer by: the place of what is true among stays, is halved and turns."""
    weights = word_weights(run.recording(), of.attention, of.query, of.key)
    weights[of.layer, of.head] = -1
    second = tuple(map(int, np.unravel_index(weights.argmax(), weights.shape)))
    slots = {"second_layer": str(second[0]), "second_head": str(second[1])}
    slots["second_weight"] = hundredths(weights[second])
    for name, place in (("", (of.layer, of.head)), ("second_", second)):
        after, id = _without(drawn, of, *place), before.words[0].id
        if after is None:
            return dict.fromkeys(OF_VOTES, "")
        left = float(after.of.own[id]) / before.words[0].own
        turned = 2 if after.words[0].id != id else 1 if left <= HALF else 0
        slots |= {f"{name}turned": str(turned), f"{name}turns": WORDS.lines("turns")[turned]}
    return slots


def _begun(prediction: Prediction) -> str:
    """A sentence on the first piece of the answer, "" where it is one token."""
    first = prediction.words[0]
    if first.id not in prediction.whole:
        return ""
    piece = prediction.unmarked(prediction.labels[first.id])
    return WORDS("begun", piece=piece, probability=tenths(first.own))


def _brought(run: Run, of: Hero, id: int) -> str:
    """A sentence on what the head that a lesson follows adds to the logit of a word, "" where that
    is nothing, and where the model's logits cannot be taken apart."""
    recording, last = run.recording(), run.recording().streams[-1]
    try:
        parts = run.loaded.attribute(recording, last.name, of.query, id).parts
    except ValueError:
        return ""
    layer = flow.layer_numbers(of.attention)[of.layer]
    own = [
        each
        for each in parts
        if (each.kind, each.layer, each.head) == ("head", layer, of.head)
        and each.attention == of.attention.name
    ]
    if not own or own[0].value <= 0:
        return ""
    key = _labels(recording, recording.stream(of.attention.key))[of.key]
    added = signed(own[0].value, 2)
    return WORDS("brought", head=of.head, layer=layer, key=key, added=added)
