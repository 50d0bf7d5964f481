"""Two recordings side by side: which tokens are the same, how far apart heads are, and how alike the spaces of their vectors.

Alignment. Two axes of tokens (of two attentions' rows, or columns) are brought onto common *units*. Where both texts are the same, a unit is the
smallest group of tokens that begins and ends at the same characters in both. Where the texts differ, characters of the words that both have,
in the same order, count as the same. Special tokens before the text are one role, those after it another. What is in no unit is *outside*.

A pattern on units: weights of a group's keys are summed, of a group's queries averaged, and what goes outside stands in a last column. So
every row still sums to 1.

Distance of two rows p, q: the square root of the Jensen-Shannon divergence to base 2 (Lin 1991), a metric (Endres & Schindelin 2003), from 0,
equal, to 1, nothing in common. Distance of two heads: the mean over units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from models.recording import Attention, Recording, Stream

WORD = re.compile(r"\w+|[^\w\s]")
CHARACTERS = "characters"
WORDS = "words"
# All pairs of heads x rows x keys: about a second. Above it fewer rows are taken, evenly spaced.
MOST_WORK = 400_000_000
FEWEST_ROWS = 8
NOT_ALIGNED = "(not aligned)"
MOST_BESIDE = 48  # heads of B in a map that has a list beside it
MOST_TOKENS = 256  # of a comparison of spaces, evenly spaced above it
FEWEST_TOKENS = 3
SHUFFLES = 20
TINY = np.float32(1e-30)


# ---- which tokens are the same --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Axis:
    """Tokens along one side of a matrix: what they are called, where each stands in `text` (token, 2), -1 where nowhere, and the whole text."""

    text: str
    labels: tuple[str, ...]
    spans: np.ndarray


@dataclass(frozen=True)
class Unit:
    """Tokens of A and tokens of B (places) that are the same piece of text, or play the same role. special: the latter."""

    label: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    special: bool = False


@dataclass(frozen=True)
class Alignment:
    """Units in the order of A's text, and the places that are in none. rule: CHARACTERS or WORDS."""

    units: tuple[Unit, ...]
    outside_a: tuple[int, ...]
    outside_b: tuple[int, ...]
    rule: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The units' names."""
        return tuple(unit.label for unit in self.units)

    @property
    def n_text(self) -> int:
        """How many units are text."""
        return sum(not unit.special for unit in self.units)


def text_of(recording: Recording, stream: str) -> str:
    """The text that a stream's spans count characters of."""
    return (
        recording.target
        if len(recording.streams) > 1 and stream == recording.streams[-1].name
        else recording.text
    )


def axis(recording: Recording, stream: str) -> Axis:
    """The tokens of a stream."""
    found = recording.stream(stream)
    return Axis(text_of(recording, stream), found.tokens, found.spans)


def axes(recording: Recording, attention: Attention) -> tuple[Axis, Axis]:
    """Rows and columns of an attention. Between two streams a row stands for the token it produces, the one after the token it reads."""
    queries, keys = axis(recording, attention.query), axis(recording, attention.key)
    if attention.query == attention.key:
        return queries, keys
    spans = np.concatenate((queries.spans[1:], [[-1, -1]]))
    return Axis(
        queries.text, tuple(f"→ {label}" for label in (*queries.labels[1:], "what follows")), spans
    ), keys


def align(a: Axis, b: Axis) -> Alignment:
    """The units of two axes, see the top of this file."""
    same = a.text == b.text
    marks = [_positions(a), _positions(b)]
    if not same:
        shared_a, shared_b = _shared_words(a.text, b.text)
        marks = [
            [_moved(each, shared) for each in side]
            for side, shared in zip(marks, (shared_a, shared_b))
        ]
    groups = _groups(*marks)
    units = [Unit(_label(a, b, ours, theirs), ours, theirs) for ours, theirs in groups]
    for role in ("first", "last"):
        ours, theirs = _role(a, role), _role(b, role)
        if ours and theirs:
            names = dict.fromkeys((a.labels[ours[0]], b.labels[theirs[0]]))
            units.insert(
                0 if role == "first" else len(units), Unit(" / ".join(names), ours, theirs, True)
            )
    used_a, used_b = ({at for unit in units for at in getattr(unit, side)} for side in "ab")
    return Alignment(
        tuple(units),
        tuple(at for at in range(len(a.labels)) if at not in used_a),
        tuple(at for at in range(len(b.labels)) if at not in used_b),
        CHARACTERS if same else WORDS,
    )


