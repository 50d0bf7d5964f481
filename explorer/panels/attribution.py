"""The panels on direct logit attribution: a logit as the sum of what the model's parts wrote, and
an FFN's part as the sum over its neurons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import exp, log
from typing import Annotated, Any

import numpy as np

from explorer.analysis import flow, logit_lens, predictions, residual
from explorer.analysis.attention import argmax_id
from explorer.analysis.terminology import norm_name, recording_norm_name, unit_formula
from explorer.analysis.word_classes import is_word as is_text_word
from explorer.analysis.words import words as group_words
from explorer.figures import kinds
from explorer.figures.csv import Columns
from explorer.figures.formatting import (
    Written,
    exponent_text,
    fixed,
    percent,
    plural,
    power_of_e,
    signed,
    word_in_sentence,
)
from explorer.figures.kinds import BarRow, Bars, Matrix, TokenRow
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.flow_way import answering_head
from explorer.panels.masks import Hidden, unmasked
from explorer.panels.selection import (
    Predicted,
    StreamSelection,
    expect_place,
    model_name,
    place_if_any,
    predicted,
    typed_word,
    why_here,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import named, sentences
from models.contract.recording import CONTINUES, Attention, Recording, Stream, from_end
from models.contract.results import Attribution, Neurons, Part
from models.runtime.caching import loaded
from models.runtime.run import Run

CONCEPT = "attribution"
N_PARTS, N_GROUPS, N_LAYERS, N_TOKENS = 6, 24, 10, 60
N_TOLD = 3  # of a sum in the order of the network whose numbers stand beside them
N_CARRIERS, N_SOURCES = 8, 7
STEPS = 50  # parts of the way of integrated gradients, which a page takes a pass or two for each
MOST_TIMES = 100_000  # that one word is said to be more likely than another
STANDS_OUT = 0.25  # of the difference of two logits, from which on a part is no small one
LEAST_TOLD = 0.1  # of a logit, below which a part is a small one
NORMS = {"LayerNorm": "layer", "RMSNorm": "rms"}
NO_WORD = -1  # as the word that another is compared with
FIELDS = sentences(CONCEPT, "fields")


@dataclass(frozen=True, eq=False)
class LogitParts:
    """A logit at a token of a run as parts, its word, and the word that it is compared with, "" for
    none."""

    run: Run
    at: StreamSelection
    attribution: Attribution
    word: str
    against: str

    @property
    def label(self) -> str:
        """The logit in words."""
        if loaded(self.at.recording).capabilities.classes:
            return _class_label(self.word, self.against)
        name = "logit_of_two" if self.against else "logit_of"
        return sentences(CONCEPT, "logit")(name, word=self.word, against=self.against)


# ---- what a reader chooses -----------------------------------------------------------------------


def _word_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """The likeliest words, and any other that is chosen, by their ids."""
    at, word = predicted(run, chosen.get("token")), chosen.get("word")
    first = FIELDS("prediction", word=word_in_sentence(_label(run, argmax_id(at.logits))))
    return {None: first} | _likeliest(run, at, word)


def _other_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """The words to compare with, by their ids."""
    at, word = predicted(run, chosen.get("token")), chosen.get("word")
    word = argmax_id(at.logits) if word is None else word
    other = _label(run, _rival(at, word))
    first = FIELDS("likeliest_other", word=word_in_sentence(other))
    none: dict[int | None, str] = {None: first, NO_WORD: FIELDS("no_word")}
    return none | _likeliest(run, at, chosen.get("against"))


def _likeliest(run: Run, at: StreamSelection, chosen: int | None) -> dict[int | None, str]:
    ids = [each.id for each in predictions.top_words(predictions.distribution(at.logits))]
    labels: dict[int | None, str] = {
        id: f"{place}. {label}"
        for place, (id, label) in enumerate(zip(ids, run.loaded.labels(ids)), 1)
    }
    if chosen is not None and 0 <= chosen < at.recording.model.n_vocab:
        labels.setdefault(chosen, FIELDS("other", word=_label(run, chosen), id=chosen))
    return labels


def _label(run: Run, id: int) -> str:
    return run.loaded.labels([id])[0]


def _rival(at: StreamSelection, word: int) -> int:
    """The likeliest word (id) that is not another spelling of a word: its runner-up, or what it is
    beaten by."""
    model = loaded(at.recording)

    def spelled(id: int) -> str:
        return str(model.labels([id])[0]).removeprefix(CONTINUES).strip().casefold()

    return next(id for id in flow.race(at.logits, spelled, 2) if spelled(id) != spelled(word))


def _ffns(run: Run, chosen: Mapping[str, Any]) -> dict[int, str]:
    """The layers whose FFN has a part in the logit, with that part; none where there is no sum."""
    try:
        on = logit_parts(run, *map(chosen.get, ("token", "word", "against")))
    except ValueError:
        return {}
    parts = logit_lens.ffns(on.attribution)
    return {layer: FIELDS("ffn", layer=layer, part=signed(parts[layer].value)) for layer in parts}


def _strongest_ffn(run: Run, chosen: Mapping[str, Any]) -> int | None:
    try:
        on = logit_parts(run, *map(chosen.get, ("token", "word", "against")))
    except ValueError:
        return None
    return logit_lens.strongest_ffn(on.attribution) if logit_lens.ffns(on.attribution) else None


WORD_HELP = FIELDS("help")
WordId = Annotated[
    int | None, Choice(_word_options, "Logit of", of="text", typed=typed_word, help=WORD_HELP)
]
OtherId = Annotated[
    int | None,
    Choice(_other_options, "Compared with", of="text", typed=typed_word, help=WORD_HELP),
]


@spec.predicts
@spec.panel
def logit(
    run: Run,
    token: Predicted = OPENS,
    word: WordId = None,
    against: OtherId = None,
    part: Annotated[str, Choice(of="model", help="the selected part of the sum")] = "",
    hidden: Hidden = "",
) -> Panel:
    """A word's logit at a token as the sum of what embedding, heads, FFNs and biases wrote.

    token: the first one that is predicted where None. word: an id, the model's prediction where
    None. against: the id of a word whose logit is subtracted, the likeliest other one where None,
    NO_WORD, -1, for none. part: the selected one, such as "self.2.5" or "ffn.1". hidden: as of
    `predictions.word`. Raises ValueError for what is not there or cannot be a sum.
    """
    on = logit_parts(run, token, word, against)
    words, total = sentences(CONCEPT, "logit"), logit_lens.parts_sum(on.attribution)
    deciding = logit_lens.deciding_part(on.attribution)
    slots = {"logit": on.label, "token": on.at.token, "at": on.at.word}
    numbers = {
        "logit": Written.by(signed, on.attribution.logit, 2),
        "largest_part": Written.by(signed, deciding.value, 2),
    }
    lines = [_headline(on, deciding)]
    if not on.against:
        lines.append(words("finding", value=numbers["logit"], **slots))
    return Panel(
        title=words("title_two", word=on.word, against=on.against)
        if on.against
        else words("title"),
        finding=" ".join(lines) + why_here(on.at),
        figures=(_strongest(on, part), _sum(on, total)),
        table=logit_lens.parts_file(on.attribution),
        details=_method(on, total),
        caption=(words("caption", **slots),),
        file="logit-parts",
        numbers=numbers,
    )


def _stands_out(on: LogitParts, part: Part) -> bool:
    """True for a part that pushes plainly toward the word that leads."""
    logit = on.attribution.logit
    return (part.value if logit >= 0 else -part.value) >= max(LEAST_TOLD, STANDS_OUT * abs(logit))


def _headline(on: LogitParts, told: Part) -> str:
    """Sentences on the part that pushes most toward the word that leads, and where that reads no
    other word on the head that does, as Flow tells it; or that the parts are many small ones, by
    which a word leads or does not."""
    words, logit = sentences(CONCEPT, "logit"), on.attribution.logit
    bias = sum(each.value for each in on.attribution.parts if each.kind == "bias")
    apart = words("apart") if told.kind != "bias" and abs(bias) > abs(told.value) else ""
    if not on.against:
        most = signed(told.value, 2)
        return _capital(words("most", part=_part_in_words(told), most=most, apart=apart))
    likelier, other = (on.word, on.against)[:: 1 if logit >= 0 else -1]
    if told.kind == "bias" or not _stands_out(on, told):
        of_text = sum(each.value for each in on.attribution.parts if each.kind != "bias")
        kind = "small" if of_text * logit > 0 else "any_text"
        return words(kind, word=likelier, against=other)
    line = words("pushes", part=_in_text(on, told), apart=apart, toward=likelier, away=other)
    beside = None if _reads(on, told) else _reading_part(on)
    lines = [_capital(line)]
    if beside is not None and _stands_out(on, beside):
        lines.append(_capital(words("helps", part=_in_text(on, beside))))
    return " ".join(lines)


def _capital(line: str) -> str:
    return line[0].upper() + line[1:]


def _reading_part(on: LogitParts) -> Part | None:
    """The part of the head that reads another word of content and adds most to the word that leads,
    as Flow tells it; None for none."""
    made, at = on.attribution, on.at
    if at.stream.name != at.recording.streams[-1].name or made.against is None:
        return None
    pair = (made.id, made.against)[:: 1 if made.logit >= 0 else -1]
    found = answering_head(unmasked(on.run), at.recording, at.token, *pair)
    if found is None:
        return None
    here = found.attention.name, flow.layer_numbers(found.attention)[found.layer], found.head
    every = (each for each in made.parts if each.kind == "head")
    return next(each for each in every if (each.attention, each.layer, each.head) == here)


def _in_text(on: LogitParts, part: Part) -> str:
    """A part in a sentence, of a head with the word that it reads."""
    name, key = _part_in_words(part), _reads(on, part)
    return sentences(CONCEPT, "logit")("which_reads", part=name, key=key) if key else name


def deciding(run: Run, token: int) -> tuple[Part, str] | None:
    """The part of a model that pushes most toward the word that it predicts at a token, away from
    the likeliest other, and that part in a sentence; None where parts are small or not known. run:
    with the token hidden where it is to be guessed."""
    try:
        on = logit_parts(run, token)
    except ValueError:
        return None
    part = logit_lens.deciding_part(on.attribution)
    return (part, _in_text(on, part)) if part.kind != "bias" and _stands_out(on, part) else None


def _part_in_words(part: Part) -> str:
    """A part in a sentence."""
    kind = "cross" if part.kind == "head" and part.attention == "cross" else part.kind
    names = named("score_parts", "names")
    if kind not in names:
        return logit_lens.part_name(part)
    return names[kind].format(layer=part.layer, head=part.head)


def _reads(on: LogitParts, part: Part) -> str:
    """The word that a head reads at the token: another one, to which it gives the most; "" for no
    word, and for a part that is no head."""
    if part.kind != "head":
        return ""
    recording = on.at.recording
    of = next(each for each in recording.attention if each.name == part.attention)
    row = of.pattern[flow.layer_numbers(of).index(part.layer), part.head, on.at.token]
    key, stream = int(row.argmax()), recording.stream(of.key)
    is_itself = of.key == on.at.stream.name and key == on.at.token
    if is_itself or stream.special[key] or not is_text_word(stream.tokens[key]):
        return ""
    grouped = group_words(stream, recording.text) if stream is recording.streams[0] else None
    return grouped.labels[int(grouped.of[key])] if grouped else stream.tokens[key]


def logit_parts(
    run: Run, token: int | None = None, word: int | None = None, against: int | None = None
) -> LogitParts:
    """The parts of a logit; arguments and ValueError as for `logit`."""
    words, at = sentences(CONCEPT, "logit"), predicted(run, token)
    if why := loaded(at.recording).capabilities.no_parts:
        raise ValueError(words("no_parts", model=at.model, why=why))
    word = argmax_id(at.logits) if word is None else word
    if against is None and 0 <= word < at.recording.model.n_vocab:
        against = _rival(at, word)
    against = None if against == NO_WORD else against
    for id in (word, against):
        expect_place("word", id, at.recording.model.n_vocab)
    one, *other = loaded(at.recording).labels([word] if against is None else [word, against])
    if against == word:
        raise ValueError(words("same", word=one))
    try:
        attribution = loaded(at.recording).attribute(
            at.recording, at.stream.name, at.token, word, against
        )
    except ValueError as why:
        raise ValueError(words("not_a_sum", why=why)) from None
    return LogitParts(run, at, attribution, one, other[0] if other else "")


# ---- classes of a text ---------------------------------------------------------------------------


def _class_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """The classes of a text by their places, the likeliest first; {} where there are none."""
    if not (classes := run.loaded.capabilities.classes):
        return {}
    order = _likeliest_classes(run)
    return {None: FIELDS("prediction", word=classes[order[0]])} | {at: classes[at] for at in order}


def _other_class_options(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    """The classes to compare with, by their places; {} where there are none."""
    if not (classes := run.loaded.capabilities.classes):
        return {}
    order = _likeliest_classes(run)
    of_class = chosen.get("of_class")
    others = [at for at in order if at != (order[0] if of_class is None else of_class)]
    first = FIELDS("likeliest_class", word=classes[others[0]])
    return {None: first, NO_WORD: FIELDS("no_class")} | {at: classes[at] for at in others}


def _likeliest_classes(run: Run) -> list[int]:
    scores = loaded(run.model).class_logits(run.recording())
    return np.argsort(-scores, kind="stable").tolist()


@spec.predicts
@spec.panel
def class_logit(
    run: Run,
    of_class: Annotated[int | None, Choice(_class_options, "Logit of", of="model")] = None,
    against_class: Annotated[
        int | None, Choice(_other_class_options, "Compared with", of="model")
    ] = None,
    part: Annotated[str, Choice(of="model", help="the selected part of the sum")] = "",
) -> Panel:
    """Contribution of each word, layer and head of a text to the logit of a class.

    of_class: the place of a class among the model's, the likeliest where None. against_class: that
    of a class whose logit is subtracted, the likeliest other one where None, NO_WORD, -1, for none.
    part: the selected one, such as "self.2.5". Raises ValueError for a model without classes, and
    for a class that is not there.
    """
    words = sentences(CONCEPT, "class_logit")
    chosen, against = chosen_classes(run, of_class, against_class)
    recording, model = run.recording(), run.loaded
    stream, scores = recording.streams[0], model.class_logits(recording).astype(np.float64)
    shares = model.class_attribution(recording, chosen, STEPS, against)
    by_word, most = _by_word(stream, shares)
    names = [model.capabilities.classes[at] for at in (chosen, against) if at is not None]
    slots = {"word": stream.tokens[most], "share": signed(float(shares[most]), 2)}
    slots["logit"] = _class_label(*names)
    score = float(scores[chosen] - (0 if against is None else scores[against]))
    lines = [words("finding", value=signed(score, 2), **slots), words("most_word", **slots)]
    figures: tuple[Bars, ...] = (by_word,)
    details, made = [*words.lines("by_word")], None
    try:
        on = class_parts(run, of_class, against_class)
    except ValueError as why:
        details.append(words("not_a_sum", why=why))
    else:
        made, total = on.attribution, logit_lens.parts_sum(on.attribution)
        largest = logit_lens.largest_parts(made)[0]
        name, value = logit_lens.part_name(largest), signed(largest.value, 2)
        lines.append(words("most_part", part=name, value=value))
        figures += (_sum(on, total), _strongest(on, part))
        details += _class_method(on, total)
    return Panel(
        title=words("title"),
        finding=" ".join(lines),
        figures=figures,
        table=_class_table(stream, shares, made),
        details=tuple(details),
        caption=(words("caption", **slots),),
        file="class-logit",
    )


def chosen_classes(
    run: Run, of_class: int | None = None, against_class: int | None = None
) -> tuple[int, int | None]:
    """The places of the class and of the one that it is compared with, None for none; arguments
    and ValueError as for `class_logit`."""
    words, classes = sentences(CONCEPT, "class_logit"), run.loaded.capabilities.classes
    if not classes:
        raise ValueError(words("no_classes", model=model_name(run.recording())))
    order = _likeliest_classes(run)
    of_class = order[0] if of_class is None else of_class
    if against_class is None:
        against_class = next(at for at in order if at != of_class)
    against = None if against_class == NO_WORD else against_class
    for at in (of_class, against):
        expect_place("class", at, len(classes))
    if against == of_class:
        raise ValueError(words("same", name=classes[of_class]))
    return of_class, against


def class_parts(
    run: Run, of_class: int | None = None, against_class: int | None = None
) -> LogitParts:
    """The parts of the logit of a class; arguments as for `class_logit`. Raises ValueError also
    where it is no sum of parts."""
    chosen, against = chosen_classes(run, of_class, against_class)
    recording, classes = run.recording(), run.loaded.capabilities.classes
    try:
        made = run.loaded.class_parts(recording, chosen, against)
    except ValueError as why:
        raise ValueError(str(why).replace(recording.model.name, model_name(recording))) from None
    at = StreamSelection(recording, recording.streams[-1], made.token)
    return LogitParts(run, at, made, classes[chosen], "" if against is None else classes[against])


def _class_label(name: str, other: str = "") -> str:
    words = sentences(CONCEPT, "class_logit")
    return words("logit_of_two" if other else "logit_of", name=name, other=other)


def _by_word(stream: Stream, shares: np.ndarray) -> tuple[Bars, int]:
    """The tokens with the largest shares in the order of the text, and the one with the largest
    that somebody typed."""
    words, typed = sentences(CONCEPT, "class_logit"), ~stream.special
    sizes = np.abs(shares)
    most = int(np.where(typed, sizes, -1).argmax() if typed.any() else sizes.argmax())
    order = [most, *(at for at in np.argsort(-sizes, kind="stable").tolist() if at != most)]
    listed = sorted(order[:N_GROUPS])
    rows = [
        BarRow(stream.tokens[at], (float(shares[at]),), (_short(float(shares[at])),), at == most)
        for at in listed
    ]
    if n := len(shares) - len(listed):
        rest = float(shares.sum() - shares[listed].sum())
        rows.append(BarRow(plural(n, "other"), (rest,), (_short(rest),)))
    mark = (listed.index(most), 0)
    return Bars(title=words("words"), columns=("",), rows=tuple(rows), mark=mark), most


def _class_method(on: LogitParts, total: float) -> tuple[str, ...]:
    """Sentences on the parts of a class's logit: of what they are made, and how far that holds."""
    words, shows = sentences(CONCEPT, "class_logit"), loaded(on.at.recording).capabilities
    parts, logit = len(on.attribution.parts), signed(on.attribution.logit, 4)
    lines = [words("made", at=on.at.word, token=on.at.token)]
    if shows.pooler:
        explained = percent(max(0.0, on.attribution.explained))
        lines += words.lines("pooler", name=shows.pooler, explained=explained)
    lines.append(words("adds_up", n=parts, total=signed(total, 4), logit=logit))
    kinds = {part.kind for part in on.attribution.parts}
    whole = sentences(CONCEPT, "logit")
    lines += [whole(f"whole_{kind}") for kind in ("attn", "layer") if kind in kinds]
    return (*lines, *words.lines("details"))


