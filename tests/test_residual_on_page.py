"""The residual stream and gradients: what their panels say, the tab, and one journey."""

from __future__ import annotations

import re
import threading

import driver
import framed
import numpy as np
import pytest
from app_harness import clean, page_at, panels_on, told
from conftest import read_once
from stream_fixtures import TEXT
from streamlit.testing.v1 import AppTest
from tolerances import DEGREES, STORED, SUMMED

from explorer.analysis import gradients as gradient_tables
from explorer.analysis import logit_lens, opening
from explorer.analysis import residual as measures
from explorer.app.state import jobs
from explorer.figures.formatting import fixed, percent, power, tenths
from explorer.panels import gradients, residual
from models import smollm2
from models.contract import edits
from models.contract.edits import HideToken
from models.contract.results import Decay
from models.network.own_model import OwnModel, record
from models.runtime import caching, registry
from models.runtime.cache import Cache
from models.runtime.caching import loaded
from models.runtime.run import Run

LONGER = (
    "The cat sat on the mat"
    + ", and then it looked at the dog that had slept beside the old door" * 3
)


# ---- updates -------------------------------------------------------------------------------------


def states(model: str, text: str = TEXT) -> tuple[Run, dict[str, np.ndarray]]:
    """A run of a model, and the vectors of its last stream by site."""
    run = Run(model, text)
    stream = run.recording().streams[-1]
    return run, {site: stream.at(site).astype(float) for site in stream.sites}


def angle(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))))


def test_the_selected_update_is_what_the_model_recorded() -> None:
    run, at = states("encoder")
    x, f, total, after = (
        at[site][3] for site in ("1.attn.normed", "1.ffn.wrote", "1.ffn.sum", "1.ffn.normed")
    )
    expected = {
        "Rotation angle": f"{angle(x, total):.1f}°",
        "Update norm": power(float(np.linalg.norm(f))),
        "Share": fixed(float(np.linalg.norm(f) / (np.linalg.norm(f) + np.linalg.norm(x)))),
        "Cosine": fixed(float(x @ f / np.linalg.norm(x) / np.linalg.norm(f))),
        "State norm": power(float(np.linalg.norm(after))),
    }
    for measure, value in expected.items():
        panel = residual.updates(run, measure=measure, token=3, sublayer="1.ffn")
        matrix, beside = panel.figures
        assert value in panel.finding.split(". The median")[0], measure
        assert matrix.selected == 3 and matrix.marks[0][:2] == (
            3,
            matrix.column_keys.index("1.ffn") + (2 if measure == "State norm" else 0),
        )
        profile, equation = beside.figures
        for strip, vector in zip(equation.strips, (x, f, total, after)):
            np.testing.assert_allclose(strip.values, vector)
        if measure == "Rotation angle":
            drawn = [np.subtract(each.end, each.start) for each in profile.arrows]
            assert profile.angle == value
            assert angle(drawn[0], drawn[-1]) == pytest.approx(angle(x, total), abs=DEGREES)
            lengths = [float(np.linalg.norm(each)) for each in (x, f, total)]
            assert np.allclose([np.linalg.norm(each) for each in drawn], lengths, rtol=SUMMED)
            norms = [strip.text for strip in equation.strips[:3]]
            assert norms == [f"norm {power(each)}" for each in lengths], "as the arrows have them"
            continue
        own = next(each for each in profile.series if each.main)
        row = matrix.values[3][own.x.astype(int)]
        np.testing.assert_allclose(own.y, row)
        band, median = profile.series[:2]
        values = matrix.values[:, own.x.astype(int)]
        np.testing.assert_allclose((band.base, band.y), (values.min(0), values.max(0)))
        np.testing.assert_allclose(median.y, np.median(values, axis=0))
    np.testing.assert_allclose(x + f, total, atol=SUMMED)


