"""What of a page leaves it as a file: which view, of which recording, under which choices, by names
alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from explorer import export
from explorer.frame import onscreen
from explorer.memory import address, models, passes
from models.recording import Recording
from models.written_edits import from_line, to_line

# The view that a page's file shows. A page that has none of its own is taken as all heads.
VIEW_OF = {
    "anatomy": "anatomy",
    "positions": "positions",
    "residual": "residual",
    "embeddings": "paths",
    "summaries": "summary",
    "lookup": "lookup",
    "predictions": "lens",
    "translation": "alignment",
    "switches": "comparison",
    "compare": "comparison",
}
# The pages of the text alone, whatever was typed for a decoder to read.
OF_THE_TEXT = ("embeddings", "positions")
# The choices of a page that its view takes too. Which pair a comparison opens is told apart below.
CHOICES_OF = export.CHOICES | {"comparison": ("other_of", "other_to", "other_tone")}


@dataclass(frozen=True)
class Source:
    """What makes a recording: a model's name, a text, edits in one line, and what a decoder reads,
    typed or as ids, None for its own words."""

    model: str
    text: str
    edits: str = ""
    target: str | tuple[int, ...] | None = None

    def recording(self) -> Recording:
        """The recording, from the shelf."""
        return passes.record(self.model, self.text, from_line(self.edits), self.target)


@dataclass(frozen=True)
class Taken:
    """A view of a recording, and of another one beside it in some views, under choices (name,
    value)."""

    view: str
    source: Source
    other: Source | None = None
    choices: tuple[tuple[str, str], ...] = ()

    def page(self, link: str) -> str:
        """The view as one HTML file that leads back to `link`."""
        source, other = self.source, self.other
        return export.page(
            source.recording(),
            self.view,
            model=models.handle(source.model),
            other=other.recording() if other else None,
            target=source.target if isinstance(source.target, str) else None,
            link=link,
            **dict(self.choices),
        )


def taken(page: str) -> Taken:
    """What of a page leaves it, as the reader has it on screen; all heads where the page's own view
    cannot be had of this model."""
    state = st.session_state
    typed = onscreen.typed_target(state.model)
    plain = source = Source(state.model, state.text, "", typed)
    view, other = VIEW_OF.get(page, "heads"), None
    if page == "switches":
        other = Source(source.model, source.text, state.edits, source.target)
        if not state.edits:
            view = "heads"
    elif page == "compare":
        # The sides as the page laid them beside each other; none where it could not.
        if shown := state.get("sides shown"):
            source, other = (_source(side, typed) for side in shown)
    elif page in OF_THE_TEXT:
        source = Source(source.model, source.text)
        if page == "embeddings" and (second := state.get("second shown")):
            other = Source(source.model, second)
    elif page == "training" and state.train_view == "Checkpoints":
        if one := state.get("checkpoint shown"):
            plain = source = Source(one.model, one.text, "", one.target)
    elif page == "anatomy" and state.edits:
        source = Source(source.model, source.text, state.edits, source.target)
    elif page == "predictions":
        source = Source(source.model, source.text, state.get("hidden shown", ""), source.target)
    if not _fits(view, source, other) or (view == "summary" and state.sum_what not in export.SUMS):
        view, source = "heads", plain
    if view not in export.OF_TWO:
        other = None
    chosen = _chosen(view)
    if page == "training" and state.train_view == "Checkpoints" and state.train_of:
        chosen = tuple((dict(chosen) | {"attention": state.train_of}).items())
    if view == "comparison":
        chosen = _opened() if page == "compare" else _silenced()
    return Taken(view, source, other, chosen)


def back(page: str) -> str:
    """The address of this Headlight, without the page's own name."""
    where = urlsplit(st.context.url or "")
    path = where.path.removesuffix("/").removesuffix(page)
    return f"{where.scheme}://{where.netloc}{path}" if where.scheme else ""


def _chosen(view: str) -> tuple[tuple[str, str], ...]:
    wanted = address.wanted()
    if wanted.get("view") not in export.DRAWN:  # a table, or another library's picture
        wanted.pop("view", None)
    return tuple((name, wanted[name]) for name in CHOICES_OF[view] if wanted.get(name))


def _opened() -> tuple[tuple[str, str], ...]:
    """What Compare shows: its choices, and the pair of heads that is open. Where its heads are
    looked at, that of B is found from that of A, unless it was chosen."""
    state = st.session_state
    pair = state.get("pair shown", "").split(".")
    found = state.other_view == "Heads" and state.other_pair.count(".") < 3
    shown = ".".join(pair[:2] if found else pair)
    return _chosen("comparison") + ((("other_pair", shown),) if shown else ())


def _silenced() -> tuple[tuple[str, str], ...]:
    """What Switches shows of a comparison: an attention, and the head that is open."""
    state = st.session_state
    named = (("attention", state.attention),) if state.attention else ()
    head = (str(state.layer), str(state.head))
    return named + ((("other_pair", ".".join(head)),) if all(head) else ())


def _source(side: Any, typed: str | None) -> Source:
    """A side of Compare. A target that was typed stays as it was typed."""
    target = side.target if typed is None or side.target is None else typed
    return Source(side.model, side.text, to_line(side.edits), target)


def _fits(view: str, source: Source, other: Source | None) -> bool:
    """True where the view can be had of this model and text."""
    offers = models.offers(source.model)
    try:
        recording = source.recording()
        beside = other.recording() if other and view in export.OF_TWO else None
    except ValueError:  # edits that this model or text cannot follow
        return False
    if view in ("anatomy", "lookup"):
        return recording.attention[0].opens
    return {
        "lens": bool(offers.logits),
        "alignment": len(recording.streams) > 1,
        "comparison": beside is not None,
        "positions": "pos.wrote" in recording.streams[0].sites,
        "residual": bool(recording.streams[0].writes()),
    }.get(view, True)
