"""The panels on a text that a model continues: its next token, the attention of its newest one, the
probabilities of the generated ones, and the KV cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import truediv
from typing import Annotated, Any

import numpy as np

from explorer.analysis import opening, predictions
from explorer.analysis.answers import (
    ReadWord,
    SpokenWord,
    WithoutHead,
    on_words,
    without_head,
    words_of,
)
from explorer.analysis.measure import Untestable, causal_attention
from explorer.analysis.predictions import Distribution, Draw, Word
from explorer.figures.formatting import (
    Written,
    enough_digits,
    hundredths,
    plural,
    power,
    probability,
    softmax_texts,
    tenths,
    whole_percent,
)
from explorer.figures.kinds import BarRow, Bars, Box, Facts, Links, Loops, Matrix, TokenRow
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice, Options
from explorer.panels.predictions import entropy_slots, whole_words, with_blanks
from explorer.panels.selection import HeadOrEvery, LayerOrEvery, model_name, place_if_any
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models import model_names
from models.contract.cancellation import TimeLimit
from models.contract.edits import Edit, WithoutMask, ZeroHead
from models.contract.recording import Recording
from models.contract.results import Sampling, WholeWord, WrittenToken
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens import chat
from models.tokens.chat import message_starts

CONCEPT = "generation"
MOST_OF_ANSWER = 64  # tokens
AHEAD = 12  # tokens generated ahead, to show how the text would continue
N_KEYS = 5  # tokens that are listed by their weights
# Stops of the sliders; all tokens are at the same end of top-k and top-p.
TEMPERATURES = {0.0: "0 (greedy)"} | {tenth / 10: f"{tenth / 10:g}" for tenth in range(1, 21)}
TOP_KS = {k: str(k) for k in (1, 2, 3, 5, 10, 20, 50, 100, 200, 500)} | {0: "all"}
TOP_PS = {p: f"{p:g}" for p in (*(tenth / 10 for tenth in range(1, 10)), 0.95, 0.99)} | {1.0: "all"}
SEEDS = range(100_000)
SETTINGS = sentences(CONCEPT, "settings")
ANOTHER_DRAW = ("beam", "step")  # a drawn translation's, which end with it
Continued = Annotated[
    str, Choice(name="said", of="text", help="ids of the generated tokens, with dots between them")
]


@dataclass(frozen=True, eq=False)
class Continuation:
    """A prompt's recording and its continuation, the labels of the generated tokens beside it."""

    recording: Recording
    text: drafts.GeneratedText
    labels: tuple[str, ...]

    @property
    def tokens(self) -> tuple[str, ...]:
        """Labels of the prompt and of the generated tokens."""
        return (*self.recording.streams[0].tokens, *self.labels)

    @property
    def special(self) -> np.ndarray:
        """True for special tokens (token); all False where every token is one."""
        end = self.text.ended
        generated = [False] * (len(self.labels) - end) + [True] * end
        special = np.array([*self.recording.streams[0].special, *generated], dtype=bool)
        return special & ~special.all()

    @property
    def roles(self) -> tuple[str, ...]:
        """The role whose message each token of a chat is in, () for a text that is no chat."""
        roles = self.recording.streams[0].roles
        return (*roles, *["assistant"] * len(self.labels)) if roles else ()

    @property
    def is_over(self) -> bool:
        """True where no further token can be generated."""
        return self.text.ended or self.text.full


def _continuation(run: Run, ids: str) -> Continuation:
    """A run's text with the tokens `ids` after it, "12.7" for two. Raises ValueError for a model
    that does not continue texts, edits, ids that it does not have, and a text without room."""
    recording, words = run.recording(), sentences(CONCEPT, "shared")
    if recording.model.kind != "decoder":
        raise ValueError(
            words("not_a_decoder", model=model_name(recording), models=model_names.text_writers())
        )
    if run.edits:
        raise ValueError(words("no_edits"))
    n = recording.model.n_vocab
    numbers = [int(each) if each.isdecimal() else n for each in ids.split(".") if ids]
    if max(numbers, default=0) >= n:
        raise ValueError(words("ids", ids=ids, n=f"{n:,}"))
    try:
        text = drafts.generated_text(run.model, run.text, tuple(numbers))
    except ValueError as reason:
        raise ValueError(words("no_room", why=reason)) from None
    labels = run.loaded.labels([each.id for each in text.tokens])
    return Continuation(recording, text, tuple(labels))


