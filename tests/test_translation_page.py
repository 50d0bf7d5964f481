"""The Translate tab: every token with the row that made it, whatever is asked of it."""

from __future__ import annotations

import numpy as np
import pytest
from app_harness import MAIN, aimed, asked_of, choose_model, clean, go, told
from conftest import AWKWARD, HOSTILE, read_once, typed
from streamlit.testing.v1 import AppTest
from tolerances import TOTAL
from translation_harness import (
    SENTENCE,
    check_numbers,
    frame,
    log_probabilities,
    opened,
    output,
    sent,
    step,
    translated,
)

from explorer.analysis import translation
from explorer.figures.formatting import fixed
from models.contract.results import Sampling, SeededSampling
from models.own import drafts
from models.runtime import caching
from models.runtime.cache import Cache
from models.runtime.caching import loaded

FRENCH = "L'animal n'a pas traversé la rue."
slow = pytest.mark.slow


def press(app: AppTest, label: str) -> AppTest:
    """The app after a button was pressed."""
    next(each for each in app.button if each.label == label).click()
    return clean(app.run())


@slow
def test_it_opens_on_the_step_with_the_largest_weight() -> None:
    app, recording = opened(), translated(SENTENCE)
    assert output(app) == [*recording.stream("decoder").tokens[1:], "[EOS]"]
    check_numbers(app, recording)
    weights = translation.cross_attention(recording).pattern.mean((0, 1))[: len(output(app)) - 1]
    assert step(app) == int(weights.max(axis=1).argmax()) + 1
    key = recording.stream("encoder").tokens[int(weights[step(app) - 1].argmax())]
    finding = sent(app, "alignment")[0]["finding"]
    for part in (output(app)[step(app) - 1], f"“{key}”", fixed(float(weights.max()))):
        assert part in finding


@slow
def test_a_translation_is_drawn_by_its_seed_and_the_next_one_by_the_next() -> None:
    app = opened(beams="Drawn", temperature="1", seed="7")

    def wanted(seed: int) -> list[str]:
        beam = drafts.search("translator", SENTENCE, SeededSampling(Sampling(1.0), seed)).steps[-1][
            0
        ]
        assert beam.done
        return [*translated(SENTENCE, beam.ids[:-1]).stream("decoder").tokens[1:], "[EOS]"]

    first = output(app)
    assert first == wanted(7)
    press(app, "Sample again")
    assert app.session_state.seed == "8" and output(app) == wanted(8) != first
    app.select_slider(key="temperature slider").set_value("0")
    clean(app.run())
    assert output(app) == output(opened()), "nothing is left to chance"


@slow
@pytest.mark.parametrize(("text", "beams"), [(AWKWARD["empty"], 1), (AWKWARD["marks"], 3)])
def test_any_text_gives_a_picture_with_the_recordings_numbers(text: str, beams: int) -> None:
    app = opened(text=text, beams=str(beams))
    best = drafts.search("translator", text, beams).steps[-1][0]
    recording = translated(text, best.ids[: len(best.ids) - best.done])
    check_numbers(app, recording)
    assert len(output(app)) == len(recording.stream("decoder").tokens) - (not best.done)


@slow
@pytest.mark.parametrize("name", ["1.2", "0"])
def test_the_weights_are_those_of_the_head_or_mean_that_was_chosen(name: str) -> None:
    app = opened(cross=name)
    check_numbers(app, translated(SENTENCE), name)
    _, heads = frame(app)["figures"]
    (selected,) = [row for row in heads["rows"] if row["selected"]]
    assert selected["key"] == name
    matrix = sent(opened(cross=name, cross_as="Matrix"), "alignment")[0]["figures"][0]["whole"]
    assert matrix["kind"] == "matrix" and list(matrix["rows"]) == output(app)


