"""GGUF files: what is read of them is what was written, value for value; the conversion is made
once and made anew where it is damaged; what cannot be used is refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gguf_files
import numpy as np
import pytest
import tiny
import torch
import transformers
from safetensors.torch import load_file, save_file
from tolerances import PARITY

from models import child_process
from models.pretrained import gguf, gguf_conversion, gguf_header, model_files, sandbox
from models.pretrained.model_files import NotLoaded
from models.runtime import registry

pytestmark = [pytest.mark.slow]

TYPES = [name for name, *_ in gguf_header.TYPES.values()]
NASTY = (
    "",
    " ",
    "The cat sat on the mat.",
    "  two  spaces ",
    "tabs\tand\nlines\r\n\n  end ",
    "it's we'll DON'T",
    "7 24 1999 3.14 a1b2",
    "Ünïcödé naïve e\u0301 日本語 ไทย עברית 🙂👩‍👩‍👧",
    "\x00\u200b\ufeff\u202e<s></s><|endoftext|>",
    "(((!!!???)))---___",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "headlight" / "gguf"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversions in this process, without its limits: another takes two seconds to start."""
    monkeypatch.setattr(
        gguf,
        "_run_converter",
        lambda source, goal, name, *_: gguf_conversion.convert(source, goal, name),
    )
    monkeypatch.setattr(child_process, "limit_files", lambda size: None)


