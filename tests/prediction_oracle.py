"""What the Predictions page shows, checked against a full pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from app_harness import clean, page_at
from conftest import on_page
from streamlit.testing.v1 import AppTest
from tolerances import DOUBLE_LONG, PASSED, SUMMED

from explorer.components import codec
from explorer.state import models, url_state
from models import own_model
from models.results import Sampling, probabilities

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


def opened(tab: str = "word", **asked: str) -> AppTest:
    """A tab of Predict, opened at an address."""
    return clean(page_at(tab, **asked))


def sent(app: AppTest, name: str, at: int = 0) -> dict:
    """What the component of that name was sent, the one at that place of the page."""
    protos = [element.proto for element in on_page(app)]
    return codec.decode(
        [proto.bytes for proto in protos if proto.component_name == f"headlight.{name}"][at]
    )[0]


def asked_of(app: AppTest) -> dict[str, str]:
    return {
        name: values[0] if isinstance(values, list) else values
        for name, values in app.query_params.items()
        if name != "tab"
    }


def said(app: AppTest) -> list[int]:
    return [int(id) for id in app.session_state["said"].split(".") if id]


def press(app: AppTest, key: str) -> AppTest:
    return clean(app.button(key=key).click().run())


@torch.inference_mode()
def full_pass(model: str, ids: list[int]) -> np.ndarray:
    """Logits (token, id) of one pass of the bare model, outside everything the page uses."""
    bare = models.handle(model).model
    return bare.logits(bare(torch.tensor([ids]))[0]).double().numpy()


def softmaxed(z: np.ndarray) -> np.ndarray:
    return torch.tensor(z).softmax(-1).numpy()


def prompt_ids(text: str) -> list[int]:
    return list(own_model.frame(models.handle("decoder"), own_model.clean(text))[0].ids)


def check_choices(app: AppTest, ids: list[int], sampling: Sampling = OPENS) -> None:
    """Both numbers of each bar against a full pass, and their sums."""
    rows = sent(app, "bars")["rows"]
    z = full_pass("decoder", ids)[-1]
    p, drawn = softmaxed(z), probabilities(z.astype(np.float32), sampling)
    words = [row for row in rows if row["tone"] != "rest"]
    at = [int(row["key"]) for row in words]
    np.testing.assert_allclose([row["behind"] for row in words], p[at], atol=SUMMED)
    np.testing.assert_allclose([row["value"] for row in words], drawn[at], atol=PASSED)
    assert (
        sum(row["behind"] for row in rows)
        == pytest.approx(1, abs=DOUBLE_LONG)
        == sum(row["value"] for row in rows)
    )
    assert [row["tone"] == "cut" for row in words] == [drawn[id] == 0 for id in at]
