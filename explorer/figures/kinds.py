"""Figures as data: what a picture shows, before anything is drawn.

A closed set, drawn by `explorer/components/figures.js` on the screen, in files and for the
presenter. Arrays hold NaN for what does not exist. A press on a part of a figure sets the choices
named in `select`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np

COARSE = {"coarse": True}  # of an array that is drawn and never read as numbers


class Along(tuple[str, ...]):
    """The axes of an array or a list, by the names of the fields that list them. A figure that is
    cut has of it what it has of these."""

    __slots__ = ()


class PlacesOn(tuple[str, ...]):
    """The axes that the integers of a field are places on, in their order. A figure that is cut
    counts them anew."""

    __slots__ = ()


ROWS, COLUMNS = Along(["rows"]), Along(["columns"])
CELLS = Along(["rows", "columns"])
TOKENS, NODES, LABELS = Along(["tokens"]), Along(["nodes"]), Along(["labels"])


@dataclass(frozen=True, eq=False)
class Figure:
    """Base of every figure: a title, a line below it, and the choices that a press sets.

    select: names of the address, such as ("token", "source"); what is pressed gives a value for
    each. hint: what a press does, on the page alone. follows: the choice of a slider beside it,
    whose frame is marked: the guide of a chart. framed: places of numbers to which formulas beside
    it come, as (row, column), (vector, component), (curve, point) or (guide -1, its number), each
    with the number as it is printed there.
    """

    title: str = ""
    note: str = ""
    select: tuple[str, ...] = field(default=(), kw_only=True)
    follows: str = field(default="", kw_only=True)
    hint: str = field(default="", kw_only=True)
    framed: tuple[tuple[int, int, str], ...] = field(default=(), kw_only=True)

    @property
    def kind(self) -> str:
        """The name of the figure for the renderer."""
        return type(self).__name__.lower()

    def save(self, path: str | Path, **sheet: Any) -> None:
        """Write this figure of a panel alone, as the panel's `save` writes all of them, which has
        the arguments. Raises ValueError as that does, and for a figure that no panel has."""
        if (panel := vars(self).get("panel")) is None:
            raise ValueError("this figure is of no panel")
        replace(panel, figures=(self,)).save(path, **sheet)


@dataclass(frozen=True, eq=False)
class Matrix(Figure):
    """A matrix: values (row, column) from `low` to `high`, NaN for a cell that does not exist.

    Colours run from -high to high where `signed`, on a logarithmic scale where `log`. marks: (row,
    column, text), framed; selected: a row that is framed, -1 for none. sides: what rows and columns
    are. missing: why a cell does not exist. digits: decimals of the values. unit: what follows
    them. words: a word for each cell, row by row; bold: (row, column), 1 where it stands out; pale:
    the same, 1 where it stands back, without its colour. keys and column_keys: what a press on a
    row and a column sets, its number where left out. wide: True for cells as wide as their room.
    frame_note: stands below a frame that scrolls, on the page alone. follows: the choice of the
    steps beside it whose frames say what it shows.
    """

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(CELLS)] = field(
        default=(), kw_only=True
    )
    rows: Annotated[tuple[str, ...], ROWS] = ()
    columns: Annotated[tuple[str, ...], COLUMNS] = ()
    values: Annotated[np.ndarray, CELLS] = field(default_factory=lambda: np.zeros((0, 0)))
    low: float = 0.0
    high: float = 1.0
    signed: bool = False
    marks: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(CELLS)] = ()
    sides: tuple[str, str] = ("", "")
    missing: str = ""
    digits: int = 2
    unit: str = ""
    log: bool = False
    words: Annotated[tuple[str, ...], CELLS] = ()
    bold: Annotated[np.ndarray, CELLS] = field(default_factory=lambda: np.zeros((0, 0)))
    pale: Annotated[np.ndarray, CELLS] = field(default_factory=lambda: np.zeros((0, 0)))
    keys: Annotated[tuple[str, ...], ROWS] = ()
    selected: Annotated[int, PlacesOn(ROWS)] = -1
    column_keys: Annotated[tuple[str, ...], COLUMNS] = ()
    wide: bool = False
    frame_note: str = ""
    follows: str = ""


@dataclass(frozen=True, eq=False)
class BarRow:
    """A row of bars: its label, and for each column a length and a text. key: what a press sets,
    None for a row without one; outline: a length that is drawn as a dashed frame over the first
    bar; start: where the first bar begins, in a sum that is drawn step by step."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    selected: bool = False
    key: str | None = ""
    outline: float | None = None
    start: float = 0.0


