"""The page of the residual stream: its map, its files, every view, and one journey."""

from __future__ import annotations

import csv
import io
import threading
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once
from stream_fixtures import TEXT, streams
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED

from explorer.analysis import residual
from explorer.analysis.csv import to_csv
from explorer.analysis.formatting import power
from explorer.components import codec
from explorer.components.figure_caption import Picture
from explorer.components.residual import chart, followed, scale
from explorer.figures import residual as residual_figures
from explorer.state import cache, jobs
from models import registry
from models.own_model import OwnModel, record
from models.recording import VERSION

LONGER = (
    "The cat sat on the mat"
    + ", and then it looked at the dog that had slept beside the old door" * 3
)


# ---- pictures and files ------------------------------------------------------


def test_the_map_carries_the_numbers_and_no_selection(small_handle: OwnModel) -> None:
    _, stream = streams(small_handle)[0]
    grid = residual.write_grid(stream, "Turned")
    data = chart(
        grid,
        stream.tokens,
        stream.special,
        Picture("t", ("c",), "f", "x"),
    )
    header, blocks = codec.decode(data)
    np.testing.assert_allclose(
        blocks["values"].reshape(grid.values.shape), grid.values, rtol=STORED
    )
    assert (
        header["low"] == 0
        and header["high"] == pytest.approx(grid.values.max())
        and "chosen" not in header
    )
    header, blocks = codec.decode(
        followed(
            grid,
            stream.tokens,
            2,
            Picture("t", (), "f", "x"),
        )
    )
    np.testing.assert_allclose(blocks["values"], grid.values[2], rtol=STORED)
    np.testing.assert_allclose(blocks["median"], np.median(grid.values, axis=0), rtol=STORED)
    cosine = residual.write_grid(stream, "Cosine")
    assert scale(cosine, False) == (-1, 1)


def test_a_file_reads_back_and_says_what_it_is(small_handle: OwnModel) -> None:
    _, stream = streams(small_handle)[0]
    grid = residual.write_grid(stream, "Share")
    made = to_csv(residual.table(grid, ("=1", *stream.tokens[1:])), ("model\nm", "Text: <b>"))
    rows = list(csv.reader(io.StringIO(made)))
    assert rows[1][-1] == f"model m | Text: <b> | Headlight {VERSION}"
    assert rows[0][1:-1] == [column.name for column in grid.columns] and rows[1][0] == "0 =1"
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:-1]] for row in rows[1:]], grid.values
    )


def test_figures_escape_and_leave_a_gap_at_zero_on_a_log_axis() -> None:
    figure = residual_figures.lines(
        [("a <b>", np.array([1.0, 0.0, 0.01]))],
        ("<i>title</i> " + "long " * 20, "text <b>"),
        ["<x>", "y", "y"],
        "x",
        "y",
        log=True,
        named=True,
    )
    assert np.isnan(figure.data[0].y[1]) and figure.data[0].name == "a &lt;b&gt;"
    assert (
        list(figure.layout.xaxis.ticktext) == ["&lt;x&gt;", "y", "y"]
        and "<i>" not in figure.layout.title.text
    )
    bars = residual_figures.bars(
        [("LayerNorm", np.zeros(2)), ("BatchNorm", np.ones(2))], ("t",), ("same", "same"), "y"
    )
    assert list(bars.data[0].x) == [0, 1], "equal tokens stay apart"


def test_a_subtitle_that_is_cut_says_so() -> None:
    about = ("Title", *(f"line {at} of what the figure is" for at in range(9)))
    shown = residual_figures.lines(
        [("a", np.ones(3))], about, range(3), "x", "y", log=False
    ).layout.title.subtitle.text.split("<br>")
    assert len(shown) == 5 and shown[0] == about[1] and shown[-1] == f"{about[5]} …"
    assert (
        "…"
        not in residual_figures.lines(
            [("a", np.ones(3))], about[:5], range(3), "x", "y", log=False
        ).layout.title.subtitle.text
    )


@pytest.mark.parametrize(
    "value, digits, shown",
    [
        (999.6, 3, "1,000"),
        (999.4, 3, "999"),
        (250, 2, "250"),
        (-999.9, 3, "−1,000"),
        (99_999.7, 3, "100,000"),
        (12.345, 3, "12.3"),
    ],
)
def test_a_number_that_fills_its_digits_by_rounding_is_written_out(
    value: float, digits: int, shown: str
) -> None:
    assert power(value, digits) == shown


