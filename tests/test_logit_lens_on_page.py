"""The page of the logit lens and of a logit's parts."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from app_harness import clean, page_at, panels_on, told
from conftest import read_once
from streamlit.testing.v1 import AppTest
from tolerances import TOTAL

from explorer.analysis import head_naming, logit_lens, opening
from explorer.panels import attribution
from explorer.panels import logit_lens as lens_panels
from models import smollm2
from models.network.own_model import OwnModel
from models.runtime import caching
from models.runtime.caching import loaded, picture_name
from models.runtime.run import Run

# ---- the page ----------------------------------------------------------------


def opened(tab: str = "lens", /, **asked: str) -> AppTest:
    """The tab, opened at an address."""
    return clean(page_at(tab, **asked))


def columns_on(app: AppTest) -> list[str]:
    """The columns of the lens on the page."""
    return panels_on(app)[0]["figures"][0]["columns"]


def words_of(target: str | None) -> list[str]:
    """The words that the translator's decoder reads."""
    recording = loaded("translator").record("The dog is big.", (), target)
    return list(logit_lens.read_stream(recording).tokens)


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_what_is_read_and_are_named() -> None:
    app = opened(model="translator", text="The dog is big.", target="Le chien")
    assert columns_on(app) == words_of("Le chien")
    assert "your text from the tab Translate, “Le chien”" in told(app, "info")
    clean(app.button(key="drop target").click().run())
    assert columns_on(app) == words_of(None) and "your text from" not in told(app, "info")
    long = told(opened(model="translator", target="la rue " * 300), "warning")
    assert "Your text has" in long and "The field keeps them." in long


def test_a_lens_weighs_what_its_arrays_weigh() -> None:
    recording = loaded("decoder").record("Plants eat animals, and animals eat plants")
    found = loaded(recording).lens(recording, "decoder")
    (weight,) = [weight for value, weight in caching.cache.entries.values() if value is found]
    arrays = [each for each in vars(found).values() if isinstance(each, np.ndarray)]
    assert len(arrays) == 7
    assert 0 <= weight - sum(each.nbytes for each in arrays) < 5_000  # labels and the like


@pytest.mark.slow
def test_a_model_that_says_no_words_is_told_and_another_shown() -> None:
    app = opened("word", model="minilm", text="Apples fall.")
    notes = told(app, "caption")
    assert "minilm has no readout" in notes and "this page shows **encoder**" in notes
    assert app.session_state["model"] == "encoder" and panels_on(app)


POST = "a LayerNorm follows every sub-layer"


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, state, parts",
    [
        ("induction-no-norm", "This model has no LayerNorm", "There is no LayerNorm on the way"),
        ("induction-no-residual", POST, "only the last sub-layer and the biases"),
        ("grammar", "This model is pre-LN", "passes 1 LayerNorm."),
    ],
)
def test_every_arrangement_is_read_and_said_as_it_is(
    model: str, state: str, parts: str, gpt2_on_pages: OwnModel
) -> None:
    run = Run(model, "b a c d b")
    lens, logit = lens_panels.lens(run), attribution.logit(run)
    said = " ".join((*lens.details, *logit.details))
    assert state in said and parts in said
    *groups, total = logit.figures[1].rows
    ends = sum(row.values[0] for row in groups)
    assert ends == pytest.approx(total.values[0], abs=TOTAL)


@pytest.mark.slow
def test_a_decoders_head_is_called_in_the_words_of_the_attention_page() -> None:
    """A broad head of a decoder looks at the tokens so far, as the Attention page has it."""
    text = "She opened the door and looked at the old"
    recording = read_once("decoder").record(text)
    attention = recording.attention[0]
    meanings = head_naming.meanings(recording, attention)
    heads = head_naming.describe(recording, attention)
    broad = next(head for head in heads if head.name == "diffuse")
    app = opened("attribution", model="decoder", text=text, part=f"self.{broad.layer}.{broad.head}")
    said = next(each.value for each in app.markdown if "is called **diffuse**" in each.value)
    assert meanings["diffuse"].rstrip(".") in said and "so far" in said


