"""The page of summaries of all heads: its pictures are the model's, and one journey."""

from __future__ import annotations

import io

import driver
import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once
from streamlit.testing.v1 import AppTest
from tolerances import FOUR_DECIMALS, STORED, SUMMED

from explorer.analysis import head_naming, summaries
from explorer.analysis.formatting import parse_number, percent
from explorer.components import codec
from models.own_model import OwnModel, record
from models.readouts import weights

TEXT = "the cat sat on the mat"


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = page_at("summaries", **asked)
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the matrices ("panels") or the sentence ("row") were sent."""
    decoded = [
        codec.decode(e.proto.bytes)
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
    w_o = weights.outputs(handle)["self"][0]
    expected = {
        "Mean": lambda: attention.pattern.mean((0, 1)),
        "Max": lambda: attention.pattern.max((0, 1)),
        "Rollout": lambda: summaries.rollout(attention),
        "Flow": lambda: summaries.flow(attention, range(len(header["rows"]))),
        "Values": lambda: summaries.norms(attention, w_o),
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
    worst = summaries.disagreements(attention, weights.outputs(handle)["self"][0]).found
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
    whole = summaries.mean(attention)
    if what == "Values":
        whole = summaries.norms(attention, weights.outputs(handle)["self"][0])
    gone = head_naming.shared_sinks(recording, attention)
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
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
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
def test_files_hold_the_picture(small_handle: OwnModel) -> None:
    attention = record(small_handle, TEXT).attention[0]
    values = summaries.rollout(attention)
    with np.load(
        io.BytesIO(summaries.to_npz(values, ["a\0"] * 2, ["b"], ["about"])), allow_pickle=False
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
        read_once("encoder")
        .record(page.locator("textarea").first.input_value())
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
    assert parse_number(said) == pytest.approx(float(mean[6, 2]), abs=FOUR_DECIMALS)
    page.get_by_role("radio", name="Rollout").click()
    page.wait_for_url("**sum_what=Rollout**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    drawn = visitor.export("Picture as SVG").read_text("utf-8")
    assert "Rollout, up to the last layer" in drawn and "model encoder" in drawn
    page.get_by_role("radio", name="Max").click()
    page.wait_for_url("**sum_what=Max**")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    assert page.get_by_role("combobox", name="Layer").input_value() == "All layers"