@pytest.mark.parametrize("measure", residual.MEASURES)
def test_without_a_choice_the_largest_update_of_the_token_is_selected(measure: str) -> None:
    run = Run("decoder", TEXT)
    panel = residual.updates(run, measure=measure, token=2)
    ((row, column, _),) = panel.figures[0].marks
    stream = run.recording().streams[0]
    grid = measures.write_grid(stream, measure)
    layers = [
        at
        for at, one in enumerate(grid.columns)
        if one.group.startswith("Layer") and (measure != "State norm" or one.label == "sum")
    ]
    if measure != "State norm" or measures.norm_place(stream) == "pre":
        assert (row, column) == (2, max(layers, key=lambda at: abs(grid.values[2, at])))
    drawn = np.abs(np.nan_to_num(grid.values[2]))
    is_largest = measure != "State norm" or drawn[column] == drawn.max()
    assert is_largest == any(each in panel.finding for each in ("more than any other", ", the l"))


@pytest.mark.parametrize("model", ["encoder", "decoder", "grammar"])
def test_a_whole_layer_adds_what_its_sub_layers_and_norms_change(
    model: str, gpt2_on_pages: OwnModel
) -> None:
    run = Run(model, TEXT)
    stream = run.recording().streams[0]
    for layer in range(run.recording().model.n_layer):
        sublayers = [each for each in measures.sublayers(stream) if each.layer == layer]
        before, after = stream.at(sublayers[0].before)[3], stream.at(sublayers[-1].after)[3]
        panel = residual.updates(run, "Update norm", 3, f"{layer}.layer", layers=True)
        matrix, beside = panel.figures
        assert matrix.columns == tuple(f"L{at}" for at in range(matrix.values.shape[1]))
        norm = np.linalg.norm(after.astype(float) - before)
        assert matrix.values[3, layer] == pytest.approx(norm, rel=SUMMED)
        assert panel.finding.startswith(f"Layer {layer} adds a vector of norm {power(float(norm))}")
        strips = beside.figures[1].strips
        for strip, vector in zip(strips, (before, after - before, after)):
            np.testing.assert_allclose(strip.values, vector, atol=SUMMED)
        assert len(strips) == 3 and "minus the state before it" in panel.details[0]


WAITER = "The waiter brought the soup but it was cold."


@pytest.mark.parametrize("model", ["encoder", "decoder", "grammar", "induction"])
@pytest.mark.parametrize("text", [WAITER, TEXT, "I love to eat pizza."])
def test_the_update_that_opens_turns_the_guess_most(model: str, text: str) -> None:
    """By the whole lens at the word, hidden where the model fills in words: the largest rise of
    the answer, from one number of the picture to the next."""
    run = Run(model, text)
    panel = residual.updates(run)
    drawn = panel.at["run"].recording()
    token = panel.at["token"]
    assert (model == "encoder") == (drawn.edits == (HideToken(token),))
    lens = loaded(drawn).lens(drawn, drawn.streams[0].name)
    p = np.exp(lens.logprob[:, token])
    rows = panel.figures[0].rows
    assert {row.texts[0] for row in rows} <= {tenths(each) for each in p}
    steps = np.diff(p)
    before, after = (tenths(p[int(steps.argmax()) + at]) for at in (0, 1))
    told = re.search(r"rises most in .+?[:,] from (.+?%) to (.+?%)\.", panel.finding)
    behind = np.flatnonzero(lens.rank[:, token] > 0)  # the sites where another word leads
    first = int(behind[-1]) + 1 if len(behind) else 0
    if "." in lens.sites[first] and first < len(lens.sites) - 1:
        name = logit_lens.site_name(lens.sites[first])
        low = rf"From {name} on, “.+” leads, there with {tenths(p[first])}\."
        leads = low if p[first] < opening.LEADS else rf"From {name} on, “.+” leads all words\."
        assert not behind.size or re.search(leads, panel.finding)
    assert ("by 5 points" in panel.finding) == (steps.max() < opening.TURNS)
    assert told is not None and told.groups() == (before, after)
    at = next(at for at, row in enumerate(rows) if row.selected)
    assert rows[at].texts[0] == after and (at == 0 or rows[at - 1].texts[0] == before)


