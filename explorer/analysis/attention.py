"""One head's matrix: what its rows and columns are called, as a table, as a file, and the values a
colour scale shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import head_naming, words
from explorer.analysis.head_naming import UNNAMED, Head, explains, sinks
from explorer.analysis.terminology import sees_ahead, sees_all, taken_out, window_reach, windowed
from explorer.figures.csv import Columns
from explorer.figures.formatting import percent
from explorer.wording.templates import sentences
from models.contract.edits import Ablation
from models.contract.recording import Attention, Recording
from models.contract.spelling import there_are

NOTES = sentences("heads", "notes")

UNITS = ("Tokens", "Words")
TOKEN_FILTERS = {
    "All": "All",
    "Quiet": "Hide common sinks",
    "No specials": "Hide special tokens",
    "No sinks": "Hide the head’s sinks",
}
# a row that gives the shown tokens less is not blown up to sum to 1: that would show rounding
MIN_ROW_SUM = 1e-6
SCALES = {"Global": "0 to 1", "Head": "Per head", "Row": "Per row"}
# the column with what of each row goes to tokens left out; keys have a number in front, so no key
# is called so
HIDDEN = "hidden"
SINK = "sink"


@dataclass(frozen=True)
class Axes:
    """Labels of the rows and columns of an attention.

    rows (query) and keys (key): labels, in pictures and files alike. special (key). produced: None
    where rows and columns are one text; between two texts the token that each row produces and
    whether it is a special one, (query). row_places and key_places: their numbers, where some are
    left out."""

    rows: tuple[str, ...]
    keys: tuple[str, ...]
    special: tuple[bool, ...]
    produced: tuple[tuple[str, bool], ...] | None = None
    row_places: tuple[int, ...] | None = None
    key_places: tuple[int, ...] | None = None

    @property
    def sides(self) -> tuple[str, str]:
        """The titles of rows and columns."""
        return ("query", "key") if self.produced is None else ("target", "source")


def heads_out(recording: Recording, attention: Attention) -> frozenset[tuple[int, int]]:
    """The heads (layer, head) of an attention that are taken out of a recording."""
    numbers = attention.layers.tolist() or list(range(len(attention.pattern)))
    return frozenset(
        (numbers.index(each.layer), each.head)
        for each in recording.edits
        if isinstance(each, Ablation) and each.attention == attention.name and each.layer in numbers
    )


def axes(recording: Recording, attention: Attention, next_token: str = "") -> Axes:
    """The labels of rows and columns. Between two texts a row has the name of the token it
    produces, which is the one after the token it reads; `next_token` is the one that the last row
    produces, which is not in the target."""
    queries, keys = recording.stream(attention.query), recording.stream(attention.key)
    special = tuple(map(bool, keys.special))
    if attention.query == attention.key:
        return Axes(queries.tokens, keys.tokens, special)
    special_tokens = {token for token, is_special in zip(keys.tokens, special) if is_special}
    produced = (
        *zip(queries.tokens[1:], map(bool, queries.special[1:])),
        (next_token, next_token in special_tokens),
    )
    return Axes(tuple(f"→ {token}" for token, _ in produced), keys.tokens, special, produced)


def groups(
    recording: Recording, attention: Attention, axes: Axes
) -> tuple[words.Groups, words.Groups]:
    """The words that rows and columns make. Between two texts a row is a part of the word that it
    helps to produce."""
    streams = recording.stream(attention.query), recording.stream(attention.key)
    query, key = (
        words.words(
            stream,
            recording.target
            if stream.name == "decoder" and len(recording.streams) > 1
            else recording.text,
        )
        for stream in streams
    )
    return (
        query if axes.produced is None else words.produced_words(query, *axes.produced[-1])
    ), key


@dataclass(frozen=True, eq=False)
class MatrixView:
    """A head's matrix under the display options: between tokens or words, all of them or some left
    out.

    matrix and allowed (row, column); `axes` names them. hidden (row): the share of each row's
    attention on columns that are left out, None where none is. row_tokens and key_tokens: the
    tokens (first, past the last) of each row and column. left_out: the names of the columns left
    out. `all_hidden`: the filter would have left nothing, so all is shown. `renormalised`: rows sum
    to 1 again. sink (row): what a learned sink takes of each row, None where there is none or the
    rows sum to 1 without it."""

    matrix: np.ndarray
    allowed: np.ndarray
    axes: Axes
    hidden: np.ndarray | None
    row_tokens: tuple[tuple[int, int], ...]
    key_tokens: tuple[tuple[int, int], ...]
    left_out: tuple[str, ...] = ()
    all_hidden: bool = False
    renormalised: bool = False
    sink: np.ndarray | None = None

    def row_of(self, token: int | None) -> int:
        """The row that a query token is a part of, -1 where there is none."""
        return _index_of_token(self.row_tokens, token)

    def column_of(self, token: int | None) -> int:
        """The column that a key token is a part of, -1 where there is none."""
        return _index_of_token(self.key_tokens, token)

    def cells(self, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """The cells that pairs of tokens (query, key) are a part of, each once, without those left
        out."""
        cells = ((self.row_of(query), self.column_of(key)) for query, key in pairs)
        return list(dict.fromkeys(cell for cell in cells if min(cell) >= 0))

    def strongest_pair(self, matrix: np.ndarray, row: int, column: int) -> tuple[int, int]:
        """The tokens (query, key) of the largest weight within a cell. matrix (query, key) between
        tokens."""
        (top, bottom), (left, right) = self.row_tokens[row], self.key_tokens[column]
        query, key = np.unravel_index(
            matrix[top:bottom, left:right].argmax(), (bottom - top, right - left)
        )
        return top + int(query), left + int(key)


def _index_of_token(tokens: tuple[tuple[int, int], ...], token: int | None) -> int:
    return next(
        (
            at
            for at, (first, end) in enumerate(tokens)
            if token is not None and first <= token < end
        ),
        -1,
    )


def matrix_view(
    matrix: np.ndarray,
    allowed: np.ndarray,
    axes: Axes,
    word_groups: tuple[words.Groups, words.Groups] | None,
    token_filter: str = "All",
    renormalise: bool = False,
    quiet: np.ndarray | None = None,
    sink: np.ndarray | None = None,
) -> MatrixView:
    """A head's matrix between tokens, or between the words that `word_groups` makes, without what
    `token_filter` leaves out.

    matrix and allowed (query, key); token_filter one of TOKEN_FILTERS: without what is `quiet`
    (key) bool, without special tokens, without the head's own sinks. Special tokens are left out
    as rows and as columns; sinks likewise, but between two texts as columns alone: there a sink is
    a token of the source. A word is a sink where one of its tokens is. sink (query): what a learned
    sink takes of a row. Raises ValueError for
    another `token_filter`."""
    if token_filter not in TOKEN_FILTERS:
        raise ValueError(
            f"nothing is called {token_filter!r}; {there_are(token_filter, TOKEN_FILTERS)}"
        )
    cross_stream = axes.produced is not None
    keys = words.token_groups(axes.keys, axes.special) if word_groups is None else word_groups[1]
    rows = (
        (words.token_groups(*zip(*axes.produced)) if axes.produced else keys)
        if word_groups is None
        else word_groups[0]
    )
    hidden_keys = np.zeros(len(keys.labels), bool)
    if token_filter == "No sinks":
        # Of tokens: merged into words, fewer columns would raise what is even.
        hidden_keys = np.logical_or.reduceat(sinks(matrix, allowed), keys.starts)
    elif token_filter == "No specials":
        hidden_keys = np.array(keys.special)
    elif token_filter == "Quiet" and quiet is not None:
        hidden_keys = np.logical_or.reduceat(quiet, keys.starts)
    if word_groups is not None:
        matrix, allowed = (
            words.merge_weights(matrix, rows, keys),
            words.merge_allowed(allowed, rows, keys),
        )
    hides_rows = token_filter in ("No specials", "Quiet")
    hidden_rows = hidden_keys if not cross_stream else np.array(rows.special) & hides_rows
    all_hidden = bool(hidden_keys.all() or hidden_rows.all())
    if all_hidden:
        hidden_keys, hidden_rows = hidden_keys & False, hidden_rows & False
    visible_rows, visible_keys = np.flatnonzero(~hidden_rows), np.flatnonzero(~hidden_keys)
    if sink is not None:
        sink = np.add.reduceat(sink, rows.starts)[visible_rows] / rows.sizes[visible_rows]
    hidden_share, visible, left_out = None, matrix, tuple[str, ...]()
    if hidden_keys.any() or hidden_rows.any():
        hidden_share = (
            matrix[np.ix_(visible_rows, np.flatnonzero(hidden_keys))].astype(np.float64).sum(axis=1)
        )
        visible = matrix[np.ix_(visible_rows, visible_keys)]
        allowed = allowed[np.ix_(visible_rows, visible_keys)]
        left_out = tuple(f"{keys.labels[at]} ({at})" for at in np.flatnonzero(hidden_keys))
        if renormalise:
            total = visible.astype(np.float64).sum(axis=1, keepdims=True)
            visible = (visible / np.where(total > MIN_ROW_SUM, total, np.inf)).astype(matrix.dtype)
    return MatrixView(
        visible,
        allowed,
        _axes_of(rows, keys, visible_rows.tolist(), visible_keys.tolist(), cross_stream),
        hidden_share,
        _tokens(rows, visible_rows.tolist()),
        _tokens(keys, visible_keys.tolist()),
        left_out,
        all_hidden,
        renormalise and hidden_share is not None,
        None if renormalise and hidden_share is not None else sink,
    )


def _axes_of(
    rows: words.Groups,
    keys: words.Groups,
    visible_rows: list[int],
    visible_keys: list[int],
    cross_stream: bool,
) -> Axes:
    produced = tuple((rows.labels[at], rows.special[at]) for at in visible_rows)
    row_labels = tuple(f"→ {label}" if cross_stream else label for label, _ in produced)
    complete = len(visible_rows) == len(rows.labels) and len(visible_keys) == len(keys.labels)
    places = (None, None) if complete else (tuple(visible_rows), tuple(visible_keys))
    return Axes(
        row_labels,
        tuple(keys.labels[at] for at in visible_keys),
        tuple(keys.special[at] for at in visible_keys),
        produced if cross_stream else None,
        *places,
    )


def _tokens(grouped: words.Groups, indices: list[int]) -> tuple[tuple[int, int], ...]:
    ends = (*grouped.starts[1:], grouped.n)
    return tuple((grouped.starts[index], ends[index]) for index in indices)


def argmax_id(logits: np.ndarray) -> int:
    """The id of the highest of a vocabulary's scores (id)."""
    return int(logits.argmax())


