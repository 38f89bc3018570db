"""What the tree of the run costs: the same program from start to end, bare, observed without the tree, and with it.

    python benchmarks/run_overhead.py [--bar] [--in-turns] [--keep FILE] [NAME …]

A round runs a program of tests/programs/whole_run once in each way, in shuffled order; `bare again` shows what the
method itself cannot tell apart. The trace of some steps is left out: `benchmarks/overhead.py` measures it. Memory and
seconds of the processors are the kernel's own account of the process (`wait4`). The wall clock is to be measured on a
machine that does nothing else; seconds of the processors tell something on a busy one too. Bars: at most 1 % of the run
and 50 MB, with the tree against without. ROUNDS sets how many rounds (9).

Two runs of a program may differ by more than the bar. `--in-turns` measures a process that makes many more steps, in
which the tree is switched on and off every half second (`_tree_in_turns.py`): by how much steps are longer with it, and
what share of such a run the thread takes that looks at the stack, by its own clock, imports and all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from flatout.measure.interval import paired_ratio
from flatout.observe.settings import ObserveSettings
from flatout.trial.launcher import environment_for
from flatout.trial.settings import ChildSettings

PROGRAMS = Path(__file__).resolve().parent.parent / "tests" / "programs" / "whole_run"
NAMES = ("good_fit", "good_loop", "good_session")
ROUNDS = int(os.environ.get("ROUNDS", "9"))
FEWEST = 6
"""Rounds from which on there is an interval."""
SIDES: dict[str, bool | None] = {"bare": None, "bare again": None, "observed": False, "with the tree": True}
"""Whether the run is watched; None: the program is not observed at all."""
BAR = ("observed", "with the tree")
AGAINST = {"bare again": "bare", "observed": "bare", "with the tree": "observed"}


Round = dict[str, tuple[float, float, float]]
"""Of each side: seconds from start to end, those of the processors, and the most memory that was resident, in MB."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--bar", action="store_true", help="only what the bar compares: with the tree and without")
    parser.add_argument("--in-turns", action="store_true", help="steps of one process, with the tree and without")
    parser.add_argument("--keep", type=Path, help="file to which each round is added; the table is of all in it")
    arguments = parser.parse_args()
    if arguments.in_turns:
        print(
            "steps of one process with the tree against without, in turns of half a second; the bar is 1 %", flush=True
        )
        for name in arguments.names:
            print(f"{name}: {in_turns(PROGRAMS / f'{name}.py')}", flush=True)
        return
    print(f"whole runs, {ROUNDS} rounds in shuffled order; the last line of each is the bar: 1 % and 50 MB", flush=True)
    for name in arguments.names:
        rounds: list[Round] = []
        for _ in range(ROUNDS):
            wanted = BAR if arguments.bar else tuple(SIDES)
            sides = random.sample(wanted, len(wanted))
            rounds.append({side: run(PROGRAMS / f"{name}.py", SIDES[side]) for side in sides})
            if arguments.keep is not None:
                with arguments.keep.open("a") as file:
                    file.write(json.dumps([name, rounds[-1]]) + "\n")
        if arguments.keep is not None:
            kept = map(json.loads, arguments.keep.read_text().splitlines())
            rounds = [one for of, one in kept if of == name]
        table(name, rounds)


def table(name: str, rounds: list[Round]) -> None:
    seconds, processors, memory = (
        {side: [one[side][number] for one in rounds if side in one] for side in SIDES} for number in range(3)
    )
    took, used = statistics.median(seconds["observed"]), statistics.median(processors["observed"])
    print(f"{name}: {took:.1f} s, {used:.1f} s of the processors, {len(rounds)} rounds", flush=True)
    for side, beside in AGAINST.items():
        if len(seconds[side]) != len(seconds[beside]) or not seconds[side]:
            continue
        more = statistics.median(a - b for a, b in zip(memory[side], memory[beside], strict=True))
        wall, cpu = told(seconds[side], seconds[beside]), told(processors[side], processors[beside])
        print(f"    {side:14} against {beside:10} {wall:26} processors {cpu:26} {more:+.0f} MB", flush=True)


def told(ours: list[float], theirs: list[float]) -> str:
    """`+0.4% [-0.3%, +1.0%]`; the median alone of rounds that are too few for an interval."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True)) - 1
    if len(ours) < FEWEST:
        return f"{ratio:+.1%}"
    found = paired_ratio(ours, theirs)
    return f"{ratio:+.1%} [{found.low - 1:+.1%}, {found.high - 1:+.1%}]"


def in_turns(program: Path) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "found.json"
        driver = [sys.executable, str(Path(__file__).with_name("_tree_in_turns.py")), str(found), str(program)]
        ended(driver, Path(scratch), watched=True)
        result = json.loads(found.read_text())
    pairs, taken = result["pairs"], result["sampler"] / result["seconds"]
    wall, processors = ([[side[kind] for side in pair] for pair in pairs] for kind in (0, 1))
    more = f"steps of {statistics.median(off for _, off in wall):.2f} ms {in_pairs(wall)}, processors"
    told_in = f"{in_pairs(processors)} in {len(pairs)} pairs of turns"
    return f"{more} {told_in}; the thread that looks: {taken:.2%} of {result['seconds']:.0f} s"


def in_pairs(pairs: list[list[float]]) -> str:
    ours, theirs = (list(side) for side in zip(*pairs, strict=True))
    return told(ours, theirs)


def run(program: Path, watched: bool | None) -> tuple[float, float, float]:
    """Seconds from start to end, those of the processors, and the most memory that was resident, in MB."""
    with tempfile.TemporaryDirectory() as scratch:
        return ended([sys.executable, str(program)], Path(scratch), watched)


def ended(command: list[str], scratch: Path, watched: bool | None) -> tuple[float, float, float]:
    """As `run`, of this command."""
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if watched is not None:
        recording = scratch / "recording"
        recording.mkdir()
        settings = ChildSettings(str(recording), ObserveSettings(trace=False, sample=watched))
        variables = environment_for(settings, variables)
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=scratch, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[-1]} ended with {process.returncode}")
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


if __name__ == "__main__":
    main()
