"""What a sweep of patches costs beside one pass after the other: `python -m benchmarks.patching
[MODEL [SITES]]`. Every site, or about so many, at every token of a sentence; both in turn, and the
share of the one in the other."""

from __future__ import annotations

import sys
import time

import torch

from models.network.layers import Patch
from models.readouts.patching import OwnRun
from models.runtime import registry

TEXT = "The waiter brought the soup to the guest because it was very hot"
DONOR = "The waiter brought the soup to the guest because he was very hot"


@torch.inference_mode()
def one_by_one(run: OwnRun, stream: str, site: str, token: int) -> float:
    """The difference with one patch, by a whole pass over the text."""
    vectors = run.vectors(stream, site)
    assert vectors is not None
    edits = (*run.edits, Patch(site, vectors, token=token))
    scores = run.model.network.logits(run.model.network(run.ids[0], edits=edits)[0, run.token])
    logit, other = scores[run.words].tolist()
    return float(logit - other)


def main(name: str = "smollm2", most_sites: int = 1000) -> tuple[int, float]:
    """Print the seconds of both, and return how many places and the sweep's share."""
    model = registry.load(name)
    stream = model.capabilities.logits
    run = OwnRun(model, TEXT, DONOR, (), -1, 11, 7)
    begun = time.perf_counter()
    sweep = model.patch_sites(TEXT, DONOR, stream, -1, 11, 7)
    step = max(1, len(sweep.rows) // most_sites)
    sweep = sweep.only(sweep.rows[::step])
    found = {effect.place: effect.value for effect in sweep.effects}
    batched = time.perf_counter() - begun
    begun = time.perf_counter()
    for place, value in found.items():
        assert abs(one_by_one(run, stream, *place) - value) < 1e-2, place
    single = time.perf_counter() - begun
    print(f"{name}: {len(sweep.rows)} sites x {len(sweep.columns)} tokens")
    print(f"one by one {single:.1f} s, the sweep {batched:.1f} s: {batched / single:.2f}")
    return sweep.places, batched / single


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
