"""Multilingual translators: source and target language are choices by their codes, a part of the
model's name, and texts begin with the tokens that transformers' own code gives them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tiny
import torch
import transformers
from test_hf_models_on_pages import opened, there
from tolerances import PASSED

import headlight
from explorer.app.state.models import record_trial
from explorer.panels import spec
from models.contract.recording import Recording
from models.runtime import registry
from models.runtime.run import Run

pytestmark = [pytest.mark.slow]
LETTERS = [chr(code) for code in range(97, 123)]
PIECES = ["▁", *(f"▁{letter}" for letter in LETTERS), *LETTERS]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
NLLB = ("deu_Latn", "eng_Latn", "fra_Latn")
SOURCE, TARGET = "the cat sat", "le chat"


def nllb() -> transformers.NllbTokenizer:
    """As NLLB's: a code, the text, </s>."""
    vocab = {piece: at for at, piece in enumerate([*SPECIAL, *PIECES])}
    merges = [("▁", letter) for letter in LETTERS]
    return transformers.NllbTokenizer(vocab, merges, extra_special_tokens=list(NLLB))


def mbart() -> transformers.MBart50Tokenizer:
    """As mBART-50's, of all its 52 languages."""
    scores = [*((piece, 0.0) for piece in SPECIAL), *((piece, -2.0) for piece in PIECES)]
    return transformers.MBart50Tokenizer(vocab=[*scores, ("<mask>", 0.0)], src_lang="en_XX")


MODELS: dict[str, tuple[Callable, str, tuple[str, str], tuple[str, str]]] = {
    "nllb": (nllb, "M2M100ForConditionalGeneration", ("eng_Latn", "fra_Latn"), NLLB[:2]),
    "mbart50": (mbart, "MBartForConditionalGeneration", ("en_XX", "fr_XX"), ("de_DE", "en_XX")),
}


@pytest.fixture(scope="module", params=MODELS)
def translator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """A folder of one, its tokenizer, the languages of its settings, and two others."""
    make, kind, usual, others = MODELS[request.param]
    words, folder = make(), tmp_path_factory.mktemp(request.param)
    settings = {**tiny.TWO, "vocab_size": len(words), "pad_token_id": 1, "bos_token_id": 0}
    torch.manual_seed(2)
    model = tiny.random_model(kind, {**settings, "eos_token_id": 2, "decoder_start_token_id": 2})
    model.generation_config.forced_bos_token_id = words.convert_tokens_to_ids(usual[1])
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return folder, words, usual, others


def expected(words: transformers.PreTrainedTokenizerBase, pair: tuple[str, str]) -> tuple:
    """The ids of the source, and of what a decoder reads of the target, by transformers' own code:
    its labels, after </s> where they begin with a language."""
    words.src_lang, words.tgt_lang = pair
    made = words(SOURCE, text_target=TARGET)
    return made["input_ids"], [2, *made["labels"][:-1]]


def read(recording: Recording) -> tuple[list[int], list[int]]:
    source, target = recording.streams
    return source.ids.tolist(), target.ids.tolist()


def test_both_texts_begin_as_in_transformers_whatever_the_languages(translator: tuple) -> None:
    folder, words, usual, others = translator
    plain = headlight.load(f"hub:{folder}")
    offered = plain.capabilities
    assert (offered.source, offered.target) == usual and {*usual, *others} < {*offered.languages, 0}
    assert read(plain.record(SOURCE, target=TARGET)) == expected(words, usual)
    oracle = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for pair in (others, others[::-1]):
        model = headlight.load(f"hub:{folder}@{pair[0]}-{pair[1]}")
        recording = model.record(SOURCE, target=TARGET)
        assert recording.model.name.endswith(f"@{pair[0]}-{pair[1]}")
        source, target = read(recording)
        assert (source, target) == expected(words, pair)
        with torch.no_grad():
            inputs = torch.tensor([source]), torch.tensor([target])
            logits = oracle(input_ids=inputs[0], decoder_input_ids=inputs[1]).logits[0, -1]
        found = model.logits(recording, "decoder", len(target) - 1)
        np.testing.assert_allclose(found, logits.numpy(), atol=PASSED)
        code = words.convert_tokens_to_ids(pair[1])
        own = read(model.record(SOURCE))[1]
        theirs = oracle.generate(
            inputs[0], forced_bos_token_id=code, num_beams=1, do_sample=False, max_new_tokens=8
        )[0].tolist()
        assert own[:8] == theirs[: len(own[:8])] and own[1] == code
        *_, best = model.beams(SOURCE, 2)
        assert best[0].ids[0] == code
        assert model.generate(SOURCE).ids == [2, code]


def test_a_language_that_is_not_there_is_refused(translator: tuple) -> None:
    folder, _, (source, _), _ = translator
    with pytest.raises(ValueError, match="there is no language 'xxx'; there are .*, such as"):
        registry.load(f"hub:{folder}@{source}-xxx")
    with pytest.raises(ValueError, match="encoder"):
        registry.load("encoder@eng_Latn-fra_Latn")


def test_what_is_changed_of_a_model_is_told_from_its_name() -> None:
    folder, changed = "hub:/a/model@v1-2", "hub:m@eng_Latn-fra_Latn"
    assert registry.split_languages(folder) == (folder, None)
    assert registry.split_languages(f"{folder}@eng_Latn-") == (folder, ("eng_Latn", ""))
    for name, base in (
        (f"{changed}@permuted", "hub:m"),
        ("hub:m@permuted@eng_Latn-fra_Latn", "hub:m"),
        ("smollm2@bare@permuted", "smollm2"),
        ("decoder@5000", "decoder@5000"),
        (folder, folder),
    ):
        assert registry.without_changes(name) == base and registry.knows(name)


def test_weights_in_random_order_translate_between_the_languages(translator: tuple) -> None:
    folder, words, _, others = translator
    name = f"hub:{folder}"
    there(name)
    changed = f"{name}@{others[0]}-{others[1]}@permuted"
    assert read(Run(changed, SOURCE, target=TARGET).recording()) == expected(words, others)
    assert registry.stamp(changed) == registry.stamp(name)


def test_the_tab_offers_the_languages_and_everything_says_them(translator: tuple) -> None:
    folder, _, usual, others = translator
    name = f"hub:{folder}"
    record_trial(*registry.trial_load(f"{name}@{others[0]}-{others[1]}"))
    there(name)
    app = opened("translate", model=name, text=SOURCE)
    chosen = {each.label: each for each in app.selectbox if each.label in ("From", "To")}
    assert (chosen["From"].value, chosen["To"].value) == usual and not app.exception
    chosen["To"].select(others[1]).run()
    other = f"{name}@{usual[0]}-{others[1]}"
    assert app.session_state.model == other and not app.exception
    assert {each.label: each.value for each in app.selectbox}["To"] == others[1]
    panel = headlight.panels.translation.probability(Run(other, SOURCE, target=TARGET))
    assert any(f"model {other}" in line for line in panel.caption)
    assert f"Run({other!r}, " in spec.python([panel])
    assert app.query_params["model"] in (other, [other])
