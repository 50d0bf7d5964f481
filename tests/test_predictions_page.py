"""The Predictions page: what fills a gap, and what any reader may ask of it."""

from __future__ import annotations

import csv
import io
import re
import threading

import numpy as np
import pytest
from app_harness import panels_on
from conftest import AWKWARD, HOSTILE, on_page
from prediction_oracle import (
    WAYS,
    asked_of,
    check_choices,
    clean,
    full_pass,
    opened,
    press,
    prompt_ids,
    said,
    sent,
    softmaxed,
)
from streamlit.testing.v1 import AppTest
from tolerances import DOUBLE_LONG, PASSED, SUMMED

from explorer.analysis import predictions
from explorer.analysis.csv import to_csv
from explorer.components import codec
from explorer.state import jobs, models
from models import own_model
from models.recording import VERSION
from models.results import Sampling, probabilities

PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


slow = pytest.mark.slow


@slow
@pytest.mark.parametrize(
    "text", [*AWKWARD.values(), HOSTILE["10,000 characters"]], ids=[*AWKWARD, "long"]
)
def test_any_text_goes_on(text: str) -> None:
    app = opened("generate", text=text, model="decoder")
    if text == HOSTILE["10,000 characters"]:
        assert any(
            "Nothing can be written here: the text has" in told.value and "reads 512" in told.value
            for told in app.info
        )
        rows = sent(app, "bars")["rows"]
        p = softmaxed(full_pass("decoder", prompt_ids(text))[-1])
        np.testing.assert_allclose(
            [row["behind"] for row in rows[:-1]], -np.sort(-p)[: len(rows) - 1], atol=SUMMED
        )
        assert not any(row["key"] for row in rows), "what cannot be written cannot be chosen"
        return
    check_choices(app, prompt_ids(text))
    press(app, "write one")
    check_choices(app, prompt_ids(text) + said(app))
    assert [token["tone"] for token in sent(app, "strip")["tokens"]].count("said") == 1


@slow
def test_a_click_hides_and_shows_and_several_words_can_be_hidden() -> None:
    text = "The red fox saw a small bird near the river."
    app = opened(text=text, hidden="2.6", token="6")
    assert [token["label"] for token in sent(app, "strip")["tokens"]][1:8] == [
        "The",
        "[MASK]",
        "fox",
        "saw",
        "a",
        "[MASK]",
        "bird",
    ]
    caption = lambda: " ".join(panels_on(app)[0]["caption"])
    assert "token 6, “[MASK]”, masked" in caption()
    app.session_state["token"] = "2"
    clean(app.run())
    assert "token 2, “[MASK]”, masked" in caption()
    press(app, "show all")
    assert asked_of(app)["hidden"] == "none" and all(
        token["tone"] != "hidden" for token in sent(app, "strip")["tokens"]
    )
    assert "token 2, “red”, seen" in caption()


@slow
@pytest.mark.parametrize("way", [way for way in WAYS])
def test_temperature_top_k_and_top_p_reshape_what_is_drawn_from(way: str) -> None:
    sampling = WAYS[way]
    app = opened("generate", text=PROMPT, model="decoder")
    for key, value in (
        ("temperature", sampling.temperature),
        ("top_k", sampling.top_k),
        ("top_p", sampling.top_p),
    ):
        app.select_slider(key=key).set_value(f"{value:g}")
    clean(app.run())
    check_choices(app, prompt_ids(PROMPT), sampling)
    n_kept = (
        probabilities(full_pass("decoder", prompt_ids(PROMPT))[-1].astype(np.float32), sampling) > 0
    ).sum()
    told = next(each.value for each in app.caption if each.value.startswith("Kept: "))
    assert abs(int(re.search(r"Kept: ([\d,]+)", told).group(1).replace(",", "")) - n_kept) <= 1
    assert "model 1.0000, drawn from 1.0000" in told


