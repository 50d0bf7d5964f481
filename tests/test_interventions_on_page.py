"""Every edit as a person makes it on its page, and links to a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from app_harness import asked_of, clean, go, page_at, panels_on, told
from conftest import on_page, read_once
from streamlit.testing.v1 import AppTest
from test_hf_models_on_pages import opened as of_today
from test_hf_models_on_pages import there
from tolerances import STORED

from explorer.analysis import interventions
from explorer.app.views import interventions as interventions_view
from explorer.components import codec
from models.contract import edits

TEXT = "the cat sat on the mat"
pytestmark = pytest.mark.slow


def opened(**asked: str) -> AppTest:
    return page_at("edit", **asked)


def edits_of(app: AppTest) -> tuple:
    return edits.from_line(app.session_state["edits"])


def panel_named(app: AppTest, title: str) -> dict:
    return next(each for each in panels_on(app) if each["title"].startswith(title))


def add(app: AppTest, part: str, *choices: tuple[str, str, object]) -> AppTest:
    """An edit added by the form: the part, then (kind of widget, key, value)."""
    clean(app.selectbox(key="edit part").set_value(part).run())
    for widget, key, value in choices:
        clean(getattr(app, widget)(key=key).set_value(value).run())
    return clean(app.button(key="add").click().run())


def undo(app: AppTest) -> None:
    next(each for each in app.button if each.label == "Undo all edits").click()
    clean(app.run())
    assert edits_of(app) == ()


ATTENTION_ALONE = edits.WithoutResidual(None, "attn")
ADDED = [
    ("Causal mask", (), edits.WithMask()),
    ("Sliding window", (("number_input", "window", 3),), edits.Window(3)),
    ("Key/value heads", (("select_slider", "shared keys", 2),), edits.SharedKeys(2)),
    ("Feed-forward network", (), edits.WithoutFeedForward()),
    ("Feed-forward network", (("selectbox", "ffn to", "parallel"),), edits.SideBySide()),
    ("Word", (("selectbox", "word out", 3),), edits.HideWord(3)),
    ("Positions", (), edits.WithoutPositions()),
    ("Positions", (("selectbox", "positions of", "shuffled"),), edits.ShufflePositions(0)),
    ("Positions", (("selectbox", "positions of", "shifted"),), edits.ShiftPositions(1)),
    ("Positions", (("selectbox", "positions of", "rotary"),), edits.OtherPositions("rotary")),
    ("Scale of the scores", (), edits.WithoutScale()),
    ("Scale of the scores", (("number_input", "divisor", 2.0),), edits.ScaledBy(2.0)),
    ("Residual connection", (), edits.WithoutResidual()),
    ("Residual connection", (("selectbox", "residual around", "attn"),), ATTENTION_ALONE),
    ("Norm", (), edits.WithoutNorm()),
    ("Norm", (("selectbox", "norm to", "pre"),), edits.MoveNorm("pre")),
    ("Norm", (("selectbox", "norm to", "kind"),), edits.OtherNorm("rms")),
]


def test_every_part_is_edited_by_the_form_and_every_edit_undone() -> None:
    app = clean(opened(text=TEXT))
    assert edits_of(app) == () and panel_named(app, "Experiments")
    for part, choices, edit in ADDED:
        add(app, part, *choices)
        assert edits_of(app) == (edit,), part
        app.session_state["edits"] = ""
    add(app, "Attention head", ("button_group", "brush", "mean"))
    (edit,) = edits_of(app)
    assert isinstance(edit, edits.MeanHead)
    add(app, "Norm")
    assert len(edits_of(app)) == 2, "edits are added"
    clean(app.button_group(key="edit_chips").set_value([1]).run())
    assert len(edits_of(app)) == 1, "a chip removes its edit"
    undo(app)


def test_an_experiment_is_run_and_undone() -> None:
    app = clean(opened(text=TEXT))
    clean(app.selectbox(key="experiment").set_value("No scaling").run())
    assert edits_of(app) == (edits.WithoutScale(),)
    effect = panel_named(app, "Effect of the edits")
    assert "scores without the scale in every layer" in effect["caption"][0]
    clean(app.selectbox(key="experiment").set_value(None).run())
    assert edits_of(app) == () and panel_named(app, "Experiments")


@pytest.mark.parametrize("family", ["llama", "gpt_neox"])
def test_a_model_of_today_is_offered_the_papers_parts_and_not_its_own(
    family: str, tiny_folder: Callable[[str], Path]
) -> None:
    name = f"ours:{tiny_folder(family)}"
    there(name)
    app = clean(of_today("edit", model=name, text=TEXT))
    parts = app.selectbox(key="edit part").options
    assert ("Key/value heads" in parts) == (family == "gpt_neox")
    clean(app.selectbox(key="edit part").set_value("Positions").run())
    assert not any("rotary" in each for each in app.selectbox(key="positions of").options)
    clean(app.selectbox(key="edit part").set_value("Feed-forward network").run())
    parallel = any("parallel" in each for each in app.selectbox(key="ffn to").options)
    assert parallel == (family == "llama")
    add(app, "Norm", ("selectbox", "norm to", "kind"))
    assert edits_of(app) == (edits.OtherNorm("layer" if family == "llama" else "rms"),)


def test_one_layer_is_edited_alone_and_all_layers_alike_are_one_edit() -> None:
    app = clean(opened(text=TEXT, model="translator"))
    scale = edits.WithoutScale
    for layer, made in (("1", {scale(1)}), ("2", None), ("0", {scale()})):
        add(app, "Scale of the scores", ("selectbox", "edited layer", layer))
        assert made is None or set(edits_of(app)) == made
    add(app, "Residual connection", ("selectbox", "residual around", "cross"))
    assert set(edits_of(app)) == {edits.WithoutScale(), edits.WithoutResidual(0, "cross")}


@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_a_link_opens_the_same_run_and_names_its_edits_everywhere(model: str) -> None:
    name = "cross" if model == "translator" else "self"
    made = (
        edits.ZeroHead(1, 2, name),
        edits.MeanHead(0, 1, name),
        edits.WithoutScale(1),
        edits.ShiftPositions(3),
        edits.PatchHead("<b>a, b: c</b>", 1, 0, name),
    )
    chosen = {"layer": "1", "head": "3", "attention": "cross" * (model == "translator")}
    app = clean(opened(text=TEXT, model=model, edits=edits.to_line(made), **chosen))
    assert edits_of(app) == made
    for panel in panels_on(app):
        assert all(str(edit) in panel["caption"][0] for edit in made)
    loaded = read_once(model)
    plain = loaded.record(TEXT)
    target = tuple(map(int, plain.streams[-1].ids[1:])) if model == "translator" else None
    other = loaded.record(TEXT, made, target)
    drawn = [codec.decode(one.proto.bytes) for one in on_page(app) if one.proto.bytes]
    header, blocks = next(one for one in drawn if one[0].get("title") == "Layer 1, head 3")
    for figure, run in zip(header["figures"], (plain, other)):
        attention = next(each for each in run.attention if each.name == name)
        expected = np.where(attention.allowed[0], attention.pattern[1, 3], np.nan)
        values = blocks[figure["values"]["block"]].reshape(expected.shape)
        np.testing.assert_allclose(values, expected, atol=STORED)
    assert asked_of(app)["edits"] == edits.to_line(made)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("ZeroHead:9:0:self", "layers 0 to 3"),
        ("<b>", "“<b>” is not a valid edit"),
        ("WithoutMask", "no causal mask to take away"),
        ("HideToken:1", "same tokens"),
        ("PatchSite:a:nowhere", "no site 'nowhere' of stream encoder"),
        ("ScaledBy:1e-42:", "between 3e-39 and"),
    ],
)
def test_a_bad_link_is_named_and_its_good_part_kept(line: str, reason: str) -> None:
    app = clean(opened(text=TEXT, edits=f"{line},WithoutScale:"))
    (warning,) = app.warning
    assert reason in warning.value.replace("\\", "") and "left out" in warning.value
    caption = panel_named(app, "Effect of the edits")["caption"][0]
    assert "scores without the scale in every layer" in caption


@pytest.mark.parametrize(
    ("part", "experiment", "edited"),
    [
        ("residual", "No residuals", "Residual connection"),
        ("norm", "No LayerNorm", "Norm"),
        ("positions", "No positions", ""),
        ("scale", "No scaling", ""),
    ],
)
def test_a_part_that_the_model_never_had_cannot_be_removed(
    part: str, experiment: str, edited: str
) -> None:
    app = opened(model=f"induction-no-{part}")
    left = app.selectbox(key="experiment").options
    assert experiment in WHOLE and experiment not in left
    parts = app.selectbox(key="edit part").options
    assert {"Residual connection", "Norm"} - set(parts) == {edited} - {""}


WHOLE = ("No residuals", "No LayerNorm", "No positions", "No scaling")


def test_a_model_with_all_parts_is_offered_every_experiment() -> None:
    assert set(WHOLE) <= set(opened(model="induction").selectbox(key="experiment").options)


def test_numbers_that_overflow_are_named_with_their_place() -> None:
    app = clean(opened(text=TEXT, edits="ScaledBy:1e-38:"))
    assert "the scores of layer 0’s attention" in told(app, "info")


def test_an_earlier_link_shows_the_word_unmasked() -> None:
    masked, seen = (clean(opened(text=TEXT, **words)) for words in ({}, {"seen": "yes"}))
    for app, title in ((masked, "Prediction for the masked word"), (seen, "Prediction at")):
        assert any(title in each["figures"][0]["title"] for each in panels_on(app))
    assert asked_of(seen)["masked"] == "0" and "masked" not in asked_of(masked)


def test_hostile_choices_do_no_harm() -> None:
    wrong = {"layer": "x", "head": "-1", "token": "1e9", "attention": "<i>", "stream": "no"}
    clean(opened(text=TEXT, effects="<b>", brush="?", only="99", fair="<u>", seen="<b>", **wrong))
    clean(page_at("patching", text=TEXT, patch="%", patch_cell="<b>", **wrong))
    clean(opened(text=TEXT, model="translator", effects="Vectors", stream="<b>", edits="x" * 5000))


@pytest.mark.parametrize("model", ["translator", "induction"])
def test_other_models_follow_their_own_edits(model: str) -> None:
    app = clean(opened(text=TEXT, model=model))
    for edit in (edits.WithoutMask(), edits.WithoutResidual(0, "attn"), edits.MoveNorm("pre")):
        app.session_state["edits"] = edits.to_line((edit,))
        clean(app.run())
        assert str(edit) in panel_named(app, "Effect of the edits")["caption"][0]


def test_models_trained_without_a_part_are_opened_without_edits() -> None:
    app = clean(opened(model="reverse", effects="Trained without", edits="WithoutScale:"))
    clean(app.button(key="open reverse-no-positions ()").click().run())
    assert app.session_state["model"] == "reverse-no-positions" and edits_of(app) == ()
    clean(app.button(key="open reverse (WithoutPositions(),)").click().run())
    assert app.session_state["model"] == "reverse" and edits_of(app) == (edits.WithoutPositions(),)


def test_a_link_opens_the_chosen_patch_and_another_sweep_forgets_it() -> None:
    of = {"patch": "Sites", "text": "The waiter brought the soup but it was cold."}
    largest = page_at("patching", **of)
    (row, column, _), *_ = panels_on(clean(largest))[0]["figures"][0]["marks"]
    cell = (row - 1, column + 1)
    app = page_at("patching", **of, patch_cell=f"{cell[0]}.{cell[1]}")
    assert panels_on(clean(app))[0]["figures"][0]["marks"][0][:2] == list(cell)
    assert asked_of(app)["patch_cell"] == f"{cell[0]}.{cell[1]}"
    app.text_input(key="donor").set_value("The waiter brought the soup but he was kind.").run()
    assert "patch_cell" not in clean(app).query_params
    for wrong in ("99.99", "<b>"):
        app = page_at("patching", **of, patch_cell=wrong)
        assert panels_on(clean(app))[0]["figures"][0]["marks"][0][:2] == [row, column]


def test_a_sweep_of_a_large_model_is_started_and_its_strongest_patch_becomes_an_edit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interventions_view, "AT_ONCE", 0)  # as of a large model
    donor, model = "the dog ran to the house", read_once("decoder")
    app = clean(page_at("patching", model="decoder", text=TEXT, donor=donor, token="5"))
    clean(app.button(key="start sweep").click().run())
    for _ in range(500):
        running = any(each.key == "stop sweep" for each in app.button)
        if not running and any(
            "copied from" in each["finding"] or "there is no" in each["finding"]
            for each in panels_on(app)
        ):
            break
        clean(app.run())
    clean(app.button(key="put patch").click().run())
    (edit,) = edits_of(app)
    logits = (model.logits(model.record(text), "decoder", 5) for text in (TEXT, donor))
    sweep = model.patch_heads(TEXT, donor, "self", 5, *interventions.contrast(*logits))
    strongest = max(sweep.effects, key=lambda each: abs(each.value - sweep.clean))
    assert edit == edits.PatchHead(donor, *strongest.place, "self")
    effect = panel_named(clean(go(app, "edit")), "Effect of the edits")
    assert str(edit) in effect["caption"][0], "all of the page shows what it does"
