"""The way of a token through a stream: what each layer brings to it, and the prediction there after
each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorer.analysis import flow as flow_analysis
from explorer.analysis import opening, predictions, residual, word_classes
from explorer.analysis.findings import word_groups
from explorer.panels.choice import Choice
from explorer.panels.predictions import Prediction, prediction_at
from models.contract.edits import HideToken
from models.contract.recording import CONTINUES, Attention, Recording, Stream
from models.contract.results import Attribution, Lens, Sampling
from models.runtime.caching import loaded
from models.runtime.run import Run

FEW_TOKENS = 48  # up to which what is brought to all of them is read at once
MUCH = 0.15  # of the answer's logit, for the attention that adds most to be told
N_LANES = 4  # likeliest words that race
LIKELY = 1000  # of the likeliest words, one of which an FFN is told to write


def can_hide(run: Run, chosen: Mapping[str, Any]) -> bool:
    """True for a model that fills in words: a token is hidden from it, so that its prediction is a
    question; not one that is special."""
    recording = run.recording()
    stream, token = recording.streams[0], chosen.get("token")
    capabilities = loaded(recording).capabilities
    fills = recording.model.kind == "encoder" and bool(capabilities.logits)
    token = opening.flow_word(recording, stream) if token is None else token
    return fills and HideToken in capabilities.edits and not stream.special[token]


def hiding(run: Run, chosen: Mapping[str, Any]) -> tuple[bool, ...]:
    """The options of hiding the token, none where it cannot be."""
    return (True, False) if can_hide(run, chosen) else ()


Hidden = Annotated[
    bool | None,
    Choice(hiding, "Hide it from the model", name="flow_hide", suits=can_hide),
]


@dataclass(frozen=True, eq=False)
class Way:
    """The way of a token through one stream: the recording that is drawn, the stream, the token,
    and the tokens with a row of their own."""

    recording: Recording
    stream: Stream
    token: int

    @property
    def is_first(self) -> bool:
        """True for the way through the first stream."""
        return self.stream is self.recording.streams[0]

    @cached_property
    def layers(self) -> dict[int, tuple[residual.SubLayer, ...]]:
        """The sub-layers by layer."""
        return flow_analysis.in_layers(self.stream)

    def ffn(self, layer: int) -> residual.SubLayer | None:
        """The feed-forward network of a layer, None where it has none."""
        return next((each for each in self.layers[layer] if each.place == "ffn"), None)

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The attentions that write to the stream."""
        return tuple(each for each in self.recording.attention if each.query == self.stream.name)

    def shares(
        self, attention: Attention, layer: int, queries: Sequence[int]
    ) -> flow_analysis.KeyShares:
        """Contribution of an attention to some tokens in a layer; shares of weights where the model
        does not show its values."""
        at = flow_analysis.layer_numbers(attention).index(layer)
        if not loaded(self.recording).shows_writes(self.recording):
            return flow_analysis.weight_shares(attention, at, queries)
        outputs = loaded(self.recording).outputs()[attention.name]
        return flow_analysis.key_shares(self.recording, attention, outputs, at, queries)

    @cached_property
    def to_tokens(self) -> dict[tuple[str, int], flow_analysis.KeyShares]:
        """Contribution of each attention to all tokens of a short text, to the token of another, by
        its name and layer."""
        return {
            (each.name, layer): self.shares(each, layer, self.queries)
            for each in self.attentions
            for layer in flow_analysis.layer_numbers(each)
        }

    @property
    def queries(self) -> list[int]:
        """The tokens of `to_tokens`."""
        n = len(self.stream.tokens)
        return list(range(n)) if n <= FEW_TOKENS else [self.token]

    @cached_property
    def to_token(self) -> dict[tuple[str, int], flow_analysis.KeyShares]:
        """Contribution of each attention to the token, by its name and layer."""
        at = [self.queries.index(self.token)]
        return {place: each.only(at) for place, each in self.to_tokens.items()}

    def to_others(self, attention: Attention, layer: int, others: Sequence[int]) -> np.ndarray:
        """Contribution of all heads of an attention to other tokens, (query, key)."""
        whole = self.to_tokens[attention.name, layer]
        is_there = {*others} <= {*self.queries}
        of = whole.only(others) if is_there else self.shares(attention, layer, others)
        return np.nan_to_num(of.shares.sum(0))

    def brought(self, key: Stream) -> np.ndarray:
        """Amount that is brought to the token from each token of a stream in all layers, by the
        sizes of the shares."""
        total = np.zeros(len(key.tokens))
        for attention in self.attentions:
            if attention.key == key.name:
                for layer in flow_analysis.layer_numbers(attention):
                    shares = self.to_token[attention.name, layer].shares[:, 0]
                    total += np.nan_to_num(np.abs(shares.sum(0)))
        return total


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways of a token of the first stream: the run as it was asked for, the one that is drawn,
    in which the token may be hidden, and one way through each stream."""

    run: Run
    drawn: Run
    ways: tuple[Way, ...]
    is_hidden: bool


def ways_of(run: Run, token: int, hide: bool | None) -> Ways:
    """The ways of a token of a run. hide: it is hidden from a model that fills in words, as it is
    where None."""
    is_hidden = can_hide(run, {"token": token}) and hide is not False
    drawn = run.under((*run.edits, HideToken(token))) if is_hidden else run
    recording = drawn.recording()
    ways = tuple(
        Way(recording, stream, token if at == 0 else aligned(recording, stream, token))
        for at, stream in enumerate(recording.streams)
    )
    return Ways(run, drawn, ways, is_hidden)


def asked_place(run: Run, token: int, hide: bool | None = None) -> int | None:
    """The place of the last stream whose word is the question at a token of the first: the token
    itself where it is hidden, else the one that is written next. None for a model that predicts no
    word, and where the token is read. hide: as of `ways_of`."""
    recording = run.recording()
    if run.loaded.capabilities.no_readout:
        return None
    if recording.model.kind == "encoder":
        return token if can_hide(run, {"token": token}) and hide is not False else None
    is_single = len(recording.streams) == 1
    return 1 + (token if is_single else aligned(recording, recording.streams[-1], token))


def aligned(recording: Recording, stream: Stream, token: int) -> int:
    """The token of a further stream that attends most to a token of the first one, on average over
    the heads."""
    for each in recording.attention:
        if each.query == stream.name and each.key == recording.streams[0].name:
            return int(each.pattern[..., token].mean((0, 1)).argmax())
    return 0


def attributed(
    recording: Recording, stream: str, token: int, id: int, against: int | None = None
) -> Attribution | None:
    """The logit of a word (id), or its difference from another's, in parts, None where the model's
    cannot be taken apart."""
    try:
        return loaded(recording).attribute(recording, stream, token, id, against)
    except ValueError:
        return None


class AnsweringHead(NamedTuple):
    """A head that adds to the logit of an answer: its attention, its places there, and the word
    that it gives the most."""

    attention: Attention
    layer: int
    head: int
    key: int


def answering_head(
    plain: Recording,
    drawn: Recording,
    query: int,
    word: int,
    against: int | None = None,
    *,
    adds: Additions | None = None,
) -> AnsweringHead | None:
    """The head that adds most to the logit of a word (id), or to its difference from another's, at
    a token of the last stream, of those whose largest weight is on another word of content. plain:
    the recording without what hides the token in `drawn`; the weight is the largest in both. adds:
    what is known of that already. None for no such head, and for a model whose logits cannot be
    taken apart."""
    last = drawn.streams[-1]
    if adds is None:
        whole = attributed(drawn, last.name, query, word, against)
        heads = {
            (each.attention, each.layer, each.head): each.value
            for each in (whole.parts if whole else ())
            if each.kind == "head"
        }
    else:
        heads = adds.of_heads()
    for (name, number, head), value in sorted(heads.items(), key=lambda each: -each[1]):
        if value <= 0:
            break
        of = next(each for each in plain.attention if each.name == name)
        other = next(each for each in drawn.attention if each.name == name)
        layer = flow_analysis.layer_numbers(of).index(number)
        at = layer, head, query
        key, stream = int(of.pattern[at].argmax()), plain.stream(of.key)
        groups = word_groups(plain, stream.name)
        kinds = word_classes.classes([groups.labels[each] for each in groups.of])
        is_other = (of.key != last.name or key != query) and not stream.special[key]
        if is_other and kinds[key] == word_classes.CONTENT and other.pattern[at].argmax() == key:
            return AnsweringHead(of, layer, head, key)
    return None


@dataclass(frozen=True, eq=False)
class Additions:
    """Additions of a model's parts to the logit of an answer against that of its rival at the end
    of a way. heads (layer, head, key): by the attention's name, NaN as in `Model.head_sources`."""

    way: Way
    heads: Mapping[str, np.ndarray]

    def of_heads(self) -> dict[tuple[str, int, int], float]:
        """The part of each head by its attention's name, its layer's number and its own, without
        those that an edit took from elsewhere."""
        return {
            (each.name, number, head): float(value)
            for each in self.way.attentions
            if each.name in self.heads
            for number, values in zip(
                flow_analysis.layer_numbers(each), self.heads[each.name].sum(-1)
            )
            for head, value in enumerate(values)
            if np.isfinite(value)
        }

    def of_word(self, attention: Attention, layer: int, head: int, key: int) -> float:
        """The part of a head from the word that a key is of. layer: the model's own number."""
        at = flow_analysis.layer_numbers(attention).index(layer)
        of = word_groups(self.way.recording, attention.key).of
        own = np.flatnonzero(np.asarray(of) == of[key])
        return float(np.nan_to_num(self.heads[attention.name][at, head, own]).sum())

    def at(self, attention: Attention, layer: int) -> np.ndarray:
        """The parts (head) of a layer, 0 of one that an edit took from elsewhere; none where they
        are not known. layer: the model's own number."""
        if attention.name not in self.heads:
            return np.zeros(0)
        number = flow_analysis.layer_numbers(attention).index(layer)
        return np.nan_to_num(self.heads[attention.name][number].sum(-1))

    def words(self, stream: Stream, most: int = 3) -> tuple[int, ...]:
        """The first tokens of the words of content of a stream that add or take most in all
        heads."""
        total = np.zeros(len(stream.tokens))
        for attention in self.way.attentions:
            if attention.key == stream.name and attention.name in self.heads:
                total += np.nan_to_num(self.heads[attention.name]).sum((0, 1))
        is_content = np.array(word_classes.classes(stream.tokens)) == word_classes.CONTENT
        is_content &= ~np.asarray(stream.special, bool)
        order = np.argsort(-np.abs(np.where(is_content, total, 0)), kind="stable")
        return tuple(int(each) for each in order[:most] if is_content[each])

    def strongest(self, layer: int) -> AnsweringHead | None:
        """The head of a layer that adds most from another whole word, and that word; None where
        none adds anything."""
        best: tuple[float, AnsweringHead] | None = None
        for attention in self.way.attentions:
            numbers = flow_analysis.layer_numbers(attention)
            if layer not in numbers or attention.name not in self.heads:
                continue
            keys, at = self.way.recording.stream(attention.key), numbers.index(layer)
            is_word = np.array([word_classes.is_word(each) for each in keys.tokens])
            is_word &= ~np.asarray(keys.special, bool)
            if attention.key == attention.query:
                is_word[self.way.token] = False
            values = np.where(is_word, np.nan_to_num(self.heads[attention.name][at]), 0)
            head, key = map(int, np.unravel_index(values.argmax(), values.shape))
            if values[head, key] > (best[0] if best else 0):
                best = float(values[head, key]), AnsweringHead(attention, at, head, key)
        return best[1] if best else None


