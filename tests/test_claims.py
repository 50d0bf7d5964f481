"""Claims: each test of a claim says yes where it must and no where it must, and its numbers are
those of another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from claim_fixtures import (
    D,
    E,
    T,
    adding,
    adding_nothing,
    aligned,
    attending,
    deeply,
    drawing,
    even,
    feeling,
    flowing,
    hearing,
    independent,
    mirrored,
    one_direction,
    other_keys,
    overdrawn,
    ranked,
    real,
    same_heads,
    saying,
    standing_still,
    stretched_words,
    to_normed,
    tossed,
    unit_states,
    unit_words,
    value,
    words_of,
)
from tolerances import PASSED, SUMMED, TOTAL

from explorer.analysis import claims as claims_analysis
from explorer.analysis import measure, verdicts
from explorer.analysis.gradients import N_NETWORKS
from explorer.analysis.measure import Measure, MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS, UNTESTABLE, Claim
from explorer.text import claims
from models import registry
from models.recording import Attention, Recording


def unscaled(a: Attention) -> dict:
    """As in T5: nothing is divided, and each head adds something for the distance between two
    tokens."""
    distance = np.arange(a.scores.shape[-1]) - np.arange(a.scores.shape[-2])[:, None]
    added = 30 * np.sin(distance / (1 + np.arange(a.scores.shape[1]))[:, None, None])
    return {"scores": (a.q @ a.k.swapaxes(-1, -2) + added).astype(np.float32)}


def still(recording: Recording, by: float) -> Recording:
    return replace(
        recording,
        streams=tuple(replace(s, resid=s.resid + np.float32(by)) for s in recording.streams),
    )


# For each claim: evidence on which it must hold, and evidence on which it must not.
CASES: dict[str, tuple[Callable[[], MeasureContext], Callable[[], MeasureContext]]] = {
    "convex": (E, lambda: attending(E(), overdrawn)),
    "variance-grows": (
        E,
        lambda: drawing(lambda n, d: np.repeat(measure.gaussian(n, 1), d, axis=1)),
    ),
    "variance-here": (lambda: attending(E(), aligned), lambda: attending(E(), independent)),
    "mask-is-zero": (D, lambda: attending(D(), even)),
    "future-blind": (D, lambda: real("decoder", "WithoutMask")),
    "start": (E, lambda: replace(E(), embeddings=lambda: 2 * E().embeddings())),
    "balance": (E, lambda: flowing(E(), lambda _, site, x: x / 16 if site == "embed" else x)),
    "product-is-distance": (
        E,
        lambda: adding(E(), lambda x: np.random.default_rng(0).standard_normal(x.shape)),
    ),
    "left-is-right": (
        E,
        lambda: adding(E(), lambda x: np.random.default_rng(0).standard_normal(x.shape)),
    ),
    "low-is-fast": (E, lambda: adding(E(), lambda x: x[:, ::-1])),
    "shift-is-rotation": (
        E,
        lambda: adding(E(), lambda x: np.random.default_rng(0).standard_normal(x.shape)),
    ),
    "heads-differ": (E, lambda: attending(E(), same_heads)),
    "near-and-far": (E, lambda: attending(E(), even)),
    "identity-plus": (
        D,
        lambda: replace(D(), jacobian=lambda *where: replace(D().jacobian(*where), error=0.5)),
    ),
    "gradient-with": (E, lambda: deeply(E(), 1e-3, 1e-3)),
    "gradient-without": (E, lambda: deeply(E(), 1.0, 0.5)),
    "norm-tames": (E, lambda: replace(E(), again=lambda *_: E().recording)),
    "summed-axis": (E, lambda: attending(E(), even)),
    "naive-itself": (E, lambda: flowing(E(), one_direction)),
    "asymmetric": (E, lambda: attending(E(), mirrored)),
    "messages": (E, lambda: replace(E(), again=lambda *_: E().recording)),
    "alone": (E, lambda: replace(E(), again=lambda *_: still(E().recording, 0.5))),
    "adds": (E, lambda: real("encoder", "WithoutResidual")),
    "order-matters": (E, lambda: adding_nothing(real("encoder", "WithoutPositions"))),
    "offset-by-one": (D, lambda: saying(D(), 0)),
    "soft-lookup": (E, lambda: attending(E(), lambda a: {"scores": np.zeros_like(a.scores)})),
    "concatenate": (
        E,
        lambda: replace(
            E(), outputs=lambda: {name: (2 * w, b) for name, (w, b) in E().outputs().items()}
        ),
    ),
    "unit-length": (lambda: unit_states(E()), E),
    "sphere": (E, lambda: flowing(E(), to_normed(lambda x: 1.5 * x))),
    "only-rotations": (lambda: flowing(E(), standing_still), E),
    "little-work": (lambda: flowing(E(), standing_still), lambda: flowing(E(), tossed)),
    "vocabulary-sphere": (
        lambda: unit_words(E()),
        lambda: replace(
            E(),
            embeddings=lambda: (
                E().embeddings() * np.linspace(0.5, 2, E().recording.model.n_vocab)[:, None]
            ),
        ),
    ),
    "near-its-words": (D, lambda: replace(D(), embeddings=lambda: -D().embeddings())),
    "distance-tells": (lambda: unit_words(D()), lambda: words_of(D(), stretched_words(D()))),
    "readable-blocks": (
        lambda: ranked(D(), 0),
        lambda: ranked(D(), D().recording.model.n_vocab // 2),
    ),
    "recurrence-fades": (
        E,
        lambda: drawing(
            lambda n, d: 8 * np.tile(np.eye(64), (n // 64, 1)) if d == 64 else np.zeros((n, d))
        ),
    ),
    "far-words-count": (
        lambda: feeling(D(), lambda _, distance: 1.0),
        lambda: feeling(D(), lambda _, distance: 0.5**distance),
    ),
    "order-blind": (
        E,
        lambda: replace(
            E(), again=lambda edits, *more: E().again(edits.replace("WithoutPositions,", ""), *more)
        ),
    ),
    "blind-decoder": (lambda: real("decoder", "WithoutMask"), D),
    "even-is-sine": (
        E,
        lambda: adding(E(), lambda x: x.reshape(len(x), -1, 2)[..., ::-1].reshape(x.shape)),
    ),
    "rows-sum": (
        E,
        lambda: attending(E(), lambda a: {"pattern": a.pattern * np.float32(1 + 6e-5)}),
    ),
    "looks-at-itself": (
        lambda: attending(
            E(),
            lambda a: {
                "pattern": np.broadcast_to(
                    np.eye(a.pattern.shape[-1], dtype=np.float32), a.pattern.shape
                ).copy()
            },
        ),
        E,
    ),
    "context-moves": (E, lambda: replace(E(), again=lambda *_: E().recording)),
    "steps-agree": (
        D,
        lambda: replace(D(), stepwise=lambda rows: [scores + 1 for scores in D().stepwise(rows)]),
    ),
    "reshape": (
        lambda: attending(E(), unscaled),
        lambda: attending(E(), lambda a: {"q": a.q[:, ::-1]}),
    ),
    "head-scale": (E, lambda: real("encoder", "WithoutScale")),
    "scale-keeps-soft": (E, lambda: attending(E(), lambda a: {"q": a.q / 1000})),
    "zero-and-one": (E, lambda: flowing(E(), to_normed(lambda x: x + 1))),
    "both-sides": (E, lambda: real("encoder", "WithMask")),
    "cross-from-encoder": (T, lambda: hearing(T(), other_keys)),
}


def test_every_claim_has_a_case_where_it_holds_and_one_where_it_fails() -> None:
    assert set(CASES) == set(claims.BY_ID) and len(claims.BY_ID) == len(claims.CLAIMS) >= 24
    measures = {
        name.replace("_", "-")
        for name, each in vars(claims_analysis).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == claims_analysis.__name__
    }
    assert measures == set(claims.BY_ID), "no measure without its claim"


def test_a_slot_is_written_by_its_kind_and_is_a_word_or_a_number() -> None:
    slots = {"n": 1234, "x": 2.5e-5, "share": 0.125, "word": "{n}"}
    found = Measure(0.5, "½", slots).fill("{n} {n:d} {x} {share:%} {share:+} {value:.2f} {word}")
    assert found == "1,234 1234 2.50 × 10⁻⁵ 12% +0.12 0.50 {n}"
    with pytest.raises(KeyError):
        Measure(0.5).fill("{n}")
    with pytest.raises(TypeError, match="n is a ndarray"):
        Measure(0.5, slots={"n": np.zeros(2)})


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_holds_where_it_must(claim: Claim) -> None:
    finding = verdicts.evaluate_claim(claim, CASES[claim.id][0]())
    assert finding.verdict == HOLDS, finding


@pytest.mark.parametrize("claim", claims.CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_fails_where_it_must(claim: Claim) -> None:
    finding = verdicts.evaluate_claim(claim, CASES[claim.id][1]())
    assert finding.verdict == FAILS and finding.why, finding


def test_the_numbers_of_a_few_claims_by_hand() -> None:
    e = real("decoder")
    stream, attention = e.recording.streams[0], e.recording.attention[0]
    n = len(stream.tokens)
    own = [
        attention.pattern[layer, head, row].argmax() == row
        for layer in range(attention.pattern.shape[0])
        for head in range(attention.pattern.shape[1])
        for row in range(1, n)
    ]
    assert value("looks-at-itself", e) == pytest.approx(np.mean(own))
    lengths = [
        np.linalg.norm(vector)
        for site in stream.sites
        if site.endswith(".normed")
        for vector in stream.at(site)
    ]
    assert value("unit-length", e) == pytest.approx(np.mean(lengths), rel=SUMMED)
    ahead = [
        e.logits("decoder", at)[stream.ids[at + 1]] - e.logits("decoder", at)[stream.ids[at]]
        for at in range(n - 1)
    ]
    assert value("offset-by-one", e) == pytest.approx(np.mean(ahead), rel=SUMMED)
    scores = real("encoder").recording.attention[0].scores.astype(float)
    asymmetry = [
        np.sqrt(((each - each.T) ** 2).sum() / (4 * (each**2).sum()))
        for layer in scores
        for each in layer
    ]
    assert value("asymmetric", real("encoder")) == pytest.approx(np.median(asymmetry))


def test_a_recurrent_gradient_agrees_with_small_steps() -> None:
    e = real("encoder")
    x = e.recording.streams[0].at("embed").astype(float)
    x, n = x / x.std(axis=1, keepdims=True), N_NETWORKS
    weights = measure.gaussian(n * 64, 64).reshape(n, 64, 64) / 8
    inward = measure.gaussian(n * 64, x.shape[1]).reshape(n, 64, -1) / np.sqrt(x.shape[1])

    def last(w: np.ndarray, u: np.ndarray, nudge: np.ndarray) -> float:
        h = np.zeros(64)
        for at, each in enumerate(x):
            h = np.tanh(w @ h + u @ each) + (nudge if at == 0 else 0)
        return float(h.sum() / 8)

    step = 1e-5
    lengths = [
        np.linalg.norm(
            [(last(w, u, step * row) - last(w, u, -step * row)) / (2 * step) for row in np.eye(64)]
        )
        for w, u in zip(weights, inward)
    ]
    assert value("recurrence-fades", e) == pytest.approx(
        np.median(lengths) ** (1 / (len(x) - 1)), rel=PASSED
    )


def test_products_are_measured_before_any_scale() -> None:
    e = real("induction-no-scale")
    ratios = []
    for q, k in zip(
        *(
            each.astype(float).reshape(-1, *each.shape[2:])
            for each in (e.recording.attention[0].q, e.recording.attention[0].k)
        )
    ):
        products = [a @ b for a in q for b in k]
        ratios.append(np.var(products) / (q.shape[1] * (q**2).mean() * (k**2).mean()))
    ratio = np.median(ratios)
    assert value("variance-here", e) == pytest.approx(max(ratio, 1 / ratio))
    assert value("variance-here", attending(E(), unscaled)) == pytest.approx(
        value("variance-here", E())
    )


@pytest.mark.parametrize("model", ["decoder", "encoder"])
def test_distances_are_to_the_rows_of_the_readout(model: str) -> None:
    e, handle = real(model), registry.load(model)
    stream, words = e.recording.streams[0], handle.model.embedding.token.weight.detach().numpy()
    assert measure.embedding_factor(e) == pytest.approx(
        np.sqrt(e.recording.model.d_model), rel=TOTAL
    )
    places = measure.subsample(np.flatnonzero(~stream.special), 8)
    found = []
    for place in places:
        nearest_first = np.argsort(((words - stream.resid[-1, place]) ** 2).sum(axis=1)).argsort()
        likeliest_first = np.argsort(-e.logits(model, place)).argsort()
        found.append(np.corrcoef(nearest_first, likeliest_first)[0, 1])
    assert value("distance-tells", e) == pytest.approx(np.mean(found), abs=PASSED)
    transformed = verdicts.evaluate_claim(
        claims.BY_ID["distance-tells"], replace(e, logits=lambda *where: e.logits(*where) ** 3)
    )
    assert transformed.verdict == UNTESTABLE and "not its embedding matrix" in transformed.why


def test_heads_scores_must_be_those_of_their_own_pieces() -> None:
    rng = np.random.default_rng(0)
    noisy = attending(
        E(), lambda a: {"scores": a.scores + rng.standard_normal(a.scores.shape).astype(np.float32)}
    )
    assert value("reshape", noisy) > 1e-2
    assert (
        verdicts.evaluate_claim(claims.BY_ID["reshape"], real("induction-no-scale")).verdict
        == HOLDS
    )


def test_a_state_may_be_shorter_than_one_or_longer() -> None:
    short = flowing(E(), to_normed(lambda x: 0.1 * x / np.linalg.norm(x, axis=-1, keepdims=True)))
    assert value("unit-length", short) == pytest.approx(10, rel=PASSED)
    halves = flowing(
        E(),
        to_normed(
            lambda x: (
                x
                / np.linalg.norm(x, axis=-1, keepdims=True)
                * np.where(np.arange(len(x)) % 2, 0.5, 1.5)[:, None]
            )
        ),
    )
    assert verdicts.evaluate_claim(claims.BY_ID["unit-length"], halves).verdict == FAILS, (
        "1 in the mean alone"
    )


def test_rows_that_do_not_sum_to_one_are_not_normalised() -> None:
    finding = verdicts.evaluate_claim(
        claims.BY_ID["summed-axis"],
        attending(E(), lambda a: {"pattern": a.pattern * np.float32(1 + 6e-5)}),
    )
    assert finding.verdict == FAILS and "not 1 either" in finding.why
