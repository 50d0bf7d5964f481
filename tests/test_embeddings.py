"""Paths of embeddings: laws of the plane, cosines and neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from embedding_fixtures import of, states
from tolerances import DOUBLE, DOUBLE_LONG, SUMMED

from explorer.analysis import embeddings, logit_lens

ANCHORS = (("cat", "dog"), ("mat", "sat"))


def scene_of(handle, *texts: str, anchors=None, **choices):
    streams = [of(handle, text) for text in texts]
    names = states(streams[0])
    return embeddings.scene(
        streams,
        anchors,
        names,
        **{"specials": True, "unit_length": False, "words_plane": False, **choices},
    )


def anchors_of(handle, words=ANCHORS):
    recordings = [handle.record(embeddings.frame_word(word)) for group in words for word in group]
    return embeddings.anchors_of(
        words, recordings, recordings[0].streams[0].name, states(recordings[0].streams[0])
    )


def rows_of(scene) -> np.ndarray:
    return np.concatenate(
        [group.vectors.reshape(-1, group.vectors.shape[-1]) for group in scene.texts]
    )


# ---- the plane ---------------------------------------------------------------


@pytest.mark.parametrize("unit_length", [False, True])
def test_the_plane_is_the_one_an_independent_svd_finds(small_handle, unit_length: bool) -> None:
    scene = scene_of(small_handle, "the cat sat", "the dog ran to the mat", unit_length=unit_length)
    rows = rows_of(scene)
    _, singular, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    np.testing.assert_allclose(
        scene.basis.explained, (singular**2 / (singular**2).sum())[:3], rtol=DOUBLE_LONG
    )
    np.testing.assert_allclose(
        np.abs((scene.basis.axes * directions[:3]).sum(1)), 1, rtol=DOUBLE_LONG
    )
    if unit_length:
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1)


@pytest.mark.parametrize("words_plane", [False, True])
def test_what_the_plane_shows_and_what_it_leaves_out_make_the_whole(
    small_handle, words_plane: bool
) -> None:
    scene = scene_of(
        small_handle,
        "the cat sat",
        "the dog ran",
        anchors=anchors_of(small_handle),
        words_plane=words_plane,
    )
    basis, rows = scene.basis, rows_of(scene)
    np.testing.assert_allclose(basis.axes @ basis.axes.T, np.eye(3), atol=DOUBLE_LONG)
    offset = rows - rows.mean(0)
    total = (offset**2).sum(1)
    for n_axes in (2, 3):
        shown = (basis.project(rows)[:, :n_axes] ** 2).sum(1)
        np.testing.assert_allclose(
            shown + basis.error(rows, n_axes) * total, total, rtol=DOUBLE_LONG
        )
        left = offset - (offset @ basis.axes[:n_axes].T) @ basis.axes[:n_axes]
        np.testing.assert_allclose(
            basis.error(rows, n_axes), (left**2).sum(1) / total, atol=DOUBLE_LONG
        )
        np.testing.assert_allclose(basis.explained[:n_axes].sum(), shown.sum() / total.sum())


def test_the_plane_through_words_has_the_two_groups_along_its_first_axis(small_handle) -> None:
    anchors = anchors_of(small_handle)
    scene = scene_of(small_handle, "the cat sat", anchors=anchors, words_plane=True)
    one, other = anchors.centroids()[:, -1]
    np.testing.assert_allclose(
        scene.basis.axes[0], (other - one) / np.linalg.norm(other - one), atol=DOUBLE
    )
    a, b = scene.basis.project(np.stack([one, other]))
    assert b[0] - a[0] == pytest.approx(np.linalg.norm(other - one)) and a[1] == pytest.approx(
        b[1], abs=DOUBLE_LONG
    )


def test_anchors_that_do_not_stand_apart_give_no_plane_and_the_scene_says_so(small_handle) -> None:
    scene = scene_of(
        small_handle,
        "the cat sat",
        anchors=anchors_of(small_handle, (("cat",), ("cat",))),
        words_plane=True,
    )
    assert scene.fallback and scene.basis.names[0] == "PC 1"


def test_points_norms_and_distances_are_those_of_the_recording_in_all_dimensions(
    small_handle,
) -> None:
    scene = scene_of(
        small_handle, "the cat sat on the mat", "the dog ran", anchors=anchors_of(small_handle)
    )
    streams = [of(small_handle, "the cat sat on the mat"), of(small_handle, "the dog ran")]
    for text, stream in enumerate(streams):
        for place in range(len(stream.tokens)):
            path = np.stack([stream.at(site)[place] for site in scene.sites]).astype(float)
            np.testing.assert_array_equal(scene.path(text, place), path)
            table = embeddings.path_table(scene.titles, scene.path(text, place), scene.basis)
            np.testing.assert_allclose(table["norm"], np.sqrt((path**2).sum(1)))
            np.testing.assert_allclose(
                table["moved"][1:], np.sqrt(((path[1:] - path[:-1]) ** 2).sum(1))
            )
            seen = np.hypot(np.diff(table["x"]), np.diff(table["y"]))
            assert (seen <= table["moved"][1:] + 1e-6).all(), (
                "a picture cannot show more movement than there was"
            )


@pytest.mark.parametrize("name", ["small_handle", "small_decoder", "small_translator"])
def test_the_sites_are_the_states_and_each_has_its_name(name: str, request) -> None:
    handle = request.getfixturevalue(name)
    for stream in handle.record("the cat sat").streams:
        own, with_sums = states(stream), states(stream, sums=True)
        sublayers = sum(site.endswith(".wrote") and site != "pos.wrote" for site in stream.sites)
        assert (
            own[:2] == ("embed", "embed+pos")
            and len(own) == 2 + sublayers
            and len(with_sums) == 2 + 2 * sublayers
        )
        assert not any(site.endswith(".wrote") for site in with_sums)
        titles = [logit_lens.title(site, with_sums) for site in with_sums]
        assert len(set(titles)) == len(titles)


# ---- the same word in two texts, and anchors ---------------------------------


def test_cosines_to_anchors_are_those_of_vectors_taken_by_hand(small_handle) -> None:
    anchors = anchors_of(small_handle)
    first, second = of(small_handle, "the cat sat"), of(small_handle, "on the cat")
    names = states(first)
    paths = [
        logit_lens.vectors(first, names, np.array([2]))[:, 0],
        logit_lens.vectors(second, names, np.array([3]))[:, 0],
    ]
    around = [
        logit_lens.vectors(one, names, embeddings.visible_tokens(one, False))
        for one in (first, second)
    ]
    plain, centred = (
        embeddings.anchor_similarities(paths, anchors, around, measure)
        for measure in ("Cosine", "Centred")
    )
    frames = [of(small_handle, embeddings.frame_word(word)) for group in ANCHORS for word in group]
    for s, site in enumerate(names):
        by_word = []
        for stream, word in zip(frames, ("cat", "dog", "mat", "sat")):
            inside = [
                at
                for at, (a, b) in enumerate(stream.spans)
                if a >= 0 and set(range(a, b)) & set(range(18, 18 + len(word)))
            ]
            by_word.append(stream.at(site)[inside].astype(float).mean(0))
        everything = (
            np.concatenate([one.at(site)[~one.special] for one in (first, second, *frames)])
            .astype(float)
            .mean(0)
        )
        for group, words in enumerate((by_word[:2], by_word[2:])):
            c = np.mean(words, axis=0)
            for text, v in enumerate(
                (first.at(site)[2].astype(float), second.at(site)[3].astype(float))
            ):
                assert plain[text, group, s] == pytest.approx(
                    v @ c / np.linalg.norm(v) / np.linalg.norm(c)
                )
                a, b = v - everything, c - everything
                assert centred[text, group, s] == pytest.approx(
                    a @ b / np.linalg.norm(a) / np.linalg.norm(b)
                )
    np.testing.assert_allclose(
        embeddings.anchor_similarities(paths, anchors, around, "Difference")[:, 0],
        plain[:, 0] - plain[:, 1],
    )


def test_a_word_leans_the_same_in_both_texts_at_its_embedding(small_handle) -> None:
    anchors = anchors_of(small_handle)
    names = states(of(small_handle, "the cat"))
    paths = [
        logit_lens.vectors(of(small_handle, text), names, np.array([at]))[:, 0]
        for text, at in (("the cat sat", 2), ("on the cat", 3))
    ]
    around = [path[:, None] for path in paths]
    found = embeddings.anchor_similarities(paths, anchors, around, "Difference")[:, 0]
    assert found[0, 0] == pytest.approx(found[1, 0]) and not np.allclose(found[0, -1], found[1, -1])


def cluster(centre: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return centre + 0.05 * rng.normal(size=(n, len(centre)))


def test_the_verdict_is_right_where_the_truth_is_known() -> None:
    rng = np.random.default_rng(0)
    one, other, start = np.eye(12)[0] * 3, np.eye(12)[1] * 3, np.ones(12)
    words = np.concatenate([cluster(one, 3, rng), cluster(other, 3, rng)])
    anchors = embeddings.Anchors(
        (("a", "b", "c"), ("d", "e", "f")),
        np.stack([words, words], 1),
        np.repeat([0, 1], 3),
        np.stack([words, words], 1),
        (),
    )

    def shift(end_1: np.ndarray, end_2: np.ndarray) -> embeddings.ContextShift:
        paths = [np.stack([start, end_1]), np.stack([start, end_2])]
        return embeddings.context_shift(paths, anchors, [path[:, None] for path in paths])

    apart = shift(one + 0.1, other + 0.1)
    assert (
        apart.verdict == "apart"
        and apart.gap > 1
        and (apart.splits_as_far, apart.n_splits) == (1, 10)
        and apart.centred_gap > 0
    )
    # The gap is over the spread of either text, and these two differ a little.
    assert shift(other + 0.1, one + 0.1).gap == pytest.approx(-apart.gap, rel=0.05), (
        "texts exchanged, the sign too"
    )
    assert shift(start, start).verdict == "still"
    crossed = anchors.__class__(
        (("a", "d", "b"), ("e", "c", "f")),
        anchors.vectors[[0, 3, 1, 4, 2, 5]],
        anchors.group,
        anchors.all_rows,
        (),
    )
    paths = [np.stack([start, one]), np.stack([start, other])]
    assert (
        embeddings.context_shift(paths, crossed, [path[:, None] for path in paths]).verdict
        == "chance"
    ), "these groups are not what parts the texts"


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


def test_the_followed_word_is_one_that_both_texts_have(small_handle) -> None:
    first, second = of(small_handle, "the dog sat on the mat"), of(small_handle, "a mat")
    shown = embeddings.visible_tokens(first, False)
    at = embeddings.default_token(first, second, shown)
    assert first.tokens[at] == "mat" == second.tokens[embeddings.matching_token(first, at, second)]
    assert embeddings.matching_token(first, list(first.tokens).index("dog"), second) is None


@pytest.mark.parametrize("name", ["small_handle", "small_decoder", "small_translator"])
def test_nearest_words_are_those_a_plain_search_finds(name: str, request) -> None:
    handle = request.getfixturevalue(name)
    for stream in handle.record("the cat sat").streams:
        ids, cosines = handle.nearest(stream.resid[:, 1], 5)
        table = handle.model.embedding.token.weight.detach().numpy().astype(float)
        for vector, found, said in zip(stream.resid[:, 1].astype(float), ids, cosines):
            every = table @ vector / np.linalg.norm(table, axis=1) / np.linalg.norm(vector)
            np.testing.assert_allclose(said, np.sort(every)[::-1][:5], atol=SUMMED)
            np.testing.assert_allclose(every[found], said, atol=SUMMED)
        assert ids[0, 0] == stream.ids[1] and cosines[0, 0] == pytest.approx(1, abs=SUMMED), (
            "an embedding is nearest to itself"
        )
