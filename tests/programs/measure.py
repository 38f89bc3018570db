"""Measures each slow program beside its expert's rewrite and prints the table of README.md.

    python tests/programs/measure.py [--rounds 3] [NAME ...]

Both programs of a pair take the same number of steps. What is timed is the whole program after TensorFlow has been
imported: building the data and the model, tracing, and all steps. What both have in common (data, model) is in both
times, so that the ratio of a single step is larger than the one printed. The two alternate, and the order within a
round is shuffled; the ratio is the median of the rounds' own ratios, with the smallest and the largest beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))


def child(path: str, result: str) -> None:
    """Runs one program with the imports already paid for, and writes how long it took."""
    import keras  # noqa: F401
    import tensorflow as tf

    if "tf_keras" in Path(path).read_text():
        import tf_keras  # noqa: F401
    tf.constant(0.0).numpy() if "compat.v1" not in Path(path).read_text() else None
    sys.argv = [path]
    start = time.perf_counter()
    runpy.run_path(path, run_name="__main__")
    Path(result).write_text(json.dumps(time.perf_counter() - start))


def seconds(path: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "seconds.json"
        command = [sys.executable, __file__, "--child", str(path), str(result)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{path} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        return json.loads(result.read_text())


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        return child(*sys.argv[2:4])
    import manifest

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
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