def _positions(side: Axis) -> list[set[int] | None]:
    """For each token the characters it stands for, white space left out unless it is nothing else; None for one that stands nowhere.

    A token of no width, such as a mark for the text's beginning, goes with the character before which it stands.
    """
    found: list[set[int] | None] = []
    for start, end in side.spans.tolist():
        if start < 0:
            found.append(None)
            continue
        here = range(start, end) or range(start, min(start + 1, len(side.text)))
        found.append({at for at in here if not side.text[at].isspace()} or set(here))
    return found


def _moved(positions: set[int] | None, shared: dict[int, int]) -> set[int] | None:
    """Characters by their number among the shared ones; one that is not shared keeps a number of its own, below 0, and so meets no other."""
    return None if positions is None else {shared.get(at, -1) for at in positions}


def _shared_words(one: str, other: str) -> tuple[dict[int, int], dict[int, int]]:
    """The characters of the words that two texts have in the same order, case aside, each by one number that is the same in both."""
    first, second = (
        [
            (match.group().casefold(), match.end() - match.start(), match.start())
            for match in WORD.finditer(text)
        ]
        for text in (one, other)
    )
    blocks = SequenceMatcher(
        None, [word[:2] for word in first], [word[:2] for word in second], autojunk=False
    ).get_matching_blocks()
    ours, theirs = {}, {}
    for block in blocks:
        for (_, length, start), (_, _, other_start) in zip(
            first[block.a : block.a + block.size], second[block.b : block.b + block.size]
        ):
            for step in range(length):
                theirs[other_start + step] = ours[start + step] = len(ours)
    return ours, theirs


def own_words(one: str, other: str) -> tuple[str, str]:
    """The words of each of two texts that the other has not in the same order."""
    return tuple(
        " ".join(match.group() for match in WORD.finditer(text) if match.start() not in shared)
        for text, shared in zip((one, other), _shared_words(one, other))
    )


