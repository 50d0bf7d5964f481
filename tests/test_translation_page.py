"""The Translation page: every word with the row that made it, every number the model's."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as tree
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
import torch
from bounds import FOUR_DECIMALS, PASSED, PIXEL, STORED, SUMMED, TOTAL, TWO_DECIMALS
from conftest import HOSTILE, on_page, read_once, typed
from driver import MARKS, Visitor
from javascript import arrived
from streamlit.testing.v1 import AppTest

from explorer.analysis import translation as numbers
from explorer.components import wire
from explorer.memory import background, models, passes, shelf
from models import library
from models.examples import DEFAULT_TEXT
from models.recording import Attention, Recording, Stream, from_npz

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = DEFAULT_TEXT
FRENCH = "L'animal n'a pas traversé la rue."
slow = pytest.mark.slow


def opened(**asked: str) -> AppTest:
    """The page, opened at an address."""
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    for name, value in {"model": "translator", "text": SENTENCE, **asked}.items():
        app.query_params[name] = value
    app.switch_page(str(ROOT / "pages" / "translation.py"))
    return clean(app.run())


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the picture of that kind was sent."""
    protos = [element.proto for element in on_page(app)]
    told = [
        wire.decode(proto.bytes)
        for proto in protos
        if proto.component_name == "headlight.translation"
    ]
    return next(each for each in told if each[0]["kind"] == kind)


def translated(text: str, target: str | tuple[int, ...] | None = None) -> Recording:
    return library.record(models.handle("translator"), text, target=target)


@torch.inference_mode()
def log_probabilities(source: np.ndarray, read: np.ndarray) -> np.ndarray:
    """One full pass of the bare model, outside everything the page uses: log p (row, id)."""
    model = models.handle("translator").model
    memory = model.encode(torch.tensor(source)[None])
    return (
        model.logits(model.decode(torch.tensor(read)[None], memory)[0])
        .double()
        .log_softmax(-1)
        .numpy()
    )


def check_numbers(header: dict, blocks: dict[str, np.ndarray], recording: Recording) -> None:
    """Every number of the steps against the recording and a bare pass."""
    encoder, decoder = recording.stream("encoder"), recording.stream("decoder")
    n = len(header["says"])
    produced = np.append(decoder.ids[1:], encoder.ids[-1])[:n]
    expected = log_probabilities(encoder.ids, decoder.ids)[:n]
    own = expected[np.arange(n), produced]
    assert tuple(header["reads"]) == decoder.tokens and tuple(header["source"]) == encoder.tokens
    assert header["says"] == [*decoder.tokens[1:], "[EOS]"][:n]
    np.testing.assert_allclose(blocks["logprob"], own, atol=PASSED)
    np.testing.assert_allclose(blocks["logit"] - blocks["log_sum"], blocks["logprob"], atol=PASSED)
    # Two words as likely to the last digit may stand in either order.
    assert ((expected > own[:, None] + 1e-4).sum(1) <= blocks["rank"]).all() and (
        blocks["rank"] <= (expected > own[:, None] - 1e-4).sum(1)
    ).all()
    top = blocks["top_logprobs"].reshape(n, -1)
    np.testing.assert_allclose(top, -np.sort(-expected, axis=1)[:, : top.shape[1]], atol=PASSED)
    pattern = numbers.cross(recording).pattern
    layer, _, head = header["name"].partition(".")
    wanted = (
        pattern[int(layer), int(head)]
        if head
        else pattern[int(layer)].mean(0)
        if layer
        else pattern.mean((0, 1))
    )
    shown, unknown = arrived(blocks, (n, len(header["source"])))
    assert (np.abs(shown - wanted[:n]) <= unknown + 1e-4).all()


# ---- the arithmetic ----------------------------------------------------------


