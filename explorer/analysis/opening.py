"""What a text opens on until a reader chooses: its attention, head, row and cell, and its words.

No other module chooses. One word and one head are the same on every tab: the pronoun that the
tested heads vote on, and the best-tested head that says its noun; without a vote those of the
strongest finding. Each answer is of a run, is kept beside its recording, and costs no pass of the
model beyond that; only what stands beside it in another model reads the text there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from explorer.analysis import (
    changes,
    embeddings,
    ffn,
    flow,
    head_naming,
    logit_lens,
    predictions,
    residual,
    soft_lookup,
)
from explorer.analysis.answers import ReadWord, SpokenWord, on_words
from explorer.analysis.attention import argmax_id, axes, heads_out, strongest_cell
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.findings import HABITS, Finding, vote_finding, word_groups
from explorer.analysis.shared_votes import SharedVote, shared_votes, votes_in_text
from explorer.analysis.word_classes import (
    CLAUSE_ENDS,
    CONTENT,
    UNSURE,
    classes,
    is_word,
    nouns,
    unread_language,
)
from explorer.analysis.words import weights_between
from models import model_names
from models.contract.cancellation import TimeLimit, expect_wanted
from models.contract.edits import Edit, HideToken
from models.contract.recording import CONTINUES, Attention, Recording, Stream
from models.contract.results import Lens, Part, largest, softmax
from models.example_texts import SENSES
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

MAX_TOKENS = 128  # up to which every tab opens on the word that Heads opens on


# ---- in an attention -----------------------------------------------------------------------------


def attention(recording: Recording) -> str:
    """Of several attentions the one that the strongest finding is seen in, as the address calls it;
    "" for the first."""
    first = next(_seen_in_heads(recording), None)
    return dict(first.address)["attention"] if first else ""


def finding(recording: Recording, of: Attention) -> Finding | None:
    """The strongest finding of an attention that is seen in a head: the clearest vote of its tested
    heads, which is known before all others."""
    return voted(recording, of.name) or next(
        (each for each in _seen_in_heads(recording) if each.attention == of.name), None
    )


def _seen_in_heads(recording: Recording) -> Iterator[Finding]:
    every = RecordingFacts(recording).leading_findings()
    return (each for each in every if each.page == "heads")


@kept
def voted(recording: Recording, attention: str) -> Finding | None:
    """The clearest vote of the tested heads of an attention; None without one."""
    facts = RecordingFacts(recording)
    first = next(iter(facts.votes(attention)), None)
    return vote_finding(recording, facts.attention(attention), first) if first else None


def head(recording: Recording, of: Attention, layer: int | None = None) -> tuple[int, int]:
    """The head (layer, head) of an attention that every tab opens on: that of its strongest
    finding, or else, and in a `layer` that is another one's, the one whose name stands out most. Of
    heads that are taken out none, unless all are."""
    first = finding(recording, of)
    if first is not None and layer in (None, first.at[0]):
        return first.at
    every = RecordingFacts(recording).named_heads(of.name)
    out = heads_out(recording, of)
    there = (each for each in every if layer in (None, each.layer))
    best = max(
        there, key=lambda each: ((each.layer, each.head) not in out, head_naming.clarity(each))
    )
    return best.layer, best.head


def row(recording: Recording, of: Attention, at: tuple[int, int]) -> int | None:
    """The word that the strongest finding of a head (layer, head) is about, as its row."""
    first = voted(recording, of.name)
    if first is not None and first.at == at:
        return first.query
    for each in RecordingFacts(recording).leading_findings():
        if (each.attention, each.at) == (of.name, at) and each.query >= 0:
            return each.query
    return None


class WordLink(NamedTuple):
    """A head in which a word reads another one plainly, and the word's first token."""

    layer: int
    head: int
    token: int


