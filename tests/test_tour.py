"""The tour: each step's number by another way, and every step on every kind of model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from conftest import on_page
from streamlit.testing.v1 import AppTest

from explorer.components import wire
from explorer.memory import passes

MAIN = str(Path(__file__).resolve().parent.parent / "explorer/main.py")


def opened(**query: str) -> AppTest:
    app = AppTest.from_file(MAIN, default_timeout=120)
    for name, value in query.items():
        app.query_params[name] = value
    app.run()
    return app.switch_page("../pages/tour.py").run()


def header(app: AppTest) -> dict:
    (drawn,) = [one for one in on_page(app) if one.proto.component_name == "headlight.tour"]
    return wire.decode(drawn.proto.bytes)[0]


def test_a_weight_is_the_softmax_of_its_row() -> None:
    shown = header(opened(tour="qkv"))
    recording = passes.record(
        "encoder", "The animal didn't cross the street because it was too tired."
    )
    scores = recording.attention[0].scores[1, 5, 9].astype(np.float64)
    weights = np.exp(scores) / np.exp(scores).sum()
    assert shown["says"][1] == f"{weights[2]:.2f}"
