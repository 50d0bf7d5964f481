"""The only place that remembers: what has been computed, what is on screen, and what the address bar says.

Computed things are kept on one shelf, keyed by their cause (model, weights' fingerprint, text, edits) and bounded by bytes. What is on
screen stands in `st.session_state` under the names of `CHOICES`, the same names as in the address bar.
"""

from __future__ import annotations

import gc
import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from unicodedata import bidirectional
from urllib.parse import quote

import numpy as np
import streamlit as st

from models import library
from models.edits import Edit
from models.examples import EXAMPLES
from models.prediction import Attribution, Beam, Lens, softmax
from models.recording import Recording

DEFAULT_MODEL = "encoder"
PREFERRED = ("encoder", "decoder", "translator")  # for a page that the chosen model does not fit
PRESETS = EXAMPLES
DEFAULT_TEXT = next(iter(PRESETS.values()))
ANCHORS = "fruit, tree, juice / mac, os, app"  # the lecture notes' own, for a word of two senses
# The choices of a page that the address carries, with what each is when the address does not say.
CHOICES = {
    "attention": "",
    "layer": "",
    "head": "",
    "token": "",
    "source": "",
    "view": "Matrix",
    "scale": "Head",
    "tone": "Linear",
} | {
    "att_unit": "Tokens",
    "att_keep": "All",
    "att_sum": "As they are",
    "att_right": "",  # of one head's matrix: words, what is left out, the checks
    "beams": "1",
    "beam": "",
    "step": "",
    "cross": "",
    "target": "",  # of a translation
    "site": "",
    "lens": "Top word",
    "word": "",
    "against": "",
    "part": "",  # of the logit lens and a logit's parts
    "hidden": "",
    "said": "",
    "temperature": "1",
    "top_k": "0",
    "top_p": "1",
    "seed": "0",  # of words filled in and written
    "second": "",
    "mate": "",
    "anchors": ANCHORS,
    "stage": "",
    "stream": "",
    "plane": "PCA",
    "length": "Kept",
    "sums": "States",
    "specials": "Hidden",
    "space": "2-D",
    "curve": "Cosine",
    "trails": "Chosen",
    "frame": "All",  # of the paths of embeddings
    "ask": "Waves",
    "width": "",
    "places": "",
    "pair": "",
    "place": "",
    "shift": "",  # of positions: the screen, the table's sizes, a pair and a shift
    "order": "Shuffle",
    "shuffle": "1",
    "retyped": "",
    "positions": "Without",  # of the experiment with word order
    "claim": "",
    "claim_verdict": "All",
    "claim_note": "All notes",  # of claims: the open one, and which are shown
    "flow": "Writes",
    "write": "Turned",
    "norm": "Sigma before",
    "writer": "Length",
    "block": "0.attn",
    "spread": "Linear",
    "times": "3",
    "lag": "8",  # of the residual stream
    "edits": "",
    "donor": "",
    "only": "",
    "brush": "Zero",
    "seen": "",
    "effects": "Attention",
    "patch": "Heads",
    "fair": "",  # of the switches
    "sum_what": "Mean",
    "sum_layer": "",
    "sum_head": "",
    "sum_measure": "Length",  # of the summaries
    "look_at": "Hard",
    "look_temperature": "1",
    "look_rule": "2",
    "look_layout": "Arcs",
    "look_heads": "One",
    "look_before": "Weights",  # of the lookup
    "other_what": "Edit",
    "other_edits": "WithoutPositions",
    "other_text": "",
    "other_model": "",
    "other_swap": "",
    "other_of": "",
    "other_to": "",  # of a comparison
    "other_view": "Heads",
    "other_tone": "Linear",
    "other_pair": "",
    "other_word": "",
    "anatomy_cell": "",  # of one weight taken apart: query and key with a dot between them
}
LONGEST_ADDRESS = (
    4000  # characters of encoded text that browsers, servers and chat programs all pass on
)
MOST_NUMBERS = 8000  # characters of a list of numbers
# A token that is a part of a character ends so, see models/tokenizer.py.
PIECE = re.compile(r" \d+/\d+$")
SHELF_BYTES = 512 * 2**20


