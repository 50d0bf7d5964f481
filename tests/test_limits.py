"""Every limit of a public call stands in the reference with its number, and a caller who goes
beyond it hears of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_kept_promises import told

import headlight
from docs import limits, reference
from explorer.figures import figure_export
from explorer.panels import corpus, interventions, translation
from explorer.panels import embeddings as embeddings_panels
from models.contract import edits, path_integral
from models.inputs import array_model
from models.live import training_plan
from models.network import generation, own_model, torch_layers
from models.pretrained import config_mapping, hf_model, machine_limits
from models.readouts import gradients
from models.runtime import host
from models.runtime.run import Run

ROOT = Path(__file__).resolve().parent.parent
# What bounds a caller of the library is in `limits`. Other numbers of models/, and why not.
NO_LIMITS = {
    "buffer_pool|linear|own_model:MAX_BATCH|patching:MAX_ROWS_TOKENS": "memory and speed",
    "chat_template:MOST_KNOWN|host": "memory and speed",
    "caching|whole_words": "words that a page writes out beside the tokens, which are all there",
    "chat_template:MOST_MESSAGES": "chats on which a template is tried",
    "live_tasks": "lists that a task makes",
    "training_plan:MAX_(SECONDS|STEPS)": "how long a training goes on, which its state says",
    "npz:MOST_|recorded_model|recording_file|lora:MOST_ALPHA": "files that are refused",
    "gguf_header|model_files|sandbox|weight_checks|template_renderer": "files that are refused",
    "recording:ROW_SUM_TOLERANCE|token_relations": "what rounding is",
    "serve": "between our own processes",
}
NAME = re.compile(r"(MOST|MAX|LONGEST|TOP)(_|$)|(_LIMIT|_TOLERANCE)$")


def constants(folder: Path) -> set[str]:
    """The names of all numbers in the modules of a folder that bound something."""
    found = set()
    for path in folder.rglob("*.py"):
        module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for node in ast.parse(path.read_text("utf-8")).body:
            names = ast.walk(node) if isinstance(node, (ast.Assign, ast.AnnAssign)) else ()
            found |= {
                f"{module}:{each.id}"
                for each in names
                if isinstance(each, ast.Name)
                and isinstance(each.ctx, ast.Store)
                and each.id.isupper()
                and NAME.search(each.id)
            }
    return {each for each in found if not each.startswith("models.training.")}


def test_every_bound_in_the_code_of_models_is_listed_or_is_none_of_a_caller() -> None:
    listed = {each.place for each in limits.LIMITS}
    unlisted = constants(ROOT / "models") - listed
    assert {each for each in unlisted if not re.search("|".join(NO_LIMITS), each)} == set()
    for why in NO_LIMITS:
        assert any(re.search(why, each) for each in unlisted), f"{why} excuses nothing"


def test_the_reference_has_every_limit_with_its_number() -> None:
    text = reference.FILE.read_text("utf-8")
    assert all(row in text for row in limits.rows())
    assert len({each.place for each in limits.LIMITS}) == len(limits.LIMITS)


def bounded(monkeypatch: pytest.MonkeyPatch, n_positions: int) -> hf_model.HFModel:
    """A model of so many positions as `load` has it."""
    import transformers

    from models.tokens.vocabulary import Vocabulary

    config = transformers.GPT2Config(
        vocab_size=20, n_positions=n_positions, n_embd=8, n_layer=1, n_head=1
    )
    own = transformers.GPT2LMHeadModel(config)
    own.set_attn_implementation("eager")
    return hf_model.from_network(own, Vocabulary(20), "bounded", "random")


def of_a_layer() -> Any:
    words = [str(at) for at in range(20)]
    return headlight.wrap(torch.nn.TransformerEncoderLayer(8, 2, 8), words)


def of_sentences(decoder: own_model.OwnModel, line: str, n: int) -> Any:
    host.current.adopt(decoder)
    return corpus.patterns(Run(decoder.name, "the cat sat"), others="\n".join([line] * n))


def answered(limit: int) -> None:
    generation.tell_unended("a model", limit, limit)


Fixtures = dict[str, own_model.OwnModel]
# A call that goes beyond each limit that is told, and what is said of it.
TOLD: dict[str, tuple[Callable[[Fixtures, pytest.MonkeyPatch], Any], str]] = {
    "models.pretrained.config_mapping:LONGEST": (
        lambda of, patch: bounded(patch, 2000).record([3] * 600),
        "reads 512 tokens at once; of the 600",
    ),
    "models.pretrained.config_mapping:MOST_BYTES_OF_PATTERNS": (
        lambda of, patch: (
            patch.setattr(config_mapping, "MOST_BYTES_OF_PATTERNS", 8 * 100 * 100),
            bounded(patch, 2000).record([3] * 600),
        ),
        "reads 100 tokens at once; of the 600",
    ),
    "models.network.torch_layers:N_POSITIONS": (
        lambda of, patch: of_a_layer().record(
            [3] * (torch_layers.N_POSITIONS + 2),
            edits.SetSite(np.ones((torch_layers.N_POSITIONS, 8)), "embed"),
        ),
        "reads 1,024 tokens at once; of the 1,026",
    ),
    "models.network.generation:LENGTH_LIMIT": (
        lambda of, patch: (
            patch.setattr(generation, "LENGTH_LIMIT", (0, 1)),
            of["translator"].record("the cat"),
        ),
        "did not end its own output, which is broken off after",
    ),
    "models.pretrained.hf_model:LONGEST_ANSWER": (
        lambda of, patch: answered(hf_model.LONGEST_ANSWER),
        "broken off after 128 tokens",
    ),
    "models.contract.path_integral:STEPS": (
        lambda of, patch: (
            patch.setattr(path_integral, "MISSED", 0.0),
            patch.setattr(path_integral, "LEAST_MISSED", 0.0),
            of["decoder"].integrated_gradients(of["decoder"].record("the cat"), "decoder", -1),
        ),
        "in 600 steps the shares sum to",
    ),
    "explorer.analysis.corpus:MOST_LINES": (
        lambda of, patch: of_sentences(of["decoder"], "the dog", 201),
        "199 are read at once. The last 2 are left out",
    ),
    "explorer.analysis.corpus:LONGEST_LINE": (
        lambda of, patch: of_sentences(of["decoder"], "the cat " * 130, 1),
        "what stands beyond 1,000 characters is left out",
    ),
    "explorer.analysis.embeddings:MOST_WORDS": (
        lambda of, patch: embeddings_panels._word_groups("a, b, c, d, e, f, g / h"),
        "the first 6 of each",
    ),
    "explorer.analysis.embeddings:LONGEST_WORD": (
        lambda of, patch: embeddings_panels._word_groups("a / " + "b" * 25),
        "and 24 letters of a word",
    ),
    "explorer.figures.figure_export:MOST_PIXELS": (
        lambda of, patch: figure_export._dpi((72 * 30.0, 72 * 30.0)),
        "more than 40,000,000 pixels",
    ),
}
long_edits = [edits.ZeroHead(0, 0)] * 401
# A call that goes beyond each limit that is refused, and what is said of it.
REFUSED: dict[str, tuple[Callable[[Fixtures, pytest.MonkeyPatch], Any], str]] = {
    "models.inputs.array_model:HALF_TOLERANCE": (
        lambda of, patch: array_model.view([[1.009]], ["a"]),
        "sums to 1.009",
    ),
    "models.inputs.activation_dicts:SUM_TOLERANCE": (
        lambda of, patch: headlight.from_cache(
            {
                "blocks.0.attn.hook_pattern": np.ones((1, 1, 1)),
                "blocks.0.hook_resid_pre": np.ones((1, 4)),
                "blocks.0.hook_attn_out": np.ones((1, 4)),
                "blocks.0.hook_resid_mid": np.full((1, 4), 2.01),
                "blocks.0.hook_mlp_out": np.ones((1, 4)),
                "blocks.0.hook_resid_post": np.full((1, 4), 3.01),
            },
            ["a"],
        ),
        "do not add up",
    ),
    "models.contract.edit_validation:MAX_EDITS": (
        lambda of, patch: of["decoder"].record("the cat", long_edits),
        "401 edits at once; 400 are taken",
    ),
    "models.contract.edit_validation:MAX_DIGITS": (
        lambda of, patch: of["decoder"].record("the cat", edits.ShuffleTokens(10**18)),
        "more than 18 digits",
    ),
    "models.contract.edits:MOST": (
        lambda of, patch: of["decoder"].record("the cat", edits.ScaleSite(4e38, "embed")),
        "finite in 32 bits",
    ),
    "models.contract.edits:MAX_RANGE_HEADS": (
        lambda of, patch: edits.from_line("ZeroHead:0-4096:0:self"),
        "cannot be read",
    ),
    "models.contract.arrays:MAX_AXES": (
        lambda of, patch: edits.SetSite(np.ones((1, 2, 3)), "embed"),
        r"\(width\) or \(token, width\)",
    ),
    "explorer.panels.interventions:MAX_TOKENS": (
        lambda of, patch: (
            patch.setattr(interventions, "MAX_TOKENS", 2),
            host.current.adopt(of["decoder"]),
            interventions.experiments(Run(of["decoder"].name, "the cat sat")),
        ),
        "2",
    ),
    "explorer.panels.interventions:MAX_SWEEP": (
        lambda of, patch: (
            patch.setattr(interventions, "MAX_SWEEP", 2),
            host.current.adopt(of["decoder"]),
            interventions.patches(Run(of["decoder"].name, "the cat sat"), donor="the dog sat"),
        ),
        "2",
    ),
    "explorer.panels.translation:MOST_BEAMS": (
        lambda of, patch: translation.hypotheses(Run("translator", "a"), n_beams=6),
        "it can be 1 to 5",
    ),
    "models.live.training_plan:MAX_LENGTH": (
        lambda of, patch: training_plan.TrainingPlan(task="text", text="a" * 20_001),
        "At most 20,000 characters",
    ),
    "models.contract.npz:MOST_ARRAYS": (
        lambda of, patch: many_arrays(257, 1),
        "at most 256 are read",
    ),
    "models.contract.npz:MOST_AXES": (lambda of, patch: many_arrays(1, 9), "an array of 9 axes"),
    "models.contract.recording_file:MOST_HEADER": (
        lambda of, patch: (
            patch.setattr("models.contract.recording_file.MOST_HEADER", 1000),
            headlight.from_npz(headlight.to_npz(of["decoder"].record("the cat"))),
        ),
        "the header of this recording has",
    ),
    "models.pretrained.machine_limits:MOST_PARAMETERS": (
        lambda of, patch: machine_limits.check_size(2 * 10**9, 0, "a model"),
        "takes up to 1.6 billion",
    ),
}


def many_arrays(n: int, axes: int) -> None:
    import io

    file = io.BytesIO()
    np.savez(file, **{str(at): np.zeros((1,) * axes) for at in range(n)})
    headlight.from_npz(file.getvalue(), 10**9)


@pytest.fixture
def fixtures(small_decoder: own_model.OwnModel, small_translator: own_model.OwnModel) -> Fixtures:
    return {"decoder": small_decoder, "translator": small_translator}


def test_every_limit_has_a_call_that_goes_beyond_it() -> None:
    of = lambda kind: {each.place for each in limits.LIMITS if each.beyond == kind}
    assert of(limits.TOLD) == {*TOLD} and of(limits.REFUSED) == {*REFUSED}


@pytest.mark.parametrize("place", TOLD)
def test_what_is_left_out_is_told(
    place: str, fixtures: Fixtures, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, says = TOLD[place]
    _, said = told(lambda: call(fixtures, monkeypatch))
    assert any(says in each for each in said), said


@pytest.mark.parametrize("place", REFUSED)
def test_what_is_too_much_is_refused(
    place: str, fixtures: Fixtures, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, says = REFUSED[place]
    with pytest.raises(ValueError, match=says):
        call(fixtures, monkeypatch)


def test_what_is_returned_says_how_much_was_read(small_decoder: own_model.OwnModel) -> None:
    recording = small_decoder.record("the cat sat on the mat")
    circuits = small_decoder.circuits("self", 0, 0, (5,))
    neurons = small_decoder.neurons(recording, "decoder", 0, 1, 5)
    assert circuits.up.shape == circuits.keys.shape == (1, 8)
    assert neurons.strongest.shape == (24,) and neurons.up.shape == (24, 6)
    assert gradients.depth(np.random.default_rng(1).normal(size=(20, 8)), layers=2).tokens == 12
    assert next(iter(gradients.decay(list(range(60)), 3, steps=1))).length == 48
