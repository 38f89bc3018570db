"""The places of the fault campaign: a directory with a program for each command, and what must be true of it then.

`run` and `tune` get a program that sleeps through its steps under a name that stands for TensorFlow: the parts that can
be killed are flatout's own, and a whole tune takes a minute.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

MARK = "FLATOUT_FAULTS_MARK"
PROGRAM = """
import sys, time
import tensorflow
observer = next((finder.observer for finder in sys.meta_path if hasattr(finder, "observer")), None)
def probe():
    return observer.streams.make("fit", "steps", "sleeps")
stream = probe() if observer else None
for step in range(int(sys.argv[1])):
    began = time.perf_counter()
    time.sleep(tensorflow.PAUSE)
    if observer:
        observer.ticks.tick(stream, began, time.perf_counter())
print("done", step)
"""
CURE = '''"""Sleeps {what}.

## What it changes
The pause.
"""
from flatout.cures import Cure

CURE = Cure(equivalence="semantic", side="host")
'''
INJECT = """
from flatout.cures import Hooks


def on_tensorflow(injection, module):
    module.PAUSE = {pause}
    injection.changed()


HOOKS = Hooks(tensorflow=on_tensorflow)
"""
MODEL = """
import keras, numpy as np
inputs = keras.Input((16,))
keras.Model(inputs, keras.layers.Dense(4)(keras.layers.Dense(32, activation="relu")(inputs))).save("model.keras")
np.savez("data.npz", x=np.random.default_rng(0).normal(size=(64, 16)).astype("float32"))
"""


@dataclass
class Place:
    """A directory of one command. Its processes carry a mark in their environment, and have their own temporary
    directory."""

    directory: Path
    name: str
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    users_files: dict[str, str] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        return self.directory / "work"

    @property
    def temporary(self) -> Path:
        return self.directory / "tmp"

    def make(self) -> Place:
        self.work.mkdir(parents=True)
        self.temporary.mkdir()
        _MAKERS[self.name](self)
        self.users_files = self.files()
        return self

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FLATOUT")}
        plugins = {"FLATOUT_PLUGINS": str(self.directory / "plugins")} if self.name in ("run", "tune") else {}
        return {
            **kept, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.temporary),
            MARK: self.mark, **plugins,
        }  # fmt: skip

    def command(self, again: bool = False) -> list[str]:
        words = {
            "run": ["run", "--no-trace", "train.py", "300"],
            "tune": ["tune", "--lever", "sleep-less", "--lever", "sleep-more", "--budget", "90s",
                     *(["--resume"] if again else []), "--json", "case.json", "train.py", "3000"],
            "convert": ["data", "convert", "pictures", "shards", "--kind", "files", "--shuffle", "1",
                        "--shard-size", "300KB"],
            "optimize": ["optimize", "model.keras", "--data", "data.npz", "--budget", "60s", "--output", "out",
                         "--force", "--route", "tf-frozen"],
        }  # fmt: skip
        return [sys.executable, "-m", "flatout", *words[self.name]]

    def start(self, again: bool = False, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*prefix, *self.command(again)],
            cwd=self.work,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.directory / "stderr.txt").open("wb"),
        )

    def told(self) -> str:
        return (self.directory / "stderr.txt").read_text(errors="replace")

    def processes(self) -> dict[int, str]:
        """All that carry the mark, with what they are."""
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    if self.mark.encode() in Path(f"/proc/{entry}/environ").read_bytes():
                        found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
        return found

    def files(self) -> dict[str, str]:
        """The user's files, by content."""
        left_out = (".flatout", "shards", "out", "case.json")
        return {
            str(path.relative_to(self.work)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.work.rglob("*"))
            if path.is_file() and path.relative_to(self.work).parts[0] not in left_out
        }

    def trials(self) -> list[dict[str, object]]:
        """The finished trials of the tune in its journal."""
        found = []
        for path in self.work.glob(".flatout/cases/tune-*/journal.jsonl"):
            for line in path.read_text().splitlines():
                try:
                    row = json.loads(line)
                except ValueError:
                    continue  # cut short by the kill
                if "trial" in row:
                    found.append(row["trial"])
        return found

    def complaints(self, seconds: float = 15.0) -> list[str]:
        """What is wrong after the command has ended or was killed: processes, files, locks."""
        deadline = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        wrong = [f"left running: {name[:100]}" for name in left.values()]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if self.files() != self.users_files:
            wrong.append("files of the user were changed")
        wrong += [
            f"unreadable: {path.parent.name}"
            for path in self.work.glob(".flatout/cases/*/case.json")
            if not _read(path)
        ]
        wrong += [f"not private: {path.name}" for path in self.work.glob(".flatout") if path.stat().st_mode & 0o077]
        for path in self.work.glob(".flatout/history.db"):
            try:
                with sqlite3.connect(path, timeout=2) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    connection.rollback()
            except sqlite3.Error as error:
                wrong.append(f"history: {error}")
        return wrong

    def temporary_files(self) -> list[str]:
        return sorted(
            str(path.relative_to(self.temporary))
            for path in self.temporary.rglob("*")
            if path.is_file() or path.is_symlink()
        )


def _read(path: Path) -> bool:
    try:
        return "kind" in json.loads(path.read_text())
    except ValueError:
        return False


def _program(place: Place) -> None:
    (place.work / "train.py").write_text(PROGRAM)
    (place.work / "tensorflow.py").write_text("PAUSE = 0.004\n__version__ = '2.21.0'\n")
    for what, pause in (("less", 0.002), ("more", 0.006)):
        folder = place.directory / "plugins" / "cures" / f"sleep_{what}"
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(CURE.format(what=what))
        (folder / "inject.py").write_text(INJECT.format(pause=pause))


def _pictures(place: Place) -> None:
    (place.work / "pictures").mkdir()
    for number in range(300):
        content = hashlib.sha256(str(number).encode()).digest() * (100 + number % 50)
        (place.work / "pictures" / f"{number:04d}.bin").write_bytes(content)
        os.utime(place.work / "pictures" / f"{number:04d}.bin", (1e9, 1e9))  # it is part of the fingerprint


def _model(place: Place) -> None:
    subprocess.run([sys.executable, "-c", MODEL], cwd=place.work, env=place.environment(), check=True, stderr=-3)


_MAKERS = {"run": _program, "tune": _program, "convert": _pictures, "optimize": _model}