@kept
def word_link(recording: Recording, attention: str, token: int | None = None) -> WordLink | None:
    """The head in which a word gives another word of the text the most, by whole words; the word of
    a token, where None the one that does so most plainly of a text of at most MAX_TOKENS.

    Words of content come before all others, and heads that look at something else than a place or a
    sink before those; none that is taken out. None between two texts, for weights that were not
    learned, and where no two words are."""
    facts = RecordingFacts(recording)
    of = facts.attention(attention)
    if of.query != of.key or not facts.is_learned():
        return None
    if token is None and len(recording.stream(of.query).tokens) > MAX_TOKENS:
        return None
    words = word_groups(recording, of.query)
    is_text = np.array([is_word(each) for each in words.labels]) & ~np.array(words.special)
    telling = is_text & np.array([each in (CONTENT, UNSURE) for each in classes(words.labels)])
    rows = is_text if token is None else is_text & (np.arange(len(is_text)) == words.of[token])
    if is_text.sum() < 2 or not rows.any():
        return None
    weights = weights_between(of.pattern, words, words)
    weights = np.where(is_text & ~np.eye(len(is_text), dtype=bool), weights, 0)
    for at in heads_out(recording, of):
        weights[at] = 0
    best = weights.argmax(axis=-1)  # (layer, head, row)
    names = np.array([each.name for each in facts.named_heads(attention)]).reshape(best.shape[:2])
    order = 2.0 * telling[best] + 2.0 * telling + ~np.isin(names, HABITS)[..., None]
    most = weights.max(axis=-1)
    plain = np.where(rows & (most > 0), order + most, -1)
    layer, head, row = map(int, np.unravel_index(plain.argmax(), plain.shape))
    return WordLink(layer, head, words.starts[row]) if weights[layer, head, row].any() else None


def cell(
    recording: Recording,
    of: Attention,
    at: tuple[int, int],
    query: int | None = None,
    key: int | None = None,
) -> tuple[int, int]:
    """The cell (query, key) of a head: that of the attention's strongest finding where it is of
    this head, of a vote also where its pronoun is chosen; else the largest of the row or the column
    that is chosen, or of the head; in the head that opens no special token's where two words have
    one."""
    first = finding(recording, of)
    if first is not None and first.at == at and first.query >= 0 and first.keys and key is None:
        rows = (None, first.query) if first.ballots else (None,)
        if query in rows:
            return first.query, first.keys[0]
    cell = strongest_cell(of.pattern[at], of.allowed[at[0]], query, key)
    special = (recording.stream(each).special for each in (of.query, of.key))
    is_chosen = query is not None or key is not None or at != head(recording, of)
    if is_chosen or not any(mask[place] for mask, place in zip(special, cell)):
        return cell
    return _strongest_words(recording, of, at) or cell


def _strongest_words(
    recording: Recording, of: Attention, at: tuple[int, int]
) -> tuple[int, int] | None:
    """The cell (query, key) of a head with the largest weight of a row whose largest one goes from
    one word of the text to another, of whole words where there is one; None where there is none."""
    pattern, streams = of.pattern[at], (recording.stream(each) for each in (of.query, of.key))
    keys = pattern.argmax(axis=1)
    most = pattern[np.arange(len(keys)), keys]
    whole, words = zip(*((whole_words(each), typed_words(each)) for each in streams))
    is_other = keys != np.arange(len(keys)) if of.query == of.key else True
    for rows, columns in (whole, words):
        found = np.where(rows & columns[keys] & is_other, most, -1)
        if len(found) and found.max() > 0:
            return int(found.argmax()), int(keys[found.argmax()])
    return None


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
def _divided(
    recording: Recording, attention: str, layer: int | None, head: int | None, query: int | None
) -> tuple[int, int, int]:
    """The lookup whose second key matters most, of those that have what is given."""
    facts = RecordingFacts(recording)
    of = facts.attention(attention)
    following = facts.next_token_label(of.query) if of.query != of.key else ""
    names = axes(recording, of, following)
    out = heads_out(recording, of)
    labels = names.rows, names.keys, names.special
    return soft_lookup.most_divided_row(of, *labels, layer, head, query, out)


# ---- a word --------------------------------------------------------------------------------------


