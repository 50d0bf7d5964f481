"""Ship a trained model: `python -m models.export encoder --run runs/encoder --data DIR`.

Turns a run's newest checkpoint into `models/weights/<name>`: fp16 safetensors, the tokenizer, and the card with the scores measured on
held-out text by the shipped fp16 weights themselves.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from models import masked, own, shipped, train
from models.corpus import read
from models.probes import previous_far_out

ABOUT = {
    "encoder": {
        "summary": "Fills masked words in English text: the encoder of the paper (post-LN, sinusoidal positions), with a tied readout.",
        "data": [
            "Tatoeba English sentences, from www.manythings.org/anki and tatoeba.org (CC BY 2.0)",
            "Common Voice English sentences (CC0 1.0)",
            "22 books of Project Gutenberg (public domain in the USA)",
            "sentences of our own small grammar, models/grammar.py",
        ],
        "recipe": [
            "a quarter of the words chosen: 80 % masked, 10 % replaced, 10 % left; loss at the chosen places only",
            f"rows of at most {', '.join(map(str, masked.CURRICULUM))} tokens in the first, second, third and later epochs",
            f"in the first {masked.EPOCHS_WITH_ECHOES} epochs {masked.ECHO_SHARE:.0%} of the sentences stand twice in their row, the second time shuffled",
            f"from epoch {train.FIRST_EPOCH_ANYWHERE} on (counted from 0) half of the rows begin at a random position, so that all {train.N_POSITIONS} are met",
            "AdamW, betas 0.9 and 0.98, weight decay 0.01, rate 1e-3: warm-up 400 steps, level, falling to a fiftieth over the last fifth; clip 1; no dropout",
            f"batches of at most {masked.BATCH_TOKENS} tokens, seed {train.SEED}",
        ],
        "limits": [
            "Knows short everyday sentences and old children's books, and nothing of the world.",
            "Its names, spelling and grammar are those of English; other scripts are read byte by byte.",
            "Trained on rows of up to 128 tokens; it takes 512, but its heads grow blurred far out (last score below).",
            "No head looks at the same word elsewhere (best score below): tried, not reached.",
            "In its first epoch the small grammar could still make one of the app’s examples, “Herbivores eat plants.”; the others it never saw.",
        ],
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(ABOUT))
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    options = parser.parse_args()
    saved = torch.load(options.run / "checkpoint.pt", weights_only=True)
    folder = shipped.WEIGHTS / options.model
    folder.mkdir(parents=True, exist_ok=True)
    save_file({key: tensor.half().contiguous() for key, tensor in saved["model"].items()}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_bytes((options.run / "tokenizer.json").read_bytes())
    card = {"name": options.model, "config": saved["config"], "steps": saved["place"][0], **ABOUT[options.model]}
    write_card(folder, card)
    handle = own.load(options.model)
    _, held_out = read(options.data)
    card["n_parameters"] = handle.card.n_parameters
    card["measured"] = (
        f"on {train.HELD_OUT_SENTENCES} sentences and {train.HELD_OUT_PARAGRAPHS} paragraphs kept out of training; a quarter of the words hidden as in training. "
        "Heads: mean attention along the pattern, over a quarter of these texts, best head; broad: mean row entropy as a share of an even row’s"
    )
    card["scores"] = train.held_out_scores(handle.model, handle.tokenizer, held_out)
    card["scores"]["previous, positions 400 to 510 of 512"] = round(previous_far_out(handle, list(held_out.paragraphs)), 3)
    write_card(folder, card)


def write_card(folder: Path, card: dict) -> None:
    """Write the card as JSON that a person can read."""
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