class Shelf:
    """Computed things by key, the least used ones dropped when together they weigh more than `limit` bytes. Safe for threads.

    One thing is made at a time, because short passes are fastest one by one; whoever finds what they want waits for nobody.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self.looking, self.making = threading.Lock(), threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Any], weigh: Callable[[Any], int]) -> Any:
        """What lies under `key`, made now if it does not."""
        if (found := self._find(key)) is None:
            with self.making:
                if (found := self._find(key)) is None:
                    found = (make(),)
                    self._put(key, found[0], weigh(found[0]))
        return found[0]

    def _find(self, key: Hashable) -> tuple[Any, ...] | None:
        with self.looking:
            if key in self.held:
                self.held.move_to_end(key)
            return self.held.get(key)

    def _put(self, key: Hashable, value: Any, weight: int) -> None:
        with self.looking:
            self.held[key] = (value, weight)
            while (
                len(self.held) > 1 and sum(weight for _, weight in self.held.values()) > self.limit
            ):
                others = list(self.held)[:-1]
                # To drop what is light would make no room, and it may have been long in the making.
                self.held.pop(
                    next((key for key in others if self.held[key][1] > self.limit / 100), others[0])
                )


_shelf = Shelf(SHELF_BYTES)
MOST_BORROWED = 2  # pretrained models in memory at once
_handles: OrderedDict[str, Any] = OrderedDict()
_handles_lock = threading.Lock()


def handle(name: str) -> Any:
    """The loaded model of that name, loaded once for everyone. Raises ValueError, saying why, for one that cannot be used."""
    with _handles_lock:
        if name in _handles:
            _handles.move_to_end(name)
            return _handles[name]
    loading = Loading.of(name)
    loading.wait(None)
    if loading.problem:
        raise ValueError(loading.problem)
    return loading.result


def is_loaded(name: str) -> bool:
    """True for a model in memory."""
    return name in _handles


def is_borrowed(name: str) -> bool:
    """True for a model that does not come with the app, and may have to be fetched."""
    return (
        name.partition("@")[0] not in library.names()
        and name != f"{library.IN_ITS_OWN_CODE}{library.MINILM}"
    )


def borrowed() -> tuple[str, ...]:
    """The pretrained models in memory that no list names, and MiniLM in its own code where its package is installed."""
    here = library.names()
    with _handles_lock:
        held = tuple(_handles)
    minilm = (f"{library.IN_ITS_OWN_CODE}{library.MINILM}",) if library.MINILM in here else ()
    return (*minilm, *(name for name in held if name.partition("@")[0] not in here))


class Loading:
    """Something that is fetched or read in the background: `share` of it is here, from 0 to 1; then its `result`, or a `problem` in a sentence.

    Everyone who asks for the same model waits for the same loading. Borrowed models come one after the other, since each looks at what memory is free.
    """

    _under_way: dict[Hashable, Loading] = {}
    _asking, _turn = threading.Lock(), threading.Lock()

    def __init__(
        self,
        key: tuple[str, str],
        begin: Callable[[Callable[[int, int], None]], Any],
        done: Callable[[Any], None],
    ) -> None:
        self.share, self.result, self.problem = 0.0, None, ""
        self._key, self._begin, self._done = key, begin, done
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, name: str) -> Loading:
        """The loading of a model."""
        return cls._only(
            ("model", name), lambda told: library.load(name, told), lambda made: _keep(name, made)
        )

    @classmethod
    def found(cls, where: str) -> Loading:
        """A Hugging Face model's files on their way; the result is its name for `handle`."""
        return cls._only(("files", where), lambda told: library.name_of(where, told))

    def wait(self, seconds: float | None) -> bool:
        """True once it has ended, within so many seconds; None: however long it takes."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @classmethod
    def _only(
        cls,
        key: tuple[str, str],
        begin: Callable[[Callable[[int, int], None]], Any],
        done: Callable[[Any], None] = lambda result: None,
    ) -> Loading:
        with cls._asking:
            if key not in cls._under_way:
                cls._under_way[key] = cls(key, begin, done)
            return cls._under_way[key]

    def _told(self, done: int, total: int) -> None:
        self.share = min(1.0, done / total) if total else 0.0

    def _work(self) -> None:
        kind, name = self._key
        try:
            with (
                nullcontext()
                if kind == "model" and name.partition("@")[0] in library.names()
                else self._turn
            ):
                self.result = self._begin(self._told)
                self._done(self.result)
        except ValueError as error:
            self.problem = str(error) or "The model cannot be read; choose another."
        except (
            Exception
        ) as error:  # files from anywhere, read by code of many families: they fail in any way
            self.problem = f"The model cannot be read ({type(error).__name__}: {str(error)[:200]}); choose another."
        finally:
            with self._asking:
                self._under_way.pop(self._key, None)


def _keep(name: str, made: Any) -> None:
    """Put a model among those in memory; of the pretrained ones the least used goes where there are too many."""
    with _handles_lock:
        _handles[name] = made
        pretrained = [
            each
            for each in _handles
            if each.partition("@")[0] not in library.names() or each == library.MINILM
        ]
        for each in pretrained[: -MOST_BORROWED or None] if len(pretrained) > MOST_BORROWED else ():
            del _handles[each]


def title(model: str) -> str:
    """A model's name as a person reads it."""
    if model.startswith(library.IN_ITS_OWN_CODE):
        return f"{model.removeprefix(library.IN_ITS_OWN_CODE)}, in its own code"
    return model.removeprefix(library.IN_OURS)


