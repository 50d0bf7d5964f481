"""The pictures of a lecture: the numbers in each are those of the recording, or of a law that they
must obey."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from conftest import needs_smollm2, read_once
from tolerances import DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL

from explorer.analysis import (
    ffn,
    gradients,
    head_naming,
    logit_lens,
    opening,
    positions,
    residual,
    word_classes,
)
from explorer.analysis.measure import MeasureContext
from explorer.figures.formatting import decimals_apart, hundredths, matches_text, parse_number
from explorer.figures.kinds import Factor, Product, factor
from explorer.panels import (
    attribution,
    distances,
    feed_forward,
    modern,
    multi_head,
    neighbours,
    norm_place,
    recurrence,
    softmax,
    teacher_forcing,
)
from models.contract.edits import HideToken, PatchHead, ScaledBy, ZeroHead
from models.contract.recording import stored_array
from models.contract.results import softmax as probabilities
from models.runtime.caching import loaded
from models.runtime.run import Run

TEXT = "The old cat slept on the warm mat because it was tired."
SMOLLM2 = pytest.param("smollm2", marks=needs_smollm2)
MODELS = ("encoder", "decoder", "translator", SMOLLM2)
AT = {"layer": 1, "head": 2, "token": 5}


def factors(product: Product) -> dict[str, Factor]:
    return {each.name: each for each in product.factors}


def seen(one: Factor) -> np.ndarray:
    """What is drawn of a factor, as a matrix."""
    return one.values.reshape(one.grid)


def fits(product: Product) -> bool:
    """Whether the inner sizes of a product agree and the outer ones are the result's."""
    a, b, *_, made = (each.shape for each in product.factors)
    return a[1] == b[0] and made == (a[0], b[1])


# ---- matrices ------------------------------------------------------------------------------------


def test_a_large_matrix_keeps_its_mean_square_and_a_small_one_its_numbers() -> None:
    rng = np.random.default_rng(0)
    small = rng.standard_normal((5, 7))
    np.testing.assert_array_equal(seen(factor("A", small)), small)
    large = factor("A", matrix := rng.standard_normal((256, 128)))
    assert large.shape == (256, 128) and large.grid == (64, 64)
    assert (large.values**2).mean() == pytest.approx((matrix**2).mean())
    assert factor("x", rng.standard_normal(900)).grid == (1, 64) or large.values.size < 5000


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_products_of_a_head_fit_and_are_the_recordings(model: str) -> None:
    run = Run(model, TEXT)
    of = run.recording().attention[0]
    (steps,) = multi_head.shapes(run, **AT).figures
    token, tokens, scores, outputs = (frame.figures[0] for frame in steps.frames)
    assert all(map(fits, (token, tokens, scores, outputs)))
    q, k, v = (np.asarray(each[1, 2], np.float64) for each in (of.q, of.k, of.v))
    np.testing.assert_allclose(seen(factors(scores)["Q Kᵀ"]), q @ k.T, rtol=SUMMED, atol=SUMMED)
    np.testing.assert_allclose(seen(factors(outputs)["Z"]), of.pattern[1, 2] @ v, atol=SUMMED)
    made = tokens.factors[-1]
    recorded = {"Q": q, "V": v}[made.name]
    np.testing.assert_allclose(seen(made), recorded, atol=PASSED * max(1, np.abs(recorded).max()))
    np.testing.assert_allclose(seen(token.factors[-1])[0], seen(made)[5], atol=DOUBLE_LONG)


