"""A model from anywhere is loaded and run once in a process of its own, under limits on memory and
time, before the app loads it.

    python -m models.pretrained.sandbox

is that process's parent: it imports the heavy libraries once and answers each request from a fork
of itself, so that many trials cost one start. Whatever a folder does to a fork, out of memory,
without end or a crash inside a library, the fork is gone afterwards and the answer is one sentence.
Where a system cannot fork, each trial imports them anew.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from models import child_process
from models.contract.recording import NotEncoded, NotFinite, NotFollowed, Recording
from models.network import own_model
from models.pretrained import hf_model, hub, model_files, weight_conversion
from models.pretrained.config_mapping import CLASSIFIES, saved_head
from models.pretrained.model_files import NotLoaded, remedy
from models.tokens.template_renderer import Overrun
from models.tokens.tokenizer import Tokens

# Whether a model that was just loaded works: its vocabulary is its tokenizer's, and a text goes
# through it.

LoadedModel = own_model.OwnModel | hf_model.HFModel
WORDS = "The cat sat on the mat, didn't it?"
# Printable signs, letters of several scripts, marks, spaces of all kinds: whatever a tokenizer's
# rules may stumble over.
SIGNS = "".join(
    map(chr, (*range(32, 127), *range(160, 384), 0x3B1, 0x439, 0x5D0, 0x627, 0x915))
) + ("日本語 한국어 ไทย e\u0301 \u200b \u202e \ufeff \ufb03 ½ 🙂 👩‍👩‍👧 \n\t\r \x00")
MOST_TOKENS_A_SIGN = 64


def verify(model: LoadedModel, name: str) -> LoadedModel:
    """The model again. Raises NotLoaded where the tokenizer has words that the model does not
    know, or the model fails on a text."""
    _expect_words(model, name)
    _run(model, WORDS, name)
    return model


def stress_test(model: LoadedModel, name: str) -> None:
    """Raises NotLoaded where a model fails on as long a text as it says it takes, or its tokenizer
    on signs of all kinds."""
    for signs in (SIGNS, "a" * 2000, " " * 2000, "(" * 500 + "!" * 500):
        n = _count(model, signs)
        if n > MOST_TOKENS_A_SIGN * len(signs):
            raise NotLoaded(
                f"The tokenizer of {name} makes {n:,} tokens of {len(signs):,} characters; "
                "choose another model."
            )
    _expect_one_cut(model, name)
    _expect_chats(model, name)
    recording = _run(model, "the cat sat on the mat and " * model.card.n_positions, name)
    _run(model, SIGNS, name)
    if len(recording.streams[0].tokens) > model.card.n_positions:
        raise NotLoaded(
            f"{name} reads {model.card.n_positions} tokens and its tokenizer gives it "
            f"{len(recording.streams[0].tokens)}; choose another model."
        )


def _expect_one_cut(model: LoadedModel, name: str) -> None:
    """Raises NotLoaded where a tokenizer draws how it cuts a text."""
    cuts = {_tokenize(model, WORDS * 8)[0].ids for _ in range(4)}
    if len(cuts) > 1:
        raise NotLoaded(
            f"The tokenizer of {name} cuts one text in several ways, by chance; turn its sampling "
            "off or choose another model."
        )


def _expect_chats(model: LoadedModel, name: str) -> None:
    """Raises NotLoaded where a model's chat template does not keep to its limits."""
    if model.chat is not None:
        try:
            model.chat.expect_sound()
        except Overrun as error:
            raise NotLoaded(str(error).replace("this model", name)) from error


def _tokenize(model: LoadedModel, text: str) -> tuple[Tokens, int]:
    if isinstance(model, own_model.OwnModel):
        return own_model.frame(model, text)
    return model.tokenizer.tokens(text, model.card.n_positions)


def _count(model: LoadedModel, signs: str) -> int:
    try:
        tokens, dropped = _tokenize(model, signs)
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {model.card.name} fails on some texts, such as {signs[:12]!r} and "
            "so on; choose another model."
        ) from error
    except ValueError:  # a model that puts nothing around a text reads nothing of spaces
        return 0
    return len(tokens.ids) + dropped


def _expect_words(model: LoadedModel, name: str) -> None:
    vocabulary = (
        model.tokenizer.bpe.get_vocab(with_added_tokens=True)
        if isinstance(model, own_model.OwnModel)
        else model.tokenizer.own.get_vocab()
    )
    if not vocabulary:
        raise NotLoaded(f"The tokenizer of {name} knows no words; {remedy(name)}.")
    if (largest := max(vocabulary.values())) >= model.card.n_vocab:
        raise NotLoaded(
            f"The tokenizer of {name} numbers its words up to {largest:,} and the model has "
            f"{model.card.n_vocab:,} words; {remedy(name)}."
        )


def _run(model: LoadedModel, text: str, name: str) -> Recording:
    """A pass over a text."""
    try:
        recording = model.record(text)
    except NotFinite as error:
        raise NotLoaded(
            f"Numbers overflow when {name} reads a text, first at {error}; choose another model."
        ) from error
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {name} fails on some texts; choose another model."
        ) from error
    except NotFollowed as error:
        raise NotLoaded(str(error)) from error
    except (ValueError, IndexError, RuntimeError, TypeError, AttributeError, LookupError) as error:
        raise NotLoaded(
            f"{name} does not run on a text of up to {model.card.n_positions} tokens, which "
            "its configuration promises; choose another model."
        ) from error
    for attention in recording.attention:
        if not np.isfinite(attention.pattern).all():
            raise NotLoaded(
                f"The attention of {name} contains values that are not numbers; choose "
                "another model."
            )
    return recording


