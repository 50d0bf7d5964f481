"""A model on a device beside the processor's memory: it computes there, what is had of it is
numpy's, and the same. Gradients are left out: the device of these tests follows none."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import other_device
import pytest
import tiny
import torch
from tolerances import PASSED

import headlight
from models.contract import edits
from models.contract.model import Model
from models.network import devices

pytestmark = pytest.mark.slow
ORDER = (edits.OtherPositions("rotary"), edits.ShuffleTokens(1), edits.ShufflePositions(2))
OF_HEADS = (
    *(edits.ZeroHead(0, 1), edits.MeanHead(1, 0), edits.ScaleHead(0.5, layer=1, head=2)),
    *(edits.CutEdge(1, 2, query=2, key=1), edits.UniformHead(0, 2)),
)
SITES = {"encoder": "0.ffn.normed", "decoder": "0.ffn.sum"}


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    with other_device.present(monkeypatch) as given:
        yield given


def both(name: str, device: torch.device) -> tuple[Model, Model]:
    here, there = headlight.load(name), headlight.load(name, device=device)
    assert (here.device, there.device) == ("cpu", str(device))
    return here, there


def alike(there: object, here: object) -> None:
    """Arrays, and whatever holds some, are numpy's and agree."""
    if hasattr(here, "__array__") or isinstance(here, float):
        assert type(there) is type(here)
        np.testing.assert_allclose(there, here, atol=PASSED)
    elif isinstance(here, Iterator):
        alike([*there], [*here])
    elif isinstance(here, (tuple, list)):
        assert len(there) == len(here)
        for a, b in zip(there, here, strict=True):
            alike(a, b)
    elif isinstance(here, dict):
        alike([*there.values()], [*here.values()])
    elif hasattr(here, "__dataclass_fields__"):
        for name in here.__dataclass_fields__:
            if name not in ("model", "edits"):
                alike(getattr(there, name), getattr(here, name))
    else:
        assert there == here


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_a_recording_is_the_same(name: str, device: torch.device) -> None:
    here, there = both(name, device)
    changes = ORDER
    if name in SITES:
        added = edits.AddToSite(np.ones(here.card.d_model), SITES[name])
        changes = (*ORDER, *OF_HEADS, added)
    text, target = "My sister has a red car", "La voiture" if name == "translator" else None
    for each in ((), changes):
        alike(there.record(text, each, target), here.record(text, each, target))


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
def test_what_is_read_out_of_it_is_the_same(name: str, device: torch.device) -> None:
    here, there = both(name, device)
    target = "La voiture" if name == "translator" else None
    one, two = (each.record("The red car", (), target) for each in (here, there))
    stream, attention = one.streams[-1].name, one.attention[-1].name
    donor = ("The old car", attention, 1, 7, 9)
    asks: dict[str, Callable] = {
        "logits": lambda model, of: model.logits(of, stream, 1),
        "lens": lambda model, of: model.lens(of, stream),
        "attribute": lambda model, of: model.attribute(of, stream, 1, 7, 9),
        "activations": lambda model, of: model.ffn_activations(of, stream, 0, 1),
        "neurons": lambda model, of: model.neurons(of, stream, 0, 1, 7),
        "circuits": lambda model, _: model.circuits(attention, 0, 1, (5, 6, 7)),
        "norms": lambda model, _: model.norms(stream),
        "outputs": lambda model, _: model.outputs(),
        "embeddings": lambda model, _: model.embeddings(),
        "nearest": lambda model, _: model.nearest(np.ones((1, model.card.d_model), "f"), 3),
    }
    if name != "translator":
        asks["patches"] = lambda model, _: [*model.patch_heads("The red car", *donor).effects]
    for each, ask in asks.items():
        try:
            expected = ask(here, one)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error)[:20]):
                ask(there, two)
            continue
        alike(ask(there, two), expected)
        assert each


def test_what_it_writes_is_the_same(device: torch.device) -> None:
    here, there = both("decoder", device)
    one, two = (each.generate("My sister") for each in (here, there))
    for _ in range(3):
        alike(two.logits, one.logits)
        token = int(one.logits.argmax())
        one.add(token)
        two.add(token)
    alike(two.rows, one.rows)
    two.back()
    assert len(two.ids) == len(one.ids) - 1
    batches = [headlight.record(each, ["My sister", "The dog ran"]) for each in (here, there)]
    alike(batches[1], batches[0])
    one, two = (each.resume(of[1], 3) for each, of in zip((here, there), batches))
    alike(two.logits, one.logits)
    here, there = both("translator", device)
    for a, b in zip(there.beams("The car is red", 2), here.beams("The car is red", 2)):
        alike(a, b)


@pytest.mark.parametrize("kind", ["bert", "llama", "t5", "bloom"])
def test_a_model_in_its_own_code(kind: str, tiny_folder: Callable, device: torch.device) -> None:
    here, there = both(f"hub:{tiny_folder(kind)}", device)
    assert there.capabilities == here.capabilities
    target = None if here.card.kind != "encoder-decoder" else "a dog"
    head = edits.ZeroHead(0, 1, here.capabilities.attention[0])
    changes = (head,) if here.capabilities.opens else ()
    one, two = (each.record("the cat sat", changes, target) for each in (here, there))
    alike(two, one)
    stream = one.streams[-1].name
    alike(there.logits(two, stream, 1), here.logits(one, stream, 1))
    alike(there.lens(two, stream), here.lens(one, stream))
    if here.capabilities.writes and here.card.kind == "decoder":
        alike(there.generate("the cat").logits, here.generate("the cat").logits)


def test_a_model_in_memory_runs_where_its_weights_lie(device: torch.device) -> None:
    torch.manual_seed(0)
    module = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64), 2).eval()
    words, table = "the cat sat on mat".split(), torch.randn(5, 32)
    here = headlight.wrap(module, words, embedding=table)
    there = headlight.wrap(module.to(device), words, embedding=table)
    assert there.device == str(device)
    alike(there.record("the cat sat"), here.record("the cat sat"))
    own = tiny.random_model("GPT2LMHeadModel", tiny.GPT2)
    expected = headlight.wrap(own).record([3, 14, 15])
    moved = headlight.wrap(own.to(device))
    assert moved.device == str(device)
    alike(moved.record([3, 14, 15]), expected)


def test_a_device_that_is_not_there_gets_a_sentence() -> None:
    for name in ("cuda:93", "nowhere", "meta", 3.5):
        with pytest.raises(ValueError, match="is not there, or does not compute in 64 bits"):
            headlight.load("encoder", device=name)
    assert headlight.load("encoder", device="cpu").name == "encoder"
    both_ways = headlight.load("encoder", dtype="float64", device=torch.device("cpu"))
    assert both_ways.name == "mine:encoder-float64"


def test_nothing_of_it_stays_behind() -> None:
    with devices.running_on("meta"):
        assert torch.zeros(2).device.type == "meta"
    assert torch.zeros(2).device.type == "cpu"
    assert torch.get_default_device().type == "cpu"
