"""Forty races of a program against itself: how often is nothing called a win or a loss?

The lever `placebo` changes nothing. Each comparison is decided as `flatout tune` decides one, without the confirmation
in fresh processes that a win needs on top. Bar: at most 5 % called a win or a loss.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from flatout.measure.race import Rules, TimeLimit
from flatout.process.watchdog import Watchdog
from flatout.trial.child_process import Launch
from flatout.trial.fork_servers import ForkServers
from flatout.tune.contestant import Contestant
from flatout.tune.race import Race
from flatout.tune.starter import Starter

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("good/keras_conv_cached.py", "good/custom_loop_traced.py", "slow/eager_step.py", "slow/tiny_fit.py")
EACH = int(os.environ.get("EACH", "10"))


def main() -> None:
    print(f"{'program':28s} {'step ms':>8s}  won  lost  undecided   ratios")
    called = compared = 0
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as directory:
            step, outcomes, ratios = race(ROOT / "tests" / "programs" / name, Path(directory))
        won, lost = outcomes.count("won"), outcomes.count("lost")
        called, compared = called + won + lost, compared + len(outcomes)
        rest = len(outcomes) - won - lost
        print(f"{name:28s} {step:8.2f}  {won:3d}  {lost:4d}  {rest:9d}   {' '.join(f'{r:.3f}' for r in ratios)}")
    print(f"{called} of {compared} called a win or a loss ({called / max(compared, 1):.1%}; bar 5 %)")


def race(program: Path, directory: Path) -> tuple[float, list[str], list[float]]:
    watchdog = Watchdog()
    launch = Launch((sys.executable, str(program)))
    baselines = [Contestant(launch, "baseline"), Contestant(launch, "baseline again")]
    others = [Contestant(Launch(launch.command, ("placebo",)), f"placebo {number}") for number in range(EACH)]
    fork_servers = ForkServers(launch.command, watchdog, directory)
    starter = Starter(directory / "race", watchdog, fork_servers)
    running = Race(baselines, starter)
    try:
        starter.start([*baselines, *others])
        running.run(others, Rules(comparisons=len(others)), TimeLimit(time.monotonic() + 600))
        verdicts = [running.verdict(one) for one in others]
        step = baselines[0].step_ms() or 0.0
    finally:
        running.close()
        fork_servers.close()
        watchdog.close()
    return step, [one.status for one in verdicts], [one.so_far for one in verdicts if one.so_far is not None]


if __name__ == "__main__":
    main()