def opened_word(recording: Recording, of: Attention) -> int | None:
    """The word that every tab opens on, as a row of an attention: the pronoun of its vote, else the
    word that its strongest finding is about; None where there is none, and without a vote of a long
    text, whose findings would keep a page waiting."""
    if (vote := voted(recording, of.name)) is not None:
        return vote.query
    if len(recording.stream(of.query).tokens) > MAX_TOKENS:
        return None
    first = finding(recording, of)
    return first.query if first is not None and first.query >= 0 else None


def word(recording: Recording, stream: Stream) -> int:
    """The token of a tab about one word: the `opened_word` of an attention of the stream, else the
    last whole word, else the first token."""
    of_stream = (each for each in recording.attention if each.query == stream.name)
    found = (opened_word(recording, each) for each in of_stream)
    first = next((each for each in found if each is not None), None)
    return (predictions.default_masked_word(stream) or 0) if first is None else first


def flow_word(recording: Recording, stream: Stream) -> int:
    """The token whose way is shown: the `word`; where the next word is predicted the last one, of a
    text that ends a sentence the one before its last word, so that no mark is asked for."""
    if len(recording.streams) > 1 or recording.model.kind != "decoder":
        return word(recording, stream)
    tokens, last = stream.tokens, len(stream.tokens) - 1
    if stream.roles or not (tokens[last] and tokens[last][-1] in CLAUSE_ENDS):
        return last
    end = next((at for at in range(last, 0, -1) if any(map(str.isalnum, tokens[at]))), last)
    before = next((at - 1 for at in range(end, 0, -1) if not tokens[at].startswith(CONTINUES)), end)
    return end if stream.special[before] else before


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


class Contrasted(NamedTuple):
    """A token whose vector is compared with that of the same word elsewhere, and the text of the
    word where that is the word alone, "" for another sentence."""

    token: int
    alone: str


def contrasted(recording: Recording, stream: Stream) -> Contrasted | None:
    """The word of the first stream to compare with itself elsewhere: one of several senses in
    another sentence, else the noun of a vote, or the `moving_word`, alone. None for another stream
    and for a text without words."""
    if stream is not recording.streams[0] or stream.special.all():
        return None
    token = moving_word(recording, stream)
    if stream.tokens[token].strip().casefold() in SENSES:
        return Contrasted(token, "")
    votes = [voted(recording, each.name) for each in recording.attention]
    token = next((each.keys[0] for each in votes if each is not None and each.n_votes), token)
    start, end = stream.spans[token]
    return Contrasted(token, recording.text[max(0, start) : max(0, end)].strip())


def typed_words(stream: Stream) -> np.ndarray:
    """Mask of the tokens (token) that are words of the text, or pieces of one."""
    return np.array([is_word(each) for each in stream.tokens], bool) & ~stream.special


def whole_words(stream: Stream) -> np.ndarray:
    """Mask of the tokens (token) that are a word of the text each, and no piece of one."""
    places = range(len(stream.tokens))
    whole = [not predictions.is_piece(stream.tokens, at) for at in places]
    return typed_words(stream) & np.array(whole, bool)


def moving_word(recording: Recording, stream: Stream) -> int:
    """The word whose neighbours change most, of those with several senses
    (models/example_texts.py) where the text has one, else of the nouns, else of the words of
    content, else of all."""
    labels, whole = stream.tokens, whole_words(stream)
    words = whole if whole.any() else typed_words(stream)
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


def voting_beside(run: Run) -> Iterator[str]:
    """The other models of at most `CHEAP` parameters whose heads vote on a short text; none for one
    on which its own heads do not."""
    recording, there = run.recording(), model_names.names()
    is_short = len(recording.streams[0].tokens) <= MAX_TOKENS
    if not (is_short and votes_in_text(recording)):
        return
    for name in VOTING:
        if name != run.model and name in there and model_names.card(name)["n_parameters"] <= CHEAP:
            yield name


def models_beside(run: Run) -> Iterator[tuple[str, tuple[SharedVote, ...]]]:
    """The other models whose tested heads vote on a pronoun of a short text as those of its own do,
    each with their votes; it reads the text, in models of at most `CHEAP` parameters."""
    for name in voting_beside(run):
        try:
            found = shared_votes(run.recording(), Run(name, run.text).recording())
        except TimeLimit:
            raise
        except ValueError:  # no room for it now
            continue
        if found:
            yield name, found


