"""Gradients through the layers of a model: how far an output can feel a state it depends on.

Three measurements, each by automatic differentiation on the shared model, which stays as it is
(nothing accumulates on its parameters):

    gradients  d(one logit)/d(the state after each sub-layer)
    head_gradients  d(a loss)/d(an attention's output), and of each head's before W_O
    jacobian   of one sub-layer at one token: f, x + f and LayerNorm(x + f)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.contract import path_integral
from models.contract.cancellation import checkpoint, expect_wanted
from models.contract.edits import CutPath, Edit, WithoutNorm, WithoutResidual, of_stream
from models.contract.recording import Recording, Stream
from models.contract.results import DRAWS, Decay, Depth, HeadGradients, Jacobian, ResidualGradients
from models.network.activation_cache import ActivationStore
from models.network.attention import KVCache, causal_mask
from models.network.config import Config
from models.network.embedding import sinusoids
from models.network.layers import Patch, Tape, no_tape
from models.network.own_model import OwnModel, head_output_site
from models.network.transformer import EncoderDecoder, Layer
from models.readouts.logit_lens import AT_ONCE
from models.readouts.weights import input_site, layers_of

# Gradients through the tokens of a text: of a small RNN, an LSTM and a Transformer of the same
# width, by distance in tokens, before, while and after they learn.

WIDTH, N_HEAD, SYMBOLS, MAX_TOKENS = 32, 4, 16, 48
STEPS, BATCH, RATE, SEED, MEASURE_EVERY = 300, 32, 3e-3, 7, 10
NETWORKS = ("RNN", "LSTM", "Transformer")


class RecurrentNetwork(nn.Module):
    """An RNN (tanh) or LSTM of one layer, its state passed from token to token."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = {"RNN": nn.RNN, "LSTM": nn.LSTM}[kind](WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, width) -> the same shape."""
        return self.cell(x)[0]


