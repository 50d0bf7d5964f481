"""The hidden units of a feed-forward network: they add up to what it writes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on
from tolerances import PASSED, SUMMED

from explorer.analysis import ffn, flow, opening, residual
from explorer.analysis.word_classes import is_word
from explorer.panels import architecture, feed_forward
from models.contract.edits import WithoutFeedForward
from models.contract.recording import CONTINUES
from models.runtime import registry
from models.runtime.run import Run

TEXT = "The old cat slept on the warm mat because it was tired."
MODELS = ["encoder", "decoder", "translator"]
MODELS += [name for name in (registry.MINILM, "smollm2") if name in registry.names()]
TOKEN = 9


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_units_add_up_to_the_update(model: str) -> None:
    run = Run(model, TEXT)
    stream = run.recording().streams[-1]
    panel = feed_forward.units(run, TOKEN, stream=stream.name)
    opened = opening.answering_unit(run.recording(), stream.name, TOKEN)
    layer = residual.largest_ffn(stream, TOKEN) if opened is None else opened.layer
    assert str(layer) in panel.title and f"“{stream.tokens[TOKEN]}”" in panel.finding
    bars, beside = panel.figures
    assert sum(row.values[0] for row in bars.rows) == pytest.approx(1, abs=PASSED)
    assert all(row.values[0] > 0 for row in bars.rows if row.key)
    # From the recorded update alone: what each unit writes, projected on it.
    update = residual.site_vectors(stream, f"{layer}.ffn.wrote")[TOKEN].astype(np.float64)
    norms, shares = panel.table["norm written"], panel.table["share of the update"]
    assert (np.abs(shares) <= norms / np.linalg.norm(update) + PASSED).all()
    above = int((panel.table["before the activation"] > 0).sum())
    assert f"{above:,} of the {len(norms):,} hidden units are active" in panel.details[0]
    (unit,) = (row for row in bars.rows if row.selected)
    assert re.search(f"[Uu]nit {unit.key} ", panel.finding) and unit.texts[0] in panel.finding
    has_bias = any("bias" in row.label for row in bars.rows)
    assert any("and the bias" in line for line in panel.details) == has_bias
    ordered = np.cumsum(np.sort(shares)[::-1])
    assert f"The {int(np.argmax(ordered >= 0.5)) + 1:,} units" in panel.details[0]
    assert np.argmax(beside.weights) < len(stream.tokens) and beside.weights.max() == 1
    least = flow.least_cosine(run.loaded, update.size)
    loaded = run.loaded
    hidden = loaded.ffn_activations(run.recording(), stream.name, layer, TOKEN)
    named: list[str] = []  # of the unit on screen, when all are done
    for row in sorted((each for each in bars.rows if each.key), key=lambda each: each.selected):
        (ids,), (cosines,) = loaded.nearest(hidden.writes[[int(row.key)]], feed_forward.N_WORDS)
        near = [id for id, cosine in zip(ids.tolist(), cosines) if cosine >= least]
        named = loaded.labels([id for id in near if not loaded.is_special(id)])
        named = [each for each in named if is_word(each) and each[0] != CONTINUES]
        named = named[: feed_forward.N_NAMED]
        said = f"unit {row.key}" + (f": {', '.join(named)}" if named else "")
        assert row.label == said
    if opened is not None:
        return
    for label in named:
        assert label in panel.finding
    assert ("writes words like" in panel.finding) == bool(named)


def test_the_unit_that_opens_writes_the_answer_with_the_largest_share() -> None:
    run = Run("encoder", "The waiter brought the soup but it was cold.")
    recording, model, token = run.recording(), run.loaded, 7
    (answer,) = model.labels([int(np.argmax(model.logits(recording, "encoder", token)))])
    best = []  # of all units of all layers
    for layer in range(recording.model.n_layer):
        hidden = model.ffn_activations(recording, "encoder", layer, token)
        shares = ffn.shares_of_update(hidden)[:-1]
        for unit in np.argsort(-shares)[: opening.MOST_UNITS].tolist():
            ids, cosines = model.nearest(hidden.writes[[unit]], opening.N_NEAREST)
            near = ids[0][cosines[0] >= flow.least_cosine(model, hidden.rows.shape[1])]
            if answer in model.labels(near.tolist()):
                best.append((float(shares[unit]), layer, unit))
    share, layer, unit = max(best)
    panel = feed_forward.units(run)
    assert panel.at["layer"] == layer and panel.at["token"] == token
    (row,) = (each for each in panel.figures[0].rows if each.selected)
    assert row.key == str(unit) and row.values[0] == pytest.approx(share)
    n = f"{len(panel.table['unit']):,}"
    assert f"unit {unit} of {n} writes “{answer}”, " in panel.finding
    assert f": {row.texts[0]} of what the network adds" in panel.finding and any(
        "Flow hides" in line for line in panel.details
    )
    assert answer in row.label.partition(": ")[2].split(", ")


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_words_of_a_unit_are_told_where_99_of_100_random_directions_have_none_so_near(
    model: str,
) -> None:
    """Of other random directions than the bound is made of as few pass as it says."""
    loaded, width = Run(model, TEXT).loaded, Run(model, TEXT).recording().model.d_model
    one = np.random.default_rng(7).normal(size=(2_000, width)).astype(np.float32)
    passed = loaded.nearest(one, 1)[1][:, 0] >= flow.least_cosine(loaded, width)
    assert passed.mean() < 0.05  # the bound itself is of 100 directions


def test_a_unit_is_its_own_row_of_the_weights() -> None:
    run, unit = Run("encoder", TEXT), 7
    panel = feed_forward.units(run, TOKEN, 1, unit)
    (row,) = (each for each in panel.figures[0].rows if each.selected)
    assert row.key == str(unit) and row.values == pytest.approx(
        (panel.table["share of the update"][unit],)
    )
    # ReLU: zero or the input itself, token by token.
    after, before = panel.table["activation"], panel.table["before the activation"]
    np.testing.assert_allclose(after, np.maximum(before, 0), atol=SUMMED)


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="no layer 99"):
        feed_forward.units(Run("encoder", TEXT), 1, 99)
    with pytest.raises(ValueError, match="taken away"):
        feed_forward.units(Run("encoder", TEXT, (WithoutFeedForward(1),)), 1, 1)


@pytest.mark.slow
def test_the_tab_shows_the_selected_word_layer_and_unit_and_the_flow_leads_there() -> None:
    app = clean(page_at("feedforward", text=TEXT, token="4", layer="2", unit="11"))
    panel, through = panels_on(app)
    assert through["title"].startswith("Through the FFN of layer 2")
    assert panel["title"].endswith("layer 2") and "“slept”" in panel["finding"]
    assert "unit 11 " in f"{panel['figures'][1]['title']} "
    lost = clean(page_at("feedforward", text=TEXT, token="999", layer="x", unit="99999999"))
    assert panels_on(lost)
    flow = architecture.flow(Run("encoder", TEXT), 4, layer=2, level="Layer").figures[0]
    assert flow.leads[0].select["address"] == "tab=feedforward&layer=2&token=4"