def _class_table(stream: Stream, shares: np.ndarray, made: Attribution | None) -> Columns:
    """The shares of all tokens, and below them the parts, the strongest first."""
    n = len(shares)
    table: dict[str, list[Any]] = {
        "of": ["token"] * n,
        "token": list(range(n)),
        "token text": list(stream.tokens),
        "share": shares.tolist(),
    }
    if made is None:
        return table
    parts = logit_lens.parts_table(made)
    below = {name: list(values) for name, values in parts.items()}
    rows = len(made.parts)
    table = {name: values + [None] * rows for name, values in table.items()}
    table["of"][n:] = ["part"] * rows
    return table | {name: [None] * n + values for name, values in below.items()}


def _sum(on: LogitParts, total: float) -> Bars:
    """The parts added up in the order of the network, of a deep model layer by layer."""
    words = sentences(CONCEPT, "logit")
    sums = {group.name: group.value for group in logit_lens.groups(on.attribution)}
    if len(sums) > N_GROUPS:
        layers: dict[str, float] = {}
        for name, value in sums.items():
            layer, _, sublayer = name.partition(" ")
            name = words("layer", layer=layer[1:]) if sublayer and layer[1:].isdigit() else name
            layers[name] = layers.get(name, 0) + value
        sums = _folded(layers)
    starts = accumulate(list(sums.values())[:-1], initial=0.0)
    largest = sorted(sums, key=lambda name: -abs(sums[name]))[:N_TOLD]
    rows = [
        BarRow(name, (value,), (_short(value) * (name in largest),), start=start)
        for (name, value), start in zip(sums.items(), starts)
    ]
    label, note = words("sum_of_two" if on.against else "sum"), ""
    if on.against:
        likelier = (on.word, on.against)[:: 1 if on.attribution.logit >= 0 else -1]
        odds = _ratio(abs(on.attribution.logit))
        note = words("together", word=likelier[0], against=likelier[1], odds=odds)
    rows.append(BarRow(label, (total,), (signed(total),), selected=True))
    return Bars(title=words("sum_title"), note=note, columns=("",), rows=tuple(rows))


