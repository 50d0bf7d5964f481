"""The residual stream: what was written and how far it turned, LayerNorm, heads, gradients; the
laws, the page, and one journey."""

from __future__ import annotations

import csv
import io
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import numpy as np
import pytest
import torch
from bounds import DOUBLE_LONG, PASSED, STORED, SUMMED, TOTAL
from conftest import HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest

from explorer.analysis import head_writes, layer_norm
from explorer.analysis import residual as numbers
from explorer.analysis.csv import to_csv
from explorer.analysis.numbers import power
from explorer.components import residual as pictures
from explorer.components import wire
from explorer.components.picture import Picture
from explorer.figures import residual as figures
from explorer.memory import background, passes, shelf
from models import library
from models.edits import WithoutNorm, WithoutResidual, ZeroHead
from models.own import Handle, record
from models.readouts import decay, gradients, parameters

TEXT = "the cat sat on the mat"
LONGER = (
    "The cat sat on the mat"
    + ", and then it looked at the dog that had slept beside the old door" * 3
)
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(params=["small_handle", "small_decoder", "small_translator"])
def handle(request) -> Handle:
    return request.getfixturevalue(request.param)


def streams(handle: Handle, *edits, text: str = TEXT):
    recording = record(
        handle, text, edits, "le chat" if handle.card.kind == "encoder-decoder" else None
    )
    return [(recording, stream) for stream in recording.streams]


# ---- numbers -----------------------------------------------------------------


def test_before_and_what_was_written_is_after_and_a_lost_residual_shows(handle: Handle) -> None:
    for _, stream in streams(handle):
        error, n, largest = numbers.conservation(stream)
        assert (
            error < SUMMED
            and n == len(stream.writes()) * len(stream.tokens)
            and largest == np.abs(stream.resid).max()
        )
    for _, stream in streams(handle, WithoutResidual()):
        assert numbers.conservation(stream)[0] > 0.1


def test_share_cosine_and_angle_agree_with_the_law_of_cosines(handle: Handle) -> None:
    for _, stream in streams(handle):
        for token in range(len(stream.tokens)):
            way = {
                name: np.array(column)
                for name, column in numbers.followed(stream, token).items()
                if name != "sub-layer"
            }
            x, w, total = way["|before|"], way["|wrote|"], way["|sum|"]
            np.testing.assert_allclose(
                total**2, x**2 + w**2 + 2 * x * w * way["cosine"], rtol=SUMMED
            )
            np.testing.assert_allclose(
                np.cos(np.radians(way["turned by adding °"])),
                (x + w * way["cosine"]) / total,
                atol=SUMMED,
            )
            np.testing.assert_allclose(way["share"], w / (w + x))
            low, high = (
                abs(way["turned by adding °"] - way["turned by norm °"]),
                way["turned by adding °"] + way["turned by norm °"],
            )
            assert (low - 1e-6 <= way["turned in all °"]).all() and (
                way["turned in all °"] <= high + 1e-6
            ).all(), "angles obey the triangle inequality"


def test_the_grids_hold_what_one_token_s_way_says(handle: Handle) -> None:
    for _, stream in streams(handle):
        column = {
            "Turned": "turned in all °",
            "Share": "share",
            "Cosine": "cosine",
            "Written": "|wrote|",
        }
        for measure, name in column.items():
            grid = numbers.writes(stream, measure)
            for token in range(len(stream.tokens)):
                np.testing.assert_allclose(
                    grid.values[token], numbers.followed(stream, token)[name]
                )
        norm = numbers.writes(stream, "Norm")
        assert (
            len(norm.columns) == len(stream.sites) == len({column.name for column in norm.columns})
        )
        turned = numbers.rotations(stream, 1)
        grid = numbers.writes(stream, "Turned")
        assert turned["attention °"] == pytest.approx(
            [v for v, c in zip(grid.values[1], grid.columns) if c.label == "attn"]
        )
        assert ("cross-attention °" in turned) == any(".cross." in site for site in stream.sites)


def test_known_angles() -> None:
    x, y = np.array([3.0, 0.0]), np.array([0.0, 0.5])
    assert (
        numbers.degrees(x, y) == pytest.approx(90)
        and numbers.degrees(x, -x) == pytest.approx(180)
        and numbers.degrees(x, x) == 0
    )
    tiny = np.array([1.0, 1e-9])
    assert numbers.degrees(np.array([1.0, 0.0]), tiny) == pytest.approx(
        np.degrees(1e-9), rel=STORED
    ), "small angles are not lost"
    assert np.isnan(numbers.cosine(x, np.zeros(2))) and np.isnan(numbers.degrees(x, np.zeros(2)))


