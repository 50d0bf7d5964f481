"""One head as a panel shows it, made once and handed down: its matrix under the reader's choices,
the cell that is opened, and what a figure of it says when it stands alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.analysis import attention as numbers
from explorer.analysis import sinks
from explorer.analysis.called import reach, sees_ahead, windowed
from explorer.analysis.caption import model_line, read_text
from explorer.analysis.csv import Columns
from explorer.analysis.heads import Head
from explorer.analysis.numbers import percent
from models.recording import Attention, Recording

SCALE_LABELS = {"Head": "Per head", "Row": "Per row", "Global": "0 to 1"}
TOPS = {"Head": "the head’s largest", "Row": "the row’s largest", "Global": "1"}
ROW_RULE = (
    "Rows are named after the token they produce; the last one after what the model would "
    "produce next."
)
ROW_RULE_TYPED = (
    "Rows are named after the next token of the typed target; the last one after what the model "
    "would say next."
)
NOT_ALLOWED = "Above the diagonal: later tokens, not allowed."
BEFORE = " Left of the band: tokens before the window, not allowed."
OUTSIDE = "Outside the band: tokens more than {} places away, not allowed."
WORD_RULE = "Words: a word has the sum of its tokens’ weights as a column, and their mean as a row."
WORD_RULE_ACROSS = (
    "Words: a column has the sum of its tokens’ weights; a row is a word of the target, the mean "
    "over the tokens that are produced for it."
)
SINK_RULE = (
    f"A sink is a token that takes at least {sinks.SINK:.0%} of the head’s attention on average "
    f"over the rows, and {sinks.SINK_LIFT} times an even row’s share."
)
CROWD_RULE = (
    f"Shared sinks: special tokens, and tokens that are a sink of at least {sinks.CROWD:.0%} of "
    "the heads."
)
OWN_ALONE = (
    "The small pictures show all tokens. The large one leaves out those on which its own head "
    f"rests: at least {sinks.SINK:.0%} of its attention on average."
)
NO_SPECIALS = "There is none to leave out here, so all tokens are shown."
SAME = (
    f"No other token is a sink of {sinks.CROWD:.0%} of the heads on this text: without shared "
    "sinks and without special tokens are the same here."
)
MOST_NAMED = 8  # of the tokens left out


@dataclass(frozen=True)
class Choices:
    """How a matrix is looked at: one of UNITS, KEPT and SUMS, of SCALES and TONES, all of
    `explorer.analysis.attention`."""

    unit: str = numbers.UNITS[0]
    kept: str = numbers.KEPT[0]
    summed: str = numbers.SUMS[0]
    scale: str = numbers.SCALES[0]
    tone: str = numbers.TONES[0]

    @property
    def log(self) -> bool:
        return self.tone == "Log"


@dataclass(frozen=True)
class Opened:
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
    steps: numbers.Softmax | None
    reads: str = ""
    says: str = ""


@dataclass(frozen=True, eq=False)
class HeadView:
    """One head on screen.

    shown: its matrix under `choices`. held: the tokens that are held, (query, key), None for none;
    pin and column: their row and column of the matrix, -1 for none. opened: the cell that is taken
    apart; cell: where that stands in the matrix, if the reader chose it. evidence: cells that speak
    for the head's name. title, caption (lines) and file say what it is.
    """

    head: Head
    attention: str
    choices: Choices
    shown: numbers.Shown
    held: tuple[int | None, int | None]
    opened: Opened
    cell: tuple[int, int] | None
    evidence: tuple[tuple[int, int], ...]
    title: str
    caption: tuple[str, ...]
    file: str

    @property
    def pin(self) -> int:
        return self.shown.row_of(self.held[0])

    @property
    def column(self) -> int:
        return self.shown.column_of(self.held[1])

    @property
    def columns(self) -> Columns:
        """The matrix as named columns, for a table and a file."""
        return numbers.columns(self.shown.matrix, self.shown.axes, self.shown.hidden)


@dataclass(frozen=True)
class Asked:
    """What a reader asked to see of an attention: the tokens held, (query, key), and the cell
    opened between tokens, "" or "query.key"."""

    held: tuple[int | None, int | None] = (None, None)
    cell: str = ""


def head_view(
    recording: Recording,
    attention: Attention,
    head: Head,
    axes: numbers.Axes,
    choices: Choices,
    asked: Asked,
    target: str | tuple[int, ...] | None = None,
) -> HeadView:
    """The panel of one head. `target`: what a reader typed for the decoder to read, None for the
    model's own words."""
    at = head.layer, head.head
    shown = looked_at(recording, attention, at, axes, choices)
    pattern = attention.pattern[at]
    chosen = _cell_of(asked, pattern)
    place = chosen or numbers.strongest(
        pattern, attention.allowed, asked.held[0], asked.held[1] if asked.held[0] is None else None
    )
    return HeadView(
        head,
        attention.name,
        choices,
        shown,
        asked.held,
        _opened(recording, attention, at, axes, place),
        next(iter(shown.cells([chosen] if chosen else [])), None),
        tuple(shown.cells([(one.query, one.key) for one in head.evidence])),
        f"Layer {head.layer}, head {head.head}: {head.name}",
        caption(recording, attention, shown, choices, target),
        file_name(recording, attention, head, shown, choices),
    )


