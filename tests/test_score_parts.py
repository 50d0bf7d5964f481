"""An attention score as a sum over its sources: the parts add up in every architecture, and a path
that is cut gives the weight of a pass made by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from app_harness import clean, page_at, panels_on
from conftest import HOSTILE, SMALL, TEXTS, needs_smollm2, read_once, sharpened
from tolerances import DOUBLE, DOUBLE_LONG, PASSED, TOTAL
from torch import Tensor

import headlight
from explorer.analysis import score_parts as of_parts
from explorer.panels.score_parts import LEAST_CHANGE
from models.contract import edits
from models.contract.recording import Recording
from models.contract.results import ScorePath
from models.network import own_model
from models.network.config import Config
from models.network.layers import Patch
from models.network.own_model import OwnModel, from_network, head_output_site
from models.network.transformer import Decoder, EncoderDecoder, Transformer
from models.pretrained import weight_conversion
from models.pretrained.weight_conversion import CONVERSIONS
from models.runtime.run import Run
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

panels = headlight.panels
TEXT = "the cat sat on the mat"
OURS = ["small_model", "small_decoder", "small_translator", "small_gpt2"]


# ---- a model and its recording in 64 bits --------------------------------------------------------


def passes(model: OwnModel, recording: Recording, tapes: list, more: tuple = ((), ())) -> None:
    """The passes of a recording again, each on its tape, with further edits of each stream."""
    network, ids = model.network, [torch.tensor(each.ids)[None] for each in recording.streams]
    of = [(*recording.edits, *each) for each in more]
    with torch.inference_mode():
        if isinstance(network, EncoderDecoder):
            memory = network.encode(ids[0], tape=tapes[0], edits=of[0])
            network.decode(ids[1], memory, tape=tapes[1], edits=of[1])
        else:
            network(ids[0], tape=tapes[0], edits=of[0])


def taped(model: OwnModel, recording: Recording, more: tuple = ((), ())) -> list[dict]:
    """All tensors of those passes by name, without the axis of the batch."""
    kept: list[dict[str, Tensor]] = [{}, {}]
    tapes = [lambda name, x, at=at: at.__setitem__(name, x.clone()) for at in kept]
    passes(model, recording, tapes, more)
    bare = lambda name, x: x[0] if name != "pos.wrote" or x.dim() > 2 else x
    return [{name: bare(name, x) for name, x in each.items()} for each in kept]


def exact(model: OwnModel, text: str, *on: edits.Edit) -> tuple[OwnModel, Recording]:
    """The model in 64 bits, and its recording with the numbers of a pass in 64 bits."""
    plain = own_model.record(model, text, on)
    made = replace(model, network=copy.deepcopy(model.network).double())
    kept = taped(made, plain)
    streams = tuple(
        replace(each, resid=np.stack([kept[at][site].numpy() for site in each.sites]))
        for at, each in enumerate(plain.streams)
    )
    attention = []
    for each in plain.attention:
        of = kept[[stream.name for stream in streams].index(each.query)]
        place = "cross" if each.query != each.key else "attn"
        layers = range(len(each.pattern))
        arrays = {
            name: np.stack([of[f"{layer}.{place}.{name}"].numpy() for layer in layers])
            for name in ("scores", "pattern", "q", "k", "v")
        }
        attention.append(replace(each, **arrays))
    return made, replace(plain, streams=streams, attention=tuple(attention))


def cells(recording: Recording) -> list[tuple[str, int, int, int, int]]:
    """Some cells of every attention, in each layer another head."""
    return [
        (each.name, layer, (layer + 1) % each.pattern.shape[1], query, key)
        for each in recording.attention
        for layer in range(len(each.pattern))
        for query, key in ((each.pattern.shape[2] - 1, 1), (2, 2))
    ]


def expect_sums(model: OwnModel, recording: Recording, bound: float) -> None:
    """Rows, columns and all of a matrix of parts add up to the score of the run."""
    for cell in cells(recording):
        found = model.score_parts(recording, *cell)
        rows, columns = found.both.sum(1), found.both.sum(0)
        np.testing.assert_allclose([each.value for each in found.query_parts], rows, atol=DOUBLE)
        np.testing.assert_allclose([each.value for each in found.key_parts], columns, atol=DOUBLE)
        size = max(1.0, float(np.abs(found.both).max()))
        assert found.total == pytest.approx(rows.sum() + found.added, abs=DOUBLE * size)
        name, layer, head, query, key = cell
        of = next(each for each in recording.attention if each.name == name)
        assert found.recorded == of.scores[layer, head, query, key]
        assert found.total == pytest.approx(found.recorded, abs=bound * size), cell


# ---- the parts add up ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", OURS)
def test_the_parts_add_up_to_the_score_in_64_bits(
    kind: str, request: pytest.FixtureRequest
) -> None:
    expect_sums(*exact(request.getfixturevalue(kind), TEXT), DOUBLE_LONG)


PRE = replace(SMALL, norm="pre")
ARCHITECTURES: dict[str, Config] = {
    "no norm": replace(SMALL, norm=None),
    "RMSNorm": replace(PRE, rms=True),
    "rotary": replace(PRE, positions="rotary"),
    "a share of rotary": replace(SMALL, positions="rotary", rotary_share=0.5),
    "stretched": replace(PRE, positions="rotary", rotary_scaling=(4.0, 1.0, 4.0, 32)),
    "shared keys": replace(PRE, n_key_head=2, positions="rotary", rms=True),
    "norm of q and k": replace(PRE, key_norm=True, positions="rotary", rms=True),
    "side by side": replace(PRE, parallel=True),
    "embedding norm": replace(SMALL, embedding_norm=True, segment=True, positions="learned"),
    "no biases": replace(PRE, bias_qkv=False, bias_o=True, bias_ffn=False, gated=True),
    "wide heads": replace(PRE, head_width=10, scaled_scores=False),
    "no residual": replace(SMALL, residual=False),
    "no positions": replace(SMALL, positions=None, window=2),
}


def random_handle(made: Transformer) -> OwnModel:
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if name.endswith(("_norm.weight", "norm.weight", ".bias", "segment")):
                parameter += 0.3 * torch.randn(parameter.shape)
    tokenizer = Tokenizer.train(TEXTS, SMALL.n_vocab, CAUSAL_LM_SPECIALS)
    return from_network(made.eval(), tokenizer, "random", "random", "fp32")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_they_add_up_in_every_architecture(name: str) -> None:
    torch.manual_seed(3)
    expect_sums(*exact(random_handle(sharpened(Decoder(ARCHITECTURES[name]))), TEXT), DOUBLE_LONG)


def test_they_add_up_across_two_texts_before_and_after_the_sums() -> None:
    torch.manual_seed(5)
    model = random_handle(sharpened(EncoderDecoder(PRE)))
    expect_sums(*exact(model, TEXT), DOUBLE_LONG)


EDITS = {
    "no head": (edits.ZeroHead(0, 1),),
    "mean": (edits.MeanHead(0, 1),),
    "patched head": (edits.PatchHead("the dog ran to the cat", 0, 1),),
    "uniform": (edits.UniformHead(0, 1),),
    "no norm": (edits.WithoutNorm(1),),
    "moved": (edits.MoveNorm("pre"),),
    "after": (edits.MoveNorm("post"),),
    "RMSNorm": (edits.OtherNorm("rms"),),
    "rotary": (edits.OtherPositions("rotary"), edits.ShufflePositions(1)),
    "distance": (edits.OtherPositions("distance"),),
    "shared": (edits.SharedKeys(2), edits.ShiftPositions(3)),
    "scaled": (edits.ScaledBy(7.0, 1),),
    "no residual": (edits.WithoutResidual(1, "ffn"),),
    "side by side": (edits.SideBySide(), edits.WithoutFeedForward(0)),
}


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("kind", ["small_decoder", "small_gpt2"])
def test_they_add_up_under_edits(kind: str, name: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(kind)
    if name == "patched head":  # its vectors are made in 32 bits
        expect_sums(model, own_model.record(model, TEXT, EDITS[name]), PASSED)
    else:
        expect_sums(*exact(model, TEXT, *EDITS[name]), DOUBLE_LONG)


@pytest.mark.slow
@pytest.mark.parametrize("family", CONVERSIONS)
def test_they_add_up_in_every_family(family: str, tiny_folder: Callable[[str], Path]) -> None:
    model = weight_conversion.load(tiny_folder(family), family)
    expect_sums(model, own_model.record(model, TEXT), PASSED)


@pytest.mark.parametrize(
    "name", ["encoder", "decoder", "translator", pytest.param("smollm2", marks=needs_smollm2)]
)
def test_they_add_up_in_shipped_models(name: str) -> None:
    model = read_once(name)
    recording = model.record("The animal did not cross the street because it was too tired.")
    for cell in cells(recording)[-2:]:
        found = model.score_parts(recording, *cell)
        assert found.total == pytest.approx(found.recorded, abs=TOTAL)


def test_a_part_is_what_matrices_make_of_a_heads_output(small_gpt2: OwnModel) -> None:
    """One head of layer 0 in the query and the key of layer 1, by hand: through the norm that
    stands before the attention, W_Q, W_K and the scale."""
    model, recording = exact(small_gpt2, TEXT)
    of, stream, layer = recording.attention[0], recording.streams[0], model.network.layers[1]
    query, key, head, writer = 4, 1, 2, 3
    numbers = lambda tensor: tensor.detach().numpy()

    def read(token: int) -> np.ndarray:
        z = of.pattern[0, writer, token] @ of.v[0, writer]
        d = z.shape[0]
        wrote = z @ numbers(model.network.layers[0].attention.w_o.weight).T[writer * d :][:d]
        state = stream.at("0.ffn.sum")[token]
        norm = layer.attention_out.norm
        return (wrote - wrote.mean()) / np.sqrt(state.var() + norm.eps) * numbers(norm.weight)

    rows = slice(head * 6, (head + 1) * 6)
    q = read(query) @ numbers(layer.attention.w_q.weight)[rows].T
    k = read(key) @ numbers(layer.attention.w_k.weight)[rows].T
    found = model.score_parts(recording, "self", 1, head, query, key)
    at = [(each.kind, each.layer, each.head) for each in found.query_parts].index(
        ("head", 0, writer)
    )
    assert found.both[at, at] == pytest.approx(q @ k / 6**0.5, abs=DOUBLE)
    expected = q @ of.k[1, head, key] / 6**0.5
    assert found.query_parts[at].value == pytest.approx(expected, abs=DOUBLE)


def test_compared_with_another_key_it_is_the_difference_of_two_scores(model: OwnModel) -> None:
    made, recording = exact(model, TEXT)
    name = recording.attention[-1].name
    one, two = (made.score_parts(recording, name, 2, 1, 3, key) for key in (1, 2))
    both = made.score_parts(recording, name, 2, 1, 3, 1, 2)
    assert both.total == pytest.approx(one.total - two.total, abs=DOUBLE_LONG)
    assert both.recorded == one.recorded - two.recorded
    for each, first, second in zip(both.query_parts, one.query_parts, two.query_parts):
        assert each.value == pytest.approx(first.value - second.value, abs=DOUBLE_LONG)


def test_what_has_no_parts_says_so(
    small_decoder: OwnModel, tiny_loaded: Callable[[str], object]
) -> None:
    recording = own_model.record(small_decoder, TEXT)
    take = small_decoder.score_parts
    assert take(recording, "self", -1, -1, -1, 0).layer == 2
    for cell, words in (
        (("self", 3, 0, 1, 1), "no layer 3"),
        (("self", 0, 0, 90, 1), "no query 90"),
        (("self", 0, 0, 1, 90), "no key 90"),
        (("cross", 0, 0, 1, 1), "no attention is called 'cross'"),
        (("self", 0, 0, 1, 1, 90), "no key 90"),
    ):
        with pytest.raises(ValueError, match=words):
            take(recording, *cell)
    patched = own_model.record(
        small_decoder, TEXT, (edits.PatchSite("the dog ran", "0.attn.normed"),)
    )
    with pytest.raises(ValueError, match="an edit put a state in"):
        take(patched, "self", 2, 1, 2, 1)
    assert take(patched, "self", 0, 1, 2, 1).both.size  # before that state
    uniform = own_model.record(small_decoder, TEXT, (edits.UniformHead(2, 1),))
    with pytest.raises(ValueError, match="an edit sets this weight"):
        small_decoder.score_path(uniform, "self", 2, 1, 3, 1)
    own = tiny_loaded("bloom")
    with pytest.raises(ValueError, match="runs in its own code"):
        own.score_parts(own.record(TEXT), "self", 0, 0, 1, 1)
    with pytest.raises(ValueError, match="record the text with"):
        read_once("decoder").score_parts(recording, "self", 0, 0, 1, 1)


# ---- the path ------------------------------------------------------------------------------------


def place_of(recording: Recording, stream: str) -> int:
    return [each.name for each in recording.streams].index(stream)


def read_again(
    model: OwnModel, recording: Recording, stream: str, changes: dict[tuple[str, int], np.ndarray]
) -> dict[str, Tensor]:
    """The tensors of a pass in which all that sub-layers write is what they wrote in the recording,
    but for these changes at (site, token)."""
    at = place_of(recording, stream)
    states = recording.streams[at]
    patches = []
    for site in states.sites:
        if not site.endswith(".wrote") and site != "embed":
            continue
        values = states.at(site).copy()
        for (changed, token), change in changes.items():
            if changed == site:
                values[token] += change
        patches.append(Patch(site, torch.from_numpy(values)))
    more: list[tuple] = [(), ()]
    more[at] = tuple(patches)
    return taped(model, recording, tuple(more))[at]


def site_of(recording: Recording, step: object) -> str:
    """The site at which a step wrote."""
    source = step.source
    if source.kind in ("embedding", "position"):
        return {"embedding": "embed", "position": "pos.wrote"}[source.kind]
    if source.kind == "ffn":
        return f"{source.layer}.ffn.wrote"
    return f"{source.layer}.{'cross' if source.attention == 'cross' else 'attn'}.wrote"


def written(model: OwnModel, recording: Recording, step: object) -> np.ndarray:
    """The vector that a step wrote, from the recording and W_O."""
    source = step.source
    if source.kind != "head":
        return recording.stream(step.stream).at(site_of(recording, step))[step.token]
    of = next(each for each in recording.attention if each.name == source.attention)
    z = of.pattern[source.layer, source.head, step.token] @ of.v[source.layer, source.head]
    w_o, _ = model.outputs()[source.attention]
    return z @ w_o[source.layer, source.head]


def cut_by_hand(
    model: OwnModel,
    recording: Recording,
    cell: tuple,
    path: ScorePath,
    n: int,
    other: int | None = None,
) -> float:
    """The weight without step n of a path: passes of the model itself, from the removed step to the
    score, in each of which only what lies on the path is changed."""
    name, layer, head, query, key = cell
    change = -written(model, recording, path.steps[n])
    for at in range(n, -1, -1):
        step = path.steps[at]
        made = read_again(
            model, recording, step.stream, {(site_of(recording, step), step.token): change}
        )
        if at == 0:
            break
        taker = path.steps[at - 1]
        of = next(each for each in recording.attention if each.name == taker.source.attention)
        where = (taker.source.layer, taker.source.head)
        if of.query != of.key:  # values of what the other stack left
            memory = list(made.values())[-1]
            module = model.attentions[of.name][where[0]]
            v = module.split(module.w_v(memory[None]))[0][where[1], step.token].numpy()
        else:
            v = made[f"{where[0]}.attn.v"][where[1], step.token].numpy()
        dz = of.pattern[*where, taker.token, step.token] * (v - of.v[*where, step.token])
        change = dz @ model.outputs()[of.name][0][where]
    of = next(each for each in recording.attention if each.name == name)
    q, k = of.q[layer, head, query], np.array(of.k[layer, head])
    place, changed = "cross" if of.query != of.key else "attn", key if other is None else other
    if path.side == "query":
        q = made[f"{layer}.{place}.q"][head, query].numpy()
    elif place == "cross":
        module = model.attentions[name][layer]
        memory = list(made.values())[-1]
        k[changed] = module.split(module.w_k(memory[None]))[0][head, changed].numpy()
    else:
        k[changed] = made[f"{layer}.{place}.k"][head, changed].numpy()
    scores = np.where(of.allowed[layer, query], k @ q * of.scale[layer], -np.inf)
    powers = np.exp(scores - scores.max())
    return powers[key] / powers.sum()


@pytest.mark.parametrize("kind", OURS)
def test_each_cut_gives_the_weight_of_passes_made_by_hand(
    kind: str, request: pytest.FixtureRequest
) -> None:
    model, recording = exact(request.getfixturevalue(kind), TEXT)
    heads = 0
    with torch.inference_mode():
        for cell in cells(recording):
            path = model.score_path(recording, *cell)
            heads += sum(each.source.kind == "head" for each in path.steps)
            assert path.steps[-1].source.kind != "head"
            for n, step in enumerate(path.steps):
                expected = cut_by_hand(model, recording, cell, path, n)
                assert step.cut == pytest.approx(expected, abs=DOUBLE_LONG), (cell, n)
    assert heads >= 4


def test_a_way_through_two_heads_is_cut_at_each(small_gpt2: OwnModel) -> None:
    model, recording = exact(small_gpt2, TEXT)
    longest = ("self", 2, 0, 0, 0), model.score_path(recording, "self", 2, 0, 0, 0)
    for at in np.ndindex(*recording.attention[0].pattern[2].shape):
        cell = ("self", 2, *map(int, at))
        path = model.score_path(recording, *cell) if at[2] < at[1] else longest[1]
        longest = max(longest, (cell, path), key=lambda each: len(each[1].steps))
        if len(longest[1].steps) > 2:
            break
    cell, path = longest
    assert [each.source.kind for each in path.steps[:2]] == ["head", "head"]
    assert path.steps[1].source.layer < path.steps[0].source.layer
    assert path.steps[1].token == path.steps[0].taken_from
    with torch.inference_mode():
        for n, step in enumerate(path.steps):
            expected = cut_by_hand(model, recording, cell, path, n)
            assert step.cut == pytest.approx(expected, abs=DOUBLE_LONG)


@pytest.mark.parametrize("kind", OURS)
def test_a_new_run_is_one_in_which_the_heads_slice_reads_zeros(
    kind: str, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(kind)
    recording = own_model.record(model, TEXT)
    for cell in cells(recording):
        name, layer, head, query, key = cell
        for step in model.score_path(recording, *cell).steps:
            source = step.source
            if source.kind != "head":
                assert step.rerun is None
                continue
            module = model.attentions[source.attention][source.layer]

            def silence(_: object, inputs: tuple[Tensor], step: object = step) -> tuple[Tensor]:
                z = inputs[0].clone()
                d = model.card.d_head
                z[0, step.token, step.source.head * d : (step.source.head + 1) * d] = 0
                return (z,)

            hook = module.w_o.register_forward_pre_hook(silence)
            target = (
                None
                if len(recording.streams) < 2
                else tuple(map(int, recording.streams[1].ids[1:]))
            )
            again = own_model.record(model, TEXT, (), target)
            hook.remove()
            of = next(each for each in again.attention if each.name == name)
            assert step.rerun == pytest.approx(of.pattern[layer, head, query, key], abs=PASSED)
            assert head_output_site(model, source.attention, source.layer)[0] == step.stream


@pytest.mark.parametrize("kind", OURS)
def test_a_path_may_lead_into_the_key_that_it_is_compared_with(
    kind: str, request: pytest.FixtureRequest
) -> None:
    """Where the other key's score is what a head lowers most, cutting it there changes that score
    alone."""
    model, recording = exact(request.getfixturevalue(kind), TEXT)
    name, sides = recording.attention[-1].name, set()
    for query, key, other in ((5, 1, 3), (5, 3, 1), (4, 0, 2), (4, 2, 0)):
        for head in range(4):
            cell = (name, 2, head, query, key)
            path = model.score_path(recording, *cell, other)
            sides.add(path.side)
            both = model.score_parts(recording, *cell, other)
            assert path.score == pytest.approx(both.total, abs=DOUBLE_LONG)
            step = path.steps[0]
            if path.side != "other":
                continue
            own = model.score_parts(recording, name, 2, head, query, other)
            values = {
                (each.kind, each.layer, each.head, each.attention): each.value
                for each in own.key_parts
            }
            source = step.source
            at = (source.kind, source.layer, source.head, source.attention)
            assert source.value == pytest.approx(-values[at], abs=DOUBLE_LONG)
            assert step.token == other
            with torch.inference_mode():
                expected = cut_by_hand(model, recording, cell, path, 0, other)
            assert step.cut == pytest.approx(expected, abs=DOUBLE_LONG)
    assert "other" in sides


def test_the_first_step_is_the_head_that_raises_the_score_most(small_decoder: OwnModel) -> None:
    model, recording = exact(small_decoder, TEXT)
    cell = ("self", 2, 3, 5, 1)
    parts, path = model.score_parts(recording, *cell), model.score_path(recording, *cell)
    heads = [
        (each.value, side)
        for side, of in (("query", parts.query_parts), ("key", parts.key_parts))
        for each in of
        if each.kind == "head"
    ]
    assert (path.steps[0].source.value, path.side) == pytest.approx(max(heads))
    assert path.score == pytest.approx(parts.total, abs=DOUBLE_LONG)
    assert path.weight == recording.attention[0].pattern[2, 3, 5, 1]


# ---- the panels ----------------------------------------------------------------------------------


def test_bars_and_cells_add_up_to_the_score_that_the_sentence_names() -> None:
    text = "The animal didn't cross the street because it was too tired."
    made = panels.score_parts.sources(Run("encoder", text), 3, 1, 9, 2)
    recording = read_once("encoder").record(text)
    score = float(recording.attention[0].scores[3, 1, 9, 2])
    bars, matrix = made.figures
    for side in (0, 1):
        assert sum(row.values[side] for row in bars.rows) == pytest.approx(score, abs=TOTAL)
    assert f"{score:.2f}".replace("-", "−") in bars.title
    assert matrix.values.sum() == pytest.approx(score, abs=TOTAL)
    assert sum(made.table["part of the score"]) == pytest.approx(score, abs=TOTAL)
    assert f"The score {score:.2f}".replace("-", "−") in made.finding
    folded = of_parts.pairs(read_once("encoder").score_parts(recording, "self", 3, 1, 9, 2), 3)
    assert folded[2].shape == (4, 4)
    assert folded[2].sum() == pytest.approx(score, abs=TOTAL)


def test_two_texts_have_no_source_in_common() -> None:
    recording = read_once("translator").record("The red car is new.")
    parts = read_once("translator").score_parts(recording, "cross", 2, 1, 3, 2)
    rows = of_parts.by_source(parts, apart=True)
    assert len(rows) == len(parts.query_parts) + len(parts.key_parts)
    assert sum(row.query for row in rows) == pytest.approx(parts.total, abs=DOUBLE_LONG)
    assert sum(row.key for row in rows) == pytest.approx(parts.total, abs=DOUBLE_LONG)
    run = Run("translator", "The red car is new.")
    made = panels.score_parts.sources(run, 2, 1, 3, 2, attention="cross")
    labels = [row.label for row in made.figures[0].rows]
    assert any(each.startswith("encoder ") for each in labels)
    assert any(each.startswith("decoder ") for each in labels)


def test_a_path_is_told_by_what_its_cut_does() -> None:
    text = "The animal didn't cross the street because it was too tired."
    run = Run("encoder", text)
    falls = panels.score_parts.path(run, 1, 1, 2, 3)
    assert "falls from 0.97 to 0.17" in falls.finding
    stays = panels.score_parts.path(run, 1, 6, 6, 5)
    assert "the strongest path does not decide it" in stays.finding
    assert abs(stays.table["weight"][0] - stays.table["weight without it"][0]) < LEAST_CHANGE
    decoder = Run("decoder", "My sister is here")
    masked = panels.score_parts.path(decoder, 1, 1, 1, 3)
    assert "The mask excludes" in masked.finding
    with pytest.raises(ValueError, match="compared with itself"):
        panels.score_parts.sources(run, 1, 1, 2, 3, 3)


@pytest.mark.parametrize("name", HOSTILE)
def test_panels_of_any_text_are_data(name: str) -> None:
    for model in ("encoder", "decoder"):
        run = Run(model, HOSTILE[name][:400])
        for panel in (panels.score_parts.sources, panels.score_parts.path):
            made = panel(run, -1, 0, -1)
            assert made.encode() and "{" not in made.finding.replace(HOSTILE[name], "")


def test_one_weight_opens_where_its_score_comes_from() -> None:
    app = clean(page_at("weight", layer="1", head="1", token="2", weight_fold="Sources"))
    titles = [each["title"] for each in panels_on(app)]
    assert "Attribution of an attention score" in titles
    assert "The strongest path that raises an attention score" in titles


def test_the_weight_level_of_the_flow_leads_there() -> None:
    at = {"layer": 1, "head": 1, "token": 2, "source": 3, "level": "Weight"}
    made = panels.architecture.flow(Run("encoder", TEXT), **at)
    addresses = [each.select.get("address", "") for each in made.figures[0].leads]
    assert any("weight_fold=Sources" in each and "weight_at=2.3" in each for each in addresses)