def test_what_stands_after_a_layernorm_recomputes_from_its_sum(handle: Handle) -> None:
    for _, stream in streams(handle):
        norms = parameters.norms(handle, stream.name)
        assert set(norms) == {each.site for each in numbers.sublayers(stream) if each.layer >= 0}
        assert layer_norm.norm_error(stream, norms) < SUMMED
        swapped = {site: (bias, gain, *how) for site, (gain, bias, *how) in norms.items()}
        assert layer_norm.norm_error(stream, swapped) > 0.1, "gain and bias are told apart"
        steps = layer_norm.stages(stream, norms, "0.attn", 1)
        assert steps["mean μ"][1] == pytest.approx(0, abs=STORED) and steps["spread σ"][
            2
        ] == pytest.approx(1, abs=TOTAL)
        assert steps["mean μ"][-1] == pytest.approx(
            stream.at("0.attn.normed")[1].mean(), abs=SUMMED
        )
        assert steps["spread σ"][-1] == pytest.approx(
            layer_norm.norm_grid(stream, "Sigma after").values[1, 0], abs=SUMMED
        )
    for _, stream in streams(handle, WithoutNorm()):
        assert numbers.norms_of(stream) == () and numbers.norm_place(stream) is None


def test_heads_and_bias_sum_to_what_attention_wrote(handle: Handle) -> None:
    outputs = parameters.outputs(handle)
    for edits in (
        (),
        (ZeroHead(1, 2, "decoder self" if handle.card.kind == "encoder-decoder" else "self"),),
    ):
        for recording, stream in streams(handle, *edits):
            assert head_writes.heads_error(recording, stream, outputs) < SUMMED
            assert (
                head_writes.heads_error(
                    recording, stream, {name: (w, b + 1) for name, (w, b) in outputs.items()}
                )
                > 0.9
            )
            grid = head_writes.head_grid(recording, stream, "Length", outputs)
            silent = [
                column.name
                for column, values in zip(grid.columns, grid.values.T)
                if not values.any()
            ]
            writes_here = any(
                edit.attention in [a.name for a in recording.attention if a.query == stream.name]
                for edit in edits
            )
            assert len(silent) == (1 if writes_here else 0)


def test_one_head_s_length_by_hand(small_handle: Handle) -> None:
    recording, stream = streams(small_handle)[0]
    grid = head_writes.head_grid(recording, stream, "Length", parameters.outputs(small_handle))
    attention = recording.attention[0]
    z = attention.pattern[1, 3, 2] @ attention.v[1, 3]
    d = recording.model.d_head
    by_hand = (
        small_handle.model.layers[1].attention.w_o.weight[:, 3 * d : 4 * d].detach().numpy() @ z
    )
    at = [column.name for column in grid.columns].index("layer 1, head 3")
    assert grid.values[2, at] == pytest.approx(np.linalg.norm(by_hand), rel=SUMMED)
    shares = head_writes.head_grid(
        recording, stream, "Share of heads", parameters.outputs(small_handle)
    ).values
    np.testing.assert_allclose(shares.reshape(len(stream.tokens), 3, 4).sum(-1), 1)


def test_layernorm_keeps_the_others_and_batchnorm_does_not(small_handle: Handle) -> None:
    _, stream = streams(small_handle)[0]
    changed = layer_norm.change(stream, "1.ffn", 2, 3.0, 1e-5)
    others = np.arange(len(stream.tokens)) != 2
    assert (changed.layer[others] == 0).all() and (changed.batch[others] > 1e-3).all()
    assert changed.layer[2] < TOTAL, "LayerNorm forgets the length"
    same = layer_norm.change(stream, "1.ffn", 2, 1.0, 1e-5)
    assert not same.layer.any() and not same.batch.any()
    x = torch.tensor(stream.at("1.ffn.sum")).double()
    batch = torch.nn.functional.batch_norm(x, None, None, training=True, eps=1e-5).numpy()
    np.testing.assert_allclose(layer_norm.normalised(x.numpy().T, 1e-5).T, batch, atol=DOUBLE_LONG)
    assert layer_norm.worst_other(np.array([1.0]), 0) is None and layer_norm.worst_other(
        np.array([1.0, 5.0, 2.0]), 1
    ) == (2, 2.0)


