"""Any combination of edits, what cannot be done, and edits written in an address or a file."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from conftest import read_once
from edited import OTHER, TEXT, last, recorded
from tolerances import PASSED, TOTAL

from models.contract import edits
from models.contract.recording import NotFinite
from models.network import own_model
from models.network.transformer import Decoder

# ---- any of them together ----------------------------------------------------


EVERY = (
    edits.ZeroHead(0, 1),
    edits.MeanHead(1, 2),
    edits.UniformHead(2, 0),
    edits.WithoutScale(),
    edits.ScaledBy(2.5, 1),
    edits.Window(4),
    edits.SharedKeys(2),
    edits.WithoutPositions(),
    edits.ShufflePositions(4),
    edits.ShiftPositions(3),
    edits.OtherPositions("rotary"),
    edits.OtherPositions("distance"),
    edits.WithoutResidual(1),
    edits.WithoutResidual(None, "attn"),
    edits.WithoutNorm(0),
    edits.WithoutNorm(),
    edits.MoveNorm("pre"),
    edits.MoveNorm("pre", 1),
    edits.OtherNorm("rms"),
    edits.SideBySide(1),
    edits.WithoutFeedForward(2),
    edits.ShuffleTokens(5),
    edits.HideWord(2),
    edits.PatchHead(OTHER, 1, 1),
    edits.PatchSite(OTHER, "0.attn.sum", 1),
)


def test_a_translator_writes_with_shifted_positions(small_translator: own_model.OwnModel) -> None:
    for by in (5, 30, 54):
        assert small_translator.record(TEXT, (edits.ShiftPositions(by),)).streams[1].sites


def test_what_is_not_there_cannot_be_moved_and_can_be_taken_away_once_more() -> None:
    for name, moved in (
        ("induction-no-positions", edits.ShufflePositions(1)),
        ("induction-no-positions", edits.ShiftPositions(1)),
        ("induction-no-norm", edits.MoveNorm("pre")),
        ("induction-no-norm", edits.OtherNorm("rms")),
    ):
        with pytest.raises(ValueError, match=name):
            read_once(name).record(TEXT, (moved,))
    for name, gone in (
        ("induction-no-scale", edits.WithoutScale()),
        ("induction-no-residual", edits.WithoutResidual()),
        ("induction-no-positions", edits.WithoutPositions()),
        ("induction-no-norm", edits.WithoutNorm()),
    ):
        model = read_once(name)
        np.testing.assert_array_equal(last(model.record(TEXT, (gone,))), last(model.record(TEXT)))


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("many", [2, 5, 12])
def test_any_edits_go_together(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel, many: int
) -> None:
    draw = np.random.default_rng(many)
    for _ in range(25):
        asked = tuple(EVERY[at] for at in sorted(draw.permutation(len(EVERY))[:many]))
        models = (small_model, edits.WithMask()), (small_decoder, edits.WithoutMask())
        for model, more in models:
            recording = recorded(model, *asked, more)
            assert recording.edits == (*asked, more) and np.isfinite(last(recording)).all()
            if any(isinstance(each, edits.PatchSite) for each in asked):
                with pytest.raises(ValueError, match="put in"):
                    model.attribute(recording, recording.streams[0].name, 2, 7)
            else:
                found = model.attribute(recording, recording.streams[0].name, 2, 7)
                assert sum(part.value for part in found.parts) == pytest.approx(
                    found.logit, abs=TOTAL + 1e-5 * abs(found.logit)
                )


def test_numbers_that_overflow_are_named(small_decoder: own_model.OwnModel) -> None:
    big = own_model.from_network(
        Decoder(small_decoder.network.config).eval(), small_decoder.tokenizer, "big", "none"
    )
    with torch.no_grad():
        big.network.layers[1].feed_forward.w_2.bias[3] = float("inf")
    with pytest.raises(NotFinite, match="1.ffn.wrote") as caught:
        recorded(big)
    assert caught.value.site == "1.ffn.wrote"


@pytest.mark.parametrize(
    "asked, why",
    [
        *((edits.ScaledBy(each), "above 0") for each in (-0.0, float("nan"))),
        *((edits.ScaledBy(each), "between 3e-39 and 3e") for each in (float("inf"), 2.9e-39)),
        (edits.ScaledBy(10**400), "more than 18 digits"),
        *((edits.ScaledBy(each), "divisor must be a number") for each in ("2", True)),
        (edits.ZeroHead(0, 1.0), "head must be a whole number, not 1.0"),
        (edits.ZeroHead(0, None), "head must be a whole number"),
        (edits.WithoutNorm(float("nan")), "layer must be a whole number"),
        (edits.PatchSite(OTHER, "embed", -0.0), "token must be a whole number"),
        (edits.OtherPositions(2), "to must be a word"),
        (edits.ShiftPositions(-1), "onwards"),
        (edits.ShiftPositions(60), "position"),
        (edits.ShufflePositions(-1), "seed"),
        (edits.OtherPositions("magic"), "magic"),
        (edits.MoveNorm("up"), "up"),
        (edits.OtherNorm("batch"), "batch"),
        (edits.OtherNorm("layer"), "has LayerNorm already"),
        (edits.WithoutResidual(None, "lunch"), "lunch"),
        (edits.WithoutResidual(None, "cross"), "no cross-attention"),
        (edits.MeanHead(0, 4), "head 4"),
        (edits.UniformHead(3, 0), "layer 3"),
        (edits.PatchHead(OTHER, 0, 0, "cross"), "cross"),
        (edits.PatchSite(OTHER, "9.lunch"), "no site .9.lunch. of stream"),
        (edits.WithMask(), "decoder"),
        (edits.HideToken(1), "masked words"),
        *((edits.PatchSite(OTHER, "embed", token), "tokens 0 to") for token in (-99, 40)),
    ],
)
def test_what_cannot_be_done_is_said(
    small_decoder: own_model.OwnModel, asked: edits.Edit, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        recorded(small_decoder, asked)


@pytest.mark.parametrize("divisor", [3e-39, 1e-38, 1.2e-38, 1e-30, 3e38])
def test_the_smallest_and_largest_divisors_are_divided_by_or_overflow_by_name(
    small_decoder: own_model.OwnModel, divisor: float
) -> None:
    """From an address too, where a number is written as Python does."""
    (asked,) = edits.from_line(edits.to_line((edits.ScaledBy(divisor),)))
    try:
        pattern = recorded(small_decoder, asked).attention[0].pattern
    except NotFinite as overflow:
        assert divisor < 1 and overflow.site.endswith("scores")
    else:
        rows = pattern[..., -1, :]
        assert np.ptp(rows) < PASSED if divisor > 1 else (rows.max(-1) == 1).all()


@pytest.mark.slow
def test_two_people_with_different_edits_get_their_own_pictures(
    small_model: own_model.OwnModel,
) -> None:
    """One model, many threads at once, each with its own switches: every recording is the one that
    its edits make alone."""
    asked = [(), (edits.ZeroHead(1, 2),), (edits.WithoutPositions(), edits.UniformHead(0, 1))]
    asked += [(edits.WithoutScale(),), (edits.MoveNorm("pre"),), (edits.PatchHead(OTHER, 1, 3),)]
    alone = [recorded(small_model, *each) for each in asked]
    with ThreadPoolExecutor(6) as threads:
        together = list(
            threads.map(lambda at: (at % 6, recorded(small_model, *asked[at % 6])), range(240))
        )
    assert all(recording == alone[at] for at, recording in together)


# ---- in an address -----------------------------------------------------------


def test_edits_come_back_from_a_line_and_from_json() -> None:
    asked = (
        *EVERY,
        edits.WithMask(),
        edits.WithoutMask(),
        edits.PatchHead("a:b, c\n“x” % ~", 0, 1),
        edits.PatchSite("", "embed", None, "encoder"),
        edits.MoveNorm("post", 0),
    )
    line = edits.to_line(asked)
    assert edits.from_line(line) == asked and edits.to_line(edits.from_line(line)) == line
    assert " " not in line and "\n" not in line
    assert tuple(edits.from_json(edits.to_json(each)) for each in asked) == asked
    assert edits.from_line("") == () and edits.from_line("ZeroHead:1:2") == (edits.ZeroHead(1, 2),)
    assert len({str(each) for each in asked}) == len(asked), "each is said in its own words"


@pytest.mark.parametrize(
    "line", ["Lunch", "ZeroHead", "ZeroHead:a:b", "ZeroHead:1:2:self:4", "ScaledBy:", ",", "<b>"]
)
def test_a_line_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        edits.from_line(line)


def test_a_block_of_heads_is_one_word_of_an_address_and_one_of_a_caption() -> None:
    every = tuple(edits.UniformHead(layer, head) for layer in range(4) for head in range(8))
    assert edits.to_line(every) == "UniformHead:0-3:0-7:self"
    assert edits.from_line(edits.to_line(every)) == every
    assert edits.describe(every) == "each of heads 0 to 7 of layers 0 to 3 with uniform attention"
    ablated = (edits.ZeroHead(0, 1), edits.ZeroHead(0, 2, "cross"))
    mixed = (edits.WithoutScale(), *every[3:13], *ablated, every[31])
    assert edits.from_line(edits.to_line(mixed)) == mixed
    assert edits.to_line(mixed).count(",") < len(mixed) - 1
    # An edit a word is read too.
    line = ",".join(f"ZeroHead:{layer}:{head}:self" for layer in (0, 1) for head in (2, 3))
    assert edits.from_line(line) == edits.from_line("ZeroHead:0-1:2-3:self")
    for bad in ("UniformHead:3-0:0:self", "UniformHead:0-9999:0-9999:self", "PatchHead:a:0-1:0"):
        with pytest.raises(ValueError):
            edits.from_line(bad)
