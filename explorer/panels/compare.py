"""The panels on two runs side by side: heads, difference, predictions, nearest heads.

Both runs are brought onto common units of text (`explorer/analysis/alignment.py`); A is `run`, B
is `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any
from urllib.parse import urlencode

import numpy as np

from explorer.analysis import alignment, comparison, opening, predictions
from explorer.analysis.alignment import Alignment, Unit
from explorer.analysis.comparison import PatternPair, RowChange
from explorer.analysis.coreference import Ballot, Vote, tested_votes
from explorer.analysis.findings import word_groups
from explorer.analysis.opening import WordLink
from explorer.analysis.shared_votes import SharedVote, shared_votes, words_of_tokens
from explorer.analysis.terminology import sees_ahead
from explorer.analysis.word_classes import unread_part
from explorer.analysis.words import described
from explorer.figures.formatting import (
    Written,
    fixed,
    hundredths,
    percent,
    plural,
    tenths,
)
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Figure,
    Links,
    Matrix,
    TextTable,
    VoteLine,
)
from explorer.panels import spec, vote_lines
from explorer.panels.attention import read_words
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    HEAD,
    LAYER,
    TOKEN,
    model_name,
    place_if_any,
    place_of,
    select,
    token_of_text,
)
from explorer.panels.spec import Panel
from explorer.text.attention import LABELS
from explorer.text.findings import quoted, unread
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import (
    HideToken,
    MeanHead,
    WithoutPositions,
    ZeroHead,
    from_line,
)
from models.contract.recording import Attention, Recording
from models.example_texts import MATES
from models.own import model_card
from models.runtime.caching import loaded, memo, picture_name
from models.runtime.run import Run

CONCEPT = "compare"
WORDS = sentences(CONCEPT, "choices")
Head = tuple[int, int]  # layer, head
N_WORDS, N_ROWS = 10, 12  # of a list of words, and of a list of cells or heads
N_LINKED = 40  # tokens of a picture of an alignment
MAX_NAME = 40  # letters that tell two sides apart


# ---- two runs ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwoRuns:
    """Two runs, A and B, their recordings, and the attention of each that is compared."""

    run: Run
    other: Run
    a: Recording
    b: Recording
    of_a: Attention
    of_b: Attention

    def cached(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Something computed of both, kept beside the recording of A."""
        cause = picture_name(self.b), self.of_a.name, self.of_b.name
        return memo(self.a, ("compared", key, *cause), make)

    @cached_property
    def units(self) -> tuple[Alignment, Alignment]:
        """The units of queries and of keys. Raises ValueError where there are none."""

        def make() -> tuple[Alignment, ...]:
            both = alignment.axes(self.a, self.of_a), alignment.axes(self.b, self.of_b)
            return tuple(alignment.align(one, other) for one, other in zip(*both))

        rows, columns = self.cached("units", make)
        for aligned, name in ((rows, "whole_rows"), (columns, "whole_columns")):
            words = len(aligned.outside_a) + len(aligned.outside_b)
            if not aligned.units or (
                words and not aligned.n_text and aligned.rule == alignment.WORDS
            ):
                raise ValueError(sentences(CONCEPT, "shared")(name))
        return rows, columns

    @cached_property
    def patterns(self) -> PatternPair:
        """Both attentions on these units."""
        return comparison.align_patterns((self.a, self.of_a), (self.b, self.of_b), *self.units)

    @cached_property
    def paired(self) -> np.ndarray | None:
        """The distance of each head to the one in its place (layer, head), None where shapes
        differ."""
        if not self.patterns.same_shape:
            return None
        return self.cached("pairs", lambda: comparison.same_place_distances(self.patterns))

    @cached_property
    def distances(self) -> comparison.Distances:
        """Every head of A to every head of B."""
        return self.cached("heads", lambda: comparison.distance_matrix(self.patterns))

    @cached_property
    def near(self) -> tuple[comparison.Nearest, ...]:
        """The nearest head of B for every head of A."""
        return self.cached("nearest", lambda: comparison.nearest(self.distances))

    @cached_property
    def names(self) -> tuple[str, str]:
        """Of each side what the other has not: its model, its edits, its words."""
        texts = alignment.unshared_words(self.a.text, self.b.text)
        parts: tuple[list[str], list[str]] = ([], [])
        for mine, text, each in zip(parts, texts, (self.a, self.b)):
            if self.a.model.name != self.b.model.name:
                mine.append(model_names.title(each.model.name))
            if self.a.edits != self.b.edits:
                mine.append(described(each, each.edits) or sentences(CONCEPT, "shared")("unedited"))
            if text:
                mine.append(sentences(CONCEPT, "shared")("quoted", word=text))
            elif any(texts):
                mine.append(sentences(CONCEPT, "shared")("without", word="".join(texts)))
        one, other = (_shortened(", ".join(each)) for each in parts)
        return one, other

    def side_name(self, at: int) -> str:
        """A side as a sentence names it: by its model, or what is edited in it, or its words."""
        words, each = sentences(CONCEPT, "shared"), (self.a, self.b)[at]
        if self.a.model.name != self.b.model.name:
            return model_names.title(each.model.name)
        if self.a.edits != self.b.edits:
            edits = described(each, each.edits)
            return words("model_with", edits=edits) if edits else words("model_unedited")
        own = alignment.unshared_words(self.a.text, self.b.text)[at]
        return words("text_with", word=_shortened(own)) if own else words(f"text_{'ab'[at]}")

    def side(self, at: int) -> str:
        """A side's letter with its name."""
        return "AB"[at] + (f", {self.names[at]}" if self.names[at] else "")

    def heads(
        self,
        head_of_a: Head | None = None,
        head_of_b: Head | None = None,
        by_nearest: bool = False,
    ) -> tuple[Head, Head]:
        """A head of A and one of B: those named, else of A the one that differs most, and of B the
        one in the same place, or the nearest. Raises ValueError for one that is not there."""
        if head_of_a is not None:
            of_a = _head_of("A", head_of_a, self.patterns.a.shape)
        elif self.paired is not None:
            of_a = comparison.most_changed(self.paired)[0]
        else:
            of_a = comparison.farthest_head(self.near)[0]
        if head_of_b is not None:
            return of_a, _head_of("B", head_of_b, self.patterns.b.shape)
        if self.paired is not None and not by_nearest:
            return of_a, of_a
        return of_a, comparison.nearest_to(self.near, of_a)

    def caption(self, *lines: str) -> tuple[str, ...]:
        """Lines of a caption, with what B is."""
        words, b = sentences(CONCEPT, "shared"), self.b
        run = words(
            "run",
            side="B",
            model=b.model.name,
            parameters=f"{b.model.n_parameters:,}",
            weights=b.model.fingerprint,
            edits=described(b, b.edits) or "none",
        )
        target = (words("target", text=spec.read_text(b, target=True)),) if b.target else ()
        return *lines, run, words("text", text=spec.read_text(b)), *target

    @property
    def dropped(self) -> tuple[str, ...]:
        """A sentence for each side whose text did not fit its model."""
        words = sentences(CONCEPT, "shared")
        return tuple(
            words("dropped", side=side, tokens=plural(each.dropped, "token"))
            for side, each in zip("AB", (self.a, self.b))
            if each.dropped
        )


