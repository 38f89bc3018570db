"""What `flatout tune` finds by itself beside what an expert's rewrite gives: both against the slow program, in turns.

    scripts/bench tune                       all pairs of tests/programs
    python benchmarks/tune.py tiny_fit …     some of them

Each slow program is tuned with the default levers. Then the slow program (twice), the same with the levers that won,
and the expert's rewrite live side by side and run in shuffled rounds; the last column is flatout's speedup over the
expert's. Bar: at least 0.9 wherever a lever or an edit can express the cure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flatout
from flatout.case import Case
from flatout.tune.child_process import Launch
from flatout.tune.lineup import with_levers
from flatout.tune.nursery import Nurseries
from flatout.tune.race import Contestant, Race
from flatout.tune.warden import Warden

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import manifest  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "12"))
BUDGET = os.environ.get("BUDGET", "4m")


def main() -> None:
    print(f"{'program':26s} {'tuning':>7s}  {'flatout':24s} {'expert':24s} {'ratio':>6s}  levers")
    for slow, expert in manifest.pairs():
        if sys.argv[1:] and slow.name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            print(row(slow.name, slow.path, expert.path, Path(directory)), flush=True)


def row(name: str, slow: Path, expert: Path, directory: Path) -> str:
    began = time.monotonic()
    case = tuned(slow, directory)
    levers = case.tuned
    seconds = time.monotonic() - began
    found = compare(slow, expert, case, directory)
    theirs = found.get("expert")
    ours = found.get("flatout") if levers else None
    ratio = (ours[0] if ours else 1.0) / theirs[0] if theirs else float("nan")
    return (
        f"{name:26s} {seconds:6.0f}s  {told(ours):24s} {told(theirs):24s} {ratio:6.2f}  "
        f"{' + '.join(levers) or case.verdict}"
    )


def tuned(program: Path, directory: Path) -> Case:
    target = directory / "case.json"
    command = [sys.executable, "-m", "flatout", "tune", "-q", "--budget", BUDGET, "--json", str(target), str(program)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    return flatout.load(target) if target.exists() else Case("tune", verdict=done.stderr[-300:])


def compare(slow: Path, expert: Path, case: Case, directory: Path) -> dict[str, tuple[float, float, float]]:
    warden = Warden()
    launch = Launch((sys.executable, str(slow)))
    baselines = [Contestant(launch, "slow"), Contestant(launch, "slow again")]
    contestants = {"expert": Contestant(Launch((sys.executable, str(expert))), "expert")}
    if case.tuned:
        contestants["flatout"] = with_levers(launch, case, case.tuned, directory / "edited")
    nurseries = Nurseries(launch.command, warden, directory)
    race = Race(directory / "compared", warden, baselines, deadline=time.monotonic() + 300, nurseries=nurseries)
    try:
        race.start([*baselines, *contestants.values()])
        race.run(list(contestants.values()), len(contestants), ROUNDS)
        verdicts = {title: race.verdict(one, len(contestants)) for title, one in contestants.items()}
    finally:
        race.close()
        nurseries.close()
        warden.close()
    return {title: (v.speedup.ratio, v.speedup.low, v.speedup.high) for title, v in verdicts.items() if v is not None}


def told(found: tuple[float, float, float] | None) -> str:
    return f"{found[0]:.2f} [{found[1]:.2f}, {found[2]:.2f}]" if found else "–"


if __name__ == "__main__":
    main()