@dataclass(frozen=True, eq=False)
class Bars(Figure):
    """Rows of bars below named columns, each column on its own scale, or all on one where `shared`.

    high: the length of a full bar, the largest where None. mark: the (row, column) whose text is
    the number that the panel's sentence names. header: what the rows are. wraps: labels are
    sentences, which go on in further lines.
    """

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(ROWS)] = field(
        default=(), kw_only=True
    )
    columns: tuple[str, ...] = ()
    rows: Annotated[tuple[BarRow, ...], ROWS] = ()
    high: float | None = None
    shared: bool = False
    mark: Annotated[tuple[int, int] | None, PlacesOn(ROWS)] = None
    header: str = ""
    wraps: bool = False


@dataclass(frozen=True, eq=False)
class HeadMatrices(Figure):
    """The weights of all heads of an attention as small pictures.

    weights: arrays by name, as `explorer/components/codec.py` packs them: the `cells` and the
    `peak` of each head, the `runs` of allowed cells, and of each row and column the largest
    weight (`most`, `most_in`), or where cells are folded its token (`best`, `best_in`). shape:
    (layers, heads, rows, columns) of the cells; fold: how many tokens each way a cell stands for.
    names, strengths, back: of each head, layer by layer, its pattern, how clear that is, and
    whether it stands back; scores: the number that its name rests on. tokens and keys: what rows
    and columns are called, words: the whole word that each column is of. by_word: while a word is
    selected each head shows its row alone. only: the name of the heads shown, "" for all. quiet:
    columns that are left out. fillers and sinks: columns that carry no meaning, and those on which
    heads rest: until a reader asks for all, a head whose largest weight in the selected row goes
    there is pale, and drawn empty. ablated: heads whose output is zero or its mean, counted layer
    by layer. selected: a (layer, head). scale and log: as in LinkedWeights. says: sentences with
    slots.
    `follows` is "head" where the selection of the page's head is the figure's.
    """

    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    selected: tuple[int, int] = (-1, -1)
    fold: int = 1
    strengths: tuple[float, ...] = ()
    scores: tuple[str, ...] = ()
    back: tuple[bool, ...] = ()
    tokens: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    by_word: bool = False
    only: str = ""
    quiet: tuple[int, ...] = ()
    fillers: tuple[int, ...] = ()
    sinks: tuple[int, ...] = ()
    ablated: tuple[int, ...] = ()
    scale: str = "global"
    log: bool = False
    says: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TokenRow(Figure):
    """A sentence whose tokens are tinted by weights from 0 to 1, by none where these are empty;
    NaN: not allowed. selected: the token that the weights belong to, -1 for none.

    breaks: tokens that begin a line, as each message of a chat does. texts: below each token, where
    there are any. marked: the tokens in a frame. keys: what a press on each sets, its number where
    left out, nothing where "". special: tokens that nobody typed, drawn paler. Before other figures
    it stands above them, as wide as all of them.
    """

    tokens: Annotated[tuple[str, ...], TOKENS] = ()
    weights: Annotated[np.ndarray, TOKENS] = field(default_factory=lambda: np.zeros(0))
    selected: Annotated[int, PlacesOn(TOKENS)] = -1
    texts: Annotated[tuple[str, ...], TOKENS] = ()
    marked: Annotated[tuple[int, ...], PlacesOn(TOKENS)] = ()
    keys: Annotated[tuple[str, ...], TOKENS] = ()
    breaks: Annotated[tuple[int, ...], PlacesOn(TOKENS)] = ()
    special: Annotated[tuple[bool, ...], TOKENS] = ()


@dataclass(frozen=True, eq=False)
class VoteLine:
    """The vote of a head in a sentence: the word that it says, as a place, whose noun that is, 0
    for the majority's, 1 and 2 for others, the head, the side of the figure that it is of, the
    share of test sentences in which the head finds the noun, None for no bar, that number as text,
    the vote as a sentence, and what a press sets."""

    word: int
    noun: int
    head: str
    side: int = 0
    share: float | None = None
    number: str = ""
    says: str = ""
    key: str = ""


