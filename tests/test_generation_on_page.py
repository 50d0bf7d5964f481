"""The tab Answer: greedy or drawn steps, stored keys, the end of a text."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import asked_of
from conftest import typed
from prediction_oracle import (
    OPENS,
    bars_of,
    check_choices,
    clean,
    full_pass,
    main_panel,
    opened,
    press,
    prompt_ids,
    row_of,
    said,
    softmaxed,
)
from tolerances import SUMMED

from explorer.figures.formatting import hundredths, tenths
from explorer.panels import generation
from models.contract.edits import ZeroHead
from models.contract.results import Sampling
from models.runtime.caching import loaded
from models.runtime.run import Run

OPEN = "My sister"  # goes on in many ways
PROMPT = (
    "Shyam grew up in Nepal where he stayed until he was 20 years old therefore he speaks fluent"
)


slow = pytest.mark.slow
DECODER = {"text": PROMPT, "model": "decoder", "temperature": "0"}


@slow
def test_greedy_steps_are_those_of_full_passes_and_back_takes_them_back() -> None:
    app = opened("generate", **DECODER)
    ids = prompt_ids(PROMPT)
    ahead = main_panel(app)["finding"]
    for n in range(5):
        z = full_pass("decoder", ids)[-1]
        press(app, "write one")
        assert said(app)[-1] == z.argmax()
        assert len(row_of(app)["marked"]) == n + 1
        assert row_of(app)["texts"][-1] == tenths(float(softmaxed(z).max()))
        ids.append(int(z.argmax()))
        check_choices(app, ids, Sampling(0))
    wrote = loaded("decoder").tokenizer.text(ids).removeprefix(PROMPT).strip()
    assert f"continues: “{wrote}" in ahead
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
    app.select_slider(key="temperature slider").set_value("1").run()
    assert said(clean(app)) == first[:1]
    app.select_slider(key="temperature slider").set_value(f"{OPENS.temperature:g}").run()
    for _ in range(3):
        press(app, "write one")
    assert said(app) == first, "step by step the same, whatever was looked at in between"
    press(app, "take back")
    press(app, "write one")
    assert said(app) == first
    assert app.number_input(key="seed field").value == 3


@slow
def test_a_token_chosen_by_hand_is_written_and_reading_goes_on_from_it() -> None:
    app = opened("generate", **DECODER)
    chosen = int(bars_of(app)[4]["key"])
    again = opened("generate", **asked_of(app), said=str(chosen))
    assert len(row_of(again)["marked"]) == 1 and row_of(again)["texts"][-1].endswith(" #5")
    check_choices(again, [*prompt_ids(PROMPT), chosen], Sampling(0))
    press(again, "write one")
    assert said(again) == [chosen, full_pass("decoder", [*prompt_ids(PROMPT), chosen])[-1].argmax()]


def test_the_newest_tokens_weights_and_the_cache_are_those_of_a_full_pass() -> None:
    ids = prompt_ids(PROMPT)
    for _ in range(3):
        ids.append(int(full_pass("decoder", ids)[-1].argmax()))
    run, generated = Run("decoder", PROMPT), ".".join(map(str, ids[-3:]))
    model = loaded("decoder")
    recording = model.record(loaded("decoder").tokenizer.text(ids))
    stream = recording.streams[0]
    assert stream.ids.tolist() == ids, "this continuation is read as it was written"
    pattern = recording.attention[0].pattern[:, :, -1]
    panel = generation.attention(run, generated, layer=1, head=2)
    np.testing.assert_allclose(panel.table["weight"], pattern.ravel(), atol=SUMMED)
    places = np.ravel_multi_index([panel.table["layer"], panel.table["head"]], pattern.shape[:2])
    np.testing.assert_array_equal(places, np.arange(places.size) // pattern.shape[-1])
    grid, bars = panel.figures
    words = np.where(stream.special, -1, pattern)
    np.testing.assert_allclose(grid.values, words.max(-1), atol=SUMMED)
    assert list(grid.words) == [stream.tokens[at] for at in words.argmax(-1).ravel()]
    assert grid.marks == ((1, 2, ""),)
    assert bars.rows[0].values[0] == pytest.approx(pattern[1, 2].max(), abs=SUMMED)
    special = hundredths(float(pattern[1, 2][stream.special].sum()))
    assert panel.finding.endswith(f"Special tokens get {special}.")
    card, n = model.card, len(ids)
    made = generation.kv_cache(run, generated)
    facts = [fact for fact, _ in made.figures[0].facts]
    kept = 2 * card.n_layer * card.n_head * n * card.d_head
    assert facts[1] == f"{card.n_layer} × 2 × {card.n_head} × {n} × {card.d_head} = {kept:,}"
    assert facts[2] == f"{4 * kept:,}"
    assert f"would have read {n}. All 3 steps read 3 tokens instead of {3 * n - 3}." in made.finding
    tokens = generation.tokens(run, generated).table
    assert tokens["id"] == ids[-3:] and tokens["rank"] == [1, 1, 1]


@pytest.mark.slow
def test_what_cannot_be_generated_is_refused_in_a_sentence() -> None:
    run = Run("decoder", PROMPT)
    for make, reason in (
        (lambda: generation.next_token(run, "99999"), "must be token ids below 6,144"),
        (lambda: generation.next_token(run, "1.x"), "'1.x'"),
        (lambda: generation.next_token(run, seed=-1), "seed is -1"),
        (lambda: generation.attention(run, layer=9), "no layer 9"),
        (lambda: generation.tokens(Run("encoder", PROMPT)), "encoder continues no text"),
        (lambda: generation.tokens(Run("decoder", PROMPT, (ZeroHead(0, 0),))), "without edits"),
        (lambda: generation.kv_cache(Run("decoder", "cat " * 600)), "no room for more"),
    ):
        with pytest.raises(ValueError, match=reason):
            make()


@slow
def test_writing_ends_at_the_end_sign_and_at_the_models_length() -> None:
    eos = loaded("decoder").tokenizer.eos
    app = opened("generate", text=PROMPT, model="decoder", said=f"40.{eos}.50")
    assert said(app) == [40, eos]
    assert app.button(key="write one").disabled and app.button(key="write on").disabled
    assert "the model ends the text" in main_panel(app)["finding"]
    press(app, "take back")
    assert not app.button(key="write one").disabled
    text = "the cat " * 254  # and a space
    n = len(prompt_ids(text))
    app = opened("generate", text=text, model="decoder", temperature="0", said="100")
    assert n == 510
    press(app, "write one")
    assert "all that this model reads" in main_panel(app)["finding"]
    assert app.button(key="write one").disabled
    assert not main_panel(app)["figures"][1]["select"]
    check_choices(app, prompt_ids(text) + said(app), Sampling(0))
    press(app, "take back")
    assert not app.button(key="write one").disabled


@slow
def test_what_was_written_becomes_the_text_and_another_text_forgets_it() -> None:
    app = opened("generate", **DECODER)
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
