"""The panels on a run under edits beside the run as trained: experiments, the effect of edits, one
head, the residual stream, models trained without a part, activation patching."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import interventions, offers, opening
from explorer.analysis import words as words_analysis
from explorer.analysis.attention import argmax_id
from explorer.analysis.terminology import ABLATION_EDITS, edits_without, norm_name
from explorer.analysis.word_classes import is_word
from explorer.figures.csv import Cells
from explorer.figures.formatting import (
    Written,
    fixed,
    hundredths,
    named_word,
    percent,
    signed,
    tenths,
)
from explorer.figures.kinds import BarRow, Bars, Chart, Figure, Matrix, Series, Stack, TextTable
from explorer.panels import flow_way, spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    ATTENTION,
    HEAD,
    LAYER,
    STREAM,
    TOKEN,
    Selection,
    StreamSelection,
    place_of,
    select,
    select_stream,
)
from explorer.panels.spec import Panel
from explorer.text import head_naming
from explorer.wording.templates import named, sentences
from models import model_names
from models.contract.cancellation import expect_wanted
from models.contract.edits import (
    Edit,
    HideToken,
    HideWord,
    PatchHead,
    PatchSite,
    WithMask,
    WithoutFeedForward,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    from_line,
    to_line,
)
from models.contract.recording import Attention, NotFinite, Recording
from models.own import model_card
from models.runtime.caching import in_slot, loaded, memo
from models.runtime.run import Run, run_of

CONCEPT = "interventions"
N_WORDS = 8  # that both runs are compared in
CELL = "row and column of the framed patch, a dot between them; the largest effect without one"
MAX_EDITS = 300  # of a line that are read
MAX_TOKENS = 128  # of a text that all experiments are run on at once
MAX_SWEEP = 10_000  # tokens that a sweep of patches reads when it is made in one go
MAX_TOLD = 60  # letters of the words in which two sentences differ
LEAST_SHARE = 0.1  # of the way to another answer, from which on a patch is told
TINY = 1e-30  # of a probability
NOTICED = 0.01  # of a probability, from which on it is called lower
LEAST_TOP = 0.2  # of the scale of a map of changes, so that small ones stay pale
LITTLE_KL = 1e-3  # nats, below which a prediction is called the same
UNITS = {"Heads": "every head", "Sites": "every state of every token"}
Edits = tuple[Edit, ...]


# ---- a run as trained, and under edits -----------------------------------------------------------


def can_follow(recording: Recording, *kinds: type) -> bool:
    """True where the model can follow edits of all these kinds."""
    can = loaded(recording).capabilities.edits
    return all(issubclass(kind, can) for kind in kinds)


def scales_scores(recording: Recording) -> bool:
    """True where q · k is multiplied by a scale other than 1 (T5 has none)."""
    return any((each.scale != 1).any() for each in recording.attention)


def record_edited(plain: Recording, edits: Edits) -> Recording:
    """The same text under edits; a decoder of two texts reads what it reads as trained. Raises
    ValueError for edits that cannot be followed, NotFinite for numbers that overflow."""
    if not edits:
        return plain
    return run_of(plain).under(edits).recording()


def refusal(plain: Recording, edits: Edits) -> str:
    """Reason that the model cannot follow edits, "" where it can. Numbers that overflow are no
    refusal."""
    try:
        record_edited(plain, edits)
    except NotFinite:
        pass
    except ValueError as error:
        return str(error)
    return ""


def read_edits(plain: Recording, line: str) -> tuple[Edits, list[str]]:
    """The edits of a line of an address that this model and text can follow, and why its other
    words are left out."""
    lines = sentences(CONCEPT, "shared")
    words = [word for each in line.split(",") if (word := each.strip())]
    edits: list[Edit] = []
    left_out: list[str] = []
    if len(words) > MAX_EDITS:
        left_out.append(lines("cut_edits", most=MAX_EDITS, n=len(words)))
    for word in words[:MAX_EDITS]:
        try:
            edits += from_line(word)
        except ValueError:
            left_out.append(lines("no_edit", text=word[:60]))
    edits = list(dict.fromkeys(edits))
    if refusal(plain, tuple(edits)):
        reasons = {edit: refusal(plain, (edit,)) for edit in edits}
        edits = [edit for edit, why in reasons.items() if not why]
        left_out += filter(None, reasons.values())
    return tuple(edits), left_out


def masking(plain: Recording, token: int) -> Edits:
    """The edit that masks a token in both runs of a model that predicts masked words; () where it
    is special or cannot be masked."""
    if plain.model.kind != "encoder" or plain.streams[-1].special[token]:
        return ()
    if not loaded(plain).capabilities.logits:
        return ()
    return () if refusal(plain, (HideToken(token),)) else (HideToken(token),)


def can_mask(run: Run, chosen: Mapping[str, Any]) -> tuple[bool, ...]:
    """The ways to read the token whose prediction is compared: masked or not where it can be masked
    at all."""
    plain = replace(run, edits=()).recording()
    token = opening.compared(plain) if chosen.get("token") is None else chosen["token"]
    return (True, False) if masking(plain, token) else ()


MASKED = Choice(
    can_mask,
    "Mask the selected word for the prediction",
    menu=True,
    help=sentences(CONCEPT, "tab")("mask"),
)
Masked = Annotated[bool, MASKED]


@dataclass(frozen=True, eq=False)
class Pair:
    """A recording as trained, the token whose prediction is compared, and the edit that masks it in
    both runs, () for none."""

    plain: Recording
    at: StreamSelection
    hidden: Edits

    def prediction(self, edits: Edits) -> interventions.PredictionChange | str:
        """The predictions at the token with and without edits, or why there is none."""
        plain, at = self.plain, self.at
        try:
            if not loaded(plain).capabilities.logits:
                loaded(plain).logits(plain, at.stream.name, at.token)  # raises with the reason
            one, other = (record_edited(plain, (*self.hidden, *more)) for more in ((), edits))
            return interventions.prediction_change(
                loaded(one).logits(one, at.stream.name, at.token),
                loaded(other).logits(other, at.stream.name, at.token),
            )
        except NotFinite as why:
            return overflow(why.site)
        except ValueError as error:
            return str(error)

    @property
    def place(self) -> str:
        """The token, for a caption."""
        words = sentences(CONCEPT, "shared")
        return words(
            "masked_token" if self.hidden else "token", token=self.at.token, word=self.at.word
        )

    @property
    def title(self) -> str:
        """Title of the prediction at the token."""
        words, kind = sentences(CONCEPT, "shared"), self.plain.model.kind
        name = "predict_next" if kind != "encoder" else "predict_seen"
        return words("predict_masked" if self.hidden else name, word=self.at.word)


def pair(run: Run, token: int | None = None, masked: bool = True) -> Pair:
    """The run as trained and a token of its last stream, the default one where None. Raises
    ValueError for a token that is not there."""
    plain_run = replace(run, edits=())
    plain = plain_run.recording()
    token = opening.compared(plain) if token is None else token
    at = select_stream(plain_run, token, plain.streams[-1].name)
    return Pair(plain, at, masking(plain, token) if masked else ())


def _edited(run: Run, plain: Recording) -> Recording:
    """The run under its edits. Raises ValueError where its numbers overflow."""
    try:
        return record_edited(plain, run.edits)
    except NotFinite as why:
        raise ValueError(overflow(why.site)) from None


def overflow(site: str) -> str:
    """Sentence on a run whose numbers overflow; site: the first place where a number is not finite,
    its stream before it where there are several."""
    stream, _, place = site.rpartition(" ")
    where = head_naming.site(place) + (f" in the {stream}" if stream else "")
    return sentences(CONCEPT, "shared")("overflow", place=where)


def _attention_of(recording: Recording, name: str) -> Attention:
    """An attention by its name, the first one where ""."""
    return next(each for each in recording.attention if name in ("", each.name))


def _distances(selected: Selection, edited: Recording) -> np.ndarray:
    """Change of each head (layer, head), the Jensen-Shannon distance; kept with the edited
    recording."""
    before, after = selected.attention, _attention_of(edited, selected.attention.name)
    return memo(
        edited, ("head distances", before.name), lambda: interventions.head_distances(before, after)
    )


def changed_head(
    run: Run, layer: int | None = None, head: int | None = None, attention: str = ""
) -> tuple[int, int]:
    """(layer, head): the one named, else the one whose attention changed most."""
    selected = select(replace(run, edits=()), attention=attention)
    if layer is not None and head is not None:
        n_layers, n_heads = selected.attention.pattern.shape[:2]
        return place_of("layer", layer, n_layers), place_of("head", head, n_heads)
    distance = _distances(selected, _edited(run, selected.recording))
    return next(iter(interventions.most_changed(distance, 1)), (0, 0))


def _as_trained(choice: Choice) -> Choice:
    """A part of the selection, which is of the run as trained: edits may leave no number finite."""

    def of(function: Any) -> Any:
        plain = lambda run, *more: function(replace(run, edits=()), *more)
        return plain if callable(function) else function

    return replace(
        choice,
        suits=of(choice.suits),
        checked=of(choice.checked),
        spelled=of(choice.spelled),
    )


def _changed(at: int) -> Callable[[Run, Mapping[str, Any]], int]:
    """The layer, 0, or the head, 1, that edits change most, or where there are none that an
    attention opens on."""

    def place(run: Run, chosen: Mapping[str, Any]) -> int:
        on = select(replace(run, edits=()), attention=chosen.get("attention") or "")
        try:
            if run.edits:
                return changed_head(run, attention=on.attention.name)[at]
        except ValueError:  # numbers that overflow, which the panel says
            pass
        return _answering(at)(run, chosen)

    return place


def _answering(at: int) -> Callable[[Run, Mapping[str, Any]], int]:
    """The layer, 0, or the head, 1, from which the guess comes, as Flow has it, where there is one
    of the attention; else those that the attention opens on."""

    def place(run: Run, chosen: Mapping[str, Any]) -> int:
        name = chosen.get("attention") or ""
        selected = select(replace(run, edits=()), attention=name)
        on = pair(run, chosen.get("token"))
        if loaded(on.plain).capabilities.logits:
            drawn = record_edited(on.plain, on.hidden)
            answer = argmax_id(loaded(drawn).logits(drawn, on.at.stream.name, on.at.token))
            found = flow_way.answering_head(on.plain, drawn, on.at.token, answer)
            if found and found.attention.name == selected.attention.name:
                return found[1:3][at]
        return opening.head(selected.recording, selected.attention)[at]

    return place


TRAINED_LAYER = replace(_as_trained(LAYER), suits=_answering(0))
TRAINED_HEAD = replace(_as_trained(HEAD), suits=_answering(1))
TrainedAttention = Annotated[str, _as_trained(ATTENTION)]
TrainedLayer = Annotated[int, TRAINED_LAYER]
TrainedHead = Annotated[int, TRAINED_HEAD]
ChangedLayer = Annotated[int, replace(TRAINED_LAYER, suits=_changed(0))]
ChangedHead = Annotated[int, replace(TRAINED_HEAD, suits=_changed(1))]
TRAINED_STREAM = _as_trained(replace(STREAM, suits=lambda run, _: run.recording().streams[-1].name))
TrainedStream = Annotated[str, TRAINED_STREAM]
Compared = Annotated[
    int,
    _as_trained(
        replace(
            TOKEN,
            suits=lambda run, _: opening.compared(run.recording()),
            checked=lambda run, _, value: place_of(
                "token", value, len(run.recording().streams[-1].tokens)
            ),
        )
    ),
]


MEANS = named(CONCEPT, "means")  # what experiments do, by their names

# ---- experiments ---------------------------------------------------------------------------------


def named_experiments(plain: Recording, layer: int, head: int, attention: str) -> dict[str, Edits]:
    """The experiments that a model can follow, by their names: a head ablated, and parts removed
    that it has."""
    words = sentences(CONCEPT, "experiments")
    sites, shows = plain.streams[0].sites, loaded(plain).capabilities
    edits: dict[str, Edits] = {
        words("ablate", layer=layer, head=head): (ZeroHead(layer, head, attention),),
        words("positions"): (WithoutPositions(),),
        **({words("scale"): (WithoutScale(),)} if scales_scores(plain) else {}),
        words("residual"): (WithoutResidual(),),
        words("ffn"): (WithoutFeedForward(),),
    }
    if any(site.endswith(".normed") or site.endswith(".read") for site in sites):
        edits[words("norm", norm=norm_name([not shows.rms]))] = (WithoutNorm(),)
    if plain.model.kind != "decoder":
        edits[words("mask")] = (WithMask(),)
    absent = ABLATION_EDITS.get(str(model_card.facts(plain.model.name).get("without", "")))
    return {
        name: each
        for name, each in edits.items()
        if each != absent and can_follow(plain, *map(type, each))
    }


@spec.predicts
@spec.panel
def experiments(
    run: Run,
    token: Compared = OPENS,
    layer: TrainedLayer = OPENS,
    head: TrainedHead = OPENS,
    attention: TrainedAttention = OPENS,
    masked: Masked = True,
) -> Panel:
    """Named experiments beside each other: what each does to the model's own prediction at a token
    and to its attention.

    layer, head: the head that one of them ablates. masked: True where the token is masked. Raises
    ValueError for a run with edits, a long text, and a model that follows no edits.
    """
    words = sentences(CONCEPT, "experiments")
    if run.edits:
        raise ValueError(words("edited"))
    on, selected = pair(run, token, masked), select(run, layer, head, 0, attention)
    layer, head, _ = selected.at
    n = len(on.plain.streams[0].tokens)
    if n > MAX_TOKENS:
        raise ValueError(words("long", n=n, most=MAX_TOKENS))
    asked = named_experiments(on.plain, layer, head, selected.attention.name)
    if not asked:
        raise ValueError(words("closed", model=selected.model))
    plain = on.prediction(())
    word, p = "", float("nan")
    if not isinstance(plain, str):
        (word,), p = (
            run.loaded.labels([plain.top_before]),
            float(plain.before[plain.top_before]),
        )
    rows = [_Outcome(words("none"), "", p, "", 0.0)]
    rows += [_outcome(on, selected, name, edits) for name, edits in asked.items()]
    by_word = bool(word)
    columns = (words("p", word=word),) if by_word else ()
    return Panel(
        title=words("title"),
        finding=_experiments_finding(rows, word, p),
        figures=(
            Bars(
                title=on.title if by_word else words("attention_title"),
                select=("edits",),
                columns=(*columns, words("attention")),
                rows=tuple(row.bars(by_word) for row in rows),
                header=words("header"),
                note=" ".join(
                    (words("note"), *(MEANS[row.name] for row in rows if row.name in MEANS))
                ),
                hint=words("hint"),
            ),
        ),
        table={
            "experiment": [row.name for row in rows],
            "edits": [row.line for row in rows],
            "probability": [row.p for row in rows],
            "top prediction": [row.top or word for row in rows],
            "mean change of rows": [row.distance for row in rows],
        },
        details=words.lines("details"),
        caption=(on.place, words("caption", attention=selected.attention.name)),
        file="experiments",
        numbers={"answer_before": Written.by(_percent, p)} if word else {},
    )


@dataclass(frozen=True)
class _Outcome:
    """An experiment: its name, its edits in a line, the probability of the word that the model
    predicts as trained, another top prediction ("" for the same) and the mean change of rows."""

    name: str
    line: str
    p: float
    top: str
    distance: float

    def bars(self, by_word: bool) -> BarRow:
        """The experiment as a row of bars."""
        words = sentences(CONCEPT, "experiments")
        p = _percent(self.p) if np.isfinite(self.p) else words("overflow")
        text = words("p_top", p=p, word=self.top) if self.top else p
        change = fixed(self.distance) if np.isfinite(self.distance) else "–"
        values = tuple(float(np.nan_to_num(each)) for each in (self.p, self.distance))
        texts = (text, change)
        first = 0 if by_word else 1
        return BarRow(self.name, values[first:], texts[first:], key=self.line)


def _percent(p: float) -> str:
    """A probability in per cent; one that single precision makes 0 is below a tenth."""
    return tenths(max(p, TINY))


def _outcome(on: Pair, selected: Selection, name: str, edits: Edits) -> _Outcome:
    """Run one experiment and compare its prediction and attention with the plain run's."""
    nan = float("nan")
    try:
        distance = _distances(selected, record_edited(on.plain, edits))
    except ValueError:  # numbers that overflow
        return _Outcome(name, to_line(edits), nan, "", nan)
    mean = float(np.nanmean(distance)) if not np.isnan(distance).all() else 0.0
    change = on.prediction(edits)
    if isinstance(change, str):
        return _Outcome(name, to_line(edits), nan, "", mean)
    same = change.top_after == change.top_before
    top = "" if same else _named(on.plain, change.top_after)
    return _Outcome(name, to_line(edits), float(change.after[change.top_before]), top, mean)