@slow
@pytest.mark.parametrize("target", [FRENCH, f"[EOS] {HOSTILE['markdown']} <b>"])
def test_ones_own_words_get_the_probabilities_of_a_full_pass(target: str) -> None:
    app = opened(target=target)
    recording = translated(SENTENCE, target)
    assert output(app)[-1] == "[EOS]" and step(app) == len(output(app)) - 1
    check_numbers(app, recording)
    encoder, decoder = recording.stream("encoder"), recording.stream("decoder")
    rows = log_probabilities(encoder.ids, decoder.ids)
    total = rows[np.arange(len(rows)), np.append(decoder.ids[1:], encoder.ids[-1])].sum()
    finding = sent(app, "probability")[0]["finding"]
    assert f"log p = {fixed(float(total), 3)[:-1]}" in finding and "model’s own" in finding


@slow
def test_ones_own_words_over_the_limit_are_named_and_kept() -> None:
    app = opened()
    words = "la rue " * 300
    clean(app.text_input(key="target").set_value(words).run())
    assert len(output(app)) == 255 and "[EOS]" not in output(app)
    assert "Your text has" in told(app, "warning") and "reads 256" in told(app, "warning")
    assert app.text_input(key="target").value == words


@slow
def test_beams_are_ranked_each_is_the_models_and_the_chosen_one_is_shown() -> None:
    app = opened(beams="4", beam="2")
    table, tree = sent(app, "hypotheses")[0]["figures"]
    beams = drafts.search("translator", SENTENCE, 4).steps[-1]
    texts = [loaded("translator").tokenizer.text(beam.ids) for beam in beams]
    assert [row[1] for row in table["rows"]] == texts
    recording = translated(SENTENCE, texts[1])
    assert tuple(recording.stream("decoder").ids[1:]) == beams[1].ids[:-1]
    check_numbers(app, recording)
    source = translated(SENTENCE).stream("encoder").ids
    bos = translated(SENTENCE).stream("decoder").ids[0]
    for row, beam in zip(table["rows"], beams):
        rows = log_probabilities(source, np.array([bos, *beam.ids[:-1]]))
        total = rows[np.arange(len(beam.ids)), list(beam.ids)].sum()
        assert sum(beam.logprobs) == pytest.approx(total, abs=TOTAL)
        score = total / ((5 + len(beam.ids)) / 6) ** 0.6
        assert (row[3], row[5]) == (fixed(sum(beam.logprobs), 3), fixed(beam.score, 3))
        assert beam.score == pytest.approx(score, abs=TOTAL)
    assert table["selected"] == 1
    parents = {edge["target"]: edge["source"] for edge in tree["edges"]}
    path, at = [], tree["selected"]
    while at:
        path.append(tree["nodes"][at])
        at = parents[at]
    assert path[::-1] == loaded("translator").labels(beams[1].ids)


@slow
def test_the_address_says_what_is_on_screen_and_opens_the_same() -> None:
    text = "I love to eat pizza"
    asked = {"beams": "3", "beam": "2", "step": "4", "cross": "1.2", "text": text}
    app = opened(**asked, cross_as="Matrix")
    kept = asked_of(app)
    assert kept == asked | {"model": "translator", "tab": "translate", "cross_as": "Matrix"}
    assert step(app) == 4
    assert sent(opened(**kept), "alignment")[0] == sent(app, "alignment")[0]
    forced = opened(target=FRENCH, step="2")
    assert asked_of(forced)["target"] == FRENCH and step(forced) == 2


