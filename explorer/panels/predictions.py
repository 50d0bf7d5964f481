"""The panels on what a model predicts at one token: the word that is masked, or the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from explorer.analysis import logit_lens, predictions
from explorer.analysis.predictions import Distribution, Word, first_piece, of_whole, without_mark
from explorer.figures.formatting import (
    BLANKS,
    CHARACTER_PART,
    Written,
    enough_digits,
    fixed,
    named_word,
    ordinal,
    plural,
    power,
    probability,
    softmax_texts,
    tenths,
    whole_percent,
)
from explorer.figures.kinds import (
    MOST_LARGE,
    BarRow,
    Bars,
    Cloze,
    Facts,
    TokenRow,
    truncation_note,
    window,
)
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.masks import HiddenOrWord, can_hide
from explorer.panels.selection import Predicted, StreamSelection, model_name, predicted
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import CONTINUES, Stream
from models.contract.results import WholeWord, softmax
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens.chat import message_starts

CONCEPT = "predictions"


@dataclass(frozen=True, eq=False)
class Prediction:
    """Prediction at a token, by kind: "next", the word that is "masked", the one at a
    "typed" mask token, or the one that the model has "seen" there. plain: the stream without masked
    words. words: the most likely ones, and the actual word, whose id is None where there is
    none. also: further tokens (id) whose words are read with those of the likeliest."""

    at: StreamSelection
    plain: Stream
    kind: str
    of: Distribution
    words: tuple[Word, ...]
    labels: dict[int, str]
    actual: int | None
    also: tuple[int, ...] = ()

    @cached_property
    def whole(self) -> dict[int, WholeWord]:
        """The words of several pieces that tokens begin: to read them takes passes of their own."""
        recording = self.at.recording
        is_next = self.kind == "next"
        return loaded(recording).words_after(recording, self.at.token, self.also) if is_next else {}

    @property
    def answer(self) -> tuple[str, str]:
        """The most likely word, whole where its token is only its first piece, and its
        probability."""
        first = self.words[0]
        if first.id not in self.whole:
            return self.label(first.id), tenths(first.own)
        whole = self.whole[first.id]
        return self.unmarked(whole.word), of_whole(whole)

    @property
    def numbers(self) -> dict[str, Written]:
        """The probability of the most likely word, and that of the most likely token."""
        first = self.words[0]
        own = self.whole[first.id].own if first.id in self.whole else first.own
        return {
            "probability": Written(own, self.answer[1]),
            "token_probability": Written.by(tenths, first.own),
        }

    def label(self, id: int) -> str:
        """A word; of a token that begins one of several the token and the word."""
        if id in self.whole:
            return first_piece(self.whole[id], self.unmarked)
        return self.unmarked(self.labels[id])

    def unmarked(self, word: str) -> str:
        """A word as it is written after the token."""
        special = self.kind == "next" and bool(self.at.stream.special[self.at.token])
        return without_mark(word, after_special=special)


@spec.predicts
@spec.panel
def word(
    run: Run,
    token: Predicted = OPENS,
    word: Annotated[int | None, Choice(of="text", help="id of the selected word")] = None,
    hidden: HiddenOrWord = "",
) -> Panel:
    """The most likely words at a token of the sentence, the actual one among them, and how sure the
    model is.

    token: the first one that is predicted where None. word: the id of the selected word. hidden:
    the masked tokens with dots between them, "none", or where "" and no token is chosen the word
    that a text opens on. Of a classifier of texts, its classes in the place of words, beside those
    without the run's edits.
    Raises ValueError for what is not there and for a model that predicts neither.
    """
    if run.loaded.capabilities.classes:
        return _classes(run)
    on = prediction_at(run, token)
    words = sentences(CONCEPT, "word")
    is_next = on.kind == "next"
    name = "next_caption" if is_next else "masked_caption"
    return Panel(
        title=words("next_title" if is_next else "masked_title"),
        finding=_finding(on),
        figures=(_sentence(on), _bars(on, word), _facts(on)),
        table=_every_word(on),
        details=_details(on),
        caption=(words(name, word=on.at.word, token=on.at.token, kind=words(on.kind)),),
        file=f"{'after-' if is_next else ''}token-{on.at.token}",
        formulas=("readout", "entropy"),
        at={"token": on.at.token},
        numbers=on.numbers,
    )


@spec.predicts
@spec.panel
def cloze(
    run: Run,
    token: Predicted = OPENS,
    word: Annotated[int | None, Choice(of="text", help="id of the selected word")] = None,
    hidden: HiddenOrWord = "",
    several: Annotated[bool, Choice(of="text", help="a press hides one word more")] = False,
) -> Panel:
    """The sentence with an empty box at a token, behind it where the next word is predicted, and
    the likeliest whole words for it.

    several: a press on another word hides that one too, instead of the one that is hidden. The
    others as of `word`, and so ValueError; ValueError also for a classifier of texts.
    """
    words = sentences(CONCEPT, "cloze")
    if run.loaded.capabilities.classes:
        raise ValueError(words("classifier", model=model_name(run.recording())))
    on = prediction_at(run, token)
    likely = candidates(on)
    return Panel(
        title=words("next_title" if on.kind == "next" else "title"),
        finding=headline(on, likely),
        figures=(replace(_boxes(on, likely, word), hint=_hint(on, several)),),
        table={
            "word": [each.label for each in likely],
            "id": [each.id for each in likely],
            "probability": [each.p for each in likely],
        },
        details=_details_of_blank(on),
        caption=(words(f"caption_{on.kind}", word=on.at.word, token=on.at.token),),
        file=f"blank-{on.at.token}",
        at={"token": on.at.token},
    )


@dataclass(frozen=True)
class Candidate:
    """A whole word for a place: the id of its first token, its label and its probability."""

    id: int
    label: str
    p: float


MOST_WORDS = 5  # candidates for a place
NOTHING_BESIDE = 0.01  # a second candidate with less is not worth a row
ALSO = 0.5  # of the first one's probability, from which on the second one is named beside it


def candidates(on: Prediction) -> list[Candidate]:
    """The likeliest whole words for a place, the likeliest first: MOST_WORDS of them, or one where
    the second has next to nothing."""
    found = []
    for each in on.words:
        label, whole = on.unmarked(on.labels[each.id]), on.whole.get(each.id)
        if each.rank >= predictions.MOST_ROWS or (label.startswith(CONTINUES) and each.rank):
            continue  # a piece that goes on with the word before is no word
        own = Candidate(each.id, label, each.own)
        found.append(
            own
            if whole is None
            else replace(own, label=without_mark(whole.word, after_special=True), p=whole.own)
        )
    found.sort(key=lambda each: -each.p)
    is_alone = len(found) < 2 or found[1].p < NOTHING_BESIDE
    return found[: 1 if is_alone else MOST_WORDS]


def headline(on: Prediction, likely: list[Candidate]) -> str:
    """The word that the model would write at a place, and another where that is half as likely."""
    words = sentences(CONCEPT, "cloze")
    is_end = loaded(on.at.recording).is_end
    named = [
        f"a {BLANKS[each.label]}" if each.label in BLANKS else named_word(each.label)
        for each in likely[:2]
    ]
    has_other = len(likely) > 1 and likely[1].p >= ALSO * likely[0].p
    first = "end" if is_end(likely[0].id) else "write"
    if not has_other:
        return words(first, word=named[0])
    other = "_or_end" if is_end(likely[1].id) else "_or"
    return words(first + other, word=named[0], other=named[1])


def _hint(on: Prediction, several: bool) -> str:
    """A hint: what the model knows of a place, and what a press does."""
    words = sentences(CONCEPT, "cloze")
    if on.kind == "next":
        is_last = on.at.token == len(on.plain.tokens) - 1
        return words("hint_last" if is_last else "hint_next")
    if not can_hide(on.at.recording):
        return words("hint_fixed")
    return f"{words(f'hint_{on.kind}')} {words('press_too' if several else 'press')}"


def _boxes(on: Prediction, likely: list[Candidate], selected: int | None) -> Cloze:
    """The sentence with its boxes, of a long one what stands around the box, and the bars."""
    words, stream, plain = sentences(CONCEPT, "cloze"), on.at.stream, on.plain
    is_next, at = on.kind == "next", on.at.token
    mask = loaded(on.at.recording).capabilities.mask
    hidden = {*np.flatnonzero(stream.ids != plain.ids).tolist()}
    if not is_next:
        hidden |= {*predictions.typed_masks(plain, mask)}
    text = [i for i in range(len(plain.tokens)) if i == at or not plain.special[i]]
    places = [text[i] for i in window(len(text), [text.index(at)], MOST_LARGE)]
    starts = {*message_starts(plain.tokens, plain.roles)}
    parts: list[tuple[str, bool, str, str, bool]] = []  # as the fields of a cloze
    blanks, breaks, box = [], [], -1
    if places and places[0] != text[0]:
        parts.append(("…", True, "", "", False))
    before: int | None = None
    for i in places:
        if before is not None and any(before < start <= i for start in starts):
            breaks.append(len(parts))
        written = _written(plain.tokens[i])
        is_box = i in hidden or (i == at and not is_next)
        if not (is_next and plain.special[i]) and (written or is_box):
            if is_box:
                blanks.append(len(parts))
            if i == at and not is_next:
                box = len(parts)
            spoken = words("hidden", word=plain.tokens[i]) if i in hidden else plain.tokens[i]
            visible = "" if i in hidden else written
            key = "" if plain.special[i] and not is_next else f"{i}"
            parts.append((visible, _is_spaced(plain, before, i), spoken, key, is_next and i > at))
        if is_next and i == at:
            box = len(parts)
            blanks.append(box)
            parts.append(("", True, words("blank"), "", False))
        before = before if BLANKS.get(plain.tokens[i]) == "space" else i
    if places and places[-1] != text[-1]:
        parts.append(("…", True, "", "", False))
    tokens, spaced, names, keys, pale = zip(*parts)
    rows = tuple(
        BarRow(each.label, (each.p,), (whole_percent(each.p),), each.id == selected, f"{each.id}")
        for each in likely
    )
    left_out = truncation_note(len(places), len(text))
    meanings = with_blanks("", [each.label for each in rows])
    return Cloze(
        note=" · ".join(filter(None, (left_out, _actual(on, likely), meanings))),
        select=("token",),
        tokens=tokens,
        spaced=spaced,
        blanks=tuple(blanks),
        selected=box,
        names=names,
        keys=keys,
        pale=pale,
        breaks=tuple(breaks),
        rows=rows,
        select_row=("word",),
    )


def _written(label: str) -> str:
    """Text of a token in its sentence: a character of several tokens at the first of them, "" for
    the others and for a space."""
    if part := CHARACTER_PART.fullmatch(label):
        return part[1].removeprefix(CONTINUES) if part[2] == "1" else ""
    return "" if BLANKS.get(label) == "space" else label.removeprefix(CONTINUES)


def _is_spaced(stream: Stream, before: int | None, at: int) -> bool:
    """True where a space stands between two tokens of a text."""
    if stream.tokens[at].startswith(CONTINUES):
        return False
    if before is None:
        return True
    end, start = int(stream.spans[before][1]), int(stream.spans[at][0])
    return min(end, start) < 0 or start > end


def _actual(on: Prediction, likely: list[Candidate]) -> str:
    """The word that the text has at a place, where it is none of the candidates."""
    if on.kind == "seen" or on.actual is None or on.actual in {each.id for each in likely}:
        return ""
    own = next(each for each in on.words if each.id == on.actual)
    slots = {"word": named_word(on.unmarked(on.labels[own.id])), "p": whole_percent(own.own)}
    slots["place"] = ordinal(own.rank + 1)
    return sentences(CONCEPT, "cloze")("comes_next" if on.kind == "next" else "was", **slots)


def _details_of_blank(on: Prediction) -> tuple[str, ...]:
    """Sentences on words of several tokens, and on what gives a word away."""
    return (*whole_words(on.of, on.whole, on.unmarked), *_on_masks(on))


def _classes(run: Run) -> Panel:
    """The classes of a text by their probability, under edits beside those without."""
    words, model = sentences(CONCEPT, "classes"), run.loaded
    labels, several = model.capabilities.classes, model.capabilities.multi_label
    runs = [replace(run, edits=()), run] if run.edits else [run]
    logits = np.stack([loaded(each.model).class_logits(each.recording()) for each in runs])
    scores = logits.astype(np.float64)
    p = 1 / (1 + np.exp(-scores)) if several else softmax(scores)
    order = np.argsort(-p[0], kind="stable")
    columns = (words("before"), words("after")) if run.edits else (words("probability"),)
    rows = tuple(
        BarRow(labels[at], tuple(p[:, at].tolist()), tuple(map(tenths, p[:, at])), key=None)
        for at in order
    )
    first, last = (labels[int(each.argmax())] for each in (p[0], p[-1]))
    slots = {"first": first, "p": tenths(p[0].max()), "last": last, "q": tenths(p[-1].max())}
    kind = "plain" if not run.edits else "same" if first == last else "changed"
    slots["after"] = tenths(p[-1][int(p[0].argmax())])
    table: dict[str, list] = {"class": [labels[at] for at in order]}
    for at, name in enumerate(("before", "after") if run.edits else ("",)):
        table[f"logit {name}".strip()] = scores[at, order].tolist()
        table[f"probability {name}".strip()] = p[at, order].tolist()
    return Panel(
        title=words("title"),
        finding=words(kind, **slots),
        figures=(Bars(title=words("bars"), columns=columns, rows=rows, high=1.0, shared=True),),
        table=table,
        details=(words("several" if several else "softmax", n=len(labels)), words("parts")),
        caption=(words("caption", n=len(labels)),),
        file="classes",
    )


def prediction_at(run: Run, token: int | None) -> Prediction:
    """The prediction at a token, the first one that is predicted where None."""
    at = predicted(run, token)
    model, token = at.recording.model.name, at.token
    unedited = run.loaded.record(run.text_or_ids, (), run.target).covering(run.covered)
    plain = logit_lens.read_stream(unedited)
    ids = plain.ids
    following = ids[token + 1] if token + 1 < len(ids) else None
    kind, actual = "next", following
    if not logit_lens.predicts_next(at.recording):
        is_typed = token in predictions.typed_masks(at.stream, loaded(model).capabilities.mask)
        is_masked = ids[token] != at.stream.ids[token]
        kind = "masked" if is_masked else "typed" if is_typed else "seen"
        actual = None if kind == "typed" else ids[token]
    of = predictions.distribution(at.logits)
    top = predictions.top_words(of, () if actual is None else (int(actual),))
    labels = loaded(model).labels([each.id for each in top])
    names = {each.id: label for each, label in zip(top, labels)}
    return Prediction(at, plain, kind, of, top, names, None if actual is None else int(actual))


def _sentence(on: Prediction) -> TokenRow:
    """The sentence with its masked words; a press on a token selects it."""
    stream, is_masked = on.at.stream, on.at.stream.ids != on.plain.ids
    fills = on.kind != "next"
    mask = loaded(on.at.recording).capabilities.mask
    typed = predictions.typed_masks(on.plain, mask) if fills else ()
    return TokenRow(
        select=("token",),
        tokens=stream.tokens,
        selected=on.at.token,
        texts=tuple(word if gone else "" for word, gone in zip(on.plain.tokens, is_masked)),
        marked=(*np.flatnonzero(is_masked).tolist(), *typed),
        keys=tuple("" if fills and end else f"{at}" for at, end in enumerate(stream.special)),
        breaks=message_starts(stream.tokens, stream.roles),
        special=tuple(stream.special.tolist()),
    )


def _bars(on: Prediction, selected: int | None) -> Bars:
    """The words by their probability, and below them all others together."""
    words = sentences(CONCEPT, "word")
    rows = [
        BarRow(
            _name(on, each),
            (each.own,),
            (_written_as(each),),
            selected=each.id == selected,
            key=str(each.id),
        )
        for each in on.words
    ]
    rest = predictions.remaining_words(on.of, on.words)
    others = (
        words("others", words=plural(rest.n, "other word"), p=tenths(rest.own)) if rest.n else ""
    )
    return Bars(
        title=words("next_bars" if on.kind == "next" else "masked_bars"),
        note=with_blanks(others, [row.label for row in rows]),
        select=("word",),
        columns=(words("probability"),),
        rows=tuple(rows),
    )


def with_blanks(note: str, labels: Iterable[str]) -> str:
    """A note on a list of words, with the meaning of each sign for a blank among them."""
    line, blank = "".join(labels), sentences(CONCEPT, "word")
    meanings = [blank("blank", sign=s, name=name) for s, name in BLANKS.items() if s in line]
    return " ".join((note, *meanings)).strip()


def _name(on: Prediction, word: Word) -> str:
    """A word; of the actual word that it is this one."""
    label = on.label(word.id)
    return sentences(CONCEPT, "word")("actual", word=label) if word.id == on.actual else label


def _written_as(word: Word) -> str:
    """A word's probability, and the rank of one that is listed beside the first ones."""
    p = tenths(word.own)
    if word.rank < predictions.MOST_ROWS:
        return p
    return sentences(CONCEPT, "word")("p_rank", p=p, rank=f"{word.rank + 1:,}")


