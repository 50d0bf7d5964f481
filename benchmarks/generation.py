"""What the next token costs, with stored keys and values and without, beside transformers' own
generate: `python -m benchmarks.generation`.

A random decoder of the shipped shape and a GPT-2 of the same layers, heads, widths and vocabulary
write greedily from one token on. The columns take turns in one process, so that the machine's noise
falls on all alike; each figure is the fastest of several rounds, as a multiple of our own first
token with the store.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from time import perf_counter

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from models.generation import Generation
from models.training.next_word import NextWord
from models.transformer import Decoder

LENGTHS = (16, 64, 128, 256, 480)
WIDTH, ROUNDS = 16, 5


def main() -> None:
    torch.manual_seed(0)
    config = NextWord.config
    ours = Decoder(config).eval()
    theirs = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=config.n_vocab,
            n_positions=config.n_positions,
            n_embd=config.d_model,
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_inner=config.d_ff,
            activation_function="relu",
            bos_token_id=1,
            eos_token_id=None,
            pad_token_id=0,
        )
    ).eval()
    columns = {
        "ours, stored": lambda n: stored(ours, n),
        "ours, full pass": lambda n: full(ours, n),
        "transformers, cache": lambda n: generate(theirs, n, True),
        "transformers, none": lambda n: generate(theirs, n, False),
    }
    print(
        f"milliseconds a token around each length, fastest of {ROUNDS} rounds (and as a "
        "multiple of the first figure)"
    )
    print(f"{'tokens':>7}" + "".join(f"{name:>26}" for name in columns))
    unit = None
    for n in LENGTHS:
        best = dict.fromkeys(columns, float("inf"))
        for _ in range(ROUNDS):
            for name, run in columns.items():
                best[name] = min(best[name], run(n) * 1e3)
        unit = unit or best["ours, stored"]
        print(f"{n:>7}" + "".join(f"{ms:>17.2f} ({ms / unit:>5.1f})" for ms in best.values()))


def stored(model: Decoder, n: int) -> float:
    """Seconds a token for the tokens around length n, each reading one."""
    writing = Generation(model, [5] * (n - WIDTH // 2))
    start = perf_counter()
    for _ in range(WIDTH):
        writing.add(int(writing.logits.argmax()))
    return (perf_counter() - start) / WIDTH


def full(model: Decoder, n: int) -> float:
    """The same, each step reading everything again."""
    ids = [5] * (n - WIDTH // 2)
    start = perf_counter()
    with torch.inference_mode():
        for _ in range(WIDTH):
            ids.append(int(model.logits(model(torch.tensor([ids]))[0, -1]).argmax()))
    return (perf_counter() - start) / WIDTH


def generate(model: GPT2LMHeadModel, n: int, cached: bool) -> float:
    """The same by transformers: what 16 more tokens cost beyond the first of them, which reads the
    prompt."""
    prompt = torch.full((1, n - WIDTH // 2), 5)

    def seconds(more: int) -> float:
        start = perf_counter()
        model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=more,
            min_new_tokens=more,
            do_sample=False,
            use_cache=cached,
        )
        return perf_counter() - start

    with torch.inference_mode():
        return (seconds(WIDTH + 1) - min(seconds(1) for _ in range(3))) / WIDTH


if __name__ == "__main__":
    main()