def test_between_two_texts_the_shapes_are_those_of_both() -> None:
    run = Run("translator", TEXT)
    cross = run.recording().attention[-1]
    assert cross.query != cross.key
    (steps,) = multi_head.shapes(run, 0, 0, attention=cross.name).figures
    n, m = cross.pattern.shape[2:]
    assert steps.frames[2].figures[0].factors[-1].shape == (n, m)
    assert all(fits(frame.figures[0]) for frame in steps.frames)
    queries = np.asarray(cross.q[0, 0], np.float64)
    made = seen(steps.frames[1].figures[0].factors[-1])
    np.testing.assert_allclose(made, queries, atol=PASSED * np.abs(queries).max())


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_concatenated_heads_times_w_o_are_what_attention_wrote(model: str) -> None:
    run = Run(model, TEXT)
    recording = run.recording()
    of = recording.attention[0]
    (product,) = multi_head.concatenation(run, **AT).figures
    by_name = factors(product)
    z, w, y = product.factors[0], by_name["W_O"], by_name["y"]
    heads, d_v = of.v.shape[1], of.v.shape[-1]
    assert z.shape == (1, heads * d_v) and w.shape == (heads * d_v, y.shape[1])
    assert len(z.parts) == len(w.parts) == of.pattern.shape[1] and w.down and not z.down
    table = multi_head.concatenation(run, **AT).table
    is_y = np.array(table["vector"]) == "y"
    wrote = recording.stream(of.query).at("1.attn.wrote")[5]
    numbers = np.array(table["number"])
    np.testing.assert_allclose(numbers[is_y], wrote, atol=PASSED * max(1, np.abs(wrote).max()))
    own = np.array(table["head"])[~is_y].astype(int) == 2
    made = of.pattern[1, 2, 5] @ np.asarray(of.v[1, 2])
    np.testing.assert_allclose(numbers[~is_y][own], made, atol=SUMMED * max(1, np.abs(made).max()))


# ---- the feed-forward network --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_way_through_an_ffn_is_its_own(model: str) -> None:
    run = Run(model, TEXT)
    stream = run.recording().streams[-1]
    panel = feed_forward.network(run, token=5, layer=1, stream=stream.name)
    left, curve = panel.figures
    *facts, network = left.figures
    h, before, after, update = (each.values for each in network.layers)
    wrote = residual.site_vectors(stream, "1.ffn.wrote")[5]
    np.testing.assert_allclose(update, wrote, atol=PASSED * max(1, np.abs(wrote).max()))
    assert len(h) == len(update) and len(before) == len(after) > len(h)
    assert network.between[0][1] == f"{len(h):,} × {len(before):,}"
    if "ReLU" in panel.finding:
        np.testing.assert_allclose(after, np.maximum(before, 0), atol=STORED)
    # So many units make half, and one fewer does not: from the shares in the table.
    shares = np.sort(panel.table["share of the update"])[::-1]
    if facts:
        half = int(facts[0].facts[0][0].replace(",", ""))
        assert shares[:half].sum() >= ffn.HALF > shares[: half - 1].sum()
    else:
        assert shares.cumsum().max() < ffn.HALF
    band, line = curve.series
    np.testing.assert_allclose(band.y, np.sort(before))
    assert (np.diff(band.y) >= 0).all() and len(line.y) == len(before)


def test_an_activation_is_known_by_what_it_does() -> None:
    from torch.nn.functional import gelu, silu

    hidden = loaded("encoder").ffn_activations(Run("encoder", TEXT).recording(), "encoder", 0, 3)
    assert ffn.activation_of(hidden) == "ReLU"

    x = torch.linspace(-6, 6, 200, dtype=torch.float64)
    np.testing.assert_allclose(ffn.gelu(x.numpy()), gelu(x).numpy(), atol=DOUBLE_LONG)
    np.testing.assert_allclose(ffn.silu(x.numpy()), silu(x).numpy(), atol=DOUBLE_LONG)
    tanh = gelu(x, approximate="tanh").numpy()
    np.testing.assert_allclose(ffn.gelu_tanh(x.numpy()), tanh, atol=DOUBLE_LONG)


# ---- the softmax ---------------------------------------------------------------------------------


def test_the_mask_is_written_where_a_weight_is_zero() -> None:
    run = Run("decoder", TEXT)
    of = run.recording().attention[0]
    panel = softmax.mask(run, **AT)
    before, after = panel.figures
    n = len(before.rows)
    places = [run.recording().streams[0].tokens.index(each) for each in before.rows]
    for row, query in enumerate(places):
        for column, key in enumerate(places):
            is_masked = before.words[row * n + column] == "−∞"
            assert is_masked == (key > query) == bool(np.isnan(before.values[row, column]))
            assert (after.words[row * n + column] == "0") == is_masked
            assert after.values[row, column] == pytest.approx(of.pattern[1, 2, query, key])
    size = of.pattern.shape[2]
    assert panel.finding.startswith(f"{size * (size - 1) // 2:,} of {size**2:,} scores")
    assert "masks nothing" in softmax.mask(Run("encoder", TEXT), **AT).finding


