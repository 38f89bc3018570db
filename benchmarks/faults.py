"""The fault campaign: kills at random moments, a full disk, too little memory, a clock that jumps, ten million steps.

    python benchmarks/faults.py                 # 200 kills; hours
    python benchmarks/faults.py --moments 8     # a look at each fault; minutes

After each fault: nothing that was complete is lost, nothing is left behind (processes, temporary files, locks, changed
files), the same command works again, and memory is bounded. Kills hit the coordinator, a trial or the fork server
(whatever carries the mark of the command). Prints a table, and what was wrong.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from _fault_places import Place

SHARES = {"run": 0.3, "tune": 0.3, "convert": 0.35, "optimize": 0.05}
"""Of the moments; those of optimize import TensorFlow, and take a minute each."""
CHAIN = {"tune": 30}
"""Kills of one tune, each in the process that goes on from the last, before it may come to its end."""
LONGEST = 900.0
CLOCK = """
import random, runpy, sys, time
real, generator = time.time, random.Random({seed})
time.time = lambda: real() + generator.choice((0, 0, -86400, 86400, 3.15e7, -3.15e8))
sys.argv[0] = "flatout"
runpy.run_module("flatout", run_name="__main__")
"""


@dataclass
class Row:
    fault: str
    command: str
    tried: int = 0
    hit: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    wrong: list[str] = field(default_factory=list)

    def check(self, complaints: list[str]) -> None:
        self.wrong += complaints

    def show(self) -> str:
        hit = ", ".join(f"{name} {count}" for name, count in sorted(self.hit.items()))
        return f"{self.fault:14s} {self.command:9s} {self.tried:6d} {self.resumed:8d} {len(self.wrong):6d}   {hit}"


def main() -> None:
    options = _options()
    generator = random.Random(options.seed)
    rows: list[Row] = []
    for name, fault in FAULTS.items():
        if name not in options.faults:
            continue
        for command in options.commands if name != "steps" else ["recorder"]:
            with tempfile.TemporaryDirectory(prefix="faults-") as directory:
                row = Row(name, command)
                try:
                    fault(row, Path(directory), generator, max(1, round(options.moments * SHARES.get(command, 0.1))))
                except KeyboardInterrupt:
                    print("interrupted: what was done so far", flush=True)
                    options.faults, options.commands[:] = [], []
                except Exception as error:
                    row.wrong.append(f"the campaign itself failed: {type(error).__name__}: {error}")
            rows.append(row)
            print(row.show(), flush=True)
            for text in row.wrong[:10]:
                print(f"    {text}", flush=True)
    print(f"\n{'fault':14s} {'command':9s} {'faults':>6s} {'worked':>8s} {'wrong':>6s}   hit")
    for row in rows:
        print(row.show())
    sys.exit(1 if any(row.wrong for row in rows) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=200, help="kills in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", nargs="+", default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    return parser.parse_args()


# ── kills ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def kill(row: Row, directory: Path, generator: random.Random, moments: int) -> None:
    """Kills, each in a process of the command that goes on from the one before, until it comes to its end."""
    whole = _uninterrupted(row, directory)
    while row.tried < moments and len(row.wrong) < 20:
        place = Place(directory / f"at-{row.tried}", row.command).make()
        again = False
        for _ in range(CHAIN.get(row.command, 6)):
            if row.tried >= moments:
                break
            known = place.trials()
            running = place.start(again)
            again = True
            victim = _strike(place, running, generator, whole.seconds)
            if victim is None:
                break  # it was faster
            row.tried += 1
            row.hit[victim] += 1
            row.check([f"after a kill of the {victim}: {text}" for text in place.complaints()])
            print(f"{row.tried}/{moments} {row.command}: {victim}; {len(row.wrong)} wrong", file=sys.stderr, flush=True)
            if "Traceback" in place.told() and victim == "coordinator":
                row.wrong.append(f"a traceback: {place.told()[-300:]}")
            lost = [trial for trial in known if trial not in place.trials()]
            row.check([f"a finished trial was lost: {trial['levers']}" for trial in lost])
        known = place.trials()
        row.check(_finish(row, place, again, known, whole))
        shutil.rmtree(place.directory, ignore_errors=True)


@dataclass(frozen=True)
class Whole:
    """What the command makes and takes where nothing happens to it."""

    seconds: float
    files: dict[str, bytes]


def _uninterrupted(row: Row, directory: Path) -> Whole:
    if row.command == "tune":
        return Whole(LONGEST, {})  # its moments lie within the first seconds of each process, and it takes minutes
    place = Place(directory / "whole", row.command).make()
    began = time.monotonic()
    row.check(_finish(row, place, False, [], None))
    row.resumed = 0
    return Whole(time.monotonic() - began, _shards(place))


def _strike(place: Place, running: subprocess.Popen[bytes], generator: random.Random, seconds: float) -> str | None:
    """Kill something of it at a random moment; what it was, or None where the command had ended before."""
    at = time.monotonic() + generator.uniform(0.0, min(seconds, 25.0))
    while time.monotonic() < at and running.poll() is None:
        time.sleep(0.01)
    if running.poll() is not None:
        return None
    others = {pid: name for pid, name in place.processes().items() if pid != running.pid and "watchdog" not in name}
    victim = generator.choice([running.pid, running.pid, *others])
    name = "coordinator" if victim == running.pid else _kind(others[victim])
    with _gone():
        os.kill(victim, signal.SIGKILL)
    if victim != running.pid:
        try:
            running.wait(generator.uniform(0.5, 5.0))  # it should live on without it
            return name
        except subprocess.TimeoutExpired:
            name = f"{name}, then coordinator"
            running.kill()
    running.wait()
    return name


class _gone:  # noqa: N801
    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is ProcessLookupError


def _kind(command: str) -> str:
    if "fork_server" in command or "worker_main" in command:
        return "fork server or worker"
    return "trial" if "train.py" in command or not command else "helper"


def _finish(row: Row, place: Place, again: bool, known: list[dict[str, object]], whole: Whole | None) -> list[str]:
    """Let the command come to its end: it must work, keep what was finished, and leave nothing behind."""
    running = place.start(again)
    try:
        code = running.wait(LONGEST)
    except subprocess.TimeoutExpired:
        running.kill()
        return ["the command did not come to its end", *place.complaints()]
    wrong = place.complaints()
    if code != 0:
        wrong.append(f"it ended with {code}: {place.told()[-300:]}")
    row.resumed += code == 0
    final = place.trials()
    wrong += [f"a finished trial was lost: {trial['levers']}" for trial in known if trial not in final]
    if whole is not None and whole.files and _shards(place) != whole.files:
        wrong.append("the shards differ from those of an uninterrupted conversion")
    if left := place.temporary_files():
        wrong.append(f"temporary files: {', '.join(left[:3])} ({len(left)})")
    return wrong


def _shards(place: Place) -> dict[str, bytes]:
    folder = place.work / "shards"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def disk(row: Row, directory: Path, generator: random.Random, moments: int) -> None:
    """The disk is full at several sizes; with more space the same command works."""
    for size in (16, 64, 256, 1024, 4096)[: max(2, moments // 4)]:
        mount = directory / f"disk-{size}"
        mount.mkdir()
        place = Place(mount / "place", row.command)
        source = Place(directory / f"source-{size}", row.command, mark=place.mark).make()
        needed = sum(path.stat().st_size + 4096 for path in source.directory.rglob("*")) // 1024 + 64
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={needed + size}k", "tmpfs", mount]).returncode:
            row.wrong.append("no small file system can be mounted here")
            return
        try:
            shutil.copytree(source.directory, place.directory)
            place.users_files = source.users_files
            shutil.rmtree(place.temporary)
            place.temporary.mkdir()
            running = place.start()
            code = _wait(running)
            row.tried += 1
            row.hit[f"exit {code}"] += 1
            row.check([f"with {size} KiB: {text}" for text in [*_plainly(place), *place.complaints()]])
            subprocess.run(["mount", "-o", "remount,size=512m", mount], check=True)
            row.check([f"with space again: {text}" for text in _finish(row, place, True, place.trials(), None)])
        finally:
            subprocess.run(["umount", "-l", mount], check=False)


def memory(row: Row, directory: Path, generator: random.Random, moments: int) -> None:
    """An address space that is too small: an error in words, or the result."""
    for size in (128, 192, 256, 384, 512, 1024)[: max(2, moments // 4)]:
        place = Place(directory / f"memory-{size}", row.command).make()
        code = _wait(place.start(prefix=("prlimit", f"--as={size << 20}")))
        row.tried += 1
        row.hit[f"exit {code}"] += 1
        wrong = place.complaints()
        # Where the interpreter itself or numpy does not come up, their own message is all there can be.
        if "Traceback" in place.told() and "flatout/cli" in place.told() and "import" not in place.told():
            wrong.append(f"a traceback: {place.told()[-300:]}")
        row.check([f"with {size} MiB: {text}" for text in wrong])
        if size == 128:
            row.check(_finish(row, place, True, place.trials(), None))
        shutil.rmtree(place.directory, ignore_errors=True)


def clock(row: Row, directory: Path, generator: random.Random, moments: int) -> None:
    """The wall clock of flatout's own process jumps by days and years."""
    for _ in range(max(1, moments // 10)):
        place = Place(directory / f"clock-{row.tried}", row.command).make()
        words = place.command()
        program = CLOCK.format(seed=generator.randrange(1000))
        running = subprocess.Popen(
            [words[0], "-c", program, *words[3:]], cwd=place.work, env=place.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=(place.directory / "stderr.txt").open("wb"),
        )  # fmt: skip
        code = _wait(running)
        row.tried += 1
        row.hit[f"exit {code}"] += 1
        row.resumed += code == 0
        row.check(
            [*_plainly(place), *place.complaints(), *([] if code == 0 else [f"exit {code}: {place.told()[-300:]}"])]
        )
        shutil.rmtree(place.directory, ignore_errors=True)


def _wait(running: subprocess.Popen[bytes]) -> int | str:
    try:
        return running.wait(LONGEST)
    except subprocess.TimeoutExpired:
        running.kill()
        return "none"


def _plainly(place: Place) -> list[str]:
    told = place.told()
    return [f"a traceback: {told[-400:]}"] if "Traceback (most recent call last)" in told else []


# ── ten million steps ────────────────────────────────────────────────────────────────────────────────────────────────


def steps(row: Row, directory: Path, generator: random.Random, moments: int) -> None:
    """The recorder and the follower of steps, with a fact for each step, as a `fit` for every batch has."""
    from flatout.observe.observer import Observer
    from flatout.observe.reading import recording
    from flatout.observe.recorder import Recorder
    from flatout.observe.settings import ObserveSettings

    count = 10_000_000 if moments >= 4 else 1_000_000
    made = Recorder(str(directory))
    observer = Observer(made, ObserveSettings(trace=False, sample=False))
    stream = observer.streams.make("fit", "steps", "steps")
    before = _peak_mb()
    halfway, began = 0.0, time.perf_counter()
    for number in range(count):
        at = began + 1e-3 * number  # steps of a millisecond
        made.fact("epoch", number=0, at=at)
        observer.ticks.tick(stream, at, at + 9e-4)
        if number == count // 2:
            halfway = _peak_mb()
    observer.finish()
    size = sum(path.stat().st_size for path in directory.iterdir()) / 1e6
    found = recording.load(directory)
    row.tried, row.resumed = 1, int(len(found.ticks) > 0)
    row.hit[
        f"{count:,} steps, {size:.0f} MB on disk, {halfway - before:.0f} MB more at half, {_peak_mb() - before:.0f} MB"
    ] = 1
    if size > 64 or _peak_mb() - before > 700:
        row.wrong.append("the recording is not bounded")
    if stream.count != count:
        row.wrong.append(f"{stream.count:,} steps were counted")


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


FAULTS: dict[str, Callable[[Row, Path, random.Random, int], None]] = {
    "kill": kill,
    "disk": disk,
    "memory": memory,
    "clock": clock,
    "steps": steps,
}

if __name__ == "__main__":
    main()
