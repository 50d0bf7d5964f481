"""The page of paths of embeddings draws what the model did."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from app_harness import page_at
from conftest import HOSTILE, on_page, read_once
from embedding_fixtures import of, states
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED, SUMMED

from explorer.analysis import logit_lens
from explorer.components import codec

ROOT = Path(__file__).resolve().parent.parent


FRUIT, DEVICES = (
    "She ate the apple with some fruit juice.",
    "Explain me about the new apple devices.",
)


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = page_at("embeddings", **asked)
    assert not app.exception and not app.error, app.exception
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    made = [codec.decode(element.proto.bytes) for element in on_page(app)]
    return next((header, blocks) for header, blocks in made if header["kind"] == kind)


@pytest.mark.slow
def test_the_page_draws_what_the_model_did() -> None:
    app = opened(text=FRUIT, second=DEVICES)
    header, blocks = sent(app, "walk")
    handle = read_once("encoder")
    streams = [of(handle, FRUIT), of(handle, DEVICES)]
    names = states(streams[0])
    rows = np.concatenate(
        [
            logit_lens.vectors(one, names, np.flatnonzero(~one.special)).reshape(
                -1, handle.card.d_model
            )
            for one in streams
        ]
    )
    _, singular, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    np.testing.assert_allclose(
        header["explained"], (singular**2 / (singular**2).sum())[:2], rtol=STORED
    )
    assert header["texts"][0]["labels"] == [
        t for t, s in zip(streams[0].tokens, streams[0].special) if not s
    ]
    apple = header["texts"][0]["labels"].index("apple")
    vector = streams[0].resid[
        streams[0].sites.index(names[-1]), header["texts"][0]["places"][apple]
    ] - rows.mean(0)
    shown = blocks["coordinates"].reshape(-1, len(names), 2)[apple, -1]
    np.testing.assert_allclose(
        np.abs(shown), np.abs(directions[:2] @ vector), rtol=PASSED, atol=PASSED
    )
    error = blocks["error"].reshape(-1, len(names))[apple, -1]
    assert error == pytest.approx(
        1 - (shown.astype(float) ** 2).sum() / (vector**2).sum(), abs=SUMMED
    )
    around, _ = sent(app, "around")
    assert around["chosen"] == [
        apple,
        len(header["texts"][0]["labels"]) + header["texts"][1]["labels"].index("apple"),
    ]
    assert [one["token"] for one in sent(app, "near")[0]["near"]] == ["apple", "apple"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        HOSTILE[name]
        for name in (
            "empty",
            "one word",
            "10,000 characters",
            "emoji",
            "right to left",
            "bidi override",
            "script",
            "latex",
            "markdown",
            "plotly",
        )
    ],
)
def test_any_two_texts_and_any_anchors_are_drawn(text: str) -> None:
    app = opened(text=text, second=text, anchors=f"{text[:20]} / <b>, $x$", plane="Words")
    header, blocks = sent(app, "walk")
    assert (
        header["texts"][0]["labels"]
        and np.isfinite(blocks["coordinates"]).all()
        and ((blocks["error"] >= 0) & (blocks["error"] <= 1)).all()
    )
    if len(text) > 1000:
        assert len(header["texts"][0]["labels"]) == 510


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "decoder", "text": FRUIT, "second": DEVICES, "sums": "Sums"},
        {"model": "translator", "text": FRUIT, "second": DEVICES},
        {"model": "translator", "text": FRUIT, "stream": "decoder", "specials": "Shown"},
        {"model": "grammar-masked", "text": FRUIT, "second": DEVICES, "length": "Removed"},
        {
            "stage": "99",
            "token": "x",
            "mate": "-1",
            "plane": "?",
            "stream": "<b>",
            "curve": "",
            "anchors": "/",
        },
    ],
    ids=str,
)
def test_every_kind_of_model_and_broken_links_open(asked: dict[str, str]) -> None:
    app = opened(**asked)
    header, _ = sent(app, "walk")
    handle = read_once(asked.get("model", "encoder"))
    stream = of(
        handle,
        asked.get("text", app.session_state["text"]),
        asked["stream"] if asked.get("stream") == "decoder" else None,
    )
    assert len(header["titles"]) == len(states(stream, asked.get("sums") == "Sums"))


@pytest.mark.slow
def test_three_dimensions_show_the_same_numbers() -> None:
    import json

    app = opened(text=FRUIT, second=DEVICES, space="3-D", stage="3")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert figure["data"][0]["type"] == "scatter3d" and any(
        "apple" in str(trace["name"]) for trace in figure["data"]
    )
    assert any("not shown in three dimensions" in one.value for one in app.markdown)


@pytest.mark.slow
def test_the_slider_of_sites_follows_the_site_on_screen() -> None:
    app = opened(text=FRUIT, space="3-D", stage="3")
    assert app.select_slider(key="site in space").value == 2
    app.session_state["stage"] = "5"
    assert app.run().select_slider(key="site in space").value == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, begins, step",
    [
        (
            "encoder",
            "starts as √256 × embedding, the position is added",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        (
            "minilm",
            "starts as embedding + segment, the position is added, a LayerNorm follows",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        (
            "induction-no-norm",
            "starts as √64 × embedding, the position is added",
            "x ← x + sublayer(x), with no LayerNorm",
        ),
        (
            "induction-no-residual",
            "starts as √64 × embedding, the position is added",
            "x ← LayerNorm(sublayer(x)), with no residual connection",
        ),
        (
            "reverse-no-positions",
            "starts as √64 × embedding; this model adds no positions",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        ("grammar", "starts as embedding, the position is added", "x ← x + sublayer(LayerNorm(x))"),
    ],
)
def test_the_formula_is_that_of_the_model(
    model: str, begins: str, step: str, gpt2_on_pages
) -> None:
    app = opened(model=model, text="b a c b", second="a c", sums="Sums")
    handle = gpt2_on_pages if model == "grammar" else read_once(model)
    stream = of(handle, "b a c b")
    header, blocks = sent(app, "walk")
    assert (
        len(header["titles"]) == len(states(stream, True))
        and np.isfinite(blocks["coordinates"]).all()
    )
    assert not any(".read" in site or ".wrote" in site for site in states(stream, True))
    note = next(each.value for each in app.markdown if "**The path.**" in each.value)
    assert begins in note and step in note


@pytest.mark.slow
def test_the_address_carries_what_is_on_screen_and_opens_the_same() -> None:
    app = opened(text=FRUIT)
    app.text_input(key="second").set_value(DEVICES).run()
    app.segmented_control(key="plane").set_value("Words").run()
    app.segmented_control(key="curve").set_value("Difference").run()
    app.text_input(key="anchors").set_value("pear / phone").run()
    asked = {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }
    assert asked == {
        "text": FRUIT,
        "second": DEVICES,
        "plane": "Words",
        "curve": "Difference",
        "anchors": "pear / phone",
        "tab": "embeddings",
    }
    again = opened(**asked)
    for kind in ("walk", "around", "near"):
        assert sent(again, kind)[0] == sent(app, kind)[0]


@pytest.mark.slow
def test_the_page_opens_on_one_word_in_two_contexts_and_says_how_far_it_moves() -> None:
    app = opened()
    header, _ = sent(app, "walk")
    near = sent(app, "near")[0]["near"]
    assert len(header["texts"]) == 2 and len({one["token"] for one in near}) == 1
    handle, streams = read_once("encoder"), []
    for text in (app.session_state["text"], app.text_input(key="second").placeholder):
        streams.append(of(handle, text))
    around, blocks = sent(app, "around")
    ends = [
        stream.resid[stream.sites.index(states(stream)[-1]), header["texts"][at]["places"][point]]
        for at, (stream, point) in enumerate(
            zip(
                streams,
                (around["chosen"][0], around["chosen"][1] - len(header["texts"][0]["labels"])),
            )
        )
    ]
    cosine = float(ends[0] @ ends[1] / np.linalg.norm(ends[0]) / np.linalg.norm(ends[1]))
    values = blocks["values"].reshape(len(around["lines"]), -1)
    assert values[0, 0] == pytest.approx(1, abs=SUMMED)
    assert values[0, -1] == pytest.approx(cosine, abs=SUMMED) and cosine < 0.6
    assert f"to {cosine:.2f}" in app.title[0].value
    # Different words of the two texts: every pair by hand.
    words = [
        [
            (label.casefold(), stream.resid[stream.sites.index(states(stream)[-1]), place])
            for label, place in zip(group["labels"], group["places"])
        ]
        for stream, group in zip(streams, header["texts"])
    ]
    pairs = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for one, a in words[0]
        for other, b in words[1]
        if one != other
    ]
    assert values[1, -1] == pytest.approx(float(np.mean(pairs)), abs=SUMMED)
    alone = opened(contexts="One")
    assert len(sent(alone, "walk")[0]["texts"]) == 1
