"""Questions of reasons: what changes where a part of the model, a word or its place is another, and
what follows from how attention and the feed-forward network are made.

What changes is measured, by a pass without the part, and asked only where the change is clear. What
follows holds for every text; which of its consequences is asked, and about which words, the text
decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any
from zlib import crc32

import numpy as np

from explorer.analysis import interventions, predictions, word_classes
from explorer.analysis.changes import opposites
from explorer.analysis.findings import word_groups
from explorer.analysis.measure import MeasureContext, Untestable
from explorer.analysis.quiz_question import (
    ADDED,
    AHEAD,
    BACK,
    CHANGED,
    CONVEX,
    FFN,
    HEADS,
    MASK,
    MASKED,
    MIN_MARGIN,
    MOST_ANSWERS,
    NEXT,
    NORM,
    POSITIONS,
    RESIDUAL,
    SCALE,
    SUM,
    SWAPPED,
    AnswerOption,
    Question,
    Slots,
    answer_names,
    most_question,
    options,
)
from explorer.analysis.word_classes import is_word
from explorer.figures.formatting import Written, fixed
from models.contract.edits import (
    Edit,
    HideToken,
    ScaledBy,
    WithMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    to_line,
)
from models.contract.recording import CONTINUES, Attention, NotFinite, Recording, Stream

FEWEST_WORDS = 4  # words that a question may name
MOST_PAIRS = 6  # pairs of words that are exchanged, one pass each
MOST_MASKED = 6  # words that are masked, one pass each
MOST_DRAWN = 16  # tokens on a small picture
CLEAR = 0.5  # a weight that a head gives for a reason
NEARLY = 0.7  # the mean weight by which nearly every word attends to one place
SEEN = 0.05  # the largest weight over all heads that is not nothing
LARGER = 4.0  # times the square root of d_k, for a softmax that is less sharp
GROWN = 100  # times the first length
FAR_MORE = 10  # times what the first layer adds
SURE = 0.6  # probability of a masked word that the rest of the sentence tells
LEFT = 0.35  # of a weight, at most, where it is much smaller
KEPT = 0.9  # cosine of a vector with what it was
MOVED = 0.05  # of its length: a vector that is another
SAME = 1e-3  # of its length: rounding
SENTENCE_ENDS = (".", "!", "?", "…", ":", ";")
# A word that is written behind a text, by the language of the text.
ADDED_WORDS = {
    "en": ("today", "again", "there"),
    "fr": ("demain", "encore", "ensemble"),
    "de": ("heute", "wieder", "dort"),
    "es": ("hoy", "siempre", "juntos"),
    "it": ("oggi", "ancora", "insieme"),
    "": ("today", "again", "there"),
}
LOOSE = re.compile(r"\s+(?=[.,!?;:…]|$)")  # before a sign, where a word was taken away
# Whose heads are asked about, where another attention reads them too.
OF_SIDE = {"encoder self": " of the encoder", "decoder self": " of the decoder’s self-attention"}
WORDS_BEFORE = 8  # of a text that a question shows before the word that is guessed


@dataclass(frozen=True, eq=False)
class AskedSentence:
    """Subject of a question: a context, its first attention of one text, and the words that
    questions may name: each one token, once in the text; where these are few, words of several
    tokens too, and last those that the text repeats. draw: chance that the text decides."""

    context: MeasureContext
    attention: Attention
    draw: np.random.Generator

    @classmethod
    def of(cls, context: MeasureContext) -> AskedSentence:
        """Raises Untestable for a text with too few words."""
        recording = context.recording
        own = [each for each in recording.attention if each.query == each.key]
        if not own:
            raise Untestable("no attention of one text")
        seed = f"{recording.model.name}\0{recording.text}\0{recording.target}"
        draw = np.random.default_rng(crc32(seed.encode("utf-8", "replace")))
        sentence = cls(context, own[0], draw)
        if len(sentence.words) < FEWEST_WORDS:
            raise Untestable("too few words")
        return sentence

    @cached_property
    def stream(self) -> Stream:
        """The stream of the attention."""
        return self.context.recording.stream(self.attention.query)

    @cached_property
    def in_pieces(self) -> bool:
        """True where few words are one token and once in the text: questions then name words of
        several by their first token, and none is about a weight of theirs."""
        return len(self._named_words(True, False)) < FEWEST_WORDS

    @cached_property
    def words(self) -> dict[int, str]:
        """The words by their tokens, those of content first."""
        if not self.in_pieces:
            return self._named_words(True, False)
        once = self._named_words(False, False)
        return once if len(once) >= FEWEST_WORDS else self._named_words(False, True)

    def _named_words(self, whole: bool, repeated: bool) -> dict[int, str]:
        groups = word_groups(self.context.recording, self.stream.name)
        names, once = answer_names(groups.labels, repeated)
        classes = word_classes.classes(groups.labels)
        # Of one-token words, weights between tokens are weights between words.
        at = [
            at
            for at in range(len(names))
            if once[at]
            and (not whole or groups.sizes[at] == 1)
            and not groups.special[at]
            and is_word(groups.labels[at])
        ]
        order = sorted(at, key=lambda each: classes[each] == word_classes.FILLER)
        return {int(groups.starts[each]): names[each] for each in order}

    @cached_property
    def content(self) -> list[int]:
        """The tokens of words of content and of pronouns, of all words where these are few."""
        labels = list(self.words.values())
        classes = word_classes.classes(tuple(labels))
        chosen = [at for at, kind in zip(self.words, classes) if kind != word_classes.FILLER]
        return chosen if len(chosen) >= 3 else list(self.words)

    @property
    def causal(self) -> bool:
        """True where no token attends to a later one."""
        allowed = self.attention.reachable
        return not np.triu(allowed, 1).any()

    def rows(self) -> np.ndarray:
        """The text's tokens that have more than one key to choose from."""
        free = (self.attention.allowed.sum(axis=2) > 1).all(axis=0)
        return np.flatnonzero(free & ~self.stream.special)

    def pick(self, options: Sequence[Any]) -> Any:
        """One of some, drawn."""
        return options[int(self.draw.integers(len(options)))]

    def two(self, tokens: Sequence[int]) -> tuple[int, int]:
        """Two of some tokens, drawn. Raises Untestable for fewer."""
        if len(tokens) < 2:
            raise Untestable("too few words")
        first, second = self.draw.choice(list(tokens), 2, replace=False)
        return int(first), int(second)

    def question(self, kind: str, form: str = "", **fields: Any) -> Question:
        """A question on this attention. Of `fields`, `token` and `key` are named as words."""
        words = tuple(
            self.words[fields[name]] for name in ("token", "key") if fields.get(name, -1) >= 0
        )
        return Question(
            kind,
            form,
            attention=self.attention.name,
            words=words,
            stream=self.stream.name,
            **fields,
        )

    def rerun(self, *edits: Edit, text: str = "") -> Recording:
        """Another recording, whose decoder reads the same target."""
        return self.context.rerun(to_line(edits), text, self.context.own_target)

    def attention_of(self, recording: Recording) -> Attention:
        """The same attention in another recording."""
        return next(each for each in recording.attention if each.name == self.attention.name)

    def pattern_of(self, recording: Recording) -> np.ndarray:
        """Its pattern there."""
        return self.attention_of(recording).pattern

    def states(self, recording: Recording) -> np.ndarray:
        """The last states of the stream in a recording, (token, d_model)."""
        return recording.stream(self.stream.name).resid[-1].astype(np.float64)

    def retyped(self, *words: tuple[int, str]) -> str:
        """The text with other words in the place of tokens."""
        text = self.context.recording.text
        for token, word in sorted(words, reverse=True):
            start, end = map(int, self.stream.spans[token])
            start += len(text[start:end]) - len(text[start:end].lstrip())
            text = text[:start] + word + text[end:]
        return text

    def exchanged(self, one: int, other: int) -> tuple[str, list[str]]:
        """The text with two words exchanged, and the tokens that it should have."""
        tokens = list(self.stream.tokens)
        tokens[one], tokens[other] = tokens[other], tokens[one]
        return self.retyped((one, self.words[other]), (other, self.words[one])), tokens

    def reads(self, recording: Recording, tokens: Sequence[str]) -> bool:
        """True where a recording has exactly these tokens."""
        return list(recording.stream(self.stream.name).tokens) == list(tokens)

    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of words that can be exchanged, in the order of their tokens: both with a capital
        or both without; first two names, and two words after the same word."""
        every = sorted(self.content)
        pairs = [
            (a, b)
            for a, b in combinations(every, 2)
            if self.words[a][:1].isupper() == self.words[b][:1].isupper()
        ]
        before = [""] + [token.casefold() for token in self.stream.tokens]

        def suits(pair: tuple[int, int]) -> bool:
            a, b = pair
            return self.words[a][:1].isupper() or before[a] == before[b]

        order = [pairs[int(at)] for at in self.draw.permutation(len(pairs))]
        return sorted(order, key=suits, reverse=True)[:MOST_PAIRS]

    def honours(self, *kinds: type[Edit]) -> bool:
        """True where the model can be run under edits of these kinds."""
        return all(issubclass(each, self.context.capabilities.edits) for each in kinds)


def reasons(context: MeasureContext, likeliest: Sequence[tuple[str, float]]) -> Iterator[Question]:
    """Every question of a reason that a context has. likeliest: the likeliest next words with their
    probabilities, of a model that writes."""
    yield from next_word(likeliest, context.recording.streams[-1])
    try:
        sentence = AskedSentence.of(context)
    except Untestable:
        return
    for make in LAWS if sentence.in_pieces else (*LAWS, *OF_WORDS):
        try:
            yield from make(sentence)
        except (Untestable, NotFinite):  # its numbers overflow under an edit
            continue


def place(layer: int, head: int, token: int = -1, **more: str) -> tuple[tuple[str, str], ...]:
    """The choices of an address that show a head, and a word of it."""
    at = {"layer": str(layer), "head": str(head), "token": "" if token < 0 else str(token)}
    return tuple((at | more).items())


# ---- what is predicted ---------------------------------------------------------------------------


def next_word(likeliest: Sequence[tuple[str, float]], stream: Stream) -> Iterator[Question]:
    """Question for the word that the model predicts after the text; nothing after the end of a
    sentence, where any word may follow."""
    text = "".join(stream.tokens).rstrip()
    if text.endswith(SENTENCE_ENDS):
        return
    token = len(stream.tokens) - 1
    about = Question(
        NEXT,
        covers=True,
        token=token,
        stream=stream.name,
        interest=1.0,
        page="word",
        address=(("token", str(token)),),
    )
    yield from _likeliest_word(likeliest, about)


def _likeliest_word(said: Sequence[tuple[str, float]], about: Question) -> Iterator[Question]:
    """Question for the likeliest of what a model says, with its probabilities, the likeliest first;
    none where that is no word. What is no word is no answer, and told where it comes second."""
    options = [AnswerOption(float(p), word.strip()) for word, p in said]
    words = [is_word(word) and not word.startswith(CONTINUES) for word, _ in said]
    if words[:1] == [True]:
        rival = options[1] if words[1:2] == [False] else None
        answers = [each for each, is_answer in zip(options, words) if is_answer]
        yield from most_question(answers, replace(about, rival=rival))


def masked_word(on: AskedSentence) -> Iterator[Question]:
    """Question for the word that the model fills into the place of a masked one: a word of content,
    which the rest of the sentence can tell."""
    classes = word_classes.classes(tuple(on.words.values()))
    of_content = [at for at, kind in zip(on.words, classes) if kind == word_classes.CONTENT]
    places = [at for at in of_content or on.content if len(on.words[at]) > 1]
    for token in [places[int(at)] for at in on.draw.permutation(len(places))][:MOST_MASKED]:
        for one in _masked(on, token):
            is_content = word_classes.classes((one.answer.word,)) == (word_classes.CONTENT,)
            if is_content and one.answer.value >= SURE:
                yield one


def _masked(on: AskedSentence, token: int) -> Iterator[Question]:
    context = on.context
    context.require_edits(HideToken)
    context.require_readout()
    if context.recording.model.kind != "encoder" or not context.capabilities.mask:
        return
    scores = context.model.logits(on.rerun(HideToken(token)), on.stream.name, token)
    about = on.question(
        MASKED,
        token=token,
        covers=True,
        edits=to_line((HideToken(token),)),
        slots=(("sentence", context.recording.texts_with_cover(token)[0]),),
        page="word",
        address=(("token", str(token)), ("hidden", str(token))),
    )
    for one in _likeliest_word(_top_words(on, scores), about):
        # Surest, but not of what nobody could doubt.
        yield replace(one, interest=one.answer.value - (one.answer.value > 0.95))


def _top_words(on: AskedSentence, scores: np.ndarray) -> list[tuple[str, float]]:
    """The likeliest words of scores (id) with their probabilities, by their own tokens."""
    top = predictions.top_words(predictions.distribution(scores), most=MOST_ANSWERS + 2)
    labels = on.context.model.labels([each.id for each in top])
    return [(label, each.own) for label, each in zip(labels, top)]


def _words_after(on: AskedSentence, token: int) -> list[tuple[str, float]]:
    """The likeliest words after a token with their probabilities, those of several tokens whole."""
    model, recording = on.context.model, on.context.recording
    scores = on.context.logits(on.stream.name, token)
    top = predictions.top_words(predictions.distribution(scores), most=MOST_ANSWERS + 2)
    labels = model.labels([each.id for each in top])
    whole = model.predicted_words(recording, [(each.id, each.own) for each in top], token=token)
    if any(each.cut for each in whole.values()):
        return []
    named = [
        (whole[each.id].word, whole[each.id].own) if each.id in whole else (label, each.own)
        for each, label in zip(top, labels)
    ]
    # What is not listed is less likely than the last of the list.
    return sorted((one for one in named if one[1] >= top[-1].own), key=lambda one: -one[1])


def predicted_words(context: MeasureContext) -> Iterator[Question]:
    """Questions for the word that the model predicts at each word of the text: in its place where
    it fills masked words, else after it."""
    try:
        on = AskedSentence.of(context)
        context.require_readout()
    except Untestable:
        return
    if context.recording.model.kind == "encoder":
        for token in on.words:
            yield from _masked(on, token)
        return
    for token in on.words:
        if token + 1 == len(on.stream.tokens):
            continue  # what comes after the text is one of the ten
        likeliest = _words_after(on, token)
        text = context.recording.text[: int(on.stream.spans[token][1])]
        before = " ".join(text.split()[-WORDS_BEFORE:])
        about = on.question(
            NEXT,
            "after",
            token=token,
            covers=True,
            slots=(("before", before),),
            page="word",
            address=(("token", str(token)),),
        )
        for one in _likeliest_word(likeliest, about):
            yield replace(one, interest=min(one.answer.value, 0.95))


# ---- which picture -------------------------------------------------------------------------------


def beside(on: AskedSentence) -> Iterator[Question]:
    """Question for the one of four heads, shown as pictures, that attends to the previous token,
    and to the next one; or for the rule of that head, which is shown alone."""
    pattern, special = on.attention.pattern, on.stream.special
    layers, heads = pattern.shape[:2]
    for kind, step in ((BACK, -1), (AHEAD, 1)):
        if step > 0 and on.causal:
            continue
        share = _share_at(pattern, special, on.attention.reachable, step)
        best = int(share.argmax())
        is_other = (share <= share.max() - MIN_MARGIN[kind]) & (
            _most_at(pattern, special, step) < 0.5
        )
        others = np.flatnonzero(is_other)
        if share.max() < NEARLY or len(others) < MOST_ANSWERS - 1:
            continue
        # What one may take for it: the diagonal itself, one column, and the diagonal beside it.
        beside_it = 2 * step if on.causal else -step
        rival = [
            _share_at(pattern, special, on.attention.reachable, 0).ravel(),
            pattern[:, :, ~special].mean(axis=2, dtype=np.float64).max(axis=-1).ravel(),
            _share_at(pattern, special, on.attention.reachable, beside_it).ravel(),
        ]
        wrong: list[int] = []
        for values in rival:
            wrong.append(int(max((at for at in others if at not in wrong), key=values.__getitem__)))
        choices = tuple(
            AnswerOption(
                float(share.ravel()[at]),
                layer=at // heads,
                head=at % heads,
                picture=picture(pattern[at // heads, at % heads]),
            )
            for at in (best, *wrong)
        )
        layer, head = divmod(best, heads)
        interest = float(on.pick((0.5, 1.5)))  # of the rule, where four pictures have 1
        for rule in _rule(on, kind, step, (layer, head)):
            yield replace(rule, interest=interest)
        margin = choices[0].value - max(each.value for each in choices[1:])
        about = on.question(kind, layer=layer, head=head, interest=1.0, address=place(layer, head))
        yield replace(about, choices=choices, margin=margin)


def _rule(on: AskedSentence, kind: str, step: int, at: tuple[int, int]) -> Iterator[Question]:
    """Question what a head goes by whose picture shows one rule: each word attends to the one
    before it, or to the one after it, much more than to itself or than all words to one."""
    pattern, text = on.attention.pattern, ~on.stream.special
    shares = [
        float(_share_at(pattern, on.stream.special, on.attention.reachable, each)[at])
        for each in (step, -step, 0)
    ]
    same = pattern[at][text].astype(np.float64).mean(axis=0).max()
    margin = shares[0] - max(*shares[1:], float(same))
    if margin < MIN_MARGIN[kind]:
        return
    choices = options("place", "meaning", "often", "likely", value=shares[0])
    slots: Slots = (("given", shares[0]),)
    about = on.question(kind, "rule", layer=at[0], head=at[1], slots=slots, address=place(*at))
    yield replace(about, choices=choices, margin=margin)


def _share_at(
    pattern: np.ndarray, special: np.ndarray, reachable: np.ndarray, step: int
) -> np.ndarray:
    """Mean weight that each head gives to the token `step` places on, (layer, head), of tokens of
    text; 0 where no two are so far apart."""
    n = pattern.shape[2]
    rows = [
        at
        for at in range(max(0, -step), n - max(0, step))
        if not special[at] and not special[at + step] and reachable[at, at + step]
    ]
    if not rows:
        return np.zeros(pattern.shape[:2])
    at = np.array(rows)
    return pattern[:, :, at, at + step].mean(axis=-1, dtype=np.float64)


def _most_at(pattern: np.ndarray, special: np.ndarray, step: int) -> np.ndarray:
    """Share of the rows of text that each head has attend most to the token `step` places on,
    (layer, head)."""
    rows = np.flatnonzero(~special)
    return (pattern[:, :, rows].argmax(axis=-1) == rows + step).mean(axis=-1)


def picture(pattern: np.ndarray) -> str:
    """A head's pattern between the first tokens, as `AnswerOption.picture`."""
    digits = np.clip(np.rint(9 * pattern[:MOST_DRAWN, :MOST_DRAWN]), 0, 9).astype(int)
    return "/".join("".join(map(str, row)) for row in digits.tolist())