def test_an_experiment_that_runs_is_found_however_full_the_shelf_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = threading.Event()

    def endless():
        while held.wait(10):
            yield object()

    monkeypatch.setattr(cache, "_cache", cache.Cache(0))
    monkeypatch.setattr(registry, "decay", lambda ids, lag: endless())
    recording = cache.record("encoder", "Hi there")
    experiment = jobs.decay_job(recording, "encoder", 1)
    experiment.resume()
    for at in range(3):
        cache.get(at, lambda: "something large", lambda _: 1)
    again = jobs.decay_job(recording, "encoder", 1)
    assert again is experiment and again.running
    again.stop()
    held.set()
    experiment._thread.join(10)
    assert not experiment.running and jobs.decay_job(recording, "encoder", 1) is experiment, (
        "what it came to is kept"
    )


def test_large_and_small_numbers_as_powers_of_ten() -> None:
    assert (
        power(2.4e-5, 2) == "2.4 × 10⁻⁵"
        and power(0) == "0"
        and power(-3.0) == "−3"
        and power(34_400.0) == "34,400"
    )


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("residual", **asked)


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the map ("chart") or the line ("followed") was sent."""
    decoded = [
        codec.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == "headlight.residual"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_drawn(text: str) -> None:
    app = clean(opened(text=text, write="Norm"))
    header, blocks = sent(app, "chart")
    stream = read_once("encoder").record(text).streams[0]
    assert tuple(header["tokens"]) == stream.tokens
    np.testing.assert_allclose(
        blocks["values"].reshape(len(stream.tokens), -1),
        np.linalg.norm(stream.resid, axis=-1).T,
        rtol=PASSED,
    )
    assert (
        len(
            next(
                e.proto.bytes
                for e in on_page(app)
                if e.proto.component_name == "headlight.residual"
            )
        )
        < 120_000
    )


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "encoder", "text": ""},
        {"model": "decoder", "text": "<b>a</b> $x$"},
        {"model": "translator", "stream": "decoder", "text": "The cat sleeps."},
        {"model": "translator", "text": "Hi"},
    ],
)
def test_every_view_opens_for_every_model(flow: str, asked: dict[str, str]) -> None:
    app = clean(opened(flow=flow, **asked))
    assert app.session_state["flow"] == flow
    if flow == "Gradient":
        assert len(app.get("plotly_chart")) == 3


@pytest.mark.slow
def test_a_link_opens_what_it_names_and_refuses_what_is_not_there() -> None:
    app = clean(opened(flow="LayerNorm", norm="Mean before", block="2.ffn", times="5", token="4"))
    assert (
        sent(app, "followed")[0]["chosen"] == 4
        and sent(app, "chart")[0]["measure"]["name"] == "Mean before"
    )
    said = " ".join(each.value for each in app.markdown)
    stream = read_once("encoder").record(app.session_state["text"]).streams[0]
    norms = read_once("encoder").norms("encoder")
    moved = residual.largest_other(
        residual.norm_change(stream, "2.ffn", 4, 5.0, norms["2.ffn"][2]).batch, 4
    )
    assert f"**{moved[1]:.3f}**" in said and "multiplied by 5" in said
    app = clean(
        opened(flow="<b>", norm="?", block="99.x", times="nan", token="9999", lag="-3", stream="no")
    )
    assert sent(app, "chart")[0]["measure"]["name"] == "Turned"
    clean(opened(flow="LayerNorm", block="99.x", times="nan"))
    clean(opened(flow="RNN", lag="9" * 30))


@pytest.mark.slow
def test_following_a_token_sends_none_of_the_map_again() -> None:
    app = clean(opened(token="2"))
    before = next(
        e.proto.bytes for e in on_page(app) if codec.decode(e.proto.bytes)[0]["kind"] == "chart"
    )
    app.session_state["token"] = "5"
    clean(app.run())
    assert before == next(
        e.proto.bytes for e in on_page(app) if codec.decode(e.proto.bytes)[0]["kind"] == "chart"
    )
    assert sent(app, "followed")[0]["chosen"] == 5


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info, *app.warning))


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_named_and_can_be_let_go() -> None:
    app = clean(opened(model="translator", text="The dog is big.", target="Le <b>chat</b>"))
    assert "reads your own words, “Le \\<b\\>chat" in told(
        app
    ) and "typed on the Translation page" in told(app)
    app.button(key="drop target").click().run()
    assert app.session_state["target"] == "" and "your own words" not in told(clean(app))
    app = clean(opened(model="translator", target="Le chat"))
    app.selectbox(key="model").set_value("reverse").run()
    assert app.session_state["target"] == "" and "your own words" not in told(clean(app)), (
        "another model never reads them"
    )
    app = clean(opened(model="translator", target="la rue " * 300))
    assert "The field keeps them." in told(app)


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
def test_a_model_that_says_no_words(flow: str) -> None:
    app = clean(opened(model="minilm", text="Apples fall.", flow=flow))
    stream = read_once("minilm").record("Apples fall.").streams[0]
    if flow in ("Writes", "LayerNorm", "Heads"):
        columns = [column[2] for column in sent(app, "chart")[0]["columns"]]
        assert (
            len(columns) == {"Writes": 13, "LayerNorm": 13, "Heads": 72}[flow]
            and tuple(sent(app, "chart")[0]["tokens"]) == stream.tokens
        )
    assert ("minilm has no readout" in told(app)) == (flow == "Gradient")
    if flow == "Gradient":
        assert len(app.get("plotly_chart")) == 2 and "I + ∂f runs from" in told(app)


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
@pytest.mark.parametrize("model", ["induction-no-norm", "induction-no-residual"])
def test_models_trained_without_a_part(model: str, flow: str) -> None:
    said = told(clean(opened(model=model, text="b a c d b a", flow=flow)))
    assert ("norm** has no LayerNorm" in said) == (
        model == "induction-no-norm" and flow == "LayerNorm"
    )
    assert ("trained without residual connections" in said) == (model == "induction-no-residual")
    if flow == "Writes":
        assert ("Nothing is lost" in said) == (model == "induction-no-norm") and (
            "What was there is lost" in said
        ) == (model == "induction-no-residual")


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient"])
def test_a_model_with_layernorm_in_front(flow: str, gpt2_on_pages: OwnModel) -> None:
    app = clean(
        opened(
            model="grammar", text=TEXT, flow=flow, block="final" if flow == "LayerNorm" else "1.ffn"
        )
    )
    if flow != "Gradient":
        assert (
            tuple(sent(app, "chart")[0]["tokens"]) == record(gpt2_on_pages, TEXT).streams[0].tokens
        )
    wanted = {
        "Writes": "Norm, then add.",
        "LayerNorm": "in one LayerNorm, the last",
        "Heads": "A head’s own write",
        "Gradient": "four times",
    }
    assert wanted[flow] in told(app)


# ---- a journey ---------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


@browser_test
def test_a_reader_follows_a_token_by_mouse_and_keys_and_stops_a_training(
    visitor: driver.Visitor,
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/residual?{urlencode({'text': LONGER})}")
    page.wait_for_selector(".residual[data-followed]")
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    recording = read_once("encoder").record(LONGER)
    turned = residual.write_grid(recording.streams[0], "Turned").values
    page.locator(".row").nth(3).click()
    page.wait_for_url("**token=3**")
    page.get_by_role("heading", name="The whole way of “sat” (token 3)").wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    row = page.locator(".row").nth(3)
    row.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    said = page.locator(".residual .value").first.inner_text()
    assert f"{turned[4, 1]:.1f}°" in said and "(token 4)" in said, said
    page.keyboard.press("Enter")
    page.wait_for_url("**token=4**")
    page.get_by_role("radio", name="Norm", exact=True).click()
    page.wait_for_url("**write=Norm**")
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.row[aria-pressed=true]')?.textContent === 'on')"
    )
    page.get_by_role("radio", name="Beside an RNN").click()
    page.get_by_role("button", name="Start training").click()
    page.locator("[data-testid=stProgress]").first.wait_for(timeout=60_000)
    # Streamlit's own header has a Stop of its own while a run is long.
    page.locator(".st-key-stop-experiment button").click()
    page.get_by_role("button", name="Go on").wait_for(timeout=60_000)
    page.locator("[data-testid=stProgress]", has_text="stopped").wait_for(timeout=60_000)
    assert page.locator("td").filter(has_text="%").count() == 3, "how much each network says right"
    assert parse_qs(urlparse(page.url).query)["flow"] == ["RNN"]
