"""A loaded model and its methods, the same for every source of weights.

Importing this module costs nothing: the code behind a method is imported when it is first
called."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from models.contract import path_integral
from models.contract.argument_validation import (
    attention_of,
    edits_of,
    expect_readout_of,
    expect_recording,
    expect_recording_of,
    expect_several,
    expect_text,
    of_attention,
    of_model,
    other_word,
    place_of,
    target_of,
    text_or_ids,
    texts_of,
    vectors_of,
    whole_number,
    word_of,
    words_of,
)
from models.contract.capabilities import Capabilities, TextGenerator
from models.contract.edits import Edit
from models.contract.notices import tell, tell_cut
from models.contract.recording import Card, Recording
from models.contract.results import (
    Attribution,
    Beam,
    Circuits,
    FFNActivations,
    HeadGradients,
    HeadScore,
    Jacobian,
    Lens,
    Neurons,
    Norm,
    ResidualGradients,
    Rotary,
    ScoreParts,
    ScorePath,
    SeededSampling,
    Sweep,
    TrainingStep,
)
from models.contract.spelling import there_are

MODELS = (__package__ or "").rpartition(".")[0]  # the package of all models
OWN = f"{MODELS}.own.own_source"  # the source of models in our own classes


def _complete(shares: np.ndarray, whole: float, steps: int) -> np.ndarray:
    """Integrated gradients as they are (token), with a warning where their sum misses the change of
    the score, `whole`."""
    total = float(shares.sum())
    if not abs(total - whole) <= path_integral.allowed(shares, whole):
        tell(
            f"in {steps} steps the shares sum to {total:.4g} where the score changes by "
            f"{whole:.4g}; take more steps"
        )
    return shares


def _with_cut_warnings(recording: Recording) -> Recording:
    """The recording, with a warning where a text was longer than what the model reads."""
    card, (source, *target) = recording.model, recording.streams
    tell_cut(card.name, card.n_positions, source.tokens, recording.dropped)
    for each in target:
        tell_cut(card.name, card.n_positions, each.tokens, recording.target_dropped, "target")
    if not recording.text.strip() and all(source.special):
        tell(f"the text is empty: {card.name} reads its own special tokens alone")
    return recording


class Model:
    """A loaded model, shared by every reader and never changed.

    Layers, heads and tokens count from 0; negative ones from the end.

    card: its sizes and where it comes from. tokenizer: text to ids and back. source: the module
    that holds the first nine methods' code for this kind of model (`models.own.own_source`,
    `models.pretrained.hf_source`, `models.runtime.cluster`). recorded: the one recording that is
    all there is of the model, None for a model that runs. The methods from `norms` on read weights,
    and raise ValueError for a model that does not run in Headlight's own classes.
    """

    source: ClassVar[str]
    card: Card
    tokenizer: Any
    recorded: Recording | None = None

    @property
    def name(self) -> str:
        """The name that `registry.load` takes."""
        return self.card.name

    @cached_property
    def device(self) -> str:
        """Device on which its network runs, such as "cpu" or "cuda:0"; its recordings are
        numpy's."""
        network: Any = getattr(self, "network", None)
        first = next(network.parameters(), None) if hasattr(network, "parameters") else None
        return "cpu" if first is None else str(first.device)

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model."""
        return self._source.capabilities(self)

    def record(
        self,
        text: str | Sequence[int],
        edits: Edit | Iterable[Edit] = (),
        target: str | tuple[int, ...] | None = None,
    ) -> Recording:
        """One forward pass over the text under the edits, as a frozen Recording. text: as a str, or
        as token ids, which are read as they are, without special tokens around them; what a
        tokenizer hands out has such, also of a pair of texts. target: what a translator's decoder
        reads, as a text or as token ids; where None, its own translation. Of more tokens than the
        model reads, `card.n_positions`, the last are left out, with a warning; `dropped` counts
        them.

        Raises ValueError for edits that the model or the text cannot follow and for ids that the
        vocabulary does not have, and TypeError for what is no text or no edit.
        """
        source = text_or_ids(text, getattr(self.tokenizer, "separator", None))
        follows = of_model(edits_of(edits), self.card)
        return _with_cut_warnings(self._source.record(self, source, follows, target_of(target)))

    @property
    def reads_batches(self) -> bool:
        """True where `record_batch` takes less time than as many calls of `record`."""
        return False

    def record_batch(self, texts: Sequence[str | Sequence[int]]) -> tuple[Recording, ...]:
        """Recordings of the first of several texts without edits, at least one: in one pass where
        the model can, of as many as fit into it. A text as in `record`."""
        return tuple(self.record(text) for text in texts)

    def record_all(
        self, texts: Iterable[str | Sequence[int]], edits: Edit | Iterable[Edit] = ()
    ) -> tuple[Recording, ...]:
        """Recordings of all of several texts, each as by `record`; without edits several in one
        pass where the model can (`reads_batches`), which rounds otherwise."""
        sources = texts_of(texts, getattr(self.tokenizer, "separator", None))
        of_all = edits_of(edits)
        if of_all or not self.reads_batches:
            return tuple(self.record(each, of_all) for each in sources)
        recordings: list[Recording] = []
        while len(recordings) < len(sources):
            recordings += map(_with_cut_warnings, self.record_batch(sources[len(recordings) :]))
        return tuple(recordings)

    def lens(
        self,
        recording: Recording,
        stream: str,
        top: int = 10,
        token: int | None = None,
        sites: tuple[str, ...] | None = None,
        ids: tuple[int, ...] = (),
    ) -> Lens:
        """The logit lens: what every state of a stream would predict if it were the last; of one
        token alone where it is given, and of some sites and the last where these are. ids: words
        whose rank is told at every site, as `Lens.ids`.

        Raises ValueError for words of no one token."""
        place = expect_recording_of(self, recording, stream, 0 if token is None else token)
        at = None if token is None else place
        top, sites = whole_number("top", top, 0), (sites,) if isinstance(sites, str) else sites
        if sites is not None:
            sites = tuple(expect_several("sites", sites))
        ids = tuple(word_of(self.card, id) for id in ids)
        if ids and token is None:
            raise ValueError("ids have their ranks at one token: name it, as token=0")
        return self._source.lens(self, recording, stream, top, at, sites, ids)

    def logits(self, recording: Recording, stream: str, token: int | None = None) -> np.ndarray:
        """Scores over the vocabulary, (id), at one token of a stream; at all of them, (token, id),
        where None."""
        if token is None:
            expect_recording_of(self, recording, stream)
            every = range(len(recording.stream(stream).tokens))
            return np.stack([self.logits(recording, stream, each) for each in every])
        token = expect_recording_of(self, recording, stream, token)
        return self._source.logits(self, recording, stream, token)

    def class_logits(self, recording: Recording) -> np.ndarray:
        """Scores of the classes of a text, (class), in the order of `capabilities.classes`, under
        the recording's edits. Raises ValueError for a model that is no classifier of texts."""
        expect_recording_of(self, recording)
        if not self.capabilities.classes:
            raise ValueError(f"{self.name} tells no classes of texts apart")
        return self._source.class_logits(self, recording)

    def attribute(
        self, recording: Recording, stream: str, token: int, id: int, against: int | None = None
    ) -> Attribution:
        """Direct logit attribution: a word's logit at a token as a sum over the model's parts; with
        `against` the difference to another word's logit."""
        token = expect_recording_of(self, recording, stream, token)
        id, against = word_of(self.card, id), other_word(self.card, against)
        return self._source.attribute(self, recording, stream, token, id, against)

    def head_sources(
        self, recording: Recording, stream: str, token: int, id: int, against: int | None = None
    ) -> dict[str, np.ndarray]:
        """Contribution of each head to a word's logit at a token from each key, by the attention's
        name: (layer, head, key), NaN for a head whose output an edit took from elsewhere."""
        token = expect_recording_of(self, recording, stream, token)
        lens = self._readout("logit_lens")
        id, against = word_of(self.card, id), other_word(self.card, against)
        return lens.head_sources(self, recording, stream, token, id, against)

    def score_parts(
        self,
        recording: Recording,
        attention: str,
        layer: int,
        head: int,
        query: int,
        key: int,
        against: int | None = None,
    ) -> ScoreParts:
        """The score of one query and key of a head as a sum over what wrote the query and what
        wrote the key; with `against` the difference to another key's score."""
        cell = HeadScore(attention, layer, head, query, key, against)
        cell = of_attention(self, recording, cell)
        return self._readout("score_parts").score_parts(self, recording, cell)

    def score_path(
        self,
        recording: Recording,
        attention: str,
        layer: int,
        head: int,
        query: int,
        key: int,
        against: int | None = None,
    ) -> ScorePath:
        """The strongest way by which such a score came about, back through earlier heads to an
        embedding, and the weight without each of its steps."""
        cell = HeadScore(attention, layer, head, query, key, against)
        cell = of_attention(self, recording, cell)
        return self._readout("score_parts").score_path(self, recording, cell)

    def gradients(
        self,
        recording: Recording,
        stream: str,
        token: int,
        id: int | None = None,
        against: int | None = None,
        sites: Iterable[str] = (),
        attention: str = "",
    ) -> ResidualGradients:
        """The gradient of a word's logit at a token of the last stream, the likeliest word's where
        None, back to every state of a stream: a translator's own, or that of its source; with
        `against` of the difference to another word's logit. sites: those of the stream at which the
        gradients are kept as vectors; attention: the one whose weights have theirs kept. Raises
        ValueError for a site or an attention that is not there, and where the model's code has no
        one tensor for it."""
        token = expect_readout_of(self, recording, stream, token)
        id, against = other_word(self.card, id), other_word(self.card, against)
        wanted = tuple(expect_several("sites", (sites,) if isinstance(sites, str) else sites))
        there = recording.stream(stream).sites
        if missing := [each for each in wanted if each not in there]:
            near = there_are(missing[0], there)
            raise ValueError(f"stream {stream} has no site {missing[0]!r}; {near}")
        if attention:
            names = [each.name for each in recording.attention]
            attention = attention_of(self.card, names, attention)
        return self._source.gradients(
            self, recording, stream, token, id, against, wanted, attention
        )

    def head_gradients(
        self,
        recording: Recording,
        attention: str,
        layer: int,
        targets: Sequence[tuple[int, int]],
    ) -> HeadGradients:
        """The gradient of a loss at an attention's layer: what reaches W_O, and what each head gets
        of it. targets: (token of the last stream, id that is right there); the loss is the mean of
        -ln p. Raises ValueError for what is not there and for a model without a readout."""
        cell = of_attention(self, recording, HeadScore(attention, layer, 0, 0, 0))
        last = recording.streams[-1].name
        places = [
            (expect_recording_of(self, recording, last, token), word_of(self.card, id))
            for token, id in targets
        ]
        return self._readout("gradients").head_gradients(
            self, recording, attention, cell.layer, places
        )

    def training_step(
        self,
        recording: Recording,
        targets: Sequence[tuple[int, int]],
        rate: float,
        other: Recording,
        other_targets: Sequence[tuple[int, int]],
    ) -> TrainingStep:
        """One step of gradient descent on a recording, on a copy of the model, and what it did to
        another recording. targets: (token of the last stream, id that is right there), of each; the
        loss is the mean of -ln p. The scores are those at the last target. Raises ValueError as
        `head_gradients`, and for a rate that is not above 0."""
        if not 0 < rate < float("inf"):
            raise ValueError(f"a learning rate is a number above 0, and not {rate}")
        checked = []
        for of, listed in ((recording, targets), (other, other_targets)):
            last = of.streams[-1].name
            places = [
                (expect_recording_of(self, of, last, token), word_of(self.card, id))
                for token, id in listed
            ]
            checked.append((of, places))
        (own, places), (another, others) = checked
        return self._readout("training_step").training_step(
            self, own, places, rate, another, others
        )

    def nearest(self, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
        """The words whose embeddings have the largest cosine with vectors (row, d_model): ids and
        cosines, each (row, rank); at most `top` of them. Raises ValueError for vectors of another
        width, and for numbers that are not finite."""
        top = whole_number("top", top, 1)
        return self._source.nearest(self, vectors_of(vectors), top)

    def generate(
        self,
        text: str,
        prefix: tuple[int, ...] = (),
        edits: Edit | Iterable[Edit] = (),
    ) -> TextGenerator:
        """A text written a token at a time: a decoder continues `text`, a translator translates it.
        prefix: ids that were written already. edits: those under which all tokens are read, also
        those that are written.

        Raises ValueError for a model that does not write, for edits that it cannot follow, and for
        a text that leaves no room.
        """
        under = of_model(edits_of(edits), self.card)
        if not isinstance(text, str):
            raise TypeError(
                "a text is a str here; token ids are written on after as prefix: "
                'generate("", prefix=ids)'
            )
        return self._source.generate(self, text, words_of(self.card, prefix), under)

    def resume(self, recording: Recording, n_read: int) -> TextGenerator:
        """A text written on after the first `n_read` tokens of a decoder's recording, under its
        edits.

        Raises ValueError for another number of tokens than it has, where a model that reads their
        text once more reads other tokens, and where there is no room for one more.
        """
        n_read = self._expect_resumable(recording, n_read)
        stream = recording.streams[-1]
        text = recording.text
        if n_read < len(stream.tokens):
            text = text[: max(0, int(stream.spans[:n_read, 1].max()))]
        writing = self.generate(text, (), recording.edits)
        if [*map(int, writing.ids)] != stream.ids[:n_read].tolist():
            raise ValueError("a part of this text is read as other tokens")
        return writing

    def _expect_resumable(self, recording: Recording, n_read: int) -> int:
        expect_recording_of(self, recording)
        if self.card.kind != "decoder":
            raise ValueError(f"{self.name} is no decoder, so it writes on after no recording")
        n, n_read = len(recording.streams[-1].tokens), whole_number("n_read", n_read)
        if not 1 <= n_read <= n:
            raise ValueError(f"a text is written on after 1 to {n} tokens, not after {n_read}")
        return n_read

    def beams(
        self, text: str, strategy: int | SeededSampling, edits: Edit | Iterable[Edit] = ()
    ) -> Iterator[tuple[Beam, ...]]:
        """Beam search for the translation of a text under edits, one step at a time. strategy: so
        many of the best hypotheses, best first, or the settings by which one is sampled. Raises
        ValueError for a model that does not translate, and for no hypotheses."""
        if not isinstance(strategy, SeededSampling):
            strategy = whole_number("the number of beams", strategy, 1)
        under = of_model(edits_of(edits), self.card)
        return self._source.beams(self, expect_text(text), strategy, under)

    def norms(self, stream: str, edits: Edit | Iterable[Edit] = ()) -> dict[str, Norm]:
        """Every LayerNorm of a stream by its place, such as "0.attn": gain and bias (d_model), eps,
        and whether it subtracts the mean."""
        return self._readout("weights").norms(self, stream, edits_of(edits))

    def outputs(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """W_O of every attention by its label: (layer, head, d_head, d_model), and its bias
        (layer, d_model)."""
        return self._readout("weights").outputs(self)

    def projections(self, attention: str, layer: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """W_Q, W_K and W_V of an attention by its label, as "q", "k" and "v": (d_model, heads x
        d_head), and its bias (heads x d_head); without those whose product is normalised or turned
        before it is used."""
        weights = self._readout("weights")
        return weights.projections(self, *self._place(attention, layer))

    def rotary(self, attention: str, layer: int) -> Rotary | None:
        """Rotation of queries and keys of an attention's layer by their positions; None where
        nothing turns them, or they are normalised first."""
        weights = self._readout("weights")
        return weights.rotary(self, *self._place(attention, layer))

    def _place(self, attention: str, layer: int) -> tuple[str, int]:
        """The name of an attention, and a layer counted from 0."""
        name = attention_of(self.card, self.capabilities.attention, attention)
        return name, place_of("layer", layer, self.card.n_layer)

    def embeddings(self, ids: np.ndarray | None = None) -> np.ndarray:
        """Every word's embedding as the stream begins with it, (id, d_model); those of some `ids`
        where they are given."""
        words = None if ids is None else np.array(words_of(self.card, ids), int)
        return self._readout("weights").embeddings(self, words)

    def jacobian(self, recording: Recording, stream: str, token: int, site: str) -> Jacobian:
        """The Jacobians of a sub-layer, such as "0.attn", at one token: of its output, of the sum,
        and after its LayerNorm."""
        token = expect_recording_of(self, recording, stream, token)
        return self._readout("gradients").jacobian(self, recording, stream, token, site)

    def integrated_gradients(
        self,
        recording: Recording,
        stream: str,
        token: int,
        id: int | None = None,
        steps: int = path_integral.STEPS,
        against: int | None = None,
        baseline: str | int | Sequence[int] | None = None,
    ) -> np.ndarray:
        """Integrated gradients (Sundararajan et al. 2017) of a word's logit at a token of the last
        stream, the likeliest word's where None: a share for each token of a stream, (token); with
        `against` of the difference to another word's logit. They sum to the logit less the one at
        the baseline, to within 1 %: the way between the two is cut into parts where the logit
        bends, at most `steps` of them, with a warning where that is not enough.

        baseline: where every embedding of the stream is 0 where None; an id, "[PAD]" or "[MASK]" in
        the place of every token that is text; or another text, or ids, of as many tokens. Raises
        ValueError for no steps, and for a baseline that the model cannot read so."""
        token = expect_readout_of(self, recording, stream, token)
        of = token, other_word(self.card, id), other_word(self.card, against)
        steps, begin = whole_number("steps", steps, 1), self._baseline(recording, stream, baseline)
        shares, whole = self._source.integrated(self, recording, stream, of, steps, begin)
        return _complete(shares, whole, steps)

    def class_attribution(
        self,
        recording: Recording,
        id: int | None = None,
        steps: int = path_integral.STEPS,
        against: int | None = None,
        baseline: str | int | Sequence[int] | None = None,
    ) -> np.ndarray:
        """Integrated gradients of the score of a class of a text, by its place among
        `capabilities.classes`, the likeliest class where None: a share for each token, (token);
        with `against` of the difference to another class's score. They sum to the score less the
        one at the baseline, in at most `steps` parts, as `integrated_gradients` do. Raises
        ValueError for a model that is no classifier of texts, for a class that is not there, for no
        steps, and for a baseline that the model cannot read so."""
        of = self._class(recording, id, against), against
        begin = self._baseline(recording, recording.streams[0].name, baseline)
        steps = whole_number("steps", steps, 1)
        shares, whole = self._source.class_attribution(self, recording, of, steps, begin)
        return _complete(shares, whole, steps)

    def _baseline(self, recording: Recording, stream: str, baseline: Any) -> tuple[int, ...] | None:
        return path_integral.baseline_ids(self, recording, stream, baseline)

    def class_parts(
        self, recording: Recording, id: int | None = None, against: int | None = None
    ) -> Attribution:
        """Direct logit attribution of a class of a text: its score as a sum over the model's parts,
        by its place among `capabilities.classes`, the likeliest class where None; with `against`
        the difference to another class's score.

        Where a dense layer and an activation stand before the scores (`capabilities.pooler`), each
        component of the activation has its mean slope on the way from 0, and `explained` says how
        well that holds. Raises ValueError for a model that is no classifier of texts, for a class
        that is not there, and where the scores are read in another way."""
        place = self._class(recording, id, against)
        return self._source.class_parts(self, recording, place, against)

    def _class(self, recording: Recording, id: int | None, against: int | None) -> int:
        """The place of a class, the likeliest where None. Raises ValueError as `class_parts`."""
        scores = self.class_logits(recording)
        for each in (id, against):
            if each is not None and not 0 <= whole_number("a class", each) < len(scores):
                raise ValueError(f"there are scores 0 to {len(scores) - 1}, and none {each}")
        return int(scores.argmax()) if id is None else id

    def ffn_activations(
        self, recording: Recording, stream: str, layer: int, token: int
    ) -> FFNActivations:
        """The hidden units of a layer's feed-forward network at one token, and what each writes."""
        token = expect_recording_of(self, recording, stream, token)
        layer = place_of("layer", layer, self.card.n_layer)
        return self._readout("ffn").ffn_activations(self, recording, stream, layer, token)

    def neurons(
        self,
        recording: Recording,
        stream: str,
        layer: int,
        token: int,
        id: int,
        against: int | None = None,
        n: int = 24,
    ) -> Neurons:
        """The hidden units of a layer's FFN by what each adds to a word's logit at a token; of the
        `n` strongest when they fire, and the 6 words that each raises and lowers most."""
        token = expect_recording_of(self, recording, stream, token)
        layer = place_of("layer", layer, self.card.n_layer)
        id, against = word_of(self.card, id), other_word(self.card, against)
        return self._readout("ffn").neurons(self, recording, stream, layer, token, id, against, n)

    def circuits(
        self,
        attention: str,
        layer: int,
        head: int,
        ids: tuple[int, ...],
        values: np.ndarray | None = None,
    ) -> Circuits:
        """A head's QK and OV circuits on words, each by itself: which words it attends to, and what
        it writes for them, the 8 words of most effect each; with values (word, d_head) for
        these."""
        circuits = self._readout("circuits")
        attention, layer = self._place(attention, layer)
        head, words = place_of("head", head, self.card.n_head), words_of(self.card, ids)
        vectors = None if values is None else vectors_of(values)
        if vectors is not None and vectors.shape != (shape := (len(words), self.card.d_head)):
            raise ValueError(f"values have the shape {shape}, not {vectors.shape}")
        return circuits.circuits(self, attention, layer, head, words, vectors)

    def patch_heads(
        self,
        text: str | Sequence[int],
        donor: str | Sequence[int],
        attention: str,
        token: int,
        id: int,
        against: int,
        edits: Edit | Iterable[Edit] = (),
    ) -> Sweep:
        """Activation patching, head by head: each head's output taken from the run on `donor`, and
        the change of logit(id) - logit(against) at a token."""
        return self._patching().patch_heads(
            self,
            text_or_ids(text),
            text_or_ids(donor),
            attention,
            whole_number("token", token),
            *words_of(self.card, (id, against)),
            of_model(edits_of(edits), self.card),
        )

    def patch_sites(
        self,
        text: str | Sequence[int],
        donor: str | Sequence[int],
        stream: str,
        token: int,
        id: int,
        against: int,
        edits: Edit | Iterable[Edit] = (),
    ) -> Sweep:
        """Activation patching, state by state: each site at each token taken from the run on
        `donor`, and the change of the same difference."""
        return self._patching().patch_sites(
            self,
            text_or_ids(text),
            text_or_ids(donor),
            stream,
            whole_number("token", token),
            *words_of(self.card, (id, against)),
            of_model(edits_of(edits), self.card),
        )

    def labels(self, ids: Iterable[int]) -> list[str]:
        """Tokens of the vocabulary as a person reads them."""
        return [
            self.tokenizer.label(whole_number("id", token, 0))
            for token in expect_several("ids", ids)
        ]

    # What it is, in a word or a number.

    def embedding_scale(self) -> float | None:
        """The factor of a word's embedding before anything is added: √d_model in the paper, 1 in
        models that leave it as it is; None where a model in its own code does not say."""
        return float(self._embedding().scale) if self.capabilities.weights else None

    def word_vector(self) -> str:
        """A formula of the first vector in the stream for a word."""
        if not self.capabilities.weights:
            return "embedding"
        scale = "√d × " if self.embedding_scale() != 1 else ""
        return f"{scale}embedding{'' if self._embedding().segment is None else ' + segment'}"

    def position_table(self) -> np.ndarray | None:
        """The table of positions that was learned, (position, d_model); None for a model that adds
        sinusoids or nothing, or does not show it."""
        features = self.capabilities
        if not features.weights or features.positions != "learned":
            return None
        return np.array(self._embedding().position.detach().cpu().numpy())

    def readout_kind(self) -> str | None:
        """The kind of its readout: "tied" to the embedding, "untied" with a matrix of its own, with
        a "transform" before the embedding, in its "own code", or None without one."""
        features = self.capabilities
        if not features.logits:
            return None
        if not features.weights:
            return "own code"
        linear = "untied" if features.untied else "tied"
        return linear if features.linear_readout else "transform"

    def shows_writes(self, recording: Recording) -> bool:
        """True where what each head writes can be known: the recording has its values, and W_O can
        be had."""
        expect_recording(recording)
        return all(each.opens for each in recording.attention) and bool(self.capabilities.weights)

    def end_token(self, logits: np.ndarray) -> tuple[int, str] | None:
        """The likeliest of the tokens that end its output, by the scores (id) after it, and its
        label; None where it has none."""
        ends = [token for token in sorted(self.tokenizer.eos_ids) if token < len(logits)]
        if not ends:
            return None
        token = max(ends, key=lambda each: logits[each])
        return token, self.tokenizer.label(token)

    def has_end(self) -> bool:
        """True where some token ends its output."""
        return bool(self.tokenizer.eos_ids)

    def is_end(self, token: int) -> bool:
        """True for a token that ends what it writes."""
        return token in self.tokenizer.eos_ids and self.capabilities.writes

    def is_special(self, token: int) -> bool:
        """True for a token that is no text."""
        return token in self.tokenizer.special

    def first_token(self, text: str) -> tuple[int, int] | None:
        """The first token id of a text alone, and the number of its tokens. None for an empty
        text."""
        ids = self.tokenizer.ids([expect_text(text).encode("utf-8", "replace").decode("utf-8")])[0]
        return (ids[0], len(ids)) if ids else None

    def _embedding(self) -> Any:
        return getattr(self, "network").embedding  # noqa: B009

    @property
    def _source(self) -> Any:
        return self._placed(import_module(self.source))

    def _patching(self) -> Any:
        """The module of sweeps. Raises ValueError where nothing can be run."""
        if not hasattr(self._source, "patch_run") and self.source != OWN:
            return self._readout("patching")
        return self._placed(import_module(f"{MODELS}.readouts.patching"))

    def _readout(self, name: str) -> Any:
        if self.source != OWN:
            raise ValueError(import_module(self.source).hidden(self, name))
        return self._placed(import_module(f"{MODELS}.readouts.{name}"))

    def _placed(self, module: Any) -> Any:
        """A module whose functions run where the network lies, in the bits of its weights."""
        if "torch" not in sys.modules:
            return module
        from models.network.devices import Placed, halved

        return module if self.device == "cpu" and not halved() else Placed(module, self.device)
