"""The subject of a tab, made of the run of an address: the run that its panels are of, and the
arguments of theirs that are known by that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from explorer.analysis import coreference, corpus, opening
from explorer.panels import compare, interventions, masks, translation
from explorer.panels import corpus as corpus_panels
from explorer.panels.choice import Choice, as_taken, declared, resolve
from explorer.panels.selection import select
from explorer.wording.templates import sentences
from models import model_names
from models.contract.edits import Edit, InputEdit, from_line, to_line
from models.contract.recording import NotFinite, Recording
from models.runtime.run import Run

Words = Mapping[str, str]
Known = dict[str, Any]
Notes = dict[str, str]  # sentences on words that are not followed whole, by their names
# ---- masked words --------------------------------------------------------------------------------


def masked_word(run: Run, words: Words, notes: Notes) -> tuple[Run, Known]:
    """The run of a model that predicts the next word, or has a word and a mask for it; the word is
    compared with none."""
    sentence = sentences("predictions", "tab")
    is_closed = run.loaded.capabilities.classes or not masks.fills(run.recording())
    if not is_closed and not masks.can_hide(run.recording()):
        raise ValueError(sentence("no_mask", model=model_names.title(run.model)))
    if not is_closed and opening.masked_word(run.recording()) is None:
        raise ValueError(sentence("no_word"))
    return run, {"against": ""}


# ---- edits, and two runs -------------------------------------------------------------------------


def under_edits(run: Run, line: str) -> tuple[Run, str]:
    """The run under the edits of a line of an address; where its model or its text cannot follow
    them, the run as it is and a sentence on why. A translator's decoder goes on reading what it
    writes unedited, so that the rows stay the same."""
    if not line:
        return run, ""
    try:
        edited = run.under(from_line(line))
        edited.recording()
    except ValueError as why:
        return run, sentences("frame", "edits")("refused", why=str(why).rstrip("."))
    return edited, ""


def under_followed_edits(run: Run, words: Words, notes: Notes) -> tuple[Run, Known]:
    """The run under those edits of the address that change nothing of what it reads."""
    edits, left_out = followed_edits(run.recording(), words.get("edits", ""))
    if left_out:
        notes["edits"] = left_out_note(left_out)
    return replace(run, edits=edits), {}


def followed_edits(plain: Recording, line: str) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of a line of an address that this model and text can follow and that change nothing
    of what it reads, and why its other words are left out."""
    edits, left_out = interventions.read_edits(plain, line)
    changing = [each for each in edits if isinstance(each, InputEdit)]
    sentence = sentences("interventions", "tab")
    left_out += [f"“{each}” {sentence('changes_input')}" for each in changing]
    return tuple(each for each in edits if each not in changing), left_out


MAX_REASONS = 3
EDIT, SENTENCE, MODEL = "Edit", "Sentence", "Model"
KINDS = {EDIT: "Before and after an edit", SENTENCE: "Two sentences", MODEL: "Two models"}


def left_out_note(left_out: Sequence[str]) -> str:
    """A sentence on edits that are left out, with the first reasons why."""
    named, n = "; ".join(left_out[:MAX_REASONS]), len(left_out) - MAX_REASONS
    more = f"; and {n} more" if n > 0 else ""
    return sentences("interventions", "tab")("left_out", edits=named + more)


def compared(
    run: Run,
    words: Words,
    notes: Notes,
    kind: Annotated[str, Choice(KINDS, "Compare", name="compare")] = "",
    other_swap: Annotated[bool, Choice(help="sides exchanged")] = False,
) -> tuple[Run, Known]:
    """A, and B as the run beside it. kind: in what the two runs differ, in an edit where it is
    not said and the words `beside_at_first` say nothing. other_swap: A is the one
    that is chosen."""
    try:
        other = _beside(run, words, notes, kind)
        for each in (run, other):
            each.recording()
    except ValueError as error:
        name = "too_large" if isinstance(error, NotFinite) else "incomparable"
        sentence = sentences("compare", "tab")
        raise ValueError(sentence(name, reason=str(error).rstrip("."))) from None
    return (other, {"other": run}) if other_swap else (run, {"other": other})


# Words that were of an edit where they came without a kind.
SAID = (
    *("other_view", "other_edits", "other_text", "other_model"),
    *("other_of", "other_to", "head_of_b"),
)


def beside_at_first(run: Run, words: Words) -> dict[str, str]:
    """The words for what stands beside a run until a reader chooses: another model whose tested
    heads vote on a pronoun of the text, the edits of one that has some, and of an address with
    other words on what is compared, an edit."""
    if words.get("compare"):
        return {}
    if any(map(words.get, SAID)):
        return {"compare": EDIT}
    if words.get("edits") or words.get("target") or not (model := opening.model_beside(run)):
        return {}
    return {"compare": MODEL, "other_model": model}