def _folded(layers: Mapping[str, float]) -> dict[str, float]:
    """Layers of a deep model with the weaker ones that follow one another added up, so that the
    largest `N_LAYERS` are seen and the sum fits a screen."""
    words = sentences(CONCEPT, "logit")
    numbers = {words("layer", layer=at): at for at in range(len(layers))}
    strong = sorted(numbers.keys() & layers.keys(), key=lambda name: -abs(layers[name]))[:N_LAYERS]
    rows: dict[str, float] = {}
    run: list[str] = []

    def close() -> None:
        if run:
            first, last = numbers[run[0]], numbers[run[-1]]
            name = run[0] if first == last else words("layers", first=first, last=last)
            rows[name] = sum(layers[each] for each in run)
            run.clear()

    for name, value in layers.items():
        if name in numbers and name not in strong:
            run.append(name)
            continue
        close()
        rows[name] = value
    close()
    return rows


def _strongest(on: LogitParts, part: str) -> Bars:
    """The parts that contribute most, up or down; the selected one is among them. Biases, which do
    not depend on the text, stand last."""
    words = sentences(CONCEPT, "logit")
    parts = [each for each in logit_lens.largest_parts(on.attribution) if each.kind != "bias"]
    biases = [each.value for each in on.attribution.parts if each.kind == "bias"]
    keys = [logit_lens.part_key(each) for each in parts]
    deciding = logit_lens.part_key(logit_lens.deciding_part(on.attribution))
    listed = [at for at, key in enumerate(keys) if at < N_PARTS or key in (part, deciding)]
    rows = [
        BarRow(
            _with_word(on, parts[at]),
            (parts[at].value,),
            (_short(parts[at].value),),
            selected=keys[at] == (part or deciding),
            key=keys[at],
        )
        for at in listed
    ]
    if n := len(parts) - len(listed):
        rest = logit_lens.parts_sum(on.attribution) - sum(row.values[0] for row in rows)
        rest -= sum(biases)
        rows.append(BarRow(plural(n, "smaller part"), (rest,), (_short(rest),)))
    rows += [BarRow(words("biases"), (value,), (_short(value),)) for value in biases]
    is_two = bool(on.against) and not loaded(on.at.recording).capabilities.classes
    name = "strongest_two" if is_two else "strongest"
    title = words(name, word=on.word, against=on.against)
    note = words("score") if is_two else ""
    return Bars(title=title, note=note, select=("part",), columns=("",), rows=tuple(rows))