def model_beside(run: Run) -> str:
    """The model that a text is compared in until a reader chooses: the first that names another
    noun, else the first that votes on one of its pronouns, and of a short text without a vote the
    smallest that votes on others; "" where what stands beside is no other model."""

    def choose() -> str:
        every = dict(models_beside(run))
        at_odds = (name for name, found in every.items() if found[0].outcome == "disagree")
        return next(iter((*at_odds, *every, *_reading_beside(run))), "")

    return str(run.memo(("model beside",), choose))


def _reading_beside(run: Run) -> Iterator[str]:
    """The other models that come with Headlight and read a text at once, beside one of them in
    which a word reads another one."""
    recording, there = run.recording(), model_names.names()
    of = recording.attention[0].name if recording.attention else ""
    if run.edits or run.model not in VOTING or word_link(recording, of) is None:
        return
    for name in VOTING:
        if name != run.model and name in there and model_names.card(name)["n_parameters"] <= CHEAP:
            yield name


def compared_vote(found: Sequence[SharedVote], row: int | None = None) -> SharedVote | None:
    """The pronoun that two models are compared on: the word that is selected where both vote on it,
    else the first on which they disagree; None where they vote on none."""
    own = (each for each in found if each.a.row == row)
    return next(own, next(iter(found), None))


# ---- what is predicted ---------------------------------------------------------------------------


def predicted(recording: Recording) -> int:
    """The token whose word is predicted: before a next word the `flow_word`, of a translation the
    last one; else the first of the text, which may have none."""
    stream = logit_lens.read_stream(recording)
    if recording.model.kind == "decoder":
        return flow_word(recording, stream)
    is_next = logit_lens.predicts_next(recording)
    return len(stream.tokens) - 1 if is_next else int(np.argmin(stream.special))


def answered(recording: Recording) -> int:
    """The token whose answer is asked for: of a model that fills in words the `word`, of a
    translation its beginning, else the one that is `predicted`."""
    if recording.model.kind == "encoder":
        return word(recording, recording.streams[0])
    return 0 if recording.model.kind == "encoder-decoder" else predicted(recording)


def compared(recording: Recording) -> int:
    """The token of the last stream whose prediction is compared under edits: in an encoder the
    `word`, or one worth masking, in a decoder the one that is `predicted`, in a translation the
    start."""
    stream, kind = recording.streams[-1], recording.model.kind
    if kind != "encoder":
        return 0 if kind == "encoder-decoder" else predicted(recording)
    found = opened_word(recording, recording.attention[0])
    if found is not None and not stream.special[found]:
        return found
    return predictions.default_masked_word(stream, loaded(recording).capabilities.mask) or 0


def masked_word(recording: Recording) -> int | None:
    """The token that a model that fills in words masks: the first typed mask, else the
    `opened_word`, where it is whole, else the last whole word; None for none."""
    stream = recording.streams[0]
    mask = loaded(recording).capabilities.mask
    first = predictions.default_masked_word(stream, mask)
    if first is None or predictions.typed_masks(stream, mask):
        return first
    found = opened_word(recording, recording.attention[0])
    if found is None or stream.special[found] or predictions.is_piece(stream.tokens, found):
        return first
    return found


# ---- another sentence ----------------------------------------------------------------------------

LEAST_LOSS = 0.1  # of a probability, that the word that led loses where an answer turned
MOST_TRIED = 12  # sentences that are read for another one
MOST_PLACES, MOST_WORDS, MOST_GUESSED = 4, 2, 20  # of a text, for each, and that are looked through
FEWEST_LETTERS = 3  # of a word that is put into a text


def turned(before: np.ndarray, after: np.ndarray) -> bool:
    """True where another word leads after than before and the one that led has lost LEAST_LOSS.
    before, after (id): probabilities."""
    led = int(before.argmax())
    return int(after.argmax()) != led and float(before[led] - after[led]) >= LEAST_LOSS


