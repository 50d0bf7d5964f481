"""Every kind of attention: habits of heads are named against their chance, and what a figure
leaves out."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from conftest import read_once
from javascript import unfolded
from tolerances import STORED, SUMMED

from explorer.analysis import attention, head_naming
from explorer.analysis.csv import to_csv
from explorer.components.codec import runs
from models import token_relations
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
    patterns: np.ndarray,
    streams: tuple[Stream, ...],
    name: str,
    allowed: np.ndarray,
    layers: int = 1,
) -> Recording:
    """Layers that all have the given patterns (head, query, key), from the last stream to the
    first; everything else is zeros."""
    pattern = np.repeat(np.asarray(patterns, dtype=np.float32)[None], layers, axis=0)
    heads, queries, keys = pattern.shape[1:]
    q, k = (np.zeros((layers, heads, n, 2), np.float32) for n in (queries, keys))
    attention = Attention(
        name, streams[-1].name, streams[0].name, np.zeros_like(pattern), pattern, allowed, q, k, k
    )
    return Recording(
        Card("planted", "any", layers, heads, 4, 2, 9, 99, 0, "none", "none"),
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


def causal(patterns: np.ndarray, tokens: tuple[str, ...] = TEXT, layers: int = 1) -> Recording:
    allowed = np.tril(np.ones((len(tokens),) * 2, bool))
    return recording_of(patterns, (stream("decoder", tokens),), "self", allowed, layers)


def described(recording: Recording) -> tuple[head_naming.Head, ...]:
    return head_naming.describe(recording, recording.attention[0])


def toward(mask: np.ndarray, allowed: np.ndarray, share: float = 0.9) -> np.ndarray:
    """Rows that give `share` to the masked keys that are allowed and the rest evenly to all that
    are; even rows where there is none."""
    mask = mask & allowed
    held, even = mask.sum(axis=1, keepdims=True), allowed / allowed.sum(axis=1, keepdims=True)
    return np.where(held > 0, share * mask / np.maximum(held, 1) + (1 - share) * even, even)


# ---- names under the triangle ------------------------------------------------

TRIANGLE = np.tril(np.ones((len(TEXT),) * 2, bool))


@pytest.mark.parametrize(
    "name", [name for name in head_naming.NAMING if name not in ("next", head_naming.SINK)]
)
def test_a_decoders_planted_habit_is_named_against_the_chance_that_its_rows_leave(
    name: str,
) -> None:
    text = (*TEXT, *TEXT[1:])  # enough different words that come again
    triangle = np.tril(np.ones((len(text),) * 2, bool))
    mask = (
        token_relations.text_relations(text, [word.startswith("[") for word in text])[name]
        & triangle
    )
    # In the second layer: no head of the first one is an induction head.
    head = described(causal(toward(mask, triangle)[None], text, layers=2))[-1]
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
    assert broad.name == "diffuse" and broad.entropy == pytest.approx(1, abs=SUMMED)
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
    assert attention.strongest_cell(np.eye(n), TRIANGLE) == (1, 1), (
        "the strongest cell is one that could have been weaker"
    )


def test_a_decoder_claims_nothing_of_both_ends_and_nothing_twice() -> None:
    recording = causal(TRIANGLE[None] / TRIANGLE.sum(axis=1, keepdims=True))
    names = [relation.name for relation in described(recording)[0].relations]
    assert "special" not in names and "next" not in names and len(names) == len(set(names))
    meanings = head_naming.meanings(recording, recording.attention[0])
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
        "gives the first token and the special ones more"
        in (head_naming.meanings(recording, recording.attention[0])["sink"])
    )
    both = recording_of(
        np.full((1, 4, 4), 1 / 4),
        (stream("encoder", ("[CLS]", "a", "b", "[SEP]")),),
        "self",
        np.ones((4, 4), bool),
    )
    assert "gives the special tokens more" in head_naming.meanings(both, both.attention[0])["sink"]


@pytest.mark.parametrize("n", [1, 2])
def test_a_text_of_a_token_has_no_names_and_no_numbers_that_are_none(n: int) -> None:
    heads = described(causal(np.eye(n)[None], ("[BOS]", "a")[:n]))
    assert (
        heads[0].name == head_naming.TOO_SHORT
        and np.isnan(heads[0].entropy) == (n == 1)
        and np.isnan(heads[0].sink) == (n == 1)
    )


# ---- names between a target and its source -----------------------------------

EVERYWHERE = np.ones((len(TARGET), len(SOURCE)), bool)


@pytest.mark.parametrize("name", ["diagonal", "anti-diagonal"])
def test_a_planted_habit_between_two_texts_is_named_with_its_score_and_chance(name: str) -> None:
    mask = token_relations.cross_relations(
        len(TARGET), SOURCE, [word.startswith("[") for word in SOURCE]
    )[name]
    recording = across(toward(mask, EVERYWHERE)[None])
    head = described(recording)[0]
    rows = mask.any(axis=1)
    chance = mask[rows].sum(axis=1).mean() / len(SOURCE)
    assert (head.name, head.n_queries, head.n_matches) == (name, rows.sum(), rows.sum())
    assert head.chance == pytest.approx(chance, abs=STORED) and head.score == pytest.approx(
        0.9 + 0.1 * chance, abs=SUMMED
    )
    assert head.evidence and all(mask[cell.query, cell.key] for cell in head.evidence)
    assert np.isnan(head.distance), "places in two texts have no distance"
    assert name in head_naming.meanings(recording, recording.attention[0])


@pytest.mark.parametrize("concentration", [0.02, 0.1, 1.0])
def test_heads_that_look_anywhere_between_two_texts_get_no_name(concentration: float) -> None:
    drawn = np.random.default_rng(5).dirichlet(
        np.full(len(SOURCE), concentration), size=(300, len(TARGET))
    )
    names = [head.name for head in described(across(drawn))]
    assert sum(name not in (head_naming.NO_PATTERN, "diffuse") for name in names) <= 3


def test_a_short_source_full_of_marks_names_hardly_any_random_head() -> None:
    source, target = ("Oh", ",", "no", "!", "[EOS]"), TARGET[:6]
    drawn = np.random.default_rng(6).dirichlet(np.full(5, 0.02), size=(1000, 6))
    assert (
        sum(
            head.name != head_naming.NO_PATTERN for head in described(across(drawn, target, source))
        )
        <= 30
    )


def test_an_even_head_between_two_texts_is_broad() -> None:
    head = described(across(EVERYWHERE[None] / len(SOURCE)))[0]
    assert head.name == "diffuse" and all(
        relation.lift == pytest.approx(0, abs=SUMMED) for relation in head.relations
    )


def test_diagonals_go_by_relative_place_and_leave_the_last_row_out() -> None:
    source = ("a", "b", "c", "d", "[EOS]")
    masks = token_relations.cross_relations(5, source, [token == "[EOS]" for token in source])
    np.testing.assert_array_equal(masks["diagonal"], np.diag([1, 1, 1, 1, 0]).astype(bool))
    np.testing.assert_array_equal(masks["anti-diagonal"][:4, :4], np.eye(4, dtype=bool)[::-1])
    assert not masks["anti-diagonal"][4].any() and not masks["anti-diagonal"][:, 4].any()
    long = tuple("abcdefghijklmnopqrstu") + (
        "[EOS]",
    )  # 21 of the text, and a target of half as many
    wide = token_relations.cross_relations(12, long, [token == "[EOS]" for token in long])[
        "diagonal"
    ]
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
        for mask in token_relations.cross_relations(
            rows, source, [token == "[EOS]" for token in source]
        ).values()
    )
    assert (
        described(
            across(
                np.full((1, rows, len(source)), 1 / len(source)),
                ("[BOS]", *"abcdefgh")[:rows],
                source,
            )
        )[0].name
        == head_naming.TOO_SHORT
    )


@pytest.mark.slow
@pytest.mark.parametrize(("model", "name"), [("copy", "diagonal"), ("reverse", "anti-diagonal")])
def test_the_models_that_copy_and_reverse_are_named_for_it(model: str, name: str) -> None:
    recording = read_once(model).record("the red cat saw an old dog near a house")
    assert {head.name for head in head_naming.describe(recording, recording.attention[2])} == {name}


# ---- what rows and columns are called, and the files -------------------------


def test_rows_between_two_texts_have_the_name_of_what_they_produce() -> None:
    recording = across(EVERYWHERE[None] / len(SOURCE))
    axes = attention.axes(recording, recording.attention[0], "[EOS]")
    assert axes.rows == (*(f"→ {token}" for token in TARGET[1:]), "→ [EOS]") and axes.keys == SOURCE
    assert (
        axes.produced[0] == ("Le", False)
        and axes.produced[-1] == ("[EOS]", True)
        and len(axes.produced) == len(TARGET)
    )
    table = attention.columns(recording.attention[0].pattern[0, 0], axes)
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
    assert attention.strongest_cell(matrix, np.ones((3, 2), bool), key=0) == (2, 0)
    assert attention.strongest_cell(matrix, np.ones((3, 2), bool), key=1) == (1, 1)


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