def test_a_lost_residual_connection_shows() -> None:
    whole = residual.updates(Run("encoder", TEXT), "Rotation angle").figures[1].figures[1]
    assert [each.sign for each in whole.strips] == ["", "+", "=", "→"]
    stream = Run("encoder", TEXT).recording().streams[0]
    error, n, _ = measures.residual_error(stream)
    assert power(error, 2) in whole.note and f"{n:,}" in whole.note
    lost = (
        residual.updates(Run("induction-no-residual", "b a c d b"), "Share").figures[1].figures[1]
    )
    assert "=" not in [each.sign for each in lost.strips] and "residual" in lost.note


def test_a_tokens_numbers_are_its_path(gpt2_on_pages: OwnModel) -> None:
    stream = record(gpt2_on_pages, TEXT).streams[0]
    path, rotations = residual.token_path(Run("grammar", TEXT), token=2).figures[0].figures
    expected = measures.token_path(stream, 2)
    for at, column in enumerate(list(expected)[1:], 1):
        assert [row[at] for row in path.rows] == [fixed(float(v)) for v in expected[column]]
    whole = measures.rotations(stream, 2)["whole layer °"]
    assert [row[-1] for row in rotations.rows] == [fixed(each) for each in whole]


# ---- norms and heads -----------------------------------------------------------------------------


def test_a_norm_is_recomputed_and_batch_norm_moves_the_others() -> None:
    run, at = states("encoder")
    x = at["2.ffn.sum"]
    before = residual.norms(run, token=4).figures[0]
    column = [each.site for each in measures.stream_norms(run.recording().streams[0])]
    np.testing.assert_allclose(before.values[:, column.index("2.ffn")], x.std(-1), rtol=SUMMED)
    panel = residual.norm_steps(run, token=4, sublayer="2.ffn")
    (steps,) = panel.figures
    of_norm = (x[4], at["2.ffn.normed"][4])
    for frame, vector in zip((steps.frames[0], steps.frames[-1]), of_norm):
        (chart,) = frame.figures
        (bars,) = chart.series
        width, (low, high) = bars.x[1] - bars.x[0], chart.x_range
        inside = vector.clip(low, high)
        drawn = [np.sum((inside >= left) & (inside < left + width)) for left in bars.x]
        assert bars.y[:-1].tolist() == drawn[:-1] and bars.y.sum() == len(vector)
        said = re.findall(r"σ (.+?), mean μ (.+?), norm (.+?); turned", chart.note)[0]
        shown = [float(text.replace("−", "-")) for text in said]
        true = vector.std(), vector.mean(), np.linalg.norm(vector)
        assert shown == pytest.approx(true, rel=0.01, abs=0.005)  # 2 decimals
        assert chart.title.startswith("Layer 2, after FFN") and fixed(vector.std()) in panel.finding
    moves, both = residual.batch_norm(run, token=4, sublayer="2.ffn", times=5.0).figures
    m = int(np.abs(at["2.ffn.normed"][4]).argmax())
    over_tokens = (x[4, m] - x[:, m].mean()) / x[:, m].std()
    assert both.facts[0][0] == power(float(over_tokens), 3) and f"number {m} " in both.facts[0][1]
    own, batch = zip(*(row.values[:2] for row in moves.rows if row.key != "4"))
    assert not any(own) and any(batch), "LayerNorm leaves the others where they were"
    (selected,) = [row for row in moves.rows if row.selected]
    assert selected.key == "4" and selected.values[0] > 0


def test_norms_of_heads_are_those_of_what_they_write() -> None:
    run = Run("encoder", TEXT)
    w_o, _ = read_once("encoder").outputs()["self"]
    attention = run.recording().attention[0]
    z = np.einsum("hk,hkd->hd", attention.pattern[1, :, 3], attention.v[1])
    expected = np.linalg.norm(np.einsum("hd,hdm->hm", z, w_o[1]), axis=-1)
    matrix, bars = residual.heads(run, token=3).figures
    heads = attention.pattern.shape[1]
    np.testing.assert_allclose(matrix.values[3, heads : 2 * heads], expected, rtol=SUMMED)
    assert bars.rows[0].values[0] == pytest.approx(matrix.values[3].max())
    shares = residual.heads(run, measure="Share of heads", token=3).figures[0].values
    total = run.recording().streams[0].at("1.attn.wrote")[3]
    along = np.einsum("hd,hdm,m->h", z, w_o[1], total) / (total @ total)
    np.testing.assert_allclose(shares[3, heads : 2 * heads], along, rtol=SUMMED, atol=STORED)