@kept
def turning_text(recording: Recording, token: int, hidden: tuple[Edit, ...] = ()) -> str:
    """Another sentence, of as many tokens, in which the answer at a token of the last stream
    `turned`: the clause of the pronoun of a vote with other words, or the text with one word in the
    place of another that the model might write there. "" where none was found, and for a text in a
    language that the model has not read. hidden: the edits that hide the token in both."""
    model, n_tokens = loaded(recording), len(recording.streams[0].tokens)
    if recording.as_ids or n_tokens > MAX_TOKENS or any(recording.streams[0].roles):
        return ""

    def answer(text: str) -> np.ndarray | None:
        expect_wanted()
        made = model.record_once(text, hidden)
        if len(made.streams[0].tokens) != n_tokens:
            return None
        return softmax(model.logits(made, made.streams[-1].name, token))

    try:
        before = answer(recording.text)
        for text in islice(dict.fromkeys(_other_texts(recording, token)), MOST_TRIED):
            after = answer(text)
            if before is not None and after is not None and turned(before, after):
                return text
    except TimeLimit:
        raise
    except ValueError:  # of a model that does not predict, or cannot hide a word
        pass
    return ""


def _other_texts(recording: Recording, token: int) -> Iterator[str]:
    """The sentences that are tried, those that differ least in what they say first."""
    if unread_language(recording.model.name, recording.text):
        return
    votes = RecordingFacts(recording).votes(recording.attention[0].name)
    if votes and len(recording.streams) == 1:
        yield from (each.text for each in changes.of_vote(recording, votes[0]))
    tokens, special = recording.streams[0].tokens, recording.streams[0].special
    kinds, is_noun = classes(tokens), nouns(tokens)
    is_decoder = recording.model.kind == "decoder"  # which does not see what a word must go with
    places = [
        at
        for at, kind in enumerate(kinds)
        if kind == CONTENT
        and not special[at]
        and is_word(tokens[at])
        and not predictions.is_piece(tokens, at)
        and (0 < at <= token and is_noun[at] if is_decoder else at != token)
    ]
    places = sorted(places, key=lambda at: abs(at - token))[:MOST_PLACES]
    starts = {at: changes.first_letter(recording, at) for at in places}
    for at in places:
        start, end = starts[at], int(recording.streams[0].spans[at][1])
        for word in _words_instead(recording, at):
            yield recording.text[:start] + word + recording.text[end:]


def _words_instead(recording: Recording, at: int) -> Iterator[str]:
    """The likeliest words of content, at most MOST_WORDS, that a model gives in the place of a word
    of its first stream."""
    model, stream, kind = loaded(recording), recording.streams[0], recording.model.kind
    if len(recording.streams) > 1:
        return
    if kind == "encoder":
        logits = model.logits(model.record_once(recording.text, (HideToken(at),)), stream.name, at)
    else:
        logits = model.logits(recording, stream.name, at - 1)
    old = stream.tokens[at]
    ids = [int(each) for each in largest(logits, MOST_GUESSED)]
    labels = model.labels(ids)
    fits = (
        each
        for each, a_class in zip(labels, classes(labels))
        if a_class == CONTENT
        and each.isalpha()
        and len(each) >= FEWEST_LETTERS
        and each.casefold() != old.casefold()
        and each[0].isupper() == old[0].isupper()
    )
    yield from islice(fits, MOST_WORDS)


# ---- a lens -------------------------------------------------------------------------------------

TOP_RANKS = 5  # of an answer that a reader sees coming
FEWEST_SITES = 4


def first_site(rank: np.ndarray) -> int:
    """The first site (site) of a lens that means something for its answer: from which on this is
    among the TOP_RANKS likeliest words for good. rank: of the answer at each site, from 0."""
    late = np.flatnonzero(rank >= TOP_RANKS)
    start = int(late[-1]) + 1 if len(late) else 0
    return max(0, min(start, len(rank) - FEWEST_SITES))


# ---- a step --------------------------------------------------------------------------------------

PLAIN_WEIGHT = 0.25  # of a step on the word that it reads, from which on it plainly does