# ---- a part is another ---------------------------------------------------------------------------


def scale(on: AskedSentence) -> Iterator[Question]:
    """Question on the effect of the division by the square root of d_k on the largest weight."""
    attention, capabilities = on.attention, on.context.capabilities
    is_plain = not capabilities.biased and not capabilities.bound
    if not attention.opens or not is_plain or not (attention.scale < 1).all():
        return
    form = on.pick(("out", "out", "more", *(() if on.in_pieces else ("shift",))))
    factor = {"out": 1 / attention.scale, "more": np.full_like(attention.scale, 1 / LARGER)}
    layers, heads = attention.pattern.shape[:2]
    if form == "shift":
        token = on.pick([at for at in on.content if at in on.rows()] or list(on.rows()))
        if token not in on.words:
            return
        largest = attention.pattern[:, :, token].max(axis=-1)
        free = np.argwhere((largest > 0.3) & (largest < 0.8)).tolist()  # could be more, or less
        if not free:
            return
        layer, head = on.pick(free)
        now = float(largest[layer, head])
        choices = options("same", "larger", "all", "more_than_one", value=now)
        about = on.question(SCALE, form, token=token, layer=layer, head=head, slots=(("now", now),))
        yield replace(about, choices=choices, address=place(layer, head, token))
        return
    rows = on.rows()
    now = attention.pattern[:, :, rows].max(axis=-1).mean(axis=-1, dtype=np.float64)
    after = rescaled(attention, factor[form])[:, :, rows].max(axis=-1).mean(axis=-1)
    change = np.abs(after - now)
    layer, head = map(int, np.unravel_index(change.argmax(), change.shape))
    edit = (
        WithoutScale(layer)
        if form == "out"
        else ScaledBy(round(float(LARGER / attention.scale[layer]), 6), layer)
    )
    if change.max() < MIN_MARGIN[SCALE]:
        return
    right = "larger" if form == "out" else "smaller"
    wrong = ("smaller", "same", "more_than_one") if form == "out" else ("larger", "same", "quarter")
    slots = (("before", float(now[layer, head])), ("after", float(after[layer, head])))
    about = on.question(
        SCALE, form, layer=layer, head=head, slots=slots, margin=float(change.max())
    )
    yield seen_under(
        on,
        (edit,),
        replace(about, choices=options(right, *wrong, value=float(after[layer, head]))),
    )


