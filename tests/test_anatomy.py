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
from explorer.figures.csv import stacked, to_csv, unescape_cell
from explorer.panels import anatomy as anatomy_panels
from explorer.panels.anatomy import reasons
from models.contract.edits import (
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
from models.contract.recording import Attention, GroupedArray, Recording
from models.network.own_model import OwnModel
from models.runtime import caching, registry
from models.runtime.run import Run
from models.version import VERSION

TEXT = "The red car is in front of the white house."


CLOSE = 1e-6


def holds(recording: Recording, outputs: dict) -> None:
    """Every step of some cells of every attention, forbidden ones among them where there are any,
    recomputed by the textbook from what the step before shows."""
    rng = np.random.default_rng(0)
    for attention in recording.attention:
        for _ in range(6):
            at = tuple(int(rng.integers(size)) for size in attention.pattern.shape)
            opened = anatomy.cell(recording, attention, *at)
            row_holds(attention, opened)
            weights = outputs[attention.name]
            done = anatomy.head_outputs(recording, attention, at[0], at[2], weights)
            written_holds(opened, done)


def row_holds(attention: Attention, opened: anatomy.WeightBreakdown) -> None:
    at, where = opened.key, (opened.layer, opened.head, opened.query)
    q, k = attention.q[where].astype(float), attention.k[opened.layer, opened.head, at]
    close = CLOSE * (np.abs(opened.products).sum() + 1e-12)
    assert opened.dots[at] == pytest.approx(q @ k, abs=close)
    assert opened.dots[at] == pytest.approx(opened.products.sum(), abs=close)
    scores = opened.dots / opened.divisor + opened.added
    np.testing.assert_allclose(scores, opened.scores, rtol=CLOSE)
    allowed = attention.allowed[0][opened.query]
    powers = np.where(allowed, np.exp(opened.scores - opened.largest), 0)
    np.testing.assert_allclose(powers, opened.exponentials, rtol=CLOSE)
    assert opened.total == pytest.approx(powers.sum(), rel=CLOSE)
    np.testing.assert_allclose(opened.softmax, powers / powers.sum(), rtol=CLOSE)
    if opened.plain and allowed[at]:
        ratio = opened.plain[0] / opened.plain[1]
        # below it a 64-bit number loses digits
        assert ratio == pytest.approx(opened.softmax[at], rel=CLOSE, abs=1e-300)
    assert not opened.weights[~allowed].any()
    z = opened.weights @ opened.v
    np.testing.assert_allclose(z, opened.z, atol=CLOSE * max(1, np.abs(opened.v).max()))
    assert opened.score_error <= PASSED * max(1, np.abs(opened.scores).max())
    assert opened.weight_error <= PASSED


def written_holds(opened: anatomy.WeightBreakdown, done: anatomy.HeadOutputs) -> None:
    head, by_head = opened.head, done.by_head
    if done.z_edits[head] is None:
        np.testing.assert_array_equal(done.z[head], opened.z)
    close = CLOSE * max(1, np.abs(by_head).max())
    np.testing.assert_allclose(by_head.sum(axis=0) + done.bias, done.total, rtol=0, atol=close)
    assert done.lengths[head] == pytest.approx(np.linalg.norm(by_head[head]), rel=CLOSE)
    if done.length > 0:
        assert done.shares.sum() == pytest.approx(1, abs=CLOSE)
        share = by_head[head] @ done.total / done.length**2
        assert done.shares[head] == pytest.approx(share, abs=CLOSE)
    assert done.error is not None and done.error <= PASSED * max(1, np.abs(done.total).max())


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_every_step_follows_in_every_model_and_its_longest_text_has_room(name: str) -> None:
    model = read_once(name)
    lists = name.startswith(("induction", "copy", "reverse"))
    recording = model.record("s3 s7 s1 s9 s3 s7" if lists else TEXT)
    holds(recording, model.outputs())
    if len(recording.streams) == 1:
        arrays = [getattr(value, "stored", value) for value in recorded_arrays(recording)]
        counted = sum(each.nbytes for each in arrays)
        n = len(recording.streams[0].tokens)
        # A few vectors a text are left out of the formula.
        assert anatomy.memory(recording, n) == pytest.approx(counted, rel=0.01)
    # Of SmolLM2's longest text a recording does not fit.
    longest, room = (253, 5 / 6) if name == "smollm2" else (512, 3 / 4)
    assert anatomy.memory(recording, longest) <= caching.cache.limit * room


def recorded_arrays(recording: Recording) -> list[np.ndarray | GroupedArray]:
    parts = (*recording.streams, *recording.attention)
    values = [value for part in parts for value in vars(part).values()]
    return [value for value in values if isinstance(value, (np.ndarray, GroupedArray))]


def test_the_forms_of_the_lecture_notes_are_one(model: OwnModel) -> None:
    recording, outputs = model.record("the cat sat on the mat"), model.outputs()
    holds(recording, outputs)
    for attention in recording.attention:
        w_o, bias = outputs[attention.name]
        for layer, query in ((0, 0), (2, 4)):
            found = anatomy.output_forms(recording, attention, layer, query, (w_o, bias))
            z = np.einsum("hk,hkd->hd", attention.pattern[layer, :, query], attention.v[layer])
            expected = bias[layer] + np.einsum("hd,hdm->m", z, w_o[layer])
            for form in (found.per_position, found.concatenated, found.by_head):
                np.testing.assert_allclose(form, expected, atol=PASSED)
            bound = DOUBLE * max(1, anatomy.largest_component(found))
            assert found.max_difference <= bound and found.error <= PASSED


EDITS: list[tuple[str, Edit]] = [
    ("small_model", WithoutScale(layer=1)),
    ("small_model", ScaledBy(3.5, layer=0)),
    ("small_model", UniformHead(1, 2)),
    ("small_model", OtherPositions("distance")),
    ("small_model", OtherPositions("rotary")),
    ("small_model", WithMask()),
    ("small_model", WithoutNorm()),
    ("small_decoder", WithoutMask()),
    ("small_decoder", MeanHead(0, 0)),
    ("small_translator", UniformHead(1, 1, "cross")),
    ("small_translator", ZeroHead(0, 2, "decoder self")),
]


@pytest.mark.parametrize(("small", "edit"), EDITS, ids=str)
def test_an_edit_changes_its_step(small: str, edit: Edit, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(small)
    recording, outputs = model.record("the cat sat on the mat", (edit,)), model.outputs()
    holds(recording, outputs)
    name = getattr(edit, "attention", recording.attention[0].name)
    attention = next(each for each in recording.attention if each.name == name)
    layer, head = getattr(edit, "layer", 0) or 0, getattr(edit, "head", 0)
    opened = anatomy.cell(recording, attention, layer, head, 2, 1)
    assert not opened.measured
    if isinstance(edit, WithoutScale):
        assert opened.divisor == 1 and opened.divisor_edit == edit
    if isinstance(edit, ScaledBy):
        assert opened.divisor == 3.5
        assert "3.5" in reasons(opened, attention.allowed[0])["scale"]
    if isinstance(edit, UniformHead):
        assert opened.uniform_edit == edit and len(set(opened.weights[opened.allowed])) == 1
    if isinstance(edit, OtherPositions) and edit.to == "distance":
        assert opened.added[1] == pytest.approx(-(2.0**-2)) and opened.added[2] == 0
    if isinstance(edit, (ZeroHead, MeanHead)):
        done = anatomy.head_outputs(recording, attention, layer, 2, outputs[attention.name])
        assert done.z_edits[head] == edit and not np.array_equal(done.z[head], opened.z)


def test_unlike_lengths_of_source_and_target_stay_apart(small_translator) -> None:
    recording = small_translator.record("the cat sat on the mat and the dog ran", target="the mat")
    cross = recording.attention[2]
    rows, keys = cross.allowed[0].shape
    assert rows != keys
    opened = anatomy.cell(recording, cross, 1, 2, rows - 1, keys - 1)
    assert len(opened.scores) == keys == len(opened.v)
    row_holds(cross, opened)


@pytest.mark.parametrize("small", ["small_model", "small_decoder"])
def test_what_a_window_lets_a_token_see(small: str, request: pytest.FixtureRequest) -> None:
    """In an encoder, and without a causal mask, a window has two sides."""
    made = request.getfixturevalue(small)
    edits = (WithoutMask(),) if small == "small_decoder" else ()
    recording = made.record("the cat sat on the mat and ran", (Window(3), *edits))
    attention = recording.attention[0]
    masks = mask_reasons(recording)
    for at in ((4, 5), (4, 3)):
        assert "can attend" in masks[at] and "at most 2 positions away" in masks[at]
    for at in ((5, 1), (2, 6)):
        assert "attends only to tokens" in masks[at]
    assert not any("later" in mask or "ahead" in mask for mask in masks.values())
    assert terminology.mask_reason(attention.allowed[0]) == "not allowed: more than 2 places away"
    assert "later" not in mask_rule(attention.allowed[0])


def mask_reasons(recording: Recording) -> dict[tuple[int, int], str]:
    """What is said of four cells, by query and key, two of them within a window of three."""
    attention, found = recording.attention[0], {}
    for at in ((4, 5), (4, 3), (5, 1), (2, 6)):
        opened = anatomy.cell(recording, attention, 0, 0, *at)
        found[at] = reasons(opened, attention.allowed[0])["mask"]
    return found


def test_a_causal_window_ends_at_the_token_itself(small_decoder: OwnModel) -> None:
    recording = small_decoder.record("the cat sat on the mat and ran", (Window(3),))
    masks, allowed = mask_reasons(recording), recording.attention[0].allowed[0]
    assert "cannot attend to the later token 5" in masks[4, 5] and "later token 6" in masks[2, 6]
    assert "within the window" in masks[4, 3] and "before the window" in masks[5, 1]
    assert "a later token" in terminology.mask_reason(allowed)
    assert "Above the diagonal" in mask_rule(allowed)


def test_what_is_not_in_the_recording_is_not_made_up(small_model) -> None:
    recording = small_model.record("the cat sat on the mat", (PatchHead("the dog ran", 1, 2),))
    attention, outputs = recording.attention[0], small_model.outputs()["self"]
    assert anatomy.head_outputs(recording, attention, 1, 0, outputs) is None
    assert anatomy.head_outputs(recording, attention, 0, 0, outputs) is not None


def test_a_model_built_without_the_scale_is_told_from_one_with() -> None:
    names, text = ("induction", "induction-no-scale"), "s3 s7 s1 s9 s3 s7"
    scaled, plain = (read_once(name).record(text) for name in names)
    for recording, divisor in ((scaled, np.sqrt(scaled.model.d_head)), (plain, 1)):
        opened = anatomy.cell(recording, recording.attention[0], 1, 1, 4, 2)
        assert opened.divisor == divisor and not opened.measured and not opened.added.any()


def test_scores_too_large_for_exp_still_give_their_weight(small_model) -> None:
    recording = small_model.record("the cat sat on the mat", (ScaledBy(1e-3),))
    attention = recording.attention[0]
    query = int(attention.scores[0, 0].max(axis=1).argmax())
    key = int(attention.pattern[0, 0, query].argmax())
    opened = anatomy.cell(recording, attention, 0, 0, query, key)
    assert opened.plain is None and np.isfinite(opened.weights).all()
    assert opened.weights.sum() == pytest.approx(1)


def test_a_share_too_small_for_per_cent_is_told_in_its_own_digits() -> None:
    run = Run("minilm", "İstanbul'da ılık bir rüzgâr esti; İpek ıslandı.")
    (share,) = [
        each for each in anatomy_panels.weight(run, 0, 0, 0).details if each.startswith("share = ")
    ]
    assert "less than" not in share and share.endswith(" = 1.3 × 10⁻⁴.")


def test_the_file_holds_every_step_in_full(small_model) -> None:
    recording = small_model.record('the cat <b>,"sat')
    attention, outputs = recording.attention[0], small_model.outputs()["self"]
    opened = anatomy.cell(recording, attention, 1, 2, 3, 1)
    done = anatomy.head_outputs(recording, attention, 1, 3, outputs)
    tables = anatomy.tables(opened, done, recording.streams[0].tokens)
    text = to_csv(stacked(tables.items(), "step"), ("model small", "Text: the\ncat"))
    loaded = pd.read_csv(io.StringIO(text), comment="#")
    about = ["# model small", "# Text: the cat", f"# Headlight {VERSION}"]
    assert text.splitlines()[:3] == about
    tables = dict(list(loaded.groupby("step")))
    by_key = tables["The row"]
    assert tables["Query and key"]["q × k"].sum() == pytest.approx(
        by_key["q · k"].iloc[1], rel=DOUBLE_LONG
    )
    assert tuple(map(unescape_cell, by_key["token"])) == recording.streams[0].tokens
    assert by_key["weight"].sum() == pytest.approx(1)
    assert tables["Heads"]["share along the sum"].sum() == pytest.approx(1)


def test_what_an_edit_makes_of_a_heads_output_stands_beside_it() -> None:
    panel = anatomy_panels.weight(Run("encoder", TEXT, (ZeroHead(0, 1),)), 0, 1, 3)
    names = ("z as the edit sets it", "z")
    edited, own = ([row for row in panel.table[name] if row is not None] for name in names)
    assert len(edited) == len(own) and not any(edited) and any(own)