def _named(recording: Recording, token: int) -> str:
    """A token of the vocabulary in quotes; one that is no text is said to be no word."""
    model = loaded(recording)
    word = named_word(model.labels([token])[0])
    special = model.is_special(token) and not model.is_end(token)
    return sentences(CONCEPT, "experiments")("no_word", word=word) if special else word


def _experiments_finding(rows: Sequence[_Outcome], word: str, p: float) -> str:
    """Sentence on the experiment that changes the prediction most, or attention where there is no
    prediction."""
    words = sentences(CONCEPT, "experiments")
    if not word:
        most = max(rows[1:], key=lambda row: np.nan_to_num(row.distance))
        return words("finding_attention", experiment=most.name, distance=fixed(most.distance))
    most = max(rows[1:], key=lambda row: abs(row.p - p) if np.isfinite(row.p) else -1.0)
    slots = {"word": word, "before": tenths(p), "experiment": most.name}
    if not abs(most.p - p) >= NOTICED:
        return words("finding_none", **slots)
    if turned := [row for row in rows[1:] if row.top and np.isfinite(row.p)]:
        most = min(turned, key=lambda row: row.p)
        slots |= {"experiment": most.name, "top": most.top}
        return words("turns", n=len(turned), after=_percent(most.p), **slots)
    finding = words("rises" if most.p > p else "falls", after=_percent(most.p), **slots)
    if abs(p - rows[1].p) < NOTICED:
        finding += " " + words("finding_head", experiment=rows[1].name)
    return finding


