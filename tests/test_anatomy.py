"""A cell opened down to its vectors: every number follows from the one before."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from conftest import read_once
from tolerances import DOUBLE, DOUBLE_LONG, PASSED

from explorer.analysis import anatomy, terminology
from explorer.analysis.attention import mask_rule
from explorer.analysis.csv import stacked, to_csv, unescape_cell
from explorer.panels.anatomy import reasons, weight_text
from explorer.state import cache
from models import registry
from models.edits import (
    Edit,
    MeanHead,
    OtherPositions,
    PatchHead,
    ScaledBy,
    UniformHead,
    Window,
    WithMask,
    WithoutMask,
    WithoutNorm,
    WithoutScale,
    ZeroHead,
)
from models.recording import VERSION, Attention, GroupedArray, Recording

TEXT = "The red car is in front of the white house."


LISTS = {"induction": "s3 s7 s1 s9 s3 s7", "copy": "s1 s2 s3 s4", "reverse": "s1 s2 s3 s4 s5"}


CLOSE = 1e-6


CELLS = 6


def cells(attention: Attention, seed: int = 0) -> list[tuple[int, int, int, int]]:
    """Some cells at random, forbidden ones among them where there are any, and a corner."""
    rng = np.random.default_rng(seed)
    return [
        (0, 0, 0, 0),
        *(tuple(int(rng.integers(size)) for size in attention.pattern.shape) for _ in range(CELLS)),
    ]


def holds(recording: Recording, outputs: dict) -> None:
    """Every step of some cells of every attention, recomputed by the textbook from what the step
    before shows."""
    for attention in recording.attention:
        for layer, head, query, key in cells(attention):
            opened = anatomy.cell(recording, attention, layer, head, query, key)
            row_holds(recording, attention, opened)
            written_holds(
                recording,
                attention,
                opened,
                anatomy.head_outputs(recording, attention, layer, query, outputs[attention.name]),
            )


def row_holds(recording: Recording, attention: Attention, opened: anatomy.WeightBreakdown) -> None:
    at, where = opened.key, (opened.layer, opened.head, opened.query)
    size = np.abs(opened.products).sum() + 1e-12
    assert (
        abs(
            sum(
                float(a) * float(b)
                for a, b in zip(attention.q[where], attention.k[opened.layer, opened.head, at])
            )
            - opened.dots[at]
        )
        <= CLOSE * size
    )
    assert abs(opened.products.sum() - opened.dots[at]) <= CLOSE * size
    np.testing.assert_allclose(
        opened.dots / opened.divisor + opened.added, opened.scores, rtol=CLOSE
    )
    allowed = attention.allowed[opened.query]
    powers = np.array(
        [np.exp(score - opened.largest) if may else 0 for score, may in zip(opened.scores, allowed)]
    )
    np.testing.assert_allclose(powers, opened.exponentials, rtol=CLOSE)
    assert opened.total == pytest.approx(
        powers.sum(), rel=CLOSE
    ) and opened.softmax.sum() == pytest.approx(1, abs=CLOSE)
    assert opened.softmax[at] == pytest.approx(opened.exponentials[at] / opened.total, rel=CLOSE)
    if opened.plain and allowed[at]:
        assert opened.plain[0] / opened.plain[1] == pytest.approx(
            opened.softmax[at],
            rel=CLOSE,
            abs=1e-300,  # below it a 64-bit number loses digits
        )
    assert not opened.weights[~allowed].any()
    z = sum(opened.weights[j] * opened.v[j] for j in range(len(opened.v)))
    np.testing.assert_allclose(z, opened.z, atol=CLOSE * max(1, np.abs(opened.v).max()))
    assert opened.score_error <= PASSED * max(1, np.abs(opened.scores).max())
    assert opened.weight_error <= PASSED


def written_holds(
    recording: Recording,
    attention: Attention,
    opened: anatomy.WeightBreakdown,
    done: anatomy.HeadOutputs,
) -> None:
    if done.z_edits[opened.head] is None:
        np.testing.assert_array_equal(done.z[opened.head], opened.z)
    assert np.abs(done.by_head.sum(axis=0) + done.bias - done.total).max() <= CLOSE * max(
        1, np.abs(done.by_head).max()
    )
    np.testing.assert_allclose(
        done.lengths[opened.head], np.sqrt((done.by_head[opened.head] ** 2).sum()), rtol=CLOSE
    )
    if done.length > 0:
        assert done.shares.sum() == pytest.approx(1, abs=CLOSE)
        assert done.shares[opened.head] == pytest.approx(
            done.by_head[opened.head] @ done.total / done.length**2, abs=CLOSE
        )
    assert done.error is not None and done.error <= PASSED * max(1, np.abs(done.total).max())


@pytest.mark.parametrize("name", registry.names())
def test_every_step_follows_from_the_one_before_in_every_model(name: str) -> None:
    handle = read_once(name)
    recording = handle.record(LISTS.get(name.partition("-")[0], TEXT))
    holds(recording, handle.outputs())


@pytest.mark.parametrize("small", ["small_handle", "small_decoder", "small_translator"])
def test_the_forms_of_the_lecture_notes_are_one(small: str, request: pytest.FixtureRequest) -> None:
    handle = request.getfixturevalue(small)
    recording = handle.record("the cat sat on the mat")
    outputs = handle.outputs()
    holds(recording, outputs)
    for attention in recording.attention:
        w_o, bias = outputs[attention.name]
        for layer, _, query, _ in cells(attention):
            found = anatomy.output_forms(recording, attention, layer, query, (w_o, bias))
            expected = bias[layer] + sum(
                attention.pattern[layer, head, query] @ attention.v[layer, head] @ w_o[layer, head]
                for head in range(w_o.shape[1])
            )
            for form in (found.per_position, found.concatenated, found.by_head):
                np.testing.assert_allclose(form, expected, atol=PASSED)
            assert (
                found.max_difference <= DOUBLE * max(1, anatomy.largest_component(found))
                and found.error <= PASSED
            )


def test_unlike_lengths_of_source_and_target_stay_apart(small_translator) -> None:
    recording = small_translator.record("the cat sat on the mat and the dog ran", target="the mat")
    cross = recording.attention[2]
    rows, keys = cross.allowed.shape
    assert rows != keys
    opened = anatomy.cell(recording, cross, 1, 2, rows - 1, keys - 1)
    assert len(opened.scores) == keys == len(opened.v)
    row_holds(recording, cross, opened)


EDITS: list[tuple[str, Edit]] = [
    ("small_handle", WithoutScale()),
    ("small_handle", WithoutScale(layer=1)),
    ("small_handle", ScaledBy(3.5, layer=0)),
    ("small_handle", UniformHead(1, 2)),
    ("small_handle", ZeroHead(0, 1)),
    ("small_handle", MeanHead(2, 3)),
    ("small_handle", OtherPositions("distance")),
    ("small_handle", OtherPositions("rotary")),
    ("small_handle", WithMask()),
    ("small_handle", WithoutNorm()),
    ("small_decoder", WithoutMask()),
    ("small_decoder", OtherPositions("distance")),
    ("small_decoder", MeanHead(0, 0)),
    ("small_translator", UniformHead(1, 1, "cross")),
    ("small_translator", ZeroHead(0, 2, "decoder self")),
]


@pytest.mark.parametrize(
    ("small", "edit"), EDITS, ids=[f"{small[6:]} {edit}" for small, edit in EDITS]
)
def test_an_edit_stands_in_the_step_that_it_changes(
    small: str, edit: Edit, request: pytest.FixtureRequest
) -> None:
    handle = request.getfixturevalue(small)
    recording = handle.record("the cat sat on the mat", (edit,))
    holds(recording, handle.outputs())
    attention = next(
        each
        for each in recording.attention
        if each.name == getattr(edit, "attention", recording.attention[0].name)
    )
    opened = anatomy.cell(
        recording, attention, getattr(edit, "layer", 0) or 0, getattr(edit, "head", 0), 2, 1
    )
    assert not opened.measured
    if isinstance(edit, WithoutScale):
        assert opened.divisor == 1 and opened.divisor_edit == edit
    if isinstance(edit, ScaledBy):
        assert opened.divisor == 3.5
        assert "3.5" in reasons(opened, attention.allowed)["scale"]
    if isinstance(edit, UniformHead):
        assert opened.uniform_edit == edit and len(set(opened.weights[opened.allowed])) == 1
    if isinstance(edit, OtherPositions) and edit.to == "distance":
        assert opened.added[1] == pytest.approx(-(2.0**-2)) and opened.added[2] == 0
    if isinstance(edit, (ZeroHead, MeanHead)):
        done = anatomy.head_outputs(
            recording, attention, edit.layer, 2, handle.outputs()[attention.name]
        )
        assert done.z_edits[edit.head] == edit and not np.array_equal(done.z[edit.head], opened.z)


@pytest.mark.parametrize("small", ["small_handle", "small_decoder"])
@pytest.mark.parametrize("free", [False, True])
def test_of_a_window_it_is_said_what_it_lets_a_token_see(
    small: str, free: bool, request: pytest.FixtureRequest
) -> None:
    """In an encoder, and without a causal mask, a window has two sides."""
    causal = small == "small_decoder" and not free
    edits = (Window(3), *((WithoutMask(),) if small == "small_decoder" and free else ()))
    recording = request.getfixturevalue(small).record("the cat sat on the mat and ran", edits)
    attention = recording.attention[0]
    said = {
        (q, k): reasons(anatomy.cell(recording, attention, 0, 0, q, k), attention.allowed)
        for q, k in ((4, 5), (4, 3), (5, 1), (2, 6))
    }
    masks = {at: each["mask"] for at, each in said.items()}
    if causal:
        assert (
            "cannot attend to the later token 5" in masks[4, 5]
            and "before the window" in masks[5, 1]
        )
        assert "within the window" in masks[4, 3] and "later token 6" in masks[2, 6]
        assert "a later token" in terminology.mask_reason(attention.allowed)
        assert "Above the diagonal" in mask_rule(attention.allowed)
        return
    for at in ((4, 5), (4, 3)):
        assert "can attend" in masks[at] and "at most 2 positions away" in masks[at]
    for at in ((5, 1), (2, 6)):
        assert "attends only to tokens" in masks[at]
    assert not any("later" in mask or "ahead" in mask for mask in masks.values())
    assert terminology.mask_reason(attention.allowed) == "not allowed: more than 2 places away"
    assert "later" not in mask_rule(attention.allowed)


def test_what_is_not_in_the_recording_is_not_made_up(small_handle) -> None:
    recording = small_handle.record("the cat sat on the mat", (PatchHead("the dog ran", 1, 2),))
    attention, outputs = recording.attention[0], small_handle.outputs()["self"]
    assert anatomy.head_outputs(recording, attention, 1, 0, outputs) is None
    assert anatomy.head_outputs(recording, attention, 0, 0, outputs) is not None


def test_a_model_built_without_the_scale_is_told_from_one_with() -> None:
    scaled, plain = (
        read_once(name).record(LISTS["induction"]) for name in ("induction", "induction-no-scale")
    )
    for recording, divisor in ((scaled, np.sqrt(scaled.model.d_head)), (plain, 1)):
        opened = anatomy.cell(recording, recording.attention[0], 1, 1, 4, 2)
        assert opened.divisor == divisor and not opened.measured and not opened.added.any()


def test_scores_too_large_for_exp_still_give_their_weight(small_handle) -> None:
    recording = small_handle.record("the cat sat on the mat", (ScaledBy(1e-3),))
    attention = recording.attention[0]
    query = int(attention.scores[0, 0].max(axis=1).argmax())
    opened = anatomy.cell(
        recording, attention, 0, 0, query, int(attention.pattern[0, 0, query].argmax())
    )
    assert (
        opened.plain is None
        and opened.weights.sum() == pytest.approx(1)
        and np.isfinite(opened.weights).all()
    )


def test_almost_all_of_a_row_is_not_said_to_be_all_of_it() -> None:
    assert [weight_text(each) for each in (0.999982, 0.99794, 1.0, 0.0)] == [
        "0.999982",
        "0.9979",
        "1",
        "0",
    ]


@pytest.mark.parametrize("name", registry.names())
def test_a_recording_of_the_longest_text_finds_room_on_the_shelf(name: str) -> None:
    recording = read_once(name).record(TEXT)
    lengths = {len(stream.tokens) for stream in recording.streams}
    if len(lengths) == 1:
        n = lengths.pop()
        counted = sum(
            getattr(value, "stored", value).nbytes
            for part in (*recording.streams, *recording.attention)
            for value in vars(part).values()
            if isinstance(value, (np.ndarray, GroupedArray))
        )
        # A few vectors a text are left out of the formula.
        assert anatomy.memory(recording, n) == pytest.approx(counted, rel=0.01)
    if name == "smollm2":  # of its longest text a recording does not fit
        assert anatomy.memory(recording, 253) <= cache.CACHE_BYTES * 5 // 6
    else:
        assert anatomy.memory(recording, 512) <= cache.CACHE_BYTES * 3 // 4


def test_the_file_holds_every_step_in_full(small_handle) -> None:
    recording = small_handle.record('the cat <b>,"sat')
    attention, outputs = recording.attention[0], small_handle.outputs()["self"]
    opened = anatomy.cell(recording, attention, 1, 2, 3, 1)
    done = anatomy.head_outputs(recording, attention, 1, 3, outputs)
    tables = anatomy.tables(opened, done, recording.streams[0].tokens)
    text = to_csv(stacked(tables.items(), "step"), ("model small", "Text: the\ncat"))
    loaded = pd.read_csv(io.StringIO(text))
    assert loaded["about"][0] == f"model small | Text: the cat | Headlight {VERSION}"
    tables = dict(list(loaded.groupby("step")))
    by_key = tables["The row"]
    assert tables["Query and key"]["q × k"].sum() == pytest.approx(
        by_key["q · k"].iloc[1], rel=DOUBLE_LONG
    )
    assert tuple(map(unescape_cell, by_key["token"])) == recording.streams[0].tokens
    assert by_key["weight"].sum() == pytest.approx(1)
    assert tables["Heads"]["share along the sum"].sum() == pytest.approx(1)