# ---- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "name"), [(0.5, "keeps"), (0.01, "shrinks"), (50.0, "grows")])
def test_a_verdict_says_what_its_factor_is(left: float, name: str) -> None:
    assert name in gradients.verdict("a way", left) and power(left) in gradients.verdict("", left)
    assert "nothing" in gradients.verdict("a way", 0.0)


@pytest.mark.parametrize("model", ["induction", "induction-no-residual"])
def test_singular_values_are_those_of_the_sub_layer(model: str) -> None:
    run = Run(model, "b a c d b")
    stream = run.recording().streams[0].name
    found = read_once(model).jacobian(run.recording(), stream, 2, "0.ffn")
    panel = gradients.jacobian(run, token=2, sublayer="0.ffn")
    drawn = panel.figures[0].series[0].y
    np.testing.assert_allclose(drawn[drawn > 0], found.wrote[found.wrote >= gradients.SMALLEST])
    assert str(int((found.wrote < 0.1).sum())) in panel.finding
    with pytest.raises(ValueError, match="edits"):
        gradients.jacobian(Run(model, TEXT, (edits.ZeroHead(0, 1),)))


def decayed(right: tuple[float, ...]) -> Decay:
    """Three networks in which the gradient falls by halves."""
    norm = np.array([[scale * 0.5**d for d in range(10)] for scale in (1.0, 2.0, 8.0)])
    steps, learned, ahead = np.array([0, 10, 20]), np.array(right), (10, 20, 30)
    return Decay(3, 10, 20, 300, norm, 2 * norm, np.ones((3, 3)), steps, learned, ahead)


def test_the_three_networks_are_told_by_who_has_learned() -> None:
    panel = gradients.recurrence(Run("encoder", LONGER), 3, decay=decayed((0.06, 0.5, 0.97)))
    drawn, learned = panel.figures
    now, before = drawn.figures
    assert now.y_range == before.y_range
    np.testing.assert_allclose(now.series[2].y, 2 * before.series[2].y)
    table = learned.figures[0]
    assert [row[0] for row in table.rows] == list(gradient_tables.NETWORKS)
    assert table.rows[2][3] == power(2 * 8 * 0.5**3) and table.rows[2][4] == percent(0.97)
    assert "Transformer" in panel.finding and power(8) in panel.finding and "RNN" in panel.finding
    early = gradients.lesson(
        gradient_tables.NETWORKS, np.ones((3, 9)), np.array([0.06, 0.2, 0.1]), 8
    )
    assert "Transformer" not in early and percent(0.2) in early
    assert panel.call == "panels.gradients.recurrence(run, lag=3)"


def test_an_experiment_that_runs_is_found_however_full_the_cache_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = threading.Event()

    def endless():
        while held.wait(10):
            yield object()

    monkeypatch.setattr(caching, "cache", Cache(0))
    monkeypatch.setattr(registry, "decay", lambda ids, lag: endless())
    recording = loaded("encoder").record("Hi there")
    experiment = jobs.decay_job(recording, "encoder", 1)
    experiment.resume()
    for at in range(3):
        caching.get(at, lambda: "something large")
    again = jobs.decay_job(recording, "encoder", 1)
    assert again is experiment and again.running
    again.stop()
    held.set()
    experiment._thread.join(10)
    kept = jobs.decay_job(recording, "encoder", 1)
    assert not experiment.running and kept is experiment, "what it came to is kept"


# ---- the tab -------------------------------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("residual", **asked)


@pytest.mark.slow
def test_updates_are_by_layer_where_the_reader_or_the_model_wants_it() -> None:
    def columns(**choices: str) -> int:
        choices |= {"text": TEXT, "write": "Rotation angle"}
        return len(panels_on(opened(**choices))[0]["figures"][0]["columns"])

    assert columns(model="encoder", blocks="Layers") == 4
    assert columns(model="encoder") == columns(model="encoder", blocks="Sub-layers") > 4
    if smollm2.file() is not None:
        assert columns(model="smollm2") == 30
        assert columns(model="smollm2", block="18.ffn") == 60


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_named() -> None:
    of = {"model": "translator", "text": "It sleeps.", "target": "Le <b>chat</b>"}
    app = clean(opened(flow="LayerNorm", stream="decoder", **of))
    assert len(panels_on(app)) == 3
    assert f"your text from the tab Translate, “{of['target']}" in told(app)