def two_runs(
    run: Run, other: Run | None = None, attention: str = "", other_attention: str = ""
) -> TwoRuns:
    """Two runs; other: the `counterpart` where None. attention, other_attention: of A and of B, by
    name; the first one, and that of the same name, where "". Raises ValueError for what is not
    there."""
    other = counterpart(run) if other is None else other
    of_a = select(run, attention=attention)
    names = [each.name for each in other.recording().attention]
    same = of_a.attention.name if of_a.attention.name in names else ""
    of_b = select(other, attention=other_attention or same)
    return TwoRuns(run, other, of_a.recording, of_b.recording, of_a.attention, of_b.attention)


def _head_of(side: str, at: Head, shape: tuple[int, ...]) -> Head:
    """Layer and head of a side, counted from 0. shape: (layers, heads, ...) there. Raises
    ValueError for one that is not there."""
    (layer, head), (layers, heads) = at, shape[:2]
    return place_of(f"layer of {side}", layer, layers), place_of(f"head of {side}", head, heads)


def counterpart(run: Run) -> Run:
    """Default run to compare a run with: the run without its edits, or else without positions, or
    with its first head ablated. Raises ValueError for a model that supports no edits."""
    if run.edits:
        return replace(run, edits=())
    recording, offered = run.recording(), run.loaded.capabilities.edits
    if not issubclass(ZeroHead, offered):
        words, name = sentences(CONCEPT, "shared"), model_name(recording)
        raise ValueError(words("no_edits", model=name))
    first = ZeroHead(0, 0, recording.attention[0].name)
    edit = WithoutPositions() if issubclass(WithoutPositions, offered) else first
    return run.under((edit,))


# ---- the other run -------------------------------------------------------------------------------

COUNTERPARTS = {"encoder": "decoder", "decoder": "encoder"}


def other_text(text: str) -> str:
    """A second sentence for a text: the one that suits it, else the text without its last word."""
    return MATES.get(text) or text.strip().rpartition(" ")[0] or text


def other_models(model: str) -> tuple[str, ...]:
    """The models of this Headlight to compare one with: the one that suits it, its other weights,
    all others."""
    cards, base = model_names.cards(), model.partition("@")[0]
    names = (
        COUNTERPARTS.get(model, ""),
        *([base] if base in cards else []),
        model_names.bare_name(base),
        *model_names.checkpoints(base),
        *cards,
    )
    return tuple(each for each in dict.fromkeys(names) if each and each != model)


def other_run(
    run: Run,
    edits: Annotated[str, Choice(name="other_edits", help=WORDS("of_edits"))] = "",
    text: Annotated[str, Choice(name="other_text", help=WORDS("of_text"))] = "",
    model: Annotated[str, Choice(name="other_model", help=WORDS("of_model"))] = "",
) -> Run:
    """The run that stands beside another, the same but for what is named: other edits, in a line as
    in an address, another text, another model. The `counterpart` where nothing is.

    Where two models translate one text, both decoders read what the first one writes. Raises
    ValueError for words that are no edits.
    """
    if not (edits or model or text.strip()):
        return counterpart(run)
    changed = from_line(edits) if edits else run.edits
    if not (model or text.strip()):
        return run.under(changed)
    model, target = model or run.model, None
    kinds = {loaded(each).card.kind for each in (run.model, model)}
    if kinds == {"encoder-decoder"} and not text.strip():
        target = run.recording().target or None
    return Run(model, text if text.strip() else run.text, changed, target)


# ---- what a reader chooses ----------------------------------------------------------------------


