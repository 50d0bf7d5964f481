"""The panels on a translation: its tokens step by step with their cross-attention, the hypotheses
of a beam search, and the probability of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Annotated, Any

import numpy as np

from explorer.analysis import opening, translation
from explorer.analysis.consistency import scale_text
from explorer.analysis.word_classes import is_word
from explorer.analysis.words import words as group_words
from explorer.figures.formatting import enough_digits, fixed, hundredths, plural, sum_text, tenths
from explorer.figures.kinds import (
    BarRow,
    Bars,
    Edge,
    Frame,
    Graph,
    Links,
    Matrix,
    Steps,
    TextTable,
    numbers,
)
from explorer.panels import spec
from explorer.panels.choice import Choice
from explorer.panels.selection import expect_place
from explorer.panels.spec import Panel
from explorer.wording.templates import Sentences, sentences
from models import model_names
from models.contract.recording import Recording
from models.contract.results import Beam
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.tokens import unknown_words

REFUSALS = sentences("translation", "refusals")

CONCEPT = "translation"
FORMS = ("Links", "Matrix")
MOST_BEAMS = 5
N_HEADS = 5  # heads that are listed at a step
N_ADDENDS = 12  # log-probabilities that are written one by one


@dataclass(frozen=True, eq=False)
class Output:
    """A recorded translation: the tokens that the decoder's rows produced, with the end token where
    it ended itself, and how likely the model held each."""

    recording: Recording
    end: translation.EndToken | None
    ids: np.ndarray
    tokens: tuple[str, ...]
    steps: translation.DecodedSteps
    is_typed: bool

    @property
    def source(self) -> tuple[str, ...]:
        """The tokens of the source."""
        return self.recording.stream("encoder").tokens

    @property
    def total(self) -> float:
        """The log-probability of the whole, in nats."""
        return float(self.steps.logprob.sum())


def _output(run: Run, ended: bool) -> Output:
    """A run's translation. Raises ValueError for a model that does not translate and for an output
    without a token."""
    recording = run.recording()
    if len(recording.streams) < 2 or run.loaded.capabilities.classes:
        raise ValueError(REFUSALS("no_translation", model=model_names.title(recording.model.name)))
    n = len(recording.stream("decoder").tokens)
    last = loaded(recording).logits(recording, "decoder", n - 1)
    end = None if recording.target_dropped or not ended else run.loaded.end_token(last)
    if end and run.target is None and int(last.argmax()) != end[0]:
        end = None
    ids, tokens = translation.produced_tokens(recording, end)
    if not len(ids):
        raise ValueError(REFUSALS("nothing_yet"))
    rows = loaded(recording).each_logits(recording, "decoder")
    steps = translation.decoded_steps(rows, ids)
    return Output(recording, end, ids, tokens, steps, isinstance(run.target, str))


# ---- step by step --------------------------------------------------------------------------------


def _steps(run: Run, chosen: Mapping[str, Any]) -> range:
    """The steps of a translation, with that of the end token where it ended."""
    is_ended = chosen.get("ended", True) and run.loaded.has_end()
    return range(1, sum(len(each.tokens) for each in run.recording().streams[1:]) + is_ended)


def _views(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The titles of heads, layers' means and the mean of all, which is the first."""
    n_layer, n_head = translation.cross_attention(run.recording()).pattern.shape[:2]
    names = translation.view_names(n_layer, n_head)
    ordered = sorted(names, key=lambda name: name != translation.MEAN_OF_ALL)
    return {name: translation.view_title(name, n_layer, n_head) for name in ordered}