@dataclass(frozen=True, eq=False)
class SentenceVotes(Figure):
    """A sentence in large type, and lines from a pronoun in it to the word that each head says: a
    line is a vote, as wide as any other.

    labels: its words; spaced: whether a space stands before each; keys: what a press on each sets,
    nothing where "". bar: what the bars of the heads are, as text. sides: the name of each and what
    it is, () for one side; the lines of the first are above the sentence, those of the second
    below. row: the pronoun's token, and of how many rows and columns of the heads' pictures, for
    the grid beside it."""

    labels: Annotated[tuple[str, ...], LABELS] = ()
    spaced: Annotated[tuple[bool, ...], LABELS] = ()
    keys: Annotated[tuple[str, ...], LABELS] = ()
    pronoun: Annotated[int, PlacesOn(LABELS)] = -1
    votes: Annotated[tuple[VoteLine, ...], PlacesOn(LABELS)] = ()
    bar: str = ""
    sides: tuple[tuple[str, str], ...] = ()
    row: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Cloze(Figure):
    """A sentence in large type with empty boxes for words, and below one of them the likeliest
    words for it as bars, whose full length is 1.

    tokens: "" for an empty box; spaced: whether a space stands before each. blanks: the boxes;
    selected: the one that the bars hang from. names: what each is called by itself, as a screen
    reader says it. keys: what a press on each sets, nothing where "". pale: tokens that the model
    does not read. breaks: tokens that begin a line. select_row: the choices that a press on a bar
    sets.
    """

    tokens: Annotated[tuple[str, ...], TOKENS] = ()
    spaced: Annotated[tuple[bool, ...], TOKENS] = ()
    blanks: Annotated[tuple[int, ...], PlacesOn(TOKENS)] = ()
    selected: Annotated[int, PlacesOn(TOKENS)] = -1
    names: Annotated[tuple[str, ...], TOKENS] = ()
    keys: Annotated[tuple[str, ...], TOKENS] = ()
    pale: Annotated[tuple[bool, ...], TOKENS] = ()
    breaks: Annotated[tuple[int, ...], PlacesOn(TOKENS)] = ()
    rows: Annotated[tuple[BarRow, ...], ROWS] = ()
    select_row: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Links(Figure):
    """Queries at the left, keys at the right, joined by their weights (query, key), NaN where not
    allowed; `selected` the query that is spoken of, and its mark (key, text).

    flat: True for two texts in lines, the keys above, of which only the selected query is joined to
    its keys. texts: what stands below each query then; back: the weights of the selected query on
    the queries before it, where it is joined to these too.
    """

    left: Annotated[tuple[str, ...], Along(["left"])] = ()
    right: Annotated[tuple[str, ...], Along(["right"])] = ()
    sides: tuple[str, str] = ("query", "key")
    weights: Annotated[np.ndarray, Along(["left", "right"])] = field(
        default_factory=lambda: np.zeros((0, 0))
    )
    selected: Annotated[int, PlacesOn(["left"])] = -1
    mark: Annotated[tuple[int, str] | None, PlacesOn(["right"])] = None
    flat: bool = False
    texts: Annotated[tuple[str, ...], Along(["left"])] = ()
    back: Annotated[np.ndarray, Along(["left"])] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class LinkedWeights(Figure):
    """Weights of one head in linked pictures: the sentence tinted by them, links, and a matrix.

    at: (layer, head). weights: arrays by name, as `explorer/components/codec.py` packs them: the
    weight of each (row, column), the `runs` of allowed cells, the selected `row` and `column`
    exactly, `hidden`, the share of each row on columns that are left out, and `sink`, that of a
    learned sink, which is the last column of the matrix. views: of "links" and
    "matrix". selected: a row and a column, -1 for none; cell: the one that is opened. texts: of two
    texts, what each row is called in its sentence. special: of columns, and of rows in
    `texts`. places: the numbers of rows and columns, None for 0, 1, 2 ...; sizes: how many tokens
    there are in all; firsts: where rows and columns are words, each one's first token. breaks:
    columns that begin a line of the sentence.
    scale: "global", "head" or "row", the weight at its top;
    log: three powers of ten below that. incoming: True where links to the selected word are drawn
    too. says: sentences with slots for rows, columns and cells.
    """

    at: tuple[int, int] = (0, 0)
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    sides: tuple[str, str] = ("query", "key")
    weights: Mapping[str, np.ndarray] = field(default_factory=dict)
    views: tuple[str, ...] = ("links",)
    selected: tuple[int, int] = (-1, -1)
    cell: tuple[int, int] | None = None
    texts: tuple[str, ...] | None = None
    special: tuple[tuple[bool, ...], tuple[bool, ...]] = ((), ())
    places: tuple[tuple[int, ...] | None, tuple[int, ...] | None] = (None, None)
    sizes: tuple[int, int] = (0, 0)
    firsts: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    scale: str = "global"
    log: bool = False
    incoming: bool = False
    breaks: tuple[int, ...] = ()
    says: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Series:
    """A curve: its name, its points, and what is written at its end. shape: "line", "points",
    "steps", or "band" from `base` to y; main: the one that is spoken of."""

    name: str
    x: np.ndarray
    y: np.ndarray
    end: str = ""
    main: bool = False
    shape: str = "line"
    base: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Chart(Figure):
    """Curves over one axis. ticks: (place, text) along x where they are not numbers. backwards: x
    falls to the right. square: one scale for both axes. guides: (x, text), dashed lines.
    x_range, y_range: the ends of an axis, those of the curves where None. half: half as high."""

    series: tuple[Series, ...] = ()
    x_title: str = ""
    y_title: str = ""
    log_x: bool = False
    log_y: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    backwards: bool = False
    square: bool = False
    guides: tuple[tuple[float, str], ...] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    half: bool = False


