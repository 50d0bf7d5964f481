"""What the Translation page shows, checked against the recording and a full pass."""

from __future__ import annotations

import numpy as np
import torch
from app_harness import page_at
from conftest import on_page
from javascript import arrived
from streamlit.testing.v1 import AppTest
from tolerances import PASSED

from explorer.analysis import translation
from explorer.components import codec
from explorer.state import models
from models.example_texts import DEFAULT_TEXT
from models.recording import Recording

SENTENCE = DEFAULT_TEXT


def opened(**asked: str) -> AppTest:
    """The page, opened at an address."""
    return clean(page_at("translation", **{"model": "translator", "text": SENTENCE, **asked}))


def clean(app: AppTest) -> AppTest:
    assert not app.exception and not app.error
    return app


def sent(app: AppTest, kind: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What the picture of that kind was sent."""
    protos = [element.proto for element in on_page(app)]
    told = [
        codec.decode(proto.bytes)
        for proto in protos
        if proto.component_name == "headlight.translation"
    ]
    return next(each for each in told if each[0]["kind"] == kind)


def translated(text: str, target: str | tuple[int, ...] | None = None) -> Recording:
    return models.handle("translator").record(text, target=target)


@torch.inference_mode()
def log_probabilities(source: np.ndarray, read: np.ndarray) -> np.ndarray:
    """One full pass of the bare model, outside everything the page uses: log p (row, id)."""
    model = models.handle("translator").model
    memory = model.encode(torch.tensor(source)[None])
    return (
        model.logits(model.decode(torch.tensor(read)[None], memory)[0])
        .double()
        .log_softmax(-1)
        .numpy()
    )


def check_numbers(header: dict, blocks: dict[str, np.ndarray], recording: Recording) -> None:
    """Every number of the steps against the recording and a bare pass."""
    encoder, decoder = recording.stream("encoder"), recording.stream("decoder")
    n = len(header["says"])
    produced = np.append(decoder.ids[1:], encoder.ids[-1])[:n]
    expected = log_probabilities(encoder.ids, decoder.ids)[:n]
    own = expected[np.arange(n), produced]
    assert tuple(header["reads"]) == decoder.tokens and tuple(header["source"]) == encoder.tokens
    assert header["says"] == [*decoder.tokens[1:], "[EOS]"][:n]
    np.testing.assert_allclose(blocks["logprob"], own, atol=PASSED)
    np.testing.assert_allclose(blocks["logit"] - blocks["log_sum"], blocks["logprob"], atol=PASSED)
    # Two words as likely to the last digit may stand in either order.
    assert ((expected > own[:, None] + 1e-4).sum(1) <= blocks["rank"]).all() and (
        blocks["rank"] <= (expected > own[:, None] - 1e-4).sum(1)
    ).all()
    top = blocks["top_logprobs"].reshape(n, -1)
    np.testing.assert_allclose(top, -np.sort(-expected, axis=1)[:, : top.shape[1]], atol=PASSED)
    pattern = translation.cross_attention(recording).pattern
    layer, _, head = header["name"].partition(".")
    wanted = (
        pattern[int(layer), int(head)]
        if head
        else pattern[int(layer)].mean(0)
        if layer
        else pattern.mean((0, 1))
    )
    shown, unknown = arrived(blocks, (n, len(header["source"])))
    assert (np.abs(shown - wanted[:n]) <= unknown + 1e-4).all()
