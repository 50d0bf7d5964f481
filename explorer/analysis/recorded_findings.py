"""The findings of a recording and its heads' names, kept beside it."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis import coreference, head_naming, logit_lens, words
from explorer.analysis.attention import argmax_id, axes, groups
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
    select_findings,
    strongest_link,
)
from explorer.text import model_descriptions
from models.caching import has_memo, loaded, memo
from models.cancellation import TimeLimit
from models.recording import Attention, Recording
from models.results import softmax

MAX_ANSWER_TOKENS = 64  # up to which findings say what the model predicts


def next_token_label(recording: Recording, stream: str) -> str:
    """The label of the token that the model predicts after the last token of a stream; "…" where it
    has no readout."""
    if not loaded(recording).capabilities.logits:
        return "…"
    last = len(recording.stream(stream).tokens) - 1
    likeliest = argmax_id(loaded(recording).logits(recording, stream, last))
    return next(iter(loaded(recording).labels([likeliest])))


def recording_findings(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording, the most telling first, kept beside it."""
    return memo(recording, "findings", lambda: _with_answer(recording))


def strongest_in_head(recording: Recording) -> Finding | None:
    """The strongest finding that is seen in a head at one token, None where there is none."""
    seen = (
        finding
        for finding in leading_findings(recording)
        if finding.page == "heads" and finding.query >= 0
    )
    return next(seen, None)


def leading_findings(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording, without those about its prediction where a page would list none
    of these (`select_findings`): to predict a token takes longer than all others."""
    others = _other_findings(recording)
    return others if leads_without_answer(others) else recording_findings(recording)


def has_findings(recording: Recording) -> bool:
    """True where the findings of a recording that a page lists are made."""
    return has_memo(recording, "other findings")


def has_headline(recording: Recording) -> bool:
    """True where all is made that the strongest finding of a recording is chosen from."""
    return has_memo(recording, "findings") or (
        has_findings(recording) and leads_without_answer(_other_findings(recording))
    )


def leads_without_answer(others: Sequence[Finding]) -> bool:
    """True where a page lists none of the findings about the prediction beside these."""
    chosen = select_findings(others)
    return len(chosen) == MAX_LISTED and chosen[-1].score > MAX_ANSWER_SCORE


def _with_answer(recording: Recording) -> tuple[Finding, ...]:
    others, answer = _other_findings(recording), _stream_prediction(recording)
    if answer is None:
        return others
    return tuple(sorted((*others, *answer_findings(answer)), key=lambda one: -one.score))


def _other_findings(recording: Recording) -> tuple[Finding, ...]:
    """The findings of a recording but those about its prediction, the most telling first."""
    return memo(recording, "other findings", lambda: _compute_findings(recording))


def _compute_findings(recording: Recording) -> tuple[Finding, ...]:
    continuation = ""
    if any(layer_attention.query != layer_attention.key for layer_attention in recording.attention):
        continuation = next_token_label(recording, recording.attention[-1].query)
    heads = {
        layer_attention.name: named_heads(recording, layer_attention)
        for layer_attention in recording.attention
    }
    unread = model_descriptions.unread_language(recording.model.name, recording.text)
    return findings(recording, continuation, heads, is_learned(recording), unread)


def named_heads(recording: Recording, attention: Attention) -> tuple[head_naming.Head, ...]:
    """Every head of an attention with its name on this text, kept beside the recording."""
    return memo(
        recording,
        (attention.name, "heads", coreference.is_measured(recording.model.fingerprint)),
        lambda: head_naming.describe(recording, attention),
    )


def is_learned(recording: Recording) -> bool:
    """True where the heads show that they were learned, kept beside the recording."""
    return memo(recording, "learned", lambda: is_trained(recording))


def head_link(recording: Recording, attention: Attention, head: head_naming.Head) -> Link | None:
    """The word that attends most plainly to another in one head, kept beside the recording; None of
    a head without one, and of weights that were not learned."""
    if not is_learned(recording):
        return None
    key = (attention.name, "link", head.layer, head.head)
    return memo(recording, key, lambda: strongest_link(recording, attention, head))


def is_explained(
    recording: Recording, attention: Attention, head: head_naming.Head, link: Link | Finding
) -> bool:
    """True where a head's name says why the words of a link attend."""
    key = link.keys[0] if isinstance(link, Finding) else link.key
    return head_naming.explains(recording, attention, head, link.query, key)


def _stream_prediction(recording: Recording) -> StreamPrediction | None:
    """A decoder's next token and its logit lens; None for other models and long texts."""
    stream = recording.streams[-1]
    n = len(stream.tokens)
    applies = recording.model.kind == "decoder" and 1 < n <= MAX_ANSWER_TOKENS
    if not applies or loaded(recording).capabilities.logits != stream.name:
        return None
    try:
        scores = loaded(recording).logits(recording, stream.name, n - 1)
        id = argmax_id(scores)
        words = loaded(recording).predicted_words(recording, [(id, float(softmax(scores)[id]))], 1)
        is_cheap = logit_lens.is_cheap(recording, stream)
        lens = loaded(recording).lens(recording, stream.name) if is_cheap else None
        pieces = tuple(loaded(recording).labels([id]))
        label = (words[id].word, *pieces) if id in words else pieces
        return StreamPrediction(
            lens, n - 1, label, loaded(recording).attribute(recording, stream.name, n - 1, id)
        )
    except TimeLimit:
        raise
    except ValueError:  # a model whose logits cannot be read or taken apart
        return None


def word_sizes(recording: Recording, link: Finding) -> tuple[int, int]:
    """The number of tokens of the two words of a link, one of PAIRS or ALIGNED."""
    attention = next(each for each in recording.attention if each.name == link.attention)
    sides = groups(recording, attention, axes(recording, attention))
    row, key = (int(of.sizes[of.of[at]]) for of, at in zip(sides, (link.query, link.keys[0])))
    return row, key


def uniform_weight(recording: Recording, one: Finding) -> float:
    """The weight that uniform attention would give where a finding is about a word, taken as the
    finding's own number is: of words by words."""
    if one.kind not in (*PAIRS, CROSSED, ALIGNED, DOUBLE):
        return one.chance
    attention = next(each for each in recording.attention if each.name == one.attention)
    rows, keys = groups(recording, attention, axes(recording, attention))
    uniform = words.uniform_weights(attention.allowed[one.layer], rows, keys)
    return float(max(uniform[rows.of[one.query], keys.of[key]] for key in one.keys))
