"""What `flatout data` promises, measured: costs of stages against the truth, tuned pipelines beside an expert's.

    scripts/bench data                       all of it
    python benchmarks/data.py attribution    each stage's cost beside the truth, and the critical stage
    python benchmarks/data.py gain [NAME …]  misconfigured pipelines: tuned, an expert's rewrite, AUTOTUNE everywhere
    python benchmarks/data.py harmless       pipelines that are good already

All contestants of a row run in turns, in shuffled rounds, in one process; ratios are medians with their 95 % interval.
Bars: attribution within 15 %, the critical stage always right; tuned at least 0.95 of the expert's and 1.0 of AUTOTUNE
everywhere, median gain at least 3; good pipelines never below 0.97.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import _pipelines
import tensorflow as tf

import flatout
from flatout.data import inspection
from flatout.data.contestant import Contestant, Pipeline
from flatout.measure.race import Race, Rules, compare
from flatout.model.evidence.pipelines import PipelinePace
from flatout.pipeline import copies

ROUNDS = int(os.environ.get("ROUNDS", "9"))
BUDGET = float(os.environ.get("BUDGET", "90"))


def main() -> None:
    parts = {"attribution": attribution, "gain": gain, "harmless": harmless}
    wanted = [name for name in sys.argv[1:] if name in parts] or list(parts)
    names = [name for name in sys.argv[1:] if name not in parts]
    for name in wanted:
        parts[name](names)


# ── bar 1 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def attribution(names: list[str]) -> None:
    print(f"{'pipeline':18s} {'stage':14s} {'truth':>9s} {'found':>9s} {'error':>7s}  critical")
    worst, right = 0.0, 0
    cases = _pipelines.costs()
    for title, (dataset, truths, critical) in cases.items():
        case = inspection.inspect([dataset])
        stages = [stage for stage in case.pipelines[0].stages if stage.op in ("Map", "ParallelMap")]
        hot = case.pipelines[0].stages[case.evidence_of(PipelinePace)[0].critical]
        right += hot is stages[critical]
        for stage, truth in zip(stages, truths, strict=True):
            expected, clock = truth()
            found = stage.ms if clock == "wall" else stage.detail.cpu_ms
            error = found / expected - 1
            worst = max(worst, abs(error))
            mark = "critical" if stage is hot else ""
            print(f"{title:18s} {clock:14s} {expected:6.2f} ms {found:6.2f} ms {error:+7.1%}  {mark}", flush=True)
    print(f"largest error {worst:.1%} (bar: 15 %); critical stage right in {right} of {len(cases)}\n")


# ── bars 2 and 3 ─────────────────────────────────────────────────────────────────────────────────────────────────────


def gain(names: list[str]) -> None:
    heads = f"{'pipeline':16s} {'tuned':22s} {'expert':22s} {'AUTOTUNE everywhere':22s}"
    print(f"{heads} {'tuned / expert':20s} {'tuned / AUTOTUNE':22s} {'CPU':>5s}  rewrites", flush=True)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        for name, row in _pipelines.slow(Path(directory)).items():
            if names and name not in names:
                continue
            tuned = flatout.tune_dataset(row.given(), allow=row.allow, budget=BUDGET, show=False)
            contestants = {"tuned": tuned.dataset, "expert": row.expert(), "everywhere": row.everywhere()}
            found = raced(row.given(), contestants)
            rows.append(found)
            kept = " + ".join(tuned.case.tuned) or tuned.case.verdict
            print(
                f"{name:16s} {told(found['tuned']):22s} {told(found['expert']):22s} {told(found['everywhere']):22s} "
                f"{told(found['tuned of expert']):20s} {told(found['tuned of everywhere']):22s} "
                f"{found['cpu'].ratio:5.1f}  {kept}",
                flush=True,
            )
    gains = [row["tuned"].ratio for row in rows]
    print(f"median gain {statistics.median(gains):.2f} (bar: 3)\n" if gains else "")


def harmless(names: list[str]) -> None:
    print(f"{'good pipeline':16s} {'tuned':22s}  rewrites")
    with tempfile.TemporaryDirectory() as directory:
        for name, make in _pipelines.good(Path(directory)).items():
            if names and name not in names:
                continue
            tuned = flatout.tune_dataset(make(), budget=BUDGET, show=False)
            found = raced(make(), {"tuned": tuned.dataset})["tuned"]
            print(f"{name:16s} {told(found):22s}  {' + '.join(tuned.case.tuned) or 'left alone'}", flush=True)
    print()


def raced(given: Any, contestants: dict[str, Any]) -> dict[str, Any]:
    """Each against the pipeline as given, all in the same rounds; caches are full before the first."""
    count = elements_of(given)
    runners = {
        name: Contestant(Pipeline(copies.fresh(item), count), name)
        for name, item in {"given": given, **contestants}.items()
    }
    slowest = 0.0
    for one in runners.values():
        one.pipeline.warm()
        slowest = max(slowest, one.pipeline.run()[0] / one.pipeline.epochs)
    for one in runners.values():
        one.pipeline.epochs = max(1, round(0.4 / max(slowest, 0.01)))
    race = Race([runners["given"]])
    race.run([runners[name] for name in contestants], Rules("all-rounds", ROUNDS))
    verdicts = {name: race.verdict(runners[name]) for name in contestants}
    found = {name: verdict.speedup for name, verdict in verdicts.items()}
    others = {f"tuned of {name}": compare(runners[name], runners["tuned"]) for name in contestants}
    return {**found, **others, "cpu": verdicts["tuned"].cpu}


def elements_of(dataset: Any) -> int:
    known = int(dataset.cardinality())
    return known if known >= 0 else sum(1 for _ in copies.fresh(dataset))


def told(found: Any) -> str:
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]"


if __name__ == "__main__":
    began = time.monotonic()
    tf.get_logger().setLevel("ERROR")
    main()
    print(f"{time.monotonic() - began:.0f} s")
