"""Finding the steps of a program in its trace.

The official viewer finds steps only where the program marks them (`step_num`), which plain `model.fit` does
not. So several methods are tried, the most reliable first, and `found_by` names the one that succeeded:

1. marks of the program or framework: events with `step_num` (`Trace`, StepTraceAnnotation);
2. the "Steps" line that TPU planes carry;
3. calls of the tf.function that takes most of the time (`tf_function_call`, which every Keras loop has);
4. kernels on the device that come round again: the start of each round is a step;
5. executions of the same XLA program, and at last elements taken from the input pipeline.

A step lasts from its start to the start of the next: what is between two marks (the wait for input, Python)
is part of the step's cost. The last step has no successor, so it is counted but not timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from flatout.model.case import Distribution, Steps
from flatout.trace.device import device_lines
from flatout.trace.model import Line, Trace

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    starts_ps: Times
    """Sorted, in picoseconds since the trace's origin."""
    end_ps: int
    found_by: str

    @property
    def times_ms(self) -> NDArray[np.float64]:
        return np.diff(self.starts_ps) / 1e9 if self.starts_ps.size > 1 else self.lengths_ms

    @property
    def lengths_ms(self) -> NDArray[np.float64]:
        return np.array([(self.end_ps - int(self.starts_ps[0])) / 1e9])

    def to_steps(self) -> Steps:
        times = self.times_ms
        return Steps(
            count=int(self.starts_ps.size),
            found_by=self.found_by,
            ms=distribution(times),
            times_ms=tuple(round(float(time), 6) for time in times[:4000]),
            trend=_trend(times),
            outliers=int((times > 3 * np.median(times)).sum()),
        )


def find(trace: Trace) -> Found | None:
    """The steps of one host, by the first method that finds at least one."""
    signs: tuple[Callable[[Trace], Found | None], ...] = (
        _by_marks,
        _by_steps_line,
        _by_function_calls,
        _by_kernels,
        _by_executions,
        _by_input,
    )
    for sign in signs:
        found = sign(trace)
        if found is not None:
            return found
    return None


def distribution(times: NDArray[np.float64]) -> Distribution:
    p10, median, p90 = (float(value) for value in np.percentile(times, (10, 50, 90)))
    return Distribution(median, p10, p90, float(times.mean()), float(times.min()), float(times.max()))


def _trend(times: NDArray[np.float64]) -> float:
    third = times.size // 3
    if third < 3:
        return 0.0
    first = float(np.median(times[:third]))
    return float(np.median(times[-third:])) / first - 1 if first else 0.0


def _host_lines(trace: Trace) -> Iterator[Line]:
    for plane in trace.planes:
        if plane.name.startswith("/host:CPU") or plane.name.startswith("/host:python"):
            yield from plane.lines


def _found(line: Line, rows: NDArray[np.int64], found_by: str) -> Found:
    starts = np.sort(line.start_ps[rows])
    return Found(starts, int((line.start_ps[rows] + line.duration_ps[rows]).max()), found_by)