def facts(model: str) -> dict:
    """A model's card; of a borrowed one what it shows of itself, under the same names."""
    if model.partition("@")[0] in library.names():
        return library.card(model.partition("@")[0])
    loaded = handle(model)
    card, offered = loaded.card, library.offers(loaded)
    way = (
        "in its own code"
        if model.startswith(library.IN_ITS_OWN_CODE)
        else "its weights in Headlight’s own classes"
    )
    return {
        "kind": card.kind,
        "readout": bool(offered["logits"]),
        "n_parameters": card.n_parameters,
        "headline": "",
        "summary": f"A pretrained model, {way}.",
        "config": {"n_layer": card.n_layer, "n_head": card.n_head},
        "limits": [
            f"weights: {card.weights}",
            f"attention: {', '.join(offered['attention'])}",
            f"positions: {offered['positions']}",
        ],
    }


def shows_writes(recording: Recording) -> bool:
    """True where what each head writes can be known: the model hands out its values, and W_O can be had."""
    return all(attention.opens for attention in recording.attention) and bool(
        offers(recording.model.name)["weights"]
    )


def offers(model: str) -> dict[str, object]:
    """What a model shows of itself, see `library.offers`."""
    return library.offers(handle(model))


def warm_up() -> None:
    """Load the first model, run it once on the first text, and keep the garbage collector away from what now stays for good.

    Streamlit collects garbage after every rerun; with torch imported that takes 100 to 200 ms unless its objects are frozen.
    """
    record(DEFAULT_MODEL, DEFAULT_TEXT)
    gc.collect()
    gc.freeze()


def record(
    model: str, text: str, edits: tuple[Edit, ...] = (), target: str | tuple[int, ...] | None = None
) -> Recording:
    """The recording of a model on a text, from the shelf where it lies there. `target` as in `library.record`."""
    loaded = handle(model)
    key = ("recording", model, loaded.card.fingerprint, text, edits, target)
    return _shelf.get(key, lambda: library.record(loaded, text, edits, target), _bytes_of)


def derived(
    recording: Recording,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] = lambda value: 100_000,
) -> Any:
    """Something computed from a recording, kept under `what` beside it."""
    return _shelf.get(("derived", *_cause(recording), what), make, weigh)


def kept(
    model: str,
    what: Hashable,
    make: Callable[[], Any],
    weigh: Callable[[Any], int] = lambda value: 100_000,
) -> Any:
    """Something computed from several recordings of a model, kept under `what`, which names them, so that it needs none of them again."""
    return _shelf.get(("kept", model, handle(model).card.fingerprint, what), make, weigh)


def lens(recording: Recording, stream: str, top: int = 10) -> Lens:
    """The logit lens on a stream of a recording."""
    loaded = handle(
        recording.model.name
    )  # here and below before the shelf's lock: a model that has to be loaded anew holds nobody up
    return derived(
        recording,
        ("lens", stream, top),
        lambda: library.lens(loaded, recording, stream, top),
        lambda found: sum(getattr(each, "nbytes", 0) for each in vars(found).values()),
    )


def logits(recording: Recording, stream: str, token: int) -> np.ndarray:
    """The model's scores over the vocabulary (id) at one token of a stream."""
    loaded = handle(recording.model.name)
    return derived(
        recording,
        ("logits", stream, token),
        lambda: library.logits(loaded, recording, stream, token),
    )


def attribution(
    recording: Recording, stream: str, token: int, id: int, against: int | None = None
) -> Attribution:
    """A word's logit at a token, taken apart; with `against` the difference to another word's."""
    what = ("attribution", stream, token, id, against)
    loaded = handle(recording.model.name)
    return derived(
        recording, what, lambda: library.attribute(loaded, recording, stream, token, id, against)
    )


