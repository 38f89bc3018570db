"""The programs that `run` and `tune` are tested with, read and not run: `check` sees what source can show of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flatout.check.checker import Checker
from flatout.check.selection import select

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
ONLY_IN_A_RUN = {
    "blocking_fetch",  # that the function waits, not that it is Python
    "cast_churn",
    "eager_policy",  # that the name is a model, not a function
    "jpeg_every_epoch",  # uncached-prefix is opt-in: whether the elements fit in memory, source does not tell
    "layout_churn",
    "many_small_files",
    "map_before_batch",
    "oversized_shuffle",
    "pydataset_rows",  # that the step waits for its Python; how much that is, source does not tell
    "per_sample_graph",  # told as sequential-loop: what the loop goes through is an argument
    "retrace_length",
    "session_samples",  # how short the runs are; source tells that they are fed
    "short_rnn",  # how long the sequences are, and that there is no GPU
    "target_network",  # how often weights are copied, source does not tell
    "tiny_fit",
    "xla_every_shape",
}


ONLY_A_RUN_ABSOLVES = {
    "autotune_off",  # that all that tuning would set is set by hand
    "legacy_pipeline",  # that the model is slower than the generator
    "python_in_pipeline",  # that the generator costs nothing
    "run_eagerly",  # that the model is compiled again
}


def causes(file: Path) -> set[str]:
    outcome = Checker(select()).check(file.read_text(), "program.py")
    assert not outcome.problem
    return {item.cause for item in outcome.diagnostics}


@pytest.mark.parametrize("name", sorted(path.stem for path in (PROGRAMS / "slow").glob("*.py")))
def test_the_fault_of_a_slow_program_is_seen(name: str) -> None:
    file = PROGRAMS / "slow" / f"{name}.py"
    fault = re.search(r"# fault: ([\w-]+)", file.read_text())
    assert fault is not None, f"{file} marks no line with `# fault: <cause>`"
    assert (fault[1] in causes(file)) == (name not in ONLY_IN_A_RUN)


@pytest.mark.parametrize("name", sorted(path.stem for path in (PROGRAMS / "good").glob("*.py")))
def test_nothing_is_said_about_a_good_program(name: str) -> None:
    assert causes(PROGRAMS / "good" / f"{name}.py") == set()


@pytest.mark.parametrize("name", sorted(path.stem for path in (PROGRAMS / "alike").glob("*.py")))
def test_a_look_alike_is_told_apart_in_source_too(name: str) -> None:
    seen = name.replace("_", "-") in causes(PROGRAMS / "alike" / f"{name}.py")
    assert seen == (name in ONLY_A_RUN_ABSOLVES)
