"""Switches: the laws of what is measured, every switch as a deed, links good and bad, patching, and
two journeys."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlparse

import driver
import numpy as np
import pytest
from bounds import PASSED, STORED, SUMMED
from conftest import HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest

from explorer.analysis import fair, patching, paths
from explorer.analysis import switches as numbers
from explorer.components import switches as pictures
from explorer.components import wire
from explorer.components.picture import Picture
from explorer.figures import switches as figures
from explorer.frame import opening
from models import library
from models.edits import (
    HideToken,
    MeanHead,
    MoveNorm,
    OtherPositions,
    PatchHead,
    PatchSite,
    ScaledBy,
    ShiftPositions,
    ShufflePositions,
    UniformHead,
    WithMask,
    WithoutFeedForward,
    WithoutMask,
    WithoutNorm,
    WithoutPositions,
    WithoutResidual,
    WithoutScale,
    ZeroHead,
)
from models.own import Handle, record
from models.prediction import softmax
from models.written_edits import from_line, to_line

TEXT = "the cat sat on the mat"
ROOT = Path(__file__).resolve().parent.parent
BOTH = ("before.exact", "after.exact")


@pytest.fixture(params=["small_handle", "small_decoder", "small_translator"])
def handle(request) -> Handle:
    return request.getfixturevalue(request.param)


def runs(handle: Handle, *edits):
    """A text's run as it is and under edits, with the same target for a model of two texts."""
    target = "le chat" if handle.card.kind == "encoder-decoder" else None
    return record(handle, TEXT, (), target), record(handle, TEXT, edits, target)


def random_rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).dirichlet(np.full(shape[-1], 0.3), shape[:-1])


# ---- laws --------------------------------------------------------------------


def test_the_distance_of_rows_is_a_metric_between_0_and_1() -> None:
    p, q, r = random_rows(3, 200, 7)
    pq, qr, pr = numbers.distances(p, q), numbers.distances(q, r), numbers.distances(p, r)
    np.testing.assert_allclose(pq, numbers.distances(q, p))
    assert (numbers.distances(p, p) == 0).all() and (pq >= 0).all() and (pq <= 1).all()
    assert (pr <= pq + qr + 1e-12).all(), "the triangle inequality"
    assert numbers.distances(np.array([1.0, 0, 0]), np.array([0.0, 0.5, 0.5])) == pytest.approx(
        1
    ), "rows that share no key"
    # By hand: m = (3/4, 1/4), JSD = H(m) - (H(p) + H(q)) / 2 in bits.
    entropy = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert numbers.distances(np.array([1.0, 0.0]), np.array([0.5, 0.5])) == pytest.approx(
        np.sqrt(entropy - 0.5)
    )


def test_entropies_are_0_for_one_key_and_the_logarithm_for_an_even_row() -> None:
    assert numbers.entropies(np.eye(3)) == pytest.approx([0, 0, 0])
    assert numbers.entropies(np.full((1, 8), 1 / 8)) == pytest.approx([np.log(8)])


def test_without_edits_nothing_differs(handle: Handle) -> None:
    plain, same = runs(handle)
    for before, after in zip(plain.attention, same.attention):
        assert (np.nan_to_num(numbers.changed(before, after)) == 0).all() and numbers.most_changed(
            numbers.changed(before, after)
        ) == ()
    for one, other in zip(plain.streams, same.streams):
        of = paths.paths(one, other)
        assert (
            (of.distance == 0).all()
            and (of.before == of.after).all()
            and of.cosine == pytest.approx(1)
        )
    logits = np.random.default_rng(1).normal(size=50)
    said = numbers.answer(logits, logits)
    assert said.kl == 0 and said.said == said.says
    assert numbers.told(numbers.moves(plain, same, said, ("a", "a"))) == ()


def test_only_the_head_that_was_made_even_changes_in_its_layer(handle: Handle) -> None:
    plain, _ = runs(handle)
    name = plain.attention[-1].name
    plain, other = runs(handle, UniformHead(1, 2, name))
    distance = numbers.changed(plain.attention[-1], other.attention[-1])
    assert (
        (distance[0] == 0).all() and (np.delete(distance[1], 2) == 0).all() and distance[1, 2] > 0.1
    )
    assert numbers.most_changed(distance, 1)[0][0] >= 1