@spec.panel
def alignment(
    run: Run,
    step: Annotated[int | None, Choice(_steps, of="text", help="the step, counted from 1")] = None,
    view: Annotated[str, Choice(_views, "Cross-attention", name="cross", menu=True)] = "",
    form: Annotated[str, Choice(FORMS, "Picture", name="cross_as", menu=True)] = "Links",
    ended: bool = True,
) -> Panel:
    """A translation token by token: each token's probability and its cross-attention to the source.

    step: counted from 1; where None the one that plainly reads furthest from the order of the
    source, in order the one with the largest weight, and of what a reader typed the last. view:
    "1.2" for a head, "1" for the mean of a layer, "" for that of all. ended: False where the search
    was stopped before the end. Raises ValueError for what is not there and for a model that does
    not translate.
    """
    on = _output(run, ended)
    words = sentences(CONCEPT, "alignment")
    pattern = translation.cross_attention(on.recording).pattern
    n_layer, n_head = pattern.shape[:2]
    n = len(on.tokens)
    if view not in translation.view_names(n_layer, n_head):
        raise ValueError(REFUSALS("no_view", view=view))
    expect_place("step", step, n, first=1)
    pattern = pattern[:, :, :n]
    weights = translation.attention_view(pattern, view)
    if step is None and not on.is_typed:
        source = on.recording.stream("encoder")
        jump = opening.longest_jump(weights, on.tokens[: n - (on.end is not None)], source)
        step = None if jump is None else jump + 1
    if step is None and on.is_typed:
        step = max(1, n - (on.end is not None))
    elif step is None:
        step = 1 + int(weights[: n - (on.end is not None) or n].max(axis=1).argmax())
    title = translation.view_title(view, n_layer, n_head)
    frames = _frames(on, weights, pattern, view)
    first_choices = run.loaded.labels(on.steps.top_ids[:, 0])
    reads = on.recording.stream("decoder").tokens
    # The formula's numbers stay those of one cell, whatever step is on show.
    layer, head, row, key = map(int, np.unravel_index(pattern.argmax(), pattern.shape))
    clearest = {"token": on.tokens[row], "layer": layer, "head": head}
    return Panel(
        title=words("title"),
        finding=frames[step - 1].sentence + _left_out(on, weights),
        figures=(
            Steps(
                frames=frames,
                current=step - 1,
                choice="step",
                plays=True,
                whole=_whole(on, numbers(weights), form, words),
            ),
        ),
        table=translation.alignment_table(
            weights, on.tokens, reads, on.steps, first_choices, on.source
        ),
        details=(*words.lines("details"), words("formula", **clearest), words("limits")),
        caption=(
            words("caption", view=title.lower()),
            words("typed" if on.is_typed else "own"),
            *filter(None, [copied(run)]),
        ),
        file=f"cross-{view or 'mean'}",
        formulas=("cross",),
        at={
            "attention": translation.cross_attention(on.recording).name,
            "layer": layer,
            "head": head,
            "token": row,
            "source": key,
        },
    )


def copied(run: Run) -> str:
    """Sentence on the words that the model copied from the source; "" where there are none."""
    words = sentences(CONCEPT, "alignment")
    unknown = () if isinstance(run.target, str) else unknown_words.copied_words(run.recording())
    name = "copied_one" if len(unknown) == 1 else "copied_many"
    return words(name, words="”, “".join(unknown)) if unknown else ""


def _whole(on: Output, weights: np.ndarray, form: str, words: Sentences) -> Links | Matrix:
    """The picture of all steps."""
    if form == "Matrix":
        sides = (words("token"), words("key"))
        return Matrix(rows=on.tokens, columns=on.source, values=weights, sides=sides)
    return Links(
        left=on.tokens,
        right=on.source,
        sides=(words("typed_line" if on.is_typed else "output_line"), words("source_line")),
        weights=weights,
        flat=True,
        texts=tuple(_chance(on, at) for at in range(len(on.tokens))),
    )


def _left_out(on: Output, weights: np.ndarray) -> str:
    """Sentence on the names of the source of which nothing in the output is read most: words with a
    capital within a sentence, which the output has not either. "" where there are none, and for an
    output that a reader typed."""
    stream, text = on.recording.stream("encoder"), on.recording.text
    grouped, read = group_words(stream, text), set(weights.argmax(axis=1).tolist())
    written = (on.recording.target or "").casefold()
    names = [
        label
        for at, (label, start) in enumerate(zip(grouped.labels, grouped.starts))
        if at
        and label[:1].isupper()
        and is_word(label)
        and not grouped.special[at]
        and grouped.labels[at - 1][-1:].isalnum()
        and not read & set(range(start, start + int(grouped.sizes[at])))
        and label.casefold() not in written
    ]
    if on.is_typed or not names:
        return ""
    words = sentences(CONCEPT, "alignment")
    listed = " ".join(words("name", word=each) for each in names)
    return " " + words("left_out", words=listed)


def _chance(on: Output, at: int) -> str:
    """The probability of a token, with its rank where a reader typed another than the likeliest."""
    p, rank = tenths(float(np.exp(on.steps.logprob[at]))), int(on.steps.rank[at]) + 1
    return f"{p} #{rank:,}" if on.is_typed and rank > 1 else p