@dataclass(frozen=True)
class Softmax:
    """The softmax of one weight: weight = e^score / total, where total is the row's sum of
    e^score."""

    score: float
    total: float
    weight: float
    log_total: float


def softmax_steps(scores: np.ndarray, allowed: np.ndarray, key: int) -> Softmax:
    """The steps of the softmax for one key of one row, eq. 1 of the paper. scores (key) before the
    mask, allowed (key) bool."""
    masked = np.where(allowed, scores.astype(np.float64), -np.inf)
    shifted = np.exp(masked - masked.max())  # the weight does not overflow where e^score would
    with np.errstate(over="ignore"):
        total = np.exp(masked).sum()
    return Softmax(
        float(scores[key]),
        float(total),
        float(shifted[key] / shifted.sum()),
        float(masked.max() + np.log(shifted.sum())),
    )


def strongest_cell(
    matrix: np.ndarray, allowed: np.ndarray, query: int | None = None, key: int | None = None
) -> tuple[int, int]:
    """(query, key) of the largest weight, in the whole matrix, in one row or in one column.

    matrix (query, key) of weights, allowed (query, key). A row that leaves no choice is taken where
    it is asked for or there is no other."""
    if key is not None:
        return int(matrix[:, key].argmax()), key
    if query is None:
        row_maximum = np.where(allowed.sum(axis=1) > 1, matrix.max(axis=1), -1)
        query = int(row_maximum.argmax())
    return query, int(matrix[query].argmax())


