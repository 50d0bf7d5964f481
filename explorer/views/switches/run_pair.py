"""The two runs of the Switches page: as the model is, and under the edits of the address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from explorer.analysis import interventions
from explorer.analysis.caption import caption
from explorer.analysis.findings import ALIGNED, LINK, NEAR_LINK, Finding, attention_between_words
from explorer.analysis.predictions import default_masked_word
from explorer.layout import controls, export_menu
from explorer.state import cache, models, url_state
from explorer.text import python_snippets
from explorer.text.interventions import overflow
from models.edits import (
    Edit,
    HideToken,
    ShuffleTokens,
    WithoutPositions,
    ZeroHead,
    from_line,
    to_line,
)
from models.recording import Attention, NotFinite, Recording, Stream

MOST_EDITS = 300
MOST_WORDS = 8  # that both runs are compared in
TIED = (LINK, NEAR_LINK, ALIGNED)  # findings of one word that looks at another
TURNED = 0.1  # of a prediction, from 0 to 1, from which on silencing a head is worth opening on
SHOWN = ("Attention", "Vectors")  # the views that an experiment is seen in
OF_A_HEAD = ("attention", "layer", "head", "token")


@dataclass(frozen=True, eq=False)
class Runs:
    """Both runs of a text, and what they say at the token looked at. It is made anew in every run
    and nowhere kept.

    plain: the model as it is; other: under `edits`. wrong: why edits that were asked for are left
    out. error: why there is no second run, then the first one stands in its place and is not shown.
    hidden: the edit that hides the token from both for the answer, () for none. answer: what both
    say there, or why they say nothing. proposed: the edits are an experiment that the page
    opens on and not the reader's, and link what ties the words that it is about, None for none.
    """

    plain: Recording
    other: Recording
    edits: tuple[Edit, ...]
    wrong: tuple[str, ...]
    error: str
    token: int
    hidden: tuple[Edit, ...]
    answer: interventions.PredictionChange | str
    proposed: bool = False
    link: Finding | None = None

    @property
    def model(self) -> str:
        """The model's name."""
        return self.plain.model.name

    @property
    def stream(self) -> Stream:
        """The stream that words are read from."""
        return self.plain.streams[-1]

    @property
    def asks(self) -> bool:
        """True where the token is one that both runs could be asked about."""
        return bool(self.error) or not isinstance(self.answer, str)

    @property
    def hides(self) -> bool:
        """True where the token is shown hidden."""
        return bool(self.hidden) and self.asks

    def caption(self, *what: str) -> tuple[str, ...]:
        """What a picture of the second run must say when it stands alone."""
        return told(self.other, *what)

    def which(self) -> Attention:
        """The attention on screen."""
        named = {one.name: one for one in self.plain.attention}
        return named.get(st.session_state.attention, self.plain.attention[0])


def numbers_of(on: Runs) -> None:
    """The lines of Python that make both runs, `before` and `after`, with what both say and
    everything that is measured of them."""
    edits = on.edits
    made = [*recorded("before", on.plain), *recorded("after", on.plain, edits)]
    measured = "interventions.quantity_changes(before, after"
    if not isinstance(on.answer, str):
        made += recorded("one", on.plain, on.hidden)
        made += recorded("other", on.plain, (*on.hidden, *edits))
        scores = f"model.logits(each, {on.stream.name!r}, {on.token})"
        made += [
            f"said = interventions.prediction_change(*({scores} for each in (one, other)))",
            f"best = said.top({MOST_WORDS})",
            "words = interventions.prediction_columns(said, best, model.labels(best))",
            "labels = model.labels((said.said, said.says))",
        ]
        measured += ", said, labels"
    if edits:
        made.append(f"moved = interventions.change_columns({measured}))")
    needs = ("interventions",)
    export_menu.offer_more_code(needs, *made)


def recorded(name: str, plain: Recording, edits: tuple[Edit, ...] = ()) -> list[str]:
    """The lines of Python that make a run under edits, under a name."""
    return python_snippets.recording(name, "model", plain.text, to_line(edits), target_of(plain))


def told(recording: Recording, *what: str) -> tuple[str, ...]:
    """The lines below a picture of a run."""
    return caption(recording, *what, target="Output of the model as it is, read by both runs")


def both(plain: Recording) -> Runs:
    """Both runs under what the address asks for; where it asks for nothing, under an experiment."""
    edits, wrong = asked(plain)
    # Patching and models trained otherwise start from the model as it is.
    state = st.session_state
    link, opens = None, state.page == "edit" and not state.edits and state.effects in SHOWN
    if opens and url_state.one_of("experiment", ("", "off")) != "off":
        edits, link = cache.cached_for(plain, "experiment", lambda: experiment(plain))
    try:
        other, error = (under(plain, edits) if edits else plain), ""
    except NotFinite as why:
        other, error = plain, overflow(why.site)
    token = chosen(plain)
    if link is not None:
        if not any(state[name] for name in OF_A_HEAD):
            first = link.attention == plain.attention[0].name
            state.attention = "" if first else link.attention
        if not state.token and reads(plain, link):
            token = link.query
    hidden = hiding(plain, token)
    answer = said_by(plain, edits, token, hidden)
    proposed = opens and bool(edits)
    return Runs(plain, other, edits, tuple(wrong), error, token, hidden, answer, proposed, link)


