"""Real jobs of two workers under MultiWorkerMirroredStrategy: one that runs to its end, one that loses a rank."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from observed import FLATOUT, Outcome, case_in, environment, execute

from flatout import store
from flatout.model.case import Case

pytestmark = [pytest.mark.slow]

PROGRAMS = Path(__file__).parent.parent / "programs" / "jobs"


def launched(directory: Path, program: str) -> tuple[Outcome, Case]:
    command = [*FLATOUT, "launch", "-n", "2", "--timeout", "350", "--", *FLATOUT, "run"]
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    done = execute([*command, PROGRAMS / f"{program}.py"], directory, env=environment(STEPS="40", **path))
    return done, case_in(directory)


def test_two_workers_are_one_case(tmp_path: Path) -> None:
    done, case = launched(tmp_path, "rank_sleeps")
    assert done.returncode == 0, done.stderr[-3000:]
    assert [(host.name, host.state, host.steps) for host in case.hosts] == [
        ("worker 0", "ended", 40),
        ("worker 1", "ended", 40),
    ]
    assert case.steps is not None
    assert case.steps.count == 40, "steps are counted once"
    waiting, sleeping = case.hosts
    assert waiting.split_ms is not None
    assert sleeping.split_ms is not None
    assert sleeping.split_ms.python > waiting.split_ms.python, "the rank that sleeps does so in Python"
    assert waiting.split_ms.compute > sleeping.split_ms.compute, "the other one waits for it inside of its call"
    for host in case.hosts:
        (given,) = host.inputs
        assert (given.sharded, given.pipelines, given.batch) == (True, 2, 64)
        assert store.load(store.locate(host.case)).steps is not None, "each rank's own case is there"
    assert "[worker 1] " in done.stderr
    assert "Ranks    worker 0: " in done.stderr


@pytest.mark.exhaustive  # `test_job_merge.py` and `test_job_launching.py` hold it without TensorFlow
@pytest.mark.skipif(sys.platform != "linux", reason="signals")
def test_a_killed_rank_is_named_and_the_other_ones_evidence_is_kept(tmp_path: Path) -> None:
    done, case = launched(tmp_path, "rank_dies")
    assert done.returncode == 137
    assert "worker 1 was killed by SIGKILL; the other ranks are ended" in done.stderr
    survivor, dead = case.hosts
    assert dead.state == "killed"
    assert survivor.state in ("failed", "stopped"), "TensorFlow has noticed it, or the launcher has ended it"
    assert case.verdict.startswith("2 ranks. Worker 1 was killed")
    assert case.steps is not None
    assert case.steps.count >= 19
    assert survivor.steps >= 19