def nearest(
    recording: Recording, stream: str, token: int, top: int
) -> tuple[np.ndarray, np.ndarray]:
    """The words of the vocabulary that a token's vectors come nearest to at every site of its stream: ids and cosines, each (site, rank)."""
    vectors = recording.stream(stream).resid[:, token]
    loaded = handle(recording.model.name)
    return derived(
        recording, ("nearest", stream, token, top), lambda: library.nearest(loaded, vectors, top)
    )


def all_logits(recording: Recording, stream: str) -> np.ndarray:
    """The model's scores over the vocabulary at every token of a stream, (token, id). Large, and so not kept."""
    loaded = handle(recording.model.name)
    return np.stack(
        [
            library.logits(loaded, recording, stream, token)
            for token in range(len(recording.stream(stream).tokens))
        ]
    )


class Search:
    """A beam search as far as it has come. Many may read it; whoever wants more takes the next step, for all.

    `steps`: after each step the best hypotheses, best first. `finished`: there is no further step.
    """

    def __init__(self, to_come: Iterator[tuple[Beam, ...]]) -> None:
        self.steps: list[tuple[Beam, ...]] = []
        self.finished = False
        self._to_come, self._stepping = to_come, threading.Lock()

    def go_on(self) -> None:
        """Take one step, unless it has finished."""
        with self._stepping:
            if not self.finished:
                try:
                    self.steps.append(next(self._to_come))
                    self.finished = all(beam.done for beam in self.steps[-1])
                except StopIteration:
                    self.finished = True
                if self.finished:
                    self._to_come = iter(())  # lets the stored keys and values go


def search(model: str, text: str, n_beams: int) -> Search:
    """The beam search for a text's translation, begun once for everyone and kept as far as it has come."""
    loaded = handle(model)
    key = ("search", model, loaded.card.fingerprint, text, n_beams)
    return _shelf.get(
        key, lambda: Search(iter(library.beams(loaded, text, n_beams))), lambda _: n_beams * 500_000
    )


@dataclass(frozen=True)
class Said:
    """A token that was written: its id, the probability `own` that the model itself gave it, and its rank from 0."""

    id: int
    own: float
    rank: int


class Draft:
    """A reader's text in the making: the prompt, what was said after it, and the scores for what comes next.

    `writing` is the model's side of it, with its stored keys and values; `n_prompt` how many tokens the prompt has.
    """

    def __init__(self, model: str, text: str) -> None:
        self.model, self.text = model, text
        self._stepping = (
            threading.RLock()
        )  # a run that a newer one takes over from may still be at a step
        self.start_over()

    def start_over(self) -> None:
        """Go back to the prompt."""
        self.writing = library.writing(handle(self.model), self.text)
        self.n_prompt = len(self.writing.ids)
        self.said: list[Said] = []

    @property
    def ended(self) -> bool:
        """True where the last word said is the model's sign for the end."""
        return bool(self.said) and self.said[-1].id == handle(self.model).tokenizer.eos

    @property
    def full(self) -> bool:
        """True where the model takes no further token."""
        return self.writing.is_full

    def towards(self, ids: tuple[int, ...]) -> int:
        """Take one step to where `ids` is all that was said: one token more, or one fewer. How many steps are left, 0 where it is there.

        What stands in `ids` after the model's sign for the end, and what has no room, counts as not there.
        """
        with self._stepping:
            eos = handle(self.model).tokenizer.eos
            ids = ids[: ids.index(eos) + 1] if eos in ids else ids
            ids = ids[: self.writing.model.config.n_positions - self.n_prompt]
            now = tuple(word.id for word in self.said)
            common = next(
                (at for at, (a, b) in enumerate(zip(now, ids)) if a != b), min(len(now), len(ids))
            )
            if now and not common:
                self.start_over()
                return len(ids)
            if common < len(now):
                self.writing.back()
                self.said.pop()
                return len(now) - 1 - common + len(ids) - common
            if common < len(ids):
                self._add(ids[common])
                return len(ids) - common - 1
            return 0

    def _add(self, token: int) -> None:
        p, z = softmax(self.writing.logits), self.writing.logits
        self.said.append(Said(token, float(p[token]), int((z > z[token]).sum())))
        self.writing.add(token)