def _groups(
    a: list[set[int] | None], b: list[set[int] | None]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Tokens of both sides that share characters, directly or through others, as groups in the order of their first character.

    Left out are groups of one side alone, and groups in which a token has a character of no shared word, or one after the other side's end.
    """
    limit = min(max((max(each) for each in side if each), default=-1) for side in (a, b))
    tokens = []
    for side, places in enumerate((a, b)):
        for at, each in enumerate(places):
            if shared := [one for one in each or () if one >= 0]:
                tokens.append(
                    (
                        min(shared),
                        max(shared),
                        side,
                        at,
                        len(shared) == len(each) and max(shared) <= limit,
                    )
                )
    groups, reach = [], -1
    for start, end, side, at, whole in sorted(tokens):
        if start > reach:
            groups.append(([], [], []))
        reach = max(reach, end)
        groups[-1][side].append(at)
        groups[-1][2].append(whole)
    return [
        (tuple(sorted(ours)), tuple(sorted(theirs)))
        for ours, theirs, whole in groups
        if ours and theirs and all(whole)
    ]


def _label(a: Axis, b: Axis, ours: tuple[int, ...], theirs: tuple[int, ...]) -> str:
    if len(ours) == 1:
        return a.labels[ours[0]]
    if len(theirs) == 1 and b.labels[theirs[0]].removeprefix("→ ") in a.text:
        return b.labels[theirs[0]]
    start, end = min(a.spans[at, 0] for at in ours), max(a.spans[at, 1] for at in ours)
    written = a.text[start:end].strip()
    return ("→ " if a.labels[ours[0]].startswith("→ ") else "") + (written or a.labels[ours[0]])


def _role(side: Axis, role: str) -> tuple[int, ...]:
    """The special tokens before ("first") or after ("last") the text; where there is no text, the first token and the last."""
    nowhere = side.spans[:, 0] < 0
    n = len(nowhere)
    text = np.flatnonzero(~nowhere)
    if len(text):
        return tuple(range(text[0])) if role == "first" else tuple(range(text[-1] + 1, n))
    if n == 1:
        opens = side.labels[0] in ("[CLS]", "[BOS]", "<s>")
        return (0,) if opens == (role == "first") else ()
    return (0,) if role == "first" else (n - 1,) if n else ()


def refusal(rows: Alignment, columns: Alignment) -> str:
    """Why two attentions cannot be compared, "" where they can."""
    for alignment, what in ((rows, "rows"), (columns, "columns")):
        texts = len(alignment.outside_a) + len(alignment.outside_b)
        if not alignment.units or (texts and not alignment.n_text and alignment.rule == WORDS):
            return f"The {what} of the two have no word in common, so no row of one can be laid beside a row of the other."
    return ""


# ---- matrices on common units ---------------------------------------------------------------------------------------


def onto(
    pattern: np.ndarray, rows: Sequence[Sequence[int]], columns: Sequence[Sequence[int]]
) -> np.ndarray:
    """A pattern (layer, head, query, key) on units: (layer, head, row, column + 1). Keys of a unit are summed, its queries averaged; the last
    column is what goes to no unit. Rows sum to 1."""
    n = pattern.shape[-1]
    inside = [at for group in columns for at in group]
    outside = sorted(set(range(n)) - set(inside))
    order = np.array([*inside, *outside], dtype=int)
    starts = np.cumsum([0, *map(len, columns)])[:-1]
    picked = _averaged(pattern, rows)
    picked = picked if np.array_equal(order, np.arange(n)) else picked[..., order]
    made = np.zeros((*picked.shape[:-1], len(columns) + 1), dtype=pattern.dtype)
    if len(inside) == len(columns):
        made[..., :-1] = picked[..., : len(inside)]
    elif len(columns):
        made[..., :-1] = np.add.reduceat(picked[..., : len(inside)], starts, axis=-1)
    if outside:
        made[..., -1] = picked[..., len(inside) :].sum(axis=-1)
    return made


def _averaged(array: np.ndarray, groups: Sequence[Sequence[int]], axis: int = -2) -> np.ndarray:
    """The mean over each group of places along the last axis but one."""
    order = np.array([at for group in groups for at in group], dtype=int)
    sizes = np.array([len(group) for group in groups])
    picked = array[..., order, :]
    if len(order) == len(groups):
        return picked
    return np.add.reduceat(picked, np.cumsum([0, *sizes])[:-1], axis=axis) / sizes[:, None].astype(
        array.dtype
    )


def free_rows(a: np.ndarray, b: np.ndarray, rows: Alignment) -> np.ndarray:
    """Which units (row) count: those whose query had a choice of keys on one side at least, allowed (query, key) each; all where none had."""
    choice_a, choice_b = a.sum(axis=1) > 1, b.sum(axis=1) > 1
    free = np.array(
        [choice_a[list(unit.a)].any() or choice_b[list(unit.b)].any() for unit in rows.units],
        dtype=bool,
    )
    return free if free.any() else ~free


@dataclass(frozen=True, eq=False)
class Sides:
    """Two attentions on common units. a, b (layer, head, row, column + 1), the last column is outside. free (row): rows that count."""

    rows: Alignment
    columns: Alignment
    a: np.ndarray
    b: np.ndarray
    free: np.ndarray

    @property
    def nbytes(self) -> int:
        """What it weighs."""
        return self.a.nbytes + self.b.nbytes

    @property
    def same_shape(self) -> bool:
        """True where both have as many layers and heads."""
        return self.a.shape[:2] == self.b.shape[:2]

    @property
    def leaves_out(self) -> bool:
        """True where some key is in no unit."""
        return bool(self.columns.outside_a or self.columns.outside_b)

    @property
    def column_labels(self) -> tuple[str, ...]:
        """Names of the columns, with that of the last one where anything is outside."""
        return (*self.columns.labels, *((NOT_ALIGNED,) if self.leaves_out else ()))

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """All heads of A and of B, (layer, head, row, column), outside included where there is any."""
        end = None if self.leaves_out else -1
        return self.a[..., :end], self.b[..., :end]

    def heads(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """Head (layer, head) of A and one of B, (row, column), outside included where there is any."""
        end = None if self.leaves_out else -1
        return self.a[a][:, :end], self.b[b][:, :end]


def sides(
    a: tuple[Recording, Attention],
    b: tuple[Recording, Attention],
    rows: Alignment,
    columns: Alignment,
) -> Sides:
    """Both attentions on the units of `rows` and `columns`."""
    one, other = (
        onto(
            attention.pattern,
            [getattr(unit, side) for unit in rows.units],
            [getattr(unit, side) for unit in columns.units],
        )
        for (_, attention), side in ((a, "a"), (b, "b"))
    )
    return Sides(rows, columns, one, other, free_rows(a[1].allowed, b[1].allowed, rows))


# ---- how far heads are apart ----------------------------------------------------------------------------------------


def row_distances(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance of distributions along the last axis, (...), 0 to 1."""
    p, q = p.astype(np.float64), q.astype(np.float64)
    divergence = (_plogp(p) / 2 + _plogp(q) / 2 - _plogp((p + q) / 2)).sum(axis=-1) / np.log(2)
    return np.sqrt(np.clip(divergence, 0, 1))


def _plogp(p: np.ndarray) -> np.ndarray:
    return p * np.log(np.maximum(p, TINY))


def paired(found: Sides) -> np.ndarray:
    """The distance of each head to the one in the same place on the other side, (layer, head). Raises ValueError where shapes differ."""
    if not found.same_shape:
        raise ValueError(
            f"heads in the same place need the same shape, not {found.a.shape[:2]} and {found.b.shape[:2]}"
        )
    return np.stack(
        [
            row_distances(a[:, found.free], b[:, found.free]).mean(axis=-1)
            for a, b in zip(found.a, found.b)
        ]
    )


@dataclass(frozen=True, eq=False)
class Distances:
    """Every head of A to every head of B: values (head of A, head of B), heads in reading order. n_rows of all_rows rows were used."""

    values: np.ndarray
    shape_a: tuple[int, int]
    shape_b: tuple[int, int]
    n_rows: int
    all_rows: int


def distances(found: Sides, most: int = MOST_WORK) -> Distances:
    """Every head of A to every head of B. Where heads x heads x rows x columns is more than `most`, evenly spaced rows stand for all."""
    rows = np.flatnonzero(found.free)
    (la, ha), (lb, hb) = found.a.shape[:2], found.b.shape[:2]
    fitting = max(FEWEST_ROWS, most // (la * ha * lb * hb * found.a.shape[-1]))
    used = (
        rows
        if len(rows) <= fitting
        else rows[np.unique(np.linspace(0, len(rows) - 1, fitting).round().astype(int))]
    )
    a, b = (
        side.reshape(-1, *side.shape[2:])[:, used].astype(np.float32) for side in (found.a, found.b)
    )
    for side in (a, b):
        side[side < TINY] = 0  # halves of smaller numbers are not exact
    values = np.empty((len(a), len(b)), dtype=np.float64)
    half_a, half_b = _plogp(a) / 2, _plogp(b) / 2
    mean, log = np.empty_like(b), np.empty_like(b)
    for at, (one, half) in enumerate(zip(a, half_a)):
        np.add(b, one, out=mean)
        mean *= 0.5
        np.log(np.maximum(mean, TINY, out=log), out=log)
        mean *= log
        np.subtract(half_b, mean, out=log)
        log += half  # equal rows leave exactly 0: half + half - whole, term by term
        values[at] = np.sqrt(np.clip(log.sum(axis=-1) / np.float32(np.log(2)), 0, 1)).mean(axis=-1)
    return Distances(values, (la, ha), (lb, hb), len(used), len(rows))


def few(all_values: Distances) -> bool:
    """True where the map of all distances is narrow enough to have something beside it."""
    return all_values.values.shape[1] <= MOST_BESIDE


@dataclass(frozen=True)
class Nearest:
    """A head of A, the nearest head of B and its distance, the next best, and the median over all heads of B. mutual: A's is B's nearest too."""

    head: tuple[int, int]
    nearest: tuple[int, int]
    distance: float
    next: tuple[int, int] | None
    next_distance: float
    median: float
    mutual: bool


def nearest(found: Distances) -> tuple[Nearest, ...]:
    """The nearest head of B for every head of A, in reading order; of equal ones the one in the same place, else the first."""
    values, made = found.values, []
    back = values.argmin(axis=0)
    for at, row in enumerate(values):
        order = np.argsort(row, kind="stable")
        head = divmod(at, found.shape_a[1])
        first = at if found.shape_a == found.shape_b and row[at] == row[order[0]] else int(order[0])
        second = next((int(each) for each in order if each != first), None)
        mutual = bool(back[first] == at or values[at, first] == values[:, first].min())
        made.append(
            Nearest(
                head,
                divmod(first, found.shape_b[1]),
                float(row[first]),
                None if second is None else divmod(second, found.shape_b[1]),
                float("nan") if second is None else float(row[second]),
                float(np.median(row)),
                mutual,
            )
        )
    return tuple(made)


@dataclass(frozen=True)
class Change:
    """The row of a pair of heads that differs most, and in it the column that lost most and the one that gained most, from A to B."""

    row: str
    distance: float
    lost: str
    lost_from: float
    lost_to: float
    gained: str
    gained_from: float
    gained_to: float


def change(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> Change:
    """What differs most between a head of A and one of B."""
    one, other = found.heads(a, b)
    far = np.where(found.free, row_distances(one, other), -1)
    at = int(far.argmax())
    moved = other[at] - one[at]
    less, more = int(moved.argmin()), int(moved.argmax())
    labels = found.column_labels
    return Change(
        found.rows.labels[at],
        float(far[at]),
        labels[less],
        float(one[at, less]),
        float(other[at, less]),
        labels[more],
        float(one[at, more]),
        float(other[at, more]),
    )


def pair_distance(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> float:
    """The distance of a head of A to one of B."""
    return float(row_distances(found.a[a][found.free], found.b[b][found.free]).mean())


def pair_matrices(
    found: Sides, a: tuple[int, int], b: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """A head of A, one of B and B - A, each (row, column), the largest weight of both, and the largest difference either way."""
    one, other = found.heads(a, b)
    change = other.astype(np.float64) - one
    return one, other, change, top(np.stack((one, other))), top(np.abs(change))


def top(values: np.ndarray) -> float:
    """The upper end of a colour scale from 0: the largest value, or 1 where all are 0."""
    return float(values.max(initial=0)) or 1.0


def nearest_to(near: Sequence[Nearest], head: tuple[int, int]) -> tuple[int, int]:
    """The head of B that is nearest to a head of A."""
    return next(one.nearest for one in near if one.head == head)


def farthest_head(near: Sequence[Nearest]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The head of A whose nearest head of B is farthest, and that one."""
    one = max(near, key=lambda each: each.distance)
    return one.head, one.nearest


def marks(near: Sequence[Nearest], all_values: Distances) -> list[tuple[int, int]]:
    """The cell of the nearest head in each row of all distances."""
    return [
        (head_number(one.head, all_values.shape_a), head_number(one.nearest, all_values.shape_b))
        for one in near
    ]


def head_number(head: tuple[int, int], shape: Sequence[int]) -> int:
    """A head's place in reading order."""
    return head[0] * shape[1] + head[1]


def lost(found: Sides) -> tuple[float, float]:
    """The share of all compared attention that goes to no unit, on A and on B."""
    return tuple(float(each.mean()) for each in outside(found))


def outside(found: Sides) -> tuple[np.ndarray, np.ndarray]:
    """The share of each row that goes to no unit, mean over heads, for A and B: (row) each."""
    return tuple(side[..., -1].mean(axis=(0, 1), dtype=np.float64) for side in (found.a, found.b))


# ---- vectors --------------------------------------------------------------------------------------------------------


def states(stream: Stream) -> tuple[str, ...]:
    """The states a stream passes on, one after the embeddings and one after each sub-layer: after its LayerNorm where that follows the sum."""
    found = [site for site in stream.sites if not site.endswith((".wrote", ".read"))]
    found = [
        site
        for site in found
        if not (site.endswith(".sum") and site[:-3] + "normed" in stream.sites)
    ]
    start = [site for site in found if site.startswith("embed")]
    return (*start[-1:], *(site for site in found if site not in start))


def state_title(site: str) -> str:
    """A state as an axis names it: "start", "L2 attention"."""
    layer, _, rest = site.partition(".")
    if site.startswith("embed"):
        return "start"
    place = rest.partition(".")[0]
    return (
        f"L{layer} { {'attn': 'attention', 'cross': 'cross', 'ffn': 'FFN'}.get(place, place) }"
        if layer.isdecimal()
        else {"final": "last norm"}.get(layer, site)
    )


@dataclass(frozen=True, eq=False)
class Spaces:
    """Vectors of the units that are text, on both sides: a, b (site, unit, d_model), float64; sites_a, sites_b; labels (unit)."""

    labels: tuple[str, ...]
    sites_a: tuple[str, ...]
    sites_b: tuple[str, ...]
    a: np.ndarray
    b: np.ndarray

    @property
    def nbytes(self) -> int:
        """What it weighs."""
        return self.a.nbytes + self.b.nbytes


def spaces(a: Stream, b: Stream, alignment: Alignment) -> Spaces:
    """The states of two streams at their common units; a unit's vector is the mean over its tokens."""
    units = [unit for unit in alignment.units if not unit.special]
    made = [
        _averaged(
            stream.resid[[stream.sites.index(site) for site in states(stream)]].astype(np.float64),
            [getattr(unit, side) for unit in units],
        )
        if units
        else np.zeros((len(states(stream)), 0, stream.resid.shape[-1]))
        for stream, side in ((a, "a"), (b, "b"))
    ]
    return Spaces(tuple(unit.label for unit in units), states(a), states(b), *made)


def depth(n: int) -> np.ndarray:
    """Where n states stand between the first, 0, and the last, 1."""
    return np.linspace(0, 1, n) if n > 1 else np.zeros(n)


def norms(vectors: np.ndarray) -> np.ndarray:
    """Lengths of (site, unit, d_model): mean, least and largest over units, (3, site)."""
    length = np.linalg.norm(vectors, axis=-1)
    return np.stack((length.mean(axis=1), length.min(axis=1), length.max(axis=1)))


@dataclass(frozen=True, eq=False)
class Likeness:
    """Linear CKA between every state of A and of B, values (site of A, site of B), 0 to 1; chance, the same shape: its mean where B's units are
    in another order. n of n_all units were used."""

    values: np.ndarray
    chance: np.ndarray
    n: int
    n_all: int


def likeness(found: Spaces) -> Likeness:
    """Linear CKA (Kornblith et al. 2019) of the states on both sides, over units. Raises ValueError for fewer than three units."""
    n_all = len(found.labels)
    if n_all < FEWEST_TOKENS:
        raise ValueError(
            f"{n_all} aligned tokens are too few to compare spaces; it takes {FEWEST_TOKENS}"
        )
    used = np.unique(np.linspace(0, n_all - 1, min(n_all, MOST_TOKENS)).round().astype(int))
    one, other = (_grams(side[:, used]) for side in (found.a, found.b))
    flat = one.reshape(len(one), -1)
    rng = np.random.default_rng(0)
    chance = np.mean(
        [
            flat @ other[:, order][:, :, order].reshape(len(other), -1).T
            for order in (rng.permutation(len(used)) for _ in range(SHUFFLES))
        ],
        axis=0,
    )
    values = flat @ other.reshape(len(other), -1).T
    return Likeness(np.clip(values, 0, 1), np.clip(chance, 0, 1), len(used), n_all)


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear CKA of two sets of vectors of the same things, (thing, d) and (thing, e): |Y'X|² / (|X'X| |Y'Y|), both centred, Frobenius norms."""
    return float((_grams(x[None]) * _grams(y[None])).sum())


def _grams(vectors: np.ndarray) -> np.ndarray:
    """Gram matrices (site, thing, thing) of centred vectors (site, thing, d), each at Frobenius length 1; zeros where all vectors are the same."""
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    gram = centred @ centred.swapaxes(1, 2)
    length = np.linalg.norm(gram, axis=(1, 2), keepdims=True)
    return np.where(length > 1e-20, gram / np.where(length > 1e-20, length, 1), 0)


@dataclass(frozen=True, eq=False)
class Plane:
    """Paths in a plane: points (site, unit, 2), how much of the vectors' spread each axis has, and what the plane was fitted on."""

    points: np.ndarray
    explained: tuple[float, float]


def planes(found: Spaces, common: bool) -> tuple[Plane, Plane]:
    """Both sides' paths in the two directions along which they spread most: together in one plane, or each in its own."""
    flat = [side.reshape(-1, side.shape[-1]) for side in (found.a, found.b)]
    bases = [_plane(np.concatenate(flat))] * 2 if common else [_plane(each) for each in flat]
    return tuple(
        Plane((side - centre) @ axes, explained)
        for side, (centre, axes, explained) in zip((found.a, found.b), bases)
    )


def _plane(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    centre = rows.mean(axis=0)
    values, vectors = np.linalg.eigh((rows - centre).T @ (rows - centre))
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    total = max(float(values.sum()), 1e-30)
    return centre, axes, (float(values[-1]) / total, float(values[-2]) / total)


def followed(found: Spaces, common: bool) -> int:
    """The unit to follow where the reader has chosen none: of one model's two runs the one whose last states differ most in direction, else the
    longest word."""
    if not common:
        return max(range(len(found.labels)), key=lambda at: sum(map(str.isalpha, found.labels[at])))
    one, other = found.a[-1], found.b[-1]
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return int(((one * other).sum(axis=-1) / np.where(lengths > 0, lengths, 1)).argmin())


# ---- words, tables and files ----------------------------------------------------------------------------------------


def name(head: tuple[int, int]) -> str:
    """A head as people write it: "L2 H3"."""
    return f"L{head[0]} H{head[1]}"


def names(shape: tuple[int, int]) -> list[str]:
    """All heads of (layers, heads) in reading order."""
    return [name((layer, head)) for layer in range(shape[0]) for head in range(shape[1])]


def most_changed(paired_distances: np.ndarray) -> list[tuple[int, int]]:
    """Heads of (layer, head), the most changed first."""
    order = np.argsort(-paired_distances, axis=None, kind="stable")
    return [divmod(int(at), paired_distances.shape[1]) for at in order]


def sentence(found: Sides, paired_distances: np.ndarray | None, near: Sequence[Nearest]) -> str:
    """What differs most, in one sentence of measured values."""
    if paired_distances is not None:
        most = most_changed(paired_distances)[0]
        top, half = float(paired_distances[most]), float(np.median(paired_distances))
        if top == 0:
            return "No head differs: every row that is compared is the same on both sides."
        what = change(found, most, most)
        return f"{name(most)} differs most: its rows are {top:.2f} apart on average; of all heads the median is {half:.2f}. {told(what)}"
    best, worst = min(near, key=lambda one: one.distance), max(near, key=lambda one: one.distance)
    return (
        f"A’s {name(worst.head)} is farthest from any head of B: the nearest, {name(worst.nearest)}, is {worst.distance:.2f} away. "
        f"The best match is A’s {name(best.head)} and B’s {name(best.nearest)}, {best.distance:.2f} apart, where half of B’s heads are more than {best.median:.2f} away."
    )


def all_same(paired_distances: np.ndarray) -> bool:
    """Whether no head differs from the one in its place. paired_distances: (n_layer, n_head), see `paired`."""
    return not paired_distances.any()


def told(what: Change) -> str:
    """A change in words."""
    if what.distance == 0:
        return "Every row is the same."
    lost, gained = (
        "what is not aligned" if label == NOT_ALIGNED else f"“{label}”"
        for label in (what.lost, what.gained)
    )
    return f"From A to B, “{what.row}” looks less at {lost} ({what.lost_from:.2f} → {what.lost_to:.2f}) and more at {gained} ({what.gained_from:.2f} → {what.gained_to:.2f})."


def free_told(found: Sides) -> str:
    """A sentence on rows that have no choice, "" where all have one."""
    forced = int((~found.free).sum())
    if not forced:
        return ""
    return f"{forced} row{'s' if forced > 1 else ''} with a single key to look at on both sides {'are' if forced > 1 else 'is'} drawn, but not counted in any distance."


def lengths_told(found: Spaces) -> str:
    """How the vectors' lengths go, in a sentence."""
    ends = [norms(side)[0] for side in (found.a, found.b)]
    return f"A’s vectors go from {ends[0][0]:.1f} to {ends[0][-1]:.1f} on average, B’s from {ends[1][0]:.1f} to {ends[1][-1]:.1f}."


def likeness_told(found: Spaces, like: Likeness) -> str:
    """What CKA comes to at both ends and where it stands out most from chance, in a sentence."""
    few = (
        f" Only {like.n} tokens: chance is high, so read the values beside it."
        if like.n < 20
        else ""
    )
    part = (
        f" {like.n} of {like.n_all} tokens, evenly spaced, are used." if like.n < like.n_all else ""
    )
    return f"The first states: CKA {like.values[0, 0]:.2f}, by chance {like.chance[0, 0]:.2f}. The last states: {like.values[-1, -1]:.2f}, by chance {like.chance[-1, -1]:.2f}.{few}{part}"


def apart_told(found: Spaces, unit: int) -> str:
    """How far one piece of text ends from itself on the two sides, in a sentence. Both sides are one model's."""
    one, other = found.a[-1, unit], found.b[-1, unit]
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    cosine = float(one @ other) / length if length > 0 else 1.0
    return f"“{found.labels[unit]}” ends {np.linalg.norm(one - other):.2f} apart on the two sides, in all {len(one)} dimensions; the cosine of the two is {cosine:.3f}."


def nearest_columns(near: Sequence[Nearest]) -> dict[str, list]:
    """The nearest heads as named columns."""
    return {
        "head of A": [name(one.head) for one in near],
        "nearest": [name(one.nearest) for one in near],
        "distance": [one.distance for one in near],
        "next best": ["–" if one.next is None else name(one.next) for one in near],
        "at": [one.next_distance for one in near],
        "median": [one.median for one in near],
        "both ways": ["yes" if one.mutual else "" for one in near],
    }


def changed_columns(found: Sides, paired_distances: np.ndarray) -> dict[str, list]:
    """Heads in the same place, the most changed first, as named columns."""
    order = most_changed(paired_distances)
    changes = [change(found, head, head) for head in order]
    return {
        "head": [name(head) for head in order],
        "distance": [float(paired_distances[head]) for head in order],
        "row that differs most": [one.row for one in changes],
        "less at": [f"{one.lost}  {one.lost_from:.2f} → {one.lost_to:.2f}" for one in changes],
        "more at": [
            f"{one.gained}  {one.gained_from:.2f} → {one.gained_to:.2f}" for one in changes
        ],
    }


def pair_columns(found: Sides, a: tuple[int, int], b: tuple[int, int]) -> dict[str, list]:
    """Every cell of two heads on common units: row, column, both weights and B - A."""
    one, other = found.heads(a, b)
    rows, columns = _numbered(found.rows.labels), _numbered(found.column_labels)
    return {
        "row": [row for row in rows for _ in columns],
        "column": [column for _ in rows for column in columns],
        "A": one.ravel().astype(float).tolist(),
        "B": other.ravel().astype(float).tolist(),
        "B - A": (other - one).ravel().astype(float).tolist(),
    }


def most_apart(columns: dict[str, list], most: int) -> dict[str, list]:
    """The rows of `pair_columns` with the largest |B - A|, largest first; all of them, in their order, where there are at most `most`."""
    if len(columns["B - A"]) <= most:
        return columns
    order = np.argsort(-np.abs(columns["B - A"]), kind="stable")[:most]
    return {name: [values[at] for at in order] for name, values in columns.items()}


def distance_columns(all_values: Distances) -> dict[str, list]:
    """Every head of A to every head of B, a column for each head of B."""
    return {"A \\ B": names(all_values.shape_a)} | {
        label: column.tolist()
        for label, column in zip(names(all_values.shape_b), all_values.values.T)
    }


def unit_columns(alignment: Alignment, a: Axis, b: Axis) -> dict[str, list]:
    """Which tokens are laid beside which, as named columns; what is in no unit comes last."""
    spelled = lambda side, places: "  ".join(f"{side.labels[at]} ({at})" for at in places)
    rows = [(unit.label, spelled(a, unit.a), spelled(b, unit.b)) for unit in alignment.units]
    rows += [("not aligned", spelled(a, (at,)), "") for at in alignment.outside_a] + [
        ("not aligned", "", spelled(b, (at,))) for at in alignment.outside_b
    ]
    return {
        "unit": [row[0] for row in rows],
        "tokens of A": [row[1] for row in rows],
        "tokens of B": [row[2] for row in rows],
    }


def outside_columns(found: Sides) -> dict[str, list]:
    """What each row gives to no unit, mean over heads, as named columns."""
    one, other = outside(found)
    return {"row": _numbered(found.rows.labels), "A": one.tolist(), "B": other.tolist()}


def norm_columns(found: Spaces) -> dict[str, list]:
    """Lengths by state on both sides as named columns."""
    made: dict[str, list] = {
        "side": [],
        "state": [],
        "depth": [],
        "mean": [],
        "least": [],
        "largest": [],
    }
    for side, sites, vectors in (("A", found.sites_a, found.a), ("B", found.sites_b, found.b)):
        mean, least, most = norms(vectors)
        for at, site in enumerate(sites):
            for key, value in zip(
                made,
                (
                    side,
                    state_title(site),
                    float(depth(len(sites))[at]),
                    float(mean[at]),
                    float(least[at]),
                    float(most[at]),
                ),
            ):
                made[key].append(value)
    return made


def likeness_columns(found: Spaces, like: Likeness) -> dict[str, list]:
    """CKA and its chance value for every pair of states as named columns."""
    pairs = [(at, to) for at in range(len(found.sites_a)) for to in range(len(found.sites_b))]
    return {
        "state of A": [state_title(found.sites_a[at]) for at, _ in pairs],
        "state of B": [state_title(found.sites_b[to]) for _, to in pairs],
        "CKA": [float(like.values[pair]) for pair in pairs],
        "by chance": [float(like.chance[pair]) for pair in pairs],
    }


def path_columns(found: Spaces, made: tuple[Plane, Plane]) -> dict[str, list]:
    """Every point of both pictures as named columns."""
    columns: dict[str, list] = {"side": [], "token": [], "state": [], "x": [], "y": []}
    for side, sites, plane in (("A", found.sites_a, made[0]), ("B", found.sites_b, made[1])):
        for unit, label in enumerate(_numbered(found.labels)):
            for at, site in enumerate(sites):
                for key, value in zip(
                    columns, (side, label, state_title(site), *map(float, plane.points[at, unit]))
                ):
                    columns[key].append(value)
    return columns


def _numbered(labels: Sequence[str]) -> list[str]:
    return [f"{at} {label}" for at, label in enumerate(labels)]
