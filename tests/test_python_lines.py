"""What the Export menu's Python gives where no panel does: every table that the page offers, cell
for cell. The line of a panel is in `tests/test_panels.py`."""

from __future__ import annotations

import time
from functools import cache

import pytest
from export_harness import TEXT, Lined, again, heard, opened, places, ran

from explorer.state import jobs
from explorer.state.cache import record_training
from explorer.state.jobs import TRAINING_KEY


@cache
def learned() -> tuple[Lined, bool]:
    """A training of the reader's own that was stopped and went on; and whether what its lines train
    is the same model, by its attention on the text and by its whole curve."""
    with heard() as offered:
        app = opened(offered, "training", train_view="Live", live_task="copy")
        try:
            for button in ("live start", "live on"):
                app.button(key=button).click().run()
                one = app.session_state[TRAINING_KEY]
                begun, until = one.progress.step, time.monotonic() + 120
                while one.learning and one.progress.step < begun + 30:
                    assert time.monotonic() < until
                    time.sleep(0.1)
                jobs.trainings.stop(one)
                while one.learning:
                    time.sleep(0.1)
                again(app, offered)
            made, names = ran(app, offered)
            same = names["recording"] == record_training(one.run, TEXT)
            return made, same and names["run"].progress.curve == one.progress.curve
        finally:
            jobs.trainings.stop(one)


@pytest.mark.slow
def test_the_lines_train_the_readers_own_model_again() -> None:
    made, same = learned()
    assert same
    assert not made.without and len(made.offers) == 1


@pytest.mark.slow
def test_no_table_of_the_app_is_left_out() -> None:
    seen = learned()[0].lines
    left = {
        place
        for place in places()
        if not any((place[0], line) in seen for line in range(place[1], place[2] + 1))
    }
    assert places() and not left