def _facts(on: Prediction) -> Facts:
    """Probability, perplexity and entropy of the prediction, and the rank of the actual word."""
    words, entropy = sentences(CONCEPT, "word"), predictions.entropy(on.of.own)
    perplexity = power(predictions.perplexity(entropy), 3)
    answer, p = on.answer
    first = on.words[0]
    facts = [
        (p, words("of_answer", word=answer)),
        *(
            [(tenths(first.own), words("of_first", first=on.unmarked(on.labels[first.id])))]
            if first.id in on.whole
            else []
        ),
        (perplexity, words("perplexity")),
        (power(entropy, 3), words("entropy")),
    ]
    actual = [each for each in on.words if each.id == on.actual]
    facts += [
        (f"{each.rank + 1:,}", words("rank", word=on.label(each.id), n=f"{len(on.of.order):,}"))
        for each in actual
    ]
    return Facts(title=words("sure"), facts=tuple(facts))


def _finding(on: Prediction) -> str:
    """Sentences on the predicted word, and the probability of the actual word."""
    words = sentences(CONCEPT, "word")
    (answer, p), slots = on.answer, {"word": on.at.word, "token": on.at.token}
    kind = "ends" if loaded(on.at.recording).is_end(on.words[0].id) else on.kind
    lines = [words(f"finding_{kind}", answer=answer, p=p, **slots)]
    for each in on.words:
        if each.id == on.actual:
            slots = {
                "actual": on.label(each.id),
                "p": tenths(each.own),
                "rank": f"{each.rank + 1:,}",
            }
            lines.append(words("is_actual" if each.rank == 0 else f"actual_{on.kind}", **slots))
    return " ".join(lines)


