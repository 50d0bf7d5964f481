"""The panel on a head's QK and OV circuit: which keys a query matches, and what attending to a key
writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from explorer.analysis import soft_lookup
from explorer.analysis.facts import RecordingFacts
from explorer.analysis.word_classes import is_word
from explorer.figures.formatting import signed
from explorer.figures.kinds import BarRow, Bars
from explorer.panels import spec
from explorer.panels.choice import OPENS, Choice
from explorer.panels.selection import (
    FirstAttention,
    LookupHead,
    LookupLayer,
    LookupQuery,
    Selection,
    place_of,
    select,
    typed_word,
)
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.recording import Recording
from models.contract.results import Circuits
from models.runtime.caching import kept, loaded
from models.runtime.run import Run

N_ROWS, N_LOWERED = 8, 4


@dataclass(frozen=True)
class CircuitWords:
    """The ids of the word that is the query and of the one that is attended to."""

    query: int
    key: int


VALUES = {"Bare": "Bare word", "Here": "In this text"}
KEYS = {"Text": "In this text", "All": "In the vocabulary"}


def _keys(run: Run, chosen: Mapping[str, Any]) -> range:
    """The keys of an attention."""
    return range(select(run, attention=chosen.get("attention", "")).attention.pattern.shape[3])


def _vocabulary(run: Run, chosen: Mapping[str, Any]) -> range:
    """The ids of a run's model."""
    return range(run.recording().model.n_vocab)


@spec.panel
def circuits(
    run: Run,
    layer: LookupLayer = OPENS,
    head: LookupHead = OPENS,
    token: LookupQuery = OPENS,
    source: Annotated[
        int | None, Choice(_keys, name="look_key", of="text", help="the key that is attended to")
    ] = None,
    value: Annotated[str, Choice(VALUES, "Value of the key", name="look_as", menu=True)] = "Bare",
    keys: Annotated[str, Choice(KEYS, "Keys", name="look_keys", menu=True)] = "Text",
    word: Annotated[
        int | None,
        Choice(_vocabulary, "Any other word", "look_word", of="model", typed=typed_word, menu=True),
    ] = None,
    attention: FirstAttention = OPENS,
) -> Panel:
    """A head's QK and OV circuits for a query and a key: matching keys, and effects on the logits.

    source: the key, the one of the largest weight where None. value: "Bare", of the key's
    embedding, or "Here", the head's value of the key in this text. keys: those that match, of the
    "Text" or of "All" words. word: the id of a word that takes the place of query and key. Raises
    ValueError for a model that does not give its matrices.
    """
    selection = select(run, layer, head, token, attention)
    layer, head, _ = selection.at
    words = sentences("circuits", "circuits")
    if not loaded(selection.recording).shows_writes(selection.recording):
        raise ValueError(words("not_given", model=selection.model))
    weights = selection.attention.pattern[selection.at]
    place = place_of("token", int(weights.argmax()) if source is None else source, len(weights))
    chosen = _words(selection, place, word)
    both = chosen.query, chosen.key
    ids = soft_lookup.text_words(selection.recording, selection.attention, both)
    bare = loaded(selection.recording).circuits(selection.attention.name, layer, head, ids)
    at, writes = ids.index(chosen.key), bare
    in_context = value == "Here" and word is None
    if in_context:
        of = selection.recording, selection.attention.name, layer, head
        at, writes = 0, _circuits_here(*of, place)
    read = _read_words(selection, place) if word is None else _labels(selection, np.array(both))
    query, key = read
    is_of_text = keys == "Text" and word is None
    matches = _matches(selection, bare, ids.index(chosen.query), query, keys == "All")
    raised = _changes(selection, writes, at, key)
    changed = [row.label for row in raised.rows]
    copies = soft_lookup.copy_counts(bare)
    slots = {
        "key": key,
        "own": signed(float(writes.own[at])),
        "rank": f"{int(writes.own_rank[at]) + 1:,}",
        "n_vocab": f"{selection.recording.model.n_vocab:,}",
        "n": copies.n,
        "among_first": copies.among_first,
        "raised_count": copies.raised,
    }
    model = loaded(selection.recording)
    can = model.capabilities
    is_read = can.linear_readout and can.logits == selection.attention.query
    details = [*words.lines("details", **slots), words("here" if in_context else "bare")]
    if can.embedding_width is not None:
        details.append(words("narrow", width=can.embedding_width))
    elif not is_read:
        details.append(words("other_readout"))
    return Panel(
        title=words("title"),
        finding=_circuits_finding(
            selection,
            matches.rows[0].label,
            _allowed_match(selection, bare, ids.index(chosen.query)) if is_of_text else "",
            changed,
            (query, key),
        ),
        figures=(matches, raised) if key in changed else (matches,),  # the table has it
        table=soft_lookup.circuit_table(bare, model.labels),
        details=tuple(details),
        caption=(
            words("caption_here" if in_context else "caption", layer=layer, head=head, key=key),
        ),
        file=f"L{layer}H{head}-circuits",
    )


