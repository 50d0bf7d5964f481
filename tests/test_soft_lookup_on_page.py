"""Attention as a lookup, as messages and as one of three constructions: the page, and one
journey."""

from __future__ import annotations

import driver
import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once
from streamlit.testing.v1 import AppTest
from tolerances import STORED, SUMMED, THREE_DECIMALS

from explorer.analysis import findings, soft_lookup
from explorer.analysis.formatting import parse_number
from explorer.components import codec
from explorer.figures.soft_lookup import histogram
from models.example_texts import DEFAULT_TEXT
from models.own_model import record

TEXT = "the cat sat on the mat"


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = page_at("lookup", **asked)
    assert not app.exception and not app.error
    return app


def sent(
    app: AppTest, component: str, kind: str | None = None
) -> tuple[dict, dict[str, np.ndarray]]:
    """What a component was sent."""
    decoded = [
        codec.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == f"headlight.{component}"
    ]
    return next(each for each in decoded if kind in (None, each[0].get("kind")))


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info))


@pytest.mark.slow
def test_the_browser_gets_the_models_scores_and_values() -> None:
    app = opened(text=TEXT, layer="1", head="2", token="3", look_temperature="0.5")
    header, blocks = sent(app, "lookup")
    attention = record(read_once("encoder"), TEXT).attention[0]
    np.testing.assert_array_equal(blocks["scores"], attention.scores[1, 2, 3])
    np.testing.assert_array_equal(blocks["values"], attention.v[1, 2].ravel())
    assert header["temperature"] == 0.5 and header["label"] == header["keys"][3]
    assert "model encoder" in " ".join(header["caption"]) and TEXT in " ".join(header["caption"])
    middle = sent(app, "matrix")[1]["v0"]
    np.testing.assert_allclose(
        middle,
        np.nanmedian(soft_lookup.relative_distances(attention), axis=-1).ravel(),
        atol=STORED,
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_the_page_opens_where_soft_and_hard_differ(model: str) -> None:
    app = opened(model=model)
    text = app.session_state["text"]
    recorded = read_once(model).record(text).attention
    shown = app.session_state["attention"] or recorded[0].name  # the first page may have chosen it
    attention = next(each for each in recorded if each.name == shown)
    at = tuple(
        app.selectbox(key=each).value for each in ("layer shown", "head shown", "lookup query")
    )
    np.testing.assert_array_equal(sent(app, "lookup")[1]["scores"], attention.scores[at])
    assert (
        soft_lookup.lookup(attention, *at).relative > soft_lookup.LOOKUP_TOLERANCE
        and attention.pattern[at].max() < 0.9
    )


def test_a_histogram_away_from_its_page_tells_text_and_target() -> None:
    about = (
        "Lookups",
        (
            "Headlight · model translator (3,657,728 parameters, weights 667c28be548d) · encoder "
            "self-attention · edits: none"
        ),
        "Target: Bonjour",
        "Text: Hello <b> " + "word " * 90,
    )
    drawn = histogram(np.array([0.1, 0.4, np.nan]), 0.4, soft_lookup.LOOKUP_TOLERANCE, about)
    said = drawn.layout.title.subtitle.text
    assert (
        "edits: none" in said.replace("<br>", " ")
        and "Target: Bonjour" in said
        and "Text: Hello &lt;b&gt;" in said
        and said.endswith("…")
    )


@pytest.mark.slow
def test_the_graph_is_the_heads_and_choosing_a_token_sends_none_of_it_again() -> None:
    app = opened(
        text=TEXT, layer="1", head="2", look_at="Graph", look_rule="1", look_layout="Circle"
    )
    header, blocks = sent(app, "graph")
    attention = record(read_once("encoder"), TEXT).attention[0]
    for query, key, weight in zip(blocks["queries"], blocks["keys"], blocks["weights"]):
        assert weight == attention.pattern[1, 2, query, key] >= 1 / attention.allowed[query].sum()
    assert header["layout"] == "circle"
    app.session_state["token"] = "4"
    app.run()
    assert sent(app, "graph")[0]["token"] == header["token"]
    row, values = sent(app, "matrix", "row")
    assert row["chosen"] == 4 and row["picture"] == header["token"]
    np.testing.assert_array_equal(values["v0"], attention.pattern[1, 2, 4])
    assert "Σ messages = z" in told(app)
    # Where nothing is chosen: the word and the head that the first page opens on.
    app = opened(look_at="Graph")
    first = findings.select_findings(findings.findings(record(read_once("encoder"), DEFAULT_TEXT)))[
        0
    ]
    row, values = sent(app, "matrix", "row")
    seen = record(read_once("encoder"), DEFAULT_TEXT).attention[0].pattern[first.at]
    assert row["chosen"] == first.query
    np.testing.assert_array_equal(values["v0"], seen[first.query])


@pytest.mark.slow
@pytest.mark.parametrize("before", ["Scores", "Weights"])
def test_three_constructions_are_of_this_texts_vectors(before: str) -> None:
    app = opened(
        text=TEXT, model="decoder", layer="1", head="2", look_at="Three", look_before=before
    )
    header, blocks = sent(app, "matrix", "panels")
    recording = record(read_once("decoder"), TEXT)
    made = soft_lookup.scoring_variants(
        soft_lookup.attention_input(recording, recording.attention[0], 1),
        recording.attention[0],
        1,
        2,
    )
    for at, one in enumerate(made):
        shown = blocks[f"v{at}"].reshape(one.scores.shape)
        expected = (
            one.scores
            if before == "Scores"
            else np.where(recording.attention[0].allowed, one.weights, np.nan)
        )
        np.testing.assert_allclose(shown, expected, rtol=SUMMED, atol=STORED)
        assert f"Asymmetry of the scores: {one.asymmetry:.2f}" in header["panels"][at]["under"]
    assert [panel["title"].split(":")[0] for panel in header["panels"]] == [
        "Naive",
        "Symmetric",
        "Asymmetric",
    ]


@pytest.mark.slow
def test_between_two_texts_symmetry_has_no_meaning() -> None:
    asked = {"model": "translator", "attention": "cross", "text": TEXT}
    assert "Symmetry has no meaning here" in told(opened(look_at="Three", **asked))
    header, _ = sent(opened(look_at="Graph", **asked), "graph")
    assert header["sources"] and header["labels"][0].startswith("→ ")


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_looked_up(text: str) -> None:
    for asked in ({}, {"look_at": "Graph"}, {"look_at": "Three"}, {"model": "decoder"}):
        assert on_page(opened(text=text, **asked))


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"layer": "99", "head": "x", "token": "-1"},
        {"look_temperature": "nan"},
        {"look_temperature": "-3", "look_at": "?"},
        {"look_at": "Graph", "look_rule": "<b>", "look_layout": "9" * 999, "look_heads": ""},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = opened(text=TEXT, **asked)
    assert on_page(app) and set(app.query_params) <= {"text", "look_at"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "tables"),
    [
        ({}, 2),
        ({"look_at": "Graph"}, 1),
        ({"look_at": "Three"}, 1),
    ],
)
def test_behind_every_picture_is_a_table(asked: dict[str, str], tables: int) -> None:
    app = opened(text=TEXT, **asked)
    before = len(app.dataframe)
    closed = [
        "table " + each.proto.id.split("-table ", 1)[1]
        for each in app.expander
        if "-table " in each.proto.id
    ]
    assert len(closed) == tables
    for key in closed:
        app.session_state[key] = True
    app.run()
    assert not app.exception and len(app.dataframe) == before + tables


