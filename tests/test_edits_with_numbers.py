"""Edits with numbers, in our classes and in a model's own code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from edited import OTHER, TEXT, last, recorded
from tolerances import PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import consistency
from models.contract import edits
from models.contract.arrays import Numbers, as_array
from models.contract.recording import Recording
from models.contract.recording_file import from_npz, to_npz
from models.network import own_model
from models.runtime import host
from models.runtime.run import Run


def label(model: own_model.OwnModel) -> str:
    return "decoder self" if model.card.kind == "encoder-decoder" else "self"


def rng(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def attention_of(recording: Recording, name: str):
    return next(each for each in recording.attention if each.name == name)


# ---- numbers -----------------------------------------------------------------


def test_numbers_are_their_text_whatever_array_they_come_from() -> None:
    rows = rng(3, 5)
    made = Numbers(rows)
    assert made == Numbers(torch.tensor(rows)) == Numbers(str(made))
    assert Numbers(rows.tolist()) == Numbers(rows.astype(np.float64))
    assert hash(made) == hash(Numbers(rows)) and made != Numbers(rows + 1)
    np.testing.assert_array_equal(Numbers(str(made)).array, rows)
    assert Numbers(rows.astype(np.float64)).array.dtype == np.float64
    assert Numbers(torch.ones(2, dtype=torch.bfloat16)).array.tolist() == [1, 1]
    for wrong in ([np.nan], [np.inf], rng(1, 2, 3), np.zeros(0), "f4-3-AAAA", "lunch", "f4-a-"):
        with pytest.raises(ValueError, match="number"):
            Numbers(wrong)
    with pytest.raises(TypeError, match="array of numbers"):
        as_array(["a"])


def every_number_edit(model: own_model.OwnModel) -> tuple[edits.Edit, ...]:
    d, d_head, name = model.card.d_model, model.card.d_head, label(model)
    n = len(recorded(model).streams[0].tokens)
    return (
        edits.SetSite(rng(d), "0.attn.wrote", 1),
        edits.AddToSite(rng(n, d), "1.ffn.wrote"),
        edits.ScaleSite(0.5, "1.attn.wrote"),
        edits.SetHead(rng(d_head), 0, 1, name),
        edits.AddToHead(rng(n, d_head), 1, 0, name),
        edits.ScaleHead(-2.0, 2, 3, name),
        edits.CutEdge(1, 2, 2, 1, name),
        edits.SetNeuron(1.5, 0, 3, token=2),
    )


def test_they_come_back_from_a_line_json_and_a_file(small_model: own_model.OwnModel) -> None:
    asked = every_number_edit(small_model)
    assert edits.from_line(edits.to_line(asked)) == asked
    assert tuple(edits.from_json(edits.to_json(each)) for each in asked) == asked
    assert eval(repr(asked), vars(edits)) == asked  # as the lines of Python write them
    recording = recorded(small_model, *asked)
    again = from_npz(to_npz(recording))
    assert again == recording and again.edits == asked and hash(again.edits) == hash(asked)
    assert edits.SetSite(rng(4), "embed").values.digest in edits.describe(
        (edits.SetSite(rng(4), "embed"),)
    )
    with pytest.raises(ValueError, match="cannot be read from"):
        edits.from_line("SetSite:lunch:embed")


# ---- in our own classes ------------------------------------------------------


def test_what_changes_nothing(model: own_model.OwnModel) -> None:
    plain, name = recorded(model), label(model)
    of = attention_of(plain, name)
    z = of.pattern[1, 2] @ of.v[1, 2]
    stream = plain.streams[-1]
    for none in (
        edits.SetSite(stream.at("1.attn.sum"), "1.attn.sum", stream=stream.name),
        edits.AddToSite(np.zeros(model.card.d_model), "0.ffn.wrote"),
        edits.ScaleSite(1.0, "embed+pos"),
        edits.SetHead(z, 1, 2, name),
        edits.AddToHead(0 * z, 1, 2, name),
        edits.ScaleHead(1.0, 1, 2, name),
    ):
        np.testing.assert_allclose(last(recorded(model, none)), last(plain), atol=PASSED)


def test_what_older_edits_do_too(model: own_model.OwnModel) -> None:
    """A head scaled by 0 is off, and one set to another text's is patched."""
    name = label(model)
    off, zero = (
        recorded(model, each(1, 2, name) if each is edits.ZeroHead else each(0.0, 1, 2, name))
        for each in (edits.ZeroHead, edits.ScaleHead)
    )
    np.testing.assert_array_equal(last(zero), last(off))
    donor = recorded(model, text=OTHER)
    stream = donor.streams[0]
    set_, patched = (
        recorded(model, each)
        for each in (
            edits.SetSite(stream.at("1.ffn.sum"), "1.ffn.sum", 2),
            edits.PatchSite(OTHER, "1.ffn.sum", 2),
        )
    )
    np.testing.assert_allclose(last(set_), last(patched), atol=PASSED)