@pytest.mark.slow
def test_the_same_words_split_otherwise_are_another_cause() -> None:
    """A result kept beside a recording is not returned for one of the same text with other
    tokens."""
    recording = loaded("decoder").record("the cat")
    stream = recording.streams[0]
    split = replace(stream, ids=np.array([*stream.ids[:-1], 5]))
    other = replace(recording, streams=(split,))
    assert picture_name(recording) != picture_name(other)


@pytest.mark.parametrize("model", ["encoder", "decoder", "grammar"])
@pytest.mark.parametrize("is_open", [False, True])
def test_by_whole_layers_there_is_a_row_between_layers_and_for_what_is_selected(
    model: str, is_open: bool, gpt2_on_pages: OwnModel
) -> None:
    run = Run(model, "Plants eat animals, and animals eat plants")
    sites = loaded(run.recording()).lens(run.recording(), run.recording().streams[-1].name).sites
    site = next(each for each in sites if each.startswith("1.attn")) if is_open else ""
    full, matrix = (
        lens_panels.lens(run, site=site, layers=each, early=True).figures[0]
        for each in (False, True)
    )
    n_layer = run.recording().model.n_layer
    ends = [f"L{layer}" for layer in range(n_layer - 1)]
    assert [row for row in matrix.rows if row in ends] == ends
    rows = [sites.index(key) for key in matrix.keys[: len(set(matrix.keys))]]
    assert rows == sorted(rows) and sites[rows[0]] == "embed" and sites[rows[-1]] == sites[-1]
    assert len([key for key in set(matrix.keys) if key.startswith("1.")]) == 1 + bool(site)
    np.testing.assert_array_equal(matrix.values[: len(rows)], full.values[rows])
    marked = [figure.keys[figure.marks[0][0]] for figure in (full, matrix)]
    assert marked == [site or sites[-1]] * 2


@pytest.mark.parametrize("model", ["encoder", "decoder", "grammar"])
@pytest.mark.parametrize("text", ["The waiter brought the soup but it was cold.", "Plants eat"])
def test_the_lens_begins_where_the_answer_is_among_the_likeliest_for_good(
    model: str, text: str, gpt2_on_pages: OwnModel
) -> None:
    run = Run(model, text)
    panel, whole = (lens_panels.lens(run, layers=False, early=each) for each in (False, True))
    drawn, token = panel.run.recording(), panel.at["token"]
    lens = loaded(drawn).lens(drawn, drawn.streams[-1].name)
    ranks = lens.rank[:, token].tolist()
    shown = list(dict.fromkeys(panel.figures[0].keys))
    assert shown == list(lens.sites[-len(shown) :])
    first = len(lens.sites) - len(shown)
    assert list(dict.fromkeys(whole.figures[0].keys)) == list(lens.sites)
    if len(shown) > opening.FEWEST_SITES:
        assert max(ranks[first:]) < opening.TOP_RANKS
    assert not first or max(ranks[first - 1 :]) >= opening.TOP_RANKS or len(shown) == 4
    assert (f" {first} earlier rows" in panel.figures[0].note) == (first > 0)
    leads = "leads all words only at the very end" if ranks[-2] else "(leads all words|word) from L"
    assert re.search(leads, panel.finding)


@pytest.mark.slow
def test_a_deep_model_is_read_by_whole_layers_unless_a_sub_layer_is_open() -> None:
    def rows(**choices: str) -> int:
        choices |= {"text": "Plants eat animals", "lens_early": "1"}
        return len(panels_on(opened(**choices))[0]["figures"][0]["rows"])

    assert rows(model="decoder", blocks="Layers") < rows(model="decoder")
    if smollm2.file() is not None:
        assert rows(model="smollm2") == 32  # the embedding, 30 layers and the actual words
        assert rows(model="smollm2", site="18.attn.sum") == 62