def attentions_of_a(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the attentions of A by name."""
    return {each.name: LABELS.get(each.name, each.name) for each in run.recording().attention}


def attentions_of_b(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The labels of the attentions of B by name, the one that is compared until a reader chooses
    first."""
    two = two_runs(run, chosen.get("other"), chosen.get("attention", ""))
    labels = attentions_of_a(two.other, {})
    return {two.of_b.name: labels[two.of_b.name]} | labels


def heads_of_b(run: Run, chosen: Mapping[str, Any]) -> dict[Head | None, str]:
    """The heads of B to choose from."""
    attentions = chosen.get("attention", ""), chosen.get("other_attention", "")
    shape = two_runs(run, chosen.get("other"), *attentions).of_b.pattern.shape[:2]
    labels: dict[Head | None, str] = {None: WORDS("same_or_nearest")}
    for layer, head in np.ndindex(*shape):
        labels[layer, head] = comparison.name((layer, head))
    return labels


Other = Annotated[Run | None, Choice(made_by=other_run)]
OfA = Annotated[str, Choice(attentions_of_a, "Attention of A", name="other_of", menu=True)]
OfB = Annotated[str, Choice(attentions_of_b, "Attention of B", name="other_to", menu=True)]
HeadOfB = Annotated[Head | None, Choice(heads_of_b, "Head of B", menu=True)]


def _of_a(at: int) -> Callable[[Run, Mapping[str, Any]], int]:
    """The layer, 0, or the head, 1, of A that differs most."""

    def place(run: Run, chosen: Mapping[str, Any]) -> int:
        attentions = chosen.get("attention", ""), chosen.get("other_attention", "")
        return two_runs(run, chosen.get("other"), *attentions).heads()[0][at]

    return place


def _word_of_finding(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The word of the strongest finding where both texts are the same."""
    recording, other = run.recording(), chosen.get("other")
    is_one_text = other is None or other.recording().text == recording.text
    return opening.opened_word(recording, recording.attention[0]) if is_one_text else None


LayerOfA = Annotated[int, replace(LAYER, suits=_of_a(0))]
HeadOfA = Annotated[int, replace(HEAD, suits=_of_a(1))]
ComparedWord = Annotated[
    int | None, replace(TOKEN, suits=_word_of_finding, takes_every=True, checked=token_of_text)
]


def _shortened(words: str) -> str:
    return words if len(words) <= MAX_NAME else f"{words[: MAX_NAME - 1]}…"


def _named(head: Head) -> str:
    return sentences(CONCEPT, "shared")("head", layer=head[0], head=head[1])


# ---- votes ---------------------------------------------------------------------------------------


def voting_run(
    run: Run, model: Annotated[str, Choice(name="other_model", help=WORDS("of_model"))] = ""
) -> Run:
    """The run of another model whose tested heads vote on a pronoun of the text, the one that the
    text opens on where none is named. Raises ValueError where there is none."""
    if not (model or opening.model_beside(run)):
        raise ValueError(sentences(CONCEPT, "votes")("no_model"))
    return Run(model or opening.model_beside(run), run.text)


def _voted_word(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The pronoun on which two models vote, None for none."""
    other = chosen.get("other") or voting_run(run)
    found = opening.compared_vote(shared_votes(run.recording(), other.recording()))
    stream = run.recording().streams[0].name
    if found is None:
        of = run.recording().attention[0]
        token, link = (
            opening.opened_word(run.recording(), of),
            opening.word_link(run.recording(), of.name),
        )
        return link.token if token is None and link else token
    return word_groups(run.recording(), stream).starts[found.a.row]


VotedWord = Annotated[int | None, replace(TOKEN, suits=_voted_word, checked=token_of_text)]


@spec.panel
def votes(
    run: Run,
    other: Annotated[Run | None, Choice(made_by=voting_run)] = None,
    token: VotedWord = OPENS,
) -> Panel:
    """Votes of the tested heads of two models on the noun that a pronoun of one text stands for,
    and of a text without a vote which word another one reads in each; a press on a line compares
    its head with one of the other model.

    other: the same text in another model, the `voting_run` where None. token: the pronoun; that on
    which they disagree most clearly where None, and where they do not both vote on that one. Raises
    ValueError where they vote on none together.
    """
    other = voting_run(run) if other is None else other
    a, b = run.recording(), other.recording()
    words = sentences(CONCEPT, "votes")
    stream = a.streams[0].name
    groups, found = word_groups(a, stream), shared_votes(a, b)
    row = None if token is None else int(groups.of[token])
    if (on := opening.compared_vote(found, row)) is None:
        return _reads_of_both(run, other, token)
    names = model_names.title(run.model), model_names.title(other.model)
    label = groups.labels[on.a.row]
    (best_a, *_), (best_b, *_) = on.a.ballots, on.b.ballots
    keys = (
        tuple(_press(each, best_b) for each in on.a.ballots),
        tuple(_press(best_a, each) for each in on.b.ballots),
    )
    sides = tuple(
        vote_lines.Side(vote, of_vote, name, _reads(each, label))
        for vote, of_vote, name, each in zip(on, keys, names, (a, b))
    )
    rows = {each.a.row for each in found}
    divided = " ".join(filter(None, map(_divided, on, names)))
    right = _tested(on, (a, b), names)
    says = _unread_by_one(a, b) or divided or f"{_vote_counts(on)}{right and f'; {right}'}."
    further = (f"{right[:1].upper()}{right[1:]}.",) if right and divided else ()
    taught = _taught((run.model, other.model), on, names)
    return Panel(
        title=words("title"),
        finding=f"{_outcome(on, label, names)}. {says}",
        figures=(vote_lines.sentence_votes(a, stream, sides, has_bars=False, rows=rows),),
        table=vote_lines.vote_columns(on, names),
        details=(*further, *taught, *words.lines("details")),
        caption=(words("run", model=b.model.name, weights=b.model.fingerprint),),
        file="votes",
    )


def _reads_of_both(run: Run, other: Run, token: int | None) -> Panel:
    """The word that a word of one text reads in two models, each in the head in which it does so
    most plainly. token: of A's text. Raises ValueError for two texts or one model, under edits, and
    where no word of both reads another."""
    a, b, words = run.recording(), other.recording(), sentences(CONCEPT, "votes")
    both = {a.model.name, b.model.name}
    if a.text != b.text or len(both & {*opening.VOTING}) < 2 or a.edits or b.edits:
        raise ValueError(words("none"))
    places, groups = words_of_tokens(a, b), word_groups(a, a.streams[0].name)
    first = opening.word_link(a, a.attention[0].name, token)
    row = int(groups.of[first.token]) if first else -1
    there = next((at for at, place in sorted(places.items()) if place == row), None)
    second = None if there is None else opening.word_link(b, b.attention[0].name, there)
    if first is None or second is None:
        raise ValueError(words("none"))
    names, keys, lines = (model_names.title(run.model), model_names.title(other.model)), [], []
    pressed = urlencode(_press(first, second))
    for side, (each, link) in enumerate(((run, first), (other, second))):
        on = select(each, *link)
        read = read_words(on)
        start = word_groups(on.recording, on.attention.query).starts[read.keys[0]] if read else -1
        if read is None or (side and start not in places):
            raise ValueError(words("none"))
        keys.append(places[start] if side else read.keys[0])
        head, noun = vote_lines.WORDS("head", layer=link.layer, head=link.head), len({*keys}) - 1
        share = hundredths(read.weights[0])
        says = f"{names[side]}: {quoted(groups.labels[keys[-1]])} {share}"
        lines.append(VoteLine(keys[-1], noun, head, side, None, share, says, pressed))
    labels = [quoted(groups.labels[each]) for each in keys]
    slots = {"word": quoted(groups.labels[row]), "key": labels[0], "name": names[0]}
    name = "both_read" if keys[0] == keys[1] else "read"
    says = words(name, other_key=labels[1], other=names[1], **slots)
    heads = {"a": lines[0].head, "b": lines[1].head, "p": lines[0].number, "q": lines[1].number}
    where = words("read_in", name=names[0], other=names[1], **heads)
    drawn = vote_lines.sentence_lines(a, a.streams[0].name, row, lines)
    label = groups.labels[row]
    return Panel(
        title=words("title_read"),
        finding=f"{says}. {_unread_by_one(a, b) or where}",
        figures=(replace(drawn, sides=tuple(zip(names, (_reads(a, label), _reads(b, label))))),),
        table={
            "model": list(names),
            "head": [each.head for each in lines],
            "word": [groups.labels[each] for each in keys],
            "weight": [each.number for each in lines],
        },
        caption=(words("run", model=b.model.name, weights=b.model.fingerprint),),
        file="reads",
    )


def _press(a: Ballot | WordLink, b: Ballot | WordLink) -> dict[str, object]:
    """Choices that a press on a vote sets: a head of each side, and what compares them."""
    of_b = f"{b.layer}.{b.head}"
    return {"layer": a.layer, "head": a.head, "head_of_b": of_b, "other_view": "Heads"}


def _reads(recording: Recording, word: str) -> str:
    """A model's way of reading a sentence up to a pronoun."""
    of = recording.attention[0]
    name = "reads_all" if sees_ahead(of.reachable) else "reads_on"
    return sentences(CONCEPT, "votes")(name, word=word)


def _outcome(on: SharedVote, word: str, names: tuple[str, str]) -> str:
    """Two models' votes on a word, in one short sentence without a full stop."""
    words = sentences(CONCEPT, "votes")
    a, b = map(_noun, on)
    (name_a, name_b), slots = names, {"word": quoted(word)}
    if on.outcome == "agree":
        is_all = all(each.n_votes == len(each.ballots) for each in on)
        return words("agree" if is_all else "agree_most", noun=a, **slots)
    if on.outcome == "divided_a":
        return words("divided_b", noun=b, name=name_b, other=name_a, **slots)
    slots |= {"noun": a, "other_noun": b, "name": name_a, "other": name_b}
    return words(on.outcome, **slots)


def _vote_counts(on: SharedVote) -> str:
    """The number of heads of both models that say the noun which theirs names."""
    n, every = sum(each.n_votes for each in on), sum(len(each.ballots) for each in on)
    return sentences(CONCEPT, "votes")("hint", n=n, all=every)


def _taught(models: tuple[str, str], on: SharedVote, names: tuple[str, str]) -> Iterator[str]:
    """That voting heads of one model learned from the other one."""
    for at, (model, vote) in enumerate(zip(models, on)):
        heads = model_card.taught_heads(model)
        learned = [
            vote_lines.WORDS("head", layer=each.layer, head=each.head)
            for each in vote.ballots
            if (each.layer, each.head) in heads
        ]
        if learned and model_card.facts(model)["taught"]["teacher"] == models[1 - at]:
            slots = {"heads": " and ".join(learned), "name": names[at], "other": names[1 - at]}
            yield sentences(CONCEPT, "votes")("taught", **slots)


def _unread_by_one(a: Recording, b: Recording) -> str:
    """That a text holds a language which one of two models has not read; "" for none."""
    parts = (unread_part(each.model.name, a.text) for each in (a, b))
    return unread(next(filter(None, parts), ""))


def _tested(on: SharedVote, both: tuple[Recording, Recording], names: tuple[str, str]) -> str:
    """The share of test sentences in which such votes of two models are right, in words that follow
    others; "" where that was not measured."""
    counts = [tested_votes(of.model.fingerprint, vote.n_votes) for of, vote in zip(both, on)]
    if not all(counts):
        return ""
    slots = dict(zip(("a", "n_a", "b", "n_b"), (n for each in counts if each for n in each)))
    return sentences(CONCEPT, "votes")("right", name=names[0], other=names[1], **slots)


def _noun(vote: Vote) -> str:
    """The noun that is named, "" for none."""
    label = next((each.word for each in vote.ballots if each.noun == vote.noun), "")
    return quoted(label) if label else ""


def _divided(vote: Vote, name: str) -> str:
    """Votes of the heads of a model one by one, where they are divided; "" for others."""
    if vote.noun is not None:
        return ""
    words = sentences(CONCEPT, "votes")
    first, *rest = (quoted(each.word) for each in vote.ballots)
    if len({*rest}) == 1 and rest[0] != first:
        n = "others" if len(rest) > 1 else "other"
        return words("first_says", name=name, noun=first, rest=words(n), other=rest[0])
    return words("each_says", name=name, nouns=", ".join(dict.fromkeys((first, *rest))))


# ---- heads ---------------------------------------------------------------------------------------


@spec.predicts
@spec.panel
def heads(
    run: Run,
    other: Other = None,
    attention: OfA = "",
    other_attention: OfB = "",
    layer: LayerOfA = OPENS,
    head: HeadOfA = OPENS,
    head_of_b: HeadOfB = None,
    token: ComparedWord = OPENS,
    log: Annotated[
        bool, Choice(label="Weights on a logarithmic scale", name="other_tone", menu=True)
    ] = False,
) -> Panel:
    """Distance between the heads of two runs, and the weights of one head on both sides.

    other, attention, other_attention: as in `two_runs`. layer, head: of A, the one that differs
    most where None. head_of_b: the one in the same place or the nearest where None. token: whose
    word is predicted, as in `prediction`. log: colours of weights on a logarithmic scale.
    Raises ValueError for what is not there, and for texts without a word in common.
    """
    two = two_runs(run, other, attention, other_attention)
    words = sentences(CONCEPT, "heads")
    of_a, of_b = two.heads((layer, head), head_of_b)
    weights_a, weights_b = two.patterns.heads(of_a, of_b)
    predicted = _predictions(two, token)
    change = comparison.largest_row_change(two.patterns, of_a, of_b)
    marks = _marked(change)
    return Panel(
        title=words("title"),
        finding=" ".join(filter(None, (_predicted(two, predicted), _most_different(two, of_a)))),
        figures=(
            _grid(two, of_a),
            _weights(two, 0, of_a, weights_a, log, marks),
            _weights(two, 1, of_b, weights_b, log, marks),
        ),
        table=comparison.changed_columns(two.patterns, two.paired)
        if two.paired is not None
        else comparison.nearest_columns(two.near),
        details=_head_details(two),
        caption=two.caption(words("caption", a=_named(of_a), b=_named(of_b))),
        numbers=_side_numbers(predicted)
        | {"distance": Written.by(fixed, comparison.pair_distance(two.patterns, of_a, of_b))},
        file="-".join(["heads", *map(str, (*of_a, *of_b))]),
    )


def _grid(two: TwoRuns, selected: Head) -> Matrix:
    words = sentences(CONCEPT, "heads")
    values = two.paired
    if values is None:
        nearest = [each.distance for each in two.near]
        values = np.array(nearest).reshape(two.patterns.a.shape[:2])
    layers, heads = values.shape
    return Matrix(
        title=words("grid" if two.paired is not None else "grid_nearest"),
        select=("layer", "head"),
        rows=tuple(f"L{each}" for each in range(layers)),
        columns=tuple(f"H{each}" for each in range(heads)),
        values=values,
        high=comparison.scale_maximum(values),
        marks=((*selected, ""),),
        note=words("grid_note"),
        hint=words("grid_hint"),
        wide=True,
    )


def _weights(
    two: TwoRuns,
    side: int,
    at: Head,
    weights: np.ndarray,
    log: bool,
    marks: tuple[tuple[int, int, str], ...],
) -> Matrix:
    """One head of a side on common units; marks: the cells where the sides differ most."""
    words, name = sentences(CONCEPT, "heads"), two.names[side]
    return Matrix(
        title=words(
            "matrix", side="AB"[side], layer=at[0], head=at[1], about=f": {name}" if name else ""
        ),
        rows=two.patterns.rows.labels,
        columns=two.patterns.column_labels,
        values=weights.astype(np.float64),
        low=0.001 if log else 0.0,
        log=log,
        marks=marks,
        note=words("matrix_note") if marks else "",
        sides=("query", "key"),
        digits=3,
    )


def _most_different(two: TwoRuns, selected: Head) -> str:
    """Sentence on the head that differs most, and the row where it does; before it the distance of
    the selected head where that is another."""
    words = sentences(CONCEPT, "heads")
    if two.paired is None:
        worst = max(two.near, key=lambda each: each.distance)
        slots = {"head": _named(worst.head), "nearest": _named(worst.nearest)}
        return words("no_similar", distance=fixed(worst.distance), **slots)
    most = comparison.most_changed(two.paired)[0]
    if two.paired[most] == 0:
        return words("equal") + _reason_of_mask(two)
    change = comparison.largest_row_change(two.patterns, most, most)
    sentence = words("differs", layer=most[0], head=most[1], b=two.side_name(1), **_moved(change))
    if selected == most:
        return sentence
    distance = fixed(float(two.paired[selected]))
    return f"{words('selected', layer=selected[0], head=selected[1], distance=distance)} {sentence}"


def _reason_of_mask(two: TwoRuns) -> str:
    """Sentence on why rows of two texts are equal where a causal mask hides what differs; ""
    elsewhere."""
    is_causal = not any(sees_ahead(each.reachable) for each in (two.of_a, two.of_b))
    is_one_text = two.of_a.query == two.of_a.key
    hides = is_one_text and is_causal and two.a.text != two.b.text
    return " " + sentences(CONCEPT, "shared")("masked") if hides else ""


def _marked(change: RowChange) -> tuple[tuple[int, int, str], ...]:
    """The cells of a row's largest loss and gain, as marks; none where nothing differs."""
    return tuple((*cell, "") for cell in change.cells if change.distance > 0)


def _moved(change: RowChange) -> dict[str, str]:
    """The slots of a sentence on the row that differs most."""
    words = sentences(CONCEPT, "shared")
    lost, gained = (
        words("unaligned") if label == alignment.DIFFERING else words("quoted", word=label)
        for label in (change.lost, change.gained)
    )
    return {
        "row": change.row,
        "lost": lost,
        "gained": gained,
        "lost_from": hundredths(change.lost_from),
        "lost_to": hundredths(change.lost_to),
        "gained_from": hundredths(change.gained_from),
        "gained_to": hundredths(change.gained_to),
    }


def _head_details(two: TwoRuns) -> tuple[str, ...]:
    words = sentences(CONCEPT, "heads")
    lines = list(words.lines("details"))
    if two.paired is None:
        best = min(two.near, key=lambda each: each.distance)
        slots = {"head": _named(best.head), "nearest": _named(best.nearest)}
        lines.insert(
            1, words("best", distance=fixed(best.distance), median=fixed(best.median), **slots)
        )
        (a_layers, a_heads), (b_layers, b_heads) = (
            two.patterns.a.shape[:2],
            two.patterns.b.shape[:2],
        )
        shapes = {
            "a_layers": a_layers,
            "a_heads": a_heads,
            "b_layers": b_layers,
            "b_heads": b_heads,
        }
        lines.insert(0, words("other_shape", **shapes))
    else:
        lines.insert(1, words("median", median=fixed(float(np.median(two.paired)))))
        ablated = any(
            isinstance(edit, (ZeroHead, MeanHead)) for edit in (*two.a.edits, *two.b.edits)
        )
        if ablated and not two.paired.any():
            lines.insert(0, words("same_attention"))
    return (*two.dropped, *lines)


@spec.panel
def difference(
    run: Run,
    other: Other = None,
    attention: OfA = "",
    other_attention: OfB = "",
    layer: LayerOfA = OPENS,
    head: HeadOfA = OPENS,
    head_of_b: HeadOfB = None,
) -> Panel:
    """The weights of a head of B minus those of a head of A, and the cells that change most.

    Arguments as in `heads`. Raises ValueError as `heads` does.
    """
    two = two_runs(run, other, attention, other_attention)
    words = sentences(CONCEPT, "difference")
    of_a, of_b = two.heads((layer, head), head_of_b)
    _, _, change, _, high = comparison.pair_matrices(two.patterns, of_a, of_b)
    largest = comparison.largest_row_change(two.patterns, of_a, of_b)
    distance = Written.by(fixed, comparison.pair_distance(two.patterns, of_a, of_b))
    cells = comparison.pair_columns(two.patterns, of_a, of_b)
    names = {"a": _named(of_a), "b": _named(of_b)}
    order = np.argsort(-np.abs(cells["B - A"]), kind="stable")
    given = np.maximum(cells["A"], cells["B"]) > 0  # nothing where a mask hides the key
    order = order[given[order]][:N_ROWS]
    matrix = Matrix(
        title=words("matrix"),
        rows=two.patterns.rows.labels,
        columns=two.patterns.column_labels,
        values=change,
        high=high,
        signed=True,
        marks=_marked(largest),
        sides=("query", "key"),
        note=sentences(CONCEPT, "heads")("matrix_note") if _marked(largest) else "",
    )
    table = TextTable(
        title=words("cells"),
        columns=words.lines("columns"),
        rows=tuple(
            (
                cells["row"][at],
                cells["column"][at],
                hundredths(float(cells["A"][at])),
                hundredths(float(cells["B"][at])),
                f"{cells['B - A'][at]:+.2f}".replace("-", "−"),
            )
            for at in order
        ),
    )
    finding = words("equal") + _reason_of_mask(two)
    if largest.distance:
        finding = words("finding", distance=distance, **_moved(largest))
    return Panel(
        title=words("title", **names),
        finding=finding,
        figures=(matrix, table),
        table=cells,
        details=words.lines("details"),
        caption=two.caption(words("caption", **names)),
        numbers={"distance": distance},
        file="-".join(["difference", *map(str, (*of_a, *of_b))]),
    )


@spec.panel
def nearest(
    run: Run,
    other: Other = None,
    attention: OfA = "",
    other_attention: OfB = "",
    layer: LayerOfA = OPENS,
    head: HeadOfA = OPENS,
    head_of_b: HeadOfB = None,
) -> Panel:
    """Every head of A beside every head of B, and the nearest of B for each of A.

    Arguments as in `heads`. Raises ValueError as `heads` does.
    """
    two = two_runs(run, other, attention, other_attention)
    words = sentences(CONCEPT, "nearest")
    of_a, of_b = two.heads((layer, head), head_of_b, by_nearest=True)
    distances = two.distances
    rows, columns = comparison.names(distances.shape_a), comparison.names(distances.shape_b)
    at = comparison.head_number(of_a, distances.shape_a)
    keys = tuple(map(_address, np.ndindex(*distances.shape_a)))
    selected = two.near[at]
    matrix = Matrix(
        title=words("map"),
        select=("address",),
        rows=tuple(rows),
        columns=tuple(columns),
        values=distances.values,
        high=comparison.scale_maximum(distances.values),
        marks=((at, comparison.head_number(of_b, distances.shape_b), ""),),
        sides=(words("head_of_a"), words("head_of_b")),
        digits=3,
        selected=at,
        keys=keys,
    )
    listed = sorted(two.near, key=lambda each: each.distance)[:N_ROWS]
    listed += [selected] if selected not in listed else []
    table = TextTable(
        title=words("list"),
        select=("address",),
        columns=words.lines("columns"),
        rows=tuple(
            (
                comparison.name(each.head),
                comparison.name(each.nearest),
                fixed(each.distance),
                fixed(each.median),
                words("mutual") if each.mutual else "",
            )
            for each in listed
        ),
        keys=tuple((_address(each.head),) for each in listed),
        selected=listed.index(selected),
    )
    sample = distances.n_rows < distances.all_rows
    return Panel(
        title=words("title"),
        finding=words(
            "finding",
            mutual=sum(each.mutual for each in two.near),
            n=len(two.near),
            head=_named(of_a),
            nearest=_named(selected.nearest),
            distance=fixed(selected.distance),
            median=fixed(selected.median),
        ),
        figures=(matrix, table),
        table=comparison.distance_columns(two.near, columns, distances.values),
        details=(
            *words.lines("details"),
            *([words("sample", n=distances.n_rows, all=distances.all_rows)] if sample else []),
        ),
        caption=two.caption(words("caption")),
        file="nearest-heads",
    )


def _address(head: tuple[int, ...]) -> str:
    """The choices of an address for a head of A and the nearest of B."""
    return f"layer={head[0]}&head={head[1]}&head_of_b="


# ---- predictions ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SidePrediction:
    """Prediction of a side: the task in words, a probability of each id, and the most likely words
    with theirs; no words, and `why`, of a model that predicts none."""

    task: str = ""
    p: np.ndarray | None = None
    words: tuple[tuple[str, float], ...] = ()
    why: str = ""


@spec.predicts
@spec.panel
def prediction(run: Run, other: Other = None, token: ComparedWord = OPENS) -> Panel:
    """The most likely words of both runs at one place of the text, on one scale.

    other: as in `two_runs`. token: of A's text, whose word is predicted where one of the models
    fills in masked words; a word of both texts where None, and where B's text has not that one.
    Raises ValueError for what is not there, and for two
    models that predict no words.
    """
    two = two_runs(run, other)
    words = sentences(CONCEPT, "predictions")
    both = _predictions(two, token)
    if not any(each.words for each in both):
        raise ValueError(words("none", why=both[0].why))
    labels = dict.fromkeys(word for each in both for word, _ in each.words)
    sides = [(at, each) for at, each in enumerate(both) if each.words]
    by_side = {at: _probabilities((two.a, two.b)[at], each, tuple(labels)) for at, each in sides}
    order = sorted(labels, key=lambda word: -max(each.get(word, 0) for each in by_side.values()))
    rows = tuple(
        BarRow(
            word,
            tuple(each.get(word, 0.0) for each in by_side.values()),
            tuple(
                tenths(each[word]) if word in each else words("missing")
                for each in by_side.values()
            ),
        )
        for word in order
    )
    tasks = [
        words("task", side=two.side(at), task=each.task)
        if each.words
        else words("nothing", side="AB"[at])
        for at, each in enumerate(both)
    ]
    bars = Bars(
        title=words("bars"),
        columns=tuple(tasks[at] for at, _ in sides),
        rows=rows,
        shared=True,
    )
    return Panel(
        title=words("title"),
        finding=_predicted(two, both),
        numbers=_side_numbers(both),
        figures=(bars,),
        table={"word": order}
        | {
            "AB"[at]: [each.get(word, float("nan")) for word in order]
            for at, each in by_side.items()
        },
        details=(*two.dropped, *words.lines("details")),
        caption=two.caption(words("caption", a=tasks[0], b=tasks[1])),
        file="predictions",
    )


def _predicted(two: TwoRuns, both: Sequence[SidePrediction]) -> str:
    """Both predictions in a sentence; "" where neither model has one."""
    words, (a, b), other_side = sentences(CONCEPT, "heads"), both, two.side_name(1)
    side = two.side_name(0)
    side = side if two.a.model.name != two.b.model.name else side[:1].upper() + side[1:]
    if a.words and b.words:
        (word, p), (other, q) = a.words[0], b.words[0]
        if word == other:
            slots = {"a": two.side_name(0), "b": other_side, "p": tenths(p), "q": tenths(q)}
            return words("both_predict", word=word, **slots)
        slots = {"a": side, "b": other_side, "p": tenths(p), "q": tenths(q)}
        return words("predict", word=word, other=other, **slots)
    for side, one, rest in (("A", a, b), ("B", b, a)):
        if one.words:
            (word, p), *_ = one.words
            slots = {"side": side, "word": word, "p": tenths(p), "task": one.task, "why": rest.why}
            return sentences(CONCEPT, "predictions")("one", **slots)
    return ""


def _side_numbers(both: Sequence[SidePrediction]) -> dict[str, Written]:
    """The probability of each side's prediction."""
    return {
        f"probability_{side}": Written.by(tenths, one.words[0][1])
        for side, one in zip("ab", both)
        if one.words
    }


def _predictions(two: TwoRuns, token: int | None) -> tuple[SidePrediction, SidePrediction]:
    """Predictions of both sides, at the same word where one of them fills in masked words. Raises
    ValueError for a token that is not there."""
    token = place_if_any("token", token, len(two.a.streams[0].tokens))
    place_a = place_b = None
    if any(each.model.kind == "encoder" for each in (two.a, two.b)):
        place_a, place_b = _places(two, token)
    return _predict(two.run, two.a, place_a), _predict(two.other, two.b, place_b)


def _places(two: TwoRuns, token: int | None) -> tuple[int | None, int | None]:
    """The token of A and of B whose word is predicted: `token` where B has its word too, or the
    last word of both texts."""
    streams = two.a.streams[0], two.b.streams[0]
    masks = [loaded(each).capabilities.mask for each in (two.a, two.b)]
    first, last = (predictions.default_masked_word(*each) for each in zip(streams, masks))
    axes = (alignment.axis(each, each.streams[0].name) for each in (two.a, two.b))
    units: Sequence[Unit] = two.cached("sources", lambda: alignment.align(*axes)).units
    in_both = {at for unit in units if unit.b and not unit.special for at in unit.a}
    if token in in_both:
        first = token
    elif two.a.text != two.b.text:
        common = [
            unit.a[0]
            for unit in units
            if not unit.special
            and len(unit.a) == len(unit.b) == 1
            and len(unit.label) > 1
            and unit.label.isalpha()
        ]
        first = common[-1] if common else first
    beside = [unit.b[0] for unit in units if first in unit.a and not unit.special]
    return first, beside[0] if beside else last


def _predict(run: Run, recording: Recording, place: int | None) -> SidePrediction:
    """The prediction of a run at a token of its text, after the text where None."""
    words = sentences(CONCEPT, "predictions")
    offers, model = run.loaded.capabilities, model_name(recording)
    if not offers.logits:
        return SidePrediction(why=words("no_readout", model=model, why=offers.no_readout))
    stream, kind = recording.stream(offers.logits), recording.model.kind
    token = len(stream.tokens) - 1 if place is None else max(0, place - 1)
    task = words("first" if stream.special[token] else "goes_on", word=stream.tokens[token])
    if kind == "encoder-decoder":
        token, task = 0, words("translates")
    elif kind == "encoder":
        if place is None:
            return SidePrediction(why=words("no_word"))
        if not issubclass(HideToken, offers.edits):
            return SidePrediction(why=words("no_mask", model=model))
        token, task = place, words("fills", word=stream.tokens[place])
        try:
            recording = replace(run, edits=(*run.edits, HideToken(place))).recording()
        except ValueError as why:
            return SidePrediction(why=words("refused", why=str(why).rstrip(".")))
    distribution = predictions.distribution(
        loaded(recording).logits(recording, offers.logits, token)
    )
    top = predictions.top_words(distribution, most=N_WORDS)
    labels = run.loaded.labels([each.id for each in top])
    likely = tuple(zip(labels, (each.own for each in top)))
    return SidePrediction(task, distribution.own, likely)


def _probabilities(
    recording: Recording, side: SidePrediction, labels: Sequence[str]
) -> dict[str, float]:
    """The probability of each word of a side's vocabulary that is among `labels`."""
    assert side.p is not None
    wanted, values = set(labels), dict(side.words)
    for word, p in zip(loaded(recording).vocabulary(), side.p):
        if word in wanted and word not in values:
            values[word] = float(p)
    return {word: p for word, p in values.items() if word in wanted}


# ---- the alignment -------------------------------------------------------------------------------


@spec.panel
def tokens(run: Run, other: Other = None, attention: OfA = "", other_attention: OfB = "") -> Panel:
    """Alignment of the tokens of A and B by text, and the attention on tokens without a
    counterpart.

    Arguments as in `two_runs`. Raises ValueError for texts without a word in common.
    """
    two = two_runs(run, other, attention, other_attention)
    words, patterns = sentences(CONCEPT, "alignment"), two.patterns
    rows, columns = patterns.rows, patterns.columns
    axes = alignment.axes(two.a, two.of_a)[1], alignment.axes(two.b, two.of_b)[1]
    lines = [words("finding", rows=len(rows.units), columns=len(columns.units))]
    if rows.outside_a or rows.outside_b:
        lines.append(words("left_out", a=len(rows.outside_a), b=len(rows.outside_b)))
    if patterns.leaves_out:
        share_a, share_b = map(percent, comparison.unaligned_shares(patterns))
        counts = {"a": len(columns.outside_a), "b": len(columns.outside_b)}
        lines.append(words("unaligned", share_a=share_a, share_b=share_b, **counts))
    elif len(lines) == 1:
        lines.append(words("all"))
    details = list(words.lines("characters" if columns.rule == alignment.CHARACTERS else "words"))
    if forced := int((~patterns.free).sum()):
        details.append(words("forced", rows=plural(forced, "row")))
    return Panel(
        title=words("title"),
        finding=" ".join(lines),
        figures=(_links(columns, axes[0].labels, axes[1].labels),),
        table=alignment.unit_columns(columns, *axes),
        details=(*details, *words.lines("details")),
        caption=two.caption(words("caption")),
        file="alignment",
    )


def _links(columns: Alignment, left: Sequence[str], right: Sequence[str]) -> Figure:
    """Lines between the tokens of each unit."""
    words = sentences(CONCEPT, "alignment")
    weights = np.full((len(left), len(right)), np.nan)
    for unit in columns.units:
        weights[np.ix_(unit.a, unit.b)] = 1
    cut = max(len(left), len(right)) > N_LINKED
    return Links(
        title=words("links"),
        note=words("first", n=N_LINKED) if cut else "",
        left=tuple(left[:N_LINKED]),
        right=tuple(right[:N_LINKED]),
        sides=("A", "B"),
        weights=weights[:N_LINKED, :N_LINKED],
    )
