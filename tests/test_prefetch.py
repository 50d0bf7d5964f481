"""A text's two large pictures, made before the page has run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from app_harness import page_at
from starlette.applications import Starlette
from starlette.testclient import TestClient
from waiting import until

from explorer.analysis.facts import RecordingFacts
from explorer.app.server import addresses, prefetch
from explorer.app.server.prefetch import pictures
from explorer.app.state.scheduling import ScriptQueue, compute_queue
from explorer.components import codec
from models.runtime.caching import is_kept, loaded

TEXT = "The cat that saw the dog ran because it was afraid."
JSON = {"content-type": "application/json"}
HOSTILE = "<script>alert(1)</script> \ud800 **x** $y$ \u202e Ünïcode 日本語 \x00"


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A client, before whom nobody was there, with two models loaded."""
    monkeypatch.setattr(prefetch, "script_queue", ScriptQueue())
    loaded("encoder"), loaded("translator")
    with TestClient(Starlette(routes=prefetch.ROUTES)) as client:
        yield client


def said(**more: object) -> dict[str, object]:
    return {"model": "encoder", "text": TEXT, "choices": {}} | more


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("encoder", {}),
        ("encoder", {"layer": "1", "head": "5", "flow_level": "Head"}),
        ("translator", {"flow_number": "Share"}),
        ("decoder", {"flow_temperature": "0.5"}),
    ],
)
def test_a_flow_is_what_its_page_sends_but_for_words_that_take_long(
    model: str, asked: dict[str, str]
) -> None:
    text = f"{TEXT} {model}"
    loaded(model)
    sooner = pictures(model, text, asked, "flow")
    app = page_at("flow", text=text, model=model, **asked)
    parts = [each.proto for each in app.get("bidi_component")]
    found = {codec.decode(each.bytes)[0].get("panel"): each.bytes for each in parts if each.bytes}
    (name,) = sooner
    (quick, blocks), (whole, others) = map(codec.decode, (sooner[name], found["architecture.flow"]))
    assert name == "architecture.flow"
    assert quick.pop("token") == f"{whole.pop('token')}+"
    if "flow_level" not in asked:  # those of the whole stand below the picture
        assert not quick.pop("formulas") and whole.pop("formulas")
        assert not quick["figures"][0].pop("framed")
        whole["figures"][0].pop("framed")
    for each in (quick, whole):
        for word in each["figures"][0]["words"]:
            word["label"] = word["label"].partition("… (")[0].rstrip("…")
        for lane in each["figures"][0]["lanes"]:
            lane.pop("rest", None)
        for stop in each["figures"][0]["stops"]:
            for words in ("says", "writes", "units"):
                stop.pop(words, None)
    assert quick == whole
    assert all(np.array_equal(blocks[each], others[each]) for each in others)
    assert not pictures(model, text, {"flow_level": "Layer", "pattern": "sink"}, "flow")


@pytest.mark.slow
def test_a_chosen_head_without_a_finding_waits_for_no_prediction() -> None:
    loaded("decoder")
    recording = loaded("decoder").record(text := f"{TEXT} Then it slept.")
    seen = {one.at for one in RecordingFacts(recording).leading_findings()}
    heads = np.ndindex(recording.attention[0].pattern.shape[:2])
    layer, head = next(at for at in heads if at not in seen)
    assert pictures("decoder", text, {"layer": str(layer), "head": str(head)})
    assert not is_kept(RecordingFacts.findings, recording)


@pytest.mark.slow
def test_the_address_answers_with_them(ask: TestClient) -> None:
    answer = ask.post(prefetch.PATH, json=said())
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    _, blocks = codec.decode(answer.content)
    header, _ = codec.decode(blocks["attention.heads"].tobytes())
    assert "cat" in header["figures"][0]["tokens"]
    made = {name: block.tobytes() for name, block in blocks.items()}
    assert made == pictures("encoder", TEXT, {})
    for text in (HOSTILE, "", " ", "\n", "a" * prefetch.MAX_TEXT_BYTES):
        content = json.dumps(said(text=text)).encode()
        answer = ask.post(prefetch.PATH, content=content, headers=JSON)
        assert answer.status_code in (200, 204), "any text is data"


@pytest.mark.slow
def test_whatever_cannot_be_told_beforehand_is_left_to_the_page(ask: TestClient) -> None:
    for wrong in (
        said(model="translator", choices={"attention": "sideways"}),
        *(said(model=each) for each in ("/etc", "gpt2")),
        *(said(text=each) for each in ("a" * (prefetch.MAX_TEXT_BYTES + 1), 7)),
        *(
            said(choices=each)
            for each in ({"pattern": "sink"}, {"view": "Film"}, {"token": "2"}, ["view"])
        ),
        {"text": TEXT},
        [],
    ):
        assert ask.post(prefetch.PATH, json=wrong).status_code == 204, wrong


@pytest.mark.slow
def test_no_body_and_a_large_one_are_not_read(ask: TestClient) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * prefetch.MAX_BODY_BYTES

    large = b"x" * (prefetch.MAX_BODY_BYTES + 1)
    for content in (b"", large, parts(), b"[" * (prefetch.MAX_BODY_BYTES - 1)):
        assert ask.post(prefetch.PATH, content=content, headers=JSON).status_code == 204
    many = JSON | {"content-length": "many"}
    assert ask.post(prefetch.PATH, content=b"{}", headers=many).status_code == 204


@pytest.mark.slow
def test_an_error_says_nothing_of_the_text(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError(TEXT)

    monkeypatch.setattr(prefetch, "_pictures", fails)
    assert ask.post(prefetch.PATH, json=said()).status_code == 204
    assert "RuntimeError" in caplog.text and TEXT not in caplog.text


@pytest.mark.slow
def test_a_heavy_models_pictures_are_computed_behind_others(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefetch, "heavy_models", {"encoder"})
    with ThreadPoolExecutor(1) as elsewhere:
        with compute_queue.slot():
            answer = elsewhere.submit(ask.post, prefetch.PATH, json=said(text=f"{TEXT} Again."))
            until(lambda: compute_queue._long or compute_queue._short)
            assert len(compute_queue._long) == 1 and not compute_queue._short
        assert answer.result().status_code == 200


@pytest.mark.slow
def test_another_sites_page_and_one_of_many_readers_get_nothing_made(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.dumps(said()).encode()
    assert ask.post(prefetch.PATH, content=content, headers=JSON).status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        there = {"content-type": kind}
        assert ask.post(prefetch.PATH, content=content, headers=there).status_code == 204
    assert ask.post(prefetch.PATH, content=content).status_code == 204
    monkeypatch.setattr(prefetch.script_queue, "begun_lately", lambda: prefetch.MAX_RECENT_RUNS + 1)
    assert ask.post(prefetch.PATH, json=said()).status_code == 204


def test_the_door_takes_what_is_sent_and_nothing_is_read_there() -> None:
    def scope(method: str) -> dict[str, object]:
        return {"type": "http", "path": prefetch.PATH, "method": method, "query_string": b""}

    assert addresses.refusal(scope("POST")) is None
    refused = addresses.refusal(scope("GET"))
    assert refused is not None and refused.status_code == 405