# ---- the effect of edits -------------------------------------------------------------------------


@spec.predicts
@spec.panel
def effect(
    run: Run,
    token: Compared = OPENS,
    layer: ChangedLayer = OPENS,
    head: ChangedHead = OPENS,
    attention: TrainedAttention = OPENS,
    masked: Masked = True,
) -> Panel:
    """The predictions of both runs at a token, and how far the attention of each head moved.

    layer, head: the head that is framed, the one that changed most where None. masked: True where
    the token is masked in both runs. Raises ValueError for what is not there and for edits that
    the model cannot follow.
    """
    words, on = sentences(CONCEPT, "effect"), pair(run, token, masked)
    out = taken_out(on.plain, run.edits)
    selected = select(replace(run, edits=()), layer or 0, head or 0, 0, attention)
    edited = _edited(run, on.plain)
    # A covered word is what the reader is asked for.
    change = on.prediction(run.edits) if run.covered is None else ""
    measured = _measured(on, edited, change)
    figures: list[Figure] = []
    if not isinstance(change, str):
        figures.append((_left_bars if out else _prediction_bars)(on, change, bool(run.edits)))
    if len(on.plain.streams) > 1 and run.edits:
        figures = [Stack(figures=(*figures, _translations(run, on.plain)))]
    distance = _distances(selected, edited)
    if run.edits or not figures:
        at = changed_head(run, layer, head, selected.attention.name)
        figures.append(_head_map(distance, at, bool(on.hidden)))
    finding = words("nothing")
    if run.edits:
        turned = "" if isinstance(change, str) or change.top_before == change.top_after else out
        parts = (_moved_prediction(on, change, turned), "" if turned else _moved_head(distance))
        finding = " ".join(filter(None, parts)) or words("unchanged")
    details = [f"{each[0].upper()}{each[1:]}." for each in interventions.change_sentences(measured)]
    if isinstance(change, str) and change:
        details.append(words("no_prediction", why=change.rstrip(".")))
    return Panel(
        title=words("title"),
        finding=finding,
        figures=tuple(figures),
        table=_effect_table(on, measured, change),
        details=(*details, *words.lines("details")),
        caption=(on.place, *_target_line(on.plain)),
        file="effect",
        numbers={} if isinstance(change, str) else _of_answer(change),
    )


def _of_answer(change: interventions.PredictionChange) -> dict[str, Written]:
    """The probability of the likeliest word of the unedited run, in it and in the edited one."""
    id = change.top_before
    return {
        "answer_before": Written.by(_percent, change.before[id]),
        "answer_after": Written.by(_percent, change.after[id]),
    }


def _moved_prediction(on: Pair, change: interventions.PredictionChange | str, out: str = "") -> str:
    """Sentence on the change of the prediction, "" where there is none. out: what the edits take
    out, which begins the sentence where the prediction turns without it."""
    if isinstance(change, str):
        return ""
    words = sentences(CONCEPT, "effect")
    word, top = loaded(on.plain).labels((change.top_before, change.top_after))
    before, after = _of_answer(change).values()
    name = "stays" if before.text == after.text else "falls" if after < before else "rises"
    sentence = words(name, word=word, before=before, after=after)
    if out:
        return f"{words('without', out=out, first=word, second=top)} {sentence}"
    if change.top_before == change.top_after:
        return f"{sentence} {words('little')}" if change.kl < LITTLE_KL else sentence
    return f"{sentence} {words('now', word=top, p=_percent(float(change.after[change.top_after])))}"


