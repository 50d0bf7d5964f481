"""A panel by its address: what it answers for every panel, to whom, and what it refuses."""

from __future__ import annotations

import asyncio
import gzip
import json
import shlex
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import driver
import httpx2
import pytest
from conftest import HOSTILE, in_turn
from starlette.applications import Starlette
from starlette.testclient import TestClient
from test_panels import NAMES, model_of, text_of
from waiting import until

from explorer.app.server import panel
from explorer.app.server.headers import HEADERS
from explorer.app.server.limits import SlotCounter, slots
from explorer.app.server.panel import answering
from explorer.app.server.routes import MIDDLEWARE, ROUTES
from explorer.app.state import event_log, host, models
from explorer.app.state.scheduling import Cancelled, compute_queue, memory_budget
from explorer.app.state.settings import settings
from explorer.components import codec
from explorer.figures import figure_engine, figure_export
from explorer.figures.csv import plain_columns
from explorer.figures.figure_export import Sheet
from explorer.panels import address, interventions, spec
from explorer.panels.choice import choices_of, parameters
from models.contract.edits import WithoutPositions, ZeroHead
from models.example_texts import DEFAULT_MODEL, DEFAULT_TEXT, OPENING_TEXT
from models.runtime import caching
from models.runtime.cache import Cache
from models.runtime.caching import loaded
from models.runtime.run import Run

assert host.app, "the app's own host, with its queues"
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parent.parent
TEXT = "the cat sat on the mat"
HEAD = "/panel/attention.head.json"
OTHER_NETWORK = ("10.1.2.3", 5)


@pytest.fixture(scope="module")
def ask() -> Iterator[TestClient]:
    """A client of the app's own addresses, behind all that stands before them, on a server that
    lists a classifier beside what comes with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADLIGHT_MODELS", model_of("attribution.class_logit"))
        settings.cache_clear()
        with TestClient(Starlette(routes=ROUTES, middleware=MIDDLEWARE)) as client:
            yield client
    settings.cache_clear()


def run_of(name: str) -> Run:
    return Run(model_of(name), text_of(name, TEXT))


def at(name: str, ending: str, **words: str) -> str:
    words = {"model": model_of(name), "text": text_of(name, TEXT)} | words
    return f"/panel/{name}.{ending}?{urlencode(words)}"


def n_read() -> int:
    """The number of texts that models have read."""
    return event_log.counts("text").get("", 0)


# ---- what it answers -----------------------------------------------------------------------------


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_panel_leaves_as_each_file(ask: TestClient, name: str) -> None:
    """What the library writes, byte for byte: each panel as one kind of file in turn, and as
    data."""
    expected = spec.PANELS[name](run_of(name))
    endings = [each for each in spec.FILES if each not in ("json", "bin")]
    for ending in in_turn(endings, len(endings), name):
        kind = spec.FILES[ending]
        said = ask.get(at(name, ending))
        assert said.status_code == 200, said.text
        assert said.content == kind.make(expected)
        assert said.headers["content-type"].startswith(kind.media_type)
        assert said.headers["content-disposition"].endswith(f'.{ending}"')
    plain = ask.get(at(name, "json")).json()
    assert plain["panel"] == name and plain["finding"] == expected.finding
    assert plain["table"] == json.loads(json.dumps(plain_columns(expected.table)))
    written = {slot: number.text for slot, number in expected.numbers.items()}
    assert {slot: each["text"] for slot, each in plain["numbers"].items()} == written
    said = ask.get(at(name, "bin"))
    assert said.content == expected.encode()
    assert codec.decode(said.content)[0]["token"] == plain["token"]


# Panels of 0.5.0, whose addresses stand in papers: with another name one keeps the old one too.
OF_0_5 = """
    anatomy.formulas anatomy.verified anatomy.weight architecture.flow attention.head
    attention.heads attention.strongest_findings attribution.carriers attribution.class_logit
    attribution.logit attribution.neurons card.headline circuits.circuits claims.claim
    claims.verdicts compare.difference compare.heads compare.nearest compare.prediction
    compare.tokens corpus.distances corpus.highest corpus.patterns distances.near_and_far
    embeddings.anchors embeddings.contexts embeddings.neighbours feed_forward.network
    feed_forward.units generation.attention generation.kv_cache generation.loops
    generation.next_token generation.tokens gradients.deep_stack gradients.jacobian
    interventions.effect interventions.experiments interventions.head_attention
    interventions.patches interventions.residual_stream interventions.trained_without
    logit_lens.development logit_lens.lens modern.gate modern.rms_norm modern.rotary
    modern.shared_keys multi_head.concatenation multi_head.head_gradients multi_head.shapes
    neighbours.between norm_place.diagrams paper_figure.stacks positions.distance
    positions.encoding positions.order positions.overlap positions.rotation positions.sentence
    predictions.word recurrence.bottleneck residual.batch_norm residual.heads
    residual.norm_steps residual.norms residual.token_path residual.updates
    score_parts.path score_parts.sources soft_lookup.heads
    soft_lookup.messages soft_lookup.scale soft_lookup.scoring soft_lookup.temperature
    softmax.combination softmax.mask softmax.saturation stages.exchanged summaries.aggregated
    summaries.disagreements summaries.output_norms teacher_forcing.offset textbook.own_weight
    training.checkpoints training.pair translation.alignment translation.hypotheses
    translation.probability