def with_tokens(model: str, text: str, ids: Sequence[int], n_prompt: int) -> str:
    """A text with what was generated after it, of a chat as the assistant's message. ids: of the
    text, `n_prompt` of them, and of the generated tokens."""
    written = loaded(model).tokenizer.text
    if chat.n_messages(loaded(model).record(text)):
        return chat.with_answer(text, written(ids[n_prompt:]))
    whole, prompt = written(ids), written(ids[:n_prompt])
    return text + whole[len(prompt) :] if whole.startswith(prompt) else whole


# ---- the next token ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NextToken:
    """The distribution of the next token: the listed tokens with their labels, those that begin
    a `whole` word, and the token that is drawn with the seed, None where the text is over."""

    on: Continuation
    of: Distribution
    seed: int
    drawn: Draw | None
    listed: tuple[Word, ...]
    labels: dict[int, str]
    whole: Mapping[int, WholeWord]

    @property
    def settings(self) -> str:
        """The sampling settings, "" for none."""
        return settings_text(self.of.sampling)

    def label(self, id: int) -> str:
        """A token; of one that begins a word of several the token and the word."""
        if id in self.whole:
            return predictions.first_piece(self.whole[id], self.unmarked)
        return self.unmarked(self.labels[id])

    def unmarked(self, word: str) -> str:
        """A token or a word as it is written after the text."""
        return predictions.without_mark(word, after_special=bool(self.on.special[-1]))


def _setting(name: str, options: Options, label: str, accepts: Callable[[Any], bool]) -> Choice:
    """The choice of a sampling setting, whose sentence on it is called `name`."""
    help = SETTINGS(name)
    return Choice(options, label, accepts=accepts, clears=ANOTHER_DRAW, help=help)


@spec.predicts
@spec.panel
def next_token(
    run: Run,
    continuation: Continued = "",
    temperature: Annotated[
        float, _setting("temperature", TEMPERATURES, "Temperature", lambda t: t >= 0)
    ] = 0.5,
    top_k: Annotated[int, _setting("top_k", TOP_KS, "Top-k", lambda k: k >= 0)] = 0,
    top_p: Annotated[float, _setting("top_p", TOP_PS, "Top-p", lambda p: 0 < p <= 1)] = 1.0,
    seed: Annotated[int, _setting("seed", SEEDS, "Seed", lambda seed: seed >= 0)] = 0,
) -> Panel:
    """The text so far with the probabilities of its generated tokens, and the most likely next
    tokens, without and with sampling settings.

    continuation: ids of the generated tokens with dots between them. temperature: 0 for the
    likeliest token, always; at 1 a small model writes words that are none. top_k: 0 for all tokens.
    Raises ValueError for what is not there, a text without room and a model that does not
    continue texts.
    """
    words = sentences(CONCEPT, "next_token")
    prediction = _next_token(run, continuation, Sampling(temperature, top_k, top_p), seed)
    on = prediction.on
    n = plural(len(on.tokens), "token")
    return Panel(
        title=words("title"),
        finding=_finding(run, prediction),
        figures=(_text(on), _bars(prediction)),
        table=predictions.columns(prediction.of, loaded(on.recording).vocabulary()),
        details=_details(prediction),
        caption=(words("caption", n=n, settings=prediction.settings or words("one")),),
        file=f"after-{len(on.tokens)}-tokens",
        numbers=_token_probability(prediction),
        formulas=("sampled",) if _is_softmax(prediction) else (),
    )


def _is_softmax(prediction: NextToken) -> bool:
    """True where the next token of the text is drawn of all tokens by a temperature alone."""
    sampling = prediction.of.sampling
    return not prediction.on.labels and sampling == Sampling(sampling.temperature)


