"""Costs of a recording and of a next token, as ratios: `python -m benchmarks.forward`.

- The encoder: `record` beside the same forward pass without a tape.
- The decoder's next token with stored keys and values beside a full pass, and beside the `generate`
  of a GPT-2 of the same sizes.
- MiniLM and SmolLM2 in our own classes beside Hugging Face's eager model with attentions and hidden
  states, both from the text; SmolLM2's next tokens beside `generate` with its cache, alone and with
  the whole words that the likeliest ones begin.
- Loading SmolLM2, once it is converted, into a process that has the app and the encoder: seconds,
  the memory that it keeps, and the most that it takes meanwhile.

Passes take turns in one process, so that the machine's noise falls on all alike; the figures are
ratios of the fastest passes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import torch
import transformers

from benchmarks.calibration import print_calibration
from benchmarks.clients import ROOT, memory_of
from models import shipped_models, smollm2
from models.network.generation import Generation
from models.network.own_model import OwnModel
from models.network.transformer import Decoder, Transformer
from models.runtime import registry
from models.tokens import whole_words
from models.training.next_word import NextWord

ROUNDS = {16: 40, 64: 30, 128: 25, 256: 12, 480: 8, 512: 8}  # of passes over so many tokens
WIDTH = 16  # tokens written


def fastest(passes: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The fewest milliseconds of each pass, one after the other in turn."""
    best = [float("inf")] * len(passes)
    for _ in range(rounds):
        for at, each in enumerate(passes):
            start = perf_counter()
            each()
            best[at] = min(best[at], (perf_counter() - start) * 1e3)
    return best


def row(name: str, n: int, ours: float, other: float) -> None:
    """Print a line of the table."""
    print(f"{name:<42} {n:>6} {ours:>9.2f} {other:>9.2f} {ours / other:>6.2f}", flush=True)


def recording(lengths: Sequence[int]) -> None:
    """The encoder's recording beside its bare forward pass."""
    encoder = registry.load("encoder")
    for n in lengths:
        text = " ".join(["the"] * (n - 2))
        ids = torch.tensor([encoder.tokenizer.tokens(text, n)[0].ids])

        @torch.inference_mode()
        def bare() -> object:
            return encoder.network(ids)

        row(
            "encoder, record / bare pass",
            n,
            *fastest([lambda: encoder.record(text), bare], ROUNDS[n]),
        )


def written(model: Transformer, prompt: list[int]) -> object:
    """Our own greedy writing with stored keys and values."""
    writing = Generation(model, prompt)
    for _ in range(WIDTH):
        writing.add(int(writing.logits.argmax()))
    return writing


def written_with_words(model: OwnModel, prompt: list[int]) -> object:
    """The same, and the whole words that the likeliest tokens of every step begin."""
    writing = Generation(model.network, prompt)
    for _ in range(WIDTH):
        likely = whole_words.likely_tokens(writing.logits)
        whole_words.whole_words(model, writing, whole_words.followed_tokens(model, likely))
        writing.add(int(writing.logits.argmax()))
    return writing


@torch.inference_mode()
def generated(model: torch.nn.Module, prompt: list[int]) -> object:
    """The same by transformers' `generate`."""
    ids = torch.tensor([prompt])
    return model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=WIDTH + 1,
        min_new_tokens=WIDTH + 1,
        do_sample=False,
        pad_token_id=0,
    )