in_this_process = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def wide_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama whose rows are whole blocks of every type, which no test changes."""
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    more = {"vocab_size": len(tiny.gpt2_bytes()), "tie_word_embeddings": True, **sizes}
    more["attention_bias"] = True
    torch.manual_seed(3)
    return tiny.save(tmp_path_factory.mktemp("llama"), "LlamaForCausalLM", tiny.LLAMA | more)


# ---- value for value -------------------------------------------------------------------------


@in_this_process
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_read_value_for_value(kind: str, wide_llama: Path, tmp_path: Path) -> None:
    """By the package's reference functions, and the rows of q and k in Hugging Face's order. The
    chat template stays with the model."""
    file, template = tmp_path / "model.gguf", "{{ messages[0]['content'] }}"
    wanted = gguf_files.write(wide_llama, file, kind, tokenizer__chat_template=template)
    folder = gguf.converted(file, "a model")
    found = load_file(folder / "model.safetensors")
    assert found.keys() == wanted.keys()
    for name, numbers in wanted.items():
        assert torch.equal(found[name].float(), numbers), name
    matrix = found["model.layers.0.mlp.up_proj.weight"].dtype
    assert matrix == {"F16": torch.float16, "BF16": torch.bfloat16}.get(kind, torch.float32)
    manifest = gguf.manifest(folder)
    assert manifest["weights"] == f"{kind} (GGUF), dequantised"
    assert manifest["chat_template"] == template


@in_this_process
@pytest.mark.parity
@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3", "gemma"])
def test_every_family_runs_as_the_model_that_was_written(
    family: str, tiny_folder: Callable, tmp_path: Path
) -> None:
    """Weights and logits; the file opens from its folder too."""
    theirs, folder = tiny_folder(family), tmp_path / "alone"
    folder.mkdir()
    wanted = gguf_files.write(theirs, folder / "model.gguf")
    model = registry.load(f"ours:{folder}")
    assert model.card.fingerprint == registry.load(f"ours:{folder}/model.gguf").card.fingerprint
    made = gguf.converted(folder / "model.gguf", "a model")
    found = load_file(made / "model.safetensors")
    for name, numbers in wanted.items():
        # Gemma's gains are written plus 1 and read less 1: two roundings.
        assert torch.allclose(found[name], numbers, rtol=0, atol=2e-7 * (family == "gemma")), name
    text = "The cat sat on the mat."
    ids = torch.tensor([model.record(text).streams[0].ids.tolist()])
    oracle = transformers.AutoModelForCausalLM.from_pretrained(theirs, dtype=torch.float32).eval()
    with torch.inference_mode():
        ours = model.network.logits(model.network(ids))
        assert torch.allclose(ours, oracle(ids).logits, rtol=0, atol=PARITY * 10)


# ---- once, whole, and by several at once -----------------------------------------------------


@in_this_process
def test_a_conversion_is_made_once_and_anew_where_it_is_damaged(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    sandbox.tester.close()  # the next one has this test's cache
    file = tmp_path / "model.gguf"
    gguf_files.write(wide_llama, file)
    folder = gguf.converted(file, "a model")
    when = (folder / "config.json").stat().st_mtime_ns
    assert gguf.converted(file, "a model") == folder and folder.parent == own_cache
    assert (folder / "config.json").stat().st_mtime_ns == when
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    registry.load(f"ours:{file}")
    weights = folder / "model.safetensors"
    right = weights.read_bytes()
    for at in (-1, 20, 5):  # in a number, in the head, in its length
        whole = bytearray(right)
        whole[at] ^= 1
        weights.write_bytes(whole)
        for way in ("ours:", "hub:"):
            registry.load(f"{way}{file}")
        assert weights.read_bytes() == right
        weights.write_bytes(whole)
        assert registry.trial_load(str(file))[0] == f"ours:{file}"
        assert weights.read_bytes() == right
    assert [each.name for each in own_cache.iterdir()] == [folder.name]
    # What anybody wrote is no conversion, whatever it says of itself.
    elsewhere = shutil.copytree(folder, tmp_path / "elsewhere")
    for digests in ({"model.safetensors": ["0", 1]}, {}):
        (elsewhere / gguf.MANIFEST).write_text(json.dumps({"digests": digests}), "utf-8")
        registry.load(f"ours:{elsewhere}")
    assert (elsewhere / "model.safetensors").read_bytes() == right


def test_two_processes_convert_at_once(wide_llama: Path, tmp_path: Path, own_cache: Path) -> None:
    file = tmp_path / "model.gguf"
    gguf_files.write(wide_llama, file)
    code = (
        "import sys; from pathlib import Path; from models.pretrained import gguf;"
        "print(gguf.converted(Path(sys.argv[1]), 'a model'))"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = {each.communicate()[0].strip() for each in both}
    assert len(answers) == 1 and gguf.is_complete(Path(answers.pop()))
    assert len(list(own_cache.iterdir())) == 1


def converting(file: Path) -> tuple[subprocess.Popen, Path, int]:
    """A process that converts a file, once its converter has begun: that one's folder and pid."""
    code = "import sys; from pathlib import Path; from models.pretrained import gguf;"
    code += "gguf.converted(Path(sys.argv[1]), 'a model')"
    process = subprocess.Popen([sys.executable, "-c", code, str(file)])
    while True:
        for folder in gguf.cache().glob("making-*"):
            for entry in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if str(folder).encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                        return process, folder, int(entry.name)
        assert process.poll() is None
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_conversion_that_is_killed_leaves_nothing_that_stays(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    """Its converter ends with it, and the next look at any GGUF file removes what it had made."""
    gguf_files.write(wide_llama, file := tmp_path / "model.gguf")
    process, folder, converter = converting(file)
    (folder / "model.safetensors").write_bytes(b"half of it")
    process.kill()
    process.wait()
    for _ in range(3000):
        if not Path(f"/proc/{converter}").exists():
            break
        time.sleep(0.02)
    assert not Path(f"/proc/{converter}").exists() and folder.exists()
    made = gguf.converted(file, "a model")
    assert [each.name for each in own_cache.iterdir()] == [made.name]


def test_stop_ends_a_conversion_and_the_reading_of_a_file(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    gguf_files.write(wide_llama, file := tmp_path / "model.gguf")
    for stopped in (lambda: True, lambda: any(own_cache.glob("making-*"))):
        with pytest.raises(NotLoaded, match=r"^Stopped\.$"):
            registry.trial_load(str(file), cancelled=stopped)
        assert not own_cache.exists() or not list(own_cache.iterdir())


# ---- refused ---------------------------------------------------------------------------------


@in_this_process
def test_a_file_that_is_none_or_cut_short_is_refused(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    file = tmp_path / "model.gguf"
    gguf_files.write(wide_llama, file)
    whole = file.read_bytes()
    for broken in (b"", b"GGUF", b"no model at all" * 50, whole[: len(whole) // 2], whole[:200]):
        file.write_bytes(broken)
        with pytest.raises(NotLoaded, match=r"model\.gguf (is no GGUF|lies beyond).*\.$"):
            registry.load(f"ours:{file}")
    assert not own_cache.exists()


def test_what_a_process_of_its_own_refuses_is_said_too(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    gguf_files.write(wide_llama, file := tmp_path / "model.gguf", pre="a-new-one")
    with pytest.raises(NotLoaded, match=r"^model\.gguf cannot be opened: .*'a-new-one'.*\.$"):
        registry.load(f"ours:{file}")
    assert not list(own_cache.iterdir())


GAIN, FIRST = "output_norm.weight", "token_embd.weight"


def patched(data: bytes, key: str, skipped: int, kind: str, value: int) -> bytes:
    """A file with a number put in so many bytes behind a name."""
    at = data.index(key.encode()) + len(key) + skipped
    number = struct.pack("<" + kind, value)
    return data[:at] + number + data[at + len(number) :]


def with_value(data: bytes, key: str, kind: int, value: bytes) -> bytes:
    """A file with one value more in its metadata, the first."""
    (n,) = struct.unpack("<Q", data[16:24])
    name = struct.pack("<Q", len(key)) + key.encode() + struct.pack("<I", kind)
    return data[:16] + struct.pack("<Q", n + 1) + name + value + data[24:]


# What is behind a tensor's name: its dimensions (4 + 8 each), its type (4), its offset (8).
ATTACKS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "before the file": (
        lambda data: patched(data, FIRST, 24, "q", -32),
        "token_embd.weight of model.gguf lies beyond the end of the file",
    ),
    "behind the file": (
        lambda data: patched(data, GAIN, 16, "q", 1 << 40),
        "output_norm.weight of model.gguf lies beyond the end of the file",
    ),
    "one on another": (
        lambda data: patched(data, GAIN, 16, "q", 0),
        "weight of model.gguf lies on top of another",
    ),
    "a quantised gain": (
        lambda data: patched(data, GAIN, 12, "I", 3),
        "output_norm.weight, a gain or a bias, as Q4_1, and these are floats",
    ),
    "an unknown type": (
        lambda data: patched(data, FIRST, 20, "I", 99),
        "stores token_embd.weight in the type 99 of the format",
    ),
    "context 0": (
        lambda data: patched(data, "llama.context_length", 4, "I", 0),
        "llama.context_length is 0, and it is a whole number above 0",
    ),
    "no heads": (
        lambda data: patched(data, "llama.attention.head_count", 4, "I", 0),
        "llama.attention.head_count is 0, and it is a whole number above 0",
    ),
    "a billion layers": (
        lambda data: patched(data, "llama.block_count", 4, "I", 10**9),
        "says num_hidden_layers is 1,000,000,000, and Headlight takes up to 1,000",
    ),
    "an alignment that is no number": (
        lambda data: with_value(data, "general.alignment", 6, struct.pack("<f", float("nan"))),
        "no GGUF file, or it is cut short or broken",
    ),
    "endless lists": (
        lambda data: patched(data, "tokenizer.ggml.tokens", 8, "Q", 1 << 60),
        "no GGUF file, or it is cut short or broken",
    ),
    "endless tensors": (
        lambda data: data[:8] + struct.pack("<Q", 1 << 60) + data[16:],
        "no GGUF file, or it is cut short or broken",
    ),
}


@in_this_process
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_head_that_lies_is_refused_with_its_reason(
    attack: str, wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    file, (change, why) = tmp_path / "model.gguf", ATTACKS[attack]
    gguf_files.write(wide_llama, file)
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(NotLoaded, match=re.escape(why)) as refused:
        registry.load(f"ours:{file}")
    assert str(refused.value).endswith(".") and str(refused.value).count(". ") == 0
    assert not own_cache.exists() or not list(own_cache.iterdir())


@pytest.mark.parametrize("claimed", [False, True])
def test_a_sparse_file_of_200_gb_is_refused_by_its_head_alone(
    claimed: bool, wide_llama: Path, tmp_path: Path
) -> None:
    """To hash it would take minutes: it is refused before, also where a tensor claims all of it."""
    gguf_files.write(wide_llama, file := tmp_path / "model.gguf")
    data, size = file.read_bytes(), 200 << 30
    if claimed:
        last = max(gguf_header.check(file, "it"), key=lambda each: each.begin)
        assert len(last.shape) == 1  # of 4 bytes each
        n = last.shape[0] + ((size - len(data)) // 4 & -32)
        file.write_bytes(patched(data, last.name, 4, "Q", n))
        size = len(data) + 4 * (n - last.shape[0])
    os.truncate(file, size)
    with pytest.raises(NotLoaded, match="billion parameters" if claimed else "behind its last"):
        registry.load(f"ours:{file}")


@in_this_process
def test_what_our_classes_do_not_run_is_refused_by_name(wide_llama: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(wide_llama, tmp_path / "theirs")
    for settings, more, why in (
        ({}, {"llama__rope__scaling__type": "yarn"}, "stretched by 'yarn'"),
        ({"model_type": "phi3"}, {}, "'phi3'.*llama, mistral, qwen2, qwen3, gemma run here"),
    ):
        tiny.change(folder, **settings)
        gguf_files.write(folder, tmp_path / "model.gguf", **more)
        with pytest.raises(NotLoaded, match=why):
            registry.load(f"ours:{tmp_path / 'model.gguf'}")


@in_this_process
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused_in_any_tensor(
    number: float, wide_llama: Path, tmp_path: Path
) -> None:
    folder, file = shutil.copytree(wide_llama, tmp_path / "theirs"), tmp_path / "model.gguf"
    name = "model.layers.0.mlp.up_proj.weight"
    tensors = load_file(folder / "model.safetensors")
    tensors[name][3, 4] = number
    for spare, read in ((number, "blk.0.attn_rot_embd"), (2.0, name)):
        if read == name:
            save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        gguf_files.write(folder, file, spare={"blk.0.attn_rot_embd": np.array([1, spare], "f4")})
        with pytest.raises(NotLoaded, match=rf"\(NaN or infinite\), the first.* {read};"):
            registry.load(f"ours:{file}")


def test_a_folder_with_several_files_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(NotLoaded, match="2 GGUF files .* a.gguf"):
        gguf.gguf_file(tmp_path)
    (tmp_path / "b.gguf").unlink()
    assert gguf.gguf_file(tmp_path) == tmp_path / "a.gguf"
    assert model_files.is_folder(str(tmp_path / "a.gguf"))
