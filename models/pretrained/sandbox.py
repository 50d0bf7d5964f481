"""A model from anywhere is loaded and run once in a process of its own, under limits on memory and
time, before the app loads it.

    python -m models.pretrained.sandbox

is that process's parent: it imports the heavy libraries once, reads one request a line, and answers
each from a fork of itself, so that many trials cost one start. Whatever a folder does to a fork,
out of memory, without end or a crash inside a library, the fork is gone afterwards and the answer
is one sentence. Where a system cannot fork, it answers one request itself and ends. It also ends
when nobody asks for a while, or when its own parent is gone.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np

from models import child_process, own_model
from models.pretrained import hf_model, model_files
from models.pretrained.model_files import NotLoaded, remedy
from models.recording import NotEncoded, NotFinite, Recording
from models.template_renderer import Overrun
from models.tokenizer import Tokens

# Whether a model that was just loaded works: its vocabulary is its tokenizer's, and a text goes
# through it.

Handle = own_model.OwnModel | hf_model.HFModel
WORDS = "The cat sat on the mat, didn't it?"
# Printable signs, letters of several scripts, marks, spaces of all kinds: whatever a tokenizer's
# rules may stumble over.
SIGNS = "".join(
    map(chr, (*range(32, 127), *range(160, 384), 0x3B1, 0x439, 0x5D0, 0x627, 0x915))
) + ("日本語 한국어 ไทย e\u0301 \u200b \u202e \ufeff \ufb03 ½ 🙂 👩‍👩‍👧 \n\t\r \x00")
MOST_TOKENS_A_SIGN = 64
# What a regular expression names by itself, without classes such as \p{L} or \s, and their counts.
ESCAPED = re.compile(r"\\[pP]\{\^?\w+\}|\\.|\{\d*,?\d*\}|\(\?[a-z]+:")
NAMED = re.compile(r"[^\W\d_]|\d")
REPEATED, MOST_LETTERS = 60, 12


def verify(handle: Handle, name: str) -> Handle:
    """The handle again. Raises NotLoaded where the tokenizer has words that the model does not
    know, or the model fails on a text."""
    _expect_words(handle, name)
    _run(handle, WORDS, name)
    return handle


def stress_test(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a model fails on as long a text as it says it takes, or its tokenizer
    on signs of all kinds and on texts that its own patterns nearly match."""
    for signs in (SIGNS, "a" * 2000, " " * 2000, "(" * 500 + "!" * 500, *near_matches(handle)):
        n = _count(handle, signs)
        if n > MOST_TOKENS_A_SIGN * len(signs):
            raise NotLoaded(
                f"The tokenizer of {name} makes {n:,} tokens of {len(signs):,} characters; "
                "choose another model."
            )
    _expect_one_cut(handle, name)
    _expect_chats(handle, name)
    recording = _run(handle, "the cat sat on the mat and " * handle.card.n_positions, name)
    _run(handle, SIGNS, name)
    if len(recording.streams[0].tokens) > handle.card.n_positions:
        raise NotLoaded(
            f"{name} reads {handle.card.n_positions} tokens and its tokenizer gives it "
            f"{len(recording.streams[0].tokens)}; choose another model."
        )


