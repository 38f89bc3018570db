"""Planted faults of distributed programs: does the job's case name the right cause, and the right rank, first?

    python benchmarks/jobs.py [--only rank_sleeps,healthy] [--steps 60] [--json FILE]

Each program of tests/programs/jobs runs as a real job of two workers (`flatout launch -n 2 -- flatout run`). A finding
of the run around the steps, such as a slow start, does not count: the jobs are short. A healthy job must get no finding
of a job above 10 % of its step.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from flatout import causes, store
from flatout.model.case import Case, Finding

PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "programs" / "jobs"
OF_RUN = ("late-exit", "slow-start", "compile-bound", "between-epochs")
MOST_OF_HEALTHY = 0.1


@dataclass(frozen=True)
class Planted:
    program: str
    cause: str | None
    rank: str = ""
    """That the finding has to name."""


JOBS = (
    Planted("rank_sleeps", "straggler", "orker 1"),
    Planted("slow_input", "input-skew", "orker 1"),
    Planted("reads_everything", "unsharded-input"),
    Planted("tiny_packs", "allreduce-bound"),
    Planted("small_batch", "small-global-batch"),
    Planted("evaluates_everywhere", "replicated-work"),
    Planted("healthy", None),
    Planted("keras_fit", None),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--only", help="some programs, by name")
    arguments.add_argument("--steps", default="60")
    arguments.add_argument("--json")
    given = arguments.parse_args()
    wanted = given.only.split(",") if given.only else [job.program for job in JOBS]
    rows = []
    print(f"{'program':<22} {'expected':<20} {'first finding':<20} {'share':>6}  right  ms of its own + with others")
    for job in JOBS:
        if job.program in wanted:
            row = _measure(job, given.steps)
            rows.append(row)
            share = f"{row['share']:.0%}" if row["share"] is not None else ""
            print(
                f"{job.program:<22} {job.cause or 'none':<20} {row['first'] or 'none':<20} {share:>6}  "
                f"{'yes' if row['right'] else 'NO':<5}  {row['ranks']}",
                flush=True,
            )
    faults = [row for row in rows if row["expected"]]
    print(f"{sum(row['right'] for row in faults)} of {len(faults)} faults first, ", end="")
    sound = [row for row in rows if not row["expected"]]
    print(f"{sum(row['right'] for row in sound)} of {len(sound)} healthy jobs without one")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _measure(job: Planted, steps: str) -> dict[str, object]:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "flatout", "launch", "-n", "2", "--quiet", "--timeout", "500", "--"]
        command += [sys.executable, "-m", "flatout", "run", "--trace", str(PROGRAMS / f"{job.program}.py")]
        environment = {**os.environ, "STEPS": steps, "RECORDS": folder, "TF_CPP_MIN_LOG_LEVEL": "2"}
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        latest = Path(folder) / ".flatout" / "latest"
        if not (latest / store.FILE).exists():
            sys.stderr.write(ended.stderr[-3000:])
            return _row(job, None, f"exit code {ended.returncode}, no case", ended.returncode, began)
        case = store.load(latest / store.FILE)
    ranks = "; ".join(
        f"{host.own_ms:.0f} + {host.collective_ms:.0f}" if host.own_ms is not None else str(host.state)
        for host in case.hosts
    )
    return _row(job, case, ranks, ended.returncode, began)


def _row(job: Planted, case: Case | None, ranks: str, code: int, began: float) -> dict[str, object]:
    found = [item for item in case.findings if item.cause not in OF_RUN] if case is not None else []
    first: Finding | None = found[0] if found else None
    if job.cause is not None:
        right = first is not None and first.cause == job.cause and job.rank in first.summary
    else:
        of_job = [item for item in found if causes.find(item.cause).spec.group == "job"]
        right = case is not None and all((item.cost_share or 0.0) <= MOST_OF_HEALTHY for item in of_job)
    return {
        "program": job.program,
        "expected": job.cause,
        "first": first.cause if first is not None else None,
        "summary": first.summary if first is not None else "",
        "share": first.cost_share if first is not None else None,
        "right": right and code == 0,
        "ranks": ranks if code == 0 else f"{ranks} (exit code {code})",
        "seconds": round(time.perf_counter() - began, 1),
    }


if __name__ == "__main__":
    main()
