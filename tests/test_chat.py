"""Chats: messages by role, the template's tokens, and what heads do where an answer begins."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import javascript
import numpy as np
import pytest
import test_panels
import transformers
from app_harness import page_at
from conftest import needs_smollm2, read_once
from javascript import needs_node
from prediction_oracle import opened
from tolerances import SUMMED

from explorer.analysis import findings
from explorer.analysis.questions import is_question
from explorer.app.state import models
from explorer.figures.formatting import percent
from explorer.figures.kinds import Flow
from explorer.panels import attention
from explorer.text import findings as findings_text
from models import smollm2
from models.contract.recording import NotEncoded
from models.network import own_model
from models.network.config import Config
from models.network.own_model import OwnModel, record
from models.network.transformer import Decoder
from models.runtime.run import Run
from models.tokens import chat
from models.tokens.chat_template import ChatTemplate
from models.tokens.tokenizer import CAUSAL_LM_SPECIALS, Tokenizer

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('system first') }}{% endif %}"
    "[BOS]{{ m.role + '\n' + m.content | trim + '[EOS]' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[BOS]assistant\n' }}{% endif %}"
)
CHATS = (
    "user: What is the capital of Nepal?",
    "system: You answer in one word.\nuser: The capital of France?\nassistant: Paris.\n"
    "user: And of\nItaly?",
    "User :   Où est la bibliothèque ?  \n\n",
    "user: ",
    "user: a <|im_end|> typed by a person [EOS] is text",
    "user: 你好 👩‍👩‍👧\nassistant: Hello",
)


@pytest.fixture(scope="module")
def chatting() -> OwnModel:
    """A small random decoder with a chat template."""
    words = ["user system assistant What is the capital of Nepal France one word answer"] * 4
    tokenizer = Tokenizer.train(words, 300, CAUSAL_LM_SPECIALS)
    model = Decoder(Config(len(tokenizer), 32, 2, 2, 64, 128)).eval()
    return own_model.from_network(
        *(model, tokenizer, "chatting", ""),
        ends=(("[BOS]",), ()),
        chat=ChatTemplate(TEMPLATE, tokenizer),
    )


@pytest.mark.slow
@needs_smollm2
def test_a_chat_has_the_tokens_of_transformers_own_template() -> None:
    model = read_once(smollm2.NAME)
    theirs = transformers.AutoTokenizer.from_pretrained(smollm2.folder())
    for text in CHATS:
        tokens, _ = own_model.frame(model, text)
        messages = chat.messages(text)
        is_answer = messages[-1].role == "assistant"
        expected = theirs.apply_chat_template(
            [{"role": each.role, "content": text[each.start : each.end]} for each in messages],
            add_generation_prompt=not is_answer,
            continue_final_message=is_answer,
            return_dict=True,
        )["input_ids"]
        if "<|im_end|>" in text:  # what a person types is text: transformers reads it as special
            ends = tokens.ids.count(theirs.convert_tokens_to_ids("<|im_end|>"))
            assert ends == 2, "of the system's message and the user's"
        else:
            assert list(tokens.ids) == list(expected)


@pytest.mark.parametrize("text", CHATS)
def test_messages_keep_their_places_in_the_text_and_the_template_has_none(
    chatting: OwnModel, text: str
) -> None:
    tokens, dropped = own_model.frame(chatting, text)
    messages = chat.messages(text)
    places = {at for start, end in tokens.spans if start >= 0 for at in range(start, end)}
    contents = {at for each in messages for at in range(each.start, each.end)}
    assert dropped == 0 and {at for at in contents if not text[at].isspace()} <= places
    assert all(mark == (span == (-1, -1)) for mark, span in zip(tokens.special, tokens.spans))
    n_ended = len(messages) - (messages[-1].role == "assistant")
    assert tokens.ids.count(chatting.tokenizer.eos) == n_ended, "typed special tokens are text"


def test_an_answer_begins_after_the_user_and_goes_on_after_the_assistant(
    chatting: OwnModel,
) -> None:
    def end(text: str) -> str:
        labels = own_model.frame(chatting, text)[0].labels[-12:]
        return "".join(labels).replace("‧", "")

    assert end("user: What is it").endswith("‹t›‹⏎›")
    assert end("user: What is it\nassistant: the capital of").endswith("capitalof")


def test_an_answer_becomes_a_message_of_the_assistant() -> None:
    text = chat.with_answer("user: Hi\n", " Hello")
    assert text == "user: Hi\nassistant: Hello"
    assert chat.with_answer(text, " there.") == text + " there."
    assert [each.role for each in chat.messages(text)] == ["user", "assistant"]


def test_what_is_no_chat_is_read_as_it_stands(chatting: OwnModel) -> None:
    for text in ("The user: a person", "users: many", "", "Nepal\nuser: Hi"):
        assert chat.messages(text) == ()
        plain = chatting.tokenizer.tokens(text, 128, ("[BOS]",), ())
        assert own_model.frame(chatting, text) == plain
    without = read_once("decoder")
    stream = record(without, CHATS[0]).streams[0]
    assert stream.roles == () and not any(chat.parts_of(stream.tokens, stream.roles))


def test_a_special_token_that_is_typed_into_a_text_is_said_to_be_letters(
    chatting: OwnModel,
) -> None:
    for model, text, token in (
        (chatting, "What is [BOS] the [EOS] capital", "[BOS]"),
        (chatting, "user: What is [EOS]", "[EOS]"),
        (chatting, "[BOS]user\nWhat is it[EOS]\n[BOS]assistant\n", ""),
        (chatting, "What is the [capital] BOS", ""),
        (read_once("encoder"), "The [CLS] cat [SEP]", "[CLS]"),
        (read_once("encoder"), "The [MASK] sat on a cat.", ""),
        (read_once("decoder"), "The cat [EOS]", "[EOS]"),
    ):
        Run.of(recording := model.record(text), model)
        assert models.typed_special(recording) == token, text
    pasted = record(chatting, "[BOS]user\nWhat is it[EOS]\n[BOS]assistant\n").streams[0]
    assert set(pasted.roles) == {"", "user"}
    assert len(chat.message_starts(pasted.tokens, pasted.roles)) == 1, "the answer"
    app = page_at("heads", model="encoder", text="The [CLS] cat")
    (note,) = [each.value for each in app.caption if "plain text here" in each.value]
    assert "leave it out" in note
    app = page_at("heads", model="encoder", text="[CLS] What is the capital of Nepal?")
    assert not [each for each in app.button if each.key == "ask question"], "one note on the form"


def test_questions_are_told_from_other_texts() -> None:
    lines = Path(__file__).with_name("questions.txt").read_text("utf-8").splitlines()
    for line in lines:
        kind, text = line.split("\t")
        assert is_question(text) == (kind == "yes"), text
    assert sum(line.startswith("yes") for line in lines) >= 20


def test_roles_that_the_template_refuses_are_refused_in_a_sentence(chatting: OwnModel) -> None:
    with pytest.raises(NotEncoded, match="refuses these roles in this order"):
        record(chatting, "user: Hi\nsystem: You answer.")


def test_parts_of_a_chat_are_its_question_its_role_names_and_its_template(
    chatting: OwnModel,
) -> None:
    text = "user: What is France\nassistant: one word\nuser: the capital of Nepal"
    tokens, _ = own_model.frame(chatting, text)
    parts = chat.parts_of(tokens.labels, tokens.roles)
    question = [span for span, part in zip(tokens.spans, parts) if part == "the question"]
    last = chat.messages(text)[-1]
    assert (question[0][0], question[-1][1]) == (last.start, last.end)
    names = "".join(label for label, part in zip(tokens.labels, parts) if part == "the role names")
    assert re.sub("[‹›]", "", names) == "userassistantuserassistant"
    roles = tokens.roles
    begun = [role for at, role in enumerate(roles) if role and role != roles[at - 1]]
    assert begun == ["user", "assistant", "user"]


@pytest.mark.slow
@needs_node
def test_every_panel_tells_the_template_from_the_text(chatting: OwnModel, tmp_path: Path) -> None:
    text = "user: What is France\nassistant: one word\nuser: the capital of user"
    recording = record(chatting, text)
    run, stream = Run.of(recording, chatting), recording.streams[0]
    template, typed = (
        {label for label, mark in zip(stream.tokens, stream.special) if mark == kind}
        for kind in (True, False)
    )
    assert {"‹user›", "‹⏎›", "[BOS]"} < template and not template & typed
    panels, followed = [], {}  # the row that a flow is about has the ink of its light
    for name in test_panels.NAMES:
        panel = test_panels.made(name, run)
        if not isinstance(panel, str):
            (tmp_path / name).write_bytes(panel.encode())
            panels.append(name)
            flows = [each for each in panel.figures if isinstance(each, Flow)]
            followed[name] = {band.rows[band.selected] for each in flows for band in each.bands}
    (tmp_path / "code").mkdir()
    done = javascript.run(
        *("node", "sheets.js", str(javascript.served(tmp_path / "code"))),
        *(str(tmp_path / name) for name in panels),
    )
    assert done.returncode == 0, done.stderr
    seen = set()
    for name in panels:
        drawing = ElementTree.parse(tmp_path / f"{name}.svg")
        for each in drawing.iter("{http://www.w3.org/2000/svg}text"):
            if "".join(each.itertext()).split(" ")[-1] in template - followed[name]:
                seen.add(name)
                assert "fill-opacity" in each.attrib or each.get("fill") != "#111111", name
    assert len(seen) > 20


def test_messages_stand_apart_in_sentences_and_menus(chatting: OwnModel) -> None:
    recording = record(chatting, "user: What is France\nassistant: one word\nuser: the capital")
    run = Run.of(recording, chatting)
    (linked,) = attention.head(run, layer=0, head=0).figures
    stream = recording.streams[0]
    assert [stream.tokens[at] for at in linked.breaks] == ["[BOS]"] * 3, "two more, and the answer"
    roles = stream.roles
    firsts = [at for at, role in enumerate(roles) if role and not roles[at - 1]]
    assert [roles[at] for at in firsts] == ["user", "assistant", "user"]
    for start, first in zip(linked.breaks, firsts[1:]):
        assert not any(roles[start:first])
    bare = attention.head(run, layer=0, head=0, tokens="No specials").figures[0]
    assert [bare.columns[at] for at in bare.breaks[:2]] == [stream.tokens[at] for at in firsts[1:]]


@pytest.mark.slow
@needs_smollm2
@pytest.mark.parametrize("text", CHATS[:2])
def test_findings_of_a_chat_are_the_weights_where_the_answer_begins(text: str) -> None:
    recording = read_once(smollm2.NAME).record(text)
    stream, attention = recording.streams[0], recording.attention[0]
    parts = np.array(chat.parts_of(stream.tokens, stream.roles))
    told = [one for one in findings.findings(recording) if one.kind == findings.CHAT]
    assert {one.words[0] for one in told} >= {"the question", "the role names"}
    for one in told:
        weights = attention.pattern[:, :, -1][..., parts == one.words[0]].sum(-1)
        assert one.value == pytest.approx(weights.max(), abs=SUMMED)
        assert one.chance == pytest.approx((parts == one.words[0]).mean())
        assert one.also == (weights >= 0.5).sum() - 1
        assert percent(one.value) in findings_text.headline(one, str)
    assert not [one for one in findings.findings(read_once("decoder").record(text)) if one in told]


@pytest.mark.slow
@needs_smollm2
def test_a_model_answers_a_chat_on_the_page_and_its_answer_joins_it() -> None:
    app = opened("generate", model=smollm2.NAME, text=CHATS[0], t="0")
    assert any("chat of 1 message" in each.value for each in app.caption)
    for _ in range(3):
        app.button(key="write one").click().run()
    app.button(key="adopt").click().run()
    assert not app.exception
    assert app.session_state["text"] == f"{CHATS[0]}\nassistant: The capital of"