def additions(way: Way, id: int, against: int) -> Additions | None:
    """Additions of parts to a word (id) against another at the end of a way, None for a model whose
    logits or heads cannot be taken apart."""
    recording, stream = way.recording, way.stream.name
    try:
        heads = loaded(recording).head_sources(recording, stream, way.token, id, against)
    except (ValueError, AttributeError):
        return None
    return Additions(way, heads)


class Middles(NamedTuple):
    """The lens between the attention and the FFN of some layers: the places of the words that race,
    by their id, and the likeliest word after the attention of each layer, by its order."""

    places: Mapping[int, tuple[int, ...]]
    guesses: Mapping[int, str]


@dataclass(frozen=True, eq=False)
class LensReading:
    """Prediction of the stream after each layer: the lens on the token at all sites, by layer the
    place of the site after it, -1 for before the first, the prediction at the end, and the words
    (id) that race."""

    lens: Lens
    ends: Mapping[int, int]
    way: Way
    prediction: Prediction
    ids: tuple[int, ...]

    def of(self, ids: tuple[int, ...]) -> LensReading:
        """The same reading of other words that race."""
        if set(ids) <= set(self.lens.ids):
            return replace(self, ids=ids)
        return replace(self, lens=_lens(self.way, self.lens.sites, ids), ids=ids)

    def places(self, id: int) -> tuple[int, ...]:
        """The places of a word that races in the vocabulary, from 1, before the first layer and
        after each."""
        ranks, first = self.lens.ranks[:, self.lens.ids.index(id)], self.ends.get(-1, 0)
        order = (first, *(self.ends[layer] for layer in self.way.layers))
        return tuple(int(ranks[site]) + 1 for site in order)

    @property
    def asked(self) -> str:
        """The word that there is to guess: the "next" one, or a "hidden" one; "" for none."""
        return {"next": "next", "seen": ""}.get(self.prediction.kind, "hidden")

    @property
    def leaders(self) -> tuple[int, ...]:
        """The words (id) that lead before the first layer and after each."""
        order = (self.ends.get(-1, 0), *(self.ends[layer] for layer in self.way.layers))
        return tuple(int(self.lens.top_ids[site, 0, 0]) for site in order)

    def middles(self, slow: Sequence[int]) -> Middles:
        """The places of the words and the guesses between the attention and the FFN of some
        layers, by their order; of one without a readout there those at its end."""
        layers = list(self.way.layers)
        there = flow_analysis.middle_sites(self.way.stream)
        sites = tuple(there[layers[each]] for each in slow if layers[each] in there)
        lens = _lens(self.way, sites, self.ids) if sites else self.lens

        def place(id: int, at: int) -> int:
            if layers[at] not in there:
                return self.places(id)[at + 1]
            return int(lens.ranks[lens.sites.index(there[layers[at]]), lens.ids.index(id)]) + 1

        def leads(at: int) -> int:
            if layers[at] not in there:
                return self.leaders[at + 1]
            return int(lens.top_ids[lens.sites.index(there[layers[at]]), 0, 0])

        places = {id: tuple(place(id, each) for each in slow) for id in self.ids}
        return Middles(places, dict(zip(slow, self._labels([leads(each) for each in slow]))))

    def is_raised(self, layer: int, id: int) -> bool:
        """True for a word (id) that the FFN of a layer brings forward, among the likely ones."""
        site = flow_analysis.middle_sites(self.way.stream).get(layer)
        if site is None:
            return False
        end = self.lens.sites[self.ends[layer]]
        before, after = _lens(self.way, (site, end), (id,)).ranks[:2, 0]
        return bool(after < before and after < LIKELY)

    def probability(self, layer: int) -> float:
        """Of the final answer, after a layer; -1 for before the first."""
        return float(np.exp(self.lens.logprob[self.ends[layer], 0]))

    def probability_before(self, layer: int) -> float:
        """Of the final answer, before a layer; after the first where that is not known."""
        return self.probability(max((each for each in self.ends if each < layer), default=layer))

    def change(self, layer: int) -> float:
        """Amount by which a layer changes the probability of the final answer."""
        return self.probability(layer) - self.probability_before(layer)

    def word(self, layer: int) -> tuple[str, float]:
        """The likeliest word after a layer and its probability."""
        site = self.ends[layer]
        id = int(self.lens.top_ids[site, 0, 0])
        return self.label(id), float(np.exp(self.lens.top_logprobs[site, 0, 0]))

    def label(self, id: int) -> str:
        """A word as it is written after the token."""
        if id not in self.labels:
            return self._labels([id])[0]
        return self.labels[id]

    @cached_property
    def labels(self) -> dict[int, str]:
        """The words that lead after some layer or race, as they are written after the token."""
        ids = sorted({*self.lens.top_ids.ravel().tolist(), *self.lens.ids})
        return dict(zip(ids, self._labels(ids)))

    def _labels(self, ids: Sequence[int]) -> list[str]:
        return [self.prediction.unmarked(each) for each in loaded(self.way.recording).labels(ids)]

    def drawn(self, temperature: float) -> predictions.Distribution:
        """Distribution that the next word is drawn from at a temperature."""
        of = self.prediction.of
        own = temperature == of.sampling.temperature
        return of if own else predictions.distribution(of.logits, Sampling(temperature))

    @cached_property
    def parts(self) -> Attribution | None:
        """The logit of the final answer in parts, None where the model's cannot be taken apart."""
        way = self.way
        return attributed(way.recording, way.stream.name, way.token, int(self.lens.final_id[0]))

    def added(self, layer: int, attention: str = "") -> float:
        """Amount that the attentions of a layer, or one of them, add to the logit of the final
        answer."""
        parts = self.parts.parts if self.parts else ()
        names = [attention] if attention else [each.name for each in self.way.attentions]
        return sum(
            each.value
            for each in parts
            if each.layer == layer and (each.kind == "attn" or each.attention in names)
        )

    @cached_property
    def adds_most(self) -> int | None:
        """The layer whose attention adds most to the logit of the final answer, None where that is
        little of it or the logit cannot be taken apart."""
        layer = max(self.way.layers, key=self.added)
        is_much = self.parts is not None and self.added(layer) >= MUCH * abs(self.parts.logit)
        return layer if is_much else None

    @property
    def telling_layer(self) -> int:
        """The layer that the answer is read off: whose attention adds most to it, else the one that
        raises its probability most."""
        if self.adds_most is not None:
            return self.adds_most
        return max(self.way.layers, key=self.change)

    @property
    def answer(self) -> str:
        """The word that the model predicts in the end."""
        return self.label(int(self.lens.final_id[0]))