# ---- gradients ---------------------------------------------------------------


def test_the_gradient_is_the_slope_of_the_output(handle: Handle) -> None:
    recording, stream = streams(handle)[-1]
    token = 1
    found = gradients.highway(handle, recording, stream.name, token)
    on = found.norm[0]
    readout = handle.model.embedding.token.weight[found.id].detach()
    assert (
        on[-1, token] == pytest.approx(readout.norm().item(), rel=SUMMED)
        and not np.delete(on[-1], token).any()
    ), "the last state is read by the tied embedding"
    assert found.logit[0] == pytest.approx(
        library.logits(handle, recording, stream.name, token)[found.id], abs=PASSED
    )
    # The last LayerNorm by hand: its vector-Jacobian product at the recorded sum.
    site = found.sites[-1]
    total = torch.tensor(stream.at(f"{site}.sum")[token]).double().requires_grad_()
    gain, bias, eps, _ = parameters.norms(handle, stream.name)[site]
    (
        torch.nn.functional.layer_norm(
            total, total.shape, torch.tensor(gain).double(), torch.tensor(bias).double(), eps
        )
        @ readout.double()
    ).backward()
    state = torch.tensor(stream.at(numbers.sublayers(stream)[-1].before)[token]).requires_grad_()
    layer = (
        getattr(handle.model, stream.name)
        if handle.card.kind == "encoder-decoder"
        else handle.model.layers
    )[-1]
    (state + layer.feed_forward(state)).backward(total.grad.float())
    assert on[-2, token] == pytest.approx(state.grad.norm().item(), rel=TOTAL)
    assert all(parameter.grad is None for parameter in layer.attention.parameters()), (
        "the shared model collects no gradients"
    )
    for parameter in handle.model.parameters():
        parameter.grad = None


def test_a_causal_stream_has_no_gradient_from_later_tokens(small_decoder: Handle) -> None:
    recording, stream = streams(small_decoder)[0]
    norm = gradients.highway(small_decoder, recording, stream.name, 2).norm
    assert not norm[..., 3:].any() and norm[0, 0, :3].all()


def test_no_gradients_are_left_on_the_shared_model(handle: Handle) -> None:
    for recording, stream in streams(handle):
        gradients.highway(handle, recording, stream.name, 0)
        gradients.jacobian(handle, recording, stream.name, 0, "0.attn")
    assert all(parameter.grad is None for parameter in handle.model.parameters())


def test_the_jacobian_of_the_sum_is_identity_plus_that_of_the_write(handle: Handle) -> None:
    for recording, stream in streams(handle):
        for each in numbers.sublayers(stream):
            if each.layer == 1:
                found = gradients.jacobian(handle, recording, stream.name, 1, each.site)
                assert found.error < SUMMED
                assert (
                    np.isclose(found.wrote, found.wrote[0]).sum() < len(found.wrote)
                    and (np.diff(found.total) <= 0).all()
                )
    with pytest.raises(ValueError, match="no sub-layer"):
        gradients.jacobian(handle, recording, stream.name, 1, "9.attn")


def test_a_jacobian_against_small_steps(small_handle: Handle) -> None:
    recording, stream = streams(small_handle)[0]
    layer, x = small_handle.model.layers[1], torch.tensor(stream.at("0.ffn.normed"))
    found = gradients.jacobian(small_handle, recording, stream.name, 2, "1.attn")
    columns = []
    with torch.no_grad():
        for axis in range(x.shape[1]):
            ends = []
            for step in (-1e-2, 1e-2):
                moved = x.clone()
                moved[2, axis] += step
                ends.append(layer.attention(moved[None], moved[None])[0, 2])
            columns.append((ends[1] - ends[0]) / 2e-2)
    np.testing.assert_allclose(
        np.linalg.svd(torch.stack(columns, 1).numpy(), compute_uv=False)[:8],
        found.wrote[:8],
        rtol=2e-2,  # steps of a hundredth: the curve of the softmax shows
        atol=TOTAL,
    )


