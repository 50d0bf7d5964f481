"""Paths of tokens through a model: which vectors, in which plane, how much of them it shows, and
how near they come to words.

Axis legend: site, token and d_model as in `models/contract/recording.py`; `axis` counts the three
directions of a basis; `rank` counts nearest words. Lengths and distances are in the units of the
residual stream; errors and explained variances are shares from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from explorer.analysis.logit_lens import title as site_title
from explorer.analysis.logit_lens import vectors
from explorer.analysis.residual import (
    has_residual,
    norm_place,
    site_vectors,
    sublayers,
    whole_layers,
)
from explorer.analysis.word_classes import CONTENT, classes, is_word
from explorer.figures.csv import Columns, long_form
from explorer.wording.templates import sentences
from models.contract.recording import Recording, Stream

MEASURE_TEXTS = sentences("embeddings", "measures")

# Vectors in a plane: lengths and cosines, the directions along which vectors spread most, and
# what these leave out.


def unit_vectors(array: np.ndarray) -> np.ndarray:
    """Vectors (..., d_model) at length 1; a vector of zeros stays one."""
    length = np.linalg.norm(array, axis=-1, keepdims=True)
    return array / np.where(length > 0, length, 1)


def step_lengths(array: np.ndarray) -> np.ndarray:
    """Distance of each vector of (site, ..., d_model) from the one at the site before, in all
    dimensions: (site, ...), 0 at the first."""
    return np.linalg.norm(np.diff(array, axis=0, prepend=array[:1]), axis=-1)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cosine along the last axis; 0 where one of the two is 0."""
    return (unit_vectors(a) * unit_vectors(b)).sum(-1)


def cosines(vectors: np.ndarray) -> np.ndarray:
    """The `cosine` of each of some vectors (vector, width) with each other one, row by row: all
    products at once are as many arrays as there are vectors."""
    unit = unit_vectors(vectors)
    return np.stack([(row * unit).sum(-1) for row in unit])


@dataclass(frozen=True, eq=False)
class Basis:
    """Three directions at right angles and the point they start from.

    centre (d_model), the mean of all vectors it was made for; axes (axis, d_model), of length 1;
    explained (axis): the share of those vectors' squared distance from the centre that lies along
    each; names: of the axes.
    """

    centre: np.ndarray
    axes: np.ndarray
    explained: np.ndarray
    names: tuple[str, ...]

    def project(self, array: np.ndarray) -> np.ndarray:
        """Coordinates (..., axis) of vectors (..., d_model)."""
        return (array - self.centre) @ self.axes.T

    def error(self, array: np.ndarray, n_axes: int = 2) -> np.ndarray:
        """The share of each vector's squared length, taken from the centre, that lies outside the
        first `n_axes` directions."""
        total = ((array - self.centre) ** 2).sum(-1)
        inside = (self.project(array)[..., :n_axes] ** 2).sum(-1)
        return np.clip(1 - inside / np.where(total > 0, total, 1), 0, 1) * (total > 0)


def principal_basis(rows: np.ndarray) -> Basis:
    """The three directions along which vectors (row, d_model) spread most: principal components,
    signs fixed by their largest entry.

    Raises ValueError for fewer than three dimensions.
    """
    if rows.shape[1] < 3:
        raise ValueError(f"a basis of three axes needs three dimensions, not {rows.shape[1]}")
    centre = rows.mean(0)
    return _basis(rows, centre, _main_directions(rows - centre, 3), ("PC 1", "PC 2", "PC 3"))


def axis_basis(rows: np.ndarray, start: np.ndarray, end: np.ndarray, name: str) -> Basis:
    """The first axis points from one vector to another (both d_model); the other two are the
    principal components of what it leaves over.

    Raises ValueError where the two are the same.
    """
    direction = end - start
    length = np.linalg.norm(direction)
    if not length > 0:
        raise ValueError("no axis leads from a point to itself")
    axis = direction / length
    centre = rows.mean(0)
    offset = rows - centre
    rest = _main_directions(offset - np.outer(offset @ axis, axis), 2, axis)
    return _basis(
        rows, centre, np.vstack((axis, rest)), (name, "PC 1 of the rest", "PC 2 of the rest")
    )


