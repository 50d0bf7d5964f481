"""Every kind of attention on the Attention page: the decoder's triangle, the rectangle between a
target and its source, and the choice among them."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from bounds import FOUR_DECIMALS, PIXEL, STORED, SUMMED
from conftest import HOSTILE, read_once
from driver import MARKS, Visitor
from javascript import arrived
from streamlit.testing.v1 import AppTest
from test_pages import clean, opened, sent

from explorer.analysis import attention as numbers
from explorer.analysis import heads as naming
from explorer.analysis.csv import to_csv
from explorer.components.head import runs
from explorer.figures.attention import Scale, heatmap
from explorer.frame import opening
from explorer.memory import models, passes
from explorer.sentences.escape import literal
from models import library, relations
from models.examples import DEFAULT_TEXT
from models.recording import Attention, Card, Recording, Stream

SOURCE = (
    "The",
    "red",
    "fox",
    ",",
    "which",
    "saw",
    "a",
    "bird",
    ",",
    "ran",
    "far",
    "away",
    ".",
    "[EOS]",
)
TARGET = (
    "[BOS]",
    "Le",
    "renard",
    "rouge",
    ",",
    "qui",
    "voyait",
    "un",
    "oiseau",
    ",",
    "s",
    "enfuit",
    "loin",
    "de",
    "là",
    ".",
)
TEXT = (
    "[BOS]",
    "The",
    "fox",
    "saw",
    "the",
    "bird",
    ".",
    "The",
    "fox",
    "ran",
    ".",
    "So",
    "did",
    "they",
    ".",
)
WORDS = "The cat saw a dog near the old house and the children were playing."


def stream(name: str, tokens: tuple[str, ...]) -> Stream:
    n = len(tokens)
    special = np.array([token.startswith("[") for token in tokens])
    return Stream(
        name,
        tokens,
        np.arange(n),
        special,
        np.full((n, 2), -1),
        ("embed",),
        np.zeros((1, n, 4), np.float32),
    )


def recording_of(
    patterns: np.ndarray, streams: tuple[Stream, ...], name: str, allowed: np.ndarray
) -> Recording:
    """One layer with the given patterns (head, query, key), from the last stream to the first;
    everything else is zeros."""
    pattern = np.asarray(patterns, dtype=np.float32)[None]
    heads, queries, keys = pattern.shape[1:]
    q, k = np.zeros((1, heads, queries, 2), np.float32), np.zeros((1, heads, keys, 2), np.float32)
    attention = Attention(
        name, streams[-1].name, streams[0].name, np.zeros_like(pattern), pattern, allowed, q, k, k
    )
    return Recording(
        Card("planted", "any", 1, heads, 4, 2, 9, 99, 0, "none", "none"),
        "",
        (),
        streams,
        (attention,),
    )


def across(
    patterns: np.ndarray, target: tuple[str, ...] = TARGET, source: tuple[str, ...] = SOURCE
) -> Recording:
    return recording_of(
        patterns,
        (stream("encoder", source), stream("decoder", target)),
        "cross",
        np.ones((len(target), len(source)), bool),
    )


def causal(patterns: np.ndarray, tokens: tuple[str, ...] = TEXT) -> Recording:
    return recording_of(
        patterns, (stream("decoder", tokens),), "self", np.tril(np.ones((len(tokens),) * 2, bool))
    )


def described(recording: Recording) -> tuple[naming.Head, ...]:
    return naming.describe(recording, recording.attention[0])


def toward(mask: np.ndarray, allowed: np.ndarray, share: float = 0.9) -> np.ndarray:
    """Rows that give `share` to the masked keys that are allowed and the rest evenly to all that
    are; even rows where there is none."""
    mask = mask & allowed
    held, even = mask.sum(axis=1, keepdims=True), allowed / allowed.sum(axis=1, keepdims=True)
    return np.where(held > 0, share * mask / np.maximum(held, 1) + (1 - share) * even, even)


def unfolded(blocks: dict[str, np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """What the browser makes of `runs`."""
    if "runs" not in blocks:
        return np.ones(shape, dtype=bool)
    return np.repeat(np.arange(len(blocks["runs"])) % 2 == 0, blocks["runs"]).reshape(shape)


# ---- names under the triangle ------------------------------------------------

TRIANGLE = np.tril(np.ones((len(TEXT),) * 2, bool))


@pytest.mark.parametrize(
    "name", [name for name in naming.NAMING if name not in ("next", naming.SINK)]
)
def test_a_decoders_planted_habit_is_named_against_the_chance_that_its_rows_leave(
    name: str,
) -> None:
    text = (*TEXT, *TEXT[1:])  # enough different words that come again
    triangle = np.tril(np.ones((len(text),) * 2, bool))
    mask = relations.of(text, [word.startswith("[") for word in text])[name] & triangle
    head = described(causal(toward(mask, triangle)[None], text))[0]
    rows = mask.any(axis=1) & (triangle.sum(axis=1) > 1)
    chance = (mask[rows].sum(axis=1) / triangle[rows].sum(axis=1)).mean()
    assert (head.name, head.n_queries) == (name, rows.sum())
    assert head.chance == pytest.approx(chance, abs=STORED) and head.score == pytest.approx(
        0.9 + 0.1 * chance, abs=SUMMED
    )
    assert all(mask[cell.query, cell.key] and cell.query > 0 for cell in head.evidence), (
        "the first row has no choice and is no evidence"
    )


def test_the_row_without_a_choice_counts_for_nothing() -> None:
    n = len(TEXT)
    even = TRIANGLE / TRIANGLE.sum(axis=1, keepdims=True)
    broad, itself = described(causal(np.stack([even, np.eye(n)])))
    assert broad.name == "broad" and broad.entropy == pytest.approx(1, abs=SUMMED)
    sinking = [word.startswith("[") or at == 0 for at, word in enumerate(TEXT)]
    assert broad.sink == pytest.approx(
        np.mean([sum(sinking[:i]) / (i + 1) for i in range(1, n)]), abs=SUMMED
    ), "the first row sees itself alone"
    text = [place for place in range(1, n) if not TEXT[place].startswith("[")]
    rows = [[i - j for j in text if j <= i] for i in text[1:]]
    weights = [[1 / (i + 1)] * len(row) for i, row in zip(text[1:], rows)]
    assert broad.distance == pytest.approx(
        np.average(np.concatenate(rows), weights=np.concatenate(weights)), abs=SUMMED
    ), "between words, without the row that has one to choose from"
    assert all(relation.lift == pytest.approx(0, abs=SUMMED) for relation in broad.relations)
    assert itself.sink == 0 and itself.name == "self"
    assert numbers.strongest(np.eye(n), TRIANGLE) == (1, 1), (
        "the strongest cell is one that could have been weaker"
    )


def test_a_decoder_claims_nothing_of_both_ends_and_nothing_twice() -> None:
    recording = causal(TRIANGLE[None] / TRIANGLE.sum(axis=1, keepdims=True))
    names = [relation.name for relation in described(recording)[0].relations]
    assert "special" not in names and "next" not in names and len(names) == len(set(names))
    meanings = naming.meanings(recording, recording.attention[0])
    assert not any(
        "both ends" in meaning or "special tokens." in meaning
        for name, meaning in meanings.items()
        if name in names
    )


def test_special_tokens_at_one_end_are_not_called_both() -> None:
    n = len(SOURCE)
    recording = recording_of(
        np.full((1, n, n), 1 / n),
        (stream("encoder", SOURCE),),
        "encoder self",
        np.ones((n, n), bool),
    )
    assert (
        "on the first token and the special ones more"
        in (naming.meanings(recording, recording.attention[0])["sink"])
    )
    both = recording_of(
        np.full((1, 4, 4), 1 / 4),
        (stream("encoder", ("[CLS]", "a", "b", "[SEP]")),),
        "self",
        np.ones((4, 4), bool),
    )
    assert "on the special tokens more" in naming.meanings(both, both.attention[0])["sink"]


@pytest.mark.parametrize("n", [1, 2])
def test_a_text_of_a_token_has_no_names_and_no_numbers_that_are_none(n: int) -> None:
    heads = described(causal(np.eye(n)[None], ("[BOS]", "a")[:n]))
    assert (
        heads[0].name == naming.TOO_SHORT
        and np.isnan(heads[0].entropy) == (n == 1)
        and np.isnan(heads[0].sink) == (n == 1)
    )


# ---- names between a target and its source -----------------------------------

EVERYWHERE = np.ones((len(TARGET), len(SOURCE)), bool)


@pytest.mark.parametrize("name", ["diagonal", "anti-diagonal"])
def test_a_planted_habit_between_two_texts_is_named_with_its_score_and_chance(name: str) -> None:
    mask = relations.across(len(TARGET), SOURCE, [word.startswith("[") for word in SOURCE])[name]
    recording = across(toward(mask, EVERYWHERE)[None])
    head = described(recording)[0]
    rows = mask.any(axis=1)
    chance = mask[rows].sum(axis=1).mean() / len(SOURCE)
    assert (head.name, head.n_queries, head.n_shown) == (name, rows.sum(), rows.sum())
    assert head.chance == pytest.approx(chance, abs=STORED) and head.score == pytest.approx(
        0.9 + 0.1 * chance, abs=SUMMED
    )
    assert head.evidence and all(mask[cell.query, cell.key] for cell in head.evidence)
    assert np.isnan(head.distance), "places in two texts have no distance"
    assert name in naming.meanings(recording, recording.attention[0])


@pytest.mark.parametrize("concentration", [0.02, 0.1, 1.0])
def test_heads_that_look_anywhere_between_two_texts_get_no_name(concentration: float) -> None:
    drawn = np.random.default_rng(5).dirichlet(
        np.full(len(SOURCE), concentration), size=(300, len(TARGET))
    )
    names = [head.name for head in described(across(drawn))]
    assert sum(name not in (naming.NO_PATTERN, "broad") for name in names) <= 3


def test_a_short_source_full_of_marks_names_hardly_any_random_head() -> None:
    source, target = ("Oh", ",", "no", "!", "[EOS]"), TARGET[:6]
    drawn = np.random.default_rng(6).dirichlet(np.full(5, 0.02), size=(1000, 6))
    assert (
        sum(head.name != naming.NO_PATTERN for head in described(across(drawn, target, source)))
        <= 30
    )


def test_an_even_head_between_two_texts_is_broad() -> None:
    head = described(across(EVERYWHERE[None] / len(SOURCE)))[0]
    assert head.name == "broad" and all(
        relation.lift == pytest.approx(0, abs=SUMMED) for relation in head.relations
    )


def test_diagonals_go_by_relative_place_and_leave_the_last_row_out() -> None:
    source = ("a", "b", "c", "d", "[EOS]")
    masks = relations.across(5, source, [token == "[EOS]" for token in source])
    np.testing.assert_array_equal(masks["diagonal"], np.diag([1, 1, 1, 1, 0]).astype(bool))
    np.testing.assert_array_equal(masks["anti-diagonal"][:4, :4], np.eye(4, dtype=bool)[::-1])
    assert not masks["anti-diagonal"][4].any() and not masks["anti-diagonal"][:, 4].any()
    long = tuple("abcdefghijklmnopqrstu") + (
        "[EOS]",
    )  # 21 of the text, and a target of half as many
    wide = relations.across(12, long, [token == "[EOS]" for token in long])["diagonal"]
    for row in range(11):
        assert abs(np.flatnonzero(wide[row]) - 2 * row).max() <= 2 and wide[row, 2 * row]


@pytest.mark.parametrize(
    ("rows", "source"), [(1, ("[EOS]",)), (1, ("a", "[EOS]")), (2, ("[EOS]",)), (9, ("a", "[EOS]"))]
)
def test_texts_of_a_token_or_two_have_masks_and_no_names(
    rows: int, source: tuple[str, ...]
) -> None:
    assert all(
        mask.shape == (rows, len(source))
        for mask in relations.across(rows, source, [token == "[EOS]" for token in source]).values()
    )
    assert (
        described(
            across(
                np.full((1, rows, len(source)), 1 / len(source)),
                ("[BOS]", *"abcdefgh")[:rows],
                source,
            )
        )[0].name
        == naming.TOO_SHORT
    )


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), [("copy", "diagonal"), ("reverse", "anti-diagonal")])
def test_the_models_that_copy_and_reverse_are_named_for_it(model: str, name: str) -> None:
    recording = library.record(read_once(model), "the red cat saw an old dog near a house")
    assert {head.name for head in naming.describe(recording, recording.attention[2])} == {name}


# ---- what rows and columns are called, and the files -------------------------


def test_rows_between_two_texts_have_the_name_of_what_they_produce() -> None:
    recording = across(EVERYWHERE[None] / len(SOURCE))
    axes = numbers.axes(recording, recording.attention[0], "[EOS]")
    assert axes.rows == (*(f"→ {token}" for token in TARGET[1:]), "→ [EOS]") and axes.keys == SOURCE
    assert (
        axes.said[0] == ("Le", False)
        and axes.said[-1] == ("[EOS]", True)
        and len(axes.said) == len(TARGET)
    )
    table = numbers.columns(recording.attention[0].pattern[0, 0], axes)
    assert (
        list(table)[:2] == ["target \\ source", "0 The"]
        and table["target \\ source"][1] == "1 → renard"
    )
    loaded = pd.read_csv(io.StringIO(to_csv(table, ("about",))))
    assert loaded.shape == (len(TARGET), 1 + len(SOURCE) + 1)
    np.testing.assert_array_equal(
        loaded.iloc[:, 1:-1].to_numpy(dtype=np.float32), recording.attention[0].pattern[0, 0]
    )


def test_the_strongest_cell_of_a_column() -> None:
    matrix = np.array([[0.7, 0.3], [0.2, 0.8], [0.9, 0.1]])
    assert numbers.strongest(matrix, np.ones((3, 2), bool), key=0) == (2, 0)
    assert numbers.strongest(matrix, np.ones((3, 2), bool), key=1) == (1, 1)


def test_a_figure_leaves_out_what_is_not_allowed_and_nothing_else() -> None:
    allowed = np.tril(np.ones((3, 3), bool))
    weights = np.where(allowed, 0.0, 0.0)
    z = (
        heatmap(numbers.blanked(weights, allowed), weights, "abc", "abc", ("",), Scale(0, 1, ""))
        .data[0]
        .z
    )
    np.testing.assert_array_equal(np.isnan(z), ~allowed)
    wide = heatmap(
        np.ones((2, 200)) / 200,
        np.ones((2, 200)) / 200,
        ("→ <b>", "→ c"),
        ["x"] * 200,
        ("",),
        Scale(0, 1, ""),
        ("target", "source"),
    )
    assert (
        list(wide.layout.yaxis.ticktext) == ["→ &lt;b&gt;", "→ c"]
        and len(wide.layout.xaxis.tickvals) <= 60
    )
    assert (wide.layout.yaxis.title.text, wide.layout.xaxis.title.text) == ("target", "source")


@pytest.mark.parametrize("kind", ["triangle", "none", "first not", "random"])
def test_which_cells_are_allowed_arrives(kind: str) -> None:
    drawn = np.random.default_rng(0).random((7, 4)) > 0.4
    allowed = {
        "triangle": TRIANGLE,
        "none": np.ones((3, 5), bool),
        "first not": ~np.tril(np.ones((4, 4), bool)),
        "random": drawn,
    }[kind]
    np.testing.assert_array_equal(unfolded(runs(allowed), allowed.shape), allowed)


# ---- the page ----------------------------------------------------------------


def shown_truly(app: AppTest, recording: Recording, attention: Attention) -> None:
    """What grid and head were sent is this attention, cell by cell."""
    header, blocks = sent(app, "heads")
    queries, keys = attention.allowed.shape
    assert (len(header["tokens"]), len(header["keys"] or header["tokens"])) == (queries, keys)
    cells = blocks["cells"].reshape(*attention.pattern.shape[:2], header["rows"], header["columns"])
    peak, fold = blocks["peak"].reshape(attention.pattern.shape[:2]), header["fold"]
    for row, column in {
        (0, 0),
        (header["rows"] - 1, header["columns"] - 1),
        (header["rows"] // 2, header["columns"] // 3),
    }:
        block = attention.pattern[
            :, :, row * fold : (row + 1) * fold, column * fold : (column + 1) * fold
        ].max(axis=(2, 3))
        assert (
            np.abs(peak * (cells[:, :, row, column] / 255) ** 2 - block) <= 0.004 * peak + 1e-7
        ).all()
    one, fine = sent(app, "head")
    weights = attention.pattern[one["layer"], one["head"]]
    values, unknown = arrived(fine, weights.shape)
    assert (np.abs(values - weights) <= unknown + 1e-4).all()
    np.testing.assert_array_equal(unfolded(fine, weights.shape), attention.allowed)
    np.testing.assert_array_equal(unfolded(blocks, weights.shape), attention.allowed)
    assert tuple(one["keys"]) == recording.stream(attention.key).tokens
    if attention.query == attention.key:
        assert (
            one["said"] is None
            and tuple(one["queries"]) == recording.stream(attention.query).tokens
        )
    else:
        assert tuple(one["queries"][:-1]) == tuple(
            f"→ {token}" for token in recording.stream("decoder").tokens[1:]
        )
        assert len(one["said"]) == len(one["queries"]) == queries


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_any_text_is_drawn_in_every_attention(text: str) -> None:
    for model in ("decoder", "translator"):
        app = clean(opened(text=text, model=model))
        recording = passes.record(model, text)
        for attention in recording.attention:
            if len(recording.attention) > 1:
                name = "" if attention is recording.attention[0] else attention.name
                clean(app.segmented_control(key="attention").set_value(name).run())
            shown_truly(app, recording, attention)
            assert not any("nan" in told.value.split() for told in app.caption)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["Table", "Plotly"])
@pytest.mark.parametrize("text", ["", "the <b>cat</b> saw a $dog$"])
def test_the_other_views_of_triangle_and_rectangle(view: str, text: str) -> None:
    for model, name in (("decoder", "self"), ("translator", "cross")):
        app = clean(opened(text=text, model=model, view=view, attention=name))
        recording = passes.record(model, text)
        attention = next(each for each in recording.attention if each.name == name)
        one, _ = sent(app, "head")
        weights = attention.pattern[one["layer"], one["head"]]
        if view == "Table":
            np.testing.assert_array_equal(
                app.dataframe[0].value.iloc[:, 1:].to_numpy(dtype=np.float32), weights
            )
        else:
            spec = json.loads(app.get("plotly_chart")[0].proto.spec)
            axis = spec["layout"]["yaxis"]
            assert len(axis["ticktext"]) == len(weights) and not any(
                "<" in label for label in axis["ticktext"]
            )
            assert spec["data"][0]["type"] == "heatmap"


@pytest.mark.slow
def test_the_last_row_is_named_after_what_the_model_would_say_next() -> None:
    app = clean(opened(model="translator", attention="cross", text=WORDS))
    recording = passes.record("translator", WORDS)
    logits = passes.logits(recording, "decoder", len(recording.stream("decoder").tokens) - 1)
    assert (
        sent(app, "head")[0]["queries"][-1]
        == "→ " + library.labels(models.handle("translator"), [logits.argmax()])[0]
    )
    assert any("Rows are named after the token they produce" in told.value for told in app.caption)


@pytest.mark.slow
def test_the_control_is_there_where_there_is_a_choice_and_says_who_looks_at_whom() -> None:
    assert not [each for each in clean(opened()).segmented_control if each.key == "attention"]
    app = clean(opened(model="translator"))
    assert app.segmented_control(key="attention").options == [
        "Encoder self-attention",
        "Decoder self-attention",
        "Cross-attention",
    ]
    for name, words in (
        ("", "The source looks at itself"),
        ("decoder self", "not allowed"),
        ("cross", "The target looks at the source"),
    ):
        assert any(
            words in told.value
            for told in app.segmented_control(key="attention").set_value(name).run().caption
        )
    assert any(
        "Later ones are not allowed" in told.value
        for told in clean(opened(model="decoder")).caption
    )


@pytest.mark.slow
def test_the_address_carries_attention_and_side_and_refuses_what_is_not_there() -> None:
    app = clean(opened(model="translator", attention="cross", source="2"))
    header, _ = sent(app, "head")
    assert (header["pin"], header["column"]) == (-1, 2)
    asked = {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
    }
    assert asked == {"model": "translator", "attention": "cross", "source": "2"}
    row = sent(clean(opened(model="translator", attention="cross", token="1", source="2")), "head")[
        0
    ]
    assert (row["pin"], row["column"]) == (1, -1), "one thing is held, the row"
    nothing_there = (
        {"model": "translator", "source": "2"},
        {"attention": "cross"},
        {"model": "translator", "attention": "<b>"},
    )
    for refused in (
        *nothing_there,
        {"model": "translator", "attention": "cross", "source": "9999"},
    ):
        app = clean(opened(**refused))
        assert not {"source"} & set(app.query_params)
        assert app.query_params.get("attention", ["cross"])[0] in ("cross", "c"), (
            "what is not there does not stay, and a translation opens on what its decoder looks at"
        )


@pytest.mark.slow
def test_another_attention_or_model_forgets_head_and_token() -> None:
    app = clean(opened(model="translator", attention="cross", layer="1", head="2", source="2"))
    clean(app.segmented_control(key="attention").set_value("decoder self").run())
    recording = passes.record("translator", DEFAULT_TEXT)
    first = opening.first(recording, recording.attention[1])
    header = sent(app, "head")[0]
    assert "source" not in app.query_params
    assert (header["layer"], header["head"], header["pin"]) == (*first.at, first.query), (
        "another attention is opened on its own finding"
    )
    clean(app.selectbox(key="model").set_value("copy").run())
    assert "attention" not in app.query_params and sent(app, "head")[0]["said"] is None


@pytest.mark.slow
def test_in_a_long_text_the_held_column_travels_exactly() -> None:
    text = " ".join([WORDS] * 16)
    app = clean(
        opened(model="translator", attention="cross", source="30", layer="1", head="0", text=text)
    )
    attention = passes.record("translator", text).attention[2]
    header, blocks = sent(app, "head")
    if "exact" not in blocks:
        np.testing.assert_array_equal(blocks["column"], attention.pattern[1, 0, :, 30])
    app = clean(opened(model="decoder", token="30", layer="1", head="0", text=text))
    header, blocks = sent(app, "head")
    pattern = passes.record("decoder", text).attention[0].pattern[1, 0]
    np.testing.assert_array_equal(blocks["row"], pattern[30])
    np.testing.assert_array_equal(blocks["column"], pattern[:, 30])
    size = sum(block.nbytes for block in blocks.values())
    assert size <= 30_000 + pattern.size


@pytest.mark.slow
def test_a_typed_target_is_read_said_and_can_be_dropped() -> None:
    app = clean(
        opened(model="translator", attention="cross", text=WORDS, target="Un chat <b> rouge.")
    )
    header, _ = sent(app, "head")
    typed = passes.record("translator", WORDS, target="Un chat <b> rouge.")
    assert tuple(header["queries"][:-1]) == tuple(
        f"→ {token}" for token in typed.stream("decoder").tokens[1:]
    )
    assert any("as typed" in line and "Un chat <b> rouge." in line for line in header["caption"])
    clean(next(button for button in app.button if "own" in button.label).click().run())
    own = passes.record("translator", WORDS)
    header, _ = sent(app, "head")
    assert tuple(header["queries"][:-1]) == tuple(
        f"→ {token}" for token in own.stream("decoder").tokens[1:]
    )
    assert "target" not in app.query_params
    assert not any(
        "own" in button.label
        for button in clean(opened(model="decoder", text=WORDS, target="Un chat")).button
    ), "a model without a target has none to drop"


@pytest.mark.slow
def test_the_formula_of_a_held_column_is_its_strongest_cell() -> None:
    app = clean(
        opened(model="translator", attention="cross", source="2", layer="1", head="2", text=WORDS)
    )
    recording = passes.record("translator", WORDS)
    column = recording.attention[2].pattern[1, 2][:, 2]
    told = next(each.value for each in app.markdown if "How a weight is made" in each.value)
    reads = recording.stream("decoder").tokens[column.argmax()]
    assert (
        f"**{column.max():.3f}**" in told
        and f"row {column.argmax()} (reads **{literal(reads)}**" in told
        and "(token 2)" in told
    )


# ---- journeys ----------------------------------------------------------------


def marked(function):
    for mark in MARKS:
        function = mark(function)
    return function


@marked
def test_choose_cross_attention_and_a_source_token_and_find_them_again(
    visitor: Visitor, browser, server: str
) -> None:
    visitor.open("?view=Matrix&model=translator&attention=decoder+self")
    page = visitor.page
    picture = visitor.picture()
    page.get_by_text("Cross-attention", exact=True).click()
    page.wait_for_url("**attention=cross**")
    visitor.until(
        "before => [...document.querySelectorAll('*')].some(e => { const c = "
        "e.shadowRoot?.querySelector('canvas[data-painted]'); return c && c.dataset.painted "
        "!== before; })",
        picture,
    )
    visitor.drawn()
    recording = library.record(read_once("translator"), DEFAULT_TEXT)
    cross = recording.attention[2]
    target, source = page.locator(".tokens.rows .token"), page.locator(".tokens.columns .token")
    assert tuple(source.all_inner_texts()) == recording.stream("encoder").tokens
    assert tuple(target.all_inner_texts()[:-1]) == recording.stream("decoder").tokens[1:]
    thumb = page.locator(".cell .thumb").first.bounding_box()
    # A thumbnail of some 60 pixels a side has whole ones.
    assert thumb["width"] / thumb["height"] == pytest.approx(
        cross.allowed.shape[1] / cross.allowed.shape[0], rel=0.05
    ), "a rectangle is drawn as one"

    source.nth(2).click()
    page.wait_for_url("**source=2**")
    visitor.drawn()
    page.mouse.move(5, 5)
    layer, head = (
        int(part)
        for part in page.locator(".cell[aria-pressed=true]")
        .get_attribute("aria-label")
        .replace(":", "")
        .replace(",", "")
        .split()[1:4:2]
    )
    weights = cross.pattern[layer, head][:, 2]

    def held(one) -> tuple[str, list[bool]]:
        says = one.page.locator(".head .says").inner_text()
        box, area = (
            one.page.locator("i.column.pinned").bounding_box(),
            one.page.locator("canvas.cells").bounding_box(),
        )
        assert box["height"] == pytest.approx(area["height"], abs=PIXEL), "the whole column is held"
        # A pixel of a column some twenty wide.
        assert (box["x"] - area["x"]) / box["width"] == pytest.approx(2, abs=0.1)
        assert one.page.locator("i.row.pinned").is_hidden()
        return says, [
            each.get_attribute("aria-pressed") == "true"
            for each in one.page.locator(".tokens.columns .token").all()
        ]

    says, pressed = held(visitor)
    assert (
        says.startswith(f"{recording.stream('encoder').tokens[2]} is looked at by → ")
        and f"{weights.max():.2f}" in says
    )
    assert pressed == [at == 2 for at in range(len(pressed))]
    page.reload()
    visitor.drawn()
    page.mouse.move(5, 5)
    assert held(visitor) == (says, pressed)
    target.nth(1).click()
    page.wait_for_url("**token=1**")
    visitor.drawn()
    assert "source=" not in page.url and page.locator("i.column.pinned").is_hidden()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "token=" not in url)


@marked
def test_a_later_token_is_hatched_and_said_to_be_not_allowed(visitor: Visitor) -> None:
    visitor.open("?view=Matrix&model=decoder&layer=1&head=2")
    page = visitor.page
    recording = library.record(read_once("decoder"), DEFAULT_TEXT)
    n = len(recording.streams[0].tokens)
    page.locator(".head .foot").scroll_into_view_if_needed()
    box = page.locator("canvas.cells").bounding_box()
    for query, key in ((2, 5), (5, 2)):
        page.mouse.move(
            box["x"] + (key + 0.5) * box["width"] / n, box["y"] + (query + 0.5) * box["height"] / n
        )
        said = page.locator(".says strong").inner_text()
        if key > query:
            assert said == "not allowed: a later token"
        else:
            assert float(said) == pytest.approx(
                float(recording.attention[0].pattern[1, 2, query, key]), abs=FOUR_DECIMALS
            )
    alpha = page.locator("canvas.cells").evaluate(
        "e => [...e.getContext('2d').getImageData(0, 0, e.width, e.height).data].filter((_, "
        "i) => i % 4 === 3)"
    )
    np.testing.assert_array_equal(np.array(alpha).reshape(n, n) > 0, recording.attention[0].allowed)
    thumb = page.locator(".cell .thumb").nth(8)
    box = thumb.bounding_box()
    thumb.hover(position={"x": 5.5 * box["width"] / n, "y": 2.5 * box["height"] / n})
    assert page.locator(".heads .status").inner_text().endswith("not allowed: a later token")


@marked
def test_keys_walk_the_rectangle_and_a_phone_holds_it(browser, server: str) -> None:
    phone = Visitor(
        browser, server, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    ).open("?view=Matrix&model=translator&attention=cross&layer=1&head=2")
    assert phone.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    cross = library.record(read_once("translator"), DEFAULT_TEXT).attention[2]
    queries, keys = cross.allowed.shape
    phone.page.locator(".scroll").focus()
    phone.page.keyboard.press("ArrowRight")
    for key, times in (("ArrowDown", queries + 3), ("ArrowRight", keys + 3)):
        for _ in range(times):
            phone.page.keyboard.press(key)
    assert float(phone.page.locator(".says strong").inner_text()) == pytest.approx(
        float(cross.pattern[1, 2, -1, -1]), abs=FOUR_DECIMALS
    )
    phone.page.keyboard.press("Enter")
    phone.page.wait_for_url(f"**token={queries - 1}**")
    phone.page.locator(".tokens.columns .token").first.focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        phone.page.keyboard.press(key)
    phone.page.wait_for_url("**source=2**")
    assert not phone.errors
    phone.context.close()