class AttentionNetwork(nn.Module):
    """One decoder layer of the paper under a causal mask, positions added."""

    position: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = Layer(Config(SYMBOLS, WIDTH, 1, N_HEAD, 2 * WIDTH, MAX_TOKENS), 0)
        self.register_buffer("position", sinusoids(MAX_TOKENS, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, width) -> the same shape."""
        n = x.shape[1]
        return self.layer(x + self.position[:n], causal_mask(0, n))


class SmallNetwork(nn.Module):
    """Embedding, one of the three networks, readout: all of width WIDTH, matrices Xavier-uniform,
    biases 0, embeddings N(0, 1)."""

    def __init__(self, kind: str, generator: torch.Generator) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.network = AttentionNetwork() if kind == "Transformer" else RecurrentNetwork(kind)
        self.readout = nn.Linear(WIDTH, SYMBOLS)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2 and name != "embedding.weight":
                nn.init.xavier_uniform_(parameter, generator=generator)
            elif name == "embedding.weight":
                nn.init.normal_(parameter, generator=generator)
            elif not name.endswith("norm.weight"):
                nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        """Embedded symbols (batch, token, width) -> logits (batch, token, symbol)."""
        return self.readout(self.network(x))


def longest_lag(n: int) -> int:
    """The longest lag in tokens for a text of n tokens; 0 where it is too short for the
    experiment."""
    return max(0, min(n, MAX_TOKENS) - 2)


def decay(ids: Sequence[int], lag: int, steps: int = STEPS) -> Iterator[Decay]:
    """Train the three networks side by side, the same batches for each, and look at the gradient
    every LOOK_EVERY steps, at step 0 first.

    ids: the tokens of a text, of which the first LONGEST count; each distinct one is a symbol,
    numbered as it appears, modulo SYMBOLS. Training lists are random symbols of the text's length.
    The same arguments give the same numbers. Raises ValueError where the text is too short for the
    lag.
    """
    text = symbols(ids)
    n = len(text)
    if not 1 <= lag <= longest_lag(n):
        raise ValueError(f"a text of {n} tokens has no outputs that say the token {lag} back")
    generator = torch.Generator().manual_seed(SEED)
    nets = [SmallNetwork(kind, torch.Generator().manual_seed(SEED)) for kind in NETWORKS]
    optimizers = [torch.optim.Adam(net.parameters(), lr=RATE) for net in nets]
    held_out = torch.randint(SYMBOLS, (128, n), generator=torch.Generator().manual_seed(SEED + 1))
    initial = gradient = np.stack([_by_distance(net, text) for net in nets])
    measured_steps, losses = [], []
    for step in range(steps + 1):
        if step % MEASURE_EVERY == 0 or step == steps:
            scores = [_score(net, held_out, lag) for net in nets]
            measured_steps.append(step)
            losses.append([loss for loss, _ in scores])
            gradient = np.stack([_by_distance(net, text) for net in nets]) if step else initial
            yield Decay(
                lag,
                n,
                step,
                steps,
                initial,
                gradient,
                np.array(losses).T,
                np.array(measured_steps),
                np.array([accuracy for _, accuracy in scores]),
                tuple(sum(each.numel() for each in net.parameters()) for net in nets),
            )
        if step < steps:
            batch = torch.randint(SYMBOLS, (BATCH, n), generator=generator)
            for net, optimizer in zip(nets, optimizers):
                optimizer.zero_grad()
                _loss(net, batch, lag)[0].backward()
                optimizer.step()


def symbols(ids: Sequence[int]) -> Tensor:
    """The first tokens of a text as symbols: distinct tokens numbered as they appear, modulo
    SYMBOLS."""
    numbers: dict[int, int] = {}
    return torch.tensor(
        [numbers.setdefault(int(each), len(numbers)) % SYMBOLS for each in list(ids)[:MAX_TOKENS]],
        dtype=torch.long,
    )


def _loss(net: SmallNetwork, batch: Tensor, lag: int) -> tuple[Tensor, Tensor]:
    """Cross-entropy in nats of saying the symbol `lag` back, wherever there is one; and the share
    said right."""
    logits = net(net.embedding(batch))[:, lag:]
    labels = batch[:, : batch.shape[1] - lag]
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten()), (
        logits.argmax(-1) == labels
    ).float().mean()


@torch.no_grad()
def _score(net: SmallNetwork, batch: Tensor, lag: int) -> tuple[float, float]:
    loss, accuracy = _loss(net, batch, lag)
    return loss.item(), accuracy.item()


def _by_distance(net: SmallNetwork, text: Tensor) -> np.ndarray:
    """Mean norm (distance) of the gradient of an output's largest logit by the embedding that many
    tokens before.

    The text stands n times in a batch; in row t the output at t counts, so that one backward pass
    gives every output's gradient.
    """
    n = len(text)
    x = net.embedding(text).detach().expand(n, n, -1).clone().requires_grad_()
    top_logits = net(x).diagonal().max(0).values  # diagonal: (symbol, output)
    norms = torch.autograd.grad(top_logits.sum(), x)[0].norm(dim=-1).numpy()  # (output, token)
    return np.array([np.diagonal(norms, -distance).mean() for distance in range(n)])


# A deep stack with random weights on a text's embeddings, and the gradient at every layer with
# residual connections and without.

LAYERS, DEPTH_WIDTH, DEPTH_HEADS, D_FF, DEPTH_SEED = 64, 32, 4, 64, 0
DEPTH_TOKENS = 12  # tokens of a text that count
GAIN = 0.4  # of Xavier's size: at 1 the paper's own arrangement fades too, residual or not
DEPTH_VARIANTS: dict[str, tuple[Edit, ...]] = {
    "residual on": (),
    "residual off": (WithoutResidual(),),
    "residual on, no LayerNorm": (WithoutNorm(),),
    "residual off, no LayerNorm": (WithoutResidual(), WithoutNorm()),
}


def depth(vectors: np.ndarray, gain: float = GAIN, layers: int = LAYERS) -> Depth:
    """The gradients of the stack on embeddings (token, d_model), in float64: without residuals they
    get too small for float32.

    The embeddings are projected at random onto WIDTH numbers and normalised, in DRAWS ways. Layers
    are the paper's (LayerNorm after each sum, no mask); matrices Xavier-uniform times `gain`,
    biases 0. The same for every way, and the same each time.
    """
    norms = stack_gradients(vectors, gain, layers)
    median = np.median(norms / norms[..., -1:], axis=0)
    return Depth(
        tuple(DEPTH_VARIANTS),
        median,
        min(len(vectors), DEPTH_TOKENS),
        DEPTH_WIDTH,
        gain,
        len(norms),
    )


def stack_gradients(vectors: np.ndarray, gain: float = GAIN, layers: int = LAYERS) -> np.ndarray:
    """The norms of every draw, (draw, way, layers + 1)."""
    x = torch.tensor(vectors[:DEPTH_TOKENS], dtype=torch.float64)
    stack, state = _random_stack(gain, layers)
    generator = torch.Generator()
    generator.set_state(state)
    projection = _normal(generator, DRAWS, x.shape[1], DEPTH_WIDTH)
    x = torch.nn.functional.layer_norm(x @ projection / x.shape[1] ** 0.5, (DEPTH_WIDTH,))
    directions = _normal(generator, DRAWS, len(vectors[:DEPTH_TOKENS]), DEPTH_WIDTH)
    return np.stack(
        [_norms(stack, x, directions, edits) for edits in DEPTH_VARIANTS.values()], axis=1
    )


@lru_cache(maxsize=4)  # 4 MB each
def _random_stack(gain: float, layers: int) -> tuple[list[Layer], Tensor]:
    """The random stack, which is the same for every text, and the state of the generator after
    it."""
    generator = torch.Generator().manual_seed(DEPTH_SEED)
    return _stack(layers, gain, generator), generator.get_state()


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _stack(layers: int, gain: float, generator: torch.Generator) -> list[Layer]:
    config = Config(1, DEPTH_WIDTH, layers, DEPTH_HEADS, D_FF, DEPTH_TOKENS)
    stack = [Layer(config, layer).double() for layer in range(layers)]
    for layer in stack:
        for name, parameter in layer.named_parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter, gain=gain, generator=generator)
            elif not name.endswith("norm.weight"):
                nn.init.zeros_(parameter)
    return stack


def _norms(
    stack: list[Layer], x: Tensor, directions: Tensor, edits: tuple[Edit, ...]
) -> np.ndarray:
    """The norms of the gradient of each draw of x (draw, token, WIDTH), (draw, layers + 1)."""
    full_mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    with torch.enable_grad():
        states = [x.detach().requires_grad_()]
        for layer in stack:
            expect_wanted()
            states.append(layer(states[-1], full_mask, edits=edits))
        # Draws do not mix, so the gradient of their sum is that of each.
        gradients = torch.autograd.grad((states[-1] * directions).sum(), states)
    return np.stack([each.flatten(1).norm(dim=1).numpy() for each in gradients], axis=1)


ROWS_PER_BATCH = 32  # of a Jacobian: bounds its memory at 512 tokens
TOKENS_AT_ONCE = 512  # of the rows of one pass along the way of integrated gradients


# Where a gradient is taken: a site of a stream, or of an attention a layer's "pattern" or "z".
Place = tuple[str, str] | tuple[str, int, str]
# A word, its logit or a difference of two, and by place what stands there and the gradient.
Slopes = tuple[int, float, dict[Place, tuple[np.ndarray, np.ndarray]]]


def gradients(
    model: OwnModel,
    recording: Recording,
    stream: str,
    token: int,
    id: int | None,
    against: int | None,
    sites: tuple[str, ...],
    attention: str,
) -> ResidualGradients:
    """The gradient of a word's logit at a token of the last stream, as `Model.gradients`.

    Raises ValueError for a token that is not there, for a model without a readout, for a run into
    which something of another was put, and for a path that is cut where the stream is no sum.
    """
    _expect_own_run(recording)
    _expect_one_state(model, recording)
    after = states_after(recording.stream(stream))
    ask = partial(slopes, model, recording, token, id, against)
    return gradients_by(ask, recording, (stream, token, against), after, sites, attention)


def gradients_by(
    ask: Callable[[tuple[Place, ...]], Slopes],
    recording: Recording,
    of: tuple[str, int, int | None],
    after: Mapping[str, str],
    sites: tuple[str, ...],
    attention: str,
) -> ResidualGradients:
    """Gradients as a model's source gives them by place. of: the stream, the token, and the word
    that the other is compared with; after: by name the sites of which the norms are taken."""
    stream, token, against = of
    n_layer = next((len(each.pattern) for each in recording.attention if each.name == attention), 0)
    weights = tuple((attention, layer, "pattern") for layer in range(n_layer))
    word, value, found = ask((*((stream, site) for site in (*after.values(), *sites)), *weights))
    norms = [np.linalg.norm(found[stream, site][1], axis=-1) for site in after.values()]
    return ResidualGradients(
        stream,
        recording.streams[-1].name,
        token,
        word,
        tuple(after),
        np.stack(norms),
        value,
        against,
        {site: found[stream, site][1] for site in sites},
        np.stack([found[each][1] for each in weights]) if weights else None,
    )


def states_after(stream: Stream) -> dict[str, str]:
    """The site of the state before the first layer, by its own name, and of that after each
    sub-layer, by the sub-layer's."""
    found: dict[str, str] = {}
    for site in stream.sites:
        sublayer, _, kind = site.rpartition(".")
        if site in ("embed", "embed+pos", "embed.normed"):  # the last of them
            found = {site: site}
        elif kind in ("sum", "normed") and sublayer != "final":  # the later of the two
            found[sublayer] = site
    return found


def slopes(
    model: OwnModel,
    recording: Recording,
    token: int,
    id: int | None,
    against: int | None,
    places: tuple[Place, ...],
) -> Slopes:
    """The gradients of a word's logit at a token of the last stream, the likeliest word's where
    None, less that of another."""
    tensors: dict[tuple[str, str], Tensor] = {}
    by_name = {place: _on_tape(model, place) for place in places}
    wanted = {*by_name.values()}

    def tape(stream: str) -> Tape:
        def store(name: str, tensor: Tensor) -> None:
            is_wanted = (stream, name) in wanted
            if (is_wanted or name in ("embed", "embed+pos")) and not tensor.requires_grad:
                tensor.requires_grad_()
            if is_wanted:
                tensors[stream, name] = tensor

        return store

    with torch.enable_grad():
        checkpoint()
        last = last_vectors(model, recording, tape)
        checkpoint()
        scores = model.network.logits(last[0, token])
        word = int(scores.argmax()) if id is None else id
        value = scores[word] if against is None else scores[word] - scores[against]
        grads = torch.autograd.grad(value, list(tensors.values()), materialize_grads=True)
    both = {
        name: tuple(each if each.dim() == 2 else each[0] for each in (tensor.detach(), grad))
        for (name, tensor), grad in zip(tensors.items(), grads)
    }
    found = {
        place: (both[name][0].numpy(), both[name][1].numpy()) for place, name in by_name.items()
    }
    return word, value.item(), found


def _on_tape(model: OwnModel, place: Place) -> tuple[str, str]:
    """The stream of a place and its name on the tape."""
    if len(place) == 2:
        return place
    attention, layer, kind = place
    stream, name = head_output_site(model, attention, layer)
    return stream, f"{name.removesuffix('z')}{kind}"


def integrated(
    model: OwnModel,
    recording: Recording,
    stream: str,
    of: tuple[int, int | None, int | None],
    steps: int,
    begin: tuple[int, ...] | None,
) -> tuple[np.ndarray, float]:
    """Integrated gradients of a word's logit, as `Model.integrated_gradients`, and the logit less
    the one where the stream's embeddings are those of the ids to `begin` with, or 0. of: the token,
    the word and the one that it is compared with.

    Raises ValueError for a model without a readout, for no steps, and for a run into which
    something of another was put."""
    _expect_own_run(recording)
    token, id, against = of
    logits = model.network.logits(torch.tensor(recording.streams[-1].resid[-1, token]))
    word = int(logits.argmax()) if id is None else id
    site = recording.stream(stream).sites[0]  # where words are narrow, the sum with positions
    embedded = torch.tensor(recording.stream(stream).at(site))
    first = torch.zeros_like(embedded)
    if begin is not None:
        store = ActivationStore({site})
        at_first = stream == recording.streams[0].name
        under = of_stream(recording.edits, stream, first=at_first)
        model.network.embedding(torch.tensor([begin]), None, store, under)
        first = store.tensors[site].detach()
    way = embedded - first

    def some(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of places that are rows of one pass."""
        checkpoint()
        at = torch.tensor(places, dtype=way.dtype)[:, None, None]
        with torch.enable_grad():
            start = (first + way * at).requires_grad_()
            patches = {stream: Patch(site, start)}
            last = last_vectors(model, recording, patches=patches, rows=len(places))
            scores = model.network.logits(last[:, token])
            score = scores[:, word] if against is None else scores[:, word] - scores[:, against]
            (gradient,) = torch.autograd.grad(score.sum(), start)
        return score.detach().numpy(), (gradient * way).sum(-1).numpy()

    at_once = max(1, TOKENS_AT_ONCE // sum(len(each.ids) for each in recording.streams))

    def slopes(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [some(places[at : at + at_once]) for at in range(0, len(places), at_once)]
        scores, of_places = zip(*parts)
        return np.concatenate(scores), np.concatenate(of_places)

    return path_integral.shares_of(slopes, steps)


def last_vectors(
    model: OwnModel,
    recording: Recording,
    tape: Callable[[str], Tape] = lambda stream: no_tape,
    patches: Mapping[str, Patch] = MappingProxyType({}),
    rows: int = 1,
) -> Tensor:
    """A model's last vectors (row, token, d_model) under a recording's edits, its text in so many
    rows. By the names of streams: tape makes the one of a stream, patches are what is put into
    it."""
    ids = [torch.tensor(each.ids).expand(rows, -1) for each in recording.streams]
    names = [each.name for each in recording.streams]
    edits = [(*recording.edits, *filter(None, (patches.get(name),))) for name in names]
    if not isinstance(model.network, EncoderDecoder):
        return model.network(ids[0], tape=tape(names[0]), edits=edits[0])
    memory = model.network.encode(ids[0], tape=tape(names[0]), edits=edits[0])
    return model.network.decode(ids[1], memory, tape=tape(names[1]), edits=edits[1])


def head_gradients(
    model: OwnModel,
    recording: Recording,
    attention: str,
    layer: int,
    targets: Sequence[tuple[int, int]],
) -> HeadGradients:
    """The gradient of a loss at an attention's layer, on both sides of W_O: the mean of
    -ln p(target), of `targets`, each a token of the last stream and the id that is right there.

    Raises ValueError for no target and one that is not there, for a model without a readout, and
    for a run into which something of another was put.
    """
    expect_loss(model, recording, targets)
    of = next(each for each in recording.attention if each.name == attention)
    module = model.attentions[attention][layer]
    sites: dict[str, Tensor] = {}

    def tape(stream: str) -> Tape:
        def store(site: str, tensor: Tensor) -> None:
            if stream == of.query and site in (f"{module.name}.wrote", f"{module.name}.z"):
                sites[site.rpartition(".")[2]] = tensor.requires_grad_()

        return store

    tokens, ids = (torch.tensor(each) for each in zip(*targets))
    with torch.enable_grad():
        last = last_vectors(model, recording, tape)[0, tokens]
        losses, pulls = zip(
            *(
                _loss_and_pull(model, rows, right, len(ids))
                for rows, right in zip(last.detach().split(AT_ONCE), ids.split(AT_ONCE))
            )
        )
        output, heads = torch.autograd.grad(
            last, (sites["wrote"], sites["z"]), grad_outputs=torch.cat(pulls)
        )
    loss = torch.cat(losses).mean()
    return HeadGradients(loss.item(), output[0].numpy(), heads[0].numpy())


def expect_loss(model: OwnModel, recording: Recording, targets: Sequence[tuple[int, int]]) -> None:
    """Raises ValueError where a recording has no loss at these targets, or one that is of another
    run too."""
    _expect_own_run(recording)
    if not model.network.config.readout:
        raise ValueError("a model without a readout has no loss")
    n = len(recording.streams[-1].tokens)
    if not targets or not all(0 <= token < n for token, _ in targets):
        raise ValueError(f"a loss needs targets, at tokens 0 to {n - 1}")


def _loss_and_pull(model: OwnModel, rows: Tensor, right: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """-ln p of the ids that are right at some last vectors (row, d_model), (row), and the gradient
    of their sum over n by the vectors: of few at a time, since scores are as many as words."""
    rows.requires_grad_()
    losses = F.cross_entropy(model.network.logits(rows), right, reduction="none")
    return losses.detach(), torch.autograd.grad(losses.sum() / n, rows)[0]


def _expect_own_run(recording: Recording) -> None:
    if any(edit.borrows for edit in recording.edits):
        raise ValueError(
            "gradients are those of a text's own run, and something of another was put into "
            "this one"
        )


def _expect_one_state(model: OwnModel, recording: Recording) -> None:
    """Raises ValueError for a run in which the reader of a path has a state of its own, which is no
    function of the one that is recorded."""
    cut = {edit.attention for edit in recording.edits if isinstance(edit, CutPath)}
    for stream in {each.query for each in recording.attention if each.name in cut}:
        edits = of_stream(recording.edits, stream, first=stream == recording.streams[0].name)
        for layer in layers_of(model, stream):
            if not (layer.attention_out.is_sum(edits) and layer.feed_forward_out.is_sum(edits)):
                raise ValueError(
                    "where a path is cut and the stream is no sum of what was written, its reader "
                    "has a state of its own, and there is no one gradient of a state"
                )


def jacobian(model: OwnModel, recording: Recording, stream: str, token: int, site: str) -> Jacobian:
    """The Jacobians of the sub-layer `site`, such as "0.attn", of an unedited recording. Raises
    ValueError for one that is not there, and for an edited recording."""
    if recording.edits:
        raise ValueError("the Jacobian is that of an unedited run")
    residual = recording.stream(stream)
    sublayers = {output_jacobian.rpartition(".")[0] for _, output_jacobian, _ in residual.writes()}
    if site not in sublayers or site == "pos" or not 0 <= token < len(residual.tokens):
        raise ValueError(
            f"stream {stream} has no sub-layer {site!r} or no token {token}; it has "
            f"{', '.join(sorted(sublayers - {'pos'}))} and tokens 0 to {len(residual.tokens) - 1}"
        )
    layer_number, _, sublayer = site.partition(".")
    layer = layers_of(model, stream)[int(layer_number)]
    x = torch.tensor(residual.at(input_site(layer, residual, sublayer, ())))
    x = x.to(model.network.embedding.token.weight.dtype)
    add_and_norm = {"attn": layer.attention_out, "ffn": layer.feed_forward_out}.get(sublayer)
    add_and_norm = layer.cross_out if add_and_norm is None else add_and_norm
    norms = {add_and_norm.norm_at(()): add_and_norm.norm or nn.Identity()}
    input_norm, norm = norms.get("pre", nn.Identity()), norms.get("post", nn.Identity())
    f = _sublayer(layer, sublayer, x, token, recording, input_norm)
    adds = add_and_norm.adds(())

    def summed(v: Tensor) -> Tensor:
        return v + f(v) if adds else f(v)

    def normed(v: Tensor) -> Tensor:
        return norm(summed(v))

    output_jacobian, sum_jacobian, normed_jacobian = (
        _derivative(each, x[token]) for each in (f, summed, normed)
    )
    error = (
        (sum_jacobian - output_jacobian - torch.eye(len(output_jacobian)) * adds).abs().max().item()
    )
    singular_values = [
        torch.linalg.svdvals(each.double()).numpy()
        for each in (output_jacobian, sum_jacobian, normed_jacobian)
    ]
    component = int(output_jacobian.diagonal().abs().argmax())
    entries = [each[component, component].item() for each in (output_jacobian, sum_jacobian)]
    return Jacobian(
        site,
        token,
        singular_values[0],
        singular_values[1],
        singular_values[2],
        error,
        component,
        (entries[0], entries[1]),
        adds,
    )


def _derivative(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The Jacobian (output, input) of a function of one vector at x, some rows at a time."""
    output, pullback, *_ = torch.func.vjp(function, x)
    rows = []
    for basis in torch.eye(len(output)).split(ROWS_PER_BATCH):
        checkpoint()
        rows.append(torch.func.vmap(pullback)(basis)[0].detach())
    return torch.cat(rows)


class _FixedKeys(KVCache):
    """Keys and values of all tokens of a text, each (1, head, key, d_head), held but for those of
    one token, which a pass brings along."""

    def __init__(self, k: Tensor, v: Tensor, token: int) -> None:
        super().__init__()
        self.k, self.v, self.token = k, v, token

    def past(self, name: str) -> int:
        return self.token

    def update(self, name: str, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values, the token's own ones new."""

        def replaced(old: Tensor, new: Tensor) -> Tensor:
            return torch.cat((old[:, :, : self.token], new, old[:, :, self.token + 1 :]), dim=2)

        return replaced(self.k, k), replaced(self.v, v)


def _sublayer(
    layer: Layer, sublayer: str, x: Tensor, token: int, recording: Recording, input_norm: nn.Module
) -> Callable[[Tensor], Tensor]:
    """The output of a sub-layer at one token as a function of that token's vector (d_model).
    input_norm: the LayerNorm before the sub-layer, if any."""
    if sublayer == "ffn":
        return lambda v: layer.feed_forward(input_norm(v))
    if sublayer == "cross":
        memory = torch.tensor(recording.streams[0].resid[-1])[None]
        return lambda v: layer.cross(input_norm(v)[None, None], memory)[0, 0]
    attention = next(each for each in recording.attention if each.name == layer.attention.label)
    allowed = torch.tensor(attention.allowed[layer.layer, token : token + 1])
    # What the others offer is held: to differentiate it for 512 tokens took 16 times as long.
    with torch.no_grad():
        inputs = input_norm(x)[None]
        cache = _FixedKeys(
            *layer.attention.queries_keys_values(inputs, inputs, (), None)[1:], token
        )
    return lambda v: layer.attention(
        input_norm(v)[None, None], input_norm(v)[None, None], allowed, stored=cache
    )[0, 0]