def test_a_cut_edge_is_a_mask_made_by_hand(model: own_model.OwnModel) -> None:
    name = label(model)
    plain, cut = recorded(model), recorded(model, edits.CutEdge(1, 2, 3, 1, name))
    of, after = attention_of(plain, name), attention_of(cut, name)
    scores = np.where(of.allowed[1], of.scores[1, 2].astype(np.float64), -np.inf)
    scores[3, 1] = -np.inf
    by_hand = np.exp(scores - scores.max(-1, keepdims=True))
    by_hand /= by_hand.sum(-1, keepdims=True)
    np.testing.assert_allclose(after.pattern[1, 2], by_hand, atol=STORED)
    assert after.pattern[1, 2, 3, 1] == 0 < of.pattern[1, 2, 3, 1]
    others = np.delete(after.pattern[1], 2, 0), np.delete(of.pattern[1], 2, 0)
    np.testing.assert_array_equal(*others)
    w_o, _ = model.outputs()[name]
    moved = (by_hand - of.pattern[1, 2]) @ of.v[1, 2] @ w_o[1, 2]
    site = "1.attn.wrote"
    wrote = cut.streams[-1].at(site) - plain.streams[-1].at(site)
    np.testing.assert_allclose(wrote, moved, atol=SUMMED)
    even = recorded(model, edits.UniformHead(1, 2, name), edits.CutEdge(1, 2, 3, 1, name))
    allowed = of.allowed[1].copy()
    allowed[3, 1] = False
    np.testing.assert_allclose(
        attention_of(even, name).pattern[1, 2],
        allowed / allowed.sum(-1, keepdims=True),
        atol=STORED,
    )
    assert consistency.softmax(cut).holds and consistency.softmax(even).holds


def test_a_neuron_writes_its_row_times_its_value(model: own_model.OwnModel) -> None:
    stream = model.record(TEXT).streams[0].name
    plain, made = recorded(model), recorded(model, edits.SetNeuron(2.5, 1, 4, 2))
    before = model.ffn_activations(plain, stream, 1, 2)
    after = model.ffn_activations(made, stream, 1, 2)
    assert after.after[4] == 2.5
    difference = made.streams[0].at("1.ffn.wrote") - plain.streams[0].at("1.ffn.wrote")
    np.testing.assert_allclose(difference[2], (after.writes - before.writes)[4], atol=SUMMED)
    assert not np.delete(difference, 2, 0).any()


def test_a_steering_vector_is_what_is_added(model: own_model.OwnModel) -> None:
    steer = rng(model.card.d_model)
    plain, made = recorded(model), recorded(model, edits.AddToSite(steer, "0.ffn.wrote"))
    site = "0.ffn.wrote"
    difference = made.streams[0].at(site) - plain.streams[0].at(site)
    np.testing.assert_allclose(difference, np.tile(steer, (len(difference), 1)), atol=SUMMED)
    if len(plain.streams) > 1:  # of the first stream alone, whose change the other one sees
        np.testing.assert_array_equal(made.streams[1].at("embed"), plain.streams[1].at("embed"))
        other = recorded(model, edits.AddToSite(steer, site, None, "decoder"))
        np.testing.assert_array_equal(other.streams[0].resid, plain.streams[0].resid)