def test_only_the_token_itself_is_differentiated(small_handle: Handle) -> None:
    recording = record(small_handle, LONGER)
    attention = small_handle.model.layers[1].attention
    tokens = []
    hooks = [
        each.register_forward_pre_hook(
            lambda _, given: tokens.append(given[0].shape[-2]) if torch.is_grad_enabled() else None
        )
        for each in (attention.w_k, attention.w_v)
    ]
    found = gradients.jacobian(small_handle, recording, "encoder", 3, "1.attn")
    for hook in hooks:
        hook.remove()
    assert set(tokens) == {1}, "keys and values of the other tokens are held"
    x = torch.tensor(recording.streams[0].at("0.ffn.normed"))

    def plainly(v: torch.Tensor) -> torch.Tensor:
        whole = torch.cat((x[:3], v[None], x[4:]))[None]
        return attention(whole, whole)[0, 3]

    np.testing.assert_allclose(
        found.wrote,
        torch.linalg.svdvals(torch.func.jacrev(plainly)(x[3]).detach().double()),
        atol=SUMMED,
    )


def test_a_model_without_a_part_is_measured_without_it() -> None:
    handle = read_once("induction-no-residual")
    recording = library.record(handle, "b a c d b")
    stream = recording.streams[0]
    assert not numbers.adds(stream) and numbers.norm_place(stream) == "post"
    assert gradients.highway(handle, recording, "decoder", 2).ways == (
        "residual off",
        "residual off, no norm",
    )
    found = gradients.jacobian(handle, recording, "decoder", 2, "0.ffn")
    assert not found.adds and np.array_equal(found.wrote, found.total) and found.error == 0
    handle = read_once("induction-no-norm")
    recording = library.record(handle, "b a c d b")
    stream = recording.streams[0]
    assert (
        numbers.adds(stream)
        and numbers.norm_place(stream) is None
        and numbers.norms_of(stream) == ()
    )
    assert gradients.highway(handle, recording, "decoder", 2).ways == (
        "residual on, no norm",
        "residual off, no norm",
    )
    assert "turned by norm °" not in numbers.followed(stream, 1)


def test_layernorms_in_front_of_the_sublayers_recompute_too(small_gpt2: Handle) -> None:
    recording = record(small_gpt2, TEXT)
    stream, norms = recording.streams[0], parameters.norms(small_gpt2, "decoder")
    assert numbers.norm_place(stream) == "pre" and [each.site for each in numbers.norms_of(stream)][
        -2:
    ] == ["2.ffn", "final"]
    assert {each.site for each in numbers.norms_of(stream)} == set(norms) and layer_norm.norm_error(
        stream, norms
    ) < SUMMED
    assert numbers.conservation(stream)[0] < SUMMED and len(
        numbers.writes(stream, "Norm").columns
    ) == len(stream.sites)


def test_decay_is_the_same_each_time_starts_alike_and_is_causal() -> None:
    ids = [5, 9, 5, 7, 11, 3, 2, 8]
    first, *_, last = decay.decay(ids, 2, steps=20)
    again = list(decay.decay(ids, 2, steps=20))[-1]
    np.testing.assert_array_equal(last.gradient, again.gradient)
    assert first.step == 0 and last.step == 20 and list(last.looks) == [0, 10, 20]
    np.testing.assert_array_equal(first.gradient, last.first)
    assert (
        last.gradient.shape == (3, 8)
        and last.loss.shape == (3, 3)
        and (last.loss[:, -1] < last.loss[:, 0]).all()
    )
    # Untrained on 16 symbols: near chance, with what random scores of spread one add.
    assert first.loss[:, 0] == pytest.approx(np.log(16), abs=1.2)
    rnn = last.first[0]
    assert rnn[1] < rnn[0] and numbers.per_step(rnn) < 1, (
        "a fresh RNN's gradient falls with distance"
    )
    with pytest.raises(ValueError, match="3 tokens"):
        next(decay.decay([1, 2, 3], 2))
    assert decay.longest_lag(2) == 0 and decay.longest_lag(3) == 1


def test_distance_is_counted_from_the_output_back() -> None:
    net = decay.Small("RNN", torch.Generator().manual_seed(1))
    text = decay.symbols([4, 6, 4, 9, 1])
    found = decay._by_distance(net, text)
    by_hand = [[] for _ in text]
    for output in range(len(text)):
        x = net.embedding(text).detach().requires_grad_()
        net(x[None])[0, output].max().backward()
        for token in range(output + 1):
            by_hand[output - token].append(x.grad[token].norm().item())
        assert not x.grad[output + 1 :].any()
    np.testing.assert_allclose(found, [np.mean(each) for each in by_hand], rtol=PASSED)