SECONDS = 90.0  # for one trial
MORE_SECONDS = 30.0  # until a trial that is too long has been ended
SPARE = 1 << 30  # bytes beside what the weights explain
IDLE = 120.0  # seconds after which a process without work is ended
# macOS can fork, but its own libraries crash in one.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
PROCESSES: Any = multiprocessing.get_context("fork" if FORKS else "spawn")


@dataclass(frozen=True)
class Trial:
    """Subject of a trial: the model in a folder, its name in messages, `prefix` as of `try_out`;
    within so many seconds and bytes beside what its weights explain."""

    folder: str
    name: str
    prefix: str
    seconds: float
    spare: int


class Tester:
    """Tries models, in a process that is started when it is first needed. One trial at a time."""

    __test__ = False  # no test, whatever its name

    def __init__(self) -> None:
        self.worker = child_process.Worker(__name__, IDLE)

    def try_out(
        self,
        folder: Path,
        name: str,
        prefix: str = "",
        cancelled: Callable[[], bool] = lambda: False,
        seconds: float = SECONDS,
        spare: int = SPARE,
    ) -> str:
        """Prefix of the way in which the model in a folder runs, "ours:" or "hub:"; `prefix` asks
        for one of them. `name` is its name in messages.

        Raises NotLoaded, one sentence, where it does not run, takes more than `seconds` or far more
        memory than its weights explain, or `cancelled()` became true."""
        trial = Trial(str(folder), name, prefix, seconds, spare)
        try:
            answer = self.worker.ask(asdict(trial), seconds + MORE_SECONDS, cancelled)
        except child_process.Unanswered as ended:
            raise NotLoaded(
                "Stopped." if cancelled() else _unfinished(trial, ended.late)
            ) from ended
        if answer["problem"]:
            raise NotLoaded(answer["problem"])
        return answer["way"]

    def close(self) -> None:
        """End the process."""
        self.worker.close()


def _unfinished(trial: Trial, late: bool = False) -> str:
    reason = (
        f"did not end within {trial.seconds:.0f} seconds"
        if late
        else "took more memory than its weights explain, or crashed"
    )
    return f"Loading {trial.name} {reason}; choose another model."


# ---- in the other process ----------------------------------------------------


def try_model(folder: Path, name: str, prefix: str = "") -> str:
    """Check, load, prove and stretch the model in a folder; how it runs, in one `way` alone where
    it is given. Raises NotLoaded."""
    hub.check(folder, name)
    config = model_files.read_config(folder, name)
    has_classes = saved_head(config.get("architectures")) == CLASSIFIES
    if prefix == "ours:" or not prefix and not has_classes and weight_conversion.covers(folder):
        try:
            stress_test(verify(weight_conversion.load(folder, name), name), name)
            return "ours:"
        except NotLoaded:
            if prefix or not _runs_in_hf_code(folder):
                raise
    stress_test(verify(hf_model.load(str(folder), None, name), name), name)
    return "hub:"


def _runs_in_hf_code(folder: Path) -> bool:
    """True for a model that our classes refuse and its own code takes."""
    try:
        verify(hf_model.load(str(folder)), str(folder))
    except NotLoaded:
        return False
    return True


def _limit(trial: Trial) -> None:
    """Bound this process: memory beyond what it holds now, time, files written, cores dumped."""
    try:
        weights = 4 * model_files.parameters(Path(trial.folder), trial.name)
    except (NotLoaded, OSError, MemoryError):
        weights = 0
    child_process.limit(5 * weights + trial.spare, int(trial.seconds) + 1)
    child_process.limit_files(0)


def _try_within_limits(trial: Trial, answers: Connection) -> None:
    """Send the way in which a model runs, or the problem, within the limits of a trial."""
    way = problem = ""
    try:
        _limit(trial)
        way = try_model(Path(trial.folder), trial.name, trial.prefix)
    except NotLoaded as error:
        problem = " ".join(str(error).split())
    except MemoryError:
        problem = _unfinished(trial)
    except BaseException:
        problem = f"{trial.name} cannot be read; choose another."
    answers.send_bytes(json.dumps({"way": way, "problem": problem}).encode())


def answer(request: dict) -> dict:
    """The answer to one request, made in a process that ends with it."""
    trial = Trial(**request)
    reading, writing = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_try_within_limits, args=(trial, writing))
    process.start()
    writing.close()
    try:
        if not reading.poll(trial.seconds):
            return {"way": "", "problem": _unfinished(trial, late=True)}
        return json.loads(reading.recv_bytes())
    except (EOFError, OSError):  # it ended before or within its answer
        return {"way": "", "problem": _unfinished(trial)}
    finally:
        process.kill()
        process.join()
        reading.close()


def prepare() -> None:
    """Import the heavy libraries, once for all trials. Where a system cannot fork, each trial
    imports them itself."""
    if not FORKS:
        return
    import torch
    from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel  # noqa: F401

    torch.set_num_threads(1)


tester = Tester()

if __name__ == "__main__":
    child_process.serve(prepare, answer)
