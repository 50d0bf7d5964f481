"""Summaries of all heads: rollout, flow, weighted values and heads' writes obey their laws; the
page, and one journey."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import driver
import numpy as np
import pytest
from bounds import DOUBLE, DOUBLE_LONG, FOUR_DECIMALS, PASSED, STORED, SUMMED, TOTAL
from conftest import HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest

from explorer.analysis import flow as flows
from explorer.analysis import sinks
from explorer.analysis import summaries as numbers
from explorer.analysis.numbers import percent, read
from explorer.components import wire
from models import library
from models.own import Handle, record
from models.readouts import parameters
from models.recording import Attention

TEXT = "the cat sat on the mat"
ROOT = Path(__file__).resolve().parent.parent


def attention_of(pattern: np.ndarray, allowed: np.ndarray | None = None) -> Attention:
    """An attention with this pattern (layer, head, query, key) within one stream."""
    layers, heads, n, _ = pattern.shape
    q, k, v = np.random.default_rng(0).normal(size=(3, layers, heads, n, 4)).astype(np.float32)
    return Attention(
        "self",
        "encoder",
        "encoder",
        np.zeros_like(pattern),
        pattern,
        np.ones((n, n), bool) if allowed is None else allowed,
        q,
        k,
        v,
    )


def random_pattern(rng: np.random.Generator, layers: int, heads: int, n: int) -> np.ndarray:
    scores = np.exp(3 * rng.normal(size=(layers, heads, n, n)))
    return (scores / scores.sum(-1, keepdims=True)).astype(np.float32)


@pytest.fixture(params=["small_handle", "small_decoder", "small_translator"])
def handle(request) -> Handle:
    return request.getfixturevalue(request.param)


# ---- laws --------------------------------------------------------------------


def test_mean_and_max_bound_every_head(handle: Handle) -> None:
    for attention in record(handle, TEXT).attention:
        np.testing.assert_allclose(numbers.mean(attention).sum(-1), 1, atol=SUMMED)
        assert (numbers.largest(attention) >= attention.pattern.max(axis=(0, 1)) - 1e-9).all()
        np.testing.assert_allclose(
            numbers.mean(attention, 1), attention.pattern[1].mean(0), atol=STORED
        )


def test_rows_of_rollout_sum_to_1_and_no_token_comes_from_a_later_one(handle: Handle) -> None:
    for attention in record(handle, TEXT).attention:
        if attention.query != attention.key:
            with pytest.raises(ValueError, match="identity"):
                flows.rollout(attention)
            continue
        for upto in (0, 1, None):
            rolled = flows.rollout(attention, upto)
            np.testing.assert_allclose(rolled.sum(-1), 1, atol=DOUBLE)
            assert (rolled >= 0).all() and not rolled[~attention.allowed].any()


def test_rollout_of_heads_that_look_at_themselves_is_the_identity() -> None:
    looks_at_itself = np.broadcast_to(np.eye(5, dtype=np.float32), (4, 3, 5, 5)).copy()
    np.testing.assert_allclose(flows.rollout(attention_of(looks_at_itself)), np.eye(5), atol=DOUBLE)


def test_rollout_by_hand() -> None:
    pattern = np.array([[[[1, 0], [0.5, 0.5]]], [[[0, 1], [1, 0]]]], np.float32)
    # layer 0: [[1, 0], [.25, .75]]; layer 1: [[.5, .5], [.5, .5]]; their product:
    np.testing.assert_allclose(
        flows.rollout(attention_of(pattern)), [[0.625, 0.375], [0.625, 0.375]], atol=STORED
    )


def cut(layers: np.ndarray, top: int, bottom: int) -> float:
    """The least capacity of any cut that parts node `top` above from node `bottom` below, by trying
    all of them."""
    depth, n = layers.shape[:2]
    between = [(level, node) for level in range(1, depth) for node in range(n)]
    least = np.inf
    for chosen in itertools.product((False, True), repeat=len(between)):
        above = {(depth, top)} | {node for node, is_above in zip(between, chosen) if is_above}
        least = min(
            least,
            sum(
                layers[level - 1, node, low]
                for level, node in above
                for low in range(n)
                if (level > 1 or low == bottom) and (level - 1, low) not in above
            ),
        )
    return least


def test_flow_is_the_least_cut() -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        layers = rng.random((3, 3, 3)) ** 3 * (rng.random((3, 3, 3)) > 0.25)
        tops, bottoms = (each.ravel() for each in np.indices((3, 3)))
        found = flows.maximum_flow(layers, tops, bottoms)
        np.testing.assert_allclose(
            found,
            [cut(layers, top, bottom) for top, bottom in zip(tops, bottoms)],
            atol=DOUBLE_LONG,
        )


def test_flow_by_hand() -> None:
    # Two layers of two tokens. From 0 above to 0 below: straight min(.9, .6), and over 1 min(.1,
    # .3).
    layers = np.array([[[0.6, 0.4], [0.3, 0.7]], [[0.9, 0.1], [0.2, 0.8]]])
    np.testing.assert_allclose(
        flows.maximum_flow(layers, np.array([0, 0, 1]), np.array([0, 1, 0])), [0.7, 0.5, 0.5]
    )


def test_flow_must_take_back_what_it_sent_the_wrong_way() -> None:
    # The first way that is found uses the one edge that the other half needs.
    layers = np.zeros((3, 4, 4))
    layers[2, 0, [0, 1]] = 1
    layers[1, 0, [0, 1]] = 1
    layers[1, 1, 0] = 1
    layers[0, [0, 1], 3] = 1
    assert flows.maximum_flow(layers, np.array([0]), np.array([3]))[0] == 2


def test_flow_is_at_least_any_one_way_and_at_most_all_that_leaves_or_arrives(
    handle: Handle,
) -> None:
    attention = record(handle, TEXT).attention[0]
    layers, n = flows.mixed(attention), attention.pattern.shape[-1]
    flow = flows.flow(attention, range(n))
    assert (flow <= 1 + 1e-9).all() and (flow <= layers[0].sum(axis=0) + 1e-9).all()
    straight = np.minimum.reduce([np.diagonal(layer) for layer in layers])
    assert (np.diagonal(flow) >= straight - 1e-9).all()
    np.testing.assert_allclose(flows.flow(attention, range(n), 0), layers[0])
    np.testing.assert_allclose(flows.flow(attention, [2]), flow[2:3], atol=DOUBLE_LONG)


def test_weighted_values_summed_over_keys_and_heads_are_what_attention_wrote(
    handle: Handle,
) -> None:
    recording, outputs = record(handle, TEXT), parameters.outputs(handle)
    for attention in recording.attention:
        w_o, b_o = outputs[attention.name]
        place = "attn" if attention.query == attention.key else "cross"
        for layer in range(len(attention.pattern)):
            by_head = np.einsum(
                "hkd,hdm->hkm", attention.v[layer].astype(float), w_o[layer].astype(float)
            )
            parts = (
                attention.pattern[layer][..., None] * by_head[:, None]
            )  # (head, query, key, d_model)
            wrote = recording.stream(attention.query).at(f"{layer}.{place}.wrote")
            np.testing.assert_allclose(parts.sum(axis=(0, 2)) + b_o[layer], wrote, atol=PASSED)
            np.testing.assert_allclose(
                numbers.norms(attention, w_o, layer, 1),
                np.linalg.norm(parts[1], axis=-1),
                atol=STORED,
            )
            np.testing.assert_allclose(
                numbers.norms(attention, w_o, layer),
                np.linalg.norm(parts.sum(axis=0), axis=-1),
                atol=STORED,
            )
        np.testing.assert_allclose(
            numbers.norms(attention, w_o),
            np.mean([numbers.norms(attention, w_o, layer) for layer in range(3)], axis=0),
        )


def test_shares_of_a_layers_heads_and_bias_sum_to_1(handle: Handle) -> None:
    recording, outputs = record(handle, TEXT), parameters.outputs(handle)
    for attention in recording.attention:
        for query in (None, 0, 2):
            found = numbers.contributions(attention, *outputs[attention.name], query)
            np.testing.assert_allclose(found.share.sum(axis=1) + found.bias, 1, atol=DOUBLE_LONG)
            assert (found.length >= 0).all()
        z = (
            attention.pattern[1, 2, 2].astype(float)
            @ attention.v[1, 2]
            @ outputs[attention.name][0][1, 2]
        )
        assert numbers.contributions(attention, *outputs[attention.name], 2).length[
            1, 2
        ] == pytest.approx(np.linalg.norm(z), rel=SUMMED)


def test_disagreements_are_the_rows_that_the_rule_says() -> None:
    pattern = np.full((1, 1, 4, 4), 0.1, np.float32)
    pattern[0, 0, :, 0] = 0.7
    attention = attention_of(pattern)
    attention.v.flags.writeable = True
    attention.v[...] = 1
    attention.v[0, 0, 0] = (
        0.01  # the token that takes most of the weight has next to nothing to say
    )
    found = numbers.disagreements(attention, np.eye(4, dtype=np.float32)[None, None])
    assert (found.rows, found.rows_in_all, len(found.found)) == (4, 4, 4)
    one = found.found[0]
    assert (
        one.key == 0
        and one.weight == pytest.approx(0.7)
        and one.share == pytest.approx(0.007 / 0.307, rel=TOTAL)
    )
    attention.v[0, 0, 0] = 1
    fair = numbers.disagreements(attention, np.eye(4, dtype=np.float32)[None, None])
    assert not fair.found and fair.nearest.share == pytest.approx(fair.nearest.weight)


def test_a_row_without_a_choice_is_no_disagreement(small_decoder: Handle) -> None:
    attention = record(small_decoder, TEXT).attention[0]
    found = numbers.disagreements(attention, parameters.outputs(small_decoder)["self"][0])
    assert found.rows_in_all == 3 * 4 * (attention.pattern.shape[2] - 1)
    assert all(one.query > 0 for one in found.found)


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    for name, value in asked.items():
        app.query_params[name] = value
    app = app.switch_page(str(ROOT / "pages" / "summaries.py")).run()
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the matrices ("panels") or the sentence ("row") were sent."""
    decoded = [
        wire.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == "headlight.matrix"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["Mean", "Max", "Rollout", "Flow", "Values"])
