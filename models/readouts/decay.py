"""Gradients through the tokens of a text: of a small RNN, an LSTM and a Transformer of the same
width, by distance in tokens, before, while and after they learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.attention import causal
from models.config import Config
from models.embedding import sinusoids
from models.transformer import Layer

WIDTH, N_HEAD, SYMBOLS, LONGEST = 32, 4, 16, 48
STEPS, BATCH, RATE, SEED, LOOK_EVERY = 300, 32, 3e-3, 7, 10
NETWORKS = ("RNN", "LSTM", "Transformer")


@dataclass(frozen=True, eq=False)
class Decay:
    """Three small networks, `step` of `steps` into learning to say the symbol `lag` tokens back,
    and their gradients over a text.

    gradient (network, distance): at output t the norm of d(logit of the likeliest
    symbol)/d(embedding of token t - distance), mean over the outputs of the text; first: the same
    before any training. loss (network, look) in nats and accuracy (network) on fresh random lists;
    looks (look): the steps at which loss was taken. parameters (network): numbers each of them
    learns.
    """

    lag: int
    length: int
    step: int
    steps: int
    first: np.ndarray
    gradient: np.ndarray
    loss: np.ndarray
    looks: np.ndarray
    accuracy: np.ndarray
    parameters: tuple[int, ...]


class Recurrent(nn.Module):
    """An RNN (tanh) or LSTM of one layer, its state passed from token to token."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = {"RNN": nn.RNN, "LSTM": nn.LSTM}[kind](WIDTH, WIDTH, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, width) -> the same shape."""
        return self.cell(x)[0]


class Attending(nn.Module):
    """One decoder layer of the paper under a causal mask, positions added."""

    position: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = Layer(Config(SYMBOLS, WIDTH, 1, N_HEAD, 2 * WIDTH, LONGEST), 0)
        self.register_buffer("position", sinusoids(LONGEST, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, token, width) -> the same shape."""
        n = x.shape[1]
        return self.layer(x + self.position[:n], causal(0, n))


class Small(nn.Module):
    """Embedding, one of the three networks, readout: all of width WIDTH, matrices Xavier-uniform,
    biases 0, embeddings N(0, 1)."""

    def __init__(self, kind: str, generator: torch.Generator) -> None:
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.network = Attending() if kind == "Transformer" else Recurrent(kind)
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
    """How far back a text of n tokens lets one ask for; 0 where it is too short for the
    experiment."""
    return max(0, min(n, LONGEST) - 2)


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
    nets = [Small(kind, torch.Generator().manual_seed(SEED)) for kind in NETWORKS]
    optimizers = [torch.optim.Adam(net.parameters(), lr=RATE) for net in nets]
    held_out = torch.randint(SYMBOLS, (128, n), generator=torch.Generator().manual_seed(SEED + 1))
    first = gradient = np.stack([_by_distance(net, text) for net in nets])
    looks, losses = [], []
    for step in range(steps + 1):
        if step % LOOK_EVERY == 0 or step == steps:
            scores = [_score(net, held_out, lag) for net in nets]
            looks.append(step)
            losses.append([loss for loss, _ in scores])
            gradient = np.stack([_by_distance(net, text) for net in nets]) if step else first
            yield Decay(
                lag,
                n,
                step,
                steps,
                first,
                gradient,
                np.array(losses).T,
                np.array(looks),
                np.array([right for _, right in scores]),
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
    order: dict[int, int] = {}
    return torch.tensor(
        [order.setdefault(int(each), len(order)) % SYMBOLS for each in list(ids)[:LONGEST]],
        dtype=torch.long,
    )


def _loss(net: Small, batch: Tensor, lag: int) -> tuple[Tensor, Tensor]:
    """Cross-entropy in nats of saying the symbol `lag` back, wherever there is one; and the share
    said right."""
    logits = net(net.embedding(batch))[:, lag:]
    wanted = batch[:, : batch.shape[1] - lag]
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten()), (
        logits.argmax(-1) == wanted
    ).float().mean()


@torch.no_grad()
def _score(net: Small, batch: Tensor, lag: int) -> tuple[float, float]:
    loss, right = _loss(net, batch, lag)
    return loss.item(), right.item()


def _by_distance(net: Small, text: Tensor) -> np.ndarray:
    """Mean norm (distance) of the gradient of an output's largest logit by the embedding that many
    tokens before.

    The text stands n times in a batch; in row t the output at t counts, so that one backward pass
    gives every output's gradient.
    """
    n = len(text)
    x = net.embedding(text).detach().expand(n, n, -1).clone().requires_grad_()
    best = net(x).diagonal().max(0).values  # diagonal: (symbol, output)
    norms = torch.autograd.grad(best.sum(), x)[0].norm(dim=-1).numpy()  # (output, token)
    return np.array([np.diagonal(norms, -distance).mean() for distance in range(n)])
