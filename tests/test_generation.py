"""Writing with stored keys and values is the full pass, step for step; choosing is the arithmetic
it says it is; beams are the best."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice, product

import numpy as np
import pytest
import torch
from tolerances import DOUBLE, PASSED, SUMMED

from models.contract import edits
from models.contract.results import Beam, Sampling, SeededSampling, probabilities, softmax
from models.network import generation, own_model
from models.network.attention import KVCache
from models.network.generation import Generation
from models.network.own_model import OwnModel

TEXT = "the cat sat"
WAYS = {
    "greedy": Sampling(0),
    "plain": Sampling(),
    "temperature": Sampling(0.7),
    "top-k": Sampling(1.3, 12),
    "top-p": Sampling(1.0, 0, 0.8),
    "all three": Sampling(0.9, 20, 0.9),
}


def started(model: OwnModel) -> tuple[Generation, torch.Tensor | None]:
    writing = model.generate(TEXT)
    memory = (
        None
        if model.card.kind == "decoder"
        else own_model.memory_of(model, own_model.frame(model, TEXT)[0])
    )
    return writing, memory


@torch.inference_mode()
def full_pass(model: OwnModel, ids: list[int], memory: torch.Tensor | None) -> torch.Tensor:
    """The logits after the last token, read all at once with nothing stored."""
    return model.network.logits(
        generation.decode(model.network, torch.tensor([ids]), memory)[0, -1]
    )


@pytest.fixture(params=["small_decoder", "small_translator"])
def model(request: pytest.FixtureRequest) -> OwnModel:
    return request.getfixturevalue(request.param)


@pytest.mark.parity
@pytest.mark.slow
def test_every_step_with_stored_keys_is_the_full_pass(model: OwnModel) -> None:
    """The store grows by a token a step, and says its size."""
    writing, memory = started(model)
    card, ways = model.card, cycle(WAYS.values())
    while not writing.is_full:
        logits = full_pass(model, writing.ids, memory).numpy()
        np.testing.assert_allclose(writing.logits, logits, atol=SUMMED)
        n = len(writing.ids)
        tokens = n if memory is None else n + memory.shape[1]
        n_bytes = 2 * card.n_layer * card.n_head * tokens * card.d_head * 4
        assert (writing.stored.n, writing.stored.nbytes) == (n, n_bytes)
        way, seed = next(ways), np.random.default_rng
        token = generation.sample(writing.logits, way, seed(n))
        assert token == generation.sample(logits, way, seed(n))
        writing.add(token)
    assert len(writing.ids) == model.card.n_positions
    with pytest.raises(ValueError, match="reads 64 tokens and no more"):
        writing.add(5)


def test_tokens_read_ahead_at_once_are_those_read_one_by_one(model: OwnModel) -> None:
    """And going back is as if a token had never been."""
    writing, before = model.generate(TEXT), model.generate(TEXT)
    after = writing.logits_after([[5], [6], [7]])
    np.testing.assert_array_equal(writing.logits, before.logits, "none of them is taken")
    pairs = writing.logits_after([[5, 6], [7, 5]])
    assert len(writing._ahead[1].places) == 2, "only their last tokens were read"
    at_once = before.logits_after([[5, 6], [7, 5]])
    np.testing.assert_allclose(at_once, pairs, atol=SUMMED)
    for ids, logits in zip([(5,), (6,), (7,), (5, 6), (7, 5)], (*after, *pairs)):
        np.testing.assert_allclose(logits, model.generate(TEXT, ids).logits, atol=SUMMED)
    for ids in ((6,), (6, 5)):
        writing.add(ids[-1])
        alone = model.generate(TEXT, ids)
        assert (writing.ids, writing.stored.n) == (alone.ids, alone.stored.n)
        np.testing.assert_allclose(writing.logits, alone.logits, atol=SUMMED)
        for place, rows in writing.rows.items():
            np.testing.assert_allclose(rows, alone.rows[place], atol=SUMMED)
    writing.back()
    writing.back()
    assert (writing.ids, writing.stored.nbytes) == (before.ids, before.stored.nbytes)
    np.testing.assert_allclose(writing.logits, before.logits, atol=SUMMED)


def test_the_newest_row_is_the_last_row_of_a_recording(small_decoder: OwnModel) -> None:
    writing = small_decoder.generate("the cat")
    for token in small_decoder.tokenizer.ids([" sat on"])[0]:
        writing.add(token)
    attention = small_decoder.record("the cat sat on").attention[0]
    assert list(own_model.frame(small_decoder, "the cat sat on")[0].ids) == writing.ids
    np.testing.assert_allclose(writing.rows["attn"], attention.pattern[:, :, -1], atol=SUMMED)


def test_a_recording_is_written_on_as_its_text_is(small_decoder: OwnModel) -> None:
    """From the keys and values that it holds, after any of its tokens."""
    recording = small_decoder.record("the cat sat on the mat")
    ids = recording.streams[0].ids.tolist()
    begun = small_decoder.generate("")
    for n_read in range(1, len(ids) + 1):
        resumed, anew = small_decoder.resume(recording, n_read), small_decoder.generate("")
        for id in ids[len(begun.ids) : n_read]:
            anew.add(id)
        assert resumed.ids == ids[:n_read] and resumed.stored.n == n_read
        np.testing.assert_allclose(resumed.logits, anew.logits, atol=PASSED)
        np.testing.assert_allclose(resumed.rows["attn"], anew.rows["attn"], atol=PASSED)
        at_once = anew.logits_after([[5, 6], [7, 5]])
        np.testing.assert_allclose(resumed.logits_after([[5, 6], [7, 5]]), at_once, atol=PASSED)


STEER, DONOR = np.linspace(-3, 3, 24), "the dog ran to the cat on the mat"
OF_ALL = [
    edits.ZeroHead(0, 1, "decoder self"),
    edits.AddToSite(STEER, "1.ffn.sum", stream="decoder"),
    edits.UniformHead(1, 2, "decoder self"),
    edits.SetNeuron(2.5, 1, 4, stream="decoder"),
    edits.MeanHead(0, 1, "decoder self"),
    edits.SetSite(STEER, "0.attn.wrote", token=1, stream="decoder"),
    edits.CutEdge(1, 2, 2, 1, "decoder self"),
    edits.PatchPath(DONOR, 0, 1, to="resid", attention="decoder self"),
    edits.ZeroHead(1, 1, "cross"),
    edits.AddToSite(STEER, "1.ffn.sum", stream="encoder"),
    edits.HideWord(1),
]
OF_DECODERS = [
    edits.PatchHead(DONOR, 0, 1),
    edits.PatchPath(DONOR, 0, 1, 2, 1, "v"),
    edits.Window(2),
    edits.WithoutMask(),
    edits.ShufflePositions(1),
    edits.ShiftPositions(3),
    edits.OtherPositions("distance"),
]


def asked(model: OwnModel) -> list[edits.Edit]:
    """Edits that a model can follow, by the names of its attentions and streams."""
    if model.card.kind == "encoder-decoder":
        return OF_ALL
    own = [each for each in OF_ALL if getattr(each, "attention", "") != "cross"]
    own = [each for each in own if getattr(each, "stream", "") != "encoder"]
    named = [
        replace(each, attention="self") if hasattr(each, "attention") else each for each in own
    ]
    return [*named, *OF_DECODERS]


def test_what_is_written_under_an_edit_is_what_the_edited_passes_say(model: OwnModel) -> None:
    for edit in asked(model):
        writing, plain = model.generate(TEXT, (5, 6), edit), model.generate(TEXT, (5, 6))
        moved = 0.0
        for token in (7, 30, 12):
            ids = tuple(map(int, writing.ids))
            if model.card.kind == "decoder":
                recording = model.record(ids, edit)
            else:
                recording = model.record(TEXT, edit, target=ids[1:] or "")
            expected = model.logits(recording, recording.streams[-1].name, len(ids) - 1)
            np.testing.assert_allclose(writing.logits, expected, atol=PASSED, err_msg=str(edit))
            moved = max(moved, np.abs(writing.logits - plain.logits).max())
            after = writing.logits_after([[token], [5]])[0]
            writing.add(token)
            plain.add(token)
            np.testing.assert_allclose(writing.logits, after, atol=PASSED)
        assert moved > 1e-3, edit
        before = writing.logits
        writing.add(9)
        writing.back()
        np.testing.assert_allclose(writing.logits, before, atol=PASSED)


def test_an_edited_recording_is_written_on_as_edited(small_decoder: OwnModel) -> None:
    for edit in asked(small_decoder):
        recording = small_decoder.record(TEXT, edit)
        n = len(recording.streams[0].tokens)
        one, other = small_decoder.resume(recording, n), small_decoder.generate(TEXT, (), edit)
        for token in (7, 30):
            np.testing.assert_allclose(one.logits, other.logits, atol=PASSED, err_msg=str(edit))
            one.add(token)
            other.add(token)


def test_a_search_under_an_edit_has_the_probabilities_of_edited_passes(
    small_translator: OwnModel,
) -> None:
    for edit in OF_ALL:
        *_, last = islice(small_translator.beams(TEXT, 3, edit), 4)
        for beam in last:
            writing, logprobs = small_translator.generate(TEXT, (), edit), []
            for token in beam.ids:
                logprobs.append(np.log(softmax(writing.logits.astype(np.float64))[token]))
                writing.add(token)
            np.testing.assert_allclose(beam.logprobs, logprobs, atol=PASSED, err_msg=str(edit))


def test_temperature_top_k_and_top_p_do_what_they_say() -> None:
    logits = np.log(np.array([0.1, 0.4, 0.2, 0.3]))
    for way, expected in (
        (Sampling(), [0.1, 0.4, 0.2, 0.3]),
        (Sampling(0), [0, 1, 0, 0]),
        (Sampling(0.5), np.array([1, 16, 4, 9]) / 30),
        (Sampling(top_k=2), [0, 4 / 7, 0, 3 / 7]),
        (Sampling(top_p=0.5), [0, 4 / 7, 0, 3 / 7]),  # 0.4 is not yet 0.5
        (Sampling(top_p=0.39), [0, 1, 0, 0]),
        (Sampling(1, 3, 0.7), [0, 4 / 7, 0, 3 / 7]),  # of the three kept, 0.4 + 0.3 is 7/9
    ):
        np.testing.assert_allclose(probabilities(logits, way), expected)


def test_whatever_is_cut_the_rest_sums_to_one() -> None:
    logits = np.random.default_rng(0).normal(0, 4, 8192).astype(np.float32)
    for way in WAYS.values():
        p = probabilities(logits, way)
        assert p.sum() == pytest.approx(1, abs=DOUBLE) and (p >= 0).all()
        assert p.argmax() == logits.argmax()
    exact = torch.tensor(logits).double().softmax(-1).numpy()
    np.testing.assert_allclose(softmax(logits), exact, atol=DOUBLE)


@pytest.mark.parametrize("wrong", [(-1, 0, 1), (1, -1, 1), (1, 0, 0), (1, 0, 1.1)])
def test_a_sampling_that_makes_no_sense_is_refused(wrong: tuple[float, int, float]) -> None:
    with pytest.raises(ValueError, match="temperature and top-k cannot be negative"):
        Sampling(*wrong)


def test_draws_follow_the_distribution() -> None:
    logits, rng = np.log(np.array([0.7, 0.2, 0.1])), np.random.default_rng(0)
    drawn = np.bincount([generation.sample(logits, Sampling(), rng) for _ in range(4000)]) / 4000
    np.testing.assert_allclose(drawn, [0.7, 0.2, 0.1], atol=0.03)  # four deviations of 4,000 draws


def test_a_beam_as_wide_as_the_vocabulary_finds_the_best_of_all_texts(
    small_translator: OwnModel,
) -> None:
    """Three tokens of a vocabulary of 300 are 27 million texts; a model of six tokens has 216, each
    of which can be tried."""
    model, end, n = small_translator.network, 2, 3
    ids = list(range(6))
    memory = own_model.memory_of(small_translator, own_model.frame(small_translator, "the dog")[0])

    class Few:
        """The same model with six tokens to say."""

        config = model.config
        decode = staticmethod(model.decode)

        @staticmethod
        def logits(x: torch.Tensor) -> torch.Tensor:
            return model.logits(x)[..., ids]

    def score(text: tuple[int, ...]) -> float:
        return logprobs_of(Few, memory, text, 1).sum() / ((5 + len(text)) / 6) ** 0.6

    *_, last = generation.beams(Few, [1], frozenset({end}), 216, n, memory)
    ended = {
        text[: text.index(end) + 1] if end in text else text for text in product(ids, repeat=n)
    }
    best = max(ended, key=score)
    assert last[0].ids == best
    expected = logprobs_of(Few, memory, best, 1).sum()
    assert sum(last[0].logprobs) == pytest.approx(expected, abs=PASSED)


@torch.inference_mode()
def logprobs_of(
    model: object, memory: torch.Tensor, text: tuple[int, ...], begin: int
) -> np.ndarray:
    """The log-probability of each token of a text after those before it, by one full pass."""
    tokens = torch.tensor([[begin, *text[:-1]]])
    logprobs = model.logits(model.decode(tokens, memory)[0]).double().log_softmax(-1)
    return logprobs[range(len(text)), list(text)].numpy()


@pytest.mark.parametrize("n_beams", [1, 4])
def test_beams_with_stored_keys_have_the_probabilities_of_full_passes(
    small_translator: OwnModel, n_beams: int
) -> None:
    """And a single beam is the greedy translation."""
    text, tokenizer = "the cat sat on", small_translator.tokenizer
    memory = own_model.memory_of(small_translator, own_model.frame(small_translator, text)[0])
    before = None
    for held in small_translator.beams(text, n_beams):
        scores = [beam.score for beam in held]
        assert len(held) <= n_beams and scores == sorted(scores, reverse=True)
        for beam in held:
            expected = logprobs_of(small_translator.network, memory, beam.ids, tokenizer.bos)
            np.testing.assert_allclose(beam.logprobs, expected, atol=SUMMED)
            assert beam.done is (beam.ids[-1] == tokenizer.eos)
            if before is not None:
                parent = before[beam.parent]
                assert beam.ids[: len(parent.ids)] == parent.ids
        before = held
    if n_beams == 1:
        said = small_translator.record(text).streams[1].ids[1:]
        assert [token for token in held[0].ids if token != tokenizer.eos] == list(said)


@pytest.mark.parity
@pytest.mark.slow
def test_a_drawn_answer_follows_its_seed_and_keeps_the_models_probabilities(
    small_translator: OwnModel,
) -> None:
    text = "the cat sat on"

    def drawn(seed: int, **way: float) -> Beam:
        *_, (last,) = small_translator.beams(text, SeededSampling(Sampling(**way), seed))
        return last

    *_, (likeliest,) = small_translator.beams(text, 1)
    assert drawn(3, temperature=0.0).ids == likeliest.ids == drawn(5, top_k=1).ids
    assert drawn(3).ids == drawn(3).ids
    assert len({drawn(seed).ids for seed in range(8)}) > 1
    memory = own_model.memory_of(small_translator, own_model.frame(small_translator, text)[0])
    one = drawn(4, temperature=2.0)
    assert one.score == pytest.approx(generation.score(one.logprobs))
    begin = small_translator.tokenizer.bos
    expected = logprobs_of(small_translator.network, memory, one.ids, begin)
    np.testing.assert_allclose(one.logprobs, expected, atol=SUMMED)


def test_a_model_that_does_not_write_says_so(
    small_model: OwnModel, small_decoder: OwnModel
) -> None:
    with pytest.raises(ValueError, match="fills masked words and does not write"):
        small_model.generate("the cat")
    with pytest.raises(ValueError, match="there is no room for more"):
        small_decoder.generate("the cat " * 100)


def test_two_writings_share_a_model_and_nothing_else(small_decoder: OwnModel) -> None:
    one, other = small_decoder.generate("the cat"), small_decoder.generate("the dog ran")
    alone = one.logits.copy()
    other.add(5)
    assert np.array_equal(one.logits, alone) and one.stored is not other.stored


def test_rows_of_the_store_go_where_the_beams_go() -> None:
    stored = KVCache({"0.attn": (torch.arange(6.0).reshape(3, 1, 2, 1),) * 2})
    keys, _ = stored.rows(torch.tensor([2, 2, 0])).entries["0.attn"]
    assert keys[:, 0, 0, 0].tolist() == [4, 4, 0]
    assert stored.n == 2 and stored.first(1).n == 1 and stored.nbytes == 2 * 6 * 4
