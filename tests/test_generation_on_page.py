"""The Predictions page writes on: greedy or drawn steps, stored keys, the end of a text."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conftest import on_page, typed
from prediction_oracle import (
    OPENS,
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
from tolerances import PASSED, SUMMED

from explorer.components import codec
from explorer.state import models
from explorer.text.markdown_escape import literal
from models.results import Sampling

OPEN = "My sister"  # goes on in many ways
PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


slow = pytest.mark.slow


@slow
def test_greedy_steps_are_those_of_full_passes_and_back_takes_them_back() -> None:
    app = opened("generate", text=PROMPT, model="decoder", temperature="0")
    ids = prompt_ids(PROMPT)
    goes_on = next(each.value for each in app.markdown if "it goes on" in each.value)
    for n in range(5):
        z = full_pass("decoder", ids)[-1]
        press(app, "write one")
        assert said(app)[-1] == z.argmax()
        written = [token for token in sent(app, "strip")["tokens"] if token["tone"] == "said"]
        assert len(written) == n + 1 and written[-1]["under"].endswith("· #1")
        assert float(
            re.search(r"probability ([\d.]+)", written[-1]["spoken"]).group(1)
        ) == pytest.approx(softmaxed(z).max(), abs=PASSED)
        ids.append(int(z.argmax()))
        check_choices(app, ids, Sampling(0))
    wrote = models.decode("decoder", ids).removeprefix(PROMPT).strip()
    assert f"**{literal(wrote)}" in goes_on, "what it was said to write"
    press(app, "take back")
    press(app, "take back")
    assert said(app) == ids[-5:-2]
    check_choices(app, ids[:-2], Sampling(0))
    press(app, "write anew")
    assert not said(app) and app.button(key="take back").disabled
    check_choices(app, prompt_ids(PROMPT), Sampling(0))


@slow
def test_the_same_seed_writes_the_same_words_and_a_slider_loses_none() -> None:
    def written(seed: str) -> list[int]:
        app = opened("generate", text=OPEN, model="decoder", seed=seed)
        for _ in range(4):
            press(app, "write one")
        return said(app)

    first = written("3")
    assert written("3") == first and any(written(seed) != first for seed in "456")
    app = opened("generate", text=OPEN, model="decoder", seed="3")
    press(app, "write one")
    app.select_slider(key="temperature").set_value("1").run()
    assert said(clean(app)) == first[:1]
    app.select_slider(key="temperature").set_value(f"{OPENS.temperature:g}").run()
    for _ in range(3):
        press(app, "write one")
    assert said(app) == first, "step by step the same, whatever was looked at in between"
    press(app, "take back")
    press(app, "write one")
    assert said(app) == first
    assert app.number_input(key="seed field").value == 3


@slow
def test_a_token_chosen_by_hand_is_written_and_reading_goes_on_from_it() -> None:
    app = opened("generate", text=PROMPT, model="decoder", temperature="0")
    chosen = int(sent(app, "bars")["rows"][4]["key"])
    again = opened("generate", **asked_of(app), said=str(chosen))
    written = [token for token in sent(again, "strip")["tokens"] if token["tone"] == "said"]
    assert len(written) == 1 and written[0]["under"].endswith("· #5")
    check_choices(again, [*prompt_ids(PROMPT), chosen], Sampling(0))
    press(again, "write one")
    assert said(again) == [chosen, full_pass("decoder", [*prompt_ids(PROMPT), chosen])[-1].argmax()]


@slow
def test_the_newest_tokens_rows_and_the_cache_are_those_of_a_full_pass() -> None:
    app = opened("generate", text=PROMPT, model="decoder", temperature="0", layer="1", head="2")
    for _ in range(3):
        press(app, "write one")
    proto = next(
        element.proto
        for element in on_page(app)
        if element.proto.component_name == "headlight.looks"
    )
    header, blocks = codec.decode(proto.bytes)
    handle = models.handle("decoder")
    whole = models.decode("decoder", [*prompt_ids(PROMPT), *said(app)])
    recording = handle.record(whole)
    assert recording.streams[0].ids.tolist() == prompt_ids(PROMPT) + said(app), (
        "this continuation is read as it was written"
    )
    pattern = recording.attention[0].pattern[:, :, -1]
    shown = blocks["weights"].reshape(-1, pattern.shape[-1])
    np.testing.assert_allclose(shown[1:], pattern.reshape(-1, pattern.shape[-1]), atol=SUMMED)
    np.testing.assert_allclose(shown[0], pattern.mean((0, 1)), atol=SUMMED)
    assert header["chosen"] == "1.2" and header["tones"].count("said") == 3
    card, n = handle.card, len(recording.streams[0].ids)
    told = " ".join(each.value for each in app.markdown)
    assert f"2 × {card.n_head} heads × {n} tokens × {card.d_head} numbers" in told
    assert f"**{2 * card.n_layer * card.n_head * n * card.d_head * 4:,} bytes**" in told
    assert (
        f"would have read all **{n}** again. All 3 steps read 3 tokens instead of "
        f"{n + n - 1 + n - 2}."
    ) in told


@slow
def test_writing_ends_at_the_end_sign_and_at_the_models_length() -> None:
    eos = models.handle("decoder").tokenizer.eos
    app = opened("generate", text=PROMPT, model="decoder", said=f"40.{eos}.50")
    assert (
        said(app) == [40, eos]
        and app.button(key="write one").disabled
        and app.button(key="write on").disabled
    )
    assert "the text has ended" in sent(app, "strip")["says"]
    press(app, "take back")
    assert not app.button(key="write one").disabled
    text = "the cat " * 254  # and a space
    n = len(prompt_ids(text))
    app = opened("generate", text=text, model="decoder", temperature="0", said="100")
    assert n == 510
    press(app, "write one")
    assert (
        "all that this model reads" in sent(app, "strip")["says"]
        and app.button(key="write one").disabled
    )
    check_choices_without_keys(app, prompt_ids(text) + said(app))
    press(app, "take back")
    assert not app.button(key="write one").disabled


def check_choices_without_keys(app: AppTest, ids: list[int]) -> None:
    assert len(ids) == 512
    rows = sent(app, "bars")["rows"]
    assert not any(row["key"] for row in rows)
    p = softmaxed(full_pass("decoder", ids)[-1])
    np.testing.assert_allclose(
        [row["behind"] for row in rows[:-1]], -np.sort(-p)[: len(rows) - 1], atol=SUMMED
    )


@slow
def test_what_was_written_becomes_the_text_and_another_text_forgets_it() -> None:
    app = opened("generate", text=PROMPT, model="decoder", temperature="0")
    for _ in range(2):
        press(app, "write one")
    ids = prompt_ids(PROMPT) + said(app)
    press(app, "adopt")
    text = app.session_state["text"]
    assert text.startswith(PROMPT) and prompt_ids(text) == ids and not said(app)
    check_choices(app, ids, Sampling(0))
    press(app, "write one")
    typed(app, "Ram pushed Hari")
    assert not said(clean(app)) and "said" not in app.query_params
