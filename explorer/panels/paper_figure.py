"""The panel that draws a model in the shape of the paper's figure: an encoder and a decoder side by
side, those that the model has lit, with its own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlencode

from explorer.analysis import ffn, residual
from explorer.analysis.terminology import recording_norm_name
from explorer.figures.formatting import plural
from explorer.figures.kinds import Block, PaperFigure, Tier, Tower
from explorer.panels import flow_way, spec
from explorer.panels.choice import OPENS
from explorer.panels.predictions import Prediction, prediction_at
from explorer.panels.selection import WordOnItsWay, model_name, place_of
from explorer.panels.spec import Panel
from explorer.wording.templates import sentences
from models.contract.edits import HideToken, WithoutNorm, applies
from models.contract.recording import Attention, Recording, Stream
from models.runtime.caching import loaded
from models.runtime.run import Run, run_of

CONCEPT = "paper_figure"
WORDS = sentences(CONCEPT, "stacks")
LONGEST = 24  # letters of the text that stands under a stack
SIDES = ("encoder", "decoder")
# Sub-layers of the paper's stacks, by their places in a layer.
OF_PAPER = {"encoder": ("attn", "ffn"), "decoder": ("attn", "cross", "ffn")}
FORMULAS = ("attention", "add-norm", "pre-norm")


@dataclass(frozen=True, eq=False)
class Machine:
    """A model as its stacks are drawn: the recording, and what it predicts, None for no words."""

    recording: Recording
    prediction: Prediction | None

    @cached_property
    def streams(self) -> Mapping[str, Stream]:
        """The stream of each stack that the model has."""
        kind = self.recording.model.kind
        sides = SIDES if kind == "encoder-decoder" else (kind,)
        return dict(zip(sides, self.recording.streams))

    @cached_property
    def norm(self) -> str:
        """The name of its norms."""
        return recording_norm_name(self.recording, loaded(self.recording).capabilities.rms)

    def attention(self, side: str, place: str) -> Attention | None:
        """The attention that writes at a place of a layer."""
        name, is_across = self.streams[side].name, place == "cross"
        attentions = (each for each in self.recording.attention if each.query == name)
        return next((each for each in attentions if (each.query != each.key) == is_across), None)

    def ends_normed(self, side: str) -> bool:
        """True where a norm stands after the last layer."""
        return "final.normed" in self.streams[side].sites

    @property
    def word_width(self) -> int:
        """The width of the embedding of a word."""
        width = loaded(self.recording).capabilities.embedding_width
        return width or self.recording.model.d_model


@spec.predicts
@spec.panel
def stacks(run: Run, token: WordOnItsWay = OPENS) -> Panel:
    """The model in the shape of the paper's figure: encoder and decoder side by side, those that
    it has lit, with its layers, heads and widths, and the likeliest word of the text on top.

    token: the one at which the word is predicted, hidden from a model that fills in words; where
    None the one that the flow opens on; of a translator's text, to whose translation it belongs.
    Raises ValueError for a token that is not there and for a
    model that shows no sub-layers.
    """
    recording, prediction = _read(run, token)
    if not all(map(residual.sublayers, recording.streams)):
        raise ValueError(WORDS("none", model=model_name(recording)))
    machine = Machine(recording, prediction)
    towers = tuple(_tower(machine, side) for side in SIDES)
    card = recording.model
    slots = {"model": model_name(recording)}
    slots |= {"layers": plural(card.n_layer, "layer"), "heads": plural(card.n_head, "head")}
    stream = run.recording().streams[-1]
    at = token if prediction is None else prediction.at.token
    slots["token"] = stream.tokens[at]
    own = machine.attention(list(machine.streams)[-1], "attn")
    if prediction is not None:
        slots |= dict(zip(("answer", "p"), prediction.answer))
    name = "silent" if prediction is None else "finding"
    normed = loaded(recording).capabilities.norm in ("branch", "both")
    branch = (WORDS("branch", norm=machine.norm),) if normed else ()
    return Panel(
        title=WORDS("title"),
        finding=WORDS(f"{name}_{card.kind}", **slots),
        figures=(PaperFigure(select=("address",), towers=towers),),
        table=_columns_of(towers),
        details=(*WORDS.lines("details"), *branch),
        caption=(WORDS("caption", **slots),),
        file="paper-figure",
        formulas=FORMULAS,
        at={
            **{"layer": 0, "stream": stream.name, "token": at, "run": run_of(recording)},
            "attention": own.name if own else "",
        },
    )


def _read(run: Run, token: int) -> tuple[Recording, Prediction | None]:
    """The recording that is drawn and what it predicts: of a model that fills in words the one in
    which the token is hidden."""
    recording = run.recording()
    if loaded(recording).capabilities.no_readout:
        return recording, None
    if len(recording.streams) > 1:
        source, written = recording.streams[0], recording.streams[-1]
        token = place_of("token", token, len(source.tokens))
        return recording, prediction_at(run, flow_way.aligned(recording, written, token))
    token = place_of("token", token, len(recording.streams[0].tokens))
    if flow_way.can_hide(run, {"token": token}):
        run = run.under((*run.edits, HideToken(token)))
    return run.recording(), prediction_at(run, token)


def _tower(machine: Machine, side: str) -> Tower:
    """A stack: the model's, or the paper's, pale and without numbers."""
    if side not in machine.streams:
        return _pale(side)
    recording, stream = machine.recording, machine.streams[side]
    card, prediction = recording.model, machine.prediction
    above = [_norm_block(machine, side, "last_norm")] if machine.ends_normed(side) else []
    speaks = prediction is not None and prediction.at.stream.name == stream.name
    if speaks:
        narrowed = (machine.word_width,) if machine.word_width != card.d_model else ()
        size = " → ".join(f"{each:,}" for each in (card.d_model, *narrowed, card.n_vocab))
        key = urlencode({"tab": "word"})
        above.append(Block("readout", WORDS("linear"), size, key))
    return Tower(
        WORDS(side),
        WORDS("count", n=len({each.layer for each in residual.sublayers(stream)} - {-1})),
        _under(machine, side),
        _layer(machine, side),
        tuple(above),
        " ".join(prediction.answer) if speaks and prediction is not None else "",
        lit=True,
    )


def _pale(side: str) -> Tower:
    """A stack that the model does not have."""
    tiers = tuple(
        Tier(
            (Block("ffn" if place == "ffn" else "attention", _name(side, place)),),
            Block("norm", WORDS("add_norm")),
            "post",
            _reads(place),
            WORDS("aside") if place == "cross" else "",
        )
        for place in OF_PAPER[side]
    )
    above = () if side == "encoder" else (Block("readout", WORDS("linear")),)
    under = (
        Block("words", WORDS("inputs" if side == "encoder" else "outputs")),
        Block("embedding", WORDS("embedding")),
        Block("sum", "+", WORDS("position")),
    )
    return Tower(WORDS(side), WORDS("any"), under, tiers, above)


def _name(side: str, place: str) -> str:
    """Name of a sub-layer."""
    if place == "attn":
        return WORDS("attention" if side == "encoder" else "masked")
    return WORDS(place)


def _reads(place: str, positions: str | None = None) -> str:
    """Inputs of a sub-layer from below. positions: of the model, which an attention may hold."""
    if place == "ffn":
        return ""
    if place == "cross":
        return WORDS("reads_query")
    if positions == "rotary":
        return WORDS("rotated")
    return WORDS("biased" if positions in ("distance", "buckets", "relative") else "reads")


def _under(machine: Machine, side: str) -> tuple[Block, ...]:
    """Boxes under the first layer: the text, its embeddings, and what is added to them."""
    stream, card = machine.streams[side], machine.recording.model
    capabilities = loaded(machine.recording).capabilities
    slots = {"vocab": f"{card.n_vocab:,}", "d": f"{machine.word_width:,}"}
    table = WORDS("scaled" if capabilities.scaled_embedding else "table", **slots)
    is_second = len(machine.streams) > 1 and side == "decoder"
    blocks = [
        Block("words", WORDS("outputs" if is_second else "inputs"), _shortened(stream.tokens)),
        Block("embedding", WORDS("embedding"), table, urlencode({"tab": "embeddings"})),
    ]
    if capabilities.positions in ("sinusoids", "learned"):
        key = urlencode({"tab": "positions"})
        blocks.append(Block("sum", "+", WORDS(capabilities.positions), key))
    if "embed.normed" in stream.sites:
        blocks.append(_norm_block(machine, side, "norm"))
    if machine.word_width != card.d_model:
        if capabilities.widened_normed and not applies(machine.recording.edits, WithoutNorm):
            blocks.append(Block("norm", WORDS("norm"), machine.norm))
        widens = f"{machine.word_width:,} → {card.d_model:,}"
        blocks.append(Block("embedding", WORDS("widen"), widens))
    return tuple(blocks)


def _shortened(tokens: Sequence[str]) -> str:
    """The first tokens of a text."""
    label = tokens[0]
    for at, token in enumerate(tokens[1:], 1):
        if len(label) + len(token) > LONGEST:
            return WORDS("more", tokens=label)
        label += f" {token}" if at else token
    return label


def _norm_block(machine: Machine, side: str, name: str) -> Block:
    """A norm, which leads to the steps of one."""
    at = {"tab": "residual", "flow": "LayerNorm", **_of(machine, side)}
    return Block("norm", WORDS(name), machine.norm, urlencode(at))


def _of(machine: Machine, side: str) -> dict[str, str]:
    """The stream of a stack in an address, which needs none for the first one."""
    stream = machine.streams[side]
    return {} if stream is machine.recording.streams[0] else {"stream": stream.name}


def _layer(machine: Machine, side: str) -> tuple[Tier, ...]:
    """The sub-layers of a stack's first layer."""
    stream, capabilities = machine.streams[side], loaded(machine.recording).capabilities
    places = list(
        dict.fromkeys(each.place for each in residual.sublayers(stream) if each.layer == 0)
    )
    norm = residual.norm_place(stream)
    rows = [places] if capabilities.parallel else [[each] for each in places]
    block = {
        "post": lambda: _norm_block(machine, side, "add_norm"),
        "pre": lambda: _norm_block(machine, side, "norm"),
    }
    return tuple(
        Tier(
            tuple(_block(machine, side, each) for each in row),
            block[norm]() if norm in block else None,
            norm or "",
            _reads(row[0], capabilities.positions),
            WORDS("aside") if "cross" in row else "",
            residual.has_residual(stream),
        )
        for row in rows
    )


