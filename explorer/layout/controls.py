"""One of some words, chosen in one way on every page; so are the attention, layer and head on
screen, which are kept in the address."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from explorer.analysis import attention, coreference, head_naming, logit_lens
from explorer.analysis.attention import Axes, argmax_id, axes
from explorer.analysis.caption import caption
from explorer.analysis.findings import (
    Finding,
    Link,
    StreamPrediction,
    findings,
    is_trained,
    strongest_link,
)
from explorer.components.figure_caption import Picture
from explorer.layout import export_menu
from explorer.state import cache, jobs, models, url_state
from explorer.state.cache import Run
from explorer.state.scheduling import TimeLimit
from explorer.text import glossary, python_snippets
from models.recording import Attention, Recording
from models.results import softmax

# What a recording is opened on: its findings, made once, and the step to one of them.

MAX_ANSWER_TOKENS = 64  # up to which findings say what the model predicts
MAX_OPENING_TOKENS = 128  # up to which every page opens on the word that the first page opens on
HEAD_BYTES = 1100  # what a head's name takes with all that speaks for it
FINDING_BYTES = 500  # what a finding takes
# What a reader chooses of an attention: with one of these a page opens on that.
SELECTION_KEYS = ("attention", "layer", "head", "token", "source", "anatomy_cell")


def recording_findings(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording, the most telling first, kept beside it."""
    return cache.cached_for(
        recording,
        "findings",
        lambda: _compute_findings(recording),
        weigh=lambda results: FINDING_BYTES * len(results),
    )


def has_findings(recording: Recording) -> bool:
    """True where the findings of a recording are made."""
    return cache.is_cached_for(recording, "findings")


def _compute_findings(recording: Recording) -> tuple[Finding, ...]:
    continuation = ""
    if any(layer_attention.query != layer_attention.key for layer_attention in recording.attention):
        continuation = next_token_label(recording, recording.attention[-1].query)
    heads = {
        layer_attention.name: named_heads(recording, layer_attention)
        for layer_attention in recording.attention
    }
    return findings(
        recording, continuation, _stream_prediction(recording), heads, is_learned(recording)
    )


def named_heads(recording: Recording, attention: Attention) -> tuple[head_naming.Head, ...]:
    """Every head of an attention with its name on this text, kept beside the recording."""
    return cache.cached_for(
        recording,
        (attention.name, "heads", pronoun_heads_measured(recording)),
        lambda: head_naming.describe(recording, attention),
        weigh=lambda heads: HEAD_BYTES * len(heads),
    )


def pronoun_heads_measured(recording: Recording) -> bool:
    """True where it is known which heads of the model find a pronoun's noun. Of an opened model
    that has learned it is measured in the background, once."""
    card = recording.model
    if coreference.is_measured(card.fingerprint):
        return True
    if not models.is_borrowed(card.name) or not is_learned(recording):
        return False
    texts = tuple(coreference.sentences())
    reading = jobs.corpus_job(card.name, texts, "pronouns", coreference.measure_sentence)
    if reading.finished:
        coreference.remember(card.fingerprint, coreference.heads(reading.latest))
        return True
    reading.resume()
    return False


def is_learned(recording: Recording) -> bool:
    """True where the heads show that they were learned, kept beside the recording."""
    return cache.cached_for(recording, "learned", lambda: is_trained(recording))


def head_link(recording: Recording, attention: Attention, head: head_naming.Head) -> Link | None:
    """The word that attends most plainly to another in one head, kept beside the recording; None of
    a head without one, and of weights that were not learned."""
    if not is_learned(recording):
        return None
    key = (attention.name, "link", head.layer, head.head)
    return cache.cached_for(recording, key, lambda: strongest_link(recording, attention, head))


def next_token_label(recording: Recording, stream: str) -> str:
    """The label of the token that the model predicts after the last token of a stream."""
    last = len(recording.stream(stream).tokens) - 1
    likeliest = attention.argmax_id(cache.logits(recording, stream, last))
    return next(iter(models.labels(recording.model.name, [likeliest])))