"""


def test_a_panel_of_an_earlier_version_keeps_its_address() -> None:
    assert set(OF_0_5.split()) <= set(spec.panel_names())


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_panels_own_address_makes_it_again(ask: TestClient, name: str) -> None:
    """Of an edited run too, and with each choice that has other options."""
    edited = run_of(name).under((ZeroHead(0, 1, run_of(name).recording().attention[0].name),))
    for run in (run_of(name), edited):
        try:
            made = [spec.PANELS[name](run)]
        except ValueError:  # of the model as it is alone
            continue
        chosen = {each.argument: each.default for each in parameters(spec.PANELS[name])}
        for each in parameters(spec.PANELS[name]):
            for option in list(each.values(run, chosen))[-1:]:
                with suppress(ValueError):  # of another model
                    made.append(spec.PANELS[name](run, **{each.argument: option}))
        for one in made:
            said = ask.get(f"/{address.address_of(one, 'bin')}")
            assert said.content == one.encode(), (one.call, said.text[:300])


def test_another_run_beside_it_is_in_its_address(ask: TestClient) -> None:
    run = Run("encoder", TEXT)
    others = Run("decoder", TEXT), Run("encoder", "the dog"), run.under((WithoutPositions(),))
    for other in others:
        made = spec.PANELS["compare.heads"](run, other=other)
        assert ask.get(f"/{address.address_of(made, 'bin')}").content == made.encode()


def test_no_address_names_a_recording_that_was_handed_in() -> None:
    made = spec.PANELS["attention.head"](loaded("encoder").uncached.record(TEXT))
    with pytest.raises(ValueError, match="No address names this figure"):
        address.address_of(made, "html")


def test_no_choice_of_a_panel_is_called_as_a_word_of_the_run() -> None:
    for name in NAMES:
        called = {each.argument for each in parameters(spec.PANELS[name])}
        called |= {each.name for each in choices_of(spec.PANELS[name])}
        assert not called & {*address.OF_RUN, *figure_export.PARTS}, name


@pytest.mark.skipif(not figure_engine.is_there(), reason="nothing draws here")
def test_a_picture_has_the_sheet_that_its_address_says(ask: TestClient) -> None:
    plain = "/panel/residual.norms.svg?text=the+cat+sat"
    said = ask.get(f"{plain}&width=8.5cm&caption=no&title=no&formulas=no&notes=no")
    assert said.status_code == 200 and 'width="85.00mm"' in said.text
    panel = spec.PANELS["residual.norms"](Run("encoder", "the cat sat"))
    sheet = Sheet("8.5cm", caption=False, title=False, formulas=False, notes=False)
    assert said.content == spec.FILES["svg"].make(panel, sheet)
    assert ask.get(plain.replace("svg", "pdf") + "&width=8.5cm").content.startswith(b"%PDF")
    for wrong in ("width=8.5parsec", "width=900cm", "caption=maybe"):
        assert ask.get(f"{plain}&{wrong}").status_code == 400, wrong
    assert ask.get(f"{plain.replace('svg', 'json')}&width=8.5cm").status_code == 400


def test_a_bare_address_is_of_the_first_page_and_any_text_is_data(ask: TestClient) -> None:
    first = spec.PANELS["attention.head"](Run("encoder", DEFAULT_TEXT))
    assert ask.get("/panel/attention.head.bin").content == first.encode()
    for text in HOSTILE.values():
        text = text.encode("utf-8", "replace").decode()
        said = ask.get(at("attention.head", "html", text=text))
        expected = spec.document([spec.PANELS["attention.head"](Run("encoder", text))])
        assert said.text == expected


def test_a_word_of_the_text_stands_for_its_place(ask: TestClient) -> None:
    said = ask.get(at("attention.head", "bin", model="encoder", token="sat"))
    place = Run("encoder", TEXT).recording().streams[0].tokens.index("sat")
    assert (
        said.content
        == ask.get(at("attention.head", "bin", model="encoder", token=f"{place}")).content
    )
    absent = ask.get(at("attention.head", "bin", model="encoder", token="dog"))
    assert absent.status_code == 400 and is_one_sentence(absent)


# ---- what is kept --------------------------------------------------------------------------------


def test_whoever_has_it_gets_304_without_a_computation(ask: TestClient) -> None:
    where = at("attention.head", "json", layer="1", text="A sentence of its own.")
    first = ask.get(where)
    caching.cache.evict_all()
    for key in [each for each in caching.cache.entries if "panel file" in each]:
        caching.cache._drop(key)
    before = n_read()
    for said in (first.headers["etag"], f'"x", {first.headers["etag"]}', first.headers["etag"][2:]):
        again = ask.get(where, headers={"If-None-Match": said})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
    assert n_read() == before
    assert ask.get(where, headers={"If-None-Match": '"x"'}).content == first.content
    assert ask.get(where).content == first.content and n_read() <= before + 1


def test_an_etag_is_of_all_that_is_asked_and_of_nothing_else(ask: TestClient) -> None:
    words = {"layer": "1", "head": "2", "text": TEXT}
    one = ask.get(f"{HEAD}?{urlencode(words)}").headers["etag"]
    turned = dict(reversed(words.items()))
    assert ask.get(f"{HEAD}?{urlencode(turned)}").headers["etag"] == one
    seen = [one]
    for changed in ({"head": "3"}, {"text": "the dog"}, {"model": "decoder"}, {"tone": "1"}):
        seen.append(ask.get(f"{HEAD}?{urlencode(words | changed)}").headers["etag"])
    seen.append(
        ask.get(f"{HEAD}?{urlencode(words | {'edits': 'WithoutPositions'})}").headers["etag"]
    )
    seen.append(ask.get(f"{HEAD.replace('json', 'csv')}?{urlencode(words)}").headers["etag"])
    assert len(set(seen)) == len(seen)


def test_it_is_packed_for_those_who_take_it_so(ask: TestClient) -> None:
    where = at("attention.heads", "json")
    plain = ask.get(where, headers={"Accept-Encoding": "identity"})
    packed = ask.get(where, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert plain.content == packed.content and plain.headers["vary"] == "Accept-Encoding"
    assert (
        int(packed.headers["content-length"])
        < len(plain.content)
        == int(plain.headers["content-length"])
    )


def test_only_a_server_for_strangers_lets_proxies_keep_it(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ask.get(HEAD).headers["cache-control"] == f"private, max-age={panel.SECONDS}"
    monkeypatch.setattr(panel, "settings", lambda: replace(settings(), public=True))
    assert ask.get(HEAD).headers["cache-control"] == f"public, max-age={panel.SECONDS}"


# ---- headers -------------------------------------------------------------------------------------


def test_a_document_runs_apart_from_the_app(ask: TestClient) -> None:
    document = ask.get(at("attention.head", "html")).headers
    policy = document["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'self'" in policy
    assert "sandbox allow-scripts allow-downloads" in policy and "allow-same-origin" not in policy
    assert document["cross-origin-opener-policy"] == "unsafe-none"
    data = ask.get(at("attention.head", "json")).headers
    for name, value in HEADERS.items():
        assert data[name] == value
        assert name in document
    assert "access-control-allow-origin" not in data


# ---- what it refuses -----------------------------------------------------------------------------


LONG = "9" * 5000
ABSENT = (
    *("attention.head", "attention.head.gif", "attention.head.", ".json", "attention.json"),
    *("nothing.here.json", "ATTENTION.HEAD.JSON", "spec.Panel.json", "heads.json", "a.b.c.json"),
    *("..%2f..%2fetc%2fpasswd.json", "%2e%2e.json", "attention/head.json"),
    *(
        "attention.head.json/",
        "attention.head.json%00",
        "attention.head.json%0a",
        "a" * 90 + ".json",
    ),
)
WRONG = (
    *("nothing=1", "%00=1", "=1", "tab=heads", "layer[]=1", "__class__=1", "run=1", "self=1"),
    *("layer=1&layer=1", "tone=1&log=1", "text=a&text=b", "model=encoder&model=encoder"),
    *("layer=", "layer=x", "layer=99", "layer=-99", f"layer={LONG}", f"head=-{LONG}", "layer=1.5"),
    *("layer=nan", "layer=inf", "layer=1e3", "layer=%00", "layer=1%0a2", "layer=1;head=2"),
    *("tone=2", "tone=yes", "scale=Loud", "view=../..", "att_keep=%3Cscript%3E", "attention=cross"),
    *("key=99", "token=1000000", "att_unit=Lines", "target=bonjour"),
    *("edits=x", "edits=ZeroHead", "edits=ZeroHead:99:0:self", "edits=ZeroHead:a:b:self"),
    *("edits=ScaledBy:nan:0", "edits=ScaledBy:1e999:0", "edits=ZeroHead:0-999999:0-9:self"),
    *("edits=__import__:1", f"edits=Window:{LONG}", "edits=PatchSite:::::"),
)


@pytest.mark.parametrize("file", ABSENT)
def test_what_is_no_panel_is_not_there(ask: TestClient, file: str) -> None:
    said = ask.get(f"/panel/{file}")
    assert said.status_code == 404 and is_one_sentence(said)


@pytest.mark.parametrize("query", WRONG, ids=lambda query: query[:24])
def test_what_cannot_be_is_refused_in_a_sentence(ask: TestClient, query: str) -> None:
    said = ask.get(f"{HEAD}?{query}")
    assert said.status_code == 400 and is_one_sentence(said), said.text


@pytest.mark.slow
def test_a_worksheet_is_had_by_its_lesson_and_any_text_is_data(ask: TestClient) -> None:
    text = f"{HOSTILE['bold']} sat on the mat."
    said = ask.get(f"/worksheet/lecture?{urlencode({'text': text})}")
    assert said.status_code == 200 and said.headers["content-type"].startswith("text/html")
    assert HOSTILE["bold"] not in said.text
    assert "sandbox" in said.headers["content-security-policy"]
    for word in ("99", "9" * 5000, "-1", "x", "\u0663"):  # no place of a word: the lesson's own
        query = urlencode({"text": "The cat sat on the mat.", "lesson_word": word})
        assert ask.get(f"/worksheet/three-minutes?{query}").status_code == 200


def test_the_address_on_the_last_wall_is_a_worksheet_when_it_is_typed(ask: TestClient) -> None:
    """It has no text: the sheet is of the sentence that the app opens on."""
    said, led = (
        ask.get(f"/worksheet/lecture{query}")
        for query in ("", f"?{urlencode({'text': OPENING_TEXT, 'model': DEFAULT_MODEL})}")
    )
    assert said.status_code == 200 and said.content == led.content


@pytest.mark.parametrize(
    ("asked", "status"),
    [("nothing", 404), ("lecture?model=nope", 404), ("lecture?text=Hi", 400), ("..%2Fapp", 404)],
)
def test_what_is_no_worksheet_is_refused_in_a_sentence(
    ask: TestClient, asked: str, status: int
) -> None:
    said = ask.get(f"/worksheet/{asked}")
    assert said.status_code == status and is_one_sentence(said), said.text


def is_one_sentence(said: httpx2.Response) -> bool:
    plain = said.headers["content-type"].startswith("text/plain")
    short = 0 < len(said.text) <= panel.LONGEST_REFUSAL + 1
    kept = "max-age" not in said.headers.get("cache-control", "")
    return plain and short and kept and said.text.isprintable()


VALUES = ("nan", "-inf", "1e999", "-1", LONG, f"-{LONG}", "\x00", "\ufffd<b>", "1.2", "١٢", " 1 ")


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_no_value_of_a_choice_is_a_fault(ask: TestClient, name: str) -> None:
    """A figure or a sentence, whatever stands there; each choice takes its turn of the values."""
    called = {each.argument for each in parameters(spec.PANELS[name])}
    called |= {each.name for each in choices_of(spec.PANELS[name])}
    for choice in sorted(called):
        for value in in_turn(VALUES, len(VALUES), f"{name} {choice}"):
            said = ask.get(at(name, "json", **{choice: value}))
            assert said.status_code in (200, 400, 404), (choice, value, said.text)
            assert said.status_code == 200 or is_one_sentence(said), (choice, value)


def test_a_text_beyond_the_limit_is_refused_and_one_at_it_is_read(ask: TestClient) -> None:
    most = settings().max_chars
    for name in ("text", "target", "model", "layer", "x" * 20):
        said = ask.get(HEAD, params={name: "a" * (most + 1)})
        assert said.status_code == 414 and is_one_sentence(said)
    said = ask.get("/panel/predictions.word.json", params={"text": "a " * (most // 2)})
    assert said.status_code == 200


@pytest.mark.parametrize("model", ["gpt2", "hub:gpt2", "ours:gpt2", "/etc", "live:1", "x", "\x00"])
def test_no_model_is_fetched_or_shown_that_not_every_visitor_has(
    ask: TestClient, model: str
) -> None:
    before = {*models.loaded_models}
    for where in (
        at("attention.head", "json", model=model),
        at("compare.heads", "json", other_model=model),
    ):
        said = ask.get(where)
        assert said.status_code == 404 and "every visitor" in said.text and is_one_sentence(said)
    for name, choice in (("training.pair", "train_pair"), ("training.checkpoints", "train_of")):
        assert ask.get(at(name, "json", **{choice: model})).status_code in (200, 400)
    assert before >= {each for each in models.loaded_models if ":" in each or "/" in each}


def test_a_model_that_one_visitor_opened_is_no_others(ask: TestClient) -> None:
    models.adopt_model(borrowed := loaded("copy").uncached)
    models.loaded_models["hub:somebody/model"] = borrowed
    try:
        assert ask.get(at("attention.head", "json", model="hub:somebody/model")).status_code == 404
        with models.of_all_visitors(), pytest.raises(ValueError, match="not offered"):
            loaded("hub:somebody/model")
    finally:
        del models.loaded_models["hub:somebody/model"]


def test_only_what_is_read_is_answered(ask: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert ask.request(method, HEAD).status_code == 405
    head, whole = ask.head(HEAD), ask.get(HEAD)
    for name in ("etag", "content-length", "content-type", "cache-control"):
        assert head.headers[name] == whole.headers[name]


# ---- limits --------------------------------------------------------------------------------------


@contextmanager
def taken(places: SlotCounter, networks: int) -> Iterator[list[Any]]:
    """All places, by so many networks."""
    with ExitStack() as stack:
        made = []
        for at in range(places.limit):
            group = (f"10.9.{at % networks}.1",) * 3 + ("",)
            places.activate(one := places.take(group))
            stack.callback(places.leave, one)
            made.append(one)
        yield made


def test_one_network_leaves_room_for_others(ask: TestClient) -> None:
    app = ask.app
    with taken(answering, 1):
        asked = at("attention.head", "json", text="Room for one more.")
        mine = TestClient(app, client=("10.9.0.1", 1)).get(asked)
        assert mine.status_code == 429 and is_one_sentence(mine)
        assert int(mine.headers["retry-after"]) > 0
        assert TestClient(app, client=OTHER_NETWORK).get(asked).status_code == 200
        assert TestClient(app, client=("10.9.0.1", 1)).get(asked).status_code == 200, "it is kept"
    assert answering.used == 0


def test_a_full_server_has_room_for_its_own_readers_alone(ask: TestClient) -> None:
    asked = at("attention.head", "json", text="A server without room.")
    with taken(slots, slots.limit):
        said = TestClient(ask.app, client=OTHER_NETWORK).get(asked)
        assert said.status_code == 503 and int(said.headers["retry-after"]) > 0
        assert TestClient(ask.app, client=("10.9.7.1", 1)).get(asked).status_code == 200


def test_others_are_answered_while_one_waits(ask: TestClient) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        with compute_queue.slot():
            making = elsewhere.submit(ask.get, at("attention.head", "json", text="It waits."))
            until(lambda: compute_queue.waiting() == 1)
            assert ask.get("/join").status_code == 200 and not making.done()
        assert making.result(timeout=60).status_code == 200


def test_what_several_ask_for_at_once_is_computed_once(ask: TestClient) -> None:
    asked, before = at("attention.head", "json", text="All want this one."), n_read()
    with ThreadPoolExecutor(panel.MAX_AT_ONCE) as elsewhere:
        said = [*elsewhere.map(lambda _: ask.get(asked), range(panel.MAX_AT_ONCE))]
    assert {each.status_code for each in said} == {200} and len(
        {each.content for each in said}
    ) == 1
    assert n_read() == before + 1


def test_a_computation_ends_with_its_reader() -> None:
    """It waits behind others, and its reader leaves meanwhile."""
    asked = panel.parse("attention.head.json", [("text", "It waits in vain.")])
    gone = threading.Event()
    with ThreadPoolExecutor(1) as elsewhere, compute_queue.slot():
        making = elsewhere.submit(panel._computed, asked, gone)
        until(lambda: compute_queue.waiting() == 1)
        gone.set()
        with pytest.raises(Cancelled):
            making.result(timeout=30)
    assert compute_queue.waiting() == 0


def test_the_passes_without_each_word_end_with_their_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pass a word is made, and one without the head of the answer; the reader leaves in the
    second."""
    asked = panel.parse("flow_beam.each_word.json", [("text", "The old dog sleeps in the sun.")])
    gone, passes, predict = threading.Event(), [], interventions.Pair.prediction

    def prediction(*arguments: Any) -> Any:
        passes.append(arguments)
        if len(passes) == 2:
            gone.set()
        return predict(*arguments)

    monkeypatch.setattr(interventions.Pair, "prediction", prediction)
    with pytest.raises(Cancelled):
        panel._computed(asked, gone)
    assert len(passes) == 2
    gone.clear()
    whole = json.loads(gzip.decompress(panel._computed(asked, gone).packed))
    assert len(passes) - 2 == whole["table"]["row"].count("word") + 1 > 3