@dataclass(frozen=True, eq=False)
class Strip:
    """A vector as a strip of colours: the sign before it, its label, its values and a text at its
    end. weight: of a term of a weighted sum, what its vector was multiplied by. blocks: of like
    width that it is cut into; high: the end of its own scale, None for that of all strips."""

    label: str
    values: np.ndarray
    text: str = ""
    sign: str = ""
    selected: bool = False
    weight: float | None = None
    blocks: int = 1
    high: float | None = None


@dataclass(frozen=True, eq=False)
class Strips(Figure):
    """Vectors one below the other on one scale from -high to high."""

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(["strips"])] = field(
        default=(), kw_only=True
    )
    strips: Annotated[tuple[Strip, ...], Along(["strips"])] = ()
    high: float = 1.0


@dataclass(frozen=True, eq=False)
class Factor:
    """A matrix of a product: its name, its size (rows, columns), and the sign before it.

    values: its numbers, row by row, or what stands for them, as many as `grid` has (rows, columns);
    none for an empty box. parts: the names of equal parts in colours of their own, side by side, or
    one below the other where `down`."""

    name: str
    shape: tuple[int, int]
    sign: str = ""
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    grid: tuple[int, int] = (0, 0)
    parts: tuple[str, ...] = ()
    down: bool = False
    selected: bool = False


@dataclass(frozen=True, eq=False)
class Product(Figure):
    """Matrices that are multiplied from left to right, as boxes in proportion."""

    factors: tuple[Factor, ...] = ()