def _moved_head(distance: np.ndarray) -> str:
    """The head whose attention changed most, "" where none did."""
    changed = interventions.most_changed(distance, 2)
    if not changed:
        return ""
    (layer, head), *_ = changed
    values = [fixed(float(distance[at])) for at in changed]
    digits = 3 if len(set(values)) < len(values) else 2
    change = fixed(float(distance[layer, head]), digits)
    return sentences(CONCEPT, "effect")("head", layer=layer, head=head, change=change)


def _target_line(plain: Recording) -> tuple[str, ...]:
    """Line with the target that both decoders read; none for a model without a target."""
    if not plain.target:
        return ()
    return (sentences(CONCEPT, "shared")("target", target=" ".join(plain.target.split())),)


def _measured(
    on: Pair, edited: Recording, change: interventions.PredictionChange | str
) -> tuple[interventions.QuantityChange, ...]:
    """Every measured quantity of both runs, the largest change first."""
    if isinstance(change, str):
        make = lambda: interventions.quantity_changes(on.plain, edited)
        return memo(edited, ("quantity changes",), make)
    before, after = loaded(on.plain).labels((change.top_before, change.top_after))
    return memo(
        edited,
        ("quantity changes", on.at.token, bool(on.hidden)),
        lambda: interventions.quantity_changes(on.plain, edited, change, (before, after)),
    )


def _prediction_bars(on: Pair, change: interventions.PredictionChange, edited: bool) -> Bars:
    """The likeliest words of both runs, before and after."""
    words = sentences(CONCEPT, "effect")
    best = change.top(N_WORDS)
    runs = (change.before, change.after) if edited else (change.before,)
    rows = tuple(
        BarRow(
            label,
            tuple(float(p[id]) for p in runs),
            tuple(tenths(float(p[id])) for p in runs),
            selected=id == change.top_before,
        )
        for id, label in zip(best, loaded(on.plain).labels(best))
    )
    return Bars(
        title=on.title,
        columns=words.lines("columns") if edited else (words("probability"),),
        rows=rows,
        high=max(value for row in rows for value in row.values),
        note=words("kl", kl=fixed(change.kl)) if edited else "",
    )


def _left_bars(on: Pair, change: interventions.PredictionChange, edited: bool) -> Bars:
    """The likeliest words without what is taken out, in frames as long as with it."""
    words, bars = sentences(CONCEPT, "effect"), _prediction_bars(on, change, edited)
    rows = tuple(
        replace(row, values=row.values[1:], texts=(" → ".join(row.texts),), outline=row.values[0])
        for row in bars.rows
    )
    return replace(bars, columns=words.lines("columns")[1:], rows=rows, note=words("frames"))


def taken_out(plain: Recording, edits: Edits) -> str:
    """The part that edits take out, as a sentence names it, where that is one word or one head; ""
    else."""
    words = sentences(CONCEPT, "shared")
    if len(edits) == 1 and isinstance(edits[0], ZeroHead):
        return words("head_out", layer=edits[0].layer, head=edits[0].head)
    for place, label in words_to_take_out(plain).items():
        if words_analysis.hidden_word(plain, place) == edits:
            return words("word_out", word=label)
    return ""


def words_to_take_out(plain: Recording, but: int | None = None) -> dict[int, str]:
    """The words of the text that is read, by their first tokens; but: a token whose word is left
    out."""
    stream = plain.streams[0]
    grouped = words_analysis.words(stream, plain.text)
    return {
        start: label
        for at, (start, label) in enumerate(zip(grouped.starts, grouped.labels))
        if is_word(label)
        and not grouped.special[at]
        and (but is None or not 0 <= but < grouped.n or at != grouped.of[but])
    }


# ---- each word taken out -------------------------------------------------------------------------


def can_take_out(on: Pair) -> bool:
    """True where each word of a text can be taken out at once, one by one: where the model follows
    that, predicts words, and takes about a second for it."""
    plain, asked = on.plain, edits_of_words(on)
    n = sum(len(each.tokens) for each in plain.streams)
    work = n * (len(asked) + 1) * plain.model.n_parameters
    has_readout = bool(loaded(plain).capabilities.logits)
    return bool(asked) and can_follow(plain, HideWord) and has_readout and work <= offers.MAX_WORK


def edits_of_words(on: Pair) -> dict[int, Edits]:
    """The edits that take out each word that the prediction may read, but its own, by their first
    tokens."""
    plain, at = on.plain, on.at
    of_source = at.stream.name == plain.streams[0].name
    reads_all = plain.model.kind == "encoder" or not of_source
    return {
        place: words_analysis.hidden_word(plain, place)
        for place in words_to_take_out(plain, at.token if of_source else None)
        if reads_all or place < at.token
    }


def each_word_out(
    on: Pair, asked: Mapping[int, Edits]
) -> dict[int, interventions.PredictionChange]:
    """The change of the prediction by edits of each of some words, by their first tokens. It ends
    between two passes where nobody waits for it any more. Raises ValueError where the model cannot
    follow one."""
    changes = {}
    for place, edits in asked.items():
        expect_wanted()
        change = on.prediction(edits)
        if isinstance(change, str):
            raise ValueError(f"{change.rstrip('.')}.")
        changes[place] = change
    return changes


@spec.predicts
@spec.panel
def words_out(run: Run, token: Compared = OPENS, masked: Masked = True) -> Panel:
    """The model's prediction at a token when one word is taken out: no other token reads it, in any
    layer and head. Of each word of the text.

    masked: True where the token is masked. Raises ValueError for a run under edits that do
    something else, a long text, and a model that cannot follow such an edit or predicts no
    words.
    """
    words = sentences(CONCEPT, "words_out")
    if edits_without(run.edits, HideWord):
        raise ValueError(words("edited"))
    on = pair(run, token, masked)
    if (n := len(on.plain.streams[0].tokens)) > MAX_TOKENS:
        raise ValueError(words("long", n=n, most=MAX_TOKENS))
    asked, labels = edits_of_words(on), words_to_take_out(on.plain)
    if not asked:
        raise ValueError(words("none"))
    changes = each_word_out(on, asked)
    first = next(iter(changes.values()))
    id, before = first.top_before, float(first.before[first.top_before])
    word, *tops = run.loaded.labels([id, *(each.top_after for each in changes.values())])
    left = {place: float(each.after[id]) for place, each in changes.items()}
    rows = []
    for (place, p), top in zip(left.items(), tops):
        line = "" if asked[place] == run.edits else to_line(asked[place])
        turned = changes[place].top_after != id
        text = words("turned", p=_percent(p), word=top) if turned else _percent(p)
        rows.append(BarRow(labels[place], (p,), (text,), not line, line, before))
    turning = {place: top for place, top in zip(left, tops) if changes[place].top_after != id}
    finding, mark = words("no_word", word=word, before=tenths(before)), None
    if turning:  # a model that now says the word itself, or none, comes last
        last = {
            place: top.casefold() == labels[place].casefold() or not is_word(top)
            for place, top in turning.items()
        }
        most = min(turning, key=lambda place: (last[place], left[place]))
        mark = [*left].index(most), 0
        out = sentences(CONCEPT, "shared")("word_out", word=labels[most])
        without = sentences(CONCEPT, "effect")
        finding = without("without", out=out, first=word, second=turning[most])
    slots = {"hidden": on.at.word, "word": word, "before": tenths(before)}
    asks = "hidden" if on.hidden else "next" if on.plain.model.kind != "encoder" else "seen"
    return Panel(
        title=words(f"title_{asks}", **slots),
        finding=finding,
        figures=(
            Bars(
                title=words("left", word=word),
                select=("edits",),
                columns=(words("p", word=word),),
                rows=tuple(rows),
                mark=mark,
                header=words("header"),
                note=words("note", **slots),
                hint=words("hint"),
            ),
        ),
        table={
            "word": [labels[place] for place in left],
            "edits": [to_line(each) for each in asked.values()],
            "probability": list(left.values()),
            "top prediction": tops,
        },
        details=words.lines("details"),
        caption=(on.place,),
        file="words-out",
    )


