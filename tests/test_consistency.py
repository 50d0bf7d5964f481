"""The checks of a recording: they hold on what a model did, under edits too, and each fails where a
number was altered by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from conftest import read_once
from test_pages import clean, opened
from tolerances import TOTAL

from explorer.analysis import consistency
from explorer.analysis.residual import site_name
from models import registry
from models.edits import (
    Edit,
    MeanHead,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    PatchHead,
    PatchSite,
    ScaledBy,
    ShuffleTokens,
    SideBySide,
    UniformHead,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
)
from models.own_model import OwnModel
from models.recording import Recording

TEXT = "the cat sat on the mat and the dog ran"
LAWS = ("row sums", "forbidden", "scores", "softmax", "written", "sums", "norms")


def checked(handle: OwnModel, recording: Recording) -> dict[str, consistency.Check]:
    norms = {
        stream.name: handle.norms(stream.name, recording.edits) for stream in recording.streams
    }
    return dict(zip(LAWS, consistency.checks(recording, handle.outputs(), norms)))


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


@pytest.fixture(scope="module", params=["small_handle", "small_decoder", "small_translator"])
def handle(request: pytest.FixtureRequest) -> OwnModel:
    return request.getfixturevalue(request.param)


def test_every_law_holds_on_what_a_model_did(handle: OwnModel) -> None:
    recording = handle.record(TEXT)
    for law, check in checked(handle, recording).items():
        assert check.holds and check.error < TOTAL, (law, check)
        assert (
            check.checked
            or law == "forbidden"
            and all(each.allowed.all() for each in recording.attention)
        )


def test_every_number_is_counted_once(small_decoder: OwnModel) -> None:
    recording = small_decoder.record(TEXT)
    found, pattern, n = (
        checked(small_decoder, recording),
        recording.attention[0].pattern,
        len(recording.streams[0].tokens),
    )
    layers, width = pattern.shape[0], recording.model.d_model
    assert (
        found["row sums"].numbers == pattern[..., 0].size
        and found["scores"].numbers == found["softmax"].numbers == pattern.size
    )
    assert found["forbidden"].numbers == layers * pattern.shape[1] * n * (n - 1) // 2
    assert found["written"].numbers == layers * n * width
    assert (
        found["sums"].numbers == (2 * layers + 1) * n * width
        and found["norms"].numbers == 2 * layers * n * width
    )


def bump(place: tuple[int, ...], by: float = 0.05) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        array[place] += by

    return change


@pytest.mark.parametrize(
    ("law", "part", "field", "place", "where"),
    [
        ("row sums", "attention", "pattern", (1, 2, 4, 3), "layer 1, head 2, row 4"),
        ("softmax", "attention", "pattern", (1, 2, 4, 3), "layer 1, head 2, row 4, column 3"),
        ("forbidden", "attention", "pattern", (2, 0, 1, 5), "layer 2, head 0, row 1, column 5"),
        ("scores", "attention", "scores", (0, 1, 3, 2), "layer 0, head 1, row 3, column 2"),
        ("scores", "attention", "q", (0, 1, 3, 2), "layer 0, head 1, row 3"),
        ("softmax", "attention", "scores", (0, 1, 3, 2), "layer 0, head 1, row 3"),
        ("written", "attention", "v", (2, 3, 0, 1), "layer 2, what attention wrote"),
        (
            "written",
            "streams",
            "1.attn.wrote",
            (4, 7),
            "layer 1, what attention wrote, token 4, dimension 7",
        ),
        (
            "sums",
            "streams",
            "1.attn.wrote",
            (4, 7),
            "layer 1, the sum after attention, token 4, dimension 7",
        ),
        (
            "sums",
            "streams",
            "2.ffn.sum",
            (0, 3),
            "layer 2, the sum after FFN, token 0, dimension 3",
        ),
        ("sums", "streams", "pos.wrote", (2, 3), "embeddings and positions, token 2, dimension 3"),
        (
            "norms",
            "streams",
            "2.ffn.normed",
            (5, 1),
            "layer 2, after FFN’s add & norm, token 5, dimension 1",
        ),
        (
            "norms",
            "streams",
            "0.attn.sum",
            (5, 1),
            "layer 0, after attention’s add & norm, token 5",
        ),
    ],
)
def test_a_number_altered_by_hand_breaks_its_law_and_is_found(
    small_decoder: OwnModel, law: str, part: str, field: str, place: tuple[int, ...], where: str
) -> None:
    recording = small_decoder.record(TEXT)
    if part == "streams":
        place, field = (recording.streams[0].sites.index(field), *place), "resid"
    broken = checked(small_decoder, altered(recording, part, field, bump(place)))[law]
    assert not broken.holds
    assert where in broken.where


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_breaks_a_law_too(small_decoder: OwnModel, value: float) -> None:
    recording = small_decoder.record(TEXT)

    def none(array: np.ndarray) -> None:
        array[1, 2, 3, 0] = value

    found = checked(small_decoder, altered(recording, "attention", "scores", none))
    assert not found["scores"].holds and "layer 1, head 2, row 3, column 0" in found["scores"].where


def test_other_parameters_than_the_model_s_break_the_laws_they_are_in(
    small_handle: OwnModel,
) -> None:
    recording = small_handle.record(TEXT)
    outputs = {name: (w_o * 1.01, bias) for name, (w_o, bias) in small_handle.outputs().items()}
    norms = {
        "encoder": {
            place: (gain, bias + 0.01, *how)
            for place, (gain, bias, *how) in small_handle.norms("encoder").items()
        }
    }
    found = dict(zip(LAWS, consistency.checks(recording, outputs, norms)))
    assert [law for law, check in found.items() if not check.holds] == ["written", "norms"]


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
]


@pytest.mark.parametrize("edit", [*ANY, WithMask()], ids=repr)
def test_the_laws_hold_under_an_edit_in_an_encoder(small_handle: OwnModel, edit: Edit) -> None:
    assert all(
        check.holds for check in checked(small_handle, small_handle.record(TEXT, (edit,))).values()
    )


@pytest.mark.parametrize("edit", [*ANY, WithoutMask()], ids=repr)
def test_the_laws_hold_under_an_edit_in_a_decoder(small_decoder: OwnModel, edit: Edit) -> None:
    found = checked(small_decoder, small_decoder.record(TEXT, (edit,)))
    assert all(check.holds for check in found.values())
    assert found["forbidden"].checked == (edit != WithoutMask())


@pytest.mark.parametrize(
    "edit",
    [
        ZeroHead(1, 2),
        UniformHead(0, 0),
        WithoutScale(2),
        ScaledBy(2.0),
        WithoutResidual(1, "ffn"),
        WithoutNorm(0),
    ],
    ids=repr,
)
def test_an_edit_that_was_not_made_does_not_pass_for_one(
    small_decoder: OwnModel, edit: Edit
) -> None:
    """The law that an edit changes no longer holds when the recording claims an edit that the pass
    did not have."""
    claimed = replace(small_decoder.record(TEXT), edits=(edit,))
    broken = [law for law, check in checked(small_decoder, claimed).items() if not check.holds]
    expected = {
        ZeroHead: "written",
        UniformHead: "softmax",
        WithoutScale: "scores",
        ScaledBy: "scores",
        WithoutResidual: "sums",
    }
    assert broken == ([expected[type(edit)]] if type(edit) in expected else [])


def test_an_edit_in_cross_attention_is_that_attention_s(small_translator: OwnModel) -> None:
    edits = (
        ZeroHead(1, 1, "cross"),
        UniformHead(0, 2, "encoder self"),
        WithoutResidual(0, "cross"),
        MeanHead(2, 0, "decoder self"),
    )
    assert all(
        check.holds
        for check in checked(
            small_translator, small_translator.record(TEXT, edits, target="the dog sat")
        ).values()
    )


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
    closed = replace(
        whole, attention=(type(own).closed("self", "decoder", "decoder", own.pattern, own.allowed),)
    )
    found = dict(zip(LAWS, consistency.checks(closed)))
    assert [law for law, check in found.items() if not check.checked] == [
        "scores",
        "softmax",
        "written",
        "norms",
    ]
    assert all(check.not_checked for law, check in found.items() if not check.checked) and all(
        check.holds for check in found.values()
    )


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_the_laws_hold_in_every_model_that_is_here(name: str) -> None:
    handle = read_once(name)
    recording = handle.record(TEXT)
    norms = {stream.name: handle.norms(stream.name) for stream in recording.streams}
    for check in consistency.checks(
        recording, handle.outputs(), norms, registry.card(name)["config"]
    ):
        assert check.holds, check


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator", "induction-no-residual"])
def test_the_panel_says_what_holds_when_it_is_opened(model: str) -> None:
    app = clean(opened(model=model, att_right="Open"))
    told = next(told.value for told in app.markdown if "checks hold" in told.value).replace(
        "\\", ""
    )
    assert told.startswith("**✓ All") and "softmax(scores) = weights" in told and "✗" not in told
    assert not any("checks hold" in told.value for told in clean(opened(model=model)).markdown), (
        "nothing is computed before it is asked for"
    )
