"""What flatout says on a machine with a GPU, beside the truth measured without it.

    python benchmarks/gpu.py run [NAME …]      first finding of each program of benchmarks/gpu/
    python benchmarks/gpu.py truth [NAME …]    seconds of a step, slow and expert, timed outside of flatout
    python benchmarks/gpu.py tune [NAME …]     `flatout tune`, then the slow and the patched program timed as in `truth`

The seconds of a step come from outside of the program: it prints a line with its loss at equal distances (for `fit`, at
the end of each epoch), for which it waits for the GPU; the clock runs from the first of these lines, when everything is
compiled, to the last. Both programs take turns.
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
BUDGET = os.environ.get("BUDGET", "")


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
        case, seconds = flatout("tune", program, *(["--budget", BUDGET] if BUDGET else []))
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
    steps = int(os.environ.get("STEPS", match.group(1)))
    stamps = progress(program, steps)[:-1]  # the last line says how it ended
    return (stamps[-1] - stamps[0]) / (steps * (len(stamps) - 1) / len(stamps))


def progress(program: Path, steps: int) -> list[float]:
    """When each line with a loss was printed."""
    environment = {**os.environ, "STEPS": str(steps), "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONUNBUFFERED": "1"}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            [sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        stamps = [time.perf_counter() for line in process.stdout if "loss" in line]
        if process.wait():
            errors.seek(0)
            raise RuntimeError(f"{program}: {errors.read()[-1000:]}")
    return stamps


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
