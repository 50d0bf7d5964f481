"""A public call gives what its words promise, or says in one sentence what it did instead."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from edited import OTHER, TEXT
from tolerances import DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL

import headlight
from explorer.panels import attention as attention_panels
from explorer.panels import compare, corpus, predictions
from models.contract import edits, path_integral
from models.contract.notices import Notice
from models.inputs import array_model
from models.network import own_model
from models.runtime import host
from models.runtime.run import Run

WORDS = "the cat sat"


def told(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and what it says it did instead."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = call()
    return value, [str(each.message) for each in caught if issubclass(each.category, Notice)]


# ---- gradients ---------------------------------------------------------------


@pytest.mark.parametrize("stream", ["encoder", "decoder"])
def test_gradients_of_a_translator_are_of_the_token_that_is_named(
    stream: str, small_translator: own_model.OwnModel
) -> None:
    """By finite differences of the logit at that token of the target, in 64 bits."""
    from models.own import precision

    model = precision.computing(small_translator, "float64", "cpu")
    target = tuple(map(int, model.record(TEXT, target=OTHER).streams[1].ids[1:]))
    recording = model.record(TEXT, target=target)
    for token in (0, 2, -1):
        found = model.gradients(recording, stream, token)
        scores = model.logits(recording, "decoder", token)
        assert found.id == scores.argmax() and found.logit == pytest.approx(scores.max())
        slopes = []
        for at in range(3):
            push = np.zeros(model.card.d_model)
            push[at] = 1e-6
            pushed = [edits.AddToSite(sign * push, "embed+pos", 1, stream) for sign in (1, -1)]
            moved = [model.record(TEXT, each, target) for each in pushed]
            ends = [model.logits(each, "decoder", token)[found.id] for each in moved]
            slopes.append((ends[0] - ends[1]) / 2e-6)
        if stream == "decoder" and token == 0:
            assert not found.norm[0, 1] and not np.any(slopes), "token 1 comes after it"
        else:
            assert found.norm[0, 1] >= np.linalg.norm(slopes) - DOUBLE_LONG > 0
    with pytest.raises(ValueError, match="stream decoder has tokens 0 to"):
        model.gradients(recording, "encoder", len(recording.streams[1].tokens))


@pytest.mark.parametrize("name", ["encoder", "decoder", "translator"])
@pytest.mark.slow
def test_integrated_gradients_of_our_models_sum_to_within_a_hundredth(name: str) -> None:
    model = headlight.load(name)
    recording = model.record("The capital of Nepal is")
    for stream in recording.streams:
        empty = model.record(
            recording.text,
            edits.ScaleSite(0.0, stream.sites[0], None, stream.name),
            tuple(recording.streams[1].ids[1:]) if name == "translator" else None,
        )
        output = recording.streams[-1].name
        scores, without = (model.logits(each, output, -1) for each in (recording, empty))
        word = int(scores.argmax())
        shares, said = told(lambda: model.integrated_gradients(recording, stream.name, -1))
        change = scores[word] - without[word]
        assert shares.sum() == pytest.approx(change, rel=0.011) and not said  # 1 %, and rounding


@pytest.mark.parametrize(
    ("name", "text", "word", "against"),
    [
        ("decoder", "My sister has a red car", " he", None),
        ("decoder", "The king said that", " he", None),
        ("encoder", "The old woman opened the [MASK]", "door", None),
        ("decoder", "The king said that", " he", " she"),
    ],
)
def test_shares_sum_to_the_true_change_or_it_is_said(
    name: str, text: str, word: str, against: str | None
) -> None:
    """Under norms, from embeddings of 0, along a way on which the score bends hundreds of times."""
    model = headlight.load(name)
    recording = model.record(text)
    stream = recording.streams[0]
    token = stream.tokens.index("[MASK]") if "[MASK]" in text else -1
    id, other = (None if each is None else model.first_token(each)[0] for each in (word, against))
    empty = model.record(text, edits.ScaleSite(0.0, stream.sites[0]))
    ends = [model.logits(each, name, token) for each in (recording, empty)]
    change, start = (each[id] - (0.0 if other is None else each[other]) for each in ends)
    whole = change - start
    shares, said = told(
        lambda: model.integrated_gradients(recording, stream.name, token, id, against=other)
    )
    largest = np.abs(shares).max()
    assert abs(shares.sum() - whole) <= 0.011 * abs(whole) + 0.001 * largest and not said
    few, said = told(
        lambda: model.integrated_gradients(recording, stream.name, token, id, 2, against=other)
    )
    assert said or abs(few.sum() - whole) <= 0.011 * abs(whole) + 0.001 * largest


def test_integrated_gradients_are_those_of_ten_thousand_equal_steps() -> None:
    """Of a score that bends sharply near 0 and in the middle, as after a norm and a gate."""
    weights = np.array([1.0, -2.0, 0.5])

    def at(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = torch.tensor(places[:, None] * weights, requires_grad=True)
        rms = (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
        score = (x / rms).sum(-1) + 3 * (x[:, 0] - 0.4).relu()
        (slope,) = torch.autograd.grad(score.sum(), x)
        return score.detach().numpy(), slope.numpy() * weights

    def slopes(place: float) -> tuple[float, np.ndarray]:
        (score,), (slope,) = at(np.array([place]))
        return float(score), slope

    shares, whole = path_integral.shares_of(path_integral.one_by_one(slopes))
    steps = (np.arange(10_000) + 0.5) / 10_000
    expected = at(steps)[1].mean(axis=0)
    # A hundredth of the change, which is what all shares together may miss.
    np.testing.assert_allclose(shares, expected, atol=0.01 * abs(whole))
    assert abs(shares.sum() - whole) <= 0.01 * abs(whole)
    with pytest.raises(ValueError, match="1 step or more"):
        path_integral.shares_of(path_integral.one_by_one(slopes), 0)


def test_slopes_that_are_none_at_nothing_are_left_out() -> None:
    """The slope of a square root at 0 is infinite; its integral is 1."""

    def slopes(place: float) -> tuple[float, np.ndarray]:
        with np.errstate(divide="ignore"):
            return np.sqrt(place), 0.5 / np.sqrt(np.array([place]))

    shares, _ = path_integral.shares_of(path_integral.one_by_one(slopes))
    # Parts beside 0 stay without their share.
    assert shares.sum() == pytest.approx(1.0, rel=0.02) and np.isfinite(shares).all()


# ---- a model of one's own ------------------------------------------------------


@pytest.fixture
def in_training() -> Any:
    """A model of transformers with dropout in training, one of its layers frozen by its owner."""
    import transformers

    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=60, n_positions=1024, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.5
    )
    own = transformers.GPT2LMHeadModel(config).train()
    own.transformer.h[0].eval()
    return own


def test_a_model_in_training_is_recorded_without_dropout_and_stays_so(in_training: Any) -> None:
    before = [each.training for each in in_training.modules()]
    model = headlight.wrap(in_training)
    assert [each.training for each in in_training.modules()] == before
    recordings = [model.record([5, 6, 7]) for _ in range(3)]
    shares = [model.integrated_gradients(each, "decoder", -1, 7) for each in recordings[:2]]
    norms = [model.gradients(each, "decoder", -1).norm for each in recordings[:2]]
    scores = model.logits(recordings[0], "decoder", -1)
    writing = model.generate("5 6 7")
    broken = in_training.lm_head.register_forward_pre_hook(lambda *_: [][0])
    with pytest.raises(ValueError, match="does not run on 2 tokens"):
        model.record([5, 6])
    broken.remove()
    assert [each.training for each in in_training.modules()] == before
    with torch.no_grad():
        expected = in_training.eval()(torch.tensor([[5, 6, 7]])).logits[0, -1]
    np.testing.assert_allclose(scores, expected, atol=SUMMED)
    np.testing.assert_allclose(writing.logits, expected, atol=SUMMED)
    assert recordings[0] == recordings[1] == recordings[2]
    np.testing.assert_array_equal(*shares)
    np.testing.assert_array_equal(*norms)


def test_weights_that_changed_after_wrapping_are_told(in_training: Any) -> None:
    model = headlight.wrap(in_training)
    _, said = told(lambda: model.record([5, 6, 7]))
    assert not said
    loss = in_training(torch.tensor([[5, 6, 7]]), labels=torch.tensor([[5, 6, 7]])).loss
    loss.backward()
    torch.optim.SGD(in_training.parameters(), lr=0.1).step()
    _, said = told(lambda: model.record([5, 6, 7]))
    assert ["have changed since it was wrapped" in each for each in said] == [True]
    again = headlight.wrap(in_training)
    assert again.name != model.name and not told(lambda: again.record([5, 6, 7]))[1]


def test_a_wrapped_model_reads_as_many_tokens_as_it_has_positions(in_training: Any) -> None:
    model, ids = headlight.wrap(in_training), np.arange(700) % 60
    recording, said = told(lambda: model.record(ids))
    assert model.card.n_positions == 1024 and len(recording.streams[0].ids) == 700 and not said
    with torch.no_grad():
        expected = in_training.eval()(torch.tensor(ids)[None]).logits[0, -1]
    np.testing.assert_allclose(model.logits(recording, "decoder", -1), expected, atol=TOTAL)
    recording, said = told(lambda: model.record(np.arange(1100) % 60))
    assert recording.dropped == 76 and len(said) == 1
    assert "reads 1,024 tokens at once; of the 1,100 tokens of this text the last 76" in said[0]


def test_a_text_that_memory_does_not_hold_is_refused(
    in_training: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from models.pretrained import hf_source

    monkeypatch.setattr(hf_source, "MOST_BYTES_OF_PATTERNS", 1000)
    monkeypatch.setattr(hf_source, "free_memory", lambda: 2**20)
    with pytest.raises(ValueError, match="700 tokens of .* takes 0.0 GiB of memory, and 0.0 GiB"):
        headlight.wrap(in_training).record(np.arange(700) % 60)


# ---- texts ---------------------------------------------------------------------


def test_a_text_that_is_cut_is_told_with_its_numbers(
    model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    n = model.card.n_positions
    long = [7] * (n + 3)
    target = "the cat" if model.card.kind == "encoder-decoder" else None
    for call in (
        lambda: model.record(long, target=target),
        lambda: headlight.record(model, long, target=target),
        lambda: model.record_all([long, long]) if target is None else model.record(long, (), ()),
    ):
        made, said = told(call)
        assert {each.dropped for each in (made if isinstance(made, tuple) else (made,))} == {3}
        assert said and all(
            f"reads {n:,} tokens at once; of the {n + 3:,} tokens of this text the last 3" in each
            for each in said
        )
    assert told(lambda: model.record(long[:n], target=target))[1] == []
    donor = edits.PatchSite("the " * 2 * n, "0.ffn.normed", 1)
    assert any("this text the last" in each for each in told(lambda: model.record(TEXT, donor))[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        small_decoder.record([7] * (small_decoder.card.n_positions + 1))
    assert [each.filename for each in caught] == [__file__], "it names the caller's line"


def test_a_translators_texts_are_cut_with_a_word(small_translator: own_model.OwnModel) -> None:
    n = small_translator.card.n_positions
    for target in ("the cat " * n, [7] * 2 * n):
        recording, said = told(lambda: small_translator.record(TEXT, target=target))
        assert len(recording.streams[1].ids) == n and recording.target_dropped > 0
        assert [f"of this target the last {recording.target_dropped:,}" in each for each in said]
    for call in (
        lambda: next(small_translator.beams("the cat " * n, 2)),
        lambda: small_translator.generate("the cat " * n),
    ):
        assert any(f"reads {n:,} tokens at once" in each for each in told(call)[1])
    with pytest.raises(ValueError, match="has ids 0 to 299, not 300"):
        small_translator.record(TEXT, target=[300])
    with pytest.raises(ValueError, match="no room for more"):
        small_translator.generate("the", tuple([7] * n))


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Any]:
    """A tokenizer of transformers with its own padding, and a model that reads its ids."""
    import tiny
    import transformers

    torch.manual_seed(6)
    tokenizer = tiny.wordpiece()
    config = transformers.BertConfig(**{"vocab_size": len(tokenizer), **tiny.BERT})
    return tokenizer, headlight.wrap(transformers.BertForMaskedLM(config).eval(), tokenizer)


FORMS: dict[str, Callable[[Any], Any]] = {
    "as it comes": lambda tokenizer: tokenizer(WORDS),
    "a dict": lambda tokenizer: dict(tokenizer(WORDS)),
    "of torch": lambda tokenizer: tokenizer(WORDS, return_tensors="pt"),
    "of numpy": lambda tokenizer: tokenizer(WORDS, return_tensors="np"),
    "padded": lambda tokenizer: tokenizer(WORDS, padding="max_length", max_length=12),
    "padded on the left": lambda tokenizer: tokenizer(
        WORDS, padding="max_length", max_length=12, padding_side="left", return_tensors="pt"
    ),
    "with offsets": lambda tokenizer: tokenizer(WORDS, return_offsets_mapping=True),
    "an encoding": lambda tokenizer: tokenizer.backend_tokenizer.encode(WORDS),
    "a list of ids": lambda tokenizer: tokenizer(WORDS).input_ids,
}


@pytest.mark.parametrize("form", FORMS)
def test_what_a_tokenizer_hands_out_is_its_text(form: str, pair: tuple[Any, Any]) -> None:
    tokenizer, model = pair
    given = FORMS[form](tokenizer)
    assert headlight.record(model, given) == model.record(given) == model.record(WORDS)


def test_what_a_tokenizer_hands_out_for_several_texts(pair: tuple[Any, Any]) -> None:
    tokenizer, model = pair
    texts = [WORDS, "a dog ran under the house"]
    expected = model.record_all(texts)
    for given in (
        tokenizer(texts),
        tokenizer(texts, padding=True),
        tokenizer(texts, padding=True, return_tensors="pt"),
        tokenizer.backend_tokenizer.encode_batch(texts),
    ):
        assert headlight.record(model, given) == model.record_all(given) == expected
        with pytest.raises((ValueError, TypeError), match="2 texts|a text is a str, or"):
            model.record(given)
    assert headlight.record(model, tokenizer([WORDS])) == (model.record(WORDS),)


@pytest.mark.parametrize(
    "given, why",
    [
        ({}, "has input_ids; this has nothing"),
        ({"inputs_embeds": [[1.0]]}, "has input_ids; this has 'inputs_embeds'"),
        ({"input_ids": [5, 6], "labels": [5, 6]}, "'labels' would be left out"),
        ({"input_ids": [5, 6, 7], "attention_mask": [1, 0, 1]}, "hides tokens between others"),
        ({"input_ids": [5, 6], "attention_mask": [1]}, "has 1 numbers for 2 ids"),
        ({"input_ids": [5, 6], "token_type_ids": [0, 1]}, "token_type_ids are not 0"),
        ({"input_ids": [5, 6], "attention_mask": [0, 0]}, "no token ids"),
        ({"input_ids": [5.5]}, "holds token ids, whole numbers"),
    ],
)
def test_what_a_recording_would_not_follow_is_refused(
    given: dict[str, Any], why: str, small_model: own_model.OwnModel
) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        headlight.record(small_model, given)


def test_one_text_in_the_place_of_several_is_refused(small_model: own_model.OwnModel) -> None:
    with pytest.raises(TypeError, match="several texts in a list"):
        small_model.record_all(TEXT)


def test_a_text_is_written_on_after_its_recording_as_that_was_edited(
    small_decoder: own_model.OwnModel, small_model: own_model.OwnModel
) -> None:
    recording = small_decoder.record(TEXT)
    n = len(recording.streams[0].tokens)
    for n_read in (1, n):
        expected = small_decoder.logits(recording, "decoder", n_read - 1)
        np.testing.assert_allclose(
            small_decoder.resume(recording, n_read).logits, expected, atol=PASSED
        )
    edited = small_decoder.record(TEXT, edits.ZeroHead(0, 1))
    expected = small_decoder.logits(edited, "decoder", n - 1)
    written = small_decoder.resume(edited, n)
    np.testing.assert_allclose(written.logits, expected, atol=PASSED)
    for n_read in (0, -1, n + 1):
        with pytest.raises(ValueError, match=f"after 1 to {n} tokens, not after {n_read}"):
            small_decoder.resume(recording, n_read)
    with pytest.raises(ValueError, match="no decoder"):
        small_model.resume(small_model.record(TEXT), 2)


# ---- arrays --------------------------------------------------------------------


def test_rows_that_are_off_are_divided_with_a_word_and_exact_ones_stay() -> None:
    rng = np.random.default_rng(4)
    exact = rng.dirichlet(np.ones(6), (2, 2, 6)).astype(np.float32)
    recording, said = told(lambda: headlight.view(exact, list("abcdef")))
    np.testing.assert_array_equal(recording.attention[0].pattern, exact)
    assert not said
    off = exact.copy()
    off[1, 0, 3] *= 1.007
    recording, said = told(lambda: headlight.view(off, list("abcdef")))
    found = recording.attention[0].pattern
    np.testing.assert_allclose(found[1, 0, 3], exact[1, 0, 3], atol=STORED)
    others = np.ones((2, 2, 6), bool)
    others[1, 0, 3] = False
    np.testing.assert_array_equal(found[others], exact[others])
    assert said == [
        "rows of attention sum to 1; 1 of these 24 do not and are divided by their sum (the worst, "
        "of query 3 in head 0 of layer 1 sums to 1.007)"
    ]
    with pytest.raises(ValueError, match="that of query 3 in head 0 of layer 1 sums to 1.01"):
        headlight.view(np.where(others[..., None], exact, 1.01 * exact), list("abcdef"))
    assert array_model.HALF_TOLERANCE < 0.008


# ---- panels --------------------------------------------------------------------


def test_sentences_beyond_the_most_are_told_and_the_text_is_counted(
    small_model: own_model.OwnModel,
) -> None:
    host.current.adopt(small_model)
    run = Run(small_model.name, TEXT)
    panel, said = told(lambda: corpus.patterns(run, others="the cat sat\nthe dog ran"))
    assert "Mean of 3 sentences of self-attention: the text below and 2 more." in panel.caption
    assert not said
    lines = [f"{word} {other}" for word in TEXT.split() for other in OTHER.split()] * 9
    lines[3] = "the cat " * 200
    assert len(lines) > 250
    read, said = told(lambda: corpus.patterns(run, others="\n".join(lines)))
    assert max(read.table["sentences"]) == 200
    assert said[:2] == [
        f"Of the further sentences 199 are read at once. The last {len(lines) - 199} are left out",
        "Of 1 sentence what stands beyond 1,000 characters is left out",
    ]
    assert {f"{each}." for each in said[:2]} <= {*read.caption}
    assert "small reads 64 tokens at once" in said[2]


def test_the_default_sentences_do_not_count_the_text_twice() -> None:
    panel = corpus.patterns(Run("encoder", next(iter(corpus.EXAMPLES.values()))))
    assert f"{len(corpus.EXAMPLES)} sentences" in " ".join(panel.caption)
    assert max(panel.table["sentences"]) == len(corpus.EXAMPLES)


def test_a_panel_keeps_the_recording_that_it_was_made_of(
    small_decoder: own_model.OwnModel, tmp_path: Path
) -> None:
    host.current.adopt(small_decoder)
    record = lambda text, *asked: headlight.record(small_decoder, text, asked)
    panels = [attention_panels.head(record(text)) for text in (TEXT, OTHER)]
    panels.append(predictions.word(record(TEXT, edits.ZeroHead(0, 1))))
    panels.append(compare.prediction(record(TEXT), record(OTHER)))
    gc.collect()
    for at, panel in enumerate(panels):
        for ending in ("html", "svg", "json", "csv"):
            panel.save(tmp_path / f"{at}.{ending}")
        assert panel.cause["text"] == (OTHER if at == 1 else TEXT) and panel._repr_html_()
    other = panels[0].with_choices({"layer": "1"})
    del panels
    gc.collect()
    assert other.choices["layer"] == 1 and other.encode()


def test_a_panel_of_a_run_holds_no_recording(small_decoder: own_model.OwnModel) -> None:
    """As the app makes them: what it keeps of a panel is what it weighs."""
    host.current.adopt(small_decoder)
    assert attention_panels.head(Run(small_decoder.name, TEXT)).made_of == ()