def _with_word(on: LogitParts, part: Part) -> str:
    """A part's name, of a head with the word that it reads."""
    name, word = logit_lens.part_name(part), _reads(on, part)
    return sentences(CONCEPT, "logit")("reading", part=name, key=word) if word else name


def _ratio(exponent: float) -> str:
    """e to that in three figures, up to a bound."""
    if exponent > log(MOST_TIMES):
        return sentences(CONCEPT, "logit")("over", n=f"{MOST_TIMES:,}")
    return f"{float(f'{exp(exponent):.3g}'):,.10g}"


def _short(value: float) -> str:
    """A contribution in two decimals; all digits stand in the table."""
    return signed(round(value, 2))


def _method(on: LogitParts, total: float) -> tuple[str, ...]:
    """Sentences on the method: how the parts are made, and what they do not tell."""
    words, at = sentences(CONCEPT, "logit"), on.at
    shows = loaded(at.recording).capabilities
    row = words("row_untied" if str(loaded(at.recording).readout_kind()) == "untied" else "row")
    row += words("bias") if shows.readout_bias else ""
    lines = [
        words("made", row=row),
        words(
            "adds_up",
            n=len(on.attribution.parts),
            total=signed(total, 4),
            logit=signed(on.attribution.logit, 4),
        ),
        words("residual" if residual.has_residual(at.stream) else "no_residual"),
    ]
    norm = _norm(at)
    if n_norms := logit_lens.n_norms(at.recording):
        lines.append(words("norms", norms=plural(n_norms, norm)))
        lines.append(words(f"holds_{NORMS.get(norm, 'any')}", norm=norm))
    else:
        lines.append(words("no_norms", norm=norm))
    kinds = {part.kind for part in on.attribution.parts}
    lines += [words(f"whole_{kind}") for kind in ("attn", "layer") if kind in kinds]
    if "transform" in kinds:
        explained = percent(max(0.0, on.attribution.explained))
        lines += words.lines("transform", explained=explained)
    if on.against:
        odds = power_of_e(on.attribution.logit, 3)
        exponent = exponent_text(on.attribution.logit, odds)
        lines.append(
            words("exponent", word=on.word, against=on.against, exponent=exponent, odds=odds)
        )
    return (*lines, *words.lines("details"))