@pytest.mark.slow
def test_a_link_opens_what_it_names_and_refuses_what_is_not_there() -> None:
    chosen = {"norm": "Mean before", "block": "2.ffn", "times": "5", "token": "4"}
    app = opened(flow="LayerNorm", **chosen)
    updates, norms, steps = panels_on(app)
    text = app.session_state["text"]
    run = Run("encoder", text)
    assert updates["finding"] == residual.updates(run, token=4, sublayer="2.ffn").finding
    assert norms["finding"] == residual.norms(run, "Mean before", 4).finding
    assert steps["finding"] == residual.norm_steps(run, 4, "2.ffn").finding
    _, beside = panels_on(opened(flow="BatchNorm", **chosen))
    assert beside["finding"] == residual.batch_norm(run, 4, "2.ffn", 5.0).finding
    lost = {"write": "?", "block": "99.x", "times": "nan", "token": "9999", "lag": "-3"}
    (first,) = panels_on(opened(flow="<b>", stream="no", **lost))
    assert first["figures"][0]["kind"] == "bars" and "rises most in" in first["finding"]
    assert len(panels_on(opened(flow="LayerNorm", **lost))) == 3
    clean(opened(flow="RNN", lag="9" * 30))


@pytest.mark.slow
def test_a_model_without_a_part_says_so() -> None:
    app = opened(model="induction-no-norm", text="b a c d b a", flow="LayerNorm")
    assert len(panels_on(app)) == len(app.info) == 1


# ---- a journey -----------------------------------------------------------------------------------


@driver.browser_test
def test_a_reader_starts_and_stops_a_training(visitor: driver.Visitor) -> None:
    page = visitor.page
    visitor.visit("residual", ".panel .cells", text=LONGER, token=3, write="Rotation angle")
    page.get_by_text("Backwards: gradient, and an RNN").click()
    page.get_by_text("Compared with an RNN").click()
    page.get_by_role("button", name="Start training").click()
    page.locator("[data-testid=stProgress]").first.wait_for()
    # Streamlit's own header has a Stop of its own while a run is long.
    page.locator(".st-key-stop-experiment button").click()
    page.get_by_role("button", name="Go on").wait_for()
    page.locator("[data-testid=stProgress]", has_text="stopped").wait_for()
    page.get_by_role("heading", name="Compared with an RNN").wait_for()
    assert "flow=RNN" in page.url


@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_the_angle_of_an_update_is_one_thing_in_sentence_formula_arrows_and_strips(
    model: str,
) -> None:
    """These models are post-LN: with the norm behind the sum the angle is another."""
    run, at = states(model)
    panel = residual.updates(run, "Rotation angle", 3, "2.attn")
    total = at["2.attn.sum"][3]
    before = total - at["2.attn.wrote"][3]
    alone, normed = angle(before, total), angle(before, at["2.attn.normed"][3])
    assert abs(alone - normed) > 0.1
    assert f"by {alone:.1f}°" in panel.finding and f"{normed:.1f}°" not in panel.finding
    arrows, equation = panel.figures[1].figures
    assert arrows.angle == f"{alone:.1f}°"
    labels = [each.label for each in equation.strips]
    assert [each.label for each in arrows.arrows] == labels[:3] and labels[3] == "LayerNorm"
    (turn,) = [each for each in framed.payload(panel)["formulas"] if each["id"] == "turn"]
    assert any(text == f"{alone:.3g}" for _, text, _ in turn["results"])


def test_what_is_added_to_nothing_is_drawn_from_where_all_begins() -> None:
    run = Run("induction-no-residual", "b a c d b")
    arrows = residual.updates(run, "Rotation angle", 3).figures[1].figures[0]
    before, update, total = arrows.arrows
    assert before.start == update.start == total.start == (0.0, 0.0)
    assert update.end == total.end