def numbered(tokens: Sequence[str], places: Sequence[int] | None = None) -> list[str]:
    """Tokens with their places in front, so that two equal words stay two: "3 the"."""
    return [
        f"{place} {token}"
        for place, token in zip(range(len(tokens)) if places is None else places, tokens)
    ]


def columns(
    matrix: np.ndarray,
    axes: Axes,
    hidden: np.ndarray | None = None,
    sink: np.ndarray | None = None,
) -> Columns:
    """The matrix as named columns: the rows' names, what of each row is `hidden` (row) and what a
    learned `sink` (row) takes, where there is such a thing, then a column for each key."""
    hidden_column = {} if hidden is None else {HIDDEN: hidden}
    hidden_column |= {} if sink is None else {SINK: sink}
    return {
        " \\ ".join(axes.sides): numbered(axes.rows, axes.row_places),
        **hidden_column,
        **dict(zip(numbered(axes.keys, axes.key_places), matrix.T)),
    }


# One head as a panel shows it, made once and handed down: its matrix under the reader's choices,
# the cell that is opened, and what a figure of it says when it stands alone.

MAX_NAMED = 8  # of the tokens left out


@dataclass(frozen=True)
class DisplayOptions:
    """Display of a matrix. unit: of rows and columns, one of UNITS. tokens: those that are shown,
    one of TOKEN_FILTERS. renormalise: rows sum to 1 again without the others. scale: one of SCALES.
    log: logarithmic colours."""

    unit: str = UNITS[0]
    tokens: str = "All"
    renormalise: bool = False
    scale: str = "Global"
    log: bool = False