def _frames(on: Output, weights: np.ndarray, pattern: np.ndarray, view: str) -> tuple[Frame, ...]:
    """A frame for each step: the output as a whole, what could have been written there, and the
    heads that attend to the same source token."""
    words, n = sentences(CONCEPT, "alignment"), len(on.tokens)
    whole = " ".join((on.recording.target or "").split())
    whole += "." * (whole[-1:].isalnum()) + " " * bool(whole)
    ids = (*on.ids, *on.steps.top_ids.ravel())
    every = dict(zip(map(int, ids), loaded(on.recording).labels(ids)))
    frames = []
    for at, token in enumerate(on.tokens):
        key = int(weights[at].argmax())
        best = int(on.steps.top_ids[at, 0])
        is_off = on.is_typed and on.steps.rank[at] > 0
        sentence = whole + words(
            "finding_typed" if is_off else "finding",
            step=at + 1,
            token=token,
            p=tenths(float(np.exp(on.steps.logprob[at]))),
            rank=f"{int(on.steps.rank[at]) + 1:,}",
            best=every[best],
            best_p=tenths(float(np.exp(on.steps.top_logprobs[at, 0]))),
            key=on.source[key],
            weight=hundredths(float(weights[at, key])),
        )
        bars = (_candidates(on, at, every, words), _heads(on, pattern[:, :, at, key], key, view))
        frames.append(Frame(words("frame", step=at + 1, n=n), bars, sentence, f"{at + 1}"))
    return tuple(frames)


def _candidates(on: Output, at: int, labels: dict[int, str], words: Sentences) -> Bars:
    """The likeliest tokens of a step, the one that was written among them."""
    own, steps = int(on.ids[at]), on.steps
    chances = {
        int(id): float(np.exp(p)) for id, p in zip(steps.top_ids[at], steps.top_logprobs[at])
    }
    chances.setdefault(own, float(np.exp(steps.logprob[at])))
    rows = tuple(
        BarRow(labels[id], (p,), (tenths(p),), selected=id == own) for id, p in chances.items()
    )
    return Bars(
        title=words("candidates", step=at + 1),
        columns=(words("probability"),),
        rows=rows,
        high=1.0,
    )


def _heads(on: Output, weights: np.ndarray, key: int, view: str) -> Bars:
    """The heads that attend most to a source token at a step, weights (layer, head), with the mean
    and the head on show."""
    words = sentences(CONCEPT, "alignment")
    n_layer, n_head = weights.shape
    mean_of = {f"{layer}": float(weights[layer].mean()) for layer in range(n_layer)}
    values = {
        translation.MEAN_OF_ALL: float(weights.mean()),
        **mean_of,
        **{f"{layer}.{head}": float(w) for (layer, head), w in np.ndenumerate(weights)},
    }
    heads = sorted((name for name in values if "." in name), key=lambda name: -values[name])
    listed = dict.fromkeys((translation.MEAN_OF_ALL, view, *heads[:N_HEADS]))
    rows = tuple(
        BarRow(
            translation.view_title(name, n_layer, n_head),
            (values[name],),
            (hundredths(values[name]),),
            selected=name == view,
            key=name,
        )
        for name in listed
    )
    title = words("heads", key=on.source[key])
    return Bars(title=title, select=("cross",), columns=(words("weight"),), rows=rows, high=1.0)


# ---- beam search ---------------------------------------------------------------------------------


def _beams(run: Run, chosen: Mapping[str, Any]) -> range:
    return range(1, chosen.get("n_beams", MOST_BEAMS) + 1)


@spec.panel
def hypotheses(
    run: Run,
    n_beams: int = 4,
    beam: Annotated[
        int | None, Choice(_beams, of="text", help="the hypothesis, counted from 1")
    ] = None,
    most: int | None = None,
) -> Panel:
    """The hypotheses of a beam search and the tree that it grew, with the path to one of them.

    beam: counted from 1, the best first, which is taken where None. most: steps after which the
    search was stopped, None for all. Raises ValueError for what is not there and for a model that
    does not translate.
    """
    if not 1 <= n_beams <= MOST_BEAMS:
        raise ValueError(f"n_beams is {n_beams}; it can be 1 to {MOST_BEAMS}")
    if most is not None and most < 1:
        raise ValueError(f"most is {most}; it must be 1 or more")
    if len(run.recording().streams) < 2 or run.loaded.capabilities.classes:
        raise ValueError(REFUSALS("no_translation", model=model_names.title(run.model)))
    search = drafts.search(run.model, run.text, n_beams)
    while not search.finished and (most is None or len(search.steps) < most):
        search.resume()
    steps = tuple(search.steps[:most])
    last = steps[-1]
    expect_place("hypothesis", beam, len(last), first=1)
    beam = beam or 1
    words = sentences(CONCEPT, "hypotheses")
    texts = [[run.loaded.tokenizer.text(each.ids) for each in beams] for beams in steps]
    best = last[0]
    rows = tuple(
        (
            f"{at + 1}",
            text or words("nothing"),
            f"{len(each.ids)}" if each.done else words("open", n=len(each.ids)),
            fixed(sum(each.logprobs), 3),
            fixed(translation.penalty(each), 3),
            fixed(each.score, 3),
        )
        for at, (each, text) in enumerate(zip(last, texts[-1]))
    )
    table = TextTable(
        select=("beam",),
        columns=words.lines("columns"),
        rows=rows,
        keys=tuple((f"{at + 1}",) for at in range(len(last))),
        selected=beam - 1,
        note=words("score"),
    )
    return Panel(
        title=words("title"),
        finding=words(
            "finding",
            text=texts[-1][0] or words("nothing"),
            score=fixed(best.score, 3),
            n=plural(len(last), "hypothesis", "hypotheses"),
        ),
        figures=(table, _tree(run, steps, beam - 1, words)),
        table=translation.beam_table(steps, texts),
        caption=(
            words("caption", n=n_beams),
            *([words("copied")] if unknown_words.copied_words(run.recording()) else []),
        ),
        file="beams",
    )


