"""What a tab makes of the run of an address: the run that its panels are of, and the arguments of
theirs that are known by that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from explorer.analysis import corpus, opening
from explorer.analysis.logit_lens import read_stream
from explorer.panels import compare, interventions, training
from explorer.panels import corpus as corpus_panels
from explorer.panels.choice import TRUE, as_taken, declared, resolve
from explorer.panels.selection import select
from explorer.screens import masks
from explorer.text.templates import sentences
from models import model_names
from models.edits import Edit, HideToken, ShuffleTokens, to_line
from models.recording import NotFinite, Recording
from models.run import Run

Words = Mapping[str, str]
Known = dict[str, Any]
Refused = dict[str, str]  # sentences on words that are not followed, by their names
Subject = Callable[[Run, Words, Refused], tuple[Run, Known]]
SUBJECTS: dict[str, Subject] = {}  # by `places.Tab.subject`


def subject(name: str) -> Callable[[Subject], Subject]:
    """Make a function the subject of that name. What it does not follow goes into its `refused`; it
    raises ValueError where there is no such run, in the sentence that the tab says."""

    def decorate(make: Subject) -> Subject:
        SUBJECTS[name] = make
        return make

    return decorate


# ---- masked words --------------------------------------------------------------------------------


def _place(word: str, below: int) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 6 and int(word) < below else None


def _gaps(recording: Recording, words: Words) -> tuple[tuple[int, ...], int | None]:
    """The masked words and the selected token that words of an address ask for."""
    n, line = len(recording.streams[0].tokens), words.get("hidden", "")
    numbers = [_place(each, n) for each in line.split(".")] if line else []
    asked = () if None in numbers else tuple(each for each in numbers if each is not None)
    chosen = _place(words.get("token", ""), n)
    return masks.gaps(recording, chosen, None if line == masks.NOTHING else asked)[:2]


@subject("masks")
def with_masks(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The run with the words masked that Next or masked word masks, and the token whose prediction
    is opened, None for the first one that is predicted."""
    if run.loaded.capabilities.classes:
        return run, {}
    recording = run.recording()
    hidden, place = _gaps(recording, words) if masks.can_hide(recording) else ((), None)
    token = _place(words.get("token", ""), len(read_stream(recording).tokens))
    return masks.masking(run, hidden), {"token": place if token is None else token}


@subject("masked word")
def masked_word(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The run, its words masked where the model fills gaps, and the token whose word is predicted,
    which is compared with none."""
    if run.loaded.capabilities.classes:
        return run, {"token": 0, "against": ""}
    plain = run.recording()
    if not masks.fills(plain):
        n = len(read_stream(plain).tokens)
        token = _place(words.get("token", ""), n)
        return run, {"token": n - 1 if token is None else token, "against": ""}
    said = sentences("predictions", "tab")
    if not masks.can_hide(plain):
        raise ValueError(said("no_mask", model=model_names.title(run.model)))
    hidden, place = _gaps(plain, words)
    if place is None:
        raise ValueError(said("no_word"))
    line = ".".join(map(str, hidden)) or masks.NOTHING
    return masks.masking(run, hidden), {"token": place, "hidden": line, "against": ""}


# ---- edits, and two runs -------------------------------------------------------------------------


@subject("followed edits")
def under_followed_edits(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The run under those edits of the address that change nothing of what it reads."""
    edits, left_out = followed_edits(run.recording(), words.get("edits", ""))
    if left_out:
        refused["edits"] = "; ".join(left_out)
    return replace(run, edits=edits), {}


def followed_edits(plain: Recording, line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line of an address that this model and text can follow and that change nothing
    of what it reads, and why its other words are left out."""
    edits, left_out = interventions.read_edits(plain, line)
    changing = [each for each in edits if isinstance(each, (HideToken, ShuffleTokens))]
    said = sentences("interventions", "tab")
    left_out += [f"“{each}” {said('changes_input')}" for each in changing]
    return tuple(each for each in edits if each not in changing), left_out


@subject("both runs")
def compared(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """A, and B as the run beside it."""
    try:
        other = _beside(run, words, refused)
        for each in (run, other):
            each.recording()
    except ValueError as error:
        name = "too_large" if isinstance(error, NotFinite) else "incomparable"
        said = sentences("compare", "tab")
        raise ValueError(said(name, reason=str(error).rstrip("."))) from None
    one, other = (other, run) if words.get("other_swap") == TRUE else (run, other)
    return one, {"other": other}


def _beside(run: Run, words: Words, refused: Refused) -> Run:
    """The other run: another sentence, another model, or the same under other edits."""
    if words.get("compare") == "Sentence":
        typed = words.get("other_text", "")
        text = typed if typed.strip() else compare.other_text(run.text).strip()
        return compare.other_run(run, text=text) if text else run
    if words.get("compare") == "Model":
        asked, there = words.get("other_model", ""), compare.other_models(run.model)
        return compare.other_run(run, model=asked if ":" in asked or asked in there else there[0])
    line = words.get("other_edits", "").strip() or words.get("edits", "")
    if not line:
        return compare.other_run(run, to_line(compare.counterpart(run).edits))
    edits, left_out = interventions.read_edits(run.recording(), line)
    if left_out and not edits:
        raise ValueError("; ".join(left_out))
    if left_out:
        refused["other_edits"] = "; ".join(left_out)
    return compare.other_run(run, to_line(edits))


@subject("output")
def output(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The run with what was typed for the decoder, else with its own translation."""
    if words.get("beams", "1") != "1":
        refused["beams"] = sentences("selection", "screen")("greedy")
    return run, {"ended": not run.recording().target_dropped}


# ---- trainings and sentences ---------------------------------------------------------------------


@subject("last step")
def trained(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The text in the model at the end of its training; the step of the one that is asked for."""
    base, _, step = run.model.partition("@")
    known = {"step": int(step)} if step.isdecimal() and not words.get("train_step") else {}
    return Run(base, run.text), known


@subject("first of pair")
def first_of_pair(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The text in the first of two models, and the second."""
    run = Run(run.model.partition("@")[0], run.text)
    second = resolve(declared(training.pair), run, words)[0]["second"]
    first, second = training.models_of_pair(run.model, second)
    return Run(first, run.text), {"second": second}


@subject("sentences read")
def sentences_read(run: Run, words: Words, refused: Refused) -> tuple[Run, Known]:
    """The first of the sentences, the others, the attention, and the head: that of the address,
    else the one that Heads opens on, of a pattern alone the one with the highest mean score."""
    own = words.get("many_text", "")
    column = words.get("many_column", "") if own else ""
    texts = corpus.lines_of(own or corpus_panels.EXAMPLE_LINES, column)[: corpus.MOST_LINES]
    if not texts:
        raise ValueError(sentences("corpus", "tab")("none_yet"))
    first, others = Run(run.model, texts[0]), "\n".join(texts[1:])
    chosen, _ = resolve(declared(corpus_panels.patterns), Run(run.model, ""), words)
    known: Known = {"others": others, "attention": chosen["attention"]}
    chosen, _ = resolve(declared(corpus_panels.patterns), first, words, known)
    at = dict(as_taken({"layer": chosen["layer"], "head": chosen["head"]}))
    if None in at.values() and not words.get("many_by"):
        on = select(Run(run.model, run.text), attention=chosen["attention"])
        at = dict(zip(("layer", "head"), opening.head(on.recording, on.attention)))
    read = corpus_panels.reading(first, **{**as_taken(chosen), **known, **at})
    return first, known | dict(zip(("layer", "head"), read.at))
