"""What `flatout tune` makes of the programs of tests/programs/patterns, beside what an expert gets by hand.

    scripts/bench patterns                         all of them, with the default budget: more than an hour
    python benchmarks/patterns.py vae --budget 3m  some of them

Each program is tuned with the default levers. Step ratio and end-to-end ratio are those of the verdict; the expert's is
end to end, from whole runs of the original and of the rewrite in turns. End to end means from the end of the imports,
which nothing here can change. Where there is nothing to win, the verdict has to say so.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import flatout
from flatout.model.case import Case, Interval
from flatout.process.watchdog import Watchdog
from flatout.trial import whole_run
from flatout.trial.child_process import Launch
from flatout.tune.conclusions import claim_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))
from pattern_manifest import PATTERNS, Pattern  # noqa: E402

LIMIT = 900.0
"""Seconds after which a whole run is given up."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", help="of each tune; its own default where none is given")
    parser.add_argument("--pairs", type=int, default=3, help="whole runs of the original and of the expert's program")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    print(f"{'program':18s} {'verdict':14s} {'step':22s} {'end to end':22s} {'patch':6s} {'expert':22s} levers")
    for one in PATTERNS:
        if options.names and one.name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            print(row(one, options, Path(directory)), flush=True)


def row(one: Pattern, options: argparse.Namespace, directory: Path) -> str:
    case = tuned(one.path, options.budget, directory)
    claim, whole = claim_of(case), case.whole_run
    step = told(claim.speedup if claim is not None else None)
    run = told(whole.after_imports if whole is not None else None)
    expert = by_hand(one, options.pairs, directory)
    patched = "yes" if case.patch else "no"
    outcome = case.conclusion.outcome if case.conclusion is not None else "failed"
    levers = " + ".join(case.tuned) or case.verdict
    return f"{one.name:18s} {outcome:14s} {step:22s} {run:22s} {patched:6s} {expert:22s} {levers}"


def tuned(program: Path, budget: str | None, directory: Path) -> Case:
    target = directory / "case.json"
    command = [sys.executable, "-m", "flatout", "tune", "-q", "--json", str(target)]
    command += ["--budget", budget] if budget else []
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([*command, str(program)], cwd=directory, env=environment, capture_output=True, text=True)
    return flatout.load(target) if target.exists() else Case("tune", verdict=done.stderr[-300:])


def by_hand(one: Pattern, pairs: int, directory: Path) -> str:
    """Median, smallest and largest ratio of the pairs."""
    if one.expert is None or pairs < 1:
        return "–"
    watchdog = Watchdog()
    try:
        ratios = []
        for number in range(pairs):
            seconds = []
            for side, program in enumerate((one.path, one.expert)):
                place = directory / f"{number}-{side}"
                run = whole_run.run(Launch((sys.executable, str(program))), place, watchdog, LIMIT)
                if run.exit_code != 0:
                    return f"failed: {run.last_line}"
                seconds.append(run.seconds - run.importing)
            ratios.append(seconds[0] / seconds[1])
    finally:
        watchdog.close()
    return f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"


def told(found: Interval | None) -> str:
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]" if found else "–"


if __name__ == "__main__":
    main()
