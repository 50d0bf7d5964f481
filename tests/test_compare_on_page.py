"""The tab Compare: any two texts, every part of it, and its panels' numbers."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on, told
from compare_fixtures import recorded, sides
from conftest import HOSTILE, read_once
from streamlit.testing.v1 import AppTest
from tolerances import STORED, SUMMED

from explorer.analysis import comparison
from explorer.app.layout.selection_bar import EVERY_WORD
from explorer.figures.formatting import fixed, tenths
from explorer.panels import address, compare
from models.contract.edits import (
    HideToken,
    MeanHead,
    WithoutPositions,
    WithoutScale,
    ZeroHead,
    describe,
)
from models.contract.results import softmax
from models.runtime import registry
from models.runtime.run import Run

TEXT = "Ram pushed Hari"
VIEWS = ("Heads", "Difference", "Answers", "Nearest", "Tokens")


def opened(**asked: str) -> AppTest:
    return page_at("compare", **asked)


# ---- panels ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("text", [TEXT, HOSTILE["empty"], HOSTILE["10,000 characters"]])
def test_the_grid_is_the_distance_of_each_head_and_both_sides_are_its_weights(text: str) -> None:
    found = sides(recorded("encoder", text), recorded("encoder", text, (WithoutPositions(),)))
    distances = comparison.same_place_distances(found)
    panel = compare.heads(Run("encoder", text), layer=1, head=3)
    grid, a, b = panel.figures
    np.testing.assert_allclose(grid.values, distances, atol=SUMMED)
    assert grid.marks == ((1, 3, ""),)
    for matrix, weights in zip((a, b), found.heads((1, 3), (1, 3))):
        assert matrix.rows == found.rows.labels
        np.testing.assert_allclose(matrix.values, weights, atol=STORED)
    if a.marks:
        assert "where the two differ most" in a.note
        farthest = comparison.row_distances(*found.heads((1, 3), (1, 3)))[found.free].max()
        row, column, _ = a.marks[0]
        assert comparison.row_distances(a.values[row], b.values[row]) == farthest
        assert b.values[row, column] - a.values[row, column] == (b.values - a.values)[row].min()
    layer, head = comparison.most_changed(distances)[0]
    equal = distances.max() == 0
    assert equal or f"Layer {layer}, head {head} differs most" in panel.finding
    asked = f"The selected head (layer 1, head 3) has distance {fixed(float(distances[1, 3]))}."
    assert equal or (asked in panel.finding) == ((layer, head) != (1, 3))
    (change, _) = compare.difference(Run("encoder", text), layer=1, head=3).figures
    np.testing.assert_allclose(change.values, b.values - a.values, atol=STORED)
    assert change.high == pytest.approx(np.abs(change.values).max() or 1, abs=STORED)


def test_of_two_texts_the_mask_is_the_reason_why_rows_before_the_change_are_equal() -> None:
    first, second = "The cat sat on the mat", "The cat sat on the bed"
    for panel in (compare.heads, compare.difference):
        said = panel(Run("decoder", first), Run("decoder", second)).finding
        assert "equal" in said and "the causal mask hides it from them" in said
        assert "mask" not in panel(Run("encoder", first), Run("encoder", second)).finding
        assert "mask" not in panel(Run("decoder", first), Run("decoder", first)).finding


def test_equal_runs_differ_nowhere() -> None:
    run = Run("encoder", TEXT)
    assert "No head differs" in compare.heads(run, run).finding
    assert "All rows are equal" in compare.difference(run, run).finding
    mean = compare.heads(Run("encoder", TEXT, (MeanHead(0, 1),)))
    assert mean.run is not None and "no edits" in mean.figures[2].title
    ablated = Run("encoder", TEXT, (ZeroHead(3, 2),))
    panel = compare.heads(run, ablated)
    assert any("does not change its own attention" in line for line in panel.details)


def test_the_other_run_is_made_of_words() -> None:
    run = Run("encoder", TEXT)
    words = (
        ({"other_edits": "WithoutScale"}, run.under((WithoutScale(),))),
        ({"other_text": "Hari pushed Sita"}, Run("encoder", "Hari pushed Sita")),
        ({"other_model": "decoder", "other_text": "Ram"}, Run("decoder", "Ram")),
    )
    for given, other in words:
        assert address.from_words("compare.tokens", run, given).choices["other"] == other
    beside = compare.other_run(run)
    assert compare.counterpart(run) == beside and beside.edits == (WithoutPositions(),)
    with pytest.raises(ValueError, match="NoSuch"):
        compare.other_run(run, edits="NoSuch")


def test_of_two_shapes_each_head_stands_beside_the_nearest() -> None:
    run, other = Run("encoder", TEXT), Run("decoder", TEXT)
    near = comparison.nearest(
        comparison.distance_matrix(sides(recorded("encoder", TEXT), recorded("decoder", TEXT)))
    )
    panel = compare.heads(run, other, layer=1, head=3)
    grid = panel.figures[0]
    np.testing.assert_allclose(grid.values.ravel(), [each.distance for each in near])
    nearest = comparison.nearest_to(near, (1, 3))
    assert f"L{nearest[0]} H{nearest[1]}" in panel.figures[2].title
    chosen = compare.heads(run, other, layer=1, head=3, head_of_b=(0, 2))
    assert "B, L0 H2" in chosen.figures[2].title
    for wrong in ({"layer": 99, "head": 0}, {"layer": 1, "head": 3, "head_of_b": (0, 99)}):
        with pytest.raises(ValueError, match="There is no (layer|head of B) 99"):
            compare.heads(run, other, **wrong)
    matrix, table = compare.nearest(run, other, layer=1, head=3).figures
    assert matrix.selected == 1 * 8 + 3 and matrix.values.shape == (32, len(matrix.columns))
    assert table.rows[table.selected][0] == "L1 H3"


def test_texts_without_a_common_word_are_refused_and_sides_are_named() -> None:
    run = Run("encoder", "the cat")
    with pytest.raises(ValueError, match="no word in common"):
        compare.heads(run, Run("encoder", "Ωμέγα 日本"))
    panel = compare.heads(run, Run("encoder", "the dog"))
    assert "“cat”" in panel.figures[1].title and "“dog”" in panel.figures[2].title
    assert any("Text of B: the dog" in line for line in panel.caption)
    assert panel.figures[1].columns[-1] == "cat / dog", "what only one text has is named"
    old = Run("encoder", "The old cat slept on the mat.")
    _, of_a, of_b = compare.heads(old, Run("encoder", "The cat slept on the mat.")).figures
    assert "“old”" in of_a.title and "without “old”" in of_b.title


@pytest.mark.slow
def test_both_models_predict_one_word_and_one_without_words_says_so() -> None:
    text = "The cat sat on the mat."
    encoder, decoder = read_once("encoder"), read_once("decoder")
    place = list(recorded("encoder", text).streams[0].tokens).index("mat")
    there = list(recorded("decoder", text).streams[0].tokens).index("mat")
    hidden = recorded("encoder", text, (HideToken(place),))
    logits = (
        encoder.logits(hidden, "encoder", place),
        # The decoder's word in the same place comes after the word before it.
        decoder.logits(recorded("decoder", text), "decoder", there - 1),
    )
    panel = compare.prediction(Run("encoder", text), Run("decoder", text))
    (bars,) = panel.figures
    for at, (scores, model) in enumerate(zip(logits, (encoder, decoder))):
        p = softmax(scores.astype(np.float64))
        best = np.argsort(-p)[:10]
        drawn = {row.label: row.values[at] for row in bars.rows}
        for word, id in zip(model.labels(best.tolist()), best):
            assert drawn[word] == pytest.approx(p[id], rel=SUMMED)
        assert tenths(p[best[0]]) in panel.finding
    assert "masked “mat”" in bars.columns[0] and "after “the”" in bars.columns[1]
    if "minilm" in registry.names():
        panel = compare.prediction(Run("encoder", text), Run("minilm", text))
        assert "has no readout over the vocabulary, so it makes no prediction" in panel.finding


def test_a_word_of_both_texts_is_masked() -> None:
    tired = "The animal didn't cross the street because it was too tired."
    run, other = Run("encoder", tired), Run("encoder", tired.replace("tired", "wide"))
    tokens = run.recording().streams[0].tokens
    masked = {None: "too", tokens.index("tired"): "too", tokens.index("cross"): "cross"}
    for token, word in masked.items():
        (bars,) = compare.prediction(run, other, token).figures
        assert all(f"masked “{word}”" in each for each in bars.columns)


# ---- the tab -----------------------------------------------------------------


DOOR = "The woman saw the man when he opened the door."


@pytest.mark.slow
def test_it_opens_on_two_models_that_vote_and_leads_to_their_heads_and_back() -> None:
    app = clean(opened(text=DOOR))
    (panel,) = panels_on(app)
    assert panel["finding"].startswith("They disagree: the heads of encoder take “he” for “woman”")
    assert app.session_state["compare"] == "Model" and app.session_state["other_model"] == "minilm"
    lead = next(each for each in app.button if "head by head" in each.label)
    lead.click().run()
    (panel,) = panels_on(clean(app))
    assert panel["title"] == "Attention heads of A and B" and "minilm" in str(panel["figures"])
    next(
        each for each in app.button if each.label == "What both models say of one word"
    ).click().run()
    assert panels_on(clean(app))[0]["finding"].startswith("They disagree")
    app.selectbox(key="compare kind").set_value("Edit").run()
    (panel,) = panels_on(clean(app))
    assert panel["title"] == "Attention heads of A and B", "an edit that is chosen stays"
    assert not [each for each in app.button if "tested heads say" in each.label]


@pytest.mark.slow
def test_with_an_edit_it_opens_on_what_that_changes() -> None:
    app = clean(opened(text=DOOR, edits="ZeroHead:0:1:self"))
    assert panels_on(app)[0]["title"] == "Attention heads of A and B"
    assert app.selectbox(key="compare kind").value == "Edit"


@pytest.mark.slow
def test_two_models_are_at_first_those_that_vote() -> None:
    app = opened(text=DOOR, compare="Edit")
    app.selectbox(key="compare kind").set_value("Model").run()
    assert panels_on(clean(app))[0]["finding"].startswith("They disagree")


@pytest.mark.slow
def test_a_links_pair_is_shown_and_swapping_turns_signs() -> None:
    asked = {"text": TEXT, "compare": "Edit", "other_pair": "1.3", "other_view": "Difference"}
    made = {
        swap: panels_on(clean(opened(other_swap=swap, **asked)))[1]["figures"][1]["rows"]
        for swap in ("", "1")
    }
    flipped = [(row[0], row[1], row[3], row[2]) for row in made["1"]]
    assert [tuple(row[:4]) for row in made[""]] == flipped
    first, *_ = panels_on(opened(text=TEXT, compare="Edit", layer="2", head="5"))
    assert "A, L2 H5" in first["figures"][1]["title"], "the head that other tabs select"


@pytest.mark.slow
def test_a_head_of_the_bar_replaces_the_pair_of_a_link() -> None:
    app = opened(text=TEXT, compare="Edit", layer="1", head="0", other_pair="1.1.0.0")
    app.selectbox(key="selected_head").set_value(0).run()
    assert clean(app).selectbox(key="selected_head").value == 0
    assert "A, L1 H0" in panels_on(app)[0]["figures"][1]["title"]


@pytest.mark.slow
def test_every_word_can_be_selected_where_both_texts_are_the_same() -> None:
    app = opened(text="the cat sat on the mat", compare="Edit")
    assert app.selectbox(key="selected_query").value != EVERY_WORD
    app.selectbox(key="selected_query").set_value(EVERY_WORD).run()
    assert clean(app).selectbox(key="selected_query").value == EVERY_WORD


@pytest.mark.slow
def test_a_link_with_nonsense_is_refused_and_an_edit_that_cannot_be_is_named() -> None:
    wrong = {"what": "<b>", "pair": "99.99.1", "view": "?", "model": "no", "of": "x", "to": "y"}
    clean(opened(**{f"other_{name}": value for name, value in wrong.items()}, other_swap="2"))
    app = opened(other_edits="NoSuchEdit:1")
    assert not app.exception and any("NoSuchEdit" in each.value for each in app.info)
    app = clean(opened(other_edits="NoSuchEdit:1, ZeroHead:77:0:self, WithoutScale"))
    (message,) = app.warning
    assert "NoSuchEdit" in message.value and "77" in message.value and panels_on(app)
    app = opened(other_edits="ZeroHead:77:0:self")
    assert not app.exception and app.info
    app = clean(opened(compare="Sentence", other_text="Ωμέγα 日本"))
    assert "no word in common" in told(app, "info")


@pytest.mark.slow
def test_b_has_the_edits_of_edit_the_model_until_others_are_chosen() -> None:
    def sides_of_b(**asked: str) -> tuple[str, str]:
        """The edits of B in the caption, and what its field says of them."""
        app = clean(opened(text=TEXT, compare="Edit", **asked))
        line = next(line for line in panels_on(app)[0]["caption"] if "B: model" in line)
        return line.partition("edits: ")[2], app.selectbox(key="ablated_head").options[0]

    bare, scale = "no positions", describe((WithoutScale(),))
    assert sides_of_b() == (bare, f"B: {bare}, until you choose an edit")
    assert sides_of_b(edits="WithoutScale") == (scale, f"B: {scale}")
    chosen = {"edits": "WithoutScale", "other_edits": "WithoutPositions"}
    assert sides_of_b(**chosen) == (bare, f"B: {bare}")


@pytest.mark.slow
def test_a_head_of_b_is_chosen_from_a_list_and_its_own_attention_is_shown() -> None:
    app = opened(model="translator", text="The cat sleeps.")
    app.selectbox(key="ablated_head").set_value((0, 1, "cross")).run()
    assert clean(app).session_state["other_edits"] == "ZeroHead:0:1:cross"
    assert app.session_state["other_to"] == "cross"
    app.segmented_control(key="ablation").set_value("uniform").run()
    assert clean(app).session_state["other_edits"] == "UniformHead:0:1:cross"
    assert "Layer 0, head 1 differs most" in panels_on(app)[0]["finding"]
    app.pills(key="comparison").set_value("No FFN").run()
    assert clean(app).selectbox(key="ablated_head").value == ()
    app.selectbox(key="ablated_head").set_value((2, 0, "decoder self")).run()
    details = panels_on(clean(app))[0]["details"]
    assert any("does not change its own attention" in line for line in details)
    app.selectbox(key="ablated_head").set_value(()).run()
    assert clean(app).pills(key="comparison").value == "No positions"


@pytest.mark.slow
@pytest.mark.parametrize(("model", "view"), [("encoder", "Nearest"), ("translator", "Heads")])
def test_every_example_opens(model: str, view: str) -> None:
    app = clean(opened(model=model, other_view=view))
    for name in app.pills(key="comparison").options:
        clean(app.pills(key="comparison").set_value(name).run())
        assert panels_on(app) or app.info, name


@pytest.mark.slow
def test_swapped_sides_keep_their_names() -> None:
    app = opened(compare="Sentence", other_text="the dog sat", layer="1", head="2")
    assert app.text_input(key="other_text").label == "Text of B"
    next(each for each in app.button if each.label == "Swap A and B").click().run()
    assert not app.exception and app.text_input(key="other_text").label == "Text of A"
    assert app.text_input(key="other_text").value == "the dog sat"