def experiment(plain: Recording) -> tuple[tuple[Edit, ...], Finding | None]:
    """What the page opens on: the head of the strongest link between words silenced, if that turns
    what the model says at its word and a layer comes after it, whose heads may be seen to move;
    else no positions; else nothing. With the link it is about."""
    link = next((one for one in controls.recording_findings(plain) if one.kind in TIED), None)
    if link is not None and moves(plain, link) and follows(plain, ZeroHead):
        silent = (ZeroHead(link.layer, link.head, link.attention),)
        said = said_by(plain, silent, link.query, hiding(plain, link.query))
        if not isinstance(said, str) and interventions.prediction_shift(said) >= TURNED:
            return silent, link
    bare = (WithoutPositions(),)
    lacks = models.facts(plain.model.name).get("without") == "positions"
    words = not plain.streams[0].special.all()
    if words and not lacks and follows(plain, WithoutPositions) and not refused(plain, bare):
        return bare, link
    return (), None


def moves(plain: Recording, link: Finding) -> bool:
    """True where heads above the link's may be seen to move, on the way to the word's answer."""
    return reads(plain, link) and link.layer + 1 < plain.model.n_layer


def reads(plain: Recording, link: Finding) -> bool:
    """True where the word that looks is one of the stream that words are read from."""
    attention = next(one for one in plain.attention if one.name == link.attention)
    stream = plain.streams[-1]
    return attention.query == stream.name and link.query < len(stream.tokens)


def weights(on: Runs, link: Finding) -> tuple[float, float]:
    """What a link's word gives the other in both runs, all tokens of both words together, as the
    finding says it."""
    after = ""
    if len(on.plain.streams) > 1:
        after = controls.next_token_label(on.plain, on.plain.streams[-1].name)
    before, then = (
        attention_between_words(
            run, next(one for one in run.attention if one.name == link.attention), after, link.at
        )
        for run in (on.plain, on.other)
    )
    row, key = before.rows.of[link.query], before.keys.of[link.keys[0]]
    return float(before.weights[0, 0, row, key]), float(then.weights[0, 0, row, key])


def asked(plain: Recording) -> tuple[tuple[Edit, ...], list[str]]:
    """The edits of the address that this model and text can follow, and why not the others."""
    line = str(st.session_state.edits)
    words = line.split(",") if line else []
    good: list[Edit] = []
    wrong = []
    if len(words) > MOST_EDITS:
        wrong.append(f"only the first {MOST_EDITS} of {len(words)} are read")
    for word in words[:MOST_EDITS]:
        try:
            read = from_line(word)
        except ValueError:
            wrong.append(f"“{word[:60]}” is not a valid edit")
            continue
        if any(isinstance(edit, (HideToken, ShuffleTokens)) for edit in read):
            why = "changes the input, and here both runs read the same tokens"
            wrong.append(f"“{read[0]}” {why}")
        else:
            good.extend(edit for edit in read if edit not in good)
    if not refused(plain, tuple(good)):
        return tuple(good), wrong
    fits = [(edit, refused(plain, (edit,))) for edit in good]
    return tuple(edit for edit, why in fits if not why), wrong + [why for _, why in fits if why]


def under(plain: Recording, edits: tuple[Edit, ...]) -> Recording:
    """The same text under edits; a decoder of two texts reads what the model says as it is. Raises
    ValueError for edits that cannot be followed, NotFinite for numbers that overflow."""
    return cache.record(plain.model.name, plain.text, edits, target=target_of(plain))


def target_of(plain: Recording) -> tuple[int, ...] | None:
    """What both runs' decoders read: what the model says as it is. None for a model of one text."""
    return (
        tuple(int(each) for each in plain.streams[-1].ids[1:]) if len(plain.streams) > 1 else None
    )


def refused(plain: Recording, edits: tuple[Edit, ...]) -> str:
    """Why the model cannot follow edits, "" where it can; numbers that overflow are a result and
    no refusal."""
    try:
        under(plain, edits)
    except NotFinite:
        pass
    except ValueError as error:
        return str(error)
    return ""


def follows(plain: Recording, *kinds: type) -> bool:
    """Whether the model can follow edits of all these kinds: in its own code it follows few."""
    can = models.capabilities(plain.model.name).edits
    return all(issubclass(kind, can) for kind in kinds)


def chosen(plain: Recording) -> int:
    """The token whose word is looked at: the one chosen; else a word worth hiding, for a decoder
    the end or what comes before that word (an end of punctuation leaves anything open), and the
    start of a translation."""
    stream = plain.streams[-1]
    at = url_state.whole_number("token", len(stream.tokens))
    if at is not None:
        return at
    if plain.model.kind == "encoder-decoder":
        return 0
    mask = models.capabilities(plain.model.name).mask
    word, end = default_masked_word(stream, mask) or 0, len(stream.tokens) - 1
    if plain.model.kind == "encoder":
        return word
    return end if word == end else max(0, word - 1)


def hiding(plain: Recording, token: int) -> tuple[Edit, ...]:
    """The edit that hides the token looked at, so that a model that fills gaps has one to fill; ()
    where it is not to be hidden, or cannot be."""
    if plain.model.kind != "encoder" or plain.streams[-1].special[token] or st.session_state.seen:
        return ()
    if not models.capabilities(plain.model.name).logits:
        return ()  # nothing is asked of it: a pass less, which of a long text is large
    return () if refused(plain, (HideToken(token),)) else (HideToken(token),)


def said_by(
    plain: Recording, edits: tuple[Edit, ...], token: int, hidden: Sequence[Edit]
) -> interventions.PredictionChange | str:
    """What both runs say at a token, or why they say nothing."""
    stream = plain.streams[-1].name
    try:
        if not models.capabilities(plain.model.name).logits:
            cache.logits(plain, stream, token)  # says why not, before two more passes
        one, other = under(plain, tuple(hidden)), under(plain, (*hidden, *edits))
        return interventions.prediction_change(
            cache.logits(one, stream, token), cache.logits(other, stream, token)
        )
    except ValueError as error:
        return str(error)
