"""The tf.data service as a user starts it: address, elements, a worker that dies, the end, the verdict."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]

PIPELINE = """
    import tensorflow as tf

    def make():
        return tf.data.Dataset.range(300).map(lambda n: n * 2).batch(10)

    def python():
        return tf.data.Dataset.range(30).map(lambda n: tf.py_function(lambda value: value + 1, [n], tf.int64))
"""
CLIENT = """
    import sys
    import tensorflow as tf

    dataset = tf.data.experimental.service.from_dataset_id("distributed_epoch", sys.argv[1], dataset_id=sys.argv[2])
    print(sorted(int(n) for batch in dataset for n in batch) == list(range(0, 600, 2)))
"""
QUIET = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "pipes.py").write_text(textwrap.dedent(PIPELINE))
    (tmp_path / "client.py").write_text(textwrap.dedent(CLIENT))
    return tmp_path


@pytest.fixture
def serving(work: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "flatout", "data", "serve", "pipes:make", "--workers", "1"]
    with open(work / "said", "w") as said:
        process = subprocess.Popen(command, cwd=work, env=QUIET, stdout=subprocess.PIPE, stderr=said, text=True)
    yield process
    process.kill()
    process.wait()


def children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in found.splitlines() if "service_main" in line]


def test_a_pipeline_is_served_and_ends_cleanly(work: Path, serving: subprocess.Popen[str]) -> None:
    assert serving.stdout is not None
    address = serving.stdout.readline().strip()
    assert address.startswith("grpc://localhost:")
    said = (work / "said").read_text()
    until(lambda: "dataset_id=" in (work / "said").read_text())
    identity = (work / "said").read_text().split('dataset_id="')[1].split('"')[0]
    client = [sys.executable, "client.py", address, identity]
    done = subprocess.run(client, cwd=work, env=QUIET, capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr + said
    before = children(serving.pid)
    assert len(before) == 2
    os.kill(before[-1], signal.SIGKILL)
    until(lambda: "worker 0 was ended by SIGKILL; restarting it" in (work / "said").read_text())
    until(lambda: len(children(serving.pid)) == 2)
    after = children(serving.pid)
    serving.send_signal(signal.SIGINT)
    assert serving.wait(timeout=400) == 0
    assert "Traceback" not in (work / "said").read_text()
    assert not [pid for pid in (*before, *after) if Path(f"/proc/{pid}").exists()]


def test_no_process_is_left_when_the_parent_is_killed(work: Path, serving: subprocess.Popen[str]) -> None:
    assert serving.stdout is not None
    serving.stdout.readline()
    started = children(serving.pid)
    assert len(started) == 2
    serving.kill()
    until(lambda: not [pid for pid in started if Path(f"/proc/{pid}").exists()], 30)


@pytest.mark.parametrize(("target", "words"), [("pipes:make", "×"), ("pipes:python", "calls Python")])
def test_whether_it_pays_is_measured(work: Path, target: str, words: str) -> None:
    command = [sys.executable, "-m", "flatout", "data", "serve", target, "--measure", "--json", "case.json"]
    done = subprocess.run(command, cwd=work, env=QUIET, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert (work / "case.json").exists()
