"""Borrowed weights in our own classes beside their own code: `python -m benchmarks.pretrained`.

MiniLM, and a Qwen2-shaped model of 0.5 billion random numbers at 64 tokens beside transformers' own
eager pass over the same ids (`--only qwen2` for that alone).

Passes in turn in one process, so that the machine's noise falls on all alike: `record`; Hugging
Face's eager model with attentions and hidden states; and for MiniLM, where TransformerLens is
installed, its `run_with_cache`. Of MiniLM the first two go from the text to their result, each with
its own tokenizer, the third from ids. The figures are ratios of the fastest passes.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from time import perf_counter

import torch

from models import own_model, registry
from models.pretrained import weight_conversion
from models.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

LENGTHS = (16, 128, 512)
ROUNDS = {16: 60, 128: 40, 512: 15}
# Qwen2.5-0.5B's, but for its vocabulary, which a pass without words does not read.
QWEN2 = {
    "hidden_size": 896,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "intermediate_size": 4864,
    "vocab_size": 4096,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
}
QWEN2_TOKENS, QWEN2_ROUNDS, THREADS = 64, 8, 2


def main(only: str = "") -> None:
    if only in ("", "minilm"):
        minilm()
    if only in ("", "qwen2"):
        qwen2()


def qwen2() -> None:
    """A model of today from text to Recording, and ids to attentions and hidden states in its own
    code, both without a readout, on two threads."""
    import transformers

    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = transformers.Qwen2Model(transformers.Qwen2Config(**QWEN2)).eval()
    model.set_attn_implementation("eager")
    ours = weight_conversion.build(model.config.to_dict(), model.state_dict())
    words = ["the cat sat on the mat"] * 4
    bpe = Tokenizer.train(words, 300, CAUSAL_LM_SPECIALS)
    handle = own_model.handle_of(ours, bpe, "qwen2", "random", "float32", ends=((), ()))
    text = " ".join(["the"] * QWEN2_TOKENS)
    ids = torch.tensor(handle.record(text).streams[0].ids)[None]
    assert ids.shape[1] == QWEN2_TOKENS

    @torch.inference_mode()
    def theirs() -> object:
        return model(ids, output_attentions=True, output_hidden_states=True, use_cache=False)

    one, other = fastest([lambda: handle.record(text), theirs], QWEN2_ROUNDS)
    held = sum(each.untyped_storage().nbytes() for each in storages(ours))
    numbers = sum(each.nbytes for each in ours.parameters())
    print(
        f"qwen2, {handle.card.n_parameters:,} numbers, {QWEN2_TOKENS} tokens: record "
        f"{one * 1e3:.1f} ms, their eager pass {other * 1e3:.1f} ms, ratio {one / other:.2f}; "
        f"memory of the weights {held / numbers:.3f} times their numbers"
    )


def storages(model: torch.nn.Module) -> list[torch.Tensor]:
    """A tensor of each piece of memory that a model's weights lie in, its fused matrices too."""
    tensors = list(model.parameters())
    tensors += [part for each in model.modules() for part in getattr(each, "fused", None) or ()]
    return list({each.untyped_storage().data_ptr(): each for each in tensors}.values())


def minilm() -> None:
    """Three lengths of text."""
    torch.set_num_threads(1)
    handle = registry.load("minilm")
    folder = registry.packaged_folder()
    theirs = eager(str(folder))
    lens = transformer_lens(str(folder))
    print(
        f"{'tokens':>7} {'record ms':>10} {'their ms':>9} {'ratio':>6} {'cached':>8}   "
        "(fastest passes; cached: TransformerLens / theirs)"
    )
    for n in LENGTHS:
        text = " ".join(["a"] * (n - 2))
        ids = torch.tensor([[int(each) for each in handle.record(text).streams[0].ids]])
        assert ids.shape[1] == n
        passes: list[Callable[[], object]] = [
            lambda: handle.record(text),
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
    main(sys.argv[2] if sys.argv[1:2] == ["--only"] else "")