def _beside(run: Run, words: Words, notes: Notes, kind: str) -> Run:
    """The other run: another sentence, another model, or the same under other edits."""
    if kind == SENTENCE:
        typed = words.get("other_text", "")
        text = typed if typed.strip() else compare.other_text(run.text).strip()
        return compare.other_run(run, text=text) if text else run
    if kind == MODEL:
        asked, there = words.get("other_model", ""), compare.other_models(run.model)
        return compare.other_run(run, model=asked if ":" in asked or asked in there else there[0])
    edits, left_out = edits_beside(run, words)
    if left_out and not edits:
        raise ValueError("; ".join(left_out))
    if left_out:
        notes["other_edits"] = sentences("compare", "tab")("left_out", edits="; ".join(left_out))
    return compare.other_run(run, to_line(edits))


def edits_beside(run: Run, words: Words) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of the other run, those of the address where it has none of its own, else those of
    the `counterpart`; and why others are left out. Raises ValueError for a model that supports
    none."""
    line = words.get("other_edits", "").strip() or words.get("edits", "")
    if not line:
        return compare.counterpart(run).edits, []
    return interventions.read_edits(run.recording(), line)


DRAWN = "Drawn"
BEAMS = {str(n): f"{n} beams" for n in range(2, translation.MOST_BEAMS + 1)}
WAYS = {"1": "Greedy"} | BEAMS | {DRAWN: "Sample"}


def output(
    run: Run, words: Words, notes: Notes, beams: Annotated[str, Choice(WAYS, "Search")] = "1"
) -> tuple[Run, Known]:
    """The run with what was typed for the decoder, else with its own translation. beams: how many
    a search for it keeps, `DRAWN` for one that is drawn; the page alone shows what it finds."""
    if beams != "1":
        notes["beams"] = sentences("selection", "screen")("greedy")
    return run, {"ended": not run.recording().target_dropped}


# ---- trainings and sentences ---------------------------------------------------------------------


def trained(run: Run, words: Words, notes: Notes) -> tuple[Run, Known]:
    """The text in the model at the end of its training; the step of the one that is asked for."""
    base, _, step = run.model.partition("@")
    known = {"step": int(step)} if step.isdecimal() and not words.get("train_step") else {}
    return Run(base, run.text), known


def sentences_read(run: Run, words: Words, notes: Notes) -> tuple[Run, Known]:
    """The sentences of the address, or the examples, as `of_sentences` gives them."""
    own = words.get("many_text", "")
    column = words.get("many_column", "") if own else ""
    texts = corpus.lines_of(own or corpus_panels.EXAMPLE_LINES, column)[: corpus.MOST_LINES]
    if not texts:
        raise ValueError(sentences("corpus", "tab")("none_yet"))
    return of_sentences(run, texts, words)


def of_sentences(run: Run, texts: Sequence[str], words: Words) -> tuple[Run, Known]:
    """The first of some sentences, the others, the attention, and the head: that of the address,
    else the one that Heads opens on, where that is one of the tested heads if there are any, or
    else the best of these; of a pattern alone the one with the highest mean score. run: the text on
    screen in the model."""
    first, others = Run(run.model, texts[0]), "\n".join(texts[1:])
    chosen, _ = resolve(declared(corpus_panels.patterns), Run(run.model, ""), words)
    known: Known = {"others": others, "attention": chosen["attention"]}
    chosen, _ = resolve(declared(corpus_panels.patterns), first, words, known)
    at = dict(as_taken({"layer": chosen["layer"], "head": chosen["head"]}))
    if None in at.values() and not words.get("many_by"):
        on = select(run, attention=chosen["attention"])
        tested = coreference.measured_heads(on.recording, on.attention)
        opens = opening.head(on.recording, on.attention)
        if opens not in tested:
            opens = max(tested, key=lambda each: tested[each].n_matches, default=opens)
        at = dict(zip(("layer", "head"), opens))
    read = corpus_panels.reading(first, **{**as_taken(chosen), **known, **at})
    return first, known | dict(zip(("layer", "head"), read.at))


# By `places.Tab.subject`: the words that an address means which says none of them.
AT_FIRST: dict[str, Callable[[Run, Words], dict[str, str]]] = {"both runs": beside_at_first}
# By `places.Tab.subject`. Each takes a run, the words of an address, the notes to which it adds a
# sentence on what it does not follow whole, and the choices that its own signature declares. It
# raises ValueError where there is no such run, in the sentence that the tab says.
SUBJECTS: dict[str, Callable[..., tuple[Run, Known]]] = {
    "masked word": masked_word,
    "followed edits": under_followed_edits,
    "both runs": compared,
    "output": output,
    "last step": trained,
    "sentences read": sentences_read,
}