@dataclass(frozen=True, eq=False)
class Network(Figure):
    """Vectors as upright strips, as high as they have numbers, from left to right, and between two
    of them the name and the size of what leads from one to the next."""

    layers: tuple[Strip, ...] = ()
    between: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Relay(Figure):
    """Words in a row whose state is passed on from each to the next. values (word): what is left,
    from 0 to 1, and its text at the first word. arc: of the one that leads from end to end; state:
    what is passed on."""

    words: tuple[str, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    text: str = ""
    arc: str = ""
    state: str = ""


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch off a residual stream that is added to it: its name, and the norm that stands before
    it ("pre") or after the sum ("post"), with its name."""

    name: str
    norm: str
    norm_name: str


@dataclass(frozen=True, eq=False)
class Branches(Figure):
    """A residual stream from left to right with its branches. lit: True for the one that is spoken
    of."""

    parts: tuple[Branch, ...] = ()
    lit: bool = False


@dataclass(frozen=True)
class Block:
    """A block of a stack: its name, the model's numbers of it, and the query of the address that
    opens the tab that shows it, "" for none. of: what it does, "attention", "ffn", "norm",
    "readout", "embedding", "words", or "sum", to which the text is added."""

    of: str
    name: str
    text: str = ""
    key: str = ""


@dataclass(frozen=True, eq=False)
class Tier:
    """A sub-layer of a stack: its blocks side by side, its norm, None for none, and where that
    stands, "post" or "pre". reads: what comes from below; aside: what comes from the other stack,
    "" for nothing; adds: True where its input is added to what it writes."""

    blocks: tuple[Block, ...]
    norm: Block | None = None
    place: str = ""
    reads: str = ""
    aside: str = ""
    adds: bool = True


@dataclass(frozen=True, eq=False)
class Tower:
    """A stack of like layers from below to above: what stands under it, its sub-layers, what stands
    on it, and how many layers there are, as text. answer: what comes out, with its probability.
    lit: True for one that the model has."""

    title: str
    count: str
    under: tuple[Block, ...]
    layer: tuple[Tier, ...]
    above: tuple[Block, ...] = ()
    answer: str = ""
    lit: bool = False


@dataclass(frozen=True, eq=False)
class PaperFigure(Figure):
    """An encoder and a decoder side by side, as in the paper's figure. A press on a block opens the
    tab that shows it."""

    towers: tuple[Tower, ...] = ()


@dataclass(frozen=True, eq=False)
class Edge:
    """A weighted edge of a graph, by the places of its nodes."""

    source: int
    target: int
    weight: float


@dataclass(frozen=True, eq=False)
class Stack(Figure):
    """Figures one below the other in one column; `main`: the one that stays where one has room.
    Charts over the same x axis are aligned."""

    figures: tuple[Figure, ...] = ()
    main: int = 0


@dataclass(frozen=True, eq=False)
class Graph(Figure):
    """Tokens as nodes and weights as edges from the token attended to. strengths: of each node's
    fill, 0 to 1. layout: "arcs" or "circle"; two_sided: the first `split` nodes are the sources.
    "tree": nodes stand at `places` (column, row), each with its text; edges lead from parents."""

    nodes: Annotated[tuple[str, ...], NODES] = ()
    strengths: Annotated[tuple[float, ...], NODES] = ()
    edges: Annotated[tuple[Edge, ...], PlacesOn(["nodes", "nodes"])] = ()
    layout: str = "arcs"
    split: int = 0
    selected: Annotated[int, PlacesOn(NODES)] = -1
    places: Annotated[tuple[tuple[int, int], ...], NODES] = ()
    texts: Annotated[tuple[str, ...], NODES] = ()


@dataclass(frozen=True, eq=False)
class TextTable(Figure):
    """A small table that is part of the picture: named columns, and rows of texts. keys: the values
    that a press on a row gives the choices in `select`."""

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(ROWS)] = field(
        default=(), kw_only=True
    )
    columns: tuple[str, ...] = ()
    rows: Annotated[tuple[tuple[str, ...], ...], ROWS] = ()
    keys: Annotated[tuple[tuple[str, ...], ...], ROWS] = ()
    selected: Annotated[int, PlacesOn(ROWS)] = -1


@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation of a vector: before the addition (length), the sum (length, degrees) and at the
    end (length, degrees); an arrow of length 1 reaches the circle."""

    label: str
    before: float
    total: tuple[float, float]
    after: tuple[float, float]
    text: str = ""
    selected: bool = False


@dataclass(frozen=True, eq=False)
class Dials(Figure):
    """Rotations one after another."""

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(["dials"])] = field(
        default=(), kw_only=True
    )
    dials: Annotated[tuple[Rotation, ...], Along(["dials"])] = ()


@dataclass(frozen=True, eq=False)
class Arrow:
    """A vector of a plane: its name, and the points where it starts and ends."""

    label: str
    start: tuple[float, float]
    end: tuple[float, float]
    selected: bool = False


@dataclass(frozen=True, eq=False)
class Arrows(Figure):
    """Vectors of one plane at their true lengths and angles. angle: between the first and the last,
    which start at one point, as text."""

    arrows: tuple[Arrow, ...] = ()
    angle: str = ""


@dataclass(frozen=True, eq=False)
class Box:
    """A loop or one step in it: what it does, how often, and what is in it."""

    text: str
    count: str = ""
    inside: tuple[Box, ...] = ()
    selected: bool = False


@dataclass(frozen=True, eq=False)
class Loops(Figure):
    """Nested loops."""

    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, eq=False)
class PictureCard(Figure):
    """A picture to send, 1200 to 630: a sentence, or a source above its translation, with arcs from
    queries to keys.

    says: the query and the key, or one sentence; number: the weight of the pair, as text. texts:
    the words of each sentence; spaced: whether a space stands before each. edges: from the place of
    a query to that of a key, counted over all texts; the
    first one is the pair that is told. about: the model and the head; name: the project's.
    """

    says: tuple[str, ...] = ()
    number: str = ""
    texts: tuple[tuple[str, ...], ...] = ()
    spaced: tuple[tuple[bool, ...], ...] = ()
    edges: tuple[Edge, ...] = ()
    about: str = ""
    name: str = ""

    @property
    def is_pair(self) -> bool:
        """True where a query and a key are told, which the first edge joins."""
        return len(self.says) > 1