def _norm(at: StreamSelection) -> str:
    """Name of the model's norms, LayerNorm or RMSNorm, as they were in this recording."""
    shows = loaded(at.recording).capabilities
    norms = (
        loaded(at.recording).norms(at.stream.name, at.recording.edits) if shows.weights else None
    )
    if norms:
        return norm_name(each[3] for each in norms.values())
    return recording_norm_name(at.recording, shows.rms)


# ---- neurons -------------------------------------------------------------------------------------


@spec.predicts
@spec.panel
def neurons(
    run: Run,
    token: Predicted = OPENS,
    word: WordId = None,
    against: OtherId = None,
    layer: Annotated[
        int | None,
        Choice(
            _ffns,
            "FFN of layer",
            name="ffn",
            of="model",
            suits=_strongest_ffn,
            clears=("neuron",),
        ),
    ] = None,
    neuron: Annotated[int | None, Choice(of="model", help="its selected hidden unit")] = None,
    hidden: Hidden = "",
) -> Panel:
    """The part of an FFN in a logit as the sum over its hidden units.

    layer: the one that contributes most where None. neuron: the selected one, the strongest where
    not among the strongest; where None the strongest that changes one of the two words most, and
    where there is none, no neuron's words are shown. token, word, against and hidden as for
    `logit`.
    Raises ValueError for what is not there and for a model whose FFN cannot be read.
    """
    on = logit_parts(run, token, word, against)
    words, at = sentences(CONCEPT, "neurons"), on.at
    shows = loaded(at.recording).capabilities
    if not shows.weights:
        raise ValueError(words("closed", model=at.model))
    layers = logit_lens.ffns(on.attribution)
    layer = None if layer is None else from_end(layer, at.recording.model.n_layer)
    if not layers or (layer is not None and layer not in layers):
        raise ValueError(words("no_ffn", layer="?" if layer is None else layer))
    layer = logit_lens.strongest_ffn(on.attribution) if layer is None else layer
    target = (on.attribution.token, on.attribution.id, on.attribution.against)
    try:
        units = loaded(at.recording).neurons(at.recording, at.stream.name, layer, *target)
    except ValueError as why:
        raise ValueError(words("not_a_sum", why=why)) from None
    neuron = place_if_any("neuron", neuron, len(units.adds))
    about = logit_lens.neurons_about(units)
    selected = about[0] if neuron is None and about else neuron
    rank, totals = logit_lens.neuron_rank(units, selected), logit_lens.neuron_totals(units)
    unit = int(units.strongest[rank])
    # What the others write, such as “affili, strugg, enthus”, explains nothing unless it is asked
    # for.
    is_read = neuron is not None or bool(about)
    bias = words("with_bias", bias=signed(units.bias)) if shows.ffn_biases else ""
    return Panel(
        title=words("title", layer=layer),
        finding=words(
            "finding_one" if totals.half == 1 else "finding",
            part=signed(units.part),
            logit=on.label,
            half=f"{totals.half:,}",
            n=f"{totals.n:,}",
        )
        + ("" if about else words("about_none")),
        figures=(
            _neurons(units, unit, shows.ffn_biases),
            *((_words(on, units, rank),) if is_read else ()),
            _activations(on, units, rank),
        ),
        table=logit_lens.neuron_file(units),
        details=(
            *_of_neuron(units, unit),
            words("sum", sum=signed(float(units.adds.sum())), bias=bias, part=signed(units.part)),
            words("made", unit=unit_formula(shows.gate, shows.ffn_biases)),
            *words.lines("details"),
        ),
        caption=(words("caption", layer=layer, logit=on.label, token=at.token, at=at.word),),
        file=f"L{layer}-neurons",
    )


