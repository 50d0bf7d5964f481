"""Every kind of attention on the Attention page."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import asked_of, choose_model, page_at, panels_on, told
from conftest import AWKWARD
from javascript import arrived, unfolded
from streamlit.testing.v1 import AppTest
from test_pages import clean, opened, sent
from tolerances import STORED

from explorer.analysis import head_naming, opening
from explorer.analysis.facts import RecordingFacts
from explorer.figures.kinds import HeadMatrices
from explorer.panels import attention as attention_panels
from models.contract.edits import MeanHead, UniformHead, ZeroHead, to_line
from models.contract.recording import Attention, Recording
from models.example_texts import DEFAULT_TEXT
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = "The cat saw a dog near the old house and the children were playing."


# ---- the page ----------------------------------------------------------------


def shown_truly(app: AppTest, recording: Recording, attention: Attention) -> None:
    """What grid and head were sent is this attention, cell by cell."""
    header, blocks = sent(app, "heads")
    queries, keys = attention.allowed[0].shape
    assert (len(header["tokens"]), len(header["keys"])) == (queries, keys)
    rows, columns = header["shape"][2:]
    cells = blocks["cells"].reshape(header["shape"])
    peak, fold = blocks["peak"].reshape(attention.pattern.shape[:2]), header["fold"]
    for row, column in {(0, 0), (rows - 1, columns - 1), (rows // 2, columns // 3)}:
        at = (slice(one * fold, (one + 1) * fold) for one in (row, column))
        block = attention.pattern[(..., *at)].max(axis=(2, 3))
        drawn = peak * (cells[:, :, row, column] / 255) ** 2
        assert (np.abs(drawn - block) <= 0.004 * peak + 1e-7).all()
    one, fine = sent(app, "head")
    weights = attention.pattern[tuple(one["at"])]
    values, unknown = arrived(fine, weights.shape)
    assert (np.abs(values - weights) <= unknown + 1e-4).all()
    np.testing.assert_array_equal(unfolded(fine, weights.shape), attention.allowed[0])
    np.testing.assert_array_equal(unfolded(blocks, weights.shape), attention.allowed[0])
    assert tuple(one["columns"]) == recording.stream(attention.key).tokens
    if attention.query == attention.key:
        tokens = recording.stream(attention.query).tokens
        assert one["texts"] is None and tuple(one["rows"]) == tokens
    else:
        assert tuple(one["rows"][:-1]) == produced(recording)
        assert len(one["texts"]) == len(one["rows"]) == queries


def produced(recording: Recording) -> tuple[str, ...]:
    """The names of the rows between two texts: what each of them produces."""
    return tuple(f"→ {token}" for token in recording.stream("decoder").tokens[1:])


@pytest.mark.slow
@pytest.mark.parametrize("text", [WORDS, AWKWARD["empty"]])
def test_any_text_is_drawn_in_every_attention(text: str) -> None:
    for model in ("decoder", "translator"):
        app = clean(opened(text=text, model=model, view="Both"))
        recording = loaded(model).record(text)
        for attention in recording.attention:
            if len(recording.attention) > 1:
                control = app.segmented_control(key="attention shown")
                clean(control.set_value(attention.name).run())
            shown_truly(app, recording, attention)
            assert "nan" not in told(app, "caption").split()


@pytest.mark.slow
def test_the_last_row_is_named_after_what_the_model_would_say_next() -> None:
    app = clean(opened(model="translator", attention="cross", text=WORDS))
    recording = loaded("translator").record(WORDS)
    logits = loaded(recording).logits(
        recording, "decoder", len(recording.stream("decoder").tokens) - 1
    )
    (following,) = loaded("translator").labels([int(logits.argmax())])
    assert sent(app, "head")[0]["rows"][-1] == f"→ {following}"
    assert "Rows are named after the token they produce" in told(app, "caption")


@pytest.mark.slow
def test_the_control_is_there_where_there_is_a_choice_and_says_who_looks_at_whom() -> None:
    decoder = clean(opened(model="decoder"))
    assert not [each for each in decoder.segmented_control if each.key == "attention shown"]
    assert "cannot attend to later tokens" in told(decoder, "caption")
    app = clean(opened(model="translator"))
    names = ["Encoder self-attention", "Decoder self-attention", "Cross-attention"]
    assert app.segmented_control(key="attention shown").options == names
    for name, words in (
        ("encoder self", "Each source token attends to every source token"),
        ("decoder self", "cannot attend to later tokens"),
        ("cross", "The target attends to the source"),
    ):
        app.segmented_control(key="attention shown").set_value(name).run()
        assert words in told(app, "caption")


@pytest.mark.slow
def test_the_address_carries_attention_and_side_and_refuses_what_is_not_there() -> None:
    cross = {"model": "translator", "attention": "cross"}
    app = clean(opened(**cross, source="2"))
    assert sent(app, "head")[0]["selected"] == [-1, 2]
    assert asked_of(app) == cross | {"source": "2", "text": DEFAULT_TEXT}
    row = sent(clean(opened(**cross, token="1", source="2")), "head")[0]
    assert row["selected"] == [1, -1], "one thing is held, the row"
    for refused in (
        {"attention": "cross"},
        {"model": "translator", "attention": "<b>"},
        cross | {"source": "9999"},
    ):
        asked = asked_of(clean(opened(**refused)))
        assert "source" not in asked, "what is not there does not stay"
        assert asked.get("attention", "") in ("", "decoder self", "cross")


@pytest.mark.slow
def test_an_attention_that_was_chosen_stays_when_the_whole_page_runs_again() -> None:
    app = clean(page_at("weight", model="translator"))
    picked = app.segmented_control(key="attention shown")
    other = next(name for name in ("encoder self", "cross") if name != picked.value)
    for name in (other, picked.value):
        app = clean(app.segmented_control(key="attention shown").set_value(name).run().run())
        assert app.segmented_control(key="attention shown").value == name


@pytest.mark.slow
def test_a_pattern_opens_its_strongest_head_and_keeps_one_that_has_it() -> None:
    app = clean(page_at("heads", layer="2", head="1"))
    recording = loaded("encoder").record(DEFAULT_TEXT)
    every = RecordingFacts(recording).named_heads(recording.attention[0].name)
    for pattern in ("previous", "next", ""):
        before = app.session_state["selected_layer"], app.session_state["selected_head"]
        clean(app.selectbox(key="pattern").set_value(pattern).run())
        now = app.session_state["selected_layer"], app.session_state["selected_head"]
        if not pattern:
            assert now == before, "all heads: the one on screen stays"
            continue
        best = max((head for head in every if head.name == pattern), key=lambda head: head.score)
        assert now == best[:2] != before
        place = f"Layer {best.layer}, head {best.head} ({pattern}"
        assert any(each.value.startswith(place) for each in app.markdown)
    other = next(head for head in every if head.name == "sink")
    app = clean(page_at("heads", layer=str(other.layer), head=str(other.head)))
    clean(app.selectbox(key="pattern").set_value("sink").run())
    assert (app.session_state["selected_layer"], app.session_state["selected_head"]) == other[:2]


@pytest.mark.slow
def test_heads_that_an_edit_ablates_are_marked_in_their_own_attention() -> None:
    line = to_line((ZeroHead(1, 2), MeanHead(3, 0), UniformHead(0, 5)))
    app = clean(page_at("heads", edits=line))
    assert sorted(sent(app, "heads")[0]["ablated"]) == [10, 24]
    line = to_line((ZeroHead(1, 2, "cross"),))
    app = clean(page_at("heads", model="translator", attention="cross", edits=line))
    heads = loaded("translator").record(DEFAULT_TEXT).attention[2].pattern.shape[1]
    assert sent(app, "heads")[0]["ablated"] == [heads + 2]
    app = clean(page_at("heads", model="translator", attention="decoder self", edits=line))
    assert sent(app, "heads")[0]["ablated"] == []


@pytest.mark.slow
def test_another_attention_or_model_forgets_head_and_token() -> None:
    app = clean(opened(model="translator", attention="cross", layer="1", head="2", source="2"))
    clean(app.segmented_control(key="attention shown").set_value("decoder self").run())
    recording = loaded("translator").record(DEFAULT_TEXT)
    first = opening.finding(recording, recording.attention[1])
    header = sent(app, "head")[0]
    assert "source" not in app.query_params
    # Another attention is opened on its own finding.
    # Its rows are words where its link is of a word of several tokens.
    starts = header["firsts"][0] if header["firsts"] else range(len(header["rows"]))
    row = max(at for at, start in enumerate(starts) if start <= first.query)
    assert (*header["at"], header["selected"][0]) == (*first.at, row)
    assert bool(header["firsts"]) == (max(RecordingFacts(recording).word_sizes(first)) > 1)
    clean(choose_model(app, "copy"))
    recording = loaded("copy").record(DEFAULT_TEXT)
    name = opening.attention(recording)
    chosen = next(one for one in recording.attention if one.name == name)
    first = opening.finding(recording, chosen)
    header = sent(app, "head")[0]
    assert app.query_params.get("attention", "") == name != "decoder self"
    assert tuple(header["at"]) == first.at


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["", "decoder self", "cross"])
@pytest.mark.parametrize(
    "text", ["The plumber fixed the sink before the guests arrived.", "Dogs bark."]
)
def test_the_headline_of_a_translation_has_its_weight(text: str, attention: str) -> None:
    app = clean(opened(model="translator", text=text, attention=attention))
    recording = loaded("translator").record(text)
    name = attention or opening.attention(recording)
    of = next(each for each in recording.attention if name in ("", each.name))
    assert f"one of {of.pattern.shape[0] * of.pattern.shape[1]} heads" in told(app)


@pytest.mark.slow
def test_in_a_long_text_the_held_column_travels_exactly() -> None:
    text = " ".join([WORDS] * 16)
    chosen = {"layer": "1", "head": "0", "text": text}
    app = clean(opened(model="translator", attention="cross", source="30", **chosen))
    attention = loaded("translator").record(text).attention[2]
    header, blocks = sent(app, "head")
    if "exact" not in blocks:
        np.testing.assert_array_equal(blocks["column"], attention.pattern[1, 0, :, 30])
    app = clean(opened(model="decoder", token="30", **chosen))
    header, blocks = sent(app, "head")
    pattern = loaded("decoder").record(text).attention[0].pattern[1, 0]
    np.testing.assert_array_equal(blocks["row"], pattern[30])
    np.testing.assert_array_equal(blocks["column"], pattern[:, 30])
    size = sum(block.nbytes for block in blocks.values())
    assert size <= 30_000 + pattern.size


@pytest.mark.slow
def test_a_typed_target_is_read_said_and_can_be_dropped() -> None:
    target = "Un chat <b> rouge."
    app = clean(opened(model="translator", attention="cross", text=WORDS, target=target))
    typed = loaded("translator").record(WORDS, target=target)
    assert tuple(sent(app, "head")[0]["rows"][:-1]) == produced(typed)
    captions = next(each["caption"] for each in panels_on(app) if each["panel"].endswith("head"))
    assert target in " ".join(captions) and "typed target" in " ".join(captions)
    clean(app.button(key="drop target").click().run())
    own = loaded("translator").record(WORDS)
    assert tuple(sent(app, "head")[0]["rows"][:-1]) == produced(own)
    assert "target" not in app.query_params
    decoder = clean(opened(model="decoder", text=WORDS, target="Un chat"))
    assert not any("own" in button.label for button in decoder.button), "it has none to drop"


@pytest.mark.slow
def test_the_formula_is_that_of_the_held_row_or_of_the_strongest_cell_of_a_column() -> None:
    def verified(**asked: str) -> str:
        app = clean(opened(layer="1", head="2", verify="1", text=WORDS, **asked))
        return next(p["finding"] for p in panels_on(app) if p["panel"] == "anatomy.verified")

    pattern = loaded("encoder").record(WORDS).attention[0].pattern[1, 2]
    assert verified(token="2").endswith(f"with weight {pattern[2].max():.3g}.")
    recording = loaded("translator").record(WORDS)
    column = recording.attention[2].pattern[1, 2][:, 2]
    said = verified(model="translator", attention="cross", source="2")
    assert said.endswith(f"with weight {column.max():.3g}.")
    assert recording.stream("encoder").tokens[2] in said


def drawn(figure: HeadMatrices) -> tuple[np.ndarray, np.ndarray]:
    """The cells and the largest weight of each head."""
    weights, shape = figure.weights, figure.shape
    return weights["cells"].reshape(shape), weights["peak"].reshape(shape[:2])


def test_quiet_tokens_have_no_column_and_colours_reach_to_the_largest_of_the_others() -> None:
    run = Run("encoder", DEFAULT_TEXT)
    of = run.recording().attention[0]
    quiet = head_naming.shared_sinks(run.recording(), of)
    assert quiet.any() and not quiet.all()
    (figure,) = attention_panels.heads(run, tokens="Quiet").figures
    cells, peak = drawn(figure)
    assert figure.quiet == tuple(np.flatnonzero(quiet)) and (cells[..., quiet] == 0).all()
    np.testing.assert_allclose(peak, of.pattern[..., ~quiet].max((2, 3)), rtol=STORED)
    rests = of.pattern[..., quiet].sum(-1).mean(-1).ravel() > attention_panels.RESTS
    assert figure.back == tuple(rests) and any(rests) and not all(rests)
    (loud,) = attention_panels.heads(run).figures
    whole, most = drawn(loud)
    assert loud.quiet == () and not any(loud.back) and (whole[..., quiet] > 0).any()
    np.testing.assert_allclose(most, of.pattern.max((2, 3)), rtol=STORED)


def test_below_each_head_of_a_long_text_stands_one_token_that_gets_most() -> None:
    run = Run("encoder", 8 * WORDS)
    of = run.recording().attention[0]
    (figure,) = attention_panels.heads(run).figures
    assert figure.fold > 1 and "most" not in figure.weights
    best = figure.weights["best"].reshape(of.pattern.shape[:3])
    np.testing.assert_array_equal(best, of.pattern.argmax(-1))
    short = attention_panels.heads(Run("encoder", WORDS)).figures[0]
    assert short.fold == 1 and "best" not in short.weights


def test_below_a_head_stands_that_a_large_weight_is_no_reason() -> None:
    """One that is chosen, and can be taken out."""
    captions = [each.value for each in page_at("heads", layer="1", head="5").caption]
    assert sum("A large weight is no reason" in each for each in captions) == 1
