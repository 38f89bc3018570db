"""Real programs, observed for real: the first finding names the fault and its line; good programs are left alone.

A noisy machine gets another look: a program is run again before a bad result counts. What is compared with a stopwatch
is what the same process has measured by itself, so that a test beside it slows both.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from observed import observed, patiently

from flatout import store
from flatout.model.case import Case, Program
from flatout.observe.settings import ObserveSettings
from flatout.process.messages import encode
from flatout.run import session
from flatout.store import saving
from flatout.trial.settings import ChildSettings

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
import manifest

pytestmark = pytest.mark.slow


def programs(kind: str, usual: tuple[str, ...]) -> list[Any]:
    """All programs of a kind; those beyond the usual ones run with `scripts/test --all` only."""
    names = sorted(path.stem for path in (manifest.HERE / kind).glob("*.py"))
    return [name if name in usual else pytest.param(name, marks=pytest.mark.exhaustive) for name in names]


SLOW = programs(
    "slow",
    (
        "tiny_fit", "reconverted_table", "feed_dict", "double_precision",
    ),
)  # fmt: skip
GOOD = programs(
    "good",
    (
        "keras_arrays", "custom_loop_traced",
    ),
)  # fmt: skip
STEPS = programs(
    "steps",
    (
        "fit_plain", "loop_eager", "session_run", "predict_dataset", "saved_model_signature",
    ),
)  # fmt: skip


BY_COMMAND = "tiny_fit"
"""Started by `flatout run`, as users do; the others are forked from a process that has imported TensorFlow."""


def observe(kind: str, name: str, directory: Path) -> dict[str, Any]:
    program = manifest.HERE / kind / f"{name}.py"
    if name != BY_COMMAND:
        return dict(of_fork(program, directory).to_json())
    target = directory / f"{name}.json"
    done = observed(directory, "-q", "--json", target, program)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(target.read_text())


def of_fork(program: Path, directory: Path, **variables: str) -> Case:
    """The case of a program, kept below the directory."""
    kept = store.new_directory(program.stem, directory / store.HOME)
    settings = encode(ChildSettings(str(kept), ObserveSettings()))
    code, _, errors = forked.run(program, directory=directory, settings=settings, **variables)
    assert code == 0, errors[-2000:]
    case = session.conclude(kept, Program((sys.executable, str(program)), str(directory)), quiet=True)
    saving.save(case, kept)
    return case


def first(case: dict[str, Any]) -> tuple[str | None, int | None]:
    findings = case["findings"]
    return (findings[0]["cause"], (findings[0]["where"] or {}).get("line")) if findings else (None, None)


@pytest.mark.parametrize("name", SLOW)
def test_first_finding_names_the_fault_and_its_line(name, tmp_path):
    expected = manifest.marker(manifest.HERE / "slow" / f"{name}.py")
    case = patiently(lambda: observe("slow", name, tmp_path), lambda case: first(case) == expected, tmp_path)
    assert first(case) == expected
    split = case["steps"]["split_ms"]
    assert sum(split.values()) == pytest.approx(case["steps"]["ms"]["median"], rel=0.05)
    if name == "feed_dict":  # of the features and the labels that are fed, the features come in float64
        (fed,) = [item["data"] for item in case["evidence"] if item["kind"] == "feed"]
        assert fed["positions"] == [0]
        assert fed["converted"] == 16000 * 400 * 8
        assert case["findings"][0]["fixes"][0]["lever"] == "feed-once"


@pytest.mark.parametrize("name", GOOD)
def test_good_program_has_no_finding_above_a_tenth(name, tmp_path):
    def above(case):
        return [item for item in case["findings"] if (item["cost_share"] or 0) > 0.10]

    case = patiently(lambda: observe("good", name, tmp_path), lambda case: not above(case), tmp_path)
    assert not above(case)


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_counted_and_timed_as_by_a_stopwatch(name, tmp_path):
    watch = tmp_path / "stopwatch.json"
    for _ in range(3):
        steps = of_fork(manifest.HERE / "steps" / f"{name}.py", tmp_path, STOPWATCH=str(watch)).steps
        assert steps is not None
        told = json.loads(watch.read_text())
        ratio = steps.ms.median / told["median_ms"]
        if 0.95 <= ratio <= 1.05:
            break
    assert abs(steps.count - told["count"]) <= 1
    assert 0.95 <= ratio <= 1.05