def reading_of(run: Run, way: Way, also: Sequence[int] = ()) -> LensReading | None:
    """Prediction of the stream after each layer, None for a model that predicts no word. also:
    further words (id) that race."""
    if loaded(way.recording).capabilities.no_readout:
        return None
    on = prediction_at(run, way.token)
    sites = flow_analysis.layer_sites(way.stream)
    ids = tuple(dict.fromkeys((*racing(on), *also)))
    lens = _lens(way, tuple(sites.values()), ids)
    ends = {layer: lens.sites.index(site) for layer, site in sites.items()}
    ends[max(way.layers)] = len(lens.sites) - 1
    return LensReading(lens, ends, way, on, ids)


def _lens(way: Way, sites: tuple[str, ...], ids: tuple[int, ...]) -> Lens:
    """The lens on the token at some sites and the last."""
    model, stream = loaded(way.recording), way.stream.name
    return model.lens(way.recording, stream, 1, way.token, sites, ids)


def racing(on: Prediction) -> tuple[int, ...]:
    """The likeliest words (id) of a prediction, each in one spelling, and the word that stands in
    the text where no reader is asked for it."""
    model = loaded(on.at.recording)
    spelled = lambda id: model.labels([id])[0].removeprefix(CONTINUES)
    likeliest = flow_analysis.race(on.of.own, spelled, N_LANES)
    known = (*likeliest, *model.tokenizer.special)
    if on.at.recording.covered is not None or on.actual is None or on.actual in known:
        return likeliest
    return *likeliest[: N_LANES - 1], on.actual