def draft(model: str, text: str) -> Draft:
    """This reader's text in the making after a prompt, as far as it has come. Only the last one is kept.

    Raises ValueError, with words for the reader, where the prompt leaves no room.
    """
    cause = (model, handle(model).card.fingerprint, text)
    kept = st.session_state.get("draft")
    if kept is None or kept[0] != cause:
        kept = st.session_state.draft = (cause, Draft(model, text))
    return kept[1]


def norms(recording: Recording, stream: str) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """The LayerNorms of a stream of the recording's model: gain, bias and eps by place."""
    return _of_model(recording, ("norms", stream), lambda loaded: library.norms(loaded, stream))


def outputs(recording: Recording) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """W_O, cut by head, and its bias, by attention of the recording's model."""
    return _of_model(recording, ("outputs",), library.outputs)


def _of_model(recording: Recording, what: tuple[Hashable, ...], make: Callable[[Any], Any]) -> Any:
    """Something of the recording's model alone, kept whatever the text."""
    loaded = handle(recording.model.name)
    return _shelf.get(
        ("of model", recording.model.name, recording.model.fingerprint, *what),
        lambda: make(loaded),
        lambda _: 2_000_000,
    )


def highway(recording: Recording, stream: str, token: int) -> Any:
    """The gradient of an output back to every state of a stream, as `library.highway`."""
    loaded = handle(recording.model.name)
    return derived(
        recording,
        ("highway", stream, token),
        lambda: library.highway(loaded, recording, stream, token),
    )


def jacobian(recording: Recording, stream: str, token: int, site: str) -> Any:
    """The Jacobians of one sub-layer at one token, as `library.jacobian`."""
    loaded = handle(recording.model.name)
    return derived(
        recording,
        ("jacobian", stream, token, site),
        lambda: library.jacobian(loaded, recording, stream, token, site),
    )


class Experiment:
    """Something that goes on by itself in a thread, one at a time on this machine, and can be stopped and gone on with.

    `latest`: what it has come to so far, None before the first; `running`, `finished`.
    """

    _turn = threading.Lock()
    at_work: dict[
        Hashable, Experiment
    ] = {}  # those that run, by key: however full the shelf is, they are found again and can be stopped

    def __init__(self, to_come: Iterator[Any], key: Hashable = None) -> None:
        self.latest: Any = None
        self.running = self.finished = False
        self._to_come, self._asking, self._key = (
            to_come,
            threading.Lock(),
            self if key is None else key,
        )
        self._thread: threading.Thread | None = None

    def go_on(self) -> None:
        """Start, or start again where it was stopped; nothing where it runs or has finished."""
        with self._asking:
            if self.running or self.finished:
                return
            if self._thread:
                self._thread.join()  # a step at most: it was told to stop
            if self.at_work.setdefault(self._key, self) is not self:
                return  # another one under the same key is at it
            self.running = True
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the step it is at; what it has come to stays."""
        self.running = False

    def _work(self) -> None:
        try:
            while self.running:
                with Experiment._turn:
                    made = next(self._to_come, None)
                if made is None:
                    self.finished = True
                    return
                self.latest = made
        finally:
            self.running = False
            self.at_work.pop(self._key, None)


def _experiment(key: Hashable, begin: Callable[[], Iterator[Any]]) -> Experiment:
    """The experiment under a key: the one that runs, else the one on the shelf, else a new one."""
    if running := Experiment.at_work.get(key):
        _shelf.get(key, lambda: running, lambda _: 2_000_000)  # what it comes to stays when it ends
        return running
    return _shelf.get(key, lambda: Experiment(begin(), key), lambda _: 2_000_000)


def decay(recording: Recording, stream: str, lag: int) -> Experiment:
    """The experiment of `library.decay` on the tokens of a stream: not begun, or as far as anyone has taken it."""
    ids = tuple(int(each) for each in recording.stream(stream).ids)
    return _experiment(("decay", ids[:100], lag), lambda: library.decay(ids, lag))


@dataclass(frozen=True)
class Swept:
    """A sweep of patches as far as it has come: the logit difference in the run as it is and in the donor's, how many places there are, and
    what each patch so far made of it, (place, logit difference). `error` says in words why it cannot be done."""

    clean: float = 0.0
    donor: float = 0.0
    places: int = 0
    effects: tuple[tuple[tuple[Any, int], float], ...] = ()
    error: str = ""


def sweep(
    recording: Recording, what: str, donor: str, name: str, token: int, id: int, against: int
) -> Experiment:
    """Every part of the donor's run put into the recording's, one by one: `what` is "Heads", of the attention `name`, or "Sites", of the stream
    `name`. What it does to logit(id) - logit(against) at a token is read off. Not begun, or as far as anyone has taken it."""
    model, text, edits = recording.model.name, recording.text, recording.edits
    begin = library.sweep_heads if what == "Heads" else library.sweep_sites

    def to_come() -> Iterator[Swept]:
        try:
            swept = begin(handle(model), text, donor, name, token, id, against, edits)
            found: list[tuple[tuple[Any, int], float]] = []
            yield Swept(swept.clean, swept.donor, swept.places)
            for effect in swept.effects:
                found.append((effect.place, effect.value))
                yield Swept(swept.clean, swept.donor, swept.places, tuple(found))
        except ValueError as error:
            yield Swept(error=str(error))

    return _experiment(
        ("sweep", *_cause(recording), what, donor, name, token, id, against), to_come
    )


def cards() -> dict[str, dict]:
    """What people should know of every model, by name, see `library.card`."""
    return {name: library.card(name) for name in library.names()}


def longest_lag(n: int) -> int:
    """The largest lag that the experiment takes for a text of n tokens; 0 where the text is too short."""
    return library.longest_lag(n)


def embedding_scale(model: str) -> float | None:
    """By what a model multiplies a word's embedding before anything is added: √d_model in the paper, 1 in models that leave it as it is; None
    where a model in its own code does not say."""
    return float(_embedding(model).scale) if offers(model)["weights"] else None


def word_vector(model: str) -> str:
    """What a model's stream begins with for a word, in a few signs."""
    if not offers(model)["weights"]:
        return "embedding"
    return (
        ("√d × " if embedding_scale(model) != 1 else "")
        + "embedding"
        + ("" if _embedding(model).segment is None else " + segment")
    )


