"""Steps found by flatout and by XProf, against a stopwatch inside the same program.

flatout observes the unmodified program. XProf gets a trace of the same program taken the ordinary way: the profiler
started before it and stopped after it. XProf is the package that `scripts/bench` installs; without it its columns stay
empty.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from _programs import PROGRAMS, observe

TRACED = """
import runpy, sys
import tensorflow as tf
tf.profiler.experimental.start(sys.argv[1])
try:
    runpy.run_path(sys.argv[2], run_name="__main__")
finally:
    tf.profiler.experimental.stop()
"""
ASK_XPROF = """
import glob, json, sys
from xprof.convert import raw_to_tool_data
files = glob.glob(sys.argv[1] + "/**/*.xplane.pb", recursive=True)
data, _ = raw_to_tool_data.xspace_to_tool_data(files, "overview_page", {})
for table in json.loads(data):
    if "steptime_ms_average" in table.get("p", {}):
        print(json.dumps([len(table.get("rows", [])), float(table["p"]["steptime_ms_average"])]))
        break
"""


def main() -> None:
    only = sys.argv[1:]
    print(f"{'program':26s} {'stopwatch':>16s} {'flatout':>16s} {'ratio':>7s} {'XProf':>16s}   found by")
    right = total = 0
    for path in sorted((PROGRAMS / "steps").glob("*.py")):
        if only and path.stem not in only:
            continue
        with tempfile.TemporaryDirectory() as directory:
            watch = Path(directory) / "stopwatch.json"
            case = observe(path, STOPWATCH=str(watch))
            truth = json.loads(watch.read_text())
            theirs = xprof(path, directory)
        count, median = case["steps"]["count"], case["steps"]["ms"]["median"]
        ratio = median / truth["median_ms"]
        total += 1
        right += abs(count - truth["count"]) <= 1 and abs(ratio - 1) <= 0.05
        watched = f"{truth['count']:5d} × {truth['median_ms']:5.1f} ms"
        row = f"{path.stem:26s} {watched} {count:5d} × {median:5.1f} ms {ratio:7.3f}"
        print(f"{row} {theirs:>16s}   {case['steps']['found_by']}", flush=True)
    print(f"flatout: {right} of {total} within one step and 5 % of the stopwatch")


def xprof(program: Path, directory: str) -> str:
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    logs = str(Path(directory) / "logs")
    subprocess.run([sys.executable, "-c", TRACED, logs, str(program)], cwd=directory, env=quiet, capture_output=True)
    python = os.environ.get("XPROF_PYTHON", sys.executable)
    done = subprocess.run([python, "-c", ASK_XPROF, logs], env=quiet, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    if not lines:
        return "–"
    count, average = json.loads(lines[-1])
    return f"{count} × {average:.1f} ms"


if __name__ == "__main__":
    main()
