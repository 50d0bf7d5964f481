"""What the Predictions page shows, checked against a full pass."""

from __future__ import annotations

import numpy as np
import torch
from app_harness import clean, page_at, panels_on
from streamlit.testing.v1 import AppTest
from tolerances import PASSED

from explorer.analysis import predictions
from explorer.app.state import url_state
from explorer.figures.formatting import tenths
from models.contract.results import Sampling, probabilities
from models.network import own_model
from models.runtime.caching import loaded

WAYS = {
    "plain": Sampling(),
    "greedy": Sampling(0),
    "cold": Sampling(0.2),
    "hot": Sampling(2),
    "top-k": Sampling(1, 3),
    "top-p": Sampling(1, 0, 0.6),
    "all three": Sampling(0.7, 50, 0.9),
}


OPENS = Sampling(*(float(url_state.default(name)) for name in ("temperature", "top_k", "top_p")))


# ---- the page ----------------------------------------------------------------


def opened(tab: str = "word", /, **asked: str) -> AppTest:
    """A tab of Predict, opened at an address; of an answer how each token was written is open."""
    app = clean(page_at(tab, **asked))
    if tab == "generate" and not app.button:
        return app
    if tab == "generate" and "write one" not in [each.key for each in app.button]:
        app.session_state["fold rivals"] = True
        clean(app.run())
    return app


def main_panel(app: AppTest) -> dict:
    """The panel of the next token, where a text is written, else the first one."""
    every = panels_on(app)
    return next((each for each in every if each["panel"] == "generation.next_token"), every[0])


def said(app: AppTest) -> list[int]:
    return [int(id) for id in app.session_state["said"].split(".") if id]


def press(app: AppTest, key: str) -> AppTest:
    return clean(app.button(key=key).click().run())


@torch.inference_mode()
def full_pass(model: str, ids: list[int]) -> np.ndarray:
    """Logits (token, id) of one pass of the bare model, outside everything the page uses."""
    bare = loaded(model).network
    return bare.logits(bare(torch.tensor([ids]))[0]).double().numpy()


def softmaxed(z: np.ndarray) -> np.ndarray:
    return torch.tensor(z).softmax(-1).numpy()


def prompt_ids(text: str) -> list[int]:
    return list(own_model.frame(loaded("decoder"), own_model.clean(text))[0].ids)


def row_of(app: AppTest) -> dict:
    """The sentence of the first panel: its tokens, what stands below them, which are marked."""
    return main_panel(app)["figures"][0]


def bars_of(app: AppTest) -> list[dict]:
    """The rows of the first panel's bars."""
    return main_panel(app)["figures"][1]["rows"]


def check_choices(app: AppTest, ids: list[int], sampling: Sampling = OPENS) -> None:
    """All numbers of each bar against a full pass, and their sums."""
    words = bars_of(app)
    z = full_pass("decoder", ids)[-1]
    expected = [softmaxed(z)]
    if sampling != Sampling():
        expected.append(probabilities(z.astype(np.float32), sampling))
    likely = np.argsort(-z, kind="stable")[: predictions.MOST_ROWS].tolist()
    if any(row["key"] for row in words):
        at = [int(row["key"].rpartition(".")[2]) for row in words]
        assert at[: len(likely)] == likely
    else:
        at = likely
    for column, p in enumerate(expected):
        values = [row["values"][column] for row in words]
        np.testing.assert_allclose(values, p[at], atol=PASSED)
        left = tenths(round(1 - sum(values), 12))
        assert left in main_panel(app)["figures"][1]["note"]
    if len(expected) > 1:
        cut = [row["texts"][1] == "cut" for row in words]
        assert cut == [expected[1][id] == 0 for id in at]