def _circuits_finding(
    selection: Selection, match: str, allowed: str, changed: Sequence[str], at: tuple[str, str]
) -> str:
    """Sentences on the key that a query matches by the words alone, and on the words that attending
    to a key changes; where the key is not among them, first that they are not readable. allowed:
    the word that it matches of those that it may attend to, which stands beside the one that it
    attends to; "" where the keys are not those of the text. changed: most raised first. at: (query,
    key)."""
    words, (query, key) = sentences("circuits", "circuits"), at
    most = selection.axes.keys[selection.strongest]
    is_hidden = bool(allowed) and match != allowed
    name = "masked" if is_hidden else "alone" if is_word(match) else "no_word"
    parts = [words(name, query=query, match=match, allowed=allowed)]
    if allowed:
        parts.append(words("agrees") if allowed == most else words("differs", most=most))
    is_read = key in changed
    written = words("favours" if is_read else "unreadable", key=key, raised=changed[0])
    return " ".join([*parts, written] if is_read else [written, *parts])


def _allowed_match(selection: Selection, circuit: Circuits, at: int) -> str:
    """The word of the text that a query scores highest of those that it may attend to."""
    allowed = _key_ids(selection)[selection.allowed[selection.query]]
    ranked = circuit.ids[soft_lookup.nearest_words(circuit, at, len(circuit.ids))]
    first = ranked[np.isin(ranked, allowed)][:1]
    return _labels(selection, first)[0] if len(first) else ""


def _key_ids(selection: Selection) -> np.ndarray:
    return selection.recording.stream(selection.attention.key).ids


def _read_words(selection: Selection, place: int) -> tuple[str, str]:
    """The token of the query and that of the key at a place, as the model reads them."""
    of, stream = selection.attention, selection.recording.stream
    return stream(of.query).tokens[selection.query], stream(of.key).tokens[place]


def _words(selection: Selection, place: int, word: int | None) -> CircuitWords:
    if word is not None:
        return CircuitWords(word, word)
    recording, attention = selection.recording, selection.attention
    queries, keys = (recording.stream(each).ids for each in (attention.query, attention.key))
    return CircuitWords(int(queries[min(selection.query, len(queries) - 1)]), int(keys[place]))


def _matches(
    selection: Selection, circuit: Circuits, at: int, query: str, everywhere: bool
) -> Bars:
    """The keys that a query scores highest, in the text or in the vocabulary."""
    words = sentences("circuits", "circuits")
    ids, scores, n_words = circuit.key_ids[at], circuit.keys[at], selection.recording.model.n_vocab
    if not everywhere:
        near = soft_lookup.nearest_words(circuit, at, len(circuit.ids))
        near = near[np.isin(circuit.ids[near], _key_ids(selection))]
        ids, scores, n_words = circuit.ids[near], circuit.among[at, near], len(near)
    ids, scores = ids[:N_ROWS], scores[:N_ROWS]
    return Bars(
        title=words("query_all" if everywhere else "query_here", query=query),
        note=words("best", n=len(ids), all=f"{n_words:,}") if len(ids) < n_words else "",
        columns=(words("score"),),
        rows=_word_rows(selection, ids, scores),
    )


def _changes(selection: Selection, circuit: Circuits, at: int, key: str) -> Bars:
    """The logits that attending to a key raises most, and those that it lowers most."""
    words = sentences("circuits", "circuits")
    ids = np.concatenate([circuit.up_ids[at][:N_ROWS], circuit.down_ids[at][:N_LOWERED][::-1]])
    logits = np.concatenate([circuit.up[at][:N_ROWS], circuit.down[at][:N_LOWERED][::-1]])
    n_words = f"{selection.recording.model.n_vocab:,}"
    return Bars(
        title=words("writes", key=key),
        note=words("ends", n=N_ROWS, low=N_LOWERED, all=n_words),
        columns=(words("logit"),),
        rows=_word_rows(selection, ids, logits),
    )


@kept
def _circuits_here(
    recording: Recording, attention: str, layer: int, head: int, key: int
) -> Circuits:
    """A head's circuits on one of its keys, with the value that it has for it in this text."""
    of = RecordingFacts(recording).attention(attention)
    id = int(recording.stream(of.key).ids[key])
    return loaded(recording).circuits(attention, layer, head, (id,), of.v[layer, head][[key]])


def _labels(selection: Selection, ids: np.ndarray) -> list[str]:
    """Words of the vocabulary, those of the text as they are called there, where all of an id are
    called alike: one byte may be part of several letters."""
    recording, attention = selection.recording, selection.attention
    named: dict[int, set[str]] = {}
    for name in (attention.query, attention.key):
        stream = recording.stream(name)
        for id, label in zip(stream.ids, stream.tokens):
            named.setdefault(int(id), set()).add(label)
    every = loaded(recording).labels(ids)
    alike = {id: next(iter(labels)) for id, labels in named.items() if len(labels) == 1}
    return [alike.get(int(id), label) for id, label in zip(ids, every)]


def _word_rows(selection: Selection, ids: np.ndarray, values: np.ndarray) -> tuple[BarRow, ...]:
    labels = _labels(selection, ids)
    return tuple(
        BarRow(label, (float(value),), (signed(float(value)),), key=str(int(id)))
        for label, id, value in zip(labels, ids, values)
    )