def test_a_token_is_as_likely_as_the_softmax_says_and_ranks_count_the_likelier_ones() -> None:
    logits = (
        np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.2, 0.2, 0.6]], dtype=np.float32))
        + 40
    )
    told = numbers.said(logits, np.array([0, 0]), top=2)
    np.testing.assert_allclose(np.exp(told.logprob), [0.1, 0.5], atol=STORED)
    assert told.rank.tolist() == [2, 0] and told.top_ids[0].tolist() == [2, 1]
    np.testing.assert_allclose(numbers.perplexity(told.logprob), (0.1 * 0.5) ** -0.5, rtol=SUMMED)


def test_views_are_heads_means_of_a_layer_and_the_mean_of_all() -> None:
    pattern = np.random.default_rng(0).dirichlet(np.ones(5), size=(2, 3, 4)).astype(np.float32)
    assert numbers.views(2, 3) == ("0.0", "0.1", "0.2", "0", "1.0", "1.1", "1.2", "1", "")
    np.testing.assert_array_equal(numbers.view(pattern, "1.2"), pattern[1, 2])
    np.testing.assert_allclose(
        numbers.view(pattern, "1"), (pattern[1, 0] + pattern[1, 1] + pattern[1, 2]) / 3, atol=STORED
    )
    np.testing.assert_allclose(numbers.view(pattern, "").sum(axis=1), 1, atol=STORED)
    np.testing.assert_allclose(
        numbers.view(pattern, ""),
        np.mean([pattern[layer, head] for layer in (0, 1) for head in (0, 1, 2)], axis=0),
        atol=STORED,
    )


def test_thumbnails_keep_the_largest_weights() -> None:
    pattern = np.zeros((1, 1, 100, 90), dtype=np.float32)
    pattern[0, 0, np.arange(100), np.arange(100) % 90] = 1
    small = numbers.small(pattern)
    assert small.shape[0] == 3 and max(small.shape[1:]) <= numbers.THUMBNAIL_SIDE
    assert (np.diagonal(small[0])[:25] == 1).all()


def test_a_word_is_what_stands_between_spaces_and_as_likely_as_its_pieces_together() -> None:
    recording = translated(SENTENCE, FRENCH)
    app_words = numbers.produced_words(recording, True)
    ids, labels = numbers.produced(recording, models.end("translator"))
    told = numbers.said(passes.all_logits(recording, "decoder"), ids)
    table = numbers.word_table(told, labels, app_words)
    assert table["word"] == [*FRENCH.split(), "[EOS]"]
    assert sum(table["log p"]) == pytest.approx(told.logprob.sum())
    first = app_words.count(0)
    assert table["p"][0] == pytest.approx(np.prod(np.exp(told.logprob[:first])))


# ---- the page ----------------------------------------------------------------


@slow
def test_it_opens_on_a_translation_and_names_each_row_after_what_it_says() -> None:
    header, blocks = sent(opened(), "steps")
    recording = translated(SENTENCE)
    assert header["reads"][0] == "[BOS]" and header["says"][-1] == "[EOS]" and header["step"] == 0
    assert header["says"][:-1] == header["reads"][1:], "what a row says the next row reads"
    assert header["says"] == [*recording.stream("decoder").tokens[1:], "[EOS]"]
    check_numbers(header, blocks, recording)
    assert (blocks["rank"] == 0).all(), "greedy takes the likeliest each time"


@slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_gives_a_picture_with_the_recordings_numbers(text: str) -> None:
    app = opened(text=text)
    for beams in ("1", "3"):
        app.segmented_control(key="beams").set_value(beams).run()
        header, blocks = sent(clean(app), "steps")
        best = background.search("translator", text, int(beams)).steps[-1][0]
        recording = translated(text, best.ids[: len(best.ids) - best.done])
        check_numbers(header, blocks, recording)
        assert len(header["says"]) == len(recording.stream("decoder").tokens) - (not best.done)


@slow
@pytest.mark.parametrize("name", ["1.2", "0", ""])
def test_the_matrix_is_the_head_or_mean_that_was_chosen(name: str) -> None:
    header, blocks = sent(opened(cross=name), "steps")
    assert header["name"] == name
    check_numbers(header, blocks, translated(SENTENCE))