def _main_directions(offset: np.ndarray, n: int, avoid: np.ndarray | None = None) -> np.ndarray:
    """The n main directions (n, d_model) of centred rows, at right angles to `avoid`."""
    axis = np.zeros((0, offset.shape[1])) if avoid is None else avoid[None]
    # Of more dimensions than rows, those in which the rows lie, and n more for rows that are alike.
    span = np.vstack((offset, axis, np.eye(n, offset.shape[1])))
    basis = np.linalg.qr(span.T)[0] if len(span) < offset.shape[1] else np.eye(offset.shape[1])
    within, axis = offset @ basis, axis @ basis
    scatter = within.T @ within
    # Last of all, also where nothing is left over and every direction is as good.
    scatter -= (np.trace(scatter) + 1) * (axis.T @ axis)
    _, eigenvectors = np.linalg.eigh(scatter)
    axes = (basis @ eigenvectors[:, ::-1][:, :n]).T
    sign = np.sign(axes[np.arange(n), np.abs(axes).argmax(1)])
    return axes * sign[:, None]


def _basis(rows: np.ndarray, centre: np.ndarray, axes: np.ndarray, names: tuple[str, ...]) -> Basis:
    offset = rows - centre
    total = (offset**2).sum()
    return Basis(centre, axes, ((offset @ axes.T) ** 2).sum(0) / (total if total > 0 else 1), names)


# Anchor words: two groups of words, each word read alone by the same model, and how near a word
# in a text comes to either.

# The word comes last, so that a model that reads from left to right has seen the frame.
FRAME = "This is about the {}."
MOST_WORDS = 6  # in a group of anchors
LONGEST_WORD = 24
CONTEXTS = "Contexts"
MEASURES = {
    "Cosine": MEASURE_TEXTS("cosine"),
    "Centred": MEASURE_TEXTS("centred"),
    "Difference": MEASURE_TEXTS("difference"),
    CONTEXTS: MEASURE_TEXTS("contexts"),
}
# The share of all splits of the anchors that may do as well before this one counts as chance.
SPLIT_SIGNIFICANCE = 0.1
FEWEST_POINTS = 4  # at one site, for three directions along which they spread
MIN_CHANGE = 0.005  # a cosine that changes by less has not moved


def groups(text: str, is_cut: bool = True) -> tuple[tuple[str, ...], ...]:
    """Two groups of words as a reader writes them, "fruit, tree / mac, os"; empty ones are left
    out, repeated words too. is_cut: as many groups, words and letters as are read."""
    result = []
    longest, most, n_groups = (LONGEST_WORD, MOST_WORDS, 2) if is_cut else (None, None, None)
    for part in text.split("/")[:n_groups]:
        words = dict.fromkeys(
            " ".join(word.split())[:longest] for word in part.split(",") if word.strip()
        )
        if words:
            result.append(tuple(words)[:most])
    return tuple(result)


def frame_word(word: str) -> str:
    """The sentence in which an anchor word is read."""
    return FRAME.format(word)


def word_in_frame(stream: Stream, word: str, names: Sequence[str]) -> np.ndarray:
    """The vectors (site, d_model) of an anchor word in the recording of `framed(word)`: the mean
    over its tokens.

    Raises ValueError where the word has no token.
    """
    return vectors(stream, names, _tokens_of(stream, word)).mean(1)


def _tokens_of(stream: Stream, word: str) -> np.ndarray:
    start = FRAME.index("{")
    inside = np.flatnonzero(
        (stream.spans[:, 0] < start + len(word)) & (stream.spans[:, 1] > start) & ~stream.special
    )
    if not len(inside):
        raise ValueError(f"{word!r} has no token of its own")
    return inside


@dataclass(frozen=True, eq=False)
class Anchors:
    """Groups of words with their vectors. vectors (word, site, d_model); group (word): which of
    `words` each belongs to; all_rows (row, site, d_model): every word vector of the anchors'
    sentences; in_pieces: the words that the model reads as several tokens."""

    words: tuple[tuple[str, ...], ...]
    vectors: np.ndarray
    group: np.ndarray
    all_rows: np.ndarray
    in_pieces: tuple[str, ...]

    def centroids(self) -> np.ndarray:
        """The mean vector of each group: (group, site, d_model)."""
        return np.stack([self.vectors[self.group == at].mean(0) for at in range(len(self.words))])