def _stream_prediction(recording: Recording) -> StreamPrediction | None:
    """A decoder's next token and its logit lens; None for other models and long texts."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    applies = recording.model.kind == "decoder" and 1 < n <= MAX_ANSWER_TOKENS
    if not applies or models.capabilities(recording.model.name).logits != stream.name:
        return None
    try:
        scores = cache.logits(recording, stream.name, n - 1)
        id = argmax_id(scores)
        words = cache.predicted_words(recording, [(id, float(softmax(scores)[id]))], 1)
        is_cheap = logit_lens.is_cheap(recording, stream)
        lens = cache.lens(recording, stream.name) if is_cheap else None
        pieces = tuple(models.labels(recording.model.name, [id]))
        label = (words[id].word, *pieces) if id in words else pieces
        return StreamPrediction(
            lens, n - 1, label, cache.attribution(recording, stream.name, n - 1, id)
        )
    except TimeLimit:
        raise
    except ValueError:  # a model whose logits cannot be read or taken apart
        return None


def opening_finding(recording: Recording, attention: Attention) -> Finding | None:
    """The finding that an attention is opened on: its strongest one that is seen in a head."""
    return next(
        (
            finding
            for finding in recording_findings(recording)
            if finding.page == "attention" and finding.attention == attention.name
        ),
        None,
    )


def opening_word(recording: Recording, attention: Attention) -> int | None:
    """The word that an attention's strongest finding is about, as its row; None where there is
    none, and of a long text, whose findings would keep a page waiting."""
    if len(recording.stream(attention.query).tokens) > MAX_OPENING_TOKENS:
        return None
    finding = opening_finding(recording, attention)
    return finding.query if finding is not None and finding.query >= 0 else None


def choose_attention(recording: Recording) -> None:
    """Choose the attention of the strongest finding, where the reader has chosen none of several. A
    model with one attention needs no choice, and its findings are computed later."""
    if not any(st.session_state[name] for name in SELECTION_KEYS):
        st.session_state.attention = default_attention(recording)


def default_attention(recording: Recording) -> str:
    """Of several attentions the one that the strongest finding is seen in, as the address calls it;
    "" for the first."""
    if len(recording.attention) == 1:
        return ""
    finding = next(
        (finding for finding in recording_findings(recording) if finding.page == "attention"), None
    )
    return dict(finding.address)["attention"] if finding else ""


def open_finding(finding: Finding) -> None:
    """Go to what shows a finding: put its address into the session. For a callback, or before a
    step to another page."""
    state = st.session_state
    state.acted = True
    state.anatomy_cell = ""
    state.att_word = "none" if finding.query < 0 else ""
    for name, value in finding.address:
        state[name] = value
    if finding.page == "attention" and finding.query >= 0 and finding.keys:
        state.anatomy_cell = f"{finding.query}.{finding.keys[0]}"


LABELS = {
    "encoder self": "Encoder self-attention",
    "decoder self": "Decoder self-attention",
    "cross": "Cross-attention",
}
ATTENTION_KEYS = ("token", "layer", "head", "source", "anatomy_cell", "sum_layer", "sum_head")


def pick(
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    help: str | None = None,
    bare: bool = False,
    on_change: Callable[[], None] | None = None,
    container: DeltaGenerator | None = None,
) -> str:
    """A row of buttons of which one is always selected, kept for the visit under `key`. options:
    the labels by value. bare: the label is for screen readers alone. at: its container, the current
    one where None."""
    labels = dict(options) if isinstance(options, Mapping) else {each: each for each in options}
    value = (st if container is None else container).segmented_control(
        label,
        tuple(labels),
        key=key,
        wrap=True,
        format_func=labels.__getitem__,
        required=True,
        persist_state="session",
        help=help,
        label_visibility="collapsed" if bare else "visible",
        on_change=on_change,
    )
    return str(value)


def attention_names(recording: Recording) -> tuple[str, ...]:
    """The names of the recording's attentions in the address; the first one's is ""."""
    return ("", *(attention.name for attention in recording.attention[1:]))


def pick_attention(recording: Recording) -> Attention:
    """The attention on screen, with the control that chooses it where there are several."""
    names, first = attention_names(recording), recording.attention[0].name
    name = url_state.one_of("attention", names)
    if len(names) > 1:
        # A key of its own: a widget of another page under the choice's name would be gone with that
        # page.
        st.session_state["attention shown"] = name
        st.segmented_control(
            "Attention",
            names,
            key="attention shown",
            wrap=True,
            format_func=lambda each: LABELS.get(each or first, each),
            required=True,
            label_visibility="collapsed",
            on_change=_take_attention,
        )
    return recording.attention[names.index(name)]


def pick_head(size: Sequence[int], selected: tuple[int, int]) -> None:
    """The controls that choose a layer and a head of `size` (layers, heads); `at` is the one on
    screen. They stand side by side where their container is horizontal."""
    st.session_state["layer shown"], st.session_state["head shown"] = map(int, selected)
    for label, n in zip(("Layer", "Head"), size):
        st.selectbox(
            label,
            range(n),
            key=f"{label.lower()} shown",
            on_change=_take_layer_and_head,
            width=110,
            help=glossary.meaning(label),
        )


def take_head(layer: int | str, head: int | str) -> None:
    """Put this head on screen. For callbacks."""
    st.session_state.layer, st.session_state.head = str(layer), str(head)


def axes_of(recording: Recording, attention: Attention) -> Axes:
    """The titles of rows and columns. Between two texts they need the token that the model would
    produce after the target."""
    if attention.query == attention.key:
        return axes(recording, attention)
    last = len(recording.stream(attention.query).tokens) - 1
    following = argmax_id(cache.logits(recording, attention.query, last))
    return axes(recording, attention, *models.labels(recording.model.name, [following]))


def forget_attention() -> None:
    """Another attention has other heads and other tokens."""
    for choice in ATTENTION_KEYS:
        st.session_state[choice] = ""


def _take_attention() -> None:
    st.session_state.attention = st.session_state["attention shown"]
    forget_attention()


def _take_layer_and_head() -> None:
    take_head(st.session_state["layer shown"], st.session_state["head shown"])


# What a page about one attention is of: the recording, the attention, what its axes are called,
# and how its pictures and files are named.


@dataclass(frozen=True, eq=False)
class Subject:
    """One attention on screen. It is made anew in every run and nowhere kept."""

    source: Run
    recording: Recording
    attention: Attention
    axes: Axes

    @property
    def across(self) -> bool:
        """True where rows and columns are two texts."""
        return self.attention.query != self.attention.key

    def kept(self, key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        """Something computed of the attention, kept beside its recording."""
        return cache.cached_for(self.recording, (self.attention.name, *key), make)

    def numbers(self, title: str, needs: tuple[str, ...], *lines: str) -> None:
        """Add lines of Python for this attention, which is `of` in them; `axes` are the titles of
        its rows and columns."""
        needs = ("attention", *needs)
        export_menu.offer_numbers_code(title, (self.source,), needs, (*self._setup_lines, *lines))

    def more(self, needs: tuple[str, ...], *lines: str) -> None:
        """The same behind the lines that make the page's file."""
        needs = ("attention", *needs)
        export_menu.offer_more_code(needs, *self._setup_lines, *lines)

    @property
    def _setup_lines(self) -> list[str]:
        at = self.recording.attention.index(self.attention)
        return [f"of = recording.attention[{at}]", *python_snippets.axes_of(self.across)]

    def name(self, *key: Hashable) -> str:
        """The name of a picture: equal causes, equal name."""
        return cache.picture_name(self.recording, self.attention.name, *key)

    def picture(self, title: str, *lines: str, file: str, what: tuple[Hashable, ...]) -> Picture:
        """The title, caption and file name of a picture. lines: its description; file: the part of
        the file name that differs from other pictures."""
        return Picture(title, self.caption(*lines), self.file(file), self.name(*what))

    def caption(self, *lines: str, of: str = "") -> tuple[str, ...]:
        """The caption of a figure, with model and text; `of`: the part of the attention that is
        shown."""
        attention_label = f"{self.attention.name}-attention{of}"
        target = self.source.target
        model_target = "the model’s own" + (", unedited" if self.recording.edits else "")
        target_origin = "as typed" if isinstance(target, str) else model_target
        return caption(
            self.recording, *lines, subject=attention_label, target=f"Target ({target_origin})"
        )

    def file(self, *parts: str) -> str:
        """The name of a file, without its ending."""
        several = self.attention.name.split() if len(self.recording.attention) > 1 else ()
        return "-".join(("headlight", self.recording.model.name, *several, *filter(None, parts)))


def subject(source: Run) -> Subject:
    """The attention that is chosen, with the control that chooses it where there are several."""
    recording = source.recording()
    attention = pick_attention(recording)
    return Subject(source, recording, attention, axes_of(recording, attention))
