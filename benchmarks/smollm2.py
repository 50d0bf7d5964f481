"""SmolLM2 in our own classes beside transformers' own Llama with the same numbers:
`python -m benchmarks.smollm2`.

Time and memory of loading, a text to its Recording beside transformers' eager pass with attentions
and hidden states, the next token beside `generate` with its cache. Passes take turns in one
process on two threads; the figures are ratios of the fastest. `--scores [DATA]` measures what its
card says: induction and previous-token scores on random tokens said twice, and where DATA holds the
corpora of models/training, the perplexity a token of paragraphs that our own models never saw.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "2")

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from benchmarks.pretrained import fastest
from models import registry, smollm2
from models.generation import Generation
from models.own_model import OwnModel
from models.training import corpus

LENGTHS = {13: 12, 57: 10, 253: 6}
WIDTH, ROUNDS = 16, 5
PARAGRAPHS, BEGINS = 40, 0  # how many are read, and the token before each


def main(only: str = "", data: str = "") -> None:
    torch.set_num_threads(2)
    registry.load("decoder").record("The app without it.")
    before, start = most_memory(), perf_counter()
    handle = registry.load(smollm2.NAME)
    assert isinstance(handle, OwnModel)
    print(
        f"load {perf_counter() - start:.2f} s; memory at most {most_memory() - before:.0f} MB "
        "more than with the decoder alone"
    )
    if only == "--scores":
        scores(handle)
        if data:
            perplexity(handle, Path(data))
    else:
        passes(handle)


def most_memory() -> float:
    """MB that this process has held at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def passes(handle: OwnModel) -> None:
    """Recordings and next tokens beside transformers' own."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = smollm2.folder()
    theirs = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    words = AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def eager(text: str) -> object:
        ids = words(text, return_tensors="pt")["input_ids"]
        return theirs(ids, output_attentions=True, output_hidden_states=True, use_cache=False)

    for n, rounds in LENGTHS.items():
        text = " ".join(["the"] * n)
        assert len(handle.record(text).streams[0].ids) == n
        one, other = fastest([lambda: handle.record(text), lambda: eager(text)], rounds)
        print(
            f"{n:>4} tokens: record {one * 1e3:.1f} ms, theirs {other * 1e3:.1f}: {one / other:.2f}"
        )
    ids = words("The capital of France is Paris, and", return_tensors="pt")["input_ids"]

    def ours() -> object:
        writing = Generation(handle.model, ids[0].tolist())
        for _ in range(WIDTH):
            writing.add(int(writing.logits.argmax()))
        return writing

    @torch.inference_mode()
    def generate() -> object:
        return theirs.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=WIDTH + 1,
            min_new_tokens=WIDTH + 1,
            do_sample=False,
            pad_token_id=2,
        )

    one, other = fastest([ours, generate], ROUNDS)
    print(
        f"{WIDTH} tokens more: ours {one * 1e3:.0f} ms, generate {other * 1e3:.0f}: "
        f"{one / other:.2f}"
    )


def scores(handle: OwnModel) -> None:
    """What the best head gives on random tokens said twice: to the token after the one before that
    is the same, and to the token before."""
    rng = np.random.default_rng(0)
    model, n = handle.model, 24
    induction, previous = [], []
    for _ in range(8):
        once = rng.integers(1000, 40000, n)
        rows: list[torch.Tensor] = []
        with torch.inference_mode():
            model(
                torch.tensor([[*once, *once]]),
                tape=lambda name, x: rows.append(x[0]) if name.endswith(".pattern") else None,
            )
        pattern = torch.stack(rows)  # (layer, head, query, key)
        second = torch.arange(n, 2 * n)
        induction.append(pattern[:, :, second, second - n + 1].mean(-1))
        later = torch.arange(1, 2 * n)
        previous.append(pattern[:, :, later, later - 1].mean(-1))
    for name, found in (("induction", induction), ("previous token", previous)):
        mean = torch.stack(found).mean(0)
        layer, head = divmod(int(mean.argmax()), mean.shape[1])
        print(f"{name}: {float(mean.max()):.3f} at head {layer}.{head}")


@torch.inference_mode()
def perplexity(handle: OwnModel, data: Path) -> None:
    """Of some held-out paragraphs, each after <|endoftext|>."""
    held = corpus.read(data)[1].paragraphs
    chosen = np.random.default_rng(0).choice(len(held), PARAGRAPHS, replace=False)
    total, n = 0.0, 0
    for at in chosen:
        ids = [BEGINS, *handle.tokenizer.ids([held[at]])[0]][: handle.card.n_positions]
        likely = handle.model.logits(handle.model(torch.tensor([ids])))[0].log_softmax(-1)
        total -= float(likely[:-1].gather(1, torch.tensor(ids[1:])[:, None]).sum())
        n += len(ids) - 1
    print(f"perplexity a token, {PARAGRAPHS} paragraphs of {n} tokens: {np.exp(total / n):.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
