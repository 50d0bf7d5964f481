"""The architecture of a model as a diagram, with what every block does to one word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

import numpy as np

from explorer.analysis import residual
from explorer.analysis.figures import Block, BlockStack, Diagram, Section
from explorer.analysis.formatting import fixed, tenths
from explorer.panels import spec
from explorer.panels.choice import TRUE, Choice
from explorer.panels.selection import place_of
from explorer.panels.spec import Panel
from explorer.text.templates import sentences
from models import model_card, model_names
from models.caching import loaded
from models.recording import Attention, Recording, Stream
from models.results import softmax
from models.run import Run

CONCEPT = "architecture"
MOST_LAYERS = 8  # of a stack that are drawn one by one
N_ENDS, N_STRONGEST = 2, 2  # of more: the first and the last, and those that rotate the word most
WORDS = 3  # predictions that are listed
FULL_ROTATION = 90.0  # degrees at which a block has the darkest fill


@dataclass(frozen=True)
class Step:
    """Effect of one sub-layer on a token: the angle between the vectors before and after it in
    degrees, and the norms of its update and of the vector after it."""

    sublayer: residual.SubLayer
    rotation: float
    update: float
    after: float


@spec.panel
def diagram(
    run: Run,
    token: int | None = None,
    every_layer: Annotated[
        bool, Choice(name="diagram_layers", help="every layer of a deep model, and none folded")
    ] = False,
) -> Panel:
    """Every block of the model in order, with what it does to a token of the first stream, the one
    that is rotated most where None. Of a deep model layers are folded, unless `every_layer`. Raises
    ValueError for a token that is not there, and for a model that does not show its stream."""
    recording, words = run.recording(), sentences(CONCEPT, "diagram")
    if not recording.streams or not residual.sublayers(recording.streams[0]):
        raise ValueError(words("closed", model=model_names.title(recording.model.name)))
    first = recording.streams[0]
    token = residual.most_turned_token(first) if token is None else token
    token = place_of("token", token, len(first.tokens))
    tokens = [token, *(aligned(recording, stream, token) for stream in recording.streams[1:])]
    followed = list(zip(recording.streams, tokens))
    steps = [steps_of(stream, at) for stream, at in followed]
    stacks = tuple(
        _stack(recording, stream, at, list_, every_layer)
        for (stream, at), list_ in zip(followed, steps)
    )
    rows = [(stream, each) for (stream, _), list_ in zip(followed, steps) for each in list_]
    in_layers = [each for each in steps[0] if each.sublayer.layer >= 0]
    ranked = sorted(in_layers, key=lambda each: -np.nan_to_num(each.rotation))
    parts = [
        words(
            name,
            word=first.tokens[token],
            block=words(f"{each.sublayer.place}_of"),
            layer=each.sublayer.layer,
            rotation=fixed(each.rotation, 0),
        )
        for name, each in zip(("finding", "second"), ranked)
    ]
    return Panel(
        words("title"),
        " ".join(parts),
        (Diagram(note=words("note"), select=("address",), stacks=stacks),),
        table={
            "stream": [stream.name for stream, _ in rows],
            "block": [each.sublayer.name for _, each in rows],
            "rotation °": np.array([each.rotation for _, each in rows]),
            "norm of the update": np.array([each.update for _, each in rows]),
            "norm after it": np.array([each.after for _, each in rows]),
        },
        details=words.lines("details"),
        caption=(words("caption", word=first.tokens[token], token=token),),
    )


def steps_of(stream: Stream, token: int) -> list[Step]:
    """Effect of every sub-layer on a token, in order."""
    result = []
    for each in residual.sublayers(stream):
        before, update, after = (
            residual.site_vectors(stream, site)[token]
            for site in (each.before, each.wrote, each.after)
        )
        result.append(
            Step(
                each,
                float(residual.degrees(before, after)),
                float(np.linalg.norm(update)),
                float(np.linalg.norm(after)),
            )
        )
    return result


def aligned(recording: Recording, stream: Stream, token: int) -> int:
    """The token of a further stream that attends most to a token of the first one, on average over
    the heads."""
    for each in recording.attention:
        if each.query == stream.name and each.key == recording.streams[0].name:
            return int(each.pattern[..., token].mean((0, 1)).argmax())
    return 0


def _stack(
    recording: Recording, stream: Stream, token: int, steps: list[Step], every_layer: bool
) -> BlockStack:
    words = sentences(CONCEPT, "diagram")
    layers = sorted({each.sublayer.layer for each in steps if each.sublayer.layer >= 0})
    drawn = layers if every_layer else folded(layers, steps)
    stages = [Section(words("input"), tuple(_input(stream, token, steps)))]
    last = -1
    for layer in drawn:
        if layer - last > 1:
            stages.append(_fold(last + 1, layer - 1, steps))
        blocks = tuple(
            _block(recording, stream, token, each) for each in steps if each.sublayer.layer == layer
        )
        stages.append(Section(words("layer", layer=layer), blocks))
        last = layer
    stages.append(Section(words("output"), tuple(_output(recording, stream, token))))
    one = len(recording.streams) == 1
    title = (
        "" if one else words("stack", stream=stream.name.capitalize(), word=stream.tokens[token])
    )
    return BlockStack(title, stream.tokens[token], tuple(stages))


def folded(layers: list[int], steps: list[Step]) -> list[int]:
    """Of many layers those that are drawn: the ends, and those that rotate the word most."""
    if len(layers) <= MOST_LAYERS:
        return layers
    rotation = {
        layer: max(np.nan_to_num(each.rotation) for each in steps if each.sublayer.layer == layer)
        for layer in layers
    }
    inner = sorted(layers[N_ENDS:-N_ENDS], key=lambda layer: -rotation[layer])
    return sorted((*layers[:N_ENDS], *inner[:N_STRONGEST], *layers[-N_ENDS:]))


def _fold(first: int, last: int, steps: list[Step]) -> Section:
    words = sentences(CONCEPT, "diagram")
    inside = [each.rotation for each in steps if first <= each.sublayer.layer <= last]
    label = words("layers" if last > first else "layer", layer=first, first=first, last=last)
    text = words("at_most", rotation=fixed(float(np.nanmax(inside)), 0))
    key = urlencode({"diagram_layers": TRUE})
    return Section(label, (Block(words("folded"), words("open"), text, key=key),))


def _input(stream: Stream, token: int, steps: list[Step]) -> Iterator[Block]:
    words = sentences(CONCEPT, "diagram")
    length = float(np.linalg.norm(residual.site_vectors(stream, stream.sites[0])[token]))
    norm = words("norm", norm=fixed(length, 1))
    about = words("width", width=stream.resid.shape[-1])
    key = {"tab": "embeddings"}
    yield Block(words("embedding"), about, norm, key=urlencode(key))
    for each in steps:
        if each.sublayer.layer < 0:
            text = words("norm", norm=fixed(each.update, 1))
            yield Block(words("position"), words("added"), text, writes=True, key="tab=positions")


def _block(recording: Recording, stream: Stream, token: int, step: Step) -> Block:
    words, place = sentences(CONCEPT, "diagram"), step.sublayer.place
    strength = float(np.clip(np.nan_to_num(step.rotation) / FULL_ROTATION, 0, 1))
    norm = residual.norm_place(stream) or ""
    text = words("rotation", rotation=fixed(step.rotation, 0))
    if place == "ffn":
        width = model_card.facts(recording.model.name).get("config", {}).get("d_ff")
        about = words("neurons", n=width) if width else ""
        at = {"tab": "feedforward", "layer": step.sublayer.layer, "token": token}
        if stream is not recording.streams[0]:
            at["stream"] = stream.name
        return Block(words("ffn"), about, text, strength, True, norm, urlencode(at))
    attention = attention_of(recording, stream, cross=place == "cross")
    about = words("heads", n=attention.pattern.shape[1]) if attention else ""
    key = _heads_address(recording, attention, step.sublayer.layer, token) if attention else ""
    return Block(words(place), about, text, strength, True, norm, key)


def attention_of(recording: Recording, stream: Stream, cross: bool) -> Attention | None:
    """The attention whose queries are of a stream: on itself, or `cross`."""
    return next(
        (
            each
            for each in recording.attention
            if each.query == stream.name and (each.key != stream.name) == cross
        ),
        None,
    )


def _heads_address(recording: Recording, attention: Attention, layer: int, token: int) -> str:
    """The address of the head of a layer in which the token attends most plainly to another."""
    rows = attention.pattern[layer, :, token].copy()
    rows[:, recording.stream(attention.key).special] = 0
    if attention.query == attention.key:
        rows[:, token] = 0
    name = "" if attention is recording.attention[0] else attention.name
    head = int(rows.max(-1).argmax())
    choices = {"tab": "heads", "attention": name, "layer": layer, "head": head, "token": token}
    return urlencode(choices)


def _output(recording: Recording, stream: Stream, token: int) -> Iterator[Block]:
    words = sentences(CONCEPT, "diagram")
    if "final.normed" in stream.sites:
        yield Block(words("norm_block"), key="tab=residual")
    capabilities = loaded(recording).capabilities
    if capabilities.logits != stream.name:
        feeds = len(recording.streams) > 1
        yield Block(words("to_decoder" if feeds else "vectors"), key="tab=residual")
        return
    p = softmax(loaded(recording).logits(recording, stream.name, token))
    best = np.argsort(-p)[:WORDS]
    labels = loaded(recording).labels(best.tolist())
    fills = recording.model.kind == "encoder"
    tab = "word" if len(recording.streams) == 1 else "translate"
    yield Block(words("readout"), words("vocabulary", n=len(p)), key=f"tab={tab}")
    yield Block(
        words("here" if fills else "next"),
        words("visible") if fills else "",
        "\n".join(f"{label} {tenths(p[id])}" for label, id in zip(labels, best)),
        key=f"tab={tab}",
    )
