"""Levers raced on two Ray nodes of this machine: all trials come back, also where a node dies in the midst of a race.

As in `test_tune_killed.py`, the program sleeps through its steps under a name that stands for TensorFlow: what is
tested here is who races what, and what becomes of it.
"""

from __future__ import annotations

import json
import platform
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from observed import environment
from swift import SWIFT
from test_tune_killed import CURE, INJECT, PROGRAM, left_behind, rows

from waiting import until

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.slow, pytest.mark.alone]

LEVERS = {"sleep-less": 0.002, "sleep-more": 0.006, "sleep-alike": 0.004, "sleep-longest": 0.008}
STORE = 80_000_000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "tensorflow.py").write_text("PAUSE = 0.004\n__version__ = '2.21.0'\n")
    for name, pause in LEVERS.items():
        folder = tmp_path / "plugins" / "cures" / name.replace("-", "_")
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(CURE.format(what=name))
        (folder / "inject.py").write_text(INJECT.format(pause=pause))
    return tmp_path


@pytest.fixture
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    made.add_node(num_cpus=1, object_store_memory=STORE)
    yield made
    made.shutdown()


def tune(place: Path, address: str, *words: str) -> subprocess.Popen[bytes]:
    levers = [word for name in LEVERS for word in ("--lever", name)]
    words = ("--budget", "90s", "--json", "case.json", *words, "train.py")
    with open(place / "told.txt", "ab") as told:
        return subprocess.Popen(
            [*SWIFT, "tune", "--on", f"ray:{address}", *levers, *words],
            cwd=place,
            env=environment(FLATOUT_PLUGINS=str(place / "plugins")),
            stderr=told,
        )


def told(place: Path) -> str:
    return (place / "told.txt").read_text()


def ended(place: Path, running: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert running.wait(timeout=400) == 0, told(place)
    until(lambda: not left_behind(place), 30)
    case: dict[str, Any] = json.loads((place / "case.json").read_text())
    return case


def singles(case: dict[str, Any]) -> set[str]:
    return {trial["levers"][-1] for trial in case["trials"] if trial["stage"] == "single"}


def test_both_nodes_race_and_the_verdict_is_that_of_one_machine(place: Path, cluster: Any) -> None:
    case = ended(place, tune(place, cluster.address))
    assert singles(case) == set(LEVERS), told(place)
    raced_on = [one for one in case["evidence"] if one["kind"] == "raced-on"]
    assert len(raced_on) == 2
    assert {name for one in raced_on for name in one["data"]["levers"]} == set(LEVERS)
    assert all(one["data"]["cores"] == 1 for one in raced_on)
    assert "sleep-less" in case["verdict"], told(place)
    assert any("Levers were raced on 2 nodes" in note["text"] for note in case["notes"])


def test_a_node_that_dies_costs_its_race_only(place: Path, cluster: Any) -> None:
    (worker,) = cluster.worker_nodes
    number = sorted([cluster.head_node.node_id, worker.node_id]).index(worker.node_id) + 1
    running = tune(place, cluster.address)
    until(lambda: f"/{number}: trying th" in told(place), 200)
    cluster.remove_node(worker, allow_graceful=False)
    case = ended(place, running)
    assert singles(case) == set(LEVERS), told(place)
    notes = " ".join(note["text"] for note in case["notes"])
    assert f"was lost on {platform.node()}/{number} (" in notes, told(place)
    assert "It ran again on" in notes
    made = [row["trial"] for row in rows(place) if "trial" in row]
    kept = [tuple(trial["levers"]) for trial in made if trial["stage"] == "single"]
    assert len(kept) == len(set(kept)), "a finished trial was made again"


def test_a_coordinator_that_is_killed_leaves_no_race_behind_and_resumes(place: Path, cluster: Any) -> None:
    running = tune(place, cluster.address)
    until(lambda: ": trying th" in told(place), 200)
    running.send_signal(signal.SIGKILL)
    running.wait()
    until(lambda: not left_behind(place), 60)
    case = ended(place, tune(place, cluster.address, "--resume"))
    assert singles(case) == set(LEVERS), told(place)
    assert sum("scouted" in row for row in rows(place)) == 1