def test_each_picture_is_the_models(what: str) -> None:
    app = opened(text=TEXT, sum_what=what, token="3")
    header, blocks = sent(app, "panels")
    handle = read_once("encoder")
    attention = record(handle, TEXT).attention[0]
    w_o = parameters.outputs(handle)["self"][0]
    expected = {
        "Mean": lambda: attention.pattern.mean((0, 1)),
        "Max": lambda: attention.pattern.max((0, 1)),
        "Rollout": lambda: flows.rollout(attention),
        "Flow": lambda: flows.flow(attention, range(len(header["rows"]))),
        "Values": lambda: numbers.norms(attention, w_o),
    }[what]()
    np.testing.assert_allclose(blocks["v0"].reshape(expected.shape), expected, atol=SUMMED)
    row, values = sent(app, "row")
    assert row["chosen"] == 3 and row["picture"] == header["token"]
    np.testing.assert_allclose(values["v0"], expected[3], atol=SUMMED)
    about = " ".join(header["caption"])
    assert TEXT in about and "model encoder" in about and "edits: none" in about


@pytest.mark.slow
def test_choosing_a_row_sends_none_of_the_matrix_again() -> None:
    app = opened(text=TEXT)
    before = sent(app, "panels")[0]["token"]
    app.session_state["token"] = "4"
    app.run()
    assert sent(app, "panels")[0]["token"] == before and sent(app, "row")[0]["chosen"] == 4
    assert app.query_params["token"] in ("4", ["4"])