@dataclass(frozen=True, eq=False)
class FlowAttention:
    """Contribution of one attention of a layer to the selected row of its band: shares (head, row)
    of what it writes, and weights (head, row), over all rows of the picture. bias: b_O's share.
    names: of each head, what it does, by how much, and by how much by chance, None for nothing
    known. others (curve, 3): the query row, the key row and the share of what is brought to other
    rows. attention: its name in an address, "" for the first, and name: as edits say it. removed:
    heads that an edit has switched off. update:
    the share of its update beside what it is added to, 0 to 1; under edits scale: how large the
    update is beside that without them, 0 for none, and was (row): what all heads together brought
    without them. adds (head): to the logit of the answer against its rival, none where that is not
    known."""

    shares: np.ndarray
    weights: np.ndarray = field(metadata=COARSE)
    bias: float
    names: tuple[tuple[str, float, float] | None, ...]
    others: np.ndarray
    attention: str = ""
    name: str = ""
    removed: tuple[int, ...] = ()
    update: float = 0.0
    scale: float = 1.0
    was: np.ndarray = field(default_factory=lambda: np.zeros(0))
    adds: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class FlowLayer:
    """A layer: its number, the band of rows that it writes to, its attentions. ffn: the share of
    the FFN's update beside what it is added to, 0 to 1, None for no FFN. says: the word
    that the stream would give after this layer, with its probability as a number and as text;
    answer: the probability of the word that comes out in the end. numbers: what stands below it."""

    layer: int
    band: int
    attentions: tuple[FlowAttention, ...]
    ffn: float | None = None
    says: tuple[str, float, str] | None = None
    answer: float | None = None
    numbers: str = ""


@dataclass(frozen=True, eq=False)
class FlowBand:
    """The tokens of one residual stream, one row each: labels, their places in the text as an
    address says them, the selected row, and the row that stands for all others, -1 for none.
    choice: the name in the address that a press on a row sets. outs: of each row the edits that
    take its word out, "" where it cannot be."""

    title: str
    rows: tuple[str, ...]
    places: tuple[str, ...]
    selected: int
    rest: int = -1
    choice: str = "token"
    outs: tuple[str, ...] = ()


@dataclass(frozen=True)
class FlowWord:
    """A word that comes out, with its probability as a number and as text, and its id."""

    label: str
    probability: float
    text: str
    id: int = -1


@dataclass(frozen=True)
class FlowLink:
    """A link that leads on from the picture: its label, and the choices of the address that a press
    sets, by their names."""

    label: str
    select: Mapping[str, str]


@dataclass(frozen=True)
class FlowLane:
    """A word in the race to come out: its label, of a token that begins a word the rest of it, and
    its id. places: its places in the vocabulary by the logit lens, from 1, before the first layer
    of the last band and after each; middles: those after the attention of each of the columns that
    are played slowly. chance: in the end, as a number and as text. Under edits were, was_text and
    was_places: the same without them, were -1 where there are none."""

    label: str
    rest: str
    id: int
    places: tuple[int, ...]
    middles: tuple[int, ...]
    chance: float
    text: str
    were: float = -1
    was_text: str = ""
    was_places: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class FlowStop:
    """A place at which the beam stops: its sentences, what leads to each level from there, and what
    switches the head that brings most off or on, None where it cannot be. brings: the head
    that adds most to the answer, and the word that it reads; adds: what the FFN makes of the guess,
    or of the answer's place. says: the words that are nearest to what attention brings; writes:
    those nearest to what the FFN writes; units: of the two hidden units that add most to the answer
    those that write words, and these. middle: the guess between attention and FFN, "" where that is
    not told. part: of the end what is said of the answer's head until that is measured."""

    finding: str
    levels: tuple[FlowLink, ...] = ()
    switch: FlowLink | None = None
    brings: str = ""
    adds: str = ""
    says: str = ""
    writes: str = ""
    units: tuple[tuple[str, str], ...] = ()
    middle: str = ""
    part: str = ""


