"""What a text opens on until a reader chooses: its attention, head, row and cell, and its words.

No other module chooses. Each answer is of a run, is kept beside its recording, and costs no pass of
the model beyond that; only what stands beside it in another model reads the text there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from explorer.analysis import (
    embeddings,
    head_naming,
    logit_lens,
    predictions,
    residual,
    soft_lookup,
)
from explorer.analysis.attention import axes, strongest_cell
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import Finding, word_groups
from explorer.analysis.shared_votes import SharedVote, shared_votes, votes_in_text
from explorer.analysis.word_classes import CONTENT, classes, is_word, nouns
from models import model_names
from models.caching import kept, loaded
from models.cancellation import TimeLimit
from models.example_texts import SENSES
from models.recording import Attention, Recording, Stream
from models.run import Run

MAX_TOKENS = 128  # up to which every tab opens on the word that Heads opens on


# ---- in an attention -----------------------------------------------------------------------------


def attention(recording: Recording) -> str:
    """Of several attentions the one that the strongest finding is seen in, as the address calls it;
    "" for the first."""
    if len(recording.attention) == 1:
        return ""
    first = next(_seen_in_heads(recording), None)
    return dict(first.address)["attention"] if first else ""


def finding(recording: Recording, of: Attention) -> Finding | None:
    """The strongest finding of an attention that is seen in a head."""
    return next((each for each in _seen_in_heads(recording) if each.attention == of.name), None)


def _seen_in_heads(recording: Recording) -> Iterator[Finding]:
    every = RecordingFacts(recording).leading_findings()
    return (each for each in every if each.page == "heads")


def head(recording: Recording, of: Attention, layer: int | None = None) -> tuple[int, int]:
    """The head (layer, head) of an attention: that of its strongest finding, or else, and in a
    `layer` that is another one's, the one whose name stands out most."""
    first = finding(recording, of)
    if first is not None and layer in (None, first.at[0]):
        return first.at
    every = RecordingFacts(recording).named_heads(of.name)
    there = (each for each in every if layer in (None, each.layer))
    best = max(there, key=head_naming.clarity)
    return best.layer, best.head


def row(recording: Recording, of: Attention, at: tuple[int, int]) -> int | None:
    """The word that the strongest finding of a head (layer, head) is about, as its row."""
    for each in RecordingFacts(recording).leading_findings():
        if (each.attention, each.at) == (of.name, at) and each.query >= 0:
            return each.query
    return None


def cell(
    recording: Recording,
    of: Attention,
    at: tuple[int, int],
    query: int | None = None,
    key: int | None = None,
) -> tuple[int, int]:
    """The cell (query, key) of a head: that of the attention's strongest finding where it is of
    this head, else the largest of the head, or of the row or the column that is chosen."""
    first = finding(recording, of)
    is_free = query is None and key is None
    if is_free and first is not None and first.at == at and first.query >= 0 and first.keys:
        return first.query, first.keys[0]
    return strongest_cell(of.pattern[at], of.allowed[at[0]], query, key)


def lookup(
    recording: Recording,
    of: Attention,
    layer: int | None = None,
    head: int | None = None,
    query: int | None = None,
) -> tuple[int, int, int]:
    """(layer, head, query) of a lookup, in which what is given is kept: that of the strongest
    finding, else of the row whose second key matters most."""
    given, first = (layer, head, query), finding(recording, of)
    if first is not None and first.query >= 0:
        found = (*first.at, first.query)
        if all(one in (None, other) for one, other in zip(given, found)):
            return found

    return _divided(recording, of.name, *given)


@kept
def _divided(recording: Recording, attention: str, *given: int | None) -> tuple[int, int, int]:
    """The lookup whose second key matters most, of those that have what is given."""
    facts = RecordingFacts(recording)
    of = facts.attention(attention)
    following = facts.next_token_label(of.query) if of.query != of.key else ""
    names = axes(recording, of, following)
    return soft_lookup.most_divided_row(of, names.rows, names.keys, names.special, *given)


# ---- a word --------------------------------------------------------------------------------------


def found_word(recording: Recording, of: Attention) -> int | None:
    """The word that an attention's strongest finding is about, as its row; None where there is
    none, and of a long text, whose findings would keep a page waiting."""
    if len(recording.stream(of.query).tokens) > MAX_TOKENS:
        return None
    first = finding(recording, of)
    return first.query if first is not None and first.query >= 0 else None


def voted_word(recording: Recording, of: Attention) -> int | None:
    """The pronoun of the clearest vote of the tested heads, as its first token; None without a
    vote."""
    every = RecordingFacts(recording).votes(of.name)
    return word_groups(recording, of.query).starts[every[0].row] if every else None


def word(recording: Recording, stream: Stream) -> int:
    """The token of a tab about one word: the word that the strongest finding of an attention of the
    stream is about, else the last whole word, else the first token."""
    of_stream = (each for each in recording.attention if each.query == stream.name)
    found = (found_word(recording, each) for each in of_stream)
    first = next((each for each in found if each is not None), None)
    return (predictions.default_masked_word(stream) or 0) if first is None else first


def flow_word(recording: Recording, stream: Stream) -> int:
    """The token whose way is shown: where the next word is predicted the last one, of a text the
    last that is no punctuation mark; else the `word`."""
    if len(recording.streams) > 1 or recording.model.kind != "decoder":
        return word(recording, stream)
    last = len(stream.tokens) - 1
    of_text = range(last, 0, -1) if not stream.roles else ()
    return next((at for at in of_text if any(map(str.isalnum, stream.tokens[at]))), last)


