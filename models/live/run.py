"""A training in a process of its own, as the app sees it: begun, followed, stopped, gone on with,
and gone when nobody wants it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path

from models.learning import SHOWN, Plan, Progress
from models.live import wire

ROOT = Path(__file__).resolve().parent.parent.parent
GRACE = 5.0  # seconds that a process told to stop has for its last words


class Run:
    """One training. `progress` and `weights` are what it told last; `running`; `done`: it may not
    go on; `problem`: it broke off."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.progress = Progress()
        self.weights: dict[int, bytes] = {}  # safetensors by step: those of SHOWN, and the newest
        self.config: dict = {}
        self.tokenizer = ""  # as the tokenizers library writes it
        self.done, self.problem = False, ""
        self._stored, self._ended = b"", False
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        """True while its process learns, or hands over what it has."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def pid(self) -> int | None:
        """The process that trains it; None where none does."""
        return self._process.pid if self._process is not None and self.running else None

    def go_on(self) -> None:
        """Start, or go on where it was stopped; nothing where it runs or is done."""
        with self._lock:
            if self.running or self.done:
                return
            self.problem, self._ended = "", False
            self._process = subprocess.Popen(
                [sys.executable, "-m", "models.live.worker"],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"},
            )
            self._thread = threading.Thread(target=self._follow, args=(self._process,), daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Tell it to stop after the step it is at; what it has learned stays."""
        process = self._process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ValueError):  # it has just ended by itself
                process.stdin.write(b"stop\n")
                process.stdin.flush()

    def end(self) -> None:
        """End its process now, whatever it is at, and wait until it is gone."""
        self._ended = True
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._thread is not None:
            self._thread.join(GRACE)

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Give the process its plan and hear it to its end."""
        ended = False
        try:
            assert process.stdin is not None and process.stdout is not None
            wire.send(process.stdin, {"plan": asdict(self.plan)}, self._stored)
            while (frame := wire.receive(process.stdout)) is not None:
                ended = self.hear(*frame) or ended
        except (BrokenPipeError, json.JSONDecodeError, KeyError):
            pass
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if not (ended or self._ended):
                self.problem = "The training broke off."

    def hear(self, header: dict, content: bytes) -> bool:
        """Take in a frame; True for the last one."""
        if header["kind"] == "made":
            self.config, self.tokenizer = header["config"], content.decode()
            return False
        if header["kind"] == "end":
            self._stored, self.done = content, header["done"]
            return True
        step, was = header["step"], self.progress
        if was.step not in SHOWN:
            self.weights.pop(was.step, None)
        self.weights[step] = content
        curve = (*was.curve, (float(step), header["loss"])) if "loss" in header else was.curve
        self.progress = replace(
            was,
            step=step,
            seconds=header["seconds"],
            curve=curve,
            kept_out=(*was.kept_out, (float(step), header["kept_out"])),
            right=header["right"],
            steps=tuple(sorted(self.weights)),
        )
        return False