def test_a_browser_that_goes_is_waited_for_no_longer(ask: TestClient) -> None:
    query = urlencode({"text": "Its browser is closed meanwhile."}).encode()
    scope = {
        **{"type": "http", "method": "GET", "path": HEAD, "raw_path": HEAD.encode()},
        **{"query_string": query, "headers": [], "client": OTHER_NETWORK, "app": ask.app},
        **{"http_version": "1.1", "scheme": "http", "server": ("here", 80), "root_path": ""},
    }
    messages = [{"type": "http.request", "body": b""}, {"type": "http.disconnect"}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.Event().wait()
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        """Nobody is there."""

    async def asked() -> None:
        await asyncio.wait_for(Starlette(routes=panel.ROUTES)(scope, receive, send), 30)

    with compute_queue.slot(), ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, asked()).result()
    wanted = panel.parse("attention.head.json", parse_qsl(query.decode()))
    assert answering.used == 0 and caching.cache.peek(wanted.key) is None


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "settings", lambda: replace(settings(), max_seconds=0))
    asked = panel.parse("attention.head.json", [("text", "It takes its time.")])
    with ThreadPoolExecutor(1) as elsewhere, compute_queue.slot():
        making = elsewhere.submit(panel._computed, asked, threading.Event())
        with pytest.raises(ValueError, match="more than the 0 seconds"):
            making.result(timeout=30)


