"""Models too large for this machine: replicas on a cluster (models/runtime/serve.py) load and
record them, and answer over HTTP.

HEADLIGHT_CLUSTER is the HTTP address of all replicas; a model is `cluster:NAME`, where NAME is its
name at the replicas. Requests and responses are plain data, a line of JSON and bytes of numpy's own
format, never a pickle. Every replica gives the same answer, so a request that a dying replica
leaves open is sent again."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from http.client import HTTPException
from typing import Any, ClassVar
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np

from models.contract import npz
from models.contract.cancellation import remote_wait
from models.contract.capabilities import READ_OFF, Capabilities
from models.contract.edits import KINDS, Edit, to_line
from models.contract.model import Model
from models.contract.recording import Card, NotFinite, Recording
from models.contract.recording_file import from_npz
from models.contract.results import Lens
from models.model_names import CLUSTER_PREFIX

ADDRESS_VARIABLE = "HEADLIGHT_CLUSTER"
TRIES, PAUSE = 7, 0.2  # of one question, and the seconds after the first; they double
TIMEOUT = 120.0  # seconds that one answer may take
_opener = build_opener(ProxyHandler({}))


@dataclass(frozen=True)
class ClusterVocabulary:
    """A model's vocabulary: each token as a person reads it, and the text that tokens spell. A
    model on the cluster writes nothing here, so no token of it ends a text."""

    eos_ids: ClassVar[frozenset[int]] = frozenset()
    model: str
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, token: int) -> str:
        """A token as a person reads it."""
        return self.labels[token]

    def text(self, ids: Iterable[int]) -> str:
        """The text that tokens spell, special ones left out."""
        answer, _ = _ask({"ask": "text", "model": self.model, "ids": [int(each) for each in ids]})
        return answer["text"]


@dataclass(frozen=True)
class ClusterModel(Model):
    """A model on the cluster, ready to record. Nothing of it is here but its card and its words."""

    source: ClassVar[str] = __name__
    card: Card
    remote: Capabilities
    tokenizer: ClusterVocabulary


def load(name: str) -> ClusterModel:
    """A model that the replicas serve. Raises ValueError, one sentence, where they do not."""
    remote_name = name.removeprefix(CLUSTER_PREFIX)
    answer, _ = _ask({"ask": "load", "model": remote_name})
    edits = tuple(KINDS[each] for each in answer["offers"].pop("edits"))
    sites = {stream: tuple(each) for stream, each in answer["offers"].pop("sites").items()}
    attention = tuple(answer["offers"].pop("attention"))
    remote = Capabilities(**answer["offers"], attention=attention, edits=edits, sites=sites)
    card = replace(Card(**answer["card"]), name=name)
    return ClusterModel(card, remote, ClusterVocabulary(remote_name, tuple(answer["labels"])))


def capabilities(model: ClusterModel) -> Capabilities:
    """The model's capabilities: those of a model in its own code, without access to its weights."""
    return model.remote


def record(
    model: ClusterModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...] = (),
    target: str | tuple[int, ...] | None = None,
) -> Recording:
    """One forward pass on the cluster, the same recording as of a pass here."""
    _, payload = _ask({"ask": "record", **_request(model, text, edits, target)})
    return replace(from_npz(payload), model=model.card)


def lens(
    model: ClusterModel,
    recording: Recording,
    stream: str,
    top: int = 10,
    token: int | None = None,
    sites: tuple[str, ...] | None = None,
    ids: tuple[int, ...] = (),
) -> Lens:
    """The logit lens of a stream, of one token alone where it is given, and of some sites and the
    last where these are: the `top` predictions at every site, and ranks as `Lens.ids`."""
    what = {"stream": stream, "top": top, "token": token, "sites": sites, "ids": ids}
    request = {"ask": "lens", **_request_of(model, recording), **what}
    answer, payload = _ask(request)
    values: dict[str, Any] = arrays(payload)
    return Lens(stream, tuple(answer["sites"]), ids=tuple(answer["ids"]), **values)


