"""The page of the logit lens and of a logit's parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from app_harness import page_at
from conftest import AWKWARD, HOSTILE, on_page, read_once
from lens_oracle import lens_of
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED, TINY, TOTAL

from explorer.analysis import head_naming, logit_lens
from explorer.components import codec
from explorer.state import cache, models
from models.own_model import OwnModel
from models.recording import Recording

ROOT = Path(__file__).resolve().parent.parent


KINDS = ["small_handle", "small_decoder", "small_translator"]


# ---- the page ----------------------------------------------------------------


def opened(tab: str = "lens", /, **asked: str) -> AppTest:
    """The tab, opened at an address."""
    return clean(page_at(tab, **asked))


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, name: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the component of that name was sent."""
    return next(
        codec.decode(each.proto.bytes)
        for each in on_page(app)
        if each.proto.component_name == f"headlight.{name}"
    )


def bars_of(app: AppTest, about: str) -> dict:
    told = [
        codec.decode(each.proto.bytes)[0]
        for each in on_page(app)
        if each.proto.component_name == "headlight.bars"
    ]
    return next(header for header in told if header["about"].startswith(about))


def check_table(app: AppTest, recording: Recording) -> None:
    """The table holds the lens of this recording, cell by cell."""
    found = lens_of(models.handle(recording.model.name), recording)
    header, blocks = sent(app, "lens")
    tokens = logit_lens.read_stream(recording).tokens
    assert tuple(header["tokens"]) == tokens and len(header["sites"]) == len(found.sites)
    shape = (len(found.sites), len(tokens))
    labels = np.array(header["labels"], dtype=object)[
        blocks["words"].reshape(*shape, header["top"])
    ]
    expected = models.labels(recording.model.name, found.top_ids[..., : header["top"]].ravel())
    assert labels.ravel().tolist() == expected
    np.testing.assert_allclose(
        blocks["logp"].reshape(*shape, -1), found.top_logprobs[..., : header["top"]], atol=STORED
    )
    assert np.array_equal(blocks["rank"].reshape(shape), found.rank)
    np.testing.assert_allclose(blocks["kl"].reshape(shape), found.kl, rtol=STORED, atol=TINY)
    np.testing.assert_allclose(blocks["answer"].reshape(shape), found.logprob, rtol=STORED)


