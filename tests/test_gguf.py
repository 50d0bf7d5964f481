"""GGUF files: what is read of them is what was written, value for value; the conversion is made
once and made anew where it is damaged; what cannot be used is refused in a sentence."""

from __future__ import annotations

import shutil
import subprocess
import sys
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

from models import child_process, registry
from models.pretrained import gguf, gguf_conversion, model_files
from models.pretrained.model_files import NotLoaded

pytestmark = [pytest.mark.slow]

TYPES = "F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K".split()


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
        lambda source, goal, name, _: gguf_conversion.convert(source, goal, name),
    )
    monkeypatch.setattr(child_process, "limit_files", lambda size: None)


in_this_process = pytest.mark.usefixtures("here")


@pytest.fixture(scope="module")
def wide_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama whose rows are whole blocks of every type, which no test changes."""
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    more = {"vocab_size": len(tiny.gpt2_bytes()), "tie_word_embeddings": True, **sizes}
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
    handle = registry.load(f"ours:{folder}")
    assert handle.card.fingerprint == registry.load(f"ours:{folder}/model.gguf").card.fingerprint
    made = gguf.converted(folder / "model.gguf", "a model")
    found = load_file(made / "model.safetensors")
    for name, numbers in wanted.items():
        # Gemma's gains are written plus 1 and read less 1: two roundings.
        assert torch.allclose(found[name], numbers, rtol=0, atol=2e-7 * (family == "gemma")), name
    text = "The cat sat on the mat."
    ids = torch.tensor([handle.record(text).streams[0].ids.tolist()])
    oracle = transformers.AutoModelForCausalLM.from_pretrained(theirs, dtype=torch.float32).eval()
    with torch.inference_mode():
        ours = handle.model.logits(handle.model(ids))
        assert torch.allclose(ours, oracle(ids).logits, rtol=0, atol=PARITY * 10)


# ---- once, whole, and by several at once -----------------------------------------------------


@in_this_process
def test_a_conversion_is_made_once_and_anew_where_it_is_damaged(
    wide_llama: Path, tmp_path: Path, own_cache: Path
) -> None:
    file = tmp_path / "model.gguf"
    gguf_files.write(wide_llama, file)
    folder = gguf.converted(file, "a model")
    when = (folder / "config.json").stat().st_mtime_ns
    assert gguf.converted(file, "a model") == folder and folder.parent == own_cache
    assert (folder / "config.json").stat().st_mtime_ns == when
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    registry.load(f"ours:{file}")
    weights = folder / "model.safetensors"
    whole = bytearray(weights.read_bytes())
    whole[-4:] = np.float32(0.5).tobytes()
    weights.write_bytes(whole)
    with pytest.raises(NotLoaded, match="damaged"):
        registry.load(f"ours:{file}")
    registry.load(f"ours:{file}")
    assert [each.name for each in own_cache.iterdir()] == [folder.name]


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
        with pytest.raises(NotLoaded, match=r"^model\.gguf .*GGUF file.*\.$"):
            registry.load(f"ours:{file}")
    assert not list(own_cache.iterdir())


def test_what_a_process_of_its_own_refuses_is_said_too(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(NotLoaded, match=r"^model\.gguf .*GGUF file.*\.$"):
        registry.load(f"ours:{tmp_path / 'model.gguf'}")
    assert not list(own_cache.iterdir())


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