def logits(model: ClusterModel, recording: Recording, stream: str, token: int) -> np.ndarray:
    """Scores over the vocabulary, (id), at one token of a stream."""
    request = {"ask": "logits", **_request_of(model, recording), "stream": stream, "token": token}
    return arrays(_ask(request)[1])["logits"]


def nearest(model: ClusterModel, vectors: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """The words nearest to vectors (row, d_model): ids and cosines, each (row, rank)."""
    request = {"ask": "nearest", "model": model.tokenizer.model, "top": top}
    result = arrays(_ask(request, packed_arrays(vectors=vectors))[1])
    return result["ids"], result["cosines"]


def integrated(model: ClusterModel, *arguments: object) -> np.ndarray:
    """Raises ValueError: gradients are not sent over the line."""
    raise ValueError(f"{model.name} runs on the cluster, which gives no gradients")


def hidden(model: ClusterModel, readout: str) -> str:
    """Error message for what is read off weights."""
    what, own = READ_OFF[readout], model.tokenizer.model
    return f"{model.name} runs on the cluster, which does not show {what}; load {own} itself"


def packed(header: dict[str, Any], content: bytes = b"") -> bytes:
    """A question or an answer as it goes over the line: a line of JSON, then bytes."""
    return json.dumps(header).encode() + b"\n" + content


def unpacked(body: bytes) -> tuple[dict[str, Any], bytes]:
    """Undo `packed`. Raises ValueError for anything else."""
    line, _, content = body.partition(b"\n")
    header = json.loads(line)
    if not isinstance(header, dict):
        raise ValueError("this is no question")
    return header, content


def packed_arrays(**by_name: np.ndarray) -> bytes:
    """Arrays by name as bytes of numpy's own format."""
    file = io.BytesIO()
    np.savez(file, **by_name)  # type: ignore[arg-type]
    return file.getvalue()


def arrays(content: bytes) -> dict[str, np.ndarray]:
    """Undo `packed_arrays` without running anything in it. Raises ValueError for anything else."""
    return npz.read(content)


def capabilities_as_data(features: Capabilities) -> dict[str, Any]:
    """Capabilities as plain data: kinds of edits by name, without those that need the weights."""
    plain = {each.name: getattr(features, each.name) for each in fields(features)}
    edits = [each.__name__ for each in features.edits]
    sites = {stream: list(each) for stream, each in features.sites.items()}
    overrides = dict.fromkeys(("weights", "linear_readout", "writes"), False)
    return plain | {"edits": edits, "sites": sites, **overrides}


def card_as_data(card: Card) -> dict[str, Any]:
    """A card as plain data."""
    return asdict(card)


def _request(
    model: ClusterModel,
    text: str | tuple[int, ...],
    edits: tuple[Edit, ...],
    target: str | tuple[int, ...] | None,
) -> dict[str, Any]:
    """A request for a recording as plain data; the edits are written as in an address."""
    network = model.tokenizer.model
    return {"model": network, "text": text, "edits": to_line(edits), "target": target}


def _request_of(model: ClusterModel, recording: Recording) -> dict[str, Any]:
    output_stream = recording.streams[-1]
    target = tuple(map(int, output_stream.ids[1:])) if len(recording.streams) > 1 else None
    return _request(model, recording.text_or_ids, recording.edits, target)


def _ask(header: dict[str, Any], content: bytes = b"") -> tuple[dict[str, Any], bytes]:
    """A question's answer, from whichever replica gives one."""
    address = os.environ.get(ADDRESS_VARIABLE, "")
    if not address:
        raise ValueError(f"This server has no cluster; {ADDRESS_VARIABLE} names one.")
    with remote_wait():
        answer, payload = unpacked(_answer(Request(address, packed(header, content))))
    if "site" in answer:
        raise NotFinite(answer["site"])
    if "problem" in answer:
        raise ValueError(answer["problem"])
    return answer, payload


def _answer(request: Request) -> bytes:
    for attempt in range(TRIES):
        try:
            with _opener.open(request, timeout=TIMEOUT) as response:
                return response.read()
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code < 500:
                break  # it would be refused again
            time.sleep(PAUSE * 2**attempt)
    raise ValueError("The cluster does not answer just now; try again in a moment.")