def test_the_sentence_says_the_entropy_that_was_measured_by_hand() -> None:
    handle = read_once("encoder")
    plain, other = library.record(handle, TEXT), library.record(handle, TEXT, (WithoutScale(),))
    found = {each.name: each for each in numbers.moves(plain, other)}
    for layer in range(4):
        for run, value in ((plain, "before"), (other, "after")):
            p = run.attention[0].pattern[layer].astype(np.float64)
            assert getattr(found[f"row entropy, layer {layer}, nats"], value) == pytest.approx(
                -(p * np.log(p.clip(1e-300))).sum(-1).mean(), abs=SUMMED
            )
            assert getattr(found[f"largest weight, layer {layer}"], value) == pytest.approx(
                p.max(-1).mean(), abs=SUMMED
            )
    sentence = numbers.told(numbers.moves(plain, other))[0]
    first = numbers.moves(plain, other)[0]
    assert sentence == first.says and first.moved == max(each.moved for each in found.values())


def test_the_sentence_is_about_what_moved_furthest() -> None:
    """Constructed runs: one row that was even becomes a single key; nothing else moves."""
    recording = library.record(read_once("encoder"), "I love to eat pizza")
    old = recording.attention[0]
    shape = old.pattern.shape
    even, sharp = np.full(shape, 1 / shape[-1]), np.full(shape, 1 / shape[-1])
    sharp[2] = np.eye(shape[-1])
    before = replace(recording, attention=(replace(old, pattern=even.astype(np.float32)),))
    after = replace(recording, attention=(replace(old, pattern=sharp.astype(np.float32)),))
    (sentence,) = numbers.told(numbers.moves(before, after))
    n = shape[-1]
    assert sentence == (
        f"row entropy in layer 2 fell from {np.log(n):.2f} to 0.00 nats; the largest weight "
        "takes 1.00 on average"
    )
    stream = recording.streams[0]
    grown = stream.resid.copy()
    grown[-1] *= 1000
    longer = replace(recording, streams=(replace(stream, resid=grown),))
    (sentence,) = numbers.told(numbers.moves(recording, longer))
    was = paths.growth(stream)
    assert sentence == (
        f"vectors at the end were {numbers.length(was)} times as long as at the start, and "
        f"now are {numbers.length(1000 * was)} times"
    )
    sure, unsure = np.array([9.0, 0, 0, 0]), np.array([0.0, 0, 0, 9.0])
    said = numbers.answer(sure, unsure)
    (sentence,) = numbers.told(numbers.moves(recording, recording, said, ("cat", "dog")))
    p = softmax(sure)
    assert (
        f"the probability of “cat” fell from {p[0]:.2f} to {p[3]:.2g}, and “dog” now comes "
        f"first with {p[0]:.2f}"
    ) in sentence


def test_kl_is_what_the_definition_says_and_finite_where_a_probability_cannot_be_written() -> None:
    one, other = np.random.default_rng(2).normal(size=(2, 30))
    p, q = softmax(one), softmax(other)
    assert numbers.answer(one, other).kl == pytest.approx((p * np.log(p / q)).sum())
    # The entropy of the first, less than one nat of 3,655.
    assert numbers.answer(np.array([0.0, 1.0]), np.array([5000.0, 0.0])).kl == pytest.approx(
        softmax(np.array([0.0, 1.0]))[1] * 5000, rel=1e-2
    )


def test_paths_line_up_whatever_is_switched(handle: Handle) -> None:
    for edits in (
        (WithoutPositions(),),
        (WithoutNorm(),),
        (MoveNorm("pre"),),
        (WithoutResidual(),),
    ):
        plain, other = runs(handle, *edits)
        for one, two in zip(plain.streams, other.streams):
            of = paths.paths(one, two)
            layers = [
                f"{layer}.{place}"
                for layer in range(3)
                for place in (
                    ("attn", "cross", "ffn")
                    if any(".cross." in site for site in one.sites)
                    else ("attn", "ffn")
                )
            ]
            assert [
                place for place in of.places if place not in ("embed", "input", "final")
            ] == layers
            last = list(paths.states(two).values())[-1]
            np.testing.assert_allclose(
                of.after[-1]
                if "final" not in paths.states(two)
                else np.linalg.norm(two.resid[-1], axis=-1),
                np.linalg.norm(two.at(last), axis=-1),
                rtol=SUMMED,
            )
            np.testing.assert_allclose(
                of.distance**2,
                of.before**2 + of.after**2 - 2 * of.before * of.after * of.cosine,
                rtol=STORED,
                atol=STORED,
            )


