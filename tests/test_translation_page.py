"""The Translation page: every word with the row that made it, whatever is asked of it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from app_harness import ROOT, aimed, go
from conftest import AWKWARD, HOSTILE, read_once, typed
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, SUMMED, TOTAL, TWO_DECIMALS
from translation_harness import (
    SENTENCE,
    check_numbers,
    clean,
    log_probabilities,
    opened,
    sent,
    translated,
)

from explorer.analysis import translation
from explorer.state import cache, jobs, models
from models.recording import Attention, Recording, Stream
from models.results import Sampling, SeededSampling

FRENCH = "L'animal n'a pas traversé la rue."


slow = pytest.mark.slow


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
def test_a_translation_is_drawn_by_its_seed_and_the_next_one_by_the_next() -> None:
    app = opened(beams="Drawn", temperature="1", seed="7")

    def said() -> list[str]:
        return sent(app, "steps")[0]["says"]

    def wanted(seed: int) -> list[str]:
        beam = jobs.search("translator", SENTENCE, SeededSampling(Sampling(1.0), seed)).steps[-1][0]
        assert beam.done
        return [*translated(SENTENCE, beam.ids[:-1]).stream("decoder").tokens[1:], "[EOS]"]

    first = said()
    assert first == wanted(7)
    next(each for each in app.button if each.label == "Sample again").click()
    clean(app.run())
    assert app.session_state.seed == "8" and said() == wanted(8) != first
    app.select_slider(key="temperature").set_value("0")
    clean(app.run())
    assert said() == sent(opened(beams="1"), "steps")[0]["says"], "nothing is left to chance"


@slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_gives_a_picture_with_the_recordings_numbers(text: str) -> None:
    app = opened(text=text)
    for beams in ("1", "3"):
        app.segmented_control(key="beams").set_value(beams).run()
        header, blocks = sent(clean(app), "steps")
        best = jobs.search("translator", text, int(beams)).steps[-1][0]
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
    told = next(each.value for each in app.markdown if each.value.startswith("**Your output:**"))
    assert f"log p = {total:.3f}".replace("-", "−")[:-1] in told and "Model output" in told
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
    assert any("Your text has" in told.value and "reads 256" in told.value for told in app.warning)
    assert app.text_input(key="target").value == words
    check_numbers(header, blocks, translated(SENTENCE, words))


@slow
def test_beams_are_ranked_by_what_the_list_says_and_each_is_the_models() -> None:
    app = opened(beams="4")
    header, _ = sent(app, "beams")
    held = jobs.search("translator", SENTENCE, 4).steps[-1]
    assert [beam["text"] for beam in header["beams"]] == [
        models.decode("translator", beam.ids) for beam in held
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
    held = jobs.search("translator", SENTENCE, 3).steps[-1]
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
    beam = jobs.search("translator", SENTENCE, 4).steps[-1][2]
    recording = translated(SENTENCE, models.decode("translator", beam.ids))
    assert tuple(recording.stream("decoder").ids[1:]) == beam.ids[:-1]
    check_numbers(header, blocks, recording)
    assert sum(blocks["logprob"]) == pytest.approx(sum(beam.logprobs), abs=TOTAL)


MINE = {"model": "translator", "tab": "translate"}


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
    assert kept == {name: value for name, value in asked.items() if value} | MINE
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
        set(app.query_params) <= {"model", "text", "step", "tab"}
        and app.query_params.get("step", ["0"])[0] == "0"
    )


@slow
def test_a_stopped_search_shows_what_is_there_and_goes_on_when_asked() -> None:
    text = "The old man and the sea were friends for a very long time."
    search = jobs.search("translator", text, 2)
    for _ in range(4):
        search.resume()
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=60)
    app.session_state["stopped"] = ("translator", text, "2")
    clean(aimed(app, "translate", model="translator", beams="2", text=text).run())
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
    next(each for each in app.button if each.label == "Edit this translation").click().run()
    header, blocks = sent(clean(app), "steps")
    assert any("It equals the model’s translation." in each.value for each in app.markdown), (
        "and no rival of themselves"
    )
    assert header["forced"] and header["says"] == own[0]["says"]
    np.testing.assert_allclose(blocks["logprob"], own[1]["logprob"], atol=SUMMED)
    next(
        each for each in app.button if each.label == "Back to the model’s translation"
    ).click().run()
    assert not sent(clean(app), "steps")[0]["forced"]


@slow
def test_the_models_translation_is_taken_even_where_its_search_was_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened(text="I love to eat bread")
    monkeypatch.setattr(cache, "_cache", cache.Cache(cache.CACHE_BYTES))
    next(each for each in app.button if each.label == "Edit this translation").click().run()
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
    recording = read_once(model).record("b a c d")
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
    said = f"{model} does not translate, so this page shows **translator**"
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
    note = next(each.value for each in app.markdown if "**Prediction.**" in each.value)
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
        and FRENCH in told
        and "weights to the source tokens" in told
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
    clean(go(app, "weight"))
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
        translation.cross_attention(
            Recording(models.handle("translator").card, "", (), (stream,), (alone,))
        )
