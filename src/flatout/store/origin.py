"""Where a case comes from: the commit that was checked out when it began, the changes on top of it, the process.

It is written down beside the recording when the case is begun, because a long run may end on another commit than it
started from, and because whoever follows a run wants to know whether it is still there. git is only asked: no lock is
taken, no hook, filter or driver of the repository's is run. Without git, or outside a repository, the commit is empty.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

FILE = "begun.json"
PATIENCE = 3.0
"""Seconds that git may take, for a repository on a slow disk."""
_CALM = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager")


def begin(directory: Path) -> None:
    """Write down what a new case starts from. Whatever fails here, the run goes on without."""
    with contextlib.suppress(Exception):
        facts = {"pid": os.getpid(), "born": _born(os.getpid()), "at": time.time(), **_commit(Path.cwd())}
        (directory / FILE).write_text(json.dumps(facts), encoding="utf-8")


def read(directory: Path) -> dict[str, Any]:
    try:
        found = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def alive(facts: dict[str, Any]) -> bool:
    """Whether the process that began the case is still there: the same one, not another with its number."""
    pid = facts.get("pid")
    return isinstance(pid, int) and _born(pid) is not None and _born(pid) == facts.get("born")


def source_of(facts: dict[str, Any], program_file: Path | None) -> dict[str, Any]:
    """What the case keeps of its origin; the program's own file by its checksum, if it did not change meanwhile."""
    kept = {name: facts[name] for name in ("commit", "changes", "branch", "root") if facts.get(name)}
    with contextlib.suppress(OSError):
        if program_file is not None and program_file.stat().st_mtime <= facts.get("at", 0.0):
            kept["sha256"] = hashlib.sha256(program_file.read_bytes()).hexdigest()
    return kept


def ask(where: Path, *words: str) -> str | None:
    """What git says, or None where it says nothing."""
    try:
        done = subprocess.run(
            ["git", *_CALM, *words],
            cwd=where,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace").strip("\n") if done.returncode == 0 else None


def _commit(where: Path) -> dict[str, Any]:
    told = (ask(where, "rev-parse", "--show-toplevel", "HEAD") or "").splitlines()
    if len(told) != 2:
        return {}
    root, commit = told
    changed = ask(where, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
    # A pull request is built from a detached commit; its runner knows the branch.
    branch = ask(where, "symbolic-ref", "--short", "-q", "HEAD") or os.environ.get("GITHUB_HEAD_REF")
    return {
        "root": root,
        "commit": commit,
        "branch": branch or os.environ.get("GITHUB_REF_NAME") or "",
        "changes": "unknown"
        if changed is None
        else hashlib.sha256(changed.encode()).hexdigest()[:12]
        if changed
        else "",
    }


def _born(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; a number that is used again gets another."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
