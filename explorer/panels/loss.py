"""The panels on what a model is trained with: the loss of a text with its gradient at the readout,
and one step of training on a copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import logit_lens, opening
from explorer.analysis.measure import MeasureContext
from explorer.figures.formatting import Written, fixed, percent, plural, power, signed, tenths
from explorer.figures.kinds import BarRow, Bars, Facts, Stack, TokenRow, truncation_note, window
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.masks import can_hide, masked_in
from explorer.panels.selection import TOKEN, model_name, token_read
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import HideToken
from models.contract.results import TrainingStep
from models.example_texts import DEFAULT_TEXT, OPENING_TEXT
from models.runtime.caching import in_slot
from models.runtime.run import Run

CONCEPT = "loss"
N_WORDS = 8  # words that are listed one by one
MOST_TARGETS = 40  # that stand in a row
LEAST_TENTH = 0.0005  # rounds to a tenth of a percent
RATES = (0.0001, 0.001, 0.01, 0.1)


def asked(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The token whose loss a text opens on: the word that is hidden, else the one after which the
    word that came has the largest."""
    recording = run.recording()
    if run.loaded.capabilities.no_readout:
        return None
    if can_hide(recording):
        return (masked_in(run) or (opening.masked_word(recording) or 0,))[0]
    targets = MeasureContext.of(run).targets
    return targets[int(nats(run, targets).argmax())][0] if targets else 0


