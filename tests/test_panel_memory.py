"""What panels take: never more than what they ask for, and as little as can be."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from app_harness import page_at
from conftest import SMALL, TEXTS, sharpened
from test_panels import NAMES, model_of, text_of

from benchmarks import memory as benchmark
from benchmarks.clients import random_text
from explorer.analysis import embeddings
from explorer.app.state import garbage_collection, models
from explorer.app.state.scheduling import memory_budget
from explorer.figures.csv import count_cells
from explorer.panels import memory, spec
from models.contract.cancellation import NoRoom
from models.network import buffer_pool
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Decoder, EncoderDecoder, Transformer
from models.runtime import caching
from models.runtime.cache import LARGE_BYTES, Cache
from models.runtime.run import Run
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

WORDS = 240
N_WORDS = 49_152  # of a vocabulary
# By a panel's module: a model of many words, and the name of the one whose place it takes.
WIDE = {"translation": (EncoderDecoder, "translator")}
OTHERS = 2**22  # bytes that other threads of the process may take meanwhile
TEXT = random_text(random.Random(5), WORDS)
LONG = "The cat sat on the mat, and the dog ran to the park. " * 30


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Cache:
    """A cache of this test alone, for which no memory is made ready ahead, in a process that hands
    memory back as a server does."""
    garbage_collection.return_pages()
    monkeypatch.setattr(buffer_pool, "READY_BYTES", buffer_pool.MAX_POOL_BYTES + 1)
    monkeypatch.setattr(caching, "cache", Cache(320 * 2**20, 2**30))
    return caching.cache


@pytest.mark.slow
@pytest.mark.in_turn(6)
@pytest.mark.parametrize("name", NAMES)
def test_a_panel_takes_no_more_than_it_asks_for(cache: Cache, name: str) -> None:
    expect_bounded(name, model_of(name))


@pytest.mark.slow
@pytest.mark.in_turn(12)
@pytest.mark.parametrize("name", NAMES)
def test_a_panel_of_a_model_of_many_words_takes_no_more_than_it_asks_for(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kind, model = WIDE.get(name.partition(".")[0], (Decoder, "grammar"))
    monkeypatch.setitem(models.loaded_models, model, of_many_words(kind, model))
    expect_bounded(name, model)


@functools.cache
def of_many_words(kind: type[Transformer], name: str) -> OwnModel:
    """A random model with a vocabulary as wide as smollm2's, under the name of a shipped one."""
    torch.manual_seed(6)
    words = Tokenizer.train(TEXTS, SMALL.n_vocab, CAUSAL_LM_SPECIALS).bpe
    words.add_tokens([f"word{n}" for n in range(N_WORDS - words.get_vocab_size())])
    network = sharpened(kind(replace(SMALL, n_vocab=N_WORDS, n_positions=256)))
    return from_network(network, Tokenizer(words), name, "many words", "fp32")


def expect_bounded(name: str, model: str) -> None:
    """A panel takes no more than it asks for, as the system counts it, with its table as a file.
    What is loaded once for all is no part of it: where it is more, it is measured again."""
    for _ in range(2):
        of = benchmark.high_water(name, Run(model, text_of(name, TEXT)))
        if of.beside <= max(of.bound, LARGE_BYTES) + OTHERS:
            return
    pytest.fail(f"{of} of {memory.bound_of(name)}")


def test_every_bound_is_of_a_panel() -> None:
    assert set(memory.BOUNDS) <= set(spec.panel_names())


def test_a_bound_grows_with_the_longest_text_that_is_read() -> None:
    run = Run("encoder", "The cat sat.")
    bound, recording = memory.bound_of("corpus.patterns"), run.recording()
    assert bound.bytes_of(recording, 10**6) == bound.bytes_of(recording, 512)
    assert bound.bytes_of(recording, 512) > 4 * bound.bytes_of(recording)


def test_a_panel_that_is_too_dear_is_refused_before_it_begins(cache: Cache) -> None:
    run = Run("encoder", LONG)
    cache.limit, cache.beyond = memory.weight(run.recording()), 2**26
    kept = set(cache.entries)
    with pytest.raises(NoRoom, match="A shorter text takes less") as refused:
        spec.PANELS["compare.nearest"](run)
    assert set(cache.entries) == kept and not refused.value.passing
    assert spec.PANELS["residual.norms"](run).figures


@pytest.mark.parametrize("name", ["stages.exchanged", "positions.order", "residual.updates"])
def test_recordings_beside_its_own_are_asked_for_before_it_begins(cache: Cache, name: str) -> None:
    run = Run("encoder", LONG)
    recording = run.recording()
    cache.limit, cache.beyond = memory.weight(recording), memory.bound_of(name).bytes_of(recording)
    kept = set(cache.entries)
    with pytest.raises(NoRoom, match="A shorter text takes less"):
        spec.PANELS[name](run)
    assert set(cache.entries) == kept, "nothing of it was made"


def test_a_model_that_writes_is_asked_for_no_recording_with_a_mask(cache: Cache) -> None:
    run = Run("decoder", LONG)
    recording = run.recording()
    bound = memory.bound_of("residual.updates").bytes_of(recording)
    cache.limit, cache.beyond = memory.weight(recording), bound + OTHERS
    assert spec.PANELS["residual.updates"](run).figures


@pytest.mark.parametrize(("unit", "read"), [("Heads", 0), ("Sites", 4)])
def test_a_sweep_that_is_too_long_is_refused_before_it_begins(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, unit: str, read: int
) -> None:
    """How many states there are to patch, both texts say, which are read first: with a token
    hidden, and the second also without."""
    run, passes = Run("encoder", LONG), list[int]()
    run.recording()
    note = lambda size: bool(passes.append(size))
    monkeypatch.setattr(buffer_pool, "before_lending", [*buffer_pool.before_lending, note])
    with pytest.raises(ValueError, match="in one go at most"):
        spec.PANELS["interventions.patches"](run, LONG.replace("cat", "dog"), unit=unit)
    assert len(passes) <= read


def test_a_table_is_written_without_what_it_was_made_of(cache: Cache) -> None:
    run = Run("encoder", LONG)
    with memory_budget.work():
        panel = spec.PANELS["compare.difference"](run)
        held = cache.weight() + cache._outside_bytes()
        needed = memory.ENTRY * count_cells(panel.table)
        assert held > memory.weight(run.recording()) and needed > LARGE_BYTES
        cache.limit, cache.beyond = LARGE_BYTES, needed
        assert panel.json()


@pytest.mark.parametrize("tab", ["heads", "residual", "compare", "lens"])
def test_a_page_says_what_it_has_no_memory_for(cache: Cache, tab: str) -> None:
    cache.limit, cache.beyond = 2**24, 2**24
    visit = page_at(tab, text=LONG)
    assert not visit.exception and not visit.error
    said = [each.value for each in (*visit.warning, *visit.info)]
    assert any("A shorter text takes less." in each for each in said), said


def test_cosines_of_all_pairs_are_those_of_each() -> None:
    vectors = np.random.default_rng(0).normal(size=(7, 33))
    vectors[2] = 0
    each = [[embeddings.cosine(one, other) for other in vectors] for one in vectors]
    assert np.array_equal(embeddings.cosines(vectors), each)