def _translations(run: Run, plain: Recording) -> TextTable:
    """Table of a translator's outputs in both runs."""
    words = sentences(CONCEPT, "effect")
    try:
        own = run.loaded.record(run.text_or_ids, run.edits).target
    except ValueError as error:
        own = f"({error})"
    before, after = words.lines("columns")
    rows = ((before, plain.target or "–"), (after, own or "–"))
    return TextTable(
        title=words("translation"), columns=words.lines("translation_columns"), rows=rows
    )


def _head_map(distance: np.ndarray, at: tuple[int, int], is_masked: bool) -> Matrix:
    """Map of each head's change (layer, head), with one head framed. is_masked: the prediction
    beside it is of another text, in which its word is masked."""
    words = sentences(CONCEPT, "effect")
    layers, heads = distance.shape
    return Matrix(
        title=words("map"),
        note=words("map_note_typed" if is_masked else "map_note"),
        hint=words("map_hint"),
        select=("layer", "head"),
        rows=tuple(f"layer {at}" for at in range(layers)),
        columns=tuple(map(str, range(heads))),
        values=distance,
        high=max(LEAST_TOP, float(np.nanmax(distance, initial=0))),
        marks=((*at, ""),),
        sides=("", "head"),
        missing=words("one_key"),
        wide=True,
    )


def _effect_table(
    on: Pair,
    measured: Sequence[interventions.QuantityChange],
    change: interventions.PredictionChange | str,
) -> spec.Columns:
    """Every measured quantity, and the probabilities of the likeliest words."""
    words = sentences(CONCEPT, "effect")
    columns: dict[str, list] = {
        "measured": [each.name for each in measured],
        "before": [each.before for each in measured],
        "after": [each.after for each in measured],
        "moved, 0 to 1": [each.magnitude for each in measured],
    }
    if isinstance(change, str):
        return columns
    best = [id for id in change.top(N_WORDS) if id != change.top_before]
    labels = loaded(on.plain).labels(best)
    p, q = ([float(run[id]) for id in best] for run in (change.before, change.after))
    more: tuple[list, ...] = (
        [words("p_of", word=label) for label in labels],
        p,
        q,
        [abs(after - before) for before, after in zip(p, q)],
    )
    return {name: [*values, *add] for (name, values), add in zip(columns.items(), more)}


# ---- one head, before and after ------------------------------------------------------------------


@spec.panel
def head_attention(
    run: Run,
    layer: ChangedLayer = OPENS,
    head: ChangedHead = OPENS,
    attention: TrainedAttention = OPENS,
) -> Panel:
    """One head's attention before the edits, after them, and the difference.

    layer, head: the one that changed most where None. Raises ValueError for what is not there.
    """
    words = sentences(CONCEPT, "head_attention")
    at = changed_head(run, layer, head, attention)
    before = select(replace(run, edits=()), *at, 0, attention)
    after = _attention_of(_edited(run, before.recording), before.attention.name)
    one, other = before.attention.pattern[at], after.pattern[at]
    difference = other.astype(np.float64) - one
    may_before, may_after = before.attention.allowed[at[0]], after.allowed[at[0]]
    allowed = may_before | may_after
    row, key = divmod(int(np.abs(difference).argmax()), difference.shape[1])
    rows, keys = before.axes.rows, before.axes.keys
    slots = {"query": rows[row], "key": keys[key]}
    ends = (hundredths(float(each[row, key])) for each in (one, other))
    slots |= dict(zip(("before", "after"), ends))
    changed = abs(difference[row, key]) > interventions.MIN_CHANGE
    marks = ((row, key, ""),) if changed else ()
    titles = words.lines("titles")
    matrices = [(titles[0], one, may_before)]
    if run.edits:
        matrices.append((titles[1], other, may_after))
    figures = [
        Matrix(
            title=title,
            rows=tuple(rows),
            columns=tuple(keys),
            values=np.where(may, values, np.nan),
            marks=marks,
            sides=("query", "key"),
            missing="" if may.all() else words("masked"),
        )
        for title, values, may in matrices
    ]
    if run.edits:
        high = float(np.abs(difference).max()) or 1.0
        values = np.where(allowed, difference, np.nan)
        last = replace(figures[0], title=titles[2], values=values, high=high, signed=True)
        figures.append(last)
    name = "largest" if changed else "ablated" if _is_ablated(run, at) else "unchanged"
    several = len(before.recording.attention) > 1
    return Panel(
        title=words("title", layer=at[0], head=at[1]),
        finding=words(name if run.edits else "no_edit", **slots),
        figures=tuple(figures),
        table=interventions.matrix_columns(one, other, rows, keys),
        caption=(
            words("caption"),
            *((words("which", attention=before.attention.name),) if several else ()),
            *_target_line(before.recording),
        ),
        file=f"edited-L{at[0]}H{at[1]}",
    )


def _is_ablated(run: Run, at: tuple[int, int]) -> bool:
    return any(isinstance(edit, ZeroHead) and (edit.layer, edit.head) == at for edit in run.edits)


# ---- the residual stream, before and after -------------------------------------------------------


