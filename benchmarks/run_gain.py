"""Does a whole run gain what `tune` says? Its claim beside original and patched program, timed outside of flatout.

    python benchmarks/run_gain.py [--keep DIR] [--again] [NAME …]

Each program is tuned in a copy of its directory, with BUDGET (8m). Its patch is applied to another copy by `patch -p1`,
and both copies run plainly, from start to end, in PAIRS (3) interleaved pairs after one run of each that does not
count (files in the page cache, byte code). `predicted` is the ratio in the first line of the verdict, `measured` that
of the pairs. Bar: the two within 10 % of each other in eight programs, of which at least two win by a cure of the run.
To be run on a machine that does nothing else.

With `--keep` what was found is kept in DIR, one file for each program; a second call with the same DIR goes on with
those that are missing (`--again`: measures them anew). Names choose programs of the list, or are files of one's own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "programs"
LIST = (
    "slow/run_eagerly",  # fit
    "slow/tiny_fit",
    "slow/eager_trainer",  # a loop
    "slow/map_before_batch",
    "slow/growing_graph",  # TensorFlow 1
    "run_cures/remote_store",  # cures of the run
    "run_cures/slow_store",
    "run_cures/large_validation",
)
BUDGET = os.environ.get("BUDGET", "8m")
PAIRS = int(os.environ.get("PAIRS", "3"))
NEAR = 0.10
LONGEST = 900
"""Seconds after which a plain run is given up."""
TUNED_FOR = 3600
"""Seconds after which a tune is given up, whatever its budget."""


@dataclass(frozen=True)
class Gain:
    name: str
    levers: str = ""
    step: float | None = None
    """The step's ratio; None where the claim is one of whole runs alone."""
    predicted: float | None = None
    low: float | None = None
    high: float | None = None
    how: str = ""
    before: tuple[float, ...] = ()
    after: tuple[float, ...] = ()
    problem: str = ""

    @property
    def measured(self) -> float | None:
        if not self.before or not self.after:
            return None
        return math.exp(statistics.fmean(math.log(a / b) for a, b in zip(self.before, self.after, strict=True)))

    @property
    def near(self) -> bool:
        found = self.measured
        return found is not None and self.predicted is not None and abs(self.predicted / found - 1) <= NEAR

    def row(self) -> str:
        found = self.measured
        if self.problem or found is None or self.predicted is None:
            return f"{self.name:26} NO  {self.problem or 'not measured'}"
        inside = "inside" if (self.low or 0) <= found <= (self.high or math.inf) else "outside"
        step = f"{self.step:6.2f}" if self.step is not None else "     –"
        times = f"{statistics.median(self.before):6.1f} → {statistics.median(self.after):5.1f} s"
        return (
            f"{self.name:26} {'ok ' if self.near else 'NO '} {self.predicted:9.2f} [{self.low:.2f}, {self.high:.2f}] "
            f"{found:8.2f} {self.predicted / found - 1:+7.1%}  {inside:7} {step}  {times}  {self.how:9} {self.levers}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help=", ".join(LIST))
    parser.add_argument("--keep", type=Path, help="directory for what was found, to go on from there")
    parser.add_argument("--again", action="store_true", help="measure what is kept there anew")
    arguments = parser.parse_args()
    print(f"{'program':26} near predicted interval  measured  apart  truth is   step  whole run        known by  with")
    found = []
    for path in chosen(arguments.names):
        found.append(of(path, arguments.keep, arguments.again))
        print(found[-1].row(), flush=True)
    print(f"{sum(one.near for one in found)} of {len(found)} within {NEAR:.0%}")


def chosen(names: list[str]) -> list[Path]:
    """`tiny_fit`, `slow/tiny_fit` or a file; all of the list without names."""
    known = {name: PROGRAMS / f"{name}.py" for name in LIST}
    paths = []
    for name in names or LIST:
        path = next((known[one] for one in known if name in (one, one.rpartition("/")[2])), Path(name).resolve())
        if not path.is_file():
            raise SystemExit(f"{name}: neither one of {', '.join(LIST)} nor a file")
        paths.append(path)
    return paths


def of(path: Path, keep: Path | None, again: bool) -> Gain:
    """From what is kept, or measured; whatever goes wrong with one program is told in its row."""
    kept = keep / f"{path.stem}.json" if keep is not None else None
    if kept is not None and kept.is_file() and not again:
        return Gain(**{**(data := json.loads(kept.read_text())), **{k: tuple(data[k]) for k in ("before", "after")}})
    try:
        gain = measured(path, keep)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        gain = Gain(path.stem, problem=f"{type(error).__name__}: {error}"[:300])
    if kept is not None and not gain.problem:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(gain), indent=1))
    return gain