def anchors_of(
    words: tuple[tuple[str, ...], ...],
    recordings: Sequence[Recording],
    stream: str,
    names: Sequence[str],
) -> Anchors:
    """The anchors from one recording of `framed(word)` for each word, in the words' order."""
    flat = [word for group in words for word in group]
    streams = [recording.stream(stream) for recording in recordings]
    return Anchors(
        words,
        np.stack(
            [
                word_in_frame(anchor_stream, word, names)
                for anchor_stream, word in zip(streams, flat)
            ]
        ),
        np.array([at for at, group in enumerate(words) for _ in group]),
        np.concatenate(
            [
                vectors(anchor_stream, names, np.flatnonzero(~anchor_stream.special)).swapaxes(0, 1)
                for anchor_stream in streams
            ]
        ),
        tuple(
            word
            for anchor_stream, word in zip(streams, flat)
            if len(_tokens_of(anchor_stream, word)) > 1
        ),
    )


def anchor_similarities(
    paths: Sequence[np.ndarray],
    anchors: Anchors,
    context_vectors: Sequence[np.ndarray],
    measure: str,
) -> np.ndarray:
    """Similarity of a word to each group of anchors by site, one of `MEASURES`: (text, group,
    site), for "Difference" (text, 1, site).

    paths: for each text the word's vectors (site, d_model); context_vectors: for each text the
    vectors (site, token, d_model) of all its tokens, which count in the mean of "Centred".
    """
    centroids = anchors.centroids()
    if measure == "Centred":
        mean = np.concatenate(
            [*(one.swapaxes(0, 1) for one in context_vectors), anchors.all_rows]
        ).mean(0)
        paths, centroids = [path - mean for path in paths], centroids - mean
    similarities = np.stack([cosine(path, centroids) for path in paths])
    return similarities[:, :1] - similarities[:, 1:2] if measure == "Difference" else similarities


@dataclass(frozen=True, eq=False)
class ContextShift:
    """Effect of two contexts on one word's vector, at the last site unless it says otherwise.

    gap: the first text's lean, the cosine to the first group minus that to the second, minus the
    second text's; centred_gap: the same from centred cosines; splits_as_far of n_splits ways to
    deal the anchors into two groups of these sizes put the texts at least as far apart; verdict:
    "apart", "chance" or "still".
    """

    gap: float
    centred_gap: float
    splits_as_far: int
    n_splits: int
    verdict: str


def context_shift(
    paths: Sequence[np.ndarray], anchors: Anchors, context_vectors: Sequence[np.ndarray]
) -> ContextShift:
    """Test a word's shift between two groups of anchors from one text to another, against other
    splits of the anchors. paths: of each text the word's vectors (site, d_model)."""
    similarities = anchor_similarities(paths, anchors, context_vectors, "Cosine")[..., -1]
    lean = similarities[:, 0] - similarities[:, 1]
    gap = float(lean[0] - lean[1])
    centred = anchor_similarities(paths, anchors, context_vectors, "Centred")[..., -1]
    gaps = _gaps_of_splits([path[-1] for path in paths], anchors)
    as_far = int((np.abs(gaps) >= abs(gap) - 1e-9).sum())
    if 1 - cosine(*paths)[-1] < MIN_CHANGE or abs(gap) < MIN_CHANGE:
        verdict = "still"
    else:
        verdict = (
            "apart"
            if as_far <= max(1, SPLIT_SIGNIFICANCE * len(gaps))
            and len(gaps) >= 1 / SPLIT_SIGNIFICANCE
            else "chance"
        )
    centred_gap = float((centred[0, 0] - centred[0, 1]) - (centred[1, 0] - centred[1, 1]))
    return ContextShift(gap, centred_gap, as_far, len(gaps), verdict)


