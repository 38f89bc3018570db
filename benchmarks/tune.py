"""What `flatout tune` finds by itself beside what an expert's rewrite gives: both against the slow program, in turns.

    scripts/bench tune                       all pairs of tests/programs
    python benchmarks/tune.py tiny_fit …     some of them

Each slow program is tuned with the default levers. Then the slow program (twice), the same with the patch that was
written (with the levers that won, where there is none), and the expert's rewrite live side by side and run in shuffled
rounds. The ratio is flatout's speedup over the expert's, measured in the same way between these two: their steps are
short, and beside those of the slow program few of them fit into a round. Bar: at least 0.9 wherever a lever or an edit
can express the cure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flatout
from flatout.measure.race import Rules, TimeLimit
from flatout.model.case import Case, Interval
from flatout.process.watchdog import Watchdog
from flatout.trial import patch
from flatout.trial.child_process import Launch
from flatout.trial.fork_servers import ForkServers
from flatout.tune.contestant import Contestant
from flatout.tune.race import Race
from flatout.tune.scout import ranked
from flatout.tune.starter import Starter
from flatout.tune.variants import patched, with_levers

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "programs"))
import manifest  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "16"))
BUDGET = os.environ.get("BUDGET", "4m")


def main() -> None:
    print(f"{'program':22s} {'tuning':>6s}  {'flatout':22s} {'expert':22s} {'ratio':20s} levers")
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
    times = f"{told(found.get('flatout')):22s} {told(found.get('expert')):22s} {told(found.get('ratio')):20s}"
    return f"{name:22s} {seconds:5.0f}s  {times} {' + '.join(levers) or case.verdict}"


def tuned(program: Path, directory: Path) -> Case:
    target = directory / "case.json"
    command = [sys.executable, "-m", "flatout", "tune", "-q", "--budget", BUDGET, "--json", str(target), str(program)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    return flatout.load(target) if target.exists() else Case("tune", verdict=done.stderr[-300:])


def compare(slow: Path, expert: Path, case: Case, directory: Path) -> dict[str, Interval]:
    """The speedups over the slow program; then flatout's program against the expert's, step for step."""
    other_phases = ranked(Launch(()), case).not_steps
    plain, theirs = (Launch((sys.executable, str(file)), not_steps=other_phases) for file in (slow, expert))

    def ours() -> dict[str, Contestant]:
        if not case.tuned:
            return {}
        if not case.patch:
            return {"flatout": with_levers(plain, case, case.tuned, directory / "edited")}
        one = patched(plain, patch.make(case, case.tuned), case.tuned, directory / "patched")
        return {} if one is None else {"flatout": one}

    found = raced(plain, {**ours(), "expert": Contestant(theirs, "expert")}, directory / "over the slow one")
    if "flatout" in found:
        beside = raced(theirs, ours(), directory / "over the expert's")
        found |= {"ratio": beside["flatout"]} if beside else {}
    elif "expert" in found and found["expert"].low > 0:
        their = found["expert"]
        found["ratio"] = Interval(1 / their.ratio, 1 / their.high, 1 / their.low)
    return found


def raced(baseline: Launch, contestants: dict[str, Contestant], directory: Path) -> dict[str, Interval]:
    """How many times as fast as the baseline each is."""
    watchdog = Watchdog()
    directory.mkdir()
    baselines = [Contestant(baseline, "baseline"), Contestant(baseline, "baseline again")]
    fork_servers = ForkServers(baseline.command, watchdog, directory)
    starter = Starter(directory, watchdog, fork_servers)
    race = Race(baselines, starter)
    try:
        starter.start([*baselines, *contestants.values()])
        rules = Rules("narrow", ROUNDS, len(contestants))
        race.run(list(contestants.values()), rules, TimeLimit(time.monotonic() + 300))
        verdicts = {title: race.verdict(one) for title, one in contestants.items()}
    finally:
        race.close()
        fork_servers.close()
        watchdog.close()
    return {title: verdict.speedup for title, verdict in verdicts.items() if verdict.speedup is not None}


def told(found: Interval | None) -> str:
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]" if found else "–"


if __name__ == "__main__":
    main()
