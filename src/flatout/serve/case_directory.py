"""The cases in `.flatout/`: the finished ones, newest first, and those whose run has not ended."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatout import store
from flatout.model import json_text
from flatout.model.case import Case
from flatout.model.errors import CaseNotFound
from flatout.report.formatting import sentence
from flatout.report.terminal import headline
from flatout.store import origin
from flatout.store.run_summary import PARTS, program_of
from flatout.tune import journal

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}")
MOST = 500
"""Cases that are listed at most."""


@dataclass(frozen=True)
class FinishedCase:
    """What the list shows of a case."""

    name: str
    kind: str
    title: str
    started: str
    verdict: str
    step_ms: float | None
    shares: tuple[tuple[str, float], ...]
    findings: int
    commit: str
    failed: bool
    changed: float
    """When its file was written, in seconds since 1970."""


@dataclass(frozen=True)
class UnfinishedCase:
    """A case without a result: its program is running, or was interrupted."""

    name: str
    kind: str
    directory: Path
    running: bool
    began: float


class CaseDirectory:
    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.cases = (self.home / "cases").resolve()

    def directory(self, name: str) -> Path:
        """The directory of a case by its name. A name or link that leads outside is refused."""
        path = self.cases / name
        if not NAME.fullmatch(name) or path.resolve() != path or not path.is_dir():
            raise CaseNotFound(f"There is no case named {name[:80]!r} in {self.home}.")
        return path

    def file(self, name: str) -> Path:
        path = self.directory(name) / store.FILE
        if not path.is_file() or path.resolve() != path:
            raise CaseNotFound(f"The case {name[:80]!r} has not come to its end. Wait, or look at it under /follow.")
        return path

    def kept(self) -> list[FinishedCase]:
        files = [(path.stat(), path) for path in self._directories(store.FILE)]
        newest = sorted(files, key=lambda pair: -pair[0].st_mtime)[:MOST]
        found = [_read(path, stat.st_mtime_ns, stat.st_size) for stat, path in newest]
        return [one for one in found if one is not None]

    def begun(self) -> list[UnfinishedCase]:
        """The newest first. Interrupted runs that left nothing but an empty directory are not included."""
        found = []
        for path in self._directories(origin.FILE):
            directory = path.parent
            if (directory / store.FILE).exists():
                continue
            facts = origin.read(directory)
            kind = "tune" if (directory / journal.FILE).exists() else "run"
            began = facts.get("at")
            found.append(
                UnfinishedCase(
                    directory.name,
                    kind,
                    directory,
                    origin.alive(facts),
                    float(began) if isinstance(began, (int, float)) else path.stat().st_mtime,
                )
            )
        return sorted(found, key=lambda one: -one.began)

    def mark(self) -> str:
        """Changes whenever the list changes: a case is saved, or a run begins or ends."""
        kept = [(path.parent.name, path.stat().st_mtime_ns) for path in self._directories(store.FILE)]
        begun = [(one.name, one.running) for one in self.begun()]
        return hashlib.sha256(repr((sorted(kept), sorted(begun))).encode()).hexdigest()[:16]

    def _directories(self, file: str) -> list[Path]:
        found = []
        for path in self.cases.glob(f"*/{file}"):
            with contextlib.suppress(OSError, CaseNotFound):
                self.directory(path.parent.name)
                found.append(path)
        return found


LARGE = ("ops", "functions", "pipelines", "devices", "memory")
"""Parts of a case that its first sentence does not need."""


@functools.lru_cache(maxsize=2 * MOST)
def _read(path: Path, changed: int, size: int) -> FinishedCase | None:
    """What the list shows of a case, without building it. `changed` and `size` make the cache notice new content."""
    try:
        data = json_text.read(path)
        return _summary(path.parent.name, data, changed / 1e9)
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None  # damaged, or not a case: `flatout show` reports which


def _summary(name: str, data: dict[str, Any], changed: float) -> FinishedCase:
    program = data.get("program") or {}
    steps = data.get("steps") or {}
    split = steps.get("split_ms") or {}
    parts = [(part, float(split.get(part) or 0.0)) for part in PARTS]
    total = sum(value for _, value in parts)
    source = (data.get("environment") or {}).get("source") or {}
    what, arguments = program_of(program.get("command") or (), program.get("directory") or "", source.get("root") or "")
    median = (steps.get("ms") or {}).get("median")
    return FinishedCase(
        name=name,
        kind=str(data["kind"]),
        title=" ".join((what, shlex.join(arguments))).strip() or name,
        started=str(program.get("started") or ""),
        verdict=_verdict(data),
        step_ms=float(median) if isinstance(median, (int, float)) else None,
        shares=tuple((part, value / total) for part, value in parts if value > 0) if total > 0 else (),
        findings=len(data.get("findings") or ()),
        commit=str(source.get("commit") or "")[:7] + ("+" if source.get("changes") else ""),
        failed=bool(program.get("error") or program.get("signal")),
        changed=changed,
    )


def _verdict(data: dict[str, Any]) -> str:
    """For people. The sentences that are kept with a run and a tune name causes and levers as JSON does."""
    if data["kind"] not in ("run", "tune"):
        return sentence(data.get("verdict") or "")
    return headline(Case.from_json({name: value for name, value in data.items() if name not in LARGE}))