def test_scores_that_are_enlarged_saturate_no_less_without_their_scale() -> None:
    run = Run("encoder", TEXT, (ScaledBy(0.1),))
    with pytest.raises(ValueError, match="are multiplied by 10 here"):
        softmax.saturation(run, **AT)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_softmax_without_its_scale_has_less_gradient(model: str) -> None:
    run = Run(model, TEXT)
    of = run.recording().attention[0]
    panel = softmax.saturation(run, **AT)
    (figure,) = panel.figures
    allowed = of.allowed[1, 5]
    dots = np.asarray(of.k[1, 2], np.float64) @ of.q[1, 2, 5].astype(np.float64)
    for column, weights in enumerate(
        (of.pattern[1, 2, 5].astype(np.float64)[allowed], probabilities(dots[allowed]))
    ):
        left = float((weights * (1 - weights)).sum())
        assert figure.rows[-1].values[column] == pytest.approx(left, abs=PASSED)
        total = sum(row.values[column] for row in figure.rows[:-1])
        assert total == pytest.approx(1, abs=PASSED)
    scaled, raw = figure.rows[-1].values
    assert raw <= scaled and figure.mark == (len(figure.rows) - 1, 1)


def test_the_weights_with_a_scale_and_without_are_told_apart_on_one_scale_of_bars() -> None:
    run = Run("encoder", "The waiter brought the soup but it was cold.")
    panel = softmax.saturation(run, 1, 7, 7)
    (figure,) = panel.figures
    (cold,) = [row for row in figure.rows if row.label == "cold"]
    assert figure.shared and figure.high == 1 and cold.values[0] < cold.values[1] < 1
    assert cold.texts == ("0.987", "> 0.999") and "> 0.999 of the weight instead of 0.987" in (
        panel.finding
    )
    for one, other in ((0.5, 0.75), (0.987, 1 - 1e-12), (0.99, 0.994), (0.004, 0.0001)):
        decimals = decimals_apart(one, other)
        assert decimals is not None
        assert len({hundredths(each, decimals).lstrip("<> ") for each in (one, other)}) == 2
    assert decimals_apart(1 - 1e-9, 1 - 1e-12) is None


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_z_is_a_convex_combination_of_the_values(model: str) -> None:
    run = Run(model, TEXT)
    of = run.recording().attention[0]
    (steps,) = softmax.combination(run, **AT).figures
    values, weighted = (frame.figures[1].strips for frame in steps.frames)
    *parts, z = weighted
    assert z.label == "z" and len(parts) == len(values)
    np.testing.assert_allclose(sum(part.values for part in parts), z.values, atol=DOUBLE_LONG)
    assert sum(part.weight for part in parts) == pytest.approx(1, abs=SUMMED)
    for whole, part in zip(values, parts):
        np.testing.assert_allclose(whole.values * part.weight, part.values, atol=DOUBLE_LONG)
    everything = np.asarray(of.v[1, 2], np.float64)[of.allowed[1, 5]]
    assert (z.values <= everything.max(axis=0) + SUMMED).all()
    assert (z.values >= everything.min(axis=0) - SUMMED).all()
    made = of.pattern[1, 2, 5] @ np.asarray(of.v[1, 2])
    np.testing.assert_allclose(z.values, made, atol=SUMMED * max(1, np.abs(made).max()))


# ---- heads, states, targets ----------------------------------------------------------------------


def test_the_nearest_and_the_farthest_head_stand_on_one_scale() -> None:
    run = Run("encoder", TEXT)
    recording = run.recording()
    near, far, own = distances.near_and_far(run).figures
    reach = head_naming.reach(recording, recording.attention[0])[0]
    ends = np.nanargmin(reach), np.nanargmax(reach)
    for figure, end in zip((near, far), ends):
        layer, head = np.unravel_index(end, reach.shape)
        assert figure.title.startswith(f"L{layer} H{head}:")
    assert near.high == far.high and near.rows == far.rows
    row = recording.attention[0].pattern[layer, head, 13].astype(float)
    ((text, _),) = own.facts
    assert matches_text(text, sum(w * abs(13 - at) for at, w in enumerate(row)))
    with pytest.raises(ValueError, match="two texts"):
        distances.near_and_far(Run("translator", TEXT), attention="cross")


def test_what_is_left_of_a_gradient_falls_to_the_first_word() -> None:
    relay, beside = recurrence.bottleneck(Run("encoder", TEXT)).figures
    clock, each_step = beside.figures
    factor = parse_number(each_step.facts[0][0])
    whole = factor ** (len(relay.words) - 1)
    assert whole == pytest.approx(relay.values[0], rel=0.005)  # the factor is printed in 3 digits
    assert relay.values[-1] == 1 and (np.diff(relay.values) > 0).all()
    assert relay.words[0] == "The" and relay.words[-1] == "tired"
    assert [row.values[0] for row in clock.rows] == [len(relay.words), 1]
    with pytest.raises(ValueError, match="two words"):
        recurrence.bottleneck(Run("encoder", "the"))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator", SMOLLM2])