def _opened(
    recording: Recording,
    attention: Attention,
    at: tuple[int, int],
    axes: numbers.Axes,
    place: tuple[int, int],
) -> Opened:
    query, key = place
    allowed = attention.allowed[query]
    steps = None
    if attention.opens:
        steps = numbers.softmax_of(attention.scores[at][query], allowed, key)
    across = axes.said is not None
    return Opened(
        query,
        key,
        axes.rows[query],
        axes.keys[key],
        float(attention.pattern[at][query, key]),
        bool(allowed[key]),
        int(allowed.sum()),
        steps,
        recording.stream(attention.query).tokens[query] if across else "",
        axes.said[query][0] if axes.said else "",
    )


def looked_at(
    recording: Recording,
    attention: Attention,
    at: tuple[int, int],
    axes: numbers.Axes,
    choices: Choices,
) -> numbers.Shown:
    """A head's matrix under `choices`: between tokens or words, all of them or some left out."""
    grouped = numbers.groups(recording, attention, axes) if choices.unit == "Words" else None
    quiet = sinks.crowded(recording, attention) if choices.kept == "Quiet" else None
    return numbers.shown(
        attention.pattern[at],
        attention.allowed,
        axes,
        grouped,
        choices.kept,
        choices.summed == "Renormalised",
        quiet,
    )


@dataclass(frozen=True, eq=False)
class LeftOut:
    """The tokens that every picture leaves out: keys (key) bool, None for none, and in `note` which
    they are and how much of the attention goes there."""

    keys: np.ndarray | None = None
    note: str = ""