def settings_text(sampling: Sampling) -> str:
    """Sampling settings in a few words, "" for none."""
    words = sentences(CONCEPT, "next_token")
    if sampling.temperature == 0:
        return words("greedy")
    plain = Sampling()
    names = ("temperature", "top_k", "top_p")
    values = {name: getattr(sampling, name) for name in names}
    changed = {name: each for name, each in values.items() if each != getattr(plain, name)}
    return ", ".join(words(name, value=each) for name, each in changed.items())


def _next_token(run: Run, ids: str, sampling: Sampling, seed: int) -> NextToken:
    on = _continuation(run, ids)
    of = predictions.distribution(on.text.logits, sampling)
    drawn = None if on.is_over else predictions.draw(of, seed, len(on.text.ids))
    listed = predictions.top_words(of, [drawn.id] if drawn else ())
    labels = run.loaded.labels([each.id for each in listed])
    names = {each.id: label for each, label in zip(listed, labels)}
    return NextToken(on, of, seed, drawn, listed, names, on.text.whole)


def _token_probability(prediction: NextToken) -> dict[str, Written]:
    """The probability of the likeliest next token, nothing where none is asked for."""
    is_asked = not (prediction.on.text.ended or prediction.on.text.full)
    first = prediction.listed[0] if is_asked else None
    return {"token_probability": Written.by(tenths, first.own)} if first else {}


def _finding(run: Run, prediction: NextToken) -> str:
    """Sentences on the newest token, how the text continues, and what comes next."""
    words, on = sentences(CONCEPT, "next_token"), prediction.on
    lines = []
    if on.text.ended:
        n = plural(len(on.labels), "generated token")
        return words("finding_ended", token=on.labels[-1], n=n)
    if on.labels:
        newest = on.text.tokens[-1]
        slots = {"token": on.labels[-1], "p": tenths(newest.own), "rank": f"{newest.rank + 1:,}"}
        lines.append(words("finding_newest", **slots))
    elif not on.is_over:
        ahead = _ahead(run, prediction)
        lines.append(words("finding_ahead" if ahead else "finding_nothing", text=ahead))
    if on.text.full:
        return " ".join((*lines, words("finding_full", n=plural(len(on.tokens), "token"))))
    first = prediction.listed[0]
    name = "finding_ends" if run.loaded.is_end(first.id) else "finding_next"
    lines.append(words(name, answer=prediction.label(first.id), p=tenths(first.own)))
    if whole := predictions.as_whole(prediction.whole.get(first.id), prediction.unmarked):
        lines.append(whole)
    if on.tokens[-1] == "␣" and not on.labels:
        lines.append(words("space"))
    return " ".join(lines)


def _ahead(run: Run, prediction: NextToken) -> str:
    """The continuation of the text under these settings, its first tokens."""
    sampling, prompt = prediction.of.sampling, prediction.on.text.ids

    def drawn(logits: np.ndarray, place: int) -> int:
        return predictions.draw(
            predictions.distribution(logits, sampling), prediction.seed, place
        ).id

    ids = drafts.continuation(run.model, run.text, AHEAD, (sampling, prediction.seed), drawn)
    before, whole = (run.loaded.tokenizer.text(each) for each in (prompt, (*prompt, *ids)))
    new = " ".join(whole.removeprefix(before).split())
    return f"{new} …" if new and len(ids) == AHEAD else new


def _text(on: Continuation) -> TokenRow:
    """The text, the generated tokens with their probabilities."""
    n = on.text.n_prompt
    return TokenRow(
        tokens=on.tokens,
        selected=len(on.tokens) - 1,
        texts=("",) * n + tuple(map(_with_rank, on.text.tokens)),
        marked=tuple(range(n, len(on.tokens))),
        breaks=message_starts(on.tokens, on.roles),
        special=tuple(on.special.tolist()),
    )


def _with_rank(token: WrittenToken) -> str:
    """The probability of a generated token, and its rank where another was more likely."""
    return tenths(token.own) + (f" #{token.rank + 1:,}" if token.rank else "")


