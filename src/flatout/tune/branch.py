"""The patch of a tune as one commit on a new branch; the working tree stays as it is.

The commit is made in a worktree of its own by the user's git, so that hooks run and the commit is signed where the user
has set that. Where anything refuses or interrupts it, the branch is removed again.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from flatout.model.case import Case
from flatout.model.errors import InvalidOption, PatchFailed, ToolMissing
from flatout.model.text import clean
from flatout.report.pull_request import commit_message
from flatout.trial.patch import Patch


def check(name: str, directory: str) -> None:
    """Raises where the branch cannot be made, before hours are spent on a tune."""
    if _git(directory, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
        raise InvalidOption(f"--branch {name}: {directory} is in no git repository with a commit. Leave it out.")
    if _git(directory, "check-ref-format", "--branch", name).returncode != 0:
        raise InvalidOption(f"--branch {name}: git does not take that as the name of a branch.")
    if _git(directory, "rev-parse", "--verify", "--quiet", f"refs/heads/{name}").returncode == 0:
        raise InvalidOption(f"--branch {name}: there is a branch of that name. Name another one.")


def commit(case: Case, made: Patch, name: str, command: str) -> str:
    """Commit the patch on a new branch that starts at HEAD. Returns the short name of the commit."""
    check(name, made.directory)
    top = _told(made.directory, "rev-parse", "--show-toplevel")
    files = {_relative(change.path, top): change for change in made.changes}
    for path, change in files.items():
        if _committed(top, path) != change.before:
            raise PatchFailed(
                f"{path} is not as it was committed last, and the patch is for it as it stands. Commit it, and then "
                "`flatout tune --resume --branch` makes the branch."
            )
    with tempfile.TemporaryDirectory(prefix="flatout-branch-") as temporary:
        tree = os.path.join(temporary, "tree")
        try:
            _told(top, "worktree", "add", "--quiet", "-b", name, tree, "HEAD")
            for path, change in files.items():
                Path(tree, path).write_bytes(change.after)
            _told(tree, "add", "--", *files)
            message = Path(temporary, "message")
            message.write_text(commit_message(case, command), encoding="utf-8")
            _told(tree, "commit", "--quiet", "--file", str(message))
            made_commit = _told(tree, "rev-parse", "--short", "HEAD")
            _told(top, "worktree", "remove", "--force", tree)
        except BaseException:  # Ctrl-C as well
            _undo(top, tree, name)
            raise
    return made_commit


def _undo(top: str, tree: str, name: str) -> None:
    """Neither the branch nor its worktree is left, however far git has come. A second Ctrl-C waits until that is done;
    git, which inherits the mask, does not see it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        _git(top, "worktree", "remove", "--force", "--force", tree)  # twice: git may have been stopped while it held it
        shutil.rmtree(tree, ignore_errors=True)
        _git(top, "worktree", "prune")
        _git(top, "branch", "--quiet", "-D", name)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _relative(path: str, top: str) -> str:
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(top))
    if relative.startswith(".."):
        raise PatchFailed(f"{path} is outside of the repository {top}: no branch can hold its change.")
    return relative


def _committed(top: str, path: str) -> bytes | None:
    """The file as checked out from HEAD, with the filters of the repository (line ends) applied."""
    found = _git(top, "cat-file", "--filters", f"HEAD:{path}")
    return found.stdout if found.returncode == 0 else None


def _git(directory: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", "-C", directory or ".", *words], capture_output=True, check=False)
    except FileNotFoundError:
        raise ToolMissing("--branch needs git, which is not on PATH.") from None


def _told(directory: str, *words: str) -> str:
    """What git prints. Raises with its message where it fails."""
    done = _git(directory, *words)
    if done.returncode != 0:
        text = clean(_last(done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")), 400)
        raise PatchFailed(f"No branch was made: `git {words[0]}` failed: {text or f'exit code {done.returncode}'}.")
    return done.stdout.decode(errors="replace").strip()


def _last(text: str, lines: int = 3) -> str:
    kept: Sequence[str] = [line for line in text.splitlines() if line.strip()][-lines:]
    return "; ".join(kept).rstrip(".")
