"""How often the nominal 95 % intervals of flatout's claims hold the truth, and how often it claims what is not there.

The real races, confirmations, checks and gates run, on contestants whose clock is made up (`_simulated.py`): the truth
is known. Nothing imports TensorFlow. Bars: 93 % coverage in every cell, 1 % false claims of a tune in which nothing
helps (3 % between processes), 5 % false alarms of a gate with ten programs. `docs/method.md` explains the tables.

    python benchmarks/coverage.py [tune] [runs] [null] [optimize] [accuracy] [gate]
    python benchmarks/coverage.py --repetitions 400      for the tables of docs/method.md
    python benchmarks/coverage.py --quick                a look
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from _simulated import Noise, SimulatedTune, only_time
from _simulated_optimize import accuracy_check, claim

from flatout.compare.comparison import Comparison, compare
from flatout.compare.together import judge_together
from flatout.measure.race import status_of
from flatout.model.case import Interval
from flatout.store.run_summary import Run
from flatout.trial import whole_run
from flatout.tune.whole_runs import measure

BLOCKS = (0.003, 0.01, 0.03)
PROCESSES = (0.0, 0.01, 0.02, 0.03, 0.05)
RATIOS = (1.0, 1.05, 1.3, 3.0)
REPETITIONS = 300
QUICK = 40
NOTHING_HELPS = ("xla", "cache", "prefetch", "parallel-map", "reuse-functions", "no-debug", "no-run-eagerly",
                 "caller-thread", "autotune", "direct-fit", "cancel-transposes", "extract-step")  # fmt: skip
"""The levers of a tune in which nothing helps."""

WHOLE_RUNS = (0.01, 0.02, 0.04, 0.06, 0.08)
"""Standard deviation of the logarithm of a run's time."""
SECONDS = (20.0, 26.0, 40.0)
"""Of a run of the original; the changed one takes 20."""

SAMPLES = (100, 500, 2000)
DROPS = (0.0, 0.005, 0.01, 0.02)
PROGRAMS = 10
RUN_NOISE = (0.01, 0.03, 0.06)
RUNS = (1, 2, 3, 6)
SLOWER = (0.1, 0.2, 0.4)

Cell = tuple[float, ...]
Work = Callable[[Cell, int], "Counts"]
Each = Callable[[Work, Sequence[Cell], int], list["Counts"]]
"""Does the work for each cell."""


@dataclass
class Counts:
    tried: int = 0
    covered: int = 0
    claimed: int = 0
    wrong: int = 0
    """Claimed, and the interval does not hold the truth."""
    nominated: int = 0
    bias: float = 0.0
    """Mean of the logarithm of what is published over the truth."""

    def add(self, interval: Interval | None, truth: float, claimed: bool) -> None:
        held = interval is not None and interval.low <= truth <= interval.high
        self.tried += 1
        self.covered += held
        self.claimed += claimed
        self.wrong += claimed and not held


def tune_cell(cell: Cell, repetitions: int) -> Counts:
    """The interval of the set to be claimed, whether it is claimed in the end or not."""
    block, process, ratio = cell
    found = Counts()
    for number in range(repetitions):
        # One lever; or three, of which one is a passenger: then the set to be claimed is chosen among several.
        levers = {"xla": ratio**0.7, "cache": ratio**0.3, "prefetch": 1.0} if number % 2 else {"xla": ratio}
        tune = SimulatedTune(Noise(block, process, random.Random(f"tune {cell} {number}")), levers)
        with only_time():
            trial, claimed = tune.confirm(list(levers))
        found.add(trial.speedup, tune.truth(trial.levers), claimed)
    return found


def runs_cell(cell: Cell, repetitions: int) -> Counts:
    """The ratio of whole runs; the interval holds where whoever makes three further pairs finds their mean in it."""
    noise, seconds = cell
    found = Counts()
    for number in range(repetitions):
        chance = random.Random(f"runs {cell} {number}")

        def run(changed: bool, _: float, chance: random.Random = chance) -> whole_run.Run:
            return whole_run.Run((20.0 if changed else seconds) * chance.lognormvariate(0.0, noise), 0, 100)

        told = measure(run, None, time.monotonic() + 3600, patched=True)
        pairs = [math.log(run(False, 0).seconds / run(True, 0).seconds) for _ in range(3)]
        claimed = told.pairs > 1 and told.speedup is not None and told.speedup.low > 1
        found.add(told.speedup, math.exp(sum(pairs) / 3), claimed)
        found.nominated += told.pairs
    return found