@dataclass(frozen=True)
class SelectedCell:
    """The cell between tokens that is taken apart: its places and names, its weight, how many keys
    its row may look at, and how its score makes the weight (None where the model hands out its
    weights alone). reads and says: of a row between two texts the token it reads and the one it
    produces."""

    query: int
    key: int
    row: str
    column: str
    weight: float
    allowed: bool
    n_allowed: int
    steps: Softmax | None
    reads: str = ""
    says: str = ""


@dataclass(frozen=True, eq=False)
class HeadView:
    """One head on screen.

    matrix_view: its matrix under `choices`. tokens: the selected tokens, (query, key), None for
    none; pin and column: their row and column of the matrix, -1 for none. opened: the cell that is
    decomposed; cell: its place in the matrix, if the reader chose it. evidence: cells that support
    the head's name. label: that name, "" where the head has none and where a token is selected
    whose largest weight it does not explain. title, caption (lines) and file: its title, caption
    and file name.
    """

    head: Head
    attention: str
    choices: DisplayOptions
    matrix_view: MatrixView
    tokens: tuple[int | None, int | None]
    opened: SelectedCell
    cell: tuple[int, int] | None
    evidence: tuple[tuple[int, int], ...]
    label: str
    title: str
    caption: tuple[str, ...]
    file: str

    @property
    def pin(self) -> int:
        return self.matrix_view.row_of(self.tokens[0])

    @property
    def column(self) -> int:
        return self.matrix_view.column_of(self.tokens[1])

    @property
    def columns(self) -> Columns:
        """The matrix as named columns, for a table and a file."""
        view = self.matrix_view
        return columns(view.matrix, view.axes, view.hidden, view.sink)


@dataclass(frozen=True)
class HeadSelection:
    """A reader's selection in an attention: the selected tokens, (query, key), and the open cell
    between tokens, "" or "query.key"."""

    tokens: tuple[int | None, int | None] = (None, None)
    cell: str = ""