def lasting_lead(leads: Sequence[bool]) -> int | None:
    """The first of some steps from which on an answer leads for good; None where it does not in the
    end."""
    behind = [at for at, each in enumerate(leads) if not each]
    first = behind[-1] + 1 if behind else 0
    return first if first < len(leads) else None


def longest_jump(weights: np.ndarray, written: Sequence[str], source: Stream) -> int | None:
    """Of the steps of a translation whose words plainly read words of the source in another order
    than they are written, the one that reads furthest from the diagonal; None where all are in
    order. weights: (step, source) of the steps `written`."""
    n, places = len(written), np.flatnonzero(~source.special)
    if min(n, len(places)) < 2:
        return None
    read = weights[:n].argmax(axis=1)
    is_plain = weights[np.arange(n), read] >= PLAIN_WEIGHT
    is_plain &= [is_word(each) for each in written]
    is_plain &= np.array([is_word(each) for each in source.tokens])[read] & ~source.special[read]
    steps = np.arange(n)
    crossed = np.sign(read[:, None] - read) * np.sign(steps[:, None] - steps) < 0
    is_out = is_plain & (crossed & is_plain).any(axis=1)
    distance = np.abs(read - np.linspace(places[0], places[-1], n))
    return int(np.where(is_out, distance, -1).argmax()) if is_out.any() else None


# ---- an update -----------------------------------------------------------------------------------

TURNS = 0.05  # of a probability, that a part changes before it is told
LEADS = 0.05  # of a word's probability, below which the likeliest word is no clear guess


@dataclass(frozen=True, eq=False)
class Guesses:
    """The probability of the word that is predicted in the end at a token, as the logit lens reads
    it before and after each update (update) of its stream. sites: of the updates."""

    answer: int
    sites: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray

    @property
    def rising(self) -> str:
        """The update that raises it most."""
        return self.sites[int((self.after - self.before).argmax())]

    @property
    def turning(self) -> str | None:
        """The update that raises it most; None where that is less than TURNS."""
        return self.rising if (self.after - self.before).max() >= TURNS else None


class Settled(NamedTuple):
    """The site from which on the answer at a token leads for good, as the lens reads all sites,
    and the word (id) that led before."""

    site: str
    before: int

    def layer(self, last: int) -> int:
        """The layer of the site; of one behind all layers the `last`."""
        number = self.site.partition(".")[0]
        return int(number) if number.isdecimal() else last


def settled(lens: Lens) -> Settled | None:
    """The site from which the answer at the one token of a lens on all sites leads for good; None
    for one that leads from before the first layer on."""
    first = int(logit_lens.settled_sites(lens.rank)[0])
    sites, last = lens.sites, len(lens.sites) - 1
    is_before = not any(each.partition(".")[0].isdecimal() for each in sites[: first + 1])
    if is_before:
        return None
    return Settled(sites[min(first, last)], int(lens.top_ids[first - 1, 0, 0]))


@kept
def guesses(recording: Recording, stream: str, token: int, layers: bool) -> Guesses | None:
    """The guesses at a token along a stream, by whole layers or sub-layers; None for a model that
    predicts no words in it."""
    of, model = recording.stream(stream), loaded(recording)
    updates = residual.sublayers(residual.whole_layers(of) if layers else of)
    is_read = not model.capabilities.no_readout and of is logit_lens.read_stream(recording)
    if not is_read or not updates:
        return None
    of_layers = flow.layer_sites(of) if layers else {}
    lens = model.lens(recording, stream, 1, token, tuple(of_layers.values()) if layers else None)
    ends = {each.site: (each.before, each.after) for each in updates}
    if layers:  # whose own sites the readout does not know
        place = lambda layer: of_layers.get(layer, lens.sites[0] if layer < 0 else "")
        ends = {each.site: (place(each.layer - 1), place(each.layer)) for each in updates}
    p = dict(zip(lens.sites, np.exp(lens.logprob[:, 0].astype(np.float64)).tolist()))
    last = p[lens.sites[-1]]
    pairs = [(p.get(before, last), p.get(after, last)) for before, after in ends.values()]
    befores, afters = np.array(pairs).T
    return Guesses(int(lens.final_id[0]), tuple(ends), befores, afters)