Asked = Annotated[int | None, replace(TOKEN, suits=asked, checked=token_read)]


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss of a text at each of its targets. at: the one of these that is spoken of; words:
    those that came; hidden: True where the model fills them in."""

    context: MeasureContext
    at: int
    words: tuple[str, ...]
    hidden: bool

    @property
    def targets(self) -> tuple[tuple[int, int], ...]:
        """Each token with the id that is right there."""
        return self.context.targets

    def row(self, nats: np.ndarray, texts: tuple[str, ...], title: str) -> TokenRow:
        """The words that came with what stands below each, the darker the larger their loss, in
        nats: by 1 − p. Of a text with a hidden word all of its words, so that a press hides
        another."""
        places, tints, below = [at for at, _ in self.targets], -np.expm1(-nats), list(texts)
        words, selected = self.words, self.at
        if self.hidden:
            stream, of = self.context.recording.streams[-1], dict(zip(places, self.words))
            selected = places[self.at]
            tints = np.zeros(len(stream.tokens))
            tints[places] = -np.expm1(-nats)
            below = [dict(zip(places, texts)).get(at, "") for at in range(len(stream.tokens))]
            words = tuple(of.get(at, each) for at, each in enumerate(stream.tokens))
            places = list(range(len(words)))
        window_places = window(len(words), (selected,), MOST_TARGETS).tolist()
        return TokenRow(
            title=title,
            note=truncation_note(len(window_places), len(words)),
            select=("token",),
            tokens=tuple(words[each] for each in window_places),
            weights=tints[window_places],
            selected=window_places.index(selected),
            texts=tuple(below[each] for each in window_places),
            keys=tuple(str(places[each]) for each in window_places),
        )


def losses(run: Run, token: int | None = None) -> Losses:
    """The targets of a text, with a word hidden where the model fills in words. Raises ValueError
    for a model without a readout, and for a text that has no target."""
    recording, words = run.recording(), sentences(CONCEPT, "refusals")
    if why := run.loaded.capabilities.no_readout:
        raise ValueError(words("no_loss", model=model_name(recording), why=why))
    token = asked(run, {}) if token is None else token
    token = token_read(run, {}, token)
    stream = logit_lens.read_stream(recording)
    hides = can_hide(recording) and not stream.special[token] and not masked_in(run)
    context = MeasureContext.of(run.under((*run.edits, HideToken(token))) if hides else run)
    if not context.targets:
        raise ValueError(words("short"))
    places = [place for place, _ in context.targets]
    at = int(np.abs(np.array(places) - token).argmin())
    names = run.loaded.labels([id for _, id in context.targets])
    return Losses(context, at, tuple(names), hides or bool(masked_in(run)))


def nats(run: Run, targets: Sequence[tuple[int, int]]) -> np.ndarray:
    """-ln p of the id that is right at each of some tokens of a run, (target)."""

    def read() -> np.ndarray:
        recording, of = run.recording(), dict(targets)
        every = MeasureContext.of(run).model.each_logits(recording, recording.streams[-1].name)
        scores = {at: log_softmax(each)[of[at]] for at, each in enumerate(every) if at in of}
        return -np.array([scores[at] for at, _ in targets])

    return run.memo(("loss of each", *targets), read)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """ln p of scores (..., id), in 64 bits."""
    scores = scores.astype(np.float64)
    scores = scores - scores.max(axis=-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=-1, keepdims=True))


def _differing(before: float, after: float) -> tuple[str, str]:
    """Two numbers in as many decimals as tell them apart, two to six."""
    texts = ((fixed(before, n), fixed(after, n)) for n in range(2, 7))
    return next((each for each in texts if each[0] != each[1]), (fixed(before), fixed(after)))


@spec.predicts
@spec.panel
def loss(run: Run, token: Asked = OPENS) -> Panel:
    """The loss of the text: -ln p of the word that came at each position, their mean, and the
    gradient of one of them at the readout, p - y.

    token: of the stream that words are read from; a model that fills in words has it hidden. Where
    it has no target, the nearest one that has. Raises ValueError for a model without a readout, and
    for a text that has no target.
    """
    of, words = losses(run, token), sentences(CONCEPT, "loss")
    stream = of.context.recording.streams[-1].name
    place, target = of.targets[of.at]
    each_nats = nats(of.context.run, of.targets)
    p = np.exp(log_softmax(of.context.logits(stream, place)))
    gradient = p - (np.arange(len(p)) == target)
    slots = {
        **{"target": of.words[of.at], "p": _chance(float(p[target])), "ids": f"{len(p):,}"},
        **{"nats": fixed(float(each_nats[of.at])), "loss": fixed(float(each_nats.mean()))},
        **{"tokens": plural(len(each_nats), "token"), "uniform": fixed(float(np.log(len(p))))},
        "total": power(abs(float(gradient.sum())), 2),
        "pull": fixed(float(-gradient[target])),
    }
    mean = "mean_hidden" if of.hidden and len(each_nats) == 1 else "mean"
    return Panel(
        title=words("title"),
        finding=words("finding", **slots) + " " + words(mean, **slots),
        figures=(
            of.row(each_nats, tuple(fixed(float(each)) for each in each_nats), words("row")),
            Stack(
                figures=(
                    Facts(
                        facts=(
                            (slots["nats"], words("of_word", **slots)),
                            (slots["loss"], words("of_text", **slots)),
                        )
                    ),
                    _pulls(run, p, gradient, target, slots),
                )
            ),
        ),
        table={
            "position": [at for at, _ in of.targets],
            "word that came": list(of.words),
            "p": np.exp(-each_nats),
            "−ln p": each_nats,
        },
        details=words.lines("details", **slots),
        caption=(words("caption"),),
        file=f"loss-token{place}",
        formulas=("loss",),
        numbers={
            "loss": Written(float(each_nats.mean()), slots["loss"]),
            "uniform": Written(float(np.log(len(p))), slots["uniform"]),
        },
        at={"run": of.context.run},
    )


def _chance(p: float) -> str:
    """A probability, one that is almost nothing in two figures: its logarithm is on show."""
    return power(p, 2) if 0 < p < LEAST_TENTH else tenths(p)


def _pulls(
    run: Run, p: np.ndarray, gradient: np.ndarray, target: int, slots: Mapping[str, str]
) -> Bars:
    """p and p - y of the word that came and of the likeliest others, and of all the rest."""
    words, order = sentences(CONCEPT, "loss"), np.argsort(-p, kind="stable").tolist()
    listed = [target, *(id for id in order if id != target)][:N_WORDS]
    rest = np.delete(np.arange(len(p)), listed)
    cells = [
        (label, float(p[id]), float(gradient[id]))
        for label, id in zip(run.loaded.labels(listed), listed)
    ]
    others = words("others", n=f"{len(rest):,}")
    cells.append((others, float(p[rest].sum()), float(gradient[rest].sum())))
    return Bars(
        title=words("gradient", **slots),
        note=words("gradient_note"),
        columns=("p", "p − y"),
        rows=tuple(
            BarRow(
                label,
                (share, pull),
                (tenths(share) if at else _chance(share), signed(pull)),
                selected=at == 0,
                key=None,
            )
            for at, (label, share, pull) in enumerate(cells)
        ),
    )


# ---- one step ------------------------------------------------------------------------------------


Rate = Annotated[
    float, Choice(RATES, "Learning rate", name="step_rate", help="how far each weight moves")
]


@spec.predicts
@spec.panel
def step(run: Run, token: Asked = OPENS, rate: Rate = 0.001) -> Panel:
    """One step of gradient descent on the text, on a copy of the model: the loss and the likeliest
    words before and after, how many weights moved, and what became of another text.

    token: as of `loss`. rate: one of RATES, by which the gradient is multiplied. Raises ValueError
    as `loss`, and for a model whose weights are not here.
    """
    of, words = losses(run, token), sentences(CONCEPT, "step")
    if not run.loaded.capabilities.weights:
        refusals = sentences(CONCEPT, "refusals")
        raise ValueError(refusals("closed", model=model_name(run.recording())))
    other = losses(Run(run.model, OPENING_TEXT if run.text == DEFAULT_TEXT else DEFAULT_TEXT))
    key = ("training step", of.context.run.edits, run.target, of.at, rate)
    done = run.memo(key, lambda: _step(of, other, rate))
    before, after = np.insert(done.losses[:, :-1], of.at, done.losses[:, -1], axis=1)
    was, became = map(float, done.others.mean(axis=1))
    p, p_after = np.exp(log_softmax(done.scores))
    own = _differing(float(before.mean()), float(after.mean()))
    elsewhere = _differing(was, became)
    slots = {
        **{"rate": f"{rate:g}", "target": of.words[of.at]},
        **dict(zip(("before", "after", "other_before", "other_after"), (*own, *elsewhere))),
        **{"moved": f"{done.moved:,}", "weights": f"{done.weights:,}"},
        **{"share": percent(done.moved / done.weights), "weight": power(done.weight[2])},
        **{"length": power(done.length, 2), "other": other.context.run.text},
    }
    name = "finding" if after.mean() < before.mean() else "too_long"
    return Panel(
        title=words("title"),
        finding=words(name, **slots) + " " + words("elsewhere", **slots),
        figures=(
            of.row(
                after,
                tuple(f"{fixed(float(a))} → {fixed(float(b))}" for a, b in zip(before, after)),
                words("row"),
            ),
            Stack(
                figures=(
                    _moved_words(run, p, p_after, of.targets[of.at][1], slots),
                    Facts(
                        facts=(
                            (slots["share"], words("moved", **slots)),
                            (slots["weight"], words("weight")),
                        )
                    ),
                )
            ),
        ),
        table={
            "position": [at for at, _ in of.targets],
            "word that came": list(of.words),
            "−ln p before": before,
            "−ln p after": after,
        },
        details=words.lines("details", **slots),
        caption=(words("caption", **slots),),
        file=f"training-step-{rate:g}",
        formulas=("descent",),
        numbers={"moved_weights": Written(done.moved / done.weights, slots["share"])},
        at={"run": of.context.run, "training": done},
    )


def _step(of: Losses, other: Losses, rate: float) -> TrainingStep:
    """The step, of the targets with the one that is spoken of as the last."""
    model, (one, another) = of.context.model, (of.context, other.context)
    targets = (*of.targets[: of.at], *of.targets[of.at + 1 :], of.targets[of.at])
    return in_slot(
        lambda: model.training_step(
            one.recording, targets, rate, another.recording, another.targets
        )
    )


def _moved(before: float, after: float) -> str:
    """A probability before and after, in digits that tell the two apart."""
    texts = tenths(before), tenths(after)
    return " → ".join(texts if texts[0] != texts[1] else (_chance(before), _chance(after)))


def _moved_words(
    run: Run, p: np.ndarray, after: np.ndarray, target: int, slots: Mapping[str, str]
) -> Bars:
    """The probability after the step of the words that were or are the likeliest, with the one
    before as an outline; the word that came first."""
    words, order = sentences(CONCEPT, "step"), np.argsort(-np.maximum(p, after), kind="stable")
    listed = [target, *(id for id in order.tolist() if id != target)][:N_WORDS]
    return Bars(
        title=words("bars", **slots),
        note=words("bars_note"),
        columns=("p",),
        rows=tuple(
            BarRow(
                label,
                (float(after[id]),),
                (_moved(float(p[id]), float(after[id])),),
                selected=id == target,
                key=None,
                outline=float(p[id]),
            )
            for label, id in zip(run.loaded.labels(listed), listed)
        ),
    )
