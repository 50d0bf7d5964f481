"""Models on a cluster: real replicas of Ray Serve, asked over HTTP in plain data, and the same
numbers as here, whoever of them dies."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driver import free_port

from models.contract.edits import ScaledBy, WithoutPositions, ZeroHead
from models.contract.recording import NotFinite, Recording
from models.runtime import cluster, registry
from models.runtime.serve import Models

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "cluster" / "bin" / "python"
MODELS = ("induction", "copy")
TRIES = 3
TEXT = "red green blue red green blue red"


@pytest.fixture(scope="module")
def replicas() -> Iterator[str]:
    """Two replicas of two small models on a Ray of this machine: their door's address."""
    if not PYTHON.exists() and not os.environ.get("CI"):
        pytest.skip("make .venv/cluster installs Ray; under CI this is an error")
    for _ in range(TRIES):  # where the machine is too busy Ray gives its own processes up
        port = str(free_port())
        process = subprocess.Popen(
            [PYTHON, "-m", "models.runtime.serve", *MODELS, "--cpus", "0.1", "--port", port],
            cwd=ROOT,
            env={**os.environ, "RAY_ADDRESS": "local"},
            stdout=subprocess.PIPE,
            text=True,
        )
        if said := process.stdout.readline():
            break
        process.wait(60)
    assert said.split()[-1] == f"127.0.0.1:{port}"
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(60)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, replicas: str) -> dict[str, tuple]:
    """Every model twice, of this process and of the cluster."""
    monkeypatch.setenv(cluster.ADDRESS_VARIABLE, replicas)
    return {name: (registry.load(name), registry.load(f"cluster:{name}")) for name in MODELS}


def same(there: Recording, mine: Recording) -> bool:
    """Equal to the last bit, but for the name of the model."""
    return replace(there, model=replace(there.model, name=mine.model.name)) == mine


def process_of(model: str) -> int:
    return cluster._ask({"ask": "text", "model": model, "ids": []})[0]["process"]


@pytest.mark.slow
def test_replicas_give_the_same_bits_and_a_dying_one_loses_no_question(here: dict) -> None:
    for name, (mine, theirs) in here.items():
        head = ZeroHead(0, 0, theirs.capabilities.attention[-1])
        for edits in ((), (head,), (ScaledBy(0.3), WithoutPositions())):
            made = mine.record(TEXT, edits)
            assert same(theirs.record(TEXT, edits), made), (name, edits)
        stream = made.streams[-1].name
        for way in ({"top": 3}, {"token": 1, "ids": (2, 1)}):
            one, other = (vars(each.lens(made, stream, **way)) for each in (mine, theirs))
            assert all(np.array_equal(a, b) for a, b in zip(one.values(), other.values()))
        one, other = (each.logits(made, stream, 2) for each in (mine, theirs))
        assert np.array_equal(one, other) and one.dtype == other.dtype
        vectors = made.streams[0].resid[0, :2]
        for one, other in zip(*(each.nearest(vectors, 4) for each in (mine, theirs))):
            assert np.array_equal(one, other)
        ids = made.streams[-1].ids
        assert mine.labels(ids) == theirs.labels(ids)
        assert mine.tokenizer.text(ids) == theirs.tokenizer.text(ids)
        assert not theirs.capabilities.weights and mine.capabilities.weights
    one_dies(*here["induction"])


def one_dies(mine, theirs) -> None:
    """Questions without end from four sides while a replica is killed: each is answered, right."""
    at_work = {process_of("induction") for _ in range(20)}
    assert len(at_work) == 2
    texts = [f"{TEXT} {at}" for at in range(60)]

    def asked(at: int) -> Recording:
        if at == 12:
            os.kill(min(at_work), signal.SIGKILL)
        return theirs.record(texts[at])

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(asked, range(len(texts))))
    for text, each in zip(texts, found):
        assert same(each, mine.record(text))
    assert process_of("induction") != min(at_work)


def test_a_replica_answers_plain_questions_and_nothing_else() -> None:
    served = Models(("induction",))
    cause = {"model": "induction", "text": "red blue", "edits": "", "target": None}
    pickled = cluster.packed_arrays(vectors=np.array([{}], object))
    for asked in (
        b"",
        b"\x80\x04K\x01.",
        b"[]\n",
        b'{"ask": "record"}\n',
        cluster.packed({**cause, "ask": "end"}),
        cluster.packed({**cause, "ask": "record", "edits": "__import__:os"}),
        cluster.packed({**cause, "ask": "record", "target": {}}),
        cluster.packed({**cause, "ask": "record", "model": "../induction"}),
        cluster.packed({"ask": "nearest", "model": "induction", "top": 2}, pickled),
        cluster.packed({"ask": "nearest", "model": "induction", "top": 2}, b"PK" + bytes(40)),
    ):
        told, made = cluster.unpacked(served.answer(asked))
        assert told["problem"] and not made, asked
    told, made = cluster.unpacked(served.answer(cluster.packed({**cause, "ask": "record"})))
    assert "problem" not in told and cluster.from_npz(made).text == "red blue"


def test_a_door_that_is_not_there_is_told_and_what_a_model_refuses_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "PAUSE", 0.0)
    with pytest.raises(ValueError, match=cluster.ADDRESS_VARIABLE):
        registry.load("cluster:induction")
    monkeypatch.setenv(cluster.ADDRESS_VARIABLE, "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="does not answer"):
        registry.load("cluster:induction")
    served = Models(("induction",))
    monkeypatch.setattr(cluster, "_answer", lambda asked: served.answer(asked.data))
    theirs = registry.load("cluster:induction")
    with pytest.raises(ValueError, match="head 9 of layer 9"):
        theirs.record(TEXT, (ZeroHead(9, 9),))
    with pytest.raises(NotFinite, match="finite"):
        theirs.record(TEXT, (ScaledBy(1e-38),))
    with pytest.raises(ValueError, match="no model of this name"):
        registry.load("cluster:encoder")
