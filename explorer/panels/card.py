"""The headline of a text as a picture to send: the sentence, an arc from a word to the word that it
attends to, and the weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import east_asian_width

from explorer.analysis import opening
from explorer.analysis.attention import groups
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import (
    ALIGNED,
    CROWD,
    FOREIGN,
    NO_NOUN,
    PAIRS,
    SHORT,
    Finding,
    select_findings,
    word_groups,
)
from explorer.analysis.head_naming import NO_PATTERN, SINK, TOO_SHORT
from explorer.analysis.terminology import sorted_edits
from explorer.analysis.words import Groups, described, spaced
from explorer.figures.formatting import hundredths, tenths
from explorer.figures.kinds import Edge, PictureCard
from explorer.panels import flow_beam, spec
from explorer.panels.choice import OPENS
from explorer.panels.flow_way import Hidden, ways_of
from explorer.panels.predictions import Prediction, prediction_at
from explorer.panels.selection import (
    FirstAttention,
    HeadIfAny,
    LayerIfAny,
    Selection,
    TokenIfAny,
    WordOnItsWay,
    place_if_any,
    select,
)
from explorer.panels.spec import Panel
from explorer.text import findings as findings_text
from explorer.wording.markdown_escape import plain
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import HideToken, HideWord, from_line
from models.contract.recording import Recording, Stream
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = sentences("card", "card")
COLUMNS = {1: 76, 2: 50}  # of type for each text, by how many there are: one has two lines
LONGEST = 24  # letters of a word
# Names of heads that say nothing to who gets a card: it tells the strongest pair of words.
UNTOLD = (SINK, NO_PATTERN, TOO_SHORT, "diffuse")
FAINTEST = 0.3  # weight from which on an arc is drawn where no pair is told


@dataclass(frozen=True, eq=False)
class CardContent:
    """Content of a card: the query and the key, or one sentence; the number beside a pair, its
    weight or its votes; a head on show, None for none; and its tokens, (query, key, weight), the
    pair first. vote: what heads say of a pronoun, None for what one head shows."""

    says: tuple[str, ...]
    number: str
    on: Selection | None
    tokens: tuple[tuple[int, int, float], ...]
    vote: Finding | None = None

    @property
    def is_pair(self) -> bool:
        """True where a query and a key are told."""
        return len(self.says) > 1


@dataclass(frozen=True, eq=False)
class Text:
    """A text in words: their labels, whether a space stands before each, and which the model put
    there itself."""

    labels: tuple[str, ...]
    spaced: tuple[bool, ...]
    special: tuple[bool, ...]


@spec.predicts
@spec.panel
def headline(
    run: Run,
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    token: TokenIfAny = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """The headline of a text as a picture of 1200 to 630: the words around a query and a key, the
    arc between them, and the weight; of a headline without a pair its sentence, with the arcs of
    its head.

    layer, head and token: what is told, the strongest finding where all are None; of a head the
    word that its own strongest finding is about, of a token the key with its largest weight. Of an
    edited run what the edits change: the likeliest word before and after them, with their
    probabilities. Raises ValueError for what is not there.
    """
    recording = run.recording()
    changed = _changed(run, token) if run.edits else None
    if changed is not None:
        return _of_change(run, *changed)
    is_open = layer is None and head is None and token is None
    subject = _of_finding(run) if is_open else None
    if subject is None:
        subject = _of_head(run, layer, head, token, attention)
    texts, places, weights = _texts(recording, subject)
    windows = _room_for(
        texts,
        [each for pair in places for each in pair] if subject.is_pair or subject.vote else [],
    )
    figure = PictureCard(
        says=subject.says,
        number=subject.number,
        about=_named(run, subject),
        name=WORDS("name"),
        **_drawn(texts, windows, places, [1.0] * len(places) if subject.vote else weights),
    )
    sides = zip(*places) if places else ((), ())
    labels = [label for text in texts for label in text.labels]
    queries, keys = ([labels[at] for at in side] for side in sides)
    return Panel(
        title=WORDS("title"),
        finding=_sentence_on(subject),
        figures=(figure,),
        table={"query": queries, "key": keys, "weight": weights},
        caption=(WORDS("caption"),),
        file="card",
    )


BECAUSE = 0.5  # of its probability, that an answer has lost without a word that it is said to be of


@spec.predicts
@spec.panel
def answer(run: Run, token: WordOnItsWay = OPENS, hide: Hidden = None) -> Panel:
    """A model's answer at a token as a picture of 1200 to 630: the sentence with its answer, and an
    arc from the word without which it has the least left. Of an edited run the likeliest word
    before and after the edits.

    token: of the first stream. hide: as of the flow. Raises ValueError for a model that predicts no
    word, and where no word can be taken out.
    """
    plain = replace(run, edits=())
    whole, shown = ways_of(plain, token, hide), ways_of(run, token, hide)
    way = whole.ways[-1]
    before = prediction_at(whole.drawn, way.token)
    if run.edits:
        return _of_change(run, before, prediction_at(shown.drawn, way.token))
    table = flow_beam.each_word(run, token, hide).table
    rows = [at for at, row in enumerate(table["row"]) if row == "word"]
    best = min(rows, key=table["probability"].__getitem__)
    first, without = before.words[0], float(table["probability"][best])
    model, word = model_names.title(run.model), _short(before.label(first.id))
    numbers = tenths(first.own), tenths(without)
    name = "because" if without <= (1 - BECAUSE) * first.own else "says_answer"
    key = _short(table["word"][best])
    sentence = WORDS(name, model=model, word=word, p=numbers[0], key=key)
    recording, stream = plain.recording(), way.stream
    out = from_line(table["edits"][best])
    removed = next(each.token for each in out if isinstance(each, HideWord))
    typed = recording.streams[0]
    groups = word_groups(recording, typed.name)
    text = _in_words(typed, recording.text, groups)
    labels = list(text.labels)
    if stream.name == typed.name and before.kind == "masked":
        place = int(groups.of[way.token])
        labels[place] = word
        texts = [replace(text, labels=tuple(labels))]
    elif stream.name == typed.name:
        place = len(labels)
        texts = [
            Text((*labels, word), (*text.spaced, True), (*text.special, False)),
        ]
    else:
        texts = [text, Text((word,), (True,), (False,))]
        place = len(labels)
    source = int(groups.of[removed])
    figure = PictureCard(
        says=(sentence,),
        about=WORDS("without", model=model, word=word, key=key, p=numbers[0], left=numbers[1]),
        name=WORDS("name"),
        **_drawn(texts, _room_for(texts, [source, place]), [(source, place)], [1.0]),
    )
    return Panel(
        title=WORDS("answer_title"),
        finding=sentence,
        figures=(figure,),
        table={"word": [word, word], "without": ["", key], "probability": [first.own, without]},
        caption=(WORDS("caption"),),
        file="card",
        at={"run": whole.drawn, "token": way.token},
    )


def _of_change(run: Run, before: Prediction, after: Prediction) -> Panel:
    """The card of an edited run: a prediction before and after the edits."""
    recording = run.recording()
    what = described(recording, sorted_edits(run.edits))
    was, now = before.words[0], after.words[0]
    numbers = tenths(was.own), tenths(now.own)
    names = _short(before.label(was.id)), _short(after.label(now.id))
    stream = recording.streams[0]
    words = word_groups(recording, stream.name)
    text = _in_words(stream, recording.text, words)
    hidden = [int(words.of[before.at.token])] if before.kind == "masked" else []
    labels = (WORDS("hidden") if at in hidden else each for at, each in enumerate(text.labels))
    text = replace(text, labels=tuple(labels))
    figure = PictureCard(
        says=tuple(WORDS("says", word=word, p=p) for word, p in zip(names, numbers)),
        about=WORDS("about_edits", model=model_names.title(run.model), edits=what),
        name=WORDS("name"),
        **_drawn([text], _room_for([text], hidden), [], []),
    )
    slots = {"was": names[0], "before": numbers[0], "now": names[1], "after": numbers[1]}
    return Panel(
        title=WORDS("changed_title"),
        finding=WORDS("changed", edits=what[:1].upper() + what[1:], **slots),
        figures=(figure,),
        table={
            "word": [*names],
            "before": [float(before.of.own[each.id]) for each in (was, now)],
            "after": [float(after.of.own[each.id]) for each in (was, now)],
        },
        caption=(WORDS("caption"),),
        file="card",
        at={"token": before.at.token},
    )


def _changed(run: Run, token: int | None) -> tuple[Prediction, Prediction] | None:
    """The prediction that edits are seen in, before and after them: of a model that fills in words
    at a token that is hidden from it, of one that continues texts at its last token until another
    is chosen, of a translator where the likeliest word loses or gains most; None where no word is
    predicted."""
    plain = replace(run, edits=())
    recording = plain.recording()
    capabilities, stream = loaded(recording).capabilities, recording.streams[-1]
    if capabilities.no_readout or not capabilities.logits:
        return None
    last = len(stream.tokens) - 1
    if recording.model.kind == "encoder":
        at = opening.word(recording, stream) if token is None else token
        if HideToken not in capabilities.edits or stream.special[at]:
            return None
        plain, run = plain.under((HideToken(at),)), run.under((*run.edits, HideToken(at)))
        return prediction_at(plain, at), prediction_at(run, at)
    if recording.model.kind == "decoder":
        at = last if token is None else token
        return prediction_at(plain, at), prediction_at(run, at)
    pairs = [(prediction_at(plain, at), prediction_at(run, at)) for at in range(last + 1)]

    def change(pair: tuple[Prediction, Prediction]) -> float:
        before, after = pair
        return abs(before.words[0].own - float(after.of.own[before.words[0].id]))

    return max(pairs, key=change)


def _sentence_on(subject: CardContent) -> str:
    """The sentence on a card."""
    if subject.vote is not None:
        return plain(findings_text.statement(subject.vote, findings_text.quoted)) + "."
    if not subject.is_pair:
        return f"{subject.says[0]}."
    query, key = map(findings_text.quoted, subject.says)
    return WORDS("pair", query=query, key=key, weight=subject.number)


def _named(run: Run, subject: CardContent) -> str:
    """The model, its head or how many heads vote, and that it was edited."""
    model, on = model_names.title(run.model), subject.on
    if subject.vote is not None:
        about = WORDS("about_votes", model=model, n=len(subject.vote.ballots))
    elif on is None:
        about = WORDS("about_model", model=model)
    else:
        about = WORDS("about", model=model, layer=on.layer, head=on.head)
    return WORDS("edited", about=about) if run.edits else about


# ---- what is told --------------------------------------------------------------------------------


def _of_finding(run: Run) -> CardContent | None:
    """The strongest finding of a text; None where there is none."""
    one = next(iter(select_findings(RecordingFacts(run.recording()).leading_findings())), None)
    if one is None:
        return None
    if one.kind in (*PAIRS, ALIGNED):
        return _of_link(_on(run, one), one)
    if one.ballots:
        return _of_vote(_on(run, one), one)
    at = one.example_head or one.at
    sentence = plain(
        findings_text.crowd(one) if one.kind == CROWD else findings_text.statement(one)
    )
    if one.kind in (SHORT, FOREIGN) or min(at) < 0 or not one.attention:
        return CardContent((sentence,), "", None, ())
    on = _on(run, one)
    return CardContent((sentence,), "", on, _strong(on))


def _of_head(
    run: Run, layer: int | None, head: int | None, token: int | None, attention: str
) -> CardContent:
    """Content of a card on a head, or of a word in it."""
    first = select(run, layer or 0, head or 0, attention=attention)
    at = first.layer, first.head
    if layer is None or head is None:
        at = opening.head(first.recording, first.attention)
    on = select(run, *at, attention=attention)
    row = place_if_any("token", token, len(on.axes.rows))
    row = opening.row(on.recording, on.attention, at) if row is None else row
    if row is None:
        named = on.heads
        one = named[on.layer * on.attention.pattern.shape[1] + on.head]
        strong = _strong(on)
        if one.name not in UNTOLD or not strong:
            return CardContent((findings_text.named(one),), "", on, strong)
        row = max(strong, key=lambda token: token[2])[0]
    here = on.attention.name, (on.layer, on.head), row
    for finding in on.facts.leading_findings():
        is_told = (finding.attention, finding.at, finding.query) == here
        if is_told and finding.kind in (*PAIRS, ALIGNED):
            return _of_link(on, finding)
    weights = on.attention.pattern[on.layer, on.head, row]
    key = int(weights.argmax())
    query = on.axes.rows[row] if on.axes.produced is None else on.axes.produced[row][0]
    value = float(weights[key])
    return CardContent((query, on.axes.keys[key]), hundredths(value), on, ((row, key, value),))


def _on(run: Run, one: Finding) -> Selection:
    layer, head = one.example_head or one.at
    return select(run, layer, head, attention=one.attention)


def _of_link(selection: Selection, one: Finding) -> CardContent:
    tokens = ((one.query, one.keys[0], one.value),)
    return CardContent(one.words[:2], hundredths(one.value), selection, tokens)


def _of_vote(on: Selection, one: Finding) -> CardContent:
    """Content of a card on a vote: an arc to each word that a head says, that of the noun first."""
    _, keys = groups(on.recording, on.attention, on.axes)
    at = {one.keys[0]: one.value}
    at |= {
        keys.starts[each.key]: each.weight
        for each in one.ballots
        if each.key != keys.of[one.keys[0]]
    }
    tokens = tuple((one.query, key, weight) for key, weight in at.items())
    if one.kind in NO_NOUN:
        sentence = plain(findings_text.statement(one, findings_text.quoted))
        return CardContent((sentence,), "", on, tokens, one)
    number = WORDS("votes", n=one.n_votes, heads=len(one.ballots))
    return CardContent(one.words[:2], number, on, tokens, one)


def _strong(selection: Selection) -> tuple[tuple[int, int, float], ...]:
    """The strongest key of each row of the text that is no special token."""
    pattern = selection.attention.pattern[selection.layer, selection.head]
    special = selection.recording.stream(selection.attention.query).special
    best = [
        (row, int(weights.argmax()), float(weights.max())) for row, weights in enumerate(pattern)
    ]
    return tuple(
        (row, key, weight)
        for row, key, weight in best
        if weight >= FAINTEST and not special[row] and not selection.axes.special[key]
    )


# ---- the words around it -------------------------------------------------------------------------


def _texts(
    recording: Recording, subject: CardContent
) -> tuple[list[Text], list[tuple[int, int]], list[float]]:
    """The texts, the places of what is told in them, (query, key), and its weights."""
    if subject.on is None:
        stream = recording.streams[0]
        return [_in_words(stream, recording.text, word_groups(recording, stream.name))], [], []
    on = subject.on
    query, key = (recording.stream(name) for name in (on.attention.query, on.attention.key))
    rows, keys = groups(recording, on.attention, on.axes)
    is_target = not on.is_across and key is not recording.streams[0]
    texts, first = [_in_words(key, recording.target if is_target else recording.text, keys)], 0
    if on.is_across:
        texts.append(_in_words(query, recording.target, rows, ahead=1))
        first = len(keys.labels)
    places: dict[tuple[int, int], float] = {}
    for row, column, weight in subject.tokens:
        place = first + int(rows.of[row]), int(keys.of[column])
        if place[0] != place[1] or subject.is_pair:
            places[place] = max(places.get(place, 0.0), weight)
    return texts, list(places), list(places.values())


def _in_words(stream: Stream, text: str, of: Groups, ahead: int = 0) -> Text:
    """Words of a stream over `text`. ahead: how many tokens before its own first one a word of `of`
    begins."""
    return Text(
        tuple(_short(label) for label in of.labels),
        spaced(stream, text, of, ahead),
        (*of.special[:-1], True) if ahead else of.special,  # the last one is not in the text
    )


def _short(label: str) -> str:
    label = " ".join(label.split())
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + WORDS("left_out")


def _room_for(texts: Sequence[Text], focus: Sequence[int]) -> list[list[int]]:
    """The words of each text that a card has room for, as places in it: those nearest to the
    `focus`, which is counted over all texts, else the first ones."""
    windows, first = [], 0
    for text in texts:
        n = len(text.labels)
        own = sorted({at - first for at in focus if 0 <= at - first < n})
        near = lambda at: (min((abs(at - each) for each in own), default=at), at)
        window, left = [], COLUMNS[len(texts)]
        for at in sorted((at for at in range(n) if at in own or not text.special[at]), key=near):
            left -= _columns(text.labels[at]) + text.spaced[at]
            if left < 0 and at not in own:
                break
            window.append(at)
        windows.append(sorted(window))
        first += n
    return windows


def _columns(label: str) -> int:
    """The columns of type that a word takes: two for each wide letter."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in label)


