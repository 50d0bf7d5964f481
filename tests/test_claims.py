"""Claims: each test of a claim says yes where it must and no where it must, and its numbers are
those of another way."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from claim_fixtures import D, E, attending, feeling, flowing, real, value
from conftest import read_once
from tolerances import PASSED, SUMMED, TOTAL

from explorer.analysis import claims as claims_analysis
from explorer.analysis import measure, verdicts
from explorer.analysis.gradients import N_NETWORKS
from explorer.analysis.measure import Measure, MeasureContext
from explorer.analysis.verdicts import FAILS, HOLDS, UNTESTABLE, Claim
from explorer.text import claims
from models.contract.recording import Attention, Stream

# ---- evidence on which a claim must hold, or must not ---------------------------


def same_heads(a: Attention) -> dict:
    return {"pattern": np.repeat(a.pattern[:, :1], a.pattern.shape[1], axis=1)}


def even(a: Attention) -> dict:
    pattern = np.full_like(a.pattern, 1 / a.pattern.shape[-1])
    return {"pattern": pattern, "allowed": np.ones_like(a.allowed[0])}


def independent(a: Attention) -> dict:
    q, k = np.random.default_rng(0).standard_normal((2, *a.q.shape)).astype(np.float32)
    return {"scores": q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), "q": q, "k": k}


def aligned(a: Attention) -> dict:
    """Queries and keys that all lie along one direction."""
    return {
        name: np.repeat(getattr(a, name)[..., :1], a.q.shape[-1], axis=-1) for name in ("q", "k")
    }


def one_direction(_: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return np.outer(1 + np.arange(len(x)), x[0]) if site == "embed+pos" else x


def standing_still(stream: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return stream.at("embed+pos") * (0 if site.endswith(".wrote") else 1)


def tossed(_: Stream, site: str, x: np.ndarray) -> np.ndarray:
    return np.random.default_rng(len(site) + sum(map(ord, site))).standard_normal(x.shape)


def to_normed(how: Callable[[np.ndarray], np.ndarray]) -> Callable:
    return lambda _, site, x: how(x) if site.endswith(".normed") else x


def unit_states(e: MeasureContext) -> MeasureContext:
    return flowing(e, to_normed(lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)))


def unit_words(e: MeasureContext) -> MeasureContext:
    words = e.embeddings()
    return words_of(e, words / np.linalg.norm(words, axis=-1, keepdims=True))


def words_of(e: MeasureContext, words: np.ndarray) -> MeasureContext:
    """The same with a readout that is these words, as they stand."""
    stream = e.recording.streams[-1]
    return e.replaced(
        embeddings=lambda: words, logits=lambda _, token: words @ stream.resid[-1, token]
    )


def stretched_words(e: MeasureContext) -> np.ndarray:
    return e.embeddings() * np.linspace(0.5, 20, e.recording.model.n_vocab)[:, None]


def ranked(e: MeasureContext, rank: int) -> MeasureContext:
    """The same with a lens that gives the answer this rank at three sites."""
    shape = (3, len(e.recording.streams[-1].tokens))
    sites = ("embed+pos", "0.ffn.normed", "1.ffn.normed")
    lens = SimpleNamespace(sites=sites, rank=np.full(shape, rank), kl=np.zeros(shape))
    return e.replaced(lens=lambda *_: lens)


@pytest.mark.parametrize("claim", claims.WRITTEN, ids=lambda claim: claim.id)
def test_a_claim_holds_where_it_must_and_fails_where_it_must(claim: Claim) -> None:
    for of, verdict in zip(CASES[claim.id], (HOLDS, FAILS)):
        finding = verdicts.evaluate_claim(claim, of())
        assert finding.verdict == verdict and finding.why, finding


def saying(e: MeasureContext, ahead: int) -> MeasureContext:
    """The same with scores that are high for the token `ahead` of the one read."""
    stream = e.recording.streams[-1]
    n = e.recording.model.n_vocab

    def logits(_: str, token: int) -> np.ndarray:
        return 10.0 * np.eye(1, n, int(stream.ids[min(token + ahead, len(stream.ids) - 1)]))[0]

    return e.replaced(logits=logits)


def drawing(how: Callable[[int, int], np.ndarray]) -> MeasureContext:
    return real("encoder").replaced(draw=how)


def itself(a: Attention) -> dict:
    return {"pattern": np.zeros_like(a.pattern) + np.eye(a.pattern.shape[-1], dtype=np.float32)}


def unscaled(a: Attention) -> dict:
    """As in T5: nothing is divided, and each head adds something for the distance between two
    tokens."""
    distance = np.arange(a.scores.shape[-1]) - np.arange(a.scores.shape[-2])[:, None]
    added = 30 * np.sin(distance / (1 + np.arange(a.scores.shape[1]))[:, None, None])
    return {"scores": (a.q @ a.k.swapaxes(-1, -2) + added).astype(np.float32)}


# For each claim: evidence on which it must hold, and evidence on which it must not.
CASES: dict[str, tuple[Callable[[], MeasureContext], Callable[[], MeasureContext]]] = {
    "variance-here": (lambda: attending(E(), aligned), lambda: attending(E(), independent)),
    "balance": (E, lambda: flowing(E(), lambda _, site, x: x / 16 if site == "embed" else x)),
    "heads-differ": (E, lambda: attending(E(), same_heads)),
    "near-and-far": (E, lambda: attending(E(), even)),
    "norm-tames": (E, lambda: E().replaced(rerun=lambda *_: E().recording)),
    "naive-itself": (E, lambda: flowing(E(), one_direction)),
    "offset-by-one": (D, lambda: saying(D(), 0)),
    "soft-lookup": (E, lambda: attending(E(), lambda a: {"scores": np.zeros_like(a.scores)})),
    "unit-length": (lambda: unit_states(E()), E),
    "only-rotations": (lambda: flowing(E(), standing_still), E),
    "little-work": (lambda: flowing(E(), standing_still), lambda: flowing(E(), tossed)),
    "vocabulary-sphere": (
        lambda: unit_words(E()),
        lambda: words_of(E(), stretched_words(E())),
    ),
    "near-its-words": (D, lambda: D().replaced(embeddings=lambda: -D().embeddings())),
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
    "looks-at-itself": (lambda: attending(E(), itself), E),
    "context-moves": (E, lambda: E().replaced(rerun=lambda *_: E().recording)),
    "scale-keeps-soft": (E, lambda: attending(E(), lambda a: {"q": a.q / 1000})),
}


def test_every_claim_has_a_case_where_it_holds_and_one_where_it_fails() -> None:
    assert set(CASES) == {claim.id for claim in claims.WRITTEN}
    assert len(claims.BY_ID) == len(claims.CLAIMS)
    measures = {
        name.replace("_", "-")
        for name, each in vars(claims_analysis).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == claims_analysis.__name__
    }
    assert measures == set(CASES), "no measure without its claim"


def test_a_slot_is_written_by_its_kind_and_is_a_word_or_a_number() -> None:
    slots = {"n": 1234, "x": 2.5e-5, "share": 0.125, "word": "{n}"}
    found = Measure(0.5, "½", slots).fill("{n} {n:d} {x} {share:%} {share:+} {value:.2f} {word}")
    assert found == "1,234 1234 2.50 × 10⁻⁵ 12% +0.12 0.50 {n}"
    with pytest.raises(KeyError):
        Measure(0.5).fill("{n}")
    with pytest.raises(TypeError, match="n is a ndarray"):
        Measure(0.5, slots={"n": np.zeros(2)})


def test_the_numbers_of_a_few_claims_by_hand() -> None:
    e = real("decoder")
    stream, attention = e.recording.streams[0], e.recording.attention[0]
    n = len(stream.tokens)
    own = attention.pattern[:, :, 1:].argmax(-1) == np.arange(1, n)
    assert value("looks-at-itself", e) == pytest.approx(np.mean(own))
    normed = [stream.at(site) for site in stream.sites if site.endswith(".normed")]
    lengths = np.linalg.norm(normed, axis=-1)
    assert value("unit-length", e) == pytest.approx(np.mean(lengths), rel=SUMMED)
    scores = [e.logits("decoder", at) for at in range(n - 1)]
    ahead = [each[stream.ids[at + 1]] - each[stream.ids[at]] for at, each in enumerate(scores)]
    assert value("offset-by-one", e) == pytest.approx(np.mean(ahead), rel=SUMMED)


def test_a_recurrent_gradient_agrees_with_small_steps() -> None:
    e = real("encoder")
    x = e.recording.streams[0].at("embed").astype(float)
    x, n = x / x.std(axis=1, keepdims=True), N_NETWORKS
    weights = measure.gaussian(n * 64, 64).reshape(n, 64, 64) / 8
    inward = measure.gaussian(n * 64, x.shape[1]).reshape(n, 64, -1) / np.sqrt(x.shape[1])

    def last(w: np.ndarray, u: np.ndarray, nudge: np.ndarray) -> np.ndarray:
        """The sums that 64 runs end in, a row of `nudge` added to the first state of each."""
        h = np.zeros((64, 64))
        for at, each in enumerate(x):
            h = np.tanh(h @ w.T + u @ each) + (nudge if at == 0 else 0)
        return h.sum(axis=1) / 8

    step = 1e-5 * np.eye(64)
    slopes = [(last(w, u, step) - last(w, u, -step)) / 2e-5 for w, u in zip(weights, inward)]
    lengths = np.linalg.norm(slopes, axis=1)
    expected = np.median(lengths) ** (1 / (len(x) - 1))
    assert value("recurrence-fades", e) == pytest.approx(expected, rel=PASSED)


def test_products_are_measured_before_any_scale() -> None:
    e = real("induction-no-scale")
    q, k = (getattr(e.recording.attention[0], name).astype(float) for name in ("q", "k"))
    products = np.var(q @ k.swapaxes(-1, -2), axis=(-2, -1))
    expected = q.shape[-1] * (q**2).mean((-2, -1)) * (k**2).mean((-2, -1))
    ratio = np.median(products / expected)
    assert value("variance-here", e) == pytest.approx(max(ratio, 1 / ratio))
    unchanged = attending(E(), unscaled)
    assert value("variance-here", unchanged) == pytest.approx(value("variance-here", E()))


@pytest.mark.parametrize("model", ["decoder", "encoder"])
def test_distances_are_to_the_rows_of_the_readout(model: str) -> None:
    e, loaded_model = real(model), read_once(model)
    stream, words = (
        e.recording.streams[0],
        loaded_model.network.embedding.token.weight.detach().numpy(),
    )
    factor = np.sqrt(e.recording.model.d_model)
    assert measure.embedding_factor(e) == pytest.approx(factor, rel=TOTAL)
    found = []
    for place in measure.subsample(np.flatnonzero(~stream.special), 8):
        nearest_first = np.argsort(((words - stream.resid[-1, place]) ** 2).sum(axis=1)).argsort()
        likeliest_first = np.argsort(-e.logits(model, place)).argsort()
        found.append(np.corrcoef(nearest_first, likeliest_first)[0, 1])
    assert value("distance-tells", e) == pytest.approx(np.mean(found), abs=PASSED)
    cubed = e.replaced(logits=lambda *where: e.logits(*where) ** 3)
    transformed = verdicts.evaluate_claim(claims.BY_ID["distance-tells"], cubed)
    assert transformed.verdict == UNTESTABLE and "not its embedding matrix" in transformed.why


def test_a_state_may_be_shorter_than_one_or_longer() -> None:
    def of(lengths: Callable[[int], object]) -> MeasureContext:
        unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
        return flowing(E(), to_normed(lambda x: unit(x) * lengths(len(x))))

    assert value("unit-length", of(lambda _: 0.1)) == pytest.approx(10, rel=PASSED)
    halves = of(lambda n: np.where(np.arange(n) % 2, 0.5, 1.5)[:, None])
    found = verdicts.evaluate_claim(claims.BY_ID["unit-length"], halves)
    assert found.verdict == FAILS, "1 in the mean alone"