@pytest.mark.slow
@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD)
def test_any_text_is_read_at_every_site_of_a_decoder(text: str) -> None:
    app = opened(model="decoder", text=text)
    recording = cache.record("decoder", text)
    check_table(app, recording)
    assert (
        sent(app, "lens")[0]["right"][-1] == -1
        and sent(app, "lens_way")[0]["at"] == len(recording.streams[0].tokens) - 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty", "script", "bidi override", "special tokens"])
@pytest.mark.parametrize("model", ["encoder", "translator"])
def test_hostile_texts_are_read_by_the_other_models(model: str, name: str) -> None:
    app = opened(model=model, text=HOSTILE[name], hidden="none")
    check_table(app, cache.record(model, HOSTILE[name]))


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_what_is_read_and_are_named() -> None:
    app = opened(model="translator", text="The dog is big.", target="Le chien")
    check_table(app, cache.record("translator", "The dog is big.", (), "Le chien"))
    assert any("reads your own words, “Le chien”" in each.value for each in app.info)
    clean(app.button(key="drop target").click().run())
    check_table(app, cache.record("translator", "The dog is big."))
    assert not any("your own words" in each.value for each in app.info)
    app = opened(model="translator", target="la rue " * 300)
    assert any("Your own words are" in each.value for each in app.warning)


def test_a_lens_weighs_what_its_arrays_weigh() -> None:
    recording = cache.record("decoder", "Plants eat animals, and animals eat plants")
    found = cache.lens(recording, "decoder")
    weights = [weight for key, (value, weight) in cache._cache.held.items() if value is found]
    arrays = (
        found.top_ids,
        found.top_logprobs,
        found.final_id,
        found.rank,
        found.logprob,
        found.kl,
    )
    assert 0 <= weights[0] - sum(each.nbytes for each in arrays) < 5_000  # labels and the like


@pytest.mark.slow
def test_a_model_that_says_no_words_is_told_and_another_shown() -> None:
    app = opened("word", model="minilm", text="Apples fall.")
    assert any(
        "minilm has no readout" in each.value and "this page shows **encoder**" in each.value
        for each in app.caption
    )
    assert app.session_state["model"] == "encoder" and bars_of(app, "What fits")["rows"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, state, parts",
    [
        ("induction-no-norm", "This model has no LayerNorm", "there is no LayerNorm on the way"),
        (
            "induction-no-residual",
            "a LayerNorm follows every sub-layer",
            "only what the last sub-layer wrote",
        ),
        (
            "induction-no-positions",
            "a LayerNorm follows every sub-layer",
            "the sum of what was written",
        ),
        ("grammar", "This model is pre-LN", "sent through 1 LayerNorm."),
    ],
)
def test_every_arrangement_is_read_and_said_as_it_is(
    model: str, state: str, parts: str, gpt2_on_pages: OwnModel
) -> None:
    app = opened(model=model, text="b a c d b")
    recording = cache.record(model, "b a c d b")
    check_table(app, recording)
    said = " ".join(each.value for each in app.markdown)
    app = opened("attribution", model=model, text="b a c d b")
    said += " ".join(each.value for each in app.markdown)
    assert state in said and parts in said
    found = cache.lens(recording, "decoder")
    taken = cache.attribution(
        recording, "decoder", len(recording.streams[0].tokens) - 1, int(found.final_id[-1])
    )
    assert logit_lens.parts_sum(taken) == pytest.approx(taken.logit, abs=TOTAL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "family, name", [("llama", "grammar"), ("bert", "grammar-masked"), ("bart", "reverse")]
)
def test_a_model_in_its_own_code_shows_what_it_has_on_every_page(
    family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiny

    from models.pretrained.hf_model import load

    monkeypatch.setitem(models._handles, name, load(str(tiny.build(family, tmp_path)), name=name))
    asked = {
        "word": [{}],
        "lens": [{}],
        "attribution": [{}],
        "translation": [{}],
        "embeddings": [{}, {"sums": "Sums"}],
        "residual": [{"flow": flow} for flow in ("Writes", "LayerNorm", "Heads", "Gradient")],
        "positions": [
            {"ask": ask} for ask in ("Waves", "Distance", "Shift", "Sentence", "Order", "Adding")
        ],
    }
    said = ""
    for page, choices in asked.items():
        for choice in choices:
            app = clean(page_at(page, model=name, text="the cat sat", **choice))
            said += " ".join(each.value for each in (*app.markdown, *app.info))
    assert "in its own code" in said
    assert "cannot be taken apart into a sum" not in said and "parts add up to" in said
    assert ("of these changes (of their squares)" in said) == (family == "bert")
    assert "It is taken once, as the model is" in said and "Nothing can be written" not in said
    assert ("turns queries and keys by their positions" in said) == (family == "llama")


@pytest.mark.slow
def test_a_held_cell_opens_with_words_that_add_up_to_one() -> None:
    app = opened(model="decoder", text="Plants eat animals", site="1.attn.normed", token="2")
    recording = cache.record("decoder", "Plants eat animals")
    found = cache.lens(recording, "decoder")
    cell = logit_lens.cell(found, found.sites.index("1.attn.normed"), 2)
    listed = bars_of(app, "The likeliest words of this cell")["rows"]
    assert [row["label"] for row in listed[:-1]] == models.labels("decoder", cell.ids)
    assert sum(row["value"] for row in listed) == pytest.approx(1) and len(listed) == 11
    way = sent(app, "lens_way")[0]
    assert (way["site"], way["at"]) == (found.sites.index("1.attn.normed"), 2)
    assert [one["rank"] for one in way["way"]] == found.rank[:, 2].tolist()
    assert any(f"**{cell.kl:.3f} nats**" in told.value for told in app.markdown)
    assert app.query_params["site"] in (
        "1.attn.normed",
        ["1.attn.normed"],
    )  # what was asked stays in the address


@pytest.mark.slow
def test_choosing_a_cell_sends_nothing_of_the_table_and_leaves_hidden_what_is() -> None:
    app = opened(text="The red fox saw a small bird")
    before = next(
        each.proto.bytes for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    hidden = sent(app, "lens")[0]["tokens"].index("[MASK]")
    assert sent(app, "lens_way")[0]["at"] == hidden
    app.session_state["site"], app.session_state["token"], app.session_state["hidden"] = (
        "0.ffn.normed",
        "2",
        str(hidden),
    )
    clean(app.run())
    after = next(
        each.proto.bytes for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    assert before == after and sent(app, "lens_way")[0]["at"] == 2


@pytest.mark.slow
def test_a_long_text_stays_light() -> None:
    text = ("the cat saw a dog near the old house and " * 60).strip()
    app = opened(model="decoder", text=text)
    proto = next(
        each.proto for each in on_page(app) if each.proto.component_name == "headlight.lens"
    )
    assert len(sent(app, "lens")[0]["tokens"]) == 512 and len(proto.bytes) < 400_000


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
def test_the_bars_are_the_parts_of_the_word_asked_for() -> None:
    handle, text = models.handle("decoder"), "The cat sat on the"
    recording = cache.record("decoder", text)
    word, against = (models.first_token("decoder", typed)[0] for typed in ("mat", "floor"))
    app = opened(
        "attribution",
        model="decoder",
        text=text,
        word=str(word),
        against=str(against),
        part="self.3.1",
    )
    taken = handle.attribute(
        recording, "decoder", len(recording.streams[0].tokens) - 1, word, against
    )
    listed = bars_of(app, "Parts of the logit")
    values = {logit_lens.part_name(part): part.value for part in taken.parts}
    rest = next(row for row in listed["rows"] if row["tone"] == "rest")
    named = [row for row in listed["rows"] if row is not rest]
    assert all(row["value"] == pytest.approx(values[row["label"]]) for row in named)
    assert sum(row["value"] for row in listed["rows"]) == pytest.approx(taken.logit, abs=PASSED)
    assert listed["chosen"] == "self.3.1" and "self.3.1" in [row["key"] for row in named]
    summed = sent(app, "lens_sum")[0]
    assert (
        sum(group["value"] for group in summed["groups"])
        == pytest.approx(summed["total"])
        == pytest.approx(taken.logit, abs=PASSED)
    )
    told = " ".join(each.value for each in app.markdown)
    assert (
        f"{taken.logit:+.5f}".replace("-", "−") in told
        and "less that of **floor**" in told
        and "**Layer 3, head 1** is called" in told
    )
    (link,) = app.get("page_link")
    assert (
        "layer=3" in link.proto.query_string
        and "head=1" in link.proto.query_string
        and "model=decoder" in link.proto.query_string
    )


@pytest.mark.slow
def test_without_a_choice_the_word_is_the_models_own_and_a_word_is_not_compared_with_itself() -> (
    None
):
    app = opened("attribution", model="decoder", text="The cat sat on the")
    found = cache.lens(cache.record("decoder", "The cat sat on the"), "decoder")
    best = models.labels("decoder", [found.final_id[-1]])[0]
    assert (
        app.selectbox(key="word field").options[0].endswith(best)
        and app.selectbox(key="against field").options[0] == "nothing"
    )
    assert len(app.selectbox(key="word field").options) == 11
    asked = {"model": "decoder", "text": "The cat sat on the"}
    same = opened("attribution", **asked, against=str(found.final_id[-1]))
    assert any("compared with itself" in told.value for told in same.info)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"token": "999", "site": "9.ffn.normed"},
        {"site": "<b>", "lens": "?", "word": "-1", "against": "9" * 4},
        {"part": "self.9.9", "word": "99999"},
    ],
)
def test_a_link_that_asks_for_what_is_not_there_still_opens(asked: dict[str, str]) -> None:
    app = opened(model="decoder", text="The cat", **asked)
    assert (
        sent(app, "lens")[0]["measure"] == "Top word"
        and sent(app, "lens_way")[0]["site"] == len(sent(app, "lens")[0]["sites"]) - 1
    )


@pytest.mark.slow
def test_the_same_words_split_otherwise_are_another_cause() -> None:
    """What is kept beside a recording is not handed to one of the same text whose tokens are
    others."""
    recording = cache.record("decoder", "the cat")
    stream = recording.streams[0]
    import dataclasses

    other = dataclasses.replace(
        recording, streams=(dataclasses.replace(stream, ids=np.array([*stream.ids[:-1], 5])),)
    )
    assert cache.picture_name(recording) != cache.picture_name(other)