def _drawn(
    texts: Sequence[Text],
    windows: Sequence[Sequence[int]],
    places: Sequence[tuple[int, int]],
    weights: Sequence[float],
) -> dict[str, Any]:
    """The words that are kept, each gap between them as an ellipsis, and the edges between them."""
    labels: list[tuple[str, ...]] = []
    spaced: list[tuple[bool, ...]] = []
    numbers: dict[int, int] = {}  # of the words that are drawn, by their places
    first = n = 0
    for text, window in zip(texts, windows):
        words: list[tuple[str, bool]] = []
        there = [at for at in range(len(text.labels)) if at in window or not text.special[at]]
        for before, at in zip((-1, *there), there):
            if at in window:
                numbers[first + at] = n + len(words)
                words.append((text.labels[at], text.spaced[at]))
            elif before < 0 or before in window:
                words.append((WORDS("left_out"), True))
        labels.append(tuple(label for label, _ in words))
        spaced.append(tuple(space for _, space in words))
        first, n = first + len(text.labels), n + len(words)
    return {
        "texts": tuple(labels),
        "spaced": tuple(spaced),
        "edges": tuple(
            Edge(numbers[query], numbers[key], weight)
            for (query, key), weight in zip(places, weights)
            if query in numbers and key in numbers
        ),
    }
