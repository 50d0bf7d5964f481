"""What a tuned lens (Belrose et al. 2023) tells beside the logit lens, and what it weighs:
`python -m benchmarks.tuned_lens [MODEL [FILE [TOKENS]]]`.

Of every layer an affine translator from its state to that after the last layer, by least squares on
four fifths of the tokens of a file's lines; on the others the divergence KL of the model's own last
distribution from what each lens says, in nats, and how often both name the same word. Translators
that are trained on the divergence itself come somewhat nearer."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import headlight
from models.network.own_model import OwnModel
from models.runtime import registry

FILE = Path(__file__).with_name("headlines.txt")
RIDGE = 0.01  # of the mean square of a component
BLOCK = 256  # tokens that are read out at once


def states(model: OwnModel, lines: list[str], most: int) -> dict[str, Tensor]:
    """The states after each layer, without the first token of a text: (token, d_model) by site."""
    end = "normed" if model.capabilities.norm == "post" else "sum"
    sites = [f"{layer}.ffn.{end}" for layer in range(model.card.n_layer)]
    found: dict[str, list[np.ndarray]] = {site: [] for site in sites}
    n = 0
    for line in lines:
        (stream,) = headlight.record(model, line, sites=sites, attention="").streams
        for site in sites:
            found[site].append(stream.at(site)[1:])
        n += len(stream.tokens) - 1
        if n >= most:
            break
    return {site: torch.tensor(np.concatenate(each)) for site, each in found.items()}


def translated(known: Tensor, last: Tensor, asked: Tensor) -> Tensor:
    """States of a layer as an affine map says that they end, which is fitted to known ones."""
    ones = lambda x: torch.cat([x, torch.ones(len(x), 1)], 1).double()
    x = ones(known)
    square = x.T @ x
    square += RIDGE * square.diagonal().mean() * torch.eye(len(square), dtype=square.dtype)
    change = torch.linalg.solve(square, x.T @ (last - known).double())
    return asked + (ones(asked) @ change).float()


@torch.inference_mode()
def divergence(model: OwnModel, said: Tensor, last: Tensor) -> tuple[float, float]:
    """Mean KL of the readout of the last states from that of others, and how often they agree."""
    network, kl, same = model.network, 0.0, 0.0
    norm = network.last_norm
    for of, true in zip(said.split(BLOCK), last.split(BLOCK)):
        q, p = (
            network.logits(norm.normed(x) if norm.is_present(()) else x).log_softmax(-1)
            for x in (of, true)
        )
        kl += float((p.exp() * (p - q)).sum())
        same += float((p.argmax(-1) == q.argmax(-1)).sum())
    return kl / len(said), same / len(said)


def main(name: str = "decoder", file: str = str(FILE), most: int = 20_000) -> list[tuple]:
    """Print and return a row a site: the KL and agreement of the logit lens, those of the tuned."""
    model = registry.load(name)
    found = states(model, Path(file).read_text("utf-8").splitlines(), most)
    *sites, end = found
    cut = 4 * len(found[end]) // 5
    rows = []
    print(f"{name}: {len(found[end]):,} tokens of {Path(file).name}")
    for site in sites:
        x, last = found[site], found[end]
        tuned = translated(x[:cut], last[:cut], x[cut:])
        rows.append((site, *(divergence(model, each, last[cut:]) for each in (x[cut:], tuned))))
        (kl, same), (kl_tuned, same_tuned) = rows[-1][1:]
        print(f"{site}: KL {kl:.2f}, tuned {kl_tuned:.2f}; same word {same:.2f}, {same_tuned:.2f}")
    d = model.card.d_model
    print(f"{len(sites)} translators in 16 bits: {2 * len(sites) * d * (d + 1):,} bytes")
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:4]))
