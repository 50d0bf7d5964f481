"""A panel as a Plotly figure: the same numbers and labels for every kind of figure, and any text as
data."""

from __future__ import annotations

import html
import json
from typing import Any

import driver
import numpy as np
import pytest
from app_harness import clean, page_at, panels_on
from conftest import HOSTILE
from test_figure_files import nodes_in, panel_of
from test_panels import NAMES, TEXT, every, model_of
from tolerances import STORED

from explorer.components import codec
from explorer.figures import kinds as figures
from explorer.figures import plotly_export
from models.runtime.run import Run

# Kinds that hold others, of which Plotly gets these.
HOLDERS = (figures.Stack, figures.Steps)


def traces_of(made: Any) -> list[dict[str, Any]]:
    return [each.to_plotly_json() for each in made.data]


def texts_of(value: Any) -> list[str]:
    """Every text of a Plotly figure that a reader sees."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts_of(each)]
    if isinstance(value, (list, tuple, np.ndarray)):
        return [text for each in value for text in texts_of(each)]
    return []


def numbers_of(value: Any) -> list[float]:
    """Every number of a trace."""
    if isinstance(value, (list, tuple, np.ndarray)):
        return [number for each in value for number in numbers_of(each)]
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers_of(each)]
    return [float(value)] if isinstance(value, (int, float, np.number)) else []


def told_by(node: Any) -> tuple[list[float], list[str]]:  # noqa: C901 - a case a kind
    """The numbers and the labels that a figure, or a part of one, must have in Plotly's too."""
    match node:
        case figures.Matrix():
            return np.ravel(node.values).tolist(), [*node.rows, *node.columns, *node.words]
        case figures.BarRow():
            return [*node.values], [node.label, *node.texts]
        case figures.Series():
            return [*np.ravel(node.x), *np.ravel(node.y)], [node.name]
        case figures.Strip():
            return np.ravel(node.values).tolist(), [node.label, node.text]
        case figures.Factor():
            size = "{} × {}".format(*node.shape)
            return np.ravel(node.values).tolist(), [node.name, node.sign, size, *node.parts]
        case figures.Network():
            return [], [text for each in node.between for text in each]
        case figures.Relay():
            return np.ravel(node.values).tolist(), [*node.words, node.text, node.arc, node.state]
        case figures.Branch():
            return [], [node.name, node.norm_name]
        case figures.Links():
            return np.ravel(node.weights).tolist(), [*node.left, *node.right]
        case figures.LinkedWeights():
            return codec.unfold(node.weights).tolist(), [*node.rows, *node.columns]
        case figures.HeadMatrices():
            return np.ravel(node.weights["peak"]).tolist(), list(node.names)
        case figures.TokenRow():
            return np.ravel(node.weights).tolist(), [*node.tokens, *node.texts]
        case figures.SentenceVotes():
            heads = [f"{each.head}: {node.labels[each.word]}" for each in node.votes]
            return [], [*node.labels, *heads]
        case figures.Edge():
            return [node.weight], []
        case figures.Graph():
            return [*node.strengths], [*node.nodes]
        case figures.TextTable():
            return [], [cell for row in node.rows for cell in row]
        case figures.Facts():
            return [], [word for fact in node.facts for word in fact]
        case figures.Rotation():
            return [node.before, *node.total, *node.after], [node.label, node.text]
        case figures.Box():
            return [], [node.text, node.count]
        case figures.FlowAttention():
            return np.ravel(node.shares).tolist(), []
        case figures.FlowWord():
            return [node.probability], [node.label, node.text]
        case figures.Cloud():
            return np.ravel(node.paths[node.selected] if node.selected >= 0 else []).tolist(), [
                node.name
            ]
    return [], []


def expect_alike(all_of: tuple[figures.Figure, ...], made: Any) -> None:
    """Every number and label of figures stands in Plotly's."""
    traces = [numbers_of(each) for each in traces_of(made)]
    numbers = np.sort(np.concatenate([np.asarray(each, float) for each in traces if each]))
    shown = html.unescape(" ".join(texts_of(made.to_plotly_json())))
    for node in nodes_in(all_of):
        wanted, labels = told_by(node)
        real = [each for each in wanted if each is not None and np.isfinite(each)]
        places = np.clip(np.searchsorted(numbers, real), 1, max(1, len(numbers) - 1))
        near = np.minimum(abs(numbers[places] - real), abs(numbers[places - 1] - real))
        assert (near <= STORED * (1 + abs(np.array(real)))).all() if real else True, node
        assert not [label for label in labels if label not in shown], node


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_plotly_figure_has_the_numbers_and_labels_of_the_panel(name: str) -> None:
    panel = panel_of(name)
    made = panel.plotly()
    expect_alike(panel.figures, made)
    assert made.layout.title.text == plotly_export.safe(panel.title)
    assert made.layout.paper_bgcolor == plotly_export.bundle.colours("light")["paper"]
    made.to_json()