def test_equal_tokens_are_equal_symbols() -> None:
    assert decay.symbols([70, 8, 70, 9]).tolist() == [0, 1, 0, 2]
    assert decay.symbols(range(40))[16:].max() <= 15


# ---- pictures and files ------------------------------------------------------


def test_the_map_carries_the_numbers_and_no_selection(small_handle: Handle) -> None:
    _, stream = streams(small_handle)[0]
    grid = numbers.writes(stream, "Turned")
    data = pictures.chart(
        grid,
        stream.tokens,
        stream.special,
        Picture("t", ("c",), "f", "x"),
    )
    header, blocks = wire.decode(data)
    np.testing.assert_allclose(
        blocks["values"].reshape(grid.values.shape), grid.values, rtol=STORED
    )
    assert (
        header["low"] == 0
        and header["high"] == pytest.approx(grid.values.max())
        and "chosen" not in header
    )
    header, blocks = wire.decode(
        pictures.followed(
            grid,
            stream.tokens,
            2,
            Picture("t", (), "f", "x"),
        )
    )
    np.testing.assert_allclose(blocks["values"], grid.values[2], rtol=STORED)
    np.testing.assert_allclose(blocks["median"], np.median(grid.values, axis=0), rtol=STORED)
    cosine = numbers.writes(stream, "Cosine")
    assert pictures.scale(cosine, False) == (-1, 1)


def test_a_file_reads_back_and_says_what_it_is(small_handle: Handle) -> None:
    _, stream = streams(small_handle)[0]
    grid = numbers.writes(stream, "Share")
    made = to_csv(numbers.table(grid, ("=1", *stream.tokens[1:])), ("model\nm", "Text: <b>"))
    rows = list(csv.reader(io.StringIO(made)))
    assert rows[1][-1] == "model m | Text: <b>"
    assert rows[0][1:-1] == [column.name for column in grid.columns] and rows[1][0] == "0 =1"
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:-1]] for row in rows[1:]], grid.values
    )


def test_figures_escape_and_leave_a_gap_at_zero_on_a_log_axis() -> None:
    figure = figures.lines(
        [("a <b>", np.array([1.0, 0.0, 0.01]))],
        ("<i>title</i> " + "long " * 20, "text <b>"),
        ["<x>", "y", "y"],
        "x",
        "y",
        log=True,
        named=True,
    )
    assert np.isnan(figure.data[0].y[1]) and figure.data[0].name == "a &lt;b&gt;"
    assert (
        list(figure.layout.xaxis.ticktext) == ["&lt;x&gt;", "y", "y"]
        and "<i>" not in figure.layout.title.text
    )
    bars = figures.bars(
        [("LayerNorm", np.zeros(2)), ("BatchNorm", np.ones(2))], ("t",), ("same", "same"), "y"
    )
    assert list(bars.data[0].x) == [0, 1], "equal tokens stay apart"


def test_a_subtitle_that_is_cut_says_so() -> None:
    about = ("Title", *(f"line {at} of what the figure is" for at in range(9)))
    shown = figures.lines(
        [("a", np.ones(3))], about, range(3), "x", "y", log=False
    ).layout.title.subtitle.text.split("<br>")
    assert len(shown) == 5 and shown[0] == about[1] and shown[-1] == f"{about[5]} …"
    assert (
        "…"
        not in figures.lines(
            [("a", np.ones(3))], about[:5], range(3), "x", "y", log=False
        ).layout.title.subtitle.text
    )


@pytest.mark.parametrize(
    "value, digits, shown",
    [
        (999.6, 3, "1,000"),
        (999.4, 3, "999"),
        (250, 2, "250"),
        (-999.9, 3, "−1,000"),
        (99_999.7, 3, "100,000"),
        (12.345, 3, "12.3"),
    ],
)
def test_a_number_that_fills_its_digits_by_rounding_is_written_out(
    value: float, digits: int, shown: str
) -> None:
    assert power(value, digits) == shown


def test_an_experiment_that_runs_is_found_however_full_the_shelf_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = threading.Event()

    def endless():
        while held.wait(10):
            yield object()

    monkeypatch.setattr(shelf, "_shelf", shelf.Shelf(0))
    monkeypatch.setattr(library, "decay", lambda ids, lag: endless())
    recording = passes.record("encoder", "Hi there")
    experiment = background.decay(recording, "encoder", 1)
    experiment.go_on()
    for at in range(3):
        shelf.get(at, lambda: "something large", lambda _: 1)
    again = background.decay(recording, "encoder", 1)
    assert again is experiment and again.running
    again.stop()
    held.set()
    experiment._thread.join(10)
    assert not experiment.running and background.decay(recording, "encoder", 1) is experiment, (
        "what it came to is kept"
    )