def head_view(
    recording: Recording,
    attention: Attention,
    head: Head,
    axes: Axes,
    choices: DisplayOptions,
    selection: HeadSelection,
    target: str | tuple[int, ...] | None = None,
    pair_told: tuple[int, int] | None = None,
) -> HeadView:
    """The panel of one head. `target`: what a reader typed for the decoder to read, None for the
    model's own words. pair_told: the cell (query, key) that a sentence beside the panel is about,
    which is opened until a reader opens another."""
    head_index = head.layer, head.head
    view = head_matrix(recording, attention, head_index, axes, choices)
    pattern = attention.pattern[head_index]
    selected = _selected_cell(selection, pattern)
    opened_pair = (
        selected
        or pair_told
        or strongest_cell(
            pattern,
            attention.allowed[head.layer],
            selection.tokens[0],
            selection.tokens[1] if selection.tokens[0] is None else None,
        )
    )
    label = "" if head.name in UNNAMED else head.name
    if selection.tokens != (None, None) and not explains(recording, attention, head, *opened_pair):
        label = ""
    return HeadView(
        head,
        attention.name,
        choices,
        view,
        selection.tokens,
        _select_cell(recording, attention, head_index, axes, opened_pair),
        next(iter(view.cells([selected] if selected else [])), None),
        tuple(view.cells([(pair.query, pair.key) for pair in head.evidence])),
        label,
        f"Layer {head.layer}, head {head.head}{label and f': {label}'}",
        caption(attention, head.layer, view, choices, target),
        file_name(recording, attention, head, view, choices),
    )


def _select_cell(
    recording: Recording,
    attention: Attention,
    head_index: tuple[int, int],
    axes: Axes,
    pair: tuple[int, int],
) -> SelectedCell:
    query, key = pair
    allowed = attention.allowed[head_index[0], query]
    steps = None
    if attention.opens:
        steps = softmax_steps(attention.scores[head_index][query], allowed, key)
    cross_stream = axes.produced is not None
    return SelectedCell(
        query,
        key,
        axes.rows[query],
        axes.keys[key],
        float(attention.pattern[head_index][query, key]),
        bool(allowed[key]),
        int(allowed.sum()),
        steps,
        recording.stream(attention.query).tokens[query] if cross_stream else "",
        axes.produced[query][0] if axes.produced else "",
    )


def head_matrix(
    recording: Recording,
    attention: Attention,
    head_index: tuple[int, int],
    axes: Axes,
    choices: DisplayOptions,
) -> MatrixView:
    """A head's matrix under `choices`: between tokens or words, all of them or some left out."""
    word_groups = groups(recording, attention, axes) if choices.unit == "Words" else None
    shared_sinks = (
        head_naming.shared_sinks(recording, attention) if choices.tokens == "Quiet" else None
    )
    return matrix_view(
        attention.pattern[head_index],
        attention.allowed[head_index[0]],
        axes,
        word_groups,
        choices.tokens,
        choices.renormalise,
        shared_sinks,
        attention.sink[head_index] if attention.sink.size else None,
    )


@dataclass(frozen=True, eq=False)
class HiddenTokens:
    """The tokens that every picture leaves out: keys (key) bool, None for none, and in `note` which
    they are and how much of the attention goes there."""

    keys: np.ndarray | None = None
    note: str = ""


def hidden_tokens(
    recording: Recording, attention: Attention, choices: DisplayOptions
) -> HiddenTokens:
    """The tokens that all pictures leave out. A head's own sinks are left out of its own matrix
    alone."""
    stream = recording.stream(attention.key)
    if choices.tokens == "Quiet":
        hidden_keys = head_naming.shared_sinks(recording, attention)
    elif choices.tokens == "No specials":
        hidden_keys = np.array(stream.special, bool)
    elif choices.tokens == "No sinks":
        return HiddenTokens(note=NOTES("own_sinks", share=head_naming.SINK_SHARE))
    else:
        return HiddenTokens()
    if not hidden_keys.any():
        return HiddenTokens(note=NOTES("no_specials"))
    if hidden_keys.all():
        return HiddenTokens()
    hidden_share = float(attention.pattern[..., hidden_keys].sum(axis=-1).mean())
    tokens = [stream.tokens[at] for at in np.flatnonzero(hidden_keys)]
    remaining = len(tokens) - MAX_NAMED
    token_list = ", ".join(tokens[:MAX_NAMED]) + (f" and {remaining} more" if remaining > 0 else "")
    only_specials = (
        choices.tokens == "Quiet" and not (hidden_keys & ~np.array(stream.special, bool)).any()
    )
    note = NOTES(
        "left_out_specials" if only_specials else "left_out",
        tokens=token_list,
        share=percent(hidden_share),
        crowd=head_naming.CROWD,
    )
    return HiddenTokens(hidden_keys, note)


