"""The checks of a recording: they hold on what a model did, under edits too, and each fails where a
number was altered by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from app_harness import panels_on
from conftest import read_once
from test_pages import clean, opened
from tolerances import STORED, SUMMED, TOTAL

from explorer.analysis import consistency
from explorer.analysis.residual import site_name
from models.contract.edits import (
    KINDS,
    Ablation,
    AddToHead,
    AddToSite,
    CutEdge,
    CutPath,
    Edit,
    HideToken,
    HideWord,
    MeanHead,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    PatchHead,
    PatchPath,
    PatchSite,
    ScaledBy,
    ScaleHead,
    ScaleSite,
    SetHead,
    SetNeuron,
    SetSite,
    SharedKeys,
    ShiftPositions,
    ShufflePositions,
    ShuffleTokens,
    SideBySide,
    UniformHead,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    from_line,
    place_of,
    to_line,
)
from models.contract.recording import Recording
from models.network.own_model import OwnModel
from models.runtime import registry

TEXT = "the cat sat on the mat and the dog ran"
LAWS = ("row sums", "forbidden", "scores", "softmax", "written", "sums", "norms")


def checked(model: OwnModel, recording: Recording) -> dict[str, consistency.Check]:
    norms = {stream.name: model.norms(stream.name, recording.edits) for stream in recording.streams}
    return dict(zip(LAWS, consistency.checks(recording, model.outputs(), norms)))


def altered(
    recording: Recording,
    part: str,
    field: str,
    change: Callable[[np.ndarray], None],
    which: int = 0,
) -> Recording:
    """A copy of the recording in which one array was changed by hand. The recording's own checks at
    birth are passed by."""
    one = getattr(recording, part)[which]
    array = getattr(one, field).copy()
    change(array)
    copy = object.__new__(type(one))
    for name, value in vars(one).items():
        object.__setattr__(copy, name, array if name == field else value)
    parts = list(getattr(recording, part))
    parts[which] = copy
    return replace(recording, **{part: tuple(parts)})


@pytest.fixture(scope="module", params=["small_model", "small_decoder", "small_translator"])
def model(request: pytest.FixtureRequest) -> OwnModel:
    return request.getfixturevalue(request.param)


def test_every_law_holds_on_what_a_model_did(model: OwnModel) -> None:
    recording = model.record(TEXT)
    masked = not all(each.allowed[0].all() for each in recording.attention)
    for law, check in checked(model, recording).items():
        assert check.holds and check.error < TOTAL, (law, check)
        assert check.checked == (law != "forbidden" or masked)


def test_every_number_is_counted_once(small_decoder: OwnModel) -> None:
    recording = small_decoder.record(TEXT)
    found, pattern = checked(small_decoder, recording), recording.attention[0].pattern
    layers, heads, n, _ = pattern.shape
    width = recording.model.d_model
    assert {law: check.numbers for law, check in found.items()} == {
        "row sums": pattern[..., 0].size,
        "forbidden": layers * heads * n * (n - 1) // 2,
        "scores": pattern.size,
        "softmax": pattern.size,
        "written": layers * n * width,
        "sums": (2 * layers + 1) * n * width,
        "norms": 2 * layers * n * width,
    }


# The array that is altered and where, and what the law that it breaks says of the place.
ALTERED = [
    ("row sums", "pattern", (1, 2, 4, 3), "layer 1, head 2, row 4"),
    ("softmax", "pattern", (1, 2, 4, 3), "layer 1, head 2, row 4, column 3"),
    ("forbidden", "pattern", (2, 0, 1, 5), "layer 2, head 0, row 1, column 5"),
    ("scores", "scores", (0, 1, 3, 2), "layer 0, head 1, row 3, column 2"),
    ("scores", "q", (0, 1, 3, 2), "layer 0, head 1, row 3"),
    ("softmax", "scores", (0, 1, 3, 2), "layer 0, head 1, row 3"),
    ("written", "v", (2, 3, 0, 1), "layer 2, what attention wrote"),
    ("written", "1.attn.wrote", (4, 7), "layer 1, what attention wrote, token 4, dimension 7"),
    ("sums", "1.attn.wrote", (4, 7), "layer 1, the sum after attention, token 4, dimension 7"),
    ("sums", "2.ffn.sum", (0, 3), "layer 2, the sum after FFN, token 0, dimension 3"),
    ("sums", "pos.wrote", (2, 3), "embeddings and positions, token 2, dimension 3"),
    ("norms", "2.ffn.normed", (5, 1), "layer 2, after FFN’s add & norm, token 5, dimension 1"),
    ("norms", "0.attn.sum", (5, 1), "layer 0, after attention’s add & norm, token 5"),
]


@pytest.mark.parametrize(("law", "field", "place", "where"), ALTERED)
def test_a_number_altered_by_hand_breaks_its_law_and_is_found(
    small_decoder: OwnModel, law: str, field: str, place: tuple[int, ...], where: str
) -> None:
    recording, part = small_decoder.record(TEXT), "attention"
    if "." in field:
        place, field = (recording.streams[0].sites.index(field), *place), "resid"
        part = "streams"

    def bump(array: np.ndarray) -> None:
        array[place] += 0.05

    broken = checked(small_decoder, altered(recording, part, field, bump))[law]
    assert not broken.holds and where in broken.where


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_breaks_a_law_too(small_decoder: OwnModel, value: float) -> None:
    recording = small_decoder.record(TEXT)

    def none(array: np.ndarray) -> None:
        array[1, 2, 3, 0] = value

    found = checked(small_decoder, altered(recording, "attention", "scores", none))
    assert not found["scores"].holds and "layer 1, head 2, row 3, column 0" in found["scores"].where


def test_other_parameters_than_the_model_s_break_the_laws_they_are_in(
    small_model: OwnModel,
) -> None:
    outputs = {name: (w_o * 1.01, bias) for name, (w_o, bias) in small_model.outputs().items()}
    norms = small_model.norms("encoder").items()
    other = {place: (gain, bias + 0.01, *how) for place, (gain, bias, *how) in norms}
    found = consistency.checks(small_model.record(TEXT), outputs, {"encoder": other})
    broken = [law for law, check in zip(LAWS, found) if not check.holds]
    assert broken == ["written", "norms"]


STEER = np.linspace(-1, 1, 24, dtype=np.float32)
ANY = [
    ZeroHead(1, 2),
    MeanHead(0, 1),
    UniformHead(2, 3),
    WithoutScale(),
    WithoutScale(1),
    ScaledBy(3.0, 0),
    WithoutResidual(),
    WithoutResidual(1, "ffn"),
    WithoutNorm(1),
    WithoutNorm(),
    MoveNorm("pre"),
    MoveNorm("pre", 1),
    OtherNorm("rms"),
    OtherNorm("rms", 1),
    SideBySide(1),
    OtherPositions("distance"),
    OtherPositions("rotary"),
    OtherPositions("random"),
    WithoutPositions(),
    WithoutFeedForward(1),
    ShuffleTokens(2),
    SharedKeys(2),
    Window(2),
    ShufflePositions(1),
    ShiftPositions(2),
    AddToSite(STEER, "0.ffn.wrote"),
    SetSite(STEER, "1.attn.wrote", 2),
    ScaleSite(0.5, "1.ffn.wrote"),
    SetHead(STEER[:6], 1, 2),
    AddToHead(STEER[:6], 1, 2),
    ScaleHead(0.5, 1, 2),
    CutEdge(1, 2, 3, 1),
    HideWord(2),
    SetNeuron(2.5, 1, 4),
]
OF_SOME_MODELS = {CutPath, PatchPath, HideToken}  # which not both of the models below follow


def test_no_kind_of_edit_is_forgotten_here() -> None:
    apart = {WithMask, WithoutMask, PatchHead, PatchSite, *OF_SOME_MODELS}
    assert {*map(type, ANY)} | apart == {*KINDS.values()}


def test_the_laws_hold_under_every_edit(small_model: OwnModel, small_decoder: OwnModel) -> None:
    for model, mask in ((small_model, WithMask()), (small_decoder, WithoutMask())):
        for edit in (*ANY, mask):
            found = checked(model, model.record(TEXT, (edit,)))
            assert all(check.holds for check in found.values()), (edit, found)
            masked = model is small_decoder and edit != mask
            masked |= isinstance(edit, (WithMask, Window, HideWord))
            assert found["forbidden"].checked == masked, edit


@dataclass(frozen=True)
class SharpHead(Ablation):
    """The head's weights are squared, and each row sums to 1 again."""

    @property
    def place(self) -> str:
        return place_of(self.attention, self.layer, "pattern")

    def on(self, x: Any, allowed: Any = None) -> None:
        x *= x
        x /= x.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class NegatedHead(Ablation):
    """The head's output z is subtracted."""

    def on(self, x: Any, allowed: Any = None) -> None:
        x *= -1