def _bars(prediction: NextToken) -> Bars:
    """The tokens by their probability, without and with the settings, and below them all others."""
    words, ids = sentences(CONCEPT, "next_token"), [each.id for each in prediction.on.text.tokens]
    settings = prediction.settings
    rows = []
    for each in prediction.listed:
        is_next = prediction.drawn is not None and each.id == prediction.drawn.id
        label, p = prediction.label(each.id), tenths(each.own)
        if each.rank >= predictions.MOST_ROWS:
            p = words("p_rank", p=p, rank=f"{each.rank + 1:,}")
        drawn = tenths(each.drawn) if each.is_candidate else words("cut")
        rows.append(
            BarRow(
                words("drawn", word=label) if is_next else label,
                (each.own, each.drawn) if settings else (each.own,),
                (p, drawn) if settings else (p,),
                selected=is_next,
                key=".".join(map(str, (*ids, each.id))),
            )
        )
    rest = predictions.remaining_words(prediction.of, prediction.listed)
    slots = {"p": tenths(rest.own), "drawn": tenths(rest.drawn)}
    slots["tokens"] = plural(rest.n, "other token")
    others = words("others_with" if settings else "others", settings=settings, **slots)
    return Bars(
        title=words("bars"),
        note=with_blanks(others if rest.n else "", [row.label for row in rows]),
        select=("said",) if prediction.drawn else (),
        columns=(words("own"), settings) if settings else (words("probability"),),
        rows=tuple(rows),
        shared=True,
    )


def _details(prediction: NextToken) -> tuple[str, ...]:
    """Sentences on the softmax, the settings, the draw, and the entropy."""
    words, of, drawn = sentences(CONCEPT, "next_token"), prediction.of, prediction.drawn
    lines = [*_arithmetic(prediction, drawn.id if drawn else prediction.listed[0].id)]
    if drawn and drawn.number is not None:
        slots: dict[str, Any] = {"seed": prediction.seed, "place": len(prediction.on.tokens)}
        for name in ("number", "start", "end"):
            slots[name] = f"{getattr(drawn, name):.4f}"
        lines.append(words("random", word=prediction.labels[drawn.id], **slots))
    lines += [
        words("entropy", **entropy_slots(of)),
        *whole_words(of, prediction.whole, prediction.unmarked),
    ]
    return (*lines, *words.lines("details"))


def _arithmetic(prediction: NextToken, id: int) -> list[str]:
    """Sentences on how the probability of a token is made."""
    words, of = sentences(CONCEPT, "next_token"), prediction.of
    n, word = f"{len(of.order):,}", prediction.labels[id]
    if of.sampling.temperature == 0:
        return [words("greedy_made")]
    steps = predictions.probability_steps(of, id)
    p = probability(steps.tempered)
    z, part, total = softmax_texts(steps.divided, steps.log_total, p)
    lines = [
        words("made", n=n, t=of.sampling.temperature),
        words("softmax", word=word, z=z, part=part, total=total, p=p),
    ]
    if steps.n_candidates < len(of.order) and steps.drawn:
        p = probability(steps.drawn)
        part, total = enough_digits(
            p, truediv, steps.tempered, steps.candidate_sum, least=4, write=power
        )
        slots = {"n_kept": f"{steps.n_candidates:,}", "n": n, "total": total, "part": part, "p": p}
        lines.append(words("truncation", word=word, **slots))
    return lines


# ---- the answer ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AnswerWord:
    """A word of an answer that is told of, and what one head read to say it.

    ids: all tokens before it; token: its first one. asked, answered: the words of the question, and
    of the answer as far as this word, with this word. read: what the head read."""

    run: Run
    ids: tuple[int, ...]
    token: int
    asked: tuple[SpokenWord, ...]
    answered: tuple[SpokenWord, ...]
    read: ReadWord

    def recording(self, edits: tuple[Edit, ...] = ()) -> Recording:
        """The recording of what was read before the word, under edits."""
        return self.run.loaded.record(self.ids, edits)

    @property
    def word(self) -> str:
        """The word that is told of."""
        return self.answered[-1].label

    @property
    def slots(self) -> dict[str, Any]:
        """The head and the words, for the slots of sentences."""
        read = self.asked[self.read.word].label
        at = {"layer": self.read.layer, "head": self.read.head}
        return {**at, "word": self.word, "read": read}