def _embedding(model: str) -> Any:
    return handle(model).model.embedding


def readout(model: str) -> str | None:
    """How a model says its words: "tied" to its embedding, by a "transform" before that, by its "own code", or None where it says none."""
    offered = offers(model)
    if not offered["logits"]:
        return None
    return (
        "own code"
        if not offered["weights"]
        else "tied"
        if offered["linear readout"]
        else "transform"
    )


def position_table(model: str) -> np.ndarray | None:
    """The table of positions that a model has learned, (position, d_model); None for one that adds sinusoids or nothing, or does not show it."""
    offered = offers(model)
    return (
        np.array(_embedding(model).position.detach().numpy())
        if offered["weights"] and offered["positions"] == "learned"
        else None
    )


def embeddings(model: str) -> np.ndarray:
    """Every word's embedding as a model's stream begins with it, (id, d_model). Large, and so not kept."""
    return library.embeddings(handle(model))


def spelled(model: str, ids: Iterable[int]) -> str:
    """The text that tokens of a model's vocabulary spell, special ones left out."""
    return handle(model).tokenizer.text(ids)


def first_token(model: str, text: str) -> tuple[int, int] | None:
    """The id of the first token that a text is split into when it stands alone, and how many there are. None where there are none."""
    ids = handle(model).tokenizer.ids([text.encode("utf-8", "replace").decode("utf-8")])[0]
    return (ids[0], len(ids)) if ids else None


def labels(model: str, ids: Iterable[int]) -> list[str]:
    """Tokens of a model's vocabulary as a person reads them."""
    return library.labels(handle(model), ids)


