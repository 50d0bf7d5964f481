"""Families of Hugging Face models that are tried in the suite, with what each shows of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """What the models of one family show: `model_type` as their config.json says it, and an example
    by its name on the hub.

    opens: q, k, v and scores as well as patterns. law: each sub-layer's output, so that the
    residual stream adds up. positions: as `offers` says.
    """

    name: str
    model_type: str
    example: str
    kind: str
    norm: str
    positions: str
    opens: bool = True
    law: bool = True


FAMILIES = (
    Family("BERT", "bert", "google-bert/bert-base-uncased", "encoder", "post", "learned"),
    Family(
        "DistilBERT",
        "distilbert",
        "distilbert/distilbert-base-uncased",
        "encoder",
        "post",
        "learned",
    ),
    Family("RoBERTa", "roberta", "FacebookAI/roberta-base", "encoder", "post", "learned"),
    Family("ELECTRA", "electra", "google/electra-small-generator", "encoder", "post", "learned"),
    Family("ALBERT", "albert", "albert/albert-base-v2", "encoder", "post", "learned"),
    Family("MPNet", "mpnet", "microsoft/mpnet-base", "encoder", "post", "learned", opens=False),
    Family(
        "DeBERTa",
        "deberta-v2",
        "microsoft/deberta-v3-small",
        "encoder",
        "post",
        "relative",
        opens=False,
    ),
    Family("GPT-2", "gpt2", "openai-community/gpt2", "decoder", "pre", "learned"),
    Family("OPT", "opt", "facebook/opt-125m", "decoder", "pre", "learned"),
    Family(
        "GPT-NeoX, Pythia",
        "gpt_neox",
        "EleutherAI/pythia-70m",
        "decoder",
        "pre",
        "rotary",
        law=False,
    ),
    Family("BLOOM", "bloom", "bigscience/bloom-560m", "decoder", "pre", "distance", opens=False),
    Family("Llama", "llama", "HuggingFaceTB/SmolLM2-135M", "decoder", "pre", "rotary"),
    Family("Qwen2", "qwen2", "Qwen/Qwen2.5-0.5B", "decoder", "pre", "rotary"),
    Family("Mistral", "mistral", "mistralai/Mistral-7B-v0.1", "decoder", "pre", "rotary"),
    Family("Qwen3", "qwen3", "Qwen/Qwen3-0.6B", "decoder", "pre", "rotary"),
    Family("Gemma", "gemma", "google/gemma-2b", "decoder", "pre", "rotary"),
    Family("T5", "t5", "google-t5/t5-small", "encoder-decoder", "pre", "buckets"),
    Family("BART", "bart", "facebook/bart-base", "encoder-decoder", "post", "learned"),
    Family(
        "Marian", "marian", "Helsinki-NLP/opus-mt-en-fr", "encoder-decoder", "post", "sinusoids"
    ),
)
