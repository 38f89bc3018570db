"""The patch as a commit on a branch of its own: the working tree untouched, the user's hooks and settings respected."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flatout.model.case import Case
from flatout.model.errors import InvalidOption, PatchFailed
from flatout.trial.patch import Change, Patch
from flatout.tune import branch

CASE = Path(__file__).resolve().parent.parent / "fixtures" / "screens" / "tune-won.json"
BEFORE, AFTER = b"def train_step():\n    pass\n", b"@tf.function\ndef train_step():\n    pass\n"


def git(directory: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(directory), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "config", "user.name", "Ada")
    git(tmp_path, "config", "user.email", "ada@example.org")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_bytes(BEFORE)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "First")
    return tmp_path


def case() -> Case:
    return Case.from_json(json.loads(CASE.read_text(encoding="utf-8")))


def patch(repository: Path) -> Patch:
    return Patch((Change(str(repository / "src" / "train.py"), BEFORE, AFTER),), str(repository))


def test_the_branch_has_one_commit_and_the_tree_is_untouched(repository: Path) -> None:
    (repository / "notes.txt").write_text("not committed")
    branch.commit(case(), patch(repository), "faster", "flatout tune train.py")
    assert (repository / "src" / "train.py").read_bytes() == BEFORE
    assert git(repository, "branch", "--show-current").strip() == "main"
    assert git(repository, "status", "--porcelain").strip() == "?? notes.txt"
    assert git(repository, "show", "faster:src/train.py").encode() == AFTER
    assert git(repository, "rev-list", "--count", "main..faster").strip() == "1"
    assert git(repository, "worktree", "list").count("\n") == 1


def test_the_message_has_claim_interval_comparison_and_command(repository: Path) -> None:
    branch.commit(case(), patch(repository), "faster", "flatout tune train.py --epochs 3")
    message = git(repository, "log", "-1", "--format=%B", "faster")
    subject, empty, *_ = message.splitlines()
    assert len(subject) <= 72
    assert not empty
    told = " ".join(message.split())
    for part in (
        "Trace `train_step` with @tf.function",
        "its training steps 4.04 times (3.47 to 4.71)",
        "95 % interval",
        "Losses of 10 steps and 43 of 44 variables",
        "28.3 s → 15.2 s",
        "flatout tune train.py --epochs 3",
    ):
        assert part in told, part
    assert max(map(len, message.splitlines())) <= 80


def test_hooks_may_change_the_message_and_refuse(repository: Path) -> None:
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "commit-msg").write_text('#!/bin/sh\necho "Signed-off-by: Ada" >> "$1"\n')
    (hooks / "commit-msg").chmod(0o755)
    branch.commit(case(), patch(repository), "faster", "flatout tune train.py")
    assert "Signed-off-by: Ada" in git(repository, "log", "-1", "--format=%B", "faster")
    (hooks / "pre-commit").write_text("#!/bin/sh\necho 'no commits on Fridays' >&2\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    with pytest.raises(PatchFailed, match="no commits on Fridays"):
        branch.commit(case(), patch(repository), "again", "flatout tune train.py")
    assert "again" not in git(repository, "branch", "--list")
    assert git(repository, "worktree", "list").count("\n") == 1


def state(repository: Path) -> tuple[str, ...]:
    """What a user would find: branches, worktrees, the tree and where it stands."""
    commands = (("branch", "--list", "--all"), ("worktree", "list", "--porcelain"), ("status", "--porcelain"),
                ("rev-parse", "HEAD"), ("config", "--local", "--list"))  # fmt: skip
    files = {path.name for path in (repository / ".git").iterdir()} - {"packed-refs"}  # git makes it to remove a branch
    return (*(git(repository, *words) for words in commands), str(sorted(files)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, RuntimeError, SystemExit])
@pytest.mark.parametrize("at", ["worktree add", "add", "commit", "rev-parse", "worktree remove"])
def test_whatever_interrupts_it_leaves_nothing_behind(
    repository: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], at: str
) -> None:
    """Each comes once git has done its part, so that there is the most to undo."""
    before, run, told, raised = state(repository), branch._git, [], []

    def interrupted(directory: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        done = run(directory, *words)
        told.append(" ".join(words))
        begun = any(one.startswith("worktree") for one in told)
        if begun and told[-1].startswith(at) and not raised:
            raised.append(at)
            raise error
        return done

    monkeypatch.setattr(branch, "_git", interrupted)
    with pytest.raises(error):
        branch.commit(case(), patch(repository), "faster", "flatout tune train.py")
    assert raised
    assert state(repository) == before


INTERRUPTED = """
import signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_tune_branch import branch, case, patch

def interrupted(directory, *words):
    if words[0] == "commit" or words[:2] == ("worktree", "prune"):
        print(words[0], flush=True)
        signal.raise_signal(signal.SIGINT)
    return run(directory, *words)

run, branch._git = branch._git, interrupted
branch.commit(case(), patch(Path(sys.argv[1])), "faster", "flatout tune train.py")
"""


def test_a_second_ctrl_c_waits_until_all_is_undone(repository: Path) -> None:
    """In a process of its own: where OpenVINO has been used, any signal may end the process (it unmaps the stack that
    Python handles signals on)."""
    before = state(repository)
    command = [sys.executable, "-c", INTERRUPTED, str(repository), *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == -signal.SIGINT, done.stderr
    assert done.stdout.split() == ["commit", "worktree"]
    assert state(repository) == before


def test_a_file_that_is_not_committed_is_refused(repository: Path) -> None:
    changed = Patch((Change(str(repository / "src" / "train.py"), b"# edited\n" + BEFORE, AFTER),), str(repository))
    with pytest.raises(PatchFailed, match="not as it was committed last"):
        branch.commit(case(), changed, "faster", "flatout tune train.py")
    assert "faster" not in git(repository, "branch", "--list")


@pytest.mark.parametrize(
    ("name", "told"), [("main", "there is a branch"), ("a..b", "does not take"), ("-x", "does not")]
)
def test_names_are_refused_before_the_tune(repository: Path, name: str, told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        branch.check(name, str(repository))


def test_outside_of_a_repository(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="no git repository"):
        branch.check("faster", str(tmp_path))


def test_a_case_without_a_whole_run_has_a_message_too(repository: Path) -> None:
    bare = dataclasses.replace(case(), whole_run=None)
    branch.commit(bare, patch(repository), "faster", "flatout tune train.py")
    assert "4.04 times as fast" in git(repository, "log", "-1", "--format=%B", "faster")