def exchanged_word(recording: Recording) -> int:
    """The token of the first stream whose vector is exchanged: the `word`, of a decoder the first
    of the text, which all others may read."""
    stream = recording.streams[0]
    if stream.name != "decoder":
        return word(recording, stream)
    return int(np.argmin(stream.special))


def shared_word(first: Stream, second: Stream | None) -> int:
    """The token to follow in two texts: the longest one that both have, else the longest."""
    there = candidates = embeddings.visible_tokens(first, False).tolist()
    if second is not None:
        shared = [
            at
            for at in there
            if embeddings.matching_token(first, at, second) is not None and not first.special[at]
        ]
        candidates = shared or there
    return max(candidates, key=lambda at: sum(map(str.isalpha, first.tokens[at])))


def moving_word(recording: Recording, stream: Stream) -> int:
    """The word whose neighbours change most, of those with several senses
    (models/example_texts.py) where the text has one, else of the nouns, else of the words of
    content, else of all."""
    labels = stream.tokens
    words = np.array([is_word(each) for each in labels]) & ~stream.special
    content = words & (np.array(classes(labels)) == CONTENT)
    ambiguous = content & np.array([each.strip().casefold() in SENSES for each in labels])
    noun = content & np.array(nouns(labels))
    noun &= ~np.append(noun[1:], False)  # of several in a row all but the last may be adjectives
    for candidates in (ambiguous, noun, content, words):
        if candidates.any():
            moves = embeddings.moves(stream, np.flatnonzero(candidates))
            furthest = max(moves, key=lambda each: each.turn, default=None)
            return int((furthest.words[furthest.at]) if furthest else np.argmax(candidates))
    return word(recording, stream)


# ---- two models ----------------------------------------------------------------------------------

# The models that come with Headlight whose tested heads vote, the smallest first; those that read a
# text at once, while a page waits.
VOTING = ("encoder", model_names.MINILM, model_names.SMOLLM2)
CHEAP = 40_000_000  # parameters


def models_beside(run: Run, most: float = CHEAP) -> Iterator[tuple[str, tuple[SharedVote, ...]]]:
    """The other models whose tested heads vote on a pronoun of a short text as those of its own do,
    each with their votes; it reads the text, in models of so many parameters at most."""
    recording, there = run.recording(), model_names.names()
    is_short = len(recording.streams[0].tokens) <= MAX_TOKENS
    if not (is_short and votes_in_text(recording)):
        return
    for name in VOTING:
        if name == run.model or name not in there or model_names.card(name)["n_parameters"] > most:
            continue
        try:
            found = shared_votes(recording, Run(name, run.text).recording())
        except TimeLimit:
            raise
        except ValueError:  # no room for it now
            continue
        if found:
            yield name, found


def model_beside(run: Run) -> str:
    """The model that a text is compared in until a reader chooses: the first that names another
    noun, else the first that votes on one of its pronouns; "" where what stands beside is no other
    model."""

    def choose() -> str:
        every = dict(models_beside(run))
        at_odds = (name for name, found in every.items() if found[0].outcome == "disagree")
        return next(iter((*at_odds, *every)), "")

    return str(run.memo(("model beside",), choose))


def compared_vote(found: Sequence[SharedVote], row: int | None = None) -> SharedVote | None:
    """The pronoun that two models are compared on: the word that is selected where both vote on it,
    else the first on which they disagree; None where they vote on none."""
    own = (each for each in found if each.a.row == row)
    return next(own, next(iter(found), None))


# ---- what is predicted ---------------------------------------------------------------------------


def predicted(recording: Recording) -> int:
    """The token whose word is predicted: before a next word the last one, else the first of the
    text, which may have none."""
    stream = logit_lens.read_stream(recording)
    is_next = logit_lens.predicts_next(recording)
    return len(stream.tokens) - 1 if is_next else int(np.argmin(stream.special))


def compared(recording: Recording) -> int:
    """The token of the last stream whose prediction is compared under edits: in an encoder the
    `word`, or one worth masking, in a decoder the end or the token before that word, in a
    translation the start."""
    stream, kind = recording.streams[-1], recording.model.kind
    if kind == "encoder-decoder":
        return 0
    if kind == "encoder":
        found = found_word(recording, recording.attention[0])
        if found is not None and not stream.special[found]:
            return found
    masked = predictions.default_masked_word(stream, loaded(recording).capabilities.mask) or 0
    end = len(stream.tokens) - 1
    return masked if kind == "encoder" or masked == end else max(0, masked - 1)


def masked_word(recording: Recording) -> int | None:
    """The token that a model that fills in words masks: the first typed mask, else the word that
    the strongest finding is about, where it is whole, else the last whole word; None for none."""
    stream = recording.streams[0]
    mask = loaded(recording).capabilities.mask
    first = predictions.default_masked_word(stream, mask)
    if first is None or predictions.typed_masks(stream, mask):
        return first
    found = found_word(recording, recording.attention[0])
    if found is None or stream.special[found] or predictions.is_piece(stream.tokens, found):
        return first
    return found


# ---- a layer -------------------------------------------------------------------------------------


def ffn_layer(stream: Stream, token: int) -> int:
    """The layer whose FFN has the largest share of its update at a token. Raises ValueError for a
    stream that does not show what its FFNs write."""
    return residual.largest_ffn(stream, token)