def _expect_one_cut(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a tokenizer draws how it cuts a text."""
    cuts = {_tokenize(handle, WORDS * 8)[0].ids for _ in range(4)}
    if len(cuts) > 1:
        raise NotLoaded(
            f"The tokenizer of {name} cuts one text in several ways, by chance; turn its sampling "
            "off or choose another model."
        )


def _expect_chats(handle: Handle, name: str) -> None:
    """Raises NotLoaded where a model's chat template does not keep to its limits."""
    if handle.chat is not None:
        try:
            handle.chat.expect_sound()
        except Overrun as error:
            raise NotLoaded(str(error).replace("this model", name)) from error


def _tokenize(handle: Handle, text: str) -> tuple[Tokens, int]:
    if isinstance(handle, own_model.OwnModel):
        return own_model.frame(handle, text)
    return handle.tokenizer.tokens(text, handle.card.n_positions)


def near_matches(handle: Handle) -> list[str]:
    """Texts that make a regular expression of a tokenizer's rules try many ways in vain: the
    letters that it names, over and over, all of them, each two and each one."""
    rules = handle.tokenizer.rules
    if rules is None:
        return []
    rules_json = json.loads(rules.to_str())
    steps = [rules_json.get(step) for step in ("normalizer", "pre_tokenizer", "decoder")]
    texts: dict[str, None] = {}
    for pattern in model_files.patterns(steps):
        letters = list(dict.fromkeys(NAMED.findall(ESCAPED.sub("", pattern))))
        pairs = map("".join, permutations(letters[:MOST_LETTERS], 2))
        texts |= dict.fromkeys(("".join(letters), *letters, *pairs))
    return [each * REPEATED for each in texts if each]


def _count(handle: Handle, signs: str) -> int:
    try:
        tokens, dropped = _tokenize(handle, signs)
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {handle.card.name} fails on some texts, such as {signs[:12]!r} and "
            "so on; choose another model."
        ) from error
    except ValueError:  # a model that puts nothing around a text reads nothing of spaces
        return 0
    return len(tokens.ids) + dropped


def _expect_words(handle: Handle, name: str) -> None:
    vocabulary = (
        handle.tokenizer.bpe.get_vocab(with_added_tokens=True)
        if isinstance(handle, own_model.OwnModel)
        else handle.tokenizer.own.get_vocab()
    )
    if not vocabulary:
        raise NotLoaded(f"The tokenizer of {name} knows no words; {remedy(name)}.")
    if (largest := max(vocabulary.values())) >= handle.card.n_vocab:
        raise NotLoaded(
            f"The tokenizer of {name} numbers its words up to {largest:,} and the model has "
            f"{handle.card.n_vocab:,} words; {remedy(name)}."
        )


