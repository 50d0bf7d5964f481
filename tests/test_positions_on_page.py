"""The page of positions: every screen of every model, order, and one journey."""

from __future__ import annotations

import base64
import json
from urllib.parse import urlencode

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, read_once
from driver import MARKS, Visitor
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import positions
from explorer.state import cache
from models.edits import WithoutPositions
from models.own_model import OwnModel

SCREENS = ("Waves", "Distance", "Shift", "Sentence", "Order", "Adding")


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return clean(page_at("positions", **asked))


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def plots(app: AppTest) -> list[dict]:
    return [json.loads(each.proto.spec) for each in app.get("plotly_chart")]


def array(told: dict | list) -> np.ndarray:
    if isinstance(told, list):
        return np.array(told, dtype=float)
    found = np.frombuffer(base64.b64decode(told["bdata"]), dtype=np.dtype(told["dtype"]))
    return (
        found.reshape([int(side) for side in str(told["shape"]).split(",")])
        if "shape" in told
        else found
    )


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info, *app.warning, *app.caption))


def turned_to(app: AppTest, screen: str) -> AppTest:
    return clean(app.segmented_control(key="ask").set_value(screen).run())


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_shown_or_it_says_why_not(text: str) -> None:
    app = opened(text=text, ask="Sentence")
    stream = read_once("encoder").record(text).streams[0]
    np.testing.assert_allclose(
        array(plots(app)[0]["data"][0]["y"]),
        np.linalg.norm(stream.at("embed"), axis=1),
        rtol=SUMMED,
    )
    written = json.dumps([plot["layout"] for plot in plots(app)])
    turned_to(app, "Order")
    if stream.special.all():
        assert "no words yet" in told(app)
    else:
        assert len(plots(app)) == 3 and (
            "same as this one" in told(app) or "permutation-equivariant" in told(app)
        )
    assert not any(
        tag in written + json.dumps([plot["layout"] for plot in plots(app)])
        for tag in ("<b>", "<script", "<img", "<span")
    )


@pytest.mark.slow
@pytest.mark.parametrize("model", ("encoder", "decoder", "translator"))
def test_every_screen_of_every_model(model: str) -> None:
    app = opened(
        model=model, text="Ram pushed Hari", stream="decoder" if model == "translator" else ""
    )
    for screen in SCREENS:
        turned_to(app, screen)
        captions = " ".join(plot["layout"]["title"]["subtitle"]["text"] for plot in plots(app))
        assert captions and app.dataframe, "a picture says what it is, and a table stands behind it"
        if screen in ("Sentence", "Order"):
            assert f"model {model}" in captions and "Ram pushed Hari" in captions
        if screen == "Order":
            assert ("causal mask" in told(app)) == (model == "decoder") and (
                "decoder cannot tell" in told(app)
            ) == (model == "translator")


@pytest.mark.slow
def test_a_learned_table_is_shown_as_it_is_and_no_law_is_claimed_for_it() -> None:
    app = opened(model="minilm", text="Apples fall.", ask="Waves")
    table = read_once("minilm").model.embedding.position.detach().numpy()
    np.testing.assert_allclose(array(plots(app)[0]["data"][0]["z"]), table[:64], rtol=STORED)
    np.testing.assert_allclose(
        array(plots(app)[1]["data"][0]["y"]), np.linalg.norm(table[:64], axis=1), rtol=SUMMED
    )
    assert (
        "wavelengths do not apply" in told(app)
        and "√(d/2)" in told(app)
        and "10000^" not in told(app)
    )
    turned_to(app, "Distance")
    shown = plots(app)[0]["data"]
    products = table[1:64].astype(float) @ table[1:64].T.astype(float)
    assert array(shown[2]["y"])[1] == pytest.approx(np.diagonal(products, 1).mean(), rel=SUMMED)
    assert (
        "no law of distance" in told(app)
        and "Position 0 is left out" in told(app)
        and plots(app)[1]["data"][0]["x0"] == 1
    )
    assert "rotation law does not apply to minilm" in told(turned_to(app, "Shift"))
    turned_to(app, "Sentence")
    assert (
        "with no factor √d" in told(app)
        and "LayerNorm then follows" in told(app)
        and "stands a LayerNorm" in told(app)
    )
    assert "permutation-equivariant" in told(turned_to(app, "Order"))
    assert "of 384 directions hold" in told(turned_to(app, "Adding")) and "was learned" in told(app)


