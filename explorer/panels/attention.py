"""The panels on all heads of an attention, on one of them, and on what is found in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from explorer.analysis import attention as attention_analysis
from explorer.analysis import head_naming, opening
from explorer.analysis.attention import (
    SCALES,
    TOKEN_FILTERS,
    UNITS,
    DisplayOptions,
    HeadSelection,
    HeadView,
    MatrixView,
    groups,
    head_matrix,
    head_view,
)
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import (
    PAIRS,
    Finding,
    vote_finding,
    word_groups,
)
from explorer.analysis.word_classes import CONTENT, UNSURE, classes, is_word, unread_part
from explorer.analysis.words import merge_weights
from explorer.analysis.words import uniform_weight as words_uniform
from explorer.components import codec
from explorer.figures.formatting import (
    Written,
    fixed,
    hundredths,
    word_in_sentence,
)
from explorer.figures.kinds import HeadMatrices, LinkedWeights, TextTable, VoteLine
from explorer.panels import spec, vote_lines
from explorer.panels.choice import EVERY, OPENS, Choice, arguments_of, parameters, resolved
from explorer.panels.selection import (
    TOKEN,
    FirstAttention,
    Head,
    HeadOrEvery,
    KeyOfRow,
    Layer,
    LayerOrEvery,
    OpenedAttention,
    RowOrEvery,
    Selection,
    attention_of,
    place_if_any,
    select,
)
from explorer.panels.spec import Panel
from explorer.text import attention as attention_text
from explorer.text import findings as findings_text
from explorer.text import head_naming as head_naming_text
from explorer.wording.markdown_escape import plain
from explorer.wording.templates import all_of, sentences
from models.contract.edits import MeanHead, ZeroHead
from models.contract.recording import Attention, Recording
from models.runtime.caching import memo
from models.runtime.run import Run
from models.tokens.chat import message_starts

CONCEPT = "heads"
TAB = sentences(CONCEPT, "tab")
TABLE = "Table"  # the view of a head that has its numbers open below the picture
VIEWS = {"Lines": ("links",), "Matrix": ("matrix",), "Both": ("links", "matrix"), TABLE: ("links",)}
N_KEYS = 4  # that a sentence on a row names

# ---- choices of how weights are displayed --------------------------------------------------------

TOKENS = Choice(TOKEN_FILTERS, "Which tokens", name="att_keep", menu=True, help=TAB("which_tokens"))
Tokens = Annotated[str, TOKENS]
Scale = Annotated[str, Choice(SCALES, "Colour scale", menu=True, help=TAB("colour_scale"))]
Log = Annotated[
    bool,
    Choice({False: "Linear", True: "Log"}, "Tone", name="tone", menu=True, help=TAB("tone")),
]


def unit_on_screen(run: Run, chosen: Mapping[str, Any]) -> str:
    """Unit of the rows and columns of a head until a reader chooses: words where the finding of the
    selected token is a link of a word of several tokens, so that the picture shows the weight that
    the finding states; else tokens."""
    tokens, by_word = UNITS
    if chosen.get("token") is None:
        return tokens
    on = select(run, *(chosen[name] for name in ("layer", "head", "token", "attention")))
    link = link_on_screen(on, on.query)
    return by_word if link and max(on.facts.word_sizes(link)) > 1 else tokens


def _renormalised(run: Run, chosen: Mapping[str, Any]) -> tuple[bool, ...]:
    """True where rows can sum to 1 again: without some tokens alone."""
    return (False, True) if chosen.get("tokens", "All") != "All" else (False,)


PATTERN_TITLES = {"previous": "previous token", "next": "next token"}


def patterns(run: Run, chosen: Mapping[str, Any]) -> dict[str, str]:
    """The patterns that heads of an attention have, each with the number of its heads."""
    on = select(run, attention=chosen.get("attention", ""))
    counts = Counter(head.name for head in on.heads)
    labels = {
        name: f"{PATTERN_TITLES.get(name, name)} ({counts[name]})"
        for name in head_naming.meanings(on.recording, on.attention)
        if counts[name]
    }
    return {"": TAB("find"), **labels}


def link_on_screen(selection: Selection, row: int | None) -> Finding | None:
    """The link between words that is told of a row of the selected head, None where there is
    none."""
    here = selection.attention.name, (selection.layer, selection.head), row
    every = (each for each in selection.facts.leading_findings() if each.kind in PAIRS)
    return next((one for one in every if (one.attention, one.at, one.query) == here), None)


# ---- all heads -----------------------------------------------------------------------------------

ROWS = {"Word": "This word", "All": "All words"}  # whose rows each head shows
RESTS = 0.5  # of a head's attention, from which on it is one that rests on the tokens left out
COLUMNS = ("score", "chance", "entropy", "distance", "sink")  # the measures of a head


@spec.panel
def heads(
    run: Run,
    layer: LayerOrEvery = OPENS,
    head: HeadOrEvery = OPENS,
    listed: Annotated[
        bool, Choice({False: "Grid", True: "List"}, "Heads as", name="grid", menu=True)
    ] = False,
    rows: Annotated[str, Choice(ROWS, "In each head", name="grid_rows")] = "Word",
    pattern: Annotated[str, Choice(patterns, help="the pattern whose heads are shown")] = "",
    tokens: Tokens = "All",
    scale: Scale = "Global",
    log: Log = False,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """All heads of an attention as small pictures on one scale.

    layer and head: the one that is marked, none where "every". listed: a list in the place of
    pictures. rows: one of ROWS. pattern: the name of the heads drawn, "" for all. tokens: those
    that are shown, one of TOKEN_FILTERS. scale: one of SCALES. log: logarithmic colours. Raises
    ValueError for what is not there.
    """
    selection = select(run, layer or 0, head or 0, 0, attention)
    recording, of = selection.recording, selection.attention
    if layer is not None and head is not None:
        layer, head, _ = selection.at
    display = DisplayOptions(tokens=tokens, scale=scale, log=log)
    every = selection.heads
    left = attention_analysis.hidden_tokens(recording, of, display)
    members = [each for each in every if not pattern or each.name == pattern]
    words = sentences(CONCEPT, "grid")
    chosen = (-1, -1) if layer is None or head is None else (layer, head)
    figure = (
        _head_table(members, chosen)
        if listed
        else replace(
            _grid(selection, every, left.keys, display),
            selected=chosen,
            by_word=rows == "Word",
            only=pattern,
        )
    )
    return Panel(
        title=words("title", heads=len(every)),
        numbers={
            "all_heads": Written.count(len(every)),
            "heads": Written.count(of.pattern.shape[1]),
        },
        finding=left.note or _on_sinks(every),
        figures=(figure,),
        table=_columns(members),
        details=words.lines("columns_across" if selection.is_across else "columns"),
        caption=(words("caption", attention=of.name, scale=SCALES[scale].lower()),),
        file="-".join(["heads", *(of.name.split() if attention else [])]),
    )


def _on_sinks(every: Sequence[head_naming.Head]) -> str:
    """Sentence on how many heads rest on sinks, or that the text is too short to say."""
    words = sentences(CONCEPT, "grid")
    if all(each.name == head_naming.TOO_SHORT for each in every):
        return words("too_short", fewest=head_naming.FEWEST_TOKENS)
    n = sum(each.name == head_naming.SINK for each in every)
    return words("no_sinks" if not n else "one_sink" if n == 1 else "sinks", n=n, heads=len(every))


def _grid(
    selection: Selection,
    every: Sequence[head_naming.Head],
    hidden: np.ndarray | None,
    display: DisplayOptions,
) -> HeadMatrices:
    of, axes, pattern = selection.attention, selection.axes, selection.attention.pattern
    quiet = np.zeros(pattern.shape[-1], bool) if hidden is None else hidden
    back = np.zeros(len(every), bool)
    if quiet.any():
        back = pattern[..., quiet].sum(-1).mean(-1).ravel() > RESTS
        pattern = np.where(quiet, 0, pattern)
    cells, peak, fold = codec.thumbnails(pattern)
    allowed = of.allowed if len(of.masks) > 1 else of.allowed[0]
    weights = {"cells": cells, "peak": peak} | codec.runs(allowed)
    of_word = groups(selection.recording, of, axes)[1].of
    if fold == 1:  # the largest weight of a word is written out, to the digits of the large picture
        weights["most"] = pattern.max(axis=-1).astype(np.float32)
        if selection.is_across:
            weights["most_in"] = pattern.max(axis=-2).astype(np.float32)
    else:  # a cell stands for several tokens, and a caption names one
        weights["best"] = pattern.argmax(axis=-1).astype(np.uint32)
        if selection.is_across:
            weights["best_in"] = pattern.argmax(axis=-2).astype(np.uint32)
    return HeadMatrices(
        select=("layer", "head"),
        follows="head",
        weights=weights,
        shape=cells.shape,
        fold=fold,
        names=tuple(each.name for each in every),
        strengths=tuple(_strengths(every).round(4).tolist()),
        scores=tuple(_number(each) for each in every),
        back=tuple(map(bool, back)),
        tokens=axes.rows,
        keys=axes.keys,
        words=tuple(groups(selection.recording, of, axes)[1].labels[at] for at in of_word),
        quiet=tuple(np.flatnonzero(quiet).tolist()),
        fillers=tuple(np.flatnonzero(_fillers(selection)).tolist()),
        sinks=tuple(np.flatnonzero(selection.facts.shared_sinks(of.name)).tolist()),
        ablated=tuple(
            edit.layer * pattern.shape[1] + edit.head
            for edit in selection.run.edits
            if isinstance(edit, (ZeroHead, MeanHead)) and edit.attention == of.name
        ),
        scale=display.scale.lower(),
        log=display.log,
        says=_templates("small"),
    )


def _fillers(selection: Selection) -> np.ndarray:
    """Mask of the columns that are no words of content, as far as that is known, (key) bool."""
    _, keys = groups(selection.recording, selection.attention, selection.axes)
    meaning = [each in (CONTENT, UNSURE) for each in classes(keys.labels)]
    words = np.array([is_word(each) for each in keys.labels]) & np.array(meaning)
    return ~words[np.array(keys.of)]


def _templates(panel: str) -> dict[str, str]:
    """Sentences whose slots are filled in the browser, each slot as <name>."""
    marks = str.maketrans("{}", "<>")
    return {name: str(each).translate(marks) for name, each in all_of(CONCEPT)[panel].items()}


def _strengths(every: Sequence[head_naming.Head]) -> np.ndarray:
    """By how much the score of each head's name lies above chance, 0 without a name, (head)."""
    scores, chances = np.array([(each.score, each.chance) for each in every]).reshape(-1, 2).T
    return np.nan_to_num(scores - chances)


