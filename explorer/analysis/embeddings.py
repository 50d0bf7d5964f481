"""Paths of tokens through a model: which vectors, in which plane, how much of them it shows, and
how near they come to words.

Axis legend: site, token and d_model as in `models/recording.py`; `axis` counts the three directions
of a basis; `rank` counts nearest words. Lengths and distances are in the units of the residual
stream; errors and explained variances are shares from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.anchors import CONTEXTS, Anchors, pulls
from explorer.analysis.csv import Cells, Columns, stacked
from explorer.analysis.planes import Basis, cosine, moved, principal, through, unit
from explorer.analysis.residual import adds, norm_place, sublayers
from explorer.analysis.sites import title as site_title
from explorer.analysis.sites import vectors
from models.recording import Stream


@dataclass(frozen=True)
class Built:
    """How vectors come about: where LayerNorm stands ("post", "pre" or None), whether there is a
    residual connection, whether positions are added, and whether a LayerNorm follows that. layers:
    the sums of whole layers are all there is, so the first two are not known."""

    norm: str | None
    adds: bool
    positions: bool
    normed: bool
    layers: bool = False


def built(stream: Stream) -> Built:
    """How a stream's vectors come about."""
    sites = stream.sites
    return Built(
        norm_place(stream),
        adds(stream),
        "pos.wrote" in sites,
        "embed.normed" in sites,
        not any(each.layer >= 0 for each in sublayers(stream)),
    )


def places(stream: Stream, specials: bool) -> np.ndarray:
    """Which tokens (their places) are shown: all, or those that are not special; all where nothing
    else is there."""
    plain = np.flatnonzero(~stream.special)
    return np.arange(len(stream.tokens)) if specials or not len(plain) else plain


# ---- the same word in two texts
# -------------------------------------------------------------------------------------


def followed(first: Stream, second: Stream | None, shown: Iterable[int]) -> int:
    """The token (its place) to follow where the reader has chosen none: the longest one that both
    texts have, else the longest."""
    here = [int(at) for at in shown]
    if second is not None:
        both = [
            at
            for at in here
            if counterpart(first, at, second) is not None and not first.special[at]
        ]
        here = both or here
    return max(here, key=lambda at: sum(map(str.isalpha, first.tokens[at])))


def counterpart(first: Stream, at: int, second: Stream) -> int | None:
    """The place of the same token in the second text, the first if there are several: the same id,
    or else the same letters."""
    same = np.flatnonzero(second.ids == first.ids[at])
    if len(same):
        return int(same[0])
    wanted = first.tokens[at].casefold()
    return next(
        (place for place, token in enumerate(second.tokens) if token.casefold() == wanted), None
    )