def written_ids(
    run: Run,
    continuation: str = "",
    told: Callable[[Sequence[int]], None] | None = None,
) -> tuple[int, ...]:
    """The ids of an answer: those of `continuation`, else of the one that takes the likeliest token
    each time, in a chat to its end. told: is given those so far, while they are written."""
    if continuation:
        return tuple(map(int, continuation.split(".")))
    limit = MOST_OF_ANSWER if chat.n_messages(run.recording()) else AHEAD
    return drafts.continuation(
        run.model,
        run.text,
        limit,
        (Sampling(0), 0),
        lambda logits, place: int(logits.argmax()),
        told,
    )


def answer_text(run: Run, ids: Sequence[int]) -> str:
    """The text that the ids of an answer spell, without the sign of its end."""
    tokenizer = run.loaded.tokenizer
    return " ".join(tokenizer.text([id for id in ids if id not in tokenizer.eos_ids]).split())


def answer_word(run: Run, continuation: str = "") -> AnswerWord:
    """The word of an answer that is told of. Raises ValueError where there is none, where no head
    reads a word of the question for it, and for a text that is long."""
    on = _continuation(run, continuation)
    return run.memo(
        ("told of an answer", continuation), lambda: _answer_word(run, on, continuation)
    )


def _answer_word(run: Run, on: Continuation, continuation: str) -> AnswerWord:
    words, model = sentences(CONCEPT, "reading_head"), run.loaded
    ids, stream = written_ids(run, continuation), on.recording.streams[0]
    n, last = len(stream.tokens), len(stream.tokens) + len(ids)
    if last > opening.MAX_TOKENS:
        raise ValueError(words("long", n=last))
    tokens = (*stream.tokens, *model.labels(ids))
    typed = np.flatnonzero(~stream.special)
    if stream.roles:
        typed = np.array([at for at in typed if stream.roles[at] == "user"], int)
    if not typed.size or not ids:
        raise ValueError(words("no_word"))
    asked = words_of(tokens, int(typed[0]), int(typed[-1]) + 1)
    ended = ids[-1] in model.tokenizer.eos_ids
    answered = words_of(tokens, n, last - ended)
    at = opening.answer_word(asked, answered)
    if at is None:
        raise ValueError(words("no_word"))
    first = answered[at].start
    before, token = (*map(int, stream.ids), *ids[: first - n]), ids[first - n]
    recording = model.record(before)
    try:
        parts = model.attribute(recording, recording.streams[0].name, first - 1, token, None).parts
    except TimeLimit:
        raise
    except ValueError as why:
        raise ValueError(f"{str(why).rstrip('.')}.") from None
    rows = recording.attention[0].pattern[:, :, first - 1]
    read = opening.reading_head(parts, rows, asked)
    if read is None:
        raise ValueError(words("no_head"))
    return AnswerWord(run, before, token, tuple(asked), tuple(answered[: at + 1]), read)