def _of_neuron(units: Neurons, unit: int) -> tuple[str, str]:
    """A sentence on a neuron, and one on all that raise and that lower the logit."""
    words, totals = sentences(CONCEPT, "neurons"), logit_lens.neuron_totals(units)
    return (
        words(
            "neuron",
            unit=unit,
            activation=fixed(float(units.activation[unit]), 3),
            norm=fixed(float(units.length[unit]), 3),
            adds=signed(float(units.adds[unit]), 3),
        ),
        words(
            "up_and_down",
            rising=plural(totals.n_up, "unit"),
            up=signed(totals.up),
            falling=plural(totals.n_down, "unit"),
            down=signed(totals.down),
        ),
    )


def _neurons(units: Neurons, selected: int, has_bias: bool) -> Bars:
    """The neurons that contribute most, all others together, and the bias."""
    words = sentences(CONCEPT, "neurons")
    rows = [
        BarRow(
            words("unit", unit=unit),
            (float(units.adds[unit]), float(units.activation[unit])),
            (signed(float(units.adds[unit]), 3), fixed(float(units.activation[unit]), 3)),
            selected=unit == selected,
            key=str(unit),
        )
        for unit in units.strongest[: logit_lens.MOST_BARS].tolist()
    ]
    n, rest = logit_lens.hidden_neurons(units)
    extra = [(words("weaker", n=f"{n:,}"), rest)] if n else []
    extra += [(words("bias"), units.bias)] if has_bias else []
    rows += [BarRow(label, (value, 0.0), (signed(value, 3), "")) for label, value in extra]
    return Bars(
        title=words("strongest"),
        select=("neuron",),
        columns=(words("contribution"), words("activation")),
        rows=tuple(rows),
    )