def test_every_kind_of_figure_has_one() -> None:
    kinds = {*figures.Figure.__subclasses__()} - {*HOLDERS}
    assert kinds == plotly_export.KINDS.keys()


def test_a_heatmap_stands_as_the_matrix_does() -> None:
    values = np.array([[0.1, np.nan], [0.3, 0.4]])
    one = figures.Matrix("m", rows=("a", "a"), columns=("c", "d"), values=values, high=0.5)
    (trace,) = plotly_export.figure((one,), "t").data
    assert [list(row) for row in trace.z] == [[0.1, None], [0.3, 0.4]]
    made = plotly_export.figure((one,), "t")
    top, foot = made.layout.yaxis.range[::-1]
    assert top < foot, "the first row at the top"
    assert list(made.layout.yaxis.ticktext) == ["a", "a"], "twice the same word is two rows"
    assert made.data[0].zmin == 0 and made.data[0].zmax == 0.5


TEXTS = ("<b>bold</b> <a href='x'>a</a>", "$\\frac{1}{2}$", "&lt; & %{x}", "<br>a<extra>")


@pytest.mark.slow
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("text", [*TEXTS, *HOSTILE.values()])
@pytest.mark.parametrize("name", ["attention.head", "residual.norms", "embeddings.contexts"])
def test_any_text_is_data(name: str, text: str) -> None:
    try:
        panel = every()[name](Run(model_of(name), text))
    except ValueError:  # no words in it
        return
    made = panel.plotly().to_plotly_json()
    ours = ("<extra></extra>",)
    for each in texts_of({"data": made["data"], "layout": made["layout"]}):
        plain = each
        for part in ours:
            plain = plain.replace(part, "")
        assert "<" not in plain and "$" not in plain, each
    templates = {trace.get("hovertemplate") for trace in made["data"]} - {None}
    tokens = {token for stream in panel.run.recording().streams for token in stream.tokens}
    assert not [each for each in templates for token in tokens if len(token) > 9 and token in each]


def test_without_plotly_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    panel = panel_of("residual.norms")
    monkeypatch.setattr(plotly_export, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="install plotly with pip"):
        panel.plotly()


# ---- on the page ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["positions", "residual", "embeddings", "checkpoints"])
def test_charts_that_one_studies_open_in_plotly(tab: str) -> None:
    app = page_at(tab, text=TEXT)
    (panel, *_) = panels_on(app)
    app.session_state[f"table {panel['file']}"] = True
    (switch,) = (each for each in app.run().toggle if each.label.startswith("Open in Plotly"))
    assert not app.get("plotly_chart"), "made only when it is wanted"
    chart = clean(switch.set_value(True).run()).get("plotly_chart")[0].proto
    spec = json.loads(chart.spec)
    assert spec["layout"]["title"]["text"] == plotly_export.safe(panel["title"])
    assert spec["data"]


@pytest.mark.slow
def test_no_other_panel_has_one() -> None:
    app = page_at("word", text=TEXT)
    (panel, *_) = panels_on(app)
    app.session_state[f"table {panel['file']}"] = True
    assert not [each for each in app.run().toggle if "Plotly" in each.label]


@driver.browser_test
def test_a_chart_of_plotly_is_drawn_with_the_numbers_of_the_panel(visitor: driver.Visitor) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/architecture?tab=residual&write=Rotation+angle")
    page.locator("summary", has_text="All numbers of this figure").first.click()
    page.locator("label", has_text="Open in Plotly").first.click()
    page.locator(".js-plotly-plot").first.wait_for()
    drawn = page.locator(".js-plotly-plot").first.evaluate(
        "each => each.data.find(({ type }) => type === 'heatmap').customdata"
    )
    text = page.locator("textarea").first.input_value()
    expected = every()["residual.updates"](Run("encoder", text), "Rotation angle").plotly()
    heat = next(each for each in expected.data if each.type == "heatmap")
    np.testing.assert_allclose(np.array(drawn, float), np.array(heat.z, float), atol=STORED)
