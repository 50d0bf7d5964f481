"""The numbers behind every picture, as tables and as files, and what happens in words."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from explorer.analysis import embeddings
from explorer.analysis.csv import Columns, stacked
from explorer.analysis.terminology import recording_norm_name
from explorer.layout import export_menu
from explorer.layout.output import data_table, offer_csv, offer_recording
from explorer.state import models
from explorer.text import embeddings as embeddings_text
from explorer.views.embeddings.page_state import N_NEAR, EmbeddingPlot, EmbeddingState, drawn


def note(on: EmbeddingState) -> None:
    """What happens, in plain words, with the formulas and this sentence's numbers."""
    st.subheader("How it is computed", anchor=False)
    begins, built = models.word_vector(on.first.model.name), embeddings.stream_structure(on.stream)
    norm = recording_norm_name(on.first, models.capabilities(on.first.model.name).rms)
    st.markdown(embeddings_text.note(on.scene, built, begins, norm, on.token, on.stage))
    if on.anchors is not None:
        st.markdown(embeddings_text.of_anchors())
    st.caption(embeddings_text.of_nearest(on.asked.stream))


def files(on: EmbeddingState) -> None:
    """The numbers as files. The menu keeps names and not arrays, and makes all again from the
    shelf, outside the visit."""
    asked, followed, measure = on.asked, on.followed, on.measure
    numbers_of(on)
    places = on.token, on.mate
    offer_csv(
        lambda: embeddings.all_paths(drawn(asked).scene),
        on.caption,
        on.file("paths"),
        "Paths as CSV",
    )
    if on.curves.lines:
        offer_csv(
            lambda: _curves(drawn(asked), places, measure),
            (f"{measure}: {embeddings.MEASURES[measure]}", *on.caption),
            on.file("curves"),
            "Curves as CSV",
        )
    offer_csv(
        lambda: _near(drawn(asked), followed),
        on.caption,
        on.file("nearest"),
        "Nearest words as CSV",
    )
    offer_recording(asked.model, asked.text)


def numbers_of(on: EmbeddingState) -> None:
    """The lines of Python that give the tables, which know more than the file: anchors, planes
    through them, and sums."""
    asked, both = on.asked, len(on.recordings) > 1
    streams = [f"{each}.stream(name)" for each in ("recording", "other")[: 1 + both]]
    kept = (
        f"groups = {asked.words!r}",
        "words = [embeddings.frame_word(word) for group in groups for word in group]",
        "read = [model.record(word) for word in words]",
        "around = embeddings.anchors_of(groups, read, name, sites)",
    )
    how = (
        f"specials={asked.specials == 'Shown'}, unit_length={asked.length == 'Removed'}, "
        f"words_plane={asked.plane == 'Words'}"
    )
    export_menu.offer_more_code(
        (
            "csv",
            "embeddings",
            "logit_lens",
        ),
        f"name = {asked.stream!r}",
        f"sites = logit_lens.states(recording.stream(name), {asked.sums == 'Sums'})",
        *(kept if asked.words else ("around = None",)),
        f"streams = [{', '.join(streams)}]",
        f"scene = embeddings.scene(streams, around, sites, {how})",
        "paths = embeddings.all_paths(scene)",
        f"found = embeddings.curves(scene, around, {(on.token, on.mate)}, {on.measure!r})",
        "curves = embeddings.curve_table(scene.titles, found)",
        "",
        "def near(text, place):",
        "    stream = streams[text]",
        f"    asked = model.nearest(stream.resid[:, place], {N_NEAR})",
        "    at = [stream.sites.index(site) for site in scene.sites]",
        "    words = [model.labels(asked[0][each]) for each in at]",
        "    table = embeddings.nearest_word_table(scene.titles, words, asked[1][at])",
        "    return scene.texts[text].name, table",
        "",
        f'nearest = csv.stacked([near(*each) for each in {on.followed}], "of")',
    )


def tables(on: EmbeddingState) -> None:
    """The same on the page."""
    with st.expander("All numbers as a table"):
        kinds = ("Path", "Site", *(("Curves",) if on.curves.lines else ()), "Nearest words")
        kind = st.segmented_control(
            "Table",
            kinds,
            default="Path",
            key="embedding table",
            wrap=True,
            required=True,
            label_visibility="collapsed",
        )
        caption, columns = {
            "Path": _path,
            "Site": _site,
            "Curves": lambda on: (
                f"{on.measure}: {embeddings.MEASURES[on.measure]}",
                _curves(on, (on.token, on.mate), on.measure),
            ),
            "Nearest words": lambda on: (
                f"The {len(on.nearest(0, on.token)[0][0])} nearest words and their cosines.",
                _near(on, on.followed),
            ),
        }[kind](on)
        st.caption(caption)
        data_table(columns, caption)


def _path(on: EmbeddingState) -> tuple[str, Columns]:
    scene = on.scene
    found = [
        (
            scene.texts[at].name,
            embeddings.path_table(scene.titles, scene.path(at, place), scene.basis),
        )
        for at, place in on.followed
    ]
    return (
        "x, y and z are coordinates in the picture, and errors are shares. Norm and distance are "
        "in all dimensions."
    ), stacked(found, "of")


def _site(on: EmbeddingState) -> tuple[str, Columns]:
    return f"Every point at {on.scene.titles[on.stage]}.", embeddings.at_site(on.scene, on.stage)


def _curves(of: EmbeddingPlot, places: tuple[int, int | None], measure: str) -> Columns:
    found = embeddings.curves(of.scene, of.anchors, places, measure)
    return embeddings.curve_table(of.scene.titles, found)


def _near(of: EmbeddingPlot, followed: Sequence[tuple[int, int]]) -> Columns:
    found = [
        (
            of.scene.texts[at].name,
            embeddings.nearest_word_table(of.scene.titles, *of.nearest(at, place)),
        )
        for at, place in followed
    ]
    return stacked(found, "of")