def _tree(run: Run, steps: Sequence[Sequence[Beam]], chosen: int, words: Sentences) -> Graph:
    """Tree of the beam search: a row for each step, the best hypothesis at the left. A hypothesis
    that has ended keeps its node."""
    alive = translation.surviving_beams(steps)
    nodes, texts, strengths, places = [words("start")], [""], [1.0], [(0, 0)]
    edges: list[Edge] = []
    before: list[int] = [0]
    for at, beams in enumerate(steps):
        labels, now = run.loaded.labels([beam.ids[-1] for beam in beams]), []
        for rank, (beam, label) in enumerate(zip(beams, labels)):
            parent = before[beam.parent] if at else 0
            if len(beam.ids) <= at:  # ended in an earlier step
                now.append(parent)
                continue
            p = exp(beam.logprobs[-1])
            now.append(len(nodes))
            edges.append(Edge(parent, len(nodes), float(rank in alive[at])))
            nodes.append(label)
            texts.append(tenths(p))
            strengths.append(p)
            places.append((rank, at + 1))
        before = now
    return Graph(
        title=words("tree"),
        note=words("tree_note"),
        nodes=tuple(nodes),
        strengths=tuple(strengths),
        edges=tuple(edges),
        layout="tree",
        selected=before[chosen],
        places=tuple(places),
        texts=tuple(texts),
    )


# ---- the probability of the whole ----------------------------------------------------------------


@spec.panel
def probability(run: Run, ended: bool = True) -> Panel:
    """The probability of a translation, word by word and as a whole; what a reader typed beside the
    model's own. ended and ValueError as for `alignment`."""
    on = _output(run, ended)
    words = sentences(CONCEPT, "probability")
    groups = translation.produced_words(on.recording, on.end is not None)
    table = translation.word_table(on.steps, on.tokens, groups)
    names = [str(each) for each in table["word"]]
    rows = tuple(
        BarRow(name, (float(p),), (tenths(float(p)),)) for name, p in zip(names, table["p"])
    )
    finding = words("finding", **_totals(on))
    if on.is_typed:
        finding = f"{finding} {_compared(run, on, words)}"
    return Panel(
        title=words("title"),
        finding=finding,
        figures=(Bars(columns=(words("column"),), rows=rows, high=1.0),),
        table=table,
        details=_details(on, words),
        caption=(words("caption"),),
        file="translation-probability",
    )


def _totals(on: Output) -> dict[str, str]:
    """A translation's log-probability, its length and its perplexity, written."""
    return {
        "logp": fixed(on.total, 3),
        "n": plural(len(on.ids), "token"),
        "perplexity": f"{translation.perplexity(on.steps.logprob):,.2f}",
    }


def _compared(run: Run, on: Output, words: Sentences) -> str:
    """Sentence that compares a reader's typed translation with the model's own."""
    own = _output(replace(run, target=None), True)
    if np.array_equal(own.ids, on.ids):
        return words("equal")
    text = own.recording.target or words("nothing")
    sentence = words("own", text=text, **_totals(own))
    if not (own.end and on.end):  # one of them is no whole text
        return sentence
    return f"{sentence} {words('likelier' if on.total > own.total else 'less_likely')}"


def _details(on: Output, words: Sentences) -> tuple[str, ...]:
    """Sentences on the weights, the probabilities and their sum, with this sentence's numbers."""
    attention, logprobs = translation.cross_attention(on.recording), on.steps.logprob
    n_layer, n_head, _, n_source = attention.pattern.shape
    n, first = len(logprobs), logprobs[:N_ADDENDS]
    addends = sum_text(*first)[0] + (" …" if n > N_ADDENDS else "")
    total, perplexity = fixed(on.total, 3), f"{translation.perplexity(logprobs):,.2f}"
    return words.lines(
        "details",
        scale=scale_text(attention, 0),
        source=plural(n_source, "source token"),
        layers=plural(n_layer, "layer"),
        heads=plural(n_head, "head"),
        vocabulary=f"{on.recording.model.n_vocab:,}",
        addends=addends,
        total=total,
        n=n,
        logs=enough_digits(perplexity, lambda each: exp(each / n), -on.total)[0],
        perplexity=perplexity,
    )