def _block(machine: Machine, side: str, place: str) -> Block:
    """A sub-layer with its sizes."""
    recording, card = machine.recording, machine.recording.model
    if place == "ffn":
        at = {"tab": "feedforward", "layer": "0", **_of(machine, side)}
        return Block("ffn", WORDS("ffn"), _sizes(recording, machine.streams[side]), urlencode(at))
    attention = machine.attention(side, place)
    keys = loaded(recording).capabilities.key_heads
    is_shared = keys is not None and keys != card.n_head
    size = WORDS(
        "shared" if is_shared else "heads", heads=card.n_head, width=card.d_head, keys=keys
    )
    at = {"tab": "heads"}
    if attention is not None and attention is not recording.attention[0]:
        at["attention"] = attention.name
    return Block("attention", _name(side, place), size, urlencode(at))


def _sizes(recording: Recording, stream: Stream) -> str:
    """The widths of a feed-forward network and its activation, "" where it cannot be read."""
    model, d = loaded(recording), f"{recording.model.d_model:,}"
    try:
        hidden = model.ffn_activations(recording, stream.name, 0, 0)
    except ValueError:
        return ""
    units = f"{len(hidden.after):,}"
    name = model.capabilities.gate or ffn.activation_of(hidden)
    return WORDS("sizes" if name else "sizes_alone", d=d, units=units, activation=name)


def _columns_of(towers: Sequence[Tower]) -> spec.Columns:
    """The blocks that the model has, from below to above."""
    rows = []
    for tower in (each for each in towers if each.lit):
        inside = []
        for tier in tower.layer:
            own = [*tier.blocks, *([tier.norm] if tier.norm else [])]
            inside += own[::-1] if tier.place == "pre" else own
        rows += [(tower, each) for each in (*tower.under, *inside, *tower.above)]
    return {
        "stack": [tower.title for tower, _ in rows],
        "block": [each.name for _, each in rows],
        "what it has": [each.text for _, each in rows],
    }
