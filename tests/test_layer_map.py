"""The map under the frame: its bars are the lengths of what was written, its words the model's own,
and its stops lead where they say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, read_once
from streamlit.testing.v1 import AppTest
from tolerances import PASSED

from explorer.analysis import layer_map, logit_lens
from explorer.components import codec
from explorer.layout import controls
from explorer.state import cache
from models.example_texts import DEFAULT_TEXT, EXAMPLES
from models.own_model import OwnModel
from models.results import softmax

ROOT = Path(__file__).resolve().parent.parent


def test_every_write_is_a_stop_and_its_bar_the_share_of_the_length(
    small_translator: OwnModel,
) -> None:
    recording = small_translator.record("the cat sat", target="the dog ran")
    stream, token = layer_map.selected_token(recording, "2")
    assert (stream, token) == ("decoder", 2)
    found = layer_map.stations(recording, stream, token)
    assert [each.what for each in found if each.stream == "decoder"] == (
        ["words", "positions"] + ["heads", "cross", "ffn"] * recording.model.n_layer
    )
    for each in found:
        of = recording.stream(each.stream)
        if each.what == "words":
            assert np.isnan(each.share)
            continue
        at = token if each.stream == stream else len(of.tokens) // 2
        before = next(stood for stood, wrote, _ in of.writes() if wrote == each.site)
        written, stood = (np.linalg.norm(of.at(site)[at]) for site in (each.site, before))
        assert each.share == pytest.approx(written / stood)


def test_the_word_held_is_a_word_where_there_is_one(
    small_handle: OwnModel, small_decoder: OwnModel
) -> None:
    recording = small_handle.record("the cat sat on the mat !")
    stream = recording.streams[0]
    token = layer_map.selected_token(recording, "")[1]
    assert not stream.special[token] and stream.tokens[token].strip(".!").isalnum()
    recording = small_decoder.record("the cat")
    assert layer_map.selected_token(recording, "")[1] == len(recording.streams[0].tokens) - 1
    for beyond in ("99", "-1", "x", "9" * 50, "²"):
        assert layer_map.selected_token(recording, beyond) == layer_map.selected_token(
            recording, ""
        )


def shown(app: AppTest) -> dict:
    drawn = [each.proto for each in app.get("bidi_component") if "way" in each.proto.component_name]
    data = drawn[0].bytes
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_the_words_said_are_the_models_and_a_stop_leads_to_its_page(model: str) -> None:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    app.query_params["model"], app.query_params["text"] = model, "The red car is new."
    header = shown(app.run())
    assert not app.exception
    handle = read_once(model)
    recording = handle.record("The red car is new.")
    stream, token = layer_map.selected_token(recording, "")
    if model == "encoder":  # the word that the first page opens on
        token = controls.opening_finding(recording, recording.attention[0]).query
    p = softmax(handle.logits(recording, stream, token))
    best = np.argsort(-p)[:3]
    assert [word for word, _ in header["words"]] == handle.labels(best)
    assert [value for _, value in header["words"]] == pytest.approx(p[best], rel=PASSED)
    said, _, goal = header["pushed"]
    taken = handle.attribute(recording, stream, token, int(best[0]))
    part = max((part for part in taken.parts if part.kind == "head"), key=lambda part: part.value)
    assert f"L{part.layer} " in said and said.endswith(f"H{part.head}")
    assert goal == f"predictions:{token}:{logit_lens.part_key(part)}"
    assert {stop["goal"].partition(":")[0] for stop in header["stops"]} <= {
        "embeddings",
        "positions",
        "attention",
        "residual",
    }
    assert all(stop["lit"] == stop["goal"].startswith("attention") for stop in header["stops"])


@pytest.mark.slow
def test_translation_opens_on_a_sentence_that_comes_out_right_and_the_map_is_its_models() -> None:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90).run()
    first = app.session_state["text"]
    app.switch_page(str(ROOT / "pages" / "translation.py")).run()
    assert not app.exception and app.session_state["text"] == EXAMPLES["Red car"]
    assert any("voiture rouge est devant la maison blanche" in each.value for each in app.markdown)
    assert app.session_state["model"] == "translator"
    assert "[BOS]" in {stop["label"] for stop in shown(app)["stops"]}, "the translator’s decoder"
    app.query_params.clear()  # as a tab has it
    app.switch_page(str(ROOT / "pages" / "attention.py")).run()
    assert app.session_state["model"] == "encoder", "the chosen one is back"
    assert app.session_state["text"] == first, "what nobody chose goes with the page"
    app.session_state["wanted_text"] = "I love to eat pizza."
    app.run()
    app.switch_page(str(ROOT / "pages" / "translation.py")).run()
    assert app.session_state["text"] == "I love to eat pizza."


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_has_its_map(text: str) -> None:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    app.session_state["wanted_text"] = text
    header = shown(app.run())
    assert not app.exception and len(header["stops"]) == 10 and len(header["words"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "kind"), [("residual", "followed"), ("summaries", "row"), ("predictions", None)]
)
def test_every_page_goes_on_with_the_word_that_the_first_one_opens_on(
    page: str, kind: str | None
) -> None:
    def chosen(**asked: str) -> int:
        app = page_at(page, model="encoder", **asked)
        sent = [codec.decode(each.proto.bytes)[0] for each in app.get("bidi_component")]
        return next(
            each["chosen"] for each in sent if "chosen" in each and each.get("kind") == kind
        )

    recording = cache.record("encoder", DEFAULT_TEXT)
    first = controls.opening_finding(recording, recording.attention[0])
    assert first is not None and recording.streams[0].tokens[first.query] == "it"
    assert chosen() == first.query
    assert chosen(token="2") == 2
