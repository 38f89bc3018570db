"""The journal of a tune: a line for each finished trial, written at once.

A coordinator that is killed loses nothing that was finished; `--resume` reads the lines and continues from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from flatout import store
from flatout.model import codec, json_text
from flatout.model.case import Case, Trial, to_plain
from flatout.model.errors import CaseUnreadable
from flatout.store import permissions
from flatout.tune import identity

FILE = "journal.jsonl"


class Journal:
    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        self.trials: dict[tuple[str, tuple[str, ...]], Trial] = {}
        self.scouted: Case | None = None
        self._held: IO[bytes] | None = None
        if self.path.exists():
            self._read()

    def hold(self) -> None:
        """Until `let_go`, or the end of this process, no `--resume` goes on with this tune."""
        self._held = open(self.path, "ab", opener=permissions.private)  # noqa: SIM115  # it stays open
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def let_go(self) -> None:
        if self._held is not None:
            self._held.close()

    def begin(self, command: Sequence[str], directory: str) -> None:
        self._write({"begin": {"command": list(command), "directory": directory}})

    def keep_scouted(self, case: Case, made_of: Mapping[str, Any]) -> None:
        self.scouted = case
        store.write_atomically(self.path.parent / "scouted.json", json.dumps(case.to_json()), private=True)
        self._write({"scouted": True, "identity": made_of})

    def keep(self, trial: Trial) -> None:
        self.trials[(trial.stage, trial.levers)] = trial
        self._write({"trial": to_plain(trial)})

    def finish(self) -> None:
        self._write({"done": True})

    def known(self, stage: str, levers: Sequence[str]) -> Trial | None:
        return self.trials.get((stage, tuple(levers)))

    def _write(self, row: dict[str, Any]) -> None:
        with open(self.path, "ab", opener=permissions.private) as stream:
            text = json.dumps(row) + "\n"
            stream.write(("\n" + text if self._is_cut_off() else text).encode("ascii"))
            stream.flush()
            os.fsync(stream.fileno())

    def _is_cut_off(self) -> bool:
        """Whether the last line has no end, after a kill or on a full disk. The next row would be lost with it."""
        with open(self.path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(size - 1, 0))
            return stream.read(1) not in (b"", b"\n")

    def _read(self) -> None:
        for row in rows(self.path):
            if "trial" in row:
                with contextlib.suppress(CaseUnreadable):  # a damaged line is a trial to make again
                    trial = codec.read(Trial, row["trial"], "trial")
                    self.trials[(trial.stage, trial.levers)] = trial
            elif "scouted" in row:
                self.scouted = store.load(self.path.parent / "scouted.json")


def rows(path: Path) -> list[dict[str, Any]]:
    """All complete lines; the last one is cut off where the coordinator was killed while it wrote."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json_text.parse(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            found.append(row)
    return found


def unfinished(command: Sequence[str], home: Path | None = None) -> Path | None:
    """The directory of the newest tune of the same command that was not finished and does not run."""
    cases = (home or Path.cwd() / store.HOME) / "cases"
    for path in sorted(cases.glob(f"*/{FILE}"), key=lambda path: -path.stat().st_mtime):
        found = rows(path)
        begun: dict[str, Any] = next((row["begin"] for row in found if isinstance(row.get("begin"), dict)), {})
        is_open = begun.get("command") == list(command) and not any("done" in row for row in found)
        if is_open and not _is_held(path):
            return path.parent
    return None


def _is_held(path: Path) -> bool:
    """Whether a flatout is at work on this tune. Two of them would write to the same trials."""
    try:
        with open(path, "ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def changes_since(directory: Path) -> list[str]:
    """What is no longer as it was when a tune was begun, in words. Nothing where nothing was observed yet."""
    return next((identity.changes_since(row.get("identity")) for row in rows(directory / FILE) if "scouted" in row), [])