@dataclass(frozen=True, eq=False)
class Flow(Figure):
    """The whole machine on one text: tokens as rows, layers as columns from left to right, what
    attention brings to the selected row as curves, and at the right the words that come out. layer,
    band, attention, head: those in focus, -1 for no head. says: what the words below the selected
    row are called. between: what stands between two bands. level: how far it is opened, from 0 for
    the model to 3 for a weight; all but the layer in focus are spines then. ffn: of the layer in
    focus its FFN is opened. leads: to other tabs, or to the text with its next word.

    current: the column under the beam, the number of columns for the end, -1 for the question that
    comes before, where nothing tells what the model predicts. stops: of each column and of the end.
    titles: what it is called until its end, and there, () where that is the same.
    votes: the rows that the tested heads vote on, each with the place of its colour in the vote.
    lanes: the words that race; leaders: others that lead after a layer. matters: the columns that
    are wide in the end; slow: those that are played slowly. cause: the column, which of its
    attentions, the head and the row that the answer comes from, () for none. against: the id of the
    word that additions to the answer are against, -1 for none. n_words: of the vocabulary. asks:
    what stands before and after the word that is asked for, and whether it is the "next" or a
    "hidden" one, "" for none. edits: those of the run, each a word of a line. out: the address of
    the panel on what each word does to the answer, "" for none."""

    bands: tuple[FlowBand, ...] = ()
    layers: tuple[FlowLayer, ...] = ()
    words: tuple[FlowWord, ...] = ()
    layer: int = 0
    band: int = 0
    attention: str = ""
    head: int = -1
    says: str = ""
    between: str = ""
    level: int = 0
    ffn: bool = False
    leads: tuple[FlowLink, ...] = ()
    current: int = 0
    stops: tuple[FlowStop, ...] = ()
    titles: tuple[str, ...] = ()
    votes: tuple[tuple[int, int], ...] = ()
    lanes: tuple[FlowLane, ...] = ()
    leaders: tuple[FlowLane, ...] = ()
    matters: tuple[int, ...] = ()
    slow: tuple[int, ...] = ()
    n_words: int = 0
    asks: tuple[str, str, str] = ("", "", "")
    cause: tuple[int, ...] = ()
    against: int = -1
    edits: str = ""
    out: str = ""

    @property
    def focus(self) -> int:
        """The column in focus: that of the beam, or the one that is opened."""
        if self.level == 0 and self.current >= 0:
            return self.current
        columns = [(each.band, each.layer) for each in self.layers]
        return columns.index((self.band, self.layer))

    @property
    def stop(self) -> FlowStop:
        """The place of the column in focus."""
        return self.stops[self.focus]


@dataclass(frozen=True, eq=False)
class Facts(Figure):
    """Few numbers or words in large type, each with what it is."""

    framed: Annotated[tuple[tuple[int, int, str], ...], PlacesOn(["facts"])] = field(
        default=(), kw_only=True
    )
    facts: Annotated[tuple[tuple[str, str], ...], Along(["facts"])] = ()


@dataclass(frozen=True, eq=False)
class Frame:
    """One position of a slider: its label, its sentence and its figures. key: what it sets the
    choice to, its label where "". note: a line below a plane. x: where a chart that follows is
    marked, the frame's number where None. formulas: ids of the panel's formulas that stand beside
    it, of which the last is the frame's own, all where there are none, and none where None; focus:
    symbols in them that are spoken of. beside: the matrix then of those beside that follow it."""

    label: str
    figures: tuple[Figure, ...] = ()
    sentence: str = ""
    key: str = ""
    note: str = ""
    x: float | None = None
    formulas: tuple[str, ...] | None = ()
    focus: tuple[str, ...] = ()
    beside: Matrix | None = None