def _words(on: LogitParts, units: Neurons, rank: int) -> Bars:
    """The words whose logits the neuron raises most, and those that it lowers most."""
    words = sentences(CONCEPT, "neurons")
    ids = [*units.up_ids[rank].tolist(), *units.down_ids[rank].tolist()[::-1]]
    values = [*units.up[rank].tolist(), *units.down[rank].tolist()[::-1]]
    rows = tuple(
        BarRow(label, (value,), (signed(value, 3),), selected=id in (units.id, units.against))
        for id, label, value in zip(ids, loaded(on.at.recording).labels(ids), values)
    )
    title = words("raises", unit=int(units.strongest[rank]))
    return Bars(title=title, columns=(words("logit"),), rows=rows)


def _activations(on: LogitParts, units: Neurons, rank: int) -> TokenRow:
    """The tokens tinted by the neuron's activation; of a long text those around the largest."""
    words, tokens = sentences(CONCEPT, "neurons"), on.at.stream.tokens
    sizes = abs(units.fires[rank])
    most = int(sizes.argmax())
    visible = kinds.window(len(tokens), (most, on.at.token), N_TOKENS)
    value = fixed(float(units.fires[rank, most]))
    note = words("most", word=tokens[most], token=most, value=value)
    if limit := kinds.truncation_note(len(visible), len(tokens)):
        note += f" {words('shown', tokens=limit)}"
    return TokenRow(
        title=words("fires", unit=int(units.strongest[rank])),
        note=note,
        tokens=tuple(tokens[each] for each in visible),
        weights=sizes[visible] / (sizes.max() or 1.0),
        selected=visible.tolist().index(on.at.token) if on.at.token in visible else -1,
    )


# ---- heads by source -----------------------------------------------------------------------------


@spec.predicts
@spec.panel
def carriers(
    run: Run,
    token: Predicted = OPENS,
    word: WordId = None,
    against: OtherId = None,
    hidden: Hidden = "",
) -> Panel:
    """Contribution of each head to a word's logit at a token, and from which token of the text: the
    heads that bring most, and all heads together by token.

    token, word, against, hidden: as of `logit`. Raises ValueError for what is not there, for a
    logit that is no sum and for a model whose heads cannot be read.
    """
    on = logit_parts(run, token, word, against)
    words, recording = sentences(CONCEPT, "carriers"), on.at.recording
    try:
        by_attention = loaded(recording).head_sources(
            recording, on.at.stream.name, on.at.token, on.attribution.id, on.attribution.against
        )
    except (ValueError, AttributeError) as why:
        reason = str(why).replace(recording.model.name, model_name(recording))
        raise ValueError(words("closed", why=reason)) from None
    of, values, others = _strongest_attention(recording, by_attention, on.at.token)
    if not others.any():
        raise ValueError(words("no_word"))
    keys, seen = recording.stream(of.key), of.reachable[on.at.token]
    layer, head, key = map(
        int, np.unravel_index(np.where(others, values, -np.inf).argmax(), values.shape)
    )
    totals = values.sum(axis=(0, 1))
    numbers = {
        "carried": Written.by(signed, values[layer, head, key], 2),
        "carried_by_all_heads": Written.by(signed, totals[key], 2),
        "logit": Written.by(signed, on.attribution.logit, 2),
    }
    slots = {
        **{"logit": on.label, "token": on.at.token, "at": on.at.word, "key": keys.tokens[key]},
        **{"layer": layer, "head": head, "value": numbers["carried"].text},
        **{"all": numbers["carried_by_all_heads"], "attention": of.name},
        "total": numbers["logit"],
    }
    return Panel(
        title=words("title"),
        finding=words("finding", **slots),
        figures=(
            _by_source(keys, values, (layer, head, key), str(slots["value"]), seen),
            _of_all_heads(keys, totals, key, seen),
        ),
        table=_every_source(keys, values, seen),
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file="logit-by-source",
        formulas=("sum-over-heads",),
        numbers=numbers,
        at={"layer": layer, "head": head, "attention": of.name, "token": on.at.token},
    )