# ---- an answer -----------------------------------------------------------------------------------


def answer_word(asked: Sequence[SpokenWord], answered: Sequence[SpokenWord]) -> int | None:
    """The word of an answer that is told of, as its place: the first word of content that is not
    one of the question; None for none."""
    known = {each.label.casefold() for each in asked}
    kinds = classes([each.label for each in answered])
    return next(
        (
            at
            for at, (each, kind) in enumerate(zip(answered, kinds))
            if kind == CONTENT and each.label[:1].isalnum() and each.label.casefold() not in known
        ),
        None,
    )


def reading_head(
    parts: Sequence[Part], rows: np.ndarray, asked: Sequence[SpokenWord]
) -> ReadWord | None:
    """Of the heads that bring most to a word's logit the one with the largest weight on a word of
    content of the question; None where that is small. parts: of the logit; rows: the attention of
    the token that predicts (layer, head, key)."""
    kinds = classes([each.label for each in asked])
    content = [at for at, kind in enumerate(kinds) if kind == CONTENT]
    bring = [each for each in parts if each.kind == "head" and each.value > 0]
    bring = sorted(bring, key=lambda each: -each.value)[:MOST_BRINGING]
    if not content or not bring:
        return None
    heads = [(each.layer, each.head) for each in bring]
    weights = on_words(np.stack([rows[at] for at in heads]), asked)[:, content]
    which, word = np.unravel_index(int(weights.argmax()), weights.shape)
    if weights[which, word] < LEAST_READ:
        return None
    layer, head = heads[which]
    return ReadWord(layer, head, content[word], rows[layer, head].copy())


MOST_BRINGING = 8  # heads that may be told of, those that bring most
LEAST_READ = 0.1  # the weight of a word that a head is said to read


# ---- a hidden unit -------------------------------------------------------------------------------

MOST_FFNS, MOST_UNITS, N_NEAREST = 6, 6, 6  # that are looked at for a unit, and words of each


class HiddenUnit(NamedTuple):
    """A hidden unit of an FFN whose words hold the `answer`, an id."""

    layer: int
    unit: int
    answer: int


def ffn_layer(recording: Recording, stream: Stream, token: int) -> int:
    """The layer of the `answering_unit` of a token, else the one whose FFN has the largest share of
    its update there. Raises ValueError for a stream that does not show what its FFNs write."""
    found = answering_unit(recording, stream.name, token)
    return residual.largest_ffn(stream, token) if found is None else found.layer


@kept
def answering_unit(recording: Recording, stream: str, token: int) -> HiddenUnit | None:
    """Of the units with large shares of their FFN's update at a token, in the FFNs with large
    shares of theirs, the one with the largest whose words hold what the model predicts there,
    nearer than chance; None for none, and for a model that predicts no word or does not show its
    units or its words."""
    of, model = recording.stream(stream), loaded(recording)
    is_read = not model.capabilities.no_readout and of is logit_lens.read_stream(recording)
    if not (is_read and model.capabilities.weights):
        return None
    answer, best = argmax_id(model.logits(recording, stream, token)), (0.0, 0, 0)
    try:
        for layer in residual.largest_ffns(of, token)[:MOST_FFNS]:
            hidden = model.ffn_activations(recording, stream, layer, token)
            shares = ffn.shares_of_update(hidden)[:-1]
            least = flow.least_cosine(model, hidden.writes.shape[1])
            units = np.argsort(-shares, kind="stable")[:MOST_UNITS]
            units = units[shares[units] > 0]
            ids, cosines = model.nearest(hidden.writes[units], N_NEAREST)
            holds = units[((ids == answer) & (cosines >= least)).any(axis=1)]
            best = max([best, *((float(shares[at]), layer, int(at)) for at in holds[:1])])
    except (ValueError, AttributeError):  # of which the panel says why
        return None
    return HiddenUnit(*best[1:], answer) if best[0] > 0 else None