def next_token(lengths: Sequence[int]) -> None:
    """A random decoder of the shipped shape beside reading all again, and beside a GPT-2."""
    torch.manual_seed(0)
    config = NextWord.config
    ours = Decoder(config).eval()
    gpt2 = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=config.n_vocab,
            n_positions=config.n_positions,
            n_embd=config.d_model,
            n_layer=config.n_layer,
            n_head=config.n_head,
            n_inner=config.d_ff,
            activation_function="relu",
            bos_token_id=1,
            eos_token_id=None,
        )
    ).eval()

    @torch.inference_mode()
    def full(prompt: list[int]) -> object:
        ids = list(prompt)
        for _ in range(WIDTH):
            ids.append(int(ours.logits(ours(torch.tensor([ids]))[0, -1]).argmax()))
        return ids

    for n in lengths:
        prompt = [5] * (n - WIDTH // 2)
        stored, again, other = fastest(
            [lambda: written(ours, prompt), lambda: full(prompt), lambda: generated(gpt2, prompt)],
            ROUNDS[n] // 4 or 1,
        )
        row(f"decoder, {WIDTH} tokens / full passes", n, stored, again)
        row(f"decoder, {WIDTH} tokens / GPT-2's generate", n, stored, other)


def pretrained(name: str, folder: str, lengths: Sequence[int]) -> None:
    """A pretrained model in our own classes beside its own code."""
    model = registry.load(name)
    kind = transformers.AutoModelForCausalLM if name == smollm2.NAME else transformers.AutoModel
    theirs = kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def eager(text: str) -> object:
        ids = tokenizer(text, return_tensors="pt")
        return theirs(**ids, output_attentions=True, output_hidden_states=True)

    for n in lengths:
        text = " ".join(["a"] * (n - len(model.record("a").streams[0].ids) + 1))
        passes = [lambda: model.record(text), lambda: eager(text)]
        row(f"{name}, record / eager model", n, *fastest(passes, ROUNDS[n] // 2 or 1))
    if name == smollm2.NAME:
        prompt = tokenizer("The capital of France is Paris, and")["input_ids"]
        alone, words, other = fastest(
            [
                lambda: written(model.network, prompt),
                lambda: written_with_words(model, prompt),
                lambda: generated(theirs, prompt),
            ],
            ROUNDS[16] // 8 or 1,
        )
        row(f"{name}, {WIDTH} tokens / generate", len(prompt), alone, other)
        row(f"{name}, {WIDTH} with whole words / generate", len(prompt), words, other)


def loading(name: str) -> dict[str, float]:
    """The costs of loading a model, in a process of its own: `seconds`, the bytes that it `keeps`,
    and the `most` that it takes meanwhile."""
    command = [sys.executable, "-m", "benchmarks.forward", "--load", name]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def print_loading(name: str) -> None:
    """Print what `loading` measures, in this process."""
    import headlight
    from explorer.app.state import garbage_collection

    assert headlight.panels  # the app's modules
    garbage_collection.start()  # and its settings of memory
    registry.load("encoder").record("a")
    before, start = memory_of(os.getpid()), perf_counter()
    model = registry.load(name)
    seconds, after = perf_counter() - start, memory_of(os.getpid())
    status = Path("/proc/self/status").read_text("ascii")
    most = 1024 * int(status.partition("VmHWM:")[2].split()[0])
    assert model.record("a").streams
    print(json.dumps({"seconds": seconds, "keeps": after - before, "most": most - before}))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", help="a model whose loading alone is measured, in this process")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(ROUNDS), choices=ROUNDS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    if options.load:
        return print_loading(options.load)
    torch.set_num_threads(options.threads)
    print_calibration()
    print(f"{'ours / other':<42} {'tokens':>6} {'ours ms':>9} {'other ms':>9} {'ratio':>6}")
    recording(options.lengths)
    next_token([n for n in options.lengths if n <= 480])
    if shipped_models.packaged() is not None:
        pretrained("minilm", str(registry.packaged_folder()), options.lengths)
    if smollm2.file() is not None:
        pretrained(smollm2.NAME, str(smollm2.folder()), [n for n in options.lengths if n <= 256])
        costs = loading(smollm2.NAME)
        print(
            f"{smollm2.NAME} is loaded in {costs['seconds']:.1f} s, keeps "
            f"{costs['keeps'] / 1e6:.0f} MB, takes at most {costs['most'] / 1e6:.0f} MB meanwhile"
        )


if __name__ == "__main__":
    main()
