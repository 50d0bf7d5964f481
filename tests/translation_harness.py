"""What the Translate tab shows, checked against the recording and a full pass."""

from __future__ import annotations

import numpy as np
import torch
from app_harness import clean, page_at
from conftest import on_page
from streamlit.testing.v1 import AppTest
from tolerances import PASSED, STORED

from explorer.analysis import translation
from explorer.components import codec
from explorer.figures.formatting import tenths
from explorer.wording.templates import sentences
from models.contract.recording import Recording
from models.example_texts import DEFAULT_TEXT
from models.runtime.caching import loaded

SENTENCE = DEFAULT_TEXT


def opened(**asked: str) -> AppTest:
    """The page, opened at an address."""
    return clean(page_at("translate", **{"model": "translator", "text": SENTENCE, **asked}))


def sent(app: AppTest, panel: str) -> tuple[dict, dict[str, np.ndarray]]:
    """What a panel of the page was sent: its header and its blocks."""
    every = [
        codec.decode(element.proto.bytes)
        for element in on_page(app)
        if element.proto.component_name == "headlight.panel"
    ]
    title = sentences("translation", panel)("title")
    return next(each for each in every if each[0]["title"] == title)


def output(app: AppTest) -> list[str]:
    """The output tokens on screen."""
    return list(sent(app, "alignment")[0]["figures"][0]["whole"]["left"])


def step(app: AppTest) -> int:
    """The step on screen, from 1."""
    return sent(app, "alignment")[0]["figures"][0]["current"] + 1


def frame(app: AppTest) -> dict:
    """What is shown of the step on screen."""
    steps = sent(app, "alignment")[0]["figures"][0]
    return steps["frames"][steps["current"]]


def translated(text: str, target: str | tuple[int, ...] | None = None) -> Recording:
    return loaded("translator").record(text, target=target)


@torch.inference_mode()
def log_probabilities(source: np.ndarray, read: np.ndarray) -> np.ndarray:
    """One full pass of the bare model, outside everything the page uses: log p (row, id)."""
    model = loaded("translator").network
    memory = model.encode(torch.tensor(source)[None])
    return (
        model.logits(model.decode(torch.tensor(read)[None], memory)[0])
        .double()
        .log_softmax(-1)
        .numpy()
    )


def check_numbers(app: AppTest, recording: Recording, view: str = "") -> None:
    """Every number of the steps on screen against the recording and a bare pass."""
    header, blocks = sent(app, "alignment")
    (steps,) = header["figures"]
    whole, frames = steps["whole"], steps["frames"]
    encoder, decoder = recording.stream("encoder"), recording.stream("decoder")
    n = len(frames)
    produced = np.append(decoder.ids[1:], encoder.ids[-1])[:n]
    p = np.exp(log_probabilities(encoder.ids, decoder.ids)[:n])
    own = p[np.arange(n), produced]
    assert tuple(whole["right"]) == encoder.tokens
    assert whole["left"] == [*decoder.tokens[1:], "[EOS]"][:n]
    assert [text.partition(" #")[0] for text in whole["texts"]] == [tenths(each) for each in own]
    for at, one in enumerate(frames):
        candidates, _ = one["figures"]
        values = [row["values"][0] for row in candidates["rows"]]
        np.testing.assert_allclose(values[:5], -np.sort(-p[at])[:5], atol=PASSED)
        (mine,) = [row for row in candidates["rows"] if row["selected"]]
        assert abs(mine["values"][0] - own[at]) <= PASSED
    pattern = translation.cross_attention(recording).pattern[:, :, :n]
    weights = blocks[whole["weights"]["block"]].reshape(n, len(encoder.tokens))
    np.testing.assert_allclose(weights, translation.attention_view(pattern, view), atol=STORED)
