"""The facts of a recording: its findings, its heads' names, and what these rest on. Each is
computed once and kept beside the recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis import coreference, head_naming, logit_lens, word_classes, words
from explorer.analysis.attention import argmax_id, axes, groups, heads_out
from explorer.analysis.coreference import Vote
from explorer.analysis.findings import (
    ALIGNED,
    CROSSED,
    DOUBLE,
    MAX_ANSWER_SCORE,
    MAX_LISTED,
    PAIRS,
    Finding,
    Link,
    StreamPrediction,
    answer_findings,
    findings,
    is_trained,
    pronoun_votes,
    select_findings,
    strongest_link,
)
from models.contract.cancellation import TimeLimit
from models.contract.recording import Attention, Recording
from models.contract.results import softmax
from models.runtime.caching import is_kept, kept, loaded

MAX_ANSWER_TOKENS = 64  # up to which findings say what the model predicts


@dataclass(frozen=True, eq=False)
class RecordingFacts:
    """The facts of a recording. It holds the recording, and nothing keeps it; attentions go by
    their names."""

    recording: Recording

    def attention(self, name: str) -> Attention:
        """The attention of that name."""
        return next(each for each in self.recording.attention if each.name == name)

    # Findings.

    @kept
    def findings(self) -> tuple[Finding, ...]:
        """The findings, the most telling first."""
        others, answer = self.other_findings(), self._stream_prediction()
        if answer is None:
            return others
        return tuple(sorted((*others, *answer_findings(answer)), key=lambda one: -one.score))

    @kept
    def other_findings(self) -> tuple[Finding, ...]:
        """The findings but those about the prediction, the most telling first; none of a head that
        is taken out."""
        recording, continuation = self.recording, ""
        if any(each.query != each.key for each in recording.attention):
            continuation = self.next_token_label(recording.attention[-1].query)
        heads = {each.name: self.named_heads(each.name) for each in recording.attention}
        unread = self.unread_language()
        votes = {each.name: self.votes(each.name) for each in recording.attention}
        every = findings(recording, continuation, heads, self.is_learned(), unread, votes)
        out = {each.name: heads_out(recording, each) for each in recording.attention}
        seen_in = lambda each: {each.at, each.example_head or each.at}
        return tuple(each for each in every if not seen_in(each) & out.get(each.attention, set()))

    def leading_findings(self) -> tuple[Finding, ...]:
        """The findings, without those about the prediction where a page would list none of these
        (`select_findings`): to predict a token takes longer than all others."""
        others = self.other_findings()
        return others if leads_without_answer(others) else self.findings()

    def strongest_in_head(self) -> Finding | None:
        """The strongest finding that is seen in a head at one token, None where there is none."""
        seen = (one for one in self.leading_findings() if one.page == "heads" and one.query >= 0)
        return next(seen, None)

    def has_headline(self) -> bool:
        """True where all is made that the strongest finding is chosen from."""
        return is_kept(RecordingFacts.findings, self.recording) or (
            is_kept(RecordingFacts.other_findings, self.recording)
            and leads_without_answer(self.other_findings())
        )

    # Heads.

    def named_heads(self, attention: str) -> tuple[head_naming.Head, ...]:
        """Every head of an attention with its name on this text."""
        is_measured = coreference.is_measured(self.recording.model.fingerprint)
        return self._named_heads(attention, is_measured)

    @kept
    def _named_heads(self, attention: str, is_measured: bool) -> tuple[head_naming.Head, ...]:
        return head_naming.describe(self.recording, self.attention(attention))

    @kept
    def votes(self, attention: str) -> tuple[Vote, ...]:
        """The votes of the heads that find nouns in test sentences, a pronoun each, the clearest
        first; none of a text in a language that the model has not read."""
        if not self.is_learned() or self.unread_language():
            return ()
        return pronoun_votes(self.recording, self.attention(attention))

    @kept
    def unread_language(self) -> str:
        """The language that the model has read, where the text is in another language; else ""."""
        recording = self.recording
        return word_classes.unread_language(recording.model.name, recording.text)

    def vote_on(self, attention: str, token: int) -> Vote | None:
        """The heads' vote on a token of the rows; None where there is no vote on it."""
        of = self.attention(attention)
        row = groups(self.recording, of, axes(self.recording, of))[0].of[token]
        return next((each for each in self.votes(attention) if each.row == row), None)

    @kept
    def is_learned(self) -> bool:
        """True where the heads show that they were learned."""
        return is_trained(self.recording)

    @kept
    def link(self, attention: str, layer: int, head: int) -> Link | None:
        """The word that attends most plainly to another in one head; None of a head without one,
        and of weights that were not learned."""
        if not self.is_learned():
            return None
        of = self.attention(attention)
        named = self.named_heads(attention)[layer * of.pattern.shape[1] + head]
        return strongest_link(self.recording, of, named)

    @kept
    def shared_sinks(self, attention: str) -> np.ndarray:
        """Mask of the keys on which heads of an attention rest together, see
        `head_naming.shared_sinks`."""
        return head_naming.shared_sinks(self.recording, self.attention(attention))

    @kept
    def reach(self, attention: str) -> tuple[np.ndarray, np.ndarray]:
        """The reach of the heads of an attention, see `head_naming.reach`."""
        return head_naming.reach(self.recording, self.attention(attention))

    # Words.

    def next_token_label(self, stream: str) -> str:
        """The label of the token that the model predicts after the last token of a stream; "…"
        where it has no readout."""
        model = loaded(self.recording)
        if not model.capabilities.logits:
            return "…"
        last = len(self.recording.stream(stream).tokens) - 1
        likeliest = argmax_id(model.logits(self.recording, stream, last))
        return next(iter(model.labels([likeliest])))

    def word_sizes(self, link: Finding) -> tuple[int, int]:
        """The number of tokens of the two words of a link, one of PAIRS or ALIGNED."""
        of = self.attention(link.attention)
        sides = groups(self.recording, of, axes(self.recording, of))
        row, key = (int(of.sizes[of.of[at]]) for of, at in zip(sides, (link.query, link.keys[0])))
        return row, key

    def uniform_weight(self, one: Finding) -> float:
        """The weight that uniform attention would give where a finding is about a word, taken as
        the finding's own number is: of words by words."""
        if one.kind not in (*PAIRS, CROSSED, ALIGNED, DOUBLE):
            return one.chance
        of = self.attention(one.attention)
        rows, keys = groups(self.recording, of, axes(self.recording, of))
        allowed, row = of.allowed[one.layer], rows.of[one.query]
        of_keys = {keys.of[key] for key in one.keys}
        return max(words.uniform_weight(allowed, rows, keys, row, key) for key in of_keys)

    def _stream_prediction(self) -> StreamPrediction | None:
        """A decoder's next token and its logit lens; None for other models and long texts."""
        recording, stream = self.recording, self.recording.streams[-1]
        n, model = len(stream.tokens), loaded(recording)
        applies = recording.model.kind == "decoder" and 1 < n <= MAX_ANSWER_TOKENS
        if not applies or model.capabilities.logits != stream.name:
            return None
        try:
            scores = model.logits(recording, stream.name, n - 1)
            id = argmax_id(scores)
            whole = model.predicted_words(recording, [(id, float(softmax(scores)[id]))], 1)
            is_cheap = logit_lens.is_cheap(recording, stream)
            lens = model.lens(recording, stream.name) if is_cheap else None
            pieces = tuple(model.labels([id]))
            label = (whole[id].word, *pieces) if id in whole else pieces
            source = model.attribute(recording, stream.name, n - 1, id)
            return StreamPrediction(lens, n - 1, label, source)
        except TimeLimit:
            raise
        except ValueError:  # a model whose logits cannot be read or taken apart
            return None


def leads_without_answer(others: Sequence[Finding]) -> bool:
    """True where a page lists none of the findings about the prediction beside these."""
    chosen = select_findings(others)
    return len(chosen) == MAX_LISTED and chosen[-1].score > MAX_ANSWER_SCORE