def _selected_cell(selection: HeadSelection, pattern: np.ndarray) -> tuple[int, int] | None:
    """The cell that a reader opened; None where that is not in the row that is held."""
    query, _, key = selection.cell.partition(".")
    row = selection.tokens[0]
    if row is None:
        return None
    valid = query.isdecimal() and key.isdecimal() and len(key) < 6 and query == str(row)
    return (row, int(key)) if valid and int(key) < pattern.shape[1] else None


def notes(view: MatrixView, choices: DisplayOptions) -> tuple[str, ...]:
    """Notes on the picture's rows and columns where they are not all tokens, and the rules behind
    them."""
    lines = []
    cross_stream = view.axes.produced is not None
    if choices.unit == "Words":
        lines.append(NOTES("words_across" if cross_stream else "words"))
    kind = {"No sinks": "sinks", "Quiet": "shared sinks"}.get(choices.tokens, "special tokens")
    if view.all_hidden:
        lines.append(NOTES("only", kind=kind))
    elif choices.tokens != "All" and view.hidden is None:
        lines.append(NOTES("none", kind=kind))
    elif view.hidden is not None:
        remaining = len(view.left_out) - MAX_NAMED
        token_list = ", ".join(view.left_out[:MAX_NAMED]) + (
            f" and {remaining} more" if remaining > 0 else ""
        )
        where = "columns" if cross_stream and choices.tokens == "No sinks" else "rows and columns"
        lines.append(NOTES("hidden", where=where, tokens=token_list or "rows that end the target"))
        lines.append(NOTES("renormalised" if view.renormalised else "as_they_are"))
    if choices.tokens == "No sinks":
        lines.append(NOTES("sinks", share=head_naming.SINK_SHARE, lift=head_naming.SINK_LIFT))
    if choices.tokens == "Quiet":
        lines.append(NOTES("shared_sinks", share=head_naming.CROWD))
    return tuple(lines)


def caption(
    attention: Attention,
    layer: int,
    view: MatrixView,
    choices: DisplayOptions,
    target: str | tuple[int, ...] | None,
) -> tuple[str, ...]:
    """Lines of a figure of one layer that stands alone: the attention, the scale of colours, and
    the rules of rows, columns and mask."""
    lines = [
        f"{attention.name}-attention · colour: {'log' if choices.log else 'linear'}, "
        f"{SCALES[choices.scale].lower()}",
        *notes(view, choices),
    ]
    if view.axes.produced is not None:
        lines.append(row_rule(target))
    if not (allowed := attention.allowed[layer]).all():
        lines.append(mask_rule(allowed))
    return tuple(lines)


def mask_rule(allowed: np.ndarray) -> str:
    """The rule of a mask (query, key): which cells are not allowed."""
    out = NOTES("out") if taken_out(allowed).any() else ""
    if sees_all(allowed):
        return out
    if sees_ahead(allowed):
        rule = NOTES("band", n=window_reach(allowed))
    else:
        rule = NOTES("mask_and_window" if windowed(allowed) else "mask")
    return " ".join(filter(None, (rule, out)))


def row_rule(target: str | tuple[int, ...] | None) -> str:
    """The rule for the names of rows between two texts. A typed target is not the model's
    output."""
    return NOTES("rows" if target is None else "rows_typed")


def file_name(
    recording: Recording,
    attention: Attention,
    head: Head,
    view: MatrixView,
    choices: DisplayOptions,
) -> str:
    """The name of a file of the head behind that of its model; it includes the choices."""
    attention_part = attention.name.split() if len(recording.attention) > 1 else ()
    word_part = ("words",) if choices.unit == "Words" else ()
    filter_part = () if view.hidden is None else (choices.tokens.lower().replace(" ", "-"),)
    renormalised_part = ("renormalised",) if view.renormalised else ()
    parts = (
        *attention_part,
        f"L{head.layer}H{head.head}",
        *word_part,
        *filter_part,
        *renormalised_part,
    )
    return "-".join(parts)