def test_what_takes_too_much_memory_is_refused_before_it_begins(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "cache", Cache(2**24, 2**24))
    before = len(caching.cache.entries)
    said = ask.get(at("residual.norms", "json", text="the cat sat on the mat " * 80))
    assert said.status_code == 413 and is_one_sentence(said) and "shorter text" in said.text
    assert len(caching.cache.entries) == before
    assert ask.get(at("residual.norms", "json", text="the cat sat")).status_code == 200


def test_who_finds_the_memory_taken_is_told_when_to_ask_again(
    ask: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "cache", full := Cache(2**25, 2**27))
    monkeypatch.setattr(memory_budget, "_longest", {False: 0.0, True: 0.0})
    monkeypatch.setattr(memory_budget, "_seconds", lambda: 0.0)
    asked = at("residual.norms", "json", text="the dog ran to the park " * 70)
    held, go = threading.Event(), threading.Event()

    def hold() -> None:
        with memory_budget.work(), full.working(full.limit + (full.beyond or 0)):
            held.set()
            go.wait(60)

    with ThreadPoolExecutor(1) as elsewhere:
        holding = elsewhere.submit(hold)
        held.wait(60)
        said = ask.get(asked)
        go.set()
        holding.result(timeout=60)
    assert said.status_code == 503 and int(said.headers["retry-after"]) > 0
    assert is_one_sentence(said) and "Try again" in said.text
    assert ask.get(asked).status_code == 200