def name_of(recording: Recording, *what: Hashable) -> str:
    """A short name for a picture: equal causes, equal name. Whoever waits for a picture in the browser waits for this name."""
    cause = (*_cause(recording), what)
    return hashlib.sha256(repr(cause).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _cause(recording: Recording) -> tuple[Hashable, ...]:
    # The ids too: what a translator said may be split otherwise than the same text typed for it.
    return (
        recording.model.name,
        recording.model.fingerprint,
        recording.text,
        recording.target,
        recording.edits,
        recording.streams[-1].ids.tobytes(),
    )


def _bytes_of(recording: Recording) -> int:
    parts = (*recording.streams, *recording.attention)
    return 4 * len(recording.text) + sum(
        getattr(value, "nbytes", 0) for part in parts for value in vars(part).values()
    )


# ---- the frame around every page ------------------------------------------------------------------------------------


def begin(page: str) -> None:
    """Take what the address says into the session, before any widget is made: at the start, and when the reader went back or forward.

    An address that is not the one last written, in a run that no widget of the frame began, is the reader's own doing. A bare address
    on another `page` than before is a step through the app's own navigation: text and choices go along. The bare address stays in
    the browser's history; going back to it later means what it meant then (`bare`).
    """
    state = st.session_state
    asked = st.query_params.to_dict()
    acted = state.pop("acted", False)
    if "wanted_model" in state:
        state.model = state.pop("wanted_model")
        forget_head()
        state.pop("acted")
        acted = True
    moved = state.get("page") != page
    state.page = page
    if "written" in state and moved and not asked:
        state.bare = state.written
        return
    if "written" in state and (acted or asked == state.written):
        return
    if not asked:
        asked = state.back = state.get("bare", asked)
    state.written = asked
    state.text = asked.get("text", DEFAULT_TEXT)
    state.model = asked.get("model", DEFAULT_MODEL)
    if not library.knows(state.model):
        state.unknown_model = state.model
        state.model = DEFAULT_MODEL
    if is_borrowed(state.model) and not is_loaded(
        state.model
    ):  # a link alone fetches nothing: the reader is asked first
        state.offered_model, state.model = state.model, DEFAULT_MODEL
    for name, default in CHOICES.items():
        state[name] = asked.get(name, default)


def about(model: str) -> str:
    """A model's card in a few lines of Markdown."""
    card = facts(model)
    size = card["config"]
    return (
        f"**{literal(title(model))}**: {card['summary']} {size['n_layer']} layers of {size['n_head']} heads, {card['n_parameters']:,} parameters. {card['headline']}\n\n"
        + "\n".join(f"- {line}" for line in card["limits"])
    )


def model_for(*kinds: str, readout: bool = False) -> str:
    """The model on screen if it is of one of these kinds, and with `readout` says words; else the first model that is, with a word for the reader."""
    chosen = st.session_state.model

    def fits(card: dict) -> bool:
        return card["kind"] in kinds and (not readout or card.get("readout", True))

    if fits(facts(chosen)):
        return chosen
    fitting = [
        name
        for name in (*PREFERRED, *library.names())
        if name in library.names() and fits(library.card(name))
    ]
    why = (
        f"This page needs another kind of model than {literal(title(chosen))}"
        if facts(chosen)["kind"] not in kinds
        else f"{literal(title(chosen))} has no readout: it gives vectors and says no words"
    )
    st.caption(
        f"{why}, so **{fitting[0]}** is shown. Models that fit: {', '.join(dict.fromkeys(fitting))}."
    )
    return fitting[0]


def recording(model: str | None = None, target: str | tuple[int, ...] | None = None) -> Recording:
    """The recording of the text and model on screen, with a word for the reader where the text did not fit or is empty."""
    made = record(model or st.session_state.model, st.session_state.text, target=target)
    words = (
        st.container()
    )  # always there, so that what follows keeps its place on the page, and with it its state
    if made.dropped:
        n = made.model.n_positions
        words.warning(
            f"This text has {made.dropped + n:,} tokens with the special ones; the model {literal(title(made.model.name))} reads {n}. "
            f"The last {made.dropped:,} tokens of the text are not shown. The field keeps the whole text."
        )
    if made.target_dropped:
        n = made.model.n_positions
        words.warning(
            f"Your own words are {made.target_dropped + n - 1:,} tokens; {literal(title(made.model.name))} reads {n} with [BOS]. "
            f"The last {made.target_dropped:,} are left out. The field keeps them."
        )
    if made.streams[0].special.all():
        words.info(
            "There is no text yet, so the model sees only its special tokens. Type or paste a sentence above."
        )
    elif not made.text.strip():
        words.info("There is only white space so far. Type or paste a sentence above.")
    if split := next((token for token in made.streams[0].tokens if PIECE.search(token)), None):
        words.caption(
            f"Some characters are not in the model’s vocabulary and are read byte by byte: “{literal(split)}” is one of the tokens that make up one character."
        )
    if not fits_address(made.text):
        words.info(
            f"This text is too long for a link ({len(made.text):,} characters). It stays in this tab; "
            "reloading the page or sharing its address does not bring it back, so keep a copy."
        )
    return made


def read_text(recording: Recording, target: bool = False) -> str:
    """What a model read of its text, or of its target, on one line; " …" in place of what did not fit."""
    whole, dropped, stream = (
        (recording.target, recording.target_dropped, -1)
        if target
        else (recording.text, recording.dropped, 0)
    )
    end = int(recording.streams[stream].spans[:, 1].max(initial=0)) if dropped else 0
    return " ".join((whole[:end] if end > 0 else whole).split()) + (" …" if dropped else "")


def typed_target(model: str) -> str | None:
    """What the decoder of this model is to read where the reader typed it on the Translation page; None for its own words and for other models."""
    typed = st.session_state.target
    return typed if typed.strip() and handle(model).card.kind == "encoder-decoder" else None


def tell_target(target: str | None) -> None:
    """Say that the decoder reads what the reader typed on another page, and offer to let it go."""
    if target is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(
            f"Its decoder reads your own words, “{literal(' '.join(target.split())[:80])}{'…' if len(target) > 80 else ''}”, typed on the Translation page, not its own translation."
        )
        st.button("Back to the model’s", key="drop target", on_click=_drop_target)


def _drop_target() -> None:
    st.session_state.acted = True
    st.session_state.target = st.session_state.token = ""


def take_preset() -> None:
    """The preset just pressed; pressing it once more changes nothing."""
    if st.session_state.preset is not None:
        st.session_state.text = PRESETS[st.session_state.preset]
        st.session_state.target = ""
        forget_token()


def take_text(text: str) -> None:
    """Make this the text on screen, as if the reader had typed it. For a callback, which runs before the field is made."""
    st.session_state.text = text
    forget_token()


def forget_token() -> None:
    """Another text: what was chosen of the last one means nothing there."""
    st.session_state.acted = True
    st.session_state.token = st.session_state.mate = st.session_state.source = (
        st.session_state.step
    ) = st.session_state.beam = ""
    st.session_state.hidden = st.session_state.said = st.session_state.retyped = ""


def forget_head() -> None:
    """Another model: what was chosen of the last one means nothing there."""
    st.session_state.pop("offered_model", None)
    forget_token()
    st.session_state.stage = st.session_state.stream = st.session_state.target = ""
    st.session_state.attention = st.session_state.layer = st.session_state.head = ""
    st.session_state.word = st.session_state.against = st.session_state.part = (
        ""  # numbers of the other model's words and heads
    )


def whole(name: str, below: int) -> int | None:
    """A choice as a whole number from 0 to `below` - 1. One that is no such number is forgotten: None."""
    value = str(st.session_state.get(name, ""))
    if value.isdecimal() and len(value) < 6 and int(value) < below:
        return int(value)
    st.session_state[name] = ""
    return None


def numbers(name: str, below: int) -> tuple[int, ...]:
    """A choice as whole numbers from 0 to `below` - 1, with dots between them. One that is no such list is forgotten: ()."""
    value = str(st.session_state.get(name, ""))
    parts = value.split(".") if value else []
    if len(value) <= MOST_NUMBERS and all(
        part.isdecimal() and len(part) < 7 and int(part) < below for part in parts
    ):
        return tuple(map(int, parts))
    st.session_state[name] = ""
    return ()


def one_of(name: str, options: tuple[str, ...]) -> str:
    """A choice that must be one of some words; the first where it is none of them."""
    if st.session_state.get(name) not in options:
        st.session_state[name] = CHOICES[name] if CHOICES.get(name) in options else options[0]
    return st.session_state[name]


def fits_address(text: str) -> bool:
    """True for a text that an address can carry."""
    return len(quote(text.encode("utf-8", "replace"))) <= LONGEST_ADDRESS


def address() -> None:
    """Write what is on screen into the address bar, so that the link opens the same elsewhere."""
    state = st.session_state
    wanted = {
        name: str(state[name])
        for name, default in CHOICES.items()
        if str(state[name]) != default and fits_address(str(state[name]))
    }
    if state.text != DEFAULT_TEXT and fits_address(state.text):
        wanted["text"] = state.text
    if state.model != DEFAULT_MODEL:
        wanted["model"] = state.model
    shown = st.query_params.to_dict()
    if wanted != shown and (shown or wanted != state.get("back")):
        st.query_params.from_dict(wanted)
    state.written = wanted


def literal(text: str) -> str:
    """User text inside Markdown, shown as it is; right-to-left text in an isolate, so that it does not turn the numbers beside it."""
    said = "".join(
        f"\\{letter}" if letter in r"\`*_{}[]()#+-.!|~$:<>&" else letter for letter in text
    )
    return (
        f"\u2068{said}\u2069"
        if any(bidirectional(letter) in ("R", "AL", "AN") for letter in text)
        else said
    )
