"""What the page shows, made once and handed down: one or two recordings, all their points in one
basis, and the word that is followed."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import streamlit as st

from explorer.analysis import embeddings
from explorer.analysis.caption import model_line, read_text
from explorer.analysis.embeddings import Anchors, Scene
from explorer.analysis.logit_lens import states
from explorer.state import cache, models, url_state
from models.recording import Recording, Stream

PLANES = {"PCA": "Main directions", "Words": "Through the anchors"}
LENGTHS = {"Kept": "Length kept", "Removed": "Length removed"}
SUMS = {"States": "States", "Sums": "And sums"}
SPECIALS = {"Hidden": "Words only", "Shown": "And specials"}
SPACES = {"2-D": "2-D", "3-D": "3-D"}
N_NEAR = 5  # words of the vocabulary, at each site


@dataclass(frozen=True)
class EmbeddingRequest:
    """What is drawn, in names alone, so that a button may keep it: the texts, the anchors' groups,
    and one each of PLANES, LENGTHS, SUMS and SPECIALS. second: None for one text alone."""

    model: str
    text: str
    second: str | None
    stream: str
    words: tuple[tuple[str, ...], ...]
    plane: str
    length: str
    sums: str
    specials: str

    @property
    def cause(self) -> tuple:
        """What a picture depends on beside the first recording."""
        return astuple(self)[2:]


@dataclass(frozen=True, eq=False)
class EmbeddingPlot:
    """The recordings of the texts, all points in one basis, and the anchors where they are used."""

    asked: EmbeddingRequest
    recordings: tuple[Recording, ...]
    scene: Scene
    anchors: Anchors | None

    @property
    def first(self) -> Recording:
        return self.recordings[0]

    @property
    def stream(self) -> Stream:
        return self.first.stream(self.asked.stream)

    def nearest(self, text: int, place: int) -> tuple[list[list[str]], Any]:
        """The nearest words (site, rank) to a token of a text, and their cosines."""
        recording, name = self.recordings[text], self.asked.stream
        ids, cosines = cache.nearest(recording, name, place, N_NEAR)
        at = [recording.stream(name).sites.index(site) for site in self.scene.sites]
        return [models.labels(recording.model.name, ids[one]) for one in at], cosines[at]


@dataclass(frozen=True, eq=False)
class EmbeddingState(EmbeddingPlot):
    """The same with what the reader looks at: the followed token's place, its counterpart's in the
    second text (None where it has none), the site from 0, and the measure of the curves."""

    token: int
    mate: int | None
    stage: int
    space: str
    measure: str

    @property
    def followed(self) -> tuple[tuple[int, int], ...]:
        """The followed tokens as (text, place)."""
        return ((0, self.token), *(() if self.mate is None else ((1, self.mate),)))

    @property
    def word(self) -> str:
        group = self.scene.texts[0]
        return group.labels[group.places.index(self.token)]

    @cached_property
    def curves(self) -> embeddings.SiteCurves:
        return embeddings.curves(self.scene, self.anchors, (self.token, self.mate), self.measure)

    @cached_property
    def caption(self) -> tuple[str, ...]:
        """What a figure must say when it stands alone."""
        asked, scene = self.asked, self.scene
        what, n = ("Plane", 2) if self.space == "2-D" else ("Space", 3)
        several = len(self.recordings) > 1
        lines = [
            model_line(self.first, f"stream {asked.stream}"),
            f"{what}: {', '.join(scene.basis.names[:n])}, fitted on all shown vectors of the "
            f"text{'s' if several else ''} at all "
            f"{len(scene.sites)} sites · {LENGTHS[asked.length].lower()} · "
            f"{SPECIALS[asked.specials].lower()}",
        ]
        for at, each in enumerate(self.recordings):
            lines.append(f"Text{f' {at + 1}' if several else ''}: {read_text(each)}")
        if asked.stream != self.first.streams[0].name:
            lines += [f"Written: {read_text(each, target=True)}" for each in self.recordings]
        if asked.words:
            groups = " / ".join(", ".join(group) for group in asked.words)
            lines.append(
                f"Anchors: {groups}, each alone in “{embeddings.frame_word('…')}”, not part of "
                "the fit"
            )
        return tuple(lines)

    def file(self, what: str) -> str:
        return f"headlight-{self.first.model.name}-{what}"


def drawn(asked: EmbeddingRequest) -> EmbeddingPlot:
    """Everything that is drawn, from the shelf where nothing has changed. It reads nothing of the
    visit: a download comes here too."""
    texts = (asked.text, *(() if asked.second is None else (asked.second,)))
    recordings = tuple(cache.record(asked.model, text) for text in texts)
    first = recordings[0]
    sites = states(first.stream(asked.stream), asked.sums == "Sums")
    anchors = None
    if asked.words:
        anchors = cache.cached_for(
            first, ("anchors", asked.stream, sites, asked.words), lambda: _anchors(asked, sites)
        )
    scene = cache.cached_for(
        first,
        ("scene", asked.cause),
        lambda: embeddings.scene(
            [each.stream(asked.stream) for each in recordings],
            anchors,
            sites,
            specials=asked.specials == "Shown",
            unit_length=asked.length == "Removed",
            words_plane=asked.plane == "Words",
        ),
        lambda made: made.nbytes,
    )
    return EmbeddingPlot(asked, recordings, scene, anchors)


def _anchors(asked: EmbeddingRequest, sites: tuple[str, ...]) -> Anchors:
    words = [word for group in asked.words for word in group]
    read = [cache.record(asked.model, embeddings.frame_word(word)) for word in words]
    return embeddings.anchors_of(asked.words, read, asked.stream, sites)


def screen(asked: EmbeddingRequest) -> EmbeddingState:
    """What the reader looks at, as the address has it."""
    found, state = drawn(asked), st.session_state
    token, mate = _followed(found)
    last = len(found.scene.sites)
    stage = (url_state.whole_number("stage", last + 1) or last) - 1  # the address counts from 1
    measure = url_state.one_of("curve", tuple(embeddings.MEASURES))
    if found.anchors is None or (measure == embeddings.CONTEXTS and mate is None):
        measure = embeddings.CONTEXTS if found.anchors is None else "Cosine"
    return EmbeddingState(
        asked,
        found.recordings,
        found.scene,
        found.anchors,
        token,
        mate,
        stage,
        state.space,
        measure,
    )


def _followed(found: EmbeddingPlot) -> tuple[int, int | None]:
    """The followed token's place in the first text, and its counterpart's in the second."""
    stream, shown = found.stream, found.scene.texts[0].places
    other = found.recordings[1].stream(stream.name) if len(found.recordings) > 1 else None
    token = url_state.whole_number("token", len(stream.tokens))
    if token not in shown:
        token = embeddings.default_token(stream, other, shown)
    if other is None:
        return token, None
    mate = url_state.whole_number("mate", len(other.tokens))
    if mate is None:
        mate = embeddings.matching_token(stream, token, other)
    return token, mate if mate in found.scene.texts[1].places else None