def _run(handle: Handle, text: str, name: str) -> Recording:
    """A pass over a text."""
    try:
        recording = handle.record(text)
    except NotFinite as error:
        raise NotLoaded(
            f"Numbers overflow when {name} reads a text, first at {error}; choose another model."
        ) from error
    except NotEncoded as error:
        raise NotLoaded(
            f"The tokenizer of {name} fails on some texts; choose another model."
        ) from error
    except (ValueError, IndexError, RuntimeError, TypeError, AttributeError, LookupError) as error:
        raise NotLoaded(
            f"{name} does not run on a text of up to {handle.card.n_positions} tokens, which "
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
SPARE = 1 << 30  # bytes beside what the weights explain
IDLE = 120.0  # seconds after which a process without work is ended
START_SECONDS = 120.0  # that the process has to start, beside those of a trial
LOOK_AGAIN = 0.1  # seconds between two looks at whether the reader still wants it
# macOS can, but its own libraries crash in a fork.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"


class Tester:
    """The process that tries models, started when it is first needed. One trial at a time."""

    __test__ = False  # no test, whatever its name

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._turn = threading.Lock()
        self._idle = threading.Timer(IDLE, self.close)

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
        request = {
            "folder": str(folder),
            "name": name,
            "way": prefix,
            "seconds": seconds,
            "spare": spare,
        }
        with self._turn:
            self._idle.cancel()
            for _ in range(2):  # it may just have ended
                try:
                    answer = self._response(request, cancelled)
                    break
                except (BrokenPipeError, ValueError):
                    self._end()
            else:
                raise NotLoaded(f"{name} could not be tried; ask for it again.")
            self._idle = threading.Timer(IDLE, self.close)
            self._idle.daemon = True
            self._idle.start()
        if answer["problem"]:
            raise NotLoaded(answer["problem"])
        return answer["way"]

    def close(self) -> None:
        """End the process."""
        with self._turn:
            self._end()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = child_process.start(
                f"{__package__}.sandbox",
                env={"HF_HUB_OFFLINE": "1"},
                stdin=subprocess.PIPE,
                text=True,
            )
        return self._process

    def _response(self, request: dict, cancelled: Callable[[], bool]) -> dict:
        process = self._running()
        written, read = process.stdin, process.stdout
        assert written is not None and read is not None
        written.write(json.dumps(request) + "\n")
        written.flush()
        answers: list[str] = []
        listener = threading.Thread(target=lambda: answers.append(read.readline()), daemon=True)
        listener.start()
        until = time.monotonic() + request["seconds"] + START_SECONDS
        while listener.is_alive():
            listener.join(LOOK_AGAIN)
            if cancelled():
                self._end()
                return {"problem": "Stopped.", "way": ""}
            if time.monotonic() > until:
                self._end()
                return _unfinished(request, timed_out=True)
        return json.loads(answers[0])

    def _end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            child_process.kill(self._process)
        self._process = None


# ---- in the other process ----------------------------------------------------


def try_model(folder: Path, name: str, prefix: str = "") -> str:
    """Check, load, prove and stretch the model in a folder; how it runs, in one `way` alone where
    it is given. Raises NotLoaded."""
    from models.pretrained import hf_model, hub, weight_conversion

    hub.check(folder, name)
    if prefix == "ours:" or not prefix and weight_conversion.covers(folder):
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
    from models.pretrained import hf_model

    try:
        verify(hf_model.load(str(folder)), str(folder))
    except NotLoaded:
        return False
    return True


def _limit(request: dict) -> None:
    """Bound this process: memory beyond what it holds now, time, files written, cores dumped."""
    from models.pretrained import model_files

    try:
        weights = 4 * model_files.parameters(Path(request["folder"]), request["name"])
    except (NotLoaded, OSError, MemoryError):
        weights = 0
    child_process.limit(5 * weights + int(request["spare"]), int(request["seconds"]) + 1)
    child_process.limit_files(0)


def _answer(request: dict) -> dict:
    """The answer to one request, within its limits."""
    try:
        _limit(request)
        folder, name = Path(request["folder"]), request["name"]
        return {"way": try_model(folder, name, request["way"]), "problem": ""}
    except NotLoaded as error:
        return {"way": "", "problem": " ".join(str(error).split())}
    except MemoryError:
        return _unfinished(request)
    except BaseException:
        return {"way": "", "problem": f"{request['name']} cannot be read; choose another."}


def _run_in_fork(request: dict) -> dict:
    """The answer to one request, made in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        # Whatever it is, it ends here: the fork must never go on as its parent.
        try:
            os.close(reading)
            os.write(writing, json.dumps(_answer(request)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    answer, end = b"", time.monotonic() + request["seconds"]
    while (remaining := end - time.monotonic()) > 0 and select.select([reading], [], [], remaining)[
        0
    ]:
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        answer += chunk
    os.close(reading)
    timed_out = time.monotonic() >= end
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return json.loads(answer) if answer else _unfinished(request, timed_out)


def _unfinished(request: dict, timed_out: bool = False) -> dict:
    reason = (
        f"did not end within {request['seconds']:.0f} seconds"
        if timed_out
        else "took more memory than its weights explain, or crashed"
    )
    return {"way": "", "problem": f"Loading {request['name']} {reason}; choose another model."}


def _warm() -> None:
    """Try a tiny model made here, so that what libraries import on their first use is imported once
    and not in every fork."""
    import tempfile

    import tokenizers
    import transformers

    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary = {piece: at for at, piece in enumerate((*names, *map(chr, range(33, 127))))}
    rules = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    rules.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForMaskedLM(config).save_pretrained(folder)
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=rules, **dict(zip(roles, names))
        ).save_pretrained(folder)
        try_model(Path(folder), folder)
        from models.pretrained import hf_model

        hf_model.load(folder)


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is no answer
    child_process.prefer_oom_kill()
    import torch

    torch.set_num_threads(1)
    if FORKS:
        _warm()
    for line in sys.stdin:
        request = json.loads(line)
        made = _run_in_fork(request) if FORKS else _answer(request)
        print(json.dumps(made), file=answers, flush=True)
        if not FORKS:
            return  # within limits from now on


tester = Tester()

if __name__ == "__main__":
    main()