def null_cell(cell: Cell, repetitions: int) -> Counts:
    """A whole tune in which nothing helps: exploration, then confirmation of what looked good."""
    block, process = cell
    found = Counts()
    for number in range(repetitions):
        noise = Noise(block, process, random.Random(f"null {cell} {number}"))
        tune = SimulatedTune(noise, dict.fromkeys(NOTHING_HELPS, 1.0))
        with only_time():
            winners = tune.explore()
            found.claimed += bool(winners) and tune.confirm(winners)[1]
        found.tried += 1
        found.nominated += bool(winners)
    return found


def optimize_cell(cell: Cell, repetitions: int) -> Counts:
    """The fastest of three that are all as fast: what is published of it."""
    block, process, ratio = cell
    found = Counts()
    for number in range(repetitions):
        published = claim(Noise(block, process, random.Random(f"optimize {cell} {number}")), ratio)
        found.add(published, ratio, status_of(published) == "won")
        found.bias += math.log(published.ratio / ratio) / repetitions
    return found


def accuracy_cell(cell: Cell, repetitions: int) -> Counts:
    """`claimed` counts what is accepted; half of the drop is one way, in the other half answers also get better."""
    samples, drop = cell
    found = Counts()
    chance = np.random.default_rng([int(samples), int(1000 * drop)])
    for number in range(repetitions):
        found.tried += 1
        found.claimed += not accuracy_check(chance, int(samples), drop, 0.01 * (number % 2)).problem
    return found


def gate_cell(cell: Cell, repetitions: int) -> Counts:
    """Builds of ten programs; `slower`: by how much one of them is, 0 for none. `covered` counts alarms for that one,
    `claimed` those for any other."""
    noise, runs, slower = cell
    found = Counts()
    for number in range(repetitions):
        chance = random.Random(f"gate {cell} {number}")
        judged = judge_together([compared(chance, noise, int(runs), slower * (not n)) for n in range(PROGRAMS)])
        found.tried += 1
        found.covered += judged[0].regressed and slower > 0
        found.claimed += any(one.regressed for one in judged[slower > 0 :])
    return found


def compared(chance: random.Random, noise: float, runs: int, slower: float) -> Comparison:
    before, after = (
        [Run(str(n), "run", "train.py", steps=100, median_ms=ms * chance.lognormvariate(0.0, noise), error=0.003)
         for n in range(runs)]
        for ms in (10.0, 10.0 * (1 + slower))
    )  # fmt: skip
    return compare(before, after, max_regression=0.05)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tune_table(each: Each, repetitions: int) -> bool:
    print("tune: coverage of the nominal 95 % interval of what is to be claimed (claimed, claimed and wrong)")
    print("block  process  " + "".join(f"{f'{ratio:g}×':>22s}" for ratio in RATIOS))
    grid = list(itertools.product(BLOCKS, PROCESSES, RATIOS))
    found = dict(zip(grid, each(tune_cell, grid, repetitions), strict=True))
    for block, process in itertools.product(BLOCKS, PROCESSES):
        row = [found[block, process, ratio] for ratio in RATIOS]
        texts = (f"{share(c.covered, c)} ({share(c.claimed, c)}, {share(c.wrong, c)})" for c in row)
        print(f"{block:5.1%}  {process:7.0%}  " + "".join(f"{text:>22s}" for text in texts))
    least = min(c.covered / c.tried for c in found.values())
    print(f"least: {least:.1%} of {repetitions} (bar 93 %)\n")
    return least >= 0.93


def runs_table(each: Each, repetitions: int) -> bool:
    print("whole runs: how often three further pairs lie in the interval (pairs that were made, claimed)")
    print("a run's noise  " + "".join(f"{f'{seconds / 20:g}×':>22s}" for seconds in SECONDS))
    cells = [(noise, seconds) for noise in WHOLE_RUNS for seconds in SECONDS]
    least = 1.0
    counts = iter(each(runs_cell, cells, repetitions))
    for noise in WHOLE_RUNS:
        row = [next(counts) for _ in SECONDS]
        texts = [f"{share(c.covered, c)} ({c.nominated / c.tried:.1f}, {share(c.claimed, c)})" for c in row]
        print(f"{noise:13.0%}  " + "".join(f"{text:>22s}" for text in texts))
        least = min([least, *(c.covered / c.tried for c in row if noise <= 0.06)])
    print(f"least up to 6 %: {least:.1%} of {repetitions} (bar 93 %)\n")
    return least >= 0.93