def measured(path: Path, keep: Path | None) -> Gain:
    with tempfile.TemporaryDirectory(prefix="run-gain-") as scratch:
        original, patched = Path(scratch) / "original", Path(scratch) / "patched"
        for copy in (original, patched):
            shutil.copytree(path.parent, copy, ignore=shutil.ignore_patterns("__pycache__", ".flatout"))
        case = tuned(original, path.name, Path(scratch), keep)
        gain = predicted(path.stem, case)
        shutil.rmtree(original / ".flatout", ignore_errors=True)
        if gain.problem:
            return gain
        (Path(scratch) / "change.diff").write_text(case["patch"])
        subprocess.run(["patch", "-p1", "-s", "-i", "../change.diff"], cwd=patched, check=True, timeout=60)
        before, after = [], []
        for number in range(PAIRS + 1):
            pair = [(original, before), (patched, after)]
            for copy, times in pair if number % 2 else reversed(pair):
                took = seconds(copy, path.name)
                if number:  # the first pair warms up
                    times.append(took)
        return Gain(**{**asdict(gain), "before": tuple(before), "after": tuple(after)})


def tuned(directory: Path, program: str, scratch: Path, keep: Path | None) -> dict[str, Any]:
    target = scratch / "case.json"
    command = [sys.executable, "-m", "flatout", "tune", "--budget", BUDGET, "--json", str(target), program]
    done = subprocess.run(
        command, cwd=directory, env=environment(), capture_output=True, text=True, timeout=TUNED_FOR, check=False
    )
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{Path(program).stem}.txt").write_text(done.stdout + done.stderr)
    if not target.exists():
        raise ValueError(f"no case: {done.stderr[-300:]}")
    case: dict[str, Any] = json.loads(target.read_text())
    return case


def predicted(name: str, case: dict[str, Any]) -> Gain:
    whole, levers = case.get("whole_run") or {}, " + ".join(case.get("tuned") or ())
    if not levers:
        return Gain(name, problem=f"nothing is claimed: {case.get('verdict', '')[:160]}")
    if not whole.get("complete") or not whole.get("speedup"):
        return Gain(name, levers, problem=f"what the run gains is not known: {whole.get('note') or 'no whole run'}")
    if not case.get("patch"):
        return Gain(name, levers, problem=f"{levers} is claimed without a patch")
    won = [one for one in case["trials"] if one["levers"] == case["tuned"] and one["status"] == "won"]
    step = next((one["speedup"]["ratio"] for one in won if one["stage"] in ("combination", "patch")), None)
    run = whole["speedup"]
    how = "estimate" if whole.get("estimated") else f"{whole.get('pairs')} pairs"
    return Gain(name, levers, step, run["ratio"], run["low"], run["high"], how)


def seconds(directory: Path, program: str) -> float:
    """Of one plain run, from start to end."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, program], cwd=directory, env=environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    took = time.perf_counter() - began
    if done.returncode:
        raise ValueError(f"{directory.name} ended with {done.returncode}: {done.stderr[-200:]}")
    return took


def environment() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


if __name__ == "__main__":
    main()