def test_the_two_words_of_a_contrast() -> None:
    assert patching.contrast(np.array([3.0, 1, 0]), np.array([0.0, 1, 5])) == (0, 2)
    assert patching.contrast(np.array([5.0, 1, 2]), np.array([5.0, 3, 2])) == (0, 1), (
        "both say 0; 1 is what the donor raises"
    )


def test_effects_are_0_for_the_run_itself_and_1_for_the_donor_s() -> None:
    assert (
        patching.effect(2.0, 2.0, -1.0) == 0
        and patching.effect(-1.0, 2.0, -1.0) == 1
        and np.isnan(patching.effect(2.0, 2.0, 2.001))
    )
    of = patching.effects_by_head([((0, 1), -1.0), ((1, 0), 2.0)], (2, 2), 2.0, -1.0)
    np.testing.assert_array_equal(of.values, [[np.nan, 1], [0, np.nan]])
    assert patching.strongest(of) == (0, 1) and of.normalised
    flat = patching.effects_by_site(
        [(("embed", 0), 1.0), (("0.attn.normed", 1), 0.5)],
        ("a", "b"),
        ("embed", "0.attn.normed"),
        0.0,
        0.0,
    )
    assert (
        not flat.normalised
        and flat.values[0, 0] == 1
        and flat.values[1, 1] == 0.5
        and patching.strongest(flat, read=0) == (1, 1)
    )


def test_models_trained_without_a_part_stand_beside_the_full_one() -> None:
    curve = [[1, 2.0], [2, 1.0]]
    cards = {
        "reverse": {"curve": curve, "scores": {"right": 1.0}},
        "reverse-no-scale": {"without": "scale", "curve": curve},
        "stray-no-x": {"without": "x"},
        "other": {},
    }
    (of,) = fair.trained_without(cards)
    assert (of.name, of.full, of.without) == (
        "reverse-no-scale",
        "reverse",
        "scale",
    ) and of.curve.shape == (2, 2)
    assert fair.result_columns((of,))["trained without"] == ["nothing", "scale"]
    assert fair.trained_without({"reverse": {}}) == ()
    figure = figures.curves(
        [("full", of.curve), ("less <b>", np.array([[1.0, 3.0], [5.0, 2.0]]))], ("t <i>",)
    )
    assert (
        list(figure.data[0].x) == [1, 2, 5]
        and np.isnan(figure.data[0].y[2])
        and figure.data[1].name == "less &lt;b&gt;"
    )


# ---- pictures ----------------------------------------------------------------


def test_the_pictures_carry_the_numbers_and_a_board_refuses_an_unknown_state() -> None:
    before, after = random_rows(2, 3, 5, 5), np.roll(random_rows(2, 3, 5, 5), 1, axis=-1)
    header, blocks = wire.decode(
        pictures.trio(
            (before[0, 0], after[0, 0]),
            (np.ones((5, 5), bool), np.tril(np.ones((5, 5), bool))),
            (0, 0),
            ("abcde", "abcde"),
            Picture("t", (), "f", "x"),
        )
    )
    np.testing.assert_allclose(blocks["before.exact"].reshape(5, 5), before[0, 0], rtol=STORED)
    np.testing.assert_allclose(blocks["after.exact"].reshape(5, 5), after[0, 0], rtol=STORED)
    assert (
        "before.runs" not in blocks and "after.runs" in blocks and header["rows"] == list("abcde")
    )
    header, _ = wire.decode(
        pictures.pairs(
            before,
            after,
            np.array([[0.5, np.nan, 0], [1, 0, 0]]),
            token="x",
        )
    )
    assert header["distance"] == [0.5, None, 0, 1, 0, 0]
    header, _ = wire.decode(pictures.board((2, 3), {(1, 2): "zero"}, brush="silent", token="x"))
    assert header["states"] == ["", "", "", "", "", "zero"]
    with pytest.raises(ValueError, match="upside down"):
        pictures.board((1, 1), {(0, 0): "upside down"}, brush="silent", token="x")


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "explorer" / "main.py"), default_timeout=90)
    for name, value in asked.items():
        app.query_params[name] = value
    return app.switch_page(str(ROOT / "pages" / "switches.py")).run()


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def edits_of(app: AppTest) -> tuple:
    return from_line(app.session_state["edits"])