def _gaps_of_splits(lasts: Sequence[np.ndarray], anchors: Anchors) -> np.ndarray:
    """The gap for every way to deal the anchors' words into groups of the same sizes; mirror images
    count once."""
    rows, sizes = anchors.vectors[:, -1], [len(group) for group in anchors.words]
    all_words, gaps = frozenset(range(len(rows))), []
    for selected in combinations(range(len(rows)), sizes[0]):
        if sizes[0] == sizes[1] and 0 not in selected:
            continue
        group_a, group_b = (
            rows[list(selected)].mean(0),
            rows[sorted(all_words - {*selected})].mean(0),
        )
        lean = [cosine(last, group_a) - cosine(last, group_b) for last in lasts]
        gaps.append(lean[0] - lean[1])
    return np.array(gaps)


@dataclass(frozen=True)
class StreamStructure:
    """Structure of a stream: the place of LayerNorm ("post", "pre" or None), and True where there
    is a residual connection, where positions are added, and where a LayerNorm follows that. layers:
    the sums of whole layers are all there is, so the first two are not known."""

    norm: str | None
    adds: bool
    positions: bool
    normed: bool
    layers: bool = False


def stream_structure(stream: Stream) -> StreamStructure:
    """Read the structure of a stream off its sites."""
    sites = stream.sites
    return StreamStructure(
        norm_place(stream),
        has_residual(stream),
        "embed+pos" in sites,
        "embed.normed" in sites,
        not any(each.layer >= 0 for each in sublayers(stream)),
    )


def visible_tokens(stream: Stream, specials: bool) -> np.ndarray:
    """Indices of the tokens that are shown: all, or those that are not special; all where nothing
    else is there."""
    plain = np.flatnonzero(~stream.special)
    return np.arange(len(stream.tokens)) if specials or not len(plain) else plain


# ---- the same word in two texts
# -------------------------------------------------------------------------------------


def matching_token(first: Stream, at: int, second: Stream) -> int | None:
    """The place of the same token in the second text, the first if there are several: the same id,
    or else the same letters."""
    same_id = np.flatnonzero(second.ids == first.ids[at])
    if len(same_id):
        return int(same_id[0])
    label = first.tokens[at].casefold()
    return next(
        (place for place, token in enumerate(second.tokens) if token.casefold() == label), None
    )


# ---- everything that one picture shows
# ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PointGroup:
    """Points of one kind: a text's tokens (kind 0 and 1) or a group of anchor words (2 and 3).

    places: of the tokens in their stream; raw (site, point, d_model) as recorded; vectors, the same
    or at length 1, as they are shown.
    """

    name: str
    kind: int
    labels: tuple[str, ...]
    places: tuple[int, ...]
    raw: np.ndarray
    vectors: np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """All groups of points over the same sites, and the one basis they are shown in. fallback: no
    plane through the anchors was possible; of_last: the basis is that of the last site's vectors,
    of all sites' where these are too few."""

    sites: tuple[str, ...]
    groups: tuple[PointGroup, ...]
    basis: Basis
    fallback: bool
    of_last: bool = True

    @property
    def titles(self) -> tuple[str, ...]:
        """The sites' names on screen."""
        return tuple(site_title(site, self.sites) for site in self.sites)

    @property
    def texts(self) -> tuple[PointGroup, ...]:
        """The groups that are texts."""
        return tuple(group for group in self.groups if group.kind < 2)

    def path(self, text: int, place: int, raw: bool = False) -> np.ndarray:
        """A token's vectors (site, d_model), as shown or as recorded."""
        group = self.texts[text]
        return (group.raw if raw else group.vectors)[:, group.places.index(place)]


