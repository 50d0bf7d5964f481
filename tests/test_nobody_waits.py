"""A panel that nobody waits for ends, wherever it is: it looks often, and what it leaves behind is
whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from conftest import read_once

from explorer.app.state import host
from explorer.app.state.scheduling import Cancelled, cancellable
from explorer.panels import spec
from models.contract.recording import Attention, Card, Recording, Stream
from models.contract.recording_file import to_npz
from models.inputs import recorded_model
from models.inputs.recorded_model import RecordedModel
from models.runtime import caching
from models.runtime.run import Run, run_of

pytestmark = pytest.mark.slow
LAYERS, HEADS, WORDS, WIDTH = 200, 8, 3, 4
MOST_CALLS = 50_000  # of Python's functions between two looks: some hundredths of a second
SAMPLED = (*range(1, 4), 10, 40, 160)  # looks at which the reader has gone


@pytest.fixture(scope="module")
def deep() -> Iterator[RecordedModel]:
    """A recording of many layers over three words, as a file holds it."""
    rng = np.random.default_rng(0)
    allowed = np.tril(np.ones((WORDS, WORDS), bool))
    scores = rng.normal(size=(LAYERS, HEADS, WORDS, WORDS)).astype(np.float32)
    weights = np.where(allowed, np.exp(scores), 0)
    weights = (weights / weights.sum(axis=-1, keepdims=True)).astype(np.float32)
    q, k, v = rng.normal(size=(3, LAYERS, HEADS, WORDS, 2)).astype(np.float32)
    attention = Attention("self", "decoder", "decoder", scores, weights, allowed, q, k, v)
    sites = ["embed"]
    for layer in range(LAYERS):
        sites += [f"{layer}.{part}.{what}" for part in ("attn", "ffn") for what in ("wrote", "sum")]
    resid = rng.normal(size=(len(sites), WORDS, WIDTH)).astype(np.float32)
    for at in range(2, len(sites), 2):
        resid[at] = resid[at - 2] + resid[at - 1]
    spans = np.array([(0, 3), (4, 7), (8, 13)])
    stream = Stream(
        "decoder",
        ("The", "cat", "slept"),
        np.arange(WORDS),
        np.zeros(WORDS, bool),
        spans,
        tuple(sites),
        resid,
    )
    card = Card("deep", "decoder", LAYERS, HEADS, WIDTH, 2, WORDS, WORDS, 0, "", "random")
    made = Recording(card, "The cat slept", (), (stream,), (attention,))
    yield recorded_model.opened(to_npz(made, compressed=False))


def forget() -> None:
    """Keep nothing of what was computed."""
    for key in list(caching.cache.entries):
        caching.cache._drop(key)


def drawn(name: str, run: Run, check: Callable[[], None]) -> bytes | str:
    """A panel as it is sent, or why there is none, while `check` is what each look calls."""
    caching.use(host.app)
    with cancellable(check):
        try:
            return spec.PANELS[name](run).encode()
        except ValueError as why:
            return str(why)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("name", spec.panel_names())
def test_a_panel_looks_often_whether_somebody_waits(name: str, deep: RecordedModel) -> None:
    calls, most = 0, 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    def look() -> None:
        nonlocal calls, most
        calls, most = 0, max(calls, most)

    drawn(name, run_of(deep.recorded), look)  # what is imported at a first use
    forget()
    calls = most = 0
    sys.setprofile(count)
    try:
        drawn(name, run_of(deep.recorded), look)
    finally:
        sys.setprofile(None)
    look()
    assert most <= MOST_CALLS


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("name", spec.panel_names())
def test_a_panel_ends_where_its_reader_has_gone(name: str) -> None:
    """At any look, and whoever asks next has the whole of it."""
    run, looks = run_of(read_once("decoder").record("The cat sat on the mat.")), 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks == gone:
            raise Cancelled

    gone = 0
    forget()
    whole = drawn(name, run, look)
    n = looks
    assert n, "it never looks"
    for gone in [at for at in SAMPLED if at <= n]:
        forget()
        looks = 0
        with pytest.raises(Cancelled):
            drawn(name, run, look)
    gone = 0
    assert drawn(name, run, look) == whole