@pytest.mark.slow
def test_a_model_without_positions_has_none_and_says_so() -> None:
    app = opened(model="reverse-no-positions", text="b a c d", ask="Waves")
    for screen in SCREENS:
        turned_to(app, screen)
        assert "adds nothing for positions" in told(app)
    turned_to(app, "Order")
    assert app.metric[0].value == app.metric[1].value
    table = next(each for each in app.segmented_control if each.label == "Table")
    clean(table.set_value("Sites").run())
    assert {"site"} < set(app.dataframe[-1].value.columns)


@pytest.mark.slow
def test_every_screen_of_a_small_gpt2(gpt2_on_pages: OwnModel) -> None:
    app = opened(model="grammar", text="the cat sat on the mat", ask="Waves")
    np.testing.assert_allclose(
        array(plots(app)[0]["data"][0]["z"]),
        gpt2_on_pages.model.embedding.position.detach().numpy(),
        rtol=STORED,
    )
    for screen in SCREENS:
        turned_to(app, screen)
    assert "reads it through a LayerNorm" in told(turned_to(app, "Sentence"))


@pytest.mark.slow
def test_another_order_that_is_cut_says_so_and_the_first_one_offered_is_of_what_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Room for four long recordings beside whatever other tests have left on the shelf.
    monkeypatch.setattr(cache._cache, "limit", 2**30)
    app = opened(text="all work and no play " * 300, ask="Order", order="Retype")
    read = positions.read_part(read_once("encoder").record("all work and no play " * 300))
    assert 400 < len(read.split()) < 513
    assert any(text.split() == read.split()[::-1] for text in offered_orders())
    app.text_input(key="retyped").set_value("play " * 900).run()
    assert any(
        "The other order is 90" in each.value and "encoder reads 512" in each.value
        for each in clean(app).warning
    )


def offered_orders() -> list[str]:
    """The texts that were recorded of late."""
    return [key[3] for key in cache._cache.held if key[0] == "recording"]


@pytest.mark.slow
def test_the_numbers_of_the_experiment_are_the_models() -> None:
    app = opened(text="Ram pushed Hari", ask="Order", order="Retype")
    handle, bare = read_once("encoder"), (WithoutPositions(),)
    (one, two), (one_bare, two_bare) = (
        [handle.record(text, edits).streams[0] for text in ("Ram pushed Hari", "Hari pushed Ram")]
        for edits in ((), bare)
    )
    order = [two.tokens.index(token) for token in one.tokens]
    last = one.sites[-1]
    gaps = [
        np.abs(a.at(last) - b.at(last)[order]).max() for a, b in ((one, two), (one_bare, two_bare))
    ]
    traces = plots(app)[0]["data"]
    assert array(traces[0]["y"])[-1] == pytest.approx(gaps[0], rel=STORED) and array(
        traces[1]["y"]
    )[-1] == pytest.approx(gaps[1], rel=STORED)
    assert gaps[1] < PASSED < gaps[0] and "permutation-equivariant" in told(app)
    assert app.metric[0].value.split()[0] in "567" and app.metric[1].value in (
        "no digit",
        "1 digit",
    )
    assert "Herbivores" in told(
        opened(
            text="Herbivores eat plants",
            ask="Order",
            order="Retype",
            retyped="Plants eat herbivores",
        )
    )


