"""Every switch as a person sets it on its page, and links to a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, on_page, read_once
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened as of_today
from test_hf_models_on_pages import there
from tolerances import STORED

from explorer.analysis import interventions
from explorer.components import codec
from explorer.layout import controls
from models.edits import (
    HideToken,
    MeanHead,
    MoveNorm,
    OtherNorm,
    OtherPositions,
    PatchHead,
    ScaledBy,
    SharedKeys,
    ShiftPositions,
    ShufflePositions,
    SideBySide,
    Window,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
    from_line,
    to_line,
)

TEXT = "the cat sat on the mat"


BOTH = ("before.exact", "after.exact")


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    return page_at("switches", **asked)


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def edits_of(app: AppTest) -> tuple:
    return from_line(app.session_state["edits"])


def words(app: AppTest) -> str:
    return " ".join(
        each.value
        for kind in ("subheader", "markdown", "caption", "warning", "info", "error")
        for each in app.get(kind)
        if hasattr(each, "value")
    ).replace("\\", "")


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    decoded = [
        codec.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == "headlight.switches"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


@pytest.mark.slow
def test_every_switch_is_a_deed() -> None:
    app = clean(opened(text=TEXT, experiment="off"))
    assert edits_of(app) == () and "as it was trained" in words(app)

    def deed(widget: str, key: str, value, expected: tuple) -> None:
        clean(getattr(app, widget)(key=key).set_value(value).run())
        assert edits_of(app) == expected, (key, value, edits_of(app))
        app.button[
            next(at for at, each in enumerate(app.button) if each.label == "Undo all edits")
        ].click()
        clean(app.run())
        assert edits_of(app) == ()

    deed("toggle", "mask on", True, (WithMask(),))
    deed("number_input", "window", 3, (Window(3),))
    deed("select_slider", "shared keys", 2, (SharedKeys(2),))
    deed("toggle", "ffn on", False, (WithoutFeedForward(),))
    for value, edit in (
        ("none", WithoutPositions()),
        ("shuffled", ShufflePositions(0)),
        ("shifted", ShiftPositions(1)),
        ("rotary", OtherPositions("rotary")),
    ):
        deed("selectbox", "positions of", value, (edit,))
    deed("button_group", "scale off", "off", (WithoutScale(),))
    deed("button_group", "scale off", "other", (ScaledBy(2.0),))
    deed("button_group", "residuals", ["ffn"], (WithoutResidual(None, "attn"),))
    deed("button_group", "residuals", [], (WithoutResidual(),))
    deed("button_group", "norm at", "none", (WithoutNorm(),))
    deed("button_group", "norm at", "pre", (MoveNorm("pre"),))
    deed("button_group", "norm kind", "rms", (OtherNorm("rms"),))
    deed("toggle", "side by side", True, (SideBySide(),))
    for name, edit in (
        ("No scaling", WithoutScale()),
        ("Multi-query attention", SharedKeys(1)),
    ):
        deed("selectbox", "switch preset", name, (edit,))


@pytest.mark.slow
def test_what_changed_since_the_paper_is_switched_in_one_layer_and_drawn() -> None:
    app = clean(opened(text=TEXT, experiment="off"))
    clean(app.button_group(key="where").set_value("1").run())
    clean(app.button_group(key="norm kind").set_value("rms").run())
    clean(app.toggle(key="side by side").set_value(True).run())
    asked = OtherNorm("rms", 1), SideBySide(1)
    assert set(edits_of(app)) == set(asked)
    header, blocks = sent(app, "trio")
    at = header["layer"], header["head"]
    for block, edits in zip(BOTH, ((), asked)):
        pattern = read_once("encoder").record(TEXT, edits).attention[0].pattern[at]
        np.testing.assert_allclose(blocks[block].reshape(pattern.shape), pattern, atol=STORED)
    clean(app.button_group(key="norm kind").set_value("layer").run())
    clean(app.toggle(key="side by side").set_value(False).run())
    assert edits_of(app) == ()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "gpt_neox"])
def test_a_model_of_today_switches_to_the_papers_parts_and_not_to_its_own(
    family: str, tiny_folder: Callable[[str], Path]
) -> None:
    name = f"ours:{tiny_folder(family)}"
    there(name)
    app = clean(of_today("switches", model=name, text=TEXT, experiment="off"))
    assert "rotary" not in app.selectbox(key="positions of").options
    assert app.selectbox(key="positions of").options[0] == "as trained: rotary (RoPE)"
    own, other = ("rms", "layer") if family == "llama" else ("layer", "rms")
    assert app.button_group(key="norm kind").value == own
    clean(app.button_group(key="norm kind").set_value(other).run())
    assert edits_of(app) == (OtherNorm(other),)
    clean(app.button_group(key="norm kind").set_value(own).run())
    assert edits_of(app) == ()
    clean(app.selectbox(key="positions of").set_value("sinusoids").run())
    assert edits_of(app) == (OtherPositions("sinusoids"),)
    # This Llama's heads share keys already, GPT-NeoX's have each their own.
    assert bool(app.select_slider) == (family == "gpt_neox")
    assert ("This model uses grouped-query attention" in words(app)) == (family == "llama")
    assert ("Multi-query" in str(app.selectbox(key="switch preset").options)) == (
        family == "gpt_neox"
    )
    beside = [each.key for each in app.toggle if each.key == "side by side"]
    assert bool(beside) == (family == "llama")
    assert ("parallel attention and FFN" in words(app)) == (family == "gpt_neox")


@pytest.mark.slow
def test_one_layer_is_switched_alone_and_all_layers_alike_are_one_edit() -> None:
    app = clean(opened(text=TEXT, model="translator", experiment="off"))
    clean(app.button_group(key="where").set_value("1").run())
    clean(app.button_group(key="scale off").set_value("off").run())
    assert edits_of(app) == (WithoutScale(1),)
    for layer in ("2", "0"):
        clean(app.button_group(key="where").set_value(layer).run())
        clean(app.button_group(key="scale off").set_value("off").run())
    assert edits_of(app) == (WithoutScale(),)
    clean(app.button_group(key="scale off").set_value("own").run())
    assert set(edits_of(app)) == {WithoutScale(1), WithoutScale(2)}
    clean(app.button_group(key="residuals").set_value(["attn", "ffn"]).run())
    assert set(edits_of(app)) == {WithoutScale(1), WithoutScale(2), WithoutResidual(0, "cross")}
    clean(app.button_group(key="switched").set_value([1]).run())
    assert len(edits_of(app)) == 1, "what is pressed is taken back"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_a_link_opens_the_same_run_and_says_its_edits_everywhere(model: str) -> None:
    name = "cross" if model == "translator" else "self"
    edits = (
        ZeroHead(1, 2, name),
        MeanHead(0, 1, name),
        WithoutScale(1),
        ShiftPositions(3),
        PatchHead("<b>a, b: c</b>", 1, 0, name),
    )
    app = clean(opened(text=TEXT, model=model, edits=to_line(edits)))
    assert edits_of(app) == edits
    header, blocks = sent(app, "trio")
    assert all(str(edit) in header["caption"][0] for edit in edits)
    loaded = read_once(model)
    plain = loaded.record(TEXT)
    target = (
        tuple(int(each) for each in plain.streams[-1].ids[1:]) if model == "translator" else None
    )
    other = loaded.record(TEXT, edits, target)
    at = header["layer"], header["head"]
    shown = app.session_state["attention"] or plain.attention[0].name
    for block, run in (("after.exact", other), ("before.exact", plain)):
        attention = next(each for each in run.attention if each.name == shown)
        pattern = attention.pattern[at]
        np.testing.assert_allclose(blocks[block].reshape(pattern.shape), pattern, atol=STORED)
    assert app.query_params["edits"] in (to_line(edits), [to_line(edits)])


@pytest.mark.slow
def test_the_sentence_on_the_page_is_the_one_of_the_two_runs() -> None:
    edits = (WithoutScale(),)
    app = clean(opened(text=TEXT, edits=to_line(edits), token="2", seen="yes"))
    loaded = read_once("encoder")
    one, other = loaded.record(TEXT), loaded.record(TEXT, edits)
    said = interventions.prediction_change(
        loaded.logits(one, "encoder", 2), loaded.logits(other, "encoder", 2)
    )
    told = interventions.change_sentences(
        interventions.quantity_changes(
            one, other, said, tuple(loaded.labels((said.said, said.says)))
        )
    )
    assert all(each[1:] in words(app) for each in told)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_the_page_opens_on_an_experiment_and_leads_back_to_no_edit(model: str) -> None:
    text = "The animal didn't cross the street because it was too tired."
    app = clean(opened(text=text, model=model))
    assert edits_of(app) == () and "edits" not in app.query_params, "it is not the reader's choice"
    header, blocks = sent(app, "trio")
    loaded = read_once(model)
    plain = loaded.record(text)
    shown = app.session_state["attention"] or plain.attention[0].name
    before = next(one for one in plain.attention if one.name == shown)
    at = header["layer"], header["head"]
    matrices = [blocks[name].reshape(before.pattern[at].shape) for name in BOTH]
    np.testing.assert_allclose(matrices[0], before.pattern[at], atol=STORED)
    assert np.abs(matrices[0] - matrices[1]).max() > 0.1, "there is something to see"
    link = next(
        one
        for one in controls.recording_findings(plain)
        if one.kind == "link" or one.kind == "aligned"
    )
    told = words(app)
    assert f"*{link.words[0]}*" in told and f"*{link.words[1]}*" in told
    clean(app.button(key="no edit").click().run())
    assert "as it was trained" in words(app)
    matrices = [sent(app, "trio")[1][name] for name in BOTH]
    assert np.array_equal(*matrices), "nothing is switched"
    clean(app.selectbox(key="switch preset").set_value("No scaling").run())
    assert edits_of(app) == (WithoutScale(),)


@pytest.mark.slow
def test_the_word_is_hidden_from_both_runs_of_a_model_that_fills_gaps() -> None:
    app = clean(opened(text=TEXT, token="2", edits="WithoutPositions"))
    loaded = read_once("encoder")
    one, other = (
        loaded.record(TEXT, (HideToken(2), *edits)) for edits in ((), (WithoutPositions(),))
    )
    said = interventions.prediction_change(
        loaded.logits(one, "encoder", 2), loaded.logits(other, "encoder", 2)
    )
    (header,) = [
        codec.decode(e.proto.bytes)[0]
        for e in on_page(app)
        if e.proto.component_name == "headlight.bars"
    ][:1]
    by_word = {row["label"]: (row["behind"], row["value"]) for row in header["rows"]}
    for word, label in zip(said.top(8), loaded.labels(said.top(8))):
        assert by_word[label] == pytest.approx((said.before[word], said.after[word]), abs=STORED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ZeroHead:9:0:self,WithoutScale:", "layers 0 to 3"),
        ("<b>,WithoutScale:", "“<b>” is not a valid edit"),
        ("WithoutMask,WithoutScale:", "no causal mask to take away"),
        ("ScaledBy:nan:,WithoutScale:", "above 0"),
        ("HideToken:1,WithoutScale:", "same tokens"),
        ("ZeroHead:0:0:<i>,WithoutScale:", "<i>"),
        ("PatchSite:a:nowhere,WithoutScale:", "no site 'nowhere'; stream encoder has embed"),
        ("ShiftPositions:99999,WithoutScale:", "positions"),
        ("ScaledBy:1e-42:,WithoutScale:", "between 3e-39 and"),
    ],
)
def test_a_bad_link_is_named_and_its_good_part_kept(line: str, said: str) -> None:
    app = clean(opened(text=TEXT, edits=line))
    (warning,) = app.warning
    assert said in warning.value.replace("\\", "") and "left out" in warning.value
    assert "scores without the scale in every layer" in sent(app, "trio")[0]["caption"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "preset"),
    [
        ("residual", "No residual connections"),
        ("positions", "No positions"),
        ("scale", "No scaling"),
        ("norm", "No LayerNorm"),
    ],
)
def test_a_part_that_the_model_never_had_is_not_offered_to_be_taken_away(
    part: str, preset: str
) -> None:
    with_, without = opened(model="induction"), opened(model=f"induction-no-{part}")
    assert set(with_.selectbox(key="switch preset").options) - set(
        without.selectbox(key="switch preset").options
    ) >= {preset}
    shows = {each.key for kind in ("pills", "segmented_control") for each in without.get(kind)}
    assert ("residuals" in shows) is (part != "residual") and ("norm at" in shows) is (
        part != "norm"
    )
    assert ("none" in without.selectbox(key="positions of").options[0]) is (part == "positions")


@pytest.mark.slow
def test_numbers_that_overflow_are_said_with_their_place() -> None:
    app = opened(text=TEXT, edits="ScaledBy:1e-38:")
    assert not app.exception
    (error,) = app.error
    assert "the scores of layer 0’s attention" in error.value


@pytest.mark.slow
@pytest.mark.parametrize("name", AWKWARD)
def test_any_text_gives_a_picture_or_a_sentence(name: str) -> None:
    app = clean(opened(text=AWKWARD[name], edits=to_line((WithoutPositions(), ZeroHead(0, 0)))))
    sent(app, "pairs")
    for effects in ("Vectors", "Patching"):
        app.session_state["effects"] = effects
        app.session_state["donor"] = AWKWARD[name] or "a b"
        clean(app.run())
    assert app.session_state["text"] == AWKWARD[name]


@pytest.mark.slow
def test_hostile_choices_do_no_harm() -> None:
    clean(
        opened(
            text=TEXT,
            effects="<b>",
            brush="?",
            only="99",
            layer="x",
            head="-1",
            token="1e9",
            attention="<i>",
            patch="%",
            fair="<u>",
            seen="<b>",
            experiment="<b>",
            stream="no",
        )
    )
    clean(opened(text=TEXT, model="translator", effects="Vectors", stream="<b>", edits="x" * 5000))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator", "induction"])
def test_other_models_follow_their_own_switches(model: str) -> None:
    app = clean(opened(text=TEXT, model=model))
    for edits in ((WithoutMask(),), (WithoutResidual(0, "attn"),), (MoveNorm("pre"),)):
        app.session_state["edits"] = to_line(edits)
        clean(app.run())
        assert str(edits[0]) in sent(app, "trio")[0]["caption"][0]


@pytest.mark.slow
def test_models_trained_without_a_part_are_opened_with_nothing_switched() -> None:
    app = clean(opened(model="reverse", effects="Trained without", edits="WithoutScale:"))
    button = next((each for each in app.button if each.key == "open reverse-no-positions"), None)
    if button is None:
        assert "No model here was trained without a part" in words(app)
        return
    clean(button.click().run())
    assert app.session_state["model"] == "reverse-no-positions" and edits_of(app) == ()
    clean(next(each for each in app.button if each.key == "open reverse positions").click().run())
    assert app.session_state["model"] == "reverse" and edits_of(app) == (WithoutPositions(),)