def rescaled(attention: Attention, factor: np.ndarray) -> np.ndarray:
    """The pattern with the scores of each layer times `factor` (layer)."""
    z = attention.scores.astype(np.float64) * factor[:, None, None, None]
    z = np.where(attention.allowed[:, None], z, -np.inf)
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


def seen_under(on: AskedSentence, edits: tuple[Edit, ...], question: Question) -> Question:
    """The question with its answer on Take out, on the heads' page where the model cannot be
    edited so."""
    at = place(question.layer, question.head, question.token) if question.layer >= 0 else ()
    if not on.honours(*map(type, edits)):
        return replace(question, address=at)
    line = to_line(edits)
    view = (("effects", "Vectors"),) if question.kind in (RESIDUAL, NORM) else ()
    return replace(question, page="edit", edits=line, address=(*at, *view, ("edits", line)))


def without_positions(on: AskedSentence) -> Iterator[Question]:
    """Question on the rest of a head of the previous token without positions, and of the order of
    the words."""
    on.context.require_edits(WithoutPositions)
    if on.context.capabilities.positions in (None, ""):
        return
    bare = on.rerun(WithoutPositions())
    makers = (_previous_without, _order_without)
    first = int(on.draw.integers(2))
    for make in (makers[first], makers[1 - first]):
        if questions := list(make(on, bare)):
            yield questions[0]
            return


