"""Models of other people through `flatout optimize`: do they open, is there a verdict in time, are odd samples safe?

    python benchmarks/models.py --packages DIR --budget 5m pnet mobilenet-v3-small

Each model of _served_models.py is made in a process of its own and optimized as a user would, without kept conversions.
Then the artefact is given other batches and lengths, NaN, infinity, large values and odd strings beside the original
(_served_odd.py). DIR is where `pip install --no-deps --target DIR` has put the packages that some models come from;
models whose package is not there are left out, and named. `--list` says which there are.

Bars: every model gets a verdict within the budget (and a minute for what surrounds it); no silent difference. How fast
the pick is beside peers set up by hand is measured by benchmarks/optimize.py, on five architectures; here it is not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _served_models import MODELS

from flatout.model.quantities import seconds

HERE = Path(__file__).resolve().parent
MORE_SECONDS = 60.0
QUIET = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}


def main() -> int:
    options = arguments()
    if options.list:
        print("\n".join(f"{name:24}{one.package}" for name, one in MODELS.items()))
        return 0
    names = options.models or list(MODELS)
    if unknown := set(names) - set(MODELS):
        raise SystemExit(f"There is no model named {', '.join(sorted(unknown))}: --list names them.")
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            made = make(name, Path(scratch) / name, options.packages)
            if made is None:
                print(f"{name:24}left out: pip install --no-deps --target DIR {MODELS[name].package}", flush=True)
                continue
            wrong += judged(name, Path(scratch) / name, made, options)
    print(f"{wrong} beyond the bars")
    return int(wrong > 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--packages", type=Path, default=Path())
    parser.add_argument("--budget", type=seconds, default=300.0, help="for each model")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def make(name: str, directory: Path, packages: Path) -> dict[str, Any] | None:
    command = [sys.executable, str(HERE / "_served_models.py"), name, str(directory), str(packages)]
    done = subprocess.run(command, env=QUIET, capture_output=True, text=True)
    path = directory / "model.json"
    if done.returncode or not path.exists():
        return None
    made: dict[str, Any] = json.loads(path.read_text())
    if made["original"] == "saved_model" or made["original"] == "keras":
        return made if Path(made["model"]).exists() else None
    return made


def judged(name: str, directory: Path, made: dict[str, Any], options: argparse.Namespace) -> int:
    """Optimize one model and print what came of it. Returns how often it was beyond a bar."""
    began, case = time.monotonic(), directory / "case.json"
    command = [
        sys.executable,
        "-m",
        "flatout",
        "optimize",
        made["model"],
        "--data",
        "data.npz",
        "--no-cache",
        "--quiet",
    ]
    command += ["--budget", f"{options.budget:.0f}s", "--output", "artefact", "--json", str(case), *made["options"]]
    environment = {
        **QUIET,
        "PYTHONPATH": os.pathsep.join([str(options.packages.resolve()), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    taken = time.monotonic() - began
    if not case.exists():
        print(f"{name:24}NO VERDICT in {taken:.0f} s: {' '.join(done.stderr.split())[-200:]}", flush=True)
        return 1
    late = taken > options.budget + MORE_SECONDS
    print(f"{name:24}{taken:4.0f} s{' LATE' if late else ''}  {json.loads(case.read_text())['verdict']}", flush=True)
    if not (directory / "artefact" / "load.py").exists():
        return int(late)
    odd = subprocess.run(
        [sys.executable, str(HERE / "_served_odd.py"), str(directory), str(directory / "artefact")],
        env=environment,
        capture_output=True,
        text=True,
    )
    if odd.returncode:
        print(f"{'':24}odd samples were not tried: {' '.join(odd.stderr.split())[-200:]}", flush=True)
        return 1 + late
    found = json.loads(odd.stdout.splitlines()[-1])
    for what, result in found.items():
        print(f"{'':24}{what:16}{result}", flush=True)
    return late + sum(result.startswith("DIFFERS") for result in found.values())


if __name__ == "__main__":
    sys.exit(main())
