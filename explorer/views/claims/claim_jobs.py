"""Claims put to the test in the background: quick ones first, the rest filled in while the reader
reads."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep

from explorer.analysis.evidence import Claim, ClaimContext, Verdict, evaluate_claim
from explorer.state import cache, jobs, models
from explorer.text import claims
from models.edits import from_line
from models.recording import Recording

LOOK = 0.05  # seconds between two looks of someone who waits for the end
PERMUTED = "@permuted"  # behind a model's name: the same with its weights in random order
NO_NORM = "-no-norm"  # behind a model's name: trained without LayerNorm from the first step on


def begun(model: str, text: str, target: str | None) -> jobs.Job:
    """The tests of all claims on a text, at work or done: `latest` holds the findings so far by
    claim, None before the first."""
    recording = cache.record(model, text, target=target)
    found = jobs.recording_job(recording, "claims", lambda: _one_by_one(model, text, target))
    found.resume()
    return found


def finished(model: str, text: str, target: str | None) -> dict[str, Verdict]:
    """All findings, waited for."""
    while not (tests := begun(model, text, target)).finished:
        sleep(LOOK)
    return tests.latest or {}


def _one_by_one(model: str, text: str, target: str | None) -> Iterator[dict[str, Verdict]]:
    found: dict[str, Verdict] = {}
    for claim in claims.IN_TURN:
        # From the shelf each time, and one claim at a time whoever asks: the runs that one takes
        # may be hundreds of megabytes, and none is held in between.
        def settled(claim: Claim = claim) -> Verdict:
            return evaluate_claim(claim, material(cache.record(model, text, target=target), text))

        found = {**found, claim.id: jobs.run_exclusively(settled)}
        yield found


def material(recording: Recording, text: str) -> ClaimContext:
    """Build what claims are tested with: the recording, and its model through the app's cache."""
    model, last = recording.model.name, recording.streams[-1]
    two = len(recording.streams) > 1
    said = tuple(map(int, last.ids[1:])) if two else None

    def again(edits: str, other: str, target: tuple[int, ...] | None) -> Recording:
        own = said if target is None and not other else target
        edited = from_line(edits)
        return cache.record_uncached(model, other or text, edited, own if two else None)

    def stepwise(rows: int) -> list:
        writing = jobs.Draft(model, text if two else "").writing
        if writing.ids != [int(last.ids[0])]:
            raise ValueError("a text that begins with one token of its own")
        scores = [writing.logits]
        for id in last.ids[1:rows]:
            writing.add(int(id))
            scores.append(writing.logits)
        return scores

    def chance() -> ClaimContext:
        return material(cache.record(model + PERMUTED, text, target=said), text)

    def bare() -> Recording | None:
        other = model + NO_NORM
        return cache.record(other, text, target=said) if other in models.cards() else None

    return ClaimContext(
        recording,
        again,
        norms=lambda stream: cache.norms(recording, stream),
        outputs=lambda: cache.outputs(recording),
        jacobian=lambda stream, token, site: cache.jacobian(recording, stream, token, site),
        highway=lambda stream, token: cache.stream_gradients(recording, stream, token),
        lens=lambda stream: cache.lens(recording, stream),
        logits=lambda stream, token: cache.logits(recording, stream, token),
        embeddings=lambda: models.embeddings(model),
        stepwise=stepwise,
        depth=lambda stream: cache.depth_gradients(recording, stream),
        chance=chance,
        bare=bare,
    )