def _previous_without(on: AskedSentence, bare: Recording) -> Iterator[Question]:
    sides = [
        _share_at(each, on.stream.special, on.attention.reachable, -1)
        for each in (on.attention.pattern, on.pattern_of(bare))
    ]
    layer, head = map(int, np.unravel_index((sides[0] - sides[1]).argmax(), sides[0].shape))
    before, after = (float(each[layer, head]) for each in sides)
    # A half is what one of the wrong answers says.
    if before < CLEAR or before - after < MIN_MARGIN[POSITIONS] or after > LEFT * before:
        return
    slots = (("before", before), ("after", after))
    form = "previous-causal" if on.causal else "previous"
    about = on.question(POSITIONS, form, layer=layer, head=head, slots=slots)
    choices = options("smaller", "same", "larger", "half", value=after)
    question = replace(about, choices=choices, margin=before - after, interest=before - after)
    yield seen_under(on, (WithoutPositions(),), question)


def _order_without(on: AskedSentence, bare: Recording) -> Iterator[Question]:
    for one, other in on.pairs():
        between = [at for at in on.content if one < at < other]
        apart = between if on.causal else [at for at in on.content if at not in (one, other)]
        if not apart:
            continue
        apart = [at for at in apart if {at - 1, at + 1}.isdisjoint((one, other))] or apart
        text, tokens = on.exchanged(one, other)
        moved = on.rerun(WithoutPositions(), text=text)
        if not on.reads(moved, tokens):
            continue
        token = on.pick(apart)
        now, then = (on.states(each)[token] for each in (bare, moved))
        change = float(np.linalg.norm(then - now) / np.linalg.norm(now))
        if on.causal and change < MOVED or not on.causal and change > SAME:
            continue
        right, wrong = ("mask", "same") if on.causal else ("same", "mask")
        slots: Slots = (("one", on.words[one]), ("two", on.words[other]), ("change", change))
        about = on.question(
            POSITIONS,
            "causal" if on.causal else "order",
            token=token,
            text=text,
            slots=slots,
            edits=to_line((WithoutPositions(),)),
            interest=1.0,
            page="positions",
            address=(("ask", "Order"), ("token", str(token))),
        )
        yield replace(about, choices=options(right, wrong, "near", "exchanged", value=change))
        return


