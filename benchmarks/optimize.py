"""flatout's pick beside each peer at its best, for five architectures at batch 1 and 16, all in one run.

    scripts/bench optimize
    python benchmarks/optimize.py --batch 1 mobilenet mlp

For every model and batch, `flatout optimize` runs as a user would start it. Each peer is set up by hand
(_optimize_convert.py), in all its precisions and numbers of threads; those that keep the accuracy within the same
budget are raced, and the fastest of each peer meets flatout's pick. Every contestant lives in a process of its own;
they take turns in shuffled rounds, and beside each peer stands how many times slower than flatout's pick it is. Two
processes of the very same thing differ by some percent for as long as they live (where their memory happens to lie), so
that a peer that comes out faster meets the pick again, in pairs of fresh processes, before it is called so.

Bar: flatout's pick is nowhere measurably slower than the fastest of the peers; 5 × over tf.function for convolutions.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _optimize_models import MODELS

from flatout.measure.interval import paired_ratio
from flatout.model.case import Interval

HERE = Path(__file__).resolve().parent
BUDGET = 0.01
SCREENING, ROUNDS = 5, 15
REMATCHES = 9
SLICE_MS = 150.0
HOPELESS = 3.0
"""Times as slow as tf.function, from where on a setting of a peer is not worth its check of the accuracy."""
CORES = len(os.sched_getaffinity(0))
CONVOLUTIONAL, OVER_FUNCTION = ("mobilenet", "resnet"), 5.0

THREADS = tuple(dict.fromkeys((str(CORES), "1")))
PEERS: dict[str, list[tuple[str, ...]]] = {
    "tf.function": [("tensorflow", "graph")],
    "XLA": [("tensorflow", "xla")],
    "LiteRT": [("litert", name, threads) for name in ("float32", "dynamic", "int8") for threads in THREADS],
    "ONNX Runtime": [("onnxruntime", name, threads) for name in ("float32", "dynamic", "int8") for threads in THREADS],
    "OpenVINO": [
        ("openvino", name, precision)
        for name in ("float32", "onnx", "float32-int8", "onnx-int8")
        for precision in ("f32", "bf16")
    ],
    "Neural Compressor": [("saved_model", "neural_compressor")],
}


@dataclass
class Contestant:
    peer: str
    words: tuple[str, ...]
    process: subprocess.Popen[str]
    accuracy: float = 0.0
    times: list[float] = field(default_factory=list)

    def ask(self, word: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            if word:
                self.process.stdin.write(word + "\n")
                self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    @property
    def typical(self) -> float:
        return sorted(self.times)[len(self.times) // 2]

    @property
    def setting(self) -> str:
        return " ".join(self.words[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--batch", type=int, action="append", help="1 and 16 by default")
    parser.add_argument("--keep", type=Path, help="work here, and use again what peers were made there")
    given = parser.parse_args()
    for name in given.models:
        if name not in MODELS:
            parser.error(f"{name} is not one of {', '.join(MODELS)}")
    missed = []
    for name in given.models or MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            directory = (given.keep or Path(temporary)) / name
            directory.mkdir(parents=True, exist_ok=True)
            script("_optimize_models.py", name, directory, unless=directory / "test.npz")
            for batch in given.batch or (1, 16):
                missed += [f"{name}, batch {batch}: {fault}" for fault in compare(name, directory, batch)]
    print("\n".join(["", *(missed or ["All bars hold."])]))
    sys.exit(bool(missed))


def compare(name: str, directory: Path, batch: int) -> list[str]:
    """Prints one table; gives the bars that were missed."""
    script("_optimize_convert.py", directory, batch, unless=directory / f"{batch}-converted")
    (directory / f"{batch}-converted").touch()
    pick, seconds, chosen = picked(directory, batch)
    with contextlib.ExitStack() as alive:
        field_ = list(enter(alive, directory, batch))
        ours = start(alive, directory, batch, "flatout", ("flatout", str(pick)), float("inf")) if pick else None
        plain = next(one for one in field_ if one.peer == "tf.function")
        race(field_, SCREENING)
        best = list(fastest(field_, plain.accuracy - BUDGET))
        leave(one for one in field_ if one not in best)
        for one in best:
            one.times.clear()
        race([*best, ours] if ours else best, ROUNDS)
        faults = report(name, batch, best, ours, f"{chosen} (found in {seconds:.0f} s)", plain)
        faster = [one for one in best if ours and paired_ratio(one.times, ours.times).high < 1]
        leave(best)
        return faults + [fault for one in faster if ours for fault in rematch(directory, batch, one, ours)]


def rematch(directory: Path, batch: int, peer: Contestant, ours: Contestant) -> list[str]:
    """The same two in pairs of fresh processes; a fault where the peer is faster still."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(REMATCHES):
        with contextlib.ExitStack() as alive:
            pair = [start(alive, directory, batch, one.peer, one.words, float("inf")) for one in (peer, ours)]
            both = [one for one in pair if one]
            race(both, SCREENING)
            for own, one in zip(times, both, strict=True):
                own.append(one.typical)
            leave(both)
    found = paired_ratio(*times)
    print(f"{peer.peer:>34s}  {min(times[0]):8.3f}  {'':8s}  {told(found):22s} {REMATCHES} pairs of fresh processes")
    return [f"{peer.peer} ({peer.setting}) is faster: {told(found)}"] if found.high < 1 else []


