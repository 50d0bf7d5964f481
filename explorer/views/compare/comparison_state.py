"""Both sides on common units of text, made once and handed down; and what a figure of them says
when it stands alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import streamlit as st

from explorer.analysis import alignment, comparison
from explorer.analysis.caption import read_text
from explorer.state import cache, models, url_state
from explorer.state.cache import Run
from explorer.text.markdown_escape import literal
from explorer.views.compare.run_selection import Side, forget_pair
from models.edits import describe
from models.recording import Attention, Recording

KINDS = {
    "self": "Self-attention",
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
Head = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Both:
    """Two sides, their recordings, and the attention of each that is looked at."""

    one: Side
    other: Side
    a: Recording
    b: Recording
    of_a: Attention
    of_b: Attention

    @property
    def sides(self) -> tuple[tuple[str, Recording], tuple[str, Recording]]:
        return ("A", self.a), ("B", self.b)

    @property
    def cause(self) -> tuple[str, ...]:
        """What a comparison depends on beside the recording of A."""
        return cache.picture_name(self.b), self.of_a.name, self.of_b.name

    def kept(
        self,
        what: Hashable,
        make: Callable[[], Any],
        weigh: Callable[[Any], int] | None = None,
    ) -> Any:
        """Something computed from both, kept under `what`."""
        return cache.cached_for(self.a, ("compared", what, *self.cause), make, weigh)

    def named(self, *what: Hashable) -> str:
        """The name of a picture of both."""
        return cache.picture_name(self.a, *what, *self.cause)

    @cached_property
    def units(self) -> tuple[alignment.Alignment, alignment.Alignment]:
        """The units of rows and of columns."""

        def made() -> tuple[alignment.Alignment, ...]:
            axes = (alignment.axes(self.a, self.of_a), alignment.axes(self.b, self.of_b))
            return tuple(alignment.align(one, other) for one, other in zip(*axes))

        return self.kept("units", made)

    @cached_property
    def found(self) -> comparison.PatternPair:
        """Both attentions on these units."""
        return comparison.align_patterns((self.a, self.of_a), (self.b, self.of_b), *self.units)

    @cached_property
    def paired(self) -> Any:
        """The distance of each head to the one in its place (layer, head), None where shapes
        differ."""
        if not self.found.same_shape:
            return None
        return self.kept("pairs", lambda: comparison.same_place_distances(self.found))

    @cached_property
    def distances(self) -> comparison.Distances:
        """Every head of A to every head of B."""
        with st.spinner("Laying every head beside every other …"):
            return self.kept("heads", lambda: comparison.distance_matrix(self.found))

    @cached_property
    def near(self) -> tuple[comparison.Nearest, ...]:
        """The nearest head of B for every head of A."""
        return self.kept("nearest", lambda: comparison.nearest(self.distances))

    @property
    def sources(self) -> tuple[Run, Run]:
        """Both sides by name."""
        return self.one.shown, self.other.shown

    @property
    def file(self) -> str:
        name = f"headlight-compare-{self.one.model}-{self.other.model}"
        return name.replace("/", "-").replace("@", "-at-")

    @property
    def titles(self) -> tuple[str, ...]:
        """Each side in a few words: its model, its edits, and the words that the other side's text
        has not."""
        own = alignment.unshared_words(self.a.text, self.b.text)
        return tuple(
            " · ".join(
                filter(
                    None,
                    (
                        letter,
                        models.title(each.model.name),
                        describe(each.edits),
                        shortened(words, 60),
                    ),
                )
            )
            for (letter, each), words in zip(self.sides, own)
        )

    def caption(self, what: str) -> tuple[str, ...]:
        """What a figure must say when it stands alone."""
        runs = [
            f"{letter}: model {each.model.name} ({each.model.n_parameters:,} parameters, weights "
            f"{each.model.fingerprint}) · edits: "
            f"{describe(each.edits) or 'none'}"
            for letter, each in self.sides
        ]
        texts = [f"Text of {letter}: {read_text(each)}" for letter, each in self.sides]
        texts += [
            f"Output read by {letter}: {read_text(each, target=True)}"
            for letter, each in self.sides
            if each.target
        ]
        return (f"Headlight · {runs[0]}", runs[1], what, *texts)

    def figure_caption(self, *what: str) -> tuple[str, ...]:
        """The same in fewer words, above a figure; its file has it in full."""
        runs = [
            f"{letter}: {each.model.name} {each.model.fingerprint} · edits: "
            f"{describe(each.edits) or 'none'}"
            for letter, each in self.sides
        ]
        one, other = read_text(self.a), read_text(self.b)
        texts = (f"Text: {one}",) if one == other else (f"A reads: {one}", f"B reads: {other}")
        return (*what, f"Headlight · {runs[0]}", runs[1], *map(shortened, texts))


def both(one: Side, other: Side) -> Both:
    """Both sides, with controls for their attentions where a side has several. Raises ValueError
    where a run cannot be made."""
    a, b = one.record(), other.record()
    names_a, names_b = (tuple(each.name for each in of.attention) for of in (a, b))
    of_a = url_state.one_of("other_of", ("", *names_a)) or names_a[0]
    of_b = url_state.one_of("other_to", ("", *names_b)) or (of_a if of_a in names_b else names_b[0])
    if len(names_a) > 1 or len(names_b) > 1:
        for column, side, key, names, now in zip(
            st.columns(2, gap="large"),
            "AB",
            ("other_of", "other_to"),
            (names_a, names_b),
            (of_a, of_b),
        ):
            st.session_state[f"shown {key}"] = now
            column.segmented_control(
                f"Attention of {side}",
                names,
                key=f"shown {key}",
                wrap=True,
                format_func=lambda name: KINDS.get(name, name),
                required=True,
                on_change=_take_kind,
                args=(key,),
            )
    return Both(
        one, other, a, b, a.attention[names_a.index(of_a)], b.attention[names_b.index(of_b)]
    )


def _take_kind(key: str) -> None:
    st.session_state[key] = st.session_state[f"shown {key}"]
    forget_pair()


def shortened(words: str, most: int = 160) -> str:
    """Words, cut where they are many."""
    return words if len(words) <= most else words[: most - 1] + "…"


def said(recording: Recording) -> str:
    """Model, edits and words of a side, in Markdown."""
    edits = f" · {literal(describe(recording.edits))}" if recording.edits else ""
    words = literal(shortened(read_text(recording))) or "*no text*"
    target = (
        f"  \n→ {literal(shortened(read_text(recording, target=True)))}" if recording.target else ""
    )
    return f"{literal(models.title(recording.model.name))}{edits}  \n{words}{target}"
