"""The panels on heads over many sentences: scores of their patterns, the sentences with the highest
ones, and attention by distance.

The run's text is the first sentence; `others` has the further ones, one a line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from explorer.analysis import coreference, corpus
from explorer.analysis.head_naming import MEANING, MEANING_ACROSS
from explorer.analysis.head_naming import PRONOUN as COREFERENCE
from explorer.figures.formatting import hundredths, percent, plural
from explorer.figures.kinds import BarRow, Bars, Matrix
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import FirstAttention, HeadIfAny, LayerIfAny, select
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.notices import tell
from models.example_texts import EXAMPLES, OPENING_TEXT
from models.runtime.run import Run

CONCEPT = "corpus"
KEY = "heads"  # of the measures in the cache
# As links mean them that name no sentences.
EXAMPLE_LINES = "\n".join(each for each in EXAMPLES.values() if each != OPENING_TEXT)
READ = ("others", "layer", "head", "attention")  # arguments of a reading but the pattern
N_ROWS = 12  # sentences that are listed
MAX_LETTERS = 60  # of a sentence inside a sentence


@dataclass(frozen=True, eq=False)
class CorpusReading:
    """Sentences read by one attention, and one of its heads and patterns. unread: why sentences
    could not be read. limits: sentences on what was left out of those that were given."""

    attention: str
    measured: tuple[corpus.Sentence, ...]
    unread: tuple[str, ...]
    pattern: str
    layer: int
    head: int
    limits: tuple[str, ...] = ()

    @property
    def at(self) -> tuple[int, int]:
        """(layer, head)."""
        return self.layer, self.head

    @property
    def slots(self) -> dict[str, object]:
        """The slots that every sentence on a head fills."""
        return {
            "layer": self.layer,
            "head": self.head,
            "pattern": self.pattern,
            "n": len(self.measured),
        }

    @property
    def scope(self) -> str:
        """The name of the kind of attention among the sentences: within a text, or across two."""
        return "across" if self.measured[0].kind is corpus.ACROSS else "within"

    def caption(self, *lines: str) -> tuple[str, ...]:
        """Lines of a caption, with how many sentences were read and how many were not."""
        words, n = sentences(CONCEPT, "shared"), len(self.measured)
        slots = {"sentences": plural(n, "sentence"), "attention": self.attention}
        read = words("read" if n > 1 else "read_one", **slots, others=n - 1)
        if not self.unread:
            return read, *self.limits, *lines
        unread = words("left_out", n=len(self.unread), reason=self.unread[0])
        return read, unread, *self.limits, *lines

    def spread(self, pattern: str) -> corpus.Spread:
        """Scores of a pattern over the sentences, (layer, head)."""
        return corpus.habit_spread(self.measured, pattern)


def measured(run: Run) -> dict[str, corpus.Sentence | str] | str:
    """The measures of one sentence by attention, or why it cannot be read."""
    return run.measure(KEY, corpus.measure_recording)


def reading(
    run: Run,
    others: str = EXAMPLE_LINES,
    pattern: str = "",
    layer: int | None = None,
    head: int | None = None,
    attention: str = "",
) -> CorpusReading:
    """The sentences, with the pattern and the head of the highest mean score where none is named.
    Arguments and errors as of `patterns`."""
    selection = select(run, layer or 0, head or 0, attention=attention)
    name = selection.attention.name
    words = sentences(CONCEPT, "shared")
    lines, limits = _lines(run, others)
    results = [measured(each) for each in (run, *(replace(run, text=line) for line in lines))]
    each = [one if isinstance(one, str) else one[name] for one in results]
    readable = tuple(one for one in each if isinstance(one, corpus.Sentence))
    unread = tuple(one.rstrip(".") for one in each if isinstance(one, str))
    if not readable:
        raise ValueError(words("unread", reason=unread[0]))
    patterns = readable[0].kind.measures
    at = None if layer is None or head is None else selection.at[:2]
    pattern = pattern or corpus.strongest_pattern(readable, at)
    if pattern not in patterns:
        raise ValueError(words("pattern", pattern=pattern, patterns=", ".join(patterns)))
    layer, head = at or corpus.strongest_head(readable, pattern)
    return CorpusReading(name, readable, unread, pattern, layer, head, limits)


def _lines(run: Run, others: str) -> tuple[list[str], tuple[str, ...]]:
    """The sentences beside a run's text, and what of them is left out, which a caller is told."""
    words, most = sentences(CONCEPT, "shared"), corpus.MOST_LINES - 1
    lines = corpus.lines_of(others, longest=None)
    if others == EXAMPLE_LINES:  # of which the text may be one
        lines = tuple(line for line in lines if line != run.text)
    read, limits = lines[:most], list[str]()
    if left := len(lines) - len(read):
        limits.append(words("too_many", n=left, most=most))
    if cut := sum(len(line) > corpus.LONGEST_LINE for line in read):
        limits.append(words("cut", n=plural(cut, "sentence"), longest=corpus.LONGEST_LINE))
    for each in limits:
        tell(each.rstrip("."))
    return [line[: corpus.LONGEST_LINE] for line in read], tuple(limits)