@slow
@pytest.mark.parametrize("target", [FRENCH, "x", "[EOS] <b>", "שלום 💛", HOSTILE["markdown"]])
def test_ones_own_words_get_the_probabilities_of_a_full_pass(target: str) -> None:
    app = opened(target=target)
    header, blocks = sent(app, "steps")
    recording = translated(SENTENCE, target)
    assert (
        header["forced"]
        and header["says"][-1] == "[EOS]"
        and header["step"] == len(header["says"]) - 2
    )
    check_numbers(header, blocks, recording)
    total = float(blocks["logprob"].sum(dtype=np.float64))
    told = next(each.value for each in app.markdown if each.value.startswith("**Yours:**"))
    assert f"log p = {total:.3f}".replace("-", "−")[:-1] in told and "The model’s own" in told
    shown = float(re.search(r"perplexity ([0-9.,]+[0-9])", told)[1].replace(",", ""))
    assert shown == pytest.approx(np.exp(-total / len(header["says"])), rel=TOTAL, abs=TWO_DECIMALS)


@slow
def test_ones_own_words_over_the_limit_are_told_and_kept() -> None:
    app = opened()
    words = "la rue " * 300
    app.text_input(key="target").set_value(words).run()
    header, blocks = sent(clean(app), "steps")
    assert (
        len(header["reads"]) == 256 and len(header["says"]) == 255 and "[EOS]" not in header["says"]
    )
    assert any(
        "Your own words are" in told.value and "reads 256" in told.value for told in app.warning
    )
    assert app.text_input(key="target").value == words
    check_numbers(header, blocks, translated(SENTENCE, words))


@slow
def test_beams_are_ranked_by_what_the_list_says_and_each_is_the_models() -> None:
    app = opened(beams="4")
    header, _ = sent(app, "beams")
    held = background.search("translator", SENTENCE, 4).steps[-1]
    assert [beam["text"] for beam in header["beams"]] == [
        models.spelled("translator", beam.ids) for beam in held
    ]
    scores = [beam["score"] for beam in header["beams"]]
    assert scores == sorted(scores, reverse=True) and header["chosen"] == 0
    source = translated(SENTENCE).stream("encoder").ids
    bos = translated(SENTENCE).stream("decoder").ids[0]
    for listed, beam in zip(header["beams"], held):
        rows = log_probabilities(source, np.array([bos, *beam.ids[:-1]]))
        total = rows[np.arange(len(beam.ids)), list(beam.ids)].sum()
        assert listed["sum"] == pytest.approx(total, abs=TOTAL)
        assert listed["score"] == pytest.approx(total / ((5 + len(beam.ids)) / 6) ** 0.6, abs=TOTAL)
        assert listed["by"] * listed["score"] == pytest.approx(listed["sum"])


@slow
def test_the_tree_leads_from_the_start_to_every_hypothesis() -> None:
    app = opened(beams="3")
    grown, _ = sent(app, "tree")
    held = background.search("translator", SENTENCE, 3).steps[-1]
    for place, beam in enumerate(held):
        path, at = [], place
        for step in reversed(grown["steps"]):
            if not step[at]["carried"]:
                path.append(step[at]["label"])
            at = step[at]["parent"]
        assert path[::-1] == models.labels("translator", beam.ids)


@slow
def test_choosing_a_beam_shows_that_translation() -> None:
    header, blocks = sent(opened(beams="4", beam="3"), "steps")
    beam = background.search("translator", SENTENCE, 4).steps[-1][2]
    recording = translated(SENTENCE, models.spelled("translator", beam.ids))
    assert tuple(recording.stream("decoder").ids[1:]) == beam.ids[:-1]
    check_numbers(header, blocks, recording)
    assert sum(blocks["logprob"]) == pytest.approx(sum(beam.logprobs), abs=TOTAL)


