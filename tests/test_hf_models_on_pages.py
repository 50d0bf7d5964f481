"""Every page on borrowed models: tiny ones of several families, in their own code and in ours, and
the walk from page to page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache as cache_calls
from pathlib import Path

import numpy as np
import pytest
import tiny
from app_harness import ROOT, TABS, aimed, go, panels_on, told
from conftest import read_once
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, SUMMED
from translation_harness import sent

from explorer.analysis import anatomy, consistency, soft_lookup
from explorer.app.state import models
from models.example_texts import DEFAULT_MODEL
from models.own import drafts
from models.runtime import registry
from models.runtime.caching import loaded

TEXT = "the cat sat on the mat"
# Models in their own code, and families of today in our classes.
OPENED = ("ours:gpt_neox", "hub:t5", "hub:bloom", "ours:gemma", "ours:opt", "hub:llama")
AWKWARD = "The “naïve” <b>cat</b> $x_1$ 日本 sat,  the cat 😀"
WINDOW = 4
# A part of each that the paper's model has not: what its pages may not say.
NOT_SAID = {
    "mistral": ("LayerNorm", "bias b₂", "b₁"),
    "gemma": ("LayerNorm", "bias b₂", "b₁"),
    "gpt_neox": ("RMSNorm", "W_gate"),
    "opt": ("RMSNorm", "W_gate"),
}


def there(name: str) -> object:
    """The loaded model, without the trial in a process of its own that other tests are about."""
    models.record_trial(name, registry.stamp(name))
    return loaded(name)


def opened(page: str, **asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer/app/main.py"), default_timeout=60)
    if (model := asked.get("model", "")) in models.loaded_models:
        app.session_state["opened_models"] = (model,)  # this visitor has opened it before
    return aimed(app, page, **asked).run()


@pytest.mark.slow
def test_a_translation_is_made_in_a_models_own_code_and_names_its_own_tokens(
    tmp_path: Path,
) -> None:
    """A BART whose encoder is deeper than its decoder: the page and its search."""
    deep = tiny.BART | {"encoder_layers": 3, "decoder_layers": 1}
    kind = "BartForConditionalGeneration"
    name = f"hub:{tiny.save(tmp_path, kind, deep, tiny.framed_bytes)}"
    there(name)
    app = opened("translate", model=name, text=TEXT, beams="3", target="the dog <b>ran")
    assert not app.exception and not app.error and app.session_state.model == name
    (steps,) = sent(app, "alignment")[0]["figures"]
    assert steps["whole"]["left"][-1] == "</s>"
    assert not any("[BOS]" in each or "[EOS]" in each for each in said(app).split())
    back = "Back to the model’s translation"
    next(each for each in app.button if each.label == back).click().run()
    searched = drafts.search(name, TEXT, 3)
    best = searched.steps[-1][0]
    (steps,) = sent(app, "alignment")[0]["figures"]
    assert not app.exception and searched.finished and len(steps["frames"]) == len(best.ids)
    rows = [row for one in steps["frames"] for row in one["figures"][0]["rows"] if row["selected"]]
    written = [row["values"][0] for row in rows]
    np.testing.assert_allclose(written, np.exp(best.logprobs), atol=PASSED)
    assert len(sent(app, "hypotheses")[0]["figures"][0]["rows"]) == 3


@pytest.fixture(scope="module")
def borrowed(tiny_folder: Callable[[str], Path]) -> Callable[[str], str]:
    """The name of a family's model; Mistral's with a window that a short text is longer than."""

    @cache_calls
    def name_of(opened_as: str) -> str:
        way, _, family = opened_as.partition(":")
        folder = tiny_folder(family)
        if family == "mistral":
            window = folder.with_name("mistral-window")
            folder = shutil.copytree(folder, window, dirs_exist_ok=True)
            tiny.change(folder, sliding_window=WINDOW)
        return f"{way}:{folder}"

    return name_of


# What pages show where a model has no earlier weights or no cross-attention; pages that speak
# of the paper's parts as such, as the deep stack of our own under Gradient does.
ANOTHER = {"checkpoints": "decoder", "twins": "decoder", "translate": "translator"}
NOT_OF_IT = ("claims", "edit", "checkpoints", "twins", "live", "translate")


def said(app: AppTest) -> str:
    """What the page's own sentences and those of its panels say, the frame's card of the model, its
    glossary and what is said of any model left out."""
    texts = [each.value for each in (*app.markdown, *app.caption, *app.info, *app.subheader)]
    own = [each for each in texts if "A pretrained model, its weights in" not in each]
    panels = [(one["title"], one["finding"], *one["details"]) for one in panels_on(app)]
    lines = (*own, *(line for each in panels for line in each))
    return "\n".join(lines).replace("(LayerNorm or RMSNorm)", "")


# Other views of the tabs, which show Mistral too.
LOOKS = [
    *(("residual", {"flow": flow}) for flow in ("LayerNorm", "Heads", "Gradient")),
    *(("positions", {"ask": ask}) for ask in ("Sentence", "Order")),
    *(("concepts", {"look_at": way}) for way in ("Hard", "Scale")),
    ("concepts", {"look_at": "Graph", "look_heads": "Mean", "look_layout": "Circle"}),
    ("concepts", {"look_at": "Three", "look_before": "Scores"}),
    *(("aggregated", {"sum_what": what}) for what in ("Rollout", "Values", "Writes")),
    ("compare", {"other_view": "Answers"}),
    ("compare", {"compare": "Sentence", "other_text": "the dog ran", "other_view": "Nearest"}),
    ("edit", {"effects": "Vectors"}),
    *(("patching", {"donor": "the dog ran to the house", "patch": p}) for p in ("Heads", "Sites")),
    ("lens", {"lens": "Rank"}),
    ("attribution", {"word": "7", "against": "11", "ffn": "1", "part": "head.self.1.2"}),
]


@pytest.mark.slow
@pytest.mark.in_turn(2)
@pytest.mark.parametrize("page", TABS)
def test_every_page_tells_a_borrowed_model_as_it_is(
    borrowed: Callable[[str], str], page: str
) -> None:
    """Mistral on every page, and one of the others in turn."""
    for opened_as in ("ours:mistral", OPENED[TABS.index(page) % len(OPENED)]):
        name, family = borrowed(opened_as), opened_as.partition(":")[2]
        there(name)  # the one before it may be gone from memory
        looks = [more for each, more in LOOKS if each == page and family == "mistral"]
        for choices in ({}, *looks):
            app = opened(page, model=name, text=AWKWARD, **choices)
            assert not app.exception
            shown = app.session_state.model
            if shown != name:
                assert f"so this page shows **{shown}**" in told(app, "caption"), "and says why"
            if family not in NOT_SAID:
                continue
            assert not app.error and shown == ANOTHER.get(page, name)
            captions = [" ".join(one["caption"]) for one in panels_on(app) if one["caption"]]
            if page not in ("live", "twins"):  # which show results of other models
                assert all(shown in each for each in captions)
            if page not in NOT_OF_IT and choices != {"flow": "Gradient"}:
                found = [each for each in NOT_SAID[family] if each in said(app)]
                assert not found, (opened_as, choices, found)


@pytest.mark.slow
def test_a_model_whose_logit_is_no_sum_says_why_and_offers_none(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """BERT's dense layer, activation and LayerNorm before its words are taken by their slope, in
    its own code and in our classes; with an activation that nothing here knows they are not."""
    for way in ("hub", "ours"):
        name = f"{way}:{tiny_folder('bert')}"
        there(name)
        app = opened("attribution", model=name, text=TEXT)
        assert "no sum of parts" not in told(app, "info")
        details = " ".join(panels_on(app)[0]["details"])
        assert "parts add up to" in details and "of the squared changes" in details
    shutil.copytree(tiny_folder("bert"), tmp_path, dirs_exist_ok=True)
    tiny.change(tmp_path, hidden_act="mish")
    there(f"hub:{tmp_path}")
    app = opened("attribution", model=f"hub:{tmp_path}", text=TEXT)
    assert told(app, "info").count("no sum of parts") == 1
    assert "neither linear nor a dense layer" in told(app, "info")


def test_a_link_alone_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(DEFAULT_MODEL)
    asked = []
    monkeypatch.setattr(registry, "load", lambda name, told=None: asked.append(name))
    app = opened("heads", model="hub:someone/large")
    assert not asked and app.session_state.model == DEFAULT_MODEL
    assert "someone/large" in told(app, "info") and "not opened yet" in told(app, "info")
    assert "Fetch it" in [button.label for button in app.button]


@pytest.mark.slow
def test_what_a_link_asks_for_waits_for_its_model(tiny_folder: Callable[[str], Path]) -> None:
    """The decoder's own words, the layer and the token are of the model that the reader is asked
    about, and come with it; with another text they mean nothing."""
    name, chosen = f"hub:{tiny_folder('t5')}", {"target": "the mat", "layer": "1", "token": "2"}
    for text in (TEXT, "the mat"):
        models.loaded_models.pop(name, None)
        app = opened("weight", model=name, text=TEXT, **chosen)
        assert app.session_state.model == DEFAULT_MODEL
        there(name)
        app.session_state.text, app.session_state.acted = text, True
        next(each for each in app.button if each.label == "Fetch it").click()
        app.run()
        assert not app.exception and app.session_state.model == name
        kept = {each: app.session_state[each] for each in chosen}
        assert kept == (chosen if text == TEXT else dict.fromkeys(chosen, ""))


@pytest.mark.slow
def test_one_attention_is_followed_from_page_to_page_and_back() -> None:
    app = opened("heads", model="translator", attention="cross")
    for page in ("weight", "aggregated", "concepts", "heads"):
        go(app, page)
        assert not app.exception and app.session_state.attention == "cross", page


def test_what_t5_adds_to_its_scores_is_told_from_its_scale(
    tiny_folder: Callable[[str], Path],
) -> None:
    """T5 divides by nothing and adds a number for the distance: the same at every place, and no
    failure of the law."""
    name = f"hub:{tiny_folder('t5')}"
    model = there(name)
    recording, shows = model.record(TEXT), model.capabilities
    attention = recording.attention[0]
    added = [anatomy.cell(recording, attention, 0, 1, at, at + 2).added[at + 2] for at in range(4)]
    np.testing.assert_allclose(added, added[0], atol=SUMMED)
    assert abs(added[0]) > 1e-4
    checks = consistency.checks(recording, built={"biased": shows.biased})
    law = next(check for check in checks if "q · k" in check.law)
    assert not law.checked and any("bias" in why for why in law.not_checked)


@pytest.mark.slow
def test_a_bound_on_scores_is_told_from_a_bias(tmp_path: Path) -> None:
    """Gemma 2 adds nothing to q · k: its scores are c tanh of them over c, which is checked."""
    tokenizer, kind, settings = tiny.MODELS["gemma2"]
    for bound in (0.5, None):
        settings = {**settings, "attn_logit_softcapping": bound, "initializer_range": 0.5}
        folder = tiny.save(tmp_path / str(bound), kind, settings, tokenizer)
        model = there(f"hub:{folder}")
        shows, recording = model.capabilities, model.record(TEXT)
        assert (shows.biased, shows.bound) == (False, bound or 0)
        (attention,) = recording.attention
        products = attention.q.astype(float) @ attention.k.astype(float).swapaxes(-1, -2)
        products *= attention.scale[:, None, None, None]
        if bound:
            assert abs(attention.scores).max() <= bound < abs(products).max()
        built = {"biased": shows.biased, "bound": shows.bound}
        law = next(
            each for each in consistency.checks(recording, built=built) if "q · k" in each.law
        )
        assert law.checked and law.holds and (("bounded at 0.5" in law.law) is bool(bound))
        assert consistency.scores(recording).holds is not bool(bound)
        app = opened("weight", model=model.name, text=TEXT, layer="1", head="1")
        assert not app.exception
        said_there = " ".join(json.dumps(each, ensure_ascii=False) for each in panels_on(app))
        assert ("bounds its scores at 0.5" in said_there) is bool(bound)
        assert "adds a term to q · k" not in said_there


def test_a_model_without_special_tokens_reads_an_empty_text(
    tiny_folder: Callable[[str], Path],
) -> None:
    (stream,) = there(f"hub:{tiny_folder('bloom')}").record("").streams
    assert stream.special.all() and len(stream.tokens) == 1


def test_the_asymmetric_scores_are_the_models_own() -> None:
    for name in ("induction-no-scale", "encoder"):
        recording = read_once(name).record(TEXT)
        attention = recording.attention[0]
        made = soft_lookup.scoring_variants(
            soft_lookup.attention_input(recording, attention, 1), attention, 1, 2
        )
        np.testing.assert_array_equal(made[2].scores, attention.scores[1, 2].astype(np.float64))


@pytest.mark.slow
def test_a_model_without_a_scale_is_offered_no_experiment_on_it(
    tiny_folder: Callable[[str], Path],
) -> None:
    for family, has_scale in (("t5", False), ("gpt_neox", True)):
        there(name := f"hub:{tiny_folder(family)}")
        app = opened("edit", model=name, text=TEXT)
        assert ("No scaling" in app.selectbox(key="experiment").options) == has_scale
        assert ("Scale of the scores" in app.selectbox(key="edit part").options) == has_scale
