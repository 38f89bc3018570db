"""What flatout says on a machine with a GPU, beside the truth measured without it.

    python benchmarks/gpu.py run [NAME …]      first finding of each program of benchmarks/gpu/
    python benchmarks/gpu.py truth [NAME …]    seconds of a step, slow and expert, timed outside of flatout
    python benchmarks/gpu.py tune [NAME …]     `flatout tune`, then the slow and the patched program timed as in `truth`

The seconds of a step are those of the loop alone: each program is run with N and with 2 N steps, in turns with the one
it is compared with, and the difference counts. Start, compilation and the end are in both. Every program ends with a
value pulled out of the GPU, so that nothing is queued any longer when it ends.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent / "gpu"
PAIRS = int(os.environ.get("PAIRS", "3"))
BUDGET = os.environ.get("BUDGET", "5m")


def main() -> None:
    mode, names = sys.argv[1], sys.argv[2:]
    kinds = ("slow", "good") if mode == "run" else ("slow",)
    for kind in kinds:
        for program in sorted((HERE / kind).glob("*.py")):
            if not names or program.stem in names:
                print({"run": run, "truth": truth, "tune": tune}[mode](program), flush=True)


def run(program: Path) -> str:
    case, seconds = flatout("run", program)
    steps, findings = case.get("steps") or {}, case.get("findings") or []
    found = ", ".join(f"{one['cause']} {one.get('cost_share') or 0:.0%}" for one in findings)
    median = (steps.get("ms") or {}).get("median") or 0.0
    name = f"{program.parent.name}/{program.stem}"
    return f"{name:26s} {expected(program):20s} {median:8.2f} ms {seconds:5.0f} s  {found or 'nothing'}"


def truth(program: Path) -> str:
    slow, expert, ratio = compared(program, HERE / "expert" / program.name)
    return f"{program.stem:20s} slow {1e3 * slow:8.2f} ms  expert {1e3 * expert:8.2f} ms  {ratio:5.2f} times as fast"


def tune(program: Path) -> str:
    with tempfile.TemporaryDirectory() as directory:
        case, seconds = flatout("tune", program, "--budget", BUDGET)
        won = [one for one in case.get("trials") or [] if one.get("status") == "won"]
        claim = max((one["speedup"]["ratio"] for one in won), default=1.0)
        line = f"{program.stem:20s} {seconds:5.0f} s  {case.get('verdict')}  claim {claim:.2f}"
        if not case.get("patch"):
            return line
        changed = Path(directory) / program.name
        changed.write_text(program.read_text())
        diff = case["patch"]
        subprocess.run(["patch", "-s", str(changed)], input=diff, text=True, check=True)
        _, _, ratio = compared(program, changed)
        return f"{line}  truth {ratio:.2f}"


def compared(slow: Path, other: Path) -> tuple[float, float, float]:
    """Seconds of a step of both, and the median of the pairs' ratios."""
    pairs = [(step_seconds(slow), step_seconds(other)) for _ in range(PAIRS)]
    ratio = statistics.median(one / max(another, 1e-9) for one, another in pairs)
    return statistics.median(one for one, _ in pairs), statistics.median(another for _, another in pairs), ratio


def step_seconds(program: Path) -> float:
    match = re.search(r'"STEPS", "(\d+)"', program.read_text())
    assert match is not None, program
    steps = int(match.group(1))
    return (timed(program, 2 * steps) - timed(program, steps)) / steps


def timed(program: Path, steps: int) -> float:
    began = time.perf_counter()
    environment = {**os.environ, "STEPS": str(steps), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr[-1000:]}")
    return time.perf_counter() - began


def flatout(command: str, program: Path, *options: str) -> tuple[dict, float]:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "case.json"
        words = [sys.executable, "-m", "flatout", command, "-q", "--json", str(target), *options, str(program)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(words, env=environment, cwd=directory, capture_output=True, text=True)
        if not target.exists():
            return {"verdict": done.stderr[-500:]}, time.perf_counter() - began
        case = json.loads(target.read_text())
    if keep := os.environ.get("KEEP"):
        Path(keep, f"{command}-{program.parent.name}-{program.stem}.json").write_text(json.dumps(case))
    return case, time.perf_counter() - began


def expected(program: Path) -> str:
    match = re.search(r"Cause: ([a-z0-9-]+)", program.read_text())
    return match.group(1) if match else "nothing"


if __name__ == "__main__":
    main()