def words(app: AppTest) -> str:
    return " ".join(
        each.value
        for kind in ("subheader", "markdown", "caption", "warning", "info", "error")
        for each in app.get(kind)
        if hasattr(each, "value")
    ).replace("\\", "")


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    decoded = [
        wire.decode(e.proto.bytes)
        for e in on_page(app)
        if e.proto.component_name == "headlight.switches"
    ]
    return next(each for each in decoded if each[0]["kind"] == kind)


@pytest.mark.slow
def test_every_switch_is_a_deed() -> None:
    app = clean(opened(text=TEXT, experiment="off"))
    assert edits_of(app) == () and "as the model was trained" in words(app)

    def deed(widget: str, key: str, value, expected: tuple) -> None:
        clean(getattr(app, widget)(key=key).set_value(value).run())
        assert edits_of(app) == expected, (key, value, edits_of(app))
        app.button[next(at for at, each in enumerate(app.button) if each.label == "Reset")].click()
        clean(app.run())
        assert edits_of(app) == ()

    deed("toggle", "mask on", True, (WithMask(),))
    deed("toggle", "ffn on", False, (WithoutFeedForward(),))
    for value, edit in (
        ("none", WithoutPositions()),
        ("shuffled", ShufflePositions(0)),
        ("shifted", ShiftPositions(1)),
        ("rotary", OtherPositions("rotary")),
    ):
        deed("selectbox", "positions of", value, (edit,))
    deed("button_group", "scale off", "off", (WithoutScale(),))
    deed("button_group", "scale off", "other", (ScaledBy(2.0),))
    deed("button_group", "residuals", ["ffn"], (WithoutResidual(None, "attn"),))
    deed("button_group", "residuals", [], (WithoutResidual(),))
    deed("button_group", "norm at", "none", (WithoutNorm(),))
    deed("button_group", "norm at", "pre", (MoveNorm("pre"),))
    deed("selectbox", "switch preset", "Take away the scale", (WithoutScale(),))


@pytest.mark.slow
def test_one_layer_is_switched_alone_and_all_layers_alike_are_one_edit() -> None:
    app = clean(opened(text=TEXT, model="translator", experiment="off"))
    clean(app.button_group(key="where").set_value("1").run())
    clean(app.button_group(key="scale off").set_value("off").run())
    assert edits_of(app) == (WithoutScale(1),)
    clean(app.button_group(key="where").set_value("0").run())
    clean(app.button_group(key="scale off").set_value("off").run())
    assert edits_of(app) == (WithoutScale(),)
    clean(app.button_group(key="scale off").set_value("own").run())
    assert edits_of(app) == (WithoutScale(1),)
    clean(app.button_group(key="residuals").set_value(["attn", "ffn"]).run())
    assert set(edits_of(app)) == {WithoutScale(1), WithoutResidual(0, "cross")}
    clean(app.button_group(key="switched").set_value([1]).run())
    assert len(edits_of(app)) == 1, "what is pressed is taken back"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_a_link_opens_the_same_run_and_says_its_edits_everywhere(model: str) -> None:
    name = "cross" if model == "translator" else "self"
    edits = (
        ZeroHead(1, 2, name),
        MeanHead(0, 1, name),
        WithoutScale(1),
        ShiftPositions(3),
        PatchHead("<b>a, b: c</b>", 1, 0, name),
    )
    app = clean(opened(text=TEXT, model=model, edits=to_line(edits)))
    assert edits_of(app) == edits
    header, blocks = sent(app, "trio")
    assert all(str(edit) in header["caption"][0] for edit in edits)
    loaded = read_once(model)
    plain = library.record(loaded, TEXT)
    target = (
        tuple(int(each) for each in plain.streams[-1].ids[1:]) if model == "translator" else None
    )
    other = library.record(loaded, TEXT, edits, target)
    at = header["layer"], header["head"]
    shown = app.session_state["attention"] or plain.attention[0].name
    for block, run in (("after.exact", other), ("before.exact", plain)):
        attention = next(each for each in run.attention if each.name == shown)
        pattern = attention.pattern[at]
        np.testing.assert_allclose(blocks[block].reshape(pattern.shape), pattern, atol=STORED)
    assert app.query_params["edits"] in (to_line(edits), [to_line(edits)])