@slow
def test_the_address_says_what_is_on_screen_and_opens_the_same() -> None:
    asked = {
        "beams": "3",
        "beam": "2",
        "step": "4",
        "cross": "1.2",
        "target": "",
        "text": "I love to eat pizza",
    }
    app = opened(**asked)
    kept = {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }
    assert kept == {name: value for name, value in asked.items() if value} | {"model": "translator"}
    header, _ = sent(app, "steps")
    assert header["step"] == 3 and header["name"] == "1.2"
    assert sent(opened(**kept), "steps")[0] == header
    forced = opened(target=FRENCH, step="2")
    assert (
        forced.query_params["target"] in (FRENCH, [FRENCH])
        and sent(forced, "steps")[0]["step"] == 1
    )


@slow
@pytest.mark.parametrize(
    "asked",
    [
        {"step": "999"},
        {"step": "-1", "beam": "9", "beams": "77"},
        {"cross": "9.9"},
        {"cross": "<b>", "step": "0"},
        {"beam": "2"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = opened(**asked)
    header, _ = sent(app, "steps")
    assert header["step"] == 0 and header["name"] == ""
    assert (
        set(app.query_params) <= {"model", "text", "step"}
        and app.query_params.get("step", ["0"])[0] == "0"
    )


@slow
def test_a_stopped_search_shows_what_is_there_and_goes_on_when_asked() -> None:
    text = "The old man and the sea were friends for a very long time."
    search = background.search("translator", text, 2)
    for _ in range(4):
        search.go_on()
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    for name, value in {"model": "translator", "beams": "2", "text": text}.items():
        app.query_params[name] = value
    app.session_state["stopped"] = ("translator", text, "2")
    app.switch_page(str(ROOT / "pages" / "translation.py"))
    clean(app.run())
    assert any("Stopped after 4 tokens" in told.value for told in app.info)
    assert len(sent(app, "steps")[0]["says"]) == 4 and not search.finished
    app.button(key="go on").click().run()
    assert sent(clean(app), "steps")[0]["says"][-1] == "[EOS]" and search.finished


@slow
def test_a_new_text_starts_at_the_first_word_and_an_example_lets_ones_own_words_go() -> None:
    app = opened(step="5", beams="2", beam="2")
    typed(app, "The dog is big.")
    assert sent(clean(app), "steps")[0]["step"] == 0 and sent(app, "beams")[0]["chosen"] == 0
    app.text_input(key="target").set_value("Le chien").run()
    assert sent(clean(app), "steps")[0]["forced"]
    app.session_state["examples"] = True
    app.run().pills(key="preset").set_value("Pizza").run()
    assert not sent(clean(app), "steps")[0]["forced"] and app.text_input(key="target").value == ""


@slow
def test_the_models_translation_can_be_taken_into_the_field_and_given_back() -> None:
    app = opened(text="I love to eat pizza")
    own = sent(app, "steps")
    next(each for each in app.button if each.label == "Edit the model’s").click().run()
    header, blocks = sent(clean(app), "steps")
    assert any("These are the model’s own words." in each.value for each in app.markdown), (
        "and no rival of themselves"
    )
    assert header["forced"] and header["says"] == own[0]["says"]
    np.testing.assert_allclose(blocks["logprob"], own[1]["logprob"], atol=SUMMED)
    next(each for each in app.button if each.label == "Back to the model’s own").click().run()
    assert not sent(clean(app), "steps")[0]["forced"]


@slow
def test_the_models_translation_is_taken_even_where_its_search_was_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened(text="I love to eat bread")
    monkeypatch.setattr(shelf, "_shelf", shelf.Shelf(shelf.SHELF_BYTES))
    next(each for each in app.button if each.label == "Edit the model’s").click().run()
    assert clean(app).session_state["target"] and sent(app, "steps")[0]["forced"]


@slow
def test_another_model_never_reads_what_was_typed() -> None:
    app = opened(target="Le chien")
    app.selectbox(key="model").set_value("reverse").run()
    assert clean(app).session_state["target"] == "" and not sent(app, "steps")[0]["forced"]


@slow
@pytest.mark.parametrize(
    "model", ["reverse-no-positions", "reverse-no-norm", "reverse-no-residual", "reverse-no-scale"]
)
def test_models_trained_without_a_part_translate_too(model: str) -> None:
    app = opened(model=model, text="b a c d")
    header, _ = sent(app, "steps")
    recording = library.record(read_once(model), "b a c d")
    assert (
        tuple(header["source"]) == recording.stream("encoder").tokens
        and tuple(header["reads"]) == recording.stream("decoder").tokens
    )
    assert any("softmax(q · k) over" in each.value for each in app.markdown) == (
        model == "reverse-no-scale"
    )


@slow
@pytest.mark.parametrize("model", ["minilm", "grammar"])
def test_models_of_one_stream_leave_the_page_to_the_translator(
    model: str, gpt2_on_pages: object
) -> None:
    app = opened(model=model)
    said = f"{model} writes no translation, so this page shows **translator**"
    assert any(each.value.startswith(said) for each in app.caption)
    assert sent(app, "steps")[0]["says"]


@slow
def test_a_caption_holds_what_was_read_and_not_all_that_was_pasted() -> None:
    app = opened(text="the dog " * 2000)
    line = next(each for each in sent(app, "steps")[0]["caption"] if each.startswith("Source: "))
    assert line.endswith(" …") and 250 < len(line.split()) < 260


@slow
def test_the_note_and_the_tables_hold_this_sentences_numbers() -> None:
    app = opened(text="I love to eat pizza", beams="2")
    _, blocks = sent(app, "steps")
    total = float(blocks["logprob"].sum(dtype=np.float64))
    note = next(each.value for each in app.markdown if "Saying a word" in each.value)
    shown = re.search(r"\*\*(−[\d.]+)\*\* nats", note).group(1)
    assert float(shown.replace("−", "-")) == pytest.approx(total, abs=TOTAL)
    frame = app.dataframe[0].value
    np.testing.assert_allclose(frame["log p"].to_numpy(dtype=float), blocks["logprob"], atol=SUMMED)
    app.segmented_control(key="table").set_value("Alignment").run()
    frame = clean(app).dataframe[0].value
    np.testing.assert_allclose(frame.iloc[:, 2:].to_numpy(dtype=float).sum(axis=1), 1, atol=PASSED)
    app.segmented_control(key="table").set_value("Beams").run()
    assert clean(app).dataframe[0].value["rank"].max() == 2


@slow
def test_captions_say_model_text_head_and_direction() -> None:
    told = " ".join(sent(opened(cross="1.0", target=FRENCH), "steps")[0]["caption"])
    assert (
        "model translator" in told
        and "layer 1, head 0" in told
        and SENTENCE in told
        and f"force-fed: {FRENCH}" in told
        and "source tokens to say" in told
    )


@slow
def test_a_model_that_does_not_translate_is_told_and_another_shown() -> None:
    app = opened(model="encoder", layer="2", head="3")
    told = [each for each in app.caption if "so this page shows **translator**" in each.value]
    assert len(told) == 1 and told[0].value.startswith("encoder ") and "copy" in told[0].help
    assert app.selectbox(key="model").value == app.session_state["model"] == "translator"
    assert app.query_params["model"] == "translator"
    assert sent(app, "steps")[0]["says"]
    # Asked for by its name it is told once more; on the next page it is there, with its head.
    clean(app.selectbox(key="model").set_value("encoder").run())
    assert app.selectbox(key="model").value == "translator"
    app.session_state["layer"], app.session_state["head"] = "2", "3"
    app.query_params.clear()
    clean(app.switch_page(str(ROOT / "pages" / "anatomy.py")).run())
    assert app.selectbox(key="model").value == "encoder"
    assert not any("this page shows" in each.value for each in app.caption)


def test_a_recording_without_cross_attention_is_refused() -> None:
    one = np.ones((1, 1, 1, 1), dtype=np.float32)
    alone = Attention("self", "a", "a", one, one, np.ones((1, 1), dtype=bool), one, one, one)
    stream = Stream(
        "a",
        ("x",),
        np.zeros(1, int),
        np.zeros(1, bool),
        np.zeros((1, 2), int),
        ("embed",),
        np.zeros((1, 1, 1)),
    )
    with pytest.raises(ValueError, match="no cross-attention"):
        numbers.cross(Recording(models.handle("translator").card, "", (), (stream,), (alone,)))


# ---- journeys in a browser ---------------------------------------------------


def journey(test: Callable) -> Callable:
    for mark in MARKS:
        test = mark(test)
    return test


def visited(visitor: Visitor, **asked: str) -> Visitor:
    """The page in a browser, drawn and at rest."""
    asked = {"model": "translator", "text": SENTENCE, **asked}
    visitor.page.goto(f"{visitor.server}/translation?{urlencode(asked)}")
    visitor.page.wait_for_selector(".translation[data-step]")
    at_rest(visitor)
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = visitor.wrong()
    return visitor


def at_rest(visitor: Visitor) -> None:
    visitor.page.wait_for_selector("[data-test-script-state=notRunning]")


def weights_shown(visitor: Visitor) -> np.ndarray:
    """The weights of the source chips, as drawn."""
    return np.array(
        [
            float(weight)
            for weight in visitor.page.locator(".source .chip").evaluate_all(
                "all => all.map(one => one.dataset.weight)"
            )
        ]
    )


def output(visitor: Visitor) -> list[str]:
    return visitor.page.locator(".output .chip .label").all_inner_texts()


def check_step(
    visitor: Visitor, step: int, recording: Recording, matrix: np.ndarray, logprobs: np.ndarray
) -> None:
    """Slider, word, row, tint and probability are all of the token that row `step` (from 0) of the
    decoder produces."""
    page = visitor.page
    produced = [*recording.stream("decoder").tokens[1:], "[EOS]"]
    assert page.locator(".stepper input").input_value() == str(step + 1)
    assert page.locator(".stepper .where").inner_text() == f"Step {step + 1} of {len(produced)}"
    assert page.locator(".output .chip[aria-pressed=true]").get_attribute("data-at") == str(step)
    assert page.locator(".output .chip.now .label").inner_text() == produced[step]
    assert page.locator(".area i.row").get_attribute("data-at") == str(step)
    assert page.locator(".says-axis .on").inner_text() == f"→ {produced[step]}"
    assert page.locator(".reading .says b").first.inner_text() == produced[step]
    assert (
        page.locator(".reading .read").inner_text().split()[-1]
        == recording.stream("decoder").tokens[step]
    ), "the row reads the token before"
    assert float(page.locator(".reading .says strong").inner_text()) == pytest.approx(
        np.exp(logprobs[step]), abs=PASSED
    )
    np.testing.assert_allclose(weights_shown(visitor), matrix[step], atol=STORED)
    # As drawn: the darkest chip is the source token with the largest weight, and the row's outline
    # lies on the row of the matrix.
    tints = page.locator(".source .chip").evaluate_all(
        "all => all.map(one => "
        "getComputedStyle(one).backgroundColor.match(/[0-9]+/g).map(Number).reduce((a, b) => "
        "a + b))"
    )
    assert tints[int(matrix[step].argmax())] == min(tints)
    row, area = page.locator(".area i.row").bounding_box(), page.locator(".area").bounding_box()
    assert row["y"] - area["y"] == pytest.approx(step * area["height"] / len(produced), abs=PIXEL)


@journey
def test_every_step_shows_the_row_that_produced_its_word(visitor: Visitor) -> None:
    text = "I love to eat pizza"
    recording = translated(text)
    decoder, encoder = recording.stream("decoder"), recording.stream("encoder")
    produced = np.append(decoder.ids[1:], encoder.ids[-1])
    logprobs = log_probabilities(encoder.ids, decoder.ids)[np.arange(len(produced)), produced]
    pattern = numbers.cross(recording).pattern
    visited(visitor, text=text)
    for step in range(len(produced)):
        check_step(visitor, step, recording, pattern.mean((0, 1)), logprobs)
        if step < len(produced) - 1:
            visitor.page.locator(".next").click()
    visitor.page.wait_for_url(f"**step={len(produced)}*")
    visitor.page.locator(".tile[data-view='1.2']").click()
    visitor.page.wait_for_selector(".alignment h4:has-text('layer 1, head 2')")
    visitor.page.locator(".output .chip").nth(2).click()
    check_step(visitor, 2, recording, pattern[1, 2], logprobs)
    visitor.page.locator(".area").click(position={"x": 5, "y": 5})
    check_step(visitor, 0, recording, pattern[1, 2], logprobs)
    visitor.page.locator(".source .chip").nth(4).click()
    check_step(visitor, int(pattern[1, 2][:, 4].argmax()), recording, pattern[1, 2], logprobs)


@journey
def test_stepping_and_playing_need_no_server_and_keys_do_all(visitor: Visitor) -> None:
    messages: list[int] = []
    visitor.page.on(
        "websocket",
        lambda socket: socket.on("framesent", lambda frame: messages.append(len(frame))),
    )
    visited(visitor)
    page, n = visitor.page, len(output(visitor))
    messages.clear()
    page.locator(".output .chip").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "PageDown"):
        page.keyboard.press(key)
    assert page.locator(".where").inner_text() == f"Step 3 of {n}"
    page.locator(".stepper input").focus()
    page.keyboard.press("End")
    assert page.locator(".where").inner_text() == f"Step {n} of {n}"
    page.locator(".play").click()
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.where')?.textContent.startsWith('Step 2 '))"
    )
    assert page.locator(".play").inner_text() == "Pause"
    assert not messages, "while it plays the server hears nothing"
    page.locator(".play").click()
    page.wait_for_url("**step=*")
    at_rest(visitor)
    assert page.locator(".play").inner_text() == "Play"
    page.locator(".alignment .scroll").focus()
    for key in (
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "ArrowUp",
        "ArrowDown",
        "ArrowRight",
        "ArrowRight",
    ):
        page.keyboard.press(key)
    weight = numbers.cross(translated(SENTENCE)).pattern.mean((0, 1))[1, 1]
    assert float(page.locator(".alignment .value strong").inner_text()) == pytest.approx(
        float(weight), abs=FOUR_DECIMALS
    )


@journey
def test_a_beam_is_chosen_and_the_link_opens_it_again(
    visitor: Visitor, browser, server: str
) -> None:
    visited(visitor, beams="4")
    page = visitor.page
    search = background.search("translator", SENTENCE, 4)
    while not search.finished:
        search.go_on()
    held = search.steps[-1]
    page.locator(".hypothesis").nth(2).click()
    page.wait_for_selector(".hypothesis:nth-child(3)[aria-checked=true]")
    page.wait_for_url("**beam=3**")
    at_rest(visitor)
    page.locator(".next").click()
    page.wait_for_url("**step=2**")
    said = output(visitor)
    assert len(said) == len(held[2].ids) and page.locator(".tree .generation.on").count() == 1
    other = Visitor(browser, server)
    other.page.goto(page.url)
    other.page.wait_for_selector(".translation[data-step='2']")
    at_rest(other)
    assert (
        output(other) == said
        and other.page.locator(".hypothesis[aria-checked=true] .rank").inner_text() == "3"
    )
    np.testing.assert_array_equal(weights_shown(other), weights_shown(visitor))
    other.context.close()


@journey
def test_ones_own_french_is_scored_as_it_is_typed_and_back_undoes_it(visitor: Visitor) -> None:
    visited(visitor)
    page, own = visitor.page, output(visitor)
    field = page.get_by_label("Your own French", exact=True)
    field.press_sequentially("Le chat", delay=20)
    page.wait_for_url("**target=Le+chat**")
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.output .chip.off'))"
    )
    at_rest(visitor)
    recording = translated(SENTENCE, "Le chat")
    assert output(visitor) == [*recording.stream("decoder").tokens[1:], "[EOS]"]
    ids, _ = numbers.produced(recording, models.end("translator"))
    rows = log_probabilities(recording.stream("encoder").ids, recording.stream("decoder").ids)
    rank = int((rows[1] > rows[1, ids[1]]).sum())
    said = page.locator(".reading .says").inner_text()
    assert rank > 0 and f"rank {rank + 1:,} of" in said and "it would have said" in said
    assert page.locator(".candidate.here .rank").inner_text() == f"{rank + 1:,}"
    page.go_back()
    visitor.until(
        "n => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelectorAll('.output .chip').length === n)",
        len(own),
    )
    assert output(visitor) == own and field.input_value() == ""


