"""A deep stack with random weights on a text's embeddings, and the gradient at every layer with
residual connections and without.

Our own models have few layers and learned with their residual connections, so that little is lost
where these are taken away. In a stack as deep as this one what they are for can be seen (He et al.,
2016; Dong et al., 2021, on attention alone).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from models.edits import Edit, WithoutNorm, WithoutResidual
from models.transformer import Config, Layer

LAYERS, WIDTH, N_HEAD, D_FF, SEED = 64, 32, 4, 64, 0
DRAWS = 20  # of what is random beside the weights; one draw may be a hundred times off the median
LONGEST = 12  # tokens of a text that count
GAIN = 0.4  # of Xavier's size: at 1 the paper's own arrangement fades too, residual or not
WAYS: dict[str, tuple[Edit, ...]] = {
    "residual on": (),
    "residual off": (WithoutResidual(),),
    "residual on, no LayerNorm": (WithoutNorm(),),
    "residual off, no LayerNorm": (WithoutResidual(), WithoutNorm()),
}


@dataclass(frozen=True, eq=False)
class Depth:
    """Norms of d(output)/d(state) over all tokens, each of that at the last state: norm (way,
    layers + 1), at the input and after each layer, the median of `draws`. The output is the sum of
    the last vectors' products with random vectors. ways: names as in WAYS. tokens: how many of the
    text counted; gain: the size of the weights, of Xavier's."""

    ways: tuple[str, ...]
    norm: np.ndarray
    tokens: int
    width: int
    gain: float
    draws: int = DRAWS

    @property
    def layers(self) -> int:
        """How many layers the stack has."""
        return self.norm.shape[1] - 1


def depth(vectors: np.ndarray, gain: float = GAIN, layers: int = LAYERS) -> Depth:
    """The gradients of the stack on embeddings (token, d_model), in float64: without residuals they
    get too small for float32.

    The embeddings are projected at random onto WIDTH numbers and normalised, in DRAWS ways. Layers
    are the paper's (LayerNorm after each sum, no mask); matrices Xavier-uniform times `gain`,
    biases 0. The same for every way, and the same each time.
    """
    norms = gradients(vectors, gain, layers)
    middle = np.median(norms / norms[..., -1:], axis=0)
    return Depth(tuple(WAYS), middle, min(len(vectors), LONGEST), WIDTH, gain, len(norms))


def gradients(vectors: np.ndarray, gain: float = GAIN, layers: int = LAYERS) -> np.ndarray:
    """The norms of every draw, (draw, way, layers + 1)."""
    x = torch.tensor(vectors[:LONGEST], dtype=torch.float64)
    stack, state = _fixed(gain, layers)
    generator = torch.Generator()
    generator.set_state(state)
    onto = _random(generator, DRAWS, x.shape[1], WIDTH)
    x = torch.nn.functional.layer_norm(x @ onto / x.shape[1] ** 0.5, (WIDTH,))
    ends = _random(generator, DRAWS, len(vectors[:LONGEST]), WIDTH)
    return np.stack([_norms(stack, x, ends, edits) for edits in WAYS.values()], axis=1)


@lru_cache(maxsize=4)  # 4 MB each
def _fixed(gain: float, layers: int) -> tuple[list[Layer], Tensor]:
    """What no text changes: the stack, and the state of the random numbers after it."""
    generator = torch.Generator().manual_seed(SEED)
    return _stack(layers, gain, generator), generator.get_state()


def _random(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _stack(layers: int, gain: float, generator: torch.Generator) -> list[Layer]:
    config = Config(1, WIDTH, layers, N_HEAD, D_FF, LONGEST)
    stack = [Layer(config, layer).double() for layer in range(layers)]
    for layer in stack:
        for name, parameter in layer.named_parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter, gain=gain, generator=generator)
            elif not name.endswith("norm.weight"):
                nn.init.zeros_(parameter)
    return stack


def _norms(stack: list[Layer], x: Tensor, ends: Tensor, edits: tuple[Edit, ...]) -> np.ndarray:
    """The norms of the gradient of each draw of x (draw, token, WIDTH), (draw, layers + 1)."""
    everyone = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
    with torch.enable_grad():
        states = [x.detach().requires_grad_()]
        for layer in stack:
            states.append(layer(states[-1], everyone, edits=edits))
        # Draws do not mix, so the gradient of their sum is that of each.
        gradients = torch.autograd.grad((states[-1] * ends).sum(), states)
    return np.stack([each.flatten(1).norm(dim=1).numpy() for each in gradients], axis=1)
