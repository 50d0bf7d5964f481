"""Paths of embeddings: laws of the plane, cosines and neighbours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from embedding_fixtures import of, states
from tolerances import DOUBLE, DOUBLE_LONG, SUMMED

from explorer.analysis import embeddings, logit_lens, opening
from explorer.panels.embeddings import contexts
from models.runtime.run import Run

ANCHORS = (("cat", "dog"), ("mat", "sat"))


def scene_of(model, *texts: str, anchors=None, **choices):
    streams = [of(model, text) for text in texts]
    names = states(streams[0])
    return embeddings.scene(
        streams,
        anchors,
        names,
        **{"specials": True, "unit_length": False, "words_plane": False, **choices},
    )


def anchors_of(model, words=ANCHORS):
    recordings = [model.record(embeddings.frame_word(word)) for group in words for word in group]
    return embeddings.anchors_of(
        words, recordings, recordings[0].streams[0].name, states(recordings[0].streams[0])
    )


def rows_of(scene) -> np.ndarray:
    """The vectors after the last layer, which the plane is fitted on."""
    assert scene.of_last
    return np.concatenate([group.vectors[-1] for group in scene.texts])


# ---- the plane ---------------------------------------------------------------


@pytest.mark.parametrize("unit_length", [False, True])
def test_the_plane_is_the_one_an_independent_svd_finds(small_model, unit_length: bool) -> None:
    scene = scene_of(small_model, "the cat sat", "the dog ran to the mat", unit_length=unit_length)
    rows = rows_of(scene)
    _, singular, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    shares = (singular**2 / (singular**2).sum())[:3]
    np.testing.assert_allclose(scene.basis.explained, shares, rtol=DOUBLE_LONG)
    cosines = (scene.basis.axes * directions[:3]).sum(1)
    np.testing.assert_allclose(np.abs(cosines), 1, rtol=DOUBLE_LONG)
    if unit_length:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)


def test_of_too_few_words_the_plane_is_that_of_all_layers(small_model) -> None:
    scene = scene_of(small_model, "the")
    rows = scene.texts[0].vectors.reshape(-1, scene.texts[0].vectors.shape[-1])
    assert not scene.of_last and rows.shape[0] > scene.texts[0].vectors.shape[1]
    np.testing.assert_allclose(scene.basis.centre, rows.mean(0))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["encoder", "decoder"])
def test_after_the_last_layer_the_words_of_apple_take_the_whole_plane(model: str) -> None:
    panel = contexts(Run(model, "Tell me about the new apple devices."))
    assert "apple" in panel.title
    plane = panel.figures[1]
    paths = np.concatenate([each.paths for each in plane.clouds])
    reach = np.ptp(paths[:, -1], axis=0) / np.ptp(paths.reshape(-1, 2), axis=0)
    assert (reach > 0.9).all(), "no earlier layer takes more room"
    share = plane.frames[-1].note.partition("%")[0].rpartition(" ")[2]
    assert int(share) > 30 and "of the last layer" in plane.frames[-1].note


@pytest.mark.parametrize("words_plane", [False, True])
def test_what_the_plane_shows_and_leaves_out_is_the_whole(small_model, words_plane: bool) -> None:
    anchors = anchors_of(small_model)
    texts = ("the cat sat", "the dog ran")
    scene = scene_of(small_model, *texts, anchors=anchors, words_plane=words_plane)
    basis, rows = scene.basis, rows_of(scene)
    np.testing.assert_allclose(basis.axes @ basis.axes.T, np.eye(3), atol=DOUBLE_LONG)
    offset = rows - rows.mean(0)
    total = (offset**2).sum(1)
    for n_axes in (2, 3):
        shown = (basis.project(rows)[:, :n_axes] ** 2).sum(1)
        whole = shown + basis.error(rows, n_axes) * total
        np.testing.assert_allclose(whole, total, rtol=DOUBLE_LONG)
        np.testing.assert_allclose(basis.explained[:n_axes].sum(), shown.sum() / total.sum())
    if words_plane:
        # The two groups lie along the first axis.
        one, other = anchors.centroids()[:, -1]
        direction = (other - one) / np.linalg.norm(other - one)
        np.testing.assert_allclose(basis.axes[0], direction, atol=DOUBLE)
        a, b = basis.project(np.stack([one, other]))
        assert b[0] - a[0] == pytest.approx(np.linalg.norm(other - one))
        assert a[1] == pytest.approx(b[1], abs=DOUBLE_LONG)


def test_anchors_that_do_not_stand_apart_give_no_plane_and_the_scene_says_so(small_model) -> None:
    anchors = anchors_of(small_model, (("cat",), ("cat",)))
    scene = scene_of(small_model, "the cat sat", anchors=anchors, words_plane=True)
    assert scene.fallback and scene.basis.names[0] == "PC 1"


def test_points_norms_and_distances_are_those_of_the_recording(small_model) -> None:
    texts = ("the cat sat on the mat", "the dog ran")
    scene = scene_of(small_model, *texts, anchors=anchors_of(small_model))
    for text, stream in enumerate(of(small_model, each) for each in texts):
        for place in range(len(stream.tokens)):
            path = np.stack([stream.at(site)[place] for site in scene.sites]).astype(float)
            np.testing.assert_array_equal(scene.path(text, place), path)
            table = embeddings.path_table(scene.titles, scene.path(text, place), scene.basis)
            np.testing.assert_allclose(table["norm"], np.linalg.norm(path, axis=1))
            moved = np.linalg.norm(np.diff(path, axis=0), axis=1)
            np.testing.assert_allclose(table["moved"][1:], moved)
            # A picture cannot show more movement than there was.
            assert (np.hypot(np.diff(table["x"]), np.diff(table["y"])) <= moved + 1e-6).all()


def test_the_sites_are_the_states_and_each_has_its_name(model) -> None:
    for stream in model.record("the cat sat").streams:
        own, with_sums = states(stream), states(stream, sums=True)
        sublayers = sum(site.endswith(".wrote") and site != "pos.wrote" for site in stream.sites)
        assert own[:2] == ("embed", "embed+pos") and len(own) == 2 + sublayers
        assert len(with_sums) == 2 + 2 * sublayers
        assert not any(site.endswith(".wrote") for site in with_sums)
        titles = [logit_lens.title(site, with_sums) for site in with_sums]
        assert len(set(titles)) == len(titles)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


# ---- the same word in two texts, and anchors ---------------------------------


def test_cosines_to_anchors_are_those_of_vectors_taken_by_hand(small_model) -> None:
    anchors = anchors_of(small_model)
    streams = [of(small_model, text) for text in ("the cat sat", "on the cat")]
    names, at = states(streams[0]), (2, 3)
    paths, around = [], []
    for stream, place in zip(streams, at):
        paths.append(logit_lens.vectors(stream, names, np.array([place]))[:, 0])
        seen = embeddings.visible_tokens(stream, False)
        around.append(logit_lens.vectors(stream, names, seen))
    plain, centred, difference = (
        embeddings.anchor_similarities(paths, anchors, around, measure)
        for measure in ("Cosine", "Centred", "Difference")
    )
    frames = [of(small_model, embeddings.frame_word(word)) for group in ANCHORS for word in group]
    for s, site in enumerate(names):
        by_word = []
        for stream, word in zip(frames, ("cat", "dog", "mat", "sat")):
            starts, ends = stream.spans.T
            inside = (starts >= 0) & (starts < 18 + len(word)) & (ends > 18)
            by_word.append(stream.at(site)[inside].astype(float).mean(0))
        everything = [one.at(site)[~one.special] for one in (*streams, *frames)]
        mean = np.concatenate(everything).astype(float).mean(0)
        for group, words in enumerate((by_word[:2], by_word[2:])):
            c = np.mean(words, axis=0)
            for text, (stream, place) in enumerate(zip(streams, at)):
                v = stream.at(site)[place].astype(float)
                assert plain[text, group, s] == pytest.approx(cosine(v, c))
                assert centred[text, group, s] == pytest.approx(cosine(v - mean, c - mean))
    np.testing.assert_allclose(difference[:, 0], plain[:, 0] - plain[:, 1])
    # At its embedding a word leans the same in both texts, and at the end it does not.
    gap = np.abs(difference[0, 0] - difference[1, 0])
    assert gap[0] < DOUBLE < gap[-1]


def cluster(centre: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return centre + 0.05 * rng.normal(size=(n, len(centre)))


def test_the_verdict_is_right_where_the_truth_is_known() -> None:
    rng = np.random.default_rng(0)
    one, other, start = np.eye(12)[0] * 3, np.eye(12)[1] * 3, np.ones(12)
    words = np.concatenate([cluster(one, 3, rng), cluster(other, 3, rng)])
    both, group = np.stack([words, words], 1), np.repeat([0, 1], 3)
    anchors = embeddings.Anchors((("a", "b", "c"), ("d", "e", "f")), both, group, both, ())

    def shift(end_1, end_2, anchors=anchors) -> embeddings.ContextShift:
        paths = [np.stack([start, end_1]), np.stack([start, end_2])]
        return embeddings.context_shift(paths, anchors, [path[:, None] for path in paths])

    apart = shift(one + 0.1, other + 0.1)
    assert apart.verdict == "apart" and apart.gap > 1 and apart.centred_gap > 0
    assert (apart.splits_as_far, apart.n_splits) == (1, 10)
    # Texts exchanged, the sign too. The gap is over the spread of either text, and these two
    # differ a little.
    assert shift(other + 0.1, one + 0.1).gap == pytest.approx(-apart.gap, rel=0.05)
    assert shift(start, start).verdict == "still"
    mixed = (("a", "d", "b"), ("e", "c", "f"))
    crossed = replace(anchors, words=mixed, vectors=both[[0, 3, 1, 4, 2, 5]])
    assert shift(one, other, crossed).verdict == "chance", "these groups are not what parts them"


@pytest.mark.parametrize(
    "written, read",
    [
        ("fruit, tree , juice / mac,os, app", (("fruit", "tree", "juice"), ("mac", "os", "app"))),
        ("", ()),
        (" / , ", ()),
        ("a, a / b", (("a",), ("b",))),
        ("a", (("a",),)),
        ("a / b / c", (("a",), ("b",))),
        (", ".join("abcdefgh"), (tuple("abcdef"),)),
    ],
)
def test_anchor_words_are_read_as_written(written: str, read: tuple) -> None:
    assert embeddings.groups(written) == read


def test_the_followed_word_is_one_that_both_texts_have(small_model) -> None:
    first, second = of(small_model, "the dog sat on the mat"), of(small_model, "a mat")
    at = opening.shared_word(first, second)
    assert first.tokens[at] == "mat" == second.tokens[embeddings.matching_token(first, at, second)]
    assert embeddings.matching_token(first, list(first.tokens).index("dog"), second) is None


def test_nearest_words_are_those_a_plain_search_finds(model) -> None:
    table = model.network.embedding.token.weight.detach().double().numpy()
    for stream in model.record("the cat sat").streams:
        ids, cosines = model.nearest(stream.resid[:, 1], 5)
        for vector, found, said in zip(stream.resid[:, 1].astype(float), ids, cosines):
            every = table @ vector / np.linalg.norm(table, axis=1) / np.linalg.norm(vector)
            np.testing.assert_allclose(said, np.sort(every)[::-1][:5], atol=SUMMED)
            np.testing.assert_allclose(every[found], said, atol=SUMMED)
        # An embedding is nearest to itself.
        assert ids[0, 0] == stream.ids[1] and cosines[0, 0] == pytest.approx(1, abs=SUMMED)
