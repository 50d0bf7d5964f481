"""What the model would say at every layer: the logit lens as a file."""

from __future__ import annotations

from explorer.analysis import logit_lens
from explorer.analysis.caption import caption
from explorer.components.logit_lens import TOP_SHOWN, CellContent, LensAxes, grid, way
from explorer.html_export.document_spec import FIRST, ButtonRow, DocumentSpec, View
from explorer.html_export.request import ExportRequest
from models.recording import Recording
from models.results import Lens


def lens(asked: ExportRequest) -> DocumentSpec:
    """The likeliest word of every site at every token, and a token's way. Choices: site, token,
    lens (the colour).

    Raises ValueError for a model that says no words.
    """
    recording = asked.recording
    if why := asked.model.capabilities.no_readout:
        raise ValueError(f"{recording.model.name} {why}, so it predicts no words")
    stream = logit_lens.read_stream(recording)
    found = asked.model.lens(recording, stream.name)
    token = asked.whole("token", len(stream.tokens))
    token = logit_lens.default_token(recording) if token is None else token
    site = asked.choices.get("site") or found.sites[-1]
    if site not in found.sites:
        raise ValueError(f"site is {site!r}; it can be {', '.join(found.sites)}")
    measure = asked.one_of("lens", tuple(logit_lens.MEASURES))
    colours = [(name, "", {"measure": name}) for name in logit_lens.MEASURES]
    ways = {str(at): _way(asked, found, at) for at in range(len(stream.tokens))}
    return DocumentSpec(
        f"What would {recording.model.name} say at each layer?",
        caption(recording, subject="logit lens"),
        [
            ButtonRow("Colour of the cells", colours, column=2),
            View("logit_lens", {FIRST: _grid(asked, found)}, (), ("measure",), 2, "lens"),
            View("logit_lens", ways, ("token",), ("site",), 2, "lens way"),
        ],
        {"token": token, "site": found.sites.index(site), "measure": measure},
        f"headlight-{recording.model.name}-lens",
        "predictions",
        asked.address(token=token),
    )


def _axes(asked: ExportRequest, found: Lens) -> LensAxes:
    return LensAxes(
        [logit_lens.site_name(one) for one in found.sites],
        [logit_lens.site_words(one) for one in found.sites],
        logit_lens.read_stream(asked.recording).tokens,
    )


def _grid(asked: ExportRequest, found: Lens) -> bytes:
    recording = asked.recording
    right = logit_lens.target_ids(recording, _plain(asked))
    ids = [int(each) for each in logit_lens.vocabulary(found, right, TOP_SHOWN)]
    said = CellContent(logit_lens.predicts_next(recording), "Top word", recording.model.n_vocab)
    words = dict(zip(ids, asked.labels(ids)))
    return grid(found, right, words, _axes(asked, found), said, "lens")


def _plain(asked: ExportRequest) -> Recording:
    """The same text with nothing edited: what would be right is read from it."""
    recording = asked.recording
    if not recording.edits:
        return recording
    return asked.model.record(recording.text, (), asked.target)


def _way(asked: ExportRequest, found: Lens, token: int) -> bytes:
    column = logit_lens.column(found, token)
    right = logit_lens.target_ids(asked.recording, _plain(asked))
    ids = [int(each) for each in logit_lens.named_ids(column, right)]
    labels = dict(zip(ids, asked.labels(ids)))
    return way(column, len(column) - 1, labels, _axes(asked, found), f"way {token}")