@spec.predicts
@spec.panel
def reading_head(run: Run, continuation: Continued = "") -> Panel:
    """Words that one head read to say a word of the answer: the question above, the answer so far
    below, joined by the head's weights from the place where the word is predicted.

    continuation: ids of the answer, the likeliest one where "". The word is the first one of
    content that the question does not have; the head has the largest weight on a word of content of
    the question, of those that bring most to the word's logit. ValueError as `next_token`, and
    where there is no such word and no such head.
    """
    told, words = answer_word(run, continuation), sentences(CONCEPT, "reading_head")
    weights = told.read.weights.astype(np.float64)
    above, below = (on_words(weights, each) for each in (told.asked, told.answered[:-1]))
    read = told.slots["read"].casefold()
    again = sum(
        weight for each, weight in zip(told.answered, below) if each.label.casefold() == read
    )
    slots = {**told.slots, "p": whole_percent(float(above[told.read.word]))}
    lines = [words("finding", **slots)]
    if again >= 0.01:
        lines = [words("finding_again", **slots, again=whole_percent(float(again)))]
    links = np.zeros((len(told.answered), len(told.asked)))
    links[-1] = above
    texts = (*(hundredths(each) if each >= 0.005 else "" for each in below), "")
    return Panel(
        title=words("title", **told.slots),
        finding=" ".join(lines),
        figures=(
            Links(
                left=tuple(each.label for each in told.answered),
                right=tuple(each.label for each in told.asked),
                sides=(words("answer"), words("question" if _is_chat(run) else "text")),
                weights=links,
                selected=len(told.answered) - 1,
                flat=True,
                texts=texts,
                back=np.append(below, 0.0),
            ),
        ),
        table={
            "word": [each.label for each in (*told.asked, *told.answered[:-1])],
            "of": ["question"] * len(told.asked) + ["answer"] * (len(told.answered) - 1),
            "weight": [*above.tolist(), *below.tolist()],
        },
        details=words.lines("details"),
        caption=(words("caption", **told.slots),),
        file="reading-head",
        at={"layer": told.read.layer, "head": told.read.head},
    )


def _is_chat(run: Run) -> bool:
    return bool(chat.n_messages(run.recording()))


def decides(told: AnswerWord) -> bool:
    """True where the head turns the word that is told of: its first token loses much without it,
    and another one leads."""
    return _without(told).turns


def _without(told: AnswerWord) -> WithoutHead:
    """The probability left to the first token of the word that is told of, without its head."""
    model, edit = told.run.loaded, ZeroHead(told.read.layer, told.read.head)

    def measured() -> WithoutHead:
        both = (told.recording(edits) for edits in ((), (edit,)))
        plain, ablated = (
            model.logits(each, each.streams[0].name, len(told.ids) - 1) for each in both
        )
        return without_head(plain, ablated, told.token)

    return told.run.memo(("answer without head", told.ids, told.token), measured)


@spec.predicts
@spec.panel
def answer_without_head(run: Run, continuation: Continued = "") -> Panel:
    """The probability that is left of the first token of the word in `reading_head` without that
    head, and the token that leads then. ValueError as there."""
    told, words = answer_word(run, continuation), sentences(CONCEPT, "answer_without_head")
    made = _without(told)
    token, leads = run.loaded.labels([told.token, made.leads])
    token = token if token == told.word else f"{token}…"  # a word that begins with it
    p = {"before": whole_percent(made.before), "after": whole_percent(made.after)}
    most = whole_percent(made.most)
    rows = [BarRow(token, (made.after,), (words("change", **p),), True, None, outline=made.before)]
    table: dict[str, list[Any]] = {
        "token": [token],
        "probability": [made.before],
        "probability without the head": [made.after],
    }
    if made.leads != told.token:
        rows.append(BarRow(leads, (made.most,), (most,), key=None))
        for name, value in zip(table, (leads, None, made.most)):
            table[name].append(value)
    name = "stays" if made.leads == told.token else "finding"
    return Panel(
        title=words("title"),
        finding=words(name, **told.slots, token=token, **p, leads=leads, most=most),
        figures=(Bars(columns=("",), rows=tuple(rows)),),
        table=table,
        caption=(words("caption", **told.slots),),
        file="answer-without-head",
        at={"layer": told.read.layer, "head": told.read.head},
    )


# ---- the newest token ----------------------------------------------------------------------------