def _largest_group(line: Line, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the event name that takes most time together among the given rows."""
    ids, inverse = np.unique(line.name_id[rows], return_inverse=True)
    total = np.bincount(inverse, weights=line.duration_ps[rows].astype(np.float64))
    chosen: NDArray[np.int64] = rows[line.name_id[rows] == ids[int(total.argmax())]]
    return chosen


def _by_marks(trace: Trace) -> Found | None:
    best: Found | None = None
    for line in _host_lines(trace):
        if not line.has_stat("step_num"):
            continue
        rows = np.flatnonzero(~np.isnan(line.stat_floats("step_num"))).astype(np.int64)
        if not rows.size:
            continue
        rows = _largest_group(line, rows)
        name = line.plane.name_of(int(line.name_id[rows[0]])).split("#")[0]
        found = _found(line, rows, f"step_num of the {name!r} events")
        if best is None or found.starts_ps.size > best.starts_ps.size:
            best = found
    return best


def _by_steps_line(trace: Trace) -> Found | None:
    for plane in trace.planes_like("/device:"):
        for line in plane.lines:
            if line.name == "Steps" and len(line):
                rows = np.arange(len(line), dtype=np.int64)
                return _found(line, rows, f"the Steps line of {plane.name}")
    return None


def _by_function_calls(trace: Trace) -> Found | None:
    best: tuple[float, Found] | None = None
    for line in _host_lines(trace):
        if not line.has_stat("tf_function_call"):
            continue
        codes, _ = line.stat_strings("tf_function_call")
        rows = np.flatnonzero(codes >= 0).astype(np.int64)
        # Only outermost calls: a tf.function called inside another one would be counted in addition.
        rows = rows[_outermost(line.start_ps[rows], line.duration_ps[rows])]
        if not rows.size:
            continue
        rows = _largest_group(line, rows)
        if rows.size < 2:
            continue
        weight = float(line.duration_ps[rows].sum())
        if best is None or weight > best[0]:
            name = line.plane.name_of(int(line.name_id[rows[0]]))
            best = weight, _found(line, rows, f"calls of the tf.function {name!r}")
    return best[1] if best else None


def _outermost(start: Times, duration: Times) -> NDArray[np.bool_]:
    order = np.argsort(start, kind="stable")
    end = (start + duration)[order]
    reach = np.concatenate(([np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1])) if end.size else end
    outer = np.zeros(start.size, bool)
    outer[order] = start[order] >= reach
    return outer


def _by_kernels(trace: Trace) -> Found | None:
    """Most kernels of a step run the same number of times, once per step; the first of those starts it."""
    # The line with most kernels: the one with most time could be a stream of waiting collectives.
    candidates = [line for plane in trace.planes_like("/device:") for line in device_lines(plane)]
    line = max(candidates, key=len, default=None)
    if line is None or not len(line):
        return None
    plane = line.plane
    rows = np.arange(len(line), dtype=np.int64)
    module_codes, modules = line.stat_strings("hlo_module")
    what = f"kernels on {plane.name}"
    if modules:
        weight = np.bincount(module_codes + 1, weights=line.duration_ps.astype(np.float64))[1:]
        main = int(weight.argmax())
        rows = np.flatnonzero(module_codes == main).astype(np.int64)
        what = f"kernels of {modules[main]} on {plane.name}"
    stat = "hlo_op" if modules else "tf_op"
    codes, _ = line.stat_strings(stat)
    key = (line.name_id[rows] << 32) + codes[rows] + 1
    _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    often, votes = np.unique(counts[counts > 1], return_counts=True)
    if not often.size:
        return None
    count = int(often[votes.argmax()])
    if int(votes.max()) < max(3, 0.2 * counts.size):
        return None  # no number of repetitions is frequent: not a loop of equal steps
    regular = np.flatnonzero(counts == count)
    marker = regular[first[regular].argmin()]
    mine = rows[inverse == marker]
    end = int((line.start_ps[rows] + line.duration_ps[rows]).max())
    return Found(np.sort(line.start_ps[mine]), end, f"{what}, which come round {count} times")


def _by_executions(trace: Trace) -> Found | None:
    for line in _host_lines(trace):
        if not line.has_stat("run_id"):
            continue
        launches = line.where(lambda name: "Execute" in name)
        runs = line.stat_integers("run_id", missing=-1)
        rows = launches[runs[launches] != -1]
        if rows.size:
            rows = _largest_group(line, rows)
            name = line.plane.name_of(int(line.name_id[rows[0]]))
            if rows.size > 1:
                return _found(line, rows, f"executions of an XLA program ({name})")
    return None


def _by_input(trace: Trace) -> Found | None:
    best: Found | None = None
    for line in _host_lines(trace):
        rows = line.where(lambda name: name in ("IteratorGetNext", "EagerLocalExecute: IteratorGetNext"))
        if rows.size > 1:
            # The last call only finds that the input has ended: no op follows it.
            ops = line.where(lambda name: name.startswith("EagerLocalExecute: "))
            if not (line.start_ps[ops] > line.start_ps[rows].max()).any():
                rows = rows[line.start_ps[rows] < line.start_ps[rows].max()]
        if rows.size > 1 and (best is None or rows.size > best.starts_ps.size):
            found = _found(line, rows, "elements taken from the input pipeline (IteratorGetNext)")
            best = replace(found, end_ps=int((line.start_ps + line.duration_ps).max()))
    return best
