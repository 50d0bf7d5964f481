"""The panels on embeddings: a word layer by layer in one text or in two, the words nearest to it,
and its similarity to anchor words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from explorer.analysis import embeddings, opening, residual
from explorer.analysis.attention import numbered
from explorer.analysis.embeddings import CONTEXTS, MEASURES, Anchors, Scene, cosine
from explorer.analysis.logit_lens import states
from explorer.analysis.terminology import recording_norm_name, with_article
from explorer.analysis.word_classes import is_fit
from explorer.analysis.words import words as words_in
from explorer.figures.csv import Columns, stacked
from explorer.figures.formatting import fixed, percent, percent_texts
from explorer.figures.kinds import BarRow, Bars, Chart, Cloud, Figure, Frame, Matrix, Plane, Series
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstStream,
    TokenIfAny,
    expect_place,
    model_name,
    place_of,
    select_stream,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.notices import tell
from models.contract.recording import Recording, Stream
from models.example_texts import EXAMPLES, FEWEST_LETTERS, other_sentence
from models.runtime.caching import kept, loaded, memo
from models.runtime.run import Run

CONCEPT = "embeddings"
ANCHORS = "fruit, tree, juice / mac, os, app"  # for a word of two senses, such as "apple"
LOST = 0.05  # a cosine above that of other words, up to which a word is not known again
UNMOVED = 0.95  # a cosine between two contexts above which a word has hardly moved
N_NEAR = 5  # words of the vocabulary, at each state
MOST_LETTERS = 100  # of the second text that stand in a sentence
N_LOOKED_AT = 24  # for as many that are fit to be shown


@dataclass(frozen=True, eq=False)
class WordPath:
    """One word in the texts of a scene: its token in the first, and in the second, None where it
    has none there; and the number of the selected state."""

    recordings: tuple[Recording, ...]
    stream: str
    scene: Scene
    token: int
    mate: int | None
    site: int

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The word's tokens as (text, token)."""
        return ((0, self.token), *(() if self.mate is None else ((1, self.mate),)))

    def label(self, text: int, token: int) -> str:
        """A token of a text."""
        group = self.scene.texts[text]
        return group.labels[group.places.index(token)]

    @property
    def word(self) -> str:
        """The word."""
        return self.label(0, self.token)

    @property
    def site_title(self) -> str:
        """The selected state."""
        return self.scene.titles[self.site]

    @property
    def caption(self) -> tuple[str, ...]:
        """The stream, and the second text."""
        words, others = sentences(CONCEPT, "shared"), self.recordings[1:]
        lines = [words("second", text=spec.read_text(each)) for each in others]
        if len(self.recordings[0].streams) > 1:
            lines.insert(0, words("stream", stream=self.stream))
        return tuple(lines)


# ---- what a reader chooses -----------------------------------------------------------------------


def _stream(run: Run, chosen: Mapping[str, Any]) -> Stream:
    recording = run.recording()
    return recording.stream(chosen.get("stream") or recording.streams[0].name)