@journey
def test_the_alignment_leaves_as_csv_svg_png_and_the_recording_as_npz(visitor: Visitor) -> None:
    target = "Le <b>chat</b> & le chien"
    visited(visitor, target=target, cross="1.2")
    recording = translated(SENTENCE, target)

    def download(name: str) -> bytes:
        return visitor.export(name).read_bytes()

    words = [
        element.text
        for element in tree.fromstring(download("Alignment as SVG").decode()).iter()
        if element.tag.endswith("text")
    ]
    assert any("layer 1, head 2" in word for word in words) and any(
        "<b>chat</b>" in word for word in words
    )
    png = download("Alignment as PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and int.from_bytes(png[16:20], "big") >= 1000
    rows = list(
        csv.reader(
            line
            for line in download("Alignment as CSV").decode().splitlines()
            if not line.startswith("#")
        )
    )
    np.testing.assert_array_equal(
        np.array([row[4:-1] for row in rows[1:]], dtype=np.float32),
        numbers.cross(recording).pattern[1, 2],
    )
    assert [row[2] for row in rows[1:]] == [
        *recording.stream("decoder").tokens[1:],
        "[EOS]",
    ] and rows[1][1] == "[BOS]"
    assert from_npz(download("The whole recording as NPZ")) == recording


@journey
def test_a_phone_shows_all_of_it_without_sideways_scrolling(browser, server: str) -> None:
    phone = Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    visited(phone, beams="5", text=SENTENCE + " The red fox saw a small bird.", step="3")
    page = phone.page
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("[data-testid=stMain]").evaluate("e => e.scrollWidth <= e.clientWidth")
    for what in (
        ".chip",
        ".hypothesis",
        ".tile",
        ".node",
        ".stepper *",
        ".candidate",
        ".alignment .scroll",
    ):
        boxes = page.locator(what).evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
        )
        assert boxes and all(left >= 0 and right <= 390 for left, right in boxes), what
    page.locator(".output .chip").nth(4).tap()
    assert page.locator(".where").inner_text().startswith("Step 5 ")
    phone.context.close()


@journey
@pytest.mark.parametrize("name", ["script", "bold", "bidi override", "empty"])
def test_hostile_words_on_both_sides_are_shown_as_they_are_and_nothing_runs(
    name: str, visitor: Visitor
) -> None:
    visited(visitor, text=HOSTILE[name], target=HOSTILE[name])
    assert visitor.page.title() == "Translate · Headlight"
    recording = translated(HOSTILE[name], HOSTILE[name] or None)
    assert (
        tuple(visitor.page.locator(".source .chip .label").all_inner_texts())
        == recording.stream("encoder").tokens
    )
    assert output(visitor) == [*recording.stream("decoder").tokens[1:], "[EOS]"]