@pytest.mark.slow
def test_the_sentence_on_the_page_is_the_one_of_the_two_runs() -> None:
    edits = (WithoutScale(),)
    app = clean(opened(text=TEXT, edits=to_line(edits), token="2", seen="yes"))
    loaded = read_once("encoder")
    one, other = library.record(loaded, TEXT), library.record(loaded, TEXT, edits)
    said = numbers.answer(
        library.logits(loaded, one, "encoder", 2), library.logits(loaded, other, "encoder", 2)
    )
    told = numbers.told(
        numbers.moves(one, other, said, tuple(library.labels(loaded, (said.said, said.says))))
    )
    assert all(each[1:] in words(app) for each in told)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder", "translator"])
def test_the_page_opens_on_an_experiment_and_leads_back_to_no_edit(model: str) -> None:
    text = "The animal didn't cross the street because it was too tired."
    app = clean(opened(text=text, model=model))
    assert edits_of(app) == () and "edits" not in app.query_params, "it is not the reader's choice"
    header, blocks = sent(app, "trio")
    loaded = read_once(model)
    plain = library.record(loaded, text)
    shown = app.session_state["attention"] or plain.attention[0].name
    before = next(one for one in plain.attention if one.name == shown)
    at = header["layer"], header["head"]
    matrices = [blocks[name].reshape(before.pattern[at].shape) for name in BOTH]
    np.testing.assert_allclose(matrices[0], before.pattern[at], atol=STORED)
    assert np.abs(matrices[0] - matrices[1]).max() > 0.1, "there is something to see"
    link = next(one for one in opening.found(plain) if one.kind == "link" or one.kind == "aligned")
    told = words(app)
    assert f"*{link.words[0]}*" in told and f"*{link.words[1]}*" in told
    clean(app.button(key="no edit").click().run())
    assert "as the model was trained" in words(app)
    matrices = [sent(app, "trio")[1][name] for name in BOTH]
    assert np.array_equal(*matrices), "nothing is switched"
    clean(app.selectbox(key="switch preset").set_value("Take away the scale").run())
    assert edits_of(app) == (WithoutScale(),)


@pytest.mark.slow
def test_the_word_is_hidden_from_both_runs_of_a_model_that_fills_gaps() -> None:
    app = clean(opened(text=TEXT, token="2", edits="WithoutPositions"))
    loaded = read_once("encoder")
    one, other = (
        library.record(loaded, TEXT, (HideToken(2), *edits))
        for edits in ((), (WithoutPositions(),))
    )
    said = numbers.answer(
        library.logits(loaded, one, "encoder", 2), library.logits(loaded, other, "encoder", 2)
    )
    (header,) = [
        wire.decode(e.proto.bytes)[0]
        for e in on_page(app)
        if e.proto.component_name == "headlight.bars"
    ][:1]
    by_word = {row["label"]: (row["behind"], row["value"]) for row in header["rows"]}
    for word, label in zip(said.top(8), library.labels(loaded, said.top(8))):
        assert by_word[label] == pytest.approx((said.before[word], said.after[word]), abs=STORED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ZeroHead:9:0:self,WithoutScale:", "layers 0 to 3"),
        ("<b>,WithoutScale:", "“<b>” is no edit"),
        ("WithoutMask,WithoutScale:", "no causal mask to take away"),
        ("ScaledBy:nan:,WithoutScale:", "above 0"),
        ("HideToken:1,WithoutScale:", "same tokens"),
        ("ZeroHead:0:0:<i>,WithoutScale:", "<i>"),
        ("PatchSite:a:nowhere,WithoutScale:", "no such site"),
        ("ShiftPositions:99999,WithoutScale:", "positions"),
        ("ScaledBy:1e-42:,WithoutScale:", "between 3e-39 and"),
    ],
)
def test_a_bad_link_is_named_and_its_good_part_kept(line: str, said: str) -> None:
    app = clean(opened(text=TEXT, edits=line))
    (warning,) = app.warning
    assert said in warning.value.replace("\\", "") and "left out" in warning.value
    assert "scores without the scale in every layer" in sent(app, "trio")[0]["caption"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "preset"),
    [
        ("residual", "No residual"),
        ("positions", "Bag of words: no positions"),
        ("scale", "Take away the scale"),
        ("norm", "No LayerNorm"),
    ],
)
def test_a_part_that_the_model_never_had_is_not_offered_to_be_taken_away(
    part: str, preset: str
) -> None:
    with_, without = opened(model="induction"), opened(model=f"induction-no-{part}")
    assert set(with_.selectbox(key="switch preset").options) - set(
        without.selectbox(key="switch preset").options
    ) >= {preset}
    shows = {each.key for kind in ("pills", "segmented_control") for each in without.get(kind)}
    assert ("residuals" in shows) is (part != "residual") and ("norm at" in shows) is (
        part != "norm"
    )
    assert ("none" in without.selectbox(key="positions of").options[0]) is (part == "positions")