@pytest.mark.slow
def test_a_slider_runs_no_forward_pass_and_stands_in_the_address() -> None:
    app = opened(ask="Shift", width="64", places="32", pair="9")
    before = {key for key in cache._cache.held if key[0] == "recording"}
    for key, value in (
        ("pair slider", 31),
        ("shift slider", 7),
        ("width slider", 128),
        ("places slider", 512),
    ):
        clean(app.slider(key=key).set_value(value).run())
    assert {key for key in cache._cache.held if key[0] == "recording"} == before
    asked = {
        name: value[0] if isinstance(value, list) else value
        for name, value in app.query_params.items()
    }
    assert asked == {"ask": "Shift", "width": "128", "places": "512", "pair": "31", "shift": "7"}
    assert plots(opened(**asked)) == plots(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"width": "7", "places": "1", "pair": "9999"},
        {"width": "4000", "places": "<b>"},
        {"ask": "?", "order": "x"},
        {"ask": "Order", "shuffle": "-1", "layer": "99", "head": "2"},
        {"width": "2", "places": "2", "ask": "Shift", "shift": "300"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    assert plots(opened(**asked))


@pytest.mark.slow
@pytest.mark.parametrize(("width", "places"), [("1024", "512"), ("2", "2")])
def test_the_largest_and_the_smallest_table(width: str, places: str) -> None:
    app = opened(width=width, places=places)
    for screen in ("Waves", "Distance", "Shift"):
        assert plots(turned_to(app, screen))


@pytest.mark.slow
def test_another_text_forgets_the_order_typed_for_the_last() -> None:
    app = opened(text="Ram pushed Hari", ask="Order", order="Retype", retyped="Hari Ram pushed")
    app.session_state["examples"] = True
    app.run().pills(key="preset").set_value("Pizza").run()
    assert "pizza \\. eat" in told(clean(app)) and app.text_input(key="retyped").value == ""


# ---- a journey ---------------------------------------------------------------


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def browser(test):
    for mark in MARKS:
        test = mark(test)
    return test


@browser
def test_from_a_sentence_to_the_experiment_by_keyboard_and_link(visitor: Visitor) -> None:
    page = visitor.page
    page.goto(
        f"{visitor.server}/positions?{urlencode({'text': 'Ram pushed Hari'})}", wait_until="commit"
    )
    page.locator(".js-plotly-plot .hm, .js-plotly-plot .heatmaplayer image").first.wait_for(
        state="attached"
    )
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    at_rest(visitor)
    page.get_by_role("slider", name="Pair of dimensions").press("ArrowRight")
    page.wait_for_url("**pair=22**")
    page.get_by_text("Pair i = 22").wait_for()
    at_rest(visitor)
    page.get_by_role("radio", name="Order", exact=True).click()
    page.wait_for_url("**ask=Order**")
    at_rest(visitor)
    page.get_by_role("radio", name="Retype").click()
    page.wait_for_url("**order=Retype**")
    page.get_by_text("permutation-equivariant").wait_for()
    at_rest(visitor)
    field = page.get_by_label("The same words in another order")
    field.fill("Hari Ram pushed <b>")
    page.wait_for_url("**retyped=Hari**")
    page.get_by_text("do not hold the same tokens").wait_for()
    assert page.locator(".js-plotly-plot b").count() == 0
    again = page.url
    page.goto(again, wait_until="commit")
    page.get_by_text("do not hold the same tokens").wait_for()
    visitor.until(
        "() => document.querySelector('input[aria-label=\"The same words in another "
        "order\"]')?.value === 'Hari Ram pushed <b>'"
    )
    visitor.errors[:] = visitor.wrong()
    page.get_by_text("Every number as a table").click()
    page.locator("[data-testid=stExpanderDetails] [data-testid=stDataFrame]").wait_for()
    at_rest(visitor)
    text = visitor.export("Words as CSV").read_text("utf-8")
    assert text.startswith("token,place,") and "Ram" in text and "two orders" in text