@pytest.mark.slow
def test_all_summaries_open_at_one_row_and_call_the_layers_the_same() -> None:
    """The browser goes on showing the words that were chosen, so they may not change their
    meaning."""
    seen = {
        what: opened(text=TEXT, sum_what=what)
        for what in ("Mean", "Max", "Rollout", "Flow", "Values")
    }
    assert len({sent(app, "row")[0]["chosen"] for app in seen.values()}) == 1
    assert len({tuple(app.selectbox(key="sum_layer").options) for app in seen.values()}) == 1


@pytest.mark.slow
def test_a_disagreement_opens_its_head_at_its_row() -> None:
    app = opened()
    handle = read_once("encoder")
    attention = record(handle, app.session_state["text"]).attention[0]
    worst = numbers.disagreements(attention, parameters.outputs(handle)["self"][0]).found
    if not worst:
        pytest.skip("these weights agree with their values everywhere on this text")
    app.button(key="gap 0").click().run()
    header, blocks = sent(app, "panels")
    one = worst[0]
    assert f"L{one.layer}H{one.head}" in told(app) + " ".join(each.label for each in app.button)
    assert [one.query, one.key] in header["marks"] and sent(app, "row")[0]["chosen"] == one.query
    weight = blocks["v1"].reshape(attention.pattern.shape[2:])[one.query, one.key]
    assert header["panels"][1]["title"] == "weight" and weight == pytest.approx(
        one.weight, abs=STORED
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["Rollout", "Flow"])
def test_what_is_not_defined_between_two_texts_is_said(what: str) -> None:
    app = opened(model="translator", attention="cross", text=TEXT, sum_what=what)
    assert "not defined through cross-attention" in told(app)
    assert "not defined" not in told(
        opened(model="translator", attention="decoder self", text=TEXT, sum_what=what)
    )


