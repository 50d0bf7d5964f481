"""Paths of embeddings: laws of the plane, cosines and neighbours recomputed from the Recording, and
a reader's visit."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from urllib.parse import urlencode

import driver
import numpy as np
import pytest
from bounds import DOUBLE, DOUBLE_LONG, PASSED, STORED, SUMMED
from conftest import HOSTILE, on_page, read_once
from streamlit.testing.v1 import AppTest

from explorer.analysis import anchors as anchoring
from explorer.analysis import embeddings as numbers
from explorer.analysis import sites
from explorer.components import wire
from models import library

ROOT = Path(__file__).resolve().parent.parent
FRUIT, DEVICES = (
    "She ate the apple with some fruit juice.",
    "Explain me about the new apple devices.",
)
ANCHORS = (("cat", "dog"), ("mat", "sat"))


def states(stream, sums: bool = False):
    return sites.states(stream, sums)


def of(handle, text: str, stream: str | None = None):
    recording = library.record(handle, text)
    return recording.stream(stream) if stream else recording.streams[0]


def scene_of(handle, *texts: str, anchors=None, **choices):
    streams = [of(handle, text) for text in texts]
    names = states(streams[0])
    return numbers.scene(
        streams,
        anchors,
        names,
        **{"specials": True, "unit_length": False, "words_plane": False, **choices},
    )


def anchors_of(handle, words=ANCHORS):
    recordings = [
        library.record(handle, anchoring.framed(word)) for group in words for word in group
    ]
    return anchoring.anchors_of(
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
    arrays, at = scene.arrays(), 0
    for text, stream in enumerate(streams):
        for place in range(len(stream.tokens)):
            assert scene.point(text, place) == at
            path = np.stack([stream.at(site)[place] for site in scene.sites]).astype(float)
            np.testing.assert_array_equal(scene.path(text, place), path)
            np.testing.assert_allclose(arrays["norm"][at], np.sqrt((path**2).sum(1)))
            np.testing.assert_allclose(
                arrays["moved"][at, 1:], np.sqrt(((path[1:] - path[:-1]) ** 2).sum(1))
            )
            seen = np.linalg.norm(np.diff(arrays["coordinates"][at], axis=0), axis=1)
            assert (seen <= arrays["moved"][at, 1:] + 1e-6).all(), (
                "a picture cannot show more movement than there was"
            )
            at += 1
    assert at + 4 == len(arrays["error"])


@pytest.mark.parametrize("name", ["small_handle", "small_decoder", "small_translator"])
def test_the_sites_are_the_states_and_each_has_its_name(name: str, request) -> None:
    handle = request.getfixturevalue(name)
    for stream in library.record(handle, "the cat sat").streams:
        own, with_sums = states(stream), states(stream, sums=True)
        sublayers = sum(site.endswith(".wrote") and site != "pos.wrote" for site in stream.sites)
        assert (
            own[:2] == ("embed", "embed+pos")
            and len(own) == 2 + sublayers
            and len(with_sums) == 2 + 2 * sublayers
        )
        assert not any(site.endswith(".wrote") for site in with_sums)
        titles = [sites.title(site, with_sums) for site in with_sums]
        assert len(set(titles)) == len(titles)


# ---- the same word in two texts, and anchors ---------------------------------


def test_cosines_to_anchors_are_those_of_vectors_taken_by_hand(small_handle) -> None:
    anchors = anchors_of(small_handle)
    first, second = of(small_handle, "the cat sat"), of(small_handle, "on the cat")
    names = states(first)
    paths = [
        sites.vectors(first, names, np.array([2]))[:, 0],
        sites.vectors(second, names, np.array([3]))[:, 0],
    ]
    around = [sites.vectors(one, names, numbers.places(one, False)) for one in (first, second)]
    plain, centred = (
        anchoring.pulls(paths, anchors, around, measure) for measure in ("Cosine", "Centred")
    )
    frames = [of(small_handle, anchoring.framed(word)) for group in ANCHORS for word in group]
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
        anchoring.pulls(paths, anchors, around, "Difference")[:, 0], plain[:, 0] - plain[:, 1]
    )


def test_a_word_leans_the_same_in_both_texts_at_its_embedding(small_handle) -> None:
    anchors = anchors_of(small_handle)
    names = states(of(small_handle, "the cat"))
    paths = [
        sites.vectors(of(small_handle, text), names, np.array([at]))[:, 0]
        for text, at in (("the cat sat", 2), ("on the cat", 3))
    ]
    around = [path[:, None] for path in paths]
    found = anchoring.pulls(paths, anchors, around, "Difference")[:, 0]
    assert found[0, 0] == pytest.approx(found[1, 0]) and not np.allclose(found[0, -1], found[1, -1])


def cluster(centre: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    return centre + 0.05 * rng.normal(size=(n, len(centre)))


def test_the_verdict_is_right_where_the_truth_is_known() -> None:
    rng = np.random.default_rng(0)
    one, other, start = np.eye(12)[0] * 3, np.eye(12)[1] * 3, np.ones(12)
    words = np.concatenate([cluster(one, 3, rng), cluster(other, 3, rng)])
    anchors = anchoring.Anchors(
        (("a", "b", "c"), ("d", "e", "f")),
        np.stack([words, words], 1),
        np.repeat([0, 1], 3),
        np.stack([words, words], 1),
        (),
    )

    def shift(end_1: np.ndarray, end_2: np.ndarray) -> anchoring.Shift:
        paths = [np.stack([start, end_1]), np.stack([start, end_2])]
        return anchoring.shift(paths, anchors, [path[:, None] for path in paths])

    apart = shift(one + 0.1, other + 0.1)
    assert (
        apart.verdict == "apart"
        and apart.gap > 1
        and (apart.as_far, apart.n_splits) == (1, 10)
        and apart.centred_gap > 0
    )
    # The gap is over the spread of either text, and these two differ a little.
    assert shift(other + 0.1, one + 0.1).gap == pytest.approx(-apart.gap, rel=0.05), (
        "texts exchanged, the sign too"
    )
    assert shift(start, start).verdict == "still" and shift(start, start).own[-1] == pytest.approx(
        1
    )
    crossed = anchors.__class__(
        (("a", "d", "b"), ("e", "c", "f")),
        anchors.vectors[[0, 3, 1, 4, 2, 5]],
        anchors.group,
        anchors.all_rows,
        (),
    )
    paths = [np.stack([start, one]), np.stack([start, other])]
    assert anchoring.shift(paths, crossed, [path[:, None] for path in paths]).verdict == "chance", (
        "these groups are not what parts the texts"
    )


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
    assert anchoring.groups(written) == read


def test_the_followed_word_is_one_that_both_texts_have(small_handle) -> None:
    first, second = of(small_handle, "the dog sat on the mat"), of(small_handle, "a mat")
    shown = numbers.places(first, False)
    at = numbers.followed(first, second, shown)
    assert first.tokens[at] == "mat" == second.tokens[numbers.counterpart(first, at, second)]
    assert numbers.counterpart(first, list(first.tokens).index("dog"), second) is None


@pytest.mark.parametrize("name", ["small_handle", "small_decoder", "small_translator"])
def test_nearest_words_are_those_a_plain_search_finds(name: str, request) -> None:
    handle = request.getfixturevalue(name)
    for stream in library.record(handle, "the cat sat").streams:
        ids, cosines = library.nearest(handle, stream.resid[:, 1], 5)
        table = handle.model.embedding.token.weight.detach().numpy().astype(float)
        for vector, found, said in zip(stream.resid[:, 1].astype(float), ids, cosines):
            every = table @ vector / np.linalg.norm(table, axis=1) / np.linalg.norm(vector)
            np.testing.assert_allclose(said, np.sort(every)[::-1][:5], atol=SUMMED)
            np.testing.assert_allclose(every[found], said, atol=SUMMED)
        assert ids[0, 0] == stream.ids[1] and cosines[0, 0] == pytest.approx(1, abs=SUMMED), (
            "an embedding is nearest to itself"
        )


# ---- the page ----------------------------------------------------------------


def opened(**asked: str) -> AppTest:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom explorer.frame import bar\n"
        "from explorer.memory import address\naddress.begin('embeddings')\nbar.show()\n"
        f"exec(compile(open({str(ROOT / 'pages/embeddings.py')!r}).read(), 'embeddings', 'exec'))"
    )
    app = AppTest.from_string(script, default_timeout=60)
    for name, value in asked.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception and not app.error, app.exception
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    made = [wire.decode(element.proto.bytes) for element in on_page(app)]
    return next((header, blocks) for header, blocks in made if header["kind"] == kind)


@pytest.mark.slow
def test_the_page_draws_what_the_model_did() -> None:
    app = opened(text=FRUIT, second=DEVICES)
    header, blocks = sent(app, "walk")
    handle = read_once("encoder")
    streams = [of(handle, FRUIT), of(handle, DEVICES)]
    names = states(streams[0])
    rows = np.concatenate(
        [
            sites.vectors(one, names, np.flatnonzero(~one.special)).reshape(-1, handle.card.d_model)
            for one in streams
        ]
    )
    _, singular, directions = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    np.testing.assert_allclose(
        header["explained"], (singular**2 / (singular**2).sum())[:2], rtol=STORED
    )
    assert header["texts"][0]["labels"] == [
        t for t, s in zip(streams[0].tokens, streams[0].special) if not s
    ]
    apple = header["texts"][0]["labels"].index("apple")
    vector = streams[0].resid[
        streams[0].sites.index(names[-1]), header["texts"][0]["places"][apple]
    ] - rows.mean(0)
    shown = blocks["coordinates"].reshape(-1, len(names), 2)[apple, -1]
    np.testing.assert_allclose(
        np.abs(shown), np.abs(directions[:2] @ vector), rtol=PASSED, atol=PASSED
    )
    error = blocks["error"].reshape(-1, len(names))[apple, -1]
    assert error == pytest.approx(
        1 - (shown.astype(float) ** 2).sum() / (vector**2).sum(), abs=SUMMED
    )
    around, _ = sent(app, "around")
    assert around["chosen"] == [
        apple,
        len(header["texts"][0]["labels"]) + header["texts"][1]["labels"].index("apple"),
    ]
    assert [one["token"] for one in sent(app, "near")[0]["near"]] == ["apple", "apple"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        HOSTILE[name]
        for name in (
            "empty",
            "one word",
            "10,000 characters",
            "emoji",
            "right to left",
            "bidi override",
            "script",
            "latex",
            "markdown",
            "plotly",
        )
    ],
)
def test_any_two_texts_and_any_anchors_are_drawn(text: str) -> None:
    app = opened(text=text, second=text, anchors=f"{text[:20]} / <b>, $x$", plane="Words")
    header, blocks = sent(app, "walk")
    assert (
        header["texts"][0]["labels"]
        and np.isfinite(blocks["coordinates"]).all()
        and ((blocks["error"] >= 0) & (blocks["error"] <= 1)).all()
    )
    if len(text) > 1000:
        assert len(header["texts"][0]["labels"]) == 510


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        {"model": "decoder", "text": FRUIT, "second": DEVICES, "sums": "Sums"},
        {"model": "translator", "text": FRUIT, "second": DEVICES},
        {"model": "translator", "text": FRUIT, "stream": "decoder", "specials": "Shown"},
        {"model": "grammar-masked", "text": FRUIT, "second": DEVICES, "length": "Removed"},
        {
            "stage": "99",
            "token": "x",
            "mate": "-1",
            "plane": "?",
            "stream": "<b>",
            "curve": "",
            "anchors": "/",
        },
    ],
    ids=str,
)
def test_every_kind_of_model_and_broken_links_open(asked: dict[str, str]) -> None:
    app = opened(**asked)
    header, _ = sent(app, "walk")
    handle = read_once(asked.get("model", "encoder"))
    stream = of(
        handle,
        asked.get("text", app.session_state["text"]),
        asked["stream"] if asked.get("stream") == "decoder" else None,
    )
    assert len(header["titles"]) == len(states(stream, asked.get("sums") == "Sums"))


@pytest.mark.slow
def test_three_dimensions_show_the_same_numbers() -> None:
    import json

    app = opened(text=FRUIT, second=DEVICES, space="3-D", stage="3")
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert figure["data"][0]["type"] == "scatter3d" and any(
        "apple" in str(trace["name"]) for trace in figure["data"]
    )
    assert any("outside these three directions" in one.value for one in app.markdown)


@pytest.mark.slow
def test_the_slider_of_sites_follows_the_site_on_screen() -> None:
    app = opened(text=FRUIT, space="3-D", stage="3")
    assert app.select_slider(key="site in space").value == 2
    app.session_state["stage"] = "5"
    assert app.run().select_slider(key="site in space").value == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, begins, step",
    [
        (
            "encoder",
            "starts as √256 × embedding, the position is added",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        (
            "minilm",
            "starts as embedding + segment, the position is added, a LayerNorm follows",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        (
            "induction-no-norm",
            "starts as √64 × embedding, the position is added",
            "x ← x + sublayer(x), with no LayerNorm",
        ),
        (
            "induction-no-residual",
            "starts as √64 × embedding, the position is added",
            "x ← LayerNorm(sublayer(x)), with no residual connection",
        ),
        (
            "reverse-no-positions",
            "starts as √64 × embedding; this model adds no positions",
            "x ← LayerNorm(x + sublayer(x))",
        ),
        ("grammar", "starts as embedding, the position is added", "x ← x + sublayer(LayerNorm(x))"),
    ],
)
def test_the_formula_is_that_of_the_model(
    model: str, begins: str, step: str, gpt2_on_pages
) -> None:
    app = opened(model=model, text="b a c b", second="a c", sums="Sums")
    handle = gpt2_on_pages if model == "grammar" else read_once(model)
    stream = of(handle, "b a c b")
    header, blocks = sent(app, "walk")
    assert (
        len(header["titles"]) == len(states(stream, True))
        and np.isfinite(blocks["coordinates"]).all()
    )
    assert not any(".read" in site or ".wrote" in site for site in states(stream, True))
    note = next(each.value for each in app.markdown if "**The path.**" in each.value)
    assert begins in note and step in note


@pytest.mark.slow
def test_the_address_carries_what_is_on_screen_and_opens_the_same() -> None:
    app = opened(text=FRUIT)
    app.text_input(key="second").set_value(DEVICES).run()
    app.segmented_control(key="plane").set_value("Words").run()
    app.segmented_control(key="curve").set_value("Difference").run()
    app.text_input(key="anchors").set_value("pear / phone").run()
    asked = {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }
    assert asked == {
        "text": FRUIT,
        "second": DEVICES,
        "plane": "Words",
        "curve": "Difference",
        "anchors": "pear / phone",
    }
    again = opened(**asked)
    for kind in ("walk", "around", "near"):
        assert sent(again, kind)[0] == sent(app, kind)[0]


@pytest.mark.slow
@pytest.mark.browser
def test_a_reader_follows_apple_through_two_contexts(browser, server: str) -> None:
    from playwright.sync_api import expect

    visitor = driver.Visitor(browser, server)
    page, sizes = visitor.page, []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )

    def settled() -> None:
        page.wait_for_selector(".near table")
        page.wait_for_selector(".picture canvas")
        page.wait_for_selector("[data-test-script-state=notRunning]")

    page.goto(f"{server}/embeddings")
    settled()
    page.get_by_role("button", name="“apple” in two contexts").click()
    page.wait_for_selector(".curve svg")
    settled()
    assert page.locator("textarea").first.input_value() == FRUIT
    assert page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["apple", "apple"]
    sizes.clear()
    slider = page.locator(".stepper input")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    names = states(of(read_once("encoder"), FRUIT))
    stage = len(names) - 5
    page.wait_for_url(f"**stage={stage + 1}**")
    settled()
    assert page.locator(".stepper .where").inner_text() == sites.title(names[stage], names)
    assert {row.inner_text() for row in page.locator(".near tr.now th").all()} == {
        sites.title(names[stage], names)
    }
    assert sum(sizes) < 40_000, "a step sends no paths"
    page.locator(".chip", has_text="juice").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("text=is not in the second text")
    settled()
    page.locator(".chip", has_text="devices").click()
    page.wait_for_url("**mate=**")
    settled()
    page.mouse.move(5, 5)
    other = driver.Visitor(browser, server)
    other.page.goto(page.url)
    other.page.wait_for_selector(".curve svg")
    other.page.wait_for_selector(".near tr.now")
    for where in (".chip[aria-pressed=true]", ".near tr.now", ".stepper .where", ".reading p"):
        expect(other.page.locator(where)).to_have_text(
            page.locator(where).all_inner_texts(), use_inner_text=True
        )
    file = visitor.export("Picture as SVG")
    import xml.etree.ElementTree as tree

    said = " ".join(
        element.text or "" for element in tree.parse(file).iter() if element.tag.endswith("text")
    )
    assert (
        "model encoder" in said
        and "Explained variance" in said
        and "juice" in said
        and DEVICES in said
    )
    tables = {}
    for what in ("Paths", "Curves", "Nearest words"):
        file = visitor.export(f"{what} as CSV")
        lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
        tables[what] = list(csv.DictReader(io.StringIO("\n".join(lines))))
    table = tables["Paths"]
    assert len(tables["Curves"]) == len(names) and len(tables["Nearest words"]) == 2 * len(names)
    assert (
        len(table) == len(names) * (len(page.locator(".line .chip").all()) + 6)
        and float(table[0]["norm"]) > 0
    )
    # Streamlit itself asks for two files beside the page's address before it finds them above it.
    for one in (visitor, other):
        assert not [error for error in one.errors if "404" not in error]
        one.context.close()


@pytest.mark.slow
@pytest.mark.browser
def test_hostile_texts_on_a_phone_are_drawn_as_they_are(browser, server: str) -> None:
    phone = driver.Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    text = HOSTILE["bold"] + " " + HOSTILE["bidi override"]
    phone.page.goto(
        f"{server}/embeddings?"
        + urlencode(
            {
                "text": text,
                "second": HOSTILE["script"],
                "anchors": "<b>x</b> / <img src=x onerror=alert(1)>",
            }
        )
    )
    phone.page.wait_for_selector(".near table")
    phone.page.wait_for_selector(".picture canvas")
    assert phone.page.title() == "Embeddings · Headlight"
    stream = of(read_once("encoder"), text)
    shown = phone.page.locator(".line").first.locator(".chip").all_inner_texts()
    assert shown == [token for token, special in zip(stream.tokens, stream.special) if not special]
    assert phone.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    assert not [error for error in phone.errors if "404" not in error]
    phone.context.close()


@pytest.mark.slow
def test_the_page_opens_on_one_word_in_two_contexts_and_says_how_far_it_moves() -> None:
    app = opened()
    header, _ = sent(app, "walk")
    near = sent(app, "near")[0]["near"]
    assert len(header["texts"]) == 2 and len({one["token"] for one in near}) == 1
    handle, streams = read_once("encoder"), []
    for text in (app.session_state["text"], app.text_input(key="second").placeholder):
        streams.append(of(handle, text))
    around, blocks = sent(app, "around")
    ends = [
        stream.resid[stream.sites.index(states(stream)[-1]), header["texts"][at]["places"][point]]
        for at, (stream, point) in enumerate(
            zip(
                streams,
                (around["chosen"][0], around["chosen"][1] - len(header["texts"][0]["labels"])),
            )
        )
    ]
    cosine = float(ends[0] @ ends[1] / np.linalg.norm(ends[0]) / np.linalg.norm(ends[1]))
    values = blocks["values"].reshape(len(around["lines"]), -1)
    assert values[0, 0] == pytest.approx(1, abs=SUMMED)
    assert values[0, -1] == pytest.approx(cosine, abs=SUMMED) and cosine < 0.6
    assert f"to {cosine:.2f}" in app.title[0].value
    # Different words of the two texts: every pair by hand.
    words = [
        [
            (label.casefold(), stream.resid[stream.sites.index(states(stream)[-1]), place])
            for label, place in zip(group["labels"], group["places"])
        ]
        for stream, group in zip(streams, header["texts"])
    ]
    pairs = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for one, a in words[0]
        for other, b in words[1]
        if one != other
    ]
    assert values[1, -1] == pytest.approx(float(np.mean(pairs)), abs=SUMMED)
    alone = opened(contexts="One")
    assert len(sent(alone, "walk")[0]["texts"]) == 1
