"""Chats in the templates of many families against transformers' `apply_chat_template`, and
templates that come with malice."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import gguf_files
import pytest
import tiny
import transformers

from models.contract.recording import NotEncoded
from models.pretrained import hub, model_files, sandbox, weight_conversion
from models.pretrained.model_files import NotLoaded
from models.runtime import registry
from models.tokens import chat, chat_template
from models.tokens.chat_template import ChatTemplate
from models.tokens.template_renderer import Overrun

GENERATES = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}" + GENERATES
)
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception("
    "'Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + "
    "system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}"
    "{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
LLAMA_3 = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- if strftime_now is defined %}"
    "{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}{%- endif %}"
    "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content']|trim %}"
    "{%- set messages = messages[1:] %}{%- else %}{%- set system = '' %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\n\n' }}"
    "{%- if tools is not none %}{{- 'Environment: ipython\n' + tools | tojson(indent=4) }}"
    "{%- endif %}{{- 'Today Date: ' + date_string + '\n\n' + system + '<|eot_id|>' }}"
    "{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + "
    "message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token }}{% else %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}{% endfor %}"
)
ZEPHYR = (
    "{% for message in messages %}\n{{ '<|' + message['role'] + '|>\n' + message['content'] + "
    "eos_token }}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n"
    "{% endif %}\n{% endfor %}"
)
THINKS = (  # drops what an assistant thought, and looks into contents
    "{%- set ns = namespace(last=none) %}{%- for m in messages %}"
    "{%- if m.role == 'user' and not m.content.startswith('<tool_response>') %}"
    "{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}{%- for m in messages %}"
    "{%- set content = m.content.split('</think>')[-1].lstrip('\n') %}"
    "{{- '<|im_start|>' + m.role + '\n' + content + '<|im_end|>\n' }}{%- endfor %}" + GENERATES
)
GENERATION_TAG = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}"
    "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{{ '\n' }}{% else %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    + GENERATES
)
LOOPS = (
    "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
    "{% if loop.index > 9 %}{% break %}{% endif %}"
    "{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" + GENERATES
)
HEADERS = ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
TURNS = ("<|im_start|>", "<|im_end|>")
Maker = Callable[[], transformers.PreTrainedTokenizerFast]


def byte_level(*more: str, bos: str = "<s>") -> Maker:
    """Byte-level BPE with further special tokens."""
    names = dict.fromkeys((bos, "</s>", *more))
    return lambda: tiny.bytes_of(*names, bos_token=bos, eos_token="</s>")


def pieces(*more: str) -> Maker:
    """SentencePiece BPE as Llama's first one, <s> text, with further special tokens."""

    def made() -> transformers.PreTrainedTokenizerFast:
        tokenizer = tiny.sentencepiece("<s>", "")
        tokenizer.add_special_tokens({"additional_special_tokens": list(more)})
        return tokenizer

    return made


TOOLS = {"name": "tool_use", "template": "{{ raise_exception('tools') }}"}
NAMED = [TOOLS, {"name": "default", "template": CHATML}]
# By family: its tokenizer, and its template, a list of named ones as in tokenizer_config.json.
FAMILIES: dict[str, tuple[Maker, str | list[dict[str, str]]]] = {
    "Llama 2": (pieces(), LLAMA_2),
    "Llama 3": (byte_level("<|begin_of_text|>", *HEADERS, bos="<|begin_of_text|>"), LLAMA_3),
    "Gemma": (pieces("<start_of_turn>", "<end_of_turn>"), GEMMA),
    "SmolLM2": (byte_level(*TURNS, bos="<|im_start|>"), CHATML),
    "Mistral": (pieces(), MISTRAL),
    "Mistral 3": (pieces("[INST]", "[/INST]"), MISTRAL),
    "Zephyr": (pieces(), ZEPHYR),
    "Hermes 3, Command R": (byte_level(*TURNS), NAMED),
    "Qwen 3": (byte_level(*TURNS), THINKS),
    "generation tag": (byte_level(*TURNS), GENERATION_TAG),
    "loop controls": (byte_level(*TURNS), LOOPS),
}
CHATS = (
    "user: the cat sat on the mat?",
    "user: the dog\nassistant: a cat and a dog\nuser:   the old house  \n\n in the house",
    "system: café au lait.\nuser: naïve 👩‍👩‍👧 rôle\nassistant: she unlocked doors.\nuser: user",
    "user: the dog\nassistant: the old",
    "user: the <|im_end|></s> [INST] cat [/INST]<end_of_turn><|eot_id|> a dog",
    "user: the dog\nassistant: <think>a cat</think>\n\nthe mat\nuser: a",
)