def _details(on: Prediction) -> tuple[str, ...]:
    """Sentences on the softmax, the entropy, and the meaning of a piece of a word."""
    words = sentences(CONCEPT, "word")
    steps = predictions.probability_steps(on.of, on.words[0].id)
    p = probability(steps.tempered)
    score, part, total = softmax_texts(steps.divided, steps.log_total, p)
    lines = [
        words("made", n=f"{len(on.of.order):,}"),
        words("softmax", word=on.labels[on.words[0].id], z=score, part=part, total=total, p=p),
    ]
    lines += [
        words("entropy_line", **entropy_slots(on.of)),
        *whole_words(on.of, on.whole, on.unmarked),
    ]
    return (*lines, *_on_masks(on), *words.lines("details"))


def _on_masks(on: Prediction) -> list[str]:
    """Sentences on several masks, and on a mask in a word of several pieces."""
    words, stream = sentences(CONCEPT, "word"), on.at.stream
    if on.kind == "typed":
        masks = len(predictions.typed_masks(stream, on.at.word))
        if masks == int((~stream.special).sum()):
            return [words("typed_alone")]
        return [words("typed_several", n=masks)] if masks > 1 else []
    is_piece = on.kind == "masked" and predictions.is_piece(stream.tokens, on.at.token)
    return [words("piece")] if is_piece else []