def null_table(each: Each, repetitions: int) -> bool:
    repetitions *= 2
    print(f"tune: {len(NOTHING_HELPS)} levers of which none helps, {repetitions} tunes each")
    print("block  process  looked good  claimed")
    grid = [(block, process) for block in BLOCKS for process in PROCESSES]
    found = dict(zip(grid, each(null_cell, grid, repetitions), strict=True))
    for (block, process), c in found.items():
        print(f"{block:5.1%}  {process:7.0%}  {share(c.nominated, c):>11s}  {c.claimed / c.tried:7.2%}")
    at_three = max(c.claimed / c.tried for (_, process), c in found.items() if process <= 0.03)
    print(f"most up to 3 % between processes: {at_three:.2%} (bar 1 %)\n")
    return at_three <= 0.01


def optimize_table(each: Each, repetitions: int) -> bool:
    print("optimize: coverage of the nominal 95 % interval of the fastest of three equal finalists (bias of its ratio)")
    print("block  process  " + "".join(f"{f'{ratio:g}×':>16s}" for ratio in (1.0, 1.3)))
    grid = list(itertools.product(BLOCKS, PROCESSES, (1.0, 1.3)))
    found = dict(zip(grid, each(optimize_cell, grid, repetitions), strict=True))
    for block, process in itertools.product(BLOCKS, PROCESSES):
        row = [found[block, process, ratio] for ratio in (1.0, 1.3)]
        texts = (f"{share(c.covered, c)} ({100 * c.bias:+.2f} %)" for c in row)
        print(f"{block:5.1%}  {process:7.0%}  " + "".join(f"{text:>16s}" for text in texts))
    least = min(c.covered / c.tried for c in found.values())
    print(f"least: {least:.1%} of {repetitions} (bar 93 %)\n")
    return least >= 0.93


def accuracy_table(each: Each, repetitions: int) -> bool:
    repetitions *= 2
    print(f"accuracy: accepted, of {repetitions}, where a drop of 1 % is allowed")
    print("samples   true drop: " + "  ".join(f"{drop:6.1%}" for drop in DROPS))
    grid = list(itertools.product(SAMPLES, DROPS))
    found = dict(zip(grid, each(accuracy_cell, grid, repetitions), strict=True))
    for samples in SAMPLES:
        print(
            f"{samples:7d}              "
            + "  ".join(f"{share(found[samples, d].claimed, found[samples, d]):>6s}" for d in DROPS)
        )
    most = max(found[samples, 0.02].claimed / repetitions for samples in SAMPLES)
    print(f"accepted although 2 % worse: {most:.1%} at most (bar 5 %)\n")
    return most <= 0.05


def gate_table(each: Each, repetitions: int) -> bool:
    print(f"gate: builds of {PROGRAMS} programs, {repetitions} each; threshold 5 %")
    print("run noise  runs a side  false alarms   found: " + "  ".join(f"{s:.0%} slower" for s in SLOWER))
    grid = list(itertools.product(RUN_NOISE, RUNS, (0.0, *SLOWER)))
    found = dict(zip(grid, each(gate_cell, grid, repetitions), strict=True))
    for noise, runs in itertools.product(RUN_NOISE, RUNS):
        alarms = found[noise, runs, 0.0]
        power = "  ".join(f"{share(found[noise, runs, s].covered, alarms):>10s}" for s in SLOWER)
        print(f"{noise:9.0%}  {runs:11d}  {share(alarms.claimed, alarms):>12s}          {power}")
    most = max(c.claimed / c.tried for (_, _, slower), c in found.items() if not slower)
    print(f"most false alarms: {most:.1%} (bar 5 %)\n")
    return most <= 0.05


def share(count: int, of: Counts) -> str:
    return f"{100 * count / max(of.tried, 1):.1f}"


TABLES = {
    "tune": tune_table,
    "runs": runs_table,
    "null": null_table,
    "optimize": optimize_table,
    "accuracy": accuracy_table,
    "gate": gate_table,
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tables", nargs="*", help="all of them unless named")
    options.add_argument("--repetitions", type=int, default=REPETITIONS)
    options.add_argument("--quick", action="store_true", help=f"{QUICK} repetitions: a look, no proof")
    chosen = options.parse_args()
    began, held = time.monotonic(), []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:

        def each(work: Work, cells: Sequence[Cell], repetitions: int) -> list[Counts]:
            return list(pool.map(work, cells, [repetitions] * len(cells)))

        for name in chosen.tables or TABLES:
            held.append(TABLES[name](each, QUICK if chosen.quick else chosen.repetitions))
    print(f"{time.monotonic() - began:.0f} s; {'all bars are held' if all(held) else 'a bar is not held'}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
