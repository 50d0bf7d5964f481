"""Models that scale q . k in their own way: the recording carries it, the laws hold, and pages
print it."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch
from conftest import read_once

from explorer.analysis import anatomy, consistency
from explorer.panels.anatomy import divisor_text, reasons
from models.contract.edits import ScaledBy
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz
from models.network.own_model import OwnModel
from models.runtime import registry

TEXT = "the cat sat on the mat and the dog ran"
GRANITE = {**tiny.LLAMA, **tiny.SPECIALS, "attention_multiplier": 0.0625}


@pytest.fixture(scope="module")
def inverse(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A GPT-2 whose layers divide by sqrt(d_head) and by their number, counted from 1."""
    folder = tiny.build("gpt2", tmp_path_factory.mktemp("gpt2"))
    tiny.change(folder, scale_attn_by_inverse_layer_idx=True)
    return registry.load(f"hub:{folder}").record(TEXT)


@pytest.fixture(scope="module")
def granite(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A Granite, whose configuration names the factor."""
    torch.manual_seed(7)
    made = tmp_path_factory.mktemp("granite"), "GraniteForCausalLM", GRANITE, tiny.llama_pieces
    return registry.load(f"hub:{tiny.save(*made)}").record(TEXT)


def scores_check(recording: Recording) -> consistency.Check:
    return next(check for check in consistency.checks(recording) if "q · k" in check.law)


def test_each_layers_own_scale_is_recorded_and_the_law_holds(inverse: Recording) -> None:
    attention = inverse.attention[0]
    usual = attention.q.shape[-1] ** -0.5
    np.testing.assert_allclose(attention.scale, [usual, usual / 2])
    check = scores_check(inverse)
    assert check.checked and check.holds, (check.error, check.tolerance)
    assert "√d_head" not in check.law and f"{usual / 2:.4g} to {usual:.4g}" in check.law
    assert consistency.scale_text(attention, 0) == f" / √{attention.q.shape[-1]}"
    assert consistency.scale_text(attention, 1) == f" × {usual / 2:.4g}"


def test_a_named_factor_is_recorded_and_printed(granite: Recording) -> None:
    attention = granite.attention[0]
    np.testing.assert_allclose(attention.scale, 0.0625)
    check = scores_check(granite)
    assert check.checked and check.holds, (check.error, check.tolerance)
    assert check.law == "q · k × 0.0625 = score, with this model’s own scale"
    opened = anatomy.cell(granite, attention, 1, 0, 4, 2)
    assert opened.divisor == pytest.approx(16) and not opened.measured
    assert "own scale" in reasons(opened, attention.allowed[0])["scale"]
    assert divisor_text(opened) == "16"


def test_an_edit_of_the_scale_is_recorded(small_model: OwnModel) -> None:
    recording = small_model.record(TEXT, (ScaledBy(4.0, 1),))
    assert recording.attention[0].scale[1] == 0.25
    assert scores_check(recording).holds


def test_the_scale_goes_into_a_file_and_files_without_one_find_it(inverse: Recording) -> None:
    assert from_npz(to_npz(inverse)) == inverse
    for name, expected in (("encoder", 32**-0.5), ("induction-no-scale", 1.0)):
        recording = read_once(name).record("the cat sat on the mat")
        with np.load(io.BytesIO(to_npz(recording)), allow_pickle=False) as file:
            before = {key: file[key] for key in file.files if not key.endswith(".scale")}
        file = io.BytesIO()
        np.savez(file, **before)
        read = from_npz(file.getvalue())
        np.testing.assert_allclose(read.attention[0].scale, expected)
        np.testing.assert_allclose(read.attention[0].scale, recording.attention[0].scale)


def test_a_scale_of_another_number_of_layers_is_refused(inverse: Recording) -> None:
    one = inverse.attention[0]
    with pytest.raises(ValueError, match="scale of self"):
        replace(one, scale=np.ones(5))