@slow
def test_a_link_opens_the_same_and_one_that_makes_no_sense_still_opens() -> None:
    app = opened("generate", text=PROMPT, model="decoder")
    app.select_slider(key="temperature").set_value("0.7").run()
    app.number_input(key="seed field").set_value(11).run()
    for _ in range(3):
        press(app, "write one")
    asked = asked_of(app)
    assert asked == {
        "text": PROMPT,
        "model": "decoder",
        "temperature": "0.7",
        "seed": "11",
        "said": app.session_state["said"],
    }
    again = opened("generate", **asked)
    for name in ("bars", "strip", "looks"):
        assert sent(again, name) == sent(app, name)
    for wrong in (
        {"said": "1.x.3"},
        {"said": "99999999"},
        {"said": "."},
        {"temperature": "-1", "top_p": "0", "top_k": "x", "seed": "-3"},
    ):
        app = opened("generate", text=PROMPT, model="decoder", **wrong)
        assert not set(app.query_params) - {"text", "model", "tab"}
    for wrong in ({"hidden": "0"}, {"hidden": "999.3"}, {"hidden": "a"}, {"token": "0"}):
        check_strip_has_one_gap(opened(text=PROMPT, **wrong))


def check_strip_has_one_gap(app: AppTest) -> None:
    assert [token["tone"] for token in sent(app, "strip")["tokens"]].count("hidden") == 1


@slow
def test_a_space_at_the_end_is_told() -> None:
    assert any(
        "ends with a space" in told.value
        for told in opened("generate", text="The cat ", model="decoder").caption
    )
    assert not any(
        "ends with a space" in told.value
        for told in opened("generate", text="The cat", model="decoder").caption
    )


@slow
@slow
def test_a_text_is_written_by_one_step_at_a_time_whoever_asks() -> None:
    draft = jobs.Draft("grammar", "the cat")
    ids = tuple(range(20, 60))

    def hurry() -> None:
        while draft.step_towards(ids):
            pass

    runs = [threading.Thread(target=hurry) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    plain = jobs.Draft("grammar", "the cat")
    while plain.step_towards(ids):
        pass
    assert (
        [word.id for word in draft.tokens] == list(ids)
        and draft.tokens == plain.tokens
        and draft.writing.ids == plain.writing.ids
    )
    np.testing.assert_allclose(draft.writing.logits, plain.writing.logits, atol=PASSED)


@slow
def test_a_small_gpt2_writes_and_says_where_it_ended(gpt2_on_pages: own_model.OwnModel) -> None:
    app = opened(
        "generate", model="grammar", text="the cat sat", said=f"20.{gpt2_on_pages.tokenizer.eos}"
    )
    assert "<|endoftext|>" in said_about(app)
    assert opened("generate", model="grammar", text="")


def said_about(app: AppTest) -> str:
    """What stands under the text in the making."""
    return next(
        codec.decode(each.proto.bytes)[0]["says"]
        for each in on_page(app)
        if each.proto.component_name == "headlight.strip"
    )


@slow
def test_the_whole_vocabulary_as_a_table_and_as_a_file() -> None:
    of = predictions.distribution(
        full_pass("decoder", prompt_ids(PROMPT))[-1].astype(np.float32), Sampling(0.8, 5)
    )
    table = predictions.columns(of, models.labels("decoder", range(len(of.order))))
    rows = list(csv.DictReader(io.StringIO(to_csv(table, ("About\nthis", "Text: a")))))
    assert rows[0]["about"] == f"About this | Text: a | Headlight {VERSION}"
    assert len(rows) == len(of.order) and [int(row["rank"]) for row in rows] == list(
        range(1, len(rows) + 1)
    )
    assert (
        sum(float(row["probability"]) for row in rows)
        == pytest.approx(1, abs=DOUBLE_LONG)
        == sum(float(row["drawn from"]) for row in rows)
    )
    assert rows[0]["token"] == models.labels("decoder", [int(rows[0]["id"])])[0]