def scene(
    streams: Sequence[Stream],
    anchors: Anchors | None,
    names: Sequence[str],
    *,
    specials: bool,
    unit_length: bool,
    words_plane: bool,
) -> Scene:
    """One or two texts and perhaps anchors in one basis.

    The basis is fitted on the shown vectors of the texts at the last site, where words have the
    sense of their text; before that what they share, such as their position, would rule the axes.
    Of fewer than FEWEST_POINTS it is fitted on all sites. Anchors are placed in it and do not
    change it. With `words_plane` its first axis leads from the first group's mean to the
    second's, at the last site.
    """
    specs = [
        (
            f"text {at + 1}" if len(streams) > 1 else "text",
            at,
            tuple(stream.tokens[place] for place in visible),
            tuple(map(int, visible)),
            vectors(stream, names, visible),
        )
        for at, stream in enumerate(streams)
        for visible in [visible_tokens(stream, specials)]
    ]
    if anchors is not None:
        by_site = anchors.vectors.swapaxes(0, 1)
        specs += [
            (
                ", ".join(words),
                2 + at,
                words,
                tuple(range(len(words))),
                by_site[:, anchors.group == at],
            )
            for at, words in enumerate(anchors.words)
        ]
    point_groups = tuple(
        PointGroup(*spec, unit_vectors(spec[-1]) if unit_length else spec[-1]) for spec in specs
    )
    of_texts = np.concatenate([each.vectors for each in point_groups if each.kind < 2], axis=1)
    of_last = of_texts.shape[1] >= FEWEST_POINTS
    rows = of_texts[-1] if of_last else of_texts.reshape(-1, of_texts.shape[-1])
    ends = [group.vectors[-1].mean(0) for group in point_groups if group.kind > 1]
    has_anchor_axis = len(ends) == 2 and bool(np.linalg.norm(ends[1] - ends[0]) > 0)
    if words_plane and has_anchor_axis:
        name = " → ".join(group.name for group in point_groups if group.kind > 1)
        basis = axis_basis(rows, ends[0], ends[1], name)
    else:
        basis = principal_basis(rows)
    no_anchors = words_plane and not has_anchor_axis
    return Scene(tuple(names), point_groups, basis, no_anchors, of_last)


@dataclass(frozen=True)
class PathSummary:
    """One token's way: its length over all sites, its longest step and the site where that
    ends."""

    length: float
    longest: float
    site: int


def path_summary(path: np.ndarray) -> PathSummary:
    """The way of (site, d_model), in all dimensions."""
    steps = step_lengths(path)
    return PathSummary(
        float(steps.sum()),
        float(steps.max()),
        int(steps.argmax()),
    )


def mean_cross_cosine(texts: Sequence[PointGroup]) -> np.ndarray | None:
    """The mean cosine between different words of two texts, as recorded, by site: (site). What a
    word in two contexts is held against; None where there are no two different words."""
    vectors_a, vectors_b = (unit_vectors(group.raw) for group in texts)
    labels = [np.array([label.casefold() for label in group.labels]) for group in texts]
    total, n = (
        (vectors_a.sum(1) * vectors_b.sum(1)).sum(-1),
        vectors_a.shape[1] * vectors_b.shape[1],
    )
    for label in {*labels[0]} & {*labels[1]}:
        same_a, same_b = vectors_a[:, labels[0] == label], vectors_b[:, labels[1] == label]
        total = total - (same_a.sum(1) * same_b.sum(1)).sum(-1)
        n -= same_a.shape[1] * same_b.shape[1]
    return total / n if n else None


@dataclass(frozen=True, eq=False)
class SiteCurves:
    """Numbers of the followed word by site, values (line, site), one of MEASURES. lines: for each
    its name, the text it is of, and 1 for the second group of anchors (or what the first is held
    against), else 0."""

    lines: tuple[tuple[str, int, int], ...]
    values: np.ndarray


def curves(
    scene: Scene, anchors: Anchors | None, places: tuple[int, int | None], measure: str
) -> SiteCurves:
    """Similarity by site of the followed word, at `places` in the texts, to the anchors, or to
    itself in the other text."""
    paths = [
        scene.path(at, place, raw=True) for at, place in enumerate(places) if place is not None
    ]
    if measure == CONTEXTS:
        if len(paths) < 2:
            return SiteCurves((), np.empty((0, len(scene.sites))))
        other_words = mean_cross_cosine(scene.texts)
        self_cosine = cosine(*paths)
        if other_words is None:
            return SiteCurves((("the word", 0, 0),), self_cosine[None])
        return SiteCurves(
            (("the word", 0, 0), ("other words", 2, 1)), np.stack((self_cosine, other_words))
        )
    assert anchors is not None, "without anchors there is nothing else to measure"
    values = anchor_similarities(paths, anchors, [group.raw for group in scene.texts], measure)
    titles = [""] if measure == "Difference" else [", ".join(words) for words in anchors.words]
    lines = tuple(
        (f"{at + 1} · {title}" if title else scene.texts[at].name, at, group)
        for at in range(len(paths))
        for group, title in enumerate(titles)
    )
    return SiteCurves(lines, values.reshape(len(lines), -1))