@dataclass(frozen=True, eq=False)
class Steps(Figure):
    """Frames behind a slider, of which one is on show. choice: the name of the address that holds
    the frame's key; plays: True where the frames are a sequence in time. whole: a figure above all
    frames, each of which is one of its rows; a press on one shows its frame."""

    frames: tuple[Frame, ...] = ()
    current: int = 0
    choice: str = ""
    plays: bool = False
    whole: Links | Matrix | None = None

    @classmethod
    def opened(cls, frames: tuple[Frame, ...], label: str, choice: str) -> Steps:
        """Frames that open on the one of a label, the first where there is none of it."""
        labels = [frame.label for frame in frames]
        return cls(
            frames=frames, current=labels.index(label) if label in labels else 0, choice=choice
        )


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of one kind: a label and a path (point, frame, 2) for each, and its fill (point,
    frame) from 0 to 1. selected: the point whose path is drawn, -1 for none. keys: what a press on
    each sets."""

    name: str
    labels: tuple[str, ...]
    paths: np.ndarray
    fills: np.ndarray
    selected: int = -1
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Plane(Figure):
    """Points that move through frames in a plane, on one scale for both axes, or on two where
    `apart`. choice: as in Steps. trails: the paths of all points are drawn. close: the plane ends
    around the selected paths."""

    clouds: tuple[Cloud, ...] = ()
    frames: tuple[Frame, ...] = ()
    current: int = 0
    choice: str = ""
    plays: bool = True
    x_title: str = ""
    y_title: str = ""
    trails: bool = False
    close: bool = False
    apart: bool = False


def as_plain(value: Any, blocks: dict[str, np.ndarray], coarse: bool = False) -> Any:
    """A figure as JSON, its arrays in blocks: {"block": name}. Arrays of more than MAX_EXACT
    numbers with fractions, and COARSE ones, are in LEVELS levels from "low" to "high"; one level
    more is NaN. An array that several parts share is sent once."""
    if type(value) in PLAIN_TYPES:  # most are
        return value
    if isinstance(value, np.ndarray):
        name = str(len(blocks))
        if value.dtype.kind == "u":
            blocks[name] = value
            return {"block": name}
        if value.size <= MAX_EXACT and not (coarse and value.size):
            array = value.astype(np.float32, copy=False)
            same = next((one for one, each in blocks.items() if each is array), name)
            blocks[same] = array
            return {"block": same}
        low, high = float(np.nanmin(value)), float(np.nanmax(value))
        levels = (value - low) * (LEVELS / ((high - low) or 1.0))
        blocks[name] = np.where(np.isnan(value), LEVELS + 1, np.rint(levels)).astype(np.uint8)
        return {"block": name, "low": low, "high": high}
    if isinstance(value, (tuple, list)):
        return [as_plain(each, blocks) for each in value]
    if is_dataclass(value) and not isinstance(value, type):
        plain = {
            name: as_plain(getattr(value, name), blocks, is_coarse)
            for name, is_coarse in _fields(type(value))
        }
        return plain | ({"kind": value.kind} if isinstance(value, Figure) else {})
    if isinstance(value, Mapping):
        return {name: as_plain(each, blocks) for name, each in value.items()}
    if isinstance(value, np.generic):
        return value.item()
    return value


@cache
def _fields(kind: type) -> tuple[tuple[str, bool], ...]:
    """The fields of a dataclass, and whether they are COARSE."""
    return tuple((each.name, each.metadata == COARSE) for each in fields(kind))


PLAIN_TYPES = {str, int, float, bool, type(None)}
MAX_EXACT = 60_000  # numbers of a figure that travel in single precision
LEVELS = 254
MOST_SEEN = 64  # rows and columns of a matrix that are drawn one by one
MOST_LARGE = 48  # of a sentence in large type
MOST_TOKENS = 13  # of a sentence that one picture shows in type for the back row


def numbers(values: np.ndarray | Sequence[float]) -> np.ndarray:
    """A row of numbers, NaN for those that are not finite."""
    row = np.asarray(values, np.float64)
    return np.where(np.isfinite(row), row, np.nan)


def matrix(values: np.ndarray, allowed: np.ndarray | None = None) -> np.ndarray:
    """A matrix of numbers, NaN where `allowed` is False."""
    return numbers(values if allowed is None else np.where(allowed, values, np.nan))


def window(n: int, focus: Sequence[int], limit: int = MOST_TOKENS) -> np.ndarray:
    """The places of n that are drawn, in order: all where they fit, else those around `focus`."""
    if n <= limit:
        return np.arange(n)
    focused = sorted({int(each) for each in focus if 0 <= each < n})[:limit]
    distance = np.abs(np.arange(n)[:, None] - np.array(focused or [0])).min(axis=1)
    nearest = np.argsort(distance, kind="stable")[:limit]
    return np.sort(nearest)


def truncation_note(n_visible: int, n: int) -> str:
    """A word on how much of a sentence is shown; "" where all is."""
    return "" if n_visible == n else f"{n_visible} of {n} tokens"


def factor(name: str, values: np.ndarray, sign: str = "", **other: Any) -> Factor:
    """A matrix (row, column) as a factor of a product; of a large one the root of the mean square
    of each block stands for its numbers."""
    values = np.atleast_2d(np.asarray(values, np.float64))
    blocks = np.array_split(np.arange(values.shape[0]), min(values.shape[0], MOST_SEEN))
    across = np.array_split(np.arange(values.shape[1]), min(values.shape[1], MOST_SEEN))
    seen = values
    if len(blocks) * len(across) < values.size and min(values.shape) > 1:
        squares = np.add.reduceat(values**2, [each[0] for each in blocks], axis=0)
        squares = np.add.reduceat(squares, [each[0] for each in across], axis=1)
        counts = np.outer([len(each) for each in blocks], [len(each) for each in across])
        seen = np.sqrt(squares / counts)
    shape = values.shape[0], values.shape[1]
    grid = seen.shape[0], seen.shape[1]
    return Factor(name, shape, sign, seen.ravel(), grid, **other)


def share(value: float) -> str:
    """A share of a length, short enough for a column: "94%", "0.3%", "0%" for what is rounding."""
    if value < 0.0005:
        return "0%"
    return f"{100 * value:.1f}%" if value < 0.01 else f"{100 * value:.0f}%"
