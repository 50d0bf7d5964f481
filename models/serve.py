"""Models answered by replicas on a cluster: `python -m models.serve hub:gpt2-xl --replicas 4`.

Each replica loads the models it is told of and answers for them over HTTP; Ray Serve keeps them
alive and shares the questions out. Whoever asks (models/cluster.py) sends plain data and gets plain
data: no code, no pickle. It is for a closed network: whoever reaches the port may ask.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from models import registry
from models.cluster import arrays, capabilities_as_data, card_as_data, opened, packed, packed_arrays
from models.edits import from_line
from models.recording import NotFinite, Recording, to_npz

NAME = "headlight"
MOST_BYTES = 16 << 20  # of one question
LATEST = 4  # recordings that a replica keeps: the lens of one is asked for right after it


class Models:
    """The models of one replica, and its answers. Raises ValueError for a model that cannot be
    loaded."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._handles = {name: registry.load(name) for name in names}
        self._one = threading.Lock()  # passes are fastest one by one
        self._recorded = lru_cache(maxsize=LATEST)(self._record)
        self._answers: dict[str, Callable[[dict, bytes], tuple[dict, bytes]]] = {
            "load": self._load,
            "record": lambda asked, _: ({}, to_npz(self._recording(asked), small=False)),
            "lens": self._lens,
            "logits": self._logits,
            "nearest": self._nearest,
            "text": self._text,
        }

    def answer(self, body: bytes) -> bytes:
        """The answer to one question, with the process that gives it; a `problem` where it cannot
        be answered."""
        mine = {"process": os.getpid()}
        try:
            asked, content = opened(body)
            if asked.get("model") not in self._handles:
                raise ValueError("The cluster serves no model of this name.")
            with self._one:
                told, made = self._answers[asked["ask"]](asked, content)
            return packed(told | mine, made)
        except NotFinite as error:
            return packed({"problem": str(error), "site": error.site} | mine)
        except ValueError as error:
            return packed({"problem": str(error)} | mine)
        except (KeyError, TypeError, IndexError):
            return packed({"problem": "This is no question that a model answers."} | mine)

    def _record(self, model: str, text: str, edits: str, target: Any) -> Recording:
        return self._handles[model].record(text, from_line(edits), target)

    def _recording(self, asked: dict) -> Recording:
        target = asked["target"]
        target = tuple(target) if isinstance(target, list) else target
        return self._recorded(asked["model"], asked["text"], asked["edits"], target)

    def _load(self, asked: dict, _: bytes) -> tuple[dict, bytes]:
        handle = self._handles[asked["model"]]
        return {
            "card": card_as_data(handle.card),
            "offers": capabilities_as_data(handle.capabilities),
            "labels": handle.labels(range(handle.card.n_vocab)),
        }, b""

    def _lens(self, asked: dict, _: bytes) -> tuple[dict, bytes]:
        handle, of = self._handles[asked["model"]], self._recording(asked)
        made = handle.lens(of, asked["stream"], asked["top"])
        parts = {each.name: getattr(made, each.name) for each in fields(made)}
        numbers = {name: part for name, part in parts.items() if isinstance(part, np.ndarray)}
        return {"sites": made.sites}, packed_arrays(**numbers)

    def _logits(self, asked: dict, _: bytes) -> tuple[dict, bytes]:
        handle, of = self._handles[asked["model"]], self._recording(asked)
        made = handle.logits(of, asked["stream"], asked["token"])
        return {}, packed_arrays(logits=made)

    def _nearest(self, asked: dict, content: bytes) -> tuple[dict, bytes]:
        vectors = arrays(content)["vectors"]
        ids, cosines = self._handles[asked["model"]].nearest(vectors, asked["top"])
        return {}, packed_arrays(ids=ids, cosines=cosines)

    def _text(self, asked: dict, _: bytes) -> tuple[dict, bytes]:
        return {"text": self._handles[asked["model"]].tokenizer.text(asked["ids"])}, b""


class Replica:
    """The models behind HTTP, as Ray Serve runs them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._models = Models(names)

    async def __call__(self, request: Any) -> Any:
        """One question over HTTP."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        if int(request.headers.get("content-length", 0)) > MOST_BYTES:
            return Response("too long", 413)
        body = await request.body()
        return Response(await run_in_threadpool(self._models.answer, body))


def begin(names: tuple[str, ...], replicas: int, host: str, port: int, cpus: float = 1) -> None:
    """Start so many replicas, each with so many processors, on the Ray that runs on this machine,
    or on one of its own where none does. Returns when they answer."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # a busy machine takes longer
    import ray
    from ray import serve

    root = str(Path(__file__).resolve().parent.parent)
    there = {"PYTHONPATH": root, "OMP_NUM_THREADS": str(max(1, int(cpus)))}
    ray.init(
        ignore_reinit_error=True,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": there},
    )
    serve.start(http_options={"host": host, "port": port})
    deployed = serve.deployment(
        name="models",
        num_replicas=replicas,
        max_ongoing_requests=4,
        ray_actor_options={"num_cpus": cpus},
    )(Replica)
    serve.run(deployed.bind(names), name=NAME, route_prefix="/")


def end() -> None:
    """Stop the replicas, and Ray where it was started here."""
    import ray
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def main(given: list[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m models.serve", description=__doc__)
    parser.add_argument("models", nargs="+", help="names that `models.registry.load` takes")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=1, help="processors of each replica")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    asked = parser.parse_args(given)
    told = threading.Event()
    begin(tuple(asked.models), asked.replicas, asked.host, asked.port, asked.cpus)
    for each in (signal.SIGINT, signal.SIGTERM):  # in the place of Ray's own, which end it at once
        signal.signal(each, lambda *_: told.set())
    print(f"{', '.join(asked.models)} at {asked.host}:{asked.port}", flush=True)
    told.wait()
    end()


if __name__ == "__main__":
    main()