def test_a_target_is_the_input_shifted_by_one_and_has_the_models_probability(model: str) -> None:
    run = Run(model, TEXT)
    recording, loaded_model = run.recording(), read_once(model)
    stream = recording.streams[-1]
    panel = teacher_forcing.offset(run)
    (grid,) = panel.figures
    n = len(grid.columns)
    inputs, targets, *_ = (grid.words[at * n : (at + 1) * n] for at in range(4))
    assert inputs[1:] == targets[:-1]
    p = panel.table["p(target)"]
    for at in (0, len(p) - 1):
        given = probabilities(loaded_model.logits(recording, stream.name, at))
        assert p[at] == pytest.approx(given[int(stream.ids[at + 1])], rel=PASSED)
    np.testing.assert_allclose(grid.values[2], p[[int(each) for each in grid.columns]])
    product = teacher_forcing.product(run)
    ((line,),) = (each.series for each in product.figures)
    np.testing.assert_allclose(line.y, np.cumprod(p), rtol=DOUBLE_LONG)
    assert matches_text(product.numbers["text_probability"].text, float(np.prod(p)))


@pytest.mark.parametrize("model", MODELS)
def test_three_more_for_every_score_leave_the_weights_of_a_row(model: str) -> None:
    run = Run(model, TEXT)
    of = run.recording().attention[0]
    for added in (0.0, 3.0):
        panel = softmax.row(run, **AT, added=added)
        (bars,) = panel.figures
        keys = [int(each) for each in panel.table["key"]]
        own = of.pattern[1, 2, 5][keys].astype(np.float64)
        np.testing.assert_allclose(panel.table["weight"], own, atol=SUMMED)
        scores = of.scores[1, 2, 5][keys].astype(np.float64)
        np.testing.assert_allclose(panel.table["score"], scores + added, atol=SUMMED)
        (row,) = (each for each in bars.rows if each.selected)
        assert row.values[0] == pytest.approx(own.max(), abs=SUMMED)


def test_an_encoder_has_no_shifted_target() -> None:
    with pytest.raises(ValueError, match="reads the whole text at once"):
        teacher_forcing.offset(Run("encoder", TEXT))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_what_a_head_brings_from_all_tokens_is_its_part_of_the_logit(model: str) -> None:
    run, loaded_model = Run(model, TEXT), read_once(model)
    recording = run.recording()
    stream = recording.streams[-1].name
    parts = loaded_model.attribute(recording, stream, 5, 7, 11).parts
    found = loaded_model.head_sources(recording, stream, 5, 7, 11)
    heads = [part for part in parts if part.kind == "head"]
    assert len(heads) == sum(values.shape[0] * values.shape[1] for values in found.values())
    for part in heads:
        from_all = found[part.attention][part.layer, part.head].sum()
        assert from_all == pytest.approx(part.value, abs=TOTAL)
    panel = attribution.carriers(run, token=5, word=7, against=11)
    grid, bars = panel.figures
    ((row, column, text),) = grid.marks
    assert text in panel.finding and f"“{grid.columns[column]}”" in panel.finding
    layer, head = (int(each[1:]) for each in grid.rows[row].split())
    table = panel.table
    own = (table["layer"] == layer) & (table["head"] == head)
    largest = np.nanmax(np.where(own, table["contribution"], -np.inf))
    assert grid.values[row, column] <= largest + TOTAL
    total = sum(bar.values[0] for bar in bars.rows)
    assert total == pytest.approx(float(np.sum(table["contribution"])), abs=TOTAL)


