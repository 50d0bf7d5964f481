"""A head's circuits in words: those that whole matrices give, and the page shows them."""

from __future__ import annotations

import numpy as np
import pytest
from bounds import PASSED
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.memory import models, passes
from models import library, own
from models.own import Handle
from models.readouts import circuits


@pytest.mark.parametrize("kind", ["small_handle", "small_gpt2", "small_translator"])
def test_circuits_are_those_of_the_whole_matrices(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(circuits, "KEYS", 7)  # several slices of a small vocabulary
    monkeypatch.setattr(circuits, "ROWS", 2)
    handle: Handle = request.getfixturevalue(kind)
    label = "cross" if kind == "small_translator" else "self"
    layer, head, ids = 1, 2, (3, 9, 30, 9)
    of = handle.model.attentions()[label][layer]
    e = handle.model.embedding.token.weight.detach().double().numpy()
    x = e * (1.0 if kind == "small_gpt2" else handle.card.d_model**0.5)
    here = slice(head * of.d_head, (head + 1) * of.d_head)
    q, k, v = (each.weight.detach().double().numpy()[here].T for each in (of.w_q, of.w_k, of.w_v))
    o = of.w_o.weight.detach().double().numpy().T[here]
    qk, ov = x @ q @ k.T @ x.T / of.d_head**0.5, x @ v @ o @ e.T  # (word, word)
    found = library.circuits(handle, label, layer, head, ids)
    rows = np.array(ids)
    for all_of, best, values, sign in (
        (ov, found.up_ids, found.up, -1),
        (ov, found.down_ids, found.down, 1),
        (qk, found.key_ids, found.keys, -1),
    ):
        expected = np.sort(sign * all_of[rows], axis=1)[:, : values.shape[1]] * sign
        np.testing.assert_allclose(values, expected, atol=PASSED)
        np.testing.assert_allclose(
            np.take_along_axis(all_of[rows], best, axis=1), expected, atol=PASSED
        )
    np.testing.assert_allclose(found.among, qk[np.ix_(rows, rows)], atol=PASSED)
    np.testing.assert_allclose(found.own, ov[rows, rows], atol=PASSED)
    assert list(found.own_rank) == list((ov[rows] > ov[rows, rows][:, None]).sum(1))


def test_with_its_own_values_it_is_what_the_head_would_write_at_weight_one(
    small_decoder: Handle,
) -> None:
    recording = own.record(small_decoder, "the cat sat on the mat")
    attention, places = recording.attention[0], (1, 3)
    ids = tuple(int(recording.streams[0].ids[place]) for place in places)
    values = attention.v[2, 1][list(places)]
    found = library.circuits(small_decoder, "self", 2, 1, ids, values)
    w_o, _ = library.outputs(small_decoder)["self"]
    e = small_decoder.model.embedding.token.weight.detach().numpy()
    logits = values @ w_o[2, 1] @ e.T
    np.testing.assert_allclose(found.up[:, 0], logits.max(axis=1), atol=PASSED)
    np.testing.assert_allclose(found.own, logits[[0, 1], list(ids)], atol=PASSED)
    for asked in (("self", 9, 0, ids), ("self", 0, 9, ids), ("cross", 0, 0, ids)):
        with pytest.raises(ValueError, match="no head"):
            library.circuits(small_decoder, *asked)


@pytest.mark.slow
def test_the_page_shows_the_circuits_of_the_words_that_are_asked_for() -> None:
    from test_borrowed_on_pages import opened

    text = "the cat sat on the mat"
    recording = passes.record("decoder", text)
    attention, stream = recording.attention[0], recording.streams[0]
    asked = {"model": "decoder", "text": text, "look_at": "Words", "layer": "1", "head": "3"}

    def bars(app: AppTest) -> list[dict]:
        assert not app.exception
        return [
            wire.decode(each.proto.bytes)[0]["rows"]
            for each in on_page(app)
            if each.proto.component_name == "headlight.bars"
        ]

    query, key = int(stream.ids[3]), int(stream.ids[2])
    among, keys, up, down = bars(opened("lookup", **asked, token="3", look_key="2"))
    of = library.circuits(models.handle("decoder"), "self", 1, 3, (query, key))
    assert [row["value"] for row in keys] == pytest.approx(of.keys[0].tolist(), abs=PASSED)
    assert [row["value"] for row in up] == pytest.approx(of.up[1].tolist(), abs=PASSED)
    assert [row["value"] for row in down] == pytest.approx(of.down[1].tolist(), abs=PASSED)
    assert len(among) == len({int(id) for id in stream.ids})
    *_, up, _ = bars(opened("lookup", **asked, token="3", look_key="2", look_as="Here"))
    here = passes.circuits(recording, attention, (1, 3), (2,))
    assert [row["value"] for row in up] == pytest.approx(here.up[0].tolist(), abs=PASSED)
    word, _ = models.first_token("decoder", "house")
    *_, up, _ = bars(opened("lookup", **asked, look_word=str(word)))
    of = library.circuits(models.handle("decoder"), "self", 1, 3, (word,))
    assert [row["value"] for row in up] == pytest.approx(of.up[0].tolist(), abs=PASSED)
