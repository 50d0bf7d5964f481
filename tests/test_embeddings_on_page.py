"""The panels on embeddings show what the model did, and their tab what the address says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from app_harness import asked_of, clean, page_at, panels_on, told
from conftest import HOSTILE, read_once
from embedding_fixtures import of, states
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import logit_lens
from explorer.figures.formatting import percent
from explorer.panels import embeddings
from models.runtime.run import Run

FRUIT, DEVICES = (
    "She ate the apple with some fruit juice.",
    "Tell me about the new apple devices.",
)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def opened(**asked: str) -> AppTest:
    return clean(page_at("embeddings", **asked))


def test_the_plane_is_the_analysis_of_both_texts() -> None:
    panel = embeddings.contexts(Run("encoder", FRUIT), second=DEVICES)
    plane = panel.figures[1]
    streams = [of(read_once("encoder"), text) for text in (FRUIT, DEVICES)]
    names = states(streams[0])
    plain = [np.flatnonzero(~one.special) for one in streams]
    vectors = [logit_lens.vectors(one, names, at) for one, at in zip(streams, plain)]
    rows = np.concatenate([each[-1] for each in vectors])
    _, singular, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    for title, share in zip((plane.x_title, plane.y_title), singular**2 / (singular**2).sum()):
        assert title.endswith(f"({percent(float(share))})")
    for cloud, stream, at, each in zip(plane.clouds, streams, plain, vectors):
        assert cloud.labels == tuple(stream.tokens[place] for place in at)
        apple = cloud.selected
        assert cloud.labels[apple] == "apple"
        vector, shown = each[-1, apple] - rows.mean(0), cloud.paths[apple, -1]
        expected = np.abs(directions[:2] @ vector)
        np.testing.assert_allclose(np.abs(shown), expected, rtol=PASSED, atol=PASSED)
        inside = (shown**2).sum() / (vector**2).sum()
        assert cloud.fills[apple, -1] == pytest.approx(inside, abs=SUMMED)
    labels = [frame.label for frame in plane.frames]
    assert labels == [logit_lens.title(name, names) for name in names]
    norm = np.linalg.norm(vectors[0][-1, plane.clouds[0].selected])
    assert panel.table["norm, text 1"][-1] == pytest.approx(norm, rel=STORED)


def test_a_word_in_two_contexts_is_compared_with_other_words() -> None:
    panel = embeddings.contexts(Run("encoder", FRUIT), second=DEVICES)
    own, others = panel.figures[0].series
    streams = [of(read_once("encoder"), text) for text in (FRUIT, DEVICES)]
    last = [stream.resid[stream.sites.index(states(stream)[-1])] for stream in streams]
    plain = [np.flatnonzero(~stream.special) for stream in streams]
    words = [
        [(stream.tokens[at].casefold(), vectors[at]) for at in each]
        for stream, vectors, each in zip(streams, last, plain)
    ]
    one, two = (dict(each)["apple"] for each in words)
    pairs = [cosine(a, b) for word, a in words[0] for other, b in words[1] if word != other]
    assert own.y[0] == pytest.approx(1, abs=SUMMED)
    assert own.y[-1] == pytest.approx(cosine(one, two), abs=SUMMED)
    assert others.y[-1] == pytest.approx(float(np.mean(pairs)), abs=SUMMED)
    assert f"their cosine falls from 1.00 to {own.y[-1]:.2f}." in panel.finding
    assert f"{others.y[-1]:.2f} on average" in panel.finding
    missing = embeddings.contexts(Run("encoder", FRUIT), token=8, second=DEVICES)
    assert "is not in the second text" in missing.finding


def test_a_word_in_one_text_is_compared_with_its_embedding() -> None:
    panel = embeddings.contexts(Run("decoder", FRUIT), token=3, texts="One")
    stream = of(read_once("decoder"), FRUIT)
    first, last = stream.resid[stream.sites.index(states(stream)[0]), 3], stream.resid[-1, 3]
    assert panel.figures[0].series[0].y[-1] == pytest.approx(cosine(first, last), abs=PASSED)


@pytest.mark.parametrize("name", ["empty", "one word", "script", "repeated"])
def test_any_two_texts_and_any_anchors_are_drawn(name: str) -> None:
    text = HOSTILE[name]
    run = Run("encoder", text)
    words = f"{text[:20].replace('/', '')}a / <b>, $x$"
    panel = embeddings.contexts(run, second=text or "a", anchored=True, anchor_words=words)
    for cloud in panel.figures[1].clouds:
        assert np.isfinite(cloud.paths).all()
        assert (cloud.fills >= 0).all() and (cloud.fills <= 1).all()
    assert embeddings.anchors(run, second=text or "a", anchor_words=words).encode()
    assert embeddings.neighbours(run, second=text or "a").encode()


@pytest.mark.parametrize(
    ("choices", "reason"),
    [
        ({"token": 99}, "no token 99"),
        ({"stage": 99}, "no stage 99"),
        ({"texts": "Three"}, "it can be Two, One"),
        ({"texts": "One", "second": DEVICES}, "here it is 'One'"),
        ({"second": DEVICES, "mate": 99}, "no mate 99"),
        ({"anchored": True, "anchor_words": "one group"}, "two groups"),
        ({"stream": "decoder"}, "no stream 'decoder'"),
    ],
)
def test_what_is_not_there_is_refused(choices: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        embeddings.contexts(Run("encoder", FRUIT), **choices)


def test_the_verdict_on_anchors_is_beside_all_other_splits() -> None:
    panel = embeddings.anchors(Run("encoder", FRUIT), second=DEVICES)
    chart, bars = panel.figures
    assert [row.values[0] for row in bars.rows] == pytest.approx(
        [series.y[-1] for series in chart.series]
    )
    assert "Of the 9 other ways to split these 6 words" in " ".join((panel.finding, *panel.details))
    with pytest.raises(ValueError, match="in a second text"):
        embeddings.anchors(Run("encoder", FRUIT), texts="One", measure="Contexts")
    with pytest.raises(ValueError, match="source language"):
        embeddings.anchors(Run("translator", FRUIT), stream="decoder")


@pytest.mark.parametrize(
    ("as_far", "n_splits", "says"),
    [
        (1, 10, "none gives as large"),
        (2, 10, " 1 gives as large"),
        (5, 10, " 4 give as large"),
        (1, 1, "no baseline"),
    ],
)
def test_the_least_possible_count_is_not_sold_as_few(as_far: int, n_splits: int, says: str) -> None:
    lines = " ".join(embeddings.splits(as_far, n_splits, 6))
    assert says in lines and (n_splits == 1 or "at least 1 in 10" in lines)


POST = "LayerNorm(x + sublayer(x))"
# How the first vector and each next one are made.
FORMULAS = {
    "encoder": ("√256 × embedding, the position is added,", POST),
    "minilm": ("embedding + segment, the position is added, a LayerNorm follows,", POST),
    "induction-no-norm": ("√64 × embedding, the position", "x + sublayer(x), with no LayerNorm"),
    "induction-no-residual": ("√64 × embedding", "LayerNorm(sublayer(x)), with no residual"),
    "reverse-no-positions": ("√64 × embedding; this model adds no positions,", POST),
    "grammar": ("as embedding, the position is added,", "x + sublayer(LayerNorm(x))"),
}


@pytest.mark.slow
@pytest.mark.parametrize("model", FORMULAS)
def test_the_formula_is_that_of_the_model(model: str, gpt2_on_pages) -> None:
    panel = embeddings.contexts(Run(model, "b a c b"), second="a c", sums=True)
    loaded_model = gpt2_on_pages if model == "grammar" else read_once(model)
    names = states(of(loaded_model, "b a c b"), True)
    assert len(panel.figures[1].frames) == len(names)
    assert not any(".read" in site or ".wrote" in site for site in names)
    assert all(part in panel.details[0] for part in FORMULAS[model])


# ---- the page ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_opens_on_two_contexts_and_shows_one_or_three_dimensions() -> None:
    app = opened()
    contexts, nearest = panels_on(app)
    assert len(contexts["figures"][1]["clouds"]) == 2 and len(nearest["figures"]) == 2
    assert (
        "in this sentence and alone" in contexts["title"]
        and app.text_input(key="second").placeholder
    )
    assert not app.get("plotly_chart"), "loaded only when it is wanted"
    alone, _ = panels_on(opened(contexts="One"))
    assert len(alone["figures"][1]["clouds"]) == 1
    app = opened(text=FRUIT, second=DEVICES, space="3-D", stage="3")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert figure["data"][0]["type"] == "scatter3d"
    assert any("apple" in str(trace["name"]) for trace in figure["data"])
    assert "Three dimensions show" in told(app, "caption")


@pytest.mark.slow
def test_the_address_carries_what_is_on_screen_and_opens_the_same() -> None:
    app = opened(text=FRUIT, curve="Difference", plane="Words", stage="4")
    app.text_input(key="second").set_value(DEVICES).run()
    app.text_input(key="anchors").set_value("pear / phone").run()
    asked = asked_of(app)
    chosen = {"plane": "1", "curve": "Difference", "anchors": "pear / phone", "stage": "4"}
    chosen |= {"space": "Anchors"}
    assert asked == {"text": FRUIT, "second": DEVICES, "tab": "embeddings"} | chosen
    assert panels_on(opened(**asked)) == panels_on(app)
    assert panels_on(app)[0]["figures"][1]["current"] == 3