def test_a_head_that_is_taken_out_brings_nothing_and_a_foreign_one_is_not_known() -> None:
    edits = (ZeroHead(1, 2), PatchHead("The red house is old.", 0, 3))
    run = Run("decoder", TEXT, edits)
    found = read_once("decoder").head_sources(run.recording(), "decoder", 5, 7)["self"]
    assert (found[1, 2] == 0).all() and np.isnan(found[0, 3]).all()
    assert np.isfinite(np.delete(found[0], 3, axis=0)).all()
    assert logit_lens.predicts_next(run.recording())


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_word_moves_between_the_words_whose_cosines_change_most(model: str) -> None:
    run = Run(model, TEXT)
    stream = run.recording().streams[0]
    token = stream.tokens.index("cat")
    panel = neighbours.between(run, token=token)
    plane, lines = panel.figures
    (cloud,) = plane.clouds
    toward, away = (plane.y_title, plane.x_title)
    names = [*cloud.labels, *(each.name for each in lines.series)]
    shown = len(cloud.labels)
    assert plane.apart and len({*names}) == len(names), "both neighbours are axes, and no points"
    whole = residual.whole_layers(stream)
    states = [each for each in whole.sites if not each.endswith(".wrote")]
    places = [stream.tokens.index(each) for each in names]
    for at, state in ((0, states[0]), (len(states) - 1, states[-1])):
        vectors = whole.at(state)[places].astype(np.float64)
        vectors -= vectors.mean(axis=0)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        own = vectors @ vectors[cloud.selected]
        for column, (axis, series) in enumerate(
            ((away, lines.series[1]), (toward, lines.series[0]))
        ):
            other = next(i for i, each in enumerate(names) if f"“{each}”" in axis)
            np.testing.assert_allclose(
                cloud.paths[:, at, column], (vectors @ vectors[other])[:shown], atol=PASSED
            )
            assert series.y[at] == pytest.approx(own[other], abs=PASSED)
    assert names[cloud.selected] == "cat" and len(plane.frames) == len(states)
    change = {}
    for word, state, value in zip(*(panel.table[name] for name in ("word", "state", "cosine"))):
        sign = {plane.frames[0].label: -1, plane.frames[-1].label: 1}.get(state, 0)
        change[word] = change.get(word, 0) + sign * value
    kinds = dict(zip(stream.tokens, word_classes.classes(stream.tokens)))
    content = {each: by for each, by in change.items() if kinds[each] == word_classes.CONTENT}
    assert f"“{max(content, key=content.__getitem__)}”" in toward
    assert f"“{min(content, key=content.__getitem__)}”" in away


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_word_that_opens_is_one_of_two_senses_or_the_noun_that_moves_most(model: str) -> None:
    def word(text: str) -> str:
        stream = Run(model, text).recording().streams[0]
        return stream.tokens[opening.moving_word(Run(model, text).recording(), stream)]

    assert word("Tell me about the new apple devices.") == "apple"
    run = Run(model, "The red house was near the old tree.")
    stream = run.recording().streams[0]
    turns = {}
    for name in ("house", "tree"):
        move = neighbours.move_of(stream, stream.tokens.index(name))
        change = move.cosines[-1, move.at] - move.cosines[0, move.at]
        turns[name] = change[move.toward] - change[move.away]
    assert word(run.text) == max(turns, key=turns.__getitem__)
    assert f"“{word(run.text)}”" in neighbours.between(run).title


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("attention", [0, -1])
def test_the_gradient_of_a_head_is_that_of_a_loss_through_its_rows_of_w_o(
    model: str, attention: int
) -> None:
    edits = (HideToken(3),) if model == "encoder" else ()
    run, plain = Run(model, TEXT, edits), Run(model, TEXT)
    recording, loaded_model = run.recording(), read_once(model)
    of, network = recording.attention[attention], loaded_model.network
    module, last = loaded_model.attentions[of.name][1], recording.streams[-1]
    right = np.array(MeasureContext.of(run).targets)
    if edits:
        assert right.tolist() == [[3, plain.recording().streams[-1].ids[3]]]
    else:
        assert right[:, 1].tolist() == last.ids[1:].tolist()
    found = loaded_model.head_gradients(recording, of.name, 1, MeasureContext.of(run).targets)
    outputs: list[torch.Tensor] = []

    def keep(_: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        outputs.extend((inputs[0], output))

    ids = [torch.tensor(each.ids)[None] for each in recording.streams]
    begin = module.w_o.register_forward_pre_hook(
        lambda _, inputs: (inputs[0].detach().requires_grad_(),)
    )
    handle = module.w_o.register_forward_hook(keep)
    try:
        reads_two = len(ids) > 1
        vectors = network.decode(ids[1], network.encode(ids[0])) if reads_two else network(*ids)
        p = torch.log_softmax(network.logits(vectors[0]), dim=-1)
        loss = -p[right[:, 0], right[:, 1]].mean()
        z, y = torch.autograd.grad(loss, outputs)
    finally:
        handle.remove()
        begin.remove()
    assert found.loss == pytest.approx(loss.item(), rel=PASSED)
    scale = z.abs().max().item()
    heads = z[0].numpy().reshape(len(z[0]), module.n_head, -1).swapaxes(0, 1)
    np.testing.assert_allclose(found.heads, heads, atol=PASSED * scale)
    np.testing.assert_allclose(found.output, y[0].numpy(), atol=PASSED * y.abs().max().item())
    w_o = module.w_o.weight.detach().numpy().T.reshape(module.n_head, -1, y.shape[-1])
    by_rows = np.stack([y[0].numpy() @ each.T for each in w_o])
    np.testing.assert_allclose(found.heads, by_rows, atol=PASSED * scale)


@pytest.mark.slow
def test_heads_that_begin_equal_get_equal_updates_only_where_their_rows_of_w_o_are() -> None:
    run = Run("decoder", TEXT)
    panel = multi_head.head_gradients(run, **AT)
    bars, matrix, _ = panel.figures
    lengths = [row.values[0] for row in bars.rows]
    assert matrix.values[2, 2] == pytest.approx(1) and matrix.values[0, 1] < 0.9
    assert f"{max(lengths) / min(lengths):.1f} times" in panel.details[1]
    model = read_once("decoder")
    gradient = model.head_gradients(run.recording(), "self", 1, MeasureContext.of(run).targets)
    equal = np.repeat(gradient.heads[:1], 4, axis=0)
    np.testing.assert_allclose(gradients.cosines(equal), 1, atol=PASSED)
    with pytest.raises(ValueError, match="targets"):
        model.head_gradients(run.recording(), "self", 1, ())


@pytest.mark.parametrize(
    ("toward", "away", "sentence"),
    [
        ((0.1, 0.5), (0.5, 0.1), "finding"),
        ((0.1, 0.5), (0.1, 0.2), "finding_nearer"),
        ((0.1, 0.5), (0.1, 0.1), "finding_nearer"),
        ((0.5, 0.4), (0.5, 0.1), "finding_farther"),
        ((0.5, 0.5), (0.5, 0.1), "finding_farther"),
        ((0.5, 0.5), (0.1, 0.1), "finding_stays"),
    ],
)
def test_a_word_comes_near_and_leaves_only_what_its_cosines_say(
    toward: tuple[float, float], away: tuple[float, float], sentence: str
) -> None:
    assert neighbours._course(np.array(toward), np.array(away)) == sentence


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Ram pushed Hari", "Dogs bark loudly", "apple pie tastes good"])
def test_a_sentence_on_neighbours_is_true_of_its_numbers(text: str) -> None:
    for token in range(1, 4):
        said = neighbours.between(Run("encoder", text), token=token).finding.replace("−", "-")
        found = re.findall(r"([-\d.]+) → ([-\d.]+)", said)
        rises = [float(last) - float(first) for first, last in found]
        if "It leaves" in said:
            assert rises[0] > 0 > rises[1], said
        elif " comes near " in said:
            assert rises[0] >= rises[1] >= 0, said
        elif " leaves " in said:
            assert rises[0] <= rises[1] <= 0, said


def test_the_next_word_moves_in_the_place_of_a_special_token() -> None:
    run = Run("encoder", TEXT)
    assert neighbours.between(run, token=0).finding == neighbours.between(run, token=1).finding
    with pytest.raises(ValueError, match="three words"):
        neighbours.between(Run("encoder", "the cat"))


# ---- what later models changed -------------------------------------------------------------------


@needs_smollm2
def test_queries_turned_back_by_the_rates_are_the_vectors_times_w_q() -> None:
    run, model = Run("smollm2", TEXT), read_once("smollm2")
    recording = run.recording()
    of, stream = recording.attention[0], recording.streams[0]
    rates = model.rotary(of.name, 1).angles
    assert (np.diff(rates) < 0).all() and rates[0] == pytest.approx(1, abs=STORED)
    module = model.attentions[of.name][1]
    x = torch.tensor(stream.at("1.attn.read"))
    plain = module.w_q(x).detach().numpy().reshape(len(x), of.q.shape[1], -1)[:, 2]
    back = positions.turned(of.q[1, [2]].astype(np.float64), -rates)[0]
    np.testing.assert_allclose(back, plain, atol=PASSED * np.abs(plain).max())
    (dials,) = modern.rotary(run, **AT).figures
    turned = float(np.degrees(5 * rates[0]))
    assert dials.dials[0].after[1] == pytest.approx(turned % 360) and dials.dials[0].selected


@needs_smollm2
def test_the_other_parts_of_a_current_model_are_its_own() -> None:
    run = Run("smollm2", TEXT)
    recording = run.recording()
    of, stream = recording.attention[0], recording.streams[0]
    table = modern.rms_norm(run, layer=1, token=5).table
    assert np.mean(np.square(table["h / root"])) == pytest.approx(1, abs=PASSED)
    read = stream.at("1.attn.read")[5]
    np.testing.assert_allclose(table["times gain"], read, atol=PASSED * np.abs(read).max())
    graph, cache = modern.shared_keys(run).figures
    for edge in graph.edges:
        group, head = edge.source, edge.target - graph.split
        first = next(each.target - graph.split for each in graph.edges if each.source == group)
        np.testing.assert_array_equal(np.asarray(of.k[1, head]), np.asarray(of.k[1, first]))
    stored = stored_array(of.k).size + stored_array(of.v).size
    assert cache.rows[0].values[0] == stored and cache.rows[1].values[0] == 3 * stored
    gate = modern.gate(run, layer=1, token=5)
    hidden = loaded(recording).ffn_activations(recording, stream.name, 1, 5)
    through = np.array(gate.table["opened"]) * np.array(gate.table["through"])
    np.testing.assert_allclose(through, hidden.after, atol=PASSED)


@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_a_model_of_the_paper_has_none_of_these_parts(model: str) -> None:
    run = Run(model, TEXT)
    for panel in (modern.rotary, modern.rms_norm, modern.shared_keys, modern.gate):
        with pytest.raises(ValueError, match="smollm2"):
            panel(run)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "place"), [("encoder", "post"), ("translator", "post")])