def entropy_slots(of: Distribution) -> dict[str, str]:
    """The entropy of a distribution in nats and in bits, and its perplexity."""
    entropy = predictions.entropy(of.own)
    bits = fixed(predictions.bits(entropy))
    (nats,) = enough_digits(bits, predictions.bits, entropy)
    perplexity = f"{predictions.perplexity(entropy):,.1f}"
    return {"nats": nats, "bits": bits, "perplexity": perplexity}


def whole_words(
    of: Distribution, whole: Mapping[int, WholeWord], unmarked: Callable[[str], str]
) -> list[str]:
    """A sentence on each word of several tokens, by the first of them. unmarked: as a word is
    written after the text."""
    words = sentences(CONCEPT, "word")
    return [
        words(
            "whole_word",
            word=unmarked(each.word),
            first=unmarked(each.pieces[0]),
            rest=", ".join(each.pieces[1:]),
            most="at most " * each.cut,
            p=tenths(each.own),
            own=tenths(of.own[id]),
        )
        for id, each in whole.items()
    ]


def _every_word(on: Prediction) -> spec.Columns:
    """The whole vocabulary, the most likely word first."""
    columns = predictions.columns(on.of, loaded(on.at.recording).vocabulary())
    return {name: values for name, values in columns.items() if name != "drawn from"}