@pytest.mark.slow
def test_numbers_that_overflow_are_said_with_their_place() -> None:
    app = opened(text=TEXT, edits="ScaledBy:1e-38:")
    assert not app.exception
    (error,) = app.error
    assert "the scores of layer 0’s attention" in error.value


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_any_text_gives_a_picture_or_a_sentence(name: str) -> None:
    app = clean(opened(text=HOSTILE[name], edits=to_line((WithoutPositions(), ZeroHead(0, 0)))))
    sent(app, "pairs")
    for effects in ("Vectors", "Patching"):
        app.session_state["effects"] = effects
        app.session_state["donor"] = HOSTILE[name] or "a b"
        clean(app.run())
    assert app.session_state["text"] == HOSTILE[name]


@pytest.mark.slow
def test_hostile_choices_do_no_harm() -> None:
    clean(
        opened(
            text=TEXT,
            effects="<b>",
            brush="?",
            only="99",
            layer="x",
            head="-1",
            token="1e9",
            attention="<i>",
            patch="%",
            fair="<u>",
            seen="<b>",
            experiment="<b>",
            stream="no",
        )
    )
    clean(opened(text=TEXT, model="translator", effects="Vectors", stream="<b>", edits="x" * 5000))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["decoder", "translator", "induction"])
def test_other_models_follow_their_own_switches(model: str) -> None:
    app = clean(opened(text=TEXT, model=model))
    for edits in ((WithoutMask(),), (WithoutResidual(0, "attn"),), (MoveNorm("pre"),)):
        app.session_state["edits"] = to_line(edits)
        clean(app.run())
        assert str(edits[0]) in sent(app, "trio")[0]["caption"][0]


@pytest.mark.slow
def test_a_sweep_measures_what_a_patched_run_says() -> None:
    from explorer.memory import background, models, passes

    loaded = models.handle("decoder")
    text, donor = "She ate the apple", "She drove the apple"
    base, other = passes.record("decoder", text), passes.record("decoder", donor)
    word, against = patching.contrast(
        passes.logits(base, "decoder", 4), passes.logits(other, "decoder", 4)
    )
    sweep = background.sweep(base, "Sites", donor, "decoder", 4, word, against)
    sweep.go_on()
    sweep._thread.join(60)
    assert sweep.finished and len(sweep.latest.effects) == sweep.latest.places
    of = patching.effects_by_site(
        sweep.latest.effects,
        base.streams[0].tokens,
        tuple(paths.states(base.streams[0]).values()),
        sweep.latest.clean,
        sweep.latest.donor,
    )
    place = (2, 3)
    patched = library.record(loaded, text, (PatchSite(donor, of.columns[3].name, 2, "decoder"),))
    z, c, d = (library.logits(loaded, run, "decoder", 4) for run in (patched, base, other))
    by_hand = patching.effect(
        float(z[word] - z[against]), float(c[word] - c[against]), float(d[word] - d[against])
    )
    assert of.values[place] == pytest.approx(by_hand, abs=PASSED)
    assert np.nanmax(np.abs(of.values[:2])) < PASSED, (
        "what is the same in both texts before the changed word does nothing"
    )
    assert of.values[4, -1] == pytest.approx(1, abs=PASSED), (
        "the whole answer stands in the last state of the token that is read"
    )


