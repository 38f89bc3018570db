"""Where a case comes from: the commit that was checked out at its start, the uncommitted changes, the process.

This is written into the case's directory when the case begins, because another commit may be checked out by the time a
long run ends, and because `flatout serve` needs to know whether the run is still alive. git is only queried: it takes
no lock and runs no hook, filter or driver of the repository. Without git, or outside a repository, the commit is empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from flatout.model import json_text
from flatout.store.permissions import private

FILE = "begun.json"
GIT_TIMEOUT = 3.0
"""Seconds that git may take, for a repository on a slow disk."""
_GIT_OPTIONS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager")


def begin(directory: Path) -> None:
    """Record what a new case starts from. A failure here never stops the run."""
    with contextlib.suppress(Exception):
        facts = {**process(), "at": time.time(), **_commit(Path.cwd())}
        with open(directory / FILE, "w", encoding="utf-8", opener=private) as stream:
            stream.write(json.dumps(facts))


def read(directory: Path) -> dict[str, Any]:
    try:
        found = json_text.read(directory / FILE)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def process() -> dict[str, Any]:
    """This process, for `alive`."""
    return {"pid": os.getpid(), "born": _start_time(os.getpid())}


def alive(facts: dict[str, Any]) -> bool:
    """Whether the process that began the case is still running. Its start time tells it from a later process with the
    same id."""
    pid = facts.get("pid")
    return isinstance(pid, int) and _start_time(pid) is not None and _start_time(pid) == facts.get("born")


def source_of(facts: dict[str, Any], program_file: Path | None) -> dict[str, Any]:
    """What the case keeps of its origin, with the checksum of the program's file if it did not change since."""
    kept = {name: facts[name] for name in ("commit", "changes", "branch", "root") if facts.get(name)}
    with contextlib.suppress(OSError):
        if program_file is not None and program_file.stat().st_mtime <= facts.get("at", 0.0):
            kept["sha256"] = _sha256(program_file.read_bytes())
    return kept


def git(where: Path, *arguments: str) -> str | None:
    """The output of a git command, or None if it failed."""
    try:
        done = subprocess.run(
            ["git", *_GIT_OPTIONS, *arguments],
            cwd=where,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip("\n") if done.returncode == 0 else None


def _commit(where: Path) -> dict[str, Any]:
    lines = (git(where, "rev-parse", "--show-toplevel", "HEAD") or "").splitlines()
    if len(lines) != 2:
        return {}
    root, commit = lines
    changed = git(where, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
    # A pull request is built from a detached commit; the runner's environment names the branch.
    branch = git(where, "symbolic-ref", "--short", "-q", "HEAD") or os.environ.get("GITHUB_HEAD_REF")
    return {
        "root": root,
        "commit": commit,
        "branch": branch or os.environ.get("GITHUB_REF_NAME") or "",
        "changes": "unknown" if changed is None else _sha256(changed.encode())[:12] if changed else "",
    }


def _start_time(pid: int) -> str | None:
    """When a process started, in clock ticks since boot."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _sha256(content: bytes) -> str:
    import hashlib  # only where a case is kept: reading one does without

    return hashlib.sha256(content).hexdigest()
