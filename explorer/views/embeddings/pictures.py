"""The paths in a plane or in space, the curves of the followed word, and its nearest words."""

from __future__ import annotations

import streamlit as st

from explorer.analysis import embeddings
from explorer.components import paths
from explorer.layout.controls import pick
from explorer.state import cache, url_state
from explorer.text.embeddings import in_pieces, leans
from explorer.text.markdown_escape import literal
from explorer.views.embeddings.page_state import EmbeddingState


def show(on: EmbeddingState) -> None:
    """The paths of all tokens."""
    if on.space == "3-D":
        _in_space(on)
        return
    what, scene = ("walk", on.asked.cause), on.scene

    def made() -> bytes:
        groups = [
            {"name": one.name, "kind": one.kind, "labels": one.labels, "places": one.places}
            for one in scene.groups
        ]
        named = paths.PictureName(cache.picture_name(on.first, *what), on.file("paths"), on.caption)
        basis = scene.basis
        return paths.walk(groups, scene.arrays(), scene.titles, basis.names, basis.explained, named)

    _mount(cache.cached_for(on.first, what, made, len), "walk")


def _in_space(on: EmbeddingState) -> None:
    """Three dimensions, to be turned by hand; imported only when wanted."""
    from explorer.figures.embeddings import paths as draw

    scene, stage = on.scene, on.stage
    basis, title = scene.basis, f"Paths of tokens, at {scene.titles[stage]}"
    shares = "  ·  ".join(
        f"{name}: {share:.1%}" for name, share in zip(basis.names, basis.explained)
    )
    st.markdown(
        f"**Explained variance {sum(basis.explained):.1%}**   {literal(shares)}   not shown "
        "in three dimensions at this layer: "
        f"{embeddings.mean_error(scene, 3, stage):.1%} on average"
    )
    st.session_state["site in space"] = stage
    st.select_slider(
        "Site",
        range(len(scene.sites)),
        key="site in space",
        format_func=scene.titles.__getitem__,
        on_change=_take_site,
    )
    figure = draw(
        [
            (one.name, one.kind, one.labels, basis.project(one.vectors[stage]))
            for one in scene.groups
        ],
        [
            (
                f"{_label(on, *each)} ({scene.texts[each[0]].name})",
                each[0],
                basis.project(scene.path(*each)),
            )
            for each in on.followed
        ],
        stage,
        scene.titles,
        basis.names,
        (title, *on.caption),
    )
    image = {"format": "png", "scale": 2, "filename": on.file("paths-3d")}
    st.plotly_chart(
        figure,
        key="in space",
        config={"displaylogo": False, "toImageButtonOptions": image},
        alt=f"{title}, in three dimensions; the tables below have the numbers",
    )


def _label(on: EmbeddingState, text: int, place: int) -> str:
    group = on.scene.texts[text]
    return group.labels[group.places.index(place)]


def beside(on: EmbeddingState) -> None:
    """The curves of the followed word, and which site and word are on screen."""
    word = literal(on.word)
    if on.anchors is not None:
        st.markdown(f"**Cosine similarity of “{word}” to the anchors, by layer**")
        measures = [
            one for one in embeddings.MEASURES if one != embeddings.CONTEXTS or on.mate is not None
        ]
        pick("Measure", measures, "curve", bare=True)
        lines = " Colours and marks: text. Solid: first group. Dashed: second group."
        if on.measure == embeddings.CONTEXTS:
            lines = ""
        pieces = in_pieces(on.anchors.in_pieces)
        st.caption(f"{embeddings.MEASURES[on.measure]}{lines}{pieces}")
    elif on.mate is not None:
        st.markdown(f"**Cosine similarity of the two vectors of “{word}”, by layer**")
        st.caption(embeddings.MEASURES[on.measure])
    about = f"{on.measure}: {embeddings.MEASURES[on.measure]}"
    place = paths.PathSelection(
        (on.scene.point(0, on.token), on.scene.point(1, on.mate)),
        on.stage,
        url_state.one_of("trails", ("Chosen", "All")),
        url_state.one_of("frame", ("All", "Close")),
        on.space == "3-D",
    )
    named = paths.PictureName(
        cache.picture_name(on.first, "around", *on.asked.cause, on.followed, on.measure, place),
        on.file(f"curves-{on.measure.lower()}"),
        (f"{on.measure} of {on.word}", about, *on.caption),
    )
    found = on.curves
    _mount(
        paths.around(place, found.lines, found.values, on.measure, on.scene.titles, named), "around"
    )
    if on.anchors is not None and on.mate is not None:
        st.markdown(leans(on.scene, on.anchors, on.token, on.mate))


def neighbours(on: EmbeddingState) -> None:
    """The words of the vocabulary that the followed word comes near to."""
    near = []
    for text, place in on.followed:
        found, cosines = on.nearest(text, place)
        rows = [list(zip(row, map(float, beside))) for row, beside in zip(found, cosines)]
        group = on.scene.texts[text]
        near.append(
            {"token": _label(on, text, place), "name": group.name, "kind": text, "rows": rows}
        )
    name = cache.picture_name(on.first, "near", *on.asked.cause, on.followed)
    _mount(paths.nearest(near, on.scene.titles, name), "near")


def _mount(data: bytes, key: str) -> None:
    paths.show(data, key, _take_pick, _take_stage, _take_switch)


def _take_pick() -> None:
    text, place = (int(each) for each in st.session_state.walk["pick"])
    if text == 0:
        st.session_state.token, st.session_state.mate = str(place), ""
    else:
        st.session_state.mate = str(place)


def _take_stage() -> None:
    st.session_state.stage = str(int(st.session_state.walk["stage"]) + 1)


def _take_site() -> None:
    st.session_state.stage = str(st.session_state["site in space"] + 1)


def _take_switch() -> None:
    name, value = (str(each) for each in st.session_state.walk["switch"])
    if name in ("trails", "frame"):
        st.session_state[name] = value