def mean_error(scene: Scene, n_axes: int, site: int) -> float:
    """The mean projection error over the texts' tokens at a site."""
    return float(
        np.concatenate(
            [scene.basis.error(group.vectors[site], n_axes) for group in scene.texts]
        ).mean()
    )


# ---- tables and files
# -----------------------------------------------------------------------------------------------


def path_table(titles: Sequence[str], array: np.ndarray, basis: Basis) -> Columns:
    """One token's path, array (site, d_model), as named columns."""
    x, y, z = basis.project(array).T
    return {
        "site": list(titles),
        "x": x,
        "y": y,
        "z": z,
        "error in 2-D": basis.error(array, 2),
        "error in 3-D": basis.error(array, 3),
        "norm": np.linalg.norm(array, axis=-1),
        "moved": step_lengths(array),
    }


def curve_table(titles: Sequence[str], site_curves: SiteCurves) -> Columns:
    """Curves as named columns, one row a site."""
    names = [name for name, *_ in site_curves.lines]
    return {"site": list(titles)} | {
        f"{at}: {name}" if names.count(name) > 1 else name: row
        for at, (name, row) in enumerate(zip(names, site_curves.values))
    }


def nearest_word_table(
    titles: Sequence[str], words: Sequence[Sequence[str]], cosines: np.ndarray
) -> Columns:
    """The nearest words (site, rank) with their cosines, one row a word."""
    axes = {"site": titles, "rank": range(1, cosines.shape[1] + 1)}
    columns = long_form(axes, cosines, "cosine")
    return columns | {"word": [word for row in words for word in row]}


# ---- a word among the words of its sentence ------------------------------------------------------

FEWEST_WORDS = 3  # one that moves, and two to move between


@dataclass(frozen=True, eq=False)
class Move:
    """A word among the words of its sentence: their places, its own among them, by their states
    after the embedding and after each layer, with the words' common part at each state taken away.

    cosines (state, word, word). toward, away: the places in `words` of the one that it comes
    nearest to and of the one that it leaves most, from the first state to the last, among the words
    of content where there are two others."""

    words: np.ndarray
    at: int
    cosines: np.ndarray
    toward: int
    away: int

    @property
    def path(self) -> np.ndarray:
        """Place of each word at each state, (word, state, 2): its cosine with the word that is
        left, and with the one that is come near to."""
        return self.cosines[:, :, [self.away, self.toward]].swapaxes(0, 1)

    @property
    def turn(self) -> float:
        """By how much more the word comes near to one neighbour than to the other, from the first
        state to the last."""
        change = self.cosines[-1, self.at] - self.cosines[0, self.at]
        return float(change[self.toward] - change[self.away])


def move_of(stream: Stream, token: int) -> Move | None:
    """The move of a word of a stream, of the next one for a token that is no word and of the last
    one behind it; None among too few and for a stream that was not recorded."""
    return next(moves(stream, (token,)), None)


def moves(stream: Stream, tokens: Iterable[int]) -> Iterator[Move]:
    """The moves of some tokens as `move_of`; none where that is None."""
    places = np.flatnonzero(np.array([is_word(each) for each in stream.tokens]) & ~stream.special)
    if len(places) < FEWEST_WORDS or not stream.sites:
        return
    whole = whole_layers(stream)
    states = [each for each in whole.sites if not each.endswith(".wrote")]
    vectors = np.stack([site_vectors(whole, each)[places] for each in states])
    vectors = vectors - vectors.mean(axis=1, keepdims=True)
    near = np.stack([cosines(each) for each in vectors])
    content = np.flatnonzero(np.array(classes(stream.tokens))[places] == CONTENT)
    for token in tokens:
        at = min(int(np.searchsorted(places, token)), len(places) - 1)
        others = content[content != at]
        if len(others) < FEWEST_WORDS - 1:
            others = np.delete(np.arange(len(places)), at)
        change = near[-1, at, others] - near[0, at, others]
        yield Move(places, at, near, *(int(others[f()]) for f in (change.argmax, change.argmin)))