# ---- a real server -------------------------------------------------------------------------------


BASE = "/tools/headlight"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The app below a path."""
    yield from driver.serving(STREAMLIT_SERVER_BASE_URL_PATH=BASE)


def test_the_example_in_the_docs_runs(server: str) -> None:
    lines = (ROOT / "docs/export.md").read_text("utf-8").splitlines()
    (line,) = [each for each in lines if each.strip().startswith("curl ")]
    command = shlex.split(line.replace("http://localhost:8501", server))
    said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert said["panel"] == "attention.head" and "Layer 1, head 5" in said["title"]
    assert said["table"] and any("The animal was tired." in each for each in said["caption"])


def test_it_lies_below_the_path_of_the_app(server: str) -> None:
    asked = f"{server}/panel/attention.head.html?layer=1"
    first = httpx2.get(asked, timeout=60)
    assert first.status_code == 200 and first.text.startswith("<!doctype html>")
    known = {"If-None-Match": first.headers["etag"]}
    assert httpx2.get(asked, headers=known).status_code == 304
    head = httpx2.head(asked)
    assert head.status_code == 200 and not head.content
    assert head.headers["content-length"] == first.headers["content-length"]
    assert httpx2.get(asked.replace(BASE, "")).status_code == 404


@pytest.mark.parametrize("path", ["/panel/../panel/x", "/panel//etc/passwd", "/panel/%00.json"])
def test_a_path_that_leads_elsewhere_leads_nowhere(server: str, path: str) -> None:
    parts = urlsplit(server)
    line = HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    line.request("GET", BASE + path)  # as it is written
    assert line.getresponse().status == 404
    line.close()


@driver.browser_test
def test_a_document_is_drawn_and_reaches_nothing(browser: Any, server: str) -> None:
    page = browser.new_context().new_page()
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto(f"{server}/panel/attention.head.html?layer=1&head=5&token=3")
    page.locator("svg, canvas").first.wait_for()
    assert page.evaluate("self.origin") == "null", "it is apart from the app"
    assert not problems
    assert [each for each in asked if not each.startswith(("data:", "blob:"))] == asked[:1]
    page.context.close()