def reads_source(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True for the stream that reads the text."""
    return _stream(run, chosen) is run.recording().streams[0]


def _has_sums(run: Run, chosen: Mapping[str, Any]) -> bool:
    return residual.norm_place(_stream(run, chosen)) == "post"


def _sites(run: Run, chosen: Mapping[str, Any]) -> tuple[str, ...]:
    is_with_sums = bool(chosen.get("sums")) and _has_sums(run, chosen)
    return states(_stream(run, chosen), is_with_sums)


def _stages(run: Run, chosen: Mapping[str, Any]) -> range:
    return range(1, len(_sites(run, chosen)) + 1)


def _is_of_two(run: Run, chosen: Mapping[str, Any]) -> bool:
    return bool(chosen.get("texts", "Two") == "Two")


def _second(run: Run, chosen: Mapping[str, Any]) -> str:
    """The second text, "" where there is none, as beside a recording from a file."""
    if run.loaded.recorded is not None or not _is_of_two(run, chosen):
        return ""
    typed = str(chosen.get("second", ""))
    return typed if typed.strip() else own_second(run, chosen)


def own_second(run: Run, chosen: Mapping[str, Any]) -> str:
    """A sentence that has the selected word in another context, "" where there is none."""
    stream, token, recording = _stream(run, chosen), chosen.get("token"), run.recording()
    if run.loaded.recorded is not None or not reads_source(run, chosen):
        return ""
    if token is None:
        if (opened := _alone(run, chosen)) is not None:
            return opened.alone
        found = opening.contrasted(recording, stream)
        if found is None or found.alone:  # a sentence with another word would say nothing of it
            return ""
        token = found.token
    start, end = stream.spans[token]
    word = recording.text[max(0, start) : max(0, end)].strip()
    if not word:
        return ""
    read = words_in(stream, recording.text)
    whole = [label for label, size in zip(read.labels, read.sizes) if size == 1]
    other = other_sentence(recording.text, word, EXAMPLES.values(), whole)
    if not other:
        return ""
    there = Run(run.model, other, run.edits).recording().streams[0]
    return other if embeddings.matching_token(stream, token, there) is not None else ""


def _alone(run: Run, chosen: Mapping[str, Any]) -> opening.Contrasted | None:
    """The word that is compared with itself alone until a reader chooses a word or a second text;
    None where there is none, or where the model reads it alone as other tokens."""
    is_chosen = chosen.get("token") is not None or str(chosen.get("second", "")).strip()
    is_source = run.loaded.recorded is None and reads_source(run, chosen)
    if is_chosen or not is_source or not _is_of_two(run, chosen):
        return None
    stream = _stream(run, chosen)
    opened = opening.contrasted(run.recording(), stream)
    if opened is None or len(opened.alone) < FEWEST_LETTERS:
        return None
    alone = Run(run.model, opened.alone, run.edits).recording().streams[0]
    return opened if embeddings.matching_token(stream, opened.token, alone) is not None else None


def _other(run: Run, chosen: Mapping[str, Any]) -> Stream | None:
    """The stream of the second text, None where there is none."""
    second = _second(run, chosen)
    if not second:
        return None
    return Run(run.model, second, run.edits).recording().stream(_stream(run, chosen).name)


def shown_token(run: Run, chosen: Mapping[str, Any]) -> int:
    """The token on show; where none is chosen, the word that is compared with itself alone, or the
    longest that both texts have."""
    token, stream = chosen.get("token"), _stream(run, chosen)
    if token is not None:
        return int(token)
    if (opened := _alone(run, chosen)) is not None:
        return opened.token
    other = _other(run, chosen)
    found = opening.contrasted(run.recording(), stream)
    if found is not None and not str(chosen.get("second", "")).strip():
        return found.token
    return opening.shared_word(stream, other)


def _mate(run: Run, chosen: Mapping[str, Any]) -> int | None:
    """The same word in the second text, None where it is not there."""
    other = _other(run, chosen)
    if other is None:
        return None
    return embeddings.matching_token(_stream(run, chosen), shown_token(run, chosen), other)


def _mates(run: Run, chosen: Mapping[str, Any]) -> dict[int | None, str]:
    other = _other(run, chosen)
    if other is None:
        return {}
    none: dict[int | None, str] = {} if _mate(run, chosen) is not None else {None: "none"}
    return none | dict(enumerate(numbered(other.tokens)))


SHARED = sentences(CONCEPT, "shared")
Texts = Annotated[
    str,
    Choice(
        {"Two": "Two contexts", "One": "One text"},
        "Texts",
        name="contexts",
        clears=("mate",),
        menu=True,
    ),
]
Second = Annotated[
    str,
    Choice(
        label="The same word in another context",
        suits=own_second,
        when=_is_of_two,
        clears=("mate",),
        help=SHARED("second_help"),
    ),
]
Mate = Annotated[int | None, Choice(_mates, "Word in text 2", of="text", suits=_mate)]
Stage = Annotated[int | None, Choice(_stages, of="model", help=SHARED("stage"))]
Sums = Annotated[
    bool, Choice(label="Sums before each norm", when=_has_sums, clears=("stage",), menu=True)
]


def select_word(
    run: Run,
    token: int | None = None,
    texts: str = "Two",
    second: str = "",
    mate: int | None = None,
    stage: int | None = None,
    stream: str = "",
    specials: bool = False,
    unit_length: bool = False,
    sums: bool = False,
    groups: tuple[tuple[str, ...], ...] = (),
) -> WordPath:
    """The word of `contexts` in its texts, with anchor words where there are groups of them."""
    selection = select_stream(run, token or 0, stream)
    if second and texts == "One":
        raise ValueError(SHARED("one_text"))
    token = None if token is None else selection.token
    chosen = {"token": token, "texts": texts, "second": second, "stream": selection.stream.name}
    second = _second(run, chosen)
    recordings = [selection.recording]
    if second:
        recordings.append(Run(run.model, second, run.edits).recording())
    streams = [each.stream(selection.stream.name) for each in recordings]
    other = streams[1] if second else None
    if other is not None and mate is not None:
        mate = place_of("mate", mate, len(other.tokens))
    token = shown_token(run, chosen)
    specials |= bool(streams[0].special[token])
    specials |= bool(other is not None and mate is not None and other.special[mate])
    names = states(streams[0], sums)
    anchors = _anchors(run, selection.stream.name, names, groups) if groups else None
    scene = memo(
        selection.recording,
        ("scene", second, run.edits, stream, specials, names, unit_length, groups),
        lambda: embeddings.scene(
            streams,
            anchors,
            names,
            specials=specials,
            unit_length=unit_length,
            words_plane=bool(groups),
        ),
    )
    expect_place("stage", stage, len(names), first=1)
    if other is not None:
        places = scene.texts[1].places
        if mate is not None and mate not in places:
            raise ValueError(SHARED("no_mate", mate=mate, last=places[-1]))
        if mate is None:
            mate = embeddings.matching_token(streams[0], token, other)
            mate = mate if mate in places else None
    at = len(names) - 1 if stage is None else stage - 1
    return WordPath(
        tuple(recordings), selection.stream.name, scene, token, mate if second else None, at
    )


def _anchors(
    run: Run, stream: str, sites: tuple[str, ...], groups: tuple[tuple[str, ...], ...]
) -> Anchors:
    """The vectors of two groups of anchor words. Raises ValueError for other than two groups, and
    for a stream that does not read the source."""
    words = sentences(CONCEPT, "anchors")
    recording = run.recording()
    if len(groups) != 2:
        raise ValueError(words("two"))
    if stream != recording.streams[0].name:
        raise ValueError(words("source"))

    def anchors() -> Anchors:
        read = [
            Run(run.model, embeddings.frame_word(word)).recording()
            for group in groups
            for word in group
        ]
        return embeddings.anchors_of(groups, read, stream, sites)

    return memo(recording, ("anchors", stream, sites, groups), anchors)


# ---- one word, layer by layer --------------------------------------------------------------------


def _word_groups(words: str) -> tuple[tuple[str, ...], ...]:
    """Two groups of anchors; a caller is told of what is left out of them."""
    groups = embeddings.groups(words)
    if groups != embeddings.groups(words, is_cut=False):
        tell(
            f"two groups of words are read, the first {embeddings.MOST_WORDS} of each and "
            f"{embeddings.LONGEST_WORD} letters of a word"
        )
    return groups


@spec.panel
def contexts(
    run: Run,
    token: TokenIfAny = OPENS,
    texts: Texts = "Two",
    second: Second = "",
    mate: Mate = None,
    stage: Stage = None,
    stream: FirstStream = OPENS,
    all_paths: Annotated[
        bool, Choice(label="Paths of all words", name="trails", menu=True)
    ] = False,
    close_up: Annotated[
        bool, Choice(label="Close up of the selected word", name="frame", menu=True)
    ] = False,
    specials: Annotated[bool, Choice(label="Special tokens", menu=True)] = False,
    unit_length: Annotated[
        bool, Choice(label="Directions only (vectors of length 1)", name="length", menu=True)
    ] = False,
    sums: Sums = False,
    anchored: Annotated[
        bool,
        Choice(
            label="First axis of the plane through the anchor words",
            name="plane",
            when=reads_source,
            menu=True,
        ),
    ] = False,
    anchor_words: Annotated[str, Choice(name="anchors")] = ANCHORS,
) -> Panel:
    """A word's vector at every layer: how similar it stays to the same word in a second text, or to
    its embedding, beside the paths of all words in one plane.

    token: the longest word that both texts have where None. texts: "Two" or "One". second: the
    second text, a sentence with the same word where "". mate: its token, the first that is the same
    word where None. stage: the selected state, counted from 1, the last one where None. sums: the
    sums before LayerNorms are states too. anchored: the plane's first axis leads from one of the
    two groups of anchor words to the other. Raises ValueError for what is not there.
    """
    groups = _word_groups(anchor_words) if anchored else ()
    if anchored and len(groups) != 2:
        raise ValueError(sentences(CONCEPT, "anchors")("two"))
    word = token, texts, second, mate, stage, stream
    on = select_word(run, *word, specials, unit_length, sums, groups)
    is_two = len(on.recordings) > 1
    words = sentences(CONCEPT, "contexts")
    lines, values = _similarities(on)
    caption = words("caption", names=", ".join(on.scene.basis.names[:2]), fitted=_fitted(on))
    lengths = (words("length"),) if unit_length else ()
    frame = embeddings.frame_word("…")
    listed = " / ".join(", ".join(group) for group in groups)
    anchor_lines = (words("anchors", groups=listed, frame=frame),) if groups else ()
    columns = dict(zip(words.lines("columns"), (list(on.scene.titles), values[0])))
    if len(lines) > 1:
        columns[words("others")] = values[1]
    is_matched = on.mate is not None
    return Panel(
        title=words(_title_of(on, is_two), word=on.word),
        finding=" ".join((_finding(on, values, is_two), *_unread(on))),
        figures=(
            Chart(
                title=words("chart_two" if is_matched else "chart_one", word=on.word),
                note=words("up_and_down") if len(lines) > 1 else "",
                series=tuple(
                    Series(name, np.arange(len(row), dtype=float), row, main=at == 0)
                    for at, (name, row) in enumerate(zip(lines, values))
                ),
                ticks=tuple((float(at), each) for at, each in enumerate(on.scene.titles)),
                guides=((float(on.site), ""),),
                y_range=(min(0.0, float(np.nanmin(values))), 1.0),
                follows="stage",
            ),
            _plane(on, all_paths, close_up),
        ),
        table={**columns, **_coordinates(on)},
        details=_details(on, run),
        caption=(caption, *lengths, *anchor_lines, *on.caption),
        file=f"paths-{on.token}",
    )


def _unread(on: WordPath) -> tuple[str, ...]:
    """That the model does not read the second text to its end."""
    return tuple(
        SHARED(
            "second_too_long",
            n=each.dropped + each.model.n_positions,
            model=model_name(each),
            most=each.model.n_positions,
            dropped=each.dropped,
        )
        for each in on.recordings[1:]
        if each.dropped
    )


def _similarities(on: WordPath) -> tuple[tuple[str, ...], np.ndarray]:
    """The curves (line, site): the word's cosine to itself in the other text, or to its embedding,
    and the mean of other words beside it, where there are some."""
    words, scene = sentences(CONCEPT, "contexts"), on.scene
    if on.mate is not None:
        other = on.label(1, on.mate)
        name = words("word", word=on.word)
        if other.casefold() != on.word.casefold():
            name = words("words", word=on.word, other=other)
        lines = embeddings.curves(scene, None, (on.token, on.mate), CONTEXTS)
        return (name, words("others"))[: len(lines.lines)], lines.values
    raw = scene.texts[0].raw
    all_words = cosine(raw, raw[:1])
    at = scene.texts[0].places.index(on.token)
    rest = np.delete(all_words, at, axis=1)
    name = words("word", word=on.word)
    if not rest.shape[1]:
        return (name,), all_words[:, at][None]
    return (name, words("others")), np.stack((all_words[:, at], rest.mean(1)))


def _title_of(on: WordPath, is_two: bool) -> str:
    """The name of the title."""
    return "title_one" if not is_two else "title_alone" if _is_alone(on) else "title_two"


def _is_alone(on: WordPath) -> bool:
    """True where the second text is the word by itself."""
    return on.recordings[1].text.casefold() == on.word.strip().casefold()


def _finding(on: WordPath, values: np.ndarray, is_two: bool) -> str:
    words = sentences(CONCEPT, "contexts")
    cosines = [fixed(round(float(each), 2)) for each in (values[0, 0], *values[:, -1])]
    start, end = cosines[:2]
    beside = {"baseline": cosines[2]} if len(values) > 1 else {}
    slots = {"word": on.word, "start": start, "end": end}
    if is_two and on.mate is None:
        return words("missing", **slots)
    if is_two and _is_alone(on):
        scale = words("scale", end=end) + (words("scale_others", **beside) if beside else "")
        moved = "by_itself" if values[0, -1] <= UNMOVED else "by_itself_still"
        low = float(values[1, -1]) if beside else 0.0
        if beside and values[0, -1] <= low + LOST:
            moved = "by_itself_lost"
        how = min(2, int(3 * max(0.0, float(values[0, -1]) - low) / (1 - low)))
        return f"{words(moved, how=words.lines('how')[how], **slots)}{scale}."
    if not is_two:
        more = words("alone_baseline", **beside) if beside else ""
        return words("alone", **slots) + more
    is_one = cosines[0] == fixed(1)  # at the embedding
    name = "still" if values[0, -1] > UNMOVED else "changes" if is_one else "changes_other"
    text = spec.read_text(on.recordings[1])
    text = text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
    more = words("baseline", **beside) if beside else ""
    return words(name, **slots) + words("context", text=text) + more


def _fitted(on: WordPath) -> str:
    """The layers whose vectors the plane is fitted on."""
    return sentences(CONCEPT, "contexts")("last" if on.scene.of_last else "all")


def _plane(on: WordPath, all_paths: bool, close_up: bool) -> Plane:
    """The paths of all tokens, and of anchor words, in the scene's plane. all_paths: with the path
    of every word. close_up: the part around the selected word."""
    words, scene = sentences(CONCEPT, "contexts"), on.scene
    selected, clouds = dict(on.places), []
    is_two = len(scene.texts) > 1
    is_alone = is_two and on.mate is not None and _is_alone(on)
    for group in scene.groups:
        chosen = selected.get(group.kind) if group.kind < 2 else None
        keys: tuple[str, ...] = ()
        if group.kind < 2:
            form = "mate={}" if group.kind else "token={}&mate="
            keys = tuple(form.format(each) for each in group.places)
        clouds.append(
            Cloud(
                words(("here", "by_itself_name")[group.kind])
                if is_alone and group.kind < 2
                else group.name
                if is_two or group.kind > 1
                else sentences(CONCEPT, "shared")("text"),
                group.labels,
                scene.basis.project(group.vectors)[..., :2].swapaxes(0, 1),
                1 - scene.basis.error(group.vectors).T,
                -1 if chosen is None else group.places.index(chosen),
                keys,
            )
        )
    frames = []
    for at, title in enumerate(scene.titles):
        share = 1 - embeddings.mean_error(scene, 2, at)
        d = len(scene.basis.centre)
        note = words("frame", share=percent(share), fitted=_fitted(on), d=d)
        frames.append(Frame(title, key=str(at + 1), note=note))
    first, second = (percent(float(each)) for each in scene.basis.explained[:2])
    name, other = scene.basis.names[:2]
    is_anchored = any(group.kind > 1 for group in scene.groups) and not scene.fallback
    ends = name.rpartition(" → ")[2] if is_anchored else name
    return Plane(
        title=words("plane"),
        note=words("fallback") if scene.fallback else "",
        select=("address",),
        clouds=tuple(clouds),
        frames=tuple(frames),
        current=on.site,
        choice="stage",
        x_title=words("anchor_axis" if is_anchored else "axis", axis=ends, share=first),
        y_title=words("axis", axis=other, share=second),
        trails=all_paths,
        close=close_up,
    )


def _coordinates(on: WordPath) -> Columns:
    """The word's path in numbers, in the second text too."""
    tables = []
    for text, token in on.places:
        path = embeddings.path_table(on.scene.titles, on.scene.path(text, token), on.scene.basis)
        name = on.scene.texts[text].name
        tables.append(
            {f"{column}, {name}": cells for column, cells in path.items() if column != "site"}
        )
    return {name: cells for each in tables for name, cells in each.items()}


def _details(on: WordPath, run: Run) -> tuple[str, ...]:
    """Sentences on the vectors' path, the plane, and its error, with this text's numbers."""
    words, scene = sentences(CONCEPT, "contexts"), on.scene
    stream = on.recordings[0].stream(on.stream)
    built = embeddings.stream_structure(stream)
    norm = recording_norm_name(on.recordings[0], run.loaded.capabilities.rms)
    d = len(scene.basis.centre)
    if built.layers:
        step = words("layers")
    else:
        name = residual.norms_stand(stream, run.loaded.capabilities.norm) or "plain"
        step = words(
            name + ("" if built.adds else "_replaces"), norm=norm, a_norm=with_article(norm)
        )
    begins = run.loaded.word_vector().replace("√d", f"√{d}")
    merged = built.positions and "pos.wrote" not in stream.sites
    added = "merged" if merged else "positions" if built.positions else "no_positions"
    positions = words(added)
    normed = words("normed", norm=with_article(norm)) if built.normed else ""
    way = embeddings.path_summary(scene.path(0, on.token))
    row = embeddings.path_table(scene.titles, scene.path(0, on.token), scene.basis)
    x, y, error = (float(row[name][on.site]) for name in ("x", "y", "error in 2-D"))
    one, other, both = percent_texts(*map(float, scene.basis.explained[:2]))
    slots = {"word": on.word, "site": on.site_title}
    return (
        words("path", begins=begins, positions=positions, normed=normed, step=step),
        words(
            "lengths",
            word=on.word,
            n=len(scene.sites) - 1,
            length=fixed(way.length),
            longest=fixed(way.longest),
            site=scene.titles[way.site],
        ),
        words("plane_made", one=one, other=other, both=both, fitted=_fitted(on)),
        words("coordinates"),
        words("error", error=f"{error:.1%}", x=fixed(x, 3), y=fixed(y, 3), **slots),
        words("dots", d=d),
    )


# ---- nearest words -------------------------------------------------------------------------------


@spec.panel
def neighbours(
    run: Run,
    token: TokenIfAny = OPENS,
    texts: Texts = "Two",
    second: Second = "",
    mate: Mate = None,
    stage: Stage = None,
    stream: FirstStream = OPENS,
    sums: Sums = False,
) -> Panel:
    """The words of the vocabulary that a word's vectors are nearest to at every layer. Arguments
    and ValueError as for `contexts`."""
    on = select_word(run, token, texts, second, mate, stage, stream, sums=sums)
    words = sentences(CONCEPT, "neighbours")
    nearest_words = [_nearest(on, text, place) for text, place in on.places]
    tops = [
        (names[on.site][0], fixed(float(cosines[on.site, 0]))) for names, cosines in nearest_words
    ]
    slots = {"site": on.site_title, "word": on.word}
    if len(tops) > 1:
        (nearest, near), (other, other_near) = tops
        finding = words(
            "finding_two",
            nearest=nearest,
            cosine=near,
            other=other,
            other_cosine=other_near,
            **slots,
        )
    else:
        finding = words("finding", nearest=tops[0][0], cosine=tops[0][1], **slots)
    low = min(0.0, *(float(cosines.min()) for _, cosines in nearest_words))
    lines = [words("measure"), words("low")]
    if on.stream == "decoder":
        lines.append(words("decoder"))
    tables = [
        (on.scene.texts[text].name, embeddings.nearest_word_table(on.scene.titles, *each))
        for (text, _), each in zip(on.places, nearest_words)
    ]
    return Panel(
        title=words("title", word=on.word),
        finding=finding,
        figures=tuple(
            _neighbour_matrix(on, at, each, low) for at, each in zip(on.places, nearest_words)
        ),
        table=stacked(tables, "of"),
        details=tuple(lines),
        caption=(words("caption"), *on.caption),
        file=f"nearest-{on.token}",
    )


@kept
def _nearest_ids(recording: Recording, stream: str, token: int) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the words nearest to a token at each site (site, rank), and their cosines: of
    those that are fit to be shown, and the token itself."""
    model, of = loaded(recording), recording.stream(stream)
    ids, cosines = model.nearest(of.resid[:, token], N_LOOKED_AT)
    own, known = int(of.ids[token]), dict[int, bool]()
    for row in ids:
        known |= dict(zip(row.tolist(), map(is_fit, model.labels(row.tolist()))))
    unfit = np.array([[each != own and not known[each] for each in row] for row in ids.tolist()])
    first = np.argsort(unfit, axis=1, kind="stable")[:, :N_NEAR]
    return np.take_along_axis(ids, first, 1), np.take_along_axis(cosines, first, 1)


def _nearest(on: WordPath, text: int, token: int) -> tuple[list[list[str]], np.ndarray]:
    """The nearest words (site, rank) to a token of a text, and their cosines."""
    recording = on.recordings[text]
    ids, cosines = _nearest_ids(recording, on.stream, token)
    sites = recording.stream(on.stream).sites
    at = [sites.index(site) for site in on.scene.sites]
    return [loaded(recording).labels(ids[one]) for one in at], cosines[at]


def _neighbour_matrix(
    on: WordPath,
    place: tuple[int, int],
    nearest_words: tuple[list[list[str]], np.ndarray],
    low: float,
) -> Figure:
    """Layers by ranks, with a word in each cell."""
    words, (names, cosines) = sentences(CONCEPT, "neighbours"), nearest_words
    ranks = [words("nearest"), *(f"{rank}." for rank in range(2, cosines.shape[1] + 1))]
    return Matrix(
        title=words("table", word=on.label(*place), text=on.scene.texts[place[0]].name)
        if len(on.places) > 1
        else "",
        select=("stage",),
        rows=on.scene.titles,
        columns=tuple(ranks),
        values=cosines,
        low=low,
        marks=((on.site, 0, ""),),
        words=tuple(name for row in names for name in row),
        bold=np.zeros(cosines.shape),
        keys=tuple(str(at + 1) for at in range(len(on.scene.sites))),
    )


# ---- anchor words --------------------------------------------------------------------------------


@spec.panel
def anchors(
    run: Run,
    token: TokenIfAny = OPENS,
    texts: Texts = "Two",
    second: Second = "",
    mate: Mate = None,
    anchor_words: Annotated[
        str,
        Choice(
            label="Anchor words, two groups: a, b / c, d",
            name="anchors",
            help=sentences(CONCEPT, "anchors")(
                "help", frame=embeddings.frame_word("…"), most=embeddings.MOST_WORDS
            ),
        ),
    ] = ANCHORS,
    measure: Annotated[str, Choice(MEASURES, "Measure", name="curve")] = "Cosine",
    stream: FirstStream = OPENS,
) -> Panel:
    """Similarity of a word to two groups of anchor words at every layer, in one text or in two,
    against all other ways to split these words.

    anchor_words: two groups, "a, b / c, d". measure: one of MEASURES. Other arguments and
    ValueError as for `contexts`.
    """
    words = sentences(CONCEPT, "anchors")
    groups = _word_groups(anchor_words)
    if len(groups) != 2:
        raise ValueError(words("two"))
    on = select_word(run, token, texts, second, mate, None, stream, groups=groups)
    if measure == CONTEXTS and on.mate is None:
        raise ValueError(words("no_second"))
    of = _anchors(run, on.stream, on.scene.sites, groups)
    lines = embeddings.curves(on.scene, of, (on.token, on.mate), measure)
    names = tuple(", ".join(group) for group in groups)
    finding, details = _verdict(on, of, names)
    titles = on.scene.titles
    return Panel(
        title=words("title", word=on.word),
        finding=finding,
        figures=(
            Chart(
                title=words(measure),
                series=tuple(
                    Series(name, np.arange(len(titles), dtype=float), row, main=at == 0)
                    for at, ((name, *_), row) in enumerate(zip(lines.lines, lines.values))
                ),
                ticks=tuple((float(at), each) for at, each in enumerate(titles)),
            ),
            _anchor_bars(on, of, names),
        ),
        table=embeddings.curve_table(titles, lines),
        details=details,
        caption=(words("caption", measure=measure, groups=" / ".join(names)), *on.caption),
        file=f"anchors-{on.token}",
    )


def _anchor_bars(on: WordPath, of: Anchors, names: Sequence[str]) -> Bars:
    """The cosine of the word in each text to each group, at the last layer."""
    words = sentences(CONCEPT, "anchors")
    paths = [on.scene.path(text, place, raw=True) for text, place in on.places]
    raw = [group.raw for group in on.scene.texts]
    near = embeddings.anchor_similarities(paths, of, raw, "Cosine")[..., -1]
    rows = []
    for (text, _), values in zip(on.places, near):
        of_text = on.scene.texts[text].name
        for name, value in zip(names, values):
            label = words("curve", text=of_text, group=name) if len(near) > 1 else name
            rows.append(BarRow(label, (float(value),), (fixed(float(value), 3),)))
    return Bars(
        title=words("bars", site=on.scene.titles[-1]), columns=(words("cosine"),), rows=tuple(rows)
    )


def _verdict(on: WordPath, of: Anchors, names: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Sentence on the word's similarity to the two groups, and the sentences behind it."""
    words = sentences(CONCEPT, "anchors")
    frame = embeddings.frame_word("…")
    method = [words("method", frame=frame), words("formula")]
    if of.in_pieces:
        method.append(words("pieces", words=", ".join(of.in_pieces)))
    raw = [group.raw for group in on.scene.texts]
    paths = [on.scene.path(text, place, raw=True) for text, place in on.places]
    if on.mate is None:
        near = embeddings.anchor_similarities(paths, of, raw, "Cosine")[0, :, -1]
        first = int(near.argmax())
        slots = {"towards": names[first], "away": names[1 - first]}
        slots |= {"near": fixed(float(near[first]), 3), "far": fixed(float(near[1 - first]), 3)}
        return words("alone", word=on.word, **slots), tuple(method)
    shift = embeddings.context_shift(paths, of, raw)
    towards, away = names if shift.gap > 0 else names[::-1]
    finding = words(shift.verdict, word=on.word, towards=towards, away=away)
    does = words("agree" if shift.centred_gap * shift.gap > 0 else "disagree")
    gap = fixed(abs(shift.gap), 3)
    return finding, (
        words("lean", gap=gap),
        *splits(shift.splits_as_far, shift.n_splits, len(of.group)),
        words("centred", does=does, centred=fixed(abs(shift.centred_gap), 3), gap=gap),
        *method,
        words("control"),
    )


def splits(as_far: int, n_splits: int, n_words: int) -> tuple[str, ...]:
    """Sentences on the number of ways to split the anchor words into two groups that set the texts
    as far apart; the groups as given are one of the ways."""
    words = sentences(CONCEPT, "anchors")
    if n_splits < 2:
        return (words("splits_none", n=n_words),)
    name = "none_gives" if as_far < 2 else "one_gives" if as_far == 2 else "some_give"
    count = words(name, n=as_far - 1)
    return (
        words("splits", others=n_splits - 1, n=n_words, as_far=count),
        words("p_value", splits=n_splits),
    )
