"""Trials that are forked from one process, for real; the programs import no TensorFlow, so nothing slow is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from flatout.tune.child_process import ChildProcess, Ended, Launch
from flatout.tune.nursery import Gone, Nursery, matter, open_for
from flatout.tune.warden import Warden

PROGRAM = """
import json, os, sys, tempfile, time
observer = next(finder.observer for finder in sys.meta_path if hasattr(finder, "observer"))
def probe():
    return observer.stream("fit", "steps", "sleeps")
stream = probe()
said = [sys.argv, __name__, __file__, sys.path[0], os.environ["TMPDIR"], tempfile.gettempdir(), os.getsid(0)]
print(json.dumps([*said, "fractions" in sys.modules]), flush=True)
how = sys.argv[1] if len(sys.argv) > 1 else "well"
for step in range(1000):
    began = time.perf_counter()
    time.sleep(0.001)
    if step == 30 and how == "raises":
        raise ValueError("no luck")
    if step == 30 and how == "leaves":
        sys.exit(3)
    observer.tick(stream, began, time.perf_counter())
"""


@pytest.fixture
def warden():
    made = Warden()
    yield made
    made.close()


@pytest.fixture
def nursery(tmp_path, warden):
    made = Nursery([sys.executable], "sleeps.py", warden, tmp_path, dict(os.environ))
    made.prepare(["fractions"])
    yield made
    made.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "sleeps.py"
    path.write_text(PROGRAM)
    return path


def child_of(nursery, warden, program: Path, *words: str, place: str = "trial", sources=()) -> ChildProcess:
    launch = Launch((sys.executable, str(program), *words), sources=tuple(sources))
    child = ChildProcess(launch, program.parent / place, warden, nursery)
    assert not isinstance(child.process, subprocess.Popen)
    return child


def test_a_forked_trial_is_the_program_as_python_would_run_it(tmp_path, nursery, warden, program):
    child = child_of(nursery, warden, program, "well", "--epochs", "3")
    assert child.answer(30)["steps"] > 0
    child.go(5)
    assert child.answer(30)["steps"] == 5
    said = json.loads((tmp_path / "trial" / "output.txt").read_text().splitlines()[0])
    own = str(tmp_path / "trial" / "tmp")
    expected = [[str(program), "well", "--epochs", "3"], "__main__", str(program), str(tmp_path), own, own]
    assert said == [*expected, child.process.pid, True]
    child.end()
    assert child.process.poll() is not None


@pytest.mark.parametrize(("how", "code", "words"), [("raises", 1, "ValueError: no luck"), ("leaves", 3, "")])
def test_how_a_forked_trial_ends_is_known(how, code, words, nursery, warden, program):
    child = child_of(nursery, warden, program, how)
    with pytest.raises(Ended, match=words or "the program failed"):  # noqa: PT012
        for _ in range(100):
            child.answer(30)
            child.go(10)
    assert child.process.wait(5) == code
    if words:
        traceback = (program.parent / "trial" / "output.txt").read_text()
        assert "nursery" not in traceback
        assert "patched_main" not in traceback
    child.end()


def test_changed_sources_run_in_a_forked_trial(tmp_path, nursery, warden, program):
    changed = tmp_path / "changed.py"
    changed.write_text(PROGRAM.replace("*said, ", '"changed", *said, '))
    child = child_of(nursery, warden, program, sources=[(str(program), str(changed))])
    child.answer(30)
    assert (tmp_path / "trial" / "output.txt").read_text().startswith('["changed"')
    child.end()


def test_without_a_nursery_a_trial_is_started_the_long_way(nursery, warden, program):
    nursery.close()
    launch = Launch((sys.executable, str(program)))
    child = ChildProcess(launch, program.parent / "trial", warden, nursery)
    assert isinstance(child.process, subprocess.Popen)
    assert child.answer(30)["steps"] > 0
    child.end()


def test_a_nursery_with_threads_is_none(tmp_path, warden, monkeypatch):
    (tmp_path / "starts_threads.py").write_text(
        "import threading, time\n"
        "for _ in range(40): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()\n"
    )
    monkeypatch.chdir(tmp_path)  # beside the program
    nursery = Nursery([sys.executable], "sleeps.py", warden, tmp_path, dict(os.environ))
    nursery.prepare(["starts_threads"])
    with pytest.raises(Gone, match="threads"):
        nursery.start({}, tmp_path, [])
    nursery.close()


def test_a_forked_trial_does_not_outlive_a_killed_coordinator(tmp_path, program):
    script = textwrap.dedent(f"""
        import sys, time
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_tune_nursery import *
        warden = Warden()
        nursery = Nursery([sys.executable], "sleeps.py", warden, Path({str(tmp_path)!r}), dict(os.environ))
        child = child_of(nursery, warden, Path({str(program)!r}))
        print(nursery.process.pid, child.process.pid, flush=True)
        time.sleep(100)
    """)
    coordinator = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert coordinator.stdout is not None
    pids = [int(word) for word in coordinator.stdout.readline().split()]
    assert len(pids) == 2
    coordinator.kill()
    coordinator.wait()
    deadline = time.monotonic() + 10
    while any(map(_lives, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_lives, pids))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_only_variables_that_change_what_tensorflow_does_matter():
    assert not matter({"TF_CPP_MIN_LOG_LEVEL": "3"})
    assert matter({"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"})


def test_a_command_that_is_no_python_has_no_nursery(tmp_path, warden):
    assert open_for(["/usr/bin/env", "python", "train.py"], warden, tmp_path, {}) is None