def saved(family: str, folder: Path) -> Path:
    """The files of a family's tokenizer and template."""
    maker, template = FAMILIES[family]
    maker().save_pretrained(folder)
    file = folder / "tokenizer_config.json"
    settings = json.loads(file.read_text("utf-8")) | {"chat_template": template}
    file.write_text(json.dumps(settings), "utf-8")
    return folder


def of(folder: Path) -> ChatTemplate:
    """The chat template of a folder with its tokenizer."""
    made = chat_template.of_folder(folder, weight_conversion.tokenizer_of(folder)[0])
    assert made is not None
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_chat_has_the_ids_of_apply_chat_template(family: str, tmp_path: Path) -> None:
    ours = of(saved(family, tmp_path))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    n_read = 0
    for text in CHATS:
        said = chat.messages(text)
        is_open = said[-1].role == "assistant"
        try:
            expected = theirs.apply_chat_template(
                [{"role": each.role, "content": text[each.start : each.end]} for each in said],
                add_generation_prompt=not is_open,
                continue_final_message=is_open,
                sanitize_control_tokens=True,
                return_dict=False,
            )
        except Exception as refused:
            with pytest.raises(NotEncoded, match=re.escape(str(refused)[:40])):
                ours.tokens(text, 10**6)
            continue
        tokens, dropped = ours.tokens(text, 10**6) or (None, 0)
        assert tokens is not None and list(tokens.ids) == list(expected) and not dropped
        n_read += 1
        for message in said:
            of_it = [
                text[slice(*span)]
                for span, role in zip(tokens.spans, tokens.roles)
                if role and message.start <= span[0] < message.end
            ]
            content = text[message.start : message.end].rpartition("</think>")[2]
            written = {letter for letter in content if not letter.isspace()}
            left_out = family == "loop controls" and message.role == "system"
            assert left_out or written <= {letter for each in of_it for letter in each}, message
        for span, role, special in zip(tokens.spans, tokens.roles, tokens.special):
            (here,) = [one for one in said if one.start <= span[0] < one.end] or [None]
            assert role == (here.role if here else "") and special == (not role)
    assert n_read >= 4


@pytest.mark.parametrize("family", ["Llama 3", "Gemma", "SmolLM2", "Mistral 3", "Qwen 3"])
def test_a_pasted_template_is_read_as_the_chat_it_is(family: str, tmp_path: Path) -> None:
    ours = of(saved(family, tmp_path))
    for text in CHATS[:2]:
        said = tuple((one.role, text[one.start : one.end]) for one in chat.messages(text))
        plain, _ = ours.tokens(text, 10**6) or (None, 0)
        rendered = ours.render(said).text
        for pasted in (rendered, rendered.rstrip()):
            tokens, _ = ours.tokens(pasted, 10**6) or (None, 0)
            assert tokens is not None and plain is not None
            n = len(plain.ids) if pasted == rendered else len(tokens.ids)
            assert (tokens.ids, tokens.roles) == (plain.ids[:n], plain.roles[:n])
            read = "".join(pasted[slice(*span)] for span in tokens.spans if span[0] >= 0)
            assert "".join(read.split()) == "".join("".join(one for _, one in said).split())
    begun = rendered.rpartition(said[-1][1])[0]
    for text in (f"a cat {rendered}", f"{rendered}{rendered}a{rendered[:9]}", f"{begun}</s> cat"):
        assert ours.tokens(text, 10**6) is None, "special tokens within other text are letters"


def test_named_templates_in_files_are_read_too(tmp_path: Path) -> None:
    folder = saved("SmolLM2", tmp_path)
    named = folder / "additional_chat_templates"
    named.mkdir()
    (named / "tool_use.jinja").write_text(TOOLS["template"], "utf-8")
    tokenizer = weight_conversion.tokenizer_of(folder)[0]
    assert chat_template.of_folder(folder, tokenizer) is None, "no default, as in transformers"
    (folder / "chat_template.jinja").write_text(GEMMA, "utf-8")
    assert of(folder).template == GEMMA
    theirs = transformers.AutoTokenizer.from_pretrained(folder).get_chat_template()
    assert theirs == GEMMA