def test_the_diagram_of_a_model_is_lit_and_its_states_have_their_lengths(
    model: str, place: str
) -> None:
    run = Run(model, TEXT)
    stream = run.recording().streams[-1]
    assert residual.norm_place(stream) == place
    stack, charts = norm_place.diagrams(run).figures
    chart, gradient = charts.figures
    lit = {part.parts[0].norm: part.lit for part in stack.figures}
    assert lit == {"post": place == "post", "pre": place == "pre"}
    named = [part.name for part in stack.figures[0].parts]
    assert len(named) == (3 if model == "translator" else 2)
    text = ~stream.special
    last = np.linalg.norm(stream.resid[-1][text].astype(np.float64), axis=1).mean()
    assert chart.series[0].y[-1] == pytest.approx(last, rel=PASSED)
    assert len(chart.series[0].y) == run.recording().model.n_layer + 1
    last = int(np.flatnonzero(text)[-1])
    found = loaded(run.recording()).gradients(run.recording(), stream.name, last)
    ends = [0, *(at for at, site in enumerate(found.sites) if site.endswith(".ffn"))]
    norms = np.sqrt((found.norm.astype(np.float64) ** 2).sum(axis=1))[ends]
    np.testing.assert_allclose(gradient.series[0].y, norms, rtol=PASSED)


def test_twins_are_drawn_in_one_picture_and_the_stream_of_the_pre_ln_one_grows() -> None:
    panels = {name: norm_place.diagrams(Run(name, TEXT)) for name in norm_place.TWINS}
    for name, panel in panels.items():
        own, other = (panel.figures[1].figures, panels[norm_place.TWINS[name]].figures[1].figures)
        for one, mate in zip(own, other):
            np.testing.assert_array_equal(one.series[1].y, mate.series[0].y)
            assert one.series[0].main and not one.series[1].main
    post, pre = (
        panels[name].figures[1].figures[0].series[0].y for name in ("twin-post", "twin-pre")
    )
    assert (np.diff(pre) > 0).all() and pre[-1] > 2 * post[-1]


def test_the_word_at_which_the_product_falls_most_is_named_at_its_fall() -> None:
    panel = teacher_forcing.product(Run("decoder", TEXT))
    (chart,) = panel.figures
    (curve,) = chart.series
    ((place, word),) = chart.guides
    falls = np.diff(np.log(curve.y), prepend=0.0)
    assert curve.x[falls.argmin()] == place and panel.table["token"][int(place) - 1] == word
    assert curve.end == panel.numbers["text_probability"].text