def alike(states: np.ndarray, special: np.ndarray) -> float:
    """The mean cosine of two vectors of the text, of all pairs of (token, d_model)."""
    text = states[~special]
    unit = text / np.maximum(np.linalg.norm(text, axis=1, keepdims=True), 1e-12)
    n = len(unit)
    return float(((unit @ unit.T).sum() - n) / (n * (n - 1)))


def without_residual(on: AskedSentence) -> Iterator[Question]:
    """Question whether words' vectors are more alike where nothing is added to what a word had."""
    on.context.require_edits(WithoutResidual)
    states = on.states(on.rerun(WithoutResidual()))
    before = alike(on.states(on.context.recording), on.stream.special)
    after = alike(states, on.stream.special)
    if not np.isfinite(after) or after - before < MIN_MARGIN[RESIDUAL]:
        return
    about = on.question(
        RESIDUAL, slots=(("before", before), ("after", after)), margin=after - before, interest=1.0
    )
    choices = options("more", "less", "same", "later", value=after)
    yield seen_under(on, (WithoutResidual(),), replace(about, choices=choices))


def without_norm(on: AskedSentence) -> Iterator[Question]:
    """Question whether vectors grow where no norm sets their length back."""
    on.context.require_edits(WithoutNorm)
    bare = on.rerun(WithoutNorm()).stream(on.stream.name)
    before, after = interventions.growth(on.stream), interventions.growth(bare)
    if not np.isfinite(after) or after < max(GROWN, MIN_MARGIN[NORM] * before):
        return
    steps = np.diff(interventions.lengths_by_layer(bare))
    most = int(steps.argmax())
    if steps[most] < FAR_MORE * abs(steps[0]):
        return
    slots: Slots = (
        *(("norm", on.context.norm), ("now", interventions.factor_text(after))),
        *(("first", _length(steps[0])), ("most", _length(steps[most])), ("number", str(most))),
    )
    about = on.question(NORM, slots=slots, margin=after / before, interest=1.0)
    choices = options("longer", "same", "shrinks", "steps", value=after)
    yield seen_under(on, (WithoutNorm(),), replace(about, choices=choices))


def _length(value: float) -> Written:
    return Written(float(value), f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}")