@spec.predicts
@spec.panel
def attention(
    run: Run, continuation: Continued = "", layer: LayerOrEvery = OPENS, head: HeadOrEvery = OPENS
) -> Panel:
    """The attention of the newest token: the token that each head attends to most, and the largest
    weights of one head, of the mean where layer or head is None.

    continuation and ValueError as for `next_token`; ValueError also for a head that is not there.
    """
    on = _continuation(run, continuation)
    words, rows = sentences(CONCEPT, "attention"), on.text.attention
    layer = place_if_any("layer", layer, rows.shape[0])
    head = place_if_any("head", head, rows.shape[1])
    is_head = layer is not None and head is not None
    weights = rows[layer, head] if is_head else rows.mean(axis=(0, 1), dtype=np.float64)
    special = on.special
    key = int(np.where(special, -1, weights).argmax())
    slots = {"layer": layer, "head": head}
    finding = words(
        "finding_words" if special.any() else "finding",
        token=on.tokens[-1],
        key=on.tokens[key],
        where=words("one" if is_head else "mean", **slots),
        place=key,
        weight=hundredths(float(weights[key])),
        special=hundredths(float(weights[special].sum())),
    )
    n_heads, n_first = rows[..., 0].size, int((rows.argmax(axis=2) == 0).sum())
    if not is_head and not special.any() and 2 * n_first > n_heads and rows.shape[2] > 1:
        finding = f"{finding} {words('sink', n=n_first, heads=n_heads)}"
    return Panel(
        title=words("title"),
        finding=finding,
        figures=(
            _grid(on, (layer or 0, head or 0) if is_head else None),
            _keys(on, weights, words("head_bars" if is_head else "mean_bars", **slots)),
        ),
        table=predictions.attention_columns(rows, on.tokens),
        details=words.lines("details"),
        caption=(words("caption", token=len(on.tokens) - 1, word=on.tokens[-1]),),
        file="newest-attention",
    )


def _grid(on: Continuation, selected: tuple[int, int] | None) -> Matrix:
    """The token that each head attends to most, special tokens aside, by its weight."""
    words, special = sentences(CONCEPT, "attention"), on.special
    rows = np.where(special, -1.0, on.text.attention)
    return Matrix(
        title=words("grid_words" if special.any() else "grid"),
        select=("layer", "head"),
        rows=tuple(map(str, range(rows.shape[0]))),
        columns=tuple(map(str, range(rows.shape[1]))),
        values=rows.max(axis=2),
        marks=((*selected, ""),) if selected else (),
        sides=(words("layer"), words("head")),
        words=tuple(on.tokens[key] for key in rows.argmax(axis=2).ravel().tolist()),
        bold=np.zeros(rows.shape[:2]),
    )


def _keys(on: Continuation, weights: np.ndarray, title: str) -> Bars:
    """The tokens with the largest weights."""
    listed = [at for at in np.argsort(-weights, kind="stable").tolist() if weights[at] > 0][:N_KEYS]
    values = [float(weights[key]) for key in listed]
    return Bars(
        title=title,
        columns=(sentences(CONCEPT, "attention")("weight"),),
        rows=tuple(
            BarRow(f"{key} {on.tokens[key]}", (value,), (hundredths(value),))
            for key, value in zip(listed, values)
        ),
        high=1.0,
    )


# ---- the whole continuation ----------------------------------------------------------------------


@spec.predicts
@spec.panel
def tokens(run: Run, continuation: Continued = "") -> Panel:
    """The probability and the rank of each generated token; arguments as for `next_token`."""
    on = _continuation(run, continuation)
    words, all_tokens = sentences(CONCEPT, "tokens"), on.text.tokens
    finding = words("nothing")
    if all_tokens:
        at = min(range(len(all_tokens)), key=lambda each: all_tokens[each].own)
        finding = words(
            "finding",
            n=plural(len(all_tokens), "generated token"),
            most_likely=sum(each.rank == 0 for each in all_tokens),
            token=on.labels[at],
            p=tenths(all_tokens[at].own),
            rank=f"{all_tokens[at].rank + 1:,}",
        )
    rows = tuple(
        BarRow(
            label,
            (each.own,),
            (words("rank", p=tenths(each.own), rank=f"{each.rank + 1:,}"),),
        )
        for label, each in zip(on.labels, all_tokens)
    )
    return Panel(
        title=words("title"),
        finding=finding,
        figures=(Bars(columns=(words("probability"),), rows=rows, high=1.0),),
        table={
            "step": range(1, len(on.labels) + 1),
            "token": list(on.labels),
            "id": [each.id for each in all_tokens],
            "probability": [each.own for each in all_tokens],
            "rank": [each.rank + 1 for each in all_tokens],
        },
        caption=(words("caption"),),
        file="generated-tokens",
        formulas=("chain",),
    )


