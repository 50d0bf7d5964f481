"""MiniLM in our own classes beside its own code: `python -m benchmarks.pretrained`.

Three passes in turn in one process, so that the machine's noise falls on all alike: `record`;
Hugging Face's eager model with attentions and hidden states; and, where TransformerLens is
installed, its `run_with_cache`. The first two go from the text to their result, each with its own
tokenizer, the third from ids. The figures are ratios of the fastest passes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

from collections.abc import Callable
from time import perf_counter

import torch

from models import library

LENGTHS = (16, 128, 512)
ROUNDS = {16: 60, 128: 40, 512: 15}


def main() -> None:
    torch.set_num_threads(1)
    handle = library.load("minilm")
    folder = library.packaged_folder()
    theirs = eager(str(folder))
    lens = transformer_lens(str(folder))
    print(
        f"{'tokens':>7} {'record ms':>10} {'their ms':>9} {'ratio':>6} {'cached':>8}   "
        "(fastest passes; cached: TransformerLens / theirs)"
    )
    for n in LENGTHS:
        text = " ".join(["a"] * (n - 2))
        ids = torch.tensor([[int(each) for each in library.record(handle, text).streams[0].ids]])
        assert ids.shape[1] == n
        passes: list[Callable[[], object]] = [
            lambda: library.record(handle, text),
            lambda: theirs(text),
            *([lambda: lens(ids)] if lens else []),
        ]
        times = fastest(passes, ROUNDS[n])
        cached = f"{times[2] / times[1]:>8.2f}" if lens else f"{'absent':>8}"
        print(
            f"{n:>7} {times[0] * 1e3:>10.2f} {times[1] * 1e3:>9.2f} "
            f"{times[0] / times[1]:>6.2f} {cached}"
        )


def eager(folder: str) -> Callable[[str], object]:
    """Hugging Face's own tokenizer and BERT, with eager attention."""
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (
        AutoModel.from_pretrained(folder, attn_implementation="eager").eval(),
        AutoTokenizer.from_pretrained(folder),
    )

    @torch.inference_mode()
    def run(text: str) -> object:
        return model(
            **tokenizer(text, return_tensors="pt"),
            output_attentions=True,
            output_hidden_states=True,
        )

    return run


def transformer_lens(folder: str) -> Callable[[torch.Tensor], object] | None:
    """TransformerLens (4.0 or newer) on the same weights, every activation cached; None where it is
    not installed."""
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ImportError:
        return None
    model = TransformerBridge.boot_transformers(folder, device="cpu")

    @torch.inference_mode()
    def run(ids: torch.Tensor) -> object:
        return model.run_with_cache(ids)

    return run


def fastest(passes: list[Callable[[], object]], rounds: int) -> list[float]:
    """The fewest seconds each pass took, one after the other in turn."""
    best = [float("inf")] * len(passes)
    for _ in range(rounds):
        for at, each in enumerate(passes):
            start = perf_counter()
            each()
            best[at] = min(best[at], perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
