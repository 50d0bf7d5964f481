"""Where a word travels, layer by layer: paths of tokens in one plane as a file."""

from __future__ import annotations

from explorer.analysis import embeddings
from explorer.analysis.caption import caption, read_text
from explorer.analysis.embeddings import CONTEXTS
from explorer.analysis.logit_lens import states
from explorer.components import paths as paths_components
from explorer.html_export.document_spec import FIRST, DocumentSpec, View
from explorer.html_export.request import ExportRequest
from models.recording import Recording

N_NEAR = 5
SETS = ("stage", "trails", "frame")


def paths(asked: ExportRequest, other: Recording | None = None) -> DocumentSpec:
    """Every token's path through the sites, of one text or of two. Choices: stream, token, stage
    (from 1), trails, frame, specials. Raises ValueError for texts that two models read."""
    first = asked.recording
    if other and other.model != first.model:
        raise ValueError(
            f"paths of {first.model.name} and {other.model.name} lie in two spaces; both texts "
            "must be read by one model"
        )
    stream = first.stream(asked.choices.get("stream") or first.streams[0].name)
    streams = [stream, *([other.stream(stream.name)] if other else [])]
    scene = embeddings.scene(
        streams,
        None,
        states(stream, sums=False),
        specials=asked.one_of("specials", ("Hidden", "Shown")) == "Shown",
        unit_length=asked.one_of("length", ("Kept", "Removed")) == "Removed",
        words_plane=False,
    )
    second = (f"Text 2: {read_text(other)}",) if other else ()
    about = caption(
        first,
        "The plane of the main directions of all shown vectors",
        *second,
        subject=f"stream {stream.name}",
    )
    places = scene.texts[0].places
    token = asked.whole("token", len(stream.tokens))
    if token not in places:
        token = embeddings.default_token(stream, streams[1] if other else None, places)
    last = len(scene.sites)
    groups = [
        {"name": one.name, "kind": one.kind, "labels": one.labels, "places": one.places}
        for one in scene.groups
    ]
    named = paths_components.PictureName("walk", f"headlight-{first.model.name}-paths", about)
    basis = scene.basis
    walk = paths_components.walk(
        groups, scene.arrays(), scene.titles, basis.names, basis.explained, named
    )
    shown = (asked, other, scene, stream.name)
    parts = [
        View("paths", {FIRST: walk}),
        View("paths", {str(at): _around(*shown, at, about) for at in places}, ("token",), SETS, 1),
    ]
    near = {str(at): _near(*shown, at) for at in places}
    parts.append(View("paths", near, ("token",), column=1))
    return DocumentSpec(
        "Where does a word travel, layer by layer?",
        about,
        parts,
        {
            "token": token,
            "stage": (asked.whole("stage", last + 1) or last) - 1,
            "trails": asked.one_of("trails", ("Chosen", "All")),
            "frame": asked.one_of("frame", ("All", "Close")),
        },
        f"headlight-{first.model.name}-paths",
        "embeddings",
        asked.address(token=token, second=other.text if other else ""),
    )


def _mate(
    asked: ExportRequest, other: Recording | None, scene: embeddings.Scene, stream: str, token: int
) -> int | None:
    if other is None:
        return None
    mate = embeddings.matching_token(asked.recording.stream(stream), token, other.stream(stream))
    return mate if mate in scene.texts[1].places else None


def _around(
    asked: ExportRequest,
    other: Recording | None,
    scene: embeddings.Scene,
    stream: str,
    token: int,
    about: tuple[str, ...],
) -> bytes:
    mate = _mate(asked, other, scene, stream, token)
    found = embeddings.curves(scene, None, (token, mate), CONTEXTS)
    points = scene.point(0, token), scene.point(1, mate)
    return paths_components.around(
        paths_components.PathSelection(points, 0, "Chosen", "All", False),
        found.lines,
        found.values,
        CONTEXTS,
        scene.titles,
        paths_components.PictureName(
            f"around {token}", f"headlight-{asked.recording.model.name}-paths", about
        ),
    )


def _near(
    asked: ExportRequest, other: Recording | None, scene: embeddings.Scene, stream: str, token: int
) -> bytes:
    """The words of the vocabulary that a token comes near to, at every site."""
    mate = _mate(asked, other, scene, stream, token)
    told = []
    for kind, (recording, place) in enumerate(((asked.recording, token), (other, mate))):
        if recording is None or place is None:
            continue
        of = recording.stream(stream)
        vectors = of.resid[[of.sites.index(site) for site in scene.sites], place]
        ids, cosines = asked.model.nearest(vectors, N_NEAR)
        rows = [list(zip(asked.labels(row), map(float, near))) for row, near in zip(ids, cosines)]
        told.append(
            {"token": of.tokens[place], "name": scene.texts[kind].name, "kind": kind, "rows": rows}
        )
    return paths_components.nearest(told, scene.titles, f"near {token}")
