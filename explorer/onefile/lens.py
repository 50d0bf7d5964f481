"""What the model would say at every layer: the logit lens as a file."""

from __future__ import annotations

from explorer.analysis import lens as reading
from explorer.analysis.caption import caption
from explorer.components import lens as pictures
from explorer.onefile.asked import Asked
from explorer.onefile.sheet import FIRST, Choice, Sheet, View
from models import library
from models.prediction import Lens
from models.recording import Recording


def lens(asked: Asked) -> Sheet:
    """The likeliest word of every site at every token, and a token's way. Choices: site, token,
    lens (the colour).

    Raises ValueError for a model that says no words.
    """
    recording = asked.recording
    if why := library.offers(asked.model).no_readout:
        raise ValueError(f"{recording.model.name} {why}, so it predicts no words")
    stream = reading.read_stream(recording)
    found = library.lens(asked.model, recording, stream.name)
    token = asked.whole("token", len(stream.tokens))
    token = reading.asked_token(recording) if token is None else token
    site = asked.choices.get("site") or found.sites[-1]
    if site not in found.sites:
        raise ValueError(f"site is {site!r}; it can be {', '.join(found.sites)}")
    measure = asked.one_of("lens", tuple(reading.MEASURES))
    colours = [(name, "", {"measure": name}) for name in reading.MEASURES]
    ways = {str(at): _way(asked, found, at) for at in range(len(stream.tokens))}
    return Sheet(
        f"What would {recording.model.name} say at each layer?",
        caption(recording, of="logit lens"),
        [
            Choice("Colour of the cells", colours, column=2),
            View("lens", {FIRST: _grid(asked, found)}, sets=("measure",), column=2),
            View("lens", ways, ("token",), ("site",), 2, "lens way"),
        ],
        {"token": token, "site": found.sites.index(site), "measure": measure},
        f"headlight-{recording.model.name}-lens",
        "predictions",
        asked.address(token=token),
    )


def _axes(asked: Asked, found: Lens) -> pictures.Axes:
    return pictures.Axes(
        [reading.site_name(one) for one in found.sites],
        [reading.site_words(one) for one in found.sites],
        reading.read_stream(asked.recording).tokens,
    )


def _grid(asked: Asked, found: Lens) -> bytes:
    recording = asked.recording
    right = reading.truth(recording, _plain(asked))
    ids = [int(each) for each in reading.vocabulary(found, right, pictures.TOP_SHOWN)]
    said = pictures.Asked(reading.asks_next(recording), "Top word", recording.model.n_vocab)
    words = dict(zip(ids, asked.labels(ids)))
    return pictures.grid(found, right, words, _axes(asked, found), said, "lens")


def _plain(asked: Asked) -> Recording:
    """The same text with nothing edited: what would be right is read from it."""
    recording = asked.recording
    if not recording.edits:
        return recording
    return library.record(asked.model, recording.text, (), asked.target)


def _way(asked: Asked, found: Lens, token: int) -> bytes:
    column = reading.column(found, token)
    right = reading.truth(asked.recording, _plain(asked))
    ids = [int(each) for each in reading.named(column, right)]
    labels = dict(zip(ids, asked.labels(ids)))
    return pictures.way(column, len(column) - 1, labels, _axes(asked, found), f"way {token}")