def _with_spread(spread: corpus.Spread, at: tuple[int, ...], is_told: bool = True) -> str:
    """A mean with its standard deviation, where there is one and it is told."""
    mean, sd = float(spread.mean[at]), float(spread.sd[at])
    if not np.isfinite(mean):
        return "–"
    if not (is_told and np.isfinite(sd)):
        return hundredths(mean)
    return sentences(CONCEPT, "shared")("score", mean=hundredths(mean), sd=f"{sd:.2f}")


def pattern_labels(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The patterns of an attention to choose from, "" for the strongest one."""
    named = {name: chosen[name] for name in READ if name in chosen}
    read = reading(run, **named)
    strongest = sentences(CONCEPT, "tab")("strongest", pattern=read.pattern)
    return {"": strongest} | {name: name for name in read.measured[0].kind.measures}


Pattern = Annotated[str, Choice(pattern_labels, "Pattern", name="many_by")]


@spec.panel
def patterns(
    run: Run,
    others: str = EXAMPLE_LINES,
    pattern: Pattern = "",
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """Mean score of one pattern in every head, and all patterns of one head.

    The run's text is the first of the sentences. others: those after it, one a line: of more than
    199 the last are left out, and of longer ones what is beyond 1,000 characters, with a warning.
    pattern: its name; the strongest one where "". layer, head: the head of the highest score where
    None. Raises ValueError for what is not there, and where no sentence can be read.
    """
    read = reading(run, others, pattern, layer, head, attention)
    words = sentences(CONCEPT, "patterns")
    spread = read.spread(read.pattern)
    layers, heads = spread.mean.shape
    definition, tested = _definition(read), _tested(run, read)
    grid = Matrix(
        title=words("listed" if tested else "grid", **read.slots, scored=int(spread.n[read.at])),
        note=words("another_measure") if tested else definition,
        select=("layer", "head"),
        rows=tuple(f"L{each}" for each in range(layers)),
        columns=tuple(f"H{each}" for each in range(heads)),
        values=spread.mean,
        high=float(np.nanmax(spread.mean, initial=0)) or 1.0,
        marks=((*read.at, ""),),
        wide=True,
    )
    n_scored = int(spread.n[read.at])
    is_some = 1 < n_scored < len(read.measured)
    finding = "one" if n_scored == 1 else "some" if is_some else "finding"
    mean = spread.mean[read.at]
    is_first = np.isfinite(mean) and mean > 0 and mean >= np.nanmax(spread.mean)
    rank = sentences(CONCEPT, "shared")("rank", n=layers * heads) if is_first else ""
    own = {"found": tested[read.at].n_matches, "n": tested[read.at].n} if tested else {}
    return Panel(
        title=words("title"),
        finding=words("tested", **read.slots | own)
        if tested
        else words(
            finding if np.isfinite(mean) else "never",
            **read.slots,
            mean=_with_spread(spread, read.at),
            scored=n_scored,
            rank=rank,
        ),
        figures=(_tests(read, tested), grid) if tested else (grid, _scores(read)),
        table=corpus.habit_columns(read.measured),
        details=words.lines("details"),
        caption=read.caption(definition),
        file="-".join(["patterns", *read.attention.split()]),
    )


def _tested(run: Run, read: CorpusReading) -> coreference.CoreferenceHeads:
    """The heads that find the noun of a pronoun in test sentences, where the pattern on show is
    that one and the head one of them; else none."""
    recording = run.recording()
    (of,) = (each for each in recording.attention if each.name == read.attention)
    tested = coreference.measured_heads(recording, of)
    return tested if read.pattern == COREFERENCE and read.at in tested else {}


def _tests(read: CorpusReading, tested: coreference.CoreferenceHeads) -> Bars:
    """The tested heads, the best first, by the test sentences in which they find the noun."""
    words = sentences(CONCEPT, "patterns")
    ranked = sorted(tested.items(), key=lambda each: -each[1].n_matches)
    n = tested[read.at].n
    text, marked = next(iter(coreference.sentences().items()))
    return Bars(
        title=words("tests", n=n),
        note=words("such", text=text, pronoun=marked.pronoun, noun=marked.noun),
        select=("address",),
        columns=("",),
        high=n,
        rows=tuple(
            BarRow(
                f"L{at[0]} H{at[1]}",
                (float(each.n_matches),),
                (words("count", found=each.n_matches, n=each.n),),
                at == read.at,
                f"layer={at[0]}&head={at[1]}",
            )
            for at, each in ranked
        ),
    )


def _definition(read: CorpusReading) -> str:
    """The definition of the pattern and of its score."""
    words = sentences(CONCEPT, "patterns")
    meanings = MEANING_ACROSS if read.scope == "across" else MEANING
    if read.pattern in meanings:
        return words("definition", pattern=read.pattern, meaning=meanings[read.pattern])
    return words(f"{read.scope}_definition", pattern=read.pattern, far=corpus.FAR)


def _scores(read: CorpusReading) -> Bars:
    """All patterns of one head."""
    words = sentences(CONCEPT, "patterns")
    spreads = {name: read.spread(name) for name in read.measured[0].kind.measures}
    return Bars(
        title=words("head", **read.slots),
        note=words("note"),
        select=("many_by",),
        columns=("",),
        rows=tuple(
            BarRow(
                name,
                (float(np.nan_to_num(spread.mean[read.at])),),
                (_with_spread(spread, read.at, name == read.pattern),),
                name == read.pattern,
                name,
            )
            for name, spread in spreads.items()
        ),
    )


@spec.panel
def highest(
    run: Run,
    others: str = EXAMPLE_LINES,
    pattern: Pattern = "",
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """The sentences where a head has the highest scores of a pattern. Arguments and errors as of
    `patterns`."""
    read = reading(run, others, pattern, layer, head, attention)
    words = sentences(CONCEPT, "sentences")
    ranked = corpus.strongest_sentences(read.measured, read.pattern, read.at)
    finding = words("never", **read.slots)
    by_weight = read.pattern == read.measured[0].kind.look
    if ranked:
        best, value = ranked[0]
        look = best.looks[read.layer][read.head]
        text = best.text[:MAX_LETTERS] + "…" * (len(best.text) > MAX_LETTERS)
        named = by_weight and look.weight > 0
        ends = "" if text.endswith((".", "!", "?", "…")) else words("no_link")
        link = words("link", query=look.query, key=look.key) if named else ends
        finding = words("finding", **read.slots, value=hundredths(value), text=text, link=link)
    return Panel(
        title=words("title", **read.slots),
        finding=finding,
        figures=(
            Bars(
                title=words("bars"),
                columns=(read.pattern,),
                rows=tuple(
                    BarRow(one.text, (value,), (_score_text(one, value, read, by_weight),))
                    for one, value in ranked[:N_ROWS]
                ),
            ),
        ),
        table=corpus.sentence_columns(read.measured, read.pattern, read.at),
        details=words.lines("details"),
        caption=read.caption(),
        file=f"sentences-L{read.layer}H{read.head}-{read.pattern.replace(' ', '-')}",
    )


def _score_text(one: corpus.Sentence, value: float, read: CorpusReading, by_weight: bool) -> str:
    """A score, with the words of the weight where it is one."""
    words = sentences(CONCEPT, "sentences")
    look = one.looks[read.layer][read.head]
    if not by_weight or not look.weight:
        return words("value", value=hundredths(value))
    return words("value_link", value=hundredths(value), query=look.query, key=look.key)


@spec.panel
def distances(
    run: Run,
    others: str = EXAMPLE_LINES,
    layer: LayerIfAny = OPENS,
    head: HeadIfAny = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """Share of every head's attention by distance from the query, and one head's with its spread.
    Arguments and errors as of `patterns`."""
    read = reading(run, others, "", layer, head, attention)
    words = sentences(CONCEPT, "distances")
    spread, places = corpus.share_spread(read.measured), read.measured[0].kind.places
    heads = list(np.ndindex(spread.mean.shape[:2]))
    values = spread.mean.reshape(len(heads), len(places))
    own = spread.mean[read.at]
    most = int(own.argmax())
    named = {0: "special", places.index("0"): "itself" if read.scope == "within" else "across"}
    place = words(named.get(most, read.scope), place=places[most])
    return Panel(
        title=words("title"),
        finding=words("finding", **read.slots, share=percent(float(own[most])), place=place),
        figures=(
            Matrix(
                title=words("grid"),
                select=("address",),
                rows=tuple(f"L{at[0]} H{at[1]}" for at in heads),
                columns=places,
                values=values,
                high=float(values.max()),
                selected=heads.index(read.at),
                keys=tuple(f"layer={at[0]}&head={at[1]}" for at in heads),
                wide=True,
            ),
            Bars(
                title=words("head", **read.slots),
                columns=("",),
                rows=tuple(
                    BarRow(
                        name,
                        (float(own[at]),),
                        (_with_spread(spread, (*read.at, at), at == most),),
                        at == most,
                    )
                    for at, name in enumerate(places)
                ),
            ),
        ),
        table=corpus.share_columns(read.measured),
        details=words.lines("details"),
        caption=read.caption(words(f"{read.scope}_caption", reach=corpus.REACH)),
        file="-".join(["distances", *read.attention.split()]),
    )