def _strongest_attention(
    recording: Recording, by_attention: Mapping[str, np.ndarray], token: int
) -> tuple[Attention, np.ndarray, np.ndarray]:
    """The attention with the largest contribution of a head from a token, of those in which the
    query sees another word; its contributions (layer, head, key), 0 where they are not known, and
    those words, (key) bool."""
    known = {name: np.nan_to_num(values) for name, values in by_attention.items()}
    by_name = {each.name: each for each in recording.attention}
    others = {name: _other_words(recording, by_name[name], token) for name in known}
    largest = lambda name: (bool(others[name].any()), float(known[name].max(initial=0)))
    name = max(known, key=largest)
    return by_name[name], known[name], others[name]


def _other_words(recording: Recording, of: Attention, token: int) -> np.ndarray:
    """The words of the text, (key) bool, that a query may look at, without itself."""
    keys = recording.stream(of.key)
    is_word = np.array([is_text_word(each) for each in keys.tokens]) & ~keys.special
    if of.query == of.key:
        is_word[token] = False
    return is_word & of.reachable[token]


def _by_source(
    keys: Stream,
    values: np.ndarray,
    strongest: tuple[int, int, int],
    text: str,
    seen: np.ndarray,
) -> Matrix:
    """The heads with the largest contributions from one token, in the order of the network, and the
    tokens that they come from. seen: what the mask does not hide, (key) bool."""
    words, n_heads = sentences(CONCEPT, "carriers"), values.shape[1]
    flat = values.reshape(-1, values.shape[-1])
    listed = np.sort(np.argsort(-np.abs(flat).max(axis=1), kind="stable")[:N_CARRIERS])
    own = strongest[0] * n_heads + strongest[1]
    listed = listed if own in listed else np.sort([own, *listed[:-1]])
    most = np.argsort(-np.abs(flat[listed]).max(axis=0), kind="stable")
    most = most[seen[most]][: kinds.MOST_TOKENS]
    places = np.sort(most if strongest[2] in most else [strongest[2], *most[:-1]])
    cells = flat[np.ix_(listed, places)]
    row, column = list(listed).index(own), list(places).index(strongest[2])
    return Matrix(
        title=words("heads"),
        note=kinds.truncation_note(len(places), int(seen.sum())),
        rows=tuple(f"L{at // n_heads} H{at % n_heads}" for at in listed.tolist()),
        columns=tuple(keys.tokens[at] for at in places),
        values=cells,
        high=float(np.abs(cells).max()) or 1.0,
        signed=True,
        marks=((row, column, text),),
        sides=("head", "from"),
    )


def _of_all_heads(keys: Stream, totals: np.ndarray, key: int, seen: np.ndarray) -> Bars:
    """All heads' contributions together, by the token that they come from."""
    words = sentences(CONCEPT, "carriers")
    order = np.argsort(-np.abs(totals), kind="stable")
    order = order[seen[order]][:N_SOURCES]
    listed = np.sort(order if key in order else [key, *order[:-1]]).tolist()
    rows = [
        BarRow(keys.tokens[at], (float(totals[at]),), (signed(float(totals[at]), 2),), at == key)
        for at in listed
    ]
    if n := int(seen.sum()) - len(listed):
        rest = float(totals.sum() - totals[listed].sum())
        rows.append(BarRow(plural(n, "other"), (rest,), (signed(rest, 2),)))
    return Bars(title=words("tokens"), columns=("",), rows=tuple(rows), mark=(listed.index(key), 0))


def _every_source(keys: Stream, values: np.ndarray, seen: np.ndarray) -> Columns:
    """Every head and token with the contribution of one from the other."""
    values, places = values[..., seen], np.flatnonzero(seen)
    layer, head, at = (each.ravel() for each in np.indices(values.shape))
    return {
        "layer": layer,
        "head": head,
        "key": places[at],
        "token": [keys.tokens[key] for key in places[at].tolist()],
        "contribution": values.ravel(),
    }