def _number(one: head_naming.Head) -> str:
    """The number that a head's name rests on, "" where it has none."""
    value = one.entropy if one.name == "diffuse" else one.score
    return hundredths(value) if isfinite(value) else ""


def _columns(every: Sequence[head_naming.Head]) -> spec.Columns:
    measures = {name: [float(getattr(each, name)) for each in every] for name in COLUMNS}
    return {
        "layer": [each.layer for each in every],
        "head": [each.head for each in every],
        "pattern": [each.name for each in every],
        **measures,
        "p_value": [_p_value(each) for each in every],
    }


def _p_value(one: head_naming.Head) -> float:
    """The probability that as many rows show a head's pattern by chance, NaN where it has none."""
    return next((each.p_value for each in one.relations if each.name == one.name), nan)


def _head_table(every: Sequence[head_naming.Head], chosen: tuple[int, int]) -> TextTable:
    order = [every[at] for at in np.argsort(-_strengths(every), kind="stable")]
    places = [(each.layer, each.head) for each in order]
    return TextTable(
        select=("layer", "head"),
        columns=("head", "pattern", *COLUMNS),
        rows=tuple(
            (
                f"L{each.layer} H{each.head}",
                each.name,
                *(fixed(getattr(each, name)) for name in COLUMNS),
            )
            for each in order
        ),
        keys=tuple((str(layer), str(head)) for layer, head in places),
        selected=places.index(chosen) if chosen in places else -1,
    )


