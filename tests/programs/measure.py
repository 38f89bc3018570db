"""Measures each slow program beside its expert's rewrite and prints the table of README.md.

    python tests/programs/measure.py [--rounds 3] [NAME ...]

Both programs of a pair take the same number of steps. What is timed is the whole program after TensorFlow has been
imported: building the data and the model, tracing, and all steps. What both have in common (data, model) is in both
times, so that the ratio of a single step is larger than the one printed. The two alternate, and the order within a
round is shuffled; the ratio is the median of the rounds' own ratios, with the smallest and the largest beside it.

TensorFlow is imported once, and every run is a fork made before any operation has run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import manifest


def run_here(path: Path, result: Path, output: Path) -> None:
    """The forked side: runs one program and writes how long it took. Never returns."""
    status = 1
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.argv = [str(path)]
        start = time.perf_counter()
        runpy.run_path(str(path), run_name="__main__")
        result.write_text(json.dumps(time.perf_counter() - start))
        status = 0
    except BaseException:  # the fork must end here whatever the program does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def seconds(path: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        result, output = Path(folder) / "seconds.json", Path(folder) / "output.txt"
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            run_here(path, result, output)
        _, status = os.waitpid(pid, 0)
        if status or not result.exists():
            raise SystemExit(f"{path} ended with status {status}:\n{output.read_text(errors='replace')[-2000:]}")
        return json.loads(result.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()

    warnings.filterwarnings("ignore", message=".*fork.*")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras  # noqa: F401
    import tensorflow  # noqa: F401
    import tf_keras  # noqa: F401

    order = random.Random(0)
    print("| program | cause | slow s | expert s | slow / expert |")
    print("|---|---|---|---|---|")
    for slow, expert in manifest.pairs():
        if arguments.names and slow.name not in arguments.names:
            continue
        times = {"slow": [], "expert": []}
        for _ in range(arguments.rounds):
            for program in order.sample([slow, expert], 2):
                times[program.kind].append(seconds(program.path))
        ratios = sorted(a / b for a, b in zip(times["slow"], times["expert"]))
        middle = {kind: statistics.median(values) for kind, values in times.items()}
        spread = f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
        print(f"| {slow.name} | {slow.cause} | {middle['slow']:.2f} | {middle['expert']:.2f} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
