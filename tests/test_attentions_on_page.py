"""Every kind of attention on the Attention page."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import choose_model, page_at, panels_on
from conftest import AWKWARD
from javascript import arrived, unfolded
from streamlit.testing.v1 import AppTest
from test_pages import clean, opened, sent

from explorer.panels import attention as attention_panels
from explorer.state import cache, models
from explorer.text.markdown_escape import literal
from models.edits import MeanHead, UniformHead, ZeroHead, to_line
from models.example_texts import DEFAULT_TEXT
from models.recording import Attention, Recording

WORDS = "The cat saw a dog near the old house and the children were playing."


# ---- the page ----------------------------------------------------------------


def shown_truly(app: AppTest, recording: Recording, attention: Attention) -> None:
    """What grid and head were sent is this attention, cell by cell."""
    header, blocks = sent(app, "heads")
    queries, keys = attention.allowed.shape
    assert (len(header["tokens"]), len(header["keys"])) == (queries, keys)
    rows, columns = header["shape"][2:]
    cells = blocks["cells"].reshape(header["shape"])
    peak, fold = blocks["peak"].reshape(attention.pattern.shape[:2]), header["fold"]
    for row, column in {
        (0, 0),
        (rows - 1, columns - 1),
        (rows // 2, columns // 3),
    }:
        block = attention.pattern[
            :, :, row * fold : (row + 1) * fold, column * fold : (column + 1) * fold
        ].max(axis=(2, 3))
        assert (
            np.abs(peak * (cells[:, :, row, column] / 255) ** 2 - block) <= 0.004 * peak + 1e-7
        ).all()
    one, fine = sent(app, "head")
    weights = attention.pattern[tuple(one["at"])]
    values, unknown = arrived(fine, weights.shape)
    assert (np.abs(values - weights) <= unknown + 1e-4).all()
    np.testing.assert_array_equal(unfolded(fine, weights.shape), attention.allowed)
    np.testing.assert_array_equal(unfolded(blocks, weights.shape), attention.allowed)
    assert tuple(one["columns"]) == recording.stream(attention.key).tokens
    if attention.query == attention.key:
        assert (
            one["texts"] is None and tuple(one["rows"]) == recording.stream(attention.query).tokens
        )
    else:
        assert tuple(one["rows"][:-1]) == tuple(
            f"→ {token}" for token in recording.stream("decoder").tokens[1:]
        )
        assert len(one["texts"]) == len(one["rows"]) == queries


@pytest.mark.slow
@pytest.mark.parametrize("text", [WORDS, AWKWARD["empty"]])
def test_any_text_is_drawn_in_every_attention(text: str) -> None:
    for model in ("decoder", "translator"):
        app = clean(opened(text=text, model=model))
        recording = cache.record(model, text)
        for attention in recording.attention:
            if len(recording.attention) > 1:
                name = "" if attention is recording.attention[0] else attention.name
                clean(app.segmented_control(key="attention shown").set_value(name).run())
            shown_truly(app, recording, attention)
            assert not any("nan" in told.value.split() for told in app.caption)


@pytest.mark.slow
def test_the_last_row_is_named_after_what_the_model_would_say_next() -> None:
    app = clean(opened(model="translator", attention="cross", text=WORDS))
    recording = cache.record("translator", WORDS)
    logits = cache.logits(recording, "decoder", len(recording.stream("decoder").tokens) - 1)
    assert (
        sent(app, "head")[0]["rows"][-1]
        == "→ " + models.handle("translator").labels([logits.argmax()])[0]
    )
    assert any("Rows are named after the token they produce" in told.value for told in app.caption)


@pytest.mark.slow
def test_the_control_is_there_where_there_is_a_choice_and_says_who_looks_at_whom() -> None:
    assert not [each for each in clean(opened()).segmented_control if each.key == "attention shown"]
    app = clean(opened(model="translator"))
    assert app.segmented_control(key="attention shown").options == [
        "Encoder self-attention",
        "Decoder self-attention",
        "Cross-attention",
    ]
    for name, words in (
        ("", "Each source token attends to every source token"),
        ("decoder self", "cannot attend to later tokens"),
        ("cross", "The target attends to the source"),
    ):
        assert any(
            words in told.value
            for told in app.segmented_control(key="attention shown").set_value(name).run().caption
        )
    assert any(
        "cannot attend to later tokens" in told.value
        for told in clean(opened(model="decoder")).caption
    )


@pytest.mark.slow
def test_the_address_carries_attention_and_side_and_refuses_what_is_not_there() -> None:
    app = clean(opened(model="translator", attention="cross", source="2"))
    header, _ = sent(app, "head")
    assert header["selected"] == [-1, 2]
    asked = {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }
    assert asked == {"model": "translator", "attention": "cross", "source": "2"}
    row = sent(clean(opened(model="translator", attention="cross", token="1", source="2")), "head")[
        0
    ]
    assert row["selected"] == [1, -1], "one thing is held, the row"
    nothing_there = (
        {"model": "translator", "source": "2"},
        {"attention": "cross"},
        {"model": "translator", "attention": "<b>"},
    )
    for refused in (
        *nothing_there,
        {"model": "translator", "attention": "cross", "source": "9999"},
    ):
        app = clean(opened(**refused))
        assert not {"source"} & set(app.query_params)
        stays = app.query_params.get("attention", "")
        stays = stays[0] if isinstance(stays, list) else stays
        assert stays in ("", "decoder self", "cross"), "what is not there does not stay"


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["attention", "anatomy"])
def test_an_attention_that_was_chosen_stays_when_the_whole_page_runs_again(tab: str) -> None:
    app = clean(page_at(tab, model="translator"))
    picked = app.segmented_control(key="attention shown")
    other = next(name for name in ("", "cross") if name != picked.value)
    for name in (other, picked.value):
        app = clean(app.segmented_control(key="attention shown").set_value(name).run().run())
        assert app.segmented_control(key="attention shown").value == name


@pytest.mark.slow
def test_a_pattern_opens_its_strongest_head_and_keeps_one_that_has_it() -> None:
    app = clean(page_at("attention"))
    recording = cache.record("encoder", DEFAULT_TEXT)
    every = attention_panels.named_heads(recording, recording.attention[0])
    for pattern in ("previous", "next", ""):
        before = app.session_state["selected layer"], app.session_state["selected head"]
        clean(app.selectbox(key="pattern").set_value(pattern).run())
        now = app.session_state["selected layer"], app.session_state["selected head"]
        if not pattern:
            assert now == before, "all heads: the one on screen stays"
            continue
        best = max((head for head in every if head.name == pattern), key=lambda head: head.score)
        assert now == best[:2] != before
        place = f"Layer {best.layer}, head {best.head} ({pattern}"
        assert any(each.value.startswith(place) for each in app.markdown)
    other = next(head for head in every if head.name == "sink")
    app = clean(page_at("attention", layer=str(other.layer), head=str(other.head)))
    clean(app.selectbox(key="pattern").set_value("sink").run())
    assert (app.session_state["selected layer"], app.session_state["selected head"]) == other[:2]


def test_heads_that_an_edit_ablates_are_marked_in_their_own_attention() -> None:
    line = to_line((ZeroHead(1, 2), MeanHead(3, 0), UniformHead(0, 5)))
    app = clean(page_at("attention", edits=line))
    assert sorted(sent(app, "heads")[0]["ablated"]) == [10, 24]
    line = to_line((ZeroHead(1, 2, "cross"),))
    app = clean(page_at("attention", model="translator", attention="cross", edits=line))
    heads = cache.record("translator", DEFAULT_TEXT).attention[2].pattern.shape[1]
    assert sent(app, "heads")[0]["ablated"] == [heads + 2]
    app = clean(page_at("attention", model="translator", attention="decoder self", edits=line))
    assert sent(app, "heads")[0]["ablated"] == []


def test_another_attention_or_model_forgets_head_and_token() -> None:
    app = clean(opened(model="translator", attention="cross", layer="1", head="2", source="2"))
    clean(app.segmented_control(key="attention shown").set_value("decoder self").run())
    recording = cache.record("translator", DEFAULT_TEXT)
    first = attention_panels.opening_finding(recording, recording.attention[1])
    header = sent(app, "head")[0]
    assert "source" not in app.query_params
    assert (*header["at"], header["selected"][0]) == (*first.at, first.query), (
        "another attention is opened on its own finding"
    )
    clean(choose_model(app, "copy"))
    recording = cache.record("copy", DEFAULT_TEXT)
    name = attention_panels.default_attention(recording)
    first = attention_panels.opening_finding(
        recording, next(one for one in recording.attention if one.name == name)
    )
    header = sent(app, "head")[0]
    assert app.query_params.get("attention", "") == name != "decoder self"
    assert tuple(header["at"]) == first.at


@pytest.mark.slow
def test_in_a_long_text_the_held_column_travels_exactly() -> None:
    text = " ".join([WORDS] * 16)
    app = clean(
        opened(model="translator", attention="cross", source="30", layer="1", head="0", text=text)
    )
    attention = cache.record("translator", text).attention[2]
    header, blocks = sent(app, "head")
    if "exact" not in blocks:
        np.testing.assert_array_equal(blocks["column"], attention.pattern[1, 0, :, 30])
    app = clean(opened(model="decoder", token="30", layer="1", head="0", text=text))
    header, blocks = sent(app, "head")
    pattern = cache.record("decoder", text).attention[0].pattern[1, 0]
    np.testing.assert_array_equal(blocks["row"], pattern[30])
    np.testing.assert_array_equal(blocks["column"], pattern[:, 30])
    size = sum(block.nbytes for block in blocks.values())
    assert size <= 30_000 + pattern.size


@pytest.mark.slow
def test_a_typed_target_is_read_said_and_can_be_dropped() -> None:
    app = clean(
        opened(model="translator", attention="cross", text=WORDS, target="Un chat <b> rouge.")
    )
    header, _ = sent(app, "head")
    typed = cache.record("translator", WORDS, target="Un chat <b> rouge.")
    assert tuple(header["rows"][:-1]) == tuple(
        f"→ {token}" for token in typed.stream("decoder").tokens[1:]
    )
    captions = next(each["caption"] for each in panels_on(app) if each["panel"].endswith("head"))
    assert any("Un chat <b> rouge." in line for line in captions)
    assert any("typed target" in line for line in captions)
    clean(app.button(key="drop target").click().run())
    own = cache.record("translator", WORDS)
    header, _ = sent(app, "head")
    assert tuple(header["rows"][:-1]) == tuple(
        f"→ {token}" for token in own.stream("decoder").tokens[1:]
    )
    assert "target" not in app.query_params
    assert not any(
        "own" in button.label
        for button in clean(opened(model="decoder", text=WORDS, target="Un chat")).button
    ), "a model without a target has none to drop"


@pytest.mark.slow
def test_the_formula_of_a_held_column_is_its_strongest_cell() -> None:
    app = clean(
        opened(
            model="translator",
            attention="cross",
            source="2",
            layer="1",
            head="2",
            text=WORDS,
            att_right="Open",
        )
    )
    recording = cache.record("translator", WORDS)
    column = recording.attention[2].pattern[1, 2][:, 2]
    told = next(each.value for each in app.markdown if "How this weight is computed" in each.value)
    reads = recording.stream("decoder").tokens[column.argmax()]
    assert (
        f"**{column.max():.3f}**" in told
        and f"row {column.argmax()} (reads **{literal(reads)}**" in told
        and "(token 2)" in told
    )