def without_head(on: AskedSentence) -> Iterator[Question]:
    """Question for the head whose weights can change where another one is taken out, one of a later
    layer, beside heads of the same layer and of earlier ones; or for all such heads."""
    on.context.require_edits(ZeroHead)
    pattern = on.attention.pattern
    layers, heads = pattern.shape[:2]
    if layers < 2 or heads < 2:
        return
    layer, head = int(on.draw.integers(layers - 1)), int(on.draw.integers(heads))
    edit = ZeroHead(layer, head, on.attention.name)
    change = np.abs(on.pattern_of(on.rerun(edit)) - pattern).max(axis=(2, 3)).astype(np.float64)
    apart = [at for at in np.ndindex(layer + 1, heads) if at != (layer, head)]
    form = on.pick(("", "whose"))
    later = [at for at in np.ndindex(layers, heads) if at[0] > layer]
    right_at = max(later, key=change.__getitem__)
    moved = float(change[right_at])
    if moved < MIN_MARGIN[HEADS] or any(change[at] > 0 for at in apart):
        return
    about = on.question(HEADS, form, layer=layer, head=head, interest=1.0)
    if form == "whose":
        choices = options("later", "mixed", "beside", "none", value=moved)
        about = replace(about, slots=(("moved", moved), ("of", OF_SIDE.get(on.attention.name, ""))))
        yield seen_under(on, (edit,), replace(about, choices=choices))
        return
    # Heads beside it, and of earlier layers that of its own number first.
    beside_it = [at for at in apart if at[0] == layer]
    earlier = sorted((at for at in apart if at[0] < layer), key=lambda at: at[1] != head)
    rest = [*earlier[1:], *beside_it]
    wrong = [on.pick(beside_it), *earlier[:1], *(rest[at] for at in on.draw.permutation(len(rest)))]
    wrong = list(dict.fromkeys(wrong))[: MOST_ANSWERS - 1]
    choices = tuple(
        AnswerOption(float(change[at]), layer=at[0], head=at[1]) for at in (right_at, *wrong)
    )
    if len(choices) == MOST_ANSWERS:
        yield seen_under(on, (edit,), replace(about, margin=moved, choices=choices))


# ---- a word is another, or stands elsewhere ------------------------------------------------------


def changed_word(on: AskedSentence) -> Iterator[Question]:
    """Question for the word that gets most of a row after one word was changed, such as "tired" to
    "wide"."""
    for at, old in on.words.items():
        if old not in opposites():
            continue
        text = on.retyped((at, opposites()[old]))
        after = on.rerun(text=text)
        tokens = list(on.stream.tokens)
        tokens[at] = opposites()[old]
        if not on.reads(after, tokens):
            continue
        names = {**on.words, at: opposites()[old]}
        then = on.attention_of(after)
        for layer, head in np.ndindex(then.pattern.shape[:2]):
            for row in on.content:
                yield from _row_then(on, (layer, head, row), then, names, (old, at, text))


def _row_then(
    on: AskedSentence,
    cell: tuple[int, int, int],
    then: Attention,
    names: dict[int, str],
    change: tuple[str, int, str],
) -> Iterator[Question]:
    """The question which word gets most from a pronoun of a head after another word was changed."""
    layer, head, row = cell
    old, at, text = change
    before, after = (
        each.pattern[layer, head, row].astype(np.float64) for each in (on.attention, then)
    )
    best, was = int(after.argmax()), int(before.argmax())
    lead = after[best] - np.delete(after, best).max()
    if {row, at} & {best, was} or {best, was} - names.keys() or lead < MIN_MARGIN[CHANGED]:
        return
    row_class, key_class = word_classes.classes((names[row], names[best]))
    far = key_class == word_classes.CONTENT and abs(best - row) > 1  # no neighbour
    if row_class != word_classes.PRONOUN or not far or best == was and after[best] < CLEAR:
        return
    seen = on.attention.allowed[layer, row]
    keys = [each for each in names if each != row and seen[each]]
    keys.sort(key=lambda each: -after[each])
    chosen = keys[:MOST_ANSWERS]
    if was not in chosen:  # who expects no change takes it
        chosen[-1] = was
    ranked = [AnswerOption(float(after[each]), names[each], each) for each in chosen]
    slots: Slots = (
        *(("old", old), ("new", names[at])),
        *(("was", on.words[was]), ("before", float(before[was])), ("left", float(after[was]))),
    )
    form = "masked" if on.causal and at > row else "stays" if best == was else "moves"
    about = on.question(CHANGED, form, token=row, layer=layer, head=head, text=text, slots=slots)
    address = place(layer, head, row, other_text=text)
    about = replace(about, page="compare", address=address, interest=1 + float(lead))
    if form != "stays":
        yield from most_question(ranked, about)
        return
    others = [each for each in ranked if each.token not in (was, at)]
    if others and _are_kept(on.attention, then, (layer, head, row, was)):
        meaning = replace(others[0], value=0.0, key="meaning")
        right, *wrong = options("stays", "new", "none", value=float(after[was]))
        yield replace(about, choices=(right, wrong[0], meaning, wrong[1]), margin=float(lead))


def _are_kept(before: Attention, after: Attention, at: tuple[int, int, int, int]) -> bool:
    """True where the query and the key of a weight, at layer, head, row and column, point nearly
    where they did."""
    layer, head, row, column = at
    if not before.opens or not after.opens:
        return False
    kept = []
    for one, other, token in ((before.q, after.q, row), (before.k, after.k, column)):
        a, b = (np.asarray(each[layer, head, token], np.float64) for each in (one, other))
        kept.append(float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))))
    return min(kept) > KEPT


def swapped_words(on: AskedSentence) -> Iterator[Question]:
    """Question whether a weight stays at a place or goes with a word that is moved."""
    questions: dict[str, Question] = {}
    for one, other in on.pairs():
        text, tokens = on.exchanged(one, other)
        after = on.rerun(text=text)
        if not on.reads(after, tokens):
            continue
        best: dict[str, Question] = {}
        for weighted, free in ((one, other), (other, one)):
            for question in _weights_after(on, weighted, free, text, on.pattern_of(after)):
                if question.margin > getattr(best.get(question.form), "margin", 0.0):
                    best[question.form] = question
        questions = best | questions  # an earlier pair suits better
    if questions:
        yield questions[on.pick(sorted(questions))]


