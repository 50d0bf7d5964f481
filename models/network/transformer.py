"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017), in the paper's order and
with its names.

Axis legend, used in every comment below:
    batch    texts side by side            head     0 .. n_head-1
    query    the position that looks       d_model  width of the residual stream
    key      the position looked at        d_head   d_model / n_head, the paper's d_k = d_v
    token    a position of one stream      d_ff     inner width of the feed-forward network

The paper's three arrangements are built from the same layers: `Encoder` (every token sees every
token), `Decoder` (a causal mask, and no second stream) and `EncoderDecoder` (a decoder that also
looks at what the encoder made of another text). What later models changed is a choice in `Config`:
where LayerNorm stands, learned positions and GELU here, the parts that took a part's place in
`models/network/layers.py`. The stream begins in `models/network/embedding.py`; the heads are in
`models/network/attention.py`.

Observation is an argument (`models/network/layers.py`), and so are edits
(`models/contract/edits.py`): nothing is stored on a module, so two people who share a model never
see each other's changes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.contract.cancellation import layer_checkpoint
from models.contract.capabilities import without_readout
from models.contract.edits import (
    Edit,
    MoveNorm,
    ShufflePositions,
    SideBySide,
    SiteEdit,
    WithoutFeedForward,
    WithoutNorm,
    WithoutResidual,
    applies,
    edited,
    edits_at,
    last_edit,
    of_stream,
)
from models.network.attention import (
    KVCache,
    MultiHeadAttention,
    encoder_mask,
    self_attention_mask,
    self_attention_masks,
)
from models.network.config import ACTIVATIONS, Config
from models.network.embedding import Embedding
from models.network.layers import (
    GatedFeedForward,
    Norm,
    Patch,
    Path,
    Tape,
    apply_norm,
    hook_point,
    no_tape,
    norm_of,
    with_paths,
)
from models.network.linear import Linear, product


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same at every position, section 3.3."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.w_1 = Linear(config.d_model, config.d_ff, bias=config.bias_ffn)
        self.w_2 = Linear(config.d_ff, config.d_model, bias=config.bias_ffn)
        self.activation = config.activation

    def before(self, x: Tensor) -> Tensor:
        """The input of the activation: x (..., d_model) -> (..., d_ff)."""
        return self.w_1(x)

    def hidden(self, x: Tensor) -> Tensor:
        """The hidden units as W_2 reads them: x (..., d_model) -> (..., d_ff)."""
        return ACTIVATIONS[self.activation](self.w_1(x))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, d_model) -> the same shape."""
        hidden = self.hidden(x)  # (batch, token, d_ff)
        return self.w_2(hidden)  # (batch, token, d_model)


class AddAndNorm(nn.Module):
    """LayerNorm(x + Sublayer(x)), the residual connection and post-LN of section 3.1; or x +
    Sublayer(LayerNorm(x)), pre-LN."""

    def __init__(self, config: Config, name: str, layer: int) -> None:
        super().__init__()
        self.name, self.layer, self.sublayer = name, layer, name.rpartition(".")[2]
        self.place, self.residual = config.norm, config.residual
        self.norm = None if config.norm is None else norm_of(config)

    def norm_at(self, edits: tuple[Edit, ...]) -> str | None:
        """The place of LayerNorm: "pre", "post" or None."""
        if not edits:
            return self.place
        if self.norm is None or applies(edits, WithoutNorm, self.layer):
            return None
        move_edit = last_edit(edits, MoveNorm, self.layer)
        return self.place if move_edit is None else move_edit.to

    def adds(self, edits: tuple[Edit, ...]) -> bool:
        """True where the sub-layer's output is added to the stream and does not replace it."""
        return self.residual and not applies(edits, WithoutResidual, self.layer, self.sublayer)

    def is_sum(self, edits: tuple[Edit, ...]) -> bool:
        """True where the stream after the sub-layer is the sum of what was written, so that a part
        of it can be taken off: no norm is behind the sum, and no edit changes it at a site."""
        changes = any(isinstance(each, (Patch, SiteEdit, WithoutResidual)) for each in edits)
        return self.residual and not changes and self.norm_at(edits) != "post"

    def read(self, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        """The input of the sub-layer, from the stream x (batch, token, d_model)."""
        if self.norm is None or self.norm_at(edits) != "pre":
            return x
        return hook_point(
            f"{self.name}.read", apply_norm(self.norm, x, edits, self.layer), tape, edits
        )

    def forward(self, x: Tensor, output: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        """The stream after the sub-layer: x and `output` (batch, token, d_model) -> the same
        shape."""
        for path in edits:
            if isinstance(path, Path) and path.ends_behind(self.layer, self.sublayer):
                output = output if path.without is None else output + (path.without - x)
        after = self._added(x, output, tape, edits)
        for path in edits:
            if isinstance(path, Path):
                self._follow(path, x, output, after, edits)
        return after

    def _added(self, x: Tensor, output: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        output = hook_point(f"{self.name}.wrote", output, tape, edits)
        total = x + output if self.adds(edits) else output
        x = hook_point(f"{self.name}.sum", total, tape, edits)
        if self.norm is None or self.norm_at(edits) != "post":
            return x
        return hook_point(
            f"{self.name}.normed", apply_norm(self.norm, x, edits, self.layer), tape, edits
        )

    def _follow(
        self, path: Path, x: Tensor, output: Tensor, after: Tensor, edits: tuple[Edit, ...]
    ) -> None:
        """The state without what heads wrote, where the state before and `after` this sub-layer's
        output is x and `after`: less their part where the stream is a sum of parts, else made anew,
        under the edits at its sites as the state itself."""
        written, path.written = path.written, None
        if written is None and path.without is None:
            return
        if self.is_sum(edits):
            parts = [each for each in (path.part, written) if each is not None]
            path.part = sum(parts[1:], parts[0])
            path.without = after - path.part
        else:
            before = x if path.without is None else path.without
            output = output if written is None else output - written
            path.without = self._added(before, output, no_tape, edits)


class LastNorm(nn.Module):
    """The LayerNorm at the end of a pre-LN stack. A model of another kind has none of its own, and
    where an edit asks for one, gets one without gain and bias."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.place = config.norm
        self.norm = norm_of(config) if config.ends_normed else None
        self.config = config

    def is_present(self, edits: tuple[Edit, ...]) -> bool:
        """True where the stack ends in a LayerNorm."""
        move_edit = last_edit(edits, MoveNorm)
        ends_normed = self.config.ends_normed if move_edit is None else move_edit.to == "pre"
        return self.place is not None and not applies(edits, WithoutNorm) and ends_normed

    def one(self, dtype: torch.dtype = torch.float32) -> Norm:
        """The norm itself, without gain and bias where the model has learned none."""
        return norm_of(self.config).to(dtype) if self.norm is None else self.norm

    def normed(self, x: Tensor, edits: tuple[Edit, ...] = ()) -> Tensor:
        """x (..., d_model) through it."""
        return apply_norm(self.one(x.dtype), x, edits)

    def forward(self, x: Tensor, tape: Tape, edits: tuple[Edit, ...]) -> Tensor:
        return (
            hook_point("final.normed", self.normed(x, edits), tape, edits)
            if self.is_present(edits)
            else x
        )


class Layer(nn.Module):
    """Self-attention, then in a decoder of two streams attention to the `memory`, then the
    feed-forward network; each with add & norm.

    One of the N identical layers of section 3.1: without `cross` an encoder's (and, under a causal
    mask, one of a decoder without a second stream), with it a decoder's. `label` names its
    attentions, see MultiHeadAttention.
    """

    def __init__(
        self, config: Config, layer: int, label: str = "self", cross: bool = False
    ) -> None:
        super().__init__()
        self.layer, self.parallel = layer, config.parallel
        self.attention = MultiHeadAttention(config, f"{layer}.attn", layer, label)
        self.attention_out = AddAndNorm(config, f"{layer}.attn", layer)
        if cross:
            self.cross = MultiHeadAttention(config, f"{layer}.cross", layer, "cross", cross=True)
            self.cross_out = AddAndNorm(config, f"{layer}.cross", layer)
        self.feed_forward: FeedForward | GatedFeedForward = (
            GatedFeedForward(config) if config.gated else FeedForward(config)
        )
        self.feed_forward_out = AddAndNorm(config, f"{layer}.ffn", layer)

    def forward(
        self,
        x: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        memory: Tensor | None = None,
        memory_allowed: Tensor | None = None,
        stored: KVCache | None = None,
    ) -> Tensor:
        """x (batch, token, d_model) -> the same shape. `memory` (batch, key, d_model): the
        encoder's last vectors, for a layer with `cross`."""
        inputs = self.attention_out.read(x, tape, edits)
        for path in edits:
            if (
                isinstance(path, Path)
                and (path.to_layer == self.layer and path.to != "resid")
                and (path.without is not None)
            ):
                path.inputs = self.attention_out.read(path.without, no_tape, edits)
        ffn_inputs = None
        if self.parallel or applies(edits, SideBySide, self.layer):
            ffn_inputs = self.feed_forward_out.read(x, tape, edits)  # before attention has written
        output = self.attention(inputs, inputs, allowed, tape, edits, stored)
        x = self.attention_out(x, output, tape, edits)  # (batch, token, d_model)
        if memory is not None:
            inputs = self.cross_out.read(x, tape, edits)
            output = self.cross(inputs, memory, memory_allowed, tape, edits, stored)
            x = self.cross_out(x, output, tape, edits)  # (batch, token, d_model)
        if ffn_inputs is None:
            ffn_inputs = self.feed_forward_out.read(x, tape, edits)
        if applies(edits, WithoutFeedForward, self.layer):
            output = torch.zeros_like(x)
        elif edits_at(edits, units := f"{self.layer}.ffn.hidden"):
            hidden = edited(self.feed_forward.hidden(ffn_inputs), edits, units)
            output = self.feed_forward.w_2(hidden)
        else:
            output = self.feed_forward(ffn_inputs)
        return self.feed_forward_out(x, output, tape, edits)  # (batch, token, d_model)

    def share_weights(self, other: Layer) -> None:
        """Use the matrices and norms of another layer."""
        for name in ("w_q", "w_k", "w_v", "w_o", "q_norm", "k_norm"):
            setattr(self.attention, name, getattr(other.attention, name))
        self.attention_out.norm = other.attention_out.norm
        self.feed_forward_out.norm = other.feed_forward_out.norm
        self.feed_forward = other.feed_forward


class Transformer(nn.Module):
    """Base of all three arrangements: one embedding, and a readout tied to it (section 3.4)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        self.last_norm = LastNorm(config)
        self.transform = (
            nn.Linear(config.d_model, config.d_embedding) if config.readout == "transform" else None
        )
        self.transform_norm = (
            nn.LayerNorm(config.d_embedding, eps=config.eps)
            if config.readout == "transform"
            else None
        )
        self.unembedding = (
            nn.Linear(config.d_model, config.n_vocab, bias=False)
            if config.readout == "untied"
            else None
        )
        self.readout_bias = (
            None if config.readout is None else nn.Parameter(torch.zeros(config.n_vocab))
        )

    @property
    def readout_matrix(self) -> Tensor:
        """The vector of each word that the last vectors are multiplied by, (id, width): the
        embedding's, or the model's own where they are not tied. As wide as the stream but behind
        the transform of a model of narrow embeddings."""
        unembedding = self.unembedding
        return self.embedding.token.weight if unembedding is None else unembedding.weight

    def readout(self) -> tuple[Tensor, Tensor]:
        """The readout's matrix (id, width) and bias (id). Raises ValueError for a model without
        one."""
        if self.readout_bias is None:
            raise ValueError(
                f"this model {without_readout(self.config.head)}, so it makes no prediction"
            )
        return self.readout_matrix, self.readout_bias

    def logits(self, x: Tensor) -> Tensor:
        """Last vectors (..., d_model) -> scores over the vocabulary (..., n_vocab). Raises
        ValueError for a model without a readout."""
        matrix, bias = self.readout()
        return product(self.before_readout(x), matrix, bias)

    def before_readout(self, x: Tensor) -> Tensor:
        """Vectors (..., d_model) as the readout's matrix reads them, (..., width)."""
        if self.transform is None or self.transform_norm is None:
            return x
        return self.transform_norm(ACTIVATIONS[self.config.activation](self.transform(x)))

    def attentions(self) -> dict[str, list[MultiHeadAttention]]:
        """Every attention by its label, its layers in order."""
        by_label: dict[str, list[MultiHeadAttention]] = {}
        for module in self.modules():
            if isinstance(module, MultiHeadAttention):
                by_label.setdefault(module.label, []).append(module)
        return by_label


def stack(config: Config) -> nn.ModuleList:
    """The N layers of one stream."""
    layers = [Layer(config, layer) for layer in range(config.n_layer)]
    if config.shared_layers:
        for layer in layers[1:]:
            layer.share_weights(layers[0])
    return nn.ModuleList(layers)


# The layer that a pass begins with, and the state before it (batch, token, d_model); None for the
# embeddings of the ids. Ids then say how many tokens there are.
Entered = tuple[int, Tensor | None]


class Encoder(Transformer):
    """Embedding, a stack of N layers, and the readout that fills masked words."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = stack(config)
        self.apply(initialise)

    def forward(
        self,
        ids: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        start: Tensor | None = None,
        entered: Entered = (0, None),
    ) -> Tensor:
        """ids (batch, token) -> the last layer's vectors (batch, token, d_model)."""
        edits = with_paths(edits)
        first, state = entered
        x = self.embedding(ids, start, tape, edits) if state is None else state
        allowed = encoder_mask(allowed, ids.shape[1], edits)
        for layer in self.layers[first:]:
            x = layer(x, allowed, tape, edits)  # (batch, token, d_model)
        return self.last_norm(x, tape, edits)


class Decoder(Transformer):
    """Embedding, a stack of N layers under a causal mask, and the readout that says the next
    token."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.layers = stack(config)
        self.apply(initialise)

    def forward(
        self,
        ids: Tensor,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        stored: KVCache | None = None,
        start: Tensor | None = None,
        entered: Entered = (0, None),
    ) -> Tensor:
        """ids (batch, token) -> the last layer's vectors (batch, token, d_model); a token's vector
        knows nothing of later ones.

        With `stored`, ids follow the positions stored there. `start` (batch, 1) shifts the
        positions, for training. Texts of unlike
        length are padded on the right: nothing sees the padding.
        """
        past, edits = 0 if stored is None else stored.n, with_paths(edits)
        first, x = entered
        if x is None:
            x = self.embedding(ids, torch.tensor([past]) if past else start, tape, edits)
        masks = self_attention_masks(past, ids.shape[1], True, edits, self.config.windows)
        for layer, allowed in zip(self.layers[first:], masks[first:]):
            layer_checkpoint()
            x = layer(x, allowed, tape, edits, stored=stored)  # (batch, token, d_model)
        return self.last_norm(x, tape, edits)


class EncoderDecoder(Transformer):
    """The whole architecture of figure 1: an encoder reads one text, a decoder writes another and
    looks at both."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.encoder = nn.ModuleList(
            Layer(config, layer, "encoder self") for layer in range(config.n_layer)
        )
        self.decoder = nn.ModuleList(
            Layer(config, layer, "decoder self", cross=True) for layer in range(config.n_layer)
        )
        self.memory_norm = LastNorm(config)
        self.apply(initialise)

    def encode(
        self,
        ids: Tensor,
        allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
    ) -> Tensor:
        """Source ids (batch, key) -> the memory, (batch, key, d_model). `allowed`, broadcastable to
        (batch, head, key, key)."""
        edits = with_paths(of_stream(edits, "encoder", first=True))
        x = self.embedding(ids, None, tape, edits)  # (batch, key, d_model)
        allowed = encoder_mask(allowed, ids.shape[1], edits)
        for layer in self.encoder:
            x = layer(x, allowed, tape, edits)  # (batch, key, d_model)
        return self.memory_norm(x, tape, edits)

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        memory_allowed: Tensor | None = None,
        tape: Tape = no_tape,
        edits: tuple[Edit, ...] = (),
        stored: KVCache | None = None,
    ) -> Tensor:
        """Target ids (batch, token) and the memory (batch, key, d_model) -> vectors (batch, token,
        d_model), each saying the token after.

        The target begins with [BOS], so that the vector of a token says the one that follows:
        outputs are offset by one (section 3.1).
        `memory_allowed`, broadcastable to (batch, head, token, key), is False for padding of the
        source. `stored` as in Decoder. The
        positions of a target are never shuffled: it grows as it is written.
        """
        edits = tuple(
            edit
            for edit in with_paths(of_stream(edits, "decoder", first=False))
            if not isinstance(edit, ShufflePositions)
        )
        past = 0 if stored is None else stored.n
        x = self.embedding(ids, torch.tensor([past]) if past else None, tape, edits)
        allowed = self_attention_mask(past, ids.shape[1], True, edits)
        for layer in self.decoder:
            x = layer(x, allowed, tape, edits, memory, memory_allowed, stored)
        return self.last_norm(x, tape, edits)


def initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices, zero biases, embeddings N(0, 1/d_model), so that sqrt(d_model) x
    embedding has variance 1."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