def test_a_new_edit_of_a_head_is_one_class(
    small_decoder: OwnModel, tiny_loaded: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every model follows it, the laws know it, the lens takes it apart, an address names it."""
    monkeypatch.setitem(KINDS, "SharpHead", SharpHead)
    monkeypatch.setitem(KINDS, "NegatedHead", NegatedHead)
    asked = (SharpHead(0, 2), NegatedHead(0, 1))
    assert from_line(to_line(asked)) == asked
    for model in (small_decoder, tiny_loaded("gpt2"), tiny_loaded("llama")):
        plain, under = model.record(TEXT), model.record(TEXT, asked)
        before, after = (each.attention[0].pattern[0, 2] for each in (plain, under))
        np.testing.assert_allclose(after, before**2 / (before**2).sum(-1)[:, None], atol=STORED)
        assert np.abs(after - before).max() > 1e-3
        outputs = model.outputs() if model is small_decoder else None
        assert all(check.holds for check in consistency.checks(under, outputs, None))
    recording = small_decoder.record(TEXT, asked)
    assert all(check.holds for check in checked(small_decoder, recording).values())
    stream = recording.streams[-1]
    parts = small_decoder.attribute(recording, stream.name, -1, 7).parts
    score = small_decoder.logits(recording, stream.name, -1)[7]
    np.testing.assert_allclose(sum(part.value for part in parts), score, atol=SUMMED)


@pytest.mark.parametrize(
    ("edit", "law"),
    [
        (ZeroHead(1, 2), "written"),
        (UniformHead(0, 0), "softmax"),
        (WithoutScale(2), "scores"),
        (ScaledBy(2.0), "scores"),
        (WithoutResidual(1, "ffn"), "sums"),
        (WithoutNorm(0), None),
    ],
    ids=repr,
)
def test_an_edit_that_was_not_made_does_not_pass_for_one(
    small_decoder: OwnModel, edit: Edit, law: str | None
) -> None:
    """The law that an edit changes no longer holds when the recording claims an edit that the pass
    did not have."""
    claimed = replace(small_decoder.record(TEXT), edits=(edit,))
    broken = [law for law, check in checked(small_decoder, claimed).items() if not check.holds]
    assert broken == ([law] if law else [])


def test_an_edit_in_cross_attention_is_that_attention_s(small_translator: OwnModel) -> None:
    edits = (
        ZeroHead(1, 1, "cross"),
        UniformHead(0, 2, "encoder self"),
        WithoutResidual(0, "cross"),
        MeanHead(2, 0, "decoder self"),
        SharedKeys(2),
    )
    recording = small_translator.record(TEXT, edits, target="the dog sat")
    assert all(check.holds for check in checked(small_translator, recording).values())


@pytest.mark.parametrize(
    ("edit", "law", "site"),
    [
        (PatchHead("the dog ran to the cat", 1, 1), "written", "1.attn.wrote"),
        (PatchSite("the dog ran", "1.attn.wrote"), "written", "1.attn.wrote"),
        (PatchSite("the dog ran", "0.ffn.sum", 2), "sums", "0.ffn.sum"),
        (PatchSite("the dog ran", "embed+pos"), "sums", "embed+pos"),
        (PatchSite("the dog ran", "2.ffn.normed"), "norms", "2.ffn.normed"),
    ],
    ids=str,
)
def test_what_came_from_another_text_is_not_checked_and_says_so(
    small_decoder: OwnModel, edit: Edit, law: str, site: str
) -> None:
    plain = checked(small_decoder, small_decoder.record(TEXT))
    found = checked(small_decoder, small_decoder.record(TEXT, (edit,)))
    assert all(check.holds for check in found.values())
    assert (
        found[law].not_checked == [f"{site_name(site)}: {edit}"]
        and found[law].numbers < plain[law].numbers
    )
    assert all(not check.not_checked for name, check in found.items() if name != law)


def test_a_model_that_shows_less_is_checked_for_what_it_shows(small_decoder: OwnModel) -> None:
    whole = small_decoder.record(TEXT)
    own = whole.attention[0]
    closed = type(own).closed("self", "decoder", "decoder", own.pattern, own.allowed[0])
    found = dict(zip(LAWS, consistency.checks(replace(whole, attention=(closed,)))))
    lacking = {law: check for law, check in found.items() if not check.checked}
    assert list(lacking) == ["scores", "softmax", "written", "norms"]
    assert all(check.not_checked for check in lacking.values())
    assert all(check.holds for check in found.values())


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_the_laws_hold_in_every_model_that_is_here(name: str) -> None:
    model = read_once(name)
    recording = model.record(TEXT)
    norms = {stream.name: model.norms(stream.name) for stream in recording.streams}
    for check in consistency.checks(
        recording, model.outputs(), norms, registry.card(name)["config"]
    ):
        assert check.holds, check


@pytest.mark.slow
def test_the_panel_says_what_holds_when_it_is_opened() -> None:
    laws = lambda app: [each for each in panels_on(app) if each["panel"] == "anatomy.verified"]
    assert not laws(clean(opened(model="translator"))), "not before it is asked"
    (told,) = laws(clean(opened(model="translator", verify="1")))
    assert told["finding"].startswith("✓ All")
    (table,) = told["figures"]
    assert all(law.startswith("✓ ") for law, *_ in table["rows"]) and len(table["rows"]) >= 6