def _weights_after(
    on: AskedSentence, weighted: int, free: int, text: str, then: np.ndarray
) -> Iterator[Question]:
    """Questions on weights that a word `weighted` gets before it is exchanged with a word `free`.
    then: the pattern after it."""
    now = on.attention.pattern
    rows = [at for at in on.words if at not in (weighted, free)]
    if on.causal:
        rows = [at for at in rows if at > max(weighted, free)]
    for row in rows:
        for layer, head in np.argwhere(now[:, :, row, weighted] >= CLEAR).tolist():
            cell = layer, head, row
            stays, goes = (float(then[(*cell, at)]) for at in (weighted, free))
            margin = abs(stays - goes)
            if margin < MIN_MARGIN[SWAPPED] or max(stays, goes) < CLEAR:
                continue
            right, wrong = ("place", "word") if stays > goes else ("word", "place")
            if right == "word" and abs(row - weighted) == 1:
                continue  # as one would say of a place
            about = on.question(
                SWAPPED,
                right,
                **{"token": row, "key": weighted, "layer": layer, "head": head, "text": text},
                slots=(
                    *(("third", on.words[free]), ("before", float(now[(*cell, weighted)]))),
                    *(("stays", stays), ("goes", goes)),
                ),
            )
            choices = options(right, wrong, "both", "special", value=max(stays, goes))
            about = replace(about, page="compare", address=place(*cell, other_text=text))
            yield replace(about, choices=choices, margin=margin)


def longer_or_shorter(on: AskedSentence) -> Iterator[Question]:
    """Question whether the attention of a word changes where the text has a word more behind it, or
    a word less."""
    makers = (added_word, last_word)
    first = int(on.draw.integers(2))
    for make in (makers[first], makers[1 - first]):
        if questions := list(make(on)):
            yield questions[0]
            return


def last_word(on: AskedSentence) -> Iterator[Question]:
    """Question whether the last word's absence changes the attention of one before it."""
    last = max(on.words)
    rows = [at for at in on.content if at in on.rows() and min(on.words) < at < last - 1]
    if len(on.stream.tokens[last + 1 :]) > 2 or not rows:
        return
    text = LOOSE.sub("", on.retyped((last, "")))
    tokens = list(on.stream.tokens)
    del tokens[last]
    after = on.rerun(text=text)
    if not on.reads(after, tokens):
        return
    token = on.pick(rows)
    now = on.attention.pattern[:, :, token, :last].astype(np.float64)
    change = float(np.abs(on.pattern_of(after)[:, :, token, :last] - now).max())
    if on.causal and change > SAME or not on.causal and change < SEEN:
        return
    form, *keys = (
        ("less-causal", "nothing", "share", "later_layers", "gone")
        if on.causal
        else ("less-both", "all", "masked", "gone", "position")
    )
    slots: Slots = (("last", on.words[last]), ("change", change))
    about = on.question(ADDED, form, token=token, text=text, slots=slots, interest=1.0)
    at = (("token", str(token)), ("other_text", text))
    yield replace(about, choices=options(*keys, value=change), page="compare", address=at)


def added_word(on: AskedSentence) -> Iterator[Question]:
    """Question whether a word that is written behind the text changes the attention of one before
    it."""
    recording = on.context.recording
    if len(recording.text) < 2 or len(on.stream.tokens) + 4 > (
        recording.model.n_positions or 1 << 30
    ):
        return
    in_text = recording.text.casefold()
    words = ADDED_WORDS[word_classes.language_of(tuple(recording.text.split()))]
    word = on.pick([each for each in words if each not in in_text] or words)
    text = f"{recording.text.rstrip()} {word}"
    after = on.rerun(text=text)
    ends = int((~on.stream.special).nonzero()[0][-1]) + 1
    if after.stream(on.stream.name).tokens[:ends] != on.stream.tokens[:ends]:
        return
    token = on.pick([at for at in on.content if at in on.rows()] or [-1])
    if token < 0:
        return
    now = on.attention.pattern[:, :, token, :ends].astype(np.float64)
    change = float(np.abs(on.pattern_of(after)[:, :, token, :ends] - now).max())
    if on.causal and change > SAME or not on.causal and change < SEEN:
        return
    form = "causal" if on.causal else "both"
    choices = (
        options("nothing", "share", "later_layers", "next", value=change)
        if on.causal
        else options("all", "masked", "only_last", "position", value=change)
    )
    slots: Slots = (("added", word), ("change", change))
    about = on.question(ADDED, form, token=token, text=text, slots=slots, interest=1.0)
    at = (("token", str(token)), ("other_text", text))
    yield replace(about, choices=choices, page="compare", address=at)


# ---- what follows --------------------------------------------------------------------------------


