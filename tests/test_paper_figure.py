"""The paper's figure of a model: its halves, blocks and numbers are those of the model, and what
stands on top is its prediction."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np
import pytest
from conftest import needs_smollm2
from javascript import needs_node, run, served
from test_layout import LEAST, faults

from explorer.analysis import opening
from explorer.figures.kinds import Block, Tower
from explorer.panels import flow_way, paper_figure
from explorer.text import places
from models.contract.edits import HideToken, WithoutNorm
from models.contract.results import softmax
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "The old cat slept on the warm mat because it was tired."
SMOLLM2 = pytest.param("smollm2", marks=needs_smollm2)
MODELS = ("encoder", "decoder", "translator", "twin-pre", SMOLLM2)
LIT = {"encoder": (True, False), "decoder": (False, True), "encoder-decoder": (True, True)}


def towers(model: str) -> tuple[Tower, ...]:
    (figure,) = paper_figure.stacks(Run(model, TEXT)).figures
    return figure.towers


def blocks_of(tower: Tower) -> list[Block]:
    inside = [block for tier in tower.layer for block in (*tier.blocks, tier.norm) if block]
    return [*tower.under, *inside, *tower.above]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_halves_that_a_model_has_are_lit_with_its_numbers(model: str) -> None:
    recording = Run(model, TEXT).recording()
    card, drawn = recording.model, towers(model)
    assert tuple(each.lit for each in drawn) == LIT[card.kind]
    for tower in drawn:
        texts = " ".join(each.text for each in blocks_of(tower))
        if not tower.lit:
            assert {(each.key, each.text) for each in blocks_of(tower)} == {
                ("", ""),
                ("", "position"),
            }
            continue
        assert tower.count == f"{card.n_layer} ×"
        assert f"{card.n_vocab:,} × {card.d_model:,}" in texts
        for tier in tower.layer:
            for block in tier.blocks:
                if block.of == "attention":
                    assert block.text.startswith(f"{card.n_head} heads of {card.d_head}")
    # A decoder alone has nothing to attend across to.
    across = [tier.aside for tier in drawn[1].layer if tier.aside]
    assert len(across) == (card.kind != "decoder")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "place"), [("encoder", "post"), ("twin-pre", "pre")])
def test_a_norm_stands_where_the_model_has_it(model: str, place: str) -> None:
    tower = towers(model)[0]
    assert {tier.place for tier in tower.layer} == {place}
    assert all(tier.adds and tier.norm and tier.norm.text == "LayerNorm" for tier in tower.layer)
    ends = [each.of for each in tower.above]
    assert ends == (["norm"] if place == "pre" else []) + ["readout"]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["albert", "electra"])
@pytest.mark.parametrize("way", ["hub:", "ours:"])
def test_narrow_words_are_normed_and_then_widened(
    way: str, family: str, tiny_folder: Callable[[str], Path]
) -> None:
    name = f"{way}{tiny_folder(family)}"
    recording = Run(name, TEXT).recording()
    width = loaded(recording).capabilities.embedding_width
    assert width is not None and width < recording.model.d_model
    drawn = [(each.of, each.text) for each in towers(name)[0].under]
    widens = ("embedding", f"{width} → {recording.model.d_model}")
    assert drawn[-3:] == [("sum", "position (learned)"), ("norm", "LayerNorm"), widens]
    if way == "ours:":
        (figure,) = paper_figure.stacks(Run(name, TEXT, (WithoutNorm(),))).figures
        assert not [each for each in figure.towers[0].under if each.of == "norm"]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_feed_forward_network_has_its_recorded_widths(model: str) -> None:
    recording = Run(model, TEXT).recording()
    stream = recording.streams[-1]
    hidden = loaded(recording).ffn_activations(recording, stream.name, 0, 0)
    units, d = hidden.writes.shape
    lit = next(each for each in towers(model)[::-1] if each.lit)
    (network,) = (each for each in blocks_of(lit) if each.of == "ffn")
    activation = "SwiGLU" if model == "smollm2" else "ReLU"
    assert network.text == f"{d:,} → {units:,} → {d:,}, {activation}"
    if activation == "ReLU":
        np.testing.assert_array_equal(hidden.after, np.maximum(hidden.before, 0))


@needs_smollm2
@pytest.mark.slow
def test_rotary_positions_are_in_the_attention_and_not_added() -> None:
    tower = towers("smollm2")[1]
    assert not [each for each in tower.under if each.of == "sum"]
    assert "rotated" in tower.layer[0].reads and "3 keys" in tower.layer[0].blocks[0].text
    assert [each.text for each in towers("encoder")[0].under if each.of == "sum"] == [
        "position (sinusoids)"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_what_comes_out_is_the_likeliest_word_of_the_recording(model: str) -> None:
    run_of = Run(model, TEXT)
    recording = run_of.recording()
    token = opening.flow_word(recording, recording.streams[0])
    if recording.model.kind == "encoder":
        recording = run_of.under((HideToken(token),)).recording()
    stream = recording.streams[-1]
    if len(recording.streams) > 1:
        token = flow_way.aligned(recording, stream, paper_token(run_of))
    scores = loaded(recording).logits(recording, stream.name, token)
    likeliest = softmax(scores.astype(np.float64)).max()
    lit = [each for each in towers(model) if each.answer]
    assert len(lit) == 1 and lit[0].lit
    word, _, p = lit[0].answer.rpartition(" ")
    whole = paper_figure.stacks(run_of).finding
    assert f"“{word}” ({p})" in whole
    # A word of several pieces has at most the probability of its first one.
    assert float(p.rstrip("%")) / 100 <= likeliest + 0.0005


def paper_token(run_of: Run) -> int:
    recording = run_of.recording()
    return opening.word(recording, recording.streams[0])


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_press_on_a_block_leads_to_a_tab_that_the_model_has(model: str) -> None:
    recording = Run(model, TEXT).recording()
    for tower in filter(lambda each: each.lit, towers(model)):
        keys = {each.of: parse_qs(each.key) for each in blocks_of(tower) if each.of != "words"}
        for of, to in keys.items():
            assert places.place_of(to["tab"][0]), of
            assert to.get("stream", [recording.streams[0].name])[0] in [
                each.name for each in recording.streams
            ]
            names = {each.name for each in recording.attention}
            assert {*to.get("attention", ())} <= names
        assert keys["ffn"]["tab"] == ["feedforward"] and keys["attention"]["tab"] == ["heads"]
    if model == "translator":
        (cross,) = (tier.blocks[0] for tier in towers(model)[1].layer if tier.aside)
        assert parse_qs(cross.key)["attention"] == ["cross"]


@needs_node
@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator", SMOLLM2])
def test_it_is_read_from_the_back_row_below_two_formulas(model: str, tmp_path: Path) -> None:
    served(tmp_path)
    panel = paper_figure.stacks(Run(model, TEXT))
    (tmp_path / "panel").write_bytes(panel.encode())
    rooms = json.dumps([{"name": "1280x720", "width": 1218, "height": 435, "window": 1280}])
    done = run("node", "slides.js", str(tmp_path), rooms, str(tmp_path / "panel"))
    assert done.returncode == 0, done.stderr[-2000:]
    (room,) = map(json.loads, done.stdout.splitlines())
    assert not faults(room) and min(each["size"] for each in room["texts"]) >= LEAST
    shown = " ".join(each["shown"] for each in room["texts"])
    for tower in panel.figures[0].towers:
        assert all(block.name in shown and block.text in shown for block in blocks_of(tower))
        assert tower.answer in shown
