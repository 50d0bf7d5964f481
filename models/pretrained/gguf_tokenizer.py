"""The tokenizer of a GGUF file, as tokenizer.json and tokenizer_config.json.

transformers builds it from the file's metadata. It splits texts as GPT-2 does for the names of
pre-tokenizers that it does not know; those that differ are put right here.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import pre_tokenizers

from models.pretrained.model_files import NotLoaded

# Byte-level vocabularies that split a text as GPT-2 does.
AS_GPT2 = ("", "default", "gpt-2", "phi-2", "jina-en", "jina-es", "jina-de", "olmo", "mpt")
# Those that take each digit by itself first.
DIGIT_BY_DIGIT = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone")


def write_tokenizer(source: Path, goal: Path, split: str) -> str:
    """Write the tokenizer of a file into a folder; its chat template, "" where it has none.

    split: what the file calls its pre-tokenizer. Raises NotLoaded for one that is not known.
    """
    import transformers
    from transformers.integrations.gguf import gguf_tokenizer_mapping as known

    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(
        str(source.parent), gguf_file=source.name
    )
    backend = tokenizer.backend_tokenizer
    if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        if split in DIGIT_BY_DIGIT:
            backend.pre_tokenizer = pre_tokenizers.Sequence(
                [pre_tokenizers.Digits(individual_digits=True), backend.pre_tokenizer]
            )
        elif split not in (*AS_GPT2, *known.GGUF_PRE_TOKENIZER_SPLITS):
            raise NotLoaded(
                f"its tokenizer splits texts by {split[:30]!r}, which is not known here"
            )
    template = tokenizer.chat_template or ""
    tokenizer.save_pretrained(str(goal))
    return template if isinstance(template, str) else ""