def test_large_and_small_numbers_as_powers_of_ten() -> None:
    assert (
        power(2.4e-5, 2) == "2.4 × 10⁻⁵"
        and power(0) == "0"
        and power(-3.0) == "−3"
        and power(34_400.0) == "34,400"
    )


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    for name, value in asked.items():
        app.query_params[name] = value
    return app.switch_page(str(ROOT / "pages" / "residual.py")).run()


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the map ("chart") or the line ("followed") was sent."""
    decoded = [
        wire.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == "headlight.residual"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_drawn(text: str) -> None:
    app = clean(opened(text=text, write="Norm"))
    header, blocks = sent(app, "chart")
    stream = library.record(read_once("encoder"), text).streams[0]
    assert tuple(header["tokens"]) == stream.tokens
    np.testing.assert_allclose(
        blocks["values"].reshape(len(stream.tokens), -1),
        np.linalg.norm(stream.resid, axis=-1).T,
        rtol=PASSED,
    )
    assert (
        len(
            next(
                e.proto.bytes
                for e in on_page(app)
                if e.proto.component_name == "headlight.residual"
            )
        )
        < 120_000
    )


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "encoder", "text": ""},
        {"model": "decoder", "text": "<b>a</b> $x$"},
        {"model": "translator", "stream": "decoder", "text": "The cat sleeps."},
        {"model": "translator", "text": "Hi"},
    ],
)
def test_every_view_opens_for_every_model(flow: str, asked: dict[str, str]) -> None:
    app = clean(opened(flow=flow, **asked))
    assert app.session_state["flow"] == flow
    if flow == "Gradient":
        assert len(app.get("plotly_chart")) == 3


@pytest.mark.slow
def test_a_link_opens_what_it_names_and_refuses_what_is_not_there() -> None:
    app = clean(opened(flow="LayerNorm", norm="Mean before", block="2.ffn", times="5", token="4"))
    assert (
        sent(app, "followed")[0]["chosen"] == 4
        and sent(app, "chart")[0]["measure"]["name"] == "Mean before"
    )
    said = " ".join(each.value for each in app.markdown)
    stream = library.record(read_once("encoder"), app.session_state["text"]).streams[0]
    norms = library.norms(read_once("encoder"), "encoder")
    moved = layer_norm.worst_other(
        layer_norm.change(stream, "2.ffn", 4, 5.0, norms["2.ffn"][2]).batch, 4
    )
    assert f"**{moved[1]:.3f}**" in said and "multiplied by 5" in said
    app = clean(
        opened(flow="<b>", norm="?", block="99.x", times="nan", token="9999", lag="-3", stream="no")
    )
    assert sent(app, "chart")[0]["measure"]["name"] == "Turned"
    clean(opened(flow="LayerNorm", block="99.x", times="nan"))
    clean(opened(flow="RNN", lag="9" * 30))


@pytest.mark.slow
def test_following_a_token_sends_none_of_the_map_again() -> None:
    app = clean(opened(token="2"))
    before = next(
        e.proto.bytes for e in on_page(app) if wire.decode(e.proto.bytes)[0]["kind"] == "chart"
    )
    app.session_state["token"] = "5"
    clean(app.run())
    assert before == next(
        e.proto.bytes for e in on_page(app) if wire.decode(e.proto.bytes)[0]["kind"] == "chart"
    )
    assert sent(app, "followed")[0]["chosen"] == 5


def told(app: AppTest) -> str:
    return " ".join(each.value for each in (*app.markdown, *app.info, *app.warning))


@pytest.mark.slow
def test_words_typed_for_the_decoder_are_named_and_can_be_let_go() -> None:
    app = clean(opened(model="translator", text="The dog is big.", target="Le <b>chat</b>"))
    assert "reads your own words, “Le \\<b\\>chat" in told(
        app
    ) and "typed on the Translation page" in told(app)
    app.button(key="drop target").click().run()
    assert app.session_state["target"] == "" and "your own words" not in told(clean(app))
    app = clean(opened(model="translator", target="Le chat"))
    app.selectbox(key="model").set_value("reverse").run()
    assert app.session_state["target"] == "" and "your own words" not in told(clean(app)), (
        "another model never reads them"
    )
    app = clean(opened(model="translator", target="la rue " * 300))
    assert "The field keeps them." in told(app)


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
def test_a_model_that_says_no_words(flow: str) -> None:
    app = clean(opened(model="minilm", text="Apples fall.", flow=flow))
    stream = library.record(read_once("minilm"), "Apples fall.").streams[0]
    if flow in ("Writes", "LayerNorm", "Heads"):
        columns = [column[2] for column in sent(app, "chart")[0]["columns"]]
        assert (
            len(columns) == {"Writes": 13, "LayerNorm": 13, "Heads": 72}[flow]
            and tuple(sent(app, "chart")[0]["tokens"]) == stream.tokens
        )
    assert ("minilm has no readout" in told(app)) == (flow == "Gradient")
    if flow == "Gradient":
        assert len(app.get("plotly_chart")) == 2 and "I + ∂f runs from" in told(app)


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient", "RNN"])
@pytest.mark.parametrize("model", ["induction-no-norm", "induction-no-residual"])
def test_models_trained_without_a_part(model: str, flow: str) -> None:
    said = told(clean(opened(model=model, text="b a c d b a", flow=flow)))
    assert ("norm** has no LayerNorm" in said) == (
        model == "induction-no-norm" and flow == "LayerNorm"
    )
    assert ("trained without residual connections" in said) == (model == "induction-no-residual")
    if flow == "Writes":
        assert ("Nothing is lost" in said) == (model == "induction-no-norm") and (
            "What was there is lost" in said
        ) == (model == "induction-no-residual")


@pytest.mark.slow
@pytest.mark.parametrize("flow", ["Writes", "LayerNorm", "Heads", "Gradient"])
def test_a_model_with_layernorm_in_front(flow: str, gpt2_on_pages: Handle) -> None:
    app = clean(
        opened(
            model="grammar", text=TEXT, flow=flow, block="final" if flow == "LayerNorm" else "1.ffn"
        )
    )
    if flow != "Gradient":
        assert (
            tuple(sent(app, "chart")[0]["tokens"]) == record(gpt2_on_pages, TEXT).streams[0].tokens
        )
    wanted = {
        "Writes": "Norm, then add.",
        "LayerNorm": "in one LayerNorm, the last",
        "Heads": "A head’s own write",
        "Gradient": "four times",
    }
    assert wanted[flow] in told(app)


# ---- a journey ---------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


@browser_test
def test_a_reader_follows_a_token_by_mouse_and_keys_and_stops_a_training(
    visitor: driver.Visitor,
) -> None:
    page = visitor.page
    page.goto(f"{visitor.server}/residual?{urlencode({'text': LONGER})}")
    page.wait_for_selector(".residual[data-followed]")
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    recording = library.record(read_once("encoder"), LONGER)
    turned = numbers.writes(recording.streams[0], "Turned").values
    page.locator(".row").nth(3).click()
    page.wait_for_url("**token=3**")
    page.get_by_role("heading", name="The whole way of “sat” (token 3)").wait_for()
    page.wait_for_selector("[data-test-script-state=notRunning]")
    row = page.locator(".row").nth(3)
    row.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    said = page.locator(".residual .value").first.inner_text()
    assert f"{turned[4, 1]:.1f}°" in said and "(token 4)" in said, said
    page.keyboard.press("Enter")
    page.wait_for_url("**token=4**")
    page.get_by_role("radio", name="Norm", exact=True).click()
    page.wait_for_url("**write=Norm**")
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.row[aria-pressed=true]')?.textContent === 'on')"
    )
    page.get_by_role("radio", name="Beside an RNN").click()
    page.get_by_role("button", name="Start training").click()
    page.locator("[data-testid=stProgress]").first.wait_for(timeout=60_000)
    # Streamlit's own header has a Stop of its own while a run is long.
    page.locator(".st-key-stop-experiment button").click()
    page.get_by_role("button", name="Go on").wait_for(timeout=60_000)
    page.locator("[data-testid=stProgress]", has_text="stopped").wait_for(timeout=60_000)
    assert page.locator("td").filter(has_text="%").count() == 3, "how much each network says right"
    assert parse_qs(urlparse(page.url).query)["flow"] == ["RNN"]