def test_the_mean_over_a_set_of_recordings(model: own_model.OwnModel) -> None:
    name, texts = label(model), (TEXT, OTHER)
    several = [recorded(model, text=each) for each in texts]
    made = edits.SetHead.to_mean(several, 1, 2, name)
    z = [
        attention_of(each, name).pattern[1, 2] @ attention_of(each, name).v[1, 2]
        for each in several
    ]
    np.testing.assert_allclose(made.values.array, np.concatenate(z).mean(0), atol=STORED)
    recording = recorded(model, made)
    w_o, _ = model.outputs()[name]
    own = z[0] @ w_o[1, 2]
    wrote = [each.streams[-1].at("1.attn.wrote") for each in (several[0], recording)]
    np.testing.assert_allclose(
        wrote[1] - wrote[0], made.values.array @ w_o[1, 2] - own, atol=SUMMED
    )
    site = edits.SetSite.to_mean(several, "0.ffn.wrote")
    rows = np.concatenate([each.streams[0].at("0.ffn.wrote") for each in several])
    np.testing.assert_allclose(site.values.array, rows.mean(0), atol=STORED)
    for wrong in ([], [recording]):
        with pytest.raises(ValueError, match="mean"):
            edits.SetHead.to_mean(wrong, 1, 2, name)


def test_they_go_together_and_a_logit_is_still_a_sum(
    small_model: own_model.OwnModel, small_decoder: own_model.OwnModel
) -> None:
    for model in (small_model, small_decoder):
        more = (edits.WithoutScale(), edits.PatchHead(OTHER, 2, 1), edits.ZeroHead(0, 1))
        recording = recorded(model, *every_number_edit(model), *more)
        found = model.attribute(recording, recording.streams[0].name, 2, 7)
        assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=TOTAL)
        outputs = model.outputs()
        assert consistency.attention_outputs(recording, outputs).holds
        assert consistency.softmax(recording).holds
        sweep = model.patch_heads(TEXT, OTHER, "self", -1, 7, 8, every_number_edit(model))
        effects = list(sweep.effects)
        under = recorded(model, *every_number_edit(model), edits.PatchHead(OTHER, 0, 2))
        logits = model.logits(under, under.streams[-1].name, -1)
        assert effects[2].value == pytest.approx(logits[7] - logits[8], abs=TOTAL)
    state = recorded(small_model, edits.ScaleSite(2.0, "0.attn.sum"))
    with pytest.raises(ValueError, match="put in by an edit"):
        small_model.attribute(state, state.streams[0].name, 2, 7)


def test_runs_with_other_numbers_are_other_runs(small_decoder: own_model.OwnModel) -> None:
    """And each is recorded once, by what it is made of."""
    host.current.adopt(small_decoder)
    one, two, again = (
        Run(small_decoder.name, TEXT, (edits.AddToSite(rng(24) * size, "embed"),))
        for size in (1, 2, 1)
    )
    assert one != two and one == again and hash(one) == hash(again)
    assert one.recording() is again.recording()
    assert np.abs(last(one.recording()) - last(two.recording())).max() > 1e-3