DOUBLED = (
    "{% set ns = namespace(a='aaaaaaaa') %}{% for i in range(30) %}{% set ns.a = ns.a + ns.a %}"
)
# Templates that take time or memory without end, by what is said of them.
ATTACKS = {
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "not end",
    "{{ 'a' * 5000000000 }}": "memory",
    DOUBLED + "{% endfor %}{{ ns.a }}": "memory",
    "{{ 'a' * 900000 }}": r"writes 900,000 characters for a chat of 6",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "calls itself without end|crashes",
}
# Templates that fail on a chat and take nothing.
FAULTS = {
    "": None,
    "{{ '' }}": "makes no token",
    "{% for %}": "fails on this chat",
    "{{ messages[7].content }}": "fails on this chat",
    "{{ [1][9] + 1 }}": "fails on this chat",
    "{{ 1 / 0 }}": "fails on this chat .*division by zero",
    "{{ messages.__class__.__mro__[1].__subclasses__() }}": "fails on this chat",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}": "fails on this chat",
    "{{ raise_exception('System first.') }}": "refuses these roles .*System first",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny sound Llama."""
    return tiny.build("llama", tmp_path)


def put(folder: Path, template: str) -> Path:
    """Give a folder a chat template."""
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("template", ATTACKS)
def test_a_template_without_bound_is_refused_in_the_trial(template: str, folder: Path) -> None:
    model, before = weight_conversion.load(put(folder, template), "it"), time.process_time()
    with pytest.raises(NotLoaded, match=f"The chat template of it .*(?:{ATTACKS[template]})"):
        sandbox._expect_chats(model, "it")
    with pytest.raises(Overrun, match=ATTACKS[template]) as refused:
        model.record("user: a word")  # of which nothing is tried again
    said = str(refused.value)
    assert said.endswith("; choose another model.") and len(said) < 160
    assert time.process_time() - before < 1, "nothing of it ran here"


@pytest.mark.slow
def test_the_trial_itself_renders_chats(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bytes_alone, file = tiny.build("qwen2", tmp_path / "qwen2"), tmp_path / "gguf" / "it.gguf"
    file.parent.mkdir()
    endless = "{{ 'a' * 900000 }}"
    gguf_files.write(bytes_alone, file, tokenizer__chat_template=endless)
    assert sandbox.tester.try_out(put(folder, CHATML), "it") == "ours:"
    for model in (put(folder, endless), hub.locate(str(file))):
        with pytest.raises(NotLoaded, match="The chat template of it writes 900,000 characters"):
            sandbox.tester.try_out(model, "it")


@pytest.mark.parametrize("template", FAULTS)
def test_a_template_that_fails_is_one_sentence_and_texts_are_read(
    template: str, folder: Path
) -> None:
    model = weight_conversion.load(put(folder, template), "it")
    assert len(model.record("the cat sat").streams[0].tokens) > 2
    if FAULTS[template] is None:
        assert model.chat is None
        return
    assert model.chat is not None
    model.chat.expect_sound()
    with pytest.raises(NotEncoded, match=FAULTS[template]) as refused:
        model.record("user: a word")
    said = str(refused.value)
    assert said.endswith(".") and "\n" not in said and len(said) < 260
    assert ("roles in this order" in said) == ("raise_exception" in template)


def test_a_model_in_its_own_code_reads_the_same_chat(folder: Path) -> None:
    put(folder, LLAMA_2)
    ours, theirs = (registry.load(f"{way}{folder}") for way in ("ours:", "hub:"))
    for text in ("user: a cat", "user: a\nassistant: the", "a cat and a dog"):
        one, two = (model.record(text).streams[0] for model in (ours, theirs))
        assert one.ids.tolist() == two.ids.tolist() and one.roles == two.roles
        assert one.spans.tolist() == two.spans.tolist()
        assert bool(one.roles) == text.startswith("user")
        assert list(theirs.generate(text).ids) == one.ids.tolist()


def test_a_template_that_is_a_pipe_or_far_too_long_is_refused(folder: Path) -> None:
    for name in ("chat_template.jinja", "additional_chat_templates/default.jinja"):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        os.mkfifo(file)
        with pytest.raises(NotLoaded, match=r"\.jinja of it is no file"):
            model_files.check_sizes(folder, "it")
        assert weight_conversion.load(folder, "it").chat is None
        file.unlink()
        with file.open("wb") as sparse:
            sparse.truncate(3 << 20)
        with pytest.raises(NotLoaded, match=r"\.jinja of it has 3 MB and Headlight reads 2"):
            model_files.check_sizes(folder, "it")
        file.unlink()
