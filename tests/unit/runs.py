"""Cases and runs for the tests of comparing, of the history and of the server: step times are drawn, not measured."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sample_case import sample_case

from flatout import store
from flatout.model.case import Case, Distribution, Program, Split
from flatout.store import saving
from flatout.store.run_summary import Run, run_of


def times(median: float, count: int = 300, seed: int = 0, lean: float = 0.6, noise: float = 0.08) -> tuple[float, ...]:
    """Step times in which each step resembles the one before, as those of real programs do."""
    drawn = np.random.default_rng(seed).normal(0, noise * np.sqrt(1 - lean**2), count)
    resembling = np.fromiter(itertools.accumulate(drawn, lambda before, new: new + lean * before), float)
    return tuple((median * np.exp(resembling)).tolist())


def case(
    median: float = 20.0,
    seed: int = 0,
    count: int = 300,
    command: tuple[str, ...] = ("/usr/bin/python3", "train.py", "--epochs", "3"),
    environment: dict[str, Any] | None = None,
    **changes: Any,
) -> Case:
    drawn = times(median, count, seed)
    steps = sample_case().steps
    assert steps is not None
    middle = float(np.median(drawn))
    steps = replace(
        steps,
        count=count,
        ms=Distribution(middle, *(float(q) for q in np.percentile(drawn, (10, 90)))),
        times_ms=drawn,
        split_ms=Split(input=0.2 * middle, python=0.1 * middle, compute=0.7 * middle),
        warmup=1,
        window=None,
    )
    program = Program(command, "/home/ada/flowers", f"2026-11-15T08:{seed % 60:02d}:00+00:00", 9.0, 0)
    facts = sample_case().environment if environment is None else environment
    return replace(
        sample_case(), steps=steps, program=program, environment=facts, evidence=(), trials=(), logdir=None, **changes
    )


def run(median: float = 20.0, seed: int = 0, count: int = 300, name: str = "", **changes: Any) -> Run:
    return replace(run_of(case(median, seed, count), name or f"train-{seed}"), **changes)


def source(commit: str, branch: str = "main", changes: str = "", root: str = "/home/ada/flowers") -> dict[str, Any]:
    """The environment of a case that was run at a commit."""
    return {
        **sample_case().environment,
        "source": {"commit": commit, "branch": branch, "changes": changes, "root": root},
    }


def keep(home: Path, kept: Case, title: str = "train") -> Path:
    return saving.save(kept, store.new_directory(title, home))