def picked(directory: Path, batch: int) -> tuple[Path | None, float, str]:
    """The artefact of a real run of the command, how long that took, and what it says it is."""
    artefact = directory / f"{batch}-flatout"
    case = directory / f"{batch}-case.json"
    shutil.rmtree(artefact, ignore_errors=True)
    began = time.monotonic()
    command = [sys.executable, "-m", "flatout", "optimize", str(directory / "model.keras")]
    command += ["--data", str(directory / "data.npz"), "--metric", "accuracy", "--max-drop", str(BUDGET)]
    command += ["--for", "latency", "--batch", str(batch), "--output", str(artefact), "--json", str(case), "-q"]
    done = subprocess.run(command, cwd=directory, stdout=subprocess.PIPE, text=True)
    seconds = time.monotonic() - began
    if not artefact.exists():
        print(f"flatout optimize left with {done.returncode}: {done.stdout[-500:]}", file=sys.stderr)
        return None, seconds, "nothing"
    manifest = json.loads((artefact / "manifest.json").read_text())
    return artefact, seconds, f"{manifest['route']} {manifest.get('setting') or ''}".strip()


def script(name: str, *arguments: object, unless: Path) -> None:
    if not unless.exists():
        print(f"{name} {' '.join(map(str, arguments))}", file=sys.stderr, flush=True)
        with (unless.parent / "log.txt").open("a") as log:
            subprocess.run([sys.executable, str(HERE / name), *map(str, arguments)], check=True, stderr=log, stdout=log)


def enter(alive: contextlib.ExitStack, directory: Path, batch: int) -> Iterator[Contestant]:
    limit = float("inf")
    for peer, settings in PEERS.items():
        for words in settings:
            one = start(alive, directory, batch, peer, words, limit)
            if one is not None:
                if one.peer == "tf.function":
                    limit = HOPELESS * one.ask("go 0")
                yield one


def start(
    alive: contextlib.ExitStack, directory: Path, batch: int, peer: str, words: tuple[str, ...], limit: float
) -> Contestant | None:
    """Alive and checked; None, with a line that says so, where it cannot be had or takes longer than `limit` ms."""
    with (directory / "log.txt").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, str(HERE / "_optimize_contestant.py"), str(directory), str(batch), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
    alive.callback(process.kill)
    one = Contestant(peer, words, process)
    try:
        one.ask("")
        taken = one.ask("go 0")
        if taken > limit:
            print(f"  {peer} {one.setting}: left out, {taken:.0f} ms a call", file=sys.stderr, flush=True)
            process.kill()
            return None
        one.accuracy = one.ask("check")
    except EOFError:
        print(f"  {peer} {one.setting}: cannot be had here", file=sys.stderr, flush=True)
        return None
    return one


def race(contestants: Sequence[Contestant], rounds: int) -> None:
    order = list(contestants)
    for _ in range(rounds):
        random.shuffle(order)
        for one in order:
            one.times.append(one.ask(f"go {SLICE_MS}"))


def fastest(contestants: Sequence[Contestant], least: float) -> Iterator[Contestant]:
    """Of each peer the fastest that keeps the accuracy, where one does."""
    for peer in PEERS:
        within = [one for one in contestants if one.peer == peer and one.accuracy >= least]
        if within:
            yield min(within, key=lambda one: one.typical)


def leave(contestants: Iterable[Contestant]) -> None:
    for one in contestants:
        one.process.kill()
        one.process.wait()


def report(
    name: str, batch: int, best: list[Contestant], ours: Contestant | None, chosen: str, plain: Contestant
) -> list[str]:
    print(f"\n{name}, batch {batch}: {'peer':>18s}  {'ms':>8s}  {'accuracy':>8s}  {'times slower':22s} setting")
    faults = [] if ours else ["flatout has no pick"]
    if ours:
        print(f"{'flatout':>34s}  {ours.typical:8.3f}  {ours.accuracy:8.3f}  {'':22s} {chosen}")
        if ours.accuracy < plain.accuracy - BUDGET:
            faults.append(f"accuracy {ours.accuracy:.3f} where the original has {plain.accuracy:.3f}")
    for one in sorted(best, key=lambda one: one.typical):
        found = paired_ratio(one.times, ours.times) if ours else None
        print(f"{one.peer:>34s}  {one.typical:8.3f}  {one.accuracy:8.3f}  {told(found):22s} {one.setting}")
        if found and one is plain and name in CONVOLUTIONAL and found.high < OVER_FUNCTION:
            faults.append(f"{told(found)} over tf.function where {OVER_FUNCTION} is wanted")
    sys.stdout.flush()
    return faults


def told(found: Interval | None) -> str:
    return f"{found.ratio:.2f} [{found.low:.2f}, {found.high:.2f}]" if found else "–"


if __name__ == "__main__":
    main()
