"""Models served by replicas on a cluster: `python -m models.runtime.serve hub:gpt2-xl --replicas
4`.

Each replica loads the requested models and answers for them over HTTP; Ray Serve keeps the replicas
alive and distributes the requests. A client (models/runtime/cluster.py) sends plain data and gets
plain data: no code, no pickle. It is for a closed network: any client that reaches the port may
send requests."""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from models import child_process
from models.contract.edits import from_line
from models.contract.recording import NotFinite, Recording
from models.contract.recording_file import to_npz
from models.runtime import registry
from models.runtime.cluster import (
    arrays,
    capabilities_as_data,
    card_as_data,
    packed,
    packed_arrays,
    unpacked,
)

NAME = "headlight"
MAX_REQUEST_BYTES = 16 << 20  # of one question
MAX_RECORDINGS = 4  # recordings that a replica keeps: the lens of one is asked for right after it


class Models:
    """The models of one replica, and its answers. Raises ValueError for a model that cannot be
    loaded."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._models = {name: registry.load(name) for name in names}
        self._lock = threading.Lock()  # passes are fastest one by one
        self._recorded = lru_cache(maxsize=MAX_RECORDINGS)(self._record)
        self._answers: dict[str, Callable[[dict, bytes], tuple[dict, bytes]]] = {
            "load": self._load,
            "record": lambda request, _: ({}, to_npz(self._recording(request), compressed=False)),
            "lens": self._lens,
            "logits": self._logits,
            "nearest": self._nearest,
            "text": self._text,
        }

    def answer(self, body: bytes) -> bytes:
        """The answer to one question, with the process that gives it; a `problem` where it cannot
        be answered."""
        process = {"process": os.getpid()}
        try:
            request, content = unpacked(body)
            if request.get("model") not in self._models:
                raise ValueError("The cluster serves no model of this name.")
            with self._lock:
                answer, payload = self._answers[request["ask"]](request, content)
            return packed(answer | process, payload)
        except NotFinite as error:
            return packed({"problem": str(error), "site": error.site} | process)
        except ValueError as error:
            return packed({"problem": str(error)} | process)
        except (KeyError, TypeError, IndexError):
            return packed({"problem": "This is no question that a model answers."} | process)

    def _record(
        self, model: str, text: str | tuple[int, ...], edits: str, target: Any
    ) -> Recording:
        return self._models[model].record(text, from_line(edits), target)

    def _recording(self, request: dict) -> Recording:
        target = request["target"]
        target = tuple(target) if isinstance(target, list) else target
        text = tuple(request["text"]) if isinstance(request["text"], list) else request["text"]
        return self._recorded(request["model"], text, request["edits"], target)

    def _load(self, request: dict, _: bytes) -> tuple[dict, bytes]:
        model = self._models[request["model"]]
        return {
            "card": card_as_data(model.card),
            "offers": capabilities_as_data(model.capabilities),
            "labels": model.labels(range(model.card.n_vocab)),
        }, b""

    def _lens(self, request: dict, _: bytes) -> tuple[dict, bytes]:
        model, recording = self._models[request["model"]], self._recording(request)
        sites = request["sites"] and tuple(request["sites"])
        stream, top, token = (request[each] for each in ("stream", "top", "token"))
        result = model.lens(recording, stream, top, token, sites, tuple(request.get("ids", ())))
        values = {each.name: getattr(result, each.name) for each in fields(result)}
        array_values = {
            name: value for name, value in values.items() if isinstance(value, np.ndarray)
        }
        return {"sites": result.sites, "ids": result.ids}, packed_arrays(**array_values)

    def _logits(self, request: dict, _: bytes) -> tuple[dict, bytes]:
        model, recording = self._models[request["model"]], self._recording(request)
        scores = model.logits(recording, request["stream"], request["token"])
        return {}, packed_arrays(logits=scores)

    def _nearest(self, request: dict, content: bytes) -> tuple[dict, bytes]:
        vectors = arrays(content)["vectors"]
        ids, cosines = self._models[request["model"]].nearest(vectors, request["top"])
        return {}, packed_arrays(ids=ids, cosines=cosines)

    def _text(self, request: dict, _: bytes) -> tuple[dict, bytes]:
        return {"text": self._models[request["model"]].tokenizer.text(request["ids"])}, b""


class Replica:
    """The models behind HTTP, as Ray Serve runs them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._models = Models(names)

    async def __call__(self, request: Any) -> Any:
        """One question over HTTP."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import Response

        if int(request.headers.get("content-length", 0)) > MAX_REQUEST_BYTES:
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

    env_vars = {
        "PYTHONPATH": str(child_process.IMPORT_ROOT),
        "OMP_NUM_THREADS": str(max(1, int(cpus))),
    }
    ray.init(
        ignore_reinit_error=True,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": env_vars},
    )
    serve.start(http_options={"host": host, "port": port})
    deployment = serve.deployment(
        name="models",
        num_replicas=replicas,
        max_ongoing_requests=4,
        ray_actor_options={"num_cpus": cpus},
    )(Replica)
    serve.run(deployment.bind(names), name=NAME, route_prefix="/")


def end() -> None:
    """Stop the replicas, and Ray where it was started here."""
    import ray
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def main(argv: list[str] | None = None) -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}.serve", description=__doc__)
    parser.add_argument("models", nargs="+", help="names that `models.runtime.registry.load` takes")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=1, help="processors of each replica")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args(argv)
    stop = threading.Event()
    begin(
        tuple(arguments.models), arguments.replicas, arguments.host, arguments.port, arguments.cpus
    )
    for code in (signal.SIGINT, signal.SIGTERM):  # in the place of Ray's own, which end it at once
        signal.signal(code, lambda *_: stop.set())
    print(f"{', '.join(arguments.models)} at {arguments.host}:{arguments.port}", flush=True)
    stop.wait()
    end()


if __name__ == "__main__":
    main()