@pytest.mark.parametrize(
    "asked, why",
    [
        (edits.SetSite(rng(31), "embed"), "has the shape 31; a site of small decoder has 24"),
        (edits.SetHead(rng(3, 9), 0, 0), "has the shape 3x9; a head of small decoder has 6"),
        (
            edits.AddToSite(rng(24), "9.lunch"),
            "no site .9.lunch. of stream decoder; there are embed",
        ),
        (edits.AddToSite(rng(24), "0.attn.z"), "has 24 numbers a token; there are 6 there"),
        (edits.AddToSite(rng(24), "embed", 40), "decoder has tokens 0 to"),
        (edits.AddToSite(rng(24), "embed", None, "encoder"), "no stream 'encoder'"),
        (edits.ScaleSite(float("nan"), "embed"), "finite in 32 bits"),
        (edits.ScaleHead("2", 0, 0), "factor must be a number"),
        (edits.SetNeuron(1.0, 0, 999), "has neurons 0 to"),
        (edits.SetNeuron(1.0, 9, 0), "layer 9"),
        (edits.CutEdge(0, 0, 2, 99), "decoder has tokens 0 to"),
        (edits.CutEdge(0, 0, -99, 0), "decoder has tokens 0 to"),
        (edits.SetNeuron(1.0, 0, 0, -99), "decoder has tokens 0 to"),
        *(
            (asked, "decoder has tokens 0 to")
            for asked in (
                edits.ScaleSite(2.0, "embed", -99),
                edits.SetSite(rng(24), "embed", -99),
                edits.AddToSite(rng(24), "embed", -99),
            )
        ),
        (edits.ScaleSite(2.0, "embed", -1, "encoder"), "no stream 'encoder'"),
        (edits.CutEdge(0, 0, 0, 0), "attends to no other token"),
        (edits.CutEdge(0, 9, 2, 1), "head 9"),
    ],
)
def test_what_cannot_be_done_is_said(
    small_decoder: own_model.OwnModel, asked: edits.Edit, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        recorded(small_decoder, asked)


def test_tokens_count_from_the_end_too(small_model: own_model.OwnModel) -> None:
    n = len(recorded(small_model).streams[0].tokens)
    for asked, meant in (
        (edits.CutEdge(1, 2, -2, -3), edits.CutEdge(1, 2, n - 2, n - 3)),
        (edits.SetNeuron(1.0, -1, 3, -2), edits.SetNeuron(1.0, 2, 3, n - 2)),
        (edits.ScaleSite(2.0, "embed", -1), edits.ScaleSite(2.0, "embed", n - 1)),
    ):
        assert recorded(small_model, asked).edits == (meant,)


@pytest.mark.parametrize("to", ["q", "k", "v"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_a_path_that_is_cut_is_the_stream_without_what_the_head_wrote(
    small_decoder: own_model.OwnModel, to: str, place: str
) -> None:
    """By hand: what every part wrote is added up once more without the head's part, through every
    norm, and one head of the last layer reads that."""
    moved = () if small_decoder.network.config.norm == place else (edits.MoveNorm(place),)
    cut = edits.CutPath(0, 1, -1, 3, to)
    plain, made = recorded(small_decoder, *moved), recorded(small_decoder, cut, *moved)
    stream, of, after = plain.streams[0], plain.attention[0], made.attention[0]
    norms, (w_o, _) = small_decoder.norms("decoder"), small_decoder.outputs()["self"]
    gone = of.pattern[0, 1] @ of.v[0, 1] @ w_o[0, 1]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        gain, bias, eps, _ = norms[name]
        spread = x.var(-1, keepdims=True)
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(spread + eps) * gain + bias

    state = stream.at("embed+pos").astype(np.float64)
    for name in ("0.attn", "0.ffn", "1.attn", "1.ffn"):
        state = state + stream.at(f"{name}.wrote") - (gone if name == "0.attn" else 0)
        state = norm(name, state) if place == "post" else state
    read = norm("2.attn", state) if place == "pre" else state
    weight, bias = small_decoder.projections("self", 2)[to]
    d_head = small_decoder.card.d_head
    at = slice(3 * d_head, 4 * d_head)
    expected = read @ weight[:, at] + bias[at]
    np.testing.assert_allclose(getattr(after, to)[2, 3], expected, atol=PASSED)
    for name in "qkv":  # nothing else has changed
        one, other = np.array(getattr(after, name)), np.array(getattr(of, name))
        assert np.array_equal(one[:2], other[:2]) and np.array_equal(one[2, :3], other[2, :3])
        assert np.array_equal(one[2, 3], other[2, 3]) == (name != to)
    # The same path with what the head writes in another text, at the places that it has.
    other = recorded(small_decoder, *moved, text=OTHER)
    lent = other.attention[0].pattern[0, 1] @ other.attention[0].v[0, 1] @ w_o[0, 1]
    n = min(len(gone), len(lent))
    swapped = stream.at("0.attn.wrote") + np.vstack((lent[:n] - gone[:n], 0 * gone[n:]))
    state = stream.at("embed+pos").astype(np.float64)
    for name in ("0.attn", "0.ffn", "1.attn", "1.ffn"):
        state = state + (swapped if name == "0.attn" else stream.at(f"{name}.wrote"))
        state = norm(name, state) if place == "post" else state
    read = norm("2.attn", state) if place == "pre" else state
    patched = recorded(small_decoder, edits.PatchPath(OTHER, 0, 1, -1, 3, to), *moved).attention[0]
    expected = read @ weight[:, at] + bias[at]
    np.testing.assert_allclose(getattr(patched, to)[2, 3], expected, atol=PASSED)
    into = recorded(
        small_decoder,
        edits.PatchPath(recorded(small_decoder, text=OTHER), 0, 1, 2, to="resid"),
        *moved,
    )
    read = into.attention[0]
    for head in range(small_decoder.card.n_head):  # all heads of the layer read it
        columns = slice(head * d_head, (head + 1) * d_head)
        expected_head = (norm("2.attn", state) if place == "pre" else state) @ weight[:, columns]
        expected_head = expected_head + bias[columns]
        np.testing.assert_allclose(getattr(read, to)[2, head], expected_head, atol=PASSED)
    for wrong, why in (
        (edits.PatchPath(OTHER, 1, 0, 1, to="resid"), "to_layer can be 2 to 3"),
        (edits.PatchPath(OTHER, 1, 0, 2, 0, to="resid"), "names no head"),
        (edits.PatchPath(OTHER, 0, 0, 1, to="q"), "names head None"),
        (edits.CutPath(1, 0, 1, 0), "to_layer can be 2"),
        (edits.CutPath(0, 0, 1, 9), "names head 9"),
        (edits.CutPath(0, 0, 1, 0, "z"), "does not know 'z'"),
    ):
        with pytest.raises(ValueError, match=why):
            recorded(small_decoder, wrong)


@pytest.mark.parametrize("to", ["q", "k", "v"])
def test_paths_to_one_reader_go_together(small_decoder: own_model.OwnModel, to: str) -> None:
    """By hand, through LayerNorm before each part: its reader has the stream without either."""
    pre = () if small_decoder.network.config.norm == "pre" else (edits.MoveNorm("pre"),)
    cuts = edits.CutPath(0, 1, -1, 3, to), edits.CutPath(1, 2, -1, 3, to)
    again = edits.CutPath(0, 0, -1, 3, to)  # a second head of a layer
    plain = recorded(small_decoder, *pre)
    stream, of = plain.streams[0], plain.attention[0]
    w_o, _ = small_decoder.outputs()["self"]
    gain, bias, eps, _ = small_decoder.norms("decoder")["2.attn"]
    weight, offset = small_decoder.projections("self", 2)[to]
    at = slice(3 * small_decoder.card.d_head, 4 * small_decoder.card.d_head)
    for asked in (cuts, cuts[::-1], (*cuts, again), (*cuts, cuts[0])):
        state = stream.at("1.ffn.sum").astype(np.float64)
        for layer, head in {(each.layer, each.head) for each in asked}:
            state = state - of.pattern[layer, head] @ of.v[layer, head] @ w_o[layer, head]
        centred = state - state.mean(-1, keepdims=True)
        read = centred / np.sqrt(state.var(-1, keepdims=True) + eps) * gain + bias
        made = getattr(recorded(small_decoder, *asked, *pre).attention[0], to)
        np.testing.assert_allclose(made[2, 3], read @ weight[:, at] + offset[at], atol=PASSED)


def test_where_a_path_is_cut_and_the_stream_is_no_sum_no_state_has_one_gradient(
    small_decoder: own_model.OwnModel,
) -> None:
    cut = edits.CutPath(0, 1, -1, 3)
    for changed, is_there in (
        ((edits.MoveNorm("pre"),), True),
        ((edits.MoveNorm("post"),), False),
        ((edits.MoveNorm("pre"), edits.ScaleSite(2.0, "1.ffn.wrote")), False),
        ((edits.MoveNorm("pre"), edits.WithoutResidual(1)), False),
    ):
        made = recorded(small_decoder, cut, *changed)
        if is_there:
            small_decoder.gradients(made, "decoder", 2)
            continue
        with pytest.raises(ValueError, match="no one gradient"):
            small_decoder.gradients(made, "decoder", 2)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_edits_at_sites_hold_for_a_stream_without_a_head_too(
    small_decoder: own_model.OwnModel, place: str
) -> None:
    """Where a site between the two is set, no path is left to cut; where it is made larger, what
    the head wrote is."""
    width, cut = small_decoder.card.d_model, edits.CutPath(0, 1, -1, 3)
    moved = () if small_decoder.network.config.norm == place else (edits.MoveNorm(place),)
    sites = recorded(small_decoder, *moved).streams[0].sites
    between = sites[sites.index("0.attn.sum") : sites.index("2.attn.wrote")]
    states = [each for each in between if not each.endswith((".wrote", ".read"))]
    states += ["2.attn.read"] * (place == "pre")
    head = lambda *asked: np.array(recorded(small_decoder, *asked, *moved).attention[0].q[2, 3])
    assert np.abs(head(cut) - head()).max() > 1e-3
    for asked in (
        *(edits.SetSite(rng(width), site) for site in states),
        edits.SetSite(rng(width), "0.attn.wrote"),
        edits.ScaleSite(0.0, "0.attn.wrote"),
    ):
        np.testing.assert_allclose(head(asked, cut), head(asked), atol=PASSED)
    # What is added at a site goes on to the reader, as it does where the head's part was none.
    for asked in (edits.AddToSite(rng(width), "1.ffn.sum"), edits.ScaleSite(3.0, "1.ffn.sum")):
        silent = edits.ZeroHead(0, 1)
        np.testing.assert_allclose(head(asked, silent, cut), head(asked, silent), atol=PASSED)


@pytest.mark.slow
def test_integrated_gradients_sum_to_what_the_text_brings(model: own_model.OwnModel) -> None:
    recording = recorded(model)
    for stream in recording.streams:
        shares = model.integrated_gradients(recording, stream.name, 1, 7, steps=100)
        empty = recorded(model, edits.ScaleSite(0.0, "embed", None, stream.name))
        output = recording.streams[-1].name
        with_text, without = (model.logits(each, output, 1)[7] for each in (recording, empty))
        assert shares.shape == (len(stream.tokens),)
        # What the shares may miss.
        assert shares.sum() == pytest.approx(with_text - without, abs=0.01, rel=0.01)


# ---- in a model's own code ---------------------------------------------------

BLOCKS = {"gpt2": "transformer.h.0", "llama": "model.layers.0", "bert": "bert.encoder.layer.0"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_steering_vector_equals_a_forward_hook(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    steer = rng(model.card.d_model)
    plain = model.record("the cat sat")
    site = next(each for each in ("0.ffn.normed", "0.ffn.sum") if each in plain.streams[0].sites)
    recording = model.record("the cat sat", edits.AddToSite(steer, site))

    def add(module: torch.nn.Module, args: tuple, output: object) -> object:
        plus = torch.tensor(steer)
        return (
            output + plus if isinstance(output, torch.Tensor) else (output[0] + plus, *output[1:])
        )

    hook = model.network.get_submodule(BLOCKS[kind]).register_forward_hook(add)
    try:
        with torch.inference_mode():
            expected = model.network(
                torch.tensor(plain.streams[0].ids)[None], use_cache=False
            ).logits[0]
    finally:
        hook.remove()
    stream = recording.streams[0].name
    for token in range(len(expected)):
        np.testing.assert_allclose(
            model.logits(recording, stream, token), expected[token], atol=TOTAL
        )
    moved = recording.streams[0].at(site) - plain.streams[0].at(site)
    np.testing.assert_allclose(moved, np.tile(steer, (len(moved), 1)), atol=SUMMED)
    assert model.record("the cat sat") == plain, "nothing is left on the model"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert", "t5"])
def test_its_own_code_follows_every_edit_with_numbers(kind: str, tiny_loaded: Callable) -> None:
    model = tiny_loaded(kind)
    target = "the dog ran" if len(model.plan.streams) > 1 else None
    record = lambda *asked: model.record("the cat sat on the mat", asked, target)
    plain, name = record(), model.capabilities.attention[0]
    stream, of = plain.streams[0], plain.attention[0]
    z = of.pattern[1, 2] @ of.v[1, 2]
    (unchanged, zero) = (
        record(edits.SetHead(z, 1, 2, name)),
        record(edits.ScaleHead(0.0, 1, 2, name)),
    )
    np.testing.assert_allclose(unchanged.streams[0].resid, stream.resid, atol=PASSED)
    np.testing.assert_array_equal(
        zero.streams[0].resid, record(edits.ZeroHead(1, 2, name)).streams[0].resid
    )
    cut = record(edits.CutEdge(1, 2, 3, 1, name)).attention[0].pattern[1, 2]
    expected = np.where(np.arange(cut.shape[1]) == 1, 0, of.pattern[1, 2, 3])
    np.testing.assert_allclose(cut[3], expected / expected.sum(), atol=STORED)
    np.testing.assert_array_equal(np.delete(cut, 3, 0), np.delete(of.pattern[1, 2], 3, 0))
    values = rng(len(stream.tokens), model.card.d_model)
    for site in stream.sites:
        if site in ("embed", "pos.wrote"):
            continue
        made = record(edits.SetSite(values[0], site, 2))
        np.testing.assert_allclose(made.streams[0].at(site)[2], values[0], atol=PASSED)
        rest = np.delete(made.streams[0].at(site) - stream.at(site), 2, 0)
        np.testing.assert_allclose(rest, 0, atol=PASSED)
        back = record(edits.SetSite(stream.at(site), site))
        np.testing.assert_allclose(back.streams[0].resid, stream.resid, atol=PASSED)
    for far in (
        edits.CutEdge(0, 0, -99, 0, name),
        edits.ScaleSite(2.0, "0.attn.wrote", -99),
        edits.SetNeuron(1.0, 0, 5, -99),
    ):
        with pytest.raises(ValueError, match="has tokens 0 to"):
            record(far)
    if (
        "0.attn.sum" in stream.sites
    ):  # edits come in the order of the pass, whichever is named first
        pair = edits.SetSite(values[0], "0.attn.sum"), edits.AddToSite(values[1], "0.attn.wrote")
        one, other = record(*pair).streams[0], record(*pair[::-1]).streams[0]
        np.testing.assert_allclose(one.at("0.attn.sum")[2], values[0], atol=PASSED)
        np.testing.assert_array_equal(one.resid, other.resid)
    neuron = record(edits.SetNeuron(2.0, 0, 5)), record(edits.SetNeuron(4.0, 0, 5))
    module = dict(model.plan.streams[0].sites)["0.ffn.wrote"][0][0].module
    weight = module.weight.detach().numpy()
    row = weight[:, 5] if isinstance(module, torch.nn.Linear) else weight[5]
    difference = neuron[1].streams[0].at("0.ffn.wrote") - neuron[0].streams[0].at("0.ffn.wrote")
    np.testing.assert_allclose(difference, np.tile(2 * row, (len(difference), 1)), atol=PASSED)


SPANS = "the cat sat on the mat"


@pytest.mark.parametrize("kind", ["small_model", "small_decoder", "gpt2", "llama", "bert"])
def test_attention_is_knocked_out_by_spans(
    kind: str, request: pytest.FixtureRequest, tiny_loaded: Callable
) -> None:
    """Every score of a span is left out, in each layer on the pattern that is left of its scores;
    nothing else is."""
    model = request.getfixturevalue(kind) if kind.startswith("small") else tiny_loaded(kind)
    n = len(model.record(SPANS).streams[0].tokens)
    cases = {
        edits.CutEdge("all", "all", range(3, 5), 1): (range(9), range(9), range(3, 5), [1]),
        edits.CutEdge(1, [0, 2], "2-", "1,0"): ([1], [0, 2], range(2, n), [0, 1]),
        edits.CutEdge("0-1", 3, -1, "0-2"): ([0, 1], [3], [n - 1], [0, 1, 2]),
    }
    for edit, (layers, heads, queries, keys) in cases.items():
        recording = model.record(SPANS, edit)
        of = recording.attention[0]
        assert edits.from_line(edits.to_line(recording.edits)) == recording.edits
        assert tuple(edits.from_json(edits.to_json(each)) for each in recording.edits) == (
            recording.edits
        )
        for layer in range(len(of.pattern)):
            for head in range(of.pattern.shape[1]):
                allowed = np.array(of.allowed[layer])
                if layer in layers and head in heads:
                    allowed[np.ix_(list(queries), list(keys))] = False
                scores = np.where(allowed, of.scores[layer, head], -np.inf).astype(np.float64)
                expected = np.exp(scores - scores.max(-1, keepdims=True))
                expected /= expected.sum(-1, keepdims=True)
                np.testing.assert_allclose(of.pattern[layer, head], expected, atol=STORED)


def test_a_word_of_a_span_is_all_of_its_tokens(small_decoder: own_model.OwnModel) -> None:
    plain = recorded(small_decoder).streams[0]
    named = recorded(small_decoder, edits.CutEdge("all", "all", "mat", "cat"))
    (edit,) = named.edits
    spans = [TEXT[start:end].strip() for start, end in plain.spans]
    of = lambda word: [at for at, each in enumerate(spans) if each and each in word]
    again = recorded(small_decoder, edits.CutEdge("all", "all", of("mat"), of("cat")))
    assert again == named and isinstance(edit.query, (int, str)) and edit.query != "mat"
    with pytest.raises(ValueError, match="no token of the text is of the word 'dog'"):
        recorded(small_decoder, edits.CutEdge(0, 0, "dog", 1))
    with pytest.raises(ValueError, match="attends to no other token"):
        recorded(small_decoder, edits.CutEdge("all", "all", "all", "all"))
    for wrong in (edits.CutEdge("x", 0, 2, 1), edits.CutEdge("0-9", 0, 2, 1)):
        with pytest.raises(ValueError, match="is a number|names layer 9"):
            recorded(small_decoder, wrong)


def test_a_word_taken_out_is_one_such_knockout(small_decoder: own_model.OwnModel) -> None:
    n = len(recorded(small_decoder).streams[0].tokens)
    others = [at for at in range(n) if at != 2]
    one, other = (
        recorded(small_decoder, each)
        for each in (edits.HideWord(2), edits.CutEdge("all", "all", others, 2))
    )
    np.testing.assert_array_equal(one.streams[0].resid, other.streams[0].resid)