def _voted_row(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The pronoun that the heads of an attention vote on most clearly."""
    vote = opening.voted(run.recording(), attention_of(run, chosen).name)
    return vote.query if vote else None


@spec.panel
def votes(
    run: Run,
    token: Annotated[int | None, replace(TOKEN, suits=_voted_row)] = OPENS,
    attention: FirstAttention = OPENS,
) -> Panel:
    """The vote of an attention's best-tested heads on the noun that a pronoun stands for; a press
    on a vote opens its head.

    token: the pronoun, the one with the clearest vote where None. Raises ValueError where no tested
    head votes on it.
    """
    selection = select(run, 0, 0, token or 0, attention)
    words, of, recording = sentences(CONCEPT, "votes"), selection.attention, selection.recording
    vote = None if token is None else selection.facts.vote_on(of.name, selection.query)
    if vote is None:
        word = findings_text.quoted(selection.axes.rows[selection.query])
        raise ValueError(words("no_pronoun") if token is None else words("no_vote", word=word))
    groups = word_groups(recording, of.query)
    opened = {"attention": selection.name} if selection.name else {}
    keys = tuple(
        {"layer": each.layer, "head": each.head, "token": groups.starts[vote.row], **opened}
        for each in vote.ballots
    )
    side = vote_lines.Side(vote, keys)
    figure = vote_lines.sentence_votes(recording, of.query, (side,), True)
    row = groups.starts[vote.row], *of.pattern.shape[2:]
    one = vote_finding(recording, of, vote)
    says = findings_text.statement(one, findings_text.quoted)
    unread = findings_text.unread(unread_part(recording.model.name, recording.text))
    right = findings_text.right(recording.model.fingerprint, vote.n_votes, len(vote.ballots))
    return Panel(
        title=words("title"),
        finding=" ".join(filter(None, (f"{says}.", unread or words("hint")))),
        figures=(
            replace(
                figure, row=row, bar=figure.bar if unread else f"{figure.bar} {right}".rstrip()
            ),
        ),
        table=vote_lines.vote_columns([vote]),
        details=words.lines("details"),
        caption=(words("caption"),),
        file="votes",
    )


MOST_READ = 3  # words to which lines go
LEAST_READ = 0.05  # weight of a second one


class ReadWords(NamedTuple):
    """The weights that a word gives other words of its text in one head: its place among the words,
    theirs, the largest weight first, these weights, whether no token gets more than the first, and
    what uniform attention would give it."""

    row: int
    keys: tuple[int, ...]
    weights: tuple[float, ...]
    is_most: bool
    uniform: float


def read_words(selection: Selection) -> ReadWords | None:
    """The words that the selected word reads in the selected head, by whole words; None between two
    texts, and where it is no word or reads none."""
    recording, of = selection.recording, selection.attention
    groups = word_groups(recording, of.query)
    row = int(groups.of[selection.query])
    is_text = np.array([is_word(each) for each in groups.labels]) & ~np.array(groups.special)
    if len(recording.streams) > 1 or not is_text[row]:
        return None
    weights = merge_weights(of.pattern[selection.at[:2]], groups, groups)[row]
    is_text[row] = False
    order = np.argsort(-np.where(is_text, weights, -1), kind="stable")[:MOST_READ]
    keys = tuple(
        int(each)
        for at, each in enumerate(order)
        if is_text[each] and weights[each] > (LEAST_READ if at else 0)
    )
    if not keys:
        return None
    uniform = words_uniform(of.allowed[selection.layer], groups, groups, row, keys[0])
    most = weights[keys[0]] >= weights.max()
    return ReadWords(row, keys, tuple(float(weights[each]) for each in keys), bool(most), uniform)


def says_of_read(selection: Selection, read: ReadWords, mark: findings_text.Mark) -> str:
    """The word that gets most of the selected one, in one short sentence without a full stop."""
    labels = word_groups(selection.recording, selection.attention.query).labels
    name = "looks" if read.is_most else "gives"
    slots = {"word": mark(labels[read.row]), "key": mark(labels[read.keys[0]])}
    return sentences(CONCEPT, "reads")(name, **slots)


@spec.panel
def reads(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: RowOrEvery = OPENS,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """The words that one word attends to in one head, as lines over the sentence; a press on a line
    opens the head.

    layer, head, token: the head and the word, those of the strongest finding where None. Raises
    ValueError where the word reads no other.
    """
    selection = select(run, layer, head, token or 0, attention)
    recording, of, words = selection.recording, selection.attention, sentences(CONCEPT, "reads")
    if token is None or (read := read_words(selection)) is None:
        raise ValueError(words("no_word"))
    groups = word_groups(recording, of.query)
    word, at = groups.labels[read.row], {"layer": selection.layer, "head": selection.head}
    opened = {"attention": selection.name} if selection.name else {}
    key = urlencode({**at, "token": groups.starts[read.row], **opened})
    lines = []
    for order, (place, weight) in enumerate(zip(read.keys, read.weights)):
        slots = {"key": findings_text.quoted(groups.labels[place]), "weight": hundredths(weight)}
        says = words("share", word=findings_text.quoted(word), **slots)
        line = VoteLine(
            place, order, "", share=weight, number=hundredths(weight), says=says, key=key
        )
        lines.append(line)
    figure = vote_lines.sentence_lines(recording, of.query, read.row, lines)
    bar = words(
        "bar", word=word, heads=len(selection.heads), uniform=hundredths(read.uniform), **at
    )
    unread = findings_text.unread(unread_part(recording.model.name, recording.text))
    says = says_of_read(selection, read, findings_text.quoted)
    hint = sentences(CONCEPT, "votes")("hint")
    return Panel(
        title=words("title"),
        finding=" ".join(filter(None, (f"{says}.", unread or hint))),
        figures=(replace(figure, bar=bar, row=(groups.starts[read.row], *of.pattern.shape[2:])),),
        table={"word": [groups.labels[each] for each in read.keys], "weight": list(read.weights)},
        details=words.lines("details"),
        caption=(words("caption"),),
        file="reads",
    )


@spec.predicts
@spec.panel
def strongest_findings(run: Run) -> Panel:
    """The findings of a recording, the most telling first; a press opens the head of one."""
    recording = run.recording()
    every = RecordingFacts(recording).findings()
    words = sentences(CONCEPT, "strongest_findings")
    if not every:
        raise ValueError(words("none"))
    one = [findings_text.headline(each, findings_text.quoted) for each in every]
    lines = [findings_text.evidence(each, findings_text.quoted) for each in every]
    return Panel(
        title=words("title"),
        finding=f"{one[0]}.",
        figures=(
            TextTable(
                select=("address",),
                columns=(words("finding"),),
                rows=tuple((each,) for each in one),
                keys=tuple((urlencode(dict(each.address)),) for each in every),
            ),
        ),
        table={"finding": one, "evidence": lines},
        details=tuple(lines),
        file="findings",
    )


# ---- panels that the page and pictures made ahead share ------------------------------------------


def cached_heads(selection: Selection, chosen: Mapping[str, Any]) -> Panel:
    """The panel of all heads. It has no selection, so choosing a head sends none of it again."""
    return _cached_panel(selection, heads, {**chosen, "layer": EVERY, "head": EVERY})


def cached_head(selection: Selection, chosen: Mapping[str, Any]) -> Panel:
    """The panel of one head."""
    return _cached_panel(selection, head, chosen)


def _cached_panel(
    selection: Selection, panel: Callable[..., Panel], chosen: Mapping[str, Any]
) -> Panel:
    """A panel of a run with its bytes, made once and kept beside its recording."""

    def make() -> Panel:
        made = panel(selection.run, **choices)
        assert made.bare  # now, since what it weighs is counted when it is kept
        return made

    choices = {each.argument: chosen.get(each.argument, each.default) for each in parameters(panel)}
    key = ("panel", panel.__name__, selection.run.target, *sorted(choices.items()))
    return memo(selection.recording, key, make)


# ---- one head ------------------------------------------------------------------------------------


def display_of(run: Run, chosen: Mapping[str, Any]) -> DisplayOptions:
    """Display of a head's matrix by the choices of `head`."""
    names = ("tokens", "renormalise", "scale", "log")
    unit = chosen["unit"] or unit_on_screen(run, chosen)
    return DisplayOptions(unit, *(chosen[name] for name in names))


def after_press(
    on: Selection, display: DisplayOptions, pressed: Mapping[str, Any]
) -> dict[str, str]:
    """The words of the address that a press in the picture of a head leads to, "" for what it
    leaves open. pressed: the row, the column, or a row and a cell's column, of which a token is
    selected, of a cell between words its strongest pair of tokens."""
    row, column, opened = (int(pressed.get(each, -1)) for each in ("row", "column", "cell"))
    at = (on.layer, on.head)
    matrix = head_matrix(on.recording, on.attention, at, on.axes, display)
    words = {"layer": str(on.layer), "head": str(on.head), "source": "", "weight_at": ""}
    words["token"] = EVERY if row < 0 and column < 0 else ""
    if 0 <= row < len(matrix.row_tokens):
        words["token"] = str(matrix.row_tokens[row][0])
        if 0 <= opened < len(matrix.key_tokens):
            query, key = matrix.strongest_pair(on.attention.pattern[at], row, opened)
            words |= {"token": str(query), "weight_at": f"{query}.{key}"}
    elif 0 <= column < len(matrix.key_tokens):
        words["source"] = str(matrix.key_tokens[column][0])
    return words


@spec.panel
def head(
    run: Run,
    layer: Layer = OPENS,
    head: Head = OPENS,
    token: RowOrEvery = OPENS,
    key: KeyOfRow = OPENS,
    view: Annotated[
        str, Choice({name: name for name in VIEWS}, "Picture of the head", menu=True)
    ] = "Lines",
    incoming: Annotated[
        bool, Choice(label="Also show what attends to the word", menu=True)
    ] = False,
    tokens: Tokens = "All",
    renormalise: Annotated[
        bool,
        Choice(_renormalised, "Renormalise", name="att_sum", menu=True, help=TAB("renormalise")),
    ] = False,
    unit: Annotated[
        str | None,
        Choice(UNITS, "Rows and columns", name="att_unit", suits=unit_on_screen, menu=True),
    ] = None,
    scale: Scale = "Global",
    log: Log = False,
    attention: OpenedAttention = OPENS,
) -> Panel:
    """One head: the sentence tinted by a word's weights, and its links, its matrix, or both.

    layer, head, token: the head and the query, that of the strongest finding where None; all
    queries where "every"; key: with a token the cell that is opened, else, between
    two texts, the key that is selected. view: one of VIEWS; "Table" opens the numbers below links.
    incoming: links to the token too. tokens: those that are shown, one of TOKEN_FILTERS;
    renormalise: rows sum to 1 without the others. unit: "Tokens" or "Words"; None: words where the
    token's finding is about a word of several. scale: one of SCALES. log: logarithmic colours.
    Raises ValueError for what is not there.
    """
    display = display_of(
        run,
        {
            **{"layer": layer, "head": head, "token": token, "attention": attention},
            **{"unit": unit, "tokens": tokens, "renormalise": renormalise},
            **{"scale": scale, "log": log},
        },
    )
    selection = select(run, layer, head, token or 0, attention)
    recording, of = selection.recording, selection.attention
    token = None if token is None else selection.query
    key = place_if_any("key", key, of.pattern.shape[3])
    across = selection.is_across
    picture = view_of(selection, token, key, display)
    words = sentences(CONCEPT, "head")
    return Panel(
        title=picture.title,
        finding=_row_sentence(picture) or words("hint_across" if across else "hint"),
        figures=(_linked(picture, of, VIEWS[view], incoming, _breaks(recording, of, picture)),),
        table=picture.columns,
        details=_head_in_words(recording, of, picture),
        caption=picture.caption,
        file=picture.file,
        numbers=_head_numbers(selection, token, key),
    )


def n_words(recording: Recording) -> int:
    """The number of words of the first text."""
    groups = word_groups(recording, recording.streams[0].name)
    return sum(map(is_word, np.array(groups.labels)[~np.array(groups.special)]))


def word_weights(recording: Recording, of: Attention, query: int, key: int) -> np.ndarray:
    """The weight of the word of a query on the word of a key in each head, (layer, head): summed
    over the pieces of the key's word, the mean over those of the query's."""
    by_row, by_key = attention_analysis.groups(
        recording, of, attention_analysis.axes(recording, of)
    )
    (top, height), (left, width) = by_row.span(by_row.of[query]), by_key.span(by_key.of[key])
    pieces = of.pattern[:, :, top : top + height, left : left + width]
    return pieces.sum(axis=-1, dtype=np.float64).mean(axis=-1)


def _head_numbers(selection: Selection, token: int | None, key: int | None) -> dict[str, Written]:
    """The number of words of the text, and of a selected query the weight of the key that is
    opened, or of the one that it attends to most, by tokens and by words."""
    numbers = {"words": Written.count(n_words(selection.recording))}
    if token is None:
        return numbers
    recording, of = selection.recording, selection.attention
    key = selection.strongest if key is None else key
    of_words = word_weights(recording, of, token, key)[selection.layer, selection.head]
    by_words = Written.by(hundredths, of_words)
    return numbers | {"weight": selection.weight(key), "word_weight": by_words}


# The choices of `heads` and `head`, by their names in an address.
CHOICES = {each.name: each for panel in (heads, head) for each in parameters(panel)}


def opened(run: Run, words: Mapping[str, str]) -> tuple[Panel, Panel]:
    """All heads and one of them, under choices in the words of an address. Raises ValueError for
    what is not there."""
    chosen = resolved(tuple(CHOICES.values()), run, words)
    return heads(run, **arguments_of(heads, chosen)), head(run, **arguments_of(head, chosen))


def view_of(
    selection: Selection,
    token: int | None,
    key: int | None,
    display: DisplayOptions,
    link: Finding | None = None,
) -> HeadView:
    """The head of a selection as a panel shows it. token and key: as of `head`; link: what is told
    of the selected row."""
    one = selection.heads[selection.layer * selection.attention.pattern.shape[1] + selection.head]
    pair_told = (link.query, link.keys[0]) if link else None
    column = (key if token is None else None) if selection.is_across else token
    cell = "" if token is None or key is None else f"{token}.{key}"
    chosen = HeadSelection((token, column), cell)
    return head_view(
        selection.recording,
        selection.attention,
        one,
        selection.axes,
        display,
        chosen,
        selection.run.target,
        pair_told,
    )


def _breaks(recording: Recording, of: Attention, picture: HeadView) -> tuple[int, ...]:
    """The columns at which the messages of a chat begin, the first one aside."""
    keys, ends = recording.stream(of.key), [end for _, end in picture.matrix_view.key_tokens]
    starts = message_starts(keys.tokens, keys.roles)
    return tuple(sum(end <= start for end in ends) for start in starts)


def _linked(
    picture: HeadView,
    of: Attention,
    views: tuple[str, ...],
    incoming: bool,
    breaks: tuple[int, ...],
) -> LinkedWeights:
    view, display = picture.matrix_view, picture.choices
    axes = view.axes
    across = axes.produced is not None
    texts, special = zip(*axes.produced) if axes.produced else (None, ())
    hint = sentences(CONCEPT, "head")("hint_across" if across else "hint")
    return LinkedWeights(
        select=("row", "column", "cell"),
        at=(picture.head.layer, picture.head.head),
        rows=axes.rows,
        columns=axes.keys,
        sides=axes.sides,
        weights=_weights(view, picture.pin, picture.column),
        views=views,
        selected=(picture.pin, picture.column),
        cell=picture.cell,
        texts=texts,
        special=(tuple(special), axes.special),
        places=(axes.row_places, axes.key_places),
        sizes=of.pattern.shape[2:],
        firsts=None if display.unit == UNITS[0] else _firsts(picture),
        scale=display.scale.lower(),
        log=display.log,
        incoming=incoming,
        breaks=breaks,
        says=_templates("weights") | {"every": hint},
    )


def _firsts(picture: HeadView) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The token that stands for each row and for each column: the selected one, else the first."""
    view = picture.matrix_view
    rows, keys = ([first for first, _ in each] for each in (view.row_tokens, view.key_tokens))
    for firsts, at, token in zip((rows, keys), (picture.pin, picture.column), picture.tokens):
        if at >= 0 and token is not None:
            firsts[at] = token
    return tuple(rows), tuple(keys)


def _weights(view: MatrixView, row: int, column: int) -> Mapping[str, np.ndarray]:
    """The weights as the browser gets them, the selected row and column exactly."""
    blocks = codec.fine(view.matrix)
    if row >= 0 and "exact" not in blocks:
        blocks["row"] = view.matrix[row].astype(np.float32)
    if column >= 0 and "exact" not in blocks:
        blocks["column"] = view.matrix[:, column].astype(np.float32)
    if view.hidden is not None:
        blocks["hidden"] = view.hidden.astype(np.float32)
    if view.sink is not None:
        blocks["sink"] = view.sink.astype(np.float32)
    return blocks | codec.runs(view.allowed)


def _row_sentence(picture: HeadView) -> str:
    """The sentence on the selected row or column, which names the key of a selected cell; "" where
    no token is selected."""
    words, view = sentences(CONCEPT, "weights"), picture.matrix_view
    axes, row, column = view.axes, picture.pin, picture.column
    if row >= 0:
        weights, seen = view.matrix[row], view.allowed[row]
        names, name, word = axes.keys, "row", axes.rows[row]
    elif column >= 0:
        weights, seen = view.matrix[:, column], view.allowed[:, column]
        names, name, word = axes.rows, "column", axes.keys[column]
    else:
        return ""
    best = [at for at in np.argsort(-weights, kind="stable").tolist() if seen[at]][:N_KEYS]
    cell = picture.cell
    if cell and cell[0] == row and cell[1] not in best and seen[cell[1]]:
        best[N_KEYS - 1 :] = [cell[1]]
    others = ", ".join(
        words("one", word=word_in_sentence(names[at]), weight=hundredths(float(weights[at])))
        for at in best
    )
    sentence = words(name, word=word_in_sentence(word), others=others)
    if row >= 0 and view.hidden is not None:
        sentence += words("hidden", share=hundredths(float(view.hidden[row])))
    if row >= 0 and view.sink is not None:
        sentence += words("sink", share=hundredths(float(view.sink[row])))
    return sentence


def _head_in_words(recording: Recording, of: Attention, picture: HeadView) -> tuple[str, ...]:
    """The head's name, what supports it, and what is measured of it."""
    meanings = head_naming.meanings(recording, of)
    link = RecordingFacts(recording).link(of.name, picture.head.layer, picture.head.head)
    lines = [
        attention_text.summary(
            picture.head,
            meanings,
            link,
            explained=link is not None
            and head_naming.explains(recording, of, picture.head, link.query, link.key),
        ),
        head_naming_text.figures(picture.head),
        evidence(picture),
    ]
    return tuple(plain(line) for line in lines if line)


def evidence(picture: HeadView) -> str:
    """The cells that support a head's name, strongest first; "" where there are none."""
    words, view = sentences(CONCEPT, "weights"), picture.matrix_view
    cells = [
        words(
            "pair",
            row=findings_text.marked(view.axes.rows[row]),
            column=findings_text.marked(view.axes.keys[column]),
            weight=hundredths(float(view.matrix[row, column])),
        )
        for row, column in picture.evidence
    ]
    return sentences(CONCEPT, "head")("evidence", cells=", ".join(cells)) if cells else ""