def left_out(recording: Recording, attention: Attention, choices: Choices) -> LeftOut:
    """What all pictures leave out. A head's own sinks are left out of its own matrix alone."""
    stream = recording.stream(attention.key)
    if choices.kept == "Quiet":
        gone = sinks.crowded(recording, attention)
    elif choices.kept == "No specials":
        gone = np.array(stream.special, bool)
    elif choices.kept == "No sinks":
        return LeftOut(note=OWN_ALONE)
    else:
        return LeftOut()
    if not gone.any():
        return LeftOut(note=NO_SPECIALS)
    if gone.all():
        return LeftOut()
    hidden = float(attention.pattern[..., gone].sum(axis=-1).mean())
    named = [stream.tokens[at] for at in np.flatnonzero(gone)]
    more = len(named) - MOST_NAMED
    told = ", ".join(named[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    note = f"Left out: {told}. {percent(hidden)} of the attention of all heads goes there."
    same = choices.kept == "Quiet" and not (gone & ~np.array(stream.special, bool)).any()
    return LeftOut(gone, f"{note} {SAME}" if same else note)


def _cell_of(asked: Asked, pattern: np.ndarray) -> tuple[int, int] | None:
    """The cell that a reader opened; None where that is not in the row that is held."""
    query, _, key = asked.cell.partition(".")
    row = asked.held[0]
    if row is None:
        return None
    fits = query.isdecimal() and key.isdecimal() and len(key) < 6 and query == str(row)
    return (row, int(key)) if fits and int(key) < pattern.shape[1] else None


def notes(shown: numbers.Shown, choices: Choices) -> tuple[str, ...]:
    """What the picture shows in the place of all tokens, and by which rules."""
    lines = []
    across = shown.axes.said is not None
    if choices.unit == "Words":
        lines.append(WORD_RULE_ACROSS if across else WORD_RULE)
    what = {"No sinks": "sinks", "Quiet": "shared sinks"}.get(choices.kept, "special tokens")
    if shown.nothing_left:
        lines.append(f"There are only {what} here, so all are shown.")
    elif choices.kept != "All" and shown.hidden is None:
        lines.append(f"There are no {what} here, so all is shown.")
    elif shown.hidden is not None:
        more = len(shown.left_out) - MOST_NAMED
        gone = ", ".join(shown.left_out[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        where = "columns" if across and choices.kept == "No sinks" else "rows and columns"
        lines.append(
            f"Left out, {where}: {gone or 'rows that end the target'}. “hidden”: what of each row "
            "goes there."
        )
        lines.append(
            "Rows renormalised over the shown tokens: they sum to 1 without the hidden share; "
            "rows that give the shown tokens nothing stay empty."
            if shown.renormalised
            else "Weights as they are: a row and its hidden share sum to 1."
        )
    if choices.kept == "No sinks":
        lines.append(SINK_RULE)
    if choices.kept == "Quiet":
        lines.append(CROWD_RULE)
    return tuple(lines)


def caption(
    recording: Recording,
    attention: Attention,
    shown: numbers.Shown,
    choices: Choices,
    target: str | tuple[int, ...] | None,
) -> tuple[str, ...]:
    """What a figure must say when it stands alone, in lines."""
    lines = [
        model_line(recording, f"{attention.name}-attention"),
        f"Colour: {choices.tone.lower()}, {SCALE_LABELS[choices.scale].lower()}",
        *notes(shown, choices),
    ]
    if shown.axes.said is not None:
        lines.append(row_rule(target))
    if not attention.allowed.all():
        lines.append(mask_rule(attention.allowed))
    if "decoder" in (attention.query, attention.key) and len(recording.streams) > 1:
        own = "the model’s own" if target is None else "as typed"
        lines.append(f"Target ({own}): {read_text(recording, target=True)}")
    return (*lines, f"Text: {read_text(recording)}")


def mask_rule(allowed: np.ndarray) -> str:
    """Which cells of a mask (query, key) that leaves some out are not allowed."""
    if sees_ahead(allowed):
        return OUTSIDE.format(reach(allowed))
    return NOT_ALLOWED + (BEFORE if windowed(allowed) else "")


def row_rule(target: str | tuple[int, ...] | None) -> str:
    """What a row between two texts is named after. A typed target is not what the model
    produces."""
    return ROW_RULE if target is None else ROW_RULE_TYPED


def file_name(
    recording: Recording,
    attention: Attention,
    head: Head,
    shown: numbers.Shown,
    choices: Choices,
) -> str:
    """What a file of the head is called, without its ending; it says what was chosen."""
    several = attention.name.split() if len(recording.attention) > 1 else ()
    words = ("words",) if choices.unit == "Words" else ()
    left = () if shown.hidden is None else (choices.kept.lower().replace(" ", "-"),)
    again = ("renormalised",) if shown.renormalised else ()
    parts = (recording.model.name, *several, f"L{head.layer}H{head.head}", *words, *left, *again)
    return "-".join(("headlight", *parts))


@dataclass(frozen=True, eq=False)
class Heat:
    """A matrix as a heat map draws it: values to colour and weights to read, both (row, column),
    their labels, the scale's ends and its name."""

    values: np.ndarray
    weights: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    low: float
    high: float
    name: str
    sides: tuple[str, str]


def heat(view: HeadView) -> Heat:
    """The head's matrix on its scale, with what of each row is hidden before the row's name."""
    shown, choices = view.shown, view.choices
    rows, sides = shown.axes.rows, shown.axes.sides
    if shown.hidden is not None:
        rows = tuple(f"{share:.2f}  {label}" for label, share in zip(rows, shown.hidden))
        sides = (f"hidden, {sides[0]}", sides[1])
    share = numbers.blanked(numbers.shares(shown.matrix, choices.scale), shown.allowed)
    top = TOPS[choices.scale]
    if choices.log:
        values, low, high = numbers.decades(share), -numbers.LOG_DECADES, 0
        name = f"log10 of the share of {top}"
    else:
        values, low, high = share, 0, 1
        name = f"share of {top}" if choices.scale != "Global" else "weight"
    return Heat(values, shown.matrix, rows, shown.axes.keys, low, high, name, sides)