@spec.panel
def residual_stream(run: Run, token: Compared = OPENS, stream: TrainedStream = OPENS) -> Panel:
    """The norms of a token's vectors in both runs, and the distance between them, state by state.

    stream: its name, the last one where "". Raises ValueError for what is not there.
    """
    words = sentences(CONCEPT, "residual_stream")
    plain_run = replace(run, edits=())
    plain = plain_run.recording()
    name = stream
    at = min(token, len(plain.stream(name).tokens) - 1)
    selected = select_stream(plain_run, at, name)
    at = selected.token
    edited = _edited(run, plain)
    paths = memo(
        edited,
        ("paths", name),
        lambda: interventions.stream_paths(selected.stream, edited.stream(name)),
    )
    states = [head_naming.short_site(each) for each in paths.places]
    columns = dict(interventions.path_columns(paths, at)) | {"state": states}
    before, after = words.lines("runs")
    lengths = [(selected.word, ""), (words("mean"), "mean ")]
    norms = [
        (f"{who}, {when}", columns[f"{mean}length {key}"], key == "after" and not mean)
        for who, mean in lengths
        for when, key in ((before, "before"), (after, "after"))
        if key == "before" or run.edits
    ]
    far = [
        (selected.word, columns["distance / length before"], True),
        (words("mean"), columns["mean distance / length before"], False),
    ]
    log = bool(np.nanmax(paths.relative, initial=0.0) > 10)  # far apart
    figures = [_chart(words("norms"), norms, states, words("norm"), True)]
    finding = words("no_edit")
    if run.edits:
        figures.append(_chart(words("distances"), far, states, words("distance"), log))
        relative = np.nan_to_num(paths.relative[:, at])
        most = int(relative.argmax())
        slots = {"word": selected.word, "state": states[most], "times": fixed(relative[most])}
        finding = words("finding" if relative[most] else "unchanged", **slots)
    return Panel(
        title=words("title", word=selected.word),
        finding=finding,
        figures=tuple(figures),
        table=columns,
        details=words.lines("details"),
        caption=(
            words("caption", token=at, word=selected.word, stream=name),
            *_target_line(plain),
        ),
        file=f"edited-{name}-token{at}",
    )


def _chart(
    title: str,
    series: Sequence[tuple[str, Cells, bool]],
    states: Sequence[str],
    y_title: str,
    log: bool,
) -> Chart:
    """Curves over the states of a stream. On a logarithmic axis a 0 leaves a gap."""
    x = np.arange(len(states), dtype=float)
    return Chart(
        title=title,
        series=tuple(
            Series(name, x, _positive(values) if log else np.asarray(values), main=main)
            for name, values, main in series
        ),
        y_title=y_title,
        log_y=log,
        ticks=tuple(zip(x.tolist(), states)),
    )


def _positive(values: Cells) -> np.ndarray:
    row = np.asarray(values)
    return np.where(row > 0, row, np.nan)


# ---- models that were trained without a part -----------------------------------------------------


def families() -> dict[str, tuple[interventions.AblationModel, ...]]:
    """The models that were trained without a part, by the full model that each is compared with."""
    ablations = interventions.ablation_models(model_names.cards())
    names = dict.fromkeys(each.full for each in ablations)
    return {name: tuple(each for each in ablations if each.full == name) for name in names}


def family_of(model: str, chosen: str = "") -> str:
    """The full model that others are compared with: the one chosen, else that of `model`, else the
    first. Raises ValueError where there is none."""
    known = families()
    if not known:
        raise ValueError(sentences(CONCEPT, "trained_without")("none"))
    own = (name for name, of in known.items() if model in (name, *(each.name for each in of)))
    return chosen if chosen in known else next(own, next(iter(known)))


