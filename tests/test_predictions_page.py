"""The place Predict: masked words, sampling settings, and any text and address."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from app_harness import asked_of, panels_on, told
from conftest import AWKWARD, HOSTILE
from prediction_oracle import (
    WAYS,
    check_choices,
    clean,
    full_pass,
    main_panel,
    opened,
    press,
    prompt_ids,
    row_of,
    said,
)
from table_files import commented
from tolerances import DOUBLE_LONG, PASSED

from explorer.panels import generation
from explorer.panels.generation import TOP_KS, TOP_PS
from models.contract.results import Sampling
from models.own import drafts
from models.runtime.caching import loaded
from models.runtime.run import Run

PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("text", [AWKWARD["empty"], AWKWARD["marks"], HOSTILE["10,000 characters"]])
def test_any_text_goes_on(text: str) -> None:
    app = opened("generate", text=text, model="decoder")
    if text == HOSTILE["10,000 characters"]:
        why = told(app, "info")
        assert "Nothing can be generated: the text has" in why and "reads 512" in why
        check_choices(app, prompt_ids(text), Sampling())
        assert main_panel(app)["figures"][1]["select"] == ["word"], "none can be written"
        return
    check_choices(app, prompt_ids(text))
    press(app, "write one")
    check_choices(app, prompt_ids(text) + said(app))
    n = len(row_of(app)["tokens"])
    assert row_of(app)["marked"] == [n - 1] and row_of(app)["texts"][-1]


@slow
def test_a_press_masks_and_unmasks_and_several_words_can_be_masked() -> None:
    text = "The red fox saw a small bird near the river."
    app = opened(text=text, hidden="2.6", token="6")
    assert app.selectbox(key="selected_query").options[:3] == ["1 The", "2 red", "3 fox"]
    row = row_of(app)
    assert row["tokens"][:7] == ["The", "", "fox", "saw", "a", "", "bird"]
    assert (row["names"][1], row["names"][5]) == ("hidden: red", "hidden: small")
    assert row["blanks"] == [1, 5] and row["keys"][0] == "1", "special tokens are not masked"
    caption = lambda: " ".join(main_panel(app)["caption"])
    assert "Token 6, “[MASK]”, hidden" in caption()
    app.session_state["token"] = "2"
    clean(app.run())
    assert "Token 2, “[MASK]”, hidden" in caption()
    press(app, "show all")
    assert asked_of(app)["hidden"] == "none" and row_of(app)["tokens"][1] == "red"
    assert "Token 2, “red”, seen" in caption()


@slow
@pytest.mark.parametrize("way", ["plain", "greedy", "top-p", "all three"])
def test_temperature_top_k_and_top_p_reshape_what_is_drawn_from(way: str) -> None:
    sampling = WAYS[way]
    app = opened("generate", text=PROMPT, model="decoder")
    assert (*TOP_KS,)[-1] == 0 and (*TOP_PS,)[-1] == 1, "all tokens are at the same end of both"
    for key in ("temperature", "top_k", "top_p"):
        app.select_slider(key=f"{key} slider").set_value(f"{getattr(sampling, key):g}")
    clean(app.run())
    check_choices(app, prompt_ids(PROMPT), sampling)
    columns = main_panel(app)["figures"][1]["columns"]
    assert len(columns) == (1 if way == "plain" else 2), "a key for two bars"
    assert way != "all three" or columns[1] == "temperature 0.7, top-k 50, top-p 0.9"


@slow
def test_a_link_opens_the_same_and_one_that_makes_no_sense_still_opens() -> None:
    app = opened("generate", text=PROMPT, model="decoder")
    app.select_slider(key="temperature slider").set_value("0.7").run()
    app.number_input(key="seed field").set_value(11).run()
    for _ in range(3):
        press(app, "write one")
    asked = asked_of(app)
    chosen = {"temperature": "0.7", "seed": "11", "said": app.session_state["said"]}
    assert asked == {"text": PROMPT, "model": "decoder", "tab": "generate"} | chosen
    again = opened("generate", **asked)
    assert panels_on(again) == panels_on(app)
    for wrong in (
        {"said": "1.x.3"},
        {"said": "99999999", "temperature": "-1", "top_p": "0", "top_k": "x", "seed": "-3"},
    ):
        app = opened("generate", text=PROMPT, model="decoder", **wrong)
        assert not set(app.query_params) - {"text", "model", "tab"}
    for wrong in ({"hidden": "0", "token": "0"}, {"hidden": "999.3"}, {"hidden": "a"}):
        assert len(row_of(opened(text=PROMPT, **wrong))["blanks"]) == 1


@pytest.mark.parametrize(("text", "space"), [("The cat ", True), ("The cat", False)])
def test_a_space_at_the_end_is_named(text: str, space: bool) -> None:
    finding = generation.next_token(Run("decoder", text)).finding
    assert ("ends with a space" in finding) is space


@slow
def test_a_text_is_written_by_one_step_at_a_time_whoever_asks() -> None:
    draft = drafts.Draft("grammar", "the cat")
    ids = tuple(range(20, 60))

    def hurry() -> None:
        while draft.step_towards(ids):
            pass

    runs = [threading.Thread(target=hurry) for _ in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    plain = drafts.Draft("grammar", "the cat")
    while plain.step_towards(ids):
        pass
    assert [word.id for word in draft.tokens] == list(ids) and draft.tokens == plain.tokens
    assert draft.writing.ids == plain.writing.ids
    np.testing.assert_allclose(draft.writing.logits, plain.writing.logits, atol=PASSED)


@slow
def test_the_whole_vocabulary_as_a_table_and_as_a_file() -> None:
    panel = generation.next_token(Run("decoder", PROMPT), temperature=0.8, top_k=5)
    rows = commented(panel.csv())[1]
    n = full_pass("decoder", prompt_ids(PROMPT)).shape[-1]
    assert [int(row["rank"]) for row in rows] == list(range(1, n + 1))
    assert sum(float(row["drawn from"]) > 0 for row in rows) == 5
    for column in ("probability", "drawn from"):
        assert sum(float(row[column]) for row in rows) == pytest.approx(1, abs=DOUBLE_LONG)
    assert rows[0]["token"] == loaded("decoder").labels([int(rows[0]["id"])])[0]