# ---- a journey ---------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(driver.CHROMIUM is None, reason="no chromium on this machine")
def test_from_soft_to_hard_to_messages(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/lookup?layer=3&head=5&token=9")
    page.wait_for_selector(".lookup[data-temperature='1']")
    attention = (
        read_once("encoder").record(page.locator("textarea").first.input_value()).attention[0]
    )

    def shown() -> tuple[list[float], float]:
        return [
            parse_number(each) for each in page.locator(".lookup .number").all_inner_texts()
        ], parse_number(page.locator(".lookup .figures strong").first.inner_text())

    weights, distance = shown()
    np.testing.assert_allclose(weights, attention.pattern[3, 5, 9], atol=THREE_DECIMALS)
    assert distance == pytest.approx(
        soft_lookup.lookup(attention, 3, 5, 9).distance, abs=THREE_DECIMALS
    )
    page.get_by_role("slider", name="Temperature").focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    warm = float(page.locator(".lookup").get_attribute("data-temperature"))
    assert warm > 1 and shown()[1] == pytest.approx(
        soft_lookup.lookup(attention, 3, 5, 9, warm).distance, abs=THREE_DECIMALS
    )
    page.get_by_role("button", name="Hard lookup").click()
    assert shown()[1] == 0 and max(shown()[0]) == 1
    page.wait_for_url("**look_temperature=0**")
    page.get_by_role("radio", name="Messages").click()
    page.wait_for_selector(".graph[data-token]")
    page.locator(".graph .node").nth(9).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**token=10**")
    page.wait_for_selector(".graph[data-row='10']")
    drawn = visitor.export("Picture as SVG").read_text("utf-8")
    assert "Attention as a graph, layer 3, head 5" in drawn and "model encoder" in drawn