@pytest.mark.slow
@pytest.mark.parametrize("what", ["Mean", "Values"])
def test_quiet_sinks_are_left_out_of_a_sum_and_their_share_is_said(what: str) -> None:
    app = opened(text=TEXT, sum_what=what, att_keep="Quiet", token="0")
    header, blocks = sent(app, "panels")
    handle = read_once("encoder")
    recording = record(handle, TEXT)
    attention = recording.attention[0]
    whole = numbers.mean(attention)
    if what == "Values":
        whole = numbers.norms(attention, parameters.outputs(handle)["self"][0])
    gone = sinks.crowded(recording, attention)
    left = np.flatnonzero(~gone)
    assert gone[0] and list(left) == header["places"][0] == header["places"][1]
    expected = whole[np.ix_(left, left)]
    np.testing.assert_allclose(blocks["v0"].reshape(expected.shape), expected, atol=SUMMED)
    share = (whole[left][:, gone].sum(axis=1) / whole[left].sum(axis=1)).mean()
    said = " ".join(each.value for each in app.caption)
    assert f"On average {percent(share)} of a row goes there" in said
    assert percent(share) in " ".join(header["caption"])
    row, values = sent(app, "row")  # the token that was asked for is quiet, so another one is read
    np.testing.assert_allclose(values["v0"], expected[row["chosen"]], atol=SUMMED)


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_summed_up(text: str) -> None:
    for asked in ({}, {"sum_what": "Flow"}, {"sum_what": "Writes", "sum_measure": "Share"}):
        app = opened(text=text, **asked)
        assert on_page(app) or any("not computed" in each.value for each in app.info)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"sum_what": "?", "sum_layer": "99", "sum_head": "-1", "token": "x"},
        {"sum_what": "Values", "sum_layer": "9" * 999},
        {"sum_measure": "<b>", "sum_what": "Writes"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    header, _ = sent(opened(text=TEXT, **asked), "panels")
    assert header["rows"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["Mean", "Writes"])
def test_behind_every_picture_is_a_table(what: str) -> None:
    app = opened(text=TEXT, sum_what=what)
    assert not len(app.dataframe)
    box = next(each for each in app.expander if "-table " in each.proto.id)
    app.session_state["table " + box.proto.id.split("-table ", 1)[1]] = True
    app.run()
    frame = app.dataframe[0].value
    header, blocks = sent(app, "panels")
    np.testing.assert_allclose(frame.iloc[:, 1:].to_numpy().ravel(), blocks["v0"], atol=STORED)


@pytest.mark.slow
def test_files_hold_the_picture(small_handle: Handle) -> None:
    attention = record(small_handle, TEXT).attention[0]
    values = flows.rollout(attention)
    with np.load(
        io.BytesIO(numbers.to_npz(values, ["a\0"] * 2, ["b"], ["about"])), allow_pickle=False
    ) as file:
        np.testing.assert_array_equal(file["values"], values)
        assert list(file["keys"]) == ["b"]


# ---- a journey ---------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(driver.CHROMIUM is None, reason="no chromium on this machine")
def test_from_the_mean_to_the_head_that_misleads(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/summaries")
    page.wait_for_selector(".matrices[data-token]")
    page.locator(".matrices .token").nth(5).click()
    page.wait_for_url("**token=5**")
    page.wait_for_selector(".matrices[data-row='5']")
    mean = (
        library.record(read_once("encoder"), page.locator("textarea").first.input_value())
        .attention[0]
        .pattern.mean((0, 1))
    )
    page.locator(".matrices .scroll").focus()
    for key in (
        "ArrowDown",
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
    ):  # the first one comes to the row that is held
        page.keyboard.press(key)
    said = page.locator(".matrices .value").first.locator("strong").inner_text()
    assert read(said) == pytest.approx(float(mean[6, 2]), abs=FOUR_DECIMALS)
    page.get_by_role("radio", name="Rollout").click()
    page.wait_for_url("**sum_what=Rollout**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    drawn = visitor.export("Picture as SVG").read_text("utf-8")
    assert "Rollout, up to the last layer" in drawn and "model encoder" in drawn
    page.get_by_role("radio", name="Max").click()
    page.wait_for_url("**sum_what=Max**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert page.get_by_role("combobox", name="Layer").input_value() == "All layers"