def row_sum(on: AskedSentence) -> Iterator[Question]:
    """That the weights of a row sum to 1: what is left for the others, why, and what does not."""
    pattern = on.attention.pattern.astype(np.float64)
    cells = [
        (layer, head, row, key)
        for row in on.content
        if row in on.rows()
        for key in on.content
        if key != row
        for layer, head in np.argwhere(
            (pattern[:, :, row, key] > 0.25) & (pattern[:, :, row, key] < 0.45)
        ).tolist()
    ]
    form = on.pick(("rest", "untrained", "which"))
    if not cells or on.in_pieces:
        form, cells = "untrained", [(0, 0, on.pick(on.content), on.pick(on.content))]
    layer, head, row, key = on.pick(cells)
    address = place(layer, head, row)
    about = on.question(SUM, form, token=row, layer=layer, head=head, address=address, interest=1.0)
    if form == "untrained":
        yield replace(about, choices=options("softmax", "training", "any", "none", value=1.0))
        return
    about = replace(about, words=(on.words[row], on.words[key]), key=key)
    weight = float(pattern[layer, head, row, key])
    if form == "rest":
        slots: Slots = (("given", weight), ("rest", 1 - weight))
        choices = options("rest", "untold", "at_most", "each", value=1 - weight)
        yield replace(about, choices=choices, slots=slots)
        return
    received = float(pattern[layer, head, :, key].sum())
    heads = float(pattern[layer, :, row, key].sum())
    if min(abs(received - 1), abs(heads - 1)) < 0.1:
        return
    slots = (("received", received), ("over_heads", heads))
    choices = options("row", "column", "over_heads", "scores", value=1.0)
    yield replace(about, choices=choices, slots=slots)


def convex(on: AskedSentence) -> Iterator[Question]:
    """Question on the possible weighted means of value vectors."""
    attention = on.attention
    if not attention.opens:
        return
    rows = [at for at in on.content if at in on.rows()]
    if len(rows) < 2:
        return
    token, key = on.two(rows)
    token, key = max(token, key), min(token, key)  # a decoder's word attends to earlier ones
    layer, head = on.pick(list(np.ndindex(attention.pattern.shape[:2])))
    value = np.asarray(attention.v[layer, head], np.float64)
    allowed = attention.allowed[layer, token]
    length = float(np.linalg.norm(attention.pattern[layer, head, token] @ value))
    longest = float(np.linalg.norm(value[allowed], axis=1).max())
    form = on.pick(("never", "hard"))
    lengths = ("length", length), ("longest", longest)
    slots: Slots = tuple((name, Written(each, fixed(each))) for name, each in lengths)
    about = on.question(CONVEX, form, token=token, key=key, layer=layer, head=head, slots=slots)
    about = replace(about, interest=1.0, page="weight", address=place(layer, head, token))
    right, *wrong = {
        "never": ("longer", "shorter", "value", "other_way"),
        "hard": ("value", "key", "vector", "mean"),
    }[form]
    yield replace(about, choices=options(right, *wrong, value=length))


def mask(on: AskedSentence) -> Iterator[Question]:
    """Questions on the cells that a causal mask forbids, and on who may attend to whom."""
    peak = on.attention.pattern.max(axis=(0, 1))
    form = on.pick(("forbid", "who", "who"))  # more often who, which names a word in its question
    words = sorted(on.content)
    if form == "forbid" and not on.in_pieces:
        back = [(b, a) for a, b in combinations(words, 2) if peak[b, a] >= SEEN]
        ahead = [(a, b) for a, b in combinations(words, 2) if on.causal or peak[a, b] >= SEEN]
        if len(back) >= MOST_ANSWERS - 1 and ahead:
            right = on.pick(ahead)
            itself = [(at, at) for at in words if peak[at, at] >= SEEN]
            wrong = [back[int(at)] for at in on.draw.permutation(len(back))]
            wrong = [*([on.pick(itself)] if itself else []), *wrong][: MOST_ANSWERS - 1]
            choices = tuple(
                AnswerOption(
                    float(peak[pair]), word=on.words[pair[0]], other=on.words[pair[1]], key="of_two"
                )
                for pair in (right, *wrong)
            )
            about = on.question(
                MASK, "forbid" if on.causal else "would", token=right[0], key=right[1]
            )
            about = replace(about, choices=choices, interest=1.0)
            at = (("token", str(right[0])),)
            if on.causal:
                yield replace(about, address=at)
                return
            yield replace(
                seen_under(on, (WithMask(),), replace(about, layer=0, head=0)), layer=-1, head=-1
            )
            return
    inner = words[2:-1] or words[1:-1] or words
    token = on.pick(inner)
    form = "causal" if on.causal else "all"
    keys = (
        ("before", "all", "strictly", "near") if on.causal else ("all", "before", "near", "others")
    )
    about = on.question(MASK, form, token=token, interest=1.0, address=(("token", str(token)),))
    yield replace(about, choices=options(*keys))


def feed_forward(on: AskedSentence) -> Iterator[Question]:
    """Question on what a network that reads one token cannot do."""
    layers = on.attention.pattern.shape[0]
    layer = int(on.draw.integers(layers))
    form = on.pick(("cannot", "same", "alone"))
    token, key = on.two(on.content)
    if on.causal:  # what comes later changes nothing by attention, either
        key, token = sorted((token, key))
    about = on.question(FFN, form, token=token, key=key, layer=layer, interest=1.0)
    about = replace(
        about, page="feedforward", address=(("layer", str(layer)), ("token", str(token)))
    )
    keys = {
        "cannot": ("bring", "direction", "differ", "answer"),
        "same": ("nothing", "a_little", "position", "mixes"),
        "alone": ("nothing", "first", "through_ffn", "position"),
    }[form]
    about = replace(about, choices=options(*keys))
    heads = tuple(
        ZeroHead(layer, head, on.attention.name)
        for layer, head in np.ndindex(on.attention.pattern.shape[:2])
    )
    yield seen_under(on, heads, about) if form == "alone" and on.honours(ZeroHead) else about


# What is about the model, and what about weights of words.
LAWS: tuple[Callable[[AskedSentence], Iterator[Question]], ...] = (
    *(beside, scale, without_positions, without_residual, without_norm, without_head),
    *(longer_or_shorter, row_sum, mask, feed_forward),
)
OF_WORDS: tuple[Callable[[AskedSentence], Iterator[Question]], ...] = (
    *(masked_word, changed_word, swapped_words, convex),
)
