"""Runs a program whose tree of the run is switched on and off in turns, and writes what a step took in each turn.

    python _tree_in_turns.py RESULT PROGRAM       with flatout's environment: see run_overhead.py

Processes of the same program differ by several percent, turns of one process by much less. Switched off,
nothing enters a span and nobody looks at the stack; steps are counted in both.
"""

from __future__ import annotations

import bisect
import gc
import itertools
import json
import os
import random
import re
import runpy
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from flatout.observe import run_sampler
from flatout.observe.observer import Observer

TURN = float(os.environ.get("TURN", "0.5"))
"""Seconds."""
LONGER = int(os.environ.get("LONGER", "40"))
"""Times as many epochs or steps as the program makes by itself."""
WARM = 3.0
"""Seconds of steps before the first turn."""
NO_STEP = 5.0
"""Times the median: a gap between two steps as long as that is the end of an epoch, with what is done there."""
FEWEST = 5
"""Steps of a turn."""
_TIMES = re.compile(r"(?<=epochs=)\d+|(?<=range\()\d+(?=\):\n)")
"""How often these programs do what they do."""


class Turns:
    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.ends: list[tuple[int, float]] = []
        self.switched: list[tuple[float, float, bool]] = []
        self.sampler_seconds = 0.0
        self.on = True
        self._put_down, observer.ticks._put_down = observer.ticks._put_down, self._step
        self._look, self._write = run_sampler.RunSampler.look, run_sampler.RunSampler.write
        run_sampler.RunSampler.look = lambda sampler: self._looking(sampler)  # type: ignore[method-assign]
        run_sampler.RunSampler.write = lambda sampler: self._writing(sampler)  # type: ignore[method-assign]

    def _step(self, row: Any) -> None:
        self._put_down(row)
        self.ends.append((row[0].id, row[3]))

    def _looking(self, sampler: Any) -> None:
        if self.on:
            self._look(sampler)
        else:
            sampler.last = time.perf_counter()
        self.sampler_seconds = time.thread_time()

    def _writing(self, sampler: Any) -> None:
        if self.on:
            self._write(sampler)

    def run(self) -> None:
        """In pairs, in random order, until the program ends."""
        interval = run_sampler.INTERVAL
        while not self.ends:
            time.sleep(0.1)
        time.sleep(WARM)
        while self.observer.active:
            for on in random.sample((True, False), 2):
                self.on = self.observer.spans.active = on
                run_sampler.INTERVAL = interval if on else TURN
                time.sleep(interval)  # the sampler has gone over
                self.switched.append((time.perf_counter(), time.process_time(), on))
                time.sleep(TURN)
                self.switched.append((time.perf_counter(), time.process_time(), on))
        self.observer.spans.active = False

    def pairs(self) -> list[tuple[Turn, Turn]]:
        """What a step took with the tree and without, in each two turns side by side."""
        stream = Counter(number for number, _ in self.ends).most_common(1)[0][0]
        ends = [end for number, end in self.ends if number == stream]
        usual = statistics.median(b - a for a, b in itertools.pairwise(ends))
        turns = list(zip(self.switched[::2], self.switched[1::2], strict=False))
        found = []
        for one, other in zip(turns[::2], turns[1::2], strict=False):
            means = {begin[2]: _of_turn(ends, begin, end, usual) for begin, end in (one, other)}
            if means[True] and means[False]:
                found.append((means[True], means[False]))
        return found


Turn = tuple[float, float]
"""Of a step in it: milliseconds by the clock, and of the processors, whatever else runs on the machine."""


def _of_turn(
    ends: list[float], begin: tuple[float, float, bool], end: tuple[float, float, bool], usual: float
) -> Turn | None:
    """Nothing where it has few steps. What is done at the end of an epoch counts for the processors alone."""
    first, last = bisect.bisect_right(ends, begin[0]), bisect.bisect_left(ends, end[0])
    gaps = [b - a for a, b in itertools.pairwise(ends[first:last]) if b - a < NO_STEP * usual]
    if len(gaps) < FEWEST:
        return None
    steps = len(gaps) + (ends[first] - begin[0] + end[0] - ends[last - 1]) / statistics.fmean(gaps)
    return 1e3 * statistics.fmean(gaps), 1e3 * (end[1] - begin[1]) / steps


def main() -> None:
    result, program = sys.argv[1:]
    began = time.perf_counter()
    turns = Turns(next(one for one in gc.get_objects() if isinstance(one, Observer)))
    longer = Path(result).with_suffix(".py")
    text = Path(program).read_text()
    longer.write_text(_TIMES.sub(lambda found: str(LONGER * int(found[0])), text))
    threading.Thread(target=turns.run, daemon=True).start()
    sys.argv = [str(longer)]
    runpy.run_path(str(longer), run_name="__main__")
    took = time.perf_counter() - began
    Path(result).write_text(json.dumps({"pairs": turns.pairs(), "sampler": turns.sampler_seconds, "seconds": took}))


if __name__ == "__main__":
    main()