@slow
@pytest.mark.parametrize(
    "asked",
    [
        {"step": "999", "beam": "2"},
        {"step": "-1", "beam": "9", "beams": "77", "cross": "9.9"},
        {"cross": "<b>", "step": "0", "cross_as": "?"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = opened(**asked)
    assert output(app) == output(opened())
    assert set(app.query_params) <= {"model", "text", "step", "tab"}


@slow
def test_a_stopped_search_shows_what_is_there_and_goes_on_when_asked() -> None:
    text = "The old man and the sea were friends for a very long time."
    search = drafts.search("translator", text, 2)
    for _ in range(4):
        search.resume()
    app = AppTest.from_file(MAIN, default_timeout=60)
    app.session_state["stopped_search"] = ("translator", text, "2")
    clean(aimed(app, "translate", model="translator", beams="2", text=text).run())
    assert "Stopped after 4 tokens" in told(app, "info")
    assert len(output(app)) == 4 and not search.finished
    clean(app.button(key="go on").click().run())
    assert output(app)[-1] == "[EOS]" and search.finished


@slow
def test_a_new_text_starts_anew_and_an_example_lets_ones_own_words_go() -> None:
    app = opened(step="5", beams="2", beam="2")
    clean(typed(app, "The dog is big."))
    assert not app.session_state.step and not app.session_state.beam
    clean(app.text_input(key="target").set_value("Le chien").run())
    assert output(app)[:2] == ["Le", "chien"]
    app.session_state["examples"] = True
    clean(app.run().pills(key="preset").set_value("Pizza").run())
    assert app.text_input(key="target").value == ""


@slow
def test_the_models_translation_can_be_taken_into_the_field_and_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = opened(text="I love to eat pizza")
    own = output(app)
    monkeypatch.setattr(caching, "cache", Cache(caching.cache.limit))  # its search is let go
    press(app, "Edit this translation")
    assert output(app) == own and app.session_state["target"]
    assert "equals the model’s own" in sent(app, "probability")[0]["finding"]
    press(app, "Back to the model’s translation")
    assert not app.session_state["target"] and output(app) == own


@slow
def test_another_model_never_reads_what_was_typed() -> None:
    app = opened(target="Le chien")
    choose_model(app, "reverse")
    assert clean(app).session_state["target"] == "" and "Le" not in output(app)


@slow
@pytest.mark.parametrize("model", ["reverse-no-residual", "reverse-no-scale"])
def test_models_trained_without_a_part_translate_too(model: str) -> None:
    app = opened(model=model, text="b a c d")
    recording = read_once(model).record("b a c d")
    header = sent(app, "alignment")[0]
    assert tuple(header["figures"][0]["whole"]["right"]) == recording.stream("encoder").tokens
    details = " ".join(sent(app, "probability")[0]["details"])
    assert ("softmax(q · k) over" in details) == (model == "reverse-no-scale")


@slow
def test_a_caption_says_model_text_head_and_no_more_than_was_read() -> None:
    caption = " ".join(sent(opened(cross="1.0", target=FRENCH), "alignment")[0]["caption"])
    for part in ("model translator", "layer 1, head 0", SENTENCE, FRENCH, "typed by a reader"):
        assert part in caption
    long = sent(opened(text="the dog " * 2000), "alignment")[0]["caption"]
    line = next(each for each in long if each.startswith("Text: "))
    assert line.endswith(" …") and 250 < len(line.split()) < 260


@slow
def test_a_model_that_does_not_translate_is_named_and_another_shown() -> None:
    app = opened(model="encoder", layer="2", head="3")
    notes = [each for each in app.caption if "so this page shows **translator**" in each.value]
    assert len(notes) == 1 and notes[0].value.startswith("encoder ") and "copy" in notes[0].help
    assert app.session_state["model"] == "translator"
    assert app.query_params["model"] == "translator" and output(app)
    # Asked for by its name it is told once more; on the next page it is there, with its head.
    clean(choose_model(app, "encoder"))
    assert app.session_state["model"] == "translator"
    app.session_state["layer"], app.session_state["head"] = "2", "3"
    clean(go(app, "weight"))
    assert app.session_state["model"] == "encoder"
    assert not any("this page shows" in each.value for each in app.caption)


def test_a_recording_without_cross_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="no cross-attention"):
        translation.cross_attention(read_once("encoder").record(SENTENCE))