@pytest.mark.slow
def test_models_trained_without_a_part_are_opened_with_nothing_switched() -> None:
    app = clean(opened(model="reverse", effects="Trained without", edits="WithoutScale:"))
    button = next((each for each in app.button if each.key == "open reverse-no-positions"), None)
    if button is None:
        assert "No model here was trained without a part" in words(app)
        return
    clean(button.click().run())
    assert app.session_state["model"] == "reverse-no-positions" and edits_of(app) == ()
    clean(next(each for each in app.button if each.key == "open reverse positions").click().run())
    assert app.session_state["model"] == "reverse" and edits_of(app) == (WithoutPositions(),)


# ---- journeys ----------------------------------------------------------------


def browser_test(test):
    for mark in driver.MARKS:
        test = mark(test)
    return test


def start(visitor: driver.Visitor, **asked: str):
    page = visitor.page
    page.goto(f"{visitor.server}/switches?{urlencode(asked)}")
    page.wait_for_selector(".board")
    # Streamlit first looks for its own addresses below a page's path and finds none there.
    visitor.errors[:] = [error for error in visitor.errors if "404" not in error]
    return page


def asked_of(page) -> dict[str, list[str]]:
    return parse_qs(urlparse(page.url).query)


@browser_test
def test_heads_are_switched_by_mouse_and_keys_and_the_matrices_are_read(
    visitor: driver.Visitor,
) -> None:
    page = start(visitor, text=TEXT, experiment="off")
    page.get_by_role("button", name="Layer 1, head 2: as it is").click()
    page.wait_for_url("**edits=ZeroHead**")
    page.get_by_role("button", name="Layer 1, head 2: writes nothing").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Layer 1, head 3: writes nothing").wait_for()
    page.wait_for_url(lambda url: "2-3" in url)
    assert from_line(asked_of(page)["edits"][0]) == (ZeroHead(1, 2), ZeroHead(1, 3))
    page.get_by_role("button", name="Layer 2, head 0: moved").click()
    page.wait_for_url("**layer=2**")
    loaded = read_once("encoder")
    one, other = (
        library.record(loaded, TEXT, edits).attention[0].pattern[2, 0]
        for edits in ((), (ZeroHead(1, 2), ZeroHead(1, 3)))
    )
    visitor.until(
        "() => [...document.querySelectorAll('*')].some(e => "
        "e.shadowRoot?.querySelector('.trio .plane[aria-label*=\"Layer 2, head 0\"]'))"
    )
    page.locator(".trio .plane").nth(2).focus()
    page.keyboard.press("ArrowDown")  # comes to the first cell
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    said = page.locator(".switches .status").filter(has_text="difference").inner_text()
    at = (1, 1)
    assert f"{one[at]:.4f} before, {other[at]:.4f} after" in said, said
    page.get_by_role("button", name="All heads of layer 0").click()
    page.get_by_role("button", name="Layer 0, head 7: writes nothing").wait_for()
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("button", name="Layer 0, head 7: as it is").wait_for()
    page.wait_for_url(lambda url: "edits" not in url)


@browser_test
def test_a_sweep_is_run_and_its_strongest_patch_put_in(visitor: driver.Visitor) -> None:
    page = start(
        visitor,
        text="She ate the apple",
        model="decoder",
        effects="Patching",
        patch="Sites",
        donor="She drove the apple",
    )
    page.get_by_role("button", name="Patch them all").click()
    page.get_by_text("All patched").wait_for(timeout=60_000)
    page.get_by_role("button", name="Make it a switch").click()
    page.wait_for_url("**edits=PatchSite**")
    (edit,) = from_line(asked_of(page)["edits"][0])
    assert edit.text == "She drove the apple" and edit.token == 2, "the word that was changed"
    page.get_by_text("as in “She drove the apple”").first.wait_for()