@spec.predicts
@spec.panel
def kv_cache(run: Run, continuation: Continued = "") -> Panel:
    """The keys and values that are stored from step to step, and the tokens that they save;
    arguments as for `next_token`."""
    on = _continuation(run, continuation)
    words, model = sentences(CONCEPT, "kv_cache"), on.recording.model
    size, n_head, d_head = on.text.stored
    n, steps, n_layer = len(on.text.ids), len(on.text.tokens), len(on.text.attention)
    again = sum(range(on.text.n_prompt + 1, n + 1))
    finding = words("finding_none")
    facts = [(words("of", n=n, most=model.n_positions), words("tokens"))]
    if size:
        count = n_layer * 2 * n_head * n * d_head
        facts.append((f"{n_layer} × 2 × {n_head} × {n} × {d_head} = {count:,}", words("numbers")))
        facts.append((f"{size:,}", words("bytes")))
        finding = words("finding_start", n=plural(n, "token"), again=n + 1)
    if size and steps:
        finding = words("finding_steps", n=n)
    if size and steps > 1:
        finding = f"{finding} {words('finding_sum', steps=steps, again=f'{again:,}')}"
    details = words.lines("details")
    if n_head and n_head < model.n_head:
        keys = plural(n_head, "head of keys", "heads of keys")
        details = (*details, words("shared", heads=model.n_head, keys=keys))
    return Panel(
        title=words("title"),
        finding=finding,
        figures=(Facts(facts=tuple(facts)),),
        table={
            "quantity": list(words.lines("quantities")),
            "value": [n, model.n_positions, n_layer, n_head, d_head, size],
        },
        details=details,
        file="kv-cache",
        formulas=("cache",),
    )


@spec.panel
def loops(run: Run) -> Panel:
    """Generation of a text, as nested loops over tokens and layers: the numbers of each step after
    this text, with the KV cache and without.

    Raises ValueError for a model without a causal mask, its own or by an edit.
    """
    recording, words = run.recording(), sentences(CONCEPT, "loops")
    try:
        attention, stream = causal_attention(recording)
    except Untestable as reason:
        raise ValueError(words("closed", model=model_name(recording))) from reason
    if any(isinstance(edit, WithoutMask) for edit in recording.edits):
        raise ValueError(words("unmasked"))
    model, n = recording.model, len(stream.tokens)
    layers, heads = attention.pattern.shape[:2]
    key_heads = run.loaded.capabilities.key_heads or heads
    stored = 2 * n * layers * key_heads * model.d_head
    without, pairs = n * (n + 1) // 2, int(attention.allowed[0].sum())
    n_scores = int(attention.allowed.sum()) * heads
    sizes = {"n": n, "layers": layers, "heads": key_heads, "d": model.d_head}
    of_source = [
        Box(words("source"), plural(len(recording.streams[0].tokens), "stored key"))
        for _ in recording.streams[1:]
    ]
    steps = (
        Box(words("query"), plural(heads, "query", "queries")),
        Box(words("key"), words("keys_and_values", n=key_heads, d=model.d_head)),
        Box(words("store"), words("stored", **sizes, total=f"{stored:,}"), selected=True),
        Box(words("compare"), words("scores", pairs=pairs, layers=layers, heads=heads, n=n_scores)),
        *of_source,
        Box(words("add")),
    )
    block = Box(words("layers"), plural(layers, "time"), steps)
    token = Box(
        words("tokens"),
        plural(n, "time"),
        (Box(words("embedding")), block, Box(words("predict"))),
    )
    rows = {"stored": stored, "scores": n_scores, "read": n, "read without the cache": without}
    numbers = {"stored": Written.count(stored), "read_without_cache": Written.count(without)}
    stored_text, without_text = numbers.values()
    return Panel(
        words("title"),
        words("finding", n=plural(n, "token"), stored=stored_text, without=without_text),
        (Loops(boxes=(token,)),),
        table={"quantity": list(rows), "value": list(rows.values())},
        details=words.lines("details"),
        caption=(words("caption"),),
        file="generation-loops",
        numbers=numbers,
        formulas=("cache",),
    )
