"""The page of comparison: any two texts, every view, and one journey."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import numpy as np
import pytest
from app_harness import page_at
from compare_fixtures import recorded, sides
from conftest import AWKWARD, HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest
from tolerances import STORED, SUMMED

from explorer.analysis import comparison
from explorer.analysis.formatting import tenths
from explorer.components import codec
from models import registry
from models.edits import HideToken, WithoutPositions

# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("compare", **asked)


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, app.exception or app.error
    return app


def sent(app: AppTest, component: str, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    decoded = [
        codec.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == f"headlight.{component}"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_compared(text: str) -> None:
    app = clean(opened(text=text))
    header, blocks = sent(app, "compare", "grids")
    found = sides(recorded("encoder", text), recorded("encoder", text, (WithoutPositions(),)))
    np.testing.assert_allclose(
        blocks["distance"], comparison.same_place_distances(found).ravel(), atol=SUMMED
    )
    assert header["rows"] == list(found.rows.labels)
    clean(opened(text=text, other_what="Model", other_model="decoder", other_view="Vectors"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "other", [HOSTILE["bold"], HOSTILE["right to left"], HOSTILE["latex"], HOSTILE["emoji"]]
)
def test_any_second_text_is_compared_or_refused_in_words(other: str) -> None:
    app = clean(
        opened(text="b the cat", other_what="Sentence", other_text=other, other_view="Nearest")
    )
    if not app.info:
        sent(app, "matrix", "panels")
    clean(opened(text="x", other_what="Sentence", other_text=other, other_view="Vectors"))


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Heads", "Nearest", "Vectors"])
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "decoder", "other_what": "Model", "other_model": "translator"},
        {
            "model": "translator",
            "other_edits": "WithoutScale",
            "other_of": "cross",
            "text": "The cat sleeps.",
        },
        {"model": "induction", "other_what": "Model", "text": "a b c a b"},
    ],
    ids=["two shapes", "cross", "checkpoint"],
)
def test_every_view_opens(view: str, asked: dict[str, str]) -> None:
    app = clean(opened(other_view=view, **asked))
    if view == "Vectors":
        assert len(app.get("plotly_chart")) == 3
        assert all(
            "Headlight" in json.loads(chart.proto.spec)["layout"]["title"]["subtitle"]["text"]
            for chart in app.get("plotly_chart")
        )
    else:
        sent(app, "compare", "pair")


@pytest.mark.slow
@pytest.mark.skipif(
    registry.MINILM not in registry.names(), reason="the package with MiniLM is not installed"
)
def test_a_pretrained_model_in_its_own_code_and_in_ours_do_the_same() -> None:
    app = clean(
        opened(
            model="minilm",
            text="Ram pushed Hari",
            other_what="Model",
            other_model=f"{registry.HUB_PREFIX}{registry.MINILM}",
        )
    )
    assert sent(app, "compare", "grids")[1]["distance"].max() < 0.01
    clean(
        opened(
            model="minilm",
            other_what="Model",
            other_model=f"{registry.HUB_PREFIX}{registry.MINILM}",
            other_view="Vectors",
        )
    )


@pytest.mark.slow
def test_the_sentence_on_top_and_a_link_s_pair_are_what_was_measured() -> None:
    app = clean(opened(text="Ram pushed Hari", other_pair="1.3"))
    found = sides(
        recorded("encoder", "Ram pushed Hari"),
        recorded("encoder", "Ram pushed Hari", (WithoutPositions(),)),
    )
    paired = comparison.same_place_distances(found)
    most = comparison.most_changed(paired)[0]
    assert any(f"{comparison.name(most)} differs most" in told.value for told in app.subheader)
    assert any(
        f"of {comparison.name(most)} is {paired[most]:.2f}" in told.value for told in app.caption
    )
    pair, _ = sent(app, "compare", "pair")
    assert pair["a"] == pair["b"] == [1, 3] and f"{paired[1, 3]:.2f}" in pair["title"]
    header, blocks = sent(app, "matrix", "panels")
    n = len(header["columns"])
    np.testing.assert_allclose(
        blocks["v2"].reshape(-1, n),
        found.heads((1, 3), (1, 3))[1] - found.heads((1, 3), (1, 3))[0],
        atol=STORED,
    )
    assert (
        "no positions" in " ".join(header["caption"])
        and header["panels"][2]["low"] == -header["panels"][2]["high"]
    )


@pytest.mark.slow
def test_choosing_a_head_sends_no_grid_again_and_swapping_turns_signs() -> None:
    app = clean(opened(text="Ram pushed Hari", other_pair="1.3"))

    def grids() -> bytes:
        return next(
            e.proto.bytes
            for e in on_page(app)
            if e.proto.component_name == "headlight.compare"
            and codec.decode(e.proto.bytes)[0]["kind"] == "grids"
        )

    before, matrices = grids(), sent(app, "matrix", "panels")[1]["v2"]
    app.session_state["other_pair"] = "2.5"
    clean(app.run())
    assert grids() == before and sent(app, "compare", "pair")[0]["a"] == [2, 5]
    app.session_state["other_pair"], app.session_state["other_swap"] = "1.3", "1"
    clean(app.run())
    np.testing.assert_allclose(sent(app, "matrix", "panels")[1]["v2"], -matrices, atol=STORED)


@pytest.mark.slow
def test_a_link_with_nonsense_is_refused_and_an_edit_that_cannot_be_is_told() -> None:
    clean(
        opened(
            other_what="<b>",
            other_pair="99.99.1",
            other_view="?",
            other_model="no",
            other_of="x",
            other_to="y",
            other_word="-1",
            other_swap="2",
        )
    )
    app = opened(other_edits="NoSuchEdit:1")
    assert not app.exception and any("NoSuchEdit" in each.value for each in app.error)
    app = clean(opened(other_edits="NoSuchEdit:1, ZeroHead:77:0:self, WithoutScale"))
    (told,) = app.warning
    assert (
        "NoSuchEdit" in told.value
        and "77" in told.value
        and any("differs most" in each.value for each in app.subheader)
    )
    app = opened(other_edits="ZeroHead:77:0:self")
    assert not app.exception and app.error


@pytest.mark.slow
def test_a_head_of_b_is_chosen_from_a_list_and_its_own_attention_is_shown() -> None:
    app = opened(model="translator", text="The cat sleeps.")
    app.selectbox(key="head of B").set_value((0, 1, "cross")).run()
    assert (
        clean(app).session_state["other_edits"] == "ZeroHead:0:1:cross"
        and app.session_state["other_to"] == "cross"
    )
    app.segmented_control(key="done to it").set_value("uniform").run()
    assert clean(app).session_state["other_edits"] == "UniformHead:0:1:cross"
    assert any("L0 H1 differs most" in each.value for each in app.subheader)
    app.pills(key="comparison").set_value("No FFN").run()
    assert clean(app).selectbox(key="head of B").value is None
    app.selectbox(key="head of B").set_value((2, 0, "decoder self")).run()
    assert any("does not change its own attention" in each.value for each in clean(app).caption), (
        "of the last layer: nothing above it"
    )
    app.selectbox(key="head of B").set_value(None).run()
    assert clean(app).pills(key="comparison").value == "No positions"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "translator", "induction"])
def test_every_example_opens(model: str) -> None:
    app = clean(opened(model=model))
    for name in app.pills(key="comparison").options:
        clean(app.pills(key="comparison").set_value(name).run())
        assert (
            any("differ" in told.value or "no similar head" in told.value for told in app.subheader)
            or app.info
        ), name


@pytest.mark.slow
def test_both_models_answer_one_prompt_and_one_without_words_says_so() -> None:
    text = "The cat sat on the mat."
    app = clean(opened(text=text, other_what="Model", other_model="decoder", other_view="Answers"))
    encoder, decoder = read_once("encoder"), read_once("decoder")
    place = list(recorded("encoder", text).streams[0].tokens).index("mat")
    there = list(recorded("decoder", text).streams[0].tokens).index("mat")
    logits = (
        encoder.logits(recorded("encoder", text, (HideToken(place),)), "encoder", place),
        # What the decoder says in the same place comes after the word before it.
        decoder.logits(recorded("decoder", text), "decoder", there - 1),
    )
    shown = [
        codec.decode(e.proto.bytes)[0]
        for e in on_page(app)
        if e.proto.component_name == "headlight.bars"
    ]
    said = " ".join(each.value for each in app.markdown)
    for header, scores, handle in zip(shown, logits, (encoder, decoder)):
        p = np.exp(scores - scores.max(), dtype=np.float64)
        p /= p.sum()
        best = np.argsort(-p)[:10]
        np.testing.assert_allclose([row["value"] for row in header["rows"]], p[best], rtol=SUMMED)
        assert header["rows"][0]["label"] == handle.labels([int(best[0])])[0]
        assert tenths(p[best[0]]) in said
    assert "masked “mat”" in said and "after “the”" in said
    if "minilm" in registry.names():
        app = clean(opened(text=text, other_what="Model", other_model="minilm"))
        says = "minilm has no readout over the vocabulary, so it makes no prediction"
        assert says in " ".join(each.value.lower() for each in app.markdown)


# ---- a journey ---------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


@browser_test
def test_a_reader_opens_heads_by_mouse_and_keys_and_finds_the_nearest(
    visitor: driver.Visitor,
) -> None:
    page = visitor.page
    page.goto(
        f"{visitor.server}/compare?{urlencode({'text': 'Ram pushed Hari', 'other_pair': '0.0'})}"
    )
    page.wait_for_selector("canvas[data-painted]")
    page.get_by_role("heading", name="L0 H0 of both sides").wait_for()
    cells = page.locator(".board").nth(1).locator(".cell")
    cells.nth(10).click()
    page.wait_for_url("**other_pair=1.2**")
    page.get_by_role("heading", name="L1 H2 of both sides").wait_for()
    assert page.locator(".cell[aria-pressed=true]").count() == 3
    cells.nth(10).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**other_pair=2.2**")
    page.get_by_role("radio", name="Nearest heads").click()
    page.get_by_role("heading", name="A’s L2 H2 beside B’s").or_(
        page.get_by_role("heading", name="L2 H2 of both sides")
    ).wait_for()
    assert parse_qs(urlparse(page.url).query)["other_pair"] == ["2.2"]


@pytest.mark.slow
def test_swapped_sides_keep_their_names_and_the_chosen_head_comes_along() -> None:
    app = opened(other_what="Sentence", other_text="the dog sat", layer="1", head="2")
    assert app.session_state["pair shown"].split(".")[:2] == ["1", "2"]
    assert app.text_input(key="other_text").label == "Text of B"
    next(each for each in app.button if each.label == "Swap A and B").click().run()
    assert not app.exception and app.text_input(key="other_text").label == "Text of A"
    assert app.text_input(key="other_text").value == "the dog sat"