def full_models(run: Run, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    """The full models to choose from, that of the run's family first."""
    return family_of(run.model), *families()


@spec.panel
def trained_without(
    run: Run, full: Annotated[str, Choice(full_models, "Full model", name="fair")] = ""
) -> Panel:
    """Learning curves and results of models that were trained without one part, beside the model
    that has it.

    full: that model, the one of the run's family where "". Raises ValueError where no model was
    trained without a part.
    """
    words = sentences(CONCEPT, "trained_without")
    name = family_of(run.model, full)
    ablations = families()[name]
    curves = [(name, ablations[0].full_curve), *((each.name, each.curve) for each in ablations)]
    series = [(label, curve) for label, curve in curves if len(curve)]
    results = interventions.result_columns(ablations)
    rows = tuple(tuple(map(_cell, row)) for row in zip(*results.values()))
    table = TextTable(title=words("results"), columns=tuple(results), rows=rows)
    figures: list[Figure] = [table]
    if series:
        figures.insert(
            0,
            Chart(
                title=words("curves"),
                series=tuple(
                    Series(label, curve[:, 0], curve[:, 1], main=label == name)
                    for label, curve in series
                ),
                x_title=words("step"),
                y_title=words("loss"),
            ),
        )
    losses = [loss for loss in results["last loss"][1:] if loss is not None]
    worst = results["trained without"][1:][int(np.argmax(losses))] if losses else ""
    slots = {"full": name, "part": worst, "loss": _cell(max(losses, default=0.0))}
    slots["own"] = _cell(results["last loss"][0])
    return Panel(
        title=words("title"),
        finding=words("finding" if losses else "no_curve", **slots),
        figures=tuple(figures),
        table={
            "model": [name for name, curve in series for _ in curve],
            "step": [int(step) for _, curve in series for step in curve[:, 0]],
            "loss": [float(loss) for _, curve in series for loss in curve[:, 1]],
        }
        if series
        else results,
        details=words.lines("details"),
        caption=(words("caption", full=name),),
        file=f"trained-without-{name}",
    )


def _cell(value: object) -> str:
    """A result as text."""
    return f"{value:.4g}" if isinstance(value, float) else "–" if value is None else str(value)


# ---- activation patching -------------------------------------------------------------------------


@dataclass(frozen=True)
class PatchRequest:
    """Request for a sweep of activation patches: the run that is patched, what is put in ("Heads"
    of the attention `name`, or "Sites" of the stream `name`) from the run of the `donor`, and
    logit(word) - logit(against) at a token."""

    run: Run
    unit: str
    donor: str
    name: str
    token: int
    there: int
    word: int
    against: int

    @property
    def arguments(self) -> tuple[str, str, int, int, int]:
        """Arguments of the model's sweep, after the text."""
        return self.donor, self.name, self.token, self.word, self.against

    def logits(self) -> tuple[np.ndarray, np.ndarray]:
        """The scores (id) of both sentences where the prediction is compared."""
        return _both_logits(self.run, self.donor, self.token, self.there)


@dataclass(frozen=True)
class PatchResults:
    """Result of a patching sweep: the logit difference of both sentences and what each patch made
    of it, (place, logit difference)."""

    clean: float
    donor: float
    effects: tuple[tuple[tuple, float], ...]


def _both_logits(run: Run, donor: str, token: int, there: int) -> tuple[np.ndarray, np.ndarray]:
    base, across = run.recording(), replace(run, text=donor).recording()
    stream = base.streams[-1].name
    return loaded(base).logits(base, stream, token), loaded(across).logits(across, stream, there)


def default_donor(run: Run, token: int | None = None, masked: bool = True) -> str:
    """A second sentence in which the answer at a token is another one; "" where none is known."""
    try:
        on = pair(run, token, masked)
        if not can_follow(on.plain, PatchHead, PatchSite):
            return ""
        return opening.turning_text(on.plain, on.at.token, on.hidden)
    except ValueError:  # of which the panel says why
        return ""


def _can_mask(run: Run, token: int) -> bool:
    """True where a run has a token at this place that can be masked."""
    try:
        plain = run.recording()
    except ValueError:  # which the caller names
        return True
    special = plain.streams[-1].special
    return token < len(special) and not special[token]


def patch_request(
    run: Run,
    donor: str = "",
    unit: str = "Heads",
    token: int | None = None,
    attention: str = "",
    stream: str = "",
    masked: bool = True,
) -> PatchRequest:
    """The sweep of two sentences under the edits of a run, patches left out. Arguments as of
    `patches`. Raises ValueError for what cannot be patched."""
    words = sentences(CONCEPT, "patches")
    on = pair(run, token, masked)
    if not can_follow(on.plain, PatchHead, PatchSite):
        raise ValueError(words("closed", model=on.at.model))
    donor = donor if donor.strip() else default_donor(run, token, masked)
    if not donor and loaded(on.plain).capabilities.logits:
        raise ValueError(words("no_donor"))
    edits = edits_without(run.edits, PatchHead, PatchSite)
    if on.hidden and _can_mask(replace(run, text=donor, edits=()), on.at.token):
        edits = (*on.hidden, *edits)
    base_run = Run(run.model, on.plain.text, edits)
    try:
        base, across = base_run.recording(), replace(base_run, text=donor).recording()
        if len(base.streams) > 1 and base.streams[-1].ids.tolist() != on.at.stream.ids.tolist():
            raise ValueError(words("other_output"))
        at, there = (min(on.at.token, len(each.streams[-1].tokens) - 1) for each in (base, across))
        both = _both_logits(base_run, donor, at, there)
    except ValueError as why:
        raise ValueError(words("failed", why=str(why).rstrip("."))) from None
    ids = [[each.ids.tolist() for each in one.streams] for one in (base, across)]
    if ids[0] == ids[1]:
        raise ValueError(words("equal"))
    if unit == "Heads":
        name = select(base_run, attention=attention).attention.name
    else:
        name = select_stream(base_run, 0, stream or base.streams[-1].name).stream.name
    return PatchRequest(base_run, unit, donor, name, at, there, *interventions.contrast(*both))


def sweep(request: PatchRequest, results: PatchResults | None = None) -> PatchResults:
    """All patches of a request, kept beside the run; results: those made elsewhere. Raises
    ValueError where one pass after the other would take long."""
    base = request.run.recording()

    def make() -> PatchResults:
        if results is not None:
            return results
        loaded = request.run.loaded
        patch = loaded.patch_heads if request.unit == "Heads" else loaded.patch_sites

        _expect_short(_tokens_read(request))

        def whole() -> PatchResults:
            patched = patch(base.text, *request.arguments, base.edits)
            effects = tuple((each.place, each.value) for each in patched.effects)
            return PatchResults(patched.clean, patched.donor, effects)

        return in_slot(whole)

    return memo(base, ("patches", request), make)


def sweep_cost(request: PatchRequest) -> float:
    """The model's parameters times the tokens that a whole sweep reads."""
    return float(request.run.recording().model.n_parameters) * _tokens_read(request)


def _tokens_read(request: PatchRequest) -> int:
    """Tokens that a whole sweep reads: the text once for each patch."""
    base = request.run.recording()
    if request.unit == "Heads":
        return _tokens_read_for_heads(base)
    donor = replace(request.run, text=request.donor).recording()
    stream, other = (each.stream(request.name) for each in (base, donor))
    n_patches = len(interventions.named_states(stream)) * min(len(stream.tokens), len(other.tokens))
    return n_patches * len(base.streams[0].tokens)


def _tokens_read_for_heads(base: Recording) -> int:
    return base.model.n_layer * base.model.n_head * len(base.streams[0].tokens)


def _expect_short(n: int) -> None:
    """Raises ValueError for a sweep that reads too many tokens for one go."""
    if n > MAX_SWEEP:
        raise ValueError(sentences(CONCEPT, "patches")("long", n=f"{n:,}", most=f"{MAX_SWEEP:,}"))


def effect_map(request: PatchRequest, results: PatchResults) -> interventions.EffectMap:
    """Effects of patches, as a map of layers and heads, or of tokens and states."""
    base, ends = request.run.recording(), (results.clean, results.donor)
    if request.unit == "Heads":
        size = base.model.n_layer, base.model.n_head
        return interventions.effects_by_head(results.effects, size, *ends)
    stream = base.stream(request.name)
    states = tuple(interventions.named_states(stream).values())
    return interventions.effects_by_site(results.effects, stream.tokens, states, *ends)


def patch_of(
    request: PatchRequest, effects: interventions.EffectMap, cell: tuple[int, int]
) -> tuple[Edit, str]:
    """The edit of a cell of the map, and its place in words."""
    words, (row, column) = sentences(CONCEPT, "patches"), cell
    if request.unit == "Heads":
        edit: Edit = PatchHead(request.donor, row, column, request.name)
        return edit, words("head", layer=row, head=column)
    site = effects.columns[column].name
    place = words("site", site=head_naming.site(site), word=effects.rows[row], token=row)
    return PatchSite(request.donor, site, row, request.name), place


def strongest(request: PatchRequest, effects: interventions.EffectMap) -> tuple[int, int] | None:
    """The cell of the largest effect, the token that is read left out; None before any."""
    return interventions.strongest_cell(effects, None if request.unit == "Heads" else request.token)


def is_measured(effects: interventions.EffectMap, cell: tuple[int, int]) -> bool:
    """True where a sweep has come to a cell of the map."""
    rows, columns = effects.values.shape
    inside = 0 <= cell[0] < rows and 0 <= cell[1] < columns
    return inside and bool(np.isfinite(effects.values[cell]))


def patch_panel(
    request: PatchRequest, results: PatchResults, selected: tuple[int, int] | None = None
) -> Panel:
    """The panel of a sweep as far as it has come; selected: a framed cell, the one of the largest
    effect where None."""
    words, effects = sentences(CONCEPT, "patches"), effect_map(request, results)
    selected = selected if selected and is_measured(effects, selected) else None
    cell = selected or strongest(request, effects)
    one, other = request.run.loaded.labels((request.word, request.against))
    change = interventions.prediction_change(*request.logits())
    edits = words_analysis.described(request.run.recording(), request.run.edits)
    slots: dict[str, object] = {"one": one, "other": other, "token": request.token}
    slots |= {
        f"{name}_{side}": tenths(float(run[id]))
        for name, id in (("one", request.word), ("other", request.against))
        for side, run in (("here", change.before), ("there", change.after))
    }
    return Panel(
        title=words("title"),
        finding=_patch_finding(request, results, effects, cell, selected is not None, slots),
        figures=(
            _patch_matrix(request, effects, cell),
            *_patch_bars(request, results, cell, f"“{one}” − “{other}”"),
        ),
        table=interventions.map_columns(
            replace(
                effects,
                columns=tuple(
                    replace(each, name=head_naming.site(each.name)) for each in effects.columns
                ),
            )
        ),
        details=(
            words("here", **slots),
            words("there", **slots),
            words("difference", **slots, clean=signed(results.clean), donor=signed(results.donor)),
            *words.lines("details"),
        ),
        caption=(
            words("donor", donor=" ".join(request.donor.split())),
            words("read", **slots),
            *((words("edits", edits=edits),) if edits else ()),
        ),
        file=f"patching-{request.unit.lower()}",
    )


def _patch_finding(
    request: PatchRequest,
    results: PatchResults,
    effects: interventions.EffectMap,
    cell: tuple[int, int] | None,
    is_chosen: bool,
    slots: Mapping[str, object],
) -> str:
    """The effect of a patch where the two sentences have two answers; else that they have one, and
    what a chosen patch adds."""
    words = sentences(CONCEPT, "patches")
    change = interventions.prediction_change(*request.logits())
    is_turned = opening.turned(change.before, change.after)
    place = patch_of(request, effects, cell)[1] if cell is not None else ""
    of = {**slots, "place": place, "Place": place[:1].upper() + place[1:]}
    if cell is None:
        return words("begun")
    if not is_turned and not is_chosen:
        is_same = int(change.before.argmax()) == int(change.after.argmax())
        return words("same" if is_same else "near", **of)
    value = float(effects.values[cell])
    if not effects.normalised:
        return words("adds", **of, value=fixed(value))
    overtaken = results.clean + value * (results.donor - results.clean) < 0 <= results.clean
    if overtaken:
        does = words("overtakes", **of)
    elif not is_chosen and value < LEAST_SHARE:
        does = words("none_alone", **of)
    else:
        ways = ("moves", "moves_past") if value >= 0 else ("moves_away", "moves_far_away")
        is_more = abs(value) > 1  # than the whole way
        size = fixed(abs(value)) if is_more else percent(abs(value))
        does = words(ways[is_more], **of, value=size)
    return f"{does} {_answers(request, of)}"


def _answers(request: PatchRequest, slots: Mapping[str, object]) -> str:
    """The model's answers in both sentences, which are told apart by their other words."""
    words = sentences(CONCEPT, "patches")
    old, new = _differing(request.run.text, request.donor)
    if not old or not new or len(old + new) > MAX_TOLD:
        return words("answers", **slots)
    return words("answers_of", **slots, old=old, new=new)


def _differing(one: str, other: str) -> tuple[str, str]:
    """The words between those with which two texts begin and end alike."""
    a, b = one.split(), other.split()
    start = next((at for at, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    behind = zip(reversed(a[start:]), reversed(b[start:]))
    end = next((at for at, (x, y) in enumerate(behind) if x != y), 0)
    old, new = (" ".join(each[start : len(each) - end]) for each in (a, b))
    shared = old[-1:] if old[-1:] == new[-1:] and not old[-1:].isalnum() else ""
    return old.removesuffix(shared), new.removesuffix(shared)


def _patch_bars(
    request: PatchRequest, results: PatchResults, cell: tuple[int, int] | None, difference: str
) -> tuple[Bars, ...]:
    """The logit difference of both sentences and, between them, with the patch of a head; none
    beside a map of states, which takes the whole width."""
    value = dict(results.effects).get(cell) if request.unit == "Heads" and cell else None
    if value is None or cell is None:
        return ()
    words = sentences(CONCEPT, "patches")
    rows = (
        (words("row_here"), results.clean),
        (words("row_patched", layer=cell[0], head=cell[1]), value),
        (words("row_there"), results.donor),
    )
    bars = tuple(
        BarRow(label, (each,), (signed(round(each, 2)),), selected=at == 1)
        for at, (label, each) in enumerate(rows)
    )
    return (Bars(title=words("bars", difference=difference), columns=("",), rows=bars),)


def _patch_matrix(
    request: PatchRequest, effects: interventions.EffectMap, cell: tuple[int, int] | None
) -> Matrix:
    """The map of effects, layers by heads or tokens by states, with one cell framed."""
    words, by_head = sentences(CONCEPT, "patches"), request.unit == "Heads"
    base, across = request.run.recording(), replace(request.run, text=request.donor).recording()
    notes = ["scale" if effects.normalised else "raw"]
    if [len(each.tokens) for each in base.streams] != [len(each.tokens) for each in across.streams]:
        notes.append("lengths")
    columns = [(each.group, each.label) for each in effects.columns]
    return Matrix(
        title=words("map_heads" if by_head else "map_sites", part=request.name),
        note=" ".join(map(words, notes)),
        hint=words("press"),
        select=("row", "column"),
        rows=effects.rows,
        columns=tuple(label if by_head else f"{group} {label}" for group, label in columns),
        values=effects.values,
        high=effects.measure.high or 1.0,
        signed=True,
        marks=((*cell, ""),) if cell is not None else (),
        sides=("", "head") if by_head else ("token", ""),
        missing=words("not_measured"),
        wide=True,
    )


OF_SWEEP = ("patch_cell",)  # what ends with another sweep
PatchedAttention = Annotated[
    str, _as_trained(replace(ATTENTION, when=lambda _, chosen: chosen["unit"] == "Heads"))
]
PatchedStream = Annotated[
    str, replace(TRAINED_STREAM, when=lambda _, chosen: chosen["unit"] != "Heads")
]


def cells(run: Run, chosen: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """The cells of a map of effects, (row, column); none where there is nothing to patch."""
    of_sweep = {name: value for name, value in chosen.items() if name != "cell"}
    try:
        request = patch_request(run, **of_sweep)
    except ValueError:
        return ()
    base = request.run.recording()
    if request.unit == "Heads":
        return tuple(np.ndindex(base.model.n_layer, base.model.n_head))
    stream = base.stream(request.name)
    return tuple(np.ndindex(len(stream.tokens), len(interventions.named_states(stream))))


@spec.predicts
@spec.panel
def patches(
    run: Run,
    donor: Annotated[
        str,
        Choice(
            label="Second sentence",
            suits=lambda run, chosen: default_donor(
                run, chosen.get("token"), chosen.get("masked", True)
            ),
            clears=OF_SWEEP,
            help=sentences(CONCEPT, "tab")("donor"),
        ),
    ] = "",
    unit: Annotated[
        str, Choice(UNITS, "Activations to patch", name="patch", clears=OF_SWEEP)
    ] = "Heads",
    token: Compared = OPENS,
    attention: PatchedAttention = OPENS,
    stream: PatchedStream = OPENS,
    masked: Annotated[bool, replace(MASKED, clears=OF_SWEEP)] = True,
    cell: Annotated[
        tuple[int, int] | None,
        Choice(cells, name="patch_cell", of="text", help=CELL),
    ] = None,
) -> Panel:
    """Activation patching: every part of the run on another sentence, the donor, put into this run
    one by one, and what it does to the difference of two logits.

    donor: a sentence in which the answer is another one where "". unit: "Heads" of an attention,
    the first one where "", or "Sites", the states of a stream, the last one where "". token: whose
    prediction is compared. masked: True where it is masked in both. cell: row and column of a
    framed patch, that of the largest effect where None. Without a figure where no `donor` was
    found. Raises ValueError for what is not there and for what cannot be patched.
    """
    if unit == "Heads":  # of which the text alone says how many there are
        _expect_short(_tokens_read_for_heads(run.recording()))
    if not donor.strip():
        pair(run, token, masked)  # raises for what is not there
        is_closed = not can_follow(run.recording(), PatchHead, PatchSite)
        is_closed |= not run.loaded.capabilities.logits  # the request says why
        if not is_closed and not default_donor(run, token, masked):
            words = sentences(CONCEPT, "patches")
            return Panel(title=words("title"), finding=words("no_donor"), figures=())
    request = patch_request(run, donor, unit, token, attention, stream, masked)
    results = sweep(request)
    if cell is not None:
        n_rows, n_columns = effect_map(request, results).values.shape
        cell = place_of("row", cell[0], n_rows), place_of("column", cell[1], n_columns)
    return patch_panel(request, results, cell)