# ---- everything that one picture shows
# ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Group:
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
    plane through the anchors was possible."""

    sites: tuple[str, ...]
    groups: tuple[Group, ...]
    basis: Basis
    fallback: bool

    @property
    def titles(self) -> tuple[str, ...]:
        """The sites' names on screen."""
        return tuple(site_title(site, self.sites) for site in self.sites)

    @property
    def texts(self) -> tuple[Group, ...]:
        """The groups that are texts."""
        return tuple(group for group in self.groups if group.kind < 2)

    @property
    def nbytes(self) -> int:
        """What it weighs."""
        return sum(group.raw.nbytes + group.vectors.nbytes for group in self.groups)

    def point(self, text: int, place: int | None) -> int | None:
        """A token's number among all points; None where it is not shown."""
        if text >= len(self.texts) or place not in self.texts[text].places:
            return None
        return sum(len(group.places) for group in self.texts[:text]) + self.texts[
            text
        ].places.index(place)

    def path(self, text: int, place: int, raw: bool = False) -> np.ndarray:
        """A token's vectors (site, d_model), as shown or as recorded."""
        group = self.texts[text]
        return (group.raw if raw else group.vectors)[:, group.places.index(place)]

    def arrays(self) -> dict[str, np.ndarray]:
        """For every point and site: coordinates (point, site, 2), error, norm (as recorded) and
        moved, each (point, site)."""
        shown = np.concatenate([group.vectors for group in self.groups], axis=1)
        raw = np.concatenate([group.raw for group in self.groups], axis=1)
        found = {
            "coordinates": self.basis.project(shown)[..., :2],
            "error": self.basis.error(shown),
            "norm": np.linalg.norm(raw, axis=-1),
            "moved": moved(shown),
        }
        return {name: array.swapaxes(0, 1) for name, array in found.items()}


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

    The basis is fitted on all shown vectors of the texts, at all sites; anchors are placed in it
    and do not change it. With `words_plane` its first axis leads from the first group's mean to the
    second's, at the last site.
    """
    made = [
        (
            f"text {at + 1}" if len(streams) > 1 else "text",
            at,
            tuple(stream.tokens[place] for place in shown),
            tuple(map(int, shown)),
            vectors(stream, names, shown),
        )
        for at, stream in enumerate(streams)
        for shown in [places(stream, specials)]
    ]
    if anchors is not None:
        by_site = anchors.vectors.swapaxes(0, 1)
        made += [
            (
                ", ".join(words),
                2 + at,
                words,
                tuple(range(len(words))),
                by_site[:, anchors.group == at],
            )
            for at, words in enumerate(anchors.words)
        ]
    groups_made = tuple(Group(*one, unit(one[-1]) if unit_length else one[-1]) for one in made)
    rows = np.concatenate(
        [
            group.vectors.reshape(-1, group.vectors.shape[-1])
            for group in groups_made
            if group.kind < 2
        ]
    )
    ends = [group.vectors[-1].mean(0) for group in groups_made if group.kind > 1]
    possible = len(ends) == 2 and bool(np.linalg.norm(ends[1] - ends[0]) > 0)
    if words_plane and possible:
        name = " → ".join(group.name for group in groups_made if group.kind > 1)
        basis = through(rows, ends[0], ends[1], name)
    else:
        basis = principal(rows)
    return Scene(tuple(names), groups_made, basis, words_plane and not possible)


@dataclass(frozen=True)
class Journey:
    """One token's way: its length over all sites, the straight line from start to end, the cosine
    of start and end, its longest step and the site where that ends."""

    length: float
    straight: float
    cosine: float
    longest: float
    site: int


def journey(path: np.ndarray) -> Journey:
    """The way of (site, d_model), in all dimensions."""
    steps = moved(path)
    return Journey(
        float(steps.sum()),
        float(np.linalg.norm(path[-1] - path[0])),
        float(cosine(path[0], path[-1])),
        float(steps.max()),
        int(steps.argmax()),
    )


def others(texts: Sequence[Group]) -> np.ndarray | None:
    """The mean cosine between different words of two texts, as recorded, by site: (site). What a
    word in two contexts is held against; None where there are no two different words."""
    one, other = (unit(group.raw) for group in texts)
    labels = [np.array([label.casefold() for label in group.labels]) for group in texts]
    total, n = (one.sum(1) * other.sum(1)).sum(-1), one.shape[1] * other.shape[1]
    for label in {*labels[0]} & {*labels[1]}:
        ours, theirs = one[:, labels[0] == label], other[:, labels[1] == label]
        total = total - (ours.sum(1) * theirs.sum(1)).sum(-1)
        n -= ours.shape[1] * theirs.shape[1]
    return total / n if n else None


@dataclass(frozen=True, eq=False)
class Curves:
    """Numbers of the followed word by site, values (line, site), one of MEASURES. lines: for each
    its name, the text it is of, and 1 for the second group of anchors (or what the first is held
    against), else 0."""

    lines: tuple[tuple[str, int, int], ...]
    values: np.ndarray


def curves(
    shown: Scene, anchors: Anchors | None, places: tuple[int, int | None], measure: str
) -> Curves:
    """How near the followed word, at `places` in the texts, comes to the anchors, or to itself in
    the other text."""
    ways = [shown.path(at, place, raw=True) for at, place in enumerate(places) if place is not None]
    if measure == CONTEXTS:
        if len(ways) < 2:
            return Curves((), np.empty((0, len(shown.sites))))
        beside = others(shown.texts)
        own = cosine(*ways)
        if beside is None:
            return Curves((("the word", 0, 0),), own[None])
        return Curves((("the word", 0, 0), ("other words", 2, 1)), np.stack((own, beside)))
    assert anchors is not None, "without anchors there is nothing else to measure"
    values = pulls(ways, anchors, [group.raw for group in shown.texts], measure)
    titles = [""] if measure == "Difference" else [", ".join(words) for words in anchors.words]
    lines = tuple(
        (f"{at + 1} · {title}" if title else shown.texts[at].name, at, group)
        for at in range(len(ways))
        for group, title in enumerate(titles)
    )
    return Curves(lines, values.reshape(len(lines), -1))


def mean_error(shown: Scene, n_axes: int, site: int) -> float:
    """The mean projection error over the texts' tokens at a site."""
    return float(
        np.concatenate(
            [shown.basis.error(group.vectors[site], n_axes) for group in shown.texts]
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
        "moved": moved(array),
    }


def site_table(texts: Sequence[tuple[str, Sequence[str], np.ndarray]], basis: Basis) -> Columns:
    """Every point at one site; each text is (its name, labels, vectors (token, d_model))."""
    rows = np.concatenate([array for *_, array in texts])
    x, y, z = basis.project(rows).T
    return {
        "of": [name for name, labels, _ in texts for _ in labels],
        "token": [label for _, labels, _ in texts for label in labels],
        "x": x,
        "y": y,
        "z": z,
        "error in 2-D": basis.error(rows, 2),
        "error in 3-D": basis.error(rows, 3),
        "norm": np.linalg.norm(rows, axis=-1),
    }


def curve_table(titles: Sequence[str], found: Curves) -> Columns:
    """Curves as named columns, one row a site."""
    names = [name for name, *_ in found.lines]
    return {"site": list(titles)} | {
        f"{at}: {name}" if names.count(name) > 1 else name: row
        for at, (name, row) in enumerate(zip(names, found.values))
    }


def near_table(
    titles: Sequence[str], words: Sequence[Sequence[str]], cosines: np.ndarray
) -> Columns:
    """The nearest words (site, rank) with their cosines, one row a site."""
    columns: dict[str, Cells] = {"site": list(titles)}
    for rank in range(cosines.shape[1]):
        columns |= {
            f"word {rank + 1}": [row[rank] for row in words],
            f"cosine {rank + 1}": cosines[:, rank],
        }
    return columns


def at_site(shown: Scene, site: int) -> Columns:
    """Every point of a scene at one site."""
    return site_table(
        [(group.name, group.labels, group.vectors[site]) for group in shown.groups], shown.basis
    )


def all_paths(shown: Scene) -> Columns:
    """Every point of a scene at every site."""
    tables = [(title, at_site(shown, at)) for at, title in enumerate(shown.titles)]
    return stacked(tables, "site")
